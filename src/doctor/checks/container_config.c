/* Settings of a host that keep containers from using its GPUs. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/access.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Docker Desktop ---- */

#define DESKTOP "/opt/docker-desktop"

bool gp_container_has_desktop(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    bool is_amd = m->amd_count > 0 && !m->container && gp_files_exist(&exam->files, "/opt/rocm");
    return (gp_container_is_host(exam) || is_amd) && !m->is_wsl &&
           gp_files_exist(&exam->files, DESKTOP);
}

/* The context in docker's settings of the user, which says whose containers its command starts. */
static const char *context_of(struct gp_exam *exam, const char **ret_path)
{
    static const char key[] = "\"currentContext\"";
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    *ret_path = gp_exam_text(exam, "%s/.docker/config.json", home ? home : "/root");
    const char *text = gp_files_text(&exam->files, &exam->arena, *ret_path, 1 << 16, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    if (!found)
        return "";
    found += sizeof(key) - 1;
    found += strspn(found, " \t\r\n:\"");
    return gp_exam_text(exam, "%.*s", (int)strcspn(found, "\"\r\n"), found);
}

void gp_container_check_desktop(struct gp_exam *exam)
{
    const char *path, *context = context_of(exam, &path);
    if (context[0] && strncmp(context, "desktop", 7) != 0)
        return;
    gp_exam_report(exam,
                   gp_container_has_toolkit(exam) || context[0] ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "Docker Desktop runs containers in a virtual machine without GPUs");
    gp_exam_evidence(exam, DESKTOP, "present");
    if (context[0])
        gp_exam_evidence(exam, path, "context %s", context);
    gp_exam_why(exam, "On Linux it passes no GPU to its virtual machine, whatever is installed on "
                      "this system: \"could not select device driver\", no NVIDIA runtime, or no "
                      "/dev/kfd.");
    gp_exam_command(exam, "use the docker of this system (docker-ce or docker.io) instead",
                    "docker context use default");
    gp_exam_advice(exam, "if that one is missing, install docker-ce; then remove Docker Desktop");
}

/* ---- the runtime's configuration ---- */

static const char config_path[] = "/etc/nvidia-container-runtime/config.toml";

bool gp_container_has_config(struct gp_exam *exam)
{
    return gp_container_is_host(exam) && gp_files_exist(&exam->files, config_path);
}

/* The value of a key that is not in a comment, without quotes, and its line; NULL: none, or the
 * file cannot be read. */
static const char *value_in(struct gp_exam *exam, const char *path, const char *key,
                            unsigned *ret_number)
{
    enum { MOST = 16384 };
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, NULL);
    unsigned number = 1;
    if (!text)
        gp_exam_unreadable(exam, path, -errno);
    for (const char *line = text; line; line = strchr(line, '\n'), number++) {
        line += *line == '\n';
        const char *word = line + strspn(line, " \t");
        size_t n = strlen(key), space = strncmp(word, key, n) == 0 ? strspn(word + n, " \t") : 0;
        if (strncmp(word, key, n) != 0 || word[n + space] != '=')
            continue;
        word += n + space + 1;
        word += strspn(word, " \t\"'");
        *ret_number = number;
        return gp_exam_text(exam, "%.*s", (int)strcspn(word, " \t\"'#\r\n"), word);
    }
    return NULL;
}

const char *gp_container_config_value(struct gp_exam *exam, const char *key, unsigned *ret_number)
{
    return value_in(exam, config_path, key, ret_number);
}

static const char *place_of(struct gp_exam *exam, unsigned number)
{
    return gp_exam_text(exam, "%s:%u", config_path, number);
}

const char *gp_container_runtime_config(struct gp_exam *exam)
{
    static const char *const paths[] = {"/etc/docker/daemon.json", "/etc/containerd/config.toml"};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, paths[i], 1 << 20, NULL);
        if (text && strstr(text, "nvidia-container-runtime"))
            return paths[i];
    }
    return NULL;
}

/* Paths in the configuration that do not exist, such as those of another installation. */
static void check_paths(struct gp_exam *exam)
{
    static const char *const keys[] = {"root", "path"};
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++) {
        unsigned number = 0;
        const char *value = gp_container_config_value(exam, keys[i], &number);
        if (!value || value[0] != '/' || gp_files_exist(&exam->files, value))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "containers with a GPU do not start: the toolkit's settings name %s, which "
                       "does not exist",
                       value);
        gp_exam_evidence(exam, place_of(exam, number), "%s = %s", keys[i], value);
        gp_exam_why(exam,
                    "The GPU Operator sets such paths for a driver in a container. With a driver "
                    "that is installed on the host they must not be set.");
        gp_exam_command(exam, "comment the line out; the original file is kept next to it",
                        "sudo sed -i.before '%us/^/#/' %s", number, config_path);
    }
}

