/* The measurements of gpulse bench, on an opened set of devices. Each adds its results to the list;
 * what a device cannot do, or has no memory for, is a result too, with the reason, and so is that
 * it failed: the others go on. They fail with GP_EINTR, and with GP_ENOMEM if the host has no
 * memory for results or, in multi and burn, for what they compare. */
#ifndef GP_BENCH_BENCH_H
#define GP_BENCH_BENCH_H

#include "bench/blas.h"
#include "bench/result.h"

#include <pthread.h>

struct gp_bench_watch;
struct gp_card;

struct gp_bench {
    struct gp_bench_pace pace;
    struct gp_bench_device *devices[GP_BENCH_DEVICES]; /* those to measure */
    char names[GP_BENCH_DEVICES][16];                  /* as in results: "0" */
    const struct gp_card *cards[GP_BENCH_DEVICES];     /* their models; NULL: unknown */
    size_t count;
    struct gp_blas blas; /* opened by matmul; its name is "" without one */
    bool has_blas;
    uint64_t seed;
    bool is_brief; /* memory, latency: only the most important part */
    struct gp_bench_results results;
    pthread_mutex_t lock;         /* of their list, which one thread enlarges and another copies */
    struct gp_bench_watch *watch; /* of the conditions; NULL: there is no driver to ask */
    void (*tell)(const char *text); /* progress, for a terminal */
};

/* matmul.c: the same product on the CPU and on each GPU, with and without copying the matrices to
 * it and the result back, in FP32, for these numbers of rows. */
int gp_bench_matmul(struct gp_bench *bench, const uint64_t *sizes, size_t count,
                    struct gp_err *err) GP_MUST_CHECK;

/* gemm.c: products in these precisions (a bit for each); `n` rows, 0: what suits the device. */
int gp_bench_gemms(struct gp_bench *bench, unsigned precisions, uint64_t n,
                   struct gp_err *err) GP_MUST_CHECK;

/* memory.c: the device's memory, copies between it and the host, and between devices. `bytes`, 0:
 * what suits the device. */
int gp_bench_memory(struct gp_bench *bench, uint64_t bytes, struct gp_err *err) GP_MUST_CHECK;

/* peer.c: copies of `bytes` from each device to each other one, where the library has them;
 * part of gp_bench_memory(). */
int gp_bench_peers(struct gp_bench *bench, size_t bytes, struct gp_err *err) GP_MUST_CHECK;

/* latency.c: of small things. */
int gp_bench_latency(struct gp_bench *bench, struct gp_err *err) GP_MUST_CHECK;

/* multi.c, for several devices: FP32 products on each device alone, then on two at once, and
 * so on; and a sum over all, of `bytes` on each (0: what suits them). */
int gp_bench_multi(struct gp_bench *bench, uint64_t n, uint64_t bytes,
                   struct gp_err *err) GP_MUST_CHECK;

/* reduce.c: that sum, by NCCL; the devices must be CUDA's, and several. */
int gp_bench_reduce(struct gp_bench *bench, size_t bytes, struct gp_err *err) GP_MUST_CHECK;

struct gp_bench_burn {
    uint64_t for_ns;
    unsigned precisions;   /* bits; the first that all devices can do is used */
    uint64_t rows;         /* 0: what suits the device */
    uint64_t most_celsius; /* 0: no limit */
};

/* burn.c: full load on all devices. Ends early, with a result, when it is cancelled or a device is
 * too hot. GP_EUSAGE: there is a limit, but nobody reports the temperature. */
int gp_bench_burn_all(struct gp_bench *bench, const struct gp_bench_burn *plan,
                      struct gp_err *err) GP_MUST_CHECK;

/* check.c: the most important parts of these. */
int gp_bench_check_all(struct gp_bench *bench, uint64_t rows, uint64_t bytes,
                       struct gp_err *err) GP_MUST_CHECK;

/* ---- shared by these files ---- */

/* In place of a device: all of them at once; the CPU. */
enum { GP_BENCH_ALL = GP_BENCH_DEVICES, GP_BENCH_CPU };

/* "GPU 0" or, for a device that is none, "OpenCL 0"; "all GPUs"; "CPU". */
enum { GP_BENCH_TITLE_SIZE = 32 };
void gp_bench_title(const struct gp_bench *bench, size_t i, char ret[GP_BENCH_TITLE_SIZE]);

/* Rows of matrices that keep the device busy for some milliseconds, though not for much longer, and
 * need at most a quarter of its memory. They are the same for all GPUs of a model. */
uint64_t gp_bench_rows_for(const struct gp_bench_device *device, enum gp_bench_precision precision);
/* The fewest of these, of all devices. */
uint64_t gp_bench_rows_for_all(const struct gp_bench *bench, enum gp_bench_precision precision);

/* GP_ENOMEM: the host, or the control group of this process, has not that much memory left. Ask
 * before memory is used: where there is none, Linux ends the process. */
int gp_bench_ask_host(uint64_t bytes, struct gp_err *err) GP_MUST_CHECK;

