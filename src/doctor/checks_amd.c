/* AMD GPUs: the kernel driver, ROCm, and permissions to compute. */
#include "doctor/checks_amd.h"

#include "doctor/access.h"
#include "doctor/framework.h"
#include "doctor/gfxchip.h"
#include "doctor/gfxlist.h"
#include "doctor/kernel_config.h"
#include "doctor/log.h"
#include "doctor/tables.h"
#include "doctor/unbound.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_amd(struct gp_exam *exam)
{
    return exam->machine.amd_count > 0;
}

static bool has_rocm(struct gp_exam *exam)
{
    return has_amd(exam) && gp_files_exist(&exam->files, "/opt/rocm");
}

/* PyTorch wheels include ROCm. */
static bool has_rocm_torch(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_torch torch;
    for (size_t i = 0; i < envs->count; i++)
        if (gp_pyenv_torch(exam, &envs->list[i], &torch) && torch.hip[0])
            return true;
    return false;
}

/* A GPU is meant for computing where ROCm is installed; integrated graphics alone is no finding. */
static bool wants_rocm(struct gp_exam *exam)
{
    return has_amd(exam) && (has_rocm(exam) || has_rocm_torch(exam) ||
                             gp_files_exist(&exam->files, "/usr/bin/rocminfo"));
}

/* Whether none of the AMD GPUs has its driver, although they are meant for computing: without it
 * there is nothing to compute on. */
static bool is_needed(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_AMD && strcmp(m->gpus[i].driver, "amdgpu") == 0)
            return false;
    return wants_rocm(exam);
}

/* Cards that radeon drives: up to GCN 2, by the ranges of its table of ids. */
static bool is_of_radeon(unsigned device)
{
    static const unsigned ranges[][2] = {{0x3150, 0x65ff}, {0x6600, 0x669f}, {0x6700, 0x67bf},
                                         {0x6800, 0x685f}, {0x6880, 0x68ff}, {0x7100, 0x7300},
                                         {0x9400, 0x986f}, {0x9900, 0x9aff}, {0x1304, 0x131d}};
    for (size_t i = 0; i < GP_ARRAY_LEN(ranges); i++)
        if (device >= ranges[i][0] && device <= ranges[i][1])
            return true;
    return false;
}

/* The card's own driver was turned off, but amdgpu leaves such old cards to it. */
static bool explain_radeon(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    if (gpu->driver[0] || !is_of_radeon(gpu->device) ||
        !gp_unbound_explain(exam, gpu, "radeon", "amd,modules"))
        return false;
    gp_exam_why(exam, "The driver radeon is blocked, and amdgpu takes cards of this age only with "
                      "the arguments below.");
    gp_exam_advice(exam, "or have amdgpu drive it: amdgpu.si_support=1 amdgpu.cik_support=1 on the "
                         "kernel command line, with a kernel that was built for it");
    return true;
}

static void propose_loading(struct gp_exam *exam)
{
    if (gp_files_exist(&exam->files, "/sys/module/amdgpu"))
        gp_exam_command(exam, "amdgpu is loaded; the kernel log says why it left this GPU out",
                        "sudo dmesg | grep -i amdgpu");
    else
        gp_exam_command(exam, "load it; the kernel log says why it was not loaded automatically",
                        "sudo modprobe amdgpu");
}

