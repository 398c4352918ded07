/* Excluded GPUs: the kernel module ignores them on request, and the driver only lists them. */
#include "source/nvml/internal.h"

#include "base/clock.h"

#include <stdio.h>

void nvml_read_excluded(struct nvml_source *source, struct gp_value *out)
{
    struct nvml_api *api = &source->api;
    nvmlReturn_t rc = NVML_ERROR_FUNCTION_NOT_FOUND;
    unsigned count = 0;
    size_t len = 0;
    if (source->initialised)
        rc = NVML_ASK(api, nvmlGetExcludedDeviceCount, &count);
    (void)snprintf(source->excluded, sizeof(source->excluded), "None");
    for (unsigned i = 0; rc == NVML_SUCCESS && i < count && len < sizeof(source->excluded); i++) {
        nvmlExcludedDeviceInfo_t info = {.uuid = ""};
        rc = NVML_ASK(api, nvmlGetExcludedDeviceInfoByIndex, i, &info);
        int n = snprintf(source->excluded + len, sizeof(source->excluded) - len, "%s%s %s",
                         i > 0 ? ", " : "", info.pciInfo.busId, info.uuid);
        len += n > 0 ? (size_t)n : 0;
    }
    if (rc == NVML_SUCCESS)
        gp_value_set_text(out, source->excluded, gp_clock_mono_ns());
    else
        gp_value_set_absent(out, nvml_return_status(rc), NULL, gp_clock_mono_ns());
}
