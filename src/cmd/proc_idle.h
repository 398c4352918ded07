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

/* GP_EUSAGE with --id: other GPUs, which a process may use, would not be observed. */
int gp_idle_check(struct gp_err *err) GP_MUST_CHECK;

/* Shows the time left on standard error: the `progress` of gp_idle_observe(). */
void gp_idle_count_down(uint64_t for_ns, uint64_t left_ns);

/* gp_idle_check() and gp_idle_observe(). */
int gp_idle_watch(struct gp_sampler *sampler, const char *filter, uint64_t for_ns,
                  struct gp_idle *ret, struct gp_snapshot **ret_last,
                  struct gp_err *err) GP_MUST_CHECK;

#endif
