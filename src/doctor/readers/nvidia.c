#include "doctor/readers/nvidia.h"

#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/version.h"
#include "model/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct gp_nvidia *nv, const char *name, unsigned capability)
{
    struct gp_nvidia_gpu gpu = {.capability = capability};
    (void)snprintf(gpu.name, sizeof(gpu.name), "%s", name);
    nv->gpu_count++;
    for (size_t i = 0; i < nv->count; i++)
        if (nv->gpus[i].capability == capability && strcmp(nv->gpus[i].name, gpu.name) == 0)
            return;
    if (nv->count < GP_MACHINE_GPUS)
        nv->gpus[nv->count++] = gpu;
}

/* "8.6" as 86; 0 if it is not a compute capability. */
static unsigned capability_of(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    return *end == '.' && major < 100 ? (unsigned)(major * 10 + strtoul(end + 1, NULL, 10)) : 0;
}

static void add_answers(struct gp_nvidia *nv, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        if (!device->is_mig && device->status == GP_STATUS_OK)
            add(nv, gp_device_text(device, GP_NAME, "a GPU"),
                capability_of(gp_device_text(device, GP_COMPUTE_CAP, "")));
    }
}

/* The name people know: "GP100GL [Tesla P100 PCIe 16GB]" has it in brackets. */
static void add_chip(struct gp_nvidia *nv, const struct gp_pci_gpu *gpu)
{
    char name[128];
    if (!gpu->chip) {
        (void)snprintf(name, sizeof(name), "GPU 10de:%04x", gpu->device);
        add(nv, name, 0);
        return;
    }
    const char *open = strrchr(gpu->chip->name, '[');
    const char *start = open ? open + 1 : gpu->chip->name;
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(start, "]"), start);
    add(nv, name, gpu->chip->compute_capability);
}

static void take_driver(struct gp_nvidia *nv, const struct gp_value *version)
{
    if (version->status == GP_STATUS_OK)
        (void)snprintf(nv->driver, sizeof(nv->driver), "%s", version->s);
}

void gp_nvidia_read(struct gp_nvidia *nv, const struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    *nv = (struct gp_nvidia){0};
    if (!m->is_jetson) /* their drivers are numbered otherwise than CUDA's requirements */
        (void)snprintf(nv->driver, sizeof(nv->driver), "%s", m->driver);
    if (exam->snapshot) {
        if (!nv->driver[0])
            take_driver(nv, &exam->snapshot->host[GP_DRIVER_VERSION]);
        add_answers(nv, exam->snapshot);
    }
    bool has_answers = nv->gpu_count > 0;
    for (size_t i = 0; !has_answers && i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_NVIDIA && strcmp(m->gpus[i].driver, "vfio-pci") != 0)
            add_chip(nv, &m->gpus[i]);
    for (size_t i = 0; i < nv->count; i++)
        nv->capabilities[i] = nv->gpus[i].capability;
}

struct gp_build_target gp_nvidia_target(const struct gp_nvidia *nv)
{
    return (struct gp_build_target){nv->driver, nv->capabilities, nv->count, NULL};
}

const char *gp_nvidia_wsl_library(const struct gp_exam *exam)
{
    static const char *const mounted[] = {"/usr/lib/x86_64-linux-gnu/libcuda.so.1.1",
                                          "/usr/lib64/libcuda.so.1.1"};
    static const char own[] = "/usr/lib/wsl/lib/libcuda.so.1";
    if (gp_files_exist(&exam->files, own))
        return own;
    for (size_t i = 0; exam->machine.container && i < GP_ARRAY_LEN(mounted); i++)
        if (gp_files_exist(&exam->files, mounted[i]))
            return mounted[i];
    return NULL;
}

bool gp_nvidia_is_there(struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    /* WSL has no PCI device for it, but Windows' driver passes in its library. */
    return nv.gpu_count > 0 || (exam->machine.is_wsl && gp_nvidia_wsl_library(exam));
}

const char *gp_nvidia_gpu_words(struct gp_exam *exam, const struct gp_nvidia_gpu *gpu)
{
    return gpu->capability ? gp_exam_text(exam, "%s (compute capability %u.%u)", gpu->name,
                                          gpu->capability / 10, gpu->capability % 10)
                           : gp_exam_text(exam, "%s", gpu->name);
}

size_t gp_nvidia_uuids(struct gp_exam *exam, const char *ret[GP_NVIDIA_UUIDS])
{
    static const char top[] = "/proc/driver/nvidia/gpus", mark[] = "GPU UUID:";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    for (long i = 0; i < n && i < GP_NVIDIA_UUIDS; i++) {
        const char *path = gp_exam_text(exam, "%s/%s/information", top, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 4096, NULL);
        const char *uuid = text ? strstr(text, mark) : NULL;
        if (!uuid)
            return 0;
        uuid += strlen(mark);
        uuid += strspn(uuid, " \t");
        ret[i] = gp_exam_text(exam, "%.*s", (int)strcspn(uuid, " \t\r\n"), uuid);
        if (strncmp(ret[i], "GPU-", 4) != 0 || strchr(ret[i], '?'))
            return 0;
    }
    return n > 0 && n <= GP_NVIDIA_UUIDS ? (size_t)n : 0;
}
