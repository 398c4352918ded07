/* NVSwitch: the fabric manager, by its files and process; NVLinks, by the driver. */
#include "doctor/checks/health.h"

#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/log.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/services.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

/* ---- the fabric manager ---- */

/* Of packages, of Talos' system extension, and of NixOS. */
static const char *const programs[] = {"/usr/bin/nv-fabricmanager",
                                       "/usr/local/bin/nv-fabricmanager",
                                       "/run/current-system/sw/bin/nv-fabricmanager", NULL};
static const char *const log_paths[] = {"/var/log/fabricmanager.log",
                                        "/var/log/ext-nvidia-fabricmanager.log", NULL};
static const char unit[] = "nvidia-fabricmanager.service";
static const char wants[] =
    "/etc/systemd/system/multi-user.target.wants/nvidia-fabricmanager.service";
static const char mask[] = "/etc/systemd/system/nvidia-fabricmanager.service";

/* GPUs of boards of the fifth generation, HGX B200 and B300. */
static size_t count_fifth(const struct gp_machine *m)
{
    static const char *const names[] = {"[B200", "[HGX B200", "[B300"};
    size_t count = 0;
    for (size_t i = 0; i < m->gpu_count; i++)
        for (size_t n = 0; n < GP_ARRAY_LEN(names); n++)
            count += m->gpus[i].chip && strstr(m->gpus[i].chip->name, names[n]);
    return count;
}

/* Their NVSwitches are behind InfiniBand adapters. In a rack (GB200) and in a virtual machine the
 * manager runs elsewhere. */
static bool has_fifth_nvlink(struct gp_exam *exam)
{
    enum { LEAST = 4 };
    return count_fifth(&exam->machine) >= LEAST && !gp_machine_is_virtual(&exam->files);
}

static bool has_switches(struct gp_exam *exam)
{
    return exam->machine.nvswitch_count > 0 ||
           gp_files_exist(&exam->files, "/dev/nvidia-nvswitchctl") || has_fifth_nvlink(exam);
}

/* What the manager logs on a machine without NVSwitch, where it ends. */
static const char no_switch[] = "fm.nothing";

/* Whether it has failed, or fails at each boot, because there is no NVSwitch. */
static bool is_needless(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->is_pci_readable && m->nvidia_count > 0 && m->nvswitch_count == 0 &&
           count_fifth(m) == 0 && !gp_machine_is_virtual(&exam->files) &&
           gp_files_first(&exam->files, programs) &&
           (gp_log_known_of(exam, no_switch) || gp_service_is_enabled(exam, unit));
}

bool gp_health_has_manager(struct gp_exam *exam)
{
    return !exam->machine.container && (has_switches(exam) || is_needless(exam));
}

/* By its process; if other users' processes are hidden, by its PID file. */
static bool is_running(struct gp_exam *exam)
{
    return gp_machine_runs(&exam->files, "nv-fabricmanager") ||
           (!gp_files_exist(&exam->files, "/proc/1/comm") &&
            gp_files_exist(&exam->files, "/run/nvidia-fabricmanager/nv-fabricmanager.pid"));
}

static bool is_talos(const struct gp_exam *exam)
{
    return strcmp(exam->machine.distro_id, "talos") == 0;
}

/* Whether the system's configuration has driver and manager, in one version, and its services: no
 * package and no command of systemd changes them. */
static bool is_declared(const struct gp_exam *exam)
{
    return gp_remedy_other(exam->machine.distro_id, GP_REMEDY_FABRIC_MANAGER);
}

static const char extensions[] = "/etc/extensions.yaml";

/* The version of Talos' system extension with it, of "name: nvidia-fabricmanager-production" and
 * "version: 535.183.06" in the list of them; "": it has none. */
static const char *extension_version(struct gp_exam *exam)
{
    static const char name[] = "name: nvidia-fabricmanager", version[] = "version: ";
    const char *text = gp_files_text(&exam->files, &exam->arena, extensions, 1 << 16, NULL);
    const char *at = text ? strstr(text, name) : NULL;
    at = at ? strstr(at, version) : NULL;
    if (!at)
        return "";
    at += sizeof(version) - 1;
    return gp_exam_text(exam, "%.*s", (int)strspn(at, "0123456789."), at);
}

