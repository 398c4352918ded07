/* The table of processes: which columns it has, and what stands before a command in the tree. */
#include "tui_machine.h"

#include "base/err.h"
#include "tui/screen.h"

#include <string.h>

static void room_is_used_for_columns(void **state)
{
    (void)state;
    struct gp_ui ui;
    static const char name[] = "maximiliane.meier-schmidt";
    struct gp_snapshot *s = machine(1, 0);
    gp_ui_init(&ui);
    gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_USER), name, 1);
    gp_value_set_int(process_value(&s->processes[0], GP_PROCESS_MEMORY), INT64_C(60) * GIB, 1);
    gp_ui_take(&ui, s, 1);
    assert_null(strstr(line_with(&ui, 109, 30, "COMMAND"), "VRAM%"));
    assert_non_null(strstr(line_with(&ui, 109, 30, "60.0G"), "maximili… "));
    assert_non_null(strstr(line_with(&ui, 116, 30, "COMMAND"), "GPU-MEM VRAM%"));
    assert_non_null(strstr(line_with(&ui, 116, 30, "60.0G    75 "), " maximiliane.mei… "));
    assert_null(strstr(line_with(&ui, 200, 30, "COMMAND"), "CONTAINER")); /* there is none */
    s = machine(1, 1);
    gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_CONTAINER), "slurm:4711.0", 1);
    gp_ui_take(&ui, s, 1);
    assert_null(strstr(line_with(&ui, 100, 30, "COMMAND"), "CONTAINER"));
    assert_non_null(strstr(line_with(&ui, 120, 30, "COMMAND"), " CONTAINER    COMMAND"));
    assert_non_null(strstr(line_with(&ui, 120, 30, "slurm:"), " slurm:4711.0 "));
    assert_null(strstr(line_with(&ui, 114, 30, "COMMAND"), "BW%")); /* the command has its room */
    assert_non_null(strstr(line_with(&ui, 115, 30, "COMMAND"), "BW%"));
    s = machine(1, 2);
    gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_CONTAINER),
                      "pod:2b7c1d04/6ad0c8e55f1a-trainer", 1);
    gp_ui_take(&ui, s, 1);
    assert_non_null(strstr(line_with(&ui, 160, 30, "pod:"), " pod:2b7c1d04/6ad0c… "));
    assert_non_null(strstr(line_with(&ui, 200, 30, "pod:"), " pod:2b7c1d04/6ad0c8e55f1a-trainer "));
    (void)snprintf(ui.prefs.columns, sizeof(ui.prefs.columns), "pid,memory,command");
    gp_ui_apply(&ui); /* these and no others */
    assert_null(strstr(line_with(&ui, 200, 30, "COMMAND"), "VRAM%"));
    assert_true(gp_ui_fini(&ui));
}

static void columns_of_codecs_once_one_is_used(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    for (int i = 0; i < 3; i++) {
        struct gp_snapshot *s = machine(1, (unsigned)i);
        for (size_t p = 0; p < s->process_count; p++) {
            gp_value_set_int(process_value(&s->processes[p], GP_PROCESS_ENC), i == 1 ? 3 : 0, 1);
            gp_value_set_int(process_value(&s->processes[p], GP_PROCESS_DEC), 0, 1);
        }
        gp_ui_take(&ui, s, 1);
        assert_true(!strstr(line_with(&ui, 200, 30, "COMMAND"), "ENC  DEC") == (i == 0));
    }
    ui.shows_codecs = false;
    assert_null(strstr(line_with(&ui, 200, 30, "COMMAND"), "DEC"));
    gp_proc_order_put(&ui.order, GP_PROC_DEC_COLUMN); /* one that rows are sorted by is shown */
    assert_non_null(strstr(line_with(&ui, 200, 30, "COMMAND"), "DEC"));
    (void)snprintf(ui.prefs.columns, sizeof(ui.prefs.columns), "pid,enc,command");
    gp_ui_apply(&ui); /* and one that was chosen */
    assert_non_null(strstr(line_with(&ui, 200, 30, "COMMAND"), "ENC"));
    assert_true(gp_ui_fini(&ui));
}

