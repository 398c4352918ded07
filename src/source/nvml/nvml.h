/* The NVML source: NVIDIA's management library, loaded at run time. */
#ifndef GP_SOURCE_NVML_NVML_H
#define GP_SOURCE_NVML_NVML_H

#include "source/source.h"

struct gp_nvml_config {
    const char *library; /* path of libnvidia-ml.so.1; NULL: search for it */
    const char *root;    /* prefix for /proc and /sys; NULL: none */
    bool simulated; /* the library is the simulated driver: without a root, this machine's /sys does
                       not describe its GPUs */
};

/* The strings of config must outlive the source. NULL without memory. */
struct gp_source *gp_nvml_new(const struct gp_nvml_config *config) GP_MUST_CHECK;

/* Whether the reason of an error is that there is no library to load. */
bool gp_nvml_is_missing(const struct gp_err *err);

/* Of these, whether there is a file by that name, which cannot be loaded. */
bool gp_nvml_is_unloadable(const struct gp_err *err);

/* The return codes that others tell apart, by NVML's names: the driver_code of errors.
 * X(name, number) */
#define GP_NVML_CODES(X)                                                                           \
    X(NOT_SUPPORTED, 3)                                                                            \
    X(NO_PERMISSION, 4)                                                                            \
    X(DRIVER_NOT_LOADED, 9)                                                                        \
    X(LIBRARY_NOT_FOUND, 12)                                                                       \
    X(FUNCTION_NOT_FOUND, 13)                                                                      \
    X(RESET_REQUIRED, 16)                                                                          \
    X(LIB_RM_VERSION_MISMATCH, 18)                                                                 \
    X(IN_USE, 19)                                                                                  \
    X(ARGUMENT_VERSION_MISMATCH, 25)                                                               \
    X(DEPRECATED, 26)                                                                              \
    X(GPU_NOT_FOUND, 28)                                                                           \
    X(UNKNOWN, 999)

enum gp_nvml_code {
#define X(name, number) GP_NVML_##name = number,
    GP_NVML_CODES(X)
#undef X
};

/* NVML's text for a return code: "Insufficient Permissions" for 4. */
const char *gp_nvml_return_text(int driver_code);

#endif
