/* The exported functions that return lists. Each follows the driver's capacity protocol: the count
 * has the caller's room on input and the number of entries on output. If the room is insufficient,
 * nothing is written. */
#include "sim/driver.h"
#include "sim/setting.h"

#include <stdlib.h>

/* Whether there is room for n entries; *count becomes n. The fault "grow" refuses three out of
 * four. */
static nvmlReturn_t offer(struct sim_call *call, size_t n, unsigned int *count)
{
    enum { REFUSALS = 3 };
    unsigned int room = *count;
    bool refuse = call->grow && room > 0 &&
                  atomic_fetch_add(&call->device->grow_turn, 1) % (REFUSALS + 1) < REFUSALS;
    *count = (unsigned int)n;
    if (refuse)
        *count = (n > room ? (unsigned int)n : room) + 2;
    return refuse || n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static const struct sim_rows *rows_of(const struct sim_call *call, enum sim_list list)
{
    static const struct sim_rows none = {.code = NVML_ERROR_NOT_SUPPORTED};
    return call->device->parent ? &none : &call->device->lists.rows[list];
}

/* ------------------------------------------------------------------------- clocks */

/* Parses a text "1980 1965 …", up to the available room; returns the number of numbers. */
static size_t numbers_of(const char *text, unsigned int *out, size_t room)
{
    size_t n = 0;
    char *end;
    for (unsigned long number = strtoul(text, &end, 10); end != text;
         text = end, number = strtoul(text, &end, 10)) {
        if (out && n < room)
            out[n] = (unsigned int)number;
        n++;
    }
    return n;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count,
                                                           unsigned int *clocks)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetSupportedMemoryClocks, device,
                                         count && (clocks || *count == 0));
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_rows *rows = rows_of(&call, SIM_LIST_CLOCKS);
    code = rows->code == NVML_SUCCESS ? offer(&call, rows->count, count) : rows->code;
    for (size_t i = 0; code == NVML_SUCCESS && i < rows->count; i++)
        clocks[i] = (unsigned int)sim_cell_number(rows, i, SIM_CLOCKS_MEMORY, 0);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device,
                                                             unsigned int memory,
                                                             unsigned int *count,
                                                             unsigned int *clocks)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetSupportedGraphicsClocks, device,
                                         count && (clocks || *count == 0));
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_rows *rows = rows_of(&call, SIM_LIST_CLOCKS);
    size_t i = 0;
    while (i < rows->count && sim_cell_number(rows, i, SIM_CLOCKS_MEMORY, 0) != memory)
        i++;
    code = rows->code != NVML_SUCCESS ? rows->code
           : i == rows->count         ? NVML_ERROR_NOT_FOUND
                                      : NVML_SUCCESS;
    if (code == NVML_SUCCESS) {
        const char *text = sim_cell_text(rows, i, SIM_CLOCKS_GRAPHICS);
        unsigned int room = *count;
        code = offer(&call, numbers_of(text, NULL, 0), count);
        if (code == NVML_SUCCESS)
            (void)numbers_of(text, clocks, room);
    }
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- retired pages */

