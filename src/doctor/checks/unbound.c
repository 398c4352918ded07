#include "doctor/checks/unbound.h"

#include "doctor/checks/firmware.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/gfxchip.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- the kernel's age ---- */

/* Whether it is the name of a file or a folder of this module: "i915.ko.zst", "backport-i915". */
static bool is_of_module(const char *name, const char *module)
{
    const char *found = strstr(name, module);
    return found && (found == name || !isalnum((unsigned char)found[-1])) &&
           !isalnum((unsigned char)found[strlen(module)]);
}

/* Whether a module from elsewhere replaces one of these of the kernel. */
static bool is_replaced(struct gp_exam *exam, const char *const *modules)
{
    static const char *const folders[] = {"updates/dkms", "extra", "updates"};
    const struct gp_machine *m = &exam->machine;
    char **names;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        const char *folder = gp_exam_text(exam, "/lib/modules/%s/%s", m->kernel, folders[i]);
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long k = 0; k < n; k++)
            for (size_t w = 0; modules[w]; w++)
                if (is_of_module(names[k], modules[w]))
                    return true;
    }
    return false;
}

bool gp_unbound_has_backport(struct gp_exam *exam, const char *const *modules)
{
    const struct gp_machine *m = &exam->machine;
    return is_replaced(exam, modules) || m->distro == GP_DISTRO_RHEL ||
           m->distro == GP_DISTRO_SUSE || strstr(m->kernel, "-oem");
}

bool gp_unbound_report_age(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                           enum gp_verdict verdict)
{
    static const char *const modules[] = {"amdgpu", NULL};
    const char *kernel = exam->machine.kernel, *first = gp_gfx_kernel_of_chip(gpu->device);
    if (gpu->driver[0] || !first[0] || !kernel[0] || gp_version_compare(kernel, first) >= 0 ||
        gp_unbound_has_backport(exam, modules))
        return false;
    gp_exam_report(exam, verdict, "kernel %s is too old for AMD GPU %s (%s)", kernel, gpu->bus_id,
                   gp_gfx_of_chip(gpu->device));
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                     "no driver is bound");
    gp_exam_evidence(exam, "/proc/sys/kernel/osrelease", "%s", kernel);
    gp_exam_why(exam,
                "Its amdgpu does not know this GPU: the first that does is in Linux %s or "
                "newer.",
                first);
    (void)gp_log_reason(exam, "amd", gpu->bus_id); /* a consequence */
    gp_unbound_newer_kernel(exam, gpu, first);
    return true;
}

/* ---- the models that the kernel's modules know ---- */

static bool is_one_of(const char *word, size_t length, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (gp_lines_is(word, length, words[i]))
            return true;
    return false;
}

/* Whether modules.alias has drivers of this name, but none of them for the GPU, and the largest
 * device number that they have: "alias pci:v00008086d000046D0sv*sd*bc03sc*i* i915". */
static bool is_left_out(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *path,
                        const char *const *modules, unsigned *ret_largest)
{
    enum { MOST = 16 << 20 };
    const char *head = gp_exam_text(exam, "pci:v%08Xd", gpu->vendor);
    struct gp_arena scratch = {0};
    const char *wanted =
        gp_exam_text(exam, "pci:v%08Xd%08Xsv00000000sd00000000bc%02Xsc%02Xi%02X", gpu->vendor,
                     gpu->device, gpu->class >> 16, gpu->class >> 8 & 0xff, gpu->class & 0xff);
    bool is_listed = false, is_known = false;
    const char *line, *word, *pattern, *module;
    size_t length = 0, n, pattern_length;
    const char *text = gp_files_text(&exam->files, &scratch, path, MOST, &length);
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    while (!is_known && gp_lines_next(&lines, &line, &length)) {
        const char *at = line, *end = line + length;
        if (!gp_lines_word(&at, end, &word, &n) || !gp_lines_is(word, n, "alias") ||
            !gp_lines_word(&at, end, &pattern, &pattern_length) ||
            !gp_lines_word(&at, end, &module, &n) || !is_one_of(module, n, modules))
            continue;
        is_listed = true;
        if (pattern_length > strlen(head) && strncmp(pattern, head, strlen(head)) == 0) {
            unsigned device = (unsigned)strtoul(pattern + strlen(head), NULL, 16);
            *ret_largest = device > *ret_largest ? device : *ret_largest;
        }
        is_known =
            fnmatch(gp_exam_text(exam, "%.*s", (int)pattern_length, pattern), wanted, 0) == 0;
    }
    gp_arena_fini(&scratch);
    return is_listed && !is_known;
}

