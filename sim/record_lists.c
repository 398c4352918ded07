/* The lists of a GPU: clocks, pages, accounted processes, fans, sessions, samples, links, MIG
 * profiles. */
#include "sim/record_internal.h"

#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 5, FIRST_ROOM = 64, MAX_FANS = 16 };

/* A member that is NOT_SUPPORTED is omitted. */
static void set_number(json_t *row, const char *key, nvmlReturn_t code, uint64_t number)
{
    bool fits = code == NVML_SUCCESS && number <= INT64_MAX;
    if (fits)
        (void)json_object_set_new(row, key, json_integer((json_int_t)number));
    else if (code != NVML_SUCCESS && code != NVML_ERROR_NOT_SUPPORTED &&
             code != NVML_ERROR_FUNCTION_NOT_FOUND)
        (void)json_object_set_new(row, key, rec_doc_code(code));
}

static nvmlDevice_t device_of(const struct recorder *r, unsigned int index)
{
    return r->devices[index].handle;
}

/* One call of the capacity protocol, repeated with more room while the list grows. */
#define ASK_GROWING(c, type, call)                                                                 \
    do {                                                                                           \
        (c)->code = NVML_ERROR_INSUFFICIENT_SIZE;                                                  \
        unsigned int room = FIRST_ROOM;                                                            \
        for (int i = 0;                                                                            \
             i < TRIES && (c)->code == NVML_ERROR_INSUFFICIENT_SIZE && room <= REC_MAX_ENTRIES;    \
             i++) {                                                                                \
            type *entries = realloc((c)->entries, room * sizeof(*entries));                        \
            if (!entries)                                                                          \
                return NVML_ERROR_MEMORY;                                                          \
            (c)->entries = entries;                                                                \
            (c)->count = room;                                                                     \
            (c)->code = (call);                                                                    \
            room = ((c)->count > room ? (c)->count : room) * 2;                                    \
        }                                                                                          \
        return (c)->code;                                                                          \
    } while (0)

/* ------------------------------------------------------------------------- clocks */

static nvmlReturn_t ask_memory_clocks(struct rec_call *c)
{
    ASK_GROWING(c, unsigned int,
                c->api->nvmlDeviceGetSupportedMemoryClocks(c->device, &c->count, entries));
}

static nvmlReturn_t ask_graphics_clocks(struct rec_call *c)
{
    ASK_GROWING(
        c, unsigned int,
        c->api->nvmlDeviceGetSupportedGraphicsClocks(c->device, c->key, &c->count, entries));
}

static json_t *graphics_clocks(struct recorder *r, nvmlDevice_t device, unsigned int memory)
{
    struct gp_strbuf text = GP_STRBUF_INIT(64 * 1024);
    const struct rec_call *c =
        rec_prepare(r, SIM_FN_nvmlDeviceGetSupportedGraphicsClocks, ask_graphics_clocks, device);
    r->call->key = memory;
    if (rec_ask(r) != NVML_SUCCESS)
        return rec_doc_code(c->code);
    const unsigned int *clocks = c->entries;
    for (unsigned int i = 0; i < c->count; i++)
        gp_strbuf_addf(&text, "%s%u", i ? " " : "", clocks[i]);
    json_t *json = json_string(text.buf ? text.buf : "");
    gp_strbuf_fini(&text);
    return json;
}

static json_t *ask_clocks(struct recorder *r, unsigned int index)
{
    nvmlDevice_t device = device_of(r, index);
    const struct rec_call *c =
        rec_prepare(r, SIM_FN_nvmlDeviceGetSupportedMemoryClocks, ask_memory_clocks, device);
    if (rec_ask(r) != NVML_SUCCESS)
        return rec_doc_code(c->code);
    unsigned int memory[FIRST_ROOM];
    unsigned int count = c->count < FIRST_ROOM ? c->count : FIRST_ROOM;
    memcpy(memory, c->entries, count * sizeof(memory[0]));
    json_t *rows = json_array();
    for (unsigned int i = 0; i < count; i++)
        (void)json_array_append_new(rows,
                                    json_pack("{s:I, s:o}", "memory", (json_int_t)memory[i],
                                              "graphics", graphics_clocks(r, device, memory[i])));
    return rows;
}

/* ------------------------------------------------------------------------- retired pages */

struct page {
    unsigned long long address, time;
};

