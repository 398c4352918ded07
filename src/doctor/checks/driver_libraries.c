/* Checks of the driver's libraries against its module: driver.libraries, duplicates, mismatch. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/readers/module_file.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

/* nvidia-smi needs only the other library. */
static void check_cuda(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->library_count; i++)
        if (strcmp(in->libraries[i].name, "libcuda.so.1") == 0)
            return;
    if (in->stub[0] || gp_driver_report_vgpu_host(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "the driver's libcuda.so.1 is not installed");
    gp_exam_evidence(exam, "libcuda.so.1", "not in any library directory");
    gp_exam_evidence(exam, in->libraries[0].path, "present");
    gp_exam_why(exam, "nvidia-smi works without it, but no CUDA program does.");
    gp_driver_fix_libraries(exam);
}

/* "a b c": the installed packages with libraries or programs. */
static const char *package_names(struct gp_exam *exam, const struct gp_install *in)
{
    const char *names = "";
    for (size_t i = 0; i < in->package_count; i++)
        if (strcmp(in->packages[i].state, "installed") == 0)
            names = gp_exam_text(exam, "%s%s%s", names, names[0] ? " " : "", in->packages[i].name);
    return names;
}

/* A disk that was full leaves files of no bytes. Copies of machines may have only such ones. */
static void check_empty(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_driver_library *empty = NULL;
    bool has_content = false;
    struct stat st;
    for (size_t i = 0; i < in->library_count; i++) {
        bool is_read = gp_files_stat(&exam->files, in->libraries[i].real, &st) == 0;
        has_content = has_content || (is_read && st.st_size > 0);
        if (is_read && st.st_size == 0)
            empty = &in->libraries[i];
    }
    if (!empty || !has_content || exam->machine.container)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "a library of the driver is an empty file");
    gp_exam_evidence(exam, empty->real, "0 bytes");
    gp_exam_why(exam, "An update was interrupted, or the disk was full: programs report \"file too "
                      "short\", or find no driver.");
    gp_exam_command(exam, "first make room, if it is full", "df -h /usr");
    gp_exam_remedy(exam, GP_REMEDY_REINSTALL_PACKAGES, package_names(exam, in), NULL);
}

static bool has_file(struct gp_exam *exam, const char *const *paths)
{
    for (; *paths; paths++)
        if (gp_files_exist(&exam->files, *paths))
            return true;
    return false;
}

/* With the GPU Operator the driver is in a container, and its libraries are not on the host. */
static bool is_in_container(struct gp_exam *exam)
{
    static const char *const paths[] = {"/run/nvidia/driver/usr/bin/nvidia-smi",
                                        "/run/nvidia/driver/usr/lib64/libcuda.so.1",
                                        "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
                                        "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
                                        "/home/kubernetes/bin/nvidia/bin/nvidia-smi",
                                        NULL};
    return has_file(exam, paths);
}

void gp_driver_check_libraries(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    if (in->library_count == 0 && is_in_container(exam))
        return;
    if (in->library_count > 0 && exam->machine.is_driver_loaded) {
        check_empty(exam);
        check_cuda(exam);
        gp_driver_check_graphics(exam);
        gp_driver_check_proton(exam);
        gp_driver_check_parts(exam);
        gp_driver_check_nvenc(exam);
    }
    if (in->library_count > 0 || !exam->machine.is_driver_loaded)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the module is loaded, but its libraries are not installed");
    static const char narrow[] = "/usr/lib/i386-linux-gnu/libcuda.so.1";
    bool is_narrow =
        strcmp(exam->machine.arch, "x86_64") == 0 && gp_files_exist(&exam->files, narrow);
    gp_exam_evidence(exam, "libnvidia-ml.so.1, libcuda.so.1", "not in any library directory");
    if (is_narrow)
        gp_exam_evidence(exam, narrow, "only the 32-bit ones are installed");
    gp_exam_why(exam,
                "Programs need them to use the driver; the module is of no use without them.");
    if (is_narrow)
        gp_exam_advice(exam, "name the 64-bit packages, with :amd64 behind each name:");
    if (exam->machine.driver[0])
        gp_driver_fix_libraries(exam);
    else
        gp_exam_advice(exam, "install the libraries that match the module");
}

