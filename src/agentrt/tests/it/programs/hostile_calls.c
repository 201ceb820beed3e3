// Makes every syscall with arguments that no honest program passes. The program must go on, and so must its host.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096l
#define LAST_NUMBER 470
typedef unsigned long word;

// Wait for ever, end or signal the process, or put another program in its place, if they succeed.
static const int left_out[] = {
    SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_pause, SYS_select, SYS_pselect6, SYS_kill, SYS_tkill, SYS_tgkill,
    SYS_alarm, SYS_setitimer, SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_reboot,
};

static char *edge; // the last mapped byte is the one before it

static int is_left_out(int number) {
    for (unsigned i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (left_out[i] == number) return 1;
    return 0;
}

static long failed, succeeded;

static void call(long number, word a, word b, word c, word d, word e, word f) {
    errno = 0;
    if (syscall(number, a, b, c, d, e, f) == -1 && errno) failed++;
    else succeeded++;
}

static void every_call(void) {
    const word wrong[] = {
        0, 8, 0xfff, PAGE, (word)edge, (word)edge - 1, (word)edge - 7, 0x7fffff000000, 0x7fffff000040, 0x7fffffffeff8, 0x7fffffffefff, 0x7ffffffff000,
        1ul << 47, 1ul << 63, (1ul << 63) - 1, 0xffff800000000000, 0xffffffff81000000, 0xffffffff81004ff8, -1ul, -8ul, -PAGE, 0xffffffff, 1ul << 31, 1ul << 32,
    };
    for (int number = 0; number <= LAST_NUMBER; number++) {
        if (is_left_out(number)) continue;
        for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            word w = wrong[i];
            // Nothing of the program's own is in these places.
            int memory = number == SYS_munmap || number == SYS_mremap || number == SYS_mprotect || number == SYS_brk ||
                         number == SYS_madvise || number == SYS_mmap || number == SYS_arch_prctl || number == SYS_poll || number == SYS_ppoll;
            if (memory && (w == 0 || (w > (word)edge - PAGE && w < (word)edge))) continue;
            call(number, w, w, w, w, w, w);
            if (memory) continue;
            int file = open("/tmp/hostile", O_RDWR | O_CREAT, 0600), directory = open("/tmp", O_RDONLY);
            call(number, file, w, w, w, w, w);
            call(number, directory, w, 1 << 20, w, w, w);
            call(number, AT_FDCWD, w, O_CREAT, w, w, w);
            call(number, (word)edge - 4, w, 4, w, w, w);
            call(number, w, (word)edge - 2, -1, 0, w, w);
            close(file);
            close(directory);
        }
    }
    const long numbers[] = {LAST_NUMBER, 512, 547, 1000, 0x40000000, 0x40000001, -1, LONG_MIN, LONG_MAX, 1l << 32, (1l << 32) | SYS_getpid, 0x8000000000000027};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) call(numbers[i], 0, 0, 0, 0, 0, 0);
    unlink("/tmp/hostile");
}

