/* The screens of the live monitor and their keys, one after the other. */
#include "tui_scene.h"

#include "base/clock.h"
#include "base/err.h"
#include "proc/signal.h"
#include "tui/screen.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void key_times(struct gp_ui *ui, int key, int times)
{
    for (int i = 0; i < times; i++)
        (void)gp_ui_key(ui, key);
}

static void settle(struct gp_ui *ui)
{
    while (ui->details.task) {
        int fds[GP_UI_FDS];
        gp_ui_fds(ui, fds);
        struct pollfd fd = {.fd = fds[1], .events = POLLIN};
        assert_int_equal(poll(&fd, 1, -1), 1);
        gp_ui_collect(ui);
    }
}

/* ---- the cursor ---- */

static void rows_are_moved_over(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8); /* 16 processes */
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.procs.count, 16);
    size_t page = ui.page;
    assert_true(page > 3 && page < 16);
    (void)gp_ui_key(&ui, GP_KEY_UP);
    assert_int_equal(ui.chosen, 0);
    (void)gp_ui_key(&ui, GP_KEY_PAGE_DOWN);
    assert_int_equal(ui.chosen, page - 1);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first, 0);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.chosen, page);
    assert_int_equal(ui.first, 1);
    (void)gp_ui_key(&ui, GP_KEY_PAGE_UP);
    assert_int_equal(ui.chosen, 1);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first, 1);
    (void)gp_ui_key(&ui, GP_KEY_PAGE_UP); /* more than there are */
    assert_int_equal(ui.chosen, 0);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first, 0);
    (void)gp_ui_key(&ui, GP_KEY_END);
    assert_int_equal(ui.chosen, 15);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first, 16 - page);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    assert_int_equal(ui.chosen, 15);
    (void)gp_ui_key(&ui, GP_KEY_HOME);
    assert_int_equal(ui.chosen, 0);
    (void)gp_ui_key(&ui, GP_KEY_END);
    (void)picture(&ui, 80, 60); /* all have room: none is left above */
    assert_int_equal(ui.first, 0);
    (void)picture(&ui, 80, 2); /* no room at all */
    assert_int_equal(ui.page, 1);
    assert_true(gp_ui_fini(&ui));
}

static void commands_are_scrolled(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    check_has(&ui, "vllm serve Qwen");
    (void)gp_ui_key(&ui, GP_KEY_RIGHT);
    assert_int_equal(ui.scroll, 8);
    check_has(&ui, "ve Qwen");
    check_has(&ui, "rain.py --config");
    (void)gp_ui_key(&ui, GP_KEY_RIGHT);
    assert_int_equal(ui.scroll, 16);
    (void)gp_ui_key(&ui, GP_KEY_LEFT);
    assert_int_equal(ui.scroll, 0);
    assert_true(gp_ui_fini(&ui));
}

static void wide_commands_are_scrolled_by_character(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    struct gp_snapshot *s = machine(1, 0);
    gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_COMMAND), "日本語日本語日本xyz",
                      1);
    gp_ui_take(&ui, s, 1);
    (void)gp_ui_key(&ui, GP_KEY_RIGHT);
    check_has(&ui, " xyz");
    (void)gp_ui_key(&ui, GP_KEY_RIGHT); /* past its end */
    (void)picture(&ui, 80, 24);
    assert_true(gp_ui_fini(&ui));
}

