/* Loads the devices of a machine, and the processes on them. */
#include "sim/machine_document.h"

#include "base/err.h"
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- processes */

static int load_type(struct sim_loader *l, json_t *json, struct sim_process *process)
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
    int result = sim_doc_text(l, json, "type", false, &type);
    for (size_t i = 0; result == GP_OK && i < GP_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].name, type) != 0)
            continue;
        process->compute = types[i].compute;
        process->graphics = types[i].graphics;
        process->mps = types[i].mps;
        return GP_OK;
    }
    return result < 0 ? result
                      : sim_doc_fail(l, "type: expected \"C\", \"G\", \"C+G\", \"M\" or \"M+C\"");
}

const char *const sim_share_keys[SIM_SHARE_COUNT] = {
#define X(share, key) key,
    SIM_SHARES(X)
#undef X
};

static int load_shares(struct sim_loader *l, json_t *json, struct sim_process *process)
{
    int result = GP_OK;
    for (int i = 0; result == GP_OK && i < SIM_SHARE_COUNT; i++) {
        unsigned int sm = process->share_pct[SIM_SHARE_SM];
        uint64_t share = i == SIM_SHARE_MEM ? sim_share_of_memory(sm) : 0;
        result = sim_doc_number(l, json, sim_share_keys[i], 100, false, &share);
        process->share_pct[i] = (unsigned int)share;
    }
    return result;
}

/* The common members of captured processes and workloads. */
static int load_process(struct sim_loader *l, json_t *json, struct sim_process *process)
{
    uint64_t pid = 0, gi = UINT64_MAX, ci = UINT64_MAX;
    process->name = NULL;
    int result = sim_doc_number(l, json, "pid", INT32_MAX, true, &pid);
    if (result == GP_OK)
        result = load_type(l, json, process);
    if (result == GP_OK)
        result = sim_doc_text(l, json, "name", false, &process->name);
    if (result == GP_OK && !json_is_null(json_object_get(json, "memory_bytes"))) {
        process->memory_known = json_object_get(json, "memory_bytes");
        result = sim_doc_number(l, json, "memory_bytes", INT64_MAX, false, &process->memory_bytes);
    }
    if (result == GP_OK)
        result = sim_doc_number(l, json, "gpu_instance", 1000, false, &gi);
    if (result == GP_OK)
        result = sim_doc_number(l, json, "compute_instance", 1000, false, &ci);
    if (result == GP_OK)
        result = load_shares(l, json, process);
    process->pid = process->like_pid = (unsigned int)pid;
    process->gpu_instance = gi == UINT64_MAX ? SIM_NO_INSTANCE : (int)gi;
    process->compute_instance = ci == UINT64_MAX ? SIM_NO_INSTANCE : (int)ci;
    return result;
}

static int load_processes(struct sim_loader *l, json_t *json, struct sim_device *device)
{
    static const char *const keys[] = {
        "pid",         "type",         "memory_bytes", "name",         "util",
        "util_memory", "util_encoder", "util_decoder", "gpu_instance", "compute_instance",
        NULL};
    json_t *array;
    int result = sim_doc_array(l, json, "processes", SIM_MAX_PROCESSES, &array);
    if (result < 0)
        return result;
    device->processes = sim_doc_alloc(l, json_array_size(array), sizeof(*device->processes));
    if (!device->processes)
        return sim_doc_no_memory(l);
    size_t at = sim_doc_enter(l, "processes");
    for (size_t i = 0; i < json_array_size(array); i++) {
        size_t inner = sim_doc_enter_index(l, i);
        result = sim_doc_check_keys(l, json_array_get(array, i), keys);
        if (result == GP_OK)
            result = load_process(l, json_array_get(array, i), &device->processes[i]);
        if (result < 0)
            return result;
        device->process_count++;
        sim_doc_leave(l, inner);
    }
    sim_doc_leave(l, at);
    return GP_OK;
}

/* ------------------------------------------------------------------------- devices */

static int load_mig(struct sim_loader *l, json_t *json, struct sim_device *parent)
{
    static const char *const keys[] = {"gpu_instance", "compute_instance", "uuid", "answers", NULL};
    json_t *array;
    int result = sim_doc_array(l, json, "mig", SIM_MAX_MIGS, &array);
    if (result < 0 || !array)
        return result;
    parent->migs = sim_doc_alloc(l, json_array_size(array), sizeof(*parent->migs));
    if (!parent->migs)
        return sim_doc_no_memory(l);
    size_t at = sim_doc_enter(l, "mig");
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *entry = json_array_get(array, i);
        size_t inner = sim_doc_enter_index(l, i);
        struct sim_device *mig = &parent->migs[i];
        uint64_t gi = 0, ci = 0;
        result = sim_doc_check_keys(l, entry, keys);
        if (result == GP_OK)
            result = sim_doc_number(l, entry, "gpu_instance", 1000, true, &gi);
        if (result == GP_OK)
            result = sim_doc_number(l, entry, "compute_instance", 1000, true, &ci);
        if (result == GP_OK)
            result = sim_doc_text(l, entry, "uuid", true, &mig->uuid);
        if (result == GP_OK)
            result = sim_doc_answers(l, entry, mig->answers);
        if (result < 0)
            return result;
        mig->index = (unsigned int)i;
        mig->gpu_instance = (int)gi;
        mig->compute_instance = (int)ci;
        sim_doc_leave(l, inner);
    }
    parent->mig_count = json_array_size(array);
    sim_doc_leave(l, at);
    return GP_OK;
}

