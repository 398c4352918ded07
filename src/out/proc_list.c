#include "out/proc_list.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/json.h"
#include "out/reservation.h"
#include "out/text.h"
#include "out/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

void gp_proc_column_want(enum gp_proc_column column, struct gp_metric_set *metrics)
{
    static const struct {
        enum gp_proc_column column;
        enum gp_metric metric;
    } sources[] = {
        {GP_PROC_PPID_COLUMN, GP_PROCESS_PPID},
        {GP_PROC_USER_COLUMN, GP_PROCESS_USER},
        {GP_PROC_TYPE_COLUMN, GP_PROCESS_TYPE},
        {GP_PROC_STATE_COLUMN, GP_PROCESS_STATE},
        {GP_PROC_SM_COLUMN, GP_PROCESS_SM},
        {GP_PROC_MEM_COLUMN, GP_PROCESS_MEM},
        {GP_PROC_MEMORY_COLUMN, GP_PROCESS_MEMORY},
        {GP_PROC_ENC_COLUMN, GP_PROCESS_ENC},
        {GP_PROC_DEC_COLUMN, GP_PROCESS_DEC},
        {GP_PROC_CPU_COLUMN, GP_PROCESS_CPU},
        {GP_PROC_RSS_COLUMN, GP_PROCESS_RSS},
        {GP_PROC_TIME_COLUMN, GP_PROCESS_START},
        {GP_PROC_START_COLUMN, GP_PROCESS_START},
        {GP_PROC_IDLE_COLUMN, GP_PROCESS_IDLE},
        {GP_PROC_IDLE_COLUMN, GP_PROCESS_LAST_ACTIVE},
        {GP_PROC_COMMAND_COLUMN, GP_PROCESS_COMMAND},
        {GP_PROC_CONTAINER_COLUMN, GP_PROCESS_CONTAINER},
        {GP_PROC_JOB_COLUMN, GP_PROCESS_CONTAINER},
        {GP_PROC_CONTAINER_NAME_COLUMN, GP_PROCESS_CONTAINER_NAME},
        {GP_PROC_ORIGIN_COLUMN, GP_PROCESS_ORIGIN},
        {GP_PROC_SUSPENDED_COLUMN, GP_PROCESS_SUSPENDED},
        {GP_PROC_NS_PID_COLUMN, GP_PROCESS_NS_PID},
        {GP_PROC_SESSION_COLUMN, GP_PROCESS_SESSION},
        {GP_PROC_CWD_COLUMN, GP_PROCESS_CWD},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(sources); i++)
        if (sources[i].column == column)
            gp_metric_set_add(metrics, sources[i].metric);
}

/* Columns that tables have only if a process has something in them. */
static const struct {
    enum gp_proc_column column, behind;
    enum gp_proc_column other; /* which says it, too */
} occasional[] = {
    {GP_PROC_JOB_COLUMN, GP_PROC_USER_COLUMN, GP_PROC_CONTAINER_COLUMN},
    {GP_PROC_SUSPENDED_COLUMN, GP_PROC_MEMORY_COLUMN, GP_PROC_SUSPENDED_COLUMN},
};

void gp_proc_list_want_occasional(struct gp_metric_set *metrics)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(occasional); i++)
        gp_proc_column_want(occasional[i].column, metrics);
}

static bool any_has(const struct gp_procs *procs, enum gp_proc_column column)
{
    for (size_t i = 0; i < procs->count; i++)
        if (gp_proc_text(&procs->rows[i], column) || gp_proc_amount(&procs->rows[i], column).known)
            return true;
    return false;
}

static size_t place_of(enum gp_proc_column column, const enum gp_proc_column *columns, size_t count)
{
    size_t at = 0;
    while (at < count && columns[at] != column)
        at++;
    return at;
}

void gp_proc_list_add_occasional(const struct gp_procs *procs, enum gp_proc_column *columns,
                                 size_t *count)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(occasional); i++) {
        const size_t at = place_of(occasional[i].behind, columns, *count) + 1;
        if (at > *count || place_of(occasional[i].column, columns, *count) < *count ||
            place_of(occasional[i].other, columns, *count) < *count ||
            !any_has(procs, occasional[i].column))
            continue;
        memmove(&columns[at + 1], &columns[at], (*count - at) * sizeof(*columns));
        columns[at] = occasional[i].column;
        ++*count;
    }
}

