#include "doctor/checks/passthrough.h"

#include "doctor/checks/cmdline_fix.h"
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/install.h"
#include "doctor/readers/libvirt.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <string.h>

/* Whether a value gives a whole GPU of this host, or that one (`only`): "0000:01:00,pcie=1",
 * "01:00.0". A part of one ("mdev=…") needs no IOMMU. */
static bool is_gpu(const struct gp_machine *m, const struct gp_pci_gpu *only, const char *value)
{
    size_t n = strcspn(value, ".,;\r\n"), all = strcspn(value, "\n");
    if (value[n] == '.' && value[n + 1] != '0') /* its sound, or a virtual function */
        return false;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const char *dot = strrchr(m->gpus[i].bus_id, '.');
        const char *slot = dot && (size_t)(dot - m->gpus[i].bus_id) >= n ? dot - n : "";
        if ((!only || only == &m->gpus[i]) && n >= strlen("01:00") &&
            strncmp(slot, value, n) == 0 && !memmem(value, all, "mdev=", 5))
            return true;
    }
    return false;
}

/* Its present settings are before those of its snapshots. */
static bool has_gpu(const struct gp_machine *m, const struct gp_pci_gpu *only, const char *text)
{
    static const char key[] = "hostpci";
    for (const char *line = text; line && *line && *line != '[';
         line += strcspn(line, "\n"), line += *line == '\n') {
        const char *value = line + strcspn(line, ":\n");
        value += *value == ':';
        value += strspn(value, " ");
        value += strncmp(value, "host=", 5) == 0 ? 5 : 0;
        if (strncmp(line, key, sizeof(key) - 1) == 0 && is_gpu(m, only, value))
            return true;
    }
    return false;
}

/* The definition of a virtual machine of Proxmox with a GPU of the host, or that one; NULL: none.
 */
static const char *proxmox_machine(struct gp_exam *exam, const struct gp_pci_gpu *only)
{
    static const char folder[] = "/etc/pve/qemu-server";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
        if (has_gpu(&exam->machine, only, text))
            return path;
    }
    return NULL;
}

/* What gives a GPU of this host to virtual machines; NULL: nothing. */
static const char *setting_of(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *found = proxmox_machine(exam, NULL);
    for (size_t i = 0; i < m->gpu_count && !found; i++)
        found = gp_driver_handed_over_by(exam, &m->gpus[i]);
    return found ? found : gp_libvirt_machine(exam);
}

bool gp_passthrough_applies(struct gp_exam *exam)
{
    return !exam->machine.container && exam->machine.gpu_count > 0 && setting_of(exam);
}

/* Whether what gives a GPU to virtual machines is more than an old definition of libvirt's, which
 * may be a trial that was given up. */
static bool is_wanted(struct gp_exam *exam, const char *setting)
{
    return setting != gp_libvirt_machine(exam) || gp_libvirt_is_autostarted(exam, setting) ||
           gp_boot_is_before(exam, setting);
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
    const char *setting = setting_of(exam);
    gp_exam_report(exam, is_wanted(exam, setting) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "this host has no IOMMU in use: its GPUs cannot be given to virtual machines");
    gp_exam_evidence(exam, groups, "empty");
    gp_exam_evidence(exam, setting, "gives a GPU to virtual machines");
    gp_exam_why(exam, "Their start fails: \"no IOMMU detected\", or \"failed to open "
                      "/dev/vfio/…\".");
    gp_exam_advice(exam, "turn it on in the firmware settings: VT-d (Intel), or IOMMU or AMD-Vi "
                         "and SVM (AMD)");
    if (is_intel && !is_set)
        gp_cmdline_fix(exam, "intel_iommu=on", "");
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

bool gp_passthrough_is_late(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    /* Without vfio-pci nothing has come too late: libvirt loads it with a machine. */
    return gpu->driver[0] && strcmp(gpu->driver, "vfio-pci") != 0 &&
           gp_files_exist(&exam->files, "/sys/module/vfio_pci") &&
           !has_twin_in_vfio(&exam->machine, gpu) && gp_driver_handed_over_by(exam, gpu);
}

static bool has_line(struct gp_exam *exam, const char *path)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 14, NULL);
    return text && (strstr(text, "\nvfio_pci") || strstr(text, "\nvfio-pci"));
}

