/* Podman: whether it knows the GPUs, and its containers without root may use them. */
#include "doctor/checks/container.h"
#include "doctor/checks/container_host.h"
#include "doctor/exam.h"
#include "doctor/readers/access.h"
#include "doctor/readers/homes.h"
#include "doctor/version.h"

#include <string.h>

/* Device files for the members of a group: a container without root leaves the user's groups. */
static void check_groups(struct gp_exam *exam)
{
    static const char path[] = "/dev/nvidia0";
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    struct gp_access access = gp_access_of(exam, path);
    if (!home || !access.is_there || !access.is_known || access.is_root || !access.may_use ||
        access.group == 0 || (access.mode & 06) ||
        !gp_files_exist(&exam->files, gp_exam_text(exam, "%s/.local/share/containers", home)))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "rootless containers may not use the GPUs: they are for group %s",
                   access.group_name);
    gp_exam_evidence(exam, path, "mode %04o, group %s", access.mode, access.group_name);
    gp_exam_why(exam, "You are a member, but a container without root leaves the groups of its "
                      "user: nvidia-smi reports \"Insufficient Permissions\" in it.");
    gp_exam_command(exam, "keep them; this needs the runtime crun",
                    "podman run --group-add keep-groups …");
    gp_exam_advice(exam, "or let all users use the GPUs: NVreg_DeviceFileMode=0666 in "
                         "/etc/modprobe.d");
}

/* Whether a user has containers, and not root alone. */
static bool has_rootless(struct gp_exam *exam)
{
    const struct gp_homes *homes = gp_homes_of_all(exam);
    for (size_t i = 0; i < homes->count; i++)
        if (strcmp(homes->list[i], "/root") != 0 &&
            gp_files_exist(&exam->files,
                           gp_exam_text(exam, "%s/.local/share/containers", homes->list[i])))
            return true;
    return false;
}

/* A specification that only root may read, as with a umask of 077, and no other one. */
static void check_readable(struct gp_exam *exam)
{
    static const char folder[] = "/etc/cdi";
    const char *spec = gp_container_find_cdi(exam);
    struct stat of_folder, of_spec;
    if (!spec || strncmp(spec, folder, sizeof(folder) - 1) != 0 ||
        gp_files_exist(&exam->files, "/run/cdi/nvidia.yaml") ||
        gp_files_exist(&exam->files, "/var/run/cdi/nvidia.yaml") ||
        gp_files_stat(&exam->files, folder, &of_folder) != 0 ||
        gp_files_stat(&exam->files, spec, &of_spec) != 0 ||
        ((of_folder.st_mode & 05) == 05 && (of_spec.st_mode & 04)))
        return;
    gp_exam_report(exam, has_rootless(exam) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "rootless podman does not know the GPUs: only root may read their CDI "
                   "specification");
    gp_exam_evidence(exam, folder, "mode %04o", of_folder.st_mode & 0777);
    gp_exam_evidence(exam, spec, "mode %04o", of_spec.st_mode & 0777);
    gp_exam_why(exam, "podman run --device nvidia.com/gpu=all fails with \"unresolvable CDI "
                      "devices\" for other users than root.");
    gp_exam_command(exam, "", "sudo chmod a+rx %s && sudo chmod a+r %s", folder,
                    gp_exam_quoted(exam, spec));
}

/* Podman before 5.0 takes --gpus for the sake of docker's users, and does nothing. */
static void check_option(struct gp_exam *exam)
{
    static const char first[] = "5.0";
    const char *version = gp_container_engine_version(exam, "podman");
    if (!gp_container_is_podman(exam) || (version[0] && gp_version_compare(version, first) >= 0))
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "the command docker is podman, which knows the GPUs by another option");
    gp_exam_evidence(exam, "/usr/bin/docker", "starts podman %s", version);
    gp_exam_why(exam,
                "Older versions of podman ignore --gpus: the container starts without a GPU.");
    gp_exam_command(exam, "in place of --gpus all", "podman run --device nvidia.com/gpu=all …");
}

bool gp_container_has_podman(struct gp_exam *exam)
{
    return gp_container_is_host(exam) && gp_container_has_toolkit(exam) &&
           strcmp(gp_container_engine(exam)->name, "podman") == 0;
}

/* It needs a CDI specification, or in old versions a hook. */
void gp_container_check_podman(struct gp_exam *exam)
{
    static const char *const hooks[] = {"/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
                                        "/etc/containers/oci/hooks.d/oci-nvidia-hook.json"};
    bool is_known = gp_container_find_cdi(exam);
    for (size_t i = 0; i < GP_ARRAY_LEN(hooks); i++)
        is_known = is_known || gp_files_exist(&exam->files, hooks[i]);
    if (is_known) {
        check_groups(exam);
        check_readable(exam);
        check_option(exam);
        return;
    }
    if (gp_container_is_before_cdi(exam))
        return; /* a specification would not help: see container.engine */
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "podman does not know the GPUs: there is no CDI "
                   "specification of them");
    gp_exam_evidence(exam, "/etc/cdi/nvidia.yaml, /var/run/cdi/nvidia.yaml", "missing");
    gp_exam_why(exam, "podman run --device nvidia.com/gpu=all fails with \"unresolvable CDI "
                      "devices\".");
    gp_exam_command(exam, "generate it, and again after each update of the driver",
                    "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
    if (gp_container_is_podman(exam))
        gp_exam_advice(exam, "the command docker is podman here: start containers with --device "
                             "nvidia.com/gpu=all in place of --gpus all");
}
