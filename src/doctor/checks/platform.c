/* Special platforms: WSL, Jetson, Linux on Apple chips. */
#include "doctor/checks/access_fix.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/jetson.h"
#include "doctor/checks/passthrough.h"
#include "doctor/checks/wsl.h"
#include "doctor/exam.h"
#include "doctor/readers/access.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- WSL ---- */

static bool is_wsl(struct gp_exam *exam)
{
    return exam->machine.is_wsl;
}

#define WSL_LIBRARY "/usr/lib/wsl/lib/libcuda.so.1"

/* Whether /etc/wsl.conf turns GPUs off: "[gpu]", "enabled = false". */
static bool report_switch(struct gp_exam *exam)
{
    static const char path[] = "/etc/wsl.conf";
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    const char *part = text ? strstr(text, "[gpu]") : NULL;
    const char *end = part ? strstr(part + 1, "\n[") : NULL;
    size_t n = !part ? 0 : end ? (size_t)(end - part) : strlen(part);
    const char *key = part ? memmem(part, n, "enabled", 7) : NULL;
    if (!key)
        return false;
    key += 7;
    key += strspn(key, " \t=");
    if (strncmp(key, "false", 5) != 0)
        return false;
    gp_exam_evidence(exam, path, "[gpu] enabled = false");
    gp_exam_why(exam, "This setting keeps Windows from passing its GPU to this distribution.");
    gp_exam_command(exam, "let it in again; the original file is kept next to it",
                    "sudo sed -i.before '/^\\[gpu\\]/,/^\\[/s/^ *enabled *=.*/enabled = true/' %s",
                    path);
    gp_exam_advice(exam, "then in PowerShell: wsl --shutdown");
    return true;
}

#define ROCDXG "/opt/rocm/lib/librocdxg.so"

/* ROCm for WSL, where AMD's driver in Windows has no library here. */
static bool has_rocm(struct gp_exam *exam)
{
    static const char *const paths[] = {ROCDXG, "/opt/rocm/lib/libhsa-runtime64.so.1"};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++)
        if (gp_files_exist(&exam->files, paths[i]))
            return true;
    return false;
}

/* Before 7.13, ROCm looks for the GPU behind /dev/dxg only if this variable is set. */
static bool report_detection(struct gp_exam *exam)
{
    static const char name[] = "HSA_ENABLE_DXG_DETECTION", last[] = "7.13",
                      path[] = "/opt/rocm/.info/version";
    const char *value = gp_machine_variable(&exam->machine, name), *place;
    char version[64];
    value = value ? value : gp_assignment_last(exam, name, &place);
    if (!gp_files_exist(&exam->files, ROCDXG) ||
        !gp_files_line(&exam->files, path, version, sizeof(version)) ||
        gp_version_compare(version, last) >= 0 || (value && strcmp(value, "1") == 0))
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL, "ROCm does not look for the GPU of WSL: %s is not %s",
                   name, value ? "1" : "set");
    gp_exam_evidence(exam, name, "%s", value ? value : "not set");
    gp_exam_evidence(exam, path, "%s", version);
    gp_exam_evidence(exam, ROCDXG, "present");
    gp_exam_why(exam,
                "Without it ROCm before %s looks only for /dev/kfd, which WSL does not have: "
                "rocminfo and PyTorch find no GPU.",
                last);
    gp_exam_command(exam, "", "echo 'export %s=1' >> ~/.bashrc", name);
    gp_exam_command(exam, "and for this shell", "export %s=1", name);
    gp_exam_link(exam, "https://github.com/ROCm/librocdxg");
    return true;
}

/* The runtime of AMD's packages for Linux, without the part that reaches the Windows driver; with
 * dpkg, whose list says so. */
