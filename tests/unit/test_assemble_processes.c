/* The processes of a snapshot: where they stand, what the driver and /proc say of each, what is
 * missing and why, sums of their memory, who is suspended, ancestors. */
#include "assemble_bench.h"

#define S(id) GP_STATUS_##id

/* ---- what is asked of /proc ---- */

struct ask_case {
    enum gp_metric metric;
    unsigned proc;
};

static struct ask_case ask_cases[] = {
    {GP_PID, 0},
    {GP_PROCESS_TYPE, 0},
    {GP_PROCESS_NAME, GP_PROC_COMMAND},
    {GP_PROCESS_PATH, GP_PROC_PATH},
    {GP_PROCESS_MEMORY, 0},
    {GP_PROCESS_SM, 0},
    {GP_PROCESS_MEM, 0},
    {GP_PROCESS_ENC, 0},
    {GP_PROCESS_DEC, 0},
    {GP_PROCESS_JPEG, 0},
    {GP_PROCESS_OFA, 0},
    {GP_PROCESS_POWER, 0},
    {GP_PROCESS_ENERGY, 0},
    {GP_PROCESS_GI, 0},
    {GP_PROCESS_CI, 0},
    {GP_PROCESS_SUSPENDED, 0},
    {GP_PROCESS_IDLE, 0},
    {GP_PROCESS_LAST_ACTIVE, 0},
    {GP_PROCESS_USER, GP_PROC_USER},
    {GP_PROCESS_COMMAND, GP_PROC_COMMAND},
    {GP_PROCESS_CPU, GP_PROC_STAT},
    {GP_PROCESS_RSS, GP_PROC_STAT},
    {GP_PROCESS_START, GP_PROC_STAT},
    {GP_PROCESS_PPID, GP_PROC_STAT},
    {GP_PROCESS_STATE, GP_PROC_STAT},
    {GP_PROCESS_THREADS, GP_PROC_STAT},
    {GP_PROCESS_CONTAINER, GP_PROC_CONTAINER},
    {GP_PROCESS_CONTAINER_NAME, GP_PROC_CONTAINER},
    {GP_PROCESS_ORIGIN, GP_PROC_ORIGIN},
    {GP_PROCESS_NS_PID, GP_PROC_NS_PID},
    {GP_PROCESS_SESSION, GP_PROC_STAT},
    {GP_PROCESS_CWD, GP_PROC_CWD},
};

static struct gp_source_process *add_processes(struct gp_reading *reading, size_t count)
{
    reading->processes = gp_arena_alloc(&reading->arena, count, sizeof(*reading->processes));
    assert_non_null(reading->processes);
    reading->process_count = count;
    reading->processes_status = GP_STATUS_OK;
    return reading->processes;
}

/* A GPU with one process, whom /proc knows. */
static struct gp_source_process *one_process(uint32_t pid)
{
    struct gp_source_process *p = add_processes(answer(0), 1);
    p->pid = pid;
    (void)add_info(pid);
    return p;
}

static const struct gp_value *cell(size_t row, enum gp_metric m)
{
    assert_true(row < bench.snapshot->process_count);
    return gp_process_value(&bench.snapshot->processes[row], m);
}

static bool has_column(enum gp_metric m)
{
    return bench.snapshot->columns.places[m - GP_PROCESS__FIRST] > 0;
}

static void only_what_is_wanted_is_asked_of_proc(void **state)
{
    static const enum gp_metric always[] = {GP_PID, GP_PROCESS_TYPE, GP_PROCESS_MEMORY};
    const struct ask_case *c = *state;
    begin(NULL);
    bench.want.processes = true;
    want(c->metric);
    make();
    (void)one_process(7);
    tick_all(1);
    assert_int_equal(bench.proc_want, c->proc);
    assert_int_equal(bench.pid_count, 1);
    assert_int_equal(bench.pids[0], 7);
    assert_int_equal(bench.suspended_reads, c->metric == GP_PROCESS_SUSPENDED);
    bool is_own = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(always); i++) {
        assert_true(has_column(always[i]));
        is_own = is_own || always[i] == c->metric;
    }
    assert_true(has_column(c->metric));
    assert_int_equal(bench.snapshot->columns.count, is_own ? 3 : 4);
    assert_int_equal(bench.snapshot->ancestor_count, 0);
    end();
}

static void ancestors_ask_for_what_shows_them(void **state)
{
    static const enum gp_metric more[] = {
        GP_PROCESS_NAME, GP_PROCESS_USER,  GP_PROCESS_COMMAND, GP_PROCESS_CPU,   GP_PROCESS_RSS,
        GP_PROCESS_PPID, GP_PROCESS_STATE, GP_PROCESS_THREADS, GP_PROCESS_START,
    };
    const unsigned parts = GP_PROC_STAT | GP_PROC_USER | GP_PROC_COMMAND;
    (void)state;
    begin(NULL);
    bench.want.ancestors = true;
    make();
    (void)one_process(7);
    tick_all(1);
    assert_int_equal(bench.proc_want, parts | GP_PROC_ANCESTORS);
    for (size_t i = 0; i < GP_ARRAY_LEN(more); i++)
        assert_true(has_column(more[i]));
    assert_int_equal(bench.snapshot->columns.count, 3 + GP_ARRAY_LEN(more));
    gp_assembler_set_ancestors(&bench.a, false);
    tick_all(1);
    assert_int_equal(bench.proc_want, parts);
    gp_assembler_set_ancestors(&bench.a, true);
    tick_all(1);
    assert_int_equal(bench.proc_want, parts | GP_PROC_ANCESTORS);
    end();
    begin(NULL);
    bench.want.processes = true;
    want(GP_PROCESS_CWD);
    make();
    (void)one_process(7);
    gp_assembler_set_ancestors(&bench.a, true);
    tick_all(1);
    assert_int_equal(bench.proc_want, parts | GP_PROC_ANCESTORS | GP_PROC_CWD);
    end();
    begin(NULL);
    bench.want.processes = bench.want.process_names = true;
    make();
    (void)one_process(7);
    tick_all(1);
    assert_true(has_column(GP_PROCESS_NAME));
    assert_int_equal(bench.snapshot->columns.count, 4);
    end();
}

