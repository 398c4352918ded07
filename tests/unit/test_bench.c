/* The pure parts of gpulse bench: statistics, number formats, the check of products, charts. */
#include "bench/chart.h"
#include "bench/judge.h"
#include "bench/observation.h"
#include "bench/peak.h"
#include "bench/precision.h"
#include "bench/stats.h"
#include "bench/verify.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-12 * fabs(wanted)))
        fail_msg("%.17g instead of %.17g", got, wanted);
}

/* ---- statistics ---- */

static void test_stats(void **state)
{
    (void)state;
    double few[] = {3, 1, 2};
    double ten[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
    struct gp_bench_stats s = gp_bench_stats_of(few, 3);
    assert_near(s.median, 2);
    assert_near(s.low, 1); /* three values say little: the whole range */
    assert_near(s.high, 3);
    s = gp_bench_stats_of(ten, 10);
    assert_near(s.median, 5.5);
    assert_near(s.low, 2); /* the 2nd and the 9th of ten: 97.9 % by the binomial distribution */
    assert_near(s.high, 9);
    assert_near(s.min, 1);
    assert_near(s.max, 10);
    assert_near(gp_bench_spread(&s), 3.5 / 5.5);
    assert_int_equal(gp_bench_stats_of(few, 0).count, 0);
}

/* The interval contains the true median in at least 94 % of many samples. */
static void test_stats_cover_the_median(void **state)
{
    (void)state;
    struct gp_bench_random random = {7};
    for (size_t n = 5; n <= 50; n += 9) {
        int hits = 0;
        for (int round = 0; round < 4000; round++) {
            double values[50];
            for (size_t i = 0; i < n; i++)
                values[i] = gp_bench_normal(&random);
            const struct gp_bench_stats s = gp_bench_stats_of(values, n);
            hits += s.low <= 0 && s.high >= 0;
        }
        assert_true(hits >= 3720); /* 93 %: of 5 values 93.75 % are possible */
    }
}

static void test_compare(void **state)
{
    (void)state;
    const struct gp_bench_stats base = {10, 100, 98, 102, 99, 101};
    const struct {
        struct gp_bench_stats now;
        enum gp_bench_change wanted;
    } rows[] = {
        {{10, 100, 98, 102, 99, 101}, GP_BENCH_SAME},
        {{10, 90, 88, 92, 89, 91}, GP_BENCH_LOWER},
        {{10, 110, 108, 112, 109, 111}, GP_BENCH_HIGHER},
        {{10, 90, 70, 120, 80, 105}, GP_BENCH_SAME},       /* noise */
        {{10, 98, 97.5, 98.5, 97.8, 98.2}, GP_BENCH_SAME}, /* certain, but too small */
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        assert_int_equal(gp_bench_compare(&base, &rows[i].now, 0.03), rows[i].wanted);
}

/* ---- measuring ---- */

static double clock_ns, drift; /* of a device: the time of the next block, and what it grows by */

static int start_block(struct gp_bench_device *device, struct gp_err *err)
{
    (void)device;
    (void)err;
    return 0;
}

static int stop_block(struct gp_bench_device *device, uint64_t *ret_ns, struct gp_err *err)
{
    (void)device;
    (void)err;
    *ret_ns = (uint64_t)clock_ns;
    clock_ns *= 1 + drift;
    return 0;
}

static int do_nothing(void *context, struct gp_err *err)
{
    (void)context;
    (void)err;
    return 0;
}

/* Without a warm-up to compare, the measured blocks are. */
static void test_steady(void **state)
{
    (void)state;
    static const struct {
        uint64_t warm_ns;
        double drift;
        bool is_steady;
    } rows[] = {{0, 0, true}, {0, 0.01, false}, {1000000, 0, true}};
    static const struct gp_bench_ops ops = {.start = start_block, .stop = stop_block};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        struct gp_bench_device device = {.ops = &ops};
        const struct gp_bench_work work = {&device, do_nothing, NULL};
        const struct gp_bench_pace pace = {
            .warm_ns = rows[i].warm_ns, .block_ns = 1, .runs = 8, .most_ns = UINT64_MAX};
        struct gp_bench_timing timing;
        clock_ns = 1e6;
        drift = rows[i].drift;
        assert_int_equal(gp_bench_measure(&work, &pace, &timing, NULL), 0);
        assert_int_equal(timing.ns.count, 8);
        assert_int_equal(timing.is_steady, rows[i].is_steady);
    }
}

/* ---- number formats ---- */

static void test_formats(void **state)
{
    (void)state;
    const struct {
        enum gp_number number;
        double value;
        uint64_t bits;
        double stored;
    } rows[] = {
        {GP_NUMBER_F16, 0, 0, 0},
        {GP_NUMBER_F16, 1, 0x3C00, 1},
        {GP_NUMBER_F16, -2, 0xC000, -2},
        {GP_NUMBER_F16, 65504, 0x7BFF, 65504},
        {GP_NUMBER_F16, 1e9, 0x7BFF, 65504},
        {GP_NUMBER_F16, 0x1p-24, 0x0001, 0x1p-24}, /* the smallest */
        {GP_NUMBER_F16, 0x1.ffcp-15, 0x03FF + 1, 0x1p-14},
        {GP_NUMBER_F16, 1 + 0x1p-11, 0x3C00, 1}, /* halfway: to even */
        {GP_NUMBER_F16, 2047.5, 0x6800, 2048},   /* carries into the exponent */
        {GP_NUMBER_BF16, 1, 0x3F80, 1},
        {GP_NUMBER_BF16, 3.140625, 0x4049, 3.140625},
        {GP_NUMBER_BF16, 1 + 0x1p-8, 0x3F80, 1},
        {GP_NUMBER_BF16, 1 + 0x1.8p-7, 0x3F82, 1 + 0x1p-6},
        {GP_NUMBER_E4M3, 1, 0x38, 1},
        {GP_NUMBER_E4M3, 448, 0x7E, 448},
        {GP_NUMBER_E4M3, -0x1p-9, 0x81, -0x1p-9}, /* the smallest */
        {GP_NUMBER_E4M3, 1.0625, 0x38, 1},
        {GP_NUMBER_I8, -300, 0x81, -127},
        {GP_NUMBER_I8, 2.6, 0x03, 3},
        {GP_NUMBER_I32, -5, 0xFFFFFFFB, -5},
        {GP_NUMBER_F32, 0.1, 0x3DCCCCCD, 0x1.99999ap-4},
        {GP_NUMBER_F64, 0.1, 0x3FB999999999999A, 0.1},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        uint64_t bits = 0;
        gp_number_store(rows[i].number, rows[i].value, &bits);
        if (bits != rows[i].bits)
            fail_msg("row %zu: %llx", i, (unsigned long long)bits);
        assert_near(gp_number_load(rows[i].number, &bits), rows[i].stored);
    }
    const uint16_t infinity = 0xFC00;
    const uint16_t nan16 = 0x7C01;
    const uint8_t nan8 = 0x7F;
    assert_true(isinf(gp_number_load(GP_NUMBER_F16, &infinity)));
    assert_true(isnan(gp_number_load(GP_NUMBER_F16, &nan16)));
    assert_true(isnan(gp_number_load(GP_NUMBER_E4M3, &nan8)));
}

/* Each number of the small formats is stored as itself. */
static void test_formats_keep_their_numbers(void **state)
{
    (void)state;
    const struct {
        enum gp_number number;
        uint32_t count;
    } rows[] = {{GP_NUMBER_F16, 1 << 16}, {GP_NUMBER_BF16, 1 << 16}, {GP_NUMBER_E4M3, 1 << 8}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        for (uint32_t bits = 0; bits < rows[i].count; bits++) {
            uint32_t again = 0;
            double value = gp_number_load(rows[i].number, &bits);
            if (!isfinite(value))
                continue;
            gp_number_store(rows[i].number, value, &again);
            assert_int_equal(again, bits);
        }
}

static void test_precision_words(void **state)
{
    (void)state;
    enum gp_bench_precision p;
    assert_true(gp_bench_precision_find("bf16", &p));
    assert_int_equal(p, GP_BENCH_BF16);
    assert_string_equal(gp_bench_rate_unit(p), "TFLOP/s");
    assert_string_equal(gp_bench_rate_unit(GP_BENCH_INT8), "TOP/s");
    assert_false(gp_bench_precision_find("fp1", &p));
    assert_false(gp_bench_precision_find("", &p));
}

/* ---- products ---- */

enum { N = 48 };

struct product {
    enum gp_bench_precision precision;
    unsigned char a[N * N * 8], b[N * N * 8], c[N * N * 8];
};

/* Rounds an operand as the device does. */
static double rounded(enum gp_bench_precision precision, double value)
{
    int exponent;
    double part = frexp(value, &exponent);
    return precision == GP_BENCH_TF32 ? ldexp(nearbyint(part * 2048) / 2048, exponent) : value;
}

static void multiply(struct product *p)
{
    const struct gp_bench_format *f = gp_bench_format(p->precision);
    for (size_t j = 0; j < N; j++)
        for (size_t i = 0; i < N; i++) {
            double sum = 0;
            for (size_t k = 0; k < N; k++) {
                size_t at = f->is_a_transposed ? k + i * N : i + k * N;
                double a = gp_number_load(f->in, p->a + at * f->in_bytes);
                double b = gp_number_load(f->in, p->b + (k + j * N) * f->in_bytes);
                sum += rounded(p->precision, a) * rounded(p->precision, b);
                if (p->precision != GP_BENCH_FP64 && p->precision != GP_BENCH_INT8)
                    sum = (double)(float)sum;
            }
            gp_number_store(f->out, sum, p->c + (i + j * N) * f->out_bytes);
        }
}

static struct gp_bench_fault verify(const struct product *p)
{
    struct gp_bench_fault fault;
    const struct gp_bench_product product = {p->precision, N, p->a, p->b, p->c};
    assert_int_equal(gp_bench_verify(&product, 3, &fault), 0);
    return fault;
}

static void make(struct product *p, enum gp_bench_precision precision)
{
    p->precision = precision;
    assert_int_equal(gp_bench_fill(precision, N, 1, NULL, p->a), 0);
    assert_int_equal(gp_bench_fill(precision, N, 2, NULL, p->b), 0);
    multiply(p);
}

/* A right product passes in every precision. One element that is wrong is found, and named. */
static void test_verify(void **state)
{
    (void)state;
    static struct product p;
    for (unsigned k = 0; k < GP_BENCH_PRECISION__COUNT; k++) {
        make(&p, (enum gp_bench_precision)k);
        const struct gp_bench_format *f = gp_bench_format(p.precision);
        assert_false(verify(&p).is_found);
        for (size_t at = 0; at < N * N; at += 97) {
            unsigned char *byte = p.c + (at + 1) * f->out_bytes - 1; /* the highest */
            *byte ^= 0x40;
            const struct gp_bench_fault fault = verify(&p);
            assert_true(fault.is_found);
            assert_int_equal(fault.row, at % N);
            assert_int_equal(fault.column, at / N);
            assert_int_equal(fault.rows, 1);
            *byte ^= 0x40;
        }
    }
}

static void test_verify_numbers_that_are_none(void **state)
{
    (void)state;
    static struct product p;
    const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < GP_ARRAY_LEN(values); i++) {
        make(&p, GP_BENCH_FP32);
        gp_number_store(GP_NUMBER_F32, values[i], p.c + (5 + 7 * N) * 4);
        const struct gp_bench_fault fault = verify(&p);
        assert_true(fault.is_found);
        assert_int_equal(fault.row, 5);
        assert_int_equal(fault.column, 7);
    }
}

/* What a GPU with cold tensor cores, or a wrong kernel, would return. */
static void test_verify_wholly_wrong(void **state)
{
    (void)state;
    static struct product p;
    make(&p, GP_BENCH_BF16);
    memset(p.c, 0, sizeof(p.c));
    assert_true(verify(&p).rows > N / 2); /* the sum of a row may be near 0 */
    make(&p, GP_BENCH_FP32);
    assert_int_equal(gp_bench_fill(GP_BENCH_FP32, N, 9, NULL, p.c), 0);
    assert_int_equal(verify(&p).rows, N);
}

/* FP32 that is computed as TF32 is wrong by FP32's measure. */
static void test_verify_tells_precisions_apart(void **state)
{
    (void)state;
    static struct product p;
    make(&p, GP_BENCH_TF32);
    p.precision = GP_BENCH_FP32;
    assert_true(verify(&p).is_found);
}

static void test_normal(void **state)
{
    (void)state;
    struct gp_bench_random random = {1};
    double sum = 0;
    double squares = 0;
    enum { COUNT = 100000 };
    for (int i = 0; i < COUNT; i++) {
        double x = gp_bench_normal(&random);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / COUNT) < 0.02);
    assert_true(fabs(squares / COUNT - 1) < 0.02);
}

