#include "doctor/checks_passthrough.h"

#include "doctor/checks_driver.h"
#include "doctor/exam.h"

#include <string.h>

/* The definition of a virtual machine of Proxmox with a device of the host; NULL: none. */
static const char *proxmox_machine(struct gp_exam *exam)
{
    static const char folder[] = "/etc/pve/qemu-server";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
        if (text && strstr(text, "\nhostpci"))
            return path;
    }
    return NULL;
}

/* What gives a GPU of this host to virtual machines; NULL: nothing. */
static const char *setting_of(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *found = proxmox_machine(exam);
    for (size_t i = 0; i < m->gpu_count && !found; i++)
        found = gp_driver_handed_over_by(exam, &m->gpus[i]);
    return found;
}

bool gp_passthrough_applies(struct gp_exam *exam)
{
    return !exam->machine.container && exam->machine.gpu_count > 0 && setting_of(exam);
}

/* The kernel has an IOMMU, but puts no device into a group of it. */
static bool report_no_iommu(struct gp_exam *exam)
{
    static const char groups[] = "/sys/kernel/iommu_groups", line[] = "/proc/cmdline";
    char **names, text[4096];
    if (gp_files_list(&exam->files, &exam->arena, groups, &names) != 0)
        return false;
    bool is_intel = gp_files_read(&exam->files, "/proc/cpuinfo", text, sizeof(text)) > 0 &&
                    strstr(text, "GenuineIntel");
    bool is_set = gp_files_line(&exam->files, line, text, sizeof(text)) &&
                  strstr(text, is_intel ? "intel_iommu=on" : "iommu=");
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "this host has no IOMMU in use: its GPUs cannot be given to virtual machines");
    gp_exam_evidence(exam, groups, "empty");
    gp_exam_evidence(exam, setting_of(exam), "gives a GPU to virtual machines");
    gp_exam_why(exam, "Their start fails: \"no IOMMU detected\", or \"failed to open "
                      "/dev/vfio/…\".");
    gp_exam_advice(exam, "turn it on in the firmware settings: VT-d (Intel), or IOMMU or AMD-Vi "
                         "and SVM (AMD)");
    if (is_intel && !is_set)
        gp_exam_advice(exam, "add intel_iommu=on to the kernel command line: to GRUB_CMDLINE_LINUX "
                             "in /etc/default/grub, or with systemd-boot in /etc/kernel/cmdline");
    if (gp_files_exist(&exam->files, "/usr/sbin/proxmox-boot-tool"))
        gp_exam_command(exam, "", "sudo update-grub; sudo proxmox-boot-tool refresh");
    gp_exam_command(exam, "", "sudo reboot");
    return true;
}

/* Whether another GPU of the same model has it, and this one may be meant for the host. */
static bool has_twin_in_vfio(const struct gp_machine *m, const struct gp_pci_gpu *gpu)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == gpu->vendor && m->gpus[i].device == gpu->device &&
            strcmp(m->gpus[i].driver, "vfio-pci") == 0)
            return true;
    return false;
}

/* The GPU's own driver was loaded first. */
static void report_taken(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *setting)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "GPU %s is reserved for virtual machines, but %s drives it", gpu->bus_id,
                   gpu->driver);
    gp_exam_evidence(exam, setting, "gives it to vfio-pci");
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id), "%s",
                     gpu->driver);
    gp_exam_why(exam, "The first module that is loaded takes it, and vfio-pci came later; the "
                      "virtual machine does not start, or the host loses its screen.");
    gp_exam_module_setting(exam, "load vfio-pci before it", "vfio-first.conf",
                           gp_exam_text(exam, "softdep %s pre: vfio-pci", gpu->driver));
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

void gp_passthrough_check(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    if (report_no_iommu(exam))
        return;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        const char *setting = gp_driver_handed_over_by(exam, gpu);
        if (setting && gpu->driver[0] && strcmp(gpu->driver, "vfio-pci") != 0 &&
            !has_twin_in_vfio(m, gpu))
            report_taken(exam, gpu, setting);
    }
}