bool gp_unbound_report_unknown(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                               enum gp_verdict verdict, const char *const *modules, bool is_recent)
{
    const struct gp_machine *m = &exam->machine;
    const char *path = gp_exam_text(exam, "/lib/modules/%s/modules.alias", m->kernel);
    const char *names = modules[0];
    unsigned largest = 0;
    for (size_t i = 0; modules[i]; i++) {
        if (gp_kernels_has_built_in(exam, modules[i]))
            return false;
        names = i ? gp_exam_text(exam, "%s or %s", names, modules[i]) : names;
    }
    if (gpu->driver[0] || m->container || !is_left_out(exam, gpu, path, modules, &largest))
        return false;
    bool is_other = is_replaced(exam, modules);
    is_recent = is_recent || gpu->device > largest;
    gp_exam_report(exam, verdict,
                   is_other || !is_recent
                       ? "kernel %s has no driver that knows %s GPU %s"
                       : "kernel %s is too old for %s GPU %s: none of its drivers knows it",
                   m->kernel, gpu->vendor == GP_PCI_AMD ? "AMD" : "Intel", gpu->bus_id);
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                     "missing: no driver is bound");
    gp_exam_evidence(exam, path, "no %s for %04x:%04x", names, gpu->vendor, gpu->device);
    gp_exam_why(exam,
                "None of its drivers lists this model: there is no device for it in /dev/dri, "
                "and the screen shows only what the firmware set up.");
    if (is_other)
        gp_exam_advice(exam, "a package has replaced the kernel's own driver (see updates and "
                             "extra in /lib/modules, and dkms status): update or remove it; or:");
    else if (!is_recent)
        gp_exam_advice(exam,
                       "a GPU older than %s has another driver or none, and only the "
                       "firmware's screen; if this one is newer than the kernel:",
                       names);
    gp_unbound_newer_kernel(exam, gpu, "");
    return true;
}

/* ---- the kernel's modules ---- */

static bool is_listed(struct gp_exam *exam, const char *module, bool *ret_is_read)
{
    enum { MOST = 8 << 20 };
    const char *path = gp_exam_text(exam, "/lib/modules/%s/modules.dep", exam->machine.kernel);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, NULL);
    *ret_is_read = *ret_is_read || (text && text[0]);
    return text && strstr(text, gp_exam_text(exam, "/%s.ko", module));
}

bool gp_unbound_no_module(struct gp_exam *exam, const char *const *modules)
{
    const struct gp_machine *m = &exam->machine;
    bool is_known = false;
    if (m->container || m->is_wsl || !m->kernel[0])
        return false;
    for (size_t i = 0; modules[i]; i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "/sys/module/%s", modules[i])) ||
            is_listed(exam, modules[i], &is_known) || gp_kernels_has_built_in(exam, modules[i]))
            return false;
    if (!is_known)
        return false;
    gp_exam_evidence(exam, gp_exam_text(exam, "/lib/modules/%s/modules.dep", m->kernel), "no %s",
                     modules[0]);
    gp_exam_why(exam,
                "The running kernel has no %s: it was built without it, or the package with "
                "that part of its modules is not installed.",
                modules[0]);
    if (strstr(m->kernel, "-cloud-") && m->distro == GP_DISTRO_DEBIAN)
        gp_exam_command(exam, "Debian's cloud kernels have no drivers of GPUs",
                        "sudo apt install linux-image-%s", gp_machine_dpkg_arch(m));
    else if (strcmp(m->distro_id, "alpine") == 0 && strstr(m->kernel, "-virt"))
        gp_exam_command(exam, "Alpine's virt kernel has no drivers of GPUs",
                        "sudo apk add linux-lts");
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_KERNEL_MODULES, gp_exam_quoted(exam, m->kernel),
                       NULL);
    gp_exam_command(exam, "into a kernel that has it", "sudo reboot");
    gp_exam_advice(exam, "a kernel of your own: build it with CONFIG_DRM_%s=m",
                   strcmp(modules[0], "amdgpu") == 0 ? "AMDGPU" : "I915");
    return true;
}

