#include "verify/printed.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MOST = 1 << 17, TEXT_MOST = 4096, LEVELS = 12, INDENT = 4, PATH_MOST = 1024 };

/* An output that is being read. */
struct reader {
    struct gp_printed *printed;
    size_t capacity;
    const char *fields;
    int error;
};

/* ---- values ---- */

static const char *keep(struct reader *r, const char *text, size_t n)
{
    struct gp_strbuf safe = GP_STRBUF_INIT(16 * TEXT_MOST);
    gp_utf8_add_safe(&safe, text, n, TEXT_MOST);
    const char *copy = gp_arena_strdup(&r->printed->arena, safe.buf);
    if (safe.error || !copy)
        r->error = GP_ENOMEM;
    gp_strbuf_fini(&safe);
    return copy;
}

static void add(struct reader *r, const char *name, const char *text, size_t n)
{
    struct gp_printed *p = r->printed;
    if (p->count == r->capacity && !r->error) {
        size_t more = r->capacity ? 2 * r->capacity : 256;
        void *grown = more <= VALUES_MOST ? realloc(p->values, more * sizeof(*p->values)) : NULL;
        if (!grown) {
            r->error = more <= VALUES_MOST ? GP_ENOMEM : GP_ETOOBIG;
            return;
        }
        p->values = grown;
        r->capacity = more;
    }
    if (r->error)
        return;
    p->values[p->count] = (struct gp_printed_value){
        .name = keep(r, name, strlen(name)), .text = keep(r, text, n), .order = p->count};
    p->count += !r->error;
}

static int by_name(const void *a, const void *b)
{
    const struct gp_printed_value *x = a;
    const struct gp_printed_value *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* Sorts them, and numbers those of the same name, such as the members of each process: "… #2". */
static void sort(struct reader *r)
{
    struct gp_printed *p = r->printed;
    char name[PATH_MOST + 32];
    if (p->count == 0)
        return;
    qsort(p->values, p->count, sizeof(*p->values), by_name);
    for (size_t i = 1, first = 0; i < p->count; i++) {
        if (strcmp(p->values[i].name, p->values[first].name) != 0) {
            first = i;
            continue;
        }
        (void)snprintf(name, sizeof(name), "%s #%zu", p->values[first].name, i - first + 1);
        p->values[i].name = gp_arena_strdup(&p->arena, name);
        if (!p->values[i].name) {
            p->values[i].name = "";
            r->error = GP_ENOMEM;
        }
    }
    qsort(p->values, p->count, sizeof(*p->values), by_name);
}

/* The line at *text of *ret_n bytes, and moves behind it. NULL: there is none. */
static const char *next_line(const char **text, size_t *ret_n)
{
    const char *line = *text;
    *ret_n = strcspn(line, "\n");
    *text = line + *ret_n + (line[*ret_n] == '\n');
    return *line ? line : NULL;
}

/* ---- -q: "    FB Memory Usage", "        Total        : 81559 MiB" ---- */

/* Where a line of n bytes has " :"; n: nowhere. */
static size_t find_separator(const char *line, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (line[i] == ' ' && line[i + 1] == ':' && (i + 2 == n || line[i + 2] == ' '))
            return i;
    return n;
}

static void set_level(char levels[LEVELS][TEXT_MOST / 32], size_t at, const char *label, size_t n)
{
    (void)snprintf(levels[at], sizeof(levels[at]), "%.*s", n < 120 ? (int)n : 120, label);
}

static void join(char path[PATH_MOST], char levels[LEVELS][TEXT_MOST / 32], size_t last)
{
    size_t used = 0;
    path[0] = '\0';
    for (size_t i = 0; i <= last && used < PATH_MOST; i++)
        if (*levels[i])
            used += (size_t)snprintf(path + used, PATH_MOST - used, "%s%s", used ? " / " : "",
                                     levels[i]);
}

static void read_report(struct reader *r, const char *text)
{
    static const char gpu_word[] = "GPU ";
    char levels[LEVELS][TEXT_MOST / 32] = {""};
    char path[PATH_MOST];
    const char *line;
    size_t n, gpus = 0;
    while ((line = next_line(&text, &n))) {
        size_t blanks = strspn(line, " ");
        size_t end = find_separator(line, n);
        size_t level = blanks / INDENT < LEVELS - 2 ? blanks / INDENT + 1 : LEVELS - 1;
        if (blanks >= n)
            continue;
        if (end == n && blanks == 0 && strncmp(line, gpu_word, 4) == 0) {
            (void)snprintf(levels[0], sizeof(levels[0]), "GPU %zu", gpus++);
            (void)snprintf(path, sizeof(path), "%s / (bus id)", levels[0]);
            add(r, path, line + 4, n - 4);
            level = 1;
            levels[level][0] = '\0';
            continue;
        }
        size_t label = end;
        while (label > blanks && line[label - 1] == ' ')
            label--;
        set_level(levels, level, line + blanks, label - blanks);
        for (size_t i = level + 1; i < LEVELS; i++)
            levels[i][0] = '\0';
        if (end == n && blanks > 0)
            continue; /* a heading */
        join(path, levels, level);
        size_t at = end + 2 < n ? end + 3 : n;
        add(r, path, end == n ? line : line + at, end == n ? n : n - at);
    }
}

/* ---- lines ---- */

static void read_lines(struct reader *r, const char *text)
{
    char name[48];
    const char *line;
    size_t n;
    for (size_t i = 1; (line = next_line(&text, &n)); i++) {
        (void)snprintf(name, sizeof(name), "line %03zu", i);
        add(r, name, line, n);
    }
}

/* The quoted names at the start of a line, after an empty line. */
static void read_fields(struct reader *r, const char *text)
{
    char name[128];
    const char *line;
    size_t n;
    bool follows_empty = false;
    while ((line = next_line(&text, &n))) {
        if (follows_empty && *line == '"') {
            size_t length = strcspn(line + 1, "\"\n");
            (void)snprintf(name, sizeof(name), "%.*s", length < 120 ? (int)length : 120, line + 1);
            add(r, name, "listed", 6);
        }
        follows_empty = n == 0;
    }
}

/* ---- fields of GPUs ---- */

/* The next name of the list at *at; false: there are no more. */
static bool next_field(const char **at, char name[128])
{
    size_t n = strcspn(*at, ",");
    if (!**at)
        return false;
    (void)snprintf(name, 128, "%.*s", n < 120 ? (int)n : 120, *at);
    *at += n + ((*at)[n] == ',');
    return true;
}

static void read_row(struct reader *r, size_t gpu, const char *line, size_t n)
{
    const char *fields = r->fields;
    char field[128];
    char name[192];
    size_t at = 0;
    while (at <= n && next_field(&fields, field)) {
        size_t end = at;
        while (end < n && !(line[end] == ',' && end + 1 < n && line[end + 1] == ' '))
            end++;
        (void)snprintf(name, sizeof(name), "GPU %zu / %s", gpu, field);
        add(r, name, line + at, end - at);
        at = end + 2;
    }
    if (at <= n || *fields) { /* another number of cells */
        (void)snprintf(name, sizeof(name), "GPU %zu / (row)", gpu);
        add(r, name, line, n);
    }
}

/* A header, unless its fields are those of `gpulse query`, and a row for each GPU. */
static void read_csv(struct reader *r, const char *text, bool has_header)
{
    const char *line;
    size_t n;
    if (has_header && (line = next_line(&text, &n)))
        add(r, "(header)", line, n);
    for (size_t gpu = 0; (line = next_line(&text, &n)); gpu++)
        read_row(r, gpu, line, n);
}

static void add_member(struct reader *r, const char *name, const json_t *value)
{
    char *text = value && !json_is_null(value)
                     ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))
                     : NULL;
    if (json_is_string(value))
        add(r, name, json_string_value(value), json_string_length(value));
    else
        add(r, name, text ? text : "[N/A]", text ? strlen(text) : 5);
    free(text);
}

