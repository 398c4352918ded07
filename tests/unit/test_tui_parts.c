/* The parts of the live monitor: preferences, rows in order and as a tree, pages, alerts, clicks,
 * what is read out. */
#include "tui_machine.h"

#include "base/err.h"
#include "tui/alerts.h"
#include "tui/page.h"
#include "tui/plain.h"
#include "tui/theme.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- preferences ---- */

static void set(struct gp_prefs *prefs, const char *name, const char *text, int expected)
{
    struct gp_err err = {0};
    int pref = 0;
    while (pref < GP_PREF__COUNT && strcmp(gp_pref_table[pref].name, name) != 0)
        pref++;
    assert_true(pref < GP_PREF__COUNT);
    int r = gp_pref_set(prefs, (enum gp_pref)pref, text, &err);
    if (r != expected)
        fail_msg("%s = %s gives %d: %s", name, text, r, err.text);
    assert_true(r == 0 || strlen(err.text) > 10);
}

static void every_preference_reads_what_it_writes(void **state)
{
    (void)state;
    struct gp_prefs prefs;
    gp_prefs_init(&prefs);
    for (int p = 0; p < GP_PREF__COUNT; p++)
        for (int i = 0; i < 12; i++) {
            struct gp_prefs copy = prefs;
            struct gp_err err = {0};
            struct gp_strbuf sb = GP_STRBUF_INIT(GP_PREF_TEXT_SIZE);
            gp_pref_format(&sb, &prefs, (enum gp_pref)p);
            assert_int_equal(gp_pref_set(&copy, (enum gp_pref)p, sb.buf, &err), 0);
            assert_memory_equal(&copy, &prefs, sizeof(prefs));
            gp_strbuf_fini(&sb);
            gp_pref_step(&prefs, (enum gp_pref)p, i % 5 != 4);
        }
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    char longer[GP_PREF_TEXT_SIZE + 1];
    struct gp_prefs prefs;
    struct gp_prefs before;
    gp_prefs_init(&prefs);
    before = prefs;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    set(&prefs, "interval", "fast", GP_EUSAGE);
    set(&prefs, "interval", "1ms", GP_EUSAGE);
    set(&prefs, "view", "cards", GP_EUSAGE);
    set(&prefs, "view", "", GP_EUSAGE);
    set(&prefs, "tree", "perhaps", GP_EUSAGE);
    set(&prefs, "sort", "size", GP_EUSAGE);
    set(&prefs, "columns", "pid,size", GP_EUSAGE);
    set(&prefs, "filter", longer, GP_EUSAGE);
    set(&prefs, "filter", "a\nb", GP_EUSAGE);
    assert_memory_equal(&prefs, &before, sizeof(prefs));
    set(&prefs, "interval", "250ms", 0);
    assert_int_equal(prefs.interval_ns, 250 * GP_NS_PER_MS);
    set(&prefs, "tree", "yes", 0);
    assert_int_equal(prefs.tree, GP_TREE_YES);
    set(&prefs, "tree", "job", 0);
    assert_int_equal(prefs.tree, GP_TREE_JOB);
    set(&prefs, "theme", "contrast", 0);
    assert_string_equal(prefs.theme, "contrast");
    set(&prefs, "theme", "night", 0); /* of a file */
    set(&prefs, "theme", "../night", GP_EUSAGE);
    set(&prefs, "theme", "", GP_EUSAGE);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void read_file(const char *path, char *ret, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(ret, 1, size - 1, file);
    ret[n] = '\0';
    assert_int_equal(fclose(file), 0);
}

static void the_file_keeps_what_is_not_ours(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpulse-prefs-XXXXXX";
    char path[128];
    char text[8192];
    struct gp_err err = {0};
    struct gp_prefs prefs;
    struct gp_prefs loaded;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/a/b/config.ini", folder);
    gp_prefs_init(&prefs);
    assert_int_equal(gp_prefs_load(&prefs, path, &err), 0); /* there is none: no error */
    prefs.tree = GP_TREE_USER;
    (void)snprintf(prefs.theme, sizeof(prefs.theme), "safe");
    (void)snprintf(prefs.filter, sizeof(prefs.filter), "user=alice gpu:1,2");
    assert_int_equal(gp_prefs_save(&prefs, path, &err), 0);
    gp_prefs_init(&loaded);
    assert_int_equal(gp_prefs_load(&loaded, path, &err), 0);
    assert_memory_equal(&loaded, &prefs, sizeof(prefs));

    write_file(path, "; mine\n[other]\nview = anything\n[top]\nview = grid\nviews = 1\n"
                     "tree = perhaps\n[last]\nx = y");
    gp_prefs_init(&loaded);
    assert_int_equal(gp_prefs_load(&loaded, path, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "'views'"));
    assert_non_null(strstr(err.text, path));
    assert_int_equal(loaded.view, GP_DENSITY_GRID); /* what can be read is taken */
    assert_int_equal(gp_prefs_save(&loaded, path, &err), 0);
    read_file(path, text, sizeof(text));
    assert_ptr_equal(strstr(text, "; mine\n[other]\nview = anything\n[last]\nx = y\n[top]\n"),
                     text);
    assert_null(strstr(text, "views"));

    write_file(path, "[top\nview = grid\n");
    assert_int_equal(gp_prefs_load(&loaded, path, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, ":1:"));
    assert_int_equal(gp_prefs_save(&loaded, "/proc/nowhere/config.ini", &err), GP_EIO);

    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/a/b", folder);
    (void)rmdir(path);
    (void)snprintf(path, sizeof(path), "%s/a", folder);
    (void)rmdir(path);
    assert_int_equal(rmdir(folder), 0);
}

/* A meaning that a colour has, something else has too. */
static void no_meaning_is_colour_alone(void **state)
{
    (void)state;
    for (int t = 0; t < 2 * GP_THEME__COUNT; t++) {
        const struct gp_look *looks = gp_theme_looks((enum gp_theme)(t / 2), t % 2);
        for (int i = 0; i < GP_INK__COUNT; i++)
            assert_true(looks[i].fg_of_8 < 8);
        assert_true(looks[GP_INK_CRITICAL].no_color & GP_ATTR_REVERSE);
        assert_true(looks[GP_INK_SELECTED].no_color & GP_ATTR_REVERSE);
        assert_true(looks[GP_INK_STALE].no_color & GP_ATTR_UNDERLINE);
        assert_true(looks[GP_INK_HIGH].no_color & GP_ATTR_BOLD);
    }
}

/* Of the 256 colours, those that are the same on every terminal: a cube, and greys. */
static unsigned rgb_of(int color)
{
    static const unsigned steps[] = {0, 95, 135, 175, 215, 255};
    const unsigned n = (unsigned)color - 16;
    const unsigned grey = 8 + 10 * ((unsigned)color - 232);
    return color >= 232 ? grey << 16 | grey << 8 | grey
                        : steps[n / 36] << 16 | steps[n / 6 % 6] << 8 | steps[n % 6];
}

/* Red, green and blue as parts of light. */
static void lights_of(unsigned rgb, double ret[3])
{
    for (int i = 0; i < 3; i++) {
        const double part = (double)(rgb >> 8 * (2 - i) & 0xff) / 255;
        ret[i] = part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4);
    }
}

