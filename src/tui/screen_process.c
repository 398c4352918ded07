/* All details of one process: graphs since the page was opened, and data from /proc, read on a
 * thread because that may hang. */
#include "tui/screen.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "proc/inspect.h"
#include "tui/gpu_text.h"
#include "tui/graph.h"
#include "tui/proc_table.h"
#include "tui/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

/* The graphs, one for each channel of the track. */
static const struct {
    const char *title, *unit, *label;
    enum gp_proc_column column;
    double per;
    double max;   /* 0: that of what it uses, or the highest value */
    double least; /* then at least this */
    enum gp_series like;
} graphs[] = {
    {"GPU memory", "GiB", "VRAM", GP_PROC_MEMORY_COLUMN, GIB, 0, 0, GP_SERIES_MEMORY},
    {"SMs", "%", "SM", GP_PROC_SM_COLUMN, 1, 100, 0, GP_SERIES_GPU},
    {"CPU", "%", "CPU", GP_PROC_CPU_COLUMN, 1, 0, 100, GP_SERIES_GPU},
    {"host memory", "GiB", "RSS", GP_PROC_RSS_COLUMN, GIB, 0, 1, GP_SERIES_MEMORY},
};

enum { GRAPHS = GP_ARRAY_LEN(graphs), GRAPH_LINES = 6, PAGE_LINES = 8, TITLE_EDGES = 6 };

/* A job for the thread and its result. */
struct gp_process_job {
    const char *root;
    uint32_t pid;
    struct gp_inspect *found; /* NULL if there was no memory */
};

static void work(void *ctx)
{
    struct gp_process_job *job = ctx;
    gp_inspect_free(job->found);
    job->found = gp_proc_inspect(job->root, job->pid);
}

/* ---- lines ---- */

static const char *why(int error)
{
    return error == EACCES    ? "not permitted"
           : error == ESRCH   ? "exited, or not visible from here"
           : error == ENODATA ? "none"
                              : strerror(error);
}

static void add_text(struct gp_page *page, const char *label, const struct gp_inspect_text *text)
{
    gp_page_add(page, text->error ? GP_INK_DIM : GP_INK_PLAIN, label,
                text->error ? why(text->error) : text->text);
}

static void add_number(struct gp_page *page, const char *label,
                       const struct gp_inspect_number *number, bool is_bytes)
{
    if (number->error)
        gp_page_add(page, GP_INK_DIM, label, why(number->error));
    else if (is_bytes)
        gp_page_addf(page, GP_INK_PLAIN, label, "%.1f MiB", (double)number->value / (1 << 20));
    else
        gp_page_addf(page, GP_INK_PLAIN, label, "%llu", (unsigned long long)number->value);
}

/* "C, compute" */
static const char *type_in_words(const char *type)
{
    static const char *const words[] = {
        "C, compute",    "G, graphics", "C+G, compute and graphics", "X, compute and graphics",
        "M, MPS client", "S, suspended"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strcspn(words[i], ",") == strlen(type) && strncmp(words[i], type, strlen(type)) == 0)
            return words[i];
    return type;
}

/* Whether the page says it below, from /proc. */
static bool is_below(enum gp_proc_column column)
{
    return column == GP_PROC_START_COLUMN || column == GP_PROC_CONTAINER_COLUMN ||
           column == GP_PROC_STATE_COLUMN || column == GP_PROC_CWD_COLUMN;
}

/* What its row in the list of processes says, and columns of it that are not shown. */
static void add_row(struct gp_page *page, const struct gp_proc_row *row, bool has_more)
{
    gp_page_head(page, "in the list");
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
        gp_proc_format(&sb, row, (enum gp_proc_column)c);
        if (gp_proc_amount(row, (enum gp_proc_column)c).old)
            gp_strbuf_adds(&sb, "  (last known)");
        if (strcmp(sb.buf, "-") != 0 && !(has_more && is_below((enum gp_proc_column)c)))
            gp_page_add(page, GP_INK_PLAIN,
                        c == GP_PROC_TYPE_COLUMN ? "TYPE" : gp_proc_column_table[c].title,
                        c == GP_PROC_TYPE_COLUMN ? type_in_words(sb.buf) : sb.buf);
        gp_strbuf_fini(&sb);
    }
}

