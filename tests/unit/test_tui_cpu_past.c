/* The recent CPU use of processes, as blocks. */
#include "unit.h"

#include "base/strbuf.h"
#include "tui/cpu_past.h"
#include "tui_machine.h"

#include <string.h>

enum { COLUMN_S = GP_CPU_PAST_PER_COLUMN };

static struct gp_proc_row row_of(int64_t pid, double cpu)
{
    return (struct gp_proc_row){.pid = pid, .cpu = {cpu, true, false}, .age_s = {1e6, true, false}};
}

/* What is drawn, with dots for blanks. */
static void shows(const struct gp_cpu_past *past, int64_t pid, const char *wanted)
{
    struct gp_cells cells = {0, 0, NULL};
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    assert_int_equal(gp_cells_resize(&cells, GP_CPU_PAST_COLUMNS + 1, 1), 0);
    struct gp_box box = {&cells, 0, 0, cells.w, 1};
    gp_draw_fill(&box, 0, 0, cells.w, GP_INK_PLAIN, '.');
    gp_draw_cpu_past(&box, 0, 0, GP_INK_LOW, past, pid);
    cells_text(&sb, &cells);
    if (strncmp(sb.buf, wanted, strlen(wanted)) != 0)
        fail_msg("%s, not %s", sb.buf, wanted);
    gp_strbuf_fini(&sb);
    gp_cells_fini(&cells);
}

static void add_at(struct gp_cpu_past **past, uint64_t s, int64_t pid, double cpu)
{
    const struct gp_proc_row row = row_of(pid, cpu);
    gp_cpu_past_add(past, &row, 1, s * GP_NS_PER_S, GP_NS_PER_S);
}

static void columns_are_means_and_move_on(void **state)
{
    (void)state;
    struct gp_cpu_past *past = NULL;
    shows(past, 7, ".........");
    add_at(&past, 8000, 7, 100);
    shows(past, 7, ".......▇.");
    shows(past, 8, ".........");
    add_at(&past, 8001, 7, 0);
    shows(past, 7, ".......▄."); /* the mean */
    add_at(&past, 8001, 7, 100); /* the row of another GPU */
    shows(past, 7, ".......▄.");
    add_at(&past, 8000 + COLUMN_S, 7, 200);
    shows(past, 7, "......▃▇."); /* of two CPUs */
    add_at(&past, 8000 + COLUMN_S, 9, 150);
    shows(past, 9, ".......▆."); /* likewise: the scale does not follow each value */
    add_at(&past, 8000 + 3 * COLUMN_S, 8, 1);
    shows(past, 7, "....▃▇..."); /* no sample is a gap, no zero */
    add_at(&past, 8000 + 3 * COLUMN_S, 7, 100);
    shows(past, 7, "....▃▇.▄.");
    add_at(&past, 9000, 7, 0);
    shows(past, 7, ".......▁.");
    gp_cpu_past_free(past);
}

static void another_time_or_process_begins_anew(void **state)
{
    (void)state;
    struct gp_cpu_past *past = NULL;
    add_at(&past, 8000, 7, 100);
    add_at(&past, 8000 + COLUMN_S, 7, 50);
    shows(past, 7, "......▇▄.");
    add_at(&past, 4000, 7, 100); /* a recording goes back */
    shows(past, 7, ".......▇.");
    add_at(&past, 4000 + COLUMN_S, 7, 0);
    shows(past, 7, "......▇▁.");
    struct gp_proc_row young = row_of(7, 100);
    young.age_s.n = 2; /* the pid was used again */
    gp_cpu_past_add(&past, &young, 1, (4005 + 2 * COLUMN_S) * GP_NS_PER_S, GP_NS_PER_S);
    shows(past, 7, ".......▇.");
    young.age_s.n = 100;
    gp_cpu_past_add(&past, &young, 1, (4006 + 2 * COLUMN_S) * GP_NS_PER_S, 2 * GP_NS_PER_S);
    shows(past, 7, ".......▇."); /* another interval */
    young.cpu.old = true;
    gp_cpu_past_add(&past, &young, 1, (4006 + 4 * COLUMN_S) * GP_NS_PER_S, 2 * GP_NS_PER_S);
    shows(past, 7, "......▇.."); /* a value from before is none */
    gp_cpu_past_free(past);
}

/* More processes than are kept: the oldest ones go, and each one that is shown is right. */
static void many_processes_take_turns(void **state)
{
    (void)state;
    struct gp_cpu_past *past = NULL;
    for (int64_t pid = 1; pid < 20000; pid++) {
        const struct gp_proc_row row = row_of(pid, pid % 2 ? 100 : 0);
        gp_cpu_past_add(&past, &row, 1, 8000 * GP_NS_PER_S + (uint64_t)pid, GP_NS_PER_S);
    }
    for (int64_t pid = 19500; pid < 20000; pid++)
        shows(past, pid, pid % 2 ? ".......▇." : ".......▁.");
    shows(past, 1, ".........");
    gp_cpu_past_free(past);
}

/* One for all samples; without memory there is no past. */
static void only_the_first_sample_allocates(void **state)
{
    (void)state;
    struct gp_cpu_past *past = NULL;
    alloc_fail_at(0);
    add_at(&past, 8000, 7, 100);
    assert_null(past);
    shows(past, 7, ".........");
    alloc_fail_at(-1);
    for (uint64_t s = 8001; s < 8100; s++)
        for (int64_t pid = 1; pid < 60; pid++)
            add_at(&past, s, pid, 100);
    assert_int_equal(alloc_count(), 1);
    gp_cpu_past_free(past);
}

static void wide_screens_show_it(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    assert_null(strstr(picture(&ui, 159, 40), "CPU-PAST"));
    assert_null(ui.cpu_past);
    assert_non_null(strstr(picture(&ui, 160, 40), "CPU-PAST"));
    press(&ui, "R");
    assert_null(strstr(picture(&ui, 200, 40), "CPU-PAST"));
    press(&ui, "R");
    (void)snprintf(ui.prefs.columns, sizeof(ui.prefs.columns), "pid,cpu,command");
    gp_ui_apply(&ui);
    assert_null(strstr(picture(&ui, 200, 40), "CPU-PAST")); /* others were chosen */
    assert_true(gp_ui_fini(&ui));
}

/* Its bars have the colors of the row. */
static void a_selected_row_has_no_holes(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_cells cells = {0, 0, NULL};
    int bars = 0;
    watch(&ui, 2);
    (void)picture(&ui, 160, 40);
    gp_ui_take(&ui, machine(2, 40), 1);
    assert_int_equal(gp_cells_resize(&cells, 160, 40), 0);
    gp_ui_draw(&ui, &cells, "14:02");
    for (int i = 0; i < 160 * 40; i++)
        bars += cells.cells[i].ink == GP_INK_SELECTED && cells.cells[i].cp - 0x2581U < 8;
    assert_int_equal(bars, 1);
    gp_cells_fini(&cells);
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_means_and_move_on),
        cmocka_unit_test(another_time_or_process_begins_anew),
        cmocka_unit_test(many_processes_take_turns),
        cmocka_unit_test(only_the_first_sample_allocates),
        cmocka_unit_test(wide_screens_show_it),
        cmocka_unit_test(a_selected_row_has_no_holes),
    };
    return cmocka_run_group_tests_name("tui_cpu_past", tests, NULL, NULL);
}
