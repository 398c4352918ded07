/* The old way by which the toolkit passes GPUs into docker's containers, with nvidia-container-cli:
 * it may fail at its last step, ldconfig, where the way by CDI works. */
#include "doctor/checks/container.h"
#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <string.h>

static const char own_spec[] = "1.18.0"; /* the first whose runtime describes the GPUs by itself */

static void find_running(struct gp_exam *unused, const struct gp_docker_container *c,
                         void *argument)
{
    bool *ret = argument;
    const char *asked = gp_docker_asked(c);
    bool is_by_cdi = asked && strstr(asked, "nvidia.com/");
    (void)unused;
    *ret = *ret || (c->host && c->is_running && !is_by_cdi && gp_docker_has_gpus(c));
}

/* Whether it works for another container: then the image of this one is at fault. */
static bool works_for_others(struct gp_exam *exam)
{
    bool is_any = false;
    (void)gp_docker_each(exam, find_running, &is_any);
    return is_any;
}

static void fix(struct gp_exam *exam, const char *version)
{
    bool has_own = version[0] && gp_version_compare(version, own_spec) >= 0;
    bool is_missing = !has_own && !gp_container_find_cdi(exam);
    bool is_unraid = strcmp(exam->machine.distro_id, "unraid") == 0;
    if (!gp_container_runtime_config(exam))
        gp_container_configure_docker(exam);
    if (is_missing)
        gp_exam_command(exam, "describe the GPUs for CDI, and again after updates of the driver",
                        "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
    if (is_unraid)
        gp_exam_advice(exam, "in the web interface, edit the container: --runtime=nvidia in its "
                             "Extra Parameters, in place of --gpus, and the variables "
                             "NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=all and "
                             "NVIDIA_DRIVER_CAPABILITIES=all; then Apply");
    else
        gp_exam_command(exam, "create the container again by CDI",
                        "docker run --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=all "
                        "-e NVIDIA_DRIVER_CAPABILITIES=all …");
    gp_exam_advice(exam, "with docker compose: in the service, runtime: nvidia and these two "
                         "variables in place of the devices below deploy; then docker compose up "
                         "-d --force-recreate");
    if (!is_missing || is_unraid)
        gp_exam_advice(exam,
                       "if docker then says \"unresolvable CDI devices\": first nvidia-ctk cdi "
                       "generate --output=/etc/cdi/nvidia.yaml%s",
                       is_unraid ? ", at each boot (in /boot/config/go, as /etc is not kept)" : "");
}

bool gp_container_report_legacy(struct gp_exam *exam, const struct gp_log_known *known)
{
    const struct gp_engine *engine = gp_container_engine(exam);
    const char *version = gp_container_toolkit_version(exam);
    if (!strstr(known->text, "failed with error code") || !engine ||
        strcmp(engine->name, "docker") != 0 || !exam->machine.is_driver_loaded ||
        exam->machine.container || exam->machine.is_jetson || gp_container_is_rootless(exam) ||
        gp_container_has_mode(exam) || gp_docker_is_left_over(exam, known->path) ||
        works_for_others(exam))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "containers with a GPU do not start: the toolkit's old way (mode legacy) fails "
                   "at its last step, ldconfig");
    gp_log_show_known(exam, gp_log_known_of(exam, known->id));
    if (version[0])
        gp_exam_evidence(exam, "nvidia-container-toolkit", "%s", version);
    gp_exam_why(exam,
                "For --gpus, and for devices in compose files, nvidia-container-cli runs ldconfig "
                "within the container's file system. With some drivers and releases of glibc that "
                "fails for all images, while CDI, which does not use nvidia-container-cli, works.");
    gp_exam_advice(exam, "if only one image fails: it is for another processor, or its /etc cannot "
                         "be written; otherwise:");
    fix(exam, version);
    return true;
}
