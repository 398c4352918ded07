/* The program gpulse-sim: shared by its commands. */
#ifndef GPULSE_SIM_TOOL_H
#define GPULSE_SIM_TOOL_H

#include "base/cli.h"
#include "base/io.h"
#include "sim/machine.h"
#include "sim/state.h"

#include <jansson.h>

extern const struct gp_cmd sim_cmd_list, sim_cmd_import, sim_cmd_exec, sim_cmd_load, sim_cmd_fault,
    sim_cmd_reset, sim_cmd_record, sim_cmd_verify;

/* Directory of this program, which contains the simulated driver and the machines. */
int sim_tool_home(char home[GP_PATH_SIZE], struct gp_err *err);

/* Opens the machine given with -m, or the one in GPULSE_SIM, with its shared state (unless
 * ret_state is NULL). *ret_spec is its name. Free both. */
int sim_tool_open(const char *machine_option, const char **ret_spec,
                  struct sim_machine **ret_machine, struct sim_state **ret_state,
                  struct gp_err *err);

/* Writes a machine file, to standard output if path is NULL. */
int sim_tool_write_json(const char *path, const json_t *json, struct gp_err *err);

/* Writes the text to standard output, and frees it. */
int sim_tool_print(struct gp_strbuf *sb, struct gp_err *err);

/* The common option of these commands. */
#define SIM_MACHINE_OPTION(type, field)                                                            \
    {                                                                                              \
        'm', "machine", NULL, GP_OPT_STRING, "MACHINE",                                            \
            .complete = GP_COMPLETE_MACHINE, .offset = offsetof(struct type, field),               \
            .help = "machine name (h100, h100x8, a100-mig, …) or file (default: $GPULSE_SIM)"    \
    }

#endif
