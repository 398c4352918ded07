/* The part of the NVML ABI that gpulse uses, in our own words.
 *
 * libnvidia-ml.so.1 is an interface of names, numbers and byte offsets; this file states them, and
 * three programs build on it: the client (src/source/nvml), the simulated driver (sim/) and the
 * benchmark's floor. Nothing is linked: NVML_FUNCTIONS lists every function once, and each user
 * derives what it needs (pointer types, dlsym tables, definitions).
 *
 * Names are NVML's, so that what is known in the field can be found again. Layouts are those of
 * LP64 (x86-64 and aarch64 are alike) and are asserted at the end of the file. */
#ifndef GPULSE_ABI_NVML_H
#define GPULSE_ABI_NVML_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------- return codes */

/*     name                                 code  what nvmlErrorString answers */
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
    X(NVML_ERROR_GPU_NOT_FOUND, 28, "GPU Not Found")                                               \
    X(NVML_ERROR_INVALID_STATE, 29, "Invalid State")                                               \
    X(NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, 30, "Reset Type Not Supported")                         \
    X(NVML_ERROR_UNKNOWN, 999, "Unknown Error")

typedef enum {
#define X(name, code, text) name = code,
    NVML_RETURN_CODES(X)
#undef X
} nvmlReturn_t;

/* ------------------------------------------------------------------------- scalar types */

typedef struct nvmlDevice_st *nvmlDevice_t; /* a GPU or a MIG device; never dereferenced */

typedef enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 } nvmlEnableState_t;

typedef unsigned int nvmlDeviceArchitecture_t;
#define NVML_DEVICE_ARCH_KEPLER 2u
#define NVML_DEVICE_ARCH_MAXWELL 3u
#define NVML_DEVICE_ARCH_PASCAL 4u
#define NVML_DEVICE_ARCH_VOLTA 5u
#define NVML_DEVICE_ARCH_TURING 6u
#define NVML_DEVICE_ARCH_AMPERE 7u
#define NVML_DEVICE_ARCH_ADA 8u
#define NVML_DEVICE_ARCH_HOPPER 9u
#define NVML_DEVICE_ARCH_BLACKWELL 10u
#define NVML_DEVICE_ARCH_RUBIN 13u
#define NVML_DEVICE_ARCH_UNKNOWN 0xffffffffu

typedef enum {
    NVML_BRAND_UNKNOWN = 0,
    NVML_BRAND_QUADRO = 1,
    NVML_BRAND_TESLA = 2,
    NVML_BRAND_NVS = 3,
    NVML_BRAND_GRID = 4,
    NVML_BRAND_GEFORCE = 5,
    NVML_BRAND_TITAN = 6,
    NVML_BRAND_NVIDIA_VAPPS = 7,
    NVML_BRAND_NVIDIA_VPC = 8,
    NVML_BRAND_NVIDIA_VCS = 9,
    NVML_BRAND_NVIDIA_VWS = 10,
    NVML_BRAND_NVIDIA_CLOUD_GAMING = 11,
    NVML_BRAND_QUADRO_RTX = 12,
    NVML_BRAND_NVIDIA_RTX = 13,
    NVML_BRAND_NVIDIA = 14,
    NVML_BRAND_GEFORCE_RTX = 15,
    NVML_BRAND_TITAN_RTX = 16,
} nvmlBrandType_t;

typedef enum {
    NVML_CLOCK_GRAPHICS = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_CLOCK_VIDEO = 3,
    NVML_CLOCK_COUNT
} nvmlClockType_t;

typedef enum { NVML_TEMPERATURE_GPU = 0, NVML_TEMPERATURE_COUNT } nvmlTemperatureSensors_t;

typedef enum {
    NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
    NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2,
    NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
    NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN = 4,
    NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR = 5,
    NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX = 6,
    NVML_TEMPERATURE_THRESHOLD_GPS_CURR = 7,
    NVML_TEMPERATURE_THRESHOLD_COUNT
} nvmlTemperatureThresholds_t;

/* P0 (fastest) to P15 are the numbers 0 to 15. */
typedef enum { NVML_PSTATE_0 = 0, NVML_PSTATE_15 = 15, NVML_PSTATE_UNKNOWN = 32 } nvmlPstates_t;

