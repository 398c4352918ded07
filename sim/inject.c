#include "sim/inject.h"

#include "base/err.h"
#include "base/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- events */

static const struct {
    const char *name;
    uint64_t type;
} event_names[] = {
    {"corrected", NVML_EVENT_SINGLE_BIT_ECC_ERROR},
    {"uncorrected", NVML_EVENT_DOUBLE_BIT_ECC_ERROR},
    {"pstate", NVML_EVENT_PSTATE},
    {"clock", NVML_EVENT_CLOCK},
    {"power", NVML_EVENT_POWER_SOURCE_CHANGE},
    {"mig", NVML_EVENT_MIG_CONFIG_CHANGE},
    {"storm", NVML_EVENT_SINGLE_BIT_ECC_ERROR_STORM},
    {"retirement", NVML_EVENT_DRAM_RETIREMENT},
    {"retirement-failed", NVML_EVENT_DRAM_RETIREMENT_FAILURE},
    {"poison", NVML_EVENT_NON_FATAL_POISON},
    {"fatal-poison", NVML_EVENT_FATAL_POISON},
    {"unavailable", NVML_EVENT_GPU_UNAVAILABLE},
    {"recovery", NVML_EVENT_GPU_RECOVERY_ACTION},
};

enum { XID_OFF_THE_BUS = 79, REPEAT_MAX = 1000000 };

/* "*N" and ":GI/CI" after an event. */
static bool parse_event_tail(const char *tail, struct sim_injection *ret)
{
    int end = 0;
    ret->repeat = 1;
    ret->event.gpu_instance = ret->event.compute_instance = NVML_NOT_AVAILABLE_U32;
    if (*tail == '*') {
        char count[16];
        size_t n = strcspn(++tail, ":");
        (void)snprintf(count, sizeof(count), "%.*s", (int)n, tail);
        if (n >= sizeof(count) || !gp_parse_u64(count, &ret->repeat) || ret->repeat == 0 ||
            ret->repeat > REPEAT_MAX)
            return false;
        tail += n;
    }
    if (*tail == ':') {
        if (sscanf(tail, ":%3u/%3u%n", &ret->event.gpu_instance, &ret->event.compute_instance,
                   &end) != 2)
            return false;
        tail += end;
    }
    return !*tail;
}

static int parse_xid(const char *text, int gpu, struct sim_injection *ret, struct gp_err *err)
{
    char number[16];
    size_t n = strcspn(text, "*:");
    (void)snprintf(number, sizeof(number), "%.*s", (int)n, text);
    if (n >= sizeof(number) || !gp_parse_u64(number, &ret->event.data) ||
        !parse_event_tail(text + n, ret))
        return gp_err_set(err, GP_EUSAGE,
                          "'xid=%.40s': expected a number, optionally with *N for N times and "
                          ":GI/CI for a MIG instance",
                          text);
    ret->event.type = (uint32_t)NVML_EVENT_XID_CRITICAL_ERROR;
    ret->with_fault = ret->event.data == XID_OFF_THE_BUS;
    ret->fault = (struct sim_fault){.gpu = gpu, .kind = SIM_FAULT_LOST};
    return GP_OK;
}

static int parse_event(const char *text, struct sim_injection *ret, struct gp_err *err)
{
    size_t n = strcspn(text, "*:");
    for (size_t i = 0; i < GP_ARRAY_LEN(event_names); i++)
        if (strlen(event_names[i].name) == n && memcmp(event_names[i].name, text, n) == 0)
            ret->event.type = (uint32_t)event_names[i].type;
    if (!ret->event.type || !parse_event_tail(text + n, ret))
        return gp_err_set(err, GP_EUSAGE,
                          "'event=%.40s': expected one of corrected, uncorrected, pstate, clock, "
                          "power, mig, storm, retirement, retirement-failed, poison, fatal-poison, "
                          "unavailable, recovery, optionally with *N for N times",
                          text);
    return GP_OK;
}

/* ------------------------------------------------------------------------- answers */

/* "PerformanceState", "EccMode.current": the key of a machine file, with its member. */
static bool is_answer(const struct sim_answer *answer, const char *name, size_t n)
{
    size_t key = strlen(answer->key);
    if (key > n || memcmp(answer->key, name, key) != 0)
        return false;
    if (!answer->member)
        return key == n;
    return n - key == strlen(answer->member) + 1 && name[key] == '.' &&
           memcmp(name + key + 1, answer->member, n - key - 1) == 0;
}

/* A number, or a name of the answer's kind. */
static bool parse_answer(enum sim_kind kind, const char *text, uint64_t *ret)
{
    for (const struct sim_name *name = sim_kind_names(kind); name && name->name; name++)
        if (strcmp(name->name, text) == 0) {
            *ret = name->value;
            return true;
        }
    return kind != SIM_KIND_TEXT && gp_parse_u64(text, ret);
}

