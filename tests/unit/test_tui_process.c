/* The page about a process, with a /proc of the test's, and how pages are moved. */
#include "tui_scene.h"

#include "proc_tree.h"

#include <poll.h>
#include <unistd.h>

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

#define BYTES(text) text, sizeof(text) - 1

static void write_link(const char *name, const char *target)
{
    char path[512];
    write_text(name, ""); /* makes the folders */
    (void)snprintf(path, sizeof(path), "%s%s", tree_root, name);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(target, path), 0);
}

static void write_process(void)
{
    write_text("/proc/1001/stat",
               "1001 (python) S 40 1001 1001 0 -1 4194560 1 2 3 4 250 50 5 6 20 -5 33 0 1000 "
               "99 3 18446744073709551615 1 1 0 0\n");
    write_text("/proc/1001/status",
               "Name:\tpython\nState:\tS (sleeping)\nNSpid:\t1001\t17\t5\nVmSize:\t 4096 kB\n"
               "VmLck:\t  64 kB\nVmRSS:\t 2048 kB\nRssShmem:\t 512 kB\nVmSwap:\t 128 kB\n"
               "Cpus_allowed:\tf0,00000003\nvoluntary_ctxt_switches:\t150\n"
               "nonvoluntary_ctxt_switches:\t7\n");
    write_text("/proc/1001/io", "syscw: 4\nread_bytes: 8192000\nwrite_bytes: 4096000\n");
    write_text("/proc/1001/oom_score", "667\n");
    write_text("/proc/1001/comm", "pt_main_thread\n");
    write_text("/proc/1001/cgroup", "0::/system.slice/slurmstepd.scope/job_4/step_0\n");
    write_pid(1001, "cmdline", BYTES("vllm\0serve\0Qwen\0"));
    write_pid(1001, "environ", BYTES("PATH=/bin\0CUDA_VISIBLE_DEVICES=0,1\0"));
    write_link("/proc/1001/exe", "/usr/bin/python3.11");
    write_link("/proc/1001/cwd", "/home/alice");
    write_link("/proc/1001/fd/0", "/dev/null");
    write_link("/proc/1001/fd/7", "/dev/nvidia0");
    write_link("/proc/1001/fd/9", "/dev/nvidia0");
    write_link("/proc/1001/fd/8", "/dev/nvidia-uvm");
    write_child(40, 30, 900, "bash");
    write_child(30, 1, 800, "slurmstepd: [4.0]");
    write_child(1, 0, 1, "/sbin/init");
}

static void all_of_a_process(void **state)
{
    (void)state;
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 20);
    struct gp_ui ui;
    write_process();
    watch(&ui, 1); /* 1000, 1001 */
    ui.outside.root = tree_root;
    (void)snprintf(ui.prefs.filter, sizeof(ui.prefs.filter), "pid=1001");
    gp_ui_apply(&ui);
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_PROCESS);
    check_has(&ui, "process 1001 · carol · ");

    settle(&ui);
    for (unsigned tick = 40; tick < 60; tick++)
        gp_ui_take(&ui, machine(1, tick), 1);
    settle(&ui);
    add_scene(&all, &ui, 100, 100, "all of it");
    (void)line_with(&ui, 100, 100, " TYPE                         C, compute");
    assert_null(strstr(picture(&ui, 100, 100), "STARTED")); /* "started", below */
    add_scene(&all, &ui, 100, 23, "with graphs");
    add_scene(&all, &ui, 100, 22, "without");
    struct gp_snapshot *s = machine(1, 61);
    s->process_count = 1; /* without it */
    gp_ui_take(&ui, s, 1);
    settle(&ui);
    add_scene(&all, &ui, 80, 40, "no longer on a GPU");
    press(&ui, "q");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_null(ui.details.job);
    golden_check("top-process.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
    assert_true(gp_ui_fini(&ui));
}

static void one_that_has_ended(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    ui.outside.root = tree_root;
    press(&ui, "\n");
    settle(&ui);
    assert_non_null(strstr(picture(&ui, 100, 40), "exited, or not visible from here"));
    assert_true(gp_ui_fini(&ui));
}

/* Its environment is what the page begins with, and only when it is opened. */
static void its_environment(void **state)
{
    (void)state;
    struct gp_ui ui;
    write_process();
    watch(&ui, 1);
    ui.outside.root = tree_root;
    (void)snprintf(ui.prefs.filter, sizeof(ui.prefs.filter), "pid=1001");
    gp_ui_apply(&ui);
    press(&ui, "e");
    settle(&ui);
    const char *text = picture(&ui, 80, 5);
    assert_string_equal(gp_page_value(&ui.text, ui.text.first), "environment");
    assert_non_null(strstr(text, "PATH=/bin"));
    (void)gp_ui_key(&ui, GP_KEY_HOME);
    gp_ui_take(&ui, machine(1, 60), 1);
    settle(&ui);
    assert_int_equal(ui.text.first, 0);
    assert_true(gp_ui_fini(&ui));
}

