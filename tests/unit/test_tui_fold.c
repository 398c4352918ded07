/* Branches and groups that are folded to one row: by keys and by clicks, and what unfolds them. */
#include "tui_machine.h"

#include "tui/screen.h"

#include <string.h>

enum { SHELL = 50, LAUNCHER = 60, RANKS = 4, NOTEBOOK = RANKS };

static void set_int(struct gp_process *p, enum gp_metric metric, int64_t n)
{
    gp_value_set_int(process_value(p, metric), n, 1);
}

static void fill(struct gp_process *p, size_t gpu, int64_t pid, int64_t ppid, const char *command)
{
    fill_process(p, gpu, pid, 1);
    set_int(p, GP_PROCESS_PPID, ppid);
    set_int(p, GP_PROCESS_MEMORY, 10 * (int64_t)GIB);
    gp_value_set_text(process_value(p, GP_PROCESS_USER), pid < 200 ? "mia" : "jon", 1);
    gp_value_set_text(process_value(p, GP_PROCESS_COMMAND), command, 1);
    gp_value_set_real(process_value(p, GP_PROCESS_CPU), 25, 1);
}

/* A shell with a launcher, below which are four ranks, and a notebook. */
static struct gp_snapshot *job(unsigned tick)
{
    static const char *const ranks[] = {"train --rank 0", "train --rank 1", "train --rank 2",
                                        "train --rank 3"};
    struct gp_snapshot *s = machine(5, tick);
    struct gp_process *ancestors = gp_arena_alloc(&s->arena, 2, sizeof(*ancestors));
    for (size_t i = 0; i < 2; i++)
        ancestors[i].cells = gp_arena_alloc(&s->arena, GP_PROCESS__COUNT, sizeof(struct gp_value));
    fill(&ancestors[0], 0, SHELL, 1, "bash");
    fill(&ancestors[1], 0, LAUNCHER, SHELL, "torchrun");
    s->ancestors = ancestors;
    s->ancestor_count = 2;
    for (size_t i = 0; i < RANKS; i++)
        fill(&s->processes[i], i, 100 + (int64_t)i, LAUNCHER, ranks[i]);
    fill(&s->processes[NOTEBOOK], 4, 200, 1, "ipykernel_launcher");
    set_int(&s->processes[NOTEBOOK], GP_PROCESS_MEMORY, GIB);
    s->process_count = RANKS + 1;
    find_first_processes(s);
    return s;
}

static void show(struct gp_ui *ui, int tree)
{
    gp_ui_init(ui);
    ui->prefs.tree = tree;
    gp_ui_take(ui, job(0), 1);
    gp_ui_choose(ui, 0);
}

static void key(struct gp_ui *ui, int key)
{
    (void)gp_ui_key(ui, key);
}

static int64_t chosen_pid(const struct gp_ui *ui)
{
    return gp_ui_chosen_row(ui)->pid;
}

static void check_rows(const struct gp_ui *ui, size_t rows, int64_t pid)
{
    assert_int_equal(ui->procs.count, rows);
    assert_int_equal(chosen_pid(ui), pid);
}

static void arrows_fold_and_unfold(void **state)
{
    (void)state;
    struct gp_ui ui;
    show(&ui, GP_TREE_YES);
    check_rows(&ui, RANKS + 2, LAUNCHER);
    (void)line_with(&ui, 160, 40, "  ▾ bash › torchrun");
    (void)line_with(&ui, 160, 40, "  ├─train --rank 0");
    (void)line_with(&ui, 160, 40, "    ipykernel_launcher");
    key(&ui, GP_KEY_RIGHT); /* there is nothing to unfold: the command scrolls */
    assert_true(ui.scroll > 0);
    key(&ui, GP_KEY_LEFT);
    check_rows(&ui, RANKS + 2, LAUNCHER);
    key(&ui, GP_KEY_DOWN);
    key(&ui, GP_KEY_LEFT);
    check_rows(&ui, RANKS + 2, LAUNCHER);
    key(&ui, GP_KEY_LEFT);
    check_rows(&ui, 2, LAUNCHER);
    const char *line = line_with(&ui, 160, 40, "▸ bash › torchrun");
    assert_non_null(strstr(line, "+4 children  100% CPU"));
    assert_non_null(strstr(line, " 0-3 "));
    assert_non_null(strstr(line, " 40.0G "));
    assert_non_null(strstr(line, "   125 ")); /* its CPU use, too */
    check_has(&ui, "processes 5 · tree");
    assert_non_null(strstr(line_with(&ui, 80, 30, "▸ bash › torchrun"), " +4"));
    gp_ui_take(&ui, job(1), 1);
    key(&ui, GP_KEY_DOWN);
    press(&ui, "I"); /* in another order, too */
    check_rows(&ui, 2, 200);
    key(&ui, GP_KEY_DOWN);
    key(&ui, GP_KEY_RIGHT);
    check_rows(&ui, RANKS + 2, LAUNCHER);
    for (int w = 1; w < 200; w++)
        (void)picture(&ui, w, 30);
    assert_true(gp_ui_fini(&ui));
}