/* Relative luminance and contrast, as WCAG 2 defines them. */
static double luminance_of(const double lights[3])
{
    return 0.2126 * lights[0] + 0.7152 * lights[1] + 0.0722 * lights[2];
}

static double luminance(unsigned rgb)
{
    double lights[3];
    lights_of(rgb, lights);
    return luminance_of(lights);
}

static double contrast(unsigned a, unsigned b)
{
    const double x = luminance(a) + 0.05;
    const double y = luminance(b) + 0.05;
    return x > y ? x / y : y / x;
}

/* Black, and what editors and terminals have for dark; white, and paper. */
static void colours_stand_out_from_the_background(void **state)
{
    (void)state;
    static const unsigned backgrounds[2][3] = {{0x000000, 0x1e1e1e, 0x002b36},
                                               {0xffffff, 0xfdf6e3, 0xfafafa}};
    static const struct {
        enum gp_theme theme;
        bool on_light;
    } cases[] = {{GP_THEME_DEFAULT, false}, {GP_THEME_DEFAULT, true}, {GP_THEME_DARK, false},
                 {GP_THEME_LIGHT, true},    {GP_THEME_SAFE, false},   {GP_THEME_SAFE, true},
                 {GP_THEME_CONTRAST, false}};
    assert_true(contrast(0, 0xffffff) > 20.9 && contrast(0, 0xffffff) < 21.1);
    for (size_t c = 0; c < GP_ARRAY_LEN(cases); c++)
        for (int i = 0; i < GP_INK__COUNT; i++) {
            const struct gp_look *look = &gp_theme_looks(cases[c].theme, cases[c].on_light)[i];
            assert_true(look->fg < 0 || look->fg >= 16); /* the others differ between terminals */
            assert_true(look->bg < 0 || look->bg >= 16);
            for (size_t b = 0; look->fg >= 0 && b < 3; b++)
                if (contrast(rgb_of(look->fg),
                             look->bg >= 0 ? rgb_of(look->bg) : backgrounds[cases[c].on_light][b]) <
                    4.5)
                    fail_msg("case %zu, ink %d, background %zu", c, i, b);
        }
}

/* How light it seems, from 0 to 100 (L* of CIELAB), to those who see red or green badly: the
 * matrices for all of it in Machado, Oliveira and Fernandes 2009. */
static double lightness(unsigned rgb, int kind)
{
    static const double matrices[2][3][3] = {
        {{0.152286, 1.052583, -0.204868},
         {0.114503, 0.786281, 0.099216},
         {-0.003882, -0.048116, 1.051998}},
        {{0.367322, 0.860646, -0.227968},
         {0.280085, 0.672501, 0.047413},
         {-0.011820, 0.042940, 0.968881}},
    };
    double lights[3];
    double seen[3];
    lights_of(rgb, lights);
    for (int i = 0; i < 3; i++) {
        const double *row = matrices[kind][i];
        seen[i] = fmax(0, row[0] * lights[0] + row[1] * lights[1] + row[2] * lights[2]);
    }
    const double y = luminance_of(seen);
    return y > 0.008856 ? 116 * cbrt(y) - 16 : 903.3 * y;
}

