/* Packages of Python on a Jetson, which need libraries of JetPack, or a build for it. */
#include "doctor/checks/jetson.h"

#include "doctor/checks/framework.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <string.h>

static const char page[] = "https://docs.nvidia.com/deeplearning/frameworks/"
                           "install-pytorch-jetson-platform/index.html";

/* Whether the loader finds a library for a program of the environment; true also if unknown. */
static bool is_found(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    const char *const folders[] = {
        "/usr/local/cuda/lib64", gp_exam_text(exam, "%s/torch/lib", env->site),
        gp_exam_text(exam, "%s/lib", env->prefix),
        gp_exam_text(exam, "/usr/lib/%s-linux-gnu/nvidia", exam->machine.arch)};
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    struct gp_ldcache cache;
    struct gp_library library;
    size_t from = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folders[i], name)))
            return true;
    while (gp_search_path_next(&list, ":;", folder)) /* an empty one is the working directory */
        if (folder[0] == '/'
                ? gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name))
                : folder[0])
            return true;
    return gp_system_library(exam, "", name) ||
           gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0 ||
           gp_ldcache_find(&cache, name, NULL, &from, &library);
}

/* The directory of CUDA that the image's LD_LIBRARY_PATH leads to and that is not here; "". */
static const char *missing_cuda(struct gp_exam *exam)
{
    static const char mark[] = "/usr/local/cuda-";
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":;", folder)) {
        size_t n = sizeof(mark) - 1;
        if (strncmp(folder, mark, n) != 0)
            continue;
        const char *path = gp_exam_text(exam, "%.*s", (int)(n + strcspn(folder + n, "/")), folder);
        if (!gp_files_exist(&exam->files, path))
            return path;
    }
    return "";
}

/* Until JetPack 4 containers have the host's CUDA, which the runtime mounts: an image for another
 * JetPack does not find its own. */
void gp_jetson_check_image(struct gp_exam *exam, const char *release)
{
    static const char mark[] = "REVISION: ";
    const struct gp_toolkit_found *toolkit = gp_toolkit_used(gp_toolkits_of(exam));
    const char *path = exam->machine.container && toolkit ? missing_cuda(exam) : "";
    const char *revision = strstr(release, mark), *version = strrchr(path, '-');
    if (!path[0] || !version)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "this image is for CUDA %s, but the Jetson gives it CUDA %s", version + 1,
                   toolkit->version);
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s",
                     gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH"));
    gp_exam_evidence(exam, path, "missing");
    gp_exam_evidence(exam, toolkit->path, "present");
    gp_exam_why(exam,
                "JetPack 4 passes the host's CUDA into containers. Programs that were built for "
                "another one stop with \"libcudart.so.%s: cannot open shared object file\".",
                version + 1);
    revision = revision ? revision + sizeof(mark) - 1 : "";
    gp_exam_advice(exam,
                   "use an image that is built for this JetPack, Jetson Linux R32%s%.*s (l4t tags "
                   "name it), or build it again with CUDA %s",
                   revision[0] ? "." : "", (int)strspn(revision, "0123456789."), revision,
                   toolkit->version);
    gp_exam_advice(exam,
                   "or install the JetPack that has CUDA %s: 4.3 and older have 10.0, 4.4 "
                   "and newer 10.2",
                   version + 1);
}

/* NVIDIA's wheels since 24.06 ("2.5.0a0+872d972e41.nv24.08") need cuSPARSELt, which JetPack 6 does
 * not have. */
void gp_jetson_check_sparse(struct gp_exam *exam, const struct gp_torch *torch)
{
    static const char library[] = "libcusparseLt.so.0", first[] = "24.06";
    const char *built = strstr(torch->version, ".nv");
    if (!built || gp_version_compare(built + 3, first) < 0 || is_found(exam, torch->env, library))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(torch->env, false),
                   "PyTorch %s in %s needs cuSPARSELt, which is not installed", torch->version,
                   torch->env->prefix);
    gp_exam_evidence(exam, library, "not in any library directory");
    gp_exam_why(exam,
                "NVIDIA's wheels need it since 24.06, and JetPack does not bring it: import "
                "torch ends with \"%s: cannot open shared object file\".",
                library);
    gp_exam_advice(exam, "install cuSPARSELt for aarch64-jetson from NVIDIA's page of downloads, "
                         "as the page below says");
    gp_exam_link(exam, page);
}

/* JetPack was flashed without its components: Jetson Linux alone has only the driver. */
void gp_jetson_report_no_cuda(struct gp_exam *exam, const struct gp_torch *torch)
{
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "JetPack's CUDA is not installed, which PyTorch %s in %s needs", torch->version,
                   torch->env->prefix);
    gp_exam_evidence(exam, "/usr/local/cuda", "missing");
    gp_exam_why(exam, "Jetson Linux alone has the driver; CUDA, cuDNN and TensorRT are packages of "
                      "JetPack: import torch ends with \"cannot open shared object file\".");
    gp_exam_command(exam, "JetPack's packages for this release", "sudo apt update");
    gp_exam_command(exam, "", "sudo apt install nvidia-jetpack");
}

/* The first library of CUDA that ONNX Runtime's part for it loads and that is not found; NULL:
 * none.
 */
