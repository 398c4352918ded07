#include "doctor/readers/docker.h"

#include "doctor/entries.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/searchpath.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_TEXT = 1 << 20, MOST_LOG = 1 << 16 };
static const char settings_path[] = "/etc/docker/daemon.json";

json_t *gp_docker_json(struct gp_exam *exam, const char *path)
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
    json_t *settings = gp_docker_json(exam, settings_path);
    const char *root = gp_docker_text(settings, "data-root");
    const char *folder = gp_exam_text(exam, "%s/containers", root ? root : "/var/lib/docker");
    json_decref(settings);
    return folder;
}

bool gp_docker_is_nvidia_default(struct gp_exam *exam)
{
    json_t *settings = gp_docker_json(exam, settings_path);
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

bool gp_docker_asks_runtime(const struct gp_docker_container *container)
{
    const char *asked = gp_docker_asked(container);
    return gp_docker_has_runtime(container) && asked && asked[0];
}

const char *gp_docker_device(const struct gp_docker_container *container, size_t place)
{
    const json_t *devices = json_object_get(container->host, "Devices");
    const char *path = gp_docker_text(json_array_get(devices, place), "PathOnHost");
    return path || place >= json_array_size(devices) ? path : "";
}

bool gp_docker_has_device(const struct gp_docker_container *container, const char *start)
{
    const char *path;
    for (size_t i = 0; (path = gp_docker_device(container, i)); i++)
        if (strncmp(path, start, strlen(start)) == 0)
            return true;
    return false;
}

bool gp_docker_has_other_gpu(const struct gp_docker_container *container)
{
    return gp_docker_has_device(container, "/dev/dri") ||
           gp_docker_has_device(container, "/dev/kfd");
}

bool gp_docker_is_for_nvidia(const json_t *request)
{
    const char *driver = gp_docker_text(request, "Driver");
    const json_t *ids = json_object_get(request, "DeviceIDs");
    bool is_cdi = driver && strcmp(driver, "cdi") == 0;
    for (size_t i = 0; is_cdi && i < json_array_size(ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        if (id && strncmp(id, "nvidia.com/", 11) == 0)
            return true;
    }
    return !is_cdi && (!driver || !driver[0] || strstr(driver, "nvidia"));
}

bool gp_docker_has_gpus(const struct gp_docker_container *container)
{
    const json_t *requests = gp_docker_requests(container);
    for (size_t i = 0; i < json_array_size(requests); i++)
        if (gp_docker_is_for_nvidia(json_array_get(requests, i)))
            return true;
    return gp_docker_asks_runtime(container);
}

/* The lines of a container's log from this time on: {…,"time":"2023-07-26T14:22:05.000000000Z"} */
static const char *lines_since(const char *all, size_t *length, const char *start)
{
    static const char key[] = "\"time\":";
    enum { KEY = sizeof(key) - 1, SECONDS = sizeof("2023-07-26T14:22:05") - 1 };
    const char *line;
    size_t n;
    struct gp_lines lines = gp_lines_of(all, all ? *length : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *at = memmem(line, n, key, KEY);
        at = at ? at + KEY + strspn(at + KEY, " \"") : NULL; /* a copy may have been written anew */
        if (at && line + n - at >= SECONDS && strncmp(at, start, SECONDS) >= 0) {
            *length -= (size_t)(line - all);
            return line;
        }
    }
    return NULL;
}

/* What was printed, of the lines {"log":"…\\n","stream":"stderr","time":"…"}. */
static const char *printed_of(struct gp_exam *exam, const char *all, size_t length,
                              size_t *ret_length)
{
    const char *line;
    size_t n, used = 0;
    char *text = all ? gp_arena_alloc(&exam->arena, length + 2, 1) : NULL;
    struct gp_lines lines = gp_lines_of(all, text ? length : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        json_t *record = json_loadb(line, n, 0, NULL);
        const char *said = gp_docker_text(record, "log");
        size_t m = said ? strcspn(said, "\n") : n;
        memcpy(text + used, said ? said : line, m); /* never longer than in JSON */
        used += m;
        text[used++] = '\n';
        json_decref(record);
    }
    *ret_length = used;
    return text;
}

static const char *started_at(const struct gp_docker_container *container)
{
    const char *start = gp_docker_text(json_object_get(container->config, "State"), "StartedAt");
    return start ? start : "";
}

const char *gp_docker_printed(struct gp_exam *exam, const struct gp_docker_container *container,
                              size_t *ret_length)
{
    const char *start = started_at(container);
    *ret_length = 0;
    const char *all = start[0] ? gp_files_tail(&exam->files, &exam->arena, container->log_path,
                                               MOST_LOG, ret_length)
                               : NULL;
    all = lines_since(all, ret_length, start);
    return printed_of(exam, all, *ret_length, ret_length);
}

/* Whether a log with this time in its name, "2023-07-26_14-22-05", is of a container's present
 * start. The name is in the container's own time, which need not be UTC as the start's is: then
 * only what is later in all time zones. */
static bool is_since_start(struct gp_exam *exam, const struct gp_docker_container *c,
                           const char *name)
{
    enum { FARTHEST = 14 * 3600 };
    const char *zone = gp_docker_variable(c, "TZ");
    bool is_utc = (!zone || strstr(zone, "UTC")) && !gp_docker_source(exam, c, "/etc/localtime");
    struct tm at = {0}, start = {0};
    return strptime(name, "%Y-%m-%d_%H-%M-%S", &at) &&
           strptime(started_at(c), "%Y-%m-%dT%H:%M:%S", &start) &&
           timegm(&at) - (is_utc ? 0 : FARTHEST) >= timegm(&start);
}

const char *gp_docker_jellyfin(struct gp_exam *exam, const struct gp_docker_container *container,
                               const char **ret_path, size_t *ret_length)
{
    static const char begin[] = "FFmpeg.Transcode-"; /* and "2023-07-26_14-22-05" */
    enum { BEGIN = sizeof(begin) - 1 };
    const char *config = gp_docker_source(exam, container, "/config");
    const char *folder = config ? gp_exam_text(exam, "%s/log", config) : NULL;
    char **names;
    long last = folder ? gp_files_list(&exam->files, &exam->arena, folder, &names) - 1 : -1;
    *ret_length = 0;
    while (last >= 0 && strncmp(names[last], begin, BEGIN) != 0)
        last--;
    if (last < 0 || !is_since_start(exam, container, names[last] + BEGIN))
        return NULL;
    *ret_path = gp_exam_text(exam, "%s/%s", folder, names[last]);
    return gp_files_tail(&exam->files, &exam->arena, *ret_path, MOST_LOG, ret_length);
}

/* Both, up to a NUL in them. */
static const char *said_by(struct gp_exam *exam, const struct gp_docker_container *container)
{
    size_t length = 0;
    const char *path, *printed = gp_docker_printed(exam, container, &length);
    const char *own = gp_docker_jellyfin(exam, container, &path, &length);
    return own ? gp_exam_text(exam, "%s%s", printed ? printed : "", own) : printed;
}

const char *gp_docker_log_of(struct gp_exam *exam, const struct gp_docker_container *container,
                             const char *line)
{
    size_t length = 0;
    const char *path, *own = gp_docker_jellyfin(exam, container, &path, &length);
    return own && strstr(own, line) ? path : container->log_path;
}

const char *gp_docker_printed_error(struct gp_exam *exam, const struct gp_docker_container *c,
                                    const char *errors,
                                    bool (*is_one)(const struct gp_error_entry *, const char *))
{
    enum { SHOWN = 400 };
    size_t n;
    const char *all = said_by(exam, c), *line;
    struct gp_lines lines = gp_lines_of(all, all ? strlen(all) : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        char text[SHOWN + 1];
        unsigned weight;
        (void)snprintf(text, sizeof(text), "%.*s", (int)(n < SHOWN ? n : SHOWN), line);
        const struct gp_error_entry *entry = gp_entry_of_line(text, &weight);
        if (entry && gp_exam_is_listed(errors, entry->id) && is_one(entry, text))
            return gp_exam_text(exam, "%s", text);
    }
    return NULL;
}

const char *gp_docker_layer(struct gp_exam *exam, const struct gp_docker_container *container)
{
    const char *path = container->config_path;
    const char *end = strstr(path, gp_exam_text(exam, "/containers/%s/", container->id));
    const char *root = gp_exam_text(exam, "%.*s", end ? (int)(end - path) : 0, path);
    char id[128];
    path = gp_exam_text(exam, "%s/image/overlay2/layerdb/mounts/%s/mount-id", root, container->id);
    if (!end || !gp_files_line(&exam->files, path, id, sizeof(id)) || strchr(id, '/'))
        return NULL;
    return gp_exam_text(exam, "%s/overlay2/%s/diff", root, id);
}

/* "l/2YVHYSTDXS:l/KOMIQ5M6QV", links to the layers' directories */
const char *gp_docker_layer_at(struct gp_exam *exam, const struct gp_docker_container *container,
                               size_t place)
{
    static const char end[] = "/diff";
    const char *top = gp_docker_layer(exam, container);
    if (!top || place == 0)
        return top;
    const char *folder = gp_exam_text(exam, "%.*s", (int)(strlen(top) - (sizeof(end) - 1)), top);
    const char *list = gp_files_text(&exam->files, &exam->arena,
                                     gp_exam_text(exam, "%s/lower", folder), 1 << 14, NULL);
    char entry[GP_PATH_SIZE];
    for (size_t i = 1; list && gp_search_path_next(&list, ":\n", entry); i++)
        if (i == place)
            return gp_exam_text(exam, "%.*s/%s", (int)(strrchr(folder, '/') - folder), folder,
                                entry);
    return NULL;
}

static void visit_one(struct gp_exam *exam, const char *folder, const char *id,
                      gp_docker_visit *visit, void *argument)
{
    const char *config_path = gp_exam_text(exam, "%s/%s/config.v2.json", folder, id);
    const char *host_path = gp_exam_text(exam, "%s/%s/hostconfig.json", folder, id);
    json_t *config = gp_docker_json(exam, config_path);
    json_t *host = gp_docker_json(exam, host_path);
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

bool gp_docker_is_users(const struct gp_docker_container *container, const char *name)
{
    const char *value = gp_docker_variable(container, name);
    const json_t *variables = json_object_get(json_object_get(container->config, "Config"), "Env");
    bool is_before = false;
    for (size_t i = 0; value && i < json_array_size(variables); i++) {
        const char *entry = json_string_value(json_array_get(variables, i));
        if (entry && strncmp(entry, "PATH=", 5) == 0)
            return is_before;
        is_before = is_before || (entry && entry + strlen(name) + 1 == value);
    }
    return false;
}

const char *gp_docker_source(struct gp_exam *exam, const struct gp_docker_container *container,
                             const char *folder)
{
    const json_t *mounts = json_object_get(container->config, "MountPoints");
    const json_t *binds = json_object_get(container->host, "Binds");
    const char *source = gp_docker_text(json_object_get(mounts, folder), "Source");
    const char *end = gp_exam_text(exam, ":%s", folder);
    for (size_t i = 0; !source && i < json_array_size(binds); i++) {
        const char *one = json_string_value(json_array_get(binds, i));
        const char *at = one ? strstr(one, end) : NULL;
        if (at && (!at[strlen(end)] || at[strlen(end)] == ':'))
            source = gp_exam_text(exam, "%.*s", (int)(at - one), one);
    }
    return source;
}

const char *gp_docker_asked(const struct gp_docker_container *container)
{
    const char *value = gp_docker_variable(container, "NVIDIA_VISIBLE_DEVICES");
    bool is_old = gp_docker_variable(container, "CUDA_VERSION") &&
                  !gp_docker_variable(container, "NVIDIA_REQUIRE_CUDA");
    if (!value)
        return is_old ? "all" : NULL;
    return strcmp(value, "void") == 0 || strcmp(value, "none") == 0 ? "" : value;
}

static bool is_plain(const char *text)
{
    return text[0] && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789._/-")];
}

const char *gp_docker_compose_service(struct gp_exam *exam,
                                      const struct gp_docker_container *container)
{
    const json_t *labels = json_object_get(json_object_get(container->config, "Config"), "Labels");
    const char *file = gp_docker_text(labels, "com.docker.compose.project.config_files");
    const char *service = gp_docker_text(labels, "com.docker.compose.service");
    /* an image may have such labels, too: they stand next to a command */
    return file && service && file[0] == '/' && is_plain(file) && is_plain(service)
               ? gp_exam_text(exam, "in %s, add to the service %s", file, service)
               : "";
}

const char *gp_docker_denied_line(struct gp_exam *exam, const struct gp_docker_container *container)
{
    enum { SHOWN = 200 };
    const struct gp_machine *m = &exam->machine;
    const struct {
        const char *text;
        bool applies; /* its GPU is here */
    } words[] = {
        {"Failed to open /dev/dri", true},
        {"No VA display found", true},
        {"/dev/kfd: Permission denied", m->amd_count > 0},
        {"Unable to open /dev/kfd read-write", m->amd_count > 0},
        {"No HIP GPUs are available", m->amd_count > 0},
        {"No GPU device found in OpenVINO", m->intel_count > 0},
        {"permission problems block access", true},
    };
    const char *text = said_by(exam, container);
    for (size_t i = 0; text && i < GP_ARRAY_LEN(words); i++) {
        const char *found = words[i].applies ? strstr(text, words[i].text) : NULL;
        size_t n = found ? strcspn(found, "\n") : 0;
        if (found)
            return gp_exam_text(exam, "%.*s", (int)(n < SHOWN ? n : SHOWN), found);
    }
    return NULL;
}

void gp_docker_show_denied(struct gp_exam *exam, const struct gp_docker_container *container)
{
    const char *line = gp_docker_denied_line(exam, container);
    if (line)
        gp_exam_evidence(exam, gp_docker_log_of(exam, container, line), "%s", line);
}

bool gp_docker_is_left_over(struct gp_exam *exam, const char *config_path)
{
    static const char name[] = "/config.v2.json";
    size_t n = strlen(config_path), m = sizeof(name) - 1;
    if (n <= m || strcmp(config_path + n - m, name) != 0)
        return false;
    json_t *config = gp_docker_json(exam, config_path);
    json_t *host =
        gp_docker_json(exam, gp_exam_text(exam, "%.*s/hostconfig.json", (int)(n - m), config_path));
    const char *policy = gp_docker_text(json_object_get(host, "RestartPolicy"), "Name");
    bool is_running = json_is_true(json_object_get(json_object_get(config, "State"), "Running"));
    bool is_left_over = !is_running && policy && (!policy[0] || strcmp(policy, "no") == 0);
    json_decref(config);
    json_decref(host);
    return is_left_over;
}

/* Whether its user has set a variable for a device to the CPU, "WHISPER__INFERENCE_DEVICE=cpu".
 * Images set such variables, too, behind PATH. */
static bool has_cpu_device(const struct gp_docker_container *c)
{
    static const char name[] = "DEVICE=";
    enum { NAME = sizeof(name) - 1 };
    const json_t *variables = json_object_get(json_object_get(c->config, "Config"), "Env");
    for (size_t i = 0; i < json_array_size(variables); i++) {
        const char *entry = json_string_value(json_array_get(variables, i));
        size_t n = entry ? strcspn(entry, "=") + 1 : 0;
        if (entry && strncmp(entry, "PATH=", 5) == 0)
            return false;
        if (n >= NAME && strncmp(entry + n - NAME, name, NAME) == 0 &&
            (strcmp(entry + n, "cpu") == 0 || strcmp(entry + n, "none") == 0))
            return true;
    }
    return false;
}

bool gp_docker_is_for_cpu(const struct gp_docker_container *c)
{
    const char *cuda = gp_docker_variable(c, "CUDA_VISIBLE_DEVICES");
    const char *ollama = gp_docker_variable(c, "OLLAMA_LLM_LIBRARY");
    return (cuda && (!cuda[0] || cuda[0] == '-')) || (ollama && strncmp(ollama, "cpu", 3) == 0) ||
           has_cpu_device(c);
}