typedef enum {
    NVML_PCIE_UTIL_TX_BYTES = 0, /* from the GPU */
    NVML_PCIE_UTIL_RX_BYTES = 1,
    NVML_PCIE_UTIL_COUNT
} nvmlPcieUtilCounter_t;

typedef enum {
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
    NVML_MEMORY_ERROR_TYPE_COUNT
} nvmlMemoryErrorType_t;

typedef enum {
    NVML_VOLATILE_ECC = 0,
    NVML_AGGREGATE_ECC = 1,
    NVML_ECC_COUNTER_TYPE_COUNT
} nvmlEccCounterType_t;

typedef enum {
    NVML_MEMORY_LOCATION_L1_CACHE = 0,
    NVML_MEMORY_LOCATION_L2_CACHE = 1,
    NVML_MEMORY_LOCATION_DRAM = 2,
    NVML_MEMORY_LOCATION_REGISTER_FILE = 3,
    NVML_MEMORY_LOCATION_TEXTURE_MEMORY = 4,
    NVML_MEMORY_LOCATION_TEXTURE_SHM = 5,
    NVML_MEMORY_LOCATION_CBU = 6,
    NVML_MEMORY_LOCATION_SRAM = 7,
    NVML_MEMORY_LOCATION_COUNT
} nvmlMemoryLocation_t;

typedef enum {
    NVML_COMPUTEMODE_DEFAULT = 0,
    NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
    NVML_COMPUTEMODE_PROHIBITED = 2,
    NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
} nvmlComputeMode_t;

typedef enum {
    NVML_GPU_VIRTUALIZATION_MODE_NONE = 0,
    NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH = 1,
    NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2,
    NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU = 3,
    NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA = 4,
} nvmlGpuVirtualizationMode_t;

typedef enum {
    NVML_DEVICE_ADDRESSING_MODE_NONE = 0,
    NVML_DEVICE_ADDRESSING_MODE_HMM = 1,
    NVML_DEVICE_ADDRESSING_MODE_ATS = 2,
} nvmlDeviceAddressingModeType_t;

typedef enum {
    NVML_VALUE_TYPE_DOUBLE = 0,
    NVML_VALUE_TYPE_UNSIGNED_INT = 1,
    NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
    NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
    NVML_VALUE_TYPE_SIGNED_INT = 5,
    NVML_VALUE_TYPE_UNSIGNED_SHORT = 6,
} nvmlValueType_t;

/* ------------------------------------------------------------------------- plain constants */

#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96
#define NVML_DEVICE_SERIAL_BUFFER_SIZE 30
#define NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE 32
#define NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE 16
#define NVML_DEVICE_PART_NUMBER_BUFFER_SIZE 80
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE 80
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE 32
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE 16
#define NVML_GSP_FIRMWARE_VERSION_BUF_SIZE 0x40

/* "Not available" is all ones in the value's own width. */
#define NVML_NOT_AVAILABLE_U32 UINT32_MAX
#define NVML_NOT_AVAILABLE_U64 UINT64_MAX

/* nvmlInitWithFlags */
#define NVML_INIT_FLAG_NO_GPUS 1u
#define NVML_INIT_FLAG_NO_ATTACH 2u

/* Bits of the clocks event ("throttle") reasons */
#define NVML_CLOCKS_EVENT_GPU_IDLE UINT64_C(0x001)
#define NVML_CLOCKS_EVENT_APPLICATIONS_CLOCKS UINT64_C(0x002)
#define NVML_CLOCKS_EVENT_SW_POWER_CAP UINT64_C(0x004)
#define NVML_CLOCKS_EVENT_HW_SLOWDOWN UINT64_C(0x008)
#define NVML_CLOCKS_EVENT_SYNC_BOOST UINT64_C(0x010)
#define NVML_CLOCKS_EVENT_SW_THERMAL UINT64_C(0x020)
#define NVML_CLOCKS_EVENT_HW_THERMAL UINT64_C(0x040)
#define NVML_CLOCKS_EVENT_HW_POWER_BRAKE UINT64_C(0x080)
#define NVML_CLOCKS_EVENT_DISPLAY_CLOCKS UINT64_C(0x100)
#define NVML_CLOCKS_EVENT_ALL UINT64_C(0x1ff)