/* Red and yellow may be one hue: their lightness differs. */
static void trouble_differs_for_the_colour_blind(void **state)
{
    (void)state;
    assert_true(lightness(0xffffff, 1) > 99.9 && lightness(0x000000, 1) < 0.1);
    for (int t = 0; t < 2 * GP_THEME_MONO; t++) {
        const struct gp_look *looks = gp_theme_looks((enum gp_theme)(t / 2), t % 2);
        const int look = looks[GP_INK_MEDIUM].fg;
        const int trouble = looks[GP_INK_HIGH].fg;
        for (int kind = 0; look >= 16 && kind < 2; kind++)
            if (fabs(lightness(rgb_of(look), kind) - lightness(rgb_of(trouble), kind)) < 10)
                fail_msg("theme %d, kind %d", t, kind);
    }
}

/* What differs in meaning differs in colour. */
static void loads_memory_and_trouble_have_their_own_colours(void **state)
{
    (void)state;
    static const enum gp_ink inks[] = {GP_INK_LOW, GP_INK_MEMORY, GP_INK_MEDIUM, GP_INK_HIGH};
    for (int t = 0; t < 2 * GP_THEME_MONO; t++) {
        const struct gp_look *looks = gp_theme_looks((enum gp_theme)(t / 2), t % 2);
        for (size_t i = 0; i < GP_ARRAY_LEN(inks); i++)
            for (size_t j = 0; j < i; j++) {
                const struct gp_look *a = &looks[inks[i]];
                const struct gp_look *b = &looks[inks[j]];
                assert_true(a->fg != b->fg);
                assert_true(a->fg_of_8 != b->fg_of_8 || a->attrs != b->attrs);
            }
    }
}

static void a_light_background_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        bool is_answer, is_light;
    } cases[] = {
        {"rgb:ffff/ffff/ffff", true, true},
        {"rgb:0000/0000/0000", true, false},
        {"rgb:ff/ff/ff", true, true},
        {"rgb:f/f/f", true, true},
        {"rgb:fdfd/f6f6/e3e3", true, true},
        {"rgb:0000/2b2b/3636", true, false},
        {"rgba:fefe/fefe/fefe/0000", true, true},
        {"rgb:0000/0000/ffff", true, false},
        {"rgb:0000/ffff/0000", true, true},
        {"rgb:ffff/ffff", false, false},
        {"rgb:", false, false},
        {"rgb:fffff/ffff/ffff", false, false},
        {"", false, false},
        {"#ffffff", false, false},
        {"rgb:g/g/g", false, false},
        {"rgb:ffff:ffff:ffff", false, false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        bool is_light = false;
        const bool is_answer = gp_theme_read_background(cases[i].answer, &is_light);
        if (is_answer != cases[i].is_answer || is_light != cases[i].is_light)
            fail_msg("%s", cases[i].answer);
    }
    assert_true(gp_theme_asks(GP_THEME_DEFAULT) && gp_theme_asks(GP_THEME_SAFE));
    assert_true(gp_theme_asks(GP_THEME_TERMINAL));
    assert_false(gp_theme_asks(GP_THEME_LIGHT) || gp_theme_asks(GP_THEME_MONO));
}

/* ---- rows ---- */

static struct gp_proc_order by(const char *text)
{
    struct gp_err err = {0};
    struct gp_proc_order order;
    assert_int_equal(gp_proc_order_parse(text, &order, &err), 0);
    return order;
}

static void several_columns_decide(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(8, 0);
    struct gp_procs procs = {.rows = NULL};
    struct gp_procs_options options = {.order = by("user,-pid"), .gpu = -1};
    struct gp_strbuf sb = GP_STRBUF_INIT(256);
    assert_int_equal(gp_procs_build(&procs, s, &options), 0);
    for (size_t i = 1; i < procs.count; i++) {
        int order = strcmp(procs.rows[i - 1].user, procs.rows[i].user);
        assert_true(order < 0 || (order == 0 && procs.rows[i - 1].pid > procs.rows[i].pid));
    }
    gp_proc_order_put(&options.order, GP_PROC_MEMORY_COLUMN);
    gp_proc_order_put(&options.order, GP_PROC_USER_COLUMN);
    gp_proc_order_format(&sb, &options.order);
    assert_string_equal(sb.buf, "user,memory,-pid");
    struct gp_err err = {0};
    assert_int_equal(gp_proc_order_parse("pid,nosuch", &options.order, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "--columns help lists all"));
    gp_strbuf_fini(&sb);
    gp_procs_fini(&procs);
    gp_snapshot_free(s);
}

static void columns_can_be_chosen(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    (void)snprintf(ui.prefs.columns, sizeof(ui.prefs.columns), "user,pid,memory");
    gp_ui_apply(&ui);
    check_has(&ui, "USER      PID  GPU-MEM");
    ui.prefs.columns[0] = '\0';
    gp_ui_apply(&ui);
    check_has(&ui, "COMMAND");
    assert_true(gp_ui_fini(&ui));
}