/* The version in dpkg's database, or of the extension; "" if unknown. */
static const char *package_version(struct gp_exam *exam, const char **ret_where)
{
    static const char *const words[] = {"nvidia-fabricmanager", NULL};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    *ret_where = "/var/lib/dpkg/status";
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].state, "installed") == 0 && !strstr(packages[i].name, "-dev"))
            return packages[i].version;
    *ret_where = extensions;
    return extension_version(exam);
}

/* The last line of its log with one of these words, in the exam's arena; NULL: none. */
static const char *last_words(struct gp_exam *exam)
{
    static const char *const words[] = {
        "rror", "atal", "failed", "aborting", "don't match", "NV_WARN_NOTHING_TO_DO", NULL};
    enum { TAIL = 64 << 10, LINE = 400 };
    size_t length = 0, n;
    const char *path = gp_files_first(&exam->files, log_paths);
    const char *text = path ? gp_files_tail(&exam->files, &exam->arena, path, TAIL, &length) : NULL;
    const char *line, *found = NULL;
    struct gp_lines lines = gp_lines_of(text ? text : "", length);
    while (gp_lines_next(&lines, &line, &n))
        if (gp_lines_has_any(line, n, words))
            found = gp_exam_text(exam, "%.*s", n < LINE ? (int)n : LINE, line);
    return found;
}

/* The package in NVIDIA's own repositories: since R590 the names of those for apt contain no
 * branch (believed). */
static const char *package_for(struct gp_exam *exam)
{
    unsigned branch = gp_version_major(exam->machine.driver);
    return branch == 0 || branch >= 590 ? "nvidia-fabricmanager"
                                        : gp_exam_text(exam, "nvidia-fabricmanager-%u", branch);
}

static void propose_package(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *package = package_for(exam);
    if (is_declared(exam)) {
        gp_exam_remedy(exam, GP_REMEDY_FABRIC_MANAGER, NULL, NULL);
        return;
    }
    if (m->distro == GP_DISTRO_OTHER || m->distro == GP_DISTRO_ARCH) {
        gp_exam_advice(exam,
                       "install the fabric manager, in exactly the driver's version%s%s: %s of "
                       "NVIDIA's repository",
                       m->driver[0] ? ", " : "", m->driver, package);
        gp_exam_command(exam, "", "sudo systemctl enable --now nvidia-fabricmanager");
        return;
    }
    bool is_rpm =
        m->distro == GP_DISTRO_FEDORA || m->distro == GP_DISTRO_RHEL || m->distro == GP_DISTRO_SUSE;
    gp_exam_remedy(exam, GP_REMEDY_FABRIC_MANAGER, is_rpm ? m->driver : package, m->driver);
}

/* Of branches for new features only the versions that came with a CUDA toolkit have a fabric
 * manager. */
static bool is_mostly_without(const char *driver)
{
    for (size_t i = 0; i < gp_driver_count; i++)
        if (gp_drivers[i].branch == gp_version_major(driver))
            return strcmp(gp_drivers[i].kind, "new-features") == 0;
    return false;
}

/* Whether apt has NVIDIA's repository, whose fabric manager is newer than Ubuntu's driver. */
static bool has_repository(struct gp_exam *exam, const char *version)
{
    static const char folder[] = "/etc/apt/sources.list.d";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    bool is_there = version[0] && !strstr(version, "ubuntu");
    for (long i = 0; i < n; i++)
        is_there = is_there || strncmp(names[i], "cuda-", 5) == 0;
    return is_there;
}

/* Driver and fabric manager in one version, from one archive. */
static const char *both_packages(struct gp_exam *exam, const char *version, unsigned branch)
{
    const struct gp_machine *m = &exam->machine;
    const bool is_open = m->is_driver_open || gp_driver_wish(exam).needs_open;
    if (has_repository(exam, version) || m->distro == GP_DISTRO_DEBIAN)
        return is_open
                   ? gp_exam_text(exam, "nvidia-open-%u nvidia-fabricmanager-%u", branch, branch)
                   : gp_exam_text(exam, "cuda-drivers-fabricmanager-%u", branch);
    return gp_exam_text(exam, "nvidia-driver-%u-server%s nvidia-fabricmanager-%u", branch,
                        is_open ? "-open" : "", branch);
}