/* ---- sheets: rows of text cells ---- */

struct sheet {
    size_t columns, cells;
    bool left[GP_PROC_COLUMN__COUNT];
    bool says[GP_PROC_COLUMN__COUNT]; /* anything but 0 and unknown */
    bool dropped[GP_PROC_COLUMN__COUNT];
    size_t widths[GP_PROC_COLUMN__COUNT];
    struct gp_strbuf text; /* of the cells, each NUL-terminated */
};

static void add_cell(struct sheet *s, const char *text)
{
    size_t *width = &s->widths[s->cells++ % s->columns];
    size_t columns = gp_utf8_width(text);
    *width = columns > *width ? columns : *width;
    gp_strbuf_add(&s->text, text, strlen(text) + 1);
}

static void add_padded(struct gp_strbuf *line, const char *text, size_t width, bool left)
{
    size_t blanks = width - gp_utf8_width(text);
    gp_strbuf_fill(line, ' ', left ? 0 : blanks);
    gp_strbuf_adds(line, text);
    gp_strbuf_fill(line, ' ', left ? blanks : 0);
}

static void note_error(struct gp_strbuf *sb, const struct gp_strbuf *helper)
{
    sb->error = sb->error ? sb->error : helper->error;
}

/* Appends the sheet and empties it. Lines of a table are cut at the terminal's width. */
static void write_sheet(struct gp_strbuf *sb, struct sheet *s, const struct gp_proc_list *list)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 20);
    const char *p = s->text.buf;
    for (size_t i = 0; i < s->cells && !s->text.error; i++, p += strlen(p) + 1) {
        size_t c = i % s->columns;
        bool is_last = c + 1 == s->columns;
        if (s->dropped[c])
            continue;
        if (list->csv) {
            gp_text_add_cell(sb, p, ',');
            gp_strbuf_addc(sb, is_last ? '\n' : ',');
            continue;
        }
        if (is_last && s->left[c])
            gp_strbuf_adds(&line, p);
        else
            add_padded(&line, p, s->widths[c], s->left[c]);
        if (!is_last) {
            gp_strbuf_adds(&line, "  ");
            continue;
        }
        gp_utf8_add_line(sb, line.buf, line.len, list->room);
        gp_strbuf_reset(&line);
    }
    note_error(sb, &line);
    note_error(sb, &s->text);
    gp_strbuf_fini(&line);
    gp_strbuf_fini(&s->text);
}

/* ---- rows ---- */

static void add_plain(struct gp_strbuf *sb, struct gp_amount amount)
{
    if (amount.known && !amount.old)
        gp_strbuf_addf(sb, "%.15g", amount.n);
}

/* What stands before a command. */
static void add_branch(struct gp_strbuf *sb, const struct gp_proc_row *row)
{
    gp_tree_add_branch(sb, row);
    gp_strbuf_adds(sb, gp_proc_row_prefix(row));
}

static void add_value(struct gp_strbuf *sb, const struct gp_proc_list *list,
                      const struct gp_proc_row *row, enum gp_proc_column column)
{
    struct gp_amount amount = gp_proc_amount(row, column);
    const char *text = gp_proc_text(row, column);
    if (list->csv && text) {
        gp_strbuf_adds(sb, text);
    } else if (list->csv) {
        add_plain(sb, amount);
    } else {
        if (column == GP_PROC_COMMAND_COLUMN)
            add_branch(sb, row);
        gp_proc_format(sb, row, column);
        if (amount.old)
            gp_strbuf_addc(sb, '?');
    }
}

/* The column to leave out first: one that says nothing, then the least important one. The number of
 * columns if all others stay. */
static size_t find_drop(const struct sheet *s, const struct gp_proc_list *list)
{
    const unsigned stays = 6; /* ranks up to this one */
    size_t best = s->columns;
    unsigned best_rank = 0;
    for (size_t c = 0; c + 1 < s->columns; c++) {
        unsigned rank = gp_proc_column_table[list->columns[c]].rank;
        if (s->dropped[c] || rank <= stays)
            continue;
        rank += s->says[c] ? 0 : 100;
        best = rank > best_rank ? c : best;
        best_rank = rank > best_rank ? rank : best_rank;
    }
    return best;
}