/* ---- duplicates ---- */

static bool is_of_two_versions(const struct gp_install *in)
{
    const struct gp_driver_library *first = gp_install_library(in);
    for (size_t i = 0; first && i < in->library_count; i++)
        if (in->libraries[i].version[0] && strcmp(in->libraries[i].version, first->version) != 0)
            return true;
    return false;
}

static void show_libraries(struct gp_exam *exam, const struct gp_install *in)
{
    for (size_t i = 0; i < in->library_count; i++)
        if (in->libraries[i].version[0])
            gp_exam_evidence(exam, in->libraries[i].path, "version %s", in->libraries[i].version);
}

static void check_stub(struct gp_exam *exam, const struct gp_install *in)
{
    const char *path = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    const char *where = in->stub[0] ? "/etc/ld.so.cache" : "LD_LIBRARY_PATH";
    const char *text = in->stub[0] ? in->stub : path && strstr(path, "/stubs") ? path : NULL;
    if (!text)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "programs find a stub libcuda that is only for linking");
    gp_exam_evidence(exam, where, "%s", text);
    gp_exam_why(
        exam,
        "The toolkit's stub answers every call with error 34, \"CUDA driver is a stub library\".");
    if (in->stub[0])
        gp_exam_advice(exam, "remove the directory from /etc/ld.so.conf.d, then: sudo ldconfig");
    else
        gp_exam_advice(exam, "remove the directory from LD_LIBRARY_PATH");
}

void gp_driver_check_duplicates(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    bool has_two = is_of_two_versions(in);
    bool has_both = in->run_trace[0] && in->package_count > 0;
    bool is_of_image = exam->machine.container && exam->machine.driver[0] && !has_both;
    enum gp_verdict verdict = gp_driver_is_mismatched(exam) ? GP_VERDICT_FAIL : GP_VERDICT_WARN;
    check_stub(exam, in);
    if ((!has_two && !has_both) || gp_cuda_is_compat_mounted(exam))
        return;
    gp_exam_report(exam, verdict, "%s",
                   has_both ? "the driver was installed by both NVIDIA's .run installer and the "
                              "distribution's packages"
                            : "libraries of two driver versions are installed");
    if (has_both) {
        gp_exam_evidence(exam, in->run_trace, "from the installer");
        gp_exam_evidence(exam, "packages", "%.300s", package_names(exam, in));
    }
    show_libraries(exam, in);
    if (exam->machine.driver[0])
        gp_exam_evidence(exam, "the loaded module", "version %s", exam->machine.driver);
    gp_exam_why(exam, is_of_image
                          ? "A part of the image's libraries takes the place of those of the "
                            "host's driver, which must all match its module."
                          : "Each overwrites the other's files; after the next update the module "
                            "and the libraries have different versions.");
    if (in->run_trace[0])
        gp_exam_command(exam, "remove what the installer installed", "sudo nvidia-uninstall");
    if (has_both)
        gp_driver_fix_packages(exam, package_names(exam, in));
    else if (is_of_image)
        gp_exam_advice(exam,
                       "have the image made without the driver's packages: the host's driver, %s, "
                       "is added at the container's start",
                       exam->machine.driver);
    else
        gp_exam_advice(exam, "remove the packages or files of the driver that is not %s",
                       exam->machine.driver[0] ? exam->machine.driver : "wanted");
    if (!exam->machine.container)
        gp_driver_fix_reboot(exam, "");
}

/* ---- mismatch ---- */

/* The last entry in apt's history that changed the driver: who did it, and when. */
static void show_apt_history(struct gp_exam *exam)
{
    static const char path[] = "/var/log/apt/history.log";
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 4 << 20, NULL);
    const char *start = NULL, *change = NULL;
    for (const char *p = text; p; p = strstr(p, "\n\n")) {
        p += strspn(p, "\n");
        const char *end = strstr(p, "\n\n");
        size_t n = end ? (size_t)(end - p) : strlen(p);
        if (memmem(p, n, "libnvidia-compute", 17) && memmem(p, n, "Upgrade:", 8)) {
            start = p;
            change = memmem(p, n, "Commandline:", 12);
        }
        if (!end)
            break;
    }
    if (!start)
        return;
    gp_exam_evidence(exam, path, "%.*s%s%.*s", (int)strcspn(start, "\n"), start, change ? ", " : "",
                     change ? (int)strcspn(change, "\n") : 0, change ? change : "");
}

