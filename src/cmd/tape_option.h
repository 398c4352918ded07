/* The options --tape and --at of commands that also show recordings. */
#ifndef GP_CMD_TAPE_OPTION_H
#define GP_CMD_TAPE_OPTION_H

#include "base/cli.h"

struct gp_err;
struct gp_source;

/* Whether --tape applies to this command, together with the option named `other` (NULL: none).
 * GP_EUSAGE. */
int gp_tape_check_option(const struct gp_cmd *cmd, const char *other,
                         struct gp_err *err) GP_MUST_CHECK;

/* Opens the recording at the time `at` (NULL: its end). GP_EUSAGE: that is no time; and as of
 * gp_tape_source_open. */
int gp_tape_open_option(const char *file, const char *at, struct gp_source **ret,
                        struct gp_err *err) GP_MUST_CHECK;

#endif
