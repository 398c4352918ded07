/* What needs nvidia_drm to set the modes of a screen, where that is off, or to replace the
 * firmware's framebuffer: a part of driver.params. */
#include "doctor/checks/driver.h"

#include "doctor/checks/cmdline_fix.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/exam.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

/* Not the one for VDPAU, which has a link of this name. */
const char *gp_driver_video(struct gp_exam *exam)
{
    char real[GP_PATH_SIZE];
    const char *path = gp_system_library(exam, "", "dri/nvidia_drv_video.so");
    return path && gp_files_real(&exam->files, path, real) && strstr(real, "nvidia_drv_video.so")
               ? path
               : NULL;
}

/* Whether there is an X server, or a trace of one, wherever distributions have it. */
static bool has_x(struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/bin/Xorg",
                                        "/usr/libexec/Xorg",
                                        "/usr/lib/Xorg",
                                        "/usr/lib/xorg",
                                        "/usr/lib64/xorg",
                                        "/var/log/Xorg.0.log",
                                        "/etc/X11/xorg.conf",
                                        "/run/current-system/sw/bin/Xorg",
                                        "/run/current-system/sw/bin/X",
                                        NULL};
    static const char *const words[] = {"xorg-server", "xserver-xorg", NULL};
    struct gp_package *packages;
    return gp_files_first(&exam->files, paths) ||
           gp_packages_read(&exam->files, &exam->arena, words, &packages) > 0;
}

bool gp_driver_has_sessions(struct gp_exam *exam, const char *folder)
{
    char **names;
    return gp_files_list(&exam->files, &exam->arena, folder, &names) > 0;
}

bool gp_driver_is_boot_screen(const struct gp_machine *m)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (gp_driver_is_ours(&m->gpus[i]) && m->gpus[i].shows_screen)
            return true;
    return false;
}

bool gp_driver_shows_screen(const struct gp_machine *m)
{
    return m->gpu_count == m->nvidia_count || gp_driver_is_boot_screen(m);
}

const char *gp_driver_compositor(struct gp_exam *exam)
{
    static const char *const paths[] = {
        "/usr/bin/Hyprland", "/usr/bin/niri",        "/usr/bin/sway",
        "/usr/bin/labwc",    "/usr/bin/wayfire",     "/usr/bin/river",
        "/usr/bin/hyprland", "/usr/bin/cosmic-comp", NULL};
    static const char sessions[] = "/usr/share/xsessions";
    bool may_be_x =
        gp_files_exist(&exam->files, "/usr/bin/Xorg") &&
        (gp_driver_has_sessions(exam, sessions) || !gp_files_exist(&exam->files, sessions));
    return may_be_x || !gp_driver_shows_screen(&exam->machine)
               ? NULL
               : gp_files_first(&exam->files, paths);
}

const char *gp_driver_line_of(struct gp_exam *exam, const char *path, const char *start)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    const char *all = gp_exam_text(exam, "\n%s", text ? text : "");
    const char *found = strstr(all, gp_exam_text(exam, "\n%s", start));
    return found ? gp_exam_text(exam, "%.*s", (int)strcspn(found + 1, "\r\n"), found + 1) : NULL;
}

/* What SDDM's login screen uses: the main file overrides the others, and of these the last. */
static const char *greeter_of(struct gp_exam *exam, const char **ret_place)
{
    static const char path[] = "/etc/sddm.conf", key[] = "DisplayServer=";
    const char *line = gp_driver_line_of(exam, path, key);
    char **names;
    long n = line ? 0 : gp_files_list(&exam->files, &exam->arena, "/etc/sddm.conf.d", &names);
    *ret_place = path;
    for (long i = n - 1; i >= 0 && !line; i--) {
        const char *end = strrchr(names[i], '.');
        *ret_place = gp_exam_text(exam, "%s.d/%s", path, names[i]);
        line = end && strcmp(end, ".conf") == 0 ? gp_driver_line_of(exam, *ret_place, key) : NULL;
    }
    return line && strcmp(line + sizeof(key) - 1, "wayland") == 0 ? line : NULL;
}

static const char manager_path[] = "/etc/systemd/system/display-manager.service";

