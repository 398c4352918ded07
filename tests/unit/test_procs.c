/* Rows of processes: how they are made, sorted, filtered, written, and put into a tree. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "out/procs.h"
#include "out/tree.h"
#include "snapshot_fixture.h"

enum { MIB = 1 << 20, ROWS_MOST = 8 };

/* ---- sorting and filtering ---- */

static struct gp_proc_row room[ROWS_MOST];

/* "3,1,2": the pids as they come with this order and filter. */
static void order_is(const struct gp_proc_row *rows, size_t count, const char *order,
                     const char *filter, const char *expected)
{
    struct gp_err err = {0};
    struct gp_procs procs = {.rows = room, .count = count};
    struct gp_procs_options options = {.filter = filter, .gpu = -1};
    char text[128] = "";
    size_t n = 0;
    memcpy(room, rows, count * sizeof(*rows));
    assert_int_equal(gp_proc_order_parse(order, &options.order, &err), 0);
    gp_procs_filter(&procs, options.filter);
    gp_procs_sort(&procs, &options.order);
    for (size_t i = 0; i < procs.count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d", i > 0 ? "," : "",
                              (int)room[i].pid);
    if (strcmp(text, expected) != 0)
        fail_msg("by '%s' with '%s' they are %s, not %s", order, filter ? filter : "", text,
                 expected);
    assert_int_equal(procs.hidden, count - procs.count);
}

#define KNOWN(number)                                                                              \
    {                                                                                              \
        (number), true, false                                                                      \
    }

