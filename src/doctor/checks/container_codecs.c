/* Images of docker whose FFmpeg has none of NVIDIA's codecs, in a container that gets a GPU. */
#include "doctor/checks/container.h"

#include "doctor/readers/docker.h"

#include <string.h>

/* Programs that have other images with these codecs. */
static const struct {
    const char *image;  /* in its name */
    const char *suffix; /* of the tags without them, "-amd64"; NULL: they have no own one */
    const char *added;  /* to such a tag, for the same release with them */
    const char *advice;
} images[] = {
    {"blakeblackshear/frigate", "-amd64", "nvidia",
     "update to Frigate 0.11 or newer, which has them in the image for all of amd64: "
     "ghcr.io/blakeblackshear/frigate:stable"},
    {"jrottenberg/ffmpeg", NULL, NULL,
     "create the container again from an image of jrottenberg/ffmpeg with nvidia in its tag"},
};

/* Codecs that every FFmpeg with support for NVIDIA has; programs may try the names of others, such
 * as av1_nvenc, with an older one. */
static bool is_basic(const struct gp_error_entry *unused, const char *line)
{
    (void)unused;
    static const char *const words[] = {"h264_nvenc", "hevc_nvenc", "h264_cuvid", "hevc_cuvid",
                                        "hwaccel: cuda"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), length = strlen(end);
    return n >= length && strcmp(text + n - length, end) == 0;
}

/* Images of programs whose use of a GPU is to decode and encode video. */
bool gp_container_is_for_video(const char *image)
{
    static const char *const names[] = {"plex",    "jellyfin",  "emby",          "tdarr",
                                        "unmanic", "handbrake", "immich-server", "ffmpeg"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strstr(image, names[i]))
            return true;
    return false;
}

/* Whether FFmpeg is what the image is for. Others may only try what it has, and do without. */
static bool is_for_ffmpeg(const char *image)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(images); i++)
        if (strstr(image, images[i].image))
            return true;
    return gp_container_is_for_video(image);
}

static void mend(struct gp_exam *exam, const char *image)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(images); i++) {
        bool has_other = images[i].suffix && ends_with(image, images[i].suffix);
        if (!strstr(image, images[i].image) ||
            (images[i].suffix ? !has_other : strstr(image, "nvidia") != NULL))
            continue;
        if (has_other)
            gp_exam_advice(exam,
                           "create the container again from the image %s%s (image: in its compose "
                           "file, then docker compose up -d)",
                           image, images[i].added);
        gp_exam_advice(exam, "%s%s", has_other ? "or " : "", images[i].advice);
        return;
    }
    gp_exam_advice(exam, "create the container again from an image whose FFmpeg is built for "
                         "NVIDIA: many programs have one with nvidia or cuda in its tag");
}

void gp_container_check_codecs(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const struct gp_machine *m = &exam->machine;
    if (!image || !c->is_running || m->nvidia_count == 0 || m->is_jetson || !gp_docker_has_gpus(c))
        return;
    const char *line = gp_docker_printed_error(exam, c, "ffmpeg.no-encoder", is_basic);
    if (!line)
        return;
    gp_exam_report(exam, is_for_ffmpeg(image) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "container %s gets the GPU, but FFmpeg in its image is built without NVIDIA's "
                   "codecs",
                   c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_evidence(exam, gp_docker_log_of(exam, c, line), "%s", line);
    gp_exam_why(exam, "The codecs are a part of FFmpeg, which the image brings; driver, toolkit "
                      "and options of the container do not add them.");
    mend(exam, image);
    gp_exam_command(exam, "what its FFmpeg has", "docker exec %s ffmpeg -hide_banner -hwaccels",
                    gp_exam_quoted(exam, c->name));
}
