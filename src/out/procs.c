#include "out/procs.h"

#include "base/cli.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/digits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct gp_proc_column_info gp_proc_column_table[GP_PROC_COLUMN__COUNT] = {
#define X(id, word, title, width, rank, grows, left, kind, field, shown, help)                     \
    [GP_PROC_##id##_COLUMN] = {                                                                    \
        word, title, help, GP_PROC_KIND_##kind, offsetof(struct gp_proc_row, field), shown, rank},
    GP_PROC_COLUMNS(X)
#undef X
};

/* How many GPUs it uses; 1 if none. */
static int count_gpus(const struct gp_proc_row *row)
{
    int count = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(row->gpu_bits); i++)
        count += __builtin_popcountll(row->gpu_bits[i]);
    return count > 0 ? count : 1;
}

/* Whether it is a percentage of one GPU, of which a row has the sum over its GPUs. */
static bool is_of_gpu(enum gp_proc_column column)
{
    return column == GP_PROC_SM_COLUMN || column == GP_PROC_MEM_COLUMN ||
           column == GP_PROC_ENC_COLUMN || column == GP_PROC_DEC_COLUMN;
}

struct gp_amount gp_proc_amount(const struct gp_proc_row *row, enum gp_proc_column column)
{
    const struct gp_proc_column_info *info = &gp_proc_column_table[column];
    const void *field = (const char *)row + info->offset;
    if (info->kind == GP_PROC_KIND_PID) {
        int64_t pid = *(const int64_t *)field;
        return (struct gp_amount){(double)pid, pid > 0, false};
    }
    if (info->kind == GP_PROC_KIND_TEXT || info->kind == GP_PROC_KIND_GPU)
        return (struct gp_amount){0};
    struct gp_amount amount = *(const struct gp_amount *)field;
    if (is_of_gpu(column))
        amount.n /= count_gpus(row);
    return amount;
}

const char *gp_proc_text(const struct gp_proc_row *row, enum gp_proc_column column)
{
    const struct gp_proc_column_info *info = &gp_proc_column_table[column];
    if (info->kind == GP_PROC_KIND_GPU)
        return row->gpus;
    if (info->kind != GP_PROC_KIND_TEXT)
        return NULL;
    const void *field = (const char *)row + info->offset;
    return *(const char *const *)field;
}

/* ---- rows ---- */

static const char *text_of(const struct gp_process *process, enum gp_metric m)
{
    const struct gp_value *v = gp_process_value(process, m);
    return gp_value_is_present(v) ? v->s : NULL;
}

static int64_t pid_of(const struct gp_process *process, enum gp_metric m)
{
    const struct gp_value *v = gp_process_value(process, m);
    return gp_value_is_present(v) ? v->i : 0;
}

static void add(struct gp_amount *amount, const struct gp_process *process, enum gp_metric m)
{
    const struct gp_value *v = gp_process_value(process, m);
    if (!gp_value_is_present(v))
        return;
    amount->n += gp_metric_number(m, v);
    amount->known = true;
    amount->old = amount->old || v->status == GP_STATUS_STALE;
}

/* Seconds from an RFC 3339 time to the snapshot. */
static struct gp_amount age_of(const char *start, uint64_t wall_ns)
{
    uint64_t start_ns;
    if (!start || !gp_clock_parse_rfc3339(start, &start_ns))
        return (struct gp_amount){0};
    double age_s = wall_ns > start_ns ? (double)(wall_ns - start_ns) / 1e9 : 0;
    return (struct gp_amount){age_s, true, false};
}

const char *gp_procs_job_id(const char *container)
{
    static const char *const schedulers[] = {"slurm:", "pbs:"};
    for (size_t i = 0; container && i < GP_ARRAY_LEN(schedulers); i++)
        if (strncmp(container, schedulers[i], strlen(schedulers[i])) == 0)
            return container + strlen(schedulers[i]);
    return NULL;
}

