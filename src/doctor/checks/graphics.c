/* What OpenGL, Vulkan and VA-API need of Mesa's and Intel's drivers: variables that lead elsewhere,
 * and drivers that are not installed. */
#include "doctor/checks/graphics.h"

#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/log.h"
#include "doctor/readers/lutris.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/vulkan.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- variables ---- */

/* Values by which the CPU draws. */
static void check_software(struct gp_exam *exam)
{
    static const struct {
        const char *name, *value;
    } rows[] = {{"LIBGL_ALWAYS_SOFTWARE", "1"},
                {"LIBGL_ALWAYS_SOFTWARE", "true"},
                {"GALLIUM_DRIVER", "llvmpipe"},
                {"GALLIUM_DRIVER", "softpipe"},
                {"MESA_LOADER_DRIVER_OVERRIDE", "swrast"},
                {"MESA_LOADER_DRIVER_OVERRIDE", "kms_swrast"},
                {"MESA_LOADER_DRIVER_OVERRIDE", "llvmpipe"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const char *value = gp_exam_session_value(exam, rows[i].name);
        if (!value || strcasecmp(value, rows[i].value) != 0)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s makes OpenGL render on the CPU", rows[i].name);
        gp_exam_fix_variable(exam, rows[i].name, value, "");
    }
}

/* A monitor on a cable, of a GPU whose card is none of those in the list of files:
 * "card0-HDMI-A-1"; NULL: there is none. A laptop's own screen may be off on purpose,
 * and a server's management controller shows a monitor that nobody sees. */
static const char *monitor_beside(struct gp_exam *exam, const char *list)
{
    static const char folder[] = "/sys/class/drm", own[] = "-eDP-", other[] = "-Writeback-";
    char file[GP_PATH_SIZE], real[GP_PATH_SIZE], state[32], **names;
    const char *cards = " ";
    while (gp_search_path_next(&list, ":", file))
        if (gp_files_real(&exam->files, file, real))
            cards = gp_exam_text(exam, "%s%s ", cards, strrchr(real, '/') + 1);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < 256; i++) {
        size_t length = strcspn(names[i], "-");
        const char *card = gp_exam_text(exam, " %.*s ", (int)length, names[i]);
        if (strncmp(names[i], "card", 4) != 0 || !names[i][length] || strstr(names[i], own) ||
            strstr(names[i], other) || strstr(cards, card) ||
            !gp_files_line(&exam->files, gp_exam_text(exam, "%s/%s/status", folder, names[i]),
                           state, sizeof(state)))
            continue;
        if (strcmp(state, "connected") == 0 && gp_graphics_is_gpu(exam, names[i]))
            return names[i];
    }
    return NULL;
}

/* The screens that a compositor of Wayland may use. Their numbers change between boots, and the
 * colons in the paths of PCI addresses separate the list, unless "\\" is before them. */
static void check_screens(struct gp_exam *exam)
{
    static const char *const names[] = {"WLR_DRM_DEVICES", "AQ_DRM_DEVICES", "KWIN_DRM_DEVICES"};
    char file[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && gp_files_exist(&exam->files, "/dev/dri"); i++) {
        const char *value = gp_exam_session_value(exam, names[i]), *rest = value;
        if (!value || !*value || strchr(value, '\\'))
            continue;
        bool has_any = false;
        while (gp_search_path_next(&rest, ":", file))
            has_any = has_any || gp_files_exist(&exam->files, file);
        const char *monitor = has_any ? monitor_beside(exam, value) : NULL;
        if (has_any && !monitor)
            continue;
        if (monitor)
            gp_exam_report(exam, GP_VERDICT_WARN,
                           "%s leaves out the GPU of a monitor: the compositor of Wayland does not "
                           "show it",
                           names[i]);
        else
            gp_exam_report(exam, GP_VERDICT_WARN,
                           "%s names only files that do not exist: the compositor of Wayland finds "
                           "no screen",
                           names[i]);
        if (monitor)
            gp_exam_evidence(exam, gp_exam_text(exam, "/sys/class/drm/%s/status", monitor),
                             "connected");
        gp_exam_fix_variable(exam, names[i], value,
                             "without it the compositor finds the GPUs itself");
        if (monitor)
            gp_exam_advice(exam, "or add /dev/dri/%.*s to the list, after the GPU that draws",
                           (int)strcspn(monitor, "-"), monitor);
        else
            gp_exam_advice(exam,
                           "or name a link to the card that stays the same, without a colon in "
                           "it, by a rule of udev: the number of /dev/dri/card0 may change");
    }
}

