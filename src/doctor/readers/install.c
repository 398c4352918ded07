#include "doctor/readers/install.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/installer.h"
#include "doctor/readers/ldcache.h"
#include "doctor/version.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_KERNELS = 16, MOST_LOG = 4 << 20 };

/* ---- modules ---- */

/* A kernel's NVIDIA module, "" if it has none; −errno of reading its list in *ret_error. */
static const char *module_of(struct gp_exam *exam, const char *modules, const char *kernel,
                             int *ret_error)
{
    struct stat st;
    char found[512] = "";
    const void *data;
    size_t size;
    const char *path = gp_exam_text(exam, "%s/%s/modules.dep", modules, kernel);
    *ret_error = gp_files_stat(&exam->files, path, &st);
    if (!gp_files_map(&exam->files, path, &data, &size)) {
        if (*ret_error == 0 && !(S_ISREG(st.st_mode) && st.st_size == 0))
            *ret_error = -EINVAL;
        return "";
    }
    (void)gp_modules_find_nvidia(data, size, found, sizeof(found));
    (void)munmap((void *)(uintptr_t)data, size);
    return found[0] ? gp_exam_text(exam, "%s", found) : "";
}

static void read_modules(struct gp_exam *exam, struct gp_install *in)
{
    char **kernels;
    char branch[8];
    int error;
    in->modules = "/lib/modules";
    long n = gp_files_list(&exam->files, &exam->arena, in->modules, &kernels);
    if (n == -ENOENT || n == -ENOTDIR) {
        in->modules = "/usr/lib/modules";
        n = gp_files_list(&exam->files, &exam->arena, in->modules, &kernels);
    }
    in->has_modules = n > 0;
    in->modules_error = n < 0 ? (int)n : 0;
    for (long i = n > MOST_KERNELS ? n - MOST_KERNELS : 0; i < n; i++) {
        /* Arch's package may put it below a kernel that is not installed: without a list. */
        const char *extra =
            gp_exam_text(exam, "%s/%s/extramodules/nvidia.ko.zst", in->modules, kernels[i]);
        bool has_module = module_of(exam, in->modules, kernels[i], &error)[0] ||
                          (error == -ENOENT && gp_files_exist(&exam->files, extra));
        if (has_module && strcmp(kernels[i], exam->machine.kernel) != 0 &&
            strverscmp(kernels[i], in->other_kernel) > 0)
            in->other_kernel = kernels[i];
    }
    in->module = module_of(exam, in->modules, exam->machine.kernel, &error);
    in->is_kernel_here = error != -ENOENT;
    in->is_list_readable = error == 0;
    gp_modules_branch(in->module, branch, sizeof(branch));
    in->module_version = gp_exam_text(exam, "%s", branch);
    in->is_open = strstr(in->module, "-open");
    in->is_proprietary = branch[0] && !in->is_open;
}

/* ---- builds ---- */

/* rpmbuild: "<tab>gcc-c++ is needed by nvidia-kmod-3:590.48.01-1.fc43.x86_64". A version may follow
 * the package: "elfutils-libelf-devel >= 0.180 is needed by …". */
static const char *missing_package(struct gp_exam *exam, const char *text)
{
    const char *start = strstr(text, " is needed by ");
    if (!start)
        return "";
    while (start > text && start[-1] != '\n')
        start--;
    start += strspn(start, " \t");
    return gp_exam_text(exam, "%.*s", (int)strcspn(start, " \t"), start);
}

/* akmods builds a package, which dnf then refuses to install: "- nothing provides
 * nvidia-kmod-common
 * >= 3:440.36 needed by kmod-nvidia-5.3.12-…", or "package kmod-nvidia-… requires …, but none of
 * the providers can be installed". */
