/* The live monitor without a terminal: pictures, keys, rows. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "golden.h"
#include "proc/signal.h"
#include "tui/columns.h"
#include "tui/gpus.h"
#include "tui/proc_table.h"
#include "tui/theme.h"
#include "tui_machine.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- pictures ---- */

static void screens_of_every_size(void **state)
{
    (void)state;
    static const int sizes[][2] = {{80, 24}, {200, 60}, {40, 10}, {20, 4}, {1, 1}};
    static const size_t gpus[] = {0, 1, 2, 8, 16, 72};
    for (size_t s = 0; s < GP_ARRAY_LEN(sizes); s++) {
        struct gp_strbuf all = GP_STRBUF_INIT(1 << 20);
        char name[64];
        for (size_t g = 0; g < GP_ARRAY_LEN(gpus); g++) {
            struct gp_ui ui;
            watch(&ui, gpus[g]);
            gp_strbuf_addf(&all, "==== %zu GPUs\n%s", gpus[g],
                           picture(&ui, sizes[s][0], sizes[s][1]));
            assert_true(gp_ui_fini(&ui));
        }
        (void)snprintf(name, sizeof(name), "top-%dx%d.txt", sizes[s][0], sizes[s][1]);
        golden_check(name, all.buf, all.len);
        gp_strbuf_fini(&all);
    }
}

static void every_density_and_the_windows(void **state)
{
    (void)state;
    static const char *const keys[] = {"g", "gg",        "ggg", "gggg",  "v",  "m", "}", "?",
                                       "f", "fuser:bob", "x",   "xx",    "t",  "w", "C", "s",
                                       "u", "!",         "\t1", "1\t\n", "  ", "H", "a", "e"};
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 20);
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++) {
        struct gp_ui ui;
        watch(&ui, 2);
        press(&ui, keys[i]);
        gp_strbuf_addf(&all, "==== %s\n%s", keys[i], picture(&ui, 80, 24));
        assert_true(gp_ui_fini(&ui));
    }
    golden_check("top-keys.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
}

/* ---- pictures for the documents ---- */

/* Loads as those of training are: high, with dips. */
static void work(struct gp_snapshot *s, unsigned tick)
{
    static const char *const users[] = {"alice", "alice", "bob", "carol"};
    static const char *const commands[] = {"python train.py --config llama-8b.yaml",
                                           "python train.py --config llama-8b.yaml",
                                           "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2",
                                           "python -m ipykernel_launcher -f kernel-7.json"};
    uint64_t now_ns = s->mono_ns;
    for (size_t g = 0; g < s->device_count; g++) {
        struct gp_device *d = &s->devices[g];
        unsigned noise = (tick * 7919 + (unsigned)g * 104729) % 13;
        unsigned phase = (tick + 9 * (unsigned)g) % 45;
        int64_t load = g == 7 ? 0 : phase < 4 ? 20 + 9 * phase : 99 - noise / 2 - (g == 4 ? 30 : 0);
        gp_value_set_int(device_value(d, GP_UTILIZATION_GPU), load, now_ns);
        gp_value_set_int(device_value(d, GP_UTILIZATION_MEMORY), load * 55 / 100, now_ns);
        gp_value_set_real(device_value(d, GP_POWER_DRAW), 70 + 6.1 * (double)load, now_ns);
        gp_value_set_int(device_value(d, GP_TEMPERATURE_GPU), 33 + load / 3 + (int)g % 4, now_ns);
        gp_value_set_int(device_value(d, GP_MEMORY_USED),
                         (g == 7 ? INT64_C(23) : 61 + (int64_t)g * 5 % 17) * GIB, now_ns);
        gp_value_set_real(device_value(d, GP_PCIE_RX), 1.1e9 + 1e8 * noise, now_ns);
        gp_value_set_real(device_value(d, GP_PCIE_TX), 4e8 + 5e7 * noise, now_ns);
        gp_value_set_real(device_value(d, GP_NVLINK_RATE_RX), 1.2e9 * (double)load, now_ns);
        gp_value_set_real(device_value(d, GP_NVLINK_RATE_TX), 1.2e9 * (double)load, now_ns);
        gp_value_set_real(device_value(d, GP_GPM_SM), (double)load * 0.92, now_ns);
        gp_value_set_int(device_value(d, GP_REASONS_ACTIVE), load > 95 ? 4 : 0, now_ns);
    }
    for (size_t i = 0; i < s->process_count; i++) {
        struct gp_process *p = &s->processes[i];
        int64_t pid = process_value(p, GP_PID)->i;
        size_t kind = (size_t)(pid - 1000) * 4 / (2 * s->device_count + 1);
        gp_value_set_int(process_value(p, GP_PID), 81000 + 7 * (pid - 1000), now_ns);
        gp_value_set_text(process_value(p, GP_PROCESS_USER), users[kind % 4], now_ns);
        gp_value_set_text(process_value(p, GP_PROCESS_COMMAND), commands[kind % 4], now_ns);
        gp_value_set_int(process_value(p, GP_PROCESS_MEMORY), (28 + pid % 5) * (int64_t)GIB,
                         now_ns);
        gp_value_set_int(process_value(p, GP_PROCESS_SM), kind == 3 ? 0 : 40 + pid % 9, now_ns);
        gp_value_set_int(process_value(p, GP_PROCESS_MEM), kind == 3 ? 0 : 22 + pid % 5, now_ns);
        gp_value_set_int(process_value(p, GP_PROCESS_RSS), (6 + pid % 7) * (int64_t)GIB, now_ns);
    }
}