/* ---- charts ---- */

static const struct gp_chart_point line[] = {{10, 1, 0, 0}, {100, 10, 9, 11}, {1000, 100, 0, 0}};

static void test_chart_text(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    const struct gp_chart chart = {.title = "t",
                                   .x_title = "rows",
                                   .y_title = "GFLOP/s",
                                   .curves = {{"one", line, 3}},
                                   .count = 1};
    gp_chart_add_text(&sb, &chart, 40, 5, true);
    assert_string_equal(sb.buf, "GFLOP/s\n"
                                "    100 |                         .....a\n"
                                "     20 |                   .......\n"
                                "     10 |            ...a...\n"
                                "      5 |      .......\n"
                                "      2 |a......\n"
                                "        +-------------------------------\n"
                                "        10   20   50  100  200  500   1k   rows\n"
                                "        a  one\n");
    gp_strbuf_reset(&sb);
    const struct gp_chart none = {.title = "t", .x_title = "x", .y_title = "y"};
    gp_chart_add_text(&sb, &none, 40, 5, true);
    assert_string_equal(sb.buf, "");
    gp_strbuf_fini(&sb);
}

static void test_chart_svg(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    const struct gp_chart chart = {.title = "a < b & c",
                                   .x_title = "x",
                                   .y_title = "y",
                                   .curves = {{"<script>", line, 3}},
                                   .count = 1};
    gp_chart_add_svg(&sb, &chart);
    assert_non_null(strstr(sb.buf, "a &#60; b &#38; c"));
    assert_null(strstr(sb.buf, "<script>"));
    assert_non_null(strstr(sb.buf, "points=\"80.0,440.0 430.0,265.0 780.0,90.0\""));
    gp_strbuf_fini(&sb);
}

