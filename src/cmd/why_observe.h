/* The observation that gpulse why and gpulse advise share: what their options say, and the loop. */
#ifndef GP_CMD_WHY_OBSERVE_H
#define GP_CMD_WHY_OBSERVE_H

#include "base/cli.h"
#include "why/case.h"

struct gp_err;
struct gp_snapshot;
struct gp_strbuf;

/* Those of both commands; initialize it with GP_OBSERVE_DEFAULTS. */
struct gp_observe_options {
    uint64_t for_ns;
    uint64_t interval_ns;
    bool watch; /* observe again, until interrupted */
    const char *format;
    const char *job; /* ids of a scheduler; NULL: not given */
};

#define GP_OBSERVE_DEFAULTS                                                                        \
    (struct gp_observe_options)                                                                    \
    {                                                                                              \
        .for_ns = 20 * GP_NS_PER_S, .interval_ns = GP_NS_PER_S / 2, .format = "text"               \
    }

/* Adds the report about the GPUs that were observed, as a text about at least one of them; `last`:
 * the last sample. */
typedef int gp_observe_report(const struct gp_observe_options *o, struct gp_strbuf *sb,
                              const struct gp_snapshot *last, const struct gp_why_case *cases,
                              size_t count, struct gp_err *err);

/* Parses the command line of a command that takes at most one process or job, observes, and prints
 * what `report` adds. */
int gp_observe_main(const struct gp_cmd *cmd, int argc, char **argv, struct gp_observe_options *o,
                    gp_observe_report *report, struct gp_err *err) GP_MUST_CHECK;

#endif
