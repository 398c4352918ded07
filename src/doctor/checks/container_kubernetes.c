/* A node of Kubernetes: whether its container engine uses NVIDIA's runtime. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/readers/services.h"

#include <string.h>

static const char containerd_path[] = "/etc/containerd/config.toml";
#define MICROK8S_ARGS "/var/snap/microk8s/current/args"
#define MICROK8S_CONFIG MICROK8S_ARGS "/containerd.toml"

/* The engines that k3s and RKE2 bring, and their settings, which they generate at their start. The
 * services of servers and agents begin with the same word. */
static const struct {
    const char *program, *config, *service;
} bundled[] = {
    {"/usr/local/bin/k3s", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "k3s"},
    {"/usr/local/bin/rke2", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml", "rke2"},
};

/* kubelets of packages, of Kubespray, of Flatcar and of Canonical's snap. */
static bool has_kubelet(struct gp_exam *exam)
{
    static const char *const programs[] = {"/usr/bin/kubelet", "/usr/local/bin/kubelet",
                                           "/opt/bin/kubelet", NULL};
    return gp_files_first(&exam->files, programs) ||
           gp_service_is_installed(exam, "snap.kubelet.daemon.service");
}

/* A configuration with blanks in place of its comments. */
static const char *text_of(struct gp_exam *exam, const char *path)
{
    char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, NULL);
    for (char *line = text; line && *line; line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        if (line[strspn(line, " \t")] == '#')
            memset(line, ' ', n);
        line += n;
    }
    return text;
}

/* The one of these that is installed; NULL: none. */
static const char *bundled_config(struct gp_exam *exam, const char **ret_service)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(bundled); i++)
        if (gp_files_exist(&exam->files, bundled[i].program) &&
            gp_files_exist(&exam->files, bundled[i].config)) {
            *ret_service = bundled[i].service;
            return bundled[i].config;
        }
    return NULL;
}

/* Whether a configuration of containerd turns its interface for Kubernetes off, as that of Docker's
 * package does. */
static bool is_cri_off(const char *text)
{
    const char *off = text ? strstr(text, "disabled_plugins") : NULL;
    return off && (off == text || off[-1] == '\n') && memmem(off, strcspn(off, "]"), "cri\"", 4);
}

/* Without containerd's interface the kubelet uses docker. */
static bool uses_docker(struct gp_exam *exam)
{
    return gp_files_exist(&exam->files, "/usr/bin/docker") &&
           (gp_container_has_dockershim(exam) || is_cri_off(text_of(exam, containerd_path)) ||
            gp_files_exist(&exam->files, "/usr/bin/cri-dockerd") ||
            !(gp_files_exist(&exam->files, "/usr/bin/containerd") ||
              gp_files_exist(&exam->files, "/usr/local/bin/containerd")));
}

/* A file of /etc/k0s/containerd.d, which k0s' containerd imports, that sets NVIDIA's runtime and
 * turns the interface off; NULL: none. */
static const char *closed_import(struct gp_exam *exam)
{
    static const char folder[] = "/etc/k0s/containerd.d";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *end = strrchr(path, '.'), *text = text_of(exam, path);
        if (strcmp(end, ".toml") == 0 && is_cri_off(text) && strstr(text, "nvidia"))
            return path;
    }
    return NULL;
}

/* CRI-O is there, and no containerd or docker. */
static bool uses_crio(struct gp_exam *exam)
{
    return (gp_files_exist(&exam->files, "/usr/bin/crio") ||
            gp_files_exist(&exam->files, "/usr/local/bin/crio")) &&
           !gp_files_exist(&exam->files, "/usr/bin/containerd") &&
           !gp_files_exist(&exam->files, "/usr/bin/docker");
}

bool gp_container_has_kubelet(struct gp_exam *exam)
{
    const char *service;
    return exam->machine.nvidia_count > 0 && !exam->machine.container &&
           gp_container_has_toolkit(exam) &&
           ((gp_container_is_host(exam) && has_kubelet(exam) && !uses_crio(exam)) ||
            bundled_config(exam, &service) || closed_import(exam) ||
            gp_files_exist(&exam->files, MICROK8S_CONFIG));
}