/* As a terminal would be sent it, in the colours of the default theme or without any. */
static void add_colored(struct gp_strbuf *sb, const struct gp_cells *cells, bool color)
{
    const struct gp_look *looks = gp_theme_looks(GP_THEME_DEFAULT, false);
    for (int y = 0; y < cells->h; y++) {
        uint32_t ink = GP_INK_PLAIN;
        for (int x = 0; x < cells->w; x++) {
            struct gp_cell cell = cells->cells[y * cells->w + x];
            struct gp_cells one = {1, 1, &cell};
            const struct gp_look *look = &looks[cell.ink];
            unsigned attrs = color ? look->attrs : look->no_color;
            if (cell.ink != ink) {
                gp_strbuf_adds(sb, "\033[0");
                if (color && look->fg >= 0)
                    gp_strbuf_addf(sb, ";38;5;%d", look->fg);
                if (attrs & GP_ATTR_BOLD)
                    gp_strbuf_adds(sb, ";1");
                if (attrs & GP_ATTR_UNDERLINE)
                    gp_strbuf_adds(sb, ";4");
                if (attrs & GP_ATTR_REVERSE)
                    gp_strbuf_adds(sb, ";7");
                gp_strbuf_addc(sb, 'm');
            }
            ink = cell.ink;
            if (cell.cp == ' ')
                gp_strbuf_addc(sb, ' ');
            else if (cell.cp)
                cells_text(sb, &one);
            if (sb->len > 0 && sb->buf[sb->len - 1] == '\n')
                gp_strbuf_truncate(sb, sb->len - 1);
        }
        gp_strbuf_adds(sb, ink == GP_INK_PLAIN ? "\n" : "\033[0m\n");
    }
}

/* The CPUs of each process are busy for a while, and then less so. */
static void use_cpus(struct gp_snapshot *s, unsigned tick)
{
    for (size_t i = 0; i < s->process_count; i++) {
        const int64_t pid = process_value(&s->processes[i], GP_PID)->i;
        const double part = (double)((tick / 8 + (unsigned)pid * 5) % 9) / 8;
        gp_value_set_real(process_value(&s->processes[i], GP_PROCESS_CPU),
                          20 + (double)(pid % 170) * part, s->mono_ns);
    }
}

/* scripts/pictures.py draws them for the README, and those to compare with other monitors. */
static void pictures_for_the_documents(void **state)
{
    (void)state;
    static const struct {
        const char *name, *keys;
        size_t gpus;
        int w, h;
    } pictures[] = {{"top-picture-1.ansi", "", 1, 80, 24},
                    {"top-picture-8.ansi", "", 8, 80, 24},
                    {"top-picture-wide.ansi", "", 8, 200, 60},
                    {"top-picture-compare-8-120x40.ansi", "", 8, 120, 40},
                    {"top-picture-compare-64-80x24.ansi", "", 64, 80, 24},
                    {"top-picture-compare-64-120x40.ansi", "", 64, 120, 40},
                    {"top-picture-compare-64-200x60.ansi", "", 64, 200, 60},
                    {"top-picture-compare-tree-120x40.ansi", "t", 8, 120, 40},
                    {"top-picture-compare-help-80x24.ansi", "?", 8, 80, 24}};
    for (size_t i = 0; i < GP_ARRAY_LEN(pictures); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
        struct gp_cells cells = {0, 0, NULL};
        struct gp_ui ui;
        gp_ui_init(&ui);
        assert_int_equal(gp_cells_resize(&cells, pictures[i].w, pictures[i].h), 0);
        for (unsigned tick = 0; tick < 180; tick++) {
            struct gp_snapshot *s = machine(pictures[i].gpus, tick);
            work(s, tick);
            if (pictures[i].w >= GP_CPU_PAST_FROM)
                use_cpus(s, tick);
            gp_ui_take(&ui, s, GP_NS_PER_MS);
            gp_ui_draw(&ui, &cells, "14:02");
        }
        press(&ui, pictures[i].keys);
        gp_ui_draw(&ui, &cells, "14:02");
        add_colored(&sb, &cells, true);
        golden_check(pictures[i].name, sb.buf, sb.len);
        gp_strbuf_fini(&sb);
        gp_cells_fini(&cells);
        assert_true(gp_ui_fini(&ui));
    }
}

/* scripts/pictures.py makes an animation of it: what is pressed, and for how many seconds the
 * monitor is watched after that. j: the cursor goes down. */
static void a_movie_for_the_documents(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        unsigned seconds;
    } scenes[] = {{"", 5},       {"j", 1}, {"j", 1},      {"j", 1},   {"f", 1},
                  {"vllm\n", 3}, {"f", 1}, {"\x15\n", 1}, {"3", 3},   {"3", 1},
                  {"!", 3},      {"q", 1}, {"g", 6},      {"gggg", 1}};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_cells cells = {0, 0, NULL};
    struct gp_ui ui;
    unsigned tick = 0;
    gp_ui_init(&ui);
    assert_int_equal(gp_cells_resize(&cells, 80, 24), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(scenes); i++) {
        for (const char *key = scenes[i].keys; *key; key++)
            (void)gp_ui_key(&ui, *key == 'j' ? GP_KEY_DOWN : *key == '\n' ? GP_KEY_ENTER : *key);
        unsigned end = tick + scenes[i].seconds + (tick ? 0 : 180); /* graphs begin with a past */
        for (; tick < end; tick++) {
            struct gp_snapshot *s = machine(8, tick);
            work(s, tick);
            gp_ui_take(&ui, s, GP_NS_PER_MS);
            if (tick < 180)
                continue;
            gp_ui_draw(&ui, &cells, "14:02");
            gp_strbuf_addf(&sb, "==== %u\n", tick - 180);
            add_colored(&sb, &cells, true);
        }
    }
    golden_check("top-movie.ansi", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
    gp_cells_fini(&cells);
    assert_true(gp_ui_fini(&ui));
}