static void a_row_for_each_gpu(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(3, 0);
    struct gp_procs procs = {.rows = NULL};
    const struct gp_procs_options options = {.order = by("pid"), .gpu = -1, .per_gpu = true};
    assert_int_equal(gp_procs_build(&procs, s, &options), 0);
    assert_int_equal(procs.count, 8);
    assert_int_equal(procs.rows[0].pid, 1000);
    assert_int_equal(procs.rows[1].pid, 1000);
    assert_string_equal(procs.rows[0].gpus, "0");
    assert_string_equal(procs.rows[1].gpus, "1");
    gp_procs_fini(&procs);
    gp_snapshot_free(s);
}

static void whole_words_and_alternatives(void **state)
{
    (void)state;
    static const struct {
        const char *filter;
        bool matches;
    } cases[] = {
        {"user=alice", true},        {"user=ali", false},
        {"user=bob,alice", true},    {"user:x,lic", true},
        {"user=ALICE", true},        {"pid=81", false},
        {"pid=812", true},           {"gpu:0,3", true},
        {"gpu:1,2", false},          {"type=C", true},
        {"type=G", false},           {"container:docker", true},
        {"container=docker", false}, {"user:", false},
        {"user=alice gpu:3", true},  {"user=alice gpu:1", false},
        {"cmd:train,serve", true},   {"nosuch:alice", false},
    };
    const struct gp_proc_row row = {.pid = 812,
                                    .gpus = "3",
                                    .gpu_bits = {1 << 3},
                                    .user = "alice",
                                    .command = "python train.py",
                                    .type = "C",
                                    .container = "docker:0123456789ab"};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        if (gp_procs_matches(&row, cases[i].filter) != cases[i].matches)
            fail_msg("'%s'", cases[i].filter);
}

static void lists_of_gpus_are_short_and_complete(void **state)
{
    (void)state;
    static const struct {
        const char *gpus, *expected; /* as the driver lists them */
        unsigned has, has_not;
    } cases[] = {{"0", "0", 0, 1},
                 {"0,1", "0,1", 1, 2},
                 {"0,1,2", "0-2", 1, 3},
                 {"0,1,2,3,5", "0-3,5", 5, 4},
                 {"1,3,4,5,9", "1,3-5,9", 4, 2},
                 {"0,2,4,6", "0,2,4,6", 6, 1}};
    for (size_t c = 0; c < GP_ARRAY_LEN(cases); c++) {
        struct gp_snapshot *s = machine(16, 0);
        struct gp_procs procs = {.rows = NULL};
        char word[16];
        const struct gp_procs_options options = {.order = by("pid"), .gpu = -1};
        s->process_count = 0;
        for (const char *p = cases[c].gpus; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
            fill_process(&s->processes[s->process_count++], strtoul(p, NULL, 10), 1000, 1);
        assert_int_equal(gp_procs_build(&procs, s, &options), 0);
        assert_int_equal(procs.count, 1);
        assert_string_equal(procs.rows[0].gpus, cases[c].expected);
        (void)snprintf(word, sizeof(word), "gpu:%u", cases[c].has);
        assert_true(gp_procs_matches(&procs.rows[0], word));
        (void)snprintf(word, sizeof(word), "gpu:%u", cases[c].has_not);
        assert_false(gp_procs_matches(&procs.rows[0], word));
        gp_procs_fini(&procs);
        gp_snapshot_free(s);
    }
}

static void many_gpus_end_in_a_plus(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(72, 0);
    struct gp_procs procs = {.rows = NULL};
    const struct gp_procs_options options = {.order = by("pid"), .gpu = -1};
    s->process_count = 0;
    for (size_t g = 0; g < 72; g += 2)
        fill_process(&s->processes[s->process_count++], g, 1000, 1);
    assert_int_equal(gp_procs_build(&procs, s, &options), 0);
    assert_string_equal(procs.rows[0].gpus, "0,2,4,6,8,10,12,14,16+");
    gp_procs_fini(&procs);
    for (size_t g = 0; g < 72; g++)
        fill_process(&s->processes[g], g, 1000, 1);
    s->process_count = 72;
    assert_int_equal(gp_procs_build(&procs, s, &options), 0);
    assert_string_equal(procs.rows[0].gpus, "0-71");
    gp_procs_fini(&procs);
    gp_snapshot_free(s);
}

static void set_parent(struct gp_snapshot *s, size_t process, int64_t ppid)
{
    gp_value_set_int(process_value(&s->processes[process], GP_PROCESS_PPID), ppid, 1);
}

static void children_stand_below_their_parents(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(2, 0); /* pids 1000, 1001, 1000, 1002, 1003 */
    struct gp_process *ancestors = gp_arena_alloc(&s->arena, 2, sizeof(*ancestors));
    struct gp_procs procs = {.rows = NULL};
    const struct gp_procs_options options = {.order = by("pid"), .gpu = -1, .tree = true};
    static const struct {
        int64_t pid;
        unsigned depth;
        bool is_last;
    } expected[] = {{1, 0, true},    {50, 1, true},   {1000, 2, false},
                    {1002, 3, true}, {1001, 2, true}, {1003, 3, true}};
    for (int i = 0; i < 2; i++)
        ancestors[i].cells = gp_arena_alloc(&s->arena, GP_PROCESS__COUNT, sizeof(struct gp_value));
    fill_process(&ancestors[0], 0, 1, 1);
    fill_process(&ancestors[1], 0, 50, 1);
    gp_value_set_text(process_value(&ancestors[1], GP_PROCESS_COMMAND), "bash", 1);
    gp_value_set_int(process_value(&ancestors[1], GP_PROCESS_PPID), 1, 1);
    s->ancestors = ancestors;
    s->ancestor_count = 2;
    set_parent(s, 0, 50);
    set_parent(s, 1, 50);
    set_parent(s, 2, 50);
    set_parent(s, 3, 1000);
    set_parent(s, 4, 1001);
    assert_int_equal(gp_procs_build(&procs, s, &options), 0);
    assert_int_equal(procs.count, GP_ARRAY_LEN(expected));
    for (size_t i = 0; i < procs.count; i++) {
        assert_int_equal(procs.rows[i].pid, expected[i].pid);
        assert_int_equal(procs.rows[i].depth, expected[i].depth);
        assert_int_equal(procs.rows[i].is_last, expected[i].is_last);
    }
    assert_string_equal(procs.rows[1].command, "bash");
    gp_procs_fini(&procs);
    gp_snapshot_free(s);
}

static void t_goes_through_the_groups(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    struct gp_snapshot *s = machine(2, 0);
    gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_CONTAINER), "slurm:4711.0", 1);
    gp_value_set_text(process_value(&s->processes[2], GP_PROCESS_CONTAINER), "slurm:4711.0", 1);
    gp_ui_take(&ui, s, 1);
    assert_false(gp_ui_others_matter(&ui));
    check_has(&ui, "processes 4 · sort");
    press(&ui, "t");
    check_has(&ui, "processes 4 · tree · sort");
    check_has(&ui, "slurm 4711, 1 pr");
    assert_true(gp_ui_others_matter(&ui)); /* also those that are not on the screen have a job */
    press(&ui, "t");
    check_has(&ui, "processes 4 · by user · sort");
    check_has(&ui, "         bob     0,1      2   -     6.0G");
    check_has(&ui, "2 processes");
    (void)gp_ui_key(&ui, GP_KEY_HOME);
    const struct gp_proc_row *group = &ui.procs.rows[0];
    const unsigned members = group->members;
    assert_true(members > 0);
    press(&ui, " ");
    assert_int_equal(ui.tag_count, members);
    assert_int_equal(ui.chosen, members + 1);
    press(&ui, "t");
    check_has(&ui, "processes 4 · 2 tagged · by job · sort");
    check_has(&ui, "slurm 4711, 1 pr");
    press(&ui, "t");
    check_has(&ui, "processes 4 · 2 tagged · sort");
    assert_true(gp_ui_fini(&ui));
}

