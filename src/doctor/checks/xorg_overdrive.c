/* AMD's overclocking, by which the display server does not start with some kernels. */
#include "doctor/checks/xorg_device.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char parameter[] = "/sys/module/amdgpu/parameters/ppfeaturemask";
static const char option[] = "ppfeaturemask=";

/* The mask by which amdgpu lets clocks and voltages be changed; "": it does not. */
static const char *read_mask(struct gp_exam *exam)
{
    enum { OVERDRIVE = 0x4000 };
    char text[32];
    if (!gp_files_line(&exam->files, parameter, text, sizeof(text)) ||
        !(strtoul(text, NULL, 0) & OVERDRIVE))
        return "";
    return gp_exam_text(exam, "%s", text);
}

/* What login screens print when a display server has not come up, and when one has. */
static const struct {
    const char *program, *words;
    bool is_failure;
} messages[] = {
    {"sddm[", "Failed to read display number from pipe", true},
    {"sddm[", "Could not start Display server on vt", true},
    {"sddm[", "Display server failed to start", true},
    {"sddm[", "Display server started", false},
    {"gdm", "maximum number of X display failures reached", true},
};

/* The last such line since the machine was started, if it is of a failure; NULL: there is none. */
static const char *failed_start(struct gp_exam *exam, const char **ret_where)
{
    enum { MOST_BYTES = 1 << 20 };
    static const char *const paths[] = {"/var/log/syslog", "/var/log/messages",
                                        "/var/log/daemon.log"};
    const char *found = NULL, *line;
    for (size_t i = 0; i < GP_ARRAY_LEN(paths) && !found; i++) {
        size_t size = 0, n;
        const char *text = gp_files_tail(&exam->files, &exam->arena, paths[i], MOST_BYTES, &size);
        struct gp_lines lines = gp_lines_of(text, text ? size : 0);
        while (gp_lines_next(&lines, &line, &n)) {
            const char *words = gp_exam_text(exam, "%.*s", n < 300 ? (int)n : 300, line);
            if (strstr(words, "kernel: ") && strstr(words, "Linux version "))
                found = NULL;
            for (size_t k = 0; k < GP_ARRAY_LEN(messages); k++)
                if (strstr(words, messages[k].program) && strstr(words, messages[k].words))
                    found = messages[k].is_failure ? words : NULL;
        }
        *ret_where = paths[i];
    }
    return found;
}

/* Whether the last start of Xorg has left a reason of its own. */
static bool has_own_reason(struct gp_exam *exam)
{
    const char *text =
        gp_files_tail(&exam->files, &exam->arena, "/var/log/Xorg.0.log", 1 << 20, NULL);
    return text && (strstr(text, "Fatal server error") || strstr(text, "no screens found"));
}

/* The option in a file of modprobe.d(5), "options amdgpu ppfeaturemask=0xffffffff"; NULL: it is not
 * set there. */
static const char *option_in(struct gp_exam *exam, const char *path, bool *ret_is_alone)
{
    size_t size = 0, n, others = 0;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    const char *found = NULL;
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *words = gp_exam_text(exam, "%.*s", (int)n, line);
        const char *place = strstr(words, option);
        if (words[0] == '#' || !place || !strstr(words, "amdgpu")) {
            others += n > 0;
            continue;
        }
        found = gp_exam_text(exam, "%.*s", (int)strcspn(place, " \t"), place);
        others += strlen(words) > strlen("options amdgpu ") + strlen(found);
    }
    *ret_is_alone = others == 0;
    return found;
}

static bool remove_options(struct gp_exam *exam)
{
    static const char folder[] = "/etc/modprobe.d";
    static const char note[] = "disables overclocking; LACT can do it, too";
    char **names;
    bool is_any = false, is_alone;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        size_t length = strlen(names[i]);
        bool is_read = length > 5 && strcmp(names[i] + length - 5, ".conf") == 0;
        const char *found = is_read ? option_in(exam, path, &is_alone) : NULL;
        if (!found)
            continue;
        gp_exam_evidence(exam, path, "%s", found);
        if (is_alone)
            gp_exam_command(exam, note, "sudo rm %s", gp_exam_quoted(exam, path));
        else
            gp_exam_command(exam, note, "sudo sed -i.before 's/ %s[^ ]*//' %s", option,
                            gp_exam_quoted(exam, path));
        is_any = true;
    }
    return is_any;
}

/* Where it is set: files, such as those that LACT writes, and the kernel's command line. */
static void turn_off(struct gp_exam *exam)
{
    static const char path[] = "/proc/cmdline", name[] = "amdgpu.ppfeaturemask=";
    char line[4096];
    bool is_read = gp_files_line(&exam->files, path, line, sizeof(line));
    const char *argument = is_read ? strstr(line, name) : NULL;
    if (remove_options(exam))
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    if (argument) {
        argument = gp_exam_text(exam, "%.*s", (int)strcspn(argument, " "), argument);
        gp_exam_evidence(exam, path, "%s", argument);
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, argument, NULL);
    }
    gp_exam_command(exam, "", "sudo reboot");
}

void gp_xorg_check_overdrive(struct gp_exam *exam)
{
    const char *mask = read_mask(exam), *where = "";
    const char *failure = mask[0] && exam->machine.nvidia_count == 0 && exam->machine.amd_count > 0
                              ? failed_start(exam, &where)
                              : NULL;
    if (!failure || has_own_reason(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the login screen's display server does not start, and AMD's overclocking "
                   "(overdrive) is enabled");
    gp_exam_evidence(exam, where, "%s", failure);
    gp_exam_evidence(exam, parameter, "%s", mask);
    gp_exam_why(exam, "With some kernels amdgpu then hangs Xorg, and the screen stays black: "
                      "Ubuntu's 6.8.0-63 and 6.11.0-29 are known for it.");
    turn_off(exam);
    gp_exam_advice(exam, "or, instead of that, start an older kernel in the boot menu until a "
                         "newer one works");
    gp_exam_link(exam, "https://github.com/ROCm/amdgpu/issues/189");
}
