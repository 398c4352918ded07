/* AMD's gfxoff turned off by amdgpu's mask of features, as masks for overclocking do that were made
 * for old kernels: machines that sleep by s2idle then stay out of their deepest state. */
#include "doctor/checks/cmdline_fix.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* A bit of the mask, and the mask that guides and tools gave for overclocking when it was the
 * kernel's own with 0x4000 added: it turned gfxoff off only because that kernel did. */
enum { GFXOFF = 0x8000 };
static const unsigned long mask_of_guides = 0xfffd7fff;

static const char parameter[] = "/sys/module/amdgpu/parameters/ppfeaturemask",
                  name[] = "amdgpu.ppfeaturemask=", option[] = "ppfeaturemask=",
                  folder[] = "/etc/modprobe.d", state[] = "/sys/power/mem_sleep";

/* The mask as it is printed; "": it leaves gfxoff on, or is unknown. */
static const char *read_mask(struct gp_exam *exam, unsigned long *ret)
{
    char text[32];
    if (!gp_files_line(&exam->files, parameter, text, sizeof(text)))
        return "";
    *ret = strtoul(text, NULL, 0);
    return *ret == 0 || (*ret & GFXOFF) ? "" : gp_exam_text(exam, "%s", text);
}

bool gp_sleep_has_gfxoff_off(struct gp_exam *exam)
{
    unsigned long mask;
    return exam->machine.amd_count > 0 && !exam->machine.container && read_mask(exam, &mask)[0];
}

/* Whether the last suspend was deep all the same; the kernel tells since 6.4. */
static bool is_deep_again(struct gp_exam *exam)
{
    char text[32];
    return gp_files_line(&exam->files, "/sys/power/suspend_stats/last_hw_sleep", text,
                         sizeof(text)) &&
           strtoull(text, NULL, 10) > 0;
}

/* ---- where it is set ---- */

/* Whether a line of modprobe.d(5) sets the mask. */
static bool is_setting(const char *line)
{
    static const char *const words[] = {"options", "amdgpu"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++) {
        line += strspn(line, " \t");
        size_t n = strcspn(line, " \t");
        if (n != strlen(words[i]) || strncmp(line, words[i], n) != 0)
            return false;
        line += n;
    }
    return strstr(line, option);
}

static bool has_setting(struct gp_exam *exam, const char *path, const char **ret_line)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        *ret_line = gp_exam_text(exam, "%.*s", (int)n, line);
        if (is_setting(*ret_line))
            return true;
    }
    return false;
}

/* In files that the administrator or a tool such as LACT has written. */
static bool fix_files(struct gp_exam *exam, const char *right)
{
    char **names;
    bool is_any = false;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]), *line;
        if (!gp_lines_ends(names[i], ".conf") || !has_setting(exam, path, &line))
            continue;
        gp_exam_evidence(exam, path, "%s", line);
        gp_exam_command(exam, "the original file is kept next to it",
                        "sudo sed -i.before 's/%s[^[:space:]]*/%s%s/' %s", option, option, right,
                        gp_exam_quoted(exam, path));
        is_any = true;
    }
    if (is_any)
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    return is_any;
}

/* On the kernel's command line; false: it is not there. */
static bool fix_argument(struct gp_exam *exam, const char *right)
{
    static const char path[] = "/proc/cmdline";
    char line[4096];
    const char *found =
        gp_files_line(&exam->files, path, line, sizeof(line)) ? strstr(line, name) : NULL;
    if (!found)
        return false;
    gp_exam_evidence(exam, path, "%.*s", (int)strcspn(found, " "), found);
    gp_cmdline_fix(exam, gp_exam_text(exam, "%s%s", name, right), "");
    return true;
}

static void fix_on_nixos(struct gp_exam *exam, const char *right)
{
    bool is_new = gp_version_compare(exam->machine.distro_version, "25.11") >= 0;
    gp_exam_command(
        exam,
        gp_exam_text(exam,
                     "after setting, in configuration.nix: %s.ppfeaturemask = "
                     "\"%s\"; or the same in boot.kernelParams, if it is set there",
                     is_new ? "hardware.amdgpu.overdrive" : "programs.corectrl.gpuOverclock",
                     right),
        "sudo nixos-rebuild boot");
    gp_exam_command(exam, "", "sudo reboot");
}

static void fix(struct gp_exam *exam, unsigned long mask)
{
    const char *right = gp_exam_text(exam, "0x%lx", mask | GFXOFF);
    if (strcmp(exam->machine.distro_id, "nixos") == 0) {
        fix_on_nixos(exam, right);
        return;
    }
    bool is_in_files = fix_files(exam, right);
    if (fix_argument(exam, right) || is_in_files)
        gp_exam_command(exam, "", "sudo reboot");
    else
        gp_exam_advice(exam,
                       "set amdgpu's option %s%s in place of the value where it is set, and "
                       "reboot",
                       option, right);
}

/* Any other mask than that of the guides was made to turn gfxoff off, as against hangs. */
void gp_sleep_check_gfxoff(struct gp_exam *exam)
{
    unsigned long mask;
    char modes[64];
    const char *text = read_mask(exam, &mask);
    const struct gp_log_line *shallow = gp_log_find(exam, GP_KMSG_AMD_SHALLOW);
    if (!text[0] || !shallow || is_deep_again(exam) ||
        !gp_files_line(&exam->files, state, modes, sizeof(modes)) || !strstr(modes, "[s2idle]"))
        return;
    bool is_meant = mask != mask_of_guides;
    gp_exam_report(
        exam, is_meant ? GP_VERDICT_INFO : GP_VERDICT_WARN,
        "this machine does not sleep deeply: amdgpu's mask of features turns off gfxoff");
    gp_exam_evidence(exam, parameter, "%s: without 0x%x, gfxoff", text, (unsigned)GFXOFF);
    gp_exam_evidence(exam, state, "%s", modes);
    gp_log_show_line(exam, shallow);
    gp_exam_why(exam,
                "By s2idle the processor sleeps deeply only while the GPU's graphics are powered "
                "down, which gfxoff does. Otherwise the machine stays warm while it seems to "
                "sleep, and the GPU may be reset when it wakes.%s",
                is_meant ? "" : " Overclocking needs 0x4000 alone.");
    fix(exam, mask);
    gp_exam_advice(exam, "if gfxoff was turned off because the GPU hung with it: it may hang "
                         "again");
    gp_exam_link(exam, is_meant ? "https://gitlab.freedesktop.org/drm/amd/-/issues/2808"
                                : "https://github.com/NixOS/nixpkgs/issues/564601");
}
