/* Laptops that are made for s2idle, and told to sleep by S3: their devices fail to go to sleep. */
#include "doctor/checks/log_show.h"
#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/readers/log.h"

#include <string.h>

static const char modes[] = "/sys/power/mem_sleep", arguments[] = "/proc/cmdline",
                  argument[] = "mem_sleep_default=deep", pmc[] = "/proc/modules",
                  table[] = "/sys/firmware/acpi/tables/FACP";

/* NVIDIA's driver refuses suspends for reasons of its own: driver.power. */
static bool is_made_to_suspend(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->amd_count + m->intel_count > 0 && !m->is_driver_loaded && !m->container &&
           gp_files_exist(&exam->files, modes) && gp_machine_is_laptop(&exam->files);
}

bool gp_sleep_applies(struct gp_exam *exam)
{
    return is_made_to_suspend(exam) || gp_sleep_has_gfxoff_off(exam);
}

/* What says that the firmware is made for s2idle: its own flag, which root can read, or the driver
 * of AMD's controller for it. NULL: nothing. */
static const char *made_for_idle(struct gp_exam *exam, const char **ret_words)
{
    enum { FLAGS = 114, LOW_POWER_S0 = 0x20 }; /* the byte with bit 21 of the flags at 112 */
    char bytes[FLAGS + 2];
    long n = gp_files_read(&exam->files, table, bytes, sizeof(bytes));
    *ret_words = "low power S0 idle";
    if (n > FLAGS && (bytes[FLAGS] & LOW_POWER_S0))
        return table;
    const char *text = gp_files_text(&exam->files, &exam->arena, pmc, 1 << 18, NULL);
    *ret_words = "amd_pmc, the driver for s2idle";
    return text && (strncmp(text, "amd_pmc ", 8) == 0 || strstr(text, "\namd_pmc ")) ? pmc : NULL;
}

/* How often S3 has failed, and whether amdgpu has complained about it. */
struct attempts {
    const struct gp_log_line *entry, *complaint, *failure;
    unsigned long long failures;
};

/* Whether a line, "xhci_hcd 0000:00:14.0: PM: failed to suspend", is about another device than a
 * GPU: that one is at fault, or woke the laptop, whatever the mode. */
static bool is_of_another(const struct gp_machine *m, const struct gp_log_line *line)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (strstr(line->kmsg.body, m->gpus[i].bus_id))
            return false;
    return true;
}

/* A later failure soon after is joined with the first one, but not if it was one of another mode,
 * which has no entry. */
static void add_failure(struct attempts *ret, const struct gp_log_line *entry,
                        const struct gp_log_line *line)
{
    ret->entry = entry;
    ret->failure = line;
    ret->failures += 1 + (line->repeats < entry->repeats ? line->repeats : entry->repeats);
}

/* False: it has worked, too, or without a complaint another device has failed, so that the failures
 * have another reason. */
static bool read_attempts(struct gp_exam *exam, struct attempts *ret)
{
    const struct gp_log *log = gp_log_of(exam);
    const struct gp_log_line *entry = NULL; /* of the suspend that goes on */
    bool has_another = false;
    for (size_t i = 0; i < log->count; i++) {
        const struct gp_log_line *line = &log->lines[i];
        switch ((int)line->kmsg.kind) {
        case GP_KMSG_DEEP_WOKE:
            return false;
        case GP_KMSG_DEEP_ENTRY:
            entry = line;
            break;
        case GP_KMSG_RESUMED: /* what follows may be a suspend by s2idle */
            entry = NULL;
            break;
        case GP_KMSG_AMD_CSTATE:
            ret->complaint = entry ? line : ret->complaint;
            break;
        case GP_KMSG_DEVICE_AWAKE:
            has_another = has_another || is_of_another(&exam->machine, line);
            break;
        case GP_KMSG_SUSPEND_FAILED:
            if (entry)
                add_failure(ret, entry, line);
            break;
        default:
            break;
        }
    }
    return ret->failure && (ret->complaint || !has_another);
}

static void fix(struct gp_exam *exam, bool is_argument)
{
    gp_exam_command(exam, "to try it: until the next boot", "echo s2idle | sudo tee %s", modes);
    if (is_argument)
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, argument, NULL);
    else if (strcmp(exam->machine.distro_id, "nixos") == 0)
        gp_exam_command(exam,
                        "for good: after adding, in configuration.nix: boot.kernelParams = [ "
                        "\"mem_sleep_default=s2idle\" ];",
                        "sudo nixos-rebuild boot");
    else
        gp_exam_advice(exam,
                       "for good: the kernel parameter mem_sleep_default=s2idle, or with systemd a "
                       "file in /etc/systemd/sleep.conf.d with the lines [Sleep] and "
                       "SuspendState=freeze");
    gp_exam_advice(exam, "or turn S3 off in the firmware's setup, or with the tool that has "
                         "unlocked it there");
}

static void check_mode(struct gp_exam *exam)
{
    struct attempts attempts = {0};
    char line[4096];
    const char *words, *where;
    if (!gp_files_line(&exam->files, modes, line, sizeof(line)) || !strstr(line, "[deep]") ||
        !strstr(line, "s2idle") || !(where = made_for_idle(exam, &words)) ||
        !read_attempts(exam, &attempts) ||
        (!attempts.complaint && attempts.failures < 2)) /* else something may have woken it */
        return;
    gp_exam_report(exam, attempts.complaint ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "suspending to S3 (deep) fails on this laptop, which is built for s2idle");
    gp_exam_evidence(exam, modes, "%s", line);
    gp_exam_evidence(exam, where, "%s", words);
    gp_log_show_line(exam, attempts.entry);
    if (attempts.complaint)
        gp_log_show_line(exam, attempts.complaint);
    gp_log_show_line(exam, attempts.failure);
    bool is_argument =
        gp_files_line(&exam->files, arguments, line, sizeof(line)) && strstr(line, argument);
    if (is_argument)
        gp_exam_evidence(exam, arguments, "%s", argument);
    gp_exam_why(exam, "Such laptops are made to sleep by s2idle. Their firmware may offer S3 all "
                      "the same, by a setting or after a tool such as UMAF has unlocked it, and "
                      "then devices fail to go to sleep.");
    fix(exam, is_argument);
}

void gp_sleep_check(struct gp_exam *exam)
{
    if (is_made_to_suspend(exam))
        check_mode(exam);
    gp_sleep_check_gfxoff(exam);
}