/* What a terminal in another locale gets. */
static void add_ascii(struct gp_strbuf *sb, const struct gp_cells *cells)
{
    for (size_t i = 0; i < (size_t)cells->w * (size_t)cells->h; i++) {
        struct gp_cell *cell = &cells->cells[i];
        cell->cp = cell->cp ? gp_cell_ascii(cell->cp) : ' ';
    }
    cells_text(sb, cells);
}

static void screens_in_colour_without_and_in_ascii(void **state)
{
    (void)state;
    static const int sizes[][2] = {{80, 24}, {200, 60}, {40, 10}, {20, 4}};
    static const size_t gpus[] = {0, 1, 8, 72};
    struct gp_strbuf colored = GP_STRBUF_INIT(4 << 20);
    struct gp_strbuf plain = GP_STRBUF_INIT(4 << 20);
    struct gp_strbuf ascii = GP_STRBUF_INIT(4 << 20);
    for (size_t s = 0; s < GP_ARRAY_LEN(sizes); s++)
        for (size_t g = 0; g < GP_ARRAY_LEN(gpus); g++) {
            struct gp_strbuf *const all[] = {&colored, &plain, &ascii};
            struct gp_cells cells = {0, 0, NULL};
            struct gp_ui ui;
            watch(&ui, gpus[g]);
            assert_int_equal(gp_cells_resize(&cells, sizes[s][0], sizes[s][1]), 0);
            gp_ui_draw(&ui, &cells, "14:02");
            for (size_t i = 0; i < GP_ARRAY_LEN(all); i++)
                gp_strbuf_addf(all[i], "==== %dx%d, %zu GPUs\n", sizes[s][0], sizes[s][1], gpus[g]);
            add_colored(&colored, &cells, true);
            add_colored(&plain, &cells, false);
            add_ascii(&ascii, &cells);
            gp_cells_fini(&cells);
            assert_true(gp_ui_fini(&ui));
        }
    golden_check("top-color.ansi", colored.buf, colored.len);
    golden_check("top-no-color.ansi", plain.buf, plain.len);
    golden_check("top-ascii.txt", ascii.buf, ascii.len);
    gp_strbuf_fini(&colored);
    gp_strbuf_fini(&plain);
    gp_strbuf_fini(&ascii);
}

static void nothing_lies_outside_or_on_something_else(void **state)
{
    (void)state;
    static const int gpus[] = {0, 1, 2, 7, 8, 16, 72, 300};
    for (int h = 1; h < 70; h++)
        for (int w = 1; w < 220; w += 7)
            for (size_t g = 0; g < GP_ARRAY_LEN(gpus); g++)
                for (int i = 0; i <= GP_DENSITY_AUTO * 3 + 2; i++) {
                    int d = i / 3;
                    int flat = gpus[g] * (i % 3) / 2;
                    struct gp_layout l =
                        gp_layout_of(&(struct gp_layout_options){.w = w,
                                                                 .h = h,
                                                                 .gpus = gpus[g],
                                                                 .flat = flat,
                                                                 .density = (enum gp_density)d});
                    assert_true(l.header.h + l.gpus.h + l.processes.h + l.keys.h <= h);
                    assert_true(l.gpus.y >= l.header.h);
                    assert_true(l.processes.y >= l.gpus.y + l.gpus.h);
                    assert_true(l.shown >= 0 && l.shown <= gpus[g]);
                    assert_true(l.processes.h == 0 ||
                                l.processes.y + l.processes.h <= h - l.keys.h);
                    int high = l.density < GP_DENSITY_LINE ? l.shown - flat : l.shown;
                    int rows = (high + l.columns - 1) / l.columns;
                    assert_true(rows * l.gpu_height + l.shown - high <= l.gpus.h || l.shown == 0 ||
                                l.shown < gpus[g]);
                    assert_true((l.shown + l.columns - 1) / l.columns <= l.gpus.h);
                    if (h >= 24 && gpus[g] <= 72 && w >= 80)
                        assert_true(l.shown == gpus[g] || d != GP_DENSITY_AUTO);
                }
}

static void the_room_is_used(void **state)
{
    (void)state;
    static const struct {
        int w, h, gpus, flat;
        enum gp_density density;
        int columns, height, shown;
    } cases[] = {
        {40, 12, 8, 0, GP_DENSITY_GRID, 2, 1, 8},    {60, 18, 8, 0, GP_DENSITY_LINE, 1, 1, 8},
        {80, 24, 8, 0, GP_DENSITY_LINE, 1, 1, 8},    {80, 24, 16, 0, GP_DENSITY_GRID, 2, 1, 16},
        {80, 24, 64, 0, GP_DENSITY_GRID, 6, 1, 64},  {120, 40, 8, 0, GP_DENSITY_BAR, 1, 3, 8},
        {119, 40, 8, 0, GP_DENSITY_BAR, 1, 2, 8},    {200, 60, 8, 0, GP_DENSITY_CARD, 2, 12, 8},
        {120, 40, 64, 0, GP_DENSITY_GRID, 3, 1, 64}, {80, 24, 5, 4, GP_DENSITY_CARD, 1, 8, 5},
        {80, 24, 1, 1, GP_DENSITY_CARD, 1, 6, 1},    {120, 40, 8, 4, GP_DENSITY_CARD, 1, 6, 8},
        {40, 6, 8, 0, GP_DENSITY_GRID, 4, 1, 8},     {200, 60, 300, 0, GP_DENSITY_GRID, 7, 1, 300},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_layout l = gp_layout_of(&(struct gp_layout_options){.w = cases[i].w,
                                                                      .h = cases[i].h,
                                                                      .gpus = cases[i].gpus,
                                                                      .flat = cases[i].flat,
                                                                      .density = GP_DENSITY_AUTO});
        if (l.density != cases[i].density || l.columns != cases[i].columns ||
            l.gpu_height != cases[i].height || l.shown != cases[i].shown)
            fail_msg("%dx%d, %d GPUs: %d, %d columns of %d lines, %d shown", cases[i].w, cases[i].h,
                     cases[i].gpus, (int)l.density, l.columns, l.gpu_height, l.shown);
    }
}

