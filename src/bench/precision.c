#include "bench/precision.h"

#include <math.h>
#include <string.h>

#define POWER(bits) ((bits) ? 1.0 / (double)(1ULL << (bits)) : 0)

enum {
#define X(id, bytes) BYTES_##id = (bytes),
    GP_NUMBERS(X)
#undef X
};

static const struct gp_bench_format formats[] = {
#define X(id, word, title, in, out, of_in, of_sum, of_out, by_rows, capability)                    \
    {word,         title,         GP_NUMBER_##in, GP_NUMBER_##out, BYTES_##in, BYTES_##out,        \
     POWER(of_in), POWER(of_sum), POWER(of_out),  by_rows,         capability},
    GP_BENCH_PRECISIONS(X)
#undef X
};

const struct gp_bench_format *gp_bench_format(enum gp_bench_precision precision)
{
    return &formats[precision];
}

const char *gp_bench_rate_unit(enum gp_bench_precision precision)
{
    return precision == GP_BENCH_INT8 ? "TOP/s" : "TFLOP/s";
}

bool gp_bench_precision_find(const char *word, enum gp_bench_precision *ret)
{
    for (size_t i = 0; i < GP_BENCH_PRECISION__COUNT; i++)
        if (strcmp(formats[i].word, word) == 0) {
            *ret = (enum gp_bench_precision)i;
            return true;
        }
    return false;
}

/* A small floating-point format: a sign, and these bits. */
struct tiny {
    int exponent_bits, mantissa_bits;
    double largest;
    bool has_infinity;
};

static const struct tiny f16 = {5, 10, 65504, true};
static const struct tiny e4m3 = {4, 3, 448, false};

static unsigned encode(const struct tiny *t, double value)
{
    int bias = (1 << (t->exponent_bits - 1)) - 1;
    unsigned sign = signbit(value) ? 1U << (t->exponent_bits + t->mantissa_bits) : 0;
    if (isnan(value))
        return (1U << (t->exponent_bits + t->mantissa_bits)) - 1;
    double size = fmin(fabs(value), t->largest);
    int exponent;
    (void)frexp(size, &exponent); /* size = f * 2^exponent, 0.5 <= f < 1 */
    int power = size <= 0 || exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    unsigned units = (unsigned)lrint(ldexp(size, t->mantissa_bits - power));
    /* The leading bit of the mantissa, which is not stored, adds 1 to the exponent; so does a
     * mantissa that was rounded up to the next power of two. */
    return sign | (units + ((unsigned)(power + bias - 1) << t->mantissa_bits));
}

static double decode(const struct tiny *t, unsigned bits)
{
    int bias = (1 << (t->exponent_bits - 1)) - 1;
    unsigned mantissa = bits & ((1U << t->mantissa_bits) - 1);
    unsigned exponent = bits >> t->mantissa_bits & ((1U << t->exponent_bits) - 1);
    double sign = bits >> (t->exponent_bits + t->mantissa_bits) & 1 ? -1 : 1;
    bool is_last = exponent == (1U << t->exponent_bits) - 1;
    if (is_last && t->has_infinity)
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    if (is_last && mantissa == (1U << t->mantissa_bits) - 1)
        return (double)NAN;
    double units = mantissa + (exponent ? (double)(1U << t->mantissa_bits) : 0);
    return sign * ldexp(units, (int)(exponent ? exponent : 1) - bias - t->mantissa_bits);
}

/* BF16 is the upper half of FP32. */
static uint16_t encode_bf16(double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static double decode_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float single;
    memcpy(&single, &bits, sizeof(single));
    return (double)single;
}

void gp_number_store(enum gp_number number, double value, void *at)
{
    float single = (float)value;
    uint16_t half;
    int32_t whole;
    switch (number) {
    case GP_NUMBER_F64:
        memcpy(at, &value, sizeof(value));
        break;
    case GP_NUMBER_F32:
        memcpy(at, &single, sizeof(single));
        break;
    case GP_NUMBER_F16:
    case GP_NUMBER_BF16:
        half = number == GP_NUMBER_F16 ? (uint16_t)encode(&f16, value) : encode_bf16(value);
        memcpy(at, &half, sizeof(half));
        break;
    case GP_NUMBER_E4M3:
        *(uint8_t *)at = (uint8_t)encode(&e4m3, value);
        break;
    case GP_NUMBER_I8:
        *(int8_t *)at = (int8_t)lround(fmax(-127, fmin(127, value)));
        break;
    case GP_NUMBER_I32:
        whole = (int32_t)lround(value);
        memcpy(at, &whole, sizeof(whole));
        break;
    }
}

double gp_number_load(enum gp_number number, const void *at)
{
    double wide = 0;
    float single;
    uint16_t half;
    int32_t whole;
    switch (number) {
    case GP_NUMBER_F64:
        memcpy(&wide, at, sizeof(wide));
        break;
    case GP_NUMBER_F32:
        memcpy(&single, at, sizeof(single));
        wide = (double)single;
        break;
    case GP_NUMBER_F16:
    case GP_NUMBER_BF16:
        memcpy(&half, at, sizeof(half));
        wide = number == GP_NUMBER_F16 ? decode(&f16, half) : decode_bf16(half);
        break;
    case GP_NUMBER_E4M3:
        wide = decode(&e4m3, *(const uint8_t *)at);
        break;
    case GP_NUMBER_I8:
        wide = *(const int8_t *)at;
        break;
    case GP_NUMBER_I32:
        memcpy(&whole, at, sizeof(whole));
        wide = whole;
        break;
    }
    return wide;
}
