#include "jobs/memory_use.h"

#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/account.h"
#include "model/snapshot.h"
#include "out/json.h"
#include "out/reservation.h"
#include "proc/holders.h"

#include <stdio.h>
#include <string.h>

enum {
    CONTEXT_MOST = 600 << 20, /* bytes: a process with more holds more than a context */
    JOB_COLUMNS = 40,         /* of the name of a reservation */
    COLUMN_COUNT = 6,         /* of numbers */
    USER_ROOM = 60,           /* a narrower screen has no room for the users of processes */
};

#define INDENT "       "

struct gp_want gp_memory_use_want(void)
{
    static const enum gp_metric of_processes[] = {
        GP_PID,          GP_UUID,         GP_MIG_PROFILE,     GP_PROCESS_MEMORY,
        GP_PROCESS_USER, GP_PROCESS_TYPE, GP_PROCESS_COMMAND, GP_PROCESS_SUSPENDED};
    struct gp_want want = {.mig = true, .processes = true, .process_names = true};
    gp_accounts_want(&want.metrics);
    gp_reservation_want(&want.metrics);
    for (size_t i = 0; i < GP_ARRAY_LEN(of_processes); i++)
        gp_metric_set_add(&want.metrics, of_processes[i]);
    return want;
}

int gp_memory_use_make(struct gp_memory_use *ret, const struct gp_snapshot *snapshot,
                       const struct gp_holders *holders)
{
    static const struct gp_holders none = {.list = NULL};
    const struct gp_procs_options rows = {
        .order = {{{GP_PROC_MEMORY_COLUMN, false}, {GP_PROC_PID_COLUMN, false}}, 2},
        .gpu = -1,
        .per_gpu = true,
    };
    *ret = (struct gp_memory_use){.snapshot = snapshot, .knows_holders = holders};
    int r = gp_accounts_make(snapshot, holders ? holders : &none, &ret->accounts, &ret->count);
    return r < 0 ? r : gp_procs_build(&ret->procs, snapshot, &rows);
}

void gp_memory_use_fini(struct gp_memory_use *use)
{
    gp_procs_fini(&use->procs);
    gp_accounts_free(use->accounts, use->count);
}

/* ---- text ---- */

struct view {
    const struct gp_memory_use *use;
    struct gp_strbuf *sb;
    size_t room, width; /* of a line, and of the names of GPUs */
    bool has_contexts;  /* some process may hold only a context */
    unsigned dropped;   /* columns that there is no room for: those with `drop` up to this */
};

/* Whether it uses about as much as a bare CUDA context; MPS clients have no context of their
 * own. */
static bool is_context(const struct gp_proc_row *row)
{
    return row->memory.known && row->memory.n > 0 && row->memory.n < CONTEXT_MOST && row->type &&
           strchr(row->type, 'C') && !strchr(row->type, 'M');
}

static bool is_of(const struct gp_proc_row *row, const struct gp_account *account)
{
    return row->pid != 0 && row->gpu == account->device->index;
}

/* Some verdicts do not depend on the processes. */
static bool has_verdict(const struct gp_memory_use *use, const struct gp_account *account)
{
    return use->knows_holders || account->verdict <= GP_ACCOUNT_UNKNOWN;
}

/* Rounded up, as by nvidia-smi and gpulse status. */
static void add_mib(struct gp_strbuf *sb, size_t width, struct gp_amount a)
{
    const double up = 0x1p20 - 1;
    if (a.known)
        gp_strbuf_addf(sb, "  %*lld", (int)width, (long long)((a.n + up) / 0x1p20));
    else
        gp_strbuf_addf(sb, "  %*s", (int)width, "-");
}

/* A line, cut at the width of the terminal. */
static void add_process(const struct view *v, const struct gp_proc_row *row)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 20);
    gp_strbuf_addf(&line, "%5s  %7lld", strchr(row->gpus, ':') ? row->gpus : "",
                   (long long)row->pid);
    if (v->room == 0 || v->room >= USER_ROOM)
        gp_strbuf_addf(&line, "  %-10.10s", row->user ? row->user : "-");
    add_mib(&line, 8, row->memory);
    if (v->has_contexts)
        gp_strbuf_addf(&line, "  %-7s", is_context(row) ? "context" : "");
    gp_strbuf_adds(&line, "  ");
    if (row->suspended.known)
        gp_strbuf_addf(&line, "(suspended: %.0f MiB in host memory) ", row->suspended.n / 0x1p20);
    gp_strbuf_adds(&line, row->command ? row->command : "?");
    gp_utf8_add_line(v->sb, line.buf, line.len, v->room);
    gp_strbuf_fini(&line);
}

/* A line for each reservation of the GPU and of its instances, whose rows follow. */
static void add_reservations(const struct view *v, const struct gp_device *gpu)
{
    const struct gp_device *end = &v->use->snapshot->devices[v->use->snapshot->device_count];
    for (const struct gp_device *d = gpu; d < end && d->index == gpu->index; d++) {
        char instance[GP_DEVICE_LABEL_SIZE] = "";
        if (!gp_is_reserved(d))
            continue;
        if (d->is_mig)
            gp_device_label(d, instance);
        struct gp_strbuf line = GP_STRBUF_INIT(1 << 12);
        gp_strbuf_addf(&line, "%5s  ", instance);
        gp_reservation_add(&line, d, JOB_COLUMNS);
        gp_utf8_add_line(v->sb, line.buf, line.len, v->room);
        gp_strbuf_fini(&line);
    }
}

