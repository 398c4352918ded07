/* Releases of container engines that are known to break GPUs. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/log.h"

#include <string.h>

/* A release, up to the end of the text, of a distribution's package. */
static const struct release {
    const char *package, *version, *fixed, *why, *message; /* the entry that its failure logs */
    const char *update, *restart, *older, *link;
} releases[] = {
    {"docker", "1.13.1-108.", "a later release (RHBA-2020:0427)",
     "After NVIDIA's hook has allowed the GPUs, this release sets the container's rules for "
     "devices again, without them: \"Failed to initialize NVML: Unknown Error\".",
     "smi.nvml-unknown", "sudo yum update docker docker-client docker-common",
     "sudo systemctl restart docker",
     "or go back to the release before, of the same repository: yum list --showduplicates docker, "
     "then yum downgrade docker, docker-client and docker-common to 1.13.1-104, and restart docker",
     "https://github.com/NVIDIA/nvidia-docker/issues/1182"},
};

/* The version and release of a package that yum has installed: RHEL 7 keeps a folder for each,
 * "d/HASH-docker-1.13.1-108.git4ef4b30.el7-x86_64". *ret_path: the folder. "": none. */
static const char *yum_version(struct gp_exam *exam, const char *name, const char **ret_path)
{
    const char *folder = gp_exam_text(exam, "/var/lib/yum/yumdb/%c", name[0]);
    char **names;
    size_t length = strlen(name);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *at = strchr(names[i], '-');
        if (!at || strncmp(at + 1, name, length) != 0 || at[length + 1] != '-' ||
            at[length + 2] < '0' || at[length + 2] > '9')
            continue;
        *ret_path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        at += length + 2;
        const char *end = strrchr(at, '-');
        return gp_exam_text(exam, "%.*s", end ? (int)(end - at) : (int)strlen(at), at);
    }
    return "";
}

/* The installed one of the list; NULL: none. */
static const struct release *find(struct gp_exam *exam, const char **ret_version,
                                  const char **ret_path)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(releases); i++) {
        *ret_version = yum_version(exam, releases[i].package, ret_path);
        if (strncmp(*ret_version, releases[i].version, strlen(releases[i].version)) == 0)
            return &releases[i];
    }
    return NULL;
}

bool gp_container_has_faulty_release(struct gp_exam *exam)
{
    const char *version, *path;
    return gp_container_is_host(exam) && gp_container_has_toolkit(exam) &&
           find(exam, &version, &path);
}

void gp_container_check_release(struct gp_exam *exam)
{
    const char *version = "", *path = "";
    const struct release *release = find(exam, &version, &path);
    if (!release) /* updated since it was looked for */
        return;
    const struct gp_log_known *known = gp_log_known_of(exam, release->message);
    gp_exam_report(exam, known ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s %s has a fault: its containers may not open the GPUs", release->package,
                   version);
    gp_exam_evidence(exam, path, "installed; fixed in %s", release->fixed);
    if (known)
        gp_log_show_known(exam, known);
    gp_exam_why(exam, "%s", release->why);
    gp_exam_command(exam, "", "%s", release->update);
    gp_exam_command(exam, "it may stop running containers", "%s", release->restart);
    gp_exam_advice(exam, "%s", release->older);
    gp_exam_advice(exam, "until then: containers with --privileged, or with --device for each file "
                         "of the GPU, can open them");
    gp_exam_link(exam, release->link);
}

/* ---- the toolkit ---- */

void gp_container_go_back(struct gp_exam *exam)
{
    static const char *const names[] = {"nvidia-container-toolkit", "nvidia-container-toolkit-base",
                                        "libnvidia-container-tools", "libnvidia-container1"};
    static const char version[] = "1.17.8-1", note[] = "go back, all of its packages together";
    bool has_apt = gp_machine_has_apt(&exam->machine);
    const char *list = "", *held = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        list = gp_exam_text(exam, "%s %s%s%s", list, names[i], has_apt ? "=" : "-", version);
        held = gp_exam_text(exam, "%s %s", held, names[i]);
    }
    if (has_apt) {
        gp_exam_command(exam, note, "sudo apt install --allow-downgrades%s", list);
        gp_exam_command(exam, "keep it; \"unhold\" ends that", "sudo apt-mark hold%s", held);
    } else if (exam->machine.distro == GP_DISTRO_FEDORA || exam->machine.distro == GP_DISTRO_RHEL) {
        gp_exam_command(exam, note, "sudo dnf downgrade%s", list);
    } else {
        gp_exam_advice(exam, "go back to %s of the toolkit, all of its packages together", version);
    }
    gp_exam_command(exam, "it may stop running containers", "systemctl --user restart docker");
    gp_exam_advice(exam, "or give containers the GPUs by CDI, which needs no rules: docker run "
                         "--device nvidia.com/gpu=all in place of --gpus all; or try a newer "
                         "release of the toolkit");
}
