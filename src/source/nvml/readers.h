/* The table of readers: which driver call produces which metrics. Shared by the files that make it.
 *
 * A reader is one driver call (or one entry of the batched field call) and the metrics that it
 * fills, which stand in a row in metric.def. */
#ifndef GP_SOURCE_NVML_READERS_H
#define GP_SOURCE_NVML_READERS_H

#include "source/nvml/internal.h"

struct code_name {
    unsigned code;
    const char *name;
};

struct reader;

typedef nvmlReturn_t (*custom_fn)(struct nvml_device *device, const struct reader *reader,
                                  struct gp_value *out);

/* Which handles a call answers for. */
enum where { ON_GPU = 1, ON_MIG = 2, ON_BOTH = ON_GPU | ON_MIG };

enum reader_kind {
    KIND_U32,        /* f(device, &u32) */
    KIND_U32_ARG,    /* f(device, arg, &u32) */
    KIND_U32_PERIOD, /* f(device, &u32, &period) */
    KIND_TEXT,       /* f(device, text, length) */
    KIND_FIELD,      /* one entry of nvmlDeviceGetFieldValues; arg is the field id */
    KIND_CUSTOM,
};

struct reader {
    const char *call; /* of the first four kinds: the function, and its offset in nvml_api */
    size_t fn;
    enum reader_kind kind;
    enum where where;
    unsigned arg;
    const struct code_name *names; /* turns a u32 into text */
    custom_fn custom;
    enum gp_metric first;
    unsigned outs; /* metrics filled: first, first + 1, …; all of one tier */
};

extern const struct reader nvml_readers[];
extern const size_t nvml_reader_count;

/* Keeps outside text for the life of the device, made safe. */
void nvml_keep_text(struct nvml_device *device, struct gp_value *v, const char *text);

/* "Enabled" or "Disabled". */
const char *nvml_enabled_text(unsigned state);

/* ---- the forms of a row ---- */

#define API(name) offsetof(struct nvml_api, name)
#define TEXT(name_, metric, on)                                                                    \
    {                                                                                              \
        .call = #name_, .kind = KIND_TEXT, .where = on, .fn = API(name_), .first = metric,         \
        .outs = 1                                                                                  \
    }
#define U32(name_, metric, on)                                                                     \
    {                                                                                              \
        .call = #name_, .kind = KIND_U32, .where = on, .fn = API(name_), .first = metric,          \
        .outs = 1                                                                                  \
    }
#define NAMED(name_, table, metric, on)                                                            \
    {                                                                                              \
        .call = #name_, .kind = KIND_U32, .where = on, .fn = API(name_), .names = table,           \
        .first = metric, .outs = 1                                                                 \
    }
#define U32_ARG(name_, arg_, metric)                                                               \
    {                                                                                              \
        .call = #name_, .kind = KIND_U32_ARG, .where = ON_GPU, .fn = API(name_), .arg = arg_,      \
        .first = metric, .outs = 1                                                                 \
    }
#define PERIOD(name_, metric)                                                                      \
    {                                                                                              \
        .call = #name_, .kind = KIND_U32_PERIOD, .where = ON_GPU, .fn = API(name_),                \
        .first = metric, .outs = 1                                                                 \
    }
#define FIELD(id, table, metric)                                                                   \
    {                                                                                              \
        .kind = KIND_FIELD, .where = ON_GPU, .arg = id, .names = table, .first = metric, .outs = 1 \
    }
#define CUSTOM(function, metric, last, on)                                                         \
    {                                                                                              \
        .kind = KIND_CUSTOM, .where = on, .custom = function, .first = metric,                     \
        .outs = last - metric + 1                                                                  \
    }

#endif