void gp_graphics_check_variables(struct gp_exam *exam)
{
    gp_graphics_check_lists(exam);
    check_screens(exam);
    gp_graphics_check_screens_left(exam);
    check_software(exam);
    gp_graphics_check_video_of_nvidia(exam);
}

/* Whether the kernel drives a GPU of a vendor with a driver that Mesa is for. */
static bool has_driven(const struct gp_exam *exam, unsigned vendor)
{
    static const char *const drivers[] = {"amdgpu", "i915", "xe"};
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(drivers); k++)
            if (m->gpus[i].vendor == vendor && strcmp(m->gpus[i].driver, drivers[k]) == 0)
                return true;
    return false;
}

/* Only Mesa's drivers: with an NVIDIA GPU beside it, the others are checked there. */
static bool is_of_mesa(struct gp_exam *exam)
{
    return exam->machine.nvidia_count == 0 &&
           (has_driven(exam, GP_PCI_AMD) || has_driven(exam, GP_PCI_INTEL));
}

/* Values that are right only with an NVIDIA GPU. */
static void check_left_over(struct gp_exam *exam)
{
    static const struct {
        const char *name, *value, *words;
    } rows[] = {
        {"__GLX_VENDOR_LIBRARY_NAME", "nvidia", "OpenGL windows fail or are drawn by the CPU"},
        {"GBM_BACKEND", "nvidia-drm", "Wayland compositors do not start"},
        {"LIBVA_DRIVER_NAME", "nvidia", "VA-API finds no driver"},
        {"VDPAU_DRIVER", "nvidia", "VDPAU finds no driver"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const char *value = gp_exam_session_value(exam, rows[i].name);
        if (!value || strcmp(value, rows[i].value) != 0)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s is set for an NVIDIA GPU, which is not here: %s",
                       rows[i].name, rows[i].words);
        gp_exam_fix_variable(exam, rows[i].name, value, "");
    }
}

static void check_video_name(struct gp_exam *exam)
{
    static const char name[] = "LIBVA_DRIVER_NAME";
    const char *value = gp_exam_session_value(exam, name);
    if (!value || !value[0] || strcmp(value, "nvidia") == 0 ||
        gp_graphics_video_driver(exam, value) ||
        gp_machine_variable(&exam->machine, "LIBVA_DRIVERS_PATH"))
        return;
    const char *other = gp_graphics_video_driver_of(exam, 0);
    if (!other)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s names a driver that is not installed: %s", name,
                   "programs decode and encode video on the CPU");
    gp_exam_evidence(exam, other, "present");
    gp_exam_fix_variable(exam, name, value, "VA-API then chooses the driver by itself");
}

static void check_environment(struct gp_exam *exam)
{
    gp_graphics_check_variables(exam);
    check_left_over(exam);
    check_video_name(exam);
}

/* ---- Vulkan ---- */

static const struct maker {
    unsigned vendor;
    const char *words;
    const char *names[5]; /* its files in icd.d begin like this, up to NULL */
    const char *library;  /* of Mesa */
    const char *package;  /* of Arch, where each driver has its own */
} makers[] = {
    {GP_PCI_AMD,
     "AMD",
     {"radeon_icd", "amd_icd", "amd_pro_icd", "amdvlk"},
     "libvulkan_radeon.so",
     "vulkan-radeon"},
    {GP_PCI_INTEL,
     "Intel",
     {"intel_icd", "intel_hasvk_icd", "intel", NULL},
     "libvulkan_intel.so",
     "vulkan-intel"},
};

