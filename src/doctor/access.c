#include "doctor/access.h"

#include "doctor/exam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct identity {
    unsigned user;
    const char *groups; /* the numbers behind "Groups:", and the one behind "Gid:" before them */
};

/* Of /proc/self/status: "Uid:\t1000\t1000\t1000\t1000". */
static bool read_identity(struct gp_exam *exam, struct identity *ret)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/proc/self/status", 65536, NULL);
    const char *user = text ? strstr(text, "\nUid:") : NULL;
    const char *group = text ? strstr(text, "\nGid:") : NULL;
    const char *groups = text ? strstr(text, "\nGroups:") : NULL;
    if (!user || !group || !groups)
        return false;
    ret->user = (unsigned)strtoul(user + 5, NULL, 10);
    ret->groups = gp_exam_text(exam, " %.*s %.*s ", (int)strcspn(group + 5, "\n"), group + 5,
                               (int)strcspn(groups + 8, "\n"), groups + 8);
    return true;
}

static bool is_member(const char *groups, unsigned group)
{
    for (char *end; *groups; groups = end) {
        unsigned long number = strtoul(groups, &end, 10);
        if (end == groups)
            break;
        if (number == group)
            return true;
    }
    return false;
}

/* "render:x:109:alice" */
static void name_group(struct gp_exam *exam, unsigned group, char *ret, size_t size)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/etc/group", 1 << 20, NULL);
    (void)snprintf(ret, size, "%u", group);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *password = strchr(line, ':');
        const char *number = password ? strchr(password + 1, ':') : NULL;
        if (!number)
            return;
        if (number[1] >= '0' && number[1] <= '9' && strtoul(number + 1, NULL, 10) == group) {
            (void)snprintf(ret, size, "%.*s", (int)(password - line), line);
            return;
        }
    }
}

struct gp_access gp_access_of(struct gp_exam *exam, const char *path)
{
    struct gp_access access = {0};
    struct identity who;
    struct stat st;
    if (gp_files_stat(&exam->files, path, &st) < 0)
        return access;
    access.is_there = true;
    access.mode = st.st_mode & 0777;
    access.group = st.st_gid;
    name_group(exam, st.st_gid, access.group_name, sizeof(access.group_name));
    access.is_known = read_identity(exam, &who);
    if (!access.is_known)
        return access;
    access.may_use = who.user == 0 || (access.mode & 06) == 06 ||
                     (who.user == st.st_uid && (access.mode & 0600) == 0600) ||
                     (is_member(who.groups, st.st_gid) && (access.mode & 060) == 060);
    return access;
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

void gp_access_propose(struct gp_exam *exam, const struct gp_access *access, const char *path)
{
    if (exam->machine.container)
        gp_exam_advice(exam,
                       "start the container with --group-add %u: the number counts, not the name",
                       access->group);
    else if (access->group == 0)
        gp_exam_advice(exam, "%s belongs to root alone: give it to group render by a rule of udev",
                       path);
    else
        gp_exam_command(exam, "then log in again", "sudo usermod -aG %s $USER",
                        gp_exam_quoted(exam, access->group_name));
}
