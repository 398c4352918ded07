/* Whether the running kernel has NVIDIA's module: driver.module. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* nouveau releases a GPU only at the next boot. */
static bool is_held_by_other(const struct gp_machine *m)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (gp_driver_is_ours(&m->gpus[i]) && m->gpus[i].driver[0] &&
            strcmp(m->gpus[i].driver, "nvidia") != 0)
            return true;
    return false;
}

/* The fix already ends with a reboot. */
static bool is_reboot_told(const struct gp_exam *exam)
{
    const struct gp_fix *last = exam->last ? exam->last->fixes : NULL;
    while (last && last->next)
        last = last->next;
    return last && last->command && strcmp(last->command, "sudo reboot") == 0;
}

static void fix_load(struct gp_exam *exam)
{
    if (is_held_by_other(&exam->machine))
        gp_driver_fix_reboot(exam, "until then another driver is bound to the GPU");
    else
        gp_exam_command(exam, "load it", "sudo modprobe nvidia");
}

/* The folders of packages that bring a built module; RHEL's precompiled ones have the longest. ""
 * if none has it. */
static const char *unlisted_module(struct gp_exam *exam, const char *modules)
{
    static const char *const folders[] = {
        "extra/drivers/video/nvidia", "extra/nvidia",       "extra", "updates/dkms", "updates",
        "kernel/drivers/video",       "weak-updates/nvidia"};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        static const char *const ends[] = {"", ".xz", ".zst", ".gz"};
        for (size_t j = 0; j < GP_ARRAY_LEN(ends); j++) {
            const char *path = gp_exam_text(exam, "%s/%s/%s/nvidia.ko%s", modules,
                                            exam->machine.kernel, folders[i], ends[j]);
            if (gp_files_exist(&exam->files, path))
                return path;
        }
    }
    return "";
}

/* The file is there: nothing has to be installed or built. */
static void report_unlisted(struct gp_exam *exam, const char *list, const char *file)
{
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the NVIDIA module of kernel %s is on disk, but not in its modules.dep",
                   exam->machine.kernel);
    gp_exam_evidence(exam, file, "present");
    gp_exam_evidence(exam, list, "no nvidia.ko");
    gp_exam_why(exam, "modprobe finds only what modules.dep lists; depmod has not run for this "
                      "kernel since the module was installed.");
    gp_exam_command(exam, "list it", "sudo depmod -a");
    gp_exam_command(exam, "load it", "sudo modprobe nvidia");
}

/* Whether it is a link to a file that is gone; where it led to. */
static bool is_lost(struct gp_exam *exam, const char *path, char ret_target[GP_PATH_SIZE])
{
    struct stat st;
    return gp_files_stat_link(&exam->files, path, &st) == 0 && S_ISLNK(st.st_mode) &&
           gp_files_stat(&exam->files, path, &st) == -ENOENT &&
           gp_files_link(&exam->files, path, ret_target);
}

/* A link, as weak-updates has them, to the module of a kernel that was removed: the one that the
 * list names, or one that depmod has left out of it; NULL: none. */
static const char *lost_module(struct gp_exam *exam, char ret_target[GP_PATH_SIZE])
{
    static const char *const ends[] = {"", ".xz", ".zst", ".gz"};
    const struct gp_install *in = gp_install_of(exam);
    const char *top = gp_exam_text(exam, "%s/%s", in->modules, exam->machine.kernel);
    const char *path = gp_exam_text(exam, "%s/%s", top, in->module);
    char **names;
    if (in->module[0])
        return is_lost(exam, path, ret_target) ? path : NULL;
    const char *folder = gp_exam_text(exam, "%s/weak-updates", top);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        for (size_t j = 0; j < GP_ARRAY_LEN(ends); j++) {
            path = gp_exam_text(exam, "%s/%s/nvidia.ko%s", folder, names[i], ends[j]);
            if (is_lost(exam, path, ret_target))
                return path;
        }
    return NULL;
}

/* The kernel of "/lib/modules/5.14.0-687.12.1.el9_8.x86_64/extra/nvidia/nvidia.ko"; "": unknown. */
static const char *kernel_of(struct gp_exam *exam, const char *module)
{
    static const char mark[] = "/modules/";
    const char *at = strstr(module, mark);
    return at ? gp_exam_text(exam, "%.*s", (int)strcspn(at + strlen(mark), "/"), at + strlen(mark))
              : "";
}

