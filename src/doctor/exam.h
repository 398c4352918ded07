/* An exam: a machine's files, the driver's answers, and the findings of the checks. */
#ifndef GP_DOCTOR_EXAM_H
#define GP_DOCTOR_EXAM_H

#include "base/arena.h"
#include "doctor/check.h"
#include "doctor/files.h"
#include "doctor/machine.h"
#include "doctor/remedy.h"
#include "doctor/stall.h"

struct gp_apt_pins;
struct gp_aside;
struct gp_cgroups;
struct gp_err;
struct gp_homes;
struct gp_install;
struct gp_log;
struct gp_orphans;
struct gp_pod_log;
struct gp_pyenvs;
struct gp_snapshot;
struct gp_toolkits;

enum { GP_EXAM_CHECKS = 160 };

struct gp_check_outcome {
    enum gp_verdict verdict;           /* the most severe of its findings */
    bool is_run;                       /* false: not selected, or not applicable here */
    const struct gp_check *root_cause; /* itself if it failed, or the failed check it depends on,
                                          even if it is not applicable; NULL: none */
    double ms;
};

struct gp_exam {
    struct gp_files files;
    struct gp_stall stall; /* for the files */
    uint64_t patience_ns;  /* how long a file system may take for a call */
    struct gp_arena arena;
    struct gp_machine machine;
    const struct gp_check_list *checks;
    const struct gp_snapshot
        *snapshot;            /* the driver's answers; NULL: not queried, or it returned nothing */
    const char *driver_words; /* why there is no snapshot; "": the driver was not queried */
    bool is_simulated;        /* simulated driver: this machine's processes are not on its GPUs */
    bool is_stuck;            /* a thread hangs: the process must end with _exit() */
    const char *wanted; /* comma list: checks that run even if one that they need failed */
    const char *const *pythons; /* the interpreters or environments given, up to NULL; NULL: none */
    const struct gp_install *install;   /* NULL: not read yet; see gp_install_of() */
    const struct gp_homes *homes;       /* likewise, see gp_homes_of() */
    const struct gp_homes *all_homes;   /* likewise, see gp_homes_of_all() */
    const struct gp_cgroups *cgroups;   /* likewise, see gp_cgroups_of() */
    const struct gp_log *log;           /* likewise, see gp_log_of() */
    const struct gp_log *earlier;       /* likewise, see gp_log_earlier() */
    long long booted;                   /* 0: not read yet, −1: unknown; see gp_boot_time() */
    const struct gp_pod_log *pod_log;   /* likewise, see gp_pod_read_driver() */
    const struct gp_pyenvs *pyenvs;     /* NULL: not searched yet; see gp_pyenvs_of() */
    const struct gp_toolkits *toolkits; /* likewise, see gp_toolkits_of() */
    const struct gp_apt_pins *apt_pins; /* likewise, see gp_apt_pins_of() */
    const char *running;                /* likewise, see gp_running_warn() */
    const char *libvirt;                /* likewise, see gp_libvirt_machine() */
    const struct gp_aside *asides;      /* answers of gp_framework_aside() */
    const struct gp_orphans *orphans;   /* what gp_health_has_orphans() found */
    struct gp_finding *findings;        /* in the order of the checks */
    struct gp_finding *last;
    const struct gp_check *check;                     /* the running one */
    size_t place;                                     /* its index */
    struct gp_check_outcome outcomes[GP_EXAM_CHECKS]; /* by index of the check */
};

/* Opens the root and reads the machine; `checks` are those that gp_exam_run() runs. The snapshot
 * and the fields above it are set afterwards; the patience has a default. An exam must not be
 * moved. */
int gp_exam_open(struct gp_exam *exam, const struct gp_check_list *checks, const char *root,
                 struct gp_err *err) GP_MUST_CHECK;
void gp_exam_close(struct gp_exam *exam);

/* The comma list of the interpreters and environments that are looked at, and no others. GP_EUSAGE:
 * too many; GP_ENOMEM. */
int gp_exam_set_pythons(struct gp_exam *exam, const char *list, struct gp_err *err) GP_MUST_CHECK;

/* The first word of a comma list that is neither the id nor the group of a check, and its length;
 * NULL: all are. */
const char *gp_exam_unknown(const struct gp_check_list *checks, const char *list,
                            size_t *ret_length);

