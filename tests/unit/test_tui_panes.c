/* What somebody finds who does not know the live monitor: the order of the GPUs, which of them is
 * selected, that there are more of them, and how to undo what was chosen. */
#include "tui_machine.h"

#include "tui/screen.h"

/* ---- the order of the GPUs ---- */

static void s_orders_gpus_that_have_the_keys(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 64);
    (void)picture(&ui, 80, 24);
    press(&ui, "s");
    assert_int_equal(ui.mode, GP_UI_SORT);
    press(&ui, "q\t");
    (void)line_with(&ui, 80, 24, "s:order");
    press(&ui, "s");
    assert_int_equal(ui.mode, GP_UI_GPU_ORDER);
    (void)line_with(&ui, 80, 24, "temperature  the hottest first");
    press(&ui, "?");
    check_has(&ui, "o goes to the next order");
    press(&ui, "xq");
    assert_int_equal(ui.prefs.gpu_order, GP_ORDER_AUTO);
    press(&ui, "st\n");
    assert_int_equal(ui.prefs.gpu_order, GP_ORDER_TEMPERATURE);
    assert_int_equal(ui.mode, GP_UI_WATCH);
    (void)line_with(&ui, 80, 24, "GPUs by temperature");
    assert_int_equal(ui.gpu, 5); /* it does not answer; then the hottest */
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    assert_int_equal(ui.gpu, 7);
    press(&ui, "\t"); /* the user has moved to it: it stays selected */
    assert_int_equal(ui.gpu, 7);
    assert_true(gp_ui_fini(&ui));
}

/* The values that the order is by are on the screen, however narrow its cells are. */
static void the_value_of_the_order_is_shown(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 64);
    assert_null(strstr(picture(&ui, 80, 24), "89°"));
    ui.prefs.gpu_order = GP_ORDER_TEMPERATURE;
    (void)line_with(&ui, 80, 24, " 7 ▄▆ 89°");
    (void)line_with(&ui, 80, 24, "° P"); /* in the place of the load */
    (void)line_with(&ui, 120, 40, "89°");
    ui.prefs.gpu_order = GP_ORDER_FREE;
    (void)line_with(&ui, 80, 24, " 80G ");
    ui.prefs.view = GP_DENSITY_LINE;
    ui.prefs.gpu_order = GP_ORDER_TEMPERATURE;
    for (int w = 40; w < 120; w++)
        (void)line_with(&ui, w, 24, " °C");
    assert_true(gp_ui_fini(&ui));
}

static void a_full_grid_begins_with_problems(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_snapshot *s = machine(64, 0);
    s->devices[21].status = GP_STATUS_LOST;
    s->devices[5].status = GP_STATUS_OK;
    gp_ui_init(&ui);
    gp_ui_take(&ui, s, 1);
    press(&ui, "\tsi\n");
    (void)picture(&ui, 40, 12);
    assert_int_equal(ui.gpu, 0);
    press(&ui, "sa\n"); /* problems come first, as there is no room for all */
    assert_int_equal(ui.gpu, 21);
    (void)picture(&ui, 40, 12);
    assert_int_equal(gp_gpu_order_row(&ui.gpu_order, 0), 21);
    assert_int_equal(ui.first_gpu, 0);
    gp_ui_take(&ui, machine(64, 1), 1); /* it has recovered */
    (void)picture(&ui, 40, 12);
    assert_int_equal(gp_gpu_order_row(&ui.gpu_order, 0), 5);
    assert_int_equal(gp_gpu_order_row(&ui.gpu_order, 1), 0);
    (void)picture(&ui, 120, 40); /* now there is */
    assert_int_equal(gp_gpu_order_row(&ui.gpu_order, 0), 0);
    assert_true(gp_ui_fini(&ui));
}

/* ---- all of them ---- */

static void many_gpus_are_never_left_out(void **state)
{
    (void)state;
    static const int sizes[][2] = {{80, 24}, {120, 40}, {200, 60}};
    for (size_t i = 0; i < GP_ARRAY_LEN(sizes); i++)
        for (int by = GP_ORDER_AUTO; by <= GP_ORDER_TROUBLE; by++) {
            struct gp_ui ui;
            watch(&ui, 64);
            ui.prefs.gpu_order = by;
            const char *text = picture(&ui, sizes[i][0], sizes[i][1]);
            assert_null(strstr(text, "more"));
            assert_int_equal(ui.gpu_page, 64);
            assert_true(gp_ui_fini(&ui));
        }
}

