/* A host of virtual GPUs: NVIDIA's driver for it serves virtual machines alone, and has no CUDA.
 * Parts of driver.libraries and driver.nodes. */
#include "doctor/checks/driver.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/readers/processes.h"

#include <string.h>

/* No distribution packages this driver. */
static const char *vgpu_file(struct gp_exam *exam)
{
    const char *const paths[] = {
        "/usr/bin/nvidia-vgpud",
        "/usr/bin/nvidia-vgpu-mgr",
        "/usr/lib64/libnvidia-vgpu.so.1",
        "/usr/lib/libnvidia-vgpu.so.1",
        gp_exam_text(exam, "/usr/lib/%s-linux-gnu/libnvidia-vgpu.so.1", exam->machine.arch),
        NULL};
    return gp_files_first(&exam->files, paths);
}

/* Only its source has this module; DKMS may not have been able to build it. */
static bool has_source(struct gp_exam *exam)
{
    const char *path = gp_exam_text(exam, "%s/source/dkms.conf", gp_install_of(exam)->source);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    return text && strstr(text, "nvidia-vgpu-vfio");
}

bool gp_driver_is_vgpu_host(struct gp_exam *exam)
{
    return vgpu_file(exam) || has_source(exam);
}

/* A merged driver has both. */
bool gp_driver_is_without_cuda(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->library_count; i++)
        if (strcmp(in->libraries[i].name, "libcuda.so.1") == 0)
            return false;
    return !exam->machine.container && vgpu_file(exam);
}

struct user {
    const char *words, *path; /* of what is to compute on the GPU here; NULL: nothing is known */
};

static void look_at(struct gp_exam *exam, const struct gp_docker_container *container,
                    void *argument)
{
    struct user *ret = argument;
    if (!ret->path && container->is_running && gp_docker_has_gpus(container) &&
        !gp_docker_is_for_cpu(container))
        *ret = (struct user){gp_exam_text(exam, "container %s, running with GPUs", container->name),
                             container->host_path};
}

static struct user find_user(struct gp_exam *exam)
{
    struct user user = {NULL};
    struct gp_processes all = gp_processes_of(exam);
    (void)gp_docker_each(exam, look_at, &user);
    const char *process = user.path ? NULL : gp_processes_next(exam, &all, "ollama");
    return process ? (struct user){"Ollama runs", process} : user;
}

static void fix_unraid(struct gp_exam *exam)
{
    gp_exam_advice(exam, "in the web interface, Plugins: remove the plugin of the vGPU driver, "
                         "and install it again: its later packages are a merged driver, for "
                         "virtual machines and CUDA; then reboot");
    gp_exam_advice(exam, "or, if no virtual machine uses a virtual GPU: remove it, and install "
                         "the plugin Nvidia Driver from Apps");
}

static void fix_other(struct gp_exam *exam)
{
    gp_exam_advice(exam, "give a virtual GPU to a virtual machine, install the guest driver of "
                         "the same vGPU release in it, and run the program there");
    gp_exam_advice(exam, "or, if no virtual machine uses a virtual GPU: remove this driver (one of "
                         "a .run file: sudo nvidia-uninstall), and install the ordinary one, "
                         "which has CUDA");
}

bool gp_driver_report_vgpu_host(struct gp_exam *exam)
{
    static const char module[] = "/sys/module/nvidia_vgpu_vfio";
    if (!gp_driver_is_without_cuda(exam))
        return false;
    struct user user = find_user(exam);
    gp_exam_report(exam, user.path ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "driver %s is NVIDIA's vGPU host driver, without CUDA: only virtual machines "
                   "can use the GPU",
                   exam->machine.driver);
    gp_exam_evidence(exam, vgpu_file(exam), "present");
    if (gp_files_exist(&exam->files, module))
        gp_exam_evidence(exam, module, "loaded");
    gp_exam_evidence(exam, "libcuda.so.1", "not in any library directory");
    if (user.path)
        gp_exam_evidence(exam, user.path, "%s", user.words);
    if (user.path)
        gp_log_show_known(exam, gp_log_known_of(exam, "ollama.no-gpu"));
    gp_exam_why(exam, "This driver (vGPU-KVM) divides the GPU among virtual machines. It has "
                      "nvidia-smi, but neither libcuda nor nvidia_uvm: programs and containers on "
                      "the host find no GPU.");
    if (user.path && strcmp(exam->machine.distro_id, "unraid") == 0)
        fix_unraid(exam);
    else if (user.path)
        fix_other(exam);
    return true;
}
