#include "source/control.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNLOAD "until the driver releases the GPU (soon, without persistence mode) or a reboot"

/* NVML's numbers. */
static const struct gp_choice compute_modes[] = {
    {"default", 0}, {"exclusive-process", 3}, {"prohibited", 2}, {"exclusive-thread", 1}, {NULL, 0},
};
static const struct gp_choice operation_modes[] = {
    {"all-on", 0}, {"compute", 1}, {"low-dp", 2}, {NULL, 0}};
/* Values without the host can be read, but no driver accepts them. */
static const struct gp_choice virtualization_modes[] = {
    {"host-vgpu", 3}, {"host-vsga", 4}, {"none", 0}, {"passthrough", 1}, {"vgpu", 2}, {NULL, 0},
};
static const struct gp_choice accesses[] = {{"all", 0}, {"root", 1}, {NULL, 0}};
static const struct gp_choice ecc_clears[] = {
    {"clear-volatile", 0}, {"clear-aggregate", 1}, {NULL, 0}};
static const struct gp_choice plain_clear[] = {{"clear", 0}, {NULL, 0}};

const struct gp_control gp_control_table[GP_CONTROL__COUNT] = {
    [GP_CONTROL_PERSISTENCE] =
        {.name = "persistence-mode",
         .summary =
             "keep the GPU initialized while no program uses it, so that its settings are not lost",
         .syntax = "on|off",
         .needs = "root; prefer nvidia-persistenced if it is running",
         .takes_effect = "immediately",
         .lasts = "until a reboot",
         .kind = GP_CONTROL_SWITCH},
    [GP_CONTROL_MIG_MODE] =
        {.name = "mig-mode",
         .summary = "let the GPU be partitioned into MIG instances",
         .syntax = "on|off",
         .needs = "root; A100, A30, H100 and later data center GPUs; no process may use the GPU",
         .takes_effect = "immediately if the GPU is unused, otherwise after a reset; a reset kills "
                         "everything on it",
         .lasts = "permanently (since Hopper: until a reboot)",
         .kind = GP_CONTROL_SWITCH,
         .loses = "the GPU may be reset, now or later: a reset kills everything on it"},
    [GP_CONTROL_MIG_INSTANCES] =
        {.name = "mig-instances",
         .summary = "MIG instances of the GPU: instances that are not in the list are destroyed, "
                    "missing ones are created with one compute instance each",
         .syntax = "PROFILE,…|none",
         .needs = "root; MIG mode on; for a single instance (-i MIG-…) only none",
         .takes_effect = "immediately",
         .lasts = "until a reboot, or until MIG mode is disabled",
         .kind = GP_CONTROL_PROFILES,
         .on_mig = true,
         .loses = "instances that are not in the list are destroyed; new ones get new UUIDs"},
    [GP_CONTROL_COMPUTE_MODE] = {.name = "compute-mode",
                                 .summary = "how many processes may compute at a time",
                                 .syntax = "default|exclusive-process|prohibited",
                                 .needs = "root; in MIG mode per instance (-i MIG-…)",
                                 .takes_effect = "immediately",
                                 .lasts = UNLOAD,
                                 .kind = GP_CONTROL_CHOICE,
                                 .choices = compute_modes,
                                 .on_mig = true,
                                 .is_volatile = true},
    [GP_CONTROL_POWER_LIMIT] = {.name = "power-limit",
                                .summary = "maximum power draw of the GPU",
                                .syntax = "WATTS|default",
                                .needs = "root; most desktop and data center GPUs, few laptops",
                                .takes_effect = "immediately",
                                .lasts = UNLOAD,
                                .kind = GP_CONTROL_WATTS,
                                .unit = "W",
                                .automatic = "default",
                                .is_volatile = true},
    [GP_CONTROL_MODULE_POWER_LIMIT] =
        {.name = "module-power-limit",
         .summary = "maximum total power draw of GPU and CPU of a superchip module",
         .syntax = "WATTS|default",
         .needs = "root; GH200, GB200 and similar modules; driver 535 or later",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_WATTS,
         .unit = "W",
         .automatic = "default",
         .is_volatile = true},
    [GP_CONTROL_LOCK_GPU_CLOCKS] = {.name = "lock-gpu-clocks",
                                    .summary = "lock the graphics and SM clock to a range",
                                    .syntax = "MIN,MAX|MHZ|tdp|reset",
                                    .needs = "root; Volta or later",
                                    .takes_effect = "immediately",
                                    .lasts = UNLOAD,
                                    .kind = GP_CONTROL_RANGE,
                                    .unit = "MHz",
                                    .automatic = "reset",
                                    .has_tdp = true,
                                    .is_volatile = true},
    [GP_CONTROL_LOCK_MEMORY_CLOCKS] = {.name = "lock-memory-clocks",
                                       .summary = "lock the memory clock to a range",
                                       .syntax = "MIN,MAX|MHZ|reset",
                                       .needs = "root; Ampere or later; driver 465 or later",
                                       .takes_effect = "immediately",
                                       .lasts = UNLOAD,
                                       .kind = GP_CONTROL_RANGE,
                                       .unit = "MHz",
                                       .automatic = "reset",
                                       .is_volatile = true},
    [GP_CONTROL_APPLICATION_CLOCKS] =
        {.name = "application-clocks",
         .summary = "clocks for programs, if power and temperature allow them; deprecated: use "
                    "lock-gpu-clocks and lock-memory-clocks",
         .syntax = "MEMORY,GRAPHICS|default",
         .needs = "root unless unrestricted; data center and workstation GPUs; drivers before 590",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_PAIR,
         .unit = "MHz",
         .automatic = "default",
         .is_volatile = true,
         .instead = "lock-gpu-clocks and lock-memory-clocks"},
    [GP_CONTROL_AUTO_BOOST] =
        {.name = "auto-boost",
         .summary =
             "raise the clocks above the application clocks if power and temperature allow it",
         .syntax = "on|off",
         .needs = "root unless unrestricted; some GPUs before Pascal",
         .takes_effect = "when the last program that requests another mode has exited",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_SWITCH,
         .is_volatile = true},
    [GP_CONTROL_GPU_CLOCK_OFFSET] =
        {.name = "gpu-clock-offset",
         .summary = "offset of the voltage/frequency curve of the graphics clock: overclocks, or "
                    "undervolts together with lock-gpu-clocks",
         .syntax = "MHZ|default",
         .needs = "root; Maxwell or later GeForce and workstation GPUs; driver 515 or later",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_OFFSET,
         .unit = "MHz",
         .automatic = "default",
         .is_volatile = true},
    [GP_CONTROL_MEMORY_CLOCK_OFFSET] =
        {.name = "memory-clock-offset",
         .summary = "offset of the memory clock",
         .syntax = "MHZ|default",
         .needs = "root; Maxwell or later GeForce and workstation GPUs; driver 520 or later",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_OFFSET,
         .unit = "MHz",
         .automatic = "default",
         .is_volatile = true},
    [GP_CONTROL_FAN_SPEED] =
        {.name = "fan-speed",
         .summary = "run the fans at a fixed speed",
         .syntax = "PERCENT|auto|FAN:PERCENT,…|FAN:auto,…",
         .needs = "root; GPUs with their own fans; driver 515 or later",
         .takes_effect = "immediately",
         .lasts = "until fan-speed=auto, or until the driver releases the GPU",
         .kind = GP_CONTROL_FANS,
         .unit = "%",
         .automatic = "auto",
         .is_volatile = true,
         .warning = "the fans keep this speed regardless of the temperature, until fan-speed=auto"},
    [GP_CONTROL_TARGET_TEMPERATURE] =
        {.name = "target-temperature",
         .summary = "temperature at which the driver slows the GPU down",
         .syntax = "DEGREES",
         .needs = "root; Maxwell or later GeForce and workstation GPUs; driver 460 or later",
         .takes_effect = "immediately",
         .lasts = UNLOAD,
         .kind = GP_CONTROL_NUMBER,
         .unit = "°C",
         .is_volatile = true},
    [GP_CONTROL_ECC_MODE] = {.name = "ecc-mode",
                             .summary = "error correction (ECC) of the GPU memory",
                             .syntax = "on|off",
                             .needs = "root; data center and workstation GPUs",
                             .takes_effect = "after a GPU reset or a reboot",
                             .lasts = "permanently",
                             .kind = GP_CONTROL_SWITCH},
    [GP_CONTROL_DRAM_ENCRYPTION] = {.name = "dram-encryption",
                                    .summary = "encryption of the GPU memory",
                                    .syntax = "on|off",
                                    .needs = "root; some Blackwell GPUs; driver 570 or later",
                                    .takes_effect = "after a GPU reset or a reboot",
                                    .lasts = "permanently",
                                    .kind = GP_CONTROL_SWITCH},
    [GP_CONTROL_OPERATION_MODE] = {.name = "operation-mode",
                                   .summary = "operation mode: which units of the GPU are enabled",
                                   .syntax = "all-on|compute|low-dp",
                                   .needs = "root; some Kepler GPUs",
                                   .takes_effect = "after a reboot",
                                   .lasts = "permanently",
                                   .kind = GP_CONTROL_CHOICE,
                                   .choices = operation_modes},
    [GP_CONTROL_VIRTUALIZATION_MODE] =
        {.name = "virtualization-mode",
         .summary =
             "whether a virtualization host offers the GPU as vGPUs or as a shared graphics device",
         .syntax = "host-vgpu|host-vsga",
         .needs = "root; a hypervisor with NVIDIA's vGPU driver",
         .takes_effect = "immediately",
         .lasts = "until a reboot, according to NVIDIA",
         .kind = GP_CONTROL_CHOICE,
         .choices = virtualization_modes},
    [GP_CONTROL_APP_CLOCKS_ACCESS] = {.name = "app-clocks-access",
                                      .summary = "who may change application-clocks",
                                      .syntax = "all|root",
                                      .needs = "root; GPUs that support application-clocks",
                                      .takes_effect = "immediately",
                                      .lasts = "until a reboot, according to NVIDIA",
                                      .kind = GP_CONTROL_CHOICE,
                                      .choices = accesses},
    [GP_CONTROL_AUTO_BOOST_ACCESS] = {.name = "auto-boost-access",
                                      .summary = "who may change auto-boost",
                                      .syntax = "all|root",
                                      .needs = "root; GPUs that support auto-boost",
                                      .takes_effect = "immediately",
                                      .lasts = "until a reboot, according to NVIDIA",
                                      .kind = GP_CONTROL_CHOICE,
                                      .choices = accesses},
    [GP_CONTROL_HOSTNAME] = {.name = "hostname",
                             .summary = "hostname stored in the GPU, where others can read it",
                             .syntax = "NAME|none",
                             .needs = "root; Blackwell or later; driver 590 or later",
                             .takes_effect = "immediately",
                             .lasts = "until a reboot, according to NVIDIA",
                             .kind = GP_CONTROL_NAME},
    [GP_CONTROL_ACCOUNTING_MODE] = {.name = "accounting-mode",
                                    .summary = "record the resource use of each process",
                                    .syntax = "on|off",
                                    .needs = "root; Kepler or later; not in MIG mode",
                                    .takes_effect = "immediately",
                                    .lasts = UNLOAD,
                                    .kind = GP_CONTROL_SWITCH,
                                    .is_volatile = true},
    [GP_CONTROL_ACCOUNTING_RECORDS] = {.name = "accounting-records",
                                       .summary =
                                           "clear the accounting records of exited processes",
                                       .syntax = "clear",
                                       .needs = "root",
                                       .takes_effect = "immediately",
                                       .lasts = "permanently",
                                       .kind = GP_CONTROL_CLEAR,
                                       .choices = plain_clear,
                                       .loses =
                                           "the accounting records of exited processes are lost"},
    [GP_CONTROL_ECC_COUNTERS] = {.name = "ecc-counters",
                                 .summary = "reset the memory error counters: volatile (since the "
                                            "driver was loaded) or aggregate (lifetime)",
                                 .syntax = "clear-volatile|clear-aggregate",
                                 .needs = "root; GPUs with ECC",
                                 .takes_effect = "immediately",
                                 .lasts = "permanently",
                                 .kind = GP_CONTROL_CLEAR,
                                 .choices = ecc_clears,
                                 .loses = "the memory error counts are lost"},
    [GP_CONTROL_NVLINK_COUNTERS] = {.name = "nvlink-counters",
                                    .summary = "reset the error counters of all NVLinks",
                                    .syntax = "clear",
                                    .needs = "root; GPUs with NVLink",
                                    .takes_effect = "immediately",
                                    .lasts = "permanently",
                                    .kind = GP_CONTROL_CLEAR,
                                    .choices = plain_clear,
                                    .loses = "the error counts of its NVLinks are lost"},
};

