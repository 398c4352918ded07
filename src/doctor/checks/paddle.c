/* PaddlePaddle and the libraries of CUDA, which its packages before 3.0 do not bring. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct paddle {
    const struct gp_pyenv *env;
    const struct gp_pypackage *package;
    unsigned cuda, cudnn; /* the major versions that it is built for */
};

/* "2.3.1.post112" is for CUDA 11.2; PyPI's builds before 2.5 are for 10.2, and those from 3.0 on
 * bring their CUDA. 0: unknown. */
static unsigned cuda_of_version(const char *version)
{
    const char *post = strstr(version, ".post");
    if (post)
        return (unsigned)strtoul(post + 5, NULL, 10) / 10;
    return gp_version_compare(version, "2.5") < 0   ? 10
           : gp_version_compare(version, "3.0") < 0 ? 11
                                                    : 0;
}

/* False: there is none, or it brings its libraries. */
static bool read_paddle(struct gp_exam *exam, const struct gp_pyenv *env, struct paddle *ret)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "paddlepaddle-gpu");
    char cuda[16] = "", cudnn[16] = "", wheels[8] = "";
    if (!package || package->is_conda)
        return false;
    const char *text = gp_pyenv_text(exam, env, "paddle/version/__init__.py");
    (void)gp_python_value(text, "with_pip_cuda_libraries", wheels, sizeof(wheels));
    (void)gp_python_version(text, "cuda_version", cuda, sizeof(cuda));
    (void)gp_python_version(text, "cudnn_version", cudnn, sizeof(cudnn));
    *ret = (struct paddle){.env = env, .package = package};
    ret->cuda = cuda[0] ? gp_version_major(cuda) : cuda_of_version(package->version);
    ret->cudnn = cudnn[0] ? gp_version_major(cudnn) : ret->cuda == 10 ? 7 : 8;
    return ret->cuda >= 10 && strcmp(wheels, "ON") != 0;
}

/* ---- which build ---- */

enum {
    BLACKWELL = 100
}; /* the compute capability from which on only the builds for CUDA 12.9 run */

static const struct gp_nvidia_gpu *blackwell(const struct gp_nvidia *nv)
{
    for (size_t i = 0; i < nv->count; i++)
        if (nv->gpus[i].capability >= BLACKWELL)
            return &nv->gpus[i];
    return NULL;
}

const char *gp_paddle_index(struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    bool is_12 = !nv.driver[0] || gp_driver_reaches(nv.driver, gp_cuda_floor("12"));
    return gp_exam_text(exam, " -i https://www.paddlepaddle.org.cn/packages/stable/%s/",
                        blackwell(&nv) ? "cu129"
                        : is_12        ? "cu126"
                                       : "cu118");
}

static const char *newest_package(struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    return gp_exam_text(exam, "'paddlepaddle-gpu>=%s'%s", blackwell(&nv) ? "3.2" : "3",
                        gp_paddle_index(exam));
}

void gp_paddle_install(struct gp_exam *exam, const struct gp_pyenv *env, const char *version)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    const char *same =
        gp_exam_text(exam, "paddlepaddle-gpu==%.*s", (int)strcspn(version, "+-"), version);
    if (blackwell(&nv)) {
        gp_exam_pip(exam, env, GP_PIP_ADD, "the build for this GPU", newest_package(exam));
    } else if (gp_version_major(version) >= 3) {
        gp_exam_pip(exam, env, GP_PIP_ADD, "the build for GPUs, which PyPI does not have",
                    gp_exam_text(exam, "%s%s", same, gp_paddle_index(exam)));
    } else {
        gp_exam_pip(exam, env, GP_PIP_ADD, "the build for GPUs", same);
        gp_exam_advice(exam,
                       "it needs the libraries of CUDA %u and cuDNN, which it does not contain",
                       cuda_of_version(version));
        gp_exam_pip(exam, env, GP_PIP_ADD, "or Paddle 3, which brings its CUDA and cuDNN",
                    newest_package(exam));
    }
}