/* The device plugin's socket: it has found GPUs, and has registered them with the kubelet. */
static bool has_plugin(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, "/var/lib/kubelet/device-plugins", &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "nvidia", 6) == 0)
            return true;
    return false;
}

/* The value of the key, where it first begins a line; NULL: there is none. */
static const char *default_of(struct gp_exam *exam, const char *text)
{
    static const char key[] = "default_runtime_name";
    for (const char *line = text; line && *line; line += *line == '\n') {
        line += strspn(line, " \t");
        if (strncmp(line, key, sizeof(key) - 1) == 0) {
            const char *value = line + sizeof(key) - 1;
            value += strspn(value, " \t=\"'");
            return gp_exam_text(exam, "%.*s", (int)strcspn(value, "\"' \t\r\n"), value);
        }
        line += strcspn(line, "\n");
    }
    return NULL;
}

/* Whether this runtime of containerd's configuration runs NVIDIA's. */
static bool is_nvidia(struct gp_exam *exam, const char *text, const char *name)
{
    const char *key = gp_exam_text(exam, ".runtimes.%s.options]", name);
    const char *found = strstr(text, key);
    if (strstr(name, "nvidia"))
        return true;
    if (!found)
        return false;
    found += strlen(key);
    return memmem(found, strcspn(found, "["), "nvidia", 6);
}

/* Old toolkits have no program that changes the settings. */
static void set_default(struct gp_exam *exam, const char *note)
{
    static const char key[] = "default_runtime_name";
    const char *text = text_of(exam, containerd_path);
    if (gp_files_exist(&exam->files, "/usr/bin/nvidia-ctk"))
        gp_exam_command(exam, note,
                        "sudo nvidia-ctk runtime configure --runtime=containerd --set-as-default");
    else if (text && strstr(text, key) && strstr(text, ".runtimes.nvidia"))
        gp_exam_command(exam, note, "sudo sed -Ei.before 's/^( *%s *= *).*/\\1\"nvidia\"/' %s", key,
                        containerd_path);
    else if (!text || !gp_container_set_shim(exam, containerd_path, text, note))
        gp_exam_advice(exam,
                       "%s: update the toolkit, and use nvidia-ctk runtime configure; or write a "
                       "runtime called nvidia, with BinaryName = "
                       "\"/usr/bin/nvidia-container-runtime\", and %s = \"nvidia\" into %s",
                       note, key, containerd_path);
    gp_exam_command(exam, "", "sudo systemctl restart containerd");
}

static void propose_default(struct gp_exam *exam, const char *service)
{
    gp_exam_advice(exam,
                   "or make it the default: default-runtime: nvidia in "
                   "/etc/rancher/%s/config.yaml, then restart the service",
                   service);
}

