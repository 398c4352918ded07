/* The numbers of the host: load, CPU time, memory. */
#include "base/clock.h"
#include "base/io.h"
#include "proc/files.h"
#include "proc/proc_internal.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOAD_MS = 5000,   /* the kernel computes it as often (LOAD_FREQ, linux/sched/loadavg.h) */
    RARELY_MS = 60000 /* the number of CPUs and the name of the host hardly ever change */
};

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
    uint64_t f[8] = {0};
    uint64_t total = 0;
    size_t count = 0;
    const char *at = line + strlen("cpu");
    if (strncmp(line, "cpu ", strlen("cpu ")) != 0)
        return false;
    for (char *end; count < GP_ARRAY_LEN(f); count++, at = end) {
        f[count] = strtoull(at, &end, 10);
        if (end == at)
            break;
        total += f[count];
    }
    if (count < 4)
        return false;
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

static unsigned read_cpu(struct gp_proc_reader *reader, struct gp_proc_host *host)
{
    char text[512];
    bool known = read_host_file(reader, HOST_STAT, text, sizeof(text)) > 0 &&
                 parse_cpu(reader, text, &host->cpu_pct);
    return known ? GP_PROC_HOST_CPU : 0;
}

/* After the first line, the total, follows one for each online CPU. There may be thousands. */
static unsigned count_cpus(struct gp_proc_reader *reader, struct gp_proc_host *host)
{
    char line[512];
    host->cpu_count = 0;
    int fd = openat(reader->dir, "stat", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file && fd >= 0)
        (void)close(fd);
    while (file && fgets(line, sizeof(line), file) && strncmp(line, "cpu", 3) == 0)
        host->cpu_count += isdigit((unsigned char)line[3]) != 0;
    if (file)
        (void)fclose(file);
    return host->cpu_count > 0 ? GP_PROC_HOST_CPU_COUNT : 0;
}

static unsigned read_load(struct gp_proc_reader *reader, struct gp_proc_host *host)
{
    char text[128];
    char *end;
    if (read_host_file(reader, HOST_LOADAVG, text, sizeof(text)) <= 0)
        return 0;
    unsigned long whole = strtoul(text, &end, 10);
    if (end == text || *end != '.' || !isdigit((unsigned char)end[1]) ||
        !isdigit((unsigned char)end[2]))
        return 0;
    host->load_1m = (double)whole + (10 * (end[1] - '0') + end[2] - '0') / 100.0;
    return GP_PROC_HOST_LOAD;
}

static unsigned read_memory(struct gp_proc_reader *reader, struct gp_proc_host *host)
{
    char text[4096];
    uint64_t total;
    uint64_t free;
    unsigned known = 0;
    if (read_host_file(reader, HOST_MEMINFO, text, sizeof(text)) <= 0)
        return 0;
    if (gp_proc_find_number(text, "MemTotal:", &total) &&
        gp_proc_find_number(text, "MemAvailable:", &free)) {
        host->memory_total_bytes = total * 1024;
        host->memory_available_bytes = free * 1024;
        known |= GP_PROC_HOST_MEMORY;
    }
    if (gp_proc_find_number(text, "SwapTotal:", &total) &&
        gp_proc_find_number(text, "SwapFree:", &free)) {
        host->swap_total_bytes = total * 1024;
        host->swap_used_bytes = total > free ? (total - free) * 1024 : 0;
        known |= GP_PROC_HOST_SWAP;
    }
    return known;
}

static unsigned read_uptime(struct gp_proc_reader *reader, struct gp_proc_host *host)
{
    char text[128];
    bool known = read_host_file(reader, HOST_UPTIME, text, sizeof(text)) > 0 &&
                 gp_proc_find_number(text, "", &host->uptime_s);
    return known ? GP_PROC_HOST_UPTIME : 0;
}

const char *gp_proc_host_name(struct gp_proc_reader *reader)
{
    char *name = reader->host_name;
    const size_t size = sizeof(reader->host_name);
    const uint64_t now_ns = gp_clock_mono_ns();
    if (!reader->root && name[0] && now_ns < reader->name_ns + RARELY_MS * GP_NS_PER_MS)
        return name;
    long n = reader->root ? gp_io_read_at(reader->dir, "sys/kernel/hostname", name, size) : 0;
    if (n <= 0 && gethostname(name, size) != 0)
        (void)snprintf(name, size, "unknown");
    name[size - 1] = '\0';
    name[strcspn(name, "\n")] = '\0';
    reader->name_ns = now_ns;
    return name;
}

/* Each returns the parts that it knows. */
static const struct {
    unsigned parts; /* enum gp_proc_host_part */
    unsigned again_ms;
    unsigned (*read)(struct gp_proc_reader *reader, struct gp_proc_host *host);
} host_readers[] = {
    {GP_PROC_HOST_CPU, 0, read_cpu},
    {GP_PROC_HOST_CPU_COUNT, RARELY_MS, count_cpus},
    {GP_PROC_HOST_LOAD, LOAD_MS, read_load},
    {GP_PROC_HOST_MEMORY | GP_PROC_HOST_SWAP, 0, read_memory},
    {GP_PROC_HOST_UPTIME, 0, read_uptime},
};

static bool is_recent(const struct gp_proc_host *host, unsigned part, uint64_t for_ns,
                      uint64_t now_ns)
{
    uint64_t read_ns = host->read_ns[__builtin_ctz(part)];
    return read_ns && now_ns < read_ns + for_ns;
}

void gp_proc_read_host(struct gp_proc_reader *reader, unsigned want, uint64_t every_ns,
                       struct gp_proc_host *ret)
{
    static const struct gp_proc_host nothing;
    struct gp_proc_host *host = &reader->host;
    uint64_t now_ns = gp_clock_mono_ns();
    if (reader->root) /* its files may change at any time */
        *host = nothing;
    for (size_t i = 0; i < GP_ARRAY_LEN(host_readers); i++) {
        unsigned parts = host_readers[i].parts;
        uint64_t slow_ns = host_readers[i].again_ms * GP_NS_PER_MS;
        if (!(want & parts) ||
            is_recent(host, parts, every_ns > slow_ns ? every_ns : slow_ns, now_ns))
            continue;
        for (unsigned rest = parts; rest; rest &= rest - 1)
            host->read_ns[__builtin_ctz(rest)] = now_ns;
        host->known = (host->known & ~parts) | host_readers[i].read(reader, host);
    }
    *ret = *host;
    ret->known &= want;
}
