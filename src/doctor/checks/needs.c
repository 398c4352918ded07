/* Packages that need a library or a GPU that the machine does not have. */
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
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

/* ---- a missing cuDNN ---- */

static void check_cudnn(struct gp_exam *exam, const struct gp_pyenv *env)
{
    enum { FIRST_WITHOUT_NUMBER = 13 }; /* CUDA in the names of its packages */
    for (size_t i = 0; i < GP_ARRAY_LEN(users); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, users[i].name);
        bool is_last =
            i + 1 == GP_ARRAY_LEN(users) || strcmp(users[i + 1].name, users[i].name) != 0;
        const char *installed;
        unsigned other = 0;
        bool is_known, is_onnx = strcmp(users[i].name, "onnxruntime-gpu") == 0;
        unsigned cuda =
            package && is_onnx ? gp_onnx_cuda(exam, env, package->version) : users[i].cuda;
        if (!package || package->is_conda ||
            gp_version_compare(package->version, users[i].version) < 0 ||
            (!is_last && gp_version_compare(package->version, users[i + 1].version) >= 0) ||
            gp_cudnn_is_found(exam, env, users[i].cudnn, &other, &is_known) ||
            !(is_known || other) ||
            (gp_cuda_is_only_other(exam, env, cuda, &installed) &&
             gp_version_major(installed) >= 11))
            continue; /* with another CUDA, which is reported, its cuDNN is no help */
        gp_exam_report(exam, GP_VERDICT_WARN, "%s %s in %s needs cuDNN %u, but %s", users[i].title,
                       package->version, env->prefix, users[i].cudnn,
                       other ? gp_exam_text(exam, "only cuDNN %u is installed", other)
                             : "none is installed");
        gp_exam_evidence(exam, env->site, "%s: for CUDA %u and cuDNN %u", package->entry, cuda,
                         users[i].cudnn);
        gp_exam_evidence(exam, gp_exam_text(exam, "libcudnn.so.%u", users[i].cudnn),
                         "not in any library directory");
        gp_exam_why(exam,
                    "It stops with \"libcudnn.so.%u: cannot open shared object file\", or "
                    "computes on the CPU without a word.",
                    users[i].cudnn);
        const char *others;
        if (is_onnx && cuda < FIRST_WITHOUT_NUMBER && !gp_cuda_is_found(exam, env, cuda, &others)) {
            gp_onnx_install_cuda(exam, env, cuda, users[i].cudnn);
            continue;
        }
        gp_exam_pip(exam, env, GP_PIP_ADD, "its libraries as packages",
                    gp_exam_text(exam, "'nvidia-cudnn-cu%u==%u.*' %s", cuda, users[i].cudnn,
                                 cuda < FIRST_WITHOUT_NUMBER
                                     ? gp_exam_text(exam, "nvidia-cublas-cu%u", cuda)
                                     : gp_exam_text(exam, "'nvidia-cublas==%u.*'", cuda)));
        gp_exam_command(exam, "and let the loader find them",
                        "export LD_LIBRARY_PATH=%s/nvidia/cudnn/lib:%s/nvidia/%s/lib"
                        "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                        gp_exam_quoted(exam, env->site), gp_exam_quoted(exam, env->site),
                        cuda < FIRST_WITHOUT_NUMBER ? "cublas" : gp_exam_text(exam, "cu%u", cuda));
        if (other)
            gp_exam_advice(exam, "or use a version of %s for cuDNN %u", users[i].title, other);
    }
}

/* The number of CUDA for which a package of cuDNN is built, "8.8.0.121-1+cuda12.0"; 0: unknown. */
static unsigned cuda_of_cudnn(const struct gp_package *package)
{
    static const char mark[] = "cuda";
    const char *found = strstr(package->version, mark);
    return found ? (unsigned)strtoul(found + sizeof(mark) - 1, NULL, 10) : 0;
}

/* What uses the system's cuDNN in an environment that has none of its own, and the CUDA that it is
 * for; NULL: nothing. */
