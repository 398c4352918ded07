/* Which release of the driver to get: one that compiles where another did not, or that is not older
 * than a program needs. */
#include "doctor/checks/backports.h"
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/version.h"

#include <string.h>

/* Symbols that a kernel update offers only to modules under the GPL, and the first release of each
 * branch that no longer uses them; branches in between were never changed. Which of the two it is
 * depends on the kernel's preemption: https://github.com/NVIDIA/gpu-operator/issues/729 */
static const struct {
    const char *words[2], *cause;
    const char *releases[4];
} symbols[] = {{{"'__rcu_read_", "'rcu_read_unlock_strict'"},
                "pfn_valid() uses it since 6.1.76, and in other branches since early 2024",
                {"470.239.06", "535.161.07", "550.54.14"}}};

/* Whether a version is of a branch before the row's fixed release of it. Branches between those in
 * the row were never fixed; newer ones always were, and of older ones nothing is known. */
static bool is_before(const char *const *releases, const char *version)
{
    unsigned branch = gp_version_major(version), last = 0;
    for (size_t k = 0; releases[k]; k++) {
        last = gp_version_major(releases[k]);
        if (last == branch)
            return gp_version_compare(version, releases[k]) < 0;
    }
    return branch > gp_version_major(releases[0]) && branch < last;
}

/* What a kernel has changed, by the words of an error in the driver's source, and the first release
 * of each branch that compiles with it. */
static const struct {
    const char *kernel, *words[2];
    const char *releases[3];
} changes[] = {
    {"6.19", {"dev_pagemap_ops", "zone_device_page_init"}, {"580.126.18", "595"}},
};

static bool has_one_of(const char *error, const char *const words[2])
{
    return strstr(error, words[0]) || strstr(error, words[1]);
}

static size_t symbol_in(const char *error, const char *version)
{
    size_t i = 0;
    while (i < GP_ARRAY_LEN(symbols) &&
           !(has_one_of(error, symbols[i].words) && is_before(symbols[i].releases, version)))
        i++;
    return i;
}

static bool is_refused_symbol(const char *error)
{
    return strstr(error, "GPL-only symbol") || strstr(error, "GPL-incompatible module");
}

bool gp_driver_explain_symbol(struct gp_exam *exam, const char *error, const char *version)
{
    size_t i = symbol_in(error, version);
    if (!is_refused_symbol(error))
        return false;
    if (i < GP_ARRAY_LEN(symbols))
        gp_exam_why(exam,
                    "This kernel offers the symbol only to modules under the GPL: %s. Driver %s is "
                    "older, and fails at each build.",
                    symbols[i].cause, version);
    else
        gp_exam_why(exam,
                    "This kernel offers the symbol only to modules under the GPL: driver %s is "
                    "older than the kernel, or the kernel was built for debugging or realtime.",
                    version);
    return true;
}

/* The releases that compile where this error was, up to NULL. */
static const char *const *releases_after(const struct gp_exam *exam, const char *error,
                                         const char *version)
{
    static const char *const none[] = {NULL};
    size_t s = is_refused_symbol(error) ? symbol_in(error, version) : GP_ARRAY_LEN(symbols);
    for (size_t i = 0; i < GP_ARRAY_LEN(changes); i++)
        if (gp_version_compare(exam->machine.kernel, changes[i].kernel) >= 0 &&
            has_one_of(error, changes[i].words))
            return changes[i].releases;
    return s < GP_ARRAY_LEN(symbols) ? symbols[s].releases : none;
}

const char *gp_driver_releases_for(struct gp_exam *exam, const char *error, const char *version)
{
    struct gp_wish wish = gp_driver_wish(exam);
    const char *found = "";
    for (const char *const *r = releases_after(exam, error, version); *r; r++) {
        unsigned branch = gp_version_major(*r);
        bool is_other = branch != gp_version_major(version);
        if (!gp_wish_fits(&wish, branch) || (!is_other && gp_version_compare(*r, version) <= 0) ||
            (is_refused_symbol(error) && gp_version_compare(*r, version) <= 0))
            continue;
        found = strchr(*r, '.') ? gp_exam_text(exam, "%s%s%s or later of branch %u", found,
                                               found[0] ? ", " : "", *r, branch)
                                : gp_exam_text(exam, "%s%sany of branch %u", found,
                                               found[0] ? ", " : "", branch);
    }
    return found;
}

/* Adds which release to install with NVIDIA's installer. */
static void advise_release(struct gp_exam *exam, const struct gp_failed_build *build)
{
    struct gp_wish wish = gp_driver_wish(exam);
    const char *releases = gp_driver_releases_for(exam, build->error, build->version);
    unsigned newest = wish.last > 0 ? wish.last : gp_driver_long_term()->branch;
    bool is_whole = strstr(releases, gp_exam_text(exam, "branch %u", newest));
    if (gp_driver_is_vgpu_host(exam))
        gp_exam_advice(exam,
                       "run the .run installer of a newer vGPU host driver%s whose release notes "
                       "name this kernel, with --dkms; then update the drivers of the virtual "
                       "machines to the same vGPU release",
                       wish.needs_proprietary ? " (for Maxwell and Pascal: of vGPU 16)" : "");
    else if (releases[0])
        gp_exam_advice(exam, "run the .run installer of a release that builds, with --dkms: %s%s",
                       releases,
                       is_whole ? ""
                                : gp_exam_text(exam,
                                               ", or one of a newer branch that supports the GPU, "
                                               "such as %u",
                                               newest));
    else if (gp_version_major(build->version) < newest)
        gp_exam_advice(exam,
                       "run the .run installer of a newer release that supports the GPU, as of "
                       "branch %u, with --dkms",
                       newest);
    else
        gp_exam_advice(exam,
                       "run the .run installer of the newest release of branch %u, with --dkms: "
                       "it may be adapted to this kernel",
                       newest);
}

