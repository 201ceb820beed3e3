// Runs one piece of code that no compiler makes, named by the first argument; prints a line if it goes on.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long word;

static const struct { const char *name; const char *code; int length; } pieces[] = {
#define P(name, code) {name, code, sizeof code - 1}
    P("int80", "\xb8\x14\x00\x00\x00\xcd\x80"), P("int0", "\xcd\x00"), P("int1", "\xcd\x01"), P("int2", "\xcd\x02"), P("int4", "\xcd\x04"),
    P("int8", "\xcd\x08"), P("int13", "\xcd\x0d"), P("int14", "\xcd\x0e"), P("int20", "\xcd\x14"), P("int31", "\xcd\x1f"), P("int32", "\xcd\x20"), P("int255", "\xcd\xff"),
    P("icebp", "\xf1"), P("into", "\xce"), P("sysenter", "\x0f\x34"), P("sysexit", "\x0f\x35"), P("sysret", "\x48\x0f\x07"),
    P("vmcall", "\x31\xc0\x0f\x01\xc1"), P("vmmcall", "\x31\xc0\x0f\x01\xd9"), P("vmlaunch", "\x0f\x01\xc2"), P("vmrun", "\x0f\x01\xd8"), P("clgi", "\x0f\x01\xdd"),
    P("pvm_hypercall", "\xb8\x00\x00\x00\x17\x0f\x01\xc1"),
    P("invd", "\x0f\x08"), P("wbinvd", "\x0f\x09"), P("invlpg", "\x0f\x01\x38"), P("swapgs", "\x0f\x01\xf8"), P("xsetbv", "\x31\xc9\x31\xd2\xb8\x03\x00\x00\x00\x0f\x01\xd1"),
    P("rdmsr", "\xb9\x82\x00\x00\xc0\x0f\x32"), P("rdpmc", "\x31\xc9\x0f\x33"), P("monitor", "\x0f\x01\xc8"), P("mwait", "\x31\xc0\x31\xc9\x0f\x01\xc9"),
    P("clac", "\x0f\x01\xca"), P("stac", "\x0f\x01\xcb"), P("sti", "\xfb"), P("clts", "\x0f\x06"), P("lldt", "\x31\xc0\x0f\x00\xd0"), P("ltr", "\x31\xc0\x0f\x00\xd8"),
    P("lidt", "\x0f\x01\x1c\x24"), P("lmsw", "\x31\xc0\x0f\x01\xf0"), P("dr7", "\x0f\x23\xf8"), P("read_dr7", "\x0f\x21\xf8"), P("cr0", "\x0f\x22\xc0"), P("cr4", "\x0f\x22\xe0"), P("cr8", "\x44\x0f\x22\xc0"),
    P("out_stub_port", "\xe6\x0e"), P("out_syscall_port", "\xb8\x27\x00\x00\x00\xe6\x20"), P("out_word", "\x66\xe7\x20"), P("in_port", "\xe4\x20"), P("outs", "\x66\xba\x20\x00\x6e"), P("rep_outs", "\xb9\xff\xff\x00\x00\x66\xba\x20\x00\xf3\x6e"),
    P("rep_ins", "\x48\x8d\x7c\x24\x80\xb9\x05\x00\x00\x00\x66\xba\x20\x00\xf3\x6c"),
    P("far_kernel", "\x6a\x10\x48\x8d\x05\x04\x00\x00\x00\x50\x48\xcb\x90\x90"), P("iret_kernel", "\x48\x89\xe0\x6a\x18\x50\x9c\x6a\x10\x48\x8d\x05\x04\x00\x00\x00\x50\x48\xcf\x90"),
    P("iret_bad_stack", "\x6a\x2b\x6a\x00\x9c\x6a\x33\x48\x8d\x05\x04\x00\x00\x00\x50\x48\xcf\x90"), P("iret_null_selectors", "\x6a\x00\x6a\x00\x9c\x6a\x00\x6a\x00\x48\xcf"),
    P("far_32_bit", "\x6a\x23\x48\x8d\x05\x04\x00\x00\x00\x50\x48\xcb\xb8\x14\x00\x00\x00\xcd\x80"),
    P("syscall_32_bit", "\x6a\x23\x48\x8d\x05\x04\x00\x00\x00\x50\x48\xcb\xb8\x14\x00\x00\x00\x0f\x05"),
    P("load_ds", "\xb8\x2b\x00\x00\x00\x8e\xd8"), P("load_ds_kernel", "\xb8\x18\x00\x00\x00\x8e\xd8"), P("load_fs", "\x31\xc0\x8e\xe0"), P("load_gs_bad", "\xb8\xff\xff\x00\x00\x8e\xe8"), P("load_ss_null", "\x31\xc0\x8e\xd0"),
    P("popf_all", "\x68\xff\xff\x3f\x00\x9d\x90\x90"), P("popf_nested", "\x68\x02\x42\x00\x00\x9d\x90"), P("direction", "\xfd\xb8\x27\x00\x00\x00\x0f\x05\xfc"),
    P("trap_syscall", "\xb8\x27\x00\x00\x00\x68\x02\x03\x00\x00\x9d\x0f\x05\x90"), P("alignment_syscall", "\x68\x02\x02\x04\x00\x9d\xb8\x27\x00\x00\x00\x0f\x05\x90"),
    P("resume_flag", "\x68\x02\x02\x01\x00\x9d\x90"), P("wrfsbase_bad", "\x48\xb8\x00\x00\x00\x00\x00\x00\x00\x80\xf3\x48\x0f\xae\xd0"), P("wrgsbase_kernel", "\x48\xc7\xc0\x00\x00\x00\x81\xf3\x48\x0f\xae\xd8"),
    P("rdpkru", "\x31\xc9\x0f\x01\xee"), P("wrpkru", "\x31\xc9\x31\xd2\x31\xc0\x0f\x01\xef"), P("xgetbv", "\x31\xc9\x0f\x01\xd0"), P("sgdt", "\x0f\x01\x44\x24\x80"), P("smsw", "\x0f\x01\xe0"), P("cpuid", "\x53\x31\xc0\x0f\xa2\x5b"),
    P("rdtscp", "\x0f\x01\xf9"), P("rdpid", "\xf3\x0f\xc7\xf8"), P("hreset", "\xf3\x0f\x3a\xf0\xc0\x00"), P("enclu", "\x31\xc0\x0f\x01\xd7"), P("ud0", "\x0f\xff\xc0"), P("ud1", "\x0f\xb9\xc0"), P("long_nop", "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90"),
    P("lock_mov", "\xf0\x89\xc0"), P("uiret", "\xf3\x0f\x01\xec"), P("serialize", "\x0f\x01\xe8"), P("xabort", "\xc6\xf8\x00"), P("jump_kernel", "\x48\xc7\xc0\x00\x30\x00\x81\xff\xe0"), P("jump_stack_kernel", "\x48\xc7\xc4\xf8\x4f\x00\x81\x50"),
    P("noncanonical_stack_syscall", "\x49\x89\xe4\x48\xbc\x00\x00\x00\x00\x00\x80\x00\x00\xb8\x27\x00\x00\x00\x0f\x05\x4c\x89\xe4"),
    P("noncanonical_stack_fault", "\x48\xbc\x00\x00\x00\x00\x00\x80\x00\x00\x0f\x0b"),
    P("ring0_stack_syscall", "\x49\x89\xe4\x48\xc7\xc4\xf8\x4f\x00\x81\xb8\x27\x00\x00\x00\x0f\x05\x4c\x89\xe4"),
};

