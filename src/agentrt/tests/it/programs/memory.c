// Memory as Linux has it: each scenario prints what it sees; the last one named may end in a signal.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096l
#define MB (1l << 20)
#define GB (1l << 30)
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static void say(const char *what, long value) {
    printf("%s %ld\n", what, value);
    fflush(stdout);
}

static char *map(long size, int protection, int flags) {
    char *p = mmap(0, size, protection, flags, -1, 0);
    if (p == MAP_FAILED) {
        printf("mmap failed: %s\n", strerror(errno));
        exit(1);
    }
    return p;
}

static long sum(const char *p, long size) {
    long total = 0;
    for (long i = 0; i < size; i++) total += (unsigned char)p[i] * (i % 251 + 1);
    return total;
}

static void fill(char *p, long size) {
    for (long i = 0; i < size; i++) p[i] = i * 7 + i / PAGE;
}

static void demand_zero(void) {
    char *p = map(8 * MB, RW, ANON);
    long wrong = 0;
    for (long i = 0; i < 8 * MB; i += 64) wrong += p[i] != 0;
    say("not zero", wrong);
    p[5 * MB] = 1;
    say("written", p[5 * MB]);
}

static void map_fixed_over(void) {
    char *p = map(16 * PAGE, RW, ANON);
    fill(p, 16 * PAGE);
    char *q = mmap(p + 4 * PAGE, 4 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    say("same place", q == p + 4 * PAGE);
    say("whole", sum(p, 16 * PAGE));
    say("middle", sum(q, 4 * PAGE));
    mmap(p + 2 * PAGE, 4 * PAGE, PROT_READ, ANON | MAP_FIXED, -1, 0);
    say("whole", sum(p, 16 * PAGE));
}

static void unmap_middle(void) {
    char *p = map(16 * PAGE, RW, ANON);
    fill(p, 16 * PAGE);
    munmap(p + 5 * PAGE, 3 * PAGE);
    say("head", sum(p, 5 * PAGE));
    say("tail", sum(p + 8 * PAGE, 8 * PAGE));
    unsigned char there[16];
    say("mincore", mincore(p, 16 * PAGE, there) ? errno : 0);
    char *q = mmap(p + 5 * PAGE, 3 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    say("filled again", q == p + 5 * PAGE);
    say("zeros", sum(q, 3 * PAGE));
}

static void noreplace(void) {
    char *p = map(4 * PAGE, RW, ANON);
    fill(p, 4 * PAGE);
    char *q = mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    say("refused", q == MAP_FAILED ? errno : 0);
    say("kept", sum(p, 4 * PAGE));
}

static void remap(void) {
    char *p = map(8 * PAGE, RW, ANON);
    char *wall = mmap(p - PAGE, PAGE, PROT_NONE, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    (void)wall;
    fill(p, 8 * PAGE);
    p = mremap(p, 8 * PAGE, 4 * PAGE, 0);
    say("shrunk", sum(p, 4 * PAGE));
    char *stop = mmap(p + 4 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    say("no room", mremap(p, 4 * PAGE, 8 * PAGE, 0) == MAP_FAILED ? errno : 0);
    char *q = mremap(p, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    say("moved", q != p);
    say("contents", sum(q, 4 * PAGE));
    say("zeros", sum(q + 4 * PAGE, 60 * PAGE));
    say("gone", msync(p, 4 * PAGE, MS_ASYNC) ? errno : 0);
    munmap(stop, PAGE);
    char *target = map(64 * PAGE, RW, ANON);
    memset(target, 1, 64 * PAGE);
    fill(q, 64 * PAGE);
    char *r = mremap(q, 64 * PAGE, 32 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    say("fixed", r == target);
    say("contents", sum(r, 32 * PAGE));
    say("overlap", mremap(r, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, r + PAGE) == MAP_FAILED ? errno : 0);
    say("rest", sum(target + 32 * PAGE, 32 * PAGE));
}

static void grow_by_steps(void) {
    long size = PAGE;
    char *p = map(size, RW, ANON);
    for (int step = 0; step < 10; step++) {
        fill(p, size);
        long before = sum(p, size);
        p = mremap(p, size, size * 2, MREMAP_MAYMOVE);
        if (sum(p, size) != before || sum(p + size, size) != 0) say("wrong at", step);
        size *= 2;
    }
    say("size", size);
}

static void reserve(void) {
    for (long size = 64 * GB; size <= 1024 * GB; size *= 16) {
        char *p = mmap(0, size, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
        say("reserved", p != MAP_FAILED);
        for (long at = 0; at < size; at += size / 8) {
            if (mprotect(p + at, 2 * PAGE, RW)) say("mprotect", errno);
            fill(p + at, 2 * PAGE);
        }
        long total = 0;
        for (long at = 0; at < size; at += size / 8) total += sum(p + at, 2 * PAGE);
        say("contents", total);
        say("given back", munmap(p, size));
    }
}

static void private_file(void) {
    char contents[3 * PAGE / 2];
    fill(contents, sizeof contents);
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, contents, sizeof contents) != sizeof contents) say("write", errno);
    char *p = mmap(0, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    say("contents", memcmp(p, contents, sizeof contents));
    say("tail", sum(p + sizeof contents, PAGE / 2));
    p[0] = 'x';
    p[sizeof contents] = 'y';
    char byte = 0;
    say("read", pread(fd, &byte, 1, 0));
    say("file unchanged", byte == contents[0]);
    char *second = mmap(0, PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE);
    say("at an offset", second[5] == contents[PAGE + 5]);
    close(fd);
    say("after close", p[1] == contents[1]);
    struct stat stat_;
    stat("file", &stat_);
    say("size", stat_.st_size);
}

static void shared_file(void) {
    int fd = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, 3 * PAGE)) say("ftruncate", errno);
    char *p = mmap(0, 3 * PAGE, RW, MAP_SHARED, fd, 0);
    memset(p, 'a', 3 * PAGE);
    say("msync", msync(p, 3 * PAGE, MS_SYNC));
    char bytes[PAGE];
    say("read", pread(fd, bytes, PAGE, PAGE));
    say("written by msync", bytes[7]);
    p[2 * PAGE + 9] = 'b';
    say("munmap", munmap(p, 3 * PAGE));
    say("read", pread(fd, bytes, PAGE, 2 * PAGE));
    say("written by munmap", bytes[9]);
    p = mmap(0, 3 * PAGE, RW, MAP_SHARED, fd, 0);
    p[11] = 'c'; // written back at exit
    int read_only = open("shared", O_RDONLY);
    char *q = mmap(0, PAGE, RW, MAP_SHARED, read_only, 0);
    say("read-only file", q == MAP_FAILED ? errno : 0);
    q = mmap(0, PAGE, PROT_READ, MAP_SHARED, read_only, 0);
    say("becomes writable", mprotect(q, PAGE, RW) ? errno : 0);
}

// A mapping and the syscalls on its file see each other's changes.
static void shared_with_syscalls(void) {
    int fd = open("in step", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char bytes[2 * PAGE];
    memset(bytes, 'a', sizeof bytes);
    pwrite(fd, bytes, sizeof bytes, 0);
    char *p = mmap(0, 2 * PAGE, RW, MAP_SHARED, fd, 0);
    say("mapped", p[0]);
    pwrite(fd, "b", 1, 0);
    say("written, then seen in memory", p[0]);
    p[1] = 'c';
    pread(fd, bytes, 2, 0);
    say("stored, then read", bytes[1]);
    say("and written", bytes[0]);
    munmap(p, 2 * PAGE);
    pread(fd, bytes, 2, 0);
    say("after munmap", bytes[0]);
    p = mmap(0, 2 * PAGE, RW, MAP_SHARED, fd, 0);
    say("looked at only", p[20]);
    ftruncate(fd, 10);
    ftruncate(fd, 2 * PAGE);
    say("cut and grown", p[20]);
    munmap(p, 2 * PAGE);
    pread(fd, bytes, 1, 20);
    say("what was only looked at is not written", bytes[0]);
}

static void shared_anonymous(void) {
    char *p = map(64 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS);
    fill(p, 64 * PAGE);
    say("contents", sum(p, 64 * PAGE));
    say("dontneed", madvise(p, 64 * PAGE, MADV_DONTNEED));
    say("kept", sum(p, 64 * PAGE));
}

static void dontneed(void) {
    char *p = map(64 * PAGE, RW, ANON);
    memset(p, 1, 64 * PAGE);
    say("madvise", madvise(p + 8 * PAGE, 16 * PAGE, MADV_DONTNEED));
    say("kept", sum(p, 8 * PAGE));
    say("zeros", sum(p + 8 * PAGE, 16 * PAGE));
    say("kept", sum(p + 24 * PAGE, 40 * PAGE));
    p[9 * PAGE] = 5;
    say("written again", p[9 * PAGE]);
    int fd = open("shared", O_RDONLY);
    char *q = mmap(0, PAGE, RW, MAP_PRIVATE, fd, 0);
    char before = q[0];
    q[0] = before + 1;
    madvise(q, PAGE, MADV_DONTNEED);
    say("the file's again", q[0] == before);
}

static void heap(void) {
    char *start = sbrk(0);
    char *p = sbrk(1 * MB);
    say("grown", p == start);
    memset(p, 7, MB);
    say("shrunk", brk(p + 10));
    say("grown", brk(p + MB));
    // The page that the end lay in was never given back.
    say("kept", p[9]);
    say("zeros", sum(p + PAGE, MB - PAGE));
    say("below the start", brk((void *)PAGE) ? errno : 0);
    say("too much", sbrk(1l << 45) == (void *)-1 ? errno : 0);
    say("end", (char *)sbrk(0) - p);
}

static long __attribute__((noinline)) deep(long bytes) {
    volatile char frame[65536];
    frame[0] = bytes;
    frame[sizeof frame - 1] = 1;
    return bytes <= (long)sizeof frame ? frame[0] : deep(bytes - sizeof frame) + frame[sizeof frame - 1];
}

static void stack(void) { say("deep", deep(7 * MB)); }
static void stack_overflow(void) { say("too deep", deep(64 * MB)); }

static void self_modifying(void) {
    // mov $n, %eax; ret
    unsigned char *p = (unsigned char *)map(PAGE, RW | PROT_EXEC, ANON);
    long total = 0;
    for (int n = 0; n < 500; n++) {
        unsigned char code[] = {0xb8, n, n >> 8, 0, 0, 0xc3};
        memcpy(p + n % 100, code, sizeof code);
        total += ((int (*)(void))(p + n % 100))();
    }
    say("W+X", total);
    for (int n = 0; n < 50; n++) {
        mprotect(p, PAGE, RW);
        unsigned char code[] = {0xb8, n, 0, 0, 0, 0xc3};
        memcpy(p, code, sizeof code);
        mprotect(p, PAGE, PROT_READ | PROT_EXEC);
        total += ((int (*)(void))p)();
    }
    say("W^X", total);
}

static void not_executable(void) {
    unsigned char *p = (unsigned char *)map(PAGE, RW, ANON);
    p[0] = 0xc3;
    say("read", p[0]);
    ((void (*)(void))p)();
}

static void read_only(void) {
    char *p = map(4 * PAGE, RW, ANON);
    memset(p, 3, 4 * PAGE);
    mprotect(p + PAGE, PAGE, PROT_READ);
    say("readable", p[PAGE]);
    p[0] = p[2 * PAGE] = 4;
    mprotect(p + PAGE, PAGE, RW);
    p[PAGE] = 5;
    mprotect(p, 4 * PAGE, PROT_READ);
    say("sum", p[0] + p[PAGE] + p[2 * PAGE]);
    p[3 * PAGE] = 1;
}

static void no_access(void) {
    char *p = map(PAGE, RW, ANON);
    p[0] = 1;
    mprotect(p, PAGE, PROT_NONE);
    say("hidden", write(1, p, 1) < 0 ? errno : 0);
    say("never", p[0]);
}

static void after_unmap(void) {
    char *p = map(4 * PAGE, RW, ANON);
    fill(p, 4 * PAGE);
    munmap(p + PAGE, PAGE);
    say("neighbours", p[0] + p[2 * PAGE]);
    say("gone", p[PAGE]);
}

static void beyond_file(void) {
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, "hello", 5) != 5) say("write", errno);
    char *p = mmap(0, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    say("inside", p[4]);
    say("the rest of the page", p[100]);
    say("beyond", p[PAGE]);
}

static void many_areas(void) {
    char *p = map(140000 * PAGE, PROT_READ, ANON);
    long made = 0;
    while (made < 70000 && !mprotect(p + 2 * made * PAGE, PAGE, PROT_NONE)) made++;
    say("errno", errno);
    say("some tens of thousands", made > 30000 && made < 33000);
    say("given back", munmap(p, 140000 * PAGE));
    say("and usable", *map(PAGE, RW, ANON));
}

static void churn(void) {
    for (int round = 0; round < 100; round++) {
        char *p = map(64 * MB, RW, ANON);
        for (long at = 0; at < 64 * MB; at += PAGE) p[at] = round;
        if (round % 2 == 0) munmap(p, 64 * MB);
        else { madvise(p, 64 * MB, MADV_DONTNEED); munmap(p, 64 * MB); }
    }
    say("rounds", 100);
}

static void untouched(void) {
    char *p = map(512 * MB, RW, ANON);
    p[0] = p[300 * MB] = p[512 * MB - 1] = 1;
    say("mapped", 512);
}

static const struct { const char *name; void (*run)(void); } scenarios[] = {
#define S(name) {#name, name}
    S(demand_zero), S(map_fixed_over), S(unmap_middle), S(noreplace), S(remap), S(grow_by_steps), S(reserve),
    S(private_file), S(shared_file), S(shared_with_syscalls), S(shared_anonymous), S(dontneed), S(heap), S(stack), S(stack_overflow),
    S(self_modifying), S(not_executable), S(read_only), S(no_access), S(after_unmap), S(beyond_file),
    S(many_areas), S(churn), S(untouched),
};

int main(int argc, char **argv) {
    for (int a = 1; a < argc; a++)
        for (unsigned i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
            if (!strcmp(argv[a], scenarios[i].name)) {
                printf("%s:\n", argv[a]);
                scenarios[i].run();
            }
    return 0;
}
