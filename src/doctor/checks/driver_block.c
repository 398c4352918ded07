/* Checks of what prevents loading a module: driver.blacklist, secureboot, nouveau. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/module_keys.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/readers/log.h"
#include "doctor/readers/module_file.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* ---- blacklist ---- */

/* Tools that switch between a laptop's GPUs: a word in the name or the text of the file that they
 * write, and how they turn NVIDIA's on. */
static const struct {
    const char *mark, *command;
} tools[] = {
    {"EnvyControl", "sudo envycontrol -s hybrid"},
    {"system76-power", "sudo system76-power graphics hybrid"},
    {"supergfx", "supergfxctl -m Hybrid"},
    {"optimus-manager", "optimus-manager --switch hybrid"},
    {"09-nvidia-blacklist", "sudo prime-select nvidia"}, /* openSUSE's, and its ports */
};

/* The tool that has written a file, as its place in the table; −1: none of them. */
static int tool_of(struct gp_exam *exam, const char *file, bool *ret_is_marked)
{
    char text[4096];
    if (gp_files_read(&exam->files, file, text, sizeof(text)) < 0)
        text[0] = '\0';
    for (size_t i = 0; i < GP_ARRAY_LEN(tools); i++) {
        *ret_is_marked = strstr(text, tools[i].mark);
        if (*ret_is_marked || strstr(file, tools[i].mark))
            return (int)i;
    }
    return -1;
}

bool gp_driver_is_of_tool(struct gp_exam *exam, const char *file)
{
    bool is_marked;
    return tool_of(exam, file, &is_marked) >= 0;
}

bool gp_driver_fix_by_tool(struct gp_exam *exam, const char *file)
{
    bool is_marked;
    int tool = tool_of(exam, file, &is_marked);
    if (tool < 0)
        return false;
    gp_exam_command(exam, "with the tool that wrote the file: turn the NVIDIA GPU on again", "%s",
                    tools[tool].command);
    if (is_marked)
        gp_exam_command(exam, "if that tool is no longer installed: remove its file", "sudo rm %s",
                        gp_exam_quoted(exam, file));
    return true;
}

/* Bumblebee's package blacklists the module, to load it only for optirun. */
static bool is_of_bumblebee(struct gp_exam *exam, const struct gp_block *block)
{
    return strstr(block->where, "bumblebee") && gp_driver_has_bumblebee(exam);
}

/* Without PRIME render offload in the driver, Bumblebee is of use; false: it has that. */
static bool fix_with_optirun(struct gp_exam *exam, const struct gp_block *block)
{
    enum { FIRST_WITH_OFFLOAD = 435 };
    unsigned branch = gp_version_major(gp_install_of(exam)->version);
    if (!is_of_bumblebee(exam, block) || branch == 0 || branch >= FIRST_WITH_OFFLOAD)
        return false;
    gp_exam_command(exam, "Bumblebee loads it for the programs that are started with optirun",
                    "optirun nvidia-smi");
    gp_exam_advice(exam, "for a GPU that is always on: remove Bumblebee, which alone blacklists "
                         "the module");
    return true;
}

/* Whether Ubuntu's prime-select can undo what is in this file: it writes below /lib. One below /etc
 * may be the user's own. */
static bool is_of_prime(struct gp_exam *exam, const char *file)
{
    const char *name = strrchr(file, '/') + 1;
    static const char *const words[] = {"nvidia-prime", NULL};
    static const char *const programs[] = {"/usr/bin/prime-select", NULL};
    struct gp_package *packages;
    if (exam->machine.distro != GP_DISTRO_UBUNTU || strcmp(name, "blacklist-nvidia.conf") != 0)
        return false;
    if (strncmp(file, "/etc/", 5) != 0)
        return true;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].state, "installed") == 0)
            return true;
    return n < 0 || gp_files_first(&exam->files, programs);
}

const char *gp_driver_prime_mode(struct gp_exam *exam)
{
    enum { FIRST_WITH_OFFLOAD = 435 };
    unsigned branch = gp_version_major(gp_install_of(exam)->version);
    bool is_old = gp_version_compare(exam->machine.distro_version, "20.04") < 0 &&
                  strcmp(exam->machine.distro_id, "ubuntu") == 0;
    return is_old || (branch > 0 && branch < FIRST_WITH_OFFLOAD) ? "nvidia" : "on-demand";
}