static const struct {
    const char *title;
    size_t width, offset;
    unsigned drop; /* the order in which columns are left out on a narrow screen; 0: never */
} columns[COLUMN_COUNT] = {
    {"TOTAL", 6, offsetof(struct gp_account, total), 4},
    {"RESERVED", 8, offsetof(struct gp_account, reserved), 1},
    {"USED", 6, offsetof(struct gp_account, used), 0},
    {"FREE", 6, offsetof(struct gp_account, free), 0},
    {"PROCESSES", 9, offsetof(struct gp_account, listed), 2},
    {"UNATTRIBUTED", 12, offsetof(struct gp_account, rest), 3},
};

static bool is_shown(const struct view *v, size_t column)
{
    return columns[column].drop == 0 || columns[column].drop > v->dropped;
}

/* A name that is too long is shortened, first by its maker. */
static void add_name(struct gp_strbuf *sb, const char *name, size_t width)
{
    static const char maker[] = "NVIDIA ";
    bool fits = gp_utf8_width(name) <= width;
    if (!fits && strncmp(name, maker, strlen(maker)) == 0)
        name += strlen(maker);
    size_t before = sb->len;
    gp_utf8_add_safe(sb, name, strlen(name), width);
    size_t used = sb->error ? width : gp_utf8_width(sb->buf + before);
    gp_strbuf_fill(sb, ' ', used < width ? width - used : 0);
}

static void add_processes(const struct view *v, const struct gp_account *account,
                          const char *instance)
{
    for (size_t i = 0; i < v->use->procs.count; i++) {
        const struct gp_proc_row *row = &v->use->procs.rows[i];
        bool is_here = instance ? strcmp(row->gpus, instance) == 0 : !strchr(row->gpus, ':');
        if (is_of(row, account) && is_here)
            add_process(v, row);
    }
}

static struct gp_amount amount_of(const struct gp_device *device, enum gp_metric m)
{
    const struct gp_value *v = &device->values[m - GP_DEVICE__FIRST];
    bool known = gp_value_is_present(v);
    return (struct gp_amount){known ? (double)v->i : 0, known, false};
}

/* The instances of a GPU in MIG mode, each with its processes. */
static void add_instances(const struct view *v, const struct gp_account *account)
{
    const struct gp_device *end = &v->use->snapshot->devices[v->use->snapshot->device_count];
    for (const struct gp_device *d = account->device + 1; d < end && d->is_mig; d++) {
        char label[GP_DEVICE_LABEL_SIZE], name[64];
        gp_device_label(d, label);
        (void)snprintf(name, sizeof(name), "MIG %.40s", gp_device_text(d, GP_MIG_PROFILE, "?"));
        gp_strbuf_addf(v->sb, "%5s  ", label);
        add_name(v->sb, name, v->width);
        const struct gp_account whole = {.device = d,
                                         .total = amount_of(d, GP_MEMORY_TOTAL),
                                         .reserved = amount_of(d, GP_MEMORY_RESERVED),
                                         .used = amount_of(d, GP_MEMORY_USED),
                                         .free = amount_of(d, GP_MEMORY_FREE)};
        const struct gp_account shown = gp_account_in_mib(&whole);
        const struct gp_amount parts[] = {shown.total, shown.reserved, shown.used, shown.free};
        for (size_t c = 0; c < GP_ARRAY_LEN(parts); c++)
            if (is_shown(v, c))
                add_mib(v->sb, columns[c].width, parts[c]);
        gp_strbuf_addc(v->sb, '\n');
        add_processes(v, account, label);
    }
}

static void add_account(const struct view *v, const struct gp_account *account)
{
    struct gp_strbuf *sb = v->sb;
    const struct gp_account shown = gp_account_in_mib(account);
    gp_strbuf_addf(sb, "%5u  ", account->device->index);
    add_name(sb, gp_device_text(account->device, GP_NAME, "?"), v->width);
    for (size_t c = 0; c < GP_ARRAY_LEN(columns); c++) {
        struct gp_amount a;
        memcpy(&a, (const char *)&shown + columns[c].offset, sizeof(a));
        if (is_shown(v, c))
            add_mib(sb, columns[c].width, a);
    }
    gp_strbuf_addc(sb, '\n');
    add_processes(v, account, NULL);
    add_instances(v, account);
    add_reservations(v, account->device);
    struct gp_strbuf words = GP_STRBUF_INIT(1 << 12);
    if (account->verdict == GP_ACCOUNT_NO_ANSWER)
        gp_strbuf_adds(&words, gp_device_trouble(account->device));
    else if (has_verdict(v->use, account) && account->verdict != GP_ACCOUNT_ACCOUNTED)
        gp_account_add_verdict(&words, account);
    if (words.len > 0) {
        gp_strbuf_adds(sb, INDENT);
        gp_utf8_add_wrapped(sb, words.buf, words.len, strlen(INDENT), v->room);
    }
    gp_strbuf_fini(&words);
}

