/* Which rows a sample has: GPUs that are chosen, MIG instances, processes; and without memory. */
#include "proc_tree.h"
#include "sampler_bench.h"

/* ---- which GPUs ---- */

static void choose(struct bench *b, const char *list)
{
    assert_int_equal(gp_selection_parse(list, &b->selection, NULL), 0);
}

static void chosen_by_index_the_others_are_left_alone(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 8);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    choose(&b, "2,5-6");
    start(&b);
    tick(&b);
    assert_int_equal(b.snapshot->device_count, 3);
    check_well(&b, 0, 52);
    check_well(&b, 1, 55);
    check_well(&b, 2, 56);
    assert_int_equal(b.fake.attaches, 3);
    assert_int_equal(b.snapshot->host[GP_COUNT].i, 8);
    finish(&b);
}

static void chosen_by_uuid_or_name(void **state)
{
    (void)state;
    static const char *const lists[] = {"GPU-c", "c", "gpu-C"};
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        struct bench b;
        bench_init(&b, 4);
        choose(&b, lists[i]);
        start(&b);
        tick(&b);
        assert_int_equal(b.snapshot->device_count, 1);
        check_well(&b, 0, 52);
        finish(&b);
    }
}

static void a_choice_that_matches_nothing(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 4);
    choose(&b, "0,7");
    check_no_start(&b, GP_ENODEV, "no GPU matches '7'; this machine has 4 (0 to 3)");

    struct gp_err err = {0};
    struct gp_snapshot *snapshot = NULL;
    bench_init(&b, 4);
    choose(&b, "GPU-c,GPU-z");
    start(&b); /* what it is called is only known once it has been read */
    assert_int_equal(gp_sampler_tick(b.sampler, &snapshot, &err), GP_ENODEV);
    assert_null(snapshot);
    assert_non_null(strstr(err.text, "no GPU matches 'GPU-z'"));
    finish(&b);
}

static void once_it_is_known_who_they_are_the_others_are_left_alone(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 4);
    fake_set_mode(&b.fake, 1, FAKE_LOST);
    choose(&b, "GPU-c");
    start(&b);
    tick(&b);
    /* a lost one may be anybody; that is no reason to doubt the one that was found */
    assert_int_equal(b.snapshot->device_count, 1);
    assert_false(b.snapshot->partial);
    check_well(&b, 0, 52);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    unsigned reads = b.fake.reads;
    for (int n = 0; n < 3; n++)
        tick(&b);
    check_well(&b, 0, 52);
    assert_int_equal(b.fake.reads, reads + 3);
    finish(&b);
}

static void a_choice_that_cannot_be_made(void **state)
{
    (void)state;
    struct bench b;
    struct gp_err err = {0};
    struct gp_snapshot *snapshot = NULL;
    bench_init(&b, 4);
    fake_set_mode(&b.fake, 2, FAKE_HANGS);
    b.config.timeout_ns = PATIENCE_NS;
    choose(&b, "GPU-c");
    start(&b);
    assert_int_equal(gp_sampler_tick(b.sampler, &snapshot, &err), GP_EPARTIAL);
    assert_null(snapshot);
    static const char words[] =
        "cannot resolve --id: GPU 2 has not been identified: no answer for ";
    assert_memory_equal(err.text, words, sizeof(words) - 1);
    assert_non_null(strstr(err.text, " s (fakeRead)"));
    fake_set_mode(&b.fake, 2, FAKE_WELL);
    for (int i = 0; i < 200 * LONG_S && gp_sampler_tick(b.sampler, &snapshot, &err) < 0; i++)
        (void)usleep(5000);
    assert_non_null(snapshot);
    b.snapshot = snapshot;
    check_well(&b, 0, 52);
    finish(&b);
}