/* GPU 1 has two instances, which are stops too. */
static void gpus_are_moved_over(void **state)
{
    (void)state;
    static const struct {
        int key, gpu, mig;
    } steps[] = {
        {GP_KEY_END, 2, -1},
        {GP_KEY_UP, 1, 1},
        {GP_KEY_UP, 1, 0},
        {GP_KEY_UP, 1, -1},
        {GP_KEY_PAGE_UP, 0, -1},
        {GP_KEY_UP, 0, -1},
        {GP_KEY_PAGE_DOWN, 2, -1},
        {GP_KEY_HOME, 0, -1},
        {GP_KEY_DOWN, 1, -1},
        {GP_KEY_DOWN, 1, 0},
        {GP_KEY_DOWN, 1, 1},
        {'1', -1, -1}, /* again the same GPU: all of them */
        {'1', 1, -1},
        {GP_KEY_DOWN, 1, 0},
        {GP_KEY_END, 2, -1},
        {GP_KEY_DOWN, 2, -1},
        {GP_KEY_HOME, 0, -1},
        {'0', -1, -1},
        {GP_KEY_DOWN, 0, -1}, /* none is chosen: the first */
    };
    struct gp_ui ui;
    struct gp_snapshot *s = machine(5, 0);
    gp_ui_init(&ui);
    for (unsigned i = 2; i < 4; i++) {
        s->devices[i].is_mig = true;
        s->devices[i].index = 1;
        s->devices[i].mig_index = i - 2;
    }
    s->devices[4].index = 2;
    gp_ui_take(&ui, s, 1);
    press(&ui, "\t");
    assert_true(ui.gpus_have_focus);
    (void)line_with(&ui, 80, 24, "▸0 H100"); /* it shows where the keys go */
    assert_null(strstr(picture(&ui, 80, 24), "▸ processes"));
    ui.prefs.view = GP_DENSITY_LINE;
    (void)line_with(&ui, 80, 24, "▸  0 H100");
    (void)line_with(&ui, 140, 24, "┌─ ▸ GPUs 5 ─");
    ui.prefs.view = GP_DENSITY_AUTO;
    for (size_t i = 0; i < GP_ARRAY_LEN(steps); i++) {
        (void)gp_ui_key(&ui, steps[i].key);
        assert_int_equal(ui.gpu, steps[i].gpu);
        assert_int_equal(ui.mig, steps[i].mig);
    }
    press(&ui, "\t");
    assert_false(ui.gpus_have_focus);
    assert_true(gp_ui_fini(&ui));
}

static void letters_of_the_selected_gpu(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    const char *seen = picture(&ui, 120, 24);
    assert_null(strstr(seen, "limits the clocks"));
    press(&ui, "3");
    seen = picture(&ui, 120, 24);
    assert_non_null(strstr(seen, "GPU 3 P: power limits the clocks"));
    assert_non_null(strstr(seen, "?:help"));
    press(&ui, "3");
    assert_true(gp_ui_fini(&ui));
}

static void gpus_are_scrolled(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 72);
    press(&ui, "ggg[");
    assert_int_equal(ui.first_gpu, 0);
    press(&ui, "\t");
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first_gpu, 0);
    press(&ui, "\t");
    press(&ui, "]]");
    assert_int_equal(ui.first_gpu, 2);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first_gpu, 2);
    press(&ui, "[");
    assert_int_equal(ui.first_gpu, 1);
    for (int i = 0; i < 100; i++)
        press(&ui, "]");
    (void)picture(&ui, 80, 24); /* no further than the last */
    assert_true(ui.first_gpu > 50 && ui.first_gpu < 72);
    size_t most = ui.first_gpu;
    press(&ui, "\t");
    (void)gp_ui_key(&ui, GP_KEY_END);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first_gpu, most);
    key_times(&ui, GP_KEY_UP, (int)(72 - most) - 1);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first_gpu, most); /* the cursor is on the first that is shown */
    (void)gp_ui_key(&ui, GP_KEY_UP);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.first_gpu, most - 1);
    assert_true(gp_ui_fini(&ui));
}

static void digits_make_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        int gpu;
    } cases[] = {{"1", 1},
                 {"12", 12},
                 {"11", 11},
                 {"1 1", -1},
                 {"7", 7},
                 {"72", 2},
                 {"71", 71},
                 {"0", 0},
                 {"01", 1},
                 {"00", -1},
                 {"123", 3},
                 {"99", -1},
                 {"1\t2", 2},
                 {"12z2", 2},
                 {"55", 55},
                 {"8", 8},
                 {"5\x1b"
                  "5",
                  5}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ui ui;
        gp_ui_init(&ui);
        gp_ui_take(&ui, machine(72, 0), 1);
        press(&ui, cases[i].keys);
        if (ui.gpu != cases[i].gpu)
            fail_msg("'%s' chooses %d", cases[i].keys, ui.gpu);
        assert_true(gp_ui_fini(&ui));
    }
}

/* ---- what is shown ---- */

