/* Reservations and the waiting line, as text and JSON. */
#ifndef GP_JOBS_QUEUE_H
#define GP_JOBS_QUEUE_H

#include "base/util.h"

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

/* Its document, gpulse.queue/1. */
void gp_queue_add_json(struct gp_strbuf *sb, const struct gp_leases *leases,
                       const struct gp_snapshot *snapshot, struct gp_selection *selection);

#endif
