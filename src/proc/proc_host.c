/* The numbers of the host: load, CPU time, memory. */
#include "base/clock.h"
#include "base/io.h"
#include "proc/files.h"
#include "proc/proc_internal.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_KEPT_MS = 8000 }; /* the CPUs are counted again after this time */

void gp_proc_host_init(struct gp_proc_reader *reader)
{
    for (int i = 0; i < HOST_FILES; i++)
        reader->host_fds[i] = -1;
}

void gp_proc_host_fini(struct gp_proc_reader *reader)
{
    for (int i = 0; i < HOST_FILES; i++)
        if (reader->host_fds[i] >= 0)
            (void)close(reader->host_fds[i]);
}

/* The line "cpu  user nice system idle iowait irq softirq steal …". */
static bool parse_cpu(struct gp_proc_reader *reader, const char *line, double *ret_pct)
{
    unsigned long long f[8] = {0};
    if (sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &f[0], &f[1], &f[2], &f[3],
               &f[4], &f[5], &f[6], &f[7]) < 4)
        return false;
    uint64_t total = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(f); i++)
        total += f[i];
    uint64_t busy = total - f[3] - f[4]; /* idle and iowait */
    uint64_t d_total = total - reader->cpu_total;
    uint64_t d_busy = busy - reader->cpu_busy;
    *ret_pct = d_total && d_busy <= d_total ? 100.0 * (double)d_busy / (double)d_total : 0;
    reader->cpu_total = total;
    reader->cpu_busy = busy;
    return true;
}

/* A file about the host, kept open between ticks. Not below a root, where files are replaced. */
static long read_host_file(struct gp_proc_reader *reader, enum gp_proc_host_file which, char *text,
                           size_t size)
{
    static const char *const names[HOST_FILES] = {"stat", "loadavg", "meminfo", "uptime"};
    int *fd = &reader->host_fds[which];
    if (reader->root)
        return gp_io_read_at(reader->dir, names[which], text, size);
    if (*fd < 0)
        *fd = openat(reader->dir, names[which], O_RDONLY | O_CLOEXEC);
    return gp_proc_read_again(*fd, text, size);
}

static void read_host_cpu(struct gp_proc_reader *reader, struct gp_proc_host *ret)
{
    char text[512];
    if (read_host_file(reader, HOST_STAT, text, sizeof(text)) > 0 &&
        parse_cpu(reader, text, &ret->cpu_pct))
        ret->known |= GP_PROC_HOST_CPU;
}

/* After the first line, the total, follows one for each online CPU. There may be thousands, so
 * their number is kept for a while. */
static void count_host_cpus(struct gp_proc_reader *reader)
{
    char line[512];
    uint64_t now_ns = gp_clock_mono_ns();
    if (!reader->root && now_ns < reader->cpu_count_until_ns)
        return;
    reader->cpu_count = 0;
    reader->cpu_count_until_ns = now_ns + COUNT_KEPT_MS * GP_NS_PER_MS;
    int fd = openat(reader->dir, "stat", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file && fd >= 0)
        (void)close(fd);
    while (file && fgets(line, sizeof(line), file) && strncmp(line, "cpu", 3) == 0)
        reader->cpu_count += isdigit((unsigned char)line[3]) != 0;
    if (file)
        (void)fclose(file);
}

static void read_host_memory(struct gp_proc_reader *reader, struct gp_proc_host *ret)
{
    char text[4096];
    uint64_t total;
    uint64_t free;
    if (read_host_file(reader, HOST_MEMINFO, text, sizeof(text)) <= 0)
        return;
    if (gp_proc_find_number(text, "MemTotal:", &total) &&
        gp_proc_find_number(text, "MemAvailable:", &free)) {
        ret->memory_total_bytes = total * 1024;
        ret->memory_available_bytes = free * 1024;
        ret->known |= GP_PROC_HOST_MEMORY;
    }
    if (gp_proc_find_number(text, "SwapTotal:", &total) &&
        gp_proc_find_number(text, "SwapFree:", &free)) {
        ret->swap_total_bytes = total * 1024;
        ret->swap_used_bytes = total > free ? (total - free) * 1024 : 0;
        ret->known |= GP_PROC_HOST_SWAP;
    }
}

void gp_proc_host_name(const struct gp_proc_reader *reader, char *ret, size_t size)
{
    long n = reader->root ? gp_io_read_at(reader->dir, "sys/kernel/hostname", ret, size) : 0;
    if (n <= 0 && gethostname(ret, size) != 0)
        (void)snprintf(ret, size, "unknown");
    ret[size - 1] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

void gp_proc_read_host(struct gp_proc_reader *reader, unsigned want, struct gp_proc_host *ret)
{
    char text[128];
    *ret = (struct gp_proc_host){0};
    if (want & GP_PROC_HOST_CPU)
        read_host_cpu(reader, ret);
    if (want & GP_PROC_HOST_CPU_COUNT) {
        count_host_cpus(reader);
        ret->cpu_count = reader->cpu_count;
        ret->known |= reader->cpu_count > 0 ? GP_PROC_HOST_CPU_COUNT : 0;
    }
    if ((want & GP_PROC_HOST_LOAD) &&
        read_host_file(reader, HOST_LOADAVG, text, sizeof(text)) > 0 &&
        sscanf(text, "%lf", &ret->load_1m) == 1)
        ret->known |= GP_PROC_HOST_LOAD;
    if (want & (GP_PROC_HOST_MEMORY | GP_PROC_HOST_SWAP))
        read_host_memory(reader, ret);
    if ((want & GP_PROC_HOST_UPTIME) &&
        read_host_file(reader, HOST_UPTIME, text, sizeof(text)) > 0 &&
        gp_proc_find_number(text, "", &ret->uptime_s))
        ret->known |= GP_PROC_HOST_UPTIME;
}
