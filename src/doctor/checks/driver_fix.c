/* Fixes of the driver that several findings share: how to install it, and what else it needs. */
#include "doctor/checks/driver_fix.h"

#include "doctor/checks/driver.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <string.h>

enum { OLDEST_BUILT = 470, LAST_PROPRIETARY = 580 };

/* ---- install ---- */

/* The arguments of the INSTALL_DRIVER_… remedies, by distribution. */
static const char *install_argument(struct gp_exam *exam, const struct gp_offer_choice *choice)
{
    const struct gp_machine *m = &exam->machine;
    const char *kernel = gp_kernels_package(exam, m->kernel);
    switch (m->distro) {
    case GP_DISTRO_UBUNTU:
        return gp_exam_text(exam, "%u", choice->branch);
    case GP_DISTRO_RHEL:
        return gp_exam_text(exam, "rhel%u", gp_version_major(m->distro_version));
    case GP_DISTRO_ARCH:
        if (!choice->is_open)
            return gp_exam_text(exam, "%s-headers", kernel);
        return strcmp(kernel, "linux") == 0
                   ? "nvidia-open"
                   : gp_exam_text(exam, "nvidia-open-dkms %s-headers", kernel);
    case GP_DISTRO_SUSE:
        return strstr(m->distro_id, "tumbleweed") ? "Tumbleweed" : "Leap";
    default:
        return NULL;
    }
}

static const char *joined(struct gp_exam *exam, const char *names, const char *name)
{
    return gp_exam_text(exam, "%s%s%s", names, names[0] ? " " : "", name);
}

/* Arch's other packages of the driver, which must have its version; "": none is installed. */
static const char *tied_to_driver(struct gp_exam *exam)
{
    static const char *const words[] = {"lib32-nvidia-utils", "lib32-opencl-nvidia",
                                        "opencl-nvidia", NULL};
    struct gp_package *packages;
    const char *names = "";
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        for (size_t k = 0; words[k]; k++)
            if (strcmp(packages[i].name, words[k]) == 0)
                names = joined(exam, names, packages[i].name);
    return names;
}

/* Arch's own packages are from the newest branch and must be removed first, also from under what
 * needs a driver: the next one provides the same. "": there are none. */
static const char *newer_of_arch(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *names = "", *tied = tied_to_driver(exam);
    for (size_t i = 0; i < in->package_count; i++)
        if (gp_packages_branch(in->packages[i].name) == 0)
            names = joined(exam, names, in->packages[i].name);
    return names[0] && tied[0] ? joined(exam, names, tied) : names;
}

/* Builds and installs the driver from the AUR. If the build fails, the present driver is still
 * there. */
static void build_on_arch(struct gp_exam *exam, unsigned branch)
{
    const char *names = newer_of_arch(exam);
    gp_exam_command(exam, "", "cd nvidia-%uxx-utils && makepkg %s", branch,
                    names[0] ? "-s" : "-si");
    if (!names[0])
        return;
    gp_exam_command(exam, "remove the other driver; what needs one gets the next",
                    "sudo pacman -Rdd %s", names);
    gp_exam_command(exam, "install what was built", "makepkg -si");
}

/* The libraries for programs of 32 bits are another package of the AUR. */
static void install_narrow_of_arch(struct gp_exam *exam, unsigned branch)
{
    if (!strstr(tied_to_driver(exam), "lib32-nvidia-utils"))
        return;
    const char *name = gp_exam_text(exam, "lib32-nvidia-%uxx-utils", branch);
    gp_exam_command(exam, "its libraries for 32-bit programs",
                    "git clone https://aur.archlinux.org/%s.git && cd %s && makepkg -si", name,
                    name);
}

/* Branches before 470 are in the AUR under the same kind of names. */
static void install_old_of_arch(struct gp_exam *exam, unsigned branch)
{
    const char *kernel = gp_kernels_package(exam, exam->machine.kernel);
    gp_exam_command(exam, "what building it needs", "sudo pacman -S --needed base-devel git %s",
                    gp_exam_quoted(exam, gp_exam_text(exam, "%s-headers", kernel)));
    gp_exam_command(exam, "", "git clone https://aur.archlinux.org/nvidia-%uxx-utils.git", branch);
    build_on_arch(exam, branch);
}