/* The GPU Operator wrote into the file that k3s and RKE2 generate, in place of its template. */
static void report_generated(struct gp_exam *exam, const char *path, const char *service)
{
    const char *template = gp_exam_text(exam, "%s.tmpl", path);
    if (gp_files_exist(&exam->files, template) || gp_container_has_described(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_INFO, "pods get a GPU only with runtimeClassName: nvidia");
    gp_exam_evidence(exam, path, "a runtime is called nvidia; it is not the default one");
    gp_exam_evidence(exam, template,
                     "missing: k3s and RKE2 write config.toml from it at each start");
    gp_exam_why(exam, "What the GPU Operator changes in the file itself is lost at the next start; "
                      "only a runtime called nvidia is found again.");
    gp_exam_advice(exam, "give the pods runtimeClassName: nvidia");
    propose_default(exam, service);
}

/* Pods without runtimeClassName get the default runtime, the device plugin's own among them. The
 * GPU Operator gives its pods a class. */
static void check_default(struct gp_exam *exam, const char *path, const char *text,
                          const char *service)
{
    const char *value = default_of(exam, text), *shim = gp_container_shim_runtime(exam, text);
    const char *name = value ? value : shim ? shim : "runc";
    bool is_operator = gp_files_exist(&exam->files, "/usr/local/nvidia/toolkit");
    bool is_default = is_nvidia(exam, text, name);
    if (!is_operator && !has_plugin(exam) && !gp_container_has_described(exam) &&
        (gp_container_report_plugin(exam, service, is_default) ||
         gp_container_report_unprivileged(exam, service, is_default)))
        return;
    if (is_default)
        return;
    if (is_operator && service)
        report_generated(exam, path, service);
    if (is_operator || has_plugin(exam) || gp_container_report_called(exam, service))
        return;
    gp_container_report_lacking(
        exam, "Kubernetes' containers do not get its runtime by default", path,
        gp_exam_text(exam, "a runtime is called nvidia; the default is %s%s", name,
                     value ? "" : ", because default_runtime_name is not set"));
    gp_exam_evidence(exam, "/var/lib/kubelet/device-plugins", "no socket of NVIDIA's plugin");
    if (service) {
        gp_exam_advice(exam, "give the device plugin and the pods that use GPUs runtimeClassName: "
                             "nvidia, with a RuntimeClass whose handler is nvidia");
        propose_default(exam, service);
        return;
    }
    set_default(exam, "make it containerd's default");
    gp_exam_advice(exam, "or give the device plugin and the pods that use GPUs runtimeClassName: "
                         "nvidia; install the plugin if it is missing");
}

/* Docker has no runtime classes: pods get its default runtime. */
static void check_docker(struct gp_exam *exam)
{
    static const char path[] = "/etc/docker/daemon.json";
    if (gp_docker_is_nvidia_default(exam)) {
        if (!has_plugin(exam))
            (void)(gp_container_report_plugin(exam, NULL, true) ||
                   gp_container_report_unprivileged(exam, NULL, true));
        return;
    }
    gp_container_report_lacking(
        exam, "Kubernetes' containers do not get its runtime from docker", path,
        gp_files_exist(&exam->files, path) ? "default-runtime is not nvidia" : "missing");
    if (gp_files_exist(&exam->files, "/usr/bin/nvidia-ctk"))
        gp_exam_command(exam, "make it docker's default",
                        "sudo nvidia-ctk runtime configure --runtime=docker --set-as-default");
    else
        gp_exam_advice(exam,
                       "make it docker's default: \"default-runtime\": \"nvidia\" in %s, "
                       "next to \"runtimes\"",
                       path);
    gp_exam_command(exam, "", "sudo systemctl restart docker");
}

/* ---- a runtime that is gone ---- */

#define OPERATOR_FOLDER "/usr/local/nvidia/toolkit"

/* The first runtime of NVIDIA that a configuration names by its path; NULL: none. */
static const char *runtime_path(struct gp_exam *exam, const char *text)
{
    static const char key[] = "BinaryName";
    for (const char *p = text ? strstr(text, key) : NULL; p; p = strstr(p, key)) {
        p += sizeof(key) - 1;
        p += strspn(p, " \t=\"'");
        size_t n = strcspn(p, "\"' \t\r\n");
        if (*p == '/' && memmem(p, n, "nvidia", 6))
            return gp_exam_text(exam, "%.*s", (int)n, p);
    }
    return NULL;
}

/* Whether it is what an Operator has left that is no longer there: its toolkit looks for the driver
 * in a container, but the driver is the host's. */
static bool is_left(struct gp_exam *exam, const char *runtime)
{
    const char *settings =
        text_of(exam, OPERATOR_FOLDER "/.config/nvidia-container-runtime/config.toml");
    return strncmp(runtime, OPERATOR_FOLDER, sizeof(OPERATOR_FOLDER) - 1) == 0 &&
           !gp_files_exist(&exam->files, "/run/nvidia") && settings &&
           strstr(settings, "\"/run/nvidia/driver\"") && gp_install_library(gp_install_of(exam));
}

/* The engines of k3s and RKE2 look for a runtime when they start, first in the Operator's
 * directory; the settings of others are changed by the toolkit. */
static void fix_runtime(struct gp_exam *exam, const char *service)
{
    if (!gp_files_exist(&exam->files, "/usr/bin/nvidia-container-runtime"))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    if (gp_files_exist(&exam->files, OPERATOR_FOLDER))
        gp_exam_command(exam, "put what the Operator has left aside",
                        "sudo mv " OPERATOR_FOLDER " " OPERATOR_FOLDER ".before");
    if (service)
        gp_exam_command(exam, "it looks for the toolkit when it starts",
                        "sudo systemctl restart '%s*'", service);
    else
        set_default(exam, "name the toolkit of this system");
}

/* Pods of the runtime do not start; false: it is there. */
static bool report_runtime(struct gp_exam *exam, const char *path, const char *text,
                           const char *service)
{
    const char *runtime = runtime_path(exam, text);
    bool is_missing = runtime && !gp_files_exist(&exam->files, runtime);
    if (!runtime || (!is_missing && !is_left(exam, runtime)))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "the container engine uses a runtime of NVIDIA that %s",
                   is_missing ? "does not exist" : "the GPU Operator has left behind");
    gp_exam_evidence(exam, path, "BinaryName = \"%s\"", runtime);
    if (is_missing)
        gp_exam_evidence(exam, runtime, "missing");
    else
        gp_exam_evidence(exam, OPERATOR_FOLDER "/.config/nvidia-container-runtime/config.toml",
                         "looks for the driver in /run/nvidia/driver, which does not exist");
    gp_exam_why(exam, "Pods with this runtime do not start, or find no GPU: the device plugin "
                      "does not find NVML.");
    fix_runtime(exam, service);
    return true;
}

