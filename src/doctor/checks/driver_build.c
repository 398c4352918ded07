/* Builds of the module that failed, by their logs. */
#include "doctor/checks/driver.h"

#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/exam.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/readers/toolkit.h"
#include "doctor/remedy.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

/* From "… (x86_64-linux-gnu-gcc-13 (Ubuntu …", "(gcc version 9.3.0 (Ubuntu …", "(gcc (Ubuntu
 * 11.2.0-19ubuntu1) 11.2.0, …", "(gcc10-gcc (GCC) 10.5.0 …". */
static unsigned gcc_of_kernel(struct gp_exam *exam)
{
    static const char *const marks[] = {"gcc-", "gcc version ", "gcc ("};
    char line[1024];
    unsigned found = 0;
    bool is_known = gp_files_line(&exam->files, "/proc/version", line, sizeof(line));
    for (size_t i = 0; i < GP_ARRAY_LEN(marks) && is_known && found == 0; i++) {
        const char *number = strstr(line, marks[i]);
        number = number ? number + strlen(marks[i]) : NULL;
        if (number && number[-1] == '(')
            number = strstr(number, ") ") ? strstr(number, ") ") + 2 : NULL;
        found = number ? gp_version_major(number) : 0;
    }
    return found;
}

void gp_driver_fix_compiler(struct gp_exam *exam, unsigned version, bool is_default_older)
{
    enum gp_distro distro = exam->machine.distro;
    if (version == 0 || (distro != GP_DISTRO_DEBIAN && distro != GP_DISTRO_UBUNTU)) {
        gp_exam_advice(exam, "install the compiler that the kernel was built with: /proc/version "
                             "and the line name it");
        return;
    }
    if (!is_default_older ||
        !gp_files_exist(&exam->files, gp_exam_text(exam, "/usr/bin/gcc-%u", version)))
        gp_exam_command(exam, "install the compiler that the kernel was built with",
                        "sudo apt install gcc-%u", version);
    if (is_default_older)
        gp_exam_command(exam, "make the compiler of the kernel the default",
                        "sudo update-alternatives --install /usr/bin/gcc gcc /usr/bin/gcc-%u %u",
                        version, version);
}

/* Distributions with an old default and newer ones next to it, which a kernel of ELRepo, or the
 * newer ones of Amazon Linux 2, were built with. False: this is none of them. */
static bool fix_with_toolset(struct gp_exam *exam, const char *kernel)
{
    const struct gp_machine *m = &exam->machine;
    static const unsigned usual[][2] = {{8, 8}, {9, 11}, {10, 14}}; /* RHEL, its gcc */
    unsigned gcc = gcc_of_kernel(exam);
    bool is_rhel = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(usual) && m->distro == GP_DISTRO_RHEL; i++)
        is_rhel =
            is_rhel || (gp_version_major(m->distro_version) == usual[i][0] && gcc > usual[i][1]);
    bool is_amazon = strcmp(m->distro_id, "amzn2") == 0 && gcc == 10;
    const char *word = gp_exam_quoted(exam, kernel);
    static const char note[] = "install the compiler that the kernel was built with",
                      build[] = "build the driver's module with it";
    if (is_rhel) {
        gp_exam_command(exam, note, "sudo dnf install gcc-toolset-%u", gcc);
        gp_exam_command(exam, build, "sudo scl enable gcc-toolset-%u -- dkms autoinstall -k %s",
                        gcc, word);
    } else if (is_amazon) {
        gp_exam_command(exam, note, "sudo yum install gcc10");
        gp_exam_command(exam, build, "sudo CC=gcc10-gcc dkms autoinstall -k %s", word);
    }
    if (is_rhel || is_amazon)
        gp_exam_why(exam,
                    "The kernel was built with gcc %u, and the default compiler is another one.",
                    gcc);
    return is_rhel || is_amazon;
}

/* Kernels that the driver's build refuses, by its words; a variable lets it go on. */
static const struct {
    const char *mark, *variable, *words;
} refused[] = {
    {"PREEMPT_RT sanity", "IGNORE_PREEMPT_RT_PRESENCE", "a realtime kernel (PREEMPT_RT)"},
    {"Xen sanity", "IGNORE_XEN_PRESENCE", "a kernel for Xen"},
};