static void for_the_host_alone_no_gpu_is_touched(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.config.want = (struct gp_want){.host_only = true};
    gp_metric_set_add(&b.config.want.metrics, GP_HOST_LOAD);
    b.fake.open_result = GP_EDRIVER;
    start(&b);
    tick(&b);
    assert_int_equal(b.fake.opens, 0);
    assert_int_equal(b.snapshot->device_count, 0);
    assert_false(b.snapshot->partial);
    finish(&b);

    bench_init(&b, 2);
    b.config.want = (struct gp_want){.host_only = true};
    gp_metric_set_add(&b.config.want.metrics, GP_DRIVER_VERSION);
    start(&b);
    tick(&b);
    assert_string_equal(b.snapshot->host[GP_DRIVER_VERSION].s, "1.0");
    assert_int_equal(b.fake.opens, 1);
    assert_int_equal(b.fake.attaches, 0);
    finish(&b);
}

/* ---- processes and MIG instances ---- */

static struct gp_source_process process(uint32_t pid, const char *name, int instance)
{
    struct gp_source_process p = {.pid = pid, .types = GP_PROCESS_COMPUTE, .driver_name = name};
    p.memory = (struct gp_value){.i = pid, .status = GP_STATUS_OK};
    p.gpu_instance = p.compute_instance = (struct gp_value){
        .i = instance,
        .status = instance < 0 ? GP_STATUS_UNSUPPORTED : GP_STATUS_OK,
    };
    return p;
}

static void want_processes(struct bench *b)
{
    b->config.want.processes = b->config.want.mig = true;
    for (int m = GP_PROCESS__FIRST; m < GP_PROCESS__FIRST + GP_PROCESS__COUNT; m++)
        gp_metric_set_add(&b->config.want.metrics, (enum gp_metric)m);
    b->fake.gpus[0].mig_count = 2;
    b->fake.gpus[0].processes[0] = process(100, "/opt/bin/train --data /mnt/x", 1);
    b->fake.gpus[0].processes[1] = process(200, NULL, -1);
    b->fake.gpus[0].processes[2] = process(300, NULL, 9);
    b->fake.gpus[0].process_count = 3;
    b->fake.gpus[1].processes[0] = process(200, NULL, -1);
    b->fake.gpus[1].processes[0].types = GP_PROCESS_COMPUTE | GP_PROCESS_GRAPHICS;
    b->fake.gpus[1].process_count = 1;
}

static const struct gp_value *process_value(const struct bench *b, size_t i, enum gp_metric m)
{
    return gp_snapshot_value(b->snapshot, NULL, &b->snapshot->processes[i], m);
}

static void check_processes(const struct bench *b)
{
    /* the GPU, its two instances, the other GPU */
    static const unsigned counts[] = {2, 0, 1, 1};
    static const unsigned pids[] = {200, 300, 100, 200};
    static const size_t devices[] = {0, 0, 2, 3};
    assert_int_equal(b->snapshot->device_count, 4);
    assert_int_equal(b->snapshot->process_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(b->snapshot->devices[i].is_mig, i == 1 || i == 2);
        assert_int_equal(b->snapshot->devices[i].process_count, counts[i]);
        assert_int_equal(process_value(b, i, GP_PID)->i, pids[i]);
        assert_int_equal(b->snapshot->processes[i].device, devices[i]);
        /* none of them is in /proc */
        assert_int_equal(process_value(b, i, GP_PROCESS_USER)->status, GP_STATUS_UNSUPPORTED);
        assert_int_equal(process_value(b, i, GP_PROCESS_RSS)->status, GP_STATUS_UNSUPPORTED);
    }
    assert_int_equal(b->snapshot->devices[2].mig_index, 2);
    assert_string_equal(process_value(b, 2, GP_PROCESS_NAME)->s, "train");
    assert_string_equal(process_value(b, 2, GP_PROCESS_PATH)->s, "/opt/bin/train --data /mnt/x");
    assert_string_equal(process_value(b, 2, GP_PROCESS_COMMAND)->s, "/opt/bin/train --data /mnt/x");
    assert_int_equal(process_value(b, 0, GP_PROCESS_NAME)->status, GP_STATUS_UNSUPPORTED);
    assert_int_equal(process_value(b, 0, GP_PROCESS_PATH)->status, GP_STATUS_UNSUPPORTED);
    assert_string_equal(process_value(b, 3, GP_PROCESS_TYPE)->s, "C+G");
    assert_int_equal(process_value(b, 2, GP_PROCESS_GI)->i, 1);
}