/* A build for an older CUDA than 12.8 has neither code nor PTX for Blackwell. */
static bool check_blackwell(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char first[] = "12.8", mended[] = "3.2";
    const struct gp_pypackage *package = gp_pyenv_package(env, "paddlepaddle-gpu");
    struct gp_nvidia nv;
    char cuda[16] = "";
    gp_nvidia_read(&nv, exam);
    const struct gp_nvidia_gpu *gpu = blackwell(&nv);
    if (!package || package->is_conda || !gpu)
        return false;
    const char *text = gp_pyenv_text(exam, env, "paddle/version/__init__.py");
    bool is_stated = gp_python_version(text, "cuda_version", cuda, sizeof(cuda)) && cuda[0];
    unsigned major = cuda_of_version(package->version);
    const char *built = is_stated ? gp_exam_text(exam, "%s", cuda)
                        : major   ? gp_exam_text(exam, "%u", major)
                                  : "";
    if (!built[0] || strcmp(built, "False") == 0 || gp_version_compare(built, first) >= 0)
        return false;
    gp_exam_report(exam, gp_pyenv_verdict(env, false), "Paddle %s in %s has no kernels for %s",
                   package->version, env->prefix, gp_nvidia_gpu_words(exam, gpu));
    gp_exam_evidence(exam, env->site, "%s: for CUDA %s", package->entry, built);
    gp_exam_why(
        exam,
        "\"Mismatched GPU Architecture: The installed PaddlePaddle package was compiled for "
        "…, but your current GPU is %u\".",
        gpu->capability);
    bool is_newer = gp_version_compare(package->version, mended) < 0;
    gp_exam_pip(exam, env, is_newer ? GP_PIP_ADD : GP_PIP_AGAIN, "the build for this GPU",
                newest_package(exam));
    gp_exam_link(exam, "https://github.com/PaddlePaddle/Paddle/issues/76037");
    return true;
}

/* ---- names without a number ---- */

/* What it opens when it is first used, by a name without a number, the folder of NVIDIA's package
 * of it, and the variables that can name another folder. */
static const struct opened {
    const char *name, *title, *wheel, *flags[2];
} opened[] = {
    {"libcudnn.so", "cuDNN", "nvidia/cudnn/lib", {"FLAGS_cudnn_dir"}},
    {"libcublas.so", "cuBLAS", "nvidia/cublas/lib", {"FLAGS_cublas_dir", "FLAGS_cuda_dir"}},
};

/* Whether a file is the library: by the name itself, or with a number. */
static bool is_library(const char *file, const char *name, bool has_number)
{
    size_t n = strlen(name);
    return has_number ? strncmp(file, name, n) == 0 && file[n] == '.' &&
                            isdigit((unsigned char)file[n + 1])
                      : strcmp(file, name) == 0;
}

/* The library in a folder; the shortest of several names. NULL: none. */
static const char *library_in(struct gp_exam *exam, const char *folder, const char *name,
                              bool has_number)
{
    const char *found = NULL;
    char **files;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &files);
    for (long i = 0; i < n; i++)
        if (is_library(files[i], name, has_number) && (!found || strlen(files[i]) < strlen(found)))
            found = files[i];
    return found ? gp_exam_text(exam, "%s/%s", folder, found) : NULL;
}

/* Where it looks: as the loader does, and in this folder. Its own library has a run path, so that
 * the one of conda's Python does not count. */
static const char *reached(struct gp_exam *exam, const struct gp_ldcache *cache, const char *name,
                           bool has_number)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH"), *found = NULL, *own;
    char folder[GP_PATH_SIZE];
    while (!found && gp_search_path_next(&list, ":;", folder))
        found = folder[0] == '/' ? library_in(exam, folder, name, has_number) : NULL;
    for (size_t i = 0; !found && i < cache->count; i++)
        if (is_library(gp_ldcache_at(cache, i).name, name, has_number))
            found = gp_ldcache_at(cache, i).path;
    for (size_t i = 0; !found && i < 3 && (own = gp_system_folder(exam, i)); i++)
        found = library_in(exam, own, name, has_number);
    return found ? found : library_in(exam, "/usr/local/cuda/lib64", name, has_number);
}

