/* What OpenGL, EGL, Vulkan and the screen need of the driver besides CUDA's libraries. Findings of
 * driver.libraries. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/graphics.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/readers/opencl.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/vulkan.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

/* The loader's file for NVIDIA's Vulkan driver, which names the driver's library. */
static void check_vulkan(struct gp_exam *exam)
{
    const char *const *folders = gp_vulkan_folders;
    static const char old[] = "\"libGL.so.1\"", right[] = "libGLX_nvidia.so.0";
    enum { GLVND = 396 }; /* before, libGL could be NVIDIA's own */
    char **names;
    for (size_t i = 0; folders[i]; i++) {
        long n = gp_version_major(exam->machine.driver) < GLVND
                     ? 0
                     : gp_files_list(&exam->files, &exam->arena, folders[i], &names);
        for (long k = 0; k < n; k++) {
            const char *path = gp_exam_text(exam, "%s/%s", folders[i], names[k]);
            const char *text = strstr(names[k], "nvidia_icd")
                                   ? gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL)
                                   : NULL;
            if (!text || !strstr(text, old))
                continue;
            gp_exam_report(exam, GP_VERDICT_WARN,
                           "Vulkan does not find NVIDIA's driver: its file names another library");
            gp_exam_evidence(exam, path, "library_path libGL.so.1, not %s", right);
            gp_exam_why(exam, "libGL.so.1 belongs to libglvnd and has no Vulkan: programs report "
                              "VK_ERROR_INCOMPATIBLE_DRIVER.");
            gp_exam_command(exam, "the original file is kept next to it",
                            "sudo sed -i.before 's/libGL\\.so\\.1/%s/' %s", right,
                            gp_exam_quoted(exam, path));
        }
    }
}

/* ---- registration ---- */

static const char *const egl_folders[] = {"/usr/share/glvnd/egl_vendor.d",
                                          "/etc/glvnd/egl_vendor.d", NULL};

/* What other libraries load NVIDIA's by: a file in one of these folders. */
static const struct {
    const char *const *folders;
    const char *file, *library, *loader, *words, *debian;
    bool is_vulkan; /* for the others no program is known to need nothing else */
} registers[] = {
    {gp_vulkan_folders, "nvidia_icd*.json", "libGLX_nvidia.so.0", "libvulkan.so.1", "Vulkan",
     "nvidia-vulkan-icd", true},
    {egl_folders, "10_nvidia.json", "libEGL_nvidia.so.0", "libEGL.so.1", "EGL", "nvidia-egl-icd",
     false},
};

/* How many files the folder has, and whether one of them is NVIDIA's. */
static long count_files(struct gp_exam *exam, const char *folder, bool *ret_has_nvidia)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        *ret_has_nvidia =
            *ret_has_nvidia || (strstr(names[i], "nvidia") && gp_vulkan_is_read(names[i]));
    return n > 0 ? n : 0;
}

static void fix_graphics(struct gp_exam *exam, const char *debian)
{
    const struct gp_install *in = gp_install_of(exam);
    if (in->run_trace[0] && in->package_count == 0)
        gp_exam_advice(exam, "run NVIDIA's .run installer again, without options that leave out "
                             "parts of the driver");
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_GRAPHICS,
                       exam->machine.distro == GP_DISTRO_DEBIAN ? debian : gp_driver_flavour(exam),
                       NULL);
}

/* The toolkit for containers mounts the driver's files, but old ones not all of them: the file, and
 * since driver 410 a compiler that Vulkan needs. The host may have them in other folders. */
