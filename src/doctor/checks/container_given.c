/* The containers of docker on this host: whether they are given the GPUs that they ask for. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/entries.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/log.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* Docker starts it with the machine, or has tried to. Others may be left over, and nobody misses
 * them. */
static bool is_wanted(const struct gp_docker_container *c)
{
    const char *policy = gp_docker_text(json_object_get(c->host, "RestartPolicy"), "Name");
    const char *error = gp_docker_text(json_object_get(c->config, "State"), "Error");
    bool is_stopped = json_is_true(json_object_get(c->config, "HasBeenManuallyStopped"));
    return (error && error[0]) ||
           (policy && (strcmp(policy, "always") == 0 || strcmp(policy, "unless-stopped") == 0) &&
            !is_stopped);
}

static bool is_any(const struct gp_error_entry *unused, const char *text)
{
    (void)unused;
    (void)text;
    return true;
}

/* Compose before 1.28 knows only the runtime, which the toolkit alone does not bring. */
static bool is_old_compose(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char first[] = "1.28";
    const json_t *labels = json_object_get(json_object_get(c->config, "Config"), "Labels");
    const char *version = gp_docker_text(labels, "com.docker.compose.version");
    if (!version || gp_version_compare(version, first) >= 0)
        return false;
    gp_exam_advice(exam,
                   "docker-compose %s has no way of its own to ask for GPUs: update it to %s or "
                   "newer, or use docker compose (version 2)",
                   version, first);
    gp_exam_advice(exam, "then add to the service: deploy: {resources: {reservations: {devices: "
                         "[{driver: nvidia, count: all, capabilities: [gpu]}]}}}, and docker "
                         "compose up -d");
    gp_exam_advice(exam, "or without an update: runtime: nvidia in the service, below version: "
                         "\"2.4\", with the package nvidia-docker2 or a runtime nvidia in "
                         "/etc/docker/daemon.json");
    return true;
}

/* Docker before 19.03 knows only the runtime. Up to 18.06 it brought containerd under this name. */
static bool is_old_docker(struct gp_exam *exam)
{
    static const char *const packages[] = {"docker-ce", "docker.io"};
    for (size_t i = 0; i < GP_ARRAY_LEN(packages); i++) {
        const char *version = gp_container_engine_version(exam, packages[i]);
        if (version[0])
            return gp_version_compare(version, "19.03") < 0;
    }
    return gp_files_exist(&exam->files, "/usr/bin/docker-containerd");
}

static void advise_gpus(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *distro = exam->machine.distro_id;
    if (strcmp(distro, "unraid") == 0)
        gp_exam_advice(exam, "in the web interface, edit the container: add --runtime=nvidia to "
                             "its Extra Parameters");
    else if (strcmp(distro, "truenas") == 0)
        gp_exam_advice(exam, "in the web interface, edit the app: choose the GPU below Resources "
                             "Configuration");
    else if (is_old_docker(exam) && gp_container_runtime_config(exam))
        gp_exam_advice(exam, "create the container again with --runtime=nvidia (nvidia-docker run "
                             "does so); with docker-compose, set runtime: nvidia in the service, "
                             "below version: \"2.3\" or \"2.4\"");
    else if (!is_old_compose(exam, c))
        gp_exam_advice(exam, "create the container again with --gpus all; with docker compose, add "
                             "to the service: deploy: {resources: {reservations: {devices: "
                             "[{driver: nvidia, count: all, capabilities: [gpu]}]}}}, then docker "
                             "compose up -d");
}

/* A program in it looks for a GPU, and says that there is none. */
static void report_failure(struct gp_exam *exam, const struct gp_docker_container *c,
                           enum gp_verdict verdict, const char *failure)
{
    gp_exam_report(exam, verdict,
                   "container %s was started without a GPU, and a program in it finds none",
                   c->name);
    gp_exam_evidence(exam, c->host_path, "no GPU is requested, and the runtime is not nvidia");
    gp_exam_evidence(exam, gp_docker_log_of(exam, c, failure), "%s", failure);
    gp_exam_why(exam, "The host's driver, which works, is passed only into containers that ask "
                      "for a GPU.");
    advise_gpus(exam, c);
}

