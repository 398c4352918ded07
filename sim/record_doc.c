#include "sim/record_doc.h"

#include "abi/nvml_value.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool rec_doc_init(struct rec_doc *doc, bool redact)
{
    *doc = (struct rec_doc){
        .redact = redact,
        .driver = json_object(),
        .devices = json_array(),
        .faults = json_array(),
        .notes = json_array(),
        .secrets = json_object(),
    };
    return doc->driver && doc->devices && doc->faults && doc->notes && doc->secrets;
}

void rec_doc_fini(struct rec_doc *doc)
{
    gp_arena_fini(&doc->arena);
    json_decref(doc->driver);
    json_decref(doc->devices);
    json_decref(doc->faults);
    json_decref(doc->notes);
    json_decref(doc->latency);
    json_decref(doc->topology);
    json_decref(doc->system);
    json_decref(doc->secrets);
}

const char *rec_doc_text(struct rec_doc *doc, const char *text)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_utf8_add_safe(&sb, text, strlen(text), SIZE_MAX);
    const char *copy = sb.error ? NULL : gp_arena_strdup(&doc->arena, sb.buf ? sb.buf : "");
    gp_strbuf_fini(&sb);
    return copy ? copy : "";
}

void rec_doc_note(struct rec_doc *doc, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)json_array_append_new(doc->notes, json_string(text));
}

/* ------------------------------------------------------------------------- redaction */

/* Replaces the digits with the number of the secret, zero-padded. The prefix ("GPU-", "MIG-", "0x")
 * and dashes stay, so that the text keeps its form. */
