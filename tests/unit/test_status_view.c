#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "golden.h"
#include "out/status.h"
#include "snapshot_fixture.h"

static struct fixture fixture;

static int set_up(void **state)
{
    (void)state;
    fixture_init(&fixture);
    return 0;
}

static void check_view(struct gp_status_view view, const char *golden)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (!view.name_width)
        view.name_width = GP_STATUS_NAME_AUTO;
    gp_status_text(&sb, &view, &fixture.snapshot);
    assert_int_equal(sb.error, 0);
    golden_check(golden, sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

static void every_option(void **state)
{
    (void)state;
    check_view((struct gp_status_view){.user = true}, "status-user.txt");
    check_view((struct gp_status_view){.command = true, .no_header = true}, "status-command.txt");
    check_view((struct gp_status_view){.user = true,
                                       .command = true,
                                       .pid = true,
                                       .fan = true,
                                       .encoder = true,
                                       .decoder = true,
                                       .draw = true,
                                       .limit = true},
               "status-all.txt");
    check_view((struct gp_status_view){.user = true, .full_command = true}, "status-full.txt");
    check_view((struct gp_status_view){.no_processes = true, .draw = true, .encoder = true},
               "status-no-processes.txt");
    check_view(
        (struct gp_status_view){.user = true, .limit = true, .decoder = true, .name_width = 8},
        "status-narrow.txt");
}

static void colours(void **state)
{
    (void)state;
    check_view((struct gp_status_view){.user = true,
                                       .command = true,
                                       .pid = true,
                                       .fan = true,
                                       .encoder = true,
                                       .decoder = true,
                                       .draw = true,
                                       .limit = true,
                                       .full_command = true,
                                       .color = true},
               "status-color.txt");
}

static void without_escapes(char *text)
{
    char *to = text;
    for (const char *p = text; *p;) {
        if (*p == '\033') {
            p += strcspn(p, "m") + 1;
            continue;
        }
        *to++ = *p++;
    }
    *to = '\0';
}

static void colours_change_no_text(void **state)
{
    (void)state;
    struct gp_status_view view = {.user = true,
                                  .command = true,
                                  .pid = true,
                                  .fan = true,
                                  .encoder = true,
                                  .decoder = true,
                                  .draw = true,
                                  .limit = true,
                                  .full_command = true,
                                  .name_width = GP_STATUS_NAME_AUTO};
    struct gp_strbuf plain = GP_STRBUF_INIT(1 << 20);
    struct gp_strbuf painted = GP_STRBUF_INIT(1 << 20);
    gp_status_text(&plain, &view, &fixture.snapshot);
    view.color = true;
    gp_status_text(&painted, &view, &fixture.snapshot);
    assert_string_not_equal(plain.buf, painted.buf);
    without_escapes(painted.buf);
    assert_string_equal(plain.buf, painted.buf);
    gp_strbuf_fini(&plain);
    gp_strbuf_fini(&painted);
}

/* However small the terminal is, nothing is read beyond the text. */
static void frames_of_every_size(void **state)
{
    (void)state;
    const struct gp_status_view view = {.name_width = GP_STATUS_NAME_AUTO};
    for (size_t rows = 0; rows < 8; rows++)
        for (size_t cols = 1; cols < 100; cols += 33) {
            struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
            size_t lines = 0;
            gp_status_add_frame(&sb, &view, &fixture.snapshot, rows, cols, false);
            assert_int_equal(sb.error, 0);
            for (const char *p = sb.buf; *p; p++)
                lines += *p == '\n';
            assert_in_range(lines, 1, rows > 2 ? rows - 1 : 1);
            gp_strbuf_fini(&sb);
        }
}

/* Only a line that is wider than the terminal is cut. */
static void only_wide_lines_are_cut(void **state)
{
    (void)state;
    const struct gp_status_view view = {.name_width = GP_STATUS_NAME_AUTO};
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 20);
    size_t widest = 0;
    gp_status_text(&text, &view, &fixture.snapshot);
    for (const char *p = text.buf; *p; p += strcspn(p, "\n") + 1) {
        char line[512];
        (void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
        size_t width = gp_utf8_width(line);
        widest = width > widest ? width : widest;
    }
    for (size_t cols = widest - 1; cols <= widest; cols++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
        gp_status_add_frame(&sb, &view, &fixture.snapshot, 100, cols, false);
        assert_int_equal(strstr(sb.buf, "…") != NULL, cols < widest);
        gp_strbuf_fini(&sb);
    }
    gp_strbuf_fini(&text);
}

static void json(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_status_json(&sb, &fixture.snapshot);
    golden_check("status-json.txt", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

static void no_gpu_and_no_host(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    struct gp_status_view view = {.name_width = GP_STATUS_NAME_AUTO};
    fixture.snapshot.device_count = 0;
    fixture.snapshot.host[GP_DRIVER_VERSION] = fixture_absent(GP_STATUS_UNSUPPORTED);
    gp_status_text(&sb, &view, &fixture.snapshot);
    assert_string_equal(sb.buf, "node1  2026-11-20 15:04:05  driver unknown\n");
    gp_strbuf_fini(&sb);
}

static bool wants(struct gp_status_view view, bool as_json, enum gp_metric m)
{
    struct gp_metric_set set = {0};
    gp_status_want(&set, &view, as_json);
    return gp_metric_set_has(&set, m);
}

static void only_what_is_shown_is_asked_for(void **state)
{
    (void)state;
    const struct gp_status_view none = {.no_processes = true};
    assert_true(wants(none, false, GP_TEMPERATURE_GPU));
    assert_false(wants(none, false, GP_FAN_SPEED));
    assert_false(wants(none, false, GP_POWER_DRAW));
    assert_false(wants(none, false, GP_UTILIZATION_ENCODER));
    assert_false(wants(none, false, GP_PID));
    assert_false(wants(none, false, GP_PROCESS_COMMAND));
    assert_true(wants((struct gp_status_view){.fan = true}, false, GP_FAN_SPEED));
    assert_true(wants((struct gp_status_view){.draw = true}, false, GP_POWER_DRAW));
    assert_true(wants((struct gp_status_view){.limit = true}, false, GP_POWER_LIMIT_ENFORCED));
    assert_false(wants((struct gp_status_view){.limit = true}, false, GP_POWER_DRAW));
    assert_true(wants((struct gp_status_view){.decoder = true}, false, GP_UTILIZATION_DECODER));
    assert_true(wants((struct gp_status_view){.full_command = true}, false, GP_PROCESS_RSS));
    assert_true(wants((struct gp_status_view){0}, true, GP_UUID));
    assert_true(wants((struct gp_status_view){0}, true, GP_PROCESS_CPU));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_option, set_up),
        cmocka_unit_test_setup(colours, set_up),
        cmocka_unit_test_setup(colours_change_no_text, set_up),
        cmocka_unit_test_setup(frames_of_every_size, set_up),
        cmocka_unit_test_setup(only_wide_lines_are_cut, set_up),
        cmocka_unit_test_setup(json, set_up),
        cmocka_unit_test_setup(no_gpu_and_no_host, set_up),
        cmocka_unit_test_setup(only_what_is_shown_is_asked_for, set_up),
    };
    return cmocka_run_group_tests_name("status_view", tests, NULL, NULL);
}
