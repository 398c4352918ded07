#include "smi/setting.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "smi/message.h"
#include "source/nvml/nvml.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* ---- values ---- */

static const struct gp_smi_word switches[] = {
    {"0 DISABLED", "off", "Disabled", "disable", NULL},
    {"1 ENABLED", "on", "Enabled", "enable", NULL},
    {NULL},
};
static const struct gp_smi_word compute_modes[] = {
    {"0 DEFAULT", "default", "DEFAULT", NULL, NULL},
    {"1 EXCLUSIVE_THREAD", "exclusive-process", "EXCLUSIVE_PROCESS", NULL,
     "Warning: Exclusive_Thread was deprecated! Setting Exclusive_Process instead."},
    {"2 PROHIBITED", "prohibited", "PROHIBITED", NULL, NULL},
    {"3 EXCLUSIVE_PROCESS", "exclusive-process", "EXCLUSIVE_PROCESS", NULL, NULL},
    {NULL},
};
static const struct gp_smi_word operation_modes[] = {
    {"0 ALL_ON", "all-on", "All On", NULL, NULL},
    {"1 COMPUTE", "compute", "Compute", NULL, NULL},
    {"2 LOW_DP", "low-dp", "Low Double Precision", NULL, NULL},
    {NULL},
};
static const struct gp_smi_word ecc_errors[] = {
    {"0 VOLATILE", "clear-volatile", "volatile", NULL, NULL},
    {"1 AGGREGATE", "clear-aggregate", "aggregate", NULL, NULL},
    {NULL},
};
static const struct gp_smi_word cuda_clocks[] = {
    {"0 RESTORE_DEFAULT", NULL, NULL, NULL, NULL},
    {"1 OVERRIDE", NULL, NULL, NULL, NULL},
    {NULL},
};
static const struct gp_smi_word accesses[] = {
    {"0 UNRESTRICTED", "all", "UNRESTRICTED", NULL, NULL},
    {"1 RESTRICTED", "root", "RESTRICTED", NULL, NULL},
    {NULL},
};
static const struct gp_smi_word virtualization_modes[] = {
    {"3 VGPU", "host-vgpu", "VGPU", NULL, NULL},
    {"4 VSGA", "host-vsga", "VSGA", NULL, NULL},
    {NULL},
};
static const struct gp_smi_word resets[] = {
    {"bus", NULL, NULL, NULL, NULL},
    {NULL},
};

const struct gp_smi_word gp_smi_power_scopes[] = {
    {"0 GPU", "", NULL, NULL, NULL},
    [GP_SMI_SCOPE_MODULE] = {"1 TOTAL_MODULE", "", NULL, NULL, NULL},
    {NULL},
};
const struct gp_smi_word gp_smi_clock_modes[] = {
    {"0", "", NULL, NULL, NULL},
    {"1", NULL, NULL, NULL, NULL},
    {NULL},
};

/* ---- settings ---- */

#define NO_CONTROL GP_CONTROL__COUNT

