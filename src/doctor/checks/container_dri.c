/* Docker's containers that want a GPU's files in /dev/dri or /dev/kfd: whether they get them. */
#include "doctor/checks/container.h"
#include "doctor/checks/ollama.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/gfxchip.h"

#include <ctype.h>
#include <string.h>

static bool is_kfd(const char *path)
{
    return strcmp(path, "/dev/kfd") == 0;
}

static bool is_gpu_file(const char *path)
{
    return strcmp(path, "/dev/dri") == 0 || strncmp(path, "/dev/dri/", 9) == 0 || is_kfd(path);
}

/* Whether it was created with --device and one of these paths. */
static bool is_given(const struct gp_docker_container *c, bool (*is_one)(const char *))
{
    const char *path;
    for (size_t i = 0; (path = gp_docker_device(c, i)); i++)
        if (is_one(path) || strcmp(path, "/dev") == 0)
            return true;
    return false;
}

/* Likewise, or it gets all devices, or those of AMD's runtime. */
static bool has_device(const struct gp_docker_container *c, bool (*is_one)(const char *))
{
    const char *runtime = gp_docker_text(c->host, "Runtime");
    return is_given(c, is_one) || (runtime && strstr(runtime, "amd")) ||
           json_is_true(json_object_get(c->host, "Privileged")) ||
           json_array_size(json_object_get(c->host, "DeviceCgroupRules")) > 0 ||
           json_array_size(gp_docker_requests(c)) > 0;
}

/* The part of /dev that is given as a volume, "/dev/dri"; NULL: none. */
static const char *volume_of(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const json_t *binds = json_object_get(c->host, "Binds");
    for (size_t i = 0; i < json_array_size(binds); i++) {
        const char *one = json_string_value(json_array_get(binds, i));
        const char *path = one ? gp_exam_text(exam, "%.*s", (int)strcspn(one, ":"), one) : "";
        if (is_gpu_file(path))
            return is_kfd(path) ? "/dev/kfd" : "/dev/dri"; /* not its own words: any are possible */
    }
    return NULL;
}

static void give(struct gp_exam *exam, const struct gp_docker_container *c, const char *path)
{
    const char *service = gp_docker_compose_service(exam, c);
    if (service[0])
        gp_exam_advice(exam, "%s: devices: [\"%s:%s\"]; then docker compose up -d", service, path,
                       path);
    else
        gp_exam_advice(exam,
                       "create the container again with --device=%s; with docker compose, add to "
                       "the service: devices: [\"%s:%s\"], then docker compose up -d",
                       path, path, path);
}

static void report_volume(struct gp_exam *exam, const struct gp_docker_container *c,
                          const char *path)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s may not use the GPU: %s is given as a volume, not as a device",
                   c->name, path);
    gp_exam_evidence(exam, c->host_path, "Binds: %s; no such entry in Devices", path);
    gp_docker_show_denied(exam, c);
    gp_exam_why(exam, "Docker permits only devices of --device: opening the files of a volume "
                      "fails with Operation not permitted.");
    give(exam, c, path);
    gp_exam_advice(exam, "and remove that volume");
}

static void report_none(struct gp_exam *exam, const struct gp_docker_container *c, const char *path,
                        const char *words)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "container %s uses a GPU, but is given none", c->name);
    gp_exam_evidence(exam, c->host_path, "nothing of /dev/dri in Devices");
    if (path)
        gp_exam_evidence(exam, path, "%s", words);
    gp_docker_show_denied(exam, c);
    give(exam, c, "/dev/dri");
    const char *denied = gp_docker_denied_line(exam, c);
    if (denied && strstr(denied, "/dev/kfd"))
        gp_exam_advice(exam, "and the same for /dev/kfd");
}

/* Whether the last line about it says that it computes on the CPU, "library=cpu". */
static bool says_cpu(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char mark[] = "inference compute";
    size_t length = 0;
    const char *text = gp_docker_printed(exam, c, &length);
    const char *found = NULL;
    for (const char *p = text; p && (p = strstr(p, mark)); p++)
        found = p;
    const char *line = found ? gp_exam_text(exam, "%.*s", (int)strcspn(found, "\n"), found) : "";
    return strstr(line, "library=cpu");
}

/* Ollama's image has ROCm only in its variant for it; newer ones use Vulkan instead. */
static void check_ollama(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const char *library = gp_docker_variable(c, "OLLAMA_LLM_LIBRARY");
    const char *override = gp_ollama_override(exam);
    if (exam->machine.nvidia_count > 0 || exam->machine.amd_count == 0 || !image ||
        strncmp(image, "ollama/ollama", 13) != 0 || strstr(image, "rocm") || !says_cpu(exam, c) ||
        !is_given(c, is_kfd) || (library && strncmp(library, "cpu", 3) == 0) || !override)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s computes on the CPU: its image of Ollama has no ROCm", c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_evidence(exam, c->log_path, "inference compute: library=cpu");
    gp_exam_advice(exam,
                   "create the container again of the image for AMD's GPUs, "
                   "ollama/ollama:rocm%s%s",
                   override[0] ? ", with the variable HSA_OVERRIDE_GFX_VERSION=" : "", override);
    gp_exam_link(exam, "https://docs.ollama.com/docker");
}

