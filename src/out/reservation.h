/* Who has reserved a GPU, in words and as JSON; from the fields reservation.* of a snapshot. */
#ifndef GP_OUT_RESERVATION_H
#define GP_OUT_RESERVATION_H

#include "out/json.h"

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;

/* All fields of a reservation. */
void gp_reservation_want(struct gp_metric_set *metrics);

bool gp_is_reserved(const struct gp_device *device);

/* Appends "reserved by alice (train)", with at most `columns` columns of the name; 0: all. */
void gp_reservation_add(struct gp_strbuf *sb, const struct gp_device *device, size_t columns);

/* {"user", "name", "since"}, or null if the GPU is not reserved. */
json_t *gp_reservation_object(const struct gp_device *device);

/* All reserved GPUs: [{"gpu": "0" or "1:0", "user", "name", "since"}]. */
json_t *gp_reservation_list(const struct gp_snapshot *snapshot);

#endif
