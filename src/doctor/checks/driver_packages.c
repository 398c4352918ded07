/* The check of the driver's packages: driver.packages. */
#include "doctor/checks/container_host.h"
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
#include "doctor/version.h"

#include <elf.h>
#include <string.h>

/* While the loaded driver is consistent, its packages are no reason for a failure. */
static enum gp_verdict package_verdict(struct gp_exam *exam)
{
    return exam->machine.is_driver_loaded && !gp_driver_is_mismatched(exam) ? GP_VERDICT_WARN
                                                                            : GP_VERDICT_FAIL;
}

static const char term_log[] = "/var/log/apt/term.log";

/* The line of apt's last run in which dpkg refuses to replace a file of another package; "": none
 * does, or the file is not of the driver. */
static const char *file_conflict(struct gp_exam *exam)
{
    enum { LAST_BYTES = 64 << 10, LINE_MAX_SHOWN = 300 };
    static const char start[] = "Log started:", mark[] = "trying to overwrite '";
    size_t size = 0, n;
    const char *found = "";
    const char *line,
        *text = gp_files_tail(&exam->files, &exam->arena, term_log, LAST_BYTES, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        if (n >= sizeof(start) - 1 && memcmp(line, start, sizeof(start) - 1) == 0)
            found = "";
        if (memmem(line, n, mark, sizeof(mark) - 1) &&
            (memmem(line, n, "nvidia", 6) || memmem(line, n, "cuda", 4)))
            found = gp_exam_text(exam, "%.*s", n < LINE_MAX_SHOWN ? (int)n : LINE_MAX_SHOWN, line);
    }
    return found;
}

/* Nothing else finishes the installation: apt stops at the same file each time. */
static void fix_conflict(struct gp_exam *exam, const char *conflict)
{
    gp_exam_evidence(exam, term_log, "%s", conflict + strspn(conflict, " "));
    gp_exam_why(exam,
                "dpkg does not replace a file of another package, and apt stops there each time: "
                "packages of two repositories or branches have the same file.");
    gp_exam_command(exam, "finish it, with the file of the package that is installed last",
                    "sudo apt -o Dpkg::Options::=--force-overwrite --fix-broken install");
}

static void report_broken(struct gp_exam *exam, const struct gp_install *in)
{
    size_t count = 0;
    for (size_t i = 0; i < in->package_count; i++)
        count += gp_packages_is_broken(&in->packages[i]);
    if (count == 0)
        return;
    const struct gp_driver_library *library = gp_install_library(in);
    bool is_half_new = exam->machine.is_driver_loaded && library && gp_driver_is_mismatched(exam);
    gp_exam_report(exam, package_verdict(exam),
                   "%zu package%s of the driver %s only partly installed%s", count,
                   count == 1 ? "" : "s", count == 1 ? "is" : "are",
                   is_half_new ? gp_exam_text(exam, ", and module (%s) and libraries (%s) differ",
                                              exam->machine.driver, library->version)
                               : "");
    for (size_t i = 0; i < in->package_count; i++)
        if (gp_packages_is_broken(&in->packages[i]))
            gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s %s: %s", in->packages[i].name,
                             in->packages[i].version, in->packages[i].state);
    if (is_half_new) {
        gp_exam_evidence(exam, "/proc/driver/nvidia/version", "the module %s is loaded",
                         exam->machine.driver);
        gp_exam_evidence(exam, library->real, "the libraries are of %s", library->version);
    }
    const char *conflict = file_conflict(exam);
    if (conflict[0]) {
        fix_conflict(exam, conflict);
        gp_driver_fix_reboot(exam, "");
        return;
    }
    gp_exam_why(exam, "An installation or update was interrupted or failed.%s",
                is_half_new ? " The module still is the old one, and does not work with the new "
                              "libraries: \"Driver/library version mismatch\"."
                            : "");
    gp_exam_remedy(exam, GP_REMEDY_CONFIGURE_PACKAGES, NULL, NULL);
    gp_driver_fix_reboot(exam, is_half_new ? "it loads the module of the libraries' version" : "");
}

/* The line of apt's log that says that a disk was full, in the last runs; "": none does. */
static const char *full_disk(struct gp_exam *exam, const char *path)
{
    enum { LAST_BYTES = 64 << 10 };
    static const char mark[] = "No space left on device";
    size_t size = 0, n;
    const char *found = "";
    const char *line, *text = gp_files_tail(&exam->files, &exam->arena, path, LAST_BYTES, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n))
        if (memmem(line, n, mark, sizeof(mark) - 1))
            found = gp_exam_text(exam, "%.*s", n < 200 ? (int)n : 200, line);
    return found;
}