void gp_proc_row_init(struct gp_proc_row *row, const struct gp_process *p, uint64_t wall_ns)
{
    *row = (struct gp_proc_row){
        .pid = gp_process_value(p, GP_PID)->i,
        .user = text_of(p, GP_PROCESS_USER),
        .command = text_of(p, GP_PROCESS_COMMAND),
        .type = text_of(p, GP_PROCESS_TYPE),
        .state = text_of(p, GP_PROCESS_STATE),
        .start = text_of(p, GP_PROCESS_START),
        .container = text_of(p, GP_PROCESS_CONTAINER),
        .job = gp_procs_job_id(text_of(p, GP_PROCESS_CONTAINER)),
        .container_name = text_of(p, GP_PROCESS_CONTAINER_NAME),
        .origin = text_of(p, GP_PROCESS_ORIGIN),
        .cwd = text_of(p, GP_PROCESS_CWD),
        .ppid = pid_of(p, GP_PROCESS_PPID),
        .ns_pid = pid_of(p, GP_PROCESS_NS_PID),
        .session = pid_of(p, GP_PROCESS_SESSION),
    };
    static const struct {
        enum gp_proc_column column;
        enum gp_metric metric;
    } guarded[] = {
        {GP_PROC_COMMAND_COLUMN, GP_PROCESS_COMMAND},
        {GP_PROC_CONTAINER_COLUMN, GP_PROCESS_CONTAINER},
        {GP_PROC_ORIGIN_COLUMN, GP_PROCESS_ORIGIN},
        {GP_PROC_CWD_COLUMN, GP_PROCESS_CWD},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(guarded); i++)
        if (gp_process_value(p, guarded[i].metric)->status == GP_STATUS_NO_PERMISSION)
            row->denied |= 1U << guarded[i].column;
    row->age_s = age_of(row->start, wall_ns);
    add(&row->cpu, p, GP_PROCESS_CPU);
    add(&row->rss, p, GP_PROCESS_RSS);
}

/* Of several GPUs, the one that was used last counts. If that is unknown for one of them, the
 * process may be busy there. */
static void add_idle(struct gp_proc_row *row, const struct gp_process *p)
{
    const struct gp_value *idle = gp_process_value(p, GP_PROCESS_IDLE);
    const bool is_known = gp_value_is_present(idle);
    const bool is_least = !gp_value_is_present(gp_process_value(p, GP_PROCESS_LAST_ACTIVE));
    const bool is_first = row->idle_gpus++ == 0;
    if (!is_known || (!is_first && !row->idle_s.known)) {
        row->idle_s = (struct gp_amount){0};
        return;
    }
    bool is_old = row->idle_s.old || idle->status == GP_STATUS_STALE;
    if (is_first || idle->f < row->idle_s.n) {
        row->idle_s = (struct gp_amount){idle->f, true, false};
        row->idle_is_least = is_least;
    }
    row->idle_s.old = is_old;
}

/* Unknown if that of one of its GPUs is. */
static void add_share(struct gp_proc_row *row, const struct gp_process *p,
                      const struct gp_device *device, bool is_first)
{
    const struct gp_value *total = &device->values[GP_MEMORY_TOTAL - GP_DEVICE__FIRST];
    const bool is_known = gp_value_is_present(gp_process_value(p, GP_PROCESS_MEMORY)) &&
                          gp_value_is_present(total) && total->i > 0;
    if (!is_known || (!is_first && row->total <= 0)) {
        row->total = 0;
        row->share = (struct gp_amount){0};
        return;
    }
    row->total += (double)total->i;
    row->share = (struct gp_amount){row->memory.n / row->total * 100, true, row->memory.old};
}