/* scopeId of the power fields */
#define NVML_POWER_SCOPE_GPU 0u
#define NVML_POWER_SCOPE_MODULE 1u
#define NVML_POWER_SCOPE_MEMORY 2u

/* Answers of field NVML_FI_DEV_GET_GPU_RECOVERY_ACTION */
#define NVML_GPU_RECOVERY_ACTION_NONE 0u
#define NVML_GPU_RECOVERY_ACTION_GPU_RESET 1u
#define NVML_GPU_RECOVERY_ACTION_NODE_REBOOT 2u
#define NVML_GPU_RECOVERY_ACTION_DRAIN_P2P 3u
#define NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET 4u
#define NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN 5u

/* Field ids of nvmlDeviceGetFieldValues. The three clock event counters moved: 251-253 in drivers
 * R575 up to 580.81, 269-271 from 580.82 on (13.0 U1). */
#define NVML_FI_DEV_RETIRED_SBE 29u
#define NVML_FI_DEV_RETIRED_DBE 30u
#define NVML_FI_DEV_RETIRED_PENDING 31u
#define NVML_FI_DEV_PERF_POLICY_POWER 74u /* the 74-81 counters are nanoseconds */
#define NVML_FI_DEV_PERF_POLICY_THERMAL 75u
#define NVML_FI_DEV_PERF_POLICY_SYNC_BOOST 76u
#define NVML_FI_DEV_MEMORY_TEMP 82u
#define NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION 83u
#define NVML_FI_DEV_PCIE_REPLAY_COUNTER 94u
#define NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER 95u
#define NVML_FI_DEV_REMAPPED_COR 142u
#define NVML_FI_DEV_REMAPPED_UNC 143u
#define NVML_FI_DEV_REMAPPED_PENDING 144u
#define NVML_FI_DEV_REMAPPED_FAILURE 145u
#define NVML_FI_DEV_POWER_AVERAGE 185u /* 185-192: mW, by scope */
#define NVML_FI_DEV_POWER_INSTANT 186u
#define NVML_FI_DEV_POWER_MIN_LIMIT 187u
#define NVML_FI_DEV_POWER_MAX_LIMIT 188u
#define NVML_FI_DEV_POWER_DEFAULT_LIMIT 189u
#define NVML_FI_DEV_POWER_CURRENT_LIMIT 190u
#define NVML_FI_DEV_ENERGY 191u
#define NVML_FI_DEV_POWER_REQUESTED_LIMIT 192u
#define NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT 193u /* 193-196: signed degrees */
#define NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT 194u
#define NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT 195u
#define NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT 196u
#define NVML_FI_DEV_PCIE_COUNT_TX_BYTES 197u
#define NVML_FI_DEV_PCIE_COUNT_RX_BYTES 198u
#define NVML_FI_DEV_GET_GPU_RECOVERY_ACTION 230u
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN 269u
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN 270u
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN 271u
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_R575 251u
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_R575 252u
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_R575 253u

/* ------------------------------------------------------------------------- structures */

/* A versioned struct begins with this word; a driver refuses any other, a bare 2 for example. */
#define NVML_STRUCT_VERSION(type, version) ((unsigned int)(sizeof(type) | ((version) << 24)))

typedef struct {
    char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE]; /* 4-digit domain */
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;    /* (device << 16) | vendor */
    unsigned int pciSubSystemId; /* written from _v2 on */
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE]; /* 8-digit domain; written by _v3 */
} nvmlPciInfo_t;