static void pages_of_gpus_end_at_the_last(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 64);
    press(&ui, "ggg\t");
    (void)line_with(&ui, 80, 24, "+51 more");
    (void)gp_ui_key(&ui, GP_KEY_PAGE_DOWN);
    assert_int_equal(ui.gpu, 13);
    for (int i = 0; i < 4; i++)
        (void)gp_ui_key(&ui, GP_KEY_PAGE_DOWN);
    assert_int_equal(ui.gpu, 63);
    (void)line_with(&ui, 80, 24, "▸ 63 H100");
    (void)gp_ui_key(&ui, GP_KEY_PAGE_UP);
    assert_int_equal(ui.gpu, 50);
    (void)gp_ui_key(&ui, GP_KEY_HOME);
    assert_int_equal(ui.gpu, 0);
    assert_true(gp_ui_fini(&ui));
}

static void cards_and_bars_say_that_there_are_more(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    ui.prefs.view = GP_DENSITY_CARD;
    (void)line_with(&ui, 80, 24, " · GPUs 0-1 of 8 ");
    ui.prefs.view = GP_DENSITY_BAR;
    (void)line_with(&ui, 80, 24, " · GPUs 0-5 of 8 ");
    press(&ui, "\t");
    (void)gp_ui_key(&ui, GP_KEY_END);
    (void)line_with(&ui, 80, 24, " · GPUs 2-7 of 8 ");
    ui.prefs.gpu_order = GP_ORDER_LOAD;
    (void)line_with(&ui, 80, 24, " · GPUs 6 of 8 ↑2 by load ");
    ui.prefs.gpu_order = GP_ORDER_INDEX;
    ui.prefs.processes = false;
    (void)line_with(&ui, 80, 14, " GPUs 3-7 of 8");
    for (int h = 6; h < 18; h++)
        if (!strstr(picture(&ui, 80, h), " of 8"))
            assert_true(ui.gpu_page < 2 || strstr(picture(&ui, 80, h), "USED/TOTAL"));
    assert_true(gp_ui_fini(&ui));
}

/* ---- which is selected ---- */

/* The arrow stands at the selected GPU, and nowhere else. */
static void the_arrow_is_at_the_selected_gpu(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    ui.prefs.view = GP_DENSITY_BAR;
    assert_null(strstr(picture(&ui, 80, 24), "▸0"));
    press(&ui, "\t");
    (void)line_with(&ui, 80, 24, "▸0 H100");
    for (int i = 0; i < 3; i++)
        (void)gp_ui_key(&ui, GP_KEY_DOWN);
    (void)line_with(&ui, 80, 24, "▸3 H100");
    assert_null(strstr(picture(&ui, 80, 24), "▸0"));
    (void)line_with(&ui, 160, 40, "▸ 3 H100");
    press(&ui, "\n");
    assert_int_equal(ui.details.gpu, 3);
    press(&ui, "q2");
    (void)line_with(&ui, 80, 24, "▸2 H100");
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE); /* none: the keys are those of the processes */
    assert_int_equal(ui.gpu, -1);
    (void)line_with(&ui, 80, 24, "▸ processes");
    press(&ui, "\t\t"); /* there and back */
    assert_int_equal(ui.gpu, -1);
    assert_true(gp_ui_fini(&ui));
}

/* A GPU that Tab has selected is selected no longer than the keys are those of the GPUs. */
static void what_the_user_selects_stays(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        int gpu;
        bool gpus_have_focus;
    } cases[] = {
        {"\t", 0, true},       {"\t\t", -1, false}, {"\t30\t", 0, false}, {"\t3\t", 3, false},
        {"\tD", -1, false},    {"\tDD", -1, false}, {"D\t", -1, false},   {"L\t", -1, true},
        {"\tx", 0, true},      {"\txx", -1, false}, {"\tL\t", 0, true},   {"3D\t", 3, false},
        {"\tLL\t", -1, false}, {"3\tD", 3, false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ui ui;
        watch(&ui, 4);
        (void)picture(&ui, 80, 24);
        press(&ui, cases[i].keys);
        if (ui.gpu != cases[i].gpu || ui.gpus_have_focus != cases[i].gpus_have_focus)
            fail_msg("case %zu: GPU %d, focus %d", i, ui.gpu, ui.gpus_have_focus);
        if (ui.gpu < 0)
            assert_null(strstr(picture(&ui, 80, 24), "· GPU"));
        assert_true(gp_ui_fini(&ui));
    }
}

