/* Docker's containers of servers of language models: whether they get the GPUs and the shared
 * memory that they are started for. */
#include "doctor/checks/container.h"

#include "base/strbuf.h"
#include "doctor/checks/serving.h"
#include "doctor/lines.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/searchpath.h"

#include <string.h>

enum { MIB = 1 << 20, SMALL_SHM = 256 }; /* MiB; docker's default is 64 */

const char *gp_container_command(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char *const keys[] = {"Entrypoint", "Cmd"};
    enum { MOST = 1 << 16 };
    struct gp_strbuf all = GP_STRBUF_INIT(MOST);
    const json_t *settings = json_object_get(c->config, "Config");
    for (size_t k = 0; k < GP_ARRAY_LEN(keys); k++) {
        const json_t *words = json_object_get(settings, keys[k]);
        for (size_t i = 0; i < json_array_size(words) && !all.error; i++) {
            const char *word = json_string_value(json_array_get(words, i));
            gp_strbuf_addc(&all, ' ');
            gp_strbuf_adds(&all, word ? word : "");
        }
    }
    const char *command = gp_exam_text(exam, "%s", all.error ? "" : all.buf);
    gp_strbuf_fini(&all);
    return command;
}

/* How many GPUs the ids of a request name, "0", "GPU-…", "0,1", "nvidia.com/gpu=1"; or `all`, which
 * is also the answer where the number is unknown: "0:1" and "MIG-…" are parts of a GPU. */
static size_t count_ids(const json_t *ids, size_t all)
{
    char one[GP_PATH_SIZE];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *list = json_string_value(json_array_get(ids, i));
        while (list && gp_search_path_next(&list, ",", one)) {
            const char *sign = strchr(one, '='), *id = sign ? sign + 1 : one;
            if (strcmp(id, "all") == 0 || strchr(id, ':') || strncmp(id, "MIG-", 4) == 0)
                return all;
            n++;
        }
    }
    return n;
}

/* How many GPUs it is given, by all requests together. */
static size_t count_given(const struct gp_exam *exam, const struct gp_docker_container *c)
{
    const json_t *requests = gp_docker_requests(c);
    size_t n = 0, all = exam->machine.nvidia_count;
    for (size_t i = 0; i < json_array_size(requests); i++) {
        const json_t *request = json_array_get(requests, i);
        const json_t *ids = json_object_get(request, "DeviceIDs");
        json_int_t count = json_integer_value(json_object_get(request, "Count"));
        if (!gp_docker_is_for_nvidia(request))
            continue;
        if (json_array_size(ids) > 0)
            n += count_ids(ids, all);
        else
            n += count > 0 ? (size_t)count : all;
    }
    return n > 0 ? n : all;
}

static void check_gpus(struct gp_exam *exam, const struct gp_docker_container *c)
{
    size_t given = count_given(exam, c);
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    unsigned wanted = gp_serving_gpus(
        gp_exam_text(exam, "%s%s", image ? image : "", gp_container_command(exam, c)));
    if (wanted <= given || gp_serving_has_parts(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "container %s is started for %u GPUs, but it gets %zu",
                   c->name, wanted, given);
    gp_exam_evidence(exam, c->config_path, "its arguments ask for %u", wanted);
    gp_exam_evidence(exam,
                     given == exam->machine.nvidia_count ? "/sys/bus/pci/devices" : c->host_path,
                     "%zu of NVIDIA", given);
    if (wanted <= exam->machine.nvidia_count)
        gp_exam_advice(exam, "create the container again with --gpus all, or as many as it is "
                             "started for (in a compose file: count: all)");
    else
        gp_exam_advice(exam, "create the container again, started for %zu or less", given);
    gp_serving_explain(exam);
}

/* Shared memory that ran out, as PyTorch, NCCL and the kernel say it. */
static const char *full_line(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char *const words[] = {
        "Error while creating shared memory segment", "out of shared memory (shm)",
        "insufficient shared memory (shm)", "No space left on device: '/dev/shm", NULL};
    enum { SHOWN = 300 };
    size_t length = 0, n;
    const char *text = gp_docker_printed(exam, c, &length), *line;
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    while (gp_lines_next(&lines, &line, &n))
        if (gp_lines_has_any(line, n, words))
            return gp_exam_text(exam, "%.*s", n < SHOWN ? (int)n : SHOWN, line);
    return NULL;
}

static void check_shm(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *ipc = gp_docker_text(c->host, "IpcMode");
    json_int_t size = json_integer_value(json_object_get(c->host, "ShmSize"));
    const char *line = NULL;
    if (size > 0 && size < (json_int_t)SMALL_SHM * MIB && !(ipc && strcmp(ipc, "host") == 0))
        line = full_line(exam, c);
    if (!line)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the shared memory of container %s is full: it has %d MiB", c->name,
                   (int)(size / MIB));
    gp_exam_evidence(exam, c->host_path, "ShmSize: %d MiB", (int)(size / MIB));
    gp_exam_evidence(exam, c->log_path, "%s", line);
    gp_exam_why(exam, "PyTorch's data loaders and NCCL exchange data through /dev/shm, NCCL "
                      "between all GPUs that have no direct path to each other.");
    gp_exam_advice(exam, "create the container again with --ipc=host, or with --shm-size=16g (in a "
                         "compose file: ipc: host, or shm_size: 16gb)");
}

void gp_container_check_serving(struct gp_exam *exam, const struct gp_docker_container *c)
{
    bool is_used = c->is_running || !gp_docker_is_left_over(exam, c->config_path);
    if (!is_used || exam->machine.nvidia_count == 0 || !gp_docker_has_gpus(c))
        return;
    check_gpus(exam, c);
    check_shm(exam, c);
}
