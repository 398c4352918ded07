/* A recording in the live monitor: its keys, and the lines at the bottom. */
#include "tui_machine.h"

#include "source/player.h"
#include "tui/playback.h"

#include <math.h>

#define RECORDED_NS (UINT64_C(1795183445) * GP_NS_PER_S)
#define HOUR_US INT64_C(3600000000)
#define MINUTE_US INT64_C(60000000)

/* A player that notes what it is asked for. */
struct fake {
    struct gp_player player;
    struct gp_player_state state;
    enum gp_player_request request;
    int64_t amount;
    unsigned asked;
    uint64_t tick_ns;
    struct gp_player_part parts[GP_PLAYER_PARTS];
    size_t past;
};

static void fake_ask(struct gp_player *player, enum gp_player_request request, int64_t amount)
{
    struct fake *fake = (struct fake *)player;
    fake->request = request;
    fake->amount = amount;
    fake->asked++;
}

static void fake_pause(struct gp_player *player, bool is_paused)
{
    ((struct fake *)player)->state.is_paused = is_paused;
}

static void fake_set_speed(struct gp_player *player, double speed, uint64_t tick_ns)
{
    struct fake *fake = (struct fake *)player;
    fake->state.speed = speed;
    fake->tick_ns = tick_ns;
}

static void fake_look(struct gp_player *player, struct gp_player_state *ret)
{
    *ret = ((struct fake *)player)->state;
}

static void fake_parts(struct gp_player *player, struct gp_player_part *ret, size_t count)
{
    memcpy(ret, ((struct fake *)player)->parts, count * sizeof(*ret));
}

static void fake_past(struct gp_player *player, size_t count, uint64_t step_ns,
                      void (*on_sample)(void *ctx, const struct gp_snapshot *snapshot), void *ctx)
{
    (void)step_ns;
    (void)on_sample;
    (void)ctx;
    ((struct fake *)player)->past = count;
}

static const struct gp_player_ops ops = {
    .ask = fake_ask,
    .pause = fake_pause,
    .set_speed = fake_set_speed,
    .look = fake_look,
    .parts = fake_parts,
    .past = fake_past,
};

/* Eight hours, of which the third is shown, an hour later. */
static void begin(struct gp_ui *ui, struct fake *fake)
{
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    *fake = (struct fake){.player.ops = &ops,
                          .state = {.is_known = true,
                                    .speed = 1,
                                    .first = 0,
                                    .last = 8 * HOUR_US,
                                    .at = 2 * HOUR_US,
                                    .first_ns = RECORDED_NS - 7200 * GP_NS_PER_S,
                                    .last_ns = RECORDED_NS + 21600 * GP_NS_PER_S,
                                    .wall_ns = RECORDED_NS,
                                    .now_ns = RECORDED_NS + 25200 * GP_NS_PER_S}};
    for (size_t i = 0; i < GP_PLAYER_PARTS; i++)
        fake->parts[i] = (struct gp_player_part){.load = i % 8 / 7.0F, .is_known = true};
    fake->parts[3].has_event = fake->parts[3].has_fault = true;
    fake->parts[5].has_event = true;
    fake->parts[7].load = -1;
    fake->parts[9] = (struct gp_player_part){.load = -1};
    gp_ui_init(ui);
    ui->outside.player = &fake->player;
    gp_ui_take(ui, machine(2, 0), GP_NS_PER_MS);
    fake->asked = 0;
    ui->playback.hurries = false;
}

static void check_line(struct gp_ui *ui, int w, int h, const char *words)
{
    const char *text = picture(ui, w, h);
    if (!strstr(text, words))
        fail_msg("'%s' is not in\n%s", words, text);
}