/* Packages cannot replace what the .run installer installed; true if this is the case. */
static bool fix_run(struct gp_exam *exam, const struct gp_offer_choice *choice)
{
    const struct gp_install *in = gp_install_of(exam);
    struct gp_wish wish = gp_driver_wish(exam);
    bool is_vgpu = gp_driver_is_vgpu_host(exam);
    if (choice->branch == 0 || (!is_vgpu && !in->run_trace[0]) ||
        (!is_vgpu && (in->package_count > 0 || !in->version[0])))
        return false;
    if (in->run_trace[0])
        gp_exam_command(exam, "remove what the .run installer installed", "sudo nvidia-uninstall");
    if (is_vgpu && wish.needs_proprietary && wish.last > 0)
        gp_exam_advice(exam,
                       "install the host driver of vGPU 16 (branch 535, .run): newer ones do not "
                       "support Maxwell and Pascal; Volta's last is that of branch %u",
                       wish.last);
    else
        gp_exam_advice(exam,
                       "then run NVIDIA's .run installer of branch %u with --dkms, and choose the "
                       "%s kernel modules",
                       choice->branch, choice->is_open ? "open" : "proprietary");
    return true;
}

static enum gp_remedy of_choice(const struct gp_offer_choice *choice)
{
    return choice->is_open                 ? GP_REMEDY_INSTALL_DRIVER_OPEN
           : choice->branch > OLDEST_BUILT ? GP_REMEDY_INSTALL_DRIVER_580
                                           : GP_REMEDY_INSTALL_DRIVER_470;
}

/* Ubuntu turns the name of an old branch into one for a newer branch. */
static bool fix_transitional(struct gp_exam *exam, unsigned branch)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *name = gp_exam_text(exam, "nvidia-driver-%u", branch);
    for (size_t i = 0; i < in->package_count; i++) {
        const struct gp_package *package = &in->packages[i];
        if (strcmp(package->name, name) != 0 || strcmp(package->state, "installed") != 0 ||
            gp_version_major(package->version) == branch)
            continue;
        gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s is only a name for version %s", name,
                         package->version);
        gp_exam_command(exam, "the packages that still have this branch",
                        "sudo apt install nvidia-driver-%u-server nvidia-dkms-%u-server "
                        "nvidia-utils-%u-server nvidia-kernel-common-%u-server",
                        branch, branch, branch, branch);
        return true;
    }
    return false;
}