static void processes_stand_with_their_gpu_or_instance(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_processes(&b);
    start(&b);
    tick(&b);
    check_processes(&b);
    assert_int_equal(process_value(&b, 2, GP_PROCESS_MEMORY)->status, GP_STATUS_OK);
    finish(&b);
}

static void processes_of_a_silent_gpu_are_old_ones(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_processes(&b);
    b.config.later_timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until(&b, 0, GP_STATUS_OK);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    tick_until(&b, 3, GP_STATUS_OK);
    check_processes(&b);
    assert_int_equal(process_value(&b, 2, GP_PROCESS_MEMORY)->status, GP_STATUS_STALE);
    assert_int_equal(b.snapshot->devices[2].status, GP_STATUS_TIMEOUT);
    assert_int_equal(value(&b, 2, GP_MEMORY_USED)->status, GP_STATUS_STALE);
    release(&b, 0);
    tick_until(&b, 0, GP_STATUS_OK);
    finish(&b);
}

/* Asking the driver for names is dear: only where somebody will see one. */
static void names_are_asked_only_where_they_are_shown(void **state)
{
    (void)state;
    for (int m = GP_PID; m < GP_PROCESS__FIRST + GP_PROCESS__COUNT; m++) {
        struct bench b;
        bench_init(&b, 1);
        b.config.want.processes = true;
        gp_metric_set_add(&b.config.want.metrics, (enum gp_metric)m);
        start(&b);
        tick(&b);
        assert_int_equal(b.fake.want.process_names,
                         m == GP_PROCESS_NAME || m == GP_PROCESS_PATH || m == GP_PROCESS_COMMAND);
        finish(&b);
    }
    struct bench b;
    bench_init(&b, 1);
    b.config.want.processes = b.config.want.process_names = true;
    start(&b);
    tick(&b);
    assert_true(b.fake.want.process_names);
    finish(&b);
}

static void a_list_that_is_not_known_makes_a_partial_result(void **state)
{
    (void)state;
    static const enum gp_status statuses[] = {GP_STATUS_OK, GP_STATUS_UNSUPPORTED,
                                              GP_STATUS_NO_PERMISSION, GP_STATUS_ERROR};
    for (size_t i = 0; i < 2 * GP_ARRAY_LEN(statuses); i++) {
        struct bench b;
        bench_init(&b, 2);
        b.config.want.processes = i < GP_ARRAY_LEN(statuses);
        b.fake.gpus[1].processes_status = statuses[i % GP_ARRAY_LEN(statuses)];
        start(&b);
        tick(&b);
        assert_int_equal(b.snapshot->partial, i == 2 || i == 3);
        assert_int_equal(b.snapshot->devices[0].processes_status, GP_STATUS_OK);
        assert_int_equal(b.snapshot->devices[1].processes_status,
                         statuses[i % GP_ARRAY_LEN(statuses)]);
        check_well(&b, 1, 51);
        finish(&b);
    }
}

static void a_choice_by_uuid_takes_the_instances_too(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_processes(&b);
    choose(&b, "GPU-a");
    start(&b);
    tick(&b);
    assert_int_equal(b.snapshot->device_count, 3);
    assert_int_equal(b.snapshot->process_count, 3);
    finish(&b);
}

/* ---- lists ---- */

static void want_fans(struct bench *b)
{
    b->config.want.lists = UINT32_C(1) << gp_list_index(GP_SCOPE_FAN);
    gp_metric_set_add(&b->config.want.metrics, GP_FAN_NUMBER);
}

static const struct gp_entries *fans(const struct bench *b)
{
    return &b->snapshot->lists[gp_list_index(GP_SCOPE_FAN)];
}

