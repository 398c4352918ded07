/* The option --idle, and how the observation of processes is shown. */
#ifndef GP_CMD_PROC_IDLE_H
#define GP_CMD_PROC_IDLE_H

#include "jobs/idle.h"

#define GP_IDLE_ROW(type_of, field)                                                                \
    {                                                                                              \
        0, "idle", NULL, GP_OPT_DURATION, "TIME",                                                  \
            .offset = offsetof(type_of, field),                                                    \
            .help = "only processes that stay idle on all GPUs for TIME (gpulse watches "          \
                    "that long)"                                                                   \
    }

/* Makes --id a word of the filter, which has room for `size` bytes, so that all GPUs are observed:
 * a process that is idle on one of them may be busy on another. GP_EUSAGE: there is no room; errors
 * as of gp_app_open(). */
int gp_idle_take_id(char *filter, size_t size, struct gp_err *err) GP_MUST_CHECK;

/* Shows the time left on standard error: the `progress` of gp_idle_observe(). */
void gp_idle_count_down(uint64_t for_ns, uint64_t left_ns);

/* gp_idle_observe(), of all GPUs: GP_EUSAGE with --id. */
int gp_idle_watch(struct gp_sampler *sampler, const char *filter, uint64_t for_ns,
                  struct gp_idle *ret, struct gp_snapshot **ret_last,
                  struct gp_err *err) GP_MUST_CHECK;

#endif
