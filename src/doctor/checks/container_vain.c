/* A container that was to get an NVIDIA GPU on a machine without one. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/log.h"

#include <string.h>

/* Lines by which docker and the toolkit refuse such a container. */
static const char refusals[] = "container.driver-not-loaded,container.no-libcuda,container.no-nvml,"
                               "docker.cdi-vendor,docker.no-toolkit";

/* Whether a GPU was lost, switched off or is kept away: it should be there. */
static bool is_missed(const struct gp_exam *exam)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (f->verdict >= GP_VERDICT_WARN && gp_exam_is_listed("hardware,platform", f->check->id))
            return true;
    return false;
}

const struct gp_log_known *gp_container_refusal(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->known_count; i++)
        if (gp_exam_is_listed(refusals, log->known[i].id))
            return &log->known[i];
    return NULL;
}

static bool asks_in_vain(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return !m->container && !m->is_wsl && !m->is_jetson && m->nvidia_count == 0 &&
           !m->is_driver_loaded && gp_container_engine(exam) && !is_missed(exam) &&
           gp_container_refusal(exam);
}

bool gp_container_may_start(struct gp_exam *exam)
{
    return gp_container_is_host(exam) || asks_in_vain(exam);
}

void gp_container_report_vain(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_log_known *known = gp_log_known_of(exam, refusals);
    if (!known)
        return;
    bool is_past = gp_docker_is_left_over(exam, known->path);
    gp_exam_report(exam, is_past ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "a container asks for an NVIDIA GPU, which this machine does not have");
    gp_log_show_known(exam, known);
    if (m->gpu_count == 0)
        gp_exam_evidence(exam, "/sys/bus/pci/devices", "no GPU");
    for (size_t i = 0; i < m->gpu_count; i++)
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s", m->gpus[i].bus_id),
                         "%s", gp_driver_gpu_words(exam, &m->gpus[i]));
    gp_exam_why(exam, "The option --gpus, the runtime nvidia and devices of nvidia.com are for "
                      "NVIDIA GPUs only. Installing NVIDIA's driver or toolkit does not help.");
    gp_exam_advice(exam, "start it without --gpus (in a compose file: without runtime: nvidia and "
                         "the reservation of devices), and tell its program to compute on the CPU, "
                         "often by --device cpu");
    if (m->amd_count > 0)
        gp_exam_command(exam, "for the AMD GPU, if there is an image of the program for ROCm",
                        "docker run --device=/dev/kfd --device=/dev/dri --group-add video …");
    if (m->intel_count > 0)
        gp_exam_command(exam, "for the Intel GPU, if there is an image for OpenVINO or XPU",
                        "docker run --device=/dev/dri …");
}
