/* Checks of power management on laptops and across suspend: driver.power, and what turns a GPU off.
 */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/system.h"
#include "doctor/lines.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/log.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/services.h"
#include "doctor/readers/syslog.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* ---- suspend ---- */

/* Whether the machine was suspended since boot, and where this is seen. */
static bool was_suspended(struct gp_exam *exam, const char **ret_where, const char **ret_text)
{
    static const char count[] = "/sys/power/suspend_stats/success";
    char times[32];
    const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_RESUMED);
    *ret_where = line ? line->where : count;
    *ret_text = line ? line->kmsg.body : "";
    if (line)
        return true;
    if (!gp_files_line(&exam->files, count, times, sizeof(times)) || strtoul(times, NULL, 10) == 0)
        return false;
    *ret_text = gp_exam_text(exam, "%s", times);
    return true;
}

/* What belongs to an image cannot be added to it: a newer one may have it, and a file in /etc that
 * is read last wins over the image's. */
static void fix_in_image(struct gp_exam *exam, const char *update)
{
    gp_exam_command(exam, "a newer image may have the services, after a reboot", "%s", update);
    gp_exam_advice(exam, "if it does not: the option off, after the image's own files, without "
                         "preserving GPU memory across suspend:");
    gp_exam_module_setting(exam, "", "zz-nvidia-suspend.conf",
                           gp_exam_text(exam, "options %s NVreg_PreserveVideoMemoryAllocations=0",
                                        gp_exam_quoted(exam, gp_driver_module_name(exam))));
    gp_driver_fix_reboot(exam, "");
}

/* The package of the driver that has the services, of the repository that the driver is from; "":
 * it is in none of its own, or unknown. */
static const char *services_package(struct gp_exam *exam)
{
    enum { FIRST_OF_DEBIAN = 12, FIRST_OF_FUSION = 470 }; /* branches before it have no services */
    const struct gp_machine *m = &exam->machine;
    if (m->distro == GP_DISTRO_FEDORA && !gp_machine_is_ostree(m) &&
        !gp_driver_has_negativo17(exam) && gp_version_major(m->driver) >= FIRST_OF_FUSION)
        return gp_driver_fusion_package(exam, "-power");
    return m->distro == GP_DISTRO_DEBIAN && !gp_apt_has_nvidia(exam) &&
                   gp_version_major(m->distro_version) >= FIRST_OF_DEBIAN
               ? "nvidia-suspend-common"
               : "";
}

/* Says what the next command needs, where no package is sure to have it. */
static void advise_services(struct gp_exam *exam)
{
    const char *package = exam->machine.distro == GP_DISTRO_FEDORA ? services_package(exam) : "";
    if (package[0])
        gp_exam_advice(
            exam, "install the driver's package that has them (%s in RPM Fusion), then:", package);
    else
        gp_exam_advice(exam, "install the package of the driver that has nvidia-suspend.service, "
                             "nvidia-resume.service and nvidia-hibernate.service, then:");
}

/* There an option has both, and units cannot be enabled by hand. False: this is not NixOS. */
static bool fix_on_nixos(struct gp_exam *exam)
{
    if (strcmp(exam->machine.distro_id, "nixos") != 0)
        return false;
    gp_exam_command(exam,
                    "after setting, in configuration.nix: hardware.nvidia.powerManagement.enable = "
                    "true; it sets the module's option and has the driver's services",
                    "sudo nixos-rebuild boot");
    return true;
}

