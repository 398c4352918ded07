/* A failure that a program reports in its output: which one, and the numbers in the message. */
#ifndef GP_JOBS_FAILURE_H
#define GP_JOBS_FAILURE_H

#include "jobs/cause.h"

/* X(id, word) */
#define GP_FAILURE_CLASSES(X)                                                                      \
    X(GPU, "gpu-memory")                                                                           \
    X(MASKED, "library")   /* a library failed to initialize, often for lack of memory */          \
    X(HOST, "host-memory") /* RAM, /dev/shm */                                                     \
    X(KERNEL, "kernel")    /* shared memory of a GPU kernel, on the chip */                        \
    X(SOFT, "remark")      /* not a failure: the program continues */

enum gp_failure_class {
#define X(id, word) GP_FAILURE_##id,
    GP_FAILURE_CLASSES(X)
#undef X
        GP_FAILURE_CLASS__COUNT
};

/* X(id, word): in bytes, except the last three. */
#define GP_FAILURE_FIELDS(X)                                                                       \
    X(TRIED, "tried")                                                                              \
    X(TOTAL, "total")                                                                              \
    X(FREE, "free")                                                                                \
    X(ALLOCATED, "allocated") /* by the framework, for live tensors */                             \
    X(CACHED, "cached")       /* by the framework, not used by any tensor */                       \
    X(RESERVED, "reserved")   /* both */                                                           \
    X(ALLOWED, "allowed")                                                                          \
    X(GRAPHS, "graphs")   /* part of ALLOCATED */                                                  \
    X(SELF, "self")       /* total of the process */                                               \
    X(ORDINAL, "ordinal") /* of the GPU, as the program numbers them */                            \
    X(REQUIRED, "required")                                                                        \
    X(MOST, "most")

enum gp_failure_field {
#define X(id, word) GP_FAILURE_##id,
    GP_FAILURE_FIELDS(X)
#undef X
        GP_FAILURE_FIELD__COUNT
};

enum { GP_FAILURE_OTHERS = 32, GP_FAILURE_LINES = 8 };

/* A process with memory on the same GPU. */
struct gp_failure_other {
    int64_t pid;
    uint64_t bytes;
    bool is_of_job; /* part of the same job */
    char who[160];  /* user and command; "" if unknown */
};

struct gp_failure {
    const char *id; /* of the message in failure.def */
    const char *framework;
    const char *needle; /* all that it was recognized by; NULL: by an expression */
    enum gp_failure_class class;
    enum gp_cause cause; /* GP_CAUSE_BY_NUMBERS: not judged yet */
    uint32_t known;      /* one bit per field */
    uint64_t values[GP_FAILURE_FIELD__COUNT];
    struct gp_failure_other others[GP_FAILURE_OTHERS];
    size_t other_count;
    int64_t self_pid;  /* 0: unknown */
    bool is_misplaced; /* it happened on this GPU, which was not assigned to the job */
    unsigned place;
};

/* Parses a line, without its end; false: no known failure. Fast for lines without one. Only one
 * thread may call it at a time. */
bool gp_failure_find(const char *line, struct gp_failure *ret);

/* Adds the numbers from the message's line and the lines after it, up to GP_FAILURE_LINES. */
void gp_failure_read_details(struct gp_failure *f, const char *text);

/* The first place in a text whose line gp_failure_find() may recognize; NULL: none. Fast enough for
 * megabytes. Several threads may call it, after gp_failure_prepare(). */
const char *gp_failure_suspect(const char *text, size_t size);

/* Initializes shared data, once, before threads start. */
void gp_failure_prepare(void);

static inline bool gp_failure_knows(const struct gp_failure *f, enum gp_failure_field field)
{
    return (f->known >> field) & 1;
}

static inline void gp_failure_set(struct gp_failure *f, enum gp_failure_field field, uint64_t value)
{
    f->values[field] = value;
    f->known |= UINT32_C(1) << field;
}

/* "gpu-memory" */
const char *gp_failure_class_word(enum gp_failure_class class);

/* Removes escape sequences, such as colors, from a line. */
void gp_failure_clean_line(char *line);

#endif
