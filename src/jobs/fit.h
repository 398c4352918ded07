/* The search for the largest batch size that fits a GPU: chooses the next size from the results so
 * far. Every step either ends the search or tries a new size, below the smallest that failed and
 * above the largest that fits; only a confirming run repeats a size.
 *
 * The model of memory is a + b * batch, refitted from the newest trials, because workspaces grow in
 * jumps and make older trials misleading. The goal is below the capacity by a margin in bytes: a
 * short trial does not see the longest sample, an evaluation or a checkpoint. The caller runs each
 * trial as a separate program: there is no clock, no process, no output and no allocation here. */
#ifndef GP_JOBS_FIT_H
#define GP_JOBS_FIT_H

#include "base/util.h"

struct gp_err;

enum {
    GP_FIT_TRIALS = 14,     /* of the search, by default */
    GP_FIT_TRIALS_MAX = 64, /* of the search */
    GP_FIT_CONFIRMS = 5,    /* confirming runs; the last has 0.93^4 = 0.75 of the first's batch */
    GP_FIT_HANGS = 2,       /* hung trials that stop the search: each takes minutes */
    GP_FIT_POINTS = 3,      /* newest trials that determine the next size */
    GP_FIT_BATCH_MAX = INT32_MAX, /* programs store it in an int */
};

/* The result of a trial: whether it ran, and how the search ends if this was the deciding one. A
 * TIGHT one ran with full memory, so its peak is a lower bound. A trial that GROWS was still using
 * more memory when it was stopped. One that is HUNG made no progress. X(id, word, ran, end) */
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

/* Why the search is over, whether it found a batch size, and the exit code for it. X(id, word,
 * has_answer, code, text) */
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
      "the program takes the same large share of GPU memory at every batch size, like one that "   \
      "preallocates it")                                                                           \
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
    double margin;   /* fraction of the total that stays free; at least 512 MiB stay free */
    bool confirm;    /* confirm the answer with a full run */
    unsigned trials; /* limit of the search; 0: GP_FIT_TRIALS */
};

struct gp_fit_trial {
    uint64_t batch;
    bool is_confirming;          /* a full run, not a short trial */
    enum gp_fit_verdict verdict; /* this and the rest: only after the trial */
    uint64_t peak_bytes;
    double growth_bytes_s;        /* of one that GROWS, per second; otherwise 0 */
    uint64_t took_ns, settled_ns; /* notes of the caller: total, and until the peak */
};

/* Memory as a linear function of the batch size. */
struct gp_fit_line {
    bool known;          /* there are at least two points */
    double fixed_bytes;  /* a: model, optimizer, context */
    double sample_bytes; /* b: per sample of the batch */
    double r2;           /* R^2, at most 1 */
    size_t points;
};

struct gp_fit_answer {
    uint64_t batch;      /* 0: none, and `end` gives the reason */
    uint64_t peak_bytes; /* largest seen with this batch */
    uint64_t free_bytes; /* remaining memory; an upper bound if the trial was TIGHT */
    double growth_bytes_s;
    double full_in_s; /* until the GPU is full at this growth; 0: no growth */
    enum gp_fit_end end;
    bool is_independent;     /* nothing was too large, and the peaks do not rise with the batch */
    struct gp_fit_line line; /* of all OK short trials */
};

/* Self-contained: no pointers, nothing to free. */
struct gp_fit {
    struct gp_fit_request request; /* with rounded sizes and defaults filled in */
    uint64_t goal_bytes;           /* a trial that uses more is too large */
    uint64_t fits;                 /* largest batch that fits; 0: none yet */
    uint64_t fails;                /* smallest that does not; 0: none yet */
    struct gp_fit_trial trials[GP_FIT_TRIALS_MAX + GP_FIT_CONFIRMS]; /* in order */
    size_t trial_count;
    struct gp_fit_trial next;
    enum gp_fit_end searched; /* why the search ended, while its answer is being confirmed */
    enum gp_fit_end end;
};

/* Checks the sizes and the margin, but not against the GPU's memory. GP_EUSAGE. */
int gp_fit_check(const struct gp_fit_request *request, struct gp_err *err) GP_MUST_CHECK;

/* GP_EUSAGE names the problem of the request. */
int gp_fit_init(struct gp_fit *ret, const struct gp_fit_request *request,
                struct gp_err *err) GP_MUST_CHECK;

/* The size to try now, the same until its result is recorded; false: the search is over. */
bool gp_fit_next(const struct gp_fit *fit, struct gp_fit_trial *ret);

/* Records the result of that trial. An OK with a peak of 98.5 % of the capacity or more counts as
 * TIGHT. After the end, nothing is recorded. */
void gp_fit_take(struct gp_fit *fit, enum gp_fit_verdict verdict, uint64_t peak_bytes,
                 double growth_bytes_s);

/* The largest size that has fitted so far, excluding one whose memory grows; 0: none yet. */
uint64_t gp_fit_best(const struct gp_fit *fit);

struct gp_fit_answer gp_fit_answer(const struct gp_fit *fit);

/* Bytes that a batch would need, by the line of the answer; 0: unknown. */
uint64_t gp_fit_need(const struct gp_fit *fit, uint64_t batch);

const char *gp_fit_verdict_word(enum gp_fit_verdict verdict);
const char *gp_fit_end_word(enum gp_fit_end end);
const char *gp_fit_end_text(enum gp_fit_end end);
int gp_fit_end_code(enum gp_fit_end end);

#endif
