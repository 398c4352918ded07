#include "tui/procs.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "tui/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, UNATTRIBUTED_LEAST = 256 * MIB };

/* ---- rows ---- */

static const struct gp_value *value_of(const struct gp_process *process, enum gp_metric m)
{
    return gp_process_value(process, m);
}

static const char *text_of(const struct gp_process *process, enum gp_metric m)
{
    const struct gp_value *v = value_of(process, m);
    return gp_value_is_present(v) ? v->s : NULL;
}

static void add(struct gp_amount *amount, const struct gp_process *process, enum gp_metric m)
{
    const struct gp_value *v = value_of(process, m);
    if (!gp_value_is_present(v))
        return;
    amount->n += gp_metric_number(m, v);
    amount->known = true;
    amount->old = amount->old || v->status == GP_STATUS_STALE;
}

/* Seconds from an RFC 3339 time to the snapshot. */
static double age_of(const char *start, uint64_t wall_ns)
{
    uint64_t start_ns;
    if (!start || !gp_clock_parse_rfc3339(start, &start_ns))
        return -1;
    return wall_ns > start_ns ? (double)(wall_ns - start_ns) / 1e9 : 0;
}

static void add_gpu(struct gp_proc_row *row, const struct gp_device *device)
{
    size_t n = strlen(row->gpus);
    const char *comma = n > 0 ? "," : "";
    if (device->is_mig)
        (void)snprintf(row->gpus + n, sizeof(row->gpus) - n, "%s%u:%u", comma, device->index,
                       device->mig_index);
    else
        (void)snprintf(row->gpus + n, sizeof(row->gpus) - n, "%s%u", comma, device->index);
}

static int compare_pids(const void *a, const void *b)
{
    const struct gp_process *const *x = a;
    const struct gp_process *const *y = b;
    int64_t p = value_of(*x, GP_PID)->i;
    int64_t q = value_of(*y, GP_PID)->i;
    if (p != q)
        return p < q ? -1 : 1;
    return ((*x)->device > (*y)->device) - ((*x)->device < (*y)->device);
}

static void start_row(struct gp_proc_row *row, const struct gp_process *p, uint64_t wall_ns)
{
    *row = (struct gp_proc_row){
        .pid = value_of(p, GP_PID)->i,
        .user = text_of(p, GP_PROCESS_USER),
        .command = text_of(p, GP_PROCESS_COMMAND),
        .type = text_of(p, GP_PROCESS_TYPE),
    };
    if (!row->command)
        row->command = text_of(p, GP_PROCESS_NAME);
    row->age_s = age_of(text_of(p, GP_PROCESS_START), wall_ns);
    add(&row->cpu, p, GP_PROCESS_CPU);
    add(&row->rss, p, GP_PROCESS_RSS);
}

/* "0,1,2,3" is shorter as "0-3". */
static void shorten(char gpus[24])
{
    unsigned first;
    unsigned last;
    int n;
    if (strchr(gpus, ':') || sscanf(gpus, "%u%n", &first, &n) != 1)
        return;
    last = first;
    for (const char *p = gpus + n; *p; p += n) {
        unsigned next;
        if (sscanf(p, ",%u%n", &next, &n) != 1 || next != last + 1)
            return;
        last = next;
    }
    if (last > first + 1)
        (void)snprintf(gpus, 24, "%u-%u", first, last);
}

static void add_processes(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                          const struct gp_process **sorted, int gpu)
{
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = sorted[i];
        const struct gp_device *device = &snapshot->devices[p->device];
        struct gp_proc_row *row = procs->count ? &procs->rows[procs->count - 1] : NULL;
        if (gpu >= 0 && device->index != (unsigned)gpu)
            continue;
        if (!row || row->pid != value_of(p, GP_PID)->i) {
            row = &procs->rows[procs->count++];
            start_row(row, p, snapshot->wall_ns);
            row->gpu = device->index;
        }
        add_gpu(row, device);
        add(&row->memory, p, GP_PROCESS_MEMORY);
        add(&row->sm, p, GP_PROCESS_SM);
        add(&row->mem, p, GP_PROCESS_MEM);
        add(&row->enc, p, GP_PROCESS_ENC);
        add(&row->dec, p, GP_PROCESS_DEC);
    }
}

