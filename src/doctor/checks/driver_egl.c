/* The part of NVIDIA's driver by which Wayland programs use EGL, a library and a package of its
 * own: a finding of driver.libraries. */
#include "doctor/checks/driver.h"
#include "doctor/readers/install.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <string.h>

/* The second one replaces the first for the drivers that it works with; each suffices. */
static const struct {
    const char *library;
    unsigned since;
} platforms[] = {{"libnvidia-egl-wayland.so.1", 0}, {"libnvidia-egl-wayland2.so.1", 560}};

/* A file that registers one of them, wherever that is. */
static bool is_registered(struct gp_exam *exam)
{
    static const char *const folders[] = {"/usr/share/egl/egl_external_platform.d",
                                          "/etc/egl/egl_external_platform.d",
                                          "/run/opengl-driver/share/egl/egl_external_platform.d"};
    char **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n; i++)
            if (strstr(names[i], "nvidia_wayland"))
                return true;
    }
    return false;
}

/* What shows that sessions are drawn in Wayland; NULL: nothing does. A compositor that is installed
 * may be unused, so that this is not certain. SDDM's login screen tells nothing of the sessions. */
static const char *wayland_user(struct gp_exam *exam, bool *ret_is_certain)
{
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    const char *shell, *session, *place;
    bool is_login = false;
    *ret_is_certain = true;
    if (type && strcmp(type, "wayland") == 0)
        return "XDG_SESSION_TYPE is wayland";
    if (type && strcmp(type, "x11") == 0)
        return NULL;
    if ((session = gp_driver_sddm_session(exam, &place, &is_login)) && !is_login)
        return gp_exam_text(exam, "%s has %s", place, session);
    if (gp_driver_gdm_starts_wayland(exam))
        return "GDM starts Wayland sessions";
    *ret_is_certain = false;
    shell = gp_driver_compositor(exam);
    return shell ? gp_exam_text(exam, "%s is present, without X11", shell) : NULL;
}

/* Whether packages of this system can be installed without it; Arch's nvidia-utils requires it. */
static bool may_lack_it(const struct gp_machine *m)
{
    return gp_machine_is_ostree(m) || (m->distro != GP_DISTRO_OTHER && m->distro != GP_DISTRO_ARCH);
}

/* Where its sibling for GBM is installed, the driver is one for desktops, of packages that come one
 * by one. With another GPU, that one's Mesa is what programs use. */
void gp_driver_check_egl(struct gp_exam *exam)
{
    static const char sibling[] = "libnvidia-egl-gbm.so.1";
    const struct gp_machine *m = &exam->machine;
    const struct gp_install *in = gp_install_of(exam);
    const char *user;
    bool is_certain;
    if (m->container || !m->is_driver_loaded || !may_lack_it(m) ||
        m->gpu_count != m->nvidia_count || !gp_system_has_driver_library(exam, sibling) ||
        !gp_system_has_driver_library(exam, "libEGL_nvidia.so.0") || is_registered(exam))
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(platforms); i++)
        if (gp_version_major(m->driver) >= platforms[i].since &&
            gp_system_has_driver_library(exam, platforms[i].library))
            return;
    if (!(user = wayland_user(exam, &is_certain)))
        return;
    gp_exam_report(
        exam, is_certain ? GP_VERDICT_WARN : GP_VERDICT_INFO,
        "Wayland programs cannot use the GPU: the driver's egl-wayland is not installed");
    gp_exam_evidence(exam, platforms[0].library, "not in any library directory");
    gp_exam_evidence(exam, sibling, "present");
    gp_exam_evidence(exam, "the desktop", "%s", user);
    gp_exam_why(exam, "The driver needs it for each window of Wayland: without it the session "
                      "freezes or does not start, or programs draw on the CPU.");
    if (in->run_trace[0] && in->package_count == 0)
        gp_exam_advice(exam, "run NVIDIA's .run installer again, without options that leave out "
                             "parts of the driver");
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_EGL_WAYLAND, NULL, NULL);
    gp_exam_link(exam, "https://github.com/NVIDIA/egl-wayland");
}