/* The way out if there is no fabric manager of the driver's version: another driver. */
static void propose_both(struct gp_exam *exam, const char *version, bool is_only)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_wish wish = gp_driver_wish(exam);
    const unsigned branch = gp_driver_long_term()->branch;
    const bool has_apt = gp_machine_has_apt(m);
    if (!gp_wish_fits(&wish, branch))
        return;
    if (!has_apt || gp_install_of(exam)->run_trace[0]) {
        gp_exam_advice(exam,
                       "%sinstall a version of the driver that has a fabric manager, of a "
                       "production or long-term branch such as %u, and both in that version",
                       is_only ? "" : "if there is no such version: ", branch);
        return;
    }
    gp_exam_command(exam,
                    is_only ? "a driver and a fabric manager of one version, in place of both"
                            : "or, if there is no such version: a driver and a fabric manager of "
                              "one version; then reboot",
                    "sudo apt install %s", both_packages(exam, version, branch));
    if (is_only) {
        gp_exam_command(exam, "", "sudo systemctl enable nvidia-fabricmanager");
        gp_exam_command(exam, "", "sudo reboot");
    }
}

static void propose_same(struct gp_exam *exam, const char *version)
{
    const bool is_only = is_mostly_without(exam->machine.driver);
    if (is_declared(exam)) {
        gp_exam_remedy(exam, GP_REMEDY_FABRIC_MANAGER, NULL, NULL);
        if (is_only)
            gp_exam_advice(exam, "both of a production or long-term branch");
        if (!is_talos(exam))
            gp_exam_command(exam, "the driver that is loaded is that of before it", "sudo reboot");
        return;
    }
    if (!is_only)
        propose_package(exam);
    propose_both(exam, version, is_only);
}

static const char why[] =
    "Without it the GPUs behind the NVSwitch do not form a fabric: CUDA fails with error 802, "
    "system not yet initialized, although nvidia-smi reports no problem.";

static void show_words(struct gp_exam *exam, const char *words)
{
    if (words)
        gp_exam_evidence(exam, gp_files_first(&exam->files, log_paths), "%s", words);
}

/* On NixOS, where systemctl can neither enable nor unmask a service. */
static void restart_declared(struct gp_exam *exam, bool is_masked)
{
    if (is_masked)
        gp_exam_command(exam,
                        "after removing systemd.services.nvidia-fabricmanager.enable = false; "
                        "from the configuration",
                        "sudo nixos-rebuild switch");
    else if (gp_service_is_enabled(exam, unit))
        gp_exam_command(exam, "", "sudo systemctl restart nvidia-fabricmanager");
    else
        gp_exam_remedy(exam, GP_REMEDY_FABRIC_MANAGER, NULL, NULL);
}

static void report_stopped(struct gp_exam *exam)
{
    const char *words = last_words(exam), *where;
    const bool is_masked = gp_service_is_masked(exam, unit);
    if (words && strstr(words, "NV_WARN_NOTHING_TO_DO") && !has_fifth_nvlink(exam))
        return; /* it found no NVSwitch of its own */
    const bool is_other = words && strstr(words, "don't match with driver version");
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   is_other ? "the fabric manager and the driver have different versions"
                            : "the fabric manager is installed but not running");
    gp_exam_evidence(exam, "/proc", "no process nv-fabricmanager");
    if (is_masked)
        gp_exam_evidence(exam, mask, "masked: nothing can start it");
    else if (!is_talos(exam) && !gp_service_is_enabled(exam, unit))
        gp_exam_evidence(exam, wants, "missing: it is not started at boot");
    show_words(exam, words);
    gp_exam_why(exam, "%s", why);
    if (is_other) {
        propose_same(exam, package_version(exam, &where));
        return;
    }
    if (is_talos(exam)) {
        gp_exam_command(exam, "why it has ended", "talosctl logs ext-nvidia-fabricmanager");
        gp_exam_command(exam, "when that is mended",
                        "talosctl service ext-nvidia-fabricmanager restart");
        return;
    }
    if (is_declared(exam)) {
        restart_declared(exam, is_masked);
        return;
    }
    if (is_masked)
        gp_exam_command(exam, "", "sudo systemctl unmask nvidia-fabricmanager");
    gp_exam_command(exam, "", "sudo systemctl enable --now nvidia-fabricmanager");
}