/* GDM does not offer one without modes. */
const char *gp_driver_sddm_session(struct gp_exam *exam, const char **ret_place, bool *ret_is_login)
{
    static const char path[] = "/var/lib/sddm/state.conf";
    char manager[GP_PATH_SIZE];
    if (exam->machine.gpu_count > exam->machine.nvidia_count ||
        !gp_files_link(&exam->files, manager_path, manager) || !strstr(manager, "sddm"))
        return NULL;
    const char *line = gp_driver_line_of(exam, path, "Session=/usr/share/wayland-sessions/");
    *ret_place = path;
    *ret_is_login = !line;
    return line ? line : greeter_of(exam, ret_place);
}

/* What starts the login screen, which only Wayland can show as there is no X server; NULL: there is
 * no such thing, or a graphical session runs. */
static const char *login_without_x(struct gp_exam *exam)
{
    char manager[GP_PATH_SIZE];
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    if (!gp_driver_shows_screen(&exam->machine) || (type && strcmp(type, "tty") != 0) ||
        has_x(exam) || gp_driver_has_sessions(exam, "/usr/share/xsessions") ||
        !gp_driver_has_sessions(exam, "/usr/share/wayland-sessions") ||
        !gp_files_link(&exam->files, manager_path, manager))
        return NULL;
    return gp_exam_text(exam, "%s", strrchr(manager, '/') ? strrchr(manager, '/') + 1 : manager);
}

static const char command_line[] = "/proc/cmdline";

static bool is_on_command_line(struct gp_exam *exam, const char *text)
{
    char line[4096];
    return gp_files_line(&exam->files, command_line, line, sizeof(line)) && strstr(line, text);
}

/* Whether a parameter of a module is 'Y' or 'N'. */
static bool is_parameter(struct gp_exam *exam, const char *path, char value)
{
    char line[8];
    return gp_files_line(&exam->files, path, line, sizeof(line)) && line[0] == value;
}

/* The file of modprobe.d that has this for nvidia_drm; NULL: none. */
static const char *file_with_option(struct gp_exam *exam, const char *option)
{
    static const char *const folders[] = {"/etc/modprobe.d", "/usr/lib/modprobe.d"};
    char **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n; i++) {
            const char *path = gp_exam_text(exam, "%s/%s", folders[f], names[i]);
            const char *line = gp_driver_line_of(exam, path, "options nvidia-drm ");
            const char *other = gp_driver_line_of(exam, path, "options nvidia_drm ");
            if ((line && strstr(line, option)) || (other && strstr(other, option)))
                return path;
        }
    }
    return NULL;
}

/* A setting that turns it off, on the kernel's command line or in a file, and would win against
 * another one. False: there is none. */
static bool fix_turned_off(struct gp_exam *exam)
{
    static const char *const arguments[] = {"nvidia-drm.modeset=0", "nvidia_drm.modeset=0"};
    static const char *const options[] = {"options nvidia-drm ", "options nvidia_drm "};
    static const char folder[] = "/etc/modprobe.d";
    char **names;
    for (size_t i = 0; i < GP_ARRAY_LEN(arguments); i++)
        if (is_on_command_line(exam, arguments[i])) {
            gp_exam_evidence(exam, command_line, "%s", arguments[i]);
            gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, arguments[i], NULL);
            return true;
        }
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]), *end;
        for (size_t k = 0; k < GP_ARRAY_LEN(options); k++) {
            const char *found = (end = strrchr(names[i], '.')) && strcmp(end, ".conf") == 0
                                    ? gp_driver_line_of(exam, path, options[k])
                                    : NULL;
            if (!found || !strstr(found, "modeset=0"))
                continue;
            gp_exam_evidence(exam, path, "%s", found);
            gp_exam_command(exam, "turn it on; the original file is kept next to it",
                            "sudo sed -i.before '/nvidia[-_]drm/s/modeset=0/modeset=1/' %s",
                            gp_exam_quoted(exam, path));
            return true;
        }
    }
    return false;
}

void gp_driver_fix_modes(struct gp_exam *exam)
{
    if (!fix_turned_off(exam))
        gp_exam_module_setting(exam, "turn it on", "nvidia-modeset.conf",
                               "options nvidia-drm modeset=1");
}

static const char modes_path[] = "/sys/module/nvidia_drm/parameters/modeset";

/* A file turns it on, and it is off all the same: the module was loaded without the file, from the
 * initramfs, or before the file was written. */
