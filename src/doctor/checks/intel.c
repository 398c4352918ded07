/* Intel GPUs: checked only if the machine has no other vendor's GPU to compute on. */
#include "doctor/checks/intel.h"

#include "doctor/checks/access_fix.h"
#include "doctor/checks/container.h"
#include "doctor/checks/firmware.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/graphics.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/unbound.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/access.h"
#include "doctor/readers/log.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

static bool is_intel_alone(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->intel_count > 0 && m->nvidia_count == 0 && m->amd_count == 0;
}

/* The first kernel that drives a model without being forced to (Linux, i915_pci.c and xe_pci.c),
 * and a version of the compute runtime that the first one for it is not older than. */
static const struct model {
    unsigned first, last; /* PCI devices */
    const char *name, *kernel, *runtime;
    bool is_card;
} models[] = {
    {0x4c80, 0x4c9f, "Rocket Lake", "5.12", "20.44", false},
    {0x4680, 0x46df, "Alder Lake", "5.17", "21.20", false},
    {0x5690, 0x56c2, "Arc Alchemist", "6.2", "22.10", true},
    {0xa720, 0xa7af, "Raptor Lake", "6.0", "22.10", false},
    {0x7d40, 0x7ddf, "Meteor Lake", "6.7", "23.10", false},
    {0x6420, 0x64bf, "Lunar Lake", "6.12", "24.01", false},
    {0xe211, 0xe211, "Arc Pro B60", "6.12", "25.05", true},
    {0xe220, 0xe223, "Arc Battlemage G31", "6.12", "25.05", true},
    {0xe200, 0xe2ff, "Arc Battlemage", "6.12", "24.20", true},
    {0xb080, 0xb0bf, "Panther Lake", "6.17", "24.40", false},
};

static const char *const modules[] = {"i915", "xe", NULL};

/* NULL: unknown. */
static const struct model *model_of(const struct gp_pci_gpu *gpu)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(models); i++)
        if (gpu->device >= models[i].first && gpu->device <= models[i].last)
            return &models[i];
    return NULL;
}

/* Whether an option makes the kernel drive GPUs that it does not support. */
static bool is_forced(const struct gp_exam *exam)
{
    char line[4096];
    return gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)) &&
           strstr(line, "force_probe=");
}

/* The kernel is older than the one that drives this GPU; false: it is not, or unknown. */
static bool report_age(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *kernel = exam->machine.kernel;
    const struct model *model = model_of(gpu);
    if (!model || !kernel[0] || gp_version_compare(kernel, model->kernel) >= 0 ||
        (gpu->driver[0] && !is_forced(exam)) || gp_unbound_has_backport(exam, modules))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "kernel %s is too old for Intel GPU %s (%s)", kernel,
                   gpu->bus_id, model->name);
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id), "%s",
                     gpu->driver[0] ? gpu->driver : "missing: no driver is bound");
    gp_exam_why(exam,
                "Linux %s is the first to drive it. Older ones do not, or only if they are "
                "forced to (force_probe), and programs then cannot compute on it.",
                model->kernel);
    gp_unbound_newer_kernel(exam, gpu, model->kernel);
    return true;
}

/* The driver is bound, but without a part of its firmware. */
static void report_firmware(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const struct gp_log_known *line =
        gpu->driver[0] && !exam->machine.container
            ? gp_log_known_for(exam, "intel.microcontroller", gpu->bus_id)
            : NULL;
    if (!line)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s did not find firmware of Intel GPU %s", gpu->driver,
                   gpu->bus_id);
    gp_exam_why(exam, "Without HuC, which GuC starts, the GPU lacks a part of video encoding and "
                      "decoding; newer ones do nothing without GuC.");
    gp_firmware_explain(exam, gpu, line, gpu->driver);
}

