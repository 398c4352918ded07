/* Alerts on the line between GPUs and processes, and the list of them. */
#include "unit.h"

#include "base/utf8.h"
#include "tui/alert_line.h"
#include "tui/alerts.h"
#include "tui/gpu_fault.h"
#include "tui/gpu_flags.h"
#include "tui/gpu_order.h"
#include "tui/gpu_text.h"
#include "tui/words.h"
#include "tui_scene.h"

#include <string.h>

/* ---- a line ---- */

static void whole_parts_go_before_words(void **state)
{
    (void)state;
    static const struct gp_alert full = {.gpu = 3,
                                         .text = "GPU 3: memory full in ~7 min · 10874 carol "
                                                 "+20 MiB/s",
                                         .brief = "full in ~7 min",
                                         .next = "for 5 min"};
    static const struct gp_alert lost = {
        .gpu = 3, .text = "GPU 3 lost", .brief = "lost", .next = "gpulse doctor"};
    static const struct {
        const struct gp_alert *alert;
        int w;
        const char *line;
    } cases[] = {
        {&full, 70, " ! GPU 3: memory full in ~7 min · 10874 carol +20 MiB/s · for 5 min "},
        {&full, 68, " ! GPU 3: memory full in ~7 min · 10874 carol +20 MiB/s · for 5 min "},
        {&full, 67, " ! GPU 3: memory full in ~7 min · 10874 carol +20 MiB/s "},
        {&full, 55, " ! GPU 3: memory full in ~7 min "},
        {&full, 32, " ! GPU 3: memory full in ~7 min "},
        {&full, 31, " ! GPU 3 full in ~7 min "},
        {&full, 24, " ! GPU 3 full in ~7 min "},
        {&full, 23, " ! 1 "},
        {&lost, 80, " ! GPU 3 lost · gpulse doctor "},
        {&lost, 30, " ! GPU 3 lost · gpulse doctor "},
        {&lost, 29, " ! GPU 3 lost "},
        {&lost, 13, " ! 1 "},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char line[GP_ALERT_LINE_SIZE];
        gp_alert_line(cases[i].alert, cases[i].w, line);
        if (strcmp(line, cases[i].line) != 0)
            fail_msg("case %zu: '%s'", i, line);
    }
}

/* Whatever the width, it fits. */
static void it_fits_every_width(void **state)
{
    (void)state;
    static const struct gp_alert alert = {.text = "GPU 12: 20.0 GiB held, idle for ten minutes · "
                                                  "10874 jürgen",
                                          .next = "gpulse ps"};
    for (int w = 5; w < 100; w++) {
        char line[GP_ALERT_LINE_SIZE];
        gp_alert_line(&alert, w, line);
        assert_true((int)gp_utf8_width(line) <= w);
    }
}

/* Each in the same form, as far as they fit; the rest is counted. What helps with all is at the
 * end. */
