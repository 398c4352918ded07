/* Packages whose main library is linked with CUDA's: without one of them, the import fails. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* ---- the CUDA of a package, and the packages for a CUDA ---- */

/* MXNet's packages of PyPI, newest first. Those for 11.2 also run with newer libraries of CUDA 11,
 * whose names are the same. */
static const struct {
    const char *name, *first, *last; /* the CUDA whose libraries it needs */
} mxnets[] = {
    {"mxnet-cu112", "11.2", "11.8"}, {"mxnet-cu110", "11.0", "11.0"},
    {"mxnet-cu102", "10.2", "10.2"}, {"mxnet-cu101", "10.1", "10.1"},
    {"mxnet-cu100", "10.0", "10.0"}, {"mxnet-cu92", "9.2", "9.2"},
    {"mxnet-cu90", "9.0", "9.0"},    {"mxnet-cu80", "8.0", "8.0"},
};

const char *gp_mxnet_package(struct gp_exam *exam, const char **ret_cuda)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    for (size_t m = 0; m < GP_ARRAY_LEN(mxnets); m++)
        for (size_t i = 0; i < all->count; i++) {
            const char *version = all->list[i].version;
            const char *cuda =
                gp_exam_text(exam, "%u.%u", gp_version_major(version), gp_version_minor(version));
            *ret_cuda = cuda;
            if (gp_version_compare(cuda, mxnets[m].first) >= 0 &&
                gp_version_compare(cuda, mxnets[m].last) <= 0)
                return mxnets[m].name;
        }
    *ret_cuda = "";
    return NULL;
}

/* "11.2" of "mxnet-cu112", "10.0" of "mxnet-cu100mkl", "9.2" of "mxnet-cu92", "11.8" of
 * "2.1.0+cu118"; "": it is in neither. */
static const char *cuda_of(struct gp_exam *exam, const struct gp_pypackage *package)
{
    const char *at = strstr(package->name, "-cu");
    at = at ? at : strstr(package->version, "+cu");
    unsigned number = at ? (unsigned)strtoul(at + 3, NULL, 10) : 0;
    return number >= 70 ? gp_exam_text(exam, "%u.%u", number / 10, number % 10) : "";
}

/* ---- what is missing ---- */

static const struct linked {
    const char *name, *title, *file;
    bool is_known; /* what it is linked with, by its CUDA */
    bool is_whole; /* no package with a longer name is meant */
} packages[] = {
    {"mxnet-cu", "MXNet", "mxnet/libmxnet.so", true, false},
    {"dgl", "DGL", "dgl/libdgl.so", false, false},
    {"torch", "PyTorch", "torch/lib/libtorch_cuda.so", false, true},
};

/* Whether it is a library of the toolkit, cuDNN or NCCL; that of the driver is another check's. */
static bool is_of_cuda(const char *name)
{
    static const char *const starts[] = {"libcu", "libnvrtc", "libnvToolsExt", "libnccl", NULL};
    return gp_lines_starts_any(name, starts) && strncmp(name, "libcuda.so", 10) != 0 &&
           strncmp(name, "libcurl", 7) != 0;
}

/* Whether it lies next to what loads it, or PyTorch has loaded it from its packages. */
static bool is_brought(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct linked *linked, const char *name)
{
    const char *slash = strrchr(linked->file, '/');
    const char *own = gp_exam_text(exam, "%s/%.*s/%s", env->site, (int)(slash - linked->file),
                                   linked->file, name);
    char path[GP_PATH_SIZE], **folders;
    if (gp_files_exist(&exam->files, own))
        return true;
    long n = env->has_torch && gp_pyenv_path(env, "nvidia", path)
                 ? gp_files_list(&exam->files, &exam->arena, path, &folders)
                 : 0;
    for (long i = 0; i < n; i++)
        if (gp_files_exist(&exam->files,
                           gp_exam_text(exam, "%s/%s/lib/%s", path, folders[i], name)))
            return true;
    return false;
}

struct missing {
    const char *names[16];
    size_t count;
    const char *first; /* one of the toolkit; otherwise any */
};

