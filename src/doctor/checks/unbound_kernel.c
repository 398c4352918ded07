/* How to get a newer kernel, in the distribution's own way. */
#include "doctor/checks/backports.h"
#include "doctor/checks/unbound.h"
#include "doctor/exam.h"
#include "doctor/version.h"

#include <string.h>

/* The newest kernels that older releases offer. */
static const struct {
    enum gp_distro distro;
    const char *version, *kernel, *next;
} offers[] = {
    {GP_DISTRO_UBUNTU, "14.04", "4.4", "Ubuntu 24.04"},
    {GP_DISTRO_UBUNTU, "16.04", "4.15", "Ubuntu 24.04"},
    {GP_DISTRO_UBUNTU, "18.04", "5.4", "Ubuntu 24.04"},
    {GP_DISTRO_UBUNTU, "20.04", "5.15", "Ubuntu 24.04"},
    {GP_DISTRO_UBUNTU, "22.04", "6.8", "Ubuntu 24.04"},
    {GP_DISTRO_DEBIAN, "9", "4.19", "Debian 13"},
    {GP_DISTRO_DEBIAN, "10", "5.10", "Debian 13"},
    {GP_DISTRO_DEBIAN, "11", "6.1", "Debian 13"},
    {GP_DISTRO_DEBIAN, "12", "6.12", "Debian 13"},
};

/* The release, if it offers no kernel that is new enough; true: said so. */
static bool report_release(struct gp_exam *exam, const char *kernel)
{
    const struct gp_machine *m = &exam->machine;
    const char *release = gp_machine_release(m);
    bool is_derived = m->distro == GP_DISTRO_UBUNTU && strcmp(m->distro_id, "ubuntu") != 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(offers); i++) {
        if (m->distro != offers[i].distro || strcmp(m->distro_id, "pop") == 0 ||
            gp_version_compare(release, offers[i].version) != 0 ||
            gp_version_compare(offers[i].kernel, kernel[0] ? kernel : m->kernel) >= 0)
            continue;
        const char *words = gp_exam_text(exam, "it has kernel %s or newer, which", kernel);
        gp_exam_advice(exam, "upgrade to %s%s or newer: %s this release does not offer",
                       is_derived ? "a release that is based on " : "", offers[i].next,
                       kernel[0] ? words : "it has newer kernels, which");
        return true;
    }
    return false;
}

/* Ubuntu's newer kernels are only for its long-term releases: those of an even year's April. Before
 * 16.04 they have other names. */
static bool has_newer_kernels(const char *release)
{
    enum { FIRST = 16 };
    const char *month = strchr(release, '.');
    return month && strcmp(month, ".04") == 0 && gp_version_major(release) % 2 == 0 &&
           gp_version_major(release) >= FIRST;
}

static const char *firmware_of(const struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    enum { BOOKWORM = 12 }; /* Debian's first whose backports have a package for Intel's firmware */
    return gpu->vendor == GP_PCI_AMD                                    ? "firmware-amd-graphics"
           : gp_version_major(exam->machine.distro_version) >= BOOKWORM ? "firmware-intel-graphics"
                                                                        : "firmware-misc-nonfree";
}

static void update(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const struct gp_machine *m = &exam->machine;
    const char *release = gp_machine_release(m), *suite = gp_backports_suite(exam);
    bool is_debian = m->distro == GP_DISTRO_DEBIAN, is_ubuntu = m->distro == GP_DISTRO_UBUNTU;
    if (strstr(m->kernel, "-pve")) {
        gp_exam_advice(exam, "install a newer Proxmox kernel (apt search '^proxmox-kernel'), and "
                             "pve-firmware of its time");
    } else if ((is_debian && !suite[0]) || strcmp(m->distro_id, "pop") == 0) {
        gp_exam_command(exam, "which has the newest kernel of this system, then reboot",
                        "sudo apt update && sudo apt full-upgrade");
    } else if (is_ubuntu && release[0] && !has_newer_kernels(release)) {
        if (strcmp(m->distro_id, "ubuntu") == 0)
            gp_exam_command(exam, "upgrade to a newer release, which has a newer kernel",
                            "sudo do-release-upgrade");
        else
            gp_exam_advice(exam, "update to the newest release of this distribution, which has a "
                                 "newer kernel");
    } else {
        if (is_debian)
            gp_backports_enable(exam);
        gp_exam_remedy(exam, GP_REMEDY_NEWER_KERNEL,
                       is_ubuntu ? release[0] ? release : "$(lsb_release -rs)" : suite,
                       firmware_of(exam, gpu));
    }
}

void gp_unbound_newer_kernel(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *kernel)
{
    if (exam->machine.container) { /* it has the kernel of the host, not of its own system */
        gp_exam_advice(exam, "on the host: install a newer kernel%s%s%s", kernel[0] ? ", " : "",
                       kernel, kernel[0] ? " or newer" : "");
        return;
    }
    if (report_release(exam, kernel))
        return;
    update(exam, gpu);
    if (kernel[0])
        gp_exam_advice(exam, "the kernel must be %s or newer, with a linux-firmware of its time",
                       kernel);
}