/* Images that only look at the GPUs, and need no device file for computing. */
static bool is_watcher(const char *image)
{
    static const char *const names[] = {"plugin", "labeller", "exporter", "operator"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strstr(image, names[i]))
            return true;
    return false;
}

/* An image for ROCm without its device file; it may do without if nothing in it has failed. */
static void check_kfd(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    if (exam->machine.amd_count == 0 || !image || !strstr(image, "rocm") ||
        !gp_files_exist(&exam->files, "/dev/kfd") || has_device(c, is_kfd) || is_watcher(image))
        return;
    bool is_meant = strncmp(image, "ollama/", 7) == 0; /* a choice: another one is for the CPU */
    bool has_failed = is_meant || gp_docker_denied_line(exam, c) || says_cpu(exam, c);
    gp_exam_report(exam, has_failed ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "container %s is for ROCm, but is not given /dev/kfd", c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_evidence(exam, c->host_path, "no /dev/kfd in Devices");
    gp_docker_show_denied(exam, c);
    gp_exam_why(
        exam,
        "ROCm needs it in addition to /dev/dri: programs otherwise compute on the CPU, or find "
        "no agent.");
    give(exam, c, "/dev/kfd");
    if (!has_device(c, is_gpu_file))
        gp_exam_advice(exam, "and the same for /dev/dri");
}

/* FFmpeg got none of the drivers that VA-API has tried. */
static bool is_refused(const struct gp_error_entry *unused, const char *line)
{
    (void)unused;
    return strstr(line, "Failed to initialise VAAPI");
}

/* Frigate's image leaves it to a variable which driver VA-API takes for an AMD GPU. */
static void check_frigate(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    if (!image || !strstr(image, "frigate") || exam->machine.amd_count == 0 ||
        exam->machine.intel_count > 0 || !has_device(c, is_gpu_file) ||
        gp_docker_variable(c, "LIBVA_DRIVER_NAME"))
        return;
    const char *line = gp_docker_printed_error(exam, c, "vaapi.init", is_refused);
    if (!line)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s cannot use VA-API: it does not take the driver of the AMD GPU",
                   c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s; LIBVA_DRIVER_NAME is not set", image);
    gp_exam_evidence(exam, c->log_path, "%s", line);
    gp_exam_advice(exam, "create the container again with the variable LIBVA_DRIVER_NAME=radeonsi; "
                         "with docker compose, below environment: of the service, then docker "
                         "compose up -d");
    gp_exam_link(exam, "https://docs.frigate.video/configuration/hardware_acceleration_video");
}

/* The AMD GPU of this machine that a line names, "gfx1103"; NULL: none. */
static const char *named_chip(const struct gp_exam *exam, const char *line)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++) {
        const char *name = gp_gfx_of_chip(m->gpus[i].device);
        const char *at = m->gpus[i].vendor == GP_PCI_AMD && name[0] ? strstr(line, name) : NULL;
        if (at && !isalnum((unsigned char)at[strlen(name)]))
            return name;
    }
    return NULL;
}

static bool is_any(const struct gp_error_entry *unused, const char *line)
{
    (void)unused;
    return line[0];
}

/* The image's Mesa was built with an LLVM from before this GPU; that of the host does not count. */
static void check_llvm(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const char *line = has_device(c, is_gpu_file)
                           ? gp_docker_printed_error(exam, c, "mesa.llvm-old", is_any)
                           : NULL;
    const char *chip = line && image ? named_chip(exam, line) : NULL;
    if (!chip)
        return;
    /* Programs may go on with another GPU, or with another driver. */
    const char *refused = gp_docker_printed_error(exam, c, "vaapi.init", is_refused);
    gp_exam_report(exam, refused ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "container %s cannot use the AMD GPU: its image is older than %s", c->name,
                   chip);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_evidence(exam, gp_docker_log_of(exam, c, line), "%s", line);
    if (refused)
        gp_exam_evidence(exam, gp_docker_log_of(exam, c, refused), "%s", refused);
    gp_exam_why(exam, "Its driver for VA-API or OpenGL (Mesa) uses an LLVM that does not know this "
                      "GPU. Driver, permissions and packages of this machine do not change that.");
    if (strstr(image, "jellyfin/jellyfin") && strncmp(chip, "gfx110", 6) == 0)
        gp_exam_advice(exam, "create the container again from jellyfin/jellyfin 10.9 or newer, "
                             "which is made of Debian 12; back up its /config first, which the "
                             "newer release changes");
    else
        gp_exam_advice(exam,
                       "create the container again from a newer image, of a distribution "
                       "whose Mesa and LLVM know %s",
                       chip);
    gp_exam_link(exam, "https://github.com/jellyfin/jellyfin/issues/10830");
}

void gp_container_check_dri(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const struct gp_machine *m = &exam->machine;
    const char *words = "";
    if (!c->is_running || m->intel_count + m->amd_count == 0)
        return;
    check_ollama(exam, c);
    check_kfd(exam, c);
    check_frigate(exam, c);
    check_llvm(exam, c);
    if (has_device(c, is_gpu_file) || gp_docker_has_runtime(c) ||
        !gp_files_exist(&exam->files, "/dev/dri"))
        return;
    const char *volume = volume_of(exam, c);
    const char *setting = gp_container_setting(exam, c, false, &words);
    if (volume)
        report_volume(exam, c, volume);
    else if (setting || gp_docker_denied_line(exam, c))
        report_none(exam, c, setting, words);
}
