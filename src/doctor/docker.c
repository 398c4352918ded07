#include "doctor/docker.h"

#include "doctor/exam.h"

#include <string.h>

enum { MOST_TEXT = 1 << 20 };
static const char settings_path[] = "/etc/docker/daemon.json";

static json_t *read_json(struct gp_exam *exam, const char *path)
{
    size_t length = 0;
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, &length);
    return text ? json_loadb(text, length, 0, NULL) : NULL;
}

const char *gp_docker_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

const char *gp_docker_folder(struct gp_exam *exam)
{
    json_t *settings = read_json(exam, settings_path);
    const char *root = gp_docker_text(settings, "data-root");
    const char *folder = gp_exam_text(exam, "%s/containers", root ? root : "/var/lib/docker");
    json_decref(settings);
    return folder;
}

bool gp_docker_is_nvidia_default(struct gp_exam *exam)
{
    json_t *settings = read_json(exam, settings_path);
    const char *name = gp_docker_text(settings, "default-runtime");
    bool is_nvidia = name && strncmp(name, "nvidia", 6) == 0;
    json_decref(settings);
    return is_nvidia;
}

bool gp_docker_has_runtime(const struct gp_docker_container *container)
{
    const char *runtime = gp_docker_text(container->host, "Runtime");
    return runtime && strstr(runtime, "nvidia");
}

const json_t *gp_docker_requests(const struct gp_docker_container *container)
{
    return json_object_get(container->host, "DeviceRequests");
}

static void visit_one(struct gp_exam *exam, const char *folder, const char *id,
                      gp_docker_visit *visit, void *argument)
{
    const char *config_path = gp_exam_text(exam, "%s/%s/config.v2.json", folder, id);
    const char *host_path = gp_exam_text(exam, "%s/%s/hostconfig.json", folder, id);
    json_t *config = read_json(exam, config_path);
    json_t *host = read_json(exam, host_path);
    const char *name = gp_docker_text(config, "Name");
    const json_t *state = json_object_get(config, "State");
    struct gp_docker_container container = {
        .id = id,
        .name = name ? gp_exam_text(exam, "%s", name + (*name == '/')) : "",
        .is_running = json_is_true(json_object_get(state, "Running")),
        .config = config,
        .host = host,
        .config_path = config_path,
        .host_path = host_path,
        .log_path = gp_exam_text(exam, "%s/%s/%s-json.log", folder, id, id),
    };
    visit(exam, &container, argument);
    json_decref(config);
    json_decref(host);
}

long gp_docker_each(struct gp_exam *exam, gp_docker_visit *visit, void *argument)
{
    const char *folder = gp_docker_folder(exam);
    char **ids;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &ids);
    for (long i = 0; i < n && i < GP_DOCKER_CONTAINERS; i++)
        visit_one(exam, folder, ids[i], visit, argument);
    return n;
}

const char *gp_docker_variable(const struct gp_docker_container *container, const char *name)
{
    size_t n = strlen(name);
    const json_t *variables = json_object_get(json_object_get(container->config, "Config"), "Env");
    for (size_t i = 0; i < json_array_size(variables); i++) {
        const char *entry = json_string_value(json_array_get(variables, i));
        if (entry && strncmp(entry, name, n) == 0 && entry[n] == '=')
            return entry + n + 1;
    }
    return NULL;
}

const char *gp_docker_compose_service(struct gp_exam *exam,
                                      const struct gp_docker_container *container)
{
    const json_t *labels = json_object_get(json_object_get(container->config, "Config"), "Labels");
    const char *file = gp_docker_text(labels, "com.docker.compose.project.config_files");
    const char *service = gp_docker_text(labels, "com.docker.compose.service");
    return file && service ? gp_exam_text(exam, "in %s, add to the service %s", file, service) : "";
}

const char *gp_docker_denied_line(struct gp_exam *exam, const struct gp_docker_container *container)
{
    enum { MOST_LOG = 256 << 10 };
    static const char *const words[] = {
        "Failed to open /dev/dri",         "No VA display found",
        "/dev/kfd: Permission denied",     "Unable to open /dev/kfd read-write",
        "No GPU device found in OpenVINO", "permission problems block access"};
    const char *text =
        gp_files_tail(&exam->files, &exam->arena, container->log_path, MOST_LOG, NULL);
    for (size_t i = 0; text && i < GP_ARRAY_LEN(words); i++) {
        const char *found = strstr(text, words[i]);
        if (found)
            return gp_exam_text(exam, "%.*s", (int)strcspn(found, "\"\\\n"), found);
    }
    return NULL;
}

void gp_docker_show_denied(struct gp_exam *exam, const struct gp_docker_container *container)
{
    const char *line = gp_docker_denied_line(exam, container);
    if (line)
        gp_exam_evidence(exam, container->log_path, "%s", line);
}
