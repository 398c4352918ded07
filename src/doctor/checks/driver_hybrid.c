/* A screen on another GPU than NVIDIA's, as in most laptops: pictures that tear, and programs that
 * are not started on NVIDIA's GPU though they need it. Findings of driver.params. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 };

/* Whether another GPU has a driver that can show a screen. */
static bool is_hybrid(const struct gp_machine *m)
{
    static const char *const drivers[] = {"i915", "xe", "amdgpu", "radeon"};
    for (size_t i = 0; i < m->gpu_count; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(drivers); k++)
            if (strcmp(m->gpus[i].driver, drivers[k]) == 0)
                return true;
    return false;
}

/* The last line of a file with both words, and its place; NULL: none. */
static const char *last_line(struct gp_exam *exam, const char *path, const char *word,
                             const char *other, const char **ret_where)
{
    size_t size = 0, n;
    const char *line, *found = NULL;
    const char *text = gp_files_tail(&exam->files, &exam->arena, path, MOST_BYTES, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    struct stat st;
    bool is_whole = gp_files_stat(&exam->files, path, &st) == 0 && st.st_size <= MOST_BYTES;
    while (gp_lines_next(&lines, &line, &n)) {
        if (!memmem(line, n, word, strlen(word)) || !memmem(line, n, other, strlen(other)))
            continue;
        found = gp_exam_text(exam, "%.*s", n < 300 ? (int)n : 300, line);
        *ret_where = is_whole ? gp_exam_text(exam, "%s:%zu", path, (size_t)lines.number) : path;
    }
    return found;
}

/* Whether a file was written since the machine was booted: before that, it may tell of what has
 * changed. False: not, or that is unknown. */
static bool is_recent(struct gp_exam *exam, const char *path)
{
    static const char key[] = "\nbtime ";
    const char *text = gp_files_text(&exam->files, &exam->arena, "/proc/stat", 1 << 18, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    struct stat st;
    return found && gp_files_stat(&exam->files, path, &st) == 0 &&
           st.st_mtime >= strtoll(found + sizeof(key) - 1, NULL, 10);
}

/* ---- tearing ---- */

/* What Xorg says of a screen that gets its picture from another GPU, and cannot wait for it; NULL:
 * nothing, or the user's session does not run in it. *ret_path: the log. */
static const char *unsynchronized(struct gp_exam *exam, const char **ret_where,
                                  const char **ret_path)
{
    static const char words[] = "falling back to unsynchronized pixmap sharing";
    enum { DISPLAYS = 3 };
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    const char *const folders[] = {"/var/log",
                                   home ? gp_exam_text(exam, "%s/.local/share/xorg", home) : NULL};
    if (type && strcmp(type, "wayland") == 0)
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        for (int d = 0; d < DISPLAYS && folders[i]; d++) {
            *ret_path = gp_exam_text(exam, "%s/Xorg.%d.log", folders[i], d);
            const char *line = last_line(exam, *ret_path, words, "", ret_where);
            if (line)
                return line;
        }
    return NULL;
}

/* False: nvidia_drm sets modes, or nothing says that it is needed. */
static bool report_tearing(struct gp_exam *exam)
{
    static const char path[] = "/sys/module/nvidia_drm/parameters/modeset",
                      xrun[] = "/usr/bin/nvidia-xrun";
    char value[8];
    const char *where = "", *line, *place = "", *log = "";
    if (!gp_files_line(&exam->files, path, value, sizeof(value)) || value[0] != 'N' ||
        !(line = unsynchronized(exam, &where, &log)))
        return false;
    const char *loader = last_line(exam, xrun, "modprobe", "nvidia_drm", &place);
    gp_exam_report(exam, is_recent(exam, log) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the picture tears: the kernel mode setting of nvidia_drm is off, which PRIME "
                   "synchronization needs");
    gp_exam_evidence(exam, path, "N");
    gp_exam_evidence(exam, where, "%s", line);
    if (loader)
        gp_exam_evidence(exam, place, "%s", loader);
    gp_exam_why(exam, "The screen belongs to another GPU, which gets NVIDIA's pictures. Without "
                      "the mode setting it does not wait until one is complete.");
    gp_driver_fix_modes(exam);
    if (loader) {
        gp_exam_advice(exam, "nvidia-xrun then loads it so: end its session, and start it again");
    } else {
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
        gp_driver_fix_reboot(exam, "");
    }
    gp_exam_link(exam, "https://wiki.archlinux.org/title/PRIME#PRIME_synchronization");
    return true;
}

/* ---- programs without offload ---- */

static const char offload[] = "__NV_PRIME_RENDER_OFFLOAD=1 __GLX_VENDOR_LIBRARY_NAME=nvidia";

/* Programs that share pictures between CUDA and OpenGL, which must then be NVIDIA's, too. */
static const struct program {
    const char *title, *path, *entry; /* of the menu, below applications */
    const char *logs[2];              /* below the home */
    const char *word, *other;         /* of a line that shows the failure */
} programs[] = {
    {"DaVinci Resolve",
     "/opt/resolve/bin/resolve",
     "com.blackmagicdesign.resolve.desktop",
     {".local/share/DaVinciResolve/logs/rollinglog.txt",
      ".local/share/DaVinciResolve/logs/ResolveDebug.txt"},
     "GPU failed to perform image processing",
     "Error Code: 999"},
};

/* Whether the screen is drawn by another GPU unless a program asks for NVIDIA's. */
static bool is_on_demand(struct gp_exam *exam)
{
    static const char *const variables[] = {"__NV_PRIME_RENDER_OFFLOAD",
                                            "__GLX_VENDOR_LIBRARY_NAME", "DRI_PRIME"};
    const struct gp_machine *m = &exam->machine;
    char line[64];
    bool shows_other = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++)
        if (gp_machine_variable(m, variables[i]))
            return false;
    for (size_t i = 0; i < m->gpu_count; i++)
        shows_other =
            shows_other || (m->gpus[i].shows_screen && m->gpus[i].vendor != GP_PCI_NVIDIA);
    return shows_other &&
           (!gp_files_line(&exam->files, "/etc/prime-discrete", line, sizeof(line)) ||
            strcmp(line, "on-demand") == 0);
}

/* The menu's file for a program: a user's own comes first; NULL: there is none. */
static const char *entry_of(struct gp_exam *exam, const char *home, const char *name)
{
    const char *const paths[] = {gp_exam_text(exam, "%s/.local/share/applications/%s", home, name),
                                 gp_exam_text(exam, "/usr/local/share/applications/%s", name),
                                 gp_exam_text(exam, "/usr/share/applications/%s", name), NULL};
    return gp_files_first(&exam->files, paths);
}

/* Whether it starts the program on NVIDIA's GPU. */
static bool is_offloaded(struct gp_exam *exam, const char *entry)
{
    static const char *const words[] = {"PRIME_RENDER_OFFLOAD",
                                        "GLX_VENDOR_LIBRARY_NAME",
                                        "DRI_PRIME",
                                        "prime-run",
                                        "nvidia-offload",
                                        "switcherooctl",
                                        "optirun",
                                        "primusrun",
                                        "pvkrun",
                                        "PrefersNonDefaultGPU=true",
                                        "X-KDE-RunOnDiscreteGpu=true"};
    const char *text = gp_files_text(&exam->files, &exam->arena, entry, 1 << 16, NULL);
    bool is_direct = text && strstr(text, "Exec=/"); /* not a script of the user's */
    for (size_t i = 0; i < GP_ARRAY_LEN(words) && is_direct; i++)
        is_direct = !strstr(text, words[i]);
    return !is_direct;
}

static void fix_offload(struct gp_exam *exam, const struct program *program, const char *entry)
{
    const char *quoted = gp_exam_quoted(exam, entry);
    if (strstr(entry, "/.local/"))
        gp_exam_command(exam, "start it so from the menu; the original file is kept next to it",
                        "sed -i.before 's#^Exec=/#Exec=env %s /#' %s", offload, quoted);
    else
        gp_exam_command(exam, "start it so from the menu, by a file of your own",
                        "mkdir -p ~/.local/share/applications && sed 's#^Exec=/#Exec=env %s /#' %s "
                        "> ~/.local/share/applications/%s",
                        offload, quoted, program->entry);
    gp_exam_command(exam, "in a terminal", "%s %s", offload, program->path);
    if (gp_files_exist(&exam->files, "/usr/bin/system76-power"))
        gp_exam_advice(exam, "or have NVIDIA's GPU draw everything, at the cost of power: sudo "
                             "system76-power graphics nvidia, and reboot");
    else if (gp_files_exist(&exam->files, "/usr/bin/prime-select"))
        gp_exam_advice(exam, "or have NVIDIA's GPU draw everything, at the cost of power: sudo "
                             "prime-select nvidia, and reboot");
}

static void check_program(struct gp_exam *exam, const struct program *program)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME"), *where = "";
    const char *entry = home && gp_files_exist(&exam->files, program->path)
                            ? entry_of(exam, home, program->entry)
                            : NULL;
    const char *line = NULL, *log = "";
    if (!entry || is_offloaded(exam, entry))
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(program->logs) && !line; i++) {
        log = gp_exam_text(exam, "%s/%s", home, program->logs[i]);
        line = last_line(exam, log, program->word, program->other, &where);
    }
    if (!line)
        return;
    gp_exam_report(exam, is_recent(exam, log) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s is started without PRIME render offload, and fails on the NVIDIA GPU",
                   program->title);
    gp_exam_evidence(exam, where, "%s", line);
    gp_exam_evidence(exam, entry, "starts %s without %s", program->path, offload);
    if (gp_files_exist(&exam->files, "/etc/prime-discrete"))
        gp_exam_evidence(exam, "/etc/prime-discrete", "on-demand");
    gp_exam_why(exam, "The other GPU draws the screen, and the OpenGL of each program that does "
                      "not ask for NVIDIA's. This one passes pictures from CUDA to OpenGL, which "
                      "works only on one GPU.");
    fix_offload(exam, program, entry);
    gp_exam_link(exam, "https://wiki.archlinux.org/title/PRIME#PRIME_render_offload");
}

void gp_driver_check_hybrid(struct gp_exam *exam)
{
    enum { FIRST_WITH_OFFLOAD = 435 };
    const struct gp_machine *m = &exam->machine;
    if (m->container || !m->is_driver_loaded || !is_hybrid(m) || report_tearing(exam) ||
        gp_version_major(m->driver) < FIRST_WITH_OFFLOAD || !is_on_demand(exam))
        return;
    const struct gp_finding *before = exam->last;
    for (size_t i = 0; i < GP_ARRAY_LEN(programs) && exam->last == before; i++)
        check_program(exam, &programs[i]);
}
