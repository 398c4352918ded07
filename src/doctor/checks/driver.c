/* The driver, from the disk to its device files.
 *
 * The checks up to driver.loaded form a chain in which each needs the one before: of all the
 * reasons why a module is missing, only the deepest is reported. Once the module is loaded they
 * report only what would cause trouble at the next boot, and do not fail. */
#include "doctor/checks/driver.h"

#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/module_keys.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"

#include <errno.h>
#include <string.h>

/* WSL and Jetson have a different kind of driver. */
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

/* From dpkg or pacman; the rpm database is not read. */
static bool has_package_list(struct gp_exam *exam)
{
    return is_host(exam) && gp_install_of(exam)->packages_error != -ENOENT;
}

static bool is_bare(struct gp_exam *exam)
{
    return has_nvidia(exam) && !exam->machine.container;
}

/* ---- loaded ---- */

/* Why the kernel or the module itself gave up, the most specific reason first. */
static const enum gp_kmsg_kind refusals[] = {
    GP_KMSG_REFUSED,     GP_KMSG_WRONG_KERNEL, GP_KMSG_LEGACY,      GP_KMSG_NEEDS_PROPRIETARY,
    GP_KMSG_BAD_BAR,     GP_KMSG_BOUND,        GP_KMSG_NOT_PROBED,  GP_KMSG_NO_GPU,
    GP_KMSG_NO_FIRMWARE, GP_KMSG_PROBE_FAILED, GP_KMSG_NONE_PROBED,
};

/* What makes the kernel demand signatures, on its command line; NULL: nothing. */
static const char *enforcing_argument(struct gp_exam *exam)
{
    static const char *const words[] = {"lockdown=integrity", "lockdown=confidentiality",
                                        "module.sig_enforce"};
    char line[4096];
    if (!gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)))
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strstr(line, words[i]))
            return words[i];
    return NULL;
}

/* A kernel that loads only signed modules, whatever Secure Boot says. The line does not name the
 * module; one that was loaded and left again would have said why. */
static bool report_unsigned(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *where, *text;
    bool is_refused = gp_driver_find_refusal(exam, &where, &text);
    bool has_spoken = false;
    for (size_t i = 1; i < GP_ARRAY_LEN(refusals); i++)
        has_spoken = has_spoken || gp_log_find(exam, refusals[i]);
    if (!is_refused || has_spoken || !in->module[0])
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   gp_module_keys_are_unused(exam)
                       ? "the kernel rejects the NVIDIA module: the key of its signature is "
                         "enrolled, but not trusted for modules"
                       : "the kernel rejects the NVIDIA module: it does not trust the key of its "
                         "signature");
    gp_exam_evidence(exam, where, "%s", text);
    gp_exam_evidence(exam,
                     gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module),
                     "present");
    gp_exam_why(exam, "A kernel that was built with CONFIG_MODULE_SIG_FORCE, or started with "
                      "module.sig_enforce=1 or Secure Boot, loads only modules that are signed "
                      "with a key it knows; modprobe reports \"Key was rejected by service\".");
    const char *argument = enforcing_argument(exam);
    if (argument)
        gp_exam_evidence(exam, "/proc/cmdline", "%s", argument);
    if (in->other_kernel[0])
        gp_exam_advice(exam, "boot kernel %s, which has the module, from the boot menu",
                       in->other_kernel);
    if (gp_module_keys_fix_unused(exam))
        return true;
    gp_module_keys_enroll(exam);
    gp_driver_fix_reboot(exam, "on the blue screen choose Enroll MOK, and enter the password");
    if (argument)
        gp_exam_advice(exam,
                       "or, if the machine needs no such protection, take %s off the "
                       "kernel command line",
                       argument);
    else
        gp_exam_advice(exam, "if it is still rejected, this kernel does not use such keys: boot "
                             "the distribution's own kernel, which does not require signatures");
    return true;
}

/* DKMS links a module of another kernel here, as if kernels had a stable interface as RHEL's have;
 * for its autoinstall, the module is then installed. False: it is no such link. */