/* The version of the installed source of the module: "/var/lib/dkms/nvidia/570.124.06". The source
 * that akmods builds does not say which: "". */
static const char *source_version(const struct gp_install *in)
{
    const char *slash = strrchr(in->source, '/');
    return slash && gp_version_major(slash + 1) > 0 ? slash + 1 : "";
}

/* The package's sources are of another version than the package: each build gives the wrong module.
 * True if this is so. */
static bool fix_wrong_source(struct gp_exam *exam)
{
    static const char key[] = "NVIDIA_VERSION = ";
    const struct gp_install *in = gp_install_of(exam);
    const char *path = gp_exam_text(exam, "%s/source/version.mk", in->source);
    char line[128];
    const char *version = line + sizeof(key) - 1;
    if (!source_version(in)[0] || !gp_files_line(&exam->files, path, line, sizeof(line)) ||
        strncmp(line, key, sizeof(key) - 1) != 0 || gp_install_same(version, source_version(in)))
        return false;
    gp_exam_evidence(exam, path, "%s: not the version of its package", line);
    gp_exam_why(exam, "The package with the module's source has that of another version: whatever "
                      "is built of it does not match the libraries.");
    gp_driver_fix_update(exam);
    gp_driver_fix_reboot(exam, "load the module that matches the libraries");
    gp_exam_advice(exam,
                   "if there is no corrected package yet: report it to the distribution, and go "
                   "back to %s with all packages of the driver, libraries included",
                   version);
    return true;
}

/* The module that the next boot loads. */
struct next_module {
    const char *where, *version; /* "": unknown */
};

static struct next_module next_module(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    struct gp_module_file file;
    const char *path =
        gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module);
    if (in->module[0] && gp_module_file_read(&exam->files, path, &file) && file.version[0])
        return (struct next_module){path, gp_exam_text(exam, "%s", file.version)};
    return (struct next_module){in->module_package[0] ? in->module_package : path,
                                in->module_version};
}

static void rebuild_initramfs(struct gp_exam *exam)
{
    gp_exam_why(exam, "The log has the mismatch from the start: the module on disk was replaced, "
                      "but the old one in the initramfs is loaded, also at the next boot.");
    if (gp_files_exist(&exam->files, "/usr/bin/sdbootutil"))
        gp_exam_command(exam, "rebuild the initramfs in the boot partition",
                        "sudo sdbootutil add-all-kernels --no-reuse-initrd");
    else
        gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "load the module that matches the libraries");
}

/* The module on disk matches, but not the copy of it that is loaded at boot; true if this is so. */
static bool fix_initramfs(struct gp_exam *exam, const struct next_module *next)
{
    if (!strchr(next->version, '.') || !gp_log_at_boot(exam, GP_KMSG_MISMATCH))
        return false;
    gp_exam_evidence(exam, next->where, "version %s: it matches, but was not the one loaded",
                     next->version);
    rebuild_initramfs(exam);
    return true;
}

/* Likewise for a module of which the version cannot be read: the user looks. */
static bool fix_unread_module(struct gp_exam *exam, const char *library)
{
    gp_exam_command(
        exam,
        gp_exam_text(exam, "this must say %s; otherwise update the module's package", library),
        "modinfo -F version %s", gp_driver_module_name(exam));
    if (!gp_log_at_boot(exam, GP_KMSG_MISMATCH))
        return false;
    rebuild_initramfs(exam);
    return true;
}

/* The folder also has libraries of the module's version: the others are left over from earlier
 * drivers; true if this is so. */
