/* The search for the largest batch size that fits a GPU: what to try next, after what was seen.
 * Every step either ends it or tries a size that was not tried, below the smallest that failed and
 * above the largest that fits; only a confirming run repeats one.
 *
 * Memory is taken to be a + b * batch, refitted from the newest trials, because workspaces jump and
 * older ones then mislead. The goal is a margin below what the GPU has, in bytes: a short trial
 * does not see the longest sample, an evaluation or a checkpoint. Each trial is a program of its
 * own, which the caller runs: no clock, no process and no output here, and no allocation. */
#ifndef GP_JOBS_FIT_H
#define GP_JOBS_FIT_H

#include "base/util.h"

struct gp_err;

enum {
    GP_FIT_TRIALS = 14,     /* of the search, if not said otherwise */
    GP_FIT_TRIALS_MAX = 64, /* of the search */
    GP_FIT_CONFIRMS = 5,    /* confirming runs, the last with 0.93^4 = 0.75 of the first's batch */
    GP_FIT_HANGS = 2,       /* hung trials that end the search: each of them takes minutes */
    GP_FIT_POINTS = 3,      /* newest trials that say what comes next */
    GP_FIT_BATCH_MAX = INT32_MAX, /* programs keep it in an int */
};

/* How a trial went: whether it ran, and how the search ends by it. A TIGHT one ran at the end of
 * the memory, so that it needs at least its peak; of one that GROWS the memory still rose when it
 * was stopped; one that is HUNG made no progress. X(id, word, ran, end) */
#define GP_FIT_VERDICTS(X)                                                                         \
    X(OK, "ok", true, SEARCHING)                                                                   \
    X(TIGHT, "tight", true, SEARCHING)                                                             \
    X(GROWS, "grows", true, SEARCHING)                                                             \
    X(OOM, "oom", false, SEARCHING)                                                                \
    X(HUNG, "hung", false, SEARCHING)                                                              \
    X(CRASH, "crash", false, CRASHED)                                                              \
    X(HOST, "host", false, AT_HOST)

enum gp_fit_verdict {
#define X(id, word, ran, end) GP_FIT_##id,
    GP_FIT_VERDICTS(X)
#undef X
        GP_FIT_VERDICT__COUNT,
};

/* Why the search is over, whether a batch can be chosen then, and what a command returns for it.
 * X(id, word, has_answer, code, text) */
#define GP_FIT_ENDS(X)                                                                             \
    X(FOUND, "found", true, GP_OK, "larger sizes do not fit, or leave less than the margin")       \
    X(AT_MAX, "max", true, GP_OK, "the largest size allowed fits")                                 \
    X(AT_BUDGET, "trials", true, GP_OK, "the largest that fitted within the allowed trials")       \
    X(HUNG, "hung", true, GP_EPARTIAL, "the largest that ran; a larger size hung")                 \
    X(GROWS, "grows", true, GP_EPARTIAL, "fits at first, but its GPU memory keeps growing")        \
    X(HUNG_LONG, "hung-long", true, GP_EPARTIAL, "ran in a short trial, but hung in the long run") \
    X(NOTHING, "nothing", false, GP_EFAIL, "even the smallest size does not fit")                  \
    X(INDEPENDENT, "independent", false, GP_EFAIL, "memory does not depend on the batch size")     \
    X(PREALLOCATES, "preallocates", false, GP_EFAIL,                                               \
      "the program takes the same large part of GPU memory at every batch size, as one that "      \
      "preallocates it does")                                                                      \
    X(UNCONFIRMED, "unconfirmed", false, GP_EFAIL, "no size survived a confirming run")            \
    X(ALL_HUNG, "all-hung", false, GP_EFAIL, "no size ran: the trials hung")                       \
    X(CRASHED, "crashed", false, GP_EFAIL, "a trial failed, but not for lack of GPU memory")       \
    X(AT_HOST, "host", false, GP_EFAIL, "the host has too little memory (RAM)")                    \
    X(SEARCHING, "searching", false, GP_EFAIL, "not over yet")

enum gp_fit_end {
#define X(id, word, has_answer, code, text) GP_FIT_END_##id,
    GP_FIT_ENDS(X)
#undef X
        GP_FIT_END__COUNT,
};

