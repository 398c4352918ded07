/* The screen that adjusts a GPU, with a driver that does what the test says. */
#include "tui_scene.h"

#include "base/err.h"
#include "model/select.h"
#include "sample/changer.h"

#include <poll.h>

/* ---- the driver ---- */

struct gp_source_device {
    unsigned index;
};

static struct {
    struct gp_source source;
    struct gp_source_device device;
    struct gp_setting settings[GP_CONTROL__COUNT];
    int open_result; /* of the changer */
    unsigned opened_index;
    unsigned gpus;    /* that the driver has */
    int refused;      /* by the check before anything is changed: GP_E* or 0 */
    int failed;       /* by the setter: GP_E* or 0 */
    bool ignores;     /* accepts, and leaves it as it was */
    bool waits;       /* for a reset */
    const char *says; /* with a success */
    bool lost;
    unsigned applied;
    enum gp_control_id last;
    struct gp_control_value last_value;
} fake;

static int fake_open(struct gp_source *source, unsigned *ret_count, struct gp_err *err)
{
    (void)source;
    (void)err;
    *ret_count = fake.gpus;
    return 0;
}

static void fake_close(struct gp_source *source)
{
    (void)source;
}

static void fake_read_host(struct gp_source *source, const struct gp_metric_set *want,
                           struct gp_value host[GP_HOST__COUNT])
{
    (void)source;
    (void)want;
    (void)host;
}

static int fake_attach(struct gp_source *source, unsigned index, gp_call_name *call,
                       struct gp_source_device **ret, struct gp_reading *reading)
{
    (void)source;
    (void)call;
    if (fake.lost) {
        reading->status = GP_STATUS_LOST;
        (void)snprintf(reading->status_text, sizeof(reading->status_text), "GPU is lost");
        return GP_EDRIVER;
    }
    fake.device.index = index;
    *ret = &fake.device;
    return 0;
}

static void fake_detach(struct gp_source_device *device)
{
    (void)device;
}

static void fake_read(struct gp_source_device *device, const struct gp_want *want,
                      struct gp_reading *reading)
{
    (void)device;
    (void)want;
    reading->status = GP_STATUS_OK;
    gp_value_set_text(gp_device_value(reading->values, GP_UUID), "GPU-0", 1);
    gp_value_set_text(gp_device_value(reading->values, GP_NAME), "NVIDIA Fake", 1);
}

static void control_read(struct gp_source_device *device, enum gp_control_id id,
                         struct gp_setting *ret)
{
    (void)device;
    *ret = fake.settings[id];
}

static int control_check(struct gp_source_device *device, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    (void)device;
    (void)id;
    (void)value;
    return fake.refused ? gp_err_set(err, fake.refused, "not in this mode") : 0;
}

static int control_apply(struct gp_source_device *device, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    (void)device;
    fake.applied++;
    fake.last = id;
    fake.last_value = *value;
    if (fake.failed)
        return gp_err_set(err, fake.failed, "no permission (nvmlDeviceSet)");
    if (fake.waits) {
        fake.settings[id].has_pending = true;
        fake.settings[id].pending = *value;
    } else if (!fake.ignores) {
        fake.settings[id].value = *value;
    }
    if (fake.says)
        (void)snprintf(err->text, sizeof(err->text), "%s", fake.says);
    return 0;
}

static const struct gp_control_ops control_ops = {
    .read = control_read, .check = control_check, .apply = control_apply};
static const struct gp_source_ops ops = {.open = fake_open,
                                         .close = fake_close,
                                         .read_host = fake_read_host,
                                         .attach = fake_attach,
                                         .detach = fake_detach,
                                         .read = fake_read,
                                         .free = fake_close,
                                         .controls = &control_ops};

static int open_changer(unsigned index, struct gp_changer **ret, struct gp_err *err)
{
    static struct gp_selection selection;
    const struct gp_changer_config config = {
        .source = &fake.source, .timeout_ns = 60 * GP_NS_PER_S, .selection = &selection};
    fake.opened_index = index;
    if (fake.open_result)
        return gp_err_set(err, fake.open_result, "the driver cannot be asked");
    return gp_changer_new(&config, ret, err);
}

