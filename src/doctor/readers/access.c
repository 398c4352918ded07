#include "doctor/readers/access.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The line of a name in /etc/passwd or /etc/group, after its password; NULL: there is none. */
static const char *line_of(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *rest =
            strncmp(line, name, n) == 0 && line[n] == ':' ? strpbrk(line + n + 1, ":\n") : NULL;
        if (rest && *rest == ':')
            return rest + 1;
    }
    return NULL;
}

/* The groups that list a user, as in /proc/self/status. */
static const char *groups_of(struct gp_exam *exam, const char *text, const char *name)
{
    const char *found = "";
    size_t n = strlen(name);
    for (const char *line = text; line && *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        const char *one = gp_exam_text(exam, "%.*s", (int)length, line);
        const char *number = strchr(one, ':') ? strchr(strchr(one, ':') + 1, ':') : NULL;
        const char *members = number ? strchr(number + 1, ':') : NULL;
        const char *p = members ? members : "";
        while (*p && (p = strstr(p + 1, name)))
            if ((p[-1] == ':' || p[-1] == ',') && (!p[n] || p[n] == ',')) {
                found = gp_exam_text(exam, "%s %lu", found, strtoul(number + 1, NULL, 10));
                break;
            }
    }
    return found;
}

static bool read_named(struct gp_exam *exam, struct gp_arena *scratch, const char *name,
                       struct gp_credentials *ret)
{
    const char *users = gp_files_text(&exam->files, scratch, "/etc/passwd", 1 << 20, NULL);
    const char *groups = gp_files_text(&exam->files, scratch, "/etc/group", 1 << 20, NULL);
    const char *line = name && name[0] && users && groups ? line_of(users, name) : NULL;
    char *end;
    if (!line)
        return false;
    ret->user = (unsigned)strtoul(line, &end, 10);
    ret->group = *end == ':' ? (unsigned)strtoul(end + 1, NULL, 10) : ret->user;
    ret->groups = groups_of(exam, groups, name);
    return true;
}

/* Of a process, by its status: "Uid:\t1000\t1000\t1000\t1000". */
static bool read_status(const char *text, struct gp_credentials *ret)
{
    const char *user = text ? strstr(text, "\nUid:") : NULL;
    const char *group = text ? strstr(text, "\nGid:") : NULL;
    const char *groups = text ? strstr(text, "\nGroups:") : NULL;
    if (!user || !group || !groups)
        return false;
    ret->user = (unsigned)strtoul(user + 5, NULL, 10);
    ret->group = (unsigned)strtoul(group + 5, NULL, 10);
    ret->groups = groups + strlen("\nGroups:");
    return true;
}

/* Of /proc/self/status; a copy of a machine may lack it: the user that its environment names. */
static bool read_identity(struct gp_exam *exam, struct gp_arena *scratch,
                          struct gp_credentials *ret)
{
    const char *text = gp_files_text(&exam->files, scratch, "/proc/self/status", 65536, NULL);
    return text ? read_status(text, ret)
                : read_named(exam, scratch, gp_machine_variable(&exam->machine, "USER"), ret);
}

static bool is_member(const struct gp_credentials *who, unsigned group)
{
    const char *p = who->groups + strspn(who->groups, "\t ");
    for (char *end; *p >= '0' && *p <= '9'; p = end + strspn(end, " "))
        if (strtoul(p, &end, 10) == group)
            return true;
    return who->group == group;
}

/* The groups whose members are to use GPUs. */
static const char *const own_groups[] = {"render", "video"};

static bool is_own(const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(own_groups); i++)
        if (strcmp(name, own_groups[i]) == 0)
            return true;
    return false;
}

/* "render:x:109:alice". Of several names of a number, the one that is meant for GPUs, or the first.
 */
