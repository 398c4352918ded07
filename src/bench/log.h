/* What GPUs do while they are measured, as a CSV file with a line for each sample of each GPU. */
#ifndef GP_BENCH_LOG_H
#define GP_BENCH_LOG_H

#include "base/outfile.h"
#include "bench/observation.h"

struct gp_strbuf;

struct gp_bench_log {
    struct gp_outfile file;
    void (*tell)(const char *text); /* called once, when it cannot be written any more;
                                       and once when lines are dropped */
    bool is_broken;
    bool has_gaps; /* its reader was too slow */
};

/* Opens the file, and writes the heading. `path` must outlive the log. What is no regular file is
 * never waited for. GP_EIO, GP_EPERM. */
int gp_bench_log_open(struct gp_bench_log *log, const char *path, void (*tell)(const char *text),
                      struct gp_err *err) GP_MUST_CHECK;

/* Appends a line; test and what: of the measurement that is running, "": none. */
void gp_bench_log_add(struct gp_strbuf *sb, const char *gpu, const char *test, const char *what,
                      const struct gp_bench_observation *o);

/* Writes lines. Reports the first failure, and writes nothing from then on. If a reader is too
 * slow, lines are dropped; that is reported once. */
void gp_bench_log_write(struct gp_bench_log *log, const struct gp_strbuf *lines);

void gp_bench_log_close(struct gp_bench_log *log);

#endif
