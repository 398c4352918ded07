/* A node of Kubernetes: whether anything has reported its GPUs to it. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/explain/explain_line.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/log.h"

#include <errno.h>
#include <string.h>

#define PODS "/var/log/pods"
#define PLUGINS "/var/lib/kubelet/device-plugins"
#define CHECKPOINT PLUGINS "/kubelet_internal_checkpoint"

/* Words in the names of the pods that do so: NVIDIA's plugin, its operator and its driver for
 * dynamic allocation, and those of others that share GPUs. */
static bool is_plugin(const char *pod)
{
    static const char *const words[] = {"nvidia", "device-plugin", "hami", "volcano", "gpu"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strstr(pod, words[i]))
            return true;
    return false;
}

/* Whether the node has pods, and none of these. Before 1.14 the names are only UIDs. */
static bool is_without(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, PODS, &names);
    bool is_any = false;
    if (n == -EACCES)
        gp_exam_unreadable(exam, PODS, (int)n);
    for (long i = 0; i < n; i++) {
        const char *name = strchr(names[i], '_'), *end = name ? strchr(name + 1, '_') : NULL;
        if (!end) /* "NAMESPACE_NAME_UID" */
            continue;
        if (is_plugin(gp_exam_text(exam, "%.*s", (int)(end - names[i]), names[i])))
            return false;
        is_any = true;
    }
    return is_any;
}

/* What plugins have registered with the kubelet, up to "}"; NULL with errno: nothing, or that
 * cannot be read. */
static const char *registered(struct gp_exam *exam)
{
    static const char key[] = "\"RegisteredDevices\":{";
    const char *text = gp_files_text(&exam->files, &exam->arena, CHECKPOINT, 1 << 18, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    if (text)
        errno = 0;
    return found ? found + sizeof(key) - 1 : NULL;
}

/* What another plugin has left: its socket, or what it has registered with the kubelet; NULL: there
 * is none. It may be one for GPUs, under a name of its own. */
static const char *trace_of_other(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, PLUGINS, &names);
    for (long i = 0; i < n; i++) {
        const char *end = strrchr(names[i], '.');
        if (end && strcmp(end, ".sock") == 0 && strcmp(names[i], "kubelet.sock") != 0)
            return gp_exam_text(exam, "%s/%s", PLUGINS, names[i]);
    }
    const char *all = registered(exam);
    return all && *all != '}' ? CHECKPOINT : NULL;
}

/* Whether a plugin has registered GPUs of NVIDIA with the kubelet, or that cannot be read. */
static bool may_be_registered(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, PLUGINS, &names);
    const char *all = registered(exam);
    if (n == -EACCES || (!all && errno == EACCES)) {
        gp_exam_unreadable(exam, n < 0 ? PLUGINS : CHECKPOINT, -EACCES);
        return true;
    }
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "nvidia", 6) == 0) /* "nvidia-gpu.sock" */
            return true;
    return all && memmem(all, strcspn(all, "}"), "nvidia.com/", 11);
}

/* A description of a pod that asks for a GPU, in the directories of the user. */
static const char *find_request(struct gp_exam *exam)
{
    static const char *const variables[] = {"PWD", "HOME"};
    enum { FILES = 200 };
    char **names;
    size_t looked = 0;
    for (size_t v = 0; v < GP_ARRAY_LEN(variables); v++) {
        const char *folder = gp_machine_variable(&exam->machine, variables[v]);
        long n = folder && folder[0] == '/'
                     ? gp_files_list(&exam->files, &exam->arena, folder, &names)
                     : 0;
        for (long i = 0; i < n && looked < FILES; i++) {
            const char *end = strrchr(names[i], '.');
            if (!end || (strcmp(end, ".yaml") != 0 && strcmp(end, ".yml") != 0))
                continue;
            looked++;
            const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
            const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
            if (text && strstr(text, "kind:") && strstr(text, "nvidia.com/gpu:"))
                return path;
        }
    }
    return NULL;
}

