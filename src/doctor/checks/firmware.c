#include "doctor/checks/firmware.h"

#include "doctor/checks/backports.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/kernels.h"
#include "doctor/readers/log.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <string.h>

/* Packages with the firmware of one maker; the other distributions have one for all. */
static const struct {
    enum gp_distro family;
    const char *id; /* "": all of the family */
    const char *amd, *intel;
} packages[] = {
    {GP_DISTRO_DEBIAN, "", "firmware-amd-graphics", "firmware-misc-nonfree"},
    {GP_DISTRO_FEDORA, "", "amd-gpu-firmware", "intel-gpu-firmware"},
    {GP_DISTRO_ARCH, "", "linux-firmware-amdgpu", "linux-firmware-intel"},
    {GP_DISTRO_SUSE, "", "kernel-firmware-amdgpu", "kernel-firmware-i915"},
    {GP_DISTRO_OTHER, "alpine", "linux-firmware-amdgpu", "linux-firmware-i915"},
    {GP_DISTRO_OTHER, "void", "linux-firmware-amd", "linux-firmware-intel"},
};

/* `ret_is_backport`: it comes from Debian's backports, because the kernel is from there, or that
 * of the release is installed and lacks the file. */
static const char *package_of(struct gp_exam *exam, bool is_amd, bool is_missing,
                              bool *ret_is_backport)
{
    enum { BOOKWORM = 12, TRIXIE }; /* Intel's own package: first in 13, and in 12's backports */
    const struct gp_machine *m = &exam->machine;
    const char *name = "", *suite = gp_backports_suite(exam);
    unsigned release = gp_version_major(m->distro_version);
    *ret_is_backport = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(packages) && !name[0]; i++)
        if (packages[i].family == m->distro &&
            (!packages[i].id[0] || strcmp(packages[i].id, m->distro_id) == 0))
            name = is_amd ? packages[i].amd : packages[i].intel;
    if (m->distro != GP_DISTRO_DEBIAN)
        return name;
    if (!is_amd && release >= TRIXIE)
        name = "firmware-intel-graphics";
    *ret_is_backport =
        suite[0] && (strstr(m->kernel, "bpo") ||
                     (is_missing && gp_packages_installed(&exam->files, &exam->arena, name)));
    if (!*ret_is_backport)
        return name;
    return gp_exam_text(exam, "-t %s %s", suite,
                        !is_amd && release >= BOOKWORM ? "firmware-intel-graphics" : name);
}

/* Whether Intel's own build of i915 replaces the kernel's. */
static bool has_intel_dkms(struct gp_exam *exam)
{
    static const char name[] = "intel-i915";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, "/var/lib/dkms", &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], name, sizeof(name) - 1) == 0)
            return true;
    return false;
}

/* `is_missing`: a line of the log names the file. */
static void install(struct gp_exam *exam, bool is_amd, bool is_missing)
{
    const struct gp_machine *m = &exam->machine;
    bool is_backport;
    const char *package = package_of(exam, is_amd, is_missing, &is_backport);
    if (!is_amd && has_intel_dkms(exam)) {
        gp_exam_advice(exam,
                       "i915 comes from Intel's own packages here (intel-i915-dkms) and needs "
                       "the firmware of its release, not the distribution's: install "
                       "intel-fw-gpu from the same repository, or the file from the page "
                       "below into /lib/firmware/i915");
        gp_exam_link(exam, "https://github.com/intel-gpu/intel-gpu-firmware");
        return;
    }
    if (strstr(m->kernel, "-pve")) {
        gp_exam_command(exam, "the firmware of GPUs",
                        "sudo apt update && sudo apt install pve-firmware");
    } else if (m->distro == GP_DISTRO_OTHER &&
               !gp_remedy_other(m->distro_id, GP_REMEDY_INSTALL_GPU_FIRMWARE)) {
        gp_exam_advice(exam, "update linux-firmware; on a system that is one image: a newer image, "
                             "or one with that file");
    } else {
        if (m->distro == GP_DISTRO_DEBIAN)
            gp_driver_fix_non_free(exam);
        if (is_backport)
            gp_backports_enable(exam);
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_GPU_FIRMWARE, package, NULL);
    }
    if (!is_missing)
        return;
    gp_exam_advice(exam,
                   "if /lib/firmware still lacks the file in the line, the distribution's "
                   "firmware is older than %s: copy the files for it from the page below there",
                   is_amd ? "this GPU" : "this kernel");
    gp_exam_link(exam,
                 "https://git.kernel.org/pub/scm/linux/kernel/git/firmware/linux-firmware.git");
}

/* The file that a line such as "Direct firmware load for amdgpu/navi10_sos.bin failed" asks for, as
 * a path on disk; NULL: it is not there, or the line does not name it. */
static const char *find(struct gp_exam *exam, const char *text)
{
    static const char end[] = ".bin";
    static const char *const folders[] = {"/lib/firmware", "/usr/lib/firmware"};
    static const char *const ends[] = {"", ".xz", ".zst"};
    const char *stop = strstr(text, end), *name = stop;
    while (name && name > text && name[-1] != ' ')
        name--;
    for (size_t i = 0; name && i < GP_ARRAY_LEN(folders) * GP_ARRAY_LEN(ends); i++) {
        const char *path = gp_exam_text(exam, "%s/%.*s%s", folders[i / GP_ARRAY_LEN(ends)],
                                        (int)(stop - name + (int)sizeof(end) - 1), name,
                                        ends[i % GP_ARRAY_LEN(ends)]);
        if (gp_files_exist(&exam->files, path))
            return path;
    }
    return NULL;
}

void gp_firmware_explain(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                         const struct gp_log_known *line, const char *module)
{
    const char *file = find(exam, line->text);
    gp_exam_evidence(exam, line->where, "%s", line->text);
    if (file)
        gp_exam_evidence(exam, file, "present");
    if (file && gp_kernels_has_built_in(exam, module)) {
        gp_exam_why(exam, "The driver is a part of this kernel, and asks for its firmware before "
                          "the root file system is there.");
        gp_exam_advice(exam,
                       "build the kernel with %s as a module, or with the files that the log "
                       "names in CONFIG_EXTRA_FIRMWARE",
                       module);
        gp_exam_command(exam, "", "sudo reboot");
        return;
    }
    if (!file)
        install(exam, gpu->vendor == GP_PCI_AMD, true);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

void gp_firmware_update_amd(struct gp_exam *exam)
{
    install(exam, true, false);
}