/* Adds the processes as rows, sorted by pid. */
void gp_proc_row_add_use(struct gp_proc_row *row, const struct gp_process *process,
                         const struct gp_device *device)
{
    const bool is_first = !*row->gpus;
    gp_proc_row_add_gpu(row, device);
    add(&row->memory, process, GP_PROCESS_MEMORY);
    add_share(row, process, device, is_first);
    add(&row->suspended, process, GP_PROCESS_SUSPENDED);
    add(&row->sm, process, GP_PROCESS_SM);
    add(&row->mem, process, GP_PROCESS_MEM);
    add(&row->enc, process, GP_PROCESS_ENC);
    add(&row->dec, process, GP_PROCESS_DEC);
    add_idle(row, process);
}

void gp_proc_row_init_reserved(struct gp_proc_row *row, const struct gp_device *device,
                               uint64_t wall_ns)
{
    const char *since = gp_device_text(device, GP_RESERVATION_SINCE, NULL);
    *row = (struct gp_proc_row){
        .is_reserved = true,
        .reserved_by = device->reserved_by,
        .user = gp_device_text(device, GP_RESERVATION_USER, NULL),
        .command = gp_device_text(device, GP_RESERVATION_NAME, NULL),
        .start = since,
        .age_s = age_of(since, wall_ns),
    };
    gp_proc_row_add_gpu(row, device);
}

const char *gp_proc_row_prefix(const struct gp_proc_row *row)
{
    return row->is_reserved ? "(reserved) " : "";
}

/* ---- filtering ---- */

static bool has_text(const char *text, const char *word, size_t n)
{
    for (const char *p = text ? text : ""; *p; p++)
        if (strncasecmp(p, word, n) == 0)
            return true;
    return false;
}

static bool is_text(const char *text, const char *word, size_t n)
{
    return text && strlen(text) == n && strncasecmp(text, word, n) == 0;
}

bool gp_proc_row_uses_any(const struct gp_proc_row *row)
{
    return *row->gpus && !row->below;
}

bool gp_proc_row_uses(const struct gp_proc_row *row, unsigned gpu)
{
    return gpu < GP_PROC_GPUS && row->gpu_bits[gpu / 64] >> gpu % 64 & 1;
}

/* "1" matches the GPU and all of its instances, "1-3" a range of GPUs, "1:0" an instance. */
static bool has_gpu(const struct gp_proc_row *row, const char *word, size_t n)
{
    char *end;
    unsigned long first = strtoul(word, &end, 10);
    unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
    if (end == word + n) {
        bool uses = false;
        for (unsigned long gpu = first; gpu <= last && gpu < GP_PROC_GPUS; gpu++)
            uses = uses || gp_proc_row_uses(row, (unsigned)gpu);
        return uses;
    }
    for (const char *p = row->gpus; *p;) {
        size_t m = strcspn(p, ",+");
        if (m == n && strncmp(p, word, n) == 0)
            return true;
        p += m + (p[m] != '\0');
    }
    return false;
}

/* "4711" and "4711.0" match the job "4711.0". */
static bool is_job(const char *job, const char *word, size_t n)
{
    return job && strncasecmp(job, word, n) == 0 && (job[n] == '\0' || job[n] == '.');
}

enum {
    FIELD_USER,
    FIELD_PID,
    FIELD_NS_PID,
    FIELD_COMMAND,
    FIELD_TYPE,
    FIELD_CONTAINER,
    FIELD_JOB,
    FIELD_GPU,
    FIELD__COUNT
};

static const char *const field_names[FIELD__COUNT] = {"user", "pid",       "ns_pid", "cmd",
                                                      "type", "container", "job",    "gpu"};

/* Finds the field prefix of a word, if there is one. */
static int find_field(const char *word, size_t n, size_t *ret_n)
{
    *ret_n = strcspn(word, ":=");
    for (int i = 0; *ret_n < n && i < FIELD__COUNT; i++)
        if (strlen(field_names[i]) == *ret_n && strncmp(word, field_names[i], *ret_n) == 0)
            return i;
    return FIELD__COUNT;
}

