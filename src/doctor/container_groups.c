/* The users of docker's containers: whether they may open the GPUs that the containers are given.
 */
#include "doctor/checks_container.h"
#include "doctor/docker.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 64, MOST_PROCESSES = 4096, MOST_TEXT = 65536 };

struct user {
    unsigned long id;
    unsigned long groups[MOST_GROUPS];
    size_t count;
    bool is_seen; /* by a process */
};

static bool is_number(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == '\0';
}

static void add_group(struct user *user, unsigned long group)
{
    if (user->count < MOST_GROUPS)
        user->groups[user->count++] = group;
}

/* Of a process, by "Uid:\t1000\t…" and "Groups:\t44 110 \n". */
static bool read_status(const char *text, struct user *ret)
{
    const char *id = text ? strstr(text, "\nUid:") : NULL;
    const char *group = text ? strstr(text, "\nGid:") : NULL;
    const char *groups = text ? strstr(text, "\nGroups:") : NULL;
    if (!id || !group || !groups)
        return false;
    ret->id = strtoul(id + 5, NULL, 10);
    add_group(ret, strtoul(group + 5, NULL, 10));
    const char *p = groups + 8 + strspn(groups + 8, "\t ");
    for (char *end; *p >= '0' && *p <= '9'; p = end + strspn(end, " "))
        add_group(ret, strtoul(p, &end, 10));
    return true;
}

/* Of the first process of the container that is seen; false: none is. */
static bool read_process(struct gp_exam *exam, const struct gp_docker_container *c,
                         struct user *ret)
{
    char **names, cgroup[1024];
    long n = gp_files_list(&exam->files, &exam->arena, "/proc", &names);
    for (long i = 0, seen = 0; i < n && seen < MOST_PROCESSES; i++) {
        if (!is_number(names[i]))
            continue;
        seen++;
        const char *path = gp_exam_text(exam, "/proc/%s/cgroup", names[i]);
        if (gp_files_read(&exam->files, path, cgroup, sizeof(cgroup)) <= 0 ||
            !strstr(cgroup, c->id))
            continue;
        path = gp_exam_text(exam, "/proc/%s/status", names[i]);
        *ret = (struct user){.is_seen = true};
        if (read_status(gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, NULL), ret))
            return true;
    }
    return false;
}

/* By its settings: "1000:1000" and the groups that are added by number. A name may be anyone's. */
static bool read_settings(struct gp_exam *exam, const struct gp_docker_container *c,
                          const char *setting, struct user *ret)
{
    const json_t *added = json_object_get(c->host, "GroupAdd");
    const char *colon = strchr(setting, ':');
    const char *name =
        gp_exam_text(exam, "%.*s", (int)(colon ? colon - setting : (long)strlen(setting)), setting);
    if (!is_number(name) || (colon && !is_number(colon + 1)))
        return false;
    *ret = (struct user){.id = strtoul(name, NULL, 10)};
    add_group(ret, colon ? strtoul(colon + 1, NULL, 10) : 0);
    for (size_t i = 0; i < json_array_size(added); i++) {
        const char *group = json_string_value(json_array_get(added, i));
        if (!group || !is_number(group))
            return false;
        add_group(ret, strtoul(group, NULL, 10));
    }
    return true;
}

static bool may_use(const struct user *user, const struct stat *st)
{
    enum { BOTH = 06 };
    unsigned bits = st->st_mode;
    if (user->id == st->st_uid)
        return ((bits >> 6) & BOTH) == BOTH;
    for (size_t i = 0; i < user->count; i++)
        if (user->groups[i] == st->st_gid)
            return ((bits >> 3) & BOTH) == BOTH;
    return (bits & BOTH) == BOTH;
}

/* What the user may not use of what the container is given. */
struct denied {
    const char *computing, *video; /* the first file of each kind; NULL: none */
    unsigned computing_group, video_group;
    bool is_any_open; /* one for video may be used */
};