static int get_hex(struct sim_loader *l, json_t *object, const char *key, unsigned int *ret)
{
    const char *text = "0";
    int result = sim_doc_text(l, object, key, false, &text);
    if (result < 0)
        return result;
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 16);
    if (*end || end == text || errno || value > UINT32_MAX) {
        (void)sim_doc_enter(l, key);
        return sim_doc_fail(
            l, "expected a hexadecimal number as a string, for example \"0x233010DE\"");
    }
    *ret = (unsigned int)value;
    return GP_OK;
}

static int load_pci(struct sim_loader *l, json_t *json, struct sim_device *device)
{
    static const char *const keys[] = {"bus_id", "device_id", "subsystem_id", NULL};
    json_t *pci = json_object_get(json, "pci");
    size_t at = sim_doc_enter(l, "pci");
    const char *bus_id = NULL;
    int result = sim_doc_check_keys(l, pci, keys);
    if (result == GP_OK)
        result = sim_doc_text(l, pci, "bus_id", true, &bus_id);
    if (result < 0)
        return result;
    unsigned int function;
    int used = 0;
    if (sscanf(bus_id, "%8x:%2x:%2x.%1x%n", &device->pci_domain, &device->pci_bus,
               &device->pci_slot, &function, &used) != 4 ||
        bus_id[used])
        return sim_doc_fail(l, "bus_id: expected the form \"00000000:53:00.0\"");
    result = get_hex(l, pci, "device_id", &device->pci_device_id);
    if (result == GP_OK)
        result = get_hex(l, pci, "subsystem_id", &device->pci_subsystem_id);
    if (result == GP_OK)
        sim_doc_leave(l, at);
    return result;
}

static int load_lists(struct sim_loader *l, json_t *json, struct sim_device *device)
{
    struct gp_err why = {0};
    size_t at = sim_doc_enter(l, "lists");
    if (sim_lists_load(json_object_get(json, "lists"), &l->machine->arena, &device->lists, &why) <
        0)
        return sim_doc_fail(l, "%s", why.text);
    sim_doc_leave(l, at);
    return GP_OK;
}

static int load_gpm(struct sim_loader *l, json_t *json, struct sim_device *device)
{
    json_t *object = json_object_get(json, "gpm");
    size_t at = sim_doc_enter(l, "gpm");
    const char *key;
    json_t *value;
    if (object && !json_is_object(object))
        return sim_doc_fail(l, "expected an object");
    json_object_foreach(object, key, value)
    {
        uint64_t id, pct = 0;
        if (!gp_parse_u64(key, &id) || id == 0 || id >= SIM_GPM_UNITS)
            return sim_doc_fail(l, "expected ids of GPM metrics from 1 to %d", SIM_GPM_UNITS - 1);
        int result = sim_doc_number(l, object, key, 100, true, &pct);
        if (result < 0)
            return result;
        device->gpm[id] = (uint8_t)(pct + 1);
    }
    sim_doc_leave(l, at);
    return GP_OK;
}

static int load_device(struct sim_loader *l, json_t *json, struct sim_device *device)
{
    static const char *const keys[] = {"uuid",  "pci",       "answers", "fields", "gpm",
                                       "lists", "processes", "mig",     NULL};
    static int (*const parts[])(struct sim_loader *, json_t *, struct sim_device *) = {
        load_pci, sim_doc_fields, load_gpm, load_lists, load_processes, load_mig,
    };
    device->gpu_instance = device->compute_instance = SIM_NO_INSTANCE;
    int result = sim_doc_check_keys(l, json, keys);
    if (result == GP_OK)
        result = sim_doc_text(l, json, "uuid", true, &device->uuid);
    if (result == GP_OK)
        result = sim_doc_answers(l, json, device->answers);
    for (size_t i = 0; result == GP_OK && i < GP_ARRAY_LEN(parts); i++)
        result = parts[i](l, json, device);
    return result;
}

/* A GPU in excess of those in the file: the same answers, its own identity. */
static int copy_device(struct sim_loader *l, const struct sim_device *model, size_t copy,
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
            return sim_doc_no_memory(l);
    }
    device->migs = sim_doc_alloc(l, model->mig_count, sizeof(*device->migs));
    if (!device->uuid || !device->migs)
        return sim_doc_no_memory(l);
    for (size_t i = 0; i < model->mig_count; i++) {
        device->migs[i] = model->migs[i];
        (void)snprintf(text, sizeof(text), "MIG-%08x-%s", head,
                       strlen(model->migs[i].uuid) > 13 ? model->migs[i].uuid + 13 : "");
        if (!(device->migs[i].uuid = gp_arena_strdup(arena, text)))
            return sim_doc_no_memory(l);
    }
    return GP_OK;
}

