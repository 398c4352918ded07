/* The compiled extension modules of a Python environment, found by their names in its directories:
 * "flash_attn_cuda.cpython-38-x86_64-linux-gnu.so", "mmcv/_ext.cpython-38-…so",
 * "cupy/cuda/runtime.…so". */
#ifndef GP_DOCTOR_READERS_PYMODULES_H
#define GP_DOCTOR_READERS_PYMODULES_H

#include "base/util.h"

struct gp_exam;
struct gp_pyenv;
struct gp_pypackage;
struct gp_elf;

/* A module that is linked with a library of CUDA or of PyTorch. */
struct gp_pymodule {
    const char *top;  /* the name of its package's directory, or its own: "mmcv", "amp_C" */
    const char *path; /* "/home/ada/venv/lib/python3.8/site-packages/mmcv/_ext.…so" */
    const struct gp_elf *shared;
    bool is_single; /* not in a directory */
};

enum gp_pylibrary {
    GP_PYLIBRARY_NONE,  /* another one, or of the driver */
    GP_PYLIBRARY_PART,  /* cuDNN, NCCL */
    GP_PYLIBRARY_CUDA,  /* of the toolkit */
    GP_PYLIBRARY_TORCH, /* of PyTorch */
};

/* What a library is, by its name. */
enum gp_pylibrary gp_pylibrary_of(const char *name);

/* Calls a function for the modules of an environment with PyTorch, and for those of CuPy and
 * PyCUDA; their texts are valid only until it returns. The number of files and bytes that are read
 * is limited. */
void gp_pymodules_visit(struct gp_exam *exam, const struct gp_pyenv *env,
                        void (*visit)(void *data, const struct gp_pymodule *module), void *data);

enum gp_pyowner {
    GP_PYOWNER_NONE, /* no package lists it */
    GP_PYOWNER_FOUND,
    GP_PYOWNER_UNREAD, /* the packages' lists are too large to be read */
};

/* The installed package that a module belongs to. Its texts are in the arena. Of *budget it takes
 * what it reads. */
enum gp_pyowner gp_pymodule_owner(struct gp_exam *exam, const struct gp_pyenv *env, const char *top,
                                  size_t *budget, struct gp_pypackage *ret);

/* Whether the package that a module would belong to does not list it: it is left over from another
 * version. */
bool gp_pymodule_is_left(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_pypackage *owner, const char *path);

#endif
