#include "sim/machine.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct sim_answer sim_answers[SIM_SLOT_COUNT] = {
#define SIM_ANSWER(slot, key, member, kind, motion)                                                \
    [SIM_##slot] = {key, member, SIM_KIND_##kind, SIM_MOTION_##motion},
#include "sim/answers.def"
};

/* ------------------------------------------------------------------------- the document */

/* The state of loading; `path` is the current place, for errors. */
struct loader {
    const char *file;
    struct sim_machine *machine;
    struct gp_err *err;
    const char *played;       /* driver to simulate, NULL: the file's */
    unsigned int recorded[3]; /* the file's driver, which determines its field ids */
    char path[192];
};

static int fail(struct loader *l, const char *fmt, ...) GP_PRINTF(2, 3);

static int fail(struct loader *l, const char *fmt, ...)
{
    char text[240];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return gp_err_set(l->err, GP_EFORMAT, "%s: %s: %s", l->file, l->path[0] ? l->path : "document",
                      text);
}

static size_t enter(struct loader *l, const char *key)
{
    size_t len = strlen(l->path);
    (void)snprintf(l->path + len, sizeof(l->path) - len, "%s%s", len ? "." : "", key);
    return len;
}

static size_t enter_index(struct loader *l, size_t index)
{
    size_t len = strlen(l->path);
    (void)snprintf(l->path + len, sizeof(l->path) - len, "[%zu]", index);
    return len;
}

static void leave(struct loader *l, size_t len)
{
    l->path[len] = '\0';
}

static const char *next_name(const void *ctx, size_t i)
{
    return ((const char *const *)ctx)[i];
}

/* Rejects members that are not in the NULL-terminated list: misspelled keys would otherwise be
 * ignored. */
static int check_keys(struct loader *l, json_t *object, const char *const *known)
{
    if (!json_is_object(object))
        return fail(l, "expected an object");
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (known[i])
            continue;
        const char *near = gp_cli_nearest(key, next_name, known);
        return fail(l, "unknown key '%.60s'%s%s%s", key, near ? " (did you mean '" : "",
                    near ? near : "", near ? "'?)" : "");
    }
    return GP_OK;
}

static int get_text(struct loader *l, json_t *object, const char *key, bool required,
                    const char **ret)
{
    json_t *value = json_object_get(object, key);
    if (!value && !required)
        return GP_OK;
    size_t at = enter(l, key);
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return fail(l, value ? "expected a string" : "is missing; expected a string");
    *ret = gp_arena_strdup(&l->machine->arena, json_string_value(value));
    leave(l, at);
    return *ret ? GP_OK : gp_err_set(l->err, GP_ENOMEM, "out of memory");
}

static int get_number(struct loader *l, json_t *object, const char *key, uint64_t max,
                      bool required, uint64_t *ret)
{
    json_t *value = json_object_get(object, key);
    if (!value && !required)
        return GP_OK;
    size_t at = enter(l, key);
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number > max)
        return fail(l, "%sexpected a number from 0 to %" PRIu64, value ? "" : "is missing; ", max);
    *ret = (uint64_t)number;
    leave(l, at);
    return GP_OK;
}

/* An array of at most `max` entries, possibly missing; *ret is NULL then. */
static int get_array(struct loader *l, json_t *object, const char *key, size_t max, json_t **ret)
{
    *ret = json_object_get(object, key);
    size_t at = enter(l, key);
    if (*ret && (!json_is_array(*ret) || json_array_size(*ret) > max))
        return fail(l, "expected an array of at most %zu entries", max);
    leave(l, at);
    return GP_OK;
}

static void *alloc(struct loader *l, size_t count, size_t size)
{
    return gp_arena_alloc(&l->machine->arena, count ? count : 1, size);
}

static int no_memory(struct loader *l)
{
    return gp_err_set(l->err, GP_ENOMEM, "out of memory");
}

/* ------------------------------------------------------------------------- answers */