static bool fix_refused(struct gp_exam *exam, const char *error, const char *kernel)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(refused); i++) {
        if (!strstr(error, refused[i].mark))
            continue;
        gp_exam_why(exam, "This is %s, which NVIDIA's driver does not support: its build stops.",
                    refused[i].words);
        gp_exam_advice(exam, "boot the distribution's standard kernel");
        gp_exam_command(exam, "or build it for this kernel all the same, without support",
                        "sudo %s=1 dkms autoinstall -k %s", refused[i].variable,
                        gp_exam_quoted(exam, kernel));
        return true;
    }
    return false;
}

/* The kernel's sources are there, but were not configured and built. */
static bool fix_unprepared(struct gp_exam *exam, const char *error, const char *kernel)
{
    if (!strstr(error, "Kernel configuration is invalid"))
        return false;
    gp_exam_why(exam, "The sources of this kernel are not prepared: a module needs what building "
                      "the kernel creates in them.");
    gp_exam_advice(exam,
                   "build the kernel in %s/%s/build, or install the headers that its package has",
                   gp_install_of(exam)->modules, kernel);
    gp_driver_fix_module(exam, kernel, false);
    return true;
}

/* An older compiler than the kernel's does not know all of its options. An error in the driver's
 * source has another cause. */
static bool is_older_compiler(const struct gp_failed_build *build)
{
    return build->used_gcc > 0 && build->used_gcc < build->kernel_gcc &&
           strncmp(build->error, "make", 4) == 0;
}

/* The driver's build refuses another compiler than the kernel's, as do the kernel's own plugins for
 * it; a distribution's newer kernel is built with the installed one. */
static bool is_mismatched(const struct gp_failed_build *build)
{
    return is_older_compiler(build) || strstr(build->error, "CC version check") ||
           strstr(build->error, "Compiler version check failed") ||
           strstr(build->error, "gcc-version-check") ||
           strstr(build->error, "incompatible gcc/plugin");
}

static void fix_mismatched(struct gp_exam *exam, const struct gp_failed_build *build,
                           const char *kernel)
{
    bool is_older = is_older_compiler(build);
    if (is_older)
        gp_exam_evidence(exam, build->log, "the kernel was built by gcc %u, the module by gcc %u",
                         build->kernel_gcc, build->used_gcc);
    gp_exam_why(exam, "The %s compiler is not the one that the kernel was built with.",
                is_older ? "default" : "installed");
    if (fix_with_toolset(exam, kernel))
        return;
    if (gp_machine_has_apt(&exam->machine))
        gp_driver_fix_compiler(exam, is_older ? build->kernel_gcc : gcc_of_kernel(exam), is_older);
    else if (gp_kernels_is_own(exam, kernel))
        gp_exam_advice(exam,
                       "build the kernel's package, %s, and its headers again with this compiler, "
                       "or a newer release of it, and reboot into it",
                       gp_kernels_package(exam, kernel));
    else
        gp_exam_advice(exam, "update the system, with kernel and headers that are built with this "
                             "compiler, and reboot");
    if (!is_older && !strstr(build->error, "plugin"))
        gp_exam_command(exam, "or build it with this compiler all the same",
                        "sudo IGNORE_CC_MISMATCH=1 dkms autoinstall -k %s",
                        gp_exam_quoted(exam, kernel));
    else if (gp_kernels_is_own(exam, kernel))
        gp_exam_command(exam, "then, in that kernel, unless pacman has done so",
                        "sudo dkms autoinstall");
    else
        gp_driver_fix_module(exam, kernel, false);
}

/* NVIDIA no longer adapts the last branch of old GPUs to new kernels. */
static bool is_unmaintained(struct gp_exam *exam, const char *version)
{
    enum { OLDEST_MAINTAINED = 535 };
    struct gp_wish wish = gp_driver_wish(exam);
    return wish.last > 0 && wish.last < OLDEST_MAINTAINED && gp_version_major(version) == wish.last;
}

/* Packages of others, with patches for kernels that Ubuntu's packages of the branch do not build
 * on. */
