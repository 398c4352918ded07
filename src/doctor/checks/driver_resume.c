/* Machines that hang or are reset right after they wake from a suspend: the driver's services for
 * suspending are enabled and not needed, or needed and not enabled. A part of driver.power. */
#include "doctor/checks/driver.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/kmsg.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/services.h"

#include <string.h>

static const char params_path[] = "/proc/driver/nvidia/params", scope[] = "init.scope";
static const char unit[] = "nvidia-suspend.service";

/* ---- services that are not needed ---- */

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

/* A machine that its user resets because the screen stays black logs nothing later than this. */
#define SOON_US (5 * 60 * UINT64_C(1000000))

/* The last line of the kernel's. */
struct last {
    struct gp_exam *exam;
    const char *text; /* if the machine had just woken, and nothing else was logged later; NULL */
};

static void take_last(const struct gp_journal_line *line, void *argument)
{
    struct last *last = argument;
    struct gp_kmsg k;
    bool is_resume = gp_kmsg_parse(line->text, &k) && k.kind == GP_KMSG_RESUMED &&
                     line->before_end_us <= SOON_US;
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
    size_t length = 0, n;
    const char *line, *text = gp_journal_text(exam, scope, &length);
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    unsigned ends = 0;
    bool is_end = false, was_end = false;
    while (gp_lines_next(&lines, &line, &n)) {
        if (gp_journal_begins_boot(line, n)) {
            ends += is_end;
            was_end = is_end;
            is_end = false;
        } else if (n > 0) {
            is_end = is_suspending(line, n);
        }
    }
    return !text ? 1 : was_end ? ends : 0;
}

static void report_unneeded(struct gp_exam *exam, const char *woken)
{
    unsigned ends = count_ends(exam);
    if (ends == 0)
        return;
    gp_exam_report(exam, ends > 1 ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the log ends when this machine wakes from a suspend, and the driver's services "
                   "for suspending are on that it does not need");
    gp_exam_evidence(exam, gp_journal_earlier_command, "%s, the last line", woken);
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

/* ---- services that are needed ---- */

static bool is_shutting_down(const char *line, size_t n)
{
    static const char *const words[] = {"Shutting down", "shutdown.target", "target Shutdown",
                                        "target System Shutdown", NULL};
    return gp_lines_has_any(line, n, words);
}

/* Whether systemd has shut the boot before down: it did not end by a reset. */
static bool was_shut_down(struct gp_exam *exam)
{
    size_t length = 0, n;
    const char *line, *text = gp_journal_text(exam, scope, &length);
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    bool is_shut = false, was_shut = false;
    while (gp_lines_next(&lines, &line, &n)) {
        bool is_boot = gp_journal_begins_boot(line, n);
        was_shut = is_boot ? is_shut : was_shut;
        is_shut = !is_boot && (is_shut || is_shutting_down(line, n));
    }
    return was_shut;
}

/* The package of a compositor that does not draw lost pictures anew; NULL: none is installed. */
static const struct gp_package *find_compositor(struct gp_exam *exam)
{
    static const char *const words[] = {"hyprland", "sway", "niri", "cosmic-comp", NULL};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        for (size_t k = 0; words[k]; k++)
            if (strcmp(packages[i].state, "installed") == 0 &&
                (strcmp(packages[i].name, words[k]) == 0 ||
                 strcmp(packages[i].name, gp_exam_text(exam, "%s-nvidia", words[k])) == 0))
                return &packages[i];
    return NULL;
}

const char gp_driver_lost_pictures[] =
    "After waking up the screen is black but for the pointer, or windows, fonts and pictures are "
    "blank or garbled, until the session is started again.";

/* The user had to reset the machine: what the desktop had in the GPU's memory was lost. */
static bool report_needed(struct gp_exam *exam, const char *woken)
{
    const struct gp_package *compositor = find_compositor(exam);
    if (!compositor || exam->machine.gpu_count != exam->machine.nvidia_count || was_shut_down(exam))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "this machine was reset after it had woken from a suspend: the driver does not "
                   "preserve GPU memory");
    gp_exam_evidence(exam, gp_journal_earlier_command, "%s, the last line", woken);
    gp_exam_evidence(exam, params_path, GP_DRIVER_KEEPS_NONE);
    gp_exam_evidence(exam, "package", "%s: does not restore all that was lost", compositor->name);
    gp_exam_why(exam, "%s", gp_driver_lost_pictures);
    return true;
}

bool gp_driver_check_resume(struct gp_exam *exam)
{
    struct last last = {.exam = exam};
    if (!gp_driver_needs_no_hooks(exam) || gp_journal_earlier(exam, take_last, &last) <= 0 ||
        !last.text)
        return false;
    if (!gp_service_is_wanted(exam, unit, "systemd-suspend.service"))
        return report_needed(exam, last.text);
    report_unneeded(exam, last.text);
    return false;
}