/* The toolkit calls the driver as a user without rights, unless its settings name another; on some
 * distributions only a group may open the device files. */
static void check_user(struct gp_exam *exam)
{
    static const char path[] = "/dev/nvidiactl";
    static const char first[] = "1.18"; /* whose runtime asks the driver itself, as root */
    enum { FOR_ALL = 06, FOR_GROUP = 060 };
    unsigned number = 0;
    const char *version = gp_container_engine_version(exam, "nvidia-container-toolkit");
    struct gp_access access = gp_access_of(exam, path);
    const char *mode = gp_container_config_value(exam, "mode", &number),
               *user = gp_container_config_value(exam, "user", &number);
    if (!access.is_there || (access.mode & (FOR_ALL | FOR_GROUP)) != FOR_GROUP || user ||
        (mode && strcmp(mode, "cdi") == 0) ||
        (exam->machine.is_jetson && mode && strcmp(mode, "legacy") != 0) ||
        !gp_container_runtime_config(exam) ||
        (version[0] && gp_version_compare(version, first) >= 0))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "containers with a GPU do not start: the toolkit may not open the device files");
    gp_exam_evidence(exam, path, "mode %04o, group %s", access.mode, access.group_name);
    gp_exam_evidence(exam, config_path, "user is not set: it is 65534, without rights");
    gp_exam_why(exam, "nvidia-container-cli drops root's rights before it asks the driver: "
                      "\"initialization error: cuda error: no cuda-capable device is detected\", "
                      "or \"nvml error: insufficient permissions\".");
    const char *script = gp_exam_text(exam, "s/^\\[nvidia-container-cli\\]/&\\nuser = \"root:%s\"/",
                                      access.group_name);
    gp_exam_command(exam, "have it work as a member of that group; the original file is kept",
                    "sudo sed -i.before %s %s", gp_exam_quoted(exam, script), config_path);
}

static const char *rootless_path(struct gp_exam *exam)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    return gp_exam_text(exam, "%s/.config/docker/daemon.json", home ? home : "/root");
}

const char *gp_container_rootless_config(struct gp_exam *exam)
{
    const char *path = rootless_path(exam);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, NULL);
    return text && strstr(text, "nvidia-container-runtime") ? path : NULL;
}

/* Whether the docker command of this user talks to a docker without root. */
static bool uses_rootless(struct gp_exam *exam)
{
    const char *host = gp_machine_variable(&exam->machine, "DOCKER_HOST"), *path;
    return host && host[0] ? strstr(host, "/run/user/") != NULL
                           : strcmp(context_of(exam, &path), "rootless") == 0;
}

/* Whether something that starts containers runs as root. Docker's package starts containerd, too,
 * also where only others than root use docker. */
static bool has_rootful(struct gp_exam *exam)
{
    static const char *const names[] = {"dockerd", "k3s", "rke2", "crio", "kubelet", "kubelite"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (gp_processes_run_as(exam, names[i], true))
            return true;
    return false;
}

/* Whether docker is used without root: configured so for the GPUs or for this user, or seen
 * running. */
static bool has_rootless(struct gp_exam *exam)
{
    return gp_container_rootless_config(exam) || uses_rootless(exam) ||
           gp_processes_run_as(exam, "dockerd", false);
}

/* Before Docker 27.4 the script that starts it hides /etc/cdi and /run/cdi: moby/moby#47676. Only
 * who turns CDI on needs them. */
static bool hides_cdi(struct gp_exam *exam)
{
    enum { MOST = 1 << 16 };
    const char *script =
        gp_files_text(&exam->files, &exam->arena, "/usr/bin/dockerd-rootless.sh", MOST, NULL);
    const char *config = gp_files_text(&exam->files, &exam->arena, rootless_path(exam), MOST, NULL);
    return script && config && !strstr(script, "/cdi") && strstr(config, "\"cdi\"") &&
           !strstr(config, "\"cdi-spec-dirs\"") && gp_container_find_cdi(exam);
}

static void report_hidden(struct gp_exam *exam)
{
    const char *spec = gp_container_find_cdi(exam), *path = rootless_path(exam);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "docker without root does not see the CDI specification of the GPUs");
    gp_exam_evidence(exam, spec, "present");
    gp_exam_evidence(exam, "/usr/bin/dockerd-rootless.sh", "hides the host's /etc and /run");
    gp_exam_evidence(exam, path, "no cdi-spec-dirs");
    gp_exam_why(exam, "docker run --device nvidia.com/gpu=all fails with \"unresolvable CDI "
                      "devices\", though it works as root. Docker 27.4 and newer see the files.");
    gp_exam_command(exam, "as this user, and again after each update of the driver",
                    "mkdir -p ~/.docker/cdi && cp %s ~/.docker/cdi/", gp_exam_quoted(exam, spec));
    gp_exam_advice(exam, "add to %s: \"cdi-spec-dirs\": [\"%s/.docker/cdi\"]", path,
                   gp_exam_text(exam, "%.*s", (int)(strstr(path, "/.config/") - path), path));
    gp_exam_command(exam, "", "systemctl --user restart docker");
    gp_exam_advice(exam, "or update docker to 27.4 or newer");
}

