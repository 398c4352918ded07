/* Programs that need more of the driver than CUDA: its part for graphics, which NVIDIA's installer
 * can leave out, or a branch with which they work. Findings of driver.libraries. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/install.h"
#include "doctor/readers/installer.h"
#include "doctor/readers/isaac.h"
#include "doctor/readers/log.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/vulkan.h"
#include "doctor/version.h"

#include <string.h>

/* ---- without graphics ---- */

/* Programs that draw on the GPU. Others also work with another GPU, or without drawing. */
static const char *drawing_program(struct gp_exam *exam)
{
    static const char *const paths[] = {
        "/usr/bin/steam",         "/usr/games/steam",
        "/usr/bin/lutris",        "/usr/bin/heroic",
        "/usr/bin/gamescope",     "/opt/carla-simulator/CarlaUE4.sh",
        "/opt/carla/CarlaUE4.sh", NULL};
    return gp_files_first(&exam->files, paths);
}

static const char *perhaps_drawing(struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/bin/blender", "/snap/bin/blender", NULL};
    const char *found = gp_files_first(&exam->files, paths);
    return found ? found : gp_vulkan_user(exam);
}

/* Isaac Sim runs on nothing else; the rest may use another GPU, which draws the screen, on purpose.
 */
static const char *needing_program(struct gp_exam *exam, enum gp_verdict *ret_verdict)
{
    struct gp_isaac isaac;
    bool is_only = exam->machine.gpu_count == exam->machine.nvidia_count;
    *ret_verdict = GP_VERDICT_WARN;
    if (gp_isaac_find(exam, &isaac))
        return isaac.path;
    const char *program = drawing_program(exam);
    if (program && is_only)
        return program;
    *ret_verdict = GP_VERDICT_INFO;
    return program ? program : perhaps_drawing(exam);
}

void gp_driver_check_left_out(struct gp_exam *exam)
{
    static const char library[] = "libGLX_nvidia.so.0", option[] = "--no-opengl-files";
    enum { GLVND = 396 }; /* before, libGL could be NVIDIA's own */
    const struct gp_install *in = gp_install_of(exam);
    const char *driver = exam->machine.driver;
    enum gp_verdict verdict;
    const char *program;
    if (!in->run_trace[0] || in->package_count > 0 || exam->machine.container ||
        gp_version_major(driver) < GLVND || gp_system_has_driver_library(exam, library) ||
        gp_system_has_driver_library(exam, "libEGL_nvidia.so.0") ||
        !(program = needing_program(exam, &verdict)))
        return;
    size_t line = gp_installer_option(exam, driver, option);
    gp_exam_report(exam, verdict,
                   "OpenGL and Vulkan do not find the NVIDIA GPU: the driver was installed without "
                   "its libraries for graphics");
    if (line > 0)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s:%zu", gp_installer_log, line), "%s", option);
    else
        gp_exam_evidence(exam, in->run_trace, "from the installer");
    gp_exam_evidence(exam, library, "not in any library directory");
    gp_exam_evidence(exam, program, "present: it draws on the GPU");
    gp_exam_why(exam, "CUDA and nvidia-smi work without them; programs with Vulkan or OpenGL find "
                      "no device, or use the CPU.");
    gp_exam_command(exam, "the same installer again; end the desktop and the GPU's programs first",
                    "sudo sh NVIDIA-Linux-%s-%s.run", exam->machine.arch, driver);
    gp_exam_advice(exam,
                   "without the option %s, and with its part for OpenGL; the distribution's "
                   "packages next to it would mix two installations",
                   option);
}

/* ---- branches ---- */

/* Releases of programs that crash with newer drivers than those they were validated with, by the
 * answers of NVIDIA's developers to reports. */
static const struct {
    const char *release;
    unsigned first;              /* the branch from which on it crashes */
    unsigned branch;             /* the newest with which it works */
    const char *validated;       /* the release of that */
    const char *library, *crash; /* where, and such a line of the kernel log in data/explain */
    const char *newer;           /* the release that works with newer drivers, */
    unsigned reported;           /* those of this branch */
    const char *link;
} releases[] = {
    {"5.1", 590, 580, "580.65.06", "librtx.scenedb.plugin.so", "isaac.scenedb", "6.0", 595,
     "https://github.com/isaac-sim/IsaacSim/issues/646"},
};

static bool is_release(const char *version, const char *release)
{
    size_t n = strlen(release);
    return strncmp(version, release, n) == 0 && (!version[n] || version[n] == '.');
}

static void fix_branch(struct gp_exam *exam, unsigned branch, const char *validated)
{
    const struct gp_install *in = gp_install_of(exam);
    struct gp_wish wish = gp_driver_wish(exam);
    if (!gp_wish_fits(&wish, branch))
        return;
    if (exam->machine.distro == GP_DISTRO_UBUNTU && in->package_count > 0) {
        gp_exam_command(exam, "in place of the newer one", "sudo apt install nvidia-driver-%u%s",
                        branch, exam->machine.is_driver_open ? "-open" : "");
        gp_driver_fix_reboot(exam, "");
    } else {
        gp_exam_advice(
            exam,
            "install a driver of branch %u, such as %s, in the way in which this one was "
            "installed, and reboot",
            branch, validated);
    }
}

void gp_driver_check_applications(struct gp_exam *exam)
{
    unsigned branch = gp_version_major(exam->machine.driver);
    struct gp_isaac isaac;
    const char *path;
    size_t i = 0;
    if (branch < releases[0].first || exam->machine.container || !gp_isaac_find(exam, &isaac))
        return;
    while (i < GP_ARRAY_LEN(releases) && !is_release(isaac.version, releases[i].release))
        i++;
    if (i == GP_ARRAY_LEN(releases) || branch < releases[i].first)
        return;
    const struct gp_log_known *said = gp_log_known_of(exam, releases[i].crash);
    const char *crash =
        gp_isaac_crash(exam, &isaac, releases[i].release, releases[i].library, &path);
    gp_exam_report(exam, said || crash ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   said || crash ? "Isaac Sim %s crashes: driver %s is too new for it"
                                 : "Isaac Sim %s may crash: driver %s is too new for it",
                   releases[i].release, exam->machine.driver);
    gp_exam_evidence(exam, isaac.path, "Isaac Sim %s, validated with driver %s", isaac.version,
                     releases[i].validated);
    if (crash)
        gp_exam_evidence(exam, path, "%s", crash);
    gp_log_show_known(exam, said);
    gp_exam_why(exam, "With branches from %u on it crashes at its start in %s.", releases[i].first,
                releases[i].library);
    fix_branch(exam, releases[i].branch, releases[i].validated);
    gp_exam_advice(exam, "or install Isaac Sim %s, which is reported to work with branch %u",
                   releases[i].newer, releases[i].reported);
    gp_exam_link(exam, releases[i].link);
}