static void check_driver(struct gp_exam *exam)
{
    for (size_t i = 0; i < exam->machine.gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[i];
        if (gpu->vendor == GP_PCI_INTEL) {
            report_firmware(exam, gpu);
            gp_intel_report_no_mei(exam, gpu);
            gp_intel_report_no_huc(exam, gpu);
        }
        if (gpu->vendor != GP_PCI_INTEL || report_age(exam, gpu) ||
            gp_intel_report_regression(exam, gpu) || gp_intel_report_lost_guc(exam, gpu) ||
            gpu->driver[0] ||
            gp_unbound_report_unknown(exam, gpu, GP_VERDICT_WARN, modules, model_of(gpu)))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "no driver is bound to Intel GPU %s", gpu->bus_id);
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "missing");
        if (gp_intel_explain_probe(exam, gpu) || gp_unbound_no_module(exam, modules) ||
            gp_unbound_explain(exam, gpu, "xe", "intel") ||
            gp_unbound_explain(exam, gpu, "i915", "intel"))
            continue;
        gp_exam_advice(
            exam, "a newer kernel may support it: i915 drives older GPUs, xe those from 2023 on");
    }
}

/* Generations by the ranges of their PCI devices (Linux, pciids.h). */
struct span {
    unsigned first, last;
};

static bool is_in(const struct gp_pci_gpu *gpu, const struct span *spans, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (gpu->vendor == GP_PCI_INTEL && gpu->device >= spans[i].first &&
            gpu->device <= spans[i].last)
            return true;
    return false;
}

/* Broadwell to Ice Lake and Jasper Lake: generations 8, 9 and 11. */
static bool is_legacy(const struct gp_pci_gpu *gpu)
{
    static const struct span spans[] = {
        {0x1602, 0x163e}, {0x1902, 0x193d}, {0x5902, 0x593b}, {0x3e90, 0x3ea9}, {0x87c0, 0x87ca},
        {0x9b21, 0x9bf6}, {0x0a84, 0x0a84}, {0x1a84, 0x1a85}, {0x5a84, 0x5a85}, {0x3184, 0x3185},
        {0x8a50, 0x8a71}, {0x4541, 0x4571}, {0x4e51, 0x4e71}, {0x22b0, 0x22b3}};
    return is_in(gpu, spans, GP_ARRAY_LEN(spans));
}

/* Sandy Bridge to Haswell, and Atoms up to Braswell: Intel's new driver of VA-API is not for them.
 */
static bool is_before_media(const struct gp_pci_gpu *gpu)
{
    static const struct span spans[] = {
        {0x0042, 0x0046}, {0x0102, 0x016a}, {0x0402, 0x0d2e}, {0x0f30, 0x0f33}, {0x22b0, 0x22b3}};
    return is_in(gpu, spans, GP_ARRAY_LEN(spans)) && gpu->device != 0x0a84;
}

/* Likewise without Braswell, which is of Broadwell's generation. */
static bool is_before_runtimes(const struct gp_pci_gpu *gpu)
{
    return is_before_media(gpu) && (gpu->device < 0x22b0 || gpu->device > 0x22b3);
}

static const struct gp_pci_gpu *find_gpu(struct gp_exam *exam,
                                         bool (*is_one)(const struct gp_pci_gpu *))
{
    for (size_t i = 0; i < exam->machine.gpu_count; i++)
        if (is_one(&exam->machine.gpus[i]))
            return &exam->machine.gpus[i];
    return NULL;
}

/* A package or program that computes on Intel GPUs, without those that need no more than OpenCL
 * unless `with_opencl`; NULL: none is installed. */
static const char *user_of(struct gp_exam *exam, bool with_opencl)
{
    static const char *const names[] = {"intel-extension-for-pytorch", "openvino"};
    static const char *const paths[] = {"/opt/intel/oneapi", "/usr/bin/sycl-ls", "/usr/bin/clinfo"};
    const size_t of_opencl = !with_opencl; /* the last one of each */
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_torch torch;
    for (size_t i = 0; i < envs->count; i++) {
        if (gp_pyenv_torch(exam, &envs->list[i], &torch) && torch.xpu[0])
            return gp_exam_text(exam, "PyTorch %s in %s", torch.version, envs->list[i].prefix);
        for (size_t k = 0; k < GP_ARRAY_LEN(names) - of_opencl; k++)
            if (gp_pyenv_package(&envs->list[i], names[k]))
                return gp_exam_text(exam, "%s in %s", names[k], envs->list[i].prefix);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(paths) - of_opencl; i++)
        if (gp_files_exist(&exam->files, paths[i]))
            return paths[i];
    if (gp_system_library(exam, "", "libze_loader.so.1"))
        return "libze_loader.so.1";
    return with_opencl ? gp_intel_opencl_program(exam) : NULL;
}

