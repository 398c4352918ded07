/* Sessions that systemd freezes before it suspends the machine, which do not stop, or do not wake
 * again, while they use NVIDIA's driver. A part of driver.power. */
#include "doctor/checks/driver.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/services.h"

#include <string.h>

static const char unit[] = "systemd-suspend.service",
                  variable[] = "SYSTEMD_SLEEP_FREEZE_USER_SESSIONS";

/* The last line that tells of it; NULL: there is none. */
static const char *find_failure(struct gp_exam *exam)
{
    static const char *const words[] = {"Failed to freeze unit 'user.slice'", NULL};
    size_t length = 0, n;
    const char *line, *found = NULL, *text = gp_journal_text(exam, unit, &length);
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    while (gp_lines_next(&lines, &line, &n))
        if (gp_lines_has_any(line, n, words))
            found = gp_exam_text(exam, "%.*s", (int)n, line);
    return found;
}

bool gp_driver_check_freeze(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *failure = m->is_driver_loaded && !m->container ? find_failure(exam) : NULL;
    if (!failure || strstr(gp_service_list(exam, unit, "Environment"), variable))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "systemd could not freeze the sessions before a suspend: the desktop hangs when "
                   "the machine wakes");
    gp_exam_evidence(exam, gp_exam_text(exam, "journalctl -u %s", unit), "%s", failure);
    gp_exam_why(exam,
                "Since version 256 systemd stops all programs of the users first. Those that wait "
                "for NVIDIA's driver then do not stop, or do not continue afterwards.");
    if (strcmp(m->distro_id, "nixos") == 0) {
        gp_exam_command(exam,
                        gp_exam_text(exam,
                                     "after setting, in configuration.nix: systemd.services."
                                     "systemd-suspend.environment.%s = \"false\"",
                                     variable),
                        "sudo nixos-rebuild switch");
        return true;
    }
    gp_exam_command(exam, "a setting for that service", "sudo mkdir -p /etc/systemd/system/%s.d",
                    unit);
    gp_exam_command(exam, "",
                    "printf '[Service]\\nEnvironment=%s=false\\n' | sudo tee "
                    "/etc/systemd/system/%s.d/no-freeze.conf",
                    variable, unit);
    gp_exam_command(exam, "", "sudo systemctl daemon-reload");
    return true;
}
