/* Each rule of gpulse why: a case of its own, in which no other rule holds. */
#include "unit.h"

#include "base/strbuf.h"
#include "why/report.h"
#include "why/rules.h"
#include "why_fixture.h"

static void grow(struct gp_why_case *c, enum gp_why_series series, double by)
{
    c->values[series].last += by;
    c->values[series].most += by;
}

static void rest(struct gp_why_case *c)
{
    static const enum gp_why_series series[] = {
        GP_WHY_UTILIZATION, GP_WHY_CONTROLLER, GP_WHY_SM,      GP_WHY_OCCUPANCY, GP_WHY_TENSOR,
        GP_WHY_DRAM,        GP_WHY_FP32,       GP_WHY_PCIE_TX, GP_WHY_PCIE_RX};
    for (size_t i = 0; i < GP_ARRAY_LEN(series); i++)
        why_set(c, series[i], 0);
    c->host.cpus = c->host.main = c->host.others = c->host.workers_cpus = 0;
}

static void limit(struct gp_why_case *c, enum gp_why_limit what, unsigned samples, double clock)
{
    c->limited[what] = samples;
    why_set(c, GP_WHY_CLOCK, clock);
}

/* The case of a rule, from a healthy one: those about jobs that do not run, and GPUs that wait, …
 */
static void make_waiting(struct gp_why_case *c, enum gp_why_rule rule)
{
    switch (rule) {
    case GP_WHY_RULE_SUSPENDED:
        rest(c);
        c->host.stopped = 1;
        break;
    case GP_WHY_RULE_SWAPPED:
        why_starve(c);
        c->host.swapped_bytes = UINT64_C(3) << 30;
        c->host.majors_per_s = 200;
        c->host.disk = 0.8;
        break;
    case GP_WHY_RULE_UNUSED:
        rest(c);
        c->job_gpus = 4;
        c->job_gpus_busy = 3;
        break;
    case GP_WHY_RULE_IDLE:
        rest(c);
        c->job_gpus_busy = 0;
        break;
    case GP_WHY_RULE_STORAGE:
        why_starve(c);
        c->host.disk = 0.7;
        break;
    case GP_WHY_RULE_CORES:
        why_starve(c);
        c->host.allowed = 4;
        c->host.cpus = 3.95;
        c->host.workers = c->host.workers_busy = 8;
        c->host.workers_cpus = 3.5;
        break;
    case GP_WHY_RULE_LOADER:
        why_starve(c);
        c->host.workers_busy = 4;
        c->host.workers_cpus = 3.9;
        c->host.cpus = 4.2;
        c->host.main = 0.2;
        break;
    case GP_WHY_RULE_THREADS:
        why_starve(c);
        c->host.workers = c->host.workers_active = 0;
        c->host.workers_cpus = 0;
        c->host.main = 0.1;
        c->host.others = 3.5;
        c->host.cpus = 3.6;
        break;
    case GP_WHY_RULE_MAIN_THREAD:
        why_starve(c);
        c->host.workers = 0;
        c->host.workers_cpus = 0;
        c->host.main = 0.99;
        c->host.cpus = 1.05;
        break;
    case GP_WHY_RULE_WAITING:
        why_starve(c);
        c->host.main = c->host.cpus = 0.05;
        c->host.workers_cpus = 0;
        break;
    case GP_WHY_RULE_LOW_USE:
        why_starve(c);
        break;
    default:
        break;
    }
}

