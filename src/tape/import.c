#include "tape/import.h"

#include "base/err.h"
#include "tape/import_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 128 << 20 };
enum { LINES_BEFORE = 16 }; /* a command line, a message */

static bool is_dcgm(const char *line)
{
    return strncmp(line, "#Entity", 7) == 0 || strncmp(line, "# Entity", 8) == 0;
}

static bool is_dmon(const char *line)
{
    return *line == '#';
}

static bool is_ndjson(const char *line)
{
    return *line == '{' && strstr(line, "\"gpulse.query.row/");
}

static bool is_prometheus(const char *line)
{
    return *line == '{';
}

static bool is_csv(const char *line)
{
    return strpbrk(line, ",\t") || strchr(line, '[');
}

/* In this order: the first that fits. */
static const struct {
    const char *name;
    bool (*is_it)(const char *line);
    int (*import)(struct gp_import_file *file, struct gp_err *err);
} formats[] = {
    {"dcgmi dmon", is_dcgm, gp_import_dcgm},
    {"nvidia-smi dmon", is_dmon, gp_import_dmon},
    {"gpulse query, NDJSON", is_ndjson, gp_import_ndjson},
    {"Prometheus", is_prometheus, gp_import_prometheus},
    {"CSV", is_csv, gp_import_csv},
};

static int import_lines(struct gp_import_file *file, struct gp_err *err)
{
    int r = 0;
    for (int n = 0; n < LINES_BEFORE && (r = gp_import_next_line(file, err)) == 1; n++) {
        const char *line = file->line + strspn(file->line, " \t");
        for (size_t i = 0; i < GP_ARRAY_LEN(formats); i++)
            if (formats[i].is_it(line)) {
                file->rows->result->format = formats[i].name;
                return formats[i].import(file, err);
            }
    }
    if (r < 0)
        return r;
    return gp_err_set(err, GP_EFORMAT,
                      "'%.200s' is in no known format: nvidia-smi --query-gpu as CSV, nvidia-smi "
                      "dmon, dcgmi dmon, gpulse query as CSV or NDJSON, or an answer of Prometheus "
                      "for a time range",
                      file->rows->config->from);
}

int gp_import(const struct gp_import_config *config, struct gp_import_result *ret,
              struct gp_err *err)
{
    struct gp_import_rows rows;
    struct gp_import_file file = {.rows = &rows, .text = GP_STRBUF_INIT(LINE_MAX_BYTES)};
    const bool is_input = strcmp(config->from, "-") == 0;
    *ret = (struct gp_import_result){.format = ""};
    file.stream = is_input ? stdin : fopen(config->from, "re");
    if (!file.stream)
        return gp_err_system(err, errno, GP_EIO, "cannot open '%.200s'", config->from);
    gp_import_rows_init(&rows, config, ret);
    int r = import_lines(&file, err);
    r = gp_import_rows_close(&rows, r, err);
    if (r == 0 && ret->values == 0)
        r = gp_err_set(err, GP_EFORMAT, "there is no value of a GPU in '%.200s'", config->from);
    gp_strbuf_fini(&file.text);
    if (!is_input)
        (void)fclose(file.stream);
    return r;
}