static const struct gp_pypackage *user_of_cudnn(const struct gp_pyenv *env, unsigned *ret_cuda)
{
    static const char mark[] = "+cuda";
    static const struct {
        const char *name, *first_11, *first_12; /* versions, by CUDA */
    } names[] = {{"tensorflow", "2.4", "2.15"},
                 {"tensorflow-gpu", "2.4", "2.15"},
                 {"onnxruntime-gpu", "1.7", "1.19"},
                 {"ctranslate2", "3.0", "4.0"}};
    const struct gp_pypackage *package = gp_pyenv_package(env, "jaxlib");
    const char *found = package ? strstr(package->version, mark) : NULL;
    if (env->has_torch || gp_pyenv_package_like(env, "nvidia-cudnn") ||
        gp_pyenv_package(env, "cudnn"))
        return NULL;
    *ret_cuda = found ? (unsigned)strtoul(found + sizeof(mark) - 1, NULL, 10) : 0;
    if (*ret_cuda)
        return package;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        package = gp_pyenv_package(env, names[i].name);
        if (!package || package->is_conda ||
            gp_version_compare(package->version, names[i].first_11) < 0)
            continue;
        *ret_cuda = gp_version_compare(package->version, names[i].first_12) < 0 ? 11 : 12;
        return package;
    }
    return NULL;
}

/* Whether the loader finds cuDNN before it comes to the directory of the system's package. */
static bool has_cudnn_before_package(struct gp_exam *exam, const struct gp_pyenv *env,
                                     unsigned major)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH"), *system;
    char folder[GP_PATH_SIZE];
    unsigned other = 0;
    while (gp_search_path_next(&list, ":;", folder)) {
        if (folder[0] != '/' || !gp_cudnn_is_in(exam, folder, major, &other))
            continue;
        for (size_t i = 0; (system = gp_system_folder(exam, i)); i++)
            if (strcmp(folder, system) == 0)
                return false;
        return true;
    }
    return gp_cudnn_is_in(exam, gp_exam_text(exam, "%s/lib", env->prefix), major, &other);
}

/* A package of cuDNN for another CUDA than the one that is installed. */
static void check_cudnn_package(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const words[] = {"libcudnn", NULL};
    unsigned have = 0, cuda = 0;
    const struct gp_pypackage *user = user_of_cudnn(env, &have);
    struct gp_package *packages;
    const char *other, *list = "";
    long count = user ? gp_packages_read(&exam->files, &exam->arena, words, &packages) : 0;
    for (long i = 0; i < count; i++) {
        const struct gp_package *p = &packages[i];
        unsigned built = strcmp(p->state, "installed") == 0 ? cuda_of_cudnn(p) : 0;
        if (built < 11 || !gp_cuda_is_only_other(exam, env, built, &other) ||
            gp_version_major(other) != have ||
            has_cudnn_before_package(exam, env, gp_version_major(p->version)))
            continue;
        if (!cuda)
            gp_exam_report(exam, gp_pyenv_verdict(env, true),
                           "cuDNN is installed for CUDA %u, but only CUDA %s is there, and %s in "
                           "%s uses both",
                           built, other, user->name, env->prefix);
        gp_exam_evidence(exam, "package", "%s %s", p->name, p->version);
        /* A trailing * makes apt compare with the text before it, other wildcards and all. */
        list = gp_exam_text(exam, "%s '%s=%u.*+cuda%u.*[0-9]'", list, p->name,
                            gp_version_major(p->version), have);
        cuda = built;
    }
    if (!cuda)
        return;
    gp_exam_evidence(exam, gp_exam_text(exam, "libcublasLt.so.%u", cuda),
                     "not in any library directory");
    gp_exam_evidence(exam, env->site, "%s", user->entry);
    gp_exam_why(exam, "cuDNN loads it: \"Could not load library libcublasLt.so.%u\".", cuda);
    if (gp_files_exist(&exam->files, "/var/lib/dpkg/status"))
        gp_exam_command(exam, "the build of cuDNN for the CUDA that is installed",
                        "sudo apt-get install --allow-downgrades%s", list);
    else
        gp_exam_advice(exam, "install the build of cuDNN for CUDA %u", have);
}