static void vectors(void) {
    int file = open("/tmp/hostile", O_RDWR | O_CREAT, 0600);
    static struct iovec many[2000];
    char buffer[16] = "contents";
    for (int i = 0; i < 2000; i++) many[i] = (struct iovec){buffer, 1};
    const long counts[] = {-1, INT_MIN, 1l << 31, 1l << 32, 1025, 1024, 0, (1l << 60) + 1};
    const int numbers[] = {SYS_readv, SYS_writev, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2, SYS_vmsplice};
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) call(numbers[n], file, (word)many, counts[i], 0, 0, 0);
        struct iovec sums[] = {{buffer, SSIZE_MAX}, {buffer, SSIZE_MAX}, {buffer, 2}};
        call(numbers[n], file, (word)sums, 3, 0, 0, 0);
        struct iovec holes[] = {{buffer, 4}, {(void *)PAGE, 4}, {edge - 2, 1000}, {(void *)-1, -1ul}, {0, 0}};
        for (int count = 1; count <= 5; count++) call(numbers[n], file, (word)holes, count, 0, 0, 0);
        call(numbers[n], file, (word)edge - 8, 1, 0, 0, 0);
        call(numbers[n], file, (word)many, 1, -1, -1, -1);
    }
    const long lengths[] = {-1, LONG_MAX, LONG_MIN, 1l << 47, 1l << 40, INT_MAX, 0x7ffff000, 0x7ffff001};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        call(SYS_read, file, (word)edge - 16, lengths[i], 0, 0, 0);
        call(SYS_write, file, (word)edge - 16, lengths[i], 0, 0, 0);
        call(SYS_pread64, file, (word)edge - 16, lengths[i], lengths[i], 0, 0);
        call(SYS_pwrite64, file, (word)edge - 16, 8, lengths[i], 0, 0);
        call(SYS_getdents64, open("/tmp", O_RDONLY), (word)edge - 16, lengths[i], 0, 0, 0);
        call(SYS_getcwd, (word)edge - 1, lengths[i], 0, 0, 0, 0);
        call(SYS_readlink, (word) "/proc/self/exe", (word)edge - 3, lengths[i], 0, 0, 0);
        call(SYS_getrandom, (word)edge - 16, lengths[i], 0, 0, 0, 0);
        call(SYS_fallocate, file, 0, lengths[i], lengths[i], 0, 0);
        call(SYS_ftruncate, file, lengths[i], 0, 0, 0, 0);
        call(SYS_lseek, file, lengths[i], i % 5, 0, 0, 0);
        call(SYS_sched_getaffinity, 0, lengths[i], (word)edge - 8, 0, 0, 0);
        call(SYS_setgroups, lengths[i], (word)edge - 8, 0, 0, 0, 0);
        call(SYS_setxattr, (word) "/tmp/hostile", (word) "user.x", (word)edge - 8, lengths[i], 0, 0);
        call(SYS_mincore, (word)edge - PAGE, PAGE, lengths[i], 0, 0, 0);
        call(SYS_poll, (word)edge - 8, lengths[i], 0, 0, 0, 0);
        call(SYS_ioctl, 1, lengths[i], (word)edge - 1, 0, 0, 0);
        call(SYS_fcntl, file, i, lengths[i], 0, 0, 0);
        call(SYS_dup2, file, lengths[i], 0, 0, 0, 0);
    }
    unlink("/tmp/hostile");
}

static void strings(void) {
    // No NUL before the end of what is mapped; and very long ones.
    char *start = edge - 64 * PAGE;
    memset(start, 'a', 64 * PAGE);
    const int numbers[] = {SYS_open, SYS_stat, SYS_mkdir, SYS_unlink, SYS_chdir, SYS_readlink, SYS_statfs, SYS_rename, SYS_symlink, SYS_link, SYS_execve, SYS_getxattr, SYS_memfd_create, SYS_truncate, SYS_chmod};
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++)
        for (long length = 0; length < 64 * PAGE; length = length * 2 + 1) {
            call(numbers[n], (word)edge - length, (word)edge - length, (word)edge - length, 0, 0, 0);
            call(numbers[n], (word) "/tmp/x", (word)edge - length, 0, 0, 0, 0);
        }
    for (long i = 0; i < 63 * PAGE; i += 2) memcpy(start + i, "/.", 2);
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) call(numbers[n], (word)start, (word)start, 0, 0, 0, 0);
    edge[-1] = 0;
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) call(numbers[n], (word)start, (word)start, 0, 0, 0, 0);
    // Arguments without end, or without a limit.
    char **arguments = (char **)start;
    for (long i = 0; i < 64 * PAGE / 8; i++) arguments[i] = "argument";
    call(SYS_execve, (word) "/bin/true", (word)arguments, 0, 0, 0, 0);
    arguments[64 * PAGE / 8 - 1] = 0;
    call(SYS_execve, (word) "/nowhere", (word)arguments, (word)arguments, 0, 0, 0);
    call(SYS_execve, (word) "/bin/true", (word)edge - 4, 0, 0, 0, 0);
    char *huge = mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(huge, 'x', (64 << 20) - 1);
    for (int i = 0; i < 100; i++) arguments[i] = huge;
    arguments[100] = 0;
    call(SYS_execve, (word) "/bin/true", (word)arguments, (word)arguments, 0, 0, 0);
}

int main(int argc, char **argv) {
    char *memory = mmap(0, 65 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + 64 * PAGE, PAGE);
    edge = memory + 64 * PAGE;
    int out = dup(1);
    if (argc > 1 && !strcmp(argv[1], "every_call")) every_call();
    if (argc > 1 && !strcmp(argv[1], "vectors")) vectors();
    if (argc > 1 && !strcmp(argv[1], "strings")) strings();
    dprintf(out, "survived %d\n", failed > 100);
    _exit(0);
}