/* How many files name Vulkan drivers, and whether one of them is of this maker. */
static long count_drivers(struct gp_exam *exam, const struct maker *maker, bool *ret_has_own)
{
    char **names;
    long count = 0;
    for (size_t f = 0; gp_vulkan_folders[f]; f++) {
        long n = gp_files_list(&exam->files, &exam->arena, gp_vulkan_folders[f], &names);
        for (long i = 0; i < n; i++, count++)
            for (size_t k = 0; maker->names[k]; k++)
                if (strncmp(names[i], maker->names[k], strlen(maker->names[k])) == 0 &&
                    gp_vulkan_is_read(names[i]))
                    *ret_has_own = true;
    }
    return count;
}

/* Without any driver, a program that needs one: the directory may be left out of a copy of the
 * machine, or Vulkan not be meant to be used. */
static void check_vulkan_of(struct gp_exam *exam, const struct maker *maker)
{
    const char *program = gp_vulkan_user(exam);
    bool has_own = gp_vulkan_is_directed(exam);
    long count = count_drivers(exam, maker, &has_own);
    if (has_own || !gp_system_library(exam, "", "libvulkan.so.1") || (count == 0 && !program) ||
        gp_graphics_report_renamed(exam, maker->names,
                                   gp_exam_text(exam, "%s's GPU", maker->words)))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "Vulkan does not find the %s GPU: its driver is missing",
                   maker->words);
    gp_exam_evidence(exam, gp_vulkan_folders[0], "no %s*.json%s", maker->names[0],
                     count ? ", only drivers of others" : "");
    if (count == 0)
        gp_exam_evidence(exam, program, "present: it needs a driver");
    gp_exam_why(exam, "Games and programs then use another GPU or the CPU (llvmpipe), or report "
                      "VK_ERROR_INCOMPATIBLE_DRIVER.");
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_MESA_VULKAN, maker->package, NULL);
    if (gp_vulkan_narrow_user(exam))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_MESA_VULKAN_32, maker->package, NULL);
}

/* Steam and many games are 32-bit programs, which need drivers of their own. */
static void check_vulkan_32(struct gp_exam *exam, const struct maker *maker)
{
    const char *program = gp_vulkan_narrow_user(exam), *wide;
    const char *narrow = program ? gp_vulkan_narrow_missing(exam, maker->library, &wide) : NULL;
    if (!narrow)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the 32-bit Vulkan driver of the %s GPU, which %s needs, is not installed",
                   maker->words, gp_vulkan_narrow_words(program));
    gp_exam_evidence(exam, narrow, "missing");
    gp_exam_evidence(exam, wide, "present");
    gp_graphics_show_narrow_user(exam, program);
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_MESA_VULKAN_32, maker->package, NULL);
}

/* Whether something chooses between AMD's own driver for Vulkan and Mesa's, or turns off the layer
 * that does. */
static bool is_amdvlk_chosen(struct gp_exam *exam, const char *const *names)
{
    const char *place;
    for (size_t i = 0; names[i]; i++)
        if (gp_machine_variable(&exam->machine, names[i]) ||
            gp_assignment_last(exam, names[i], &place))
            return true;
    return false;
}

/* AMD's own driver for Vulkan, which it no longer develops, brings a layer that leads programs to
 * it instead of Mesa's. A program that asks for Mesa's, or whose GPU the other does not support,
 * may then find none. */