/* Rank 0 was busy later than rank 1, which is below it. */
static void a_folded_parent_is_idle_as_itself(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    ui.prefs.tree = GP_TREE_YES;
    struct gp_snapshot *s = job(0);
    set_int(&s->processes[1], GP_PROCESS_PPID, 100);
    gp_value_set_real(process_value(&s->processes[0], GP_PROCESS_IDLE), 300, 1);
    gp_value_set_real(process_value(&s->processes[1], GP_PROCESS_IDLE), 3000, 1);
    gp_ui_take(&ui, s, 1);
    assert_true(gp_ui_go_to_process(&ui, 100));
    assert_non_null(strstr(line_with(&ui, 160, 40, "─train --rank 1"), " ≥50m "));
    key(&ui, GP_KEY_LEFT);
    assert_non_null(strstr(line_with(&ui, 160, 40, "▸train --rank 0"), " ≥5m "));
    assert_true(gp_ui_fini(&ui));
}

/* Parents without rows of their own are children of the folded one, too. */
static void folded_rows_count_parents_without_rows(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    ui.prefs.tree = GP_TREE_YES;
    struct gp_snapshot *s = job(0);
    for (size_t i = 0; i < RANKS - 1; i++)
        set_int(&s->processes[i], GP_PROCESS_PPID, SHELL);
    gp_ui_take(&ui, s, 1);
    (void)line_with(&ui, 160, 40, "─torchrun › train --rank 3");
    gp_ui_choose(&ui, 0);
    key(&ui, GP_KEY_LEFT);
    assert_non_null(strstr(line_with(&ui, 160, 40, "▸ bash"), "+5 children"));
    assert_true(gp_ui_fini(&ui));
}

/* Columns, their widths and the page of a process need not change because its row is folded. */
static void what_is_folded_still_counts(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    ui.prefs.tree = GP_TREE_YES;
    gp_closed_turn_all(&ui.closed, true);
    struct gp_snapshot *s = job(0);
    for (size_t i = 0; i < RANKS; i++)
        set_int(&s->processes[i], GP_PROCESS_PPID, i == 0 ? 1 : 100); /* which has no sums */
    set_int(&s->processes[2], GP_PROCESS_ENC, 7);
    gp_value_set_text(process_value(&s->processes[2], GP_PROCESS_USER), "maximiliane", 1);
    gp_ui_take(&ui, s, 1);
    assert_int_equal(ui.procs.count, 2);
    const char *heading = line_with(&ui, 200, 40, "COMMAND");
    assert_non_null(strstr(heading, " USER           GPU "));
    assert_non_null(strstr(heading, " ENC "));
    assert_true(gp_ui_go_to_process(&ui, 102));
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_PROCESS);
    gp_closed_turn_all(&ui.closed, true);
    gp_ui_take(&ui, job(1), 1);
    assert_int_equal(ui.procs.count, 2);
    (void)line_with(&ui, 160, 40, "process 102 · mia · train --rank 2");
    assert_true(gp_ui_fini(&ui));
}

static void star_keeps_what_is_followed(void **state)
{
    (void)state;
    struct gp_ui ui;
    show(&ui, GP_TREE_USER);
    assert_true(gp_ui_go_to_process(&ui, 101));
    press(&ui, "F*");
    check_rows(&ui, RANKS + 2, 101); /* the group of another user is folded */
    press(&ui, "*");
    check_rows(&ui, RANKS + 3, 101);
    press(&ui, "*");
    check_rows(&ui, RANKS + 2, 101);
    assert_true(gp_ui_fini(&ui));
}

