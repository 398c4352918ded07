/* Packages that need a library or a GPU that the machine does not have. */
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/framework.h"
#include "doctor/ldcache.h"
#include "doctor/searchpath.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* ---- cuDNN ---- */

/* Packages without a cuDNN of their own, by version: the last row that is not newer counts. From
 * their release notes. */
static const struct {
    const char *name, *title, *version;
    unsigned cuda, cudnn; /* major versions */
} users[] = {
    {"onnxruntime-gpu", "ONNX Runtime", "1.8", 11, 8},
    {"onnxruntime-gpu", "ONNX Runtime", "1.19", 12, 9},
    {"ctranslate2", "CTranslate2", "3.0", 11, 8},
    {"ctranslate2", "CTranslate2", "4.0", 12, 8},
    {"ctranslate2", "CTranslate2", "4.5", 12, 9},
};

/* 9 of "libcudnn.so.9"; 0: another name. */
static unsigned cudnn_of(const char *name)
{
    static const char start[] = "libcudnn.so.";
    return strncmp(name, start, sizeof(start) - 1) == 0
               ? (unsigned)strtoul(name + sizeof(start) - 1, NULL, 10)
               : 0;
}

/* Whether a directory has the library; of the others it notes the major version. */
static bool is_in(struct gp_exam *exam, const char *folder, unsigned wanted, unsigned *ret_other)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    bool is_found = false;
    for (long i = 0; i < n; i++) {
        unsigned have = cudnn_of(names[i]);
        is_found = is_found || have == wanted;
        *ret_other = have && have != wanted ? have : *ret_other;
    }
    return is_found;
}

/* Whether the loader finds this cuDNN for a program of the environment; false also if that is
 * unknown, with *ret_is_known. */
static bool has_cudnn(struct gp_exam *exam, const struct gp_pyenv *env, unsigned wanted,
                      unsigned *ret_other, bool *ret_is_known)
{
    const char *const folders[] = {gp_exam_text(exam, "%s/nvidia/cudnn/lib", env->site),
                                   gp_exam_text(exam, "%s/torch/lib", env->site),
                                   gp_exam_text(exam, "%s/lib", env->prefix)};
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    struct gp_ldcache cache = {.count = 0};
    bool is_found = false;
    *ret_is_known = gp_ldcache_read(&cache, &exam->files, &exam->arena) == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        is_found = is_in(exam, folders[i], wanted, ret_other) || is_found;
    while (gp_search_path_next(&list, ":;", folder))
        is_found = (folder[0] == '/' && is_in(exam, folder, wanted, ret_other)) || is_found;
    for (size_t i = 0; *ret_is_known && i < cache.count; i++) {
        unsigned have = cudnn_of(gp_ldcache_at(&cache, i).name);
        is_found = is_found || have == wanted;
        *ret_other = have && have != wanted ? have : *ret_other;
    }
    return is_found || gp_pyenv_package_like(env, "nvidia-cudnn-cu") ||
           gp_pyenv_package(env, "cudnn");
}