/* ---- cancelling ---- */

static int calls_left;

static bool cancel_later(void)
{
    return calls_left-- <= 0;
}

/* Large matrices take long on the CPU: each column asks. */
static void test_cancel(void **state)
{
    (void)state;
    enum { ROWS = 8 };
    static float a[ROWS * ROWS];
    static float b[ROWS * ROWS];
    static float c[ROWS * ROWS];
    const struct gp_bench_product p = {GP_BENCH_FP32, ROWS, a, b, c, cancel_later};
    struct gp_bench_fault fault;
    for (int calls = 0; calls <= ROWS; calls++) {
        calls_left = calls;
        assert_int_equal(gp_bench_fill(GP_BENCH_FP32, ROWS, 1, cancel_later, a),
                         calls < ROWS ? GP_EINTR : 0);
    }
    for (int calls = 0; calls <= 2 * ROWS; calls++) {
        calls_left = calls;
        assert_int_equal(gp_bench_verify(&p, 1, &fault), calls < 2 * ROWS ? GP_EINTR : 0);
    }
}

/* A product should not take seconds, on slow GPUs either. */
static void test_rows_for(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        bool is_gpu;
        unsigned units, capability;
        size_t memory_gib;
        enum gp_bench_precision precision;
        uint64_t rows;
    } rows[] = {
        {"H100", true, 132, 90, 80, GP_BENCH_BF16, 8192},
        {"H100", true, 132, 90, 80, GP_BENCH_FP64, 4096},
        {"T4", true, 40, 75, 15, GP_BENCH_FP32, 8192},
        {"T4", true, 40, 75, 15, GP_BENCH_FP64, 2048},
        {"RTX 4090", true, 128, 89, 24, GP_BENCH_FP64, 4096},
        {"MX150", true, 3, 61, 2, GP_BENCH_FP32, 4096},
        {"MX150", true, 3, 61, 2, GP_BENCH_FP64, 1024},
        {"full", true, 132, 90, 0, GP_BENCH_FP32, 256},
        {"CPU", false, 4, 0, 64, GP_BENCH_FP32, 1024},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct gp_bench_device device = {.is_gpu = rows[i].is_gpu,
                                               .units = rows[i].units,
                                               .capability = rows[i].capability,
                                               .memory_bytes = rows[i].memory_gib << 30};
        const uint64_t n = gp_bench_rows_for(&device, rows[i].precision);
        if (n != rows[i].rows)
            fail_msg("%s: %llu rows", rows[i].what, (unsigned long long)n);
    }
}

