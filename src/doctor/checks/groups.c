/* Whether the users of services that compute or decode video may open the GPUs' device files. */
#include "doctor/checks/system.h"

#include "doctor/checks/access_fix.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/access.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/services.h"

#include <stdlib.h>
#include <string.h>

static const struct service {
    const char *unit;
    bool computes;       /* with ROCm, which needs /dev/kfd */
    bool may_do_without; /* as many who use it have no GPU: judged where one was handed over */
} services[] = {
    {"jellyfin.service", false},
    {"plexmediaserver.service", false},
    {"emby-server.service", false},
    {"ollama.service", true},
    {"llama-server.service", true},
    {"comfyui.service", true},
    {"tdarr-node.service", false},
    {"frigate.service", false},
    {"invokeai.service", true},
    {"llama-cpp.service", true},
    {"llama-swap.service", true},
    {"koboldcpp.service", true},
    {"tabby.service", true},
    {"immich-machine-learning.service", false},
    {"emby.service", false},
    {"plex.service", false},
    {"immich-server.service", false},
    {"immich-web.service", false},
    {"immich-ml.service", false},
    {"unmanic.service", false},
    {"fileflows.service", false, true},
    {"fileflows-node.service", false, true},
    {"ersatztv.service", false, true},
    {"tunarr.service", false, true},
    {"dispatcharr.service", false, true},
    {"channels-dvr.service", false, true},
    {"photoprism.service", false, true},
    {"scrypted.service", false, true},
    {"go2rtc.service", false, true},
};

/* A container of LXC has files of GPUs only if it was given them. */
static bool is_judged(struct gp_exam *exam, const struct service *service)
{
    return gp_service_is_installed(exam, service->unit) &&
           (!service->may_do_without || gp_machine_is_lxc(&exam->machine));
}

bool gp_groups_apply(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < GP_ARRAY_LEN(services); i++)
        if (is_judged(exam, &services[i]))
            return !m->container || m->nvidia_count == 0
                       ? m->nvidia_count + m->amd_count + m->intel_count > 0
                       : false;
    return false;
}

/* For a process, by its status, or for a user. */
static struct gp_access access_of(struct gp_exam *exam, const char *path, const char *status,
                                  const char *user)
{
    return status ? gp_access_of_process(exam, path, status) : gp_access_of_user(exam, path, user);
}

/* The first device file that the service needs and its process or user may not open; NULL: there is
 * none. */
static const char *denied(struct gp_exam *exam, const struct service *service, const char *status,
                          const char *user, struct gp_access *ret)
{
    static const char kfd[] = "/dev/kfd", folder[] = "/dev/dri";
    char **names;
    *ret = access_of(exam, kfd, status, user);
    if (service->computes && ret->is_known && ret->is_there && !ret->may_use)
        return kfd;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (strncmp(names[i], "renderD", 7) != 0)
            continue;
        *ret = access_of(exam, path, status, user);
        if (ret->is_known && ret->is_there && !ret->may_use)
            return path;
    }
    return NULL;
}

/* Whether groups last here: on a machine, and in a container of LXC, which is one to its users. */
static bool has_own_users(const struct gp_exam *exam)
{
    return !exam->machine.container || gp_machine_is_lxc(&exam->machine);
}

/* The status of the first process of the unit, "/proc/900/status"; NULL: none is seen. */
static const char *status_of(struct gp_exam *exam, const char *unit)
{
    char line[512];
    const char *mark = gp_exam_text(exam, "/system.slice/%s", unit), *folder;
    struct gp_processes all = gp_processes_of(exam);
    while ((folder = gp_processes_next(exam, &all, "")))
        if (gp_files_read(&exam->files, gp_exam_text(exam, "%s/cgroup", folder), line,
                          sizeof(line)) > 0 &&
            strstr(line, mark))
            return gp_exam_text(exam, "%s/status", folder);
    return NULL;
}

