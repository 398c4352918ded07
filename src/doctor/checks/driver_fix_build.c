/* Fixes that update the driver's packages, or build its module for a kernel. */
#include "doctor/checks/driver_fix.h"

#include "doctor/checks/driver_wish.h"
#include "doctor/lines.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <string.h>

/* The branch and flavour in a package name such as
 * "linux-modules-nvidia-580-open-6.8.0-45-generic". */
static const char *prebuilt_branch(struct gp_exam *exam, const struct gp_install *in)
{
    static const char mark[] = "linux-modules-nvidia-";
    for (size_t i = 0; i < in->package_count; i++) {
        const char *name = in->packages[i].name;
        if (strncmp(name, mark, sizeof(mark) - 1) != 0)
            continue;
        const char *branch = name + sizeof(mark) - 1;
        size_t n = strspn(branch, "0123456789");
        n += strncmp(branch + n, "-server", 7) == 0 ? 7 : 0;
        n += strncmp(branch + n, "-open", 5) == 0 ? 5 : 0;
        return gp_exam_text(exam, "%.*s", (int)n, branch);
    }
    return "";
}

/* Whether an installed package brings the others with it: "nvidia-driver-580-open", "cuda-drivers",
 * "nvidia-kernel-dkms". */
static bool is_lead(const struct gp_package *package)
{
    static const char *const starts[] = {"nvidia-driver", "nvidia-headless", "nvidia-open",
                                         "cuda-drivers", NULL};
    static const char *const ends[] = {"-dkms", "-driver"};
    const char *name = package->name;
    bool is_one = gp_lines_starts_any(name, starts);
    for (size_t i = 0; i < GP_ARRAY_LEN(ends); i++)
        is_one = is_one || gp_lines_ends(name, ends[i]);
    return is_one && !strstr(name, "-libs") && !strstr(name, "-bin") && !strstr(name, "-support") &&
           strcmp(package->state, "installed") == 0;
}

void gp_driver_fix_held(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *names = "";
    for (size_t i = 0; i < in->package_count; i++)
        if (in->packages[i].is_held)
            names = gp_exam_text(exam, "%s%s%s", names, names[0] ? " " : "", in->packages[i].name);
    if (names[0])
        gp_exam_remedy(exam, GP_REMEDY_RELEASE_PACKAGES, names, NULL);
}

/* The value of a variable in a file of shell assignments, without its quotes; "": not set. */
static const char *setting_of(struct gp_exam *exam, const char *path, const char *name)
{
    enum { MOST = 1 << 16 };
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, NULL);
    const char *at, *value = "";
    unsigned line = 0;
    size_t length;
    while (text && gp_assignment_next(&text, name, &line, &at, &length)) {
        const char *start = at + strlen(name) + 1;
        start += *start == '"' || *start == '\'';
        value = gp_exam_text(exam, "%.*s", (int)strcspn(start, "\"'# \n"), start);
    }
    return value;
}

/* The file that names the driver which nvidia-all builds; the one outside its directory overrides
 * the other. NULL: neither names a version. */
static const char *pinning_file(struct gp_exam *exam, const char **ret_directory)
{
    static const char *const folders[] = {"",       "/git",      "/src",       "/build",
                                          "/aur",   "/builds",   "/Downloads", "/Documents",
                                          "/repos", "/Projects", "/.cache"};
    const struct gp_homes *homes = gp_homes_of(exam);
    const char *found = NULL;
    *ret_directory = NULL;
    for (size_t i = 0; i < homes->count; i++) {
        for (size_t k = 0; k < GP_ARRAY_LEN(folders); k++) {
            const char *top = gp_exam_text(exam, "%s%s/nvidia-all", homes->list[i], folders[k]);
            const char *path = gp_exam_text(exam, "%s/customization.cfg", top);
            if (*ret_directory || !gp_files_exist(&exam->files, path))
                continue;
            *ret_directory = top;
            found = gp_version_major(setting_of(exam, path, "_driver_version")) > 0 ? path : found;
        }
        const char *own = gp_exam_text(exam, "%s/.config/frogminer/nvidia-all.cfg", homes->list[i]);
        found = gp_version_major(setting_of(exam, own, "_driver_version")) > 0 ? own : found;
    }
    return found;
}