/* … about other jobs, clocks, … */
static void make_limited(struct gp_why_case *c, enum gp_why_rule rule)
{
    switch (rule) {
    case GP_WHY_RULE_WRONG_GPU:
        c->reserved_by = 99;
        break;
    case GP_WHY_RULE_SHARED:
        c->others = 1;
        c->others_sm = 45;
        c->other_pid = 815;
        break;
    case GP_WHY_RULE_THERMAL:
        limit(c, GP_WHY_LIMIT_THERMAL, 30, 1200);
        why_set(c, GP_WHY_TEMPERATURE, 90);
        break;
    case GP_WHY_RULE_BRAKE:
        limit(c, GP_WHY_LIMIT_BRAKE, 41, 990);
        break;
    case GP_WHY_RULE_POWER:
        limit(c, GP_WHY_LIMIT_POWER_CAP, 41, 1300);
        why_set(c, GP_WHY_POWER_LIMIT, 350);
        why_set(c, GP_WHY_POWER, 349);
        break;
    case GP_WHY_RULE_CLOCKS:
        limit(c, GP_WHY_LIMIT_CLOCK_SETTING, 41, 1200);
        break;
    default:
        break;
    }
}

/* … transfers and kernels, … */
static void make_kernels(struct gp_why_case *c, enum gp_why_rule rule)
{
    switch (rule) {
    case GP_WHY_RULE_TRANSFERS:
        why_set(c, GP_WHY_PCIE_GEN, 1);
        why_set(c, GP_WHY_PCIE_RX, 2.4e9);
        break;
    case GP_WHY_RULE_STRAGGLER:
        make_kernels(c, GP_WHY_RULE_COLLECTIVE);
        (void)snprintf(c->slow_gpu, sizeof(c->slow_gpu), "0");
        c->slow_clock = 0.63;
        break;
    case GP_WHY_RULE_COLLECTIVE:
        why_set(c, GP_WHY_NVLINK_TX, 9e9);
        c->job_gpus = c->job_gpus_busy = 8;
        why_set(c, GP_WHY_SM, 15);
        why_set(c, GP_WHY_TENSOR, 3);
        why_set(c, GP_WHY_DRAM, 5);
        why_set(c, GP_WHY_POWER, 240);
        break;
    case GP_WHY_RULE_TINY_KERNELS:
        why_set(c, GP_WHY_SM, 20);
        why_set(c, GP_WHY_TENSOR, 4);
        why_set(c, GP_WHY_DRAM, 8);
        why_set(c, GP_WHY_POWER, 210);
        break;
    case GP_WHY_RULE_BANDWIDTH:
        why_set(c, GP_WHY_DRAM, 84);
        why_set(c, GP_WHY_TENSOR, 6);
        break;
    case GP_WHY_RULE_TENSOR:
        why_set(c, GP_WHY_TENSOR, 1);
        why_set(c, GP_WHY_FP32, 70);
        why_set(c, GP_WHY_DRAM, 25);
        break;
    default:
        break;
    }
}

/* … memory, and the machine. */
static void make_memory(struct gp_why_case *c, enum gp_why_rule rule)
{
    switch (rule) {
    case GP_WHY_RULE_FAULT:
        (void)snprintf(c->fault, sizeof(c->fault), "a faulty memory row is waiting");
        (void)snprintf(c->cure, sizeof(c->cure), "sudo nvidia-smi --gpu-reset -i 0");
        break;
    case GP_WHY_RULE_MEMORY_FULL:
        why_set(c, GP_WHY_MEMORY, 79.5e9);
        c->memory_drops = 6;
        break;
    case GP_WHY_RULE_SLICE:
        c->is_mig = true;
        why_set(c, GP_WHY_SM, 96);
        break;
    case GP_WHY_RULE_NUMA:
        c->host.remote = 0.97;
        why_set(c, GP_WHY_PCIE_RX, 12e9);
        break;
    case GP_WHY_RULE_PERSISTENCE:
        c->persistence_off = true;
        c->starts = 5;
        c->empty = 9;
        break;
    case GP_WHY_RULE_ECC:
        grow(c, GP_WHY_CORRECTED, 12);
        break;
    case GP_WHY_RULE_REPLAYS:
        grow(c, GP_WHY_REPLAYS, 400);
        break;
    default:
        break;
    }
}