static const char name_title[] = "NAME (MiB)";

static size_t numbers_width(const struct view *v)
{
    size_t width = strlen("  GPU  ");
    for (size_t c = 0; c < COLUMN_COUNT; c++)
        width += is_shown(v, c) ? columns[c].width + 2 : 0;
    return width;
}

/* Leaves out columns until a line fits. */
static void choose_columns(struct view *v)
{
    const size_t least = strlen(name_title);
    while (v->room > 0 && v->dropped < COLUMN_COUNT && numbers_width(v) + least > v->room)
        v->dropped++;
}

/* Columns for the names: what the longest one needs, but no line is wider than the terminal. */
static size_t name_width(const struct view *v)
{
    const size_t least = strlen(name_title);
    size_t width = least;
    const size_t others = numbers_width(v);
    const size_t room = v->room;
    for (size_t i = 0; i < v->use->count; i++) {
        size_t n = gp_utf8_width(gp_device_text(v->use->accounts[i].device, GP_NAME, "?"));
        width = n > width ? n : width;
    }
    if (room == 0 || others + width <= room)
        return width;
    return room > others + least ? room - others : least;
}

static const char context_note[] = "context: holds about as much as a CUDA context alone, 0.3 to 1 "
                                   "GiB per process and GPU";

void gp_memory_use_add(struct gp_strbuf *sb, const struct gp_memory_use *use, size_t room)
{
    struct view v = {.use = use, .sb = sb, .room = room};
    choose_columns(&v);
    v.width = name_width(&v);
    for (size_t i = 0; i < use->procs.count; i++)
        v.has_contexts = v.has_contexts || is_context(&use->procs.rows[i]);
    gp_strbuf_adds(sb, "  GPU  ");
    gp_utf8_add_padded(sb, name_title, v.width, false);
    for (size_t c = 0; c < COLUMN_COUNT; c++)
        if (is_shown(&v, c))
            gp_strbuf_addf(sb, "  %*s", (int)columns[c].width, columns[c].title);
    gp_strbuf_addc(sb, '\n');
    for (size_t i = 0; i < use->count; i++)
        add_account(&v, &use->accounts[i]);
    if (v.has_contexts)
        gp_utf8_add_wrapped(sb, context_note, strlen(context_note), 0, room);
}

/* ---- JSON ---- */

static json_t *process_object(const struct gp_proc_row *row)
{
    const char *colon = strchr(row->gpus, ':');
    bool context = is_context(row);
    uint64_t instance = 0;
    bool is_mig = colon && gp_parse_u64(colon + 1, &instance);
    return json_pack("{s:I, s:s?, s:s?, s:s?, s:o, s:o, s:o, s:b}", "pid", (json_int_t)row->pid,
                     "user", row->user, "command", row->command, "type", row->type, "instance",
                     is_mig ? json_integer((json_int_t)instance) : json_null(), "memory",
                     gp_account_number(row->memory), "suspended", gp_account_number(row->suspended),
                     "context", context ? 1 : 0);
}

static json_t *account_object(const struct gp_memory_use *use, const struct gp_account *a)
{
    struct gp_strbuf words = GP_STRBUF_INIT(4096);
    json_t *processes = json_array();
    for (size_t i = 0; i < use->procs.count; i++)
        if (is_of(&use->procs.rows[i], a))
            (void)json_array_append_new(processes, process_object(&use->procs.rows[i]));
    bool has_words = has_verdict(use, a);
    if (has_words)
        gp_account_add_verdict(&words, a);
    json_t *object =
        json_pack("{s:i, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:s?, s:o}", "gpu",
                  (int)a->device->index, "uuid", gp_device_text(a->device, GP_UUID, NULL), "name",
                  gp_device_text(a->device, GP_NAME, NULL), "total", gp_account_number(a->total),
                  "reserved", gp_account_number(a->reserved), "used", gp_account_number(a->used),
                  "free", gp_account_number(a->free), "held", gp_account_number(a->listed),
                  "unattributed", gp_account_number(a->rest), "verdict",
                  has_words ? gp_account_verdict_word(a->verdict) : NULL, "text",
                  has_words ? words.buf : NULL, "processes", processes);
    (void)json_object_set_new(object, "reservation", gp_reservation_object(a->device));
    gp_strbuf_fini(&words);
    return object;
}

void gp_memory_use_add_json(struct gp_strbuf *sb, const struct gp_memory_use *use)
{
    json_t *document = gp_json_document(use->snapshot, "gpulse.mem/1");
    json_t *gpus = json_array();
    for (size_t i = 0; i < use->count; i++)
        (void)json_array_append_new(gpus, account_object(use, &use->accounts[i]));
    (void)json_object_set_new(document, "gpus", gpus);
    (void)json_object_set_new(document, "reservations", gp_reservation_list(use->snapshot));
    gp_json_set_incomplete(document, use->snapshot);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}
