/* Mesa from before the GPU: it draws by the CPU, although the kernel drives it. */
#include "doctor/checks/backports.h"
#include "doctor/checks/graphics.h"
#include "doctor/exam.h"
#include "doctor/readers/gfxchip.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <string.h>

/* A version that the first with a driver for the GPU is not older than, by the name of the chip or
 * the range of PCI devices (Mesa, src/amd/common and include/pci_ids). */
static const struct {
    const char *chip, *mesa;
} of_amd[] = {{"gfx1010", "19.2"}, {"gfx1011", "19.2"}, {"gfx1012", "19.2"}, {"gfx1030", "20.2"},
              {"gfx1031", "20.2"}, {"gfx1032", "20.2"}, {"gfx1034", "21.1"}, {"gfx1035", "21.1"},
              {"gfx1036", "21.3"}, {"gfx1100", "22.2"}, {"gfx1101", "22.2"}, {"gfx1102", "22.2"},
              {"gfx1103", "22.2"}, {"gfx1150", "23.2"}, {"gfx1151", "23.3"}, {"gfx1152", "24.1"},
              {"gfx1200", "24.3"}, {"gfx1201", "24.3"}};
static const struct {
    unsigned first, last;
    const char *name, *mesa;
} of_intel[] = {{0x4680, 0x46a8, "Alder Lake", "21.0"},
                {0x5690, 0x56c2, "Arc Alchemist", "22.2"},
                {0x7d40, 0x7ddf, "Meteor Lake", "22.3"},
                {0x6420, 0x64bf, "Lunar Lake", "24.1"},
                {0xe200, 0xe2ff, "Arc Battlemage", "24.1"}};

/* The newest that releases have now. */
static const struct {
    enum gp_distro distro;
    const char *release, *mesa;
} newest[] = {{GP_DISTRO_UBUNTU, "18.04", "20.0"},
              {GP_DISTRO_UBUNTU, "20.04", "21.2"},
              {GP_DISTRO_UBUNTU, "22.04", "23.2"},
              {GP_DISTRO_UBUNTU, "24.04", "25.0"}};

/* "": unknown, or older than these. */
static const char *first_mesa(const struct gp_pci_gpu *gpu, const char **ret_name)
{
    const char *chip = gpu->vendor == GP_PCI_AMD ? gp_gfx_of_chip(gpu->device) : "";
    for (size_t i = 0; i < GP_ARRAY_LEN(of_amd) && chip[0]; i++)
        if (strcmp(of_amd[i].chip, chip) == 0) {
            *ret_name = chip;
            return of_amd[i].mesa;
        }
    for (size_t i = 0; i < GP_ARRAY_LEN(of_intel) && gpu->vendor == GP_PCI_INTEL; i++)
        if (gpu->device >= of_intel[i].first && gpu->device <= of_intel[i].last) {
            *ret_name = of_intel[i].name;
            return of_intel[i].mesa;
        }
    return "";
}

/* The package with Mesa's drivers; NULL: it is not known. */
static const struct gp_package *find_mesa(struct gp_exam *exam)
{
    static const char *const names[] = {"libgl1-mesa-dri",     "mesa-dri-drivers", "Mesa-dri",
                                        "mesa-vulkan-drivers", "vulkan-radeon",    NULL};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, names, &packages);
    for (size_t k = 0; names[k]; k++)
        for (long i = 0; i < n; i++)
            if (strcmp(packages[i].name, names[k]) == 0 &&
                strcmp(packages[i].state, "installed") == 0)
                return &packages[i];
    return NULL;
}

/* Without the epoch that some distributions put before it: "1:25.1.4-1". */
static const char *version_of(const struct gp_package *package)
{
    const char *colon = strchr(package->version, ':');
    return colon ? colon + 1 : package->version;
}

/* AMD's own packages, or what the user has built, bring another Mesa. */
static bool has_other(struct gp_exam *exam)
{
    static const char *const paths[] = {"/opt/amdgpu/lib/x86_64-linux-gnu/dri",
                                        "/opt/amdgpu/lib64/dri", "/usr/local/lib/dri",
                                        "/usr/local/lib/x86_64-linux-gnu/dri", NULL};
    return gp_files_first(&exam->files, paths) ||
           gp_files_exist(&exam->files, "/run/opengl-driver");
}

/* What shows that the machine is to draw; NULL: it may only compute. Tools, and a server of X that
 * nothing starts, may be there without a use. */
