#include "jobs/pipeline.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum kind { RUN = 1, FIT = 2, BOTH = RUN | FIT };

/* Options of gpulse run and gpulse fit-batch that a step may have. */
static const struct option {
    const char *name, *option;
    enum kind kind;
    bool is_flag;
} known_options[] = {
    {"gpus", "--gpus", BOTH, false},
    {"gpu-ids", "--gpu-ids", BOTH, false},
    {"ids", "--id", BOTH, false},
    {"mem", "--mem", BOTH, false},
    {"total", "--total", BOTH, false},
    {"share", "--share", BOTH, true},
    {"max-load", "--max-load", BOTH, false},
    {"max-temp", "--max-temp", BOTH, false},
    {"prefer", "--prefer", BOTH, false},
    {"avoid", "--avoid", BOTH, false},
    {"no-display", "--no-display", BOTH, true},
    {"same-node", "--same-node", BOTH, true},
    {"nvlink", "--nvlink", BOTH, true},
    {"order", "--order", BOTH, false},
    {"wait", "--wait", BOTH, false},
    {"timeout", "--timeout", RUN, false},
    {"retries", "--retries", RUN, false},
    {"on", "--on", RUN, false},
    {"max-gpu-mem", "--max-gpu-mem", RUN, false},
    {"over", "--over", RUN, false},
    {"idle-warn", "--idle-warn", RUN, false},
    {"strict", "--strict", RUN, true},
    {"timeline", "--timeline", RUN, false},
    {"timeline-interval", "--timeline-interval", RUN, false},
    {"mark", "--mark", RUN, false},
    {"nvtx", "--nvtx", RUN, true},
    {"step-match", "--step-match", RUN, false},
    {"flops-per-step", "--flops-per-step", RUN, false},
    {"precision", "--precision", RUN, false},
    {"min", "--min", FIT, false},
    {"max", "--max", FIT, false},
    {"start", "--start", FIT, false},
    {"multiple", "--multiple", FIT, false},
    {"margin", "--margin", FIT, false},
    {"steady", "--steady", FIT, false},
    {"until", "--until", FIT, false},
    {"trial-timeout", "--trial-timeout", FIT, false},
    {"confirm", "--confirm", FIT, false},
    {"fresh", "--fresh", FIT, true},
};

struct load {
    struct gp_pipeline *pipeline;
    enum kind kinds[GP_STEPS_MAX]; /* whose options the step has used so far */
    FILE *file;
    unsigned line;
    bool is_continued; /* the line continues the value of the previous one */
    struct gp_err *err;
    int r;
};

static int fail_at(struct load *load, unsigned line, const char *what, const char *name)
{
    if (load->r == 0)
        load->r = gp_err_set(load->err, GP_EFORMAT, "%.200s:%u: %s '%.*s'", load->pipeline->path,
                             line, what, (int)strcspn(name, "\n"), name);
    return 1; /* inih continues, but only the first error is reported */
}

static int fail(struct load *load, const char *what, const char *name)
{
    return fail_at(load, load->line, what, name);
}

/* inih silently splits longer lines. */
static char *read_line(char *line, int size, void *context)
{
    struct load *load = context;
    char *read = fgets(line, size, load->file);
    load->line++;
    if (!read) /* and the line is as it was, at first with nothing in it */
        return NULL;
    if (!strchr(line, '\n') && !feof(load->file))
        (void)fail(
            load,
            "the line is too long; continue a command on new lines that begin with blanks:", line);
    load->is_continued = isblank((unsigned char)*line);
    const char *text = line + strspn(line, " \t");
    const char *remark = strpbrk(text, ";") ? strstr(text, " ;") : NULL;
    if (*text != ';' && *text != '#' && remark)
        (void)fail(load, "';' after a blank begins a comment; remove the blank before it:", remark);
    return read;
}

/* 1 for yes, 0 for no, −1 for anything else. */
static int yes_or_no(const char *value)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strcasecmp(words[i], value) == 0)
            return (int)(i % 2);
    return -1;
}

static bool add_text(char **list, size_t *count, size_t max, char *text)
{
    if (!text || *count == max) {
        free(text);
        return false;
    }
    list[(*count)++] = text;
    return true;
}

