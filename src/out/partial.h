/* What is missing from a partial snapshot. */
#ifndef GP_OUT_PARTIAL_H
#define GP_OUT_PARTIAL_H

struct gp_err;
struct gp_snapshot;

/* Fills err with GP_EPARTIAL: the first GPU or list that could not be read, and the number of other
 * GPUs. Leaves it unchanged if nothing is missing. */
void gp_partial_explain(const struct gp_snapshot *snapshot, struct gp_err *err);

#endif