static bool report_lost(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    char target[GP_PATH_SIZE];
    const char *path = lost_module(exam, target);
    if (!path)
        return false;
    const char *kernel = kernel_of(exam, target);
    gp_exam_report(exam, GP_VERDICT_FAIL, "the NVIDIA module of kernel %s leads nowhere",
                   exam->machine.kernel);
    gp_exam_evidence(exam, path, "a link to %s, which is not there", target);
    gp_exam_why(exam, "It is the module of another kernel%s%s, which is not installed.",
                kernel[0] ? ", " : "", kernel);
    if (in->source[0])
        gp_driver_fix_module(exam, exam->machine.kernel, false);
    else
        gp_driver_fix_update(exam);
    gp_exam_command(exam, "load it", "sudo modprobe nvidia");
    if (kernel[0] && !in->source[0] && exam->machine.distro == GP_DISTRO_RHEL)
        gp_exam_command(exam,
                        "if there is no module for this kernel yet: install that one, and boot it",
                        "sudo dnf install kernel-%s", gp_exam_quoted(exam, kernel));
    return true;
}

/* The kernel is kept at an older version, while the package has modules for the current one only;
 * true if this is so. */
static bool fix_held_kernel(struct gp_exam *exam)
{
    enum { FIRST_WITHOUT_PROPRIETARY = 590 };
    const struct gp_install *in = gp_install_of(exam);
    const char *kernel = exam->machine.kernel, *package = gp_kernels_package(exam, kernel);
    const char *holder = gp_kernels_holder(exam, package);
    const char *headers = gp_exam_text(exam, "%s/%s/build", in->modules, kernel);
    bool is_open = gp_version_major(in->version) >= FIRST_WITHOUT_PROPRIETARY;
    for (size_t i = 0; i < in->package_count; i++)
        is_open = is_open || strncmp(in->packages[i].name, "nvidia-open", 11) == 0;
    if (!holder || in->source[0])
        return false;
    gp_exam_evidence(exam, "/etc/pacman.conf", "%s", holder);
    gp_exam_why(exam,
                "pacman leaves %s at the version of this kernel, and updates the driver, whose "
                "package has modules for the newest kernel only. With DKMS they are built for the "
                "kernel that is there.",
                package);
    if (!gp_files_exist(&exam->files, headers))
        gp_exam_advice(exam,
                       "first install %s-headers of the version of %s, from "
                       "https://archive.archlinux.org/packages/ with pacman -U",
                       package, package);
    gp_exam_command(exam, "in place of the package with built modules", "sudo pacman -Syu %s",
                    is_open ? "nvidia-open-dkms" : "nvidia-dkms");
    gp_driver_fix_reboot(exam, "");
    gp_exam_advice(exam,
                   "or, if nothing needs this version: take %s and %s-headers off that line, "
                   "and sudo pacman -Syu",
                   package, package);
    return true;
}