/* Whether the loader of a container looks into this directory. */
static bool is_searched(const struct gp_docker_container *c, const char *folder)
{
    static const char *const usual[] = {"/lib", "/usr/lib", "/usr/local/lib", "/usr/local/nvidia/"};
    const char *list = gp_docker_variable(c, "LD_LIBRARY_PATH");
    char entry[GP_PATH_SIZE];
    while (list && gp_search_path_next(&list, ":", entry))
        if (strcmp(entry, folder) == 0)
            return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(usual); i++)
        if (strncmp(folder, usual[i], strlen(usual[i])) == 0)
            return true;
    return false;
}

/* Whether this mount is one of the driver's libraries, or of a directory that is for them. Whole
 * file systems are mounted for many purposes. */
static bool is_of_driver(struct gp_exam *exam, const struct gp_docker_container *c,
                         const char *source, const char *target)
{
    static const char *const libraries[] = {"libcuda.so.1", "libnvidia-ml.so.1"};
    const char *name = strrchr(target, '/');
    const char *folder = gp_exam_text(exam, "%.*s", (int)(name - target), target);
    for (size_t i = 0; i < GP_ARRAY_LEN(libraries); i++) {
        if (strncmp(name + 1, libraries[i], strlen(libraries[i]) - 2) == 0 &&
            is_searched(c, folder))
            return true;
        bool is_for_it = strstr(source, "nvidia") || strstr(target, "nvidia");
        if (is_for_it && is_searched(c, target) &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", source, libraries[i])))
            return true;
    }
    return false;
}

/* The place of the driver's libraries in a container where a user has mounted them in place of
 * asking for a GPU; NULL: nobody has. Rules for devices may let it create their files itself. */
static const char *mounted_driver(struct gp_exam *exam, const struct gp_docker_container *c)
{
    json_t *mounts = json_object_get(c->config, "MountPoints"), *one;
    const char *key;
    if (json_array_size(json_object_get(c->host, "DeviceCgroupRules")) > 0)
        return NULL;
    json_object_foreach(mounts, key, one)
    {
        const char *source = gp_docker_text(one, "Source");
        const char *target = gp_docker_text(one, "Destination");
        if (source && target && source[0] == '/' && target[0] == '/' &&
            is_of_driver(exam, c, source, target))
            return gp_exam_text(exam, "%s is mounted at %s", source, target);
    }
    return NULL;
}

/* Nobody who computes on the CPU does so. */
static void report_mounted(struct gp_exam *exam, const struct gp_docker_container *c,
                           const char *mounted)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s has the driver's libraries of this machine, but no GPU", c->name);
    gp_exam_evidence(exam, c->config_path, "%s", mounted);
    gp_exam_evidence(exam, c->host_path, "no GPU is requested, and the runtime is not nvidia");
    gp_exam_why(exam, "Without the device files /dev/nvidia*, and the permission to open them, "
                      "nvidia-smi \"couldn't communicate with the NVIDIA driver\" in it, and CUDA "
                      "finds no GPU.");
    advise_gpus(exam, c);
    gp_exam_advice(exam, "leave the mounts of the driver's files out: the toolkit passes in those "
                         "of the loaded version");
}

/* Its image has no other purpose. */
static void report_image(struct gp_exam *exam, const struct gp_docker_container *c,
                         const char *image)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s was started without a GPU, which its program needs", c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_evidence(exam, c->host_path, "no GPU is requested, and the runtime is not nvidia");
    gp_exam_why(exam, "The host's driver, which works, is passed only into containers that ask "
                      "for a GPU.");
    advise_gpus(exam, c);
}

static const char visible[] = "NVIDIA_VISIBLE_DEVICES";

/* Only NVIDIA's runtime reads the variable. Images set it to "all", also for those who compute on
 * the CPU; other values are a user's. */