static void what_is_not_known_comes_last_both_ways(void **state)
{
    (void)state;
    static const struct gp_proc_row rows[] = {
        {.pid = 1, .user = "bob", .ppid = 9, .memory = KNOWN(5)},
        {.pid = 2},
        {.pid = 3, .user = "ann", .ppid = 8, .memory = KNOWN(0)},
        {.pid = 4, .user = "Carl", .ppid = 7, .memory = KNOWN(7)},
        {.pid = 5, .sm = KNOWN(0)},
    };
    static const struct {
        const char *order, *expected;
    } cases[] = {
        {"", "1,2,3,4,5"},
        {"pid", "1,2,3,4,5"},
        {"-pid", "5,4,3,2,1"},
        {"memory", "4,1,3,2,5"},
        {"-memory", "3,1,4,2,5"},
        {"user", "3,1,4,2,5"},
        {"-user", "4,1,3,2,5"},
        {"ppid", "4,3,1,2,5"},
        {"-ppid", "1,3,4,2,5"},
        {"sm,memory", "5,4,1,3,2"},
        {"-sm,memory", "5,4,1,3,2"},
        {"user,-pid", "3,1,4,5,2"},
        {"cpu,-memory,pid", "3,1,4,2,5"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        order_is(rows, GP_ARRAY_LEN(rows), cases[i].order, NULL, cases[i].expected);
}

static void equal_ones_by_pid_and_gpu(void **state)
{
    (void)state;
    static const struct gp_proc_row rows[] = {
        {.pid = 3, .gpu = 0, .gpus = "0"},
        {.pid = 2, .gpu = 1, .gpus = "1"},
        {.pid = 1, .gpu = 2, .gpus = "2"},
    };
    order_is(rows, 3, "memory", NULL, "1,2,3");
    order_is(rows, 3, "-memory", NULL, "1,2,3");
    order_is(rows, 3, "gpu", NULL, "3,2,1");
    order_is(rows, 3, "-gpu", NULL, "1,2,3");
    struct gp_proc_row same[] = {{.pid = 1, .gpu = 2}, {.pid = 1, .gpu = 0}, {.pid = 1, .gpu = 1}};
    order_is(same, 3, "memory", NULL, "1,1,1");
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(room[i].gpu, i);
}

static void filters(void **state)
{
    (void)state;
    static const struct gp_proc_row rows[] = {
        {.pid = 41,
         .ns_pid = 7,
         .user = "alice",
         .command = "python train.py user:x",
         .type = "C",
         .container = "slurm:4711.0",
         .job = "4711.0",
         .gpus = "0-2",
         .gpu_bits = {7}},
        {.pid = 410,
         .ns_pid = 77,
         .user = "al",
         .command = "Xorg",
         .type = "G",
         .container = "docker:12ab",
         .container_name = "web",
         .gpus = "4:1,4:2",
         .gpu_bits = {16}},
        {.pid = 5, .container = "pbs:4711", .job = "4711", .gpus = "4", .gpu_bits = {16}},
    };
    static const struct {
        const char *filter, *expected;
    } cases[] = {
        {NULL, "5,41,410"},      {"", "5,41,410"},
        {"al", "41,410"},        {"AL", "41,410"},
        {"user:al", "41,410"},   {"user=al", "410"},
        {"user=AL", "410"},      {"user=al,alice", "41,410"},
        {"user=alic", ""},       {"user=al,", "410"},
        {"user:", "41"}, /* no word of a field: text */
        {"user:,x", ""},         {"container:,x", ""},
        {"41", "41,410"},        {"pid:41", "41,410"},
        {"pid=41", "41"},        {"ns_pid:7", "41"},
        {"ns_pid=77", "410"},    {"cmd:train", "41"},
        {"type:c", "41"},        {"container:slurm", "41"},
        {"container:we", "410"}, {"container=web", "410"},
        {"container=we", ""},    {"container=docker:12ab", "410"},
        {"job:4711", "5,41"},    {"job:4711.0", "41"},
        {"job:471", ""},         {"gpu:0", "41"},
        {"gpu:3", ""},           {"gpu:2-4", "5,41,410"},
        {"gpu:3-9", "5,410"},    {"gpu:4", "5,410"},
        {"gpu:4:1", "410"},      {"gpu:4:0", ""},
        {"gpu:4:2", "410"},      {"gpu:4:", ""},
        {"gpu:0-2", "41"},       {"gpu:255", ""},
        {"gpu:256", ""},         {"al type:G", "410"},
        {"al  type:G ", "410"},  {"al type:M", ""},
        {"foo:bar", ""},         {"train.py", "41"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        order_is(rows, GP_ARRAY_LEN(rows), "pid", cases[i].filter, cases[i].expected);
}

static void fields_that_there_are_not(void **state)
{
    (void)state;
    static const char *const good[] = {"",   "a",     "user:x",  "gpu=1 job:2", "http://x",
                                       ":x", "user:", "FOO:bar", "ns_pid:1"};
    static const char *const bad[] = {"foo:bar", "foo:", "a foo=bar", "users:x", "user:x pids=1"};
    for (size_t i = 0; i < GP_ARRAY_LEN(good); i++) {
        struct gp_err err = {0};
        if (gp_procs_check_filter(good[i], &err) != 0)
            fail_msg("'%s': %s", good[i], err.text);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(bad); i++) {
        struct gp_err err = {0};
        if (gp_procs_check_filter(bad[i], &err) != GP_EUSAGE)
            fail_msg("'%s' is taken", bad[i]);
        assert_non_null(strstr(err.text, "unknown field '"));
    }
}

/* ---- words ---- */

static void orders_in_words(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_proc_order order;
    struct gp_strbuf sb = GP_STRBUF_INIT(256);
    assert_int_equal(gp_proc_order_parse("user,-memory,pid,gpu,sm", &order, &err), 0);
    assert_int_equal(order.count, GP_PROC_SORTS);
    gp_proc_order_format(&sb, &order);
    assert_string_equal(sb.buf, "user,-memory,pid,gpu");
    gp_strbuf_truncate(&sb, 0);
    gp_proc_order_put(&order, GP_PROC_PID_COLUMN); /* to the front, and the right way round */
    gp_proc_order_format(&sb, &order);
    assert_string_equal(sb.buf, "pid,user,-memory,gpu");
    gp_strbuf_truncate(&sb, 0);
    gp_proc_order_put(&order, GP_PROC_SM_COLUMN); /* the last has no room any more */
    gp_proc_order_format(&sb, &order);
    assert_string_equal(sb.buf, "sm,pid,user,-memory");
    gp_strbuf_fini(&sb);
    struct gp_proc_order before = order;
    assert_int_equal(gp_proc_order_parse("pid,users", &order, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "unknown column 'users' (did you mean 'user'?)"));
    assert_memory_equal(&order, &before, sizeof(order));
}

static void columns_in_words(void **state)
{
    (void)state;
    struct gp_err err = {0};
    enum gp_proc_column columns[GP_PROC_COLUMN__COUNT];
    size_t count = 0;
    size_t shown = 0;
    assert_int_equal(gp_proc_columns_parse("command,pid", columns, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(columns[0], GP_PROC_COMMAND_COLUMN);
    assert_int_equal(columns[1], GP_PROC_PID_COLUMN);
    assert_int_equal(gp_proc_columns_parse("pid,", columns, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(gp_proc_columns_parse("", columns, &count, &err), 0);
    for (int i = 0; i < GP_PROC_COLUMN__COUNT; i++)
        shown += gp_proc_column_table[i].is_default;
    assert_int_equal(count, shown);
    for (size_t i = 0; i < count; i++)
        assert_true(gp_proc_column_table[columns[i]].is_default);
    assert_int_equal(gp_proc_columns_parse("pid,no", columns, &count, &err), GP_EUSAGE);
    assert_int_equal(gp_proc_columns_parse("sesion", columns, &count, &err), GP_EUSAGE);
    assert_string_equal(err.text, "unknown column 'sesion' (did you mean 'session'?); --columns "
                                  "help lists all");
    assert_int_equal(count, shown);
    assert_int_equal(gp_proc_columns_parse("mem,Started,gpu-mem,bw%", columns, &count, &err), 0);
    assert_int_equal(columns[0], GP_PROC_MEMORY_COLUMN);
    assert_int_equal(columns[1], GP_PROC_START_COLUMN);
    assert_int_equal(columns[2], GP_PROC_MEMORY_COLUMN);
    assert_int_equal(columns[3], GP_PROC_MEM_COLUMN);
}

/* ---- values ---- */

static void says(const struct gp_proc_row *row, enum gp_proc_column column, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(256);
    gp_proc_format(&sb, row, column);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void sizes_and_ages(void **state)
{
    (void)state;
    static const struct {
        double bytes;
        const char *expected;
    } sizes[] = {
        {0, "0K"},
        {1023, "1K"},
        {999 * 1024, "999K"},
        {1000 * 1024, "1M"},
        {999.0 * MIB, "999M"},
        {1000.0 * MIB, "1.0G"},
        {99.0 * 0x1p30, "99.0G"},
        {100 * 0x1p30, "100G"},
        {999 * 0x1p30, "999G"},
        {1000 * 0x1p30, "1.0T"},
        {2000 * 0x1p40, "2000T"},
    };
    static const struct {
        double age_s;
        const char *expected;
    } ages[] = {
        {0, "0s"},       {59.9, "59s"},      {60, "1m"},     {5999, "99m"},  {6000, "1h40m"},
        {7260, "2h01m"}, {172799, "47h59m"}, {172800, "2d"}, {259199, "2d"},
    };
    struct gp_proc_row row = {.pid = 7};
    says(&row, GP_PROC_MEMORY_COLUMN, "-");
    for (size_t i = 0; i < GP_ARRAY_LEN(sizes); i++) {
        row.memory = (struct gp_amount){sizes[i].bytes, true, false};
        says(&row, GP_PROC_MEMORY_COLUMN, sizes[i].expected);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(ages); i++) {
        row.age_s = (struct gp_amount){ages[i].age_s, true, false};
        says(&row, GP_PROC_TIME_COLUMN, ages[i].expected);
    }
}

static void texts_and_numbers(void **state)
{
    (void)state;
    struct gp_proc_row row = {.pid = 7, .gpus = "0-1", .user = "ann", .sm = {25.2, true, false}};
    row.gpu_bits[0] = 3; /* the percentage is a mean of both */
    says(&row, GP_PROC_PID_COLUMN, "7");
    says(&row, GP_PROC_PPID_COLUMN, "-"); /* 0 is none */
    says(&row, GP_PROC_GPU_COLUMN, "0-1");
    says(&row, GP_PROC_USER_COLUMN, "ann");
    says(&row, GP_PROC_SM_COLUMN, "13");
    says(&row, GP_PROC_CWD_COLUMN, "-");
    row.denied = 1U << GP_PROC_CWD_COLUMN;
    row.command = "";
    says(&row, GP_PROC_CWD_COLUMN, "(not permitted)");
    says(&row, GP_PROC_COMMAND_COLUMN, "-");
    row.cwd = "/";
    says(&row, GP_PROC_CWD_COLUMN, "/");
    assert_null(gp_proc_text(&row, GP_PROC_SM_COLUMN));
    assert_false(gp_proc_amount(&row, GP_PROC_USER_COLUMN).known);
    assert_false(gp_proc_amount(&row, GP_PROC_GPU_COLUMN).known);
    assert_true(gp_procs_has_pid((const int64_t[]){3, 5}, 2, 5));
    assert_false(gp_procs_has_pid((const int64_t[]){3, 5}, 1, 5));
}

/* Those that it uses in the order of the driver: "4" is GPU 4, "4:1" an instance of it. */
static void lists_of_gpus(void **state)
{
    (void)state;
    static const struct {
        const char *added, *expected;
    } cases[] = {
        {"0", "0"},
        {"0 1", "0,1"},
        {"0 1 2", "0-2"},
        {"0 1 2 3", "0-3"},
        {"0 2 3 4", "0,2-4"},
        {"0 1 3 4 6", "0,1,3,4,6"},
        {"0 1 2 4 5 6 7", "0-2,4-7"},
        {"1:0 1:1", "1:0,1:1"},
        {"0 1:0 2", "0,1:0,2"},
        {"0 1 2:0 3 4 5", "0,1,2:0,3-5"},
        {"8 9 10 11", "8-11"},
        {"4 6 8 10 12 14 16 18 20 22", "4,6,8,10,12,14,16,18+"},
        {"0 2 4 6 8 10 12 14 16 18 20", "0,2,4,6,8,10,12,14,16+"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_proc_row row = {.pid = 1};
        for (const char *p = cases[i].added; *p; p += strcspn(p, " "), p += *p == ' ') {
            char *end;
            struct gp_device device = {.index = (unsigned)strtoul(p, &end, 10)};
            device.is_mig = *end == ':';
            device.mig_index = device.is_mig ? (unsigned)strtoul(end + 1, NULL, 10) : 0;
            gp_proc_row_add_gpu(&row, &device);
            assert_true(gp_proc_row_uses(&row, device.index));
            assert_false(gp_proc_row_uses(&row, device.index + 1));
        }
        assert_string_equal(row.gpus, cases[i].expected);
        assert_int_equal(row.gpu, strtoul(cases[i].added, NULL, 10));
    }
    struct gp_proc_row row = {.pid = 1};
    gp_proc_row_add_gpu(&row, &(struct gp_device){.index = 255});
    gp_proc_row_add_gpu(&row, &(struct gp_device){.index = 256});
    assert_true(gp_proc_row_uses(&row, 255));
    assert_false(gp_proc_row_uses(&row, 256));
}

/* ---- all of it ---- */

static struct fixture machine;

static int make_machine(void **state)
{
    (void)state;
    fixture_init(&machine);
    return 0;
}

static const struct gp_procs_options by_pid = {.order = {{{.column = GP_PROC_PID_COLUMN}}, 1},
                                               .gpu = -1};

static void a_row_has_all_gpus_of_a_process(void **state)
{
    (void)state;
    struct gp_procs procs = {.rows = NULL};
    struct gp_procs_options options = by_pid;
    *fixture_process(&machine, 1, GP_PID) = fixture_int(48448);
    machine.processes[1].device = FIXTURE_POOR;
    *fixture_process(&machine, 1, GP_PROCESS_MEMORY) = fixture_int(MIB);
    fixture_process(&machine, 0, GP_PROCESS_MEMORY)->status = GP_STATUS_STALE;
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.count, 2);
    assert_string_equal(procs.rows[0].gpus, "0,1");
    assert_int_equal((int64_t)procs.rows[0].memory.n, (INT64_C(70113) << 20) + 1);
    assert_true(procs.rows[0].memory.old);
    assert_false(procs.rows[0].sm.old);
    assert_int_equal((int)procs.rows[0].sm.n, 96);
    assert_string_equal(procs.rows[1].gpus, "4:0");
    options.per_gpu = true;
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.count, 3);
    assert_string_equal(procs.rows[0].gpus, "0");
    assert_string_equal(procs.rows[1].gpus, "1");
    options.gpu = 1;
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.count, 1);
    assert_string_equal(procs.rows[0].gpus, "1");
    options.gpu = 0;
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.count, 1);
    assert_string_equal(procs.rows[0].gpus, "0");
    gp_procs_fini(&procs);
    assert_null(procs.rows);
}

/* Each number of a process on its GPUs: the sum of them; what is of the process itself once. */
/* Rows of one process are joined, though another process has taken its place since the last time.
 */
static void processes_change_places(void **state)
{
    (void)state;
    struct gp_procs procs = {.rows = NULL};
    static const struct {
        int64_t pids[FIXTURE_PROCESSES];
        size_t rows;
        int64_t first;
    } looks[] = {{{5, 5, 6}, 2, 5}, {{5, 6, 5}, 2, 5}, {{9, 8, 7}, 3, 7}, {{4, 8, 4}, 2, 4}};
    machine.processes[1].device = FIXTURE_POOR;
    for (size_t i = 0; i < GP_ARRAY_LEN(looks); i++) {
        for (int p = 0; p < FIXTURE_PROCESSES; p++)
            *fixture_process(&machine, p, GP_PID) = fixture_int(looks[i].pids[p]);
        assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &by_pid), 0);
        assert_int_equal(procs.count, looks[i].rows);
        assert_int_equal(procs.rows[0].pid, looks[i].first);
    }
    gp_procs_fini(&procs);
}

static void numbers_of_all_gpus(void **state)
{
    (void)state;
    static const struct {
        enum gp_metric metric;
        enum gp_proc_column column;
        int times;
    } cases[] = {
        {GP_PROCESS_MEMORY, GP_PROC_MEMORY_COLUMN, 2},
        {GP_PROCESS_SUSPENDED, GP_PROC_SUSPENDED_COLUMN, 2},
        {GP_PROCESS_SM, GP_PROC_SM_COLUMN, 2},
        {GP_PROCESS_MEM, GP_PROC_MEM_COLUMN, 2},
        {GP_PROCESS_ENC, GP_PROC_ENC_COLUMN, 2},
        {GP_PROCESS_DEC, GP_PROC_DEC_COLUMN, 2},
        {GP_PROCESS_CPU, GP_PROC_CPU_COLUMN, 1},
        {GP_PROCESS_RSS, GP_PROC_RSS_COLUMN, 1},
    };
    struct gp_procs procs = {.rows = NULL};
    *fixture_process(&machine, 1, GP_PID) = fixture_int(48448);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        for (int k = 0; k < 2; k++)
            *fixture_process(&machine, k, cases[i].metric) =
                gp_metric_table[cases[i].metric].type == GP_TYPE_REAL
                    ? fixture_real((double)i + 10)
                    : fixture_int((int64_t)i + 10);
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &by_pid), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_amount amount = gp_proc_amount(&procs.rows[0], cases[i].column);
        assert_true(amount.known);
        assert_int_equal((int)amount.n, cases[i].times * ((int)i + 10));
    }
    gp_procs_fini(&procs);
}

static void memory_of_nobody_is_a_row(void **state)
{
    (void)state;
    struct gp_procs procs = {.rows = NULL};
    struct gp_procs_options options = by_pid;
    *fixture_value(&machine, FIXTURE_WELL, GP_MEMORY_UNATTRIBUTED) = fixture_int(256 * MIB);
    *fixture_value(&machine, FIXTURE_POOR, GP_MEMORY_UNATTRIBUTED) = fixture_int(256 * MIB - 1);
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.count, 4);
    assert_int_equal(procs.rows[0].pid, 0);
    assert_string_equal(procs.rows[0].gpus, "0");
    assert_int_equal((int64_t)procs.rows[0].memory.n, 256 * MIB);
    options.gpu = 1;
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.count, 0);
    *fixture_value(&machine, FIXTURE_POOR, GP_MEMORY_UNATTRIBUTED) = fixture_int(256 * MIB);
    options.gpu = 0;
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.count, 3); /* two processes */
    gp_procs_fini(&procs);
}

