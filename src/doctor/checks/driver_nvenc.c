/* FFmpeg and OBS that were built for a newer NVENC than the driver has. Findings of
 * driver.libraries, and in containers of container.parts. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/log.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/searchpath.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Versions of NVENC, and the oldest driver for each, as FFmpeg names it: libavcodec/nvenc.c. A
 * build contains the one that it was made for. */
static const struct {
    const char *api, *driver;
} versions[] = {
    {"13.1", "610.00"},    {"13.0", "570.0"},     {"12.2", "550.54.14"}, {"12.1", "530.41.03"},
    {"12.0", "520.56.06"}, {"11.1", "470.57.02"}, {"11.0", "455.28"},    {"10.0", "445.87"},
    {"9.1", "435.21"},     {"9.0", "418.30"},     {"8.2", "396.24"},     {"8.1", "390.25"},
};

enum { NONE = GP_ARRAY_LEN(versions) };

/* The number of versions that this driver is too old for. */
static size_t newer_than(const char *driver)
{
    size_t n = 0;
    while (n < NONE && gp_version_compare(driver, versions[n].driver) < 0)
        n++;
    return n;
}

/* ---- in the file ---- */

enum { BLOCK = 1 << 20, OVERLAP = 64, MOST_BYTES = 1 << 29 };

struct build {
    size_t version;   /* of those that the driver is too old for; NONE: another one */
    bool has_nvenc;   /* it has FFmpeg's message about the driver */
    bool is_for_cuda; /* whoever built it asked for NVIDIA's parts */
};

static bool has(const char *data, size_t size, const char *text, size_t length)
{
    return memmem(data, size, text, length) != NULL;
}

static void take_block(struct build *b, const char *data, size_t size, size_t newer)
{
    static const char message[] = "minimum required Nvidia driver for nvenc is %s";
    static const char *const options[] = {"--enable-nvenc", "--enable-cuda-nvcc",
                                          "--enable-libnpp"};
    b->has_nvenc = b->has_nvenc || has(data, size, message, sizeof(message) - 1);
    for (size_t i = 0; i < newer && b->version == NONE; i++) {
        char text[16] = ""; /* the whole text, with the NULs around it */
        size_t n = strlen(versions[i].driver);
        memcpy(text + 1, versions[i].driver, n);
        if (has(data, size, text, n + 2))
            b->version = i;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(options); i++)
        b->is_for_cuda = b->is_for_cuda || has(data, size, options[i], strlen(options[i]));
}

static struct build read_build(struct gp_exam *exam, const char *path, size_t newer)
{
    struct build b = {.version = NONE};
    int fd = gp_files_open_file(&exam->files, path);
    char *block = fd >= 0 ? malloc(BLOCK) : NULL;
    size_t kept = 0, total = 0;
    while (block && total < MOST_BYTES) {
        ssize_t n = read(fd, block + kept, BLOCK - kept);
        if (n <= 0)
            break;
        size_t size = kept + (size_t)n;
        total += (size_t)n;
        take_block(&b, block, size, newer);
        kept = size < OVERLAP ? size : OVERLAP;
        memmove(block, block + size - kept, kept);
    }
    free(block);
    if (fd >= 0)
        (void)close(fd);
    return b;
}

/* ---- on the disk ---- */

/* The library in a folder, "libavcodec.so.60"; NULL: there is none. */
static const char *library_in(struct gp_exam *exam, const char *folder)
{
    static const char start[] = "libavcodec.so.";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], start, sizeof(start) - 1) == 0 &&
            !strchr(names[i] + sizeof(start) - 1, '.'))
            return gp_exam_text(exam, "%s/%s", folder, names[i]);
    return NULL;
}

/* Where programs have FFmpeg, in the order in which shells find them; then those of programs that
 * bring their own. */