static void disguise(const char *text, unsigned long number, char *out, size_t size)
{
    size_t len = strlen(text) < size - 1 ? strlen(text) : size - 1;
    size_t head = strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0 ? 4
                  : strncmp(text, "0x", 2) == 0                                  ? 2
                                                                                 : 0;
    memcpy(out, text, len);
    out[len] = '\0';
    for (size_t i = len; i > head; i--) {
        if (out[i - 1] == '-')
            continue;
        out[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
}

const char *rec_doc_secret(struct rec_doc *doc, const char *text)
{
    char replacement[256];
    const char *safe = rec_doc_text(doc, text);
    if (!doc->redact || !safe[0])
        return safe;
    json_t *known = json_object_get(doc->secrets, safe);
    if (!known) {
        disguise(safe, json_object_size(doc->secrets) + 1, replacement, sizeof(replacement));
        known = json_string(replacement);
        (void)json_object_set_new(doc->secrets, safe, known);
    }
    return known ? json_string_value(known) : "";
}

/* Every answer, present or future, that identifies a board or computer. */
static bool is_secret(const struct sim_answer *row)
{
    static const char *const words[] = {"serial", "uuid", "guid", "hostname", "pdi", "chassis"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strcasestr(row->key, words[i]) || (row->member && strcasestr(row->member, words[i])))
            return true;
    return false;
}

/* ------------------------------------------------------------------------- answers */

json_t *rec_doc_code(nvmlReturn_t code)
{
    const char *name = sim_return_name(code);
    return json_string(name ? name : "UNKNOWN");
}

static json_t *number_json(enum sim_kind kind, uint64_t number)
{
    const struct sim_name *name = sim_kind_names(kind);
    for (; name && name->name; name++)
        if (name->value == number)
            return json_string(name->name);
    return json_integer(kind == SIM_KIND_I32 ? (json_int_t)(int32_t)number : (json_int_t)number);
}

static json_t *value_json(struct rec_doc *doc, const char *where, enum sim_slot slot,
                          const struct sim_value *v)
{
    const struct sim_answer *row = &sim_answers[slot];
    if (v->code != NVML_SUCCESS && !sim_return_name(v->code))
        rec_doc_note(doc, "%s: %s returns the unknown code %d", where, row->key, (int)v->code);
    if (v->code != NVML_SUCCESS)
        return rec_doc_code(v->code);
    if (row->kind == SIM_KIND_TEXT)
        return json_string(is_secret(row) ? rec_doc_secret(doc, v->text) : v->text);
    if (v->number > INT64_MAX && row->kind != SIM_KIND_I32) {
        rec_doc_note(doc, "%s: %s returns %" PRIu64 ", which does not fit a machine file", where,
                     row->key, v->number);
        return json_string("UNKNOWN");
    }
    return number_json(row->kind, doc->redact && is_secret(row) ? 0 : v->number);
}

/* All members of a failed call have the same code. */
static bool fails_alike(const struct rec_answers *answers, enum sim_slot first, size_t count)
{
    nvmlReturn_t code = answers->values[first].code;
    for (size_t i = 0; i < count; i++)
        if (!answers->asked[first + i] || answers->values[first + i].code != code)
            return false;
    return code != NVML_SUCCESS;
}

/* What can be omitted from the file. NOT_SUPPORTED is written for a GPU, to show that it was
 * queried. */
static bool goes_without_saying(const struct sim_value *v, enum sim_slot slot, bool mig)
{
    nvmlReturn_t without = sim_slot_default(slot);
    return v->code == without && (mig || without == NVML_SUCCESS);
}

json_t *rec_doc_answers(struct rec_doc *doc, const char *where, const struct rec_answers *answers,
                        bool mig)
{
    json_t *out = json_object();
    for (size_t slot = 0, count; slot < SIM_SLOT_COUNT; slot += count) {
        const struct sim_answer *row = &sim_answers[slot];
        for (count = 1; slot + count < SIM_SLOT_COUNT && row->member &&
                        strcmp(sim_answers[slot + count].key, row->key) == 0;)
            count++;
        if (!row->member || fails_alike(answers, (enum sim_slot)slot, count)) {
            const struct sim_value *v = &answers->values[slot];
            if (answers->asked[slot] && !goes_without_saying(v, (enum sim_slot)slot, mig))
                (void)json_object_set_new(out, row->key,
                                          value_json(doc, where, (enum sim_slot)slot, v));
            continue;
        }
        json_t *members = json_object();
        for (size_t i = slot; i < slot + count; i++)
            if (answers->asked[i])
                (void)json_object_set_new(
                    members, sim_answers[i].member,
                    value_json(doc, where, (enum sim_slot)i, &answers->values[i]));
        if (json_object_size(members) > 0)
            (void)json_object_set_new(out, row->key, members);
        else
            json_decref(members);
    }
    return out;
}

/* ------------------------------------------------------------------------- processes */

static const char *type_of(const struct sim_process *p)
{
    if (p->compute)
        return p->graphics ? "C+G" : p->mps ? "M+C" : "C";
    return p->graphics ? "G" : "M";
}

json_t *rec_doc_processes(struct rec_doc *doc, const char *where,
                          const struct sim_process *processes, size_t count)
{
    json_t *out = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct sim_process *p = &processes[i];
        if (p->graphics && p->mps)
            rec_doc_note(doc, "%s: process %u is in the graphics and the MPS list", where, p->pid);
        json_t *json = json_pack("{s:I, s:s}", "pid", (json_int_t)p->pid, "type", type_of(p));
        json_t *memory = p->memory_known && p->memory_bytes <= INT64_MAX
                             ? json_integer((json_int_t)p->memory_bytes)
                             : json_null();
        (void)json_object_set_new(json, "memory_bytes", memory);
        if (p->name)
            (void)json_object_set_new(json, "name", json_string(p->name));
        unsigned int assumed[SIM_SHARE_COUNT] = {
            [SIM_SHARE_MEM] = sim_share_of_memory(p->share_pct[SIM_SHARE_SM])};
        for (int k = 0; k < SIM_SHARE_COUNT; k++)
            if (p->share_pct[k] != assumed[k])
                (void)json_object_set_new(json, sim_share_keys[k], json_integer(p->share_pct[k]));
        if (p->gpu_instance != SIM_NO_INSTANCE)
            (void)json_object_set_new(json, "gpu_instance", json_integer(p->gpu_instance));
        if (p->compute_instance != SIM_NO_INSTANCE)
            (void)json_object_set_new(json, "compute_instance", json_integer(p->compute_instance));
        (void)json_array_append_new(out, json);
    }
    return out;
}

/* ------------------------------------------------------------------------- fields */

/* The scopes to read, by the field's newest id; other fields only have scope 0. */
static const struct {
    unsigned int first, last;
    unsigned int count; /* 0: one for each link */
    bool sum;           /* all ones: sum over all links */
} scopes[] = {
    {138, 141, 0, true},  {146, 146, 0, false}, {161, 168, 0, false}, {171, 172, 14, false},
    {185, 190, 4, false}, {192, 192, 4, false}, {201, 222, 0, false}, {231, 234, 14, false},
    {235, 250, 0, false}, {260, 263, 5, false}, {281, 284, 5, false}, {289, 296, 0, false},
};

bool rec_field_scope(unsigned int newest, unsigned int links, unsigned int at, unsigned int *ret)
{
    unsigned int count = 1;
    bool sum = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(scopes); i++)
        if (newest >= scopes[i].first && newest <= scopes[i].last) {
            count = scopes[i].count ? scopes[i].count : links;
            sum = scopes[i].sum;
        }
    count = count ? count : 1;
    *ret = at < count ? at : UINT32_MAX;
    return at < count || (sum && at == count);
}