/* A double click on a row is one, even if its first click takes the keys from the GPUs. */
static void rows_stay_below_a_click(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    press(&ui, "\t");
    (void)picture(&ui, 80, 24);
    const struct gp_hit *last = &ui.hits.hits[0];
    for (size_t i = 0; i < ui.hits.count; i++)
        if (ui.hits.hits[i].kind == GP_HIT_ROW)
            last = &ui.hits.hits[i];
    const int x = last->x;
    const int y = last->y;
    (void)gp_ui_click(&ui, x, y, false);
    const int64_t pid = gp_ui_chosen_row(&ui)->pid;
    (void)picture(&ui, 80, 24);
    (void)gp_ui_click(&ui, x, y, false);
    assert_int_equal(gp_ui_chosen_row(&ui)->pid, pid);
    assert_false(ui.gpus_have_focus);
    assert_true(gp_ui_fini(&ui));
}

static void tab_needs_no_gpus(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    press(&ui, "\t");
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    assert_int_equal(ui.gpu, -1);
    gp_ui_take(&ui, machine(0, 0), 1);
    press(&ui, "\t\t");
    (void)gp_ui_key(&ui, GP_KEY_END);
    press(&ui, "sl\n");
    assert_int_equal(ui.gpu, -1);
    (void)picture(&ui, 80, 24);
    gp_ui_take(&ui, machine(4, 1), 1);
    ui.prefs.read_only = true;
    press(&ui, "k"); /* a list that does not open leaves nothing behind */
    assert_int_equal(ui.menu.count, 0);
    assert_true(gp_ui_fini(&ui));
}

/* A machine without this process. */
static struct gp_snapshot *without(int64_t pid, unsigned tick)
{
    struct gp_snapshot *s = machine(4, tick);
    size_t kept = 0;
    for (size_t i = 0; i < s->process_count; i++)
        if (process_value(&s->processes[i], GP_PID)->i != pid)
            s->processes[kept++] = s->processes[i];
    s->process_count = kept;
    for (size_t i = 0; i < s->device_count; i++)
        s->devices[i].process_count = 0;
    find_first_processes(s);
    return s;
}

/* The cursor stays on the next one, even if the order changes. */
static void the_cursor_holds_on_to_the_next_process(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    (void)picture(&ui, 100, 30);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    const int64_t ended = ui.pin.pid;
    gp_ui_take(&ui, without(ended, 40), 1);
    const int64_t next = ui.pin.pid;
    assert_true(next != ended && next > 0);
    press(&ui, "I");
    assert_int_equal(gp_ui_chosen_row(&ui)->pid, next);
    gp_ui_take(&ui, machine(4, 41), 1); /* it is back */
    assert_int_equal(ui.pin.pid, next);
    press(&ui, "fnobody\n");
    assert_int_equal(ui.procs.count, 0);
    assert_int_equal(ui.pin.pid, next);
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_int_equal(gp_ui_chosen_row(&ui)->pid, next);
    assert_true(gp_ui_fini(&ui));
}

/* Tab selects a GPU, whose rows need not include the process of the cursor. */
static void the_cursor_comes_back_from_the_gpus(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    while (gp_ui_chosen_row(&ui)->pid != 1007) /* it is on GPU 3 only */
        (void)gp_ui_key(&ui, GP_KEY_DOWN);
    press(&ui, "F\t");
    assert_int_equal(ui.gpu, 0);
    assert_int_equal(ui.followed, 1007);
    const int64_t other = gp_ui_chosen_row(&ui)->pid;
    assert_int_not_equal(other, 1007);
    press(&ui, "I"); /* the cursor stays where it is in the meantime */
    assert_int_equal(gp_ui_chosen_row(&ui)->pid, other);
    gp_ui_take(&ui, machine(4, 40), 1);
    assert_int_equal(gp_ui_chosen_row(&ui)->pid, other);
    press(&ui, "\t");
    assert_int_equal(gp_ui_chosen_row(&ui)->pid, 1007);
    press(&ui, "0");
    assert_int_not_equal(gp_ui_chosen_row(&ui)->pid, 1007);
    press(&ui, "0fpid:1000\n");
    assert_int_equal(gp_ui_chosen_row(&ui)->pid, 1000);
    assert_int_equal(ui.followed, 1007);
    assert_null(strstr(picture(&ui, 100, 30), "no longer shown"));
    gp_ui_take(&ui, without(1007, 41), 1); /* it ends while it is hidden */
    check_has(&ui, "process 1007 is no longer shown");
    assert_int_equal(ui.followed, 0);
    assert_int_equal(ui.pin.pid, 1000);
    assert_true(gp_ui_fini(&ui));
}

