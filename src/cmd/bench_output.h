/* What gpulse bench prints, and the files that it writes. */
#ifndef GP_CMD_BENCH_OUTPUT_H
#define GP_CMD_BENCH_OUTPUT_H

#include "bench/judge.h"
#include "bench/session.h"
#include "cmd/bench.h"

/* The progress, on a line of the terminal; the end of it; and a message in between. */
void gp_bench_tell(const char *text);
void gp_bench_tell_no_more(void);
void gp_bench_tell_aside(const char *text);

/* Whether a file (NULL: none) can be written later; it is not touched yet. GP_EIO, GP_EPERM. */
int gp_bench_check_path(const char *path, struct gp_err *err) GP_MUST_CHECK;

/* Prints the results, and writes the files. That of an earlier run stays, if not everything was
 * measured. */
int gp_bench_print(const struct gp_bench *bench, const struct gp_bench_origin *origin,
                   const struct gp_bench_options *o, bool is_complete,
                   struct gp_err *err) GP_MUST_CHECK;

/* Prints whether results are worse than they should be. 1: one is; GP_EPARTIAL: a device had
 * nothing to be compared with; 0 or an error. `earlier` may be NULL. */
int gp_bench_print_judgement(const struct gp_bench_session *s, const struct gp_bench_options *o,
                             const struct gp_bench_earlier *earlier,
                             struct gp_err *err) GP_MUST_CHECK;

#endif
