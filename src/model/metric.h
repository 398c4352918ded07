/* The metric catalog (metric.def) as data. */
#ifndef GP_MODEL_METRIC_H
#define GP_MODEL_METRIC_H

#include "base/util.h"
#include "model/value.h"

struct gp_err;

/* The kinds of rows. The lists of a GPU, which have one row per entry, follow the processes.
 *
 * X(id, first metric, noun, plural)
 *     noun: one word, also the XML element
 *     plural: argument of --rows and key in JSON; for a list also the prefix of its fields */
#define GP_SCOPES(X)                                                                               \
    X(HOST, TIMESTAMP, "host", "hosts")                                                            \
    X(DEVICE, INDEX, "device", "gpus")                                                             \
    X(PROCESS, PID, "process", "processes")                                                        \
    X(CLOCK, CLOCK_PAIR_MEMORY, "clock", "supported_clocks")                                       \
    X(PAGE, PAGE_ADDRESS, "page", "retired_pages")                                                 \
    X(APP, APP_PID, "app", "accounted_apps")                                                       \
    X(FAN, FAN_NUMBER, "fan", "fans")                                                              \
    X(ENCODING, ENCODING_ID, "session", "encoder_sessions")                                        \
    X(CAPTURE, CAPTURE_ID, "capture", "fbc_sessions")                                              \
    X(LINK, LINK_NUMBER, "link", "links")                                                          \
    X(PEER, PEER_NUMBER, "peer", "peers")                                                          \
    X(PROFILE, PROFILE_ID, "profile", "mig_profiles")                                              \
    X(SERIES, SAMPLES_KIND, "series", "samples")                                                   \
    X(GI, GI_ID, "instance", "gpu_instances")                                                      \
    X(CI, CI_ID, "part", "compute_instances")                                                      \
    X(CIP, CIP_ID, "form", "compute_profiles")

enum gp_scope {
#define X(id, first, noun, plural) GP_SCOPE_##id,
    GP_SCOPES(X)
#undef X
        GP_SCOPE__COUNT,
    GP_SCOPE_ANY = GP_SCOPE__COUNT, /* not a kind of row: the fields of all scopes */
    GP_SCOPE_LIST__FIRST = GP_SCOPE_PROCESS + 1,
    GP_LIST__COUNT = GP_SCOPE__COUNT - GP_SCOPE_LIST__FIRST,
};

enum gp_unit {
    GP_UNIT_NONE,
    GP_UNIT_BYTES,
    GP_UNIT_PERCENT,
    GP_UNIT_CELSIUS,
    GP_UNIT_WATT,
    GP_UNIT_MHZ,
    GP_UNIT_JOULE,
    GP_UNIT_BYTES_PER_S,
    GP_UNIT_US,
    GP_UNIT_MS,
    GP_UNIT_SECOND,
    GP_UNIT_WATT_PER_S,
    GP_UNIT_MASK, /* 64 bits, shown in hexadecimal */
};

enum gp_tier { GP_TIER_STATIC, GP_TIER_FAST, GP_TIER_SLOW, GP_TIER_RATE };

/* Whether the name is nvidia-smi's or our own. */
enum gp_origin { GP_ORIGIN_SMI, GP_ORIGIN_OWN };

enum gp_metric {
#define METRIC(id, scope, type, unit, tier, origin, name, aliases, help) GP_##id,
#include "model/metric.def"
#undef METRIC
    GP_METRIC__COUNT,
/* The ids of each scope are contiguous. */
#define X(id, first, noun, plural) GP_##id##__FIRST = GP_##first,
    GP_SCOPES(X)
#undef X
        GP_HOST__COUNT = GP_DEVICE__FIRST - GP_HOST__FIRST,
    GP_DEVICE__COUNT = GP_PROCESS__FIRST - GP_DEVICE__FIRST,
    GP_PROCESS__COUNT = GP_CLOCK__FIRST - GP_PROCESS__FIRST,
};

