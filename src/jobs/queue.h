/* Reservations and the waiting line, as text and JSON. */
#ifndef GP_JOBS_QUEUE_H
#define GP_JOBS_QUEUE_H

#include "base/util.h"

struct gp_err;
struct gp_leases;
struct gp_selection;
struct gp_snapshot;
struct gp_strbuf;

/* The table of gpulse queue: a row for each reservation that has or could use a selected GPU (NULL:
 * all), its lines cut at `room` columns (0: no limit), and below a waiting one what keeps it from
 * each GPU. Returns the number of rows; nothing is appended if there are none. */
size_t gp_queue_add(struct gp_strbuf *sb, const struct gp_leases *leases,
                    const struct gp_snapshot *snapshot, struct gp_selection *selection,
                    size_t room);

/* The supervisor of the job whose name in the table is, or else contains, this one: one of this
 * user, or else of another. GP_ENODEV: there is none; GP_EFAIL: there are several, or it still
 * waits. */
int gp_queue_find(const struct gp_leases *leases, const char *name, uint32_t *ret_pid,
                  struct gp_err *err) GP_MUST_CHECK;

/* Its document, gpulse.queue/1. */
void gp_queue_add_json(struct gp_strbuf *sb, const struct gp_leases *leases,
                       const struct gp_snapshot *snapshot, struct gp_selection *selection);

#endif