/* ---- settings ---- */

bool gp_unbound_has_argument(const struct gp_exam *exam, const char *argument)
{
    char line[4096];
    size_t n = strlen(argument);
    if (!gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)))
        return false;
    for (const char *p = line; (p = strstr(p, argument)); p += n)
        if ((p == line || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

/* The argument by which a driver takes no GPU; NULL: there is none. */
static const char *turned_off(struct gp_exam *exam, const char *module)
{
    const char *own = gp_exam_text(exam, "%s.modeset=0", module);
    return gp_unbound_has_argument(exam, "nomodeset") ? "nomodeset"
           : gp_unbound_has_argument(exam, own)       ? own
                                                      : NULL;
}

/* Unraid's system is in memory: a file on its USB stick replaces the one of the same name, also if
 * it is empty. */
static void fix_unraid(struct gp_exam *exam, const char *module)
{
    const char *path = gp_exam_text(exam, "/boot/config/modprobe.d/%s.conf", module);
    if (gp_files_exist(&exam->files, path))
        gp_exam_command(exam, "comment the line out; the original file is kept next to it",
                        "sed -i.before '/^blacklist/s/^/#/' %s", path);
    else
        gp_exam_command(exam, "an empty file there replaces the one that blocks the module",
                        "mkdir -p /boot/config/modprobe.d && touch %s", path);
    gp_exam_advice(exam, "then restart the machine, in the web interface");
}

static void fix_block(struct gp_exam *exam, const struct gp_block *block, const char *module)
{
    const char *colon = strrchr(block->where, ':');
    gp_exam_evidence(exam, block->where, "%s", block->text);
    if (!colon) {
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, block->text, NULL);
        return;
    }
    if (strcmp(exam->machine.distro_id, "unraid") == 0) {
        fix_unraid(exam, module);
        return;
    }
    gp_exam_command(exam, "comment the lines out; the original file is kept next to it",
                    "sudo sed -i.before '/%s/s/^/#/' %s", module,
                    gp_exam_quoted(exam, gp_exam_text(exam, "%.*s", (int)(colon - block->where),
                                                      block->where)));
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
}

bool gp_unbound_explain(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *module,
                        const char *family)
{
    const struct gp_block block = gp_install_block(exam, module);
    const struct gp_log_known *reason = gp_log_reason(exam, family, gpu->bus_id);
    /* Firmware may be missing without harm, but not where the driver has then failed. */
    const struct gp_log_known *firmware =
        !reason || reason->is_general ? gp_log_known_for(exam, "amd.firmware", gpu->bus_id) : NULL;
    if (firmware) {
        gp_exam_why(exam, "The log says why: the driver did not find the firmware of this GPU.");
        gp_firmware_explain(exam, gpu, firmware, module);
    } else if (reason) {
        gp_exam_evidence(exam, reason->where, "%s", reason->text);
        gp_exam_why(exam, "The log says why: %s.", reason->cause);
        if (strcmp(reason->id, "amd.no-bios") != 0 || !gp_unbound_fix_rom(exam, gpu))
            gp_exam_advice(exam, "%s", reason->fix);
    } else if (exam->machine.nvidia_count == 0 && gp_log_find(exam, GP_KMSG_REFUSED)) {
        const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_REFUSED);
        gp_exam_evidence(exam, line->where, "%s", line->text);
        gp_exam_why(exam, "The kernel loads only modules with a known signature (Secure Boot), and "
                          "refused one: the driver was built on this machine, or replaced.");
        gp_exam_remedy(exam, GP_REMEDY_ENROLL_KEY, NULL, NULL);
        gp_exam_advice(exam, "or turn Secure Boot off in the firmware settings");
    } else if (turned_off(exam, module)) {
        const char *argument = turned_off(exam, module);
        gp_exam_evidence(exam, "/proc/cmdline", "%s", argument);
        gp_exam_why(exam, "With it the kernel's driver leaves the GPU alone.");
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, argument, NULL);
        gp_exam_command(exam, "", "sudo reboot");
    } else if (block.kind != GP_BLOCK_NONE) {
        fix_block(exam, &block, module);
    } else {
        return false;
    }
    return true;
}
