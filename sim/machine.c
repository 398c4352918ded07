#include "sim/machine.h"

#include "base/err.h"
#include "sim/machine_document.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_function(struct sim_loader *l, const char *name, size_t *ret)
{
    for (size_t fn = 0; fn < SIM_SYMBOL_COUNT; fn++) {
        if (strcmp(sim_symbols[fn].name, name) == 0) {
            *ret = fn;
            return GP_OK;
        }
    }
    return sim_doc_fail(l, "'%.60s' is not a function of the simulated driver", name);
}

static int load_latency(struct sim_loader *l, json_t *root)
{
    json_t *object = json_object_get(root, "latency_us");
    size_t at = sim_doc_enter(l, "latency_us");
    if (object && !json_is_object(object))
        return sim_doc_fail(l, "expected an object");
    uint64_t common = 0;
    int result = sim_doc_number(l, object, "*", 60000000, false, &common);
    for (size_t fn = 0; fn < SIM_FN_COUNT; fn++)
        l->machine->latency_us[fn] = (uint32_t)common;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t fn = 0;
        uint64_t us = 0;
        if (strcmp(key, "*") == 0)
            continue;
        if (result == GP_OK)
            result = find_function(l, key, &fn);
        if (result == GP_OK)
            result = sim_doc_number(l, object, key, 60000000, true, &us);
        if (result < 0)
            return result;
        if (fn < SIM_FN_COUNT)
            l->machine->latency_us[fn] = (uint32_t)us;
    }
    sim_doc_leave(l, at);
    return result;
}

/* An array of strings; calls `take` for each. */
static int load_strings(struct sim_loader *l, json_t *root, const char *key, size_t max,
                        int (*take)(struct sim_loader *l, const char *text))
{
    json_t *array;
    int result = sim_doc_array(l, root, key, max, &array);
    size_t at = sim_doc_enter(l, key);
    for (size_t i = 0; result == GP_OK && i < json_array_size(array); i++) {
        size_t inner = sim_doc_enter_index(l, i);
        const char *text = json_string_value(json_array_get(array, i));
        result = text ? take(l, text) : sim_doc_fail(l, "expected a string");
        if (result == GP_OK)
            sim_doc_leave(l, inner);
    }
    if (result == GP_OK)
        sim_doc_leave(l, at);
    return result;
}

/* A function in two tables is one symbol. */
static int set_missing(struct sim_loader *l, const char *text, bool missing)
{
    size_t fn = 0;
    int result = find_function(l, text, &fn);
    for (; result == GP_OK && fn < SIM_SYMBOL_COUNT; fn++)
        if (strcmp(sim_symbols[fn].name, text) == 0)
            l->machine->missing[fn] = missing;
    return result;
}

static int take_missing(struct sim_loader *l, const char *text)
{
    return set_missing(l, text, true);
}

static int take_present(struct sim_loader *l, const char *text)
{
    return set_missing(l, text, false);
}

static int take_fault(struct sim_loader *l, const char *text)
{
    struct gp_err why = {0};
    if (sim_fault_parse_placed(text, &l->machine->faults[l->machine->fault_count], &why) < 0)
        return sim_doc_fail(l, "%s", why.text);
    l->machine->fault_count++;
    return GP_OK;
}

static void parse_version(const char *text, unsigned int numbers[3])
{
    if (text)
        (void)sscanf(text, "%u.%u.%u", &numbers[0], &numbers[1], &numbers[2]);
}

/* Replaces the file's driver with another one. */
static int play_driver(struct sim_loader *l)
{
    struct sim_machine *machine = l->machine;
    char nvml[80];
    const char *driver;
    int result = sim_release_find(l->played, &driver, &machine->cuda_version, l->err);
    if (result < 0)
        return result;
    (void)snprintf(nvml, sizeof(nvml), "%d.%s", machine->cuda_version / 1000, driver);
    machine->driver_version = gp_arena_strdup(&machine->arena, driver);
    machine->nvml_version = gp_arena_strdup(&machine->arena, nvml);
    return machine->driver_version && machine->nvml_version ? GP_OK : sim_doc_no_memory(l);
}

static int load_driver(struct sim_loader *l, json_t *root)
{
    static const char *const keys[] = {"version", "nvml", "cuda", NULL};
    struct sim_machine *machine = l->machine;
    json_t *driver = json_object_get(root, "driver");
    size_t at = sim_doc_enter(l, "driver");
    uint64_t cuda = 0;
    int result = sim_doc_check_keys(l, driver, keys);
    if (result == GP_OK)
        result = sim_doc_text(l, driver, "version", false, &machine->driver_version);
    if (result == GP_OK)
        result = sim_doc_text(l, driver, "nvml", false, &machine->nvml_version);
    if (result == GP_OK)
        result = sim_doc_number(l, driver, "cuda", 1000000, false, &cuda);
    machine->cuda_version = (int)cuda;
    parse_version(machine->driver_version, l->recorded);
    machine->replayed = l->played != NULL;
    if (result == GP_OK && l->played)
        result = play_driver(l);
    if (result == GP_OK)
        sim_doc_leave(l, at);
    parse_version(machine->driver_version, machine->driver);
    sim_symbols_missing(machine->driver, machine->missing);
    for (size_t fn = 0; fn < SIM_FN_COUNT; fn++)
        machine->retired[fn] = sim_retired(machine->driver, sim_function_names[fn]);
    return result;
}

