/* The NVML source: processes and what they use, MIG instances, GPUs that sleep. */
#include "nvml_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* ---- process lists ---- */

static nvmlProcessInfo_v2_t entry(unsigned pid, unsigned long long memory)
{
    return (nvmlProcessInfo_v2_t){pid, memory, UINT32_MAX, UINT32_MAX};
}

static void add(struct fake_nvml_list *list, nvmlProcessInfo_v2_t info)
{
    list->entries[list->count++] = info;
}

static void start_with_processes(void)
{
    rig.want.processes = true;
    start();
}

static const struct gp_source_process *row(uint32_t pid)
{
    for (size_t i = 0; i < rig.reading->process_count; i++)
        if (rig.reading->processes[i].pid == pid)
            return &rig.reading->processes[i];
    fail_msg("no process %u among %zu", pid, rig.reading->process_count);
    return NULL;
}

static void check_memory(uint32_t pid, int64_t expected)
{
    assert_int_equal(row(pid)->memory.status, GP_STATUS_OK);
    assert_int_equal(row(pid)->memory.i, expected);
}

static void check_list(size_t count, enum gp_status status)
{
    read_ok();
    assert_int_equal(rig.reading->processes_status, status);
    assert_int_equal(rig.reading->process_count, count);
}

static void entries_are_as_wide_as_this_driver_writes_them(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool wide;
    } drivers[] = {
        {"580.95.05", false}, {"535.43.02", true},  {"535.54.03", true},
        {"535.86.10", true},  {"535.98", false},    {"535.104.05", false},
        {"535.42", false},    {"545.54.03", false}, {"nonsense", false},
    };
    rig.want.processes = true;
    for (unsigned i = 1; i <= 3; i++)
        add(&rig.fake->compute, entry(i, 1000 * i));
    rig.fake->compute.entries[2].gpuInstanceId = 7;
    rig.fake->compute.entries[2].computeInstanceId = 1;
    for (size_t i = 0; i < GP_ARRAY_LEN(drivers); i++) {
        rig.fake->driver_version = drivers[i].version;
        rig.fake->wide_entries = drivers[i].wide;
        start();
        check_list(3, GP_STATUS_OK);
        for (unsigned pid = 1; pid <= 3; pid++)
            check_memory(pid, 1000 * pid);
        assert_int_equal(row(2)->gpu_instance.status, GP_STATUS_UNSUPPORTED);
        assert_int_equal(row(3)->gpu_instance.i, 7);
        assert_int_equal(row(3)->compute_instance.i, 1);
        leave();
    }
}

static void older_forms_of_the_list(void **state)
{
    (void)state;
    add(&rig.fake->compute, entry(1, 1000));
    add(&rig.fake->compute, (nvmlProcessInfo_v2_t){2, 2000, 3, 0});
    start_with_processes();
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v3, NVML_ERROR_FUNCTION_NOT_FOUND);
    check_list(2, GP_STATUS_OK);
    check_memory(2, 2000);
    assert_int_equal(row(2)->gpu_instance.i, 3);
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v2, NVML_ERROR_FUNCTION_NOT_FOUND);
    check_list(2, GP_STATUS_OK);
    check_memory(1, 1000);
    check_memory(2, 2000);
    assert_int_equal(row(2)->gpu_instance.status, GP_STATUS_UNSUPPORTED);
    ANSWERS(nvmlDeviceGetComputeRunningProcesses, NVML_ERROR_FUNCTION_NOT_FOUND);
    check_list(0, GP_STATUS_UNSUPPORTED);
}

/* An older form may not have what the newer one refuses to tell. */
static void a_refusal_is_not_gone_round(void **state)
{
    (void)state;
    add(&rig.fake->compute, entry(1, 1000));
    start_with_processes();
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v3, NVML_ERROR_NO_PERMISSION);
    check_list(0, GP_STATUS_NO_PERMISSION);
    assert_int_equal(CALLS(nvmlDeviceGetComputeRunningProcesses_v2), 0);
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v3, NVML_ERROR_UNKNOWN);
    check_list(0, GP_STATUS_ERROR);
}

