/* Ending processes, and other signals. */
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

/* What a shell starts in the background, or nohup starts, inherits ignored signals. */
static pid_t start_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGHUP, SIG_DFL);
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGQUIT, SIG_DFL);
        for (;;)
            (void)pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void end_child(pid_t pid, int expected)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), expected);
}

/* Both processes of a GPU are children of ours. */
static void show_children(struct gp_ui *ui, const pid_t pids[2])
{
    struct gp_snapshot *s = machine(1, 0);
    gp_ui_init(ui);
    s->wall_ns = gp_clock_wall_ns();
    for (int i = 0; i < 2; i++)
        gp_value_set_int(process_value(&s->processes[i], GP_PID), pids[i], 1);
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_USED), 3 * (int64_t)GIB, 1);
    gp_ui_take(ui, s, GP_NS_PER_MS);
}

static void take_without_processes(struct gp_ui *ui)
{
    struct gp_snapshot *s = machine(1, 1);
    s->process_count = 0;
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_USED), 0, 1);
    gp_ui_take(ui, s, GP_NS_PER_MS);
}

static void all_tagged_ones_get_the_signal(void **state)
{
    (void)state;
    struct gp_ui ui;
    char words[64];
    pid_t pids[2] = {start_child(), start_child()};
    show_children(&ui, pids);
    press(&ui, "  k");
    check_has(&ui, "─ end 2 processes ─");
    for (int i = 0; i < 2; i++) {
        (void)snprintf(words, sizeof(words), "%d %s", (int)pids[i], i == 0 ? "bob" : "carol");
        check_has(&ui, words);
    }
    press(&ui, "x"); /* nothing */
    assert_int_equal(ui.targets.sent_ns, 0);
    press(&ui, "\n");
    check_has(&ui, "sent TERM to 2 processes");
    assert_int_equal(ui.mode, GP_UI_SIGNAL);
    assert_int_equal(ui.tag_count, 0);
    end_child(pids[0], SIGTERM);
    end_child(pids[1], SIGTERM);
    take_without_processes(&ui);
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_int_equal(ui.targets.count, 0);
    check_has(&ui, "  2 processes ended, 3.0G free again");
    assert_true(gp_ui_fini(&ui));
}

/* What their children hold is not free. */
static void memory_that_others_hold_is_not_free(void **state)
{
    (void)state;
    struct gp_ui ui;
    pid_t pids[2] = {start_child(), start_child()};
    show_children(&ui, pids);
    struct gp_snapshot *after = machine(1, 1);
    int64_t used = device_value(&ui.snapshot->devices[0], GP_MEMORY_USED)->i;
    after->process_count = 0;
    gp_value_set_int(device_value(&after->devices[0], GP_MEMORY_USED), used - GIB, 1);
    press(&ui, "  k\n");
    end_child(pids[0], SIGTERM);
    end_child(pids[1], SIGTERM);
    gp_ui_take(&ui, after, GP_NS_PER_MS);
    check_has(&ui, "  2 processes ended, but 2.0G not free yet");
    assert_true(gp_ui_fini(&ui));
}

/* The window stays where it is, and as high, after the signal. */
static void a_group_gets_the_signal(void **state)
{
    (void)state;
    struct gp_ui ui;
    pid_t pids[2] = {start_child(), start_child()};
    show_children(&ui, pids);
    struct gp_snapshot *s = machine(1, 1);
    s->wall_ns = gp_clock_wall_ns();
    for (int i = 0; i < 2; i++) {
        gp_value_set_int(process_value(&s->processes[i], GP_PID), pids[i], 1);
        gp_value_set_text(process_value(&s->processes[i], GP_PROCESS_USER), "mia", 1);
    }
    gp_ui_take(&ui, s, 1);
    ui.prefs.tree = GP_TREE_USER;
    gp_ui_build_rows(&ui);
    gp_ui_choose(&ui, 0);
    press(&ui, "*k"); /* it is folded */
    assert_int_equal(ui.procs.closed, 2);
    check_has(&ui, "─ end 2 processes of mia ─");
    const char *before = picture(&ui, 80, 24);
    const long from = strstr(before, "┌─ end") - before, to = strstr(before, "└───") - before;
    press(&ui, "\n");
    const char *after = picture(&ui, 80, 24);
    assert_int_equal(strstr(after, "┌─ end") - after, from);
    assert_in_range(strstr(after, "└───") - after, to - 200, to + 200);
    end_child(pids[0], SIGTERM);
    end_child(pids[1], SIGTERM);
    assert_true(gp_ui_fini(&ui));
}

