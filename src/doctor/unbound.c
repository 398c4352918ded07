#include "doctor/unbound.h"

#include "doctor/exam.h"
#include "doctor/install.h"
#include "doctor/log.h"

#include <string.h>

/* Whether the kernel's command line has this word. */
static bool has_argument(const struct gp_exam *exam, const char *argument)
{
    char line[4096];
    size_t n = strlen(argument);
    if (!gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)))
        return false;
    for (const char *p = line; (p = strstr(p, argument)); p += n)
        if ((p == line || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

static void fix_block(struct gp_exam *exam, const struct gp_block *block, const char *module)
{
    const char *colon = strrchr(block->where, ':');
    gp_exam_evidence(exam, block->where, "%s", block->text);
    if (!colon) {
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, block->text, NULL);
        return;
    }
    gp_exam_command(exam, "comment the lines out; the original file is kept next to it",
                    "sudo sed -i.before '/%s/s/^/#/' %s", module,
                    gp_exam_quoted(exam, gp_exam_text(exam, "%.*s", (int)(colon - block->where),
                                                      block->where)));
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

static void fix_firmware(struct gp_exam *exam, const struct gp_log_known *line)
{
    gp_exam_evidence(exam, line->where, "%s", line->text);
    gp_exam_why(exam, "The log says why: the driver did not find the firmware of this GPU.");
    gp_exam_advice(exam,
                   "if /lib/firmware does not have the file in the line: update "
                   "linux-firmware (Debian: firmware-amd-graphics; Void: linux-firmware-amd)");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

bool gp_unbound_explain(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *module,
                        const char *family)
{
    const struct gp_block block = gp_install_block(exam, module);
    const struct gp_log_known *reason = gp_log_reason(exam, family, gpu->bus_id);
    /* Firmware may be missing without harm, but not where the driver has then failed. */
    const struct gp_log_known *firmware =
        !reason || reason->is_general ? gp_log_known_for(exam, "amd.firmware", gpu->bus_id) : NULL;
    if (firmware) {
        fix_firmware(exam, firmware);
    } else if (reason) {
        gp_exam_evidence(exam, reason->where, "%s", reason->text);
        gp_exam_why(exam, "The log says why: %s.", reason->cause);
        gp_exam_advice(exam, "%s", reason->fix);
    } else if (exam->machine.nvidia_count == 0 && gp_log_find(exam, GP_KMSG_REFUSED)) {
        const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_REFUSED);
        gp_exam_evidence(exam, line->where, "%s", line->text);
        gp_exam_why(exam, "The kernel loads only modules with a known signature (Secure Boot), and "
                          "refused one: the driver was built on this machine, or replaced.");
        gp_exam_remedy(exam, GP_REMEDY_ENROLL_KEY, NULL, NULL);
        gp_exam_advice(exam, "or turn Secure Boot off in the firmware settings");
    } else if (has_argument(exam, "nomodeset")) {
        gp_exam_evidence(exam, "/proc/cmdline", "nomodeset");
        gp_exam_why(exam, "With it the kernel's drivers leave GPUs alone.");
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, "nomodeset", NULL);
        gp_exam_command(exam, "", "sudo reboot");
    } else if (block.kind != GP_BLOCK_NONE) {
        fix_block(exam, &block, module);
    } else {
        return false;
    }
    return true;
}
