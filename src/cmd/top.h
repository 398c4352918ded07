/* gpulse top: its options, used by gpulse for help and completion and by gpulse-top itself. */
#ifndef GP_CMD_TOP_H
#define GP_CMD_TOP_H

#include "base/cli.h"
#include "cmd/proc_choice.h"
#include "tui/prefs.h"

struct gp_top_options {
    const char *prefs[GP_PREF__COUNT]; /* as given on the command line; NULL: not given */
    struct gp_proc_choice choice;
    const char *config;
    bool plain, on_change, guide;
    const char *speed; /* of a recording; NULL: 1 */
    uint64_t count;
};

extern const struct gp_opt gp_top_table[];

/* The value of --speed; false: it is none. */
bool gp_top_parse_speed(const char *text, double *ret);

#endif