static const char *refused_package(struct gp_exam *exam, const char *text, size_t size)
{
    static const char package[] = "kmod-nvidia",
                      marks[][24] = {"nothing provides ", "none of the providers"};
    struct gp_lines lines = gp_lines_of(text, size);
    const char *line;
    size_t n;
    while (gp_lines_next(&lines, &line, &n))
        for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++)
            if (memmem(line, n, package, sizeof(package) - 1) &&
                memmem(line, n, marks[i], strlen(marks[i])))
                return gp_exam_text(exam, "%.*s", n < 400 ? (int)n : 400, line);
    return "";
}

static void read_log(struct gp_exam *exam, struct gp_failed_build *build, const char *log)
{
    char kernel[96];
    size_t size, length;
    const char *line;
    struct gp_arena scratch = {0};
    const char *text = gp_files_text(&exam->files, &scratch, log, MOST_LOG, &size);
    if (!text)
        return;
    gp_modules_log_kernel(text, size, kernel, sizeof(kernel));
    *build = (struct gp_failed_build){.log = log, .error = ""};
    build->missing = missing_package(exam, text);
    build->refused = refused_package(exam, text, size);
    build->kernel = gp_exam_text(exam, "%s", kernel);
    build->kernel_gcc = gp_installer_warned_gcc(exam, text, "The kernel was built by:");
    build->used_gcc = gp_installer_warned_gcc(exam, text, "You are using:");
    build->line = gp_modules_first_error(text, size, &line, &length);
    if (build->line > 0)
        build->error = gp_exam_text(exam, "%.*s", length < 400 ? (int)length : 400, line);
    gp_arena_fini(&scratch);
}

static bool is_driver_source(const char *name)
{
    static const char *const others[] = {"nvidia-fs", "nvidia-peermem", "nvidia-gdrcopy"};
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    return strncmp(name, "nvidia", 6) == 0;
}

/* A version below /var/lib/dkms: whether it was built for this kernel, or failed. */
static void read_dkms_version(struct gp_exam *exam, struct gp_install *in, const char *folder,
                              const char *version)
{
    const char *log = gp_exam_text(exam, "%s/build/make.log", folder);
    in->source = folder;
    in->is_open = in->is_open || strstr(folder, "open");
    if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, exam->machine.kernel)))
        in->module_version = version;
    else if (!in->version[0])
        in->version = version;
    /* The directory of a build is moved away when the build succeeds. */
    if (gp_files_exist(&exam->files, log))
        read_log(exam, &in->failed, log);
}

/* A link to the source that leads nowhere. */
static bool has_lost_source(struct gp_exam *exam, const char *folder)
{
    const char *link = gp_exam_text(exam, "%s/source", folder);
    struct stat st;
    return gp_files_stat_link(&exam->files, link, &st) == 0 &&
           gp_files_stat(&exam->files, link, &st) == -ENOENT;
}

static void read_dkms(struct gp_exam *exam, struct gp_install *in)
{
    static const char top[] = "/var/lib/dkms";
    char **names, **versions;
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    if (n == -EACCES)
        in->closed_build = top;
    for (long i = 0, seen = 0; i < n && seen < MOST_KERNELS; i++) {
        if (!is_driver_source(names[i]))
            continue;
        seen++;
        const char *folder = gp_exam_text(exam, "%s/%s", top, names[i]);
        long count = gp_files_list(&exam->files, &exam->arena, folder, &versions);
        bool has_source = false;
        for (long v = 0; v < count && v < MOST_KERNELS; v++)
            has_source = has_source ||
                         gp_files_exist(&exam->files,
                                        gp_exam_text(exam, "%s/%s/source", folder, versions[v]));
        for (long v = 0; v < count && v < MOST_KERNELS; v++) {
            const char *place = gp_exam_text(exam, "%s/%s", folder, versions[v]);
            if (gp_version_major(versions[v]) == 0)
                continue;
            if (has_source && has_lost_source(exam, place))
                in->stale_source = place;
            else
                read_dkms_version(exam, in, place, versions[v]);
        }
    }
}

/* Fedora's akmods leave "580.95.05-1-for-6.17.1-300.fc43.x86_64.failed.log" next to the packages.
 */