int sim_doc_devices(struct sim_loader *l, json_t *root, size_t count)
{
    struct sim_machine *machine = l->machine;
    json_t *array;
    int result = sim_doc_array(l, root, "devices", SIM_MAX_DEVICES, &array);
    if (result < 0)
        return result;
    size_t given = json_array_size(array);
    (void)sim_doc_enter(l, "devices");
    if (given == 0)
        return sim_doc_fail(l, "expected an array of at least one device");
    machine->device_count = count ? count : given;
    machine->devices = sim_doc_alloc(l, machine->device_count, sizeof(*machine->devices));
    if (!machine->devices)
        return sim_doc_no_memory(l);
    for (size_t i = 0; i < machine->device_count; i++) {
        struct sim_device *device = &machine->devices[i];
        size_t at = sim_doc_enter_index(l, i);
        if (i < given)
            result = load_device(l, json_array_get(array, i), device);
        else
            result = copy_device(l, &machine->devices[i % given], i / given, device);
        if (result < 0)
            return result;
        device->index = (unsigned int)i;
        if (i >= given && device->answers[SIM_MINOR].code == NVML_SUCCESS)
            device->answers[SIM_MINOR].number = i;
        sim_doc_leave(l, at);
    }
    sim_doc_leave(l, 0);
    /* Only now, because the array may have moved before. */
    for (size_t i = 0; i < machine->device_count; i++)
        for (size_t j = 0; j < machine->devices[i].mig_count; j++)
            machine->devices[i].migs[j].parent = &machine->devices[i];
    return GP_OK;
}

/* ------------------------------------------------------------------------- workload */

static int append_process(struct sim_loader *l, struct sim_device *device,
                          const struct sim_process *process)
{
    struct sim_process *grown = sim_doc_alloc(l, device->process_count + 1, sizeof(*grown));
    if (!grown)
        return sim_doc_no_memory(l);
    memcpy(grown, device->processes, device->process_count * sizeof(*grown));
    grown[device->process_count++] = *process;
    device->processes = grown;
    return GP_OK;
}

/* When a job of the workload runs, and whether the driver lists it. */
static int load_turns(struct sim_loader *l, json_t *json, struct sim_process *process)
{
    uint64_t every_s = 0, runs_s = 0;
    json_t *hidden = json_object_get(json, "hidden");
    int result = sim_doc_number(l, json, "every_s", 86400, false, &every_s);
    if (result == GP_OK)
        result = sim_doc_number(l, json, "runs_s", every_s, every_s > 0, &runs_s);
    if (result == GP_OK && hidden && !json_is_boolean(hidden))
        result = sim_doc_fail(l, "hidden: expected true or false");
    process->every_s = (unsigned int)every_s;
    process->runs_s = (unsigned int)runs_s;
    process->hidden = json_is_true(hidden);
    return result;
}

/* Places one job of the workload on its GPUs, and on the same GPUs of each further set of `given`
 * devices, there with other pids. */
static int place_workload(struct sim_loader *l, json_t *json, size_t given, unsigned int pid_step)
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
    int result = sim_doc_check_keys(l, json, keys);
    if (result == GP_OK)
        result = load_process(l, json, &process);
    if (result == GP_OK)
        result = load_turns(l, json, &process);
    if (result == GP_OK)
        result = sim_doc_array(l, json, "gpus", SIM_MAX_DEVICES, &gpus);
    process.util_pct = process.share_pct[SIM_SHARE_SM];
    process.load_bytes = process.memory_bytes;
    for (size_t i = 0; result == GP_OK && i < json_array_size(gpus); i++) {
        json_int_t gpu = json_integer_value(json_array_get(gpus, i));
        if (!json_is_integer(json_array_get(gpus, i)) || gpu < 0 || (size_t)gpu >= given)
            return sim_doc_fail(l, "gpus: expected numbers from 0 to %zu", given - 1);
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

int sim_doc_workload(struct sim_loader *l, json_t *root)
{
    json_t *array;
    int result = sim_doc_array(l, root, "workload", 256, &array);
    size_t given = json_array_size(json_object_get(root, "devices"));
    size_t at = sim_doc_enter(l, "workload");
    for (size_t i = 0; result == GP_OK && i < json_array_size(array); i++) {
        size_t inner = sim_doc_enter_index(l, i);
        result = place_workload(l, json_array_get(array, i), given,
                                (unsigned int)json_array_size(array));
        if (result == GP_OK)
            sim_doc_leave(l, inner);
    }
    if (result == GP_OK)
        sim_doc_leave(l, at);
    return result;
}
