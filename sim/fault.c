#include "sim/fault.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const sim_function_names[SIM_FN_COUNT] = {
#define X(branch, type, name, args) #name,
    NVML_FUNCTIONS(X)
#undef X
};

enum value_type { VALUE_NONE, VALUE_DURATION, VALUE_CODE, VALUE_ANSWER };

static const struct {
    const char *name;
    enum value_type value;
    const char *fallback; /* default value; NULL: a value is required */
} kinds[SIM_FAULT_KINDS] = {
    [SIM_FAULT_LOST] = {"lost", VALUE_NONE, NULL},
    /* 45 s is the duration of a call when the GPU's firmware no longer responds (Xid 119). */
    [SIM_FAULT_HANG] = {"hang", VALUE_DURATION, "45s"},
    [SIM_FAULT_SLOW] = {"slow", VALUE_DURATION, NULL},
    [SIM_FAULT_DENY] = {"deny", VALUE_NONE, NULL},
    [SIM_FAULT_ERROR] = {"error", VALUE_CODE, NULL},
    [SIM_FAULT_ABSURD] = {"absurd", VALUE_NONE, NULL},
    [SIM_FAULT_GROW] = {"grow", VALUE_NONE, NULL},
    [SIM_FAULT_UNLOADED] = {"unloaded", VALUE_NONE, NULL},
    [SIM_FAULT_MISMATCH] = {"mismatch", VALUE_NONE, NULL},
    [SIM_FAULT_NOGPU] = {"nogpu", VALUE_NONE, NULL},
    [SIM_FAULT_SET] = {"set", VALUE_ANSWER, NULL},
    [SIM_FAULT_GONE] = {"gone", VALUE_NONE, NULL},
    [SIM_FAULT_EXCLUDED] = {"excluded", VALUE_NONE, NULL},
    [SIM_FAULT_OVERCOUNT] = {"overcount", VALUE_NONE, NULL},
    [SIM_FAULT_REORDER] = {"reorder", VALUE_NONE, NULL},
    [SIM_FAULT_REPARTITION] = {"repartition", VALUE_NONE, NULL},
    [SIM_FAULT_PARENT] = {"parent", VALUE_NONE, NULL},
    [SIM_FAULT_PROFILING] = {"profiling", VALUE_NONE, NULL},
    [SIM_FAULT_TYPES] = {"types", VALUE_NONE, NULL},
    [SIM_FAULT_UNTOUCHED] = {"untouched", VALUE_NONE, NULL},
    [SIM_FAULT_PIDS] = {"pids", VALUE_NONE, NULL},
    [SIM_FAULT_HIDDEN] = {"hidden", VALUE_NONE, NULL},
    [SIM_FAULT_STUCK] = {"stuck", VALUE_NONE, NULL},
    [SIM_FAULT_ENERGY] = {"energy", VALUE_NONE, NULL},
    [SIM_FAULT_IGNORE] = {"ignore", VALUE_NONE, NULL},
};

static const struct {
    const char *name;
    nvmlReturn_t code;
} codes[] = {
#define X(name, code, words) {#name, name},
    NVML_RETURN_CODES(X)
#undef X
};
static const char code_prefix[] = "NVML_ERROR_";

bool sim_return_code(const char *name, nvmlReturn_t *ret)
{
    size_t len = strlen(code_prefix);
    for (size_t i = 0; i < GP_ARRAY_LEN(codes); i++) {
        if (strncmp(codes[i].name, code_prefix, len) == 0 &&
            strcmp(codes[i].name + len, name) == 0) {
            *ret = codes[i].code;
            return true;
        }
    }
    return false;
}

const char *sim_return_name(nvmlReturn_t code)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(codes); i++)
        if (codes[i].code == code && code != NVML_SUCCESS)
            return codes[i].name + strlen(code_prefix);
    return NULL;
}

/* Also accepts numbers: newer drivers return codes without a name here. */
static bool parse_code(const char *text, uint64_t *ret)
{
    nvmlReturn_t code;
    if (gp_parse_u64(text, ret))
        return *ret <= INT32_MAX;
    if (!sim_return_code(text, &code))
        return false;
    *ret = (uint64_t)code;
    return true;
}

static bool parse_value(enum value_type type, const char *text, uint64_t *ret)
{
    return type == VALUE_DURATION ? gp_parse_duration(text, ret) : parse_code(text, ret);
}

static bool function_exists(const char *beginning)
{
    for (size_t i = 0; i < SIM_FN_COUNT; i++)
        if (strncmp(sim_function_names[i], beginning, strlen(beginning)) == 0)
            return true;
    return false;
}

