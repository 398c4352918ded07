/* What fails after a suspend: a resume from hibernation that the driver refused, and CUDA. Findings
 * of driver.power. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/readers/initramfs.h"
#include "doctor/readers/log.h"
#include "doctor/readers/services.h"

#include <string.h>

/* The driver's refusal, if the image of a hibernation was not restored after it; NULL. */
static const struct gp_log_known *refusal_of(struct gp_exam *exam, const struct gp_log_line *failed)
{
    const struct gp_log_known *said = failed ? gp_log_known_of(exam, "nv.pm") : NULL;
    struct gp_kmsg k;
    if (!said)
        return NULL;
    (void)gp_kmsg_parse(said->text, &k);
    return k.time_ns <= failed->kmsg.time_ns ? said : NULL;
}

/* Letters before the name belong to another module, such as i2c-nvidia-gpu. An array of several
 * lines is read up to its end first; a parenthesis in a comment is none. */
#define TAKE_OUT                                                                                   \
    "/^[[:space:]]*(MODULES|add_drivers|force_drivers)/"                                           \
    "s/([^-_.[:alnum:]])nvidia[-_a-z0-9]*/\\1/g"
#define JOIN_ARRAY "/^[[:space:]]*MODULES\\+?=\\(/{:a;/(^|\\n)[^#\\n]*\\)/!{N;ba}};"

void gp_driver_fix_initramfs(struct gp_exam *exam, const struct gp_initramfs_line *lines,
                             size_t count)
{
    for (size_t i = 0; i < count; i++)
        gp_exam_command(exam,
                        "take the modules out of the initramfs; the original file is kept next to "
                        "it",
                        "sudo sed -Ei.before '%s' %s",
                        lines[i].is_list    ? "s/^[[:space:]]*nvidia/# &/"
                        : lines[i].is_array ? JOIN_ARRAY TAKE_OUT
                                            : TAKE_OUT,
                        gp_exam_quoted(exam, lines[i].path));
}

bool gp_driver_report_restore(struct gp_exam *exam)
{
    const struct gp_log_line *failed = gp_log_find(exam, GP_KMSG_NOT_RESTORED);
    const struct gp_log_known *said = refusal_of(exam, failed);
    struct gp_initramfs_line lines[GP_INITRAMFS_LINES];
    size_t count = said ? gp_initramfs_lines(exam, "nvidia", lines) : 0;
    if (count == 0)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the machine does not resume from hibernation: the initramfs loads NVIDIA's "
                   "modules, and the driver refuses the restore");
    gp_exam_evidence(exam, said->where, "%s", said->text);
    gp_exam_evidence(exam, failed->where, "%s", failed->kmsg.body);
    for (size_t i = 0; i < count; i++)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", lines[i].path, lines[i].number), "%s",
                         lines[i].text);
    gp_exam_why(exam,
                "To restore the image, the kernel must stop all devices before any service runs. A "
                "driver that preserves GPU memory allows that only to its services, so the image "
                "is dropped and the machine starts afresh. A GPU without its module needs no "
                "permission.");
    gp_driver_fix_initramfs(exam, lines, count);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "then hibernate again");
    gp_exam_advice(exam, "NVreg_PreserveVideoMemoryAllocations may stay as it is");
    return true;
}

/* ---- CUDA ---- */

/* Programs look for GPUs when they start: this one has found none that works. */
void gp_driver_restart_program(struct gp_exam *exam, const struct gp_log_known *failed)
{
    static const char folder[] = "/var/lib/docker/containers/", service[] = "ollama.service";
    enum { SHORT_ID = 12 };
    const char *id = strncmp(failed->path, folder, sizeof(folder) - 1) == 0
                         ? failed->path + sizeof(folder) - 1
                         : "";
    if (strspn(id, "0123456789abcdef") >= SHORT_ID)
        gp_exam_command(exam, "the container that has failed", "sudo docker restart %.*s", SHORT_ID,
                        id);
    else if (strncmp(failed->id, "ollama.", 7) == 0 && gp_service_is_installed(exam, service))
        gp_exam_command(exam, "", "sudo systemctl restart ollama");
    else if (strncmp(failed->id, "ollama.", 7) == 0 || strncmp(failed->id, "llama.", 6) == 0)
        gp_exam_advice(exam, "then restart the program or container that has failed: it looks for "
                             "GPUs only when it starts");
}

/* Of programs to which CUDA has given no reason. */
static const char unknown_errors[] =
    "ollama.init-999,ollama.init-3,ollama.context-unknown,torch.unknown-error,cuda.999,"
    "cuda.init-unknown,llama.cuda-unknown";

/* When the machine woke up for the first time, since boot; 0: unknown. */
static uint64_t resumed_at(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->count; i++)
        if (log->lines[i].kmsg.kind == GP_KMSG_RESUMED)
            return log->lines[i].kmsg.clock == GP_KMSG_SINCE_BOOT ? log->lines[i].kmsg.time_ns : 0;
    return 0;
}

const struct gp_log_known *gp_driver_cuda_lost(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    const struct gp_log_known *first = NULL;
    uint64_t resumed_ns = resumed_at(exam);
    for (size_t i = 0; i < log->known_count; i++) {
        const struct gp_log_known *known = &log->known[i];
        if (!gp_exam_is_listed(unknown_errors, known->id))
            continue;
        if (known->since_boot_ns > 0 && known->since_boot_ns < resumed_ns)
            return NULL; /* the suspend is not why */
        first = first ? first : known;
    }
    for (size_t i = 0; first && i < log->known_count; i++)
        if (gp_exam_is_listed(unknown_errors, log->known[i].id))
            (void)gp_log_known_of(exam, log->known[i].id); /* one finding reports all */
    return first;
}
