/* The GPUs in the live monitor: who uses them, MIG instances, and what small screens show. */
#include "tui_scene.h"

#include "base/utf8.h"
#include "tui/gpu_text.h"
#include "tui/mig.h"
#include "tui/owners.h"
#include "tui/watch_gpus.h"

/* ---- owners ---- */

/* A GPU with processes: user and GiB, and who has reserved it. */
struct uses {
    struct use {
        const char *user;
        int gib; /* −1: unknown */
    } list[20];
    const char *reserved_by;
    int w;
    const char *expected;
};

static struct gp_snapshot *machine_of(const struct uses *uses)
{
    struct gp_snapshot *s = machine(8, 1);
    struct gp_device *d = &s->devices[0];
    size_t count = 0;
    for (; count < GP_ARRAY_LEN(uses->list) && uses->list[count].gib; count++) {
        struct gp_process *p = &s->processes[count];
        struct gp_value *memory = process_value(p, GP_PROCESS_MEMORY);
        struct gp_value *user = process_value(p, GP_PROCESS_USER);
        gp_value_set_int(memory, uses->list[count].gib * (int64_t)GIB, 1);
        if (uses->list[count].gib < 0)
            gp_value_set_absent(memory, GP_STATUS_NO_PERMISSION, NULL, 1);
        if (uses->list[count].user)
            gp_value_set_text(user, uses->list[count].user, 1);
        else
            gp_value_set_absent(user, GP_STATUS_NO_PERMISSION, NULL, 1);
    }
    d->first_process = 0;
    d->process_count = count;
    if (uses->reserved_by)
        gp_value_set_text(device_value(d, GP_RESERVATION_USER), uses->reserved_by, 1);
    return s;
}

static void owners_are_listed_by_memory(void **state)
{
    (void)state;
    static const struct uses cases[] = {
        {{{0}}, NULL, 30, ""},
        {{{"root", 6}, {"carol", 30}}, NULL, 30, "carol 30.0G · root 6.0G"},
        {{{"root", 6}, {"carol", 30}, {"root", 40}}, NULL, 30, "root 46.0G · carol 30.0G"},
        {{{"b", 5}, {"a", 5}}, NULL, 30, "a 5.0G · b 5.0G"},
        {{{"root", 6}, {"carol", 30}}, NULL, 23, "carol 30.0G · root 6.0G"},
        {{{"root", 6}, {"carol", 30}}, NULL, 22, "carol 30.0G +1"},
        {{{"root", 6}, {"carol", 30}}, NULL, 14, "carol 30.0G +1"},
        {{{"root", 6}, {"carol", 30}}, NULL, 13, "carol +1"},
        {{{"root", 6}, {"carol", 30}, {"eve", 7}}, NULL, 23, "carol 30.0G +2"},
        {{{"root", 6}, {"carol", 30}, {"eve", 7}}, NULL, 25, "carol 30.0G · eve 7.0G +1"},
        {{{"carol", 30}}, NULL, 11, "carol 30.0G"},
        {{{"carol", 30}}, NULL, 10, "carol"},
        {{{"carol", 130}}, NULL, 20, "carol 130G"},
        {{{"torch.distributed.run", 159}}, NULL, 18, "torch.distri… 159G"},
        {{{NULL, 30}, {NULL, 3}}, NULL, 20, "? 33.0G"},
        {{{"carol", -1}}, NULL, 20, "carol"},
        {{{"carol", -1}, {"carol", 2}}, NULL, 20, "carol 2.0G"},
        {{{0}}, "alice", 20, "reserved by alice"},
        {{{0}}, "alice", 16, "(alice)"},
        {{{"carol", 30}}, "alice", 20, "carol 30.0G (alice)"},
        {{{"carol", 30}}, "alice", 18, "carol 30.0G"},
        {{{"carol", 30}}, "carol", 20, "carol 30.0G"},
        {{{"carol", 30}}, "alice,carol", 30, "carol 30.0G"},
        {{{"al", 30}}, "alice", 30, "al 30.0G (alice)"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        GP_GPU_TEXT(text);
        struct gp_snapshot *s = machine_of(&cases[i]);
        gp_add_owners(&text, s, &s->devices[0], false, cases[i].w);
        assert_string_equal(text.buf, cases[i].expected);
        gp_snapshot_free(s);
    }
}

/* Memory that no listed process holds has an owner that is unknown. */
static void memory_of_nobody_is_named(void **state)
{
    (void)state;
    static const struct {
        struct uses uses;
        int64_t bytes;
    } cases[] = {
        {{{{0}}, NULL, 20, "? 36.0G"}, INT64_C(36) << 30},
        {{{{0}}, NULL, 20, ""}, (1 << 30) - 1},
        {{{{"carol", 30}}, NULL, 24, "? 36.0G · carol 30.0G"}, INT64_C(36) << 30},
        {{{{"carol", 50}}, NULL, 14, "carol 50.0G +1"}, INT64_C(2) << 30},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        GP_GPU_TEXT(text);
        struct gp_snapshot *s = machine_of(&cases[i].uses);
        gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_UNATTRIBUTED), cases[i].bytes, 1);
        gp_add_owners(&text, s, &s->devices[0], false, cases[i].uses.w);
        assert_string_equal(text.buf, cases[i].uses.expected);
        gp_snapshot_free(s);
    }
}