/* Most GPUs have neither graphics nor MPS, and the lists are among the slowest calls. */
static void lists_that_were_empty_are_read_again_after_a_while(void **state)
{
    (void)state;
    add(&rig.fake->compute, entry(1, 1000));
    start_with_processes();
    for (int i = 0; i < 3; i++)
        check_list(1, GP_STATUS_OK);
    assert_int_equal(CALLS(nvmlDeviceGetComputeRunningProcesses_v3), 3);
    assert_int_equal(CALLS(nvmlDeviceGetGraphicsRunningProcesses_v3), 1);
    assert_int_equal(CALLS(nvmlDeviceGetMPSComputeRunningProcesses_v3), 1);
    add(&rig.fake->graphics, entry(2, 2000));
    check_list(1, GP_STATUS_OK);
    after_ms(6000);
    for (int i = 0; i < 3; i++)
        check_list(2, GP_STATUS_OK);
    assert_int_equal(CALLS(nvmlDeviceGetGraphicsRunningProcesses_v3), 4);
    assert_int_equal(CALLS(nvmlDeviceGetMPSComputeRunningProcesses_v3), 2);
}

/* Only the compute list decides: a GPU without graphics refuses the others. */
static void a_list_is_known_if_no_part_of_it_failed(void **state)
{
    (void)state;
    add(&rig.fake->compute, entry(1, 1000));
    add(&rig.fake->graphics, entry(2, 2000));
    rig.want.fresh = true;
    start_with_processes();
    ANSWERS(nvmlDeviceGetMPSComputeRunningProcesses_v3, NVML_ERROR_NOT_SUPPORTED);
    check_list(2, GP_STATUS_OK);
    ANSWERS(nvmlDeviceGetGraphicsRunningProcesses_v3, NVML_ERROR_NOT_SUPPORTED);
    check_list(1, GP_STATUS_OK);
    ANSWERS(nvmlDeviceGetGraphicsRunningProcesses_v3, NVML_ERROR_TIMEOUT);
    check_list(1, GP_STATUS_ERROR);
    ANSWERS(nvmlDeviceGetGraphicsRunningProcesses_v3, NVML_ERROR_NO_PERMISSION);
    check_list(1, GP_STATUS_NO_PERMISSION);
    ANSWERS(nvmlDeviceGetGraphicsRunningProcesses_v3, NVML_SUCCESS);
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v3, NVML_ERROR_NO_PERMISSION);
    check_list(1, GP_STATUS_NO_PERMISSION); /* what is known is shown all the same */
    check_memory(2, 2000);
}

static void a_list_that_grows_while_it_is_fetched(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FAKE_NVML_PROCESSES; i++)
        rig.fake->compute.entries[i] = entry(i + 1, i);
    rig.fake->compute.count = 30;
    rig.fake->compute.grows = 20;
    start_with_processes();
    read_ok(); /* 50 do not fit into 32; then 70 */
    assert_int_equal(rig.reading->processes_status, GP_STATUS_OK);
    assert_int_equal(rig.reading->process_count, 70);
    assert_int_equal(CALLS(nvmlDeviceGetComputeRunningProcesses_v3), 2);
    rig.fake->compute.grows = 0;
    rig.fake->compute.count = FAKE_NVML_PROCESSES;
    check_list(FAKE_NVML_PROCESSES, GP_STATUS_OK);
    check_memory(FAKE_NVML_PROCESSES, FAKE_NVML_PROCESSES - 1);
    /* one that is never large enough comes to an end */
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v3, NVML_ERROR_INSUFFICIENT_SIZE);
    unsigned before = CALLS(nvmlDeviceGetComputeRunningProcesses_v3);
    check_list(0, GP_STATUS_ERROR);
    assert_true(CALLS(nvmlDeviceGetComputeRunningProcesses_v3) - before < 10);
}

