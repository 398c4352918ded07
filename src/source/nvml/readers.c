/* Runs the requested readers that are due. Refusals are cached and retried only from time to time;
 * static values are read once per session. */
#include "source/nvml/readers.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

enum {
    OUT_MAX = 16,
    FIELDS_MAX = 64, /* fields per call */
};

/* NVML's enums have the size of unsigned int, so that one type fits many functions. */
typedef nvmlReturn_t (*u32_fn)(nvmlDevice_t device, unsigned int *value);
typedef nvmlReturn_t (*u32_arg_fn)(nvmlDevice_t device, unsigned int arg, unsigned int *value);
typedef nvmlReturn_t (*u32_period_fn)(nvmlDevice_t device, unsigned int *value,
                                      unsigned int *period);
typedef nvmlReturn_t (*u32_pair_fn)(nvmlDevice_t device, unsigned int *a, unsigned int *b);
typedef nvmlReturn_t (*u32_triple_fn)(nvmlDevice_t device, unsigned int *a, unsigned int *b,
                                      unsigned int *c);
typedef nvmlReturn_t (*words_fn)(nvmlDevice_t device, unsigned int *words);
typedef nvmlReturn_t (*text_fn)(nvmlDevice_t device, char *text, unsigned int length);
typedef nvmlReturn_t (*text_arg_fn)(nvmlDevice_t device, unsigned int arg, char *text,
                                    unsigned int length);

/* The names of the set bits, in nvidia-smi's format. */
static void name_bits(struct nvml_device *device, const struct code_name *names, uint64_t mask,
                      struct gp_value *v)
{
    char text[256] = "";
    for (size_t n = 0; names->name && n < sizeof(text); names++)
        if (mask & names->code)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "", names->name);
    if (text[0])
        nvml_keep_text(device, v, text);
    else
        gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, NULL, 0);
}

/* The driver reports power and energy in thousandths, everything else in the unit of the
 * catalog. */
static unsigned unit_divisor(const struct reader *reader, enum gp_unit unit)
{
    if (reader->divisor)
        return reader->divisor;
    return unit == GP_UNIT_WATT || unit == GP_UNIT_WATT_PER_S || unit == GP_UNIT_JOULE ? 1000 : 1;
}

/* Stores an integer of the driver for the reader's i-th metric: as its name, or in the unit of the
 * metric, rounded down (so that −1 stays negative). */
static void store_number(struct nvml_device *device, const struct reader *reader, unsigned i,
                         int64_t raw, struct gp_value *v)
{
    const struct gp_metric_info *info = &gp_metric_table[reader->first + i];
    int64_t divisor = unit_divisor(reader, info->unit);
    if (info->type == GP_TYPE_TEXT && reader->bits)
        name_bits(device, reader->names, (uint64_t)raw, v);
    else if (info->type == GP_TYPE_TEXT)
        nvml_name_code(reader->names, (unsigned)raw, v);
    else if (info->type == GP_TYPE_REAL)
        gp_value_set_real(v, (double)raw / (double)divisor, 0);
    else
        gp_value_set_int(v, raw >= 0 ? raw / divisor : -(-(raw + 1) / divisor) - 1, 0);
}

static nvmlReturn_t call_text(struct nvml_device *device, const struct reader *reader,
                              void (*fn)(void), struct gp_value *out)
{
    char text[256] = "";
    nvmlReturn_t rc = reader->kind == KIND_TEXT
                          ? ((text_fn)fn)(device->handle, text, sizeof(text))
                          : ((text_arg_fn)fn)(device->handle, reader->arg, text, sizeof(text));
    if (rc == NVML_SUCCESS)
        nvml_keep_text(device, out, text);
    return rc;
}

static nvmlReturn_t call_reader(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    if (reader->kind == KIND_CUSTOM)
        return reader->custom(device, reader, out);
    nvml_any_fn fn = nvml_find(&device->source->api, reader->fn);
    if (!fn)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    atomic_store_explicit(device->call, nvml_function_name(reader->fn), memory_order_relaxed);
    if (reader->kind == KIND_TEXT || reader->kind == KIND_TEXT_ARG)
        return call_text(device, reader, fn, out);
    unsigned words[1 + OUT_MAX] = {0};
    const unsigned *numbers = words;
    unsigned period;
    nvmlReturn_t rc = NVML_ERROR_UNKNOWN;
    if (reader->kind == KIND_U32)
        rc = ((u32_fn)fn)(device->handle, words);
    else if (reader->kind == KIND_U32_ARG)
        rc = ((u32_arg_fn)fn)(device->handle, reader->arg, words);
    else if (reader->kind == KIND_U32_PERIOD)
        rc = ((u32_period_fn)fn)(device->handle, words, &period);
    else if (reader->kind == KIND_U32_PAIR)
        rc = ((u32_pair_fn)fn)(device->handle, &words[0], &words[1]);
    else if (reader->kind == KIND_U32_TRIPLE)
        rc = ((u32_triple_fn)fn)(device->handle, &words[0], &words[1], &words[2]);
    else if (reader->kind == KIND_WORDS) {
        words[0] = reader->arg;
        numbers = reader->arg ? &words[1] : words;
        rc = ((words_fn)fn)(device->handle, words);
    }
    for (unsigned i = 0; rc == NVML_SUCCESS && i < reader->outs; i++)
        store_number(device, reader, i, numbers[i], &out[i]);
    return rc;
}

