#include "sim/tool.h"

#include "base/err.h"
#include "sim/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *output;
    const char *library;
    const char *machine;
    uint64_t timeout_ns;
    bool still;
    bool latency;
    bool redact;
};

static const struct gp_opt options[] = {
    {'o', "output", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = offsetof(struct options, output),
     .help = "write to FILE instead of standard output"},
    {0, "library", NULL, GP_OPT_STRING, "PATH", .complete = GP_COMPLETE_FILE,
     .offset = offsetof(struct options, library),
     .help = "path of the driver's library (default: same search as gpulse)"},
    SIM_MACHINE_OPTION(options, machine),
    {0, "still", NULL, GP_OPT_FLAG, .offset = offsetof(struct options, still),
     .help = "freeze the simulated values"},
    {0, "redact", NULL, GP_OPT_FLAG, .offset = offsetof(struct options, redact),
     .help = "replace serial numbers and UUIDs, and omit process names"},
    {0, "latency", NULL, GP_OPT_FLAG, .offset = offsetof(struct options, latency),
     .help = "also record the duration of calls"},
    {0, "timeout", NULL, GP_OPT_DURATION, "TIME", .offset = offsetof(struct options, timeout_ns),
     .help = "time limit of a call (default 10s)"},
    GP_OPT_END,
};

/* The simulated driver if a machine is given, otherwise the real one. */
static int choose_library(struct options *o, char path[GP_PATH_SIZE + 32], struct gp_err *err)
{
    const char *spec = o->machine ? o->machine : getenv("GPULSE_SIM");
    char home[GP_PATH_SIZE];
    if (o->library || !spec || !*spec)
        return GP_OK;
    int result = sim_tool_home(home, err);
    if (result < 0)
        return result;
    (void)snprintf(path, GP_PATH_SIZE + 32, "%s/libnvidia-ml.so.1", home);
    o->library = path;
    if (setenv("GPULSE_SIM", spec, 1) < 0 || setenv("GPULSE_SIM_QUIET", "1", 1) < 0 ||
        (o->still && setenv("GPULSE_SIM_STILL", "1", 1) < 0))
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    return GP_OK;
}

static void report_notes(const json_t *machine)
{
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(machine, "notes"), i, note)(void)
        fprintf(stderr, "gpulse sim: note: %s\n", json_string_value(note));
}

static int run(int argc, char **argv, struct gp_err *err)
{
    struct options o = {.timeout_ns = 10 * GP_NS_PER_S};
    const struct gp_opt_target target = {options, &o};
    char path[GP_PATH_SIZE + 32];
    int positional;
    int result = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, err);
    if (result == GP_OK && positional > 0)
        result = gp_err_set(err, GP_EUSAGE, "unexpected argument; use -o to name the file");
    if (result == GP_OK)
        result = choose_library(&o, path, err);
    if (result < 0)
        return result;

    const struct rec_config config = {
        .library = o.library, .timeout_ns = o.timeout_ns, .latency = o.latency, .redact = o.redact};
    json_t *machine = NULL;
    bool stuck = false;
    result = rec_machine(&config, &machine, &stuck, err);
    if (result == GP_OK)
        result = sim_tool_write_json(o.output, machine, err);
    if (result == GP_OK)
        report_notes(machine);
    json_decref(machine);
    /* While a call hangs, the driver must not be shut down. */
    if (stuck) {
        if (result != GP_OK)
            gp_io_print_error("gpulse sim", err);
        _exit(gp_err_exit_status(result));
    }
    return result;
}

const struct gp_cmd sim_cmd_record = {
    .name = "record",
    .summary = "record all answers of a driver in a machine file",
    .usage = "[options]",
    .description = "Queries the driver of this computer (or a simulated one) for everything that a "
                   "machine file can contain: values, return codes, processes, MIG devices, and "
                   "missing functions. The file simulates this machine on any other. A call that "
                   "hangs is recorded as such, and recording continues.",
    .examples = "gpulse sim record -o mine.json\trecord this computer's GPUs\n"
                "gpulse sim record --redact -o report.json\trecord for a bug report\n"
                "gpulse --sim ./mine.json status\tshow the recorded machine\n",
    .options = options,
    .run = run,
};