static void add_unattributed(struct gp_procs *procs, const struct gp_snapshot *snapshot, int gpu)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        const struct gp_value *v = &device->values[GP_MEMORY_UNATTRIBUTED - GP_DEVICE__FIRST];
        if (!gp_value_is_present(v) || v->i < UNATTRIBUTED_LEAST ||
            (gpu >= 0 && device->index != (unsigned)gpu))
            continue;
        struct gp_proc_row *row = &procs->rows[procs->count++];
        *row = (struct gp_proc_row){.gpu = device->index,
                                    .command = "(no listed process accounts for it)",
                                    .memory = {(double)v->i, true},
                                    .age_s = -1};
        add_gpu(row, device);
    }
}

/* ---- choosing and sorting ---- */

static bool has_word(const char *text, const char *word, size_t n)
{
    for (const char *p = text ? text : ""; *p; p++)
        if (strncasecmp(p, word, n) == 0)
            return true;
    return false;
}

/* Whether the list of GPUs has this number: "1" is not "10", and is in "1:0". */
static bool has_gpu(const char *gpus, const char *word, size_t n)
{
    for (const char *p = gpus; *p;) {
        size_t m = strcspn(p, ",");
        if (strncmp(p, word, n) == 0 && (m == n || p[n] == ':'))
            return true;
        p += m + (p[m] == ',');
    }
    return false;
}

static bool matches_word(const struct gp_proc_row *row, const char *word, size_t n)
{
    char pid[24];
    (void)snprintf(pid, sizeof(pid), "%lld", (long long)row->pid);
    const struct {
        const char *name;
        const char *text;
    } fields[] = {
        {"user:", row->user}, {"pid:", pid}, {"cmd:", row->command}, {"type:", row->type}};
    if (n > 4 && strncmp(word, "gpu:", 4) == 0)
        return has_gpu(row->gpus, word + 4, n - 4);
    for (size_t i = 0; i < GP_ARRAY_LEN(fields); i++) {
        size_t m = strlen(fields[i].name);
        if (n > m && strncmp(word, fields[i].name, m) == 0)
            return has_word(fields[i].text, word + m, n - m);
    }
    return has_word(row->user, word, n) || has_word(row->command, word, n) ||
           has_word(pid, word, n);
}

bool gp_procs_matches(const struct gp_proc_row *row, const char *filter)
{
    for (const char *p = filter ? filter : ""; *p;) {
        size_t n = strcspn(p, " ");
        if (n > 0 && !matches_word(row, p, n))
            return false;
        p += n + (p[n] == ' ');
    }
    return true;
}

static double key_of(const struct gp_proc_row *row, enum gp_order order)
{
    switch (order) {
    case GP_ORDER_MEMORY:
        return row->memory.n;
    case GP_ORDER_SM:
        return row->sm.n;
    case GP_ORDER_CPU:
        return row->cpu.n;
    case GP_ORDER_RSS:
        return row->rss.n;
    case GP_ORDER_TIME:
        return row->age_s;
    case GP_ORDER_PID:
        return -(double)row->pid;
    case GP_ORDER_GPU:
        return -(double)row->gpu;
    default:
        return 0;
    }
}

static int compare_text(const char *a, const char *b)
{
    return strcasecmp(a ? a : "\x7f", b ? b : "\x7f");
}

