// Ends in the way that its first argument names.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void bus_error(void) {
    int fd = memfd_create("empty", 0);
    volatile char *page = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    (void)*page;
}

static volatile int zero;
static volatile float zero_float;

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    puts("before");
    fflush(stdout);
    if (!strcmp(how, "exit")) _exit(number);
    if (!strcmp(how, "signal")) kill(getpid(), number);
    if (!strcmp(how, "ignored")) { signal(number, SIG_IGN); raise(number); }
    if (!strcmp(how, "blocked")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, number);
        sigprocmask(SIG_BLOCK, &set, 0);
        raise(number);
        puts("still here");
        fflush(stdout);
        sigprocmask(SIG_UNBLOCK, &set, 0);
    }
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "null")) *(volatile int *)(long)number = 1;
    if (!strcmp(how, "kernel")) *(volatile int *)0xffffffff81000000 = 1;
    if (!strcmp(how, "noncanonical")) (void)*(volatile int *)0x8000000000000000;
    if (!strcmp(how, "divide")) zero = 77 / zero;
    if (!strcmp(how, "ud2")) __asm__ volatile("ud2");
    if (!strcmp(how, "int3")) __asm__ volatile("int3");
    if (!strcmp(how, "hlt")) __asm__ volatile("hlt");
    if (!strcmp(how, "cli")) __asm__ volatile("cli");
    if (!strcmp(how, "out")) __asm__ volatile("out %%al, %%dx" : : "a"(0), "d"(0x80));
    if (!strcmp(how, "in")) __asm__ volatile("in %%dx, %%al" : : "a"(0), "d"(0x60));
    if (!strcmp(how, "cr3")) __asm__ volatile("mov %%cr3, %%rax" : : : "rax");
    if (!strcmp(how, "wrmsr")) __asm__ volatile("wrmsr" : : "a"(0), "c"(0xc0000082), "d"(0));
    if (!strcmp(how, "lgdt")) __asm__ volatile("lgdt (%%rsp)" : :);
    if (!strcmp(how, "fetch")) ((void (*)(void))0x1000)();
    if (!strcmp(how, "alignment")) {
        __asm__ volatile("pushfq; orl $0x40000, (%rsp); popfq; movl $1, -9(%rsp)");
    }
    if (!strcmp(how, "trap")) __asm__ volatile("pushfq; orl $0x100, (%rsp); popfq; nop; nop");
    if (!strcmp(how, "bus")) bus_error();
    if (!strcmp(how, "sse")) {
        unsigned control = 0;
        __asm__ volatile("stmxcsr %0" : "=m"(control));
        control &= ~0x200u;
        __asm__ volatile("ldmxcsr %0" : : "m"(control));
        zero_float = 1.0f / zero_float;
    }
    if (!strcmp(how, "x87")) {
        unsigned short control = 0x0300;
        __asm__ volatile("fldcw %0; fld1; fldz; fdivrp; fwait" : : "m"(control));
    }
    puts("after");
    return 0;
}