/* Whether a comma list has the id of a check, or its group. */
bool gp_exam_is_listed(const char *list, const char *id);

/* Runs the checks; `only` and `without` are comma lists of ids and groups, or NULL. A file system
 * that does not respond costs its patience, and is then avoided; the exam is then stuck, and must
 * live as long as the process. */
void gp_exam_run(struct gp_exam *exam, const char *only, const char *without);

/* Whether the machine has GPUs: by the PCI bus or the driver, or of a kind that is not on that bus.
 */
enum gp_presence { GP_PRESENCE_SOME, GP_PRESENCE_NONE, GP_PRESENCE_UNKNOWN };
enum gp_presence gp_exam_presence(const struct gp_exam *exam);

/* The finding to fix first: the first failure, else the first warning, before those that
 * are only about speed; NULL: there is none. */
const struct gp_finding *gp_exam_first(const struct gp_exam *exam);

/* ---- for checks ---- */

/* Begins a finding; the calls below add to it. The summary names the object and its problem,
 * without a full stop: "GPU 0000:65:00.0 runs on 4 of its 16 lanes". */
void gp_exam_report(struct gp_exam *exam, enum gp_verdict verdict, const char *format, ...)
    GP_PRINTF(3, 4);

/* The text without the names and passwords of addresses: "https://user:password@host/". */
const char *gp_exam_without_logins(struct gp_exam *exam, const char *text);

/* The evidence: a file, a variable or a call, and what it contains or returned; without logins, as
 * above. */
void gp_exam_evidence(struct gp_exam *exam, const char *where, const char *format, ...)
    GP_PRINTF(3, 4);

/* The finding holds whether or not a check that this one needs has failed. */
void gp_exam_stands_alone(struct gp_exam *exam);

/* Others that are as severe are to be fixed before the finding: everything works in spite of it, if
 * slowly, or it harms only a use that nothing has shown yet, such as that of an installed program.
 */
void gp_exam_can_wait(struct gp_exam *exam);

/* The check passed because there is nothing that it could look at, so nobody may call the machine
 * well for it. */
void gp_exam_is_empty(struct gp_exam *exam);

/* Why it matters, or the cause, in a sentence or two. */
void gp_exam_why(struct gp_exam *exam, const char *format, ...) GP_PRINTF(2, 3);
void gp_exam_link(struct gp_exam *exam, const char *url);

/* Adds the command of a program that does this on some systems only; false: this one has none.
 * gp_exam_remedy() does so by itself. */
bool gp_exam_tool(struct gp_exam *exam, enum gp_remedy remedy, const char *argument);

/* What to do. A remedy is a row of the table, with the commands for the detected distribution; each
 * {} in it is one of the arguments (NULL: none). A command works on all distributions. Advice is
 * not a command. */
void gp_exam_remedy(struct gp_exam *exam, enum gp_remedy remedy, const char *first,
                    const char *second);
void gp_exam_command(struct gp_exam *exam, const char *note, const char *format, ...)
    GP_PRINTF(3, 4);
/* Adds how to write a line of modprobe.d(5), in a file there or as the distribution does it. */
void gp_exam_module_setting(struct gp_exam *exam, const char *note, const char *file,
                            const char *line);
void gp_exam_advice(struct gp_exam *exam, const char *format, ...) GP_PRINTF(2, 3);

/* Reports that something could not be read, and whether root could read it. `error` is −errno. */
void gp_exam_unreadable(struct gp_exam *exam, const char *path, int error);

/* Whether a check has reported a failure whose summary has these words, such as a GPU's address. */
bool gp_exam_has_failed(const struct gp_exam *exam, const char *id, const char *words);

/* Skips the current check, and those that need it, as consequences of an earlier one; false: that
 * one did not fail. For a consequence that depends on the machine; others are in the table. */
bool gp_exam_blame(struct gp_exam *exam, const char *id);

/* A word for a command, quoted for the shell unless it contains only plain characters. Everything
 * read from files must go through this. */
const char *gp_exam_quoted(struct gp_exam *exam, const char *word);

/* Text in the exam's arena; never NULL. */
const char *gp_exam_text(struct gp_exam *exam, const char *format, ...) GP_PRINTF(2, 3);

#endif