static void areas_come_and_go(void **state)
{
    (void)state;
    static const bool shown[][2] = {{true, false}, {false, true}, {true, true}, {true, false}};
    struct gp_ui ui;
    watch(&ui, 2);
    for (size_t i = 0; i < GP_ARRAY_LEN(shown); i++) {
        press(&ui, "x");
        assert_int_equal(ui.prefs.gpus, shown[i][0]);
        assert_int_equal(ui.prefs.processes, shown[i][1]);
    }
    press(&ui, "H");
    assert_int_equal(ui.prefs.host, GP_HOST_YES);
    press(&ui, "H");
    assert_int_equal(ui.prefs.host, GP_HOST_NO);
    assert_true(gp_ui_fini(&ui));
}

/* Rates are read while they are on the screen. */
static void rates_are_shown_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        enum gp_series series;
        bool shows;
    } cases[] = {{"", GP_SERIES_GPU, true},           {"g", GP_SERIES_GPU, true},
                 {"gg", GP_SERIES_GPU, true},         {"ggg", GP_SERIES_GPU, false},
                 {"ggg", GP_SERIES_MEMORY, false},    {"ggg", GP_SERIES_SM, true},
                 {"ggg", GP_SERIES_BANDWIDTH, false}, {"ggg", GP_SERIES_PCIE, true},
                 {"ggg", GP_SERIES_NVLINK, true},     {"gggg", GP_SERIES_PCIE, false},
                 {"xx", GP_SERIES_GPU, false},        {"xx0\n", GP_SERIES_GPU, true}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ui ui;
        watch(&ui, 2);
        ui.prefs.series = (int)cases[i].series;
        press(&ui, cases[i].keys);
        (void)picture(&ui, 100, 40);
        if (ui.shows_rates != cases[i].shows)
            fail_msg("case %zu", i);
        assert_true(gp_ui_fini(&ui));
    }
}

static void columns_whose_numbers_all_need(void **state)
{
    (void)state;
    static const struct {
        const char *sort, *filter, *search;
        bool matter;
    } cases[] = {{"memory", "", "", false},     {"cpu", "", "", true},
                 {"rss", "", "", true},         {"memory,cpu", "", "", true},
                 {"container", "", "", true},   {"container_name", "", "", true},
                 {"origin", "", "", true},      {"sm,user,time", "", "", false},
                 {"state", "", "", false},      {"memory", "container:x", "", true},
                 {"memory", "job:1", "", true}, {"memory", "user:x", "", false},
                 {"memory", "", "job:1", true}, {"time", "", "container:y", true},
                 {"command", "", "", false},    {"ns_pid", "", "", false}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ui ui;
        watch(&ui, 1);
        (void)snprintf(ui.prefs.sort, sizeof(ui.prefs.sort), "%s", cases[i].sort);
        (void)snprintf(ui.prefs.filter, sizeof(ui.prefs.filter), "%s", cases[i].filter);
        (void)snprintf(ui.search, sizeof(ui.search), "%s", cases[i].search);
        gp_ui_apply(&ui);
        if (gp_ui_others_matter(&ui) != cases[i].matter)
            fail_msg("case %zu", i);
        assert_true(gp_ui_fini(&ui));
    }
}

static void processes_on_the_screen_are_watched(void **state)
{
    (void)state;
    struct gp_ui ui;
    uint32_t pids[32];
    watch(&ui, 8);
    (void)snprintf(ui.prefs.sort, sizeof(ui.prefs.sort), "-pid");
    gp_ui_apply(&ui);
    (void)picture(&ui, 80, 24);
    size_t count = gp_ui_watched(&ui, pids, 32);
    assert_int_equal(count, ui.page);
    for (size_t i = 0; i < count; i++) /* sorted, whatever the rows are */
        assert_int_equal(pids[i], 1015 - ui.page + 1 + i);
    assert_int_equal(gp_ui_watched(&ui, pids, 2), 2);
    assert_int_equal(pids[0], 1014);
    (void)gp_ui_key(&ui, GP_KEY_END);
    (void)picture(&ui, 80, 24);
    assert_int_equal(gp_ui_watched(&ui, pids, 32), ui.page);
    assert_int_equal(pids[0], 1000);
    assert_true(gp_ui_fini(&ui));
}

