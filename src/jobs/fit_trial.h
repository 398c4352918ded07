/* Decides when a trial of gpulse fit-batch is over: its GPU memory is steady, keeps growing, or the
 * program hangs. Fed with samples of the program; no clock, no process and no output here. */
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
    bool has_line;       /* a line of its output ends it (--until) */
    uint64_t steady_ns;  /* over when its memory has not risen for this time */
    uint64_t confirm_ns; /* how long a confirming run is watched; 0: until it exits */
    uint64_t hang_ns;    /* hung after this time without a sign of life */
    uint64_t settle_ns;  /* how long earlier trials took to reach their peak */
};

struct gp_fit_look {
    uint64_t now_ns;
    uint64_t printed_bytes; /* since the trial began */
    uint64_t cpu_ns;        /* of the live processes */
    bool works;             /* it has computed on a GPU, with more memory than a bare context */
    bool is_busy;           /* a GPU is busy now */
    size_t gpu_count;
    double bytes[GP_FIT_GPUS]; /* GPU memory of the program */
};

/* The minimum of each time window. Windows widen over time: when all are used, each two are merged
 * into one. */
struct gp_fit_series {
    double times_s[GP_FIT_WINDOWS], bytes[GP_FIT_WINDOWS];
    size_t count;
    unsigned width, samples; /* samples per window; in the open one */
    double least;            /* of the open window */
};

struct gp_fit_watch {
    struct gp_fit_rules rules;
    uint64_t began_ns;
    uint64_t since_ns;     /* growth counts from here on; 0: the program does not work yet */
    uint64_t risen_ns;     /* when the peak last rose */
    uint64_t alive_ns;     /* the last sign of life */
    double peak;           /* of one GPU */
    double growth_bytes_s; /* when it was stopped for growing; 0: it was not */
    uint64_t cpu_at_ns;
    struct gp_fit_look last;
    struct gp_fit_series series[GP_FIT_GPUS];
};

void gp_fit_watch_begin(struct gp_fit_watch *watch, const struct gp_fit_rules *rules,
                        uint64_t now_ns);

/* Whether the next sample needs a new cpu_ns; otherwise the last one is good enough. Measuring it
 * means reading every process. */
bool gp_fit_watch_needs_cpu(const struct gp_fit_watch *watch, uint64_t now_ns);

enum gp_fit_stop gp_fit_watch_take(struct gp_fit_watch *watch, const struct gp_fit_look *look);

/* Bytes per second by which memory on a GPU grows steadily, the maximum over all GPUs; 0: no
 * growth, or not watched for long enough. What a program that was stopped for it does with its
 * memory while it ends changes nothing. */
double gp_fit_watch_growth(const struct gp_fit_watch *watch);

/* How long a trial may go without a sign of life, and how long it may take in all, if the longest
 * success took `longest_ns` (0: none yet). `most_ns`: the limit for any trial. */
uint64_t gp_fit_hang_ns(uint64_t longest_ns);
uint64_t gp_fit_limit_ns(uint64_t longest_ns, uint64_t most_ns);

/* NULL for GO_ON. */
const char *gp_fit_stop_word(enum gp_fit_stop stop);

#endif