/* A process is ended alone; what comes from it is told. */
static void processes_below_are_told(void **state)
{
    (void)state;
    struct gp_ui ui;
    pid_t pids[2] = {start_child(), start_child()};
    show_children(&ui, pids);
    struct gp_snapshot *s = machine(1, 1);
    s->wall_ns = gp_clock_wall_ns();
    for (int i = 0; i < 2; i++)
        gp_value_set_int(process_value(&s->processes[i], GP_PID), pids[i], 1);
    gp_value_set_int(process_value(&s->processes[1], GP_PROCESS_PPID), pids[0], 1);
    gp_ui_take(&ui, s, 1);
    ui.prefs.tree = GP_TREE_YES;
    gp_ui_build_rows(&ui);
    gp_ui_choose(&ui, 0);
    press(&ui, "k");
    check_has(&ui, "1 process below it uses GPUs, too; Esc, c, k ends all");
    press(&ui, "q*k"); /* also if it is folded */
    assert_int_equal(ui.procs.closed, 1);
    check_has(&ui, "1 process below it uses GPUs, too; Esc, c, k ends all");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        end_child(pids[i], SIGKILL);
    }
    assert_true(gp_ui_fini(&ui));
}

static void one_of_two_has_ended_before(void **state)
{
    (void)state;
    struct gp_ui ui;
    pid_t pids[2] = {start_child(), start_child()};
    show_children(&ui, pids);
    press(&ui, "  k");
    assert_int_equal(kill(pids[0], SIGKILL), 0);
    end_child(pids[0], SIGKILL);
    press(&ui, "\n");
    assert_non_null(strstr(ui.message, "sent TERM to 1 of 2 processes: "));
    end_child(pids[1], SIGTERM);
    press(&ui, "\nk");
    assert_non_null(strstr(ui.message, "has exited"));
    assert_true(gp_ui_fini(&ui));
}

static void one_of_two_stays(void **state)
{
    (void)state;
    struct gp_ui ui;
    char words[64];
    pid_t pids[2] = {start_child(), start_child()};
    show_children(&ui, pids);
    assert_int_equal(kill(pids[1], SIGSTOP), 0); /* SIGTERM waits until it continues */
    assert_int_equal(waitpid(pids[1], NULL, WUNTRACED), pids[1]);
    press(&ui, "  k\n");
    end_child(pids[0], SIGTERM);
    gp_ui_collect(&ui);
    check_has(&ui, " s ago, 1 of 2 left");
    press(&ui, "K"); /* to that one alone */
    (void)snprintf(words, sizeof(words), "sent KILL to %d", (int)pids[1]);
    assert_string_equal(ui.message, words);
    end_child(pids[1], SIGKILL);
    take_without_processes(&ui);
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_true(gp_ui_fini(&ui));
}

static void one_that_has_ended_meanwhile(void **state)
{
    (void)state;
    struct gp_ui ui;
    char words[64];
    pid_t pids[2] = {start_child(), start_child()};
    show_children(&ui, pids);
    (void)gp_ui_key(&ui, ui.procs.rows[0].pid == pids[0] ? GP_KEY_HOME : GP_KEY_END);
    press(&ui, "k");
    assert_int_equal(kill(pids[0], SIGKILL), 0);
    end_child(pids[0], SIGKILL);
    press(&ui, "\n");
    (void)snprintf(words, sizeof(words), "TERM to %d: ", (int)pids[0]);
    assert_ptr_equal(strstr(ui.message, words), ui.message);
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_int_equal(kill(pids[1], SIGKILL), 0);
    end_child(pids[1], SIGKILL);
    assert_true(gp_ui_fini(&ui));
}