/* However many GPUs a process uses, and without its path where the driver tells it of all. */
static void every_pid_is_asked_for_once(void **state)
{
    static const uint32_t sorted[] = {3, 5, 9};
    static const uint32_t pids[] = {9, 3, 9, 5, 3};
    (void)state;
    for (int nameless = 0; nameless < 2; nameless++) {
        begin(NULL);
        bench.want.processes = true;
        want(GP_PROCESS_PATH);
        want(GP_PROCESS_USER);
        make();
        struct gp_source_process *p = add_processes(answer(0), 5);
        for (size_t i = 0; i < 5; i++) {
            p[i].pid = pids[i];
            p[i].driver_name = nameless && i == 2 ? NULL : "/bin/x";
        }
        for (size_t i = 0; i < 3; i++)
            (void)add_info(sorted[i]);
        tick_all(1);
        assert_int_equal(bench.pid_count, 3);
        assert_memory_equal(bench.pids, sorted, sizeof(sorted));
        assert_int_equal(bench.proc_want, GP_PROC_USER | (nameless ? GP_PROC_PATH : 0));
        assert_int_equal(bench.snapshot->process_count, 5);
        for (size_t i = 0; i < 5; i++)
            check_int(cell(i, GP_PID), GP_STATUS_OK, pids[i]);
        end();
    }
}

/* ---- what the driver says ---- */

static void begin_all(void)
{
    begin(NULL);
    bench.want.processes = true;
    for (int m = GP_PROCESS__FIRST; m < GP_PROCESS__FIRST + GP_PROCESS__COUNT; m++)
        want((enum gp_metric)m);
    make();
}

static void fill_process(struct gp_source_process *p)
{
    gp_value_set_int(&p->memory, 101, BENCH_READ_NS);
    gp_value_set_real(&p->power, 102, BENCH_READ_NS);
    gp_value_set_real(&p->energy, 103, BENCH_READ_NS);
    gp_value_set_int(&p->gpu_instance, 104, BENCH_READ_NS);
    gp_value_set_absent(&p->compute_instance, GP_STATUS_NO_PERMISSION, "no", BENCH_READ_NS);
    p->sm = (struct gp_percent){true, 1};
    p->mem = (struct gp_percent){true, 2};
    p->enc = (struct gp_percent){true, 3};
    p->dec = (struct gp_percent){true, 4};
    p->jpeg = (struct gp_percent){true, 5};
    p->ofa = (struct gp_percent){false, 6};
    p->types = GP_PROCESS_COMPUTE;
    p->place = 42;
}

static void check_driver(enum gp_status status)
{
    check_int(cell(0, GP_PROCESS_MEMORY), status, 101);
    assert_int_equal(cell(0, GP_PROCESS_POWER)->status, status);
    assert_true((int)cell(0, GP_PROCESS_POWER)->f == 102);
    assert_int_equal(cell(0, GP_PROCESS_ENERGY)->status, status);
    assert_true((int)cell(0, GP_PROCESS_ENERGY)->f == 103);
    check_int(cell(0, GP_PROCESS_GI), status, 104);
    check_absent(cell(0, GP_PROCESS_CI), GP_STATUS_NO_PERMISSION, "no");
    for (int m = GP_PROCESS_SM; m < GP_PROCESS_OFA; m++) {
        check_int(cell(0, (enum gp_metric)m), status, 1 + m - GP_PROCESS_SM);
        assert_true(gp_value_time_ns(cell(0, (enum gp_metric)m)) == BENCH_READ_NS);
    }
    check_absent(cell(0, GP_PROCESS_OFA), GP_STATUS_UNSUPPORTED, NULL);
    /* who it is does not age */
    check_int(cell(0, GP_PID), GP_STATUS_OK, 7);
    check_text(cell(0, GP_PROCESS_TYPE), GP_STATUS_OK, "C");
    assert_true(gp_value_time_ns(cell(0, GP_PROCESS_TYPE)) == BENCH_READ_NS);
    check_absent(cell(0, GP_PROCESS_SUSPENDED), GP_STATUS_UNSUPPORTED,
                 "the process is not suspended");
    assert_int_equal(bench.snapshot->processes[0].place, 42);
}

/* The next reading of the GPU, so many seconds later. */
static void look_again(unsigned sm, unsigned later_s)
{
    struct gp_reading *reading = bench.slots[0].latest;
    reading->time_ns += later_s * GP_NS_PER_S;
    reading->processes[0].sm.n = (uint8_t)sm;
    tick_one(GP_STATUS_OK, "");
}

