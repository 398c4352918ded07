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

static const char failure[] = "failed with error code"; /* of ldconfig */

/* How the containers with GPUs that do not come by CDI have started. */
struct starts {
    size_t failed;     /* the last time, by this failure */
    const char *since; /* before it, docker's time at which the last of them was created or ran */
    bool is_any_well;
};

static const char *state_of(const struct gp_docker_container *c, const char *key)
{
    const char *value = gp_docker_text(json_object_get(c->config, "State"), key);
    return value ? value : "";
}

static bool is_in_old_way(const struct gp_docker_container *c)
{
    const char *asked = gp_docker_asked(c);
    return c->host && gp_docker_has_gpus(c) && !(asked && strstr(asked, "nvidia.com/"));
}

/* Docker's times, all in UTC, are in the order of their texts. */
static void keep_later(struct gp_exam *exam, struct starts *starts, const char *time)
{
    if (time && strcmp(time, starts->since) > 0)
        starts->since = gp_exam_text(exam, "%s", time);
}

static void find_failed(struct gp_exam *exam, const struct gp_docker_container *c, void *argument)
{
    struct starts *starts = argument;
    if (!is_in_old_way(c) || !strstr(state_of(c, "Error"), failure))
        return;
    starts->failed++;
    keep_later(exam, starts, gp_docker_text(c->config, "Created"));
    keep_later(exam, starts, state_of(c, "StartedAt"));
}

/* One that has ended, as a batch job, is proof, too; before the failed one was created, or ran, the
 * driver may have been another one. */
static void find_well(struct gp_exam *unused, const struct gp_docker_container *c, void *argument)
{
    static const char never[] = "0001-";
    struct starts *starts = argument;
    const char *time = state_of(c, "StartedAt");
    bool has_ended = !state_of(c, "Error")[0] && strcmp(time, starts->since) > 0 &&
                     strncmp(time, never, sizeof(never) - 1) != 0;
    (void)unused;
    starts->is_any_well = starts->is_any_well || (is_in_old_way(c) && (c->is_running || has_ended));
}

/* If it works for another container, the image of the failed one is at fault. */
static struct starts read_starts(struct gp_exam *exam)
{
    struct starts starts = {.since = ""};
    (void)gp_docker_each(exam, find_failed, &starts);
    (void)gp_docker_each(exam, find_well, &starts);
    return starts;
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
    if (!strstr(known->text, failure) || !engine || strcmp(engine->name, "docker") != 0 ||
        !exam->machine.is_driver_loaded || exam->machine.container || exam->machine.is_jetson ||
        gp_container_is_rootless(exam) || gp_container_has_mode(exam) ||
        gp_docker_is_left_over(exam, known->path))
        return false;
    struct starts starts = read_starts(exam);
    if (starts.is_any_well)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s: the toolkit's old way (mode legacy) fails at its last step, ldconfig",
                   starts.failed > 1 ? "containers with a GPU do not start"
                                     : "a container with a GPU did not start");
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
