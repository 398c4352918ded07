/* The questions. Most come from the rows of answers.def, the odd ones are written out as they are
 * in nvml.c. Of several that fill a slot the first is taken whose function the driver has. */
#include "sim/record.h"

#define SIM_TEXT(function, slot)                                                                   \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        return c->api->function(c->device, c->text, sizeof(c->text));                              \
    }
#define SIM_OUT(function, slot, type)                                                              \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        type out = (type)0;                                                                        \
        nvmlReturn_t code = c->api->function(c->device, &out);                                     \
        c->numbers[0] = (uint64_t)out;                                                             \
        return code;                                                                               \
    }
#define SIM_OUT2(function, slot, slot2, type)                                                      \
    _Static_assert(SIM_##slot2 == SIM_##slot + 1, "the slots of a call follow each other");        \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        type out = (type)0, out2 = (type)0;                                                        \
        nvmlReturn_t code = c->api->function(c->device, &out, &out2);                              \
        c->numbers[0] = (uint64_t)out;                                                             \
        c->numbers[1] = (uint64_t)out2;                                                            \
        return code;                                                                               \
    }
#define SIM_KEYED(function, arg, count, slot, type)                                                \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        type out = (type)0;                                                                        \
        nvmlReturn_t code = c->api->function(c->device, (arg)c->key, &out);                        \
        c->numbers[0] = (uint64_t)out;                                                             \
        return code;                                                                               \
    }
#define SIM_ENGINE(function, slot)                                                                 \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        unsigned int out = 0, period = 0;                                                          \
        nvmlReturn_t code = c->api->function(c->device, &out, &period);                            \
        c->numbers[0] = out;                                                                       \
        return code;                                                                               \
    }
#include "sim/answers.def"

/* ------------------------------------------------------------------------- the odd ones */

static nvmlReturn_t ask_nvmlDeviceGetGspFirmwareVersion(struct rec_call *c)
{
    return c->api->nvmlDeviceGetGspFirmwareVersion(c->device, c->text);
}

