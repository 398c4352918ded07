/* Playing a recording: the keys, and the lines at the bottom that show where in it the screen is.
 */
#ifndef GP_TUI_PLAYBACK_H
#define GP_TUI_PLAYBACK_H

#include "tui/screen.h"

enum gp_play_action {
    GP_PLAY_NONE,
#define PLAY(action, first, second, names, help) GP_PLAY_##action,
#include "tui/playback.def"
#undef PLAY
    GP_PLAY__COUNT,
};

const char *gp_play_keys(enum gp_play_action action);
const char *gp_play_help(enum gp_play_action action);

/* Handles a key of a screen that shows a sample; false: it has its usual meaning. */
bool gp_playback_key(struct gp_ui *ui, int key);

/* Handles a click on the timeline; false: it was not there. */
bool gp_playback_click(struct gp_ui *ui, const struct gp_hit *hit, int x);

/* Adds a sample of a recording to the graphs: it may be earlier than the one before. */
void gp_playback_add_history(struct gp_ui *ui, const struct gp_snapshot *snapshot);

/* Whether this action of the main screen needs the machine itself, which a recording is not; then
 * says so. */
bool gp_playback_refuses(struct gp_ui *ui, enum gp_action action);

/* Whether this action is not available, or not by its usual key. */
bool gp_playback_hides(const struct gp_ui *ui, enum gp_action action);

/* Draws its keys from column x on, and returns the one after them. */
int gp_playback_draw_keys(const struct gp_ui *ui, const struct gp_box *box, int x);

/* Lines at the bottom of a screen of this height; 0: nothing is played. */
int gp_playback_lines(const struct gp_ui *ui, int height);
void gp_playback_draw(struct gp_ui *ui, const struct gp_box *box);

#endif