/* Likewise, also programs for video. */
static const char *any_user_of(struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/lib/jellyfin-ffmpeg/ffmpeg",
                                        "/opt/frigate",
                                        "/usr/lib/plexmediaserver",
                                        "/app/emby/EmbyServer",
                                        "/usr/bin/vainfo",
                                        NULL};
    const char *found = gp_files_first(&exam->files, paths);
    return found ? found : user_of(exam, true);
}

/* Whether the GPU may be there only for containers, whose users are others. */
static bool is_host(struct gp_exam *exam)
{
    static const char *const programs[] = {"/usr/bin/docker", "/usr/bin/containerd",
                                           "/usr/bin/podman", NULL};
    return !exam->machine.container && gp_files_first(&exam->files, programs);
}

static void check_permission(struct gp_exam *exam)
{
    struct gp_access access;
    const char *path, *user = any_user_of(exam);
    if (user && exam->machine.container && !gp_files_exist(&exam->files, "/dev/dri")) {
        gp_exam_report(exam, GP_VERDICT_WARN, "this container has no Intel GPU");
        gp_exam_evidence(exam, "/dev/dri", "missing");
        gp_exam_evidence(exam, "", "%s needs it", user);
        if (gp_machine_is_lxc(&exam->machine))
            gp_container_advise_lxc(exam, GP_PCI_INTEL);
        else
            gp_exam_advice(exam, "start the container with --device=/dev/dri and --group-add with "
                                 "the number of the host's group render");
        return;
    }
    if (gp_access_denied(exam, "/dev/dri", "renderD", &access, &path) == 0)
        return;
    gp_exam_report(exam, user || !is_host(exam) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "you have no permission to compute on the Intel GPU: %s",
                   gp_access_words(exam, &access));
    gp_access_show(exam, &access, path);
    gp_access_propose(exam, &access, path);
}

/* The name of a GPU that is newer than a version of the runtime; NULL: none, or unknown. */
static const char *newer_model(const struct gp_exam *exam, const char *runtime)
{
    const char *found = NULL;
    for (size_t i = 0; i < exam->machine.gpu_count && !found; i++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[i];
        const struct model *model = gpu->vendor == GP_PCI_INTEL ? model_of(gpu) : NULL;
        found = model && gp_version_compare(runtime, model->runtime) < 0
                    ? model->name
                    : gp_intel_before_runtimes(gpu, runtime);
    }
    return found;
}

static bool report_old_runtime(struct gp_exam *exam)
{
    static const char *const words[] = {"intel-compute-runtime", "intel-opencl", NULL};
    struct gp_package *packages;
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < count; i++) {
        const struct gp_package *p = &packages[i];
        const char *model = newer_model(exam, p->version);
        if (!model || strcmp(p->state, "installed") != 0 || !strchr("012", p->version[0]) ||
            gp_version_major(p->version) < 18)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "Intel's compute runtime %s is older than this GPU (%s), and does not "
                       "find it",
                       p->version, model);
        gp_exam_evidence(exam, "package", "%s %s", p->name, p->version);
        if (exam->machine.container)
            gp_exam_advice(exam, "use a newer image, or install a newer runtime in this one, from "
                                 "Intel's own repository or the page below");
        else if (!gp_intel_propose_elsewhere(exam))
            gp_exam_advice(exam,
                           "install a newer one: from a newer release of the distribution, from "
                           "Intel's own repository, or from the page below");
        gp_exam_link(exam, "https://github.com/intel/compute-runtime/releases");
        return true;
    }
    return false;
}

