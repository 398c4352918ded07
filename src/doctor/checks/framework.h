/* Frameworks in Python environments: the possible problems between one, the GPUs and the driver,
 * and how they are reported: one finding per problem, however many environments have it. */
#ifndef GP_DOCTOR_CHECKS_FRAMEWORK_H
#define GP_DOCTOR_CHECKS_FRAMEWORK_H

#include "doctor/builds.h"
#include "doctor/check.h"

struct gp_exam;
struct gp_nvidia;
struct gp_nvidia_gpu;
struct gp_pyenv;

enum gp_trouble {
    GP_TROUBLE_NONE,
    GP_TROUBLE_BROKEN,       /* partly installed */
    GP_TROUBLE_CPU_ONLY,     /* a build without GPU support */
    GP_TROUBLE_OTHER_VENDOR, /* a build for another vendor's GPUs */
    GP_TROUBLE_NO_CODE,      /* for one of the GPUs */
    GP_TROUBLE_NEEDS_DRIVER,
    GP_TROUBLE_NO_DRIVER, /* the GPU's last driver is older than the build needs */
    GP_TROUBLE_UNKNOWN,   /* unknown which GPUs it is built for */
    GP_TROUBLE__COUNT
};

/* A framework in an environment. */
struct gp_case {
    const struct gp_pyenv *env;
    enum gp_framework framework;
    const char *version; /* "2.7.1+cu128" */
    const char *cuda;    /* "12.8"; "": none */
    const char *archs;   /* "": unknown */
    const char *where;   /* the file with this information */
    const char *seen;    /* its content; with `archs_where`, the architectures it is built for */
    const char *archs_where;
    enum gp_trouble trouble;
    struct gp_judgement judgement;
    const struct gp_nvidia_gpu *gpu; /* the affected GPU; NULL */
    bool is_partial;                 /* the machine has another GPU that works */
};

/* Compares a CUDA build with the GPUs and the driver, and fills in the trouble. */
void gp_case_judge(struct gp_case *c, const struct gp_nvidia *nv);

/* Reports the cases, one finding per problem. */
void gp_cases_report(struct gp_exam *exam, const struct gp_nvidia *nv, const struct gp_case *cases,
                     size_t count);

/* Reports which ones passed, unless the check has reported a problem. */
void gp_cases_report_well(struct gp_exam *exam, enum gp_framework framework,
                          const struct gp_case *cases, size_t count);

/* Reports that no environment has it, as far as they can be read. */
void gp_framework_report_none(struct gp_exam *exam, enum gp_framework framework);

/* The severity of a problem in an environment: a failure in the one that the user's shell would
 * start, in one named by the user, and in the only one with this framework; a warning elsewhere. */
enum gp_verdict gp_pyenv_verdict(const struct gp_pyenv *env, bool is_only);

/* The option by which pip finds the builds of JAX that are not in PyPI: " -f https://…"; "". */
const char *gp_jax_place(const struct gp_build *build);

/* same_version.c */
/* A fix: the build for GPUs of the same version, which the tables do not list; false: there is
 * none.
 */
bool gp_propose_same_version(struct gp_exam *exam, const struct gp_nvidia *nv,
                             const struct gp_case *c);

/* python_places.c: adds where environments were looked for, and how to name another place. */
void gp_python_show_places(struct gp_exam *exam);

#endif
