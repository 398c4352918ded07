/* The users of docker's containers: whether they may open the GPUs that the containers are given.
 */
#include "doctor/checks/container.h"
#include "doctor/lines.h"
#include "doctor/readers/access.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/processes.h"

#include <stdlib.h>
#include <string.h>

/* Numbers that belong to a user namespace: --group-add means others. */
enum { FIRST_MAPPED = 65536 };

struct user {
    struct gp_credentials who;
    const char *process; /* which shows it, "/proc/900"; NULL: none does */
    const char *program; /* the status of one that the image's init has started; NULL: the user is
                            that of the container's settings */
};

static bool is_number(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == '\0';
}

/* Of the container's first process. */
static bool read_process(struct gp_exam *exam, const struct gp_docker_container *c,
                         struct user *ret)
{
    const json_t *pid = json_object_get(json_object_get(c->config, "State"), "Pid");
    const char *process = gp_exam_text(exam, "/proc/%lld", (long long)json_integer_value(pid));
    if (!gp_credentials_of_process(exam, gp_exam_text(exam, "%s/status", process), &ret->who))
        return false;
    ret->process = process;
    return true;
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
    const char *groups = "";
    for (size_t i = 0; i < json_array_size(added); i++) {
        const char *group = json_string_value(json_array_get(added, i));
        if (!group || !is_number(group))
            return false;
        groups = gp_exam_text(exam, "%s %s", groups, group);
    }
    ret->who = (struct gp_credentials){.user = (unsigned)strtoul(name, NULL, 10),
                                       .group = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0,
                                       .groups = groups};
    return true;
}

/* Whether a process is in a container, by its cgroup: "/docker/5e0f4b…", "docker-5e0f4b….scope". */
static bool is_inside(struct gp_exam *exam, const struct gp_docker_container *c,
                      const char *process)
{
    const char *path = gp_exam_text(exam, "%s/cgroup", process);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 14, NULL);
    return text && c->id[0] && strstr(text, c->id);
}