/* Leaves out columns until the last one, the command, can be read. */
static void drop_columns(struct sheet *s, const struct gp_proc_list *list)
{
    enum { READABLE = 24 };
    size_t last = s->widths[s->columns - 1];
    size_t width = last < READABLE ? last : READABLE;
    for (size_t c = 0; c + 1 < s->columns; c++)
        width += s->widths[c] + 2;
    while (width > list->room) {
        size_t drop = find_drop(s, list);
        if (drop == s->columns)
            return;
        s->dropped[drop] = true;
        width -= s->widths[drop] + 2;
    }
}

static bool is_left(enum gp_proc_column column)
{
    return gp_proc_column_table[column].kind == GP_PROC_KIND_TEXT;
}

/* Whether the column is followed by one that marks lower bounds, as in JSON; in tables, they have a
 * sign. */
static bool has_bound(const struct gp_proc_list *list, enum gp_proc_column column)
{
    return list->csv && list->marks_bounds && column == GP_PROC_IDLE_COLUMN;
}

static const char *bound_word(const struct gp_proc_row *row)
{
    return !row->idle_s.known ? "" : row->idle_is_least ? "true" : "false";
}

void gp_proc_list_add(struct gp_strbuf *sb, const struct gp_proc_list *list,
                      const struct gp_procs *procs)
{
    struct sheet sheet = {.columns = list->column_count, .text = GP_STRBUF_INIT(256 << 20)};
    struct gp_strbuf cell = GP_STRBUF_INIT(1 << 20);
    for (size_t c = 0; c < list->column_count; c++)
        sheet.columns += has_bound(list, list->columns[c]);
    for (size_t c = 0; c < list->column_count; c++) {
        const struct gp_proc_column_info *info = &gp_proc_column_table[list->columns[c]];
        sheet.left[c] = is_left(list->columns[c]);
        if (list->header)
            add_cell(&sheet, list->csv ? info->word : info->title);
        if (list->header && has_bound(list, list->columns[c]))
            add_cell(&sheet, "idle_at_least");
    }
    for (size_t i = 0; i < procs->count; i++)
        for (size_t c = 0; c < list->column_count; c++) {
            gp_strbuf_reset(&cell);
            add_value(&cell, list, &procs->rows[i], list->columns[c]);
            add_cell(&sheet, cell.buf);
            if (has_bound(list, list->columns[c]))
                add_cell(&sheet, bound_word(&procs->rows[i]));
            sheet.says[c] =
                sheet.says[c] || (strcmp(cell.buf, "0") != 0 && strcmp(cell.buf, "-") != 0);
        }
    if (list->drops && list->room > 0 && !list->csv)
        drop_columns(&sheet, list);
    note_error(sb, &cell);
    gp_strbuf_fini(&cell);
    write_sheet(sb, &sheet, list);
}

/* ---- sums ---- */

/* Ignores stale numbers. */
static struct gp_amount fresh(struct gp_amount amount)
{
    const struct gp_amount none = {0};
    return amount.old ? none : amount;
}

static void add_amount(struct gp_amount *sum, struct gp_amount amount)
{
    sum->n += amount.known ? amount.n : 0;
    sum->known = sum->known || amount.known;
}

const struct gp_proc_by *gp_proc_by(const char *word)
{
    static const struct gp_proc_by all[] = {
        {"user", "USER", GP_PROC_USER_COLUMN, {NULL}, 0},
        {"container", "CONTAINER", GP_PROC_CONTAINER_COLUMN, {NULL}, 0},
        {"job", "JOB", GP_PROC_CONTAINER_COLUMN, {"slurm:", "pbs:"}, '.'}, /* without its step */
        {"unit", "UNIT", GP_PROC_CONTAINER_COLUMN, {"unit:"}, 0},
        {"gpu", "GPU", GP_PROC_GPU_COLUMN, {NULL}, 0},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(all); i++)
        if (strcmp(all[i].word, word) == 0)
            return &all[i];
    return NULL;
}

