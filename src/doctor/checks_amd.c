/* GPUs of AMD: the kernel's driver, ROCm, and who may compute. */
#include "doctor/access.h"
#include "doctor/exam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_amd(struct gp_exam *exam)
{
    return exam->machine.amd_count > 0;
}

static void check_driver(struct gp_exam *exam)
{
    for (size_t i = 0; i < exam->machine.gpu_count; i++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[i];
        if (gpu->vendor != GP_PCI_AMD || strcmp(gpu->driver, "amdgpu") == 0)
            continue;
        bool is_passed = strcmp(gpu->driver, "vfio-pci") == 0;
        gp_exam_report(exam, is_passed ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                       is_passed ? "GPU %s of AMD is kept for a virtual machine"
                                 : "GPU %s of AMD is not driven by amdgpu",
                       gpu->bus_id);
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "%s", gpu->driver[0] ? gpu->driver : "no driver has it");
        if (!is_passed && !gpu->driver[0])
            gp_exam_command(exam, "loads it; the kernel's log says why it does not load by itself",
                            "sudo modprobe amdgpu");
    }
}

/* ROCm is wanted where it is installed: a graphics chip beside the processor is no finding. */
static bool has_rocm(struct gp_exam *exam)
{
    return has_amd(exam) && gp_files_exist(&exam->files, "/opt/rocm");
}

static void check_kfd(struct gp_exam *exam)
{
    if (gp_files_exist(&exam->files, "/dev/kfd"))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "ROCm has no device to compute on");
    gp_exam_evidence(exam, "/dev/kfd", "is not there");
    if (exam->machine.container)
        gp_exam_advice(exam, "start the container with --device=/dev/kfd --device=/dev/dri "
                             "--group-add video --group-add render");
    else
        gp_exam_advice(exam, "amdgpu makes it when it knows the GPU for computing; the kernel's "
                             "log names GPUs that it does not (not supported in kfd)");
}

static void check_permission(struct gp_exam *exam)
{
    struct gp_access access = gp_access_of(exam, "/dev/kfd");
    const char *path = "/dev/kfd";
    if (!access.is_known) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "/proc/self/status does not say who asks");
        return;
    }
    if (access.may_use && gp_access_denied(exam, "/dev/dri", "renderD", &access, &path) == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL, "you may not use the GPU of AMD: you are not in group %s",
                   access.group_name);
    gp_exam_evidence(exam, path, "mode %04o, group %s (%u)", access.mode, access.group_name,
                     access.group);
    gp_exam_why(exam, "rocminfo then says Permission denied, or that it finds no agent.");
    gp_access_propose(exam, &access, path);
}

/* The name that compilers have for a GPU, of "gfx_target_version 110000" in its properties. */
static void add_names(struct gp_exam *exam)
{
    static const char folder[] = "/sys/class/kfd/kfd/topology/nodes";
    static const char mark[] = "gfx_target_version ";
    char **names, path[300], text[8192];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        (void)snprintf(path, sizeof(path), "%s/%.40s/properties", folder, names[i]);
        if (gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
            continue;
        const char *found = strstr(text, mark);
        unsigned long version = found ? strtoul(found + sizeof(mark) - 1, NULL, 10) : 0;
        if (version > 0) /* 0: a processor */
            gp_exam_evidence(exam, path, "gfx%lu%lx%lx", version / 10000, version / 100 % 100,
                             version % 100);
    }
}

static void check_version(struct gp_exam *exam)
{
    char line[64];
    static const char path[] = "/opt/rocm/.info/version";
    if (!gp_files_line(&exam->files, path, line, sizeof(line))) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "%s cannot be read", path);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_OK, "ROCm %s", line);
    gp_exam_evidence(exam, path, "%s", line);
    add_names(exam);
}

/* "ue: 2\nce: 0" for each part of a GPU that counts. */
static void check_card(struct gp_exam *exam, const char *card)
{
    enum { SHOWN = 12 };
    char **files, text[128];
    const char *folder = gp_exam_text(exam, "/sys/class/drm/%s/device/ras", card);
    const struct gp_finding *before = exam->last;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &files);
    for (long i = 0, shown = 0; i < n && shown < SHOWN; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, files[i]);
        if (!strstr(files[i], "_err_count") ||
            gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
            continue;
        const char *found = strstr(text, "ue:");
        long errors = found ? strtol(found + 3, NULL, 10) : 0;
        if (errors <= 0)
            continue;
        if (exam->last == before)
            gp_exam_report(exam, GP_VERDICT_FAIL, "%s of AMD had errors that cannot be corrected",
                           card);
        gp_exam_evidence(exam, path, "ue: %ld", errors);
        shown++;
    }
    if (exam->last != before)
        gp_exam_advice(exam, "end the jobs on it and reset it; if they come again, it belongs to "
                             "its vendor");
}

static void check_errors(struct gp_exam *exam)
{
    char **names;
    long cards = gp_files_list(&exam->files, &exam->arena, "/sys/class/drm", &names);
    for (long i = 0; i < cards && i < GP_MACHINE_GPUS; i++)
        if (strncmp(names[i], "card", 4) == 0 && !strchr(names[i], '-'))
            check_card(exam, names[i]);
}

const struct gp_check gp_checks_amd[] = {
    {"amd.driver", "amdgpu drives the GPUs of AMD", {NULL}, has_amd, check_driver},
    {"amd.kfd", "ROCm has its device", {"amd.driver"}, has_rocm, check_kfd},
    {"amd.permission", "you may use the GPUs of AMD", {"amd.kfd"}, has_rocm, check_permission},
    {"amd.rocm", "ROCm is installed", {NULL}, has_rocm, check_version},
    {"amd.errors", "no errors that cannot be corrected", {"amd.driver"}, has_amd, check_errors},
    {0},
};
