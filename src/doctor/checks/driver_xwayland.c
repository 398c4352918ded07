/* Programs for X in a session of Wayland on a driver that does not accelerate them. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/processes.h"
#include "doctor/version.h"

#include <string.h>

static const char modeset[] = "/sys/module/nvidia_drm/parameters/modeset";

/* GDM's own configuration, with the line that turns Wayland off as a comment; NULL: it has none. */
static const char *commented(struct gp_exam *exam)
{
    static const char *const configs[] = {"/etc/gdm3/custom.conf", "/etc/gdm3/daemon.conf",
                                          "/etc/gdm/custom.conf"};
    for (size_t i = 0; i < GP_ARRAY_LEN(configs); i++) {
        size_t size = 0, n;
        const char *line;
        const char *text = gp_files_text(&exam->files, &exam->arena, configs[i], 1 << 16, &size);
        struct gp_lines lines = gp_lines_of(text, text ? size : 0);
        while (gp_lines_next(&lines, &line, &n))
            if (gp_lines_is(line, n, "#WaylandEnable=false"))
                return configs[i];
    }
    return NULL;
}

void gp_driver_check_xwayland(struct gp_exam *exam)
{
    enum { FIRST_WITH_XWAYLAND = 470 };
    const struct gp_machine *m = &exam->machine;
    struct gp_processes processes = gp_processes_of(exam);
    const char *type = gp_machine_variable(m, "XDG_SESSION_TYPE");
    char value[8];
    unsigned major = gp_version_major(m->driver);
    if (m->container || !m->is_driver_loaded || m->gpu_count != m->nvidia_count || major == 0 ||
        major >= FIRST_WITH_XWAYLAND || !type || strcmp(type, "wayland") != 0 ||
        !gp_driver_has_sessions(exam, "/usr/share/xsessions"))
        return;
    const char *process = gp_processes_next(exam, &processes, "Xwayland");
    if (!process)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the session is one of Wayland, in which driver %s does not accelerate programs "
                   "for X",
                   m->driver);
    gp_exam_evidence(exam, process, "Xwayland, which NVIDIA's drivers before %d do not support",
                     FIRST_WITH_XWAYLAND);
    bool has_modes = gp_files_line(&exam->files, modeset, value, sizeof(value)) && value[0] == 'Y';
    if (has_modes)
        gp_exam_evidence(exam, modeset, "Y: with it, desktops offer Wayland");
    gp_exam_why(exam, "The CPU draws them, which is slow, and nvidia-settings finds no display.");
    gp_exam_advice(exam, "at the login, choose a session of X11, such as GNOME on Xorg");
    const char *config = commented(exam);
    if (config) {
        gp_exam_command(exam, "or have GDM offer X11 only",
                        "sudo sed -i 's/^#WaylandEnable=false/WaylandEnable=false/' %s", config);
        gp_driver_fix_reboot(exam, "");
    }
    if (has_modes)
        gp_exam_advice(exam, "or turn the mode setting off, as it was by default: "
                             "nvidia-drm.modeset=0 on the kernel's command line, and reboot");
    gp_exam_link(exam, "https://github.com/negativo17/nvidia-driver/issues/64");
}