/* Whether it opens the library, as far as that is known. */
static bool is_opened(struct gp_exam *exam, const struct gp_ldcache *cache,
                      const struct opened *library)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(library->flags) && library->flags[i]; i++)
        if (gp_machine_variable(&exam->machine, library->flags[i]))
            return true;
    return reached(exam, cache, library->name, false);
}

/* The library in a place where it does not look; NULL: none is known. */
static const char *elsewhere(struct gp_exam *exam, const struct paddle *paddle,
                             const struct opened *library, bool has_number)
{
    const char *const folders[] = {
        gp_exam_text(exam, "%s/lib", paddle->env->prefix),
        gp_exam_text(exam, "%s/%s", paddle->env->site, library->wheel),
        gp_library_unpacked(exam, library->name),
    };
    const char *found = NULL;
    for (size_t i = 0; !found && i < GP_ARRAY_LEN(folders); i++)
        if (folders[i])
            found = library_in(exam, folders[i], library->name, has_number);
    return found;
}

/* The name that it opens, as a link; and where the loader must look. */
static void mend_name(struct gp_exam *exam, const struct gp_pyenv *env, const char *path,
                      const char *name, bool is_reached)
{
    const char *slash = strrchr(path, '/');
    const char *folder = gp_exam_text(exam, "%.*s", (int)(slash - path), path);
    const char *quoted = gp_exam_quoted(exam, folder);
    bool is_of_conda = env->kind == GP_PYENV_CONDA &&
                       strcmp(folder, gp_exam_text(exam, "%s/lib", env->prefix)) == 0 &&
                       strcmp(gp_conda_program(exam, env), "conda") == 0;
    if (strcmp(slash + 1, name) != 0)
        gp_exam_command(exam, "the name that it opens", "%sln -s %s %s/%s",
                        is_reached ? "sudo " : "", gp_exam_quoted(exam, slash + 1), quoted, name);
    if (is_reached)
        return;
    if (is_of_conda)
        gp_conda_set(exam, env, "LD_LIBRARY_PATH", quoted);
    else
        gp_exam_command(exam, "also in the shell's startup file",
                        "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", quoted);
}

/* The names that are still missing after the first one. */
static void mend_others(struct gp_exam *exam, const struct paddle *paddle,
                        const struct gp_ldcache *cache, size_t first)
{
    for (size_t i = first + 1; i < GP_ARRAY_LEN(opened); i++) {
        const char *name = opened[i].name;
        const char *path =
            is_opened(exam, cache, &opened[i]) ? NULL : reached(exam, cache, name, true);
        if (path)
            mend_name(exam, paddle->env, path, name, true);
    }
}

/* Newer packages bring their libraries. */
static void propose_3(struct gp_exam *exam, const struct paddle *paddle)
{
    gp_exam_pip(exam, paddle->env, GP_PIP_ADD, "or Paddle 3, which brings its CUDA and cuDNN",
                newest_package(exam));
}

static void report_unreached(struct gp_exam *exam, const struct paddle *paddle,
                             const struct opened *library, const char *path, bool is_reached)
{
    const char *number = strstr(path, ".so.");
    unsigned major = number ? gp_version_major(number + 4) : 0;
    gp_exam_report(exam, gp_pyenv_verdict(paddle->env, false),
                   "Paddle %s in %s does not find %s, although %s is installed",
                   paddle->package->version, paddle->env->prefix, library->name, library->title);
    gp_exam_evidence(exam, paddle->env->site, "%s: for CUDA %u and cuDNN %u",
                     paddle->package->entry, paddle->cuda, paddle->cudnn);
    gp_exam_evidence(exam, path, "%s",
                     is_reached ? "present, but not under the name that it opens"
                                : "present, but the loader does not look there");
    gp_exam_why(exam,
                "\"The third-party dynamic library (%s) that Paddle depends on is not configured "
                "correctly\".",
                library->name);
    mend_name(exam, paddle->env, path, library->name, is_reached);
    if (strcmp(library->title, "cuDNN") == 0 && major > 0 && major != paddle->cudnn)
        propose_3(exam, paddle);
}