/* Its user may open the files, but the running process began without the group. */
static void check_running(struct gp_exam *exam, const struct service *service)
{
    const char *status = status_of(exam, service->unit);
    struct gp_access access;
    const char *path = status ? denied(exam, service, status, NULL, &access) : NULL;
    if (!path || !access.is_known || access.group == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s has no permission to use the GPU: it was started before its user was in "
                   "group %s",
                   service->unit, access.group_name);
    gp_access_show(exam, &access, path);
    gp_exam_evidence(exam, status, "not in group %u", access.group);
    gp_exam_evidence(exam, "/etc/group", "%s: %s", access.group_name,
                     gp_access_members(exam, access.group));
    gp_exam_command(exam, "", "sudo systemctl restart %s", gp_exam_quoted(exam, service->unit));
}

/* Whether the unit's groups, with spaces or newlines between them, have the file's one. */
static bool has_group(struct gp_exam *exam, const char *groups, const struct gp_access *access)
{
    static const char spaces[] = " \t\r\n";
    const char *number = gp_exam_text(exam, "%u", access->group);
    for (const char *one = groups + strspn(groups, spaces); *one; one += strspn(one, spaces)) {
        size_t n = strcspn(one, spaces);
        const char *name = gp_exam_text(exam, "%.*s", (int)n, one);
        if (strcmp(name, access->group_name) == 0 || strcmp(name, number) == 0)
            return true;
        one += n;
    }
    return false;
}

/* A user that exists only while the service runs is in no group but those of the unit. */
static void check_dynamic(struct gp_exam *exam, const struct service *service, const char *more)
{
    static const char kfd[] = "/dev/kfd", node[] = "/dev/dri/renderD128";
    const char *path = service->computes && gp_files_exist(&exam->files, kfd) ? kfd : node;
    struct gp_access access = gp_access_of(exam, path);
    if (!gp_service_is_yes(exam, service->unit, "DynamicUser") || !access.is_there ||
        (access.mode & 06) == 06 || access.group == 0 || has_group(exam, more, &access))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s has no permission to use the GPU: its dynamic user is not in group %s",
                   service->unit, access.group_name);
    gp_access_show(exam, &access, path);
    gp_exam_evidence(exam, service->unit, "DynamicUser=yes, and no such SupplementaryGroups");
    const char *group = access.group_name;
    if (gp_access_is_powerful(&access)) {
        gp_access_propose(exam, &access, path);
        group = "render";
    }
    if (strcmp(exam->machine.distro_id, "nixos") == 0) {
        gp_exam_advice(exam,
                       "in configuration.nix: systemd.services.%.*s.serviceConfig."
                       "SupplementaryGroups = [ \"%s\" ];",
                       (int)strcspn(service->unit, "."), service->unit, group);
        gp_exam_command(exam, "", "sudo nixos-rebuild switch");
        return;
    }
    gp_exam_command(exam, "in [Service] add the line below", "sudo systemctl edit %s",
                    gp_exam_quoted(exam, service->unit));
    gp_exam_advice(exam, "SupplementaryGroups=%s", group);
    gp_exam_command(exam, "", "sudo systemctl restart %s", gp_exam_quoted(exam, service->unit));
}

/* Whether a user is in group render here, or the unit adds it. */
static bool has_render(struct gp_exam *exam, const char *user, const char *more)
{
    const char *number = gp_access_render(exam);
    return number &&
           (has_group(exam, more, &(struct gp_access){.group_name = "render"}) ||
            gp_lines_list_has(gp_access_members(exam, (unsigned)strtoul(number, NULL, 10)), user));
}

/* The services whose unit has this user, from one of the table on, quoted. */
static const char *units_of(struct gp_exam *exam, const struct service *first, const char *user)
{
    const char *units = gp_exam_quoted(exam, first->unit);
    for (const struct service *s = first + 1; s < services + GP_ARRAY_LEN(services); s++) {
        const char *own = is_judged(exam, s) ? gp_service_value(exam, s->unit, "User") : NULL;
        if (own && strcmp(own, user) == 0)
            units = gp_exam_text(exam, "%s %s", units, gp_exam_quoted(exam, s->unit));
    }
    return units;
}

/* In LXC, where the number of the file's group is another group's, or no one's. The user has to be
 * in whichever group the file has in the end. */