static void check_bundled(struct gp_exam *exam, const char *config, const char *service)
{
    const char *text = text_of(exam, config);
    if (!text || gp_container_report_template(exam, config, service) ||
        report_runtime(exam, config, text, service))
        return;
    if (strstr(text, "nvidia")) {
        check_default(exam, config, text, service);
        return;
    }
    if (gp_container_lacks_socket(exam)) /* the Operator's toolkit has not come so far */
        return;
    gp_container_report_lacking(exam, "k3s or RKE2 has not found it", config,
                                "no runtime is called nvidia");
    gp_exam_command(exam, "it looks for the toolkit when it starts", "sudo systemctl restart '%s*'",
                    service);
}

static void mend_cri(struct gp_exam *exam, const char *path, const char *note)
{
    gp_exam_command(exam, note,
                    "sudo sed -Ei.before "
                    "'/^disabled_plugins/s/\"(io\\.containerd\\.grpc\\.v1\\.)?cri\",? *//' %s",
                    gp_exam_quoted(exam, path));
}

/* The file of k0s is written by the GPU Operator, which begins with containerd's own. */
static void report_cri_off(struct gp_exam *exam, const char *path)
{
    bool is_own = strcmp(path, containerd_path) == 0;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s has its interface for Kubernetes turned off: no pod can start",
                   is_own ? "containerd" : "k0s' containerd");
    gp_exam_evidence(exam, path, "disabled_plugins has \"cri\"");
    gp_exam_why(exam, "Docker's package installs this setting, as docker does not need the "
                      "interface. The kubelet stops with \"unknown service "
                      "runtime.v1.RuntimeService\", and no runtime for GPUs is configured.");
    mend_cri(exam, path, "turn it on; the original file is kept next to it");
    if (is_own) {
        gp_exam_command(exam, "", "sudo systemctl restart containerd");
        return;
    }
    if (is_cri_off(text_of(exam, containerd_path)))
        mend_cri(exam, containerd_path, "which the GPU Operator has copied it from");
    gp_exam_command(exam, "", "sudo systemctl restart %s",
                    gp_service_is_installed(exam, "k0scontroller.service") ? "k0scontroller"
                                                                           : "k0sworker");
}

/* The files of a directory that containerd or CRI-O adds to its configuration, as one text. */
static const char *drop_ins(struct gp_exam *exam, const char *folder)
{
    char **names;
    const char *all = "";
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *text = text_of(exam, gp_exam_text(exam, "%s/%s", folder, names[i]));
        all = text ? gp_exam_text(exam, "%s%s\n", all, text) : all;
    }
    return all;
}

