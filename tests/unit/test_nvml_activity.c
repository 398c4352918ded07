/* The NVML source: rates of counters, peaks of the driver's samples, GPM, shares of the energy. */
#include "nvml_rig.h"

#include <math.h>

static void check_real(enum gp_metric m, double expected)
{
    assert_int_equal(value(m)->status, GP_STATUS_OK);
    if (fabs(value(m)->f - expected) > 1e-6)
        fail_msg("%s is %f, expected %f", GP_METRIC_NAME(m), value(m)->f, expected);
}

static void check_words(enum gp_metric m, const char *words)
{
    check_absent(m, GP_STATUS_UNSUPPORTED);
    assert_non_null(value(m)->s);
    assert_string_equal(value(m)->s, words);
}

static const char starts[] = "rates need a second sample";

/* ---- rates ---- */

static void set_counter(unsigned long long count)
{
    rig.fake->field =
        (nvmlFieldValue_t){.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, .value.ullVal = count};
}

static void a_rate_is_growth_over_time(void **state)
{
    (void)state;
    want(GP_PCIE_TX);
    want(GP_THROTTLE_SW_POWER_CAP);
    set_counter(5000);
    start();
    read_ok();
    check_words(GP_PCIE_TX, starts);
    after_ms(500);
    set_counter(5000 + 250000000);
    read_ok();
    check_real(GP_PCIE_TX, 500e6);
    check_real(GP_THROTTLE_SW_POWER_CAP, 50);
    assert_int_equal(CALLS(nvmlDeviceGetFieldValues), 2);
    assert_int_equal(CALLS(nvmlDeviceGetPcieThroughput), 0);
}

static void looks_close_together_keep_the_older_rate(void **state)
{
    (void)state;
    want(GP_PCIE_TX);
    start();
    set_counter(0);
    read_ok();
    after_ms(1000);
    set_counter(1000);
    read_ok();
    after_ms(20);
    set_counter(999999);
    read_ok();
    check_real(GP_PCIE_TX, 1000);
}

static void a_counter_that_shrank_gives_no_rate(void **state)
{
    (void)state;
    want(GP_PCIE_RX);
    start();
    set_counter(1000000);
    read_ok();
    after_ms(1000);
    set_counter(10);
    read_ok();
    check_words(GP_PCIE_RX, "the counter was reset");
    after_ms(1000);
    set_counter(510);
    read_ok();
    check_real(GP_PCIE_RX, 500);
}

static void a_share_of_time_is_at_most_all_of_it(void **state)
{
    (void)state;
    want(GP_THROTTLE_THERMAL);
    start();
    set_counter(0);
    read_ok();
    after_ms(1000);
    set_counter(1004000000);
    read_ok();
    check_real(GP_THROTTLE_THERMAL, 100);
}

static void without_counters_pcie_is_measured(void **state)
{
    (void)state;
    want(GP_PCIE_TX);
    rig.fake->field.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    rig.fake->pcie_kb_per_s = 500;
    start();
    read_ok();
    check_real(GP_PCIE_TX, 500000);
    assert_int_equal(CALLS(nvmlDeviceGetPcieThroughput), 1);
}

static void a_refused_rate_is_left_alone_for_a_while(void **state)
{
    (void)state;
    want(GP_PCIE_TX);
    rig.fake->field.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    ANSWERS(nvmlDeviceGetPcieThroughput, NVML_ERROR_NOT_SUPPORTED);
    start();
    read_ok();
    after_ms(1000);
    read_ok();
    check_absent(GP_PCIE_TX, GP_STATUS_UNSUPPORTED);
    assert_int_equal(CALLS(nvmlDeviceGetPcieThroughput), 1);
    assert_int_equal(CALLS(nvmlDeviceGetFieldValues), 1);
    after_ms(121000);
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetPcieThroughput), 2);
}

static void a_rate_of_garbage_is_an_error(void **state)
{
    (void)state;
    want(GP_THROTTLE_THERMAL);
    rig.fake->field =
        (nvmlFieldValue_t){.valueType = NVML_VALUE_TYPE_DOUBLE, .value.dVal = (double)NAN};
    start();
    read_ok();
    check_absent(GP_THROTTLE_THERMAL, GP_STATUS_ERROR);
}

static void field_ids_follow_the_driver(void **state)
{
    (void)state;
    static const struct {
        const char *driver;
        unsigned id;
    } ids[] = {
        {"570.148.08", 271}, {"575.57.08", 253}, {"580.65.06", 253},
        {"580.82.07", 271},  {"580.105", 271},   {"590.48.01", 271},
    };
    want(GP_THROTTLE_HW_POWER_BRAKE);
    for (size_t i = 0; i < GP_ARRAY_LEN(ids); i++) {
        rig.fake->driver_version = ids[i].driver;
        start();
        read_ok();
        assert_int_equal(rig.fake->asked_field, ids[i].id);
        leave();
    }
    start();
}