/* Sets the key of a sum. */
static void set_key(struct gp_proc_sum *sum, const struct gp_proc_row *row,
                    const struct gp_proc_by *by)
{
    const char *text = gp_proc_text(row, by->column);
    bool fits = text && *text && !by->heads[0];
    for (size_t i = 0; text && i < GP_ARRAY_LEN(by->heads) && by->heads[i]; i++)
        fits = fits || strncmp(text, by->heads[i], strlen(by->heads[i])) == 0;
    const char *end = fits && by->end ? strchr(text, by->end) : NULL;
    sum->key = fits ? text : NULL;
    sum->key_length = !fits ? 0 : end ? (size_t)(end - text) : strlen(text);
}

static int compare_keys(const void *a, const void *b)
{
    const struct gp_proc_sum *x = a;
    const struct gp_proc_sum *y = b;
    size_t n = x->key_length < y->key_length ? x->key_length : y->key_length;
    int order = n > 0 ? memcmp(x->key, y->key, n) : 0;
    return order ? order : (x->key_length > y->key_length) - (x->key_length < y->key_length);
}

static int compare_memory(const void *a, const void *b)
{
    const struct gp_proc_sum *x = a;
    const struct gp_proc_sum *y = b;
    int order = (y->memory.n > x->memory.n) - (y->memory.n < x->memory.n);
    return order ? order : compare_keys(a, b);
}

int gp_proc_sums(const struct gp_procs *procs, const struct gp_proc_by *by,
                 struct gp_proc_sum **ret, size_t *ret_count)
{
    struct gp_proc_sum *sums = calloc(procs->count + 1, sizeof(*sums));
    size_t count = 0;
    if (!sums)
        return GP_ENOMEM;
    for (size_t i = 0; i < procs->count; i++) {
        const struct gp_proc_row *row = &procs->rows[i];
        if (!*row->gpus)
            continue; /* only an ancestor */
        sums[count] = (struct gp_proc_sum){.processes = row->pid > 0,
                                           .memory = fresh(row->memory),
                                           .sm = fresh(row->sm),
                                           .cpu = fresh(row->cpu),
                                           .rss = fresh(row->rss),
                                           .suspended = fresh(row->suspended)};
        set_key(&sums[count++], row, by);
    }
    qsort(sums, count, sizeof(*sums), compare_keys);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && compare_keys(&sums[kept - 1], &sums[i]) == 0) {
            struct gp_proc_sum *sum = &sums[kept - 1];
            sum->processes += sums[i].processes;
            add_amount(&sum->memory, sums[i].memory);
            add_amount(&sum->sm, sums[i].sm);
            add_amount(&sum->cpu, sums[i].cpu);
            add_amount(&sum->rss, sums[i].rss);
            add_amount(&sum->suspended, sums[i].suspended);
        } else {
            sums[kept++] = sums[i];
        }
    }
    qsort(sums, kept, sizeof(*sums), compare_memory);
    *ret = sums;
    *ret_count = kept;
    return 0;
}

/* The columns of a sum; they provide its heading and format. */
static const struct {
    enum gp_proc_column like;
    size_t offset;
} amounts[] = {
    {GP_PROC_MEMORY_COLUMN, offsetof(struct gp_proc_sum, memory)},
    {GP_PROC_SM_COLUMN, offsetof(struct gp_proc_sum, sm)},
    {GP_PROC_CPU_COLUMN, offsetof(struct gp_proc_sum, cpu)},
    {GP_PROC_RSS_COLUMN, offsetof(struct gp_proc_sum, rss)},
    {GP_PROC_SUSPENDED_COLUMN, offsetof(struct gp_proc_sum, suspended)}, /* the last one */
};

bool gp_proc_sums_have(enum gp_proc_column column)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(amounts); i++)
        if (amounts[i].like == column)
            return true;
    return false;
}

static struct gp_amount amount_of(const struct gp_proc_sum *sum, size_t i)
{
    const void *field = (const char *)sum + amounts[i].offset;
    return *(const struct gp_amount *)field;
}

/* As in the list, tables have the column of suspended memory only if there is some, and csv always
 * has the same columns. */
static size_t count_shown(const struct gp_proc_list *list, const struct gp_proc_sum *sums,
                          size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || sums[i].suspended.known;
    return any && !list->csv ? GP_ARRAY_LEN(amounts) : GP_ARRAY_LEN(amounts) - 1;
}