static void graphs_go_back_and_out(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    for (int i = 0; i < 10; i++)
        press(&ui, "}");
    assert_int_equal(ui.zoom, 6);
    press(&ui, "{");
    assert_int_equal(ui.zoom, 5);
    press(&ui, "(((");
    assert_int_equal(ui.earlier, 96);
    press(&ui, "))))");
    assert_int_equal(ui.earlier, 0);
    press(&ui, "m");
    assert_string_equal(ui.message, "graphs: memory");
    assert_true(gp_ui_fini(&ui));
}

/* In the bottom line, in the heading, in the line of the machine: from a height on. */
static void lines_that_need_a_height(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    assert_null(strstr(picture(&ui, 100, 29), "load 3.2"));
    assert_non_null(strstr(picture(&ui, 100, 30), "load 3.2"));
    assert_null(strstr(picture(&ui, 80, 7), "q:quit"));
    assert_non_null(strstr(picture(&ui, 80, 8), "q:quit"));
    assert_null(strstr(picture(&ui, 80, 1), "node1"));
    assert_non_null(strstr(picture(&ui, 80, 2), "node1"));
    assert_true(gp_ui_fini(&ui));
}

static void alerts_are_counted(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_snapshot *s = machine(2, 0);
    gp_value_set_int(device_value(&s->devices[0], GP_PCIE_WIDTH), 8, 1);
    gp_ui_init(&ui);
    gp_ui_take(&ui, s, 1);
    check_has(&ui, " ! GPU 0 narrow PCIe (8 of 16 lanes) · reseat it ");
    assert_null(strstr(picture(&ui, 100, 30), "(+"));
    gp_value_set_int(device_value(&s->devices[1], GP_PCIE_WIDTH), 4, 1);
    check_has(&ui, " ! GPU 0 narrow PCIe · GPU 1 narrow PCIe · reseat it ");
    ui.prefs.alerts = false;
    assert_null(strstr(picture(&ui, 100, 30), " ! GPU"));
    assert_true(gp_ui_fini(&ui));
}

static void the_dearest_sample_is_remembered(void **state)
{
    (void)state;
    struct gp_ui ui;
    static const uint64_t ms[] = {3, 8, 5};
    gp_ui_init(&ui);
    for (unsigned i = 0; i < 3; i++)
        gp_ui_take(&ui, machine(1, i), ms[i] * GP_NS_PER_MS);
    assert_int_equal(ui.cost.ticks, 3);
    assert_int_equal(ui.cost.ticks_ns, 16 * GP_NS_PER_MS);
    assert_int_equal(ui.cost.ticks_max_ns, 8 * GP_NS_PER_MS);
    press(&ui, "i");
    check_has(&ui, "5.33 ms on average, 8.00 ms at most, 3 taken");
    check_has(&ui, "0 drawn"); /* when it was opened */
    assert_true(gp_ui_fini(&ui));
}

/* The cursor on the last row, which is the one that goes. */
static void the_cursor_stays_on_the_list(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    (void)snprintf(ui.prefs.sort, sizeof(ui.prefs.sort), "pid");
    gp_ui_apply(&ui);
    (void)gp_ui_key(&ui, GP_KEY_END);
    assert_int_equal(ui.chosen, 3);
    struct gp_snapshot *s = machine(2, 50);
    s->process_count = 4; /* without 1003 */
    gp_ui_take(&ui, s, 1);
    assert_int_equal(ui.chosen, 2);
    assert_true(gp_ui_fini(&ui));
}

/* ---- sorting, searching ---- */

static void the_column_beside(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, ">");
    assert_string_equal(ui.prefs.sort, "enc");
    press(&ui, "<<");
    assert_string_equal(ui.prefs.sort, "bandwidth");
    (void)snprintf(ui.prefs.sort, sizeof(ui.prefs.sort), "command");
    gp_ui_apply(&ui);
    press(&ui, ">"); /* round */
    assert_string_equal(ui.prefs.sort, "pid");
    press(&ui, "<");
    assert_string_equal(ui.prefs.sort, "command");
    (void)snprintf(ui.prefs.sort, sizeof(ui.prefs.sort), "state"); /* which is not shown */
    gp_ui_apply(&ui);
    press(&ui, ">");
    assert_string_equal(ui.prefs.sort, "pid");
    press(&ui, "<");
    assert_string_equal(ui.prefs.sort, "command");
    press(&ui, "T");
    assert_string_equal(ui.prefs.sort, "time,command");
    press(&ui, "MP");
    assert_string_equal(ui.prefs.sort, "sm,memory,time,command");
    press(&ui, "I");
    assert_string_equal(ui.prefs.sort, "-sm,memory,time,command");
    press(&ui, "I");
    assert_string_equal(ui.prefs.sort, "sm,memory,time,command");
    assert_true(gp_ui_fini(&ui));
}

