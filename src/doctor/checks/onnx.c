/* ONNX Runtime: the CUDA that its builds are for, and the one that is installed. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <string.h>

enum { FIRST_WITHOUT_NUMBER = 13 }; /* the CUDA whose number the names of packages lack */

/* The number behind a mark in what a release says of its build; 0: unknown. */
static unsigned built_for(struct gp_exam *exam, const struct gp_pyenv *env, const char *mark)
{
    static const char file[] = "onnxruntime/capi/build_and_package_info.py";
    const char *found = strstr(gp_pyenv_text(exam, env, file), mark);
    return found ? gp_version_major(found + strlen(mark)) : 0;
}

/* From PyPI it is 11 before 1.19; builds for CUDA 12 were in another index. */
unsigned gp_onnx_cuda(struct gp_exam *exam, const struct gp_pyenv *env, const char *version)
{
    unsigned major = built_for(exam, env, "cuda_version = '");
    return major ? major : gp_version_compare(version, "1.19") >= 0 ? 12 : 11;
}

/* ---- its libraries as packages ---- */

void gp_onnx_install_cuda(struct gp_exam *exam, const struct gp_pyenv *env, unsigned cuda,
                          unsigned cudnn)
{
    gp_exam_pip(exam, env, GP_PIP_ADD, "its libraries as packages",
                gp_exam_text(exam,
                             "nvidia-cuda-runtime-cu%u nvidia-cublas-cu%u nvidia-cufft-cu%u "
                             "nvidia-curand-cu%u 'nvidia-cudnn-cu%u==%u.*'",
                             cuda, cuda, cuda, cuda, cuda, cudnn));
    gp_exam_add_wheels(exam, env);
}

/* Whether the loader searches packages; /usr/local/nvidia/lib64 in images is the driver's. */
static bool is_wheel_on_path(struct gp_exam *exam)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":;", folder))
        if (strstr(folder, "-packages/nvidia/"))
            return true;
    return false;
}

/* Whether its provider looks into the packages by itself. */
static bool looks_into_wheels(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char file[] = "onnxruntime/capi/libonnxruntime_providers_cuda.so";
    struct gp_elf shared;
    char path[GP_PATH_SIZE];
    return gp_pyenv_path(env, file, path) &&
           gp_elf_read(&shared, &exam->files, &exam->arena, path) &&
           strstr(gp_elf_run_path(&shared), "nvidia");
}

/* The cuDNN that a release is built for. */
static unsigned onnx_cudnn(struct gp_exam *exam, const struct gp_pyenv *env, const char *version)
{
    unsigned major = built_for(exam, env, "cudnn_version = '");
    return major ? major : gp_version_compare(version, "1.19") >= 0 ? 9 : 8;
}

/* One of NVIDIA's packages for a CUDA. From 13 on their names, but for that of cuDNN, are without
 * its number, and they share a folder. */
static const struct gp_pypackage *wheel_of(struct gp_exam *exam, const struct gp_pyenv *env,
                                           const char *part, unsigned cuda)
{
    bool is_numbered = cuda < FIRST_WITHOUT_NUMBER || strcmp(part, "cudnn") == 0;
    return gp_pyenv_package(env, is_numbered ? gp_exam_text(exam, "nvidia-%s-cu%u", part, cuda)
                                             : gp_exam_text(exam, "nvidia-%s", part));
}

/* A library that only one of NVIDIA's packages has. */
struct wheel_part {
    const struct gp_pypackage *wheel;
    const char *name, *folder; /* "libcudnn.so.9", "cudnn"; "cu13" */
    bool is_cudnn;             /* CUDA itself is found elsewhere */
};

/* cuBLAS stands for CUDA. cuDNN is no part of a toolkit, and so may be missing next to one. */
static bool find_wheel(struct gp_exam *exam, const struct gp_pyenv *env, const char *version,
                       struct wheel_part *ret)
{
    unsigned cuda = gp_onnx_cuda(exam, env, version), cudnn = onnx_cudnn(exam, env, version);
    const char *cublas = gp_exam_text(exam, "libcublasLt.so.%u", cuda);
    bool is_cudnn = gp_library_is_loadable(exam, env, cublas);
    const char *part = is_cudnn ? "cudnn" : "cublas";
    const char *folder =
        is_cudnn || cuda < FIRST_WITHOUT_NUMBER ? part : gp_exam_text(exam, "cu%u", cuda);
    const char *name = is_cudnn ? gp_exam_text(exam, "libcudnn.so.%u", cudnn) : cublas;
    *ret = (struct wheel_part){wheel_of(exam, env, part, cuda), name, folder, is_cudnn};
    if (!ret->wheel || !is_cudnn)
        return ret->wheel != NULL;
    return gp_files_exist(&exam->files,
                          gp_exam_text(exam, "%s/nvidia/cudnn/lib/%s", env->site, name)) &&
           !gp_library_is_loadable(exam, env, name);
}