/* ---- data sheets ---- */

/* Rates with sums in FP32, at the clock that the sheet states them for. */
static void test_peaks(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum gp_bench_precision precision;
        double peak, at_1000_mhz;
    } rows[] = {
        {"NVIDIA H100 80GB HBM3", GP_BENCH_BF16, 989.4, 989.4 / 1.83},
        {"NVIDIA H100 80GB HBM3", GP_BENCH_FP8, 1979, 1979 / 1.83},
        {"NVIDIA H100 80GB HBM3", GP_BENCH_FP32, 67, 67 / 1.98},
        {"NVIDIA H100 80GB HBM3", GP_BENCH_FP64, 0, 0},
        {"NVIDIA A100-SXM4-80GB", GP_BENCH_BF16, 312, 312 / 1.41},
        {"NVIDIA GeForce RTX 4090", GP_BENCH_FP16, 165.2, 165.2 / 2.52},
        {"NVIDIA GeForce RTX 4090", GP_BENCH_FP8, 660.6 * (165.2 / 330.3),
         660.6 * (165.2 / 330.3) / 2.52},
        {"NVIDIA L40S", GP_BENCH_FP8, 733, 733 / 2.52},
        {"unknown", GP_BENCH_FP32, 0, 0},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct gp_card *card = gp_bench_card_of(rows[i].name);
        assert_near(gp_bench_peak_of(card, rows[i].precision), rows[i].peak);
        assert_near(gp_bench_peak_at(card, rows[i].precision, 1000), rows[i].at_1000_mhz);
        assert_near(gp_bench_peak_at(card, rows[i].precision, 0), 0);
    }
}