/* Where all users are the same. */
static void programs_are_named_instead_of_one_user(void **state)
{
    (void)state;
    static const struct {
        const char *command, *expected;
    } cases[] = {
        {"vllm serve Qwen", "vllm 5.0G"},
        {"/usr/bin/python3.11 -u /home/carol/train.py --batch 8", "train.py 5.0G"},
        {"python -m torch.distributed.run train.py", "torch.distributed.run 5.0G"},
        {"python -c print", "python 5.0G"},
        {"python", "python 5.0G"},
        {"bash ./run.sh", "run.sh 5.0G"},
        {"./python_tool x", "x 5.0G"},
        {"/opt/trtllm-serve", "trtllm-serve 5.0G"},
    };
    static const struct uses one = {{{"carol", 5}}, NULL, 40, ""};
    static const struct uses two = {{{"carol", 5}, {"carol", 2}}, "carol", 40, ""};
    static const struct uses others = {{{"carol", 5}, {"bob", 2}}, NULL, 40, ""};
    static const struct uses nobody = {{{NULL, 5}}, NULL, 40, ""};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        GP_GPU_TEXT(text);
        struct gp_snapshot *s = machine_of(&one);
        gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_COMMAND), cases[i].command, 1);
        gp_add_owners(&text, s, &s->devices[0], true, one.w);
        assert_string_equal(text.buf, cases[i].expected);
        gp_snapshot_free(s);
    }
    GP_GPU_TEXT(text);
    struct gp_snapshot *s = machine_of(&two);
    s->process_count = 2;
    assert_string_equal(gp_owners_one(s), "carol");
    gp_value_set_text(process_value(&s->processes[0], GP_PROCESS_COMMAND), "train", 1);
    gp_value_set_text(process_value(&s->processes[1], GP_PROCESS_COMMAND), "trainer", 1);
    gp_add_owners(&text, s, &s->devices[0], true, two.w);
    assert_string_equal(text.buf, "train 5.0G · trainer 2.0G"); /* whose user has reserved it */
    gp_snapshot_free(s);
    s = machine_of(&others);
    s->process_count = 2;
    assert_null(gp_owners_one(s));
    s->process_count = 0;
    assert_null(gp_owners_one(s));
    gp_snapshot_free(s);
    s = machine_of(&nobody);
    s->process_count = 1;
    assert_string_equal(gp_owners_one(s), "?");
    gp_snapshot_free(s);
}

/* Then the heading says whose they are, if there is one. */
static void one_user_is_in_the_heading(void **state)
{
    (void)state;
    static const char *const users[] = {"root", NULL};
    for (size_t u = 0; u < GP_ARRAY_LEN(users); u++) {
        struct gp_ui ui;
        struct gp_snapshot *s = machine(8, 0);
        gp_ui_init(&ui);
        for (size_t i = 0; i < s->process_count; i++) {
            struct gp_value *user = process_value(&s->processes[i], GP_PROCESS_USER);
            if (users[u])
                gp_value_set_text(user, users[u], 1);
            else
                gp_value_set_absent(user, GP_STATUS_NO_PERMISSION, NULL, 1);
        }
        gp_ui_take(&ui, s, 1);
        const char *text = picture(&ui, 80, 24);
        assert_non_null(strstr(text, users[u] ? " USED BY root\n" : " USED BY\n"));
        assert_non_null(strstr(text, " train.py "));
        assert_true(gp_ui_fini(&ui));
    }
}

/* More users than are told apart. */
static void many_owners_are_counted(void **state)
{
    (void)state;
    static char names[20][8];
    struct uses uses = {.w = 12};
    for (size_t i = 0; i < 20; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "u%zu", i);
        uses.list[i] = (struct use){names[i], 20 - (int)i};
    }
    GP_GPU_TEXT(text);
    struct gp_snapshot *s = machine_of(&uses);
    gp_add_owners(&text, s, &s->devices[0], false, uses.w);
    assert_string_equal(text.buf, "u0 20.0G +15");
    gp_snapshot_free(s);
}

/* ---- names ---- */

static void names_are_cut_at_words(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int w;
        size_t fit;
    } cases[] = {
        {"H100 80GB HBM3", 14, 14}, {"H100 80GB HBM3", 13, 9},
        {"H100 80GB HBM3", 9, 9},   {"H100 80GB HBM3", 8, 4},
        {"H100 80GB HBM3", 3, 0},   {"A100-SXM4-80GB", 12, 9},
        {"A100-SXM4-80GB", 8, 4},   {"", 5, 0},
        {"日本 x", 4, 6},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        assert_int_equal(gp_gpu_name_fit(cases[i].name, cases[i].w), cases[i].fit);
}

static void reasons_are_cut_where_they_may_end(void **state)
{
    (void)state;
    static const struct {
        const char *reason;
        bool whole;
        int w;
        const char *expected;
    } cases[] = {
        {"no answer for 12 s (nvmlX)", true, 26, "no answer for 12 s (nvmlX)"},
        {"no answer for 12 s (nvmlX)", true, 25, "no answer for 12 s"},
        {"no answer for 12 s (nvmlX)", true, 17, "no answer for 12…"},
        {"lost: reset needed (x)", true, 22, "lost: reset needed (x)"},
        {"lost: see (x)", true, 8, "lost"},
        {"driver error", true, 5, "driv…"},
        {"no answer for 12 s (nvmlX)", false, 34, "no answer for 12 s · gpulse doctor"},
        {"no answer for 12 s (nvmlX)", false, 33, "no answer for 12 s"},
        {"lost: reset needed", false, 34, "lost: reset needed · gpulse doctor"},
        {"lost: reset needed", false, 17, "lost"},
    };
    struct gp_cells cells = {0, 0, NULL};
    assert_int_equal(gp_cells_resize(&cells, 40, 1), 0);
    const struct gp_box box = {&cells, 0, 0, 40, 1};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(256);
        gp_cells_clear(&cells);
        const struct gp_device device = {.status = GP_STATUS_TIMEOUT,
                                         .status_text = cases[i].reason};
        gp_gpu_draw_trouble(&box, 0, 0, cases[i].w, GP_INK_PLAIN, &device, cases[i].whole);
        cells_text(&sb, &cells);
        assert_int_equal(sb.len, strlen(cases[i].expected) + 1);
        assert_memory_equal(sb.buf, cases[i].expected, strlen(cases[i].expected));
        gp_strbuf_fini(&sb);
    }
    gp_cells_fini(&cells);
}