/* Also "all", and docker's "device=0,1". */
static bool is_number(const char *value)
{
    return strcmp(value, "all") == 0 || strncmp(value, "device=", 7) == 0 ||
           (*value && value[strspn(value, "0123456789")] == '\0');
}

static int refuse_ids(struct load *load, const char *value)
{
    char line[300];
    (void)snprintf(line, sizeof(line), "gpu-ids = %s", value);
    return fail(load, "gpus takes a number, not GPU ids; use", line);
}

static const char *next_option(const void *context, size_t i)
{
    (void)context;
    return i < GP_ARRAY_LEN(known_options) ? known_options[i].name : NULL;
}

static int fail_unknown(struct load *load, const char *name)
{
    if (load->r == 0)
        load->r = gp_err_set(load->err, GP_EFORMAT, "%.200s:%u: unknown option of a step '%.60s'%s",
                             load->pipeline->path, load->line, name,
                             gp_cli_hint(name, next_option, NULL).text);
    return 1;
}

static int add_option(struct load *load, struct gp_step *step, const char *name, const char *value)
{
    char *text = NULL;
    if (strcmp(name, "gpus") == 0 && !is_number(value))
        return refuse_ids(load, value);
    for (size_t i = 0; i < GP_ARRAY_LEN(known_options); i++) {
        const struct option *option = &known_options[i];
        if (strcmp(option->name, name) != 0)
            continue;
        load->kinds[step - load->pipeline->steps] &= option->kind;
        if (option->is_flag && yes_or_no(value) < 0)
            return fail(load, "expected yes or no, got", value);
        if (option->is_flag && yes_or_no(value) == 0)
            return 1;
        step->own_options |= option->kind == FIT ? UINT32_C(1) << step->option_count % 32 : 0;
        if (asprintf(&text, option->is_flag ? "%s" : "%s=%s", option->option, value) < 0)
            text = NULL;
        return add_text(step->options, &step->option_count, GP_STEP_OPTIONS, text)
                   ? 1
                   : fail(load, "too many options at", name);
    }
    return fail_unknown(load, name);
}

/* Appends to the existing value, separated by a blank or a comma. */
static bool join(char *text, size_t size, const char *between, const char *value)
{
    size_t n = strlen(text);
    int more = snprintf(text + n, size - n, "%s%s", n > 0 ? between : "", value);
    return (size_t)more < size - n;
}

/* A command may continue on lines that begin with blanks. */
static int add_command(struct load *load, struct gp_step *step, const char *name, const char *value)
{
    struct gp_placeholder unused;
    if (step->command[0] && !load->is_continued)
        return fail(load, "a second command in", step->name);
    step->is_fit = strcmp(name, "fit-batch") == 0;
    if (step->batch_line == 0 && gp_placeholder_next(value, &unused))
        step->batch_line = load->line;
    return join(step->command, sizeof(step->command), " ", value)
               ? 1
               : fail(load, "the command is too long in", step->name);
}

static int add_after(struct load *load, struct gp_step *step, const char *value)
{
    if (!step->has_after)
        step->after_line = load->line;
    step->has_after = true;
    return join(step->after, sizeof(step->after), ",", value)
               ? 1
               : fail(load, "too many values at", value);
}

static int set_folder(struct load *load, struct gp_step *step, const char *value)
{
    int n = snprintf(step->folder, sizeof(step->folder), "%s", value);
    return (size_t)n < sizeof(step->folder) ? 1 : fail(load, "the name is too long:", value);
}

static int add_variable(struct load *load, struct gp_step *step, const char *value)
{
    if (!strchr(value, '='))
        return fail(load, "env: expected NAME=VALUE, got", value);
    return add_text(step->variables, &step->variable_count, GP_STEP_VARIABLES, strdup(value))
               ? 1
               : fail(load, "too many variables at", value);
}

static int set_of_step(struct load *load, struct gp_step *step, const char *name, const char *value)
{
    if (strcmp(name, "command") == 0 || strcmp(name, "fit-batch") == 0)
        return add_command(load, step, name, value);
    if (strcmp(name, "folder") == 0)
        return set_folder(load, step, value);
    if (strcmp(name, "after") == 0)
        return add_after(load, step, value);
    if (strcmp(name, "env") == 0)
        return add_variable(load, step, value);
    return add_option(load, step, name, value);
}