static void add_identity(struct gp_page *page, const struct gp_inspect *in)
{
    char started[GP_RFC3339_SIZE];
    gp_page_head(page, "process");
    add_text(page, "name", &in->name);
    add_text(page, "program", &in->program);
    add_text(page, "directory", &in->directory);
    add_text(page, "container", &in->container);
    add_text(page, "cgroup", &in->cgroup);
    add_number(page, "pid in its container", &in->ns_pid, false);
    if (in->stat_error) {
        gp_page_add(page, GP_INK_DIM, "state", why(in->stat_error));
    } else {
        gp_clock_plain(in->start_ns, started);
        gp_page_add(page, GP_INK_PLAIN, "started", started);
        gp_page_addf(page, GP_INK_PLAIN, "state", "%c", in->state);
        gp_page_addf(page, GP_INK_PLAIN, "nice", "%d", in->nice);
        gp_page_addf(page, GP_INK_PLAIN, "threads", "%llu", (unsigned long long)in->threads);
        gp_page_addf(page, GP_INK_PLAIN, "CPU time", "%.1f s user, %.1f s kernel",
                     (double)in->user_ns / 1e9, (double)in->system_ns / 1e9);
    }
    add_number(page, "allowed CPUs", &in->cpus, false);
    add_number(page, "voluntary context switches", &in->voluntary_switches, false);
    add_number(page, "involuntary context switches", &in->involuntary_switches, false);
    add_number(page, "out-of-memory score", &in->oom_score, false);
    for (size_t i = 0; i < in->ancestor_count; i++)
        gp_page_addf(page, GP_INK_PLAIN, i == 0 ? "parent" : "its parent", "%u %s",
                     in->ancestors[i].pid,
                     in->ancestors[i].command ? in->ancestors[i].command : "?");
}

static void add_memory(struct gp_page *page, const struct gp_inspect *in)
{
    gp_page_head(page, "memory and disk I/O");
    add_number(page, "resident", &in->resident_bytes, true);
    add_number(page, "of which shared", &in->shared_bytes, true);
    add_number(page, "swapped", &in->swapped_bytes, true);
    add_number(page, "locked", &in->locked_bytes, true);
    add_number(page, "virtual memory", &in->virtual_bytes, true);
    add_number(page, "read from disk", &in->read_bytes, true);
    add_number(page, "written to disk", &in->written_bytes, true);
}

static void add_devices(struct gp_page *page, const struct gp_inspect_devices *devices)
{
    gp_page_head(page, "open GPU devices");
    if (!devices->error)
        gp_page_addf(page, GP_INK_PLAIN, "open files", "%zu%s", devices->open_files,
                     devices->is_cut ? " or more" : "");
    if (devices->error || devices->count == 0)
        gp_page_add(page, GP_INK_DIM, "", devices->error ? why(devices->error) : "none");
    for (size_t i = 0; i < devices->count; i++)
        gp_page_addf(page, GP_INK_PLAIN, devices->items[i].path,
                     "opened %u times, first descriptor %u", devices->items[i].opens,
                     devices->items[i].first_fd);
    if (devices->is_cut)
        gp_page_add(page, GP_INK_DIM, "", "… and more");
}

static void add_list(struct gp_page *page, const char *title, const struct gp_inspect_list *list)
{
    gp_page_head(page, title);
    if (list->error || list->count == 0)
        gp_page_add(page, GP_INK_DIM, "", list->error ? why(list->error) : "none");
    for (size_t i = 0; i < list->count; i++)
        gp_page_add(page, GP_INK_PLAIN, "", list->items[i]);
    if (list->is_cut)
        gp_page_add(page, GP_INK_DIM, "", "… and more");
}

/* ---- current data ---- */

static const struct gp_proc_row *find_row(const struct gp_ui *ui)
{
    for (size_t i = 0; i < ui->procs.count + ui->procs.closed; i++)
        if (ui->procs.rows[i].pid == ui->details.pid)
            return &ui->procs.rows[i];
    return NULL;
}

/* Adds a sample from this snapshot, if it is a new one. */
static void track(struct gp_ui *ui, const struct gp_proc_row *row)
{
    struct gp_track *t = &ui->details.track;
    struct gp_track_sample sample = {.mono_ns = ui->snapshot ? ui->snapshot->mono_ns : 0};
    if (!row || (t->count > 0 && t->id == sample.mono_ns))
        return;
    for (int i = 0; i < (int)GRAPHS; i++) {
        struct gp_amount amount = gp_proc_amount(row, graphs[i].column);
        if (!amount.known || amount.old)
            continue;
        sample.values[i] = (float)(amount.n / graphs[i].per);
        sample.present |= UINT32_C(1) << i;
    }
    t->id = sample.mono_ns;
    gp_track_add(t, sample, ui->prefs.interval_ns);
}

static void start(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    if (!d->task && d->job)
        d->task = gp_task_start(work, d->job);
}

static void open_page(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    d->pid = row ? row->pid : 0;
    if (d->pid > 0)
        gp_ui_observe(ui, (struct gp_verdict_topic){.pid = (uint32_t)d->pid});
    if (ui->outside.player)
        return; /* /proc is that of this machine */
    d->job = calloc(1, sizeof(*d->job));
    if (d->job)
        *d->job = (struct gp_process_job){ui->outside.root, (uint32_t)d->pid, NULL};
    start(ui);
}

