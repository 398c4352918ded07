/* The exported functions: most are generated from the rows of answers.def, the special ones are
 * written out. */
#include "sim/driver.h"

#include <string.h>

/* ------------------------------------------------------------------------- from the table */

nvmlReturn_t sim_put_text(const char *text, char *buffer, unsigned int length)
{
    size_t need = strlen(text) + 1;
    if (need > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, need);
    return NVML_SUCCESS;
}

static nvmlReturn_t answer_text(enum sim_function function, nvmlDevice_t device, enum sim_slot slot,
                                char *buffer, unsigned int length)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, buffer != NULL);
    if (code == NVML_SUCCESS) {
        const struct sim_value *v = &call.device->answers[slot];
        code = v->code == NVML_SUCCESS ? sim_put_text(v->text, buffer, length) : v->code;
    }
    return sim_leave(code);
}

nvmlReturn_t sim_answer_numbers(enum sim_function function, nvmlDevice_t device, bool args_ok,
                                const enum sim_slot *slots, size_t count, uint64_t *values)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, args_ok);
    for (size_t i = 0; code == NVML_SUCCESS && i < count; i++)
        code = sim_read(&call, slots[i], &values[i]);
    return sim_leave(code);
}

static nvmlReturn_t answer_number(enum sim_function function, nvmlDevice_t device, bool args_ok,
                                  size_t slot, uint64_t *value)
{
    const enum sim_slot slots[] = {(enum sim_slot)(slot < SIM_SLOT_COUNT ? slot : 0)};
    return sim_answer_numbers(function, device, args_ok, slots, 1, value);
}

enum { WORDS_MAX = 8 };

/* A struct of u32, after its version word if it has one, which is checked before anything is
 * written. */
static nvmlReturn_t answer_words(enum sim_function function, nvmlDevice_t device,
                                 unsigned int *words, unsigned int version, enum sim_slot first,
                                 enum sim_slot last)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, words != NULL);
    if (code == NVML_SUCCESS && version && words[0] != version)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const size_t count = (size_t)(last - first) + 1;
    uint64_t read[WORDS_MAX];
    for (size_t i = 0; code == NVML_SUCCESS && i < count; i++)
        code = sim_read(&call, first + (enum sim_slot)i, &read[i]);
    for (size_t i = 0; code == NVML_SUCCESS && i < count; i++)
        words[(version ? 1 : 0) + i] = (unsigned int)read[i];
    return sim_leave(code);
}

/* The averaging period of engines. */
enum { ENGINE_PERIOD_US = 167000 };