/* ---- samples ---- */

static void set_series(unsigned count, ...)
{
    va_list values;
    va_start(values, count);
    rig.fake->series_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    rig.fake->series_count = count;
    for (unsigned i = 0; i < count; i++)
        rig.fake->series[i] =
            (nvmlSample_t){.timeStamp = 1000 + i, .sampleValue.uiVal = va_arg(values, unsigned)};
    va_end(values);
}

static void peak_and_mean_are_of_the_samples_since_the_last_look(void **state)
{
    (void)state;
    want(GP_UTILIZATION_GPU_PEAK);
    want(GP_UTILIZATION_GPU_MEAN);
    set_series(4, 10u, 90u, 20u, 40u);
    start();
    read_ok();
    check_number(GP_UTILIZATION_GPU_PEAK, 90);
    check_real(GP_UTILIZATION_GPU_MEAN, 40);
    after_ms(1000);
    rig.fake->series[3].timeStamp = 5000; /* one is new */
    read_ok();
    assert_int_equal(rig.fake->asked_since_us, 1003);
    check_number(GP_UTILIZATION_GPU_PEAK, 40);
}

static void power_samples_are_milliwatts(void **state)
{
    (void)state;
    want(GP_POWER_DRAW_PEAK);
    set_series(2, 300000u, 650500u);
    start();
    read_ok();
    check_real(GP_POWER_DRAW_PEAK, 650.5);
}

static void fewer_samples_than_announced_are_no_zeros(void **state)
{
    (void)state;
    want(GP_UTILIZATION_GPU_MEAN);
    set_series(2, 50u, 70u);
    rig.fake->series_claimed = 100;
    start();
    read_ok();
    check_real(GP_UTILIZATION_GPU_MEAN, 60);
}

static void absurd_samples_do_not_count(void **state)
{
    (void)state;
    want(GP_UTILIZATION_GPU_PEAK);
    set_series(3, 30u, UINT32_MAX, 255u);
    start();
    read_ok();
    check_number(GP_UTILIZATION_GPU_PEAK, 30);
}

static void nothing_new_is_the_value_of_now(void **state)
{
    (void)state;
    want(GP_UTILIZATION_GPU_PEAK);
    want(GP_UTILIZATION_GPU_MEAN);
    rig.fake->utilization.gpu = 12;
    ANSWERS(nvmlDeviceGetSamples, NVML_ERROR_NOT_FOUND);
    start();
    read_ok();
    check_number(GP_UTILIZATION_GPU_PEAK, 12);
    check_real(GP_UTILIZATION_GPU_MEAN, 12);
}

static void refused_samples_are_left_alone_for_a_while(void **state)
{
    (void)state;
    want(GP_UTILIZATION_GPU_PEAK);
    ANSWERS(nvmlDeviceGetSamples, NVML_ERROR_NOT_SUPPORTED);
    start();
    read_ok();
    after_ms(1000);
    read_ok();
    check_absent(GP_UTILIZATION_GPU_PEAK, GP_STATUS_UNSUPPORTED);
    assert_int_equal(CALLS(nvmlDeviceGetSamples), 1);
}

static const struct gp_value *sample_cell(size_t kind, enum gp_metric m)
{
    const struct gp_list *list = &rig.reading->lists[gp_list_index(GP_SCOPE_SERIES)];
    assert_int_equal(list->status, GP_STATUS_OK);
    assert_int_equal(list->count, NVML_SAMPLINGTYPE_COUNT);
    return &list->values[kind * gp_scope_width(GP_SCOPE_SERIES) + (m - GP_SAMPLES_KIND)];
}

static void check_sample(size_t kind, enum gp_metric m, double expected)
{
    assert_int_equal(sample_cell(kind, m)->status, GP_STATUS_OK);
    if (fabs(sample_cell(kind, m)->f - expected) > 1e-6)
        fail_msg("%s is %f, expected %f", GP_METRIC_NAME(m), sample_cell(kind, m)->f, expected);
}

static void want_samples(enum gp_metric first, enum gp_metric last)
{
    rig.want.lists = UINT32_C(1) << gp_list_index(GP_SCOPE_SERIES);
    for (enum gp_metric m = first; m <= last; m++)
        want(m);
}

