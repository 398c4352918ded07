/* Moving in a recording: where a request leads, and what is said about it. */
#include "tape_lab.h"

#include "model/snapshot.h"
#include "source/source.h"
#include "tape/control.h"

#include <math.h>

struct play {
    struct gp_tape_control *control;
    struct gp_player *player;
    struct gp_player_state state; /* after the last sample */
    double watts;                 /* in it; negative: unknown */
    int over;
};

static void play_open(struct play *play, const struct lab *lab, int64_t at_us)
{
    struct gp_err err = {0};
    *play = (struct play){.over = 0};
    if (gp_tape_control_open(lab->path, at_us, &play->control, &err) < 0)
        fail_msg("%s", err.text);
    play->player = gp_tape_control_player(play->control);
}

/* Takes a sample, a second after the one before. */
static void next(struct play *play)
{
    struct gp_err err = {0};
    struct gp_snapshot *snapshot;
    const struct gp_want want = gp_recorder_want();
    play->over = gp_tape_control_sample(play->control, &want, GP_NS_PER_S, &snapshot, &err);
    if (play->over < 0)
        fail_msg("%s", err.text);
    if (!gp_device_number(&snapshot->devices[FIXTURE_WELL], GP_POWER_DRAW, &play->watts))
        play->watts = -1;
    play->player->ops->look(play->player, &play->state);
    assert_true(play->state.is_known);
    assert_true(snapshot->wall_ns == play->state.wall_ns);
    gp_snapshot_free(snapshot);
}

static void ask(struct play *play, enum gp_player_request request, int64_t amount)
{
    play->player->ops->ask(play->player, request, amount);
    next(play);
}

/* The number of the sample that is shown: see record(). */
static long shown(const struct play *play)
{
    return play->watts < 0 ? -1 : lround((play->watts - 100) * 8);
}

/* Samples whose power says which they are. */
static void record(struct lab *lab, int64_t count, int64_t step_us)
{
    static int64_t next_number;
    if (lab->clocks.wall_us == START)
        next_number = 0;
    for (int64_t i = 0; i < count; i++) {
        gp_value_set_real(fixture_value(&lab->machine, FIXTURE_WELL, GP_POWER_DRAW),
                          100 + (double)next_number++ / 8, FIXTURE_NOW_NS);
        lab_sample(lab);
        lab_pass(lab, step_us);
    }
}

static void it_plays_at_any_speed(void **state)
{
    struct lab *lab = *state;
    struct play play;
    lab_start(lab, GP_NS_PER_S);
    record(lab, 200, S);
    lab_stop(lab);
    play_open(&play, lab, GP_TAPE_AT_START);
    for (long i = 0; i < 5; i++) {
        next(&play);
        assert_int_equal(shown(&play), i);
    }
    play.player->ops->set_speed(play.player, 4, 0);
    next(&play);
    assert_int_equal(shown(&play), 8);
    assert_true(fabs(play.state.speed - 4) < 1e-9);
    play.player->ops->set_speed(play.player, 0.25, 2 * GP_NS_PER_S);
    next(&play);
    assert_int_equal(shown(&play), 8); /* half a second later */
    next(&play);
    assert_int_equal(shown(&play), 9);
    play.player->ops->pause(play.player, true);
    next(&play);
    next(&play);
    assert_int_equal(shown(&play), 9);
    assert_true(play.state.is_paused);
    play.player->ops->pause(play.player, false);
    play.player->ops->set_speed(play.player, 64, 0);
    for (int i = 0; i < 4; i++)
        next(&play);
    assert_int_equal(shown(&play), 199);
    assert_true(play.state.is_at_end);
    assert_int_equal(play.over, 1);
    gp_tape_control_close(play.control);
}