static void storms_of_keys_and_sizes(void **state)
{
    (void)state;
    struct gp_ui ui;
    uint32_t random = 1;
    watch(&ui, 8);
    ui.prefs.read_only = true; /* pids of the test's making may be somebody's */
    for (int i = 0; i < 4000; i++) {
        random = random * 1664525 + 1013904223;
        int key = (int)(random >> 16) % 128;
        if (key == 0)
            key = GP_KEY_UP + (int)(random >> 8) % 12;
        (void)gp_ui_key(&ui, key);
        if (i % 8 == 0)
            (void)picture(&ui, 1 + (int)(random >> 12) % 300, 1 + (int)(random >> 20) % 100);
        if (i % 50 == 0)
            gp_ui_take(&ui, machine(random % 20, (unsigned)i), GP_NS_PER_MS);
    }
    assert_true(gp_ui_fini(&ui));
}

/* ---- cells ---- */

static void wide_characters_are_never_halved(void **state)
{
    (void)state;
    struct gp_cells cells = {0, 0, NULL};
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    assert_int_equal(gp_cells_resize(&cells, 6, 1), 0);
    struct gp_box box = {&cells, 0, 0, 6, 1};
    (void)gp_draw(&box, 0, 0, GP_INK_PLAIN, "日本語x");
    cells_text(&sb, &cells);
    assert_string_equal(sb.buf, "日本語\n");
    (void)gp_draw(&box, 1, 0, GP_INK_PLAIN, "a");
    gp_strbuf_reset(&sb);
    cells_text(&sb, &cells);
    assert_string_equal(sb.buf, " a本語\n");
    (void)gp_draw(&box, 2, 0, GP_INK_PLAIN, "b");
    gp_strbuf_reset(&sb);
    cells_text(&sb, &cells);
    assert_string_equal(sb.buf, " ab 語\n");
    gp_cells_clear(&cells);
    gp_draw_left(&box, 0, 0, 4, GP_INK_PLAIN, "日本語");
    gp_strbuf_reset(&sb);
    cells_text(&sb, &cells);
    assert_string_equal(sb.buf, "日 …\n");
    gp_strbuf_fini(&sb);
    gp_cells_fini(&cells);
}

static void every_character_of_ours_has_one_in_ascii(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_cells cells = {0, 0, NULL};
    watch(&ui, 2);
    assert_int_equal(gp_cells_resize(&cells, 80, 24), 0);
    gp_ui_draw(&ui, &cells, "14:02");
    for (int i = 0; i < 80 * 24; i++)
        if (cells.cells[i].cp && cells.cells[i].cp < 0x2e80 && cells.cells[i].cp != '?')
            assert_true(gp_cell_ascii(cells.cells[i].cp) != '?');
    gp_cells_fini(&cells);
    assert_true(gp_ui_fini(&ui));
}

static void columns_give_way_by_rank(void **state)
{
    (void)state;
    static const struct gp_column columns[] = {
        {"a", 4, 0, 0, false}, {"b", 4, 2, 0, false}, {"c", 4, 1, 1, true}};
    struct gp_column_place places[3];
    gp_columns_place(columns, 3, 20, places);
    assert_int_equal(places[0].x, 0);
    assert_int_equal(places[1].x, 5);
    assert_int_equal(places[2].x, 10);
    assert_int_equal(places[2].w, 10);
    gp_columns_place(columns, 3, 13, places);
    assert_int_equal(places[1].w, 0);
    assert_int_equal(places[2].x, 5);
    assert_int_equal(places[2].w, 8);
    gp_columns_place(columns, 3, 5, places);
    assert_int_equal(places[2].w, 0);
    assert_int_equal(gp_columns_place_apart(columns, 3, 30, 2, places), 14);
    assert_int_equal(places[1].x, 6);
    assert_int_equal(places[2].x, 12);
    assert_int_equal(places[2].w, 18);
    assert_int_equal(gp_columns_place_apart(columns, 3, 15, 2, places), 5);
    assert_int_equal(places[1].w, 0);
    gp_columns_place(columns, 3, 0, places);
    assert_int_equal(places[0].w, 0);
}

/* ---- history ---- */

static int value_at(const struct gp_track *track, uint64_t end_ns, uint64_t step_ns)
{
    float value;
    gp_track_read(track, GP_SERIES_GPU, end_ns, step_ns, &value, 1);
    return (int)value;
}