static void whole_buffers_of_every_kind(void **state)
{
    (void)state;
    want_samples(GP_SAMPLES_KIND, GP_SAMPLES_AVERAGE);
    set_series(5, 40u, 10u, UINT32_MAX, 90u, 20u);
    /* in no order, and one that was announced and not written */
    rig.fake->series[0].timeStamp = 2501000;
    rig.fake->series[4].timeStamp = 0;
    start();
    read_ok();
    check_sample(NVML_GPU_UTILIZATION_SAMPLES, GP_SAMPLES_DURATION, 2.5 - 1e-6);
    assert_int_equal(sample_cell(NVML_GPU_UTILIZATION_SAMPLES, GP_SAMPLES_COUNT)->i, 3);
    check_sample(NVML_GPU_UTILIZATION_SAMPLES, GP_SAMPLES_MAX, 90);
    check_sample(NVML_GPU_UTILIZATION_SAMPLES, GP_SAMPLES_MIN, 10);
    check_sample(NVML_GPU_UTILIZATION_SAMPLES, GP_SAMPLES_AVERAGE, 140.0 / 3);
    check_sample(NVML_TOTAL_POWER_SAMPLES, GP_SAMPLES_MIN, 0.01);
    check_sample(NVML_PROCESSOR_CLK_SAMPLES, GP_SAMPLES_MAX, 90);
    assert_string_equal(sample_cell(NVML_OFA_UTILIZATION_SAMPLES, GP_SAMPLES_KIND)->s, "ofa");
    assert_int_equal(rig.fake->asked_since_us, 0);
    /* again, it is the whole buffer again */
    rig.fake->series[3].timeStamp = 1;
    after_ms(1000);
    read_ok();
    assert_int_equal(sample_cell(NVML_GPU_UTILIZATION_SAMPLES, GP_SAMPLES_COUNT)->i, 3);
}

static void an_empty_buffer_has_no_extremes(void **state)
{
    (void)state;
    want_samples(GP_SAMPLES_COUNT, GP_SAMPLES_MAX);
    ANSWERS(nvmlDeviceGetSamples, NVML_ERROR_NOT_FOUND);
    start();
    read_ok();
    assert_int_equal(sample_cell(0, GP_SAMPLES_COUNT)->status, GP_STATUS_UNSUPPORTED);
    assert_string_equal(sample_cell(0, GP_SAMPLES_MAX)->s, "the driver has no samples");
    /* it may fill */
    ANSWERS(nvmlDeviceGetSamples, NVML_SUCCESS);
    set_series(1, 3u);
    read_ok();
    check_sample(NVML_MEMORY_CLK_SAMPLES, GP_SAMPLES_MAX, 3);
    /* what cannot be is not nothing */
    set_series(1, 101u);
    read_ok();
    assert_int_equal(sample_cell(1, GP_SAMPLES_MAX)->status, GP_STATUS_ERROR);
    check_sample(NVML_MEMORY_CLK_SAMPLES, GP_SAMPLES_MAX, 101);
}

static void buffers_that_are_refused(void **state)
{
    (void)state;
    want_samples(GP_SAMPLES_MIN, GP_SAMPLES_MIN);
    set_series(1, 3u);
    ANSWERS(nvmlDeviceGetSamples, NVML_ERROR_NO_PERMISSION);
    start();
    read_ok();
    after_ms(1000);
    read_ok();
    assert_int_equal(sample_cell(0, GP_SAMPLES_MIN)->status, GP_STATUS_NO_PERMISSION);
    assert_int_equal(CALLS(nvmlDeviceGetSamples), NVML_SAMPLINGTYPE_COUNT);
    ANSWERS(nvmlDeviceGetSamples, NVML_SUCCESS);
    after_ms(120000);
    read_ok();
    check_sample(NVML_GPU_UTILIZATION_SAMPLES, GP_SAMPLES_MIN, 3);
}

/* ---- GPM ---- */

static void gpm_is_the_difference_of_two_samples(void **state)
{
    (void)state;
    want(GP_GPM_SM);
    want(GP_GPM_NVLINK_TX);
    rig.fake->gpm_value = 42;
    start();
    read_ok();
    check_words(GP_GPM_SM, starts);
    assert_int_equal(CALLS(nvmlGpmMetricsGet), 0);
    after_ms(50);
    read_ok(); /* too early */
    assert_int_equal(CALLS(nvmlGpmSampleGet), 1);
    after_ms(60);
    read_ok();
    check_real(GP_GPM_SM, 42);
    check_real(GP_GPM_NVLINK_TX, 42.0 * 1048576);
    assert_int_equal(rig.fake->gpm_samples, 2);
    rig.source->ops->detach(rig.device);
    rig.device = NULL;
    assert_int_equal(rig.fake->gpm_samples, 0);
}