static void report_without_effect(struct gp_exam *exam)
{
    const char *file = file_with_option(exam, "modeset=1");
    if (!file || file_with_option(exam, "modeset=0") || exam->machine.container ||
        !gp_driver_is_boot_screen(&exam->machine) || !is_parameter(exam, modes_path, 'N') ||
        !gp_files_exist(&exam->files, command_line) || is_on_command_line(exam, "drm.modeset="))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the kernel mode setting of nvidia_drm is off, although a file turns it on");
    gp_exam_evidence(exam, modes_path, "N");
    gp_exam_evidence(exam, file, "modeset=1, which is not in effect");
    gp_exam_why(exam, "The module was loaded without this file: from an initramfs that does not "
                      "have it, or before it was written. The screen stays with the firmware's "
                      "framebuffer, in its one mode, and Wayland cannot use the GPU.");
    if (gp_machine_is_ostree(&exam->machine))
        gp_cmdline_fix(exam, "nvidia-drm.modeset=1", "it counts in the initramfs, too");
    else
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
}

/* Programs that need nvidia_drm to set modes. */
void gp_driver_check_modes(struct gp_exam *exam)
{
    static const char wiki[] = "https://wiki.archlinux.org/title/NVIDIA#DRM_kernel_mode_setting";
    static const struct {
        const char *words, *why, *link;
    } effects[] = {
        {"Wayland has only the firmware's screen",
         "The compositor finds no monitor but Unknown-1, or does not start.", wiki},
        {"the session of Wayland does not start",
         "Its compositor finds no screen to draw on: the screen stays black, or the login returns.",
         wiki},
        {"the login screen, which SDDM starts in Wayland, does not appear",
         "Its compositor finds no screen to draw on.", wiki},
        {"VA-API cannot use the GPU",
         "nvidia-vaapi-driver needs it. Browsers and players decode video on the CPU, and libva "
         "reports \"nvidia_drv_video.so init failed\".",
         "https://github.com/elFarto/nvidia-vaapi-driver#kernel-parameters"},
        {"the login screen does not appear",
         "Without an X server only Wayland can show it, which finds no screen to draw on.", wiki}};
    const char *place = "", *video = gp_driver_video(exam), *shell = gp_driver_compositor(exam);
    bool is_login = false;
    const char *session = gp_driver_sddm_session(exam, &place, &is_login);
    const char *login = shell || session ? NULL : login_without_x(exam);
    bool is_needed = video || shell || session || login;
    char value[8];
    if (!is_needed)
        report_without_effect(exam);
    long n = is_needed ? gp_files_read(&exam->files, modes_path, value, sizeof(value)) : -ENOENT;
    if (n < 0 && n != -ENOENT && n != -ENOTDIR)
        gp_exam_unreadable(exam, modes_path, (int)n);
    if (n < 1 || value[0] != 'N')
        return;
    size_t effect = shell ? 0 : session ? (is_login ? 2 : 1) : login ? 4 : 3;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s: the kernel mode setting of nvidia_drm is off",
                   effects[effect].words);
    gp_exam_evidence(exam, modes_path, "N");
    if (shell)
        gp_exam_evidence(exam, shell, "present, without X11");
    if (login)
        gp_exam_evidence(exam, manager_path, "%s, without an X server", login);
    if (session)
        gp_exam_evidence(exam, place, "%s", session);
    if (video)
        gp_exam_evidence(exam, video, "present");
    gp_exam_why(exam, "%s", effects[effect].why);
    gp_driver_fix_modes(exam);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
    gp_exam_link(exam, effects[effect].link);
}

/* ---- the firmware's framebuffer ---- */

static const char fbdev_path[] = "/sys/module/nvidia_drm/parameters/fbdev";

/* The screen of the kernel's driver for the firmware's framebuffer, "card0-Unknown-1", as the other
 * drivers remove it, and a monitor of another card. False: there are not both. */
