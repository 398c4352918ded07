/* Inside a container: NVIDIA's toolkit has passed in a part of the driver, because nothing more was
 * requested. */
#include "doctor/checks/container.h"

#include "doctor/readers/pyenv.h"
#include "doctor/readers/torch.h"

#include <string.h>

/* Whether a file of this name is mounted from the host: "… /usr/lib64/libnvidia-ml.so.570.86.15 …".
 */
static bool is_mounted(struct gp_exam *exam, const char *name)
{
    enum { MOST = 1 << 18 };
    const char *mounts = gp_files_text(&exam->files, &exam->arena, "/proc/self/mounts", MOST, NULL);
    return mounts && strstr(mounts, gp_exam_text(exam, "/%s", name));
}

/* Whether a framework for GPUs is there, as far as one can see. Without one, the container may be
 * for watching the GPUs. */
static bool has_framework(struct gp_exam *exam)
{
    static const char *const names[] = {"tensorflow", "jaxlib", "nvidia-cuda-runtime", "cupy",
                                        "onnxruntime-gpu"};
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++) {
        struct gp_torch torch;
        if (gp_pyenv_torch(exam, &envs->list[i], &torch) && torch.cuda[0])
            return true;
        for (size_t k = 0; k < GP_ARRAY_LEN(names); k++)
            if (gp_pyenv_package_like(&envs->list[i], names[k]))
                return true;
    }
    return false;
}

/* How to request the parts for computing, by container runtime. */
static void advise_compute(struct gp_exam *exam)
{
    static const char variable_set[] = "NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    const char *container = exam->machine.container;
    if (strcmp(container, "docker") == 0 || strcmp(container, "podman") == 0) {
        bool is_docker = strcmp(container, "docker") == 0;
        gp_exam_command(exam, "on the host: create the container again with this variable",
                        "%s --env %s …", is_docker ? "docker run --gpus all" : "podman run",
                        variable_set);
        gp_exam_advice(exam,
                       "with compose: add the line \"- %s\" below environment: of the service, "
                       "then %s compose up -d",
                       variable_set, container);
    } else if (gp_machine_is_lxc(&exam->machine)) {
        gp_exam_advice(exam,
                       "on the host: set nvidia.driver.capabilities of the container to "
                       "compute,utility (in plain LXC, lxc.environment = %s), and restart it",
                       variable_set);
    } else {
        gp_exam_advice(exam, "start it with %s%s", variable_set,
                       strcmp(container, "kubernetes") == 0 ? ", below env: of the container" : "");
    }
    if (!gp_machine_is_lxc(&exam->machine))
        gp_exam_advice(exam, "or in the image: ENV %s", variable_set);
}

/* The toolkit has passed in the part for nvidia-smi, but not the one for computing: older ones do
 * so if nothing is requested. False: it has not. */
bool gp_container_report_default(struct gp_exam *exam)
{
    static const char nvml[] = "libnvidia-ml.so", cuda[] = "libcuda.so";
    const char *given = gp_machine_variable(&exam->machine, "NVIDIA_DRIVER_CAPABILITIES");
    if ((given && given[0]) || !is_mounted(exam, nvml) || is_mounted(exam, cuda))
        return false;
    gp_exam_report(exam, has_framework(exam) ? GP_VERDICT_FAIL : GP_VERDICT_INFO,
                   "CUDA's library (libcuda) was not passed to the container: only the driver's "
                   "utilities were");
    gp_exam_evidence(exam, "NVIDIA_DRIVER_CAPABILITIES", "not set in this environment");
    gp_exam_evidence(exam, "/proc/self/mounts", "has %s of the host, but no %s", nvml, cuda);
    gp_exam_why(exam, "NVIDIA's container toolkit passes in only the parts of the driver that the "
                      "variable lists, which images of nvidia/cuda set and others do not. "
                      "nvidia-smi works; CUDA programs find no driver.");
    advise_compute(exam);
    return true;
}