/* Whether a branch that is no longer maintained builds on the running kernel as it is packaged. */
static bool builds_here(struct gp_exam *exam, unsigned branch)
{
    static const struct {
        const char *distro_id; /* "": any; Void's package has patches for newer kernels */
        unsigned branch;
        const char *first_without;
    } ends[] = {{"void", 390, "6.13"}, {"", 390, "6.0"}, {"", 340, "5.5"}, {"", 304, "4.14"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(ends); i++)
        if (ends[i].branch == branch &&
            (!ends[i].distro_id[0] || strcmp(ends[i].distro_id, exam->machine.distro_id) == 0))
            return exam->machine.kernel[0] &&
                   gp_version_compare(exam->machine.kernel, ends[i].first_without) < 0;
    return false;
}

/* Releases with rows of their own have older drivers, Ubuntu's some under other names. */
static bool is_of_release(const struct gp_machine *m, const struct gp_offer_choice *choice)
{
    return gp_machine_has_apt(m) && choice->row && choice->row->release > 0;
}

static void install_of_release(struct gp_exam *exam, const struct gp_offer_choice *choice)
{
    enum { FIRST_WITH_MONTH = 1000 }; /* all of them are supported for nine months */
    if (exam->machine.distro == GP_DISTRO_DEBIAN) {
        gp_driver_fix_debian(exam, choice);
        return;
    }
    gp_exam_command(exam, "install the newest driver of this release", "sudo apt install %s%s",
                    choice->row->package, choice->is_open ? "-open" : "");
    if (choice->row->release >= FIRST_WITH_MONTH)
        gp_driver_fix_archived(exam, "old-releases.ubuntu.com");
}

/* Nobody packages such a driver for this release. */
static void fix_without_package(struct gp_exam *exam, const struct gp_offer_choice *choice)
{
    if (exam->machine.distro == GP_DISTRO_UBUNTU)
        gp_exam_advice(exam,
                       "%s has no driver that is new enough: upgrade to a newer release, or run "
                       "NVIDIA's .run installer of branch %u with --dkms, and choose the %s kernel "
                       "modules",
                       exam->machine.distro_name, choice->branch,
                       choice->is_open ? "open" : "proprietary");
    else
        gp_exam_advice(exam,
                       "%s has no package of branch %u, the last for this GPU: use an older "
                       "release that has it, or nouveau, without CUDA",
                       exam->machine.distro_name, choice->branch);
}

void gp_driver_fix_choice(struct gp_exam *exam, const struct gp_offer_choice *choice)
{
    const struct gp_machine *m = &exam->machine;
    if (fix_run(exam, choice) || gp_exam_tool(exam, GP_REMEDY_INSTALL_DRIVER_OPEN, NULL) ||
        (choice->is_open && gp_driver_fix_layered(exam)))
        return;
    if (choice->from == GP_OFFER_DISTRO || choice->from == GP_OFFER_NVIDIA)
        gp_driver_fix_held(exam);
    if (is_of_release(m, choice)) {
        install_of_release(exam, choice);
        return;
    }
    if (choice->branch > 0 && choice->branch < OLDEST_BUILT && builds_here(exam, choice->branch)) {
        gp_exam_advice(exam,
                       "the last driver for this GPU is branch %u, which builds on this kernel:",
                       choice->branch);
        if (m->distro == GP_DISTRO_DEBIAN) {
            gp_driver_fix_debian_legacy(exam, choice->branch);
            return;
        }
        if (m->distro == GP_DISTRO_ARCH) {
            install_old_of_arch(exam, choice->branch);
            return;
        }
        bool has_prefix = m->distro == GP_DISTRO_UBUNTU && choice->branch >= 390;
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DRIVER_LEGACY,
                       gp_exam_text(exam, "%s%u", has_prefix ? "driver-" : "", choice->branch),
                       NULL);
        return;
    }
    if (choice->branch > 0 && choice->branch < OLDEST_BUILT) {
        gp_exam_advice(exam,
                       "the last driver for this GPU is branch %u, which does not build on current "
                       "kernels: the alternative is nouveau, without CUDA",
                       choice->branch);
        return;
    }
    if (choice->from == GP_OFFER_NONE) {
        fix_without_package(exam, choice);
        return;
    }
    const char *argument = install_argument(exam, choice);
    gp_driver_fix_mirrors(exam);
    if (m->distro == GP_DISTRO_DEBIAN)
        gp_driver_fix_debian(exam, choice);
    else if (m->distro == GP_DISTRO_UBUNTU && fix_transitional(exam, choice->branch))
        return;
    else if (m->distro == GP_DISTRO_OTHER && !gp_remedy_other(m->distro_id, of_choice(choice)) &&
             !gp_remedy_release(m, of_choice(choice)))
        gp_exam_advice(exam, "install branch %u of the driver, with the %s kernel modules",
                       choice->branch, choice->is_open ? "open" : "proprietary");
    else if (m->distro == GP_DISTRO_OTHER)
        gp_exam_remedy(exam, of_choice(choice), NULL, NULL);
    else if (choice->is_open)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DRIVER_OPEN, argument, NULL);
    else if (choice->branch > OLDEST_BUILT)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DRIVER_580, argument, NULL);
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DRIVER_470, argument, NULL);
    if (m->distro == GP_DISTRO_ARCH && !choice->is_open) {
        build_on_arch(exam, choice->branch > OLDEST_BUILT ? LAST_PROPRIETARY : OLDEST_BUILT);
        install_narrow_of_arch(exam, choice->branch);
    }
}

