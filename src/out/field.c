#include "out/field.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gp_unit_choice unit_choices[] = {
    {"B", GP_UNIT_BYTES, 1, 0},
    {"KiB", GP_UNIT_BYTES, 0x1p-10, 0},
    {"MiB", GP_UNIT_BYTES, 0x1p-20, 0},
    {"GiB", GP_UNIT_BYTES, 0x1p-30, 1},
    {"TiB", GP_UNIT_BYTES, 0x1p-40, 3},
    {"kB", GP_UNIT_BYTES, 1e-3, 0},
    {"MB", GP_UNIT_BYTES, 1e-6, 0},
    {"GB", GP_UNIT_BYTES, 1e-9, 1},
    {"mW", GP_UNIT_WATT, 1e3, 0},
    {"W", GP_UNIT_WATT, 1, 0},
    {"kW", GP_UNIT_WATT, 1e-3, 3},
    {"MHz", GP_UNIT_MHZ, 1, 0},
    {"GHz", GP_UNIT_MHZ, 1e-3, 2},
    {"ratio", GP_UNIT_PERCENT, 1e-2, 2},
    {"J", GP_UNIT_JOULE, 1, 0},
    {"kJ", GP_UNIT_JOULE, 1e-3, 0},
    {"kWh", GP_UNIT_JOULE, 1 / 3.6e6, 3},
    {"B/s", GP_UNIT_BYTES_PER_S, 1, 0},
    {"kB/s", GP_UNIT_BYTES_PER_S, 1e-3, 0},
    {"MB/s", GP_UNIT_BYTES_PER_S, 1e-6, 1},
    {"GB/s", GP_UNIT_BYTES_PER_S, 1e-9, 3},
    {"MiB/s", GP_UNIT_BYTES_PER_S, 0x1p-20, 1},
    {"us", GP_UNIT_US, 1, 0},
    {"ms", GP_UNIT_US, 1e-3, 3},
    {"s", GP_UNIT_US, 1e-6, 6},
    {"ms", GP_UNIT_MS, 1, 0},
    {"s", GP_UNIT_MS, 1e-3, 3},
    {"s", GP_UNIT_SECOND, 1, 0},
    {"h", GP_UNIT_SECOND, 1.0 / 3600, 2},
    {"mW/s", GP_UNIT_WATT_PER_S, 1e3, 0},
    {"W/s", GP_UNIT_WATT_PER_S, 1, 0},
};

static const struct {
    const char *human;
    const char *json;
    const char *csv;
} status_texts[] = {
#define X(id, human, json, csv) [GP_STATUS_##id] = {human, json, csv},
    GP_STATUS_LIST(X)
#undef X
};

const char gp_field_usual[] = "index,name,uuid,utilization.gpu,memory.used,memory.total,"
                              "temperature.gpu,power.draw";

const char *gp_status_reason(enum gp_status status)
{
    return status_texts[status].json;
}

static int find_unit(const struct gp_field *field, const char *name, size_t n,
                     const struct gp_unit_choice **ret, struct gp_err *err)
{
    enum gp_unit of = gp_metric_table[field->metric].unit;
    char known[128] = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(unit_choices); i++) {
        const struct gp_unit_choice *choice = &unit_choices[i];
        if (choice->of != of)
            continue;
        if (strlen(choice->name) == n && memcmp(choice->name, name, n) == 0) {
            *ret = choice;
            return 0;
        }
        size_t used = strlen(known);
        (void)snprintf(known + used, sizeof(known) - used, " %s", choice->name);
    }
    const char *own = gp_unit_name(of);
    bool other = known[0];
    return gp_err_set(err, GP_EUSAGE, "unknown unit '%.*s' for %s%s%s", (int)(n > 20 ? 20 : n),
                      name, GP_METRIC_NAME(field->metric),
                      other  ? "; known:"
                      : *own ? ", which is always in "
                             : ", which has no unit",
                      other ? known : own);
}

int gp_field_parse(const char *text, size_t n, struct gp_field *ret, struct gp_err *err)
{
    char name[128];
    size_t name_len = 0;
    while (name_len < n && text[name_len] != ':')
        name_len++;
    if (name_len >= sizeof(name))
        return gp_err_set(err, GP_EUSAGE, "field name too long: '%.40s…'", text);
    memcpy(name, text, name_len);
    name[name_len] = '\0';
    struct gp_field field = {0};
    int r = gp_metric_find(name, &field.metric, err);
    if (r == 0 && name_len < n)
        r = find_unit(&field, text + name_len + 1, n - name_len - 1, &field.unit, err);
    if (r == 0)
        *ret = field;
    return r;
}

