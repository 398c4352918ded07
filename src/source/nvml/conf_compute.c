/* Confidential computing, which is a state of the whole machine. */
#include "source/nvml/readers.h"

#include "base/clock.h"

static bool wants(const struct gp_metric_set *want, enum gp_metric first, enum gp_metric last)
{
    for (enum gp_metric m = first; m <= last; m++)
        if (gp_metric_set_has(want, m))
            return true;
    return false;
}

static void settle(struct gp_value host[GP_HOST__COUNT], enum gp_metric m, nvmlReturn_t rc,
                   const struct code_name *names, unsigned code)
{
    struct gp_value *v = &host[m];
    enum gp_status status = nvml_return_status(rc);
    if (rc == NVML_SUCCESS)
        nvml_name_code(names, code, v);
    else
        gp_value_set_absent(v, status, status == GP_STATUS_ERROR ? nvml_return_text(rc) : NULL, 0);
    gp_value_set_time(v, gp_clock_mono_ns());
}

/* The newer call also reports the multi-GPU mode. */
static nvmlReturn_t settings(struct nvml_api *api, nvmlSystemConfComputeSettings_t *ret,
                             bool *ret_has_multi)
{
    nvmlSystemConfComputeSettings_t s = {.version = nvmlSystemConfComputeSettings_v1};
    nvmlReturn_t rc = NVML_ASK(api, nvmlSystemGetConfComputeSettings, &s);
    *ret_has_multi = rc == NVML_SUCCESS;
    if (nvml_return_status(rc) == GP_STATUS_UNSUPPORTED) {
        nvmlConfComputeSystemState_t state = {0};
        rc = NVML_ASK(api, nvmlSystemGetConfComputeState, &state);
        s = (nvmlSystemConfComputeSettings_t){.environment = state.environment,
                                              .ccFeature = state.ccFeature,
                                              .devToolsMode = state.devToolsMode};
    }
    *ret = s;
    return rc;
}

void nvml_read_conf_compute(struct nvml_source *source, const struct gp_metric_set *want,
                            struct gp_value host[GP_HOST__COUNT])
{
    static const struct code_name cpus[] = {{0, "None"},         {1, "AMD SEV"},
                                            {2, "Intel TDX"},    {3, "AMD SEV-SNP"},
                                            {4, "AMD SNP vTOM"}, {0, NULL}};
    static const struct code_name capable[] = {{0, "No"}, {1, "Yes"}, {0, NULL}};
    static const struct code_name on[] = {{0, "Disabled"}, {1, "Enabled"}, {0, NULL}};
    static const struct code_name environments[] = {
        {0, "Unavailable"}, {1, "Simulation"}, {2, "Production"}, {0, NULL}};
    static const struct code_name multi[] = {
        {0, "None"}, {1, "Protected PCIe"}, {2, "NVLE"}, {0, NULL}};
    struct nvml_api *api = &source->api;
    nvmlReturn_t rc = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (wants(want, GP_CC_CPU, GP_CC_GPU)) {
        nvmlConfComputeSystemCaps_t caps = {0};
        if (source->initialised)
            rc = NVML_ASK(api, nvmlSystemGetConfComputeCapabilities, &caps);
        settle(host, GP_CC_CPU, rc, cpus, caps.cpuCaps);
        settle(host, GP_CC_GPU, rc, capable, caps.gpusCaps);
    }
    if (wants(want, GP_CC_FEATURE, GP_CC_MULTI_GPU)) {
        nvmlSystemConfComputeSettings_t s = {0};
        bool has_multi = false;
        rc = NVML_ERROR_FUNCTION_NOT_FOUND;
        if (source->initialised)
            rc = settings(api, &s, &has_multi);
        settle(host, GP_CC_FEATURE, rc, on, s.ccFeature);
        settle(host, GP_CC_ENVIRONMENT, rc, environments, s.environment);
        settle(host, GP_CC_DEVTOOLS, rc, on, s.devToolsMode);
        settle(host, GP_CC_MULTI_GPU,
               rc != NVML_SUCCESS || has_multi ? rc : NVML_ERROR_NOT_SUPPORTED, multi,
               s.multiGpuMode);
    }
    if (wants(want, GP_CC_READY, GP_CC_READY)) {
        unsigned ready = 0;
        rc = NVML_ERROR_FUNCTION_NOT_FOUND;
        if (source->initialised)
            rc = NVML_ASK(api, nvmlSystemGetConfComputeGpusReadyState, &ready);
        settle(host, GP_CC_READY, rc, capable, ready);
    }
}