static void a_process_in_several_lists_is_one(void **state)
{
    (void)state;
    add(&rig.fake->compute, entry(30, 3000));
    add(&rig.fake->compute, entry(10, UINT64_MAX));
    add(&rig.fake->graphics, entry(10, 1000));
    add(&rig.fake->graphics, entry(20, UINT64_MAX));
    add(&rig.fake->mps, entry(30, 3000));
    start_with_processes();
    check_list(3, GP_STATUS_OK);
    assert_int_equal(row(10)->types, GP_PROCESS_COMPUTE | GP_PROCESS_GRAPHICS);
    check_memory(10, 1000); /* of the list that knows it; not twice */
    assert_int_equal(row(20)->types, GP_PROCESS_GRAPHICS);
    assert_int_equal(row(20)->memory.status, GP_STATUS_UNSUPPORTED);
    assert_int_equal(row(30)->types, GP_PROCESS_COMPUTE | GP_PROCESS_MPS);
    check_memory(30, 3000);
    /* in two MIG instances it is two */
    rig.fake->compute.count = rig.fake->graphics.count = rig.fake->mps.count = 0;
    add(&rig.fake->compute, (nvmlProcessInfo_v2_t){10, 1000, 1, 0});
    add(&rig.fake->compute, (nvmlProcessInfo_v2_t){10, 2000, 2, 0});
    check_list(2, GP_STATUS_OK);
}

static void garbage_is_no_process(void **state)
{
    (void)state;
    static const unsigned garbage[] = {0, 4194305, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < GP_ARRAY_LEN(garbage); i++)
        add(&rig.fake->compute, entry(garbage[i], 1000));
    add(&rig.fake->compute, entry(4194304, UINT64_C(1) << 52));
    start_with_processes();
    check_list(1, GP_STATUS_OK);
    assert_int_equal(row(4194304)->memory.status, GP_STATUS_UNSUPPORTED);
}

static void a_count_of_processes_that_is_not_true(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 30; i++)
        add(&rig.fake->compute, entry(100 + i, 1));
    start_with_processes();
    check_list(30, GP_STATUS_OK);
    rig.fake->compute.count = 1;
    rig.fake->compute.claims = UINT32_MAX;
    check_list(1, GP_STATUS_OK);
    check_memory(100, 1);
}

static void names_of_processes_that_proc_does_not_show(void **state)
{
    (void)state;
    char path[128];
    add(&rig.fake->compute, entry(100, 1));
    add(&rig.fake->compute, entry(200, 1));
    start_with_processes();
    read_ok();
    assert_int_equal(CALLS(nvmlSystemGetProcessName), 0);
    assert_null(row(100)->driver_name);
    rig.want.process_names = true;
    (void)snprintf(path, sizeof(path), "%s/proc", rig.root);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/proc/100", rig.root);
    assert_int_equal(mkdir(path, 0700), 0);
    read_ok();
    assert_int_equal(CALLS(nvmlSystemGetProcessName), 1);
    assert_null(row(100)->driver_name);
    assert_string_equal(row(200)->driver_name, "/opt/job --fast");
    /* that one is gone shows within 16 looks */
    assert_int_equal(rmdir(path), 0);
    for (int i = 0; i < 16 && !row(100)->driver_name; i++)
        read_ok();
    assert_string_equal(row(100)->driver_name, "/opt/job --fast");
    assert_int_equal(mkdir(path, 0700), 0);
    read_ok();
    assert_null(row(100)->driver_name);
    gp_metric_set_add(&rig.want.metrics, GP_PROCESS_PATH);
    unsigned before = CALLS(nvmlSystemGetProcessName);
    read_ok();
    assert_int_equal(CALLS(nvmlSystemGetProcessName), before + 2);
    assert_string_equal(row(100)->driver_name, "/opt/job --fast");
    ANSWERS(nvmlSystemGetProcessName, NVML_ERROR_NO_PERMISSION);
    read_ok();
    assert_null(row(200)->driver_name);
}

