/* The cases of gpulse why, from samples: processes that come and go, memory that is freed and taken
 * again, GPUs that are lost in between. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "snapshot_fixture.h"
#include "why/gather.h"

enum { GIB_BITS = 30 };

static const struct gp_why_asked all = {.pid = 0};

struct row {
    int64_t pid; /* 0: none */
    int64_t sm, gib, ppid;
    const char *command, *container;
};

/* A sample of one GPU with up to three processes; `used`: GiB of its memory. */
static void make(struct fixture *f, unsigned second, int64_t used, const struct row rows[3])
{
    fixture_init(f);
    f->snapshot.device_count = 1;
    f->snapshot.process_count = 0;
    f->snapshot.mono_ns = (100 + second) * GP_NS_PER_S;
    f->devices[0].process_count = 0;
    *fixture_value(f, 0, GP_MEMORY_USED) = fixture_int(used << GIB_BITS);
    *fixture_value(f, 0, GP_PERSISTENCE_MODE) = fixture_text("Disabled");
    for (int i = 0; i < 3 && rows[i].pid; i++) {
        fixture_fill_process(f, i, 0, rows[i].pid);
        *fixture_process(f, i, GP_PROCESS_SM) = fixture_int(rows[i].sm);
        *fixture_process(f, i, GP_PROCESS_MEMORY) = fixture_int(rows[i].gib << GIB_BITS);
        *fixture_process(f, i, GP_PROCESS_PPID) = fixture_int(rows[i].ppid);
        if (rows[i].command)
            *fixture_process(f, i, GP_PROCESS_COMMAND) = fixture_text(rows[i].command);
        if (rows[i].container)
            *fixture_process(f, i, GP_PROCESS_CONTAINER) = fixture_text(rows[i].container);
        f->snapshot.process_count++;
    }
}

static void add(struct gp_why_gather *gather, unsigned second, int64_t used,
                const struct row rows[3])
{
    static struct fixture f;
    make(&f, second, used, rows);
    assert_int_equal(gp_why_gather_add(gather, &f.snapshot), 0);
}

static void what_has_ended_counts_for_its_time(void **state)
{
    (void)state;
    size_t count;
    struct gp_why_gather *gather = gp_why_gather_new(NULL, false, all);
    for (unsigned i = 0; i < 4; i++) /* one behind the other, beside one that stays */
        add(gather, i, 30,
            (const struct row[3]){{100, 40, 8, 0, "python a.py", NULL},
                                  {200 + i, 60, 20, 0, "python b.py", NULL}});
    add(gather, 4, 10, (const struct row[3]){{100, 40, 8, 0, "python a.py", NULL}});
    const struct gp_why_case *c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->pid, 100); /* the others had more memory, but have ended */
    assert_string_equal(c->command, "python a.py");
    assert_true(c->others_sm > 47 && c->others_sm < 49); /* 60 % of 4 of 5 samples */
    assert_int_equal(c->starts, 3);
    assert_int_equal(c->empty, 0);
    assert_true(c->persistence_off);
    assert_int_equal(c->samples, 5);
    assert_true(c->seconds > 3.9 && c->seconds < 4.1);
    gp_why_gather_free(gather);
}

static void memory_that_is_taken_again(void **state)
{
    (void)state;
    static const int64_t used[] = {70, 79, 79, 60, 78, 70, 79, 78, 77, 40};
    size_t count;
    struct gp_why_gather *gather = gp_why_gather_new(NULL, false, all);
    for (unsigned i = 0; i < GP_ARRAY_LEN(used); i++)
        add(gather, i, used[i], (const struct row[3]){{100, 90, 70, 0, NULL, NULL}});
    const struct gp_why_case *c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->memory_drops, 2); /* the last one is not taken again */
    assert_int_equal(c->values[GP_WHY_MEMORY].count, GP_ARRAY_LEN(used));
    assert_true(c->values[GP_WHY_MEMORY].most > 78e9);
    assert_int_equal(c->limited[GP_WHY_LIMIT_POWER_CAP], GP_ARRAY_LEN(used)); /* 0x104 */
    assert_int_equal(c->limited[GP_WHY_LIMIT_THERMAL], 0);
    gp_why_gather_free(gather);
}