static void fix_mounted(struct gp_exam *exam, size_t row, const char *library)
{
    enum { WITH_COMPILER = 410 };
    const char *files =
        gp_exam_text(exam, "%s into %s here", registers[row].file, registers[row].folders[0]);
    const char *name = gp_exam_text(exam, "libnvidia-glvkspirv.so.%s", exam->machine.driver);
    const char *folder =
        gp_exam_text(exam, "%.*s", (int)(strrchr(library, '/') - library), library);
    const char *compiler = gp_exam_text(exam, "%s/%s", folder, name);
    if (registers[row].is_vulkan && gp_version_major(exam->machine.driver) >= WITH_COMPILER &&
        !gp_files_exist(&exam->files, compiler)) {
        gp_exam_evidence(exam, compiler, "missing");
        files = gp_exam_text(exam, "%s, and %s into %s", files, name, folder);
    }
    gp_exam_advice(exam,
                   gp_machine_is_lxc(&exam->machine)
                       ? "mount the host's %s, with a line lxc.mount.entry for each file in the "
                         "container's configuration"
                       : "mount the host's %s (--mount type=bind,source=FILE,target=FILE,readonly "
                         "for each)",
                   files);
    gp_exam_advice(exam, "or update NVIDIA Container Toolkit on the host: newer ones mount them");
}

/* NVIDIA's Vulkan begins with Kepler. */
static bool is_before_vulkan(struct gp_exam *exam)
{
    enum { LAST_OF_FERMI = 390 };
    const struct gp_machine *m = &exam->machine;
    bool is_old = m->nvidia_count > 0;
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_NVIDIA)
            is_old = is_old && m->gpus[i].chip && m->gpus[i].chip->last_branch > 0 &&
                     m->gpus[i].chip->last_branch <= LAST_OF_FERMI;
    return is_old;
}

/* Vulkan is to be used, and no other GPU's driver, nor one for the CPU, is registered. */
static void check_too_old(struct gp_exam *exam)
{
    static const char *const users[] = {"/usr/bin/vulkaninfo", "/usr/bin/vkcube",
                                        "/usr/include/vulkan/vulkan.h", NULL};
    const char *user = gp_files_first(&exam->files, users);
    if (!user || !gp_system_library(exam, "", "libvulkan.so.1") || gp_vulkan_is_directed(exam))
        return;
    for (size_t f = 0; registers[0].folders[f]; f++) {
        bool has_nvidia = false;
        if (count_files(exam, registers[0].folders[f], &has_nvidia) > (has_nvidia ? 1 : 0))
            return;
    }
    for (size_t i = 0; i < exam->machine.gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[i];
        if (!gp_driver_is_ours(gpu))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s has no Vulkan: its generation, %s, is too old",
                       gp_driver_gpu_words(exam, gpu), gpu->chip->architecture);
        gp_exam_evidence(exam, user, "present: it is for Vulkan");
        gp_exam_evidence(exam, registers[0].folders[0], "no driver of another GPU");
        gp_exam_why(exam, "NVIDIA's driver has Vulkan for Kepler and newer; vkCreateInstance "
                          "returns VK_ERROR_INCOMPATIBLE_DRIVER.");
        gp_exam_advice(exam, "use OpenGL on it, or another GPU for Vulkan; Mesa's drivers, where "
                             "the distribution has them, run Vulkan on other GPUs and on the CPU");
        return;
    }
}

/* Other drivers are registered, or a program is there that needs one: then the folder is not left
 * out of a copy of the machine. */
void gp_driver_check_registers(struct gp_exam *exam)
{
    static const char *const of_nvidia[] = {"nvidia_icd", NULL};
    for (size_t i = 0; i < GP_ARRAY_LEN(registers); i++) {
        const char *library = gp_system_library(exam, "", registers[i].library);
        const char *program = registers[i].is_vulkan ? gp_vulkan_user(exam) : NULL;
        if (registers[i].is_vulkan && is_before_vulkan(exam)) {
            check_too_old(exam);
            continue;
        }
        bool has_nvidia = registers[i].is_vulkan && gp_vulkan_is_directed(exam);
        long count = 0;
        for (size_t f = 0; registers[i].folders[f]; f++)
            count += count_files(exam, registers[i].folders[f], &has_nvidia);
        if (has_nvidia || !library || !gp_system_library(exam, "", registers[i].loader) ||
            (count == 0 && !program) ||
            (registers[i].is_vulkan && gp_graphics_report_renamed(exam, of_nvidia, "NVIDIA's GPU")))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "%s does not use NVIDIA's driver: the file that names it is missing",
                       registers[i].words);
        gp_exam_evidence(exam, registers[i].folders[0], "no file of NVIDIA%s",
                         count ? ", only of others" : "");
        gp_exam_evidence(exam, library, "present");
        if (count == 0)
            gp_exam_evidence(exam, program, "present: it needs a driver");
        gp_exam_why(exam, "%s finds drivers by the files in this directory; programs then %s.",
                    registers[i].words, count ? "use another one, or the CPU" : "find none");
        if (exam->machine.container)
            fix_mounted(exam, i, library);
        else
            fix_graphics(exam, registers[i].debian);
    }
}

