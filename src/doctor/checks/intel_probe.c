/* Arguments of the kernel that hand an Intel GPU from one driver to the other: i915 and xe. */
#include "doctor/checks/intel.h"

#include "doctor/exam.h"

#include <stdlib.h>
#include <string.h>

/* What an argument, "i915.force_probe=", says of the GPU: '+' it is to take it, '-' to leave it;
 * '\0': nothing. The word is copied to `ret_word`. The list is of PCI devices, "56a0,!46a6", "!*".
 */
static char said_of(struct gp_exam *exam, const char *line, const char *argument,
                    const struct gp_pci_gpu *gpu, const char **ret_word)
{
    const char *found = strstr(line, argument);
    if (!found)
        return '\0';
    *ret_word = gp_exam_text(exam, "%.*s", (int)strcspn(found, " "), found);
    char answer = '\0';
    for (const char *p = *ret_word + strlen(argument); *p; p += strcspn(p, ","), p += *p == ',') {
        bool is_not = *p == '!';
        const char *id = p + is_not;
        if (*id == '*' || strtoul(id, NULL, 16) == gpu->device)
            answer = is_not ? '-' : '+';
    }
    return answer;
}

bool gp_intel_explain_probe(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    char line[4096];
    const char *old = "", *new = "";
    if (gpu->driver[0] || !gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)) ||
        said_of(exam, line, "i915.force_probe=", gpu, &old) != '-' ||
        said_of(exam, line, "xe.force_probe=", gpu, &new) == '+')
        return false;
    gp_exam_evidence(exam, "/proc/cmdline", "%s", old);
    if (new[0])
        gp_exam_evidence(exam, "/proc/cmdline", "%s, without %04x", new, gpu->device);
    gp_exam_why(exam,
                "i915 is kept from this GPU, and xe takes one of this age only if it is forced "
                "to.");
    gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, "i915.force_probe", NULL);
    gp_exam_command(exam, "", "sudo reboot");
    gp_exam_advice(exam,
                   "or have xe drive it, with both on the kernel command line: %s "
                   "xe.force_probe=%04x",
                   old, gpu->device);
    return true;
}
