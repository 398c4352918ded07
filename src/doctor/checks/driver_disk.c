/* Checks of what is installed: driver.installed, flavour, kernel. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/compat.h"
#include "doctor/explain/explain_line.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
#include "doctor/readers/installer.h"
#include "doctor/readers/log.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

/* ---- installed ---- */

static bool has_package(const struct gp_install *in)
{
    for (size_t i = 0; i < in->package_count; i++)
        if (strcmp(in->packages[i].state, "config-files") != 0 &&
            strcmp(in->packages[i].state, "not-installed") != 0)
            return true;
    return false;
}

static const struct gp_pci_gpu *first_gpu(const struct gp_machine *m)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (gp_driver_is_ours(&m->gpus[i]))
            return &m->gpus[i];
    return NULL;
}

/* The compiler is older than the kernel's, and does not know all of its options. */
static bool show_compiler(struct gp_exam *exam, const struct gp_failed_build *build)
{
    unsigned gcc = build->kernel_gcc;
    if (!build->version || build->used_gcc == 0 || build->used_gcc >= gcc ||
        !strstr(build->error, "unrecognized command"))
        return false;
    gp_exam_evidence(exam, build->log, "%s", build->error);
    gp_exam_evidence(exam, build->log, "the kernel was built by gcc %u, the module by gcc %u", gcc,
                     build->used_gcc);
    gp_exam_why(exam,
                "The kernel was built by gcc %u, and the compiler of the installer does not "
                "know that one's options.",
                gcc);
    gp_driver_fix_compiler(exam, gcc, true);
    return true;
}

/* Why NVIDIA's .run installer failed: the first error in its log that is known. True: a source file
 * of the driver does not compile for the running kernel. */
static bool show_installer(struct gp_exam *exam)
{
    enum { MOST = 1 << 20 };
    static const char mark[] = "ERROR";
    const struct gp_failed_build *build = &gp_install_of(exam)->failed;
    size_t size = 0, n;
    const char *line,
        *text = gp_files_tail(&exam->files, &exam->arena, gp_installer_log, MOST, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    static const char created[] = "creation time: ";
    const char *date = NULL;
    struct gp_explanation found, best = {.id = ""};
    while (gp_lines_next(&lines, &line, &n)) {
        const char *words = gp_exam_text(exam, "%.*s", n < 400 ? (int)n : 400, line);
        if (strncmp(words, created, sizeof(created) - 1) == 0)
            date = words;
        bool is_error = strncmp(words, mark, sizeof(mark) - 1) == 0 || strstr(words, "error:");
        if (!is_error || !gp_explain_line(&exam->arena, words, &found))
            continue;
        bool is_general = strcmp(found.id, "runfile.more") == 0;
        if (best.id[0] && (is_general || strcmp(best.id, "runfile.more") != 0))
            continue;
        best = found;
        best.details = words;
    }
    if (!best.id[0])
        return false;
    gp_exam_evidence(exam, gp_installer_log, "%s", best.details);
    if (date) /* it may be of long ago */
        gp_exam_evidence(exam, gp_installer_log, "%s", date);
    gp_exam_why(exam, "NVIDIA's installer failed: %s.", best.words);
    if (build->version)
        (void)gp_driver_explain_symbol(exam, best.details, build->version);
    const struct gp_log_known *refused = gp_log_known_of(exam, "nvidia-drm.helper");
    if (refused) {
        gp_exam_evidence(exam, refused->where, "%s", refused->text);
        gp_exam_why(exam, "NVIDIA's installer failed to load the modules: %s.", refused->cause);
        gp_exam_command(exam, "load what it needs",
                        "sudo modprobe -a drm_client_lib drm_ttm_helper");
    }
    bool wants_headers = strcmp(best.id, "runfile.headers") == 0;
    bool is_nouveau = strcmp(best.id, "runfile.nouveau") == 0;
    if (wants_headers)
        gp_driver_fix_headers(exam, exam->machine.kernel);
    if (is_nouveau) {
        gp_exam_remedy(exam, GP_REMEDY_BLACKLIST_NOUVEAU, NULL, NULL);
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    }
    bool is_compiler = show_compiler(exam, build);
    if (wants_headers || is_nouveau || refused || is_compiler)
        gp_exam_advice(exam, "then run the installer again; or, better, install the driver from "
                             "packages:");
    return build->version && strcmp(best.id, "dkms.api") == 0;
}

/* A driver that was loaded, as by NVIDIA's GPU Operator, did not support a model that all current
 * ones do: in a virtual machine it is mostly a virtual GPU. */
static bool report_vgpu(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    if (!gp_machine_is_virtual(&exam->files) || !gpu->chip || gpu->chip->last_branch > 0)
        return false;
    const struct gp_log_known *refused = gp_log_known_of(exam, "nv.unsupported");
    if (!refused)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the driver that was loaded does not support %s: it is virtual (vGPU), "
                   "or newer than that driver",
                   gp_driver_gpu_words(exam, gpu));
    gp_log_show_known(exam, refused);
    gp_exam_why(exam, "Drivers for data centres and GeForce work in a virtual machine only with a "
                      "GPU that is passed through whole. A vGPU needs the guest driver of NVIDIA "
                      "vGPU, from the branch of the host's, and a licence.");
    if (gp_driver_has_operator(exam))
        gp_exam_advice(exam, "build the driver container of NVIDIA's GPU Operator with the guest "
                             "driver (NVIDIA-Linux-x86_64-…-grid.run), and give both it and a "
                             "licence configuration to the Operator");
    else
        gp_exam_advice(exam, "install the guest driver (NVIDIA-Linux-x86_64-…-grid.run) that the "
                             "cloud or the vGPU administrator provides");
    gp_exam_advice(exam, "if the GPU is passed through whole: a newer driver");
    gp_exam_link(exam, "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/"
                       "install-gpu-operator-vgpu.html");
    return true;
}

