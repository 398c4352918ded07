/* The terminal; term.c is the only file that uses curses. Not thread-safe. */
#ifndef GP_TUI_TERM_H
#define GP_TUI_TERM_H

#include "tui/cells.h"

struct gp_colors;
struct gp_err;
struct gp_prefs;
struct gp_term;

/* Opens the terminal of standard input and output. Fails with GP_EFAIL if it cannot address the
 * cursor; the caller then has to use another output. The caller must have set the locale and caught
 * SIGTSTP: otherwise ncurses handles SIGTSTP itself, redraws at any point of the program, and
 * ignores the signal while it draws. */
int gp_term_open(const struct gp_prefs *prefs, const struct gp_colors *colors, bool color,
                 struct gp_term **ret, struct gp_err *err) GP_MUST_CHECK;

/* Applies changed preferences: colors, mouse, characters. */
void gp_term_set(struct gp_term *term, const struct gp_prefs *prefs,
                 const struct gp_colors *colors);

/* Restores the terminal. */
void gp_term_close(struct gp_term *term);

void gp_term_size(struct gp_term *term, int *ret_w, int *ret_h);

/* Shows the frame by writing what changed since the last one. */
void gp_term_flush(struct gp_term *term, const struct gp_cells *cells);

/* Makes the next flush rewrite the whole screen. */
void gp_term_forget(struct gp_term *term);

/* The place of the click that GP_KEY_MOUSE reports. */
struct gp_term_click {
    int x, y;
    bool again; /* the second click of a double click */
};

struct gp_term_click gp_term_click(const struct gp_term *term);

/* The next key (keys.h), 0 if none is waiting, GP_TERM_RESIZED, or GP_TERM_CLOSED at the end of the
 * input. */
enum { GP_TERM_RESIZED = -1, GP_TERM_CLOSED = -2 };
int gp_term_key(struct gp_term *term);

/* Stops the process and gives the terminal to the shell until the process is continued. */
void gp_term_suspend(struct gp_term *term);

/* Opens the terminal again after an unexpected stop (kill -STOP). */
void gp_term_resume(struct gp_term *term);

#endif
