#include "sim/tool.h"

#include "base/err.h"
#include "sim/import.h"

struct options {
    const char *output;
    const char *overlay;
};

static const struct gp_opt options[] = {
    {'o', "output", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = offsetof(struct options, output),
     .help = "write to FILE instead of standard output"},
    {'w', "workload", "overlay", GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = offsetof(struct options, overlay),
     .help =
         "JSON to merge into the machine: workload, host, faults, seed, latency_us, source, about, "
         "answers, gpus (answers by index)"},
    GP_OPT_END,
};

static int run(int argc, char **argv, struct gp_err *err)
{
    struct options o = {0};
    const struct gp_opt_target target = {options, &o};
    int positional;
    int result = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, err);
    if (result == GP_OK && positional != 1)
        result =
            gp_err_set(err, GP_EUSAGE,
                       "import needs one capture: the output of nvidia-smi -q -x or nvidia-smi -q");
    json_t *machine = NULL;
    if (result == GP_OK)
        result = sim_import(argv[1], &machine, err);
    if (result == GP_OK && o.overlay)
        result = sim_import_overlay(machine, o.overlay, err);
    if (result == GP_OK)
        result = sim_tool_write_json(o.output, machine, err);
    json_decref(machine);
    return result;
}

const struct gp_cmd sim_cmd_import = {
    .name = "import",
    .summary = "create a machine file from nvidia-smi's output",
    .usage = "CAPTURE [options]",
    .description = "Reads the output of nvidia-smi from any machine and writes a machine file with "
                   "the same answers. It supports the XML of `nvidia-smi -q -x`, the text of "
                   "`nvidia-smi -q` (also limited to sections, -d POWER,CLOCK), and the CSV of "
                   "`nvidia-smi --query-gpu=… --format=csv` with its header, if the fields include "
                   "pci.bus_id. The simulated driver answers NOT_SUPPORTED for values that are "
                   "missing in the capture.",
    .examples = "gpulse sim import capture.xml -o mine.json\tconvert a capture\n"
                "gpulse --sim ./mine.json status\tshow that machine\n",
    .options = options,
    .complete = GP_COMPLETE_FILE,
    .run = run,
};