static void star_folds_all(void **state)
{
    (void)state;
    struct gp_ui ui;
    show(&ui, GP_TREE_USER);
    check_rows(&ui, RANKS + 3, 0);
    key(&ui, GP_KEY_DOWN);
    press(&ui, "*");
    check_rows(&ui, 2, 0);
    assert_string_equal(gp_ui_chosen_row(&ui)->user, "mia"); /* who has the process */
    (void)line_with(&ui, 120, 40, "▸ 4 processes");
    (void)line_with(&ui, 120, 40, "▸ 1 process ");
    gp_ui_take(&ui, job(1), 1);
    press(&ui, "*");
    check_rows(&ui, RANKS + 3, 100);
    press(&ui, "*");
    key(&ui, GP_KEY_DOWN);
    press(&ui, "I");
    assert_string_equal(gp_ui_chosen_row(&ui)->user, "jon"); /* the cursor follows a group */
    key(&ui, GP_KEY_RIGHT);
    check_rows(&ui, 3, 0);
    ui.prefs.tree = GP_TREE_NO;
    gp_ui_build_rows(&ui);
    press(&ui, "*");
    assert_int_equal(ui.procs.count, RANKS + 1);
    check_has(&ui, "nothing to fold");
    assert_true(gp_ui_fini(&ui));
}

static void what_is_looked_for_is_unfolded(void **state)
{
    (void)state;
    struct gp_ui ui;
    show(&ui, GP_TREE_YES);
    press(&ui, "*/rank 2");
    check_rows(&ui, 2, LAUNCHER); /* while it is typed */
    press(&ui, "\n");
    check_rows(&ui, RANKS + 2, 102);
    press(&ui, "*N");
    check_rows(&ui, RANKS + 2, 102);
    press(&ui, "\x1b*frank\n");
    assert_int_equal(ui.procs.count, RANKS + 1);
    press(&ui, "*");
    assert_int_equal(ui.procs.count, 1);
    ui.prefs.filter[0] = '\0';
    gp_ui_build_rows(&ui);
    check_rows(&ui, 2, LAUNCHER); /* what was folded before the filter */
    assert_true(gp_ui_go_to_process(&ui, 101));
    check_rows(&ui, RANKS + 2, 101);
    press(&ui, "F*");
    check_rows(&ui, RANKS + 2, 101);
    assert_false(gp_ui_go_to_process(&ui, 999));
    assert_true(gp_ui_fini(&ui));
}

/* The rows below a folded one come before the next row, though it matches as well. */
static void a_search_looks_below_a_match(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    ui.prefs.tree = GP_TREE_YES;
    struct gp_snapshot *s = job(0);
    gp_value_set_text(process_value(&s->ancestors[1], GP_PROCESS_COMMAND), "train launcher", 1);
    gp_value_set_text(process_value(&s->processes[NOTEBOOK], GP_PROCESS_COMMAND), "train, too", 1);
    gp_ui_take(&ui, s, 1);
    gp_ui_choose(&ui, 0);
    press(&ui, "*/train\n");
    check_rows(&ui, 2, LAUNCHER);
    press(&ui, "n");
    check_rows(&ui, RANKS + 2, 100);
    press(&ui, "nnnn");
    check_rows(&ui, RANKS + 2, 200);
    press(&ui, "*n");
    check_rows(&ui, 2, LAUNCHER);
    press(&ui, "NN"); /* back, the last one below it comes first */
    check_rows(&ui, RANKS + 2, 103);
    assert_true(gp_ui_fini(&ui));
}

static void arrows_of_the_gpus_fold_nothing(void **state)
{
    (void)state;
    struct gp_ui ui;
    show(&ui, GP_TREE_YES);
    ui.gpus_have_focus = true;
    key(&ui, GP_KEY_LEFT);
    assert_int_equal(ui.procs.count, RANKS + 2);
    assert_true(gp_ui_fini(&ui));
}

static void tags_reach_folded_ones(void **state)
{
    (void)state;
    struct gp_ui ui;
    show(&ui, GP_TREE_USER);
    press(&ui, "* ");
    assert_int_equal(ui.tag_count, RANKS);
    assert_int_equal(ui.chosen, 1);
    (void)line_with(&ui, 120, 40, "* "); /* the group */
    press(&ui, "Utt");
    gp_ui_choose(&ui, 0);
    ui.prefs.tree = GP_TREE_YES;
    gp_ui_build_rows(&ui);
    gp_ui_choose(&ui, 0);
    check_rows(&ui, 2, LAUNCHER);
    press(&ui, " ");
    assert_int_equal(ui.tag_count, 1);
    gp_ui_choose(&ui, 0);
    press(&ui, "c");
    assert_int_equal(ui.tag_count, 1 + RANKS);
    assert_true(gp_ui_fini(&ui));
}

