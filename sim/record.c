#include "sim/record.h"

#include "abi/nvml_value.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "sim/record_internal.h"
#include "sim/record_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nvmlReturn_t ask_init(struct rec_call *c)
{
    return c->api->nvmlInit_v2();
}

static nvmlReturn_t ask_shutdown(struct rec_call *c)
{
    return c->api->nvmlShutdown();
}

static nvmlReturn_t ask_count(struct rec_call *c)
{
    return c->api->nvmlDeviceGetCount_v2(&c->count);
}

static nvmlReturn_t ask_handle(struct rec_call *c)
{
    return c->api->nvmlDeviceGetHandleByIndex_v2(c->key, &c->handle);
}

static nvmlReturn_t ask_driver_version(struct rec_call *c)
{
    return c->api->nvmlSystemGetDriverVersion(c->text, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
}

static nvmlReturn_t ask_nvml_version(struct rec_call *c)
{
    return c->api->nvmlSystemGetNVMLVersion(c->text, NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE);
}

static nvmlReturn_t ask_cuda_version(struct rec_call *c)
{
    int version = 0;
    nvmlReturn_t code = c->api->nvmlSystemGetCudaDriverVersion_v2
                            ? c->api->nvmlSystemGetCudaDriverVersion_v2(&version)
                            : c->api->nvmlSystemGetCudaDriverVersion(&version);
    c->numbers[0] = (uint64_t)version;
    return code;
}

static nvmlReturn_t ask_process_name(struct rec_call *c)
{
    return c->api->nvmlSystemGetProcessName(c->key, c->text, sizeof(c->text));
}

static nvmlReturn_t ask_uuid(struct rec_call *c)
{
    return c->api->nvmlDeviceGetUUID(c->device, c->text, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
}

static nvmlReturn_t ask_pci(struct rec_call *c)
{
    return c->api->nvmlDeviceGetPciInfo_v3(c->device, &c->pci);
}

static nvmlReturn_t ask_fields(struct rec_call *c)
{
    return c->api->nvmlDeviceGetFieldValues(c->device, (int)c->count, c->fields);
}

static nvmlReturn_t ask_max_mig(struct rec_call *c)
{
    return c->api->nvmlDeviceGetMaxMigDeviceCount(c->device, &c->count);
}

static nvmlReturn_t ask_mig_handle(struct rec_call *c)
{
    return c->api->nvmlDeviceGetMigDeviceHandleByIndex(c->device, c->key, &c->handle);
}

static nvmlReturn_t ask_instances(struct rec_call *c)
{
    unsigned int gi = 0, ci = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetGpuInstanceId(c->device, &gi);
    if (code == NVML_SUCCESS)
        code = c->api->nvmlDeviceGetComputeInstanceId(c->device, &ci);
    c->numbers[0] = gi;
    c->numbers[1] = ci;
    return code;
}

/* ------------------------------------------------------------------------- answers */

/* A later function is only used for a slot if the earlier one does not exist, or provides less. */
static bool is_open(const struct rec_answers *answers, enum sim_slot slot)
{
    nvmlReturn_t code = answers->values[slot].code;
    return !answers->asked[slot] || code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH ||
           code == NVML_ERROR_NOT_SUPPORTED;
}

static void keep_value(struct recorder *r, enum sim_slot slot, size_t i,
                       struct rec_answers *answers)
{
    const struct rec_call *c = r->call;
    struct sim_value *v = &answers->values[slot];
    if (answers->asked[slot] && v->code == NVML_ERROR_NOT_SUPPORTED && c->code != NVML_SUCCESS)
        return;
    v->code = c->unknown & 1u << i ? NVML_ERROR_NOT_SUPPORTED : c->code;
    answers->asked[slot] = true;
    if (v->code != NVML_SUCCESS)
        return;
    v->number = c->numbers[i];
    if (sim_answers[slot].kind == SIM_KIND_TEXT)
        v->text = rec_doc_text(&r->doc, c->text + c->text_at[i]);
}

static void ask_answers(struct recorder *r, nvmlDevice_t device, struct rec_answers *answers)
{
    memset(answers, 0, sizeof(*answers));
    for (size_t i = 0; i < rec_probe_count; i++) {
        const struct rec_probe *probe = &rec_probes[i];
        if (!r->api.present[probe->function] || !is_open(answers, probe->slot))
            continue;
        for (unsigned int key = 0; key < probe->keys; key++) {
            rec_prepare(r, probe->function, probe->ask, device)->key = key;
            (void)rec_ask(r);
            for (unsigned int v = 0; v < probe->values; v++)
                keep_value(r, probe->slot + key * probe->values + v, v, answers);
        }
    }
}

/* ------------------------------------------------------------------------- fields */

/* Driver 580.159.04 left some fields of a large call as they were, such as temperature limits that
 * it reports otherwise; probably because others of the call had a scope that does not exist. */
static void ask_field_alone(struct recorder *r, nvmlDevice_t device, nvmlFieldValue_t *field)
{
    struct rec_call *c = rec_prepare(r, SIM_FN_nvmlDeviceGetFieldValues, ask_fields, device);
    c->fields[0] = (nvmlFieldValue_t){.fieldId = field->fieldId, .scopeId = field->scopeId};
    c->count = 1;
    (void)rec_ask(r);
    *field = c->fields[0];
    if (c->code != NVML_SUCCESS)
        field->nvmlReturn = c->code;
    else if (nvml_field_is_untouched(field))
        field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
}

static void keep_fields(struct recorder *r, const struct rec_answers *answers, json_t *out)
{
    nvmlFieldValue_t fields[REC_FIELDS];
    nvmlDevice_t device = r->call->device;
    unsigned int count = r->call->count;
    nvmlReturn_t of_call = r->call->code;
    memcpy(fields, r->call->fields, count * sizeof(*fields));
    for (unsigned int i = 0; i < count; i++) {
        nvmlFieldValue_t *f = &fields[i];
        if (of_call == NVML_SUCCESS && nvml_field_is_untouched(f))
            ask_field_alone(r, device, f);
        nvmlReturn_t code = of_call == NVML_SUCCESS ? f->nvmlReturn : of_call;
        unsigned int newest = sim_field_newest(r->driver, f->fieldId);
        bool energy =
            newest == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION || newest == NVML_FI_DEV_ENERGY;
        nvmlReturn_t without = !sim_field_known(r->driver, newest) ? NVML_ERROR_INVALID_ARGUMENT
                               : energy ? answers->values[SIM_ENERGY].code
                                        : NVML_ERROR_NOT_SUPPORTED;
        if (code != without || code == NVML_SUCCESS)
            rec_doc_field(&r->doc, out, f, code);
    }
}

/* Reads all field ids with their scopes, in batches. */
static json_t *ask_all_fields(struct recorder *r, nvmlDevice_t device,
                              const struct rec_answers *answers, unsigned int links)
{
    json_t *out = json_object();
    struct rec_call *c = rec_prepare(r, SIM_FN_nvmlDeviceGetFieldValues, ask_fields, device);
    for (unsigned int id = 1; id <= SIM_FIELD_LAST; id++) {
        unsigned int newest = sim_field_newest(r->driver, id);
        unsigned int scope, at = 0;
        while (rec_field_scope(newest, links, at++, &scope)) {
            c->fields[c->count++] = (nvmlFieldValue_t){.fieldId = id, .scopeId = scope};
            if (c->count < REC_FIELDS)
                continue;
            (void)rec_ask(r);
            keep_fields(r, answers, out);
            c = rec_prepare(r, SIM_FN_nvmlDeviceGetFieldValues, ask_fields, device);
        }
    }
    if (c->count > 0) {
        (void)rec_ask(r);
        keep_fields(r, answers, out);
    }
    return out;
}

/* ------------------------------------------------------------------------- processes */

struct processes {
    struct sim_process *all;
    size_t count;
};

static bool same_process(const struct sim_process *a, const struct sim_process *b)
{
    return a->pid == b->pid && a->gpu_instance == b->gpu_instance &&
           a->compute_instance == b->compute_instance;
}

static void add_process(struct recorder *r, struct processes *p, const struct sim_process *new,
                        enum rec_list list)
{
    struct sim_process *found = NULL;
    for (size_t i = 0; i < p->count && !found; i++)
        if (same_process(&p->all[i], new))
            found = &p->all[i];
    if (!found) {
        struct sim_process *grown =
            p->count < SIM_MAX_PROCESSES ? realloc(p->all, (p->count + 1) * sizeof(*grown)) : NULL;
        if (!grown) {
            rec_doc_note(&r->doc, "%s: more than %zu processes; the rest are missing", r->where,
                         p->count);
            return;
        }
        p->all = grown;
        found = &p->all[p->count++];
        *found = *new;
    }
    found->compute |= list == REC_COMPUTE;
    found->graphics |= list == REC_GRAPHICS;
    found->mps |= list == REC_MPS;
}

/* On a MIG device, the driver may omit which instance it is. */
static void ask_processes(struct recorder *r, nvmlDevice_t device, const int instances[2],
                          struct processes *p)
{
    for (int list = REC_COMPUTE; list < REC_LISTS; list++) {
        struct rec_call *c =
            rec_prepare(r, SIM_FN_nvmlDeviceGetComputeRunningProcesses, NULL, device);
        if (!rec_list_ask(&r->api, r->driver, (enum rec_list)list, c) || rec_ask(r) != NVML_SUCCESS)
            continue;
        for (unsigned int i = 0; i < c->count; i++) {
            struct sim_process process = rec_list_entry(c, i);
            if (instances && process.gpu_instance == SIM_NO_INSTANCE) {
                process.gpu_instance = instances[0];
                process.compute_instance = instances[1];
            }
            add_process(r, p, &process, (enum rec_list)list);
        }
    }
}

static void set_shares(struct sim_process *p, const nvmlProcessUtilizationSample_t *sample)
{
    const unsigned int pct[SIM_SHARE_COUNT] = {sample->smUtil, sample->memUtil, sample->encUtil,
                                               sample->decUtil};
    for (int i = 0; i < SIM_SHARE_COUNT; i++)
        if (pct[i] <= 100)
            p->share_pct[i] = pct[i];
}

static void ask_shares(struct recorder *r, nvmlDevice_t device, struct processes *p)
{
    const struct rec_call *c =
        rec_prepare(r, SIM_FN_nvmlDeviceGetProcessUtilization, rec_ask_utilization, device);
    if (rec_ask(r) != NVML_SUCCESS)
        return;
    const nvmlProcessUtilizationSample_t *samples = c->entries;
    for (unsigned int i = 0; i < c->count; i++)
        for (size_t j = 0; j < p->count; j++)
            if (p->all[j].pid == samples[i].pid)
                set_shares(&p->all[j], &samples[i]);
}

static void ask_names(struct recorder *r, struct processes *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct rec_call *c =
            rec_prepare(r, SIM_FN_nvmlSystemGetProcessName, ask_process_name, NULL);
        c->key = p->all[i].pid;
        bool named = rec_ask(r) == NVML_SUCCESS;
        p->all[i].name = named && !r->config->redact ? rec_doc_text(&r->doc, c->text) : NULL;
    }
}

/* ------------------------------------------------------------------------- devices */

static json_t *ask_mig(struct recorder *r, nvmlDevice_t device, unsigned int index,
                       struct processes *p)
{
    struct rec_answers answers;
    rec_prepare(r, SIM_FN_nvmlDeviceGetMigDeviceHandleByIndex, ask_mig_handle, device)->key = index;
    if (rec_ask(r) != NVML_SUCCESS)
        return NULL;
    nvmlDevice_t mig = r->call->handle;
    (void)rec_prepare(r, SIM_FN_nvmlDeviceGetGpuInstanceId, ask_instances, mig);
    if (rec_ask(r) != NVML_SUCCESS) {
        rec_doc_note(&r->doc, "%s: MIG device %u does not report its instances, and is omitted",
                     r->where, index);
        return NULL;
    }
    const int instances[] = {(int)r->call->numbers[0], (int)r->call->numbers[1]};
    (void)rec_prepare(r, SIM_FN_nvmlDeviceGetUUID, ask_uuid, mig);
    char uuid[REC_TEXT_SIZE] = "";
    if (rec_ask(r) == NVML_SUCCESS)
        memcpy(uuid, r->call->text, sizeof(uuid));
    const char *id = rec_doc_secret(&r->doc, uuid);
    ask_answers(r, mig, &answers);
    ask_processes(r, mig, instances, p);
    return json_pack("{s:i, s:i, s:s, s:o}", "gpu_instance", instances[0], "compute_instance",
                     instances[1], "uuid", id, "answers",
                     rec_doc_answers(&r->doc, r->where, &answers, true));
}

static json_t *ask_migs(struct recorder *r, nvmlDevice_t device, struct processes *p)
{
    (void)rec_prepare(r, SIM_FN_nvmlDeviceGetMaxMigDeviceCount, ask_max_mig, device);
    if (!r->api.nvmlDeviceGetMigDeviceHandleByIndex || !r->api.nvmlDeviceGetGpuInstanceId ||
        !r->api.nvmlDeviceGetComputeInstanceId || rec_ask(r) != NVML_SUCCESS)
        return NULL;
    unsigned int count = r->call->count < SIM_MAX_MIGS ? r->call->count : SIM_MAX_MIGS;
    json_t *migs = json_array();
    for (unsigned int i = 0; i < count; i++) {
        json_t *mig = ask_mig(r, device, i, p);
        if (mig)
            (void)json_array_append_new(migs, mig);
    }
    return migs;
}

/* A GPU without a handle keeps its position, and returns the error. */
static json_t *absent_device(struct recorder *r, unsigned int index, nvmlReturn_t code)
{
    char uuid[64], fault[96];
    const char *name = sim_return_name(code);
    (void)snprintf(uuid, sizeof(uuid), "GPU-00000000-0000-0000-0000-%012u", index);
    (void)snprintf(fault, sizeof(fault), "%u:error=%s:nvmlDeviceGetHandleBy", index,
                   name ? name : "UNKNOWN");
    (void)json_array_append_new(r->doc.faults, json_string(fault));
    rec_doc_note(&r->doc, "%s: no handle (%s); its answers are unknown", r->where,
                 name ? name : "UNKNOWN");
    return json_pack("{s:s, s:{s:s}}", "uuid", uuid, "pci", "bus_id", "00000000:00:00.0");
}

/* How other devices refer to it. */
static void identify(struct recorder *r, unsigned int index)
{
    (void)snprintf(r->where, sizeof(r->where), "GPU %u", index);
    r->timeouts = 0;
    rec_prepare(r, SIM_FN_nvmlDeviceGetHandleByIndex_v2, ask_handle, NULL)->key = index;
    r->devices[index].code = rec_ask(r);
    if (r->devices[index].code != NVML_SUCCESS)
        return;
    nvmlDevice_t device = r->devices[index].handle = r->call->handle;
    (void)rec_prepare(r, SIM_FN_nvmlDeviceGetPciInfo_v3, ask_pci, device);
    if (rec_ask(r) == NVML_SUCCESS)
        r->devices[index].pci = r->call->pci;
    else
        rec_doc_note(&r->doc, "%s: unknown PCI address", r->where);
    r->devices[index].timeouts = r->timeouts;
}

static json_t *pci_json(const nvmlPciInfo_t *pci)
{
    char bus_id[24], id[16], subsystem[16];
    (void)snprintf(bus_id, sizeof(bus_id), "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xff,
                   pci->device & 0xff);
    (void)snprintf(id, sizeof(id), "0x%08X", pci->pciDeviceId);
    (void)snprintf(subsystem, sizeof(subsystem), "0x%08X", pci->pciSubSystemId);
    return json_pack("{s:s, s:s, s:s}", "bus_id", bus_id, "device_id", id, "subsystem_id",
                     subsystem);
}

static json_t *ask_device(struct recorder *r, unsigned int index)
{
    struct rec_answers answers;
    struct processes p = {0};
    (void)snprintf(r->where, sizeof(r->where), "GPU %u", index);
    r->timeouts = r->devices[index].timeouts;
    if (r->devices[index].code != NVML_SUCCESS)
        return absent_device(r, index, r->devices[index].code);
    nvmlDevice_t device = r->devices[index].handle;
    (void)rec_prepare(r, SIM_FN_nvmlDeviceGetUUID, ask_uuid, device);
    char uuid[REC_TEXT_SIZE];
    (void)snprintf(uuid, sizeof(uuid), "GPU-00000000-0000-0000-0000-%012u", index);
    if (rec_ask(r) == NVML_SUCCESS)
        memcpy(uuid, r->call->text, sizeof(uuid));
    else
        rec_doc_note(&r->doc, "%s: unknown UUID", r->where);
    const char *id = rec_doc_secret(&r->doc, uuid);
    ask_answers(r, device, &answers);
    json_t *lists = rec_lists(r, index);
    json_t *fields = ask_all_fields(r, device, &answers, rec_link_count(lists));
    ask_processes(r, device, NULL, &p);
    json_t *migs = ask_migs(r, device, &p);
    ask_shares(r, device, &p);
    ask_names(r, &p);
    json_t *out =
        json_pack("{s:s, s:o, s:o, s:o, s:o}", "uuid", id, "pci", pci_json(&r->devices[index].pci),
                  "answers", rec_doc_answers(&r->doc, r->where, &answers, false), "fields", fields,
                  "processes", rec_doc_processes(&r->doc, r->where, p.all, p.count));
    if (json_object_size(lists) > 0)
        (void)json_object_set(out, "lists", lists);
    json_decref(lists);
    if (migs)
        (void)json_object_set_new(out, "mig", migs);
    free(p.all);
    return out;
}

/* ------------------------------------------------------------------------- the machine */

static void ask_system(struct recorder *r)
{
    static const struct {
        enum sim_function function;
        nvmlReturn_t (*ask)(struct rec_call *);
        const char *key;
        bool number;
    } rows[] = {
        {SIM_FN_nvmlSystemGetDriverVersion, ask_driver_version, "version", false},
        {SIM_FN_nvmlSystemGetNVMLVersion, ask_nvml_version, "nvml", false},
        {SIM_FN_nvmlSystemGetCudaDriverVersion, ask_cuda_version, "cuda", true},
    };
    (void)snprintf(r->where, sizeof(r->where), "driver");
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct rec_call *c = rec_prepare(r, rows[i].function, rows[i].ask, NULL);
        if (rec_ask(r) != NVML_SUCCESS) {
            const char *name = r->call->code ? sim_return_name(r->call->code) : NULL;
            rec_doc_note(&r->doc, "%s returns %s", sim_function_names[rows[i].function],
                         name ? name : "nothing");
            continue;
        }
        json_t *value = rows[i].number ? json_integer((json_int_t)c->numbers[0])
                                       : json_string(rec_doc_text(&r->doc, c->text));
        (void)json_object_set_new(r->doc.driver, rows[i].key, value);
        if (i == 0)
            (void)sscanf(c->text, "%u.%u.%u", &r->driver[0], &r->driver[1], &r->driver[2]);
    }
}

