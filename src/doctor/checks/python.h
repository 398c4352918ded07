/* The checks of Python packages, in several files; python.c has their table. */
#ifndef GP_DOCTOR_CHECKS_PYTHON_H
#define GP_DOCTOR_CHECKS_PYTHON_H

#include "doctor/check.h"

struct gp_case;
struct gp_exam;
struct gp_nvidia;
struct gp_pyenv;
struct gp_pypackage;
struct gp_torch;

/* tensorflow.c */
void gp_check_tensorflow(struct gp_exam *exam);

/* tensorflow_libraries.c: parts of it */
/* The libraries of CUDA that a build for it needs. */
void gp_check_tensorflow_libraries(struct gp_exam *exam, const struct gp_case *c,
                                   const char *cudnn);
/* The installed package; NULL: none. */
const struct gp_pypackage *gp_tensorflow_package(const struct gp_pyenv *env);
/* The severity of what only a program that computes with TensorFlow meets. */
enum gp_verdict gp_tensorflow_verdict(struct gp_exam *exam, const struct gp_case *c);

/* jax.c */
void gp_check_jax(struct gp_exam *exam);

/* triton.c; the package, which PyTorch's own index calls otherwise; NULL: none. */
const struct gp_pypackage *gp_triton_of(const struct gp_pyenv *env);
void gp_check_triton(struct gp_exam *exam);

/* others.c; the following files have its parts. */
void gp_check_python_others(struct gp_exam *exam);

/* conda_stdcxx.c: conda's C++ library */
void gp_check_conda_stdcxx(struct gp_exam *exam, const struct gp_pyenv *env);

/* needs.c: libraries and GPUs that packages need */
void gp_check_python_needs(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_nvidia *nv);

/* onnx.c: ONNX Runtime and the installed CUDA */
void gp_check_onnx_cuda(struct gp_exam *exam, const struct gp_pyenv *env);
/* The major version of CUDA that an ONNX Runtime is for, as its build says, or else its version. */
unsigned gp_onnx_cuda(struct gp_exam *exam, const struct gp_pyenv *env, const char *version);
/* The package for GPUs in place of the one for the CPU: of the same release, if its CUDA runs here.
 */
const char *gp_onnx_gpu_package(struct gp_exam *exam, const char *version);
/* A fix: all libraries that it opens, as packages, in the loader's path. */
void gp_onnx_install_cuda(struct gp_exam *exam, const struct gp_pyenv *env, unsigned cuda,
                          unsigned cudnn);

/* python_runtime.c: packages with a CUDA runtime of pip's that the driver does not run */
void gp_check_python_runtime(struct gp_exam *exam, const struct gp_pyenv *env,
                             const struct gp_nvidia *nv);

/* ctranslate2.c: CTranslate2 and the cuDNN that it finds */
void gp_check_ctranslate2(struct gp_exam *exam, const struct gp_pyenv *env);
/* Whether the packages have cuDNN 8. */
bool gp_ctranslate2_has_old_cudnn(const struct gp_pyenv *env);

/* linked.c: a package whose library is linked with CUDA's, which must be found. False: it is no
 * such package, or its library is missing. */
bool gp_check_linked(struct gp_exam *exam, const struct gp_pyenv *env,
                     const struct gp_pypackage *package);
/* The package of MXNet for a CUDA that is installed, of version *ret_cuda; NULL: there is none. */
const char *gp_mxnet_package(struct gp_exam *exam, const char **ret_cuda);

/* llama_python.c */
void gp_check_llama_python(struct gp_exam *exam, const struct gp_pyenv *env);
/* The library of a llama-cpp-python that is not split, if it was built for the CPU; NULL: it was
 * not, or that is unknown. *ret_is_meant: with a library for computing there, which nobody gets
 * without asking for it. */
const char *gp_llama_for_cpu(struct gp_exam *exam, const struct gp_pyenv *env, bool *ret_is_meant);
/* Whether it is in the environment that the user's shell would start, or is the only one, where all
 * but virtual environments look. */
bool gp_llama_is_used(struct gp_exam *exam, const struct gp_pyenv *env);
/* The CUDA of the compiler that builds take, if it is too old for it, and the file that says so;
 * NULL: it is not, or there is none. */
