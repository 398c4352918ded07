/* The live monitor without its terminal: what is shown, and what keys do to it. Given a snapshot, a
 * size and keys it gives pictures, so that tests need neither a terminal nor a clock. */
#ifndef GP_TUI_UI_H
#define GP_TUI_UI_H

#include "out/procs.h"
#include "proc/signal.h"
#include "source/control.h"
#include "tui/alerts.h"
#include "tui/history.h"
#include "tui/hits.h"
#include "tui/layout.h"
#include "tui/menu.h"
#include "tui/page.h"
#include "tui/prefs.h"

struct gp_changer;
struct gp_feed;
struct gp_sampler;
struct gp_snapshot;
struct gp_task;

/* What stands in front; screen.h has their keys and pictures. */
enum gp_ui_mode {
    GP_UI_WATCH,
    GP_UI_EDIT,
    GP_UI_SORT,
    GP_UI_USERS,
    GP_UI_SIGNAL,
    GP_UI_SETUP,
    GP_UI_ADJUST,
    GP_UI_HELP,
    GP_UI_ALERTS,
    GP_UI_COST,
    GP_UI_GPU,
    GP_UI_PROCESS,
    GP_UI__COUNT,
};

/* What the caller has to do behind a key. */
enum gp_ui_wish {
    GP_UI_GO_ON,
    GP_UI_QUIT,
    GP_UI_SUSPEND,
    GP_UI_REDRAW, /* the whole screen, not only what has changed */
};

/* What becomes of a text that is typed. */
enum gp_edit_step { GP_EDIT_TYPED, GP_EDIT_KEPT, GP_EDIT_DROPPED };

struct gp_ui;

/* What the monitor needs from outside; what is NULL it does without. */
struct gp_ui_outside {
    const char *root;        /* prefix for /proc; NULL: of this machine */
    const char *machine;     /* that is simulated; NULL: it is a real one */
    const char *config_path; /* where preferences are kept */
    /* A sampler of all metrics of the GPU whose index ctx is. */
    int (*open_details)(void *ctx, struct gp_sampler **ret, struct gp_err *err);
    /* What changes settings of the GPU with this index. */
    int (*open_changer)(unsigned index, struct gp_changer **ret, struct gp_err *err);
};

enum { GP_UI_TAGS = 256, GP_UI_TEXT_SIZE = 128, GP_UI_UNDOS = 16 };

