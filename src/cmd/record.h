/* The options of gpulse record, for the command and the program behind it. */
#ifndef GP_CMD_RECORD_H
#define GP_CMD_RECORD_H

#include "base/cli.h"

/* The recording of the machine, see data/systemd/system. */
#define GP_RECORD_SHARED_FILE "/var/lib/gpulse/gpulse.tape"

struct gp_record_options {
    const char *file;     /* NULL: the user's own recording */
    uint64_t interval_ns; /* 0: not given */
    uint64_t duration_ns;
    uint64_t keep_ns;
    uint64_t size;
    uint64_t age_ns;
    const char *before; /* a duration that may be 0; NULL: not given */
    const char *start;  /* of an import */
    bool shared;
    bool quiet;
};

extern const struct gp_opt gp_record_table[];

#endif