static int start_driver(struct recorder *r, struct gp_err *err)
{
    (void)snprintf(r->where, sizeof(r->where), "driver");
    (void)rec_prepare(r, SIM_FN_nvmlInit_v2, ask_init, NULL);
    nvmlReturn_t code = rec_ask(r);
    if (code == NVML_SUCCESS)
        return GP_OK;
    const char *words = r->api.gpulse_sim_error ? r->api.gpulse_sim_error() : "";
    const char *name = sim_return_name(code);
    if (words[0])
        return gp_err_set(err, GP_EDRIVER, "%s", words);
    return gp_err_set(err, GP_EDRIVER, "cannot start NVML: nvmlInit_v2 returns %s (%d)",
                      name ? name : "a code without a name", (int)code);
}

static json_t *latencies(const struct recorder *r)
{
    json_t *out = json_object();
    for (size_t fn = 0; fn < SIM_FN_COUNT; fn++)
        if (r->cost[fn].calls > 0)
            (void)json_object_set_new(
                out, sim_function_names[fn],
                json_integer((json_int_t)(r->cost[fn].ns / r->cost[fn].calls / 1000)));
    return out;
}

static int record(struct recorder *r, json_t **ret, struct gp_err *err)
{
    int result = start_driver(r, err);
    if (result < 0)
        return result;
    ask_system(r);
    (void)rec_prepare(r, SIM_FN_nvmlDeviceGetCount_v2, ask_count, NULL);
    if (rec_ask(r) != NVML_SUCCESS || r->call->count == 0)
        return gp_err_set(err, r->call->code ? GP_EDRIVER : GP_ENODEV,
                          r->call->code ? "cannot count the GPUs" : "no GPU found");
    unsigned int count = r->call->count;
    if (count > SIM_MAX_DEVICES)
        rec_doc_note(&r->doc, "%u GPUs; only the first %d are included", count, SIM_MAX_DEVICES);
    r->device_count = count < SIM_MAX_DEVICES ? count : SIM_MAX_DEVICES;
    for (unsigned int i = 0; i < r->device_count; i++)
        identify(r, i);
    r->doc.system = rec_system(r);
    r->doc.topology = rec_topology(r);
    for (unsigned int i = 0; i < r->device_count; i++)
        (void)json_array_append_new(r->doc.devices, ask_device(r, i));
    r->timeouts = 0;
    (void)rec_prepare(r, SIM_FN_nvmlShutdown, ask_shutdown, NULL);
    if (!rec_runner_is_stuck(r->runner))
        (void)rec_ask(r);
    if (r->failed)
        return gp_err_set(err, GP_ENOMEM, "out of memory or threads");
    if (r->config->latency)
        r->doc.latency = latencies(r);
    *ret = rec_doc_machine(&r->doc, r->api.present, r->driver);
    return *ret ? GP_OK : gp_err_set(err, GP_ENOMEM, "out of memory");
}

int rec_machine(const struct rec_config *config, json_t **ret, bool *ret_stuck, struct gp_err *err)
{
    /* A call in progress may use the library and its table forever: they are never freed. */
    static struct recorder recorder;
    struct recorder *r = &recorder;
    *r = (struct recorder){.config = config, .call = &r->one};
    r->runner = rec_runner_new(config->timeout_ns);
    int result = GP_OK;
    if (!r->runner || !rec_doc_init(&r->doc, config->redact))
        result = gp_err_set(err, GP_ENOMEM, "out of memory");
    if (result == GP_OK)
        result = rec_load(&r->api, config->library, err);
    if (result == GP_OK)
        result = record(r, ret, err);
    *ret_stuck = !rec_runner_free(r->runner);
    free(r->one.entries);
    rec_doc_fini(&r->doc);
    return result;
}