static void name_group(struct gp_exam *exam, struct gp_arena *scratch, unsigned group, char *ret,
                       size_t size)
{
    const char *text = gp_files_text(&exam->files, scratch, "/etc/group", 1 << 20, NULL);
    char name_here[sizeof((struct gp_access){0}.group_name)];
    bool is_named = false;
    (void)snprintf(ret, size, "%u", group);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t name = strcspn(line, ":\n");
        const char *number = line[name] == ':' ? strpbrk(line + name + 1, ":\n") : NULL;
        if (number && *number == ':' && number[1] >= '0' && number[1] <= '9' &&
            strtoul(number + 1, NULL, 10) == group) {
            (void)snprintf(name_here, sizeof(name_here), "%.*s", (int)name, line);
            if (!is_named || (is_own(name_here) && !is_own(ret)))
                (void)snprintf(ret, size, "%s", name_here);
            is_named = true;
        }
    }
}

size_t gp_access_twin(struct gp_exam *exam, const char *name, unsigned group, unsigned *ret)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/etc/group", 1 << 20, NULL);
    size_t count = 0;
    *ret = group;
    for (const char *line = text ? line_of(text, name) : NULL; line; line = line_of(line, name)) {
        unsigned number = (unsigned)strtoul(line, NULL, 10);
        count++;
        if (number != group)
            *ret = number;
    }
    return count;
}

const char *gp_access_members(struct gp_exam *exam, unsigned group)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/etc/group", 1 << 20, NULL);
    const char *mark = gp_exam_text(exam, ":%u:", group), *members = "";
    for (const char *line = text; line && *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        const char *one = gp_exam_text(exam, "%.*s", (int)strcspn(line, "\n"), line);
        const char *found = strstr(one, mark);
        if (found && found[strlen(mark)])
            members =
                gp_exam_text(exam, "%s%s%s", members, members[0] ? "," : "", found + strlen(mark));
    }
    return members;
}

/* Whether this is a user namespace with a part of the numbers. Its root has no more rights than
 * others to files whose owner or group has no number in it. */
static bool is_mapped(struct gp_exam *exam)
{
    char line[64];
    return gp_files_line(&exam->files, "/proc/self/uid_map", line, sizeof(line)) &&
           !strstr(line, "4294967295");
}

bool gp_credentials_of_process(struct gp_exam *exam, const char *status, struct gp_credentials *ret)
{
    return read_status(gp_files_text(&exam->files, &exam->arena, status, 65536, NULL), ret);
}

/* NULL: it is not known who. */
static struct gp_access access_of(struct gp_exam *exam, struct gp_arena *scratch, const char *path,
                                  const struct gp_credentials *who)
{
    struct gp_access access = {.is_known = who, .is_root = who && who->user == 0};
    struct stat st;
    bool is_confined = access.is_root && is_mapped(exam);
    access.is_there = gp_files_stat(&exam->files, path, &st) == 0;
    if (!access.is_there)
        return access;
    access.mode = st.st_mode & 0777;
    access.group = st.st_gid;
    name_group(exam, scratch, st.st_gid, access.group_name, sizeof(access.group_name));
    /* As the kernel does it: the first match of owner, group and others decides. */
    unsigned bits = !access.is_known ? 0
                    : access.is_root
                        ? (is_confined && st.st_gid == GP_ACCESS_NOBODY ? access.mode : 06)
                    : who->user == st.st_uid    ? access.mode >> 6
                    : is_member(who, st.st_gid) ? access.mode >> 3
                                                : access.mode;
    access.may_use = (bits & 06) == 06;
    return access;
}

struct gp_access gp_access_of_credentials(struct gp_exam *exam, const char *path,
                                          const struct gp_credentials *who)
{
    struct gp_arena scratch = {0};
    struct gp_access access = access_of(exam, &scratch, path, who);
    gp_arena_fini(&scratch);
    return access;
}

struct gp_access gp_access_of(struct gp_exam *exam, const char *path)
{
    struct gp_arena scratch = {0};
    struct gp_credentials who;
    bool is_known = read_identity(exam, &scratch, &who);
    struct gp_access access = access_of(exam, &scratch, path, is_known ? &who : NULL);
    gp_arena_fini(&scratch);
    return access;
}

