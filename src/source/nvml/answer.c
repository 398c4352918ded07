/* What the driver's answers mean: texts, codes, fields, impossible values, and when to ask again.
 */
#include "source/nvml/readers.h"

#include "abi/nvml_value.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <float.h>
#include <string.h>

enum {
    SLOW_AGAIN_S = 5,      /* interval for slow values */
    REFUSED_AGAIN_S = 120, /* a refusal may end: a mode changes, a permission is granted */
};

/* ---- texts ---- */

/* A copy of this text that lives as long as the device. Texts are shared, because the driver
 * returns the same ones repeatedly. NULL without memory. */
static const char *keep(struct nvml_device *device, const char *text)
{
    for (const struct nvml_text *kept = device->texts; kept; kept = kept->next)
        if (strcmp(kept->s, text) == 0)
            return kept->s;
    size_t n = strlen(text) + 1;
    struct nvml_text *kept = gp_arena_alloc(&device->arena, 1, sizeof(*kept) + n);
    if (!kept)
        return NULL;
    kept->next = device->texts;
    device->texts = kept;
    return memcpy(kept->s, text, n);
}

void nvml_keep_text(struct nvml_device *device, struct gp_value *v, const char *text)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_utf8_add_safe(&sb, text, strlen(text), 1024);
    const char *kept = keep(device, sb.buf);
    gp_strbuf_fini(&sb);
    if (kept)
        gp_value_set_text(v, kept, 0);
    else
        gp_value_set_absent(v, GP_STATUS_ERROR, "out of memory", 0);
}

void nvml_name_code(const struct code_name *names, unsigned code, struct gp_value *v)
{
    for (; names->name; names++)
        if (names->code == code) {
            gp_value_set_text(v, names->name, 0);
            return;
        }
    /* 0 and all ones mean that the driver does not know; other numbers are from a newer driver. */
    if (code == 0 || code == UINT32_MAX)
        gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, NULL, 0);
    else
        gp_value_set_absent(v, GP_STATUS_ERROR, "a number without a known name", 0);
}

const char *nvml_enabled_text(unsigned state)
{
    return state ? "Enabled" : "Disabled";
}

/* ---- numbers ---- */

/* The plausible maximum, in the unit of the metric. */
static double most_plausible(const struct nvml_device *device, enum gp_metric m)
{
    switch (gp_metric_table[m].unit) {
    case GP_UNIT_PERCENT:
        return m == GP_FAN_SPEED || gp_metric_table[m].scope == GP_SCOPE_FAN ? 255
               : m == GP_EDPP_MULTIPLIER                                     ? 1000
                                                                             : 100;
    case GP_UNIT_CELSIUS:
        return 150;
    case GP_UNIT_WATT: {
        /* Some laptops report 593 kW at idle. */
        const struct gp_value *limit = &device->cache[GP_POWER_LIMIT_MAX - GP_DEVICE__FIRST];
        bool of_board = m >= GP_POWER_DRAW && m <= GP_POWER_LIMIT_DEFAULT;
        return of_board && limit->status == GP_STATUS_OK && limit->f > 1 ? 2 * limit->f : 1e4;
    }
    case GP_UNIT_MHZ:
        return 1e5;
    case GP_UNIT_BYTES:
        return 0x1p52 - 1;
    case GP_UNIT_WATT_PER_S:
    case GP_UNIT_MS:
    case GP_UNIT_SECOND:
        return UINT32_MAX - 1.0;
    case GP_UNIT_NONE:
    case GP_UNIT_US:
    case GP_UNIT_JOULE:
    case GP_UNIT_BYTES_PER_S:
    case GP_UNIT_MASK:
        break;
    }
    return 0x1p63;
}

bool nvml_is_plausible(const struct nvml_device *device, enum gp_metric m, const struct gp_value *v)
{
    const struct gp_metric_info *info = &gp_metric_table[m];
    double number = gp_metric_number(m, v);
    if (info->unit == GP_UNIT_MASK)
        return true;
    if (info->unit == GP_UNIT_NONE && v->i == UINT32_MAX)
        return false;
    return number >= (info->unit == GP_UNIT_CELSIUS ? -100 : 0) &&
           number <= most_plausible(device, m);
}

uint64_t nvml_ask_again_ns(enum gp_status status, enum gp_tier tier, uint64_t now_ns)
{
    if (status == GP_STATUS_UNSUPPORTED || status == GP_STATUS_NO_PERMISSION)
        return now_ns + REFUSED_AGAIN_S * GP_NS_PER_S;
    return tier == GP_TIER_SLOW ? now_ns + SLOW_AGAIN_S * GP_NS_PER_S : 0;
}

uint64_t nvml_refused_until(nvmlReturn_t rc, uint64_t now_ns)
{
    return nvml_ask_again_ns(nvml_return_status(rc), GP_TIER_FAST, now_ns);
}

void nvml_set_refused(struct gp_value *v, nvmlReturn_t rc, uint64_t now_ns)
{
    enum gp_status status = nvml_return_status(rc);
    gp_value_set_absent(v, status, status == GP_STATUS_ERROR ? nvml_return_text(rc) : NULL, now_ns);
}

double nvml_limit_share(enum gp_metric m, double value)
{
    return gp_metric_table[m].unit == GP_UNIT_PERCENT && value > 100 ? 100 : value;
}

/* ---- fields ---- */

bool nvml_field_is_integer(const nvmlFieldValue_t *field)
{
    return field->valueType == NVML_VALUE_TYPE_DOUBLE && field->value.ullVal != 0 &&
           field->value.dVal < DBL_MIN && field->value.dVal > -DBL_MIN;
}

/* Fields state their type, which is not always the documented one (R545 reports the memory
 * temperature as a double), so the stated type is used. False if it is not a number. */
bool nvml_field_number(const nvmlFieldValue_t *field, int64_t *ret)
{
    if (field->valueType != NVML_VALUE_TYPE_DOUBLE)
        return nvml_value_integer(field->valueType, &field->value, ret);
    if (!(field->value.dVal > -1e15 && field->value.dVal < 1e15))
        return false;
    *ret = nvml_field_is_integer(field) ? (int64_t)field->value.ullVal : (int64_t)field->value.dVal;
    return true;
}

unsigned nvml_field_id(const struct nvml_source *source, unsigned id)
{
    if (id < NVML_FI_PWR_SMOOTHING_ENABLED || id > NVML_FI_DEV_POWER_SYNC_BALANCING_AF)
        return id;
    if (source->branch == 0)
        return 0; /* in another driver this id is another field, with plausible numbers */
    bool moved = (source->branch >= 575 && source->branch < 580) ||
                 (source->branch == 580 && source->minor < 82);
    if (!moved)
        return id;
    return id < NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN ? id + 5 : id - 18;
}