static void check_fan(const struct bench *b, size_t row, size_t device, enum gp_metric m,
                      enum gp_status status)
{
    assert_true(row < fans(b)->count);
    const struct gp_entry *entry = &fans(b)->entries[row];
    assert_int_equal(entry->device, device);
    assert_int_equal(entry->values[m - gp_scope_table[GP_SCOPE_FAN].first].status, status);
}

static void entries_stand_with_their_gpu(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    want_fans(&b);
    b.fake.gpus[1].fan_count = 0;
    start(&b);
    tick(&b);
    assert_int_equal(fans(&b)->count, 4);
    check_fan(&b, 1, 0, GP_FAN_NUMBER, GP_STATUS_OK);
    check_fan(&b, 2, 2, GP_FAN_NUMBER, GP_STATUS_OK);
    assert_int_equal(fans(&b)->entries[3].values[0].i, 1);
    assert_int_equal(b.snapshot->lists[gp_list_index(GP_SCOPE_LINK)].count, 0);
    finish(&b);
}

static void a_snapshot_outlives_what_it_was_made_of(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 1);
    want_fans(&b);
    start(&b);
    tick(&b);
    struct gp_snapshot *snapshot = b.snapshot;
    b.snapshot = NULL;
    tick(&b);
    finish(&b);
    b.snapshot = snapshot;
    check_text(&b, 0, GP_NAME, "a");
    const struct gp_value *policy =
        &fans(&b)->entries[0].values[GP_FAN_POLICY - gp_scope_table[GP_SCOPE_FAN].first];
    assert_string_equal(policy->s, "Automatic");
    gp_snapshot_free(snapshot);
}

/* A list that is not known is one row that says so; it makes a partial result if it is a failure.
 */
static void a_list_that_is_not_known_is_one_row(void **state)
{
    (void)state;
    static const struct {
        enum gp_status status;
        bool partial;
    } cases[] = {
        {GP_STATUS_UNSUPPORTED, false}, {GP_STATUS_NO_PERMISSION, true}, {GP_STATUS_ERROR, true}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct bench b;
        bench_init(&b, 2);
        want_fans(&b);
        b.fake.gpus[0].fans_status = cases[i].status;
        start(&b);
        tick(&b);
        assert_int_equal(b.snapshot->partial, cases[i].partial);
        assert_int_equal(b.snapshot->devices[0].list_status[gp_list_index(GP_SCOPE_FAN)],
                         cases[i].status);
        assert_int_equal(fans(&b)->count, 3);
        check_fan(&b, 0, 0, GP_FAN_NUMBER, cases[i].status);
        check_fan(&b, 0, 0, GP_FAN_MAX, cases[i].status);
        assert_string_equal(fans(&b)->entries[0].values[0].s, "because");
        check_fan(&b, 1, 1, GP_FAN_NUMBER, GP_STATUS_OK);
        finish(&b);
    }
}

static void lists_of_a_silent_gpu_are_old_ones(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_fans(&b);
    b.config.later_timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until(&b, 0, GP_STATUS_OK);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    tick_until(&b, 1, GP_STATUS_OK);
    assert_int_equal(fans(&b)->count, 4);
    check_fan(&b, 0, 0, GP_FAN_NUMBER, GP_STATUS_STALE);
    check_fan(&b, 0, 0, GP_FAN_MAX, GP_STATUS_OK); /* it lasts */
    release(&b, 0);
    tick_until(&b, 0, GP_STATUS_OK);
    check_fan(&b, 0, 0, GP_FAN_NUMBER, GP_STATUS_OK);
    finish(&b);
}

static void a_lost_gpu_has_a_row_that_says_so(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_fans(&b);
    fake_set_mode(&b.fake, 1, FAKE_LOST);
    start(&b);
    tick(&b);
    assert_true(b.snapshot->partial);
    assert_int_equal(fans(&b)->count, 3);
    check_fan(&b, 2, 1, GP_FAN_NUMBER, GP_STATUS_LOST);
    finish(&b);
}

/* ---- ancestors ---- */