static void the_gpu_used_last_says_how_idle_it_is(void **state)
{
    (void)state;
    static const struct {
        double seconds[2]; /* on two GPUs; < 0: unknown */
        bool is_seen[2];   /* active, on them */
        const char *expected;
    } cases[] = {
        {{5, 90}, {true, false}, "5s"},      {{90, 5}, {true, false}, "≥5s"},
        {{90, 5}, {false, true}, "5s"},      {{3, -1}, {true, false}, "-"},
        {{-1, 3}, {false, true}, "-"},       {{-1, -1}, {false, false}, "-"},
        {{180, 180}, {false, false}, "≥3m"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_procs procs = {.rows = NULL};
        struct gp_strbuf sb = GP_STRBUF_INIT(64);
        for (int k = 0; k < 2; k++) {
            machine.processes[k].device = (uint32_t)k;
            *fixture_process(&machine, k, GP_PID) = fixture_int(7);
            *fixture_process(&machine, k, GP_PROCESS_IDLE) =
                cases[i].seconds[k] < 0 ? fixture_absent(GP_STATUS_UNSUPPORTED)
                                        : fixture_real(cases[i].seconds[k]);
            *fixture_process(&machine, k, GP_PROCESS_LAST_ACTIVE) =
                cases[i].is_seen[k] ? fixture_text("2026-11-20T15:04:05.123+01:00")
                                    : fixture_absent(GP_STATUS_UNSUPPORTED);
        }
        machine.snapshot.process_count = 2;
        assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &by_pid), 0);
        assert_int_equal(procs.count, 1);
        gp_proc_format(&sb, &procs.rows[0], GP_PROC_IDLE_COLUMN);
        assert_string_equal(sb.buf, cases[i].expected);
        gp_strbuf_fini(&sb);
        gp_procs_fini(&procs);
    }
}