void gp_driver_check_installed(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_pci_gpu *gpu = first_gpu(&exam->machine);
    if (exam->machine.is_driver_loaded || in->module[0] || in->other_kernel[0] || in->source[0] ||
        in->library_count > 0 || in->run_trace[0] || has_package(in) || !gpu)
        return;
    if (in->modules_error < 0 && in->modules_error != -ENOENT) {
        gp_exam_unreadable(exam, in->modules, in->modules_error);
        return;
    }
    if ((!gpu->driver[0] && report_vgpu(exam, gpu)) || gp_driver_report_operator(exam, gpu))
        return;
    /* The packages of the driver blacklist nouveau, and no other one. */
    bool is_taken = gpu->driver[0] && strcmp(gpu->driver, "nouveau") != 0;
    if (is_taken)
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "the driver %s is bound to %s, and NVIDIA's is not installed", gpu->driver,
                       gp_driver_gpu_words(exam, gpu));
    else
        gp_exam_report(exam, GP_VERDICT_FAIL, "no NVIDIA driver is installed for %s",
                       gp_driver_gpu_words(exam, gpu));
    gp_exam_evidence(exam, in->modules, "no installed kernel has NVIDIA's module");
    gp_exam_evidence(exam, "libcuda.so.1", "not in any library directory");
    if (gpu->driver[0])
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "%s", gpu->driver);
    gp_exam_why(exam, "nvidia-smi, CUDA and everything built on them need NVIDIA's own driver; "
                      "wheels and containers do not include it.");
    bool is_unbuilt = !is_taken && show_installer(exam);
    gp_driver_warn_of_rejection(exam);
    if (is_taken)
        gp_driver_fix_other(exam, gpu->driver);
    else if (gpu->driver[0] && in->nouveau.kind != GP_BLOCK_NONE) {
        gp_exam_evidence(exam, in->nouveau.where, "%s: but it is loaded, from the initramfs",
                         in->nouveau.text);
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    }
    if (gp_driver_fix_cloud(exam, gpu))
        return;
    if (!is_unbuilt || !gp_driver_fix_home_made(exam, &in->failed))
        gp_driver_fix_install(exam);
    if (strcmp(gpu->driver, "nouveau") == 0 && in->nouveau.kind == GP_BLOCK_NONE &&
        gp_files_exist(&exam->files, "/usr/bin/kubelet")) {
        gp_exam_advice(exam, "or, if NVIDIA's GPU Operator is to install it in a container, only "
                             "keep nouveau from this node first, which it cannot always unload:");
        gp_driver_block_nouveau(exam);
    }
    if (!gpu->driver[0] && in->nouveau.kind != GP_BLOCK_NONE) {
        const char *colon = strrchr(in->nouveau.where, ':');
        gp_exam_evidence(exam, in->nouveau.where, "%s: left by a driver that was removed",
                         in->nouveau.text);
        if (colon) {
            gp_exam_advice(exam,
                           "or, to have the kernel's driver nouveau back, without CUDA: take the "
                           "lines with nouveau out of %.*s, and rebuild the initramfs",
                           (int)(colon - in->nouveau.where), in->nouveau.where);
            return;
        }
        gp_exam_advice(exam, "or, to have the kernel's driver nouveau back, without CUDA:");
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, in->nouveau.text, NULL);
        gp_driver_fix_reboot(exam, "");
    }
}

