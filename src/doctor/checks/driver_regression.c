/* Releases of the driver that are known to fail with some GPUs: a part of driver.persistence. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/readers/log.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <string.h>

enum { GSP_ERROR = 120 };

/* From the first of these releases on, before the other, GPUs of an architecture fail with this
 * error after this Xid. */
static const struct {
    const char *first, *fixed;
    const char *architecture, *kind; /* a word of the model's name */
    const char *error;
    unsigned xid;
    const char *words, *earlier, *link;
} regressions[] = {
    {"575.57.08", "575.64", "Blackwell", "Mobile", "RmInitAdapter failed! (0x62:", GSP_ERROR,
     "its firmware (GSP) crashes at the start of GPUs of laptops", "570.144, 570.169 or 570.172.08",
     "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/876"},
};

bool gp_driver_report_regression(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                                 const struct gp_log_line *line)
{
    const char *driver = exam->machine.driver;
    for (size_t i = 0; i < GP_ARRAY_LEN(regressions); i++) {
        const struct gp_log_line *xid = gp_log_xid(exam, gpu->bus_id, regressions[i].xid);
        if (!gpu->chip || strcmp(gpu->chip->architecture, regressions[i].architecture) != 0 ||
            !strstr(gpu->chip->name, regressions[i].kind) ||
            gp_version_compare(driver, regressions[i].first) < 0 ||
            gp_version_compare(driver, regressions[i].fixed) >= 0 || !xid ||
            !strstr(line->kmsg.body, regressions[i].error))
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL, "driver %s cannot start %s because of a known bug",
                       driver, gp_driver_gpu_words(exam, gpu));
        gp_exam_evidence(exam, "/proc/driver/nvidia/version", "%s", driver);
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
        gp_exam_evidence(exam, xid->where, "%s", xid->kmsg.body);
        gp_exam_why(
            exam,
            "A known bug of this release, not a fault of the board: %s. It came with %s, and "
            "%s fixes it.",
            regressions[i].words, regressions[i].first, regressions[i].fixed);
        if (exam->machine.distro == GP_DISTRO_ARCH)
            gp_driver_fix_update(exam);
        else
            gp_driver_fix_at_least(exam, regressions[i].fixed);
        gp_exam_command(exam, "then switch it on again: a reboot may not reset the GPU",
                        "sudo poweroff");
        gp_exam_advice(exam,
                       "or, if the same error comes back: install a release with which such GPUs "
                       "are reported to work (%s)",
                       regressions[i].earlier);
        gp_exam_link(exam, regressions[i].link);
        return true;
    }
    return false;
}
