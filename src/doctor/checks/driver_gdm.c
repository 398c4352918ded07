/* GDM hides the sessions of Wayland where its rules for udev find a driver that they do not trust:
 * a part of driver.params. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <string.h>

static const char rules_name[] = "61-gdm.rules", rules_folder[] = "/etc/udev/rules.d";

/* Why its rules turn Wayland off. */
enum reason {
    REASON_UNKNOWN,
    REASON_DRIVER,
    REASON_MODES,
    REASON_FILES,
    REASON_MEMORY,
    REASON_SUSPEND,
    REASON_OLD
};

/* What the machine's files say of this. */
struct gdm {
    const char *runtime;  /* the file in which the rules turned it off; NULL: they did not */
    const char *config;   /* the administrator's, if it turns it on or off; NULL: it does neither */
    bool is_on_in_config; /* it turns it on, which the rules override */
    const char *rules;    /* the file with the rules that count; NULL: it is not here */
    const char *rule;     /* the line that turned it off; "": unknown */
    enum reason reason;
    const char *lacking; /* a file that its rules ask for; NULL: none is missing */
    bool has_units;      /* systemd runs, which starts what keeps the memory across suspend */
};

/* The line of a file with these words, without blanks before it and not commented out; NULL: none.
 */
static const char *line_with(struct gp_exam *exam, const char *path, const char *words)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 17, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *copy = gp_exam_text(exam, "%.*s", (int)n, line);
        copy += strspn(copy, " \t");
        if (copy[0] != '#' && strstr(copy, words))
            return copy;
    }
    return NULL;
}

/* By runit, OpenRC or its script for display managers. */
static bool is_started_elsewhere(struct gp_exam *exam)
{
    static const char *const links[] = {"/etc/runit/runsvdir/default/gdm", "/var/service/gdm",
                                        "/etc/runlevels/default/gdm"};
    static const char *const configs[] = {"/etc/conf.d/display-manager", "/etc/conf.d/xdm"};
    struct stat st;
    for (size_t i = 0; i < GP_ARRAY_LEN(links); i++)
        if (gp_files_stat_link(&exam->files, links[i], &st) == 0)
            return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(configs); i++) {
        const char *line = line_with(exam, configs[i], "DISPLAYMANAGER=");
        if (line && strstr(line, "gdm"))
            return true;
    }
    return false;
}

static bool is_manager(struct gp_exam *exam)
{
    char target[GP_PATH_SIZE], line[256];
    return (gp_files_link(&exam->files, "/etc/systemd/system/display-manager.service", target) &&
            strstr(target, "gdm")) ||
           (gp_files_line(&exam->files, "/etc/X11/default-display-manager", line, sizeof(line)) &&
            strstr(line, "gdm")) ||
           is_started_elsewhere(exam);
}

static bool has_modes(struct gp_exam *exam)
{
    char value[8];
    return gp_files_line(&exam->files, "/sys/module/nvidia_drm/parameters/modeset", value,
                         sizeof(value)) &&
           value[0] == 'Y';
}

static bool keeps_memory(struct gp_exam *exam)
{
    const char *params =
        gp_files_text(&exam->files, &exam->arena, "/proc/driver/nvidia/params", 1 << 16, NULL);
    return !params || !strstr(params, GP_DRIVER_KEEPS_NONE);
}

/* The unit that the rules ask systemd about; true also if it is not in this copy of a machine. */
static bool has_suspend_unit(struct gp_exam *exam)
{
    static const char unit[] = "nvidia-suspend.service";
    return gp_service_is_wanted(exam, unit, "systemd-suspend.service") ||
           !gp_service_is_installed(exam, unit);
}

static bool is_off_line(const char *rule)
{
    return strstr(rule, "disable-wayland") || strstr(rule, "disable_wayland");
}