static void read_akmods(struct gp_exam *exam, struct gp_install *in)
{
    static const char sources[] = "/usr/src/akmods", cache[] = "/var/cache/akmods";
    char **names, **logs;
    long n = gp_files_list(&exam->files, &exam->arena, sources, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "nvidia", 6) == 0)
            in->source = gp_exam_text(exam, "%s/%s", sources, names[i]);
    const char *end = gp_exam_text(exam, "-for-%s.failed.log", exam->machine.kernel);
    n = gp_files_list(&exam->files, &exam->arena, cache, &names);
    for (long i = 0; i < n; i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", cache, names[i]);
        long count = strncmp(names[i], "nvidia", 6) == 0
                         ? gp_files_list(&exam->files, &exam->arena, folder, &logs)
                         : 0;
        for (long k = 0; k < count; k++) {
            if (!strstr(logs[k], end))
                continue;
            read_log(exam, &in->failed, gp_exam_text(exam, "%s/%s", folder, logs[k]));
            in->failed.kernel = exam->machine.kernel;
        }
    }
}

/* Portage removes the directory of a build that succeeded. */
static void read_portage(struct gp_exam *exam, struct gp_install *in)
{
    static const char folder[] = "/var/tmp/portage/x11-drivers";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *log = gp_exam_text(exam, "%s/%s/temp/build.log", folder, names[i]);
        if (strncmp(names[i], "nvidia-drivers-", 15) == 0 && gp_files_exist(&exam->files, log))
            read_log(exam, &in->failed, log);
    }
}

/* ---- libraries ---- */

static bool is_32_bit(const struct gp_exam *exam, const char *path)
{
    char head[EI_CLASS + 2];
    return gp_files_read(&exam->files, path, head, sizeof(head)) > EI_CLASS &&
           memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS32;
}

static void add_library(struct gp_exam *exam, struct gp_install *in, const char *name,
                        const char *path)
{
    char real[GP_PATH_SIZE];
    if (strstr(path, "/stubs/"))
        in->stub = gp_exam_text(exam, "%s", path);
    /* CUDA's compatibility packages for older drivers are not a second driver. */
    if (strstr(path, "/stubs/") || strstr(path, "/compat/") ||
        !gp_files_real(&exam->files, path, real) || is_32_bit(exam, path))
        return;
    for (size_t i = 0; i < in->library_count; i++)
        if (strcmp(in->libraries[i].real, real) == 0)
            return;
    const char *file = strrchr(real, '/');
    const char *suffix = file ? strstr(file, ".so.") : NULL;
    bool has_version = suffix && gp_version_major(suffix + 4) >= 100;
    if (in->library_count < GP_LIBRARIES)
        in->libraries[in->library_count++] = (struct gp_driver_library){
            .name = name,
            .path = gp_exam_text(exam, "%s", path),
            .real = gp_exam_text(exam, "%s", real),
            .version = has_version ? gp_exam_text(exam, "%s", suffix + 4) : "",
        };
}

static void read_libraries(struct gp_exam *exam, struct gp_install *in)
{
    static const char *const names[] = {"libnvidia-ml.so.1", "libcuda.so.1"};
    const char *const folders[] = {
        gp_exam_text(exam, "/usr/lib/%s-linux-gnu", exam->machine.arch),
        gp_exam_text(exam, "/usr/lib/%s-linux-gnu/nvidia/current", exam->machine.arch),
        "/usr/lib64",
        "/usr/lib",
        "/usr/lib64/nvidia",
        "/usr/local/lib",
        "/usr/local/lib64",
        "/usr/local/nvidia/lib64",
        "/run/opengl-driver/lib", /* NixOS */
        "/.singularity.d/libs",   /* Apptainer with --nv */
        gp_exam_text(exam, "/run/nvidia/driver/usr/lib/%s-linux-gnu", exam->machine.arch),
    };
    struct gp_ldcache cache;
    struct gp_library entry;
    bool has_cache = gp_ldcache_read(&cache, &exam->files, &exam->arena) == 0;
    for (size_t n = 0; n < GP_ARRAY_LEN(names); n++) {
        size_t from = 0;
        while (has_cache && gp_ldcache_find(&cache, names[n], exam->machine.arch, &from, &entry))
            add_library(exam, in, names[n], entry.path);
        for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
            add_library(exam, in, names[n], gp_exam_text(exam, "%s/%s", folders[i], names[n]));
    }
    /* Some programs, such as Numba, load libcuda by the name that is for linking. */
    size_t first = 0;
    if (has_cache && gp_ldcache_find(&cache, "libcuda.so", exam->machine.arch, &first, &entry) &&
        strstr(entry.path, "/stubs/"))
        in->stub = gp_exam_text(exam, "%s", entry.path);
}