static void what_is_searched_is_found_both_ways(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4); /* pids 1000 to 1007, every fourth runs vllm */
    (void)snprintf(ui.prefs.sort, sizeof(ui.prefs.sort), "pid");
    gp_ui_apply(&ui);
    press(&ui, "/vllm");
    assert_int_equal(ui.chosen, 1);
    press(&ui, "\n");
    assert_int_equal(ui.chosen, 1);
    press(&ui, "n");
    assert_int_equal(ui.chosen, 5);
    press(&ui, "n"); /* from the beginning */
    assert_int_equal(ui.chosen, 1);
    press(&ui, "N");
    assert_int_equal(ui.chosen, 5);
    press(&ui, "N");
    assert_int_equal(ui.chosen, 1);
    press(&ui, "/xorg");
    assert_int_equal(ui.chosen, 2);
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE); /* the word before comes back: none */
    assert_string_equal(ui.search, "");
    press(&ui, "n");
    assert_int_equal(ui.chosen, 2);
    assert_string_equal(ui.message, "");
    press(&ui, "/@\n");
    assert_string_equal(ui.message, "'@' not found");
    assert_int_equal(ui.chosen, 2);
    assert_true(gp_ui_fini(&ui));
}

static void a_process_is_followed(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    int64_t pid = ui.procs.rows[0].pid;
    press(&ui, "F");
    assert_int_equal(ui.followed, pid);
    check_has(&ui, "following 100");
    press(&ui, "F");
    assert_int_equal(ui.followed, 0);
    assert_string_equal(ui.message, "");
    press(&ui, "F");
    struct gp_snapshot *s = machine(2, 99);
    for (size_t i = 0; i < s->process_count; i++)
        if (process_value(&s->processes[i], GP_PID)->i == pid)
            gp_value_set_int(process_value(&s->processes[i], GP_PID), 77, 1);
    gp_ui_take(&ui, s, 1);
    check_has(&ui, "is no longer shown");
    assert_int_equal(ui.followed, 0);
    assert_true(gp_ui_fini(&ui));
}

/* ---- tags ---- */

