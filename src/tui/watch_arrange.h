/* The regions of the main screen: keys show and hide each of them, or take a preset. */
#ifndef GP_TUI_WATCH_ARRANGE_H
#define GP_TUI_WATCH_ARRANGE_H

#include "tui/keys.h"

struct gp_ui;

/* Returns false for any other action. */
bool gp_watch_arrange_key(struct gp_ui *ui, enum gp_action action, int key);

#endif