/* Which do not make their column wider. */
static void gpus_without_room_stand_beside_the_command(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    ui.prefs.tree = GP_TREE_YES;
    struct gp_snapshot *s = job(0);
    for (size_t i = 0; i < RANKS; i++)
        s->devices[i].index = 2 * (unsigned)i;
    gp_ui_take(&ui, s, 1);
    gp_ui_choose(&ui, 0);
    (void)line_with(&ui, 200, 40, " on GPUs 0,2,4,6 ");
    key(&ui, GP_KEY_LEFT);
    (void)line_with(&ui, 200, 40, " on GPUs 0,2,4,6  +4 children  100% CPU");
    (void)line_with(&ui, 100, 40, " 0,2,… ");
    assert_true(gp_ui_fini(&ui));
}

static void a_click_on_the_mark_folds(void **state)
{
    (void)state;
    struct gp_ui ui;
    show(&ui, GP_TREE_YES);
    (void)picture(&ui, 120, 40);
    for (int i = 0; i < 2; i++) {
        const struct gp_hit *hit = ui.hits.hits;
        while (hit->kind != GP_HIT_FOLD)
            hit++;
        (void)gp_ui_click(&ui, hit->x, hit->y, i > 0);
        assert_int_equal(ui.mode, GP_UI_WATCH);
        check_rows(&ui, i == 0 ? 2 : RANKS + 2, LAUNCHER);
        (void)picture(&ui, 120, 40);
    }
    const struct gp_hit *mark = ui.hits.hits;
    while (mark->kind != GP_HIT_FOLD)
        mark++;
    press(&ui, "fzzz\n"); /* nothing matches, and the mark is still on the screen */
    (void)gp_ui_click(&ui, mark->x, mark->y, false);
    assert_int_equal(ui.closed.count, 0);
    assert_true(gp_ui_fini(&ui));
}

static void choices_are_bounded_and_forgotten(void **state)
{
    (void)state;
    struct gp_ui ui;
    show(&ui, GP_TREE_YES);
    key(&ui, GP_KEY_LEFT);
    assert_int_equal(ui.closed.count, 1);
    press(&ui, "frank\n");
    gp_ui_choose(&ui, 0);
    key(&ui, GP_KEY_LEFT);
    assert_int_equal(ui.closed_of_filter.count, 1);
    gp_ui_take(&ui, machine(2, 1), 1); /* the launcher has ended */
    assert_int_equal(ui.closed.count, 0);
    assert_int_equal(ui.closed_of_filter.count, 0);
    ui.prefs.filter[0] = '\0';
    for (int64_t pid = 1; pid <= GP_CLOSED_MAX + 10; pid++)
        gp_closed_turn(&ui.closed, &(struct gp_proc_row){.pid = pid});
    assert_int_equal(ui.closed.count, GP_CLOSED_MAX);
    assert_int_equal(ui.closed.others[0].pid, 11);
    gp_closed_turn(&ui.closed, &(struct gp_proc_row){.pid = 11, .start = "later"}); /* another */
    assert_int_equal(ui.closed.others[0].pid, 12);
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrows_fold_and_unfold),
        cmocka_unit_test(a_folded_parent_is_idle_as_itself),
        cmocka_unit_test(folded_rows_count_parents_without_rows),
        cmocka_unit_test(what_is_folded_still_counts),
        cmocka_unit_test(star_keeps_what_is_followed),
        cmocka_unit_test(star_folds_all),
        cmocka_unit_test(what_is_looked_for_is_unfolded),
        cmocka_unit_test(a_search_looks_below_a_match),
        cmocka_unit_test(arrows_of_the_gpus_fold_nothing),
        cmocka_unit_test(tags_reach_folded_ones),
        cmocka_unit_test(gpus_without_room_stand_beside_the_command),
        cmocka_unit_test(a_click_on_the_mark_folds),
        cmocka_unit_test(choices_are_bounded_and_forgotten),
    };
    return cmocka_run_group_tests_name("tui_fold", tests, NULL, NULL);
}
