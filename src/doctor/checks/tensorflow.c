/* TensorFlow: what its build is for, and whether that fits the GPUs and the driver. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file that says what a build is for; 1.15 to 2.1 have their files in a folder of another name.
 */
static const char *build_info_of(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char now[] = "tensorflow/python/platform/build_info.py";
    static const char then[] = "tensorflow_core/python/platform/build_info.py";
    return *gp_pyenv_text(exam, env, now) ? now : *gp_pyenv_text(exam, env, then) ? then : now;
}

struct tensorflow {
    char cuda[16], cudnn[16], archs[512];
};

/* TensorFlow means by compute_80 code and PTX, by sm_80 only code: adds the former's sm_80. */
static void name_code(struct gp_exam *exam, char *archs, size_t size)
{
    static const char mark[] = "compute_";
    const char *list = gp_exam_text(exam, "%s", archs);
    for (const char *p = strstr(list, mark); p; p = strstr(p + 1, mark)) {
        const char *number = p + sizeof(mark) - 1;
        size_t n = strlen(archs);
        (void)snprintf(archs + n, size - n, ", 'sm_%.*s'", (int)strspn(number, "0123456789"),
                       number);
    }
}

/* What the build says about itself, else what the table says about the version. */
static void read_tensorflow(struct gp_exam *exam, const struct gp_pyenv *env,
                            const struct gp_pypackage *package, struct tensorflow *ret)
{
    const char *text = gp_pyenv_text(exam, env, build_info_of(exam, env));
    /* Until 1.15, and in 2.0, the one with this name was for the CPU. */
    bool is_cpu = strcmp(package->name, "tensorflow") == 0 && !*text &&
                  (gp_version_compare(package->version, "1.15") < 0 ||
                   strncmp(package->version, "2.0.", 4) == 0) &&
                  !gp_pyenv_package(env, "tensorflow-gpu");
    bool is_silent = !is_cpu && (!*text || strstr(text, "is_cuda_build = True")); /* before 2.3 */
    struct gp_build build;
    *ret = (struct tensorflow){0};
    if (gp_python_version(text, "cuda_version", ret->cuda, sizeof(ret->cuda))) {
        (void)gp_python_version(text, "cudnn_version", ret->cudnn, sizeof(ret->cudnn));
        (void)gp_python_value(text, "cuda_compute_capabilities", ret->archs, sizeof(ret->archs));
        name_code(exam, ret->archs, sizeof(ret->archs));
    } else if (is_silent && strcmp(package->name, "tensorflow-cpu") != 0 &&
               gp_build_known(GP_FRAMEWORK_TENSORFLOW, package->version, "", &build)) {
        (void)snprintf(ret->cuda, sizeof(ret->cuda), "%s", build.cuda);
        (void)snprintf(ret->cudnn, sizeof(ret->cudnn), "%s", build.cudnn);
        (void)snprintf(ret->archs, sizeof(ret->archs), "%s", build.archs);
        const struct gp_pypackage *base = gp_pyenv_package(env, "tensorflow-base");
        const struct gp_pypackage *toolkit = gp_pyenv_package(env, "cudatoolkit");
        if (base && base->is_conda && toolkit) /* which builds it for others than PyPI's */
            (void)snprintf(ret->cuda, sizeof(ret->cuda), "%u.%u",
                           gp_version_major(toolkit->version), gp_version_minor(toolkit->version));
    }
}

/* Its packages of PyPI have only PTX for the newest GPUs, and fail to load it there
 * (tensorflow#90291). NVIDIA's own builds have code for them. */