/* ---- screens ---- */

/* GPU `at` becomes one with these instances, which are empty except for the first and the third. */
static void split(struct gp_snapshot *s, size_t at, const int *gib, size_t count)
{
    size_t left = s->device_count - at - 1;
    struct gp_device *devices =
        gp_arena_alloc(&s->arena, s->device_count + count, sizeof(*devices));
    memcpy(devices, s->devices, (at + 1) * sizeof(*devices));
    memcpy(&devices[at + 1 + count], &s->devices[at + 1], left * sizeof(*devices));
    s->devices = devices;
    s->device_count += count;
    gp_value_set_absent(device_value(&devices[at], GP_UTILIZATION_GPU), GP_STATUS_UNSUPPORTED, NULL,
                        1);
    for (size_t i = 0; i < count; i++) {
        static char names[8][16];
        struct gp_device *d = &devices[at + 1 + i];
        (void)snprintf(names[i], sizeof(names[i]), "1g.%dgb", gib[i]);
        *d = (struct gp_device){.index = devices[at].index,
                                .is_mig = true,
                                .mig_index = (unsigned)i,
                                .status = GP_STATUS_OK,
                                .status_text = ""};
        gp_value_set_text(device_value(d, GP_MIG_PROFILE), names[i], 1);
        gp_value_set_int(device_value(d, GP_MIG_GPU_INSTANCE), 3 + (int64_t)i, 1);
        gp_value_set_int(device_value(d, GP_MIG_COMPUTE_INSTANCE), 0, 1);
        gp_value_set_int(device_value(d, GP_MEMORY_TOTAL), gib[i] * (int64_t)GIB, 1);
        gp_value_set_int(device_value(d, GP_MEMORY_USED), i % 2 ? 0 : gib[i] * (int64_t)GIB / 3, 1);
    }
    for (size_t i = 0; i < s->process_count; i++)
        if (s->processes[i].device >= at)
            s->processes[i].device += s->processes[i].device == at ? 1 : (uint32_t)count;
    devices[at + 1].first_process = devices[at].first_process;
    devices[at + 1].process_count = devices[at].process_count;
    devices[at].process_count = 0;
}

static void put_to_sleep(struct gp_snapshot *s, size_t at)
{
    s->devices[at].status = GP_STATUS_ASLEEP;
    s->devices[at].status_text = "asleep to save power; gpulse does not wake it up";
}

enum kind { PLAIN, MIG, MIG_AMONG_OTHERS, ASLEEP, RESERVED, LOST };

static struct gp_snapshot *machine_like(enum kind kind, size_t gpus, unsigned tick)
{
    static const int gib[] = {20, 20, 10, 10};
    struct gp_snapshot *s = machine(gpus, tick);
    if (kind == MIG)
        split(s, 0, gib, GP_ARRAY_LEN(gib));
    if (kind == MIG_AMONG_OTHERS)
        split(s, 1, gib, GP_ARRAY_LEN(gib));
    if (kind == ASLEEP)
        put_to_sleep(s, 0);
    if (kind == LOST) {
        s->devices[1].status = GP_STATUS_LOST;
        s->devices[1].status_text = "lost: reset or reboot needed; see gpulse doctor";
    }
    if (kind == RESERVED) {
        s->devices[2].process_count = 0;
        gp_value_set_text(device_value(&s->devices[2], GP_RESERVATION_USER), "dave", 1);
    }
    return s;
}

static void screens_of_gpus(void **state)
{
    (void)state;
    static const int sizes[][2] = {{80, 24}, {120, 40}, {160, 40}, {200, 60}, {60, 18}, {40, 12}};
    static const struct {
        const char *name;
        enum kind kind;
        size_t gpus;
    } machines[] = {
        {"1 GPU", PLAIN, 1},
        {"8 GPUs, one hangs", PLAIN, 8},
        {"8 GPUs, one hangs and one is lost", LOST, 8},
        {"16 GPUs", PLAIN, 16},
        {"64 GPUs", PLAIN, 64},
        {"MIG", MIG, 1},
        {"MIG among others", MIG_AMONG_OTHERS, 4},
        {"asleep", ASLEEP, 1},
        {"one of two asleep", ASLEEP, 2},
        {"reserved", RESERVED, 4},
    };
    struct gp_strbuf all = GP_STRBUF_INIT(4 << 20);
    for (size_t m = 0; m < GP_ARRAY_LEN(machines); m++)
        for (size_t i = 0; i < GP_ARRAY_LEN(sizes); i++) {
            struct gp_ui ui;
            gp_ui_init(&ui);
            for (unsigned tick = 0; tick < 40; tick++)
                gp_ui_take(&ui, machine_like(machines[m].kind, machines[m].gpus, tick), 1);
            gp_strbuf_addf(&all, "==== %s, %dx%d\n%s", machines[m].name, sizes[i][0], sizes[i][1],
                           picture(&ui, sizes[i][0], sizes[i][1]));
            assert_true(gp_ui_fini(&ui));
        }
    golden_check("top-gpus.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
}

/* All columns of the strip belong to an instance, however narrow it is. */
static void strips_of_every_width(void **state)
{
    (void)state;
    struct gp_snapshot *s = machine_like(MIG, 1, 1);
    struct gp_cells cells = {0, 0, NULL};
    assert_int_equal(gp_cells_resize(&cells, 60, 1), 0);
    const struct gp_box box = {&cells, 0, 0, 60, 1};
    for (int w = 0; w < 60; w++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1024);
        int walls = 0;
        gp_cells_clear(&cells);
        gp_draw_mig_strip(&box, 0, 0, w, s, &s->devices[0]);
        for (int x = 0; x < 60; x++) {
            walls += cells.cells[x].cp == 0x2595 || cells.cells[x].cp == 0x258f;
            if (x >= w)
                assert_int_equal(cells.cells[x].cp, ' ');
        }
        if (w > 40)
            assert_int_equal(walls, 5);
        gp_strbuf_fini(&sb);
    }
    gp_cells_fini(&cells);
    gp_snapshot_free(s);
}