static void want_ancestors(struct bench *b)
{
    want_processes(b);
    b->config.root = tree_root;
    b->config.want.ancestors = true;
    write_child(1, 0, 1, "/sbin/init");
    write_child(30, 1, 5, "bash");
    write_child(100, 30, 6, "/opt/bin/train");
    write_child(200, 100, 7, "worker");
}

static const struct gp_value *ancestor_value(const struct bench *b, size_t i, enum gp_metric m)
{
    return gp_snapshot_value(b->snapshot, NULL, &b->snapshot->ancestors[i], m);
}

static void check_ancestors(const struct bench *b)
{
    static const int64_t pids[] = {1, 30};
    static const int64_t parents[] = {0, 1};
    static const char *const commands[] = {"/sbin/init", "bash"};
    assert_int_equal(b->snapshot->ancestor_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ancestor_value(b, i, GP_PID)->i, pids[i]);
        assert_int_equal(ancestor_value(b, i, GP_PROCESS_PPID)->i, parents[i]);
        assert_string_equal(ancestor_value(b, i, GP_PROCESS_COMMAND)->s, commands[i]);
        assert_string_equal(ancestor_value(b, i, GP_PROCESS_STATE)->s, "S");
        assert_int_equal(ancestor_value(b, i, GP_PROCESS_USER)->status, GP_STATUS_OK);
        assert_int_equal(ancestor_value(b, i, GP_PROCESS_RSS)->i, 5 * sysconf(_SC_PAGESIZE));
        /* the driver knows nothing of it */
        assert_int_equal(ancestor_value(b, i, GP_PROCESS_MEMORY)->status, GP_STATUS_NONE);
        assert_int_equal(ancestor_value(b, i, GP_PROCESS_TYPE)->status, GP_STATUS_NONE);
    }
}

static void where_processes_come_from(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_ancestors(&b);
    start(&b);
    tick(&b);
    check_ancestors(&b);
    assert_int_equal(process_value(&b, 2, GP_PROCESS_PPID)->i, 30);
    assert_int_equal(process_value(&b, 3, GP_PROCESS_PPID)->i, 100);
    assert_int_equal(process_value(&b, 3, GP_PROCESS_THREADS)->i, 2);
    assert_int_equal(ancestor_value(&b, 1, GP_PROCESS_CPU)->status, GP_STATUS_OK);
    /* who is not watched is read now and then, and his numbers say so */
    const uint32_t watched[] = {30};
    gp_sampler_watch(b.sampler, NULL, 0, false);
    tick(&b);
    gp_sampler_watch(b.sampler, watched, 1, false);
    tick(&b);
    check_ancestors(&b);
    assert_int_equal(ancestor_value(&b, 0, GP_PROCESS_CPU)->status, GP_STATUS_STALE);
    assert_int_equal(ancestor_value(&b, 0, GP_PROCESS_STATE)->status, GP_STATUS_STALE);
    assert_int_equal(ancestor_value(&b, 1, GP_PROCESS_RSS)->status, GP_STATUS_OK);
    finish(&b);
}

static void ancestors_are_read_only_where_they_are_wanted(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_ancestors(&b);
    b.config.want.ancestors = false;
    start(&b);
    tick(&b);
    assert_int_equal(b.snapshot->ancestor_count, 0);
    finish(&b);

    /* they need the processes, and what tells who is whose parent */
    bench_init(&b, 2);
    want_ancestors(&b);
    b.config.want = (struct gp_want){.ancestors = true, .mig = true};
    start(&b);
    tick(&b);
    check_ancestors(&b);
    assert_int_equal(process_value(&b, 3, GP_PROCESS_PPID)->i, 100);
    finish(&b);
}