/* OpenCL's loader has no file of NVIDIA, and a program needs it. */
static void check_opencl(struct gp_exam *exam)
{
    static const char library[] = "libnvidia-opencl.so.1", path[] = GP_OPENCL_VENDORS "/nvidia.icd";
    const char *program = gp_opencl_program(exam);
    if (!program || !gp_system_library(exam, "", "libOpenCL.so.1") ||
        !gp_system_library(exam, "", library) || gp_graphics_knows_opencl(exam, "nvidia"))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "OpenCL does not use NVIDIA's driver: the file that names it is missing");
    gp_exam_evidence(exam, path, "missing");
    gp_exam_evidence(exam, gp_system_library(exam, "", library), "present");
    gp_exam_evidence(exam, program, "present: it uses OpenCL");
    gp_exam_why(exam, "OpenCL's loader reads from the files there which libraries to load.");
    gp_exam_command(exam, "write it", "sudo mkdir -p %s && echo %s | sudo tee %s",
                    GP_OPENCL_VENDORS, library, path);
}

/* "opencl-nvidia-470xx" for "nvidia-470xx-utils", and "opencl-nvidia-tkg" for "nvidia-utils-tkg".
 */
static const char *opencl_of_arch(struct gp_exam *exam, const char *utils)
{
    static const char start[] = "nvidia-", end[] = "utils";
    const char *found = strstr(utils, end), *rest = found ? found + sizeof(end) - 1 : "";
    const char *series = utils + sizeof(start) - 1;
    int n = found > series ? (int)(found - series) - 1 : 0;
    return gp_exam_text(exam, "opencl-nvidia%s%.*s%s", n ? "-" : "", n, series, rest);
}

/* Programs that do nothing on the GPU without OpenCL; others have a use for it. hashcat since 6.0
 * uses CUDA where a toolkit is installed, and some distributions always bring it. */
static bool needs_opencl(struct gp_exam *exam, const char *program)
{
    const char *distro = exam->machine.distro_id;
    if (strstr(program, "hashcat"))
        return strcmp(distro, "kali") != 0 && strcmp(distro, "parrot") != 0 &&
               gp_toolkits_of(exam)->count == 0;
    return strstr(program, "clpeak") || strstr(program, "FAHClient") ||
           strstr(program, "fah-client");
}

/* Debian and Arch have the driver's part for OpenCL in a package of its own. */
static void check_opencl_package(struct gp_exam *exam)
{
    static const char library[] = "libnvidia-opencl.so.1", usual[] = "nvidia-utils";
    const struct gp_install *in = gp_install_of(exam);
    enum gp_distro distro = exam->machine.distro;
    const char *program = gp_opencl_program(exam);
    bool is_debian = distro == GP_DISTRO_DEBIAN;
    if (!program || (!is_debian && distro != GP_DISTRO_ARCH) || in->package_count == 0 ||
        exam->machine.container || gp_system_has_driver_library(exam, library) ||
        gp_graphics_knows_opencl(exam, "nvidia"))
        return;
    gp_exam_report(exam, needs_opencl(exam, program) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "OpenCL does not find the NVIDIA GPU: the driver's part for OpenCL is not "
                   "installed");
    gp_exam_evidence(exam, library, "not in any library directory");
    gp_exam_evidence(exam, program, "present: it uses OpenCL");
    gp_exam_why(exam, "It is a package of its own, which the driver does not bring.");
    if (is_debian) {
        const char *name = gp_driver_libraries_package(exam, "-driver-libs", "nvidia-driver-libs");
        gp_exam_command(exam, "", "sudo apt install %.*s-opencl-icd",
                        (int)(strstr(name, "-driver-libs") - name), name);
        return;
    }
    const char *utils = gp_driver_libraries_package(exam, "-utils", usual);
    const char *name = opencl_of_arch(exam, utils);
    if (strcmp(utils, usual) == 0)
        gp_exam_command(exam, "", "sudo pacman -Syu %s", name);
    else
        gp_exam_advice(exam,
                       "build the package %s, of the same version, from the AUR or with "
                       "nvidia-all",
                       name);
}