static void fix_blacklist(struct gp_exam *exam, const struct gp_block *block)
{
    const char *colon = strrchr(block->where, ':');
    if (!colon) {
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, block->text, NULL);
        return;
    }
    const char *file = gp_exam_text(exam, "%.*s", (int)(colon - block->where), block->where);
    const char *name = strrchr(file, '/') + 1;
    if (gp_driver_fix_by_tool(exam, file))
        return;
    if (is_of_bumblebee(exam, block)) {
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_BUMBLEBEE, NULL, NULL);
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
        return;
    }
    if (is_of_prime(exam, file))
        gp_exam_remedy(exam, GP_REMEDY_PRIME_ON_DEMAND, gp_driver_prime_mode(exam), NULL);
    else if (strncmp(file, "/etc/", 5) == 0 || strncmp(file, "/run/", 5) == 0)
        gp_exam_command(exam, "comment the lines out; the original file is kept next to it",
                        "sudo sed -i.before '/nvidia/s/^/#/' %s", gp_exam_quoted(exam, file));
    else
        gp_exam_command(exam, "override the file, which a package would restore",
                        "sudo ln -s /dev/null /etc/modprobe.d/%s", gp_exam_quoted(exam, name));
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
}

/* nvidia-xrun loads the modules itself, for what needs the screen; its file keeps them out before.
 */
static bool is_of_xrun(struct gp_exam *exam, const struct gp_block *block)
{
    return block->kind == GP_BLOCK_BLACKLISTED && strstr(block->where, "nvidia-xrun") &&
           gp_files_exist(&exam->files, "/usr/bin/nvidia-xrun");
}

/* The module is loaded, but not the part of it that CUDA needs. */
static void check_uvm(struct gp_exam *exam)
{
    const struct gp_block *block = &gp_install_of(exam)->uvm;
    const char *colon = block->where ? strrchr(block->where, ':') : NULL;
    if (block->kind == GP_BLOCK_NONE || !colon ||
        gp_files_exist(&exam->files, "/sys/module/nvidia_uvm") ||
        gp_files_exist(&exam->files, "/dev/nvidia-uvm"))
        return;
    const char *file = gp_exam_text(exam, "%.*s", (int)(colon - block->where), block->where);
    const char *name = strrchr(file, '/') + 1;
    gp_exam_report(exam,
                   block->kind == GP_BLOCK_REFUSED ? GP_VERDICT_FAIL
                   : is_of_xrun(exam, block)       ? GP_VERDICT_INFO
                                                   : GP_VERDICT_WARN,
                   "a setting prevents nvidia_uvm from being loaded, which CUDA needs");
    gp_exam_evidence(exam, block->where, "%s", block->text);
    gp_exam_evidence(exam, "/sys/module/nvidia_uvm", "not loaded");
    gp_exam_why(exam, "nvidia-smi works without it, but CUDA finds no device.");
    if (strncmp(file, "/etc/", 5) == 0 || strncmp(file, "/run/", 5) == 0)
        gp_exam_command(exam, "comment the line out; the original file is kept next to it",
                        "sudo sed -i.before '/nvidia[-_]uvm/s/^/#/' %s",
                        gp_exam_quoted(exam, file));
    else
        gp_exam_command(exam, "override the file, which a package would restore, without that line",
                        "sed '/nvidia[-_]uvm/d' %s | sudo tee /etc/modprobe.d/%s",
                        gp_exam_quoted(exam, file), gp_exam_quoted(exam, name));
    gp_exam_command(exam, "load it now", "sudo modprobe nvidia_uvm");
}

bool gp_driver_is_switched_off(struct gp_exam *exam)
{
    char line[64];
    return gp_files_line(&exam->files, "/proc/acpi/bbswitch", line, sizeof(line)) &&
           strstr(line, " OFF");
}

/* optimus-manager's own file is always there: it loads the module itself, once bbswitch has turned
 * the GPU on; Bumblebee's is, too. A GPU that got lost in this is reported as such. */