static const struct place {
    const char *path;
    bool is_folder;   /* of libavcodec; {}: of this architecture */
    bool is_own;      /* a user's choice, and not a distribution's package */
    const char *name; /* whose it is; NULL: anyone's */
} places[] = {
    {"/usr/local/bin/ffmpeg", false, true, NULL},
    {"/opt/ffmpeg/bin/ffmpeg", false, true, NULL},
    {"/usr/lib/jellyfin-ffmpeg/ffmpeg", false, false, NULL},
    {"/usr/bin/ffmpeg", false, false, NULL},
    {"/usr/local/lib", true, true, NULL},
    {"/usr/local/lib64", true, true, NULL},
    {"/opt/ffmpeg/lib", true, true, NULL},
    {"/usr/lib/jellyfin-ffmpeg/lib", true, false, NULL},
    {"{}", true, false, NULL},
    {"/usr/lib64", true, false, NULL},
    {"/usr/lib", true, false, NULL},
    {"/usr/lib/plexmediaserver/lib", true, false, "Plex"},
    {"/opt/emby-server/bin/ffmpeg", false, false, "Emby"},
    {"/opt/emby-server/lib", true, false, "Emby"},
    {"/app/emby/bin/ffmpeg", false, false, "Emby"},
    {"/app/emby/lib", true, false, "Emby"},
    {"/usr/bin/HandBrakeCLI", false, false, "HandBrake"},
};

/* The file at this place below `root`; NULL: none. */
static const char *file_at(struct gp_exam *exam, const char *root, const struct place *place)
{
    const char *path = *place->path == '{'
                           ? gp_exam_text(exam, "%s/usr/lib/%s-linux-gnu", root, exam->machine.arch)
                           : gp_exam_text(exam, "%s%s", root, place->path);
    return place->is_folder ? library_in(exam, path) : path;
}

/* The first FFmpeg that is too new for the driver. */
static const char *find_build(struct gp_exam *exam, size_t newer, struct build *ret,
                              const struct place **ret_place)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(places); i++) {
        const char *path = file_at(exam, "", &places[i]);
        *ret = path ? read_build(exam, path, newer) : (struct build){.version = NONE};
        *ret_place = &places[i];
        if (ret->has_nvenc && ret->version < newer)
            return path;
    }
    return NULL;
}

/* ---- what was printed ---- */

static const char mark[] = "Required: ";

/* NULL: there is no line that names the version. */
static const struct gp_log_known *refusal_of(struct gp_exam *exam)
{
    static const char id[] = "nvenc.api";
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->known_count; i++)
        if (strcmp(log->known[i].id, id) == 0 && strstr(log->known[i].text, mark))
            return gp_log_known_of(exam, id);
    return NULL;
}

/* The version in "Required: 13.0 Found: 12.2"; NONE: the driver has it now. */
static size_t version_in(const char *text, size_t newer)
{
    const char *found = strstr(text, mark);
    for (size_t i = 0; found && i < newer; i++) {
        size_t n = strlen(versions[i].api);
        const char *end = found + sizeof(mark) - 1 + n;
        if (strncmp(end - n, versions[i].api, n) == 0 && (*end < '0' || *end > '9'))
            return i;
    }
    return NONE;
}

/* A container that was started without the encoder's library has another problem. */
static bool may_encode(struct gp_exam *exam)
{
    const char *given = gp_machine_variable(&exam->machine, "NVIDIA_DRIVER_CAPABILITIES");
    char word[GP_PATH_SIZE];
    if (!exam->machine.container)
        return true;
    while (given && gp_search_path_next(&given, ",", word))
        if (strcmp(word, "video") == 0 || strcmp(word, "all") == 0)
            return true;
    return false;
}

/* Whether a GPU of this machine can encode, or is unknown: those made for computing alone cannot.
 */
static bool has_encoder(const struct gp_machine *m)
{
    static const unsigned without[] = {80, 90, 100, 103}; /* GA100, GH100, GB100, GB110 */
    bool has = m->nvidia_count == 0;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const struct gp_chip *chip = m->gpus[i].chip;
        bool is_without = false;
        for (size_t k = 0; chip && k < GP_ARRAY_LEN(without); k++)
            is_without = is_without || chip->compute_capability == without[k];
        has = has || (m->gpus[i].vendor == GP_PCI_NVIDIA && !is_without);
    }
    return has;
}

/* ---- OBS Studio ---- */

/* Its Flatpak, which brings the newest headers; distributions often have older ones. */
static void fix_flatpak(struct gp_exam *exam)
{
    gp_exam_command(exam, "then, for the driver's libraries in Flatpak", "flatpak update");
    gp_exam_advice(exam, "or use an OBS that was built for an older NVENC: the distribution's "
                         "package (obs-studio), or an older commit of the Flatpak:");
    gp_exam_command(exam, "lists the commits, for flatpak update --commit=…",
                    "flatpak remote-info --log flathub com.obsproject.Studio");
}

/* The oldest driver with a newer NVENC may still be too old for it, but that is all that is known.
 */