static void the_line_names_several(void **state)
{
    (void)state;
    static const struct gp_alert list[] = {
        {.gpu = 2,
         .ink = GP_INK_CRITICAL,
         .text = "GPU 2 lost",
         .brief = "lost",
         .next = "gpulse doctor"},
        {.gpu = 3, .ink = GP_INK_CRITICAL, .brief = "memory errors"},
        {.gpu = 3, .ink = GP_INK_HIGH, .brief = "repair waits"},
        {.gpu = 15, .ink = GP_INK_HIGH, .brief = "too hot"},
    };
    static const struct {
        size_t count, found;
        int w;
        const char *line;
    } cases[] = {
        {1, 1, 40, "! GPU 2 lost · gpulse doctor"},
        {2, 2, 52, "! GPU 2 lost · GPU 3 memory errors · gpulse doctor"},
        {4, 4, 90,
         "! GPU 2 lost · GPU 3 memory errors · GPU 3 repair waits · GPU 15 too hot · gpulse "
         "doctor"},
        {4, 4, 89, "! GPU 2 lost · GPU 3 memory errors · GPU 3 repair waits · GPU 15 too hot"},
        {4, 5, 96,
         "! GPU 2 lost · GPU 3 memory errors · GPU 3 repair waits · GPU 15 too hot "
         "(+1)"},
        {4, 4, 66, "! GPU 2 lost · GPU 3 memory errors · GPU 3 repair waits (+1)"},
        {4, 4, 42, "! GPU 2 lost · GPU 3 memory errors (+2)"},
        {4, 4, 38, "! GPU 2 lost (+3)"},
        {4, 4, 18, "! lost (+3)"},
        {4, 4, 12, "! 4"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_cells cells = {0, 0, NULL};
        struct gp_strbuf sb = GP_STRBUF_INIT(1024);
        assert_int_equal(gp_cells_resize(&cells, cases[i].w, 1), 0);
        gp_draw_alerts(&(struct gp_box){&cells, 0, 0, cases[i].w, 1}, list, cases[i].count,
                       cases[i].found);
        cells_text(&sb, &cells);
        const char *line = sb.buf + strspn(sb.buf, " ");
        if (strncmp(line, cases[i].line, strlen(cases[i].line)) != 0 ||
            line[strlen(cases[i].line)] != '\n')
            fail_msg("case %zu: '%s'", i, line);
        gp_strbuf_fini(&sb);
        gp_cells_fini(&cells);
    }
}

/* ---- what to do ---- */

/* Each is told of with what it means. */
static void each_says_what_to_do(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(8, 0);
    struct gp_device *d = s->devices;
    const struct gp_history history = {.tracks = NULL};
    struct gp_xids xids = {.count = 0};
    struct gp_alert alerts[16];
    gp_xids_add(&xids, (struct gp_xid){0, 79, s->wall_ns});
    gp_value_set_text(device_value(&d[0], GP_RECOVERY_ACTION), "Reset", 1);
    gp_value_set_int(device_value(&d[1], GP_ECC_UNCORRECTED_VOLATILE), 3, 1);
    gp_value_set_text(device_value(&d[2], GP_REMAPPED_FAILURE), "Yes", 1);
    gp_value_set_text(device_value(&d[2], GP_REMAPPED_PENDING), "Yes", 1);
    gp_value_set_int(device_value(&d[3], GP_TEMPERATURE_GPU), 99, 1);
    gp_value_set_int(device_value(&d[3], GP_REASONS_ACTIVE), 0xa0, 1);
    gp_value_set_int(device_value(&d[4], GP_PCIE_WIDTH), 4, 1);
    d[6].status = GP_STATUS_LOST;
    gp_value_set_int(device_value(&d[7], GP_MEMORY_UNATTRIBUTED), GIB, 1);
    const size_t count = gp_alerts_find(s, &history, &xids, alerts, 16);
    assert_int_equal(count, 14);
    for (size_t i = 0; i < count; i++) {
        assert_true(*alerts[i].next && *alerts[i].about && *alerts[i].brief);
        assert_true(gp_utf8_width(alerts[i].text) <= 76); /* a window of 80 columns */
        assert_null(strstr(alerts[i].text, "nvml"));
        for (size_t j = 0; j < i; j++)
            assert_false(gp_alert_is(&alerts[i], &alerts[j]));
        assert_true(gp_alert_is(&alerts[i], &alerts[i]));
    }
    gp_snapshot_free(s);
}

/* ---- the list ---- */

/* Two GPUs, the second with fewer lanes than it had. */
static struct gp_snapshot *narrow(unsigned tick, bool has_more)
{
    struct gp_snapshot *s = machine(3, tick);
    gp_value_set_int(device_value(&s->devices[1], GP_PCIE_WIDTH), 4, 1);
    if (has_more)
        gp_value_set_text(device_value(&s->devices[2], GP_RECOVERY_ACTION), "Reset", 1);
    return s;
}

static void enter_goes_to_the_gpu(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    gp_ui_take(&ui, narrow(0, false), 1);
    press(&ui, "!");
    check_has(&ui, "alerts 1 · Enter go there, q back");
    check_has(&ui, "GPU 1 narrow PCIe (4 of 16 lanes)");
    check_has(&ui, "reseat it");
    assert_non_null(strstr(line_with(&ui, 200, 60, "reseat it"), "lanes)    reseat it"));
    check_has(&ui, "Copies between host and GPU are ");
    /* one that is worse comes first; the chosen one stays */
    gp_ui_take(&ui, narrow(1, true), 1);
    check_has(&ui, "alerts 2 ");
    assert_int_equal(ui.menu.chosen, 1);
    gp_ui_take(&ui, narrow(2, false), 1);
    assert_int_equal(ui.menu.chosen, 0);
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_int_equal(ui.gpu, 1);
    assert_true(ui.gpus_have_focus);
    assert_int_equal(ui.menu.count, 0);
    press(&ui, "!!");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    press(&ui, "!q");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_true(gp_ui_fini(&ui));
}

/* A process that alone holds the memory of an idle GPU. */
static struct gp_snapshot *held(unsigned tick)
{
    struct gp_snapshot *s = machine(1, tick);
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_USED), INT64_C(20) * GIB, 1);
    gp_value_set_int(device_value(&s->devices[0], GP_UTILIZATION_GPU), 0, 1);
    s->process_count = 1;
    s->devices[0].first_process = 0;
    s->devices[0].process_count = 1;
    return s;
}

