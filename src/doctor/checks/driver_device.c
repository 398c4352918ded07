/* Checks of the loaded module: driver.gpus, nodes, params, persistence. */
#include "doctor/checks/access_fix.h"
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/passthrough.h"
#include "doctor/checks/xorg.h"
#include "doctor/readers/access.h"
#include "doctor/readers/gpuset.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- GPUs ---- */

void gp_driver_check_gpus(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    bool has_list = gp_files_exist(&exam->files, "/proc/driver/nvidia/gpus");
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        const char *entry = gp_exam_text(exam, "/proc/driver/nvidia/gpus/%s", gpu->bus_id);
        bool is_held = strcmp(gpu->driver, "nvidia") == 0 &&
                       (!has_list || gp_files_exist(&exam->files, entry));
        /* Other checks report a GPU with another driver, or one that this driver does not support.
         */
        bool is_told =
            (gpu->driver[0] && strcmp(gpu->driver, "nvidia") != 0) ||
            gp_log_find_for(exam, GP_KMSG_INIT_FAILED, gpu->bus_id) ||
            gp_exam_has_failed(exam, "hardware.regions", gpu->bus_id) ||
            gp_driver_misfit(exam, gpu, m->driver, m->is_driver_open, !m->is_driver_open);
        if (!gp_driver_is_ours(gpu) || is_held || is_told)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "the driver did not claim %s",
                       gp_driver_gpu_words(exam, gpu));
        gp_exam_evidence(exam, gpu->driver[0] ? entry : "/sys/bus/pci/devices", "%s",
                         gpu->driver[0] ? "missing"
                                        : gp_exam_text(exam, "%s has no driver", gpu->bus_id));
        const struct gp_log_known *reason = gp_log_reason(exam, "kernel,modules", gpu->bus_id);
        if (reason)
            gp_exam_evidence(exam, reason->where, "%s", reason->text);
        gp_exam_why(exam,
                    "It is on the bus, but nvidia-smi does not list it: the driver gave up on it "
                    "when it was loaded%s.",
                    reason ? gp_exam_text(exam, ": %s", reason->cause)
                           : ", and logged the reason in the kernel log");
        if (reason)
            gp_exam_advice(exam, "%s", reason->fix);
        gp_exam_command(exam, "the driver's messages", "sudo dmesg | grep -i -e nvrm -e %s",
                        gpu->bus_id);
    }
}

/* ---- device files ---- */

/* The lines of the module's settings that say who may use the files. */
static void show_mode(struct gp_exam *exam)
{
    static const char folder[] = "/etc/modprobe.d";
    char **names, text[8192];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 256; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
            continue;
        unsigned number = 1;
        for (const char *line = text; *line; number++) {
            size_t length = strcspn(line, "\n");
            if (*line != '#' && memmem(line, length, "NVreg_DeviceFile", 16))
                gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", path, number), "%.*s",
                                 (int)length, line);
            line += length + (line[length] == '\n');
        }
    }
}

/* Whether a device file that others may not use is meant for the user. */
static bool report_access(struct gp_exam *exam, const char *path)
{
    struct gp_access access = gp_access_of(exam, path);
    bool is_for_group = (access.mode & 0060) == 0060;
    if (!access.is_known || access.may_use)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL, "this user has no permission to use the GPUs");
    gp_exam_evidence(exam, path, "mode %04o, group %s", access.mode, access.group_name);
    show_mode(exam);
    gp_exam_why(exam, "All users may access the files unless NVreg_DeviceFileMode or "
                      "NVreg_DeviceFileGID is set.");
    if (is_for_group && access.group != 0)
        gp_access_propose(exam, &access, path);
    else
        gp_exam_command(exam, "restore the default mode until the next boot",
                        "sudo chmod 0666 /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm");
    return true;
}

/* nvidia-modprobe creates device files for users on demand; it needs root's permissions. */
static bool has_helper(const struct gp_exam *exam)
{
    struct stat st;
    return gp_files_stat(&exam->files, "/usr/bin/nvidia-modprobe", &st) == 0 &&
           (st.st_mode & S_ISUID);
}

static const char cuda_failures[] = "torch.unknown-error,ollama.init-999,ollama.init-3,cuda.999";

/* A program failed in a way that a missing /dev/nvidia-uvm explains. */
static const struct gp_log_known *cuda_failure(struct gp_exam *exam)
{
    return gp_log_known_of(exam, cuda_failures);
}

