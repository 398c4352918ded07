/* Intel GPUs: checked only if the machine has no other vendor's GPU to compute on. */
#include "doctor/access.h"
#include "doctor/exam.h"
#include "doctor/unbound.h"

#include <stdio.h>
#include <string.h>

static bool is_intel_alone(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->intel_count > 0 && m->nvidia_count == 0 && m->amd_count == 0;
}

static void check_driver(struct gp_exam *exam)
{
    for (size_t i = 0; i < exam->machine.gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[i];
        if (gpu->vendor != GP_PCI_INTEL || gpu->driver[0])
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "no driver is bound to Intel GPU %s", gpu->bus_id);
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "missing");
        if (gp_unbound_explain(exam, gpu, "xe", "intel") ||
            gp_unbound_explain(exam, gpu, "i915", "intel"))
            continue;
        gp_exam_advice(
            exam, "a newer kernel may support it: i915 drives older GPUs, xe those from 2023 on");
    }
}

static void check_permission(struct gp_exam *exam)
{
    struct gp_access access;
    const char *path;
    if (gp_access_denied(exam, "/dev/dri", "renderD", &access, &path) == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "you have no permission to compute on the Intel GPU: you are not in group %s",
                   access.group_name);
    gp_exam_evidence(exam, path, "mode %04o, group %s (%u)", access.mode, access.group_name,
                     access.group);
    gp_access_propose(exam, &access, path);
}

static bool has_library(const struct gp_exam *exam, const char *name)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib",
                                          "/usr/local/lib"};
    char path[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folders[i], name);
        if (gp_files_exist(&exam->files, path))
            return true;
    }
    return false;
}

static void check_compute(struct gp_exam *exam)
{
    bool has_zero = has_library(exam, "libze_intel_gpu.so.1");
    bool has_cl = gp_files_exist(&exam->files, "/etc/OpenCL/vendors/intel.icd");
    if (has_zero && has_cl)
        return;
    gp_exam_report(exam, GP_VERDICT_INFO, "programs cannot compute on the Intel GPU yet: %s%s%s",
                   has_zero ? "" : "Level Zero", has_zero || has_cl ? "" : " and ",
                   has_cl ? "" : "OpenCL");
    if (!has_zero)
        gp_exam_evidence(exam, "libze_intel_gpu.so.1", "not in any of the usual directories");
    if (!has_cl)
        gp_exam_evidence(exam, "/etc/OpenCL/vendors/intel.icd", "missing");
    gp_exam_why(exam, "PyTorch's xpu needs Level Zero; OpenVINO sees only the CPU without OpenCL.");
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_INTEL_COMPUTE, NULL, NULL);
}

const struct gp_check gp_checks_intel[] = {
    {"intel.driver", "the kernel drives the Intel GPUs", {NULL}, is_intel_alone, check_driver},
    {"intel.permission",
     "you have permission to use the Intel GPUs",
     {"intel.driver"},
     is_intel_alone,
     check_permission},
    {"intel.compute",
     "programs can compute on the Intel GPUs",
     {"intel.driver"},
     is_intel_alone,
     check_compute},
    {0},
};