static nvmlReturn_t retired_pages(enum sim_function function, nvmlDevice_t device,
                                  nvmlPageRetirementCause_t cause, unsigned int *count,
                                  unsigned long long *addresses, unsigned long long *times)
{
    struct sim_call call;
    bool args_ok = count && (addresses || *count == 0) && cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT;
    nvmlReturn_t code = sim_enter_device(&call, function, device, args_ok);
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_rows *rows = rows_of(&call, SIM_LIST_PAGES);
    size_t n = 0;
    for (size_t i = 0; i < rows->count; i++)
        n += sim_cell_number(rows, i, SIM_PAGES_CAUSE, 0) == (uint64_t)cause;
    code = rows->code == NVML_SUCCESS ? offer(&call, n, count) : rows->code;
    n = 0;
    for (size_t i = 0; code == NVML_SUCCESS && i < rows->count; i++) {
        if (sim_cell_number(rows, i, SIM_PAGES_CAUSE, 0) != (uint64_t)cause)
            continue;
        addresses[n] = sim_cell_number(rows, i, SIM_PAGES_ADDRESS, 0);
        if (times)
            times[n] = sim_cell_number(rows, i, SIM_PAGES_TIME, 0);
        n++;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device,
                                                  nvmlPageRetirementCause_t cause,
                                                  unsigned int *count,
                                                  unsigned long long *addresses)
{
    return retired_pages(SIM_FN_nvmlDeviceGetRetiredPages, device, cause, count, addresses, NULL);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device,
                                                     nvmlPageRetirementCause_t cause,
                                                     unsigned int *count,
                                                     unsigned long long *addresses,
                                                     unsigned long long *times)
{
    return retired_pages(SIM_FN_nvmlDeviceGetRetiredPages_v2, device, cause, count, addresses,
                         times);
}

/* ------------------------------------------------------------------------- accounting */

/* Whether the driver still has an accounting record: a client may have cleared those of exited
 * processes. */
static bool is_kept(const struct sim_call *call, const struct sim_rows *rows, size_t row)
{
    uint64_t cleared;
    return sim_cell_number(rows, row, SIM_APPS_RUNNING, 0) ||
           !sim_setting_get(&call->live, call->device, SIM_SET_RECORDS_CLEARED, &cleared);
}

/* The next record of a live job on the GPU from *slot on. */
static bool next_account(const struct sim_call *call, size_t *slot, struct sim_account *ret)
{
    while (*slot < SIM_MAX_ACCOUNTS)
        if (sim_state_account(call->live.state, (*slot)++, ret) && ret->gpu == call->device->index)
            return true;
    return false;
}

/* The record of a live job. If there are two, that of the exited process is used even if the other
 * one is requested, like in drivers. */
static bool find_account(const struct sim_call *call, unsigned int pid, struct sim_account *ret)
{
    struct sim_account account;
    bool found = false;
    for (size_t slot = 0; next_account(call, &slot, &account);)
        if (account.pid == pid && (!found || account.end_us)) {
            *ret = account;
            found = true;
        }
    return found;
}

static nvmlAccountingStats_t stats_of(const struct sim_account *account)
{
    return (nvmlAccountingStats_t){
        .gpuUtilization = account->util_pct,
        .memoryUtilization = sim_share_of_memory(account->util_pct),
        .maxMemoryUsage = account->most_bytes,
        .time = account->end_us ? (account->end_us - account->begin_us) / 1000 : 0,
        .startTime = account->begin_us,
        .isRunning = !account->end_us,
    };
}

/* Nobody reports that a job was killed: the next reader detects it. */
static void settle_accounts(const struct sim_call *call)
{
    if (sim_state_lock(call->live.state, NULL) < 0)
        return;
    sim_state_settle_accounts(call->live.state);
    sim_state_unlock(call->live.state);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count,
                                                    unsigned int *pids)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetAccountingPids, device,
                                         count && (pids || *count == 0));
    if (code == NVML_SUCCESS && !sim_live_accounts(&call.live, call.device))
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_rows *rows = rows_of(&call, SIM_LIST_APPS);
    struct sim_account account;
    size_t n = 0;
    settle_accounts(&call);
    for (size_t i = 0; i < rows->count; i++)
        n += is_kept(&call, rows, i);
    for (size_t slot = 0; next_account(&call, &slot, &account);)
        n++;
    size_t room = n;
    code = offer(&call, n, count);
    n = 0;
    for (size_t i = 0; code == NVML_SUCCESS && i < rows->count; i++)
        if (is_kept(&call, rows, i))
            pids[n++] = (unsigned int)sim_cell_number(rows, i, SIM_APPS_PID, 0);
    for (size_t slot = 0; code == NVML_SUCCESS && n < room && next_account(&call, &slot, &account);)
        pids[n++] = account.pid;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                                     nvmlAccountingStats_t *stats)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetAccountingStats, device, stats != NULL);
    if (code == NVML_SUCCESS && !sim_live_accounts(&call.live, call.device))
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_rows *rows = rows_of(&call, SIM_LIST_APPS);
    size_t i = 0;
    while (i < rows->count && sim_cell_number(rows, i, SIM_APPS_PID, 0) != pid)
        i++;
    struct sim_account account = {0};
    if (i == rows->count && find_account(&call, pid, &account)) {
        *stats = stats_of(&account);
        return sim_leave(NVML_SUCCESS);
    }
    bool forgotten = i == rows->count || !is_kept(&call, rows, i) ||
                     sim_cell(rows, i, SIM_APPS_GPU)->code == NVML_ERROR_NOT_FOUND;
    if (forgotten)
        return sim_leave(NVML_ERROR_NOT_FOUND);
    *stats = (nvmlAccountingStats_t){
        .gpuUtilization =
            (unsigned int)sim_cell_number(rows, i, SIM_APPS_GPU, NVML_NOT_AVAILABLE_U32),
        .memoryUtilization =
            (unsigned int)sim_cell_number(rows, i, SIM_APPS_MEM, NVML_NOT_AVAILABLE_U32),
        .maxMemoryUsage = sim_cell_number(rows, i, SIM_APPS_MAX_MEMORY, NVML_NOT_AVAILABLE_U64),
        .time = sim_cell_number(rows, i, SIM_APPS_TIME, 0),
        .startTime = sim_cell_number(rows, i, SIM_APPS_START, 0) * 1000000,
        .isRunning = (unsigned int)sim_cell_number(rows, i, SIM_APPS_RUNNING, 0),
    };
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- fans */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_t *speed)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetFanSpeedRPM, device, speed != NULL);
    if (code == NVML_SUCCESS && speed->version != nvmlFanSpeedInfo_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_rows *rows = rows_of(&call, SIM_LIST_FANS);
    code = rows->code;
    if (code == NVML_SUCCESS && speed->fan >= rows->count)
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        code = sim_cell(rows, speed->fan, SIM_FANS_RPM)->code;
    if (code == NVML_SUCCESS)
        speed->speed = (unsigned int)sim_cell_number(rows, speed->fan, SIM_FANS_RPM, 0);
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- sessions */

static unsigned int number_at(const struct sim_rows *rows, size_t row, enum sim_cell cell)
{
    return (unsigned int)sim_cell_number(rows, row, cell, 0);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int *count,
                                                     nvmlEncoderSessionInfo_t *sessions)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetEncoderSessions, device,
                                         count && (sessions || *count == 0));
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_rows *rows = rows_of(&call, SIM_LIST_ENCODERS);
    code = rows->code == NVML_SUCCESS ? offer(&call, rows->count, count) : rows->code;
    for (size_t i = 0; code == NVML_SUCCESS && i < rows->count; i++)
        sessions[i] = (nvmlEncoderSessionInfo_t){
            .sessionId = number_at(rows, i, SIM_ENCODERS_ID),
            .pid = number_at(rows, i, SIM_ENCODERS_PID),
            .codecType = number_at(rows, i, SIM_ENCODERS_CODEC),
            .hResolution = number_at(rows, i, SIM_ENCODERS_WIDTH),
            .vResolution = number_at(rows, i, SIM_ENCODERS_HEIGHT),
            .averageFps = number_at(rows, i, SIM_ENCODERS_FPS),
            .averageLatency = number_at(rows, i, SIM_ENCODERS_LATENCY),
        };
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int *count,
                                                 nvmlFBCSessionInfo_t *sessions)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetFBCSessions, device,
                                         count && (sessions || *count == 0));
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    const struct sim_rows *rows = rows_of(&call, SIM_LIST_CAPTURES);
    code = rows->code == NVML_SUCCESS ? offer(&call, rows->count, count) : rows->code;
    for (size_t i = 0; code == NVML_SUCCESS && i < rows->count; i++)
        sessions[i] = (nvmlFBCSessionInfo_t){
            .sessionId = number_at(rows, i, SIM_CAPTURES_ID),
            .pid = number_at(rows, i, SIM_CAPTURES_PID),
            .displayOrdinal = number_at(rows, i, SIM_CAPTURES_DISPLAY),
            .sessionType = number_at(rows, i, SIM_CAPTURES_TYPE),
            .sessionFlags = number_at(rows, i, SIM_CAPTURES_FLAGS),
            .hMaxResolution = number_at(rows, i, SIM_CAPTURES_MAX_WIDTH),
            .vMaxResolution = number_at(rows, i, SIM_CAPTURES_MAX_HEIGHT),
            .hResolution = number_at(rows, i, SIM_CAPTURES_WIDTH),
            .vResolution = number_at(rows, i, SIM_CAPTURES_HEIGHT),
            .averageFPS = number_at(rows, i, SIM_CAPTURES_FPS),
            .averageLatency = number_at(rows, i, SIM_CAPTURES_LATENCY),
        };
    return sim_leave(code);
}
