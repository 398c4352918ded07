#include "doctor/checks/container_host.h"

#include "doctor/exam.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const struct gp_engine engines[] = {
    {"docker", "/usr/bin/docker", "sudo systemctl restart docker"},
    {"docker", "/snap/bin/docker", "sudo snap restart docker"},
    {"k3s", "/usr/local/bin/k3s", "sudo systemctl restart 'k3s*'"},
    {"RKE2", "/usr/local/bin/rke2", "sudo systemctl restart 'rke2*'"},
    {"podman", "/usr/bin/podman", NULL},
    {"enroot", "/usr/bin/enroot", ""},
    {"containerd", "/usr/bin/containerd", NULL},
    {"containerd", "/usr/local/bin/containerd", NULL}}; /* Kubespray's, or of containerd itself */

/* Whether the command docker is podman's: a script of the package podman-docker, or a link. */
bool gp_container_is_podman(const struct gp_exam *exam)
{
    static const char program[] = "/usr/bin/docker";
    char text[2048], real[GP_PATH_SIZE];
    long n = gp_files_read(&exam->files, program, text, sizeof(text));
    bool is_script = n > 2 && strncmp(text, "#!", 2) == 0;
    return (is_script && strstr(text, "podman")) ||
           (gp_files_real(&exam->files, program, real) && strstr(real, "podman"));
}

/* In WSL, a docker without its daemon belongs to Docker Desktop, which needs no toolkit here. */
static bool is_foreign(const struct gp_exam *exam, const struct gp_engine *engine)
{
    return strcmp(engine->program, "/usr/bin/docker") == 0 &&
           (gp_container_is_podman(exam) ||
            (exam->machine.is_wsl && !gp_files_exist(&exam->files, "/usr/bin/dockerd")));
}

const struct gp_engine *gp_container_engine(const struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(engines); i++)
        if (gp_files_exist(&exam->files, engines[i].program) && !is_foreign(exam, &engines[i]))
            return &engines[i];
    return NULL;
}

bool gp_container_is_host(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    bool has_gpu = m->nvidia_count > 0 || m->is_jetson ||
                   (m->is_wsl && gp_files_exist(&exam->files, "/usr/lib/wsl/lib/libcuda.so.1"));
    return !m->container && has_gpu && gp_container_engine(exam);
}

bool gp_container_has_toolkit(const struct gp_exam *exam)
{
    /* The last two are from before nvidia-ctk. */
    static const char *const programs[] = {"/usr/bin/nvidia-ctk",
                                           "/usr/local/bin/nvidia-ctk",
                                           "/usr/local/nvidia/toolkit/nvidia-ctk",
                                           "/usr/local/nvidia/toolkit/nvidia-container-runtime",
                                           "/usr/bin/nvidia-container-cli",
                                           "/usr/bin/nvidia-container-runtime"};
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++)
        if (gp_files_exist(&exam->files, programs[i]))
            return true;
    return false;
}

const char *gp_container_engine_version(struct gp_exam *exam, const char *name)
{
    const struct gp_package *package = gp_packages_installed(&exam->files, &exam->arena, name);
    const char *epoch = package ? strchr(package->version, ':') : NULL;
    return epoch ? epoch + 1 : package ? package->version : "";
}

/* The version that zypper has installed last, of its lines "date|install|NAME|VERSION|…"; "": none,
 * or unknown. */
static const char *zypper_version(struct gp_exam *exam, const char *name)
{
    enum { MOST = 1 << 22 };
    const char *key = gp_exam_text(exam, "|install|%s|", name), *last = NULL;
    size_t length = 0;
    const char *text =
        gp_files_tail(&exam->files, &exam->arena, "/var/log/zypp/history", MOST, &length);
    for (const char *p = text ? strstr(text, key) : NULL; p; p = strstr(p, key))
        last = p += strlen(key);
    return last ? gp_exam_text(exam, "%.*s", (int)strcspn(last, "|-\n"), last) : "";
}

const char *gp_container_toolkit_version(struct gp_exam *exam)
{
    static const char name[] = "nvidia-container-toolkit", library[] = "libnvidia-container.so.1";
    const char *version = gp_container_engine_version(exam, name);
    const char *path = gp_system_library(exam, "", library);
    char real[GP_PATH_SIZE];
    if (version[0])
        return version;
    const char *end = path && gp_files_real(&exam->files, path, real) ? strrchr(real, '/') : NULL;
    static const char stem[] = "/libnvidia-container.so.";
    if (end && strncmp(end, stem, sizeof(stem) - 1) == 0 && strchr(end + sizeof(stem) - 1, '.'))
        return gp_exam_text(exam, "%s", end + sizeof(stem) - 1);
    return zypper_version(exam, name);
}

bool gp_container_is_before_cdi(struct gp_exam *exam)
{
    const char *version = gp_container_engine_version(exam, "podman");
    return version[0] && gp_version_compare(version, GP_PODMAN_WITH_CDI) < 0;
}

const char *gp_container_lost_hook(const struct gp_exam *exam, char ret[GP_PATH_SIZE])
{
    static const char *const links[] = {"/usr/bin/nvidia-container-toolkit",
                                        "/usr/bin/nvidia-container-runtime-hook"};
    for (size_t i = 0; i < GP_ARRAY_LEN(links); i++) {
        struct stat st;
        if (gp_files_link(&exam->files, links[i], ret) &&
            gp_files_stat(&exam->files, links[i], &st) == -ENOENT)
            return links[i];
    }
    return NULL;
}

bool gp_container_has_dockershim(struct gp_exam *exam)
{
    static const char path[] = "/var/lib/kubelet/kubeadm-flags.env";
    const char *flags = gp_files_text(&exam->files, &exam->arena, path, 1 << 14, NULL);
    return flags && strstr(flags, "--network-plugin") && !strstr(flags, "--container-runtime");
}

void gp_container_report_lacking(struct gp_exam *exam, const char *engine, const char *path,
                                 const char *seen)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "NVIDIA Container Toolkit is installed, but %s", engine);
    gp_exam_evidence(exam, path, "%s", seen);
    gp_exam_why(exam, "Kubernetes' pods get no GPU: the device plugin finds none, or no runtime "
                      "for \"nvidia\" is configured.");
}

/* Systems whose web interface installs the toolkit with the driver, and configures docker. */
static const struct {
    const char *distro_id, *advice;
} appliances[] = {
    {"truenas", "in the web interface: Apps, Configuration, Settings: turn Install NVIDIA Drivers "
                "off and on again, which configures docker"},
    {"unraid", "in the web interface: Settings, Docker: turn docker off and on again; the plugin "
               "Nvidia Driver has brought the runtime"},
};

static const char *appliance_advice(const struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(appliances); i++)
        if (strcmp(exam->machine.distro_id, appliances[i].distro_id) == 0)
            return appliances[i].advice;
    return NULL;
}

bool gp_container_is_appliance(const struct gp_exam *exam)
{
    return appliance_advice(exam) != NULL;
}

void gp_container_configure_docker(struct gp_exam *exam)
{
    const char *advice = appliance_advice(exam);
    if (advice) {
        gp_exam_advice(exam, "%s", advice);
        return;
    }
    gp_exam_command(exam, "add it to docker's configuration",
                    "sudo nvidia-ctk runtime configure --runtime=docker");
    gp_exam_command(exam, "", "sudo systemctl restart docker");
}

void gp_container_configure_containerd(struct gp_exam *exam)
{
    gp_exam_command(exam, "write its path into containerd's configuration",
                    "sudo nvidia-ctk runtime configure --runtime=containerd");
    gp_exam_command(exam, "", "sudo systemctl restart containerd");
}