/* What cannot change is read once. */
static bool is_done(const struct nvml_device *device, size_t index)
{
    return device->answered[index] &&
           gp_metric_table[nvml_readers[index].first].tier == GP_TIER_STATIC;
}

/* Stores the result of a call in the cache. */
static void settle(struct nvml_device *device, const struct reader *reader, nvmlReturn_t rc,
                   const struct gp_value *out, uint64_t now_ns)
{
    for (unsigned i = 0; i < reader->outs; i++) {
        enum gp_metric m = reader->first + i;
        struct gp_value *v = &device->cache[m - GP_DEVICE__FIRST];
        if (rc != NVML_SUCCESS) {
            enum gp_status status = nvml_return_status(rc);
            gp_value_set_absent(v, status, status == GP_STATUS_ERROR ? nvml_return_text(rc) : NULL,
                                0);
        } else {
            *v = out[i];
            if (v->status == GP_STATUS_OK && gp_metric_table[m].type != GP_TYPE_TEXT &&
                !nvml_is_plausible(device, m, v))
                gp_value_set_absent(v, GP_STATUS_ERROR, "impossible value", 0);
        }
        gp_value_set_time(v, now_ns);
    }
    size_t index = (size_t)(reader - nvml_readers);
    device->answered[index] = rc == NVML_SUCCESS;
    if (is_done(device, index))
        device->is_listed = false;
    device->not_before_ns[index] =
        nvml_ask_again_ns(nvml_return_status(rc), gp_metric_table[reader->first].tier, now_ns);
}

static bool reads_any(const struct reader *reader, const struct gp_metric_set *want)
{
    for (unsigned i = 0; i < reader->outs; i++)
        if (gp_metric_set_has(want, reader->first + i))
            return true;
    return false;
}

/* Lists the readers that are left for these metrics: usually the same as last time. */
static void list_readers(struct nvml_device *device, const struct gp_metric_set *want)
{
    if (device->is_listed && memcmp(&device->wanted, want, sizeof(*want)) == 0)
        return;
    device->is_listed = true;
    device->wanted = *want;
    device->reader_count = 0;
    for (size_t i = 0; i < nvml_reader_count; i++)
        if ((nvml_readers[i].where & (device->is_mig ? ON_MIG : ON_GPU)) &&
            reads_any(&nvml_readers[i], want) && !is_done(device, i))
            device->readers[device->reader_count++] = (uint16_t)i;
}

/* The video units are idle on most GPUs. Without a process that uses them, they are read as often
 * as slow values. */
static bool is_idle_unit(const struct nvml_device *device, enum gp_metric m, uint64_t now_ns)
{
    if (!device->no_video || (m != GP_UTILIZATION_ENCODER && m != GP_UTILIZATION_DECODER))
        return false;
    const struct gp_value *v = &device->cache[m - GP_DEVICE__FIRST];
    return v->status == GP_STATUS_OK && v->i == 0 &&
           now_ns < nvml_ask_again_ns(GP_STATUS_OK, GP_TIER_SLOW, gp_value_time_ns(v));
}

static bool is_due(const struct nvml_device *device, size_t index, uint64_t now_ns)
{
    return now_ns >= device->not_before_ns[index] &&
           !is_idle_unit(device, nvml_readers[index].first, now_ns);
}

