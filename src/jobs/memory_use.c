#include "jobs/memory_use.h"

#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/account.h"
#include "model/snapshot.h"
#include "out/columns.h"
#include "out/json.h"
#include "out/reservation.h"
#include "proc/holders.h"

#include <stdio.h>
#include <string.h>

enum {
    CONTEXT_MOST = 600 << 20, /* bytes: a process with more holds more than a context */
    JOB_COLUMNS = 40,         /* of the name of a reservation */
    MIB_SIZE = 24,            /* of a number as text */
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
    size_t room, width;                 /* of a line, and of the names of GPUs */
    uint32_t shown, shown_of_processes; /* columns */
};

enum { TOTAL, RESERVED, USED, FREE, PROCESSES, UNATTRIBUTED, NUMBER_COUNT };

/* After the name of the GPU. */
static const struct gp_text_column columns[NUMBER_COUNT] = {
    [TOTAL] = {"TOTAL", 6, .drop = 4},
    [RESERVED] = {"RESERVED", 8, .drop = 1},
    [USED] = {"USED", 6},
    [FREE] = {"FREE", 6},
    [PROCESSES] = {"PROCESSES", 9, .drop = 2},
    [UNATTRIBUTED] = {"UNATTRIBUTED", 12, .drop = 3},
};

enum { INSTANCE, PID, USER, MEMORY, CONTEXT, COMMAND, PROCESS_COLUMN_COUNT };

/* They have no titles: below, there is the next GPU. */
static const struct gp_text_column process_columns[PROCESS_COLUMN_COUNT] = {
    [INSTANCE] = {"", 5},
    [PID] = {"", 7},
    [USER] = {"", 10, .drop = 1, .is_left = true},
    [MEMORY] = {"", 8},
    [CONTEXT] = {"", 7, .is_left = true},
    [COMMAND] = {"", 13, .is_left = true},
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
static const char *put_mib(char ret[MIB_SIZE], struct gp_amount a)
{
    const double up = 0x1p20 - 1;
    if (!a.known)
        return "-";
    (void)snprintf(ret, MIB_SIZE, "%lld", (long long)((a.n + up) / 0x1p20));
    return ret;
}

/* A line, cut at the width of the terminal. */
static void add_process(const struct view *v, const struct gp_proc_row *row)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 20);
    struct gp_strbuf command = GP_STRBUF_INIT(1 << 20);
    char pid[24], user[11], mib[MIB_SIZE];
    (void)snprintf(pid, sizeof(pid), "%lld", (long long)row->pid);
    (void)snprintf(user, sizeof(user), "%.10s", row->user ? row->user : "-");
    if (row->suspended.known)
        gp_strbuf_addf(&command, "(suspended: %.0f MiB in host memory) ",
                       row->suspended.n / 0x1p20);
    gp_strbuf_adds(&command, row->command ? row->command : "?");
    const char *const cells[PROCESS_COLUMN_COUNT] = {
        [INSTANCE] = strchr(row->gpus, ':') ? row->gpus : "",
        [PID] = pid,
        [USER] = user,
        [MEMORY] = put_mib(mib, row->memory),
        [CONTEXT] = is_context(row) ? "context" : "",
        [COMMAND] = command.buf ? command.buf : "",
    };
    gp_text_columns_add(&line, process_columns, PROCESS_COLUMN_COUNT, v->shown_of_processes, cells);
    gp_utf8_add_line(v->sb, line.buf, line.len, v->room);
    gp_strbuf_fini(&line);
    gp_strbuf_fini(&command);
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

/* After the name, the first `count` columns, and the end of the line. */
static void add_numbers(const struct view *v, const struct gp_amount *amounts, size_t count)
{
    char texts[NUMBER_COUNT][MIB_SIZE];
    const char *cells[NUMBER_COUNT];
    for (size_t i = 0; i < count; i++)
        cells[i] = put_mib(texts[i], amounts[i]);
    gp_strbuf_adds(v->sb, "  ");
    gp_text_columns_add(v->sb, columns, count, v->shown, cells);
    gp_strbuf_addc(v->sb, '\n');
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
        const struct gp_amount parts[] = {[TOTAL] = shown.total,
                                          [RESERVED] = shown.reserved,
                                          [USED] = shown.used,
                                          [FREE] = shown.free};
        add_numbers(v, parts, GP_ARRAY_LEN(parts));
        add_processes(v, account, label);
    }
}

static void add_account(const struct view *v, const struct gp_account *account)
{
    struct gp_strbuf *sb = v->sb;
    const struct gp_account shown = gp_account_in_mib(account);
    gp_strbuf_addf(sb, "%5u  ", account->device->index);
    add_name(sb, gp_device_text(account->device, GP_NAME, "?"), v->width);
    const struct gp_amount amounts[NUMBER_COUNT] = {
        [TOTAL] = shown.total, [RESERVED] = shown.reserved, [USED] = shown.used,
        [FREE] = shown.free,   [PROCESSES] = shown.listed,  [UNATTRIBUTED] = shown.rest,
    };
    add_numbers(v, amounts, NUMBER_COUNT);
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

enum { BESIDE_NAME = 5 + 2 + 2 }; /* the number of the GPU, and what separates the name */

/* Of the numbers, and of the processes, some of which may hold only a context. */
static void choose_columns(struct view *v, bool has_contexts)
{
    const uint32_t all = (UINT32_C(1) << NUMBER_COUNT) - 1;
    const uint32_t of_processes =
        ((UINT32_C(1) << PROCESS_COLUMN_COUNT) - 1) & ~(has_contexts ? 0 : UINT32_C(1) << CONTEXT);
    v->shown =
        gp_text_columns_fit(columns, NUMBER_COUNT, all, BESIDE_NAME + strlen(name_title), v->room);
    v->shown_of_processes =
        gp_text_columns_fit(process_columns, PROCESS_COLUMN_COUNT, of_processes, 0, v->room);
}

/* Columns for the names: what the longest one needs, but no line is wider than the terminal. */
static size_t name_width(const struct view *v)
{
    const size_t least = strlen(name_title);
    const size_t others = BESIDE_NAME + gp_text_columns_width(columns, NUMBER_COUNT, v->shown);
    size_t width = least;
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
    bool has_contexts = false;
    for (size_t i = 0; i < use->procs.count; i++)
        has_contexts = has_contexts || is_context(&use->procs.rows[i]);
    choose_columns(&v, has_contexts);
    v.width = name_width(&v);
    gp_strbuf_adds(sb, "  GPU  ");
    gp_utf8_add_padded(sb, name_title, v.width, false);
    gp_strbuf_adds(sb, "  ");
    gp_text_columns_add(sb, columns, NUMBER_COUNT, v.shown, NULL);
    gp_strbuf_addc(sb, '\n');
    for (size_t i = 0; i < use->count; i++)
        add_account(&v, &use->accounts[i]);
    if (has_contexts)
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
