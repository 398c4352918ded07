#include "jobs/timeline_host.h"

#include "base/clock.h"
#include "base/io.h"
#include "model/snapshot.h"
#include "proc/files.h"
#include "proc/tasks.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LEAST_MS = 400, /* CPU time has a grain of 10 ms, and all processes are read */
};

struct look {
    struct gp_timeline_host *host;
    struct gp_trace *trace;
    const struct gp_snapshot *snapshot;
    int proc;
    uint64_t mono_ns, since_ns;     /* now, and the look before: rates are those of this time */
    double seconds;                 /* between them; 0: it is the first look */
    uint64_t cpu_ns, read, written; /* of all of them */
};

void gp_timeline_host_init(struct gp_timeline_host *host)
{
    host->count = 0;
    host->sampled_ns = 0;
    host->cpu_ns = host->read_bytes = host->written_bytes = (struct gp_timeline_sum){0};
    host->cpus = host->read = host->written = (double)NAN;
}

/* ---- names ---- */

/* The command line of a process that uses a GPU; NULL: unknown. */
static const char *command_of(const struct gp_snapshot *snapshot, uint32_t pid)
{
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        const struct gp_value *command = gp_process_value(p, GP_PROCESS_COMMAND);
        if (gp_process_value(p, GP_PID)->i == pid && gp_value_is_present(command))
            return command->s;
    }
    return NULL;
}

/* Names it when it is new, runs another program, or its command line becomes known. */
static void name_process(const struct look *look, struct gp_timeline_process *p,
                         const struct gp_proc_stat *stat)
{
    const bool is_other = strcmp(p->name, stat->name) != 0;
    if (!is_other && p->has_command)
        return;
    const char *command = command_of(look->snapshot, p->pid);
    if (is_other || command)
        gp_trace_name_process(look->trace, p->pid, command ? command : stat->name, GP_TRACE_ORDER);
    memcpy(p->name, stat->name, sizeof(p->name));
    p->has_command = command != NULL;
}

static struct gp_timeline_process *find(const struct look *look, uint32_t pid,
                                        const struct gp_proc_stat *stat)
{
    struct gp_timeline_host *host = look->host;
    for (size_t i = 0; i < host->count; i++)
        if (host->items[i].pid == pid && host->items[i].start_ticks == stat->start_ticks)
            return &host->items[i];
    if (host->count == GP_TIMELINE_PROCESSES)
        return NULL;
    struct gp_timeline_process *p = &host->items[host->count++];
    *p = (struct gp_timeline_process){.pid = pid,
                                      .start_ticks = stat->start_ticks,
                                      .cpu = (double)NAN,
                                      .rss = (double)NAN,
                                      .read = (double)NAN,
                                      .written = (double)NAN};
    return p;
}

/* ---- counters ---- */

static void count_one(const struct look *look, uint64_t mono_ns, uint32_t pid, const char *name,
                      const char *unit, double *last, double value, double grain)
{
    const double rounded = gp_trace_rounded(value, grain);
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
        {"read MB/s", gp_trace_rounded(now_read / 1e5, 1) / 10},
        {"written MB/s", gp_trace_rounded(now_written / 1e5, 1) / 10},
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

/* The same for a sum over all processes. It is lower once if a child is waited for while /proc is
 * read: then it belongs to neither. It stays lower if nobody waits. */
static double rate_of_sum(struct gp_timeline_sum *sum, uint64_t now, double seconds)
{
    const bool is_lower = now < sum->last;
    const bool is_passing = is_lower && !sum->was_lower;
    sum->was_lower = is_passing;
    return is_passing ? 0 : rate(&sum->last, now, seconds);
}

/* Bytes of a process, with its children that were waited for. */
static bool read_disk(const struct look *look, uint32_t pid, uint64_t *read, uint64_t *written)
{
    char text[512];
    return gp_proc_read_pid_file(look->proc, pid, "io", text, sizeof(text)) > 0 &&
           gp_proc_find_number(text, "\nread_bytes:", read) &&
           gp_proc_find_number(text, "\nwrite_bytes:", written);
}

static void look_at(void *context, uint32_t pid, const struct gp_proc_stat *stat)
{
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct look *look = context;
    uint64_t read = 0;
    uint64_t written = 0;
    const uint64_t ticks = stat->user_ticks + stat->system_ticks;
    const bool knows_disk = read_disk(look, pid, &read, &written);
    look->cpu_ns += gp_proc_ticks_to_ns(ticks + stat->children_ticks);
    look->read += read;
    look->written += written;
    struct gp_timeline_process *p = stat->state == 'Z' ? NULL : find(look, pid, stat);
    if (!p)
        return;
    p->is_seen = true;
    name_process(look, p, stat);
    const bool is_new = isnan(p->rss);
    const double seconds = is_new ? 0 : look->seconds;
    const double cpus = rate(&p->cpu_ns, gp_proc_ticks_to_ns(ticks), seconds) / (double)GP_NS_PER_S;
    count_one(look, look->mono_ns, pid, "host memory", "MiB", &p->rss,
              (double)(stat->rss_pages * page_bytes) / 0x1p20, 1);
    const double read_rate = rate(&p->read_bytes, read, knows_disk ? seconds : 0);
    const double write_rate = rate(&p->written_bytes, written, knows_disk ? seconds : 0);
    if (is_new)
        return; /* rates need two samples */
    count_one(look, look->since_ns, pid, "CPU", "%", &p->cpu, 100 * cpus, 1);
    if (knows_disk)
        count_disk(look, pid, &p->read, &p->written, read_rate, write_rate);
}

/* The parent has waited for some of them. */
static void look_at_parent(struct look *look, uint32_t parent)
{
    struct gp_proc_stat stat;
    uint64_t read = 0;
    uint64_t written = 0;
    if (gp_proc_read_stat(look->proc, parent, &stat))
        look->cpu_ns += gp_proc_ticks_to_ns(stat.children_ticks);
    if (read_disk(look, parent, &read, &written)) {
        look->read += read;
        look->written += written;
    }
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
                             uint32_t place, const struct gp_snapshot *snapshot, uint64_t mono_ns)
{
    const uint64_t since_ns = host->sampled_ns ? mono_ns - host->sampled_ns : 0;
    struct look look = {.host = host,
                        .trace = trace,
                        .snapshot = snapshot,
                        .mono_ns = mono_ns,
                        .since_ns = host->sampled_ns ? host->sampled_ns : mono_ns,
                        .seconds = (double)since_ns / (double)GP_NS_PER_S};
    if (host->sampled_ns && since_ns < LEAST_MS * GP_NS_PER_MS)
        return;
    look.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (look.proc < 0)
        return;
    gp_proc_each_descendant(parent, look_at, &look);
    look_at_parent(&look, parent);
    (void)close(look.proc);
    forget_gone(&look);
    const double cpus = rate_of_sum(&host->cpu_ns, look.cpu_ns, look.seconds) / (double)GP_NS_PER_S;
    const double read = rate_of_sum(&host->read_bytes, look.read, look.seconds);
    const double written = rate_of_sum(&host->written_bytes, look.written, look.seconds);
    if (host->sampled_ns) {
        count_one(&look, look.since_ns, place, "CPU", "cores", &host->cpus, cpus, 0.01);
        count_disk(&look, place, &host->read, &host->written, read, written);
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