/* containerd adds only the files that "imports" names. */
static void report_import(struct gp_exam *exam, const char *folder, const char *text)
{
    gp_container_report_lacking(exam, "containerd does not read the file that names its runtime",
                                containerd_path,
                                gp_exam_text(exam, "imports is without %s/*.toml", folder));
    gp_exam_evidence(exam, folder, "has a runtime that is called nvidia");
    if (strstr(text, "\nimports") && !strstr(text, "\nimports = []"))
        gp_exam_advice(exam, "add \"%s/*.toml\" to the list imports in %s", folder,
                       containerd_path);
    else
        gp_exam_command(exam, "the original file is kept next to it",
                        "sudo sed -i.before -e '1i imports = [\"%s/*.toml\"]' -e "
                        "'/^imports *=/d' %s",
                        folder, containerd_path);
    gp_exam_command(exam, "", "sudo systemctl restart containerd");
}

static void check_containerd(struct gp_exam *exam)
{
    static const char folder[] = "/etc/containerd/conf.d";
    const char *text = text_of(exam, containerd_path), *more = drop_ins(exam, folder);
    bool is_main = text && strstr(text, "nvidia"), is_more = strstr(more, "nvidia");
    const char *all = gp_exam_text(exam, "%s%s", more, text ? text : "");
    if (is_cri_off(text))
        report_cri_off(exam, containerd_path);
    else if (is_main && !is_more && gp_container_report_section(exam, containerd_path, text))
        return;
    else if (report_runtime(exam, containerd_path, all, NULL))
        return;
    else if (is_more && text && !is_main && !strstr(text, "conf.d"))
        report_import(exam, folder, gp_exam_text(exam, "\n%s", text));
    else if (is_main || is_more)
        check_default(exam, containerd_path, all, NULL);
    else if (!gp_container_report_overwritten(exam, containerd_path, text)) {
        const char *shim = text ? gp_container_shim_runtime(exam, text) : NULL;
        gp_container_report_lacking(
            exam, "containerd does not know its runtime", containerd_path,
            shim   ? gp_exam_text(exam, "runtime = \"%s\", and none is called nvidia", shim)
            : text ? "no runtime is called nvidia"
                   : "missing");
        set_default(exam, "add it to containerd's configuration");
    }
}

/* ---- MicroK8s ---- */

/* It writes its configuration from the template at each start. */
static void check_microk8s_default(struct gp_exam *exam, const char *text)
{
    static const char template[] = MICROK8S_ARGS "/containerd-template.toml";
    static const char own[] = "nvidia-container-runtime";
    const char *name = default_of(exam, text);
    bool has_own = strstr(text, gp_exam_text(exam, ".runtimes.%s]", own));
    if (!name || is_nvidia(exam, text, name) || has_plugin(exam) ||
        gp_files_exist(&exam->files, "/usr/local/nvidia/toolkit"))
        return;
    gp_exam_report(exam, gp_container_engine(exam) ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "MicroK8s' containers do not get NVIDIA's runtime by default");
    gp_exam_evidence(exam, MICROK8S_CONFIG, "default_runtime_name = \"%s\"", name);
    gp_exam_evidence(exam, "/var/lib/kubelet/device-plugins", "no socket of NVIDIA's plugin");
    gp_exam_why(exam,
                "Pods get no GPU, and the device plugin finds none. What is changed in "
                "containerd.toml is lost when MicroK8s starts: it writes it from %s.",
                template);
    gp_exam_command(exam, "make it the default; the original file is kept next to it",
                    "sudo sed -Ei.before 's/^( *default_runtime_name *= *).*/\\1\"%s\"/' %s",
                    has_own ? own : "nvidia", template);
    gp_exam_command(exam, "", "sudo snap restart microk8s.daemon-containerd");
    gp_exam_advice(exam, "then delete the pod of the device plugin, which is started again; or, "
                         "without an own plugin, use the addon: sudo microk8s enable gpu");
}

/* Its addon installs the GPU Operator, which adds the runtime. The toolkit of the host is for it if
 * there is no other engine; otherwise nobody need have meant to use GPUs in it. */