static bool report_only_ptx(struct gp_exam *exam, const struct gp_case *c,
                            const struct gp_nvidia *nv)
{
    enum { FIRST = 120 };
    const struct gp_nvidia_gpu *gpu = NULL;
    size_t count = 0;
    for (size_t i = 0; i < nv->count; i++)
        if (nv->gpus[i].capability >= FIRST) {
            gpu = &nv->gpus[i];
            count++;
        }
    if (!gpu || strchr(c->version, '+') || strstr(c->archs, "12.0") || strstr(c->archs, "sm_120") ||
        strstr(c->archs, "compute_120"))
        return false;
    enum gp_verdict verdict = gp_tensorflow_verdict(exam, c);
    if (verdict == GP_VERDICT_WARN && count == nv->count)
        verdict = gp_pyenv_verdict(c->env, false);
    gp_exam_report(exam, verdict, "TensorFlow %s in %s has only PTX for %s, and cannot load it",
                   c->version, c->env->prefix, gp_nvidia_gpu_words(exam, gpu));
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW);
    gp_exam_evidence(exam, c->archs_where, "built for %s", c->archs);
    gp_exam_why(exam,
                "Operations fail with CUDA_ERROR_INVALID_PTX and CUDA_ERROR_INVALID_HANDLE. No "
                "release on PyPI up to 2.21 has code for this GPU.");
    gp_exam_advice(exam, "%s the image of NVIDIA's build, nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
                   exam->machine.container ? "start from" : "use");
    gp_exam_link(exam, "https://github.com/tensorflow/tensorflow/issues/90291");
    return true;
}

/* GPUs that CUDA before 11 does not know. */
static size_t count_newer(const struct gp_nvidia *nv)
{
    enum { FIRST = 80 };
    size_t count = 0;
    for (size_t i = 0; i < nv->count; i++)
        count += nv->gpus[i].capability >= FIRST;
    return count;
}

/* A TensorFlow for CUDA 11 or newer, in place of this version. */
static void propose_newer(struct gp_exam *exam, const struct gp_pyenv *env, const char *version,
                          const struct gp_nvidia *nv)
{
    static const char newest[] = "525", old[] = "tensorflow-gpu";
    if (gp_version_major(version) < 2) {
        gp_exam_advice(exam,
                       "%s the image of NVIDIA's build of TensorFlow 1.15, "
                       "nvcr.io/nvidia/tensorflow:%s-tf1-py3",
                       exam->machine.container ? "start from" : "use",
                       gp_driver_reaches(nv->driver, newest) ? "23.03" : "20.12");
    } else if (env->kind == GP_PYENV_CONDA && gp_pyenv_package(env, "tensorflow-base")) {
        gp_exam_command(exam, "a build for CUDA 11 or newer, in an environment of its own",
                        "%s create -n tf -c conda-forge 'tensorflow=*=cuda*'",
                        gp_conda_program(exam, env));
    } else {
        if (gp_pyenv_package(env, old))
            gp_exam_pip(exam, env, GP_PIP_REMOVE, "it has the same files", old);
        gp_exam_pip(exam, env, GP_PIP_ADD, "the first version for CUDA 11, or a newer one",
                    "'tensorflow>=2.4'");
    }
}

/* CUDA before 11 does not know these GPUs: what a build for it has as PTX is compiled for minutes
 * at every start, and cuBLAS and cuDNN of that CUDA have nothing for them. */
static bool report_old_cuda(struct gp_exam *exam, const struct gp_case *c,
                            const struct gp_nvidia *nv)
{
    static const char cuda_11[] = "11.0";
    size_t count = count_newer(nv);
    if (count == 0 || count < nv->count || strchr(c->version, '+') ||
        gp_version_compare(c->cuda, cuda_11) >= 0)
        return false;
    gp_exam_report(exam, gp_tensorflow_verdict(exam, c),
                   "TensorFlow %s in %s is for CUDA %s, which does not know %s", c->version,
                   c->env->prefix, c->cuda, gp_nvidia_gpu_words(exam, &nv->gpus[0]));
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW);
    gp_exam_why(exam, "CUDA 11 is the first for this GPU. Older builds seem to hang for minutes, "
                      "and operations fail in cuBLAS or cuDNN, or give wrong results.");
    propose_newer(exam, c->env, c->version, nv);
    return true;
}

