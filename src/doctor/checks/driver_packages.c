/* The check of the driver's packages: driver.packages. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
#include "doctor/version.h"

#include <string.h>

/* While the loaded driver is consistent, its packages are no reason for a failure. */
static enum gp_verdict package_verdict(struct gp_exam *exam)
{
    return exam->machine.is_driver_loaded && !gp_driver_is_mismatched(exam) ? GP_VERDICT_WARN
                                                                            : GP_VERDICT_FAIL;
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

/* Packages without which the next kernel has no driver, and apt installs no other one. */
static void report_broken_kernel(struct gp_exam *exam)
{
    static const char *const words[] = {"linux-image-",    "linux-headers-", "linux-modules-",
                                        "initramfs-tools", "dkms",           NULL};
    static const char log[] = "/var/log/apt/term.log";
    struct gp_package *packages;
    const struct gp_package *broken = NULL;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n && !broken; i++)
        broken = gp_packages_is_broken(&packages[i]) ? &packages[i] : NULL;
    if (!broken)
        return;
    const char *full = full_disk(exam, log);
    gp_exam_report(exam, GP_VERDICT_WARN, "%s is only partly installed%s", broken->name,
                   full[0] ? ": a disk was full" : "");
    gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s %s: %s", broken->name, broken->version,
                     broken->state);
    if (full[0])
        gp_exam_evidence(exam, log, "%s", full);
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
                                        "nvidia-compute-utils-"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strncmp(name, words[i], strlen(words[i])) == 0)
            return true;
    return false;
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
    if (exam->last == before)
        report_broken_kernel(exam);
}