/* ---- another CUDA ---- */

/* The major version of CUDA whose libraries a package loads; 0: none, or unknown. */
static unsigned cuda_wanted(const struct gp_pypackage *package)
{
    static const char mxnet[] = "mxnet-cu";
    if (strcmp(package->name, "ctranslate2") == 0)
        return gp_version_compare(package->version, "3.0") < 0   ? 0
               : gp_version_compare(package->version, "4.0") < 0 ? 11
                                                                 : 12;
    unsigned cuda = strncmp(package->name, mxnet, sizeof(mxnet) - 1) == 0
                        ? (unsigned)strtoul(package->name + sizeof(mxnet) - 1, NULL, 10)
                        : 0;
    return cuda >= 100 ? cuda / 10 : 0;
}

static void check_cuda_of(struct gp_exam *exam, const struct gp_pyenv *env,
                          const struct gp_pypackage *package)
{
    unsigned cuda = package->is_conda ? 0 : cuda_wanted(package);
    const char *other;
    bool is_judged = gp_check_linked(exam, env, package);
    if (is_judged || cuda == 0 || !gp_cuda_is_only_other(exam, env, cuda, &other))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "%s %s in %s is for CUDA %u, but only CUDA %s is installed", package->name,
                   package->version, env->prefix, cuda, other);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_evidence(exam, gp_exam_text(exam, "libcublas.so.%u", cuda),
                     "not in any library directory");
    gp_exam_why(exam,
                "\"libcublas.so.%u: cannot open shared object file\", or \"Library "
                "libcublas.so.%u is not found or cannot be loaded\".",
                cuda, cuda);
    if (strcmp(package->name, "ctranslate2") == 0 && cuda == 11)
        gp_exam_pip(exam, env, GP_PIP_ADD, "a version for CUDA 12",
                    gp_ctranslate2_has_old_cudnn(env) ? "--upgrade 'ctranslate2>=4.0,<4.5'"
                                                      : "--upgrade 'ctranslate2>=4.0'");
    else
        gp_exam_advice(exam, "install CUDA %u next to it, and have LD_LIBRARY_PATH lead to it",
                       cuda);
}

/* Whether it loads CUDA's libraries, rather than containing them; if it cannot be read, it does. */
static bool loads_cuda(struct gp_exam *exam, const char *path)
{
    struct gp_elf shared;
    const char *name;
    size_t from = 0;
    if (!gp_elf_read(&shared, &exam->files, &exam->arena, path))
        return true;
    while ((name = gp_elf_needed(&shared, &from)))
        if (strncmp(name, "libcudart", 9) == 0 || strncmp(name, "libcublas", 9) == 0)
            return true;
    return false;
}

/* A build of llama-cpp-python for CUDA has no CUDA of its own, and looks for it only as the loader
 * does. */
static void check_llama(struct gp_exam *exam, const struct gp_pyenv *env)
{
    enum { OLDEST = 11, NEWEST = 13 };
    static const char file[] = "llama_cpp/lib/libggml-cuda.so";
    const struct gp_pypackage *package = gp_pyenv_package(env, "llama-cpp-python");
    struct gp_ldcache cache = {.count = 0};
    char path[GP_PATH_SIZE];
    const char *other;
    if (!package || package->is_conda || env->has_torch || !gp_pyenv_path(env, file, path) ||
        !gp_files_exist(&exam->files, path) || !loads_cuda(exam, path) ||
        gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0)
        return;
    for (unsigned major = OLDEST; major <= NEWEST; major++)
        if (gp_cuda_is_found(exam, env, major, &other) || other[0])
            return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "llama-cpp-python %s in %s is a build for CUDA, which is not installed",
                   package->version, env->prefix);
    gp_exam_evidence(exam, path, "present");
    gp_exam_evidence(exam, "libcudart.so, libcublas.so", "not in any library directory");
    gp_exam_why(exam,
                "The import fails: \"Failed to load shared library\", \"libcudart.so.12: cannot "
                "open shared object file\".");
    gp_exam_pip(exam, env, GP_PIP_ADD, "CUDA's libraries, for a build for CUDA 12",
                "nvidia-cuda-runtime-cu12 nvidia-cublas-cu12");
    gp_exam_command(exam, "and let the loader find them",
                    "export LD_LIBRARY_PATH=%s/nvidia/cuda_runtime/lib:%s/nvidia/cublas/lib"
                    "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                    gp_exam_quoted(exam, env->site), gp_exam_quoted(exam, env->site));
}