static nvmlReturn_t ask_some_pages(struct rec_call *c, unsigned int room)
{
    struct page *pages = realloc(c->entries, room * sizeof(*pages));
    if (!pages)
        return NVML_ERROR_MEMORY;
    c->entries = pages;
    c->count = room;
    unsigned long long *both = calloc(room, 2 * sizeof(*both));
    if (!both)
        return NVML_ERROR_MEMORY;
    nvmlPageRetirementCause_t cause = (nvmlPageRetirementCause_t)c->key;
    nvmlReturn_t code =
        c->api->nvmlDeviceGetRetiredPages_v2
            ? c->api->nvmlDeviceGetRetiredPages_v2(c->device, cause, &c->count, both, both + room)
            : c->api->nvmlDeviceGetRetiredPages(c->device, cause, &c->count, both);
    for (unsigned int i = 0; code == NVML_SUCCESS && i < c->count && i < room; i++)
        pages[i] = (struct page){both[i], both[room + i]};
    free(both);
    return code;
}

static nvmlReturn_t ask_pages(struct rec_call *c)
{
    nvmlReturn_t code = NVML_ERROR_INSUFFICIENT_SIZE;
    unsigned int room = FIRST_ROOM;
    for (int i = 0; i < TRIES && code == NVML_ERROR_INSUFFICIENT_SIZE; i++) {
        code = ask_some_pages(c, room);
        room = c->count > room && c->count < REC_MAX_ENTRIES ? c->count * 2 : room;
    }
    return code;
}

static json_t *ask_retired_pages(struct recorder *r, unsigned int index)
{
    json_t *rows = json_array();
    for (unsigned int cause = 0; cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT; cause++) {
        struct rec_call *c =
            rec_prepare(r, SIM_FN_nvmlDeviceGetRetiredPages, ask_pages, device_of(r, index));
        c->key = cause;
        if (rec_ask(r) != NVML_SUCCESS) {
            json_decref(rows);
            return rec_doc_code(c->code);
        }
        const struct page *pages = c->entries;
        for (unsigned int i = 0; i < c->count; i++) {
            json_t *row = json_pack("{s:i}", "cause", (int)cause);
            set_number(row, "address", NVML_SUCCESS, pages[i].address);
            set_number(row, "time", NVML_SUCCESS, pages[i].time);
            (void)json_array_append_new(rows, row);
        }
    }
    return rows;
}

/* ------------------------------------------------------------------------- accounting */

static nvmlReturn_t ask_pids(struct rec_call *c)
{
    ASK_GROWING(c, unsigned int,
                c->api->nvmlDeviceGetAccountingPids(c->device, &c->count, entries));
}

static nvmlReturn_t ask_stats(struct rec_call *c)
{
    nvmlAccountingStats_t s = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetAccountingStats(c->device, c->key, &s);
    c->numbers[0] = s.gpuUtilization;
    c->numbers[1] = s.memoryUtilization;
    c->numbers[2] = s.maxMemoryUsage;
    c->numbers[3] = s.time;
    c->numbers[4] = s.startTime / 1000000;
    c->numbers[5] = s.isRunning;
    return code;
}

/* All ones means that the driver does not know the number. */
static nvmlReturn_t known(nvmlReturn_t code, uint64_t number, uint64_t unknown)
{
    return code == NVML_SUCCESS && number == unknown ? NVML_ERROR_NOT_SUPPORTED : code;
}

static json_t *accounted_app(struct recorder *r, nvmlDevice_t device, unsigned int pid)
{
    struct rec_call *c = rec_prepare(r, SIM_FN_nvmlDeviceGetAccountingStats, ask_stats, device);
    c->key = pid;
    nvmlReturn_t code = rec_ask(r);
    json_t *row = json_pack("{s:I}", "pid", (json_int_t)pid);
    set_number(row, "gpu_utilization", known(code, c->numbers[0], UINT32_MAX), c->numbers[0]);
    if (code != NVML_SUCCESS)
        return row;
    set_number(row, "memory_utilization", known(code, c->numbers[1], UINT32_MAX), c->numbers[1]);
    set_number(row, "max_memory", known(code, c->numbers[2], UINT64_MAX), c->numbers[2]);
    set_number(row, "time_ms", code, c->numbers[3]);
    set_number(row, "start", code, c->numbers[4]);
    set_number(row, "running", code, c->numbers[5]);
    return row;
}

