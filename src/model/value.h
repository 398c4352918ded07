/* A value, or the reason why there is none. There are no magic numbers like 0, −1 or NaN. */
#ifndef GP_MODEL_VALUE_H
#define GP_MODEL_VALUE_H

#include "base/util.h"

/*     id             text for people      JSON reason            CSV cell */
#define GP_STATUS_LIST(X)                                                                          \
    X(NONE, "", "not queried", "")                                                                 \
    X(OK, "", "", "")                                                                              \
    X(STALE, "no answer", "stale", "[Timeout]")                                                    \
    X(UNSUPPORTED, "N/A", "not supported", "[N/A]")                                                \
    X(NO_PERMISSION, "denied", "no permission", "[Insufficient Permissions]")                      \
    X(LOST, "lost", "GPU is lost", "[GPU is lost]")                                                \
    X(TIMEOUT, "no answer", "no answer in time", "[Timeout]")                                      \
    X(ASLEEP, "asleep", "GPU is asleep", "[Asleep]")                                               \
    X(RELEASED, "released", "gpulse closed the driver", "[Released]")                              \
    X(ERROR, "error", "driver error", "[Unknown Error]")

enum gp_status {
#define X(id, human, json, csv) GP_STATUS_##id,
    GP_STATUS_LIST(X)
#undef X
};

enum gp_type {
    GP_TYPE_INT,
    GP_TYPE_REAL,
    GP_TYPE_TEXT,
};

struct gp_value {
    union {
        int64_t i;
        double f;
        const char *s; /* safe UTF-8, owned by the reading or snapshot. For an absent value: details
                          of the reason, or NULL; constant in readings */
    };
    uint64_t time_us : 56; /* monotonic time of the reading */
    enum gp_status status : 8;
};
_Static_assert(sizeof(struct gp_value) == 16, "readings and snapshots are arrays of these");

static inline uint64_t gp_value_time_ns(const struct gp_value *v)
{
    return v->time_us * GP_NS_PER_US;
}

static inline void gp_value_set_time(struct gp_value *v, uint64_t time_ns)
{
    v->time_us = (time_ns / GP_NS_PER_US) & ((UINT64_C(1) << 56) - 1);
}

static inline void gp_value_set_int(struct gp_value *v, int64_t i, uint64_t time_ns)
{
    *v = (struct gp_value){.i = i, .status = GP_STATUS_OK};
    gp_value_set_time(v, time_ns);
}

static inline void gp_value_set_real(struct gp_value *v, double f, uint64_t time_ns)
{
    *v = (struct gp_value){.f = f, .status = GP_STATUS_OK};
    gp_value_set_time(v, time_ns);
}

/* NULL means that the text is unknown. */
static inline void gp_value_set_text(struct gp_value *v, const char *s, uint64_t time_ns)
{
    *v = (struct gp_value){.s = s, .status = s ? GP_STATUS_OK : GP_STATUS_UNSUPPORTED};
    gp_value_set_time(v, time_ns);
}

/* words: details of the reason, or NULL; must live as long as the value. */
static inline void gp_value_set_absent(struct gp_value *v, enum gp_status status, const char *words,
                                       uint64_t time_ns)
{
    *v = (struct gp_value){.s = words, .status = status};
    gp_value_set_time(v, time_ns);
}

/* Whether there is a payload: fresh or stale. */
static inline bool gp_value_is_present(const struct gp_value *v)
{
    return v->status == GP_STATUS_OK || v->status == GP_STATUS_STALE;
}

#endif