size_t gp_pipeline_find(const struct gp_pipeline *pipeline, const char *name)
{
    for (size_t i = 0; i < pipeline->graph.count; i++)
        if (strcmp(pipeline->steps[i].name, name) == 0)
            return i;
    return GP_STEPS_MAX;
}

/* NULL: too many steps. */
static struct gp_step *add_step(struct load *load, const char *name)
{
    struct gp_pipeline *pipeline = load->pipeline;
    size_t at = gp_pipeline_find(pipeline, name);
    if (at < GP_STEPS_MAX || pipeline->graph.count == GP_STEPS_MAX)
        return at < GP_STEPS_MAX ? &pipeline->steps[at] : NULL;
    struct gp_step *step = &pipeline->steps[pipeline->graph.count];
    load->kinds[pipeline->graph.count++] = BOTH;
    (void)snprintf(step->name, sizeof(step->name), "%s", name);
    step->hash = GP_HASH_INIT;
    return step;
}

static int on_value(void *context, const char *section, const char *name, const char *value)
{
    struct load *load = context;
    if (!*section)
        return fail(load, "expected a [step] before", name);
    if (strcmp(section, "pipeline") == 0) {
        if (strcmp(name, "name") != 0)
            return fail(load, "unknown option of a pipeline", name);
        gp_utf8_copy_safe(load->pipeline->name, sizeof(load->pipeline->name), value);
        return 1;
    }
    if (!gp_step_is_name(section))
        return fail(load,
                    "invalid step name; use up to 63 letters, digits and '_', '-', '.', beginning "
                    "with a letter, a digit or '_':",
                    section);
    struct gp_step *step = add_step(load, section);
    if (!step)
        return fail(load, "too many steps at", section);
    step->hash = gp_hash(gp_hash(step->hash, name), value);
    return set_of_step(load, step, name, value);
}

/* ---- checks across lines ---- */

/* The steps in `after` or, without it, all steps above. */
static uint64_t predecessors_of(struct load *load, size_t at)
{
    static const char separators[] = ", \t";
    const struct gp_step *step = &load->pipeline->steps[at];
    uint64_t set = 0;
    if (!step->has_after)
        return gp_step_bit(at) - 1;
    for (const char *p = step->after; *(p += strspn(p, separators));) {
        char name[GP_STEP_NAME_SIZE + 1]; /* one byte more: a longer name cannot be a step's */
        size_t n = strcspn(p, separators);
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, p);
        p += n;
        size_t found = gp_pipeline_find(load->pipeline, name);
        if (found == GP_STEPS_MAX)
            (void)fail_at(load, step->after_line, "no such step:", name);
        else
            set |= gp_step_bit(found);
    }
    return set;
}

static void connect(struct load *load)
{
    struct gp_steps *graph = &load->pipeline->graph;
    char names[200] = "";
    uint64_t cycle;
    for (size_t i = 0; i < graph->count; i++)
        graph->after[i] = predecessors_of(load, i);
    if (gp_steps_close(graph, &cycle) || load->r < 0)
        return;
    unsigned line = 0;
    for (size_t i = 0; i < graph->count; i++) {
        const struct gp_step *step = &load->pipeline->steps[i];
        if (!gp_steps_has(cycle, i))
            continue;
        line = line ? line : step->after_line;
        (void)join(names, sizeof(names), ", ", step->name);
    }
    (void)fail_at(load, line, "these steps wait for each other:", names);
}

size_t gp_pipeline_fit_of(const struct gp_pipeline *pipeline, size_t step, const char *name)
{
    size_t found = GP_STEPS_MAX;
    size_t count = 0;
    for (size_t i = 0; i < pipeline->graph.count; i++) {
        const struct gp_step *s = &pipeline->steps[i];
        if (!s->is_fit || !gp_steps_has(pipeline->graph.before[step], i) ||
            (*name && strcmp(s->name, name) != 0))
            continue;
        found = i;
        count++;
    }
    return count == 1 ? found : GP_STEPS_MAX;
}

