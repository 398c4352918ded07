/* Frameworks in Python environments: what can be wrong between one, the GPUs and the driver, and
 * how it is said: one finding for a trouble, however many environments have it. */
#ifndef GP_DOCTOR_FRAMEWORK_H
#define GP_DOCTOR_FRAMEWORK_H

#include "doctor/builds.h"
#include "doctor/check.h"
#include "doctor/nvidia.h"
#include "doctor/pyenv.h"

enum gp_trouble {
    GP_TROUBLE_NONE,
    GP_TROUBLE_BROKEN,       /* it is only half there */
    GP_TROUBLE_CPU_ONLY,     /* a build without GPUs */
    GP_TROUBLE_OTHER_VENDOR, /* a build for another vendor's */
    GP_TROUBLE_NO_CODE,      /* for one of the GPUs */
    GP_TROUBLE_NEEDS_DRIVER,
    GP_TROUBLE_NO_DRIVER, /* the GPU's last driver is older than the build needs */
    GP_TROUBLE_UNKNOWN,   /* what it is built for is not known */
    GP_TROUBLE__COUNT
};

/* A framework in an environment. */
struct gp_case {
    const struct gp_pyenv *env;
    enum gp_framework framework;
    const char *version; /* "2.7.1+cu128" */
    const char *cuda;    /* "12.8"; "": none */
    const char *archs;   /* "": not known */
    const char *where;   /* the file that says it */
    const char *seen;    /* what stands there; with `archs_where` what it is built for */
    const char *archs_where;
    enum gp_trouble trouble;
    struct gp_judgement judgement;
    const struct gp_nvidia_gpu *gpu; /* that it is about; NULL */
    bool is_partial;                 /* another GPU of the machine can be used */
};

/* Compares a build for CUDA with the GPUs and the driver, and fills in the trouble. */
void gp_case_judge(struct gp_case *c, const struct gp_nvidia *nv);

/* Reports the cases, a finding for each trouble. */
void gp_cases_report(struct gp_exam *exam, const struct gp_nvidia *nv, const struct gp_case *cases,
                     size_t count);

/* Says which there are, where the check has reported nothing. */
void gp_cases_report_well(struct gp_exam *exam, enum gp_framework framework,
                          const struct gp_case *cases, size_t count);

/* Reports that no environment has it, as far as they can be read. */
void gp_framework_report_none(struct gp_exam *exam, enum gp_framework framework);

/* How grave it is that something fails in an environment: a failure in the one that the user's
 * shell would start, in one that was named, and if it is the only one with this framework; a
 * warning elsewhere. */
enum gp_verdict gp_pyenv_verdict(const struct gp_pyenv *env, bool is_only);

enum gp_pip {
    GP_PIP_ADD,   /* what is there in this version stays */
    GP_PIP_AGAIN, /* everything anew: another build of the same version */
    GP_PIP_REMOVE,
};

/* Adds to the finding the command that installs packages into an environment, or removes them: with
 * its own pip, with uv if that made it; into a new one where it belongs to the distribution. */
void gp_exam_pip(struct gp_exam *exam, const struct gp_pyenv *env, enum gp_pip how,
                 const char *note, const char *packages);

/* The best build for the GPUs, the driver and the environment's Python; of this version if there is
 * one, so that the programs need not change. "": any version. False: there is none. */
bool gp_pyenv_choose(const struct gp_pyenv *env, const struct gp_nvidia *nv,
                     enum gp_framework framework, const char *version, struct gp_build *ret);

/* Where PyTorch's builds for a CUDA are: "https://download.pytorch.org/whl/cu124"; of "" those for
 * the CPU. */
const char *gp_torch_index(struct gp_exam *exam, const char *cuda);

/* A text file among an environment's packages, "" if there is none. The exam's memory. */
const char *gp_pyenv_text(struct gp_exam *exam, const struct gp_pyenv *env, const char *file);

/* What an installation of PyTorch says of itself. */
struct gp_torch {
    const struct gp_pyenv *env;
    char version[64]; /* "2.7.1+cu128"; "": its file does not say */
    int error;        /* −errno: its file is there and cannot be read */
    char cuda[16], hip[32], xpu[32];
};

/* False: the environment has no PyTorch. */
bool gp_pyenv_torch(struct gp_exam *exam, const struct gp_pyenv *env, struct gp_torch *ret);

/* ---- the checks ---- */

void gp_check_torch(struct gp_exam *exam);
void gp_check_tensorflow(struct gp_exam *exam);
void gp_check_jax(struct gp_exam *exam);
void gp_check_python_others(struct gp_exam *exam);

#endif