struct gp_ui {
    struct gp_prefs prefs;
    struct gp_ui_outside outside;
    /* what there is */
    const struct gp_snapshot *snapshot; /* that is shown; NULL: none yet */
    uint64_t shown;                     /* its number */
    struct gp_snapshot *newest;         /* owned */
    struct gp_snapshot *held;           /* owned: what is shown while paused */
    struct gp_history history;
    struct gp_xids xids;
    struct gp_procs procs;
    const char *notice; /* instead of everything, while there is no snapshot */
    /* how it is arranged */
    struct gp_proc_order order; /* out of the preferences, as are the columns */
    enum gp_proc_column columns[GP_PROC_COLUMN__COUNT];
    size_t column_count;
    int gpu;          /* that is chosen, and whose processes are shown; −1: all */
    bool digit_typed; /* just now: another one makes a longer number */
    int zoom;         /* a step of a graph is 2^zoom samples */
    int earlier;      /* steps between its right edge and now */
    bool gpus_have_focus;
    /* where one is */
    enum gp_ui_mode mode;
    int64_t chosen_pid; /* the cursor follows the process */
    unsigned chosen_gpu;
    size_t chosen, first, first_gpu;
    size_t page;      /* rows of processes on the screen */
    bool shows_rates; /* there are cards or bars on it */
    int scroll;       /* of the commands */
    int64_t followed;
    int64_t tags[GP_UI_TAGS];
    size_t tag_count;
    char search[GP_PREF_TEXT_SIZE];
    char message[GP_UI_TEXT_SIZE];
    struct gp_hits hits; /* of the last picture */
    /* the screens in front */
    struct gp_page text;
    struct gp_menu menu;
    struct gp_ui_edit { /* a text that is typed at the bottom */
        char *text;     /* GP_PREF_TEXT_SIZE bytes */
        const char *label;
        char before[GP_PREF_TEXT_SIZE];
        enum gp_ui_mode behind; /* the screen that comes back */
        void (*on_change)(struct gp_ui *ui, enum gp_edit_step step);
    } edit;
    struct gp_ui_targets { /* of a signal */
        struct gp_ui_target {
            int64_t pid;
            int fd; /* pidfd: the process cannot become another one */
        } list[GP_UI_TAGS];
        size_t count;
        bool asks; /* the last question before it is sent */
        char who[GP_UI_TEXT_SIZE];
    } targets;
    struct gp_ui_details { /* of a GPU or a process */
        unsigned gpu;
        int64_t pid;
        struct gp_feed *feed;         /* everything about the GPU */
        struct gp_snapshot *snapshot; /* owned; NULL: none yet */
        struct gp_task *task;         /* looks at the process */
        struct gp_process_job *job;   /* its work; owned while there is no task */
        struct gp_track track;        /* of the process, since the page is open */
        bool to_environment;
    } details;
    struct gp_ui_adjust { /* settings of a GPU */
        unsigned gpu;
        struct gp_task *task;
        struct gp_adjust_job *job; /* its work; owned while there is no task */
        bool asks;
        char text[GP_PREF_TEXT_SIZE]; /* the value wanted */
        char result[GP_UI_TEXT_SIZE * 4];
        bool undoes; /* the change in progress takes back the one that is undone next */
        struct gp_ui_undo {
            unsigned gpu;
            size_t control;
            char value[GP_PREF_TEXT_SIZE]; /* "": there is no way back */
        } done[GP_UI_UNDOS], change; /* changes that can be taken back, and the one in progress */
        size_t done_count;
    } adjust;
    struct gp_ui_cost { /* of gpulse itself */
        uint64_t since_ns, ticks, frames, ticks_ns, ticks_max_ns, frames_ns;
    } cost;
    bool is_stuck; /* a thread was left behind: the process must end with _exit() */
};

void gp_ui_init(struct gp_ui *ui);
/* False if a thread is stuck inside the driver or the kernel: then the process must end with
 * _exit(). */
bool gp_ui_fini(struct gp_ui *ui);

/* Puts changed preferences into force. What is wrong with one is told on the screen. */
void gp_ui_apply(struct gp_ui *ui);

/* Takes over a snapshot; so long it took to make. */
void gp_ui_take(struct gp_ui *ui, struct gp_snapshot *snapshot, uint64_t took_ns);

enum gp_ui_wish gp_ui_key(struct gp_ui *ui, int key);

/* A click on a place of the screen; `again`: the second of a double one. */
enum gp_ui_wish gp_ui_click(struct gp_ui *ui, int x, int y, bool again);

/* Descriptors that are readable when there is something for gp_ui_collect(); −1: none. */
enum { GP_UI_FDS = 3 };
void gp_ui_fds(const struct gp_ui *ui, int ret[GP_UI_FDS]);

/* Takes what threads have found out. */
void gp_ui_collect(struct gp_ui *ui);

/* The processes whose numbers are needed at every sample: those on the screen, sorted, at most
 * max. Returns how many. */
size_t gp_ui_watched(const struct gp_ui *ui, uint32_t *pids, size_t max);

/* Whether the numbers of the other processes matter too, because rows are sorted or chosen by
 * them. */
bool gp_ui_others_matter(const struct gp_ui *ui);

/* Draws all of it. `clock` stands in the corner. */
void gp_ui_draw(struct gp_ui *ui, struct gp_cells *cells, const char *clock);

#endif
