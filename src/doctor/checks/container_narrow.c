/* Docker's containers with programs of 32 bits: whether the toolkit has libraries for them. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/driver.h"
#include "doctor/readers/docker.h"

#include <string.h>

/* An image with a program of 32 bits that takes the driver as the toolkit passes it. Others, such
 * as josh5/steam-headless, install one of their own at their start. */
#define IMAGE "games-on-whales/steam"
#define PROGRAM "Steam"

/* Where Wolf's containers look for a driver of their own, in a volume. */
#define DRIVER_VOLUME "/usr/nvidia"

struct narrow_container {
    const char *path, *name, *image;
};

/* Whether the toolkit passes 32-bit libraries to it, where there are any. */
static bool is_for_narrow(const struct gp_docker_container *container)
{
    const char *parts = gp_docker_variable(container, "NVIDIA_DRIVER_CAPABILITIES");
    return gp_docker_has_gpus(container) && parts &&
           (strcmp(parts, "all") == 0 || gp_exam_is_listed(parts, "compat32"));
}

static void find_container(struct gp_exam *exam, const struct gp_docker_container *container,
                           void *argument)
{
    struct narrow_container *ret = argument;
    const char *image = gp_docker_text(json_object_get(container->config, "Config"), "Image");
    if (!ret->name && image && strstr(image, IMAGE) && container->is_running &&
        is_for_narrow(container) && !gp_docker_source(exam, container, DRIVER_VOLUME))
        *ret = (struct narrow_container){gp_exam_text(exam, "%s", container->config_path),
                                         gp_exam_text(exam, "%s", container->name),
                                         gp_exam_text(exam, "%s", image)};
}

/* The first such container that runs; without a name: there is none. */
static struct narrow_container running_one(struct gp_exam *exam)
{
    struct narrow_container found = {NULL, NULL, NULL};
    (void)gp_docker_each(exam, find_container, &found);
    return found;
}

bool gp_container_has_narrow(struct gp_exam *exam)
{
    return exam->machine.nvidia_count > 0 && exam->machine.is_driver_loaded &&
           gp_container_has_toolkit(exam) && running_one(exam).name;
}

/* The toolkit can pass on only what the system with docker has of the driver. */
void gp_container_check_narrow(struct gp_exam *exam)
{
    const struct narrow_container found = running_one(exam);
    const char *missing = gp_driver_missing_narrow(exam);
    if (!missing)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   PROGRAM " in the container %s draws on the CPU: the driver's 32-bit libraries "
                           "are not installed",
                   found.name);
    gp_exam_evidence(exam, missing, "missing");
    gp_exam_evidence(exam, found.path, "image %s, with GPUs by NVIDIA Container Toolkit",
                     found.image);
    gp_exam_why(
        exam, "The toolkit passes into containers only what this system has of the driver. " PROGRAM
              " is a 32-bit program and finds only software rendering (llvmpipe), "
              "although 64-bit games use the GPU.");
    gp_driver_fix_narrow(exam);
    gp_exam_advice(exam,
                   "then end the container's session and start it again: the toolkit adds the "
                   "libraries when a container starts");
    gp_exam_advice(exam, "or give the container a complete driver instead of the toolkit's: Wolf's "
                         "manual method, with a driver volume for this version at " DRIVER_VOLUME
                         ", NVIDIA_DRIVER_VOLUME_NAME, and NVIDIA's device files");
}