/* ---- links ---- */

/* Directories with links to files of the driver, which installers and packages may leave behind. */
static const struct {
    const char *folder, *effect;
} linked[] = {
    {"/usr/lib64/xorg/modules/extensions", "X starts without it, and has no GLX"},
    {"/usr/lib/xorg/modules/extensions", "X starts without it, and has no GLX"},
    {"/usr/lib64/xorg/modules/drivers", "X does not find NVIDIA's driver"},
    {"/usr/lib/xorg/modules/drivers", "X does not find NVIDIA's driver"},
    {"/usr/lib64/gbm", "Wayland's compositors cannot use the GPU"},
    {"/usr/lib/gbm", "Wayland's compositors cannot use the GPU"},
    {"/usr/lib/x86_64-linux-gnu/gbm", "Wayland's compositors cannot use the GPU"},
    {"/usr/lib/aarch64-linux-gnu/gbm", "Wayland's compositors cannot use the GPU"},
};

/* The package of the X server: of Ubuntu's newer kernels also "xserver-xorg-core-hwe-18.04". */
static const char *x_server(struct gp_exam *exam)
{
    static const char *const words[] = {"xserver-xorg-core", NULL};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].state, "installed") == 0 &&
            (!packages[i].name[strlen(words[0])] || strstr(packages[i].name, "-hwe-")))
            return packages[i].name;
    return words[0];
}

static bool has_target(struct gp_exam *exam, const char *path, const char *target)
{
    const char *folder = gp_exam_text(exam, "%.*s", (int)(strrchr(path, '/') - path), path);
    return gp_files_exist(&exam->files,
                          target[0] == '/' ? target : gp_exam_text(exam, "%s/%s", folder, target));
}

/* To the same file of the driver that is loaded, if it is there, by the name that stays. */
static void fix_link(struct gp_exam *exam, const char *path, const char *target)
{
    const char *end = strstr(target, ".so");
    const char *stem = gp_exam_text(exam, "%.*s", end ? (int)(end - target) + 3 : 0, target);
    const char *steady = gp_exam_text(exam, "%s.1", stem);
    const char *exact = gp_exam_text(exam, "%s.%s", stem, exam->machine.driver);
    const char *right = has_target(exam, path, steady) ? steady : exact;
    if (strstr(path, "/libglx.so"))
        gp_exam_remedy(exam, GP_REMEDY_REINSTALL_X_SERVER, x_server(exam), NULL);
    else if (strcmp(target, steady) == 0 && has_target(exam, path, exact))
        gp_exam_command(exam, "create the file that it links to", "sudo ldconfig");
    else if (end && has_target(exam, path, right))
        gp_exam_command(exam, "link it to the file of this driver", "sudo ln -sfn %s %s",
                        gp_exam_quoted(exam, right), gp_exam_quoted(exam, path));
    else
        gp_exam_advice(exam, "reinstall the driver %s, in the way in which it was installed",
                       exam->machine.driver);
}