/* ---- all of them ---- */

static void check_all(const struct gp_snapshot *s, enum gp_series series, double expected)
{
    double value = gp_series_of_all(s, series);
    if (value < expected - 0.01 || value > expected + 0.01)
        fail_msg("%g, not %g", value, expected);
}

static void all_gpus_have_a_mean(void **state)
{
    (void)state;
    static const int gib[] = {20, 20};
    struct gp_snapshot *s = machine(3, 1);
    for (size_t i = 0; i < 3; i++)
        gp_value_set_int(device_value(&s->devices[i], GP_UTILIZATION_GPU), 10 + 20 * (int64_t)i, 1);
    gp_value_set_int(device_value(&s->devices[2], GP_MEMORY_TOTAL), INT64_C(40) * GIB, 1);
    check_all(s, GP_SERIES_GPU, 30);
    check_all(s, GP_SERIES_MEMORY, 100.0 * (0 + 11 + 22) / 200);
    gp_value_set_absent(device_value(&s->devices[0], GP_UTILIZATION_GPU), GP_STATUS_TIMEOUT, NULL,
                        1);
    check_all(s, GP_SERIES_GPU, 40);
    split(s, 1, gib, GP_ARRAY_LEN(gib)); /* instances are not counted twice */
    check_all(s, GP_SERIES_GPU, 50);
    check_all(s, GP_SERIES_MEMORY, 100.0 * (0 + 11 + 22) / 200);
    check_all(s, GP_SERIES_PCIE, -1);
    gp_snapshot_free(s);
}

static void its_past_is_cut_as_well(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_track_facts facts;
    for (unsigned tick = 0; tick < 10; tick++) {
        struct gp_snapshot *s = machine(2, tick);
        gp_history_add(&history, s, GP_NS_PER_S);
        gp_snapshot_free(s);
    }
    assert_int_equal(history.all.count, 10);
    assert_true(gp_track_look(&history.all, GP_SERIES_GPU, UINT64_MAX, UINT64_MAX, &facts));
    gp_history_cut(&history, (NOW_S + 4) * GP_NS_PER_S);
    assert_int_equal(history.all.count, 4);
    gp_history_fini(&history);
    assert_null(history.all.values);
}

/* ---- an instance ---- */

/* The list is that of the instance that is selected, or of its GPU. */
static void an_instance_has_its_own_processes(void **state)
{
    (void)state;
    static const int gib[] = {20, 20};
    struct gp_ui ui;
    struct gp_snapshot *s = machine(2, 0);
    gp_ui_init(&ui);
    split(s, 0, gib, GP_ARRAY_LEN(gib));
    s->devices[0].process_count = 0;
    s->devices[1].first_process = 0;
    s->devices[1].process_count = 2;
    s->devices[2].process_count = 0;
    s->processes[0].device = 1;
    s->processes[1].device = 2;
    for (size_t i = 2; i < s->process_count; i++)
        s->processes[i].device = 3;
    gp_ui_take(&ui, s, 1);
    static const struct {
        const char *title;
        int64_t pid;
        size_t count;
    } steps[] = {{" processes 2 · GPU 0 ·", 1000, 2},
                 {" processes 1 · MIG 0:0 ·", 1000, 1},
                 {" processes 1 · MIG 0:1 ·", 1001, 1}};
    press(&ui, "\t");
    for (size_t i = 0; i < GP_ARRAY_LEN(steps); i++) {
        check_has(&ui, steps[i].title);
        assert_int_equal(ui.procs.count, steps[i].count);
        assert_int_equal(ui.procs.rows[ui.procs.rows[0].pid != steps[i].pid].pid, steps[i].pid);
        (void)gp_ui_key(&ui, GP_KEY_DOWN);
    }
    assert_true(gp_ui_fini(&ui));
}

static void instances_say_their_share(void **state)
{
    (void)state;
    static const int gib[] = {20, 10};
    struct gp_snapshot *s = machine(2, 0);
    GP_GPU_TEXT(text);
    split(s, 0, gib, GP_ARRAY_LEN(gib));
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_TOTAL), 80 * (int64_t)GIB, 1);
    for (size_t i = 1; i < 3; i++) {
        gp_value_set_int(device_value(&s->devices[i], GP_MEMORY_TOTAL), gib[i - 1] * (int64_t)GIB,
                         1);
        gp_value_set_int(device_value(&s->devices[i], GP_MIG_GPU_INSTANCE), i == 1 ? 3 : 10, 1);
        gp_value_set_int(device_value(&s->devices[i], GP_MIG_COMPUTE_INSTANCE), 0, 1);
        gp_mig_add_ids(&text, &s->devices[i]);
        gp_strbuf_addc(&text, '|');
        gp_mig_add_share(&text, s, &s->devices[i]);
        gp_strbuf_addc(&text, '|');
    }
    assert_string_equal(text.buf, "GI  3 CI 0|25% of memory|GI 10 CI 0|13% of memory|");
    gp_value_set_absent(device_value(&s->devices[0], GP_MEMORY_TOTAL), GP_STATUS_LOST, NULL, 1);
    gp_strbuf_reset(&text);
    gp_mig_add_share(&text, s, &s->devices[1]);
    assert_string_equal(text.buf, "");
    gp_snapshot_free(s);
}

/* ---- order ---- */