static const char *control_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < GP_CONTROL__COUNT ? gp_control_table[i].name : NULL;
}

int gp_control_find(const char *name, size_t n, enum gp_control_id *ret, struct gp_err *err)
{
    char word[64];
    for (size_t i = 0; i < GP_CONTROL__COUNT; i++)
        if (strlen(gp_control_table[i].name) == n &&
            memcmp(gp_control_table[i].name, name, n) == 0) {
            *ret = (enum gp_control_id)i;
            return 0;
        }
    (void)snprintf(word, sizeof(word), "%.*s", (int)(n < 60 ? n : 60), name);
    return gp_err_set(err, GP_EUSAGE, "unknown control '%s'%s; gpulse set --list shows all", word,
                      gp_cli_hint(word, control_name, NULL).text);
}

/* ---- parsing ---- */

static bool parse_choice(const struct gp_choice *choices, const char *text, int64_t *ret)
{
    for (; choices && choices->name; choices++)
        if (strcmp(choices->name, text) == 0) {
            *ret = choices->code;
            return true;
        }
    return false;
}

static bool parse_switch(const char *text, int64_t *ret)
{
    static const struct gp_choice words[] = {{"on", 1},  {"off", 0},     {"1", 1},
                                             {"0", 0},   {"enabled", 1}, {"disabled", 0},
                                             {"yes", 1}, {"no", 0},      {NULL, 0}};
    return parse_choice(words, text, ret);
}

