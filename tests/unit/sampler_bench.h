/* One sampler over one fake source, and how its tests drive it. */
#ifndef GP_TESTS_SAMPLER_BENCH_H
#define GP_TESTS_SAMPLER_BENCH_H

#include "unit.h"

#include "fake_source.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "own_clock.h"
#include "sample/sampler.h"

#include <unistd.h>

enum {
    PATIENCE_NS = 200 * 1000 * 1000, /* of a tick that meets a GPU which hangs */
    LONG_S = 30,                     /* of a tick that meets none: only a failing test waits */
};

/* One sampler over one fake, with what it is asked for. */
struct bench {
    struct fake fake;
    struct gp_selection selection;
    struct gp_sampler_config config;
    struct gp_sampler *sampler;
    struct gp_snapshot *snapshot;
};

static inline void bench_init(struct bench *b, unsigned gpus)
{
    memset(b, 0, sizeof(*b));
    set_clock_speed(1); /* one that failed may have left it standing */
    fake_init(&b->fake, gpus);
    b->config = (struct gp_sampler_config){
        .source = &b->fake.source,
        .root = "/nonexistent",
        .timeout_ns = LONG_S * GP_NS_PER_S,
        .selection = &b->selection,
    };
    gp_metric_set_add(&b->config.want.metrics, GP_NAME);
    gp_metric_set_add(&b->config.want.metrics, GP_STATUS);
    gp_metric_set_add(&b->config.want.metrics, GP_STATUS_TEXT);
    gp_metric_set_add(&b->config.want.metrics, GP_TEMPERATURE_GPU);
}

static inline void start(struct bench *b)
{
    struct gp_err err = {0};
    if (gp_sampler_new(&b->config, &b->sampler, &err) < 0)
        fail_msg("cannot start: %s", err.text);
}

static inline const struct gp_snapshot *tick(struct bench *b)
{
    struct gp_err err = {0};
    gp_snapshot_free(b->snapshot);
    b->snapshot = NULL;
    if (gp_sampler_tick(b->sampler, &b->snapshot, &err) < 0)
        fail_msg("no sample: %s", err.text);
    return b->snapshot;
}

/* The sampler ends, with everything given back and no rule of source.h broken. */
static inline void finish(struct bench *b)
{
    gp_snapshot_free(b->snapshot);
    assert_true(gp_sampler_free(b->sampler));
    assert_int_equal(b->fake.frees, 1);
    assert_int_equal(b->fake.held, 0);
    assert_int_equal(b->fake.inside, 0);
    assert_false(b->fake.is_open);
    assert_int_equal(b->fake.breaches, 0);
}

static inline const struct gp_value *value(const struct bench *b, size_t row, enum gp_metric m)
{
    assert_true(row < b->snapshot->device_count);
    return gp_snapshot_value(b->snapshot, &b->snapshot->devices[row], NULL, m);
}

static inline void check_text(const struct bench *b, size_t row, enum gp_metric m,
                              const char *expected)
{
    assert_int_equal(value(b, row, m)->status, GP_STATUS_OK);
    assert_string_equal(value(b, row, m)->s, expected);
}

static inline void check_well(const struct bench *b, size_t row, int64_t temperature)
{
    assert_int_equal(b->snapshot->devices[row].status, GP_STATUS_OK);
    check_text(b, row, GP_STATUS, "ok");
    assert_int_equal(value(b, row, GP_TEMPERATURE_GPU)->status, GP_STATUS_OK);
    assert_int_equal(value(b, row, GP_TEMPERATURE_GPU)->i, temperature);
}

/* Between samples that wait for something; lost GPUs are looked for again after a second. */
static inline void pause_between_ticks(void)
{
    (void)usleep(5000);
    skip_ms(95);
}

/* Samples until the device has this status. */
static inline void tick_until(struct bench *b, size_t row, enum gp_status status)
{
    for (int i = 0; i < 2000; i++) {
        tick(b);
        if (row < b->snapshot->device_count && b->snapshot->devices[row].status == status)
            return;
        pause_between_ticks();
    }
    fail_msg("GPU %zu never became %d", row, (int)status);
}

/* Samples until all but this one are well: on a machine that is busy itself, a single sample may be
 * over before they have had their turn. */
static inline void tick_until_others(struct bench *b, size_t row)
{
    for (size_t i = 0; i < b->fake.count; i++)
        if (i != row)
            tick_until(b, i, GP_STATUS_OK);
}

/* A GPU that has not come back from a call says which. */
static inline void check_silent(const struct bench *b, size_t row)
{
    const char *text = b->snapshot->devices[row].status_text;
    assert_int_equal(b->snapshot->devices[row].status, GP_STATUS_TIMEOUT);
    if (strncmp(text, "no answer for ", 14) != 0 || !strstr(text, " s (fakeRead)"))
        fail_msg("'%s' does not say which call hangs", text);
}

static inline void check_no_start(struct bench *b, int code, const char *words)
{
    struct gp_err err = {0};
    assert_int_equal(gp_sampler_new(&b->config, &b->sampler, &err), code);
    assert_null(b->sampler);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
    assert_int_equal(b->fake.frees, 1);
    assert_int_equal(b->fake.held, 0);
    assert_int_equal(b->fake.breaches, 0);
    assert_false(b->fake.is_open);
}

/* Lets a GPU answer again, and waits until no call is inside. */
static inline void release(struct bench *b, unsigned index)
{
    fake_set_mode(&b->fake, index, FAKE_WELL);
    for (int i = 0; i < 2000; i++) {
        (void)pthread_mutex_lock(&b->fake.lock);
        bool out = b->fake.inside == 0;
        (void)pthread_mutex_unlock(&b->fake.lock);
        if (out)
            return;
        (void)usleep(5000);
    }
    fail_msg("the call never came back");
}

#endif