static void look_at(struct gp_exam *exam, const struct user *user, const char *path,
                    struct denied *ret)
{
    struct stat st;
    bool is_computing = strcmp(path, "/dev/kfd") == 0;
    if ((!is_computing && strncmp(path, "/dev/dri/renderD", 16) != 0) ||
        gp_files_stat(&exam->files, path, &st) != 0)
        return;
    if (may_use(user, &st))
        ret->is_any_open = ret->is_any_open || !is_computing;
    else if (is_computing)
        ret->computing = gp_exam_text(exam, "%s", path), ret->computing_group = st.st_gid;
    else if (!ret->video)
        ret->video = gp_exam_text(exam, "%s", path), ret->video_group = st.st_gid;
}

static void look_at_all(struct gp_exam *exam, const struct gp_docker_container *c,
                        const struct user *user, struct denied *ret)
{
    static const char folder[] = "/dev/dri";
    const json_t *devices = json_object_get(c->host, "Devices");
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *path =
            json_string_value(json_object_get(json_array_get(devices, i), "PathOnHost"));
        char **names;
        if (path)
            look_at(exam, user, path, ret);
        if (!path || (strcmp(path, folder) != 0 && strcmp(path, "/dev/dri/") != 0))
            continue;
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long k = 0; k < n; k++)
            look_at(exam, user, gp_exam_text(exam, "%s/%s", folder, names[k]), ret);
    }
}

static void propose(struct gp_exam *exam, const struct gp_docker_container *c, unsigned group)
{
    const char *service = gp_docker_compose_service(exam, c);
    if (service[0])
        gp_exam_advice(exam, "%s: group_add: [\"%u\"]; then docker compose up -d", service, group);
    else
        gp_exam_advice(exam,
                       "create the container again with --group-add %u; with docker compose, add "
                       "to the service: group_add: [\"%u\"], then docker compose up -d",
                       group, group);
}

static void report(struct gp_exam *exam, const struct gp_docker_container *c,
                   const struct user *user, const char *path, unsigned group)
{
    /* Without a process that shows them, the image may have more groups for the user. */
    bool is_sure = user->is_seen || gp_docker_denied_line(exam, c);
    gp_exam_report(exam, is_sure ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "container %s has no permission to use the GPU: its user %lu is not in the "
                   "group of %s, %u",
                   c->name, user->id, path, group);
    gp_exam_evidence(exam, path, "group %u", group);
    gp_docker_show_denied(exam, c);
    gp_exam_why(exam, "Groups that the user has on this machine do not count in the container: it "
                      "gets those that it is started with.");
    if (group == 0)
        gp_exam_advice(exam,
                       "only root may use the file: give it to group render with a udev rule, "
                       "then create the container again with --group-add and the number of "
                       "that group");
    else
        propose(exam, c, group);
}

static bool has_gpu_file(const struct gp_docker_container *c)
{
    const json_t *devices = json_object_get(c->host, "Devices");
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *path =
            json_string_value(json_object_get(json_array_get(devices, i), "PathOnHost"));
        if (path && (strncmp(path, "/dev/dri", 8) == 0 || strcmp(path, "/dev/kfd") == 0))
            return true;
    }
    return false;
}

static bool is_root(const char *setting)
{
    size_t n = strcspn(setting, ":");
    return n == 0 || (n == 1 && setting[0] == '0') || (n == 4 && strncmp(setting, "root", 4) == 0);
}

void gp_container_check_groups(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *setting = gp_docker_text(json_object_get(c->config, "Config"), "User");
    struct user user = {0};
    struct denied denied = {0};
    /* Programs that start as root may choose their groups themselves. */
    if (!c->is_running || !setting || is_root(setting) || !has_gpu_file(c) ||
        (!read_process(exam, c, &user) && !read_settings(exam, c, setting, &user)) || user.id == 0)
        return;
    look_at_all(exam, c, &user, &denied);
    if (denied.computing)
        report(exam, c, &user, denied.computing, denied.computing_group);
    else if (denied.video && !denied.is_any_open)
        report(exam, c, &user, denied.video, denied.video_group);
}