static void add_if_missing(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct linked *linked, const char *name, struct missing *ret)
{
    if (ret->count == GP_ARRAY_LEN(ret->names) || !is_of_cuda(name) ||
        gp_library_is_loadable(exam, env, name) || is_brought(exam, env, linked, name))
        return;
    bool is_toolkit = !gp_cudnn_of_name(name) && strncmp(name, "libnccl", 7) != 0;
    if (!ret->first ||
        (is_toolkit && (gp_cudnn_of_name(ret->first) || strncmp(ret->first, "libnccl", 7) == 0)))
        ret->first = name;
    ret->names[ret->count++] = name;
}

/* Those that MXNet's build for a CUDA is linked with in any case. */
static void find_by_version(struct gp_exam *exam, const struct gp_pyenv *env,
                            const struct linked *linked, const char *cuda, struct missing *ret)
{
    unsigned major = gp_version_major(cuda), minor = gp_version_minor(cuda);
    bool is_11 = major == 11, is_10 = major == 10 && minor > 0; /* fewer names have the minor */
    const char *number = is_11 ? "11" : is_10 ? "10" : cuda;
    const char *const names[] = {
        gp_exam_text(exam, "libcudart.so.%s", is_11 ? "11.0" : cuda),
        gp_exam_text(exam, "libcublas.so.%s", number),
        gp_exam_text(exam, "libcusolver.so.%s", is_11 && minor == 0 ? "10" : number),
        gp_exam_text(exam, "libnvrtc.so.%s", is_11 && minor > 2 ? "11.2" : cuda)};
    for (size_t i = 0; major >= 8 && major <= 11 && i < GP_ARRAY_LEN(names); i++)
        add_if_missing(exam, env, linked, names[i], ret);
}

/* By what its library says, or by its version. */
static void find_missing(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct linked *linked, const char *path, const char *cuda,
                         struct missing *ret)
{
    struct gp_elf shared;
    const char *name;
    size_t from = 0;
    *ret = (struct missing){.count = 0};
    if (!gp_elf_read_libraries(&shared, &exam->files, &exam->arena, path)) {
        if (linked->is_known)
            find_by_version(exam, env, linked, cuda, ret);
        return;
    }
    while ((name = gp_elf_needed(&shared, &from)))
        add_if_missing(exam, env, linked, name, ret);
}

/* ---- the remedy ---- */

/* The directory of the toolkit that has all that is missing; NULL: none has. */
static const char *folder_of_all(struct gp_exam *exam, const struct missing *missing)
{
    const char *folder = gp_library_folder(exam, missing->first);
    for (size_t i = 0; folder && i < missing->count; i++)
        if (!gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, missing->names[i])))
            return NULL;
    return folder;
}

/* NVIDIA's packages with the libraries that PyTorch's wheels load, by what their names begin with;
 * a longer beginning comes first. */
static const struct {
    const char *start, *package;
    bool is_of_toolkit; /* it has the toolkit's version */
} parts[] = {
    {"libcudart", "cuda-runtime", true}, {"libcublas", "cublas", true},
    {"libcufft", "cufft", false},        {"libcufile", "cufile", false},
    {"libcupti", "cuda-cupti", true},    {"libcurand", "curand", false},
    {"libcusolver", "cusolver", false},  {"libcusparseLt", "cusparselt", false},
    {"libcusparse", "cusparse", false},  {"libcudnn", "cudnn", false},
    {"libnvrtc", "cuda-nvrtc", true},    {"libnvToolsExt", "nvtx", true},
    {"libnccl", "nccl", false},
};

/* "nvidia-cublas-cu12==12.6.*" for "libcublasLt.so.12" of CUDA 12.6; "" if that is unknown. */
static const char *part_for(struct gp_exam *exam, const char *name, const char *cuda)
{
    unsigned major = gp_version_major(cuda);
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++) {
        const char *package = gp_exam_text(exam, "nvidia-%s-cu%u", parts[i].package, major);
        if (strncmp(name, parts[i].start, strlen(parts[i].start)) == 0)
            return parts[i].is_of_toolkit
                       ? gp_exam_text(exam, "'%s==%u.%u.*'", package, major, gp_version_minor(cuda))
                   : gp_cudnn_of_name(name)
                       ? gp_exam_text(exam, "'%s==%u.*'", package, gp_cudnn_of_name(name))
                       : package;
    }
    return "";
}

