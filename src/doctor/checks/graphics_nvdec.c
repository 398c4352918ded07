/* VA-API with NVIDIA's GPUs, which decode video by NVDEC. */
#include "doctor/checks/graphics.h"

#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/searchpath.h"
#include "doctor/tables.h"

#include <string.h>

static const char variable[] = "LIBVA_DRIVER_NAME", own[] = "nvidia";

const char *gp_graphics_video_driver(struct gp_exam *exam, const char *which)
{
    static const char *const folders[] = {"dri", "dri-nonfree", "dri-freeworld"};
    const char *nix = gp_exam_text(exam, "/run/opengl-driver/lib/dri/%s_drv_video.so", which);
    const char *found = gp_files_exist(&exam->files, nix) ? nix : NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders) && !found; i++)
        found = gp_system_library(exam, "",
                                  gp_exam_text(exam, "%s/%s_drv_video.so", folders[i], which));
    return found;
}

const char *gp_graphics_video_driver_of(struct gp_exam *exam, unsigned vendor)
{
    static const struct {
        unsigned vendor;
        const char *name;
    } known[] = {{GP_PCI_INTEL, "iHD"}, {GP_PCI_INTEL, "i965"}, {GP_PCI_AMD, "radeonsi"}};
    const char *found = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(known) && !found; i++)
        if (vendor == 0 || known[i].vendor == vendor)
            found = gp_graphics_video_driver(exam, known[i].name);
    return found;
}

/* Of a GPU without a decoder: NVIDIA's "Video Encode and Decode GPU Support Matrix" has none for
 * the T500 and MX450, of the same chip as others with one. nvidia-vaapi-driver#400: MX250, #408:
 * GM108.
 */
static bool is_without_decoder(const struct gp_pci_gpu *gpu)
{
    static const char *const parts[] = {"GM108", "GeForce MX230", "GeForce MX250", "GeForce MX450",
                                        "Quadro T500"};
    for (size_t i = 0; gpu->chip && i < GP_ARRAY_LEN(parts); i++)
        if (strstr(gpu->chip->name, parts[i]))
            return true;
    return false;
}

/* The first of NVIDIA's GPUs, if none of them can decode; NULL. */
static const struct gp_pci_gpu *without_decoder(const struct gp_machine *m)
{
    const struct gp_pci_gpu *first = NULL;
    for (size_t i = 0; i < m->gpu_count; i++) {
        if (m->gpus[i].vendor != GP_PCI_NVIDIA)
            continue;
        if (!is_without_decoder(&m->gpus[i]))
            return NULL;
        first = first ? first : &m->gpus[i];
    }
    return first;
}

/* Whether a driver that decodes runs it: vfio-pci gives it to a guest. */
static bool is_driven(const struct gp_pci_gpu *gpu)
{
    static const char *const drivers[] = {"amdgpu", "i915", "radeon", "xe"};
    for (size_t i = 0; i < GP_ARRAY_LEN(drivers); i++)
        if (strcmp(gpu->driver, drivers[i]) == 0)
            return true;
    return false;
}

/* Another GPU; NULL. *ret is the file of its driver of VA-API; NULL: it is not installed. */
static const struct gp_pci_gpu *other_gpu(struct gp_exam *exam, const char **ret)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_pci_gpu *other = NULL;
    *ret = NULL;
    for (size_t i = 0; i < m->gpu_count && !*ret; i++)
        if (is_driven(&m->gpus[i])) {
            other = &m->gpus[i];
            *ret = gp_graphics_video_driver_of(exam, other->vendor);
        }
    return other;
}

static void fix_forced(struct gp_exam *exam, const char *value)
{
    static const char *const others[] = {"NVD_BACKEND", "MOZ_DISABLE_RDD_SANDBOX"};
    gp_exam_fix_variable(exam, variable, value,
                         "for this terminal; VA-API then takes the driver of the other GPU");
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (gp_machine_variable(&exam->machine, others[i]))
            gp_exam_unset(exam, others[i], "it is only for nvidia-vaapi-driver");
    if (strcmp(exam->machine.distro_id, "nixos") == 0)
        gp_exam_command(exam,
                        "for good: after taking what sets them out of the configuration; then log "
                        "in again",
                        "sudo nixos-rebuild switch");
    else if (gp_machine_variable(&exam->machine, variable))
        gp_exam_advice(exam, "for good: delete the line that sets it, and log in again");
}

/* What VA-API is led to has nothing to decode with. */
static void report_forced(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *value)
{
    const char *driver;
    const struct gp_pci_gpu *other = other_gpu(exam, &driver);
    gp_exam_report(exam, driver ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s leads VA-API to an NVIDIA GPU without a video decoder: %s", variable,
                   "programs decode video on the CPU");
    gp_exam_evidence(exam, gpu->bus_id, "%s: it has no NVDEC", gpu->chip->name);
    if (driver)
        gp_exam_evidence(exam, driver, "the driver of the other GPU, present");
    gp_exam_why(exam, "nvidia-vaapi-driver loads, but offers no codec (vainfo lists none), so "
                      "browsers and players use the CPU, or play nothing.");
    if (driver)
        fix_forced(exam, value);
    else if (other)
        gp_exam_advice(exam,
                       "to decode on the other GPU (%s): install its driver of VA-API, which is "
                       "not in the usual directories, then unset %s",
                       other->bus_id, variable);
}

/* NVIDIA's driver has no VA-API by itself. */
static void report_missing(struct gp_exam *exam, const char *value)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "%s names a driver that is not installed: %s", variable,
                   "programs decode video on the CPU");
    gp_exam_evidence(exam, "dri/nvidia_drv_video.so", "not in any of the usual directories");
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_NVIDIA_VAAPI, NULL, NULL);
    gp_exam_fix_variable(exam, variable, value,
                         "or have VA-API choose a driver, on a laptop that of the other GPU");
}

void gp_graphics_check_video_of_nvidia(struct gp_exam *exam)
{
    const char *value = gp_exam_session_value(exam, variable);
    const struct gp_machine *m = &exam->machine;
    const struct gp_pci_gpu *gpu = without_decoder(m);
    if (!value || strcmp(value, own) != 0 || m->nvidia_count == 0 || m->container)
        return;
    if (gpu)
        report_forced(exam, gpu, value);
    else if (!gp_graphics_video_driver(exam, own) &&
             !gp_machine_variable(m, "LIBVA_DRIVERS_PATH") &&
             gp_system_library(exam, "", "libva.so.2"))
        report_missing(exam, value);
}
