/* A command that is its own program, because it needs libraries or tables that nobody else does. */
#ifndef GP_CMD_COMPANION_H
#define GP_CMD_COMPANION_H

#include "base/cli.h"

struct gp_err;

/* Becomes the companion `program`, with these words and the common options that stood before the
 * command. First parses them for the command, so that a wrong one is found, and --help answered,
 * here; `values` is its options struct. Returns only where nothing is left to do, or with an error;
 * `takes_words` says whether positional arguments are its business. */
int gp_companion_run(const struct gp_cmd *cmd, const char *program, void *values, bool takes_words,
                     int argc, char **argv, struct gp_err *err) GP_MUST_CHECK;

#endif