static void check_microk8s(struct gp_exam *exam)
{
    const char *text = text_of(exam, MICROK8S_CONFIG);
    if (text && strstr(text, "nvidia"))
        check_microk8s_default(exam, text);
    if (!text || strstr(text, "nvidia"))
        return;
    gp_exam_report(exam, gp_container_engine(exam) ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "MicroK8s' containers cannot use GPUs: its addon for them is not enabled");
    gp_exam_evidence(exam, MICROK8S_CONFIG, "no runtime is called nvidia");
    gp_exam_why(exam, "MicroK8s brings its own containerd, which the toolkit of this system does "
                      "not configure.");
    gp_exam_command(exam, "it installs NVIDIA's GPU Operator, and uses the driver of this system",
                    "sudo microk8s enable gpu");
}

void gp_container_check_kubelet(struct gp_exam *exam)
{
    const char *service, *config = bundled_config(exam, &service), *closed = closed_import(exam);
    /* Where a runtime is named now, the line is of the time before. */
    (void)gp_log_known_of(exam, "k8s.no-nvidia-runtime");
    if (closed)
        report_cri_off(exam, closed);
    else if (config)
        check_bundled(exam, config, service);
    else if (!has_kubelet(exam))
        check_microk8s(exam);
    else if (uses_docker(exam))
        check_docker(exam);
    else
        check_containerd(exam);
}

/* ---- CRI-O ---- */

static const char hook_folder[] = "/run/containers/oci/hooks.d";

bool gp_container_has_crio(struct gp_exam *exam)
{
    return exam->machine.nvidia_count > 0 && !exam->machine.container &&
           (gp_files_exist(&exam->files, "/usr/bin/crio") ||
            gp_files_exist(&exam->files, "/usr/local/bin/crio"));
}

/* The settings of CRI-O, with the files that are added to them. */
static const char *crio_text(struct gp_exam *exam)
{
    const char *text = text_of(exam, "/etc/crio/crio.conf");
    return gp_exam_text(exam, "%s%s%s", text ? text : "", drop_ins(exam, "/etc/crio/crio.conf.d"),
                        drop_ins(exam, "/etc/crio/conf.d"));
}

/* The GPU Operator puts its hook into a directory that CRI-O does not search by itself. */
static void report_hook(struct gp_exam *exam)
{
    static const char path[] = "/etc/crio/crio.conf";
    static const char file[] = "/etc/crio/crio.conf.d/99-nvidia.conf";
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "CRI-O does not use NVIDIA's hook: it does not search the hook's directory");
    gp_exam_evidence(exam, hook_folder, "oci-nvidia-hook.json");
    gp_exam_evidence(exam, path, "hooks_dir is without %s", hook_folder);
    gp_exam_why(exam, "Pods get no GPU: the device plugin does not find NVML and does not start.");
    gp_exam_command(exam, "add the directory",
                    "printf '[crio.runtime]\\nhooks_dir = [\"/usr/share/containers/oci/hooks.d\", "
                    "\"%s\"]\\n' | sudo tee %s",
                    hook_folder, file);
    gp_exam_command(exam, "", "sudo systemctl restart crio");
}

/* A toolkit that was installed for CRI-O, which uses neither its runtime nor its hook. */
static void report_crio(struct gp_exam *exam)
{
    static const char hook[] = "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json";
    if (!uses_crio(exam) || !gp_files_exist(&exam->files, "/usr/bin/nvidia-ctk") ||
        gp_files_exist(&exam->files, hook) || gp_container_find_cdi(exam))
        return;
    gp_container_report_lacking(exam, "CRI-O does not know its runtime", "/etc/crio",
                                "no runtime is called nvidia");
    gp_exam_command(exam, "add it to CRI-O's configuration",
                    "sudo nvidia-ctk runtime configure --runtime=crio --set-as-default");
    gp_exam_command(exam, "", "sudo systemctl restart crio");
}

void gp_container_check_crio(struct gp_exam *exam)
{
    const char *text = crio_text(exam);
    bool has_hook =
        gp_files_exist(&exam->files, gp_exam_text(exam, "%s/oci-nvidia-hook.json", hook_folder));
    if (strstr(text, hook_folder) || strstr(text, "nvidia"))
        return;
    if (has_hook)
        report_hook(exam);
    else
        report_crio(exam);
}