static struct gp_setting setting(int64_t n, int64_t min, int64_t max)
{
    return (struct gp_setting){.status = GP_STATUS_OK,
                               .known = true,
                               .has_range = max > 0,
                               .value = {.count = 1, .n = {n}},
                               .min = min,
                               .max = max};
}

/* A power limit with a range, clocks that are not told, a compute mode, and what cannot be set. */
static int set_up(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof(fake));
    fake.source.ops = &ops;
    fake.gpus = 1;
    for (int id = 0; id < GP_CONTROL__COUNT; id++)
        fake.settings[id].status = GP_STATUS_UNSUPPORTED;
    fake.settings[GP_CONTROL_POWER_LIMIT] = setting(700000, 200000, 700000);
    fake.settings[GP_CONTROL_LOCK_GPU_CLOCKS] = setting(0, 0, 0);
    fake.settings[GP_CONTROL_LOCK_GPU_CLOCKS].known = false;
    fake.settings[GP_CONTROL_LOCK_MEMORY_CLOCKS].status = GP_STATUS_NO_PERMISSION;
    fake.settings[GP_CONTROL_COMPUTE_MODE] = setting(0, 0, 0);
    fake.settings[GP_CONTROL_FAN_SPEED] = setting(35, 30, 100);
    fake.settings[GP_CONTROL_TARGET_TEMPERATURE] = setting(83, 65, 91);
    return 0;
}

/* ---- the screen ---- */

static void settle(struct gp_ui *ui)
{
    while (ui->adjust.task) {
        int fds[GP_UI_FDS];
        gp_ui_fds(ui, fds);
        struct pollfd fd = {.fd = fds[2], .events = POLLIN};
        assert_true(fd.fd >= 0);
        assert_true(poll(&fd, 1, -1) == 1);
        gp_ui_collect(ui);
    }
}

static void open_screen(struct gp_ui *ui)
{
    watch(ui, 2);
    ui->outside.open_changer = open_changer;
    press(ui, "1a");
    assert_int_equal(ui->mode, GP_UI_ADJUST);
    settle(ui);
}

static void type(struct gp_ui *ui, const char *text)
{
    press(ui, "\n");
    assert_int_equal(ui->mode, GP_UI_EDIT);
    (void)gp_ui_key(ui, GP_KEY_CTRL('U'));
    press(ui, text);
    press(ui, "\n");
}

static void check_result(const struct gp_ui *ui, const char *words)
{
    assert_string_equal(ui->adjust.result, words);
}

static void what_is_and_what_may_be(void **state)
{
    (void)state;
    static const int heights[] = {24, 21, 20, 12, 11, 8, 7, 6, 5, 3};
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 20);
    struct gp_ui ui;
    open_screen(&ui);
    assert_int_equal(fake.opened_index, 1);
    for (size_t i = 0; i < GP_ARRAY_LEN(heights); i++)
        add_scene(&all, &ui, 80, heights[i], "the first");
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    add_scene(&all, &ui, 80, 24, "not told");
    add_scene(&all, &ui, 40, 24, "narrow");
    (void)gp_ui_key(&ui, GP_KEY_END);
    add_scene(&all, &ui, 80, 24, "the last");
    (void)gp_ui_key(&ui, GP_KEY_HOME);
    type(&ui, "450");
    assert_true(ui.adjust.asks);
    add_scene(&all, &ui, 80, 24, "a question");
    press(&ui, "y");
    settle(&ui);
    add_scene(&all, &ui, 80, 24, "done");
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    type(&ui, "500,1000");
    add_scene(&all, &ui, 80, 24, "a question about what is not told");
    golden_check("top-adjust.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
    assert_true(gp_ui_fini(&ui));
}