/* NixOS has no nvidia-modprobe: udev's rules create the files when a module is loaded, and so do
 * root's programs. */
static void create_on_nixos(struct gp_exam *exam, bool is_uvm)
{
    if (is_uvm)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_MODPROBE, NULL, NULL);
    else
        gp_exam_command(exam, "create the files now, as root's programs do", "sudo nvidia-smi");
}

static void report_missing(struct gp_exam *exam, const char *missing, bool is_uvm_loaded)
{
    const struct gp_log_known *failure = has_helper(exam) ? cuda_failure(exam) : NULL;
    gp_exam_report(exam, GP_VERDICT_FAIL, "%s is missing", missing);
    gp_exam_evidence(exam, missing, "missing");
    gp_exam_evidence(exam, "/sys/module/nvidia_uvm", "%s", is_uvm_loaded ? "loaded" : "not loaded");
    if (failure)
        gp_exam_evidence(exam, failure->where, "%s", failure->text);
    else
        gp_exam_evidence(
            exam, "/usr/bin/nvidia-modprobe",
            "missing, or not setuid root (mode 4755); it creates these files for users");
    if (strstr(missing, "uvm") && !gp_log_find_known(exam, cuda_failures) &&
        gp_xorg_is_misled(exam))
        gp_exam_can_wait(exam); /* the screen, and nothing has shown a program with CUDA */
    gp_exam_why(exam, strstr(missing, "uvm") ? "nvidia-smi works without it, but CUDA does not: "
                                               "\"CUDA unknown error\", or no device at all."
                                             : "Without it no program can use the driver.");
    if (!is_uvm_loaded)
        gp_exam_command(exam, "", "sudo modprobe nvidia_uvm");
    if (!failure && strcmp(exam->machine.distro_id, "nixos") == 0) {
        create_on_nixos(exam, strstr(missing, "uvm") != NULL);
        return;
    }
    if (!failure)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_MODPROBE, NULL, NULL);
    gp_exam_command(exam, "create the files now", "sudo nvidia-modprobe -c0 -u");
}

/* Of the module that CUDA needs, next to this driver's: "nvidia_331_uvm", "nvidia-uvm". */
static const char *uvm_name(struct gp_exam *exam)
{
    const char *name = gp_driver_module_name(exam);
    return gp_exam_text(exam, "%s%cuvm", name, strchr(name, '_') ? '_' : '-');
}

static const char *uvm_file(struct gp_exam *exam, const char *name)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *slash = strrchr(in->module, '/'), *end = strstr(in->module, ".ko");
    return gp_exam_text(exam, "%s/%s/%.*s/%s%s", in->modules, exam->machine.kernel,
                        slash ? (int)(slash - in->module) : 0, in->module, name, end ? end : "");
}

/* Ubuntu's and Debian's packages gave the modules names of their own, "nvidia_331_updates_uvm":
 * without a setting that leads there, nvidia-modprobe and CUDA do not find it. */
static bool report_renamed(struct gp_exam *exam)
{
    static const char usual[] = "nvidia-uvm";
    const char *name = gp_driver_module_name(exam), *uvm = uvm_name(exam);
    const char *file = uvm_file(exam, uvm);
    if (strcmp(name, "nvidia") == 0 || !gp_files_exist(&exam->files, file) ||
        gp_install_is_renamed(exam, usual))
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL, "CUDA's module is not loaded: it has another name, %s",
                   uvm);
    gp_exam_evidence(exam, file, "present");
    gp_exam_evidence(exam, "/sys/module/nvidia_uvm", "not loaded");
    gp_exam_evidence(exam, "/etc/modprobe.d", "no alias %s", usual);
    gp_exam_why(exam,
                "CUDA loads it as %s, and does not find it: cuInit fails with an unknown "
                "error, while nvidia-smi works.",
                usual);
    gp_exam_module_setting(exam, "let that name lead to it", "nvidia-uvm.conf",
                           gp_exam_text(exam, "alias %s %s", usual, gp_exam_quoted(exam, uvm)));
    gp_exam_command(exam, "", "sudo modprobe %s", usual);
    gp_exam_command(exam, "create the files now", "sudo nvidia-modprobe -c0 -u");
    return true;
}

/* How a driver comes to have no module for CUDA. */
enum way { WAY_UNKNOWN, WAY_PACKAGE, WAY_PORTAGE, WAY_INSTALLER };