static nvmlReturn_t settle_field(struct nvml_device *device, const struct reader *reader,
                                 const nvmlFieldValue_t *field, uint64_t now_ns)
{
    struct gp_value out = {0};
    int64_t number = 0;
    nvmlReturn_t rc = field->nvmlReturn;
    bool known = rc == NVML_SUCCESS && nvml_field_number(field, &number);
    if (known && gp_metric_table[reader->first].type == GP_TYPE_REAL &&
        field->valueType == NVML_VALUE_TYPE_DOUBLE && !nvml_field_is_integer(field))
        gp_value_set_real(
            &out, field->value.dVal / unit_divisor(reader, gp_metric_table[reader->first].unit), 0);
    else if (known)
        store_number(device, reader, 0, number, &out);
    else if (rc == NVML_SUCCESS)
        gp_value_set_absent(&out, GP_STATUS_ERROR, "impossible value", 0);
    /* Boards without the sensor report 0 instead of an error (several GeForce generations). */
    if (known && reader->first == GP_TEMPERATURE_MEMORY && number == 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    settle(device, reader, rc, &out, now_ns);
    return rc;
}

/* Reads all fields that are due in one driver call, including the counters of `rates` (may be
 * NULL). */
static nvmlReturn_t read_fields(struct nvml_device *device, const struct reader *const *due,
                                size_t count, const struct gp_metric_set *rates, uint64_t now_ns)
{
    nvmlFieldValue_t fields[FIELDS_MAX + NVML_RATES];
    uint8_t asked[NVML_RATES];
    memset(fields, 0, sizeof(*fields) * (count + NVML_RATES));
    for (size_t i = 0; i < count; i++) {
        fields[i].fieldId = nvml_field_id(device->source, due[i]->arg);
        fields[i].scopeId = due[i]->scope;
    }
    size_t rate_count = rates ? nvml_ask_rates(device, rates, now_ns, &fields[count], asked) : 0;
    if (count + rate_count == 0)
        return NVML_SUCCESS;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetFieldValues, device->handle,
                                (int)(count + rate_count), fields);
    for (size_t i = 0; rc != NVML_SUCCESS && i < count + rate_count; i++)
        fields[i].nvmlReturn = rc;
    for (size_t i = 0; i < count; i++) {
        nvmlReturn_t one = settle_field(device, due[i], &fields[i], now_ns);
        if (nvml_return_ends_session(one))
            rc = one;
    }
    if (!nvml_return_ends_session(rc))
        rc = nvml_settle_rates(device, &fields[count], asked, rate_count);
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

void nvml_expire(struct nvml_device *device)
{
    for (size_t i = 0; i < nvml_reader_count; i++)
        if (device->answered[i])
            device->not_before_ns[i] = 0;
    device->mig.next_ns = 0;
    device->no_video = false;
    memset(device->lists_not_before_ns, 0, sizeof(device->lists_not_before_ns));
}

nvmlReturn_t nvml_run_readers(struct nvml_device *device, const struct gp_metric_set *want,
                              uint64_t now_ns)
{
    const struct reader *fields[FIELDS_MAX];
    size_t field_count = 0;
    list_readers(device, want);
    for (size_t i = 0; i < device->reader_count; i++) {
        const struct reader *reader = &nvml_readers[device->readers[i]];
        if (!is_due(device, device->readers[i], now_ns))
            continue;
        nvmlReturn_t rc = NVML_SUCCESS;
        if (reader->kind == KIND_FIELD) {
            fields[field_count++] = reader;
            if (field_count == FIELDS_MAX) {
                rc = read_fields(device, fields, field_count, NULL, now_ns);
                field_count = 0;
            }
        } else {
            struct gp_value out[OUT_MAX] = {{{0}, 0, 0}};
            rc = call_reader(device, reader, out);
            settle(device, reader, rc, out, now_ns);
        }
        if (nvml_return_ends_session(rc))
            return rc;
    }
    return read_fields(device, fields, field_count, want, now_ns);
}

void nvml_seed_uuid(struct nvml_device *device, uint64_t now_ns)
{
    for (size_t i = 0; i < nvml_reader_count; i++) {
        struct gp_value out = {0};
        if (nvml_readers[i].first != GP_UUID || !device->uuid[0])
            continue;
        nvml_keep_text(device, &out, device->uuid);
        settle(device, &nvml_readers[i], NVML_SUCCESS, &out, now_ns);
    }
}

void nvml_copy_values(const struct nvml_device *device, const struct gp_metric_set *want,
                      struct gp_arena *arena, struct gp_value *values)
{
    for (int m = gp_metric_set_next(want, GP_DEVICE__FIRST); m < GP_PROCESS__FIRST;
         m = gp_metric_set_next(want, m + 1)) {
        struct gp_value *v = gp_device_value(values, (enum gp_metric)m);
        *v = device->cache[m - GP_DEVICE__FIRST];
        if (v->status == GP_STATUS_OK && gp_metric_table[m].type == GP_TYPE_TEXT) {
            const char *copy = gp_arena_strdup(arena, v->s);
            if (copy)
                v->s = copy;
            else
                gp_value_set_absent(v, GP_STATUS_ERROR, "out of memory", 0);
        } else if (v->status == GP_STATUS_NONE) {
            gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, NULL, 0);
        }
    }
}