static void loops_of_parents_lose_nobody(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine(2, 0);
    struct gp_procs procs = {.rows = NULL};
    const struct gp_procs_options options = {.order = by("pid"), .gpu = -1, .tree = true};
    set_parent(s, 0, 1001); /* each other's parents */
    set_parent(s, 1, 1000);
    set_parent(s, 2, 1001);
    set_parent(s, 3, 1002); /* its own */
    set_parent(s, 4, 9999); /* of nobody who is known */
    assert_int_equal(gp_procs_build(&procs, s, &options), 0);
    assert_int_equal(procs.count, 4);
    gp_procs_fini(&procs);
    gp_snapshot_free(s);
}

/* ---- tags, GPUs, the mouse ---- */

static void tags_are_kept_and_counted(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    press(&ui, "  ");
    assert_int_equal(ui.tag_count, 2);
    check_has(&ui, "2 tagged");
    check_has(&ui, "*   1006");
    (void)gp_ui_key(&ui, GP_KEY_UP);
    press(&ui, " ");
    assert_int_equal(ui.tag_count, 1);
    press(&ui, "U");
    assert_int_equal(ui.tag_count, 0);
    assert_true(gp_ui_fini(&ui));
}

static void a_gpu_is_chosen_by_digit_and_by_cursor(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    press(&ui, "3");
    assert_int_equal(ui.gpu, 3);
    check_has(&ui, "GPU 3");
    press(&ui, "3");
    assert_int_equal(ui.gpu, -1);
    press(&ui, "\t");
    assert_int_equal(ui.gpu, 0);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    assert_int_equal(ui.gpu, 1);
    (void)gp_ui_key(&ui, GP_KEY_END);
    assert_int_equal(ui.gpu, 7);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    assert_int_equal(ui.gpu, 7);
    (void)gp_ui_key(&ui, GP_KEY_HOME);
    assert_int_equal(ui.gpu, 0);
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_GPU);
    check_has(&ui, "a: adjust");
    press(&ui, "/temperature.gpu\n");
    check_has(&ui, "temperature.gpu");
    press(&ui, "q");
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    assert_int_equal(ui.gpu, -1);
    assert_true(gp_ui_fini(&ui));
}

