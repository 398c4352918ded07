#include "model/metric.h"

#include "base/cli.h"
#include "base/err.h"

#include <string.h>

/* The texts of all metrics, one behind the other. */
static const struct texts {
#define METRIC(id, scope_, type_, unit_, tier_, origin_, name_, aliases_, help_)                   \
    char id##_name[sizeof(name_)], id##_aliases[sizeof(aliases_)], id##_help[sizeof(help_)];
#include "model/metric.def"
#undef METRIC
} texts = {
#define METRIC(id, scope_, type_, unit_, tier_, origin_, name_, aliases_, help_)                   \
    name_, aliases_, help_,
#include "model/metric.def"
#undef METRIC
};

const struct gp_metric_info gp_metric_table[GP_METRIC__COUNT] = {
#define METRIC(id, scope_, type_, unit_, tier_, origin_, name_, aliases_, help_)                   \
    [GP_##id] = {.name = offsetof(struct texts, id##_name),                                        \
                 .aliases = offsetof(struct texts, id##_aliases),                                  \
                 .help = offsetof(struct texts, id##_help),                                        \
                 .scope = GP_SCOPE_##scope_,                                                       \
                 .type = GP_TYPE_##type_,                                                          \
                 .unit = GP_UNIT_##unit_,                                                          \
                 .tier = GP_TIER_##tier_,                                                          \
                 .origin = GP_ORIGIN_##origin_},
#include "model/metric.def"
#undef METRIC
};

const char *gp_metric_name(const struct gp_metric_info *info)
{
    return (const char *)&texts + info->name;
}

const char *gp_metric_aliases(const struct gp_metric_info *info)
{
    return (const char *)&texts + info->aliases;
}

const char *gp_metric_help(const struct gp_metric_info *info)
{
    return (const char *)&texts + info->help;
}

const struct gp_scope_info gp_scope_table[GP_SCOPE__COUNT] = {
#define X(id, first_, noun_, plural_)                                                              \
    [GP_SCOPE_##id] = {.noun = (noun_), .plural = (plural_), .first = GP_##first_},
    GP_SCOPES(X)
#undef X
};

size_t gp_scope_width(enum gp_scope scope)
{
    bool last = scope + 1 == GP_SCOPE__COUNT;
    enum gp_metric end = last ? GP_METRIC__COUNT : gp_scope_table[scope + 1].first;
    return (size_t)(end - gp_scope_table[scope].first);
}

const char *gp_unit_name(enum gp_unit unit)
{
    static const char *const names[] = {
        [GP_UNIT_NONE] = "",           [GP_UNIT_BYTES] = "bytes",
        [GP_UNIT_PERCENT] = "percent", [GP_UNIT_CELSIUS] = "°C",
        [GP_UNIT_WATT] = "W",          [GP_UNIT_MHZ] = "MHz",
        [GP_UNIT_JOULE] = "J",         [GP_UNIT_BYTES_PER_S] = "bytes/s",
        [GP_UNIT_US] = "us",           [GP_UNIT_MS] = "ms",
        [GP_UNIT_SECOND] = "s",        [GP_UNIT_WATT_PER_S] = "W/s",
        [GP_UNIT_MASK] = "bitmask",
    };
    return names[unit];
}

static const char *next_metric_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < GP_METRIC__COUNT ? GP_METRIC_NAME(i) : NULL;
}

/* "mem.used" for "memory.used": each part begins the part of the name. */
static bool is_short_for(const char *word, const char *name)
{
    while (*word) {
        size_t n = strcspn(word, "."), m = strcspn(name, ".");
        if (n == 0 || n > m || memcmp(word, name, n) != 0 || (word[n] != '.') != (name[m] != '.'))
            return false;
        word += n + (word[n] == '.');
        name += m + (name[m] == '.');
    }
    return !*name;
}

static struct gp_cli_hint hint_for(const char *name)
{
    for (int m = 0; strchr(name, '.') && m < GP_METRIC__COUNT; m++)
        if (is_short_for(name, GP_METRIC_NAME(m)))
            return gp_cli_hint(GP_METRIC_NAME(m), next_metric_name, NULL);
    return gp_cli_hint(name, next_metric_name, NULL);
}

int gp_metric_find(const char *name, enum gp_metric *ret, struct gp_err *err)
{
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        if (strcmp(GP_METRIC_NAME(m), name) == 0 ||
            gp_cli_list_has(GP_METRIC_ALIASES(m), name, strlen(name))) {
            *ret = (enum gp_metric)m;
            return 0;
        }
    return gp_err_set(err, GP_EUSAGE, "unknown field '%.80s'%s; gpulse query --list shows all",
                      name, hint_for(name).text);
}

bool gp_metric_set_has_scope(const struct gp_metric_set *set, enum gp_scope scope)
{
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        if (gp_metric_table[m].scope == scope && gp_metric_set_has(set, (enum gp_metric)m))
            return true;
    return false;
}

bool gp_metric_set_has_tier(const struct gp_metric_set *set, enum gp_tier tier)
{
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        if (gp_metric_table[m].tier == tier && gp_metric_set_has(set, (enum gp_metric)m))
            return true;
    return false;
}