static void make(struct gp_why_case *c, enum gp_why_rule rule)
{
    *c = why_healthy();
    make_waiting(c, rule);
    make_limited(c, rule);
    make_kernels(c, rule);
    make_memory(c, rule);
    c->job = c->host; /* on one GPU */
}

static void nothing_about_a_busy_gpu(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    char text[GP_WHY_TEXT_SIZE];
    struct gp_why_case c = why_healthy();
    assert_int_equal(gp_why_judge(&c, verdicts), 0);
    gp_why_nothing(&c, text);
    assert_string_equal(text,
                        "GPU busy 97 % of the time, SMs 90 %, tensor cores 55 %, memory bandwidth "
                        "58 %, power 650 of 700 W, SM clock 1900 of 1980 MHz");
}

/* The table: in the case of each rule, it holds and none of the others. */
static void each_rule_in_its_case_only(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    for (int rule = 0; rule < GP_WHY_RULE__COUNT; rule++) {
        struct gp_why_case c;
        make(&c, (enum gp_why_rule)rule);
        size_t count = gp_why_judge(&c, verdicts);
        for (size_t i = 0; i < count; i++)
            if ((int)verdicts[i].rule != rule)
                fail_msg("%s holds in the case of %s: %s", gp_why_word(verdicts[i].rule),
                         gp_why_word((enum gp_why_rule)rule), verdicts[i].seen);
        if (count == 0)
            fail_msg("nothing holds in the case of %s", gp_why_word((enum gp_why_rule)rule));
        assert_true(strlen(verdicts[0].seen) > 10 &&
                    strlen(verdicts[0].seen) < GP_WHY_TEXT_SIZE - 1);
        assert_true(strlen(verdicts[0].advice) > 10);
        assert_null(strstr(verdicts[0].seen, "nan"));
        assert_null(strstr(verdicts[0].advice, "nan"));
        assert_true(verdicts[0].gain >= 0 && verdicts[0].gain < 100);
    }
}

/* What a rule needs is unknown: no rule holds. The cases that need nothing of the kind are left
 * out. */
static void unknown_values_are_no_reason(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_why_case c = why_healthy();
    for (size_t i = 0; i < GP_WHY_SERIES__COUNT; i++)
        c.values[i].count = 0;
    c.limit_samples = 0;
    c.host = (struct gp_tasks_use){.queue = -1, .remote = -1, .read_bytes_per_s = -1};
    assert_int_equal(gp_why_judge(&c, verdicts), 0);
    char text[GP_WHY_TEXT_SIZE];
    gp_why_nothing(&c, text);
    assert_string_equal(text, "its utilization is unknown");
    for (int rule = GP_WHY_RULE_STORAGE; rule <= GP_WHY_RULE_WAITING; rule++) {
        make(&c, (enum gp_why_rule)rule);
        c.host.is_known = false; /* in a container, or on another machine */
        assert_int_equal(gp_why_judge(&c, verdicts), 1);
        assert_int_equal(verdicts[0].rule, GP_WHY_RULE_LOW_USE);
    }
}

/* Before Hopper, the power and the memory controller are all that there is. */
static void without_gpm_less_is_sure(void **state)
{
    (void)state;
    static const enum gp_why_rule rules[] = {GP_WHY_RULE_COLLECTIVE, GP_WHY_RULE_TINY_KERNELS};
    static const enum gp_why_series gpm[] = {GP_WHY_SM, GP_WHY_OCCUPANCY, GP_WHY_TENSOR,
                                             GP_WHY_DRAM, GP_WHY_FP32};
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    for (size_t i = 0; i < GP_ARRAY_LEN(rules); i++) {
        struct gp_why_case c;
        make(&c, rules[i]);
        for (size_t g = 0; g < GP_ARRAY_LEN(gpm); g++)
            c.values[gpm[g]].count = 0;
        assert_int_equal(gp_why_judge(&c, verdicts), 1);
        assert_int_equal(verdicts[0].rule, rules[i]);
        assert_int_equal(verdicts[0].sure, GP_WHY_POSSIBLE);
    }
    struct gp_why_case c = why_healthy();
    for (size_t g = 0; g < GP_ARRAY_LEN(gpm); g++)
        c.values[gpm[g]].count = 0;
    assert_int_equal(gp_why_judge(&c, verdicts), 0);
    why_set(&c, GP_WHY_CONTROLLER, 92);
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].rule, GP_WHY_RULE_BANDWIDTH);
    assert_int_equal(verdicts[0].sure, GP_WHY_POSSIBLE);
}