static bool find_name(enum sim_kind kind, const char *text, uint64_t *ret)
{
    const struct sim_name *name = sim_kind_names(kind);
    for (; name && name->name; name++) {
        if (strcmp(name->name, text) == 0) {
            *ret = name->value;
            return true;
        }
    }
    return false;
}

static int expected(struct loader *l, enum sim_kind kind)
{
    static const char *const words[SIM_KIND_COUNT] = {[SIM_KIND_TEXT] = "a string",
                                                      [SIM_KIND_U32] =
                                                          "a number from 0 to 4294967295",
                                                      [SIM_KIND_U64] = "a number",
                                                      [SIM_KIND_I32] = "a signed number"};
    const struct sim_name *name = sim_kind_names(kind);
    char list[120] = "a number";
    for (size_t len = strlen(list); name && name->name && len + 32 < sizeof(list); name++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, ", \"%s\"", name->name);
    return fail(l, "expected %s or the name of a return code, for example \"NOT_SUPPORTED\"",
                words[kind] ? words[kind] : list);
}

/* A call that a newer driver calls deprecated exists in an older one, but the file does not have
 * its answer. */
static nvmlReturn_t older_code(const struct loader *l, nvmlReturn_t code)
{
    return code == NVML_ERROR_DEPRECATED && !sim_driver_is(l->machine->driver, 580, 0)
               ? NVML_ERROR_NOT_SUPPORTED
               : code;
}

static int load_value(struct loader *l, json_t *json, enum sim_kind kind, struct sim_value *ret)
{
    struct sim_value v = {.code = NVML_SUCCESS};
    const char *text = json_string_value(json);
    json_int_t number = json_integer_value(json);
    if (text && strlen(text) != json_string_length(json))
        return expected(l, kind);
    if (text && !find_name(kind, text, &v.number)) {
        nvmlReturn_t code;
        if (sim_return_code(text, &code))
            v.code = l->played ? older_code(l, code) : code;
        else if (kind != SIM_KIND_TEXT)
            return expected(l, kind);
        else if (!(v.text = gp_arena_strdup(&l->machine->arena, text)))
            return no_memory(l);
    } else if (json_is_boolean(json) && kind == SIM_KIND_SWITCH) {
        v.number = json_is_true(json);
    } else if (!text) {
        bool fits = kind == SIM_KIND_I32   ? number >= INT32_MIN && number <= INT32_MAX
                    : kind == SIM_KIND_U64 ? number >= 0
                                           : number >= 0 && number <= UINT32_MAX;
        if (!json_is_integer(json) || kind == SIM_KIND_TEXT || !fits)
            return expected(l, kind);
        v.number = (uint64_t)number;
    }
    *ret = v;
    return GP_OK;
}

static int load_answer(struct loader *l, const char *key, json_t *json, struct sim_value *answers)
{
    bool known = false;
    size_t members = 0, found = 0;
    for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++) {
        const struct sim_answer *row = &sim_answers[slot];
        if (strcmp(row->key, key) != 0)
            continue;
        known = true;
        json_t *value = json;
        size_t at = strlen(l->path);
        if (row->member && json_is_object(json)) {
            members++;
            value = json_object_get(json, row->member);
            if (!value)
                continue;
            found++;
            (void)enter(l, row->member);
        } else if (row->member && !json_is_string(json)) {
            return fail(
                l,
                "expected an object with members, for example \"%s\", or the name of a return code",
                row->member);
        }
        int result = load_value(l, value, row->kind, &answers[slot]);
        if (result < 0)
            return result;
        leave(l, at);
    }
    if (!known) {
        const char *names[SIM_SLOT_COUNT + 1] = {NULL};
        for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++)
            names[slot] = sim_answers[slot].key;
        const char *near = gp_cli_nearest(key, next_name, names);
        return fail(l, "unknown answer%s%s%s; expected a function name without nvmlDeviceGet",
                    near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    if (members && found != json_object_size(json))
        return fail(l, "has an unknown member");
    return GP_OK;
}