static void report_runtime(struct gp_exam *exam, const struct gp_docker_container *c,
                           const char *asked)
{
    bool is_meant = strcmp(asked, "all") != 0 || gp_docker_is_users(c, visible);
    gp_exam_report(exam, is_meant ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "container %s names GPUs, but was started without them", c->name);
    gp_exam_evidence(exam, c->host_path,
                     "%s=%s; no GPU is requested, and the runtime is not nvidia", visible, asked);
    gp_exam_why(exam, "Only NVIDIA's runtime reads the variable. In this container programs find "
                      "no GPU, and compute on the CPU.");
    advise_gpus(exam, c);
}

/* The runtime adds the GPUs that the variable names. */
static void report_variable(struct gp_exam *exam, const struct gp_docker_container *c)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s has NVIDIA's runtime, but does not say which GPUs it gets",
                   c->name);
    gp_exam_evidence(exam, c->host_path,
                     "\"Runtime\": \"nvidia\"; NVIDIA_VISIBLE_DEVICES is not set");
    gp_exam_why(exam, "The runtime adds only the GPUs that the variable names: without it, none.");
    gp_exam_advice(exam, "create the container again with the variables NVIDIA_VISIBLE_DEVICES=all "
                         "and NVIDIA_DRIVER_CAPABILITIES=all");
}

/* Errors of programs that find not the libraries for video, or no driver or no GPU which they have
 * only tried. */
static const char no_video[] = "nvdec.library,nvenc.library",
                  tried[] = "cuda.100,cuda.count-100,ffmpeg.cuinit-none,ld.libcuda,ld.nvml,"
                            "nvdec.library,video.libcuda";

/* One that is to run. */
static bool is_without(const struct gp_docker_container *c)
{
    return gp_container_is_without(c) && (c->is_running || is_wanted(c));
}

/* The failure of such a container; NULL: none. */
static const char *failure_without(struct gp_exam *exam, const struct gp_docker_container *c)
{
    return is_without(c) ? gp_container_final_failure(exam, c) : NULL;
}

/* Its image is built for CUDA, and what it has tried is missing: it may get along without. */
static const char *attempt_without(struct gp_exam *exam, const struct gp_docker_container *c)
{
    bool is_cuda =
        gp_docker_variable(c, "NVIDIA_REQUIRE_CUDA") || gp_docker_variable(c, "CUDA_VERSION");
    return is_cuda && is_without(c) ? gp_docker_printed_error(exam, c, tried, is_any) : NULL;
}

/* The file by which a program in a running container is set to use NVIDIA's GPU, while it has none;
 * NULL: none. */
static const char *set_without(struct gp_exam *exam, const struct gp_docker_container *c,
                               const char **ret_words)
{
    const char *asked = gp_docker_asked(c);
    bool is_on_purpose = (asked && !asked[0]) || gp_docker_is_for_cpu(c);
    return c->is_running && !is_on_purpose && !gp_container_is_passed(c)
               ? gp_container_setting(exam, c, true, ret_words)
               : NULL;
}

static void report_set(struct gp_exam *exam, const struct gp_docker_container *c, const char *path,
                       const char *words)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s is set to use NVIDIA's GPU, but was started without it", c->name);
    gp_exam_evidence(exam, path, "%s", words);
    gp_exam_evidence(exam, c->host_path, "no GPU is requested, and the runtime is not nvidia");
    gp_exam_why(exam, "The host's driver, which works, is passed only into containers that ask "
                      "for a GPU: \"Cannot load libcuda.so.1\".");
    advise_gpus(exam, c);
}

static void find_failure(struct gp_exam *exam, const struct gp_docker_container *c, void *argument)
{
    struct gp_container_failure *ret = argument;
    if (ret->line || !c->host)
        return;
    ret->line = failure_without(exam, c);
    ret->path = ret->line ? gp_docker_log_of(exam, c, ret->line) : NULL;
    if (ret->line)
        return;
    const char *words, *setting = set_without(exam, c, &words);
    if (setting)
        *ret = (struct gp_container_failure){.line = words, .path = setting};
    else if (c->is_running && !gp_container_is_passed(c) && gp_docker_is_users(c, visible) &&
             gp_docker_asked(c)[0])
        *ret = (struct gp_container_failure){
            .line = gp_exam_text(exam, "%s=%s", visible, gp_docker_asked(c)),
            .path = c->config_path,
        };
}

