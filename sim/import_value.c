#include "sim/import_value.h"

#include "abi/nvml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *sim_words_code(const char *text)
{
    static const struct {
        const char *words, *code;
    } special[] = {{"N/A", "NOT_SUPPORTED"},
                   {"[N/A]", "NOT_SUPPORTED"},
                   {"[Not Supported]", "NOT_SUPPORTED"},
                   {"", "NOT_SUPPORTED"},
                   {"Requested functionality has been deprecated", "DEPRECATED"},
                   {"[Requested functionality has been deprecated]", "DEPRECATED"},
                   {"[Insufficient Permissions]", "NO_PERMISSION"},
                   {"[GPU is lost]", "GPU_IS_LOST"},
                   {"Not available in WDDM driver model", "NOT_SUPPORTED"},
                   {"ERR!", "UNKNOWN"},
                   {"[Unknown Error]", "UNKNOWN"},
                   {"[GPU requires reset]", "RESET_REQUIRED"},
#define X(name, code, words) {words, #name},
                   NVML_RETURN_CODES(X)
#undef X
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(special); i++) {
        if (strcmp(special[i].words, text) != 0)
            continue;
        const char *code = special[i].code;
        return strncmp(code, "NVML_ERROR_", 11) == 0 ? code + 11 : code;
    }
    return NULL;
}

/* The limit leaves room for sums of a few numbers. */
bool sim_parse_scaled(const char *text, double factor, json_int_t *ret)
{
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || errno || !isfinite(number) || fabs(number * factor) > 0x1p60)
        return false;
    *ret = (json_int_t)llround(number * factor);
    return true;
}

static json_t *convert_date(const char *text)
{
    struct tm tm = {.tm_isdst = 0};
    unsigned int ms;
    if (sscanf(text, "%d/%d/%d %d:%d:%d.%3u", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &ms) != 7)
        return NULL;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    time_t seconds = timegm(&tm);
    return seconds < 0 ? NULL : json_integer((json_int_t)seconds * 1000000 + ms * 1000);
}

/* Captures use the C locale, and the tool never calls setlocale(). */
json_t *sim_convert(const char *text, enum sim_conversion as)
{
    static const double factors[] = {
        [SIM_COUNT] = 1, [SIM_MIB] = 0x1p20, [SIM_MILLI] = 1e3, [SIM_US_NS] = 1e3};
    const char *code = sim_words_code(text);
    json_int_t number;
    char *end;
    if (code)
        return json_string(code);
    switch (as) {
    case SIM_AS_IS:
        return json_string(text);
    case SIM_YES_NO:
        return strcmp(text, "Yes") == 0 || strcmp(text, "No") == 0 ? json_integer(text[0] == 'Y')
                                                                   : NULL;
    case SIM_DATE_US:
        return convert_date(text);
    case SIM_HEX:
        number = (json_int_t)strtoull(text, &end, 16);
        return end == text ? NULL : json_integer(number);
    case SIM_COUNT:
    case SIM_MIB:
    case SIM_MILLI:
    case SIM_US_NS:
        break;
    }
    return sim_parse_scaled(text, factors[as], &number) ? json_integer(number) : NULL;
}

bool sim_put(json_t *object, const char *key, const char *member, json_t *value)
{
    if (!value)
        return true;
    if (member) {
        json_t *inner = json_object_get(object, key);
        if (!inner && json_object_set_new(object, key, inner = json_object()) < 0) {
            json_decref(value);
            return false;
        }
        object = inner;
        key = member;
    }
    if (json_object_get(object, key)) {
        json_decref(value);
        return true;
    }
    return json_object_set_new(object, key, value) == 0;
}

bool sim_put_rows(json_t *object, const struct sim_node *node, const struct sim_row *rows,
                  size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        const char *text = sim_node_text(node, rows[i].path);
        if (text)
            ok &= sim_put(object, rows[i].key, rows[i].member, sim_convert(text, rows[i].as));
    }
    return ok;
}

/* Memory in bytes. The total is whole MiB. nvidia-smi rounds the parts, before R570 down and since
 * then up, so their sum differs from the total by one or two. Spreading the difference over the
 * parts that are not 0 gives numbers that add up and are printed as in the capture. */
json_t *sim_memory_info(const struct sim_node *group)
{
    enum { TOTAL, RESERVED, USED, FREE, PARTS };
    static const char *const names[PARTS] = {"total", "reserved", "used", "free"};
    json_int_t mib[PARTS] = {0}, bytes[PARTS];
    bool given[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        const char *text = sim_node_text(group, names[i]);
        const char *code = text ? sim_words_code(text) : NULL;
        given[i] = text && !code && sim_parse_scaled(text, 1, &mib[i]);
        if (mib[i] < 0 || mib[i] > INT32_MAX)
            return NULL;
        if (i == TOTAL && !given[i])
            return text && code ? json_string(code) : NULL;
    }
    json_int_t over = mib[RESERVED] + mib[USED] + mib[FREE] - mib[TOTAL];
    json_int_t parts = (mib[RESERVED] > 0) + (mib[USED] > 0) + (mib[FREE] > 0);
    json_int_t shift = parts && over > -parts && over < parts ? over * (1 << 20) / parts : 0;
    for (size_t i = 0; i < PARTS; i++)
        bytes[i] = mib[i] * (1 << 20) - (i != TOTAL && mib[i] > 0 ? shift : 0);
    bytes[FREE] = bytes[TOTAL] - bytes[RESERVED] - bytes[USED];

    json_t *memory = json_object();
    for (size_t i = 0; memory && i < PARTS; i++)
        if (given[i] || i == FREE)
            (void)json_object_set_new(memory, names[i], json_integer(bytes[i]));
    return memory;
}