static nvmlReturn_t ask_nvmlDeviceGetMemoryInfo_v2(struct rec_call *c)
{
    nvmlMemory_v2_t m = {.version = nvmlMemory_v2};
    nvmlReturn_t code = c->api->nvmlDeviceGetMemoryInfo_v2(c->device, &m);
    c->numbers[0] = m.total;
    c->numbers[1] = m.reserved;
    c->numbers[2] = m.used;
    c->numbers[3] = m.free;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetMemoryInfo(struct rec_call *c)
{
    nvmlMemory_t m = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetMemoryInfo(c->device, &m);
    c->numbers[0] = m.total;
    c->unknown = 1u << 1;
    c->numbers[2] = m.used;
    c->numbers[3] = m.free;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetBAR1MemoryInfo(struct rec_call *c)
{
    nvmlBAR1Memory_t m = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetBAR1MemoryInfo(c->device, &m);
    c->numbers[0] = m.bar1Total;
    c->numbers[1] = m.bar1Used;
    c->numbers[2] = m.bar1Free;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetUtilizationRates(struct rec_call *c)
{
    nvmlUtilization_t u = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetUtilizationRates(c->device, &u);
    c->numbers[0] = u.gpu;
    c->numbers[1] = u.memory;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetEncoderStats(struct rec_call *c)
{
    unsigned int sessions = 0, fps = 0, latency_us = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetEncoderStats(c->device, &sessions, &fps, &latency_us);
    c->numbers[0] = sessions;
    c->numbers[1] = fps;
    c->numbers[2] = latency_us;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetTemperatureV(struct rec_call *c)
{
    nvmlTemperature_t t = {.version = nvmlTemperature_v1, .sensorType = NVML_TEMPERATURE_GPU};
    nvmlReturn_t code = c->api->nvmlDeviceGetTemperatureV(c->device, &t);
    c->numbers[0] = (uint64_t)t.temperature;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetMarginTemperature(struct rec_call *c)
{
    nvmlMarginTemperature_t t = {.version = nvmlMarginTemperature_v1};
    nvmlReturn_t code = c->api->nvmlDeviceGetMarginTemperature(c->device, &t);
    c->numbers[0] = (uint64_t)t.marginTemperature;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetAddressingMode(struct rec_call *c)
{
    nvmlDeviceAddressingMode_t mode = {.version = nvmlDeviceAddressingMode_v1};
    nvmlReturn_t code = c->api->nvmlDeviceGetAddressingMode(c->device, &mode);
    c->numbers[0] = mode.value;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetTotalEccErrors(struct rec_call *c)
{
    unsigned long long n = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetTotalEccErrors(
        c->device, (nvmlMemoryErrorType_t)(c->key / 2), (nvmlEccCounterType_t)(c->key % 2), &n);
    c->numbers[0] = n;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetMemoryErrorCounter(struct rec_call *c)
{
    unsigned long long n = 0;
    unsigned int counter = c->key / NVML_MEMORY_LOCATION_COUNT;
    nvmlReturn_t code = c->api->nvmlDeviceGetMemoryErrorCounter(
        c->device, (nvmlMemoryErrorType_t)(counter / 2), (nvmlEccCounterType_t)(counter % 2),
        (nvmlMemoryLocation_t)(c->key % NVML_MEMORY_LOCATION_COUNT), &n);
    c->numbers[0] = n;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetAttributes_v2(struct rec_call *c)
{
    nvmlDeviceAttributes_t a = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetAttributes_v2(c->device, &a);
    const uint64_t numbers[] = {
        a.multiprocessorCount,   a.sharedCopyEngineCount,     a.sharedDecoderCount,
        a.sharedEncoderCount,    a.sharedJpegCount,           a.sharedOfaCount,
        a.gpuInstanceSliceCount, a.computeInstanceSliceCount, a.memorySizeMB,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        c->numbers[i] = numbers[i];
    return code;
}

/* Only what it answers; the lists themselves are read in record.c. */
#define ASK_LIST(function, entry)                                                                  \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        unsigned int count = 0;                                                                    \
        nvmlReturn_t code = c->api->function(c->device, &count, NULL);                             \
        return code == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_SUCCESS : code;                         \
    }
ASK_LIST(nvmlDeviceGetComputeRunningProcesses_v3, 3)
ASK_LIST(nvmlDeviceGetComputeRunningProcesses_v2, 2)
ASK_LIST(nvmlDeviceGetComputeRunningProcesses, 1)
ASK_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 3)
ASK_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 2)
ASK_LIST(nvmlDeviceGetGraphicsRunningProcesses, 1)
ASK_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 3)
ASK_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 2)
ASK_LIST(nvmlDeviceGetMPSComputeRunningProcesses, 1)

/* Without samples it says NOT_FOUND: that is an empty list. */
static nvmlReturn_t ask_nvmlDeviceGetProcessUtilization(struct rec_call *c)
{
    unsigned int count = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetProcessUtilization(c->device, NULL, &count, 0);
    bool works = code == NVML_ERROR_INSUFFICIENT_SIZE || code == NVML_ERROR_NOT_FOUND;
    return works ? NVML_SUCCESS : code;
}

/* Whether there are series at all; which of them is another question. */
static nvmlReturn_t ask_nvmlDeviceGetSamples(struct rec_call *c)
{
    nvmlValueType_t type;
    unsigned int count = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetSamples(c->device, NVML_GPU_UTILIZATION_SAMPLES, 0,
                                                     &type, &count, NULL);
    return code == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : code;
}

static nvmlReturn_t ask_nvmlGpmSampleGet(struct rec_call *c)
{
    nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
    nvmlGpmSample_t sample;
    if (!c->api->nvmlGpmQueryDeviceSupport || !c->api->nvmlGpmSampleAlloc ||
        !c->api->nvmlGpmSampleFree)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t code = c->api->nvmlGpmQueryDeviceSupport(c->device, &support);
    if (code == NVML_SUCCESS && !support.isSupportedDevice)
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS)
        code = c->api->nvmlGpmSampleAlloc(&sample);
    if (code != NVML_SUCCESS)
        return code;
    code = c->api->nvmlGpmSampleGet(c->device, sample);
    (void)c->api->nvmlGpmSampleFree(sample);
    return code;
}

/* ------------------------------------------------------------------------- the table */

#define ROW(function, slot, values, keys)                                                          \
    {SIM_FN_##function, SIM_##slot, values, keys, ask_##function},

const struct rec_probe rec_probes[] = {
#define SIM_TEXT(function, slot) ROW(function, slot, 1, 1)
#define SIM_OUT(function, slot, type) ROW(function, slot, 1, 1)
#define SIM_OUT2(function, slot, slot2, type) ROW(function, slot, 2, 1)
#define SIM_KEYED(function, arg, count, slot, type) ROW(function, slot, 1, (unsigned int)(count))
#define SIM_ENGINE(function, slot) ROW(function, slot, 1, 1)
#include "sim/answers.def"
    ROW(nvmlDeviceGetGspFirmwareVersion, GSP, 1, 1) ROW(nvmlDeviceGetMemoryInfo_v2, MEM_TOTAL, 4, 1)
        ROW(nvmlDeviceGetMemoryInfo, MEM_TOTAL, 4,
            1) ROW(nvmlDeviceGetBAR1MemoryInfo, BAR1_TOTAL, 3,
                   1) ROW(nvmlDeviceGetUtilizationRates, UTIL_GPU, 2,
                          1) ROW(nvmlDeviceGetEncoderStats, ENC_SESSIONS, 3,
                                 1) ROW(nvmlDeviceGetTemperatureV, TEMP, 1,
                                        1) ROW(nvmlDeviceGetMarginTemperature, MARGIN, 1,
                                               1) ROW(nvmlDeviceGetAddressingMode, ADDRESSING, 1, 1)
            ROW(nvmlDeviceGetTotalEccErrors, ECC_TOTAL, 1,
                4) ROW(nvmlDeviceGetMemoryErrorCounter, ECC_AT, 1, 4 * NVML_MEMORY_LOCATION_COUNT)
                ROW(nvmlDeviceGetAttributes_v2, ATTR_SM,
                    9, 1) ROW(nvmlDeviceGetComputeRunningProcesses_v3, LIST_COMPUTE, 1,
                              1) ROW(nvmlDeviceGetComputeRunningProcesses_v2, LIST_COMPUTE, 1, 1)
                    ROW(nvmlDeviceGetComputeRunningProcesses, LIST_COMPUTE, 1,
                        1) ROW(nvmlDeviceGetGraphicsRunningProcesses_v3, LIST_GRAPHICS, 1, 1)
                        ROW(nvmlDeviceGetGraphicsRunningProcesses_v2, LIST_GRAPHICS, 1, 1)
                            ROW(nvmlDeviceGetGraphicsRunningProcesses, LIST_GRAPHICS, 1, 1)
                                ROW(nvmlDeviceGetMPSComputeRunningProcesses_v3, LIST_MPS, 1, 1)
                                    ROW(nvmlDeviceGetMPSComputeRunningProcesses_v2, LIST_MPS, 1, 1)
                                        ROW(nvmlDeviceGetMPSComputeRunningProcesses, LIST_MPS, 1, 1)
                                            ROW(nvmlDeviceGetProcessUtilization, PROCESS_UTIL, 1, 1)
                                                ROW(nvmlDeviceGetSamples, SAMPLES, 1, 1)
                                                    ROW(nvmlGpmSampleGet, GPM, 1, 1)};
const size_t rec_probe_count = GP_ARRAY_LEN(rec_probes);