int gp_procs_check_filter(const char *filter, struct gp_err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    for (const char *p = filter; *p;) {
        size_t n = strcspn(p, " ");
        size_t m = strspn(p, letters);
        size_t field;
        if (m > 0 && m < n && (p[m] == ':' || p[m] == '=') && p[m + 1] != '/' &&
            find_field(p, n, &field) == FIELD__COUNT)
            return gp_err_set(err, GP_EUSAGE,
                              "unknown field '%.*s'; known: user pid ns_pid cmd type container job "
                              "gpu; to search for it as text: cmd:%.*s",
                              (int)(m < 40 ? m : 40), p, (int)(n < 80 ? n : 80), p);
        p += n + (p[n] == ' ');
    }
    return 0;
}

static bool matches_word(const struct gp_proc_row *row, const char *word, size_t n)
{
    char pid[24];
    char ns_pid[24];
    size_t m;
    (void)snprintf(pid, sizeof(pid), "%lld", (long long)row->pid);
    (void)snprintf(ns_pid, sizeof(ns_pid), "%lld", (long long)row->ns_pid);
    const char *const texts[FIELD__COUNT] = {
        [FIELD_USER] = row->user, [FIELD_PID] = pid,
        [FIELD_NS_PID] = ns_pid,  [FIELD_COMMAND] = row->command,
        [FIELD_TYPE] = row->type, [FIELD_CONTAINER] = row->container,
    };
    int field = find_field(word, n, &m);
    if (field == FIELD__COUNT || m + 1 == n)
        return has_text(row->user, word, n) || has_text(row->command, word, n) ||
               has_text(pid, word, n);
    bool whole = word[m] == '=' || field == FIELD_NS_PID;
    for (const char *p = word + m + 1; p < word + n;) { /* alternatives, separated by commas */
        size_t left = (size_t)(word + n - p);
        size_t length = strcspn(p, ", ");
        length = length > left ? left : length;
        if (length > 0 && field == FIELD_CONTAINER &&
            (whole ? is_text : has_text)(row->container_name, p, length))
            return true;
        if (length > 0 && (field == FIELD_GPU   ? has_gpu(row, p, length)
                           : field == FIELD_JOB ? is_job(row->job, p, length)
                           : whole              ? is_text(texts[field], p, length)
                                                : has_text(texts[field], p, length)))
            return true;
        p += length + 1;
    }
    return false;
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

/* ---- sorting ---- */

/* What rows are compared by; only whether there is one, for texts. Unattributed memory has pid 0,
 * and sorts before all pids. */
static struct gp_amount key_of(const struct gp_proc_row *row, enum gp_proc_column column)
{
    switch (gp_proc_column_table[column].kind) {
    case GP_PROC_KIND_TEXT:
        return (struct gp_amount){0, gp_proc_text(row, column) != NULL, false};
    case GP_PROC_KIND_GPU:
        return (struct gp_amount){(double)row->gpu, true, false};
    default: {
        struct gp_amount amount = gp_proc_amount(row, column);
        amount.known = amount.known || column == GP_PROC_PID_COLUMN;
        return amount;
    }
    }
}

/* Amounts: the largest first. */
static int compare_by(const struct gp_proc_row *x, const struct gp_proc_row *y,
                      enum gp_proc_column column, double p, double q)
{
    enum gp_proc_kind kind = gp_proc_column_table[column].kind;
    if (kind == GP_PROC_KIND_TEXT)
        return strcasecmp(gp_proc_text(x, column), gp_proc_text(y, column));
    int order = (p > q) - (p < q);
    return kind == GP_PROC_KIND_GPU || kind == GP_PROC_KIND_PID ? order : -order;
}

/* Unknown values come last in both directions. Ties are broken by pid, so that rows do not jump. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct gp_proc_order *order = ctx;
    const struct gp_proc_row *x = a;
    const struct gp_proc_row *y = b;
    for (size_t i = 0; i < order->count; i++) {
        enum gp_proc_column column = order->by[i].column;
        struct gp_amount p = i == 0 ? x->key : key_of(x, column);
        struct gp_amount q = i == 0 ? y->key : key_of(y, column);
        int by = p.known && q.known ? compare_by(x, y, column, p.n, q.n) : 0;
        if (p.known != q.known)
            return p.known ? -1 : 1;
        if (by != 0)
            return order->by[i].reversed ? -by : by;
    }
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

/* ---- words ---- */

static const char *next_column(const void *context, size_t i)
{
    (void)context;
    return i < GP_PROC_COLUMN__COUNT ? gp_proc_column_table[i].word : NULL;
}

/* By its word or its title; "mem" is short for memory. */
static int find_column(const char *word, size_t n, enum gp_proc_column *ret, struct gp_err *err)
{
    char name[80];
    const size_t sign = n > 1 && *word == '%'; /* ps(1): --sort=-%mem */
    n -= sign;
    (void)snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name)),
                   word + sign);
    const char *wanted = strcasecmp(name, "mem") == 0 ? "memory" : name;
    for (int i = 0; i < GP_PROC_COLUMN__COUNT; i++)
        if (strcasecmp(gp_proc_column_table[i].word, wanted) == 0 ||
            strcasecmp(gp_proc_column_table[i].title, wanted) == 0) {
            *ret = (enum gp_proc_column)i;
            return 0;
        }
    return gp_err_set(err, GP_EUSAGE, "unknown column '%s'%s; --columns help lists all", name,
                      gp_cli_hint(name, next_column, NULL).text);
}