/* The runtime is too new for the only GPU: since this version it drives those from 2020 on. */
static bool report_new_runtime(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_pci_gpu *gpu = m->gpu_count == 1 ? find_gpu(exam, is_legacy) : NULL;
    const char *where, *version = gpu ? gp_intel_new_runtime(exam, &where) : NULL;
    const char *user = user_of(exam, true), *mapper = gp_intel_tone_mapper(exam);
    user = user ? user : mapper;
    if (!version)
        return false;
    gp_exam_report(exam, user ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "Intel's compute runtime %s no longer supports Intel GPU %s", version,
                   gpu->bus_id);
    gp_exam_evidence(exam, where, "%s", version);
    if (user)
        gp_exam_evidence(exam, "", "%s needs it", user);
    gp_exam_why(exam, "24.35 was the last for GPUs before 2020 (Broadwell to Ice Lake). Newer ones "
                      "find no device.");
    gp_exam_advice(exam,
                   m->distro == GP_DISTRO_ARCH
                       ? "install a legacy build of it (AUR: intel-compute-runtime-legacy) instead"
                   : m->distro == GP_DISTRO_FEDORA
                       ? "install 24.35.30872 of intel-compute-runtime, intel-level-zero, "
                         "intel-opencl and intel-ocloc, and intel-igc 1.0.17791, instead (dnf "
                         "downgrade, or from koji.fedoraproject.org), and exclude them from updates"
                       : "install the legacy1 packages of 24.35.30872 from the page below "
                         "instead, or use Mesa's rusticl (RUSTICL_ENABLE=iris)");
    gp_exam_link(exam, "https://github.com/intel/compute-runtime/blob/master/LEGACY_PLATFORMS.md");
    return true;
}

void gp_intel_check_compute(struct gp_exam *exam)
{
    if (report_old_runtime(exam) || report_new_runtime(exam))
        return;
    bool has_zero = gp_system_library(exam, "", "libze_intel_gpu.so.1");
    bool has_cl = gp_intel_has_opencl(exam);
    if (has_zero && has_cl) {
        gp_intel_report_lost_runtime(exam);
        return;
    }
    const char *user = user_of(exam, !has_cl);
    const struct gp_pci_gpu *old = find_gpu(exam, is_before_runtimes);
    if (old && exam->machine.intel_count == 1) {
        if (!has_cl)
            gp_intel_report_before_runtimes(exam, old, user);
        return;
    }
    if (!user && !has_cl && !find_gpu(exam, is_before_media))
        user = gp_intel_tone_mapper(exam);
    gp_exam_report(exam, user ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "programs cannot compute on the Intel GPU yet: %s%s%s",
                   has_zero ? "" : "Level Zero", has_zero || has_cl ? "" : " and ",
                   has_cl ? "" : "OpenCL");
    if (user)
        gp_exam_evidence(exam, "", "%s needs it", user);
    if (!has_zero)
        gp_exam_evidence(exam, "libze_intel_gpu.so.1", "not in any of the usual directories");
    if (!has_cl)
        gp_exam_evidence(exam, "/etc/OpenCL/vendors/intel.icd", "missing");
    gp_exam_why(exam, "%s", gp_intel_use(user));
    static const char beignet[] = "1.3"; /* what releases without the runtime have */
    const char *shipped = gp_intel_shipped_runtime(exam);
    const struct gp_intel_need need = {has_zero, has_cl, user_of(exam, false) != NULL,
                                       !has_cl &&
                                           newer_model(exam, shipped[0] ? shipped : beignet)};
    gp_intel_propose_packages(exam, &need);
}

/* An Arc card; integrated graphics is mostly not meant for computing. */
static bool has_card(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; is_intel_alone(exam) && i < m->gpu_count; i++) {
        const struct model *model =
            m->gpus[i].vendor == GP_PCI_INTEL ? model_of(&m->gpus[i]) : NULL;
        if (model && model->is_card)
            return true;
    }
    return false;
}

static bool wants_torch(struct gp_exam *exam)
{
    return has_card(exam) || (is_intel_alone(exam) && find_gpu(exam, is_legacy));
}

/* Whether a list of devices of oneAPI has no GPU: "opencl:cpu". */
static bool selects_cpu(const char *value)
{
    static const char *const others[] = {"gpu", "*", "0", "!"};
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (strstr(value, others[i]))
            return false;
    return strstr(value, "cpu");
}