static void a_change_and_the_way_back(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    type(&ui, "450");
    press(&ui, "x"); /* neither yes nor no */
    assert_true(ui.adjust.asks);
    assert_int_equal(fake.applied, 0);
    press(&ui, "y");
    assert_false(ui.adjust.asks);
    settle(&ui);
    check_result(&ui, "power-limit 450: done");
    assert_int_equal(fake.applied, 1);
    assert_int_equal(fake.last, GP_CONTROL_POWER_LIMIT);
    assert_int_equal(fake.last_value.n[0], 450000);
    assert_int_equal(ui.adjust.done_count, 1);
    type(&ui, "300");
    press(&ui, "Y");
    settle(&ui);
    assert_int_equal(ui.adjust.done_count, 2);
    (void)gp_ui_key(&ui, GP_KEY_END);
    press(&ui, "u"); /* the newest, wherever the cursor is */
    check_has(&ui, "from 300 W to 450 W? y/n");
    press(&ui, "n");
    assert_false(ui.adjust.asks);
    assert_int_equal(ui.adjust.done_count, 2);
    press(&ui, "uy");
    settle(&ui);
    assert_int_equal(fake.last_value.n[0], 450000);
    assert_int_equal(ui.adjust.done_count, 1);
    press(&ui, "uy");
    settle(&ui);
    assert_int_equal(fake.last_value.n[0], 700000);
    assert_int_equal(ui.adjust.done_count, 0);
    press(&ui, "u");
    check_result(&ui, "nothing to undo");
    assert_false(ui.adjust.asks);
    assert_int_equal(fake.applied, 4);
    assert_true(gp_ui_fini(&ui));
}

static void what_is_so_already_leaves_nothing_to_undo(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    type(&ui, "700");
    press(&ui, "y");
    settle(&ui);
    check_result(&ui, "power-limit 700: already set");
    assert_int_equal(fake.applied, 0);
    assert_int_equal(ui.adjust.done_count, 0);
    assert_true(gp_ui_fini(&ui));
}

/* A change of another setting between: an undone one does not take it with it. */
static void changes_are_undone_in_their_order(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    type(&ui, "450");
    press(&ui, "y");
    settle(&ui);
    (void)gp_ui_key(&ui, GP_KEY_END);
    type(&ui, "70");
    press(&ui, "y");
    settle(&ui);
    assert_int_equal(fake.last, GP_CONTROL_TARGET_TEMPERATURE);
    check_has(&ui, "u: restore target-temperature 83");
    press(&ui, "u");
    assert_int_equal(ui.menu.chosen, 7);
    press(&ui, "y");
    settle(&ui);
    check_has(&ui, "u: restore power-limit 700");
    assert_int_equal(fake.settings[GP_CONTROL_TARGET_TEMPERATURE].value.n[0], 83);
    assert_true(gp_ui_fini(&ui));
}

/* They are kept by GPU: that of another one is not offered. */
static void each_gpu_has_its_own_way_back(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    type(&ui, "450");
    press(&ui, "y");
    settle(&ui);
    press(&ui, "q");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    press(&ui, "0a");
    settle(&ui);
    assert_int_equal(fake.opened_index, 0);
    assert_string_equal(ui.adjust.result, "");
    press(&ui, "u");
    check_result(&ui, "nothing to undo");
    press(&ui, "q1a");
    settle(&ui);
    press(&ui, "u");
    check_has(&ui, "from 450 W to 700 W? y/n");
    assert_true(gp_ui_fini(&ui));
}

static void only_so_many_changes_are_kept(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    for (int i = 0; i < GP_UI_UNDOS + 2; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%d", 300 + i);
        type(&ui, text);
        press(&ui, "y");
        settle(&ui);
    }
    assert_int_equal(ui.adjust.done_count, GP_UI_UNDOS);
    assert_string_equal(ui.adjust.done[0].value, "301"); /* 700 and 300 are forgotten */
    assert_string_equal(ui.adjust.done[GP_UI_UNDOS - 1].value, "316");
    assert_true(gp_ui_fini(&ui));
}

static void what_went_wrong_is_told(void **state)
{
    (void)state;
    static const struct {
        int refused, failed;
        bool ignores, waits;
        const char *says, *result;
        size_t done;
    } cases[] = {
        {GP_EUSAGE, 0, false, false, NULL, "power-limit 450: failed: GPU 0: not in this mode", 0},
        {0, GP_EPERM, false, false, NULL, "power-limit 450: failed: no permission (nvmlDeviceSet)",
         0},
        {0, 0, true, false, NULL,
         "power-limit 450: failed: the driver accepted the change, but reports another value", 0},
        {0, 0, false, true, NULL, "power-limit 450: accepted; takes effect after a reset", 1},
        {0, 0, false, false, "too little for it", "power-limit 450: done: too little for it", 1},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ui ui;
        (void)set_up(NULL);
        open_screen(&ui);
        fake.refused = cases[i].refused;
        fake.failed = cases[i].failed;
        fake.ignores = cases[i].ignores;
        fake.waits = cases[i].waits;
        fake.says = cases[i].says;
        type(&ui, "450");
        press(&ui, "y");
        settle(&ui);
        check_result(&ui, cases[i].result);
        if (ui.adjust.done_count != cases[i].done)
            fail_msg("case %zu leaves %zu changes", i, ui.adjust.done_count);
        assert_true(gp_ui_fini(&ui));
    }
}