static json_t *ask_accounted(struct recorder *r, unsigned int index)
{
    nvmlDevice_t device = device_of(r, index);
    const struct rec_call *c = rec_prepare(r, SIM_FN_nvmlDeviceGetAccountingPids, ask_pids, device);
    if (rec_ask(r) != NVML_SUCCESS)
        return rec_doc_code(c->code);
    unsigned int count = c->count;
    unsigned int *pids = c->entries;
    r->call->entries = NULL; /* it is needed while others are queried */
    json_t *rows = json_array();
    for (unsigned int i = 0; i < count; i++)
        (void)json_array_append_new(rows, accounted_app(r, device, pids[i]));
    free(pids);
    return rows;
}

/* ------------------------------------------------------------------------- fans */

static nvmlReturn_t ask_fan_count(struct rec_call *c)
{
    return c->api->nvmlDeviceGetNumFans(c->device, &c->count);
}

static nvmlReturn_t ask_fan_rpm(struct rec_call *c)
{
    nvmlFanSpeedInfo_t info = {.version = nvmlFanSpeedInfo_v1, .fan = c->key};
    nvmlReturn_t code = c->api->nvmlDeviceGetFanSpeedRPM(c->device, &info);
    c->numbers[0] = info.speed;
    return code;
}

/* Other values of a fan are answers of the GPU, or settings. */
static json_t *ask_fans(struct recorder *r, unsigned int index)
{
    nvmlDevice_t device = device_of(r, index);
    (void)rec_prepare(r, SIM_FN_nvmlDeviceGetNumFans, ask_fan_count, device);
    unsigned int count = rec_ask(r) == NVML_SUCCESS ? r->call->count : 0;
    bool any = false;
    json_t *rows = json_array();
    for (unsigned int fan = 0; fan < count && fan < MAX_FANS; fan++) {
        struct rec_call *c = rec_prepare(r, SIM_FN_nvmlDeviceGetFanSpeedRPM, ask_fan_rpm, device);
        c->key = fan;
        nvmlReturn_t code = rec_ask(r);
        json_t *row = json_object();
        any |= code == NVML_SUCCESS;
        set_number(row, "rpm", code, c->numbers[0]);
        (void)json_array_append_new(rows, row);
    }
    if (any)
        return rows;
    json_decref(rows);
    return rec_doc_code(NVML_ERROR_NOT_SUPPORTED);
}

/* ------------------------------------------------------------------------- sessions */

static nvmlReturn_t ask_encoders(struct rec_call *c)
{
    ASK_GROWING(c, nvmlEncoderSessionInfo_t,
                c->api->nvmlDeviceGetEncoderSessions(c->device, &c->count, entries));
}

static json_t *ask_encoder_sessions(struct recorder *r, unsigned int index)
{
    const struct rec_call *c =
        rec_prepare(r, SIM_FN_nvmlDeviceGetEncoderSessions, ask_encoders, device_of(r, index));
    if (rec_ask(r) != NVML_SUCCESS)
        return rec_doc_code(c->code);
    const nvmlEncoderSessionInfo_t *s = c->entries;
    json_t *rows = json_array();
    for (unsigned int i = 0; i < c->count; i++)
        (void)json_array_append_new(
            rows,
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "id", (json_int_t)s[i].sessionId,
                      "pid", (json_int_t)s[i].pid, "codec", (json_int_t)s[i].codecType, "width",
                      (json_int_t)s[i].hResolution, "height", (json_int_t)s[i].vResolution, "fps",
                      (json_int_t)s[i].averageFps, "latency_us", (json_int_t)s[i].averageLatency));
    return rows;
}

static nvmlReturn_t ask_captures(struct rec_call *c)
{
    ASK_GROWING(c, nvmlFBCSessionInfo_t,
                c->api->nvmlDeviceGetFBCSessions(c->device, &c->count, entries));
}

static json_t *ask_fbc_sessions(struct recorder *r, unsigned int index)
{
    const struct rec_call *c =
        rec_prepare(r, SIM_FN_nvmlDeviceGetFBCSessions, ask_captures, device_of(r, index));
    if (rec_ask(r) != NVML_SUCCESS)
        return rec_doc_code(c->code);
    const nvmlFBCSessionInfo_t *s = c->entries;
    json_t *rows = json_array();
    for (unsigned int i = 0; i < c->count; i++)
        (void)json_array_append_new(
            rows,
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "id",
                      (json_int_t)s[i].sessionId, "pid", (json_int_t)s[i].pid, "display",
                      (json_int_t)s[i].displayOrdinal, "type", (json_int_t)s[i].sessionType,
                      "flags", (json_int_t)s[i].sessionFlags, "max_width",
                      (json_int_t)s[i].hMaxResolution, "max_height",
                      (json_int_t)s[i].vMaxResolution, "width", (json_int_t)s[i].hResolution,
                      "height", (json_int_t)s[i].vResolution, "fps", (json_int_t)s[i].averageFPS,
                      "latency_us", (json_int_t)s[i].averageLatency));
    return rows;
}