#define SIM_TEXT(function, slot)                                                                   \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, char *buffer, unsigned int length)       \
    {                                                                                              \
        return answer_text(SIM_FN_##function, device, SIM_##slot, buffer, length);                 \
    }
#define SIM_OUT(function, slot, type)                                                              \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out)                               \
    {                                                                                              \
        uint64_t v;                                                                                \
        nvmlReturn_t code = answer_number(SIM_FN_##function, device, out != NULL, SIM_##slot, &v); \
        if (code == NVML_SUCCESS)                                                                  \
            *out = (type)v;                                                                        \
        return code;                                                                               \
    }
#define SIM_OUT2(function, slot, slot2, type)                                                      \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out, type *out2)                   \
    {                                                                                              \
        static const enum sim_slot slots[] = {SIM_##slot, SIM_##slot2};                            \
        uint64_t v[2];                                                                             \
        nvmlReturn_t code =                                                                        \
            sim_answer_numbers(SIM_FN_##function, device, out && out2, slots, 2, v);               \
        if (code == NVML_SUCCESS) {                                                                \
            *out = (type)v[0];                                                                     \
            *out2 = (type)v[1];                                                                    \
        }                                                                                          \
        return code;                                                                               \
    }
#define SIM_KEYED(function, arg, count, slot, type)                                                \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, arg key, type *out)                      \
    {                                                                                              \
        uint64_t v;                                                                                \
        nvmlReturn_t code =                                                                        \
            answer_number(SIM_FN_##function, device, out && (size_t)key < (size_t)(count),         \
                          (size_t)SIM_##slot + (size_t)key, &v);                                   \
        if (code == NVML_SUCCESS)                                                                  \
            *out = (type)v;                                                                        \
        return code;                                                                               \
    }
#define SIM_ENGINE(function, slot)                                                                 \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *out, unsigned int *period) \
    {                                                                                              \
        uint64_t v;                                                                                \
        nvmlReturn_t code =                                                                        \
            answer_number(SIM_FN_##function, device, out && period, SIM_##slot, &v);               \
        if (code == NVML_SUCCESS) {                                                                \
            *out = (unsigned int)v;                                                                \
            *period = ENGINE_PERIOD_US;                                                            \
        }                                                                                          \
        return code;                                                                               \
    }
#define SIM_TEXT_KEYED(function, arg, count, slot)                                                 \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, arg key, char *buffer,                   \
                                     unsigned int length)                                          \
    {                                                                                              \
        size_t offset = (size_t)key < (size_t)(count) ? (size_t)key : 0;                           \
        return answer_text(SIM_FN_##function, device, (enum sim_slot)(SIM_##slot + offset),        \
                           (size_t)key < (size_t)(count) ? buffer : NULL, length);                 \
    }
#define SIM_WORDS(function, type, version, first, last)                                            \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out)                               \
    {                                                                                              \
        return answer_words(SIM_FN_##function, device, (unsigned int *)out, version, SIM_##first,  \
                            SIM_##last);                                                           \
    }                                                                                              \
    _Static_assert(SIM_##last - SIM_##first < WORDS_MAX, #function);
#include "sim/answers.def"

/* The same clocks as those of the dedicated calls. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type,
                                           nvmlClockId_t id, unsigned int *mhz)
{
    static const enum sim_slot first[NVML_CLOCK_ID_COUNT] = {
        [NVML_CLOCK_ID_CURRENT] = SIM_CLOCK_GRAPHICS,
        [NVML_CLOCK_ID_APP_CLOCK_TARGET] = SIM_APP_CLOCK_GRAPHICS,
        [NVML_CLOCK_ID_APP_CLOCK_DEFAULT] = SIM_DEFAULT_APP_CLOCK_GRAPHICS,
        [NVML_CLOCK_ID_CUSTOMER_BOOST_MAX] = SIM_BOOST_CLOCK_GRAPHICS,
    };
    uint64_t v;
    bool known = type < NVML_CLOCK_COUNT && id < NVML_CLOCK_ID_COUNT;
    nvmlReturn_t code = answer_number(SIM_FN_nvmlDeviceGetClock, device, mhz && known,
                                      known ? (size_t)first[id] + type : 0, &v);
    if (code == NVML_SUCCESS)
        *mhz = (unsigned int)v;
    return code;
}

/* Without a length: the buffer must have NVML_GSP_FIRMWARE_VERSION_BUF_SIZE bytes. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    return answer_text(SIM_FN_nvmlDeviceGetGspFirmwareVersion, device, SIM_GSP, version,
                       NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

/* ------------------------------------------------------------------------- system */

static nvmlReturn_t system_text(enum sim_function function, bool driver, char *buffer,
                                unsigned int length)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, buffer != NULL);
    if (code == NVML_SUCCESS) {
        const char *text = driver ? call.machine->driver_version : call.machine->nvml_version;
        code = text ? sim_put_text(text, buffer, length) : NVML_ERROR_NOT_SUPPORTED;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    return system_text(SIM_FN_nvmlSystemGetDriverVersion, true, version, length);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    if (version && *sim_failed_library())
        return sim_put_text(sim_failed_library(), version, length);
    return system_text(SIM_FN_nvmlSystemGetNVMLVersion, false, version, length);
}

static nvmlReturn_t cuda_version(enum sim_function function, int *version)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, version != NULL);
    if (code == NVML_SUCCESS && call.machine->cuda_version == 0)
        code = NVML_ERROR_LIBRARY_NOT_FOUND;
    if (code == NVML_SUCCESS)
        *version = call.machine->cuda_version;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return cuda_version(SIM_FN_nvmlSystemGetCudaDriverVersion, version);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuda_version(SIM_FN_nvmlSystemGetCudaDriverVersion_v2, version);
}

/* ------------------------------------------------------------------------- memory */

/* Zeros if it is not supported, like GB10. */
static nvmlReturn_t read_memory(struct sim_call *call, struct sim_memory *ret)
{
    *ret = (struct sim_memory){0};
    nvmlReturn_t code = sim_live_memory(&call->live, call->device, ret);
    if (code == NVML_SUCCESS && call->absurd)
        *ret = (struct sim_memory){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct sim_call call;
    struct sim_memory m;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetMemoryInfo, device, memory != NULL);
    if (code == NVML_SUCCESS) {
        code = read_memory(&call, &m);
        /* Since R510 this call counts the driver's reservation as used; before, the reservation was
         * not reported. */
        bool whole = call.absurd || sim_driver_is(call.machine->driver, 510, 0);
        memory->total = whole ? m.total : m.total - m.reserved;
        memory->free = m.free;
        memory->used = call.absurd || !whole ? m.used : m.used + m.reserved;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct sim_call call;
    struct sim_memory m;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetMemoryInfo_v2, device, memory != NULL);
    if (code == NVML_SUCCESS && memory->version != nvmlMemory_v2)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS) {
        code = read_memory(&call, &m);
        memory->total = m.total;
        memory->reserved = m.reserved;
        memory->free = m.free;
        memory->used = m.used;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    static const enum sim_slot slots[] = {SIM_BAR1_TOTAL, SIM_BAR1_FREE, SIM_BAR1_USED};
    uint64_t v[3];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetBAR1MemoryInfo, device,
                                           memory != NULL, slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS)
        *memory = (nvmlBAR1Memory_t){.bar1Total = v[0], .bar1Free = v[1], .bar1Used = v[2]};
    return code;
}

/* ------------------------------------------------------------------------- readings */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                      nvmlUtilization_t *utilization)
{
    static const enum sim_slot slots[] = {SIM_UTIL_GPU, SIM_UTIL_MEM};
    uint64_t v[2];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetUtilizationRates, device,
                                           utilization != NULL, slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS)
        *utilization = (nvmlUtilization_t){.gpu = (unsigned int)v[0], .memory = (unsigned int)v[1]};
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions,
                                                  unsigned int *fps, unsigned int *latency_us)
{
    static const enum sim_slot slots[] = {SIM_ENC_SESSIONS, SIM_ENC_FPS, SIM_ENC_LATENCY};
    uint64_t v[3];
    nvmlReturn_t code =
        sim_answer_numbers(SIM_FN_nvmlDeviceGetEncoderStats, device, sessions && fps && latency_us,
                           slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS) {
        *sessions = (unsigned int)v[0];
        *fps = (unsigned int)v[1];
        *latency_us = (unsigned int)v[2];
    }
    return code;
}

/* A struct of a version word and one slot: the word is checked before anything is written. */
static nvmlReturn_t versioned_number(enum sim_function function, nvmlDevice_t device,
                                     const unsigned int *version, unsigned int expected,
                                     enum sim_slot slot, uint64_t *value)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, version != NULL);
    if (code == NVML_SUCCESS && *version != expected)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = sim_read(&call, slot, value);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device,
                                                  nvmlTemperature_t *temperature)
{
    uint64_t v;
    nvmlReturn_t code = versioned_number(SIM_FN_nvmlDeviceGetTemperatureV, device,
                                         temperature ? &temperature->version : NULL,
                                         nvmlTemperature_v1, SIM_TEMP, &v);
    if (code == NVML_SUCCESS && temperature->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        temperature->temperature = (int)v;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device,
                                                       nvmlMarginTemperature_t *margin)
{
    uint64_t v;
    nvmlReturn_t code = versioned_number(SIM_FN_nvmlDeviceGetMarginTemperature, device,
                                         margin ? &margin->version : NULL, nvmlMarginTemperature_v1,
                                         SIM_MARGIN, &v);
    if (code == NVML_SUCCESS)
        margin->marginTemperature = (int)v;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan,
                                                 unsigned int *percent)
{
    static const enum sim_slot slots[] = {SIM_FAN, SIM_FANS};
    uint64_t v[2];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetFanSpeed_v2, device, percent != NULL,
                                           slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS && fan >= v[1])
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *percent = (unsigned int)v[0];
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                    nvmlEccCounterType_t counter,
                                                    unsigned long long *count)
{
    uint64_t v;
    bool args_ok =
        count && type < NVML_MEMORY_ERROR_TYPE_COUNT && counter < NVML_ECC_COUNTER_TYPE_COUNT;
    nvmlReturn_t code =
        answer_number(SIM_FN_nvmlDeviceGetTotalEccErrors, device, args_ok,
                      (size_t)SIM_ECC_TOTAL + (size_t)type * 2 + (size_t)counter, &v);
    if (code == NVML_SUCCESS)
        *count = v;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device,
                                                        nvmlMemoryErrorType_t type,
                                                        nvmlEccCounterType_t counter,
                                                        nvmlMemoryLocation_t location,
                                                        unsigned long long *count)
{
    uint64_t v;
    bool args_ok = count && type < NVML_MEMORY_ERROR_TYPE_COUNT &&
                   counter < NVML_ECC_COUNTER_TYPE_COUNT && location < NVML_MEMORY_LOCATION_COUNT;
    size_t offset = ((size_t)type * 2 + (size_t)counter) * NVML_MEMORY_LOCATION_COUNT;
    nvmlReturn_t code = answer_number(SIM_FN_nvmlDeviceGetMemoryErrorCounter, device, args_ok,
                                      (size_t)SIM_ECC_AT + offset + (size_t)location, &v);
    if (code == NVML_SUCCESS)
        *count = v;
    return code;
}
