/* A table from the text of its CSV file (RFC 4180), with the checks of scripts/tables.py. */
#include "base/arena.h"
#include "base/err.h"
#include "base/utf8.h"
#include "doctor/tables.h"
#include "doctor/tables_load.h"
#include "doctor/version.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 32, CELL_MAX = 8192, REPLACEMENT = 0xfffd };

struct reader {
    const char *file;
    char *p, *end; /* a NUL follows */
    size_t line;
    struct gp_err *err;
};

static int bad(const struct reader *r, const char *what)
{
    return gp_err_set(r->err, GP_EFORMAT, "%s:%zu: %s", r->file, r->line, what);
}

/* ---- text ---- */

/* Valid UTF-8 without control characters, other than the ends of lines. */
static int check_text(struct reader *r)
{
    uint32_t cp;
    for (const char *p = r->p; p < r->end; p += gp_utf8_decode(p, (size_t)(r->end - p), &cp)) {
        (void)gp_utf8_decode(p, (size_t)(r->end - p), &cp);
        bool is_return = *p == '\r' && p[1] == '\n';
        if (cp == REPLACEMENT)
            return bad(r, "not UTF-8");
        if ((cp < 32 && *p != '\n' && !is_return) || cp == 127)
            return bad(r, "a control character");
        r->line += *p == '\n';
    }
    r->line = 1;
    return 0;
}

/* The end of a quoted cell, whose text is moved to its begin. */
static int read_quoted(struct reader *r, char **ret_end)
{
    char *to = r->p++;
    for (; r->p < r->end && *r->p != '\n'; r->p++) {
        if (*r->p == '"' && *++r->p != '"') {
            *ret_end = to;
            return 0;
        }
        *to++ = *r->p;
    }
    return bad(r, "a quotation mark is not closed");
}

/* The next cell of a line, NUL-terminated; *ret_is_last: of the line. */
static int read_cell(struct reader *r, char **ret, bool *ret_is_last)
{
    char *end = r->p;
    *ret = r->p;
    if (r->p < r->end && *r->p == '"') {
        int e = read_quoted(r, &end);
        if (e < 0)
            return e;
    } else {
        r->p += strcspn(r->p, ",\"\r\n");
        end = r->p;
    }
    r->p += r->p[0] == '\r';
    *ret_is_last = r->p == r->end || *r->p == '\n';
    if (!*ret_is_last && *r->p != ',')
        return bad(r, "a quotation mark inside of a cell, or text after one");
    if (end - *ret > CELL_MAX)
        return bad(r, "a cell of more than 8192 bytes");
    r->p += r->p < r->end;
    *end = '\0';
    return 0;
}

/* ---- cells ---- */

static unsigned number_of(enum gp_table_store store, const char *cell)
{
    static const char *const verdicts[] = {"ok", "info", "skip", "warn", "fail"};
    char *end;
    switch (store) {
    case GP_STORE_HEX:
        return (unsigned)strtoul(cell, NULL, 16);
    case GP_STORE_CAPABILITY: {
        unsigned long major = strtoul(cell, &end, 10);
        return (unsigned)(major * 10 + (unsigned long)(end[1] - '0'));
    }
    case GP_STORE_MODULES:
        return strcmp(cell, "proprietary") == 0 ? GP_MODULE_PROPRIETARY
               : strcmp(cell, "open") == 0      ? GP_MODULE_OPEN
                                                : GP_MODULE_PROPRIETARY | GP_MODULE_OPEN;
    case GP_STORE_VERDICT:
        for (unsigned i = 0; i < GP_ARRAY_LEN(verdicts); i++)
            if (strcmp(cell, verdicts[i]) == 0)
                return i;
        return 0;
    default:
        return (unsigned)strtoul(cell, NULL, 10);
    }
}

static void store_cell(const struct gp_table_column *column, const char *cell, void *row)
{
    char *member = (char *)row + column->offset;
    if (column->store == GP_STORE_TEXT) {
        memcpy(member, &cell, sizeof(cell));
    } else if (column->store == GP_STORE_REAL) {
        double value = strtod(cell, NULL);
        memcpy(member, &value, sizeof(value));
    } else if (column->store == GP_STORE_YES) {
        bool value = strcmp(cell, "yes") == 0;
        memcpy(member, &value, sizeof(value));
    } else {
        unsigned value = number_of(column->store, cell);
        _Static_assert(sizeof(enum gp_verdict) == sizeof(value),
                       "verdicts are stored like numbers");
        memcpy(member, &value, sizeof(value));
    }
}

static int read_row(struct reader *r, const struct gp_table *table, const regex_t *patterns,
                    void *row)
{
    bool is_last = false;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct gp_table_column *column = &table->columns[i];
        char *cell;
        if (i > 0 && is_last)
            return gp_err_set(r->err, GP_EFORMAT, "%s:%zu: %zu cells, not %zu", r->file, r->line, i,
                              table->column_count);
        int e = read_cell(r, &cell, &is_last);
        if (e < 0)
            return e;
        bool is_empty = !*cell;
        const char *reason =
            is_empty && !column->is_optional ? "nothing where a text is needed"
            : !is_empty && column->pattern && regexec(&patterns[i], cell, 0, NULL, 0) != 0
                ? column->words
                : NULL;
        if (reason)
            return gp_err_set(r->err, GP_EFORMAT, "%s:%zu: %s is '%.60s': %s", r->file, r->line,
                              column->name, cell, reason);
        store_cell(column, cell, row);
    }
    return is_last ? 0
                   : gp_err_set(r->err, GP_EFORMAT, "%s:%zu: more than %zu cells", r->file, r->line,
                                table->column_count);
}