nvmlReturn_t sim_slot_default(enum sim_slot slot)
{
    bool list = slot == SIM_LIST_COMPUTE || slot == SIM_LIST_GRAPHICS || slot == SIM_LIST_MPS ||
                slot == SIM_PROCESS_UTIL || slot == SIM_SAMPLES;
    return list ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static int load_answers(struct loader *l, json_t *device, struct sim_value *answers)
{
    for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++)
        answers[slot] = (struct sim_value){.code = sim_slot_default((enum sim_slot)slot)};
    json_t *object = json_object_get(device, "answers");
    size_t at = enter(l, "answers");
    if (object && !json_is_object(object))
        return fail(l, "expected an object");
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t inner = enter(l, key);
        int result = load_answer(l, key, value, answers);
        if (result < 0)
            return result;
        leave(l, inner);
    }
    leave(l, at);
    return GP_OK;
}

static int load_fields(struct loader *l, json_t *json, struct sim_device *device)
{
    json_t *object = json_object_get(json, "fields");
    size_t at = enter(l, "fields");
    if (object && !json_is_object(object))
        return fail(l, "expected an object");
    device->fields = alloc(l, json_object_size(object), sizeof(*device->fields));
    if (!device->fields)
        return no_memory(l);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t inner = enter(l, key);
        struct sim_field *field = &device->fields[device->field_count++];
        char id[16];
        size_t digits = strcspn(key, "/");
        uint64_t number = 0, scope = 0;
        (void)snprintf(id, sizeof(id), "%.*s", (int)(digits < 15 ? digits : 15), key);
        if (!gp_parse_u64(id, &number) || number > UINT16_MAX ||
            (key[digits] && (!gp_parse_u64(key + digits + 1, &scope) || scope > UINT32_MAX)))
            return fail(l, "expected a field id, or id/scope, as the key");
        field->id = sim_field_newest(l->recorded, (unsigned int)number);
        field->scope = (unsigned int)scope;
        /* Temperature limits are signed, everything else is unsigned. */
        bool is_signed = number >= NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT &&
                         number <= NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT;
        int result = load_value(l, value, is_signed ? SIM_KIND_I32 : SIM_KIND_U64, &field->value);
        if (result < 0)
            return result;
        leave(l, inner);
    }
    leave(l, at);
    return GP_OK;
}

/* ------------------------------------------------------------------------- processes */

static int load_type(struct loader *l, json_t *json, struct sim_process *process)
{
    static const struct {
        const char *name;
        bool compute, graphics, mps;
    } types[] = {{"C", true, false, false},
                 {"G", false, true, false},
                 {"C+G", true, true, false},
                 {"M", false, false, true},
                 {"M+C", true, false, true}};
    const char *type = "C";
    int result = get_text(l, json, "type", false, &type);
    for (size_t i = 0; result == GP_OK && i < GP_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].name, type) != 0)
            continue;
        process->compute = types[i].compute;
        process->graphics = types[i].graphics;
        process->mps = types[i].mps;
        return GP_OK;
    }
    return result < 0 ? result : fail(l, "type: expected \"C\", \"G\", \"C+G\", \"M\" or \"M+C\"");
}

const char *const sim_share_keys[SIM_SHARE_COUNT] = {
#define X(share, key) key,
    SIM_SHARES(X)
#undef X
};

static int load_shares(struct loader *l, json_t *json, struct sim_process *process)
{
    int result = GP_OK;
    for (int i = 0; result == GP_OK && i < SIM_SHARE_COUNT; i++) {
        unsigned int sm = process->share_pct[SIM_SHARE_SM];
        uint64_t share = i == SIM_SHARE_MEM ? sim_share_of_memory(sm) : 0;
        result = get_number(l, json, sim_share_keys[i], 100, false, &share);
        process->share_pct[i] = (unsigned int)share;
    }
    return result;
}

