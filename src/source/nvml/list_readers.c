/* The simple lists of a GPU, which need one or two driver calls each. */
#include "source/nvml/lists.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- supported clocks ---- */

static nvmlReturn_t ask_memory_clocks(struct nvml_device *device, unsigned *count, void *entries,
                                      const void *ctx)
{
    (void)ctx;
    return NVML_CALL(device, nvmlDeviceGetSupportedMemoryClocks, device->handle, count, entries);
}

static nvmlReturn_t ask_graphics_clocks(struct nvml_device *device, unsigned *count, void *entries,
                                        const void *ctx)
{
    return NVML_CALL(device, nvmlDeviceGetSupportedGraphicsClocks, device->handle,
                     *(const unsigned *)ctx, count, entries);
}

static nvmlReturn_t add_clocks(struct nvml_rows *rows, unsigned memory_mhz,
                               const struct nvml_buffer *graphics)
{
    const unsigned *mhz = graphics->entries;
    nvmlReturn_t rc = NVML_SUCCESS;
    for (unsigned i = 0; i < graphics->count && rc == NVML_SUCCESS; i++) {
        if (mhz[i] == 0)
            continue; /* the driver announced more than it wrote; same below */
        rc = nvml_rows_add(rows);
        if (rc != NVML_SUCCESS)
            break;
        nvml_put_number(rows, GP_CLOCK_PAIR_MEMORY, memory_mhz);
        nvml_put_number(rows, GP_CLOCK_PAIR_GRAPHICS, mhz[i]);
    }
    return rc;
}

nvmlReturn_t nvml_list_clocks(struct nvml_rows *rows)
{
    struct nvml_buffer memory = {.entry_bytes = sizeof(unsigned)};
    struct nvml_buffer graphics = {.entry_bytes = sizeof(unsigned)};
    nvmlReturn_t rc = nvml_fetch(rows->device, &memory, 16, ask_memory_clocks, NULL);
    unsigned count = rc == NVML_SUCCESS ? memory.count : 0;
    const unsigned *memory_mhz = memory.entries;
    for (unsigned i = 0; i < count && rc == NVML_SUCCESS; i++) {
        rc = nvml_fetch(rows->device, &graphics, 256, ask_graphics_clocks, &memory_mhz[i]);
        if (rc == NVML_SUCCESS)
            rc = add_clocks(rows, memory_mhz[i], &graphics);
        else if (rc == NVML_ERROR_NOT_FOUND)
            rc = NVML_SUCCESS; /* the driver no longer knows its own memory clock */
    }
    free(memory.entries);
    free(graphics.entries);
    return rc;
}

/* ---- retired pages ---- */

/* The first half of the buffer has the addresses, the second the times. */
static nvmlReturn_t ask_pages(struct nvml_device *device, unsigned *count, void *entries,
                              const void *ctx)
{
    nvmlPageRetirementCause_t cause = *(const nvmlPageRetirementCause_t *)ctx;
    unsigned long long *addresses = entries;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetRetiredPages_v2, device->handle, cause, count,
                                addresses, addresses + *count);
    return rc == NVML_ERROR_FUNCTION_NOT_FOUND ? NVML_CALL(device, nvmlDeviceGetRetiredPages,
                                                           device->handle, cause, count, addresses)
                                               : rc;
}

static void put_time(const struct nvml_rows *rows, enum gp_metric m, uint64_t wall_ns)
{
    char text[GP_RFC3339_SIZE];
    if (wall_ns == 0 || wall_ns > INT64_MAX)
        return;
    gp_clock_rfc3339(wall_ns, text);
    nvml_put_text(rows, m, text);
}

static nvmlReturn_t add_pages(struct nvml_rows *rows, const struct nvml_buffer *pages,
                              const char *cause)
{
    const unsigned long long *addresses = pages->entries;
    nvmlReturn_t rc = NVML_SUCCESS;
    for (unsigned i = 0; i < pages->count && rc == NVML_SUCCESS; i++) {
        uint64_t seconds = addresses[pages->capacity + i];
        if (addresses[i] == 0 && seconds == 0)
            continue;
        rc = nvml_rows_add(rows);
        if (rc != NVML_SUCCESS)
            break;
        nvml_put_number(rows, GP_PAGE_ADDRESS, addresses[i]);
        nvml_put_text(rows, GP_PAGE_CAUSE, cause);
        put_time(rows, GP_PAGE_TIME, seconds < UINT32_MAX ? seconds * GP_NS_PER_S : 0);
    }
    return rc;
}