static void the_bottom_says_where_it_is(void **state)
{
    (void)state;
    static const int sizes[][2] = {{80, 24}, {120, 40}};
    struct gp_ui ui;
    struct fake fake;
    begin(&ui, &fake);
    for (size_t i = 0; i < GP_ARRAY_LEN(sizes); i++) {
        const int w = sizes[i][0];
        const int h = sizes[i][1];
        fake.state.is_paused = fake.state.is_hole = false;
        fake.state.is_at_end = fake.state.is_growing = false;
        fake.state.step_us = 0;
        fake.state.note[0] = '\0';
        check_line(&ui, w, h, "\n playing 1x · 2026-11-20 14:04:05 · 7h ago · sample\n");
        check_line(&ui, w, h, "\n 12:04 ▁▂▃!▅▲▇·▁ ▃▄▅▆▇█▁▂");
        check_line(&ui, w, h, " 20:04\n playing");
        check_line(&ui, w, h, "recorded 14:02");
        fake.state.speed = 0.25;
        check_line(&ui, w, h, "\n playing 0.25x · ");
        fake.state.speed = 1;
        fake.state.is_paused = true;
        fake.state.step_us = 10000000;
        check_line(&ui, w, h, "Space:play  [ ]:step");
        check_line(&ui, w, h, "\n PAUSED · 2026-11-20 14:04:05 · 7h ago · summary of 10s\n");
        fake.state.is_hole = true;
        (void)snprintf(fake.state.note, sizeof(fake.state.note), "GPU 3: Xid 79");
        check_line(&ui, w, h, " · 7h ago · nothing recorded · GPU 3: Xid 79\n");
        fake.state.is_paused = false;
        fake.state.is_at_end = true;
        check_line(&ui, w, h, "\n end of the recording · ");
        fake.state.is_growing = true;
        check_line(&ui, w, h, "\n recording now · ");
    }
    check_line(&ui, 80, 12, "\n recording now · "); /* without the timeline */
    assert_null(strstr(picture(&ui, 80, 12), "12:04"));
    for (int h = 1; h < 12; h++)
        for (int w = 1; w < 40; w += 3)
            (void)picture(&ui, w, h);
    assert_true(gp_ui_fini(&ui));
}

/* A quarter of it is over. */
static void the_place_is_marked(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct fake fake;
    struct gp_cells cells = {0, 0, NULL};
    begin(&ui, &fake);
    assert_int_equal(gp_cells_resize(&cells, 80, 24), 0);
    gp_ui_draw(&ui, &cells, "14:02");
    const struct gp_cell *line = &cells.cells[21 * 80];
    int marked = -1;
    for (int x = 0; x < 80; x++)
        if (line[x].ink == GP_INK_SELECTED) {
            assert_int_equal(marked, -1);
            marked = x;
        }
    assert_int_equal(marked, 7 + (80 - 14) / 4);
    assert_int_equal(line[7 + 3].ink, GP_INK_CRITICAL);
    gp_cells_fini(&cells);
    assert_true(gp_ui_fini(&ui));
}

/* Absurd numbers of a file of a stranger. */
static void any_state_can_be_drawn(void **state)
{
    (void)state;
    static const int64_t places[] = {0, -1, INT64_MAX / 8, 1};
    static const uint64_t times[] = {0, UINT64_MAX / 4, RECORDED_NS};
    struct gp_ui ui;
    struct fake fake;
    begin(&ui, &fake);
    for (size_t i = 0; i < 4 * 4 * 4 * 3 * 3; i++) {
        fake.state.first = places[i % 4];
        fake.state.last = places[i / 4 % 4];
        fake.state.at = places[i / 16 % 4];
        fake.state.first_ns = times[i / 64 % 3];
        fake.state.last_ns = fake.state.wall_ns = times[i / 192 % 3];
        (void)picture(&ui, 80, 24);
    }
    assert_true(gp_ui_fini(&ui));
}

static void check_asked(struct gp_ui *ui, struct fake *fake, const char *keys,
                        enum gp_player_request request, int64_t amount)
{
    const unsigned before = fake->asked;
    press(ui, keys);
    assert_int_equal(fake->asked, before + 1);
    assert_int_equal(fake->request, request);
    assert_int_equal(fake->amount, amount);
    assert_true(ui->playback.hurries);
    ui->playback.hurries = false;
}

static void keys_move_in_it(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct fake fake;
    begin(&ui, &fake);
    check_asked(&ui, &fake, "]", GP_PLAYER_STEP, 1);
    assert_true(fake.state.is_paused);
    check_asked(&ui, &fake, "[", GP_PLAYER_STEP, -1);
    press(&ui, " ");
    assert_false(fake.state.is_paused);
    press(&ui, "z");
    assert_true(fake.state.is_paused);
    assert_null(ui.held);
    check_asked(&ui, &fake, "}", GP_PLAYER_SHIFT, MINUTE_US);
    check_asked(&ui, &fake, "{", GP_PLAYER_SHIFT, -MINUTE_US);
    check_asked(&ui, &fake, ".", GP_PLAYER_EVENT, 1);
    check_asked(&ui, &fake, ",", GP_PLAYER_EVENT, -1);
    for (int i = 0; i < 200; i++) /* held */
        press(&ui, "]");
    assert_int_equal(fake.amount, 60);
    press(&ui, "[");
    assert_int_equal(fake.amount, -1);
    assert_int_equal(ui.tag_count, 0);
    assert_int_equal(ui.zoom, 0);
    assert_true(gp_ui_fini(&ui));
}