/* GPU 2 is idle, 3 hot, 5 hangs; 4 has two instances. */
static struct gp_snapshot *mixed_machine(size_t gpus)
{
    static const struct {
        int load, used, celsius;
    } of[] = {{10, 40, 50}, {95, 70, 61}, {0, 0, 30},  {42, 10, 92},
              {90, 30, 63}, {0, 0, 0},    {40, 79, 64}};
    static const int gib[] = {20, 20};
    struct gp_snapshot *s = machine(gpus, 1);
    for (size_t i = 0; i < gpus; i++) {
        struct gp_device *d = &s->devices[i];
        size_t as = i < GP_ARRAY_LEN(of) ? i : 2;
        gp_value_set_int(device_value(d, GP_UTILIZATION_GPU), of[as].load, 1);
        gp_value_set_int(device_value(d, GP_MEMORY_USED), of[as].used * (int64_t)GIB, 1);
        gp_value_set_int(device_value(d, GP_TEMPERATURE_GPU), of[as].celsius, 1);
        gp_value_set_int(device_value(d, GP_REASONS_ACTIVE), i == 3 ? 0x20 : 0, 1);
        d->process_count = as == 2 ? 0 : d->process_count;
    }
    split(s, 4, gib, GP_ARRAY_LEN(gib));
    gp_value_set_int(device_value(&s->devices[4], GP_UTILIZATION_GPU), of[4].load, 1);
    return s;
}

static void gpus_are_ordered(void **state)
{
    (void)state;
    enum { NO_ROW = 999 };
    static const struct {
        enum gp_gpu_order_by by;
        size_t gpus;
        const char *rows; /* 4, 5 and 6 are a GPU and its instances, 7 is the one that hangs */
    } cases[] = {
        {GP_ORDER_INDEX, 9, "0 1 2 3 4 5 6 7 8 9 10 "},
        {GP_ORDER_AUTO, 9, "0 1 2 3 4 5 6 7 8 9 10 "},
        {GP_ORDER_LOAD, 9, "7 1 4 5 6 3 8 0 2 9 10 "},
        {GP_ORDER_LOAD, 20, "7 1 4 5 6 3 8 0 2 9 10 11 12 13 14 15 16 17 18 19 20 21 "},
        {GP_ORDER_IDLE, 9, "2 9 10 0 8 3 4 5 6 1 7 "},
        {GP_ORDER_FREE, 9, "2 9 10 3 4 5 6 0 1 8 7 "},
        {GP_ORDER_TEMPERATURE, 9, "7 3 8 4 5 6 1 0 2 9 10 "},
        {GP_ORDER_TROUBLE, 9, "7 3 0 1 2 4 5 6 8 9 10 "},
        {GP_ORDER_GRID, 15, "7 3 0 1 2 4 5 6 8 9 10 11 12 13 14 15 16 "},
    };
    struct gp_gpu_order order = {.entries = NULL};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_snapshot *s = mixed_machine(cases[i].gpus);
        struct gp_strbuf text = GP_STRBUF_INIT(1024);
        gp_gpu_order_set(&order, s, cases[i].by);
        for (size_t place = 0; place < order.count; place++) {
            gp_strbuf_addf(&text, "%zu ", gp_gpu_order_row(&order, place));
            assert_int_equal(gp_gpu_order_place(&order, gp_gpu_order_row(&order, place)), place);
        }
        if (strcmp(text.buf, cases[i].rows) != 0)
            fail_msg("case %zu: %s", i, text.buf);
        assert_int_equal(gp_gpu_order_place(&order, NO_ROW), order.count);
        gp_strbuf_fini(&text);
        gp_snapshot_free(s);
    }
    gp_gpu_order_fini(&order);
}

static void make_instance(struct gp_device *d, unsigned gpu, unsigned mig)
{
    d->index = gpu;
    d->is_mig = true;
    d->mig_index = mig;
}

/* An instance may be selected without its GPU: -i 0:2. */
static void instances_need_no_gpu(void **state)
{
    (void)state;
    struct gp_gpu_order order = {.entries = NULL};
    struct gp_snapshot *s = machine(5, 1); /* 0:2, 1, 1:0, 2:1, 2:3 */
    make_instance(&s->devices[0], 0, 2);
    make_instance(&s->devices[2], 1, 0);
    make_instance(&s->devices[3], 2, 1);
    make_instance(&s->devices[4], 2, 3);
    for (int by = GP_ORDER_AUTO; by < GP_ORDER__COUNT; by++) {
        gp_gpu_order_set(&order, s, (enum gp_gpu_order_by)by);
        assert_int_equal(order.count, 5);
        const size_t gpu = gp_gpu_order_place(&order, 1);
        assert_int_equal(gp_gpu_order_place(&order, 2), gpu + 1);
        assert_int_equal(gp_gpu_order_place(&order, 4), gp_gpu_order_place(&order, 3) + 1);
    }
    gp_gpu_order_set(&order, s, GP_ORDER_FREE); /* of 80 GiB: 0:2 has all, 1 has 69 */
    assert_int_equal(gp_gpu_order_row(&order, 0), 0);
    assert_int_equal(gp_gpu_order_row(&order, 1), 1);
    gp_gpu_order_set(&order, s, GP_ORDER_INDEX);
    assert_true(gp_gpu_order_is_index(&order));
    gp_snapshot_free(s);
    gp_gpu_order_fini(&order);

    struct gp_ui ui;
    s = machine(1, 1);
    make_instance(&s->devices[0], 0, 2);
    gp_value_set_text(device_value(&s->devices[0], GP_MIG_PROFILE), "1g.10gb", 1);
    gp_ui_init(&ui);
    gp_ui_take(&ui, s, 1);
    for (int view = GP_DENSITY_CARD; view <= GP_DENSITY_AUTO; view++) {
        ui.prefs.view = view;
        assert_non_null(strstr(picture(&ui, 80, 24), "0:2"));
    }
    press(&ui, "\t");
    assert_int_equal(ui.gpu, 0);
    assert_int_equal(ui.mig, 2);
    press(&ui, "\n");
    check_has(&ui, "MIG 0:2");
    press(&ui, "q0");
    assert_int_equal(ui.gpu, -1);
    press(&ui, "0a!q\n");
    (void)picture(&ui, 80, 24);
    assert_true(gp_ui_fini(&ui));
}

