/* CuPy and the libraries of CUDA, which its wheels do not contain. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From CuPy 14 on, for Python 3.10 and newer, pip can bring the libraries; it has no build for CUDA
 * 11 any more. An older one that is installed satisfies pip, unless the version is named. */
static void add_cuda_to_cupy(struct gp_exam *exam, const struct gp_pyenv *env,
                             const struct gp_pypackage *package, unsigned major)
{
    static const char toolkits[] = "11.8";
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    bool is_old = env->python[0] && gp_version_compare(env->python, "3.10") < 0;
    bool has_12 = !nv.driver[0] || gp_driver_reaches(nv.driver, gp_cuda_floor("12"));
    if (!is_old && major >= 12) {
        gp_exam_pip(exam, env, GP_PIP_ADD, "CUDA's libraries as packages, from CuPy 14 on",
                    gp_exam_text(exam, "'%s[ctk]>=14'", package->name));
        gp_exam_advice(exam, "or install the toolkit of CUDA %u", major);
        return;
    }
    if (!is_old && has_12) {
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "", package->name);
        gp_exam_pip(exam, env, GP_PIP_ADD, "CuPy 14, which brings CUDA's libraries",
                    "'cupy-cuda12x[ctk]>=14'");
        gp_exam_advice(exam, "or install the toolkit of CUDA %u for this CuPy", major);
        return;
    }
    /* "cupy-cuda112" is for one version, "cupy-cuda11x" for all from 11.2 on. */
    const char *number = package->name + strlen("cupy-cuda");
    bool is_one = strlen(number) == 3 && strspn(number, "0123456789") == 3;
    const char *toolkit = is_one ? gp_exam_text(exam, "%u.%c", major, number[2])
                          : major == gp_version_major(toolkits) ? toolkits
                                                                : "";
    gp_exam_advice(exam, "install the toolkit of CUDA %s:",
                   *toolkit ? toolkit : gp_exam_text(exam, "%u", major));
    if (*toolkit)
        gp_cuda_fix_toolkit(exam, toolkit);
}

/* Whether the driver implements a CUDA; if not, another check reports that first. */
static bool driver_runs(const struct gp_exam *exam, unsigned major)
{
    char cuda[8];
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    (void)snprintf(cuda, sizeof(cuda), "%u", major);
    return !nv.driver[0] || !gp_cuda_floor(cuda)[0] ||
           gp_driver_reaches(nv.driver, gp_cuda_floor(cuda));
}

/* CuPy's wheels contain no CUDA: it must be installed in the version that they were built for. */
void gp_check_cupy_cuda(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package_like(env, "cupy-cuda");
    if (!package)
        return;
    const char *number = package->name + strlen("cupy-cuda");
    unsigned major = number[0] && number[1]
                         ? (unsigned)strtoul(gp_exam_text(exam, "%.2s", number), NULL, 10)
                         : 0;
    const char *other;
    struct gp_ldcache cache = {.count = 0};
    bool is_wheel = gp_pyenv_package(env, gp_exam_text(exam, "nvidia-cuda-nvrtc-cu%u", major)) ||
                    gp_pyenv_package(env, "nvidia-cuda-nvrtc") ||
                    gp_pyenv_package(env, "cuda-nvrtc") || gp_pyenv_package(env, "cuda-cudart");
    bool is_twice =
        package + 1 < env->packages + env->count && strncmp(package[1].name, "cupy-cuda", 9) == 0;
    if (major < 10 || package->is_conda || is_wheel || is_twice || /* which another check reports */
        gp_cuda_is_found(exam, env, major, &other) || !driver_runs(exam, major) ||
        (!other[0] && gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false), "CuPy in %s is for CUDA %u, but %s",
                   env->prefix, major,
                   other[0] ? gp_exam_text(exam, "only CUDA %s is installed", other)
                            : "no CUDA toolkit is installed");
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_evidence(exam, gp_exam_text(exam, "CUDA %u", major),
                     "in no library directory (nvidia-smi shows what the driver can run, not what "
                     "is installed)");
    gp_exam_why(exam,
                "The import fails with \"libcudart.so.%u: cannot open shared object file\", or "
                "CuPy cannot load libnvrtc.",
                major);
    unsigned have = gp_version_major(other);
    if (have >= 11) {
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "", package->name);
        gp_exam_pip(exam, env, GP_PIP_ADD, "for the CUDA that is installed",
                    gp_exam_text(exam, "cupy-cuda%ux", have));
        gp_exam_advice(exam, "or install CUDA %u as well", major);
    } else {
        add_cuda_to_cupy(exam, env, package, major);
    }
}