static void check_cuda(struct gp_exam *exam, const struct gp_pyenv *env)
{
    for (size_t i = 0; i < env->count; i++)
        check_cuda_of(exam, env, &env->packages[i]);
    check_llama(exam, env);
}

/* ---- NumPy 2 ---- */

/* The first versions that run with NumPy 2; older ones are compiled for NumPy 1. From their release
 * notes. */
static const struct {
    const char *name, *title, *first;
    bool is_imported; /* without NumPy, too */
} for_numpy_2[] = {
    {"torch", "PyTorch", "2.3", true},
    {"tensorflow", "TensorFlow", "2.18", false},
    {"jaxlib", "JAX", "0.4.26", false},
    {"onnxruntime-gpu", "ONNX Runtime", "1.19", false},
};

static void check_numpy(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *numpy = gp_pyenv_package(env, "numpy");
    for (size_t i = 0; numpy && i < GP_ARRAY_LEN(for_numpy_2); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, for_numpy_2[i].name);
        if (gp_version_major(numpy->version) < 2 || !package || package->is_conda ||
            gp_version_compare(package->version, for_numpy_2[i].first) >= 0)
            continue;
        gp_exam_report(exam,
                       for_numpy_2[i].is_imported ? GP_VERDICT_WARN : gp_pyenv_verdict(env, false),
                       "%s %s in %s is for NumPy 1, but NumPy %s is installed",
                       for_numpy_2[i].title, package->version, env->prefix, numpy->version);
        gp_exam_evidence(exam, env->site, "%s, %s", package->entry, numpy->entry);
        if (for_numpy_2[i].is_imported)
            gp_exam_why(exam, "\"A module that was compiled using NumPy 1.x cannot be run in NumPy "
                              "2\": data from NumPy fail with \"Numpy is not available\".");
        else
            gp_exam_why(exam,
                        "The import fails: \"A module that was compiled using NumPy 1.x cannot "
                        "be run in NumPy 2\", \"_ARRAY_API not found\".");
        gp_exam_pip(exam, env, GP_PIP_ADD, "", "'numpy<2'");
        return;
    }
}

/* ---- JAX ---- */

/* The oldest cuDNN for jaxlib: in its version ("0.4.7+cuda11.cudnn86"), or that of its plugin. */
static const char *cudnn_for_jax(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const struct {
        const char *version, *cudnn;
    } plugins[] = {{"0.7.0", "9.8"}, {"0.4.31", "9.1"}};
    const struct gp_pypackage *jaxlib = gp_pyenv_package(env, "jaxlib");
    const struct gp_pypackage *plugin = gp_pyenv_package(env, "jax-cuda12-plugin");
    const char *at = jaxlib ? strstr(jaxlib->version, ".cudnn") : NULL;
    if (at && strspn(at + 6, "0123456789") >= 2)
        return gp_exam_text(exam, "%c.%c", at[6], at[7]);
    for (size_t i = 0; plugin && i < GP_ARRAY_LEN(plugins); i++)
        if (gp_version_compare(plugin->version, plugins[i].version) >= 0)
            return plugins[i].cudnn;
    return "";
}

/* "8.6.0" of the first libcudnn.so.8 in LD_LIBRARY_PATH, and its place; "": none, or unknown. */
static const char *cudnn_on_path(struct gp_exam *exam, const char **ret_place)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE], target[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":;", folder)) {
        char **names;
        long n = folder[0] == '/' ? gp_files_list(&exam->files, &exam->arena, folder, &names) : 0;
        for (long i = 0; i < n; i++) {
            *ret_place = gp_exam_text(exam, "%s/%s", folder, names[i]);
            if (!gp_cudnn_of_name(names[i]) || !gp_files_link(&exam->files, *ret_place, target))
                continue;
            const char *slash = strrchr(target, '/');
            const char *version = gp_library_version(slash ? slash + 1 : target);
            if (strchr(version, '.'))
                return gp_exam_text(exam, "%s", version);
        }
    }
    return "";
}