/* The common members of captured processes and workloads. */
static int load_process(struct loader *l, json_t *json, struct sim_process *process)
{
    uint64_t pid = 0, gi = UINT64_MAX, ci = UINT64_MAX;
    process->name = "";
    int result = get_number(l, json, "pid", INT32_MAX, true, &pid);
    if (result == GP_OK)
        result = load_type(l, json, process);
    if (result == GP_OK)
        result = get_text(l, json, "name", false, &process->name);
    if (result == GP_OK && !json_is_null(json_object_get(json, "memory_bytes"))) {
        process->memory_known = json_object_get(json, "memory_bytes");
        result = get_number(l, json, "memory_bytes", INT64_MAX, false, &process->memory_bytes);
    }
    if (result == GP_OK)
        result = get_number(l, json, "gpu_instance", 1000, false, &gi);
    if (result == GP_OK)
        result = get_number(l, json, "compute_instance", 1000, false, &ci);
    if (result == GP_OK)
        result = load_shares(l, json, process);
    process->pid = process->like_pid = (unsigned int)pid;
    process->gpu_instance = gi == UINT64_MAX ? SIM_NO_INSTANCE : (int)gi;
    process->compute_instance = ci == UINT64_MAX ? SIM_NO_INSTANCE : (int)ci;
    return result;
}

static int load_processes(struct loader *l, json_t *json, struct sim_device *device)
{
    static const char *const keys[] = {
        "pid",         "type",         "memory_bytes", "name",         "util",
        "util_memory", "util_encoder", "util_decoder", "gpu_instance", "compute_instance",
        NULL};
    json_t *array;
    int result = get_array(l, json, "processes", SIM_MAX_PROCESSES, &array);
    if (result < 0)
        return result;
    device->processes = alloc(l, json_array_size(array), sizeof(*device->processes));
    if (!device->processes)
        return no_memory(l);
    size_t at = enter(l, "processes");
    for (size_t i = 0; i < json_array_size(array); i++) {
        size_t inner = enter_index(l, i);
        result = check_keys(l, json_array_get(array, i), keys);
        if (result == GP_OK)
            result = load_process(l, json_array_get(array, i), &device->processes[i]);
        if (result < 0)
            return result;
        device->process_count++;
        leave(l, inner);
    }
    leave(l, at);
    return GP_OK;
}

/* ------------------------------------------------------------------------- devices */

static int load_mig(struct loader *l, json_t *json, struct sim_device *parent)
{
    static const char *const keys[] = {"gpu_instance", "compute_instance", "uuid", "answers", NULL};
    json_t *array;
    int result = get_array(l, json, "mig", SIM_MAX_MIGS, &array);
    if (result < 0 || !array)
        return result;
    parent->migs = alloc(l, json_array_size(array), sizeof(*parent->migs));
    if (!parent->migs)
        return no_memory(l);
    size_t at = enter(l, "mig");
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *entry = json_array_get(array, i);
        size_t inner = enter_index(l, i);
        struct sim_device *mig = &parent->migs[i];
        uint64_t gi = 0, ci = 0;
        result = check_keys(l, entry, keys);
        if (result == GP_OK)
            result = get_number(l, entry, "gpu_instance", 1000, true, &gi);
        if (result == GP_OK)
            result = get_number(l, entry, "compute_instance", 1000, true, &ci);
        if (result == GP_OK)
            result = get_text(l, entry, "uuid", true, &mig->uuid);
        if (result == GP_OK)
            result = load_answers(l, entry, mig->answers);
        if (result < 0)
            return result;
        mig->index = (unsigned int)i;
        mig->gpu_instance = (int)gi;
        mig->compute_instance = (int)ci;
        leave(l, inner);
    }
    parent->mig_count = json_array_size(array);
    leave(l, at);
    return GP_OK;
}

static int get_hex(struct loader *l, json_t *object, const char *key, unsigned int *ret)
{
    const char *text = "0";
    int result = get_text(l, object, key, false, &text);
    if (result < 0)
        return result;
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 16);
    if (*end || end == text || errno || value > UINT32_MAX) {
        (void)enter(l, key);
        return fail(l, "expected a hexadecimal number as a string, for example \"0x233010DE\"");
    }
    *ret = (unsigned int)value;
    return GP_OK;
}

