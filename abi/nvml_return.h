/* The return codes of NVML functions. */
#ifndef GPULSE_ABI_NVML_RETURN_H
#define GPULSE_ABI_NVML_RETURN_H

/* name code text of nvmlErrorString */
#define NVML_RETURN_CODES(X)                                                                       \
    X(NVML_SUCCESS, 0, "Success")                                                                  \
    X(NVML_ERROR_UNINITIALIZED, 1, "Uninitialized")                                                \
    X(NVML_ERROR_INVALID_ARGUMENT, 2, "Invalid Argument")                                          \
    X(NVML_ERROR_NOT_SUPPORTED, 3, "Not Supported")                                                \
    X(NVML_ERROR_NO_PERMISSION, 4, "Insufficient Permissions")                                     \
    X(NVML_ERROR_ALREADY_INITIALIZED, 5, "Already Initialized")                                    \
    X(NVML_ERROR_NOT_FOUND, 6, "Not Found")                                                        \
    X(NVML_ERROR_INSUFFICIENT_SIZE, 7, "Insufficient Size")                                        \
    X(NVML_ERROR_INSUFFICIENT_POWER, 8, "Insufficient External Power")                             \
    X(NVML_ERROR_DRIVER_NOT_LOADED, 9, "Driver Not Loaded")                                        \
    X(NVML_ERROR_TIMEOUT, 10, "Timeout")                                                           \
    X(NVML_ERROR_IRQ_ISSUE, 11, "Interrupt Request Issue")                                         \
    X(NVML_ERROR_LIBRARY_NOT_FOUND, 12, "NVML Shared Library Not Found")                           \
    X(NVML_ERROR_FUNCTION_NOT_FOUND, 13, "Function Not Found")                                     \
    X(NVML_ERROR_CORRUPTED_INFOROM, 14, "Corrupted infoROM")                                       \
    X(NVML_ERROR_GPU_IS_LOST, 15, "GPU is lost")                                                   \
    X(NVML_ERROR_RESET_REQUIRED, 16, "GPU requires reset")                                         \
    X(NVML_ERROR_OPERATING_SYSTEM, 17, "The operating system has blocked the request")             \
    X(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18, "Driver/library version mismatch")                   \
    X(NVML_ERROR_IN_USE, 19, "In use by another client")                                           \
    X(NVML_ERROR_MEMORY, 20, "Insufficient Memory")                                                \
    X(NVML_ERROR_NO_DATA, 21, "No data")                                                           \
    X(NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, 22, "ECC is not supported on the vGPU")                   \
    X(NVML_ERROR_INSUFFICIENT_RESOURCES, 23, "Insufficient Resources")                             \
    X(NVML_ERROR_FREQ_NOT_SUPPORTED, 24, "Frequency Not Supported")                                \
    X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25, "Argument Version Mismatch")                       \
    X(NVML_ERROR_DEPRECATED, 26, "Deprecated")                                                     \
    X(NVML_ERROR_NOT_READY, 27, "Not Ready")                                                       \
    X(NVML_ERROR_GPU_NOT_FOUND, 28, "No supported GPUs were found")                                \
    X(NVML_ERROR_INVALID_STATE, 29, "Invalid State")                                               \
    X(NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, 30, "Reset Type Not Supported")                         \
    X(NVML_ERROR_UNKNOWN, 999, "Unknown Error")

typedef enum {
#define X(name, code, text) name = code,
    NVML_RETURN_CODES(X)
#undef X
} nvmlReturn_t;

#endif