static const char *find_user(struct gp_exam *exam, enum gp_verdict *ret_verdict)
{
    static const char manager[] = "/etc/systemd/system/display-manager.service";
    static const char *const paths[] = {"/usr/bin/gnome-shell",
                                        "/usr/bin/plasmashell",
                                        "/usr/bin/kwin_wayland",
                                        "/usr/bin/cinnamon",
                                        "/usr/bin/xfwm4",
                                        "/usr/bin/mate-session",
                                        "/usr/bin/sway",
                                        "/usr/bin/Hyprland",
                                        "/usr/bin/steam",
                                        "/usr/games/steam",
                                        NULL};
    static const char *const tools[] = {"/usr/bin/glxinfo", "/usr/bin/vulkaninfo",
                                        "/usr/lib/xorg/Xorg", "/usr/bin/Xorg", NULL};
    const char *found = gp_files_first(&exam->files, paths);
    bool is_used = found || gp_files_exist(&exam->files, manager);
    *ret_verdict = is_used ? GP_VERDICT_WARN : GP_VERDICT_INFO;
    return found ? found : gp_files_first(&exam->files, tools);
}

/* Whether the firmware used another device than this one as the boot display. Those beside which a
 * server's GPUs compute (ASPEED, Matrox) are not among the machine's GPUs. */
static bool is_beside_screen(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char folder[] = "/sys/bus/pci/devices";
    char **names, text[8];
    if (gpu->shows_screen)
        return false;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (gp_files_line(&exam->files, gp_exam_text(exam, "%s/%s/boot_vga", folder, names[i]),
                          text, sizeof(text)) &&
            text[0] == '1')
            return true;
    return exam->machine.gpu_count > 1;
}

/* Whether updates of the release itself have one that is new enough. */
static bool has_newer(const struct gp_machine *m, const char *mesa)
{
    const char *release = gp_machine_release(m);
    for (size_t i = 0; i < GP_ARRAY_LEN(newest); i++)
        if (m->distro == newest[i].distro && strcmp(release, newest[i].release) == 0)
            return gp_version_compare(newest[i].mesa, mesa) >= 0;
    return m->distro != GP_DISTRO_UBUNTU && m->distro != GP_DISTRO_DEBIAN;
}

static void propose(struct gp_exam *exam, const char *mesa)
{
    enum { BOOKWORM = 12 }; /* the release whose backports have a newer one */
    const struct gp_machine *m = &exam->machine;
    const char *suite = gp_backports_suite(exam);
    if (suite[0] && gp_version_major(m->distro_version) == BOOKWORM) {
        gp_backports_enable(exam);
        gp_exam_command(exam, "Mesa of the backports; then log out and in",
                        "sudo apt install -t %s libgl1-mesa-dri mesa-vulkan-drivers", suite);
    } else if (has_newer(m, mesa) && m->distro != GP_DISTRO_OTHER) {
        gp_exam_remedy(exam, GP_REMEDY_UPDATE_MESA, NULL, NULL);
    } else {
        gp_exam_advice(exam,
                       "upgrade to a newer release of the distribution, which has Mesa %s or "
                       "newer",
                       mesa);
        if (strcmp(gp_machine_release(m), "22.04") == 0 ||
            strcmp(gp_machine_release(m), "24.04") == 0)
            gp_exam_command(exam, "or newer builds for this one, by others than Ubuntu",
                            "sudo add-apt-repository ppa:kisak/kisak-mesa && sudo apt update && "
                            "sudo apt full-upgrade");
    }
}

void gp_graphics_check_age(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_package *package = NULL;
    enum gp_verdict verdict = GP_VERDICT_INFO;
    const char *user = m->container || has_other(exam) ? NULL : find_user(exam, &verdict);
    for (size_t i = 0; user && i < m->gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &m->gpus[i];
        const char *name = "", *mesa = first_mesa(gpu, &name);
        if (!mesa[0] || !gpu->driver[0] || strcmp(gpu->driver, "vfio-pci") == 0 ||
            is_beside_screen(exam, gpu))
            continue;
        package = package ? package : find_mesa(exam);
        if (!package || gp_version_compare(version_of(package), mesa) >= 0)
            continue;
        gp_exam_report(exam, verdict, "Mesa %s is older than GPU %s (%s): the CPU draws",
                       version_of(package), gpu->bus_id, name);
        gp_exam_evidence(exam, "package", "%s %s; the GPU needs %s or newer", package->name,
                         package->version, mesa);
        gp_exam_evidence(exam, user, "%s", verdict == GP_VERDICT_WARN ? "draws" : "may draw");
        gp_exam_why(exam, "The kernel drives the GPU, but Mesa has no OpenGL and Vulkan for it: "
                          "glxinfo shows llvmpipe, games are slow or find no GPU.");
        propose(exam, mesa);
        return;
    }
}
