/* The live monitor without its terminal: what is shown, and what keys do. It turns snapshots, a
 * size and keys into frames, so that tests need neither a terminal nor a clock. */
#ifndef GP_TUI_UI_H
#define GP_TUI_UI_H

#include "out/procs.h"
#include "proc/signal.h"
#include "source/control.h"
#include "tui/alerts.h"
#include "tui/closed.h"
#include "tui/guide.h"
#include "tui/history.h"
#include "tui/hits.h"
#include "tui/layout.h"
#include "tui/menu.h"
#include "tui/page.h"
#include "tui/prefs.h"
#include "tui/top_columns.h"
#include "tui/verdict.h"

struct gp_changer;
struct gp_children;
struct gp_cpu_past;
struct gp_feed;
struct gp_player;
struct gp_sampler;
struct gp_screen;
struct gp_snapshot;
struct gp_task;

/* The screen in front; screen.h has their key handlers and drawing functions. */
enum gp_ui_mode {
    GP_UI_WATCH,
    GP_UI_EDIT,
    GP_UI_SORT,
    GP_UI_GPU_ORDER,
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

/* What the caller has to do after a key. */
enum gp_ui_wish {
    GP_UI_GO_ON,
    GP_UI_QUIT,
    GP_UI_SUSPEND,
    GP_UI_REDRAW, /* the whole screen, not only the changes */
};

/* What happens to an edited text. */
enum gp_edit_step { GP_EDIT_TYPED, GP_EDIT_KEPT, GP_EDIT_DROPPED };

struct gp_ui;

/* What the monitor needs from the outside. Features whose member is NULL are disabled. */
struct gp_ui_outside {
    const char *root;         /* prefix for /proc; NULL: this machine */
    bool root_is_simulated;   /* gp_proc_hold() tells its processes from real ones */
    bool sees_processes;      /* the processes of the GPUs are in /proc below it */
    const char *machine;      /* simulated machine; NULL: a real one */
    struct gp_player *player; /* of the recording that is shown; NULL: a machine is */
    const char *config_path;  /* configuration file for the preferences */
    const char *themes;       /* folder of theme files */
    /* Opens a sampler of all metrics of the GPU whose index is ctx. */
    int (*open_details)(void *ctx, struct gp_sampler **ret, struct gp_err *err);
    /* Opens a sampler of all GPUs, for a verdict. ctx is not used. */
    int (*open_verdict)(void *ctx, struct gp_sampler **ret, struct gp_err *err);
    /* Opens a changer for the settings of the GPU with this index. */
    int (*open_changer)(unsigned index, struct gp_changer **ret, struct gp_err *err);
};

enum { GP_UI_ALERTS_MAX = 64 };
enum { GP_UI_TAGS = 256, GP_UI_TEXT_SIZE = 128, GP_UI_UNDOS = 16 };

struct gp_ui {
    const struct gp_screen *const *screens; /* GP_UI__COUNT */
    struct gp_prefs prefs;
    struct gp_ui_theme {
        struct gp_colors colors;           /* of the preference */
        unsigned changes;                  /* how often they were set */
        char problem[2 * GP_UI_TEXT_SIZE]; /* of its file; "": none */
        char words[4 * GP_UI_TEXT_SIZE];   /* all themes, for the setup screen */
    } theme;
    struct gp_ui_outside outside;
    struct gp_guide guide; /* for gpulse demo */
    /* The data. */
    const struct gp_snapshot *snapshot; /* the one shown; NULL: none yet */
    uint64_t shown;                     /* number of the snapshot */
    struct gp_snapshot *newest;         /* owned */
    struct gp_snapshot *held;           /* owned: shown while paused */
    char clock[16];                     /* the time of what is shown */
    struct gp_history history;
    struct gp_xids xids;
    struct gp_procs procs;
    struct gp_closed closed, closed_of_filter; /* the second one while there is a filter */
    struct gp_children *children;              /* of the tree; owned; NULL: it was never shown */
    struct gp_cpu_past *cpu_past;              /* owned; NULL: it was never shown */
    const char *notice; /* shown instead of everything while there is no snapshot */
    /* The arrangement. */
    struct gp_proc_order order; /* parsed from the preferences, like the columns */
    enum gp_proc_column columns[GP_TOP_COLUMNS];
    size_t column_count;
    int gpu;           /* selected GPU, whose processes are shown; −1: all */
    int mig;           /* selected MIG instance of it; −1: none */
    int tab_gpu;       /* it was selected because the keys went to the GPUs; −1: by the user */
    bool digit_typed;  /* just now: the next digit extends the number */
    int preset;        /* the last one taken; −1: none */
    bool preset_typed; /* just now: the next digit is that of a preset */
    int zoom;          /* a step of a graph is 2^zoom samples */
    int earlier;       /* steps between the right edge of a graph and now */
    bool gpus_have_focus;
    /* The current place. */
    enum gp_ui_mode mode;
    struct gp_ui_pin {
        int64_t pid; /* 0: none, or a group */
        unsigned gpu;
        uint64_t group; /* gp_closed_name(); 0: none */
    } pin, stand_in;    /* the cursor follows this row, or the other one while it is hidden */
    size_t chosen, first, first_gpu;
    struct gp_gpu_order gpu_order; /* of the last frame */
    size_t gpu_page;               /* number of GPUs on the screen */
    bool is_full_grid;             /* one without room for all GPUs */
    size_t page;                   /* of process rows */
    bool shows_rates;              /* cards or bars are visible */
    const char *series_place;      /* of the graphs of the chosen metric; NULL: on the screen */
    bool shows_cpu_past;
    bool shows_codecs; /* a process has used one */
    int scroll;        /* columns scrolled off the commands */
    int64_t followed;
    int64_t tags[GP_UI_TAGS];
    size_t tag_count;
    char search[GP_PREF_TEXT_SIZE];
    char message[GP_UI_TEXT_SIZE];
    struct gp_hits hits; /* of the last frame */
    /* The state of the screens in front. */
    struct gp_page text;
    struct gp_menu menu;
    struct gp_ui_help {
        bool on_list;  /* behind the first page */
        bool is_sheet; /* the first page is on the screen */
        bool explains; /* the menu or page in front */
    } help;
    struct gp_ui_alerts {
        struct gp_alert list[GP_UI_ALERTS_MAX]; /* the worst ones */
        size_t found;                           /* how many there are */
    } alerts;
    struct gp_ui_edit { /* the line editor at the bottom */
        char *text;     /* GP_PREF_TEXT_SIZE bytes */
        const char *label;
        const char *hint; /* shown while there is no text; NULL: none */
        char before[GP_PREF_TEXT_SIZE];
        enum gp_ui_mode behind; /* the screen to return to */
        void (*on_change)(struct gp_ui *ui, enum gp_edit_step step);
    } edit;
    struct gp_ui_targets { /* processes to end or to signal */
        struct gp_ui_target {
            int64_t pid;
            int fd; /* pidfd, so that a recycled pid is not signalled */
            bool ended;
            char user[40], command[2 * GP_UI_TEXT_SIZE];
        } list[GP_UI_TAGS];
        struct gp_procs rows; /* of the list, from before the signal; with the texts of the list */
        size_t count;
        double used_before;          /* bytes of memory in use on their GPUs */
        char whose[GP_UI_TEXT_SIZE]; /* of a group: its user or job; "": of none */
        size_t below;                /* of a single one: descendants that use GPUs as well */
        size_t signal;               /* the last one sent, */
        uint64_t sent_ns;            /* and when (monotonic); 0: none */
    } targets;
    struct gp_ui_details { /* page of a GPU or a process */
        unsigned gpu;
        int mig; /* instance of it; −1: none */
        int64_t pid;
        struct gp_feed *feed;             /* sampler of the GPU page */
        struct gp_snapshot *snapshot;     /* owned; NULL: none yet */
        struct gp_task *task;             /* reads the process from /proc */
        struct gp_process_job *job;       /* its work; owned while there is no task */
        struct gp_track track;            /* of the process, since the page was opened */
        struct gp_verdict_topic topic;    /* of the page */
        bool has_topic;                   /* it is wanted */
        struct gp_verdict_watch *verdict; /* NULL: none */
        struct gp_verdict_watch *leaving; /* of an earlier page, whose thread has not ended yet */
        bool to_environment;
    } details;
    struct gp_ui_adjust { /* page of the settings of a GPU */
        unsigned gpu;
        struct gp_task *task;
        struct gp_adjust_job *job; /* its work; owned while there is no task */
        bool asks;
        char text[GP_PREF_TEXT_SIZE]; /* requested value */
        char result[GP_UI_TEXT_SIZE * 4];
        bool undoes; /* the change in progress undoes the newest recorded one */
        struct gp_ui_undo {
            unsigned gpu;
            size_t control;
            char value[GP_PREF_TEXT_SIZE]; /* "": cannot be undone */
        } done[GP_UI_UNDOS], change;       /* changes that can be undone, and the one in progress */
        size_t done_count;
    } adjust;
    struct gp_ui_playback {           /* of a recording */
        char time[GP_PREF_TEXT_SIZE]; /* typed */
        uint64_t pressed_ns;          /* the last key that steps: when, which, how often in a row */
        int last;
        unsigned repeats;
        uint64_t known_from_ns; /* the graphs are complete since then */
        size_t past;            /* samples that are quickly read for them */
        bool hurries;           /* the player was asked for something: the next sample is due now */
    } playback;
    struct gp_ui_cost { /* resource use of gpulse */
        uint64_t since_ns, ticks, frames, ticks_ns, ticks_max_ns, frames_ns;
    } cost;
    bool is_stuck; /* a thread hangs: the process must exit with _exit() */
};

void gp_ui_init(struct gp_ui *ui);
/* Returns false if a thread hangs in the driver or the kernel: the process must then exit with
 * _exit(). */
bool gp_ui_fini(struct gp_ui *ui);

/* Applies changed preferences. Errors are shown on the screen. */
void gp_ui_apply(struct gp_ui *ui);

/* Takes over a snapshot and how long it took. */
void gp_ui_take(struct gp_ui *ui, struct gp_snapshot *snapshot, uint64_t took_ns);

enum gp_ui_wish gp_ui_key(struct gp_ui *ui, int key);

/* Handles a click at a place of the screen; `again`: the second click of a double click. */
enum gp_ui_wish gp_ui_click(struct gp_ui *ui, int x, int y, bool again);

/* The time between two samples. */
uint64_t gp_ui_tick_ns(const struct gp_ui *ui);

/* Descriptors that become readable when gp_ui_collect() has work; −1: none. */
enum { GP_UI_FDS = 4 };
void gp_ui_fds(const struct gp_ui *ui, int ret[GP_UI_FDS]);

/* Collects the results of threads. */
void gp_ui_collect(struct gp_ui *ui);

/* The processes whose values are needed in every sample: those on the screen, sorted, at most max.
 * Returns how many. */
size_t gp_ui_watched(const struct gp_ui *ui, uint32_t *pids, size_t max);

/* Whether the values of the other processes are needed too, because rows are sorted or filtered by
 * them. */
bool gp_ui_others_matter(const struct gp_ui *ui);

/* Draws the whole screen; `clock` is shown in the corner. */
void gp_ui_draw(struct gp_ui *ui, struct gp_cells *cells, const char *clock);

#endif