/* ---- branch and kind ---- */

/* Reports the GPUs that a driver does not support; true if there are any. */
static bool report_misfits(struct gp_exam *exam, const char *version, bool is_open,
                           bool is_proprietary, bool is_running)
{
    const struct gp_machine *m = &exam->machine;
    size_t total = 0, bad = 0;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        if (!gp_driver_is_ours(gpu))
            continue;
        total++;
        bad += gp_driver_misfit(exam, gpu, version, is_open, is_proprietary) != NULL;
    }
    if (bad == 0)
        return false;
    bool is_graver =
        is_running ? bad == total : !m->is_driver_loaded || gp_driver_is_mismatched(exam);
    gp_exam_report(exam, is_graver ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   "the %sdriver %s does not support %s", is_running ? "" : "installed ", version,
                   bad == 1 && total == 1 ? "this GPU"
                                          : gp_exam_text(exam, "%zu of %zu GPUs", bad, total));
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        const char *why = gp_driver_is_ours(gpu)
                              ? gp_driver_misfit(exam, gpu, version, is_open, is_proprietary)
                              : NULL;
        if (why)
            gp_exam_evidence(exam, gp_driver_gpu_words(exam, gpu), "%s", why);
    }
    return true;
}

/* The module's own message about such a GPU. */
static const enum gp_kmsg_kind verdicts[] = {GP_KMSG_NEEDS_OPEN, GP_KMSG_NEEDS_PROPRIETARY,
                                             GP_KMSG_LEGACY};

/* What a module said before it gave up on all GPUs, unless what is on disk differs from it. */
static const struct gp_log_line *refusal_of(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_log_line *open = gp_log_find_for(exam, GP_KMSG_NEEDS_OPEN, gpu->bus_id);
    const struct gp_log_line *closed =
        gp_log_find_for(exam, GP_KMSG_NEEDS_PROPRIETARY, gpu->bus_id);
    const struct gp_log_line *legacy = gp_log_find_for(exam, GP_KMSG_LEGACY, gpu->bus_id);
    if (open && !in->is_open)
        return open;
    if (closed && !in->is_proprietary)
        return closed;
    return in->version[0] && gpu->chip ? NULL : legacy; /* the version has been judged */
}

/* Whether the log says that the module refused the GPUs; it is not known what kind is on disk. */
static bool report_refusal(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count && !m->is_driver_loaded && !m->container; i++) {
        const struct gp_log_line *line =
            gp_driver_is_ours(&m->gpus[i]) ? refusal_of(exam, &m->gpus[i]) : NULL;
        if (!line)
            continue;
        const char *gpu = gp_driver_gpu_words(exam, &m->gpus[i]);
        const char *words = line->kmsg.kind == GP_KMSG_NEEDS_OPEN
                                ? "it needs the open kernel modules, but has the proprietary ones"
                            : line->kmsg.kind == GP_KMSG_NEEDS_PROPRIETARY
                                ? "it needs the proprietary kernel modules, but has the open ones"
                                : "its last driver is of an older branch";
        gp_exam_report(exam, GP_VERDICT_FAIL, "the installed driver does not support %s: %s", gpu,
                       words);
        if (gp_install_of(exam)->version[0])
            gp_exam_evidence(exam, "the installed driver", "%s", gp_install_of(exam)->version);
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
        gp_exam_why(exam, "The module finds no GPU that it supports, and is not loaded.");
        return true;
    }
    return false;
}

