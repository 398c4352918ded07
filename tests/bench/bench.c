/* Measures gpulse against the floor program, both on the simulated driver, in one run.
 *
 * The two run in turns, so that what else the machine does strikes both; the medians and their
 * ratio are printed, and whether each ratio keeps its bar. Processes are real ones (children that
 * only wait), so that /proc costs what it costs.
 *
 * bench BUILD [SECONDS [PART]]    BUILD: the build directory; SECONDS: length of the loop
 *                                 measurements, default 60; PART: only one, of `parts` */
#include "stage.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 41 };

struct sample {
    double wall_ms;
    double cpu_ms;
    long rss_kib;
};

static char count_path[256];
static char tick_path[256];
static char h100_path[256];

/* ---- running ---- */

static struct sample run(char *const *argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    struct rusage usage;
    int status;
    pid_t pid;
    double start = now_ms();
    if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
        die(argv[0]);
    if (wait4(pid, &status, 0, &usage) < 0)
        die("wait4");
    double end = now_ms();
    posix_spawn_file_actions_destroy(&actions);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "bench: %s ended with status %d\n", argv[0], status);
        exit(1);
    }
    return (struct sample){end - start, time_ms(usage.ru_utime) + time_ms(usage.ru_stime),
                           usage.ru_maxrss};
}

static int compare(const void *a, const void *b)
{
    const struct sample *x = a;
    const struct sample *y = b;
    return (x->wall_ms > y->wall_ms) - (x->wall_ms < y->wall_ms);
}

static struct sample median(struct sample *samples, int count)
{
    qsort(samples, (size_t)count, sizeof(*samples), compare);
    return samples[count / 2];
}

/* Runs both in turns and leaves their medians. */
static void race(char *const *gpulse, char *const *floor, int rounds, struct sample *ret_gpulse,
                 struct sample *ret_floor)
{
    static struct sample a[ROUNDS];
    static struct sample b[ROUNDS];
    run(gpulse); /* warm */
    run(floor);
    for (int i = 0; i < rounds; i++) {
        a[i] = run(gpulse);
        b[i] = run(floor);
    }
    *ret_gpulse = median(a, rounds);
    *ret_floor = median(b, rounds);
}

/* Calls that read something of a device, over the whole run; taking hold of it (handle and UUID,
 * once per session) apart. */
static long count_device_reads(void)
{
    FILE *f = fopen(count_path, "r");
    char line[256];
    long calls = 0;
    if (!f)
        die(count_path);
    while (fgets(line, sizeof(line), f)) {
        char name[128];
        long n;
        if (sscanf(line, "%127s %ld", name, &n) == 2 && strncmp(name, "nvmlDevice", 10) == 0 &&
            !strstr(name, "GetHandle") && !strstr(name, "GetCount") && !strstr(name, "GetUUID"))
            calls += n;
    }
    fclose(f);
    return calls;
}

/* ---- the measurements ---- */

static void report(const char *title, struct sample g, struct sample f)
{
    printf("%s\n  gpulse %.2f ms wall, %.2f ms CPU, %ld KiB    floor %.2f ms wall, %.2f ms CPU, "
           "%ld KiB\n",
           title, g.wall_ms, g.cpu_ms, g.rss_kib, f.wall_ms, f.cpu_ms, f.rss_kib);
}

#define SMI_CSV                                                                                    \
    "smi", "--query-gpu=timestamp,name,utilization.gpu,memory.used,temperature.gpu", "--format=csv"

static void race_status(const char *title, int gpus, int processes, double bar, long rss_bar_kib)
{
    char *gpulse[] = {gpulse_path, "status", NULL};
    char *floor[] = {floor_path, library_path, NULL};
    struct sample g;
    struct sample f;
    start_children(processes);
    write_machine(gpus, processes, "");
    race(gpulse, floor, ROUNDS, &g, &f);
    report(title, g, f);
    judge("wall time, gpulse / floor", g.wall_ms / f.wall_ms, bar, "x");
    if (rss_bar_kib)
        judge("peak RSS", (double)g.rss_kib / 1024, (double)rss_bar_kib / 1024, "MiB");
}

