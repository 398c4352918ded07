/* Faults of the simulated driver as texts, whom they hit, and who is woken by them. */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "sim/fault.h"
#include "sim/state.h"

static void faults_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        int gpu;
        enum sim_fault_kind kind;
        uint64_t value;
        const char *function;
        const char *written; /* NULL: as it was */
    } cases[] = {
        {"lost", SIM_ALL_GPUS, SIM_FAULT_LOST, 0, "", NULL},
        {"3:lost", 3, SIM_FAULT_LOST, 0, "", "lost"},
        {"999:deny:nvmlDeviceGetTemp", 999, SIM_FAULT_DENY, 0, "nvmlDeviceGetTemp",
         "deny:nvmlDeviceGetTemp"},
        {"hang", SIM_ALL_GPUS, SIM_FAULT_HANG, 45 * GP_NS_PER_S, "", "hang=45000ms"},
        {"hang=2s", SIM_ALL_GPUS, SIM_FAULT_HANG, 2 * GP_NS_PER_S, "", "hang=2000ms"},
        {"0:slow=20ms:nvmlDeviceGetFanSpeed", 0, SIM_FAULT_SLOW, 20 * GP_NS_PER_MS,
         "nvmlDeviceGetFanSpeed", "slow=20ms:nvmlDeviceGetFanSpeed"},
        {"error=NOT_SUPPORTED", SIM_ALL_GPUS, SIM_FAULT_ERROR, 3, "", "error=3"},
        {"error=UNKNOWN:nvmlInit", SIM_ALL_GPUS, SIM_FAULT_ERROR, 999, "nvmlInit",
         "error=999:nvmlInit"},
        {"error=2147483647", SIM_ALL_GPUS, SIM_FAULT_ERROR, INT32_MAX, "", NULL},
        {"error=0", SIM_ALL_GPUS, SIM_FAULT_ERROR, 0, "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_err err = {0};
        struct sim_fault fault;
        struct gp_strbuf sb = GP_STRBUF_INIT(200);
        if (sim_fault_parse_placed(cases[i].text, &fault, &err) != 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_int_equal(fault.gpu, cases[i].gpu);
        assert_int_equal(fault.kind, cases[i].kind);
        assert_true(fault.value == cases[i].value);
        assert_string_equal(fault.function, cases[i].function);
        sim_fault_add_text(&sb, &fault);
        assert_string_equal(sb.buf, cases[i].written ? cases[i].written : cases[i].text);
        gp_strbuf_fini(&sb);
    }
}

/* What a fault is written as is read as the same, and an unknown one is told of it. */
static void every_fault_has_a_name(void **state)
{
    struct gp_err refusal = {0};
    struct sim_fault none;
    (void)state;
    assert_int_equal(sim_fault_parse("sleepy", SIM_ALL_GPUS, &none, &refusal), GP_EUSAGE);
    for (uint32_t kind = 0; kind < SIM_FAULT_KINDS; kind++) {
        const struct sim_fault fault = {.gpu = 5, .kind = kind, .value = 7 * GP_NS_PER_MS};
        struct gp_err err = {0};
        struct sim_fault same;
        struct gp_strbuf sb = GP_STRBUF_INIT(200), again = GP_STRBUF_INIT(200);
        sim_fault_add_text(&sb, &fault);
        if (kind != SIM_FAULT_SET && sim_fault_parse(sb.buf, 5, &same, &err) != 0)
            fail_msg("%s: %s", sb.buf, err.text);
        if (kind != SIM_FAULT_SET) {
            assert_int_equal(same.gpu, 5);
            assert_int_equal(same.kind, kind);
            sim_fault_add_text(&again, &same);
            assert_string_equal(again.buf, sb.buf);
        }
        sb.buf[strcspn(sb.buf, "=")] = '\0';
        assert_non_null(strstr(refusal.text, sb.buf));
        gp_strbuf_fini(&sb);
        gp_strbuf_fini(&again);
    }
}

static void what_is_no_fault_is_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"sleepy", "unknown fault 'sleepy': expected lost, "},
        {"los", "unknown fault 'los': "},
        {"losty", "unknown fault 'losty': "},
        {"", "unknown fault '': "},
        {"set=Name=1", "unknown fault 'set=Name=1': "},
        {"1000:lost", "unknown fault '1000:lost': "},
        {":lost", "unknown fault ':lost': "},
        {"lost=1", "fault 'lost' takes no value"},
        {"slow", "fault 'slow' needs a time, for example slow=20ms"},
        {"slow=UNKNOWN", "fault 'slow' needs a time, for example slow=20ms"},
        {"hang=soon", "fault 'hang' needs a time, for example slow=20ms"},
        {"error", "fault 'error' needs a return code, for example error=NOT_SUPPORTED"},
        {"error=2s", "fault 'error' needs a return code, for example error=NOT_SUPPORTED"},
        {"error=SUCCESS", "fault 'error' needs a return code, for example error=NOT_SUPPORTED"},
        {"error=2147483648", "fault 'error' needs a return code, for example error=NOT_SUPPORTED"},
        {"error=NVML_ERROR_UNKNOWN",
         "fault 'error' needs a return code, for example error=NOT_SUPPORTED"},
        {"error=1234567890123456789012345678901",
         "fault 'error' needs a return code, for example error=NOT_SUPPORTED"},
        {"error=12345678901234567890123456789012",
         "fault 'error=12345678901234567890123456789012': the value is too long"},
        {"lost:nvmlNothing", "no driver function starts with 'nvmlNothing'"},
        {"lost:nvmlDeviceGetTemperatureX",
         "no driver function starts with 'nvmlDeviceGetTemperatureX'"},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_err err = {0};
        struct sim_fault fault;
        assert_int_equal(sim_fault_parse_placed(cases[i].text, &fault, &err), GP_EUSAGE);
        if (strncmp(err.text, cases[i].words, strlen(cases[i].words)) != 0)
            fail_msg("'%s' is no '%s'", err.text, cases[i].words);
    }
}