bool gp_container_is_rootless(struct gp_exam *exam)
{
    return gp_container_is_host(exam) && gp_container_has_toolkit(exam) && uses_rootless(exam) &&
           (hides_cdi(exam) ||
            (!gp_container_rootless_config(exam) && !gp_container_find_cdi(exam)));
}

void gp_container_check_rootless(struct gp_exam *exam)
{
    const char *path = rootless_path(exam);
    const char *host = gp_machine_variable(&exam->machine, "DOCKER_HOST");
    if (hides_cdi(exam)) {
        report_hidden(exam);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "docker runs without root, and does not know NVIDIA's runtime");
    gp_exam_evidence(exam, host && host[0] ? "DOCKER_HOST" : "docker's context", "%s",
                     host && host[0] ? host : "rootless");
    gp_exam_evidence(exam, path, "%s",
                     gp_files_exist(&exam->files, path) ? "no runtime is called nvidia"
                                                        : "missing");
    gp_exam_why(exam,
                "It reads its own settings, not /etc/docker/daemon.json: \"unknown or invalid "
                "runtime name: nvidia\".");
    gp_exam_command(exam, "as this user",
                    "nvidia-ctk runtime configure --runtime=docker "
                    "--config=$HOME/.config/docker/daemon.json");
    gp_exam_command(exam, "", "systemctl --user restart docker");
    gp_exam_command(exam,
                    gp_container_runtime_config(exam)
                        ? "which containers without root need; root's docker must then give its "
                          "containers the GPUs by CDI, --device nvidia.com/gpu=all"
                        : "which containers without root need",
                    "sudo nvidia-ctk config --in-place --set "
                    "nvidia-container-cli.no-cgroups=true");
}