/* Without a default runtime of NVIDIA, the plugin needs its class, too. The configuration of k3s is
 * root's alone, and on servers only. */
static const char *helm(struct gp_exam *exam, const char *service, const char **ret_place)
{
    const char *config =
        service ? gp_exam_text(exam, "/etc/rancher/%s/%s.yaml", service, service) : NULL;
    *ret_place = !config                                ? "where helm and kubectl are set up"
                 : gp_files_exist(&exam->files, config) ? "with helm"
                                                        : "on a server, with helm";
    return config ? gp_exam_text(exam, "sudo env KUBECONFIG=%s helm", config) : "helm";
}

#define REPOSITORY "--repo https://nvidia.github.io/k8s-device-plugin"

static void install(struct gp_exam *exam, const char *service, bool is_default)
{
    const char *place, *program = helm(exam, service, &place);
    if (!is_default && !service)
        gp_exam_command(exam, "the class of NVIDIA's runtime, where kubectl is set up",
                        "printf '%%s\\n' 'apiVersion: node.k8s.io/v1' 'kind: RuntimeClass' "
                        "'metadata: {name: nvidia}' 'handler: nvidia' | kubectl apply -f -");
    gp_exam_command(
        exam,
        gp_exam_text(exam, "%s; its part gfd marks the nodes with GPUs, on which the plugin runs",
                     place),
        "%s upgrade -i nvdp nvidia-device-plugin " REPOSITORY " --namespace nvidia-device-plugin "
        "--create-namespace --set gfd.enabled=true%s",
        program, is_default ? "" : " --set runtimeClassName=nvidia");
    if (!is_default)
        gp_exam_advice(exam, "pods that use GPUs need runtimeClassName: nvidia%s",
                       service ? ", a class that k3s brings" : "");
    gp_exam_advice(exam, "or install NVIDIA's GPU Operator, which brings the plugin; with the "
                         "driver and the toolkit of this system: --set "
                         "driver.enabled=false --set toolkit.enabled=false");
}

/* Nobody need want GPUs in pods; and on k3s, which finds the toolkit by itself, pods of the class
 * nvidia get them without a plugin. */
bool gp_container_report_plugin(struct gp_exam *exam, const char *service, bool is_default)
{
    if (!is_without(exam) || may_be_registered(exam))
        return false;
    const char *request = find_request(exam), *other = trace_of_other(exam);
    gp_exam_report(exam, request && !other ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "Kubernetes does not know this node's GPUs: no device plugin of NVIDIA runs on "
                   "it");
    if (request)
        gp_exam_evidence(exam, request, "asks for nvidia.com/gpu");
    gp_exam_evidence(exam, PODS, "no pod of NVIDIA's device plugin or GPU Operator");
    if (other)
        gp_exam_evidence(exam, other, "of another plugin");
    else
        gp_exam_evidence(exam, PLUGINS, "no socket of a plugin");
    gp_exam_why(exam, "A driver and a runtime alone do not give the node the resource "
                      "nvidia.com/gpu: pods that ask for it stay pending, with \"Insufficient "
                      "nvidia.com/gpu\".");
    if (other)
        gp_exam_advice(exam, "if that plugin is for GPUs, ask for the resource that it registers: "
                             "two plugins for the same GPUs do not work together");
    else
        install(exam, service, is_default);
    return true;
}

/* ---- a plugin that is there, but finds nothing ---- */

static const char tool[] = "nvidia-container-cli:", start[] = "StartContainer";

/* The day in a line of containerd, time="2025-09-02T14:12:31…"; "": none. */
static const char *day_of(struct gp_exam *exam, const char *line, size_t n)
{
    static const char mark[] = "time=\"";
    enum { DAY = 10 };
    bool is_stamped = n > sizeof(mark) + DAY && memcmp(line, mark, sizeof(mark) - 1) == 0;
    return is_stamped ? gp_exam_text(exam, "%.*s", (int)DAY, line + sizeof(mark) - 1) : "";
}

