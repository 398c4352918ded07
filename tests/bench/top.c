/* The live monitor in a terminal of its own. */
#include "stage.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A picture is sent between two marks of synchronised output, or in one write if little changed. */
#define PICTURE_BEGIN "\033[?2026h"
#define PICTURE_END "\033[?2026l"

enum { KEYS = 50 };

struct terminal {
    pid_t pid;
    int fd;
    long bytes;
    long pictures; /* that are complete */
    int is_begun;  /* a picture with marks */
    char tail[16]; /* of what was read last: a mark may come in two pieces */
};

static struct terminal open_top(int w, int h, const char *sort)
{
    struct terminal t = {.bytes = 0};
    struct winsize size = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
    t.pid = forkpty(&t.fd, NULL, NULL, &size);
    if (t.pid < 0)
        die("forkpty");
    if (t.pid == 0) {
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        execl(gpulse_path, gpulse_path, "top", "-n", "1", "--sort", sort, (char *)NULL);
        _exit(127);
    }
    return t;
}

/* Reads what is there, within this time; false at the end of the output. */
static int take(struct terminal *t, int patience_ms)
{
    static char data[sizeof(t->tail) + (1 << 16)];
    const size_t overlap = sizeof(PICTURE_END) - 2;
    struct pollfd poll_fd = {.fd = t->fd, .events = POLLIN};
    if (poll(&poll_fd, 1, patience_ms) <= 0)
        return 1;
    size_t before = strlen(t->tail);
    memcpy(data, t->tail, before);
    ssize_t n = read(t->fd, data + before, sizeof(data) - before - 1);
    if (n <= 0)
        return 0;
    size_t all = before + (size_t)n;
    data[all] = '\0';
    t->bytes += n;
    if (t->pictures > 0 && !t->is_begun && !strstr(data, PICTURE_BEGIN))
        t->pictures++;
    for (const char *p = data; (p = strstr(p, "\033[?2026")); p++) {
        t->is_begun = strncmp(p, PICTURE_BEGIN, strlen(PICTURE_BEGIN)) == 0;
        t->pictures += strncmp(p, PICTURE_END, strlen(PICTURE_END)) == 0;
    }
    size_t keep = all < overlap ? all : overlap;
    memcpy(t->tail, data + all - keep, keep);
    t->tail[keep] = '\0';
    return 1;
}

static void drain(struct terminal *t, double until_ms)
{
    for (double now; (now = now_ms()) < until_ms;)
        if (!take(t, (int)(until_ms - now) + 1))
            return;
}

/* Waits until so many pictures are complete, or the program ends. */
static void await_pictures(struct terminal *t, long count)
{
    while (t->pictures < count && take(t, 1000))
        continue;
}

static void type(struct terminal *t, const char *keys)
{
    if (write(t->fd, keys, strlen(keys)) < 0)
        die("write");
}

/* Reads to its end; how long that took. */
static double await_end(struct terminal *t, struct rusage *ret_usage)
{
    double start_ms = now_ms();
    while (take(t, 1000))
        continue;
    if (wait4(t->pid, NULL, 0, ret_usage) != t->pid)
        die("wait4");
    close(t->fd);
    return now_ms() - start_ms;
}

static double quit(struct terminal *t, struct rusage *ret_usage)
{
    type(t, "q");
    return await_end(t, ret_usage);
}