/* Each of them reaches its number. */
static void every_signal(void **state)
{
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT, SIGKILL, SIGHUP, SIGQUIT,
                                  0,       0,      SIGUSR1, SIGUSR2};
    static const bool waits[] = {true, true, true, false, true, false, false, false, false};
    static const char *const names[] = {"TERM", "INT",  "KILL", "HUP", "QUIT",
                                        "STOP", "CONT", "USR1", "USR2"};
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++) {
        struct gp_ui ui;
        pid_t pids[2] = {start_child(), start_child()};
        int status;
        char words[64];
        show_children(&ui, pids);
        press(&ui, "  k");
        key_times(&ui, GP_KEY_DOWN, (int)i);
        press(&ui, "\n");
        (void)snprintf(words, sizeof(words), "sent %s to 2 processes", names[i]);
        assert_string_equal(ui.message, words);
        assert_int_equal(ui.mode, waits[i] ? GP_UI_SIGNAL : GP_UI_WATCH);
        for (int j = 0; j < 2; j++) {
            if (strcmp(names[i], "STOP") == 0) {
                assert_int_equal(waitpid(pids[j], &status, WUNTRACED), pids[j]);
                assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
            }
            if (numbers[i] == 0)
                assert_int_equal(kill(pids[j], SIGKILL), 0);
            end_child(pids[j], numbers[i] ? numbers[i] : SIGKILL);
        }
        assert_true(gp_ui_fini(&ui));
    }
}

static void a_simulated_process_gets_none(void **state)
{
    (void)state;
    struct gp_ui ui;
    char root[] = "/tmp/test_tui_screens-XXXXXX";
    char proc[64], folder[96];
    assert_non_null(mkdtemp(root));
    watch(&ui, 1);
    (void)snprintf(proc, sizeof(proc), "%s/proc", root);
    (void)snprintf(folder, sizeof(folder), "%s/%lld", proc, (long long)gp_ui_chosen_row(&ui)->pid);
    assert_int_equal(mkdir(proc, 0700) | mkdir(folder, 0700), 0);
    gp_proc_set_simulated(root);
    ui.outside.root = root;
    ui.outside.root_is_simulated = true;
    press(&ui, "k");
    assert_non_null(strstr(ui.message, "is simulated; there is no process to signal"));
    assert_int_equal(ui.mode, GP_UI_WATCH);
    gp_proc_set_simulated(NULL);
    assert_int_equal(rmdir(folder) | rmdir(proc) | rmdir(root), 0);
    assert_true(gp_ui_fini(&ui));
}

static void nobody_to_send_one_to(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 0);
    press(&ui, "k");
    assert_string_equal(ui.message, "no process here");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_true(gp_ui_fini(&ui));
    watch(&ui, 1);
    ui.outside.root = "/srv/root";
    press(&ui, "k");
    assert_string_equal(ui.message, "the processes of /srv/root cannot be signalled from here");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_true(gp_ui_fini(&ui));
}

static void a_signal_is_clicked(void **state)
{
    (void)state;
    struct gp_ui ui;
    pid_t pids[2] = {start_child(), start_child()};
    show_children(&ui, pids);
    press(&ui, "  k");
    (void)picture(&ui, 80, 24);
    const struct gp_hit third = ui.hits.hits[2];
    assert_int_equal(third.kind, GP_HIT_ITEM);
    (void)gp_ui_click(&ui, third.x, third.y, false);
    assert_int_equal(ui.menu.chosen, 2);
    assert_int_equal(ui.targets.sent_ns, 0);
    (void)gp_ui_click(&ui, third.x, third.y, true);
    for (int i = 0; i < 2; i++)
        end_child(pids[i], SIGKILL);
    (void)picture(&ui, 80, 24);
    assert_int_equal(ui.hits.count, 0);
    press(&ui, "q");
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tagged_ones_get_the_signal),
        cmocka_unit_test(memory_that_others_hold_is_not_free),
        cmocka_unit_test(a_group_gets_the_signal),
        cmocka_unit_test(processes_below_are_told),
        cmocka_unit_test(one_of_two_has_ended_before),
        cmocka_unit_test(one_of_two_stays),
        cmocka_unit_test(one_that_has_ended_meanwhile),
        cmocka_unit_test(every_signal),
        cmocka_unit_test(a_simulated_process_gets_none),
        cmocka_unit_test(nobody_to_send_one_to),
        cmocka_unit_test(a_signal_is_clicked),
    };
    return cmocka_run_group_tests_name("tui_signal", tests, NULL, NULL);
}