static void gpm_without_the_unit_is_not_supported(void **state)
{
    (void)state;
    want(GP_GPM_SM);
    rig.fake->gpm_unsupported = true;
    start();
    read_ok();
    after_ms(1000);
    read_ok();
    check_absent(GP_GPM_SM, GP_STATUS_UNSUPPORTED);
    assert_int_equal(CALLS(nvmlGpmQueryDeviceSupport), 1);
    assert_int_equal(CALLS(nvmlGpmSampleGet), 0);
}

static void gpm_that_is_forbidden_says_so(void **state)
{
    (void)state;
    want(GP_GPM_SM);
    ANSWERS(nvmlGpmSampleGet, NVML_ERROR_NO_PERMISSION);
    start();
    read_ok();
    check_absent(GP_GPM_SM, GP_STATUS_NO_PERMISSION);
}

static void gpm_gives_no_nan(void **state)
{
    (void)state;
    static const double wrong[] = {(double)NAN, (double)INFINITY, -1, 250};
    want(GP_GPM_SM);
    start();
    read_ok();
    for (size_t i = 0; i < GP_ARRAY_LEN(wrong); i++) {
        after_ms(1000);
        rig.fake->gpm_value = wrong[i];
        read_ok();
        check_impossible(GP_GPM_SM);
    }
    after_ms(1000);
    rig.fake->gpm_rc = NVML_ERROR_NOT_SUPPORTED;
    read_ok();
    check_absent(GP_GPM_SM, GP_STATUS_UNSUPPORTED);
}

static void after_a_failure_gpm_starts_anew(void **state)
{
    (void)state;
    want(GP_GPM_SM);
    rig.fake->gpm_value = 10;
    start();
    read_ok();
    after_ms(1000);
    ANSWERS(nvmlGpmSampleGet, NVML_ERROR_UNKNOWN);
    read_ok();
    check_absent(GP_GPM_SM, GP_STATUS_ERROR);
    after_ms(1000);
    ANSWERS(nvmlGpmSampleGet, NVML_SUCCESS);
    read_ok();
    check_words(GP_GPM_SM, starts);
    after_ms(1000);
    read_ok();
    check_real(GP_GPM_SM, 10);
}

static void gpm_of_an_instance_asks_for_it_by_its_id(void **state)
{
    (void)state;
    want(GP_GPM_SM);
    rig.want.mig = true;
    rig.fake->mig_enabled = true;
    rig.fake->migs[0] = (struct nvmlDevice_st){.present = true, .uuid = "MIG-1", .gpu_instance = 5};
    rig.fake->gpm_value = 33;
    start();
    read_ok();
    after_ms(1000);
    read_ok();
    assert_int_equal(rig.fake->gpm_instance, 5);
    const struct gp_value *v = gp_device_value(rig.reading->mig[0].values, GP_GPM_SM);
    assert_int_equal(v->status, GP_STATUS_OK);
    assert_true(fabs(v->f - 33) < 1e-9);
}

/* ---- energy of processes ---- */

static void add_process(unsigned pid, unsigned sm)
{
    struct fake_nvml *fake = rig.fake;
    fake->compute.entries[fake->compute.count++] =
        (nvmlProcessInfo_v2_t){pid, 1 << 20, UINT32_MAX, UINT32_MAX};
    fake->samples[fake->sample_count++] =
        (nvmlProcessUtilizationSample_t){.pid = pid, .timeStamp = stamp_us(0), .smUtil = sm};
}

static void energy_is_shared_by_sm_time(void **state)
{
    (void)state;
    rig.want.processes = true;
    want(GP_PROCESS_POWER);
    want(GP_PROCESS_ENERGY);
    add_process(100, 60);
    add_process(200, 20);
    rig.fake->energy_mj = 5000;
    start();
    read_ok();
    assert_int_equal(rig.reading->processes[0].power.status, GP_STATUS_UNSUPPORTED);
    after_ms(500);
    rig.fake->samples[0].timeStamp = rig.fake->samples[1].timeStamp = stamp_us(0);
    rig.fake->energy_mj = 5000 + 200000;
    read_ok();
    assert_true(fabs(rig.reading->processes[0].energy.f - 150) < 1e-9);
    assert_true(fabs(rig.reading->processes[0].power.f - 300) < 1e-9);
    assert_true(fabs(rig.reading->processes[1].energy.f - 50) < 1e-9);
    after_ms(500);
    rig.fake->energy_mj = 10; /* the driver was loaded anew */
    read_ok();
    assert_int_equal(rig.reading->processes[0].power.status, GP_STATUS_UNSUPPORTED);
    assert_true(fabs(rig.reading->processes[0].energy.f - 150) < 1e-9);
}