static void enter_goes_to_the_process(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    for (unsigned tick = 0; tick < 620; tick++)
        gp_ui_take(&ui, held(tick), 1);
    check_has(&ui, "GPU 0 idle, memory held (20.0G, ten minutes) · 1000 bob");
    ui.gpus_have_focus = true;
    press(&ui, "!\n");
    assert_int_equal(ui.gpu, 0);
    assert_int_equal(ui.pin.pid, 1000);
    assert_false(ui.gpus_have_focus);
    /* one that is not shown: the GPU */
    (void)snprintf(ui.prefs.filter, sizeof(ui.prefs.filter), "user=nobody");
    press(&ui, "!\n");
    assert_true(ui.gpus_have_focus);
    assert_true(gp_ui_fini(&ui));
}

static void nothing_to_go_to(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    press(&ui, "!");
    check_has(&ui, "nothing needs attention");
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_int_equal(ui.gpu, -1);
    assert_true(gp_ui_fini(&ui));
    gp_ui_init(&ui); /* not even a sample */
    press(&ui, "!");
    check_has(&ui, "nothing needs attention");
    press(&ui, "q");
    assert_true(gp_ui_fini(&ui));
}

/* More than are kept; any size. */
static void a_machine_full_of_trouble(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_snapshot *s = machine(72, 0);
    for (size_t i = 0; i < 72; i++) {
        s->devices[i].status = GP_STATUS_LOST;
        for (int m = 0; m < GP_DEVICE__COUNT; m++)
            s->devices[i].values[m].status = GP_STATUS_LOST;
    }
    gp_ui_init(&ui);
    gp_ui_take(&ui, s, 1);
    press(&ui, "!$");
    check_has(&ui, "alerts 72 ");
    assert_int_equal(ui.menu.count, GP_UI_ALERTS_MAX);
    check_has(&ui, "GPU 63 lost");
    for (int w = 1; w < 90; w += 11)
        for (int h = 1; h < 30; h++)
            (void)picture(&ui, w, h);
    press(&ui, "\n");
    assert_int_equal(ui.gpu, 63);
    assert_true(gp_ui_fini(&ui));
}

/* ---- what raises one ---- */

static const struct gp_xids no_xids;

static struct gp_snapshot *growing(unsigned tick, double gib, int load)
{
    struct gp_snapshot *s = machine(1, tick);
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_USED), (int64_t)(gib * GIB), 1);
    gp_value_set_int(device_value(&s->devices[0], GP_UTILIZATION_GPU), load, 1);
    return s;
}