/* Every GPU can be reached where only few have room. */
static void all_gpus_can_be_reached(void **state)
{
    (void)state;
    struct gp_ui ui;
    bool seen[72] = {false};
    watch(&ui, 72);
    press(&ui, "ggg"); /* lines: they have no room for all */
    assert_int_equal(ui.prefs.view, GP_DENSITY_LINE);
    press(&ui, "\t");
    for (int i = 0; i < 80; i++) {
        char words[16];
        const char *text = picture(&ui, 80, 24);
        (void)snprintf(words, sizeof(words), "\n▸%3d H100", ui.gpu);
        assert_non_null(strstr(text, words));
        seen[ui.gpu] = true;
        (void)gp_ui_key(&ui, GP_KEY_DOWN);
    }
    for (int i = 0; i < 72; i++)
        assert_true(seen[i]);
    assert_true(gp_ui_fini(&ui));
}

/* A machine with so many processes, each on one GPU. */
static struct gp_snapshot *crowded(size_t gpus, size_t processes)
{
    struct gp_snapshot *s = machine(gpus, 0);
    s->processes = gp_arena_alloc(&s->arena, processes, sizeof(*s->processes));
    s->process_count = processes;
    for (size_t i = 0; i < processes; i++) {
        s->processes[i].cells =
            gp_arena_alloc(&s->arena, GP_PROCESS__COUNT, sizeof(struct gp_value));
        fill_process(&s->processes[i], i % gpus, 1000 + (int64_t)i, 1);
    }
    return s;
}

/* And every process, where there are thousands. */
static void all_processes_can_be_reached(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    gp_ui_take(&ui, crowded(72, 10000), 1);
    press(&ui, "x");
    press(&ui, "x"); /* processes alone */
    assert_int_equal(ui.procs.count, 10000);
    size_t seen = 0;
    for (int i = 0; i < 1000 && seen < 10000; i++) {
        (void)picture(&ui, 80, 24);
        if (ui.first > seen)
            fail_msg("row %zu is left out", seen);
        seen = ui.first + ui.page;
        (void)gp_ui_key(&ui, GP_KEY_PAGE_DOWN);
    }
    assert_true(seen >= 10000);
    (void)gp_ui_key(&ui, GP_KEY_END);
    assert_int_equal(ui.chosen, 9999);
    assert_true(gp_ui_fini(&ui));
}

/* ---- the same in lines ---- */

/* Whether the text has this number, not as a part of another one. */
static bool has_number(const char *text, const char *number, size_t n)
{
    for (const char *p = text; *p; p++)
        if (strncmp(p, number, n) == 0 && (p == text || !strchr("0123456789.", p[-1])) &&
            !strchr("0123456789", p[n]))
            return true;
    return false;
}

static void what_is_read_out_has_every_number(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_strbuf plain = GP_STRBUF_INIT(1 << 20);
    struct gp_snapshot *s = machine(2, 5);
    struct gp_device *d = &s->devices[0];
    gp_value_set_real(device_value(d, GP_PCIE_RX), 1.2e9, 1);
    gp_value_set_real(device_value(d, GP_PCIE_TX), 3.4e9, 1);
    gp_value_set_real(device_value(d, GP_GPM_SM), 61, 1);
    gp_value_set_int(device_value(d, GP_ECC_UNCORRECTED_VOLATILE), 7, 1);
    gp_ui_init(&ui);
    ui.prefs.host = GP_HOST_YES;
    gp_ui_take(&ui, s, 1);
    const struct gp_procs_options options = {.order = by("memory"), .gpu = -1};
    assert_int_equal(gp_plain_add(&plain, s, &options), 0);
    press(&ui, "ggR"); /* bars without graphs: no axes */
    const char *text = picture(&ui, 200, 30);
    for (const char *p = strchr(text, '\n'); *p;) { /* behind the heading, which has sums */
        size_t n = strspn(p, "0123456789");
        bool is_key = n > 0 && strncmp(p, "0-9", 3) == 0;
        if (n > 0 && !has_number(plain.buf, p, n) && !is_key)
            fail_msg("%.*s of the screen is not in\n%s\n%s", (int)n, p, plain.buf, text);
        p += n > 0 ? n : 1;
    }
    gp_strbuf_fini(&plain);
    assert_true(gp_ui_fini(&ui));
}

/* Clicks where the words stand in the last picture. */
static void click(struct gp_ui *ui, const char *words, bool again)
{
    const char *text = picture(ui, 100, 30);
    const char *at = strstr(text, words);
    assert_non_null(at);
    int x = 0;
    int y = 0;
    for (const char *p = text; p < at; p++) {
        x = *p == '\n' ? 0 : x + ((*p & 0xc0) != 0x80);
        y += *p == '\n';
    }
    (void)gp_ui_click(ui, x, y, again);
}

static void clicks_do_what_stands_there(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    click(&ui, "1004 carol", false);
    assert_int_equal(ui.pin.pid, 1004);
    click(&ui, "USER    GPU", false);
    assert_int_equal(ui.order.by[0].column, GP_PROC_USER_COLUMN);
    assert_false(ui.order.by[0].reversed);
    click(&ui, "USER    GPU", false);
    assert_true(ui.order.by[0].reversed);
    click(&ui, " 6 H100", false);
    assert_int_equal(ui.gpu, 6);
    click(&ui, "6 H100", true);
    assert_int_equal(ui.mode, GP_UI_GPU);
    press(&ui, "q");
    click(&ui, "s:order", false); /* that of the GPUs, which have the keys */
    assert_int_equal(ui.mode, GP_UI_GPU_ORDER);
    click(&ui, "the most free", true);
    assert_int_equal(ui.prefs.gpu_order, GP_ORDER_FREE);
    click(&ui, "Tab:processes", false);
    click(&ui, "s:sort", false);
    assert_int_equal(ui.mode, GP_UI_SORT);
    click(&ui, "GPU memory", true);
    assert_int_equal(ui.order.by[0].column, GP_PROC_MEMORY_COLUMN);
    assert_int_equal(ui.mode, GP_UI_WATCH);
    (void)gp_ui_click(&ui, 5000, -3, true);
    assert_true(gp_ui_fini(&ui));
}

