#include "cmd/pipeline.h"

#include "base/err.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a step may have of the options of gpulse run. */
static const struct option {
    const char *name, *option;
    bool is_flag;
} known_options[] = {
    {"gpus", "--gpus", false},
    {"gpu-ids", "--gpu-ids", false},
    {"ids", "--id", false},
    {"mem", "--mem", false},
    {"total", "--total", false},
    {"share", "--share", true},
    {"max-load", "--max-load", false},
    {"max-temp", "--max-temp", false},
    {"prefer", "--prefer", false},
    {"avoid", "--avoid", false},
    {"no-display", "--no-display", true},
    {"same-node", "--same-node", true},
    {"nvlink", "--nvlink", true},
    {"order", "--order", false},
    {"wait", "--wait", false},
    {"timeout", "--timeout", false},
    {"retries", "--retries", false},
    {"on", "--on", false},
    {"max-gpu-mem", "--max-gpu-mem", false},
    {"over", "--over", false},
    {"idle-warn", "--idle-warn", false},
    {"strict", "--strict", true},
};

struct load {
    struct gp_pipeline *pipeline;
    FILE *file;
    unsigned line;
    bool is_continued; /* the line goes on with the value before */
    struct gp_err *err;
    int r;
};

static int fail(struct load *load, const char *what, const char *name)
{
    if (load->r == 0)
        load->r = gp_err_set(load->err, GP_EFORMAT, "%.200s:%u: %s '%.*s'", load->pipeline->path,
                             load->line, what, (int)strcspn(name, "\n"), name);
    return 1; /* inih goes on, and the first error counts */
}

/* inih cuts longer lines in two without a word. */
static char *read_line(char *line, int size, void *context)
{
    struct load *load = context;
    char *read = fgets(line, size, load->file);
    load->line++;
    if (read && !strchr(line, '\n') && !feof(load->file))
        (void)fail(load,
                   "this line is too long; the rest of a command goes on new lines that begin "
                   "with blanks:",
                   line);
    load->is_continued = isblank((unsigned char)*line);
    const char *text = line + strspn(line, " \t");
    const char *remark = strpbrk(text, ";") ? strstr(text, " ;") : NULL;
    if (read && *text != ';' && *text != '#' && remark)
        (void)fail(
            load, "a ';' behind a blank begins a remark here; write it without the blank:", remark);
    return read;
}

/* 1, 0, or −1 for neither. */
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

static int add_option(struct load *load, struct gp_step *step, const char *name, const char *value)
{
    char *text = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(known_options); i++) {
        const struct option *option = &known_options[i];
        if (strcmp(option->name, name) != 0)
            continue;
        if (option->is_flag && yes_or_no(value) < 0)
            return fail(load, "yes or no is wanted, not", value);
        if (option->is_flag && yes_or_no(value) == 0)
            return 1;
        if (asprintf(&text, option->is_flag ? "%s" : "%s=%s", option->option, value) < 0)
            text = NULL;
        return add_text(step->options, &step->option_count, GP_STEP_OPTIONS, text)
                   ? 1
                   : fail(load, "there is no room for", name);
    }
    return fail(load, "a step has no", name);
}

/* A command goes on in lines that begin with blanks. */
static int add_command(struct load *load, struct gp_step *step, const char *value)
{
    size_t n = strlen(step->command);
    if (n > 0 && !load->is_continued)
        return fail(load, "there is a command already in", step->name);
    int more =
        snprintf(step->command + n, sizeof(step->command) - n, "%s%s", n > 0 ? " " : "", value);
    return (size_t)more < sizeof(step->command) - n
               ? 1
               : fail(load, "the command is too long in", step->name);
}

static int set_of_step(struct load *load, struct gp_step *step, const char *name, const char *value)
{
    if (strcmp(name, "command") == 0)
        return add_command(load, step, value);
    if (strcmp(name, "folder") == 0) {
        (void)snprintf(step->folder, sizeof(step->folder), "%s", value);
        return 1;
    }
    if (strcmp(name, "env") != 0)
        return add_option(load, step, name, value);
    if (!strchr(value, '='))
        return fail(load, "env takes NAME=VALUE, not", value);
    return add_text(step->variables, &step->variable_count, GP_STEP_VARIABLES, strdup(value))
               ? 1
               : fail(load, "there is no room for", value);
}

static struct gp_step *find_step(struct gp_pipeline *pipeline, const char *name)
{
    for (size_t i = 0; i < pipeline->step_count; i++)
        if (strcmp(pipeline->steps[i].name, name) == 0)
            return &pipeline->steps[i];
    if (pipeline->step_count == GP_PIPELINE_STEPS)
        return NULL;
    struct gp_step *step = &pipeline->steps[pipeline->step_count++];
    (void)snprintf(step->name, sizeof(step->name), "%s", name);
    step->hash = GP_HASH_INIT;
    return step;
}

/* It names a folder, and is shown. */
static bool is_name(const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p == '/' || (unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    return *name && *name != '.';
}

static int on_value(void *context, const char *section, const char *name, const char *value)
{
    struct load *load = context;
    if (!*section)
        return fail(load, "a [step] must come before", name);
    if (strcmp(section, "pipeline") == 0) {
        if (strcmp(name, "name") != 0)
            return fail(load, "a pipeline has no", name);
        (void)snprintf(load->pipeline->name, sizeof(load->pipeline->name), "%s", value);
        return 1;
    }
    if (!is_name(section))
        return fail(
            load,
            "a step's name has neither '/' nor control characters nor a '.' in front:", section);
    struct gp_step *step = find_step(load->pipeline, section);
    if (!step)
        return fail(load, "there is no room for", section);
    step->hash = gp_hash(gp_hash(step->hash, name), value);
    return set_of_step(load, step, name, value);
}

static int read_file(struct load *load)
{
    struct gp_pipeline *pipeline = load->pipeline;
    int line = ini_parse_stream(read_line, load, on_value, load);
    if (load->r == 0 && line != 0)
        return gp_err_set(load->err, GP_EFORMAT, "%.200s:%d: neither [step] nor name = value",
                          pipeline->path, line);
    if (load->r == 0 && pipeline->step_count == 0)
        return gp_err_set(load->err, GP_EFORMAT, "%.200s: there is no [step] in it",
                          pipeline->path);
    for (size_t i = 0; load->r == 0 && i < pipeline->step_count; i++)
        if (!pipeline->steps[i].command[0])
            return gp_err_set(load->err, GP_EFORMAT, "%.200s: [%s] has no command", pipeline->path,
                              pipeline->steps[i].name);
    return load->r;
}

int gp_pipeline_load(struct gp_pipeline **ret, const char *path, struct gp_err *err)
{
    struct gp_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    FILE *file = fopen(path, "re");
    char real[PATH_MAX];
    int r = 0;
    *ret = NULL;
    if (!pipeline)
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    else if (!file || !realpath(path, real))
        r = gp_err_set(err, GP_EIO, "cannot read '%s': %s", path, strerror(errno));
    if (r == 0) {
        const char *base = strrchr(real, '/');
        struct load load = {.pipeline = pipeline, .file = file, .err = err};
        (void)snprintf(pipeline->path, sizeof(pipeline->path), "%s", real);
        (void)snprintf(pipeline->name, sizeof(pipeline->name), "%.100s", base + 1);
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
    for (size_t i = 0; pipeline && i < pipeline->step_count; i++) {
        struct gp_step *step = &pipeline->steps[i];
        for (size_t k = 0; k < step->option_count; k++)
            free(step->options[k]);
        for (size_t k = 0; k < step->variable_count; k++)
            free(step->variables[k]);
    }
    free(pipeline);
}