static bool fix_leftovers(struct gp_exam *exam)
{
    const struct gp_driver_library *library = gp_install_library(gp_install_of(exam));
    static const char start[] = "libnvidia-ml.so.";
    const char *folder = gp_exam_text(
        exam, "%.*s", (int)(strrchr(library->real, '/') - library->real), library->real);
    const char *wanted = gp_exam_text(exam, "%s/%s%s", folder, start, exam->machine.driver);
    char **names;
    if (!gp_files_exist(&exam->files, wanted))
        return false;
    gp_exam_evidence(exam, wanted, "present: the libraries of other versions are left over");
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *version = names[i] + sizeof(start) - 1;
        if (strncmp(names[i], start, sizeof(start) - 1) == 0 && gp_version_major(version) >= 100 &&
            strcmp(version, exam->machine.driver) != 0)
            gp_exam_command(exam, "remove the libraries of an earlier driver",
                            "sudo find %s -maxdepth 1 -name %s -delete",
                            gp_exam_quoted(exam, folder),
                            gp_exam_quoted(exam, gp_exam_text(exam, "lib*.so.%s", version)));
    }
    gp_exam_command(exam, "let the links lead to the others", "sudo ldconfig");
    return true;
}

/* Module and libraries come with one image or system: what is loaded is of the one that was booted.
 * False: this distribution has packages. */
static bool fix_image(struct gp_exam *exam)
{
    if (strcmp(exam->machine.distro_id, "nixos") == 0) {
        gp_driver_fix_reboot(exam,
                             "module and libraries come with one system: boot the current one");
        return true;
    }
    if (!gp_machine_is_ostree(&exam->machine))
        return false;
    gp_exam_command(exam, "a newer image may have both of one version", "sudo rpm-ostree upgrade");
    gp_driver_fix_reboot(exam, "");
    gp_exam_command(exam, "or go back to the image before it, if it worked",
                    "sudo rpm-ostree rollback && sudo reboot");
    return true;
}

/* The module is newer, and not of the installer that brought the libraries: it was built from other
 * sources, which the same installer would replace. True if this is so. */
static bool fix_own_module(struct gp_exam *exam, const struct next_module *next)
{
    enum { PLURAL = 515 };
    const struct gp_install *in = gp_install_of(exam);
    const char *driver = exam->machine.driver;
    if (!in->run_trace[0] || in->package_count > 0 || in->source[0] ||
        strcmp(next->version, driver) != 0)
        return false;
    gp_exam_evidence(exam, next->where, "version %s, like the loaded one", next->version);
    gp_exam_evidence(exam, in->run_trace, "the libraries are from NVIDIA's installer");
    gp_exam_command(exam,
                    "keep the module: have the installer of its version replace only the libraries",
                    "sudo sh NVIDIA-Linux-%s-%s.run --no-kernel-module%s", exam->machine.arch,
                    driver, gp_version_major(driver) < PLURAL ? "" : "s");
    gp_exam_advice(exam,
                   "if that installer refuses, first remove the others (sudo nvidia-uninstall), "
                   "and afterwards install the module again from its sources");
    return true;
}