/* ------------------------------------------------------------------------- MIG profiles */

static nvmlReturn_t ask_profile(struct rec_call *c)
{
    nvmlGpuInstanceProfileInfo_v2_t info = {.version = nvmlGpuInstanceProfileInfo_v2};
    nvmlReturn_t code = c->api->nvmlDeviceGetGpuInstanceProfileInfoV(c->device, c->key, &info);
    const uint64_t numbers[] = {info.id,           info.sliceCount,          info.instanceCount,
                                info.memorySizeMB, info.multiprocessorCount, info.copyEngineCount,
                                info.decoderCount, info.encoderCount,        info.jpegCount,
                                info.ofaCount,     info.isP2pSupported};
    _Static_assert(sizeof(numbers) <= sizeof(c->numbers), "the maximum of a call");
    memcpy(c->numbers, numbers, sizeof(numbers));
    info.name[sizeof(info.name) - 1] = '\0';
    (void)snprintf(c->text, sizeof(c->text), "%s",
                   strncmp(info.name, "MIG ", 4) == 0 ? info.name + 4 : info.name);
    return code;
}

static nvmlReturn_t ask_placements(struct rec_call *c)
{
    ASK_GROWING(c, nvmlGpuInstancePlacement_t,
                c->api->nvmlDeviceGetGpuInstancePossiblePlacements_v2(c->device, c->key, entries,
                                                                      &c->count));
}

/* Only reported to root, and only in MIG mode. */
static void add_placements(struct recorder *r, nvmlDevice_t device, unsigned int id, json_t *row)
{
    struct gp_strbuf text = GP_STRBUF_INIT(4096);
    const struct rec_call *c = rec_prepare(r, SIM_FN_nvmlDeviceGetGpuInstancePossiblePlacements_v2,
                                           ask_placements, device);
    r->call->key = id;
    if (rec_ask(r) != NVML_SUCCESS || c->count == 0)
        return;
    const nvmlGpuInstancePlacement_t *p = c->entries;
    for (unsigned int i = 0; i < c->count; i++)
        gp_strbuf_addf(&text, "%s%u", i ? " " : "", p[i].start);
    (void)json_object_set_new(row, "size", json_integer(p[0].size));
    (void)json_object_set_new(row, "starts", json_string(text.buf));
    gp_strbuf_fini(&text);
}

static json_t *ask_mig_profiles(struct recorder *r, unsigned int index)
{
    static const char *const keys[] = {
        "id",           "slices",   "instances", "memory_mib",   "multiprocessors",
        "copy_engines", "decoders", "encoders",  "jpeg_engines", "ofa_engines",
        "p2p"};
    nvmlDevice_t device = device_of(r, index);
    nvmlReturn_t first = NVML_ERROR_NOT_SUPPORTED;
    json_t *rows = json_array();
    for (unsigned int kind = 0; kind < NVML_GPU_INSTANCE_PROFILE_COUNT; kind++) {
        struct rec_call *c =
            rec_prepare(r, SIM_FN_nvmlDeviceGetGpuInstanceProfileInfoV, ask_profile, device);
        c->key = kind;
        nvmlReturn_t code = rec_ask(r);
        first = kind == 0 ? code : first;
        if (code != NVML_SUCCESS)
            continue;
        json_t *row = json_pack("{s:I, s:s}", "index", (json_int_t)kind, "name", r->call->text);
        for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++)
            set_number(row, keys[i], code, r->call->numbers[i]);
        add_placements(r, device, (unsigned int)r->call->numbers[0], row);
        (void)json_array_append_new(rows, row);
    }
    if (json_array_size(rows))
        return rows;
    json_decref(rows);
    return rec_doc_code(first == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : first);
}

/* ------------------------------------------------------------------------- samples */

/* In the order of the members in lists.def, after the kind. */
enum { COUNT, DURATION, MAX, MIN, SUM };

