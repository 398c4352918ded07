/* A recording as a source of samples: each is a step later than the one before, unless its player
 * is asked for others. */
#ifndef GP_TAPE_SOURCE_H
#define GP_TAPE_SOURCE_H

#include "base/util.h"

struct gp_err;
struct gp_source;

/* What libgpulse-tape.so exports. Commands load it for --tape: most uses of them do without SQLite
 * and zstd.
 *
 * path must outlive the source. at_us: the clock's time of the first sample, or where it starts,
 * see control.h; errors as of gp_tape_control_open(). */
typedef int gp_tape_source_open(const char *path, int64_t at_us, struct gp_source **ret,
                                struct gp_err *err);
extern __attribute__((visibility("default"))) gp_tape_source_open gpulse_tape_source;

#endif