const struct gp_driver_library *gp_install_library(const struct gp_install *install)
{
    for (size_t i = 0; i < install->library_count; i++)
        if (install->libraries[i].version[0])
            return &install->libraries[i];
    return NULL;
}

bool gp_install_same(const char *a, const char *b)
{
    bool is_branch = !strchr(a, '.') || !strchr(b, '.');
    return is_branch ? gp_version_major(a) == gp_version_major(b) : gp_version_compare(a, b) == 0;
}

/* ---- packages ---- */

/* The prefixes of a driver's package names, in dpkg and pacman. */
static const char *const package_words[] = {
    "cuda-drivers",
    "libcuda1",
    "libnvidia-cfg",
    "libnvidia-compute",
    "libnvidia-gl",
    "libnvidia-ml",
    "linux-modules-nvidia",
    "linux-objects-nvidia",
    "nvidia-3",
    "nvidia-4",
    "nvidia-5",
    "nvidia-6",
    "nvidia-compute-utils",
    "nvidia-dkms",
    "nvidia-driver",
    "nvidia-headless",
    "nvidia-kernel",
    "nvidia-legacy",
    "nvidia-lts",
    "nvidia-open",
    "nvidia-smi",
    "nvidia-tesla",
    "nvidia-utils",
    "xserver-xorg-video-nvidia",
    NULL,
};

/* "1:580.95.05-0ubuntu1" has version 580.95.05. */
static const char *upstream_version(struct gp_exam *exam, const char *version)
{
    const char *colon = strchr(version, ':');
    version = colon ? colon + 1 : version;
    return gp_exam_text(exam, "%.*s", (int)strspn(version, "0123456789."), version);
}

static void read_packages(struct gp_exam *exam, struct gp_install *in)
{
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, package_words, &packages);
    in->packages_error = n < 0 ? (int)n : 0;
    in->package_count = n > 0 ? (size_t)n : 0;
    in->packages = n > 0 ? packages : NULL;
    for (long i = 0; i < n; i++) {
        if (strcmp(packages[i].state, "installed") != 0)
            continue;
        bool has_module = strstr(packages[i].name, "dkms") || strstr(packages[i].name, "kernel") ||
                          strstr(packages[i].name, "modules") ||
                          strncmp(packages[i].name, "nvidia-open", 11) == 0;
        bool is_open = gp_packages_is_open(packages[i].name);
        in->has_module_package = in->has_module_package || has_module;
        in->is_open = in->is_open || (has_module && is_open);
        in->is_proprietary = in->is_proprietary || (strstr(packages[i].name, "dkms") && !is_open);
        if (!in->version[0] && gp_version_major(upstream_version(exam, packages[i].version)) > 100)
            in->version = upstream_version(exam, packages[i].version);
    }
    in->is_proprietary = in->is_proprietary && !in->is_open;
}

/* ---- the variant ---- */

const char gp_install_variant[] = "/etc/nvidia/kernel.conf";

