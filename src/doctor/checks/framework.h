/* Frameworks in Python environments: the possible problems between one, the GPUs and the driver,
 * and how they are reported: one finding per problem, however many environments have it. */
#ifndef GP_DOCTOR_CHECKS_FRAMEWORK_H
#define GP_DOCTOR_CHECKS_FRAMEWORK_H

#include "doctor/builds.h"
#include "doctor/check.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"

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

/* What changes conda's environments on this machine: "conda", or else "mamba" or "micromamba",
 * which understand the same. */
const char *gp_conda_program(struct gp_exam *exam, const struct gp_pyenv *env);

/* A fix: puts the libraries in NVIDIA's packages first in the loader's path. */
void gp_exam_add_wheels(struct gp_exam *exam, const struct gp_pyenv *env);

/* A fix: sets a variable in an environment of conda; a list of directories goes before the present
 * one. `value` is quoted where it must be. */
void gp_conda_set(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                  const char *value);

/* The index of PyTorch's builds for a CUDA: "https://download.pytorch.org/whl/cu124"; for "" the
 * CPU builds. */
const char *gp_torch_index(struct gp_exam *exam, const char *cuda);

/* A PyTorch in words of pip: "torch==2.7.1" for "2.7.1+cu128". */
const char *gp_torch_release(struct gp_exam *exam, const char *version);

/* The installed packages that are compiled for one PyTorch and must change with it, each after a
 * space: " torchvision torchaudio"; "". */
const char *gp_torch_companions(struct gp_exam *exam, const struct gp_pyenv *env);

/* A fix: the commands that put a PyTorch into an environment, "torch==2.7.1" or "'torch==2.7.*'",
 * with those packages, which must come from the same index. A NumPy 1.x stays. */
void gp_exam_torch(struct gp_exam *exam, const struct gp_pyenv *env, const char *note,
                   const char *torch, const char *index);

/* A fix: the build for GPUs of the same version, which the tables do not list; false: there is
 * none.
 */
bool gp_propose_same_version(struct gp_exam *exam, const struct gp_nvidia *nv,
                             const struct gp_case *c);

/* The option by which pip finds the builds of JAX that are not in PyPI: " -f https://…"; "". */
const char *gp_jax_place(const struct gp_build *build);

/* What an installation of PyTorch says about itself. */
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

/* ---- the checks ---- */

void gp_check_tensorflow(struct gp_exam *exam);

/* Parts of it: the libraries of CUDA that a build for it needs; the installed package (NULL: none);
 * the severity of what only a program that computes with TensorFlow meets. */
void gp_check_tensorflow_libraries(struct gp_exam *exam, const struct gp_case *c,
                                   const char *cudnn);
const struct gp_pypackage *gp_tensorflow_package(const struct gp_pyenv *env);
enum gp_verdict gp_tensorflow_verdict(struct gp_exam *exam, const struct gp_case *c);

void gp_check_jax(struct gp_exam *exam);
void gp_check_python_others(struct gp_exam *exam);
void gp_check_triton(struct gp_exam *exam);

/* Part of gp_check_python_others(): libraries and GPUs that packages need. */
void gp_check_python_needs(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_nvidia *nv);

/* Likewise: ONNX Runtime and the installed CUDA. */
/* The major version of CUDA that an ONNX Runtime is for, as its build says, or else its version. */
unsigned gp_onnx_cuda(struct gp_exam *exam, const struct gp_pyenv *env, const char *version);
/* The package for GPUs in place of the one for the CPU: of the same release, if its CUDA runs here.
 */
const char *gp_onnx_gpu_package(struct gp_exam *exam, const char *version);
void gp_check_onnx_cuda(struct gp_exam *exam, const struct gp_pyenv *env);
/* A fix: all libraries that it opens, as packages, in the loader's path. */
void gp_onnx_install_cuda(struct gp_exam *exam, const struct gp_pyenv *env, unsigned cuda,
                          unsigned cudnn);

/* Likewise: CTranslate2 and the cuDNN that it finds. */
bool gp_ctranslate2_has_old_cudnn(
    const struct gp_pyenv *env); /* whether the packages have cuDNN 8 */
void gp_check_ctranslate2(struct gp_exam *exam, const struct gp_pyenv *env);

/* Likewise: a package whose library is linked with CUDA's, which must be found. False: it is no
 * such package, or its library is missing. */
bool gp_check_linked(struct gp_exam *exam, const struct gp_pyenv *env,
                     const struct gp_pypackage *package);

/* How to get cuDNN or NCCL, by the name of its library, for a CUDA: of conda's packages, from 11 on
 * of PyPI's. */
void gp_fix_part(struct gp_exam *exam, const struct gp_pyenv *env, const char *name,
                 const char *cuda);

/* The package of MXNet for a CUDA that is installed, of version *ret_cuda; NULL: there is none. */
const char *gp_mxnet_package(struct gp_exam *exam, const char **ret_cuda);

/* The library of a llama-cpp-python that is not split, if it was built for the CPU; NULL: it was
 * not, or that is unknown. *ret_is_meant: with a library for computing there, which nobody gets
 * without asking for it. */
const char *gp_llama_for_cpu(struct gp_exam *exam, const struct gp_pyenv *env, bool *ret_is_meant);
/* Whether it is in the environment that the user's shell would start, or is the only one, where all
 * but virtual environments look. */
bool gp_llama_is_used(struct gp_exam *exam, const struct gp_pyenv *env);
void gp_check_llama_python(struct gp_exam *exam, const struct gp_pyenv *env);

/* Likewise: builds for the CPU, also beside those for GPUs. */
void gp_check_cpu_builds(struct gp_exam *exam, const struct gp_pyenv *env);

/* Likewise: Numba and the compiler of CUDA that it needs. */
void gp_check_numba(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv);

/* Part of cuda.env: the variables that name the driver's library for Numba. */
void gp_check_numba_driver(struct gp_exam *exam);

/* Part of gp_check_python_others(): Theano's old backend and the compiler that it runs. */
void gp_check_theano(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv);

/* Likewise: PaddlePaddle and the libraries that it opens. */
void gp_check_paddle(struct gp_exam *exam, const struct gp_pyenv *env);

/* Likewise: packages that name the PyTorch that they are made for. */
void gp_check_torch_pins(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch);

/* The page that lists PyG's builds of its extensions for a PyTorch. */
const char *gp_torch_pyg_page(struct gp_exam *exam, const struct gp_torch *torch);

/* Likewise: bitsandbytes, its library for that PyTorch, and CUDA's that it looks for. */
void gp_check_bitsandbytes(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_torch *torch);

/* Likewise: compiled modules that do not find the libraries of CUDA or of PyTorch that they are
 * linked with. `torch` may be NULL: there is none. Packages that are reported already are left
 * out. */
void gp_check_compiled(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_torch *torch);

/* Likewise: extensions of PyTorch that were compiled for another one. */
void gp_check_torch_extensions(struct gp_exam *exam, const struct gp_pyenv *env,
                               const struct gp_torch *torch);

#endif