static void a_short_look_is_less_sure(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_why_case c;
    make(&c, GP_WHY_RULE_LOADER);
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].sure, GP_WHY_LIKELY);
    assert_true(verdicts[0].gain > 2.6 && verdicts[0].gain < 2.7);
    c.age_s = 20; /* it may still be loading */
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].sure, GP_WHY_POSSIBLE);
    make(&c, GP_WHY_RULE_THERMAL);
    c.seconds = 2;
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].sure, GP_WHY_LIKELY);
}

/* Each rank keeps its part of the job's CPUs busy: none of them could have more. */
static void cores_of_several_ranks(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_why_case c;
    make(&c, GP_WHY_RULE_LOADER);
    c.host.allowed = c.job.allowed = 32;
    c.job_gpus = c.job_gpus_busy = c.job.processes = 8;
    c.job.cpus = 31.5;
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].rule, GP_WHY_RULE_CORES);
    c.job.cpus = 20;
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].rule, GP_WHY_RULE_LOADER);
    assert_non_null(strstr(verdicts[0].advice, "up to 12 CPUs are free"));
    why_set(&c, GP_WHY_HOST_CPU, 99); /* others use them */
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_null(strstr(verdicts[0].advice, "free"));
}

/* What is normal: the power cap of a busy GPU at its default limit, a link that is slow while it
 * is idle, page faults and old swap of a job whose GPU is busy. */
static void what_is_normal_is_no_reason(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_why_case c = why_healthy();
    c.job = c.host;
    limit(&c, GP_WHY_LIMIT_POWER_CAP, 41, 1500);
    c.host.swapped_bytes = UINT64_C(80) << 20;
    c.host.majors_per_s = 30;
    c.values[GP_WHY_PCIE_GEN].sum = 40 * 2.5; /* generation 5 at most */
    assert_int_equal(gp_why_judge(&c, verdicts), 0);
    why_starve(&c); /* no CPU, no disk, no waiting: the program is simply slow */
    c.host.swapped_bytes = 0;
    c.host.majors_per_s = 0;
    why_set(&c, GP_WHY_UTILIZATION, 0);
    c.job_gpus_busy = 0;
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].rule, GP_WHY_RULE_LOW_USE);
}

/* A fault comes first; advice about speed would mislead on a GPU that has failed. */
static void a_fault_comes_first(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_why_case c;
    make(&c, GP_WHY_RULE_TINY_KERNELS);
    (void)snprintf(c.fault, sizeof(c.fault), "the memory had an uncorrectable error");
    assert_int_equal(gp_why_judge(&c, verdicts), 2);
    assert_int_equal(verdicts[0].rule, GP_WHY_RULE_FAULT);
    assert_int_equal(verdicts[0].sure, GP_WHY_CERTAIN);
    assert_int_equal(verdicts[1].rule, GP_WHY_RULE_TINY_KERNELS);
    c.is_failed = true;
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].rule, GP_WHY_RULE_FAULT);
}

/* A gain that would be shown as 1.0 is no reason to change anything. */
static void no_advice_without_a_gain(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_why_case c;
    make(&c, GP_WHY_RULE_THERMAL);
    why_set(&c, GP_WHY_CLOCK, 1930);
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].rule, GP_WHY_RULE_THERMAL);
    assert_string_equal(verdicts[0].advice, "");
    assert_non_null(strstr(verdicts[0].seen, "; without it, at most 3 % faster"));
    why_set(&c, GP_WHY_CLOCK, 1980);
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_string_equal(verdicts[0].advice, "");
    assert_non_null(strstr(verdicts[0].seen, "; it costs no speed"));
}