/* TEST{0711}!="/usr/bin/nvidia-sleep.sh": the first such line whose file is missing. */
static const char *rule_of_files(struct gp_exam *exam, const char *path, const char **ret_file)
{
    static const char mark[] = "TEST{0711}!=\"";
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 17, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *copy = gp_exam_text(exam, "%.*s", (int)n, line);
        const char *file = strstr(copy, mark);
        if (copy[0] == '#' || !file || !is_off_line(copy))
            continue;
        file += sizeof(mark) - 1;
        file = gp_exam_text(exam, "%.*s", (int)strcspn(file, "\""), file);
        if (file[0] == '/' && !gp_files_exist(&exam->files, file)) {
            *ret_file = file;
            return copy;
        }
    }
    return NULL;
}

/* In the order in which the rules of different releases of GDM ask. */
static void read_reason(struct gp_exam *exam, struct gdm *gdm)
{
    enum { FIRST_TRUSTED = 470 };
    const struct {
        enum reason reason;
        const char *words;
        bool holds;
    } rows[] = {
        {REASON_DRIVER, "DRIVER==\"nvidia\"", true},
        {REASON_MODES, "ATTR{parameters/modeset}!=\"Y\"", !has_modes(exam)},
        {REASON_OLD, "ATTR{version}==\"4[0-6]",
         gp_version_major(exam->machine.driver) < FIRST_TRUSTED},
        {REASON_MEMORY, "ENV{NVIDIA_PRESERVE_VIDEO_MEMORY_ALLOCATIONS}!=\"1\"",
         !keeps_memory(exam)},
        {REASON_SUSPEND, "ENV{NVIDIA_SUSPEND}!=\"enabled\"", !has_suspend_unit(exam)},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows) && gdm->rules && !gdm->reason; i++) {
        const char *rule = rows[i].holds ? line_with(exam, gdm->rules, rows[i].words) : NULL;
        if (!rule || !is_off_line(rule))
            continue;
        gdm->reason = rows[i].reason;
        gdm->rule = rule;
    }
    /* With systemd the driver's packages have them. */
    const char *rule =
        gdm->rules && !gdm->has_units ? rule_of_files(exam, gdm->rules, &gdm->lacking) : NULL;
    if (rule && (!gdm->reason || gdm->reason == REASON_MEMORY || gdm->reason == REASON_SUSPEND)) {
        gdm->reason = REASON_FILES;
        gdm->rule = rule;
    }
}

static struct gdm read_gdm(struct gp_exam *exam)
{
    static const char off[] = "WaylandEnable=false", on[] = "WaylandEnable=true";
    static const char *const runtimes[] = {"/run/gdm3/custom.conf", "/run/gdm/custom.conf"};
    static const char *const configs[] = {"/etc/gdm3/custom.conf", "/etc/gdm3/daemon.conf",
                                          "/etc/gdm/custom.conf"};
    static const char *const rules[] = {"/etc/udev/rules.d/61-gdm.rules",
                                        "/usr/lib/udev/rules.d/61-gdm.rules",
                                        "/lib/udev/rules.d/61-gdm.rules", NULL};
    char init[16];
    struct gdm gdm = {.rules = gp_files_first(&exam->files, rules), .rule = ""};
    gdm.has_units = !gp_files_line(&exam->files, "/proc/1/comm", init, sizeof(init)) ||
                    strcmp(init, "systemd") == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(runtimes) && !gdm.runtime; i++)
        gdm.runtime = line_with(exam, runtimes[i], off) ? runtimes[i] : NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(configs) && !gdm.config; i++) {
        gdm.is_on_in_config = line_with(exam, configs[i], on);
        gdm.config = gdm.is_on_in_config || line_with(exam, configs[i], off) ? configs[i] : NULL;
    }
    read_reason(exam, &gdm);
    return gdm;
}

/* ---- who wants it ---- */

static const char users_folder[] = "/var/lib/AccountsService/users",
                  wayland_folder[] = "/usr/share/wayland-sessions",
                  x_folder[] = "/usr/share/xsessions";

