#include "sim/strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_strict(void)
{
    const char *value = getenv("GPULSE_SIM_STRICT");
    return value && *value && strcmp(value, "0") != 0;
}

/* These have several versions, and a driver that only has the older ones refuses the newer. */
bool sim_strict_has_versions(enum sim_function function)
{
    return function == SIM_FN_nvmlDeviceGetGpuFabricInfoV ||
           function == SIM_FN_nvmlDeviceGetPlatformInfo;
}

void sim_strict_refuse(enum sim_function function, const char *why)
{
    if (!is_strict())
        return;
    (void)fprintf(stderr, "gpulse-sim: strict: %s %s\n", sim_function_names[function], why);
    abort();
}

void sim_strict_refuse_handle(enum sim_function function, const void *handle)
{
    sim_strict_refuse(function, handle ? "was called with an invalid or stale handle"
                                       : "was called with a NULL handle");
}