static void fix_mismatch(struct gp_exam *exam, const char *library, bool is_newer)
{
    if (fix_image(exam))
        return;
    const struct gp_install *in = gp_install_of(exam);
    const struct next_module next = next_module(exam);
    bool is_known = next.version[0];
    bool is_stale = is_known && !gp_install_same(next.version, library);
    const struct gp_log_line *firmware = gp_log_find(exam, GP_KMSG_OTHER_FIRMWARE);
    if (!is_stale && firmware && !is_newer) {
        gp_exam_evidence(exam, firmware->where, "%s", firmware->kmsg.body);
        gp_exam_why(exam, "The firmware and the libraries have one version, the module that was "
                          "loaded at boot has another: its package was built from other sources, "
                          "and a reboot alone loads it again.");
        gp_driver_fix_update(exam);
        gp_driver_fix_module(exam, exam->machine.kernel, false);
        gp_driver_fix_reboot(exam, "load the module that matches the libraries");
        return;
    }
    if (!is_stale && fix_initramfs(exam, &next))
        return;
    const char *source = source_version(in);
    if (is_stale && !(source[0] && gp_install_same(source, library)) &&
        gp_driver_fix_repositories(exam, next.version))
        return;
    if (is_stale && is_newer && fix_own_module(exam, &next))
        return;
    if (is_stale) {
        gp_exam_evidence(exam, next.where,
                         "version %s: the next boot loads it, and it does not match either",
                         next.version);
        if (fix_wrong_source(exam))
            return;
        if (!is_newer)
            gp_exam_why(exam, "The libraries were updated, the module was not; nvidia-smi reports "
                              "\"Driver/library version mismatch\" and no program can use the "
                              "GPUs.");
        if (next.where != in->module_package && (!source[0] || gp_install_same(source, library)))
            gp_driver_fix_build(exam);
        else
            gp_driver_fix_update(exam);
    }
    const char *names = package_names(exam, in);
    if (!is_stale && !names[0] && fix_leftovers(exam))
        return;
    const bool has_apt = gp_machine_has_apt(&exam->machine);
    const bool is_unknown = in->packages_error < 0 && (in->packages_error != -ENOENT || !has_apt);
    const bool is_packaged = names[0] || is_unknown;
    if (!is_stale && is_newer && !is_known && !is_packaged) {
        gp_exam_advice(exam,
                       "no package has these libraries, so NVIDIA's .run installer put them there: "
                       "install those of %s with it (--no-kernel-module), or remove them "
                       "(sudo nvidia-uninstall) and install the driver from packages",
                       exam->machine.driver);
        return;
    }
    if (!is_stale && is_newer && !is_known)
        gp_driver_fix_update(exam);
    if (!is_stale && !is_newer && !strchr(next.version, '.') && fix_unread_module(exam, library))
        return;
    gp_driver_fix_reboot(exam, "load the module that matches the libraries");
    if (is_stale)
        return;
    gp_exam_command(exam, "instead of a reboot, once nothing uses the GPUs (including displays)",
                    "sudo systemctl stop nvidia-persistenced; sudo rmmod nvidia_uvm nvidia_drm "
                    "nvidia_modeset nvidia && sudo modprobe nvidia");
    if (is_packaged)
        gp_exam_remedy(exam, GP_REMEDY_HOLD_PACKAGES, names, NULL);
}

/* The driver's modules are not all of one version: one was not replaced. */
static void check_modules(struct gp_exam *exam)
{
    static const char *const names[] = {"nvidia_modeset", "nvidia_drm", "nvidia_uvm"};
    const struct gp_log_known *said = gp_log_known_of(exam, "nv.modeset-version");
    const char *driver = exam->machine.driver, *path = NULL;
    char version[64] = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && !path; i++) {
        path = gp_exam_text(exam, "/sys/module/%s/version", names[i]);
        if (!gp_files_line(&exam->files, path, version, sizeof(version)) ||
            strcmp(version, driver) == 0)
            path = NULL;
    }
    if (!driver[0] || (!path && !said))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the driver's modules have different versions: nvidia has %s", driver);
    if (path)
        gp_exam_evidence(exam, path, "%s", version);
    if (said)
        gp_exam_evidence(exam, said->where, "%s", said->text);
    gp_exam_why(exam, "One of the modules was not replaced when the driver was updated, on disk or "
                      "in the initramfs; the others refuse to work with it.");
    static const char dkms[] = "/var/lib/dkms/";
    const char *source = gp_install_of(exam)->source, *name = source + sizeof(dkms) - 1;
    if (strncmp(source, dkms, sizeof(dkms) - 1) == 0)
        gp_exam_command(
            exam, "build and install all of them again",
            "sudo dkms install --force -m %s -v %s -k %s",
            gp_exam_quoted(exam, gp_exam_text(exam, "%.*s", (int)strcspn(name, "/"), name)), driver,
            gp_exam_quoted(exam, exam->machine.kernel));
    else
        gp_driver_fix_update(exam);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
}

/* A container that is used like a system, with packages of its own. */
static bool is_own_system(const struct gp_exam *exam)
{
    return gp_machine_variable(&exam->machine, "DISTROBOX_ENTER_PATH") ||
           gp_files_exist(&exam->files, "/run/.toolboxenv") ||
           gp_files_exist(&exam->files, "/usr/bin/distrobox-export");
}

