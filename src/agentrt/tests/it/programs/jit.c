// Makes code at run time that calls getppid, and runs it as often as its argument says.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const unsigned char code[] = {
    0xb8, 110, 0, 0, 0, // mov $SYS_getppid, %eax
    0x0f, 0x05,         // syscall
    0xc3,               // ret
};

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 1;
    unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Code that has other code before it, as a compiler's has.
    memset(page, 0x90, 64);
    memcpy(page + 64, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC)) return 1;
    for (int i = 0; i < times; i++)
        if (((int (*)(void))(page + 64))() != 0) return 2;
    printf("%d calls\n", times);
    return 0;
}