struct gp_fit_request {
    uint64_t min;            /* smallest batch; rounded up to a multiple */
    uint64_t start;          /* first batch; 0: min; rounded down to a multiple */
    uint64_t max;            /* largest batch, rounded down to a multiple; 0: none */
    uint64_t multiple;       /* all sizes are multiples of it */
    uint64_t capacity_bytes; /* total - reserved - used before */
    uint64_t total_bytes;
    double margin;   /* fraction of the total that stays free; 512 MiB stay free at least */
    bool confirm;    /* try the answer with the whole run */
    unsigned trials; /* of the search, at most; 0: GP_FIT_TRIALS */
};

struct gp_fit_trial {
    uint64_t batch;
    bool is_confirming;          /* the whole run, not a short trial */
    enum gp_fit_verdict verdict; /* of one that is over, as the rest */
    uint64_t peak_bytes;
    double growth_bytes_s;        /* of one that GROWS, in a second; else 0 */
    uint64_t took_ns, settled_ns; /* notes of who runs it: in all, and until its peak */
};

/* Memory as a line. */
struct gp_fit_line {
    bool known;          /* there are two points at least */
    double fixed_bytes;  /* a: model, optimizer, context */
    double sample_bytes; /* b: for each sample of the batch */
    double r2;           /* R^2, at most 1 */
    size_t points;
};

struct gp_fit_answer {
    uint64_t batch;      /* 0: none, and the end says why */
    uint64_t peak_bytes; /* largest seen with this batch */
    uint64_t free_bytes; /* what that leaves; at most so much if the trial was TIGHT */
    double growth_bytes_s;
    double full_in_s; /* until the GPU is full at this growth; 0: it does not grow */
    enum gp_fit_end end;
    bool is_independent;     /* nothing was too large, and the peaks do not rise with the batch */
    struct gp_fit_line line; /* of all OK short trials */
};

/* Whole as it is: no pointers in it, nothing to free. */
struct gp_fit {
    struct gp_fit_request request; /* with its sizes rounded and nothing left out */
    uint64_t goal_bytes;           /* a trial with more is too large */
    uint64_t fits;                 /* largest batch that fits; 0: none yet */
    uint64_t fails;                /* smallest that does not; 0: none yet */
    struct gp_fit_trial trials[GP_FIT_TRIALS_MAX + GP_FIT_CONFIRMS]; /* in their order */
    size_t trial_count;
    struct gp_fit_trial next;
    enum gp_fit_end searched; /* why the search was over, while its answer is confirmed */
    enum gp_fit_end end;
};

/* Whether the sizes and the margin make sense; the GPU's memory is not looked at. GP_EUSAGE. */
int gp_fit_check(const struct gp_fit_request *request, struct gp_err *err) GP_MUST_CHECK;

/* GP_EUSAGE says what is wrong with the request. */
int gp_fit_init(struct gp_fit *ret, const struct gp_fit_request *request,
                struct gp_err *err) GP_MUST_CHECK;

/* What to try now, the same until its result is taken; false: it is over. */
bool gp_fit_next(const struct gp_fit *fit, struct gp_fit_trial *ret);

/* Takes the result of that trial. An OK whose peak is 98.5 % of the capacity or more counts as
 * TIGHT. After the end nothing is taken. */
void gp_fit_take(struct gp_fit *fit, enum gp_fit_verdict verdict, uint64_t peak_bytes,
                 double growth_bytes_s);

/* The largest size that has fitted so far, without one whose memory grows; 0: none yet. */
uint64_t gp_fit_best(const struct gp_fit *fit);

struct gp_fit_answer gp_fit_answer(const struct gp_fit *fit);

/* Bytes that a batch would need, by the line of the answer; 0: not known. */
uint64_t gp_fit_need(const struct gp_fit *fit, uint64_t batch);

const char *gp_fit_verdict_word(enum gp_fit_verdict verdict);
const char *gp_fit_end_word(enum gp_fit_end end);
const char *gp_fit_end_text(enum gp_fit_end end);
int gp_fit_end_code(enum gp_fit_end end);

#endif