/* ---- what processes use ---- */

static void sample(unsigned pid, unsigned long long stamp, unsigned sm)
{
    rig.fake->samples[rig.fake->sample_count++] = (nvmlProcessUtilizationSample_t){
        .pid = pid, .timeStamp = stamp, .smUtil = sm, .memUtil = 5, .encUtil = 0, .decUtil = 1};
}

static void start_with_utilization(void)
{
    gp_metric_set_add(&rig.want.metrics, GP_PROCESS_SM);
    add(&rig.fake->compute, entry(10, 1000));
    add(&rig.fake->compute, entry(20, 1000));
    start_with_processes();
}

static void check_sm(uint32_t pid, int64_t expected)
{
    assert_true(row(pid)->sm.known);
    assert_int_equal(row(pid)->sm.n, expected);
}

static void utilization_is_asked_only_where_it_is_wanted(void **state)
{
    (void)state;
    add(&rig.fake->compute, entry(10, 1000));
    start_with_processes();
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetProcessUtilization), 0);
    assert_false(row(10)->sm.known);
    gp_metric_set_add(&rig.want.metrics, GP_PROCESS_DEC);
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetProcessUtilization), 1);
    /* nobody there: nothing to ask */
    rig.fake->compute.count = 0;
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetProcessUtilization), 1);
}

static void the_newest_sample_counts(void **state)
{
    (void)state;
    sample(10, stamp_us(300), 30);
    sample(10, stamp_us(100), 10);
    sample(10, stamp_us(200), 20);
    sample(10, stamp_us(5000), 50); /* of the time before the first look */
    sample(20, stamp_us(5000), 50);
    start_with_utilization();
    read_ok();
    assert_true(rig.fake->asked_since_us == stamp_us(1000));
    check_sm(10, 10);
    assert_int_equal(row(10)->mem.n, 5);
    assert_int_equal(row(10)->enc.n, 0);
    assert_int_equal(row(10)->dec.n, 1);
    check_sm(20, 0);
    unsigned long long newest = stamp_us(100);
    after_ms(500);
    read_ok();
    assert_true(rig.fake->asked_since_us == newest);
    check_sm(10, 10); /* an old sample that is given again is not a new one */
}

static void a_sample_lasts_two_seconds(void **state)
{
    (void)state;
    sample(10, stamp_us(100), 40);
    sample(20, stamp_us(100), 60);
    start_with_utilization();
    read_ok();
    check_sm(10, 40);
    ANSWERS(nvmlDeviceGetProcessUtilization, NVML_ERROR_NOT_FOUND); /* nothing since then */
    after_ms(1000);
    read_ok();
    check_sm(10, 40);
    check_sm(20, 60);
    /* one of them gets a new sample */
    ANSWERS(nvmlDeviceGetProcessUtilization, NVML_SUCCESS);
    rig.fake->sample_count = 0;
    sample(20, stamp_us(10), 70);
    after_ms(999);
    read_ok();
    check_sm(10, 40);
    check_sm(20, 70);
    ANSWERS(nvmlDeviceGetProcessUtilization, NVML_ERROR_NOT_FOUND);
    after_ms(1);
    read_ok();
    check_sm(10, 0);
    check_sm(20, 70);
    after_ms(1999);
    read_ok();
    check_sm(20, 0);
}