static int read_header(struct reader *r, const struct gp_table *table)
{
    bool is_last = false;
    char none[] = "";
    for (size_t i = 0; i < table->column_count; i++) {
        char *cell = none;
        int e = i > 0 && is_last ? 0 : read_cell(r, &cell, &is_last);
        if (e < 0)
            return e;
        if (strcmp(cell, table->columns[i].name) != 0)
            return gp_err_set(r->err, GP_EFORMAT, "%s:1: column %zu is '%.60s', not '%s'", r->file,
                              i + 1, cell, table->columns[i].name);
    }
    return is_last ? 0
                   : gp_err_set(r->err, GP_EFORMAT, "%s:1: more than %zu columns", r->file,
                                table->column_count);
}

/* ---- keys ---- */

struct item {
    size_t line;
    const char *row;
};

static bool is_version(const char *text)
{
    return *text >= '0' && *text <= '9' && text[strspn(text, "0123456789.")] == '\0';
}

/* Versions by their numbers, and before other texts. */
static int compare_texts(const char *a, const char *b)
{
    if (is_version(a) != is_version(b))
        return is_version(a) ? -1 : 1;
    int order = is_version(a) ? gp_version_compare(a, b) : 0;
    return order != 0 ? order : strcmp(a, b);
}

static int compare_cells(const struct gp_table_column *column, const char *a, const char *b)
{
    const char *text_a, *text_b;
    unsigned number_a, number_b;
    if (column->store == GP_STORE_TEXT) {
        memcpy(&text_a, a + column->offset, sizeof(text_a));
        memcpy(&text_b, b + column->offset, sizeof(text_b));
        return compare_texts(text_a, text_b);
    }
    memcpy(&number_a, a + column->offset, sizeof(number_a));
    memcpy(&number_b, b + column->offset, sizeof(number_b));
    return (number_a > number_b) - (number_a < number_b);
}

static int compare_items(const void *left, const void *right, void *context)
{
    const struct item *a = left, *b = right;
    const struct gp_table *table = context;
    int order = 0;
    for (unsigned place = 1; order == 0 && place <= table->column_count; place++)
        for (size_t i = 0; i < table->column_count; i++)
            if (table->columns[i].key == place)
                order = compare_cells(&table->columns[i], a->row, b->row);
    return order;
}

/* Copies the rows in the order of their key, which is different for each. */
static int sort_rows(const struct reader *r, const struct gp_table *table, struct item *items,
                     size_t count, void *ret)
{
    char *to = ret;
    qsort_r(items, count, sizeof(*items), compare_items, (void *)(uintptr_t)table);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && compare_items(&items[i - 1], &items[i], (void *)(uintptr_t)table) == 0)
            return gp_err_set(r->err, GP_EFORMAT, "%s:%zu: its key is that of line %zu", r->file,
                              items[i].line, items[i - 1].line);
        memcpy(to + i * table->row_size, items[i].row, table->row_size);
    }
    return 0;
}

/* ---- all ---- */

static int read_rows(struct reader *r, const struct gp_table *table, const regex_t *patterns,
                     struct gp_arena *arena, void **ret_rows, size_t *ret_count)
{
    size_t most = 0, count = 0;
    for (const char *p = r->p; p < r->end; p++)
        most += *p == '\n';
    int e = check_text(r);
    if (e == 0)
        e = read_header(r, table);
    if (e < 0)
        return e;
    char *rows = gp_arena_alloc(arena, most + 1, table->row_size);
    char *sorted = gp_arena_alloc(arena, most + 1, table->row_size);
    struct item *items = gp_arena_alloc(arena, most + 1, sizeof(*items));
    if (!rows || !sorted || !items)
        return gp_err_set(r->err, GP_ENOMEM, "%s: out of memory", r->file);
    while (e == 0 && r->p < r->end && count <= most) {
        r->line++;
        char *row = rows + count * table->row_size;
        e = read_row(r, table, patterns, row);
        items[count++] = (struct item){r->line, row};
    }
    if (e == 0 && count == 0)
        e = bad(r, "no row after the header");
    if (e == 0)
        e = sort_rows(r, table, items, count, sorted);
    *ret_rows = sorted;
    *ret_count = count;
    return e;
}

int gp_table_parse(const struct gp_table *table, const char *file, char *text, size_t length,
                   struct gp_arena *arena, void **ret_rows, size_t *ret_count, struct gp_err *err)
{
    struct reader r = {.file = file, .p = text, .end = text + length, .line = 1, .err = err};
    regex_t patterns[MOST_COLUMNS];
    size_t compiled = 0;
    int e = 0;
    for (; e == 0 && compiled < table->column_count; compiled++) {
        const char *pattern = table->columns[compiled].pattern;
        if (regcomp(&patterns[compiled], pattern ? pattern : "", REG_EXTENDED | REG_NOSUB) != 0)
            e = gp_err_set(err, GP_ENOMEM, "%s: out of memory", file);
    }
    if (e < 0)
        compiled--;
    if (e == 0)
        e = read_rows(&r, table, patterns, arena, ret_rows, ret_count);
    for (size_t i = 0; i < compiled; i++)
        regfree(&patterns[i]);
    return e;
}
