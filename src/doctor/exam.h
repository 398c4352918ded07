/* An exam: a machine's files, what its driver says, and the findings of the checks. */
#ifndef GP_DOCTOR_EXAM_H
#define GP_DOCTOR_EXAM_H

#include "base/arena.h"
#include "doctor/check.h"
#include "doctor/files.h"
#include "doctor/machine.h"
#include "doctor/remedy.h"
#include "doctor/stall.h"

struct gp_err;
struct gp_install;
struct gp_log;
struct gp_pyenvs;
struct gp_snapshot;
struct gp_toolkits;

enum { GP_EXAM_CHECKS = 160 };

struct gp_outcome {
    enum gp_verdict verdict;           /* the gravest of its findings */
    bool is_run;                       /* false: not chosen, or it means nothing here */
    const struct gp_check *root_cause; /* itself if it failed, or the one that failed of those it
                                          needs, even where it means nothing; NULL: none */
    double ms;
};

struct gp_exam {
    struct gp_files files;
    struct gp_stall stall; /* of the files */
    uint64_t patience_ns;  /* how long a file system may take for a call */
    struct gp_arena arena;
    struct gp_machine machine;
    const struct gp_snapshot *snapshot; /* what the driver says; NULL: it was not asked, or gave
                                           nothing */
    const char *driver_words;           /* why there is no snapshot; "": it was not asked */
    bool is_simulated; /* the driver is: the processes of this machine are not on its GPUs */
    bool is_stuck;     /* a thread hangs: the process has to end with _exit() */
    const char *const *pythons;         /* interpreters or environments that were named, up to NULL;
                                           NULL: none */
    const struct gp_install *install;   /* NULL: not asked for yet; see gp_install_of() */
    const struct gp_log *log;           /* the same of gp_log_of() */
    const struct gp_pyenvs *pyenvs;     /* NULL: not looked for yet; gp_pyenvs_of() does */
    const struct gp_toolkits *toolkits; /* the same of gp_toolkits_of() */
    struct gp_finding *findings;        /* in the order of the checks */
    struct gp_finding *last;
    size_t place;                               /* of the check that runs */
    struct gp_outcome outcomes[GP_EXAM_CHECKS]; /* by place of the check */
};

/* Opens the root and reads the machine. The snapshot, and what else is above, is set behind it; the
 * patience has a value. An exam must not be moved. */
int gp_exam_open(struct gp_exam *exam, const char *root, struct gp_err *err) GP_MUST_CHECK;
void gp_exam_close(struct gp_exam *exam);

/* The first word of a comma list that is no id and no group of a check, and how long it is; NULL:
 * all are. */
const char *gp_exam_unknown(const char *list, size_t *ret_length);

/* Runs the checks; `only` and `without` are comma lists of ids and groups, or NULL. A file system
 * that does not answer costs its patience and what is on it; the exam then is stuck, and must live
 * as long as the process. */
void gp_exam_run(struct gp_exam *exam, const char *only, const char *without);

/* The finding to begin with: the first failure, else the first warning; NULL: there is none. */
const struct gp_finding *gp_exam_first(const struct gp_exam *exam);

/* ---- for checks ---- */

/* Begins a finding; what follows belongs to it. The summary names the thing and what is wrong with
 * it, without a full stop: "GPU 0000:65:00.0 runs on 4 of its 16 lanes". */
void gp_exam_report(struct gp_exam *exam, enum gp_verdict verdict, const char *format, ...)
    GP_PRINTF(3, 4);

/* What it was seen by: a file, a variable or a call, and what stands there. */
void gp_exam_evidence(struct gp_exam *exam, const char *where, const char *format, ...)
    GP_PRINTF(3, 4);

/* Why it matters or how it comes, in a sentence or two. */
void gp_exam_why(struct gp_exam *exam, const char *format, ...) GP_PRINTF(2, 3);
void gp_exam_link(struct gp_exam *exam, const char *url);

/* What to do. A remedy is one of the table, in the words of the distribution that was found; each
 * {} in it is one of the arguments (NULL: there is none). A command is one that all distributions
 * take. Advice is what is no command. */
void gp_exam_remedy(struct gp_exam *exam, enum gp_remedy remedy, const char *first,
                    const char *second);
void gp_exam_command(struct gp_exam *exam, const char *note, const char *format, ...)
    GP_PRINTF(3, 4);
void gp_exam_advice(struct gp_exam *exam, const char *format, ...) GP_PRINTF(2, 3);

/* Says that something could not be read, with what would help: "need root". For −errno. */
void gp_exam_unreadable(struct gp_exam *exam, const char *path, int error);

/* A word for a command, quoted as a shell wants it where it has more in it than plain names have.
 * Whatever is read from files goes through this. */
const char *gp_exam_quoted(struct gp_exam *exam, const char *word);

/* Text in memory of the exam; never NULL. */
const char *gp_exam_text(struct gp_exam *exam, const char *format, ...) GP_PRINTF(2, 3);

#endif