void gp_driver_check_mismatch(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_driver_library *library = gp_install_library(gp_install_of(exam));
    static const enum gp_kmsg_kind said = GP_KMSG_MISMATCH;
    if (m->is_driver_loaded && !m->driver[0])
        gp_exam_report(exam, GP_VERDICT_SKIP, "the version of the loaded module cannot be read");
    if (!gp_driver_is_mismatched(exam)) {
        if (m->is_driver_loaded && !m->container)
            check_modules(exam);
        return;
    }
    bool is_older = gp_version_compare(m->driver, library->version) < 0;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the loaded module has version %s, the libraries have version %s", m->driver,
                   library->version);
    gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s", m->driver);
    gp_exam_evidence(exam, library->path, "links to %s", library->real);
    (void)gp_log_show_kind(exam, &said, 1);
    if (gp_machine_is_lxc(m)) {
        gp_exam_why(exam, "The module is the host's, the libraries are the container's own: they "
                          "must have the same version.");
        gp_exam_advice(
            exam,
            "install the libraries of %s in the container, without a module: NVIDIA's .run "
            "installer with --no-kernel-module; repeat after each driver update on the host",
            m->driver);
        return;
    }
    if (m->container && is_own_system(exam)) {
        gp_exam_why(exam, "The module is the host's, the libraries are the container's own: they "
                          "must have the same version.");
        gp_exam_advice(exam,
                       "install exactly the host's driver, %s, in this container, without a module "
                       "(NVIDIA's .run installer with --no-kernel-module), and again after each "
                       "update of the host",
                       m->driver);
        gp_exam_advice(exam, "or remove the driver from it and create it again with the host's: "
                             "distrobox create --nvidia; toolbox does so by itself");
        return;
    }
    if (m->container) {
        gp_driver_fix_image(exam);
        return;
    }
    show_apt_history(exam);
    gp_exam_why(exam,
                "%s; nvidia-smi reports \"Driver/library version mismatch\" and no program can use "
                "the GPUs.",
                is_older ? "The driver was updated while the old module stayed in the kernel"
                         : "The libraries are from an older driver than the module");
    fix_mismatch(exam, library->version, !is_older);
}

/* ---- firmware ---- */

static bool has_gsp(struct gp_exam *exam, const char *folder)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "gsp", 3) == 0 && strstr(names[i], ".bin"))
            return true;
    return false;
}

/* A version whose firmware is on disk while this driver's is not; NULL: nothing is known to be
 * missing. Copies of machines often leave all firmware out. */
static const char *other_firmware(struct gp_exam *exam)
{
    static const char top[] = "/lib/firmware/nvidia";
    const char *other = NULL;
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    for (long i = 0; i < n; i++) {
        if (gp_version_major(names[i]) < 100 || !strchr(names[i], '.') ||
            !has_gsp(exam, gp_exam_text(exam, "%s/%s", top, names[i])))
            continue;
        if (strcmp(names[i], exam->machine.driver) == 0)
            return NULL;
        other = names[i];
    }
    return other;
}

void gp_driver_check_firmware(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_log_line *missing = gp_log_find(exam, GP_KMSG_NO_FIRMWARE);
    const struct gp_log_line *wrong = gp_log_find(exam, GP_KMSG_OTHER_FIRMWARE);
    const struct gp_log_line *line = missing ? missing : wrong;
    const char *other = m->is_driver_open ? other_firmware(exam) : NULL;
    if (!m->is_driver_loaded || !m->driver[0] || (!line && !other))
        return;
    /* The proprietary module drives most GPUs without it. */
    bool is_optional = exam->snapshot || (m->is_flavour_known && !m->is_driver_open);
    gp_exam_report(exam, is_optional ? GP_VERDICT_WARN : GP_VERDICT_FAIL,
                   "the GPU's firmware (GSP) for driver %s is %s", m->driver,
                   missing || !wrong ? "missing" : "of another version");
    if (line)
        gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    if (other)
        gp_exam_evidence(exam, "/lib/firmware/nvidia", "has that of %s, not of %s", other,
                         m->driver);
    gp_exam_why(exam, "The open kernel module runs no GPU without the firmware of exactly its own "
                      "version; it is in a package of its own, or the initramfs lacks it.");
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_FIRMWARE,
                   gp_exam_text(exam, "%u", gp_version_major(m->driver)), m->driver);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
}