/* Numbers: the greatest first, but pid and GPU; text by the alphabet. Equal ones by pid, so that
 * rows do not jump. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct gp_procs_options *options = ctx;
    const struct gp_proc_row *x = a;
    const struct gp_proc_row *y = b;
    double p = key_of(x, options->order);
    double q = key_of(y, options->order);
    int order = (p < q) - (p > q);
    if (options->order == GP_ORDER_USER)
        order = compare_text(x->user, y->user);
    if (options->order == GP_ORDER_COMMAND)
        order = compare_text(x->command, y->command);
    if (order != 0)
        return options->reversed ? -order : order;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

void gp_procs_fini(struct gp_procs *procs)
{
    free(procs->rows);
    *procs = (struct gp_procs){NULL, 0, 0};
}

int gp_procs_build(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                   const struct gp_procs_options *options)
{
    size_t most = snapshot->process_count + snapshot->device_count;
    const struct gp_process **sorted = calloc(snapshot->process_count + 1, sizeof(*sorted));
    gp_procs_fini(procs);
    procs->rows = calloc(most + 1, sizeof(*procs->rows));
    if (!sorted || !procs->rows) {
        free(sorted);
        gp_procs_fini(procs);
        return GP_ENOMEM;
    }
    for (size_t i = 0; i < snapshot->process_count; i++)
        sorted[i] = &snapshot->processes[i];
    qsort(sorted, snapshot->process_count, sizeof(*sorted), compare_pids);
    add_processes(procs, snapshot, sorted, options->gpu);
    add_unattributed(procs, snapshot, options->gpu);
    free(sorted);
    size_t kept = 0;
    for (size_t i = 0; i < procs->count; i++)
        if (gp_procs_matches(&procs->rows[i], options->filter))
            procs->rows[kept++] = procs->rows[i];
    procs->hidden = procs->count - kept;
    procs->count = kept;
    for (size_t i = 0; i < kept; i++)
        shorten(procs->rows[i].gpus);
    struct gp_procs_options order = *options;
    qsort_r(procs->rows, kept, sizeof(*procs->rows), compare_rows, &order);
    return 0;
}

/* ---- drawing ---- */

enum {
    COLUMN_PID,
    COLUMN_USER,
    COLUMN_GPU,
    COLUMN_TYPE,
    COLUMN_SM,
    COLUMN_MEM,
    COLUMN_MEMORY,
    COLUMN_ENC,
    COLUMN_DEC,
    COLUMN_CPU,
    COLUMN_RSS,
    COLUMN_TIME,
    COLUMN_COMMAND,
    COLUMN__COUNT,
};

static const struct gp_column columns[COLUMN__COUNT] = {
    [COLUMN_PID] = {"PID", 7, 0, 0, false},         [COLUMN_USER] = {"USER", 9, 3, 0, true},
    [COLUMN_GPU] = {"GPU", 5, 2, 0, false},         [COLUMN_TYPE] = {"T", 1, 8, 0, true},
    [COLUMN_SM] = {"SM%", 4, 4, 0, false},          [COLUMN_MEM] = {"MEM%", 4, 9, 0, false},
    [COLUMN_MEMORY] = {"GPU-MEM", 8, 1, 0, false},  [COLUMN_ENC] = {"ENC", 3, 12, 0, false},
    [COLUMN_DEC] = {"DEC", 3, 11, 0, false},        [COLUMN_CPU] = {"CPU%", 5, 6, 0, false},
    [COLUMN_RSS] = {"RSS", 5, 7, 0, false},         [COLUMN_TIME] = {"TIME", 6, 10, 0, false},
    [COLUMN_COMMAND] = {"COMMAND", 12, 5, 1, true},
};

const char *gp_order_title(enum gp_order order)
{
    static const char *const titles[] = {
#define X(id, title) title,
        GP_ORDERS(X)
#undef X
    };
    return titles[order];
}

static void format_bytes(char *out, size_t size, struct gp_amount amount)
{
    static const char *const units[] = {"K", "M", "G", "T"};
    double n = amount.n / 1024;
    size_t unit = 0;
    while (n >= 1000 && unit + 1 < GP_ARRAY_LEN(units)) {
        n /= 1024;
        unit++;
    }
    if (amount.known)
        (void)snprintf(out, size, n < 100 && unit > 1 ? "%.1f%s" : "%.0f%s", n, units[unit]);
    else
        (void)snprintf(out, size, "-");
}

static void format_number(char *out, size_t size, struct gp_amount amount)
{
    if (amount.known)
        (void)snprintf(out, size, "%.0f", amount.n);
    else
        (void)snprintf(out, size, "-");
}

static void format_age(char *out, size_t size, double age_s)
{
    long minutes = (long)(age_s / 60);
    if (age_s < 0)
        (void)snprintf(out, size, "-");
    else if (minutes < 1)
        (void)snprintf(out, size, "%lds", (long)age_s);
    else if (minutes < 100)
        (void)snprintf(out, size, "%ldm", minutes);
    else if (minutes < 48 * 60)
        (void)snprintf(out, size, "%ldh%02ldm", minutes / 60, minutes % 60);
    else
        (void)snprintf(out, size, "%ldd", minutes / 60 / 24);
}

