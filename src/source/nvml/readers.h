/* The table of readers: which driver call provides which metrics. Private to the files that build
 * it.
 *
 * A reader is one driver call (or one entry of the batched field call) and the metrics that it
 * fills, which are consecutive in metric.def. */
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

/* The handles that a call supports. */
enum where { ON_GPU = 1, ON_MIG = 2, ON_BOTH = ON_GPU | ON_MIG };

enum reader_kind {
    KIND_U32,        /* f(device, &u32) */
    KIND_U32_ARG,    /* f(device, arg, &u32) */
    KIND_U32_PERIOD, /* f(device, &u32, &period) */
    KIND_U32_PAIR,   /* f(device, &u32, &u32) */
    KIND_U32_TRIPLE, /* f(device, &u32, &u32, &u32) */
    KIND_WORDS,      /* f(device, &struct of u32); arg is its version word, 0: none */
    KIND_TEXT,       /* f(device, text, length) */
    KIND_TEXT_ARG,   /* f(device, arg, text, length) */
    KIND_FIELD,      /* one entry of nvmlDeviceGetFieldValues; arg is the field id */
    KIND_CUSTOM,
};

struct reader {
    const struct code_name *names; /* maps numbers to texts, for text metrics */
    custom_fn custom;
    unsigned arg;
    unsigned scope;             /* of a field */
    unsigned divisor;           /* the driver's counts per unit; 0: see unit_divisor() */
    enum nvml_function fn : 16; /* NVML_FN__NONE: several functions */
    enum gp_metric first : 16;
    enum reader_kind kind : 8;
    enum where where : 8;
    bool bits;    /* the names belong to bits */
    uint8_t outs; /* number of metrics filled: first, first + 1, …; all of one tier */
};
_Static_assert(sizeof(struct reader) <= 40, "the table is walked for each GPU in each sample");

extern const struct reader nvml_readers[];
extern const size_t nvml_reader_count;

/* Readers that do more than store numbers. */
#define NVML_CUSTOM_READERS(X)                                                                     \
    /* identity.c */                                                                               \
    X(nvml_read_pci)                                                                               \
    X(nvml_read_bridge)                                                                            \
    X(nvml_read_slot_generation)                                                                   \
    X(nvml_read_board_id)                                                                          \
    X(nvml_read_pdi)                                                                               \
    X(nvml_read_hostname)                                                                          \
    X(nvml_read_inforom_check)                                                                     \
    X(nvml_read_bbx_flush)                                                                         \
    X(nvml_read_gsp_version)                                                                       \
    X(nvml_read_platform)                                                                          \
    /* health.c */                                                                                 \
    X(nvml_read_protected_memory)                                                                  \
    X(nvml_read_ecc_place)                                                                         \
    X(nvml_read_sram_status)                                                                       \
    X(nvml_read_remapped_rows)                                                                     \
    X(nvml_read_power_profiles)                                                                    \
    X(nvml_read_dram_encryption)                                                                   \
    X(nvml_read_vgpu_driver)                                                                       \
    X(nvml_read_c2c_links)                                                                         \
    X(nvml_read_fabric)
#define X(name)                                                                                    \
    nvmlReturn_t name(struct nvml_device *device, const struct reader *reader,                     \
                      struct gp_value *out);
NVML_CUSTOM_READERS(X)
#undef X

/* The ECC counter for nvml_read_ecc_place: the argument of its row. */
#define ECC_PLACE(type, counter, location)                                                         \
    ((unsigned)(type) << 8 | (unsigned)(counter) << 4 | (unsigned)(location))

/* Copies an external text for the lifetime of the device, and sanitizes it. */
void nvml_keep_text(struct nvml_device *device, struct gp_value *v, const char *text);

/* The name for a number, or absent if it has none. */
void nvml_name_code(const struct code_name *names, unsigned code, struct gp_value *v);

/* "Enabled" or "Disabled". */
const char *nvml_enabled_text(unsigned state);

/* In links.c and topology.c. */
nvmlReturn_t nvml_read_active_links(struct nvml_device *device, const struct reader *reader,
                                    struct gp_value *out);
