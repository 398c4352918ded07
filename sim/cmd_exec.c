#include "sim/tool.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *machine;
    bool still;
};

static const struct gp_opt options[] = {
    SIM_MACHINE_OPTION(options, machine),
    {0, "still", NULL, GP_OPT_FLAG, .offset = offsetof(struct options, still),
     .help = "freeze the simulated values"},
    GP_OPT_END,
};

static int prepare_environment(const struct options *o, const char *spec, struct gp_err *err)
{
    char home[GP_PATH_SIZE], path[2 * GP_PATH_SIZE];
    const char *old = getenv("LD_LIBRARY_PATH");
    int result = sim_tool_home(home, err);
    if (result < 0)
        return result;
    int n = snprintf(path, sizeof(path), "%s%s%s", home, old && *old ? ":" : "", old ? old : "");
    if (n < 0 || (size_t)n >= sizeof(path))
        return gp_err_set(err, GP_EUSAGE, "LD_LIBRARY_PATH is too long");
    if (setenv("LD_LIBRARY_PATH", path, 1) < 0 || setenv("GPULSE_SIM", spec, 1) < 0 ||
        (o->still && setenv("GPULSE_SIM_STILL", "1", 1) < 0))
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    return GP_OK;
}

static int run(int argc, char **argv, struct gp_err *err)
{
    struct options o = {0};
    const struct gp_opt_target target = {options, &o};
    struct sim_machine *machine;
    const char *spec;
    int positional;
    int result = gp_cli_parse(argc, argv, &target, 1, true, &positional, NULL, err);
    if (result == GP_OK && positional == 0)
        result = gp_err_set(err, GP_EUSAGE,
                            "missing program; usage: gpulse sim exec [options] -- PROGRAM");
    /* Checks the name here, because the program would only report a missing driver. */
    if (result == GP_OK)
        result = sim_tool_open(o.machine, &spec, &machine, NULL, err);
    if (result < 0)
        return result;
    sim_machine_free(machine);
    result = prepare_environment(&o, spec, err);
    if (result < 0)
        return result;

    char **args = calloc((size_t)positional + 1, sizeof(*args));
    if (!args)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    memcpy(args, argv + 1, (size_t)positional * sizeof(*args));
    (void)execvp(args[0], args);
    result = gp_err_set(err, GP_EFAIL, "cannot run '%s': %s", args[0], strerror(errno));
    free(args);
    return result;
}

const struct gp_cmd sim_cmd_exec = {
    .name = "exec",
    .summary = "run an NVML program on a simulated machine",
    .usage = "[options] -- PROGRAM [ARGUMENTS]",
    .description = "The program loads the simulated libnvidia-ml.so.1 instead of the driver's. It "
                   "must load the library at run time, as nearly all programs do.",
    .examples = "gpulse sim exec -m h100x8 -- nvtop\trun another monitor on eight H100s\n",
    .options = options,
    .complete = GP_COMPLETE_COMMAND,
    .raw_rest = true,
    .run = run,
};