static bool fix_patched(struct gp_exam *exam, unsigned branch, const char *kernel)
{
    static const struct {
        unsigned branch;
        const char *first_without, *archive, *package;
    } rows[] = {{390, "6.5", "ppa:kelebek333/build", "nvidia-legacy-390xx-driver"},
                {340, "5.13", "ppa:kelebek333/nvidia-legacy", "xorg-modulepath-fix nvidia-340"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows) && exam->machine.distro == GP_DISTRO_UBUNTU; i++) {
        if (rows[i].branch != branch || gp_version_compare(kernel, rows[i].first_without) < 0)
            continue;
        gp_exam_command(exam, "not Ubuntu's: packages with patches for such kernels",
                        "sudo add-apt-repository %s && sudo apt update", rows[i].archive);
        gp_exam_command(exam, "", "sudo apt install %s", rows[i].package);
        gp_driver_fix_reboot(exam, "");
        gp_exam_advice(exam, "or remove the driver: nouveau then draws, without CUDA");
        return true;
    }
    return false;
}

static void fix_unmaintained(struct gp_exam *exam, const char *version, const char *kernel)
{
    unsigned branch = gp_version_major(version);
    gp_exam_why(exam,
                "Branch %u is the last for this GPU, and NVIDIA does not adapt it to new "
                "kernels any more; distributions patch it for a while.",
                branch);
    if (exam->machine.distro == GP_DISTRO_ARCH) {
        gp_exam_command(exam, "then boot the kernel linux-lts, for which it can be built",
                        "sudo pacman -S linux-lts linux-lts-headers");
        gp_exam_advice(exam, "or update the AUR packages of branch %u, which patch it", branch);
        return;
    }
    if (fix_patched(exam, branch, kernel))
        return;
    gp_driver_fix_update(exam);
    gp_driver_fix_module(exam, kernel, false);
    gp_exam_advice(exam,
                   "if no package of branch %u builds: boot an older kernel, of a long-term "
                   "branch, and keep it",
                   branch);
}

/* The kernels of CachyOS for Fedora come with modules, of a driver that is patched for them. */
static void offer_modules_of_kernel(struct gp_exam *exam, const char *kernel)
{
    if (exam->machine.distro != GP_DISTRO_FEDORA || !strstr(kernel, "-cachyos") ||
        gp_driver_wish(exam).needs_proprietary)
        return;
    gp_exam_command(exam, "install the modules that are built for it, in place of akmods",
                    "sudo dnf install kernel-cachyos%s-nvidia-open",
                    strstr(kernel, ".lto.") ? "-lto" : "");
}

/* Whether a kernel is from Debian's backports: "6.12.9+bpo-amd64"; since trixie they are named like
 * those of the release, "6.19.6+deb13-amd64", and only their version shows it. */
static bool is_from_backports(const struct gp_machine *m, const char *kernel)
{
    static const struct {
        const char *mark, *first; /* the first version that is too new for the release */
    } rows[] = {{"+deb13-", "6.13"}};
    if (strstr(kernel, "bpo") || strstr(kernel, "-0.deb"))
        return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        if (strstr(kernel, rows[i].mark))
            return m->distro == GP_DISTRO_DEBIAN && gp_version_compare(kernel, rows[i].first) >= 0;
    return false;
}

/* The driver of the release was not made for the newer kernels of Debian's backports. */
static bool fix_backported(struct gp_exam *exam, const char *kernel)
{
    enum { LAST_OF_NVIDIA = 580 };
    struct gp_wish wish = gp_driver_wish(exam);
    struct gp_offer_choice choice = gp_offer_choose(&exam->machine, &wish);
    if (exam->machine.distro != GP_DISTRO_DEBIAN || !is_from_backports(&exam->machine, kernel) ||
        choice.from != GP_OFFER_DISTRO || (wish.last > 0 && wish.last < LAST_OF_NVIDIA) ||
        gp_version_major(gp_install_of(exam)->version) > choice.branch)
        return false;
    gp_exam_why(exam, "The kernel is from Debian's backports, and newer than what the driver of "
                      "the release was made for.");
    gp_exam_remedy(exam,
                   wish.last > 0 ? GP_REMEDY_INSTALL_DRIVER_580 : GP_REMEDY_INSTALL_DRIVER_NVIDIA,
                   gp_toolkit_repository(exam), NULL);
    gp_exam_advice(exam,
                   "or boot the kernel of the release, linux-image-%s without backports, and "
                   "keep it",
                   gp_machine_dpkg_arch(&exam->machine));
    return true;
}

