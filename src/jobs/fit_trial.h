/* When a trial of gpulse fit-batch is over: its GPU memory is steady, keeps growing, or the program
 * hangs. Fed with looks at the program; no clock, no process and no output here. */
#ifndef GP_JOBS_FIT_TRIAL_H
#define GP_JOBS_FIT_TRIAL_H

#include "jobs/leak.h"

enum {
    GP_FIT_GPUS = 64,
    GP_FIT_WINDOWS = 2 * GP_LEAK_WINDOWS_MIN, /* even */
};

/* X(id, word): what ended the trial */
#define GP_FIT_STOPS(X)                                                                            \
    X(GO_ON, NULL)                                                                                 \
    X(STEADY, "steady")                                                                            \
    X(CONFIRMED, "confirmed")                                                                      \
    X(GROWING, "growing")                                                                          \
    X(STALLED, "stalled")

enum gp_fit_stop {
#define X(id, word) GP_FIT_##id,
    GP_FIT_STOPS(X)
#undef X
};

struct gp_fit_rules {
    bool is_confirming;
    bool has_line;       /* a line that it prints says when it is over (--until) */
    uint64_t steady_ns;  /* over when its memory has not risen for this time */
    uint64_t confirm_ns; /* how long a confirming run is watched; 0: to its own end */
    uint64_t hang_ns;    /* stalled after this time without a sign of life */
    uint64_t settle_ns;  /* how long earlier trials took to reach their peak */
};

struct gp_fit_look {
    uint64_t now_ns;
    uint64_t printed_bytes; /* since it began */
    uint64_t cpu_ns;        /* of the processes that live */
    bool works;             /* it has computed on a GPU, with more memory than a context takes */
    bool is_busy;           /* a GPU computes now */
    size_t gpu_count;
    double bytes[GP_FIT_GPUS]; /* GPU memory of the program */
};

/* The least memory of each window of time. The windows widen with the time watched: when all are
 * used, two become one. */
struct gp_fit_series {
    double times_s[GP_FIT_WINDOWS], bytes[GP_FIT_WINDOWS];
    size_t count;
    unsigned width, samples; /* looks that make a window; in the one that is open */
    double least;            /* of that one */
};

struct gp_fit_watch {
    struct gp_fit_rules rules;
    uint64_t began_ns;
    uint64_t since_ns; /* growth counts from here on; 0: it does not work yet */
    uint64_t risen_ns; /* the peak last rose */
    uint64_t alive_ns; /* the last sign of life */
    double peak;       /* of one GPU */
    uint64_t cpu_at_ns;
    struct gp_fit_look last;
    struct gp_fit_series series[GP_FIT_GPUS];
};

void gp_fit_watch_begin(struct gp_fit_watch *watch, const struct gp_fit_rules *rules,
                        uint64_t now_ns);

/* Whether the next look needs a new cpu_ns; otherwise the last one will do, as finding it costs a
 * look at every process. */
bool gp_fit_watch_needs_cpu(const struct gp_fit_watch *watch, uint64_t now_ns);

enum gp_fit_stop gp_fit_watch_take(struct gp_fit_watch *watch, const struct gp_fit_look *look);

/* Bytes in a second by which the memory on a GPU rises all the time, the largest of all GPUs; 0: on
 * none, or not watched for long enough. */
double gp_fit_watch_growth(const struct gp_fit_watch *watch);

/* How long a trial may show no sign of life, and how long it may take in all, where the longest
 * that succeeded took `longest_ns` (0: none has). `most_ns`: the limit for any trial. */
uint64_t gp_fit_hang_ns(uint64_t longest_ns);
uint64_t gp_fit_limit_ns(uint64_t longest_ns, uint64_t most_ns);

/* NULL for GO_ON. */
const char *gp_fit_stop_word(enum gp_fit_stop stop);

#endif
