/* Each advice of gpulse advise: a job for which it is the only one, and its nearest neighbors. */
#include "unit.h"

#include "base/strbuf.h"
#include "why/advice_report.h"
#include "why_fixture.h"

static struct gp_advice found[GP_ADVICE__COUNT];

/* What is advised with this environment; NULL: it is unknown. */
static size_t advise(const struct gp_why_case *c, const char *const *environment)
{
    static struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_advice_case a = {.c = c, .verdicts = verdicts, .knows_environment = environment};
    a.verdict_count = gp_why_judge(c, verdicts);
    a.environment = environment;
    while (environment && environment[a.environment_count])
        a.environment_count++;
    return gp_advice_find(&a, found);
}

static const char *const plain[] = {"HOME=/home/mia", "OMP_NUM_THREADS=4", NULL};

static void expect(const struct gp_why_case *c, const char *const *environment,
                   enum gp_advice_id id, const char *seen, const char *change)
{
    assert_int_equal(advise(c, environment), 1);
    assert_string_equal(gp_advice_word(found[0].id), gp_advice_word(id));
    if (!strstr(found[0].seen, seen) || !strstr(found[0].change, change))
        fail_msg("%s: %s", found[0].seen, found[0].change);
}

static void a_healthy_job(void **state)
{
    (void)state;
    const struct gp_why_case c = why_healthy();
    assert_int_equal(advise(&c, plain), 0);
    assert_int_equal(advise(&c, NULL), 0);
}

static void its_environment(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    const char *const slow[] = {"A=1", "CUDA_LAUNCH_BLOCKING=1", "NCCL_P2P_DISABLE=1",
                                "NVIDIA_TF32_OVERRIDE=0", NULL};
    expect(&c, slow, GP_ADVICE_ENVIRONMENT,
           "CUDA_LAUNCH_BLOCKING=1: the program waits for each kernel that it starts; "
           "NVIDIA_TF32_OVERRIDE=0",
           "unset CUDA_LAUNCH_BLOCKING NVIDIA_TF32_OVERRIDE");
    assert_null(strstr(found[0].seen, "NCCL")); /* it has one GPU */
    assert_int_equal(found[0].sure, GP_WHY_CERTAIN);
    c.job_gpus = c.job_gpus_busy = 2;
    assert_int_equal(advise(&c, slow), 1);
    assert_non_null(
        strstr(found[0].change, "unset CUDA_LAUNCH_BLOCKING NVIDIA_TF32_OVERRIDE NCCL"));
    const char *const off[] = {"CUDA_LAUNCH_BLOCKING=0", "XCUDA_LAUNCH_BLOCKING=1", NULL};
    assert_int_equal(advise(&c, off), 0);
}

static void more_workers(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    why_starve(&c);
    c.job = c.host;
    c.host.workers_busy = 4;
    c.host.workers_cpus = 3.9;
    c.host.main = 0.2;
    expect(&c, plain, GP_ADVICE_WORKERS, "4 workers with 3.9 CPUs; 60 CPUs are free for it",
           "num_workers=11, persistent_workers=True"); /* 4 for 38 % */
    assert_int_equal(found[0].sure, GP_WHY_LIKELY);
    assert_true(found[0].gain > 2.6 && found[0].gain < 2.7);
    c.host.workers = 36; /* with those of torch.compile, which are idle */
    expect(&c, plain, GP_ADVICE_WORKERS, "60 CPUs are free for it", "num_workers=11,");
    c.host.workers = 4;
    why_set(&c, GP_WHY_HOST_CPU, 97); /* two are free */
    expect(&c, plain, GP_ADVICE_WORKERS, "1 CPUs are free", "num_workers=5,");
    why_set(&c, GP_WHY_HOST_CPU, 100);
    assert_int_equal(advise(&c, plain), 0);
    why_set(&c, GP_WHY_HOST_CPU, 5);
    (void)snprintf(c.command, sizeof(c.command), "./train");
    assert_int_equal(advise(&c, plain), 0); /* the line of code is Python */
}

static void a_main_thread_that_loads(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    why_starve(&c);
    c.host.workers = c.host.workers_active = 0;
    c.host.workers_cpus = 0;
    c.host.main = 0.99;
    c.host.cpus = 1.05;
    c.job = c.host;
    expect(&c, plain, GP_ADVICE_WORKERS, "main thread busy 99 %", "num_workers=8,");
    assert_int_equal(found[0].sure, GP_WHY_POSSIBLE);
    /* with workers it does something else: less of it per sample helps, if there is memory */
    c.host.workers = 4;
    why_set(&c, GP_WHY_MEMORY, 20e9);
    expect(&c, plain, GP_ADVICE_BATCH, "at most 19 of 75 GiB in use", "up to 3.6 times the batch");
    assert_true(found[0].gain > 2.6 &&
                found[0].gain < 2.7); /* that of the waiting, which is less */
    c.others = 1;
    c.others_sm = 1;
    assert_int_equal(advise(&c, plain), 0);
}