static void fix_foreign(struct gp_exam *exam, const struct service *service, const char *user,
                        const char *more, const struct gp_access *access, const char *path)
{
    const char *name = gp_exam_quoted(exam, user);
    bool has_name = strspn(access->group_name, "0123456789") < strlen(access->group_name);
    gp_access_propose(exam, access, path);
    const char *number = gp_access_render(exam);
    if (!has_render(exam, user, more))
        gp_access_join(
            exam,
            &(struct gp_access){.group_name = "render",
                                .group = number ? (unsigned)strtoul(number, NULL, 10) : 0},
            "in either case: its user in group render", name);
    gp_exam_command(exam, "then", "sudo systemctl restart %s", units_of(exam, service, user));
    if (has_name && !gp_access_is_powerful(access) && access->group != GP_ACCESS_NOBODY)
        gp_exam_advice(exam,
                       "or, at once, but with the rights of that group, too: sudo usermod -aG %s "
                       "%s, and restart",
                       gp_exam_quoted(exam, access->group_name), name);
}

/* Which group the user lacks, also where another one has its name. */
static const char *lacking(struct gp_exam *exam, const char *user, const struct gp_access *access)
{
    unsigned other;
    size_t count = gp_access_twin(exam, access->group_name, access->group, &other);
    if (count < 2 || other == access->group)
        return gp_exam_text(exam, "its user %s is not in group %s", user, access->group_name);
    return gp_exam_text(exam, "of the %sgroups %s, its user %s is not in that of number %u",
                        count == 2 ? "two " : "", access->group_name, user, access->group);
}

/* Returns its user, if that may not open the files and `told` (a list) has not named it; NULL. */
static const char *check(struct gp_exam *exam, const struct service *service, const char *told)
{
    const char *user = gp_service_value(exam, service->unit, "User");
    const char *group = gp_service_value(exam, service->unit, "Group");
    const char *more =
        gp_exam_text(exam, "%s%s", gp_service_list(exam, service->unit, "SupplementaryGroups"),
                     group ? group : "");
    struct gp_access access;
    if (!user || !user[0]) {
        check_dynamic(exam, service, more);
        return NULL;
    }
    const char *path = denied(exam, service, NULL, user, &access);
    if (!path && has_own_users(exam))
        check_running(exam, service);
    if (!path || has_group(exam, more, &access) || gp_lines_list_has(told, user))
        return NULL;
    bool is_foreign = gp_access_is_foreign(exam, &access);
    gp_exam_report(exam, GP_VERDICT_WARN, "%s has no permission to use the GPU: %s", service->unit,
                   is_foreign ? gp_exam_text(exam, "%s has the group of number %u, here %s", path,
                                             access.group, access.group_name)
                              : lacking(exam, user, &access));
    gp_access_show(exam, &access, path);
    gp_exam_evidence(exam, service->unit, "User=%s", user);
    gp_exam_why(exam,
                "The service then uses the CPU, or reports Permission denied or No VA display "
                "found.%s",
                exam->machine.container
                    ? " The device has the number that its group has on the host, whatever this "
                      "container calls it."
                    : "");
    if (is_foreign) {
        fix_foreign(exam, service, user, more, &access, path);
        return user;
    }
    if (gp_access_is_powerful(&access) || !has_own_users(exam)) {
        gp_access_propose(exam, &access, path);
        return user;
    }
    gp_access_join(exam, &access, "", gp_exam_quoted(exam, user));
    gp_exam_command(exam, "", "sudo systemctl restart %s", units_of(exam, service, user));
    return user;
}

void gp_groups_check(struct gp_exam *exam)
{
    const char *told = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(services); i++)
        if (is_judged(exam, &services[i]) && !gp_service_is_for_cpu(exam, services[i].unit) &&
            !gp_sandbox_check(exam, services[i].unit, services[i].computes) &&
            exam->machine.nvidia_count == 0) {
            const char *user = check(exam, &services[i], told);
            if (user)
                told = gp_exam_text(exam, "%s%s%s", told, told[0] ? "," : "", user);
        }
}
