/* The values of controls: from text and to text, within the range of a device, and compared. */
#include "source/control.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