static bool find_screens(struct gp_exam *exam, const char **ret_firmware, const char **ret_monitor)
{
    static const char folder[] = "/sys/class/drm";
    char state[32], device[GP_PATH_SIZE], **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    *ret_firmware = *ret_monitor = NULL;
    for (long i = 0; i < n; i++) {
        int length = (int)strcspn(names[i], "-");
        const char *status = gp_exam_text(exam, "%s/%s/status", folder, names[i]);
        const char *link = gp_exam_text(exam, "%s/%.*s/device", folder, length, names[i]);
        if (strncmp(names[i], "card", 4) != 0 || !names[i][length] ||
            !gp_files_line(&exam->files, status, state, sizeof(state)) ||
            strcmp(state, "connected") != 0 || !gp_files_link(&exam->files, link, device))
            continue;
        if (strstr(device, "-framebuffer.")) /* simple-, efi-, vesa- */
            *ret_firmware = status;
        else
            *ret_monitor = status;
    }
    return *ret_firmware && *ret_monitor;
}

/* Compositors that use all screens that there are. */
static const char *const programs[] = {"Hyprland", "sway",         "niri",       "labwc",
                                       "river",    "kwin_wayland", "cosmic-comp"};

/* One that is installed; NULL: there is none, or the session is one of X11. */
static const char *installed_user(struct gp_exam *exam)
{
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    const char *shell = gp_driver_compositor(exam);
    if (type && strcmp(type, "x11") == 0)
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(programs) && !shell; i++) {
        const char *path = gp_exam_text(exam, "/run/current-system/sw/bin/%s", programs[i]);
        shell = gp_files_exist(&exam->files, path) ? path : NULL;
    }
    if (!shell && gp_files_exist(&exam->files, "/usr/bin/kwin_wayland"))
        return "/usr/bin/kwin_wayland";
    return shell;
}

/* What shows that a compositor of Wayland uses all screens that there are; NULL: nothing does, or
 * its file says what to do with the firmware's. `ret_may`: one is installed that would. */
static const char *all_screens_user(struct gp_exam *exam, const char **ret_may)
{
    static const char *const files[] = {"hypr/hyprland.conf", "sway/config", "niri/config.kdl"};
    const char *home = gp_machine_variable(&exam->machine, "HOME"), *text, *place;
    bool is_login = false;
    *ret_may = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(files) && home; i++)
        if ((text = gp_files_text(&exam->files, &exam->arena,
                                  gp_exam_text(exam, "%s/.config/%s", home, files[i]), 1 << 18,
                                  NULL)) &&
            strstr(text, "Unknown-1"))
            return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++)
        if (gp_machine_runs(&exam->files, programs[i]))
            return gp_exam_text(exam, "%s runs", programs[i]);
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    if (type && strcmp(type, "wayland") == 0)
        return "XDG_SESSION_TYPE is wayland";
    const char *shell = *ret_may = installed_user(exam);
    if (!shell)
        return NULL;
    const char *session = gp_driver_sddm_session(exam, &place, &is_login);
    if (session && !is_login) /* a login screen of Wayland may start a session of X11 */
        return gp_exam_text(exam, "%s has %s", place, session);
    return has_x(exam) ? NULL : gp_exam_text(exam, "%s is present, without X11", shell);
}

/* The releases that know what kernels have changed since for fbdev: nvidia_drm of an older one is
 * built without it. Branch 550 got the first change, too. */
static const struct {
    const char *kernel, *fixed;
} fbdev_changes[] = {{"6.13", "570.86.16"}, {"6.11", "565.57.01"}};

static const char *fixed_release(const struct gp_machine *m)
{
    static const char fixed_of_550[] = "550.135";
    enum { FIRST_WITH_FBDEV = 545 };
    for (size_t i = 0; i < GP_ARRAY_LEN(fbdev_changes); i++) {
        if (gp_version_compare(m->kernel, fbdev_changes[i].kernel) < 0)
            continue;
        bool is_known = gp_version_compare(m->driver, fbdev_changes[i].fixed) >= 0 ||
                        (i == 1 && gp_version_major(m->driver) == 550 &&
                         gp_version_compare(m->driver, fixed_of_550) >= 0);
        return is_known || gp_version_major(m->driver) < FIRST_WITH_FBDEV ? NULL
                                                                          : fbdev_changes[i].fixed;
    }
    return NULL;
}

/* What sets fbdev=1; NULL: nothing does. */
static const char *place_of_fbdev(struct gp_exam *exam)
{
    return is_on_command_line(exam, "drm.fbdev=1") ? command_line
                                                   : file_with_option(exam, "fbdev=1");
}