const struct gp_smi_setting gp_smi_settings[GP_SMI_SETTING__COUNT] = {
    [GP_SMI_SET_PERSISTENCE] = {.control = GP_CONTROL_PERSISTENCE, .words = switches},
    [GP_SMI_SET_ECC] = {.control = GP_CONTROL_ECC_MODE,
                        .words = switches,
                        .after = "Reboot required."},
    [GP_SMI_SET_ECC_ERRORS] = {.control = GP_CONTROL_ECC_COUNTERS, .words = ecc_errors},
    [GP_SMI_SET_COMPUTE_MODE] = {.control = GP_CONTROL_COMPUTE_MODE, .words = compute_modes},
    [GP_SMI_SET_OPERATION_MODE] = {.control = GP_CONTROL_OPERATION_MODE,
                                   .words = operation_modes,
                                   .after = "Reboot required."},
    [GP_SMI_SET_RESET] = {.control = NO_CONTROL, .words = resets},
    [GP_SMI_SET_GPU_CLOCKS] = {.control = GP_CONTROL_LOCK_GPU_CLOCKS,
                               .is_lost_unless_persistent = true},
    [GP_SMI_SET_NO_GPU_CLOCKS] = {.control = GP_CONTROL_LOCK_GPU_CLOCKS, .value = "reset"},
    [GP_SMI_SET_MEMORY_CLOCKS] = {.control = GP_CONTROL_LOCK_MEMORY_CLOCKS,
                                  .is_lost_unless_persistent = true},
    [GP_SMI_SET_NO_MEMORY_CLOCKS] = {.control = GP_CONTROL_LOCK_MEMORY_CLOCKS, .value = "reset"},
    [GP_SMI_SET_DEFERRED_CLOCKS] = {.control = NO_CONTROL},
    [GP_SMI_SET_NO_DEFERRED_CLOCKS] = {.control = NO_CONTROL},
    [GP_SMI_SET_APP_CLOCKS] = {.control = GP_CONTROL_APPLICATION_CLOCKS,
                               .is_lost_unless_persistent = true},
    [GP_SMI_SET_NO_APP_CLOCKS] = {.control = GP_CONTROL_APPLICATION_CLOCKS, .value = "default"},
    [GP_SMI_SET_POWER_LIMIT] = {.control = GP_CONTROL_POWER_LIMIT,
                                .is_lost_unless_persistent = true},
    [GP_SMI_SET_CUDA_CLOCKS] = {.control = NO_CONTROL, .words = cuda_clocks},
    [GP_SMI_SET_ACCOUNTING] = {.control = GP_CONTROL_ACCOUNTING_MODE, .words = switches},
    [GP_SMI_SET_NO_ACCOUNTS] = {.control = GP_CONTROL_ACCOUNTING_RECORDS, .value = "clear"},
    [GP_SMI_SET_MIG] = {.control = GP_CONTROL_MIG_MODE,
                        .words = switches,
                        .is_lost_unless_persistent = true},
    [GP_SMI_SET_TARGET_TEMPERATURE] = {.control = GP_CONTROL_TARGET_TEMPERATURE},
    [GP_SMI_SET_AUTO_BOOST] = {.control = GP_CONTROL_AUTO_BOOST, .words = switches},
    [GP_SMI_SET_AUTO_BOOST_ACCESS] = {.control = GP_CONTROL_AUTO_BOOST_ACCESS, .words = accesses},
    [GP_SMI_SET_APP_CLOCKS_ACCESS] = {.control = GP_CONTROL_APP_CLOCKS_ACCESS, .words = accesses},
    [GP_SMI_SET_VIRTUALIZATION] = {.control = GP_CONTROL_VIRTUALIZATION_MODE,
                                   .words = virtualization_modes},
    [GP_SMI_SET_DRAM_ENCRYPTION] = {.control = GP_CONTROL_DRAM_ENCRYPTION,
                                    .words = switches,
                                    .after = "Reboot required."},
    [GP_SMI_SET_HOSTNAME] = {.control = GP_CONTROL_HOSTNAME},
    [GP_SMI_GET_HOSTNAME] = {.control = GP_CONTROL_HOSTNAME, .only_reads = true},
};

/* ---- messages ---- */

#define ON(id) (UINT64_C(1) << GP_SMI_##id)
_Static_assert(GP_SMI_SETTING__COUNT <= 64, "a bit for each");

#define GPU_CLOCKS (ON(SET_GPU_CLOCKS) | ON(SET_NO_GPU_CLOCKS))
#define MEMORY_CLOCKS (ON(SET_MEMORY_CLOCKS) | ON(SET_NO_MEMORY_CLOCKS))
#define DEFERRED_CLOCKS (ON(SET_DEFERRED_CLOCKS) | ON(SET_NO_DEFERRED_CLOCKS))
#define APP_CLOCKS (ON(SET_APP_CLOCKS) | ON(SET_NO_APP_CLOCKS))

/* What happens after a message that does not report success. */
enum then {
    STOPS,
    MOVES_ON, /* prints a notice, and continues */
    MOVES_ON_SILENTLY,
};

/* The first matching line for a setting, a result and the driver is used. A failure without a line
 * uses that of GP_SMI_FAILED; a success without a line prints nothing. "Unseen" marks lines that no
 * output of a real nvidia-smi has confirmed; their wording follows the others. */
