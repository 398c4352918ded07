/* Nodes whose driver comes from a container, as of NVIDIA's GPU Operator, and modules that the
 * kernel has rejected before any driver was installed: findings of driver.installed. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
#include "doctor/readers/installer.h"
#include "doctor/readers/log.h"
#include "doctor/readers/podlogs.h"

#include <string.h>

/* The driver container of NVIDIA's GPU Operator creates it when it starts. */
static const char operator_folder[] = "/run/nvidia/driver";

bool gp_driver_has_operator(struct gp_exam *exam)
{
    return gp_files_exist(&exam->files, operator_folder);
}

void gp_driver_block_nouveau(struct gp_exam *exam)
{
    gp_exam_remedy(exam, GP_REMEDY_BLACKLIST_NOUVEAU, NULL, NULL);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
}

/* It unloads nouveau only if nothing uses it. */
static bool report_nouveau(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    if (strcmp(gpu->driver, "nouveau") != 0 || gp_install_of(exam)->nouveau.kind != GP_BLOCK_NONE ||
        !gp_driver_has_operator(exam))
        return false;
    const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_NOT_PROBED);
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "nouveau drives %s: the driver container of the GPU Operator cannot load "
                   "NVIDIA's module",
                   gp_driver_gpu_words(exam, gpu));
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                     "nouveau");
    gp_exam_evidence(exam, operator_folder, "present: the Operator's driver container was started");
    if (line)
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    gp_exam_why(exam, "Only packages of the driver keep nouveau from being loaded, and this node "
                      "has none; while nouveau is in use, the container cannot unload it.");
    gp_driver_block_nouveau(exam);
    gp_exam_advice(exam, "then the driver pod installs the driver at its next start; or install "
                         "the driver on the node, and set driver.enabled=false in the Operator");
    return true;
}

/* ---- rejected modules ---- */

/* The log of the driver container, if NVIDIA's installer could not load its module there; NULL: it
 * does not say so. */
static const char *failed_pod(struct gp_exam *exam)
{
    static const char words[] = "Unable to load the kernel module";
    struct gp_pod_log log;
    bool is_failed =
        gp_pod_read_driver(exam, &log) && memmem(log.text, log.size, words, sizeof(words) - 1);
    return is_failed ? log.path : NULL;
}

/* The kernel's line that names the program whose module it rejected, if that was NVIDIA's
 * installer; the kernel cuts names to 15 characters. NULL: there is none. */
static const struct gp_log_line *installer_line(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->count; i++)
        if (log->lines[i].kmsg.kind == GP_KMSG_REFUSED &&
            strstr(log->lines[i].text, "nvidia-installe"))
            return &log->lines[i];
    return NULL;
}

/* Whether the log of NVIDIA's installer on this machine says that the kernel rejected its module.
 */
static bool is_rejected_in_log(struct gp_exam *exam)
{
    static const char *const words[] = {"load error: Key was rejected",
                                        "load error: Required key not available", NULL};
    enum { MOST = 1 << 20 };
    size_t size = 0;
    const char *text = gp_files_tail(&exam->files, &exam->arena, gp_installer_log, MOST, &size);
    return text && gp_lines_has_any(text, size, words);
}

static void show_rejection(struct gp_exam *exam, const char *where, const char *text)
{
    const struct gp_log_line *line = installer_line(exam);
    if (gp_driver_is_secure_boot_on(exam))
        gp_exam_evidence(exam, "Secure Boot", "is on");
    gp_exam_evidence(exam, where, "%s", text);
    if (line && strcmp(line->where, where) != 0)
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
}

/* The kernel has rejected what the driver container built: such a node needs no driver of its own.
 * The kernel's line does not name the module, which may be another one. */
static bool report_container(struct gp_exam *exam, const char *where, const char *text)
{
    const char *pod = failed_pod(exam);
    if (!pod && !(gp_driver_has_operator(exam) && installer_line(exam)))
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the kernel rejects the NVIDIA module of the driver container: it is not signed "
                   "with a key that this node trusts");
    show_rejection(exam, where, text);
    gp_exam_evidence(exam, pod ? pod : operator_folder, "%s",
                     pod ? "NVIDIA's installer could not load its module"
                         : "present: a driver container was started here");
    gp_exam_why(exam, "With Secure Boot on, the kernel loads only modules signed with a key that "
                      "it knows. The driver container builds the module on the node, and does not "
                      "sign it unless it is given a key.");
    gp_driver_fix_container(exam);
    return true;
}

/* NVIDIA's .run installer removes what it has installed when the kernel rejects its module. */
static bool report_installer(struct gp_exam *exam, const char *where, const char *text)
{
    bool is_in_log = is_rejected_in_log(exam);
    if (!installer_line(exam) && !is_in_log)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the kernel rejected the module that NVIDIA's installer built, and no driver is "
                   "installed");
    show_rejection(exam, where, text);
    if (is_in_log)
        gp_exam_evidence(exam, gp_installer_log, "the kernel rejected the module for its key");
    gp_exam_why(exam, "With Secure Boot on, the kernel loads only modules signed with a key that "
                      "it knows. The .run installer signs its module only if it is given a key.");
    gp_driver_fix_install(exam);
    gp_exam_advice(exam, "if the installation asks for a password: choose Enroll MOK on the blue "
                         "screen of the next boot, and enter it");
    gp_exam_advice(exam, "or turn Secure Boot off in the firmware settings, and run the installer "
                         "again");
    return true;
}

bool gp_driver_report_operator(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *where, *text;
    if (report_nouveau(exam, gpu))
        return true;
    bool is_free = !gpu->driver[0] || strcmp(gpu->driver, "nouveau") == 0;
    bool is_refused = is_free && gp_driver_find_refusal(exam, &where, &text);
    return (is_refused && report_container(exam, where, text)) ||
           (is_free && gp_driver_report_container(exam, gpu)) ||
           (is_refused && report_installer(exam, where, text));
}

void gp_driver_warn_of_rejection(struct gp_exam *exam)
{
    const char *where, *text;
    if (!gp_driver_find_refusal(exam, &where, &text))
        return;
    gp_exam_evidence(exam, where, "%s", text);
    gp_exam_advice(exam, "this kernel rejects modules without a key that it knows, as it did with "
                         "one since the boot: a driver from elsewhere than the distribution's "
                         "packages must be signed, too, and its key enrolled");
}
