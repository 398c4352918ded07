#include "jobs/leak.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/procs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, RISING_PCT = 95 };

/* One process on one GPU. */
struct series {
    int64_t pid;
    unsigned gpu;
    char start[40]; /* identifies the process together with the pid */
    bool seen;      /* as of the last sample */
    double times_s[GP_LEAK_WINDOWS];
    double troughs[GP_LEAK_WINDOWS];
    size_t count;
    double least; /* of the open window */
    size_t samples;
    struct gp_leak_trend trend; /* of the closed windows */
};

struct gp_leaks {
    struct series *all;
    size_t count;
    size_t next; /* behind the one that was found last: processes come in the same order again */
};

/* ---- the trend ---- */

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

struct gp_leak_trend gp_leak_trend(const double *times_s, const double *bytes, size_t count)
{
    struct gp_leak_trend trend = {.known = count >= GP_LEAK_WINDOWS_MIN};
    double slopes[GP_LEAK_WINDOWS * (GP_LEAK_WINDOWS - 1) / 2];
    size_t n = 0;
    size_t rising = 0;
    for (size_t i = 0; trend.known && i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            if (times_s[j] > times_s[i]) {
                slopes[n++] = (bytes[j] - bytes[i]) / (times_s[j] - times_s[i]);
                rising += bytes[j] > bytes[i];
            }
    if (n == 0)
        return (struct gp_leak_trend){.known = false};
    qsort(slopes, n, sizeof(*slopes), compare);
    trend.bytes_per_s = n % 2 ? slopes[n / 2] : (slopes[n / 2 - 1] + slopes[n / 2]) / 2;
    trend.rises = rising * 100 >= n * RISING_PCT && trend.bytes_per_s * 60 > MIB;
    return trend;
}

/* ---- samples ---- */

void gp_leaks_want(struct gp_metric_set *metrics)
{
    static const enum gp_metric wanted[] = {GP_MEMORY_FREE, GP_PROCESS_MEMORY, GP_PROCESS_USER,
                                            GP_PROCESS_START, GP_PROCESS_COMMAND};
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(metrics, wanted[i]);
}

struct gp_leaks *gp_leaks_new(void)
{
    return calloc(1, sizeof(struct gp_leaks));
}

void gp_leaks_free(struct gp_leaks *leaks)
{
    if (leaks)
        free(leaks->all);
    free(leaks);
}

static const char *start_of(const struct gp_process *p)
{
    const struct gp_value *v = gp_process_value(p, GP_PROCESS_START);
    return v->status == GP_STATUS_OK ? v->s : "";
}

static struct series *find(struct gp_leaks *leaks, const struct gp_snapshot *snapshot,
                           const struct gp_process *p)
{
    int64_t pid = gp_process_value(p, GP_PID)->i;
    unsigned gpu = snapshot->devices[p->device].index;
    for (size_t i = 0; i < leaks->count; i++, leaks->next++) {
        struct series *s = &leaks->all[leaks->next % leaks->count];
        if (s->pid != pid || s->gpu != gpu || strcmp(s->start, start_of(p)) != 0)
            continue;
        leaks->next = (size_t)(s - leaks->all) + 1;
        return s;
    }
    return NULL;
}

static struct series *add(struct gp_leaks *leaks, const struct gp_snapshot *snapshot,
                          const struct gp_process *p)
{
    struct series *grown = realloc(leaks->all, (leaks->count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    leaks->all = grown;
    struct series *s = &grown[leaks->count++];
    *s = (struct series){.pid = gp_process_value(p, GP_PID)->i,
                         .gpu = snapshot->devices[p->device].index};
    (void)snprintf(s->start, sizeof(s->start), "%s", start_of(p));
    return s;
}

static void close_window(struct series *s, double now_s)
{
    if (s->count == GP_LEAK_WINDOWS) {
        memmove(s->times_s, s->times_s + 1, (GP_LEAK_WINDOWS - 1) * sizeof(*s->times_s));
        memmove(s->troughs, s->troughs + 1, (GP_LEAK_WINDOWS - 1) * sizeof(*s->troughs));
        s->count--;
    }
    s->times_s[s->count] = now_s;
    s->troughs[s->count++] = s->least;
    s->samples = 0;
    s->trend = gp_leak_trend(s->times_s, s->troughs, s->count);
}

/* Forgets processes that have exited. */
static void drop_unseen(struct gp_leaks *leaks)
{
    size_t kept = 0;
    for (size_t i = 0; i < leaks->count; i++)
        if (leaks->all[i].seen)
            leaks->all[kept++] = leaks->all[i];
    leaks->count = kept;
}

int gp_leaks_take(struct gp_leaks *leaks, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < leaks->count; i++)
        leaks->all[i].seen = false;
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        const struct gp_value *memory = gp_process_value(p, GP_PROCESS_MEMORY);
        struct series *s = find(leaks, snapshot, p);
        if (!s && !(s = add(leaks, snapshot, p)))
            return GP_ENOMEM;
        s->seen = true;
        if (memory->status != GP_STATUS_OK)
            continue; /* currently unknown */
        double bytes = (double)memory->i;
        s->least = s->samples == 0 || bytes < s->least ? bytes : s->least;
        if (++s->samples == GP_LEAK_SAMPLES)
            close_window(s, (double)snapshot->mono_ns / 1e9);
    }
    drop_unseen(leaks);
    return 0;
}

/* ---- lines ---- */

struct line {
    const struct gp_process *process;
    const struct gp_device *device;
    struct gp_leak_trend trend;
};

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    if (x->trend.rises != y->trend.rises)
        return x->trend.rises ? -1 : 1;
    return (x->trend.bytes_per_s < y->trend.bytes_per_s) -
           (x->trend.bytes_per_s > y->trend.bytes_per_s);
}

