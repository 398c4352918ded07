/* The format for scripts: nvidia-smi --query-gpu=… --format=csv. A header names the fields, each
 * followed by its unit; then there is one line per GPU. Nothing is quoted. */
#include "sim/capture.h"

#include "base/err.h"
#include "sim/machine.h"

#include <ctype.h>
#include <string.h>

enum { MAX_FIELDS = 512, MAX_NAME = 128 };

#define BUS_ID_PATH "pci/pci_bus_id"

struct reader {
    struct sim_capture *capture;
    struct gp_err *err;
    struct sim_node *log;
    const char *paths[MAX_FIELDS]; /* the destination of each column */
    size_t path_count;
    size_t gpu_count;
};

/* Splits the next value off a line: *ret_rest is NULL after the last. */
static char *next_value(char **ret_rest)
{
    char *value = *ret_rest, *comma = strchr(value, ',');
    while (comma && comma[1] != ' ' && comma[1] != '\0')
        comma = strchr(comma + 1, ',');
    *ret_rest = comma ? comma + 1 + (comma[1] == ' ') : NULL;
    if (comma)
        *comma = '\0';
    return value;
}

static bool is_name(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '.' && s[i] != '_')
            return false;
    return len > 0 && len <= MAX_NAME;
}

/* A machine needs the addresses of its GPUs, so the header is the line that contains this field. */
bool sim_is_csv_header(const char *line)
{
    static const char field[] = "pci.bus_id";
    for (const char *s = line; (s = strstr(s, field)); s += strlen(field))
        if ((s == line || s[-1] == ' ') && strchr(",", s[strlen(field)]))
            return is_name(line, strcspn(line, ", "));
    return false;
}

static int failed(const struct reader *r)
{
    return sim_capture_refuse(r->capture, r->err, "%s", r->capture->tree.problem);
}

/* The destination of a field: from capture.def, otherwise its own name. NULL without memory. */
static const char *path_of(struct reader *r, char *field)
{
    for (size_t i = 0; i < sim_capture_row_count; i++)
        if (sim_capture_rows[i].field && strcmp(sim_capture_rows[i].field, field) == 0)
            return sim_capture_rows[i].path;
    for (char *dot = field; (dot = strchr(dot, '.'));)
        *dot = '/';
    return sim_tree_keep(&r->capture->tree, field);
}

static int read_header(struct reader *r, char *line)
{
    for (char *rest = line; rest;) {
        char *name = next_value(&rest);
        char *unit = strstr(name, " [");
        if (unit)
            *unit = '\0';
        if (!is_name(name, strlen(name)))
            return sim_capture_refuse(r->capture, r->err, "invalid field name '%.*s'", MAX_NAME,
                                      name);
        if (r->path_count == MAX_FIELDS)
            return sim_capture_refuse(r->capture, r->err, "more than %d fields", MAX_FIELDS);
        if (!(r->paths[r->path_count++] = path_of(r, name)))
            return failed(r);
    }
    return GP_OK;
}

/* "[N/A]" corresponds to "N/A" in the other formats. */
static const char *without_brackets(char *value)
{
    size_t len = strlen(value);
    if (len < 2 || value[0] != '[' || value[len - 1] != ']')
        return value;
    value[len - 1] = '\0';
    return value + 1;
}

/* In a loop (-l) the GPUs are repeated: only their first lines are used. */
static bool is_known(const struct reader *r, const char *bus_id)
{
    for (const struct sim_node *n = r->log->first; n; n = n->next) {
        const char *other = sim_node_text(n, BUS_ID_PATH);
        if (other && strcmp(other, bus_id) == 0)
            return true;
    }
    return false;
}

static int put_gpu(struct reader *r, const char *const *values)
{
    struct sim_tree *tree = &r->capture->tree;
    if (r->gpu_count++ == SIM_MAX_DEVICES)
        return sim_capture_refuse(r->capture, r->err, "more than %d GPUs", SIM_MAX_DEVICES);
    struct sim_node *gpu = sim_node_add(tree, r->log, "gpu", 3, r->capture->line);
    for (size_t i = 0; i < r->path_count; i++) {
        bool of_machine = r->paths[i][0] == '/';
        if (!gpu || !sim_node_put(tree, of_machine ? r->log : gpu, r->paths[i] + of_machine,
                                  values[i], r->capture->line))
            return failed(r);
    }
    return GP_OK;
}

static int read_line(struct reader *r, char *line)
{
    const char *values[MAX_FIELDS], *bus_id = "";
    size_t count = 0;
    for (char *rest = line; rest; count++) {
        const char *value = without_brackets(next_value(&rest));
        if (count >= r->path_count)
            continue;
        values[count] = value;
        if (strlen(value) > SIM_MAX_TEXT)
            return sim_capture_refuse(r->capture, r->err, "a value is too long");
        if (strcmp(r->paths[count], BUS_ID_PATH) == 0)
            bus_id = value;
    }
    if (count != r->path_count)
        return sim_capture_refuse(r->capture, r->err, "%zu values, but the header has %zu fields",
                                  count, r->path_count);
    return is_known(r, bus_id) ? GP_OK : put_gpu(r, values);
}

int sim_read_csv(struct sim_capture *capture, char *line, struct gp_err *err)
{
    struct reader r = {.capture = capture, .err = err};
    r.log = sim_node_add(&capture->tree, &capture->tree.root, "nvidia_smi_log",
                         strlen("nvidia_smi_log"), capture->line);
    if (!r.log)
        return failed(&r);
    int result = read_header(&r, line);
    while (result == GP_OK && (line = sim_capture_line(capture)))
        if (*line)
            result = read_line(&r, line);
    if (result == GP_OK && r.gpu_count == 0)
        result = sim_capture_refuse(capture, err, "no GPU after the header");
    return result;
}