static void the_children_are_tagged_too(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_snapshot *s = machine(2, 0); /* 1000, 1001, 1000, 1002, 1003 */
    gp_ui_init(&ui);
    gp_value_set_int(process_value(&s->processes[0], GP_PROCESS_PPID), 1003, 1);
    gp_value_set_int(process_value(&s->processes[2], GP_PROCESS_PPID), 1003, 1);
    gp_value_set_int(process_value(&s->processes[3], GP_PROCESS_PPID), 1000, 1);
    gp_value_set_int(process_value(&s->processes[1], GP_PROCESS_PPID), 7, 1);
    gp_ui_take(&ui, s, 1);
    (void)snprintf(ui.prefs.sort, sizeof(ui.prefs.sort), "pid");
    gp_ui_apply(&ui);
    (void)gp_ui_key(&ui, GP_KEY_END);
    press(&ui, "c");
    assert_int_equal(ui.tag_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(ui.tags[i] != 1001);
    press(&ui, "c"); /* no one twice */
    assert_int_equal(ui.tag_count, 3);
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_int_equal(ui.tag_count, 0);
    assert_true(gp_ui_fini(&ui));
}

/* The pid of one that is gone may come to mean another process. */
static void tags_go_with_their_processes(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "    ");
    assert_int_equal(ui.tag_count, 4);
    struct gp_snapshot *s = machine(2, 50);
    s->process_count = 2; /* 1000, 1001 */
    struct gp_process *ancestor = gp_arena_alloc(&s->arena, 1, sizeof(*ancestor));
    ancestor->cells = gp_arena_alloc(&s->arena, GP_PROCESS__COUNT, sizeof(struct gp_value));
    gp_value_set_int(process_value(ancestor, GP_PID), 1003, 1);
    s->ancestors = ancestor;
    s->ancestor_count = 1;
    gp_ui_take(&ui, s, 1);
    assert_int_equal(ui.tag_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(ui.tags[i] != 1002);
    assert_true(gp_ui_fini(&ui));
}

/* ---- a text that is typed ---- */

static void texts_are_typed_and_taken_back(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *text;
    } cases[] = {
        {"abc", "abc"},        {"abc\x7f", "ab"}, {"a\x7f\x7f", ""}, {"ab cd\x17", "ab "},
        {"ab cd \x17", "ab "}, {"ab\x17", ""},    {"\x17", ""},      {"ab cd\x15x", "x"},
        {"a~", "a~"},          {"a\x01", "a"}, /* no character */
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ui ui;
        watch(&ui, 1);
        press(&ui, "f");
        press(&ui, cases[i].keys);
        if (strcmp(ui.prefs.filter, cases[i].text) != 0)
            fail_msg("case %zu gives '%s'", i, ui.prefs.filter);
        assert_true(gp_ui_fini(&ui));
    }
    struct gp_ui ui;
    watch(&ui, 1);
    (void)snprintf(ui.prefs.filter, sizeof(ui.prefs.filter), "xé");
    press(&ui, "f\x7f");
    assert_string_equal(ui.prefs.filter, "x");
    key_times(&ui, 'y', 2 * GP_PREF_TEXT_SIZE); /* no longer than there is room */
    assert_int_equal(strlen(ui.prefs.filter), GP_PREF_TEXT_SIZE - 1);
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_string_equal(ui.prefs.filter, "xé");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_true(gp_ui_fini(&ui));
}

/* ---- lists, set-up, pages ---- */

static void pictures_of_the_screens(void **state)
{
    (void)state;
    static const char *const keys[] = {"s", "u", "C", "!", "?", "e", "f", "fuser", "1\t\n", "  k"};
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 20);
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++) {
        struct gp_ui ui;
        watch(&ui, 2);
        if (strchr(keys[i], 'e') == keys[i] || strchr(keys[i], 'k'))
            ui.outside.root = "/nonexistent"; /* nobody's processes */
        press(&ui, keys[i]);
        settle(&ui);
        add_scene(&all, &ui, 100, 45, keys[i]);
        add_scene(&all, &ui, 50, 10, "small");
        key_times(&ui, GP_KEY_DOWN, 3);
        add_scene(&all, &ui, 50, 10, "further down");
        assert_true(gp_ui_fini(&ui));
    }
    golden_check("top-screens.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
}

static void setup_steps_both_ways(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    press(&ui, "C");
    key_times(&ui, GP_KEY_DOWN, GP_PREF_THEME);
    (void)gp_ui_key(&ui, GP_KEY_LEFT);
    assert_string_equal(ui.prefs.theme, "mono");
    (void)gp_ui_key(&ui, GP_KEY_RIGHT);
    assert_string_equal(ui.prefs.theme, "default");
    press(&ui, "\n ");
    assert_string_equal(ui.prefs.theme, "light");
    assert_int_equal(ui.theme.colors.theme, GP_THEME_LIGHT);
    key_times(&ui, GP_KEY_DOWN, GP_PREF_READ_ONLY - GP_PREF_THEME);
    (void)gp_ui_key(&ui, GP_KEY_RIGHT);
    assert_true(ui.prefs.read_only);
    (void)gp_ui_key(&ui, GP_KEY_RIGHT);
    assert_true(ui.prefs.read_only);
    assert_string_equal(ui.message, "read-only stays on until the program exits");
    press(&ui, "C");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_int_equal(ui.menu.count, 0);
    assert_true(gp_ui_fini(&ui));
}

