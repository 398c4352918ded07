/* Containers that are given NVIDIA's device files by their paths, on a host where nothing has
 * created these since boot. */
#include "doctor/checks/container.h"

#include "doctor/checks/driver.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/passthrough.h"

#include <string.h>

static const char since[] = "nothing has created", control[] = "/dev/nvidiactl",
                  uvm[] = "/dev/nvidia-uvm";

/* Whether the driver has a GPU that is for this system, and not for virtual machines. */
static bool has_own_gpu(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++)
        if (gp_driver_is_ours(&m->gpus[i]) && strcmp(m->gpus[i].driver, "nvidia") == 0 &&
            !gp_passthrough_is_late(exam, &m->gpus[i]))
            return true;
    return false;
}

/* A copy of a machine's files may lack /dev, where nothing can be told then. A driver in a
 * container has its device files there; a failed check names the reason, such as a module that is
 * not there.
 */
static bool may_judge(struct gp_exam *exam)
{
    bool has_dev =
        gp_files_exist(&exam->files, "/dev/null") || gp_files_exist(&exam->files, "/dev/kmsg");
    return has_dev && exam->machine.is_driver_loaded && !exam->machine.container &&
           !gp_files_exist(&exam->files, "/run/nvidia/driver/dev/nvidiactl") &&
           !gp_exam_has_failed(exam, "driver.nodes", "") &&
           !gp_exam_has_failed(exam, "driver.persistence", "") && has_own_gpu(exam);
}

/* The path before the first sign that is not part of it. */
static bool is_path(const char *value, const char *path)
{
    size_t n = strlen(path);
    return strncmp(value, path, n) == 0 && (!value[n] || strchr(", \t:", value[n]));
}

const char *gp_container_absent_node(struct gp_exam *exam, const char *value)
{
    static const char start[] = "/dev/nvidia", first[] = "/dev/nvidia0";
    const size_t n = sizeof(start) - 1;
    bool is_gpu = is_path(value, control) ||
                  (strncmp(value, start, n) == 0 && value[n] >= '0' && value[n] <= '9');
    bool is_any = is_gpu || is_path(value, uvm);
    if (!is_any || !may_judge(exam))
        return NULL;
    if (is_gpu && !gp_files_exist(&exam->files, control) && !gp_files_exist(&exam->files, first))
        return is_path(value, control) ? control : first;
    return !is_gpu && !gp_files_exist(&exam->files, uvm) ? uvm : NULL;
}

/* Whether an earlier container's finding has the commands for the host. */
static bool is_told(const struct gp_exam *exam, const char *file)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        for (const struct gp_evidence *e = f->evidence; e; e = e->next)
            if (f->verdict == GP_VERDICT_WARN && strstr(f->summary, since) &&
                strcmp(e->where, file) == 0)
                return true;
    return false;
}

static void fix_host(struct gp_exam *exam, bool is_uvm)
{
    if (!is_uvm)
        gp_exam_command(exam, "initialize the GPUs, which creates their device files",
                        "sudo nvidia-smi");
    gp_exam_command(exam, "load nvidia_uvm, and create its device files",
                    "sudo nvidia-modprobe -u -c 0");
    gp_driver_create_at_boot(exam, "pve-guests.service lxc.service docker.service");
}

void gp_container_report_nodes(struct gp_exam *exam, const struct gp_container_nodes *nodes)
{
    bool is_uvm = strcmp(nodes->file, uvm) == 0, is_again = is_told(exam, nodes->file);
    gp_exam_report(exam, GP_VERDICT_WARN, "%s %s: %s %s since boot", nodes->container,
                   nodes->is_needed ? "does not start"
                   : is_uvm         ? "has no CUDA"
                                    : "gets no GPU",
                   since, is_uvm ? uvm : "/dev/nvidia0 and /dev/nvidiactl");
    gp_exam_evidence(exam, nodes->where, "%s", nodes->line);
    gp_exam_evidence(exam, nodes->file, "missing");
    gp_exam_evidence(exam, "/sys/module/nvidia", "loaded");
    if (!gp_files_exist(&exam->files, "/sys/module/nvidia_uvm"))
        gp_exam_evidence(exam, "/sys/module/nvidia_uvm", "not loaded");
    gp_exam_why(exam,
                "The driver's module alone does not create its device files: a program on the host "
                "creates them at first use. A container gets only the files that exist when it "
                "starts: %s.",
                is_uvm ? "nvidia-smi works in it, but cuInit fails"
                       : "nvidia-smi and cuInit fail in it");
    if (!is_again)
        fix_host(exam, is_uvm);
    if (nodes->wants_number)
        gp_exam_advice(exam,
                       "in %s, allow the number that nvidia-uvm then has in /proc/devices: "
                       "lxc.cgroup%s.devices.allow",
                       nodes->where, nodes->version_sign);
    gp_exam_command(exam, is_again ? "after the commands above" : "then", "%s", nodes->restart);
}