static enum way way_without_uvm(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_machine *m = &exam->machine;
    bool is_own = strncmp(gp_driver_module_name(exam), "nvidia_", 7) == 0;
    return is_own && m->distro == GP_DISTRO_UBUNTU                 ? WAY_PACKAGE
           : strcmp(m->distro_id, "gentoo") == 0                   ? WAY_PORTAGE
           : in->run_trace[0] && in->package_count == 0 && !is_own ? WAY_INSTALLER
                                                                   : WAY_UNKNOWN;
}

/* Before Ubuntu 15.10 the module was in a package of its own, "nvidia-331-updates-uvm", also in
 * NVIDIA's repository; Ubuntu's own of branch 352 had it in the driver's. */
static bool has_uvm_package(struct gp_exam *exam, const char *package)
{
    enum { LAST = 352 };
    static const char of_nvidia[] = "-0ubuntu1";
    const struct gp_install *in = gp_install_of(exam);
    unsigned branch = gp_version_major(exam->machine.driver);
    bool is_nvidias = false;
    for (size_t i = 0; i < in->package_count; i++) {
        size_t n = strlen(in->packages[i].version);
        if (strcmp(in->packages[i].name, package) == 0 && n >= sizeof(of_nvidia) - 1)
            is_nvidias =
                strcmp(in->packages[i].version + n - (sizeof(of_nvidia) - 1), of_nvidia) == 0;
    }
    return gp_version_compare(exam->machine.distro_version, "15.10") < 0 &&
           (branch < LAST || (branch == LAST && is_nvidias));
}

static void fix_no_uvm(struct gp_exam *exam, enum way way)
{
    char package[64];
    size_t n = 0;
    for (const char *p = gp_driver_module_name(exam); *p && n + 1 < sizeof(package); p++)
        package[n++] = *p == '_' ? '-' : *p;
    package[n] = '\0';
    if (way == WAY_INSTALLER) {
        gp_exam_advice(exam, "run NVIDIA's .run installer again, without --no-unified-memory");
        return;
    }
    if (way == WAY_PORTAGE)
        gp_exam_command(exam, "build the same release of the driver with it",
                        "echo 'x11-drivers/nvidia-drivers uvm' | sudo tee -a "
                        "/etc/portage/package.use/nvidia && sudo emerge --oneshot "
                        "'~x11-drivers/nvidia-drivers-%s'",
                        exam->machine.driver);
    else if (has_uvm_package(exam, package))
        gp_exam_command(exam, "install it: it is in a package of its own",
                        "sudo apt install %s-uvm", gp_exam_quoted(exam, package));
    else
        gp_exam_command(exam, "build the driver's modules again", "sudo apt install --reinstall %s",
                        gp_exam_quoted(exam, package));
    gp_exam_command(exam, "load it; reboot instead if the driver was updated, too",
                    "sudo modprobe nvidia-uvm");
}

/* CUDA's module is not on the disk, under any name. Before branch 331 there was none; who only
 * draws does not need it. */
static bool report_no_uvm(struct gp_exam *exam)
{
    enum { FIRST = 331 };
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_machine *m = &exam->machine;
    enum way way = way_without_uvm(exam);
    if (way == WAY_UNKNOWN)
        return false;
    const char *list = gp_exam_text(exam, "%s/%s/modules.dep", in->modules, m->kernel);
    const char *text = gp_files_text(&exam->files, &exam->arena, list, 8 << 20, NULL);
    const char *file = uvm_file(exam, uvm_name(exam));
    if (m->container || m->is_jetson || !in->module[0] || !text || strstr(text, "uvm.ko") ||
        gp_files_exist(&exam->files, file) || gp_files_exist(&exam->files, "/dev/nvidia-uvm") ||
        gp_version_major(m->driver) < FIRST || !gp_system_library(exam, "", "libcuda.so.1"))
        return false;
    const struct gp_log_known *failure = cuda_failure(exam);
    bool is_used = failure || gp_toolkits_of(exam)->count > 0;
    gp_exam_report(exam, is_used ? GP_VERDICT_FAIL : GP_VERDICT_INFO,
                   "CUDA cannot start: its kernel module, %s, is not installed", uvm_name(exam));
    gp_exam_evidence(exam, list, "the driver's module, but no nvidia-uvm under any name");
    gp_exam_evidence(exam, file, "missing");
    gp_exam_evidence(exam, "/dev/nvidia-uvm", "missing");
    gp_log_show_known(exam, failure);
    gp_exam_why(exam, "nvidia-smi and OpenGL work without it; cuInit and cudaGetDeviceCount fail "
                      "with an unknown error (999, or 30).");
    fix_no_uvm(exam, way);
    return true;
}