/* They are idle on most GPUs. */
static void units_that_no_process_uses_are_read_again_after_a_while(void **state)
{
    (void)state;
    gp_metric_set_add(&rig.want.metrics, GP_UTILIZATION_ENCODER);
    gp_metric_set_add(&rig.want.metrics, GP_UTILIZATION_DECODER);
    start_with_utilization();
    for (int i = 0; i < 3; i++)
        read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetEncoderUtilization), 1);
    assert_int_equal(CALLS(nvmlDeviceGetDecoderUtilization), 1);
    /* a process begins to decode: from the next time on, both are read each time */
    sample(10, stamp_us(10), 0);
    read_ok();
    rig.fake->decoder_pct = 7;
    for (int i = 0; i < 3; i++)
        read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetDecoderUtilization), 4);
    assert_int_equal(rig.reading->values[GP_UTILIZATION_DECODER - GP_DEVICE__FIRST].i, 7);
    /* and so is a unit that is busy although no process is seen to use it */
    rig.fake->sample_count = 0;
    after_ms(6000);
    read_ok();
    unsigned long encoder = CALLS(nvmlDeviceGetEncoderUtilization);
    for (int i = 0; i < 3; i++)
        read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetEncoderUtilization), encoder);
    assert_int_equal(CALLS(nvmlDeviceGetDecoderUtilization), 8);
    after_ms(6000);
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetEncoderUtilization), encoder + 1);
}

/* Without a view of the processes, the units themselves must tell. */
static void units_are_read_each_time_if_the_processes_are_not(void **state)
{
    (void)state;
    gp_metric_set_add(&rig.want.metrics, GP_UTILIZATION_ENCODER);
    ANSWERS(nvmlDeviceGetProcessUtilization, NVML_ERROR_NOT_SUPPORTED);
    start_with_utilization();
    for (int i = 0; i < 3; i++)
        read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetEncoderUtilization), 3);
    ANSWERS(nvmlDeviceGetProcessUtilization, NVML_SUCCESS);
    read_ok();
    rig.want.processes = false;
    for (int i = 0; i < 3; i++)
        read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetEncoderUtilization), 6);
    rig.want.processes = true;
    read_ok();
    rig.want.fresh = true;
    for (int i = 0; i < 3; i++)
        read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetEncoderUtilization), 10);
}

static void absurd_samples(void **state)
{
    (void)state;
    sample(10, stamp_us(100), 101);
    sample(20, stamp_us(100), 100);
    rig.fake->samples[1].memUtil = UINT32_MAX;
    start_with_utilization();
    read_ok();
    assert_false(row(10)->sm.known);
    assert_int_equal(row(10)->mem.n, 5);
    check_sm(20, 100);
    assert_false(row(20)->mem.known);
    /* what the driver refuses is not 0 */
    ANSWERS(nvmlDeviceGetProcessUtilization, NVML_ERROR_NOT_SUPPORTED);
    read_ok();
    assert_false(row(10)->mem.known);
    assert_false(row(20)->sm.known);
}

static void a_count_of_samples_that_is_not_true(void **state)
{
    (void)state;
    sample(10, stamp_us(100), 40);
    rig.fake->claimed_samples = UINT32_MAX;
    start_with_utilization();
    read_ok();
    check_sm(10, 40);
    /* more than fit, with a count that cannot be served */
    for (unsigned i = 0; i < 200; i++)
        sample(1000 + i, stamp_us(90), 1);
    read_ok();
    assert_int_equal(rig.reading->process_count, 2);
    rig.fake->claimed_samples = 0;
    sample(20, stamp_us(50), 70);
    read_ok();
    check_sm(20, 70);
}

/* ---- MIG ---- */

static void set_mig(unsigned index, const char *uuid, const char *name, unsigned instance)
{
    rig.fake->migs[index] = (struct nvmlDevice_st){true, uuid, name, instance, 0};
}

static const struct gp_value *mig_value(size_t i, enum gp_metric m)
{
    assert_true(i < rig.reading->mig_count);
    return gp_device_value(rig.reading->mig[i].values, m);
}

static void start_with_mig(void)
{
    rig.want.mig = true;
    want(GP_UUID);
    want(GP_NAME);
    want(GP_MEMORY_USED);
    want(GP_TEMPERATURE_GPU);
    want(GP_MIG_GPU_INSTANCE);
    want(GP_MIG_PROFILE);
    rig.fake->mig_enabled = true;
    start();
}

