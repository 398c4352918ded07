/* The builds of PyTorch, TensorFlow and JAX, and which of them to choose for a machine. Pure. */
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
    const char *first_python, *last_python; /* the last: "" */
    const char *source;
    unsigned rank; /* among those of one version, the higher the better */
};

/* The build at this place, the oldest version first; false behind the last. */
bool gp_build_at(enum gp_framework framework, size_t place, struct gp_build *ret);

/* What a build is to run on. */
struct gp_target {
    const char *driver; /* "": one that can be chosen */
    const unsigned *capabilities;
    size_t count;
};

/* Does a build run on all the GPUs of a target? What is wrong with the first on which it does not,
 * and which that is. Without a list of what it has code for it does not. */
struct gp_judgement gp_build_judge(const struct gp_build *build, const struct gp_target *target,
                                   unsigned *ret_capability);

/* The best build that runs: of the newest version, and of its builds the one that most take. False:
 * there is none. */
bool gp_build_best(enum gp_framework framework, const struct gp_target *target,
                   struct gp_build *ret);

/* The best build of all, whatever it runs on. */
void gp_build_newest(enum gp_framework framework, struct gp_build *ret);

bool gp_build_is_same(const struct gp_build *a, const struct gp_build *b);

#endif