bool gp_container_find_failure(struct gp_exam *exam, struct gp_container_failure *ret)
{
    *ret = (struct gp_container_failure){0};
    (void)gp_docker_each(exam, find_failure, ret);
    return ret->line != NULL;
}

/* It is to run, and is given by its path a device file that nothing has created. */
static bool check_nodes(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *path, *node = NULL;
    for (size_t i = 0; !node && !c->is_running && is_wanted(c) && (path = gp_docker_device(c, i));
         i++)
        node = gp_container_absent_node(exam, path);
    if (!node)
        return false;
    gp_container_report_nodes(exam, &(struct gp_container_nodes){
                                        .container = gp_exam_text(exam, "container %s", c->name),
                                        .where = c->host_path,
                                        .line = gp_exam_text(exam, "PathOnHost: %s", node),
                                        .file = node,
                                        .restart = gp_exam_text(exam, "sudo docker start %s",
                                                                gp_exam_quoted(exam, c->name)),
                                        .is_needed = true,
                                    });
    return true;
}

/* Whether containers that ask for NVIDIA's GPUs get them. */
static bool can_give(struct gp_exam *exam)
{
    return exam->machine.nvidia_count > 0 && exam->machine.is_driver_loaded &&
           gp_container_has_toolkit(exam);
}

static void find_ended(struct gp_exam *exam, const struct gp_docker_container *c, void *argument)
{
    if (c->host && c->name[0] && !c->is_running && !is_wanted(c))
        gp_container_take_ended(exam, c, argument);
}

static void report_ended(struct gp_exam *exam, const struct gp_docker_container *c, void *argument)
{
    const struct gp_container_ended *ended = argument;
    bool is_failed;
    const char *line =
        strcmp(c->id, ended->id) == 0 ? gp_container_ended_without(exam, c, &is_failed) : NULL;
    if (line)
        report_failure(exam, c, gp_container_judge_ended(exam, ended), line);
}

/* One finding for all that have ended, as each attempt in vain leaves one. */
static void check_ended(struct gp_exam *exam)
{
    struct gp_container_ended ended = {0};
    if (can_give(exam))
        (void)gp_docker_each(exam, find_ended, &ended);
    if (ended.id)
        (void)gp_docker_each(exam, report_ended, &ended);
}

static void check_variable(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *asked = gp_docker_asked(c);
    if (!can_give(exam) || gp_docker_is_for_cpu(c) || (!c->is_running && !is_wanted(c)))
        return;
    const char *failure = failure_without(exam, c);
    failure = failure ? failure : is_without(c) ? gp_container_banner(exam, c) : NULL;
    const char *attempt = failure ? NULL : attempt_without(exam, c);
    const char *mounted = is_without(c) ? mounted_driver(exam, c) : NULL;
    const char *setting, *words;
    const char *image =
        is_without(c) && !gp_container_is_of_pod(c) ? gp_container_needs_gpu(exam, c) : NULL;
    if (failure)
        report_failure(exam, c, GP_VERDICT_WARN, failure);
    else if (mounted)
        report_mounted(exam, c, mounted);
    else if ((setting = set_without(exam, c, &words)))
        report_set(exam, c, setting, words);
    else if (image)
        report_image(exam, c, image);
    else if (attempt)
        report_failure(exam, c, GP_VERDICT_INFO, attempt);
    else if (!c->is_running)
        return;
    else if (asked && asked[0] && !gp_container_is_passed(c))
        report_runtime(exam, c, asked);
    else if (!asked && gp_docker_has_runtime(c) && json_array_size(gp_docker_requests(c)) == 0 &&
             !gp_docker_is_nvidia_default(exam))
        report_variable(exam, c);
}

/* Whether a request (--gpus) has this word among its capabilities. */
static bool is_requested(const struct gp_docker_container *c, const char *word)
{
    const json_t *requests = gp_docker_requests(c);
    for (size_t i = 0; i < json_array_size(requests); i++) {
        const json_t *sets = json_object_get(json_array_get(requests, i), "Capabilities");
        for (size_t k = 0; k < json_array_size(sets); k++)
            for (size_t j = 0; j < json_array_size(json_array_get(sets, k)); j++) {
                const char *one = json_string_value(json_array_get(json_array_get(sets, k), j));
                if (one && strcmp(one, word) == 0)
                    return true;
            }
    }
    return false;
}