/* Whether a package is of a kernel for which driver.build reports that the module cannot be built:
 * its postinst does that, and stops. */
static bool is_of_failed_build(struct gp_exam *exam, const char *name)
{
    const struct gp_failed_build *build = &gp_install_of(exam)->failed;
    const struct gp_finding *f = exam->findings;
    while (f && strcmp(f->check->id, "driver.build") != 0)
        f = f->next;
    return f && build->log && build->kernel[0] && strstr(name, build->kernel);
}

/* Packages without which the next kernel has no driver, and apt installs no other one. */
static void report_broken_kernel(struct gp_exam *exam)
{
    static const char *const words[] = {"linux-image-",    "linux-headers-", "linux-modules-",
                                        "initramfs-tools", "dkms",           NULL};
    struct gp_package *packages;
    const struct gp_package *broken = NULL;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n && !broken; i++)
        broken = gp_packages_is_broken(&packages[i]) ? &packages[i] : NULL;
    for (long i = 0; i < n; i++) /* then others wait for it */
        if (gp_packages_is_broken(&packages[i]) && is_of_failed_build(exam, packages[i].name))
            return;
    if (!broken)
        return;
    const char *full = full_disk(exam, term_log);
    gp_exam_report(exam, GP_VERDICT_WARN, "%s is only partly installed%s", broken->name,
                   full[0] ? ": a disk was full" : "");
    gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s %s: %s", broken->name, broken->version,
                     broken->state);
    if (full[0])
        gp_exam_evidence(exam, term_log, "%s", full);
    gp_exam_why(exam, "apt finishes this before it installs or updates anything else, and until "
                      "then a newer kernel may lack the driver or its initramfs.");
    if (full[0]) {
        gp_exam_command(exam, "see which one is full", "df -h / /boot");
        gp_exam_advice(exam,
                       "if it is /boot: remove kernels that are not used any more, but not %s",
                       exam->machine.kernel);
    }
    gp_exam_remedy(exam, GP_REMEDY_CONFIGURE_PACKAGES, NULL, NULL);
}

/* The branch whose files an installed package has; 0: none, or it has none. */
static unsigned branch_of(const struct gp_package *package)
{
    return strcmp(package->state, "installed") == 0 && !gp_packages_is_transitional(package)
               ? gp_packages_branch(package->name)
               : 0;
}

/* Libraries and programs come from one branch; modules of other branches may remain for older
 * kernels. */
static bool is_user_side(const char *name)
{
    static const char *const words[] = {"libnvidia-compute-", "nvidia-utils-", "nvidia-driver-",
                                        "nvidia-compute-utils-", NULL};
    return gp_lines_starts_any(name, words);
}

static void report_branches(struct gp_exam *exam, const struct gp_install *in)
{
    unsigned lowest = 0, highest = 0;
    const char *old = "";
    for (size_t i = 0; i < in->package_count; i++) {
        const struct gp_package *package = &in->packages[i];
        unsigned branch = branch_of(package);
        if (branch == 0 || !is_user_side(package->name))
            continue;
        lowest = lowest == 0 || branch < lowest ? branch : lowest;
        highest = branch > highest ? branch : highest;
    }
    if (lowest == highest)
        return;
    unsigned loaded = gp_version_major(exam->machine.driver);
    unsigned wrong = loaded == lowest ? highest : lowest;
    gp_exam_report(exam, package_verdict(exam), "packages of two branches are installed: %u and %u",
                   lowest, highest);
    for (size_t i = 0; i < in->package_count; i++) {
        const struct gp_package *package = &in->packages[i];
        unsigned branch = branch_of(package);
        if (branch == 0)
            continue;
        gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s %s", package->name, package->version);
        if (branch == wrong)
            old = gp_exam_text(exam, "%s%s%s", old, old[0] ? " " : "", package->name);
    }
    gp_exam_why(exam, "Each branch has its own libraries, and a module works only with libraries "
                      "of its own version.");
    gp_exam_remedy(exam, GP_REMEDY_REMOVE_PACKAGES, old, NULL);
}

/* ---- programs of another architecture ---- */