/* nvidia-all can adapt the source of a driver to a compiler that is newer. */
static void propose_patch(struct gp_exam *exam, const char *file)
{
    static const struct {
        unsigned gcc;
        const char *name;
    } patches[] = {{14, "_gcc14_fix"}, {15, "_gcc15_fix"}};
    const struct gp_package *gcc = gp_packages_installed(&exam->files, &exam->arena, "gcc");
    for (size_t i = 0; gcc && i < GP_ARRAY_LEN(patches); i++)
        if (gp_version_major(gcc->version) == patches[i].gcc &&
            strcmp(setting_of(exam, file, patches[i].name), "false") == 0)
            gp_exam_advice(exam,
                           "or, to keep this version: set %s=\"true\" there, which patches it for "
                           "GCC %u, and build it again",
                           patches[i].name, patches[i].gcc);
}

/* How to build newer packages with nvidia-all where its settings name this version. "latest" may
 * no longer support an older GPU. */
static void fix_pinned(struct gp_exam *exam, const char *file, const char *directory)
{
    const unsigned last = gp_driver_wish(exam).last;
    gp_exam_evidence(exam, file, "_driver_version=\"%s\": nvidia-all builds this one again",
                     setting_of(exam, file, "_driver_version"));
    gp_exam_command(exam,
                    last > 0 ? gp_exam_text(exam,
                                            "have nvidia-all ask which driver to build: choose the "
                                            "newest of branch %u",
                                            last)
                             : "have nvidia-all build the newest driver",
                    "sed -i.before 's/^_driver_version=.*/_driver_version=\"%s\"/' %s",
                    last > 0 ? "" : "latest", gp_exam_quoted(exam, file));
    if (directory)
        gp_exam_command(exam, "build it: pacman -Syu does not update these packages",
                        "cd %s && git pull --autostash && makepkg -si",
                        gp_exam_quoted(exam, directory));
    else
        gp_exam_command(exam,
                        "in the directory of nvidia-all: build it; pacman -Syu does not update "
                        "these packages",
                        "git pull --autostash && makepkg -si");
    propose_patch(exam, file);
}

/* Packages of nvidia-all, which users build: pacman does not update them. */
static bool fix_own_packages(struct gp_exam *exam)
{
    static const char end[] = "-dkms-tkg";
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++) {
        const char *name = in->packages[i].name, *directory;
        size_t n = strlen(name);
        if (n < sizeof(end) || strcmp(name + n - (sizeof(end) - 1), end) != 0)
            continue;
        gp_exam_evidence(exam, "package", "%s %s, which nvidia-all builds", name,
                         in->packages[i].version);
        const char *file = pinning_file(exam, &directory);
        if (file)
            fix_pinned(exam, file, directory);
        else
            gp_exam_command(exam,
                            "in the directory of nvidia-all: build newer packages of the driver, "
                            "which pacman -Syu does not update; choose a newer driver than this "
                            "one (_driver_version in customization.cfg names one without asking)",
                            "git pull --autostash && makepkg -si");
        return true;
    }
    return false;
}

void gp_driver_fix_update(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *names = "";
    if (exam->machine.distro == GP_DISTRO_ARCH && fix_own_packages(exam))
        return;
    gp_driver_fix_held(exam);
    for (size_t i = 0; i < in->package_count; i++)
        if (is_lead(&in->packages[i]))
            names = gp_exam_text(exam, "%s%s%s", names, names[0] ? " " : "", in->packages[i].name);
    if (!names[0]) /* used only with apt */
        names = exam->machine.distro == GP_DISTRO_UBUNTU
                    ? gp_exam_text(exam, "nvidia-driver-%u", gp_version_major(in->version))
                    : "nvidia-driver";
    gp_exam_remedy(exam, GP_REMEDY_UPDATE_PACKAGES, names, NULL);
}

/* openSUSE's generation of packages of a driver, of those that it still has. */
static const char *generation_of(const char *version)
{
    enum { LAST_OF_G06 = 580 };
    return gp_version_major(version) > LAST_OF_G06 ? "G07" : "G06";
}