/* A module that is to keep GPU memory refuses a suspend that nobody has announced to it. */
static bool report_no_units(struct gp_exam *exam, const char *path, const char *params)
{
    static const char kept[] = "PreserveVideoMemoryAllocations: 1",
                      unit[] = "nvidia-suspend.service";
    static const char names[] = "nvidia-suspend nvidia-hibernate nvidia-resume";
    const char *masked = gp_exam_text(exam, "/etc/systemd/system/%s", unit);
    if (!params || !strstr(params, kept) || strstr(params, "UseKernelSuspendNotifiers: 1"))
        return false;
    const struct gp_log_known *said = gp_log_known_of(exam, "nv.pm");
    bool is_off = gp_service_is_masked(exam, unit);
    bool is_missing = !is_off && !gp_service_is_installed(exam, unit);
    bool is_disabled = !is_off && !is_missing && said &&
                       !gp_service_is_wanted(exam, unit, "systemd-suspend.service");
    if (is_missing && !gp_service_is_installed(exam, "systemd-suspend.service") && !said)
        return false; /* a copy of a machine without its units */
    if (!is_off && !is_missing && !is_disabled)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the machine cannot be suspended: the driver's services for it are %s",
                   is_off        ? "masked"
                   : is_disabled ? "not enabled"
                                 : "missing");
    gp_exam_evidence(exam, path, "%s", kept);
    if (is_off)
        gp_exam_evidence(exam, masked, "links to /dev/null");
    else if (is_disabled)
        gp_exam_evidence(
            exam, gp_exam_text(exam, "/etc/systemd/system/systemd-suspend.service.wants/%s", unit),
            "missing");
    else
        gp_exam_evidence(exam, gp_exam_text(exam, "/usr/lib/systemd/system/%s", unit), "missing");
    if (said)
        gp_exam_evidence(exam, said->where, "%s", said->text);
    gp_exam_why(exam, "A module that preserves GPU memory lets the machine sleep only after "
                      "nvidia-suspend.service has saved it, and needs nvidia-resume afterwards.");
    if (fix_on_nixos(exam))
        return true;
    const char *update = is_missing ? gp_machine_image_update(&exam->files) : NULL;
    if (update) {
        fix_in_image(exam, update);
        return true;
    }
    if (is_off)
        gp_exam_command(exam, "", "sudo systemctl unmask %s", names);
    else if (is_missing)
        advise_services(exam);
    gp_exam_command(exam, "", "sudo systemctl enable %s", names);
    if (is_missing)
        gp_exam_advice(exam,
                       "if there is none: remove NVreg_PreserveVideoMemoryAllocations=1 from the "
                       "files in /etc/modprobe.d and /usr/lib/modprobe.d");
    return true;
}

/* ---- services that hang ---- */

static const struct sleep_unit {
    const char *unit, *words, *summary;
} sleep_units[] = {
    {"nvidia-resume.service", "NVIDIA system resume actions",
     "the driver's service for resuming after a suspend hangs: the screen stays black"},
    {"nvidia-suspend.service", "NVIDIA system suspend actions",
     "the driver's service for suspending hangs: the machine does not go to sleep"},
};

/* Whether systemd writes about the unit in this line: by its name, or older ones by its words. */
static bool is_about(const char *line, size_t n, const struct sleep_unit *unit, const char *verb)
{
    static const char program[] = "systemd[1]: ";
    const char *at = memmem(line, n, program, sizeof(program) - 1);
    if (!at)
        return false;
    at += sizeof(program) - 1;
    n -= (size_t)(at - line);
    return n > strlen(verb) && memcmp(at, verb, strlen(verb)) == 0 &&
           (memmem(at, n, unit->unit, strlen(unit->unit)) ||
            memmem(at, n, unit->words, strlen(unit->words)));
}

/* Whether more time passed between two lines of a log than such a service takes. */
static bool is_long(struct gp_exam *exam, const char *from, const char *to)
{
    enum { LONGEST_S = 45 };
    struct gp_kmsg a, b;
    (void)gp_kmsg_parse(from, &a);
    (void)gp_kmsg_parse(gp_exam_text(exam, "%.*s", (int)strcspn(to, "\n"), to), &b);
    return a.clock == GP_KMSG_WALL && b.clock == GP_KMSG_WALL &&
           b.time_ns > a.time_ns + LONGEST_S * GP_NS_PER_S;
}

/* The line that says that the unit was started for the last time, if none says that it ended, and
 * the machine went on to write to its log; NULL: it ended, or that is unknown, or was many boots
 * ago. */
static const char *never_ended(struct gp_exam *exam, const struct gp_syslog *log,
                               const struct sleep_unit *unit)
{
    enum { BOOTS_MOST = 5 };
    static const char boot_at[] = "] Linux version";
    const char *line, *start = NULL, *last = NULL;
    size_t n;
    struct gp_lines lines = gp_lines_of(log->text, log->length);
    unsigned boots = 0; /* since then */
    while (gp_lines_next(&lines, &line, &n)) {
        if (is_about(line, n, unit, "Starting ")) {
            start = gp_exam_text(exam, "%.*s", n < 300 ? (int)n : 300, line);
            last = NULL;
            boots = 0;
        } else if (is_about(line, n, unit, "")) {
            start = NULL;
        } else if (gp_journal_begins_boot(line, n) ||
                   memmem(line, n, boot_at, sizeof(boot_at) - 1)) {
            boots++;
        } else if (boots == 0 && n > 0) {
            last = line;
        }
    }
    return start && last && boots <= BOOTS_MOST && is_long(exam, start, last) ? start : NULL;
}

