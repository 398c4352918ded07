/* Releases of AMD's firmware with a known fault, and firmware that the GPU has rejected. */
#include "doctor/checks/amd.h"
#include "doctor/checks/firmware.h"
#include "doctor/readers/log.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* What shows that this machine suffers from the fault. */
enum sign {
    REJECTED, /* the log says that the display controller's firmware was rejected */
    DARK,     /* monitors are connected, and none of them shows a picture */
    COMPUTES, /* ROCm is used */
};

static const struct fault {
    const char *first, *last; /* releases of linux-firmware */
    unsigned from, to;        /* PCI devices */
    enum sign sign;
    const char *good;   /* a release before the fault */
    const char *mended; /* the first release without it; "": unknown */
    const char *words, *link;
    unsigned mes; /* the version of its scheduler (MES) that has the fault; 0: unknown */
} faults[] = {
    {"20250613", "20250621", 0x7550, 0x7590, REJECTED, "20250509", "20250627",
     "the GPU rejects the firmware of its display controller: monitors stay black",
     "https://github.com/NixOS/nixpkgs/issues/419838"},
    {"20251125", "20251125", 0x150e, 0x150e, COMPUTES, "20251111", "20260110",
     "ROCm's programs hang the GPU, or end with a memory access fault",
     "https://github.com/ROCm/legacy-rocm-build/issues/5724"},
    {"20251125", "20251125", 0x1586, 0x1586, COMPUTES, "20251111", "20260110",
     "ROCm's programs hang the GPU, or end with a memory access fault",
     "https://github.com/ROCm/legacy-rocm-build/issues/5724", 0x83},
    {"20260519", "20260519", 0x1586, 0x1586, DARK, "20260410", "",
     "its display controller never sets the mode of a 5K monitor: the screen stays black",
     "https://github.com/omacom/omarchy/issues/5984"},
    {"20260910", "20260910", 0x1681, 0x1681, REJECTED, "20260810", "",
     "the GPU rejects the firmware of its display controller: the boot seems to hang, or monitors "
     "stay black",
     "https://github.com/ublue-os/bazzite/issues/5820"},
};

/* ---- the release ---- */

static const char *const package_names[] = {"linux-firmware-amdgpu", "linux-firmware-amd",
                                            "linux-firmware", "firmware-amd-graphics", NULL};

/* Without the epoch, "20260519-1" of "1:20260519-1". */
static const char *without_epoch(const char *version)
{
    const char *colon = strchr(version, ':');
    return colon ? colon + 1 : version;
}

/* The package that has the firmware. Ubuntu's has a date, too, but parts of later releases. */
static bool find_package(struct gp_exam *exam, struct gp_package *ret)
{
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, package_names, &packages);
    for (size_t k = 0; package_names[k]; k++)
        for (long i = 0; i < n; i++)
            if (strcmp(packages[i].name, package_names[k]) == 0 &&
                strcmp(packages[i].state, "installed") == 0 &&
                !strstr(packages[i].version, "git")) {
                *ret = packages[i];
                return true;
            }
    return false;
}

static bool is_within(const char *version, const struct fault *fault)
{
    enum { DATE = 8 };
    return strncmp(version, fault->first, DATE) >= 0 && strncmp(version, fault->last, DATE) <= 0;
}

static const char *mes_path(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    return gp_exam_text(exam, "/sys/bus/pci/devices/%s/fw_version/mes_fw_version", gpu->bus_id);
}

/* The version of the GPU's scheduler that the driver has loaded; 0: unknown. */
static unsigned loaded_mes(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    char line[32];
    return gp_files_line(&exam->files, mes_path(exam, gpu), line, sizeof(line))
               ? (unsigned)strtoul(line, NULL, 16)
               : 0;
}

/* The loaded firmware tells more than the package, which may have been changed since. If the
 * release is unknown, as on systems with rpm: what a rejected firmware of this GPU can be. */