static void idle_is(double seconds, enum gp_status status)
{
    const struct gp_value *idle = cell(0, GP_PROCESS_IDLE);
    assert_int_equal(idle->status, status);
    assert_true(idle->f >= seconds - 1e-6 && idle->f <= seconds + 1e-6);
}

static void how_long_it_has_been_idle(void **state)
{
    static const char unseen[] = "not active since gpulse first saw it";
    static const char unknown[] = "the utilization of the process is unknown";
    (void)state;
    begin_all();
    struct gp_source_process *p = one_process(7);
    p->sm = (struct gp_percent){true, 0};
    tick_one(GP_STATUS_OK, "");
    idle_is(1, GP_STATUS_OK); /* the second before the first look */
    check_absent(cell(0, GP_PROCESS_LAST_ACTIVE), GP_STATUS_UNSUPPORTED, unseen);
    look_again(0, 3);
    idle_is(4, GP_STATUS_OK);
    check_absent(cell(0, GP_PROCESS_LAST_ACTIVE), GP_STATUS_UNSUPPORTED, unseen);
    look_again(20, 1);
    idle_is(0, GP_STATUS_OK);
    char text[GP_RFC3339_SIZE];
    gp_clock_rfc3339(BENCH_WALL_NS - (BENCH_MONO_NS - BENCH_READ_NS) + 4 * GP_NS_PER_S, text);
    check_text(cell(0, GP_PROCESS_LAST_ACTIVE), GP_STATUS_OK, text);
    look_again(0, 2);
    idle_is(2, GP_STATUS_OK);
    check_text(cell(0, GP_PROCESS_LAST_ACTIVE), GP_STATUS_OK, text);
    tick_one(GP_STATUS_TIMEOUT, "no answer"); /* its last numbers say nothing new */
    idle_is(2, GP_STATUS_STALE);
    bench.slots[0].latest->processes[0].sm.known = false;
    tick_one(GP_STATUS_OK, "");
    check_absent(cell(0, GP_PROCESS_IDLE), GP_STATUS_UNSUPPORTED, unknown);
    check_absent(cell(0, GP_PROCESS_LAST_ACTIVE), GP_STATUS_UNSUPPORTED, unknown);
    end();
}

static void what_the_driver_says_stands_where_it_belongs(void **state)
{
    (void)state;
    begin_all();
    fill_process(one_process(7));
    tick_one(GP_STATUS_OK, "");
    check_driver(GP_STATUS_OK);
    tick_one(GP_STATUS_TIMEOUT, "no answer");
    check_driver(GP_STATUS_STALE);
    tick_one(GP_STATUS_LOST, "fell off");
    assert_int_equal(bench.snapshot->process_count, 0);
    end();
}

static void a_type_is_told_in_letters(void **state)
{
    static const char *const letters[] = {"", "C", "G", "C+G", "M", "M+C", "M+G", "M+C+G"};
    (void)state;
    for (unsigned i = 0; i < GP_ARRAY_LEN(letters); i++) {
        begin_all();
        one_process(7)->types = (uint8_t)i;
        tick_all(1);
        check_text(cell(0, GP_PROCESS_TYPE), GP_STATUS_OK, letters[i]);
        end();
    }
}

/* ---- what /proc says ---- */

static void fill_texts(struct gp_proc_texts *texts)
{
    texts->user = "ann";
    texts->name = "train";
    texts->path = "/usr/bin/train";
    texts->command = "train --fast";
    texts->container = "docker:1";
    texts->container_name = "box-1";
    texts->origin = "job 5";
    texts->start = "2026-01-01";
    texts->cwd = "/home/ann";
    texts->ns_pid = 17;
}

static void fill_numbers(struct gp_proc_info *info)
{
    info->state = 'D';
    info->ppid = 201;
    info->session = 202;
    info->cpu_pct = 203;
    info->rss_bytes = 204;
    info->threads = 205;
    info->as_of_ns = 500 * GP_NS_PER_S;
}

/* Those that /proc tells: what it says, why it is missing where the process is there, and what part
 * of it may be denied. */
struct text_case {
    enum gp_metric metric;
    const char *text; /* NULL: a number */
    const char *missing;
    unsigned part;
};

static struct text_case text_cases[] = {
    {GP_PROCESS_NAME, "train", NULL, GP_PROC_COMMAND},
    {GP_PROCESS_PATH, "/usr/bin/train", NULL, GP_PROC_COMMAND},
    {GP_PROCESS_USER, "ann", NULL, 0},
    {GP_PROCESS_COMMAND, "train --fast", NULL, GP_PROC_COMMAND},
    {GP_PROCESS_CONTAINER, "docker:1", NULL, GP_PROC_CONTAINER},
    {GP_PROCESS_CONTAINER_NAME, "box-1", "not in a container, job or service", GP_PROC_CONTAINER},
    {GP_PROCESS_ORIGIN, "job 5", NULL, GP_PROC_ORIGIN},
    {GP_PROCESS_CWD, "/home/ann", NULL, GP_PROC_CWD},
    {GP_PROCESS_NS_PID, NULL, NULL, 0},
    {GP_PROCESS_SESSION, NULL, NULL, 0},
    {GP_PROCESS_CPU, NULL, NULL, 0},
    {GP_PROCESS_RSS, NULL, NULL, 0},
    {GP_PROCESS_START, "2026-01-01", NULL, 0},
    {GP_PROCESS_PPID, NULL, NULL, 0},
    {GP_PROCESS_STATE, "D", NULL, 0},
    {GP_PROCESS_THREADS, NULL, NULL, 0},
};