static void check_links(struct gp_exam *exam)
{
    char real[GP_PATH_SIZE], target[GP_PATH_SIZE], **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(linked); f++) {
        const char *folder = linked[f].folder;
        bool is_narrow_one = strcmp(folder, "/usr/lib/gbm") == 0 &&
                             gp_files_real(&exam->files, "/usr/lib64", real) &&
                             strcmp(real, "/usr/lib64") == 0; /* with files of 32 bits */
        bool is_itself = !is_narrow_one && gp_files_real(&exam->files, folder, real) &&
                         strcmp(real, folder) == 0;
        long n = is_itself ? gp_files_list(&exam->files, &exam->arena, folder, &names) : 0;
        for (long i = 0; i < n; i++) {
            const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
            struct stat st;
            if (!gp_files_link(&exam->files, path, target) || !strstr(target, "nvidia") ||
                gp_files_stat(&exam->files, path, &st) != -ENOENT)
                continue;
            gp_exam_report(exam, GP_VERDICT_WARN, "%s is a link to a file of a driver that is gone",
                           path);
            gp_exam_evidence(exam, path, "links to %s, which does not exist", target);
            gp_exam_why(exam, "%s.", linked[f].effect);
            fix_link(exam, path, target);
        }
    }
}

/* ---- the screen ---- */

/* A screen of NVIDIA's GPU, and no other GPU that could draw what it shows. */
static bool is_only_screen(const struct gp_machine *m)
{
    return m->gpu_count == m->nvidia_count && gp_driver_is_boot_screen(m);
}

/* A desktop on such a screen. */
static bool has_desktop(struct gp_exam *exam)
{
    static const char *const paths[] = {"/etc/systemd/system/display-manager.service",
                                        "/etc/X11/default-display-manager", NULL};
    return is_only_screen(&exam->machine) && gp_files_first(&exam->files, paths);
}

/* What the X server that was started last has said of it. */
struct fallback {
    const char *where;        /* of its line that NVIDIA's part for it is missing; NULL: none */
    const char *text, *drawn; /* that line, and the one that OpenGL is on the CPU */
};

/* Whether it has found no driver of NVIDIA for X and draws on the CPU. A log of before the machine
 * was started may tell of another driver. */
static bool find_fallback(struct gp_exam *exam, struct fallback *ret)
{
    static const char path[] = "/var/log/Xorg.0.log";
    size_t size = 0, n;
    const char *line, *text = gp_boot_is_after(exam, path)
                                  ? NULL
                                  : gp_files_tail(&exam->files, &exam->arena, path, 1 << 20, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *words = gp_exam_text(exam, "%.*s", n < 300 ? (int)n : 300, line);
        if (strstr(words, "(EE) Failed to load module \"nvidia\"")) {
            ret->where = gp_exam_text(exam, "%s:%zu", path, (size_t)lines.number);
            ret->text = words;
        } else if (strstr(words, "GLX: Initialized DRISWRAST")) {
            ret->drawn = words;
        }
    }
    return ret->where && ret->drawn;
}

static void fix_desktop(struct gp_exam *exam, const char *whole, bool has_xorg)
{
    if (whole[0]) {
        gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s: not installed", whole);
        gp_exam_command(exam, "the whole driver, with its parts for X and OpenGL",
                        "sudo apt install %s", whole);
        gp_driver_fix_reboot(exam, "");
        return;
    }
    fix_graphics(exam, "nvidia-driver");
    if (!gp_driver_is_headless(exam))
        return;
    if (has_xorg)
        gp_exam_command(exam, "and the driver's part for X",
                        "sudo apt install xserver-xorg-video-nvidia-%s", gp_driver_flavour(exam));
    gp_exam_advice(exam, "if this driver is meant for computing alone: leave it as it is");
}