/* A plausible number of MHz or percent, with or without a sign. */
static bool parse_number(const char *text, size_t n, bool with_sign, int64_t *ret)
{
    char word[16];
    uint64_t number;
    bool minus = with_sign && n > 0 && text[0] == '-';
    size_t skip = minus || (with_sign && n > 0 && text[0] == '+');
    if (n - skip >= sizeof(word))
        return false;
    memcpy(word, text + skip, n - skip);
    word[n - skip] = '\0';
    if (!gp_parse_u64(word, &number) || number > 1000000)
        return false;
    *ret = minus ? -(int64_t)number : (int64_t)number;
    return true;
}

/* "A,B"; with `single`, "A" means "A,A". */
static bool parse_two(const char *text, bool single, int64_t n[2])
{
    size_t len = strcspn(text, ",");
    if (!parse_number(text, len, false, &n[0]))
        return false;
    n[1] = n[0];
    return text[len] ? parse_number(text + len + 1, strlen(text + len + 1), false, &n[1]) : single;
}

/* Each control documents one of these words, and accepts all of them. */
static bool is_automatic(const char *text, size_t n)
{
    return gp_cli_list_has("default reset auto", text, n);
}

static bool parse_fan_speed(const char *text, size_t n, int64_t *ret)
{
    if (is_automatic(text, n)) {
        *ret = GP_FAN_AUTO;
        return true;
    }
    return parse_number(text, n, false, ret);
}