static void check_cudnn(struct gp_exam *exam, const struct gp_pyenv *env)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(users); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, users[i].name);
        bool is_last =
            i + 1 == GP_ARRAY_LEN(users) || strcmp(users[i + 1].name, users[i].name) != 0;
        unsigned other = 0;
        bool is_known;
        if (!package || package->is_conda ||
            gp_version_compare(package->version, users[i].version) < 0 ||
            (!is_last && gp_version_compare(package->version, users[i + 1].version) >= 0) ||
            has_cudnn(exam, env, users[i].cudnn, &other, &is_known) || !(is_known || other))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s %s in %s needs cuDNN %u, but %s", users[i].title,
                       package->version, env->prefix, users[i].cudnn,
                       other ? gp_exam_text(exam, "only cuDNN %u is installed", other)
                             : "none is installed");
        gp_exam_evidence(exam, env->site, "%s: for CUDA %u and cuDNN %u", package->entry,
                         users[i].cuda, users[i].cudnn);
        gp_exam_evidence(exam, gp_exam_text(exam, "libcudnn.so.%u", users[i].cudnn),
                         "not in any library directory");
        gp_exam_why(exam,
                    "It stops with \"libcudnn.so.%u: cannot open shared object file\", or "
                    "computes on the CPU without a word.",
                    users[i].cudnn);
        gp_exam_pip(exam, env, GP_PIP_ADD, "its libraries as packages",
                    gp_exam_text(exam, "'nvidia-cudnn-cu%u==%u.*' nvidia-cublas-cu%u",
                                 users[i].cuda, users[i].cudnn, users[i].cuda));
        gp_exam_command(exam, "and let the loader find them",
                        "export LD_LIBRARY_PATH=%s/nvidia/cudnn/lib:%s/nvidia/cublas/lib",
                        gp_exam_quoted(exam, env->site), gp_exam_quoted(exam, env->site));
        if (other)
            gp_exam_advice(exam, "or use a version of %s for cuDNN %u", users[i].title, other);
    }
}

/* ---- GPUs ---- */

/* The oldest GPUs that packages have kernels for, from their documentation. */
static const struct {
    const char *name, *title, *version; /* from this version on */
    unsigned capability;
} needs[] = {
    {"vllm", "vLLM", "0", 70},
    {"flash-attn", "FlashAttention 2", "2.0", 80},
};

static void check_gpu(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(needs); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, needs[i].name);
        const struct gp_nvidia_gpu *old = NULL;
        size_t usable = 0;
        for (size_t k = 0; k < nv->count; k++)
            if (nv->gpus[k].capability == 0 || nv->gpus[k].capability >= needs[i].capability)
                usable++;
            else
                old = &nv->gpus[k];
        if (!package || !old || usable > 0 ||
            gp_version_compare(package->version, needs[i].version) < 0)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s in %s does not support %s", needs[i].title,
                       env->prefix, gp_nvidia_gpu_words(exam, old));
        gp_exam_evidence(exam, env->site, "%s", package->entry);
        gp_exam_why(exam, "It has kernels for GPUs of compute capability %u.%u and newer.",
                    needs[i].capability / 10, needs[i].capability % 10);
        gp_exam_advice(exam, "use it on a newer GPU, or a program without it on this one");
    }
}

/* ---- conda's CUDA ---- */

/* conda's package of CUDA's libraries, which programs without a CUDA of their own use. */
static void check_toolkit(struct gp_exam *exam, const struct gp_pyenv *env,
                          const struct gp_nvidia *nv)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "cudatoolkit");
    if (!package)
        package = gp_pyenv_package(env, "cuda-version");
    const char *floor = package && package->is_conda ? gp_cuda_floor(package->version) : "";
    struct gp_torch torch;
    if (!floor[0] || !nv->driver[0] || gp_driver_reaches(nv->driver, floor) ||
        gp_pyenv_torch(exam, env, &torch)) /* which another check judges */
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "CUDA %s in %s needs driver %s or newer; this machine has %s", package->version,
                   env->prefix, floor, nv->driver);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/conda-meta", env->prefix), "%s", package->entry);
    gp_exam_why(exam, "Programs that use it fail with \"CUDA driver version is insufficient for "
                      "CUDA runtime version\".");
    gp_exam_command(exam, "the newest that this driver has", "conda install -p %s %s=%s",
                    gp_exam_quoted(exam, env->prefix), package->name, gp_cuda_ceiling(nv->driver));
    gp_exam_advice(exam, "or keep it, and:");
    gp_nvidia_update_driver(exam, floor);
}

void gp_check_python_needs(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_nvidia *nv)
{
    check_toolkit(exam, env, nv);
    check_cudnn(exam, env);
    check_gpu(exam, env, nv);
}