/* False: it has no desktop that lacks them. */
static bool check_desktop(struct gp_exam *exam)
{
    static const char library[] = "libGLX_nvidia.so.0";
    enum { GLVND = 396 };
    const struct gp_machine *m = &exam->machine;
    struct fallback fallback = {.where = NULL};
    if (gp_version_major(m->driver) < GLVND || m->distro == GP_DISTRO_OTHER || !is_only_screen(m) ||
        gp_system_has_driver_library(exam, library))
        return false;
    bool is_seen = find_fallback(exam, &fallback);
    if (!is_seen && !has_desktop(exam))
        return false;
    const char *whole = gp_driver_whole(exam);
    /* A failure would skip driver.mismatch; and computing may be all that was wanted. */
    bool is_lost = is_seen && whole[0] && !gp_driver_is_mismatched(exam);
    gp_exam_report(exam, is_lost ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   "this desktop draws on the CPU: the driver's libraries for graphics are not "
                   "installed");
    gp_exam_evidence(exam, library, "not in any library directory");
    gp_exam_evidence(exam, gp_install_of(exam)->libraries[0].path, "present");
    if (is_seen) {
        gp_exam_evidence(exam, fallback.where, "%s", fallback.text);
        gp_exam_evidence(exam, "/var/log/Xorg.0.log", "%s", fallback.drawn);
    }
    gp_exam_why(exam, "Only the driver's part for computing is installed; OpenGL then uses "
                      "llvmpipe, or the screen stays black.");
    fix_desktop(exam, whole, is_seen);
    return true;
}

/* Whether a session draws with Mesa on NVIDIA's driver on purpose: OpenGL through Vulkan. */
static bool has_zink(struct gp_exam *exam)
{
    static const char *const names[] = {"MESA_LOADER_DRIVER_OVERRIDE", "GALLIUM_DRIVER"};
    const char *place;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *value = gp_machine_variable(&exam->machine, names[i]);
        value = value ? value : gp_assignment_last(exam, names[i], &place);
        if (value && strcmp(value, "zink") == 0)
            return true;
    }
    return false;
}

/* Variables that choose the driver of OpenGL. On a laptop they let NVIDIA's GPU sleep while the
 * other one draws. */
static const struct {
    const char *name, *library, *words, *effect;
} chosen[] = {
    {"__EGL_VENDOR_LIBRARY_FILENAMES", "libEGL_nvidia.so.0", "EGL",
     "Desktops on Wayland then show a black screen, or draw on the CPU"},
    {"__GLX_VENDOR_LIBRARY_NAME", "libGLX_nvidia.so.0", "GLX",
     "Programs on X11 and Xwayland then draw on the CPU, or fail"},
};

/* Whether a value is Mesa, or a list of files that exist, none of them NVIDIA's. */
static bool is_of_mesa_only(struct gp_exam *exam, const char *value)
{
    char file[GP_PATH_SIZE];
    bool has_any = strcmp(value, "mesa") == 0;
    if (strstr(value, "nvidia"))
        return false;
    while (value && gp_search_path_next(&value, ":", file))
        has_any = has_any || (file[0] == '/' && gp_files_exist(&exam->files, file));
    return has_any;
}

/* Every session is kept from the only driver for its screen. */
static void check_chosen(struct gp_exam *exam)
{
    bool is_meant = !has_desktop(exam) || has_zink(exam);
    for (size_t i = 0; i < GP_ARRAY_LEN(chosen) && !is_meant; i++) {
        const char *name = chosen[i].name, *place;
        const char *own = gp_machine_variable(&exam->machine, name);
        const char *value = gp_assignment_last(exam, name, &place);
        if (!value || !is_of_mesa_only(exam, value) || (own && strcmp(own, value) != 0) ||
            !gp_system_has_driver_library(exam, chosen[i].library))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "%s keeps the desktop from NVIDIA's %s: it names only Mesa's", name,
                       chosen[i].words);
        gp_exam_evidence(exam, chosen[i].library, "present");
        gp_exam_evidence(exam, "/sys/bus/pci/devices", "no GPU that Mesa's driver is for");
        gp_exam_why(exam, "%s. It is meant for laptops whose other GPU draws the desktop.",
                    chosen[i].effect);
        gp_exam_unset_for_all(exam, name);
    }
}

/* The kernel lacks what nvidia_drm needs, and so it is not loaded: CUDA works, a screen does not.
 */