/* The packages of exactly this kernel, quoted; "": none. */
static const char *packages_of(struct gp_exam *exam, const char *kernel)
{
    static const char *const words[] = {"linux-headers-", "linux-image-", "linux-modules-", NULL};
    struct gp_package *packages;
    const char *names = "";
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++) {
        const char *at = strstr(packages[i].name, kernel);
        if (at && at[-1] == '-' && at[strlen(kernel)] == '\0')
            names = gp_exam_text(exam, "%s %s", names, gp_exam_quoted(exam, packages[i].name));
    }
    return names;
}

/* A kernel from outside of the distribution, next to a running one that has the module: nobody
 * promises that the release's driver builds for it, and until it does, or the kernel is gone, dpkg
 * fails at the kernel's packages each time. */
static bool fix_foreign_kernel(struct gp_exam *exam, const char *kernel)
{
    const struct gp_machine *m = &exam->machine;
    bool has_dpkg = m->distro == GP_DISTRO_DEBIAN || m->distro == GP_DISTRO_UBUNTU;
    const char *packages = has_dpkg ? packages_of(exam, kernel) : "";
    if (!packages[0] || strcmp(kernel, m->kernel) == 0 || !gp_install_of(exam)->module[0] ||
        !gp_kernels_is_of_others(kernel))
        return false;
    gp_exam_why(exam,
                "The source of driver %s does not compile for this kernel, which is not from %s: "
                "the driver is older than the kernel.",
                gp_install_of(exam)->version, m->distro_name);
    gp_exam_command(exam,
                    gp_exam_text(exam, "stay with kernel %s, which has the module", m->kernel),
                    "sudo apt purge%s", packages);
    gp_exam_command(exam, "finish what the failed build has interrupted",
                    "sudo dpkg --configure -a");
    gp_exam_advice(exam, "or keep that kernel, and install a newer driver that is made for it, if "
                         "the release, its backports or NVIDIA's repository has one for this GPU");
    return true;
}

/* A kernel that is newer than the release, from its backports or from others. */
static bool fix_newer_kernel(struct gp_exam *exam, const char *kernel)
{
    return fix_backported(exam, kernel) || fix_foreign_kernel(exam, kernel);
}

/* The package with the module was built, but dnf did not install it: the rest of the driver has
 * another version, from another repository or from before an update that was not finished. */
static void fix_refused_package(struct gp_exam *exam, const char *kernel)
{
    const struct gp_driver_library *library = gp_install_library(gp_install_of(exam));
    if (library)
        gp_exam_evidence(exam, library->path, "links to %s", library->real);
    if (gp_driver_fix_repositories(exam, gp_install_of(exam)->version))
        return;
    gp_exam_why(exam, "The source of the module has another version than the rest of the driver, "
                      "and dnf installs only a module of the same version.");
    gp_driver_fix_update(exam);
    gp_driver_fix_module(exam, kernel, false);
    gp_driver_fix_reboot(exam, "");
}

/* What the build lacks can be installed; otherwise another release of the driver compiles. */
static void fix_installer(struct gp_exam *exam, const struct gp_failed_build *build,
                          const struct gp_lost_symbol *lost)
{
    const char *error = build->error;
    bool wants_headers = strstr(error, "No such file") && strstr(error, "/lib/modules/");
    if (strstr(error, "No space left on device")) {
        gp_exam_command(exam, "free some space where it is full", "df -h / /tmp /var");
    } else if (is_mismatched(build)) {
        gp_exam_why(exam, "The installed compiler is not the one that the kernel was built with.");
        gp_driver_fix_compiler(exam, gcc_of_kernel(exam), true);
    } else if (strstr(error, "unrecognized command")) {
        gp_driver_fix_compiler(exam, gcc_of_kernel(exam), true);
    } else if (gp_driver_lacks_tool(error)) {
        gp_driver_fix_tool(exam, error);
    } else if (wants_headers) {
        gp_driver_fix_headers(exam, build->kernel);
    } else if (!gp_driver_fix_lost_symbol(exam, lost, build->kernel)) {
        gp_driver_fix_release(exam, build);
        return;
    }
    gp_exam_advice(exam, "then run the driver's .run installer again, with --dkms so that future "
                         "kernels get the module automatically");
}