/* The subnet manager of NVLink 5, without which the fabric manager finds no switch. */
static bool report_subnet_manager(struct gp_exam *exam)
{
    static const char *const paths[] = {"/opt/nvidia/nvlsm/sbin/nvlsm", "/usr/sbin/nvlsm",
                                        "/usr/bin/nvlsm"};
    static const char *const names[] = {"nvlsm", NULL};
    struct gp_package *packages;
    const enum gp_distro distro = exam->machine.distro;
    const char *words = last_words(exam);
    if (!has_fifth_nvlink(exam) || gp_machine_runs(&exam->files, "nvlsm"))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++)
        if (gp_files_exist(&exam->files, paths[i]))
            return false;
    long n = gp_packages_read(&exam->files, &exam->arena, names, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].state, "installed") == 0)
            return false;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the NVLink subnet manager (NVLSM) is not installed");
    gp_exam_evidence(exam, paths[0], "missing");
    show_words(exam, words);
    gp_exam_why(exam,
                "On boards with NVLink 5 the fabric manager reaches the NVSwitches through it; "
                "without it the GPUs do not form a fabric, and CUDA fails with error 802.");
    if (gp_machine_has_apt(&exam->machine))
        gp_exam_command(exam, "from NVIDIA's repository", "sudo apt install nvlsm");
    else if (distro == GP_DISTRO_RHEL || distro == GP_DISTRO_FEDORA)
        gp_exam_command(exam, "from NVIDIA's repository", "sudo dnf install nvlsm");
    else
        gp_exam_advice(exam, "install nvlsm, from NVIDIA's repository");
    gp_exam_command(exam, "which it needs; also at each boot", "sudo modprobe ib_umad");
    gp_exam_command(exam, "", "sudo systemctl restart nvidia-fabricmanager");
    return true;
}

/* The log has it only if the service was started. */
static void report_needless(struct gp_exam *exam)
{
    const struct gp_log_known *line = gp_log_known_of(exam, no_switch);
    gp_exam_report(exam, line ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the fabric manager cannot run on this machine, and is not needed: it has no "
                   "NVSwitch");
    gp_exam_evidence(exam, "/sys/bus/pci/devices", "no NVSwitch");
    if (line)
        gp_log_show_known(exam, line);
    else
        gp_exam_evidence(exam, wants, "present: it is started at boot");
    gp_exam_why(exam, "It manages NVSwitches only: CUDA works without it, also over NVLink bridges "
                      "between two GPUs.");
    if (is_talos(exam))
        gp_exam_advice(exam, "build an image without its system extension, and upgrade to it");
    else if (is_declared(exam))
        gp_exam_command(exam,
                        "after setting, in configuration.nix: "
                        "systemd.services.nvidia-fabricmanager.enable = false;",
                        "sudo nixos-rebuild switch");
    else
        gp_exam_command(exam, "", "sudo systemctl disable --now nvidia-fabricmanager");
}

static void report_missing(struct gp_exam *exam, const char *version)
{
    const size_t switches = exam->machine.nvswitch_count;
    gp_exam_report(exam, GP_VERDICT_FAIL, "the fabric manager is not installed");
    gp_exam_evidence(exam, programs[is_talos(exam) ? 1 : is_declared(exam) ? 2 : 0], "missing");
    if (switches > 0)
        gp_exam_evidence(exam, "/sys/bus/pci/devices", "%zu NVSwitch%s", switches,
                         switches == 1 ? "" : "es");
    gp_exam_why(exam, "%s", why);
    propose_package(exam);
    if (is_mostly_without(exam->machine.driver) && !is_declared(exam))
        propose_both(exam, version, false);
}