static int append(struct gp_field_list *list, const struct gp_field *field)
{
    struct gp_field *grown = realloc(list->fields, (list->count + 1) * sizeof(*grown));
    if (!grown)
        return GP_ENOMEM;
    list->fields = grown;
    grown[list->count++] = *field;
    return 0;
}

/* The optional prefix of field names in rows of a list, for example "supported_clocks.". */
static size_t prefix_of(enum gp_scope scope)
{
    return gp_scope_is_list(scope) ? strlen(gp_scope_table[scope].plural) + 1 : 0;
}

static bool has_metric(const struct gp_field_list *list, enum gp_metric m)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->fields[i].metric == m)
            return true;
    return false;
}

/* A field whose name starts with these n bytes and a dot, of this scope if possible. NULL if there
 * is none. */
static const struct gp_metric_info *find_group(const char *name, size_t n, enum gp_scope scope)
{
    const struct gp_metric_info *found = NULL;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        const struct gp_metric_info *info = &gp_metric_table[m];
        const char *whole = gp_metric_name(info);
        bool own = info->scope == scope;
        const char *part = whole + (own ? prefix_of(scope) : 0);
        bool begins = (strncmp(whole, name, n) == 0 && whole[n] == '.') ||
                      (own && strncmp(part, name, n) == 0 && part[n] == '.');
        if (begins && (own || !found))
            found = info;
        if (begins && own)
            break;
    }
    return found;
}

/* Adds the GPU to "*" in rows of processes or lists, because their own fields do not identify
 * it. */
static int append_identity(struct gp_field_list *list, enum gp_scope scope)
{
    static const enum gp_metric identity[] = {GP_INDEX, GP_UUID};
    int r = 0;
    bool of_gpu = scope == GP_SCOPE_PROCESS || gp_scope_is_list(scope);
    for (size_t i = 0; r == 0 && of_gpu && i < GP_ARRAY_LEN(identity); i++)
        if (!has_metric(list, identity[i]))
            r = append(list, &(struct gp_field){.metric = identity[i], .identity = true});
    return r;
}

static int append_group(struct gp_field_list *list, const char *text, size_t n, enum gp_scope scope,
                        struct gp_err *err)
{
    if (n == 1 && append_identity(list, scope) < 0)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    size_t before = list->count;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        const struct gp_metric_info *info = &gp_metric_table[m];
        const char *name = gp_metric_name(info);
        bool of_scope = scope == GP_SCOPE_ANY || info->scope == scope;
        if (!of_scope ||
            (strncmp(name, text, n - 1) != 0 && strncmp(name + prefix_of(scope), text, n - 1) != 0))
            continue;
        if (append(list, &(struct gp_field){.metric = (enum gp_metric)m}) < 0)
            return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    if (list->count > before)
        return 0;
    for (int l = GP_SCOPE_LIST__FIRST; l < GP_SCOPE__COUNT; l++) {
        size_t len = strlen(gp_scope_table[l].plural);
        if (n > len && memcmp(text, gp_scope_table[l].plural, len) == 0 && text[len] == '.')
            return gp_err_set(err, GP_EUSAGE, "'%.*s' are fields of a %s; add --rows %s",
                              (int)(n > 60 ? 60 : n), text, gp_scope_table[l].noun,
                              gp_scope_table[l].plural);
    }
    return gp_err_set(err, GP_EUSAGE,
                      "no field of this kind starts with '%.*s'; gpulse query --list shows all",
                      (int)(n > 60 ? 60 : n - 1), text);
}

/* Whether a row of `scope` has fields of `other`: its own scope, its GPU's, and the host's. */
static bool row_has(enum gp_scope scope, enum gp_scope other)
{
    return other == scope || scope == GP_SCOPE_ANY || (other < scope && other <= GP_SCOPE_DEVICE);
}

static int refuse(const struct gp_field *field, struct gp_err *err)
{
    const struct gp_metric_info *info = &gp_metric_table[field->metric];
    const struct gp_scope_info *scope = &gp_scope_table[info->scope];
    if (gp_scope_is_list(info->scope))
        return gp_err_set(err, GP_EUSAGE, "field '%s' belongs to a %s; add --rows %s",
                          gp_metric_name(info), scope->noun, scope->plural);
    bool process = info->scope == GP_SCOPE_PROCESS;
    return gp_err_set(err, GP_EUSAGE, "field '%s' belongs to a %s; %s", gp_metric_name(info),
                      process ? "process" : "GPU", process ? "add --processes" : "remove --host");
}

/* In rows of a list, an unknown name may be a field of the list without its prefix. Returns true if
 * it is, and sets `name` to the full name with the unit. */
