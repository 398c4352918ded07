/* The format for people: nvidia-smi -q, or some of its sections (-q -d POWER,CLOCK).
 *
 * Each level is indented by four blanks. Lines are "Label : value", or a heading with lines below
 * it, or both. The label and the headings above it determine the meaning of a line: the rows of
 * capture.def. */
#include "sim/capture.h"

#include "base/err.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { INDENT = 4, MAX_LABELS = 10 };

struct reader {
    struct sim_capture *capture;
    struct gp_err *err;
    struct sim_node *log, *gpu;   /* gpu: NULL before the first one */
    char label[512];              /* "PCI/GPU Link Info/Link Width", of the previous line */
    size_t label_end[MAX_LABELS]; /* its length at each depth */
    size_t depth;                 /* of the previous line: the number of labels above it */
    bool heading;                 /* the previous line had no value */
};

/* "GPU 00000000:07:00.0"; before R375 the domain had four digits. */
static const char *gpu_line(const char *line)
{
    unsigned int domain, bus, slot, function;
    int end = 0;
    if (strncmp(line, "GPU ", 4) != 0 || !isxdigit((unsigned char)line[4]) ||
        sscanf(line + 4, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4)
        return NULL;
    return line[4 + end] == '\0' ? line + 4 : NULL;
}

static bool is_log_line(const char *line)
{
    return strncmp(line, "====", 4) == 0 && strstr(line, "NVSMI LOG");
}

bool sim_is_text_start(const char *line)
{
    return is_log_line(line) || gpu_line(line) || strncmp(line, "Attached GPUs ", 14) == 0;
}

static int failed(const struct reader *r)
{
    return sim_capture_refuse(r->capture, r->err, "%s", r->capture->tree.problem);
}

/* A complete -q has the product name of each GPU, and ends with its processes, even if there are
 * none. */
static int end_gpu(struct reader *r)
{
    if (!r->gpu || !sim_node_find(r->gpu, "product_name") || sim_node_find(r->gpu, "processes"))
        return GP_OK;
    return sim_capture_refuse(r->capture, r->err,
                              "%s has no process section; was the capture cut off?", r->gpu->id);
}

static int begin_gpu(struct reader *r, const char *bus_id)
{
    struct sim_tree *tree = &r->capture->tree;
    int result = end_gpu(r);
    if (result < 0)
        return result;
    r->gpu = sim_node_add(tree, r->log, "gpu", 3, r->capture->line);
    if (!r->gpu || !(r->gpu->id = sim_tree_keep(tree, bus_id)))
        return failed(r);
    (void)snprintf(r->label, sizeof(r->label), "GPU %s", bus_id);
    r->depth = 1;
    r->label_end[0] = 0;
    r->heading = true;
    return GP_OK;
}

/* "610.62 [Deprecated; will be removed in CUDA 14.0. …]" */
static void cut_remark(char *value)
{
    char *remark = strstr(value, " [");
    if (remark)
        *remark = '\0';
}

static int put(struct reader *r, char *value)
{
    bool of_machine = r->label[0] == '/';
    for (size_t i = 0; i < sim_capture_row_count; i++) {
        const struct sim_capture_row *row = &sim_capture_rows[i];
        if (!row->label || strcasecmp(row->label, r->label) != 0)
            continue;
        if (of_machine)
            cut_remark(value);
        return sim_node_put(&r->capture->tree, of_machine ? r->log : r->gpu, row->path + of_machine,
                            value, r->capture->line)
                   ? GP_OK
                   : failed(r);
    }
    return GP_OK;
}

/* Sets the label of a line at that depth, after those above it; false if it is too long. */
static bool set_label(struct reader *r, size_t depth, const char *label, size_t len)
{
    size_t end = depth ? r->label_end[depth - 1] : 0;
    bool slash = depth != 1;
    if (end + slash + len >= sizeof(r->label))
        return false;
    if (slash)
        r->label[end++] = '/';
    memcpy(r->label + end, label, len);
    r->label[end + len] = '\0';
    r->label_end[depth] = end + len;
    return true;
}

static int take_line(struct reader *r, char *line)
{
    size_t blanks = strspn(line, " "), depth = blanks / INDENT;
    char *label = line + blanks;
    const char *bus_id = gpu_line(line);
    if (bus_id)
        return begin_gpu(r, bus_id);
    char *colon = strchr(label, ':');
    while (colon && colon[1] != ' ' && colon[1] != '\0')
        colon = strchr(colon + 1, ':');
    if (!isalpha((unsigned char)label[0]) || (depth == 0 && !colon))
        return sim_capture_refuse(
            r->capture, r->err,
            "expected 'Label : value' or a heading, like in the output of nvidia-smi -q");
    if (blanks % INDENT || depth > r->depth || depth >= MAX_LABELS || (depth && !r->gpu))
        return sim_capture_refuse(r->capture, r->err,
                                  "indentation of %zu does not match any heading", blanks);
    size_t len = colon ? (size_t)(colon - label) : strlen(label);
    while (label[len - 1] == ' ')
        len--;
    char *value = colon ? colon + 1 : label + strlen(label);
    value += strspn(value, " ");
    if (strlen(value) > SIM_MAX_TEXT || !set_label(r, depth, label, len))
        return sim_capture_refuse(r->capture, r->err, "the line is too long");
    int result = depth == 0 ? end_gpu(r) : GP_OK;
    if (depth == 0)
        r->gpu = NULL;
    r->depth = depth + 1;
    r->heading = !colon;
    return result < 0 ? result : put(r, value);
}

int sim_read_text(struct sim_capture *capture, char *line, struct gp_err *err)
{
    struct reader r = {.capture = capture, .err = err};
    r.log = sim_node_add(&capture->tree, &capture->tree.root, "nvidia_smi_log",
                         strlen("nvidia_smi_log"), capture->line);
    if (!r.log)
        return failed(&r);
    int result = GP_OK;
    if (is_log_line(line))
        line = sim_capture_line(capture);
    /* With -l the log is repeated: only the first one is used. */
    for (; line && result == GP_OK && !is_log_line(line); line = sim_capture_line(capture))
        if (*line)
            result = take_line(&r, line);
    if (result == GP_OK)
        result = end_gpu(&r);
    if (result == GP_OK && r.heading)
        result = sim_capture_refuse(capture, err, "nothing after '%s'; was the capture cut off?",
                                    r.label);
    if (result == GP_OK && !sim_node_find(r.log, "gpu"))
        result = sim_capture_refuse(capture, err, "the capture has no GPU");
    return result;
}