/* The folder of the source in which make was to build, "uvm", if dkms.conf names it and the package
 * with the source lacks it; "": it is there, or make stopped for another reason. make's words for
 * that depend on the language. */
static const char *missing_folder(struct gp_exam *exam, const struct gp_failed_build *build)
{
    static const char mark[] = ": *** ", dkms[] = "/var/lib/dkms/";
    const char *source = gp_install_of(exam)->source;
    const char *at = strncmp(build->error, "make", 4) == 0 ? strstr(build->error, mark) : NULL;
    size_t n = at ? strcspn(at + sizeof(mark) - 1, ": /\t") : 0;
    if (n == 0 || at[sizeof(mark) - 1 + n] != ':' || strncmp(source, dkms, sizeof(dkms) - 1) != 0 ||
        strncmp(build->log, source, strlen(source)) != 0 || build->log[strlen(source)] != '/')
        return "";
    const char *name = gp_exam_text(exam, "%.*s", (int)n, at + sizeof(mark) - 1);
    const char *config = gp_exam_text(exam, "%s/source/dkms.conf", source);
    const char *text = gp_files_text(&exam->files, &exam->arena, config, 1 << 16, NULL);
    bool is_named = text && (strstr(text, gp_exam_text(exam, "\"%s\"", name)) ||
                             strstr(text, gp_exam_text(exam, "-C %s ", name)));
    return is_named &&
                   !gp_files_exist(&exam->files, gp_exam_text(exam, "%s/source/%s", source, name))
               ? name
               : "";
}

/* The archive of NVIDIA's installer has what the package lacks. False: nothing. */
static bool fix_missing_folder(struct gp_exam *exam, const struct gp_failed_build *build,
                               const char *kernel)
{
    const char *source = gp_install_of(exam)->source, *folder = missing_folder(exam, build);
    char real[GP_PATH_SIZE];
    if (!folder[0] || !gp_files_real(&exam->files, gp_exam_text(exam, "%s/source", source), real))
        return false;
    const char *version = strrchr(source, '/') + 1, *module = version - 1;
    while (module[-1] != '/')
        module--;
    const char *driver = gp_exam_text(exam, "%.*s", (int)strspn(version, "0123456789."), version);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/dkms.conf", real), "builds in %s", folder);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", real, folder), "missing");
    gp_exam_why(exam, "The installed source is incomplete: it cannot be built for any kernel.");
    gp_exam_advice(exam,
                   "update the package with the source, or install its former release again; "
                   "if there is none, take the files from NVIDIA's archive of %s:",
                   driver);
    if (strcmp(exam->machine.arch, "x86_64") != 0)
        return true;
    const char *name = gp_exam_text(exam, "NVIDIA-Linux-x86_64-%s", driver);
    gp_exam_command(exam, "",
                    "curl -fLO https://download.nvidia.com/XFree86/Linux-x86_64/%s/%s.run", driver,
                    name);
    gp_exam_command(exam, "unpack it, without installing anything", "sh %s.run --extract-only",
                    name);
    /* "kernel/uvm", "kernel-open" */
    gp_exam_command(exam, "", "sudo cp -r %s/%s%s %s/", name,
                    strncmp(folder, "kernel", 6) == 0 ? "" : "kernel/",
                    gp_exam_quoted(exam, folder), gp_exam_quoted(exam, real));
    gp_exam_command(
        exam, "build the driver's module for this kernel", "sudo dkms install -m %s -v %s -k %s",
        gp_exam_quoted(exam, gp_exam_text(exam, "%.*s", (int)(version - 1 - module), module)),
        gp_exam_quoted(exam, version), gp_exam_quoted(exam, kernel));
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* A rolling distribution has only the newest driver, for the newest kernel. */
static bool is_rolling(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_install *in = gp_install_of(exam);
    return (m->distro == GP_DISTRO_ARCH && in->package_count > 0 &&
            gp_driver_wish(exam).last == 0) ||
           (m->distro == GP_DISTRO_FEDORA && in->source[0]) ||
           (m->distro == GP_DISTRO_OTHER &&
            gp_remedy_other(m->distro_id, GP_REMEDY_UPDATE_PACKAGES));
}

