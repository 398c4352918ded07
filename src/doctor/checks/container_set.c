/* Docker's containers whose program is set to use a GPU, by a file in their /config. */
#include "doctor/checks/container.h"

#include "doctor/exam.h"
#include "doctor/readers/docker.h"

#include <string.h>

static const char plex[] = "Library/Application Support/Plex Media Server/Preferences.xml";

/* A file in /config, and what it contains then; by NVENC or CUDA, or by VA-API or Quick Sync. */
static const struct {
    const char *file, *text;
    bool is_nvidia;
} settings[] = {
    {"config/encoding.xml", "<HardwareAccelerationType>vaapi<", false}, /* Jellyfin */
    {"config/encoding.xml", "<HardwareAccelerationType>qsv<", false},
    {"config/encoding.xml", "<HardwareAccelerationType>nvenc<", true},
    {"encoding.xml", "<HardwareAccelerationType>vaapi<", false},
    {"encoding.xml", "<HardwareAccelerationType>qsv<", false},
    {"encoding.xml", "<HardwareAccelerationType>nvenc<", true},
    {"config.yml", "preset-vaapi", false}, /* Frigate */
    {"config.yml", "preset-intel-qsv", false},
    {"config.yml", "preset-nvidia", true},
    {"config.yml", "type: tensorrt", true},
    {"config.yaml", "preset-vaapi", false},
    {"config.yaml", "preset-intel-qsv", false},
    {"config.yaml", "preset-nvidia", true},
    {"config.yaml", "type: tensorrt", true},
    {plex, "HardwareAcceleratedCodecs=\"1\"", false},
    {plex, "HardwareAcceleratedCodecs=\"1\"", true},
};

/* Whether a text has some words, in a line that is no comment. */
static bool has_words(const char *text, const char *words)
{
    /* After a comment, on with the next line: a user writes this text, and its lines may be long.
     */
    for (const char *p = text; p && (p = strstr(p, words)); p += strcspn(p, "\n")) {
        const char *start = p;
        while (start > text && start[-1] != '\n')
            start--;
        if (start[strspn(start, " \t")] != '#')
            return true;
    }
    return false;
}

const char *gp_container_setting(struct gp_exam *exam, const struct gp_docker_container *c,
                                 bool is_nvidia, const char **ret_words)
{
    const char *source = gp_docker_source(exam, c, "/config");
    for (size_t i = 0; source && i < GP_ARRAY_LEN(settings); i++) {
        const char *path = gp_exam_text(exam, "%s/%s", source, settings[i].file);
        /* Plex takes what there is: NVIDIA's is meant only where it is alone. */
        bool is_other = settings[i].file == plex && is_nvidia &&
                        exam->machine.intel_count + exam->machine.amd_count > 0;
        *ret_words = settings[i].text;
        if (settings[i].is_nvidia == is_nvidia && !is_other &&
            has_words(gp_files_text(&exam->files, &exam->arena, path, 1 << 18, NULL),
                      settings[i].text))
            return path;
    }
    return NULL;
}