static bool is_of_switcher(struct gp_exam *exam, const struct gp_block *block)
{
    if (is_of_bumblebee(exam, block))
        return gp_exam_has_failed(exam, "hardware.bus_lost", "");
    return block->kind == GP_BLOCK_BLACKLISTED && strstr(block->where, "optimus-manager") &&
           gp_files_exist(&exam->files, "/usr/bin/optimus-manager") &&
           (gp_driver_is_switched_off(exam) || gp_exam_has_failed(exam, "hardware.bus_lost", ""));
}

void gp_driver_check_blacklist(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_block *block = &in->nvidia;
    if (!exam->machine.is_driver_loaded && in->closed_config[0])
        gp_exam_unreadable(exam, in->closed_config, -EACCES);
    if (exam->machine.is_driver_loaded) {
        check_uvm(exam);
        return;
    }
    if (block->kind == GP_BLOCK_NONE || is_of_switcher(exam, block) ||
        (is_of_bumblebee(exam, block) && gp_driver_report_bumblebee(exam)))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "a setting prevents the NVIDIA module from being loaded");
    gp_exam_evidence(exam, block->where, "%s", block->text);
    gp_exam_why(exam, "The GPU was disabled there: to save power, to assign it to a virtual "
                      "machine, or when the driver was last installed.");
    if (fix_with_optirun(exam, block))
        return;
    fix_blacklist(exam, block);
    gp_driver_fix_reboot(exam, "");
}

/* ---- Secure Boot ---- */

#define EFIVARS "/sys/firmware/efi/efivars/"
#define GLOBAL "-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define SHIM "-605dab50-e046-4300-abb6-3dd810dd8b23"

static const char secure_boot[] = EFIVARS "SecureBoot" GLOBAL;

/* A one-byte variable, after four bytes of attributes: 0, 1, or −errno. */
static int read_flag(const struct gp_exam *exam, const char *path)
{
    char bytes[16];
    long n = gp_files_read(&exam->files, path, bytes, sizeof(bytes));
    return n < 0 ? (int)n : n >= 5 && bytes[4] == 1;
}

bool gp_driver_is_secure_boot_on(struct gp_exam *exam)
{
    return read_flag(exam, secure_boot) == 1 && read_flag(exam, EFIVARS "MokSBStateRT" SHIM) != 1;
}

enum signature { SIGNATURE_UNKNOWN, SIGNATURE_MISSING, SIGNATURE_PRESENT };

static enum signature signature_of(struct gp_exam *exam, const char *module)
{
    struct gp_module_file file;
    return !gp_module_file_read(&exam->files, module, &file) ? SIGNATURE_UNKNOWN
           : file.is_signed                                  ? SIGNATURE_PRESENT
                                                             : SIGNATURE_MISSING;
}

bool gp_driver_find_refusal(struct gp_exam *exam, const char **ret_where, const char **ret_text)
{
    const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_REFUSED);
    const struct gp_log_known *known =
        line ? NULL : gp_log_known_of(exam, "modprobe.key,modules-load.key");
    *ret_where = line ? line->where : known ? known->where : "";
    *ret_text = line ? line->kmsg.body : known ? known->text : "";
    return line || known;
}

static bool is_nouveau_bound(const struct gp_machine *m)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (strcmp(m->gpus[i].driver, "nouveau") == 0)
            return true;
    return false;
}

