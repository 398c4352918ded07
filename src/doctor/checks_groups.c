/* Whether the users of services that compute or decode video may open the GPUs' device files. */
#include "doctor/checks_services.h"

#include "doctor/access.h"
#include "doctor/exam.h"
#include "doctor/services.h"

#include <string.h>

static const struct service {
    const char *unit;
    bool computes; /* with ROCm, which needs /dev/kfd */
} services[] = {
    {"jellyfin.service", false},      {"plexmediaserver.service", false},
    {"emby-server.service", false},   {"ollama.service", true},
    {"llama-server.service", true},   {"comfyui.service", true},
    {"tdarr-node.service", false},    {"frigate.service", false},
    {"invokeai.service", true},       {"llama-cpp.service", true},
    {"llama-swap.service", true},     {"koboldcpp.service", true},
    {"tabby.service", true},          {"immich-machine-learning.service", false},
    {"emby.service", false},          {"plex.service", false},
    {"immich-server.service", false},
};

bool gp_groups_apply(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < GP_ARRAY_LEN(services); i++)
        if (gp_service_is_installed(exam, services[i].unit))
            return !m->container || m->nvidia_count == 0
                       ? m->nvidia_count + m->amd_count + m->intel_count > 0
                       : false;
    return false;
}

/* The first device file that the service needs and its user may not open; NULL: there is none. */
static const char *denied(struct gp_exam *exam, const struct service *service, const char *user,
                          struct gp_access *ret)
{
    static const char kfd[] = "/dev/kfd", folder[] = "/dev/dri";
    char **names;
    *ret = gp_access_of_user(exam, kfd, user);
    if (service->computes && ret->is_known && ret->is_there && !ret->may_use)
        return kfd;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (strncmp(names[i], "renderD", 7) != 0)
            continue;
        *ret = gp_access_of_user(exam, path, user);
        if (ret->is_known && ret->is_there && !ret->may_use)
            return path;
    }
    return NULL;
}

/* Whether groups last here: on a machine, and in a container of LXC, which is one to its users. */
static bool has_own_users(const struct gp_exam *exam)
{
    const char *kind = exam->machine.container;
    return !kind || strcmp(kind, "lxc") == 0;
}

static void check(struct gp_exam *exam, const struct service *service)
{
    const char *user = gp_service_value(exam, service->unit, "User");
    const char *more = gp_service_value(exam, service->unit, "SupplementaryGroups");
    struct gp_access access;
    const char *path = user && user[0] ? denied(exam, service, user, &access) : NULL;
    if (!path || (more && strstr(more, access.group_name)))
        return;
    bool is_foreign = gp_access_is_foreign(exam, &access);
    gp_exam_report(
        exam, GP_VERDICT_WARN, "%s has no permission to use the GPU: %s", service->unit,
        is_foreign ? gp_exam_text(exam, "%s has the group of number %u, here %s", path,
                                  access.group, access.group_name)
                   : gp_exam_text(exam, "its user %s is not in group %s", user, access.group_name));
    gp_access_show(exam, &access, path);
    gp_exam_evidence(exam, service->unit, "User=%s", user);
    gp_exam_why(exam,
                "The service then uses the CPU, or reports Permission denied or No VA display "
                "found.%s",
                exam->machine.container
                    ? " The device has the number that its group has on the host, whatever this "
                      "container calls it."
                    : "");
    if (is_foreign || access.group == 0 || !has_own_users(exam)) {
        gp_access_propose(exam, &access, path);
        return;
    }
    gp_exam_command(exam, "", "sudo usermod -aG %s %s", gp_exam_quoted(exam, access.group_name),
                    gp_exam_quoted(exam, user));
    gp_exam_command(exam, "", "sudo systemctl restart %s", gp_exam_quoted(exam, service->unit));
}

void gp_groups_check(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(services); i++)
        if (gp_service_is_installed(exam, services[i].unit) &&
            !gp_sandbox_check(exam, services[i].unit, services[i].computes) &&
            exam->machine.nvidia_count == 0)
            check(exam, &services[i]);
}
