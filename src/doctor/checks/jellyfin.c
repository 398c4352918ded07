/* Jellyfin: whether its settings for transcoding fit the GPUs: system.jellyfin. */
#include "doctor/checks/system.h"

#include "doctor/exam.h"
#include "doctor/readers/jellyfin.h"
#include "doctor/readers/nvidia.h"

#include <stdlib.h>
#include <string.h>

static const char place[] = "in Jellyfin's dashboard, Playback, Transcoding";

/* Only where the bus shows the GPUs that this system may use. */
bool gp_jellyfin_is_there(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return gp_jellyfin_path(exam) && m->gpu_count > 0 && (!m->container || gp_machine_is_lxc(m));
}

static const char *maker_words(unsigned vendor)
{
    return vendor == GP_PCI_NVIDIA  ? "NVIDIA"
           : vendor == GP_PCI_AMD   ? "AMD"
           : vendor == GP_PCI_INTEL ? "Intel"
                                    : "another maker";
}

/* The device files of GPUs that VA-API or QSV could use, "/dev/dri/renderD129 (Intel)". */
static const char *other_devices(struct gp_exam *exam)
{
    static const char folder[] = "/dev/dri";
    const char *all = "";
    char **names, vendor[16];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "/sys/class/drm/%s/device/vendor", names[i]);
        if (strncmp(names[i], "renderD", 7) != 0 ||
            !gp_files_line(&exam->files, path, vendor, sizeof(vendor)))
            continue;
        unsigned maker = (unsigned)strtoul(vendor, NULL, 16);
        if (maker == GP_PCI_AMD || maker == GP_PCI_INTEL)
            all = gp_exam_text(exam, "%s%s%s/%s (%s)", all, all[0] ? ", " : "", folder, names[i],
                               maker_words(maker));
    }
    return all;
}

/* A method that needs a GPU of a maker that is not here. */
static bool check_method(struct gp_exam *exam, const char *path, const char *method)
{
    const struct gp_machine *m = &exam->machine;
    bool is_nvenc = strcmp(method, "nvenc") == 0;
    if ((!is_nvenc || m->nvidia_count > 0) && (strcmp(method, "qsv") != 0 || m->intel_count > 0))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "Jellyfin is set to %s, but there is no GPU of %s",
                   is_nvenc ? "NVENC" : "QSV", is_nvenc ? "NVIDIA" : "Intel");
    gp_exam_evidence(exam, path, "HardwareAccelerationType %s", method);
    gp_exam_why(exam, "Transcoding fails: playback stops with an error.");
    gp_exam_advice(exam, "%s, choose %s", place,
                   m->nvidia_count > 0  ? "NVIDIA NVENC"
                   : m->intel_count > 0 ? "Intel QSV or VAAPI"
                                        : "VAAPI");
    return true;
}

/* The device file of VA-API or QSV: its number changes with the order of the drivers. */
static void check_device(struct gp_exam *exam, const char *path, const char *method,
                         const char *setting, const char *device)
{
    char vendor[16];
    bool is_qsv = strcmp(method, "qsv") == 0;
    const char *name = strrchr(device, '/'), *others = other_devices(exam);
    if (strncmp(device, "/dev/dri/renderD", 16) != 0 || !others[0])
        return;
    const char *file = gp_exam_text(exam, "/sys/class/drm%s/device/vendor", name);
    bool is_there = gp_files_exist(&exam->files, device);
    bool is_known = gp_files_line(&exam->files, file, vendor, sizeof(vendor));
    unsigned maker = is_known ? (unsigned)strtoul(vendor, NULL, 16) : 0;
    bool is_wrong = is_known && (is_qsv ? maker != GP_PCI_INTEL : maker == GP_PCI_NVIDIA);
    if (is_there && !is_wrong)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "Jellyfin cannot transcode with %s: %s", device,
                   is_there ? gp_exam_text(exam, "it is the GPU of %s", maker_words(maker))
                            : "it does not exist");
    gp_exam_evidence(exam, path, "%s %s", setting, device);
    gp_exam_evidence(exam, is_there ? file : device, "%s", is_there ? vendor : "missing");
    gp_exam_why(exam, "The numbers of these files depend on the order in which the drivers were "
                      "loaded; VA-API and QSV need the one of their GPU.");
    gp_exam_advice(exam, "%s, set the device to %s", place, others);
}

/* NVENC encodes AV1 since Ada (compute capability 8.9). */
static void check_av1(struct gp_exam *exam, const char *path, const char *text)
{
    enum { FIRST = 89 };
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    if (strcmp(gp_jellyfin_value(exam, text, "AllowAv1Encoding"), "true") != 0 ||
        strcmp(gp_jellyfin_value(exam, text, "EnableHardwareEncoding"), "false") == 0 ||
        nv.count == 0)
        return;
    for (size_t i = 0; i < nv.count; i++)
        if (nv.gpus[i].capability == 0 || nv.gpus[i].capability >= FIRST)
            return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Jellyfin is set to encode AV1, which %s does not have in hardware",
                   gp_nvidia_gpu_words(exam, &nv.gpus[0]));
    gp_exam_evidence(exam, path, "HardwareAccelerationType nvenc, AllowAv1Encoding true");
    gp_exam_why(exam, "For a client that plays AV1, av1_nvenc fails: \"Provided device doesn't "
                      "support required NVENC features\". NVENC has AV1 since the RTX 40 series.");
    gp_exam_advice(exam, "%s, turn off encoding in AV1", place);
}

void gp_jellyfin_check(struct gp_exam *exam)
{
    const char *path = gp_jellyfin_path(exam);
    const char *text = gp_jellyfin_text(exam);
    const char *method = text ? gp_jellyfin_value(exam, text, "HardwareAccelerationType") : "";
    if (check_method(exam, path, method))
        return;
    if (strcmp(method, "vaapi") == 0)
        check_device(exam, path, method, "VaapiDevice",
                     gp_jellyfin_value(exam, text, "VaapiDevice"));
    else if (strcmp(method, "qsv") == 0)
        check_device(exam, path, method, "QsvDevice", gp_jellyfin_value(exam, text, "QsvDevice"));
    else if (strcmp(method, "nvenc") == 0)
        check_av1(exam, path, text);
}