/* Whether the PyTorch beside it is linked with this cuDNN, so that another one breaks its import.
 */
static bool torch_keeps_cudnn(struct gp_exam *exam, const struct gp_pyenv *env, unsigned major)
{
    const struct gp_pypackage *torch = gp_pyenv_package(env, "torch");
    struct gp_requirement wanted;
    const char *text =
        torch ? gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", torch->entry)) : NULL;
    while (text && (text = gp_requirement_next(text, &wanted)))
        if (strncmp(wanted.name, "nvidia-cudnn-cu", 15) == 0 &&
            gp_version_major(wanted.version) == major)
            return true;
    return false;
}

/* No cuDNN is right for both. */
static void separate_jax(struct gp_exam *exam, const struct gp_pyenv *env, const char *wanted)
{
    const struct gp_pypackage *jax = gp_pyenv_package(env, "jax");
    gp_exam_advice(exam,
                   "keep that cuDNN, which PyTorch in this environment needs, and install JAX into "
                   "one of its own:");
    gp_exam_command(exam, "", "python%s -m venv ~/jax", env->python[0] ? env->python : "3");
    gp_exam_command(exam, "", "~/jax/bin/pip install 'jax[cuda12]%s%s'", jax ? "==" : "",
                    jax ? jax->version : "");
    if (strcmp(wanted, "9.1") == 0)
        gp_exam_advice(exam, "or update PyTorch to 2.4 or newer, which is built with cuDNN 9");
}

static void check_jax(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *jaxlib = gp_pyenv_package(env, "jaxlib");
    const struct gp_pypackage *wheel = gp_pyenv_package_like(env, "nvidia-cudnn-cu");
    const char *wanted = jaxlib && !jaxlib->is_conda ? cudnn_for_jax(exam, env) : "";
    const char *place = "", *version = wanted[0] ? cudnn_on_path(exam, &place) : "";
    bool is_on_path = version[0];
    if (!is_on_path && wheel)
        version = wheel->version;
    if (!wanted[0] || !version[0] ||
        (gp_version_major(version) == gp_version_major(wanted) &&
         gp_version_minor(version) >= gp_version_minor(wanted)))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, true),
                   "JAX %s in %s needs cuDNN %s or newer, but finds cuDNN %s", jaxlib->version,
                   env->prefix, wanted, version);
    gp_exam_evidence(exam, is_on_path ? place : env->site, "cuDNN %s", version);
    gp_exam_evidence(exam, env->site, "%s", jaxlib->entry);
    gp_exam_why(exam, "It reports \"Loaded runtime CuDNN library … but source was compiled with\", "
                      "or falls back to the CPU.");
    if (is_on_path)
        gp_exam_advice(exam, "update that cuDNN, or take its directory out of LD_LIBRARY_PATH");
    const char *cuda = strstr(jaxlib->version, "cuda11") ? "11" : "12";
    if (!is_on_path && gp_version_major(version) != gp_version_major(wanted) &&
        gp_pyenv_package(env, "jax-cuda12-plugin") &&
        torch_keeps_cudnn(exam, env, gp_version_major(version))) {
        separate_jax(exam, env, wanted);
        return;
    }
    gp_exam_pip(exam, env, GP_PIP_ADD, "a cuDNN that is new enough",
                gp_exam_text(exam, "'nvidia-cudnn-cu%s>=%s,<%u'", cuda, wanted,
                             gp_version_major(wanted) + 1));
}

/* ---- GPUs ---- */