static void a_gpu_that_is_lost_in_between(void **state)
{
    (void)state;
    static struct fixture f;
    const struct row rows[3] = {{100, 90, 70, 0, NULL, NULL}};
    size_t count;
    struct gp_why_gather *gather = gp_why_gather_new(NULL, false, all);
    add(gather, 0, 70, rows);
    make(&f, 1, 70, rows);
    fixture_set_all(&f, 0, GP_STATUS_STALE);
    *fixture_value(&f, 0, GP_UUID) = fixture_text("GPU-11111111-2222-3333-4444-555555555555");
    fixture_set_status(&f, 0, GP_STATUS_TIMEOUT, "no answer");
    assert_int_equal(gp_why_gather_add(gather, &f.snapshot), 0);
    add(gather, 2, 70, rows);
    const struct gp_why_case *c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->samples, 2);
    assert_int_equal(c->starts, 0);
    assert_int_equal(c->values[GP_WHY_UTILIZATION].count, 2);
    gp_why_gather_free(gather);
}

static void jobs_and_those_asked_for(void **state)
{
    (void)state;
    const struct row rows[3] = {{100, 30, 9, 7, "python a.py", "slurm:1.0"},
                                {101, 30, 8, 7, "python a.py", "slurm:1.0"},
                                {102, 30, 7, 7, "python b.py", "slurm:2.0"}};
    size_t count;
    struct gp_why_gather *gather = gp_why_gather_new(NULL, false, all);
    add(gather, 0, 70, rows);
    add(gather, 1, 70, rows);
    const struct gp_why_case *c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->pid, 100);
    assert_int_equal(c->others, 1); /* the tasks of a step are one job */
    assert_int_equal(c->other_pid, 102);
    gp_why_gather_free(gather);

    gather = gp_why_gather_new(NULL, false, (struct gp_why_asked){.pid = 102});
    add(gather, 0, 70, rows);
    c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->pid, 102);
    assert_int_equal(c->others, 2);
    gp_why_gather_free(gather);

    gather = gp_why_gather_new(NULL, false, (struct gp_why_asked){.filter = "job:1,3"});
    add(gather, 0, 70, rows);
    c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->pid, 100);
    gp_why_gather_free(gather);

    gather = gp_why_gather_new(NULL, false, (struct gp_why_asked){.filter = "job:3"});
    add(gather, 0, 70, rows);
    assert_non_null(gp_why_gather_cases(gather, &count));
    assert_int_equal(count, 0);
    gp_why_gather_free(gather);

    gather = gp_why_gather_new(NULL, false, (struct gp_why_asked){.pid = 999});
    add(gather, 0, 70, rows);
    assert_non_null(gp_why_gather_cases(gather, &count));
    assert_int_equal(count, 0);
    gp_why_gather_free(gather);
    gp_why_gather_free(NULL);
}

/* Each rank of some programs has a context on the first GPU, and computes on its own. */
static void a_bare_context_is_no_slow_gpu(void **state)
{
    (void)state;
    static struct fixture f;
    static const int64_t busy[3] = {1, 95, 96}, clocks[3] = {210, 1900, 1890};
    struct gp_why_gather *gather = gp_why_gather_new(NULL, false, all);
    size_t count;
    fixture_init(&f);
    f.snapshot.device_count = 3;
    for (int i = 0; i < 3; i++) {
        fixture_fill_device(&f, i, (unsigned)i, "NVIDIA H100");
        *fixture_value(&f, i, GP_UTILIZATION_GPU) = fixture_int(busy[i]);
        *fixture_value(&f, i, GP_CLOCK_SM) = fixture_int(clocks[i]);
        fixture_fill_process(&f, i, i, 100); /* the same process */
    }
    f.snapshot.process_count = 3;
    f.snapshot.mono_ns = GP_NS_PER_S;
    assert_int_equal(gp_why_gather_add(gather, &f.snapshot), 0);
    const struct gp_why_case *c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 3);
    assert_int_equal(c[1].job_gpus, 3);
    assert_int_equal(c[1].job_gpus_busy, 2);
    assert_string_equal(c[1].slow_gpu, "");
    gp_why_gather_free(gather);
}

