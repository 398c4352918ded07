/* The times of samples: those at which GPUs were read. */
#include "unit.h"

#include "tui/history.h"
#include "tui_machine.h"

enum { STEPS = 6 };

/* A snapshot a second, of which that one is late by some milliseconds: all values but those of GPU
 * 1 were read in time. */
static void add_seconds(struct gp_history *history, uint64_t late_ms)
{
    for (unsigned tick = 0; tick < STEPS; tick++) {
        struct gp_snapshot *s = machine(2, tick);
        if (tick == STEPS - 3) {
            s->mono_ns += late_ms * GP_NS_PER_MS;
            s->devices[1].status = GP_STATUS_TIMEOUT;
            for (int m = 0; m < GP_PROCESS__FIRST - GP_DEVICE__FIRST; m++)
                s->devices[1].values[m].status = GP_STATUS_STALE;
        }
        gp_history_add(history, s, GP_NS_PER_S);
        gp_snapshot_free(s);
    }
}

static size_t gaps_in(const struct gp_track *track)
{
    float values[STEPS];
    size_t gaps = 0;
    struct gp_snapshot *last = machine(2, STEPS - 1);
    gp_track_read(track, GP_SERIES_GPU, last->mono_ns + GP_NS_PER_S / 2, GP_NS_PER_S, values,
                  STEPS);
    for (size_t i = 0; i < STEPS; i++)
        gaps += values[i] < 0;
    gp_snapshot_free(last);
    return gaps;
}

static void a_gpu_that_hangs_leaves_no_gap_in_the_past_of_others(void **state)
{
    (void)state;
    static const uint64_t late_ms[] = {0, 100, 600, 990};
    for (size_t i = 0; i < GP_ARRAY_LEN(late_ms); i++) {
        struct gp_history history = {.tracks = NULL};
        add_seconds(&history, late_ms[i]);
        assert_int_equal(history.count, 2);
        assert_int_equal(gaps_in(history.tracks[0]), 0);
        assert_int_equal(gaps_in(history.tracks[1]), 1);
        assert_int_equal(gaps_in(&history.all), 0);
        gp_history_fini(&history);
    }
}

static void a_value_that_is_not_read_again_is_of_the_time_of_the_snapshot(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    uint64_t read_ns = 0;
    for (unsigned tick = 0; tick < STEPS; tick++) {
        struct gp_snapshot *s = machine(1, tick);
        read_ns = tick == 0 ? s->mono_ns : read_ns;
        for (int m = 0; m < GP_PROCESS__FIRST - GP_DEVICE__FIRST; m++)
            gp_value_set_time(&s->devices[0].values[m], read_ns);
        gp_history_add(&history, s, GP_NS_PER_S);
        gp_snapshot_free(s);
    }
    assert_int_equal(gaps_in(history.tracks[0]), 0);
    gp_history_fini(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_that_hangs_leaves_no_gap_in_the_past_of_others),
        cmocka_unit_test(a_value_that_is_not_read_again_is_of_the_time_of_the_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