static void check_masks(struct gp_exam *exam)
{
    static const char mask[] = "ZE_AFFINITY_MASK";
    static const char *const selectors[] = {"ONEAPI_DEVICE_SELECTOR", "SYCL_DEVICE_FILTER"};
    const char *value = gp_machine_variable(&exam->machine, mask);
    for (size_t i = 0; i < GP_ARRAY_LEN(selectors); i++) {
        const char *list = gp_machine_variable(&exam->machine, selectors[i]);
        if (!list || !selects_cpu(list))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s hides the Intel GPU: it names only the CPU",
                       selectors[i]);
        gp_exam_evidence(exam, selectors[i], "%s", list);
        gp_exam_unset(exam, selectors[i], "");
    }
    if (!value || value[0] < '0' || value[0] > '9' || strchr(value, ',') ||
        strtoul(value, NULL, 10) < exam->machine.intel_count)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s hides the Intel GPU: there is no number %lu", mask,
                   strtoul(value, NULL, 10));
    gp_exam_evidence(exam, mask, "%s", value);
    gp_exam_unset(exam, mask, "");
}

/* Intel's extension has the numbers of the PyTorch that it is for. */
static void check_ipex(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_torch *torch)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "intel-extension-for-pytorch");
    if (!package || (gp_version_major(package->version) == gp_version_major(torch->version) &&
                     gp_version_minor(package->version) == gp_version_minor(torch->version)))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "intel-extension-for-pytorch %s in %s is for PyTorch %u.%u, but PyTorch %s is "
                   "installed",
                   package->version, env->prefix, gp_version_major(package->version),
                   gp_version_minor(package->version), torch->version);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_why(exam, "Its compiled code does not match: the import fails, or there is no xpu.");
    gp_exam_advice(exam, "install both in one version, as its page says; since PyTorch 2.5 its own "
                         "builds for xpu need no extension");
    gp_exam_link(exam, "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html");
}

/* PyTorch in the user's own environment, built for something else. */
static void check_torch(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_torch torch;
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        if (!env->is_active || !gp_pyenv_torch(exam, env, &torch) || !torch.version[0])
            continue;
        check_ipex(exam, env, &torch);
        const struct gp_pci_gpu *old = torch.xpu[0] ? find_gpu(exam, is_legacy) : NULL;
        if (old && exam->machine.gpu_count == 1) {
            gp_exam_report(exam, GP_VERDICT_WARN,
                           "PyTorch %s in %s is for newer Intel GPUs than %s: it finds no xpu",
                           torch.version, env->prefix, old->bus_id);
            gp_exam_evidence(exam,
                             gp_exam_text(exam, "/sys/bus/pci/devices/%s/device", old->bus_id),
                             "0x%04x, of a generation before 2020", old->device);
            gp_exam_why(exam, "It supports Arc and the graphics of Core Ultra and later.");
            gp_exam_advice(exam, "compute on the CPU, or with OpenVINO on this GPU");
        }
        if (torch.xpu[0] || gp_pyenv_package(env, "intel-extension-for-pytorch") || !has_card(exam))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "PyTorch %s in %s is not built for Intel's GPUs: it computes on the CPU",
                       torch.version, env->prefix);
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/torch/version.py", env->site), "PyTorch %s",
                         torch.version);
        gp_exam_torch(exam, env, "the build for them; it needs PyTorch 2.5 or newer", "torch",
                      "https://download.pytorch.org/whl/xpu");
    }
}

/* ---- video ---- */

/* Models without a kernel of their own above; Intel's old driver for VA-API ends before them. */
static bool is_after_i965(const struct gp_pci_gpu *gpu)
{
    static const struct {
        unsigned first, last;
    } others[] = {
        {0x4541, 0x4571}, {0x4905, 0x4909}, {0x4e51, 0x4e71}, {0x8a50, 0x8a7f}, {0x9a40, 0x9aff}};
    bool is_after = model_of(gpu);
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        is_after = is_after || (gpu->device >= others[i].first && gpu->device <= others[i].last);
    return is_after && gpu->vendor == GP_PCI_INTEL;
}

