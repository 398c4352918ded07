/* The processes: a row per process over all its GPUs, sorted, filtered, and the memory of each GPU
 * that no listed process accounts for. */
#ifndef GP_TUI_PROCS_H
#define GP_TUI_PROCS_H

#include "tui/cells.h"

struct gp_snapshot;

/* What rows can be sorted by. X(id, title) */
#define GP_ORDERS(X)                                                                               \
    X(MEMORY, "GPU-MEM")                                                                           \
    X(SM, "SM%")                                                                                   \
    X(CPU, "CPU%")                                                                                 \
    X(RSS, "RSS")                                                                                  \
    X(TIME, "TIME")                                                                                \
    X(PID, "PID")                                                                                  \
    X(USER, "USER")                                                                                \
    X(GPU, "GPU")                                                                                  \
    X(COMMAND, "COMMAND")

enum gp_order {
#define X(id, title) GP_ORDER_##id,
    GP_ORDERS(X)
#undef X
        GP_ORDER__COUNT,
};

/* A number that may not be known. */
struct gp_amount {
    double n;
    bool known;
    bool old; /* not of this sample */
};

struct gp_proc_row {
    int64_t pid;                /* 0: memory of a GPU that no process accounts for */
    unsigned gpu;               /* the first that it uses */
    char gpus[24];              /* all of them: "0-3", "1,4"; a MIG instance "1:0" */
    const char *user, *command; /* in the snapshot; NULL: not known */
    const char *type;
    struct gp_amount memory;                 /* bytes */
    struct gp_amount sm, mem, enc, dec, cpu; /* percent */
    struct gp_amount rss;                    /* bytes */
    double age_s;                            /* below 0: not known */
};

struct gp_procs {
    struct gp_proc_row *rows;
    size_t count;
    size_t hidden; /* by the filter */
};

struct gp_procs_options {
    enum gp_order order;
    bool reversed;
    const char *filter; /* words that must all be there; user: pid: gpu: cmd: type: before one */
    int gpu;            /* only this one's; −1: all */
};

/* The rows point into the snapshot. GP_ENOMEM leaves none. */
int gp_procs_build(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                   const struct gp_procs_options *options) GP_MUST_CHECK;
void gp_procs_fini(struct gp_procs *procs);

/* Whether the row has all words of a filter. */
bool gp_procs_matches(const struct gp_proc_row *row, const char *filter);

const char *gp_order_title(enum gp_order order);

/* The title, the heading and rows from `first` on; `chosen` is marked. `scroll` columns of the
 * commands are not shown. */
void gp_draw_procs(const struct gp_box *box, const struct gp_procs *procs,
                   const struct gp_procs_options *options, size_t first, size_t chosen, int scroll);

#endif