static void check_rootless(struct gp_exam *exam)
{
    const char *path = gp_container_rootless_config(exam);
    if (!path || gp_container_runtime_config(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "rootless containers with a GPU do not start: no-cgroups is not set");
    gp_exam_evidence(exam, path, "names nvidia-container-runtime");
    gp_exam_evidence(exam, config_path, "no-cgroups is false");
    gp_exam_why(exam, "Without root the toolkit may not change control groups: \"operation not "
                      "permitted\".");
    gp_exam_command(exam, "",
                    "sudo nvidia-ctk config --in-place --set "
                    "nvidia-container-cli.no-cgroups=true");
    gp_exam_command(exam, "", "systemctl --user restart docker");
}

void gp_container_check_cgroups(struct gp_exam *exam)
{
    unsigned number = 0;
    const struct gp_finding *before = exam->last;
    const char *value = gp_container_config_value(exam, "no-cgroups", &number);
    if (exam->last != before)
        return; /* it cannot be read */
    check_paths(exam);
    gp_container_check_scopes(exam, value && strcmp(value, "true") == 0);
    check_user(exam);
    if (!value || strcmp(value, "true") != 0) {
        check_rootless(exam);
        return;
    }
    const bool is_rootful = gp_container_runtime_config(exam) != NULL;
    const bool is_rootless = has_rootless(exam);
    if (!is_rootful && is_rootless && !has_rootful(exam)) {
        gp_exam_report(exam, GP_VERDICT_OK, "no-cgroups is set, as docker without root needs it");
        return;
    }
    gp_exam_report(exam, is_rootful ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "rootful containers cannot use their GPUs: no-cgroups is set");
    gp_exam_evidence(exam, place_of(exam, number), "no-cgroups = true");
    gp_exam_why(exam, "This setting is only for rootless containers. With it, no other container "
                      "gets permission to use the devices.");
    if (is_rootless) {
        gp_exam_advice(exam, "docker without root is used here, too, and needs the setting: give "
                             "rootful containers the GPUs by CDI (--device nvidia.com/gpu=all)");
        return;
    }
    gp_exam_command(exam,
                    is_rootful
                        ? "for rootful containers"
                        : "unless containers without root use the GPUs: they need the setting",
                    "sudo nvidia-ctk config --in-place --set "
                    "nvidia-container-cli.no-cgroups=false");
    if (gp_files_exist(&exam->files, "/usr/bin/docker"))
        gp_exam_command(exam, "", "sudo systemctl restart docker");
}

/* ---- the toolkit of the GPU Operator ---- */

static const char operator_path[] =
    "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml";

bool gp_container_has_operator(struct gp_exam *exam)
{
    return exam->machine.nvidia_count > 0 && !exam->machine.container &&
           gp_files_exist(&exam->files, "/run/nvidia") && /* gone after a restart without it */
           gp_files_exist(&exam->files, operator_path);
}

void gp_container_check_operator(struct gp_exam *exam)
{
    unsigned number = 0;
    const char *root = value_in(exam, operator_path, "root", &number);
    const struct gp_driver_library *library = gp_install_library(gp_install_of(exam));
    const bool is_microk8s = gp_files_exist(&exam->files, "/snap/microk8s");
    if (gp_container_report_socket(exam) || !root || !root[0] || strcmp(root, "/") == 0 ||
        !library || gp_system_library(exam, root, "libnvidia-ml.so.1"))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the GPU Operator looks for the driver in %s, but it is installed on the host",
                   root);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", operator_path, number), "root = %s", root);
    gp_exam_evidence(exam, library->path, "present");
    gp_exam_why(exam,
                "Its toolkit hands the driver to containers from there: \"libnvidia-ml.so.1: "
                "cannot open shared object file\". It is configured to install the driver itself.");
    gp_exam_command(exam, "it restarts the Operator's pods on all nodes",
                    "%skubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge "
                    "-p '{\"spec\":{\"driver\":{\"enabled\":false}}}'",
                    is_microk8s ? "microk8s " : "");
}

/* ---- docker in an LXC container ---- */

/* Without the host's root (a user namespace) nothing may change the rules of its devices. */
static bool is_privileged(const struct gp_exam *exam)
{
    char line[64];
    return gp_files_line(&exam->files, "/proc/self/uid_map", line, sizeof(line)) &&
           strstr(line, "4294967295");
}

bool gp_container_is_nested(struct gp_exam *exam)
{
    return gp_machine_is_lxc(&exam->machine) && gp_files_exist(&exam->files, "/usr/bin/dockerd") &&
           gp_files_exist(&exam->files, config_path) && !is_privileged(exam);
}

void gp_container_check_nested(struct gp_exam *exam)
{
    unsigned number = 0;
    const char *value = gp_container_config_value(exam, "no-cgroups", &number);
    if ((value && strcmp(value, "true") == 0) || gp_container_runs_gpus(exam))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "docker's containers with a GPU do not start in this LXC container: no-cgroups "
                   "is not set");
    gp_exam_evidence(exam, value ? place_of(exam, number) : config_path, "no-cgroups is %s",
                     value ? value : "not set");
    gp_exam_why(exam,
                "In an unprivileged container the toolkit may not change the rules for devices: "
                "\"bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted\". LXC has "
                "already allowed them.");
    if (gp_files_exist(&exam->files, "/usr/bin/nvidia-ctk"))
        gp_exam_command(exam, "",
                        "sudo nvidia-ctk config --in-place --set "
                        "nvidia-container-cli.no-cgroups=true");
    else
        gp_exam_command(exam, "the original file is kept next to it",
                        "sudo sed -i.before 's/^[ #]*no-cgroups *=.*/no-cgroups = true/' %s",
                        config_path);
    gp_exam_command(exam, "", "sudo systemctl restart docker");
}

bool gp_container_has_mode(struct gp_exam *exam)
{
    const char *text = gp_container_is_host(exam)
                           ? gp_files_text(&exam->files, &exam->arena, config_path, 1 << 14, NULL)
                           : NULL;
    return text && strstr(text, "\"cdi\"");
}