static void a_gap_stays_a_gap(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_device key = {.index = 0};
    for (unsigned tick = 0; tick < 10; tick++) {
        struct gp_snapshot *s = machine(1, tick);
        if (tick == 5)
            device_value(&s->devices[0], GP_UTILIZATION_GPU)->status = GP_STATUS_STALE;
        if (tick != 7)
            gp_history_add(&history, s, GP_NS_PER_S);
        gp_snapshot_free(s);
    }
    const struct gp_track *track = gp_history_find(&history, &key);
    assert_non_null(track);
    for (unsigned tick = 0; tick < 10; tick++) {
        uint64_t at_ns = (NOW_S + tick) * GP_NS_PER_S;
        int expected = tick == 5 || tick == 7 ? -1 : (int)tick * 7;
        uint64_t half_ns = GP_NS_PER_S / 2;
        assert_int_equal(value_at(track, at_ns + half_ns, GP_NS_PER_S), expected);
        /* a finer step finds the same, and the gap */
        assert_int_equal(value_at(track, at_ns + half_ns, GP_NS_PER_S / 10), expected);
    }
    /* a coarser one has the highest */
    assert_int_equal(value_at(track, (NOW_S + 4) * GP_NS_PER_S, 4 * GP_NS_PER_S), 28);
    assert_int_equal(value_at(track, (NOW_S + 8) * GP_NS_PER_S, 4 * GP_NS_PER_S), 56);
    /* several steps at once are like each of them, also at the borders and before the first sample
     */
    const uint64_t ends[] = {NOW_S * GP_NS_PER_S, (NOW_S + 9) * GP_NS_PER_S,
                             (NOW_S + 9) * GP_NS_PER_S + GP_NS_PER_S / 3,
                             (NOW_S + 12) * GP_NS_PER_S};
    const uint64_t steps[] = {GP_NS_PER_S / 3, GP_NS_PER_S, 5 * GP_NS_PER_S / 2, 20 * GP_NS_PER_S};
    for (size_t e = 0; e < GP_ARRAY_LEN(ends); e++)
        for (size_t k = 0; k < GP_ARRAY_LEN(steps); k++) {
            float values[40];
            gp_track_read(track, GP_SERIES_GPU, ends[e], steps[k], values, GP_ARRAY_LEN(values));
            for (size_t i = 0; i < GP_ARRAY_LEN(values); i++)
                assert_int_equal((int)values[i], value_at(track, ends[e] - i * steps[k], steps[k]));
        }
    gp_track_read(track, GP_SERIES_GPU, ends[0], steps[0], NULL, 0);
    float none = 0;
    gp_track_read(NULL, GP_SERIES_GPU, ends[0], steps[0], &none, 1);
    assert_int_equal((int)none, -1);
    /* the facts are of samples, whatever the steps: 14, 21 and 28; the fifth is missing */
    struct gp_track_facts facts;
    assert_true(
        gp_track_look(track, GP_SERIES_GPU, (NOW_S + 5) * GP_NS_PER_S, 4 * GP_NS_PER_S, &facts));
    assert_int_equal((int)facts.mean, 21);
    assert_int_equal((int)facts.highest, 28);
    assert_int_equal((int)facts.last, 28);
    assert_false(gp_track_look(NULL, GP_SERIES_GPU, NOW_S * GP_NS_PER_S, GP_NS_PER_S, &facts));
    key.index = 1;
    assert_null(gp_history_find(&history, &key));
    gp_history_fini(&history);
}

static void an_old_history_is_forgotten(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_device key = {.index = 0};
    for (unsigned tick = 0; tick < GP_TRACK_SAMPLES + 10; tick++) {
        struct gp_snapshot *s = machine(1, tick);
        gp_history_add(&history, s, GP_NS_PER_S);
        gp_snapshot_free(s);
    }
    const struct gp_track *track = gp_history_find(&history, &key);
    uint64_t first_ns = NOW_S * GP_NS_PER_S;
    assert_int_equal(value_at(track, first_ns, GP_NS_PER_S), -1);
    first_ns += 10 * GP_NS_PER_S;
    assert_int_equal(value_at(track, first_ns, GP_NS_PER_S), 70);
    gp_history_fini(&history);
}

/* ---- rows ---- */

static struct gp_proc_order by(const char *text)
{
    struct gp_err err = {0};
    struct gp_proc_order order;
    assert_int_equal(gp_proc_order_parse(text, &order, &err), 0);
    return order;
}

static void a_process_on_two_gpus_is_one_row(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(3, 0);
    struct gp_procs procs = {.rows = NULL};
    const struct gp_procs_options options = {.order = by("pid"), .gpu = -1};
    assert_int_equal(gp_procs_build(&procs, s, &options), 0);
    assert_int_equal(procs.count, 6);
    assert_int_equal(procs.rows[0].pid, 1000);
    assert_string_equal(procs.rows[0].gpus, "0,1");
    assert_int_equal((int64_t)procs.rows[0].memory.n, 2 * (1000 % 9 * (int64_t)GIB));
    assert_string_equal(procs.rows[1].gpus, "0");
    assert_int_equal((int)procs.rows[0].age_s.n, 3 * 3600);
    gp_procs_fini(&procs);
    const struct gp_procs_options one = {.order = by("-pid"), .gpu = 2};
    assert_int_equal(gp_procs_build(&procs, s, &one), 0);
    assert_int_equal(procs.count, 3);
    assert_int_equal(procs.rows[0].pid, 1005);
    gp_procs_fini(&procs);
    gp_snapshot_free(s);
}

static void memory_of_no_process_has_a_row_of_its_own(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(1, 0);
    struct gp_procs procs = {.rows = NULL};
    const struct gp_procs_options options = {.order = by("memory"), .gpu = -1};
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_UNATTRIBUTED), INT64_C(30) * GIB, 1);
    assert_int_equal(gp_procs_build(&procs, s, &options), 0);
    assert_int_equal(procs.count, 3);
    assert_int_equal(procs.rows[0].pid, 0);
    assert_string_equal(procs.rows[0].command, "(not attributed to any listed process)");
    gp_procs_fini(&procs);
    gp_snapshot_free(s);
}