/* Whether the toolkit passes parts of the driver into it, now. */
static bool gets_driver(const struct gp_exam *exam, const struct gp_docker_container *c)
{
    return c->is_running && exam->machine.nvidia_count > 0 && gp_docker_has_gpus(c);
}

/* By default, a container gets the driver's parts for computing, without NVENC. False:
 * nothing was reported. */
static bool check_video(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char variable[] = "NVIDIA_DRIVER_CAPABILITIES";
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const char *set = gp_docker_variable(c, variable);
    if (!gets_driver(exam, c) || (set && (strstr(set, "video") || strstr(set, "all"))) ||
        is_requested(c, "video") || is_requested(c, "all"))
        return false;
    const char *failure = gp_docker_printed_error(exam, c, no_video, is_any);
    if (!failure && !(image && gp_container_is_for_video(image) && gp_container_binds_files(exam)))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s cannot encode or decode video on the GPU: it is not given the "
                   "driver's part for that",
                   c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s; %s%s%s", image ? image : "unknown", variable,
                     set ? "=" : "", set ? set : " is not set: compute,utility");
    if (failure)
        gp_exam_evidence(exam, gp_docker_log_of(exam, c, failure), "%s", failure);
    gp_exam_why(exam,
                "libnvidia-encode and libnvcuvid are passed in only on request: \"Cannot load "
                "libnvidia-encode.so.1\", and the program uses the CPU.");
    gp_exam_advice(exam, "create the container again with the variable %s=compute,video,utility",
                   variable);
    return true;
}

/* A list of parts without the one for computing, which someone has set, and a program that misses
 * it. NVENC needs it, too. */
static void check_compute(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char variable[] = "NVIDIA_DRIVER_CAPABILITIES",
                      no_cuda[] = "cuda.none,cuda.35,cuda.100,ld.libcuda,numba.nocuda,"
                                  "torch.no-driver,video.libcuda";
    const char *set = gp_docker_variable(c, variable);
    if (!gets_driver(exam, c) || !set || !set[0] || strstr(set, "compute") || strstr(set, "all") ||
        is_requested(c, "compute") || is_requested(c, "all"))
        return;
    const char *failure = gp_docker_printed_error(exam, c, no_cuda, is_any);
    if (!failure)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s finds no GPU: it is not given the driver's part for computing",
                   c->name);
    gp_exam_evidence(exam, c->config_path, "%s=%s", variable, set);
    gp_exam_evidence(exam, gp_docker_log_of(exam, c, failure), "%s", failure);
    gp_exam_why(exam, "The toolkit passes in only the parts that the variable lists. nvidia-smi "
                      "needs utility, CUDA's libcuda.so.1 needs compute.");
    gp_exam_advice(exam, "create the container again with the variable %s=%s,compute", variable,
                   set);
}

/* The GPUs by their UUIDs, "GPU-1, GPU-2"; "": one is unknown. */
static const char *present_gpus(struct gp_exam *exam)
{
    const char *uuids[GP_NVIDIA_UUIDS], *all = "";
    size_t n = gp_nvidia_uuids(exam, uuids);
    for (size_t i = 0; i < n; i++)
        all = gp_exam_text(exam, "%s%s%s", all, i ? ", " : "", uuids[i]);
    return all;
}

/* A GPU that the container is to get, by --gpus device=… or by the variable, and that was replaced,
 * or whose number is too high; NULL: none. */