int gp_proc_order_parse(const char *text, struct gp_proc_order *ret, struct gp_err *err)
{
    struct gp_proc_order order = {.count = 0};
    while (*text) {
        struct gp_proc_sort sort = {.reversed = *text == '-'};
        text += sort.reversed;
        size_t n = strcspn(text, ",");
        int r = find_column(text, n, &sort.column, err);
        if (r < 0)
            return r;
        if (order.count < GP_PROC_SORTS)
            order.by[order.count++] = sort;
        text += n + (text[n] == ',');
    }
    *ret = order;
    return 0;
}

void gp_proc_order_format(struct gp_strbuf *sb, const struct gp_proc_order *order)
{
    for (size_t i = 0; i < order->count; i++)
        gp_strbuf_addf(sb, "%s%s%s", i > 0 ? "," : "", order->by[i].reversed ? "-" : "",
                       gp_proc_column_table[order->by[i].column].word);
}

void gp_proc_order_put(struct gp_proc_order *order, enum gp_proc_column column)
{
    struct gp_proc_order grown = {.by = {{.column = column}}, .count = 1};
    for (size_t i = 0; i < order->count && grown.count < GP_PROC_SORTS; i++)
        if (order->by[i].column != column)
            grown.by[grown.count++] = order->by[i];
    *order = grown;
}

void gp_proc_columns_add_help(struct gp_strbuf *sb)
{
    for (int i = 0; i < GP_PROC_COLUMN__COUNT; i++)
        gp_strbuf_addf(sb, "%-14s  %s\n", gp_proc_column_table[i].word,
                       gp_proc_column_table[i].help);
}

int gp_proc_columns_parse(const char *text, enum gp_proc_column *ret, size_t *ret_count,
                          struct gp_err *err)
{
    size_t count = 0;
    for (int i = 0; !*text && i < GP_PROC_COLUMN__COUNT; i++)
        if (gp_proc_column_table[i].is_default)
            ret[count++] = (enum gp_proc_column)i;
    while (*text && count < GP_PROC_COLUMN__COUNT) {
        size_t n = strcspn(text, ",");
        int r = find_column(text, n, &ret[count++], err);
        if (r < 0)
            return r;
        text += n + (text[n] == ',');
    }
    *ret_count = count;
    return 0;
}

/* ---- values ---- */

