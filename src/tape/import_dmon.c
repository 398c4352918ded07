/* nvidia-smi dmon, with or without date and time (-o DT), and dcgmi dmon. */
#include "tape/import_file.h"

#include "base/err.h"
#include "base/parse.h"
#include "tape/import_names.h"

#include <string.h>

enum { COLUMNS_MAX = 128, WORD_SIZE = 64 };

struct table {
    struct gp_import_rows *rows;
    enum gp_import_names names;
    const struct gp_import_name *columns[COLUMNS_MAX]; /* NULL: not imported */
    size_t count;
    int date, time, gpu; /* columns; −1: there is none */
    bool has_head;
};

/* The next word; false: there is none. */
static bool next_word(const char **p, char ret[WORD_SIZE])
{
    *p += strspn(*p, " \t");
    const size_t len = strcspn(*p, " \t");
    (void)snprintf(ret, WORD_SIZE, "%.*s", (int)(len < WORD_SIZE ? len : WORD_SIZE - 1), *p);
    *p += len;
    return len > 0;
}

/* "#Date Time gpu pwr …", "# gpu pwr …", "#Entity GPUTL …". The second line of a head has units. */
static void read_head(struct table *t, const char *line)
{
    char word[WORD_SIZE];
    const char *p = line + 1;
    const bool is_first =
        next_word(&p, word) && (strcmp(word, "gpu") == 0 || strcmp(word, "Date") == 0 ||
                                strcmp(word, "Time") == 0 || strcmp(word, "Entity") == 0);
    if (!is_first)
        return;
    p = line + 1;
    t->count = 0;
    t->date = t->time = t->gpu = -1;
    t->has_head = true;
    while (t->count < COLUMNS_MAX && next_word(&p, word)) {
        const int at = (int)t->count;
        t->columns[t->count++] = NULL;
        if (strcmp(word, "Date") == 0)
            t->date = at;
        else if (strcmp(word, "Time") == 0)
            t->time = at;
        else if (strcmp(word, "gpu") == 0 || strcmp(word, "Entity") == 0)
            t->gpu = at;
        else if (!(t->columns[at] = gp_import_name_find(t->names, word)))
            gp_import_skip(t->rows, word);
    }
}

/* "20261127" and "03:10:00". */
static bool read_time(const char *date, const char *time, int64_t *ret)
{
    char text[40];
    if (strlen(date) != 8 || strlen(time) > 12)
        return false;
    (void)snprintf(text, sizeof(text), "%.4s/%.2s/%s %s", date, date + 4, date + 6, time);
    return gp_import_time(text, ret);
}

static int read_row(struct table *t, const char *line, struct gp_err *err)
{
    char words[COLUMNS_MAX][WORD_SIZE];
    char kind[WORD_SIZE];
    struct gp_device *device = NULL;
    int64_t wall_us = 0;
    size_t count = 0;
    const char *p = line;
    if (t->names == GP_IMPORT_DCGM && (!next_word(&p, kind) || strcmp(kind, "GPU") != 0))
        return 0; /* another kind of entity: "GPU-I", "Switch" */
    while (count < t->count && next_word(&p, words[count]))
        count++;
    if (count < t->count || t->gpu < 0)
        return gp_import_fail(t->rows, "it does not have the columns of the head", err);
    int r = 0;
    if (t->date < 0 || t->time < 0)
        r = gp_import_count_time(t->rows, words[t->gpu], &wall_us, err);
    else if (!read_time(words[t->date], words[t->time], &wall_us))
        r = gp_import_fail(t->rows, "its date and time cannot be read", err);
    if (r == 0)
        r = gp_import_row(t->rows, wall_us, words[t->gpu], gp_import_index(words[t->gpu]), &device,
                          err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        double number;
        if (t->columns[i] && gp_parse_number(words[i], &number))
            gp_import_set_number(t->rows, device, t->columns[i]->metric,
                                 number * t->columns[i]->factor);
    }
    return r;
}

static int read_table(struct gp_import_file *file, enum gp_import_names names, struct gp_err *err)
{
    struct table t = {.rows = file->rows, .names = names, .date = -1, .time = -1, .gpu = -1};
    int r = 0;
    do {
        r = 0;
        const char *line = file->line + strspn(file->line, " \t");
        if (*line == '#')
            read_head(&t, line);
        else if (*line && t.has_head)
            r = read_row(&t, line, err);
    } while (r == 0 && (r = gp_import_next_line(file, err)) == 1);
    return r;
}

int gp_import_dmon(struct gp_import_file *file, struct gp_err *err)
{
    return read_table(file, GP_IMPORT_DMON, err);
}

int gp_import_dcgm(struct gp_import_file *file, struct gp_err *err)
{
    return read_table(file, GP_IMPORT_DCGM, err);
}