static void report_other_version(struct gp_exam *exam, const char *version, const char *where)
{
    const char *driver = exam->machine.driver;
    const char *words = last_words(exam);
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the fabric manager and the driver have different versions");
    gp_exam_evidence(exam, where, "nvidia-fabricmanager %s", version);
    gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s", driver);
    if (where == extensions)
        show_words(exam, words);
    gp_exam_why(exam, "It refuses to run with any other version, even from the same branch.%s",
                is_mostly_without(driver)
                    ? gp_exam_text(exam,
                                   " Few versions of branch %u, which is for new features, "
                                   "have one.",
                                   gp_version_major(driver))
                    : "");
    propose_same(exam, version);
    if (gp_install_of(exam)->run_trace[0]) /* updates do not change the driver with it */
        gp_exam_command(exam, "keep updates from changing it alone", "sudo apt-mark hold %s",
                        package_for(exam));
}

/* Of a package's version the beginning is the driver's. */
static bool is_other_version(const char *version, const char *driver)
{
    const size_t n = strlen(driver);
    return version[0] && n > 0 &&
           (strncmp(version, driver, n) != 0 || (version[n] && strchr("0123456789.", version[n])));
}

/* How often it has set the NVSwitches up since boot; 0 also if that is unknown. */
static unsigned count_setups(struct gp_exam *exam)
{
    static const char done[] = "Successfully configured all the available NVSwitches";
    size_t length = 0, n;
    const char *line, *text = gp_journal_text(exam, unit, &length);
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    unsigned count = 0;
    while (gp_lines_next(&lines, &line, &n)) {
        if (gp_journal_begins_boot(line, n))
            count = 0;
        count += memmem(line, n, done, sizeof(done) - 1) != NULL;
    }
    return count;
}

/* NVLink SHARP needs the NVSwitches of the H100 or newer. */
static bool has_sharp(struct gp_exam *exam)
{
    enum { HOPPER = 90 };
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    for (size_t i = 0; i < nv.count; i++)
        if (nv.gpus[i].capability >= HOPPER)
            return true;
    return false;
}

/* What works again after that, and what does not, depends on whether the GPUs were reset, too. */
static void report_restarted(struct gp_exam *exam)
{
    unsigned count = has_sharp(exam) ? count_setups(exam) : 0;
    if (count < 2)
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "the fabric manager was started %u times since boot: without a reset of the "
                   "GPUs in between, NVLink SHARP (NVLS) fails",
                   count);
    gp_exam_evidence(exam, gp_exam_text(exam, "journalctl -b -u %s", unit),
                     "it has set the NVSwitches up %u times", count);
    gp_exam_why(exam, "The GPUs keep what the first one has set up: NCCL stops in nvls.cc with "
                      "\"invalid argument\" or \"the operation cannot be performed in the present "
                      "state\".");
    gp_exam_command(exam, "once no job uses the GPUs", "sudo systemctl stop nvidia-fabricmanager");
    gp_exam_command(exam,
                    "it is refused while anything has a GPU open: nvidia-persistenced, DCGM, an "
                    "exporter",
                    "sudo nvidia-smi -r");
    gp_exam_command(exam, "also if the reset was refused",
                    "sudo systemctl start nvidia-fabricmanager");
    gp_exam_advice(exam, "or reboot; until then, NCCL_NVLS_ENABLE=0 does without it");
}

void gp_health_run_manager(struct gp_exam *exam)
{
    const char *where;
    if (!has_switches(exam)) {
        report_needless(exam);
        return;
    }
    const char *version = package_version(exam, &where);
    if (!gp_files_first(&exam->files, programs)) {
        if (!is_running(exam)) /* else it is that of a container with the driver */
            report_missing(exam, version);
    } else if (is_other_version(version, exam->machine.driver)) {
        report_other_version(exam, version, where);
    } else if (report_subnet_manager(exam)) {
        return;
    } else if (!is_running(exam)) {
        report_stopped(exam);
    } else {
        report_restarted(exam);
    }
}

/* ---- NVLink ---- */

static bool is_in_mig_mode(const struct gp_device *gpu)
{
    return strcmp(gp_device_text(gpu, GP_MIG_MODE, ""), "Enabled") == 0;
}