static void check_placeholders(struct load *load, size_t at)
{
    const struct gp_step *step = &load->pipeline->steps[at];
    struct gp_placeholder p;
    for (const char *text = step->command; gp_placeholder_next(text, &p); text = p.at + p.length) {
        if (gp_pipeline_fit_of(load->pipeline, at, p.name) != GP_STEPS_MAX)
            continue;
        (void)fail_at(load, step->batch_line,
                      *p.name ? "not a fit-batch step that it runs after:"
                              : "{batch} needs exactly one fit-batch step before it; with several "
                                "use {batch:NAME}, in",
                      *p.name ? p.name : step->name);
    }
}

static int check_step(struct load *load, size_t at)
{
    const struct gp_step *step = &load->pipeline->steps[at];
    const char *path = load->pipeline->path;
    if (!step->command[0])
        return gp_err_set(load->err, GP_EFORMAT, "%.200s: [%s] has no command", path, step->name);
    if (!(load->kinds[at] & (step->is_fit ? FIT : RUN)))
        return gp_err_set(load->err, GP_EFORMAT,
                          "%.200s: [%s] has options that %s does not support", path, step->name,
                          step->is_fit ? "fit-batch" : "a command");
    if (step->is_fit && !strstr(step->command, "{}"))
        return gp_err_set(load->err, GP_EFORMAT,
                          "%.200s: [%s] needs {} in its command in place of the batch size", path,
                          step->name);
    check_placeholders(load, at);
    return load->r;
}

const char *gp_step_option(const struct gp_step *step, const char *option)
{
    return gp_list_value((const char *const *)step->options, step->option_count, option);
}

static int read_file(struct load *load)
{
    struct gp_pipeline *pipeline = load->pipeline;
    int line = ini_parse_stream(read_line, load, on_value, load);
    if (load->r == 0 && line != 0)
        return gp_err_set(load->err, GP_EFORMAT, "%.200s:%d: expected [step] or name = value",
                          pipeline->path, line);
    if (load->r == 0 && pipeline->graph.count == 0)
        return gp_err_set(load->err, GP_EFORMAT, "%.200s: no [step] section", pipeline->path);
    if (load->r == 0)
        connect(load);
    for (size_t i = 0; load->r == 0 && i < pipeline->graph.count; i++)
        load->r = check_step(load, i);
    return load->r;
}

static int open_file(FILE **ret, const char *path, char real[PATH_MAX], struct gp_err *err)
{
    struct stat st;
    *ret = fopen(path, "re");
    if (!*ret || !realpath(path, real) || fstat(fileno(*ret), &st) != 0)
        return gp_err_system(err, errno, GP_EIO, "cannot read '%s'", path);
    return S_ISDIR(st.st_mode)
               ? gp_err_set(err, GP_EUSAGE, "'%s' is a directory; --pipeline needs a file", path)
               : 0;
}

int gp_pipeline_load(struct gp_pipeline **ret, const char *path, struct gp_err *err)
{
    struct gp_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    FILE *file = NULL;
    char real[PATH_MAX];
    *ret = NULL;
    int r =
        pipeline ? open_file(&file, path, real, err) : gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r == 0) {
        const char *base = strrchr(real, '/');
        struct load load = {.pipeline = pipeline, .file = file, .err = err};
        (void)snprintf(pipeline->path, sizeof(pipeline->path), "%s", real);
        gp_utf8_copy_safe(pipeline->name, sizeof(pipeline->name), base + 1);
        (void)snprintf(pipeline->folder, sizeof(pipeline->folder), "%.*s", (int)(base - real),
                       real);
        r = read_file(&load);
    }
    if (file)
        (void)fclose(file);
    if (r < 0)
        gp_pipeline_free(pipeline);
    else
        *ret = pipeline;
    return r;
}

void gp_pipeline_free(struct gp_pipeline *pipeline)
{
    for (size_t i = 0; pipeline && i < pipeline->graph.count; i++) {
        struct gp_step *step = &pipeline->steps[i];
        for (size_t k = 0; k < step->option_count; k++)
            free(step->options[k]);
        for (size_t k = 0; k < step->variable_count; k++)
            free(step->variables[k]);
    }
    free(pipeline);
}
