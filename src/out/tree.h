/* The process tree. */
#ifndef GP_OUT_TREE_H
#define GP_OUT_TREE_H

#include "out/procs.h"

/* Adds rows for the ancestors of the existing rows; with groups those within their job alone, and
 * never init. GP_ENOMEM. */
int gp_tree_add_ancestors(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                          enum gp_proc_groups groups) GP_MUST_CHECK;

/* Sorts by the sums of each process and its descendants, so that siblings are in that order.
 * Parents that do not use GPUs get the sums of those that do. GP_ENOMEM. */
int gp_tree_sort(struct gp_procs *procs, const struct gp_proc_order *order,
                 enum gp_proc_groups groups) GP_MUST_CHECK;

/* Moves children after their parents, and members after their groups, keeps the order of siblings,
 * and sets the depth of each row. With groups, an ancestor with a single child is folded into it:
 * its row is then behind the last one. GP_ENOMEM. */
int gp_tree_arrange(struct gp_procs *procs, enum gp_proc_groups groups) GP_MUST_CHECK;

/* Appends the branches that precede a row. */
void gp_tree_add_branch(struct gp_strbuf *sb, const struct gp_proc_row *row);

#endif