static void report_no_cudnn(struct gp_exam *exam, const struct paddle *paddle)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "Paddle %s in %s needs cuDNN %u, but none is installed",
                   paddle->package->version, paddle->env->prefix, paddle->cudnn);
    gp_exam_evidence(exam, paddle->env->site, "%s: for CUDA %u", paddle->package->entry,
                     paddle->cuda);
    gp_exam_evidence(exam, "libcudnn.so", "not in any library directory");
    gp_exam_why(exam, "\"The third-party dynamic library (libcudnn.so) that Paddle depends on is "
                      "not configured correctly\".");
    gp_exam_advice(exam,
                   "install cuDNN %u for CUDA %u, next to the toolkit, and have LD_LIBRARY_PATH "
                   "lead to it",
                   paddle->cudnn, paddle->cuda);
    if (gp_version_major(paddle->package->version) < 3)
        propose_3(exam, paddle);
}

/* Whether a library that it opens is not found, which is reported. */
static bool check_names(struct gp_exam *exam, const struct paddle *paddle)
{
    struct gp_ldcache cache = {.count = 0};
    if (gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0)
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(opened); i++) {
        const struct opened *library = &opened[i];
        if (is_opened(exam, &cache, library))
            continue;
        const char *path = reached(exam, &cache, library->name, true);
        bool is_reached = path;
        for (int has_number = 0; !path && has_number < 2; has_number++)
            path = elsewhere(exam, paddle, library, has_number);
        if (path) {
            report_unreached(exam, paddle, library, path, is_reached);
            mend_others(exam, paddle, &cache, i);
        } else if (i == 0) {
            report_no_cudnn(exam, paddle);
        }
        if (path || i == 0)
            return true;
    }
    return false;
}

/* ---- another CUDA ---- */

/* Up to 2.5, its library is linked with CUDA's runtime. */
static bool is_linked(const struct paddle *paddle)
{
    return gp_version_compare(paddle->package->version, "2.6") < 0;
}

static void report_other_cuda(struct gp_exam *exam, const struct paddle *paddle, const char *other)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Paddle %s in %s is for CUDA %u, but only CUDA %s is installed",
                   paddle->package->version, paddle->env->prefix, paddle->cuda, other);
    gp_exam_evidence(exam, paddle->env->site, "%s", paddle->package->entry);
    if (is_linked(paddle))
        gp_exam_why(exam,
                    "The import fails with \"libcudart.so.%s: cannot open shared object "
                    "file\".",
                    paddle->cuda == 10   ? "10.2"
                    : paddle->cuda == 11 ? "11.0"
                                         : "12");
    else
        gp_exam_why(exam, "It opens CUDA's libraries by names without a number, and gets others "
                          "than it was built for: operations can fail.");
    gp_exam_advice(exam,
                   "install the build for CUDA %u (such as paddlepaddle-gpu==2.6.2.post%u) "
                   "from Paddle's own index, which its page names",
                   gp_version_major(other), gp_version_major(other) == 12 ? 120U : 117U);
    gp_exam_link(exam, "https://www.paddlepaddle.org.cn/install/quick");
}

void gp_check_paddle(struct gp_exam *exam, const struct gp_pyenv *env)
{
    struct paddle paddle;
    const char *other;
    if (check_blackwell(exam, env) || !read_paddle(exam, env, &paddle))
        return;
    bool is_other = gp_cuda_is_only_other(exam, env, paddle.cuda, &other);
    if (is_other && is_linked(&paddle))
        report_other_cuda(exam, &paddle, other);
    else if (!check_names(exam, &paddle) && is_other)
        report_other_cuda(exam, &paddle, other);
}