/* The packages of RPM Fusion build the open modules if a macro says so; true if it has to go. */
static bool fix_macro(struct gp_exam *exam)
{
    static const char path[] = "/etc/rpm/macros.nvidia-kmod";
    struct gp_wish wish = gp_driver_wish(exam);
    const char *version = gp_install_of(exam)->version;
    char text[1024];
    if (!wish.needs_proprietary || gp_files_read(&exam->files, path, text, sizeof(text)) < 0 ||
        !strstr(text, "_with_kmod_nvidia_open 1") ||
        (version[0] && !gp_wish_fits(&wish, gp_version_major(version))))
        return false;
    gp_exam_evidence(exam, path, "_with_kmod_nvidia_open 1: akmods builds the open modules");
    gp_exam_command(exam, "build the proprietary modules",
                    "sudo sed -i.before '/_with_kmod_nvidia_open/d' %s", path);
    gp_exam_command(exam, "", "sudo akmods --force --rebuild");
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* The packages of negativo17 and of NVIDIA for Fedora and RHEL build the variant that this file
 * names; true if changing it suffices. */
static bool fix_variant(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_machine *m = &exam->machine;
    struct gp_wish wish = gp_driver_wish(exam);
    char line[256];
    if (!gp_files_line(&exam->files, gp_install_variant, line, sizeof(line)) ||
        strncmp(line, "MODULE_VARIANT=", 15) != 0 || !gp_wish_is_possible(&wish) ||
        (in->version[0] && wish.last > 0 && gp_version_major(in->version) > wish.last) ||
        wish.needs_open == wish.needs_proprietary)
        return false;
    gp_exam_command(exam, "build the other variant of the module",
                    "sudo sed -i 's/^MODULE_VARIANT=.*/MODULE_VARIANT=%s/' %s",
                    wish.needs_open ? "kernel-open" : "kernel", gp_install_variant);
    if (strstr(in->source, "akmods")) {
        gp_exam_command(exam, "", "sudo akmods --force --rebuild");
    } else if (!in->source[0] && gp_driver_has_negativo17(exam)) {
        /* The prebuilt package has only one variant. */
        gp_driver_fix_headers(exam, m->kernel);
        gp_exam_command(exam, "build the module here, in place of the prebuilt package",
                        "sudo dnf install dkms-nvidia --allowerasing");
    } else {
        gp_driver_fix_module(exam, m->kernel, false);
    }
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* Only the kind of the modules is wrong: Ubuntu has either kind of each version, from whichever
 * repository the driver came. True if changing it suffices. */
static bool fix_kind(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    struct gp_wish wish = gp_driver_wish(exam);
    if (exam->machine.distro != GP_DISTRO_UBUNTU || in->package_count == 0 || !in->is_open ||
        !exam->machine.driver[0] || !wish.needs_proprietary || wish.needs_open ||
        !gp_wish_fits(&wish, gp_version_major(exam->machine.driver)))
        return false;
    gp_driver_fix_proprietary(exam);
    return true;
}

/* Amazon's images for EKS have both kinds of the modules; a script loads the open ones if a list
 * names all GPUs. True if this is such an image, with a driver that has a kind for these GPUs. */
static bool fix_eks(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *version = m->driver[0] ? m->driver : gp_install_of(exam)->version;
    const unsigned branch = gp_version_major(version);
    struct gp_wish wish = gp_driver_wish(exam);
    if (strcmp(m->distro_id, "eks") != 0 || !branch || !gp_wish_fits(&wish, branch))
        return false;
    const char *list = gp_exam_text(exam, "/etc/eks/nvidia-open-supported-devices-%u.txt", branch);
    const char *names = gp_files_text(&exam->files, &exam->arena, list, 1 << 16, NULL);
    for (size_t i = 0; i < m->gpu_count && names && wish.needs_open; i++) {
        const char *id = gp_exam_text(exam, "0x%04X", m->gpus[i].device);
        if (!gp_driver_is_ours(&m->gpus[i]) || strcasestr(names, id))
            continue;
        gp_exam_evidence(exam, list, "does not name %s", id);
        gp_exam_command(exam, "have the open modules loaded for this GPU",
                        "echo '%s NVIDIA GPU' | sudo tee -a %s", id, list);
        gp_driver_fix_reboot(exam, "");
        break;
    }
    gp_exam_advice(exam,
                   "for the node group: change to a newer release of its AMI, which chooses the "
                   "modules by the GPU; Amazon Linux 2 gets none any more: take "
                   "AL2023_x86_64_NVIDIA");
    return true;
}

void gp_driver_check_flavour(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_install *in = gp_install_of(exam);
    bool is_found =
        m->is_driver_loaded && report_misfits(exam, m->driver, m->is_driver_open,
                                              m->is_flavour_known && !m->is_driver_open, true);
    if (is_found) {
        gp_exam_evidence(exam, "/proc/driver/nvidia/version", "%s, the %s kernel modules",
                         m->driver, m->is_driver_open ? "open" : "proprietary");
        gp_exam_why(exam, "The module is loaded and ignores the GPU: nvidia-smi only reports that "
                          "no devices were found; only the kernel log has the reason.");
    } else {
        is_found = !m->container &&
                   report_misfits(exam, in->version, in->is_open, in->is_proprietary, false);
        if (is_found)
            gp_exam_why(exam, m->is_driver_loaded
                                  ? "The running driver is older and still works, but after the "
                                    "next boot the machine would have no usable GPU."
                                  : "The module finds no GPU that it supports, and is not loaded.");
    }
    if (!is_found && m->is_driver_loaded && !(m->driver[0] && m->is_flavour_known))
        gp_exam_report(exam, GP_VERDICT_SKIP,
                       "the version and kind of the loaded module cannot be read");
    if (is_found)
        (void)gp_log_show_kind(exam, verdicts, GP_ARRAY_LEN(verdicts));
    if ((is_found || report_refusal(exam)) && !fix_variant(exam) && !fix_macro(exam) &&
        !fix_kind(exam) && !fix_eks(exam))
        gp_driver_fix_install_or_nouveau(exam);
}

/* ---- kernel ---- */

/* Its modules are there, but depmod has not run, or not to its end. */
static void report_unlisted(struct gp_exam *exam, const char *folder, bool is_whole)
{
    const char *kernel = exam->machine.kernel;
    gp_exam_report(exam, is_whole ? GP_VERDICT_WARN : GP_VERDICT_FAIL,
                   "the list of the modules of kernel %s is missing", kernel);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/modules.dep", folder), "missing");
    gp_exam_why(exam, "modprobe finds no module without it, not even NVIDIA's. The installation "
                      "of the kernel or of a module was interrupted.");
    gp_exam_command(exam, "list them", "sudo depmod -a %s", gp_exam_quoted(exam, kernel));
    gp_driver_fix_reboot(exam, "");
}

/* Whether files of the kernel's package are there that depmod does not write. Without them it was
 * removed, and its directory has only files of others, such as NVIDIA's .run installer. */
static bool is_kernel_left(struct gp_exam *exam, const char *folder)
{
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%s/modules.order", folder)) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/modules.builtin", folder));
}

