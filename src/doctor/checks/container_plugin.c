/* A node of Kubernetes: whether anything has reported its GPUs to it. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"

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
static void install(struct gp_exam *exam, const char *service, bool is_default)
{
    const char *config =
        service ? gp_exam_text(exam, "/etc/rancher/%s/%s.yaml", service, service) : NULL;
    const char *place = !config                                ? "where helm and kubectl are set up"
                        : gp_files_exist(&exam->files, config) ? "with helm"
                                                               : "on a server, with helm";
    if (!is_default && !service)
        gp_exam_command(exam, "the class of NVIDIA's runtime, where kubectl is set up",
                        "printf '%%s\\n' 'apiVersion: node.k8s.io/v1' 'kind: RuntimeClass' "
                        "'metadata: {name: nvidia}' 'handler: nvidia' | kubectl apply -f -");
    gp_exam_command(
        exam,
        gp_exam_text(exam, "%s; its part gfd marks the nodes with GPUs, on which the plugin runs",
                     place),
        "%shelm upgrade -i nvdp nvidia-device-plugin --repo "
        "https://nvidia.github.io/k8s-device-plugin --namespace nvidia-device-plugin "
        "--create-namespace --set gfd.enabled=true%s",
        config ? gp_exam_text(exam, "sudo env KUBECONFIG=%s ", config) : "",
        is_default ? "" : " --set runtimeClassName=nvidia");
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
