/* The driver's libraries for programs of 32 bits. Findings of driver.libraries. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/graphics.h"
#include "doctor/readers/install.h"
#include "doctor/readers/vulkan.h"
#include "doctor/version.h"

#include <string.h>

/* Arch's pacman offers AMD's Vulkan driver first to what needs any. */
static void remove_amdvlk(struct gp_exam *exam)
{
    static const char *const words[] = {"amdvlk", "lib32-amdvlk", NULL};
    struct gp_package *packages;
    const char *names = "";
    long n = exam->machine.amd_count > 0 || exam->machine.distro != GP_DISTRO_ARCH
                 ? 0
                 : gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strstr(packages[i].name, words[0]))
            names = gp_exam_text(exam, "%s%s%s", names, names[0] ? " " : "", packages[i].name);
    if (!names[0])
        return;
    gp_exam_evidence(exam, "/var/lib/pacman/local", "%s: Vulkan for GPUs of AMD, without one",
                     names);
    gp_exam_command(exam, "then remove AMD's Vulkan driver, which was installed instead",
                    "sudo pacman -R %s", names);
}

/* The series of an old driver that RPM Fusion keeps under a name of its own, "-470xx" of
 * ".../nvidia-470xx-kmod-470.256.02-1.fc42.src.rpm" or ".../extra/nvidia-470xx/nvidia.ko.xz"; "":
 * it is the newest one. */
static const char *series_of(struct gp_exam *exam, const char *path)
{
    static const char mark[] = "nvidia-";
    enum { DIGITS = 3 };
    for (const char *at = path; (at = strstr(at, mark)); at++) {
        const char *name = at + sizeof(mark) - 1;
        if (strspn(name, "0123456789") == DIGITS && strncmp(name + DIGITS, "xx", 2) == 0)
            return gp_exam_text(exam, "-%.*s", DIGITS + 2, name);
    }
    return "";
}

const char *gp_driver_fusion_package(struct gp_exam *exam, const char *end)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *series = series_of(exam, in->module[0] ? in->module : in->source);
    return !series[0] && gp_driver_has_libraries_of_others(exam)
               ? ""
               : gp_exam_text(exam, "xorg-x11-drv-nvidia%s%s", series, end);
}

static const char *package_of_fedora(struct gp_exam *exam)
{
    const char *package = gp_driver_fusion_package(exam, "-libs");
    return package[0] ? package : "nvidia-driver-libs";
}

/* Before Debian 9, OpenGL was a package of its own: "libgl1-nvidia-legacy-304xx-glx". */
static const char *package_of_debian(struct gp_exam *exam)
{
    static const char *const words[] = {"libgl1-nvidia", NULL};
    static const char end[] = "-glx";
    const char *found = gp_driver_libraries_package(exam, "-driver-libs", NULL);
    struct gp_package *packages;
    long n = found ? 0 : gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n && !found; i++) {
        size_t length = strlen(packages[i].name);
        if (strcmp(packages[i].state, "installed") == 0 && length > sizeof(end) &&
            strcmp(packages[i].name + length - (sizeof(end) - 1), end) == 0)
            found = packages[i].name;
    }
    return found ? found : "nvidia-driver-libs";
}

void gp_driver_fix_narrow(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    enum gp_distro distro = exam->machine.distro;
    const char *of_arch = "nvidia-utils";
    /* It has lib32-nvidia-470xx-utils, too. */
    bool is_manjaro = strcmp(exam->machine.distro_id, "manjaro") == 0;
    if (in->run_trace[0] && in->package_count == 0) {
        gp_exam_advice(exam, "run NVIDIA's .run installer again, with --install-compat32-libs%s",
                       exam->machine.container ? ", and as before without the kernel modules, "
                                                 "which the host has"
                                               : "");
        return;
    }
    const char *package = distro == GP_DISTRO_DEBIAN ? package_of_debian(exam)
                          : distro == GP_DISTRO_ARCH || is_manjaro
                              ? gp_driver_libraries_package(exam, "-utils", of_arch)
                          : distro == GP_DISTRO_FEDORA ? package_of_fedora(exam)
                                                       : gp_driver_flavour(exam);
    if (distro == GP_DISTRO_ARCH && strcmp(package, of_arch) != 0)
        gp_exam_advice(
            exam,
            "build the package lib32-%s, of the same version, from the AUR or with nvidia-all",
            package);
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_LIBRARIES_32, package, NULL);
}

/* ---- missing ---- */