/* The services are for a driver that preserves GPU memory; some packages enable them without that.
 * Where they hang, they are not needed. */
static bool report_hanging(struct gp_exam *exam, const char *params_path)
{
    if (!gp_driver_needs_no_hooks(exam))
        return false;
    struct gp_syslog logs[GP_SYSLOGS];
    size_t count = gp_syslogs(exam, "init.scope", logs);
    for (size_t i = 0; i < count * GP_ARRAY_LEN(sleep_units); i++) {
        const struct sleep_unit *unit = &sleep_units[i % GP_ARRAY_LEN(sleep_units)];
        const struct gp_syslog *log = &logs[i / GP_ARRAY_LEN(sleep_units)];
        const char *line = gp_service_is_wanted(exam, unit->unit, "systemd-suspend.service")
                               ? never_ended(exam, log, unit)
                               : NULL;
        if (!line)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s", unit->summary);
        gp_exam_evidence(exam, log->where, "%s", line);
        gp_exam_evidence(exam, log->where, "nothing after it says that %s ended", unit->unit);
        gp_exam_evidence(exam, params_path, GP_DRIVER_KEEPS_NONE);
        gp_exam_why(exam, "Its script, nvidia-sleep.sh, switches to another console and back. It "
                          "is only needed for a driver that preserves GPU memory, which this one "
                          "is not set to do.");
        gp_driver_fix_hooks(exam);
        return true;
    }
    return false;
}

/* ---- memory that a suspend has lost ---- */

/* The first error of a program that draws the screen after the machine woke up; NULL: none. */
static const struct gp_log_line *lost_picture(struct gp_exam *exam)
{
    static const char programs[] = "Xorg,X,Xwayland,gnome-shell,mutter-x11-fram,kwin_wayland,"
                                   "kwin_x11,plasmashell,cinnamon,muffin,marco,xfwm4,Hyprland,"
                                   "sway,cosmic-comp,budgie-wm,picom,compiz,sddm-greeter";
    /* Errors of the graphics engine, such as of textures that are gone. */
    enum { ENGINE = 13, MEMORY = 31, PUSH_BUFFER = 32, CLASS = 69 };
    const struct gp_log *log = gp_log_of(exam);
    bool is_awake = false;
    for (size_t i = 0; i < log->count; i++) {
        const struct gp_kmsg *k = &log->lines[i].kmsg;
        is_awake = is_awake || k->kind == GP_KMSG_RESUMED;
        if (is_awake && k->kind == GP_KMSG_XID && gp_exam_is_listed(programs, k->process) &&
            (k->code == ENGINE || k->code == MEMORY || k->code == PUSH_BUFFER || k->code == CLASS))
            return &log->lines[i];
    }
    return NULL;
}

/* They are in a package of their own; a copy of a machine may lack all units. */
static void add_services(struct gp_exam *exam)
{
    const char *package = services_package(exam);
    bool is_debian = exam->machine.distro == GP_DISTRO_DEBIAN;
    if (gp_service_is_installed(exam, "nvidia-suspend.service") ||
        !gp_service_is_installed(exam, "systemd-suspend.service"))
        return;
    if (package[0])
        gp_exam_command(exam,
                        is_debian ? "the driver's services for it"
                                  : "the driver's services for it, from RPM Fusion",
                        "sudo %s install %s", is_debian ? "apt" : "dnf", package);
    else
        advise_services(exam);
}

static void keep_memory(struct gp_exam *exam)
{
    if (fix_on_nixos(exam))
        return;
    add_services(exam);
    gp_exam_module_setting(exam, "keep GPU memory across suspend", "nvidia-suspend.conf",
                           gp_exam_text(exam, "options %s NVreg_PreserveVideoMemoryAllocations=1",
                                        gp_exam_quoted(exam, gp_driver_module_name(exam))));
    gp_exam_command(exam, "",
                    "sudo systemctl enable nvidia-suspend nvidia-hibernate nvidia-resume");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
}