static int load_pci(struct loader *l, json_t *json, struct sim_device *device)
{
    static const char *const keys[] = {"bus_id", "device_id", "subsystem_id", NULL};
    json_t *pci = json_object_get(json, "pci");
    size_t at = enter(l, "pci");
    const char *bus_id = NULL;
    int result = check_keys(l, pci, keys);
    if (result == GP_OK)
        result = get_text(l, pci, "bus_id", true, &bus_id);
    if (result < 0)
        return result;
    unsigned int function;
    int used = 0;
    if (sscanf(bus_id, "%8x:%2x:%2x.%1x%n", &device->pci_domain, &device->pci_bus,
               &device->pci_slot, &function, &used) != 4 ||
        bus_id[used])
        return fail(l, "bus_id: expected the form \"00000000:53:00.0\"");
    result = get_hex(l, pci, "device_id", &device->pci_device_id);
    if (result == GP_OK)
        result = get_hex(l, pci, "subsystem_id", &device->pci_subsystem_id);
    if (result == GP_OK)
        leave(l, at);
    return result;
}

static int load_lists(struct loader *l, json_t *json, struct sim_device *device)
{
    struct gp_err why = {0};
    size_t at = enter(l, "lists");
    if (sim_lists_load(json_object_get(json, "lists"), &l->machine->arena, &device->lists, &why) <
        0)
        return fail(l, "%s", why.text);
    leave(l, at);
    return GP_OK;
}

static int load_device(struct loader *l, json_t *json, struct sim_device *device)
{
    static const char *const keys[] = {"uuid",  "pci",       "answers", "fields",
                                       "lists", "processes", "mig",     NULL};
    static int (*const parts[])(struct loader *, json_t *, struct sim_device *) = {
        load_pci, load_fields, load_lists, load_processes, load_mig,
    };
    device->gpu_instance = device->compute_instance = SIM_NO_INSTANCE;
    int result = check_keys(l, json, keys);
    if (result == GP_OK)
        result = get_text(l, json, "uuid", true, &device->uuid);
    if (result == GP_OK)
        result = load_answers(l, json, device->answers);
    for (size_t i = 0; result == GP_OK && i < GP_ARRAY_LEN(parts); i++)
        result = parts[i](l, json, device);
    return result;
}

/* A GPU in excess of those in the file: the same answers, its own identity. */
static int copy_device(struct loader *l, const struct sim_device *model, size_t copy,
                       struct sim_device *device)
{
    struct gp_arena *arena = &l->machine->arena;
    char text[64];
    *device = *model;
    /* The first group of the UUID changes, because that is what people see. */
    unsigned int head = (unsigned int)(0x10000000u + copy);
    (void)snprintf(text, sizeof(text), "GPU-%08x-%s", head,
                   strlen(model->uuid) > 13 ? model->uuid + 13 : model->uuid);
    device->uuid = gp_arena_strdup(arena, text);
    device->pci_domain = model->pci_domain + (unsigned int)copy;
    struct sim_value *serial = &device->answers[SIM_SERIAL];
    if (serial->code == NVML_SUCCESS) {
        (void)snprintf(text, sizeof(text), "%llu", strtoull(serial->text, NULL, 10) + copy * 100);
        if (!(serial->text = gp_arena_strdup(arena, text)))
            return no_memory(l);
    }
    device->migs = alloc(l, model->mig_count, sizeof(*device->migs));
    if (!device->uuid || !device->migs)
        return no_memory(l);
    for (size_t i = 0; i < model->mig_count; i++) {
        device->migs[i] = model->migs[i];
        (void)snprintf(text, sizeof(text), "MIG-%08x-%s", head,
                       strlen(model->migs[i].uuid) > 13 ? model->migs[i].uuid + 13 : "");
        if (!(device->migs[i].uuid = gp_arena_strdup(arena, text)))
            return no_memory(l);
    }
    return GP_OK;
}