/* Whether the packages are too few for a program that has ONNX Runtime load them, so that the rest
 * is to come from where the loader looks. */
static bool is_partial(struct gp_exam *exam, const struct gp_pyenv *env, unsigned cuda)
{
    static const char *const rest[] = {"cuda-runtime", "cufft", "curand"};
    for (size_t i = 0; i < GP_ARRAY_LEN(rest); i++)
        if (wheel_of(exam, env, rest[i], cuda))
            return false;
    return true;
}

/* It does not look into NVIDIA's packages, unless the program has it do so (from 1.21 on), or loads
 * PyTorch first. */
static void check_wheels(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_pypackage *package)
{
    static const char first[] = "1.21";
    static const char *const calls[] = {"preload_dlls", NULL}, *const uses[] = {"onnxruntime",
                                                                                NULL};
    struct wheel_part part;
    if (env->has_torch || !env->is_active || is_wheel_on_path(exam) ||
        !find_wheel(exam, env, package->version, &part) || looks_into_wheels(exam, env) ||
        gp_project_program(exam, env, calls))
        return;
    unsigned cuda = gp_onnx_cuda(exam, env, package->version);
    bool can_preload = gp_version_compare(package->version, first) >= 0;
    bool is_sure = !can_preload || (part.is_cudnn && is_partial(exam, env, cuda)) ||
                   gp_project_program(exam, env, uses);
    gp_exam_report(exam, is_sure ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "ONNX Runtime %s in %s does not look for %s in NVIDIA's packages",
                   package->version, env->prefix, part.is_cudnn ? "cuDNN" : "CUDA");
    gp_exam_evidence(exam, env->site, "%s, %s", package->entry, part.wheel->entry);
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "does not lead to %s/nvidia/%s/lib", env->site,
                     part.folder);
    gp_exam_why(exam,
                "Its CUDAExecutionProvider is not loaded: \"%s: cannot open shared object file\", "
                "and it computes on the CPU.",
                part.name);
    if (part.is_cudnn) /* the others stay those of the toolkit */
        gp_exam_command(
            exam, "before it starts",
            "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
            gp_exam_quoted(exam, gp_exam_text(exam, "%s/nvidia/%s/lib", env->site, part.folder)));
    else
        gp_exam_add_wheels(exam, env);
    if (can_preload)
        gp_exam_advice(exam, "or call onnxruntime.preload_dlls() in the program, before the first "
                             "session");
}

/* ---- another CUDA ---- */

static bool has_cudnn_8(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *wheel = gp_pyenv_package_like(env, "nvidia-cudnn-cu");
    unsigned other = 0;
    bool is_known;
    return wheel ? gp_version_major(wheel->version) == 8
                 : !gp_cudnn_is_found(exam, env, 9, &other, &is_known) && other == 8;
}

/* Only 1.17 and 1.18 have builds for CUDA 12 and cuDNN 8, in an index of their own. */
static void fix_onnx_11(struct gp_exam *exam, const struct gp_pyenv *env, const char *version)
{
    bool has_both = gp_version_compare(version, "1.17") >= 0;
    if (has_cudnn_8(exam, env)) {
        gp_exam_pip(exam, env, GP_PIP_AGAIN, "the build for CUDA 12 and cuDNN 8",
                    gp_exam_text(exam,
                                 "--no-deps onnxruntime-gpu==%s --index-url "
                                 "https://aiinfra.pkgs.visualstudio.com/PublicPackages/_packaging/"
                                 "onnxruntime-cuda-12/pypi/simple/",
                                 has_both ? version : "1.18.0"));
        gp_exam_advice(exam, "or version 1.19 or newer, which needs cuDNN 9");
    } else {
        gp_exam_pip(exam, env, GP_PIP_ADD, "a version for CUDA 12; it needs cuDNN 9",
                    "'onnxruntime-gpu>=1.19'");
        gp_exam_advice(exam, "or 1.17 or 1.18 for CUDA 12 and cuDNN 8, from the index that its "
                             "page for installation names");
    }
    gp_exam_link(exam, "https://onnxruntime.ai/docs/install/");
}

