// Prints its arguments, one environment variable, and copies its input; exits with the number of arguments.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        printf("%d: %s\n", i, argv[i]);
    printf("HOME=%s\n", getenv("HOME"));
    for (int c; (c = getchar()) != EOF;)
        putchar(c);
    fprintf(stderr, "done\n");
    return argc;
}
