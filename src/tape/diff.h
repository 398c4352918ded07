/* What changed between two recordings, or two jobs, beyond noise.
 *
 * Each number of each GPU is compared; the chance that any of them is reported without a change is
 * at most 5 % for all of them together. */
#ifndef GP_TAPE_DIFF_H
#define GP_TAPE_DIFF_H

#include "tape/compare.h"
#include "tape/diff_side.h"

struct gp_err;

/* Of a number that is compared, this much time is needed on both sides; more if it changes slowly.
 */
enum {
    GP_DIFF_MEMORY_S = 5,
    GP_DIFF_LEAST_S = GP_COMPARE_BLOCKS_LEAST * GP_COMPARE_BLOCK_TIMES * GP_DIFF_MEMORY_S,
};

#define GP_DIFF_UNITS(X)                                                                           \
    X(PERCENT, "percent", "%", 1)                                                                  \
    X(MHZ, "MHz", "MHz", 1)                                                                        \
    X(WATT, "W", "W", 1)                                                                           \
    X(CELSIUS, "celsius", "°C", 1)                                                                 \
    X(BYTES, "bytes", "GiB", 1073741824.0)                                                         \
    X(BYTES_PER_S, "bytes/s", "MB/s", 1e6)                                                         \
    X(PER_HOUR, "1/h", "per hour", 1)                                                              \
    X(PER_SECOND, "1/s", "per second", 1)

/* X(id, in JSON, for people, how much of the former is one of the latter) */
enum gp_diff_unit {
#define X(id, name, word, scale) GP_DIFF_UNIT_##id,
    GP_DIFF_UNITS(X)
#undef X
};

enum gp_diff_verdict {
    GP_DIFF_SAME,  /* no difference beyond noise */
    GP_DIFF_SMALL, /* one that is too small to matter */
    GP_DIFF_CHANGED,
    GP_DIFF_UNKNOWN, /* too little was recorded to tell */
};

enum gp_diff_subject { GP_DIFF_OF_GPU, GP_DIFF_OF_PROGRAM, GP_DIFF_OF_JOB };

/* A comparison. */
struct gp_diff_entry {
    enum gp_diff_subject subject;
    size_t place;      /* of the pair of GPUs or programs */
    const char *name;  /* in JSON */
    const char *words; /* for people */
    const char *when;  /* "always", "load" or "idle" */
    enum gp_diff_unit unit;
    bool is_count;        /* of events: `low` and `high` are of the ratio of the rates */
    double share, least;  /* see diff.def */
    double before, after; /* means, or events per hour */
    double low, high;     /* of the difference, with 95 % confidence */
    double p;             /* of this comparison alone */
    double p_all;         /* as one of all: below 0.05 it is beyond noise */
    uint64_t counts[2];   /* of events */
    size_t blocks[2];     /* that were compared */
    double block_s;       /* their length */
    enum gp_diff_verdict verdict;
};

struct gp_diff_pair {
    size_t before, after; /* places in the sides */
    bool is_by_place;     /* another GPU: their UUIDs differ */
};

/* A value that changed. NULL: it was not recorded. */
struct gp_diff_change {
    const struct gp_diff_gpu *gpu; /* of the side after; NULL: of the host */
    enum gp_diff_fact_id fact;
    const struct gp_diff_fact *before, *after;
};

struct gp_diff {
    const struct gp_diff_side *before, *after;
    struct gp_diff_pair *gpus, *programs;
    size_t gpu_count, program_count;
    struct gp_diff_change *changes;
    size_t change_count;
    struct gp_diff_entry *entries;
    size_t entry_count;
    size_t tests; /* entries that could be compared */
};

/* Compares two sides, which must outlive the result. GP_ENOMEM. */
int gp_diff_compare(const struct gp_diff_side *before, const struct gp_diff_side *after,
                    struct gp_diff *ret, struct gp_err *err) GP_MUST_CHECK;
void gp_diff_fini(struct gp_diff *diff);

/* Whether anything changed: a fact, or a number beyond noise. `all`: by however little. */
bool gp_diff_has_changes(const struct gp_diff *diff, bool all);

#endif
