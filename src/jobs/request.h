/* A job's request for GPUs: what must be sampled for it, the decision, and the GPUs as text and
 * JSON. */
#ifndef GP_JOBS_REQUEST_H
#define GP_JOBS_REQUEST_H

#include "jobs/pick.h"
#include "sample/sampler.h"

struct gp_err;

/* Adds what the sampler must collect. */
void gp_job_want(const struct gp_pick_request *request, struct gp_want *want);

/* The first tick of a sampler that was opened without these lists, which it collects from then on.
 * A GPU's list of peers queries the other GPUs; only after a tick does the source know which ones
 * hang, and leaves those out. */
int gp_job_tick_without_lists(struct gp_sampler *sampler, uint32_t lists,
                              struct gp_err *err) GP_MUST_CHECK;

/* Chooses GPUs from a snapshot. Leases of this process's ancestors count as its own. Unless
 * ignore_mask is set, only GPUs in this process's CUDA_VISIBLE_DEVICES are chosen. The snapshot and
 * the leases must outlive the result, which gp_pick_fini() frees. GP_ENODEV: a selection matches no
 * GPU; GP_EUSAGE: too many are selected; GP_ENOMEM. */
int gp_job_decide(const struct gp_snapshot *snapshot, struct gp_leases *leases,
                  struct gp_pick_request *request, bool ignore_mask, struct gp_pick *ret,
                  struct gp_err *err) GP_MUST_CHECK;

/* Whether the snapshot has each GPU that is selected by number or name; NULL: nothing is selected.
 * GP_ENODEV names one that it lacks. */
int gp_job_check_selection(struct gp_selection *selection, const struct gp_snapshot *snapshot,
                           struct gp_err *err) GP_MUST_CHECK;

/* Shows a decision, which is valid only during the call. A negative result is passed on. */
typedef int gp_job_show(void *context, const struct gp_snapshot *snapshot,
                        const struct gp_pick *pick, struct gp_err *err);

struct gp_job_choice {
    struct gp_pick_request *request;
    bool ignore_mask;
    unsigned at_most;   /* choose up to this many free GPUs, at least request->count */
    uint64_t wait_ns;   /* for free GPUs; 0: do not wait */
    bool accepts_later; /* that GPUs are only busy is no error */
    bool explains;      /* errors are shown, too */
    bool is_brief;      /* the text of the error has only the first reason */
    gp_job_show *show;
    /* As in struct gp_reserve_plan; NULL: not called. */
    void (*on_wait)(void *context, const char *why);
    bool (*is_cancelled)(void *context);
    void *context;
};

/* Samples until GPUs are free, cannot become free, or the time is over, and shows what would be
 * chosen then, without reserving it. GP_EBUSY, GP_EEXPIRED, GP_ENEVER: none; GP_EINTR: it was
 * cancelled; also the errors of the sampler, gp_job_decide() and `show`. */
int gp_job_choose(struct gp_sampler *sampler, const struct gp_job_choice *choice,
                  struct gp_err *err) GP_MUST_CHECK;

/* The error for a request that is not met: GP_ENEVER, GP_EEXPIRED or GP_EBUSY. */
int gp_job_refuse(enum gp_pick_state state, const char *why, bool has_waited, struct gp_err *err);

/* Appends the CUDA_VISIBLE_DEVICES for the chosen GPUs: "2,5", or UUIDs. */
void gp_job_add_mask(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                     const struct gp_pick *pick, bool uuid);

/* Appends the chosen GPUs as in -i: "2,5", "0:1". */
void gp_job_add_ids(struct gp_strbuf *sb, const struct gp_pick *pick);

/* Appends the chosen GPUs for people, and the mask if that has other numbers: "GPU 7
 * (CUDA_VISIBLE_DEVICES=6)". */
void gp_job_add_place(struct gp_strbuf *sb, const struct gp_pick *pick, const char *mask);

/* Appends a note if the numbers in the mask are not those of gpulse, because CUDA does not count
 * GPUs that do not respond. GPUs must have been chosen. */
void gp_job_add_mask_note(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                          const struct gp_pick *pick, const char *mask);

/* Appends a line for each GPU that was asked for: whether it is free, or why not. Lines are cut at
 * `room` columns (0: no limit). */
void gp_job_add_units(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_pick *pick, size_t room);

/* Appends a document of the schema gpulse.pick/1. */
void gp_job_add_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                     const struct gp_pick *pick, const char *mask);

#endif
