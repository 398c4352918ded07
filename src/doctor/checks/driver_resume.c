/* Machines that wake from a suspend and then hang, with the driver's services for suspending
 * enabled that this driver does not need: a part of driver.power. */
#include "doctor/checks/driver.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/kmsg.h"
#include "doctor/readers/services.h"

#include <string.h>

static const char params_path[] = "/proc/driver/nvidia/params", scope[] = "init.scope";

/* Without its script the kernel tells the driver of a suspend, which saves what it needs. */
void gp_driver_fix_hooks(struct gp_exam *exam)
{
    static const char *const hooks[] = {"/usr/lib/systemd/system-sleep/nvidia",
                                        "/lib/systemd/system-sleep/nvidia", NULL};
    const char *hook = gp_files_first(&exam->files, hooks);
    gp_exam_command(exam, "the driver then suspends by the kernel's callbacks, as by default",
                    "sudo systemctl disable nvidia-suspend nvidia-resume nvidia-hibernate");
    if (hook)
        gp_exam_command(exam, "it runs the same script; an update of the driver enables it again",
                        "sudo chmod -x %s", hook);
}

bool gp_driver_needs_no_hooks(struct gp_exam *exam)
{
    static const char script[] = "/usr/bin/nvidia-sleep.sh";
    const char *params = gp_files_text(&exam->files, &exam->arena, params_path, 1 << 16, NULL);
    const char *text = gp_files_text(&exam->files, &exam->arena, script, 1 << 16, NULL);
    return params && strstr(params, GP_DRIVER_KEEPS_NONE) && !exam->machine.is_driver_open &&
           !strstr(params, "UseKernelSuspendNotifiers: 1") && !(text && strstr(text, "\nexit 0"));
}

/* The last line of the kernel's. */
struct last {
    struct gp_exam *exam;
    const char *text; /* if the machine had just woken; NULL */
};

static void take_last(const struct gp_journal_line *line, void *argument)
{
    struct last *last = argument;
    struct gp_kmsg k;
    bool is_resume = gp_kmsg_parse(line->text, &k) && k.kind == GP_KMSG_RESUMED;
    last->text = is_resume ? gp_exam_text(last->exam, "%s", k.body) : NULL;
}

/* Whether systemd begins to suspend by this line; its next one comes when the machine has woken. */
static bool is_suspending(const char *line, size_t n)
{
    static const char start[] = "Starting ", words[] = "System Suspend";
    const char *at = memmem(line, n, start, sizeof(start) - 1);
    return at && memmem(at, n - (size_t)(at - line), words, sizeof(words) - 1);
}

/* In how many of the boots before, systemd's log ends in a suspend; the last of them has to. One,
 * if there is only the kernel's. */
static unsigned count_ends(struct gp_exam *exam)
{
    static const char boot[] = "kernel: Linux version";
    size_t length = 0, n;
    const char *line, *text = gp_journal_text(exam, scope, &length);
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    unsigned ends = 0;
    bool is_end = false, was_end = false;
    while (gp_lines_next(&lines, &line, &n)) {
        if (memmem(line, n, boot, sizeof(boot) - 1)) {
            ends += is_end;
            was_end = is_end;
            is_end = false;
        } else if (n > 0) {
            is_end = is_suspending(line, n);
        }
    }
    return !text ? 1 : was_end ? ends : 0;
}

void gp_driver_check_resume(struct gp_exam *exam)
{
    static const char unit[] = "nvidia-suspend.service", suspend[] = "systemd-suspend.service";
    struct last last = {.exam = exam};
    if (!gp_driver_needs_no_hooks(exam) || !gp_service_is_wanted(exam, unit, suspend) ||
        gp_journal_earlier(exam, take_last, &last) <= 0 || !last.text)
        return;
    unsigned ends = count_ends(exam);
    if (ends == 0)
        return;
    gp_exam_report(exam, ends > 1 ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the log ends when this machine wakes from a suspend, and the driver's services "
                   "for suspending are on that it does not need");
    gp_exam_evidence(exam, gp_journal_earlier_command, "%s, the last line", last.text);
    if (ends > 1)
        gp_exam_evidence(exam, "journalctl _SYSTEMD_UNIT=init.scope",
                         "%u of the boots before end while systemd suspends", ends);
    gp_exam_evidence(exam, unit, "enabled");
    gp_exam_evidence(exam, params_path, GP_DRIVER_KEEPS_NONE);
    gp_exam_why(exam, "Their script, nvidia-sleep.sh, switches to another console and back, with "
                      "which some GPUs stay black after waking. It is only needed for a driver "
                      "that preserves GPU memory, which this one is not set to do.");
    gp_driver_fix_hooks(exam);
    gp_exam_advice(exam, "if it hangs all the same, another device or the firmware may be why: "
                         "enable them again, with NVreg_PreserveVideoMemoryAllocations=1");
}
