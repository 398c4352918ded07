/* The driver's answers about the machine itself. */
#include "sim/record_internal.h"

#include <stdio.h>

static nvmlReturn_t ask_capabilities(struct rec_call *c)
{
    nvmlConfComputeSystemCaps_t caps = {0};
    nvmlReturn_t code = c->api->nvmlSystemGetConfComputeCapabilities(&caps);
    c->numbers[0] = caps.cpuCaps;
    c->numbers[1] = caps.gpusCaps;
    return code;
}

static nvmlReturn_t ask_state(struct rec_call *c)
{
    nvmlConfComputeSystemState_t state = {0};
    nvmlReturn_t code = c->api->nvmlSystemGetConfComputeState(&state);
    c->numbers[0] = state.environment;
    c->numbers[1] = state.ccFeature;
    c->numbers[2] = state.devToolsMode;
    return code;
}

static nvmlReturn_t ask_settings(struct rec_call *c)
{
    nvmlSystemConfComputeSettings_t settings = {.version = nvmlSystemConfComputeSettings_v1};
    nvmlReturn_t code = c->api->nvmlSystemGetConfComputeSettings(&settings);
    c->numbers[0] = settings.multiGpuMode; /* the rest is in the state */
    return code;
}

static nvmlReturn_t ask_ready(struct rec_call *c)
{
    unsigned int ready = 0;
    nvmlReturn_t code = c->api->nvmlSystemGetConfComputeGpusReadyState(&ready);
    c->numbers[0] = ready;
    return code;
}

static nvmlReturn_t ask_heterogeneous(struct rec_call *c)
{
    unsigned int can = 0;
    nvmlReturn_t code =
        c->api->nvmlGetVgpuDriverCapabilities(NVML_VGPU_DRIVER_CAP_HETEROGENEOUS_MULTI_VGPU, &can);
    c->numbers[0] = can;
    return code;
}

static nvmlReturn_t ask_warm_update(struct rec_call *c)
{
    unsigned int can = 0;
    nvmlReturn_t code =
        c->api->nvmlGetVgpuDriverCapabilities(NVML_VGPU_DRIVER_CAP_WARM_UPDATE, &can);
    c->numbers[0] = can;
    return code;
}

json_t *rec_system(struct recorder *r)
{
#define X(answer, key) key,
    static const char *const keys[] = {SIM_SYSTEM_ANSWERS(X)};
#undef X
    static const struct {
        enum sim_function function;
        nvmlReturn_t (*ask)(struct rec_call *);
        enum sim_system_answer first;
        size_t count;
    } rows[] = {
        {SIM_FN_nvmlSystemGetConfComputeCapabilities, ask_capabilities, SIM_SYSTEM_CC_CPU, 2},
        {SIM_FN_nvmlSystemGetConfComputeState, ask_state, SIM_SYSTEM_CC_ENVIRONMENT, 3},
        {SIM_FN_nvmlSystemGetConfComputeSettings, ask_settings, SIM_SYSTEM_CC_MULTI_GPU, 1},
        {SIM_FN_nvmlSystemGetConfComputeGpusReadyState, ask_ready, SIM_SYSTEM_CC_READY, 1},
        {SIM_FN_nvmlGetVgpuDriverCapabilities, ask_heterogeneous, SIM_SYSTEM_VGPU_HETEROGENEOUS, 1},
        {SIM_FN_nvmlGetVgpuDriverCapabilities, ask_warm_update, SIM_SYSTEM_VGPU_WARM_UPDATE, 1},
    };
    (void)snprintf(r->where, sizeof(r->where), "system");
    r->timeouts = 0;
    json_t *out = json_object();
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct rec_call *c = rec_prepare(r, rows[i].function, rows[i].ask, NULL);
        if (rec_ask(r) != NVML_SUCCESS)
            continue;
        for (size_t k = 0; k < rows[i].count; k++)
            (void)json_object_set_new(out, keys[rows[i].first + k],
                                      json_integer((json_int_t)c->numbers[k]));
    }
    if (json_object_size(out) > 0)
        return out;
    json_decref(out);
    return NULL;
}