static void add_bytes(struct gp_strbuf *sb, double bytes)
{
    static const char *const units[] = {"K", "M", "G", "T"};
    double n = bytes / 1024;
    size_t unit = 0;
    while (n >= 1000 && unit + 1 < GP_ARRAY_LEN(units)) {
        n /= 1024;
        unit++;
    }
    if (n < 100 && unit > 1)
        gp_add_tenths(sb, n);
    else
        gp_add_whole(sb, n);
    gp_strbuf_adds(sb, units[unit]);
}

static void add_age(struct gp_strbuf *sb, double age_s)
{
    long minutes = (long)(age_s / 60);
    if (minutes >= 100 && minutes < 48 * 60) {
        gp_strbuf_addf(sb, "%ldh%02ldm", minutes / 60, minutes % 60);
        return;
    }
    gp_strbuf_add_int(sb, minutes < 1 ? (long)age_s : minutes < 100 ? minutes : minutes / 60 / 24);
    gp_strbuf_addc(sb, minutes < 1 ? 's' : minutes < 100 ? 'm' : 'd');
}

void gp_proc_format_amount(struct gp_strbuf *sb, enum gp_proc_column column,
                           struct gp_amount amount)
{
    enum gp_proc_kind kind = gp_proc_column_table[column].kind;
    if (!amount.known) {
        gp_strbuf_addc(sb, '-');
    } else if (kind == GP_PROC_KIND_BYTES) {
        add_bytes(sb, amount.n);
    } else if (kind == GP_PROC_KIND_AGE) {
        add_age(sb, amount.n);
    } else {
        gp_add_whole(sb, amount.n);
    }
}

static void add_least(struct gp_strbuf *sb, struct gp_amount amount)
{
    gp_strbuf_adds(sb, "≥");
    add_age(sb, amount.n);
}

void gp_proc_format(struct gp_strbuf *sb, const struct gp_proc_row *row, enum gp_proc_column column)
{
    enum gp_proc_kind kind = gp_proc_column_table[column].kind;
    const char *text = gp_proc_text(row, column);
    if (kind == GP_PROC_KIND_TEXT || kind == GP_PROC_KIND_GPU)
        gp_strbuf_adds(sb, text && *text               ? text
                           : row->denied >> column & 1 ? "(not permitted)"
                                                       : "-");
    else if (column == GP_PROC_PID_COLUMN && row->reserved_by > 0)
        gp_strbuf_addf(sb, "%" PRIu32, row->reserved_by);
    else if (column == GP_PROC_IDLE_COLUMN && row->idle_s.known && row->idle_is_least)
        add_least(sb, row->idle_s);
    else
        gp_proc_format_amount(sb, column, gp_proc_amount(row, column));
}

/* ---- lists ---- */

bool gp_procs_has_pid(const int64_t *pids, size_t count, int64_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

void gp_procs_fini(struct gp_procs *procs)
{
    free(procs->rows);
    free(procs->by_pid);
    *procs = (struct gp_procs){.rows = NULL};
}

void gp_procs_filter(struct gp_procs *procs, const char *filter)
{
    size_t kept = 0;
    for (size_t i = 0; i < procs->count; i++)
        if (gp_procs_matches(&procs->rows[i], filter))
            procs->rows[kept++] = procs->rows[i];
    procs->hidden = procs->count - kept;
    procs->count = kept;
    for (size_t i = 0; i < kept; i++)
        procs->reserved += procs->rows[i].is_reserved;
}

void gp_procs_sort(struct gp_procs *procs, const struct gp_proc_order *order)
{
    struct gp_proc_order copy = *order;
    for (size_t i = 0; order->count > 0 && i < procs->count; i++)
        procs->rows[i].key = key_of(&procs->rows[i], order->by[0].column);
    if (procs->count > 0)
        qsort_r(procs->rows, procs->count, sizeof(*procs->rows), compare_rows, &copy);
}