/* The fixture's processes are on GPU 0. */
static void a_reserved_gpu_without_processes_is_a_row(void **state)
{
    (void)state;
    struct gp_procs procs = {.rows = NULL};
    struct gp_procs_options options = by_pid;
    char since[GP_RFC3339_SIZE];
    gp_clock_rfc3339(machine.snapshot.wall_ns - 90 * GP_NS_PER_S, since);
    for (int device = FIXTURE_WELL; device <= FIXTURE_POOR; device++) {
        *fixture_value(&machine, device, GP_RESERVATION_USER) = fixture_text("mia");
        *fixture_value(&machine, device, GP_RESERVATION_NAME) = fixture_text("train");
        *fixture_value(&machine, device, GP_RESERVATION_SINCE) = fixture_text(since);
    }
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.reserved, 0); /* not requested */
    options.reserved = true;
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.reserved, 1);
    assert_int_equal(procs.rows[0].pid, 0);
    assert_true(procs.rows[0].is_reserved);
    assert_string_equal(procs.rows[0].gpus, "1");
    assert_string_equal(procs.rows[0].user, "mia");
    assert_string_equal(procs.rows[0].command, "train");
    assert_int_equal((int)procs.rows[0].age_s.n, 90);
    assert_string_equal(gp_proc_row_prefix(&procs.rows[0]), "(reserved) ");
    assert_string_equal(gp_proc_row_prefix(&procs.rows[1]), "");
    options.filter = "user=bob";
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.reserved, 0);
    gp_procs_fini(&procs);
}