static int load_devices(struct loader *l, json_t *root, size_t count)
{
    struct sim_machine *machine = l->machine;
    json_t *array;
    int result = get_array(l, root, "devices", SIM_MAX_DEVICES, &array);
    if (result < 0)
        return result;
    size_t given = json_array_size(array);
    (void)enter(l, "devices");
    if (given == 0)
        return fail(l, "expected an array of at least one device");
    machine->device_count = count ? count : given;
    machine->devices = alloc(l, machine->device_count, sizeof(*machine->devices));
    if (!machine->devices)
        return no_memory(l);
    for (size_t i = 0; i < machine->device_count; i++) {
        struct sim_device *device = &machine->devices[i];
        size_t at = enter_index(l, i);
        if (i < given)
            result = load_device(l, json_array_get(array, i), device);
        else
            result = copy_device(l, &machine->devices[i % given], i / given, device);
        if (result < 0)
            return result;
        device->index = (unsigned int)i;
        if (i >= given && device->answers[SIM_MINOR].code == NVML_SUCCESS)
            device->answers[SIM_MINOR].number = i;
        leave(l, at);
    }
    leave(l, 0);
    /* Only now, because the array may have moved before. */
    for (size_t i = 0; i < machine->device_count; i++)
        for (size_t j = 0; j < machine->devices[i].mig_count; j++)
            machine->devices[i].migs[j].parent = &machine->devices[i];
    return GP_OK;
}

/* ------------------------------------------------------------------------- workload */

static int append_process(struct loader *l, struct sim_device *device,
                          const struct sim_process *process)
{
    struct sim_process *grown = alloc(l, device->process_count + 1, sizeof(*grown));
    if (!grown)
        return no_memory(l);
    memcpy(grown, device->processes, device->process_count * sizeof(*grown));
    grown[device->process_count++] = *process;
    device->processes = grown;
    return GP_OK;
}

/* When a job of the workload runs, and whether the driver lists it. */
static int load_turns(struct loader *l, json_t *json, struct sim_process *process)
{
    uint64_t every_s = 0, runs_s = 0;
    json_t *hidden = json_object_get(json, "hidden");
    int result = get_number(l, json, "every_s", 86400, false, &every_s);
    if (result == GP_OK)
        result = get_number(l, json, "runs_s", every_s, every_s > 0, &runs_s);
    if (result == GP_OK && hidden && !json_is_boolean(hidden))
        result = fail(l, "hidden: expected true or false");
    process->every_s = (unsigned int)every_s;
    process->runs_s = (unsigned int)runs_s;
    process->hidden = json_is_true(hidden);
    return result;
}

/* Places one job of the workload on its GPUs, and on the same GPUs of each further set of `given`
 * devices, there with other pids. */
static int place_workload(struct loader *l, json_t *json, size_t given, unsigned int pid_step)
{
    static const char *const keys[] = {"name",
                                       "pid",
                                       "gpus",
                                       "util",
                                       "memory_bytes",
                                       "type",
                                       "util_memory",
                                       "util_encoder",
                                       "util_decoder",
                                       "gpu_instance",
                                       "hidden",
                                       "every_s",
                                       "runs_s",
                                       "compute_instance",
                                       NULL};
    struct sim_process process = {0};
    json_t *gpus = NULL;
    int result = check_keys(l, json, keys);
    if (result == GP_OK)
        result = load_process(l, json, &process);
    if (result == GP_OK)
        result = load_turns(l, json, &process);
    if (result == GP_OK)
        result = get_array(l, json, "gpus", SIM_MAX_DEVICES, &gpus);
    process.util_pct = process.share_pct[SIM_SHARE_SM];
    process.load_bytes = process.memory_bytes;
    for (size_t i = 0; result == GP_OK && i < json_array_size(gpus); i++) {
        json_int_t gpu = json_integer_value(json_array_get(gpus, i));
        if (!json_is_integer(json_array_get(gpus, i)) || gpu < 0 || (size_t)gpu >= given)
            return fail(l, "gpus: expected numbers from 0 to %zu", given - 1);
        unsigned int pid = process.pid;
        for (size_t at = (size_t)gpu; result == GP_OK && at < l->machine->device_count;
             at += given) {
            struct sim_process copy = process;
            copy.pid = pid;
            result = append_process(l, &l->machine->devices[at], &copy);
            pid += pid_step;
        }
    }
    return result;
}