static bool has_video(struct gp_exam *exam)
{
    return is_intel_alone(exam) &&
           (gp_system_library(exam, "", "dri/i965_drv_video.so") ||
            find_gpu(exam, is_before_media) || gp_graphics_video_user(exam));
}

static void report_no_video(struct gp_exam *exam, bool is_old)
{
    const char *user = gp_graphics_video_user(exam);
    if (!user || !gp_system_library(exam, "", "libva.so.2"))
        return;
    gp_exam_report(
        exam, GP_VERDICT_WARN,
        "VA-API has no driver for the Intel GPU: video is decoded and encoded on the CPU");
    gp_exam_evidence(exam, is_old ? "i965_drv_video.so" : "iHD_drv_video.so",
                     "not in any of the usual directories");
    gp_exam_evidence(exam, user, "uses it");
    gp_exam_remedy(exam, is_old ? GP_REMEDY_INSTALL_INTEL_VIDEO_OLD : GP_REMEDY_INSTALL_INTEL_VIDEO,
                   NULL, NULL);
    gp_exam_command(exam, "it says whether the driver starts", "vainfo");
}

static void check_video(struct gp_exam *exam)
{
    const char *old = gp_system_library(exam, "", "dri/i965_drv_video.so");
    bool has_new = gp_system_library(exam, "", "dri/iHD_drv_video.so") ||
                   gp_system_library(exam, "", "dri-nonfree/iHD_drv_video.so");
    const struct gp_pci_gpu *before = find_gpu(exam, is_before_media);
    if (!old && !has_new)
        report_no_video(exam, before);
    if (before && has_new && !old) {
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "VA-API has only a driver for newer GPUs than Intel GPU %s", before->bus_id);
        gp_exam_evidence(exam, "iHD_drv_video.so", "for GPUs from Broadwell (2014) on");
        gp_exam_evidence(exam, "i965_drv_video.so", "not in any of the usual directories");
        gp_exam_why(exam, "Programs decode and encode video on the CPU.");
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_INTEL_VIDEO_OLD, NULL, NULL);
        return;
    }
    for (size_t i = 0; i < exam->machine.gpu_count && old; i++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[i];
        if (!is_after_i965(gpu))
            continue;
        const char *wish = gp_machine_variable(&exam->machine, "LIBVA_DRIVER_NAME");
        if (has_new && wish && strcmp(wish, "i965") == 0) {
            gp_exam_report(exam, GP_VERDICT_WARN,
                           "LIBVA_DRIVER_NAME names a driver for older GPUs than Intel GPU %s",
                           gpu->bus_id);
            gp_exam_evidence(exam, "LIBVA_DRIVER_NAME", "i965, for GPUs before Ice Lake (2019)");
            gp_exam_unset(exam, "LIBVA_DRIVER_NAME", "VA-API then chooses the driver by itself");
            return;
        }
        if (has_new)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "VA-API has only a driver for older GPUs than Intel GPU %s", gpu->bus_id);
        gp_exam_evidence(exam, old, "for GPUs before Ice Lake (2019)");
        gp_exam_evidence(exam, "iHD_drv_video.so", "not in any of the usual directories");
        gp_exam_why(exam, "Programs decode and encode video on the CPU.");
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_INTEL_VIDEO, NULL, NULL);
        gp_exam_command(exam, "it says whether the driver starts", "vainfo");
        return;
    }
}

const struct gp_check gp_checks_intel[] = {
    {"intel.driver", "the kernel drives the Intel GPUs", {NULL}, is_intel_alone, check_driver},
    {"intel.permission",
     "you have permission to use the Intel GPUs",
     {"intel.driver"},
     is_intel_alone,
     check_permission},
    {"intel.compute",
     "programs can compute on the Intel GPUs",
     {"intel.driver"},
     is_intel_alone,
     gp_intel_check_compute},
    {"intel.video",
     "VA-API's driver is for these Intel GPUs",
     {"intel.driver"},
     has_video,
     check_video},
    {"intel.torch",
     "PyTorch is built for the Intel GPUs",
     {"intel.driver"},
     wants_torch,
     check_torch},
    {"intel.env",
     "no environment variable hides the Intel GPUs",
     {NULL},
     is_intel_alone,
     check_masks},
    {0},
};