typedef struct {
    unsigned long long total; /* used + free; since R510 used includes the driver's reservation */
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total; /* reserved + used + free */
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;
#define nvmlMemory_v2 NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2u)

typedef struct {
    unsigned long long bar1Total;
    unsigned long long bar1Free;
    unsigned long long bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory; /* bytes; all ones: not available */
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId; /* all ones outside MIG, as the next */
    unsigned int computeInstanceId;
} nvmlProcessInfo_v2_t;
typedef nvmlProcessInfo_v2_t nvmlProcessInfo_t;

/* What drivers 535.43 to 535.86 put into the array of the _v3 process lists instead. */
typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessInfo_r535_t;

typedef struct {
    unsigned int pid;
    unsigned long long timeStamp; /* microseconds */
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned int gpu;    /* percent of time with a kernel resident */
    unsigned int memory; /* percent of time with memory traffic, not fullness */
} nvmlUtilization_t;

typedef struct {
    unsigned int version;
    nvmlTemperatureSensors_t sensorType;
    int temperature;
} nvmlTemperature_t;
#define nvmlTemperature_v1 NVML_STRUCT_VERSION(nvmlTemperature_t, 1u)

typedef struct {
    unsigned int version;
    int marginTemperature;
} nvmlMarginTemperature_t;
#define nvmlMarginTemperature_v1 NVML_STRUCT_VERSION(nvmlMarginTemperature_t, 1u)

typedef struct {
    unsigned int version;
    unsigned int value; /* nvmlDeviceAddressingModeType_t */
} nvmlDeviceAddressingMode_t;
#define nvmlDeviceAddressingMode_v1 NVML_STRUCT_VERSION(nvmlDeviceAddressingMode_t, 1u)

typedef struct {
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
    unsigned int gpuInstanceSliceCount;
    unsigned int computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef union {
    double dVal;
    int siVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
    unsigned short usVal;
} nvmlValue_t;

typedef struct {
    unsigned int fieldId; /* in */
    unsigned int scopeId; /* in: always set it, 0 for most */
    long long timestamp;  /* microseconds since 1970 */
    long long latencyUsec;
    nvmlValueType_t valueType;
    nvmlReturn_t nvmlReturn; /* of this entry; value is undefined unless it is 0 */
    nvmlValue_t value;
} nvmlFieldValue_t;

/* ------------------------------------------------------------------------- functions */

/* X(return type, name, (parameters)). Functions of newer drivers may be missing from a library:
 * the newest of a family is tried first. */
#define NVML_FUNCTIONS(X)                                                                          \
    X(nvmlReturn_t, nvmlInit, (void))                                                              \
    X(nvmlReturn_t, nvmlInit_v2, (void))                                                           \
    X(nvmlReturn_t, nvmlInitWithFlags, (unsigned int flags))                                       \
    X(nvmlReturn_t, nvmlShutdown, (void))                                                          \
    X(const char *, nvmlErrorString, (nvmlReturn_t result))                                        \
    X(nvmlReturn_t, nvmlSystemGetDriverVersion, (char *version, unsigned int length))              \
    X(nvmlReturn_t, nvmlSystemGetNVMLVersion, (char *version, unsigned int length))                \
    X(nvmlReturn_t, nvmlSystemGetCudaDriverVersion, (int *version))                                \
    X(nvmlReturn_t, nvmlSystemGetCudaDriverVersion_v2, (int *version))                             \
    X(nvmlReturn_t, nvmlSystemGetProcessName, (unsigned int pid, char *name, unsigned int length)) \
    X(nvmlReturn_t, nvmlDeviceGetCount, (unsigned int *count))                                     \
    X(nvmlReturn_t, nvmlDeviceGetCount_v2, (unsigned int *count))                                  \
    X(nvmlReturn_t, nvmlDeviceGetHandleByIndex, (unsigned int index, nvmlDevice_t *device))        \
    X(nvmlReturn_t, nvmlDeviceGetHandleByIndex_v2, (unsigned int index, nvmlDevice_t *device))     \
    X(nvmlReturn_t, nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device))           \
    X(nvmlReturn_t, nvmlDeviceGetHandleByPciBusId, (const char *bus_id, nvmlDevice_t *device))     \
    X(nvmlReturn_t, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus_id, nvmlDevice_t *device))  \
    X(nvmlReturn_t, nvmlDeviceGetHandleBySerial, (const char *serial, nvmlDevice_t *device))       \
    X(nvmlReturn_t, nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned int *index))                \
    X(nvmlReturn_t, nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned int length))     \
    X(nvmlReturn_t, nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned int *minor))          \
    X(nvmlReturn_t, nvmlDeviceGetName, (nvmlDevice_t device, char *name, unsigned int length))     \
    X(nvmlReturn_t, nvmlDeviceGetBrand, (nvmlDevice_t device, nvmlBrandType_t *type))              \
    X(nvmlReturn_t, nvmlDeviceGetArchitecture,                                                     \
      (nvmlDevice_t device, nvmlDeviceArchitecture_t *arch))                                       \
    X(nvmlReturn_t, nvmlDeviceGetCudaComputeCapability,                                            \
      (nvmlDevice_t device, int *major, int *minor))                                               \
    X(nvmlReturn_t, nvmlDeviceGetSerial, (nvmlDevice_t device, char *serial, unsigned int length)) \
    X(nvmlReturn_t, nvmlDeviceGetBoardId, (nvmlDevice_t device, unsigned int *board_id))           \
    X(nvmlReturn_t, nvmlDeviceGetBoardPartNumber,                                                  \
      (nvmlDevice_t device, char *part_number, unsigned int length))                               \
    X(nvmlReturn_t, nvmlDeviceGetVbiosVersion,                                                     \
      (nvmlDevice_t device, char *version, unsigned int length))                                   \
    X(nvmlReturn_t, nvmlDeviceGetInforomImageVersion,                                              \
      (nvmlDevice_t device, char *version, unsigned int length))                                   \
    X(nvmlReturn_t, nvmlDeviceGetGspFirmwareVersion, (nvmlDevice_t device, char *version))         \
    X(nvmlReturn_t, nvmlDeviceGetDisplayMode, (nvmlDevice_t device, nvmlEnableState_t *mode))      \
    X(nvmlReturn_t, nvmlDeviceGetDisplayActive, (nvmlDevice_t device, nvmlEnableState_t *active))  \
    X(nvmlReturn_t, nvmlDeviceGetPciInfo, (nvmlDevice_t device, nvmlPciInfo_t *pci))               \
    X(nvmlReturn_t, nvmlDeviceGetPciInfo_v2, (nvmlDevice_t device, nvmlPciInfo_t *pci))            \
    X(nvmlReturn_t, nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t *pci))            \
    X(nvmlReturn_t, nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t device, unsigned int *gen))  \
    X(nvmlReturn_t, nvmlDeviceGetGpuMaxPcieLinkGeneration,                                         \
      (nvmlDevice_t device, unsigned int *gen))                                                    \
    X(nvmlReturn_t, nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t device, unsigned int *width))     \
    X(nvmlReturn_t, nvmlDeviceGetCurrPcieLinkGeneration,                                           \
      (nvmlDevice_t device, unsigned int *gen))                                                    \
    X(nvmlReturn_t, nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t device, unsigned int *width))    \
    X(nvmlReturn_t, nvmlDeviceGetPcieThroughput,                                                   \
      (nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *kb_per_s))                \
    X(nvmlReturn_t, nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t device, unsigned int *value))    \
    X(nvmlReturn_t, nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t *memory))          \
    X(nvmlReturn_t, nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, nvmlMemory_v2_t *memory))    \
    X(nvmlReturn_t, nvmlDeviceGetBAR1MemoryInfo, (nvmlDevice_t device, nvmlBAR1Memory_t *memory))  \
    X(nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses,                                          \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                     \
    X(nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses_v2,                                       \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos))                     \
    X(nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses_v3,                                       \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                        \
    X(nvmlReturn_t, nvmlDeviceGetGraphicsRunningProcesses,                                         \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                     \
    X(nvmlReturn_t, nvmlDeviceGetGraphicsRunningProcesses_v2,                                      \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos))                     \
    X(nvmlReturn_t, nvmlDeviceGetGraphicsRunningProcesses_v3,                                      \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                        \
    X(nvmlReturn_t, nvmlDeviceGetMPSComputeRunningProcesses,                                       \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                     \
    X(nvmlReturn_t, nvmlDeviceGetMPSComputeRunningProcesses_v2,                                    \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos))                     \
    X(nvmlReturn_t, nvmlDeviceGetMPSComputeRunningProcesses_v3,                                    \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                        \
    X(nvmlReturn_t, nvmlDeviceGetProcessUtilization,                                               \
      (nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count,          \
       unsigned long long last_seen))                                                              \
    X(nvmlReturn_t, nvmlDeviceGetUtilizationRates,                                                 \
      (nvmlDevice_t device, nvmlUtilization_t *utilization))                                       \
    X(nvmlReturn_t, nvmlDeviceGetEncoderUtilization,                                               \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                       \
    X(nvmlReturn_t, nvmlDeviceGetDecoderUtilization,                                               \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                       \
    X(nvmlReturn_t, nvmlDeviceGetJpgUtilization,                                                   \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                       \
    X(nvmlReturn_t, nvmlDeviceGetOfaUtilization,                                                   \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                       \
    X(nvmlReturn_t, nvmlDeviceGetEncoderStats,                                                     \
      (nvmlDevice_t device, unsigned int *sessions, unsigned int *fps, unsigned int *latency_us))  \
    X(nvmlReturn_t, nvmlDeviceGetClockInfo,                                                        \
      (nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz))                              \
    X(nvmlReturn_t, nvmlDeviceGetMaxClockInfo,                                                     \
      (nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz))                              \
    X(nvmlReturn_t, nvmlDeviceGetCurrentClocksEventReasons,                                        \
      (nvmlDevice_t device, unsigned long long *reasons))                                          \
    X(nvmlReturn_t, nvmlDeviceGetSupportedClocksEventReasons,                                      \
      (nvmlDevice_t device, unsigned long long *reasons))                                          \
    X(nvmlReturn_t, nvmlDeviceGetCurrentClocksThrottleReasons,                                     \
      (nvmlDevice_t device, unsigned long long *reasons))                                          \
    X(nvmlReturn_t, nvmlDeviceGetSupportedClocksThrottleReasons,                                   \
      (nvmlDevice_t device, unsigned long long *reasons))                                          \
    X(nvmlReturn_t, nvmlDeviceGetTemperature,                                                      \
      (nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius))               \
    X(nvmlReturn_t, nvmlDeviceGetTemperatureV,                                                     \
      (nvmlDevice_t device, nvmlTemperature_t *temperature))                                       \
    X(nvmlReturn_t, nvmlDeviceGetTemperatureThreshold,                                             \
      (nvmlDevice_t device, nvmlTemperatureThresholds_t type, unsigned int *celsius))              \
    X(nvmlReturn_t, nvmlDeviceGetMarginTemperature,                                                \
      (nvmlDevice_t device, nvmlMarginTemperature_t *margin))                                      \
    X(nvmlReturn_t, nvmlDeviceGetNumFans, (nvmlDevice_t device, unsigned int *count))              \
    X(nvmlReturn_t, nvmlDeviceGetFanSpeed, (nvmlDevice_t device, unsigned int *percent))           \
    X(nvmlReturn_t, nvmlDeviceGetFanSpeed_v2,                                                      \
      (nvmlDevice_t device, unsigned int fan, unsigned int *percent))                              \
    X(nvmlReturn_t, nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned int *mw))              \
    X(nvmlReturn_t, nvmlDeviceGetTotalEnergyConsumption,                                           \
      (nvmlDevice_t device, unsigned long long *mj))                                               \
    X(nvmlReturn_t, nvmlDeviceGetPowerManagementLimit, (nvmlDevice_t device, unsigned int *mw))    \
    X(nvmlReturn_t, nvmlDeviceGetPowerManagementLimitConstraints,                                  \
      (nvmlDevice_t device, unsigned int *min_mw, unsigned int *max_mw))                           \
    X(nvmlReturn_t, nvmlDeviceGetPowerManagementDefaultLimit,                                      \
      (nvmlDevice_t device, unsigned int *mw))                                                     \
    X(nvmlReturn_t, nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned int *mw))      \
    X(nvmlReturn_t, nvmlDeviceGetPowerManagementMode,                                              \
      (nvmlDevice_t device, nvmlEnableState_t *mode))                                              \
    X(nvmlReturn_t, nvmlDeviceGetPowerState, (nvmlDevice_t device, nvmlPstates_t *state))          \
    X(nvmlReturn_t, nvmlDeviceGetPerformanceState, (nvmlDevice_t device, nvmlPstates_t *state))    \
    X(nvmlReturn_t, nvmlDeviceGetEccMode,                                                          \
      (nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending))               \
    X(nvmlReturn_t, nvmlDeviceGetTotalEccErrors,                                                   \
      (nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,              \
       unsigned long long *count))                                                                 \
    X(nvmlReturn_t, nvmlDeviceGetMemoryErrorCounter,                                               \
      (nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,              \
       nvmlMemoryLocation_t location, unsigned long long *count))                                  \
    X(nvmlReturn_t, nvmlDeviceGetFieldValues,                                                      \
      (nvmlDevice_t device, int count, nvmlFieldValue_t *values))                                  \
    X(nvmlReturn_t, nvmlDeviceGetComputeMode, (nvmlDevice_t device, nvmlComputeMode_t *mode))      \
    X(nvmlReturn_t, nvmlDeviceGetPersistenceMode, (nvmlDevice_t device, nvmlEnableState_t *mode))  \
    X(nvmlReturn_t, nvmlDeviceGetAccountingMode, (nvmlDevice_t device, nvmlEnableState_t *mode))   \
    X(nvmlReturn_t, nvmlDeviceGetAccountingBufferSize, (nvmlDevice_t device, unsigned int *size))  \
    X(nvmlReturn_t, nvmlDeviceGetVirtualizationMode,                                               \
      (nvmlDevice_t device, nvmlGpuVirtualizationMode_t *mode))                                    \
    X(nvmlReturn_t, nvmlDeviceGetAddressingMode,                                                   \
      (nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode))                                     \
    X(nvmlReturn_t, nvmlDeviceGetNumaNodeId, (nvmlDevice_t device, unsigned int *node))            \
    X(nvmlReturn_t, nvmlDeviceGetMigMode,                                                          \
      (nvmlDevice_t device, unsigned int *current, unsigned int *pending))                         \
    X(nvmlReturn_t, nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t device, unsigned int *count))    \
    X(nvmlReturn_t, nvmlDeviceGetMigDeviceHandleByIndex,                                           \
      (nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig))                                \
    X(nvmlReturn_t, nvmlDeviceIsMigDeviceHandle, (nvmlDevice_t device, unsigned int *is_mig))      \
    X(nvmlReturn_t, nvmlDeviceGetDeviceHandleFromMigDeviceHandle,                                  \
      (nvmlDevice_t mig, nvmlDevice_t *device))                                                    \
    X(nvmlReturn_t, nvmlDeviceGetGpuInstanceId, (nvmlDevice_t device, unsigned int *id))           \
    X(nvmlReturn_t, nvmlDeviceGetComputeInstanceId, (nvmlDevice_t device, unsigned int *id))       \
    X(nvmlReturn_t, nvmlDeviceGetAttributes_v2,                                                    \
      (nvmlDevice_t device, nvmlDeviceAttributes_t *attributes))

/* ------------------------------------------------------------------------- layout checks */

#define NVML_CHECK_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)
#define NVML_CHECK_OFFSET(type, field, offset)                                                     \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field)

NVML_CHECK_SIZE(nvmlReturn_t, 4);
NVML_CHECK_SIZE(nvmlPciInfo_t, 68);
NVML_CHECK_OFFSET(nvmlPciInfo_t, domain, 16);
NVML_CHECK_OFFSET(nvmlPciInfo_t, bus, 20);
NVML_CHECK_OFFSET(nvmlPciInfo_t, device, 24);
NVML_CHECK_OFFSET(nvmlPciInfo_t, pciDeviceId, 28);
NVML_CHECK_OFFSET(nvmlPciInfo_t, pciSubSystemId, 32);
NVML_CHECK_OFFSET(nvmlPciInfo_t, busId, 36);
NVML_CHECK_SIZE(nvmlMemory_t, 24);
NVML_CHECK_OFFSET(nvmlMemory_t, free, 8);
NVML_CHECK_OFFSET(nvmlMemory_t, used, 16);
NVML_CHECK_SIZE(nvmlMemory_v2_t, 40);
NVML_CHECK_OFFSET(nvmlMemory_v2_t, total, 8);
NVML_CHECK_OFFSET(nvmlMemory_v2_t, reserved, 16);
NVML_CHECK_OFFSET(nvmlMemory_v2_t, free, 24);
NVML_CHECK_OFFSET(nvmlMemory_v2_t, used, 32);
_Static_assert(nvmlMemory_v2 == 0x02000028u, "nvmlMemory_v2");
NVML_CHECK_SIZE(nvmlBAR1Memory_t, 24);
NVML_CHECK_OFFSET(nvmlBAR1Memory_t, bar1Free, 8);
NVML_CHECK_OFFSET(nvmlBAR1Memory_t, bar1Used, 16);
NVML_CHECK_SIZE(nvmlProcessInfo_v1_t, 16);
NVML_CHECK_OFFSET(nvmlProcessInfo_v1_t, usedGpuMemory, 8);
NVML_CHECK_SIZE(nvmlProcessInfo_v2_t, 24);
NVML_CHECK_OFFSET(nvmlProcessInfo_v2_t, usedGpuMemory, 8);
NVML_CHECK_OFFSET(nvmlProcessInfo_v2_t, gpuInstanceId, 16);
NVML_CHECK_OFFSET(nvmlProcessInfo_v2_t, computeInstanceId, 20);
NVML_CHECK_SIZE(nvmlProcessInfo_r535_t, 32);
NVML_CHECK_OFFSET(nvmlProcessInfo_r535_t, usedGpuMemory, 8);
NVML_CHECK_OFFSET(nvmlProcessInfo_r535_t, gpuInstanceId, 16);
NVML_CHECK_OFFSET(nvmlProcessInfo_r535_t, computeInstanceId, 20);
NVML_CHECK_OFFSET(nvmlProcessInfo_r535_t, usedGpuCcProtectedMemory, 24);
NVML_CHECK_SIZE(nvmlProcessUtilizationSample_t, 32);
NVML_CHECK_OFFSET(nvmlProcessUtilizationSample_t, timeStamp, 8);
NVML_CHECK_OFFSET(nvmlProcessUtilizationSample_t, smUtil, 16);
NVML_CHECK_OFFSET(nvmlProcessUtilizationSample_t, memUtil, 20);
NVML_CHECK_OFFSET(nvmlProcessUtilizationSample_t, encUtil, 24);
NVML_CHECK_OFFSET(nvmlProcessUtilizationSample_t, decUtil, 28);
NVML_CHECK_SIZE(nvmlUtilization_t, 8);
NVML_CHECK_OFFSET(nvmlUtilization_t, memory, 4);
NVML_CHECK_SIZE(nvmlTemperature_t, 12);
NVML_CHECK_OFFSET(nvmlTemperature_t, sensorType, 4);
NVML_CHECK_OFFSET(nvmlTemperature_t, temperature, 8);
_Static_assert(nvmlTemperature_v1 == 0x0100000cu, "nvmlTemperature_v1");
NVML_CHECK_SIZE(nvmlMarginTemperature_t, 8);
NVML_CHECK_OFFSET(nvmlMarginTemperature_t, marginTemperature, 4);
_Static_assert(nvmlMarginTemperature_v1 == 0x01000008u, "nvmlMarginTemperature_v1");
NVML_CHECK_SIZE(nvmlDeviceAddressingMode_t, 8);
NVML_CHECK_OFFSET(nvmlDeviceAddressingMode_t, value, 4);
_Static_assert(nvmlDeviceAddressingMode_v1 == 0x01000008u, "nvmlDeviceAddressingMode_v1");
NVML_CHECK_SIZE(nvmlDeviceAttributes_t, 40);
NVML_CHECK_OFFSET(nvmlDeviceAttributes_t, sharedCopyEngineCount, 4);
NVML_CHECK_OFFSET(nvmlDeviceAttributes_t, sharedDecoderCount, 8);
NVML_CHECK_OFFSET(nvmlDeviceAttributes_t, sharedEncoderCount, 12);
NVML_CHECK_OFFSET(nvmlDeviceAttributes_t, sharedJpegCount, 16);
NVML_CHECK_OFFSET(nvmlDeviceAttributes_t, sharedOfaCount, 20);
NVML_CHECK_OFFSET(nvmlDeviceAttributes_t, gpuInstanceSliceCount, 24);
NVML_CHECK_OFFSET(nvmlDeviceAttributes_t, computeInstanceSliceCount, 28);
NVML_CHECK_OFFSET(nvmlDeviceAttributes_t, memorySizeMB, 32);
NVML_CHECK_SIZE(nvmlFieldValue_t, 40);
NVML_CHECK_OFFSET(nvmlFieldValue_t, scopeId, 4);
NVML_CHECK_OFFSET(nvmlFieldValue_t, timestamp, 8);
NVML_CHECK_OFFSET(nvmlFieldValue_t, latencyUsec, 16);
NVML_CHECK_OFFSET(nvmlFieldValue_t, valueType, 24);
NVML_CHECK_OFFSET(nvmlFieldValue_t, nvmlReturn, 28);
NVML_CHECK_OFFSET(nvmlFieldValue_t, value, 32);

#endif
