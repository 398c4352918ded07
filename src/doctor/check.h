/* Checks: what the doctor examines, and what a check reports.
 *
 * A check is a row: its id, the checks it depends on, and a function that examines and reports. It
 * reads only files below the exam's root, prints nothing and executes nothing. A check reports one
 * finding for each problem, or one that everything passed. What cannot be read is skipped with the
 * reason, never passed. */
#ifndef GP_DOCTOR_CHECK_H
#define GP_DOCTOR_CHECK_H

#include "base/util.h"

struct gp_exam;

/* X(id, word), in order of increasing severity. */
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
    const char *where; /* a file, "file:line", or the name of a call or variable; "" */
    const char *text;
    struct gp_evidence *next;
};

struct gp_fix {
    const char *command; /* to be typed verbatim; NULL: only the note */
    const char *note;    /* what the command does, or when to use it; "" */
    struct gp_fix *next;
};

/* Allocated from the exam's arena. The texts may quote files; the views sanitize them. */
struct gp_finding {
    const struct gp_check *check;
    enum gp_verdict verdict;
    const char *summary; /* one sentence, without a full stop */
    const char *why;     /* why it matters, or the cause; "" */
    const char *link;    /* "" */
    struct gp_evidence *evidence;
    struct gp_fix *fixes;
    const struct gp_check *because; /* the failed check that caused this one to be skipped */
    bool is_empty;                  /* it passed because there is nothing that could fail */
    bool stands_alone;              /* it holds whether or not what its check needs has failed */
    bool can_wait;                  /* others that are as severe are to be fixed first */
    struct gp_finding *next;
};

enum { GP_CHECK_NEEDS = 3 };

struct gp_check {
    const char *id;    /* "driver.mismatch": the word before the dot is its group */
    const char *title; /* what is true when it passes: "the module and the libraries have the same
                          version" */
    const char
        *needs[GP_CHECK_NEEDS]; /* ids of earlier checks; if one fails, this one is skipped */
    bool (*applies)(struct gp_exam *exam); /* NULL: always; if false, the check is left out */
    void (*run)(struct gp_exam *exam);
    bool is_run_anyway; /* also if a needed check failed: for the findings that stand alone */
};

/* All checks that there are (checks/all.h). */
struct gp_check_list {
    const struct gp_check *const *groups; /* each ends with a row without an id; up to NULL */
    /* Completes a check's findings, from this one on; NULL: nothing to do. */
    void (*finish)(struct gp_exam *exam, struct gp_finding *first);
};

/* The check at this index, in order of dependencies; NULL past the end. */
const struct gp_check *gp_check_at(const struct gp_check_list *list, size_t place);

#endif