static void check_driver(struct gp_exam *exam)
{
    for (size_t i = 0; i < exam->machine.gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[i];
        if (gpu->vendor != GP_PCI_AMD || strcmp(gpu->driver, "amdgpu") == 0)
            continue;
        bool is_passed = strcmp(gpu->driver, "vfio-pci") == 0;
        gp_exam_report(exam,
                       is_passed         ? GP_VERDICT_INFO
                       : is_needed(exam) ? GP_VERDICT_FAIL
                                         : GP_VERDICT_WARN,
                       is_passed ? "AMD GPU %s is reserved for a virtual machine"
                                 : "AMD GPU %s is not bound to amdgpu",
                       gpu->bus_id);
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "%s", gpu->driver[0] ? gpu->driver : "no driver is bound");
        if (strcmp(gpu->driver, "radeon") == 0)
            gp_exam_advice(exam, "it can show a screen, but not compute; amdgpu takes over with "
                                 "radeon.si_support=0 radeon.cik_support=0 amdgpu.si_support=1 "
                                 "amdgpu.cik_support=1 on the kernel command line");
        else if (!is_passed && !explain_radeon(exam, gpu) &&
                 !gp_unbound_explain(exam, gpu, "amdgpu",
                                     exam->machine.nvidia_count ? "amd" : "amd,modules") &&
                 !gpu->driver[0])
            propose_loading(exam);
    }
}

/* "gfx803" for the first AMD GPU, if some release of ROCm computes on such a card; "". */
static const char *computing_card(const struct gp_machine *m)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_AMD)
            return gp_gfx_of_chip(m->gpus[i].device);
    return "";
}

/* Whether a line of the log that leaves a GPU out is about all of them. */
static bool leaves_all_out(struct gp_exam *exam)
{
    return exam->machine.amd_count == 1 || gp_amd_count_nodes(exam) == 0;
}

/* The kernel cannot compute on the AMD GPU, as it says. */
static bool report_unsupported(struct gp_exam *exam)
{
    const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_KFD_UNSUPPORTED);
    if (!line || !leaves_all_out(exam))
        return false;
    const char *name = strstr(line->text, " VF ") ? "" : computing_card(&exam->machine);
    gp_exam_report(exam, GP_VERDICT_FAIL, "the kernel does not support this AMD GPU for computing");
    gp_exam_evidence(exam, line->where, "%s", line->text);
    gp_exam_why(exam, "ROCm finds no GPU, whatever its permissions and settings.");
    if (name[0])
        gp_exam_advice(exam,
                       "boot a kernel whose amdgpu computes on it (%s): a newer one, or one with "
                       "AMD's own module (amdgpu-dkms, formerly rock-dkms or kernels named "
                       "…-kfd-compute-rocm-…)",
                       name);
    else
        gp_exam_advice(exam, "ROCm needs a newer GPU; this one can still show a screen");
    return true;
}

static void fix_atomics(struct gp_exam *exam, bool is_firmware)
{
    if (is_firmware) {
        gp_exam_advice(exam, "update the package linux-firmware (Debian: firmware-amd-graphics), "
                             "or install AMD's amdgpu-dkms, which has newer firmware:");
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
        gp_exam_command(exam, "", "sudo reboot");
        gp_exam_advice(exam, "or a slot with PCIe atomics, which is connected to the CPU");
    } else if (gp_machine_is_laptop(&exam->files)) {
        gp_exam_advice(exam, "none in this laptop, whose GPU cannot be moved: use Vulkan or Mesa's "
                             "OpenCL (rusticl) on it, which do without ROCm");
    } else {
        gp_exam_advice(exam, "move it to a slot that is connected to the CPU itself, without a "
                             "riser; some CPUs and boards have none with them");
    }
}

/* The kernel left the AMD GPU out, mostly because its slot has no PCIe atomics. */
static bool report_skipped(struct gp_exam *exam)
{
    static const char ids[] = "amd.kfd-skip,amd.kfd-iommu,amd.kfd-not-added";
    const struct gp_log_known *known = leaves_all_out(exam) ? gp_log_known_of(exam, ids) : NULL;
    if (!known)
        return false;
    /* "PCI rejects atomics 494<509": this firmware, and the first that does without atomics. */
    const char *numbers = strstr(known->text, "rejects atomics "), *less;
    bool is_atomics = strstr(known->text, "atomics");
    bool is_firmware = numbers && (less = strchr(numbers, '<')) && strtol(less + 1, NULL, 10) > 0;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the kernel does not use this AMD GPU for computing%s",
                   is_firmware  ? ": its firmware is too old to do without PCIe atomics"
                   : is_atomics ? ": its slot has no PCIe atomics"
                                : "");
    gp_exam_evidence(exam, known->where, "%s", known->text);
    gp_exam_why(exam, is_atomics ? "ROCm finds no GPU. Older GPUs need atomic operations on PCIe, "
                                   "which must pass every bridge up to the CPU."
                                 : "ROCm finds no GPU.");
    if (is_atomics)
        fix_atomics(exam, is_firmware);
    else
        gp_exam_advice(exam, "%s", known->fix);
    return true;
}