bool gp_driver_fix_unsigned_run(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    struct gp_wish wish = gp_driver_wish(exam);
    struct gp_offer_choice choice = gp_offer_choose(&exam->machine, &wish);
    if (exam->machine.distro != GP_DISTRO_UBUNTU || !in->run_trace[0] || in->source[0] ||
        in->package_count > 0 || choice.from != GP_OFFER_DISTRO)
        return false;
    gp_exam_command(exam, "remove what the .run installer installed: its module is not signed",
                    "sudo nvidia-uninstall");
    if (is_of_release(&exam->machine, &choice))
        install_of_release(exam, &choice);
    else
        gp_exam_remedy(exam, of_choice(&choice), install_argument(exam, &choice), NULL);
    gp_driver_fix_reboot(exam, "if the installation asked for a password: choose Enroll MOK on the "
                               "blue screen, and enter it");
    gp_exam_advice(exam, "or turn Secure Boot off in the firmware settings");
    return true;
}

void gp_driver_fix_install(struct gp_exam *exam)
{
    struct gp_wish wish = gp_driver_wish(exam);
    if (!gp_wish_is_possible(&wish)) {
        gp_exam_advice(exam, "no driver supports all GPUs of this machine: remove the oldest or "
                             "the newest, or assign one to a virtual machine; gpulse doctor advise "
                             "driver --gpu MODEL shows what each of them needs");
        return;
    }
    struct gp_offer_choice choice = gp_offer_choose(&exam->machine, &wish);
    gp_driver_fix_choice(exam, &choice);
    const struct gp_remedy_release *release = gp_remedy_release(&exam->machine, of_choice(&choice));
    const struct gp_remedy_other *other =
        !release && exam->machine.distro == GP_DISTRO_OTHER
            ? gp_remedy_other(exam->machine.distro_id, of_choice(&choice))
            : NULL;
    if ((other && !other->command) || (release && !release->commands))
        return;
    if (choice.branch > 0 && choice.branch < OLDEST_BUILT && !is_of_release(&exam->machine, &choice)
            ? builds_here(exam, choice.branch)
            : choice.from != GP_OFFER_NONE)
        gp_driver_fix_reboot(exam, "");
}

const char *gp_driver_flavour(struct gp_exam *exam)
{
    static const char mark[] = "libnvidia-compute-";
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++)
        if (strncmp(in->packages[i].name, mark, strlen(mark)) == 0 &&
            strcmp(in->packages[i].state, "installed") == 0)
            return in->packages[i].name + strlen(mark);
    return gp_exam_text(exam, "%u", gp_version_major(exam->machine.driver));
}

bool gp_driver_is_headless(struct gp_exam *exam)
{
    static const char mark[] = "nvidia-headless-";
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++)
        if (strncmp(in->packages[i].name, mark, strlen(mark)) == 0 &&
            strcmp(in->packages[i].state, "installed") == 0)
            return true;
    return false;
}

const char *gp_driver_whole(struct gp_exam *exam)
{
    const char *flavour = gp_driver_flavour(exam);
    const char *part = gp_exam_text(exam, "libnvidia-compute-%s", flavour);
    const char *name = gp_exam_text(exam, "nvidia-driver-%s%s", flavour,
                                    exam->machine.is_driver_open ? "-open" : "");
    return exam->machine.distro == GP_DISTRO_UBUNTU && !gp_driver_is_headless(exam) &&
                   gp_packages_installed(&exam->files, &exam->arena, part) &&
                   !gp_packages_installed(&exam->files, &exam->arena, name)
               ? name
               : "";
}