static const struct fault *fault_of(const struct gp_pci_gpu *gpu, const char *version, unsigned mes)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(faults); i++) {
        const struct fault *f = &faults[i];
        bool is_one = f->mes && mes ? mes == f->mes
                      : version[0]  ? is_within(version, f)
                                    : f->sign == REJECTED;
        if (gpu->device >= f->from && gpu->device <= f->to && is_one)
            return f;
    }
    return NULL;
}

/* ---- signs ---- */

/* Whether a connector, "card1-DP-1", is one of this GPU. */
static bool is_of_gpu(struct gp_exam *exam, const char *name, const struct gp_pci_gpu *gpu)
{
    char target[GP_PATH_SIZE];
    const char *dash = strchr(name, '-');
    return strncmp(name, "card", 4) == 0 && dash &&
           gp_files_link(&exam->files,
                         gp_exam_text(exam, "/sys/class/drm/%.*s/device", (int)(dash - name), name),
                         target) &&
           strstr(target, gpu->bus_id);
}

/* A connector with a monitor, if no monitor of this GPU has a picture; NULL: one has, or there is
 * none. */
static const char *dark_connector(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    char **names, line[32];
    const char *found = NULL;
    long n = gp_files_list(&exam->files, &exam->arena, "/sys/class/drm", &names);
    for (long i = 0; i < n; i++) {
        if (!is_of_gpu(exam, names[i], gpu))
            continue;
        const char *path = gp_exam_text(exam, "/sys/class/drm/%s", names[i]);
        if (gp_files_line(&exam->files, gp_exam_text(exam, "%s/enabled", path), line,
                          sizeof(line)) &&
            strcmp(line, "enabled") == 0)
            return NULL;
        if (gp_files_line(&exam->files, gp_exam_text(exam, "%s/status", path), line,
                          sizeof(line)) &&
            strcmp(line, "connected") == 0)
            found = path;
    }
    return found;
}

/* ---- remedies ---- */

/* The newest package in pacman's cache that is older than the installed one; NULL: none. */
static const char *cached_package(struct gp_exam *exam, const struct gp_package *package)
{
    static const char folder[] = "/var/cache/pacman/pkg";
    char **names;
    struct gp_package one, best = {.version = ""};
    const char *found = NULL;
    size_t length = strlen(package->name);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *end = strstr(names[i], "-any.pkg.tar");
        if (!end || strstr(end, ".sig") ||
            !gp_packages_of_folder(gp_exam_text(exam, "%.*s", (int)(end - names[i]), names[i]),
                                   &one) ||
            strlen(one.name) != length || strcmp(one.name, package->name) != 0 ||
            gp_version_compare(without_epoch(one.version), without_epoch(package->version)) >= 0 ||
            (found &&
             gp_version_compare(without_epoch(one.version), without_epoch(best.version)) <= 0))
            continue;
        best = one;
        found = gp_exam_text(exam, "%s/%s", folder, names[i]);
    }
    return found;
}

static void downgrade_arch(struct gp_exam *exam, const struct gp_package *package,
                           const char *release)
{
    const char *file = cached_package(exam, package);
    if (file)
        gp_exam_command(exam, "the release before it", "sudo pacman -U %s",
                        gp_exam_quoted(exam, file));
    else
        gp_exam_advice(exam, "install %s with pacman -U, from the directory l/%s of the page below",
                       release, package->name);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
    gp_exam_advice(exam,
                   "until a newer release fixes it, in /etc/pacman.conf below [options]: IgnorePkg "
                   "= %s",
                   package->name);
    if (!file)
        gp_exam_link(exam, "https://archive.archlinux.org/packages/");
}

