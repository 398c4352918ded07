/* AMD's overclocking, by which the display server does not start with some kernels. */
#include "doctor/checks/xorg.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/log.h"
#include "doctor/readers/syslog.h"

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

/* Ubuntu's kernels that are known for it. */
static bool is_known_kernel(struct gp_exam *exam)
{
    static const char *const kernels[] = {"6.8.0-63-", "6.11.0-29-"};
    char release[128];
    if (!gp_files_line(&exam->files, "/proc/sys/kernel/osrelease", release, sizeof(release)))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(kernels); i++)
        if (strncmp(release, kernels[i], strlen(kernels[i])) == 0)
            return true;
    return false;
}

/* What login screens print when they have waited for a display server in vain, and when something
 * has come up, also with Wayland. One that is missing or that gives up is reported with other
 * words. */
static const struct {
    const char *program, *words;
    bool is_failure;
} messages[] = {
    {"sddm[", "Failed to read display number from pipe", true},
    {"sddm[", "Display server started", false},
    {"sddm[", "Greeter starting", false},
    {"sddm-helper[", "Starting Wayland user session", false},
    {"gnome-shell[", "Running GNOME Shell", false},
};

/* The last such line since the machine was started, if it is of a failure; NULL: there is none. */
static const char *failed_start(struct gp_exam *exam, const char **ret_where)
{
    struct gp_syslog logs[GP_SYSLOGS];
    const char *found = NULL, *line;
    size_t count = gp_syslogs(exam, "sddm.service", logs), n;
    bool is_said = false;
    for (size_t i = 0; i < count && !is_said; i++) {
        if (logs[i].where[0] == '/' && !gp_boot_is_before(exam, logs[i].where))
            continue;
        struct gp_lines lines = gp_lines_of(logs[i].text, logs[i].length);
        while (gp_lines_next(&lines, &line, &n)) {
            const char *words = gp_exam_text(exam, "%.*s", n < 300 ? (int)n : 300, line);
            if (strstr(words, "kernel: ") && strstr(words, "Linux version "))
                found = NULL, is_said = true;
            for (size_t k = 0; k < GP_ARRAY_LEN(messages); k++)
                if (strstr(words, messages[k].program) && strstr(words, messages[k].words))
                    found = messages[k].is_failure ? words : NULL, is_said = true;
        }
        *ret_where = logs[i].where;
    }
    return found;
}

/* Whether Xorg was started since the machine was, and has left no reason of its own. */
static bool is_silent(struct gp_exam *exam)
{
    static const char path[] = "/var/log/Xorg.0.log";
    const char *text = gp_boot_is_before(exam, path)
                           ? gp_files_tail(&exam->files, &exam->arena, path, 1 << 20, NULL)
                           : NULL;
    return text && !strstr(text, "Fatal server error") && !strstr(text, "no screens found");
}

static const char blanks[] = " \t";

/* In "options amdgpu dc=1 ppfeaturemask=0xffffffff"; NULL: the line does not set it. */
static const char *option_of_line(const char *line)
{
    static const char *const words[] = {"options", "amdgpu"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++) {
        line += strspn(line, blanks);
        if (strncmp(line, words[i], strlen(words[i])) != 0)
            return NULL;
        line += strlen(words[i]);
        if (line[0] != ' ' && line[0] != '\t')
            return NULL;
    }
    while (*(line += strspn(line, blanks)) && strncmp(line, option, sizeof(option) - 1) != 0)
        line += strcspn(line, blanks);
    return *line ? line : NULL;
}

/* The option in a file of modprobe.d(5); NULL: it is not set there. */
static const char *option_in(struct gp_exam *exam, const char *path, bool *ret_is_alone)
{
    size_t size = 0, n, others = 0;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    const char *found = NULL;
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *words = gp_exam_text(exam, "%.*s", (int)n, line);
        const char *place = option_of_line(words);
        if (!place) {
            others += n > 0;
            continue;
        }
        found = gp_exam_text(exam, "%.*s", (int)strcspn(place, blanks), place);
        others += strlen(words) > strlen("options amdgpu ") + strlen(found);
    }
    *ret_is_alone = others == 0;
    return found;
}