const char *gp_driver_libraries_package(struct gp_exam *exam, const char *end, const char *usual)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++) {
        const struct gp_package *package = &in->packages[i];
        const char *last = strstr(package->name, end), *rest = last ? last + strlen(end) : NULL;
        if (rest && (!rest[0] || strcmp(rest, "-tkg") == 0) &&
            strncmp(package->name, "nvidia-", 7) == 0 && strcmp(package->state, "installed") == 0)
            return package->name;
    }
    return usual;
}

/* Before Ubuntu 18.04, and for branches that were old by then: the package with module, programs
 * and all libraries but libcuda, "nvidia-384". */
static bool has_whole_package(struct gp_exam *exam, const char *name, unsigned branch)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++)
        if (strcmp(in->packages[i].name, name) == 0 &&
            strcmp(in->packages[i].state, "installed") == 0 &&
            gp_version_major(in->packages[i].version) == branch)
            return true; /* later ones of this name only lead to another branch */
    return false;
}

static bool is_before_1804(const struct gp_machine *m)
{
    static const char *const names[] = {"precise", "trusty", "xenial",
                                        "yakkety", "zesty",  "artful"};
    const char *codename = m->base_codename[0] ? m->base_codename : m->codename;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strcmp(codename, names[i]) == 0)
            return true;
    return false;
}

void gp_driver_fix_libraries(struct gp_exam *exam)
{
    unsigned branch = gp_version_major(exam->machine.driver);
    const char *whole = gp_exam_text(exam, "nvidia-%u", branch);
    bool is_ubuntu = exam->machine.distro == GP_DISTRO_UBUNTU;
    bool has_whole = is_ubuntu && has_whole_package(exam, whole, branch);
    if (has_whole) {
        gp_exam_evidence(
            exam, "/var/lib/dpkg/status",
            "%s is installed; libcuda.so.1 is in libcuda1-%u, which it only recommends", whole,
            branch);
        gp_exam_command(exam, "if apt updates the driver with it, reboot afterwards",
                        "sudo apt install libcuda1-%u", branch);
    } else if (is_ubuntu && is_before_1804(&exam->machine)) {
        gp_exam_command(exam, "install the libraries and programs that match the module",
                        "sudo apt install %s libcuda1-%u", whole, branch);
    } else {
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_LIBRARIES, gp_exam_text(exam, "%u", branch), NULL);
    }
}

/* Once the installer's module is removed, libraries that came alone, as what another package needs,
 * have none. */
void gp_driver_fix_packages(struct gp_exam *exam, const char *names)
{
    const struct gp_install *in = gp_install_of(exam);
    bool is_ubuntu = exam->machine.distro == GP_DISTRO_UBUNTU;
    if ((is_ubuntu || exam->machine.distro == GP_DISTRO_DEBIAN) && !in->has_module_package)
        gp_exam_command(exam, "install the module that belongs to the packages' libraries",
                        "sudo apt install nvidia-driver%s%s%s", is_ubuntu ? "-" : "",
                        is_ubuntu ? gp_driver_flavour(exam) : "",
                        is_ubuntu && exam->machine.is_driver_open ? "-open" : "");
    gp_exam_remedy(exam, GP_REMEDY_REINSTALL_PACKAGES, names, NULL);
}

void gp_driver_fix_proprietary(struct gp_exam *exam)
{
    struct gp_wish wish = gp_driver_wish(exam);
    if (wish.needs_open)
        return;
    if (gp_install_of(exam)->run_trace[0] && gp_install_of(exam)->package_count == 0)
        gp_exam_advice(exam, "run the .run installer again, and choose the proprietary modules");
    else
        gp_exam_remedy(exam, GP_REMEDY_PROPRIETARY_MODULE,
                       gp_exam_text(exam, "%u", gp_version_major(exam->machine.driver)), NULL);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
}

bool gp_driver_is_newest(struct gp_exam *exam, const char *version)
{
    struct gp_wish wish = gp_driver_wish(exam);
    struct gp_offer_choice choice = gp_offer_choose(&exam->machine, &wish);
    unsigned usual = gp_driver_long_term()->branch;
    return gp_version_major(version) >= (choice.branch > 0 ? choice.branch : usual);
}