void gp_driver_check_secureboot(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    if (exam->machine.is_driver_loaded || !in->module[0])
        return;
    int flag = read_flag(exam, secure_boot);
    if (flag < 0 && flag != -ENOENT)
        gp_exam_unreadable(exam, secure_boot, flag);
    bool is_on = gp_driver_is_secure_boot_on(exam);
    const char *where, *text;
    /* Without EFI's variables the log can tell, too; nouveau is then a consequence. */
    bool is_likely = flag == -ENOENT && is_nouveau_bound(&exam->machine) &&
                     gp_driver_find_refusal(exam, &where, &text);
    if (!is_on && !is_likely)
        return;
    const char *module =
        gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module);
    enum signature signature = signature_of(exam, module);
    bool has_no_signature = signature == SIGNATURE_MISSING;
    const char *key = gp_module_keys_unknown(exam, module);
    /* The log line does not name the module, so it proves nothing about one known to be signed. */
    bool is_refused =
        gp_driver_find_refusal(exam, &where, &text) && (signature != SIGNATURE_PRESENT || key);
    if (!has_no_signature && !key && !is_refused)
        return;
    const char *top;
    bool is_without_shim = is_on && !has_no_signature && key && !gp_module_keys_are_unused(exam) &&
                           gp_module_keys_are_without_shim(exam, &top);
    gp_exam_report(exam, GP_VERDICT_FAIL, "Secure Boot rejects the NVIDIA module%s",
                   is_without_shim ? ": without shim its key cannot be enrolled" : "");
    if (is_on)
        gp_exam_evidence(exam, secure_boot, "is on");
    if (has_no_signature)
        gp_exam_evidence(exam, module, "not signed");
    if (is_refused)
        gp_exam_evidence(exam, where, "%s", text);
    if (key)
        gp_exam_evidence(exam, key, "the firmware does not know the key that signed it");
    if (is_without_shim) {
        gp_module_keys_fix_without_shim(exam, top);
        return;
    }
    gp_exam_why(exam,
                "With Secure Boot on, the kernel loads only modules signed with a key that the "
                "firmware knows; otherwise modprobe reports \"Key was rejected by service\".");
    if (signature != SIGNATURE_PRESENT && gp_driver_fix_unsigned_run(exam))
        return;
    if (!has_no_signature && gp_module_keys_fix_unused(exam))
        return;
    gp_module_keys_enroll(exam);
    if (has_no_signature)
        gp_driver_fix_module(exam, exam->machine.kernel, false);
    gp_driver_fix_reboot(exam, "on the blue screen choose Enroll MOK, and enter the password");
    gp_exam_advice(exam, "or turn Secure Boot off in the firmware settings");
}

/* ---- other drivers ---- */

static const char driverctl[] = "/etc/driverctl.d/";

const char *gp_driver_handed_over_by(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char folder[] = "/etc/modprobe.d", command_line[] = "/proc/cmdline";
    const char *id = gp_exam_text(exam, "%04x:%04x", gpu->vendor, gpu->device);
    const char *override = gp_exam_text(exam, "%s%s", driverctl, gpu->bus_id);
    char **names, text[8192];
    if (gp_files_read(&exam->files, override, text, sizeof(text)) > 0 && strstr(text, "vfio"))
        return override;
    if (gp_files_read(&exam->files, command_line, text, sizeof(text)) > 0 &&
        strstr(text, "vfio-pci.ids=") && strcasestr(text, id))
        return command_line;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 256; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (gp_files_read(&exam->files, path, text, sizeof(text)) > 0 && strstr(text, "vfio") &&
            strcasestr(text, id))
            return path;
    }
    return NULL;
}

/* No GPU is left for the driver that is installed on this system. */
static bool is_all_handed_over(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_NVIDIA && gp_driver_is_ours(&m->gpus[i]))
            return false;
    return in->module[0] && gp_install_library(in);
}

/* Whether this system runs virtual machines, and shows its own screen with another GPU: then they
 * are meant to have this one. */
static bool is_host(struct gp_exam *exam)
{
    static const char *const words[] = {"qemu", "libvirt", NULL};
    static const char *const programs[] = {"/usr/bin/qemu-system-x86_64", "/usr/libexec/qemu-kvm",
                                           "/usr/bin/virsh", "/usr/bin/pvesh"};
    const struct gp_machine *m = &exam->machine;
    struct gp_package *packages;
    bool has_screen = false;
    bool runs = gp_packages_read(&exam->files, &exam->arena, words, &packages) > 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++)
        runs = runs || gp_files_exist(&exam->files, programs[i]);
    for (size_t i = 0; i < m->gpu_count; i++)
        has_screen = has_screen || (m->gpus[i].driver[0] && m->gpus[i].vendor != GP_PCI_NVIDIA);
    return runs && has_screen;
}

