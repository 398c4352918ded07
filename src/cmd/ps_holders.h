/* What gpulse ps tells of those who have the GPUs open, listed by the driver or not. */
#ifndef GP_CMD_PS_HOLDERS_H
#define GP_CMD_PS_HOLDERS_H

#include "model/metric.h"
#include "out/procs.h"

struct gp_err;
struct gp_holders;
struct gp_proc_info;
struct gp_snapshot;
struct gp_strbuf;

/* A row of what /proc alone tells; it points into the texts of `info`. */
struct gp_proc_row gp_ps_row(const struct gp_proc_info *info, uint64_t wall_ns);

/* Looks for them. GP_ETIMEOUT, GP_EIO, GP_ENOMEM. */
int gp_ps_find_holders(struct gp_holders *ret, struct gp_err *err) GP_MUST_CHECK;

/* What --explain needs of a GPU. */
void gp_ps_want_explained(struct gp_metric_set *metrics);

/* --explain: where the memory of each GPU is. GP_ENOMEM. */
int gp_ps_explain(struct gp_strbuf *sb, const struct gp_snapshot *snapshot, bool json,
                  struct gp_err *err) GP_MUST_CHECK;

/* --holders: rows for those that the driver does not list. The rows point into the holders.
 * GP_ENOMEM. */
int gp_ps_add_holders(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                      const struct gp_holders *holders, struct gp_err *err) GP_MUST_CHECK;

#endif