static void what_a_row_says_of_its_process(void **state)
{
    (void)state;
    struct gp_proc_row row;
    const struct gp_process *p = &machine.processes[0];
    *fixture_process(&machine, 0, GP_PROCESS_CWD) = fixture_absent(GP_STATUS_NO_PERMISSION);
    *fixture_process(&machine, 0, GP_PROCESS_PPID) = fixture_int(3);
    gp_proc_row_init(&row, p, machine.snapshot.wall_ns);
    assert_int_equal(row.denied, 1U << GP_PROC_CWD_COLUMN);
    assert_int_equal(row.ppid, 3);
    assert_int_equal(row.session, 0);
    assert_true(row.age_s.known && row.age_s.n > 0);
    gp_proc_row_init(&row, p, 1); /* a clock that was set back */
    assert_true(row.age_s.known);
    assert_int_equal((int)row.age_s.n, 0);
    *fixture_process(&machine, 0, GP_PROCESS_START) = fixture_text("then");
    gp_proc_row_init(&row, p, machine.snapshot.wall_ns);
    assert_false(row.age_s.known);
}

static void without_memory(void **state)
{
    (void)state;
    struct gp_procs_options options = by_pid;
    options.tree = true;
    size_t refused = 0;
    for (long n = 0; n < 10; n++) {
        struct gp_procs procs = {.rows = NULL};
        alloc_fail_at(n);
        int r = gp_procs_build(&procs, &machine.snapshot, &options);
        alloc_fail_at(-1);
        assert_true(r == 0 || r == GP_ENOMEM);
        refused += r < 0;
        if (r < 0)
            assert_null(procs.rows);
        gp_procs_fini(&procs);
    }
    assert_int_equal(refused, 10);
}

/* ---- the tree ---- */

/* "1[2[3] 4]": what comes from what, with the lines that are drawn. */
static void tree_is(const struct gp_proc_row *rows, size_t count, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    struct gp_procs procs = {.rows = calloc(count, sizeof(*rows)), .count = count};
    assert_non_null(procs.rows);
    memcpy(procs.rows, rows, count * sizeof(*rows));
    assert_int_equal(gp_tree_arrange(&procs, GP_PROC_GROUPS_NONE), 0);
    assert_int_equal(procs.count, count);
    for (size_t i = 0; i < count; i++) {
        gp_tree_add_branch(&sb, &procs.rows[i]);
        gp_strbuf_addf(&sb, "%d\n", (int)procs.rows[i].pid);
    }
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
    gp_procs_fini(&procs);
}