/* Another installed one that has the module is offered in any case. */
static void offer_kernel_of_release(struct gp_exam *exam, const char *kernel)
{
    if (gp_kernels_is_of_others(kernel) && !gp_install_of(exam)->other_kernel[0])
        gp_exam_advice(exam, "or boot the kernel of %s itself, which its drivers are built for",
                       exam->machine.distro_name);
}

/* What the kernel and its headers, or the source, have or lack. */
static bool fix_kernel(struct gp_exam *exam, const struct gp_failed_build *build,
                       const struct gp_lost_symbol *lost, const char *kernel)
{
    const char *error = build->error;
    if (gp_driver_fix_unfinished_headers(exam, kernel) || fix_refused(exam, error, kernel) ||
        fix_unprepared(exam, error, kernel) || fix_missing_folder(exam, build, kernel))
        return true;
    if (!gp_driver_fix_lost_symbol(exam, lost, kernel))
        return false;
    gp_driver_fix_module(exam, kernel, false);
    return true;
}

/* A driver of NVIDIA's installer, or the last for the GPU: packages have no newer one. */
static bool fix_last_source(struct gp_exam *exam, const struct gp_failed_build *build,
                            const char *kernel)
{
    const struct gp_install *in = gp_install_of(exam);
    struct gp_failed_build of_dkms = *build;
    of_dkms.version = in->version;
    if (in->package_count == 0 && (in->run_trace[0] || gp_driver_is_vgpu_host(exam)))
        gp_driver_fix_release(exam, &of_dkms);
    else if (is_unmaintained(exam, in->version))
        fix_unmaintained(exam, in->version, kernel);
    else
        return false;
    return true;
}

/* A missing compiler or missing headers; otherwise the driver is older than the kernel, and a newer
 * one builds. */
static void fix_failed_build(struct gp_exam *exam, const struct gp_failed_build *build,
                             const struct gp_lost_symbol *lost)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *kernel = build->kernel[0] ? build->kernel : exam->machine.kernel;
    const char *error = build->error;
    bool wants_compiler =
        strstr(error, "unrecognized command") || gp_driver_lacks_tool(error) ||
        (strstr(error, "not found") && (strstr(error, "gcc") || strstr(error, "clang") ||
                                        strstr(error, "cc:") || strstr(error, "make:")));
    bool wants_headers = strstr(error, "No such file") &&
                         (strstr(error, "linux/") || strstr(error, "/lib/modules/"));
    if (strstr(error, "No space left on device")) {
        gp_exam_command(exam, "free some space where it is full", "df -h / /tmp /var");
        gp_driver_fix_module(exam, kernel, false);
        return;
    }
    if (fix_kernel(exam, build, lost, kernel))
        return;
    if (is_mismatched(build)) {
        fix_mismatched(exam, build, kernel);
        return;
    }
    if (build->missing[0]) {
        gp_exam_command(exam, "install what the build needs", "sudo dnf install %s",
                        gp_exam_quoted(exam, build->missing));
        gp_driver_fix_module(exam, kernel, false);
        return;
    }
    if (!wants_compiler && !wants_headers && fix_last_source(exam, build, kernel))
        return;
    if (strstr(error, "unrecognized") && fix_with_toolset(exam, kernel))
        return;
    if (!wants_compiler && !wants_headers && fix_newer_kernel(exam, kernel))
        return;
    if (strstr(error, "unrecognized command"))
        gp_driver_fix_compiler(exam, gcc_of_kernel(exam), true);
    else if (wants_compiler)
        gp_driver_fix_tool(exam, error);
    else if (!gp_driver_explain_symbol(exam, error, in->version) && !wants_headers &&
             strstr(error, ": error: ") && (strstr(error, ".c:") || strstr(error, ".h:")) &&
             strcmp(kernel, exam->machine.kernel) == 0)
        gp_exam_why(exam,
                    "The source of driver %s does not compile for this kernel: it is older than "
                    "the kernel, or than the compiler.",
                    in->version);
    if (wants_compiler && gp_kernels_is_mainline(kernel))
        gp_exam_advice(exam, "if this release does not have that compiler, which a mainline kernel "
                             "may need: boot the distribution's own kernel instead");
    struct gp_wish wish = gp_driver_wish(exam);
    if (!wants_compiler && !wants_headers && exam->machine.distro == GP_DISTRO_DEBIAN &&
        gp_driver_has_open_package(exam) && !wish.needs_open) {
        gp_driver_fix_install(exam);
        return;
    }
    if (wants_compiler || wants_headers || is_rolling(exam) ||
        gp_driver_is_newest(exam, in->version)) {
        if (!wants_compiler && !wants_headers) {
            offer_modules_of_kernel(exam, kernel);
            gp_driver_fix_update(exam);
        }
        gp_driver_fix_module(exam, kernel, wants_headers);
        if (gp_driver_lacks_tool(error) && strcmp(kernel, exam->machine.kernel) == 0 &&
            !exam->machine.is_driver_loaded)
            gp_driver_fix_reboot(exam, "");
    } else {
        gp_driver_fix_install(exam);
    }
    if (!wants_compiler && !wants_headers)
        offer_kernel_of_release(exam, kernel);
}

