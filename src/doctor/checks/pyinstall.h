/* Fixes that change a Python environment. */
#ifndef GP_DOCTOR_CHECKS_PYINSTALL_H
#define GP_DOCTOR_CHECKS_PYINSTALL_H

#include "base/util.h"

struct gp_exam;
struct gp_pyenv;

enum gp_pip {
    GP_PIP_ADD,   /* keep what is already installed in this version */
    GP_PIP_AGAIN, /* reinstall everything: another build of the same version */
    GP_PIP_REMOVE,
};

/* Adds to the finding the command that installs packages into an environment, or removes them: with
 * its own pip, or with uv if uv created it; into a new environment if it belongs to the
 * distribution. */
void gp_exam_pip(struct gp_exam *exam, const struct gp_pyenv *env, enum gp_pip how,
                 const char *note, const char *packages);

/* Whether uv created it. */
bool gp_env_is_of_uv(struct gp_exam *exam, const struct gp_pyenv *env);

/* What changes conda's environments on this machine: "conda", or else "mamba" or "micromamba",
 * which understand the same. */
const char *gp_conda_program(struct gp_exam *exam, const struct gp_pyenv *env);

/* A fix: puts the libraries in NVIDIA's packages first in the loader's path. */
void gp_exam_add_wheels(struct gp_exam *exam, const struct gp_pyenv *env);

/* A fix: sets a variable in an environment of conda; a list of directories goes before the present
 * one. `value` is quoted where it must be. */
void gp_conda_set(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                  const char *value);

/* How to get cuDNN or NCCL, by the name of its library, for a CUDA: of conda's packages, from 11 on
 * of PyPI's. */
void gp_fix_part(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                 const char *cuda);

/* conda-forge's CUDA for some GPUs: "cuda-version=12"; from the first one on that knows them all,
 * "'cuda-version>=12.8,<13'". */
const char *gp_conda_cuda(struct gp_exam *exam, const unsigned *capabilities, size_t count,
                          const char *cuda);

/* torch_install.c */
/* The index of PyTorch's builds for a CUDA: "https://download.pytorch.org/whl/cu124"; for "" the
 * CPU builds. */
const char *gp_torch_index(struct gp_exam *exam, const char *cuda);

/* A PyTorch in words of pip: "torch==2.7.1" for "2.7.1+cu128". */
const char *gp_torch_release(struct gp_exam *exam, const char *version);

/* The installed packages that are compiled for one PyTorch and must change with it, each after a
 * space: " torchvision torchaudio"; "". */
const char *gp_torch_companions(struct gp_exam *exam, const struct gp_pyenv *env);

/* A fix: the commands that remove conda's packages that were built for the installed PyTorch, as
 * they keep conda from another one. The second says how to get them back after that. */
void gp_torch_release_bound(struct gp_exam *exam, const struct gp_pyenv *env);
void gp_torch_return_bound(struct gp_exam *exam, const struct gp_pyenv *env);

/* What pip is to install from an index of PyTorch's, "torch==1.7.1+cu110 torchvision
 * --extra-index-url …". Its releases before 2.0 need PyPI, too. `companions` begin with a space. */
const char *gp_torch_request(struct gp_exam *exam, const char *torch, const char *companions,
                             const char *index);

/* A fix: the commands that put a PyTorch into an environment, "torch==2.7.1" or "'torch==2.7.*'",
 * with those packages, which must come from the same index. A NumPy 1.x stays. */
void gp_exam_torch(struct gp_exam *exam, const struct gp_pyenv *env, const char *note,
                   const char *torch, const char *index);

/* Likewise, together with packages of that index that are for this PyTorch: " xformers==0.0.30". */
void gp_exam_torch_with(struct gp_exam *exam, const struct gp_pyenv *env, const char *note,
                        const char *torch, const char *others, const char *index);

/* conda-forge's packages in place of the installed ones: "pytorch-gpu torchvision". */
const char *gp_torch_conda_forge(struct gp_exam *exam, const struct gp_pyenv *env);

/* Whether conda installed PyTorch from PyTorch's own channel, which ended with 2.5. Then the
 * commands above have conda remove it first. */
bool gp_torch_is_of_channel(const struct gp_pyenv *env);

#endif