static void check_amdvlk(struct gp_exam *exam)
{
    static const char *const names[] = {"AMD_VULKAN_ICD", "DISABLE_LAYER_AMD_SWITCHABLE_GRAPHICS_1",
                                        NULL};
    static const char *const layers[] = {"/usr/share/vulkan/implicit_layer.d/amd_icd64.json",
                                         "/etc/vulkan/implicit_layer.d/amd_icd64.json", NULL};
    const char *layer = gp_files_first(&exam->files, layers);
    const char *mesa = gp_system_library(exam, "", "libvulkan_radeon.so");
    const char *where, *text, *wide;
    if (!layer || !mesa || is_amdvlk_chosen(exam, names))
        return;
    bool hurts = !gp_vulkan_narrow_missing(exam, "libvulkan_radeon.so", &wide) &&
                 gp_lutris_without_gpu(exam, names, &where, &text);
    const struct gp_log_known *crash = gp_log_known_of(exam, "vk.amdvlk-crash");
    if (!hurts && !crash && gp_vulkan_is_directed(exam))
        return;
    if (hurts)
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "a game finds no GPU: AMDVLK's layer hides Mesa's driver for Vulkan");
    else if (crash)
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "a program crashed in AMDVLK, which is installed next to Mesa's driver for "
                       "Vulkan");
    else
        gp_exam_report(exam, GP_VERDICT_INFO, "programs use AMDVLK for Vulkan, not Mesa's driver");
    if (hurts)
        gp_exam_evidence(exam, where, "%s", text);
    else if (crash)
        gp_exam_evidence(exam, crash->where, "%s", crash->text);
    gp_exam_evidence(exam, layer, "present: AMDVLK's layer, which chooses it");
    gp_exam_evidence(exam, mesa, "present");
    gp_exam_why(
        exam, "%sAMD no longer develops AMDVLK; DXVK and many games work better with Mesa's RADV.",
        hurts ? "The layer leaves out Mesa's GPUs, also where a game asks for them. " : "");
    gp_exam_command(exam, "try a program with Mesa's driver", "AMD_VULKAN_ICD=RADV vulkaninfo");
    gp_exam_remedy(exam, GP_REMEDY_REMOVE_AMDVLK,
                   gp_files_exist(&exam->files, "/usr/lib32/amdvlk32.so") ? " lib32-amdvlk" : "",
                   NULL);
    if (hurts)
        gp_exam_advice(exam, "or keep both: in Lutris, add the environment variable "
                             "AMD_VULKAN_ICD=RADV to the game");
}

/* AMD's own packages come with a libdrm, which the loader prefers and which may be older than the
 * distribution's, which Mesa was built with. */
static void check_libdrm(struct gp_exam *exam)
{
    static const char name[] = "libdrm_amdgpu.so.1", uninstaller[] = "/usr/bin/amdgpu-install";
    const char *mesa = gp_system_library(exam, "", "libvulkan_radeon.so"), *missing;
    struct gp_ldcache cache;
    struct gp_library libdrm;
    struct gp_elf user, found;
    struct gp_elf_exports exports;
    size_t from = 0, lookups = 1024; /* Mesa's driver takes some sixty */
    if (!mesa || gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0 ||
        !gp_ldcache_find(&cache, name, exam->machine.arch, &from, &libdrm) ||
        !gp_elf_read(&user, &exam->files, &exam->arena, mesa) ||
        !gp_elf_read(&found, &exam->files, &exam->arena, libdrm.path) ||
        !gp_elf_exports_of(&exports, &found, &exam->arena) ||
        !(missing = gp_elf_lacks(&user, "amdgpu_", &exports, &lookups)))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "Vulkan programs do not start: the loader finds a libdrm that is older than "
                   "Mesa's driver needs");
    gp_exam_evidence(exam, libdrm.path, "has no %s", missing);
    gp_exam_evidence(exam, mesa, "needs it");
    gp_exam_why(exam, "They end with \"symbol lookup error: undefined symbol: %s\".", missing);
    if (strncmp(libdrm.path, "/opt/amdgpu", 11) != 0) {
        gp_exam_advice(exam, "remove the package or the file of that libdrm, then: sudo ldconfig");
        return;
    }
    if (gp_files_exist(&exam->files, uninstaller))
        gp_exam_command(exam, "remove AMD's packages; Mesa's driver needs none of them",
                        "sudo amdgpu-install --uninstall");
    else
        gp_exam_advice(exam,
                       "remove AMD's packages (libdrm2-amdgpu, libdrm-amdgpu-amdgpu1 and what "
                       "needs them); Mesa's driver needs none of them");
    gp_exam_command(exam, "", "sudo ldconfig");
}