static void memory_that_grows_is_foretold(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_alert alert;
    struct gp_snapshot *s = NULL;
    for (unsigned tick = 0; tick < 60; tick++) {
        gp_snapshot_free(s);
        s = growing(tick, 10 + tick, 50); /* a GiB a second */
        gp_history_add(&history, s, GP_NS_PER_S);
        assert_int_equal(gp_alerts_find(s, &history, &no_xids, &alert, 1), tick >= 59);
    }
    assert_non_null(strstr(alert.text, "GPU 0 memory full in ~11 s"));
    assert_non_null(strstr(alert.text, " +1024 MiB/s"));
    assert_string_equal(alert.next, "for 1 min");
    assert_string_equal(alert.brief, "memory full in ~11 s");
    assert_int_equal(alert.ink, GP_INK_CRITICAL);
    gp_snapshot_free(s);
    gp_history_fini(&history);
}

/* How many lanes two GPUs have, before and now; of the same model, or not. */
static void lanes_that_are_missing(void **state)
{
    (void)state;
    static const struct {
        int before, now, other;
        bool alike;
        const char *text;
    } cases[] = {{8, 8, 8, true, ""},
                 {16, 16, 16, true, ""},
                 {16, 8, 8, true, "GPU 0 narrow PCIe (8 of 16 lanes)"},
                 {8, 8, 16, true, "GPU 0 narrow PCIe (8 of 16 lanes)"},
                 {8, 8, 16, false, ""}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_history history = {.tracks = NULL};
        struct gp_alert alert = {.text = ""};
        struct gp_snapshot *s = NULL;
        for (unsigned tick = 0; tick < 2; tick++) {
            gp_snapshot_free(s);
            s = machine(2, tick);
            gp_value_set_int(device_value(&s->devices[0], GP_PCIE_WIDTH),
                             tick ? cases[i].now : cases[i].before, 1);
            gp_value_set_int(device_value(&s->devices[1], GP_PCIE_WIDTH), cases[i].other, 1);
            if (!cases[i].alike)
                gp_value_set_text(device_value(&s->devices[1], GP_NAME), "another model", 1);
            gp_history_add(&history, s, GP_NS_PER_S);
        }
        (void)gp_alerts_find(s, &history, &no_xids, &alert, 1);
        assert_string_equal(alert.text, cases[i].text);
        gp_snapshot_free(s);
        gp_history_fini(&history);
    }
}

/* A GPU, its first and its second instance. */
static void instances_have_histories_of_their_own(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_snapshot *s = machine(3, 0);
    for (unsigned i = 1; i < 3; i++) {
        s->devices[i].is_mig = true;
        s->devices[i].index = 0;
        s->devices[i].mig_index = i - 1;
    }
    gp_history_add(&history, s, GP_NS_PER_S);
    assert_int_equal(history.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        float value;
        gp_track_read(gp_history_find(&history, &s->devices[i]), GP_SERIES_GPU, s->mono_ns,
                      GP_NS_PER_S, &value, 1);
        assert_int_equal((int)value, 13 * i);
    }
    gp_snapshot_free(s);
    gp_history_fini(&history);
}

/* A sample of an idle GPU that holds 20 GiB is taken in each second, or after `interval_s`. */
static struct gp_snapshot *take_idle(struct gp_history *history, unsigned tick, int load,
                                     unsigned interval_s)
{
    struct gp_snapshot *s = growing(tick, 20, load < 0 ? 0 : load);
    if (load < 0)
        gp_value_set_absent(device_value(&s->devices[0], GP_UTILIZATION_GPU), GP_STATUS_ERROR,
                            "not read", 1);
    gp_history_add(history, s, interval_s * GP_NS_PER_S);
    return s;
}

