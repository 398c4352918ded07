/* Number formats, and the precisions in which matrices are multiplied: tables and conversions. */
#ifndef GP_BENCH_PRECISION_H
#define GP_BENCH_PRECISION_H

#include "base/util.h"

/* X(id, bytes) */
#define GP_NUMBERS(X)                                                                              \
    X(F64, 8)                                                                                      \
    X(F32, 4)                                                                                      \
    X(F16, 2)                                                                                      \
    X(BF16, 2)                                                                                     \
    X(E4M3, 1) /* FP8 without infinities */                                                        \
    X(I8, 1)                                                                                       \
    X(I32, 4)

enum gp_number {
#define X(id, bytes) GP_NUMBER_##id,
    GP_NUMBERS(X)
#undef X
};

/* Stores a number, rounded to the nearest that the format has. */
void gp_number_store(enum gp_number number, double value, void *at);
double gp_number_load(enum gp_number number, const void *at);

/* X(id, word, title, operands, results, roundoff of an operand, of the sums, of a result, whether A
 * is stored by rows, the first compute capability of CUDA that has it), the roundoffs as negative
 * powers of two, 0: exact. The operands of TF32 are rounded or truncated by the device. Tensor
 * cores truncate their sums, and those of Hopper keep 14 bits of FP8's. For 8 bits cuBLASLt only
 * multiplies an A that is stored by rows. */
#define GP_BENCH_PRECISIONS(X)                                                                     \
    X(FP64, "fp64", "FP64", F64, F64, 0, 53, 53, false, 0)                                         \
    X(FP32, "fp32", "FP32", F32, F32, 0, 24, 24, false, 0)                                         \
    X(TF32, "tf32", "TF32", F32, F32, 10, 21, 24, false, 80)                                       \
    X(FP16, "fp16", "FP16", F16, F16, 0, 21, 11, false, 0)                                         \
    X(BF16, "bf16", "BF16", BF16, BF16, 0, 21, 8, false, 80)                                       \
    X(FP8, "fp8", "FP8", E4M3, BF16, 0, 13, 8, true, 89)                                           \
    X(INT8, "int8", "INT8", I8, I32, 0, 0, 0, true, 0)

enum gp_bench_precision {
#define X(id, word, title, in, out, of_in, of_sum, of_out, by_rows, capability) GP_BENCH_##id,
    GP_BENCH_PRECISIONS(X)
#undef X
        GP_BENCH_PRECISION__COUNT,
};

struct gp_bench_format {
    const char *word, *title;
    enum gp_number in, out;
    size_t in_bytes, out_bytes;   /* of an element */
    double of_in, of_sum, of_out; /* relative errors of rounding */
    bool is_a_transposed;         /* A is stored by rows */
    unsigned capability;          /* of CUDA, from which on it is more than an emulation; 0: any */
};

const struct gp_bench_format *gp_bench_format(enum gp_bench_precision precision);

/* "TFLOP/s" or, for whole numbers, "TOP/s". */
const char *gp_bench_rate_unit(enum gp_bench_precision precision);

/* False: there is no such word. */
bool gp_bench_precision_find(const char *word, enum gp_bench_precision *ret);

#endif