static bool fix_weak_link(struct gp_exam *exam)
{
    static const char weak[] = "weak-updates/", dkms[] = "/var/lib/dkms/";
    const struct gp_install *in = gp_install_of(exam);
    const char *kernel = exam->machine.kernel, *slash = strrchr(in->module, '/');
    const char *top = gp_exam_text(exam, "%s/%s", in->modules, kernel);
    char target[GP_PATH_SIZE];
    if (strncmp(in->module, weak, sizeof(weak) - 1) != 0 ||
        strncmp(in->source, dkms, sizeof(dkms) - 1) != 0 ||
        !gp_files_link(&exam->files, gp_exam_text(exam, "%s/%s", top, in->module), target))
        return false;
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", top, in->module), "a link to %s", target);
    gp_exam_why(exam,
                "weak-updates has links to modules of another kernel, which only kernels with "
                "the same interface can load, such as those of one release of RHEL. For DKMS "
                "the module is installed: autoinstall does not build it.");
    gp_exam_command(exam, "remove the links", "sudo rm %s/nvidia*.ko*",
                    gp_exam_quoted(exam, gp_exam_text(exam, "%s/%.*s", top,
                                                      (int)(slash - in->module), in->module)));
    if (!gp_files_exist(&exam->files, gp_exam_text(exam, "%s/build", top)))
        gp_driver_fix_headers(exam, kernel);
    gp_exam_command(exam, "build the module for this kernel", "sudo dkms install %s -k %s --force",
                    gp_exam_quoted(exam, in->source + sizeof(dkms) - 1),
                    gp_exam_quoted(exam, kernel));
    gp_exam_command(exam, "", "sudo depmod -a %s", gp_exam_quoted(exam, kernel));
    return true;
}

/* A module that another kernel's build left behind. */
static bool report_other_kernel(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_WRONG_KERNEL);
    const struct gp_log_known *known =
        line ? NULL : gp_log_known_of(exam, "modprobe.format,insmod.symbol");
    if ((!line && !known) || !in->module[0])
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the NVIDIA module does not fit kernel %s: it was built for another one",
                   exam->machine.kernel);
    gp_exam_evidence(exam, line ? line->where : known->where, "%s",
                     line ? line->kmsg.body : known->text);
    gp_exam_evidence(exam,
                     gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module),
                     "present");
    gp_exam_why(exam, "A kernel loads only modules that were built with its own headers and "
                      "configuration.");
    if (!fix_weak_link(exam))
        gp_driver_fix_build(exam);
    gp_exam_command(exam, "load it", "sudo modprobe nvidia");
    return true;
}

/* A file of this folder with both words, unless a tool that is still in use has written it; NULL:
 * none. */
static const char *file_with(struct gp_exam *exam, const char *folder, const char *word,
                             const char *other)
{
    char **names, text[4096];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 256; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (!strstr(names[i], "bumblebee") &&
            gp_files_read(&exam->files, path, text, sizeof(text)) > 0 && strstr(text, word) &&
            strstr(text, other))
            return path;
    }
    return NULL;
}

/* Settings, as nvidia-xrun needs them, that have bbswitch turn the GPU off at each boot; false:
 * there are none, or nvidia-xrun is installed. */