static void energy_of_a_time_without_processes_is_nobodys(void **state)
{
    (void)state;
    rig.want.processes = true;
    want(GP_PROCESS_ENERGY);
    start();
    read_ok();
    after_ms(500);
    rig.fake->energy_mj = 900000;
    read_ok();
    add_process(100, 60);
    after_ms(500);
    rig.fake->samples[0].timeStamp = stamp_us(0);
    rig.fake->energy_mj = 900000 + 50000;
    read_ok();
    assert_true(fabs(rig.reading->processes[0].energy.f - 50) < 1e-9);
}

static void all_engines_come_from_the_newer_call(void **state)
{
    (void)state;
    rig.want.processes = true;
    want(GP_PROCESS_SM);
    add_process(100, 60);
    start();
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetProcessesUtilizationInfo), 0);
    assert_false(rig.reading->processes[0].jpeg.known);
    want(GP_PROCESS_JPEG);
    after_ms(1000);
    rig.fake->samples[0].timeStamp = stamp_us(0);
    read_ok();
    assert_int_equal(rig.reading->processes[0].sm.n, 60);
    assert_int_equal(rig.reading->processes[0].jpeg.n, 7);
    assert_int_equal(rig.reading->processes[0].ofa.n, 9);
    ANSWERS(nvmlDeviceGetProcessesUtilizationInfo, NVML_ERROR_NOT_SUPPORTED);
    after_ms(1000);
    rig.fake->samples[0].timeStamp = stamp_us(0);
    rig.fake->samples[0].smUtil = 44;
    read_ok();
    assert_int_equal(rig.reading->processes[0].sm.n, 44);
}

/* ---- a container that sees instances only ---- */

static void processes_of_instances_where_the_gpu_forbids_its_own(void **state)
{
    (void)state;
    rig.want.processes = true;
    rig.fake->mig_enabled = true;
    rig.fake->migs[2] = (struct nvmlDevice_st){
        .present = true, .uuid = "MIG-1", .gpu_instance = 5, .compute_instance = 1};
    start();
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v3, NVML_ERROR_NO_PERMISSION);
    read_ok();
    assert_int_equal(rig.reading->processes_status, GP_STATUS_NO_PERMISSION);
    rig.fake->gpus[0].forbidden = true;
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v3, NVML_SUCCESS);
    add_process(300, 0);
    read_ok();
    assert_int_equal(rig.reading->processes_status, GP_STATUS_OK);
    assert_int_equal(rig.reading->process_count, 1);
    assert_int_equal(rig.reading->processes[0].gpu_instance.i, 5);
    assert_int_equal(rig.reading->processes[0].compute_instance.i, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_rate_is_growth_over_time),
        RIG_TEST(looks_close_together_keep_the_older_rate),
        RIG_TEST(a_counter_that_shrank_gives_no_rate),
        RIG_TEST(a_share_of_time_is_at_most_all_of_it),
        RIG_TEST(without_counters_pcie_is_measured),
        RIG_TEST(a_refused_rate_is_left_alone_for_a_while),
        RIG_TEST(a_rate_of_garbage_is_an_error),
        RIG_TEST(field_ids_follow_the_driver),
        RIG_TEST(peak_and_mean_are_of_the_samples_since_the_last_look),
        RIG_TEST(power_samples_are_milliwatts),
        RIG_TEST(fewer_samples_than_announced_are_no_zeros),
        RIG_TEST(absurd_samples_do_not_count),
        RIG_TEST(nothing_new_is_the_value_of_now),
        RIG_TEST(refused_samples_are_left_alone_for_a_while),
        RIG_TEST(whole_buffers_of_every_kind),
        RIG_TEST(an_empty_buffer_has_no_extremes),
        RIG_TEST(buffers_that_are_refused),
        RIG_TEST(gpm_is_the_difference_of_two_samples),
        RIG_TEST(gpm_without_the_unit_is_not_supported),
        RIG_TEST(gpm_that_is_forbidden_says_so),
        RIG_TEST(gpm_gives_no_nan),
        RIG_TEST(after_a_failure_gpm_starts_anew),
        RIG_TEST(gpm_of_an_instance_asks_for_it_by_its_id),
        RIG_TEST(energy_is_shared_by_sm_time),
        RIG_TEST(energy_of_a_time_without_processes_is_nobodys),
        RIG_TEST(all_engines_come_from_the_newer_call),
        RIG_TEST(processes_of_instances_where_the_gpu_forbids_its_own),
    };
    return cmocka_run_group_tests_name("nvml_activity", tests, NULL, NULL);
}
