/* The GPU Operator's toolkit on a node of Kubernetes, and containerd's configuration, which
 * something else writes, too. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/log.h"
#include "doctor/readers/podlogs.h"

#include <string.h>

#define OPERATOR_FOLDER "/usr/local/nvidia/toolkit"

/* The device plugin or the GPU Operator describes the GPUs for CDI, as the Operator does by default
 * from 25.10 on: pods get them without a class. */
bool gp_container_has_described(struct gp_exam *exam)
{
    static const char *const folders[] = {"/var/run/cdi", "/run/cdi"};
    char **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n; i++)
            if (strstr(names[i], "nvidia.com-gpu"))
                return true;
    }
    return false;
}

/* Whether it is on this node: its toolkit's log, which goes when its pods are removed. What it has
 * in /run stays until the next start of the machine. */
static bool is_operator_there(struct gp_exam *exam)
{
    struct gp_pod_log log;
    return gp_pod_read_toolkit(exam, &log);
}

/* Whether the Operator is still there is unknown without such a sign: it leaves its toolkit. */
static void report_unnamed(struct gp_exam *exam, const char *path)
{
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "pods get no GPU: containerd's configuration does not name the GPU Operator's "
                   "runtime");
    gp_exam_evidence(exam, path, "no runtime is called nvidia: pods run with runc");
    gp_exam_evidence(exam, OPERATOR_FOLDER, "the GPU Operator's toolkit");
    gp_exam_why(exam,
                "The toolkit names its runtime there when its pod starts. A tool that manages "
                "the node, such as KubeOne or Kubespray, then wrote the file again; or the "
                "Operator was removed. Pods that started before keep their GPUs until their "
                "next start.");
}

static void propose_restart(struct gp_exam *exam)
{
    gp_exam_command(
        exam,
        "where kubectl is set up: the Operator's toolkit names its runtime at its "
        "start",
        "kubectl -n gpu-operator rollout restart ds/nvidia-container-toolkit-daemonset");
}

/* The Operator's toolkit had named its runtime there, and something has written the file again.
 * Kubespray and KubeOne do so on each run. */
bool gp_container_report_overwritten(struct gp_exam *exam, const char *path, const char *text)
{
    if (!text || !gp_files_exist(&exam->files, OPERATOR_FOLDER "/nvidia-container-runtime") ||
        gp_files_exist(&exam->files, "/usr/bin/nvidia-ctk"))
        return false;
    const struct gp_log_known *refused = gp_log_known_of(exam, "k8s.no-nvidia-runtime");
    if (gp_container_has_described(exam))
        return true;
    if (!refused && !is_operator_there(exam)) {
        report_unnamed(exam, path);
    } else {
        gp_container_report_lacking(exam, "containerd does not know its runtime", path,
                                    "no runtime is called nvidia");
        gp_exam_evidence(exam, OPERATOR_FOLDER, "the GPU Operator's toolkit");
        gp_log_show_known(exam, refused);
    }
    propose_restart(exam);
    gp_exam_advice(exam, "then start the pods again that should have a GPU");
    if (gp_files_exist(&exam->files, "/usr/local/bin/kubelet"))
        gp_exam_advice(exam, "if Kubespray manages this node: name the runtime in its variable "
                             "containerd_additional_runtimes, as it writes the file again on each "
                             "run");
    else
        gp_exam_advice(exam, "if a tool such as KubeOne manages this node: restart the toolkit "
                             "again after each of its runs, as it writes the file again");
    return true;
}

/* ---- the template of k3s and RKE2 ---- */

/* A template whose only runtime is NVIDIA's, and that neither includes the built-in one nor has
 * what a complete configuration for Kubernetes has: nobody wrote such a one by hand. */
static bool is_of_operator(const char *text)
{
    static const char *const others[] = {"{{", "sandbox_image", "runtimes.runc", "SystemdCgroup",
                                         ".cni]"};
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (strstr(text, others[i]))
            return false;
    return strstr(text, ".runtimes.nvidia") && strstr(text, OPERATOR_FOLDER);
}

/* The manifest on this server from which the Operator is installed with this setting; NULL: it is
 * installed in another way, or from another server. */
static const char *manifest_of(struct gp_exam *exam, const char *service)
{
    const char *folder = gp_exam_text(exam, "/var/lib/rancher/%s/server/manifests", service);
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, NULL);
        if (text && strstr(text, "CONTAINERD_CONFIG") && strstr(text, "toml.tmpl"))
            return path;
    }
    return NULL;
}

static void mend_template(struct gp_exam *exam, const char *template, const char *service)
{
    const char *manifest = manifest_of(exam, service), *quoted = gp_exam_quoted(exam, template);
    gp_exam_command(exam, "put it aside: the service then makes its own configuration",
                    "sudo mv %s %s.before", quoted, quoted);
    gp_exam_advice(
        exam,
        "remove CONTAINERD_CONFIG with its value from the Operator's toolkit.env, in %s; "
        "keep CONTAINERD_SOCKET = /run/k3s/containerd/containerd.sock",
        manifest ? manifest : "its Helm values");
    gp_exam_command(exam, "it finds the Operator's runtime by itself",
                    "sudo systemctl restart '%s*'", service);
    gp_exam_advice(exam,
                   "once the cluster is up: if the file is there again, as the Operator's toolkit "
                   "had started with the old setting, repeat both commands");
    gp_exam_advice(exam,
                   "give the pods that use GPUs runtimeClassName: nvidia, or set default-runtime: "
                   "nvidia in /etc/rancher/%s/config.yaml",
                   service);
}

bool gp_container_report_template(struct gp_exam *exam, const char *config, const char *service)
{
    static const char *const names[] = {"config.toml.tmpl", "config-v3.toml.tmpl"};
    const char *end = strrchr(config, '/');
    bool is_rke2 = strcmp(service, "rke2") == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *path = gp_exam_text(exam, "%.*s/%s", (int)(end - config), config, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, NULL);
        if (!text || !is_of_operator(text))
            continue;
        gp_exam_report(
            exam, GP_VERDICT_WARN,
            "%s's template for containerd has only what the GPU Operator wrote: pods may "
            "not start after a restart of the node",
            is_rke2 ? "RKE2" : "k3s");
        gp_exam_evidence(exam, path,
                         "has the runtime nvidia, but neither runc nor the built-in template (%s)",
                         "{{ template \"base\" . }}");
        gp_exam_why(
            exam,
            "CONTAINERD_CONFIG of the Operator's toolkit names this file. At its next start "
            "the service makes config.toml from it alone, without its own settings, such as "
            "%s: \"%s\".",
            is_rke2 ? "the control groups of systemd" : "the network",
            is_rke2 ? "Pod for etcd not synced (pod sandbox has changed), retrying"
                    : "cni plugin not initialized");
        mend_template(exam, path, service);
        gp_exam_link(exam, "https://github.com/NVIDIA/gpu-operator/issues/992");
        return true;
    }
    return false;
}
