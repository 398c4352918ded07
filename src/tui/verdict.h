/* What limits a GPU or a process now, on its page: the verdict of gpulse why over the last half
 * minute or less. While the page is open, a sampler of its own takes what that needs, from all
 * GPUs: those of a job may wait for each other. */
#ifndef GP_TUI_VERDICT_H
#define GP_TUI_VERDICT_H

#include "tui/page.h"
#include "why/rules.h"

struct gp_sampler;
struct gp_snapshot;
struct gp_why_gather;

/* What it is about: a process, or a GPU. */
struct gp_verdict_topic {
    const char *root;    /* prefix of /proc; NULL: none */
    bool sees_processes; /* those of the samples are in that /proc */
    uint32_t pid;        /* 0: none */
    unsigned gpu;        /* without a process: its index */
};

struct gp_verdict_answer {
    size_t gpus; /* on which the process computes, or instances of the GPU in use; 0: no answer */
    char gpu[GP_DEVICE_LABEL_SIZE]; /* the one that it is about */
    double seconds;
    bool is_ready;                 /* it was observed for long enough */
    bool stands_out;               /* then there is a verdict, else: */
    struct gp_why_verdict verdict; /* its `seen` alone */
    bool is_capped;                /* the power limit lowers the clocks, as on any busy GPU */
};

/* ---- from samples ---- */

struct gp_verdict_observation {
    struct gp_verdict_topic topic;
    struct gp_why_gather *gather; /* NULL: none has begun */
    uint64_t first_ns, last_ns;   /* of its samples */
    struct gp_verdict_answer answer;
};

/* Adds a sample with what gp_why_want() lists. After half a minute an observation begins again; the
 * answer of the last one stays until there is a new one. So also without memory. */
void gp_verdict_add(struct gp_verdict_observation *verdict, const struct gp_snapshot *snapshot);
void gp_verdict_fini(struct gp_verdict_observation *verdict);

/* Adds the lines about it to a page: none without an answer. */
void gp_verdict_write(const struct gp_verdict_answer *answer, struct gp_page *page);

/* ---- on a page ---- */

struct gp_verdict_watch;

/* Starts a thread that observes. `open` opens the sampler, on that thread. NULL: it cannot be
 * started. */
struct gp_verdict_watch *gp_verdict_watch_start(const struct gp_verdict_topic *topic,
                                                int (*open)(void *ctx, struct gp_sampler **ret,
                                                            struct gp_err *err));

/* Its answer, if it is a recent one; NULL has none. */
struct gp_verdict_answer gp_verdict_watch_answer(struct gp_verdict_watch *watch);

/* Stops and frees it; NULL: nothing. Returns false if the thread is in the driver for longer than
 * that: then it must be called again, or the process exit with _exit(). */
bool gp_verdict_watch_stop(struct gp_verdict_watch *watch, int patience_ms);

#endif