static int load_workload(struct loader *l, json_t *root)
{
    json_t *array;
    int result = get_array(l, root, "workload", 256, &array);
    size_t given = json_array_size(json_object_get(root, "devices"));
    size_t at = enter(l, "workload");
    for (size_t i = 0; result == GP_OK && i < json_array_size(array); i++) {
        size_t inner = enter_index(l, i);
        result = place_workload(l, json_array_get(array, i), given,
                                (unsigned int)json_array_size(array));
        if (result == GP_OK)
            leave(l, inner);
    }
    if (result == GP_OK)
        leave(l, at);
    return result;
}

/* ------------------------------------------------------------------------- driver */

static int find_function(struct loader *l, const char *name, size_t *ret)
{
    for (size_t fn = 0; fn < SIM_SYMBOL_COUNT; fn++) {
        if (strcmp(sim_symbols[fn].name, name) == 0) {
            *ret = fn;
            return GP_OK;
        }
    }
    return fail(l, "'%.60s' is not a function of the simulated driver", name);
}

static int load_latency(struct loader *l, json_t *root)
{
    json_t *object = json_object_get(root, "latency_us");
    size_t at = enter(l, "latency_us");
    if (object && !json_is_object(object))
        return fail(l, "expected an object");
    uint64_t common = 0;
    int result = get_number(l, object, "*", 60000000, false, &common);
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
            result = get_number(l, object, key, 60000000, true, &us);
        if (result < 0)
            return result;
        if (fn < SIM_FN_COUNT)
            l->machine->latency_us[fn] = (uint32_t)us;
    }
    leave(l, at);
    return result;
}

/* An array of strings; calls `take` for each. */
static int load_strings(struct loader *l, json_t *root, const char *key, size_t max,
                        int (*take)(struct loader *l, const char *text))
{
    json_t *array;
    int result = get_array(l, root, key, max, &array);
    size_t at = enter(l, key);
    for (size_t i = 0; result == GP_OK && i < json_array_size(array); i++) {
        size_t inner = enter_index(l, i);
        const char *text = json_string_value(json_array_get(array, i));
        result = text ? take(l, text) : fail(l, "expected a string");
        if (result == GP_OK)
            leave(l, inner);
    }
    if (result == GP_OK)
        leave(l, at);
    return result;
}

/* A function in two tables is one symbol. */
static int set_missing(struct loader *l, const char *text, bool missing)
{
    size_t fn = 0;
    int result = find_function(l, text, &fn);
    for (; result == GP_OK && fn < SIM_SYMBOL_COUNT; fn++)
        if (strcmp(sim_symbols[fn].name, text) == 0)
            l->machine->missing[fn] = missing;
    return result;
}

static int take_missing(struct loader *l, const char *text)
{
    return set_missing(l, text, true);
}

static int take_present(struct loader *l, const char *text)
{
    return set_missing(l, text, false);
}

static int take_fault(struct loader *l, const char *text)
{
    struct gp_err why = {0};
    if (sim_fault_parse_placed(text, &l->machine->faults[l->machine->fault_count], &why) < 0)
        return fail(l, "%s", why.text);
    l->machine->fault_count++;
    return GP_OK;
}

static void parse_version(const char *text, unsigned int numbers[3])
{
    if (text)
        (void)sscanf(text, "%u.%u.%u", &numbers[0], &numbers[1], &numbers[2]);
}