/* One that was suspended is not on the GPU. */
static void a_suspended_job_is_no_other_one(void **state)
{
    (void)state;
    static struct fixture f;
    const struct row rows[3] = {{100, 90, 40, 7, "python a.py", NULL},
                                {200, 0, 30, 8, "python b.py", NULL}};
    struct gp_why_gather *gather = gp_why_gather_new(NULL, false, all);
    size_t count;
    make(&f, 0, 20, rows);
    *fixture_process(&f, 1, GP_PROCESS_TYPE) = fixture_text("S");
    *fixture_process(&f, 1, GP_PROCESS_SM) = fixture_absent(GP_STATUS_UNSUPPORTED);
    assert_int_equal(gp_why_gather_add(gather, &f.snapshot), 0);
    const struct gp_why_case *c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->others, 0);
    assert_true(c->others_sm >= 0);
    gp_why_gather_free(gather);
}

static void the_server_of_mps_is_no_job(void **state)
{
    (void)state;
    static struct fixture f;
    size_t count;
    struct gp_why_gather *gather = gp_why_gather_new(NULL, false, all);
    make(&f, 0, 70,
         (const struct row[3]){{100, 30, 9, 7, "python a.py", NULL},
                               {101, 60, 60, 1, "nvidia-cuda-mps-server", NULL}});
    *fixture_process(&f, 1, GP_PROCESS_NAME) = fixture_text("nvidia-cuda-mps");
    assert_int_equal(gp_why_gather_add(gather, &f.snapshot), 0);
    const struct gp_why_case *c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->pid, 100);
    assert_int_equal(c->others, 0);
    gp_why_gather_free(gather);
}

/* In the words of the doctor; a GPU that has failed is a case without a process, too. */
static void what_is_broken(void **state)
{
    (void)state;
    static struct fixture f;
    const struct row rows[3] = {{100, 30, 9, 7, "python a.py", NULL}};
    struct gp_why_gather *gather = gp_why_gather_new(NULL, false, all);
    size_t count;
    make(&f, 0, 70, rows);
    *fixture_value(&f, 0, GP_REMAPPED_PENDING) = fixture_text("Yes");
    assert_int_equal(gp_why_gather_add(gather, &f.snapshot), 0);
    const struct gp_why_case *c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_false(c->is_failed);
    assert_non_null(strstr(c->fault, "a faulty memory row is waiting to be remapped ("));
    *fixture_value(&f, 0, GP_ECC_UNCORRECTED_VOLATILE) = fixture_int(3);
    assert_int_equal(gp_why_gather_add(gather, &f.snapshot), 0);
    c = gp_why_gather_cases(gather, &count);
    assert_true(c->is_failed);
    assert_non_null(strstr(c->fault, "the memory had an uncorrectable error ("));
    assert_non_null(strstr(c->cure, "sudo nvidia-smi --gpu-reset -i 0 (once"));
    gp_why_gather_free(gather);

    gather = gp_why_gather_new(NULL, false, all);
    f.snapshot.process_count = f.devices[0].process_count = 0;
    f.devices[0].status = GP_STATUS_LOST;
    assert_int_equal(gp_why_gather_add(gather, &f.snapshot), 0);
    c = gp_why_gather_cases(gather, &count);
    assert_int_equal(count, 1);
    assert_int_equal(c->pid, 0);
    assert_string_equal(c->fault, "lost: the driver cannot reach it");
    assert_string_equal(c->cure, "sudo reboot");
    gp_why_gather_free(gather);
}

static void without_memory(void **state)
{
    (void)state;
    static struct fixture f;
    int refused = 0;
    make(&f, 0, 70, (const struct row[3]){{100, 30, 9, 7, "python a.py", NULL}});
    for (long n = 0; n < 6; n++) {
        alloc_fail_at(n);
        struct gp_why_gather *gather = gp_why_gather_new(NULL, true, all);
        int r = gather ? gp_why_gather_add(gather, &f.snapshot) : GP_ENOMEM;
        alloc_fail_from(-1);
        assert_true(r == 0 || r == GP_ENOMEM);
        refused += r == GP_ENOMEM;
        gp_why_gather_free(gather);
    }
    assert_true(refused >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_ended_counts_for_its_time),
        cmocka_unit_test(memory_that_is_taken_again),
        cmocka_unit_test(a_gpu_that_is_lost_in_between),
        cmocka_unit_test(jobs_and_those_asked_for),
        cmocka_unit_test(a_bare_context_is_no_slow_gpu),
        cmocka_unit_test(a_suspended_job_is_no_other_one),
        cmocka_unit_test(the_server_of_mps_is_no_job),
        cmocka_unit_test(what_is_broken),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
