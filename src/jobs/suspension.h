/* Suspending and resuming processes from beginning to end: the checks and the moves, with signals
 * held back meanwhile, and the wait for the driver's process list. The CUDA driver must be open
 * (gp_checkpoint_open()). */
#ifndef GP_JOBS_SUSPENSION_H
#define GP_JOBS_SUSPENSION_H

#include "jobs/suspend.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_procs;
struct gp_snapshot;
struct gp_strbuf;

struct gp_suspension {
    struct gp_sampler *sampler; /* collects gp_suspension_want() */
    const char *root;           /* prefix of the notes; NULL: none */
    /* Called with each message that is not an error: one line. NULL: not called. */
    void (*tell)(const char *text);
};

struct gp_suspension_result {
    struct gp_snapshot *after; /* after the moves; NULL: there were none, or no sample succeeded */
    bool is_seen;              /* the driver lists all processes in their new state */
};

/* What the sampler must collect. */
struct gp_want gp_suspension_want(void);

/* Suspends all processes of a list from gp_suspend_check_all(), or none. They were seen at this
 * time. grace_ns: how long each may finish its GPU work; 0: 10 s. GP_EFAIL also if all are
 * suspended, but the driver does not list them so in time. The result needs
 * gp_suspension_result_fini() whatever is returned. */
int gp_suspension_suspend(const struct gp_suspension *move, struct gp_suspended_list *list,
                          uint64_t grace_ns, uint64_t seen_wall_ns,
                          struct gp_suspension_result *ret, struct gp_err *err) GP_MUST_CHECK;

/* Lists the suspended processes among these rows, and removes the other rows. GP_ENOMEM and the
 * errors of gp_suspended_read(); free the list in any case. */
int gp_suspension_find(const struct gp_suspension *move, struct gp_procs *procs,
                       struct gp_suspended_list *ret, struct gp_err *err) GP_MUST_CHECK;

/* Resumes the processes of the list, which were seen in the snapshot, and waits up to wait_ns for
 * free GPU memory. Processes whose note is implausible are removed from the list, with a message.
 * GP_EEXPIRED: there was no room in that time. GP_EFAIL: there is no room, some were skipped, or
 * the driver does not list them in time; also the errors of gp_resume_all(). The result as above.
 */
int gp_suspension_resume(const struct gp_suspension *move, struct gp_suspended_list *list,
                         const struct gp_snapshot *snapshot, uint64_t wait_ns,
                         struct gp_suspension_result *ret, struct gp_err *err) GP_MUST_CHECK;

/* Resumes those of the pids that have no note, with a message for each, and removes them. Needs no
 * sampler. */
int gp_suspension_resume_unnoted(const struct gp_suspension *move, int64_t *pids, size_t *count,
                                 bool force, struct gp_err *err) GP_MUST_CHECK;

/* Appends what became of the processes of the list and of the memory of their GPUs; after
 * suspending, also which reservations stay. Only for a result with a snapshot. */
void gp_suspension_add_result(struct gp_strbuf *sb, const struct gp_suspension_result *result,
                              const struct gp_suspended_list *list, bool suspended);

void gp_suspension_result_fini(struct gp_suspension_result *result);

#endif
