/* Whether results are as they should be. Pure functions, but for reading a file. */
#ifndef GP_BENCH_JUDGE_H
#define GP_BENCH_JUDGE_H

#include "bench/bench.h"

struct gp_strbuf;

/* Results of an earlier run, by the UUIDs of their devices, which are the `device` of each. Those
 * of a device without one, of the CPU, and of several devices have their names as in the run, and
 * count on the same host only. */
struct gp_bench_earlier {
    char path[256];
    char time[64], host[128];
    struct gp_bench_results results;
};

/* Reads a document of gp_bench_add_json(). GP_EIO; GP_EFORMAT says what is wrong with it. */
int gp_bench_earlier_read(struct gp_bench_earlier *earlier, const char *path,
                          struct gp_err *err) GP_MUST_CHECK;
void gp_bench_earlier_fini(struct gp_bench_earlier *earlier);

enum { GP_BENCH_SHORTFALLS = 256 };

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

/* What was compared. */
struct gp_bench_judgement {
    struct gp_bench_shortfall list[GP_BENCH_SHORTFALLS];
    size_t count;                       /* may be more than there is room for */
    size_t by_standard[3];              /* how many results were compared with each */
    size_t by_device[GP_BENCH_DEVICES]; /* and of each device */
    size_t other_kernels; /* results that were not: the earlier run used another kernel */
};

/* Finds results that are less than `least` (0: 0.9 for products, 0.95 for memory) of the median of
 * the other devices of the same model, or of the earlier run (NULL: none), if the difference is
 * more than noise; or less than half of the data sheet's rate at the clock that was measured, where
 * a library computed that its vendor tuned. Copies between host and device may be 20 % worse, and
 * latencies twice as high. Only what was measured, by the same kernel, is compared. */
void gp_bench_judge(const struct gp_bench *bench, const char *host,
                    const struct gp_bench_earlier *earlier, double least,
                    struct gp_bench_judgement *ret);

/* Whether a device had nothing to be compared with. */
bool gp_bench_is_incomplete(const struct gp_bench *bench, const struct gp_bench_judgement *j);

/* Appends a line for each shortfall, and what was compared with what. */
void gp_bench_add_judgement(struct gp_strbuf *sb, const struct gp_bench *bench,
                            const struct gp_bench_earlier *earlier,
                            const struct gp_bench_judgement *j);

#endif