nvmlReturn_t nvml_list_pages(struct nvml_rows *rows)
{
    static const struct {
        nvmlPageRetirementCause_t cause;
        const char *name; /* nvidia-smi's word */
    } causes[] = {{NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, "Single Bit ECC"},
                  {NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR, "Double Bit ECC"}};
    struct nvml_buffer pages = {.entry_bytes = 2 * sizeof(unsigned long long)};
    nvmlReturn_t rc = NVML_SUCCESS;
    for (size_t i = 0; i < GP_ARRAY_LEN(causes) && rc == NVML_SUCCESS; i++) {
        rc = nvml_fetch(rows->device, &pages, 64, ask_pages, &causes[i].cause);
        if (rc == NVML_SUCCESS)
            rc = add_pages(rows, &pages, causes[i].name);
    }
    free(pages.entries);
    return rc;
}

/* ---- accounting ---- */

static nvmlReturn_t ask_accounted(struct nvml_device *device, unsigned *count, void *entries,
                                  const void *ctx)
{
    (void)ctx;
    return NVML_CALL(device, nvmlDeviceGetAccountingPids, device->handle, count, entries);
}

static nvmlReturn_t add_app(struct nvml_rows *rows, unsigned pid)
{
    nvmlAccountingStats_t stats = {0};
    nvmlReturn_t rc =
        NVML_CALL(rows->device, nvmlDeviceGetAccountingStats, rows->device->handle, pid, &stats);
    if (rc == NVML_ERROR_NOT_FOUND)
        return NVML_SUCCESS; /* the driver has dropped it since it was listed */
    if (nvml_return_ends_session(rc))
        return rc;
    nvmlReturn_t added = nvml_rows_add(rows);
    if (added != NVML_SUCCESS)
        return added;
    size_t row = rows->list.count - 1;
    /* All ones: not accounted. */
    nvmlReturn_t gpu = stats.gpuUtilization == UINT32_MAX ? NVML_ERROR_NOT_SUPPORTED : rc;
    nvmlReturn_t mem = stats.memoryUtilization == UINT32_MAX ? NVML_ERROR_NOT_SUPPORTED : rc;
    nvmlReturn_t most = stats.maxMemoryUsage == UINT64_MAX ? NVML_ERROR_NOT_SUPPORTED : rc;
    nvml_put_number(rows, GP_APP_PID, pid);
    nvml_cell_number(rows, row, GP_APP_GPU, gpu, stats.gpuUtilization);
    nvml_cell_number(rows, row, GP_APP_MEMORY, mem, stats.memoryUtilization);
    nvml_cell_number(rows, row, GP_APP_MAX_MEMORY, most, stats.maxMemoryUsage);
    nvml_cell_number(rows, row, GP_APP_TIME, rc, stats.time);
    nvml_cell_text(rows, row, GP_APP_RUNNING, rc, stats.isRunning ? "Yes" : "No");
    if (rc == NVML_SUCCESS && stats.startTime < UINT64_MAX / 1000)
        put_time(rows, GP_APP_START, stats.startTime * 1000);
    return NVML_SUCCESS;
}

nvmlReturn_t nvml_list_apps(struct nvml_rows *rows)
{
    struct nvml_device *device = rows->device;
    struct nvml_buffer pids = {.entry_bytes = sizeof(unsigned)};
    nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetAccountingMode, device->handle, &mode);
    if (rc == NVML_SUCCESS && mode == NVML_FEATURE_DISABLED) {
        rows->list.words = "accounting mode is off; to enable it: gpulse set accounting-mode=on";
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (rc == NVML_SUCCESS)
        rc = nvml_fetch(device, &pids, 256, ask_accounted, NULL);
    const unsigned *pid = pids.entries;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < pids.count; i++)
        rc = pid[i] ? add_app(rows, pid[i]) : NVML_SUCCESS;
    free(pids.entries);
    return rc;
}