/* The same by the versions of the packages, which the containers of Steam compare, too. */
static void check_libdrm_packages(struct gp_exam *exam)
{
    static const char config[] = "/etc/ld.so.conf.d/20-amdgpu.conf", own[] = "libdrm-amdgpu1",
                      other[] = "libdrm-amdgpu-amdgpu1";
    static const char *const words[] = {own, other, NULL};
    static const char *const steam[] = {"/usr/games/steam", "/usr/bin/steam", NULL};
    const char *version = NULL, *newer = NULL;
    struct gp_package *packages;
    long n = gp_files_exist(&exam->files, config)
                 ? gp_packages_read(&exam->files, &exam->arena, words, &packages)
                 : 0;
    for (long i = 0; i < n; i++) {
        const char *colon = strchr(packages[i].version, ':');
        const char *of_it = colon ? colon + 1 : packages[i].version;
        if (strcmp(packages[i].state, "installed") != 0)
            continue;
        if (strcmp(packages[i].name, own) == 0)
            newer = of_it;
        else if (strcmp(packages[i].name, other) == 0)
            version = of_it;
    }
    if (!version || !newer || gp_version_compare(version, newer) >= 0)
        return;
    const char *game = gp_files_first(&exam->files, steam);
    gp_exam_report(exam, game ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the loader prefers AMD's libdrm, which is older than the distribution's");
    gp_exam_evidence(exam, config, "puts AMD's own first");
    gp_exam_evidence(exam, other, "%s", version);
    gp_exam_evidence(exam, own, "%s", newer);
    if (game)
        gp_exam_evidence(exam, game, "installed: its containers take the loader's libdrm");
    gp_exam_why(exam, "Mesa's drivers were built for the distribution's and may not load with an "
                      "older one: \"MESA-LOADER: failed to open radeonsi\".");
    gp_exam_command(exam, "have the loader use the distribution's", "sudo rm %s && sudo ldconfig",
                    config);
    gp_exam_advice(exam, "or remove AMD's packages, if no program needs their OpenCL");
}

/* Whether Lutris's Wine lacks a driver, whose package brings the loader. */
static bool is_loader_brought(struct gp_exam *exam)
{
    const char *program = gp_vulkan_narrow_user(exam), *wide;
    for (size_t i = 0; i < GP_ARRAY_LEN(makers) && program; i++)
        if (gp_vulkan_is_of_lutris(program) && has_driven(exam, makers[i].vendor) &&
            gp_vulkan_narrow_missing(exam, makers[i].library, &wide))
            return true;
    return false;
}

static void check_vulkan(struct gp_exam *exam)
{
    if (!exam->machine.is_driver_loaded && /* else driver.libraries does */
        !is_loader_brought(exam))
        gp_graphics_check_loader(exam);
    gp_graphics_check_age(exam);
    if (has_driven(exam, GP_PCI_AMD)) {
        check_amdvlk(exam);
        const struct gp_finding *before = exam->last;
        check_libdrm(exam);
        if (exam->last == before)
            check_libdrm_packages(exam);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(makers); i++) {
        if (!has_driven(exam, makers[i].vendor))
            continue;
        check_vulkan_of(exam, &makers[i]);
        check_vulkan_32(exam, &makers[i]);
    }
    gp_graphics_check_kobold(exam);
}

/* ---- video ---- */

const char *gp_graphics_video_user(struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/bin/vainfo",
                                        "/usr/bin/kodi",
                                        "/usr/bin/obs",
                                        "/opt/emby-server",
                                        "/usr/share/sunshine",
                                        "/usr/bin/jellyfin",
                                        "/usr/lib/jellyfin/bin/jellyfin",
                                        "/usr/lib/jellyfin",
                                        NULL};
    const char *found = gp_files_first(&exam->files, paths);
    /* Jellyfin's own FFmpeg has drivers with it. */
    return found && strstr(found, "jellyfin") &&
                   gp_files_exist(&exam->files, "/usr/lib/jellyfin-ffmpeg/lib/dri")
               ? NULL
               : found;
}