/* ---- conditions ---- */

/* What is unknown in some observations does not lower the means of the others. */
static void test_conditions(void **state)
{
    (void)state;
    static const struct gp_bench_observation observations[] = {
        {.clock_mhz = 1000,
         .clock_max_mhz = 1980,
         .watts = NAN,
         .celsius = 50,
         .ecc_corrected = 7,
         .limits = 4},
        {.clock_mhz = NAN,
         .clock_max_mhz = NAN,
         .watts = 300,
         .celsius = NAN,
         .ecc_corrected = NAN,
         .other_pid = 9},
        {.clock_mhz = 1400,
         .clock_max_mhz = NAN,
         .watts = 500,
         .celsius = 60,
         .ecc_corrected = 9,
         .limits = 8},
    };
    struct gp_bench_sum sum = {.clocks = 0};
    assert_false(gp_bench_sum_mean(&sum).is_known);
    for (size_t i = 0; i < GP_ARRAY_LEN(observations); i++)
        gp_bench_sum_add(&sum, &observations[i]);
    const struct gp_bench_conditions c = gp_bench_sum_mean(&sum);
    assert_true(c.is_known);
    assert_int_equal(c.samples, 3);
    assert_near(c.clock_mhz, 1200);
    assert_near(c.clock_least_mhz, 1000);
    assert_near(c.clock_max_mhz, 1980);
    assert_near(c.watts, 400);
    assert_near(c.celsius, 60);
    assert_near(c.ecc_corrected, 2);
    assert_int_equal(c.limits, 12);
    assert_int_equal(c.other_pid, 9);
}

/* ---- GPUs that hang ---- */

static void test_overdue(void **state)
{
    (void)state;
    static struct gp_bench_device devices[2] = {{.is_gpu = true}, {.is_gpu = true}};
    struct gp_bench bench = {.pace = {.answer_ns = 60},
                             .devices = {&devices[0], &devices[1]},
                             .names = {"0", "1"},
                             .count = 2};
    struct gp_bench_patience patience = {.looked_ns = 0};
    uint64_t ns = 0;
    assert_int_equal(gp_bench_overdue(&bench, &patience, 1000, &ns), GP_BENCH_ALL);
    gp_bench_wait_begin(&devices[1]);
    assert_int_equal(gp_bench_overdue(&bench, &patience, 2000, &ns), GP_BENCH_ALL); /* seen first */
    gp_bench_wait_begin(&devices[1]); /* nested: the time of the first counts */
    assert_int_equal(gp_bench_overdue(&bench, &patience, 2060, &ns), GP_BENCH_ALL);
    gp_bench_wait_end(&devices[1]);
    assert_int_equal(gp_bench_overdue(&bench, &patience, 2061, &ns), 1);
    assert_int_equal(ns, 61);
    devices[1].is_gpu = false; /* a CPU may be slow */
    assert_int_equal(gp_bench_overdue(&bench, &patience, 2062, &ns), GP_BENCH_ALL);
    devices[1].is_gpu = true;
    gp_bench_wait_end(&devices[1]);
    gp_bench_wait_begin(&devices[1]); /* another one, though nobody looked in between */
    assert_int_equal(gp_bench_overdue(&bench, &patience, 3000, &ns), GP_BENCH_ALL);
    gp_bench_wait_end(&devices[1]);
    assert_int_equal(gp_bench_overdue(&bench, &patience, 4000, &ns), GP_BENCH_ALL);
}

