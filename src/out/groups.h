/* Groups of processes, each with a row of their sums. */
#ifndef GP_OUT_GROUPS_H
#define GP_OUT_GROUPS_H

#include "out/procs.h"

/* Appends a row for each group of the rows. Rows without a pid, a user or a job are in none.
 * GP_ENOMEM. */
int gp_groups_add(struct gp_procs *procs, enum gp_proc_groups groups) GP_MUST_CHECK;

/* Adds what a process uses to a row with sums, and names the GPUs of such a row. */
void gp_groups_add_row(struct gp_proc_row *sum, const struct gp_proc_row *row);
void gp_groups_name_gpus(struct gp_proc_row *sum);

/* Whether the row is in the group of this row. */
bool gp_groups_has(const struct gp_proc_row *group, const struct gp_proc_row *row,
                   enum gp_proc_groups groups);

/* Whether both are of one job, whatever its step, or the same container or service. NULL: of
 * none. */
bool gp_groups_same_job(const char *a, const char *b);

#endif
