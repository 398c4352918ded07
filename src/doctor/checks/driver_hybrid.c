/* A screen on another GPU than NVIDIA's, as in most laptops: pictures that tear, and programs that
 * are not started on NVIDIA's GPU though they need it. Findings of driver.params. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/unbound.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/log.h"
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

/* ---- a screen without a driver ---- */

/* The Intel GPU of a laptop's own screen, if no driver has it; NULL: one has. AMD's is a matter of
 * amd.driver; intel.driver leaves machines with GPUs of others alone. */
static const struct gp_pci_gpu *undriven(const struct gp_machine *m)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_INTEL && m->gpus[i].shows_screen && !m->gpus[i].driver[0])
            return &m->gpus[i];
    return NULL;
}

/* Installers of distributions leave nomodeset where they were started with it. */
static bool report_no_modes(struct gp_exam *exam)
{
    static const char path[] = "/proc/cmdline", word[] = "nomodeset",
                      manager[] = "/etc/systemd/system/display-manager.service";
    const struct gp_pci_gpu *gpu = undriven(&exam->machine);
    if (!gpu || !gp_machine_is_laptop(&exam->files) || !gp_files_exist(&exam->files, manager) ||
        !gp_unbound_has_argument(exam, word))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the GPU of this laptop's screen has no driver: nomodeset keeps it away");
    gp_exam_evidence(exam, path, "%s", word);
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                     "missing");
    gp_exam_why(exam, "The screen is then drawn by the CPU, slowly, without its resolutions or its "
                      "brightness, and NVIDIA's GPU has no screen for its pictures.");
    gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, word, NULL);
    gp_driver_fix_reboot(exam, "");
    return true;
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
    gp_exam_report(exam, gp_boot_is_before(exam, log) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
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

/* The modes of the tools that switch GPUs; without a file, the tool is not in use. */
static const struct {
    const char *path, *value;
} on_demand[] = {
    {"/etc/prime-discrete", "on-demand"},
    {"/var/lib/optimus-manager/persistent/startup_mode", "hybrid"},
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
    for (size_t i = 0; i < GP_ARRAY_LEN(on_demand); i++)
        if (gp_files_line(&exam->files, on_demand[i].path, line, sizeof(line)) &&
            strcmp(line, on_demand[i].value) != 0)
            return false;
    return shows_other;
}

static void show_mode(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(on_demand); i++)
        if (gp_files_exist(&exam->files, on_demand[i].path))
            gp_exam_evidence(exam, on_demand[i].path, "%s", on_demand[i].value);
}

/* The menu's file for a program: a user's own comes first; NULL: there is none. */
static const char *entry_of(struct gp_exam *exam, const char *home, const char *name)
{
    const char *const paths[] = {gp_exam_text(exam, "%s/.local/share/applications/%s", home, name),
                                 gp_exam_text(exam, "/usr/local/share/applications/%s", name),
                                 gp_exam_text(exam, "/usr/share/applications/%s", name), NULL};
    return gp_files_first(&exam->files, paths);
}

/* Whether a text has a word that starts a program on NVIDIA's GPU. */
static bool has_offload(const char *text)
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
    bool has = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(words) && text && !has; i++)
        has = strstr(text, words[i]);
    return has;
}

/* Whether it starts the program on NVIDIA's GPU. */
static bool is_offloaded(struct gp_exam *exam, const char *entry)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, entry, 1 << 16, NULL);
    bool is_direct = text && strstr(text, "Exec=/"); /* not a script of the user's */
    return !is_direct || has_offload(text);
}

static void fix_all(struct gp_exam *exam)
{
    if (gp_files_exist(&exam->files, "/usr/bin/system76-power"))
        gp_exam_advice(exam, "or have NVIDIA's GPU draw everything, at the cost of power: sudo "
                             "system76-power graphics nvidia, and reboot");
    else if (gp_files_exist(&exam->files, "/usr/bin/prime-select"))
        gp_exam_advice(exam, "or have NVIDIA's GPU draw everything, at the cost of power: sudo "
                             "prime-select nvidia, and reboot");
    else if (gp_files_exist(&exam->files, "/usr/bin/optimus-manager"))
        gp_exam_advice(exam, "or have NVIDIA's GPU draw everything, at the cost of power: "
                             "optimus-manager --switch nvidia, which ends the session");
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
    fix_all(exam);
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
    gp_exam_report(exam, gp_boot_is_before(exam, log) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s is started without PRIME render offload, and fails on the NVIDIA GPU",
                   program->title);
    gp_exam_evidence(exam, where, "%s", line);
    gp_exam_evidence(exam, entry, "starts %s without %s", program->path, offload);
    show_mode(exam);
    gp_exam_why(exam, "The other GPU draws the screen, and the OpenGL of each program that does "
                      "not ask for NVIDIA's. This one passes pictures from CUDA to OpenGL, which "
                      "works only on one GPU.");
    fix_offload(exam, program, entry);
    gp_exam_link(exam, "https://wiki.archlinux.org/title/PRIME#PRIME_render_offload");
}