/* Whether a process is a program for GPUs, by its name as the kernel calls it, in 15 bytes. */
static bool is_for_gpus(struct gp_exam *exam, const char *process)
{
    static const char *const names[] = {
        "Plex Media Serv", "Plex Transcoder", "jellyfin", "EmbyServer",   "ffmpeg",
        "tvheadend",       "Tdarr_",          "ollama",   "llama-server", NULL};
    char name[32];
    if (!gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", process), name, sizeof(name)))
        return false;
    return gp_lines_starts_any(name, names);
}

/* The user of a program for GPUs in a container whose init starts as root. Others in it, such as
 * its web server, need no GPU. */
static bool read_program(struct gp_exam *exam, const struct gp_docker_container *c,
                         struct user *ret)
{
    struct gp_processes all = gp_processes_of(exam);
    const char *process;
    while ((process = gp_processes_next(exam, &all, ""))) {
        const char *status = gp_exam_text(exam, "%s/status", process);
        if (!is_for_gpus(exam, process) || !is_inside(exam, c, process) ||
            !gp_credentials_of_process(exam, status, &ret->who) || ret->who.user == 0)
            continue;
        ret->process = process;
        ret->program = status;
        return true;
    }
    return false;
}

/* Whether it has a GPU's file open, and so may use it. */
static bool uses_gpu(struct gp_exam *exam, const struct user *user)
{
    static const char *const starts[] = {"/dev/dri/renderD", "/dev/nvidia"};
    const char *folder = gp_exam_text(exam, "%s/fd", user->process ? user->process : "");
    char **names, target[GP_PATH_SIZE];
    long n = user->process ? gp_files_list(&exam->files, &exam->arena, folder, &names) : 0;
    for (long i = 0; i < n; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(starts); k++)
            if (gp_files_link(&exam->files, gp_exam_text(exam, "%s/%s", folder, names[i]),
                              target) &&
                strncmp(target, starts[k], strlen(starts[k])) == 0)
                return true;
    return false;
}

/* The container's own copy of a device file, whose mode and owner the image's init may have
 * changed; only root can see it. */
static const char *own_copy(struct gp_exam *exam, const struct user *user, const char *path)
{
    const char *copy = user->process ? gp_exam_text(exam, "%s/root%s", user->process, path) : path;
    return gp_files_exist(&exam->files, copy) ? copy : path;
}

/* What the user may not use of what the container is given. */
struct denied {
    const char *computing, *video; /* the first file of each kind; NULL: none */
    struct gp_access computing_access, video_access;
    bool is_any_open;  /* one for video may be used */
    bool is_copy_seen; /* all are judged by the container's own copies */
};

static void look_at(struct gp_exam *exam, const struct user *user, const char *path,
                    struct denied *ret)
{
    bool is_computing = strcmp(path, "/dev/kfd") == 0;
    if (!is_computing && strncmp(path, "/dev/dri/renderD", 16) != 0)
        return;
    const char *judged = own_copy(exam, user, path);
    struct gp_access access = gp_access_of_credentials(exam, judged, &user->who);
    ret->is_copy_seen = ret->is_copy_seen && judged != path;
    if (!access.is_there)
        return;
    if (access.may_use)
        ret->is_any_open = ret->is_any_open || !is_computing;
    else if (is_computing)
        ret->computing = gp_exam_text(exam, "%s", path), ret->computing_access = access;
    else if (!ret->video)
        ret->video = gp_exam_text(exam, "%s", path), ret->video_access = access;
}

static void look_at_all(struct gp_exam *exam, const struct gp_docker_container *c,
                        const struct user *user, struct denied *ret)
{
    static const char folder[] = "/dev/dri";
    const char *path;
    for (size_t i = 0; (path = gp_docker_device(c, i)); i++) {
        char **names;
        look_at(exam, user, path, ret);
        if (strcmp(path, folder) != 0 && strcmp(path, "/dev/dri/") != 0)
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

/* For an image whose init starts as root, and chooses the groups of its user. */
static void propose_image(struct gp_exam *exam, const struct gp_docker_container *c, unsigned group)
{
    /* whose init lets the user into the group of the file, since 2019 */
    static const char *const makers[] = {"linuxserver/", "plexinc/pms-docker"};
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const char *list = gp_docker_variable(c, "GIDLIST"); /* of Emby's image */
    if (list) {
        gp_exam_advice(exam, "create the container again with GIDLIST=%s%s%u", list,
                       list[0] ? "," : "", group);
        return;
    }
    for (size_t i = 0; image && i < GP_ARRAY_LEN(makers); i++)
        if (strstr(image, makers[i]))
            gp_exam_command(exam, "newer ones let their user into the group of the file",
                            "docker pull %s", gp_exam_quoted(exam, image));
    propose(exam, c, group);
}

/* Whether the file's mode keeps its group out, too. */
static bool is_closed(const struct gp_access *access)
{
    return (access->mode & 0060) != 0060;
}

/* Whether the scripts of an image's init are known to have left the mode as it is: those that open
 * the container's own copy of a file say so. */
static bool has_left_mode(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char script[] = "-gid-video: ", opens[] = "attempting to fix inside";
    size_t length = 0;
    const char *text = gp_docker_printed(exam, c, &length);
    return text && strstr(text, script) && !strstr(text, opens);
}

/* Of root's own files: no group of the container helps. */
static void fix_closed(struct gp_exam *exam, const struct gp_docker_container *c, const char *path,
                       unsigned group)
{
    static const char qnap[] = "/etc/config/uLinux.conf";
    if (gp_files_exist(&exam->files, qnap)) {
        gp_exam_command(exam, "as admin; until the next boot", "chmod 666 %s", path);
        gp_exam_command(exam, "docker copies the mode when it starts the container",
                        "docker restart %s", gp_exam_quoted(exam, c->name));
        gp_exam_advice(exam,
                       "QTS makes a new file at each boot: put this chmod into its autorun.sh, "
                       "with \"Run user defined startup processes\" on in the control panel");
        return;
    }
    if (group == 0) {
        gp_exam_advice(exam,
                       "only root may use the file: give it to group render with a udev rule, "
                       "then create the container again with --group-add and the number of "
                       "that group");
        return;
    }
    gp_exam_advice(exam, "only root may use the file: let its group do so, too, with a udev rule "
                         "(MODE=\"0660\")");
    propose(exam, c, group);
}

static void show_denied(struct gp_exam *exam, const struct gp_docker_container *c,
                        const struct user *user, const char *path, const struct gp_access *access)
{
    if (is_closed(access))
        gp_exam_evidence(exam, path, "mode %04o, group %u", access->mode, access->group);
    else
        gp_exam_evidence(exam, path, "group %u", access->group);
    if (user->program) {
        const char *groups = user->who.groups + strspn(user->who.groups, "\t ");
        size_t n = strcspn(groups, "\n");
        while (n > 0 && groups[n - 1] == ' ')
            n--;
        gp_exam_evidence(exam, user->program, "Groups: %.*s", (int)n, groups);
    }
    gp_docker_show_denied(exam, c);
}

static void report(struct gp_exam *exam, const struct gp_docker_container *c,
                   const struct user *user, const char *path, const struct gp_access *access,
                   bool is_copy_seen)
{
    unsigned group = access->group;
    /* Without a process that shows them, the image may have more groups for the user; and an init
     * that is root may have opened the container's own copy of the file to everybody. */
    bool is_sure = is_copy_seen || (user->process && !user->program) ||
                   gp_docker_denied_line(exam, c) || (is_closed(access) && has_left_mode(exam, c));
    gp_exam_report(
        exam, is_sure ? GP_VERDICT_WARN : GP_VERDICT_INFO,
        "container %s has no permission to use the GPU: its user %u %s", c->name, user->who.user,
        is_closed(access) ? gp_exam_text(exam, "may not open %s, mode %04o", path, access->mode)
                          : gp_exam_text(exam, "is not in the group of %s, %u", path, group));
    show_denied(exam, c, user, path, access);
    gp_exam_why(exam, "%s",
                is_closed(access)
                    ? "Docker copies the file into the container with its owner and mode: only "
                      "root may open it there, whatever groups the user has."
                : user->program ? "The image's init starts it with the groups that the image "
                                  "knows: this machine's group of the file is none of them."
                                : "Groups that the user has on this machine do not count in the "
                                  "container: it gets those that it is started with.");
    if (is_closed(access) || group == 0)
        fix_closed(exam, c, path, group);
    else if (user->program)
        propose_image(exam, c, group);
    else
        propose(exam, c, group);
}

static bool is_root(const char *setting)
{
    size_t n = strcspn(setting, ":");
    return n == 0 || (n == 1 && setting[0] == '0') || (n == 4 && strncmp(setting, "root", 4) == 0);
}

/* ---- NVIDIA's files ---- */

/* Whether docker copies the file with its mode and owner, or NVIDIA's older runtime binds the file
 * itself. With CDI the container gets one of its own, which everybody may open. */
static bool is_as_on_host(struct gp_exam *exam, const struct gp_docker_container *c,
                          const char *path)
{
    return gp_docker_has_device(c, path) || gp_container_binds_files(exam);
}

/* Whether GPUs are asked for, and not only by an image's variable where NVIDIA's runtime is the
 * default. */
static bool is_asked_for(struct gp_exam *exam, const struct gp_docker_container *c)
{
    return json_array_size(gp_docker_requests(c)) > 0 || gp_docker_has_device(c, "/dev/nvidia") ||
           !gp_docker_is_nvidia_default(exam);
}

static void report_nvidia(struct gp_exam *exam, const struct gp_docker_container *c,
                          const struct user *user, const char *path, unsigned group)
{
    gp_exam_report(exam, is_asked_for(exam, c) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "container %s has no permission to use the GPU: its user %u is not in the "
                   "group of %s, %u",
                   c->name, user->who.user, path, group);
    gp_exam_evidence(exam, path, "group %u, and nothing for others", group);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/status", user->process),
                     "user %u, without this group", user->who.user);
    gp_exam_why(exam, "Groups that the user has on this machine do not count in the container: it "
                      "gets those that it is started with. CUDA and NVENC find no device there, "
                      "and nvidia-smi works only as root.");
    propose(exam, c, group);
    gp_exam_advice(exam, "or let all users open the files: NVreg_DeviceFileMode=0666 for the "
                         "module nvidia in /etc/modprobe.d, then reboot");
}

/* By NVreg_DeviceFileMode the files may be for a group alone, as Debian and SUSE set it. */
static void check_nvidia(struct gp_exam *exam, const struct gp_docker_container *c,
                         const char *setting)
{
    static const char path[] = "/dev/nvidiactl"; /* which all programs open */
    struct user user = {0};
    if ((!gp_docker_has_gpus(c) && !gp_docker_has_device(c, path)) || is_root(setting) ||
        json_is_true(json_object_get(c->host, "Privileged")) || !read_process(exam, c, &user) ||
        user.who.user == 0 || user.who.user >= FIRST_MAPPED || uses_gpu(exam, &user))
        return;
    const char *judged = own_copy(exam, &user, path);
    struct gp_access access = gp_access_of_credentials(exam, judged, &user.who);
    bool is_for_group = (access.mode & 0060) == 0060 && access.group > 0;
    if (access.is_there && !access.may_use && is_for_group &&
        (judged != path || is_as_on_host(exam, c, path)))
        report_nvidia(exam, c, &user, path, access.group);
}

void gp_container_check_groups(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *setting = gp_docker_text(json_object_get(c->config, "Config"), "User");
    struct user user = {0};
    struct denied denied = {.is_copy_seen = true};
    if (c->is_running && setting && exam->machine.nvidia_count > 0)
        check_nvidia(exam, c, setting);
    /* NVIDIA's GPUs are used through files of their own. */
    if (!c->is_running || !setting || !gp_docker_has_other_gpu(c) ||
        (exam->machine.nvidia_count > 0 && gp_docker_has_gpus(c)))
        return;
    /* Programs that start as root may choose their groups themselves. */
    bool is_read = is_root(setting)
                       ? read_program(exam, c, &user)
                       : read_process(exam, c, &user) || read_settings(exam, c, setting, &user);
    if (!is_read || user.who.user == 0 || user.who.user >= FIRST_MAPPED || uses_gpu(exam, &user))
        return;
    look_at_all(exam, c, &user, &denied);
    /* Programs for video need no file for computing. */
    if (denied.computing && !(user.program && denied.is_any_open))
        report(exam, c, &user, denied.computing, &denied.computing_access, denied.is_copy_seen);
    else if (denied.video && !denied.is_any_open)
        report(exam, c, &user, denied.video, &denied.video_access, denied.is_copy_seen);
}
