/* Converts the lists of a GPU in a capture. */
#include "sim/import_value.h"

#include "abi/nvml.h"
#include "base/strbuf.h"

#include <string.h>

/* "1980 1965 …", as in lists.def; NULL if there are none. */
static json_t *graphics_clocks(const struct sim_node *memory)
{
    struct gp_strbuf text = GP_STRBUF_INIT(64 * 1024);
    for (const struct sim_node *n = memory->first; n; n = n->next) {
        json_int_t mhz;
        if (strcmp(n->name, "supported_graphics_clock") == 0 &&
            sim_parse_scaled(n->text, 1, &mhz) && mhz >= 0)
            gp_strbuf_addf(&text, "%s%" JSON_INTEGER_FORMAT, text.len ? " " : "", mhz);
    }
    json_t *json = text.len && !text.error ? json_string(text.buf) : NULL;
    gp_strbuf_fini(&text);
    return json;
}

static json_t *supported_clocks(const struct sim_node *gpu)
{
    const struct sim_node *group = sim_node_find(gpu, "supported_clocks");
    json_t *list = group && group->first ? json_array() : NULL;
    for (const struct sim_node *n = list ? group->first : NULL; n; n = n->next) {
        const char *value = sim_node_text(n, "value");
        json_int_t mhz;
        if (strcmp(n->name, "supported_mem_clock") != 0 || !value ||
            !sim_parse_scaled(value, 1, &mhz) || mhz < 0)
            continue;
        json_t *graphics = graphics_clocks(n);
        if (graphics)
            (void)json_array_append_new(
                list, json_pack("{s:I, s:o}", "memory", mhz, "graphics", graphics));
    }
    return list;
}

/* Both causes have a count: 0 is an empty list, N/A is no list. */
static json_t *retired_pages(const struct sim_node *gpu)
{
    static const char *const causes[] = {"multiple_single_bit_retirement", "double_bit_retirement"};
    const struct sim_node *group = sim_node_find(gpu, "retired_pages");
    json_t *list = NULL;
    for (size_t cause = 0; group && cause < GP_ARRAY_LEN(causes); cause++) {
        const struct sim_node *part = sim_node_find(group, causes[cause]);
        const char *count = part ? sim_node_text(part, "retired_count") : NULL;
        const struct sim_node *pages = part ? sim_node_find(part, "retired_pagelist") : NULL;
        if (!count || sim_words_code(count) || (!list && !(list = json_array())))
            continue;
        for (const struct sim_node *n = pages ? pages->first : NULL; n; n = n->next) {
            json_t *address = sim_convert(n->text, SIM_HEX);
            if (json_is_integer(address))
                (void)json_array_append_new(
                    list, json_pack("{s:I, s:O}", "cause", (json_int_t)cause, "address", address));
            json_decref(address);
        }
    }
    return list;
}

static json_t *accounted_apps(const struct sim_node *gpu)
{
    static const struct sim_row rows[] = {
        {"pid", "pid", NULL, SIM_COUNT},
        {"gpu_util", "gpu_utilization", NULL, SIM_COUNT},
        {"memory_util", "memory_utilization", NULL, SIM_COUNT},
        {"max_memory_usage", "max_memory", NULL, SIM_MIB},
        {"time", "time_ms", NULL, SIM_COUNT},
        {"is_running", "running", NULL, SIM_COUNT},
    };
    const char *mode = sim_node_text(gpu, "accounting_mode");
    const struct sim_node *group = sim_node_find(gpu, "accounted_processes");
    json_t *list = group && mode && strcmp(mode, "Enabled") == 0 ? json_array() : NULL;
    for (const struct sim_node *n = list ? group->first : NULL; n; n = n->next) {
        json_t *row = json_object();
        if (strcmp(n->name, "accounted_process_info") == 0 && sim_node_text(n, "pid") &&
            sim_put_rows(row, n, rows, GP_ARRAY_LEN(rows)))
            (void)json_array_append(list, row);
        json_decref(row);
    }
    return list;
}

/* One kind of samples; `factor` converts from the printed unit to the driver's. Invalid durations
 * (the driver's clock went backwards) are omitted. */
static json_t *samples_row(const struct sim_node *group, nvmlSamplingType_t kind, double factor)
{
    const struct {
        const char *path, *key;
        double factor;
    } members[] = {{"count", "count", 1},
                   {"duration", "duration_us", 1e6},
                   {"max", "max", factor},
                   {"min", "min", factor},
                   {"average", "average", factor}};
    json_t *row = json_pack("{s:i}", "kind", (int)kind);
    for (size_t i = 0; i < GP_ARRAY_LEN(members); i++) {
        const char *text = sim_node_text(group, members[i].path);
        json_int_t number;
        if (text && sim_parse_scaled(text, members[i].factor, &number) && number >= 0)
            (void)json_object_set_new(row, members[i].key, json_integer(number));
    }
    json_int_t count = json_integer_value(json_object_get(row, "count"));
    json_int_t average = json_integer_value(json_object_get(row, "average"));
    if (count < INT32_MAX && average < INT32_MAX)
        (void)json_object_set_new(row, "sum", json_integer(count * average));
    (void)json_object_del(row, "average");
    return row;
}

static json_t *samples(const struct sim_node *gpu)
{
    static const struct {
        const char *path;
        nvmlSamplingType_t kind;
        double factor;
    } kinds[] = {
        {"power_samples", NVML_TOTAL_POWER_SAMPLES, 1000},
        {"gpu_samples", NVML_GPU_UTILIZATION_SAMPLES, 1},
        {"memory_samples", NVML_MEMORY_UTILIZATION_SAMPLES, 1},
        {"encoder_samples", NVML_ENC_UTILIZATION_SAMPLES, 1},
        {"decoder_samples", NVML_DEC_UTILIZATION_SAMPLES, 1},
        {"sm_clock_samples", NVML_PROCESSOR_CLK_SAMPLES, 1},
        {"memory_clock_samples", NVML_MEMORY_CLK_SAMPLES, 1},
    };
    json_t *list = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        const struct sim_node *group = sim_node_find(gpu, kinds[i].path);
        if (group && (list || (list = json_array())))
            (void)json_array_append_new(list, samples_row(group, kinds[i].kind, kinds[i].factor));
    }
    return list;
}

json_t *sim_import_lists(const struct sim_node *gpu)
{
    static const struct {
        const char *key;
        json_t *(*make)(const struct sim_node *gpu);
    } lists[] = {
        {"supported_clocks", supported_clocks},
        {"retired_pages", retired_pages},
        {"accounted_apps", accounted_apps},
        {"samples", samples},
    };
    json_t *object = json_object();
    for (size_t i = 0; object && i < GP_ARRAY_LEN(lists); i++) {
        json_t *list = lists[i].make(gpu);
        if (list)
            (void)json_object_set_new(object, lists[i].key, list);
    }
    return object;
}