static int load_system(struct sim_loader *l, json_t *root)
{
#define X(answer, key) key,
    static const char *const keys[] = {SIM_SYSTEM_ANSWERS(X) NULL};
#undef X
    json_t *system = json_object_get(root, "system");
    size_t at = sim_doc_enter(l, "system");
    int result = system ? sim_doc_check_keys(l, system, keys) : GP_OK;
    for (size_t i = 0; result == GP_OK && i < SIM_SYSTEM_COUNT; i++) {
        struct sim_value *v = &l->machine->system[i];
        v->number = 0;
        v->code = json_object_get(system, keys[i]) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        result = sim_doc_number(l, system, keys[i], UINT32_MAX, false, &v->number);
    }
    if (result == GP_OK)
        sim_doc_leave(l, at);
    return result;
}

/* Members that their own files load; these state the place inside. */
static int load_parts(struct sim_loader *l, json_t *root)
{
    struct gp_err why = {0};
    size_t at = sim_doc_enter(l, "topology");
    if (sim_topology_load(json_object_get(root, "topology"), &l->machine->arena,
                          &l->machine->topology, &why) < 0)
        return sim_doc_fail(l, "%s", why.text);
    sim_doc_leave(l, at);
    at = sim_doc_enter(l, "host");
    if (sim_host_load(json_object_get(root, "host"), &l->machine->arena, &l->machine->host, &why) <
        0)
        return sim_doc_fail(l, "%s", why.text);
    sim_doc_leave(l, at);
    return GP_OK;
}

static int load_root(struct sim_loader *l, json_t *root, size_t count)
{
    static const char *const keys[] = {"gpulse_machine", "source",     "notes",    "driver",
                                       "seed",           "latency_us", "missing",  "present",
                                       "faults",         "devices",    "workload", "topology",
                                       "system",         "host",       "about",    NULL};
    uint64_t version = 0;
    int result = sim_doc_check_keys(l, root, keys);
    if (result == GP_OK)
        result = sim_doc_number(l, root, "gpulse_machine", INT32_MAX, true, &version);
    if (result == GP_OK && version != 1)
        result =
            sim_doc_fail(l, "gpulse_machine: version %" PRIu64 " is unknown; expected 1", version);
    l->machine->source = "";
    if (result == GP_OK)
        result = sim_doc_text(l, root, "source", false, &l->machine->source);
    if (result == GP_OK)
        result = sim_doc_text(l, root, "about", false, &l->machine->about);
    if (result == GP_OK)
        result = sim_doc_number(l, root, "seed", INT64_MAX, false, &l->machine->seed);
    if (result == GP_OK)
        result = load_driver(l, root);
    if (result == GP_OK)
        result = load_latency(l, root);
    if (result == GP_OK)
        result = load_strings(l, root, "missing", SIM_SYMBOL_COUNT, take_missing);
    if (result == GP_OK)
        result = load_strings(l, root, "present", SIM_SYMBOL_COUNT, take_present);
    if (result == GP_OK)
        result = load_strings(l, root, "faults", SIM_MAX_FILE_FAULTS, take_fault);
    if (result == GP_OK)
        result = load_system(l, root);
    if (result == GP_OK)
        result = load_parts(l, root);
    if (result == GP_OK)
        result = sim_doc_devices(l, root, count);
    if (result == GP_OK)
        result = sim_doc_workload(l, root);
    return result;
}

int sim_machine_load(const char *path, size_t count, struct sim_machine **ret, struct gp_err *err)
{
    return sim_machine_load_as(path, count, NULL, ret, err);
}

int sim_machine_load_as(const char *path, size_t count, const char *driver,
                        struct sim_machine **ret, struct gp_err *err)
{
    json_error_t why;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!root && why.line < 0)
        return gp_err_set(err, GP_EIO, "%s: %s", path, why.text);
    if (!root)
        return gp_err_set(err, GP_EFORMAT, "%s:%d: %s", path, why.line, why.text);
    struct sim_machine *machine = calloc(1, sizeof(*machine));
    int result = machine ? GP_OK : gp_err_set(err, GP_ENOMEM, "out of memory");
    if (result == GP_OK) {
        struct sim_loader loader = {.file = path, .machine = machine, .err = err, .played = driver};
        result = load_root(&loader, root, count);
    }
    json_decref(root);
    if (result == GP_OK)
        *ret = machine;
    else
        sim_machine_free(machine);
    return result;
}

void sim_machine_free(struct sim_machine *machine)
{
    if (!machine)
        return;
    gp_arena_fini(&machine->arena);
    free(machine);
}