static void an_idle_gpu_that_holds_memory_is_told(void **state)
{
    (void)state;
    static const struct {
        unsigned interval_s, busy, unread, lost, lost_until, ends;
        bool is_told;
    } cases[] = {
        {.interval_s = 1, .ends = 500},
        {.interval_s = 1, .ends = 650, .is_told = true},
        {.interval_s = 60, .ends = 650, .is_told = true},
        {.interval_s = 1, .ends = 890, .busy = 300},
        {.interval_s = 1, .ends = 910, .busy = 300, .is_told = true},
        {.interval_s = 1, .ends = 650, .unread = 300, .is_told = true},
        {.interval_s = 1, .ends = 650, .lost = 300, .lost_until = 308, .is_told = true},
        {.interval_s = 1, .ends = 650, .lost = 300, .lost_until = 312},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_history history = {.tracks = NULL};
        struct gp_snapshot *s = NULL;
        struct gp_alert alert;
        for (unsigned tick = 1; tick < cases[i].ends; tick += cases[i].interval_s) {
            if (tick >= cases[i].lost && tick < cases[i].lost_until)
                continue;
            gp_snapshot_free(s);
            s = take_idle(&history, tick,
                          tick == cases[i].busy     ? 5
                          : tick == cases[i].unread ? -1
                                                    : 0,
                          cases[i].interval_s);
        }
        assert_int_equal(gp_alerts_find(s, &history, &no_xids, &alert, 1), cases[i].is_told);
        if (cases[i].is_told)
            assert_non_null(strstr(alert.text, "memory held (20.0G, "));
        gp_snapshot_free(s);
        gp_history_fini(&history);
    }
}

/* A step back in a recording forgets what came after it, and a paused screen knows of it. */
static void an_idle_gpu_is_one_at_the_moment_that_is_shown(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_snapshot *shown = NULL;
    struct gp_alert alert;
    for (unsigned tick = 1; tick < 700; tick++) {
        gp_snapshot_free(shown);
        shown = take_idle(&history, tick, 0, 1);
    }
    gp_history_cut(&history, shown->mono_ns);
    gp_snapshot_free(shown);
    shown = take_idle(&history, 699, 0, 1);
    assert_int_equal(gp_alerts_find(shown, &history, &no_xids, &alert, 1), 1);
    gp_snapshot_free(take_idle(&history, 705, 50, 1));
    assert_int_equal(gp_alerts_find(shown, &history, &no_xids, &alert, 1), 0);
    gp_snapshot_free(shown);
    gp_history_fini(&history);
}

static void the_gravest_alert_comes_first(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_alert alerts[8];
    struct gp_snapshot *s = machine(8, 0);
    gp_value_set_int(device_value(&s->devices[0], GP_PCIE_WIDTH), 8, 1);
    gp_value_set_text(device_value(&s->devices[1], GP_RECOVERY_ACTION), "Reset", 1);
    gp_value_set_int(device_value(&s->devices[2], GP_ECC_UNCORRECTED_VOLATILE), 3, 1);
    gp_value_set_int(device_value(&s->devices[3], GP_TEMPERATURE_GPU), 88, 1);
    gp_value_set_text(device_value(&s->devices[4], GP_REMAPPED_PENDING), "Yes", 1);
    size_t count = gp_alerts_find(s, &history, &no_xids, alerts, 8);
    assert_true(count >= 7); /* the one that does not answer and the full one too */
    for (size_t i = 1; i < count && i < 8; i++)
        assert_false(alerts[i].ink == GP_INK_CRITICAL && alerts[i - 1].ink == GP_INK_HIGH);
    static const char *const worst[] = {"no answer", "needs recovery (Reset)",
                                        "memory errors (3 uncorrected)", "too hot (88"};
    for (size_t i = 0; i < GP_ARRAY_LEN(worst); i++)
        assert_non_null(strstr(alerts[i].text, worst[i]));
    struct gp_alert one;
    assert_int_equal(gp_alerts_find(s, &history, &no_xids, &one, 1), count);
    assert_string_equal(one.text, alerts[0].text);
    gp_snapshot_free(s);
}