/* conda's builds have "gpu", "cuda" or no GPU in their name:
 * "tensorflow-2.12.0-mkl_py311h34a0fa1_0".
 */
static bool is_conda_cpu(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_nvidia *nv)
{
    static const char first[] = "2.6"; /* of conda-forge's builds for GPUs */
    const struct gp_pypackage *base = gp_pyenv_package(env, "tensorflow-base");
    const char *build = base && base->is_conda ? strrchr(base->entry, '-') : NULL;
    if (!build || !env->is_active || gp_pyenv_package(env, "tensorflow-gpu") ||
        (strncmp(build, "-mkl_", 5) != 0 && strncmp(build, "-eigen_", 7) != 0 &&
         strncmp(build, "-cpu_", 5) != 0))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "TensorFlow %s in %s is a build without GPU support",
                   base->version, env->prefix);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/conda-meta", env->prefix), "%s", base->entry);
    gp_exam_why(exam, "conda has several builds of each version, and chose one for the CPU.");
    const char *program = gp_conda_program(exam, env), *prefix = gp_exam_quoted(exam, env->prefix);
    bool is_old = gp_version_compare(base->version, first) < 0; /* conda's own are for CUDA 10 */
    if (is_old && count_newer(nv) > 0)
        propose_newer(exam, env, base->version, nv);
    else if (is_old)
        gp_exam_command(exam, "the same version for GPUs", "%s install -p %s tensorflow-gpu=%s",
                        program, prefix, base->version);
    else
        gp_exam_command(exam, "the build for GPUs",
                        "%s install -p %s -c conda-forge 'tensorflow=*=cuda*'", program, prefix);
    return true;
}

void gp_check_tensorflow(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_case *cases = gp_arena_alloc(&exam->arena, GP_PYENVS, sizeof(*cases));
    struct gp_nvidia nv;
    struct tensorflow tf;
    char path[GP_PATH_SIZE];
    size_t count = 0;
    gp_nvidia_read(&nv, exam);
    gp_cuda_use_compat(exam, &nv);
    for (size_t i = 0; cases && i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        const struct gp_pypackage *package = gp_tensorflow_package(env);
        if (is_conda_cpu(exam, env, &nv) || !package ||
            !gp_pyenv_path(env, build_info_of(exam, env), path))
            continue;
        read_tensorflow(exam, env, package, &tf);
        struct gp_case *c = &cases[count++];
        *c = (struct gp_case){.env = env,
                              .framework = GP_FRAMEWORK_TENSORFLOW,
                              .version = package->version,
                              .cuda = gp_exam_text(exam, "%s", tf.cuda),
                              .archs = gp_exam_text(exam, "%s", tf.archs),
                              .archs_where = "table of builds"};
        const char *text = gp_pyenv_text(exam, env, build_info_of(exam, env));
        c->where = *text ? gp_exam_text(exam, "%s", path) : env->site;
        if (strstr(text, "cuda_compute_capabilities"))
            c->archs_where = c->where;
        c->seen = tf.cuda[0] ? gp_exam_text(exam, "TensorFlow %s for CUDA %s, cuDNN %s", c->version,
                                            tf.cuda, tf.cudnn)
                             : gp_exam_text(exam, "TensorFlow %s for the CPU", c->version);
        if (tf.cuda[0])
            gp_case_judge(c, &nv);
        else
            c->trouble = GP_TROUBLE_CPU_ONLY;
        bool is_unknown = c->trouble == GP_TROUBLE_UNKNOWN; /* only which GPUs it has code for */
        if (tf.cuda[0] &&
            (is_unknown || (c->trouble == GP_TROUBLE_NONE && !report_only_ptx(exam, c, &nv))) &&
            !report_old_cuda(exam, c, &nv))
            gp_check_tensorflow_libraries(exam, c, tf.cudnn);
    }
    gp_cases_report(exam, &nv, cases, count);
    gp_cases_report_well(exam, GP_FRAMEWORK_TENSORFLOW, cases, count);
}