// A syscall with the stack pointer anywhere: neither way in may touch the program's stack.
static void odd_stacks(void) {
    const word stacks[] = {0, 8, 0x7fffff000000, 0x7fffff000048, 0x7ffffffff000, 0xffffffff81005000, 0xffff800000000000, -1ul, -8ul};
    for (unsigned i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        long rewritten, trapped, number = 39;
        __asm__ volatile("mov %%rsp, %%r12; mov %2, %%rsp; mov $39, %%eax; syscall; mov %%rax, %%rbx;"
                         "mov %3, %%rax; nop; syscall; mov %%r12, %%rsp"
                         : "=&b"(rewritten), "=&a"(trapped) : "r"(stacks[i]), "r"(number) : "rcx", "r11", "r12", "memory");
        printf("%u: %ld %ld\n", i, rewritten, trapped);
    }
}

// Into the shim, at an offset, with a return address of the program's own choice.
static void into_shim(word offset, word rcx) {
    fflush(stdout);
    __asm__ volatile("lea 1f(%%rip), %%rdx; test %1, %1; cmovz %%rdx, %1; mov %1, %%rcx; mov $39, %%eax; jmp *%0; 1:"
                     : : "r"(0x7fffff000000 + offset), "r"(rcx) : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

// All registers but those that Linux changes are as before, vectors too.
static void registers(void) {
    word before[8] = {11, 22, 33, 44, 55, 66, 77, 88}, after[8] = {0};
    __asm__ volatile("mov %0, %%rax; vmovdqu (%%rax), %%ymm0; vmovdqu 32(%%rax), %%ymm15; mov $0x1122334455667788, %%r8; mov %%r8, %%r9; mov %%r8, %%r10;"
                     "mov %%r8, %%r13; mov %%r8, %%r14; mov %%r8, %%rdi; mov %%r8, %%rsi; mov %%r8, %%rdx; mov $39, %%eax; syscall;"
                     "mov $39, %%eax; nop; syscall; mov %1, %%rax; vmovdqu %%ymm0, (%%rax); vmovdqu %%ymm15, 32(%%rax);"
                     "cmp %%r8, %%r9; jne 1f; cmp %%r8, %%r10; jne 1f; cmp %%r8, %%r13; jne 1f; cmp %%r8, %%r14; jne 1f;"
                     "cmp %%r8, %%rdi; jne 1f; cmp %%r8, %%rsi; jne 1f; cmp %%r8, %%rdx; je 2f; 1: ud2; 2:"
                     : : "b"(before), "r"(after) : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r13", "r14", "memory");
    printf("vectors kept: %d\n", !memcmp(before, after, sizeof before));
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(name, "names"))
        for (unsigned i = 0; i < sizeof pieces / sizeof *pieces; i++) puts(pieces[i].name);
    if (!strcmp(name, "stacks")) odd_stacks();
    if (!strcmp(name, "registers")) registers();
    if (!strcmp(name, "shim")) into_shim(strtoul(argv[2], 0, 0), strtoul(argv[3], 0, 0));
    for (unsigned i = 0; i < sizeof pieces / sizeof *pieces; i++)
        if (!strcmp(name, pieces[i].name)) {
            char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
            memcpy(code, "\x55\x48\x89\xe5", 4); // push %rbp; mov %rsp, %rbp
            memcpy(code + 4, pieces[i].code, pieces[i].length);
            memcpy(code + 4 + pieces[i].length, "\xc9\xc3", 2); // leave; ret
            ((void (*)(void))code)();
        }
    puts("went on");
    return 0;
}