/* The desktop's pictures were in memory that the suspend has lost. */
static bool report_picture(struct gp_exam *exam, const char *path, const char *where,
                           const char *text)
{
    const struct gp_log_line *line = lost_picture(exam);
    if (!line)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the picture is broken since this machine was suspended: the driver does not "
                   "preserve GPU memory");
    gp_exam_evidence(exam, where, "%s", text);
    gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    gp_exam_evidence(exam, path, GP_DRIVER_KEEPS_NONE);
    gp_exam_why(exam, "What the desktop had in the GPU's memory is gone after a suspend: garbled "
                      "windows, a black screen, or a desktop that restarts.");
    keep_memory(exam);
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* A Wayland compositor of those that do not draw lost pictures anew, as KDE's does, or only their
 * own, as GNOME's. NULL: none runs, or there are several GPUs, of which another one may draw. */
static const char *lost_desktop(struct gp_exam *exam)
{
    static const char all_names[] = "cosmic-comp,Hyprland,niri,sway,gnome-shell";
    static const char other_names[] = "cosmic-comp,Hyprland,niri,sway"; /* have Wayland alone */
    const struct gp_machine *m = &exam->machine;
    const char *session = gp_machine_variable(m, "XDG_SESSION_TYPE");
    const char *names = session && strcmp(session, "wayland") == 0 ? all_names : other_names;
    struct gp_processes all = gp_processes_of(exam);
    const char *process = NULL;
    char name[32] = "";
    while (m->gpu_count == m->nvidia_count && !gp_exam_is_listed(names, name) &&
           (process = gp_processes_next(exam, &all, "")))
        if (!gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", process), name,
                           sizeof(name)))
            name[0] = '\0';
    return process;
}

/* What such a compositor had in the GPU's memory is lost, whether or not an error shows it. */
static bool report_desktop(struct gp_exam *exam, const char *path, const char *params,
                           const char *where, const char *text)
{
    const char *process = lost_desktop(exam);
    if (!process || strstr(params, "EnableS0ixPowerManagement: 1"))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "a suspend loses what the desktop has in GPU memory: the driver does not "
                   "preserve it");
    gp_exam_evidence(exam, where, "%s", text);
    gp_exam_evidence(exam, path, GP_DRIVER_KEEPS_NONE);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/comm", process),
                     "a compositor that does not restore all that was lost");
    gp_exam_why(exam, "%s", gp_driver_lost_pictures);
    keep_memory(exam);
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* Suspending loses CUDA's memory unless the module is set to keep it. */
static void check_suspend(struct gp_exam *exam)
{
    static const char path[] = "/proc/driver/nvidia/params";
    const char *params = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    const char *where, *text;
    bool is_kept = params && (!strstr(params, GP_DRIVER_KEEPS_NONE) ||
                              strstr(params, "UseKernelSuspendNotifiers: 1"));
    if (gp_driver_report_restore(exam) || report_no_units(exam, path, params) ||
        report_hanging(exam, path) || !was_suspended(exam, &where, &text))
        return;
    const struct gp_log_known *failed = gp_driver_cuda_lost(exam);
    if (!failed && (!params || is_kept || report_picture(exam, path, where, text) ||
                    report_desktop(exam, path, params, where, text)))
        return;
    if (failed)
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "CUDA fails since this machine was suspended: nvidia_uvm is in a bad state");
    else
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "this machine was suspended, and the driver does not preserve GPU memory "
                       "across suspend");
    if (failed)
        gp_exam_evidence(exam, failed->where, "%s", failed->text);
    gp_exam_evidence(exam, where, "%s", text);
    if (params && !is_kept)
        gp_exam_evidence(exam, path, GP_DRIVER_KEEPS_NONE);
    gp_exam_why(exam, "After a suspend every CUDA program may fail with \"unknown error\" until "
                      "nvidia_uvm is reloaded, and a Wayland desktop may be broken.");
    gp_exam_command(exam, "when no program uses the GPU",
                    "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm");
    if (failed)
        gp_driver_restart_program(exam, failed);
    const char *session = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    bool is_wayland = session && strcmp(session, "wayland") == 0;
    if (is_kept || (!failed && !is_wayland))
        return;
    keep_memory(exam);
}