/* In this mode the runtime needs a specification of the devices, which nothing else generates;
 * newer versions do it themselves for "auto". */
void gp_container_check_mode(struct gp_exam *exam)
{
    static const char *const specs[] = {"/etc/cdi", "/var/run/cdi", "/run/cdi"};
    unsigned number = 0;
    const char *value = gp_container_config_value(exam, "mode", &number);
    char **names;
    if (!value || strcmp(value, "cdi") != 0)
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(specs); i++)
        if (gp_files_list(&exam->files, &exam->arena, specs[i], &names) > 0)
            return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "containers with a GPU do not start: the runtime's mode is cdi, but there is no "
                   "CDI specification");
    gp_exam_evidence(exam, place_of(exam, number), "mode = cdi");
    gp_exam_evidence(exam, "/etc/cdi, /var/run/cdi", "empty or missing");
    gp_exam_why(exam, "The runtime looks the devices up there: \"unresolvable CDI devices\".");
    gp_exam_command(exam, "generate it, and again after each update of the driver",
                    "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
    gp_exam_command(exam, "or let the runtime choose",
                    "sudo nvidia-ctk config --in-place --set "
                    "nvidia-container-runtime.mode=auto");
}

static bool is_script(const struct gp_exam *exam, const char *path)
{
    char head[4];
    return gp_files_read(&exam->files, path, head, sizeof(head)) >= 2 &&
           strncmp(head, "#!", 2) == 0;
}

static void set_ldconfig(struct gp_exam *exam, const char *value)
{
    gp_exam_command(exam, "the original file is kept next to it",
                    "sudo sed -i.before 's|^[ #]*ldconfig *=.*|ldconfig = \"%s\"|' %s",
                    gp_exam_quoted(exam, value), config_path);
}

/* The host's ldconfig ("@…") did not start in a container, though nothing is wrong with the path,
 * by the toolkit's log or by what it left undone. `bare` is the image's own, which containers of
 * glibc have. */
static void check_start(struct gp_exam *exam, const char *path, const char *bare, unsigned number)
{
    static const char mended[] = "1.9.0"; /* NVIDIA/nvidia-docker#1399 */
    const struct gp_log_known *known = gp_log_known_of(exam, "container.ldconfig-start");
    const char *version = gp_container_engine_version(exam, "libnvidia-container1");
    struct gp_container_unlinked unlinked;
    bool is_logged = known && strstr(known->text, path);
    bool is_seen = gp_container_find_unlinked(exam, &unlinked);
    if (!is_logged && !is_seen)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the toolkit cannot start the host's ldconfig in containers");
    if (is_logged)
        gp_log_show_known(exam, known);
    if (is_seen)
        gp_exam_evidence(exam, unlinked.library,
                         "without libcuda.so.1, in the running container %s", unlinked.container);
    gp_exam_evidence(exam, place_of(exam, number), "ldconfig = @%s", path);
    gp_exam_why(exam, "The driver's libraries are then not in the container's cache, and lack the "
                      "links libcuda.so.1 and libnvidia-ml.so.1: nvidia-smi \"couldn't find "
                      "libnvidia-ml.so\". Without the @ the toolkit runs the image's own "
                      "ldconfig.");
    set_ldconfig(exam, bare);
    if (is_seen)
        gp_exam_command(exam, "likewise other containers with a GPU", "sudo docker restart %s",
                        gp_exam_quoted(exam, unlinked.container));
    if (version[0] && gp_version_compare(version, mended) < 0)
        gp_exam_advice(exam,
                       "or update NVIDIA Container Toolkit: %s and newer start it on more systems, "
                       "so that the @ can stay",
                       mended);
}

/* The path of ldconfig on the host ("@…"): Ubuntu's, and Debian's before 9, is a script around
 * ldconfig.real, which cannot run in a container that lacks the latter; other distributions have no
 * ldconfig.real. Versions of the toolkit with nvidia-ctk see through the script. */