static void steps_are_samples(void **state)
{
    struct lab *lab = *state;
    struct play play;
    lab_start(lab, GP_NS_PER_S);
    record(lab, 100, S);
    lab_pass(lab, 3600 * S); /* nothing for an hour */
    record(lab, 100, S);
    lab_stop(lab);
    play_open(&play, lab, START + 50 * S);
    next(&play);
    assert_int_equal(shown(&play), 50);
    play.player->ops->pause(play.player, true);
    ask(&play, GP_PLAYER_STEP, -1);
    assert_int_equal(shown(&play), 49);
    ask(&play, GP_PLAYER_STEP, 11);
    assert_int_equal(shown(&play), 60);
    ask(&play, GP_PLAYER_STEP, 39);
    assert_int_equal(shown(&play), 99);
    ask(&play, GP_PLAYER_STEP, 1); /* over the hole */
    assert_int_equal(shown(&play), 100);
    ask(&play, GP_PLAYER_STEP, -1);
    assert_int_equal(shown(&play), 99);
    ask(&play, GP_PLAYER_STEP, 30);
    assert_true(shown(&play) >= 100 && shown(&play) < 130);
    ask(&play, GP_PLAYER_STEP, -1000000000000);
    assert_int_equal(shown(&play), 0);
    ask(&play, GP_PLAYER_STEP, INT64_MAX);
    assert_int_equal(shown(&play), 199);
    ask(&play, GP_PLAYER_STEP, INT64_MIN);
    assert_int_equal(shown(&play), 0);
    /* several requests before the next sample */
    for (int i = 0; i < 5; i++)
        play.player->ops->ask(play.player, GP_PLAYER_STEP, 1);
    play.player->ops->ask(play.player, GP_PLAYER_STEP, -1);
    next(&play);
    assert_int_equal(shown(&play), 4);
    gp_tape_control_close(play.control);
}

static void what_was_not_recorded_is_unknown(void **state)
{
    struct lab *lab = *state;
    struct play play;
    lab_start(lab, GP_NS_PER_S);
    record(lab, 100, S);
    lab_pass(lab, 3600 * S);
    record(lab, 100, S);
    lab_stop(lab);
    play_open(&play, lab, GP_TAPE_AT_START);
    next(&play);
    ask(&play, GP_PLAYER_SHIFT, 600 * S);
    assert_int_equal(shown(&play), -1);
    assert_true(play.state.is_hole);
    assert_true(play.state.wall_ns == (uint64_t)(START + 600 * S) * GP_NS_PER_US);
    next(&play); /* plays on behind it */
    assert_int_equal(shown(&play), 100);
    ask(&play, GP_PLAYER_SHIFT, -1800 * S);
    assert_true(play.state.is_hole);
    ask(&play, GP_PLAYER_STEP, -1);
    assert_int_equal(shown(&play), 99);
    ask(&play, GP_PLAYER_SHIFT, 1800 * S);
    ask(&play, GP_PLAYER_STEP, 1);
    assert_int_equal(shown(&play), 100);
    ask(&play, GP_PLAYER_SHIFT, INT64_MIN);
    assert_int_equal(shown(&play), 0);
    ask(&play, GP_PLAYER_SHIFT, INT64_MAX);
    assert_int_equal(shown(&play), 199);
    gp_tape_control_close(play.control);
}

static void times_are_gone_to(void **state)
{
    struct lab *lab = *state;
    struct play play;
    lab_start(lab, GP_NS_PER_S);
    record(lab, 100, S);
    lab_stop(lab);
    play_open(&play, lab, GP_TAPE_AT_END);
    next(&play);
    assert_int_equal(shown(&play), 99);
    assert_true(play.state.is_at_end);
    ask(&play, GP_PLAYER_GO, START + 30 * S + S / 2);
    assert_int_equal(shown(&play), 30);
    assert_string_equal(play.state.note, "");
    assert_false(play.state.is_at_end);
    ask(&play, GP_PLAYER_GO, START - 3600 * S);
    assert_int_equal(shown(&play), 0);
    assert_string_equal(play.state.note, "the recording begins here");
    ask(&play, GP_PLAYER_GO, START + 3600 * S);
    assert_int_equal(shown(&play), 99);
    assert_string_equal(play.state.note, "the recording ends here");
    assert_true(play.state.first_ns == (uint64_t)START * GP_NS_PER_US);
    assert_true(play.state.last_ns == (uint64_t)(START + 99 * S) * GP_NS_PER_US);
    gp_tape_control_close(play.control);
}