static void the_past_of_the_cpu_can_be_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *text, *heading;
    } cases[] = {{"pid,cpu_past,command", " PID CPU-PAST COMMAND"},
                 {"cpu_past", "CPU-PAST"},
                 {"cpu_past,pid", "CPU-PAST     PID"},
                 {"pid,user,cpu_past,cpu_past", "PID USER  CPU-PAST"}};
    struct gp_err err = {0};
    struct gp_ui ui;
    watch(&ui, 1);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        assert_int_equal(gp_pref_set(&ui.prefs, GP_PREF_COLUMNS, cases[i].text, &err), 0);
        gp_ui_apply(&ui);
        check_has(&ui, cases[i].heading);
        for (int tick = 0; tick < 3; tick++)
            press(&ui, ">"); /* it has no order */
        assert_int_not_equal(ui.order.by[0].column, GP_TOP_PAST_COLUMN);
        assert_true(ui.shows_cpu_past);
    }
    ui.prefs.graphs = false;
    assert_null(strstr(picture(&ui, 80, 24), "CPU-PAST"));
    assert_int_equal(gp_pref_set(&ui.prefs, GP_PREF_COLUMNS, "pid,cpu_pas", &err), GP_EUSAGE);
    enum gp_proc_column columns[GP_TOP_COLUMNS];
    size_t count = 0;
    char all[1024] = "cpu_past";
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++)
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), ",%s",
                       gp_proc_column_table[c].word);
    assert_int_equal(gp_top_columns_parse(all, columns, &count, &err), 0);
    assert_int_equal(count, GP_TOP_COLUMNS);
    assert_int_equal(columns[0], GP_TOP_PAST_COLUMN);
    assert_int_equal(columns[GP_TOP_COLUMNS - 1], GP_PROC_COLUMN__COUNT - 1);
    assert_true(gp_ui_fini(&ui));
}

/* A process whose parents are a shell, sshd and systemd. */
static struct gp_snapshot *below_a_shell(const char *command)
{
    static const struct {
        int64_t pid, ppid;
        const char *command;
    } of[] = {{50, 1, "/usr/lib/systemd/systemd --user"}, {60, 50, "sshd: mia"}, {70, 60, "-bash"}};
    struct gp_snapshot *s = machine(1, 0);
    struct gp_process *ancestors = gp_arena_alloc(&s->arena, 3, sizeof(*ancestors));
    for (size_t i = 0; i < GP_ARRAY_LEN(of); i++) {
        ancestors[i].cells = gp_arena_alloc(&s->arena, GP_PROCESS__COUNT, sizeof(struct gp_value));
        fill_process(&ancestors[i], 0, of[i].pid, 1);
        gp_value_set_int(process_value(&ancestors[i], GP_PROCESS_PPID), of[i].ppid, 1);
        gp_value_set_text(process_value(&ancestors[i], GP_PROCESS_COMMAND), of[i].command, 1);
    }
    s->ancestors = ancestors;
    s->ancestor_count = GP_ARRAY_LEN(of);
    gp_value_set_int(process_value(&s->processes[0], GP_PROCESS_PPID), 70, 1);
    gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_COMMAND), command, 1);
    return s;
}

static void parents_without_other_children_have_no_rows(void **state)
{
    (void)state;
    static const char long_one[] =
        "python train.py --config a-very-long-name --of-some --other-options --that-go-on-and-on";
    struct gp_ui ui;
    gp_ui_init(&ui);
    ui.prefs.tree = GP_TREE_YES;
    gp_ui_take(&ui, below_a_shell("python a.py"), 1);
    assert_int_equal(ui.procs.folded, 3);
    check_has(&ui, "processes 2 · tree");
    assert_non_null(
        strstr(line_with(&ui, 160, 30, "a.py"), "  systemd › sshd › bash › python a.py "));
    assert_non_null(strstr(line_with(&ui, 80, 30, "python a"), "… › bash › python a.py"));
    gp_ui_take(&ui, below_a_shell(long_one), 1);
    assert_non_null(strstr(line_with(&ui, 140, 30, "train.py"), "  … › bash › python train.py"));
    assert_non_null(strstr(line_with(&ui, 60, 30, "python t"), " … python t"));
    for (int w = 1; w < 200; w++)
        (void)picture(&ui, w, 30);
    ui.tags[0] = 60; /* its children are tagged, though one has no row */
    ui.tag_count = 1;
    for (size_t i = 0; i < ui.procs.count; i++)
        if (ui.procs.rows[i].pid == 1001)
            gp_ui_choose(&ui, i);
    press(&ui, "c");
    assert_int_equal(ui.tag_count, 4); /* 60, 70, 1000, and 1001 */
    assert_true(gp_ui_fini(&ui));
}

