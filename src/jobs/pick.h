/* Which GPUs a job may use now: those in a snapshot, except those reserved by others. Pure:
 * computed from a snapshot and the live leases. */
#ifndef GP_JOBS_PICK_H
#define GP_JOBS_PICK_H

#include "proc/lease.h"
#include "source/source.h"

struct gp_device;
struct gp_err;
struct gp_selection;
struct gp_snapshot;
struct gp_strbuf;

/* The order of fitting GPUs. Of equal ones, those with a higher bus address come first, because
 * many programs use the first GPU by default. X(id, word, help) */
#define GP_PICK_ORDERS(X)                                                                          \
    X(DEFAULT, "default", "fewest processes, then most free memory")                               \
    X(FREE, "free", "most free memory")                                                            \
    X(LOAD, "load", "least utilization")                                                           \
    X(COOL, "cool", "lowest temperature")                                                          \
    X(INDEX, "index", "lowest index")

enum gp_pick_order {
#define X(id, word, help) GP_PICK_##id,
    GP_PICK_ORDERS(X)
#undef X
        GP_PICK__COUNT,
};

/* False: there is no such order. */
bool gp_pick_find_order(const char *word, enum gp_pick_order *ret);

struct gp_pick_request {
    unsigned count; /* of GPUs; a partitioned one counts as its MIG instances */
    bool is_all;    /* all that qualify: the count is gp_pick_count_all() */
    bool is_shared; /* others may use them already, or later */
    uint64_t bytes; /* bytes that must be free on each; on a shared one, that the job will use */
    uint64_t total_bytes;
    double most_load, most_celsius; /* percent; < 0: no limit */
    struct gp_selection *only;      /* NULL: all; the next one likewise */
    struct gp_selection *avoid, *prefer;
    const struct gp_device *const *visible; /* the rows visible under the inherited
                                               CUDA_VISIBLE_DEVICES; NULL: all */
    size_t visible_count;
    bool no_display, no_mig; /* no_mig: whole GPUs only */
    bool same_node, nvlink;  /* if there are several */
    enum gp_pick_order order;
    bool is_ascending; /* return the chosen ones in the order of their numbers */
    uint64_t ticket;   /* of this request: earlier tickets go first; UINT64_MAX: it has none */
    uint64_t limit_ns; /* see gp_lease_may_overtake() */
};

enum gp_pick_state {
    GP_PICK_FITS,
    GP_PICK_LATER, /* the obstacle can pass */
    GP_PICK_NEVER,
};

/* Why a job cannot have a GPU. A refusal names the first of these that applies to any GPU: the one
 * that passes soonest, or that the user can do most about. */
enum gp_pick_obstacle {
    GP_PICK_NO_OBSTACLE,
    /* these can pass */
    GP_PICK_RESERVED,
    GP_PICK_LINE, /* another request has waited longer */
    GP_PICK_MEMORY,
    GP_PICK_TOO_BUSY, /* --max-load, --max-temp */
    GP_PICK_IN_USE,
    GP_PICK_SICK,
    /* these cannot pass */
    GP_PICK_TOO_SMALL,
    GP_PICK_FAILED,
    GP_PICK_PROHIBITED,
    GP_PICK_DISPLAY,
    GP_PICK_MIG,
    GP_PICK_HIDDEN, /* by CUDA_VISIBLE_DEVICES */
    GP_PICK_NOT_REQUESTED,
};

enum { GP_PICK_WHY_SIZE = 400 };

/* The verdict on a GPU or a MIG instance. */
struct gp_pick_unit {
    const struct gp_device *device;
    enum gp_pick_state state; /* determined by the obstacle */
    enum gp_pick_obstacle obstacle;
    char why[240];                /* "" if it fits */
    const struct gp_lease *lease; /* which is the obstacle; NULL: it is another one */
    double free;                  /* bytes that nobody has reserved */
    double load, celsius;
    size_t processes;
    int preferred; /* whether it drives a display; 0 or 1 */
    bool is_chosen;
};

struct gp_pick {
    struct gp_pick_unit *units; /* in the order of the snapshot */
    size_t count;
    size_t *chosen; /* the chosen ones, the best first unless ascending; `request.count` of them if
                       FITS */
    size_t chosen_count;
    enum gp_pick_state state;
    char why[GP_PICK_WHY_SIZE]; /* if it does not fit: one sentence */
};

/* The metrics that a snapshot needs. It also needs processes, ancestors and MIG instances and, for
 * several GPUs, the list of peers. */
void gp_pick_want(struct gp_want *want, bool several);

/* The number of GPUs in `only`, including hidden ones, or otherwise of visible GPUs; without those
 * to be avoided. */
unsigned gp_pick_count_all(const struct gp_snapshot *snapshot,
                           const struct gp_pick_request *request);

/* GP_ENOMEM. The snapshot and the leases must outlive the result. */
int gp_pick_make(const struct gp_snapshot *snapshot, const struct gp_leases *leases,
                 const struct gp_pick_request *request, struct gp_pick *ret) GP_MUST_CHECK;
void gp_pick_fini(struct gp_pick *pick);

/* Which GPUs a waiting request could have now, as its own gpulse run sees it; limits that a lease
 * does not record (--max-load, --nvlink) are left out. As gp_pick_make(). */
int gp_pick_make_waiting(const struct gp_snapshot *snapshot, const struct gp_leases *leases,
                         const struct gp_lease *waiting, struct gp_pick *ret) GP_MUST_CHECK;

/* The next group of GPUs that the job cannot have now for the same reason, in the order of their
 * numbers: those of units[*at] and later ones. NULL: no more. `*at` begins with 0; `devices` has
 * room for pick->count. */
const struct gp_pick_unit *gp_pick_next_obstacle(const struct gp_pick *pick, size_t *at,
                                                 const struct gp_device **devices,
                                                 size_t *ret_count);

/* Whether a GPU or an instance is in the selection. */
bool gp_pick_matches(struct gp_selection *selection, const struct gp_device *device);

/* Appends "GPU 7", "GPUs 6 and 7", "GPUs 0-3, 5 and 0:1". */
void gp_pick_add_gpus(struct gp_strbuf *sb, const struct gp_device *const *devices, size_t count);

/* Whether a process descends from this one, as far as the snapshot knows the parents. */
bool gp_pick_comes_from(const struct gp_snapshot *snapshot, int64_t pid, int64_t from);

/* Whether the job of a lease is suspended (gpulse suspend); it keeps its GPUs. */
bool gp_pick_is_suspended(const struct gp_snapshot *snapshot, const struct gp_lease *lease);

/* The memory that the jobs of a lease use on a row now; false if its processes are unknown. */
bool gp_pick_observed(const struct gp_snapshot *snapshot, const struct gp_device *device,
                      const struct gp_lease *lease, double *ret_bytes);

#endif
