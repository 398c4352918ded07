/* AMD GPUs: the kernel's device for computing, who wants it, and who may use it. */
#include "doctor/checks/access_fix.h"
#include "doctor/checks/amd.h"
#include "doctor/checks/container.h"
#include "doctor/checks/system.h"
#include "doctor/readers/access.h"
#include "doctor/readers/gfxchip.h"
#include "doctor/readers/kernel_config.h"
#include "doctor/readers/log.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/torch.h"

#include <stdlib.h>
#include <string.h>

bool gp_amd_drives(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_AMD && strcmp(m->gpus[i].driver, "amdgpu") == 0)
            return true;
    return false;
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
bool gp_amd_wants_rocm(struct gp_exam *exam)
{
    return exam->machine.amd_count > 0 &&
           (gp_files_exist(&exam->files, "/opt/rocm") || has_rocm_torch(exam) ||
            gp_files_exist(&exam->files, "/usr/bin/rocminfo"));
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

/* The line by which the kernel left the AMD GPU out; NULL: it did not. */
static const struct gp_log_known *skipped(struct gp_exam *exam)
{
    static const char ids[] = "amd.kfd-skip,amd.kfd-iommu,amd.kfd-not-added";
    return leaves_all_out(exam) ? gp_log_known_of(exam, ids) : NULL;
}

bool gp_amd_lacks_compute(struct gp_exam *exam)
{
    bool has_none = !gp_files_exist(&exam->files, "/dev/kfd") || gp_amd_count_nodes(exam) == 0;
    return has_none && !exam->machine.container && gp_amd_wants_rocm(exam) && gp_amd_drives(exam) &&
           !skipped(exam);
}

/* The kernel left the AMD GPU out, mostly because its slot has no PCIe atomics. */
static bool report_skipped(struct gp_exam *exam)
{
    const struct gp_log_known *known = skipped(exam);
    if (!known)
        return false;
    /* "PCI rejects atomics 494<509": this firmware, and the first that does without atomics. */
    const char *numbers = strstr(known->text, "rejects atomics "), *less;
    bool is_atomics = strstr(known->text, "atomics");
    bool is_iommu = strcmp(known->id, "amd.kfd-iommu") == 0;
    bool is_firmware = numbers && (less = strchr(numbers, '<')) && strtol(less + 1, NULL, 10) > 0;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the kernel does not use this AMD GPU for computing%s",
                   is_firmware  ? ": its firmware is too old to do without PCIe atomics"
                   : is_atomics ? ": its slot has no PCIe atomics"
                   : is_iommu   ? ": it needs the IOMMU"
                                : "");
    gp_exam_evidence(exam, known->where, "%s", known->text);
    gp_exam_why(exam,
                is_atomics ? "ROCm finds no GPU. Older GPUs need atomic operations on PCIe, "
                             "which must pass every bridge up to the CPU."
                : is_iommu
                    ? "ROCm finds no GPU. Before Linux 6.6 integrated GPUs compute only "
                      "with an IOMMU, which is off or not usable here. Graphics do not need it."
                    : "ROCm finds no GPU.");
    if (is_atomics) {
        fix_atomics(exam, is_firmware);
        return true;
    }
    if (is_iommu)
        gp_exam_advice(exam, "turn the IOMMU (AMD-Vi) on in the firmware settings, and remove "
                             "amd_iommu=off and iommu=off from the kernel command line");
    gp_exam_advice(exam, "%s", known->fix);
    return true;
}

/* A node of Kubernetes gives its cards to programs that compute. */
static bool is_node(struct gp_exam *exam)
{
    static const char *const programs[] = {"/usr/bin/kubelet", "/usr/local/bin/kubelet", NULL};
    return gp_files_first(&exam->files, programs) && !exam->machine.container &&
           gp_gfx_has_card(&exam->machine);
}

bool gp_amd_wants_kfd(struct gp_exam *exam)
{
    return gp_amd_wants_rocm(exam) || (exam->machine.amd_count > 0 && is_node(exam));
}

/* amdgpu has been built without its compute part. */
static bool report_left_out(struct gp_exam *exam)
{
    static const char option[] = "CONFIG_HSA_AMD";
    const char *where;
    bool is_loaded = gp_files_exist(&exam->files, "/sys/module/amdgpu") || gp_amd_drives(exam);
    if (exam->machine.container || !is_loaded ||
        !gp_kernel_lacks(exam, option, "CONFIG_DRM_AMDGPU", &where))
        return false;
    gp_exam_report(exam, gp_amd_wants_rocm(exam) ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   "this kernel is built without the compute part of amdgpu (KFD)");
    gp_exam_evidence(exam, where, "%s is not set", option);
    gp_exam_evidence(exam, "/dev/kfd", "missing");
    gp_exam_why(exam, "ROCm reaches the GPU through /dev/kfd: without it programs find no GPU, and "
                      "AMD's device plugin for Kubernetes none to offer.");
    if (gp_remedy_other(exam->machine.distro_id, GP_REMEDY_NEWER_KERNEL))
        gp_exam_remedy(exam, GP_REMEDY_NEWER_KERNEL, NULL, NULL);
    else
        gp_exam_advice(
            exam,
            "boot the distribution's own kernel, or a newer one, that is built with "
            "%s=y; or build it so (Device Drivers, Graphics support, AMD GPU: HSA kernel driver)",
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

/* /dev/kfd alone does not suffice: ROCm allocates memory by the render nodes. */
static bool report_no_dri(struct gp_exam *exam)
{
    char **names;
    if (!exam->machine.container ||
        gp_files_list(&exam->files, &exam->arena, "/dev/dri", &names) > 0)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL, "this container has /dev/kfd, but not /dev/dri");
    gp_exam_evidence(exam, "/dev/dri", "missing");
    gp_exam_why(exam, "ROCm needs both, and finds no GPU.");
    if (gp_machine_is_lxc(&exam->machine))
        gp_container_advise_lxc(exam, GP_PCI_AMD);
    else
        gp_exam_advice(exam, "start the container with --device=/dev/kfd --device=/dev/dri");
    return true;
}

/* The device file exists only with a GPU that amdgpu drives. */
static bool report_all_passed(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    char line[4096], *found;
    size_t passed = 0;
    for (size_t i = 0; i < m->gpu_count; i++)
        passed += m->gpus[i].vendor == GP_PCI_AMD && strcmp(m->gpus[i].driver, "vfio-pci") == 0;
    if (passed < m->amd_count || m->container)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "ROCm finds no GPU on this host: vfio-pci keeps all AMD GPUs for virtual "
                   "machines");
    if (gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)) &&
        (found = strstr(line, "vfio-pci.ids=")))
        gp_exam_evidence(exam, "/proc/cmdline", "%.*s", (int)strcspn(found, " "), found);
    gp_exam_evidence(exam, "/dev/kfd", "missing");
    gp_exam_advice(exam, "if the host is to use one: take its numbers out of vfio-pci.ids (kernel "
                         "command line, /etc/modprobe.d), rebuild the initramfs, and reboot; "
                         "otherwise run ROCm in the virtual machine");
    return true;
}