/* CPU time of a process until now. */
static double cpu_ms(pid_t pid)
{
    clockid_t clock;
    struct timespec ts;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        die("clock_getcpuclockid");
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double megabytes(const struct rusage *usage)
{
    return (double)usage->ru_maxrss * 1024 / 1e6;
}

/* ---- what it costs ---- */

/* Beside a floor, when the start is over for both. `mode`: screen makes about the calls of top,
 * loop reads all processes, as status does. */
static void watch(int seconds, int processes, int w, int h, char *mode, double cpu_bar,
                  double bytes_bar)
{
    enum { WARM_UP_S = 20 };
    char count[16];
    struct rusage usage;
    start_children(processes);
    write_machine(8, processes, "");
    snprintf(count, sizeof(count), "%d", WARM_UP_S + seconds + 60); /* it is ended before */
    char *floor[] = {floor_path, library_path, mode, count, "1000", NULL};
    pid_t f = spawn(floor);
    struct terminal t = open_top(w, h, "memory");
    double start_ms = now_ms() + WARM_UP_S * 1e3;
    drain(&t, start_ms);
    long first_bytes = t.bytes;
    long first_pictures = t.pictures;
    double gpulse_cpu = -cpu_ms(t.pid);
    double floor_cpu = -cpu_ms(f);
    drain(&t, start_ms + seconds * 1e3);
    gpulse_cpu += cpu_ms(t.pid);
    floor_cpu += cpu_ms(f);
    long pictures = t.pictures - first_pictures;
    long bytes = t.bytes - first_bytes;
    quit(&t, &usage);
    kill(f, SIGTERM);
    (void)cpu_of(f);
    printf(
        "top -n 1, 8 GPUs, %d processes, %dx%d, %d s\n  gpulse %.1f ms CPU    floor %.1f ms CPU\n",
        processes, w, h, seconds, gpulse_cpu, floor_cpu);
    judge("CPU time, gpulse / floor", gpulse_cpu / floor_cpu, cpu_bar, "x");
    judge("bytes per frame", (double)bytes / (double)(pictures ? pictures : 1), bytes_bar, "");
    judge("peak RSS", megabytes(&usage), 8 + processes * 0.002, "MB");
    end_children();
}

/* What a tick costs when the first ones are over. */
struct steady {
    double first_ms; /* of CPU: the start and five seconds */
    double tick_ms;
    long growth_kib; /* of the memory since then */
    double rss_mb;   /* the most */
};

static struct steady measure_ticks(int seconds, const char *sort)
{
    struct rusage usage;
    struct terminal t = open_top(80, 24, sort);
    drain(&t, now_ms() + 5000);
    struct steady s = {.first_ms = cpu_ms(t.pid)};
    struct footprint early = look_at(t.pid);
    drain(&t, now_ms() + seconds * 1e3);
    s.tick_ms = (cpu_ms(t.pid) - s.first_ms) / seconds;
    s.growth_kib = look_at(t.pid).rss_kib - early.rss_kib;
    quit(&t, &usage);
    s.rss_mb = megabytes(&usage);
    return s;
}

/* Many GPUs and processes, in the order that is the default, and in one for which all processes
 * have to be read at every tick. */
static void crowd(int seconds, int gpus, int processes)
{
    start_children(processes);
    write_machine(gpus, processes, "");
    struct steady s = measure_ticks(seconds, "memory");
    struct steady by_cpu = measure_ticks(seconds / 3 + 1, "cpu");
    printf("top -n 1, %d GPUs, %d processes, 80x24, %d s\n  start and first 5 s %.0f ms CPU    "
           "peak RSS %.1f MB\n",
           gpus, processes, seconds, s.first_ms, s.rss_mb);
    judge("CPU time of a tick", s.tick_ms, 150, "ms");
    judge("CPU time of a tick, sorted by CPU%", by_cpu.tick_ms, 150, "ms");
    judge("growth of RSS behind the fifth second", (double)s.growth_kib, 2048, "KiB");
    end_children();
}

/* ---- how quick it is ---- */

/* Makes a fault on the machine, or clears all. */
static void fault(char *gpu, char *what)
{
    char *one[] = {gpulse_path, "sim", "fault", "-m", machine_path, "--gpu", gpu, what, NULL};
    char *all[] = {gpulse_path, "sim", "fault", "-m", machine_path, what, NULL};
    char *const *argv = gpu ? one : all;
    (void)cpu_of(spawn(argv));
}

static int compare_numbers(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

/* From a key to the picture that it makes, while one of eight GPUs hangs. Help is opened and
 * closed; keys come behind a picture of a sample, so that the next one is theirs. No sample changes
 * an open help: only a closed one is waited beside. */
static void keys_beside_a_hang(void)
{
    double times_ms[KEYS];
    struct rusage usage;
    write_machine(8, 10, "");
    fault("3", "hang=60s");
    double start_ms = now_ms();
    struct terminal t = open_top(80, 24, "memory");
    await_pictures(&t, 2);
    double values_ms = now_ms() - start_ms;
    drain(&t, now_ms() + 5000);
    for (int i = 0; i < KEYS; i++) {
        if (i % 10 == 0)
            await_pictures(&t, t.pictures + 1);
        drain(&t, now_ms() + 50);
        long pictures = t.pictures;
        start_ms = now_ms();
        type(&t, i % 2 ? "q" : "?");
        await_pictures(&t, pictures + 1);
        times_ms[i] = now_ms() - start_ms;
    }
    double quit_ms = quit(&t, &usage);
    fault(NULL, "clear");
    qsort(times_ms, KEYS, sizeof(times_ms[0]), compare_numbers);
    printf(
        "top, 8 GPUs, one of them hangs, %d keys\n  key to picture: median %.1f ms, longest %.1f "
        "ms    q to the end %.0f ms    start to the values of the others %.0f ms\n",
        KEYS, times_ms[KEYS / 2], times_ms[KEYS - 1], quit_ms, values_ms);
    judge("key to picture, longest", times_ms[KEYS - 1], 50, "ms");
    judge("q to the end", quit_ms, 200, "ms");
}

/* From the start to the first picture, and to the one behind it, which has values. */
static void first_picture(const char *title, const char *library, int hangs)
{
    struct rusage usage;
    double first_ms[9];
    double second_ms = 0;
    const int rounds = hangs ? 3 : 9;
    for (int i = 0; i < rounds; i++) {
        if (hangs)
            fault(NULL, "hang=60s:nvmlInit");
        if (library) {
            setenv("GPULSE_NVML", library, 1);
            unsetenv("GPULSE_SIM");
        }
        double start_ms = now_ms();
        struct terminal t = open_top(80, 24, "memory");
        await_pictures(&t, 1);
        first_ms[i] = now_ms() - start_ms;
        if (!library && !hangs)
            await_pictures(&t, 2);
        second_ms = now_ms() - start_ms;
        if (library)
            await_end(&t, &usage);
        else
            quit(&t, &usage);
        unsetenv("GPULSE_NVML");
        setenv("GPULSE_SIM", machine_path, 1);
        if (hangs)
            fault(NULL, "clear");
    }
    qsort(first_ms, (size_t)rounds, sizeof(first_ms[0]), compare_numbers);
    printf("top, the driver %s\n  start to first picture %.1f ms", title, first_ms[rounds / 2]);
    if (!library && !hangs)
        printf("    to the first values %.1f ms", second_ms);
    printf("\n");
    judge("start to first picture", first_ms[rounds / 2], 100, "ms");
}

void top(int seconds)
{
    watch(seconds, 10, 80, 24, "screen", 2, 1024);
    watch(seconds, 10, 200, 60, "screen", 2, 3072);
    watch(seconds, 2000, 80, 24, "loop", 1, 1024);
    crowd(seconds, 72, 10000);
}

void top_speed(int seconds)
{
    (void)seconds;
    keys_beside_a_hang();
    first_picture("is there", NULL, 0);
    first_picture("is absent", "/nonexistent/libnvidia-ml.so.1", 0);
    first_picture("hangs", NULL, 1);
}