/* ---- choices, and undoing them ---- */

static void escape_drops_the_filter_last(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    press(&ui, "f");
    (void)line_with(&ui, 80, 24, "filter:   words, user: pid: gpu: cmd:");
    press(&ui, "bob");
    assert_null(strstr(picture(&ui, 80, 24), "words, user:"));
    press(&ui, "\n3 ");
    check_has(&ui, "GPU 3");
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_int_equal(ui.gpu, -1);
    assert_int_equal(ui.tag_count, 0);
    check_has(&ui, "filter bob");
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_string_equal(ui.prefs.filter, "");
    assert_null(strstr(picture(&ui, 80, 24), "filter bob"));
    assert_int_equal(ui.procs.hidden, 0);
    assert_true(gp_ui_fini(&ui));
}

static void an_empty_list_says_why(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    press(&ui, "fzzz\n");
    (void)line_with(&ui, 80, 24, " no process matches 'zzz' · Esc: no filter");
    press(&ui, "3");
    (void)line_with(&ui, 80, 24, " no process of GPU 3 matches 'zzz'");
    assert_true(gp_ui_fini(&ui));
    gp_ui_init(&ui);
    struct gp_snapshot *s = machine(2, 0);
    s->process_count = s->devices[0].process_count = s->devices[1].process_count = 0;
    gp_ui_take(&ui, s, 1);
    (void)line_with(&ui, 80, 24, " no process uses a GPU");
    press(&ui, "1");
    (void)line_with(&ui, 80, 24, " no process uses GPU 1");
    assert_true(gp_ui_fini(&ui));
}

static void the_list_of_columns_reverses(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    press(&ui, "s");
    check_has(&ui, "I reversed");
    press(&ui, "I"); /* the one that rows are sorted by */
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_int_equal(ui.order.by[0].column, GP_PROC_MEMORY_COLUMN);
    assert_true(ui.order.by[0].reversed);
    press(&ui, "sI");
    assert_false(ui.order.by[0].reversed);
    press(&ui, "suI");
    assert_int_equal(ui.order.by[0].column, GP_PROC_USER_COLUMN);
    assert_true(ui.order.by[0].reversed);
    assert_true(gp_ui_fini(&ui));
}

static void m_says_where_it_shows(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    ui.prefs.view = GP_DENSITY_BAR;
    (void)picture(&ui, 120, 40);
    press(&ui, "m");
    (void)line_with(&ui, 120, 40, "graphs: memory (in cards and lines: g)");
    ui.prefs.view = GP_DENSITY_LINE;
    (void)picture(&ui, 120, 40);
    press(&ui, "m");
    assert_null(strstr(picture(&ui, 120, 40), "in cards and lines"));
    ui.prefs.view = GP_DENSITY_GRID;
    (void)picture(&ui, 80, 24);
    press(&ui, "m");
    assert_null(strstr(picture(&ui, 80, 24), "in cards and lines"));
    assert_true(gp_ui_fini(&ui));
    watch(&ui, 64); /* narrow cells */
    (void)picture(&ui, 80, 24);
    press(&ui, "m");
    (void)line_with(&ui, 80, 24, "graphs: memory (in cards and lines: g)");
    ui.prefs.view = GP_DENSITY_LINE; /* of this width, they have no graphs */
    (void)picture(&ui, 40, 24);
    press(&ui, "m");
    (void)line_with(&ui, 40, 24, "(in cards: g)");
    press(&ui, "D");
    (void)picture(&ui, 80, 24);
    press(&ui, "m");
    (void)line_with(&ui, 80, 24, "(GPUs: D)");
    assert_true(gp_ui_fini(&ui));
}