static void fix_onnx_cuda(struct gp_exam *exam, const struct gp_pyenv *env, unsigned cuda,
                          const char *other)
{
    static const char without[] = "3.13"; /* the first Python without builds for CUDA 11 */
    if (cuda == 12 && gp_version_major(other) == 11 &&
        gp_version_compare(env->python, without) < 0) {
        gp_exam_pip(exam, env, GP_PIP_ADD, "the last version for CUDA 11; it needs cuDNN 8",
                    "'onnxruntime-gpu<1.19'");
        gp_exam_advice(exam, "or keep it, and:");
    }
    if (cuda != 11 && cuda != 12) {
        gp_exam_advice(exam, "install CUDA %u, or a build of ONNX Runtime for CUDA %s", cuda,
                       other);
        return;
    }
    gp_exam_pip(exam, env, GP_PIP_ADD,
                "CUDA's libraries as packages; have LD_LIBRARY_PATH lead to them",
                cuda >= 12 ? "nvidia-cublas-cu12 nvidia-cuda-runtime-cu12 nvidia-cufft-cu12 "
                             "nvidia-curand-cu12 'nvidia-cudnn-cu12==9.*'"
                           : "nvidia-cublas-cu11 nvidia-cuda-runtime-cu11 nvidia-cufft-cu11 "
                             "nvidia-curand-cu11 'nvidia-cudnn-cu11==8.*'");
}

/* A version whose libraries of CUDA have other names is installed. */
static bool report_other_cuda(struct gp_exam *exam, const struct gp_pyenv *env,
                              const struct gp_pypackage *package)
{
    unsigned cuda = gp_onnx_cuda(exam, env, package->version);
    const char *other;
    if (!gp_cuda_is_only_other(exam, env, cuda, &other) || gp_version_major(other) < 11)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "ONNX Runtime %s in %s is for CUDA %u, but only CUDA %s is installed",
                   package->version, env->prefix, cuda, other);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_evidence(exam, gp_exam_text(exam, "libcublasLt.so.%u", cuda),
                     "not in any library directory");
    gp_exam_why(exam, "Its CUDAExecutionProvider cannot be loaded, and it computes on the CPU.");
    if (cuda == 11 && gp_version_major(other) == 12)
        fix_onnx_11(exam, env, package->version);
    else
        fix_onnx_cuda(exam, env, cuda, other);
    return true;
}

/* ---- libraries that are not found ---- */

/* The CUDA that releases from PyPI are built for, and the last Python with builds of them. */
static const struct release {
    const char *first, *last, *cuda, *python;
} releases[] = {
    {"0.4", "0.4.0", "10.0", "3.7"}, {"0.5", "0.5.0", "10.1", "3.7"},
    {"1.0", "1.1.2", "10.0", "3.7"}, {"1.2", "1.4.0", "10.1", "3.8"},
    {"1.5", "1.6.0", "10.2", "3.8"}, {"1.7", "1.18.1", "11", "3.12"},
    {"1.19", "", "12", ""},
};

static const struct release *release_of(const char *version)
{
    const struct release *found = &releases[0];
    for (size_t i = 0; i < GP_ARRAY_LEN(releases); i++)
        if (gp_version_compare(version, releases[i].first) >= 0)
            found = &releases[i];
    return found;
}

/* The newest that is built for a CUDA, "10.1.243", and for this Python; NULL: none. */
static const struct release *release_for(const char *cuda, const char *python)
{
    for (size_t i = GP_ARRAY_LEN(releases); i-- > 0;) {
        const struct release *r = &releases[i];
        bool is_any_minor = !strchr(r->cuda, '.');
        if (gp_version_major(cuda) == gp_version_major(r->cuda) &&
            (is_any_minor || gp_version_minor(cuda) == gp_version_minor(r->cuda)))
            return r->python[0] && gp_version_compare(python, r->python) > 0 ? NULL : r;
    }
    return NULL;
}

/* Whether a name is one of CUDA's libraries that is not found; cuDNN is another check's. */
static bool is_missing(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    return strncmp(name, "libcu", 5) == 0 && strstr(name, ".so.") && !gp_cudnn_of_name(name) &&
           !gp_library_is_loadable(exam, env, name);
}

/* The first library of CUDA that the package loads when it is imported and that is not found; "":
 * none. Where this file does not list them, those that the release is linked with. */