/* From the next tick on, and back. */
static void ancestors_lists_and_more_can_be_asked_for_later(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_ancestors(&b);
    gp_metric_set_add(&b.config.want.more, GP_POWER_DRAW);
    start(&b);
    for (int on = 0; on < 4; on++) {
        bool wanted = on % 2;
        gp_sampler_set_ancestors(b.sampler, wanted);
        gp_sampler_set_more(b.sampler, wanted);
        gp_sampler_set_lists(b.sampler, wanted ? UINT32_C(1) << gp_list_index(GP_SCOPE_FAN) : 0);
        tick(&b);
        assert_int_equal(b.snapshot->ancestor_count, wanted ? 2 : 0);
        assert_int_equal(fans(&b)->count, wanted ? 4 : 0);
        assert_int_equal(b.fake.want.lists,
                         wanted ? UINT32_C(1) << gp_list_index(GP_SCOPE_FAN) : 0);
        assert_int_equal(b.fake.want.fresh, wanted);
        assert_int_equal(gp_metric_set_has(&b.fake.want.metrics, GP_POWER_DRAW), wanted);
    }
    finish(&b);
}

/* ---- no memory ---- */

/* One run with all allocations from the n-th on failing; true if none was missed. */
static bool run_without_memory(long n)
{
    struct bench b;
    struct gp_err err = {0};
    bench_init(&b, 3);
    want_ancestors(&b);
    want_fans(&b);
    alloc_fail_from(n);
    int r = gp_sampler_new(&b.config, &b.sampler, &err);
    for (int i = 0; r == 0 && i < 2; i++) {
        r = gp_sampler_tick(b.sampler, &b.snapshot, &err);
        gp_snapshot_free(b.snapshot);
        b.snapshot = NULL;
    }
    bool complete = alloc_count() <= n;
    alloc_fail_from(-1);
    if (r < 0) {
        assert_int_equal(r, GP_ENOMEM);
        assert_int_equal(err.code, GP_ENOMEM);
    }
    /* the next tick is well again */
    if (b.sampler) {
        tick(&b);
        tick(&b);
        assert_int_equal(b.snapshot->device_count, 5);
        assert_false(b.snapshot->partial);
        check_ancestors(&b);
        gp_snapshot_free(b.snapshot);
        assert_true(gp_sampler_free(b.sampler));
    }
    assert_int_equal(b.fake.frees, 1);
    assert_int_equal(b.fake.held, 0);
    assert_int_equal(b.fake.breaches, 0);
    return complete && r == 0;
}

static void whichever_allocation_fails_nothing_is_lost(void **state)
{
    (void)state;
    bool complete = false;
    long n = 0;
    for (; !complete && n < 500; n++)
        complete = run_without_memory(n);
    assert_true(complete);
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_by_index_the_others_are_left_alone),
        cmocka_unit_test(chosen_by_uuid_or_name),
        cmocka_unit_test(a_choice_that_matches_nothing),
        cmocka_unit_test(once_it_is_known_who_they_are_the_others_are_left_alone),
        cmocka_unit_test(a_choice_that_cannot_be_made),
        cmocka_unit_test(for_the_host_alone_no_gpu_is_touched),
        cmocka_unit_test(processes_stand_with_their_gpu_or_instance),
        cmocka_unit_test(processes_of_a_silent_gpu_are_old_ones),
        cmocka_unit_test(names_are_asked_only_where_they_are_shown),
        cmocka_unit_test(a_list_that_is_not_known_makes_a_partial_result),
        cmocka_unit_test(a_choice_by_uuid_takes_the_instances_too),
        cmocka_unit_test(entries_stand_with_their_gpu),
        cmocka_unit_test(a_snapshot_outlives_what_it_was_made_of),
        cmocka_unit_test(a_list_that_is_not_known_is_one_row),
        cmocka_unit_test(lists_of_a_silent_gpu_are_old_ones),
        cmocka_unit_test(a_lost_gpu_has_a_row_that_says_so),
        TEST(where_processes_come_from),
        TEST(ancestors_are_read_only_where_they_are_wanted),
        TEST(ancestors_lists_and_more_can_be_asked_for_later),
        TEST(whichever_allocation_fails_nothing_is_lost),
    };
    return cmocka_run_group_tests_name("sampler_rows", tests, NULL, NULL);
}