/* The number that stands in a column; one that is not known where there is none. */
static struct gp_amount number_of(const struct gp_proc_row *row, int column)
{
    const struct gp_amount numbers[COLUMN__COUNT] = {
        [COLUMN_SM] = row->sm,   [COLUMN_MEM] = row->mem, [COLUMN_MEMORY] = row->memory,
        [COLUMN_ENC] = row->enc, [COLUMN_DEC] = row->dec, [COLUMN_CPU] = row->cpu,
        [COLUMN_RSS] = row->rss,
    };
    return numbers[column];
}

static bool is_old(const struct gp_proc_row *row, int column)
{
    return number_of(row, column).old;
}

static void format_cell(char *out, size_t size, const struct gp_proc_row *row, int column)
{
    const char *texts[COLUMN__COUNT] = {
        [COLUMN_USER] = row->user,
        [COLUMN_GPU] = row->gpus,
        [COLUMN_TYPE] = row->type,
    };
    if (column == COLUMN_PID && row->pid)
        (void)snprintf(out, size, "%lld", (long long)row->pid);
    else if (column == COLUMN_MEMORY || column == COLUMN_RSS)
        format_bytes(out, size, number_of(row, column));
    else if (column == COLUMN_TIME)
        format_age(out, size, row->age_s);
    else if (texts[column])
        (void)snprintf(out, size, "%s", texts[column]);
    else
        format_number(out, size, number_of(row, column));
}

static void draw_row(const struct gp_box *box, int y, const struct gp_column_place *places,
                     const struct gp_proc_row *row, int scroll)
{
    char text[96];
    for (int c = 0; c < COLUMN_COMMAND; c++) {
        if (!places[c].w)
            continue;
        format_cell(text, sizeof(text), row, c);
        enum gp_ink ink = is_old(row, c) ? GP_INK_STALE : GP_INK_PLAIN;
        if (columns[c].left)
            gp_draw_left(box, places[c].x, y, places[c].w, ink, text);
        else
            gp_draw_right(box, places[c].x, y, places[c].w, ink, text);
    }
    const struct gp_column_place *place = &places[COLUMN_COMMAND];
    const char *command = row->command ? row->command : "?";
    for (; scroll > 0 && *command; scroll--) {
        do
            command++;
        while ((*command & 0xc0) == 0x80);
    }
    if (place->w)
        gp_draw_left(box, place->x, y, place->w, row->pid ? GP_INK_PLAIN : GP_INK_DIM, command);
}

void gp_draw_procs(const struct gp_box *box, const struct gp_procs *procs,
                   const struct gp_procs_options *options, size_t first, size_t chosen, int scroll)
{
    struct gp_column_place places[COLUMN__COUNT];
    struct gp_box inner = gp_box_part(box, 1, 0, box->w - 2, box->h);
    gp_columns_place(columns, COLUMN__COUNT, inner.w, places);
    gp_draw_fill(box, 0, 0, box->w, GP_INK_TITLE, 0x2500);
    int x = gp_drawf(box, 1, 0, GP_INK_TITLE, " processes %zu", procs->count);
    if (procs->hidden)
        x = gp_drawf(box, x, 0, GP_INK_TITLE, " of %zu", procs->count + procs->hidden);
    if (options->gpu >= 0)
        x = gp_drawf(box, x, 0, GP_INK_TITLE, " · GPU %d", options->gpu);
    x = gp_drawf(box, x, 0, GP_INK_TITLE, " · sort %s%s", gp_order_title(options->order),
                 options->reversed ? "▲" : "▼");
    if (options->filter && *options->filter)
        x = gp_drawf(box, x, 0, GP_INK_TITLE, " · filter %s", options->filter);
    (void)gp_draw(box, x, 0, GP_INK_TITLE, " ");
    for (int c = 0; c < COLUMN__COUNT; c++) {
        if (places[c].w && columns[c].left)
            gp_draw_left(&inner, places[c].x, 1, places[c].w, GP_INK_TITLE, columns[c].title);
        else if (places[c].w)
            gp_draw_right(&inner, places[c].x, 1, places[c].w, GP_INK_TITLE, columns[c].title);
    }
    for (int y = 2; y < box->h && first + (size_t)y - 2 < procs->count; y++) {
        size_t row = first + (size_t)y - 2;
        draw_row(&inner, y, places, &procs->rows[row], scroll);
        if (row == chosen)
            gp_draw_ink(box, y, GP_INK_SELECTED);
    }
}
