/* Which GPUs a job may have now: of those that a snapshot shows, without those that others were
 * promised. Pure: of a snapshot and of the leases that are alive. */
#ifndef GP_JOBS_PICK_H
#define GP_JOBS_PICK_H

#include "jobs/lease.h"
#include "source/source.h"

struct gp_device;
struct gp_err;
struct gp_selection;
struct gp_snapshot;
struct gp_strbuf;

/* By what fitting GPUs are put in order; equal ones: those that come later on the bus first, as so
 * many programs take the first GPU without being asked.
 * X(id, word, help) */
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

struct gp_pick_request {
    unsigned count; /* of GPUs; one that is partitioned stands for its MIG instances */
    bool is_all;    /* all that are meant: the count is gp_pick_count_all() */
    bool is_shared; /* others may be on them, and come later */
    uint64_t bytes; /* that must be free on each; of a shared one, that it will use there */
    uint64_t total_bytes;
    double most_load, most_celsius; /* percent; < 0: any */
    struct gp_selection *only;      /* NULL: all; as the next */
    struct gp_selection *avoid, *prefer;
    const struct gp_device *const *visible; /* the rows that the inherited mask leaves; NULL: all */
    size_t visible_count;
    bool no_display;
    bool same_node, nvlink; /* of several */
    enum gp_pick_order order;
    bool is_ascending; /* those that are chosen by it come in the order of their numbers */
    uint64_t ticket; /* of the one who asks: those before are waited for; UINT64_MAX: no one's */
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
    GP_PICK_LINE, /* somebody else has waited longer */
    GP_PICK_MEMORY,
    GP_PICK_TOO_BUSY, /* --max-load, --max-temp */
    GP_PICK_IN_USE,
    GP_PICK_SICK,
    /* these cannot */
    GP_PICK_TOO_SMALL,
    GP_PICK_FAILED,
    GP_PICK_PROHIBITED,
    GP_PICK_DISPLAY,
    GP_PICK_MIG,
    GP_PICK_HIDDEN, /* by CUDA_VISIBLE_DEVICES */
    GP_PICK_NOT_REQUESTED,
};

enum { GP_PICK_WHY_SIZE = 400 };

/* The verdict on a GPU, or on a MIG instance. */
struct gp_pick_unit {
    const struct gp_device *device;
    enum gp_pick_state state; /* follows from the obstacle */
    enum gp_pick_obstacle obstacle;
    char why[240]; /* "" if it fits */
    double free;   /* bytes that are not promised to anybody */
    double load, celsius;
    size_t processes;
    int preferred; /* whether it is one of those; 0 or 1 */
    bool is_chosen;
};

struct gp_pick {
    struct gp_pick_unit *units; /* in the order of the snapshot */
    size_t count;
    size_t *chosen; /* which of them, the best first unless ascending; `request.count` if FITS */
    size_t chosen_count;
    enum gp_pick_state state;
    char why[GP_PICK_WHY_SIZE]; /* if it does not fit: one sentence */
};

/* What a snapshot must have; it must have processes, ancestors and MIG instances, and for several
 * GPUs the list of peers. */
void gp_pick_want(struct gp_want *want, bool several);

/* How many GPUs `only` names, hidden ones too, or without that how many are visible; without those
 * to be avoided. */
unsigned gp_pick_count_all(const struct gp_snapshot *snapshot,
                           const struct gp_pick_request *request);

/* GP_ENOMEM. The snapshot must outlive the result. */
int gp_pick_make(const struct gp_snapshot *snapshot, const struct gp_leases *leases,
                 const struct gp_pick_request *request, struct gp_pick *ret) GP_MUST_CHECK;
void gp_pick_fini(struct gp_pick *pick);

/* Whether a process comes from this one, as far as the snapshot knows parents. */
bool gp_pick_comes_from(const struct gp_snapshot *snapshot, int64_t pid, int64_t from);

/* Whether the job of a lease is suspended (gpulse suspend); it keeps its GPUs all the same. */
bool gp_pick_is_suspended(const struct gp_snapshot *snapshot, const struct gp_lease *lease);

/* What the jobs of a lease have on a row now; false where its processes cannot be told. */
bool gp_pick_observed(const struct gp_snapshot *snapshot, const struct gp_device *device,
                      const struct gp_lease *lease, double *ret_bytes);

#endif