/* A message leaves room for the keys, and so does what the letters of a GPU mean. */
static void keys_stay_beside_a_message(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    (void)line_with(&ui, 80, 24,
                    " ?:help /:search f:filter s:sort k:kill Enter:detail g:view Tab:");
    gp_ui_say(&ui, "16144 ended, 20.0G free again");
    const char *line = line_with(&ui, 80, 24, "  16144 ended, 20.0G free again");
    assert_non_null(strstr(line, " ?:help /:search f:filter s:sort k:kill "));
    ui.message[0] = '\0';
    press(&ui, "3\t");
    (void)line_with(&ui, 80, 24, " ?:help Esc:all GPUs s:order Enter:detail ");
    (void)line_with(&ui, 80, 24, " GPU 3 P: power limits the clocks");
    (void)line_with(&ui, 40, 24, " GPU 3 P: power limits the clocks");
    (void)picture(&ui, 20, 24);
    assert_true(gp_ui_fini(&ui));
}

static void esc_says_what_it_takes_back(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    (void)line_with(&ui, 80, 24, " ?:help /:search ");
    press(&ui, "fpython\r");
    (void)line_with(&ui, 80, 24, " ?:help Esc:no filter /:search ");
    press(&ui, " ");
    (void)line_with(&ui, 80, 24, " ?:help Esc:untag /:search ");
    press(&ui, "\033");
    (void)line_with(&ui, 80, 24, " ?:help Esc:no filter /:search ");
    press(&ui, "\033");
    (void)line_with(&ui, 80, 24, " ?:help /:search ");
    assert_true(gp_ui_fini(&ui));
}

/* What hangs does not look idle, and its page says what helps. */
static void a_silent_gpu_says_so(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    struct gp_snapshot *s = machine(8, 0);
    for (size_t i = 0; i < s->process_count; i++) {
        struct gp_value *sm = process_value(&s->processes[i], GP_PROCESS_SM);
        gp_value_set_int(sm, 93, 1);
        sm->status = GP_STATUS_STALE;
        if (s->processes[i].device == 5)
            s->processes[i].device = 4;
    }
    gp_ui_take(&ui, s, 1);
    check_has(&ui, " 93? ");
    press(&ui, "5");
    check_has(&ui, " processes unknown · GPU 5");
    check_has(&ui, " unknown: no answer from GPU 5");
    press(&ui, "\n");
    check_has(&ui, "end what runs on it");
    assert_true(gp_ui_fini(&ui));
}

/* If no process is known, it may have some. */
static void a_silent_gpu_makes_an_empty_list_unknown(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    struct gp_snapshot *s = machine(2, 0);
    s->process_count = s->devices[0].process_count = s->devices[1].process_count = 0;
    gp_ui_take(&ui, s, 1);
    check_has(&ui, " processes 0 ");
    check_has(&ui, " no process uses a GPU");
    s->devices[1].status = GP_STATUS_LOST;
    s->devices[1].status_text = "GPU is lost";
    check_has(&ui, " processes unknown ");
    check_has(&ui, " unknown: no answer from a GPU");
    press(&ui, "0");
    check_has(&ui, " no process uses GPU 0");
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s_orders_gpus_that_have_the_keys),
        cmocka_unit_test(the_value_of_the_order_is_shown),
        cmocka_unit_test(a_full_grid_begins_with_problems),
        cmocka_unit_test(many_gpus_are_never_left_out),
        cmocka_unit_test(pages_of_gpus_end_at_the_last),
        cmocka_unit_test(cards_and_bars_say_that_there_are_more),
        cmocka_unit_test(the_arrow_is_at_the_selected_gpu),
        cmocka_unit_test(what_the_user_selects_stays),
        cmocka_unit_test(rows_stay_below_a_click),
        cmocka_unit_test(tab_needs_no_gpus),
        cmocka_unit_test(the_cursor_holds_on_to_the_next_process),
        cmocka_unit_test(the_cursor_comes_back_from_the_gpus),
        cmocka_unit_test(escape_drops_the_filter_last),
        cmocka_unit_test(an_empty_list_says_why),
        cmocka_unit_test(the_list_of_columns_reverses),
        cmocka_unit_test(m_says_where_it_shows),
        cmocka_unit_test(keys_stay_beside_a_message),
        cmocka_unit_test(esc_says_what_it_takes_back),
        cmocka_unit_test(a_silent_gpu_says_so),
        cmocka_unit_test(a_silent_gpu_makes_an_empty_list_unknown),
    };
    return cmocka_run_group_tests_name("tui_panes", tests, NULL, NULL);
}
