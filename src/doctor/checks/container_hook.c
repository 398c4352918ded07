/* The program of NVIDIA Container Toolkit that docker calls for --gpus: whether it has the name
 * that docker looks for. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/log.h"

#include <string.h>

/* ---- what an update has deleted ---- */

static void find_given(struct gp_exam *unused, const struct gp_docker_container *c, void *argument)
{
    bool *ret = argument;
    (void)unused;
    *ret = *ret || (c->is_running &&
                    (gp_docker_has_runtime(c) || json_array_size(gp_docker_requests(c)) > 0));
}

/* Whether docker has found the toolkit since it refused: it runs a container with a GPU, or it was
 * started after that line of its log. */
bool gp_container_is_asked_before(struct gp_exam *exam, const struct gp_log_known *asked)
{
    enum { TEXT = 1 << 20 };
    bool is_given = false;
    (void)gp_docker_each(exam, find_given, &is_given);
    const char *all =
        is_given ? NULL : gp_files_tail(&exam->files, &exam->arena, asked->path, TEXT, NULL);
    const char *last = NULL, *mark = "could not select device driver";
    for (const char *p = all; p && (p = strstr(p, mark)); p++)
        last = p;
    return is_given || (last && strstr(last, "Daemon has completed initialization"));
}

#define NAME "nvidia-container-runtime-hook"

/* NVIDIA's packages have both names, and one leads to the other. */
static const char *const programs[] = {"/usr/bin/nvidia-container-toolkit",
                                       "/usr/local/bin/nvidia-container-toolkit", NULL};

/* The directories in which a service of systemd looks for programs. */
static const char *const wanted[] = {"/usr/bin/" NAME, "/usr/local/bin/" NAME, "/usr/sbin/" NAME,
                                     "/usr/local/sbin/" NAME, NULL};

/* Other ways by which docker passes GPUs. */
static bool has_other_way(struct gp_exam *exam)
{
    static const char *const runtimes[] = {
        "/usr/bin/nvidia-container-runtime", "/usr/local/bin/nvidia-container-runtime",
        "/usr/local/nvidia/toolkit/nvidia-container-runtime", NULL};
    return gp_files_first(&exam->files, runtimes) || gp_container_find_cdi(exam) ||
           gp_container_runtime_config(exam) || gp_container_rootless_config(exam);
}

/* Whether docker is to pass GPUs: the toolkit may be there for others, such as containerd and
 * Apptainer. podman calls the program by the name in its own settings, and may have replaced the
 * docker that was asked in the past. */
static bool is_wanted(struct gp_exam *exam, const struct gp_log_known *asked)
{
    return asked && (!gp_files_exist(&exam->files, "/usr/bin/podman") ||
                     (!gp_container_is_asked_before(exam, asked) &&
                      !gp_docker_is_left_over(exam, asked->path)));
}

bool gp_container_report_hook_name(struct gp_exam *exam)
{
    const char *program = gp_files_first(&exam->files, programs);
    if (strcmp(gp_container_engine(exam)->name, "docker") != 0 || !program ||
        gp_files_first(&exam->files, wanted) || has_other_way(exam))
        return false;
    const struct gp_log_known *asked = gp_log_known_of(exam, "docker.no-toolkit");
    gp_exam_report(exam, is_wanted(exam, asked) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "docker cannot pass GPUs: the container toolkit has no program " NAME);
    gp_exam_evidence(exam, program, "present");
    gp_exam_evidence(exam, wanted[0], "missing");
    gp_exam_evidence(exam, "/usr/bin/nvidia-container-runtime", "missing");
    gp_log_show_known(exam, asked);
    gp_exam_why(exam,
                "docker looks for this name when it starts: \"could not select device driver\" "
                "without it. Packages of some distributions have the program only under "
                "its other name.");
    /* -f: a link to a program that is gone has the name, too */
    gp_exam_command(exam, "give it the name that docker looks for",
                    "sudo ln -sf %s /usr/local/bin/" NAME, program);
    gp_exam_command(exam, "it may stop running containers", "sudo systemctl restart docker");
    gp_exam_advice(exam, "or remove the toolkit and libnvidia-container of the distribution, and "
                         "install nvidia-container-toolkit from NVIDIA's repository, which has "
                         "both names");
    gp_exam_link(exam, "https://github.com/NVIDIA/nvidia-docker/issues/1377");
    return true;
}