static void speeds_are_doubled_and_halved(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct fake fake;
    begin(&ui, &fake);
    const uint64_t interval_ns = ui.prefs.interval_ns;
    assert_true(gp_ui_tick_ns(&ui) == interval_ns);
    press(&ui, "+");
    assert_true(fabs(fake.state.speed - 2) < 1e-9);
    assert_true(fake.tick_ns == interval_ns / 2 && gp_ui_tick_ns(&ui) == interval_ns / 2);
    press(&ui, "++++++++");
    assert_true(fabs(fake.state.speed - 64) < 1e-9);
    assert_true(gp_ui_tick_ns(&ui) == 200 * GP_NS_PER_MS);
    fake.state.is_at_end = true; /* it waits */
    assert_true(gp_ui_tick_ns(&ui) == interval_ns);
    fake.state.is_at_end = false;
    press(&ui, "-----------------");
    assert_true(fabs(fake.state.speed - 0.25) < 1e-9);
    assert_true(gp_ui_tick_ns(&ui) == 4 * interval_ns);
    assert_true(ui.prefs.interval_ns == interval_ns);
    assert_true(gp_ui_fini(&ui));
}

static void check_time(struct gp_ui *ui, struct fake *fake, const char *typed, int64_t after_s)
{
    char keys[64];
    (void)snprintf(keys, sizeof(keys), "g%s\n", typed);
    check_asked(ui, fake, keys, GP_PLAYER_GO,
                (int64_t)(RECORDED_NS / GP_NS_PER_US) + after_s * 1000000);
}

/* 14:04:05 is shown, of 12:04:05 to 20:04:05. */
static void times_are_of_the_day_on_the_screen(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct fake fake;
    begin(&ui, &fake);
    check_time(&ui, &fake, "15:04:05", 3600);
    check_time(&ui, &fake, "2026-11-20 13:04:05", -3600);
    check_time(&ui, &fake, "11:04:05", -3 * 3600); /* not in it: the player says so */
    check_time(&ui, &fake, "2h ago", 5 * 3600);
    check_time(&ui, &fake, "today", -(14 * 3600 + 245));
    /* a recording over midnight */
    fake.state.last_ns += 86400 * GP_NS_PER_S / 2;
    check_time(&ui, &fake, "03:04:05", 13 * 3600);
    const unsigned before = fake.asked;
    press(&ui, "gnever\n");
    assert_int_equal(fake.asked, before);
    check_line(&ui, 100, 24, "'never' is not a time");
    press(&ui, "g\n");
    press(&ui, "g12:00\x1b");
    assert_int_equal(fake.asked, before);
    assert_true(gp_ui_fini(&ui));
}

static void a_click_goes_there(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct fake fake;
    begin(&ui, &fake);
    (void)picture(&ui, 80, 24);
    (void)gp_ui_click(&ui, 40, 21, false); /* half of it */
    assert_int_equal(fake.asked, 1);
    assert_int_equal(fake.request, GP_PLAYER_SHIFT);
    assert_true(llabs(fake.amount - 2 * HOUR_US) < HOUR_US / 5);
    assert_true(gp_ui_fini(&ui));
}