const char *gp_llama_old_nvcc(struct gp_exam *exam, const char **ret_source);
/* A fix: the commands that build this release of it for CUDA; "": the newest. */
void gp_llama_build(struct gp_exam *exam, const struct gp_pyenv *env, const char *version);

/* cpu_builds.c: builds for the CPU, also beside those for GPUs */
void gp_check_cpu_builds(struct gp_exam *exam, const struct gp_pyenv *env);

/* numba.c: Numba and the compiler of CUDA that it needs */
void gp_check_numba(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv);
/* Part of cuda.env: the variables that name the driver's library for Numba. */
void gp_check_numba_driver(struct gp_exam *exam);

/* own_libcuda.c: packages with a copy of the driver's libcuda in them */
void gp_check_own_libcuda(struct gp_exam *exam, const struct gp_pyenv *env);

/* theano.c: Theano's old backend and the compiler that it runs */
void gp_check_theano(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv);

/* cupy.c: CuPy and the installed CUDA */
void gp_check_cupy_cuda(struct gp_exam *exam, const struct gp_pyenv *env);

/* paddle.c: PaddlePaddle and the libraries that it opens */
void gp_check_paddle(struct gp_exam *exam, const struct gp_pyenv *env);
/* Paddle's own index for pip, which has the builds for GPUs from version 3 on: " -i https://…". */
const char *gp_paddle_index(struct gp_exam *exam);
/* A fix: the build for GPUs in place of the one for the CPU. */
void gp_paddle_install(struct gp_exam *exam, const struct gp_pyenv *env, const char *version);

/* rapids.c: RAPIDS beside packages for another CUDA */
void gp_check_rapids(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv);

/* pins.c: packages that name the PyTorch that they are made for */
void gp_check_torch_pins(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch);

/* nccl_graph.c: an NCCL that servers of models cannot record in CUDA graphs */
void gp_check_nccl_graph(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch, const struct gp_nvidia *nv);
/* Adds it to the finding that a server is for an older PyTorch, which has another NCCL. */
void gp_nccl_graph_show(struct gp_exam *exam, const struct gp_pyenv *env,
                        const struct gp_torch *torch, const struct gp_pypackage *package);

/* bitsandbytes.c: its library for that PyTorch, and CUDA's that it looks for */
void gp_check_bitsandbytes(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_torch *torch);

/* xformers_flash.c: xformers beside a flash-attn that it does not take */
void gp_check_xformers_flash(struct gp_exam *exam, const struct gp_pyenv *env);

/* opencl_name.c: PlaidML without the library that it opens */
void gp_check_plaidml(struct gp_exam *exam, const struct gp_pyenv *env);

/* compiled.c: compiled modules that do not find the libraries of CUDA or of PyTorch that they are
 * linked with. `torch` may be NULL: there is none. Packages that are reported already are left
 * out. */
void gp_check_compiled(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_torch *torch);
/* compiled_fix.c: whether a package catches the error of its modules' import, and computes without
 * their kernels. */
bool gp_compiled_is_spare(const char *name);
/* A fix: the package's build for the installed PyTorch, or the package compiled for it. */
void gp_compiled_fix(struct gp_exam *exam, const struct gp_pyenv *env,
                     const struct gp_pypackage *package, const struct gp_torch *torch);
void gp_compiled_again(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_pypackage *package);
/* The page that lists PyG's builds of its extensions for a PyTorch. */
const char *gp_torch_pyg_page(struct gp_exam *exam, const struct gp_torch *torch);

/* compiled_symbol.c: compiled modules that take functions from PyTorch which it does not have,
 * or which have the other C++ ABI */
void gp_check_compiled_symbols(struct gp_exam *exam, const struct gp_pyenv *env,
                               const struct gp_torch *torch);

/* extensions.c: extensions of PyTorch that were compiled for another one */
void gp_check_torch_extensions(struct gp_exam *exam, const struct gp_pyenv *env,
                               const struct gp_torch *torch);

/* Whether another check has reported a package of this environment: it is one problem. */
bool gp_python_is_reported(struct gp_exam *exam, const struct gp_pyenv *env, const char *name);

#endif
