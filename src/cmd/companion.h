/* Commands that are separate programs, because they need libraries or tables that no other command
 * does. */
#ifndef GP_CMD_COMPANION_H
#define GP_CMD_COMPANION_H

#include "base/cli.h"

struct gp_err;

/* Replaces this process with the program `program`, passing these arguments and the common options
 * before the command. Parses them first, so that errors and --help are handled here; `values` is
 * the options struct of the command. Returns only if there is nothing left to do, or on error;
 * `takes_words` says whether it accepts positional arguments. */
int gp_companion_run(const struct gp_cmd *cmd, const char *program, void *values, bool takes_words,
                     int argc, char **argv, struct gp_err *err) GP_MUST_CHECK;

#endif
