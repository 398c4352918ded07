/* The guide of gpulse demo: a line at the bottom of the screen names the next key to try. It knows
 * the table of steps (guide.def) and the keys that were pressed, and nothing about screens. */
#ifndef GP_TUI_GUIDE_H
#define GP_TUI_GUIDE_H

#include "tui/cells.h"
#include "tui/keys.h"

struct gp_guide {
    bool is_on;
    bool is_pressed; /* the key of this step; the step ends when its screen is left */
    unsigned opened; /* the screen that it opened */
    size_t step;
};

/* A key was pressed: its action on the main screen (GP_ACTION_NONE on other screens), and which
 * screen is in front now; 0: the main one. */
void gp_guide_key(struct gp_guide *guide, enum gp_action action, unsigned front);

/* Draws a sentence into the first line of the box: what to do next on the screen in front. */
void gp_guide_draw(const struct gp_guide *guide, const struct gp_box *box, unsigned front);

#endif