/* CPU time of one more round: of so many, less one, by so many less one. */
static double round_ms(char *const *many, char *const *one, int rounds)
{
    struct sample a[5];
    struct sample b[5];
    for (int i = 0; i < 5; i++) {
        a[i] = run(many);
        b[i] = run(one);
    }
    return (median(a, 5).cpu_ms - median(b, 5).cpu_ms) / (rounds - 1);
}

/* ps against the floor that reads the same of each process, once and again. */
static void ps(int seconds)
{
    (void)seconds;
    char *gpulse[] = {gpulse_path, "ps", NULL};
    char *floor[] = {floor_path, library_path, "ps", NULL};
    char *gpulse_once[] = {gpulse_path, "ps", "--watch=0.1", "-c", "1", NULL};
    char *gpulse_again[] = {gpulse_path, "ps", "--watch=0.1", "-c", "11", NULL};
    char *floor_again[] = {floor_path, library_path, "ps", "11", NULL};
    struct sample g;
    struct sample f;
    start_children(2000);
    write_machine(8, 2000, "");
    race(gpulse, floor, ROUNDS, &g, &f);
    report("ps, 8 GPUs, 2000 processes", g, f);
    judge("CPU time, gpulse / floor", g.cpu_ms / f.cpu_ms, 1.3, "x");
    double g_ms = round_ms(gpulse_again, gpulse_once, 11);
    double f_ms = round_ms(floor_again, floor, 11);
    printf("ps --watch, the same\n  gpulse %.2f ms CPU a tick    floor %.2f ms CPU\n", g_ms, f_ms);
    judge("a later tick, gpulse / floor", g_ms / f_ms, 0.4, "x");
}

/* What calls cost on real machines: init 15 ms, a process list 4.5 ms, memory 12 us, fan 137 us,
 * PCIe throughput 20 ms, everything else 3 us. */
static const char realistic[] =
    "\"latency_us\": {\"*\": 3, \"nvmlInit_v2\": 15000, \"nvmlDeviceGetMemoryInfo_v2\": 12,"
    " \"nvmlDeviceGetFanSpeed\": 137, \"nvmlDeviceGetPcieThroughput\": 20000,"
    " \"nvmlDeviceGetComputeRunningProcesses_v3\": 4500,"
    " \"nvmlDeviceGetGraphicsRunningProcesses_v3\": 4500,"
    " \"nvmlDeviceGetMPSComputeRunningProcesses_v3\": 4500},";

static void with_latency(int seconds)
{
    (void)seconds;
    char *gpulse[] = {gpulse_path, "status", NULL};
    char *floor[] = {floor_path, library_path, NULL};
    struct sample g[3];
    struct sample f[3];
    static const int gpus[] = {1, 8, 64};
    for (int i = 0; i < 3; i++) {
        char title[64];
        write_machine(gpus[i], 10, realistic);
        race(gpulse, floor, 9, &g[i], &f[i]);
        snprintf(title, sizeof(title), "status, %d GPU(s), realistic call costs", gpus[i]);
        report(title, g[i], f[i]);
    }
    judge("8 GPUs / 1 GPU", g[1].wall_ms / g[0].wall_ms, 1.3, "x");
    judge("8 GPUs / serial floor", g[1].wall_ms / f[1].wall_ms, 0.4, "x");
    judge("64 GPUs / serial floor", g[2].wall_ms / f[2].wall_ms, 0.12, "x");
}