static bool report_plain_rocm(struct gp_exam *exam)
{
    static const char *const words[] = {"hsa-rocr", "hsa-runtime-rocr4wsl-amdgpu", NULL};
    struct gp_package *packages;
    const char *plain = NULL;
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    if (gp_files_exist(&exam->files, ROCDXG))
        return false;
    for (long i = 0; i < count; i++) {
        if (strcmp(packages[i].state, "installed") != 0)
            continue;
        if (strcmp(packages[i].name, words[1]) == 0)
            return false;
        if (strcmp(packages[i].name, words[0]) == 0)
            plain = packages[i].version;
    }
    if (!plain)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "ROCm finds no GPU in WSL: its part for WSL is not installed");
    gp_exam_evidence(exam, "package", "hsa-rocr %s, but not %s", plain, words[1]);
    gp_exam_evidence(exam, ROCDXG, "missing");
    gp_exam_why(exam, "ROCm's usual runtime needs /dev/kfd, which WSL does not have.");
    gp_exam_advice(exam, "install ROCm for WSL as the page below says: amdgpu-install "
                         "--usecase=wsl,rocm --no-dkms, and from ROCm 7 on librocdxg");
    gp_exam_link(exam, "https://rocm.docs.amd.com/projects/radeon/en/latest/docs/install/wsl/"
                       "install-radeon.html");
    return true;
}

/* PyTorch's wheels bring a runtime that needs the kernel's driver, which WSL does not have. */
static void check_rocm(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_torch torch;
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        char path[GP_PATH_SIZE];
        if (!gp_pyenv_torch(exam, env, &torch) || !torch.hip[0] ||
            !gp_pyenv_path(env, "torch/lib/libhsa-runtime64.so", path) ||
            !gp_files_exist(&exam->files, path))
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "PyTorch %s in %s finds no GPU in WSL: it uses its own ROCm runtime",
                       torch.version, env->prefix);
        gp_exam_evidence(exam, path, "present");
        gp_exam_why(exam, "That runtime needs /dev/kfd, which WSL does not have; only the one of "
                          "ROCm for WSL reaches the GPU.");
        gp_exam_advice(exam, "install AMD's wheels of PyTorch for WSL from repo.radeon.com, as its "
                             "page says");
        gp_exam_command(exam, "then let it use the runtime of ROCm",
                        "rm %s/torch/lib/libhsa-runtime64.so*", gp_exam_quoted(exam, env->site));
        gp_exam_link(exam, "https://rocm.docs.amd.com/projects/radeon/en/latest/docs/install/wsl/"
                           "install-pytorch.html");
        return;
    }
}

/* The kernel of WSL 2 comes with WSL itself; older ones have the device, but not all that CUDA asks
 * of it. */
static void check_wsl_kernel(struct gp_exam *exam)
{
    static const char first[] = "5.10.43.3";
    const char *kernel = exam->machine.kernel;
    if (!strstr(kernel, "microsoft") || gp_version_compare(kernel, first) >= 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "the kernel of WSL 2 is older than CUDA needs: %.*s",
                   (int)strcspn(kernel, "-"), kernel);
    gp_exam_evidence(exam, "/proc/sys/kernel/osrelease", "%s", kernel);
    gp_exam_why(exam,
                "CUDA in WSL needs kernel %s or newer. nvidia-smi may work, while programs report "
                "that they find no GPU or no driver.",
                first);
    gp_exam_advice(exam, "in PowerShell: wsl --update, then wsl --shutdown; remove the line "
                         "kernel= from .wslconfig in Windows, if there is one");
    gp_exam_link(exam, "https://learn.microsoft.com/windows/ai/directml/gpu-cuda-in-wsl");
}