static bool has_video_of_amd(struct gp_exam *exam)
{
    return is_of_mesa(exam) && has_driven(exam, GP_PCI_AMD) && gp_graphics_video_user(exam) &&
           gp_system_library(exam, "", "libva.so.2");
}

/* Whether packages of a repository with all codecs may have replaced Fedora's. */
static bool has_other_mesa(struct gp_exam *exam)
{
    static const char *const words[] = {"negativo17", "terra-mesa", "multimedia"};
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, "/etc/yum.repos.d", &names);
    for (long i = 0; i < n; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(words); k++)
            if (strstr(names[i], words[k]))
                return true;
    return n < 0 || gp_machine_is_ostree(&exam->machine);
}

/* From this release on Fedora builds Mesa without the codecs that have patents. */
static void check_codecs(struct gp_exam *exam)
{
    enum { FIRST = 37 };
    const char *own = gp_system_library(exam, "", "dri/radeonsi_drv_video.so");
    if (strcmp(exam->machine.distro_id, "fedora") != 0 || !own ||
        gp_version_major(exam->machine.distro_version) < FIRST || has_other_mesa(exam) ||
        gp_system_library(exam, "", "dri-freeworld/radeonsi_drv_video.so"))
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "Fedora's VA-API for the AMD GPU has no H.264 and H.265: the CPU decodes and "
                   "encodes them");
    gp_exam_evidence(exam, own, "Fedora's own");
    gp_exam_evidence(exam, "dri-freeworld/radeonsi_drv_video.so",
                     "not in any of the usual directories");
    gp_exam_evidence(exam, gp_graphics_video_user(exam), "uses it");
    gp_exam_remedy(exam, GP_REMEDY_SWAP_MESA_VIDEO, NULL, NULL);
}

static void check_video(struct gp_exam *exam)
{
    if (gp_graphics_video_driver(exam, "radeonsi")) {
        check_codecs(exam);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "VA-API has no driver for the AMD GPU: video is decoded and encoded on the CPU");
    gp_exam_evidence(exam, "dri/radeonsi_drv_video.so", "not in any of the usual directories");
    gp_exam_evidence(exam, gp_graphics_video_user(exam), "uses it");
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_MESA_VIDEO, NULL, NULL);
    gp_exam_command(exam, "it says whether the driver starts", "vainfo");
}

static bool is_on_nixos(struct gp_exam *exam)
{
    return strcmp(exam->machine.distro_id, "nixos") == 0 && !exam->machine.container &&
           (has_driven(exam, GP_PCI_AMD) || has_driven(exam, GP_PCI_INTEL));
}

const struct gp_check gp_checks_graphics[] = {
    {"graphics.env",
     "no environment variable leads OpenGL, Vulkan or VA-API astray",
     {NULL},
     is_of_mesa,
     check_environment},
    {"graphics.vulkan", "Vulkan has drivers for the GPUs", {NULL}, is_of_mesa, check_vulkan},
    {"graphics.video",
     "VA-API has a driver for the AMD GPU",
     {NULL},
     has_video_of_amd,
     check_video},
    {"graphics.nix",
     "the compositor has the Mesa of the system's drivers",
     {NULL},
     is_on_nixos,
     gp_graphics_check_nix},
    {"graphics.opencl",
     "no program crashed in a second OpenCL driver",
     {NULL},
     gp_graphics_has_two_opencl,
     gp_graphics_check_opencl},
    {0},
};