/* A node of Kubernetes gives its cards to programs that compute. */
static bool is_node(struct gp_exam *exam)
{
    static const char *const programs[] = {"/usr/bin/kubelet", "/usr/local/bin/kubelet"};
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++)
        if (gp_files_exist(&exam->files, programs[i]))
            return !exam->machine.container && gp_gfx_has_card(&exam->machine);
    return false;
}

static bool wants_kfd(struct gp_exam *exam)
{
    return wants_rocm(exam) || (has_amd(exam) && is_node(exam));
}

/* amdgpu has been built without its compute part. */
static bool report_left_out(struct gp_exam *exam)
{
    static const char option[] = "CONFIG_HSA_AMD";
    const char *where;
    if (exam->machine.container || !gp_files_exist(&exam->files, "/sys/module/amdgpu") ||
        !gp_kernel_lacks(exam, option, &where))
        return false;
    gp_exam_report(exam, wants_rocm(exam) ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   "this kernel is built without the compute part of amdgpu (KFD)");
    gp_exam_evidence(exam, where, "%s is not set", option);
    gp_exam_evidence(exam, "/dev/kfd", "missing");
    gp_exam_why(exam, "ROCm reaches the GPU through /dev/kfd: without it programs find no GPU, and "
                      "AMD's device plugin for Kubernetes none to offer.");
    if (gp_remedy_other(exam->machine.distro_id, GP_REMEDY_NEWER_KERNEL))
        gp_exam_remedy(exam, GP_REMEDY_NEWER_KERNEL, NULL, NULL);
    else
        gp_exam_advice(exam,
                       "boot the distribution's own kernel, or a newer one, that is built with "
                       "%s=y; or build it so (drivers/gpu/drm/amd/amdkfd)",
                       option);
    return true;
}

/* The kernel has the device, but no GPU for it. */
static void check_nodes(struct gp_exam *exam)
{
    if (exam->machine.container || gp_amd_count_nodes(exam) != 0)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the kernel offers no AMD GPU for computing");
    gp_exam_evidence(exam, GP_AMD_NODES, "only CPUs");
    gp_exam_why(exam, "ROCm finds no GPU: the kernel does not know this model for computing, its "
                      "slot has no PCIe atomics, or a part of its firmware is missing.");
    gp_exam_command(exam, "the kernel log says which", "sudo dmesg | grep -iE 'kfd|amdgpu'");
    gp_exam_advice(exam, "mostly a newer kernel and linux-firmware help, or AMD's amdgpu-dkms");
}

static void check_kfd(struct gp_exam *exam)
{
    if (report_unsupported(exam) || report_skipped(exam))
        return;
    if (gp_files_exist(&exam->files, "/dev/kfd")) {
        check_nodes(exam);
        return;
    }
    if (report_left_out(exam) || !wants_rocm(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "ROCm has no compute device");
    gp_exam_evidence(exam, "/dev/kfd", "missing");
    if (exam->machine.container)
        gp_exam_advice(exam, "start the container with --device=/dev/kfd --device=/dev/dri "
                             "--group-add video --group-add render");
    else
        gp_exam_advice(exam, "amdgpu creates it for GPUs that it supports for computing; the "
                             "kernel log names unsupported ones (not supported in kfd)");
}

/* No udev rule has given it to a group. */
static bool report_root_only(struct gp_exam *exam, const struct gp_access *access)
{
    bool is_shared = (access->mode & 06) || ((access->mode & 060) && access->group != 0);
    if (is_shared || (access->mode & 044) || exam->machine.container)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "only root may compute on the AMD GPU");
    gp_exam_evidence(exam, "/dev/kfd", "mode %04o, group %s", access->mode, access->group_name);
    gp_exam_why(exam, "No udev rule gives it to a group: other users' programs report Permission "
                      "denied, or find no agent.");
    gp_access_propose(exam, access, "/dev/kfd");
    return true;
}

