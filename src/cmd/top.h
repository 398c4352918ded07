/* gpulse top: its options, which gpulse knows for help and completion and gpulse-top obeys. */
#ifndef GP_CMD_TOP_H
#define GP_CMD_TOP_H

#include "base/cli.h"

struct gp_top_options {
    uint64_t interval_ns;
    const char *filter, *sort, *view;
    bool blocks, ascii, read_only, no_gpus, no_processes, plain;
    uint64_t count;
};

extern const struct gp_opt gp_top_table[];

#endif