/* ---- games ---- */

/* The GPU that drew a game, as its log has it. */
struct game {
    const char *title, *line, *where;
    long long time; /* of the log */
};

struct games {
    struct gp_exam *exam;
    struct game last;  /* the last one that another GPU drew; no title: none */
    bool is_on_nvidia; /* NVIDIA's drew one: its user knows how */
};

/* OpenGL names the GPU in its own words: "Mesa Intel(R) UHD Graphics 630 (CFL GT2)", "AMD Radeon
 * Graphics (radeonsi, renoir, …)", "NVIDIA GeForce RTX 3060/PCIe/SSE2". */
static void look_at(struct games *games, const char *title, const char *path, const char *word)
{
    const char *where = "", *line = last_line(games->exam, path, word, "", &where);
    struct stat st;
    if (!line || gp_files_stat(&games->exam->files, path, &st) < 0)
        return;
    if (strstr(line, "/PCIe/") || strstr(line, "NVIDIA"))
        games->is_on_nvidia = true;
    else if ((strstr(line, "Intel") || strstr(line, "AMD ") || strstr(line, "Radeon")) &&
             (!games->last.title || st.st_mtime > games->last.time))
        games->last = (struct game){title, line, where, st.st_mtime};
}

/* Games made with Unity keep a log below the names of their maker and their own. */
static void look_at_unity(struct games *games, const char *home)
{
    enum { MOST = 64 };
    struct gp_exam *exam = games->exam;
    const char *top = gp_exam_text(exam, "%s/.config/unity3d", home);
    char **makers, **names;
    long n = gp_files_list(&exam->files, &exam->arena, top, &makers);
    for (long i = 0, seen = 0; i < n && i < MOST && seen < MOST; i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", top, makers[i]);
        long count = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long k = 0; k < count && seen < MOST; k++, seen++)
            look_at(games, names[k], gp_exam_text(exam, "%s/%s/Player.log", folder, names[k]),
                    "Renderer: ");
    }
}

/* Whether the desktop starts Steam, and with it all games, on NVIDIA's GPU. */
static bool is_steam_offloaded(struct gp_exam *exam, const char *home)
{
    const char *entry = entry_of(exam, home, "steam.desktop");
    return entry && has_offload(gp_files_text(&exam->files, &exam->arena, entry, 1 << 16, NULL));
}

/* Where Steam keeps launch options, if none of them is for NVIDIA's GPU; NULL: one is, or there are
 * none to be seen. */
static const char *without_options(struct gp_exam *exam, const char *home)
{
    enum { USERS = 8, MOST_OPTIONS = 4 << 20 };
    const char *found = NULL;
    char **names;
    for (size_t i = 0; gp_steam_folders[i]; i++) {
        const char *top = gp_exam_text(exam, "%s/%s/userdata", home, gp_steam_folders[i]);
        long n = gp_files_list(&exam->files, &exam->arena, top, &names);
        for (long k = 0; k < n && k < USERS; k++) {
            const char *path = gp_exam_text(exam, "%s/%s/config/localconfig.vdf", top, names[k]);
            const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST_OPTIONS, NULL);
            if (has_offload(text))
                return NULL;
            found = text ? path : found;
        }
    }
    return found;
}

/* A snap does not see the host's prime-run. */
static void fix_games(struct gp_exam *exam, bool is_snap)
{
    gp_exam_advice(exam,
                   "in the properties of the game in Steam, launch options: %s "
                   "__VK_LAYER_NV_optimus=NVIDIA_only %%command%%%s",
                   offload,
                   !is_snap && gp_files_exist(&exam->files, "/usr/bin/prime-run")
                       ? ", or shorter: prime-run %command%"
                       : "");
}

/* A game that Steam's snap has installed, rather than Proton or another part of Steam; NULL: none.
 */
static const char *game_of_snap(struct gp_exam *exam, const char *home, const char **ret_name)
{
    static const char mark[] = "\"name\"";
    static const char *const parts[] = {"Proton", "Steam Linux Runtime", "Steamworks"};
    const char *folder =
        gp_exam_text(exam, "%s/snap/steam/common/.local/share/Steam/steamapps", home);
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = strncmp(names[i], "appmanifest_", 12) == 0
                               ? gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL)
                               : NULL;
        const char *name = text ? strstr(text, mark) : NULL;
        name = name ? strchr(name + sizeof(mark) - 1, '"') : NULL;
        bool is_part = !name;
        for (size_t k = 0; k < GP_ARRAY_LEN(parts) && !is_part; k++)
            is_part = strncmp(name + 1, parts[k], strlen(parts[k])) == 0;
        if (is_part)
            continue;
        *ret_name = gp_exam_text(exam, "%.*s", (int)strcspn(name + 1, "\"\n"), name + 1);
        return path;
    }
    return NULL;
}