static void find_linked(struct gp_gpuset *set, const struct gp_exam *exam)
{
    struct gp_gpuset gpus;
    double count;
    gp_gpuset_answered(&gpus, exam);
    set->count = 0;
    for (size_t i = 0; i < gpus.count; i++)
        if (!is_in_mig_mode(gpus.gpus[i]) &&
            gp_device_number(gpus.gpus[i], GP_NVLINK_COUNT, &count) && count > 0)
            gp_gpuset_add(set, gpus.gpus[i]);
}

bool gp_health_has_nvlink(struct gp_exam *exam)
{
    struct gp_gpuset set;
    find_linked(&set, exam);
    return set.count > 0;
}

static const struct gp_value *link_value(const struct gp_entry *entry, enum gp_metric m)
{
    return &entry->values[m - GP_LINK__FIRST];
}

/* How many links should be up: all of them if they lead to NVSwitches, otherwise as many as on the
 * best GPU of the same model, since a bridge may leave some unused. */
static double links_wanted(const struct gp_exam *exam, const struct gp_gpuset *set,
                           const struct gp_device *gpu)
{
    const struct gp_entries *links = &exam->snapshot->lists[gp_list_index(GP_SCOPE_LINK)];
    double wanted = 0, n;
    for (size_t i = 0; i < links->count; i++) {
        const struct gp_value *type = link_value(&links->entries[i], GP_LINK_REMOTE_TYPE);
        if (&exam->snapshot->devices[links->entries[i].device] == gpu &&
            gp_value_is_present(type) && strcmp(type->s, "Switch") == 0)
            wanted++;
    }
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(gp_device_text(set->gpus[i], GP_NAME, "?"), gp_device_text(gpu, GP_NAME, "")) ==
                0 &&
            gp_device_number(set->gpus[i], GP_NVLINK_ACTIVE, &n) && n > wanted)
            wanted = n;
    return wanted;
}

static void report_failed_recoveries(struct gp_exam *exam)
{
    const struct gp_entries *links = &exam->snapshot->lists[gp_list_index(GP_SCOPE_LINK)];
    struct gp_gpuset set = {.count = 0};
    for (size_t i = 0; i < links->count; i++) {
        const struct gp_device *gpu = &exam->snapshot->devices[links->entries[i].device];
        const struct gp_value *failed = link_value(&links->entries[i], GP_LINK_UNRECOVERED);
        if (gp_value_is_present(failed) && failed->i > 0 &&
            (set.count == 0 || set.gpus[set.count - 1] != gpu))
            gp_gpuset_add(&set, gpu);
    }
    if (set.count == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s: an NVLink could not be recovered after an error",
                   gp_gpuset_names(exam, &set));
    gp_exam_evidence(exam, "NVML",
                     "%s is above 0; gpulse query --rows links -i %s shows which link",
                     GP_METRIC_NAME(GP_LINK_UNRECOVERED), gp_gpuset_list(exam, &set));
    gp_health_prescribe(exam, GP_CURE_RESET, &set);
}

void gp_health_run_nvlink(struct gp_exam *exam)
{
    static const enum gp_metric metrics[] = {GP_NVLINK_ACTIVE, GP_NVLINK_COUNT};
    struct gp_gpuset set, bad = {.count = 0};
    double active;
    find_linked(&set, exam);
    for (size_t i = 0; i < set.count; i++)
        if (gp_device_number(set.gpus[i], GP_NVLINK_ACTIVE, &active) &&
            active < links_wanted(exam, &set, set.gpus[i]))
            gp_gpuset_add(&bad, set.gpus[i]);
    if (bad.count > 0) {
        gp_exam_report(exam, GP_VERDICT_WARN, "%s: not all NVLinks are up",
                       gp_gpuset_names(exam, &bad));
        gp_gpuset_evidence(exam, &bad, metrics, GP_ARRAY_LEN(metrics));
        gp_exam_why(exam,
                    "Work on several GPUs is slower, or with NVSwitch does not start at all.");
        gp_exam_advice(exam, "reset all linked GPUs together, or reboot; if this does not help, "
                             "have the bridge or board reseated");
    }
    report_failed_recoveries(exam);
}