/* A product, and the memory for it. */
struct gp_bench_matrices {
    struct gp_bench_gemm gemm;
    struct gp_bench_device *device; /* that they are on; NULL: none */
    void *a, *b;                    /* of the host */
    size_t in_bytes, out_bytes;     /* of A and B each, and of C */
};

/* Allocates and fills the matrices of the host, if it also has room for C. GP_ENOMEM, GP_EINTR. */
int gp_bench_matrices_open(const struct gp_bench *bench, struct gp_bench_matrices *m,
                           enum gp_bench_precision precision, size_t n,
                           struct gp_err *err) GP_MUST_CHECK;
/* Copies them to the device, and chooses a kernel: errors as in gemm_open(). */
int gp_bench_matrices_load(struct gp_bench_matrices *m, struct gp_bench_device *device,
                           struct gp_err *err) GP_MUST_CHECK;
void gp_bench_matrices_unload(struct gp_bench_matrices *m);
void gp_bench_matrices_close(struct gp_bench_matrices *m);

/* Multiplies struct gp_bench_matrices that are on a device: what gp_bench_measure() can run. */
int gp_bench_multiply(void *matrices, struct gp_err *err) GP_MUST_CHECK;
/* The operations of the product. */
double gp_bench_flop(const struct gp_bench_matrices *m);

/* Sets the result to WRONG if C, which is of the host, is not the product. */
int gp_bench_check_product(const struct gp_bench *bench, const struct gp_bench_matrices *m,
                           const void *c, struct gp_bench_result *result,
                           struct gp_err *err) GP_MUST_CHECK;
/* The same for the device that they are on. The product is computed once more: what stood there
 * before is overwritten first, so that a kernel that does nothing is noticed. */
int gp_bench_check(const struct gp_bench *bench, struct gp_bench_matrices *m,
                   struct gp_bench_result *result, struct gp_err *err) GP_MUST_CHECK;

/* Sets the result to WRONG if `count` numbers, from element `first` of an array on, are not what
 * `write` stores, times `factor`. */
void gp_bench_check_part(const float *got, size_t count, size_t first, float factor,
                         struct gp_bench_result *result);
/* The same for a whole array on a device, which is copied to the host. */
int gp_bench_check_pattern(struct gp_bench_device *device, const struct gp_bench_buffer *buffer,
                           float factor, struct gp_bench_result *result,
                           struct gp_err *err) GP_MUST_CHECK;
/* Sets the result to WRONG if two arrays on the device differ; `counts`: room for compare(). */
int gp_bench_check_equal(struct gp_bench_device *device, const struct gp_bench_buffer *wanted,
                         const struct gp_bench_buffer *got, const struct gp_bench_buffer *counts,
                         struct gp_bench_result *result, struct gp_err *err) GP_MUST_CHECK;

/* What one thread has seen of the waits for the devices. It looks several times a second, and only
 * the time in which it could counts: not that in which the process was stopped (Ctrl-Z). */
struct gp_bench_patience {
    uint64_t looked_ns; /* when it last looked; 0: not yet */
    uint64_t awake_ns;  /* the time that counts */
    struct {
        uint64_t wait; /* its number */
        uint64_t ns;   /* how long it has lasted */
    } seen[GP_BENCH_DEVICES];
};

/* Looks at the devices. The first GPU that is waited for longer than the pace allows, and for how
 * long; GP_BENCH_ALL: none. */
size_t gp_bench_overdue(const struct gp_bench *bench, struct gp_bench_patience *patience,
                        uint64_t now_ns, uint64_t *ret_ns);

/* Adds a result of device i, GP_BENCH_ALL or GP_BENCH_CPU, and tells the watch and the user that it
 * is measured now. NULL: out of memory. */
struct gp_bench_result *gp_bench_add(struct gp_bench *bench, const char *test, const char *what,
                                     size_t i, uint64_t size, const char *unit);

/* The same for a result of several devices: a bit for each that works meanwhile. */
struct gp_bench_result *gp_bench_add_of(struct gp_bench *bench, const char *test, const char *what,
                                        uint64_t devices, uint64_t size, const char *unit);

/* Copies the results so far, while they may still be added to and written, for
 * gp_bench_results_fini(). GP_ENOMEM. */
int gp_bench_copy_results(struct gp_bench *bench, struct gp_bench_results *ret) GP_MUST_CHECK;

/* What a timing says apart from its value: conditions, steadiness, doubts. */
void gp_bench_note(struct gp_bench *bench, size_t i, const struct gp_bench_timing *timing,
                   struct gp_bench_result *result);

/* Turns an error of the device into the result's note: SKIPPED for GP_ENODEV and GP_ENOMEM, and
 * FAILED for GP_EDRIVER. Returns 0, for GP_EDRIVER that code, and passes on the others. */
int gp_bench_set_aside(int r, struct gp_bench_result *result, struct gp_err *err);

/* The end of a test on device i, with its result r: that it failed, or had too little memory, is a
 * result, if it is none yet. Returns 0 for errors of the device, and passes on the others. */
int gp_bench_conclude(struct gp_bench *bench, const char *test, size_t i, int r,
                      struct gp_err *err);

#endif