static int read_query(struct reader *r, const char *text, struct gp_err *err)
{
    json_error_t where;
    json_t *document = json_loads(text, 0, &where);
    const json_t *gpus = json_object_get(document, "gpus");
    char field[128];
    char name[192];
    if (!json_is_array(gpus)) {
        json_decref(document);
        return gp_err_set(err, GP_EFORMAT, "gpulse query printed no JSON: %s", where.text);
    }
    for (size_t i = 0; i < json_array_size(gpus); i++)
        for (const char *at = r->fields; next_field(&at, field);) {
            (void)snprintf(name, sizeof(name), "GPU %zu / %s", i, field);
            add_member(r, name, json_object_get(json_array_get(gpus, i), field));
        }
    json_decref(document);
    return 0;
}

/* ---- all of them ---- */

/* What an output of each form contains, if it is one. */
static const char *const marks[] = {
    [GP_PRINTED_REPORT] = "NVSMI LOG",
    [GP_PRINTED_FIELDS] = "List of valid properties",
    [GP_PRINTED_TABLE] = "NVIDIA-SMI",
    [GP_PRINTED_QUERY] = NULL,
};

static int refuse(enum gp_printed_form form, const char *text, struct gp_err *err)
{
    static const char *const words[] = {
#define X(id, word) word,
        GP_PRINTED_FORMS(X)
#undef X
    };
    char line[120];
    char first[120];
    size_t n = strcspn(text, "\n");
    (void)snprintf(line, sizeof(line), "%.*s", n < sizeof(line) ? (int)n : (int)sizeof(line), text);
    gp_utf8_copy_safe(first, sizeof(first), line);
    return gp_err_set(err, GP_EFORMAT, "%s: not an output of nvidia-smi; it begins with '%s'",
                      words[form], first);
}

int gp_printed_read(struct gp_printed *printed, enum gp_printed_form form, const char *text,
                    const char *fields, struct gp_err *err)
{
    struct reader r = {.printed = printed, .fields = fields ? fields : ""};
    int result = 0;
    *printed = (struct gp_printed){.count = 0};
    if (form < GP_ARRAY_LEN(marks) && marks[form] && !strstr(text, marks[form]))
        return refuse(form, text, err);
    if (form == GP_PRINTED_REPORT)
        read_report(&r, text);
    else if (form == GP_PRINTED_CSV)
        read_csv(&r, text, true);
    else if (form == GP_PRINTED_FIELDS)
        read_fields(&r, text);
    else if (form == GP_PRINTED_QUERY && *text == '{')
        result = read_query(&r, text, err);
    else if (form == GP_PRINTED_QUERY)
        read_csv(&r, text, false);
    else
        read_lines(&r, text);
    if (result == 0)
        sort(&r);
    if (result == 0 && r.error)
        result = gp_err_set(err, r.error, "%s", gp_err_text(r.error));
    return result;
}

void gp_printed_fini(struct gp_printed *printed)
{
    free(printed->values);
    gp_arena_fini(&printed->arena);
    *printed = (struct gp_printed){.count = 0};
}

static int name_of(const void *name, const void *value)
{
    return strcmp(name, ((const struct gp_printed_value *)value)->name);
}

const struct gp_printed_value *gp_printed_find(const struct gp_printed *printed, const char *name)
{
    return printed->count == 0
               ? NULL
               : bsearch(name, printed->values, printed->count, sizeof(*printed->values), name_of);
}