/* smi against the floor that makes its calls, and its parallel reads against one GPU. */
static void smi(int seconds)
{
    (void)seconds;
    static const char slow_calls[] = "\"latency_us\": {\"*\": 5000},";
    char *commands[][5] = {{gpulse_path, "smi", NULL}, {gpulse_path, SMI_CSV, NULL}};
    char *floors[][4] = {{floor_path, library_path, "table", NULL},
                         {floor_path, library_path, "csv", NULL}};
    static const char *const titles[] = {"smi", "smi --query-gpu of five fields"};
    for (int i = 0; i < 2; i++) {
        struct sample g, f, one, unused;
        char title[96];
        write_machine(8, 10, "");
        race(commands[i], floors[i], ROUNDS, &g, &f);
        snprintf(title, sizeof(title), "%s, 8 GPUs, 10 processes", titles[i]);
        report(title, g, f);
        judge("wall time, gpulse / floor", g.wall_ms / f.wall_ms, 1.5, "x");
        write_machine(8, 0, slow_calls);
        race(commands[i], floors[i], 5, &g, &unused);
        write_machine(1, 0, slow_calls);
        race(commands[i], floors[i], 5, &one, &unused);
        printf("%s, 5 ms per call\n  8 GPUs %.0f ms    1 GPU %.0f ms\n", titles[i], g.wall_ms,
               one.wall_ms);
        judge("8 GPUs / 1 GPU", g.wall_ms / one.wall_ms, 1.3, "x");
    }
}

