/* Docker's containers that were started without a GPU, and that say so: when they start, by the
 * banner of NVIDIA's images, or before they end. A part of container.given. */
#include "doctor/checks/container.h"

#include "doctor/entries.h"
#include "doctor/exam.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/log.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Any of the ways by which docker passes GPUs. */
bool gp_container_is_passed(const struct gp_docker_container *c)
{
    return gp_docker_has_device(c, "/dev/nvidia") || gp_docker_has_runtime(c) ||
           json_array_size(gp_docker_requests(c)) > 0 ||
           json_is_true(json_object_get(c->host, "Privileged"));
}

bool gp_container_is_without(const struct gp_docker_container *c)
{
    const char *asked = gp_docker_asked(c);
    return !(asked && !asked[0]) && !gp_container_is_passed(c) && !gp_docker_has_other_gpu(c) &&
           !gp_docker_is_for_cpu(c);
}

/* Whether the program cannot go on: many only try the driver's library, and then use the CPU. */
static bool is_final(const struct gp_error_entry *entry, const char *text)
{
    if (strcmp(entry->id, "video.libcuda") == 0)
        return strstr(text, "_nvenc") || strstr(text, "_cuvid");
    return strcmp(entry->id, "ld.libcuda") != 0 || strncmp(text, "ImportError: libcuda", 20) == 0 ||
           strstr(text, "error while loading shared libraries");
}

const char *gp_container_final_failure(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char no_gpu[] =
        "cuda.none,cuda.35,ld.libcuda,numba.nocuda,numba.no-device,nvenc.library,ollama.fallback,"
        "ollama.no-gpu,torch.no-driver,video.libcuda";
    return gp_docker_printed_error(exam, c, no_gpu, is_final);
}

/* NVIDIA's images of frameworks, and what is built upon them. In those of CUDA alone programs are
 * also compiled, which needs no GPU, and those of servers are also meant for the CPU. */
static bool is_framework(const struct gp_docker_container *c)
{
    static const char *const variables[] = {"NVIDIA_PYTORCH_VERSION", "NVIDIA_TENSORFLOW_VERSION"};
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++)
        if (gp_docker_variable(c, variables[i]))
            return true;
    return false;
}

/* Kubernetes' pods ask in another way, and those that do not want none. */
bool gp_container_is_of_pod(const struct gp_docker_container *c)
{
    const json_t *labels = json_object_get(json_object_get(c->config, "Config"), "Labels");
    return gp_docker_text(labels, "io.kubernetes.pod.name");
}

static void find_given(struct gp_exam *exam, const struct gp_docker_container *c, void *argument)
{
    bool *ret = argument;
    (void)exam;
    *ret = *ret || (c->host && gp_container_is_passed(c));
}

/* Whoever passes GPUs into others wants none in this one, or has learned how to. */
static bool is_any_given(struct gp_exam *exam)
{
    bool is_any = false;
    (void)gp_docker_each(exam, find_given, &is_any);
    return is_any;
}

static bool is_any_line(const struct gp_error_entry *unused, const char *text)
{
    (void)unused;
    (void)text;
    return true;
}

/* The warning of its image's start that there is no driver, which is judged here alone. */
static const char *banner_of(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char banner[] = "container.no-gpu-banner";
    const char *line = gp_docker_printed_error(exam, c, banner, is_any_line);
    if (line)
        (void)gp_log_known_of(exam, banner);
    return line;
}

const char *gp_container_banner(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *line = c->is_running ? banner_of(exam, c) : NULL;
    return line && is_framework(c) && !gp_container_is_of_pod(c) && !is_any_given(exam) ? line
                                                                                        : NULL;
}

/* When it ended, in seconds since 1970; negative: never. Docker writes it in UTC. */
static long long ended_at(const struct gp_docker_container *c)
{
    const json_t *state = json_object_get(c->config, "State");
    const char *text = gp_docker_text(state, "FinishedAt");
    struct tm tm = {0};
    return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (long long)timegm(&tm) : -1;
}

/* Whether that is of the last days, by the machine's clock. Whoever starts containers with --rm
 * leaves none that shows how the GPU was given since. */
static bool is_recent(struct gp_exam *exam, long long at)
{
    enum { RECENT = 7 * 24 * 3600 };
    char uptime[64];
    long long booted = gp_boot_time(exam);
    return booted > 0 && gp_files_line(&exam->files, "/proc/uptime", uptime, sizeof(uptime)) &&
           at >= booted + strtoll(uptime, NULL, 10) - RECENT;
}

const char *gp_container_ended_without(struct gp_exam *exam, const struct gp_docker_container *c,
                                       bool *ret_is_failed)
{
    bool is_cuda =
        gp_docker_variable(c, "NVIDIA_REQUIRE_CUDA") || gp_docker_variable(c, "CUDA_VERSION");
    *ret_is_failed = false;
    if (!is_cuda || !gp_container_is_without(c) || gp_container_is_of_pod(c))
        return NULL;
    const char *failure = gp_container_final_failure(exam, c);
    const json_t *state = json_object_get(c->config, "State");
    *ret_is_failed = failure && json_integer_value(json_object_get(state, "ExitCode")) != 0 &&
                     is_recent(exam, ended_at(c));
    return failure ? failure : banner_of(exam, c);
}

void gp_container_take_ended(struct gp_exam *exam, const struct gp_docker_container *c,
                             struct gp_container_ended *ended)
{
    bool is_failed;
    long long at = ended_at(c);
    if (gp_container_ended_without(exam, c, &is_failed) &&
        (!ended->id || (is_failed == ended->is_failed ? at > ended->at : is_failed)))
        *ended = (struct gp_container_ended){.id = c->id, .at = at, .is_failed = is_failed};
}

enum gp_verdict gp_container_judge_ended(struct gp_exam *exam,
                                         const struct gp_container_ended *ended)
{
    return ended->is_failed && !is_any_given(exam) ? GP_VERDICT_WARN : GP_VERDICT_INFO;
}