/* Ctrl-Z for an hour is no hang. */
static void test_overdue_while_stopped(void **state)
{
    (void)state;
    static struct gp_bench_device device = {.is_gpu = true};
    struct gp_bench bench = {.pace = {.answer_ns = GP_NS_PER_S}, .devices = {&device}, .count = 1};
    struct gp_bench_patience patience = {.looked_ns = 0};
    uint64_t now_ns = GP_NS_PER_S;
    uint64_t ns = 0;
    gp_bench_wait_begin(&device);
    assert_int_equal(gp_bench_overdue(&bench, &patience, now_ns, &ns), GP_BENCH_ALL);
    now_ns += 3600 * GP_NS_PER_S;
    assert_int_equal(gp_bench_overdue(&bench, &patience, now_ns, &ns), GP_BENCH_ALL);
    assert_true(patience.awake_ns > 0 && patience.awake_ns < GP_NS_PER_S);
    for (int i = 0; i < 9; i++, now_ns += GP_NS_PER_S / 10)
        if (gp_bench_overdue(&bench, &patience, now_ns, &ns) == 0)
            break;
    assert_true(ns > GP_NS_PER_S && ns < 2 * GP_NS_PER_S);
}

static void test_mark_failed(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        size_t count; /* of measured values */
        enum gp_bench_outcome outcome;
    } rows[] = {{"1", 5, GP_BENCH_MEASURED},     {"1", 0, GP_BENCH_FAILED},
                {"11", 0, GP_BENCH_MEASURED},    {"1->2", 0, GP_BENCH_FAILED},
                {"0->11", 0, GP_BENCH_MEASURED}, {"0->1", 0, GP_BENCH_FAILED},
                {"0", 0, GP_BENCH_MEASURED},     {"all", 0, GP_BENCH_FAILED}};
    char why[160];
    struct gp_bench_results results = {.count = 0};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        gp_bench_results_add(&results, "gemm", "fp32", rows[i].device)->value.count = rows[i].count;
    gp_bench_mark_failed(&results, "1", 60 * GP_NS_PER_S, why, sizeof(why));
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        assert_int_equal(results.list[i].outcome, rows[i].outcome);
    gp_bench_results_fini(&results);
}

/* Which GPU hangs is not known if they wait for each other. */
static void test_mark_failed_names_it(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        bool is_joint;
        const char *why;
    } rows[] = {{"2", false, "GPU 2 has not answered for 60 s: see gpulse doctor"},
                {"0->2", false, "GPU 0 or GPU 2 has not answered for 60 s: see gpulse doctor"},
                {"2->10", false, "GPU 2 or GPU 10 has not answered for 60 s: see gpulse doctor"},
                {"all", false, "GPU 2 has not answered for 60 s: see gpulse doctor"},
                {"all", true, "one of the GPUs has not answered for 60 s: see gpulse doctor"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        struct gp_bench_results results = {.count = 0};
        char why[160];
        gp_bench_results_add(&results, "multi", "earlier", "2")->value.count = 5;
        struct gp_bench_result *last =
            gp_bench_results_add(&results, "multi", "last", rows[i].device);
        last->is_joint = rows[i].is_joint;
        last->value.count = 5; /* so far: a burn, or it is being verified */
        gp_bench_mark_failed(&results, "2", 60 * GP_NS_PER_S, why, sizeof(why));
        assert_string_equal(why, rows[i].why);
        assert_int_equal(results.list[0].outcome, GP_BENCH_MEASURED);
        assert_int_equal(results.list[1].outcome, GP_BENCH_FAILED);
        assert_string_equal(results.list[1].note, why);
        gp_bench_results_fini(&results);
    }
}

/* ---- judging ---- */

static struct gp_bench_result *add(struct gp_bench *bench, const char *test, const char *what,
                                   size_t device, double median)
{
    struct gp_bench_result *r =
        gp_bench_results_add(&bench->results, test, what, bench->names[device]);
    assert_non_null(r);
    r->unit = "GB/s";
    r->value = (struct gp_bench_stats){
        10, median, 0.98 * median, 1.02 * median, 0.99 * median, 1.01 * median};
    return r;
}