static void proc_says_who_it_is(void **state)
{
    const struct text_case *c = *state;
    begin_all();
    (void)one_process(7);
    struct gp_proc_info *info = &bench.infos[0];
    tick_all(1); /* it is not there */
    check_absent(cell(0, c->metric), GP_STATUS_UNSUPPORTED,
                 "not in /proc: it has exited, is hidden, or runs in another pid namespace");
    info->exists = true;
    tick_all(1);
    check_absent(cell(0, c->metric), GP_STATUS_UNSUPPORTED, c->missing);
    info->texts->denied = c->part;
    tick_all(1);
    if (c->part)
        check_absent(cell(0, c->metric), GP_STATUS_NO_PERMISSION,
                     "only visible to its owner and root");
    info->texts->denied = ~c->part; /* the others */
    tick_all(1);
    check_absent(cell(0, c->metric), GP_STATUS_UNSUPPORTED, c->missing);
    fill_texts(info->texts);
    fill_numbers(info);
    info->texts->denied = UINT32_MAX; /* what it says counts all the same */
    tick_all(1);
    assert_int_equal(cell(0, c->metric)->status, GP_STATUS_OK);
    assert_true(gp_value_time_ns(cell(0, c->metric)) == BENCH_MONO_NS);
    if (c->text)
        assert_string_equal(cell(0, c->metric)->s, c->text);
    end();
}

static void numbers_of_one_that_is_not_watched_are_old(void **state)
{
    (void)state;
    begin_all();
    (void)one_process(7);
    bench.infos[0].exists = true;
    fill_texts(bench.infos[0].texts);
    fill_numbers(&bench.infos[0]);
    for (int old = 0; old < 2; old++) {
        enum gp_status status = old ? GP_STATUS_STALE : GP_STATUS_OK;
        uint64_t then_ns = old ? 500 * GP_NS_PER_S : BENCH_MONO_NS;
        static const enum gp_metric moving[] = {GP_PROCESS_CPU, GP_PROCESS_RSS, GP_PROCESS_STATE,
                                                GP_PROCESS_THREADS};
        bench.infos[0].is_old = old;
        tick_all(1);
        check_int(cell(0, GP_PROCESS_PPID), GP_STATUS_OK, 201);
        check_int(cell(0, GP_PROCESS_SESSION), GP_STATUS_OK, 202);
        assert_true((int)cell(0, GP_PROCESS_CPU)->f == 203);
        check_int(cell(0, GP_PROCESS_RSS), status, 204);
        check_int(cell(0, GP_PROCESS_THREADS), status, 205);
        check_text(cell(0, GP_PROCESS_STATE), status, "D");
        check_text(cell(0, GP_PROCESS_START), GP_STATUS_OK, "2026-01-01");
        check_int(cell(0, GP_PROCESS_NS_PID), GP_STATUS_OK, 17);
        for (size_t i = 0; i < GP_ARRAY_LEN(moving); i++) {
            assert_int_equal(cell(0, moving[i])->status, status);
            assert_true(gp_value_time_ns(cell(0, moving[i])) == then_ns);
        }
    }
    end();
}