static void write_page(struct gp_ui *ui)
{
    const struct gp_ui_details *d = &ui->details;
    const struct gp_proc_row *row = find_row(ui);
    gp_page_clear(&ui->text);
    gp_ui_write_verdict(ui);
    if (row)
        add_row(&ui->text, row, !d->task && d->job && d->job->found && !d->job->found->error);
    else
        gp_page_add(&ui->text, GP_INK_HIGH, "", "no longer on a GPU");
    if (ui->outside.player) {
        gp_page_head(&ui->text, "process");
        gp_page_add(&ui->text, GP_INK_DIM, "", "nothing else is recorded of it");
        return;
    }
    if (d->task || !d->job || !d->job->found) { /* the thread owns it */
        gp_page_head(&ui->text, "process");
        gp_page_add(&ui->text, GP_INK_DIM, "", d->task ? "reading /proc…" : "out of memory");
        return;
    }
    const struct gp_inspect *in = d->job->found;
    if (in->error) {
        gp_page_head(&ui->text, "process");
        gp_page_add(&ui->text, GP_INK_DIM, "", why(in->error));
        return;
    }
    add_identity(&ui->text, in);
    add_memory(&ui->text, in);
    add_devices(&ui->text, &in->devices);
    add_list(&ui->text, "arguments", &in->arguments);
    size_t environment = ui->text.count;
    add_list(&ui->text, "environment", &in->environment);
    if (ui->details.to_environment)
        ui->text.first = environment + 1;
    ui->details.to_environment = false;
}

/* After each snapshot /proc is read again; the page shows the old data until then. */
static void fill_process(struct gp_ui *ui)
{
    bool is_new = !ui->details.job && !ui->text.count;
    if (is_new)
        open_page(ui);
    track(ui, find_row(ui));
    if (is_new || ui->outside.player)
        write_page(ui);
    else
        start(ui);
}

void gp_process_collect(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    if (!d->task || !gp_task_end(d->task, 0))
        return;
    d->task = NULL;
    write_page(ui);
}

static void leave_process(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    if (d->task && !gp_task_end(d->task, GP_TASK_PATIENCE_MS)) {
        ui->is_stuck = true; /* the thread owns the job, and may never finish */
    } else if (d->job) {
        gp_inspect_free(d->job->found);
        free(d->job);
    }
    d->task = NULL;
    d->job = NULL;
    gp_track_fini(&d->track);
    gp_ui_observe_no_more(ui);
}

/* ---- drawing ---- */

/* The memory in GiB of all GPUs and instances that the process uses; 0: unknown. */
static double memory_of(const struct gp_ui *ui)
{
    const struct gp_snapshot *s = ui->snapshot;
    double sum = 0;
    size_t last = SIZE_MAX;
    for (size_t i = 0; s && i < s->process_count; i++) {
        const struct gp_process *p = &s->processes[i];
        double bytes;
        if (p->device == last || gp_process_value(p, GP_PID)->i != ui->details.pid)
            continue;
        if (!gp_device_number(&s->devices[p->device], GP_MEMORY_TOTAL, &bytes))
            return 0;
        last = p->device;
        sum += bytes / GIB;
    }
    return sum;
}

static void draw_graphs(struct gp_ui *ui, const struct gp_box *box)
{
    uint64_t now_ns = ui->snapshot ? ui->snapshot->mono_ns : 0;
    const struct gp_span span = gp_ui_span(ui, now_ns);
    const double memory = memory_of(ui);
    for (int i = 0; i < (int)GRAPHS; i++) {
        const struct gp_panel panel = {
            .plot = {&ui->details.track, i,
                     graphs[i].column == GP_PROC_MEMORY_COLUMN ? memory : graphs[i].max,
                     graphs[i].like},
            .title = graphs[i].title,
            .unit = graphs[i].unit,
            .label = graphs[i].label,
            .least = graphs[i].least,
            .now_ns = now_ns,
            .blocks = ui->prefs.graph,
        };
        int w = box->w / 2;
        int h = box->h / 2;
        struct gp_box part = gp_box_part(box, i % 2 * w, i / 2 * h, w - 1, h - 1);
        gp_draw_panel(&part, &panel, &span);
    }
}

static void draw_process(struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_proc_row *row = find_row(ui);
    char room[1024] = "";
    struct gp_strbuf title = GP_STRBUF_ON(room, sizeof(room) - 1);
    gp_strbuf_adds(&title, "process ");
    gp_strbuf_add_int(&title, (long)ui->details.pid);
    for (size_t i = 0; row && i < 2; i++) {
        const char *text = i == 0 ? row->user : row->command;
        gp_strbuf_adds(&title, text ? " · " : "");
        const int left = box->w - TITLE_EDGES - (int)gp_utf8_width(title.buf);
        gp_utf8_add_safe(&title, text ? text : "", text ? strlen(text) : 0,
                         left > 0 ? (size_t)left : 1);
    }
    struct gp_box in = gp_draw_window(box, box->w, box->h, title.buf);
    int graphs_h = in.h > 2 * GRAPH_LINES + PAGE_LINES ? 2 * GRAPH_LINES : 0;
    struct gp_box part = gp_box_part(&in, 0, 0, in.w, graphs_h);
    if (graphs_h > 0)
        draw_graphs(ui, &part);
    part = gp_box_part(&in, 0, graphs_h, in.w, in.h - graphs_h);
    gp_page_draw(&ui->text, &part);
}

const struct gp_screen gp_screen_process = {
    .key = gp_page_screen_key, .draw = draw_process, .fill = fill_process, .leave = leave_process};