static int find_kind(const char *name, size_t len)
{
    for (int i = 0; i < SIM_FAULT_KINDS; i++)
        if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0)
            return i;
    return -1;
}

static int refuse_unknown(const char *text, struct gp_err *err)
{
    static const char *const values[] = {[VALUE_DURATION] = "=TIME", [VALUE_CODE] = "=CODE"};
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(err->text) - 1);
    for (int i = 0; i < SIM_FAULT_KINDS; i++) {
        if (kinds[i].value == VALUE_ANSWER)
            continue;
        gp_strbuf_adds(&sb, kinds[i].name);
        if (kinds[i].value != VALUE_NONE)
            gp_strbuf_addf(&sb, kinds[i].fallback ? "[%s]" : "%s", values[kinds[i].value]);
        gp_strbuf_adds(&sb, ", ");
    }
    (void)gp_err_set(err, GP_EUSAGE,
                     "unknown fault '%.40s': expected %sclear; or, live only, xid=N, event=NAME, "
                     "set=ANSWER=VALUE",
                     text, sb.buf);
    gp_strbuf_fini(&sb);
    return GP_EUSAGE;
}

int sim_fault_parse(const char *text, int gpu, struct sim_fault *ret, struct gp_err *err)
{
    size_t name_len = strcspn(text, "=:");
    int kind = find_kind(text, name_len);
    if (kind < 0 || kinds[kind].value == VALUE_ANSWER)
        return refuse_unknown(text, err);

    struct sim_fault fault = {.gpu = gpu, .kind = (uint32_t)kind};
    const char *rest = text + name_len;
    char value[32] = "";
    if (*rest == '=') {
        size_t len = strcspn(++rest, ":");
        if (len >= sizeof(value))
            return gp_err_set(err, GP_EUSAGE, "fault '%.60s': the value is too long", text);
        memcpy(value, rest, len);
        rest += len;
    } else if (kinds[kind].fallback) {
        (void)snprintf(value, sizeof(value), "%s", kinds[kind].fallback);
    }

    if (kinds[kind].value == VALUE_NONE && value[0])
        return gp_err_set(err, GP_EUSAGE, "fault '%s' takes no value", kinds[kind].name);
    if (kinds[kind].value != VALUE_NONE && !parse_value(kinds[kind].value, value, &fault.value))
        return gp_err_set(err, GP_EUSAGE, "fault '%s' needs %s, for example %s", kinds[kind].name,
                          kinds[kind].value == VALUE_DURATION ? "a time" : "a return code",
                          kinds[kind].value == VALUE_DURATION ? "slow=20ms"
                                                              : "error=NOT_SUPPORTED");
    if (*rest == ':') {
        rest++;
        if (strlen(rest) >= sizeof(fault.function) || !function_exists(rest))
            return gp_err_set(err, GP_EUSAGE, "no driver function starts with '%.60s'", rest);
        (void)snprintf(fault.function, sizeof(fault.function), "%s", rest);
    }
    *ret = fault;
    return GP_OK;
}

int sim_fault_parse_placed(const char *text, struct sim_fault *ret, struct gp_err *err)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 3 || text[digits] != ':')
        return sim_fault_parse(text, SIM_ALL_GPUS, ret, err);
    return sim_fault_parse(text + digits + 1, (int)strtol(text, NULL, 10), ret, err);
}

void sim_fault_add_text(struct gp_strbuf *sb, const struct sim_fault *fault)
{
    gp_strbuf_adds(sb, kinds[fault->kind].name);
    if (kinds[fault->kind].value == VALUE_ANSWER) {
        gp_strbuf_addf(sb, "=%s=%" PRIu64, fault->function, fault->value);
        return;
    }
    if (kinds[fault->kind].value == VALUE_DURATION)
        gp_strbuf_addf(sb, "=%" PRIu64 "ms", fault->value / GP_NS_PER_MS);
    else if (kinds[fault->kind].value == VALUE_CODE)
        gp_strbuf_addf(sb, "=%" PRIu64, fault->value);
    if (fault->function[0])
        gp_strbuf_addf(sb, ":%s", fault->function);
}

bool sim_fault_hits(const struct sim_fault *fault, int gpu, enum sim_function function)
{
    if ((fault->gpu != SIM_ALL_GPUS && fault->gpu != gpu) || fault->kind == SIM_FAULT_SET)
        return false;
    return strncmp(sim_function_names[function], fault->function, strlen(fault->function)) == 0;
}