static void read_variant(struct gp_exam *exam, struct gp_install *in)
{
    char line[256];
    if (in->is_open || in->is_proprietary ||
        !gp_files_line(&exam->files, gp_install_variant, line, sizeof(line)))
        return;
    in->is_open = strcmp(line, "MODULE_VARIANT=kernel-open") == 0;
    in->is_proprietary = strcmp(line, "MODULE_VARIANT=kernel") == 0;
}

/* ---- settings that block a module ---- */

/* A file in an earlier directory overrides files of the same name in later ones. */
static const char *const config_folders[] = {"/etc/modprobe.d", "/run/modprobe.d",
                                             "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d",
                                             "/lib/modprobe.d"};

static bool is_hidden(const struct gp_exam *exam, size_t folder, const char *name)
{
    char path[512];
    for (size_t i = 0; i < folder; i++) {
        (void)snprintf(path, sizeof(path), "%s/%.255s", config_folders[i], name);
        if (gp_files_exist(&exam->files, path))
            return true;
    }
    return false;
}

/* The first file of settings that counts and in which `see` finds something; NULL: none. */
static const char *find_config(struct gp_exam *exam,
                               bool (*see)(struct gp_exam *, const char *path, const char *module,
                                           struct gp_block *),
                               const char *module, struct gp_block *block)
{
    char **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(config_folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, config_folders[f], &names);
        for (long i = 0; i < n && i < 256; i++) {
            const char *path = gp_exam_text(exam, "%s/%s", config_folders[f], names[i]);
            const char *end = strrchr(names[i], '.');
            if (end && strcmp(end, ".conf") == 0 && !is_hidden(exam, f, names[i]) &&
                see(exam, path, module, block))
                return path;
        }
    }
    return NULL;
}

static bool see_block(struct gp_exam *exam, const char *path, const char *module,
                      struct gp_block *block)
{
    size_t size, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        enum gp_block_kind kind = gp_modules_config_line(line, n, module);
        if (kind <= block->kind)
            continue;
        block->kind = kind;
        block->where = gp_exam_text(exam, "%s:%zu", path, lines.number);
        block->text = gp_exam_text(exam, "%.*s", (int)(n < 200 ? n : 200), line);
    }
    return false; /* a later file may have a stronger one */
}

static bool see_name(struct gp_exam *exam, const char *path, const char *module,
                     struct gp_block *block)
{
    size_t size, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    (void)block;
    while (gp_lines_next(&lines, &line, &n))
        if (gp_modules_is_renamed(line, n, module))
            return true;
    return false;
}

static bool see_closed(struct gp_exam *exam, const char *path, const char *module,
                       struct gp_block *block)
{
    int fd = gp_files_open_file(&exam->files, path);
    (void)module, (void)block;
    if (fd >= 0)
        (void)close(fd);
    return fd == -EACCES || fd == -EPERM;
}

bool gp_install_is_renamed(struct gp_exam *exam, const char *module)
{
    return find_config(exam, see_name, module, NULL);
}

struct gp_block gp_install_block(struct gp_exam *exam, const char *module)
{
    struct gp_block block = {GP_BLOCK_NONE, NULL, NULL};
    char line[4096], word[512];
    (void)find_config(exam, see_block, module, &block);
    if (!gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)))
        return block;
    enum gp_block_kind kind = gp_modules_command_line(line, module, word, sizeof(word));
    if (kind > block.kind)
        block = (struct gp_block){kind, "/proc/cmdline", gp_exam_text(exam, "%s", word)};
    return block;
}

/* A file of settings that may not be read; "": none. */
static const char *find_closed(struct gp_exam *exam)
{
    static const char line[] = "/proc/cmdline";
    const char *closed =
        see_closed(exam, line, NULL, NULL) ? line : find_config(exam, see_closed, NULL, NULL);
    return closed ? closed : "";
}

/* The version of the module, from the package that it is built of or that it is in: a compressed
 * module does not show it. */