static void events_are_gone_to(void **state)
{
    struct lab *lab = *state;
    struct play play;
    lab_start(lab, GP_NS_PER_S);
    record(lab, 50, S);
    lab_event(lab, GP_EVENT_XID, "Xid 79: \x1b[31mfallen off the bus");
    record(lab, 50, S);
    lab_event(lab, GP_EVENT_THROTTLE, "limited by heat");
    lab_event(lab, GP_EVENT_PROCESS_START, "a process is no event here");
    record(lab, 50, S);
    lab_stop(lab);
    play_open(&play, lab, GP_TAPE_AT_START);
    next(&play);
    ask(&play, GP_PLAYER_EVENT, 1);
    assert_non_null(strstr(play.state.note, "Xid 79: "));
    assert_non_null(strstr(play.state.note, "GPU 0: "));
    assert_null(strchr(play.state.note, '\x1b'));
    const long first = shown(&play);
    play.player->ops->pause(play.player, true);
    next(&play); /* it stays until something else is shown */
    assert_non_null(strstr(play.state.note, "Xid 79: "));
    assert_true(first >= 49 && first <= 50);
    ask(&play, GP_PLAYER_EVENT, 1);
    assert_non_null(strstr(play.state.note, "limited by heat"));
    assert_true(shown(&play) >= 99 && shown(&play) <= 100);
    ask(&play, GP_PLAYER_EVENT, 1);
    assert_string_equal(play.state.note, "no later event");
    assert_true(shown(&play) >= 99 && shown(&play) <= 100);
    ask(&play, GP_PLAYER_EVENT, -1);
    assert_int_equal(shown(&play), first);
    ask(&play, GP_PLAYER_EVENT, -1);
    assert_string_equal(play.state.note, "no earlier event");
    ask(&play, GP_PLAYER_STEP, 1);
    assert_string_equal(play.state.note, "");
    gp_tape_control_close(play.control);
}

/* Summaries of 10 s, then samples. */
static void summaries_are_stepped_over(void **state)
{
    struct lab *lab = *state;
    struct play play;
    lab_start(lab, 10 * GP_NS_PER_S);
    record(lab, 3 * 360, 10 * S);
    lab_stop(lab);
    lab_start(lab, 10 * GP_NS_PER_S);
    record(lab, 2, 10 * S);
    lab_stop(lab);
    play_open(&play, lab, GP_TAPE_AT_START);
    next(&play);
    assert_int_equal(play.state.step_us, 10 * S);
    play.player->ops->pause(play.player, true);
    bool had_samples = false;
    for (long i = 1; i < 3 * 360; i++) {
        ask(&play, GP_PLAYER_STEP, 1);
        assert_int_equal(shown(&play), i);
        had_samples = had_samples || play.state.step_us == 0;
    }
    assert_true(had_samples);
    for (long i = 3 * 360 - 2; i >= 0; i--) {
        ask(&play, GP_PLAYER_STEP, -1);
        assert_int_equal(shown(&play), i);
    }
    ask(&play, GP_PLAYER_STEP, 100);
    assert_int_equal(shown(&play), 100);
    ask(&play, GP_PLAYER_STEP, -30);
    assert_int_equal(shown(&play), 70);
    gp_tape_control_close(play.control);
}

static void check_parts(struct play *play, size_t count, int first_percent, int last_percent)
{
    struct gp_player_part parts[GP_PLAYER_PARTS];
    play->player->ops->parts(play->player, parts, count);
    for (int i = 0; i < 100; i++) /* it is read in pieces */
        next(play);
    play->player->ops->parts(play->player, parts, count);
    for (size_t i = 0; i < count; i++)
        assert_true(parts[i].is_known);
    assert_true(fabs((double)parts[0].load * 100 - first_percent) < 1);
    assert_true(fabs((double)parts[count - 1].load * 100 - last_percent) < 1);
    assert_true(parts[count / 2].load < 0);
    size_t faults = 0;
    for (size_t i = 0; i < count; i++) {
        faults += parts[i].has_fault;
        assert_true(parts[i].has_event == parts[i].has_fault);
    }
    assert_int_equal(faults, 1);
}

static void set_load(struct lab *lab, int64_t percent)
{
    for (int i = 0; i < FIXTURE_DEVICES; i++)
        *fixture_value(&lab->machine, i, GP_UTILIZATION_GPU) = fixture_int(percent);
}