static void check_order(struct gp_gpu_order *order, struct gp_snapshot *s, const int loads[4],
                        const char *expected)
{
    GP_GPU_TEXT(text);
    for (size_t i = 0; i < 4; i++)
        gp_value_set_int(device_value(&s->devices[i], GP_UTILIZATION_GPU), loads[i], 1);
    gp_gpu_order_set(order, s, GP_ORDER_LOAD);
    for (size_t place = 0; place < order->count; place++)
        gp_strbuf_addf(&text, "%zu", gp_gpu_order_row(order, place));
    assert_string_equal(text.buf, expected);
}

/* By the value that is shown; then they stay until they differ by more than a bit. */
static void gpus_do_not_dance(void **state)
{
    (void)state;
    struct gp_gpu_order order = {.entries = NULL};
    struct gp_snapshot *s = machine(4, 1);
    check_order(&order, s, (const int[]){61, 69, 63, 62}, "1230");
    check_order(&order, s, (const int[]){64, 66, 63, 64}, "1230");
    check_order(&order, s, (const int[]){66, 63, 63, 66}, "1230");
    check_order(&order, s, (const int[]){67, 63, 63, 66}, "0123");
    check_order(&order, s, (const int[]){67, 63, 90, 66}, "2013");
    gp_gpu_order_set(&order, s, GP_ORDER_INDEX);
    check_order(&order, s, (const int[]){67, 63, 90, 66}, "2031"); /* anew */
    assert_false(gp_gpu_order_is_index(&order));
    for (int round = 0; round < 1000; round++) { /* nobody is far above one that has more */
        int loads[4];
        for (int i = 0; i < 4; i++)
            loads[i] = (round * (7 + i) + i * 31) % 101;
        for (int i = 0; i < 4; i++)
            gp_value_set_int(device_value(&s->devices[i], GP_UTILIZATION_GPU), loads[i], 1);
        gp_gpu_order_set(&order, s, GP_ORDER_LOAD);
        assert_int_equal(order.count, 4);
        for (size_t i = 0; i < 4; i++)
            for (size_t j = i; j < 4; j++)
                assert_true(loads[gp_gpu_order_row(&order, i)] + 3 >=
                            loads[gp_gpu_order_row(&order, j)]);
    }
    gp_gpu_order_fini(&order);
    gp_snapshot_free(s);
}

/* The first press changes something, and the title says what. */
static void o_skips_what_is_so_already(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    gp_ui_take(&ui, mixed_machine(9), 1);
    (void)picture(&ui, 80, 24);
    press(&ui, "o");
    assert_int_equal(ui.prefs.gpu_order, GP_ORDER_LOAD);
    assert_non_null(strstr(picture(&ui, 80, 24), " · sort GPU-MEM▼ · GPUs by load ─"));
    press(&ui, "ooooo");
    assert_int_equal(ui.prefs.gpu_order, GP_ORDER_AUTO);
    ui.prefs.view = GP_DENSITY_GRID; /* without room for all, problems are first */
    assert_null(strstr(picture(&ui, 20, 4), " · GPUs by"));
    press(&ui, "o");
    assert_int_equal(ui.prefs.gpu_order, GP_ORDER_INDEX);
    press(&ui, "o");
    assert_non_null(strstr(picture(&ui, 120, 40), "┌─ GPUs 11 · by load ─"));
    assert_true(gp_ui_fini(&ui));
}

/* Places in a grid stay, even if a GPU is lost; those that are not shown are counted. */
static void places_in_a_grid_stay(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    struct gp_snapshot *s = machine(64, 0);
    s->devices[21].status = GP_STATUS_LOST;
    s->devices[21].status_text = "lost";
    gp_ui_take(&ui, s, 1);
    const char *text = picture(&ui, 80, 24);
    assert_true(strstr(text, " 20 ") < strstr(text, " 21 lost"));
    assert_true(strstr(text, " 22 ") < strstr(text, " 20 ")); /* the top of the next column */
    assert_null(strstr(text, "more"));
    assert_non_null(strstr(picture(&ui, 40, 12), "more"));
    assert_non_null(strstr(picture(&ui, 40, 12), "processes 1-"));
    assert_non_null(strstr(picture(&ui, 40, 12), " ! "));
    ui.prefs.view = GP_DENSITY_LINE;
    (void)line_with(&ui, 140, 40, "┌─ GPUs 0-27 of 64 ─");
    (void)line_with(&ui, 100, 24, " more");
    ui.prefs.view = GP_DENSITY_CARD;
    (void)line_with(&ui, 140, 40, " · GPUs 0-3 of 64 ─");
    assert_true(gp_ui_fini(&ui));
}

static void the_cursor_follows_the_order(void **state)
{
    (void)state;
    static const int expected[] = {5, 1, 4, 4, 4, 3, 6, 0, 2, 7};
    struct gp_ui ui;
    gp_ui_init(&ui);
    gp_ui_take(&ui, mixed_machine(20), 1);
    press(&ui, "o\t");
    (void)picture(&ui, 80, 24);
    for (size_t i = 0; i < GP_ARRAY_LEN(expected); i++) {
        (void)picture(&ui, 80, 24);
        assert_int_equal(ui.gpu, expected[i]);
        (void)gp_ui_key(&ui, GP_KEY_DOWN);
    }
    for (int i = 0; i < 4; i++)
        (void)gp_ui_key(&ui, GP_KEY_UP);
    assert_int_equal(ui.gpu, 6);
    press(&ui, "o"); /* the selected GPU stays selected, and visible */
    check_has(&ui, "GPUs by least load");
    assert_int_equal(ui.gpu, 6);
    ui.prefs.view = GP_DENSITY_CARD;
    (void)picture(&ui, 80, 24);
    press(&ui, "\t"); /* also without the keys */
    for (int by = 0; by <= GP_ORDER_TROUBLE; by++) {
        press(&ui, "o");
        assert_int_equal(ui.gpu, 6);
        (void)picture(&ui, 80, 24);
        const size_t place = gp_gpu_order_place(&ui.gpu_order, gp_watch_gpu_row(&ui));
        assert_in_range(place, ui.first_gpu, ui.first_gpu + ui.gpu_page - 1);
    }
    assert_true(gp_ui_fini(&ui));
}

