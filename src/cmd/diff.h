/* The options of gpulse diff, for the command and the program behind it. */
#ifndef GP_CMD_DIFF_H
#define GP_CMD_DIFF_H

#include "base/cli.h"

struct gp_diff_options {
    const char *format;
    bool all;
};

extern const struct gp_opt gp_diff_table[];

#endif
