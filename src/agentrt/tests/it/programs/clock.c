/* Reads clocks in all the ways there are. The first argument says what to do. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long nanoseconds(struct timespec time) {
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long by_libc(clockid_t clock) {
    struct timespec time;
    return clock_gettime(clock, &time) ? -1 : nanoseconds(time);
}

static long long by_syscall(clockid_t clock) {
    struct timespec time;
    return syscall(SYS_clock_gettime, clock, &time) ? -1 : nanoseconds(time);
}

/* A million reads, some by a syscall, some after other exits, some after a pause. */
static int forward(void) {
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME};
    long long last[4] = {0}, back = 0;
    for (int i = 0; i < 1000000; i++) {
        int which = i % 4;
        if (i % 5000 == 0)
            getppid();
        if (i % 250000 == 0)
            usleep(20000);
        long long now = (i / 4) % 500 ? by_libc(clocks[which]) : by_syscall(clocks[which]);
        back += now < last[which];
        last[which] = now;
    }
    printf("%lld steps back\n", back);
    return 0;
}

/* Each pair is in order if all tell the same time. */
static int agree(void) {
    struct timeval day;
    struct timezone zone = {1, 1};
    unsigned cpu = 9, node = 9;
    struct timespec resolution;
    long long before = by_libc(CLOCK_REALTIME) / 1000;
    gettimeofday(&day, &zone);
    long long between = day.tv_sec * 1000000LL + day.tv_usec;
    time_t seconds = time(NULL);
    long long after = by_syscall(CLOCK_REALTIME) / 1000;
    printf("%d %d\n", before <= between && between <= after, zone.tz_minuteswest);
    printf("%d\n", before / 1000000 <= seconds && seconds <= after / 1000000);
    long long uptime = by_libc(CLOCK_MONOTONIC);
    double text = 0;
    FILE *file = fopen("/proc/uptime", "r");
    printf("%d\n", file && fscanf(file, "%lf", &text) == 1);
    /* The text has two digits behind the point. */
    printf("%d\n", text * 1e9 > uptime - 10000001 && text * 1e9 < by_libc(CLOCK_MONOTONIC));
    int result = clock_getres(CLOCK_MONOTONIC, &resolution);
    printf("%d %ld\n", result, resolution.tv_nsec);
    result = getcpu(&cpu, &node);
    printf("%d %u %u\n", result, cpu, node);
    printf("%d\n", clock_gettime(12345, &resolution));
    printf("%d\n", by_libc(CLOCK_PROCESS_CPUTIME_ID) > 0);
    return 0;
}

/* Prints the time 100 times; before each but the first ones it computes for a while. */
static int tell(void) {
    for (int i = 0; i < 100; i++) {
        long long until = by_libc(CLOCK_MONOTONIC) + (i % 10 == 9 ? 50000000 : 100000);
        while (by_libc(CLOCK_MONOTONIC) < until)
            ;
        printf("%lld\n", by_libc(CLOCK_REALTIME));
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "forward"))
        return forward();
    if (argc > 1 && !strcmp(argv[1], "agree"))
        return agree();
    if (argc > 1 && !strcmp(argv[1], "tell"))
        return tell();
    return 2;
}