/* The driver is the Windows one: its libraries are mounted, and the device is /dev/dxg. */
static void check_wsl_driver(struct gp_exam *exam)
{
    const struct {
        const char *path, *what;
    } parts[] = {{"/dev/dxg", "the device"}, {WSL_LIBRARY, "the library"}};
    if (gp_wsl_report_hyperv(exam))
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++) {
        if (i > 0 ? gp_nvidia_wsl_library(exam) != NULL
                  : gp_files_exist(&exam->files, parts[i].path))
            continue;
        if (i > 0 && has_rocm(exam)) {
            if (!report_plain_rocm(exam) && !report_detection(exam) && !gp_wsl_report_twin(exam))
                check_rocm(exam);
            return;
        }
        if (i > 0 && gp_wsl_report_others(exam)) {
            check_rocm(exam);
            return;
        }
        bool is_first = strncmp(exam->machine.kernel, "4.4.", 4) == 0; /* it has no other kernel */
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       is_first ? "this is WSL 1, which has no GPUs: %s is missing"
                                : "Windows gives this WSL no GPU: %s is missing",
                       parts[i].path);
        gp_exam_evidence(exam, parts[i].path, "%s from the Windows driver is missing",
                         parts[i].what);
        if (report_switch(exam))
            return;
        gp_exam_why(exam,
                    "WSL 2 uses the driver installed in Windows; no driver is installed in Linux.");
        if (is_first)
            gp_exam_advice(exam, "in PowerShell: wsl -l -v shows the name of this distribution; "
                                 "then wsl --set-version NAME 2");
        gp_exam_advice(exam, "in Windows: install NVIDIA's driver (528.33 or newer for CUDA 12), "
                             "then run wsl --update and wsl --shutdown in PowerShell");
        return;
    }
    check_wsl_kernel(exam);
}

/* Whether a list such as LD_LIBRARY_PATH has this folder. */
static bool has_folder(const char *list, const char *folder)
{
    size_t n = strlen(folder);
    for (const char *p = list; p && *p; p += strcspn(p, ":"), p += *p == ':')
        if (strcspn(p, ":") == n && strncmp(p, folder, n) == 0)
            return true;
    return false;
}

/* A Linux driver's library in a folder where the loader looks; false: none, or it is Windows' own.
 */
static bool find_linux_library(struct gp_exam *exam, char path[GP_PATH_SIZE],
                               char real[GP_PATH_SIZE])
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    const char *windows = gp_nvidia_wsl_library(exam), *rest = list;
    char named[GP_PATH_SIZE];
    while (gp_search_path_next(&rest, ":;", named)) { /* before the loader's own */
        (void)snprintf(path, GP_PATH_SIZE, "%.*s/libcuda.so.1", GP_PATH_SIZE - 16, named);
        if (named[0] != '/' || strstr(named, "/stubs") || !gp_files_real(&exam->files, path, real))
            continue;
        if (!strstr(real, "/wsl/") && !(windows && strcmp(real, windows) == 0))
            return true;
        break;
    }
    for (int is_cuda = 1; is_cuda >= 0; is_cuda--) {
        const char *folder;
        for (size_t i = 0; (folder = gp_system_folder(exam, i)); i++) {
            (void)snprintf(path, GP_PATH_SIZE, "%s/%s", folder,
                           is_cuda ? "libcuda.so.1" : "libnvidia-ml.so.1");
            if ((is_cuda || has_folder(list, folder)) && gp_files_real(&exam->files, path, real) &&
                !strstr(real, "/wsl/") && !(windows && strcmp(real, windows) == 0))
                return true;
        }
    }
    return false;
}

