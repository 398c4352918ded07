/* What was measured: a list of results, which all outputs print. */
#ifndef GP_BENCH_RESULT_H
#define GP_BENCH_RESULT_H

#include "bench/measure.h"

/* What the GPU did during a measurement, by its driver. */
struct gp_bench_conditions {
    bool is_known;
    unsigned samples;
    double clock_mhz, clock_least_mhz; /* of the SMs: mean and lowest; 0: unknown, like the next */
    double clock_max_mhz;              /* that the GPU can reach */
    double watts, celsius;             /* mean, highest */
    uint64_t limits;                   /* what limited its clocks: bits of NVML, without idle */
    double ecc_corrected, ecc_uncorrected; /* errors of its memory that were counted meanwhile */
    uint32_t other_pid;                    /* another process on the GPU; 0: none */
};

/* X(id, word) */
#define GP_BENCH_OUTCOMES(X)                                                                       \
    X(MEASURED, "measured")                                                                        \
    X(WRONG, "wrong") /* computed, but the results are wrong */                                    \
    X(SKIPPED, "skipped")                                                                          \
    X(FAILED, "failed")

enum gp_bench_outcome {
#define X(id, word) GP_BENCH_##id,
    GP_BENCH_OUTCOMES(X)
#undef X
};

struct gp_bench_result {
    const char *test; /* "matmul" */
    char what[32];    /* "cpu", "gpu", "copy", "bf16" */
    char device[48];  /* its index; "cpu"; "0->1"; of an earlier run: its UUID */
    uint64_t size;    /* rows of a matrix, bytes; 0: does not matter */
    const char *unit; /* "GFLOP/s", "GB/s", "us", "%" */
    bool is_lower_better;
    bool is_joint; /* the devices wait for each other: who hangs is unknown */
    enum gp_bench_outcome outcome;
    struct gp_bench_stats value;
    double peak;          /* of the data sheet, in the same unit; 0: unknown */
    double peak_at_clock; /* at the clock that was measured */
    bool is_steady;
    char kernel[80]; /* what computed it */
    char note[200];  /* why it was skipped; what is wrong; what makes it doubtful */
    struct gp_bench_conditions conditions;
};

struct gp_bench_results {
    struct gp_bench_result *list;
    size_t count, room;
};

/* A new one, zeroed but for these; NULL: out of memory. Valid until the next one. */
struct gp_bench_result *gp_bench_results_add(struct gp_bench_results *results, const char *test,
                                             const char *what, const char *device);
void gp_bench_results_fini(struct gp_bench_results *results);

/* Removes those that were begun but not measured, after an interruption. */
void gp_bench_results_drop_unfinished(struct gp_bench_results *results);

/* A device hangs. Writes which, and for how long: of a result of several devices, where each waits
 * for the others, all of them. Sets what is unfinished of it to FAILED, or its last result. */
void gp_bench_mark_failed(struct gp_bench_results *results, const char *device, uint64_t waited_ns,
                          char *ret_why, size_t size);

/* NULL: there is none. */
const struct gp_bench_result *gp_bench_results_find(const struct gp_bench_results *results,
                                                    const char *test, const char *what,
                                                    const char *device, uint64_t size);

const char *gp_bench_outcome_word(enum gp_bench_outcome outcome);

#endif
