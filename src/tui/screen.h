/* The screens of the monitor, of which one is in front. Each has its key handler and its drawing
 * function. Private to the monitor. */
#ifndef GP_TUI_SCREEN_H
#define GP_TUI_SCREEN_H

#include "tui/keys.h"
#include "tui/ui.h"

struct gp_screen {
    enum gp_ui_wish (*key)(struct gp_ui *ui, int key);
    void (*draw)(struct gp_ui *ui, const struct gp_box *box);
    /* Rewrites the lines of a page when it is opened and after each snapshot. */
    void (*fill)(struct gp_ui *ui);
    /* Releases the resources of the screen when it is left. */
    void (*leave)(struct gp_ui *ui);
    const char *title; /* title of a page; NULL if it has none or draws it itself */
};

extern const struct gp_screen gp_screen_watch, gp_screen_edit, gp_screen_sort, gp_screen_gpu_order,
    gp_screen_users, gp_screen_signal, gp_screen_setup, gp_screen_adjust, gp_screen_help,
    gp_screen_alerts, gp_screen_cost, gp_screen_gpu, gp_screen_process;

/* ---- shared by the screens ---- */

/* Switches to a screen and leaves the current one. */
void gp_ui_show(struct gp_ui *ui, enum gp_ui_mode mode);

void gp_ui_say(struct gp_ui *ui, const char *fmt, ...) GP_PRINTF(2, 3);

bool gp_ui_is_vi(const struct gp_ui *ui);

/* The key handler and drawing function of pages. */
enum gp_ui_wish gp_page_screen_key(struct gp_ui *ui, int key);
void gp_page_screen_draw(struct gp_ui *ui, const struct gp_box *box);

/* Edits a text of GP_PREF_TEXT_SIZE bytes at the bottom of the screen, then returns to the current
 * screen. */
void gp_ui_edit(struct gp_ui *ui, char *text, const char *label,
                void (*on_change)(struct gp_ui *ui, enum gp_edit_step step));

/* The process under the cursor; NULL if there is none. */
const struct gp_proc_row *gp_ui_chosen_row(const struct gp_ui *ui);
/* The selected GPU, otherwise the first GPU of the process under the cursor, otherwise the first
 * GPU. NULL if there are no GPUs. */
const struct gp_device *gp_ui_chosen_gpu(const struct gp_ui *ui);

/* The verdict of a page: begin to observe the process or GPU of its topic, add the present answer
 * to the page, and end the observation. */
void gp_ui_observe(struct gp_ui *ui, struct gp_verdict_topic topic);
void gp_ui_write_verdict(struct gp_ui *ui);
void gp_ui_observe_no_more(struct gp_ui *ui);

/* The time range of the graphs. */
struct gp_span gp_ui_span(const struct gp_ui *ui, uint64_t now_ns);

/* The window that explains the menu or page in front: ? opens it, and the next key closes it.
 * Returns whether the key was for it. */
bool gp_help_key(struct gp_ui *ui, int key);
void gp_help_draw(const struct gp_ui *ui, const struct gp_box *box);

/* Collect the results of the screens' threads. */
void gp_gpu_collect(struct gp_ui *ui);
void gp_process_collect(struct gp_ui *ui);
void gp_adjust_collect(struct gp_ui *ui);
void gp_signal_collect(struct gp_ui *ui);

/* The pidfd of a process that was sent a signal and has not ended yet; −1: none. */
int gp_signal_fd(const struct gp_ui *ui);

/* Sets the colors of the chosen theme. A file that cannot be used is reported, and the default
 * theme is shown. */
void gp_ui_set_theme(struct gp_ui *ui);

/* Saves the preferences and reports the result. */
void gp_ui_save(struct gp_ui *ui);

/* Tags or untags the process under the cursor, or tags all processes of its group. */
void gp_tags_turn(struct gp_ui *ui);
/* Tags the process and all of its descendants that have rows. */
void gp_tags_add_children(struct gp_ui *ui);

void gp_ui_choose(struct gp_ui *ui, size_t row);

/* Chooses the row of a process, and unfolds what it is below; returns false if it has none. */
bool gp_ui_go_to_process(struct gp_ui *ui, int64_t pid);

/* What is folded now. */
struct gp_closed *gp_ui_closed(struct gp_ui *ui);
/* Whether the process is in the snapshot, shown or not. */
bool gp_ui_has_process(const struct gp_ui *ui, int64_t pid);
/* The rows and the order of the process list. */
struct gp_procs_options gp_ui_procs_options(const struct gp_ui *ui);
/* Rebuilds the rows after a change of order or choice. */
void gp_ui_build_rows(struct gp_ui *ui);
/* The same after a change of the filter: what it leads to is unfolded. */
void gp_ui_refilter(struct gp_ui *ui);

#endif