/* NVIDIA's OpenGL in a folder; NULL: there is none. Before libglvnd it was called libGL itself, by
 * whose version it differs from Mesa's, "libGL.so.1.2.0". */
static const char *gl_in(struct gp_exam *exam, const char *folder)
{
    enum { FIRST = 100 };
    static const char name[] = "libGL.so.";
    const char *path = gp_exam_text(exam, "%s/libGLX_nvidia.so.0", folder);
    char real[GP_PATH_SIZE];
    if (gp_files_exist(&exam->files, path))
        return path;
    path = gp_exam_text(exam, "%s/libGL.so.1", folder);
    const char *file = gp_files_real(&exam->files, path, real) ? strrchr(real, '/') + 1 : "";
    return strncmp(file, name, strlen(name)) == 0 && gp_version_major(file + strlen(name)) >= FIRST
               ? path
               : NULL;
}

/* Folders of the driver's OpenGL, and what goes with it for 32 bits. RPM Fusion had some of their
 * own until libglvnd came. */
static const struct place {
    const char *wide, *narrow;
} places[] = {
    {"/usr/lib/x86_64-linux-gnu", "/usr/lib/i386-linux-gnu"},
    {"/usr/lib64/nvidia", "/usr/lib/nvidia"},
    {"/usr/lib64/nvidia-340xx", "/usr/lib/nvidia-340xx"},
    {"/usr/lib64/nvidia-304xx", "/usr/lib/nvidia-304xx"},
    {"/usr/lib64", "/usr/lib"},
};

const char *gp_driver_missing_narrow(struct gp_exam *exam)
{
    static const char of_debian[] = "/usr/lib/i386-linux-gnu/nvidia", of_arch[] = "/usr/lib32";
    char real[GP_PATH_SIZE];
    const char *missing = NULL;
    bool is_split =
        !gp_files_real(&exam->files, "/usr/lib64", real) || strcmp(real, "/usr/lib") != 0;
    if (gl_in(exam, of_arch) || gp_files_exist(&exam->files, of_debian))
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(places); i++) {
        bool is_last = i + 1 == GP_ARRAY_LEN(places);
        const char *wide = gl_in(exam, places[i].wide);
        const char *narrow = is_last && !is_split ? of_arch : places[i].narrow;
        if (narrow != of_arch && gl_in(exam, narrow))
            return NULL;
        if (wide && !missing)
            missing = gp_exam_text(exam, "%s%s", narrow, strrchr(wide, '/'));
    }
    return missing;
}

/* Programs of 32 bits need a driver's libraries of their own. */
static void check_missing(struct gp_exam *exam)
{
    const char *program = gp_vulkan_narrow_user(exam);
    const char *missing = program ? gp_driver_missing_narrow(exam) : NULL;
    if (!missing)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the driver's 32-bit libraries, which %s needs, are not installed",
                   gp_vulkan_narrow_words(program));
    gp_exam_evidence(exam, missing, "missing");
    gp_graphics_show_narrow_user(exam, program);
    gp_exam_why(exam, "32-bit programs and games then find only software rendering (swrast), or "
                      "end with GLXBadFBConfig.");
    gp_driver_fix_narrow(exam);
    remove_amdvlk(exam);
}

/* They are updated apart from the others, and must have the same version. */
static void check_version(struct gp_exam *exam)
{
    static const char *const narrow[] = {"/usr/lib/i386-linux-gnu/libGLX_nvidia.so.0",
                                         "/usr/lib32/libGLX_nvidia.so.0", NULL};
    static const char mark[] = ".so.";
    const struct gp_driver_library *wide = gp_install_library(gp_install_of(exam));
    const char *path = gp_files_first(&exam->files, narrow);
    char real[GP_PATH_SIZE];
    if (!wide || !path || !gp_files_real(&exam->files, path, real) ||
        !gp_vulkan_is_narrow(exam, real))
        return;
    const char *file = strrchr(real, '/'), *at = strstr(file, mark);
    const char *version = at ? at + sizeof(mark) - 1 : "";
    if (!strchr(version, '.') || gp_install_same(version, wide->version))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the driver's 32-bit libraries have version %s, the others %s", version,
                   wide->version);
    gp_exam_evidence(exam, path, "links to %s", real);
    gp_exam_evidence(exam, wide->path, "links to %s", wide->real);
    gp_exam_why(exam, "32-bit programs and games, such as Steam, end with \"API mismatch\" in the "
                      "kernel log, or find no GLX.");
    gp_driver_fix_narrow(exam);
}

void gp_driver_check_narrow(struct gp_exam *exam)
{
    check_missing(exam);
    check_version(exam);
}
