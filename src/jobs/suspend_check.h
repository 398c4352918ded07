/* Which processes can be suspended, and which suspended ones can be resumed: what has to be true
 * before the driver is asked, because a call that fails halfway may cost the process. Errors say
 * why not. */
#ifndef GP_JOBS_SUSPEND_CHECK_H
#define GP_JOBS_SUSPEND_CHECK_H

#include "jobs/checkpoint.h"
#include "proc/suspended.h"

struct gp_procs;
struct gp_snapshot;

struct gp_suspend_rules {
    const char *root;    /* prefix of /proc, NULL for none */
    uint64_t timeout_ns; /* for the driver to report the state of a process */
    bool force;          /* also those that often fail: on several GPUs, distributed ranks */
};

/* Lists the processes of the rows with their GPU memory. All or none: processes of one job are not
 * separated. GP_EFAIL, GP_EPERM, GP_ETIMEOUT, GP_ENOMEM; free the list in any case. */
int gp_suspend_check_all(const struct gp_suspend_rules *rules, const struct gp_procs *procs,
                         const struct gp_snapshot *snapshot, struct gp_suspended_list *ret,
                         struct gp_err *err) GP_MUST_CHECK;

/* Whether they are still the same processes, and can still be reached: time has passed since the
 * snapshot of that time. */
int gp_suspend_check_again(struct gp_suspended_list *list, uint64_t seen_wall_ns,
                           struct gp_err *err) GP_MUST_CHECK;

/* Takes their GPU memory from a newer snapshot. GP_EFAIL: one has none. */
int gp_suspend_measure(const struct gp_snapshot *snapshot, struct gp_suspended *list, size_t count,
                       struct gp_err *err) GP_MUST_CHECK;

/* Whether the driver lists all of them, as suspended or as running ones. */
bool gp_suspend_is_seen(const struct gp_snapshot *snapshot, const struct gp_suspended_list *list,
                        bool suspended);

/* A process without room would be lost: its GPUs must respond and have enough free memory. */
int gp_resume_check_gpus(const struct gp_suspended_list *list, const struct gp_snapshot *snapshot,
                         struct gp_err *err) GP_MUST_CHECK;

/* Whether a note agrees with the process and its GPUs: it is only a claim of its owner. */
int gp_resume_check_note(const struct gp_suspended *s, const struct gp_snapshot *snapshot,
                         struct gp_err *err) GP_MUST_CHECK;

/* The state of a process without a note: the note was lost, or another program has suspended it. */
int gp_resume_check_unnoted(int64_t pid, bool force, uint64_t timeout_ns,
                            enum gp_cuda_state *ret, struct gp_err *err) GP_MUST_CHECK;

#endif