/* Valve's own entry of the menu asks desktops for the other GPU (PrefersNonDefaultGPU); a snap's
 * that does not has Steam start on the one of the screen. Nothing shows how it was started last, so
 * this is no more than a hint. False: it asks, or there is another Steam. */
static bool report_snap(struct gp_exam *exam, const char *home, const char *options)
{
    static const char system_entry[] = "/var/lib/snapd/desktop/applications/steam_steam.desktop",
                      key[] = "PrefersNonDefaultGPU=true";
    const char *own = gp_exam_text(exam, "%s/.local/share/applications/steam_steam.desktop", home);
    const char *entry = gp_files_exist(&exam->files, own) ? own : system_entry, *game;
    const char *text = gp_files_text(&exam->files, &exam->arena, entry, 1 << 16, NULL);
    const char *path = text && !has_offload(text) && !entry_of(exam, home, "steam.desktop")
                           ? game_of_snap(exam, home, &game)
                           : NULL;
    if (!path)
        return false;
    gp_exam_report(
        exam, GP_VERDICT_INFO,
        "Steam's snap does not start games on the NVIDIA GPU: its entry in the menu does "
        "not ask for PRIME render offload");
    gp_exam_evidence(exam, entry, "no %s", key);
    gp_exam_evidence(exam, options, "no launch options for the NVIDIA GPU");
    gp_exam_evidence(exam, path, "%s", game);
    show_mode(exam);
    gp_exam_why(exam, "The other GPU draws the screen, and each program that does not ask for "
                      "NVIDIA's. Valve's own entry asks the desktop for it.");
    fix_games(exam, true);
    if (entry == own)
        gp_exam_command(exam, "or Steam with all games, from the menu; the original file is kept",
                        "sed -i.before 's#^Exec=#Exec=env %s #' %s", offload,
                        gp_exam_quoted(exam, own));
    else
        gp_exam_command(exam, "or Steam with all games, from the menu, by a file of your own",
                        "mkdir -p ~/.local/share/applications && sed 's#^Exec=#Exec=env %s #' %s > "
                        "~/.local/share/applications/steam_steam.desktop",
                        offload, system_entry);
    fix_all(exam);
    gp_exam_link(exam, "https://github.com/canonical/steam-snap/issues/195");
    return true;
}

/* Many play light games so on purpose: no more than a hint. */
static void check_games(struct gp_exam *exam)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    const char *options = home ? without_options(exam, home) : NULL;
    struct games games = {.exam = exam};
    if (!options || is_steam_offloaded(exam, home))
        return;
    look_at(&games, "Factorio", gp_exam_text(exam, "%s/.factorio/factorio-current.log", home),
            "Initialised OpenGL");
    look_at_unity(&games, home);
    if (games.is_on_nvidia || (!games.last.title && report_snap(exam, home, options)) ||
        !games.last.title)
        return;
    gp_exam_report(
        exam, GP_VERDICT_INFO,
        "%s does not run on the NVIDIA GPU: Steam starts games without PRIME render offload",
        games.last.title);
    gp_exam_evidence(exam, games.last.where, "%s", games.last.line);
    gp_exam_evidence(exam, options, "no launch options for the NVIDIA GPU");
    show_mode(exam);
    gp_exam_why(exam, "The other GPU draws the screen, and each program that does not ask for "
                      "NVIDIA's. That saves power, and is enough for some games.");
    fix_games(exam, false);
    fix_all(exam);
    gp_exam_link(exam, "https://wiki.archlinux.org/title/PRIME#PRIME_render_offload");
}

void gp_driver_check_hybrid(struct gp_exam *exam)
{
    enum { FIRST_WITH_OFFLOAD = 435 };
    const struct gp_machine *m = &exam->machine;
    if (m->container || !m->is_driver_loaded || report_no_modes(exam) || !is_hybrid(m) ||
        report_tearing(exam) || gp_version_major(m->driver) < FIRST_WITH_OFFLOAD ||
        !is_on_demand(exam))
        return;
    const struct gp_finding *before = exam->last;
    for (size_t i = 0; i < GP_ARRAY_LEN(programs) && exam->last == before; i++)
        check_program(exam, &programs[i]);
    if (exam->last == before)
        check_games(exam);
}