static void report_obs(struct gp_exam *exam, const struct gp_log_known *failure, size_t newer)
{
    enum { NEWEST = 1 }; /* of OBS' releases none is known that was built for it */
    const char *driver = versions[newer - 1].driver;
    const char *words = newer == NEWEST ? gp_exam_text(exam, "a newer NVENC than driver %s has",
                                                       exam->machine.driver)
                                        : gp_exam_text(exam, "driver %s or newer", driver);
    gp_exam_report(exam, GP_VERDICT_WARN, "OBS cannot encode with NVENC: it was built for %s",
                   words);
    gp_log_show_known(exam, failure);
    gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s%s%s", exam->machine.driver,
                     newer < NONE ? ", which has NVENC " : "",
                     newer < NONE ? versions[newer].api : "");
    gp_exam_why(exam, "OBS tests NVENC when it starts, and offers it only if the driver is as new "
                      "as the headers that OBS was built with: since 32.2 those of NVENC 13.");
    gp_driver_fix_at_least(exam, driver);
    if (gp_driver_is_of_flatpak(failure))
        fix_flatpak(exam);
    else
        gp_exam_advice(exam, "or use an older release of OBS, built for NVENC %s or older",
                       newer < NONE ? versions[newer].api : versions[NONE - 1].api);
}

void gp_driver_check_nvenc(struct gp_exam *exam)
{
    const char *driver = exam->machine.driver;
    size_t newer = driver[0] ? newer_than(driver) : 0;
    if (newer == 0 || !has_encoder(&exam->machine))
        return;
    const struct gp_log_known *obs = gp_driver_obs_refusal(exam);
    /* In the sandbox it sees the driver of the copy there. */
    if (obs && !(gp_driver_is_of_flatpak(obs) && gp_driver_has_old_flatpak(exam)))
        report_obs(exam, obs, newer);
    struct build build;
    const struct place *place = NULL;
    const struct gp_log_known *failure = refusal_of(exam);
    size_t wanted = failure ? version_in(failure->text, newer) : NONE;
    const char *path = find_build(exam, newer, &build, &place);
    if (wanted == NONE && (!path || obs))
        return;
    bool is_wanted = wanted != NONE || (place->is_own && build.is_for_cuda && may_encode(exam));
    size_t version = wanted != NONE ? wanted : build.version;
    gp_exam_report(exam, is_wanted ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%sFFmpeg cannot encode with NVENC: it was built for driver %s or newer",
                   path && place->name ? gp_exam_text(exam, "%s's ", place->name) : "",
                   versions[version].driver);
    if (path)
        gp_exam_evidence(exam, path, "built for NVENC %s", versions[build.version].api);
    if (wanted != NONE)
        gp_log_show_known(exam, failure);
    gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s%s%s", driver,
                     newer < NONE ? ", which has NVENC " : "",
                     newer < NONE ? versions[newer].api : "");
    gp_exam_why(exam, "\"Driver does not support the required nvenc API version\". CUDA works all "
                      "the same.");
    gp_driver_fix_at_least(exam, versions[version].driver);
    if (newer < NONE)
        gp_exam_advice(exam,
                       "or use an FFmpeg for NVENC %s or older: %s, or one that is built with "
                       "nv-codec-headers %s",
                       versions[newer].api,
                       exam->machine.container ? "an older image" : "an older release",
                       versions[newer].api);
}

bool gp_driver_find_nvenc(struct gp_exam *exam, const char *const *roots, size_t count,
                          struct gp_driver_nvenc *ret)
{
    const char *driver = exam->machine.driver;
    size_t newer = driver[0] ? newer_than(driver) : 0;
    *ret = (struct gp_driver_nvenc){0};
    if (newer == 0 || !has_encoder(&exam->machine))
        return false;
    const struct gp_log_known *failure = refusal_of(exam);
    if (failure && version_in(failure->text, newer) != NONE)
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(places) * count; i++) {
        const char *path = file_at(exam, roots[i % count], &places[i / count]);
        struct build build = path ? read_build(exam, path, newer) : (struct build){.version = NONE};
        if (build.has_nvenc && build.version >= newer)
            return false; /* this one fits, and the program may use it */
        if (build.has_nvenc && !ret->path)
            *ret = (struct gp_driver_nvenc){path, versions[build.version].api,
                                            versions[build.version].driver,
                                            newer < NONE ? versions[newer].api : ""};
    }
    return ret->path != NULL;
}