/* Windows' libraries are there, but the loader does not know their directory. */
static void report_unlisted(struct gp_exam *exam)
{
    static const char folder[] = "/usr/lib/wsl/lib", line[] = "/etc/ld.so.conf.d/ld.wsl.conf";
    struct gp_ldcache cache;
    struct gp_library library;
    size_t from = 0;
    if (has_folder(gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH"), folder) ||
        gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0 ||
        gp_ldcache_find(&cache, "libcuda.so.1", NULL, &from, &library))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the loader does not find Windows' libcuda");
    gp_exam_evidence(exam, WSL_LIBRARY, "present");
    gp_exam_evidence(exam, "/etc/ld.so.cache", "has no libcuda.so.1");
    gp_exam_evidence(exam, line, "%s", gp_files_exist(&exam->files, line) ? "present" : "missing");
    gp_exam_why(exam, "WSL adds its directory at each start, unless /etc/wsl.conf turns that off "
                      "(ldconfig = false): CUDA's programs find no GPU.");
    if (!gp_files_exist(&exam->files, line))
        gp_exam_command(exam, "add it", "echo %s | sudo tee %s", folder, line);
    gp_exam_command(exam, "update the loader's cache", "sudo ldconfig");
}

/* Distributions whose loader cannot find or use Windows' libraries. */
static bool report_other_loader(struct gp_exam *exam)
{
    static const char of_nixos[] = "/run/opengl-driver/lib/libcuda.so.1";
    const char *musl = gp_exam_text(exam, "/lib/ld-musl-%s.so.1", exam->machine.arch);
    const char *glibc = "/lib64/ld-linux-x86-64.so.2";
    bool is_nixos = strcmp(exam->machine.distro_id, "nixos") == 0;
    if (is_nixos ? gp_files_exist(&exam->files, of_nixos) ||
                       has_folder(gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH"),
                                  "/usr/lib/wsl/lib")
                 : gp_files_exist(&exam->files, glibc) || !gp_files_exist(&exam->files, musl))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   is_nixos ? "NixOS' programs do not find Windows' libcuda"
                            : "Windows' libcuda does not work in this distribution: it has musl, "
                              "not glibc");
    gp_exam_evidence(exam, WSL_LIBRARY, "present");
    gp_exam_evidence(exam, is_nixos ? of_nixos : musl, is_nixos ? "missing" : "present");
    if (!is_nixos) {
        gp_exam_evidence(exam, glibc, "missing");
        gp_exam_advice(exam, "use a distribution with glibc for GPUs in WSL, such as Ubuntu's");
        return true;
    }
    gp_exam_why(exam, "Programs on NixOS search no directory of libraries by themselves, and by "
                      "default its WSL does not add that of Windows' driver.");
    gp_exam_command(exam, "after setting, in configuration.nix: wsl.useWindowsDriver = true;",
                    "sudo nixos-rebuild switch");
    gp_exam_command(exam, "until then, for the programs of this shell",
                    "export LD_LIBRARY_PATH=/usr/lib/wsl/lib");
    return true;
}

/* Linux driver packages install libraries that need a kernel module, which WSL does not have. */
static void check_wsl_shadow(struct gp_exam *exam)
{
    char path[GP_PATH_SIZE], real[GP_PATH_SIZE];
    if (!gp_nvidia_wsl_library(exam) || report_other_loader(exam))
        return; /* the first: with another maker's GPU */
    if (!find_linux_library(exam, path, real)) {
        report_unlisted(exam);
        gp_wsl_report_plain_name(exam);
        return;
    }
    const char *folder = gp_exam_text(exam, "%.*s", (int)(strrchr(path, '/') - path), path);
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   exam->machine.container
                       ? "this image has libraries of a Linux driver, which hide the Windows driver"
                       : "a Linux driver is installed in WSL, and hides the Windows driver");
    gp_exam_evidence(exam, path, "links to %s", real);
    if (has_folder(list, folder))
        gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s", list);
    gp_exam_why(exam, "It needs a kernel module that WSL does not have: programs that load it find "
                      "no GPU, although others may still work.");
    if (has_folder(list, folder))
        gp_exam_advice(exam, "remove %s from LD_LIBRARY_PATH", folder);
    const char *home = gp_exam_text(exam, "%.*s", (int)(strrchr(real, '/') - real), real);
    if (exam->machine.container)
        gp_exam_advice(exam,
                       "or build an image from this one, with: RUN rm -f %s/libcuda.so* "
                       "%s/libnvidia-*.so*",
                       home, home);
    else if (!strstr(home, "/cuda"))
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_DRIVER, NULL, NULL);
    if (!exam->machine.container && !strstr(home, "/cuda"))
        gp_wsl_advise_plain_name(exam);
}

/* ---- Jetson ---- */

static bool is_jetson(struct gp_exam *exam)
{
    return exam->machine.is_jetson;
}

enum { JETPACK_4 = 32, JETPACK_7 = 38 }; /* releases of Jetson Linux; 7 takes PyPI's wheels */

enum { RELEASE_SIZE = 256 };

/* Of "# R36 (release), REVISION: 4.3, …"; "" and 0: it cannot be read. */
static unsigned jetson_release(struct gp_exam *exam, char line[RELEASE_SIZE])
{
    if (!gp_files_line(&exam->files, "/etc/nv_tegra_release", line, RELEASE_SIZE))
        line[0] = '\0';
    const char *number = strstr(line, "# R");
    return number ? gp_version_major(number + 3) : 0;
}

