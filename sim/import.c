#include "sim/import.h"

#include "abi/nvml.h"
#include "base/err.h"
#include "sim/capture.h"
#include "sim/import_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- lists */

/* The id of a GPU or compute instance: a small number, otherwise invalid. */
static bool instance_id(const struct sim_node *node, const char *path, json_int_t *ret)
{
    const char *text = sim_node_text(node, path);
    return text && sim_parse_scaled(text, 1, ret) && *ret >= 0 && *ret < 256;
}

static bool put_instance(json_t *object, const struct sim_node *node, const char *path,
                         const char *key)
{
    json_int_t id;
    return !instance_id(node, path, &id) || sim_put(object, key, NULL, json_integer(id));
}

static json_t *import_processes(const struct sim_node *gpu)
{
    json_t *list = json_array();
    const struct sim_node *group = sim_node_find(gpu, "processes");
    for (const struct sim_node *p = group ? group->first : NULL; p && list; p = p->next) {
        const char *pid = sim_node_text(p, "pid");
        const char *memory = sim_node_text(p, "used_memory");
        const char *type = sim_node_text(p, "type");
        const char *name = sim_node_text(p, "process_name");
        json_int_t number;
        if (strcmp(p->name, "process_info") != 0 || !pid || !sim_parse_scaled(pid, 1, &number))
            continue;
        json_t *entry = json_object();
        bool known = memory && !sim_words_code(memory);
        bool ok = entry && json_object_set_new(entry, "pid", json_integer(number)) == 0 &&
                  sim_put(entry, "type", NULL, json_string(type && *type ? type : "C")) &&
                  sim_put(entry, "memory_bytes", NULL,
                          known ? sim_convert(memory, SIM_MIB) : json_null()) &&
                  (!name || sim_put(entry, "name", NULL, json_string(name))) &&
                  put_instance(entry, p, "gpu_instance_id", "gpu_instance") &&
                  put_instance(entry, p, "compute_instance_id", "compute_instance");
        if (!ok || json_array_append_new(list, entry) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static const struct sim_row mig_rows[] = {
    {"device_attributes/shared/multiprocessor_count", "Attributes", "multiprocessors", SIM_COUNT},
    {"device_attributes/shared/copy_engine_count", "Attributes", "copy_engines", SIM_COUNT},
    {"device_attributes/shared/decoder_count", "Attributes", "decoders", SIM_COUNT},
    {"device_attributes/shared/encoder_count", "Attributes", "encoders", SIM_COUNT},
    {"device_attributes/shared/jpg_count", "Attributes", "jpeg_engines", SIM_COUNT},
    {"device_attributes/shared/ofa_count", "Attributes", "ofa_engines", SIM_COUNT},
    {"bar1_memory_usage/total", "BAR1MemoryInfo", "total", SIM_MIB},
    {"bar1_memory_usage/used", "BAR1MemoryInfo", "used", SIM_MIB},
    {"bar1_memory_usage/free", "BAR1MemoryInfo", "free", SIM_MIB},
    {"ecc_error_count/volatile_count/sram_uncorrectable", "MemoryErrorCounter",
     "uncorrected.volatile.SRAM", SIM_COUNT},
};

/* The multiprocessors of a compute slice, for GPUs where a capture shows them: A100 and A30
 * (0x20xx), H100 and H200 (0x23xx, where an instance may have more). 0: unknown. */
static json_int_t slice_size(unsigned int pci_device_id)
{
    return pci_device_id >> 24 == 0x20 ? 14 : pci_device_id >> 24 == 0x23 ? 16 : 0;
}

static bool shares_instance(const struct sim_node *group, const struct sim_node *mig, json_int_t gi)
{
    json_int_t other;
    for (const struct sim_node *m = group->first; m; m = m->next)
        if (m != mig && instance_id(m, "gpu_instance_id", &other) && other == gi)
            return true;
    return false;
}

/* What a MIG device is, as far as the capture shows it. */
struct mig_form {
    json_int_t slices, parts; /* of its GPU instance, and its own of these; 0: unknown */
    json_int_t mib, gb;       /* memory, and that in its name */
    bool has_media;           /* the profile with all media engines: "+me" */
};

/* A copy engine for each slice, except that all seven have eight of an H100. The memory in the name
 * is that of the GPU in eighths, in GB. */
static bool read_form(const struct sim_node *gpu, const struct sim_node *mig, json_int_t gi,
                      unsigned int pci_device_id, struct mig_form *ret)
{
    const struct sim_node *group = sim_node_find(gpu, "mig_devices");
    const char *all = sim_node_text(gpu, "fb_memory_usage/total");
    const char *memory = sim_node_text(mig, "fb_memory_usage/total");
    const char *count = sim_node_text(mig, "device_attributes/shared/multiprocessor_count");
    const char *copies = sim_node_text(mig, "device_attributes/shared/copy_engine_count");
    const char *flow = sim_node_text(mig, "device_attributes/shared/ofa_count");
    json_int_t size = slice_size(pci_device_id);
    json_int_t total, sm, copy, ofa = 0;
    if (!memory || !count || !sim_parse_scaled(memory, 1, &ret->mib) ||
        !sim_parse_scaled(count, 1, &sm))
        return false;
    if (!all || !copies || !sim_parse_scaled(all, 1, &total) || total <= 0 ||
        !sim_parse_scaled(copies, 1, &copy) || copy < 1)
        return true;
    ret->slices = copy < 7 ? copy : 7;
    bool is_whole = size ? sm >= (size - 1) * ret->slices : !shares_instance(group, mig, gi);
    ret->parts = is_whole ? ret->slices : size ? sm / size : 0;
    ret->has_media = size && ret->slices == 1 && flow && sim_parse_scaled(flow, 1, &ofa) && ofa > 0;
    json_int_t eighths = (ret->mib * 16 + total) / (2 * total);
    ret->gb = ((total + 1023) / 1024 * eighths + 4) / 8;
    return true;
}

/* "MIG 1g.20gb", "MIG 1c.3g.40gb", "MIG 1g.10gb+me". */
static bool put_mig_name(json_t *answers, const struct sim_node *gpu, const struct sim_node *mig,
                         json_int_t gi, unsigned int pci_device_id)
{
    struct mig_form form = {0};
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE], part[32] = "", profile[64] = "";
    const char *gpu_name = sim_node_text(gpu, "product_name");
    if (!read_form(gpu, mig, gi, pci_device_id, &form))
        return true;
    bool ok = sim_put(answers, "Attributes", "memory_mib", json_integer(form.mib)) &&
              sim_put(answers, "Attributes", "gpu_instance_slices", json_integer(form.slices)) &&
              sim_put(answers, "Attributes", "compute_instance_slices", json_integer(form.parts));
    if (form.parts > 0 && form.parts < form.slices)
        (void)snprintf(part, sizeof(part), "%" JSON_INTEGER_FORMAT "c.", form.parts);
    if (form.parts > 0)
        (void)snprintf(profile, sizeof(profile),
                       " %s%" JSON_INTEGER_FORMAT "g.%" JSON_INTEGER_FORMAT "gb%s", part,
                       form.slices, form.gb, form.has_media ? "+me" : "");
    (void)snprintf(name, sizeof(name), "%s MIG%s", gpu_name ? gpu_name : "", profile);
    return ok && sim_put(answers, "Name", NULL, json_string(name));
}

/* Captures before R535 have no UUIDs of MIG devices: derives one from the GPU's and the
 * instance. */
static json_t *mig_uuid(const char *gpu_uuid, const char *given, json_int_t gi, json_int_t ci)
{
    char uuid[96];
    if (given && strncmp(given, "MIG-", 4) == 0)
        return json_string(given);
    (void)snprintf(uuid, sizeof(uuid), "MIG-%08x-%s", (unsigned int)(gi << 8 | ci),
                   strlen(gpu_uuid) == 40 ? gpu_uuid + 13 : "0000-0000-0000-000000000000");
    return json_string(uuid);
}

static json_t *import_migs(const struct sim_node *gpu, const char *gpu_uuid,
                           unsigned int pci_device_id)
{
    const struct sim_node *group = sim_node_find(gpu, "mig_devices");
    json_t *list = json_array();
    for (const struct sim_node *m = group ? group->first : NULL; m && list; m = m->next) {
        json_int_t gi, ci;
        if (!instance_id(m, "gpu_instance_id", &gi) || !instance_id(m, "compute_instance_id", &ci))
            continue;
        json_t *answers = json_object();
        json_t *entry =
            json_pack("{s:I, s:I, s:o, s:o}", "gpu_instance", gi, "compute_instance", ci, "uuid",
                      mig_uuid(gpu_uuid, sim_node_text(m, "uuid"), gi, ci), "answers", answers);
        const struct sim_node *memory = sim_node_find(m, "fb_memory_usage");
        bool ok = entry && sim_put_rows(answers, m, mig_rows, GP_ARRAY_LEN(mig_rows)) &&
                  sim_put(answers, "MemoryInfo", NULL, memory ? sim_memory_info(memory) : NULL) &&
                  put_mig_name(answers, gpu, m, gi, pci_device_id) &&
                  sim_put(answers, "ComputeMode", NULL, json_string("Default"));
        if (!ok || json_array_append_new(list, entry) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* ------------------------------------------------------------------------- the machine */

struct importer {
    const struct sim_capture *capture;
    struct gp_err *err;
    unsigned int driver[2];
};

/* A section of -q, or a query without it, has no UUID: derives one from the PCI address. */
static const char *make_uuid(char uuid[48], const char *bus_id)
{
    unsigned int domain = 0, bus = 0, slot = 0;
    (void)sscanf(bus_id, "%8x:%2x:%2x", &domain, &bus, &slot);
    (void)snprintf(uuid, 48, "GPU-00000000-0000-0000-0000-%08x%02x%02x", domain, bus, slot);
    return uuid;
}

static int import_gpu(const struct importer *im, const struct sim_node *gpu, json_t **ret)
{
    const char *bus_id = sim_node_text(gpu, "pci/pci_bus_id");
    const char *uuid = sim_node_text(gpu, "uuid");
    const char *device = sim_node_text(gpu, "pci/pci_device_id");
    const char *subsystem = sim_node_text(gpu, "pci/pci_sub_system_id");
    if (!bus_id || !*bus_id)
        bus_id = gpu->id;
    char made[48];
    if (bus_id && !uuid && im->capture->form != SIM_FORM_XML)
        uuid = make_uuid(made, bus_id);
    if (!bus_id || !uuid || strncmp(uuid, "GPU-", 4) != 0)
        return gp_err_set(im->err, GP_EFORMAT, "%s:%ld: this GPU has no %s", im->capture->path,
                          gpu->line, bus_id ? "uuid" : "PCI bus id");
    unsigned int device_id = device ? (unsigned int)strtoul(device, NULL, 16) : 0;
    unsigned int subsystem_id = subsystem ? (unsigned int)strtoul(subsystem, NULL, 16) : 0;
    char hex[2][16];
    (void)snprintf(hex[0], sizeof(hex[0]), "0x%08X", device_id);
    (void)snprintf(hex[1], sizeof(hex[1]), "0x%08X", subsystem_id);

    json_t *answers = json_object(), *fields = json_object();
    json_t *json =
        json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:o, s:o, s:o, s:o}", "uuid", uuid, "pci",
                  "bus_id", bus_id, "device_id", hex[0], "subsystem_id", hex[1], "answers", answers,
                  "fields", fields, "lists", sim_import_lists(gpu), "processes",
                  import_processes(gpu), "mig", import_migs(gpu, uuid, device_id));
    if (!json || !sim_put_answers(answers, gpu, device_id) ||
        !sim_put_fields(fields, gpu, im->driver)) {
        json_decref(json);
        return gp_err_set(im->err, GP_EFORMAT, "%s:%ld: this GPU cannot be converted",
                          im->capture->path, gpu->line);
    }
    *ret = json;
    return GP_OK;
}

static json_t *import_driver(const struct sim_node *log, struct importer *im)
{
    json_t *driver = json_object();
    const char *version = sim_node_text(log, "driver_version");
    const char *cuda = sim_node_text(log, "cuda_version");
    unsigned int major = 0, minor = 0;
    if (version && sscanf(version, "%u.%u", &im->driver[0], &im->driver[1]) == 2)
        (void)json_object_set_new(driver, "version", json_string(version));
    if (cuda && sscanf(cuda, "%u.%u", &major, &minor) == 2 && major < 100 && minor < 100) {
        (void)json_object_set_new(driver, "cuda",
                                  json_integer((json_int_t)(major * 1000 + minor * 10)));
        if (version)
            (void)json_object_set_new(driver, "nvml", json_sprintf("%u.%s", major, version));
    }
    return driver;
}

static int import_log(struct importer *im, json_t **ret)
{
    const struct sim_capture *capture = im->capture;
    const struct sim_node *log = sim_node_find(&capture->tree.root, "nvidia_smi_log");
    const char *file = strrchr(capture->path, '/');
    json_t *devices = json_array();
    json_t *machine = json_pack(
        "{s:i, s:o, s:o, s:o}", "gpulse_machine", 1, "source",
        json_sprintf("%s, %s", sim_form_command(capture->form), file ? file + 1 : capture->path),
        "driver", import_driver(log, im), "devices", devices);
    int result = machine ? GP_OK : gp_err_set(im->err, GP_ENOMEM, "out of memory");
    for (const struct sim_node *n = log->first; n && result == GP_OK; n = n->next) {
        json_t *device = NULL;
        if (strcmp(n->name, "gpu") != 0)
            continue;
        result = import_gpu(im, n, &device);
        if (result == GP_OK && json_array_append_new(devices, device) < 0)
            result = gp_err_set(im->err, GP_ENOMEM, "out of memory");
    }
    if (result == GP_OK && json_array_size(devices) == 0)
        result = gp_err_set(im->err, GP_EFORMAT, "%s:%ld: the capture has no <gpu>", capture->path,
                            log->line);
    if (result < 0)
        json_decref(machine);
    else
        *ret = machine;
    return result;
}

int sim_import(const char *path, json_t **ret_machine, struct gp_err *err)
{
    struct sim_capture capture = {0};
    int result = sim_capture_read(&capture, path, err);
    if (result == GP_OK)
        result = import_log(&(struct importer){.capture = &capture, .err = err}, ret_machine);
    sim_capture_fini(&capture);
    return result;
}

/* Merges members of objects individually: an overlay adds to an answer of the capture. */
static void lay_over(json_t *answers, json_t *more)
{
    const char *key;
    json_t *value;
    json_object_foreach(more, key, value)
    {
        json_t *there = json_object_get(answers, key);
        if (json_is_object(there) && json_is_object(value))
            (void)json_object_update(there, value);
        else
            (void)json_object_set(answers, key, value);
    }
}

/* "mig": additional answers of the MIG devices of the first GPU, in order. */
static void lay_over_mig(json_t *machine, json_t *more)
{
    json_t *device = json_array_get(json_object_get(machine, "devices"), 0);
    json_t *migs = json_object_get(device, "mig");
    for (size_t i = 0; i < json_array_size(more) && i < json_array_size(migs); i++)
        lay_over(json_object_get(json_array_get(migs, i), "answers"), json_array_get(more, i));
}

/* "gpus": additional answers of single GPUs, by index. */
static void lay_over_gpus(json_t *machine, json_t *more)
{
    const char *index;
    json_t *answers;
    json_object_foreach(more, index, answers)
    {
        json_t *device =
            json_array_get(json_object_get(machine, "devices"), strtoul(index, NULL, 10));
        lay_over(json_object_get(device, "answers"), answers);
    }
}

/* "processes": what the capture does not say of its processes, by pid. */
static void lay_over_processes(json_t *machine, json_t *more)
{
    size_t d;
    size_t i;
    char pid[24];
    json_t *device;
    json_t *process;
    json_array_foreach(json_object_get(machine, "devices"), d, device)
    {
        json_array_foreach(json_object_get(device, "processes"), i, process)
        {
            (void)snprintf(pid, sizeof(pid), "%lld",
                           (long long)json_integer_value(json_object_get(process, "pid")));
            lay_over(process, json_object_get(more, pid));
        }
    }
}

int sim_import_overlay(json_t *machine, const char *path, struct gp_err *err)
{
    json_error_t why;
    json_t *overlay = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!overlay)
        return gp_err_set(err, GP_EFORMAT, "%s:%d: %s", path, why.line, why.text);
    static const char *const of_devices[] = {"answers", "fields", "lists"};
    for (size_t k = 0; k < GP_ARRAY_LEN(of_devices); k++) {
        json_t *more = json_object_get(overlay, of_devices[k]);
        size_t i;
        json_t *device;
        json_array_foreach(json_object_get(machine, "devices"), i, device) if (more)(void)
            json_object_update(json_object_get(device, of_devices[k]), more);
        (void)json_object_del(overlay, of_devices[k]);
    }
    lay_over_mig(machine, json_object_get(overlay, "mig"));
    (void)json_object_del(overlay, "mig");
    lay_over_gpus(machine, json_object_get(overlay, "gpus"));
    (void)json_object_del(overlay, "gpus");
    lay_over_processes(machine, json_object_get(overlay, "processes"));
    (void)json_object_del(overlay, "processes");
    int result = json_object_update(machine, overlay) == 0
                     ? GP_OK
                     : gp_err_set(err, GP_EFORMAT, "%s: expected an object", path);
    json_decref(overlay);
    return result;
}