struct gp_access gp_access_of_user(struct gp_exam *exam, const char *path, const char *user)
{
    struct gp_arena scratch = {0};
    struct gp_credentials who;
    bool is_known = read_named(exam, &scratch, user, &who);
    struct gp_access access = access_of(exam, &scratch, path, is_known ? &who : NULL);
    gp_arena_fini(&scratch);
    return access;
}

struct gp_access gp_access_of_process(struct gp_exam *exam, const char *path, const char *status)
{
    struct gp_credentials who;
    bool is_known = gp_credentials_of_process(exam, status, &who);
    return gp_access_of_credentials(exam, path, is_known ? &who : NULL);
}

/* The name of the examining user, by number; "": unknown. */
static const char *own_name(struct gp_exam *exam)
{
    struct gp_credentials who;
    const char *users = gp_files_text(&exam->files, &exam->arena, "/etc/passwd", 1 << 20, NULL);
    if (!read_identity(exam, &exam->arena, &who))
        return "";
    const char *mark = gp_exam_text(exam, ":%u:", who.user);
    for (const char *line = users; line && *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        const char *one = gp_exam_text(exam, "%.*s", (int)strcspn(line, "\n"), line);
        const char *rest = strchr(one, ':') ? strchr(strchr(one, ':') + 1, ':') : NULL;
        if (rest && strncmp(rest, mark, strlen(mark)) == 0)
            return gp_exam_text(exam, "%.*s", (int)strcspn(one, ":"), one);
    }
    return "";
}

bool gp_access_is_new(struct gp_exam *exam, const struct gp_access *access)
{
    const char *name = own_name(exam);
    return *name && gp_lines_list_has(gp_access_members(exam, access->group), name) &&
           !exam->machine.container && !access->is_root && (access->mode & 060) == 060;
}

const char *gp_access_words(struct gp_exam *exam, const struct gp_access *access)
{
    return gp_exam_text(exam,
                        gp_access_is_new(exam, access)
                            ? "this session began before you were in group %s"
                            : "you are not in group %s",
                        access->group_name);
}

size_t gp_access_denied(struct gp_exam *exam, const char *folder, const char *word,
                        struct gp_access *ret, const char **ret_path)
{
    char **names;
    size_t denied = 0;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        if (strncmp(names[i], word, strlen(word)) != 0)
            continue;
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        struct gp_access access = gp_access_of(exam, path);
        if (!access.is_known || access.may_use || denied++ > 0)
            continue;
        *ret = access;
        *ret_path = path;
    }
    return denied;
}

bool gp_access_is_foreign(const struct gp_exam *exam, const struct gp_access *access)
{
    return !is_own(access->group_name) && gp_machine_is_lxc(&exam->machine);
}

bool gp_access_is_powerful(const struct gp_access *access)
{
    static const char *const names[] = {
        "root",      "daemon",   "bin",
        "sys",       "adm",      "tty",
        "disk",      "mem",      "kmem",
        "sudo",      "wheel",    "admin",
        "staff",     "operator", "backup",
        "shadow",    "docker",   "podman",
        "lxd",       "incus",    "incus-admin",
        "libvirt",   "qemu",     "kvm",
        "input",     "uinput",   "systemd-journal",
        "ssl-cert",  "microk8s", "mysql",
        "netdev",    "postgres", "vboxusers",
        "wireshark", "www-data",
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strcmp(access->group_name, names[i]) == 0)
            return true;
    return access->group == 0;
}

bool gp_access_has_render(struct gp_exam *exam)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/etc/group", 1 << 20, NULL);
    return !text || line_of(text, "render");
}

const char *gp_access_render(struct gp_exam *exam)
{
    struct gp_access node = gp_access_of(exam, "/dev/dri/renderD128");
    if (node.is_there && node.group != 0 && !gp_access_is_foreign(exam, &node))
        return gp_exam_text(exam, "%u", node.group);
    const char *text = gp_files_text(&exam->files, &exam->arena, "/etc/group", 1 << 20, NULL);
    const char *number = line_of(text, "render");
    return number ? gp_exam_text(exam, "%lu", strtoul(number, NULL, 10)) : NULL;
}