/* What explains different things is told together, in the order of the rules. */
static void several_reasons(void **state)
{
    (void)state;
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_why_case c;
    make(&c, GP_WHY_RULE_LOADER);
    c.host.remote = 0.97;
    why_set(&c, GP_WHY_PCIE_RX, 12e9);
    limit(&c, GP_WHY_LIMIT_THERMAL, 41, 1200);
    limit(&c, GP_WHY_LIMIT_POWER_CAP, 41, 1200); /* of the same group as the heat */
    c.host.disk = 0.1;
    assert_int_equal(gp_why_judge(&c, verdicts), 3);
    assert_int_equal(verdicts[0].rule, GP_WHY_RULE_LOADER);
    assert_int_equal(verdicts[1].rule, GP_WHY_RULE_THERMAL);
    assert_int_equal(verdicts[2].rule, GP_WHY_RULE_NUMA);
}

static void as_text(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_why_case cases[2];
    make(&cases[0], GP_WHY_RULE_LOADER);
    cases[1] = why_healthy();
    gp_why_report_add(&sb, cases, 2, 80);
    assert_string_equal(
        sb.buf,
        "GPU 0  NVIDIA H100 80GB HBM3 · python train.py (pid 4711, mia) · 20 s, 41 samples\n"
        "  The GPU waits for the data loader. (likely)\n"
        "    seen  GPU busy 38 % of the time; main thread busy 20 %, 4 workers with 3.9\n"
        "          CPUs\n"
        "    try   more workers (num_workers), up to 60 CPUs are free;\n"
        "          persistent_workers=True, cheaper transforms, or transforms on the GPU\n"
        "    gain  at most 2.6 times as fast\n"
        "\n"
        "GPU 0  NVIDIA H100 80GB HBM3 · python train.py (pid 4711, mia) · 20 s, 41 samples\n"
        "  Nothing stands out.\n"
        "    seen  GPU busy 97 % of the time, SMs 90 %, tensor cores 55 %, memory\n"
        "          bandwidth 58 %, power 650 of 700 W, SM clock 1900 of 1980 MHz\n");
    gp_strbuf_fini(&sb);
}

/* One verdict, of this rule, whose evidence or advice contains these words. */
static void expect_one(const struct gp_why_case *c, enum gp_why_rule rule, const char *words)
{
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    assert_int_equal(gp_why_judge(c, verdicts), 1);
    assert_string_equal(gp_why_word(verdicts[0].rule), gp_why_word(rule));
    if (!strstr(verdicts[0].seen, words) && !strstr(verdicts[0].advice, words))
        fail_msg("no '%s' in: %s; %s", words, verdicts[0].seen, verdicts[0].advice);
}

static const char *verdict_text(const struct gp_why_case *c)
{
    static struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    return gp_why_judge(c, verdicts) > 0 ? verdicts[0].seen : "";
}

static void threads_that_take_turns(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    why_starve(&c);
    c.host.workers = c.host.workers_active = 0;
    c.host.workers_cpus = 0;
    c.host.main = 0.55;
    c.host.others = 0.42; /* the backward pass of PyTorch */
    c.host.cpus = 0.97;
    expect_one(&c, GP_WHY_RULE_MAIN_THREAD, "its other threads 42 %, in turn with it");
    c.host.others = 0.15;
    expect_one(&c, GP_WHY_RULE_LOW_USE, "main thread busy 55 %");
    c.host.main = 0.8;
    c.host.others = 0.8; /* at the same time */
    expect_one(&c, GP_WHY_RULE_LOW_USE, "main thread busy 80 %");
}