static const char *replaced_gpu(struct gp_exam *exam, const struct gp_docker_container *c,
                                const char *present)
{
    const json_t *request = json_array_get(gp_docker_requests(c), 0);
    const json_t *ids = json_object_get(request, "DeviceIDs");
    const char *list = gp_docker_has_runtime(c) ? gp_docker_asked(c) : NULL;
    char one[GP_PATH_SIZE];
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        list = id ? gp_exam_text(exam, "%s,%s", list ? list : "", id) : list;
    }
    while (list && gp_search_path_next(&list, ",", one)) {
        if (strncmp(one, "GPU-", 4) == 0 && !strstr(present, one))
            return gp_exam_text(exam, "%s", one);
        if (one[0] && !one[strspn(one, "0123456789")] &&
            strtoul(one, NULL, 10) >= exam->machine.nvidia_count)
            return gp_exam_text(exam, "GPU %s", one);
    }
    return NULL;
}

static void check_gpu(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *present = present_gpus(exam);
    const char *gone = present[0] ? replaced_gpu(exam, c, present) : NULL;
    if (!gone || c->is_running)
        return;
    gp_exam_report(exam, is_wanted(c) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "container %s does not start: it is to get %s, which this machine does not have",
                   c->name, gone);
    gp_exam_evidence(exam, c->host_path, "names %s", gone);
    gp_exam_evidence(exam, "/proc/driver/nvidia/gpus", "%s", present);
    gp_exam_why(exam, "%s: nvidia-container-cli reports \"device error: unknown device\".",
                gone[3] == '-' ? "A GPU that was replaced has another UUID"
                               : "The numbers of GPUs begin with 0");
    gp_exam_advice(exam, "create the container again with the UUID of a present GPU, or with all");
}

/* A GPU's device file that docker is to pass and that is missing, though others are there: their
 * numbers may change with a boot. */
static void check_files(struct gp_exam *exam, const struct gp_docker_container *c)
{
    char **names;
    const char *file;
    long others = gp_files_list(&exam->files, &exam->arena, "/dev/dri", &names);
    if (others <= 0 || c->is_running)
        return;
    for (size_t i = 0; (file = gp_docker_device(c, i)); i++) {
        if (strncmp(file, "/dev/dri/", 9) != 0 || gp_files_exist(&exam->files, file))
            continue;
        gp_exam_report(exam, is_wanted(c) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "container %s does not start: it is given %s, which does not exist", c->name,
                       file);
        gp_exam_evidence(exam, c->host_path, "PathOnHost: %s", file);
        for (long k = 0; k < others; k++)
            if (strncmp(names[k], "card", 4) == 0 || strncmp(names[k], "renderD", 7) == 0)
                gp_exam_evidence(exam, gp_exam_text(exam, "/dev/dri/%s", names[k]), "present");
        gp_exam_why(exam, "The kernel numbers these files as it finds the GPUs: an update, another "
                          "GPU or a change in the firmware setup may change them.");
        gp_exam_advice(exam, "create the container again with --device=/dev/dri, which passes all "
                             "of them; or by the name that stays, such as "
                             "--device=/dev/dri/by-path/pci-…-render:/dev/dri/renderD128");
        return;
    }
}

static void check_one(struct gp_exam *exam, const struct gp_docker_container *c, void *unused)
{
    (void)unused;
    if (!c->host || !c->name[0])
        return;
    bool is_told = gp_container_check_blanks(exam, c);
    if (!is_told)
        check_variable(exam, c);
    if (!is_told && !check_video(exam, c)) /* its remedy has the part for computing, too */
        check_compute(exam, c);
    check_gpu(exam, c);
    if (!check_nodes(exam, c))
        check_files(exam, c);
    gp_container_check_codecs(exam, c);
    gp_container_check_image(exam, c);
    gp_container_check_serving(exam, c);
    gp_container_check_nvenc(exam, c);
    gp_container_check_dri(exam, c);
    gp_container_check_groups(exam, c);
}

bool gp_container_has_given(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return (!m->container || gp_machine_is_lxc(m)) && m->gpu_count > 0 &&
           gp_files_exist(&exam->files, gp_docker_folder(exam));
}

void gp_container_check_given(struct gp_exam *exam)
{
    long n = gp_docker_each(exam, check_one, NULL);
    if (n < 0)
        gp_exam_unreadable(exam, gp_docker_folder(exam), (int)n);
    check_ended(exam);
    gp_container_check_truenas(exam);
}