nvmlReturn_t nvml_read_cpu_affinity(struct nvml_device *device, const struct reader *reader,
                                    struct gp_value *out);
nvmlReturn_t nvml_read_memory_affinity(struct nvml_device *device, const struct reader *reader,
                                       struct gp_value *out);

/* ---- types of rows ---- */

#define TEXT(name_, metric, on)                                                                    \
    {                                                                                              \
        .kind = KIND_TEXT, .where = on, .fn = NVML_FN_##name_, .first = metric, .outs = 1          \
    }
#define U32(name_, metric, on)                                                                     \
    {                                                                                              \
        .kind = KIND_U32, .where = on, .fn = NVML_FN_##name_, .first = metric, .outs = 1           \
    }
#define NAMED(name_, table, metric, on)                                                            \
    {                                                                                              \
        .kind = KIND_U32, .where = on, .fn = NVML_FN_##name_, .names = table, .first = metric,     \
        .outs = 1                                                                                  \
    }
#define NAMED_ARG(name_, arg_, table, metric)                                                      \
    {                                                                                              \
        .kind = KIND_U32_ARG, .where = ON_GPU, .fn = NVML_FN_##name_, .arg = arg_, .names = table, \
        .first = metric, .outs = 1                                                                 \
    }
#define PAIR(name_, table, metric)                                                                 \
    {                                                                                              \
        .kind = KIND_U32_PAIR, .where = ON_GPU, .fn = NVML_FN_##name_, .names = table,             \
        .first = metric, .outs = 2                                                                 \
    }
#define TRIPLE(name_, metric)                                                                      \
    {                                                                                              \
        .kind = KIND_U32_TRIPLE, .where = ON_GPU, .fn = NVML_FN_##name_, .first = metric,          \
        .outs = 3                                                                                  \
    }
#define WORDS(name_, version, table, metric, last)                                                 \
    {                                                                                              \
        .kind = KIND_WORDS, .where = ON_GPU, .fn = NVML_FN_##name_, .arg = version,                \
        .names = table, .first = metric, .outs = last - metric + 1                                 \
    }
#define TEXT_ARG(name_, arg_, metric)                                                              \
    {                                                                                              \
        .kind = KIND_TEXT_ARG, .where = ON_GPU, .fn = NVML_FN_##name_, .arg = arg_,                \
        .first = metric, .outs = 1                                                                 \
    }
#define U32_ARG(name_, arg_, metric)                                                               \
    {                                                                                              \
        .kind = KIND_U32_ARG, .where = ON_GPU, .fn = NVML_FN_##name_, .arg = arg_,                 \
        .first = metric, .outs = 1                                                                 \
    }
#define PERIOD(name_, metric)                                                                      \
    {                                                                                              \
        .kind = KIND_U32_PERIOD, .where = ON_GPU, .fn = NVML_FN_##name_, .first = metric,          \
        .outs = 1                                                                                  \
    }
#define FIELD(id, table, metric)                                                                   \
    {                                                                                              \
        .kind = KIND_FIELD, .where = ON_GPU, .arg = id, .names = table, .first = metric, .outs = 1 \
    }
#define FIELD_SCOPE(id, scope_, metric)                                                            \
    {                                                                                              \
        .kind = KIND_FIELD, .where = ON_GPU, .arg = id, .scope = scope_, .first = metric,          \
        .outs = 1                                                                                  \
    }
#define FIELD_NS(id, metric)                                                                       \
    {                                                                                              \
        .kind = KIND_FIELD, .where = ON_GPU, .arg = id, .divisor = 1000, .first = metric,          \
        .outs = 1                                                                                  \
    }
#define FIELD_BITS(id, table, metric)                                                              \
    {                                                                                              \
        .kind = KIND_FIELD, .where = ON_GPU, .arg = id, .names = table, .bits = true,              \
        .first = metric, .outs = 1                                                                 \
    }
#define CUSTOM(function, metric, last, on)                                                         \
    {                                                                                              \
        .kind = KIND_CUSTOM, .where = on, .custom = function, .first = metric,                     \
        .outs = last - metric + 1                                                                  \
    }

#endif