static void others_on_the_gpu(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    c.others = 2;
    c.other_pid = 815;
    c.others_sm = 40;
    expect_one(&c, GP_WHY_RULE_SHARED,
               "2 other processes used the GPU 40 % of the time, most of it process 815");
    c.others_sm = -1;
    expect_one(&c, GP_WHY_RULE_SHARED, "2 other processes"); /* which of them is not known */
    assert_null(strstr(verdict_text(&c), "815"));
    c.others = 1;
    expect_one(&c, GP_WHY_RULE_SHARED, "1 other process: process 815");
}

/* Whose memory it was that came and went is not known then. */
static void full_memory_beside_others(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    c.values[GP_WHY_MEMORY].most = 79e9;
    c.memory_drops = 3;
    expect_one(&c, GP_WHY_RULE_MEMORY_FULL, "freed and allocated again 3 times");
    c.others = 1;
    assert_int_equal(gp_why_judge(&c, verdicts), 0);
    c.others = 0;
    c.starts = 3;
    assert_int_equal(gp_why_judge(&c, verdicts), 0);
}

static void a_container_on_a_reserved_gpu(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    c.reserved_by = 815;
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].sure, GP_WHY_LIKELY);
    c.is_contained = true; /* gpulse run -- docker run: a child of the daemon */
    assert_int_equal(gp_why_judge(&c, verdicts), 1);
    assert_int_equal(verdicts[0].sure, GP_WHY_POSSIBLE);
}

static void a_quota_of_cpus(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    why_starve(&c);
    c.host.quota = 2.5;
    c.host.cpus = 2.4;
    c.host.main = 0.6;
    c.host.workers_cpus = 1.7;
    expect_one(&c, GP_WHY_RULE_CORES, "kept 2.4 of its 2.5 CPUs busy");
    expect_one(&c, GP_WHY_RULE_CORES, "a quota of 2.5 CPUs: docker run --cpus");
    c.host.quota = 100; /* more than it may run on */
    expect_one(&c, GP_WHY_RULE_LOW_USE, "GPU busy");
}

static void gpus_that_exchange_nothing(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    make_kernels(&c, GP_WHY_RULE_COLLECTIVE);
    expect_one(&c, GP_WHY_RULE_COLLECTIVE, "NVLink 9.0 GB/s; the job uses 8 GPUs");
    why_set(&c, GP_WHY_NVLINK_TX, 0);
    expect_one(&c, GP_WHY_RULE_COLLECTIVE, "the job uses 8 GPUs"); /* over PCIe */
    why_set(&c, GP_WHY_PCIE_TX, 1e6);
    why_set(&c, GP_WHY_PCIE_RX, 2e6);
    expect_one(&c, GP_WHY_RULE_TINY_KERNELS, "but SMs 15 %");
    c.values[GP_WHY_NVLINK_TX].count = 0; /* unknown */
    expect_one(&c, GP_WHY_RULE_COLLECTIVE, "the job uses 8 GPUs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_take_turns),
        cmocka_unit_test(others_on_the_gpu),
        cmocka_unit_test(full_memory_beside_others),
        cmocka_unit_test(a_container_on_a_reserved_gpu),
        cmocka_unit_test(a_quota_of_cpus),
        cmocka_unit_test(gpus_that_exchange_nothing),
        cmocka_unit_test(nothing_about_a_busy_gpu),
        cmocka_unit_test(each_rule_in_its_case_only),
        cmocka_unit_test(unknown_values_are_no_reason),
        cmocka_unit_test(without_gpm_less_is_sure),
        cmocka_unit_test(a_short_look_is_less_sure),
        cmocka_unit_test(cores_of_several_ranks),
        cmocka_unit_test(what_is_normal_is_no_reason),
        cmocka_unit_test(a_fault_comes_first),
        cmocka_unit_test(no_advice_without_a_gain),
        cmocka_unit_test(several_reasons),
        cmocka_unit_test(as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
