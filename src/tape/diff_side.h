/* One side of a comparison: what a recording or the record of a job says about some time. All texts
 * are safe. */
#ifndef GP_TAPE_DIFF_SIDE_H
#define GP_TAPE_DIFF_SIDE_H

#include "model/metric.h"
#include "tape/line.h"

enum {
    GP_DIFF_GPUS_MOST = 256,    /* more in a file are ignored */
    GP_DIFF_PROGRAMS_MOST = 64, /* likewise */
    GP_DIFF_TEXT_SIZE = 112,
};

enum gp_diff_metric {
#define DIFF(id, column, bits, name, words, unit, when, quantum, share, least) GP_DIFF_##id,
#include "tape/diff.def"
#undef DIFF
    GP_DIFF__COUNT
};

/* The kinds of events that are counted as errors: "xid" and others. X(id, words) */
#define GP_DIFF_ERRORS(X)                                                                          \
    X(XID, "Xid errors")                                                                           \
    X(ECC_CORRECTED, "corrected memory errors")                                                    \
    X(ECC_UNCORRECTED, "uncorrectable memory errors")                                              \
    X(POISON, "poisoned data")                                                                     \
    X(RETIREMENT, "retired memory")                                                                \
    X(UNAVAILABLE, "GPU unavailable")                                                              \
    X(LOST, "GPU lost")                                                                            \
    X(SILENT, "GPU silent")

enum gp_diff_error {
#define X(id, words) GP_DIFF_ERROR_##id,
    GP_DIFF_ERRORS(X)
#undef X
        GP_DIFF_ERROR__COUNT
};

/* What stays the same unless somebody changes it: of the host, then of a GPU. X(metric) */
#define GP_DIFF_HOST_FACTS(X)                                                                      \
    X(DRIVER_VERSION)                                                                              \
    X(KMD_VERSION)                                                                                 \
    X(CUDA_VERSION)                                                                                \
    X(NVML_VERSION)                                                                                \
    X(COUNT)                                                                                       \
    X(HOST_MEMORY_TOTAL)

#define GP_DIFF_GPU_FACTS(X)                                                                       \
    X(NAME)                                                                                        \
    X(VBIOS_VERSION)                                                                               \
    X(GSP_FIRMWARE)                                                                                \
    X(INFOROM_IMAGE)                                                                               \
    X(MEMORY_TOTAL)                                                                                \
    X(POWER_LIMIT)                                                                                 \
    X(POWER_LIMIT_ENFORCED)                                                                        \
    X(CLOCK_MAX_SM)                                                                                \
    X(CLOCK_APP_GRAPHICS)                                                                          \
    X(CLOCK_APP_MEMORY)                                                                            \
    X(PCIE_GEN_MAX)                                                                                \
    X(PCIE_WIDTH)                                                                                  \
    X(ECC_MODE)                                                                                    \
    X(MIG_MODE)                                                                                    \
    X(COMPUTE_MODE)                                                                                \
    X(PERSISTENCE_MODE)                                                                            \
    X(REMAPPED_CORRECTABLE)                                                                        \
    X(REMAPPED_UNCORRECTABLE)                                                                      \
    X(REMAPPED_FAILURE)                                                                            \
    X(RECOVERY_ACTION)

enum gp_diff_fact_id {
#define X(metric) GP_DIFF_FACT_##metric,
    GP_DIFF_HOST_FACTS(X) GP_DIFF_FACT__GPU,
    GP_DIFF_FACT__BEFORE_GPU = GP_DIFF_FACT__GPU - 1,
    GP_DIFF_GPU_FACTS(X)
#undef X
        GP_DIFF_FACT__COUNT
};

struct gp_diff_fact_info {
    enum gp_metric metric;
};
extern const struct gp_diff_fact_info gp_diff_facts[GP_DIFF_FACT__COUNT];

/* The value that was seen last. */
struct gp_diff_fact {
    bool is_known;
    double number;
    char text[GP_DIFF_TEXT_SIZE]; /* of a metric that is a text */
};

struct gp_diff_gpu {
    uint64_t id;    /* in the recording */
    char label[24]; /* "1", or "1:0" of a MIG instance */
    char uuid[GP_DIFF_TEXT_SIZE];
    char name[GP_DIFF_TEXT_SIZE];
    int64_t seen_us; /* how long it was recorded */
    struct gp_line lines[GP_DIFF__COUNT];
    uint64_t errors[GP_DIFF_ERROR__COUNT];
    struct gp_diff_fact facts[GP_DIFF_FACT__COUNT]; /* of a GPU */
};

/* All processes with the same name and user: the mean of them. */
struct gp_diff_program {
    char name[GP_DIFF_TEXT_SIZE];
    char user[GP_DIFF_TEXT_SIZE];
    int64_t seen_us;
    struct gp_line memory, sm;
    double memory_sum, sm_sum; /* of one piece of time */
    unsigned memory_count, sm_count;
    bool is_listed; /* likewise */
};

struct gp_diff_side {
    char source[300];
    char host[GP_DIFF_TEXT_SIZE];
    int64_t from_us, to_us;                         /* wall-clock time; 0: unknown */
    int64_t seen_us;                                /* how much of it was recorded */
    int64_t step_us;                                /* between samples */
    struct gp_diff_fact facts[GP_DIFF_FACT__COUNT]; /* of the host */
    struct gp_diff_gpu *gpus;
    size_t gpu_count;
    struct gp_diff_program *programs;
    size_t program_count;
    struct gp_line pace; /* of a job: steps per second */
};

/* False without memory. */
bool gp_diff_side_init(struct gp_diff_side *side, const char *source,
                       int64_t step_us) GP_MUST_CHECK;
void gp_diff_side_fini(struct gp_diff_side *side);
/* Forgets what was gathered, but not its name. */
void gp_diff_side_reset(struct gp_diff_side *side);

/* The GPU with this number, which is added if it is not there; NULL: there are too many. */
struct gp_diff_gpu *gp_diff_side_gpu(struct gp_diff_side *side, uint64_t id);
struct gp_diff_program *gp_diff_side_program(struct gp_diff_side *side, const char *name,
                                             const char *user);
/* Forgets the GPU in this place. */
void gp_diff_side_drop(struct gp_diff_side *side, size_t place);

/* A text as it was recorded. */
void gp_diff_set_text(struct gp_diff_fact *fact, const char *text);
void gp_diff_set_number(struct gp_diff_fact *fact, double number);

#endif