/* Not side by side. */
static void gpus_of_a_group_are_not_cut(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    ui.prefs.tree = GP_TREE_USER;
    struct gp_snapshot *s = machine(8, 0);
    for (size_t i = 0; i < s->process_count; i++) {
        const bool is_first = s->processes[i].device % 4 < 2;
        gp_value_set_text(process_value(&s->processes[i], GP_PROCESS_USER),
                          is_first ? "mia" : "jon", 1);
        gp_value_set_int(process_value(&s->processes[i], GP_PID), 2000 + (int64_t)i, 1);
    }
    gp_ui_take(&ui, s, 1);
    assert_non_null(strstr(line_with(&ui, 80, 40, "processes o"), ",…"));
    assert_non_null(strstr(line_with(&ui, 120, 60, "processes on GPUs 0,1,4,5"), " 0,1,… "));
    (void)line_with(&ui, 200, 60, "processes on GPUs 2,3,6,7");
    char heading[1024];
    (void)snprintf(heading, sizeof(heading), "%s", line_with(&ui, 200, 60, "COMMAND"));
    press(&ui, "tt"); /* columns stay where they are */
    assert_int_equal(ui.prefs.tree, GP_TREE_NO);
    const char *flat = line_with(&ui, 200, 60, "COMMAND");
    assert_int_equal(strstr(flat, "T   SM%") - flat, strstr(heading, "T   SM%") - heading);
    assert_true(gp_ui_fini(&ui));
}

/* Those that look the same are cut where they do not differ, and a hit of a search is in sight. */
static void commands_can_be_told_apart(void **state)
{
    (void)state;
    struct gp_ui ui;
    static const char *const commands[] = {
        "python train.py --config llama-8b.yaml --data /datasets/fineweb --rank 0",
        "python train.py --config llama-8b.yaml --data /datasets/fineweb --rank 1"};
    struct gp_snapshot *s = machine(1, 0);
    gp_ui_init(&ui);
    for (size_t i = 0; i < GP_ARRAY_LEN(commands); i++)
        gp_value_set_text(process_value(&s->processes[i], GP_PROCESS_COMMAND), commands[i], 1);
    gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_USER), "caroline", 1);
    gp_ui_take(&ui, s, 1);
    assert_non_null(strstr(line_with(&ui, 80, 24, " 1000 "), "python train.py --c…--rank 0"));
    assert_non_null(strstr(line_with(&ui, 80, 24, " 1001 "), "python train.py --c…--rank 1"));
    assert_non_null(strstr(line_with(&ui, 200, 24, " 1001 "), commands[1]));
    assert_non_null(strstr(line_with(&ui, 80, 24, "COMMAND"), " CPU%   IDLE COMMAND"));
    static const char *const near[] = {"python -u pretrain.py", "python -u train.py"};
    for (size_t i = 0; i < GP_ARRAY_LEN(near); i++) /* little would be gained */
        gp_value_set_text(process_value(&s->processes[i], GP_PROCESS_COMMAND), near[i], 1);
    gp_ui_build_rows(&ui);
    (void)line_with(&ui, 64, 24, "python -u p…");
    for (size_t i = 0; i < GP_ARRAY_LEN(commands); i++)
        gp_value_set_text(process_value(&s->processes[i], GP_PROCESS_COMMAND), commands[i], 1);
    gp_ui_build_rows(&ui);
    press(&ui, "/FineWeb\n");
    assert_non_null(strstr(line_with(&ui, 80, 24, " 1001 "), "…/datasets/fine"));
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_used_for_columns),
        cmocka_unit_test(columns_of_codecs_once_one_is_used),
        cmocka_unit_test(the_past_of_the_cpu_can_be_chosen),
        cmocka_unit_test(parents_without_other_children_have_no_rows),
        cmocka_unit_test(gpus_of_a_group_are_not_cut),
        cmocka_unit_test(commands_can_be_told_apart),
    };
    return cmocka_run_group_tests_name("tui_table", tests, NULL, NULL);
}
