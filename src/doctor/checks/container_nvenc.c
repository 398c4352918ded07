/* Images of docker whose program encodes video with a newer NVENC than this machine's driver has.
 */
#include "doctor/checks/container.h"

#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/readers/docker.h"

#include <string.h>

/* A driver's part for video, which the variable asks for. */
static bool asks_video(const struct gp_docker_container *c)
{
    const char *set = gp_docker_variable(c, "NVIDIA_DRIVER_CAPABILITIES");
    return set && (strstr(set, "video") || strstr(set, "all"));
}

/* Programs that are set not to encode on NVIDIA's GPU: a file in /config, and its words then. */
static const struct {
    const char *file, *words;
} off[] = {
    {"Library/Application Support/Plex Media Server/Preferences.xml",
     "HardwareAcceleratedCodecs=\"0\""},
    {"Library/Application Support/Plex Media Server/Preferences.xml",
     "HardwareAcceleratedEncoders=\"0\""},
    {"encoding.xml", "<EnableHardwareEncoding>false<"},
    {"encoding.xml", "<HardwareAccelerationType>none<"},
    {"encoding.xml", "<HardwareAccelerationType />"},
    {"config/encoding.xml", "<EnableHardwareEncoding>false<"},
    {"config/encoding.xml", "<HardwareAccelerationType>none<"},
    {"config/encoding.xml", "<HardwareAccelerationType />"},
};

static bool is_off(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *folder = gp_docker_source(exam, c, "/config");
    for (size_t i = 0; folder && i < GP_ARRAY_LEN(off); i++) {
        const char *text =
            gp_files_text(&exam->files, &exam->arena,
                          gp_exam_text(exam, "%s/%s", folder, off[i].file), 1 << 18, NULL);
        if (text && strstr(text, off[i].words))
            return true;
    }
    return false;
}

void gp_container_check_nvenc(struct gp_exam *exam, const struct gp_docker_container *c)
{
    enum { LAYERS = 128 }; /* the most that overlay2 has */
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const struct gp_machine *m = &exam->machine;
    const char *roots[LAYERS];
    size_t n = 0;
    struct gp_driver_nvenc build;
    if (!image || !c->is_running || m->nvidia_count == 0 || m->is_jetson ||
        !gp_docker_has_gpus(c) || !asks_video(c) || !gp_container_is_for_video(image))
        return;
    while (n < LAYERS && (roots[n] = gp_docker_layer_at(exam, c, n)))
        n++;
    if (n == 0 || !gp_driver_find_nvenc(exam, roots, n, &build))
        return;
    gp_exam_report(exam, is_off(exam, c) ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "container %s cannot encode with NVENC: its FFmpeg was built for driver %s or "
                   "newer",
                   c->name, build.driver);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_evidence(exam, build.path, "built for NVENC %s", build.api);
    gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s%s%s", m->driver,
                     build.found[0] ? ", which has NVENC " : "", build.found);
    gp_exam_why(exam, "\"Driver does not support the required nvenc API version\": the program "
                      "encodes on the CPU. The container uses the driver of this machine; CUDA and "
                      "decoding work all the same.");
    gp_driver_fix_at_least(exam, build.driver);
    if (build.found[0])
        gp_exam_advice(
            exam,
            "or create the container again from an older image, with an FFmpeg for NVENC %s "
            "or older",
            build.found);
}