/* Arch's package with the module came without the kernel that it is for; true if this is so. */
static bool fix_partial_upgrade(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *running = gp_exam_text(exam, "%s/%s/pkgbase", in->modules, exam->machine.kernel);
    const char *other = gp_exam_text(exam, "%s/%s/pkgbase", in->modules, in->other_kernel);
    if (exam->machine.distro != GP_DISTRO_ARCH || !in->other_kernel[0] ||
        !gp_files_exist(&exam->files, running) || gp_files_exist(&exam->files, other))
        return false;
    gp_exam_evidence(exam, other, "missing: that kernel is not installed, only the module for it");
    if (fix_held_kernel(exam))
        return true;
    gp_exam_why(exam, "The driver was updated without the kernel. Arch supports only updates of "
                      "all packages together.");
    gp_exam_command(exam, "", "sudo pacman -Syu");
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* The repositories of RHEL's family may have only the headers of their newest kernel, and Fedora's
 * have: an update that was not followed by a reboot has installed them. */
static void propose_newer_kernel(struct gp_exam *exam)
{
    static const char folder[] = "/usr/src/kernels";
    const struct gp_machine *m = &exam->machine;
    bool is_fedora = m->distro == GP_DISTRO_FEDORA;
    const char *newer = NULL;
    char **names;
    long n = is_fedora || m->distro == GP_DISTRO_RHEL
                 ? gp_files_list(&exam->files, &exam->arena, folder, &names)
                 : 0;
    for (long i = 0; i < n; i++) {
        const char *end = strrchr(names[i], '.');
        if (end && strcmp(end + 1, m->arch) == 0 && strverscmp(names[i], m->kernel) > 0)
            newer = names[i];
    }
    if (newer)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", folder, newer), "of a newer kernel");
    if (newer || is_fedora)
        gp_exam_remedy(exam, GP_REMEDY_NEWER_KERNEL_AND_HEADERS, NULL, NULL);
}

/* What builds the module from the source may be missing. */
static void show_builder(struct gp_exam *exam)
{
    const char *builder = gp_driver_missing_builder(exam);
    if (builder)
        gp_exam_evidence(exam, gp_exam_text(exam, "/usr/sbin/%s", builder),
                         "missing, and not in /usr/bin: %s is not installed", builder);
}

static void explain_missing(struct gp_exam *exam, bool has_any)
{
    const char *builder = gp_driver_missing_builder(exam);
    if (builder)
        gp_exam_why(exam,
                    "Each kernel needs its own module. %s builds it from the source, and is "
                    "missing.",
                    builder);
    else if (has_any)
        gp_exam_why(exam, "Each kernel needs its own module; none was built or installed after a "
                          "kernel update.");
    else
        gp_exam_why(exam, "Only libraries of the driver are installed, no module.");
}

/* Arch's packages have modules for only one of its kernels, Manjaro's for one each: adds how to get
 * the module of the running kernel, if it is another one; false: it is not, or they are built. */
static bool fix_kernel_package(struct gp_exam *exam)
{
    static const struct {
        const char *package, *kernel;
        bool is_open;
    } packages[] = {{"nvidia", "linux", false},
                    {"nvidia-open", "linux", true},
                    {"nvidia-lts", "linux-lts", false},
                    {"nvidia-open-lts", "linux-lts", true}};
    const struct gp_install *in = gp_install_of(exam);
    enum { FIRST_WITHOUT_PROPRIETARY = 590 };
    bool is_manjaro = strcmp(exam->machine.distro_id, "manjaro") == 0;
    if ((exam->machine.distro != GP_DISTRO_ARCH && !is_manjaro) || in->source[0])
        return false;
    const char *kernel = gp_kernels_package(exam, exam->machine.kernel);
    if (is_manjaro && strcmp(kernel, "linux") != 0) {
        gp_exam_command(exam, "install the modules for this kernel", "sudo pacman -Syu %s-nvidia",
                        gp_exam_quoted(exam, kernel));
        gp_exam_command(exam, "", "sudo reboot");
        return true;
    }
    bool is_other = false, is_open = gp_version_major(in->version) >= FIRST_WITHOUT_PROPRIETARY;
    for (size_t i = 0; i < in->package_count; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(packages); k++)
            if (strcmp(in->packages[i].name, packages[k].package) == 0) {
                if (strcmp(packages[k].kernel, kernel) == 0)
                    return false;
                is_other = true;
                is_open = is_open || packages[k].is_open;
            }
    if (!is_other)
        return false;
    gp_exam_command(exam, "the installed package has modules for another kernel only: build them",
                    "sudo pacman -Syu %s %s", is_open ? "nvidia-open-dkms" : "nvidia-dkms",
                    gp_exam_quoted(exam, gp_exam_text(exam, "%s-headers", kernel)));
    gp_exam_command(exam, "", "sudo reboot");
    return true;
}

/* CachyOS has a package of modules for each of its kernels, "linux-cachyos-lts-nvidia-open"; true
 * if only that of another one is installed. */
static bool fix_kernel_of_cachyos(struct gp_exam *exam)
{
    static const char *const words[] = {"linux-cachyos", NULL};
    enum { FIRST_WITHOUT_PROPRIETARY = 590 };
    const struct gp_install *in = gp_install_of(exam);
    const char *kernel = gp_kernels_package(exam, exam->machine.kernel);
    struct gp_package *packages;
    bool is_other = false, is_open = gp_version_major(in->version) >= FIRST_WITHOUT_PROPRIETARY;
    if (exam->machine.distro != GP_DISTRO_ARCH || in->source[0] ||
        strncmp(kernel, words[0], strlen(words[0])) != 0)
        return false;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++) {
        const char *name = packages[i].name, *kind = strstr(name, "-nvidia");
        if (!kind)
            continue;
        if (strlen(kernel) == (size_t)(kind - name) && strncmp(name, kernel, strlen(kernel)) == 0)
            return false; /* it was not updated with its kernel */
        is_other = true;
        is_open = is_open || strcmp(kind, "-nvidia-open") == 0;
    }
    if (!is_other)
        return false;
    gp_exam_command(
        exam, "the installed package has modules for another kernel only", "sudo pacman -Syu %s",
        gp_exam_quoted(exam, gp_exam_text(exam, "%s-nvidia%s", kernel, is_open ? "-open" : "")));
    gp_exam_command(exam, "", "sudo reboot");
    return true;
}