/* ---- cards ---- */

/* Of a machine of 8 GPUs whose first one is limited since some seconds. */
static const char *limited_line(unsigned since_s, int w, int h, const char *keys, const char *words)
{
    struct gp_ui ui;
    gp_ui_init(&ui);
    for (unsigned tick = 0; tick < 2; tick++) {
        struct gp_snapshot *s = machine(8, tick * since_s);
        gp_value_set_int(device_value(&s->devices[0], GP_REASONS_ACTIVE), 4, 1);
        gp_ui_take(&ui, s, 1);
    }
    press(&ui, keys);
    const char *line = line_with(&ui, w, h, words);
    assert_true(gp_ui_fini(&ui));
    return line;
}

static void the_age_of_a_limit_moves_nothing(void **state)
{
    (void)state;
    static const struct {
        unsigned s;
        const char *words;
    } cases[] = {{5, "limited: power ──── "},     {20, "limited: power 20s "},
                 {60, "limited: power 1m ─ "},    {3599, "limited: power 59m "},
                 {7200, "limited: power 2h ─ "},  {86400, "limited: power 24h "},
                 {7777777, "limited: power 99h "}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const char *line = limited_line(cases[i].s, 120, 40, "", "0 H100");
        const char *at = strstr(line, cases[i].words);
        if (!at)
            fail_msg("'%s' is not in %s", cases[i].words, line);
        assert_int_equal(gp_utf8_width(at), gp_utf8_width(strstr(line, "limited")));
    }
}

/* Two lines have no room for words, but a letter. */
static void a_limit_hides_no_value(void **state)
{
    (void)state;
    const char *line = limited_line(20, 80, 24, "xgg", "0 H100");
    assert_non_null(strstr(line, "HBM3 P   SM 1980 MHz  40°C mem 61°C  100/700 W"));
}

/* How long the sparklines are is told in any case. */
static void the_first_bars_tell_the_time(void **state)
{
    (void)state;
    struct gp_ui ui;
    assert_non_null(strstr(limited_line(20, 120, 40, "", "0 H100"), " last 1m2s ─"));
    watch(&ui, 8);
    assert_non_null(strstr(line_with(&ui, 120, 40, "0 H100"), "─30s─"));
    assert_true(gp_ui_fini(&ui));
}

/* The columns from the corner to the end of the first or the second time axis of a line. */
static size_t axis_of(const char *line, int i)
{
    const char *corner = strstr(line, "└");
    corner = i > 0 ? strstr(corner + 1, "└") : corner;
    char text[512];
    (void)snprintf(text, sizeof(text), "%.*s", (int)(strstr(corner, "now") - corner), corner);
    return gp_utf8_width(text);
}

static void graphs_side_by_side_are_equal(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    for (int w = 60; w < 200; w += 7) {
        const char *line = line_with(&ui, w, 24, "─now");
        assert_int_equal(axis_of(line, 0), axis_of(line, 1));
    }
    assert_true(gp_ui_fini(&ui));
}

/* No scale is made up for a GPU that was lost from the beginning. */
static void an_unknown_scale_is_not_shown(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    struct gp_snapshot *s = machine(1, 0);
    s->devices[0] =
        (struct gp_device){.status = GP_STATUS_LOST, .status_text = "lost", .process_count = 0};
    gp_ui_take(&ui, s, 1);
    const char *seen = picture(&ui, 200, 60);
    assert_non_null(strstr(seen, " 100%│"));
    assert_null(strstr(seen, "0.1"));
    assert_true(gp_ui_fini(&ui));
}

/* Bars below each other do not touch, with or without colors. */
static void bars_below_each_other_do_not_touch(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 8);
    const char *line = line_with(&ui, 120, 40, "44.0/80.0G");
    assert_non_null(strstr(line, "MEM  ▆▆▆"));
    assert_null(strstr(line, "█"));
    assert_non_null(strstr(picture(&ui, 120, 40), "UTIL ██"));
    assert_true(gp_ui_fini(&ui));
}

/* Who it is comes first. */
static void the_page_of_a_gpu_begins_with_it(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    struct gp_snapshot *s = machine(2, 0);
    gp_value_set_int(device_value(&s->devices[1], GP_INDEX), 1, 1);
    gp_value_set_text(device_value(&s->devices[1], GP_STATUS_TEXT), "ok", 1);
    gp_ui_take(&ui, s, 1);
    press(&ui, "1\t\n");
    check_has(&ui, "GPU 1 · H100 80GB HBM3 · m: next graph");
    const char *seen = picture(&ui, 100, 60);
    const char *index = strstr(seen, "index ");
    assert_non_null(index);
    assert_true(index < strstr(seen, "name "));
    assert_null(strstr(seen, "status.text"));
    assert_null(strstr(index + 1, "index "));
    assert_true(gp_ui_fini(&ui));
}

