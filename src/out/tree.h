/* Processes below their parents. */
#ifndef GP_OUT_TREE_H
#define GP_OUT_TREE_H

#include "out/procs.h"

/* Adds the ancestors of the rows that there are. GP_ENOMEM leaves no rows. */
int gp_tree_add_ancestors(struct gp_procs *procs, const struct gp_snapshot *snapshot) GP_MUST_CHECK;

/* Puts children behind their parents, siblings in the order in which they stand, and says how deep
 * each is. GP_ENOMEM leaves no rows. */
int gp_tree_arrange(struct gp_procs *procs) GP_MUST_CHECK;

/* Appends the lines that lead to a row. */
void gp_tree_add_branch(struct gp_strbuf *sb, const struct gp_proc_row *row);

#endif