/* openSUSE's packages with the module, for the GPU of this machine. */
static const char *module_package(struct gp_exam *exam, const char *kernel)
{
    enum { LAST_OF_G05 = 470 };
    struct gp_wish wish = gp_driver_wish(exam);
    if (exam->machine.distro != GP_DISTRO_SUSE)
        return kernel;
    return wish.last > 0 && wish.last <= LAST_OF_G05 ? "nvidia-gfxG05-kmp-default"
           : wish.needs_proprietary || gp_install_of(exam)->is_proprietary
               ? "nvidia-driver-G06-kmp-default"
               : gp_exam_text(exam, "nvidia-open-driver-%s-signed-kmp-default",
                              generation_of(gp_install_of(exam)->version));
}

static bool has_broken_packages(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++)
        if (gp_packages_is_broken(&in->packages[i]))
            return true;
    return false;
}

bool gp_driver_has_dkms(struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/sbin/dkms", "/usr/bin/dkms", NULL};
    return gp_files_first(&exam->files, paths) != NULL;
}

static bool has_akmods(struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/sbin/akmods", "/usr/bin/akmods", NULL};
    return gp_files_first(&exam->files, paths) != NULL;
}

static const char akmods_folder[] = "/usr/src/akmods/";

static bool is_of_akmods(const struct gp_install *in)
{
    return strncmp(in->source, akmods_folder, sizeof(akmods_folder) - 1) == 0;
}

static bool is_of_dkms(const struct gp_install *in)
{
    static const char folder[] = "/var/lib/dkms/";
    return strncmp(in->source, folder, sizeof(folder) - 1) == 0;
}

const char *gp_driver_missing_builder(struct gp_exam *exam)
{
    /* Without any of them, the programs are not among the files that are examined. */
    static const char *const managers[] = {"/usr/bin/rpm", "/usr/bin/dpkg", "/usr/bin/pacman",
                                           NULL};
    const struct gp_install *in = gp_install_of(exam);
    if (gp_machine_is_ostree(&exam->machine) || !gp_files_first(&exam->files, managers))
        return NULL;
    return is_of_akmods(in) && !has_akmods(exam)         ? "akmods"
           : is_of_dkms(in) && !gp_driver_has_dkms(exam) ? "dkms"
                                                         : NULL;
}

/* What is to build the module may have been removed, or never have come with the source. */
static void fix_builder(struct gp_exam *exam)
{
    const char *builder = gp_driver_missing_builder(exam);
    if (builder && strcmp(builder, "dkms") == 0)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DKMS, NULL, NULL);
    else if (builder)
        gp_exam_command(exam, "install akmods, which builds the module for each kernel",
                        "sudo dnf install akmods");
}

/* Whether akmods can build the module of the libraries' version; also if that is not known. */
static bool has_source_of_libraries(struct gp_exam *exam)
{
    const struct gp_driver_library *library = gp_install_library(gp_install_of(exam));
    char **names, target[GP_PATH_SIZE];
    if (!library || !library->version[0])
        return true;
    const char *mark = gp_exam_text(exam, "-%s-", library->version);
    long n = gp_files_list(&exam->files, &exam->arena, akmods_folder, &names);
    for (long i = 0; i < n; i++)
        if (strstr(names[i], mark) ||
            (gp_files_link(&exam->files, gp_exam_text(exam, "%s%s", akmods_folder, names[i]),
                           target) &&
             strstr(target, mark)))
            return true;
    return false;
}

/* The package with the module's source was left behind, or is ahead: what akmods builds of it would
 * not match the libraries either. */
static void fix_other_source(struct gp_exam *exam)
{
    const char *latest = gp_install_of(exam)->source;
    char target[GP_PATH_SIZE];
    if (!gp_files_link(&exam->files, latest, target) || !strstr(target, ".src.rpm") ||
        has_source_of_libraries(exam))
        return;
    const char *slash = strrchr(target, '/');
    gp_exam_evidence(exam, latest,
                     "%s: akmods builds this version, which the libraries do not have",
                     slash ? slash + 1 : target);
    gp_driver_fix_update(exam);
    gp_exam_command(exam,
                    "if the versions in rpm -qa '*nvidia*' still differ: take all of these "
                    "packages from what the repositories have now",
                    "sudo dnf distro-sync --refresh '*nvidia*'");
}