static void fewer_threads(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    why_starve(&c);
    c.host.allowed = 16;
    c.host.cpus = 15.9;
    c.host.workers = c.host.workers_active = c.host.workers_busy = 7;
    c.job = c.host;
    expect(&c, (const char *const[]){"A=1", NULL}, GP_ADVICE_CPU_THREADS,
           "8 processes, and OMP_NUM_THREADS is not set", "OMP_NUM_THREADS=2 in its environment");
    c.job.quota = 24.5; /* of more CPUs than it may run on */
    expect(&c, (const char *const[]){NULL}, GP_ADVICE_CPU_THREADS, "8 processes",
           "OMP_NUM_THREADS=2 ");
    c.job.quota = c.host.quota = 8.5;
    expect(&c, (const char *const[]){NULL}, GP_ADVICE_CPU_THREADS, "8 processes",
           "OMP_NUM_THREADS=1 ");
    c.job.quota = c.host.quota = 0;
    assert_int_equal(advise(&c, plain), 0); /* it is set */
    assert_int_equal(advise(&c, NULL), 0);
}

static void pinned_memory(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    why_starve(&c);
    why_set(&c, GP_WHY_PCIE_RX, 12e9);
    expect(&c, plain, GP_ADVICE_PINNED, "12.0 GB/s over PCIe", "pin_memory=True");
    assert_true(found[0].gain > 1.2 && found[0].gain < 1.4);
    why_set(&c, GP_WHY_UTILIZATION, 97);
    assert_int_equal(advise(&c, plain), 0); /* they are hidden */
}

static void kernels(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    why_set(&c, GP_WHY_SM, 93);
    why_set(&c, GP_WHY_TENSOR, 1);
    why_set(&c, GP_WHY_DRAM, 40);
    why_set(&c, GP_WHY_FP32, 70);
    expect(&c, plain, GP_ADVICE_PRECISION,
           "tensor cores 1 %, FP32 units 70 %, memory bandwidth 40 %",
           "torch.autocast(\"cuda\", dtype=torch.bfloat16)");
    assert_true(found[0].gain > 4.9 && found[0].gain < 5.1);

    c = why_healthy();
    why_set(&c, GP_WHY_SM, 20);
    why_set(&c, GP_WHY_TENSOR, 4);
    why_set(&c, GP_WHY_DRAM, 8);
    expect(&c, plain, GP_ADVICE_COMPILE, "but SMs 20 %", "torch.compile(model");
    why_set(&c, GP_WHY_MEMORY, 20e9); /* and there is room */
    assert_int_equal(advise(&c, plain), 2);
    assert_int_equal(found[1].id, GP_ADVICE_BATCH);
    assert_true(found[1].gain > 3.5 && found[1].gain < 3.7);
}

static void full_memory(void **state)
{
    (void)state;
    const char *const set[] = {"PYTORCH_CUDA_ALLOC_CONF=a:1,expandable_segments:True", NULL};
    const char *const also_set[] = {"PYTORCH_ALLOC_CONF=expandable_segments:True", NULL};
    struct gp_why_case c = why_healthy();
    why_set(&c, GP_WHY_MEMORY, 79e9);
    c.memory_drops = 5;
    assert_int_equal(advise(&c, plain), 2);
    assert_int_equal(found[0].id, GP_ADVICE_SEGMENTS);
    assert_int_equal(found[0].sure, GP_WHY_LIKELY);
    assert_non_null(strstr(found[0].seen, "its environment does not set expandable_segments"));
    assert_int_equal(found[1].id, GP_ADVICE_CHECKPOINTS);
    assert_int_equal(advise(&c, NULL), 2);
    assert_int_equal(found[0].sure, GP_WHY_POSSIBLE);
    expect(&c, set, GP_ADVICE_CHECKPOINTS, "freed and allocated again 5 times", "checkpoint(block");
    expect(&c, also_set, GP_ADVICE_CHECKPOINTS, "freed", "checkpoint(block");
}

static void as_text(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_why_case c = why_healthy();
    struct gp_advice_case a = {.c = &c};
    gp_advice_report_add(&sb, &a, 80);
    assert_non_null(strstr(sb.buf, "\n  Nothing to advise.\n    seen  GPU busy 97 % of the time"));
    gp_strbuf_reset(&sb);
    a.knows_environment = true;
    a.environment = (const char *const[]){"CUDA_LAUNCH_BLOCKING=1"};
    a.environment_count = 1;
    gp_advice_report_add(&sb, &a, 80);
    assert_string_equal(
        sb.buf, "GPU 0  NVIDIA H100 80GB HBM3 · python train.py (pid 4711, mia) · 20 s, 41 "
                "samples\n"
                "  Variables in the environment slow the program down. (certain)\n"
                "    seen  CUDA_LAUNCH_BLOCKING=1: the program waits for each kernel that it\n"
                "          starts\n"
                "    do    unset CUDA_LAUNCH_BLOCKING\n");
    json_t *object = gp_advice_report_object(&a);
    const json_t *first = json_array_get(json_object_get(object, "advice"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "advice")), "environment");
    assert_string_equal(json_string_value(json_object_get(first, "change")),
                        "unset CUDA_LAUNCH_BLOCKING");
    assert_true(json_is_true(json_object_get(object, "environment_known")));
    json_decref(object);
    gp_strbuf_fini(&sb);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_job), cmocka_unit_test(its_environment),
        cmocka_unit_test(more_workers),  cmocka_unit_test(a_main_thread_that_loads),
        cmocka_unit_test(fewer_threads), cmocka_unit_test(pinned_memory),
        cmocka_unit_test(kernels),       cmocka_unit_test(full_memory),
        cmocka_unit_test(as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