static void an_xid_is_told_for_an_hour(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_xids xids = {.count = 0};
    struct gp_alert alerts[2];
    struct gp_snapshot *s = machine(2, 0);
    for (unsigned i = 0; i < 40; i++) /* long ago */
        gp_xids_add(&xids, (struct gp_xid){0, 13, s->wall_ns - 7200 * GP_NS_PER_S});
    assert_int_equal(gp_alerts_find(s, &history, &xids, alerts, 2), 0);
    for (unsigned i = 0; i < 3; i++) /* one alert for all of them */
        gp_xids_add(&xids, (struct gp_xid){0, 13, s->wall_ns - 200 * GP_NS_PER_S});
    gp_xids_add(&xids, (struct gp_xid){1, 79, s->wall_ns - 130 * GP_NS_PER_S});
    assert_int_equal(gp_alerts_find(s, &history, &xids, alerts, 2), 2);
    assert_ptr_equal(strstr(alerts[0].text, "GPU 1 Xid 79, "), alerts[0].text);
    assert_non_null(strstr(alerts[0].text, "2 min ago"));
    assert_ptr_equal(gp_xid_worst(&xids, 1, s->wall_ns), &xids.list[43 % GP_XIDS_MAX]);
    gp_xids_add(&xids, (struct gp_xid){1, 13, s->wall_ns - 59 * GP_NS_PER_S});
    assert_int_equal(gp_xid_worst(&xids, 1, s->wall_ns)->number, 79);
    assert_int_equal(gp_xid_worst(&xids, 0, s->wall_ns)->number, 13);
    assert_null(gp_xid_worst(&xids, 2, s->wall_ns));
    char age[GP_XID_AGE_SIZE];
    assert_string_equal(gp_xid_age(&xids.list[44 % GP_XIDS_MAX], s->wall_ns, age), "just now");
    assert_int_equal(alerts[0].ink, GP_INK_CRITICAL);
    assert_int_equal(alerts[1].ink, GP_INK_HIGH); /* a program's own fault */
    gp_snapshot_free(s);
}

/* ---- on cards ---- */

/* A machine whose first GPU has most faults at once. */
static struct gp_snapshot *troubled_machine(void)
{
    struct gp_snapshot *s = machine(2, 0);
    struct gp_device *d = &s->devices[0];
    gp_value_set_text(device_value(d, GP_RECOVERY_ACTION), "Drain and Reset", s->mono_ns);
    gp_value_set_int(device_value(d, GP_ECC_UNCORRECTED_VOLATILE), 3, s->mono_ns);
    gp_value_set_text(device_value(d, GP_REMAPPED_FAILURE), "Yes", s->mono_ns);
    gp_value_set_text(device_value(d, GP_REMAPPED_PENDING), "Yes", s->mono_ns);
    gp_value_set_int(device_value(d, GP_MEMORY_UNATTRIBUTED), (int64_t)20 * GIB, s->mono_ns);
    gp_value_set_int(device_value(d, GP_REASONS_ACTIVE), 0x08, s->mono_ns);
    gp_value_set_text(device_value(&s->devices[1], GP_RECOVERY_ACTION), "", s->mono_ns);
    return s;
}

static void watch_cards(struct gp_ui *ui, struct gp_snapshot *s, uint64_t xid)
{
    gp_ui_init(ui);
    ui->prefs.view = GP_DENSITY_CARD;
    gp_xids_add(&ui->xids, (struct gp_xid){0, xid, s->wall_ns - GP_NS_PER_S});
    gp_ui_take(ui, s, 1);
}