/* Their repositories may have a kernel earlier than the package with the module for it. */
static bool is_prebuilt(enum gp_distro distro)
{
    return distro == GP_DISTRO_FEDORA || distro == GP_DISTRO_RHEL || distro == GP_DISTRO_SUSE;
}

static bool report_forgotten(struct gp_exam *exam)
{
    bool is_new = false;
    if (!gp_driver_report_forgotten(exam, &is_new))
        return false;
    if (is_new)
        gp_driver_fix_reboot(exam, "the kernel may have been updated, too");
    else
        fix_load(exam);
    return true;
}

void gp_driver_check_module(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_machine *m = &exam->machine;
    if (!m->is_driver_loaded && in->modules_error < 0 && in->modules_error != -ENOENT)
        gp_exam_unreadable(exam, in->modules, in->modules_error);
    if (!m->is_driver_loaded && report_lost(exam))
        return;
    if (m->is_driver_loaded || in->module[0] || !in->has_modules || !m->kernel[0])
        return;
    const char *list = gp_exam_text(exam, "%s/%s/modules.dep", in->modules, m->kernel);
    if (!in->is_list_readable) {
        gp_exam_unreadable(exam, list, -EINVAL);
        return;
    }
    const char *file = unlisted_module(exam, in->modules);
    if (file[0]) {
        report_unlisted(exam, list, file);
        return;
    }
    if (report_forgotten(exam))
        return;
    bool has_any = in->other_kernel[0] || in->source[0] || in->run_trace[0];
    gp_exam_report(exam, GP_VERDICT_FAIL, "kernel %s has no NVIDIA module%s", m->kernel,
                   in->other_kernel[0] ? gp_exam_text(exam, "; %s has one", in->other_kernel) : "");
    gp_exam_evidence(exam, list, "no nvidia.ko");
    if (in->source[0])
        gp_exam_evidence(exam, in->source, "the source of the module is installed");
    const char *headers = gp_exam_text(exam, "%s/%s/build", in->modules, m->kernel);
    bool wants_headers = in->source[0] && !gp_files_exist(&exam->files, headers);
    if (wants_headers)
        gp_exam_evidence(exam, headers, "missing: the headers of this kernel are not installed");
    show_builder(exam);
    if (in->stale_source[0])
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/source", in->stale_source),
                         "leads nowhere: left over from a removed driver; dkms stops at it");
    explain_missing(exam, has_any);
    if (!has_any) {
        gp_driver_fix_install(exam);
        return;
    }
    if (fix_partial_upgrade(exam))
        return;
    if (in->other_kernel[0] && gp_kernels_are_alike(in->other_kernel, m->kernel) &&
        strverscmp(in->other_kernel, m->kernel) > 0) {
        gp_driver_fix_reboot(exam, "into the newer kernel, which has the module");
        return;
    }
    if (in->stale_source[0])
        gp_exam_command(exam, "remove what is left of the old driver", "sudo rm -r %s",
                        gp_exam_quoted(exam, in->stale_source));
    if (fix_kernel_package(exam) || fix_kernel_of_cachyos(exam))
        return;
    gp_driver_fix_build(exam);
    if (!in->source[0] && in->run_trace[0])
        return;
    if (m->distro == GP_DISTRO_ARCH && !in->source[0]) {
        gp_driver_fix_reboot(exam, "");
        return;
    }
    if (is_reboot_told(exam))
        return;
    fix_load(exam);
    if (in->other_kernel[0] && !in->source[0] && is_prebuilt(m->distro))
        gp_driver_fix_other_kernel(exam);
    if (wants_headers)
        propose_newer_kernel(exam);
}