/* What would show or change this machine says that it does not. */
static void nothing_of_this_machine_is_shown(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct fake fake;
    begin(&ui, &fake);
    press(&ui, "k");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    check_line(&ui, 100, 24, "this is a recording: signals");
    press(&ui, "a");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    check_line(&ui, 100, 24, "this is a recording: settings");
    press(&ui, "e");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    check_line(&ui, 100, 24, "this is a recording: environments are not recorded");
    (void)picture(&ui, 100, 24);
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_PROCESS);
    assert_null(ui.details.task);
    assert_null(ui.details.job);
    check_line(&ui, 100, 60, "nothing else is recorded of it");
    assert_null(strstr(picture(&ui, 100, 60), "what limits it"));
    check_line(&ui, 100, 60, "\n playing 1x · ");
    check_asked(&ui, &fake, "]", GP_PLAYER_STEP, 1); /* also on this page */
    check_line(&ui, 100, 60, "\n PAUSED · ");
    gp_ui_take(&ui, machine(2, 1), GP_NS_PER_MS);
    assert_null(ui.details.task);
    press(&ui, "/ "); /* typed */
    assert_true(fake.state.is_paused);
    press(&ui, "\n");
    press(&ui, "q\t\n");
    assert_int_equal(ui.mode, GP_UI_GPU);
    assert_null(ui.details.feed);
    check_line(&ui, 100, 60, "utilization");
    press(&ui, "a");
    assert_int_equal(ui.mode, GP_UI_GPU);
    press(&ui, "q?");
    check_line(&ui, 100, 24, "previous sample");
    press(&ui, "q");
    assert_null(strstr(picture(&ui, 200, 24), "kill"));
    assert_true(gp_ui_fini(&ui));
}

/* Graphs end at the time on the screen, which also goes back. */
static void graphs_go_back_in_time(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct fake fake;
    begin(&ui, &fake);
    assert_true(fake.past > 0); /* the first frame has graphs */
    for (unsigned tick = 1; tick < 100; tick++) {
        fake.past = 0;
        gp_ui_take(&ui, machine(1, tick), 1);
        assert_int_equal(fake.past, 0);
    }
    const struct gp_track *track = gp_history_find(&ui.history, &ui.snapshot->devices[0]);
    assert_int_equal(track->count, 100);
    gp_ui_take(&ui, machine(1, 99), 1); /* the same again */
    assert_int_equal(track->count, 100);
    gp_ui_take(&ui, machine(1, 79), 1);
    assert_int_equal(track->count, 80);
    assert_int_equal(fake.past, 0);
    gp_ui_take(&ui, machine(1, 9), 1); /* too little is left: it is read anew */
    assert_true(fake.past > 0);
    assert_int_equal(track->count, 1);
    fake.past = 0;
    gp_ui_take(&ui, machine(1, 5000), 1); /* a leap */
    assert_true(fake.past > 0);
    assert_int_equal(track->count, 1);
    assert_true(gp_ui_fini(&ui));
}

/* Also after the ring was full. */
static void what_was_cut_off_is_gone(void **state)
{
    (void)state;
    enum { MORE = 300, CUT = 500 };
    struct gp_history history = {.tracks = NULL};
    float values[GP_TRACK_SAMPLES];
    struct gp_snapshot *last = NULL;
    for (unsigned tick = 0; tick < GP_TRACK_SAMPLES + MORE; tick++) {
        gp_snapshot_free(last);
        last = machine(1, tick);
        gp_value_set_int(device_value(&last->devices[0], GP_UTILIZATION_GPU), tick % 100, 1);
        gp_history_add(&history, last, GP_NS_PER_S);
    }
    const unsigned left = GP_TRACK_SAMPLES + MORE - CUT;
    const uint64_t end_ns = (NOW_S + left) * GP_NS_PER_S;
    gp_history_cut(&history, end_ns);
    const struct gp_track *track = gp_history_find(&history, &last->devices[0]);
    gp_track_read(track, GP_SERIES_GPU, end_ns - GP_NS_PER_S / 2, GP_NS_PER_S, values,
                  GP_TRACK_SAMPLES);
    for (unsigned i = 0; i < GP_TRACK_SAMPLES; i++) {
        const bool is_left = i < left - MORE;
        if (is_left)
            assert_true(fabs((double)values[i] - (left - 1 - i) % 100) < 0.1);
        else
            assert_true(values[i] < 0);
    }
    gp_snapshot_free(last);
    gp_history_fini(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bottom_says_where_it_is),
        cmocka_unit_test(the_place_is_marked),
        cmocka_unit_test(any_state_can_be_drawn),
        cmocka_unit_test(keys_move_in_it),
        cmocka_unit_test(speeds_are_doubled_and_halved),
        cmocka_unit_test(times_are_of_the_day_on_the_screen),
        cmocka_unit_test(a_click_goes_there),
        cmocka_unit_test(nothing_of_this_machine_is_shown),
        cmocka_unit_test(graphs_go_back_in_time),
        cmocka_unit_test(what_was_cut_off_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