/* What is told of one change is not told of the next. */
static void each_change_has_its_own_result(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    fake.refused = GP_EUSAGE;
    type(&ui, "450");
    press(&ui, "y");
    settle(&ui);
    fake.refused = 0;
    type(&ui, "440");
    press(&ui, "y");
    settle(&ui);
    check_result(&ui, "power-limit 440: done");
    fake.open_result = GP_EDRIVER;
    type(&ui, "430");
    press(&ui, "y");
    settle(&ui);
    check_result(&ui, "power-limit 430: not attempted: the driver cannot be asked");
    assert_int_equal(ui.adjust.done_count, 1);
    assert_true(gp_ui_fini(&ui));
}

/* A GPU that is lost while it is set: what was read before stays on the screen. */
static void a_gpu_that_is_lost_by_it_keeps_its_settings(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    fake.failed = GP_EDRIVER;
    type(&ui, "450");
    press(&ui, "y");
    settle(&ui);
    check_has(&ui, "power-limit           700 W");
    (void)line_with(&ui, 80, 24, "  default|exclusive-process|prohibited ");
    (void)line_with(&ui, 80, 24, " (not supported by this GPU) ");
    check_has(&ui, "power-limit 450: failed");
    assert_true(gp_ui_fini(&ui));
}

/* Another value behind an undo that was declined is a new change. */
static void an_undo_that_was_declined_is_none(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    type(&ui, "450");
    press(&ui, "y");
    settle(&ui);
    press(&ui, "un");
    type(&ui, "300");
    press(&ui, "y");
    settle(&ui);
    assert_int_equal(ui.adjust.done_count, 2);
    assert_string_equal(ui.adjust.done[1].value, "450");
    assert_true(gp_ui_fini(&ui));
}

static void what_the_driver_does_not_tell_is_not_verified(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    press(&ui, "\n");
    assert_string_equal(ui.adjust.text, ""); /* nothing that it is */
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_int_equal(ui.mode, GP_UI_ADJUST);
    assert_false(ui.adjust.asks);
    type(&ui, "500,1000");
    press(&ui, "y");
    settle(&ui);
    check_result(&ui, "lock-gpu-clocks 500,1000: accepted; the driver does not report whether it "
                      "took effect");
    check_has(&ui, "u: restore lock-gpu-clocks reset");
    assert_true(gp_ui_fini(&ui));
}

static void values_that_cannot_be_are_not_asked_about(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    press(&ui, "\n");
    assert_string_equal(ui.adjust.text, "700");
    press(&ui, "\n"); /* as it is */
    assert_true(ui.adjust.asks);
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_false(ui.adjust.asks);
    assert_int_equal(ui.mode, GP_UI_ADJUST);
    type(&ui, "701");
    assert_false(ui.adjust.asks);
    check_has(&ui, "out of range: 200 to 700 W");
    type(&ui, "much");
    assert_false(ui.adjust.asks);
    assert_true(ui.adjust.result[0] != '\0');
    press(&ui, "y"); /* there is no question */
    assert_int_equal(fake.applied, 0);
    for (int i = 0; i < 2; i++)
        (void)gp_ui_key(&ui, GP_KEY_DOWN);
    press(&ui, "\n"); /* not permitted */
    assert_int_equal(ui.mode, GP_UI_ADJUST);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    press(&ui, "\n"); /* not there */
    assert_int_equal(ui.mode, GP_UI_ADJUST);
    assert_true(gp_ui_fini(&ui));
}

