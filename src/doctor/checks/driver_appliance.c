/* Appliances that offer a GPU to programs by what the driver tells of it, which it does only after
 * a first use: a part of driver.persistence. */
#include "doctor/checks/driver.h"
#include "doctor/exam.h"
#include "doctor/readers/docker.h"

#include <string.h>

/* TrueNAS names a GPU by its UUID in the settings of an app. It turns NVIDIA's runtime on when the
 * user has it install the driver: for apps, then. */
bool gp_driver_report_unoffered(struct gp_exam *exam, const char *information)
{
    static const char control[] = "/dev/nvidiactl";
    if (strcmp(exam->machine.distro_id, "truenas") != 0 || exam->machine.container ||
        !gp_docker_is_nvidia_default(exam))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "TrueNAS cannot give the GPU to apps: nothing has initialized it since boot");
    gp_exam_evidence(exam, information, "the UUID is not known yet");
    if (!gp_files_exist(&exam->files, control))
        gp_exam_evidence(exam, control, "missing");
    gp_exam_evidence(exam, "/etc/docker/daemon.json", "the default runtime is NVIDIA's");
    gp_exam_why(exam, "The driver reads the UUID, by which TrueNAS knows a GPU, at the first use. "
                      "Before, the GPU is not among the choices of an app.");
    gp_exam_command(exam, "initialize it now", "sudo nvidia-smi");
    gp_exam_remedy(exam, GP_REMEDY_START_PERSISTENCED, NULL, NULL);
    return true;
}
