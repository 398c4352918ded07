/* gpulse doctor: its options. gpulse uses them for help and completion, gpulse-doctor parses them.
 */
#ifndef GP_CMD_DOCTOR_H
#define GP_CMD_DOCTOR_H

#include "base/cli.h"

struct gp_doctor_options {
    const char *only, *without; /* comma lists of checks and groups */
    const char *python;         /* comma list of interpreters or environments */
    const char *bundle;
    const char *tables;       /* a folder; NULL: the newest */
    const char *gpu, *driver; /* that advice is for, instead of this machine's */
    const char *format;
    bool json, verbose, list, sources, watch_log, yes, all, no_look, stats;
};

extern const struct gp_opt gp_doctor_table[];

#endif