/* fbdev=1 is set, and nvidia_drm does not know it. */
static bool report_without_fbdev(struct gp_exam *exam)
{
    static const char framebuffers[] = "/proc/fb";
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    const char *place = place_of_fbdev(exam), *fixed = fixed_release(&exam->machine);
    char first[64];
    if (!place || !fixed || gp_files_exist(&exam->files, fbdev_path) ||
        !is_parameter(exam, modes_path, 'Y') || !gp_driver_shows_screen(&exam->machine) ||
        !gp_files_line(&exam->files, framebuffers, first, sizeof(first)) ||
        !strstr(first, "simpledrm"))
        return false;
    gp_exam_report(exam, type && strcmp(type, "x11") == 0 ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "the firmware's framebuffer stays as an invisible second screen: nvidia_drm %s "
                   "has no fbdev on this kernel",
                   exam->machine.driver);
    gp_exam_evidence(exam, place, "fbdev=1");
    gp_exam_evidence(exam, fbdev_path, "missing: the module was built without it");
    gp_exam_evidence(exam, framebuffers, "%s", first);
    gp_exam_why(exam,
                "The kernel changed its interface for fbdev in 6.11, and again in 6.13. This "
                "release is older than the change: the kernel logs \"unknown parameter 'fbdev' "
                "ignored\". Compositors of Wayland use the firmware's screen, too: they crash, or "
                "the desktop is slow or stays black.");
    if (exam->machine.distro == GP_DISTRO_ARCH)
        gp_driver_fix_update(exam);
    else
        gp_driver_fix_at_least(exam, fixed);
    gp_driver_fix_reboot(exam, "");
    gp_exam_advice(exam,
                   "or boot an older kernel, from before %s, or one whose package of this driver "
                   "has a patch for it",
                   strcmp(fixed, fbdev_changes[0].fixed) == 0 &&
                           gp_version_major(exam->machine.driver) >= 565
                       ? fbdev_changes[0].kernel
                       : fbdev_changes[1].kernel);
    gp_exam_link(exam, "https://github.com/NVIDIA/open-gpu-kernel-modules/pull/692");
    return true;
}

/* Without fbdev=1, which older drivers have off, nvidia_drm may leave the firmware's
 * framebuffer: a screen that nobody sees. Whoever has turned it off knows why. */
void gp_driver_check_framebuffer(struct gp_exam *exam)
{
    const char *firmware, *monitor, *may;
    if (report_without_fbdev(exam))
        return;
    bool is_off = is_parameter(exam, modes_path, 'Y') && is_parameter(exam, fbdev_path, 'N');
    if (!is_off || !gp_driver_shows_screen(&exam->machine) ||
        !find_screens(exam, &firmware, &monitor) || file_with_option(exam, "fbdev=0") ||
        is_on_command_line(exam, "drm.fbdev=0"))
        return;
    const char *user = all_screens_user(exam, &may);
    if (!user && !may)
        return;
    const char *file = file_with_option(exam, "fbdev=1");
    gp_exam_report(
        exam, user ? GP_VERDICT_WARN : GP_VERDICT_INFO,
        "the firmware's framebuffer stays as an invisible second screen: nvidia_drm has not "
        "replaced it");
    gp_exam_evidence(exam, fbdev_path, "N");
    gp_exam_evidence(exam, firmware, "connected");
    gp_exam_evidence(exam, monitor, "connected");
    if (user)
        gp_exam_evidence(exam, "the session", "%s", user);
    else
        gp_exam_evidence(exam, may, "present");
    if (file)
        gp_exam_evidence(exam, file, "fbdev=1, which is not in effect");
    gp_exam_why(
        exam,
        "The compositor of Wayland uses it, too: the desktop is slow or stays black, or windows "
        "open on it.");
    if (!file && strcmp(exam->machine.distro_id, "nixos") == 0)
        gp_exam_advice(exam,
                       "in configuration.nix: add \"nvidia-drm.fbdev=1\" to boot.kernelParams");
    else if (!file)
        gp_exam_module_setting(exam, "have it replaced", "nvidia-fbdev.conf",
                               "options nvidia-drm fbdev=1");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
    gp_exam_link(exam, "https://wiki.archlinux.org/title/NVIDIA#DRM_kernel_mode_setting");
}