static void check_mig(size_t i, unsigned index, const char *uuid, unsigned instance)
{
    assert_int_equal(rig.reading->mig[i].index, index);
    assert_int_equal(mig_value(i, GP_MIG_INDEX)->i, index);
    assert_string_equal(mig_value(i, GP_UUID)->s, uuid);
    assert_int_equal(mig_value(i, GP_MIG_GPU_INSTANCE)->i, instance);
}

static void instances_keep_the_drivers_numbers(void **state)
{
    (void)state;
    set_mig(1, "MIG-1", "A MIG", 3);
    set_mig(4, "MIG-4", "A MIG", 5);
    set_mig(6, "MIG-6", "A MIG 1g.18gb", 9);
    start_with_mig();
    read_ok();
    assert_int_equal(rig.reading->mig_count, 3);
    check_mig(0, 1, "MIG-1", 3);
    check_mig(1, 4, "MIG-4", 5);
    check_mig(2, 6, "MIG-6", 9);
    assert_string_equal(mig_value(0, GP_MIG_PROFILE)->s, "3g.20gb");
    /* not the size of its memory, but what the driver calls it */
    assert_string_equal(mig_value(2, GP_MIG_PROFILE)->s, "1g.18gb");
    assert_int_equal(mig_value(0, GP_MEMORY_USED)->i, 300);
    /* what only the whole GPU knows */
    assert_int_equal(mig_value(0, GP_TEMPERATURE_GPU)->status, GP_STATUS_UNSUPPORTED);
    check_absent(GP_MIG_GPU_INSTANCE, GP_STATUS_UNSUPPORTED);
}

static void what_an_instance_has_of_the_chip(void **state)
{
    (void)state;
    set_mig(0, "MIG-0", "A MIG", 0);
    want(GP_MIG_OFA);
    want(GP_MIG_JPEG);
    start_with_mig();
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetAttributes_v2), 1);
    assert_int_equal(mig_value(0, GP_MIG_JPEG)->i, 4);
    assert_int_equal(mig_value(0, GP_MIG_OFA)->status, GP_STATUS_ERROR);
    /* without slices it has no name */
    assert_int_equal(mig_value(0, GP_MIG_PROFILE)->status, GP_STATUS_UNSUPPORTED);
}

static void a_handle_may_become_another_instance(void **state)
{
    (void)state;
    set_mig(0, "MIG-old", "A MIG old", 3);
    set_mig(2, "MIG-other", "A MIG", 5);
    start_with_mig();
    read_ok();
    check_mig(0, 0, "MIG-old", 3);
    /* the instance is destroyed and another one made: the handle is the same */
    set_mig(0, "MIG-new", "A MIG new", 4);
    after_ms(5000);
    read_ok();
    assert_int_equal(rig.reading->mig_count, 2);
    check_mig(0, 0, "MIG-new", 4);
    assert_string_equal(mig_value(0, GP_NAME)->s, "A MIG new");
    assert_string_equal(mig_value(0, GP_MIG_PROFILE)->s, "4g.20gb");
    check_mig(1, 2, "MIG-other", 5);
    /* one goes */
    rig.fake->migs[0].present = false;
    after_ms(5000);
    read_ok();
    assert_int_equal(rig.reading->mig_count, 1);
    check_mig(0, 2, "MIG-other", 5);
    /* all go */
    rig.fake->mig_enabled = false;
    after_ms(5000);
    read_ok();
    assert_int_equal(rig.reading->mig_count, 0);
}

static void a_list_of_instances_that_fails_changes_nothing(void **state)
{
    (void)state;
    rig.want.mig = true;
    rig.fake->mig_enabled = true;
    rig.fake->migs[0] = (struct nvmlDevice_st){.present = true, .uuid = "MIG-1"};
    start();
    read_ok();
    assert_int_equal(rig.reading->mig_count, 1);
    after_ms(6000);
    ANSWERS(nvmlDeviceGetMigDeviceHandleByIndex, NVML_ERROR_UNKNOWN);
    read_ok();
    assert_int_equal(rig.reading->mig_count, 1);
    rig.fake->migs[0].present = false;
    ANSWERS(nvmlDeviceGetMigDeviceHandleByIndex, NVML_SUCCESS);
    read_ok(); /* asked again at once */
    assert_int_equal(rig.reading->mig_count, 0);
}

