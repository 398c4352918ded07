/* The terminal: the only file that knows curses. Used by one thread. */
#ifndef GP_TUI_TERM_H
#define GP_TUI_TERM_H

#include "tui/cells.h"

struct gp_err;
struct gp_prefs;
struct gp_term;

/* Takes the terminal of standard input and output. GP_EFAIL if it cannot place text: then the
 * caller has to do without. The locale is set already, and SIGTSTP caught: else curses does that,
 * and draws in the midst of whatever is going on, but is deaf to it while it draws. */
int gp_term_open(const struct gp_prefs *prefs, bool color, struct gp_term **ret,
                 struct gp_err *err) GP_MUST_CHECK;

/* Puts changed preferences into force: colours, mouse, characters. */
void gp_term_set(struct gp_term *term, const struct gp_prefs *prefs);

/* Gives it back as it was. */
void gp_term_close(struct gp_term *term);

void gp_term_size(struct gp_term *term, int *ret_w, int *ret_h);

/* Shows the picture: what has changed since the last one. */
void gp_term_flush(struct gp_term *term, const struct gp_cells *cells);

/* The next flush shows all of it. */
void gp_term_forget(struct gp_term *term);

/* Where the key GP_KEY_MOUSE clicked. */
struct gp_term_click {
    int x, y;
    bool again; /* the second click of a double one */
};

struct gp_term_click gp_term_click(const struct gp_term *term);

/* The next key (keys.h), 0 if none is waiting, GP_TERM_RESIZED, or GP_TERM_CLOSED when there will
 * be no further one. */
enum { GP_TERM_RESIZED = -1, GP_TERM_CLOSED = -2 };
int gp_term_key(struct gp_term *term);

/* Gives the terminal to the shell until the process goes on. */
void gp_term_suspend(struct gp_term *term);

/* Takes it again behind a stop that came unasked (kill -STOP). */
void gp_term_resume(struct gp_term *term);

#endif
