/* A driver whose answers a test dictates, call by call: the module fake-nvml, loaded as the real
 * library is. It exports few functions; all others are missing, as they are from an old driver. */
#ifndef GP_TESTS_FAKE_NVML_H
#define GP_TESTS_FAKE_NVML_H

#include "abi/nvml.h"

#include <stdbool.h>
#include <stddef.h>

/* What is exported. */
#define FAKE_NVML_FUNCTIONS(X)                                                                     \
    X(nvmlInit_v2)                                                                                 \
    X(nvmlShutdown)                                                                                \
    X(nvmlSystemGetDriverVersion)                                                                  \
    X(nvmlSystemGetProcessName)                                                                    \
    X(nvmlDeviceGetCount_v2)                                                                       \
    X(nvmlDeviceGetHandleByIndex_v2)                                                               \
    X(nvmlDeviceGetUUID)                                                                           \
    X(nvmlDeviceGetName)                                                                           \
    X(nvmlDeviceGetMemoryInfo)                                                                     \
    X(nvmlDeviceGetMemoryInfo_v2)                                                                  \
    X(nvmlDeviceGetBAR1MemoryInfo)                                                                 \
    X(nvmlDeviceGetUtilizationRates)                                                               \
    X(nvmlDeviceGetTemperature)                                                                    \
    X(nvmlDeviceGetFanSpeed)                                                                       \
    X(nvmlDeviceGetPowerUsage)                                                                     \
    X(nvmlDeviceGetPowerManagementLimitConstraints)                                                \
    X(nvmlDeviceGetClockInfo)                                                                      \
    X(nvmlDeviceGetCurrPcieLinkWidth)                                                              \
    X(nvmlDeviceGetEccMode)                                                                        \
    X(nvmlDeviceGetFieldValues)                                                                    \
    X(nvmlDeviceGetComputeRunningProcesses_v3)                                                     \
    X(nvmlDeviceGetComputeRunningProcesses_v2)                                                     \
    X(nvmlDeviceGetComputeRunningProcesses)                                                        \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3)                                                    \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3)                                                  \
    X(nvmlDeviceGetProcessUtilization)                                                             \
    X(nvmlDeviceGetProcessesUtilizationInfo)                                                       \
    X(nvmlDeviceGetSamples)                                                                        \
    X(nvmlDeviceGetPcieThroughput)                                                                 \
    X(nvmlDeviceGetTotalEnergyConsumption)                                                         \
    X(nvmlGpmQueryDeviceSupport)                                                                   \
    X(nvmlGpmSampleAlloc)                                                                          \
    X(nvmlGpmSampleFree)                                                                           \
    X(nvmlGpmSampleGet)                                                                            \
    X(nvmlGpmMigSampleGet)                                                                         \
    X(nvmlGpmMetricsGet)                                                                           \
    X(nvmlDeviceGetSupportedMemoryClocks)                                                          \
    X(nvmlDeviceGetSupportedGraphicsClocks)                                                        \
    X(nvmlDeviceGetAccountingMode)                                                                 \
    X(nvmlDeviceGetAccountingPids)                                                                 \
    X(nvmlDeviceGetAccountingStats)                                                                \
    X(nvmlDeviceGetRetiredPages_v2)                                                                \
    X(nvmlDeviceGetNvLinkState)                                                                    \
    X(nvmlDeviceGetTopologyCommonAncestor)                                                         \
    X(nvmlDeviceGetMigMode)                                                                        \
    X(nvmlDeviceGetMaxMigDeviceCount)                                                              \
    X(nvmlDeviceGetMigDeviceHandleByIndex)                                                         \
    X(nvmlDeviceGetGpuInstanceId)                                                                  \
    X(nvmlDeviceGetComputeInstanceId)                                                              \
    X(nvmlDeviceGetGpuFabricInfoV)                                                                 \
    X(nvmlDeviceGetGpuFabricInfo)                                                                  \
    X(nvmlDeviceGetPlatformInfo)                                                                   \
    X(nvmlDeviceGetPciInfoExt)                                                                     \
    X(nvmlDeviceGetPciInfo_v3)                                                                     \
    X(nvmlDeviceGetInforomVersion)                                                                 \
    X(nvmlDeviceValidateInforom)                                                                   \
    X(nvmlDeviceGetLastBBXFlushTime)                                                               \
    X(nvmlDeviceGetPdi)                                                                            \
    X(nvmlDeviceGetGspFirmwareVersion)                                                             \
    X(nvmlDeviceGetDriverModel)                                                                    \
    X(nvmlDeviceGetBridgeChipInfo)                                                                 \
    X(nvmlDeviceGetCapabilities)                                                                   \
    X(nvmlDeviceGetEncoderUtilization)                                                             \
    X(nvmlDeviceGetDecoderUtilization)                                                             \
    X(nvmlDeviceGetEncoderStats)                                                                   \
    X(nvmlDeviceGetRepairStatus)                                                                   \
    X(nvmlDeviceGetRowRemapperHistogram)                                                           \
    X(nvmlDeviceGetRemappedRows)                                                                   \
    X(nvmlDeviceGetMemoryErrorCounter)                                                             \
    X(nvmlDeviceGetSramEccErrorStatus)                                                             \
    X(nvmlDeviceGetDramEncryptionMode)                                                             \
    X(nvmlDeviceGetApplicationsClock)                                                              \
    X(nvmlSystemGetConfComputeSettings)                                                            \
    X(nvmlSystemGetConfComputeState)                                                               \
    X(nvmlSystemGetConfComputeCapabilities)                                                        \
    X(nvmlSystemGetConfComputeGpusReadyState)                                                      \
    X(nvmlDeviceGetAttributes_v2)                                                                  \
    X(nvmlEventSetCreate)                                                                          \
    X(nvmlEventSetFree)                                                                            \
    X(nvmlEventSetWait)                                                                            \
    X(nvmlEventSetWait_v2)                                                                         \
    X(nvmlDeviceGetSupportedEventTypes)                                                            \
    X(nvmlDeviceRegisterEvents)