void gp_amd_check_kfd(struct gp_exam *exam)
{
    if (gp_exam_has_failed(exam, "system.dkms", GP_DKMS_NO_COMPUTE) &&
        gp_exam_blame(exam, "system.dkms"))
        return;
    if (report_unsupported(exam) || report_skipped(exam))
        return;
    if (gp_files_exist(&exam->files, "/dev/kfd")) {
        if (!report_no_dri(exam))
            check_nodes(exam);
        return;
    }
    bool is_wanted = gp_amd_wants_rocm(exam);
    if ((is_wanted && report_all_passed(exam)) || report_left_out(exam) || !is_wanted)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "ROCm has no compute device");
    gp_exam_evidence(exam, "/dev/kfd", "missing");
    if (gp_machine_is_lxc(&exam->machine))
        gp_container_advise_lxc(exam, GP_PCI_AMD);
    else if (exam->machine.container)
        gp_exam_advice(exam, "start the container with --device=/dev/kfd --device=/dev/dri "
                             "--group-add video --group-add render");
    else
        gp_exam_advice(exam, "amdgpu creates it for GPUs that it supports for computing; the "
                             "kernel log names unsupported ones (not supported in kfd)");
}

/* The users in the group of the render nodes, who are meant to use the GPU; "": none but root. */
static const char *meant_users(struct gp_exam *exam, struct gp_access *ret_node)
{
    static const char folder[] = "/dev/dri";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        struct gp_access access = gp_access_of(exam, gp_exam_text(exam, "%s/%s", folder, names[i]));
        if (strncmp(names[i], "renderD", 7) != 0 || access.group == 0)
            continue;
        const char *users = gp_access_members(exam, access.group);
        *ret_node = access;
        return strcmp(users, "root") == 0 ? "" : users;
    }
    return "";
}

/* No udev rule has given it to a group; or a container has it without one, although others than
 * root are to use the GPU there. */
static bool report_root_only(struct gp_exam *exam, const struct gp_access *access)
{
    bool is_shared = (access->mode & 06) || ((access->mode & 060) && access->group != 0);
    struct gp_access node = {0};
    const char *users = exam->machine.container ? meant_users(exam, &node) : "";
    if (is_shared || (exam->machine.container ? !users[0] : (access->mode & 044) != 0))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "only root may compute on the AMD GPU");
    gp_access_show(exam, access, "/dev/kfd");
    if (users[0])
        gp_exam_evidence(exam, "/dev/dri", "for a group of this container, with %s", users);
    gp_exam_why(exam,
                "%s: other users' programs report Permission denied, or find no agent and compute "
                "on the CPU.",
                users[0] ? "The container was given this device without a group of its own"
                         : "No udev rule gives it to a group");
    if (users[0])
        gp_exam_command(exam, "until the container starts again",
                        "sudo chgrp %s /dev/kfd && sudo chmod 0660 /dev/kfd",
                        gp_exam_quoted(exam, node.group_name));
    gp_access_propose(exam, access, "/dev/kfd");
    return true;
}

/* A container is given the device only to compute in it. */
bool gp_amd_wants_permission(struct gp_exam *exam)
{
    return gp_amd_wants_rocm(exam) || (exam->machine.amd_count > 0 && exam->machine.container &&
                                       gp_files_exist(&exam->files, "/dev/kfd"));
}

void gp_amd_check_permission(struct gp_exam *exam)
{
    struct gp_access access = gp_access_of(exam, "/dev/kfd");
    const char *path = "/dev/kfd";
    if ((access.is_root || !access.is_known) && access.is_there && report_root_only(exam, &access))
        return;
    if (!access.is_there)
        return;
    if (!access.is_known) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "/proc/self/status does not identify the user");
        return;
    }
    if (access.may_use && gp_access_denied(exam, "/dev/dri", "renderD", &access, &path) == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "you have no permission to use the AMD GPU: %s",
                   gp_access_words(exam, &access));
    gp_access_show(exam, &access, path);
    gp_exam_why(exam, "rocminfo then reports Permission denied, or finds no agent.");
    gp_access_propose(exam, &access, path);
}
