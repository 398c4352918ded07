/* The loaders of Vulkan and OpenCL: what keeps them from a driver, or a program from them. */
#include "doctor/checks/graphics.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/lutris.h"
#include "doctor/readers/opencl.h"
#include "doctor/readers/vulkan.h"

#include <string.h>

/* What package managers put next to a file of theirs is no driver that was turned off. */
static bool is_of_update(const char *name)
{
    return strstr(name, ".dpkg-") || strstr(name, ".rpm") || strstr(name, ".pac");
}

/* Who diverts a file to another name in dpkg: a package, or ":" for an administrator; NULL: nobody.
 */
static const char *diverter(struct gp_exam *exam, const char *from, const char *to)
{
    static const char path[] = "/var/lib/dpkg/diversions"; /* lines: from, to, by whom */
    size_t length = 0, n;
    const char *all = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, &length), *line;
    struct gp_lines lines = gp_lines_of(all, all ? length : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        bool is_from = gp_lines_is(line, n, from);
        if (!gp_lines_next(&lines, &line, &n))
            return NULL;
        bool is_to = gp_lines_is(line, n, to);
        if (!gp_lines_next(&lines, &line, &n))
            return NULL;
        if (is_from && is_to)
            return gp_exam_text(exam, "%.*s", (int)n, line);
    }
    return NULL;
}

/* primus-vk's wrapper takes the place of NVIDIA's file, for Bumblebee, which it cannot do without.
 */
static bool has_bumblebee(const struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/sbin/bumblebeed", "/usr/bin/bumblebeed",
                                        "/usr/bin/optirun", NULL};
    return gp_files_first(&exam->files, paths);
}

/* A driver's file under another name. A user who renamed one of several drivers may want the
 * others to be used. */
static void report_renamed(struct gp_exam *exam, const char *words, const char *path,
                           const char *right, bool is_first)
{
    const char *package = diverter(exam, right, path);
    bool is_local = package && strcmp(package, ":") == 0;
    bool is_meant = (!package || is_local) && exam->machine.gpu_count > 1;
    if (package && !is_local && has_bumblebee(exam))
        return;
    if (is_first)
        gp_exam_report(exam, is_meant ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                       "Vulkan does not use the driver of %s: its file has been renamed", words);
    gp_exam_evidence(exam, path, "present, under a name that Vulkan's loader skips");
    gp_exam_evidence(exam, right, "missing");
    if (package)
        gp_exam_evidence(exam, "/var/lib/dpkg/diversions", "diverted by %s",
                         is_local ? "an administrator" : package);
    if (is_first)
        gp_exam_why(exam,
                    "The loader reads only files that end with %s; programs and games then use "
                    "another GPU or the CPU, or report VK_ERROR_INCOMPATIBLE_DRIVER.",
                    GP_VULKAN_END);
    const char *from = gp_exam_quoted(exam, path), *to = gp_exam_quoted(exam, right);
    const char *note = is_meant ? "unless that is meant" : "";
    if (!package)
        gp_exam_command(exam, note, "sudo mv %s %s", from, to);
    else if (is_local)
        gp_exam_command(exam, note, "sudo dpkg-divert --rename --remove %s", to);
    else if (is_first)
        gp_exam_command(exam, "which gives the file its name back", "sudo apt-get remove %s",
                        gp_exam_quoted(exam, package));
}

bool gp_graphics_report_renamed(struct gp_exam *exam, const char *const *starts, const char *words)
{
    bool is_any = false;
    char **names;
    for (size_t f = 0; gp_vulkan_folders[f]; f++) {
        const char *folder = gp_vulkan_folders[f];
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long i = 0; i < n; i++) {
            const char *name = names[i], *end = strstr(name, GP_VULKAN_END);
            if (!gp_lines_starts_any(name, starts) || gp_vulkan_is_read(name) || is_of_update(name))
                continue;
            size_t stem = end ? (size_t)(end - name) : strcspn(name, ".");
            report_renamed(exam, words, gp_exam_text(exam, "%s/%s", folder, name),
                           gp_exam_text(exam, "%s/%.*s%s", folder, (int)stem, name, GP_VULKAN_END),
                           !is_any);
            is_any = true;
        }
    }
    return is_any;
}

static void fix_steam_on_nixos(struct gp_exam *exam)
{
    gp_exam_why(exam, "Steam among the packages of the system is the program alone: \"failed to "
                      "create vulkan instance\", or glXChooseVisual fails.");
    gp_exam_advice(exam, "in the system's configuration: programs.steam.enable = true; instead of "
                         "steam among the packages");
    gp_exam_command(exam, "then", "sudo nixos-rebuild switch");
    gp_exam_link(exam, "https://github.com/NixOS/nixpkgs/issues/393003");
}

/* Without the option for Steam, or their own, NixOS has no drivers of 32 bits. What Lutris is used
 * for is unknown. */
static void check_nixos(struct gp_exam *exam)
{
    static const char steam[] = "/run/current-system/sw/bin/steam",
                      drivers[] = "/run/opengl-driver-32";
    if (strcmp(exam->machine.distro_id, "nixos") != 0 ||
        !gp_files_exist(&exam->files, "/run/opengl-driver") ||
        gp_files_exist(&exam->files, drivers))
        return;
    bool has_steam = gp_files_exist(&exam->files, steam);
    const char *program = has_steam ? steam : gp_lutris_narrow_wine(exam);
    if (!program)
        return;
    gp_exam_report(exam, has_steam ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the 32-bit drivers, which %s needs, are not installed",
                   gp_vulkan_narrow_words(program));
    gp_exam_evidence(exam, drivers, "missing");
    gp_exam_evidence(exam, program, "present");
    if (has_steam)
        fix_steam_on_nixos(exam);
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_MESA_VULKAN_32, "", NULL);
    gp_exam_can_wait(exam);
}

void gp_graphics_show_narrow_user(struct gp_exam *exam, const char *program)
{
    const char *where, *text;
    gp_exam_evidence(exam, program, "present");
    if (!gp_vulkan_is_of_lutris(program))
        gp_exam_can_wait(exam);
    else if (gp_lutris_lacks_narrow(exam, &where, &text))
        gp_exam_evidence(exam, where, "%s", text);
}

void gp_graphics_check_loader(struct gp_exam *exam)
{
    check_nixos(exam);
    const char *program = gp_vulkan_narrow_user(exam), *wide;
    const char *narrow = program && (strstr(program, "i386-unix") ||
                                     gp_vulkan_is_of_lutris(program)) /* Steam brings one */
                             ? gp_vulkan_narrow_missing(exam, "libvulkan.so.1", &wide)
                             : NULL;
    if (!narrow)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Vulkan's 32-bit loader, which %s needs, is not installed",
                   gp_vulkan_narrow_words(program));
    gp_exam_evidence(exam, narrow, "missing");
    gp_exam_evidence(exam, wide, "present");
    gp_graphics_show_narrow_user(exam, program);
    gp_exam_why(exam, "DXVK and 32-bit games then find no Vulkan: \"Failed to create Vulkan "
                      "instance\".");
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_VULKAN_LOADER_32, NULL, NULL);
}

bool gp_graphics_knows_opencl(struct gp_exam *exam, const char *word)
{
    int error = 0;
    bool knows = gp_opencl_knows(exam, word, &error);
    if (error != 0)
        gp_exam_unreadable(exam, GP_OPENCL_VENDORS, error);
    return knows;
}