void gp_driver_check_build(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_failed_build *build = &in->failed;
    const char *running = exam->machine.kernel;
    const char *kernel = build->log && build->kernel[0] ? build->kernel : running;
    bool is_running = strcmp(kernel, running) == 0;
    if (in->closed_build[0])
        gp_exam_unreadable(exam, in->closed_build, -EACCES);
    if (!build->log || (is_running && !in->is_list_readable) ||
        (is_running ? in->module[0] != '\0' : strcmp(kernel, in->other_kernel) == 0))
        return;
    if (!is_running &&
        !gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", in->modules, kernel)))
        return; /* of a removed kernel */
    bool is_loaded = exam->machine.is_driver_loaded;
    if (build->version && is_loaded && !in->module[0])
        return; /* it is here in another way than by the installer: from a container, for example */
    bool has_headers = !gp_driver_has_unfinished_headers(exam, kernel);
    bool is_built = build->refused[0] != '\0';
    struct gp_lost_symbol lost = gp_driver_lost_symbol(exam, build, kernel);
    gp_exam_report(exam, is_running && !is_loaded ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   is_built ? "the module for kernel %s was built, but not installed%s"
                            : "the module could not be built for kernel %s%s",
                   kernel,
                   is_built                         ? ": the rest of the driver has another version"
                   : !has_headers                   ? ": its headers are only partly installed"
                   : is_mismatched(build)           ? ": wrong compiler"
                   : missing_folder(exam, build)[0] ? ": its source is incomplete"
                   : lost.name[0] ? gp_exam_text(exam, ": the kernel lacks %s", lost.name)
                                  : "");
    if (is_built)
        gp_exam_evidence(exam, build->log, "%s", build->refused + strspn(build->refused, " -"));
    else if (build->line > 0)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s:%zu", build->log, build->line), "%s",
                         build->error);
    else
        gp_exam_evidence(exam, build->log, "left over from a build that did not finish");
    if (build->missing[0])
        gp_exam_evidence(exam, build->log, "%s is needed, and not installed", build->missing);
    gp_exam_why(exam, !is_running ? "After a boot into this kernel there is no driver."
                      : build->version
                          ? "NVIDIA's installer builds the module for the running kernel; this "
                            "kernel has none."
                          : "Packages install the source of the module and build it for "
                            "each kernel; this kernel has none.");
    if (is_built)
        fix_refused_package(exam, kernel);
    else if (build->version)
        fix_installer(exam, build, &lost);
    else
        fix_failed_build(exam, build, &lost);
    if (in->other_kernel[0] && !is_loaded && has_headers)
        gp_driver_fix_other_kernel(exam);
}