/* Without pointers, which would be relocated whenever the program starts. */
struct gp_metric_info {
    uint32_t name, aliases, help; /* places of the texts, see gp_metric_name() */
    uint8_t scope;                /* enum gp_scope */
    uint8_t type;                 /* enum gp_type, like in the catalog */
    uint8_t unit;
    uint8_t tier;
    uint8_t origin;
};

extern const struct gp_metric_info gp_metric_table[GP_METRIC__COUNT];

const char *gp_metric_name(const struct gp_metric_info *info);
const char *gp_metric_aliases(const struct gp_metric_info *info); /* separated by spaces, or "" */
const char *gp_metric_help(const struct gp_metric_info *info);

/* The same, of a number of any type. */
#define GP_METRIC_NAME(m) gp_metric_name(&gp_metric_table[m])
#define GP_METRIC_ALIASES(m) gp_metric_aliases(&gp_metric_table[m])
#define GP_METRIC_HELP(m) gp_metric_help(&gp_metric_table[m])

struct gp_scope_info {
    const char *noun;
    const char *plural;
    enum gp_metric first;
};

extern const struct gp_scope_info gp_scope_table[GP_SCOPE__COUNT];

/* The number of metrics in a scope, which is the width of its rows. */
size_t gp_scope_width(enum gp_scope scope);

/* Lists are numbered from 0; a set of lists is a bit mask. */
static inline size_t gp_list_index(enum gp_scope scope)
{
    return (size_t)(scope - GP_SCOPE_LIST__FIRST);
}

static inline bool gp_scope_is_list(enum gp_scope scope)
{
    return scope >= GP_SCOPE_LIST__FIRST && scope < GP_SCOPE__COUNT;
}

/* The catalog's name of the unit, for example "bytes" or "percent"; "" for none. */
const char *gp_unit_name(enum gp_unit unit);

/* Finds a metric by name or alias. GP_EUSAGE suggests the nearest name. */
int gp_metric_find(const char *name, enum gp_metric *ret, struct gp_err *err) GP_MUST_CHECK;

/* A set of metrics. */
struct gp_metric_set {
    uint64_t bits[(GP_METRIC__COUNT + 63) / 64];
};

static inline void gp_metric_set_add(struct gp_metric_set *set, enum gp_metric m)
{
    set->bits[m / 64] |= UINT64_C(1) << (m % 64);
}

static inline void gp_metric_set_join(struct gp_metric_set *set, const struct gp_metric_set *other)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(set->bits); i++)
        set->bits[i] |= other->bits[i];
}

static inline void gp_metric_set_drop(struct gp_metric_set *set, const struct gp_metric_set *other)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(set->bits); i++)
        set->bits[i] &= ~other->bits[i];
}

static inline bool gp_metric_set_has(const struct gp_metric_set *set, enum gp_metric m)
{
    return set->bits[m / 64] >> (m % 64) & 1;
}

/* The next metric of the set, starting at m; GP_METRIC__COUNT if there is none. */
static inline int gp_metric_set_next(const struct gp_metric_set *set, int m)
{
    while (m < GP_METRIC__COUNT) {
        uint64_t rest = set->bits[m / 64] >> (m % 64);
        if (rest)
            return m + __builtin_ctzll(rest);
        m = (m / 64 + 1) * 64;
    }
    return GP_METRIC__COUNT;
}

/* Whether the set has a metric of this scope. */
bool gp_metric_set_has_scope(const struct gp_metric_set *set, enum gp_scope scope);

/* Whether the set has a metric of this tier. */
bool gp_metric_set_has_tier(const struct gp_metric_set *set, enum gp_tier tier);

/* The number of a present value; the metric must not be a text. */
static inline double gp_metric_number(enum gp_metric m, const struct gp_value *v)
{
    return gp_metric_table[m].type == GP_TYPE_REAL ? v->f : (double)v->i;
}

#endif