static const char *const jetson_devices[] = {"/dev/nvmap", "/dev/nvhost-ctrl-gpu",
                                             "/dev/nvhost-gpu", "/dev/nvgpu/igpu0/ctrl"};

/* A container that got nothing of the GPU. */
static bool report_no_runtime(struct gp_exam *exam)
{
    bool has_device = gp_files_exist(&exam->files, "/dev/nvidiactl");
    for (size_t i = 0; i < GP_ARRAY_LEN(jetson_devices); i++)
        has_device = has_device || gp_files_exist(&exam->files, jetson_devices[i]);
    if (!exam->machine.container || has_device)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL, "this container was started without the Jetson's GPU");
    gp_exam_evidence(exam, jetson_devices[0], "missing, as are the other device files of the GPU");
    gp_exam_why(exam, "CUDA finds no device: on a Jetson, NVIDIA's runtime brings the device files "
                      "and the driver's libraries of the host into a container.");
    gp_exam_command(exam, "on the host", "docker run --runtime nvidia IMAGE");
    return true;
}

/* The device files of its GPU are for the members of a group. */
static void report_access(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(jetson_devices); i++) {
        struct gp_access access = gp_access_of(exam, jetson_devices[i]);
        if (!access.is_there || !access.is_known || access.may_use)
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "this user has no permission to use the Jetson's GPU");
        gp_exam_evidence(exam, jetson_devices[i], "mode %04o, group %s", access.mode,
                         access.group_name);
        gp_exam_why(exam, "CUDA finds no device, and video programs report \"Can't initialize nvrm "
                          "channel\".");
        gp_access_propose(exam, &access, jetson_devices[i]);
        return;
    }
}

/* "# R36 (release), REVISION: 4.3, …" and the JetPack it belongs to. */
static void check_jetson(struct gp_exam *exam)
{
    static const struct {
        unsigned release;
        const char *jetpack;
    } packs[] = {{38, "7"}, {36, "6"}, {35, "5"}, {34, "5"}, {32, "4"}};
    char line[RELEASE_SIZE], model[128] = "";
    const char *jetpack = "";
    const unsigned release = jetson_release(exam, line);
    const bool is_reported = report_no_runtime(exam);
    if (!line[0]) {
        if (!is_reported)
            gp_exam_report(exam, GP_VERDICT_SKIP, "/etc/nv_tegra_release cannot be read");
        return;
    }
    (void)gp_files_line(&exam->files, "/proc/device-tree/model", model, sizeof(model));
    for (size_t i = 0; i < GP_ARRAY_LEN(packs); i++)
        if (packs[i].release == release)
            jetpack = packs[i].jetpack;
    gp_exam_report(exam, GP_VERDICT_INFO, "this is a Jetson%s%s%s%s", model[0] ? ": " : "", model,
                   jetpack[0] ? ", JetPack " : "", jetpack);
    gp_exam_evidence(exam, "/etc/nv_tegra_release", "%s", line);
    gp_exam_why(exam, "The GPU is part of the chip: it is not on the PCI bus, and its driver comes "
                      "with JetPack.");
    gp_exam_advice(exam, "use the wheels that NVIDIA builds for Jetson: those of PyPI and "
                         "pytorch.org have no code for its GPU");
    report_access(exam);
    if (!exam->machine.container && release < JETPACK_7 && exam->machine.nvidia_count == 0)
        gp_jetson_check_driver(exam);
    if (release == JETPACK_4)
        gp_jetson_check_image(exam, line);
}

/* The runtime that a build for this CUDA loads, unless it brings its own. */
static const char *runtime_name(struct gp_exam *exam, const char *cuda)
{
    unsigned major = gp_version_major(cuda);
    return major < 11    ? gp_exam_text(exam, "libcudart.so.%u.%u", major, gp_version_minor(cuda))
           : major == 11 ? "libcudart.so.11.0"
                         : gp_exam_text(exam, "libcudart.so.%u", major);
}

