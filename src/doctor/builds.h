/* The builds of PyTorch, TensorFlow and JAX, and which of them to choose for a machine. Pure
 * functions. */
#ifndef GP_DOCTOR_BUILDS_H
#define GP_DOCTOR_BUILDS_H

#include "doctor/compat.h"

/* X(id, word, name) */
#define GP_FRAMEWORKS(X)                                                                           \
    X(TORCH, "torch", "PyTorch")                                                                   \
    X(TENSORFLOW, "tensorflow", "TensorFlow")                                                      \
    X(JAX, "jax", "JAX")

enum gp_framework {
#define X(id, word, name) GP_FRAMEWORK_##id,
    GP_FRAMEWORKS(X)
#undef X
        GP_FRAMEWORK__COUNT
};

const char *gp_framework_word(enum gp_framework framework);
const char *gp_framework_name(enum gp_framework framework);

/* A row of one of their tables. */
struct gp_build {
    enum gp_framework framework;
    const char *version;
    const char *variant; /* PyTorch: "cu128"; TensorFlow: the package; JAX: the extra, "cuda12" */
    const char *cuda, *archs;
    const char *cudnn;                      /* "" */
    const char *first_python, *last_python; /* the newest supported; "": unlimited */
    const char *source;
    unsigned rank; /* among builds of one version, higher is better */
};

/* The build at this index, oldest version first; false past the end. */
bool gp_build_at(enum gp_framework framework, size_t place, struct gp_build *ret);

/* Whether there is a build of this version for a CUDA, "12.4". */
bool gp_build_is_there(enum gp_framework framework, const char *version, const char *cuda);

/* What a build must run on, and which it must be. */
struct gp_build_target {
    const char *driver; /* "": can be chosen */
    const unsigned *capabilities;
    size_t count;
    const char *version; /* "2.8" includes 2.8.1; NULL: any */
};

/* Whether a build runs on all GPUs of a target; otherwise the problem on the first GPU where it
 * does not, and which GPU that is. A build without a list of architectures does not run. */
struct gp_judgement gp_build_judge(const struct gp_build *build,
                                   const struct gp_build_target *target, unsigned *ret_capability);

/* The best build that runs: the newest version, and of its builds the most common one. False: there
 * is none. */
bool gp_build_best(enum gp_framework framework, const struct gp_build_target *target,
                   struct gp_build *ret);

/* The newest build of a version, regardless of GPUs and driver; false: there is no such version. */
bool gp_build_newest(enum gp_framework framework, const char *version, struct gp_build *ret);

/* The row of a framework's table for a version, or of the closest older one; among rows of one
 * version, the one whose variant contains this word ("": any). */
bool gp_build_known(enum gp_framework framework, const char *version, const char *word,
                    struct gp_build *ret);

bool gp_build_is_same(const struct gp_build *a, const struct gp_build *b);

#endif