void gp_driver_fix_module(struct gp_exam *exam, const char *kernel, bool wants_headers)
{
    bool is_arch = exam->machine.distro == GP_DISTRO_ARCH;
    const char *headers = gp_exam_text(exam, "%s/%s/build", gp_install_of(exam)->modules, kernel);
    /* Nothing is installed or built in the running system. */
    if (gp_machine_is_ostree(&exam->machine)) {
        gp_exam_remedy(exam, GP_REMEDY_BUILD_MODULE, kernel, NULL);
        gp_driver_fix_reboot(exam, "");
        return;
    }
    wants_headers = wants_headers || !gp_files_exist(&exam->files, headers);
    if (wants_headers)
        gp_driver_fix_headers(exam, kernel);
    fix_builder(exam);
    if (wants_headers && is_arch) /* of the newest kernel, which is installed with them */
        gp_driver_fix_reboot(exam, "into the kernel that the module was built for");
    else if (is_of_akmods(gp_install_of(exam))) {
        fix_other_source(exam);
        gp_exam_command(exam, "build the driver's module for this kernel",
                        "sudo akmods --force --kernels %s", gp_exam_quoted(exam, kernel));
    } else if (is_of_dkms(gp_install_of(exam)))
        gp_exam_command(exam, "build the driver's module for this kernel",
                        "sudo dkms autoinstall -k %s", gp_exam_quoted(exam, kernel));
    else
        gp_exam_remedy(exam, GP_REMEDY_BUILD_MODULE, module_package(exam, kernel), NULL);
    if (has_broken_packages(exam))
        gp_exam_remedy(exam, GP_REMEDY_CONFIGURE_PACKAGES, NULL, NULL);
    if (wants_headers)
        gp_driver_fix_without_headers(exam, kernel);
}

/* The id of the first repository in a file of yum.repos.d, if it is enabled and may install all of
 * its packages; NULL otherwise. */
static const char *open_repository(struct gp_exam *exam, const char *path)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 14, NULL);
    const char *id = text ? strchr(text, '[') : NULL;
    return id && !strstr(id, "enabled=0") && !strstr(id, "exclude")
               ? gp_exam_text(exam, "%.*s", (int)strcspn(id + 1, "]\r\n"), id + 1)
               : NULL;
}

/* Repositories with packages of the driver under other names than RPM Fusion's, by the names of
 * their files; negativo17's have packages for akmods, too. */
static const struct {
    const char *start;
    bool is_negativo17;
} others[] = {{"cuda-fedora", false},   {"cuda-rhel", false},  {"terra-nvidia", false},
              {"fedora-nvidia", true},  {"epel-nvidia", true}, {"fedora-multimedia", true},
              {"epel-multimedia", true}};
static const char yum_folder[] = "/etc/yum.repos.d", fusion[] = "rpmfusion-nonfree";

/* The id of one of these that is enabled next to RPM Fusion; NULL: there is none. */
static const char *foreign_repository(struct gp_exam *exam, const char **ret_path,
                                      bool *ret_is_negativo17)
{
    char **names;
    const char *found = NULL;
    bool has_fusion = false;
    long n = gp_files_list(&exam->files, &exam->arena, yum_folder, &names);
    for (long i = 0; i < n; i++) {
        has_fusion = has_fusion || strncmp(names[i], fusion, sizeof(fusion) - 1) == 0;
        for (size_t k = 0; k < GP_ARRAY_LEN(others) && !found; k++) {
            if (strncmp(names[i], others[k].start, strlen(others[k].start)) != 0)
                continue;
            *ret_path = gp_exam_text(exam, "%s/%s", yum_folder, names[i]);
            *ret_is_negativo17 = others[k].is_negativo17;
            found = open_repository(exam, *ret_path);
        }
    }
    return has_fusion ? found : NULL;
}

bool gp_driver_has_negativo17(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, yum_folder, &names);
    for (long i = 0; i < n; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(others); k++)
            if (others[k].is_negativo17 &&
                strncmp(names[i], others[k].start, strlen(others[k].start)) == 0 &&
                open_repository(exam, gp_exam_text(exam, "%s/%s", yum_folder, names[i])))
                return true;
    return false;
}