static void read_module_package(struct gp_exam *exam, struct gp_install *in)
{
    static const char *const names[] = {"nvidia-kernel-dkms", "nvidia-open-kernel-dkms",
                                        "nvidia-dkms",        "nvidia-open-dkms",
                                        "nvidia-open",        "nvidia",
                                        "nvidia-lts",         "nvidia-open-lts"};
    static const char ubuntu[] = "nvidia-dkms-";
    const char *version = "", *name = "";
    for (size_t i = 0; i < in->package_count && in->module[0]; i++) {
        const struct gp_package *package = &in->packages[i];
        bool is_module = strncmp(package->name, ubuntu, sizeof(ubuntu) - 1) == 0;
        for (size_t n = 0; n < GP_ARRAY_LEN(names); n++)
            is_module = is_module || strcmp(package->name, names[n]) == 0;
        if (!is_module || strcmp(package->state, "installed") != 0)
            continue;
        const char *colon = strchr(package->version, ':');
        const char *found = colon ? colon + 1 : package->version;
        found = gp_exam_text(exam, "%.*s", (int)strspn(found, "0123456789."), found);
        if (version[0] && strcmp(version, found) != 0)
            return; /* of two branches: which one is loaded is unknown */
        version = found;
        name = package->name;
    }
    if (!strchr(version, '.') ||
        (in->module_version[0] && !gp_install_same(in->module_version, version)))
        return;
    in->module_version = version;
    in->module_package = name;
}

/* The module may have another name, such as "nvidia-current" or "nvidia_384". */
static struct gp_block block_of_nvidia(struct gp_exam *exam, const char *module)
{
    struct gp_block block = gp_install_block(exam, "nvidia");
    const char *slash = strrchr(module, '/'), *end = slash ? strstr(slash, ".ko") : NULL;
    return block.kind != GP_BLOCK_NONE || !end
               ? block
               : gp_install_block(exam,
                                  gp_exam_text(exam, "%.*s", (int)(end - slash - 1), slash + 1));
}

/* ---- all ---- */

static void read_run(struct gp_exam *exam, struct gp_install *in)
{
    static const char *const traces[] = {"/usr/bin/nvidia-uninstall", "/var/lib/nvidia/dirs"};
    for (size_t i = 0; i < GP_ARRAY_LEN(traces) && !in->run_trace[0]; i++)
        if (gp_files_exist(&exam->files, traces[i]))
            in->run_trace = traces[i];
}

const struct gp_install *gp_install_of(struct gp_exam *exam)
{
    static const struct gp_install none = {.modules = "/lib/modules",
                                           .module = "",
                                           .other_kernel = "",
                                           .source = "",
                                           .stale_source = "",
                                           .closed_build = "",
                                           .closed_config = "",
                                           .run_trace = "",
                                           .stub = "",
                                           .module_version = "",
                                           .module_package = "",
                                           .version = ""};
    if (exam->install)
        return exam->install;
    struct gp_install *in = gp_arena_alloc(&exam->arena, 1, sizeof(*in));
    if (!in)
        return &none;
    *in = none;
    read_modules(exam, in);
    read_dkms(exam, in);
    read_akmods(exam, in);
    read_portage(exam, in);
    read_libraries(exam, in);
    read_packages(exam, in);
    if (!strchr(in->module_version, '.'))
        read_module_package(exam, in);
    read_variant(exam, in);
    in->closed_config = find_closed(exam);
    in->nvidia = block_of_nvidia(exam, in->module);
    in->uvm = gp_install_block(exam, "nvidia_uvm");
    in->nouveau = gp_install_block(exam, "nouveau");
    read_run(exam, in);
    if (!in->source[0] && in->package_count == 0 && !in->failed.log)
        (void)gp_installer_read(exam, &in->failed);
    const struct gp_driver_library *library = gp_install_library(in);
    bool is_exact = strchr(in->module_version, '.');
    if (library && (!in->module_version[0] ||
                    (!is_exact && gp_install_same(in->module_version, library->version))))
        in->version = library->version;
    else if (in->module_version[0])
        in->version = in->module_version;
    exam->install = in;
    return in;
}
