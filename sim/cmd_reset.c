/* gpulse sim reset: simulates a reboot or a reset of the GPUs. */
#include "sim/tool.h"

#include "base/err.h"
#include "sim/client.h"

struct options {
    const char *machine;
};

#define OPT(field) offsetof(struct options, field)

static const struct gp_opt options[] = {
    {'m', "machine", NULL, GP_OPT_STRING, "MACHINE", .complete = GP_COMPLETE_MACHINE,
     .offset = OPT(machine), .help = "the machine (default: $GPULSE_SIM)"},
    GP_OPT_END,
};

static int run(int argc, char **argv, struct gp_err *err)
{
    struct options o = {0};
    const struct gp_opt_target target = {options, &o};
    struct sim_machine *machine = NULL;
    struct sim_state *state = NULL;
    const char *spec;
    int positional;
    int result = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, err);
    if (result == GP_OK && positional > 0)
        result = gp_err_set(err, GP_EUSAGE, "unexpected argument '%s'", argv[1]);
    if (result == GP_OK)
        result = sim_tool_open(o.machine, &spec, &machine, &state, err);
    if (result == GP_OK)
        result = sim_state_lock(state, err);
    if (result == GP_OK) {
        const struct sim_live live = {.machine = machine, .state = state};
        sim_setting_reboot(&live);
        sim_state_unlock(state);
    }
    sim_state_close(state);
    sim_machine_free(machine);
    return result;
}

const struct gp_cmd sim_cmd_reset = {
    .name = "reset",
    .summary = "reboot a simulated machine: pending modes take effect, other settings are lost",
    .usage = "[options]",
    .description = "Pending ECC and MIG modes take effect. Power limits, clocks, fans, persistence "
                   "mode and MIG instances are reset. Faults and jobs stay.",
    .examples = "gpulse sim reset -m h100x8\tsimulate a reboot\n",
    .options = options,
    .run = run,
};