static bool has(const char *line, size_t n, const char *words)
{
    return memmem(line, n, words, strlen(words)) != NULL;
}

struct refusal {
    const char *line; /* NULL: there is none */
    bool is_over;     /* containerd or the machine was started since, as is done to mend it */
    bool is_start;    /* a container was started since, which may be one without a GPU */
};

/* The last by which the toolkit has refused a pod, if it is of the last day of this log. */
static struct refusal last_refusal(struct gp_exam *exam, const char *path)
{
    size_t length = 0, n;
    struct refusal found = {NULL};
    const char *line, *day = "", *last = "";
    const char *text = gp_files_tail(&exam->files, &exam->arena, path, 1 << 18, &length);
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        last = day_of(exam, line, n);
        found.is_over = found.is_over || has(line, n, "msg=\"starting containerd\"");
        if (!has(line, n, start))
            continue;
        found.is_start = found.is_start || has(line, n, "returns successfully");
        if (!has(line, n, tool))
            continue;
        found = (struct refusal){gp_exam_text(exam, "%.*s", n < 800 ? (int)n : 800, line)};
        day = last;
    }
    if (gp_boot_is_after(exam, path))
        found.is_over = true;
    return found.line && day[0] && strcmp(day, last) == 0 ? found : (struct refusal){NULL};
}

/* k3s and RKE2 keep a log of their containerd, which may tell what no journal does. */
bool gp_container_report_called(struct gp_exam *exam, const char *service)
{
    const struct gp_log *log = gp_log_of(exam);
    struct gp_explanation e;
    for (size_t i = 0; i < log->known_count; i++)
        if (strstr(log->known[i].text, tool) && strstr(log->known[i].text, start))
            return true; /* and another check reports it */
    const char *path = service ? gp_exam_text(exam,
                                              "/var/lib/rancher/%s/agent/containerd/"
                                              "containerd.log",
                                              service)
                               : NULL;
    struct refusal last = path ? last_refusal(exam, path) : (struct refusal){NULL};
    if (last.is_over && last.line)
        return true; /* pods get the runtime, and nothing says that they do not start now */
    if (!last.line || !gp_explain_line(&exam->arena, last.line, &e))
        return false;
    gp_exam_report(exam, last.is_start ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   last.is_start ? "a pod with NVIDIA's runtime did not start: %s"
                                 : "pods with NVIDIA's runtime do not start: %s",
                   e.words);
    gp_exam_evidence(exam, path, "%s", last.line);
    if (last.is_start)
        gp_exam_evidence(exam, path, "containers were started after that, with a GPU or without");
    if (e.look[0])
        gp_exam_advice(exam, "if there is one: the finding or note of %s below", e.look);
    gp_exam_advice(exam, "%s%s", e.look[0] ? "otherwise: " : "", e.advice);
    return true;
}

struct pod {
    const char *space, *name;
};

/* Of "/var/log/pods/NAMESPACE_NAME_UID/…", or "/var/log/containers/NAME_NAMESPACE_…". */
static bool read_pod(struct gp_exam *exam, const char *path, struct pod *ret)
{
    static const char links[] = "/var/log/containers/";
    bool is_link = strncmp(path, links, sizeof(links) - 1) == 0;
    const char *first = is_link                                      ? path + sizeof(links) - 1
                        : strncmp(path, PODS "/", sizeof(PODS)) == 0 ? path + sizeof(PODS)
                                                                     : "";
    const char *second = strchr(first, '_'), *end = second ? strchr(second + 1, '_') : NULL;
    if (!end)
        return false;
    const char *a = gp_exam_text(exam, "%.*s", (int)(second - first), first);
    const char *b = gp_exam_text(exam, "%.*s", (int)(end - second - 1), second + 1);
    *ret = is_link ? (struct pod){b, a} : (struct pod){a, b};
    return true;
}

