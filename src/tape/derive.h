/* What follows from the samples of a recording, and is kept longer than they are: summaries of time
 * (roll.h), how much each GPU was used (the table usage) and each process used it (share), and when
 * processes were last seen.
 *
 * It is worked out from the frames as they are stored, and stored itself once a minute. After a
 * crash, or when the disk was full, it starts again from what was stored and the frames since:
 * nothing is lost that frames exist of. */
#ifndef GP_TAPE_DERIVE_H
#define GP_TAPE_DERIVE_H

#include "tape/store.h"

struct gp_derive;
struct gp_err;

/* The tables usage and share have a row for each of these periods. */
#define GP_USAGE_PERIOD_US INT64_C(600000000)

/* Goes on where the recording ends; within a transaction. interval_us: between samples; a pause of
 * more than three and five seconds is time of which nothing is known. */
int gp_derive_open(struct gp_store *store, int64_t interval_us, struct gp_derive **ret,
                   struct gp_err *err) GP_MUST_CHECK;
void gp_derive_close(struct gp_derive *derive);

/* Adds a frame that is being stored, within the same transaction. */
int gp_derive_add(struct gp_derive *derive, int64_t t, const void *frame, size_t size,
                  struct gp_err *err) GP_MUST_CHECK;

/* Stores all that was worked out, within a transaction. */
int gp_derive_flush(struct gp_derive *derive, struct gp_err *err) GP_MUST_CHECK;

/* From which place on the axis frames are still needed. */
int64_t gp_derive_needs_us(const struct gp_derive *derive);

#endif