/* Unwritten samples have time 0. */
static void sum_up(struct rec_call *c, nvmlValueType_t type, const nvmlSample_t *samples)
{
    unsigned long long first = UINT64_MAX, last = 0;
    uint64_t *n = c->numbers;
    n[MIN] = UINT64_MAX;
    for (unsigned int i = 0; i < c->count; i++) {
        json_int_t value;
        if (samples[i].timeStamp == 0 || !rec_number(type, &samples[i].sampleValue, &value) ||
            value < 0)
            continue;
        first = samples[i].timeStamp < first ? samples[i].timeStamp : first;
        last = samples[i].timeStamp > last ? samples[i].timeStamp : last;
        n[MAX] = (uint64_t)value > n[MAX] ? (uint64_t)value : n[MAX];
        n[MIN] = (uint64_t)value < n[MIN] ? (uint64_t)value : n[MIN];
        n[SUM] += (uint64_t)value;
        n[COUNT]++;
    }
    n[DURATION] = last - first;
}

/* An empty buffer returns "not found", but the kind is supported. */
static nvmlReturn_t ask_series(struct rec_call *c)
{
    nvmlSamplingType_t kind = (nvmlSamplingType_t)c->key;
    nvmlValueType_t type = NVML_VALUE_TYPE_UNSIGNED_INT;
    nvmlReturn_t code = c->api->nvmlDeviceGetSamples(c->device, kind, 0, &type, &c->count, NULL);
    if (code == NVML_SUCCESS && c->count > REC_MAX_ENTRIES)
        code = NVML_ERROR_INSUFFICIENT_SIZE;
    if (code == NVML_SUCCESS && c->count > 0) {
        nvmlSample_t *samples = calloc(c->count, sizeof(*samples));
        unsigned int room = c->count;
        if (!samples)
            return NVML_ERROR_MEMORY;
        c->entries = samples;
        code = c->api->nvmlDeviceGetSamples(c->device, kind, 0, &type, &c->count, samples);
        c->count = c->count < room ? c->count : room;
        if (code == NVML_SUCCESS)
            sum_up(c, type, samples);
    }
    return code == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : code;
}

static json_t *ask_samples(struct recorder *r, unsigned int index)
{
    static const char *const keys[] = {"duration_us", "max", "min", "sum"};
    bool any = false;
    json_t *rows = json_array();
    for (unsigned int kind = 0; kind < NVML_SAMPLINGTYPE_COUNT; kind++) {
        struct rec_call *c =
            rec_prepare(r, SIM_FN_nvmlDeviceGetSamples, ask_series, device_of(r, index));
        c->key = kind;
        nvmlReturn_t code = rec_ask(r);
        json_t *row = json_pack("{s:i}", "kind", (int)kind);
        set_number(row, "count", code, c->numbers[COUNT]);
        any |= json_object_size(row) > 1;
        for (size_t i = 0; i < GP_ARRAY_LEN(keys) && c->numbers[COUNT] > 0; i++)
            set_number(row, keys[i], code, c->numbers[DURATION + i]);
        (void)json_array_append_new(rows, row);
    }
    if (any)
        return rows;
    json_decref(rows);
    return rec_doc_code(NVML_ERROR_NOT_SUPPORTED);
}

/* ------------------------------------------------------------------------- the table */

static const struct {
    const char *key;
    json_t *(*ask)(struct recorder *r, unsigned int index);
} lists[SIM_LIST_COUNT] = {
    [SIM_LIST_CLOCKS] = {"supported_clocks", ask_clocks},
    [SIM_LIST_PAGES] = {"retired_pages", ask_retired_pages},
    [SIM_LIST_APPS] = {"accounted_apps", ask_accounted},
    [SIM_LIST_FANS] = {"fans", ask_fans},
    [SIM_LIST_ENCODERS] = {"encoder_sessions", ask_encoder_sessions},
    [SIM_LIST_CAPTURES] = {"fbc_sessions", ask_fbc_sessions},
    [SIM_LIST_SERIES] = {"samples", ask_samples},
    [SIM_LIST_LINKS] = {"nvlinks", rec_links},
    [SIM_LIST_PROFILES] = {"mig_profiles", ask_mig_profiles},
};

bool rec_has_list(size_t list)
{
    return lists[list].ask != NULL;
}

json_t *rec_lists(struct recorder *r, unsigned int index)
{
    json_t *out = json_object();
    for (size_t i = 0; i < SIM_LIST_COUNT; i++) {
        json_t *list = lists[i].ask(r, index);
        const char *code = json_string_value(list);
        bool said =
            code && (strcmp(code, "NOT_SUPPORTED") == 0 || strcmp(code, "FUNCTION_NOT_FOUND") == 0);
        if (said)
            json_decref(list);
        else
            (void)json_object_set_new(out, lists[i].key, list);
    }
    return out;
}

unsigned int rec_link_count(const json_t *given)
{
    return (unsigned int)json_array_size(json_object_get(given, lists[SIM_LIST_LINKS].key));
}