/* The settings of the module as "Key: value" lines; "" if a key is missing. */
static const char *param(struct gp_exam *exam, const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line && *line; line += strcspn(line, "\n")) {
        line += *line == '\n';
        if (strncmp(line, key, n) != 0 || line[n] != ':')
            continue;
        const char *value = line + n + 1 + strspn(line + n + 1, " \t\"");
        return gp_exam_text(exam, "%.*s", (int)strcspn(value, "\"\r\n"), value);
    }
    return "";
}

static const char params_path[] = "/proc/driver/nvidia/params";

/* All GPUs that it drives are for virtual machines: nothing is to use them here. */
static bool is_only_late(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    bool is_any = false;
    for (size_t i = 0; i < m->gpu_count; i++) {
        if (!gp_driver_is_ours(&m->gpus[i]))
            continue;
        if (!gp_passthrough_is_late(exam, &m->gpus[i]))
            return false;
        is_any = true;
    }
    return is_any;
}

void gp_driver_check_nodes(struct gp_exam *exam)
{
    static const char *const paths[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"};
    bool is_uvm_loaded = gp_files_exist(&exam->files, "/sys/module/nvidia_uvm");
    if (gp_files_exist(&exam->files, "/run/nvidia/driver/dev/nvidiactl"))
        return; /* the driver is in a container, and its device files, too */
    if (is_only_late(exam))
        return;
    if (!is_uvm_loaded && (gp_driver_report_uvm_refused(exam) || report_renamed(exam)))
        return;
    if (!has_helper(exam) && gp_driver_report_minor(exam))
        return;
    bool has_uvm = is_uvm_loaded || !report_no_uvm(exam);
    for (size_t i = 0; i < GP_ARRAY_LEN(paths) - (has_uvm ? 0 : 1); i++) {
        bool is_there = gp_files_exist(&exam->files, paths[i]);
        bool is_failed =
            !is_there && !is_uvm_loaded && strstr(paths[i], "uvm") && cuda_failure(exam);
        if (!is_there && (!has_helper(exam) || is_failed)) {
            report_missing(exam, paths[i], is_uvm_loaded);
            return;
        }
        if (is_there && report_access(exam, paths[i]))
            return;
    }
    if (has_uvm)
        gp_driver_check_uvm(exam);
}

/* ---- settings ---- */

static bool has_profiler(const struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/local/cuda/bin/ncu", "/opt/cuda/bin/ncu",
                                        "/usr/bin/ncu"};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++)
        if (gp_files_exist(&exam->files, paths[i]))
            return true;
    return false;
}

static void check_profiling(struct gp_exam *exam, const char *params)
{
    if (gp_access_of(exam, params_path).is_root || !has_profiler(exam) ||
        strcmp(param(exam, params, "RmProfilingAdminOnly"), "1") != 0)
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "only root may profile: Nsight Compute is denied to other users");
    gp_exam_evidence(exam, params_path, "RmProfilingAdminOnly: 1");
    gp_exam_why(exam, "This is the driver's default; profilers report ERR_NVGPUCTRPERM.");
    gp_exam_module_setting(exam, "let all users profile", "nvidia-profiling.conf",
                           gp_exam_text(exam, "options %s NVreg_RestrictProfilingToAdminUsers=0",
                                        gp_exam_quoted(exam, gp_driver_module_name(exam))));
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
}

/* Settings that someone changed, and their effects. */
static const struct {
    const char *key, *usual, *words;
} settings[] = {
    {"ExcludedGpus", "", "the driver is set to exclude GPUs"},
    {"GpuBlacklist", "", "the driver is set to exclude GPUs"},
    {"NvLinkDisable", "0", "NVLink is disabled"},
    {"RegistryDwords", "", "settings for support cases are on"},
    {"RegistryDwordsPerDevice", "", "settings for support cases are on"},
};