static bool has_runtime(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    for (size_t i = 0; i < all->count; i++)
        if (gp_files_exist(&exam->files,
                           gp_exam_text(exam, "%s/lib64/%s", all->list[i].path, name)))
            return true;
    return gp_system_library(exam, "", name) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/lib/%s", env->prefix, name)) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/torch/lib/%s", env->site, name)) ||
           gp_pyenv_package_like(env, "nvidia-cuda-runtime") != NULL;
}

/* Wheels for a Jetson take CUDA from JetPack; each JetPack has one CUDA. */
static void check_jetson_torch(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    const struct gp_toolkit_found *toolkit = gp_toolkit_used(gp_toolkits_of(exam));
    char line[RELEASE_SIZE];
    const unsigned release = jetson_release(exam, line);
    struct gp_torch torch;
    for (size_t i = 0; release > 0 && release < JETPACK_7 && i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        gp_jetson_check_others(exam, env);
        if (!gp_pyenv_torch(exam, env, &torch) || !torch.version[0])
            continue;
        const char *runtime = torch.cuda[0] ? runtime_name(exam, torch.cuda) : "";
        bool is_whole = runtime[0] && has_runtime(exam, env, runtime);
        if (is_whole)
            gp_jetson_check_sparse(exam, &torch);
        else if (runtime[0] && !toolkit && !exam->machine.container)
            gp_jetson_report_no_cuda(exam, &torch);
        if (is_whole || (runtime[0] && !toolkit))
            continue;
        if (runtime[0])
            gp_exam_report(exam, gp_pyenv_verdict(env, envs->count == 1),
                           "PyTorch %s in %s is built for CUDA %s, but this JetPack has CUDA %s",
                           torch.version, env->prefix, torch.cuda, toolkit->version);
        else
            gp_exam_report(exam, GP_VERDICT_WARN,
                           "PyTorch %s in %s has no CUDA: it computes on the CPU", torch.version,
                           env->prefix);
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/torch/version.py", env->site), "cuda: %s",
                         runtime[0] ? torch.cuda : "None");
        if (runtime[0])
            gp_exam_evidence(exam, runtime, "not in %s", toolkit->path);
        gp_exam_why(exam, "%s",
                    runtime[0] ? "The wheel is for another JetPack: import torch ends with "
                                 "\"cannot open shared object file\"."
                               : "PyPI's and pytorch.org's wheels for aarch64 are not for Jetson.");
        gp_exam_advice(exam, "remove torch and torchvision, and install the wheel that NVIDIA "
                             "builds for this JetPack");
        gp_exam_link(exam, release == JETPACK_4
                               ? "https://forums.developer.nvidia.com/t/pytorch-for-jetson/72048"
                               : "https://docs.nvidia.com/deeplearning/frameworks/"
                                 "install-pytorch-jetson-platform/index.html");
    }
}

/* ---- Apple ---- */

static bool is_apple(struct gp_exam *exam)
{
    return exam->machine.is_apple;
}

static void check_apple(struct gp_exam *exam)
{
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "this is Linux on an Apple chip: its GPU supports graphics, Vulkan and OpenCL");
    gp_exam_evidence(exam, "/proc/device-tree/compatible", "begins with apple,");
    gp_exam_why(exam,
                "There is no CUDA and no ROCm, and PyTorch's mps works only in macOS. Software "
                "that uses Vulkan can run on it, such as llama.cpp with its Vulkan backend.");
}

const struct gp_check gp_checks_platform[] = {
    {"platform.wsl", "WSL can use the Windows GPU", {NULL}, is_wsl, check_wsl_driver},
    {"platform.wsl-shadow",
     "no Linux driver hides the Windows driver",
     {"platform.wsl"},
     is_wsl,
     check_wsl_shadow},
    {"platform.jetson", "the Jetson release", {NULL}, is_jetson, check_jetson},
    {"platform.jetson-torch",
     "PyTorch is built for this JetPack",
     {NULL},
     is_jetson,
     check_jetson_torch},
    {"platform.passthrough",
     "GPUs for virtual machines are kept for them",
     {NULL},
     gp_passthrough_applies,
     gp_passthrough_check},
    {"platform.apple", "what the GPU of Apple chips supports", {NULL}, is_apple, check_apple},
    {0},
};