static void trees(void **state)
{
    (void)state;
    static const struct gp_proc_row family[] = {{.pid = 5, .ppid = 2}, {.pid = 1},
                                                {.pid = 4, .ppid = 2}, {.pid = 2, .ppid = 1},
                                                {.pid = 3, .ppid = 1}, {.pid = 6, .ppid = 3},
                                                {.pid = 7, .ppid = 99}};
    tree_is(family, GP_ARRAY_LEN(family), "1\n├─2\n│ ├─5\n│ └─4\n└─3\n  └─6\n7\n");
    /* a process on two GPUs: the first row stands for it */
    static const struct gp_proc_row twice[] = {
        {.pid = 1, .gpu = 0}, {.pid = 1, .gpu = 1}, {.pid = 2, .ppid = 1}};
    tree_is(twice, GP_ARRAY_LEN(twice), "1\n└─2\n1\n");
    /* memory of nobody has no parents and no children, and nobody is his own parent */
    static const struct gp_proc_row odd[] = {
        {.pid = 0, .ppid = 1}, {.pid = 1, .ppid = 1}, {.pid = 2, .ppid = 0}};
    tree_is(odd, GP_ARRAY_LEN(odd), "0\n1\n2\n");
    /* a loop, as it can be seen when pids are used again */
    static const struct gp_proc_row loop[] = {
        {.pid = 1, .ppid = 2}, {.pid = 2, .ppid = 1}, {.pid = 3}};
    tree_is(loop, GP_ARRAY_LEN(loop), "3\n1\n2\n");
}

static void a_tree_that_is_very_deep(void **state)
{
    (void)state;
    enum { DEPTH = 80 };
    struct gp_procs procs = {.rows = calloc(DEPTH, sizeof(*procs.rows)), .count = DEPTH};
    assert_non_null(procs.rows);
    for (int i = 0; i < DEPTH; i++)
        procs.rows[i] = (struct gp_proc_row){.pid = i + 1, .ppid = i};
    assert_int_equal(gp_tree_arrange(&procs, GP_PROC_GROUPS_NONE), 0);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(procs.rows[i].pid, i + 1);
        assert_int_equal(procs.rows[i].depth, i < 63 ? i : 63);
        assert_true(procs.rows[i].is_last);
    }
    gp_procs_fini(&procs);
}

static void ancestors_that_rows_come_from(void **state)
{
    (void)state;
    enum { ANCESTORS = 4 };
    static struct gp_value cells[ANCESTORS][GP_PROCESS__COUNT];
    static struct gp_process ancestors[ANCESTORS];
    static const struct {
        int64_t pid, ppid;
    } pids[ANCESTORS] = {{10, 0}, {20, 10}, {30, 10}, {40, 20}};
    struct gp_procs procs = {.rows = NULL};
    struct gp_procs_options options = by_pid;
    for (int i = 0; i < ANCESTORS; i++) {
        ancestors[i] = (struct gp_process){.cells = cells[i]};
        for (int m = 0; m < GP_PROCESS__COUNT; m++)
            cells[i][m] = fixture_absent(GP_STATUS_UNSUPPORTED);
        cells[i][GP_PID - GP_PROCESS__FIRST] = fixture_int(pids[i].pid);
        cells[i][GP_PROCESS_PPID - GP_PROCESS__FIRST] = fixture_int(pids[i].ppid);
    }
    machine.snapshot.ancestors = ancestors;
    machine.snapshot.ancestor_count = ANCESTORS;
    *fixture_process(&machine, 0, GP_PROCESS_PPID) = fixture_int(40);
    *fixture_process(&machine, 1, GP_PROCESS_PPID) = fixture_int(20);
    options.tree = true;
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.ancestors, 3); /* nothing comes from 30 */
    static const struct {
        int64_t pid;
        int depth;
    } expected[] = {{10, 0}, {20, 1}, {40, 2}, {48448, 3}, {153223, 2}, {4190001, 0}};
    assert_int_equal(procs.count, GP_ARRAY_LEN(expected));
    for (size_t i = 0; i < procs.count; i++) {
        assert_int_equal(procs.rows[i].pid, expected[i].pid);
        assert_int_equal(procs.rows[i].depth, expected[i].depth);
    }
    options.filter = "pid=153223"; /* those of rows that are hidden go with them */
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.ancestors, 2);
    assert_int_equal(procs.hidden, 2);
    gp_procs_fini(&procs);
}

/* ---- shares ---- */

/* Of the memory of all GPUs that it uses; unknown if that of one is. */
static void shares_of_the_memory(void **state)
{
    (void)state;
    struct gp_procs procs = {.rows = NULL};
    const struct gp_procs_options options = by_pid;
    *fixture_value(&machine, 0, GP_MEMORY_TOTAL) = fixture_int(INT64_C(80) << 30);
    *fixture_value(&machine, 1, GP_MEMORY_TOTAL) = fixture_int(INT64_C(40) << 30);
    machine.processes[0].device = 0;
    machine.processes[1].device = 1;
    for (size_t i = 0; i < 2; i++) {
        *fixture_process(&machine, i, GP_PID) = fixture_int(7);
        *fixture_process(&machine, i, GP_PROCESS_MEMORY) = fixture_int(INT64_C(15) << 30);
    }
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_int_equal(procs.rows[0].pid, 7);
    assert_string_equal(procs.rows[0].gpus, "0,1");
    assert_true(procs.rows[0].share.known);
    assert_int_equal(procs.rows[0].share.n, 25);
    *fixture_value(&machine, 1, GP_MEMORY_TOTAL) = fixture_absent(GP_STATUS_UNSUPPORTED);
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_false(procs.rows[0].share.known);
    *fixture_value(&machine, 0, GP_MEMORY_TOTAL) = fixture_absent(GP_STATUS_UNSUPPORTED);
    *fixture_value(&machine, 1, GP_MEMORY_TOTAL) = fixture_int(INT64_C(40) << 30);
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &options), 0);
    assert_false(procs.rows[0].share.known);
    gp_procs_fini(&procs);
}

