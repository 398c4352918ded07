/* Libraries of the driver that are packages of their own, and that installed programs use. Findings
 * of driver.libraries. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/graphics.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/readers/searchpath.h"

#include <string.h>

static const struct {
    const char *library, *words;
    const char *failure; /* of data/explain: what a program, also one in a container, says of it */
    enum gp_remedy remedy;
    enum gp_verdict verdict; /* on a machine with no other GPU, which could do that, too */
    bool is_of_graphics;     /* in most packages with the libraries for OpenGL */
    const char *programs[8]; /* up to NULL */
} parts[] = {
    {"libnvidia-encode.so.1",
     "the NVIDIA GPU cannot encode video: the driver's library for NVENC is not installed",
     "nvenc.library",
     GP_REMEDY_INSTALL_VIDEO,
     GP_VERDICT_WARN,
     false,
     {"/usr/lib/jellyfin-ffmpeg/ffmpeg", "/usr/lib/plexmediaserver/Plex Transcoder",
      "/opt/emby-server/bin/ffmpeg", "/usr/bin/obs", "/usr/bin/sunshine", "/usr/bin/HandBrakeCLI",
      "/usr/bin/ghb"}},
    {"libnvcuvid.so.1",
     "the NVIDIA GPU cannot decode video: the driver's library for NVDEC is not installed",
     "nvdec.library",
     GP_REMEDY_INSTALL_VIDEO,
     GP_VERDICT_WARN,
     false,
     {"/usr/lib/jellyfin-ffmpeg/ffmpeg", "/usr/lib/plexmediaserver/Plex Transcoder",
      "/opt/emby-server/bin/ffmpeg"}},
    {"libnvoptix.so.1",
     "programs cannot use OptiX: the driver's library for it is not installed",
     "",
     GP_REMEDY_INSTALL_OPTIX,
     GP_VERDICT_INFO, /* Blender works with CUDA, too */
     true,
     {"/usr/bin/blender", "/snap/bin/blender"}},
};

/* Whether the package with the library was left out, and not only the file from a copy of the
 * machine. */
static bool is_left_out(struct gp_exam *exam, bool is_of_graphics)
{
    static const char *const words[] = {"libnvoptix", NULL};
    struct gp_package *packages;
    if (is_of_graphics && exam->machine.distro == GP_DISTRO_DEBIAN)
        return gp_packages_read(&exam->files, &exam->arena, words, &packages) == 0;
    return !is_of_graphics || !gp_system_library(exam, "", "libGLX_nvidia.so.0");
}

const char *gp_driver_backports(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count && exam->machine.codename[0]; i++)
        if (strstr(in->packages[i].version, "~bpo"))
            return gp_exam_text(exam, "-t %s-backports ", exam->machine.codename);
    return "";
}

void gp_driver_check_parts(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    bool is_only = exam->machine.gpu_count == exam->machine.nvidia_count;
    gp_graphics_check_loader(exam);
    const char *folder = in->library_count > 0 ? in->libraries[0].path : "";
    for (size_t i = 0; i < GP_ARRAY_LEN(parts) && !exam->machine.container; i++) {
        const char *program = gp_files_first(&exam->files, parts[i].programs);
        if (gp_system_library(exam, "", parts[i].library) ||
            !is_left_out(exam, parts[i].is_of_graphics))
            continue;
        const struct gp_log_known *failure = gp_log_known_of(exam, parts[i].failure);
        if (!program && !failure)
            continue;
        gp_exam_report(exam, is_only || failure ? parts[i].verdict : GP_VERDICT_INFO, "%s",
                       parts[i].words);
        gp_exam_evidence(exam, parts[i].library, "not in any library directory");
        gp_exam_evidence(exam, folder, "present");
        if (program)
            gp_exam_evidence(exam, program, "uses it");
        gp_log_show_known(exam, failure);
        if (in->run_trace[0] && in->package_count == 0)
            gp_exam_advice(exam, "run NVIDIA's .run installer again");
        else
            gp_exam_remedy(exam, parts[i].remedy,
                           exam->machine.distro == GP_DISTRO_DEBIAN ? gp_driver_backports(exam)
                                                                    : gp_driver_flavour(exam),
                           NULL);
        if (parts[i].remedy == GP_REMEDY_INSTALL_VIDEO)
            return; /* it has both */
    }
}