/* A value that cannot be taken back any more is not offered twice. */
static void a_way_back_that_is_closed_is_forgotten(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    type(&ui, "450");
    press(&ui, "y");
    settle(&ui);
    press(&ui, "q");
    fake.settings[GP_CONTROL_POWER_LIMIT].max = 500000;
    press(&ui, "a");
    settle(&ui);
    press(&ui, "u");
    assert_false(ui.adjust.asks);
    assert_int_equal(ui.adjust.done_count, 0);
    check_has(&ui, "out of range: 200 to 500 W");
    assert_true(gp_ui_fini(&ui));
}

static void read_only_changes_nothing(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    ui.prefs.read_only = true;
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_ADJUST);
    check_result(&ui, "read-only: cannot change settings");
    assert_true(gp_ui_fini(&ui));
}

static void a_gpu_that_cannot_be_asked_says_why(void **state)
{
    (void)state;
    static const struct {
        int open_result;
        bool lost;
        unsigned gpus;
        const char *result;
    } cases[] = {{GP_EDRIVER, false, 1, "the driver cannot be asked"},
                 {0, true, 1, "GPU 1: GPU is lost"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ui ui;
        (void)set_up(NULL);
        fake.open_result = cases[i].open_result;
        fake.lost = cases[i].lost;
        fake.gpus = cases[i].gpus;
        open_screen(&ui);
        check_result(&ui, cases[i].result);
        press(&ui, "\n"); /* no settings are known */
        assert_int_equal(ui.mode, GP_UI_ADJUST);
        press(&ui, "u");
        check_result(&ui, "nothing to undo");
        press(&ui, "q");
        assert_int_equal(ui.mode, GP_UI_WATCH);
        assert_true(gp_ui_fini(&ui));
    }
}

/* The program must then end without waiting for the thread. */
static void a_driver_that_hangs_is_remembered(void **state)
{
    (void)state;
    struct gp_ui ui;
    fake.open_result = GP_ETIMEOUT;
    open_screen(&ui);
    assert_true(ui.is_stuck);
    assert_false(gp_ui_fini(&ui));
}

static void without_a_gpu_there_is_no_screen(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 0);
    ui.outside.open_changer = open_changer;
    press(&ui, "a");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_string_equal(ui.message, "no GPU here");
    assert_true(gp_ui_fini(&ui));
    watch(&ui, 1);
    press(&ui, "a"); /* nothing that could change it */
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_string_equal(ui.message, "no GPU here");
    assert_true(gp_ui_fini(&ui));
}

/* The driver is busy with it: the cursor moves, and that is all. */
static void a_change_that_is_under_way_waits(void **state)
{
    (void)state;
    struct gp_ui ui;
    open_screen(&ui);
    type(&ui, "450");
    press(&ui, "y");
    assert_non_null(ui.adjust.task);
    check_has(&ui, "waiting for the driver");
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    assert_int_equal(ui.menu.chosen, 1);
    press(&ui, "\nu");
    assert_int_equal(ui.mode, GP_UI_ADJUST);
    assert_false(ui.adjust.asks);
    press(&ui, "q"); /* it is waited for, and remembered */
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_null(ui.adjust.job);
    assert_int_equal(fake.applied, 1);
    assert_int_equal(ui.adjust.done_count, 1);
    assert_int_equal(ui.menu.count, 0);
    assert_true(gp_ui_fini(&ui));
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_and_what_may_be),
        TEST(a_change_and_the_way_back),
        TEST(what_is_so_already_leaves_nothing_to_undo),
        TEST(changes_are_undone_in_their_order),
        TEST(each_gpu_has_its_own_way_back),
        TEST(only_so_many_changes_are_kept),
        TEST(what_went_wrong_is_told),
        TEST(each_change_has_its_own_result),
        TEST(a_gpu_that_is_lost_by_it_keeps_its_settings),
        TEST(an_undo_that_was_declined_is_none),
        TEST(what_the_driver_does_not_tell_is_not_verified),
        TEST(values_that_cannot_be_are_not_asked_about),
        TEST(a_way_back_that_is_closed_is_forgotten),
        TEST(read_only_changes_nothing),
        TEST(a_gpu_that_cannot_be_asked_says_why),
        TEST(a_driver_that_hangs_is_remembered),
        TEST(without_a_gpu_there_is_no_screen),
        TEST(a_change_that_is_under_way_waits),
    };
    return cmocka_run_group_tests_name("tui_adjust", tests, NULL, NULL);
}