static void check_drm(struct gp_exam *exam)
{
    if (gp_files_exist(&exam->files, "/sys/module/nvidia_drm") ||
        !gp_files_exist(&exam->files, "/sys/module/nvidia_modeset"))
        return;
    const struct gp_log_known *said = gp_log_known_of(exam, "nvidia-drm.helper");
    if (!said)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "nvidia_drm could not be loaded: Wayland and PRIME do not work");
    gp_exam_evidence(exam, said->where, "%s", said->text);
    gp_exam_evidence(exam, "/sys/module/nvidia_drm", "missing");
    gp_exam_why(exam, "The kernel refused it: %s.", said->cause);
    gp_exam_command(exam, "load what it needs, if the kernel has it",
                    "sudo modprobe -a drm_ttm_helper drm_client_lib; sudo modprobe nvidia_drm");
    gp_exam_advice(exam, "if there is no such module: build the kernel with CONFIG_DRM_TTM_HELPER "
                         "and CONFIG_DRM_KMS_HELPER (m or y), or install the distribution's "
                         "package with all of the kernel's modules");
}

/* What a compositor of Wayland draws with, besides the driver: GBM finds NVIDIA's by a link among
 * its backends, and Void has Mesa apart from GBM. */
static void check_wayland(struct gp_exam *exam)
{
    static const char *const folders[] = {"/usr/lib64/gbm", "/usr/lib/gbm",
                                          "/usr/lib/x86_64-linux-gnu/gbm",
                                          "/usr/lib/aarch64-linux-gnu/gbm"};
    static const char mesa[] = "libEGL_mesa.so.0", gbm[] = "libgbm.so.1", link[] = "nvidia-drm_gbm";
    enum { FIRST_WITH_GBM = 495 };
    const char *shell = gp_driver_compositor(exam), *others = NULL;
    char **names;
    bool has_link = false;
    if (!shell || gp_version_major(exam->machine.driver) < FIRST_WITH_GBM ||
        !gp_system_has_driver_library(exam, "libEGL_nvidia.so.0"))
        return;
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        others = n > 0 ? folders[f] : others;
        for (long i = 0; i < n; i++)
            has_link = has_link || strncmp(names[i], link, sizeof(link) - 1) == 0;
    }
    if (others && !has_link) {
        gp_exam_report(
            exam, GP_VERDICT_WARN,
            "Wayland cannot draw on the GPU: the driver's part for GBM is not installed");
        gp_exam_evidence(exam, others, "no %s.so", link);
        gp_exam_evidence(exam, shell, "present");
        gp_exam_why(exam, "The compositor then draws on the CPU, or does not start.");
        fix_graphics(exam, "libnvidia-allocator1 libnvidia-egl-gbm1");
    }
    if (exam->machine.distro == GP_DISTRO_OTHER && gp_system_library(exam, "", gbm) &&
        gp_system_library(exam, "", "libEGL.so.1") && !gp_system_library(exam, "", mesa)) {
        gp_exam_report(
            exam, GP_VERDICT_WARN,
            "Mesa is not installed, which compositors of Wayland need besides the driver");
        gp_exam_evidence(exam, mesa, "not in any library directory");
        gp_exam_evidence(exam, gp_system_library(exam, "", gbm), "present");
        gp_exam_evidence(exam, shell, "present");
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_MESA, NULL, NULL);
    }
}

void gp_driver_check_graphics(struct gp_exam *exam)
{
    gp_driver_check_narrow(exam);
    check_opencl(exam);
    check_opencl_package(exam);
    gp_driver_check_opencl_name(exam);
    check_vulkan(exam);
    gp_driver_check_registers(exam);
    if (!check_desktop(exam))
        gp_driver_check_left_out(exam);
    gp_driver_check_applications(exam);
    gp_driver_check_hangs(exam);
    check_chosen(exam);
    check_links(exam);
    check_drm(exam);
    check_wayland(exam);
    gp_driver_check_egl(exam);
}