/* Back to a release before the fault, "20260410". */
static void downgrade(struct gp_exam *exam, const struct gp_package *package, const char *good)
{
    const struct gp_machine *m = &exam->machine;
    const char *release = gp_exam_text(exam, "release %s", good);
    if (m->distro == GP_DISTRO_ARCH && package->name[0]) {
        downgrade_arch(exam, package, release);
        return;
    }
    if (gp_machine_is_ostree(m)) {
        gp_exam_command(exam, "back to the image before, if it was well",
                        "sudo rpm-ostree rollback && sudo reboot");
        gp_exam_advice(exam, "otherwise rebase to an image with %s of linux-firmware", release);
        return;
    }
    if (m->distro == GP_DISTRO_FEDORA) {
        gp_exam_command(exam, "it has former releases", "sudo dnf install fedora-repos-archive");
        gp_exam_command(
            exam, "", "sudo dnf --enablerepo=updates-archive downgrade amd-gpu-firmware-%s", good);
    } else {
        gp_exam_advice(exam, "install %s of the firmware, and keep it until a newer one fixes this",
                       release);
    }
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

static void mend(struct gp_exam *exam, const struct gp_package *package, const struct fault *fault)
{
    if (fault && !fault->mended[0]) {
        downgrade(exam, package, fault->good);
        return;
    }
    if (fault)
        gp_exam_advice(exam, "update linux-firmware to release %s or newer", fault->mended);
    gp_firmware_update_amd(exam);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
    if (!fault)
        gp_exam_advice(exam,
                       "if it began with an update of the firmware, and there is no newer one: "
                       "install the release before it, and rebuild the initramfs");
}

/* ---- findings ---- */

static void show(struct gp_exam *exam, const struct gp_package *package)
{
    if (package->name[0])
        gp_exam_evidence(exam, "package", "%s %s", package->name, package->version);
}

static void report_rejected(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                            const struct gp_log_known *line, const struct gp_package *package,
                            const struct fault *fault)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "AMD GPU %s has rejected the firmware of its display controller", gpu->bus_id);
    gp_exam_evidence(exam, line->where, "%s", line->text);
    show(exam, package);
    gp_exam_why(
        exam,
        "Without it monitors stay black, and the driver waits for it in vain (DMCUB "
        "error).%s",
        fault ? gp_exam_text(exam, " Release %s of linux-firmware is known for it.", fault->first)
              : "");
    mend(exam, package, fault);
    if (fault)
        gp_exam_link(exam, fault->link);
}

/* The initramfs has a copy of the firmware, which was not made again since the update, or the
 * machine not booted. */
static void reload(struct gp_exam *exam)
{
    gp_exam_why(exam, "The release that is installed now does not have this fault, but it is not "
                      "loaded.");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

static void report_fault(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                         const struct gp_package *package, const struct fault *fault,
                         const char *connector)
{
    const char *version = without_epoch(package->version);
    bool is_loaded = fault->mes && loaded_mes(exam, gpu) == fault->mes;
    bool is_mended =
        is_loaded && version[0] && fault->mended[0] && strcmp(version, fault->mended) >= 0;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "release %s of the firmware has a fault with AMD GPU %s: %s",
                   is_loaded ? fault->first : version, gpu->bus_id, fault->words);
    show(exam, package);
    if (is_loaded)
        gp_exam_evidence(exam, mes_path(exam, gpu), "0x%x: that of release %s", fault->mes,
                         fault->first);
    if (connector)
        gp_exam_evidence(exam, connector, "connected, but not enabled");
    if (is_mended)
        reload(exam);
    else
        mend(exam, package, fault);
    gp_exam_link(exam, fault->link);
}

void gp_amd_check_firmware(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    struct gp_package package = {.name = ""};
    (void)find_package(exam, &package);
    const struct fault *fault =
        fault_of(gpu, without_epoch(package.version), loaded_mes(exam, gpu));
    const struct gp_log_known *line =
        exam->machine.container ? NULL : gp_log_known_for(exam, "amd.dmcub-rejected", gpu->bus_id);
    if (line) {
        report_rejected(exam, gpu, line, &package, fault);
        return;
    }
    if (!fault || exam->machine.container)
        return;
    const char *connector = fault->sign == DARK ? dark_connector(exam, gpu) : NULL;
    if (connector || (fault->sign == COMPUTES && gp_amd_wants_rocm(exam)))
        report_fault(exam, gpu, &package, fault, connector);
}
