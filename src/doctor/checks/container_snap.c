/* Docker as a snap: whether its confinement lets it pass GPUs. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/log.h"

#include <string.h>

/* Windows' libraries, without which no program in WSL reaches the GPU. */
#define OF_WSL "/usr/lib/wsl/lib/libdxcore.so"

/* Lines of a docker that cannot pass GPUs. */
static const char refusals[] = "docker.no-toolkit,container.wsl-lib";

/* Since 2024 the snap has a toolkit of its own, and sets it up if it finds the driver. */
static bool has_own_runtime(struct gp_exam *exam)
{
    static const char path[] = "/var/snap/docker/current/config/daemon.json";
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    return text && strstr(text, "\"nvidia\"");
}

static void replace_snap(struct gp_exam *exam)
{
    gp_exam_command(exam, "it keeps images and volumes, until you remove it",
                    "sudo snap disable docker");
    if (!gp_files_exist(&exam->files, "/usr/bin/dockerd"))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DOCKER, NULL, NULL);
    bool has_toolkit = gp_container_has_toolkit(exam);
    if (!has_toolkit)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    if (!has_toolkit || gp_files_exist(&exam->files, "/usr/bin/nvidia-ctk"))
        gp_container_configure_docker(exam);
}

/* Whether a toolkit can only have been installed for this docker: /usr/bin/docker may be Docker
 * Desktop's; podman uses the toolkit, too, as does what a CDI specification was written for. */
static bool has_toolkit_for_snap(struct gp_exam *exam)
{
    static const char *const others[] = {"/usr/bin/docker", "/usr/bin/podman",
                                         "/usr/bin/containerd", NULL};
    return gp_container_has_toolkit(exam) && !gp_files_first(&exam->files, others) &&
           !gp_container_find_cdi(exam);
}

/* In WSL the snap's own toolkit does not help. Whether anybody wants GPUs from this docker shows in
 * its log, or in a toolkit that was installed for it. */
static void report_wsl(struct gp_exam *exam, const char *docker, const struct gp_log_known *known)
{
    bool is_wanted = known || has_toolkit_for_snap(exam);
    gp_exam_report(exam, is_wanted ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "docker is the snap package, whose containers cannot use GPUs in WSL");
    gp_exam_evidence(exam, docker, "present");
    gp_exam_evidence(exam, OF_WSL, "present, but hidden from the snap");
    gp_log_show_known(exam, known);
    gp_exam_why(exam, "The snap's confinement hides WSL's libraries from it, whatever toolkit is "
                      "set up: \"open " OF_WSL ": no such file or directory\".");
    replace_snap(exam);
    gp_exam_advice(exam, "or disable the snap, and use Docker Desktop in Windows with WSL "
                         "integration for this distribution");
}

static void report(struct gp_exam *exam, const char *docker, const struct gp_log_known *known)
{
    if (exam->machine.is_wsl && gp_files_exist(&exam->files, OF_WSL)) {
        report_wsl(exam, docker, known);
        return;
    }
    if (has_own_runtime(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "docker is the snap package, whose containers cannot use GPUs");
    gp_exam_evidence(exam, docker, "present");
    gp_exam_why(exam, "The snap's confinement hides NVIDIA Container Toolkit from it: \"could not "
                      "select device driver\".");
    replace_snap(exam);
    gp_log_show_known(exam, known);
}

void gp_container_check_snap(struct gp_exam *exam, const char *docker)
{
    report(exam, docker, exam->machine.is_wsl ? gp_log_known_of(exam, "container.wsl-lib") : NULL);
}

bool gp_container_report_snap_beside(struct gp_exam *exam)
{
    static const char docker[] = "/snap/bin/docker";
    const struct gp_finding *before = exam->last;
    const struct gp_log_known *known = gp_log_known_of(exam, refusals);
    /* its service is called so */
    if (known && strstr(known->text, "docker.dockerd") && gp_files_exist(&exam->files, docker))
        report(exam, docker, known);
    return exam->last != before;
}