void gp_driver_check_kernel(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_machine *m = &exam->machine;
    if (in->modules_error < 0 && in->modules_error != -ENOENT)
        gp_exam_unreadable(exam, in->modules, in->modules_error);
    if (!in->has_modules || !m->kernel[0] || in->is_kernel_here)
        return;
    bool is_whole = m->is_driver_loaded && gp_files_exist(&exam->files, "/sys/module/nvidia_uvm");
    const char *folder = gp_exam_text(exam, "%s/%s", in->modules, m->kernel);
    if (is_kernel_left(exam, folder)) {
        report_unlisted(exam, folder, is_whole);
        return;
    }
    gp_exam_report(exam, is_whole ? GP_VERDICT_WARN : GP_VERDICT_FAIL,
                   "an update removed the running kernel: reboot");
    gp_exam_evidence(exam,
                     gp_files_exist(&exam->files, folder)
                         ? gp_exam_text(exam, "%s/modules.order", folder)
                         : folder,
                     "missing");
    if (in->other_kernel[0])
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", in->modules, in->other_kernel),
                         "the next kernel to boot has NVIDIA's module");
    gp_exam_why(exam, "The modules of %s are gone from the disk: none can be loaded any more, %s.",
                m->kernel, is_whole ? "but NVIDIA's are already loaded" : "including NVIDIA's");
    gp_driver_fix_reboot(exam, "boot the kernel that is on disk");
}