static void a_card_has_all_faults_the_worst_first(void **state)
{
    (void)state;
    static const char worst[] = "needs recovery (Drain and Reset) · memory errors (3 uncorrected)";
    struct gp_ui ui;
    watch_cards(&ui, troubled_machine(), 94);
    const char *text = picture(&ui, 240, 40);
    assert_non_null(strstr(text,
                           " · broken memory (no spare rows) · Xid 94 · slowed by the hardware "
                           "· repair waits for a reset · orphaned memory (20.0G)"));
    assert_non_null(strstr(text, worst));
    assert_null(strstr(text, "needs recovery ()"));
    assert_null(strstr(text, "needs recovery: "));
    assert_null(strstr(text, "slowed by heat"));
    ui.prefs.alerts = false;
    text = strstr(picture(&ui, 80, 40), worst); /* the rest has no room */
    assert_non_null(text);
    assert_int_equal(strspn(text + strlen(worst), " "), strcspn(text + strlen(worst), "\n"));
    (void)gp_ui_fini(&ui);
}

/* What is known of the past is no fault any more. */
static void a_card_shows_no_old_faults(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_snapshot *s = machine(2, 0);
    struct gp_value *errors = device_value(&s->devices[0], GP_ECC_UNCORRECTED_VOLATILE);
    gp_value_set_int(errors, 3, s->mono_ns);
    errors->status = GP_STATUS_STALE;
    watch_cards(&ui, s, 94);
    assert_null(strstr(picture(&ui, 200, 40), "memory errors"));
    (void)gp_ui_fini(&ui);
}

/* Alerts, letters and cards. */
static void all_have_one_order(void **state)
{
    (void)state;
    static const char *const faults[] = {"needs recovery", "memory errors", "broken memory",  "Xid",
                                         "slowed by the",  "repair waits",  "orphaned memory"};
    struct gp_ui ui;
    struct gp_alert alerts[GP_FAULT__COUNT];
    GP_GPU_TEXT(words);
    watch_cards(&ui, troubled_machine(), 79);
    const struct gp_flags_of of = {&ui.snapshot->devices[0], &ui.xids, ui.snapshot->wall_ns};
    gp_gpu_add_flag_words(&words, &of);
    assert_int_equal(
        gp_alerts_find(ui.snapshot, &ui.history, &ui.xids, alerts, GP_ARRAY_LEN(alerts)),
        GP_ARRAY_LEN(faults));
    const char *at = words.buf;
    for (size_t i = 0; i < GP_ARRAY_LEN(faults); i++) {
        assert_non_null(strstr(alerts[i].text, faults[i]));
        assert_int_equal(alerts[i].ink, gp_fault_ink(alerts[i].rule));
        at = strstr(at, faults[i]);
        assert_non_null(at);
    }
    (void)gp_ui_fini(&ui);
}

static void gpus_with_faults_come_first(void **state)
{
    (void)state;
    static const struct {
        const char *action;
        int64_t reasons;
        size_t first;
    } cases[] = {{"", 0, 0},      {"None", 0x80, 0}, {"None", 0x04, 0},
                 {"Drain", 0, 1}, {"None", 0x08, 1}, {"None", 0x40, 1}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_gpu_order order = {.entries = NULL};
        struct gp_snapshot *s = machine(2, 0);
        struct gp_device *d = &s->devices[1];
        gp_value_set_text(device_value(d, GP_RECOVERY_ACTION), cases[i].action, s->mono_ns);
        gp_value_set_int(device_value(d, GP_REASONS_ACTIVE), cases[i].reasons, s->mono_ns);
        gp_gpu_order_set(&order, s, GP_ORDER_TROUBLE);
        assert_int_equal(gp_gpu_order_row(&order, 0), cases[i].first);
        gp_gpu_order_fini(&order);
        gp_snapshot_free(s);
    }
}

static void each_part_of_a_text_has_its_ink(void **state)
{
    (void)state;
    struct gp_words words;
    struct gp_cells cells = {0, 0, NULL};
    assert_int_equal(gp_cells_resize(&cells, GP_WORDS_PARTS, 1), 0);
    const struct gp_box box = {&cells, 0, 0, GP_WORDS_PARTS, 1};
    gp_words_init(&words);
    for (int i = 0; i < GP_WORDS_PARTS; i++) {
        gp_strbuf_addc(&words.text, 'x');
        gp_words_end(&words, i % 2 ? GP_INK_HIGH : GP_INK_CRITICAL);
    }
    (void)gp_words_draw(&box, 0, 0, &words);
    for (int i = 0; i < GP_WORDS_PARTS; i++)
        assert_int_equal(cells.cells[i].ink, i % 2 ? GP_INK_HIGH : GP_INK_CRITICAL);
    gp_cells_fini(&cells);
}