/* smi -lms 100 for some seconds: every line is there, and the last one comes when it should. */
static void smi_loop(int seconds)
{
    char *gpulse[] = {gpulse_path, SMI_CSV ",noheader", "-lms", "100", "-i", "0", NULL};
    int ends[2];
    posix_spawn_file_actions_t actions;
    pid_t pid;
    long lines = 0;
    double first = 0, last = 0;
    write_machine(8, 10, "");
    if (pipe(ends) < 0)
        die("pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (posix_spawn(&pid, gpulse[0], &actions, NULL, gpulse, environ) != 0)
        die(gpulse[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    for (char c; lines <= seconds * 10L && read(ends[0], &c, 1) == 1;) {
        if (c != '\n')
            continue;
        last = now_ms();
        first = lines == 0 ? last : first;
        lines++;
    }
    kill(pid, SIGTERM);
    close(ends[0]);
    waitpid(pid, NULL, 0);
    double due = (double)(lines - 1) * 100;
    printf("smi -lms 100, %d s\n  %ld lines in %.1f ms\n", seconds, lines, last - first);
    judge("lines missing", (double)(seconds * 10L + 1 - lines), 0, "");
    judge("drift", due > 0 ? (last - first - due) / due * 100 : 100, 1, "%");
    judge("drift, the other way", due > 0 ? (due - last + first) / due * 100 : 100, 1, "%");
}

static void calls_per_tick(int seconds)
{
    (void)seconds;
    char *gpulse[] = {gpulse_path, "query", "temperature.gpu", "-n", "1", "-c", "10", NULL};
    write_machine(8, 10, "");
    setenv("GPULSE_SIM_COUNT", count_path, 1);
    run(gpulse);
    unsetenv("GPULSE_SIM_COUNT");
    printf("query temperature.gpu -n 1 -c 10, 8 GPUs\n");
    long reads = count_device_reads();
    judge("driver calls per GPU and tick", (double)reads / 80, 1, "");
}

/* ---- a tick of everything ---- */

/* What the calls shall cost. */
static const char slow[] = "\"latency_us\": {\"*\": 1000, \"nvmlInit_v2\": 0,"
                           " \"nvmlDeviceGetPcieThroughput\": 20000}";

/* Writes the machine: another one with a member more, which comes first. */
static void extend_machine(const char *from, const char *member)
{
    char block[65536];
    size_t n;
    FILE *in = fopen(from, "r");
    FILE *out = fopen(machine_path, "w");
    if (!in || fgetc(in) != '{' || !out || fprintf(out, "{%s, ", member) < 0)
        die(from);
    while ((n = fread(block, 1, sizeof(block), in)) > 0)
        fwrite(block, 1, n, out);
    fclose(in);
    if (fclose(out) != 0)
        die(machine_path);
}

/* What the calls of one GPU cost together, by the count of the last run. */
static double sum_of_one_gpu_ms(int gpus)
{
    FILE *f = fopen(count_path, "r");
    char line[256];
    double sum_ms = 0;
    if (!f)
        die(count_path);
    while (fgets(line, sizeof(line), f)) {
        char name[128];
        long n;
        if (sscanf(line, "%127s %ld", name, &n) == 2)
            sum_ms += (double)n * (strcmp(name, "nvmlDeviceGetPcieThroughput") == 0 ? 20 : 1);
    }
    fclose(f);
    return sum_ms / gpus;
}

struct tick {
    double wall_ms;
    long allocations;
    long bytes;
};

/* The last tick of so many; the calls of all of them are counted. */
static struct tick last_tick(int ticks)
{
    char command[1024];
    struct tick t = {0, 0, 0};
    snprintf(command, sizeof(command), "GPULSE_SIM_COUNT='%s' '%s' '%s' %d", count_path, tick_path,
             library_path, ticks);
    FILE *f = popen(command, "r"); /* NOLINT(cert-env33-c): paths of our own */
    if (!f)
        die(tick_path);
    for (int i = 0; i < ticks; i++)
        if (fscanf(f, "%lf %ld %ld", &t.wall_ms, &t.allocations, &t.bytes) != 3)
            die(tick_path);
    if (pclose(f) != 0)
        die(tick_path);
    return t;
}

static void everything(int seconds)
{
    (void)seconds;
    extend_machine(h100_path, slow);
    struct tick first = last_tick(1);
    double first_sum_ms = sum_of_one_gpu_ms(8);
    struct tick third = last_tick(3);
    double three_sums_ms = sum_of_one_gpu_ms(8);
    last_tick(2);
    double third_sum_ms = three_sums_ms - sum_of_one_gpu_ms(8);
    printf("a tick of everything, 8 GPUs, 1 ms per call and 20 ms for PCIe throughput\n"
           "  first %.0f ms, one GPU's calls %.0f ms    later %.0f ms, one GPU's calls %.0f ms\n"
           "  first %ld allocations, %ld bytes    later %ld allocations, %ld bytes\n",
           first.wall_ms, first_sum_ms, third.wall_ms, third_sum_ms, first.allocations, first.bytes,
           third.allocations, third.bytes);
    judge("first tick / one GPU's calls", first.wall_ms / first_sum_ms, 1.3, "x");
    judge("later tick / one GPU's calls", third.wall_ms / third_sum_ms, 1.3, "x");
}

/* Both loops side by side for the whole time; the footprint is taken early and late. */
static void loop(int seconds)
{
    char count[16];
    snprintf(count, sizeof(count), "%d", seconds);
    char *gpulse[] = {gpulse_path, "status", "--watch", "1", "--count", count, NULL};
    char *floor[] = {floor_path, library_path, "loop", count, "1000", NULL};
    write_machine(8, 10, "");
    pid_t g = spawn(gpulse);
    pid_t f = spawn(floor);
    sleep(3);
    struct footprint early = look_at(g);
    sleep((unsigned)(seconds > 8 ? seconds - 5 : 3));
    struct footprint late = look_at(g);
    double gpulse_cpu = cpu_of(g);
    double floor_cpu = cpu_of(f);
    printf(
        "status --watch 1, 8 GPUs, 10 processes, %d s\n  gpulse %.1f ms CPU    floor %.1f ms CPU\n",
        seconds, gpulse_cpu, floor_cpu);
    judge("CPU time, gpulse / floor", gpulse_cpu / floor_cpu, 2, "x");
    /* A thread that starts late, because the machine was busy, touches its stack; what leaks in a
     * tick would come to megabytes. */
    judge("growth of RSS behind the third second", (double)(late.rss_kib - early.rss_kib), 128,
          "KiB");
    judge("growth of open files", late.files - early.files, 0, "");
}

/* A process on each GPU that keeps it busy, so that its values move. */
static const char load[] =
    "\"workload\": [{\"name\": \"job\", \"pid\": %d, \"gpus\": [0, 1, 2, 3, 4, 5, 6, 7],"
    " \"util\": 97, \"memory_bytes\": 76665166233}]";

/* Ten samples a second of everything that the eight GPUs of the built-in H100 node answer. */
static void recorder(int seconds)
{
    char captured[512], tape[512], member[512];
    snprintf(captured, sizeof(captured), "%s.captured", machine_path);
    snprintf(tape, sizeof(tape), "%s.tape", machine_path);
    char *capture[] = {gpulse_path, "--sim", "h100x8", "sim", "record", "-o", captured, NULL};
    char *record[] = {gpulse_path, "record", "-q", "-n", "0.1", "--before", "0", "-o", tape, NULL};
    cpu_of(spawn(capture));
    snprintf(member, sizeof(member), load, (int)getpid());
    extend_machine(captured, member);
    pid_t pid = spawn(record);
    sleep(3);
    struct footprint early = look_at(pid);
    sleep((unsigned)seconds);
    struct footprint late = look_at(pid);
    double share_pct = (late.cpu_ms - early.cpu_ms) / seconds / 10;
    kill(pid, SIGTERM);
    cpu_of(pid);
    printf("record -n 0.1, 8 GPUs, all metrics, %d s\n", seconds);
    judge("share of a core, with the simulated driver", share_pct, 1, "%");
    judge("RSS", (double)late.rss_kib / 1024, 16, "MiB");
}

static void status(int seconds)
{
    (void)seconds;
    race_status("status, 8 GPUs, 10 processes", 8, 10, 1.5, 6 * 1024);
    race_status("status, 64 GPUs, 2000 processes", 64, 2000, 1.2, 0);
}

/* gpulse run against what it must do anyway: gpulse pick asks the driver the same, and the command
 * itself. Then what it costs while a command runs. */
static void run_command(int seconds)
{
    char true_path[] = "/bin/true";
    char nap[16];
    snprintf(nap, sizeof(nap), "%d", seconds);
    char *bare[] = {true_path, NULL};
    char *pick[] = {gpulse_path, "pick", NULL};
    char *gpulse[] = {gpulse_path, "run", "-q", "--", true_path, NULL};
    char *lasting[] = {gpulse_path, "run", "-q", "--no-record", "--", "/bin/sleep", nap, NULL};
    struct sample g;
    struct sample p;
    struct sample b;
    write_machine(8, 0, "");
    race(gpulse, pick, ROUNDS, &g, &p);
    race(pick, bare, ROUNDS, &p, &b);
    report("run -- true; floor: pick", g, p);
    judge("wall time of run beyond pick and the command", g.wall_ms - p.wall_ms - b.wall_ms, 5,
          "ms");
    pid_t pid = spawn(lasting);
    sleep(seconds > 3 ? (unsigned)seconds - 2 : 1);
    struct footprint f = look_at(pid);
    double cpu_ms = cpu_of(pid);
    printf("run -- sleep %d\n  gpulse %.1f ms CPU, %ld KiB\n", seconds, cpu_ms, f.rss_kib);
    judge("share of a core", cpu_ms / 10 / seconds, 0.5, "%");
    judge("RSS", (double)f.rss_kib / 1024, 6, "MiB");
}

/* ---- what a command prints ---- */

enum { LOG_MIB = 1024, LOG_BLOCK = 1 << 20 };

static char log_path[256];

/* Lines as trainings print them, no two alike. */
static size_t add_log_line(char *at, size_t size, unsigned step)
{
    unsigned dice = step * 2654435761U >> 8;
    static const char *const formats[] = {
        "2026-11-22 21:03:%02u INFO train.py step %u loss %u.%03u lr 3.0e-04 mem %u.20 GiB\n",
        "%3u%%|####      | %u/90000 [00:12<00:15, %u.%02uit/s, loss=0.%u]\r",
        "[rank%u]: step %u batch %u tokens %u cuda memory allocated %u MiB, cache reused\n",
        "W1122 21:03:%02u.%u torch/distributed/run.py:%u] checkpoint %u saved to /data/run%u\n",
        "DEBUG:filelock:Lock %u%u acquired on /home/ann/.cache/huggingface/%u/%u-%u.lock\n",
    };
    return (size_t)snprintf(at, size, formats[dice % 5], dice % 60, step, dice % 7919, dice % 997,
                            dice % 81);
}

static void write_log(void)
{
    static char block[LOG_BLOCK + 256];
    FILE *f = fopen(log_path, "w");
    if (!f)
        die(log_path);
    unsigned step = 0;
    for (int i = 0; i < LOG_MIB; i++) {
        size_t n = 0;
        while (n < LOG_BLOCK)
            n += add_log_line(block + n, sizeof(block) - n, step++);
        fwrite(block, 1, LOG_BLOCK, f);
    }
    if (fclose(f) != 0)
        die(log_path);
}

/* A gigabyte of log through gpulse run, against a plain pipe; each with the same reader. */
static void output(int seconds)
{
    (void)seconds;
    char watched[1024], unwatched[1024], plain[512];
    snprintf(watched, sizeof(watched), "'%s' run -q --no-record -- cat '%s' | cat >/dev/null",
             gpulse_path, log_path);
    snprintf(unwatched, sizeof(unwatched),
             "'%s' run -q --no-record --no-watch -- cat '%s' | cat >/dev/null", gpulse_path,
             log_path);
    snprintf(plain, sizeof(plain), "cat '%s' | cat >/dev/null", log_path);
    char *with_watch[] = {"/bin/sh", "-c", watched, NULL};
    char *without[] = {"/bin/sh", "-c", unwatched, NULL};
    char *pipe_only[] = {"/bin/sh", "-c", plain, NULL};
    struct sample g, n, p;
    write_machine(8, 0, "");
    write_log();
    race(with_watch, pipe_only, 5, &g, &p);
    race(without, pipe_only, 5, &n, &p);
    remove(log_path);
    printf("run -- cat, %d MiB of log lines, to a pipe\n"
           "  watched %.0f MB/s    --no-watch %.0f MB/s    plain pipe %.0f MB/s\n",
           LOG_MIB, LOG_MIB * 1048.576 / g.wall_ms, LOG_MIB * 1048.576 / n.wall_ms,
           LOG_MIB * 1048.576 / p.wall_ms);
    judge("CPU time of watching, for a byte", (g.cpu_ms - n.cpu_ms) / LOG_MIB / 1.048576, 2, "ns");
    judge("wall time, watched, for a byte", g.wall_ms / LOG_MIB / 1.048576, 2, "ns");
}

static const struct {
    const char *name;
    void (*measure)(int seconds);
} parts[] = {
    {"status", status},
    {"ps", ps},
    {"run", run_command},
    {"output", output},
    {"latency", with_latency},
    {"smi", smi},
    {"calls", calls_per_tick},
    {"tick", everything},
    {"loop", loop},
    {"record", recorder},
    {"smi-loop", smi_loop},
    {"top", top},
    {"top-speed", top_speed},
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench BUILD [SECONDS [PART]]\n");
        return 2;
    }
    int seconds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 60;
    snprintf(gpulse_path, sizeof(gpulse_path), "%s/gpulse", argv[1]);
    snprintf(floor_path, sizeof(floor_path), "%s/tests/bench/floor", argv[1]);
    snprintf(library_path, sizeof(library_path), "%s/sim/libnvidia-ml.so.1", argv[1]);
    snprintf(tick_path, sizeof(tick_path), "%s/tests/bench/tick", argv[1]);
    snprintf(h100_path, sizeof(h100_path), "%s/sim/machines/h100.json", argv[1]);
    char folder[] = "/tmp/gpulse-bench-XXXXXX";
    if (!mkdtemp(folder))
        die(folder);
    snprintf(machine_path, sizeof(machine_path), "%s/machine.json", folder);
    snprintf(count_path, sizeof(count_path), "%s/calls", folder);
    snprintf(log_path, sizeof(log_path), "%s/log", folder);
    setenv("GPULSE_SIM", machine_path, 1);
    setenv("GPULSE_SIM_STATE", folder, 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc > 3 && strcmp(argv[3], parts[i].name) != 0)
            continue;
        start_children(10);
        parts[i].measure(seconds);
        end_children();
    }
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    printf("%s\n", failures ? "some bars were not kept" : "all bars kept");
    return failures != 0;
}