/* The event that a driver reports when an answer changes. */
static uint64_t reported_as(uint32_t slot)
{
    static const struct {
        uint32_t slot;
        uint64_t type;
    } reports[] = {
        {SIM_PSTATE, NVML_EVENT_PSTATE},
        {SIM_CLOCK_GRAPHICS, NVML_EVENT_CLOCK},
        {SIM_ECC_TOTAL, NVML_EVENT_SINGLE_BIT_ECC_ERROR},
        {SIM_ECC_TOTAL_UV, NVML_EVENT_DOUBLE_BIT_ECC_ERROR},
        {SIM_MIG_CURRENT, NVML_EVENT_MIG_CONFIG_CHANGE},
        {SIM_MIG_MAX, NVML_EVENT_MIG_CONFIG_CHANGE},
        {SIM_FIELD_SLOT(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION), NVML_EVENT_GPU_RECOVERY_ACTION},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(reports); i++)
        if (reports[i].slot == slot)
            return reports[i].type;
    return 0;
}

static int parse_set(const char *text, int gpu, struct sim_injection *ret, struct gp_err *err)
{
    size_t n = strcspn(text, "=");
    uint64_t field;
    struct sim_fault fault = {.gpu = gpu, .kind = SIM_FAULT_SET, .slot = UINT32_MAX};
    enum sim_kind kind = SIM_KIND_U64;
    if (n >= sizeof(fault.function) || text[n] != '=')
        return gp_err_set(err, GP_EUSAGE, "'set=%.40s': expected set=ANSWER=VALUE", text);
    memcpy(fault.function, text, n);
    if (gp_parse_u64(fault.function, &field) && field <= UINT16_MAX)
        fault.slot = SIM_FIELD_SLOT((uint32_t)field);
    for (uint32_t i = 0; i < SIM_SLOT_COUNT; i++)
        if (is_answer(&sim_answers[i], text, n)) {
            fault.slot = i;
            kind = sim_answers[i].kind;
        }
    if (fault.slot == UINT32_MAX)
        return gp_err_set(err, GP_EUSAGE,
                          "'%s' is neither an answer of a machine file (for example "
                          "PerformanceState or TotalEccErrors.corrected.volatile) nor a field id",
                          fault.function);
    if (!parse_answer(kind, text + n + 1, &fault.value))
        return gp_err_set(err, GP_EUSAGE, "invalid value '%.40s' for %s", text + n + 1,
                          fault.function);
    ret->fault = fault;
    ret->with_fault = true;
    (void)parse_event_tail("", ret);
    ret->event.type = (uint32_t)reported_as(fault.slot);
    ret->repeat = ret->event.type != 0;
    return GP_OK;
}

/* ------------------------------------------------------------------------- parsing and
 * injecting */

int sim_inject_parse(const char *text, int gpu, struct sim_injection *ret, struct gp_err *err)
{
    *ret = (struct sim_injection){.kind = SIM_INJECT_EVENT};
    if (strncmp(text, "xid=", 4) == 0)
        return parse_xid(text + 4, gpu, ret, err);
    if (strncmp(text, "event=", 6) == 0)
        return parse_event(text + 6, ret, err);
    if (strncmp(text, "set=", 4) == 0)
        return parse_set(text + 4, gpu, ret, err);
    ret->kind = strcmp(text, "clear") == 0 ? SIM_INJECT_CLEAR : SIM_INJECT_FAULT;
    ret->with_fault = ret->kind == SIM_INJECT_FAULT;
    return ret->with_fault ? sim_fault_parse(text, gpu, &ret->fault, err) : GP_OK;
}

static void post(struct sim_state *state, int gpu, size_t gpu_count,
                 const struct sim_injection *injection)
{
    struct sim_event event = injection->event;
    for (uint64_t n = 0; n < injection->repeat; n++)
        for (size_t i = 0; i < gpu_count; i++) {
            event.gpu = (uint32_t)i;
            if (gpu == SIM_ALL_GPUS || gpu == (int)i)
                sim_state_post_event(state, &event);
        }
}

int sim_inject(struct sim_state *state, int gpu, size_t gpu_count,
               const struct sim_injection *injection, struct gp_err *err)
{
    bool sets = injection->with_fault && injection->fault.kind == SIM_FAULT_SET;
    int r = GP_OK;
    if (injection->kind == SIM_INJECT_CLEAR)
        sim_state_clear_faults(state, gpu);
    if (sets)
        sim_state_forget_answer(state, gpu, injection->fault.slot);
    /* A lost GPU cannot report an event afterwards, but when a changed answer is reported, the
     * change must be visible. */
    if (!sets)
        post(state, gpu, gpu_count, injection);
    if (injection->with_fault)
        r = sim_state_add_fault(state, &injection->fault, err);
    if (sets && r == GP_OK)
        post(state, gpu, gpu_count, injection);
    return r;
}