static bool is_short(const char *text, size_t n, enum gp_scope scope, char name[128])
{
    enum gp_metric m;
    if (!gp_scope_is_list(scope) ||
        snprintf(name, 128, "%s.%.*s", gp_scope_table[scope].plural, (int)n, text) >= 128)
        return false;
    char *unit = strchr(name, ':');
    if (unit)
        *unit = '\0';
    bool known = gp_metric_find(name, &m, NULL) == 0;
    if (unit)
        *unit = ':';
    return known;
}

/* For the name of a group, suggests its first field and the group, not the nearest field name. */
static void hint_at_group(const char *text, size_t n, enum gp_scope scope, struct gp_err *err)
{
    const struct gp_metric_info *member = find_group(text, n, scope);
    if (!member)
        return;
    bool here = scope == GP_SCOPE_ANY || member->scope == scope;
    if (here)
        (void)gp_err_set(
            err, GP_EUSAGE,
            "unknown field '%.*s' (did you mean '%s', or '%.*s.*' for the whole group?); "
            "gpulse query --list shows all",
            (int)n, text, gp_metric_name(member), (int)n, text);
    else
        (void)gp_err_set(
            err, GP_EUSAGE,
            "unknown field '%.*s' (did you mean '%.*s.*' with --rows %s?); gpulse query "
            "--list shows all",
            (int)n, text, (int)n, text, gp_scope_table[member->scope].plural);
}

/* In nvidia-smi's lists of processes, "name" is that of the process. */
static void prefer_process(const char *text, size_t n, enum gp_scope scope, struct gp_field *field)
{
    if (scope == GP_SCOPE_PROCESS && field->metric == GP_NAME && n >= 4 &&
        memcmp(text, "name", 4) == 0)
        field->metric = GP_PROCESS_NAME;
}

static int append_one(struct gp_field_list *list, const char *text, size_t n, enum gp_scope scope,
                      struct gp_err *err)
{
    char name[128];
    struct gp_field field = {0};
    int r = gp_field_parse(text, n, &field, err);
    bool known = r == 0;
    if (known)
        prefer_process(text, n, scope, &field);
    bool fits = known && row_has(scope, gp_metric_table[field.metric].scope);
    if (!fits && is_short(text, n, scope, name))
        r = gp_field_parse(name, strlen(name), &field, err);
    else if (known && !fits)
        r = refuse(&field, err);
    else if (!known)
        hint_at_group(text, n, scope, err);
    if (r < 0)
        return r;
    return append(list, &field) < 0 ? gp_err_set(err, GP_ENOMEM, "out of memory") : 0;
}

int gp_field_list_parse(const char *text, enum gp_scope scope, struct gp_field_list *ret,
                        struct gp_err *err)
{
    struct gp_field_list list = {0};
    int r = 0;
    for (const char *p = text; r == 0 && *p;) {
        p += strspn(p, " ");
        size_t n = strcspn(p, ",");
        size_t len = n;
        while (len > 0 && p[len - 1] == ' ')
            len--;
        /* A trailing comma is accepted, like in nvidia-smi. */
        if (len == 0 && p[n])
            r = gp_err_set(err, GP_EUSAGE, "empty field name in '%.80s'", text);
        else if (len > 0 && p[len - 1] == '*')
            r = append_group(&list, p, len, scope, err);
        else if (len > 0)
            r = append_one(&list, p, len, scope, err);
        p += n + (p[n] == ',');
    }
    if (r == 0 && list.count == 0)
        r = gp_err_set(err, GP_EUSAGE, "no fields given; gpulse query --list shows all");
    if (r < 0)
        gp_field_list_fini(&list);
    else
        *ret = list;
    return r;
}

int gp_field_list_of(const struct gp_field_list *list, enum gp_scope scope,
                     struct gp_field_list *ret)
{
    struct gp_field_list own = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        if (gp_metric_table[list->fields[i].metric].scope != scope)
            continue;
        if (own.count == 0)
            r = append_identity(&own, scope);
        if (r == 0)
            r = append(&own, &list->fields[i]);
    }
    if (r < 0)
        gp_field_list_fini(&own);
    else
        *ret = own;
    return r;
}

void gp_field_list_fini(struct gp_field_list *list)
{
    free(list->fields);
    *list = (struct gp_field_list){0};
}

const char *gp_field_unit(const struct gp_field *field)
{
    return field->unit ? field->unit->name : gp_unit_name(gp_metric_table[field->metric].unit);
}

/* The number in the field's unit, rounded to the decimals of that unit. Memory sizes without
 * decimals are rounded up, like in nvidia-smi: a process that holds one byte does not hold 0
 * MiB. */