/* A user's choice at the login, of a session that is in one folder, and not in the other. */
static const char *chosen_session(struct gp_exam *exam, const char *folder, const char *other)
{
    static const char *const keys[] = {"Session=", "XSession="};
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, users_folder, &names);
    for (long i = 0; i < n && i < 64; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(keys); k++) {
            const char *path = gp_exam_text(exam, "%s/%s", users_folder, names[i]);
            const char *line = gp_driver_line_of(exam, path, keys[k]);
            const char *name = line ? line + strlen(keys[k]) : "";
            if (name[0] &&
                gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s.desktop", folder, name)) &&
                !gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s.desktop", other, name)))
                return gp_exam_text(exam, "the session %s is chosen", name);
        }
    return NULL;
}

/* The administrator's own setting that turns the kernel's modes on. Packages of Fedora and RHEL set
 * an argument, and Ubuntu's a file, also for X11. */
static const char *own_modes(struct gp_exam *exam)
{
    static const char *const arguments[] = {"nvidia-drm.modeset=1", "nvidia_drm.modeset=1"};
    static const char folder[] = "/etc/modprobe.d",
                      of_ubuntu[] = "nvidia-graphics-drivers-kms.conf";
    const struct gp_machine *m = &exam->machine;
    char line[4096], **names;
    bool is_by_package = m->distro == GP_DISTRO_FEDORA || m->distro == GP_DISTRO_RHEL;
    bool is_read =
        !is_by_package && gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line));
    for (size_t i = 0; i < GP_ARRAY_LEN(arguments) && is_read; i++)
        if (strstr(line, arguments[i]))
            return gp_exam_text(exam, "/proc/cmdline has %s", arguments[i]);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 256; i++) {
        const char *end = strrchr(names[i], '.');
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *found = end && strcmp(end, ".conf") == 0 && strcmp(names[i], of_ubuntu) != 0
                                ? line_with(exam, path, "modeset=1")
                                : NULL;
        if (found && (strstr(found, "nvidia-drm") || strstr(found, "nvidia_drm")))
            return gp_exam_text(exam, "%s has \"%s\"", path, found);
    }
    return NULL;
}

/* Why a session of Wayland is expected; NULL: nothing says so. */
static const char *wish_for_wayland(struct gp_exam *exam, const struct gdm *gdm)
{
    const struct gp_machine *m = &exam->machine;
    const char *session = chosen_session(exam, wayland_folder, x_folder);
    const char *type = gp_machine_variable(m, "XDG_SESSION_TYPE");
    bool is_x = type && strcmp(type, "x11") == 0;
    if (!is_x && !gp_driver_has_sessions(exam, x_folder) &&
        !gp_files_exist(&exam->files, "/usr/bin/Xorg"))
        return "there is no session of X11";
    if (gdm->is_on_in_config)
        return gp_exam_text(exam, "%s has WaylandEnable=true", gdm->config);
    if (session)
        return session;
    /* On laptops, and for video, the modes are needed with X11, too. */
    return m->gpu_count == m->nvidia_count && !gp_driver_video(exam) ? own_modes(exam) : NULL;
}

/* Whether a user has chosen a session of X11. Newer files tell the type, as both folders may have
 * a session of this name. */
static bool has_chosen_x(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, users_folder, &names);
    for (long i = 0; i < n && i < 64; i++)
        if (gp_driver_line_of(exam, gp_exam_text(exam, "%s/%s", users_folder, names[i]),
                              "SessionType=x11"))
            return true;
    return chosen_session(exam, x_folder, wayland_folder);
}

bool gp_driver_gdm_starts_wayland(struct gp_exam *exam)
{
    if (!is_manager(exam) || !has_modes(exam) || !gp_driver_has_sessions(exam, wayland_folder) ||
        has_chosen_x(exam))
        return false;
    const struct gdm gdm = read_gdm(exam);
    return !gdm.runtime && !gdm.reason && (!gdm.config || gdm.is_on_in_config);
}

/* ---- the finding ---- */

