/* Jellyfin: whether its settings for transcoding fit the GPUs: system.jellyfin. */
#include "doctor/checks/system.h"

#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/readers/jellyfin.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/searchpath.h"

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

/* The release of the system's libva, 17 for "libva.so.2.1700.0" (2.17); 0: unknown. */
static unsigned libva_release(struct gp_exam *exam, char ret_path[GP_PATH_SIZE])
{
    static const char mark[] = "/libva.so.2.";
    const char *link = gp_system_library(exam, "", "libva.so.2");
    const char *found =
        link && gp_files_real(&exam->files, link, ret_path) ? strstr(ret_path, mark) : NULL;
    return found ? (unsigned)strtoul(found + sizeof(mark) - 1, NULL, 10) / 100 : 0;
}

/* The line of its last transcoding that says that FFmpeg was built for a newer libva than the
 * system's; NULL: it does not. */
static const struct gp_log_known *lack_of_libva(struct gp_exam *exam)
{
    static const char id[] = "video.libva-old", folder[] = "/var/log/jellyfin/";
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->known_count; i++)
        if (strcmp(log->known[i].id, id) == 0 &&
            strncmp(log->known[i].path, folder, sizeof(folder) - 1) == 0)
            return gp_log_known_of(exam, id);
    return NULL;
}

/* An FFmpeg without a libva of its own that was built for a newer one than the system's, such as
 * the portable build on Debian 12. Its last transcoding tells; true: that is reported. */
static bool check_libva(struct gp_exam *exam, const char *text)
{
    enum { OF_MAP_BUFFER_2 = 21 };
    static const char package[] = "/usr/lib/jellyfin-ffmpeg/ffmpeg";
    char path[GP_PATH_SIZE];
    const struct gp_log_known *known = lack_of_libva(exam);
    unsigned release = known ? libva_release(exam, path) : 0;
    bool is_map = known && strstr(known->text, "vaMapBuffer2");
    if (!known || !gp_jellyfin_uses_dri(exam) || (is_map && release >= OF_MAP_BUFFER_2))
        return false; /* the setting was changed since, or the library updated */
    const char *program = gp_jellyfin_value(exam, text, "EncoderAppPathDisplay");
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Jellyfin's FFmpeg needs a newer libva than this system's%s",
                   release ? gp_exam_text(exam, " 2.%u", release) : "");
    gp_log_show_known(exam, known);
    if (release)
        gp_exam_evidence(exam, path, "libva 2.%u%s", release,
                         is_map ? "; vaMapBuffer2 is in 2.21 and later" : "");
    if (program[0])
        gp_exam_evidence(exam, "encoding.xml", "EncoderAppPathDisplay %s", program);
    gp_exam_why(exam, "FFmpeg aborts when it transcodes with VA-API or QSV.");
    gp_exam_advice(exam,
                   "install the package jellyfin-ffmpeg7 of Jellyfin's own repository "
                   "(repo.jellyfin.org) for this release of the distribution: it has its own "
                   "libva. Then have Jellyfin use it: --ffmpeg %s in the service's command, or "
                   "the path %s",
                   package, place);
    gp_exam_advice(exam, "or an older portable build, or a distribution with a newer libva");
    gp_exam_link(exam, "https://github.com/BtbN/FFmpeg-Builds/issues/457");
    return true;
}

void gp_jellyfin_check(struct gp_exam *exam)
{
    const char *path = gp_jellyfin_path(exam);
    const char *text = gp_jellyfin_text(exam);
    const char *method = text ? gp_jellyfin_value(exam, text, "HardwareAccelerationType") : "";
    if (check_method(exam, path, method) || (text && check_libva(exam, text)))
        return;
    if (strcmp(method, "vaapi") == 0)
        check_device(exam, path, method, "VaapiDevice",
                     gp_jellyfin_value(exam, text, "VaapiDevice"));
    else if (strcmp(method, "qsv") == 0)
        check_device(exam, path, method, "QsvDevice", gp_jellyfin_value(exam, text, "QsvDevice"));
    else if (strcmp(method, "nvenc") == 0)
        check_av1(exam, path, text);
}