/* The oldest GPUs that packages have kernels for, from their documentation. */
static const struct {
    const char *name, *title, *version; /* from this version on */
    unsigned capability;
    const char *instead; /* what works on older ones; NULL: not known */
} needs[] = {
    {"vllm", "vLLM", "0", 70, NULL},
    {"flash-attn", "FlashAttention 2 (flash-attn)", "2.0", 80,
     "do without it on this one: PyTorch's own attention (scaled_dot_product_attention, in "
     "transformers attn_implementation='sdpa') gives the same results, more slowly"},
    {"sageattention", "SageAttention 2", "2.0", 80, NULL},
    {"nunchaku", "Nunchaku", "0", 75, NULL},
    {"sglang", "SGLang", "0.4", 75, NULL},
    {"lmdeploy", "LMDeploy", "0", 70, NULL},
    {"tensorrt", "TensorRT 10", "10.0", 70, NULL},
    {"cudf-cu11", "RAPIDS cuDF", "24.2", 70, NULL},
    {"cudf-cu12", "RAPIDS cuDF", "24.2", 70, NULL},
    {"cuml-cu11", "RAPIDS cuML", "24.2", 70, NULL},
    {"cuml-cu12", "RAPIDS cuML", "24.2", 70, NULL},
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
        gp_exam_advice(exam, "use it on a newer GPU, or %s",
                       needs[i].instead ? needs[i].instead : "a program without it on this one");
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
        gp_pyenv_torch(exam, env, &torch) || /* which another check judges, or RAPIDS */
        gp_python_is_reported(exam, env, "RAPIDS"))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "CUDA %s in %s needs driver %s or newer; this machine has %s", package->version,
                   env->prefix, floor, nv->driver);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/conda-meta", env->prefix), "%s", package->entry);
    gp_exam_why(exam, "Programs that use it fail with \"CUDA driver version is insufficient for "
                      "CUDA runtime version\".");
    gp_exam_command(exam, "the newest that this driver has", "%s install -p %s %s=%s",
                    gp_conda_program(exam, env), gp_exam_quoted(exam, env->prefix), package->name,
                    gp_cuda_ceiling(nv->driver));
    gp_exam_advice(exam, "or keep it, and:");
    gp_driver_fix_at_least(exam, floor);
}

/* ---- ninja ---- */

static bool has_ninja(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const places[] = {"/usr/bin/ninja", "/usr/local/bin/ninja", NULL};
    return gp_pyenv_package(env, "ninja") || gp_files_first(&exam->files, places) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/bin/ninja", env->prefix)) ||
           gp_search_path_program(exam, "ninja");
}

/* What compiles for the GPU when it is first used, and requires the program by its metadata. */
static void check_ninja(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const struct {
        const char *name, *title;
    } users_of_ninja[] = {{"flashinfer-python", "FlashInfer"}, {"deepspeed", "DeepSpeed"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(users_of_ninja); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, users_of_ninja[i].name);
        if (!package || package->is_conda || has_ninja(exam, env))
            continue;
        const char *file = gp_exam_text(exam, "%s/METADATA", package->entry);
        if (!gp_requirement_is_in(gp_pyenv_text(exam, env, file), "ninja"))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s %s in %s requires ninja, which is not installed",
                       users_of_ninja[i].title, package->version, env->prefix);
        gp_exam_evidence(exam, env->site, "%s: Requires-Dist: ninja", package->entry);
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/bin/ninja", env->prefix),
                         "missing, as in PATH");
        gp_exam_why(exam, "It compiles its kernels when they are first used, and stops with \"No "
                          "such file or directory: 'ninja'\".");
        gp_exam_pip(exam, env, GP_PIP_ADD, "", "ninja");
        return;
    }
}

void gp_check_python_needs(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_nvidia *nv)
{
    check_toolkit(exam, env, nv);
    gp_check_onnx_cuda(exam, env);
    check_cuda(exam, env);
    check_cudnn(exam, env);
    check_cudnn_package(exam, env);
    gp_check_ctranslate2(exam, env);
    gp_check_cupy_cuda(exam, env);
    gp_check_paddle(exam, env);
    gp_check_numba(exam, env, nv);
    check_numpy(exam, env);
    check_ninja(exam, env);
    check_jax(exam, env);
    check_gpu(exam, env, nv);
}