static void check_permission(struct gp_exam *exam)
{
    struct gp_access access = gp_access_of(exam, "/dev/kfd");
    const char *path = "/dev/kfd";
    if ((access.is_root || !access.is_known) && access.is_there && report_root_only(exam, &access))
        return;
    if (!access.is_known) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "/proc/self/status does not identify the user");
        return;
    }
    if (access.may_use && gp_access_denied(exam, "/dev/dri", "renderD", &access, &path) == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "you have no permission to use the AMD GPU: you are not in group %s",
                   access.group_name);
    gp_exam_evidence(exam, path, "mode %04o, group %s (%u)", access.mode, access.group_name,
                     access.group);
    gp_exam_why(exam, "rocminfo then reports Permission denied, or finds no agent.");
    gp_access_propose(exam, &access, path);
}

static void check_version(struct gp_exam *exam)
{
    char line[64];
    static const char path[] = "/opt/rocm/.info/version";
    struct gp_gfxlist targets;
    if (!gp_files_line(&exam->files, path, line, sizeof(line))) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "%s cannot be read", path);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_OK, "ROCm %s", line);
    gp_exam_evidence(exam, path, "%s", line);
    const char *place = gp_amd_targets(exam, &targets);
    for (size_t i = 0; i < targets.count; i++)
        gp_exam_evidence(exam, place, "%s", targets.names[i]);
}

/* ---- PyTorch ---- */

static bool is_only_vendor(struct gp_exam *exam)
{
    return has_amd(exam) && exam->machine.nvidia_count == 0;
}

/* The ROCm build of the same version, so that programs need not change; otherwise the newest. */
static const struct gp_torch_rocm *build_like(const char *version)
{
    const struct gp_torch_rocm *row = &gp_torch_rocms[gp_torch_rocm_count - 1];
    for (size_t i = 0; i < gp_torch_rocm_count; i++)
        if (gp_version_major(gp_torch_rocms[i].torch) == gp_version_major(version) &&
            gp_version_minor(gp_torch_rocms[i].torch) == gp_version_minor(version))
            row = &gp_torch_rocms[i];
    return row;
}

static const char *purpose_words(struct gp_exam *exam, const struct gp_torch *torch)
{
    return torch->cuda[0]  ? gp_exam_text(exam, "CUDA %s", torch->cuda)
           : torch->xpu[0] ? "Intel's GPUs"
                           : "the CPU";
}

/* One finding, however many environments have such a build. It is no problem if the GPU is not used
 * for computing. */
static void check_torch(struct gp_exam *exam)
{
    enum { SHOWN = 12 };
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    bool is_wanted = exam->pythons || wants_rocm(exam);
    struct gp_torch torch, first = {.env = NULL};
    size_t installed = 0, others = 0;
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        if (!gp_pyenv_torch(exam, env, &torch) || !torch.version[0])
            continue;
        installed++;
        if (torch.hip[0])
            continue;
        if (others == 0) {
            first = torch;
            is_wanted = is_wanted || (env->is_active && gp_gfx_has_card(&exam->machine));
            gp_exam_report(exam, is_wanted ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                           "PyTorch %s in %s is not built for AMD GPUs: it computes on the CPU",
                           torch.version, env->prefix);
        }
        if (others++ < SHOWN)
            gp_exam_evidence(exam, gp_exam_text(exam, "%s/torch/version.py", env->site),
                             "PyTorch %s for %s", torch.version, purpose_words(exam, &torch));
    }
    if (installed == 0)
        gp_framework_report_none(exam, GP_FRAMEWORK_TORCH);
    if (others == 0)
        return;
    const struct gp_torch_rocm *row = build_like(first.version);
    gp_exam_pip(exam, first.env, GP_PIP_AGAIN, "for the GPUs that ROCm supports",
                gp_exam_text(exam,
                             "'torch==%s.*' --index-url https://download.pytorch.org/whl/rocm%s",
                             row->torch, row->rocm));
    if (others > 1)
        gp_exam_advice(exam, "and the same in the other environments");
}

