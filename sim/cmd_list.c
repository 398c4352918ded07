#include "sim/tool.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODEL_COLUMNS = 22 /* if space is limited */ };

static int is_machine(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

static const char *text_of(const struct sim_value *v)
{
    return v->code == NVML_SUCCESS ? v->text : "-";
}

/* The driver's version, which is a part of most descriptions, is shown if space is unlimited. */
static void add_row(struct gp_strbuf *sb, const char *name, const char *gpus, const char *model,
                    const char *driver, const char *about, size_t room)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 16);
    if (room > 0) {
        static const char maker[] = "NVIDIA ";
        struct gp_strbuf cut = GP_STRBUF_INIT(256);
        model += strncmp(model, maker, strlen(maker)) == 0 ? strlen(maker) : 0;
        gp_utf8_add_safe(&cut, model, strlen(model), MODEL_COLUMNS);
        gp_strbuf_addf(&line, "%-14s %4s  ", name, gpus);
        gp_utf8_add_padded(&line, cut.buf ? cut.buf : "", MODEL_COLUMNS, false);
        gp_strbuf_fini(&cut);
    } else {
        gp_strbuf_addf(&line, "%-14s %4s  %-36s %-12s", name, gpus, model, driver);
    }
    gp_strbuf_addc(&line, ' ');
    gp_utf8_add_safe(&line, about, strlen(about), 400);
    gp_utf8_add_line(sb, line.buf, line.len, room);
    gp_strbuf_fini(&line);
}

/* The first device stands for all: "model". */
static json_t *object_of(const char *name, const struct sim_machine *machine)
{
    const struct sim_value *model = &machine->devices[0].answers[SIM_NAME];
    return json_pack("{s:s, s:I, s:s?, s:s?, s:s?, s:s?}", "name", name, "gpus",
                     (json_int_t)machine->device_count, "model",
                     model->code == NVML_SUCCESS ? model->text : NULL, "driver",
                     machine->driver_version, "about", machine->about, "source",
                     machine->source[0] ? machine->source : NULL);
}

/* Adds one line, or an object to `list`. A file that cannot be loaded is reported in its place, and
 * does not hide the others. */
static void add_line(struct gp_strbuf *sb, json_t *list, const char *dir, const char *file)
{
    char path[GP_PATH_SIZE], name[64], gpus[24];
    struct sim_machine *machine;
    struct gp_err err = {0};
    (void)snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - 5), file);
    int n = snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (n < 0 || (size_t)n >= sizeof(path))
        return;
    if (sim_machine_load(path, 0, &machine, &err) < 0) {
        if (list)
            (void)json_array_append_new(list,
                                        json_pack("{s:s, s:s}", "name", name, "error", err.text));
        else
            gp_strbuf_addf(sb, "%-14s %s\n", name, err.text);
        return;
    }
    (void)snprintf(gpus, sizeof(gpus), "%zu", machine->device_count);
    if (list)
        (void)json_array_append_new(list, object_of(name, machine));
    else
        add_row(sb, name, gpus, text_of(&machine->devices[0].answers[SIM_NAME]),
                machine->driver_version ? machine->driver_version : "-",
                machine->about ? machine->about : machine->source, gp_io_columns());
    sim_machine_free(machine);
}

struct list_options {
    const char *format;
};

static const struct gp_opt options[] = {
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "table json",
     .offset = offsetof(struct list_options, format),
     .help = "output format (default table); json includes the source of each machine"},
    GP_OPT_END,
};

static int run(int argc, char **argv, struct gp_err *err)
{
    struct list_options o = {.format = "table"};
    const struct gp_opt_target target = {options, &o};
    char home[GP_PATH_SIZE], dir[GP_PATH_SIZE];
    int positional;
    int result = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, err);
    if (result == GP_OK && positional > 0)
        result = gp_err_set(err, GP_EUSAGE, "list takes no arguments");
    if (result == GP_OK)
        result = sim_tool_home(home, err);
    if (result == GP_OK)
        result = sim_machine_directory(home, dir, sizeof(dir), err);
    if (result < 0)
        return result;

    struct dirent **entries;
    int count = scandir(dir, &entries, is_machine, alphasort);
    if (count < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot read '%s'", dir);
    json_t *list = strcmp(o.format, "json") == 0 ? json_array() : NULL;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (!list)
        add_row(&sb, "NAME", "GPUS", "MODEL", "DRIVER", "ABOUT", gp_io_columns());
    for (int i = 0; i < count; i++) {
        add_line(&sb, list, dir, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (list) {
        result = sim_tool_write_json(NULL, list, err);
        json_decref(list);
        gp_strbuf_fini(&sb);
        return result;
    }
    return sim_tool_print(&sb, err);
}

const struct gp_cmd sim_cmd_list = {
    .name = "list",
    .summary = "list the built-in machines",
    .description =
        "A name may be followed by a number of GPUs: h100x2 has two, h100x72 has 72. After a "
        "comma, a driver from 418 to 610 may be given: h100,driver=470 or h100,driver=535.43.",
    .options = options,
    .examples = "gpulse sim list\tshow names, GPUs, drivers, and what each machine is\n"
                "gpulse --sim h100x16 status\tsimulate sixteen H100s\n",
    .run = run,
};
