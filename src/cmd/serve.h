/* What gpulse serve and gpulse-serve share. */
#ifndef GP_CMD_SERVE_H
#define GP_CMD_SERVE_H

#include "base/cli.h"

struct gp_serve_options {
    bool stdio;
};

extern const struct gp_opt gp_serve_table[];

#endif
