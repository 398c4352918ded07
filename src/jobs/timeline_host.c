#include "jobs/timeline_host.h"

#include "base/clock.h"
#include "base/io.h"
#include "proc/files.h"
#include "proc/tasks.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LEAST_MS = 400, /* CPU time has a grain of 10 ms, and all processes are read */
    ORDER = 100,    /* below the GPUs */
};

struct look {
    struct gp_timeline_host *host;
    struct gp_trace *trace;
    int proc;
    uint64_t mono_ns, since_ns; /* now, and the look before: rates are those of this time */
    double seconds;             /* between them; 0: it is the first look */
    double cpus, read, written;
};

void gp_timeline_host_init(struct gp_timeline_host *host)
{
    host->count = 0;
    host->sampled_ns = 0;
    host->cpus = host->read = host->written = NAN;
}

/* The command line, or what is there of it. */
static void name_process(const struct look *look, uint32_t pid)
{
    char text[256];
    long n = gp_proc_read_pid_file(look->proc, pid, "cmdline", text, sizeof(text));
    for (long i = 0; i + 1 < n; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    if (n <= 0)
        n = gp_proc_read_pid_file(look->proc, pid, "comm", text, sizeof(text));
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    if (n > 0)
        gp_trace_name_process(look->trace, pid, text, ORDER);
}

static struct gp_timeline_process *find(struct look *look, uint32_t pid,
                                        const struct gp_proc_stat *stat)
{
    struct gp_timeline_host *host = look->host;
    for (size_t i = 0; i < host->count; i++)
        if (host->items[i].pid == pid && host->items[i].start_ticks == stat->start_ticks)
            return &host->items[i];
    if (host->count == GP_TIMELINE_PROCESSES)
        return NULL;
    name_process(look, pid);
    struct gp_timeline_process *p = &host->items[host->count++];
    *p = (struct gp_timeline_process){.pid = pid,
                                      .start_ticks = stat->start_ticks,
                                      .cpu = NAN,
                                      .rss = NAN,
                                      .read = NAN,
                                      .written = NAN};
    return p;
}

static void count_one(const struct look *look, uint64_t mono_ns, uint32_t pid, const char *name,
                      const char *unit, double *last, double value, double grain)
{
    const double rounded = round(value / grain) * grain;
    if (!isnan(*last) && fabs(*last - rounded) < grain / 2)
        return;
    *last = rounded;
    const struct gp_trace_value values[] = {{unit, rounded}};
    gp_trace_count(look->trace, pid, name, mono_ns, values, 1);
}

static void count_disk(const struct look *look, uint32_t pid, double *read, double *written,
                       double now_read, double now_written)
{
    const struct gp_trace_value values[] = {
        {"read MB/s", round(now_read / 1e5) / 10},
        {"written MB/s", round(now_written / 1e5) / 10},
    };
    if (!isnan(*read) && fabs(*read - values[0].number) < 0.05 &&
        fabs(*written - values[1].number) < 0.05)
        return;
    *read = values[0].number;
    *written = values[1].number;
    gp_trace_count(look->trace, pid, "disk", look->since_ns, values, GP_ARRAY_LEN(values));
}

static double rate(uint64_t *last, uint64_t now, double seconds)
{
    double r = seconds > 0 && now > *last ? (double)(now - *last) / seconds : 0;
    *last = now;
    return r;
}

static void look_at(void *context, uint32_t pid)
{
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct look *look = context;
    struct gp_proc_stat stat;
    char text[512];
    uint64_t read = 0;
    uint64_t written = 0;
    if (!gp_proc_read_stat(look->proc, pid, &stat) || stat.state == 'Z')
        return;
    struct gp_timeline_process *p = find(look, pid, &stat);
    if (!p)
        return;
    p->is_seen = true;
    const bool is_new = isnan(p->rss);
    const double seconds = is_new ? 0 : look->seconds;
    const double cpus =
        rate(&p->cpu_ns, gp_proc_ticks_to_ns(stat.user_ticks + stat.system_ticks), seconds) /
        (double)GP_NS_PER_S;
    count_one(look, look->mono_ns, pid, "host memory", "MiB", &p->rss,
              (double)(stat.rss_pages * page_bytes) / 0x1p20, 1);
    const bool knows_disk = gp_proc_read_pid_file(look->proc, pid, "io", text, sizeof(text)) > 0 &&
                            gp_proc_find_number(text, "\nread_bytes:", &read) &&
                            gp_proc_find_number(text, "\nwrite_bytes:", &written);
    const double read_rate = rate(&p->read_bytes, read, knows_disk ? seconds : 0);
    const double write_rate = rate(&p->written_bytes, written, knows_disk ? seconds : 0);
    look->cpus += cpus;
    look->read += read_rate;
    look->written += write_rate;
    if (is_new)
        return; /* rates need two samples */
    count_one(look, look->since_ns, pid, "CPU", "%", &p->cpu, 100 * cpus, 1);
    if (knows_disk)
        count_disk(look, pid, &p->read, &p->written, read_rate, write_rate);
}

/* Those that are gone use nothing. */
static void forget_gone(const struct look *look)
{
    struct gp_timeline_host *host = look->host;
    size_t kept = 0;
    for (size_t i = 0; i < host->count; i++) {
        struct gp_timeline_process *p = &host->items[i];
        if (p->is_seen) {
            p->is_seen = false;
            host->items[kept++] = *p;
            continue;
        }
        count_one(look, look->mono_ns, p->pid, "host memory", "MiB", &p->rss, 0, 1);
        if (!isnan(p->cpu))
            count_one(look, look->since_ns, p->pid, "CPU", "%", &p->cpu, 0, 1);
        if (!isnan(p->read))
            count_disk(look, p->pid, &p->read, &p->written, 0, 0);
    }
    host->count = kept;
}

void gp_timeline_host_sample(struct gp_timeline_host *host, struct gp_trace *trace, uint32_t parent,
                             uint32_t place, uint64_t mono_ns)
{
    const uint64_t since_ns = host->sampled_ns ? mono_ns - host->sampled_ns : 0;
    struct look look = {.host = host,
                        .trace = trace,
                        .mono_ns = mono_ns,
                        .since_ns = host->sampled_ns ? host->sampled_ns : mono_ns,
                        .seconds = (double)since_ns / (double)GP_NS_PER_S};
    if (host->sampled_ns && since_ns < LEAST_MS * GP_NS_PER_MS)
        return;
    look.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (look.proc < 0)
        return;
    gp_proc_each_descendant(parent, look_at, &look);
    (void)close(look.proc);
    forget_gone(&look);
    if (host->sampled_ns) {
        count_one(&look, look.since_ns, place, "CPU", "cores", &host->cpus, look.cpus, 0.01);
        count_disk(&look, place, &host->read, &host->written, look.read, look.written);
    }
    host->sampled_ns = mono_ns;
}

void gp_timeline_host_end(struct gp_timeline_host *host, struct gp_trace *trace, uint32_t place,
                          uint64_t mono_ns)
{
    const struct look look = {
        .host = host, .trace = trace, .mono_ns = mono_ns, .since_ns = mono_ns};
    forget_gone(&look);
    if (!isnan(host->cpus)) {
        count_one(&look, look.since_ns, place, "CPU", "cores", &host->cpus, 0, 0.01);
        count_disk(&look, place, &host->read, &host->written, 0, 0);
    }
}