static void the_list_of_instances_is_asked_every_five_seconds(void **state)
{
    (void)state;
    set_mig(0, "MIG-0", "A MIG", 3);
    start_with_mig();
    for (unsigned i = 0; i < 5; i++) {
        read_ok();
        check_mig(0, 0, "MIG-0", 3);
        after_ms(999);
    }
    assert_int_equal(CALLS(nvmlDeviceGetMigMode), 1);
    assert_int_equal(CALLS(nvmlDeviceGetMigDeviceHandleByIndex), FAKE_NVML_MIGS);
    unsigned names = CALLS(nvmlDeviceGetName);
    after_ms(5);
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetMigMode), 2);
    assert_int_equal(CALLS(nvmlDeviceGetName), names); /* it is still the same one */
}

/* ---- sleep ---- */

static void put(const char *file, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s%s", rig.root, file);
    for (char *slash = path + strlen(rig.root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

#define BOUND "/sys/bus/pci/drivers/nvidia/"
#define FIRST "0000:01:00.0"
#define SECOND "0000:c1:00.0"

static void set_power(const char *address, const char *status, const char *control)
{
    char file[128];
    (void)snprintf(file, sizeof(file), BOUND "%s/power/runtime_status", address);
    put(file, status);
    (void)snprintf(file, sizeof(file), BOUND "%s/power/control", address);
    put(file, control);
}

static void as_long_as_all_sleep_the_driver_is_not_opened(void **state)
{
    (void)state;
    set_power(FIRST, "suspended\n", "auto\n");
    set_power(SECOND, "suspended\n", "auto\n");
    put("/proc/driver/nvidia/gpus/" FIRST "/information",
        "Model: \t\t NVIDIA A\nIRQ: 1\nGPU UUID: \t GPU-a\nBus Location: \t " FIRST "\n");
    put("/proc/driver/nvidia/gpus/" SECOND "/information",
        "Model: \t\t NVIDIA \033[2J\nGPU UUID: \t GPU-\?\?\?\?\?-\?\?\?\?\n");
    rig.fake->gpu_count = 2;
    open_source();
    assert_int_equal(rig.count, 2);
    assert_true(attach(0) < 0);
    assert_int_equal(rig.reading->status, GP_STATUS_ASLEEP);
    assert_false(rig.reading->needs_reinit);
    assert_string_equal(value(GP_NAME)->s, "NVIDIA A");
    assert_string_equal(value(GP_UUID)->s, "GPU-a");
    assert_string_equal(value(GP_PCI_BUS_ID)->s, "00000000:01:00.0");
    assert_true(attach(1) < 0);
    assert_string_equal(value(GP_NAME)->s, "NVIDIA \\x1b[2J");
    assert_int_not_equal(value(GP_UUID)->status, GP_STATUS_OK); /* it was never asked */
    assert_string_equal(value(GP_PCI_BUS_ID)->s, "00000000:C1:00.0");
    assert_int_equal(all_calls(), 0);
    /* one wakes up: the driver is to be opened now */
    set_power(FIRST, "active\n", "auto\n");
    assert_true(attach(0) < 0);
    assert_true(rig.reading->needs_reinit);
    assert_int_equal(all_calls(), 0);
    rig.source->ops->close(rig.source);
    open_source();
    assert_int_equal(CALLS(nvmlInit_v2), 1);
    assert_int_equal(attach(0), 0);
}

static void a_sleeping_gpu_beside_one_that_is_awake(void **state)
{
    (void)state;
    set_power(FIRST, "suspended\n", "auto\n");
    set_power(SECOND, "active\n", "auto\n");
    rig.fake->gpu_count = 2;
    open_source();
    assert_int_equal(CALLS(nvmlInit_v2), 1);
    assert_true(attach(0) < 0);
    assert_int_equal(rig.reading->status, GP_STATUS_ASLEEP);
    assert_int_equal(CALLS(nvmlDeviceGetHandleByIndex_v2), 0);
    assert_int_equal(attach(1), 0);
    assert_string_equal(rig.source->ops->uuid(rig.device), "GPU-b");
    assert_int_equal(CALLS(nvmlDeviceGetHandleByIndex_v2), 1);
}

static void a_gpu_that_falls_asleep_is_not_touched(void **state)
{
    (void)state;
    set_power(FIRST, "active\n", "auto\n");
    rig.want.processes = rig.want.mig = true;
    want(GP_TEMPERATURE_GPU);
    rig.fake->temperature = 40;
    start();
    read_ok();
    set_power(FIRST, "suspended\n", "auto\n");
    unsigned calls = all_calls();
    for (int i = 0; i < 3; i++) {
        after_ms(10000);
        read_once();
        assert_int_equal(rig.reading->status, GP_STATUS_ASLEEP);
        assert_int_equal(all_calls(), calls);
    }
    set_power(FIRST, "active\n", "auto\n");
    read_ok();
    check_number(GP_TEMPERATURE_GPU, 40);
}

/* Most servers forbid it: there is no look at the file before each read. */
static void a_gpu_that_may_not_sleep(void **state)
{
    (void)state;
    set_power(FIRST, "active\n", "on\n");
    want(GP_TEMPERATURE_GPU);
    start();
    set_power(FIRST, "suspended\n", "on\n");
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetTemperature), 1);
}

/* Where the kernel and the driver count differently, nobody knows which one sleeps. */
static void addresses_that_do_not_fit_the_drivers_count(void **state)
{
    (void)state;
    set_power(FIRST, "suspended\n", "auto\n");
    set_power(SECOND, "active\n", "auto\n");
    rig.fake->gpu_count = 1;
    open_source();
    assert_int_equal(rig.count, 1);
    assert_int_equal(attach(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(entries_are_as_wide_as_this_driver_writes_them),
        RIG_TEST(older_forms_of_the_list),
        RIG_TEST(a_refusal_is_not_gone_round),
        RIG_TEST(lists_that_were_empty_are_read_again_after_a_while),
        RIG_TEST(units_that_no_process_uses_are_read_again_after_a_while),
        RIG_TEST(units_are_read_each_time_if_the_processes_are_not),
        RIG_TEST(a_list_is_known_if_no_part_of_it_failed),
        RIG_TEST(a_list_that_grows_while_it_is_fetched),
        RIG_TEST(a_process_in_several_lists_is_one),
        RIG_TEST(garbage_is_no_process),
        RIG_TEST(a_count_of_processes_that_is_not_true),
        RIG_TEST(names_of_processes_that_proc_does_not_show),
        RIG_TEST(utilization_is_asked_only_where_it_is_wanted),
        RIG_TEST(the_newest_sample_counts),
        RIG_TEST(a_sample_lasts_two_seconds),
        RIG_TEST(absurd_samples),
        RIG_TEST(a_count_of_samples_that_is_not_true),
        RIG_TEST(instances_keep_the_drivers_numbers),
        RIG_TEST(what_an_instance_has_of_the_chip),
        RIG_TEST(a_handle_may_become_another_instance),
        RIG_TEST(a_list_of_instances_that_fails_changes_nothing),
        RIG_TEST(the_list_of_instances_is_asked_every_five_seconds),
        RIG_TEST(as_long_as_all_sleep_the_driver_is_not_opened),
        RIG_TEST(a_sleeping_gpu_beside_one_that_is_awake),
        RIG_TEST(a_gpu_that_falls_asleep_is_not_touched),
        RIG_TEST(a_gpu_that_may_not_sleep),
        RIG_TEST(addresses_that_do_not_fit_the_drivers_count),
    };
    return cmocka_run_group_tests_name("nvml_rows", tests, NULL, NULL);
}