/* ---- groups ---- */

/* The rows: pid, depth, and for a group what it is and its sums. */
static void rows_are(const struct gp_procs_options *options, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    struct gp_procs procs = {.rows = NULL};
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, options), 0);
    for (size_t i = 0; i < procs.count; i++) {
        const struct gp_proc_row *row = &procs.rows[i];
        gp_tree_add_branch(&sb, row);
        if (!row->members) {
            for (size_t f = row->folded; f > 0; f--)
                gp_strbuf_addf(&sb, "%d>", (int)procs.rows[row->folded_at + f - 1].pid);
            gp_strbuf_addf(&sb, "%d", (int)row->pid);
            if (row->below)
                gp_strbuf_addf(&sb, " sums of %u gpus %s %.0fG", row->below, row->gpus,
                               row->memory.n / (1 << 30));
            gp_strbuf_addc(&sb, '\n');
            continue;
        }
        assert_int_equal(row->pid, 0);
        gp_proc_row_add_group(&sb, row);
        gp_strbuf_addf(&sb, " user %s gpus %s", row->user ? row->user : "-", row->gpus);
        for (int c = 0; c < 3; c++) {
            static const enum gp_proc_column shown[] = {GP_PROC_MEMORY_COLUMN, GP_PROC_CPU_COLUMN,
                                                        GP_PROC_IDLE_COLUMN};
            gp_strbuf_addc(&sb, ' ');
            gp_proc_format(&sb, row, shown[c]);
        }
        gp_strbuf_addc(&sb, '\n');
    }
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
    gp_procs_fini(&procs);
}

/* Two steps of a job of one user, and a process of another one that is in none. */
static void make_jobs(void)
{
    static const struct {
        const char *user, *container;
        int64_t gib;
        double cpu, idle;
    } shown[] = {{"mia", "slurm:4711.0", 5, 40, 7},
                 {"mia", "slurm:4711.1", 6, 2, 3},
                 {"jon", NULL, 20, 100, 0}};
    for (size_t i = 0; i < GP_ARRAY_LEN(shown); i++) {
        *fixture_process(&machine, i, GP_PROCESS_USER) = fixture_text(shown[i].user);
        *fixture_process(&machine, i, GP_PROCESS_CONTAINER) =
            shown[i].container ? fixture_text(shown[i].container)
                               : fixture_absent(GP_STATUS_UNSUPPORTED);
        *fixture_process(&machine, i, GP_PROCESS_MEMORY) = fixture_int(shown[i].gib << 30);
        *fixture_process(&machine, i, GP_PROCESS_CPU) = fixture_real(shown[i].cpu);
        *fixture_process(&machine, i, GP_PROCESS_IDLE) = fixture_real(shown[i].idle);
    }
}

static void sums_of_users_and_of_jobs(void **state)
{
    (void)state;
    struct gp_procs_options options = by_pid;
    make_jobs();
    assert_int_equal(gp_proc_order_parse("memory", &options.order, NULL), 0);
    options.groups = GP_PROC_GROUPS_USER;
    rows_are(&options, "1 process user jon gpus 4 20.0G 100 ≥0s\n└─4190001\n"
                       "2 processes user mia gpus 0 11.0G 42 ≥3s\n├─153223\n└─48448\n");
    options.order.by[0].reversed = true;
    rows_are(&options, "2 processes user mia gpus 0 11.0G 42 ≥3s\n├─48448\n└─153223\n"
                       "1 process user jon gpus 4 20.0G 100 ≥0s\n└─4190001\n");
    options.order.by[0].reversed = false;
    options.groups = GP_PROC_GROUPS_JOB;
    rows_are(&options,
             "4190001\nslurm 4711, 2 processes user mia gpus 0 11.0G 42 ≥3s\n├─153223\n└─48448\n");
    options.filter = "pid=48448";
    rows_are(&options, "slurm 4711, 1 process user mia gpus 0 5.0G 40 ≥7s\n└─48448\n");
    options.filter = NULL;
    *fixture_process(&machine, 1, GP_PROCESS_IDLE) = fixture_absent(GP_STATUS_UNSUPPORTED);
    *fixture_process(&machine, 0, GP_PROCESS_USER) = fixture_absent(GP_STATUS_UNSUPPORTED);
    options.groups = GP_PROC_GROUPS_USER;
    rows_are(&options, "1 process user jon gpus 4 20.0G 100 ≥0s\n└─4190001\n"
                       "1 process user mia gpus 0 6.0G 2 -\n└─153223\n48448\n");
    *fixture_process(&machine, 0, GP_PROCESS_USER) = fixture_text("mia");
    *fixture_process(&machine, 2, GP_PROCESS_USER) = fixture_text("mia");
    rows_are(&options, "3 processes user mia gpus 0,4 31.0G 142 -\n├─4190001\n├─153223\n└─48448\n");
}

/* 48448 has less memory than 153223, but more with what comes from it. Of a parent, CPU and host
 * memory are its own. */
