/* The build for GPUs of a version that is installed as one for the CPU, where its makers publish it
 * under another name: other packages of the environment then need not change. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/version.h"

#include <string.h>

/* Whether the driver runs a CUDA, and that CUDA knows all GPUs. */
static bool is_runnable(const struct gp_nvidia *nv, const char *cuda)
{
    const char *floor = gp_cuda_floor(cuda);
    if (!floor[0] || (nv->driver[0] && !gp_driver_reaches(nv->driver, floor)))
        return false;
    for (size_t i = 0; i < nv->count; i++) {
        const struct gp_arch *arch = gp_arch_find(nv->gpus[i].capability);
        if (!arch || gp_version_major(arch->first_cuda) > gp_version_major(cuda) ||
            (arch->last_cuda[0] && gp_version_compare(arch->last_cuda, cuda) < 0))
            return false;
    }
    return nv->count > 0;
}

/* TensorFlow was two packages. The one for GPUs cannot be imported without its CUDA. */
static bool propose_tensorflow(struct gp_exam *exam, const struct gp_nvidia *nv,
                               const struct gp_case *c)
{
    struct gp_build build;
    if (!gp_build_known(GP_FRAMEWORK_TENSORFLOW, c->version, "", &build) ||
        strcmp(build.variant, "tensorflow-gpu") != 0 || !is_runnable(nv, build.cuda))
        return false;
    if (!gp_library_is_loadable(exam, c->env, gp_exam_text(exam, "libcudart.so.%s", build.cuda)))
        gp_exam_advice(exam, "install CUDA %s and cuDNN %s, which the build for GPUs needs, then:",
                       build.cuda, build.cudnn);
    gp_exam_pip(exam, c->env, GP_PIP_REMOVE, "it has the same files",
                gp_pyenv_package(c->env, "tensorflow-cpu") ? "tensorflow-cpu" : "tensorflow");
    bool has_both = gp_pyenv_package(c->env, "tensorflow-gpu");
    gp_exam_pip(
        exam, c->env, has_both ? GP_PIP_AGAIN : GP_PIP_ADD,
        gp_exam_text(exam, "the same version for GPUs, with CUDA %s", build.cuda),
        gp_exam_text(exam, "%stensorflow-gpu==%s", has_both ? "--no-deps " : "", c->version));
    return true;
}

/* Of these versions, JAX's own index has builds with the suffixes +cuda11.cudnn82 and
 * +cuda11.cudnn805, which open the machine's CUDA 11 and cuDNN 8. */
static bool propose_jax(struct gp_exam *exam, const struct gp_nvidia *nv, const struct gp_case *c)
{
    static const char first[] = "0.1.75", after[] = "0.4";
    const char *path, *cudnn = gp_cudnn_loaded(exam, c->env, 8, &path);
    if (gp_version_compare(c->version, first) < 0 || gp_version_compare(c->version, after) >= 0 ||
        strchr(c->version, '+') || !is_runnable(nv, "11.1") ||
        gp_version_compare(cudnn, "8.0") < 0 || /* the patch version does not count */
        !gp_library_is_loadable(exam, c->env, "libcudart.so.11.0"))
        return false;
    gp_exam_pip(exam, c->env, GP_PIP_ADD, "the same version for CUDA 11 and cuDNN 8",
                gp_exam_text(exam,
                             "'jaxlib==%s+cuda11.cudnn%s' -f "
                             "https://storage.googleapis.com/jax-releases/jax_cuda_releases.html",
                             c->version, gp_version_compare(cudnn, "8.2") >= 0 ? "82" : "805"));
    return true;
}

bool gp_propose_same_version(struct gp_exam *exam, const struct gp_nvidia *nv,
                             const struct gp_case *c)
{
    if (c->trouble != GP_TROUBLE_CPU_ONLY)
        return false;
    return c->framework == GP_FRAMEWORK_TENSORFLOW ? propose_tensorflow(exam, nv, c)
           : c->framework == GP_FRAMEWORK_JAX      ? propose_jax(exam, nv, c)
                                                   : false;
}
