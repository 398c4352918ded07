/* Processes as text: as a table, as csv and as JSON, and their sums. */
#include "golden.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/proc_list.h"
#include "out/tree.h"

enum { GIB = 1 << 30, MIB = 1 << 20 };

static const enum gp_proc_column columns[] = {
    GP_PROC_PID_COLUMN,    GP_PROC_USER_COLUMN, GP_PROC_GPU_COLUMN,       GP_PROC_SM_COLUMN,
    GP_PROC_MEMORY_COLUMN, GP_PROC_TIME_COLUMN, GP_PROC_CONTAINER_COLUMN, GP_PROC_COMMAND_COLUMN,
};

#define KNOWN(number)                                                                              \
    {                                                                                              \
        (number), true, false                                                                      \
    }
#define OLD(number)                                                                                \
    {                                                                                              \
        (number), true, true                                                                       \
    }

/* A parent that is on no GPU, two children, memory of nobody, text that has to be quoted. */
static const struct gp_proc_row rows[] = {
    {.pid = 10, .user = "root", .command = "slurmstepd", .cpu = KNOWN(0.5)},
    {.pid = 20,
     .ppid = 10,
     .gpus = "0,1",
     .user = "alice",
     .command = "python train.py, \"fast\"",
     .container = "slurm:4711.0",
     .job = "4711.0",
     .memory = KNOWN(71.5 * GIB),
     .sm = KNOWN(98),
     .cpu = KNOWN(103.25),
     .rss = KNOWN(5.0 * GIB),
     .age_s = KNOWN(3 * 3600)},
    {.pid = 30,
     .ppid = 20,
     .gpus = "2",
     .user = "alice",
     .command = "python worker.py",
     .container = "slurm:4711.1",
     .job = "4711.1",
     .memory = OLD(20.0 * GIB),
     .sm = KNOWN(2),
     .rss = KNOWN(512.0 * MIB)},
    {.pid = 40, .ppid = 20, .gpus = "3", .command = "日本語", .memory = KNOWN(1.0 * GIB)},
    {.pid = 50,
     .gpus = "3",
     .user = "bob",
     .command = "Xorg",
     .container = "unit:gdm.service",
     .memory = KNOWN(1.0 * GIB),
     .cpu = KNOWN(1)},
    {.pid = 60,
     .gpus = "3",
     .user = "carol",
     .container = "pbs:12.server",
     .job = "12.server",
     .sm = KNOWN(1)},
    {.pid = 70, .gpus = "3", .user = "al", .container = "docker:0123456789ab", .denied = ~0U},
    {.pid = 0, .gpus = "1", .command = "(nobody)", .memory = KNOWN(300.0 * MIB)},
};

static struct gp_procs as_tree(void)
{
    struct gp_procs procs = {.rows = calloc(GP_ARRAY_LEN(rows), sizeof(*rows)),
                             .count = GP_ARRAY_LEN(rows)};
    assert_non_null(procs.rows);
    memcpy(procs.rows, rows, sizeof(rows));
    assert_int_equal(gp_tree_arrange(&procs, GP_PROC_GROUPS_NONE), 0);
    return procs;
}

static void tables_and_csv(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_procs procs = as_tree();
    struct gp_proc_list list = {
        .columns = columns, .column_count = GP_ARRAY_LEN(columns), .header = true};
    static const size_t rooms[] = {0, 200, 60, 1};
    for (size_t i = 0; i < GP_ARRAY_LEN(rooms); i++) {
        list.room = rooms[i];
        gp_strbuf_addf(&sb, "==== %zu columns\n", rooms[i]);
        gp_proc_list_add(&sb, &list, &procs);
    }
    list.room = 60;
    list.header = false;
    gp_strbuf_adds(&sb, "==== without heading\n");
    gp_proc_list_add(&sb, &list, &procs);
    list.csv = true;
    gp_strbuf_adds(&sb, "==== csv without heading\n");
    gp_proc_list_add(&sb, &list, &procs);
    list.header = true;
    gp_strbuf_adds(&sb, "==== csv\n");
    gp_proc_list_add(&sb, &list, &procs);
    list.columns = (const enum gp_proc_column[]){GP_PROC_COMMAND_COLUMN, GP_PROC_PID_COLUMN};
    list.column_count = 2;
    list.csv = false;
    gp_strbuf_adds(&sb, "==== the command first\n");
    gp_proc_list_add(&sb, &list, &procs);
    assert_int_equal(sb.error, 0);
    golden_check("ps-list.txt", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
    gp_procs_fini(&procs);
}

static void sums_by_everything(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    const struct gp_procs procs = {.rows = (struct gp_proc_row *)(uintptr_t)rows,
                                   .count = GP_ARRAY_LEN(rows)};
    const struct gp_snapshot snapshot = {.wall_ns = UINT64_C(1795183445123) * GP_NS_PER_MS};
    static const char *const words[] = {"user", "container", "job", "unit", "gpu"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++) {
        const struct gp_proc_by *by = gp_proc_by(words[i]);
        struct gp_proc_sum *sums;
        size_t count;
        assert_non_null(by);
        assert_int_equal(gp_proc_sums(&procs, by, &sums, &count), 0);
        for (int form = 0; form < 4; form++) {
            const struct gp_proc_list list = {.csv = form & 1, .header = !(form & 2)};
            gp_strbuf_addf(&sb, "==== %s, %s%s\n", words[i], list.csv ? "csv" : "a table",
                           list.header ? "" : " without heading");
            gp_proc_sums_add(&sb, &list, by, sums, count);
        }
        gp_strbuf_addf(&sb, "==== %s, JSON\n", words[i]);
        gp_proc_sums_json(&sb, &snapshot, by, sums, count);
        free(sums);
    }
    golden_check("ps-sums.txt", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
    assert_null(gp_proc_by("users"));
    assert_null(gp_proc_by(""));
}

static void which_columns_are_summed_up(void **state)
{
    (void)state;
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++)
        assert_int_equal(gp_proc_sums_have((enum gp_proc_column)c),
                         c == GP_PROC_MEMORY_COLUMN || c == GP_PROC_SM_COLUMN ||
                             c == GP_PROC_CPU_COLUMN || c == GP_PROC_RSS_COLUMN ||
                             c == GP_PROC_SUSPENDED_COLUMN);
}

static void rows_as_json(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_procs procs = as_tree();
    const struct gp_snapshot snapshot = {.wall_ns = UINT64_C(1795183445123) * GP_NS_PER_MS};
    procs.rows[0].age_s = (struct gp_amount){0x1p53, true, false};
    procs.rows[1].age_s = (struct gp_amount){-2, true, false};
    procs.rows[2].age_s = (struct gp_amount){0x1p53 - 1, true, false};
    procs.rows[3].age_s = (struct gp_amount){0, true, false};
    gp_proc_list_json(&sb, &snapshot, &procs);
    golden_check("ps-list.json", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
    gp_procs_fini(&procs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_csv),
        cmocka_unit_test(sums_by_everything),
        cmocka_unit_test(which_columns_are_summed_up),
        cmocka_unit_test(rows_as_json),
    };
    return cmocka_run_group_tests_name("proc_list", tests, NULL, NULL);
}