static void return_codes_have_names(void **state)
{
    nvmlReturn_t code = NVML_SUCCESS;
    (void)state;
    assert_true(sim_return_code("GPU_IS_LOST", &code));
    assert_int_equal(code, NVML_ERROR_GPU_IS_LOST);
    assert_string_equal(sim_return_name(NVML_ERROR_GPU_IS_LOST), "GPU_IS_LOST");
    assert_string_equal(sim_return_name(NVML_ERROR_UNKNOWN), "UNKNOWN");
    assert_false(sim_return_code("GPU_IS", &code));
    assert_false(sim_return_code("", &code));
    assert_false(sim_return_code("SUCCESS", &code));
    assert_null(sim_return_name(NVML_SUCCESS));
    assert_null(sim_return_name((nvmlReturn_t)12345));
}

static void whom_a_fault_hits(void **state)
{
    static const struct {
        const char *text;
        int gpu;
        enum sim_function function;
        bool hits;
    } cases[] = {
        {"lost", 0, SIM_FN_nvmlDeviceGetName, true},
        {"lost", SIM_ALL_GPUS, SIM_FN_nvmlInit_v2, true},
        {"1:lost", 1, SIM_FN_nvmlDeviceGetName, true},
        {"1:lost", 0, SIM_FN_nvmlDeviceGetName, false},
        {"1:lost", SIM_ALL_GPUS, SIM_FN_nvmlInit_v2, false},
        {"deny:nvmlDeviceGetName", 0, SIM_FN_nvmlDeviceGetName, true},
        {"deny:nvmlDeviceGetName", 0, SIM_FN_nvmlDeviceGetUUID, false},
        {"deny:nvmlDeviceGetMemoryInfo", 0, SIM_FN_nvmlDeviceGetMemoryInfo_v2, true},
        {"deny:nvmlDeviceGetMemoryInfo_v2", 0, SIM_FN_nvmlDeviceGetMemoryInfo, false},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_err err = {0};
        struct sim_fault fault;
        assert_int_equal(sim_fault_parse_placed(cases[i].text, &fault, &err), 0);
        assert_int_equal(sim_fault_hits(&fault, cases[i].gpu, cases[i].function), cases[i].hits);
        fault.kind = SIM_FAULT_SET; /* of answers, not of calls */
        assert_false(sim_fault_hits(&fault, cases[i].gpu, cases[i].function));
    }
}

/* Who waits for an event looks again when the bell has rung: for an event, and for a fault. */
static void events_and_faults_ring_the_bell(void **state)
{
    struct sim_state *own = sim_state_new_private();
    struct gp_err err = {0};
    const struct sim_fault fault = {.gpu = 0, .kind = SIM_FAULT_LOST};
    const struct sim_event event = {
        .type = 8, .gpu = 2, .data = 79, .gpu_instance = 3, .compute_instance = 4};
    struct sim_event told;
    (void)state;
    assert_non_null(own);
    unsigned bell = sim_state_bell(own);
    assert_false(sim_state_has_faults(own));
    assert_int_equal(sim_state_add_fault(own, &fault, &err), 0);
    assert_true(sim_state_has_faults(own));
    assert_int_not_equal(sim_state_bell(own), bell);
    bell = sim_state_bell(own);
    uint64_t number = sim_state_next_event(own);
    assert_false(sim_state_event(own, number, &told));
    sim_state_post_event(own, &event);
    assert_int_not_equal(sim_state_bell(own), bell);
    assert_true(sim_state_next_event(own) == number + 1);
    assert_true(sim_state_event(own, number, &told));
    assert_memory_equal(&told, &event, sizeof(event));
    assert_false(sim_state_event(own, number + 1, &told));
    sim_state_close(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_read_and_written),
        cmocka_unit_test(every_fault_has_a_name),
        cmocka_unit_test(what_is_no_fault_is_refused),
        cmocka_unit_test(return_codes_have_names),
        cmocka_unit_test(whom_a_fault_hits),
        cmocka_unit_test(events_and_faults_ring_the_bell),
    };
    return cmocka_run_group_tests_name("sim_fault", tests, NULL, NULL);
}