/* The GPU's driver may be in the initramfs, too, and modprobe loads there only what is with it. */
static void add_to_initramfs(struct gp_exam *exam)
{
    static const char modules[] = "/etc/initramfs-tools/modules", arch[] = "/etc/mkinitcpio.conf",
                      note[] = "have it in the initramfs, too";
    const enum gp_distro distro = exam->machine.distro;
    const bool has_apt = gp_machine_has_apt(&exam->machine);
    if (gp_files_exist(&exam->files, "/usr/bin/dracut") || distro == GP_DISTRO_FEDORA ||
        distro == GP_DISTRO_RHEL || distro == GP_DISTRO_SUSE) {
        if (!gp_machine_is_ostree(&exam->machine))
            gp_exam_command(exam, note,
                            "echo 'force_drivers+=\" vfio-pci \"' | sudo tee "
                            "/etc/dracut.conf.d/vfio-first.conf");
    } else if (has_apt && !has_line(exam, modules)) {
        gp_exam_command(exam, note, "echo vfio-pci | sudo tee -a %s", modules);
    } else if (distro == GP_DISTRO_ARCH && gp_files_exist(&exam->files, arch)) {
        gp_exam_advice(exam,
                       "have it in the initramfs, too: add vfio_pci as the first word in "
                       "MODULES=(…) of %s",
                       arch);
    }
}

/* The GPU's own driver was loaded first. The module of NVIDIA's may have another name than the
 * driver, as in Debian's packages and Ubuntu's before 18.04. */
static void report_taken(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *setting)
{
    const char *module =
        strcmp(gpu->driver, "nvidia") == 0 ? gp_driver_module_name(exam) : gpu->driver;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "GPU %s is reserved for virtual machines, but %s drives it", gpu->bus_id,
                   gpu->driver);
    gp_exam_evidence(exam, setting, "gives it to vfio-pci");
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id), "%s",
                     gpu->driver);
    if (strcmp(module, gpu->driver) != 0)
        gp_exam_evidence(exam,
                         gp_exam_text(exam, "%s/%s/%s", gp_install_of(exam)->modules,
                                      exam->machine.kernel, gp_install_of(exam)->module),
                         "settings must name this module, %s", module);
    gp_exam_why(exam, "The first module that is loaded takes it, and vfio-pci came later: the "
                      "virtual machine may not start, or the host may lose its screen.");
    gp_exam_module_setting(
        exam, "load vfio-pci before it", "vfio-first.conf",
        gp_exam_text(exam, "softdep %s pre: vfio-pci", gp_exam_quoted(exam, module)));
    add_to_initramfs(exam);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

/* What has this host split its integrated GPU by i915's or xe's virtual functions; NULL: nothing.
 */
static const char *splits(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char *const files[] = {"/proc/cmdline", "/etc/sysfs.conf"};
    static const char *const modules[] = {"/var/lib/dkms/i915-sriov-dkms", NULL};
    static const char *const words[] = {".max_vfs=", "sriov_numvfs"};
    char text[4096];
    if (gpu->vendor != GP_PCI_INTEL || proxmox_machine(exam, gpu) ||
        !gp_files_exist(&exam->files,
                        gp_exam_text(exam, "/sys/bus/pci/devices/%s/sriov_totalvfs", gpu->bus_id)))
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++)
        if (gp_files_read(&exam->files, files[i], text, sizeof(text)) > 0 && strstr(text, words[i]))
            return files[i];
    return gp_files_first(&exam->files, modules);
}

/* vfio-pci has the whole GPU, whose own driver would make its virtual functions. */
static void report_whole(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *setting,
                         const char *split)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Intel GPU %s is to be split into virtual functions, but vfio-pci has it",
                   gpu->bus_id);
    gp_exam_evidence(exam, setting, "gives it to vfio-pci");
    gp_exam_evidence(exam, split, "splits it");
    gp_exam_why(exam, "Only the GPU's own driver makes virtual functions: while vfio-pci has the "
                      "GPU, there are none, and this host has no /dev/dri for it.");
    gp_exam_advice(exam, "remove %04x:%04x from %s, then:", gpu->vendor, gpu->device, setting);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

/* Whether the memory in a line of /proc/iomem is the GPU's: the line is below that of the GPU, or
 * of its bus. Only root sees the addresses. */
static bool is_memory_of(const struct gp_pci_gpu *gpu, const char *text, const char *line)
{
    static const char bus[] = "PCI Bus ", device[] = "0000:01:00.0";
    size_t indent = strspn(line, " ");
    while (line > text && indent > 0) {
        do
            line--;
        while (line > text && line[-1] != '\n');
        const char *name = strstr(line, " : ");
        size_t own = strspn(line, " ");
        if (own >= indent || !name)
            continue;
        indent = own;
        name += 3;
        size_t n = strcspn(name, "\n");
        if (n >= sizeof(bus) && strncmp(name, bus, sizeof(bus) - 1) == 0)
            return strncmp(name + sizeof(bus) - 1, gpu->bus_id, n - (sizeof(bus) - 1)) == 0;
        if (n >= sizeof(device) - 1 && name[n - 2] == '.' && name[n - 5] == ':')
            return strlen(gpu->bus_id) == n && strncmp(name, gpu->bus_id, n) == 0;
    }
    return false;
}

/* What the kernel draws the boot console with in this GPU's memory, as /proc/iomem names it; NULL:
 * none is there. */
