/* What an installation of PyTorch says about itself. */
#ifndef GP_DOCTOR_READERS_TORCH_H
#define GP_DOCTOR_READERS_TORCH_H

#include "base/util.h"

struct gp_exam;
struct gp_pyenv;
struct gp_pypackage;
struct gp_requirement;

struct gp_torch {
    const struct gp_pyenv *env;
    char version[64]; /* "2.7.1+cu128"; "": unknown */
    int error;        /* −errno: its file exists and cannot be read */
    char cuda[16], hip[32], xpu[32];
};

/* False: the environment has no PyTorch. */
bool gp_pyenv_torch(struct gp_exam *exam, const struct gp_pyenv *env, struct gp_torch *ret);

/* The PyTorch that a package requires by its metadata; false: none in particular. */
bool gp_pypackage_torch(struct gp_exam *exam, const struct gp_pyenv *env,
                        const struct gp_pypackage *package, struct gp_requirement *ret);

#endif