static void letters_in_a_list_stay_there(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "s");
    assert_int_equal(ui.menu.chosen, GP_PROC_MEMORY_COLUMN);
    press(&ui, "c"); /* the next line that begins with it, whatever key it is elsewhere */
    assert_int_equal(ui.menu.chosen, GP_PROC_CPU_COLUMN);
    press(&ui, "c");
    assert_int_equal(ui.menu.chosen, GP_PROC_CONTAINER_COLUMN);
    press(&ui, "k"); /* none begins with it */
    assert_int_equal(ui.menu.chosen, GP_PROC_CONTAINER_COLUMN);
    assert_int_equal(ui.mode, GP_UI_SORT);
    press(&ui, "q");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_string_equal(ui.prefs.sort, "memory");
    press(&ui, "s");
    (void)gp_ui_key(&ui, GP_KEY_END);
    assert_int_equal(ui.menu.chosen, GP_PROC_COLUMN__COUNT - 1);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    assert_int_equal(ui.menu.chosen, GP_PROC_COLUMN__COUNT - 1);
    (void)picture(&ui, 80, 12);
    assert_int_equal(ui.menu.height, 10);
    (void)gp_ui_key(&ui, GP_KEY_PAGE_UP);
    assert_int_equal(ui.menu.chosen, GP_PROC_COLUMN__COUNT - 10);
    (void)gp_ui_key(&ui, GP_KEY_HOME);
    (void)gp_ui_key(&ui, GP_KEY_UP);
    assert_int_equal(ui.menu.chosen, 0);
    (void)gp_ui_key(&ui, GP_KEY_PAGE_DOWN);
    assert_int_equal(ui.menu.chosen, 9);
    (void)gp_ui_key(&ui, GP_KEY_PAGE_UP);
    assert_int_equal(ui.menu.chosen, 0);
    press(&ui, "\n");
    assert_string_equal(ui.prefs.sort, "pid,memory");
    assert_true(gp_ui_fini(&ui));
}

static void details_of_nothing(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 0);
    press(&ui, "\n");
    assert_string_equal(ui.message, "no GPU here");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    press(&ui, "e");
    assert_string_equal(ui.message, "no process here");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    press(&ui, "!");
    assert_int_equal(ui.mode, GP_UI_ALERTS);
    check_has(&ui, "nothing needs attention");
    assert_true(gp_ui_fini(&ui));
}

/* ---- the mouse ---- */

static void clicks_on_what_stands_behind(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    press(&ui, "C");
    (void)picture(&ui, 100, 40);
    (void)gp_ui_click(&ui, 3, 3, false); /* a GPU, which is behind the screen in front */
    assert_int_equal(ui.gpu, -1);
    press(&ui, "q5");
    assert_true(ui.digit_typed);
    (void)picture(&ui, 100, 40);
    (void)gp_ui_click(&ui, 0, 0, false); /* nothing is there, but the number is over */
    assert_false(ui.digit_typed);
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_moved_over),
        cmocka_unit_test(commands_are_scrolled),
        cmocka_unit_test(wide_commands_are_scrolled_by_character),
        cmocka_unit_test(gpus_are_moved_over),
        cmocka_unit_test(letters_of_the_selected_gpu),
        cmocka_unit_test(gpus_are_scrolled),
        cmocka_unit_test(digits_make_a_number),
        cmocka_unit_test(areas_come_and_go),
        cmocka_unit_test(rates_are_shown_or_not),
        cmocka_unit_test(columns_whose_numbers_all_need),
        cmocka_unit_test(processes_on_the_screen_are_watched),
        cmocka_unit_test(graphs_go_back_and_out),
        cmocka_unit_test(lines_that_need_a_height),
        cmocka_unit_test(alerts_are_counted),
        cmocka_unit_test(the_dearest_sample_is_remembered),
        cmocka_unit_test(the_cursor_stays_on_the_list),
        cmocka_unit_test(the_column_beside),
        cmocka_unit_test(what_is_searched_is_found_both_ways),
        cmocka_unit_test(a_process_is_followed),
        cmocka_unit_test(the_children_are_tagged_too),
        cmocka_unit_test(tags_go_with_their_processes),
        cmocka_unit_test(texts_are_typed_and_taken_back),
        cmocka_unit_test(pictures_of_the_screens),
        cmocka_unit_test(setup_steps_both_ways),
        cmocka_unit_test(letters_in_a_list_stay_there),
        cmocka_unit_test(details_of_nothing),
        cmocka_unit_test(clicks_on_what_stands_behind),
    };
    return cmocka_run_group_tests_name("tui_screens", tests, NULL, NULL);
}