static bool fix_off_at_boot(struct gp_exam *exam)
{
    const char *option = file_with(exam, "/etc/modprobe.d", "options bbswitch", "load_state=0");
    const char *loader = file_with(exam, "/etc/modules-load.d", "bbswitch", "");
    if (!option || gp_files_exist(&exam->files, "/usr/bin/nvidia-xrun"))
        return false;
    gp_exam_evidence(exam, option, "load_state=0: off from the start of bbswitch");
    if (loader)
        gp_exam_evidence(exam, loader, "loads bbswitch at boot");
    gp_exam_command(exam, "remove the settings", "sudo rm %s%s%s", gp_exam_quoted(exam, option),
                    loader ? " " : "", loader ? gp_exam_quoted(exam, loader) : "");
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* bbswitch has turned the GPU off: the module finds none. */
static bool report_off(struct gp_exam *exam)
{
    static const char path[] = "/proc/acpi/bbswitch";
    char line[64];
    if (!gp_driver_is_switched_off(exam) || !gp_files_line(&exam->files, path, line, sizeof(line)))
        return false;
    if (gp_driver_report_tlp(exam))
        return true;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the NVIDIA GPU is turned off by bbswitch");
    gp_exam_evidence(exam, path, "%s", line);
    gp_exam_why(exam, "The module finds no GPU while it is off, and is not loaded.");
    if (fix_off_at_boot(exam))
        return true;
    if (gp_files_exist(&exam->files, "/usr/bin/optimus-manager")) {
        gp_exam_command(exam, "use it instead of the other GPU; this ends the session",
                        "optimus-manager --switch nvidia");
        return true;
    }
    gp_exam_command(exam, "turn it on", "echo ON | sudo tee %s", path);
    gp_exam_command(exam, "", "sudo modprobe nvidia");
    gp_exam_advice(exam, "current drivers save power by themselves: remove bbswitch and bumblebee, "
                         "and use PRIME render offload");
    return true;
}

/* What remains if none of the earlier checks found a reason. */
static void check_loaded(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    if (exam->machine.is_driver_loaded)
        return;
    if (exam->machine.container) {
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "the kernel under this container has no NVIDIA driver loaded");
        gp_exam_evidence(exam, "/sys/module/nvidia", "missing");
        gp_exam_why(
            exam, "A container uses its host's kernel and driver: nothing inside it can fix this.");
        gp_exam_command(exam, "on the host, outside the container", "gpulse doctor");
        return;
    }
    if (gp_log_find(exam, GP_KMSG_BAD_BAR) && gp_exam_blame(exam, "hardware.regions"))
        return; /* without a GPU that it can use, the module does not stay loaded */
    if (exam->machine.nvidia_count == 1 && gp_log_find(exam, GP_KMSG_BUS_LOST) &&
        gp_exam_blame(exam, "hardware.bus_lost"))
        return;
    if (report_unsigned(exam) || report_other_kernel(exam) || report_off(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the NVIDIA module is not loaded");
    gp_exam_evidence(exam, "/sys/module/nvidia", "missing");
    if (in->module[0])
        gp_exam_evidence(
            exam, gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module),
            "present");
    bool is_told = gp_log_show_kind(exam, refusals, GP_ARRAY_LEN(refusals));
    const struct gp_log_known *reason = gp_log_reason(exam, "kernel,modules", "");
    if (!is_told && gp_driver_is_secure_boot_on(exam))
        gp_exam_evidence(exam, "Secure Boot", "on: it rejects modules signed with an unknown key");
    if (reason)
        gp_exam_evidence(exam, reason->where, "%s", reason->text);
    gp_exam_why(exam,
                "Without it nvidia-smi and every CUDA program report that there is no driver.%s",
                reason ? gp_exam_text(exam, " The log says why: %s.", reason->cause) : "");
    if (reason)
        gp_exam_advice(exam, "%s", reason->fix);
    gp_exam_remedy(exam, GP_REMEDY_LOAD_MODULE, NULL, NULL);
    gp_exam_command(exam, "the kernel's messages",
                    "sudo dmesg | grep -i -e nvrm -e nvidia -e lockdown");
}

/* ---- the table ---- */

const struct gp_check gp_checks_driver[] = {
    {"driver.installed", "a driver is installed", {0}, is_host, gp_driver_check_installed},
    {"driver.flavour",
     "the driver supports these GPUs",
     {"driver.installed"},
     wants_driver,
     gp_driver_check_flavour},
    {"driver.kernel",
     "the modules of the running kernel are on disk",
     {"driver.flavour"},
     is_host,
     gp_driver_check_kernel},
    {"driver.build",
     "no build of the module failed",
     {"driver.kernel"},
     is_host,
     gp_driver_check_build},
    {"driver.packages",
     "the driver's packages are fully installed",
     {"driver.build"},
     has_package_list,
     gp_driver_check_packages},
    {"driver.module",
     "the running kernel has the module",
     {"driver.packages"},
     is_host,
     gp_driver_check_module},
    {"driver.blacklist",
     "nothing prevents the module from being loaded",
     {"driver.module"},
     is_host,
     gp_driver_check_blacklist},
    {"driver.secureboot",
     "Secure Boot accepts the module",
     {"driver.blacklist"},
     is_host,
     gp_driver_check_secureboot},
    {"driver.nouveau",
     "no other driver is bound to the GPUs",
     {"driver.secureboot"},
     is_bare,
     gp_driver_check_nouveau},
    {"driver.loaded", "the module is loaded", {"driver.nouveau"}, wants_driver, check_loaded},
    {"driver.libraries",
     "the driver's libraries are installed",
     {"driver.loaded"},
     is_host,
     gp_driver_check_libraries},
    {"driver.duplicates",
     "only one driver is installed",
     {"driver.libraries"},
     wants_driver,
     gp_driver_check_duplicates},
    {"driver.mismatch",
     "the module and the libraries have the same version",
     {"driver.loaded", "driver.duplicates"},
     wants_driver,
     gp_driver_check_mismatch},
    {"driver.copies",
     "no other version of the driver's libraries is in the way",
     {"driver.loaded", "driver.mismatch"},
     wants_driver,
     gp_driver_check_copies},
    {"driver.firmware",
     "the GPU's firmware of this driver is installed",
     {"driver.loaded", "driver.mismatch"},
     is_host,
     gp_driver_check_firmware},
    {"driver.gpus",
     "the driver has claimed every GPU",
     {"driver.loaded"},
     is_host,
     gp_driver_check_gpus},
    {"driver.nodes",
     "the device files exist and are accessible to all users",
     {"driver.loaded"},
     is_host,
     gp_driver_check_nodes},
    {"driver.params",
     "the module has no unusual settings",
     {"driver.loaded"},
     wants_driver,
     gp_driver_check_params},
    {"driver.persistence",
     "every GPU is initialized",
     {"driver.gpus"},
     is_host,
     gp_driver_check_persistence},
    {"driver.power",
     "the driver's services for suspend and Dynamic Boost are installed",
     {"driver.loaded", "driver.nodes"},
     is_host,
     gp_driver_check_power},
    {0},
};