static const struct line {
    uint64_t settings;
    enum gp_smi_result result;
    struct gp_smi_range drivers;
    enum then then;
    const char *text;
} lines[] = {
    {ON(SET_PERSISTENCE), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "{label} persistence mode for GPU {gpu}."},
    {ON(SET_PERSISTENCE), GP_SMI_DONE_ALONE, GP_SMI_FROM(580, 0), STOPS,
     "{label} Legacy persistence mode for GPU {gpu}."},
    {ON(SET_PERSISTENCE), GP_SMI_SAME, GP_SMI_ALL, STOPS,
     "Persistence mode is already {label} for GPU {gpu}."},
    {ON(SET_PERSISTENCE), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set persistence mode for GPU {gpu}: {error}"},

    {ON(SET_ECC), GP_SMI_DONE, GP_SMI_ALL, STOPS, "{label} ECC support for GPU {gpu}."},
    /* unseen */
    {ON(SET_ECC), GP_SMI_SAME, GP_SMI_ALL, STOPS, "ECC support is already {label} for GPU {gpu}."},
    /* unseen */
    {ON(SET_ECC), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to {verb} ECC support for GPU {gpu}: {error}"},

    /* unseen */
    {ON(SET_ECC_ERRORS), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "Reset {label} ECC errors to zero for GPU {gpu}."},
    /* unseen */
    {ON(SET_ECC_ERRORS), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to reset {label} ECC errors for GPU {gpu}: {error}"},

    {ON(SET_COMPUTE_MODE), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "Set compute mode to {label} for GPU {gpu}."},
    {ON(SET_COMPUTE_MODE), GP_SMI_SAME, GP_SMI_ALL, STOPS,
     "Compute mode is already set to {label} for GPU {gpu}."},
    {ON(SET_COMPUTE_MODE), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set the compute mode for GPU {gpu}: {error}"},

    /* unseen */
    {ON(SET_OPERATION_MODE), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "GOM changed to \"{label}\" for GPU {gpu}."},
    /* unseen */
    {ON(SET_OPERATION_MODE), GP_SMI_SAME, GP_SMI_ALL, STOPS,
     "GOM is already set to \"{label}\" for GPU {gpu}."},
    {ON(SET_OPERATION_MODE), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set GOM to \"{label}\" for GPU {gpu}: {error}"},

    {ON(SET_RESET), GP_SMI_UNSUPPORTED, GP_SMI_ALL, STOPS, "Resetting GPU {gpu} is not supported."},

    {ON(SET_GPU_CLOCKS), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "GPU clocks set to \"(gpuClkMin {first}, gpuClkMax {second})\" for GPU {gpu}"},
    {GPU_CLOCKS, GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Setting locked GPU clocks is not supported for GPU {gpu}."},
    /* unseen */
    {GPU_CLOCKS, GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set locked GPU clocks for GPU {gpu}: {error}"},
    {ON(SET_MEMORY_CLOCKS), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "Memory clocks set to \"(memClkMin {first}, memClkMax {second})\" for GPU {gpu}"},
    {MEMORY_CLOCKS, GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Setting locked Memory clocks is not supported for GPU {gpu}."},
    /* unseen */
    {MEMORY_CLOCKS, GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set locked Memory clocks for GPU {gpu}: {error}"},
    /* unseen */
    {DEFERRED_CLOCKS, GP_SMI_UNSUPPORTED, GP_SMI_ALL, STOPS,
     "Setting deferred locked Memory clocks is not supported for GPU {gpu}."},
    {ON(SET_APP_CLOCKS), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "Applications clocks set to \"(MEM {first}, SM {second})\" for GPU {gpu}"},
    {ON(SET_APP_CLOCKS), GP_SMI_INVALID, GP_SMI_ALL, MOVES_ON,
     "Specified clock combination \"(MEM {first}, SM {second})\" is not supported for GPU {gpu}. "
     "Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock combinations"},
    {APP_CLOCKS, GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Setting applications clocks is not supported for GPU {gpu}."},
    {APP_CLOCKS, GP_SMI_DEPRECATED, GP_SMI_ALL, MOVES_ON_SILENTLY,
     "The requested functionality has been deprecated."},
    /* unseen */
    {APP_CLOCKS, GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set applications clocks for GPU {gpu}: {error}"},
    {GPU_CLOCKS | MEMORY_CLOCKS | APP_CLOCKS, GP_SMI_DENIED, GP_SMI_ALL, STOPS,
     "The current user does not have permission to change clocks for GPU {gpu}."},
    /* unseen */
    {ON(SET_CUDA_CLOCKS), GP_SMI_UNSUPPORTED, GP_SMI_ALL, STOPS,
     "Setting CUDA clocks is not supported for GPU {gpu}."},

    {ON(SET_POWER_LIMIT), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "Power limit for GPU {gpu} was set to {first} W from {old} W."},
    {ON(SET_POWER_LIMIT), GP_SMI_INVALID, GP_SMI_ALL, STOPS,
     "Provided power limit {first} W is not a valid power limit which should be between {min} W "
     "and {max} W for GPU {gpu}"},
    {ON(SET_POWER_LIMIT), GP_SMI_UNSUPPORTED, GP_SMI_UNTIL(570), MOVES_ON,
     "Changing power management limit is not supported for GPU: {gpu}."},
    {ON(SET_POWER_LIMIT), GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON_SILENTLY,
     "Changing power management limit is not supported in current scope for GPU: {gpu}."},
    {ON(SET_POWER_LIMIT), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Failed to set power management limit for GPU {gpu}: {error}"},

    {ON(SET_ACCOUNTING), GP_SMI_DONE, GP_SMI_ALL, STOPS, "{label} Accounting Mode for GPU {gpu}."},
    /* unseen */
    {ON(SET_ACCOUNTING), GP_SMI_SAME, GP_SMI_ALL, STOPS,
     "Accounting Mode is already {label} for GPU {gpu}."},
    /* unseen */
    {ON(SET_ACCOUNTING), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to {verb} Accounting Mode for GPU {gpu}: {error}"},
    /* unseen */
    {ON(SET_NO_ACCOUNTS), GP_SMI_DONE, GP_SMI_ALL, STOPS, "Cleared Accounted PIDs for GPU {gpu}."},
    /* unseen */
    {ON(SET_NO_ACCOUNTS), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to clear Accounted PIDs for GPU {gpu}: {error}"},

    {ON(SET_MIG), GP_SMI_DONE, GP_SMI_ALL, STOPS, "{label} MIG Mode for GPU {gpu}"},
    {ON(SET_MIG), GP_SMI_PENDING_IN_USE, GP_SMI_ALL, MOVES_ON_SILENTLY,
     "Warning: MIG mode is in pending {verb} state for GPU {gpu}:{error}\n"
     "{gpu} is currently being used by one or more other processes (e.g. CUDA application or a "
     "monitoring application such as another instance of nvidia-smi). Please first kill all "
     "processes using the device and retry the command or reboot the system to make MIG mode "
     "effective."},
    {ON(SET_MIG), GP_SMI_PENDING, GP_SMI_ALL, MOVES_ON_SILENTLY,
     "Warning: MIG mode is in pending {verb} state for GPU {gpu}:{error}\n"
     "Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU {gpu}"},
    {ON(SET_MIG), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to {verb} MIG Mode for GPU {gpu}: {error}"},

    /* unseen */
    {ON(SET_TARGET_TEMPERATURE), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "GPU target temperature for GPU {gpu} was set to {first} C from {old} C."},
    /* unseen */
    {ON(SET_TARGET_TEMPERATURE), GP_SMI_INVALID, GP_SMI_ALL, STOPS,
     "Provided target temperature {first} C is not a valid target temperature which should be "
     "between {min} C and {max} C for GPU {gpu}"},
    {ON(SET_TARGET_TEMPERATURE), GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "GPU Temperature Target Threshold not supported for GPU {gpu}."},
    /* unseen */
    {ON(SET_TARGET_TEMPERATURE), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set target temperature for GPU {gpu}: {error}"},

    {ON(SET_AUTO_BOOST), GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Enabling/disabling default auto boosted clocks is not supported for GPU: {gpu}."},
    /* unseen */
    {ON(SET_AUTO_BOOST), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to {verb} default auto boosted clocks for GPU {gpu}: {error}"},
    /* unseen */
    {ON(SET_AUTO_BOOST_ACCESS), GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Changing auto boosted clocks permissions is not supported for GPU: {gpu}."},
    /* unseen */
    {ON(SET_AUTO_BOOST_ACCESS), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set auto boosted clocks permissions to {label} for GPU {gpu}: {error}"},
    {ON(SET_APP_CLOCKS_ACCESS), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "Applications clocks commands have been set to {label} for GPU {gpu}"},
    /* unseen */
    {ON(SET_APP_CLOCKS_ACCESS), GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Changing applications clocks permissions is not supported for GPU: {gpu}."},
    /* unseen */
    {ON(SET_APP_CLOCKS_ACCESS), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set applications clocks commands to {label} for GPU {gpu}: {error}"},

    /* unseen */
    {ON(SET_VIRTUALIZATION), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "Set virtualization mode to {label} for GPU {gpu}."},
    /* unseen */
    {ON(SET_VIRTUALIZATION), GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Setting virtualization mode is not supported for GPU {gpu}."},
    /* unseen */
    {ON(SET_VIRTUALIZATION), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set virtualization mode for GPU {gpu}: {error}"},
    /* unseen */
    {ON(SET_DRAM_ENCRYPTION), GP_SMI_DONE, GP_SMI_ALL, STOPS,
     "{label} DRAM Encryption for GPU {gpu}."},
    /* unseen */
    {ON(SET_DRAM_ENCRYPTION), GP_SMI_SAME, GP_SMI_ALL, STOPS,
     "DRAM Encryption is already {label} for GPU {gpu}."},
    /* unseen */
    {ON(SET_DRAM_ENCRYPTION), GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Setting DRAM Encryption is not supported for GPU {gpu}."},
    /* unseen */
    {ON(SET_DRAM_ENCRYPTION), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to {verb} DRAM Encryption for GPU {gpu}: {error}"},
    /* unseen */
    {ON(SET_HOSTNAME), GP_SMI_DONE, GP_SMI_ALL, STOPS, "Hostname for GPU {gpu} was set to {text}."},
    /* unseen */
    {ON(GET_HOSTNAME), GP_SMI_DONE, GP_SMI_ALL, STOPS, "Hostname for GPU {gpu}: {text}"},
    /* unseen */
    {ON(SET_HOSTNAME) | ON(GET_HOSTNAME), GP_SMI_UNSUPPORTED, GP_SMI_ALL, MOVES_ON,
     "Hostname is not supported for GPU {gpu}."},
    /* unseen */
    {ON(SET_HOSTNAME), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to set hostname for GPU {gpu}: {error}"},
    /* unseen */
    {ON(GET_HOSTNAME), GP_SMI_FAILED, GP_SMI_ALL, STOPS,
     "Unable to get hostname for GPU {gpu}: {error}"},
};

enum gp_smi_result gp_smi_result_of(int driver_code)
{
    static const struct {
        int code;
        enum gp_smi_result result;
    } results[] = {
        {GP_NVML_NOT_SUPPORTED, GP_SMI_UNSUPPORTED},
        {GP_NVML_NO_PERMISSION, GP_SMI_DENIED},
        {GP_NVML_FUNCTION_NOT_FOUND, GP_SMI_UNSUPPORTED},
        {GP_NVML_ARGUMENT_VERSION_MISMATCH, GP_SMI_UNSUPPORTED},
        {GP_NVML_DEPRECATED, GP_SMI_DEPRECATED},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(results); i++)
        if (results[i].code == driver_code)
            return results[i].result;
    return GP_SMI_FAILED;
}

static const struct line *find_line(enum gp_smi_setting_id id, enum gp_smi_result result,
                                    const struct gp_smi_form *form)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(lines); i++)
        if (lines[i].settings & UINT64_C(1) << id && lines[i].result == result &&
            gp_smi_in(form, lines[i].drivers))
            return &lines[i];
    return NULL;
}

/* ---- parsing values ---- */

/* Whether a space-separated list has the word, case-insensitive. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        if (len == n && strncasecmp(p, word, n) == 0)
            return true;
        p += len;
    }
    return false;
}

const struct gp_smi_word *gp_smi_word_find(const struct gp_smi_word *words, const char *given)
{
    while (given && words->names && !has_word(words->names, given))
        words++;
    return words->names ? words : NULL;
}

static int refuse(enum gp_smi_setting_id id, const char *given, struct gp_strbuf *message)
{
    static const char *const names[] = {
#define X(id, kind, names, value, help) [GP_SMI_##id] = names,
        GP_SMI_SETTINGS(X)
#undef X
    };
    return gp_smi_add_invalid(message, names[id], given);
}

int gp_smi_setting_parse(enum gp_smi_setting_id id, enum gp_control_id control, const char *given,
                         struct gp_control_value *ret, const struct gp_smi_word **ret_word,
                         struct gp_strbuf *message)
{
    const struct gp_smi_setting *setting = &gp_smi_settings[id];
    bool by_word = setting->words && *given;
    const struct gp_smi_word *word = by_word ? gp_smi_word_find(setting->words, given) : NULL;
    if (by_word && !word)
        return refuse(id, given, message);
    const char *text = word ? word->text : setting->value ? setting->value : given;
    if (control != NO_CONTROL && !setting->only_reads &&
        gp_control_parse(control, text, ret, NULL) < 0)
        return refuse(id, given, message);
    *ret_word = word;
    return 0;
}

/* ---- formatting messages ---- */

static void add_number(struct gp_strbuf *sb, enum gp_control_id control, int64_t n)
{
    if (gp_control_table[control].has_tdp && n == GP_CLOCK_TDP)
        gp_strbuf_adds(sb, "tdp");
    else if (gp_control_table[control].kind == GP_CONTROL_WATTS)
        gp_strbuf_addf(sb, "%.2f", (double)n / 1000);
    else
        gp_strbuf_addf(sb, "%" PRId64, n);
}

static void add_gpu(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    gp_strbuf_adds(sb, s->gpu);
}

static void add_label(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    gp_strbuf_adds(sb, s->word->label);
}

static void add_verb(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    gp_strbuf_adds(sb, s->word->verb);
}

static void add_error(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    gp_strbuf_adds(sb, s->error);
}

static void add_first(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    add_number(sb, s->control, s->value->n[0]);
}

static void add_second(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    add_number(sb, s->control, s->value->n[1]);
}

static void add_value(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    gp_strbuf_adds(sb, s->value->text[0] ? s->value->text : "N/A");
}

static void add_old(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    add_number(sb, s->control, s->setting->value.n[0]);
}

static void add_min(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    add_number(sb, s->control, s->setting->min);
}

static void add_max(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    add_number(sb, s->control, s->setting->max);
}

static void add_brace(struct gp_strbuf *sb, const struct gp_smi_saying *s)
{
    (void)s;
    gp_strbuf_addc(sb, '{');
}

static const struct part {
    const char *name;
    void (*add)(struct gp_strbuf *sb, const struct gp_smi_saying *s);
} parts[] = {
    {"{gpu}", add_gpu},     {"{label}", add_label},   {"{verb}", add_verb}, {"{error}", add_error},
    {"{first}", add_first}, {"{second}", add_second}, {"{old}", add_old},   {"{min}", add_min},
    {"{max}", add_max},     {"{text}", add_value},    {"{", add_brace}, /* any other */
};

static const struct part *find_part(const char *text)
{
    size_t i = 0;
    while (strncmp(text, parts[i].name, strlen(parts[i].name)) != 0)
        i++;
    return &parts[i];
}

static void add_text(struct gp_strbuf *sb, const char *text, const struct gp_smi_saying *saying)
{
    while (*text) {
        size_t plain = strcspn(text, "{");
        gp_strbuf_add(sb, text, plain);
        text += plain;
        const struct part *part = *text ? find_part(text) : NULL;
        if (part)
            part->add(sb, saying);
        text += part ? strlen(part->name) : 0;
    }
    gp_strbuf_addc(sb, '\n');
}

bool gp_smi_setting_has(enum gp_smi_setting_id id, enum gp_smi_result result,
                        const struct gp_smi_form *form)
{
    return find_line(id, result, form) != NULL;
}

bool gp_smi_setting_say(struct gp_strbuf *sb, enum gp_smi_setting_id id, enum gp_smi_result result,
                        const struct gp_smi_form *form, const struct gp_smi_saying *saying)
{
    const struct line *line = find_line(id, result, form);
    bool is_lack = result == GP_SMI_UNSUPPORTED || result == GP_SMI_DEPRECATED;
    enum then then = line ? line->then : is_lack ? MOVES_ON : STOPS;
    if (!line && result >= GP_SMI_INVALID)
        line = find_line(id, GP_SMI_FAILED, form);
    if (line)
        add_text(sb, line->text, saying);
    if (then == MOVES_ON)
        gp_strbuf_adds(sb, "Treating as warning and moving on.\n");
    return then != STOPS;
}