void gp_driver_check_power(struct gp_exam *exam)
{
    const struct gp_finding *before = exam->last;
    check_suspend(exam);
    if (exam->last == before && !gp_driver_check_freeze(exam) && gp_driver_check_resume(exam)) {
        keep_memory(exam);
        gp_driver_fix_reboot(exam, "");
    }
    gp_driver_check_boost(exam);
    before = exam->last;
    gp_driver_check_rtd3(exam);
    if (exam->last == before)
        gp_driver_check_awake(exam);
}

/* ---- turned off ---- */

/* Whether a file of TLP's configuration excludes NVIDIA's driver or this GPU. */
static bool excludes(const char *text, const char *address)
{
    for (const char *line = text; line && *line; line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        bool is_list = strncmp(line, "RUNTIME_PM_", 11) == 0 &&
                       (memmem(line, n, "BLACKLIST", 9) || memmem(line, n, "DENYLIST", 8) ||
                        memmem(line, n, "DISABLE", 7));
        if (is_list && (memmem(line, n, "nvidia", 6) || memmem(line, n, address, strlen(address))))
            return true;
        line += n;
    }
    return false;
}

/* The configuration of TLP, if it manages the power of this GPU, "01:00.0", too; NULL: it does not.
 */
static const char *tlp_settings(struct gp_exam *exam, const char *address)
{
    static const char *const paths[] = {"/etc/tlp.conf", "/etc/default/tlp"};
    static const char folder[] = "/etc/tlp.d"; /* read before /etc/tlp.conf, by tlp 1.3 and later */
    char *text = NULL, **names;
    const char *found = NULL;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 64; i++)
        if (strstr(names[i], ".conf") &&
            excludes(gp_files_text(&exam->files, &exam->arena,
                                   gp_exam_text(exam, "%s/%s", folder, names[i]), 1 << 16, NULL),
                     address))
            return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(paths) && !text; i++) {
        text = gp_files_text(&exam->files, &exam->arena, paths[i], 1 << 17, NULL);
        found = paths[i];
    }
    if (excludes(text, address))
        return NULL;
    bool is_here = gp_files_exist(&exam->files, "/usr/sbin/tlp") ||
                   gp_files_exist(&exam->files, "/usr/bin/tlp");
    return text && is_here ? found : NULL;
}

bool gp_driver_report_tlp(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++) {
        char control[16];
        const char *bus_id = m->gpus[i].bus_id;
        const char *address = strchr(bus_id, ':') + 1; /* without the domain */
        const char *path = gp_exam_text(exam, "/sys/bus/pci/devices/%s/power/control", bus_id);
        if (!gp_driver_is_ours(&m->gpus[i]) ||
            !gp_files_line(&exam->files, path, control, sizeof(control)) ||
            strcmp(control, "auto") != 0)
            continue;
        const char *settings = tlp_settings(exam, address);
        if (!settings)
            continue;
        bool is_old = strcmp(settings, "/etc/default/tlp") == 0;
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "TLP manages the NVIDIA GPU's power, which conflicts with bbswitch");
        gp_exam_evidence(exam, path, "auto");
        gp_exam_evidence(exam, settings, "does not exclude the GPU from runtime power management");
        gp_exam_evidence(exam, "/proc/acpi/bbswitch", "the GPU is off");
        const struct gp_log_known *reason = gp_log_reason(exam, "driver,graphics,kernel", "");
        if (reason)
            gp_exam_evidence(exam, reason->where, "%s", reason->text);
        gp_exam_why(exam, "TLP turns on runtime power management for all PCI devices; bbswitch "
                          "then cannot switch the GPU on again.");
        gp_exam_command(exam, "exclude the GPU", "echo 'RUNTIME_PM_%s=\"%s\"' | sudo tee -a %s",
                        is_old ? "BLACKLIST" : "DENYLIST", address, settings);
        gp_exam_command(exam, "and its drivers",
                        "echo 'RUNTIME_PM_DRIVER_%s=\"nouveau nvidia\"' | sudo tee -a %s",
                        is_old ? "BLACKLIST" : "DENYLIST", settings);
        gp_driver_fix_reboot(exam, "");
        return true;
    }
    return false;
}