static const char *missing_library(struct gp_exam *exam, const struct gp_pyenv *env,
                                   const struct release *built)
{
    static const char file[] = "onnxruntime/capi/_ld_preload.py", mark[] = "CDLL(\"";
    const char *p = strstr(gp_pyenv_text(exam, env, file), mark), *cuda = built->cuda;
    bool has_minor = strcmp(cuda, "10.0") == 0; /* the last with both numbers in every name */
    const char *const linked[] = {
        has_minor ? "libcublas.so.10.0"
                  : gp_exam_text(exam, "libcublas.so.%u", gp_version_major(cuda)),
        gp_exam_text(exam, "libcudart.so.%s", strcmp(cuda, "11") == 0 ? "11.0" : cuda)};
    for (size_t i = 0; !p && i < GP_ARRAY_LEN(linked); i++)
        if (is_missing(exam, env, linked[i]))
            return linked[i];
    for (; p; p = strstr(p, mark)) {
        p += sizeof(mark) - 1;
        const char *name = gp_exam_text(exam, "%.*s", (int)strcspn(p, "\"\n"), p);
        if (is_missing(exam, env, name))
            return name;
    }
    return "";
}

/* The version of the toolkit that a release is built for, or of the first one; "": none. */
static const char *installed_for(const struct gp_toolkits *toolkits, const struct gp_pyenv *env,
                                 const struct release *built)
{
    for (size_t i = 0; i < toolkits->count; i++) {
        const struct release *fit = release_for(toolkits->list[i].version, env->python);
        if (fit && strcmp(fit->cuda, built->cuda) == 0)
            return toolkits->list[i].version;
    }
    return toolkits->count > 0 ? toolkits->list[0].version : "";
}

static void mend_release(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct release *built, const char *installed,
                         const struct release *fit)
{
    if (fit && strcmp(fit->cuda, built->cuda) == 0) {
        if (exam->machine.container)
            gp_exam_advice(exam,
                           "start from a runtime or devel image of CUDA %s: a base image lacks it",
                           built->cuda);
        else
            gp_exam_advice(exam,
                           "install the libraries of CUDA %s, which are a package of their own "
                           "(cuda-libraries-%u-%u)",
                           installed, gp_version_major(installed), gp_version_minor(installed));
        return;
    }
    if (fit)
        gp_exam_pip(exam, env, GP_PIP_ADD,
                    gp_exam_text(exam, "the last release that is built for CUDA %s", fit->cuda),
                    fit->last[0] ? gp_exam_text(exam, "onnxruntime-gpu==%s", fit->last)
                                 : "'onnxruntime-gpu>=1.19'");
    gp_exam_advice(exam, "%s%s", fit ? "or " : "",
                   exam->machine.container
                       ? gp_exam_text(exam, "start from an image with CUDA %s", built->cuda)
                       : gp_exam_text(exam,
                                      "install CUDA %s as well (several can be installed), and "
                                      "have LD_LIBRARY_PATH lead to its lib64",
                                      built->cuda));
    gp_exam_link(exam, "https://onnxruntime.ai/docs/execution-providers/"
                       "CUDA-ExecutionProvider.html#requirements");
}

const char *gp_onnx_gpu_package(struct gp_exam *exam, const char *version)
{
    static const char cuda_12[] = "1.19"; /* the first on PyPI for it */
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    if (nv.driver[0] && !gp_driver_reaches(nv.driver, gp_cuda_floor("12")))
        return gp_exam_text(exam, "'onnxruntime-gpu<%s'", cuda_12);
    return gp_version_compare(version, cuda_12) < 0
               ? "onnxruntime-gpu"
               : gp_exam_text(exam, "'onnxruntime-gpu~=%u.%u.0'", gp_version_major(version),
                              gp_version_minor(version));
}

/* A library that is missing, or lies where the loader does not look (folder). Before 1.8 the import
 * fails without it; later only the provider for CUDA does. */
