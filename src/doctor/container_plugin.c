/* A node of Kubernetes: whether anything has told it of its GPUs. */
#include "doctor/checks_container.h"

#include "doctor/container_host.h"

#include <string.h>

#define PODS "/var/log/pods"
#define CHECKPOINT "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"

/* Words in the names of the pods that do so: NVIDIA's plugin, its operator and its driver for
 * dynamic allocation, and those of others that share GPUs. */
static bool is_plugin(const char *pod)
{
    static const char *const words[] = {"nvidia", "gpu-operator", "device-plugin", "hami",
                                        "volcano"};
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

/* Resources of GPUs that a plugin has registered with the kubelet. */
static bool is_registered(struct gp_exam *exam)
{
    static const char key[] = "\"RegisteredDevices\":{";
    const char *text = gp_files_text(&exam->files, &exam->arena, CHECKPOINT, 1 << 18, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    return found && memmem(found, strcspn(found, "}"), "nvidia.com/", 11);
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

/* Without a default runtime of NVIDIA, the plugin needs its class, too. */
static void install(struct gp_exam *exam, const char *service, bool is_default)
{
    gp_exam_command(exam, "where helm and kubectl are set up",
                    "helm repo add nvdp https://nvidia.github.io/k8s-device-plugin && helm repo "
                    "update");
    gp_exam_command(
        exam, "its part gfd marks the nodes with GPUs, on which the plugin runs",
        "%shelm upgrade -i nvdp nvdp/nvidia-device-plugin --namespace "
        "nvidia-device-plugin --create-namespace --set gfd.enabled=true%s",
        service ? gp_exam_text(exam, "KUBECONFIG=/etc/rancher/%s/%s.yaml ", service, service) : "",
        is_default ? "" : " --set runtimeClassName=nvidia");
    if (!is_default)
        gp_exam_advice(exam,
                       "pods that use GPUs need runtimeClassName: nvidia, and a RuntimeClass "
                       "whose handler is nvidia%s",
                       service ? " (k3s brings it)" : "");
    gp_exam_advice(exam, "or install NVIDIA's GPU Operator, which brings the plugin; with the "
                         "driver and the toolkit of this system: --set "
                         "driver.enabled=false --set toolkit.enabled=false");
}

/* On k3s, which finds the toolkit by itself, nobody need want GPUs in pods; and pods of the class
 * nvidia get them without a plugin. */
bool gp_container_report_plugin(struct gp_exam *exam, const char *service, bool is_default)
{
    if (!is_without(exam) || is_registered(exam))
        return false;
    const char *request = find_request(exam);
    gp_exam_report(exam, request || !service ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "Kubernetes does not know this node's GPUs: no device plugin runs on it");
    if (request)
        gp_exam_evidence(exam, request, "asks for nvidia.com/gpu");
    gp_exam_evidence(exam, PODS, "no pod of NVIDIA's device plugin or GPU Operator");
    gp_exam_evidence(exam, "/var/lib/kubelet/device-plugins", "no socket of a plugin");
    gp_exam_why(exam, "A driver and a runtime alone do not give the node the resource "
                      "nvidia.com/gpu: pods that ask for it stay pending, with \"Insufficient "
                      "nvidia.com/gpu\".");
    install(exam, service, is_default);
    return true;
}
