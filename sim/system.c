/* The calls about the machine itself: confidential computing, vGPU, the driver's branch. */
#include "sim/system.h"

#include "sim/driver.h"

#include <stdio.h>
#include <string.h>

/* Reads `count` answers starting at `first`, all or nothing. */
static nvmlReturn_t read_answers(const struct sim_call *call, enum sim_system_answer first,
                                 size_t count, unsigned int *ret)
{
    for (size_t i = 0; i < count; i++) {
        const struct sim_value *v = &call->machine->system[first + i];
        if (v->code != NVML_SUCCESS)
            return v->code;
        ret[i] = (unsigned int)v->number;
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t answer_system(enum sim_function function, bool args_ok,
                                  enum sim_system_answer first, size_t count, unsigned int *ret)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, args_ok);
    return sim_leave(code == NVML_SUCCESS ? read_answers(&call, first, count, ret) : code);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t *caps)
{
    unsigned int v[2] = {0};
    nvmlReturn_t code = answer_system(SIM_FN_nvmlSystemGetConfComputeCapabilities, caps != NULL,
                                      SIM_SYSTEM_CC_CPU, 2, v);
    if (code == NVML_SUCCESS)
        *caps = (nvmlConfComputeSystemCaps_t){.cpuCaps = v[0], .gpusCaps = v[1]};
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state)
{
    unsigned int v[3] = {0};
    nvmlReturn_t code = answer_system(SIM_FN_nvmlSystemGetConfComputeState, state != NULL,
                                      SIM_SYSTEM_CC_ENVIRONMENT, 3, v);
    if (code == NVML_SUCCESS)
        *state = (nvmlConfComputeSystemState_t){
            .environment = v[0], .ccFeature = v[1], .devToolsMode = v[2]};
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *settings)
{
    struct sim_call call;
    unsigned int v[4] = {0};
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlSystemGetConfComputeSettings, settings != NULL);
    if (code == NVML_SUCCESS && settings->version != nvmlSystemConfComputeSettings_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = read_answers(&call, SIM_SYSTEM_CC_ENVIRONMENT, 4, v);
    if (code == NVML_SUCCESS)
        *settings = (nvmlSystemConfComputeSettings_t){.version = nvmlSystemConfComputeSettings_v1,
                                                      .environment = v[0],
                                                      .ccFeature = v[1],
                                                      .devToolsMode = v[2],
                                                      .multiGpuMode = v[3]};
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int *ready)
{
    unsigned int v = 0;
    nvmlReturn_t code = answer_system(SIM_FN_nvmlSystemGetConfComputeGpusReadyState, ready != NULL,
                                      SIM_SYSTEM_CC_READY, 1, &v);
    if (code == NVML_SUCCESS)
        *ready = v;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlGetVgpuDriverCapabilities(nvmlVgpuDriverCapability_t capability,
                                                      unsigned int *result)
{
    unsigned int v = 0;
    bool known = capability <= NVML_VGPU_DRIVER_CAP_WARM_UPDATE;
    enum sim_system_answer answer = capability == NVML_VGPU_DRIVER_CAP_WARM_UPDATE
                                        ? SIM_SYSTEM_VGPU_WARM_UPDATE
                                        : SIM_SYSTEM_VGPU_HETEROGENEOUS;
    nvmlReturn_t code =
        answer_system(SIM_FN_nvmlGetVgpuDriverCapabilities, result && known, answer, 1, &v);
    if (code == NVML_SUCCESS)
        *result = v;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *info,
                                                  unsigned int length)
{
    struct sim_call call;
    char branch[24];
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlSystemGetDriverBranch, info != NULL);
    if (code == NVML_SUCCESS && info->version != nvmlSystemDriverBranchInfo_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS && !call.machine->driver_version)
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS) {
        (void)snprintf(branch, sizeof(branch), "r%u_00", call.machine->driver[0]);
        if (strlen(branch) >= length)
            code = NVML_ERROR_INSUFFICIENT_SIZE;
        else
            memcpy(info->branch, branch, strlen(branch) + 1);
    }
    return sim_leave(code);
}
