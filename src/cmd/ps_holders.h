/* gpulse ps for processes that have the GPUs open, whether or not the driver lists them. */
#ifndef GP_CMD_PS_HOLDERS_H
#define GP_CMD_PS_HOLDERS_H

#include "model/metric.h"
#include "out/procs.h"

struct gp_err;
struct gp_holders;
struct gp_proc_info;
struct gp_snapshot;
struct gp_strbuf;

/* A row made from /proc alone; it points into the texts of `info`. */
struct gp_proc_row gp_ps_row(const struct gp_proc_info *info, uint64_t wall_ns);

/* Searches for holders. GP_ETIMEOUT, GP_EIO, GP_ENOMEM. */
int gp_ps_find_holders(struct gp_holders *ret, struct gp_err *err) GP_MUST_CHECK;

/* The metrics that --explain needs. */
void gp_ps_want_explained(struct gp_metric_set *metrics);

/* --explain: how the memory of each GPU is used. GP_ENOMEM. */
int gp_ps_explain(struct gp_strbuf *sb, const struct gp_snapshot *snapshot, bool json,
                  struct gp_err *err) GP_MUST_CHECK;

/* --holders: rows for processes that the driver does not list. The rows point into the holders.
 * GP_ENOMEM. */
int gp_ps_add_holders(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                      const struct gp_holders *holders, struct gp_err *err) GP_MUST_CHECK;

#endif