static void report_handed_over(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    bool is_begun = false;
    const char *setting = NULL;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        if (gpu->vendor != GP_PCI_NVIDIA || gp_driver_is_ours(gpu))
            continue;
        if (!is_begun && is_all_handed_over(exam) && !is_host(exam))
            setting = gp_driver_handed_over_by(exam, gpu);
        if (!is_begun)
            gp_exam_report(exam, setting ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                           "%s is reserved for virtual machines: this system cannot use it",
                           gp_driver_gpu_words(exam, gpu));
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "%s", gpu->driver);
        is_begun = true;
    }
    if (!setting)
        return;
    gp_exam_evidence(exam, setting, "gives it to vfio-pci");
    gp_exam_why(exam, "NVIDIA's driver is installed here, but has no GPU: nvidia-smi finds none.");
    if (strncmp(setting, driverctl, sizeof(driverctl) - 1) == 0) {
        gp_exam_command(exam, "if this system is to use it", "sudo driverctl unset-override %s",
                        gp_exam_quoted(exam, setting + sizeof(driverctl) - 1));
        return;
    }
    gp_exam_advice(exam, "if this system is to use it, remove its ids from %s:", setting);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
}

void gp_driver_fix_other(struct gp_exam *exam, const char *driver)
{
    /* The driver's name on the bus is not that of its module. */
    bool is_nova = strncasecmp(driver, "nova", 4) == 0;
    if (is_nova)
        gp_exam_command(exam, "keep it from being loaded",
                        "printf 'blacklist nova_core\\nblacklist nova_drm\\n' | sudo tee "
                        "/etc/modprobe.d/blacklist-nova.conf");
    else
        gp_exam_module_setting(
            exam, "keep it from being loaded",
            gp_exam_quoted(exam, gp_exam_text(exam, "blacklist-%s.conf", driver)),
            gp_exam_text(exam, "blacklist %s", gp_exam_quoted(exam, driver)));
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
}

/* What the packages of RPM Fusion and negativo17 start where NVIDIA's module is not loaded. */
static const char fallback[] = "/usr/lib/systemd/system/nvidia-fallback.service";

/* Whether the initramfs heeds dracut's own words of the command line. */
static bool has_dracut(struct gp_exam *exam)
{
    enum gp_distro distro = exam->machine.distro;
    return distro == GP_DISTRO_FEDORA || distro == GP_DISTRO_RHEL || distro == GP_DISTRO_SUSE ||
           gp_files_exist(&exam->files, "/usr/bin/dracut");
}

/* The word of the command line that keeps nouveau out of the initramfs, where modprobe.d or that
 * word keep it out later; "": the initramfs may have loaded it. */
static const char *kept_out_by(struct gp_exam *exam)
{
    char line[4096], word[512];
    if (gp_install_of(exam)->nouveau.kind != GP_BLOCK_BLACKLISTED ||
        !gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)) ||
        (gp_modules_command_line(line, "nouveau", word, sizeof(word)) == GP_BLOCK_NONE &&
         (!has_dracut(exam) || !gp_modules_initramfs_line(line, "nouveau", word, sizeof(word)))))
        return "";
    return gp_exam_text(exam, "%s", word);
}

/* The fallback loads nouveau, which is kept out, where NVIDIA's module could not be loaded; true if
 * this is so. */
static bool explain_fallback(struct gp_exam *exam)
{
    const char *word = kept_out_by(exam);
    if (!word[0] || !gp_files_exist(&exam->files, fallback) ||
        gp_log_at_boot(exam, GP_KMSG_NOT_PROBED))
        return false;
    gp_exam_evidence(exam, "/proc/cmdline", "%s", word);
    gp_exam_evidence(exam, fallback, "loads nouveau if NVIDIA's module is not loaded");
    gp_exam_why(exam, "NVIDIA's module could not be loaded at boot; nouveau is only the fallback.");
    gp_exam_command(exam, "the kernel's messages say why",
                    "sudo dmesg | grep -i -e nvrm -e nvidia -e lockdown -e 'Loading of'");
    return true;
}

/* NVIDIA's module was loaded and found the GPU taken, or there is no fallback: nouveau came first,
 * although initramfs and udev leave it alone. True if this is so. */