static const char *missing_of_provider(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char file[] = "onnxruntime/capi/libonnxruntime_providers_cuda.so";
    struct gp_elf provider;
    char path[GP_PATH_SIZE];
    const char *name;
    size_t from = 0;
    if (!gp_pyenv_path(env, file, path) ||
        !gp_elf_read(&provider, &exam->files, &exam->arena, path))
        return NULL;
    while ((name = gp_elf_needed(&provider, &from)))
        if (strncmp(name, "libcu", 5) == 0 && !is_found(exam, env, name))
            return name;
    return NULL;
}

/* Another version of a library, "libcudnn.so.9" for "libcudnn.so.8", in the system's directories or
 * in those of CUDA; "": none is seen. */
static const char *other_version(struct gp_exam *exam, const char *name)
{
    const char *dot = strrchr(name, '.');
    const unsigned number = dot ? gp_version_major(dot + 1) : 0;
    for (unsigned i = number > 2 ? number - 2 : 1; number && i <= number + 2; i++) {
        const char *other = gp_exam_text(exam, "%.*s.%u", (int)(dot - name), name, i);
        if (i != number && gp_system_library(exam, "", other))
            return other;
    }
    const char *of_toolkit = gp_library_other(exam, name);
    return of_toolkit && gp_files_exist(&exam->files, of_toolkit) ? of_toolkit : "";
}

/* Each JetPack has its CUDA and cuDNN; wheels of ONNX Runtime are built for one. */
static void check_onnx(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "onnxruntime-gpu");
    const char *name = package ? missing_of_provider(exam, env) : NULL;
    if (!name)
        return;
    const char *other = other_version(exam, name);
    gp_exam_report(exam, GP_VERDICT_WARN, "ONNX Runtime %s in %s %s: it needs %s", package->version,
                   env->prefix, other[0] ? "is built for another JetPack" : "does not find CUDA",
                   name);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_evidence(exam, name, "not in any library directory");
    if (other[0])
        gp_exam_evidence(exam, other, "present");
    gp_exam_why(exam, "Its CUDAExecutionProvider cannot be loaded, and it computes on the CPU.");
    if (!other[0]) {
        gp_exam_command(exam, "CUDA and cuDNN of this JetPack", "sudo apt install nvidia-jetpack");
        return;
    }
    const struct gp_toolkit_found *toolkit = gp_toolkit_used(gp_toolkits_of(exam));
    const char *cuda = toolkit ? toolkit->version : "";
    gp_exam_advice(exam,
                   "remove onnxruntime-gpu, and install the wheel that is built for this "
                   "JetPack%s and this Python, from the index below; or build it here",
                   cuda[0] ? gp_exam_text(exam, " (CUDA %s)", cuda) : "");
    gp_exam_link(exam, "https://pypi.jetson-ai-lab.io/");
}

/* PyPI's wheels for aarch64 compute on the CPU; those of NVIDIA have another name or "+nv". */
void gp_jetson_check_others(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const struct {
        const char *name, *title, *other;
    } rows[] = {{"onnxruntime", "ONNX Runtime", "onnxruntime-gpu"},
                {"tensorflow", "TensorFlow", "tensorflow-gpu"}};
    check_onnx(exam, env);
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, rows[i].name);
        bool is_meant = env->is_active || env->is_named || env->kind == GP_PYENV_USER;
        if (!package || package->is_conda || !is_meant || strstr(package->version, "+nv") ||
            gp_pyenv_package(env, rows[i].other))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s %s in %s has no CUDA: it computes on the CPU",
                       rows[i].title, package->version, env->prefix);
        gp_exam_evidence(exam, env->site, "%s", package->entry);
        gp_exam_why(exam, "PyPI's wheels for aarch64 are not for Jetson.");
        gp_exam_advice(exam, "remove %s, and install the wheel that is built for this JetPack",
                       rows[i].name);
        gp_exam_link(exam, i == 0 ? "https://pypi.jetson-ai-lab.io/"
                                  : "https://docs.nvidia.com/deeplearning/frameworks/"
                                    "install-tf-jetson-platform/index.html");
    }
}

/* Ubuntu's packages for cards, installed for nvidia-smi or by the package cuda: their libcuda is
 * found before that of JetPack. */
void gp_jetson_check_driver(struct gp_exam *exam)
{
    static const char *const words[] = {"nvidia-driver-", "libnvidia-compute-", "nvidia-utils-",
                                        "cuda-drivers", NULL};
    struct gp_package *packages;
    const char *found = "";
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < count; i++)
        if (strcmp(packages[i].state, "installed") == 0)
            found = gp_exam_text(exam, "%s%s%s", found, found[0] ? " " : "", packages[i].name);
    if (!found[0])
        return;
    gp_exam_report(
        exam, GP_VERDICT_FAIL,
        "a driver for PCI cards is installed on this Jetson, whose GPU it does not know");
    gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s", found);
    gp_exam_why(exam, "Its libcuda hides the one of JetPack: programs find no CUDA device, and "
                      "nvidia-smi reports that it cannot communicate with the driver.");
    gp_exam_command(exam, "remove it", "sudo apt purge %s", found);
    gp_exam_command(exam, "restore JetPack's files",
                    "sudo apt install --reinstall nvidia-l4t-core nvidia-l4t-cuda");
}