/* With an NVIDIA GPU beside it, a mask may be meant for CUDA. */
static bool wants_rocm_alone(struct gp_exam *exam)
{
    return is_only_vendor(exam) && wants_rocm(exam);
}

/* ---- errors ---- */

/* "ue: 2\nce: 0" for each unit of a GPU that counts errors. */
static void check_card(struct gp_exam *exam, const char *card)
{
    enum { SHOWN = 12 };
    char **files, text[128];
    const char *folder = gp_exam_text(exam, "/sys/class/drm/%s/device/ras", card);
    const struct gp_finding *before = exam->last;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &files);
    for (long i = 0, shown = 0; i < n && shown < SHOWN; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, files[i]);
        if (!strstr(files[i], "_err_count") ||
            gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
            continue;
        const char *found = strstr(text, "ue:");
        long errors = found ? strtol(found + 3, NULL, 10) : 0;
        if (errors <= 0)
            continue;
        if (exam->last == before)
            gp_exam_report(exam, GP_VERDICT_FAIL, "AMD GPU %s had uncorrectable errors", card);
        gp_exam_evidence(exam, path, "ue: %ld", errors);
        shown++;
    }
    if (exam->last != before)
        gp_exam_advice(
            exam, "stop the jobs on it and reset it; if the errors return, contact the vendor");
}

static void check_errors(struct gp_exam *exam)
{
    char **names;
    long cards = gp_files_list(&exam->files, &exam->arena, "/sys/class/drm", &names);
    for (long i = 0; i < cards && i < GP_MACHINE_GPUS; i++)
        if (strncmp(names[i], "card", 4) == 0 && !strchr(names[i], '-'))
            check_card(exam, names[i]);
}

const struct gp_check gp_checks_amd[] = {
    {"amd.driver", "amdgpu drives the AMD GPUs", {NULL}, has_amd, check_driver},
    {"amd.kfd", "/dev/kfd exists", {"amd.driver"}, wants_kfd, check_kfd},
    {"amd.permission",
     "you have permission to use the AMD GPUs",
     {"amd.kfd"},
     wants_rocm,
     check_permission},
    {"amd.rocm", "ROCm is installed", {NULL}, has_rocm, check_version},
    {"amd.packages",
     "ROCm's packages are of one maker",
     {NULL},
     gp_amd_has_two_makers,
     gp_amd_check_makers},
    {"amd.opencl", "OpenCL's loader knows ROCm", {NULL}, gp_amd_has_opencl, gp_amd_check_opencl},
    {"amd.torch", "PyTorch is built for AMD GPUs", {NULL}, is_only_vendor, check_torch},
    {"amd.frameworks",
     "other frameworks are built for AMD GPUs",
     {NULL},
     gp_amd_has_other_framework,
     gp_amd_check_framework},
    {"amd.code",
     "ROCm and PyTorch have code for the AMD GPUs",
     {"amd.kfd", "amd.permission"},
     wants_rocm,
     gp_amd_check_code},
    {"amd.env",
     "no environment variable hides the AMD GPUs",
     {NULL},
     wants_rocm_alone,
     gp_amd_check_masks},
    {"amd.ldpath",
     "LD_LIBRARY_PATH does not lead to another ROCm than PyTorch's",
     {NULL},
     gp_amd_has_ldpath,
     gp_amd_check_ldpath},
    {"amd.override",
     "the AMD GPUs are not taken for others",
     {NULL},
     gp_amd_has_override,
     gp_amd_check_override},
    {"amd.errors", "no uncorrectable errors", {"amd.driver"}, has_amd, check_errors},
    {0},
};