static void filters(void **state)
{
    (void)state;
    static const struct {
        const char *filter;
        size_t rows;
    } cases[] = {{"", 32},       {"alice", 10}, {"user:bob", 11},  {"user:bob cmd:vllm", 2},
                 {"gpu:1", 3},   {"gpu:10", 3}, {"PYTHON", 8},     {"pid:1031", 1},
                 {"type:C", 32}, {"nobody", 0}, {"  alice  ", 10}, {"cmd:日本", 8}};
    struct gp_snapshot *s = machine(16, 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_procs procs = {.rows = NULL};
        const struct gp_procs_options options = {
            .order = by("memory"), .filter = cases[i].filter, .gpu = -1};
        assert_int_equal(gp_procs_build(&procs, s, &options), 0);
        if (procs.count != cases[i].rows)
            fail_msg("'%s' leaves %zu rows", cases[i].filter, procs.count);
        assert_int_equal(procs.count + procs.hidden, 32);
        gp_procs_fini(&procs);
    }
    gp_snapshot_free(s);
}

static void orders_are_stable_and_reversible(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(8, 0);
    for (int order = 0; order < GP_PROC_COLUMN__COUNT; order++) {
        struct gp_procs a = {.rows = NULL};
        struct gp_procs b = {.rows = NULL};
        struct gp_procs_options options = {.gpu = -1};
        gp_proc_order_put(&options.order, (enum gp_proc_column)order);
        assert_int_equal(gp_procs_build(&a, s, &options), 0);
        options.order.by[0].reversed = true;
        assert_int_equal(gp_procs_build(&b, s, &options), 0);
        assert_int_equal(a.count, b.count);
        for (size_t i = 1; i < a.count; i++) {
            const struct gp_proc_row *x = &a.rows[i - 1];
            const struct gp_proc_row *y = &a.rows[i];
            if (order == GP_PROC_MEMORY_COLUMN)
                assert_true(x->memory.n > y->memory.n ||
                            (x->memory.n >= y->memory.n && x->pid < y->pid));
            if (order == GP_PROC_PID_COLUMN)
                assert_true(x->pid < y->pid && b.rows[i - 1].pid > b.rows[i].pid);
            if (order == GP_PROC_USER_COLUMN)
                assert_true(strcmp(x->user, y->user) <= 0);
        }
        gp_procs_fini(&a);
        gp_procs_fini(&b);
    }
    gp_snapshot_free(s);
}

/* ---- keys ---- */

static void every_key_has_one_action_and_every_action_help(void **state)
{
    (void)state;
    for (int a = 1; a < GP_ACTION__COUNT; a++) {
        assert_true(strlen(gp_action_help((enum gp_action)a)) > 3);
        assert_true(strlen(gp_action_keys((enum gp_action)a)) > 0);
    }
    for (int key = 1; key < 128; key++) {
        enum gp_action action = gp_key_action(key, false);
        char name[2] = {(char)key, '\0'};
        if (action && key > ' ' && key < 0x7f && key != '=' && action != GP_ACTION_DIGIT)
            assert_non_null(strstr(gp_action_keys(action), name));
    }
    assert_int_equal(gp_key_action('q', false), GP_ACTION_QUIT);
    assert_int_equal(gp_key_action(GP_KEY_F10, false), GP_ACTION_QUIT);
    assert_int_equal(gp_key_action(GP_KEY_ALT + 'j', false), GP_ACTION_DOWN);
    assert_int_equal(gp_key_action('j', false), GP_ACTION_NONE);
    assert_int_equal(gp_key_action(0, false), GP_ACTION_NONE);
}

static void the_cursor_follows_its_process(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    int64_t pid = ui.procs.rows[ui.chosen].pid;
    assert_int_equal(ui.pin.pid, pid);
    press(&ui, ">I<P");
    assert_int_equal(ui.procs.rows[ui.chosen].pid, pid);
    gp_ui_take(&ui, machine(8, 99), GP_NS_PER_MS);
    assert_int_equal(ui.procs.rows[ui.chosen].pid, pid);
    gp_ui_take(&ui, machine(0, 100), GP_NS_PER_MS); /* it is gone */
    assert_int_equal(ui.chosen, 0);
    (void)gp_ui_key(&ui, GP_KEY_END);
    assert_int_equal(ui.chosen, 0);
    assert_true(gp_ui_fini(&ui));
}

static void typing_a_filter_and_leaving_it(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    press(&ui, "fali");
    check_has(&ui, "filter: ali");
    assert_true(ui.procs.hidden > 0);
    press(&ui, "\n");
    check_has(&ui, "filter ali");
    press(&ui, "fxyz");
    assert_int_equal(ui.procs.count, 0);
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_string_equal(ui.prefs.filter, "ali");
    press(&ui, "f");
    for (int i = 0; i < 5; i++)
        (void)gp_ui_key(&ui, GP_KEY_BACKSPACE);
    press(&ui, "\n/vllm\n");
    assert_non_null(strstr(ui.procs.rows[ui.chosen].command, "vllm"));
    size_t first = ui.chosen;
    press(&ui, "n");
    assert_true(ui.chosen != first);
    press(&ui, "/nosuch\n");
    check_has(&ui, "'nosuch' not found");
    assert_true(gp_ui_fini(&ui));
}