bool gp_driver_has_libraries_of_others(struct gp_exam *exam)
{
    static const char *const logs[] = {"/var/log/dnf.rpm.log", "/var/log/dnf5.log"};
    enum { LAST_BYTES = 1 << 20 };
    for (size_t i = 0; i < GP_ARRAY_LEN(logs); i++) {
        size_t size = 0;
        const char *text = gp_files_tail(&exam->files, &exam->arena, logs[i], LAST_BYTES, &size);
        if (text && strstr(text, "nvidia-driver-libs-"))
            return !strstr(text, "xorg-x11-drv-nvidia-libs-");
    }
    return false;
}

static bool has_dnf5(const struct gp_machine *m)
{
    enum { FIRST = 41 };
    return m->distro == GP_DISTRO_FEDORA && gp_version_major(m->distro_version) >= FIRST;
}

/* " ID.excludepkgs=PACKAGES", as an argument for dnf config-manager. */
static const char *exclusion(struct gp_exam *exam, const char *id, const char *packages)
{
    const char *setting = gp_exam_text(exam, "%s%s.excludepkgs=%s",
                                       has_dnf5(&exam->machine) ? "" : "--setopt=", id, packages);
    return gp_exam_text(exam, " %s", gp_exam_quoted(exam, setting));
}

static void exclude_packages(struct gp_exam *exam, const char *note, const char *exclusions)
{
    gp_exam_command(exam, note, "sudo dnf config-manager %s%s",
                    has_dnf5(&exam->machine) ? "setopt" : "--save", exclusions);
}

/* The driver is negativo17's, and only the module's source came from RPM Fusion. */
static void return_to_negativo17(struct gp_exam *exam)
{
    char **names;
    const char *exclusions = "";
    long n = gp_files_list(&exam->files, &exam->arena, yum_folder, &names);
    for (long i = 0; i < n; i++) {
        const char *id =
            strncmp(names[i], fusion, sizeof(fusion) - 1) == 0
                ? open_repository(exam, gp_exam_text(exam, "%s/%s", yum_folder, names[i]))
                : NULL;
        if (id)
            exclusions = gp_exam_text(exam, "%s%s", exclusions, exclusion(exam, id, "*nvidia*"));
    }
    if (exclusions[0])
        exclude_packages(exam, "take everything but the driver from RPM Fusion", exclusions);
    gp_exam_command(exam, "bring all packages of the driver to the version of the other repository",
                    "sudo dnf distro-sync '*nvidia*'");
}

/* openSUSE has the signed open modules in its own repository, which is behind or ahead of NVIDIA's
 * with the libraries. */
static void fix_libraries_of_suse(struct gp_exam *exam, const char *version)
{
    bool has_graphics = gp_system_library(exam, "", "libGLX_nvidia.so.0");
    gp_exam_why(exam, "The module is of openSUSE's repository, the libraries are of NVIDIA's: an "
                      "update of one of them does not wait for the other.");
    const char *generation = generation_of(version);
    const char *graphics = gp_exam_text(exam, " 'nvidia-video-%s == %s'", generation, version);
    gp_exam_command(exam, "install the libraries of the module's version",
                    "sudo zypper install --oldpackage 'nvidia-compute-utils-%s == %s'%s",
                    generation, version, has_graphics ? graphics : "");
    gp_driver_fix_reboot(exam, "");
}

