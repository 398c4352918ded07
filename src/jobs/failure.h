/* A failure that a program tells of in what it prints: which one, and the numbers that stand there.
 */
#ifndef GP_JOBS_FAILURE_H
#define GP_JOBS_FAILURE_H

#include "jobs/cause.h"

/* X(id, word) */
#define GP_FAILURE_CLASSES(X)                                                                      \
    X(GPU, "gpu-memory")                                                                           \
    X(MASKED, "library")   /* a library that could not be set up: often for want of memory */      \
    X(HOST, "host-memory") /* main memory, /dev/shm */                                             \
    X(KERNEL, "kernel")    /* the small memory on the chip that a GPU kernel has */                \
    X(DEVICE, "device")                                                                            \
    X(CONFIG, "configuration")                                                                     \
    X(SOFT, "remark") /* no failure: it goes on */

enum gp_failure_class {
#define X(id, word) GP_FAILURE_##id,
    GP_FAILURE_CLASSES(X)
#undef X
        GP_FAILURE_CLASS__COUNT
};

/* X(id, word): bytes, but for the last ones. */
#define GP_FAILURE_FIELDS(X)                                                                       \
    X(TRIED, "tried")                                                                              \
    X(TOTAL, "total")                                                                              \
    X(FREE, "free")                                                                                \
    X(ALLOCATED, "allocated") /* by the framework, for tensors that live */                        \
    X(CACHED, "cached")       /* by the framework, in pieces that no tensor uses */                \
    X(RESERVED, "reserved")   /* both */                                                           \
    X(ALLOWED, "allowed")                                                                          \
    X(GRAPHS, "graphs")   /* of what is allocated */                                               \
    X(SELF, "self")       /* what the process has in all */                                        \
    X(ORDINAL, "ordinal") /* of the GPU as the program counts them */                              \
    X(REQUIRED, "required")                                                                        \
    X(MOST, "most")                                                                                \
    X(CODE, "code")

enum gp_failure_field {
#define X(id, word) GP_FAILURE_##id,
    GP_FAILURE_FIELDS(X)
#undef X
        GP_FAILURE_FIELD__COUNT
};

enum { GP_FAILURE_OTHERS = 32, GP_FAILURE_LINES = 8 };

/* A process that has memory of the same GPU. */
struct gp_failure_other {
    int64_t pid;
    uint64_t bytes;
    bool is_of_job; /* of the same job */
    char who[160];  /* user and command; "" if not known */
};

struct gp_failure {
    const char *id; /* of the message in failure.def */
    const char *framework;
    enum gp_failure_class class;
    enum gp_cause cause; /* GP_CAUSE_BY_NUMBERS: to be judged */
    uint32_t known;      /* a bit for each field */
    uint64_t values[GP_FAILURE_FIELD__COUNT];
    struct gp_failure_other others[GP_FAILURE_OTHERS];
    size_t other_count;
    int64_t self_pid;  /* 0: not known */
    bool is_misplaced; /* it was on a GPU that the job was not given: this one */
    unsigned place;
};

/* What stands in a line, without its end; false: nothing that is known. Quick for lines that say
 * nothing of the kind. Callable by one thread at a time. */
bool gp_failure_find(const char *line, struct gp_failure *ret);

/* Adds the numbers that stand in the message's line and in those behind it, up to GP_FAILURE_LINES.
 */
void gp_failure_read_details(struct gp_failure *f, const char *text);

/* A place in the first line of the text that gp_failure_find() may know; NULL: there is none. Meant
 * for megabytes. Callable by several threads, after gp_failure_prepare(). */
const char *gp_failure_suspect(const char *text, size_t size);

/* Makes what the others share, once, before there are threads. */
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

/* Takes the escape sequences out of a line: colours. */
void gp_failure_clean_line(char *line);

#endif
