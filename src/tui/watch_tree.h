/* Folding the branches of the tree and the groups on the main screen. */
#ifndef GP_TUI_WATCH_TREE_H
#define GP_TUI_WATCH_TREE_H

#include "tui/keys.h"

struct gp_ui;

/* Returns false for any other action, and where there is nothing to fold. */
bool gp_watch_tree_key(struct gp_ui *ui, enum gp_action action);

/* Folds or unfolds the chosen row. */
void gp_watch_turn_branch(struct gp_ui *ui);

#endif