enum fake_nvml_function {
#define X(name) FAKE_##name,
    FAKE_NVML_FUNCTIONS(X)
#undef X
        FAKE_NVML_COUNT
};

enum {
    FAKE_NVML_GPUS = 2,
    FAKE_NVML_MIGS = 7,
    FAKE_NVML_PROCESSES = 4096,
    FAKE_NVML_SAMPLES = 256,
    FAKE_NVML_EVENTS = 8,
    FAKE_NVML_NUMBERS = 512,
};

/* A GPU, or a MIG instance; handles point to these. */
struct nvmlDevice_st {
    bool present;
    const char *uuid;
    const char *name;
    unsigned gpu_instance;
    unsigned compute_instance;
    bool forbidden; /* its own process lists */
};

struct fake_nvml_list {
    unsigned count;
    unsigned grows;  /* this many entries more at every call */
    unsigned claims; /* the count that is answered, if not 0 */
    nvmlProcessInfo_v2_t entries[FAKE_NVML_PROCESSES];
};

/* A list of numbers: clocks, pids, pages. */
struct fake_nvml_numbers {
    unsigned count, grows, claims; /* as above */
    unsigned entries[FAKE_NVML_NUMBERS];
};

struct fake_nvml {
    unsigned calls[FAKE_NVML_COUNT];
    nvmlReturn_t rc[FAKE_NVML_COUNT]; /* what is answered instead of a value */
    const char *driver_version;
    struct nvmlDevice_st gpus[FAKE_NVML_GPUS];
    struct nvmlDevice_st migs[FAKE_NVML_MIGS]; /* of GPU 0 */
    unsigned gpu_count;
    bool mig_enabled;
    nvmlMemory_v2_t memory;
    nvmlBAR1Memory_t bar1;
    nvmlUtilization_t utilization;
    unsigned temperature, fan, power_mw, limit_max_mw, clock_mhz, pcie_width;
    nvmlFieldValue_t field; /* every field's answer */
    unsigned asked_field;   /* the last one of the last call */
    unsigned asked_scope;   /* of it */
    nvmlGpuFabricInfo_v3_t fabric;
    unsigned fabric_version;      /* the newest that is accepted, if not 0 */
    nvmlReturn_t version_refusal; /* what a newer one is answered with */
    nvmlPlatformInfo_t platform;
    bool platform_v1; /* the newer version is refused */
    nvmlPciInfoExt_t pci;
    unsigned words[5];        /* what calls with several numbers answer */
    unsigned long long count; /* what calls with a long number answer */
    nvmlEccSramErrorStatus_t sram;
    nvmlMemoryLocation_t asked_location;
    const char *text; /* what calls with a text answer */
    unsigned long long energy_mj;
    unsigned encoder_pct, decoder_pct;
    unsigned pcie_kb_per_s;
    nvmlSample_t series[FAKE_NVML_SAMPLES];
    unsigned series_count;
    unsigned series_claimed; /* the count that is announced, if not 0 */
    nvmlValueType_t series_type;
    bool gpm_unsupported;
    double gpm_value;
    nvmlReturn_t gpm_rc;   /* of each metric */
    unsigned gpm_instance; /* asked for last */
    int gpm_samples;       /* allocated and not freed */
    struct fake_nvml_list compute, graphics, mps;
    struct fake_nvml_numbers memory_clocks, graphics_clocks, pids, pages;
    unsigned unknown_clock; /* a memory clock that the driver lists and does not know */
    unsigned forgotten_pid; /* listed, but there is no account of it */
    nvmlAccountingStats_t account;
    unsigned links;      /* as field 91 tells; 0: fields answer as `field` */
    unsigned real_links; /* further ones are wrong arguments */
    unsigned long long link_kib;
    bool wide_entries; /* the _v3 lists write 32 bytes an entry */
    nvmlProcessUtilizationSample_t samples[FAKE_NVML_SAMPLES];
    unsigned sample_count;
    unsigned claimed_samples; /* the count that is answered, if not 0 */
    unsigned long long asked_since_us;
    unsigned long long event_types; /* that are supported */
    unsigned long long
        refused_types;        /* supported, but not taken; together with others not either */
    nvmlDevice_t unknown_gpu; /* its registration is answered UNKNOWN */
    unsigned long long registered[FAKE_NVML_GPUS]; /* in the last set */
    unsigned sets;                                 /* made and not freed */
    nvmlEventData_t events[FAKE_NVML_EVENTS];      /* a wait gives the first, then the next … */
    unsigned event_count;
    unsigned event_next;
    unsigned waited_ms; /* asked for last */
};

/* Exported by the module beside the driver's functions. */
typedef struct fake_nvml *(*fake_nvml_get_fn)(void);
#define FAKE_NVML_GET "gpulse_fake_nvml"

#endif