/* Point i of a graph. */
static double point(const struct gp_track *track, size_t channel, size_t i)
{
    return (double)track->values[channel * track->room + i];
}

/* An old number is no point of a graph, and a snapshot is one point, however often it is shown. */
static void its_graphs_have_what_is_new(void **state)
{
    (void)state;
    struct gp_ui ui;
    write_process();
    watch(&ui, 1);
    ui.outside.root = tree_root;
    (void)snprintf(ui.prefs.filter, sizeof(ui.prefs.filter), "pid=1001");
    gp_ui_apply(&ui);
    press(&ui, "\n");
    assert_int_equal(ui.details.track.count, 1);
    const struct gp_track *track = &ui.details.track;
    assert_float_equal(point(track, 0, 0), 2, 0.001);
    assert_true(point(track, 1, 0) >= 0 && point(track, 3, 0) >= 0);
    assert_float_equal(point(track, 2, 0), 201, 0.001);
    for (size_t c = 4; c < GP_TRACK_CHANNELS; c++)
        assert_true(point(track, c, 0) < 0);
    struct gp_snapshot *s = machine(1, 70);
    process_value(&s->processes[1], GP_PROCESS_MEMORY)->status = GP_STATUS_STALE;
    gp_value_set_absent(process_value(&s->processes[1], GP_PROCESS_SM), GP_STATUS_UNSUPPORTED, NULL,
                        1);
    gp_ui_take(&ui, s, 1);
    assert_int_equal(ui.details.track.count, 2);
    assert_true(point(track, 0, 1) < 0 && point(track, 1, 1) < 0);
    assert_true(point(track, 2, 1) >= 0 && point(track, 3, 1) >= 0);
    gp_ui_take(&ui, machine(1, 70), 1); /* of the same moment */
    assert_int_equal(ui.details.track.count, 2);
    settle(&ui);
    assert_true(gp_ui_fini(&ui));
}

static void pages_are_moved_by_lines_and_pages(void **state)
{
    (void)state;
    struct gp_page page;
    struct gp_cells cells = {0, 0, NULL};
    gp_page_init(&page);
    for (int i = 0; i < 40; i++)
        gp_page_addf(&page, GP_INK_PLAIN, "", "line %d, which has a second half", i);
    assert_int_equal(gp_cells_resize(&cells, 30, 11), 0);
    struct gp_box box = {&cells, 0, 0, 30, 11};
    gp_page_draw(&page, &box);
    static const struct {
        int key;
        size_t first;
    } moves[] = {{GP_KEY_UP, 0},         {GP_KEY_DOWN, 1},     {GP_KEY_PAGE_DOWN, 10},
                 {GP_KEY_UP, 9},         {GP_KEY_PAGE_UP, 0},  {GP_KEY_DOWN, 1},
                 {GP_KEY_PAGE_UP, 0},    {GP_KEY_END, 30},     {GP_KEY_DOWN, 30},
                 {GP_KEY_PAGE_DOWN, 30}, {GP_KEY_PAGE_UP, 21}, {GP_KEY_HOME, 0}};
    for (size_t i = 0; i < GP_ARRAY_LEN(moves); i++) {
        assert_true(gp_page_key(&page, moves[i].key, false));
        if (page.first != moves[i].first)
            fail_msg("move %zu leads to %zu", i, page.first);
    }
    assert_true(gp_page_key(&page, GP_KEY_RIGHT, false));
    assert_int_equal(page.scroll, 8);
    assert_true(gp_page_key(&page, GP_KEY_LEFT, false));
    assert_int_equal(page.scroll, 0);
    assert_true(gp_page_key(&page, '/', false));
    for (int i = 0; i < 500; i++)
        assert_true(gp_page_key(&page, 'z', false));
    assert_int_equal(strlen(page.word), sizeof(page.word) - 1);
    assert_true(page.is_missing);
    for (int i = 0; i < 600; i++)
        assert_true(gp_page_key(&page, GP_KEY_BACKSPACE, false));
    assert_string_equal(page.word, "");
    assert_false(page.is_missing);
    assert_true(page.is_typing);
    assert_true(gp_page_key(&page, GP_KEY_ENTER, false));
    assert_false(page.is_typing);
    static const int leave[] = {'q', GP_KEY_ESCAPE, GP_KEY_ENTER, '?'};
    for (size_t i = 0; i < GP_ARRAY_LEN(leave); i++)
        assert_false(gp_page_key(&page, leave[i], false));
    assert_true(gp_page_key(&page, 'x', false));
    gp_page_fini(&page);
    gp_cells_fini(&cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_of_a_process),
        TEST(one_that_has_ended),
        TEST(its_environment),
        TEST(its_graphs_have_what_is_new),
        cmocka_unit_test(pages_are_moved_by_lines_and_pages),
    };
    (void)setenv("TZ", "UTC", 1); /* a time of start is told as it is here */
    return cmocka_run_group_tests_name("tui_process", tests, NULL, NULL);
}
