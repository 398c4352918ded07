#include "source/nvml/internal.h"
#include "source/nvml/nvml.h"

#include "abi/nvml_library.h"
#include "base/err.h"
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

static const char *const library_places[] = {NVML_LIBRARY_PLACES};

static const char not_found[] = ": not found";

static int open_library(const char *path, void **ret, struct gp_err *err)
{
    char reason[GP_LIBRARY_REASON];
    *ret = gp_library_open(path, library_places, GP_ARRAY_LEN(library_places), reason);
    if (*ret)
        return 0;
    if (*reason)
        return gp_err_set(err, GP_EDRIVER, "cannot load %s: %s", path ? path : "libnvidia-ml.so.1",
                          reason);
    return gp_err_set(err, GP_EDRIVER, "found no NVIDIA driver: cannot load libnvidia-ml.so.1%s",
                      not_found);
}

/* Adds the return code for errors that the library itself could not report. */
static int add_code(int r, nvmlReturn_t rc, struct gp_err *err)
{
    if (err)
        err->driver_code = (int)rc;
    return r;
}

bool gp_nvml_is_missing(const struct gp_err *err)
{
    return err->code == GP_EDRIVER && err->driver_code == NVML_ERROR_LIBRARY_NOT_FOUND;
}

bool gp_nvml_is_unloadable(const struct gp_err *err)
{
    size_t n = strlen(err->text);
    size_t end = strlen(not_found);
    return gp_nvml_is_missing(err) && (n < end || strcmp(err->text + n - end, not_found) != 0);
}

int nvml_load(struct nvml_api *api, const char *path, struct gp_err *err)
{
    void *library;
    int r = open_library(path, &library, err);
    if (r < 0)
        return add_code(r, NVML_ERROR_LIBRARY_NOT_FOUND, err);
    memset(api, 0, sizeof(*api));
    api->library = library;
    if (!NVML_FN(api, nvmlInit_v2) || !NVML_FN(api, nvmlDeviceGetCount_v2) ||
        !NVML_FN(api, nvmlDeviceGetHandleByIndex_v2)) {
        nvml_unload(api);
        r = gp_err_set(
            err, GP_EDRIVER,
            "the library has no nvmlInit_v2: it is not libnvidia-ml, or from a driver before R450");
        return add_code(r, NVML_ERROR_FUNCTION_NOT_FOUND, err);
    }
    return 0;
}

void nvml_unload(struct nvml_api *api)
{
    if (api->library)
        (void)dlclose(api->library);
    memset(api, 0, sizeof(*api));
}

const char *nvml_function_name(enum nvml_function function)
{
    static const char *const names[] = {"",
#define X(branch, ret, name, args) #name,
                                        NVML_FUNCTIONS(X)
#undef X
    };
    return names[function];
}

/* Marks a function that the library does not have. */
static void absent(void) {}

/* Looks up each function with dlsym, so that a missing one only costs its values, not the process.
 * Threads that look up the same function at the same time get the same result. */
nvml_any_fn nvml_find(struct nvml_api *api, enum nvml_function function)
{
    nvml_any_fn fn = atomic_load_explicit(&api->functions[function], memory_order_relaxed);
    if (!fn) {
        void *symbol = api->library ? dlsym(api->library, nvml_function_name(function)) : NULL;
        fn = absent;
        if (symbol)
            memcpy(&fn, &symbol, sizeof(symbol));
        atomic_store_explicit(&api->functions[function], fn, memory_order_relaxed);
    }
    return fn == absent ? NULL : fn;
}

#define X(name, number)                                                                            \
    _Static_assert((int)GP_NVML_##name == (int)NVML_ERROR_##name, "a name that NVML has");
GP_NVML_CODES(X)
#undef X

const char *nvml_return_text(nvmlReturn_t rc)
{
    static const struct {
        nvmlReturn_t code;
        const char *text;
    } texts[] = {
#define X(name, code, text) {name, text},
        NVML_RETURN_CODES(X)
#undef X
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        if (texts[i].code == rc)
            return texts[i].text;
    return "Unknown Error";
}

const char *gp_nvml_return_text(int driver_code)
{
    return nvml_return_text((nvmlReturn_t)driver_code);
}

bool nvml_return_ends_session(nvmlReturn_t rc)
{
    return rc == NVML_ERROR_GPU_IS_LOST || rc == NVML_ERROR_UNINITIALIZED ||
           rc == NVML_ERROR_DRIVER_NOT_LOADED || rc == NVML_ERROR_LIB_RM_VERSION_MISMATCH ||
           rc == NVML_ERROR_GPU_NOT_FOUND;
}

enum gp_status nvml_return_status(nvmlReturn_t rc)
{
    static const struct {
        nvmlReturn_t code;
        enum gp_status status;
    } statuses[] = {
        {NVML_SUCCESS, GP_STATUS_OK},
        {NVML_ERROR_NOT_SUPPORTED, GP_STATUS_UNSUPPORTED},
        {NVML_ERROR_FUNCTION_NOT_FOUND, GP_STATUS_UNSUPPORTED},
        {NVML_ERROR_DEPRECATED, GP_STATUS_UNSUPPORTED},
        {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, GP_STATUS_UNSUPPORTED},
        {NVML_ERROR_INVALID_ARGUMENT, GP_STATUS_UNSUPPORTED}, /* a field id newer than the driver */
        {NVML_ERROR_NOT_FOUND, GP_STATUS_UNSUPPORTED},
        {NVML_ERROR_NO_DATA, GP_STATUS_UNSUPPORTED},
        {NVML_ERROR_NOT_READY, GP_STATUS_UNSUPPORTED},
        {NVML_ERROR_NO_PERMISSION, GP_STATUS_NO_PERMISSION},
    };
    if (nvml_return_ends_session(rc))
        return GP_STATUS_LOST;
    for (size_t i = 0; i < GP_ARRAY_LEN(statuses); i++)
        if (statuses[i].code == rc)
            return statuses[i].status;
    return GP_STATUS_ERROR;
}
