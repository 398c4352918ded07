/* Loads the answers and fields of a device. */
#include "sim/machine_document.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/parse.h"

#include <stdio.h>
#include <string.h>

const struct sim_answer sim_answers[SIM_SLOT_COUNT] = {
#define SIM_ANSWER(slot, key, member, kind, motion)                                                \
    [SIM_##slot] = {key, member, SIM_KIND_##kind, SIM_MOTION_##motion},
#include "sim/answers.def"
};

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

static int expected(struct sim_loader *l, enum sim_kind kind)
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
    return sim_doc_fail(l,
                        "expected %s or the name of a return code, for example \"NOT_SUPPORTED\"",
                        words[kind] ? words[kind] : list);
}

/* A call that a newer driver calls deprecated exists in an older one, but the file does not have
 * its answer. */
static nvmlReturn_t older_code(const struct sim_loader *l, nvmlReturn_t code)
{
    return code == NVML_ERROR_DEPRECATED && !sim_driver_is(l->machine->driver, 580, 0)
               ? NVML_ERROR_NOT_SUPPORTED
               : code;
}

static int load_value(struct sim_loader *l, json_t *json, enum sim_kind kind, struct sim_value *ret)
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
            return sim_doc_no_memory(l);
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

static int load_answer(struct sim_loader *l, const char *key, json_t *json,
                       struct sim_value *answers)
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
            (void)sim_doc_enter(l, row->member);
        } else if (row->member && !json_is_string(json)) {
            return sim_doc_fail(
                l,
                "expected an object with members, for example \"%s\", or the name of a return code",
                row->member);
        }
        int result = load_value(l, value, row->kind, &answers[slot]);
        if (result < 0)
            return result;
        sim_doc_leave(l, at);
    }
    if (!known) {
        const char *names[SIM_SLOT_COUNT + 1] = {NULL};
        for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++)
            names[slot] = sim_answers[slot].key;
        const char *near = gp_cli_nearest(key, sim_doc_next_name, names);
        return sim_doc_fail(l,
                            "unknown answer%s%s%s; expected a function name without nvmlDeviceGet",
                            near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    if (members && found != json_object_size(json))
        return sim_doc_fail(l, "has an unknown member");
    return GP_OK;
}

nvmlReturn_t sim_slot_default(enum sim_slot slot)
{
    bool list = slot == SIM_LIST_COMPUTE || slot == SIM_LIST_GRAPHICS || slot == SIM_LIST_MPS ||
                slot == SIM_PROCESS_UTIL || slot == SIM_SAMPLES;
    return list ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

int sim_doc_answers(struct sim_loader *l, json_t *device, struct sim_value *answers)
{
    for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++)
        answers[slot] = (struct sim_value){.code = sim_slot_default((enum sim_slot)slot)};
    json_t *object = json_object_get(device, "answers");
    size_t at = sim_doc_enter(l, "answers");
    if (object && !json_is_object(object))
        return sim_doc_fail(l, "expected an object");
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t inner = sim_doc_enter(l, key);
        int result = load_answer(l, key, value, answers);
        if (result < 0)
            return result;
        sim_doc_leave(l, inner);
    }
    sim_doc_leave(l, at);
    return GP_OK;
}

int sim_doc_fields(struct sim_loader *l, json_t *json, struct sim_device *device)
{
    json_t *object = json_object_get(json, "fields");
    size_t at = sim_doc_enter(l, "fields");
    if (object && !json_is_object(object))
        return sim_doc_fail(l, "expected an object");
    device->fields = sim_doc_alloc(l, json_object_size(object), sizeof(*device->fields));
    if (!device->fields)
        return sim_doc_no_memory(l);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t inner = sim_doc_enter(l, key);
        struct sim_field *field = &device->fields[device->field_count++];
        char id[16];
        size_t digits = strcspn(key, "/");
        uint64_t number = 0, scope = 0;
        (void)snprintf(id, sizeof(id), "%.*s", (int)(digits < 15 ? digits : 15), key);
        if (!gp_parse_u64(id, &number) || number > UINT16_MAX ||
            (key[digits] && (!gp_parse_u64(key + digits + 1, &scope) || scope > UINT32_MAX)))
            return sim_doc_fail(l, "expected a field id, or id/scope, as the key");
        field->id = sim_field_newest(l->recorded, (unsigned int)number);
        field->scope = (unsigned int)scope;
        /* Temperature limits are signed, everything else is unsigned. */
        bool is_signed = number >= NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT &&
                         number <= NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT;
        int result = load_value(l, value, is_signed ? SIM_KIND_I32 : SIM_KIND_U64, &field->value);
        if (result < 0)
            return result;
        sim_doc_leave(l, inner);
    }
    sim_doc_leave(l, at);
    return GP_OK;
}
