/* Checks: what the doctor looks at, and what a check says of it.
 *
 * A check is a row: what it is called, what it needs, and a function that looks and reports. All
 * that it reads is below the exam's root, and it prints and executes nothing. A check reports one
 * finding for each thing that is wrong, or one that says that all is well; what cannot be read is
 * skipped with the reason, never well. */
#ifndef GP_DOCTOR_CHECK_H
#define GP_DOCTOR_CHECK_H

#include "base/util.h"

struct gp_exam;

/* X(id, word), the graver ones behind the others. */
#define GP_VERDICTS(X)                                                                             \
    X(OK, "ok")                                                                                    \
    X(INFO, "info")                                                                                \
    X(SKIP, "skip")                                                                                \
    X(WARN, "warn")                                                                                \
    X(FAIL, "fail")

enum gp_verdict {
#define X(id, word) GP_VERDICT_##id,
    GP_VERDICTS(X)
#undef X
};

const char *gp_verdict_word(enum gp_verdict verdict);

struct gp_evidence {
    const char *where; /* a file, "file:line", the name of a call or variable; "" */
    const char *text;
    struct gp_evidence *next;
};

struct gp_fix {
    const char *command; /* to be typed as it stands; NULL: only the note */
    const char *note;    /* what it does or when; "" */
    struct gp_fix *next;
};

/* In memory of the exam. The texts may quote files: a view makes them safe. */
struct gp_finding {
    const struct gp_check *check;
    enum gp_verdict verdict;
    const char *summary; /* one sentence, without a full stop */
    const char *why;     /* why it matters, or how it comes; "" */
    const char *link;    /* "" */
    struct gp_evidence *evidence;
    struct gp_fix *fixes;
    const struct gp_check *because; /* the check whose failure had this one skipped */
    struct gp_finding *next;
};

enum { GP_CHECK_NEEDS = 3 };

struct gp_check {
    const char *id;    /* "driver.mismatch": the word before the dot is its group */
    const char *title; /* what is so when it is well: "module and libraries are of one version" */
    const char
        *needs[GP_CHECK_NEEDS]; /* ids of checks above; when one fails, this one is skipped */
    bool (*applies)(struct gp_exam *exam); /* NULL: always; else where it means nothing it is left
                                              out */
    void (*run)(struct gp_exam *exam);
};

/* The groups, each an array that ends with a row without an id. */
extern const struct gp_check gp_checks_hardware[];
extern const struct gp_check gp_checks_driver[];
extern const struct gp_check gp_checks_log[];
extern const struct gp_check gp_checks_health[];
extern const struct gp_check gp_checks_cuda[];
extern const struct gp_check gp_checks_python[];
extern const struct gp_check gp_checks_container[];
extern const struct gp_check gp_checks_system[];
extern const struct gp_check gp_checks_amd[];
extern const struct gp_check gp_checks_intel[];
extern const struct gp_check gp_checks_platform[];

/* The check at this place in the order of dependencies, NULL behind the last. */
const struct gp_check *gp_check_at(size_t place);

#endif