static void a_user_is_chosen_from_a_list(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    (void)snprintf(ui.prefs.filter, sizeof(ui.prefs.filter), "user:x cmd:python");
    press(&ui, "u");
    check_has(&ui, "carol");
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    press(&ui, "\n");
    assert_string_equal(ui.prefs.filter, "cmd:python user=bob");
    press(&ui, "u\n");
    assert_string_equal(ui.prefs.filter, "cmd:python");
    assert_true(gp_ui_fini(&ui));
}

static void vi_moves_by_letters(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    ui.prefs.keys = GP_KEYS_VI;
    press(&ui, "jjk");
    assert_int_equal(ui.chosen, 1);
    press(&ui, "G");
    assert_int_equal(ui.chosen, ui.procs.count - 1);
    check_has(&ui, "K:kill");
    assert_true(gp_ui_fini(&ui));
}

static void setup_changes_and_checks(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "C");
    (void)gp_ui_key(&ui, GP_KEY_RIGHT);
    assert_int_equal(ui.prefs.interval_ns, 2 * GP_NS_PER_S);
    for (int i = 0; i < GP_PREF_SORT; i++)
        (void)gp_ui_key(&ui, GP_KEY_DOWN);
    press(&ui, "\n,x\n");
    check_has(&ui, "unknown column 'x'");
    assert_string_equal(ui.prefs.sort, "memory");
    press(&ui, "\n,user\n");
    assert_string_equal(ui.prefs.sort, "memory,user");
    assert_int_equal(ui.order.count, 2);
    assert_int_equal(ui.mode, GP_UI_SETUP);
    press(&ui, "S");
    check_has(&ui, "HOME is not set");
    press(&ui, "q");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    assert_true(gp_ui_fini(&ui));
}

/* ---- time ---- */

/* Of the graph at the left, up to its right edge. */
static const char *lowest_line(struct gp_ui *ui)
{
    static char line[1024];
    const char *text = strstr(picture(ui, 80, 24), "   0%│");
    assert_non_null(text);
    const char *words = strstr(text, "  0│");
    assert_non_null(words);
    (void)snprintf(line, sizeof(line), "%.*s", (int)(words - text), text);
    return line;
}

static void older_columns_stay_where_they_are(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    press(&ui, "}");
    gp_ui_take(&ui, machine(1, 40), 1);
    char *before = strdup(lowest_line(&ui));
    gp_ui_take(&ui, machine(1, 41), 1); /* within the same two seconds */
    const char *after = lowest_line(&ui);
    assert_memory_equal(after, before, strlen(before) - 2 * strlen("⣿"));
    free(before);
    press(&ui, "(");
    check_has(&ui, "─1m3s"); /* the right edge */
    assert_int_equal(ui.earlier, GP_TRACK_SAMPLES / 32);
    press(&ui, "))");
    assert_int_equal(ui.earlier, 0);
    press(&ui, "{{{");
    assert_int_equal(ui.zoom, 0);
    assert_true(gp_ui_fini(&ui));
}

/* ---- pages ---- */

static void pages_are_scrolled_and_searched(void **state)
{
    (void)state;
    struct gp_page page;
    struct gp_cells cells = {0, 0, NULL};
    gp_page_init(&page);
    for (int i = 0; i < 100; i++)
        gp_page_addf(&page, GP_INK_PLAIN, i % 2 ? "odd" : "even", "value %d", i);
    assert_int_equal(gp_cells_resize(&cells, 40, 11), 0);
    struct gp_box box = {&cells, 0, 0, 40, 11};
    gp_page_draw(&page, &box);
    assert_int_equal(page.height, 10);
    assert_true(gp_page_key(&page, GP_KEY_PAGE_DOWN, false));
    assert_int_equal(page.first, 9);
    assert_true(gp_page_key(&page, GP_KEY_END, false));
    assert_int_equal(page.first, 90);
    assert_true(gp_page_key(&page, GP_KEY_HOME, false));
    for (const char *p = "/value 7"; *p; p++)
        assert_true(gp_page_key(&page, *p, false));
    assert_true(gp_page_key(&page, GP_KEY_ENTER, false));
    assert_int_equal(page.first, 7);
    assert_true(gp_page_key(&page, 'n', false));
    assert_int_equal(page.first, 70);
    assert_true(gp_page_key(&page, 'N', false));
    assert_int_equal(page.first, 7);
    for (const char *p = "/nosuch"; *p; p++)
        assert_true(gp_page_key(&page, *p, false));
    assert_true(page.is_missing);
    assert_true(gp_page_key(&page, GP_KEY_ESCAPE, false));
    assert_false(gp_page_key(&page, GP_KEY_ESCAPE, false));
    gp_page_fini(&page);
    gp_cells_fini(&cells);
}

