/* The screens of the monitor: one in front at a time, each with its keys and its picture. Only the
 * files of the monitor itself include this. */
#ifndef GP_TUI_SCREEN_H
#define GP_TUI_SCREEN_H

#include "tui/keys.h"
#include "tui/ui.h"

struct gp_screen {
    enum gp_ui_wish (*key)(struct gp_ui *ui, int key);
    void (*draw)(struct gp_ui *ui, const struct gp_box *box);
    /* Writes the lines of a page anew, when it is opened and when there is a new snapshot. */
    void (*fill)(struct gp_ui *ui);
    /* Lets go of what it holds, when it is left. */
    void (*leave)(struct gp_ui *ui);
    const char *title; /* of a page; NULL: it has none, or draws it itself */
};

extern const struct gp_screen gp_screen_watch, gp_screen_edit, gp_screen_sort, gp_screen_users,
    gp_screen_signal, gp_screen_setup, gp_screen_adjust, gp_screen_help, gp_screen_alerts,
    gp_screen_cost, gp_screen_gpu, gp_screen_process;

/* ---- what they share ---- */

/* Puts a screen in front, and leaves the one that was. */
void gp_ui_show(struct gp_ui *ui, enum gp_ui_mode mode);

void gp_ui_say(struct gp_ui *ui, const char *fmt, ...) GP_PRINTF(2, 3);

bool gp_ui_is_vi(const struct gp_ui *ui);

/* The keys and the picture of a page. */
enum gp_ui_wish gp_page_screen_key(struct gp_ui *ui, int key);
void gp_page_screen_draw(struct gp_ui *ui, const struct gp_box *box);

/* Has a text of GP_PREF_TEXT_SIZE bytes typed at the bottom of the screen; behind it comes the
 * screen that was. */
void gp_ui_edit(struct gp_ui *ui, char *text, const char *label,
                void (*on_change)(struct gp_ui *ui, enum gp_edit_step step));

/* The process under the cursor, NULL if there is none. */
const struct gp_proc_row *gp_ui_chosen_row(const struct gp_ui *ui);
/* The GPU that is chosen, else the first of the process under the cursor, else the first. NULL:
 * there is none. */
const struct gp_device *gp_ui_chosen_gpu(const struct gp_ui *ui);

/* The time that graphs show. */
struct gp_span gp_ui_span(const struct gp_ui *ui, uint64_t now_ns);

/* Take what the threads of these screens have found out. */
void gp_gpu_collect(struct gp_ui *ui);
void gp_process_collect(struct gp_ui *ui);
void gp_adjust_collect(struct gp_ui *ui);

/* Keeps the preferences for the next time, and says so. */
void gp_ui_save(struct gp_ui *ui);

void gp_ui_choose(struct gp_ui *ui, size_t row);
/* What the list shows, and how. */
struct gp_procs_options gp_ui_procs_options(const struct gp_ui *ui);
/* Builds the rows anew, behind a change of order or filter. */
void gp_ui_build_rows(struct gp_ui *ui);

#endif