void gp_driver_check_params(struct gp_exam *exam)
{
    const char *params = gp_files_text(&exam->files, &exam->arena, params_path, 1 << 16, NULL);
    if (!params) {
        gp_exam_unreadable(exam, params_path, -errno);
        return;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(settings); i++) {
        const char *value = param(exam, params, settings[i].key);
        if (!value[0] || strcmp(value, settings[i].usual) == 0)
            continue;
        gp_exam_report(exam, GP_VERDICT_INFO, "%s", settings[i].words);
        gp_exam_evidence(exam, params_path, "%s: %s", settings[i].key, value);
        gp_exam_advice(exam,
                       "if this is not intended: it is set in a file in /etc/modprobe.d or on the "
                       "kernel command line, as NVreg_%s",
                       settings[i].key);
    }
    check_profiling(exam, params);
    const struct gp_finding *before = exam->last;
    gp_driver_check_modes(exam);
    if (exam->last == before)
        gp_driver_check_framebuffer(exam);
    if (exam->last == before)
        gp_driver_check_hybrid(exam);
    if (exam->last == before)
        gp_driver_check_gdm(exam);
    if (exam->last == before)
        gp_driver_check_xwayland(exam);
}

/* ---- initialization ---- */

/* Xid 78: the driver of a virtual GPU and that of its host do not fit each other. */
static bool report_guest(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    enum { VGPU_START_ERROR = 78 };
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->count; i++) {
        const struct gp_log_line *line = &log->lines[i];
        if (line->kmsg.kind != GP_KMSG_XID || line->kmsg.code != VGPU_START_ERROR ||
            strcmp(line->kmsg.bus_id, gpu->bus_id) != 0)
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "the driver %s does not fit the vGPU software of this machine's host",
                       exam->machine.driver);
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
        gp_exam_why(exam,
                    "%s is a virtual GPU: a guest's driver must be of the host's vGPU "
                    "release, or of one that it still supports.",
                    gp_driver_gpu_words(exam, gpu));
        gp_exam_advice(exam,
                       "install the guest driver (GRID) of the host's vGPU release, which the "
                       "cloud provider or the host's administrator has");
        gp_driver_fix_reboot(exam, "");
        return true;
    }
    return false;
}

/* GeForce GPUs were only for real machines. */
static bool refuses_guest(const struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    enum { FIRST_FOR_GUESTS = 465 };
    unsigned branch = gp_version_major(exam->machine.driver);
    return branch > 0 && branch < FIRST_FOR_GUESTS && gpu->chip &&
           strstr(gpu->chip->name, "GeForce");
}

/* Whether the window into the GPU's memory is below 4 GiB, where firmware puts it only if it does
 * not use the space above. It is the second region, "0x… start 0x… end 0x… flags". */
static bool is_window_low(struct gp_exam *exam, const char *path)
{
    static const unsigned long long is_wide = 0x100000, space_32 = 1ULL << 32;
    char text[1024];
    char *line =
        gp_files_read(&exam->files, path, text, sizeof(text)) > 0 ? strchr(text, '\n') : NULL;
    unsigned long long start = line ? strtoull(line, &line, 16) : 0;
    unsigned long long end = line ? strtoull(line, &line, 16) : 0;
    return start > 0 && end < space_32 && (strtoull(line, NULL, 16) & is_wide);
}

static void fix_failed(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *path = gp_exam_text(exam, "/sys/bus/pci/devices/%s/resource", gpu->bus_id);
    if (is_window_low(exam, path)) {
        gp_exam_evidence(exam, path, "the window into the GPU's memory is below 4 GiB");
        gp_exam_advice(exam, "turn on \"Above 4G Decoding\" and Resizable BAR in the firmware "
                             "settings: without them the driver may not start large GPUs");
        gp_exam_advice(exam, "if the error returns: power the machine off and on, check the card's "
                             "seating and power, and try a newer driver");
        return;
    }
    gp_exam_advice(
        exam,
        "power the machine off and on; if the error returns, turn on \"Above 4G Decoding\" and "
        "Resizable BAR in the firmware settings, check the card's seating and power, and try a "
        "newer driver");
}