/* Two columns if one is not enough, and the screen is wide. */
static void pages_have_two_columns(void **state)
{
    (void)state;
    static const char text[] = "GPU busy 97 % of the time, SMs 90 %, tensor cores 56 %, memory "
                               "bandwidth 58 %, power 640 of 700 W";
    struct gp_page page;
    struct gp_cells cells = {0, 0, NULL};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 14);
    gp_page_init(&page);
    assert_int_equal(gp_cells_resize(&cells, 160, 11), 0);
    const struct gp_box box = {&cells, 0, 0, 160, 11};
    for (int i = 0; i < 10; i++)
        gp_page_addf(&page, GP_INK_PLAIN, "n", "value %d", i);
    gp_page_draw(&page, &box);
    assert_int_equal(page.height, 10);
    for (int i = 10; i < 40; i++)
        gp_page_addf(&page, GP_INK_PLAIN, "n", "value %d", i);
    gp_page_draw(&page, &box);
    assert_int_equal(page.height, 20);
    assert_true(gp_page_key(&page, GP_KEY_END, false));
    assert_int_equal(page.first, 20);
    gp_page_draw(&page, &box);
    cells_text(&sb, &cells);
    const char *left = strstr(sb.buf, "n value 20");
    assert_non_null(left);
    assert_ptr_equal(strstr(left, "n value 30"), left + 81); /* in the same line */
    assert_non_null(strstr(sb.buf, "21–40 of 40"));
    /* a long text is broken, not cut */
    gp_page_clear(&page);
    gp_page_add_wrapped(&page, GP_INK_PLAIN, "seen", text);
    assert_int_equal(page.count, 2);
    assert_int_equal(strncmp(text, gp_page_value(&page, 0), strlen(gp_page_value(&page, 0))), 0);
    assert_string_equal(gp_page_value(&page, 1), "bandwidth 58 %, power 640 of 700 W");
    gp_page_add_wrapped(&page, GP_INK_PLAIN, "seen", "");
    assert_int_equal(page.count, 3);
    gp_page_fini(&page);
    gp_strbuf_fini(&sb);
    gp_cells_fini(&cells);
}

/* ---- in lines ---- */

static void only_lines_that_are_new(void **state)
{
    (void)state;
    struct gp_strbuf before = GP_STRBUF_INIT(1024);
    struct gp_strbuf now = GP_STRBUF_INIT(1024);
    struct gp_strbuf out = GP_STRBUF_INIT(1024);
    gp_strbuf_adds(&before, "host\nGPU 0: 5\nGPU 1: 7\n\n");
    gp_strbuf_adds(&now, "host\nGPU 0: 6\nGPU 1: 7\nGPU 1: 77\n\n");
    assert_int_equal(gp_plain_add_changes(&out, &now, &before), 0);
    assert_string_equal(out.buf, "GPU 0: 6\nGPU 1: 77\n\n");
    gp_strbuf_reset(&out);
    assert_int_equal(gp_plain_add_changes(&out, &now, &now), 0);
    assert_string_equal(out.buf, "");
    gp_strbuf_fini(&before);
    gp_strbuf_fini(&now);
    gp_strbuf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preference_reads_what_it_writes),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(the_file_keeps_what_is_not_ours),
        cmocka_unit_test(no_meaning_is_colour_alone),
        cmocka_unit_test(colours_stand_out_from_the_background),
        cmocka_unit_test(trouble_differs_for_the_colour_blind),
        cmocka_unit_test(loads_memory_and_trouble_have_their_own_colours),
        cmocka_unit_test(a_light_background_is_found),
        cmocka_unit_test(several_columns_decide),
        cmocka_unit_test(columns_can_be_chosen),
        cmocka_unit_test(a_row_for_each_gpu),
        cmocka_unit_test(whole_words_and_alternatives),
        cmocka_unit_test(lists_of_gpus_are_short_and_complete),
        cmocka_unit_test(many_gpus_end_in_a_plus),
        cmocka_unit_test(children_stand_below_their_parents),
        cmocka_unit_test(t_goes_through_the_groups),
        cmocka_unit_test(loops_of_parents_lose_nobody),
        cmocka_unit_test(tags_are_kept_and_counted),
        cmocka_unit_test(a_gpu_is_chosen_by_digit_and_by_cursor),
        cmocka_unit_test(all_gpus_can_be_reached),
        cmocka_unit_test(all_processes_can_be_reached),
        cmocka_unit_test(what_is_read_out_has_every_number),
        cmocka_unit_test(clicks_do_what_stands_there),
        cmocka_unit_test(a_user_is_chosen_from_a_list),
        cmocka_unit_test(vi_moves_by_letters),
        cmocka_unit_test(setup_changes_and_checks),
        cmocka_unit_test(older_columns_stay_where_they_are),
        cmocka_unit_test(pages_are_scrolled_and_searched),
        cmocka_unit_test(pages_have_two_columns),
        cmocka_unit_test(only_lines_that_are_new),
    };
    return cmocka_run_group_tests_name("tui_parts", tests, NULL, NULL);
}
