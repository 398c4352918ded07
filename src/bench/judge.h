/* Whether results are as they should be. Pure functions, but for reading a file. */
#ifndef GP_BENCH_JUDGE_H
#define GP_BENCH_JUDGE_H

#include "bench/bench.h"

struct gp_strbuf;

/* Results of an earlier run, by the UUIDs of their devices (their names, where those are not
 * known), which are the `device` of each. */
struct gp_bench_earlier {
    char path[256];
    char time[64];
    struct gp_bench_results results;
};

/* Reads a document of gp_bench_add_json(). GP_EIO; GP_EFORMAT says what is wrong with it. */
int gp_bench_earlier_read(struct gp_bench_earlier *earlier, const char *path,
                          struct gp_err *err) GP_MUST_CHECK;
void gp_bench_earlier_fini(struct gp_bench_earlier *earlier);

enum gp_bench_standard {
    GP_BENCH_BY_OTHERS,  /* the median of the other devices of this model */
    GP_BENCH_BY_SHEET,   /* the data sheet of the model */
    GP_BENCH_BY_EARLIER, /* the earlier run */
};

/* A result that is worse than a standard. */
struct gp_bench_shortfall {
    const struct gp_bench_result *result;
    enum gp_bench_standard standard;
    double expected;
    double part; /* of what is expected, less than 1; for what should be low, its inverse */
};

/* Finds them: less than `least` (0.95) of the other devices of the same model, or of the earlier
 * run (NULL: none), if the difference is more than noise; less than half of the data sheet, where
 * a library computed that its vendor tuned. Copies between host and device may be 20 % worse, and
 * latencies twice as high. Stores at most `max`, and returns how many there
 * are. `other`: how many results could be compared with the earlier run. */
size_t gp_bench_judge(const struct gp_bench *bench, const struct gp_bench_earlier *earlier,
                      double least, struct gp_bench_shortfall *ret, size_t max,
                      size_t *ret_compared);

/* Appends a line for each, or one that says that all is well. */
void gp_bench_add_judgement(struct gp_strbuf *sb, const struct gp_bench *bench,
                            const struct gp_bench_earlier *earlier,
                            const struct gp_bench_shortfall *list, size_t count, size_t compared);

#endif