static void whole_parts_of_a_text_are_left_out(void **state)
{
    (void)state;
    static const struct {
        int w;
        const char *text;
    } cases[] = {{13, "one · two · °"},
                 {12, "one · two"},
                 {10, "one · two"},
                 {9, "one · two"},
                 {8, "one"},
                 {3, "one"},
                 {2, ""},
                 {-1, ""}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_words words;
        gp_words_init(&words);
        gp_words_add(&words, GP_INK_HIGH, "one");
        gp_words_add(&words, GP_INK_DIM, "two");
        gp_words_add(&words, GP_INK_DIM, "°");
        gp_words_fit(&words, cases[i].w);
        assert_string_equal(words.text.buf, cases[i].text);
    }
}

/* ---- under the cursor ---- */

static void an_alarm_stays_one_under_the_cursor(void **state)
{
    (void)state;
    static const struct {
        enum gp_ink ink;
        const char *inks; /* of "GPU lost hot" and a bar */
    } cases[] = {
        {GP_INK_SELECTED, "####cccc#ccc##\n"}, /* a bar has no color there */
        {GP_INK_STRONG, "ssssccccshhhhh\n"},
        {GP_INK_TAGGED, "************hh\n"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1024);
        struct gp_cells cells = {0, 0, NULL};
        assert_int_equal(gp_cells_resize(&cells, 14, 1), 0);
        const struct gp_box box = {&cells, 0, 0, 14, 1};
        (void)gp_draw(&box, 0, 0, GP_INK_PLAIN, "GPU ");
        (void)gp_draw(&box, 4, 0, GP_INK_CRITICAL, "lost");
        (void)gp_draw(&box, 9, 0, GP_INK_HIGH, "hot█▌");
        gp_draw_ink(&box, 0, cases[i].ink);
        add_inks(&sb, &cells, 0);
        assert_string_equal(sb.buf, cases[i].inks);
        gp_strbuf_fini(&sb);
        gp_cells_fini(&cells);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_parts_go_before_words),
        cmocka_unit_test(it_fits_every_width),
        cmocka_unit_test(the_line_names_several),
        cmocka_unit_test(each_says_what_to_do),
        cmocka_unit_test(enter_goes_to_the_gpu),
        cmocka_unit_test(enter_goes_to_the_process),
        cmocka_unit_test(nothing_to_go_to),
        cmocka_unit_test(a_machine_full_of_trouble),
        cmocka_unit_test(memory_that_grows_is_foretold),
        cmocka_unit_test(lanes_that_are_missing),
        cmocka_unit_test(instances_have_histories_of_their_own),
        cmocka_unit_test(an_idle_gpu_that_holds_memory_is_told),
        cmocka_unit_test(an_idle_gpu_is_one_at_the_moment_that_is_shown),
        cmocka_unit_test(the_gravest_alert_comes_first),
        cmocka_unit_test(an_xid_is_told_for_an_hour),
        cmocka_unit_test(a_card_has_all_faults_the_worst_first),
        cmocka_unit_test(a_card_shows_no_old_faults),
        cmocka_unit_test(all_have_one_order),
        cmocka_unit_test(gpus_with_faults_come_first),
        cmocka_unit_test(each_part_of_a_text_has_its_ink),
        cmocka_unit_test(whole_parts_of_a_text_are_left_out),
        cmocka_unit_test(an_alarm_stays_one_under_the_cursor),
    };
    return cmocka_run_group_tests_name("tui_alerts", tests, NULL, NULL);
}
