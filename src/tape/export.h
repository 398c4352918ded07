/* A recording, or a part of it, as a trace in Chrome's format, which ui.perfetto.dev shows. */
#ifndef GP_TAPE_EXPORT_H
#define GP_TAPE_EXPORT_H

#include "base/util.h"

struct gp_err;
struct gp_tape;

/* Writes counters of each GPU and notes of its events, at from <= t < to on the axis; *ret_pieces
 * is the number of samples and summaries. Errors as of gp_series_read() and gp_trace_open();
 * GP_EBUSY if the recording was reorganized meanwhile. */
int gp_export_trace(struct gp_tape *tape, int64_t from, int64_t to, const char *path,
                    uint64_t *ret_pieces, struct gp_err *err) GP_MUST_CHECK;

#endif