bool rec_number(nvmlValueType_t type, const nvmlValue_t *value, json_int_t *ret)
{
    int64_t number = type == NVML_VALUE_TYPE_DOUBLE ? llround(value->dVal) : 0;
    bool is_number = type == NVML_VALUE_TYPE_DOUBLE || nvml_value_integer(type, value, &number);
    *ret = number;
    return is_number;
}

void rec_doc_field(struct rec_doc *doc, json_t *fields, const nvmlFieldValue_t *field,
                   nvmlReturn_t code)
{
    char key[32];
    int n = snprintf(key, sizeof(key), "%u", field->fieldId);
    if (field->scopeId)
        (void)snprintf(key + n, sizeof(key) - (size_t)n, "/%u", field->scopeId);
    if (code != NVML_SUCCESS) {
        (void)json_object_set_new(fields, key, rec_doc_code(code));
        return;
    }
    json_int_t number = 0;
    if (!rec_number(field->valueType, &field->value, &number))
        rec_doc_note(doc, "field %s has the unknown type %d", key, (int)field->valueType);
    else if (field->valueType == NVML_VALUE_TYPE_DOUBLE)
        rec_doc_note(doc, "field %s is a floating-point number, %.9g", key, field->value.dVal);
    bool is_signed = field->fieldId >= NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT &&
                     field->fieldId <= NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT;
    if (number < 0 && !is_signed) {
        rec_doc_note(doc, "field %s is %lld, which does not fit a machine file", key,
                     (long long)number);
        (void)json_object_set_new(fields, key, rec_doc_code(NVML_ERROR_UNKNOWN));
        return;
    }
    (void)json_object_set_new(fields, key, json_integer(number));
}

/* ------------------------------------------------------------------------- the machine */

static bool add_list(json_t *machine, const char *key, json_t *list)
{
    return json_array_size(list) == 0 || json_object_set(machine, key, list) == 0;
}

/* Compares the symbols of the library with those expected for its version. */
static bool add_symbols(json_t *machine, const bool present[SIM_SYMBOL_COUNT],
                        const unsigned int driver[3])
{
    bool expected[SIM_SYMBOL_COUNT];
    json_t *missing = json_array(), *extra = json_array();
    sim_symbols_missing(driver, expected);
    for (size_t i = 0; i < SIM_SYMBOL_COUNT; i++) {
        bool twice = false;
        for (size_t j = 0; j < i && j < SIM_FN_COUNT && i >= SIM_FN_COUNT; j++)
            twice |= strcmp(sim_symbols[j].name, sim_symbols[i].name) == 0;
        if (present[i] != expected[i] || twice)
            continue;
        (void)json_array_append_new(present[i] ? extra : missing, json_string(sim_symbols[i].name));
    }
    bool ok = add_list(machine, "missing", missing) && add_list(machine, "present", extra);
    json_decref(missing);
    json_decref(extra);
    return ok;
}

json_t *rec_doc_machine(struct rec_doc *doc, const bool present[SIM_SYMBOL_COUNT],
                        const unsigned int driver[3])
{
    char source[160];
    const char *version = json_string_value(json_object_get(doc->driver, "version"));
    (void)snprintf(source, sizeof(source), "gpulse sim record%s%s%s", version ? ", driver " : "",
                   version ? version : "", doc->redact ? ", redacted" : "");
    json_t *machine = json_pack("{s:i, s:s}", "gpulse_machine", 1, "source", source);
    bool ok = machine && add_list(machine, "notes", doc->notes) &&
              json_object_set(machine, "driver", doc->driver) == 0 &&
              (!doc->latency || json_object_set(machine, "latency_us", doc->latency) == 0) &&
              add_symbols(machine, present, driver) && add_list(machine, "faults", doc->faults) &&
              (!doc->system || json_object_set(machine, "system", doc->system) == 0) &&
              (!doc->topology || json_object_set(machine, "topology", doc->topology) == 0) &&
              json_object_set(machine, "devices", doc->devices) == 0;
    if (ok)
        return machine;
    json_decref(machine);
    return NULL;
}
