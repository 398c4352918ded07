/* The branches of the tree and the groups that are folded to one row each. */
#ifndef GP_TUI_CLOSED_H
#define GP_TUI_CLOSED_H

#include "out/procs.h"

enum { GP_CLOSED_MAX = 128 };

struct gp_closed {
    bool all; /* all are, apart from the others; or none, apart from them */
    struct gp_closed_other {
        int64_t pid;   /* 0: of a group */
        uint64_t name; /* see gp_closed_name() */
    } others[GP_CLOSED_MAX];
    size_t count;
    struct gp_proc_row *hidden; /* while rows are moved; owned */
    size_t room;
};

void gp_closed_fini(struct gp_closed *closed);

/* A hash of what a row stays known by while rows come and go: the pid and start of a process, or
 * the user or job of a group, whatever the step. */
uint64_t gp_closed_name(const struct gp_proc_row *row);

/* Folds what is unfolded, or the reverse. The oldest choice gives way to one too many. */
void gp_closed_turn(struct gp_closed *closed, const struct gp_proc_row *row);
/* Folds or unfolds all, and those that are still to come. */
void gp_closed_turn_all(struct gp_closed *closed, bool all);
/* Forgets choices about processes that are gone. */
void gp_closed_forget(struct gp_closed *closed, bool (*has)(const void *ctx, int64_t pid),
                      const void *ctx);

/* Moves the rows below closed ones behind the last row. Without memory, none. */
void gp_closed_hide(struct gp_closed *closed, struct gp_procs *procs);

/* Whether rows below this one are shown. */
bool gp_row_is_open(const struct gp_procs *procs, size_t row);
/* The row after those that are shown below this one. */
size_t gp_row_end(const struct gp_procs *procs, size_t row);

/* The rows below a row, wherever they are: `count` from `first` on. */
struct gp_rows_below {
    const struct gp_proc_row *first;
    size_t count;
};

struct gp_rows_below gp_rows_below(const struct gp_procs *procs, size_t row);

/* The row with the sums of a closed branch. */
struct gp_proc_row gp_closed_sum(const struct gp_procs *procs, size_t row);

#endif