/* Enter and a double click on the line of an instance open its page, and not that of its GPU. */
static void the_page_of_an_instance(void **state)
{
    (void)state;
    struct gp_ui ui;
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 16);
    gp_ui_init(&ui);
    for (unsigned tick = 0; tick < 3; tick++) {
        struct gp_snapshot *s = machine_like(MIG, 1, tick);
        gp_value_set_int(device_value(&s->devices[0], GP_BAR1_TOTAL), INT64_C(128) * GIB, 1);
        gp_value_set_int(device_value(&s->devices[0], GP_BAR1_USED), INT64_C(79) * GIB, 1);
        gp_value_set_int(device_value(&s->devices[1], GP_BAR1_TOTAL), INT64_C(32) * GIB, 1);
        gp_value_set_int(device_value(&s->devices[1], GP_BAR1_USED), INT64_C(8) * GIB, 1);
        gp_value_set_real(device_value(&s->devices[1], GP_GPM_SM), 45, 1);
        gp_ui_take(&ui, s, 1);
    }
    press(&ui, "\t");
    press(&ui, "\n");
    check_has(&ui, "79.0G of 128G (62%)");
    press(&ui, "q");
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_GPU);
    gp_strbuf_adds(&all, picture(&ui, 80, 24));
    press(&ui, "q");
    (void)gp_ui_key(&ui, GP_KEY_DOWN); /* nobody uses it, and its BAR1 is not known */
    press(&ui, "\n");
    gp_strbuf_adds(&all, picture(&ui, 60, 18));
    gp_ui_take(&ui, machine(1, 3), 1); /* it is taken away */
    gp_strbuf_adds(&all, picture(&ui, 40, 12));
    golden_check("top-instance.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
    press(&ui, "q");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    gp_ui_take(&ui, machine_like(MIG, 1, 4), 1);
    const char *seen = picture(&ui, 80, 24);
    int y = 0;
    for (const char *at = seen; at < strstr(seen, "└1 1g.20gb"); at++)
        y += *at == '\n';
    (void)gp_ui_click(&ui, 4, y, false);
    (void)gp_ui_click(&ui, 4, y, true);
    assert_int_equal(ui.mode, GP_UI_GPU);
    check_has(&ui, "MIG 0:1");
    assert_true(gp_ui_fini(&ui));
}

/* A number and Enter: the page of that GPU. Without focus, the list scrolls to it. */
static void a_number_jumps_to_a_gpu(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 64);
    press(&ui, "ggg"); /* lines, which do not fit */
    assert_null(strstr(picture(&ui, 80, 24), "\n  37 H100"));
    press(&ui, "37");
    assert_non_null(strstr(picture(&ui, 80, 24), "\n  37 H100"));
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_GPU);
    assert_int_equal(ui.details.gpu, 37);
    press(&ui, "q");
    press(&ui, "\n");
    assert_int_equal(ui.mode, GP_UI_PROCESS);
    assert_true(gp_ui_fini(&ui));
}

/* A click hits the GPU that is drawn there. */
static void clicks_follow_the_order(void **state)
{
    (void)state;
    struct gp_ui ui;
    gp_ui_init(&ui);
    gp_ui_take(&ui, mixed_machine(20), 1);
    press(&ui, "o");
    ui.prefs.view = GP_DENSITY_LINE;
    (void)picture(&ui, 80, 24);
    (void)gp_ui_click(&ui, 1, 2, false);
    assert_int_equal(ui.gpu, 5);
    (void)picture(&ui, 80, 24);
    (void)gp_ui_click(&ui, 1, 3, false);
    assert_int_equal(ui.gpu, 1);
    assert_true(gp_ui_fini(&ui));
}

/* ---- cost ---- */

/* What a frame needs was allocated for the first ones. */
static void a_frame_allocates_nothing(void **state)
{
    (void)state;
    static const int sizes[][2] = {{80, 24}, {120, 40}, {200, 60}, {40, 12}};
    for (size_t gpus = 1; gpus <= 64; gpus *= 8)
        for (size_t i = 0; i < GP_ARRAY_LEN(sizes); i++) {
            struct gp_ui ui;
            struct gp_cells cells = {0, 0, NULL};
            watch(&ui, gpus);
            assert_int_equal(gp_cells_resize(&cells, sizes[i][0], sizes[i][1]), 0);
            gp_ui_draw(&ui, &cells, "14:02");
            gp_ui_take(&ui, machine(gpus, 40), GP_NS_PER_MS);
            alloc_fail_at(-1);
            gp_ui_draw(&ui, &cells, "14:02");
            assert_int_equal(alloc_count(), 0);
            gp_cells_fini(&cells);
            assert_true(gp_ui_fini(&ui));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_are_listed_by_memory),
        cmocka_unit_test(many_owners_are_counted),
        cmocka_unit_test(memory_of_nobody_is_named),
        cmocka_unit_test(programs_are_named_instead_of_one_user),
        cmocka_unit_test(one_user_is_in_the_heading),
        cmocka_unit_test(names_are_cut_at_words),
        cmocka_unit_test(screens_of_gpus),
        cmocka_unit_test(all_gpus_have_a_mean),
        cmocka_unit_test(its_past_is_cut_as_well),
        cmocka_unit_test(reasons_are_cut_where_they_may_end),
        cmocka_unit_test(strips_of_every_width),
        cmocka_unit_test(gpus_are_ordered),
        cmocka_unit_test(instances_need_no_gpu),
        cmocka_unit_test(an_instance_has_its_own_processes),
        cmocka_unit_test(instances_say_their_share),
        cmocka_unit_test(gpus_do_not_dance),
        cmocka_unit_test(o_skips_what_is_so_already),
        cmocka_unit_test(places_in_a_grid_stay),
        cmocka_unit_test(the_cursor_follows_the_order),
        cmocka_unit_test(the_age_of_a_limit_moves_nothing),
        cmocka_unit_test(a_limit_hides_no_value),
        cmocka_unit_test(the_first_bars_tell_the_time),
        cmocka_unit_test(graphs_side_by_side_are_equal),
        cmocka_unit_test(an_unknown_scale_is_not_shown),
        cmocka_unit_test(bars_below_each_other_do_not_touch),
        cmocka_unit_test(the_page_of_a_gpu_begins_with_it),
        cmocka_unit_test(the_page_of_an_instance),
        cmocka_unit_test(a_number_jumps_to_a_gpu),
        cmocka_unit_test(clicks_follow_the_order),
        cmocka_unit_test(a_frame_allocates_nothing),
    };
    return cmocka_run_group_tests_name("tui_gpus", tests, NULL, NULL);
}