static void every_state_has_its_letter(void **state)
{
    (void)state;
    for (int letter = 1; letter < 127; letter++) {
        bool known = (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z');
        const char text[] = {(char)letter, '\0'};
        begin_all();
        (void)one_process(7);
        bench.infos[0].exists = true;
        bench.infos[0].state = (char)letter;
        tick_all(1);
        if (known)
            check_text(cell(0, GP_PROCESS_STATE), GP_STATUS_OK, text);
        else
            assert_int_equal(cell(0, GP_PROCESS_STATE)->status, GP_STATUS_UNSUPPORTED);
        end();
    }
}

/* Where it runs and what it says of itself: known, known to be nothing, and not known. */
static void nothing_is_not_the_same_as_not_known(void **state)
{
    static const struct {
        const char *container, *name;
        const char *why, *why_no_name; /* NULL: it is told */
    } cases[] = {
        {NULL, NULL, NULL, "not in a container, job or service"},
        {"", NULL, "not in a container, job or service", "not in a container, job or service"},
        {"docker:1", NULL, NULL, "no readable file contains its name"},
        {"docker:1", "box-1", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        begin_all();
        (void)one_process(7);
        struct gp_proc_texts *texts = bench.infos[0].texts;
        bench.infos[0].exists = true;
        texts->container = texts->origin = cases[i].container;
        texts->container_name = cases[i].name;
        tick_all(1);
        if (cases[i].container && *cases[i].container) {
            check_text(cell(0, GP_PROCESS_CONTAINER), GP_STATUS_OK, "docker:1");
            check_text(cell(0, GP_PROCESS_ORIGIN), GP_STATUS_OK, "docker:1");
        } else {
            check_absent(cell(0, GP_PROCESS_CONTAINER), GP_STATUS_UNSUPPORTED, cases[i].why);
            check_absent(cell(0, GP_PROCESS_ORIGIN), GP_STATUS_UNSUPPORTED,
                         cases[i].why ? "not in its environment" : NULL);
        }
        if (cases[i].name)
            check_text(cell(0, GP_PROCESS_CONTAINER_NAME), GP_STATUS_OK, "box-1");
        else
            check_absent(cell(0, GP_PROCESS_CONTAINER_NAME), GP_STATUS_UNSUPPORTED,
                         cases[i].why_no_name);
        end();
    }
}

/* /proc has the better name and command, the driver the path that other tools show. */
static void the_drivers_name_helps_out(void **state)
{
    static const struct {
        const char *from_driver;
        bool in_proc;
        const char *name, *path, *command; /* NULL: missing */
    } cases[] = {
        {"/opt/a --b", false, "a", "/opt/a --b", "/opt/a --b"},
        {"/opt/a --b", true, "train", "/opt/a --b", "train --fast"},
        {NULL, true, "train", "/usr/bin/train", "train --fast"},
        {NULL, false, NULL, NULL, NULL},
        {"", false, NULL, "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const char *const expected[] = {cases[i].name, cases[i].path, cases[i].command};
        static const enum gp_metric metrics[] = {GP_PROCESS_NAME, GP_PROCESS_PATH,
                                                 GP_PROCESS_COMMAND};
        begin_all();
        one_process(7)->driver_name = cases[i].from_driver;
        if (cases[i].in_proc)
            fill_texts(bench.infos[0].texts);
        tick_all(1);
        for (size_t k = 0; k < 3; k++)
            if (expected[k])
                check_text(cell(0, metrics[k]), GP_STATUS_OK, expected[k]);
            else
                assert_int_equal(cell(0, metrics[k])->status, GP_STATUS_UNSUPPORTED);
        end();
    }
}

/* ---- where they stand ---- */

static void place(struct gp_source_process *p, uint32_t pid, int gi, int ci, int64_t bytes)
{
    p->pid = pid;
    p->types = GP_PROCESS_COMPUTE;
    if (gi >= 0)
        gp_value_set_int(&p->gpu_instance, gi, BENCH_READ_NS);
    if (ci >= 0)
        gp_value_set_int(&p->compute_instance, ci, BENCH_READ_NS);
    if (bytes >= 0)
        gp_value_set_int(&p->memory, bytes, BENCH_READ_NS);
    else
        gp_value_set_absent(&p->memory, GP_STATUS_UNSUPPORTED, NULL, BENCH_READ_NS);
}

/* GPU 0 with two instances, GPU 1 without. Both have used 1000 bytes, an instance 100. */
static void place_all(void)
{
    struct gp_reading *reading = answer(0);
    struct gp_mig_reading *mig = add_instances(reading, 2);
    set_text(reading->values, GP_UUID, "GPU-a");
    set_int(reading->values, GP_MEMORY_USED, 1000);
    for (int i = 0; i < 2; i++) {
        set_text(mig[i].values, GP_UUID, i ? "MIG-1" : "MIG-0");
        set_int(mig[i].values, GP_MEMORY_USED, 100);
    }
    struct gp_source_process *p = add_processes(reading, 6);
    place(&p[0], 1, 20, 30, 10);  /* in instance 0 */
    place(&p[1], 2, 21, 31, 20);  /* in instance 1 */
    place(&p[2], 3, 20, 31, 40);  /* in none that is known */
    place(&p[3], 4, 21, 31, 80);  /* in instance 1 */
    place(&p[4], 5, 20, -1, 160); /* it does not say in which */
    place(&p[5], 6, -1, -1, 320); /* on the whole GPU */
    reading = answer(1);
    set_text(reading->values, GP_UUID, "GPU-b");
    set_int(reading->values, GP_MEMORY_USED, 1000);
    place(add_processes(reading, 1), 1, 20, 30, 2000); /* more than there was a moment ago */
    for (uint32_t pid = 1; pid <= 6; pid++)
        (void)add_info(pid);
}

static void begin_placed(const char *choice)
{
    begin(choice);
    bench.want.processes = bench.want.mig = true;
    want(GP_MEMORY_USED);
    want(GP_MEMORY_PROCESSES);
    want(GP_MEMORY_UNATTRIBUTED);
    make();
    place_all();
}

static void check_rows(const size_t *first, const size_t *counts, const uint32_t *pids, size_t rows)
{
    size_t all = 0;
    assert_int_equal(bench.snapshot->device_count, rows);
    for (size_t d = 0; d < rows; d++) {
        const struct gp_device *device = &bench.snapshot->devices[d];
        assert_int_equal(device->first_process, first[d]);
        assert_int_equal(device->process_count, counts[d]);
        for (size_t i = 0; i < counts[d]; i++, all++) {
            check_int(cell(all, GP_PID), GP_STATUS_OK, pids[all]);
            assert_int_equal(bench.snapshot->processes[all].device, d);
        }
    }
    assert_int_equal(bench.snapshot->process_count, all);
}

static void each_stands_in_its_instance_or_on_its_gpu(void **state)
{
    static const size_t first[] = {0, 3, 4, 6};
    static const size_t counts[] = {3, 1, 2, 1};
    static const uint32_t pids[] = {3, 5, 6, 1, 2, 4, 1};
    (void)state;
    begin_placed(NULL);
    tick_all(2);
    check_rows(first, counts, pids, 4);
    /* with its instances: 10 + 20 + 40 + 80 + 160 + 320 */
    static const int64_t sums[] = {630, 10, 100, 2000};
    static const int64_t rests[] = {370, 90, 0, 0};
    for (size_t d = 0; d < 4; d++) {
        check_int(value(d, GP_MEMORY_PROCESSES), GP_STATUS_OK, sums[d]);
        check_int(value(d, GP_MEMORY_UNATTRIBUTED), GP_STATUS_OK, rests[d]);
    }
    end();
}

/* Those beside it stand nowhere. */
static void an_instance_that_is_chosen_alone_has_its_own(void **state)
{
    static const size_t first[] = {0};
    static const size_t counts[] = {2};
    static const uint32_t pids[] = {2, 4};
    (void)state;
    begin_placed("MIG-1");
    tick_all(2);
    check_rows(first, counts, pids, 1);
    assert_true(bench.snapshot->devices[0].is_mig);
    check_int(value(0, GP_MEMORY_PROCESSES), GP_STATUS_OK, 100);
    check_int(value(0, GP_MEMORY_UNATTRIBUTED), GP_STATUS_OK, 0);
    end();
}

/* ---- sums ---- */

/* Who does not tell what, and what that makes of the sum and the rest of GPU and instance. */
struct sum_case {
    const char *name;
    void (*spoil)(struct gp_reading *reading);
    enum gp_status sum[2], rest[2];
    const char *why[2];
};

static void spoil_nothing(struct gp_reading *reading)
{
    (void)reading;
}

static void spoil_list(struct gp_reading *reading)
{
    reading->processes_status = GP_STATUS_NO_PERMISSION;
}

static void spoil_process(struct gp_reading *reading)
{
    gp_value_set_absent(&reading->processes[0].memory, GP_STATUS_UNSUPPORTED, NULL, 1);
}

static void spoil_gpu_process(struct gp_reading *reading)
{
    gp_value_set_absent(&reading->processes[1].memory, GP_STATUS_UNSUPPORTED, NULL, 1);
}

static void spoil_old_process(struct gp_reading *reading)
{
    reading->processes[0].memory.status = GP_STATUS_STALE;
}

static void spoil_gpu_instance(struct gp_reading *reading)
{
    set_absent(reading->mig[0].values, GP_MIG_GPU_INSTANCE, GP_STATUS_UNSUPPORTED, NULL);
}

static void spoil_compute_instance(struct gp_reading *reading)
{
    set_absent(reading->mig[0].values, GP_MIG_COMPUTE_INSTANCE, GP_STATUS_UNSUPPORTED, NULL);
}

static void spoil_used(struct gp_reading *reading)
{
    set_absent(reading->values, GP_MEMORY_USED, GP_STATUS_LOST, NULL);
    set_absent(reading->mig[0].values, GP_MEMORY_USED, GP_STATUS_ERROR, "broken");
}

#define SILENT_PROCESS "the memory of a process is unknown"
#define UNPLACED "the processes in it are unknown"

static struct sum_case sum_cases[] = {
    {"all is told", spoil_nothing, {S(OK), S(OK)}, {S(OK), S(OK)}, {NULL, NULL}},
    {"the list is denied",
     spoil_list,
     {S(NO_PERMISSION), S(NO_PERMISSION)},
     {S(NO_PERMISSION), S(NO_PERMISSION)},
     {NULL, NULL}},
    {"a process does not tell",
     spoil_process,
     {S(UNSUPPORTED), S(UNSUPPORTED)},
     {S(UNSUPPORTED), S(UNSUPPORTED)},
     {SILENT_PROCESS, SILENT_PROCESS}},
    {"a process beside the instance does not tell",
     spoil_gpu_process,
     {S(UNSUPPORTED), S(OK)},
     {S(UNSUPPORTED), S(OK)},
     {SILENT_PROCESS, NULL}},
    {"a process told it before", spoil_old_process, {S(OK), S(OK)}, {S(OK), S(OK)}, {NULL, NULL}},
    {"the GPU instance is not known",
     spoil_gpu_instance,
     {S(OK), S(UNSUPPORTED)},
     {S(OK), S(UNSUPPORTED)},
     {NULL, UNPLACED}},
    {"the compute instance is not known",
     spoil_compute_instance,
     {S(OK), S(UNSUPPORTED)},
     {S(OK), S(UNSUPPORTED)},
     {NULL, UNPLACED}},
    {"what is used is not known", spoil_used, {S(OK), S(OK)}, {S(LOST), S(ERROR)}, {NULL, NULL}},
};

static void a_sum_is_told_where_all_its_parts_are(void **state)
{
    const struct sum_case *c = *state;
    begin(NULL);
    bench.want.mig = true; /* the processes are asked for all the same */
    want(GP_MEMORY_PROCESSES);
    make();
    struct gp_reading *reading = answer(0);
    set_int(reading->values, GP_MEMORY_USED, 1000);
    set_int(add_instances(reading, 1)->values, GP_MEMORY_USED, 100);
    struct gp_source_process *p = add_processes(reading, 2);
    place(&p[0], 1, 20, 30, 10);
    place(&p[1], 2, -1, -1, 20);
    for (uint32_t pid = 1; pid <= 2; pid++)
        (void)add_info(pid);
    c->spoil(reading);
    tick_all(1);
    for (size_t d = 0; d < 2; d++) {
        const struct gp_value *sum = value(d, GP_MEMORY_PROCESSES);
        assert_int_equal(sum->status, c->sum[d]);
        assert_int_equal(value(d, GP_MEMORY_UNATTRIBUTED)->status, c->rest[d]);
        assert_true(gp_value_time_ns(sum) == BENCH_MONO_NS);
        if (c->why[d])
            assert_string_equal(sum->s, c->why[d]);
        if (c->sum[d] == GP_STATUS_OK)
            assert_int_equal(sum->i, d == 0 ? 30 : 10);
        if (c->spoil == spoil_used)
            check_absent(value(d, GP_MEMORY_UNATTRIBUTED), c->rest[d], d == 0 ? NULL : "broken");
        if (c->rest[d] == GP_STATUS_OK)
            assert_int_equal(value(d, GP_MEMORY_UNATTRIBUTED)->i, d == 0 ? 970 : 90);
    }
    end();
}

static void without_a_wish_for_it_nothing_is_summed(void **state)
{
    (void)state;
    begin(NULL);
    bench.want.processes = true;
    want(GP_MEMORY_USED);
    make();
    place(one_process(1), 1, -1, -1, 10);
    set_int(bench.slots[0].latest->values, GP_MEMORY_USED, 1000);
    tick_all(1);
    assert_int_equal(value(0, GP_MEMORY_PROCESSES)->status, GP_STATUS_NONE);
    assert_int_equal(value(0, GP_MEMORY_UNATTRIBUTED)->status, GP_STATUS_NONE);
    end();
}

/* ---- who is suspended ---- */

static void suspend(size_t i, uint32_t pid, const char *uuid, uint64_t bytes)
{
    struct gp_suspended *s = &bench.suspended[i];
    s->pid = pid;
    (void)snprintf(s->gpus[s->gpu_count].uuid, sizeof(s->gpus[0].uuid), "%s", uuid);
    s->gpus[s->gpu_count++].bytes = bytes;
    bench.suspended_count = i + 1;
}

static void check_suspended(size_t row, size_t device, uint32_t pid, int64_t bytes)
{
    assert_int_equal(bench.snapshot->processes[row].device, device);
    assert_true(bench.snapshot->processes[row].place == UINT32_MAX);
    check_int(cell(row, GP_PID), GP_STATUS_OK, pid);
    check_text(cell(row, GP_PROCESS_TYPE), GP_STATUS_OK, "S");
    check_int(cell(row, GP_PROCESS_MEMORY), GP_STATUS_OK, 0);
    check_int(cell(row, GP_PROCESS_SUSPENDED), GP_STATUS_OK, bytes);
    for (int m = GP_PROCESS_SM; m <= GP_PROCESS_CI; m++)
        check_absent(cell(row, (enum gp_metric)m), GP_STATUS_UNSUPPORTED,
                     "the process is suspended");
    assert_true(gp_value_time_ns(cell(row, GP_PROCESS_SUSPENDED)) == BENCH_MONO_NS);
    check_text(cell(row, GP_PROCESS_USER), GP_STATUS_OK, "ann");
}

/* On two GPUs, the first of which has instances; one that is listed again is not suspended there.
 */
static void who_is_suspended_stands_behind_the_others(void **state)
{
    static const size_t counts[] = {2, 0, 2};
    (void)state;
    begin_all();
    bench.a.want.mig = true;
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(bench.slots[i].uuid, sizeof(bench.slots[i].uuid), "GPU-%u", i);
        place(add_processes(answer(i), 1), i ? 9 : 1, -1, -1, 5);
    }
    (void)add_instances(bench.slots[0].latest, 1);
    suspend(0, 8, "GPU-0", 70);
    suspend(0, 8, "GPU-1", 71);
    suspend(0, 8, "GPU-7", 72); /* that is not here */
    suspend(1, 9, "GPU-1", 73); /* about to be listed, or suspended */
    for (uint32_t pid = 1; pid <= 9; pid++)
        if (pid == 1 || pid >= 8)
            add_info(pid)->texts->user = "ann";
    tick_all(2);
    assert_int_equal(bench.snapshot->process_count, 4);
    for (size_t d = 0; d < 3; d++)
        assert_int_equal(bench.snapshot->devices[d].process_count, counts[d]);
    check_int(cell(0, GP_PID), GP_STATUS_OK, 1);
    check_suspended(1, 0, 8, 70);
    check_int(cell(2, GP_PID), GP_STATUS_OK, 9);
    check_text(cell(2, GP_PROCESS_TYPE), GP_STATUS_OK, "C");
    check_suspended(3, 2, 8, 71);
    assert_int_equal(bench.pid_count, 3);
    assert_true(bench.proc_want & GP_PROC_PATH); /* of one the driver tells no path */
    end();
}

/* What ran on a GPU when it was lost is still shown if it runs, even with the pid of another one.
 */
static void who_was_on_a_gpu_that_is_lost(void **state)
{
    static const struct {
        uint64_t began_ago_s;
        bool exists, stays;
    } cases[] = {{100, true, true}, {100, false, false}, {5, true, false}, {11, true, true}};
    (void)state;
    begin_all();
    struct gp_source_process *p = add_processes(answer(0), GP_ARRAY_LEN(cases));
    size_t left = 0;
    for (unsigned i = 0; i < GP_ARRAY_LEN(cases); i++) {
        place(&p[i], 7 + i, -1, -1, 5);
        struct gp_proc_info *info = add_info(7 + i);
        info->exists = cases[i].exists;
        info->start_ns = BENCH_WALL_NS - cases[i].began_ago_s * GP_NS_PER_S;
    }
    tick_one(GP_STATUS_OK, "");
    assert_int_equal(bench.snapshot->process_count, GP_ARRAY_LEN(cases));
    tick_one(GP_STATUS_LOST, "fell off");
    for (unsigned i = 0; i < GP_ARRAY_LEN(cases); i++) {
        if (!cases[i].stays)
            continue;
        check_int(cell(left, GP_PID), GP_STATUS_OK, 7 + i);
        check_int(cell(left, GP_PROCESS_MEMORY), GP_STATUS_STALE, 5);
        left++;
    }
    assert_int_equal(bench.snapshot->process_count, left);
    assert_int_equal(bench.snapshot->devices[0].process_count, left);
    assert_int_equal(bench.snapshot->devices[0].processes_status, GP_STATUS_LOST);
    end();
}

/* A GPU that was always lost lists nobody, and so does one that was always silent. */
static void who_is_suspended_is_known_without_the_gpu(void **state)
{
    (void)state;
    begin_all();
    (void)snprintf(bench.slots[0].uuid, sizeof(bench.slots[0].uuid), "GPU-0");
    suspend(0, 8, "GPU-0", 70);
    add_info(8)->texts->user = "ann";
    tick_one(GP_STATUS_LOST, "fell off");
    assert_int_equal(bench.snapshot->process_count, 1);
    check_suspended(0, 0, 8, 70);
    bench.suspended_count = 0;
    tick_one(GP_STATUS_LOST, "fell off");
    assert_int_equal(bench.snapshot->process_count, 0);
    end();
}

/* ---- ancestors ---- */

static void ancestors_stand_apart(void **state)
{
    (void)state;
    begin_all();
    place(add_processes(answer(0), 1), 7, -1, -1, 5);
    static const uint32_t pids[] = {1, 3, 7};
    for (size_t i = 0; i < 3; i++) {
        struct gp_proc_info *info = add_info(pids[i]);
        info->exists = true;
        info->is_ancestor = pids[i] != 7;
        fill_texts(info->texts);
        fill_numbers(info);
        info->ppid = pids[i] - 1;
    }
    tick_all(1); /* they may be read for other reasons */
    assert_int_equal(bench.snapshot->ancestor_count, 0);
    gp_assembler_set_ancestors(&bench.a, true);
    tick_all(1);
    assert_int_equal(bench.snapshot->process_count, 1);
    assert_int_equal(bench.snapshot->ancestor_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct gp_process *p = &bench.snapshot->ancestors[i];
        check_int(gp_process_value(p, GP_PID), GP_STATUS_OK, pids[i]);
        check_int(gp_process_value(p, GP_PROCESS_PPID), GP_STATUS_OK, pids[i] - 1);
        check_text(gp_process_value(p, GP_PROCESS_USER), GP_STATUS_OK, "ann");
        assert_int_equal(gp_process_value(p, GP_PROCESS_MEMORY)->status, GP_STATUS_NONE);
        assert_int_equal(gp_process_value(p, GP_PROCESS_TYPE)->status, GP_STATUS_NONE);
        assert_true(gp_value_time_ns(gp_process_value(p, GP_PID)) == BENCH_MONO_NS);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ancestors_ask_for_what_shows_them),
        cmocka_unit_test(every_pid_is_asked_for_once),
        cmocka_unit_test(what_the_driver_says_stands_where_it_belongs),
        cmocka_unit_test(how_long_it_has_been_idle),
        cmocka_unit_test(a_type_is_told_in_letters),
        cmocka_unit_test(numbers_of_one_that_is_not_watched_are_old),
        cmocka_unit_test(every_state_has_its_letter),
        cmocka_unit_test(nothing_is_not_the_same_as_not_known),
        cmocka_unit_test(the_drivers_name_helps_out),
        cmocka_unit_test(each_stands_in_its_instance_or_on_its_gpu),
        cmocka_unit_test(an_instance_that_is_chosen_alone_has_its_own),
        cmocka_unit_test(without_a_wish_for_it_nothing_is_summed),
        cmocka_unit_test(who_is_suspended_stands_behind_the_others),
        cmocka_unit_test(who_was_on_a_gpu_that_is_lost),
        cmocka_unit_test(who_is_suspended_is_known_without_the_gpu),
        cmocka_unit_test(ancestors_stand_apart),
    };
    struct rows rows = {0};
    static char names[GP_ARRAY_LEN(text_cases)][48];
    for (size_t i = 0; i < GP_ARRAY_LEN(ask_cases); i++)
        rows_add(&rows, GP_METRIC_NAME(ask_cases[i].metric), only_what_is_wanted_is_asked_of_proc,
                 &ask_cases[i]);
    for (size_t i = 0; i < GP_ARRAY_LEN(text_cases); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "proc says %s",
                       GP_METRIC_NAME(text_cases[i].metric));
        rows_add(&rows, names[i], proc_says_who_it_is, &text_cases[i]);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(sum_cases); i++)
        rows_add(&rows, sum_cases[i].name, a_sum_is_told_where_all_its_parts_are, &sum_cases[i]);
    assert_int_equal(GP_ARRAY_LEN(ask_cases), GP_PROCESS__COUNT);
    return rows_run(&rows, tests, GP_ARRAY_LEN(tests), NULL);
}
