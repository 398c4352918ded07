/* The live monitor in a terminal of its own. */
#include "stage.h"

#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads what a terminal gets until the moment, and counts it. */
static void drain(int fd, double until_ms, long *bytes, long *frames)
{
    static const char mark[] = "\033[?2026h";
    static char data[1 << 16];
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    while (now_ms() < until_ms) {
        if (poll(&poll_fd, 1, 100) <= 0)
            continue;
        ssize_t n = read(fd, data, sizeof(data) - 1);
        if (n <= 0)
            return;
        data[n] = '\0';
        *bytes += n;
        for (const char *p = data; (p = strstr(p, mark)); p++)
            (*frames)++;
    }
}

/* The live monitor in a terminal of its own, beside the floor that reads the same. */
static void watch(int seconds, int processes, int w, int h, double cpu_bar, double bytes_bar)
{
    char count[16];
    char title[96];
    int fd;
    long bytes = 0, frames = 0, first_bytes = 0, first_frames = 0;
    struct winsize size = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
    struct rusage usage;
    start_children(processes);
    write_machine(8, processes, "");
    snprintf(count, sizeof(count), "%d", seconds);
    char *floor[] = {floor_path, library_path, "loop", count, "1000", NULL};
    pid_t f = spawn(floor);
    pid_t g = forkpty(&fd, NULL, NULL, &size);
    if (g < 0)
        die("forkpty");
    if (g == 0) {
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        execl(gpulse_path, gpulse_path, "top", "-n", "1", (char *)NULL);
        _exit(127);
    }
    double start_ms = now_ms();
    drain(fd, start_ms + 2500, &first_bytes, &first_frames);
    drain(fd, start_ms + seconds * 1e3, &bytes, &frames);
    if (write(fd, "q", 1) != 1)
        die("write");
    drain(fd, now_ms() + 500, &first_bytes, &first_frames);
    if (wait4(g, NULL, 0, &usage) != g)
        die("wait4");
    close(fd);
    double gpulse_cpu = time_ms(usage.ru_utime) + time_ms(usage.ru_stime);
    double floor_cpu = cpu_of(f);
    snprintf(title, sizeof(title), "top -n 1, 8 GPUs, %d processes, %dx%d, %d s", processes, w, h,
             seconds);
    printf("%s\n  gpulse %.1f ms CPU    floor %.1f ms CPU\n", title, gpulse_cpu, floor_cpu);
    judge("CPU time, gpulse / floor", gpulse_cpu / floor_cpu, cpu_bar, "x");
    judge("bytes per frame", (double)bytes / (double)(frames ? frames : 1), bytes_bar, "");
    judge("peak RSS", (double)usage.ru_maxrss * 1024 / 1e6, 8, "MB");
    end_children();
}

void top(int seconds)
{
    watch(seconds, 10, 80, 24, 2.5, 1024);
    watch(seconds, 10, 200, 60, 2.5, 3072);
    watch(seconds, 2000, 80, 24, 0.5, 1024);
}