void gp_container_check_ldconfig_path(struct gp_exam *exam)
{
    unsigned number = 0;
    const char *value = gp_container_config_value(exam, "ldconfig", &number);
    if (!value || strncmp(value, "@/", 2) != 0)
        return;
    const char *path = value + 1, *end = strstr(path, ".real");
    const char *right = end ? gp_exam_text(exam, "%.*s", (int)(end - path), path)
                            : gp_exam_text(exam, "%s.real", path);
    bool is_missing = !gp_files_exist(&exam->files, path), is_wrapper = is_script(exam, path);
    if ((!is_missing && !is_wrapper) || !gp_files_exist(&exam->files, right) ||
        (is_wrapper && gp_files_exist(&exam->files, "/usr/bin/nvidia-ctk"))) {
        check_start(exam, path, end ? right : path, number);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_WARN, "containers with a GPU do not start: %s is %s", path,
                   is_missing ? "missing" : "a script, not ldconfig itself");
    gp_exam_evidence(exam, place_of(exam, number), "ldconfig = %s", value);
    gp_exam_evidence(exam, right, "present");
    gp_exam_why(exam, "The toolkit runs it to update the container's list of libraries: it reports "
                      "an \"ldcache error\", or programs do not find the driver's libraries.");
    set_ldconfig(exam, gp_exam_text(exam, "@%s", right));
}

/* ---- SELinux ---- */

bool gp_container_has_selinux(struct gp_exam *exam)
{
    char on[8];
    return gp_container_is_host(exam) &&
           gp_files_line(&exam->files, "/sys/fs/selinux/enforce", on, sizeof(on)) && on[0] == '1';
}

/* 1 or 0; −1: the policy has no such setting. */
static int policy_of(const struct gp_exam *exam, const char *name)
{
    char path[128], value[8];
    (void)snprintf(path, sizeof(path), "/sys/fs/selinux/booleans/%s", name);
    return gp_files_line(&exam->files, path, value, sizeof(value)) ? value[0] == '1' : -1;
}

/* The last denial of a GPU's device file to a container, for this permission ("": any); NULL: none
 * is logged. */
static const char *last_denial(struct gp_exam *exam, const char *path, const char *permission,
                               size_t *ret_length)
{
    enum { MOST = 1 << 20 };
    const char *text = gp_files_tail(&exam->files, &exam->arena, path, MOST, NULL);
    const char *denied = NULL;
    if (!text && errno != ENOENT && errno != ENOTDIR)
        gp_exam_unreadable(exam, path, -errno);
    for (const char *line = text; line && *line; line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        bool is_gpu = memmem(line, n, "xserver_misc_device_t", 21) || memmem(line, n, "nvidia", 6);
        if (is_gpu && memmem(line, n, "denied", 6) && memmem(line, n, "container", 9) &&
            memmem(line, n, "tclass=chr_file", 15) &&
            memmem(line, n, permission, strlen(permission))) {
            denied = line;
            *ret_length = n;
        }
        line += n;
    }
    return denied;
}

/* A denial, unless the policy has been changed since; or a policy that will deny, where containers
 * are meant to use GPUs. In older policies container_use_devices does not include mapping:
 * containers/container-selinux#243. */
void gp_container_check_selinux(struct gp_exam *exam)
{
    static const char path[] = "/var/log/audit/audit.log", device[] = "container_use_devices",
                      xserver[] = "container_use_xserver_devices";
    size_t n = 0;
    bool is_open = policy_of(exam, device) == 1;
    const char *denied = last_denial(exam, path, is_open ? " map " : "", &n);
    bool is_closed = policy_of(exam, device) == 0 && policy_of(exam, xserver) != 1;
    if (is_open ? !denied || policy_of(exam, xserver) == 1
                : !denied && !(is_closed && gp_container_has_toolkit(exam)))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "SELinux denies containers the GPU's device files");
    if (denied)
        gp_exam_evidence(exam, path, "%.*s", n < 400 ? (int)n : 400, denied);
    if (!denied || is_open)
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/fs/selinux/booleans/%s", device),
                         is_open ? "on, but mapping them is denied" : "off");
    gp_exam_why(exam, "In the container nvidia-smi then reports \"Insufficient Permissions\", and "
                      "CUDA finds no GPU.");
    const char *setting = !is_open ? device : policy_of(exam, xserver) == 0 ? xserver : NULL;
    if (setting)
        gp_exam_command(exam, "let containers use devices that are passed to them",
                        "sudo setsebool -P %s=true", setting);
    if (is_open)
        gp_exam_advice(exam, "%supdate the package container-selinux: newer ones allow it",
                       setting ? "or " : "");
    gp_exam_advice(exam, "%sstart the container with --security-opt label=disable",
                   setting || is_open ? "or " : "");
}