/* The wheels of PyTorch look for them among the packages of the environment. */
static void mend_torch(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct missing *missing, const char *cuda)
{
    const char *list = "";
    for (size_t i = 0; i < missing->count; i++) {
        const char *part = part_for(exam, missing->names[i], cuda);
        if (part[0] && !strstr(list, part))
            list = gp_exam_text(exam, "%s%s%s", list, list[0] ? " " : "", part);
    }
    if (list[0])
        gp_exam_pip(exam, env, GP_PIP_ADD,
                    gp_exam_text(exam, "the libraries of CUDA %s, where this PyTorch looks", cuda),
                    list);
}

static void mend(struct gp_exam *exam, const struct gp_pyenv *env,
                 const struct gp_pypackage *package, const struct missing *missing)
{
    const char *folder = folder_of_all(exam, missing), *cuda = cuda_of(exam, package), *have;
    bool is_toolkit =
        !gp_cudnn_of_name(missing->first) && strncmp(missing->first, "libnccl", 7) != 0;
    const char *other =
        strncmp(package->name, "mxnet-cu", 8) == 0 ? gp_mxnet_package(exam, &have) : NULL;
    if (folder) {
        gp_exam_command(exam, "also in the shell's startup file",
                        "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                        gp_exam_quoted(exam, folder));
        return;
    }
    if (is_toolkit && other && strncmp(package->name, other, strlen(other)) != 0) {
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "", package->name);
        gp_exam_pip(exam, env, GP_PIP_ADD,
                    gp_exam_text(exam, "the build for CUDA %s, which is installed", have), other);
        gp_exam_advice(exam, "or keep it, and:");
    }
    if (is_toolkit && env->kind == GP_PYENV_CONDA && gp_version_compare(cuda, "11.9") < 0)
        gp_exam_command(exam, "CUDA's libraries",
                        "%s install -p %s -c conda-forge cudatoolkit=%s cudnn",
                        gp_conda_program(exam, env), gp_exam_quoted(exam, env->prefix), cuda);
    else if (is_toolkit)
        gp_exam_advice(exam,
                       "install the libraries of CUDA %s (several versions can be installed), and "
                       "have LD_LIBRARY_PATH lead to them",
                       cuda);
    for (size_t i = 0; !is_toolkit && i < missing->count; i++)
        gp_fix_part(exam, env, missing->names[i], cuda);
}

/* Whether the package names NVIDIA's as what it requires: another check compares with those. */
static bool names_parts(struct gp_exam *exam, const struct gp_pyenv *env,
                        const struct gp_pypackage *package)
{
    const char *text = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", package->entry));
    return text && strstr(text, "Requires-Dist: nvidia-");
}

bool gp_check_linked(struct gp_exam *exam, const struct gp_pyenv *env,
                     const struct gp_pypackage *package)
{
    const struct linked *linked = NULL;
    struct missing missing;
    char path[GP_PATH_SIZE];
    const char *cuda = cuda_of(exam, package);
    for (size_t i = 0; i < GP_ARRAY_LEN(packages); i++)
        if (strncmp(package->name, packages[i].name, strlen(packages[i].name)) == 0 &&
            !(packages[i].is_whole && strcmp(package->name, packages[i].name) != 0))
            linked = &packages[i];
    if (!linked || package->is_conda || !cuda[0] || !gp_pyenv_path(env, linked->file, path) ||
        !gp_files_exist(&exam->files, path) ||
        (linked->is_whole && names_parts(exam, env, package)))
        return false;
    find_missing(exam, env, linked, path, cuda, &missing);
    if (!missing.first)
        return true;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "%s %s in %s is for CUDA %s, and does not find %s", linked->title,
                   package->version, env->prefix, cuda, missing.first);
    gp_exam_evidence(exam, path, "is linked with it; %s", package->entry);
    for (size_t i = 0; i < missing.count; i++) {
        const char *folder = gp_library_folder(exam, missing.names[i]);
        const char *other = folder ? NULL : gp_library_other(exam, missing.names[i]);
        gp_exam_evidence(
            exam, missing.names[i], "%s",
            folder  ? gp_exam_text(exam, "in %s, where the loader does not look", folder)
            : other ? gp_exam_text(exam, "not in any library directory; there is %s", other)
                    : "not in any library directory");
    }
    gp_exam_why(exam,
                "The import fails: \"OSError: %s: cannot open shared object file\". nvidia-smi "
                "shows the CUDA that the driver can run, not the one that is installed.",
                missing.first);
    if (linked->is_whole)
        mend_torch(exam, env, &missing, cuda);
    else
        mend(exam, env, package, &missing);
    return true;
}