static void pausing_keeps_the_picture(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "z");
    const struct gp_snapshot *held = ui.snapshot;
    gp_ui_take(&ui, machine(8, 50), GP_NS_PER_MS);
    gp_ui_take(&ui, machine(8, 51), GP_NS_PER_MS);
    assert_ptr_equal(ui.snapshot, held);
    check_has(&ui, "PAUSED");
    press(&ui, "z");
    assert_int_equal(ui.snapshot->device_count, 8);
    press(&ui, "zz");
    assert_non_null(ui.snapshot);
    check_has(&ui, "node1");
    assert_true(gp_ui_fini(&ui));
}

static void the_interval_has_steps(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    press(&ui, "+");
    assert_int_equal(ui.prefs.interval_ns, 2 * GP_NS_PER_S);
    press(&ui, "---");
    assert_int_equal(ui.prefs.interval_ns, GP_NS_PER_S / 4);
    press(&ui, "----------");
    assert_int_equal(ui.prefs.interval_ns, GP_NS_PER_S / 10);
    press(&ui, "++++++++++++++");
    assert_int_equal(ui.prefs.interval_ns, 60 * GP_NS_PER_S);
    assert_int_equal(gp_ui_key(&ui, 'q'), GP_UI_QUIT);
    assert_int_equal(gp_ui_key(&ui, 0x0c), GP_UI_REDRAW);
    assert_int_equal(gp_ui_key(&ui, 0x1a), GP_UI_SUSPEND);
    assert_true(gp_ui_fini(&ui));
}

/* ---- signals ---- */

static pid_t start_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (;;)
            (void)pause();
    }
    assert_true(pid > 0);
    return pid;
}

/* It says that it ignores SIGTERM. */
static pid_t start_deaf_child(void)
{
    int fds[2];
    char heard;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGTERM, SIG_IGN);
        for (ssize_t said = write(fds[1], "i", 1); said == 1;)
            (void)pause();
        _exit(1);
    }
    assert_true(pid > 0);
    assert_int_equal(read(fds[0], &heard, 1), 1);
    assert_int_equal(close(fds[0]) | close(fds[1]), 0);
    return pid;
}

static void end_child(pid_t pid, int expected)
{
    int status;
    if (!expected)
        (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), expected ? expected : SIGKILL);
}

static void aim(struct gp_ui *ui, pid_t pid)
{
    struct gp_snapshot *s = machine(1, 0);
    gp_ui_init(ui);
    s->wall_ns = gp_clock_wall_ns();
    gp_value_set_int(process_value(&s->processes[0], GP_PID), pid, 1);
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_USED), 3 * (int64_t)GIB, 1);
    gp_ui_take(ui, s, GP_NS_PER_MS);
    ui->pin.pid = pid;
    press(ui, "M");
}

/* A sample in which no process is on a GPU any more. */
static void take_without_processes(struct gp_ui *ui)
{
    struct gp_snapshot *s = machine(1, 1);
    s->process_count = 0;
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_USED), 0, 1);
    gp_ui_take(ui, s, GP_NS_PER_MS);
}

static void wait_for_end(struct gp_ui *ui)
{
    int fds[GP_UI_FDS];
    gp_ui_fds(ui, fds);
    struct pollfd end = {.fd = fds[3], .events = POLLIN};
    assert_true(end.fd >= 0);
    assert_int_equal(poll(&end, 1, -1), 1);
    gp_ui_collect(ui);
}

static void a_process_is_ended_and_its_memory_comes_back(void **state)
{
    (void)state;
    struct gp_ui ui;
    int fds[GP_UI_FDS];
    char words[64];
    pid_t pid = start_child();
    aim(&ui, pid);
    press(&ui, "k");
    gp_ui_fds(&ui, fds);
    assert_int_equal(fds[3], -1); /* it has been sent nothing */
    check_has(&ui, "─ end this process ─");
    (void)snprintf(words, sizeof(words), "%d bob", (int)pid);
    check_has(&ui, words);
    check_has(&ui, "1.0G");
    check_has(&ui, "Enter: TERM   K: KILL   Esc: cancel");
    press(&ui, "y\n");
    (void)snprintf(words, sizeof(words), "sent TERM to %d", (int)pid);
    check_has(&ui, words);
    wait_for_end(&ui);
    check_has(&ui, "ended; in the last sample it still has memory");
    gp_ui_fds(&ui, fds);
    assert_int_equal(fds[3], -1);
    end_child(pid, SIGTERM);
    take_without_processes(&ui);
    assert_int_equal(ui.mode, GP_UI_WATCH);
    (void)snprintf(words, sizeof(words), "  %d ended, 1.0G free again", (int)pid);
    check_has(&ui, words);
    assert_true(gp_ui_fini(&ui));
}

