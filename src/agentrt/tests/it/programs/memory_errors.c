// The error numbers of memory syscalls with odd arguments, one line each.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096l
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static int line;

// Prints whether a call failed and how; successes of calls that return addresses vary.
#define E(number, ...) \
    do { \
        errno = 0; \
        long result = syscall(number, __VA_ARGS__); \
        printf("%2d %s: %s\n", ++line, #number " " #__VA_ARGS__, result == -1 ? strerrorname_np(errno) : "ok"); \
    } while (0)

int main(void) {
    char *p = mmap(0, 16 * PAGE, RW, ANON, -1, 0);
    char *hole = p + 8 * PAGE;
    munmap(hole, 2 * PAGE);
    int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int reader = open("file", O_RDONLY), writer = open("file", O_WRONLY), dir = open(".", O_RDONLY);
    int path = open("file", O_PATH);
    if (ftruncate(file, 3 * PAGE)) return 1;
    const long top = 1l << 47;
    unsigned char vec[64];

    E(SYS_mmap, 0, 0, RW, ANON, -1, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_ANONYMOUS, -1, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_ANONYMOUS | MAP_PRIVATE | MAP_SHARED, -1, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_PRIVATE, -1, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_PRIVATE, 999, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_PRIVATE, dir, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_PRIVATE, path, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_PRIVATE, file, 1);
    E(SYS_mmap, 0, PAGE, RW, MAP_PRIVATE, file, -PAGE);
    E(SYS_mmap, 0, PAGE, RW, MAP_PRIVATE, file, 1l << 62);
    E(SYS_mmap, 0, PAGE, PROT_READ, MAP_PRIVATE, writer, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_SHARED, reader, 0);
    E(SYS_mmap, 0, PAGE, RW, MAP_PRIVATE, reader, 0);
    E(SYS_mmap, 0, PAGE, PROT_NONE, MAP_PRIVATE, writer, 0);
    E(SYS_mmap, 0, 1, PROT_READ, MAP_PRIVATE, reader, 0);
    E(SYS_mmap, 0, -1l, RW, ANON, -1, 0);
    E(SYS_mmap, 0, -PAGE, RW, ANON, -1, 0);
    E(SYS_mmap, 0, 1l << 48, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    E(SYS_mmap, 0, 1l << 46, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    E(SYS_mmap, p + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    E(SYS_mmap, p + 1, PAGE, RW, ANON, -1, 0);
    E(SYS_mmap, 0, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 1);
    E(SYS_mmap, p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    E(SYS_mmap, p + 7 * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    E(SYS_mmap, top, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    E(SYS_mmap, top - 4 * PAGE, 16 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    E(SYS_mmap, -PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    E(SYS_mmap, 1l << 62, PAGE, RW, ANON, -1, 0);
    E(SYS_mmap, 0, PAGE, RW, ANON, 123456, 0);
    E(SYS_mmap, 0, PAGE, RW, ANON, -1, 1);
    E(SYS_mmap, 0, PAGE, RW, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0);
    E(SYS_mmap, 0, PAGE, RW, ANON | MAP_STACK | MAP_NORESERVE | MAP_POPULATE, -1, 0);
    E(SYS_mmap, 0, PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0);

    E(SYS_munmap, p + 1, PAGE);
    E(SYS_munmap, p, 0);
    E(SYS_munmap, hole, PAGE);
    E(SYS_munmap, hole, 1);
    E(SYS_munmap, top, PAGE);
    E(SYS_munmap, p, -1l);
    E(SYS_munmap, p, -PAGE);
    E(SYS_munmap, -PAGE, PAGE);

    E(SYS_mprotect, p, PAGE, PROT_READ);
    E(SYS_mprotect, p, 1, RW);
    E(SYS_mprotect, p, 0, RW);
    E(SYS_mprotect, p + 1, PAGE, RW);
    E(SYS_mprotect, hole, PAGE, RW);
    E(SYS_mprotect, hole, 0, RW);
    E(SYS_mprotect, p + 7 * PAGE, 3 * PAGE, RW);
    E(SYS_mprotect, p, PAGE, 64);
    E(SYS_mprotect, p, PAGE, RW | 8);
    E(SYS_mprotect, p, -1l, RW);
    E(SYS_mprotect, p, -PAGE, RW);
    E(SYS_mprotect, top, PAGE, RW);
    E(SYS_mprotect, p, PAGE, RW | PROT_GROWSUP);
    E(SYS_mprotect, p, PAGE, RW | PROT_GROWSUP | PROT_GROWSDOWN);

    E(SYS_mremap, p + 1, PAGE, PAGE, 0, 0);
    E(SYS_mremap, p, PAGE, 0, 0, 0);
    E(SYS_mremap, p, PAGE, PAGE, 0, 0);
    E(SYS_mremap, p, 2 * PAGE, 2 * PAGE, 8, 0);
    E(SYS_mremap, p, PAGE, PAGE, MREMAP_FIXED, 0);
    E(SYS_mremap, p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p);
    E(SYS_mremap, p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + 1);
    E(SYS_mremap, p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, top);
    E(SYS_mremap, p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + 2 * PAGE);
    E(SYS_mremap, hole, PAGE, 2 * PAGE, 0, 0);
    E(SYS_mremap, hole, PAGE, PAGE, 0, 0);
    E(SYS_mremap, p + 7 * PAGE, 3 * PAGE, 4 * PAGE, MREMAP_MAYMOVE, 0);
    E(SYS_mremap, p, 2 * PAGE, 4 * PAGE, 0, 0);
    E(SYS_mremap, p, PAGE, -1l, MREMAP_MAYMOVE, 0);
    E(SYS_mremap, p, -1l, PAGE, MREMAP_MAYMOVE, 0);
    E(SYS_mremap, p, 0, PAGE, MREMAP_MAYMOVE, 0);
    E(SYS_mremap, top, PAGE, PAGE, MREMAP_MAYMOVE, 0);

    E(SYS_madvise, p, PAGE, MADV_DONTNEED);
    E(SYS_madvise, p + 1, PAGE, MADV_DONTNEED);
    E(SYS_madvise, p, 0, MADV_DONTNEED);
    E(SYS_madvise, p, -1l, MADV_DONTNEED);
    E(SYS_madvise, p, PAGE, 12345);
    E(SYS_madvise, p, 0, 12345);
    E(SYS_madvise, hole, PAGE, MADV_DONTNEED);
    E(SYS_madvise, p + 7 * PAGE, 4 * PAGE, MADV_DONTNEED);
    E(SYS_madvise, p, PAGE, MADV_WILLNEED);
    E(SYS_madvise, p, PAGE, MADV_FREE);
    E(SYS_madvise, p, PAGE, MADV_POPULATE_WRITE);
    E(SYS_madvise, hole, PAGE, MADV_POPULATE_READ);

    E(SYS_msync, p, PAGE, MS_SYNC);
    E(SYS_msync, p, PAGE, MS_SYNC | MS_ASYNC);
    E(SYS_msync, p, PAGE, 64);
    E(SYS_msync, p + 1, PAGE, MS_SYNC);
    E(SYS_msync, p, 0, MS_SYNC);
    E(SYS_msync, hole, PAGE, MS_SYNC);
    E(SYS_msync, p + 7 * PAGE, 4 * PAGE, MS_ASYNC);

    E(SYS_mincore, p, PAGE, vec);
    E(SYS_mincore, p + 1, PAGE, vec);
    E(SYS_mincore, p, 0, vec);
    E(SYS_mincore, hole, PAGE, vec);
    E(SYS_mincore, p, PAGE, 8);
    E(SYS_mincore, p, -1l, vec);
    E(SYS_mincore, top, PAGE, vec);

    E(SYS_mlock, p, PAGE);
    E(SYS_mlock, p + 1, 1);
    E(SYS_mlock, hole, PAGE);
    E(SYS_munlock, p, PAGE);
    E(SYS_munlock, hole, PAGE);
    E(SYS_mlock2, p, PAGE, 77);
    E(SYS_brk, 0);
    return 0;
}
