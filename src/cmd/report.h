/* The options of gpulse report, for the command and the program behind it. */
#ifndef GP_CMD_REPORT_H
#define GP_CMD_REPORT_H

#include "base/cli.h"

struct gp_report_options {
    const char *since, *until;
    const char *by;    /* NULL: the default */
    const char *users, *groups; /* NULL: all */
    uint64_t idle_held_ns;
    const char *price;
    const char *format; /* NULL: text */
    const char *file;   /* NULL: standard output */
};

#define GP_REPORT_FORMATS "text json csv markdown html"
#define GP_REPORT_TABLES "gpu user group job container program process wait"

extern const struct gp_opt gp_report_option_table[];

#endif