void gp_driver_fix_release(struct gp_exam *exam, const struct gp_failed_build *build)
{
    if (!gp_driver_explain_symbol(exam, build->error, build->version))
        gp_exam_why(exam,
                    "The source of driver %s does not compile for this kernel: it is older than "
                    "the kernel, or than the compiler.",
                    build->version);
    advise_release(exam, build);
}

bool gp_driver_fix_home_made(struct gp_exam *exam, const struct gp_failed_build *build)
{
    const char *other = gp_kernels_of_distribution(exam), *kernel = exam->machine.kernel;
    if (!gp_kernels_is_home_made(exam))
        return false;
    gp_exam_evidence(exam, "/proc/version", "kernel %s was not built by %s", kernel,
                     exam->machine.distro_name);
    if (!gp_driver_explain_symbol(exam, build->error, build->version))
        gp_exam_why(exam,
                    "The source of driver %s does not compile for this kernel: it is older than "
                    "the kernel. So may the packages of %s be, which are made for its own kernels.",
                    build->version, exam->machine.distro_name);
    if (other[0]) {
        gp_exam_advice(exam,
                       "boot kernel %s, which is installed, from the boot menu, and install the "
                       "driver there:",
                       other);
        gp_driver_fix_install(exam);
        gp_exam_advice(exam,
                       "choose kernel %s again when it boots, or remove kernel %s: the boot menu "
                       "starts the newest one by itself",
                       other, kernel);
        gp_exam_advice(exam, "or stay with kernel %s, and:", kernel);
    }
    advise_release(exam, build);
    return true;
}

/* Ubuntu's releases before 18.04, and what was built on them, call the packages differently, and
 * stop at branch 384. */
static bool install_old(struct gp_exam *exam, const char *driver)
{
    enum { NEWEST = 384 };
    static const struct {
        const char *id, *end;
    } releases[] = {{"ubuntu", "18.04"}, {"linuxmint", "19"}, {"elementary", "5"}};
    const struct gp_machine *m = &exam->machine;
    bool is_old = false;
    for (size_t i = 0; m->distro_version[0] && i < GP_ARRAY_LEN(releases); i++)
        is_old = is_old || (strcmp(m->distro_id, releases[i].id) == 0 &&
                            gp_version_compare(m->distro_version, releases[i].end) < 0);
    if (!is_old || gp_version_major(driver) > NEWEST)
        return false;
    gp_exam_command(exam, "the newest driver of this release", "sudo apt install nvidia-%d",
                    NEWEST);
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* Debian 10 has 418, and its backports, which are in the archive, have 450 or newer; NVIDIA's
 * repository for it ends before the branch that others get. */
static bool install_backported(struct gp_exam *exam, const char *driver)
{
    enum { RELEASE = 10, NEWEST = 450 };
    const struct gp_machine *m = &exam->machine;
    const char *headers = "";
    if (strcmp(m->distro_id, "debian") != 0 || gp_version_major(m->distro_version) != RELEASE ||
        gp_version_major(driver) > NEWEST)
        return false;
    if (gp_kernels_is_proxmox(m->kernel))
        headers = gp_exam_text(exam, "%s ", gp_driver_headers_of_proxmox(exam, m->kernel));
    gp_backports_enable(exam);
    gp_exam_command(exam, "", "sudo apt install -t buster-backports %snvidia-driver", headers);
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* A system's image that has the driver gets a newer one with its update; one of a newer branch only
 * with the open modules, which are of the newest. */
static bool update_image(struct gp_exam *exam, const char *driver)
{
    const struct gp_machine *m = &exam->machine;
    if (!m->is_driver_loaded || !gp_machine_is_ostree(m) ||
        (gp_version_major(driver) > gp_version_major(m->driver) && !gp_install_of(exam)->is_open))
        return false;
    gp_driver_fix_update(exam);
    gp_driver_fix_reboot(exam, "");
    return true;
}

/* One that fits the GPUs and is not older. */
static void install_driver(struct gp_exam *exam, const char *driver)
{
    if (install_old(exam, driver) || install_backported(exam, driver) || update_image(exam, driver))
        return;
    struct gp_wish wish = gp_driver_wish(exam);
    if (gp_version_major(driver) > wish.first)
        wish.first = gp_version_major(driver);
    struct gp_offer_choice choice = gp_offer_choose(&exam->machine, &wish);
    gp_driver_fix_choice(exam, &choice);
    gp_driver_fix_reboot(exam, "");
}

void gp_driver_fix_at_least(struct gp_exam *exam, const char *driver)
{
    const struct gp_machine *m = &exam->machine;
    unsigned last = m->container || m->is_wsl ? 0 : gp_driver_wish(exam).last;
    if (m->container) {
        gp_exam_advice(exam, "on the host: update the driver to %s or newer", driver);
    } else if (m->is_wsl) {
        gp_exam_advice(exam, "in Windows: update NVIDIA's driver to one for CUDA %s or newer",
                       gp_cuda_ceiling(driver));
    } else if (last > 0 && gp_version_major(driver) > last) {
        gp_exam_advice(exam,
                       "the driver cannot be updated to %s or newer: branch %u is the last for "
                       "this GPU",
                       driver, last);
    } else {
        gp_exam_advice(exam, "update the driver to %s or newer:", driver);
        install_driver(exam, driver);
    }
}