/* Whether the container has got the libraries of the host's module when it started. */
static bool has_passed(struct gp_exam *exam)
{
    static const char *const names[] = {"libnvidia-ml.so", "libcuda.so"};
    const char *mounts =
        gp_files_text(&exam->files, &exam->arena, "/proc/self/mounts", 1 << 20, NULL);
    for (size_t i = 0; mounts && i < GP_ARRAY_LEN(names); i++)
        if (strstr(mounts, gp_exam_text(exam, "/%s.%s ", names[i], exam->machine.driver)))
            return true;
    return false;
}

/* The driver's packages in the image that have libraries of another version, "a b". */
static const char *image_packages(struct gp_exam *exam)
{
    enum { OLDEST = 300 }; /* others have numbers of their own, as libnvidia-egl-wayland1 */
    static const char *const words[] = {"libnvidia-", "libcuda1", "nvidia-driver", "nvidia-utils",
                                        NULL};
    struct gp_package *packages;
    const char *names = "";
    long count = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < count; i++)
        if (strcmp(packages[i].state, "installed") == 0 &&
            gp_version_major(packages[i].version) >= OLDEST &&
            !strstr(packages[i].version, exam->machine.driver))
            names = gp_exam_text(exam, "%s%s%s", names, *names ? " " : "", packages[i].name);
    return names;
}

void gp_driver_fix_image(struct gp_exam *exam)
{
    const char *packages = image_packages(exam);
    bool is_passed = has_passed(exam);
    if (is_passed)
        gp_exam_evidence(exam, "/proc/self/mounts",
                         "the libraries of %s were added when the container started",
                         exam->machine.driver);
    gp_exam_why(exam, is_passed
                          ? "The image has libraries of its own: the loader "
                            "prefers them to those of the host's driver, which fit the module."
                          : "The module is the host's; the libraries were added to the container "
                            "when it started, or are part of its image. Both must have the same "
                            "version.");
    if (!is_passed)
        gp_exam_advice(exam,
                       "restart the container: it then gets the libraries of the host's driver");
    if (packages[0])
        gp_exam_advice(exam,
                       "%sbuild the image without its own driver: remove its package%s %s, and do "
                       "not install cuda, cuda-drivers or nvidia-driver in it (cuda-toolkit has no "
                       "driver)",
                       is_passed ? "" : "if this does not help, ", strchr(packages, ' ') ? "s" : "",
                       packages);
    else
        gp_exam_advice(exam,
                       "%sthe image has its own driver: remove its libnvidia and libcuda "
                       "packages from the image",
                       is_passed ? "" : "if this does not help, ");
    if (is_passed)
        gp_exam_advice(exam, "or update the host's driver to the version of the image");
}

/* A distribution's package would bring libraries of its own next to those of NVIDIA's installer,
 * which has installed the program, but no service. */
void gp_driver_fix_idle(struct gp_exam *exam)
{
    static const char program[] = "/usr/bin/nvidia-persistenced";
    const struct gp_install *in = gp_install_of(exam);
    if (!in->run_trace[0] || in->package_count > 0 || !gp_files_exist(&exam->files, program)) {
        gp_exam_remedy(exam, GP_REMEDY_START_PERSISTENCED, NULL, NULL);
        return;
    }
    gp_exam_command(exam, "keep the GPUs initialized until the next boot",
                    "sudo nvidia-persistenced");
    gp_exam_advice(exam, "to do this at each boot, use a service; NVIDIA's installer puts a sample "
                         "into /usr/share/doc/NVIDIA_GLX-1.0/samples");
}

bool gp_driver_is_mismatched(struct gp_exam *exam)
{
    const struct gp_driver_library *library = gp_install_library(gp_install_of(exam));
    return exam->machine.driver[0] && library &&
           !gp_install_same(exam->machine.driver, library->version);
}