/* The driver has the GPU, but gave up on it. */
static void report_failed(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *path,
                          const char *seen, const struct gp_log_line *line)
{
    if (report_guest(exam, gpu) || gp_driver_report_regression(exam, gpu, line))
        return;
    const struct gp_log_line *power = gp_log_find_for(exam, GP_KMSG_NO_POWER, gpu->bus_id);
    gp_exam_report(exam, GP_VERDICT_FAIL, "the driver could not initialize %s%s",
                   gp_driver_gpu_words(exam, gpu),
                   power ? ": its power cables are not connected" : "");
    if (power)
        gp_exam_evidence(exam, power->where, "%s", power->kmsg.body);
    if (seen)
        gp_exam_evidence(exam, path, "%s", seen);
    gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    const struct gp_log_known *reason =
        power ? NULL : gp_log_reason(exam, "kernel,modules", gpu->bus_id);
    if (reason)
        gp_exam_evidence(exam, reason->where, "%s", reason->text);
    gp_exam_why(exam, "nvidia-smi omits it, or reports that no devices were found; %s.",
                reason ? reason->cause : "the numbers after RmInitAdapter tell where it failed");
    if (power) {
        gp_exam_advice(exam,
                       "power the machine off, and connect all power cables of the card, each "
                       "to an output of its own of the power supply");
        return;
    }
    if (reason && exam->machine.is_driver_open &&
        gp_exam_is_listed("nv.gsp-engine,nv.open-old", reason->id))
        gp_driver_fix_proprietary(exam);
    if (reason) {
        gp_exam_advice(exam, "%s", reason->fix);
        return;
    }
    if (gp_driver_fix_cloud(exam, gpu))
        return;
    if (gp_machine_is_virtual(&exam->files)) {
        if (refuses_guest(exam, gpu)) {
            gp_exam_why(exam, "Drivers before branch 465 refuse GeForce GPUs in a virtual machine "
                              "that they recognize as one.");
            gp_exam_advice(exam, "update the driver to branch 465 or newer; or have the host hide "
                                 "that it is virtual (libvirt: <kvm><hidden state='on'/></kvm>; "
                                 "VMware: hypervisor.cpuid.v0 = FALSE)");
        }
        gp_exam_advice(exam, "power the virtual machine off and on; its host must pass on the "
                             "whole GPU: a 64-bit window for its memory (VMware: "
                             "pciPassthru.use64bitMMIO = TRUE; QEMU: q35 with OVMF), and a GPU "
                             "that the host has reset");
        gp_exam_advice(exam, "a virtual GPU needs the guest driver of the host's vGPU release");
        return;
    }
    fix_failed(exam, gpu);
}

/* What the driver's file about a GPU says. */
enum state { STATE_UNKNOWN, STATE_EXCLUDED, STATE_IDLE, STATE_INITIALIZED };

static enum state state_of(struct gp_exam *exam, const char *path)
{
    char text[2048];
    if (gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
        return STATE_UNKNOWN;
    if (strncmp(param(exam, text, "GPU Excluded"), "Yes", 3) == 0)
        return STATE_EXCLUDED;
    return strchr(param(exam, text, "GPU UUID"), '?') ? STATE_IDLE : STATE_INITIALIZED;
}

/* The log line of a GPU that could not be initialized; NULL: none, or the driver can use it now.
 * The file keeps the UUID when a later attempt fails. */
static const struct gp_log_line *init_failure(struct gp_exam *exam, const char *bus_id)
{
    const struct gp_device *listed = gp_gpuset_device_at(exam, bus_id);
    return listed && listed->status == GP_STATUS_OK
               ? NULL
               : gp_log_find_for(exam, GP_KMSG_INIT_FAILED, bus_id);
}

void gp_driver_check_persistence(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *idle = "";
    size_t count = 0;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        const char *path =
            gp_exam_text(exam, "/proc/driver/nvidia/gpus/%s/information", gpu->bus_id);
        enum state state = gp_driver_is_ours(gpu) ? state_of(exam, path) : STATE_EXCLUDED;
        const struct gp_log_line *line =
            gp_driver_is_ours(gpu) ? init_failure(exam, gpu->bus_id) : NULL;
        if (line) {
            report_failed(exam, gpu, path, state == STATE_IDLE ? "the UUID is unknown" : NULL,
                          line);
        } else if (state == STATE_EXCLUDED && gp_driver_is_ours(gpu)) {
            gp_exam_report(exam, GP_VERDICT_INFO, "the driver excludes %s, as configured",
                           gp_driver_gpu_words(exam, gpu));
            gp_exam_evidence(exam, path, "GPU Excluded: Yes");
        } else if (state == STATE_IDLE) {
            idle = path;
            count++;
        }
    }
    if (count == 0 || gp_driver_report_unoffered(exam, idle))
        return;
    gp_exam_report(exam, GP_VERDICT_INFO, "%zu GPU%s initialized since the driver was loaded",
                   count, count == 1 ? " was not" : "s were not");
    gp_exam_evidence(exam, idle, "the UUID is not known yet");
    gp_exam_why(exam, "Nothing has used it yet; the first use then takes a second or more.");
    gp_driver_fix_idle(exam);
}