bool gp_driver_fix_repositories(struct gp_exam *exam, const char *version)
{
    static const char of_it[] = "nvidia-driver*,libnvidia-*,kmod-nvidia*,nvidia-kmod-common,"
                                "nvidia-modprobe,nvidia-settings";
    const struct gp_machine *m = &exam->machine;
    const struct gp_install *in = gp_install_of(exam);
    if (m->distro == GP_DISTRO_SUSE && m->is_driver_open && !in->source[0] && !in->run_trace[0] &&
        strspn(version, "0123456789.") == strlen(version)) {
        fix_libraries_of_suse(exam, version);
        return true;
    }
    const char *path = "";
    bool is_negativo17 = false;
    const char *id = foreign_repository(exam, &path, &is_negativo17);
    if (!id || !is_of_akmods(in) || has_source_of_libraries(exam))
        return false;
    gp_exam_evidence(exam, path, "enabled, with other packages of the driver than RPM Fusion's");
    gp_exam_why(exam, "The module is of RPM Fusion's packages, the libraries are of another "
                      "repository's: the driver must come from one of them.");
    if (is_negativo17 && gp_driver_has_libraries_of_others(exam)) {
        return_to_negativo17(exam);
    } else {
        exclude_packages(exam, "take everything but the driver from that repository",
                         exclusion(exam, id, of_it));
        gp_exam_command(exam, "install RPM Fusion's packages in place of its",
                        "sudo dnf remove 'nvidia-driver*' && sudo dnf install akmod-nvidia "
                        "xorg-x11-drv-nvidia-cuda");
    }
    gp_exam_remedy(exam, GP_REMEDY_BUILD_MODULE, m->kernel, NULL);
    gp_driver_fix_reboot(exam, "");
    return true;
}

void gp_driver_fix_other_kernel(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *kernel = in->other_kernel;
    const char *images[] = {gp_exam_text(exam, "/boot/vmlinuz-%s", kernel),
                            gp_exam_text(exam, "%s/%s/vmlinuz", in->modules, kernel), NULL};
    bool has_grubby =
        exam->machine.distro == GP_DISTRO_FEDORA || exam->machine.distro == GP_DISTRO_RHEL;
    if (!has_grubby || gp_machine_is_ostree(&exam->machine) ||
        !gp_files_first(&exam->files, images)) {
        gp_exam_advice(exam, "until then: boot kernel %s, which has the module, from the boot menu",
                       kernel);
        return;
    }
    gp_exam_command(exam, "until then: boot the kernel that has the module",
                    "sudo grubby --set-default %s", gp_exam_quoted(exam, images[0]));
    gp_driver_fix_reboot(exam, "");
}

static void fix_prebuilt(struct gp_exam *exam, const char *branch)
{
    const char *series = gp_driver_kernel_series(exam);
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_PREBUILT, branch, exam->machine.kernel);
    if (series[0])
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_PREBUILT_SERIES, branch, series);
    gp_exam_command(exam,
                    "only if apt does not find a module of this branch for this kernel: have it "
                    "built here",
                    "sudo apt install nvidia-dkms-%s linux-headers-%s", branch,
                    gp_exam_quoted(exam, exam->machine.kernel));
}

void gp_driver_fix_build(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *branch = prebuilt_branch(exam, in);
    /* Without module source these distributions have prebuilt modules, kmod-nvidia. */
    bool is_prebuilt = exam->machine.distro == GP_DISTRO_FEDORA ||
                       exam->machine.distro == GP_DISTRO_RHEL ||
                       exam->machine.distro == GP_DISTRO_ARCH;
    bool is_by_run = in->run_trace[0] && in->package_count == 0 && !in->source[0];
    const char *headers = gp_exam_text(exam, "%s/%s/build", in->modules, exam->machine.kernel);
    if (gp_driver_fix_unfinished_headers(exam, exam->machine.kernel) ||
        (!exam->machine.is_driver_loaded && gp_driver_fix_repositories(exam, in->version)))
        return;
    if (is_by_run && !gp_files_exist(&exam->files, headers))
        gp_driver_fix_headers(exam, exam->machine.kernel);
    if (is_by_run && !gp_driver_has_dkms(exam))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DKMS, NULL, NULL);
    if (is_by_run)
        gp_exam_advice(exam, "run the driver's .run installer again, with --dkms so that future "
                             "kernels get the module automatically");
    else if (!in->source[0] && branch[0])
        fix_prebuilt(exam, branch);
    else if (!in->source[0] && strstr(exam->machine.kernel, ".elrepo."))
        gp_exam_advice(exam, "built modules (kmod-nvidia) are for the distribution's own kernels: "
                             "boot one of those, or install the driver's packages for DKMS "
                             "instead");
    else if (!in->source[0] && is_prebuilt)
        gp_driver_fix_update(exam);
    else
        gp_driver_fix_module(exam, exam->machine.kernel, false);
}