/* ---- fans ---- */

static nvmlReturn_t fan_speed(struct nvml_device *device, unsigned fan, unsigned *value)
{
    return NVML_CALL(device, nvmlDeviceGetFanSpeed_v2, device->handle, fan, value);
}

static nvmlReturn_t fan_target(struct nvml_device *device, unsigned fan, unsigned *value)
{
    return NVML_CALL(device, nvmlDeviceGetTargetFanSpeed, device->handle, fan, value);
}

static nvmlReturn_t fan_rpm(struct nvml_device *device, unsigned fan, unsigned *value)
{
    nvmlFanSpeedInfo_t info = {.version = nvmlFanSpeedInfo_v1, .fan = fan};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetFanSpeedRPM, device->handle, &info);
    *value = info.speed;
    return rc;
}

static nvmlReturn_t fan_policy(struct nvml_device *device, unsigned fan, unsigned *value)
{
    return NVML_CALL(device, nvmlDeviceGetFanControlPolicy_v2, device->handle, fan, value);
}

static nvmlReturn_t fan_min(struct nvml_device *device, unsigned fan, unsigned *value)
{
    (void)fan; /* one range for all fans */
    unsigned max;
    return NVML_CALL(device, nvmlDeviceGetMinMaxFanSpeed, device->handle, value, &max);
}

static nvmlReturn_t fan_max(struct nvml_device *device, unsigned fan, unsigned *value)
{
    (void)fan;
    unsigned min;
    return NVML_CALL(device, nvmlDeviceGetMinMaxFanSpeed, device->handle, &min, value);
}

static const struct code_name fan_policies[] = {{0, "Automatic"}, {1, "Manual"}, {0, NULL}};

static const struct {
    enum gp_metric metric;
    nvmlReturn_t (*read)(struct nvml_device *device, unsigned fan, unsigned *value);
    const struct code_name *names;
} fan_columns[] = {
    {GP_FAN_ONE_SPEED, fan_speed, NULL}, {GP_FAN_TARGET, fan_target, NULL},
    {GP_FAN_RPM, fan_rpm, NULL},         {GP_FAN_POLICY, fan_policy, fan_policies},
    {GP_FAN_MIN, fan_min, NULL},         {GP_FAN_MAX, fan_max, NULL},
};

/* Drivers before R510 do not report the number of fans: tries one after the other until one is
 * refused. */
nvmlReturn_t nvml_count_fans(struct nvml_device *device, unsigned *ret)
{
    unsigned percent;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetNumFans, device->handle, ret);
    if (*ret > NVML_MAX_FANS)
        *ret = NVML_MAX_FANS;
    if (rc != NVML_ERROR_FUNCTION_NOT_FOUND)
        return rc;
    for (*ret = 0; *ret < NVML_MAX_FANS; ++*ret) {
        rc = fan_speed(device, *ret, &percent);
        if (rc != NVML_SUCCESS)
            break;
    }
    return *ret > 0 && !nvml_return_ends_session(rc) ? NVML_SUCCESS : rc;
}

nvmlReturn_t nvml_list_fans(struct nvml_rows *rows)
{
    unsigned count = 0;
    nvmlReturn_t rc = nvml_count_fans(rows->device, &count);
    for (unsigned fan = 0; rc == NVML_SUCCESS && fan < count; fan++) {
        rc = nvml_rows_add(rows);
        if (rc != NVML_SUCCESS)
            return rc;
        nvml_put_number(rows, GP_FAN_NUMBER, fan);
        for (size_t i = 0; i < GP_ARRAY_LEN(fan_columns); i++) {
            unsigned value = 0;
            if (!nvml_cell_is_due(rows, fan, fan_columns[i].metric))
                continue;
            nvmlReturn_t one = fan_columns[i].read(rows->device, fan, &value);
            if (nvml_return_ends_session(one))
                return one;
            if (fan_columns[i].names)
                nvml_cell_code(rows, fan, fan_columns[i].metric, one, fan_columns[i].names, value);
            else
                nvml_cell_number(rows, fan, fan_columns[i].metric, one, value);
        }
    }
    return rc;
}

/* ---- sessions ---- */