/* Of parts of seconds, minutes and hours: from samples, from summaries, and from the usage. */
static void the_whole_is_seen_at_once(void **state)
{
    struct lab *lab = *state;
    struct play play;
    for (int64_t scale = 1; scale <= 1000; scale *= 10) {
        (void)snprintf(lab->path, sizeof(lab->path), "%s/%d.tape", lab->folder, (int)scale);
        lab->clocks = (struct gp_axis_clocks){START, 1000 * S, "boot"};
        lab_start(lab, (uint64_t)scale * GP_NS_PER_S);
        set_load(lab, 20);
        record(lab, 100, scale * S);
        lab_event(lab, GP_EVENT_XID, "Xid 79");
        lab_pass(lab, 200 * scale * S);
        set_load(lab, 80);
        record(lab, 101, scale * S);
        lab_stop(lab);
        play_open(&play, lab, GP_TAPE_AT_START);
        next(&play);
        play.player->ops->pause(play.player, true);
        check_parts(&play, 40, 20, 80);
        check_parts(&play, 100, 20, 80);
        gp_tape_control_close(play.control);
    }
}

/* What was recorded meanwhile is shown: it stays at the end. */
static void the_end_is_followed(void **state)
{
    struct lab *lab = *state;
    struct play play;
    lab_start(lab, GP_NS_PER_S);
    record(lab, 100, S);
    lab_stop(lab);
    play_open(&play, lab, GP_TAPE_AT_END);
    next(&play);
    assert_false(play.state.is_growing);
    lab_start(lab, GP_NS_PER_S);
    record(lab, 30, S);
    lab_stop(lab);
    next(&play);
    assert_int_equal(shown(&play), 129);
    assert_true(play.state.is_growing);
    ask(&play, GP_PLAYER_STEP, -1);
    lab_start(lab, GP_NS_PER_S);
    record(lab, 30, S);
    lab_stop(lab);
    next(&play);
    assert_true(shown(&play) <= 131); /* not there any more: it plays on from where it is */
    gp_tape_control_close(play.control);
}

static void on_past(void *ctx, const struct gp_snapshot *snapshot)
{
    double watts;
    long *count = ctx;
    assert_true(gp_device_number(&snapshot->devices[FIXTURE_WELL], GP_POWER_DRAW, &watts));
    assert_int_equal(lround((watts - 100) * 8), 40 + (*count)++);
    assert_int_equal(snapshot->process_count, 0);
}

static void what_was_before_it_fills_graphs(void **state)
{
    struct lab *lab = *state;
    struct play play;
    long count = 0;
    lab_start(lab, GP_NS_PER_S);
    record(lab, 100, S);
    lab_stop(lab);
    play_open(&play, lab, START + 60 * S);
    next(&play);
    play.player->ops->past(play.player, 20, GP_NS_PER_S, on_past, &count);
    assert_int_equal(count, 20);
    count = -40;
    play.player->ops->past(play.player, 1000, GP_NS_PER_S, on_past, &count);
    assert_int_equal(count, 20);
    next(&play); /* and it plays on */
    assert_int_equal(shown(&play), 61);
    gp_tape_control_close(play.control);
}

static void a_player_may_live_longer(void **state)
{
    struct lab *lab = *state;
    struct play play;
    lab_start(lab, GP_NS_PER_S);
    record(lab, 3, S);
    lab_stop(lab);
    play_open(&play, lab, GP_TAPE_AT_START);
    next(&play);
    play.player->ops->ref(play.player);
    gp_tape_control_close(play.control);
    for (int i = 0; i < 200; i++)
        play.player->ops->ask(play.player, GP_PLAYER_EVENT, 1);
    play.player->ops->look(play.player, &play.state);
    assert_true(play.state.is_known);
    play.player->ops->unref(play.player);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lab_set_up, lab_tear_down)
        TEST(it_plays_at_any_speed),     TEST(steps_are_samples),
        TEST(times_are_gone_to),         TEST(what_was_not_recorded_is_unknown),
        TEST(events_are_gone_to),        TEST(summaries_are_stepped_over),
        TEST(the_whole_is_seen_at_once), TEST(the_end_is_followed),
        TEST(a_player_may_live_longer),  TEST(what_was_before_it_fills_graphs),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