/* The release of helm, "nvdp" of "nvdp-nvidia-device-plugin-x7k2p"; one that has the name of the
 * chart in its own is not repeated. NULL: it was not installed by helm. */
static const char *release_of(struct gp_exam *exam, const char *pod)
{
    static const char chart[] = "nvidia-device-plugin";
    const char *found = strstr(pod, chart);
    const char *rest = found ? found + sizeof(chart) - 1 : "";
    if (rest[0] != '-' || strchr(rest + 1, '-')) /* "nvidia-device-plugin-daemonset-x7k2p" */
        return NULL;
    return found > pod + 1 ? gp_exam_text(exam, "%.*s", (int)(found - 1 - pod), pod) : chart;
}

static void give_privilege(struct gp_exam *exam, const char *service, const struct pod *pod)
{
    const char *place, *program = helm(exam, service, &place), *name = release_of(exam, pod->name);
    if (name)
        gp_exam_command(exam,
                        gp_exam_text(exam,
                                     "%s; with --version and the installed one to keep that: helm "
                                     "list -A",
                                     place),
                        "%s upgrade %s nvidia-device-plugin " REPOSITORY
                        " --namespace %s --reuse-values --set "
                        "'securityContext.capabilities.add={SYS_ADMIN}'",
                        program, gp_exam_quoted(exam, name), gp_exam_quoted(exam, pod->space));
    else
        gp_exam_advice(exam,
                       "in the plugin's manifest (namespace %s), below securityContext of its "
                       "container: capabilities: {add: [SYS_ADMIN]}",
                       pod->space);
}

/* The line by which a plugin does not find NVML; NULL: there is none. */
static const struct gp_log_known *blind_plugin(struct gp_exam *exam)
{
    const struct gp_log_known *known = gp_log_known_of(exam, "k8s.plugin-null");
    bool is_blind = known && (strstr(known->text, "LIBRARY_NOT_FOUND") ||
                              strstr(known->text, "could not load NVML library") ||
                              strstr(known->text, "Incompatible strategy detected auto"));
    return is_blind ? known : NULL;
}

/* With this setting, only volumes name a container's GPUs, or the variable in containers with
 * privileges. The plugin has the variable alone. */
bool gp_container_report_unprivileged(struct gp_exam *exam, const char *service, bool is_default)
{
    static const char key[] = "accept-nvidia-visible-devices-envvar-when-unprivileged";
    static const char path[] = "/etc/nvidia-container-runtime/config.toml";
    unsigned number = 0;
    struct pod pod;
    const struct gp_log_known *known =
        gp_files_exist(&exam->files, path) ? blind_plugin(exam) : NULL;
    const char *value = known ? gp_container_config_value(exam, key, &number) : NULL;
    if (!value || strcmp(value, "false") != 0 || !read_pod(exam, known->path, &pod))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "NVIDIA's runtime gives the device plugin no driver, as the plugin has no "
                   "privileges");
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", path, number), "%s = false", key);
    gp_log_show_known(exam, known);
    gp_exam_evidence(exam, PLUGINS, "no socket of NVIDIA's plugin");
    gp_exam_why(exam, "With this setting the runtime heeds NVIDIA_VISIBLE_DEVICES only in "
                      "containers that have SYS_ADMIN. The plugin's pod names its GPUs by that "
                      "variable, and does not find NVML.");
    give_privilege(exam, service, &pod);
    if (!is_default)
        gp_exam_advice(exam, "the plugin and the pods that use GPUs also need runtimeClassName: "
                             "nvidia, unless they have it");
    gp_exam_advice(exam,
                   "or, if any pod may take GPUs by that variable: sudo nvidia-ctk config "
                   "--in-place --set %s=true",
                   key);
    return true;
}