/* "70" for all fans (count 0), or "0:70,2:auto" (count: the highest fan index plus one). */
static bool parse_fans(const char *text, struct gp_control_value *ret)
{
    if (!strchr(text, ':'))
        return parse_fan_speed(text, strlen(text), &ret->n[0]);
    for (size_t i = 0; i < GP_CONTROL_NUMBERS; i++)
        ret->n[i] = GP_FAN_KEEP;
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        const char *colon = memchr(p, ':', len);
        int64_t fan;
        if (!colon || !parse_number(p, (size_t)(colon - p), false, &fan) ||
            fan >= GP_CONTROL_NUMBERS || ret->n[fan] != GP_FAN_KEEP ||
            !parse_fan_speed(colon + 1, len - (size_t)(colon + 1 - p), &ret->n[fan]))
            return false;
        if (ret->count <= (unsigned)fan)
            ret->count = (unsigned)fan + 1;
        p += len;
        if (!*p)
            return true;
    }
}

/* Only the GPU knows its profiles; this only rejects names with strange characters. */
static bool parse_profiles(const char *text, struct gp_control_value *ret)
{
    bool none = strcmp(text, "none") == 0;
    size_t n = strlen(text);
    if (n == 0 || n >= sizeof(ret->text) || text[0] == ',' || text[n - 1] == ',' ||
        strstr(text, ",,") || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.+-,") != n)
        return false;
    (void)snprintf(ret->text, sizeof(ret->text), "%s", none ? "" : text);
    return true;
}

static bool parse_name(const char *text, struct gp_control_value *ret)
{
    bool none = strcmp(text, "none") == 0;
    size_t n = strlen(text);
    if (n == 0 || n > GP_CONTROL_NAME_MAX ||
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_") != n)
        return false;
    (void)snprintf(ret->text, sizeof(ret->text), "%s", none ? "" : text);
    return true;
}

static bool parse_value(const struct gp_control *control, const char *text,
                        struct gp_control_value *ret)
{
    uint64_t mw;
    switch (control->kind) {
    case GP_CONTROL_SWITCH:
        return parse_switch(text, &ret->n[0]);
    case GP_CONTROL_CHOICE:
    case GP_CONTROL_CLEAR:
        return parse_choice(control->choices, text, &ret->n[0]);
    case GP_CONTROL_WATTS:
        if (!gp_parse_power(text, &mw) || mw > UINT32_MAX)
            return false;
        ret->n[0] = (int64_t)mw;
        return true;
    case GP_CONTROL_RANGE:
        if (!control->has_tdp || (strcmp(text, "tdp") != 0 && strcmp(text, "tdp,tdp") != 0))
            return parse_two(text, true, ret->n);
        ret->n[0] = ret->n[1] = GP_CLOCK_TDP;
        return true;
    case GP_CONTROL_PAIR:
        return parse_two(text, false, ret->n);
    case GP_CONTROL_OFFSET:
        return parse_number(text, strlen(text), true, &ret->n[0]);
    case GP_CONTROL_NUMBER:
        return parse_number(text, strlen(text), false, &ret->n[0]);
    case GP_CONTROL_FANS:
        return parse_fans(text, ret);
    case GP_CONTROL_NAME:
        return parse_name(text, ret);
    case GP_CONTROL_PROFILES:
        return parse_profiles(text, ret);
    }
    return false;
}

int gp_control_parse(enum gp_control_id id, const char *text, struct gp_control_value *ret,
                     struct gp_err *err)
{
    const struct gp_control *control = &gp_control_table[id];
    struct gp_control_value value = {0};
    if (control->automatic && is_automatic(text, strlen(text))) {
        value.automatic = true;
        value.n[0] = control->kind == GP_CONTROL_FANS ? GP_FAN_AUTO : 0;
    } else if (!parse_value(control, text, &value)) {
        return gp_err_set(err, GP_EUSAGE, "%s expects %s%s%s%s, not '%.60s'", control->name,
                          control->syntax, control->unit ? " (in " : "",
                          control->unit ? control->unit : "", control->unit ? ")" : "", text);
    }
    if (control->kind == GP_CONTROL_RANGE && value.n[0] > value.n[1])
        return gp_err_set(err, GP_EUSAGE,
                          "%s=%.60s: the minimum is greater than the maximum; expected %s (in %s)",
                          control->name, text, control->syntax, control->unit);
    *ret = value;
    return 0;
}

/* ---- formatting ---- */

static void format_choice(struct gp_strbuf *sb, const struct gp_choice *choices, int64_t code)
{
    for (; choices && choices->name; choices++)
        if (choices->code == code) {
            gp_strbuf_adds(sb, choices->name);
            return;
        }
    gp_strbuf_addf(sb, "%" PRId64, code);
}

static void format_milliwatts(struct gp_strbuf *sb, int64_t mw)
{
    gp_strbuf_addf(sb, "%" PRId64, mw / 1000);
    if (mw % 1000)
        gp_strbuf_addf(sb, ".%03" PRId64, mw % 1000);
}

static void format_fan_speed(struct gp_strbuf *sb, int64_t speed, const char *unit)
{
    if (speed == GP_FAN_AUTO)
        gp_strbuf_adds(sb, "auto");
    else
        gp_strbuf_addf(sb, "%" PRId64 "%s", speed, unit);
}

static void format_fans(struct gp_strbuf *sb, const struct gp_control_value *value,
                        const char *unit)
{
    const char *comma = "";
    if (value->count == 0)
        format_fan_speed(sb, value->n[0], unit);
    for (unsigned i = 0; i < value->count; i++) {
        if (value->n[i] == GP_FAN_KEEP)
            continue;
        gp_strbuf_addf(sb, "%s%u:", comma, i);
        format_fan_speed(sb, value->n[i], unit);
        comma = ",";
    }
}

void gp_control_format(struct gp_strbuf *sb, enum gp_control_id id,
                       const struct gp_control_value *value, bool unit)
{
    const struct gp_control *control = &gp_control_table[id];
    const int64_t *n = value->n;
    bool is_tdp = control->has_tdp && n[0] == GP_CLOCK_TDP;
    if (value->automatic || is_tdp) {
        gp_strbuf_adds(sb, is_tdp ? "tdp" : control->automatic);
        return;
    }
    switch (control->kind) {
    case GP_CONTROL_SWITCH:
        gp_strbuf_adds(sb, n[0] ? "on" : "off");
        break;
    case GP_CONTROL_CHOICE:
        format_choice(sb, control->choices, n[0]);
        break;
    case GP_CONTROL_CLEAR:
        if (value->text[0])
            gp_strbuf_adds(sb, value->text);
        else
            format_choice(sb, control->choices, n[0]);
        break;
    case GP_CONTROL_WATTS:
        format_milliwatts(sb, n[0]);
        break;
    case GP_CONTROL_RANGE:
    case GP_CONTROL_PAIR:
        gp_strbuf_addf(sb, "%" PRId64 ",%" PRId64, n[0], n[1]);
        break;
    case GP_CONTROL_OFFSET:
        gp_strbuf_addf(sb, "%+" PRId64, n[0]);
        break;
    case GP_CONTROL_NUMBER:
        gp_strbuf_addf(sb, "%" PRId64, n[0]);
        break;
    case GP_CONTROL_FANS:
        format_fans(sb, value, unit ? " %" : "");
        return;
    case GP_CONTROL_PROFILES:
    case GP_CONTROL_NAME:
        gp_strbuf_adds(sb, value->text[0] ? value->text : "none");
        break;
    }
    if (unit && control->unit)
        gp_strbuf_addf(sb, " %s", control->unit);
}

/* ---- checking and comparing ---- */

static bool within(const struct gp_setting *setting, int64_t n)
{
    return !setting->has_range || (n >= setting->min && n <= setting->max);
}

static bool numbers_within(enum gp_control_kind kind, const struct gp_setting *setting,
                           const struct gp_control_value *value)
{
    /* A minimum below the limit (0,1500) means as low as possible. */
    if (kind == GP_CONTROL_RANGE)
        return !setting->has_range || value->n[0] == GP_CLOCK_TDP ||
               (value->n[0] <= setting->max && within(setting, value->n[1]));
    bool two = kind == GP_CONTROL_PAIR;
    bool fans = kind == GP_CONTROL_FANS;
    unsigned count = two ? 2 : fans && value->count ? value->count : 1;
    for (unsigned i = 0; i < count; i++)
        if (!(fans && value->n[i] < 0) && !within(setting, value->n[i]))
            return false;
    return true;
}

bool gp_control_undo(struct gp_strbuf *sb, enum gp_control_id id, const struct gp_setting *old,
                     const struct gp_control_value *wanted)
{
    const struct gp_control *control = &gp_control_table[id];
    if (control->kind == GP_CONTROL_CLEAR || old->status != GP_STATUS_OK ||
        (!old->known && (!control->automatic || wanted->automatic)))
        return false;
    if (old->known)
        gp_control_format(sb, id, old->has_pending ? &old->pending : &old->value, false);
    else
        gp_strbuf_adds(sb, control->automatic);
    return true;
}

int gp_control_check(enum gp_control_id id, const struct gp_setting *setting,
                     struct gp_control_value *value, struct gp_err *err)
{
    const struct gp_control *control = &gp_control_table[id];
    if (value->automatic && setting->has_fallback)
        *value = setting->fallback;
    if (value->automatic || numbers_within(control->kind, setting, value))
        return 0;
    bool offset = control->kind == GP_CONTROL_OFFSET;
    bool watts = control->kind == GP_CONTROL_WATTS;
    struct gp_strbuf text = GP_STRBUF_INIT(512);
    gp_control_format(&text, id, value, true);
    int r = gp_err_set(err, GP_EUSAGE,
                       offset ? "%s=%s is out of range: %+.12g to %+.12g %s"
                              : "%s=%s is out of range: %.12g to %.12g %s",
                       control->name, text.buf, (double)setting->min / (watts ? 1000 : 1),
                       (double)setting->max / (watts ? 1000 : 1), control->unit);
    gp_strbuf_fini(&text);
    return r;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum { PROFILE_SIZE = 24, PROFILES_MAX = 64 };

static size_t split_profiles(const char *text, char words[PROFILES_MAX][PROFILE_SIZE])
{
    size_t count = 0;
    while (*text && count < PROFILES_MAX) {
        size_t n = strcspn(text, ",");
        (void)snprintf(words[count++], PROFILE_SIZE, "%.*s", (int)n, text);
        text += n + (text[n] == ',');
    }
    qsort(words, count, PROFILE_SIZE, compare_words);
    return count;
}

/* Compares lists of instances, ignoring the order. */
static bool same_profiles(const char *a, const char *b)
{
    char x[PROFILES_MAX][PROFILE_SIZE], y[PROFILES_MAX][PROFILE_SIZE];
    size_t count = split_profiles(a, x);
    if (count != split_profiles(b, y))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(x[i], y[i]) != 0)
            return false;
    return true;
}

/* The speed of a fan in a value that may have a single speed for all fans. */
static int64_t fan_speed(const struct gp_control_value *value, unsigned fan)
{
    return value->count == 0 ? value->n[0] : fan < value->count ? value->n[fan] : GP_FAN_KEEP;
}

static bool fans_satisfy(const struct gp_control_value *is, const struct gp_control_value *wanted)
{
    unsigned count = is->count > wanted->count ? is->count : wanted->count;
    for (unsigned i = 0; i < (count ? count : 1); i++)
        if (fan_speed(wanted, i) != GP_FAN_KEEP && fan_speed(is, i) != fan_speed(wanted, i))
            return false;
    return true;
}

bool gp_control_satisfies(enum gp_control_id id, const struct gp_control_value *is,
                          const struct gp_control_value *wanted)
{
    enum gp_control_kind kind = gp_control_table[id].kind;
    if (kind == GP_CONTROL_CLEAR)
        return false;
    if (kind == GP_CONTROL_FANS)
        return fans_satisfy(is, wanted);
    if (kind == GP_CONTROL_PROFILES)
        return same_profiles(is->text, wanted->text);
    if (kind == GP_CONTROL_NAME)
        return strcmp(is->text, wanted->text) == 0;
    if (is->automatic || wanted->automatic)
        return is->automatic == wanted->automatic;
    bool two = kind == GP_CONTROL_RANGE || kind == GP_CONTROL_PAIR;
    return is->n[0] == wanted->n[0] && (!two || is->n[1] == wanted->n[1]);
}
