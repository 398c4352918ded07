/* The live monitor without its terminal: what is shown, and what keys do to it. Given a snapshot, a
 * size and keys it gives pictures, so that tests need neither a terminal nor a clock. */
#ifndef GP_TUI_UI_H
#define GP_TUI_UI_H

#include "tui/history.h"
#include "tui/layout.h"
#include "tui/procs.h"

struct gp_snapshot;

enum gp_ui_mode {
    GP_UI_WATCH,
    GP_UI_HELP,
    GP_UI_FILTER,
    GP_UI_SEARCH,
    GP_UI_SIGNAL,
};

/* What the caller has to do behind a key. */
enum gp_ui_wish {
    GP_UI_GO_ON,
    GP_UI_QUIT,
    GP_UI_SUSPEND,
    GP_UI_REDRAW,   /* the whole screen, not only what has changed */
    GP_UI_INTERVAL, /* interval_ns has changed */
};

struct gp_ui {
    /* settings */
    uint64_t interval_ns;
    enum gp_density density;
    bool blocks, no_gpus, no_processes, read_only;
    enum gp_order order;
    bool reversed;
    int gpu; /* whose processes; −1: all */
    char filter[96], search[96];
    /* what there is */
    const struct gp_snapshot *snapshot; /* that is shown; NULL: none yet */
    struct gp_snapshot *newest;         /* owned */
    struct gp_snapshot *held;           /* owned: what is shown while paused */
    struct gp_history history;
    struct gp_procs procs;
    const char *notice; /* instead of everything, while there is no snapshot */
    /* where one is */
    enum gp_ui_mode mode;
    int64_t chosen_pid; /* the cursor follows the process */
    size_t chosen, first, first_gpu;
    size_t page; /* rows of processes on the screen */
    int scroll;  /* of the commands */
    size_t help_first;
    char before[96]; /* the text before it was edited */
    char message[128];
    struct gp_ui_target { /* of the signal that is being chosen */
        int64_t pid;
        int fd; /* pidfd: the process cannot become another one; −1: none */
        size_t signal;
        bool asks; /* the last question before it is sent */
        char who[128];
    } target;
};

void gp_ui_init(struct gp_ui *ui);
void gp_ui_fini(struct gp_ui *ui);

/* Takes over a snapshot. */
void gp_ui_take(struct gp_ui *ui, struct gp_snapshot *snapshot);

enum gp_ui_wish gp_ui_key(struct gp_ui *ui, int key);

/* The processes whose numbers are needed at every sample: those on the screen, sorted, at most max.
 * False: all are, because rows are sorted by such a number. */
bool gp_ui_watched(const struct gp_ui *ui, uint32_t *pids, size_t max, size_t *ret_count);

/* Draws all of it. `clock` stands in the corner. */
void gp_ui_draw(struct gp_ui *ui, struct gp_cells *cells, const char *clock);

#endif