void gp_proc_sums_add(struct gp_strbuf *sb, const struct gp_proc_list *list,
                      const struct gp_proc_by *by, const struct gp_proc_sum *sums, size_t count)
{
    const size_t shown = count_shown(list, sums, count);
    struct sheet sheet = {.columns = 2 + shown, .left = {true}, .text = GP_STRBUF_INIT(256 << 20)};
    struct gp_strbuf cell = GP_STRBUF_INIT(1 << 20);
    if (list->header) {
        add_cell(&sheet, list->csv ? by->word : by->title);
        add_cell(&sheet, list->csv ? "processes" : "PROCESSES");
        for (size_t c = 0; c < shown; c++) {
            const struct gp_proc_column_info *info = &gp_proc_column_table[amounts[c].like];
            add_cell(&sheet, list->csv ? info->word : info->title);
        }
    }
    for (size_t i = 0; i < count; i++) {
        char number[24];
        (void)snprintf(number, sizeof(number), "%zu", sums[i].processes);
        gp_strbuf_reset(&cell);
        gp_strbuf_add(&cell, sums[i].key ? sums[i].key : "-",
                      sums[i].key ? sums[i].key_length : !list->csv);
        add_cell(&sheet, cell.buf);
        add_cell(&sheet, number);
        for (size_t c = 0; c < shown; c++) {
            struct gp_amount amount = amount_of(&sums[i], c);
            gp_strbuf_reset(&cell);
            if (list->csv)
                add_plain(&cell, amount);
            else
                gp_proc_format_amount(&cell, amounts[c].like, amount);
            add_cell(&sheet, cell.buf);
        }
    }
    note_error(sb, &cell);
    gp_strbuf_fini(&cell);
    write_sheet(sb, &sheet, list);
}

/* ---- JSON ---- */

static json_t *json_amount(struct gp_amount amount)
{
    if (!amount.known || amount.old)
        return json_null();
    bool is_whole = amount.n >= 0 && amount.n < 0x1p53 && amount.n - (double)(int64_t)amount.n <= 0;
    return is_whole ? json_integer((json_int_t)amount.n) : json_real(amount.n);
}

static json_t *json_text(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

json_t *gp_proc_list_document(const struct gp_snapshot *snapshot, const struct gp_procs *procs)
{
    json_t *document = gp_json_document(snapshot, "gpulse.ps/1");
    json_t *rows = json_array();
    for (size_t i = 0; i < procs->count; i++) {
        json_t *row = json_object();
        for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++) {
            enum gp_proc_column column = (enum gp_proc_column)c;
            enum gp_proc_kind kind = gp_proc_column_table[c].kind;
            bool is_text = kind == GP_PROC_KIND_TEXT || kind == GP_PROC_KIND_GPU;
            (void)json_object_set_new(row, gp_proc_column_table[c].word,
                                      is_text
                                          ? json_text(gp_proc_text(&procs->rows[i], column))
                                          : json_amount(gp_proc_amount(&procs->rows[i], column)));
        }
        (void)json_object_set_new(
            row, "idle_at_least",
            procs->rows[i].idle_s.known ? json_boolean(procs->rows[i].idle_is_least) : json_null());
        (void)json_array_append_new(rows, row);
    }
    (void)json_object_set_new(document, "processes", rows);
    (void)json_object_set_new(document, "reservations", gp_reservation_list(snapshot));
    gp_json_set_incomplete(document, snapshot);
    return document;
}

void gp_proc_list_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_procs *procs)
{
    gp_json_add(sb, gp_proc_list_document(snapshot, procs), 2);
    gp_strbuf_addc(sb, '\n');
}

void gp_proc_sums_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_proc_by *by, const struct gp_proc_sum *sums, size_t count)
{
    json_t *document = gp_json_document(snapshot, "gpulse.ps/1");
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_object();
        (void)json_object_set_new(row, by->word,
                                  sums[i].key ? json_stringn(sums[i].key, sums[i].key_length)
                                              : json_null());
        (void)json_object_set_new(row, "processes", json_integer((json_int_t)sums[i].processes));
        for (size_t c = 0; c < GP_ARRAY_LEN(amounts); c++)
            (void)json_object_set_new(row, gp_proc_column_table[amounts[c].like].word,
                                      json_amount(amount_of(&sums[i], c)));
        (void)json_array_append_new(rows, row);
    }
    (void)json_object_set_new(document, "sums", rows);
    gp_json_set_incomplete(document, snapshot);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}