/* In the tree the cursor may be on the shell, or the terminal, of the monitor. */
static void ancestors_of_the_monitor_are_left_alone(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct gp_ui ui;
        aim(&ui, getppid());
        press(&ui, "k");
        bool is_refused = strstr(ui.message, "is an ancestor of this gpulse") != NULL;
        _exit(is_refused && ui.mode == GP_UI_WATCH ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void what_ignores_a_signal_is_killed(void **state)
{
    (void)state;
    struct gp_ui ui;
    pid_t pid = start_deaf_child();
    aim(&ui, pid);
    press(&ui, "k\n");
    ui.targets.sent_ns -= 6 * GP_NS_PER_S;
    check_has(&ui, "TERM sent 6 s ago, still there");
    check_has(&ui, "K: KILL   Esc: back");
    (void)gp_ui_key(&ui, GP_KEY_DOWN); /* the list of signals is gone */
    assert_int_equal(ui.menu.chosen, 0);
    take_without_processes(&ui); /* it lives, but not on a GPU */
    assert_int_equal(ui.mode, GP_UI_SIGNAL);
    press(&ui, "K");
    check_has(&ui, "sent KILL to");
    end_child(pid, SIGKILL);
    take_without_processes(&ui);
    assert_int_equal(ui.mode, GP_UI_WATCH);
    check_has(&ui, "ended, 1.0G free again");
    assert_true(gp_ui_fini(&ui));
}

static void another_signal_and_none(void **state)
{
    (void)state;
    struct gp_ui ui;
    pid_t pid = start_child();
    aim(&ui, pid);
    press(&ui, "k");
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_int_equal(ui.mode, GP_UI_WATCH);
    press(&ui, "k");
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    check_has(&ui, "Enter: KILL   Esc: cancel");
    press(&ui, "n");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_int_equal(kill(pid, 0), 0);
    ui.prefs.keys = GP_KEYS_VI;
    press(&ui, "KK"); /* a key that is held down does not kill */
    check_has(&ui, "Enter: KILL   Esc: cancel");
    press(&ui, "q");
    assert_int_equal(kill(pid, 0), 0);
    ui.prefs.read_only = true;
    press(&ui, "K");
    check_has(&ui, "read-only");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    end_child(pid, 0);
    assert_true(gp_ui_fini(&ui));
}

/* The table may show less: the processes of one GPU, or those that match a filter. */
static void what_is_ended_is_shown_of_all_gpus(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_snapshot *s = machine(2, 0);
    pid_t pid = start_child();
    gp_ui_init(&ui);
    s->wall_ns = gp_clock_wall_ns();
    for (size_t i = 0; i < s->process_count; i++) {
        if (gp_process_value(&s->processes[i], GP_PID)->i != 1000)
            continue;
        gp_value_set_int(process_value(&s->processes[i], GP_PID), pid, 1);
        gp_value_set_int(process_value(&s->processes[i], GP_PROCESS_MEMORY), INT64_C(7) * GIB, 1);
    }
    gp_ui_take(&ui, s, GP_NS_PER_MS);
    ui.pin.pid = pid;
    press(&ui, "1");
    assert_int_equal(ui.procs.rows[ui.chosen].pid, pid);
    check_has(&ui, " 7.0G");
    press(&ui, " ");
    (void)snprintf(ui.prefs.filter, sizeof(ui.prefs.filter), "user:nobody");
    press(&ui, "M");
    assert_int_equal(ui.procs.count, 0);
    press(&ui, "k");
    check_has(&ui, "  0,1    14.0G");
    press(&ui, "q");
    end_child(pid, 0);
    assert_true(gp_ui_fini(&ui));
}

static void a_pid_with_a_new_owner_is_left_alone(void **state)
{
    (void)state;
    struct gp_err err = {0};
    int fd = -1;
    pid_t pid = start_child();
    uint64_t now_ns = gp_clock_wall_ns();
    assert_int_equal(gp_proc_hold(pid, now_ns - 3600 * GP_NS_PER_S, &fd, &err), GP_EFAIL);
    assert_non_null(strstr(err.text, "was recycled"));
    assert_int_equal(gp_proc_hold(1, now_ns, &fd, &err), GP_EPERM);
    assert_int_equal(gp_proc_hold(getpid(), now_ns, &fd, &err), GP_EPERM);
    assert_int_equal(gp_proc_hold(-5, now_ns, &fd, &err), GP_EPERM);
    assert_int_equal(gp_proc_hold(pid, now_ns, &fd, &err), 0);
    end_child(pid, 0);
    assert_int_equal(gp_proc_signal(fd, SIGTERM, &err), GP_EFAIL);
    assert_non_null(strstr(err.text, "exited"));
    assert_int_equal(close(fd), 0);
    assert_int_equal(gp_proc_hold(pid, now_ns, &fd, &err), GP_EFAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(screens_of_every_size),
        cmocka_unit_test(every_density_and_the_windows),
        cmocka_unit_test(screens_in_colour_without_and_in_ascii),
        cmocka_unit_test(pictures_for_the_documents),
        cmocka_unit_test(a_movie_for_the_documents),
        cmocka_unit_test(nothing_lies_outside_or_on_something_else),
        cmocka_unit_test(the_room_is_used),
        cmocka_unit_test(storms_of_keys_and_sizes),
        cmocka_unit_test(wide_characters_are_never_halved),
        cmocka_unit_test(every_character_of_ours_has_one_in_ascii),
        cmocka_unit_test(columns_give_way_by_rank),
        cmocka_unit_test(a_gap_stays_a_gap),
        cmocka_unit_test(an_old_history_is_forgotten),
        cmocka_unit_test(a_process_on_two_gpus_is_one_row),
        cmocka_unit_test(memory_of_no_process_has_a_row_of_its_own),
        cmocka_unit_test(filters),
        cmocka_unit_test(orders_are_stable_and_reversible),
        cmocka_unit_test(every_key_has_one_action_and_every_action_help),
        cmocka_unit_test(the_cursor_follows_its_process),
        cmocka_unit_test(typing_a_filter_and_leaving_it),
        cmocka_unit_test(pausing_keeps_the_picture),
        cmocka_unit_test(the_interval_has_steps),
        cmocka_unit_test(a_process_is_ended_and_its_memory_comes_back),
        cmocka_unit_test(ancestors_of_the_monitor_are_left_alone),
        cmocka_unit_test(what_ignores_a_signal_is_killed),
        cmocka_unit_test(what_is_ended_is_shown_of_all_gpus),
        cmocka_unit_test(another_signal_and_none),
        cmocka_unit_test(a_pid_with_a_new_owner_is_left_alone),
    };
    return cmocka_run_group_tests_name("tui", tests, NULL, NULL);
}
