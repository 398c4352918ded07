#include "sim/tool.h"

#include "base/err.h"
#include "sim/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *output;
    const char *overlay;
};

static const struct gp_opt options[] = {
    {'o', "output", NULL, GP_OPT_STRING, "FILE", NULL, NULL, GP_COMPLETE_FILE,
     offsetof(struct options, output), "write there instead of to standard output"},
    {'w', "workload", "overlay", GP_OPT_STRING, "FILE", NULL, NULL, GP_COMPLETE_FILE,
     offsetof(struct options, overlay),
     "JSON laid over the machine: workload, faults, seed, latency_us, source, answers"},
    GP_OPT_END,
};

static int write_text(const char *path, const char *text, struct gp_err *err)
{
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : STDOUT_FILENO;
    if (fd < 0)
        return gp_err_set(err, GP_EIO, "cannot create '%s': %s", path, strerror(errno));
    int r = gp_io_write_all(fd, text, strlen(text));
    if (r == 0)
        r = gp_io_write_all(fd, "\n", 1);
    if (path && close(fd) < 0 && r == 0)
        r = -errno;
    if (r < 0)
        return gp_err_set(err, GP_EIO, "cannot write %s: %s", path ? path : "the machine",
                          strerror(-r));
    return GP_OK;
}

static int run(int argc, char **argv, struct gp_err *err)
{
    struct options o = {0};
    const struct gp_opt_target target = {options, &o};
    int positional;
    int result = gp_cli_parse(argc, argv, &target, 1, false, &positional, err);
    if (result == GP_OK && positional != 1)
        result = gp_err_set(err, GP_EUSAGE,
                            "import needs one capture: the output of "
                            "nvidia-smi -q -x, or of nvidia-smi -q");
    json_t *machine = NULL;
    if (result == GP_OK)
        result = sim_import(argv[1], &machine, err);
    if (result == GP_OK && o.overlay)
        result = sim_import_overlay(machine, o.overlay, err);
    if (result == GP_OK) {
        char *text = json_dumps(machine, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        result =
            text ? write_text(o.output, text, err) : gp_err_set(err, GP_ENOMEM, "out of memory");
        free(text);
    }
    json_decref(machine);
    return result;
}

const struct gp_cmd sim_cmd_import = {
    .name = "import",
    .summary = "make a machine file from an nvidia-smi capture",
    .usage = "CAPTURE [options]",
    .description =
        "Reads what nvidia-smi printed on any machine and writes the machine file that answers "
        "the same. It knows the XML of `nvidia-smi -q -x`, the text of `nvidia-smi -q` (also "
        "sections, -d POWER,CLOCK) and the CSV of `nvidia-smi --query-gpu=… --format=csv` with "
        "its header, if pci.bus_id is among the fields. What the capture does not tell is "
        "NOT_SUPPORTED.",
    .examples = "gpulse sim import capture.xml -o mine.json\tconvert a capture\n"
                "gpulse --sim ./mine.json status\tlook at that machine\n",
    .options = options,
    .complete = GP_COMPLETE_FILE,
    .run = run,
};