static bool report_missing(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_pypackage *package, const struct release *built,
                           bool is_import)
{
    const struct gp_toolkits *toolkits = gp_toolkits_of(exam);
    const char *installed = installed_for(toolkits, env, built);
    const struct release *fit = installed[0] ? release_for(installed, env->python) : NULL;
    const char *name = missing_library(exam, env, built);
    const char *folder = name[0] ? gp_library_folder(exam, name) : NULL;
    if (!name[0] || (!is_import && !folder))
        return false;
    gp_exam_report(exam, is_import ? gp_pyenv_verdict(env, true) : GP_VERDICT_WARN,
                   "ONNX Runtime %s in %s does not find %s, %s", package->version, env->prefix,
                   name,
                   folder ? "although it is installed"
                   : fit && strcmp(fit->cuda, built->cuda) == 0
                       ? gp_exam_text(exam, "a library of CUDA %s that is not installed", installed)
                   : installed[0] ? gp_exam_text(exam,
                                                 "as it is built for CUDA %s, and CUDA %s is "
                                                 "installed",
                                                 built->cuda, installed)
                                  : gp_exam_text(exam, "as CUDA %s is not installed", built->cuda));
    gp_exam_evidence(exam, env->site, "%s: for CUDA %s", package->entry, built->cuda);
    gp_exam_evidence(exam, folder ? gp_exam_text(exam, "%s/%s", folder, name) : name,
                     folder ? "present, but the loader does not look there"
                            : "not in any library directory");
    if (is_import)
        gp_exam_why(exam,
                    "The import fails with \"%s: cannot open shared object file\", or "
                    "\"cannot import name 'get_all_providers'\".",
                    name);
    else
        gp_exam_why(exam,
                    "Its CUDAExecutionProvider cannot be loaded, and it computes on the CPU.");
    if (folder)
        gp_exam_command(exam, "also in the shell's startup file",
                        "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                        gp_exam_quoted(exam, folder));
    else
        mend_release(exam, env, built, installed, fit);
    return true;
}

/* The name of cuDNN that is loaded when the package is imported, "libcudnn.so.7"; "": not known. */
static const char *cudnn_of_import(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char file[] = "onnxruntime/capi/_ld_preload.py", mark[] = "CDLL(\"libcudnn.so.",
                      module[] = "onnxruntime/capi/onnxruntime_pybind11_state.so";
    const char *p = strstr(gp_pyenv_text(exam, env, file), mark), *name;
    struct gp_elf shared;
    char path[GP_PATH_SIZE];
    size_t from = 0;
    if (p) {
        p += strlen("CDLL(\"");
        return gp_exam_text(exam, "%.*s", (int)strcspn(p, "\"\n"), p);
    }
    if (!gp_pyenv_path(env, module, path) ||
        !gp_elf_read(&shared, &exam->files, &exam->arena, path))
        return "";
    while ((name = gp_elf_needed(&shared, &from)))
        if (gp_cudnn_of_name(name))
            return name;
    return "";
}

/* Before 1.8 the import fails without cuDNN. PyTorch's own is linked into it, or has a name of its
 * own, until its packages have one that others can use. */
static void check_cudnn_of_import(struct gp_exam *exam, const struct gp_pyenv *env,
                                  const struct gp_pypackage *package, const struct release *built)
{
    const char *name = cudnn_of_import(exam, env);
    unsigned cudnn = gp_cudnn_of_name(name), other = 0;
    bool is_known;
    if (!cudnn || gp_library_is_loadable(exam, env, name) ||
        gp_cudnn_is_found(exam, env, cudnn, &other, &is_known) || gp_library_folder(exam, name))
        return;
    gp_exam_report(
        exam, gp_pyenv_verdict(env, true), "ONNX Runtime %s in %s does not find %s, as %s",
        package->version, env->prefix, name,
        other ? gp_exam_text(exam, "only cuDNN %u is installed", other) : "cuDNN is not installed");
    gp_exam_evidence(exam, env->site, "%s: for CUDA %s and cuDNN %u", package->entry, built->cuda,
                     cudnn);
    gp_exam_evidence(exam, name, "not in any library directory");
    gp_exam_why(exam, "The import fails with \"%s: cannot open shared object file\".%s", name,
                env->has_torch ? " PyTorch has cuDNN in its own libraries, where other packages "
                                 "cannot find it."
                               : "");
    gp_fix_part(exam, env, name, built->cuda);
    if (exam->machine.container)
        gp_exam_advice(exam,
                       "in the Dockerfile of the image; or start from an image with CUDA %s "
                       "and cuDNN %u",
                       built->cuda, cudnn);
}

void gp_check_onnx_cuda(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "onnxruntime-gpu");
    if (!package || package->is_conda)
        return;
    const struct release *built = release_of(package->version);
    bool is_import = gp_version_compare(package->version, "1.8") < 0;
    /* The provider finds what PyTorch has loaded, too. */
    bool is_alone = !env->has_torch && !gp_pyenv_package_like(env, "nvidia-cublas") &&
                    gp_version_major(built->cuda) == gp_onnx_cuda(exam, env, package->version);
    bool is_judged = is_import
                         ? !gp_pyenv_package(env, "onnxruntime") /* which another check reports */
                         : !report_other_cuda(exam, env, package) && is_alone;
    bool is_reported = is_judged && report_missing(exam, env, package, built, is_import);
    if (is_judged && is_import && !is_reported)
        check_cudnn_of_import(exam, env, package, built);
    if (!is_import)
        check_wheels(exam, env, package);
}