static bool explain_request(struct gp_exam *exam)
{
    const struct gp_block *block = &gp_install_of(exam)->nouveau;
    const struct gp_log_line *taken = gp_log_at_boot(exam, GP_KMSG_NOT_PROBED);
    const char *word = kept_out_by(exam);
    if (!word[0])
        return false;
    gp_exam_evidence(exam, "/proc/cmdline", "%s: the initramfs does not load it for the GPU", word);
    if (strcmp(block->where, "/proc/cmdline") != 0)
        gp_exam_evidence(exam, block->where, "%s: nor does udev, later", block->text);
    if (gp_files_exist(&exam->files, fallback))
        gp_exam_evidence(exam, fallback, "loads nouveau by its name");
    if (taken)
        gp_exam_evidence(exam, taken->where, "%s", taken->kmsg.body);
    gp_exam_why(exam, "blacklist does not stop what loads a module by its name, as modprobe "
                      "nouveau does: nouveau had the GPU before NVIDIA's module was loaded.");
    gp_exam_module_setting(exam, "let nothing load it, by its name either", "nouveau-off.conf",
                           "install nouveau /bin/false");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* Debian blacklists nouveau, and names the module, only while the alternative glx leads to NVIDIA's
 * driver; true if it leads to Mesa. */
static bool explain_alternative(struct gp_exam *exam)
{
    static const char path[] = "/etc/alternatives/glx";
    char target[GP_PATH_SIZE];
    if (!gp_files_link(&exam->files, path, target) || !strstr(target, "mesa-diverted"))
        return false;
    gp_exam_evidence(exam, path, "leads to %s", target);
    gp_exam_why(exam, "The alternative glx is set to Mesa: Debian then does not load NVIDIA's "
                      "module, and does not keep nouveau out.");
    gp_exam_command(exam, "choose NVIDIA's driver", "sudo update-glx --set glx /usr/lib/nvidia");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* Settings of modprobe.d cannot keep out what is a part of the kernel; true if nouveau is. */
static bool explain_built_in(struct gp_exam *exam)
{
    if (!gp_kernels_has_built_in(exam, "nouveau"))
        return false;
    gp_exam_evidence(exam,
                     gp_exam_text(exam, "%s/%s/modules.builtin", gp_install_of(exam)->modules,
                                  exam->machine.kernel),
                     "nouveau is built into this kernel");
    gp_exam_why(exam, "It is a part of the kernel, not a module: blacklisting does not keep it "
                      "from the GPU.");
    gp_exam_advice(exam, "build the kernel with CONFIG_DRM_NOUVEAU off, or as a module; until "
                         "then add nouveau.modeset=0 to the kernel command line");
    gp_driver_fix_reboot(exam, "");
    return true;
}

static void fix_other_driver(struct gp_exam *exam, const struct gp_install *in, const char *driver)
{
    bool is_nouveau = strcmp(driver, "nouveau") == 0;
    if (is_nouveau && in->module[0] &&
        (explain_built_in(exam) || explain_fallback(exam) || explain_request(exam) ||
         explain_alternative(exam)))
        return;
    bool is_blacklisted = is_nouveau && in->nouveau.kind != GP_BLOCK_NONE;
    if (is_blacklisted)
        gp_exam_evidence(exam, in->nouveau.where,
                         "%s: created after the last boot, or missing from the initramfs",
                         in->nouveau.text);
    gp_exam_why(exam,
                "A GPU has one driver at a time: while %s is bound to it, NVIDIA's cannot use it.",
                driver);
    if (is_nouveau && !is_blacklisted)
        gp_exam_remedy(exam, GP_REMEDY_BLACKLIST_NOUVEAU, NULL, NULL);
    if (is_nouveau)
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    else
        gp_driver_fix_other(exam, driver);
    gp_driver_fix_reboot(exam, "");
}

void gp_driver_check_nouveau(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_install *in = gp_install_of(exam);
    const char *other = NULL;
    report_handed_over(exam);
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        if (!gp_driver_is_ours(gpu) || !gpu->driver[0] || strcmp(gpu->driver, "nvidia") == 0)
            continue;
        if (!other)
            gp_exam_report(exam, m->is_driver_loaded ? GP_VERDICT_WARN : GP_VERDICT_FAIL,
                           "the driver %s is bound to %s", gpu->driver,
                           gp_driver_gpu_words(exam, gpu));
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "%s", gpu->driver);
        other = gpu->driver;
    }
    if (other)
        fix_other_driver(exam, in, other);
}