static bool is_configuration(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".conf") == 0;
}

static const char folder[] = "/etc/modprobe.d";

static bool remove_options(struct gp_exam *exam)
{
    static const char note[] = "disables overclocking; LACT can do it, too";
    char **names;
    bool is_any = false, is_alone;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *found = is_configuration(names[i]) ? option_in(exam, path, &is_alone) : NULL;
        if (!found)
            continue;
        gp_exam_evidence(exam, path, "%s", found);
        if (is_alone)
            gp_exam_command(exam, note, "sudo rm %s", gp_exam_quoted(exam, path));
        else
            gp_exam_command(exam, note,
                            "sudo sed -i.before '/^[[:space:]]*options[[:space:]]*amdgpu"
                            "[[:space:]]/s/[[:space:]]%s[^[:space:]]*//' %s",
                            option, gp_exam_quoted(exam, path));
        is_any = true;
    }
    return is_any;
}

/* In files of packages, which come back with the next update: files of the same name in /etc
 * replace them. */
static void propose_other_file(struct gp_exam *exam)
{
    static const char *const folders[] = {"/run/modprobe.d", "/usr/local/lib/modprobe.d",
                                          "/usr/lib/modprobe.d", "/lib/modprobe.d"};
    bool is_alone;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, folders[i], &names);
        for (long k = 0; k < n; k++) {
            const char *path = gp_exam_text(exam, "%s/%s", folders[i], names[k]);
            const char *mine = gp_exam_text(exam, "%s/%s", folder, names[k]);
            const char *found = is_configuration(names[k]) && !gp_files_exist(&exam->files, mine)
                                    ? option_in(exam, path, &is_alone)
                                    : NULL;
            if (!found)
                continue;
            gp_exam_evidence(exam, path, "%s", found);
            gp_exam_advice(exam,
                           "copy %s to %s, remove %s there, rebuild the initramfs, and reboot",
                           path, mine, found);
            return;
        }
    }
    gp_exam_advice(exam, "remove amdgpu's option ppfeaturemask where it is set, and reboot");
}

/* Where it is set: files, such as those that LACT writes, and the kernel's command line. */
static void turn_off(struct gp_exam *exam)
{
    static const char path[] = "/proc/cmdline", name[] = "amdgpu.ppfeaturemask=";
    char line[4096];
    bool is_read = gp_files_line(&exam->files, path, line, sizeof(line));
    const char *argument = is_read ? strstr(line, name) : NULL;
    bool is_in_file = remove_options(exam);
    if (is_in_file)
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    if (argument) {
        argument = gp_exam_text(exam, "%.*s", (int)strcspn(argument, " "), argument);
        gp_exam_evidence(exam, path, "%s", argument);
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, argument, NULL);
    }
    if (is_in_file || argument)
        gp_exam_command(exam, "", "sudo reboot");
    else
        propose_other_file(exam);
}

void gp_xorg_check_overdrive(struct gp_exam *exam)
{
    const char *mask = read_mask(exam), *where = "";
    bool is_asked = mask[0] && exam->machine.nvidia_count == 0 && exam->machine.amd_count > 0 &&
                    is_known_kernel(exam);
    const char *failure = is_asked ? failed_start(exam, &where) : NULL;
    if (!failure || !is_silent(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the login screen's display server does not start, and AMD's overclocking "
                   "(overdrive) is enabled");
    gp_exam_evidence(exam, where, "%s", failure);
    gp_exam_evidence(exam, parameter, "%s", mask);
    gp_exam_why(exam, "With this kernel amdgpu then hangs Xorg, and the screen stays black: "
                      "Ubuntu's 6.8.0-63 and 6.11.0-29 are known for it.");
    turn_off(exam);
    gp_exam_advice(exam, "or, instead of that, start an older kernel in the boot menu until a "
                         "newer one works");
    gp_exam_link(exam, "https://github.com/ROCm/amdgpu/issues/189");
}