static const char *console_of(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char *const names[] = {"BOOTFB", "efifb", "vesafb", "simplefb"};
    size_t size = 0, n;
    const char *line,
        *text = gp_files_text(&exam->files, &exam->arena, "/proc/iomem", 1 << 18, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n))
        for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
            size_t m = strlen(names[i]);
            if (n > m && strncmp(line + n - m, names[i], m) == 0 && line[n - m - 1] == ' ' &&
                is_memory_of(gpu, text, line))
                return names[i];
        }
    return NULL;
}

/* vfio-pci has the GPU that the machine was started on, but the boot console its memory. */
static void report_console(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *console = console_of(exam, gpu);
    const struct gp_log_known *line =
        console ? gp_log_known_for(exam, "vfio.reserve", gpu->bus_id) : NULL;
    if (!line)
        return;
    bool is_old = gp_version_compare(exam->machine.kernel, "5.15") < 0;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the boot console holds memory of GPU %s, which is for virtual machines",
                   gpu->bus_id);
    gp_log_show_known(exam, line);
    gp_exam_evidence(exam, "/proc/iomem", "%s", console);
    gp_exam_why(exam,
                "The firmware and the kernel show the start on this GPU. vfio-pci then cannot "
                "map its memory: the virtual machine has no picture, or the kernel log fills "
                "with this line.");
    gp_exam_advice(exam, "choose another GPU as the first one (primary display) in the firmware "
                         "settings");
    gp_exam_advice(exam,
                   "or add %s to the kernel command line, and reboot: the host then shows "
                   "nothing on this GPU",
                   is_old ? "video=efifb:off,vesafb:off,simplefb:off"
                          : "initcall_blacklist=sysfb_init");
}

/* ---- groups of the IOMMU ---- */

/* The bus below which the functions of a device are: "0000:01:00." */
static bool is_same_card(const char *a, const char *b)
{
    size_t n = strcspn(a, ".");
    return strncmp(a, b, n) == 0 && b[n] == '.';
}

/* The devices of a GPU's group that a driver of the host has, as evidence. *ret_card: whether all
 * of them are parts of its card. Bridges stay with the host, and do no harm. */
static size_t show_group(struct gp_exam *exam, const struct gp_pci_gpu *gpu, bool *ret_card)
{
    enum { MOST = 6 };
    const char *folder =
        gp_exam_text(exam, "/sys/bus/pci/devices/%s/iommu_group/devices", gpu->bus_id);
    char **names, kind[16], driver[GP_PATH_SIZE];
    size_t count = 0;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    *ret_card = true;
    for (long i = 0; i < n && count < MOST; i++) {
        const char *device = gp_exam_text(exam, "/sys/bus/pci/devices/%s", names[i]);
        const char *link = gp_exam_text(exam, "%s/driver", device);
        if (strcmp(names[i], gpu->bus_id) == 0 ||
            !gp_files_line(&exam->files, gp_exam_text(exam, "%s/class", device), kind,
                           sizeof(kind)) ||
            strncmp(kind, "0x06", 4) == 0 || !gp_files_link(&exam->files, link, driver))
            continue;
        const char *name = strrchr(driver, '/') ? strrchr(driver, '/') + 1 : driver;
        if (strcmp(name, "vfio-pci") == 0)
            continue;
        gp_exam_evidence(exam, link, "%s", name);
        *ret_card = *ret_card && is_same_card(gpu->bus_id, names[i]);
        count++;
    }
    return count;
}

/* A virtual machine did not start, as the host keeps a device of the GPU's group. */
static bool report_group(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const struct gp_log_known *line = gp_log_known_for(exam, "vfio.group", gpu->bus_id);
    bool is_card = false;
    if (!line || !line->address[0])
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "a virtual machine does not get GPU %s: this host uses another device of its "
                   "IOMMU group",
                   gpu->bus_id);
    gp_log_show_known(exam, line);
    size_t count = show_group(exam, gpu, &is_card);
    gp_exam_why(exam, "The devices of a group can reach each other without the IOMMU, so they are "
                      "given to a virtual machine together, or not at all.");
    if (count == 0 || is_card)
        gp_exam_advice(exam, "add the card's other functions, as its sound and USB, to the virtual "
                             "machine, too");
    if (count == 0 || !is_card)
        gp_exam_advice(exam, "devices of the group that are not of this card: give them to the "
                             "virtual machine, too, or put the card into another slot (one that "
                             "belongs to the CPU), and update the firmware");
    return true;
}

void gp_passthrough_check(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    if (report_no_iommu(exam) || !gp_files_exist(&exam->files, "/sys/module/vfio_pci"))
        return;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        if (report_group(exam, gpu))
            continue;
        const char *setting = gp_driver_handed_over_by(exam, gpu);
        const char *split = setting ? splits(exam, gpu) : NULL;
        if (split && strcmp(gpu->driver, "vfio-pci") == 0)
            report_whole(exam, gpu, setting, split);
        if (strcmp(gpu->driver, "vfio-pci") == 0)
            report_console(exam, gpu);
        if (gp_passthrough_is_late(exam, gpu))
            report_taken(exam, gpu, setting);
    }
}