/* Four GPUs of one model; one of them is worse in one thing. */
static void test_judge(void **state)
{
    (void)state;
    static const struct {
        const char *test, *what;
        bool is_lower_better;
        double normal, now; /* of the last GPU */
        bool is_short;
        double least;
    } rows[] = {
        {"gemm", "bf16", false, 700, 699, false, 0},
        {"gemm", "bf16", false, 700, 640, false, 0}, /* 91 %: its power limit */
        {"gemm", "bf16", false, 700, 640, true, 0.95},
        {"gemm", "bf16", false, 700, 620, true, 0},
        {"gemm", "bf16", false, 700, 620, false, 0.8},
        {"gemm", "bf16", false, 700, 900, false, 0},
        {"memory", "copy", false, 3000, 2960, false, 0},
        {"memory", "copy", false, 3000, 2800, true, 0},
        {"memory", "copy", false, 3000, 2800, false, 0.9},
        {"memory", "to GPU", false, 50, 44, false, 0}, /* another socket */
        {"memory", "to GPU", false, 50, 44, false, 0.95},
        {"memory", "to GPU", false, 50, 25, true, 0},
        {"memory", "to GPU", false, 50, 25, false, 0.4},
        {"latency", "launch", true, 3, 4, false, 0},
        {"latency", "launch", true, 3, 9, true, 0},
        {"latency", "launch", true, 3, 1, false, 0},
    };
    for (size_t k = 0; k < GP_ARRAY_LEN(rows); k++) {
        static struct gp_bench_device devices[4];
        struct gp_bench bench = {.count = 4};
        static struct gp_bench_judgement j;
        for (size_t i = 0; i < 4; i++) {
            bench.devices[i] = &devices[i];
            devices[i].is_gpu = true;
            (void)snprintf(devices[i].name, sizeof(devices[i].name), "H100");
            (void)snprintf(bench.names[i], sizeof(bench.names[i]), "%zu", i);
            add(&bench, rows[k].test, rows[k].what, i, i == 3 ? rows[k].now : rows[k].normal)
                ->is_lower_better = rows[k].is_lower_better;
        }
        gp_bench_judge(&bench, "host", NULL, rows[k].least, &j);
        /* three that are alike must not be blamed for one that is better */
        if (j.count != (size_t)rows[k].is_short)
            fail_msg("row %zu: %zu", k, j.count);
        if (j.count) {
            assert_string_equal(j.list[0].result->device, "3");
            assert_int_equal(j.list[0].standard, GP_BENCH_BY_OTHERS);
        }
        assert_int_equal(j.by_standard[GP_BENCH_BY_OTHERS], 4);
        assert_false(gp_bench_is_incomplete(&bench, &j));
        gp_bench_results_fini(&bench.results);
    }
}

/* A GPU that computes wrongly, or with another kernel, is no standard for the others. */
static void test_judge_by_equals_only(void **state)
{
    (void)state;
    static const struct {
        enum gp_bench_outcome outcome;
        const char *kernel;
        size_t compared;
    } rows[] = {
        {GP_BENCH_MEASURED, "cuBLASLt 12.9.0", 2},
        {GP_BENCH_WRONG, "cuBLASLt 12.8.4", 0},
        {GP_BENCH_MEASURED, "gpulse's own kernel", 0},
    };
    for (size_t k = 0; k < GP_ARRAY_LEN(rows); k++) {
        static struct gp_bench_device devices[2];
        struct gp_bench bench = {
            .count = 2, .devices = {&devices[0], &devices[1]}, .names = {"0", "1"}};
        static struct gp_bench_judgement j;
        struct gp_bench_result *r = add(&bench, "gemm", "bf16", 0, 700);
        (void)snprintf(r->kernel, sizeof(r->kernel), "cuBLASLt 12.8.4");
        r = add(&bench, "gemm", "bf16", 1, 700);
        r->outcome = rows[k].outcome;
        (void)snprintf(r->kernel, sizeof(r->kernel), "%s", rows[k].kernel);
        gp_bench_judge(&bench, "host", NULL, 0.95, &j);
        assert_int_equal(j.by_standard[GP_BENCH_BY_OTHERS], rows[k].compared);
        gp_bench_results_fini(&bench.results);
    }
}