double gp_field_number(const struct gp_field *field, const struct gp_value *v)
{
    double number = gp_metric_number(field->metric, v);
    if (!field->unit)
        return number;
    double scale = 1;
    for (int i = 0; i < field->unit->decimals; i++)
        scale *= 10;
    number *= field->unit->factor * scale;
    double whole = (double)(int64_t)number;
    if (field->unit->of == GP_UNIT_BYTES && field->unit->decimals == 0)
        whole += whole < number;
    else
        whole = (double)(int64_t)(number < 0 ? number - 0.5 : number + 0.5);
    return whole / scale;
}

static void format_human_rate(struct gp_strbuf *sb, double bytes_per_s)
{
    static const char *const names[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
    size_t i = 0;
    for (; bytes_per_s >= 1000 && i + 1 < GP_ARRAY_LEN(names); i++)
        bytes_per_s /= 1000;
    gp_strbuf_addf(sb, "%.*f %s", i > 1 ? 1 : 0, bytes_per_s, names[i]);
}

/* Rounds up to whole units, like gp_field_number(). */
static void format_human_bytes(struct gp_strbuf *sb, double bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    for (; bytes >= 1024 && i + 1 < GP_ARRAY_LEN(names); i++)
        bytes /= 1024;
    double whole = (double)(int64_t)bytes;
    if (i > 2)
        gp_strbuf_addf(sb, "%.2f %s", bytes, names[i]);
    else
        gp_strbuf_addf(sb, "%.0f %s", whole + (whole < bytes), names[i]);
}

static void format_number(struct gp_strbuf *sb, const struct gp_field *field,
                          const struct gp_value *v)
{
    const struct gp_metric_info *info = &gp_metric_table[field->metric];
    if (field->unit)
        gp_strbuf_addf(sb, "%.*f", field->unit->decimals, gp_field_number(field, v));
    else if (info->unit == GP_UNIT_MASK)
        gp_strbuf_addf(sb, "0x%016llX", (unsigned long long)v->i);
    else if (info->type == GP_TYPE_REAL)
        gp_strbuf_addf(sb, "%.2f", v->f);
    else
        gp_strbuf_addf(sb, "%lld", (long long)v->i);
}

void gp_field_format(struct gp_strbuf *sb, const struct gp_field *field, const struct gp_value *v,
                     enum gp_style style)
{
    static const char *const suffixes[] = {
        [GP_UNIT_PERCENT] = " %", [GP_UNIT_CELSIUS] = " °C", [GP_UNIT_WATT] = " W",
        [GP_UNIT_MHZ] = " MHz",   [GP_UNIT_JOULE] = " J",    [GP_UNIT_US] = " us",
        [GP_UNIT_MS] = " ms",     [GP_UNIT_SECOND] = " s",   [GP_UNIT_WATT_PER_S] = " W/s",
        [GP_UNIT_MASK] = "",
    };
    const struct gp_metric_info *info = &gp_metric_table[field->metric];
    /* A stale number must not look current: it is omitted where it cannot be marked. */
    bool stale = v->status == GP_STATUS_STALE;
    if (!gp_value_is_present(v) || (stale && style != GP_STYLE_HUMAN)) {
        gp_strbuf_adds(sb, style == GP_STYLE_CSV ? status_texts[v->status].csv
                                                 : status_texts[v->status].human);
        return;
    }
    if (info->type == GP_TYPE_TEXT) {
        gp_strbuf_adds(sb, v->s);
    } else if (style == GP_STYLE_HUMAN && info->unit == GP_UNIT_BYTES && !field->unit) {
        format_human_bytes(sb, (double)v->i);
    } else if (style == GP_STYLE_HUMAN && info->unit == GP_UNIT_BYTES_PER_S && !field->unit) {
        format_human_rate(sb, v->f);
    } else {
        format_number(sb, field, v);
        if (style == GP_STYLE_HUMAN && field->unit)
            gp_strbuf_addf(sb, " %s", field->unit->name);
        else if (style == GP_STYLE_HUMAN && suffixes[info->unit])
            gp_strbuf_adds(sb, suffixes[info->unit]);
    }
    if (stale)
        gp_strbuf_adds(sb, " (stale)");
}

void gp_field_reason(struct gp_strbuf *sb, const struct gp_value *v, uint64_t now_ns)
{
    bool words = !gp_value_is_present(v) && v->s;
    if (!words || v->status != GP_STATUS_UNSUPPORTED)
        gp_strbuf_adds(sb, gp_status_reason((enum gp_status)v->status));
    if (words)
        gp_strbuf_addf(sb, v->status == GP_STATUS_UNSUPPORTED ? "%s" : ": %s", v->s);
    if (v->status == GP_STATUS_STALE && now_ns > gp_value_time_ns(v))
        gp_strbuf_addf(sb, ": %.1f s old", (double)(now_ns - gp_value_time_ns(v)) / 1e9);
}