/* Replaces the file's driver with another one. */
static int play_driver(struct loader *l)
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
    return machine->driver_version && machine->nvml_version ? GP_OK : no_memory(l);
}

static int load_driver(struct loader *l, json_t *root)
{
    static const char *const keys[] = {"version", "nvml", "cuda", NULL};
    struct sim_machine *machine = l->machine;
    json_t *driver = json_object_get(root, "driver");
    size_t at = enter(l, "driver");
    uint64_t cuda = 0;
    int result = check_keys(l, driver, keys);
    if (result == GP_OK)
        result = get_text(l, driver, "version", false, &machine->driver_version);
    if (result == GP_OK)
        result = get_text(l, driver, "nvml", false, &machine->nvml_version);
    if (result == GP_OK)
        result = get_number(l, driver, "cuda", 1000000, false, &cuda);
    machine->cuda_version = (int)cuda;
    parse_version(machine->driver_version, l->recorded);
    machine->replayed = l->played != NULL;
    if (result == GP_OK && l->played)
        result = play_driver(l);
    if (result == GP_OK)
        leave(l, at);
    parse_version(machine->driver_version, machine->driver);
    sim_symbols_missing(machine->driver, machine->missing);
    for (size_t fn = 0; fn < SIM_FN_COUNT; fn++)
        machine->retired[fn] = sim_retired(machine->driver, sim_function_names[fn]);
    return result;
}

static int load_system(struct loader *l, json_t *root)
{
#define X(answer, key) key,
    static const char *const keys[] = {SIM_SYSTEM_ANSWERS(X) NULL};
#undef X
    json_t *system = json_object_get(root, "system");
    size_t at = enter(l, "system");
    int result = system ? check_keys(l, system, keys) : GP_OK;
    for (size_t i = 0; result == GP_OK && i < SIM_SYSTEM_COUNT; i++) {
        struct sim_value *v = &l->machine->system[i];
        v->number = 0;
        v->code = json_object_get(system, keys[i]) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        result = get_number(l, system, keys[i], UINT32_MAX, false, &v->number);
    }
    if (result == GP_OK)
        leave(l, at);
    return result;
}

/* Members that their own files load; these state the place inside. */
static int load_parts(struct loader *l, json_t *root)
{
    struct gp_err why = {0};
    size_t at = enter(l, "topology");
    if (sim_topology_load(json_object_get(root, "topology"), &l->machine->arena,
                          &l->machine->topology, &why) < 0)
        return fail(l, "%s", why.text);
    leave(l, at);
    at = enter(l, "host");
    if (sim_host_load(json_object_get(root, "host"), &l->machine->arena, &l->machine->host, &why) <
        0)
        return fail(l, "%s", why.text);
    leave(l, at);
    return GP_OK;
}

static int load_root(struct loader *l, json_t *root, size_t count)
{
    static const char *const keys[] = {"gpulse_machine", "source",     "notes",    "driver",
                                       "seed",           "latency_us", "missing",  "present",
                                       "faults",         "devices",    "workload", "topology",
                                       "system",         "host",       "about",    NULL};
    uint64_t version = 0;
    int result = check_keys(l, root, keys);
    if (result == GP_OK)
        result = get_number(l, root, "gpulse_machine", INT32_MAX, true, &version);
    if (result == GP_OK && version != 1)
        result = fail(l, "gpulse_machine: version %" PRIu64 " is unknown; expected 1", version);
    l->machine->source = "";
    if (result == GP_OK)
        result = get_text(l, root, "source", false, &l->machine->source);
    if (result == GP_OK)
        result = get_text(l, root, "about", false, &l->machine->about);
    if (result == GP_OK)
        result = get_number(l, root, "seed", INT64_MAX, false, &l->machine->seed);
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
        result = load_devices(l, root, count);
    if (result == GP_OK)
        result = load_workload(l, root);
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
        struct loader loader = {.file = path, .machine = machine, .err = err, .played = driver};
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