/* An earlier run counts by UUID, and only what was computed in the same way. */
static void test_judge_by_earlier_run(void **state)
{
    (void)state;
    static const struct {
        const char *device, *uuid, *host, *kernel;
        size_t compared, short_of, other_kernels;
    } rows[] = {
        {"GPU-1", "GPU-1", "other", "cuBLASLt 12.8.4", 1, 1, 0},
        {"GPU-2", "GPU-1", "here", "cuBLASLt 12.8.4", 0, 0, 0},
        {"GPU-1", "GPU-1", "here", "gpulse's own kernel", 0, 0, 1},
        {"0", "", "here", "cuBLASLt 11.0.0", 1, 1, 0},
        {"0", "", "other", "cuBLASLt 12.8.4", 0, 0, 0},
    };
    for (size_t k = 0; k < GP_ARRAY_LEN(rows); k++) {
        static struct gp_bench_device device;
        struct gp_bench bench = {.count = 1, .devices = {&device}, .names = {"0"}};
        struct gp_bench_earlier earlier = {.path = "x"};
        static struct gp_bench_judgement j;
        (void)snprintf(device.uuid, sizeof(device.uuid), "%s", rows[k].uuid);
        (void)snprintf(earlier.host, sizeof(earlier.host), "%s", rows[k].host);
        struct gp_bench_result *now = add(&bench, "gemm", "bf16", 0, 400);
        (void)snprintf(now->kernel, sizeof(now->kernel), "cuBLASLt 12.9.0");
        struct gp_bench_result *before =
            gp_bench_results_add(&earlier.results, "gemm", "bf16", rows[k].device);
        assert_non_null(before);
        before->value = (struct gp_bench_stats){10, 700, 690, 710, 695, 705};
        (void)snprintf(before->kernel, sizeof(before->kernel), "%s", rows[k].kernel);
        gp_bench_judge(&bench, "here", &earlier, 0.95, &j);
        assert_int_equal(j.by_standard[GP_BENCH_BY_EARLIER], rows[k].compared);
        assert_int_equal(j.count, rows[k].short_of);
        assert_int_equal(j.other_kernels, rows[k].other_kernels);
        gp_bench_results_fini(&bench.results);
        gp_bench_earlier_fini(&earlier);
    }
}

static void test_judge_by_sheet(void **state)
{
    (void)state;
    static struct gp_bench_device device = {.name = "H100", .is_gpu = true};
    struct gp_bench bench = {.count = 1, .devices = {&device}, .names = {"0"}};
    static struct gp_bench_judgement j;
    struct gp_bench_result *r = add(&bench, "gemm", "bf16", 0, 400);
    r->peak = 989;
    gp_bench_judge(&bench, "host", NULL, 0.95,
                   &j); /* our own kernel, and nothing to compare with */
    assert_int_equal(j.count, 0);
    assert_true(gp_bench_is_incomplete(&bench, &j));
    (void)snprintf(r->kernel, sizeof(r->kernel), "cuBLASLt 12.8.4");
    gp_bench_judge(&bench, "host", NULL, 0.95, &j);
    assert_int_equal(j.count, 1);
    assert_int_equal(j.list[0].standard, GP_BENCH_BY_SHEET);
    assert_false(gp_bench_is_incomplete(&bench, &j));
    r->peak_at_clock = 700; /* it is its clock that is low */
    gp_bench_judge(&bench, "host", NULL, 0.95, &j);
    assert_int_equal(j.count, 0);
    r->outcome = GP_BENCH_WRONG; /* has been reported as that */
    gp_bench_judge(&bench, "host", NULL, 0.95, &j);
    assert_int_equal(j.by_standard[GP_BENCH_BY_SHEET], 0);
    gp_bench_results_fini(&bench.results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_stats_cover_the_median),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_steady),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_formats_keep_their_numbers),
        cmocka_unit_test(test_precision_words),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_verify_numbers_that_are_none),
        cmocka_unit_test(test_verify_wholly_wrong),
        cmocka_unit_test(test_verify_tells_precisions_apart),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_chart_text),
        cmocka_unit_test(test_chart_svg),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_rows_for),
        cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_overdue),
        cmocka_unit_test(test_overdue_while_stopped),
        cmocka_unit_test(test_mark_failed),
        cmocka_unit_test(test_mark_failed_names_it),
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_judge_by_equals_only),
        cmocka_unit_test(test_judge_by_sheet),
        cmocka_unit_test(test_judge_by_earlier_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