static void trees_are_sorted_by_their_sums(const struct gp_procs_options *options)
{
    struct gp_procs procs = {.rows = NULL};
    struct gp_procs_options by_memory = *options;
    assert_int_equal(gp_proc_order_parse("memory", &by_memory.order, NULL), 0);
    rows_are(&by_memory, "40>20 sums of 3 gpus 0,4 31G\n├─48448\n│ └─4190001\n└─153223\n");
    by_memory.order.by[0].reversed = true;
    rows_are(&by_memory, "40>20 sums of 3 gpus 0,4 31G\n├─153223\n└─48448\n  └─4190001\n");
    assert_int_equal(gp_procs_build(&procs, &machine.snapshot, &by_memory), 0);
    assert_false(procs.rows[0].cpu.known);
    assert_false(gp_proc_row_uses_any(&procs.rows[0]));
    assert_int_equal(procs.rows[2].memory.n / (1 << 30), 5);
    gp_procs_fini(&procs);
}

/* Init, a daemon, a step of the job that uses no GPU; the first process comes from that. */
static void a_tree_begins_at_the_job(void **state)
{
    (void)state;
    enum { ANCESTORS = 4 };
    static struct gp_value cells[ANCESTORS][GP_PROCESS__COUNT];
    static struct gp_process ancestors[ANCESTORS];
    static const struct {
        int64_t pid, ppid;
        const char *container;
    } shown[ANCESTORS] = {
        {1, 0, NULL}, {20, 1, "unit:d"}, {30, 20, "slurm:4711.batch"}, {40, 1, NULL}};
    struct gp_procs_options options = by_pid;
    for (int i = 0; i < ANCESTORS; i++) {
        ancestors[i] = (struct gp_process){.cells = cells[i]};
        for (int m = 0; m < GP_PROCESS__COUNT; m++)
            cells[i][m] = fixture_absent(GP_STATUS_UNSUPPORTED);
        cells[i][GP_PID - GP_PROCESS__FIRST] = fixture_int(shown[i].pid);
        cells[i][GP_PROCESS_PPID - GP_PROCESS__FIRST] = fixture_int(shown[i].ppid);
        if (shown[i].container)
            cells[i][GP_PROCESS_CONTAINER - GP_PROCESS__FIRST] = fixture_text(shown[i].container);
    }
    make_jobs();
    machine.snapshot.ancestors = ancestors;
    machine.snapshot.ancestor_count = ANCESTORS;
    *fixture_process(&machine, 0, GP_PROCESS_PPID) = fixture_int(30);
    *fixture_process(&machine, 1, GP_PROCESS_PPID) = fixture_int(20);
    *fixture_process(&machine, 2, GP_PROCESS_PPID) = fixture_int(40);
    options.groups = GP_PROC_GROUPS_TREE;
    rows_are(&options,
             "slurm 4711, 2 processes user mia gpus 0 11.0G 42 ≥3s\n├─30>48448\n└─153223\n"
             "40>4190001\n");
    assert_int_equal(gp_proc_order_parse("memory", &options.order, NULL), 0);
    rows_are(&options, "40>4190001\nslurm 4711, 2 processes user mia gpus 0 11.0G 42 ≥3s\n"
                       "├─153223\n└─30>48448\n");
    /* a shell whose parent is folded into it, as it has two children itself */
    cells[0][GP_PROCESS_PPID - GP_PROCESS__FIRST] = fixture_int(0);
    cells[1][GP_PROCESS_PPID - GP_PROCESS__FIRST] = fixture_int(40);
    cells[1][GP_PROCESS_CONTAINER - GP_PROCESS__FIRST] = fixture_absent(GP_STATUS_UNSUPPORTED);
    for (int p = 0; p < 3; p++) {
        *fixture_process(&machine, p, GP_PROCESS_PPID) = fixture_int(p == 2 ? 48448 : 20);
        *fixture_process(&machine, p, GP_PROCESS_CONTAINER) = fixture_absent(GP_STATUS_UNSUPPORTED);
    }
    rows_are(&options, "40>20 sums of 3 gpus 0,4 31G\n├─48448\n│ └─4190001\n└─153223\n");
    trees_are_sorted_by_their_sums(&options);
}

#define MACHINE(name) cmocka_unit_test_setup(name, make_machine)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_known_comes_last_both_ways),
        cmocka_unit_test(equal_ones_by_pid_and_gpu),
        cmocka_unit_test(filters),
        cmocka_unit_test(fields_that_there_are_not),
        cmocka_unit_test(orders_in_words),
        cmocka_unit_test(columns_in_words),
        cmocka_unit_test(sizes_and_ages),
        cmocka_unit_test(texts_and_numbers),
        cmocka_unit_test(lists_of_gpus),
        MACHINE(a_row_has_all_gpus_of_a_process),
        MACHINE(processes_change_places),
        MACHINE(numbers_of_all_gpus),
        MACHINE(memory_of_nobody_is_a_row),
        MACHINE(a_reserved_gpu_without_processes_is_a_row),
        MACHINE(the_gpu_used_last_says_how_idle_it_is),
        MACHINE(what_a_row_says_of_its_process),
        MACHINE(without_memory),
        cmocka_unit_test(trees),
        cmocka_unit_test(a_tree_that_is_very_deep),
        MACHINE(ancestors_that_rows_come_from),
        MACHINE(shares_of_the_memory),
        MACHINE(sums_of_users_and_of_jobs),
        MACHINE(a_tree_begins_at_the_job),
    };
    return cmocka_run_group_tests_name("procs", tests, NULL, NULL);
}
