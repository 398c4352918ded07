/* The driver, from the disk to its device files.
 *
 * The checks up to driver.loaded are a chain, each in need of the one before: of all the reasons
 * why a module is not there, the deepest is told and the rest is left. Once the module is loaded
 * they speak only of what would harm at the next start, and do not fail. */
#include "doctor/checks_driver.h"

#include "doctor/driver_fix.h"
#include "doctor/install.h"

#include <errno.h>
#include <string.h>

bool gp_driver_is_ours(const struct gp_pci_gpu *gpu)
{
    return gpu->vendor == GP_PCI_NVIDIA && strcmp(gpu->driver, "vfio-pci") != 0 &&
           strcmp(gpu->driver, "pci-stub") != 0;
}

/* ---- where they mean something ---- */

/* WSL and Jetson have drivers of another kind. */
static bool has_nvidia(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return (m->nvidia_count > 0 || m->is_driver_loaded) && !m->is_wsl && !m->is_jetson;
}

static bool wants_driver(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    bool has_ours = m->is_driver_loaded;
    for (size_t i = 0; i < m->gpu_count; i++)
        has_ours = has_ours || gp_driver_is_ours(&m->gpus[i]);
    return has_nvidia(exam) && has_ours;
}

/* A container has neither the host's modules nor its packages. */
static bool is_host(struct gp_exam *exam)
{
    return wants_driver(exam) && !exam->machine.container;
}

/* Of dpkg or pacman; the database of rpm is not read. */
static bool has_package_list(struct gp_exam *exam)
{
    return is_host(exam) && gp_install_of(exam)->packages_error != -ENOENT;
}

static bool is_bare(struct gp_exam *exam)
{
    return has_nvidia(exam) && !exam->machine.container;
}

/* ---- loaded ---- */

/* Why the kernel or the module itself gave up, the plainest first. */
static const enum gp_kmsg_kind refusals[] = {
    GP_KMSG_REFUSED,     GP_KMSG_WRONG_KERNEL, GP_KMSG_LEGACY, GP_KMSG_NEEDS_PROPRIETARY,
    GP_KMSG_BAD_BAR,     GP_KMSG_NOT_PROBED,   GP_KMSG_NO_GPU, GP_KMSG_PROBE_FAILED,
    GP_KMSG_NONE_PROBED,
};

/* What is left when nothing of the above is in the way. */
static void check_loaded(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    if (exam->machine.is_driver_loaded)
        return;
    if (exam->machine.container) {
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "the kernel below this container has no NVIDIA driver loaded");
        gp_exam_evidence(exam, "/sys/module/nvidia", "is not there");
        gp_exam_why(exam,
                    "A container uses its host's kernel and driver: nothing inside can mend it.");
        gp_exam_command(exam, "on the host, outside of the container", "gpulse doctor");
        return;
    }
    gp_exam_report(exam, GP_VERDICT_FAIL, "the NVIDIA module is not loaded");
    gp_exam_evidence(exam, "/sys/module/nvidia", "is not there");
    if (in->module[0])
        gp_exam_evidence(
            exam, gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module),
            "is there");
    bool is_told = gp_driver_show_log(exam, refusals, GP_ARRAY_LEN(refusals));
    if (!is_told && gp_driver_is_secure_boot_on(exam))
        gp_exam_evidence(exam, "Secure Boot",
                         "is on: it refuses a module whose key it does not know");
    gp_exam_why(exam, "Without it nvidia-smi and every CUDA program say that there is no driver.");
    gp_exam_command(exam, "load it, or hear why it cannot be", "sudo modprobe nvidia");
    gp_exam_command(exam, "what the kernel said",
                    "sudo dmesg | grep -i -e nvrm -e nvidia -e lockdown");
}

/* ---- the table ---- */

const struct gp_check gp_checks_driver[] = {
    {"driver.installed", "a driver is installed", {0}, is_host, gp_driver_check_installed},
    {"driver.flavour",
     "the driver is one for these GPUs",
     {"driver.installed"},
     wants_driver,
     gp_driver_check_flavour},
    {"driver.kernel",
     "the modules of the running kernel are on the disk",
     {"driver.flavour"},
     is_host,
     gp_driver_check_kernel},
    {"driver.build",
     "no build of the module has failed",
     {"driver.kernel"},
     is_host,
     gp_driver_check_build},
    {"driver.packages",
     "the driver's packages are whole",
     {"driver.build"},
     has_package_list,
     gp_driver_check_packages},
    {"driver.module",
     "the running kernel has the module",
     {"driver.packages"},
     is_host,
     gp_driver_check_module},
    {"driver.blacklist",
     "nothing keeps the module from being loaded",
     {"driver.module"},
     is_host,
     gp_driver_check_blacklist},
    {"driver.secureboot",
     "Secure Boot lets the module in",
     {"driver.blacklist"},
     is_host,
     gp_driver_check_secureboot},
    {"driver.nouveau",
     "no other driver holds the GPUs",
     {"driver.secureboot"},
     is_bare,
     gp_driver_check_nouveau},
    {"driver.loaded", "the module is loaded", {"driver.nouveau"}, wants_driver, check_loaded},
    {"driver.libraries",
     "the driver's libraries are here",
     {"driver.loaded"},
     is_host,
     gp_driver_check_libraries},
    {"driver.duplicates",
     "there is one driver, not two",
     {"driver.libraries"},
     wants_driver,
     gp_driver_check_duplicates},
    {"driver.mismatch",
     "module and libraries are of one version",
     {"driver.loaded", "driver.duplicates"},
     wants_driver,
     gp_driver_check_mismatch},
    {"driver.gpus", "the driver has every GPU", {"driver.loaded"}, is_host, gp_driver_check_gpus},
    {"driver.nodes",
     "the device files are here, for everybody",
     {"driver.loaded"},
     is_host,
     gp_driver_check_nodes},
    {"driver.params",
     "the module has no unusual settings",
     {"driver.loaded"},
     wants_driver,
     gp_driver_check_params},
    {"driver.persistence",
     "every GPU is set up",
     {"driver.gpus"},
     is_host,
     gp_driver_check_persistence},
    {0},
};
