#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN_MAX = 16384 };

char gpulse_path[256];
char floor_path[256];
char library_path[256];
char machine_path[256];
int failures;

static pid_t children[CHILDREN_MAX];
static int child_count;

void die(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

void end_children(void)
{
    for (int i = 0; i < child_count; i++)
        kill(children[i], SIGKILL);
    for (int i = 0; i < child_count; i++)
        waitpid(children[i], NULL, 0);
    child_count = 0;
}

void start_children(int count)
{
    while (child_count < count) {
        pid_t pid = fork();
        if (pid < 0)
            die("fork");
        if (pid == 0)
            for (;;)
                pause();
        children[child_count++] = pid;
    }
}

/* A machine of alike GPUs on which the children stand in turn. */
void write_machine(int gpus, int processes, const char *more)
{
    FILE *f = fopen(machine_path, "w");
    if (!f)
        die(machine_path);
    fprintf(
        f,
        "{\"gpulse_machine\": 1, \"source\": \"bench\", %s"
        " \"driver\": {\"version\": \"580.105.08\", \"nvml\": \"13.580.105.08\", \"cuda\": 13000},"
        " \"devices\": [",
        more);
    for (int g = 0; g < gpus; g++) {
        fprintf(f,
                "%s{\"uuid\": \"GPU-00000000-0000-0000-0000-%012d\","
                " \"pci\": {\"bus_id\": \"00000000:%02X:00.0\", \"device_id\": \"0x233010DE\","
                " \"subsystem_id\": \"0x16C110DE\"},"
                " \"answers\": {\"Name\": \"NVIDIA H100 80GB HBM3\", \"Temperature\": 40,"
                " \"UtilizationRates\": {\"gpu\": 50, \"memory\": 20},"
                " \"MigMode\": {\"current\": \"Disabled\", \"pending\": \"Disabled\"},"
                " \"MemoryInfo\": {\"total\": 85520809984, \"reserved\": 503316480, \"used\": "
                "1073741824,"
                " \"free\": 83943751680}}, \"processes\": [",
                g ? "," : "", g, (unsigned)g + 1);
        for (int p = g, first = 1; p < processes; p += gpus, first = 0)
            fprintf(
                f, "%s{\"pid\": %d, \"type\": \"C\", \"memory_bytes\": 1048576, \"name\": \"job\"}",
                first ? "" : ",", (int)children[p]);
        fprintf(f, "]}");
    }
    fprintf(f, "]}\n");
    if (fclose(f) != 0)
        die(machine_path);
}

double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

double time_ms(struct timeval tv)
{
    return (double)tv.tv_sec * 1e3 + (double)tv.tv_usec / 1e3;
}

struct footprint look_at(pid_t pid)
{
    struct footprint fp = {0, 0, 0};
    char path[64];
    char line[256];
    clockid_t clock;
    struct timespec ts;
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &ts) == 0)
        fp.cpu_ms = (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, "VmRSS: %ld", &fp.rss_kib);
    if (f)
        fclose(f);
    for (int fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
        fp.files += access(path, F_OK) == 0;
    }
    return fp;
}

pid_t spawn(char *const *argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
        die(argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

double cpu_of(pid_t pid)
{
    struct rusage usage;
    if (wait4(pid, NULL, 0, &usage) < 0)
        die("wait4");
    return time_ms(usage.ru_utime) + time_ms(usage.ru_stime);
}

void judge(const char *what, double value, double bar, const char *unit)
{
    int ok = value <= bar;
    failures += !ok;
    printf("  %-52s %8.2f%-4s bar %6.2f%-4s %s\n", what, value, unit, bar, unit,
           ok ? "kept" : "NOT KEPT");
}