static nvmlReturn_t ask_encoders(struct nvml_device *device, unsigned *count, void *entries,
                                 const void *ctx)
{
    (void)ctx;
    return NVML_CALL(device, nvmlDeviceGetEncoderSessions, device->handle, count, entries);
}

nvmlReturn_t nvml_list_encoders(struct nvml_rows *rows)
{
    static const struct code_name codecs[] = {{NVML_ENCODER_TYPE_H264, "H.264"},
                                              {NVML_ENCODER_TYPE_HEVC, "HEVC"},
                                              {NVML_ENCODER_TYPE_AV1, "AV1"},
                                              {0, NULL}};
    struct nvml_buffer sessions = {.entry_bytes = sizeof(nvmlEncoderSessionInfo_t)};
    nvmlReturn_t rc = nvml_fetch(rows->device, &sessions, 32, ask_encoders, NULL);
    const nvmlEncoderSessionInfo_t *s = sessions.entries;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < sessions.count; i++, s++) {
        rc = s->pid ? nvml_rows_add(rows) : NVML_SUCCESS;
        if (rc != NVML_SUCCESS || !s->pid)
            continue;
        nvml_put_number(rows, GP_ENCODING_ID, s->sessionId);
        nvml_put_number(rows, GP_ENCODING_PID, s->pid);
        nvml_cell_code(rows, rows->list.count - 1, GP_ENCODING_CODEC, NVML_SUCCESS, codecs,
                       s->codecType);
        nvml_put_number(rows, GP_ENCODING_WIDTH, s->hResolution);
        nvml_put_number(rows, GP_ENCODING_HEIGHT, s->vResolution);
        nvml_put_number(rows, GP_ENCODING_FPS, s->averageFps);
        nvml_put_number(rows, GP_ENCODING_LATENCY, s->averageLatency);
    }
    free(sessions.entries);
    return rc;
}

static nvmlReturn_t ask_captures(struct nvml_device *device, unsigned *count, void *entries,
                                 const void *ctx)
{
    (void)ctx;
    return NVML_CALL(device, nvmlDeviceGetFBCSessions, device->handle, count, entries);
}

nvmlReturn_t nvml_list_captures(struct nvml_rows *rows)
{
    static const struct code_name types[] = {{NVML_FBC_SESSION_TYPE_TOSYS, "ToSys"},
                                             {NVML_FBC_SESSION_TYPE_CUDA, "Cuda"},
                                             {NVML_FBC_SESSION_TYPE_VID, "Vid"},
                                             {NVML_FBC_SESSION_TYPE_HWENC, "HwEnc"},
                                             {0, NULL}};
    struct nvml_buffer sessions = {.entry_bytes = sizeof(nvmlFBCSessionInfo_t)};
    nvmlReturn_t rc = nvml_fetch(rows->device, &sessions, 32, ask_captures, NULL);
    const nvmlFBCSessionInfo_t *s = sessions.entries;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < sessions.count; i++, s++) {
        rc = s->pid ? nvml_rows_add(rows) : NVML_SUCCESS;
        if (rc != NVML_SUCCESS || !s->pid)
            continue;
        nvml_put_number(rows, GP_CAPTURE_ID, s->sessionId);
        nvml_put_number(rows, GP_CAPTURE_PID, s->pid);
        nvml_put_number(rows, GP_CAPTURE_DISPLAY, s->displayOrdinal);
        nvml_cell_code(rows, rows->list.count - 1, GP_CAPTURE_TYPE, NVML_SUCCESS, types,
                       s->sessionType);
        nvml_put_number(rows, GP_CAPTURE_FLAGS, s->sessionFlags);
        nvml_put_number(rows, GP_CAPTURE_MAX_WIDTH, s->hMaxResolution);
        nvml_put_number(rows, GP_CAPTURE_MAX_HEIGHT, s->vMaxResolution);
        nvml_put_number(rows, GP_CAPTURE_WIDTH, s->hResolution);
        nvml_put_number(rows, GP_CAPTURE_HEIGHT, s->vResolution);
        nvml_put_number(rows, GP_CAPTURE_FPS, s->averageFPS);
        nvml_put_number(rows, GP_CAPTURE_LATENCY, s->averageLatency);
    }
    free(sessions.entries);
    return rc;
}