static void fix_rules(struct gp_exam *exam, const struct gdm *gdm)
{
    const char *own = gp_exam_text(exam, "%s/%s", rules_folder, rules_name);
    if (gdm->reason == REASON_DRIVER && strcmp(gdm->rules, own) == 0)
        gp_exam_command(exam, "turn the rule off; the original file is kept next to it",
                        "sudo sed -i.before '/^DRIVER==\"nvidia\"/s/^/#/' %s", own);
    else if (gdm->reason == REASON_DRIVER)
        gp_exam_command(exam, "a copy without the rule, which replaces the package's file",
                        "sed '/^DRIVER==\"nvidia\"/s/^/#/' %s | sudo tee %s", gdm->rules, own);
    else if (!gp_files_exist(&exam->files, own))
        gp_exam_command(exam, "have GDM offer Wayland whatever its rules find",
                        "sudo ln -s /dev/null %s", own);
    else
        gp_exam_advice(exam, "comment out the lines of %s that set WaylandEnable", own);
}

static void fix_gdm(struct gp_exam *exam, const struct gdm *gdm)
{
    static const char units[] = "nvidia-suspend nvidia-hibernate nvidia-resume";
    /* Without its files and units, what the rules demand for suspend cannot be had. */
    bool is_vain = gdm->lacking || !gdm->has_units;
    bool wants_modes = !has_modes(exam), wants_memory = gdm->reason == REASON_MEMORY && !is_vain;
    if (wants_modes)
        gp_driver_fix_modes(exam);
    if (wants_memory)
        gp_exam_module_setting(
            exam, "keep GPU memory across suspend, as GDM demands", "nvidia-suspend.conf",
            gp_exam_text(exam, "options %s NVreg_PreserveVideoMemoryAllocations=1",
                         gp_exam_quoted(exam, gp_driver_module_name(exam))));
    if (wants_memory || (gdm->reason == REASON_SUSPEND && !is_vain))
        gp_exam_command(exam, "", "sudo systemctl enable %s", units);
    if (gdm->reason == REASON_DRIVER || gdm->reason == REASON_OLD || gdm->lacking ||
        (is_vain && gdm->reason != REASON_MODES) || (gdm->reason == REASON_UNKNOWN && !wants_modes))
        fix_rules(exam, gdm);
    if (wants_modes || wants_memory)
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "then choose the session at the login");
}

void gp_driver_check_gdm(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *type = gp_machine_variable(m, "XDG_SESSION_TYPE");
    if (m->container || !m->is_driver_loaded || (type && strcmp(type, "wayland") == 0) ||
        !is_manager(exam) || !gp_driver_has_sessions(exam, wayland_folder))
        return;
    struct gdm gdm = read_gdm(exam);
    bool is_off = gdm.runtime || (gdm.reason && m->gpu_count == m->nvidia_count);
    bool is_by_config = gdm.config && !gdm.is_on_in_config;
    const char *wish = is_off && !is_by_config ? wish_for_wayland(exam, &gdm) : NULL;
    if (!is_off || is_by_config || (!wish && !(type && strcmp(type, "x11") == 0)))
        return;
    gp_exam_report(exam, wish ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "GDM offers no session of Wayland: its rules turn it off with this driver");
    if (wish)
        gp_exam_evidence(exam, "", "Wayland is wanted: %s", wish);
    if (gdm.runtime)
        gp_exam_evidence(exam, gdm.runtime, "WaylandEnable=false, written at boot");
    if (gdm.rule[0])
        gp_exam_evidence(exam, gdm.rules, "%s", gdm.rule);
    if (!has_modes(exam))
        gp_exam_evidence(exam, "/sys/module/nvidia_drm/parameters/modeset", "not Y");
    if (gdm.lacking)
        gp_exam_evidence(exam, gdm.lacking, "missing: the rules ask for it");
    if (gdm.reason == REASON_MEMORY)
        gp_exam_evidence(exam, "/proc/driver/nvidia/params", GP_DRIVER_KEEPS_NONE);
    gp_exam_why(exam,
                "%s overrides GDM's own configuration; the menu at the login then has only X11.",
                gdm.runtime ? gdm.runtime : "What they write below /run");
    fix_gdm(exam, &gdm);
    gp_exam_link(exam,
                 "https://wiki.archlinux.org/title/GDM#Wayland_and_the_proprietary_NVIDIA_driver");
}