/* Seconds until the GPU is full; below 0: unknown, or never. */
static double full_in_s(const struct line *l)
{
    double free_bytes;
    if (!l->trend.rises || !gp_device_number_now(l->device, GP_MEMORY_FREE, &free_bytes))
        return -1;
    return free_bytes / l->trend.bytes_per_s;
}

static void add_text(struct gp_strbuf *sb, const struct line *l, const struct gp_proc_row *row)
{
    double full_s = full_in_s(l);
    gp_strbuf_addf(sb, "%8lld %-10s %3u %8.0f ", (long long)row->pid, row->user ? row->user : "-",
                   l->device->index,
                   (double)gp_process_value(l->process, GP_PROCESS_MEMORY)->i / MIB);
    if (!l->trend.known)
        gp_strbuf_addf(sb, "%14s %9s  ", "…", ""); /* three bytes, one column */
    else
        gp_strbuf_addf(sb, "%+12.1f ", l->trend.bytes_per_s * 60 / MIB);
    if (l->trend.known && full_s >= 0)
        gp_strbuf_addf(sb, "%4.0fh%02.0fm  ", (double)(long)(full_s / 3600),
                       (double)((long)(full_s / 60) % 60));
    else if (l->trend.known)
        gp_strbuf_addf(sb, "%9s  ", "-");
    gp_strbuf_adds(sb, row->command ? row->command : "?");
    if (l->trend.rises && row->age_s.known && row->age_s.n < GP_LEAK_YOUNG_S)
        gp_strbuf_adds(sb, "  (young: caches may still fill)");
    gp_strbuf_addc(sb, '\n');
}

static void add_csv(struct gp_strbuf *sb, const struct line *l, const struct gp_proc_row *row)
{
    double full_s = full_in_s(l);
    gp_strbuf_addf(sb, "%lld,%u,%lld,", (long long)row->pid, l->device->index,
                   (long long)gp_process_value(l->process, GP_PROCESS_MEMORY)->i);
    if (l->trend.known)
        gp_strbuf_addf(sb, "%.0f", l->trend.bytes_per_s);
    gp_strbuf_addf(sb, ",%s,", !l->trend.known ? "" : l->trend.rises ? "yes" : "no");
    if (full_s >= 0)
        gp_strbuf_addf(sb, "%.0f", full_s);
    gp_strbuf_addc(sb, '\n');
}

void gp_leaks_add(struct gp_strbuf *sb, struct gp_leaks *leaks, const struct gp_snapshot *snapshot,
                  bool csv, bool header)
{
    struct line *lines = calloc(snapshot->process_count + 1, sizeof(*lines));
    if (!lines)
        return;
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        const struct series *s = find(leaks, snapshot, p);
        lines[i] = (struct line){.process = p, .device = &snapshot->devices[p->device]};
        if (s)
            lines[i].trend = s->trend;
    }
    qsort(lines, snapshot->process_count, sizeof(*lines), compare_lines);
    if (header)
        gp_strbuf_adds(sb,
                       csv ? "pid,gpu,memory,growth,rises,full_in\n"
                           : "     PID USER       GPU  GPU-MiB      MiB/min   FULL IN  COMMAND\n");
    for (size_t i = 0; i < snapshot->process_count; i++) {
        struct gp_proc_row row;
        gp_proc_row_init(&row, lines[i].process, snapshot->wall_ns);
        if (csv)
            add_csv(sb, &lines[i], &row);
        else
            add_text(sb, &lines[i], &row);
    }
    free(lines);
}