/* Architectures of the machine: as ELF and as dpkg name them. */
static const struct {
    const char *arch, *dpkg;
    unsigned char class, machine;
} wide[] = {{"x86_64", "amd64", ELFCLASS64, EM_X86_64},
            {"aarch64", "arm64", ELFCLASS64, EM_AARCH64}};

/* The programs that containers are given, too, and the beginnings of the names of their packages:
 * of Debian, and of Ubuntu and NVIDIA. */
static const struct {
    const char *path;
    const char *packages[3]; /* up to NULL */
} programs[] = {
    {"/usr/bin/nvidia-smi", {"nvidia-smi", "nvidia-utils-"}},
    {"/usr/bin/nvidia-cuda-mps-control", {"nvidia-cuda-mps", "nvidia-compute-utils-"}},
    {"/usr/bin/nvidia-cuda-mps-server", {"nvidia-cuda-mps", "nvidia-compute-utils-"}},
};

/* Whether a file is a program, and of another architecture than number `w`. */
static bool is_foreign(const struct gp_exam *exam, const char *path, size_t w)
{
    enum { MACHINE = 18 }; /* two bytes of the head */
    unsigned char head[MACHINE + 3];
    return gp_files_read(&exam->files, path, (char *)head, sizeof(head)) >= MACHINE + 2 &&
           memcmp(head, ELFMAG, SELFMAG) == 0 && head[MACHINE + 1] == 0 &&
           (head[EI_CLASS] != wide[w].class || head[MACHINE] != wide[w].machine);
}

/* The installed package for another architecture that a program is of; NULL: none is. */
static const struct gp_package *foreign_package(struct gp_exam *exam, const char *const *names,
                                                const char *own)
{
    struct gp_package *packages;
    const struct gp_package *found = NULL;
    long n = gp_packages_read(&exam->files, &exam->arena, names, &packages);
    for (long i = 0; i < n; i++) {
        const char *arch = packages[i].arch;
        if (strcmp(packages[i].state, "installed") != 0 || strcmp(arch, "all") == 0)
            continue;
        if (strcmp(arch, own) == 0)
            return NULL;
        found = &packages[i];
    }
    return found;
}

/* apt replaces a program's package by that for another architecture if only that fits the libraries
 * that it installs. */
static void report_foreign(struct gp_exam *exam)
{
    static const char status[] = "/var/lib/dpkg/status";
    char real[GP_PATH_SIZE];
    size_t w = 0;
    while (w < GP_ARRAY_LEN(wide) && strcmp(wide[w].arch, exam->machine.arch) != 0)
        w++;
    for (size_t i = 0; w < GP_ARRAY_LEN(wide) && i < GP_ARRAY_LEN(programs); i++) {
        if (!gp_files_real(&exam->files, programs[i].path, real) || !is_foreign(exam, real, w))
            continue;
        const struct gp_package *package =
            foreign_package(exam, programs[i].packages, wide[w].dpkg);
        if (!package)
            continue;
        bool is_given = gp_container_has_toolkit(exam);
        gp_exam_report(exam, is_given ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "%s is the program for %s, not for this system's %s",
                       strrchr(programs[i].path, '/') + 1, package->arch, wide[w].dpkg);
        gp_exam_evidence(exam, real, "a program for another architecture");
        gp_exam_evidence(exam, status, "%s:%s %s; none for %s", package->name, package->arch,
                         package->version, wide[w].dpkg);
        gp_exam_why(exam, "%s",
                    is_given ? "Containers are given the host's program. Their images are for this "
                               "system's architecture, and have neither loader nor libraries for "
                               "the other one, so it does not start in them."
                             : "It uses the driver's libraries for that architecture, if they are "
                               "installed.");
        gp_exam_command(exam, "it replaces the other one", "sudo apt install %s%s:%s",
                        exam->machine.distro == GP_DISTRO_DEBIAN ? gp_driver_backports(exam) : "",
                        package->name, wide[w].dpkg);
        return;
    }
}

void gp_driver_check_packages(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    if (in->packages_error < 0) {
        gp_exam_unreadable(exam, "/var/lib/dpkg/status", in->packages_error);
        return;
    }
    const struct gp_finding *before = exam->last;
    report_broken(exam, in);
    report_branches(exam, in);
    report_foreign(exam);
    if (exam->last == before)
        report_broken_kernel(exam);
}
