/* LXC containers of this host that are given a GPU's file in /dev/dri by a mount: whether the rules
 * of their control groups and the numbers of their users let them open it. */
#include "doctor/checks/container_lxc_render.h"

#include "doctor/exam.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char node[] = "/dev/dri/renderD";
enum {
    NODE = sizeof(node) - 1,
    DRM = 226,
    FIRST = 128,
    SHIFT = 100000,
    USERS = 65536,
    DEVICES = 32
};

/* "/dev/dri/renderD128 dev/…", or the first one of all: "/dev/dri dev/dri none bind" */
static const char *file_of(struct gp_exam *exam, const char *value)
{
    const char *path = gp_exam_text(exam, "%.*s", (int)strcspn(value, ", \t"), value);
    char **names;
    if (strncmp(path, node, NODE) == 0)
        return gp_files_exist(&exam->files, path) ? path : NULL;
    long n = strcmp(path, "/dev/dri") == 0 || strcmp(path, "/dev/dri/") == 0
                 ? gp_files_list(&exam->files, &exam->arena, "/dev/dri", &names)
                 : 0;
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "renderD", 7) == 0)
            return gp_exam_text(exam, "/dev/dri/%s", names[i]);
    return NULL;
}

/* "a", "c 226:* rwm", "c 226:128 rwm" */
static void take_rule(struct gp_lxc_render *render, const char *value)
{
    char *end;
    if (*value == 'a' || strncmp(value, "c *:*", 5) == 0)
        render->may_all = true;
    if (*value != 'c' || strtoul(value + 1, &end, 10) != DRM || *end != ':')
        return;
    unsigned long minor = strtoul(end + 1, NULL, 10);
    render->may_all = render->may_all || end[1] == '*';
    if (minor >= FIRST && minor < FIRST + 64)
        render->allowed |= 1ULL << (minor - FIRST);
}

static unsigned long minor_of(const struct gp_lxc_render *render)
{
    return strtoul(render->file + NODE, NULL, 10);
}

static bool may_open(const struct gp_lxc_render *render)
{
    unsigned long minor = minor_of(render);
    return render->may_all || (render->is_folder && render->allowed) || minor < FIRST ||
           minor >= FIRST + 64 || (render->allowed >> (minor - FIRST) & 1);
}

/* "dev0: /dev/ttyUSB0" */
static void take_device(struct gp_lxc_render *render, const char *line, const char *value)
{
    char *end;
    unsigned long place = strtoul(line + 3, &end, 10);
    if (end > line + 3 && *end == ':' && place < DEVICES)
        render->devices |= 1U << place;
    render->is_given = render->is_given || strstr(value, node);
}

bool gp_lxc_is_key(const char *line, size_t n, const char *key)
{
    return n == strlen(key) && strncmp(line, key, n) == 0;
}

void gp_lxc_render_line(struct gp_exam *exam, struct gp_lxc_render *render, const char *line,
                        size_t n, const char *value, enum gp_cgroup_version version)
{
    bool is_rule = n > 14 && strncmp(line + n - 14, ".devices.allow", 14) == 0;
    if (gp_lxc_is_key(line, n, "unprivileged"))
        render->is_unprivileged = *value == '1';
    else if (gp_lxc_is_key(line, n, "lxc.idmap"))
        render->is_mapped = true;
    else if (n > 3 && strncmp(line, "dev", 3) == 0)
        take_device(render, line, value);
    else if (gp_lxc_is_key(line, n, "lxc.mount.entry") && file_of(exam, value)) {
        render->file = file_of(exam, value);
        render->line = line;
        render->is_folder = strncmp(value, node, NODE) != 0;
    }
    if (is_rule && strstr(value, "226:"))
        render->rule = line;
    if (is_rule && gp_cgroups_may_use(version, strncmp(line, "lxc.cgroup2", 11) == 0))
        take_rule(render, value);
}

/* Whether users whose numbers are shifted may open it: as others, or as it is theirs. */
static bool may_shifted(struct gp_exam *exam, const char *file, struct stat *ret)
{
    return gp_files_stat(&exam->files, file, ret) < 0 || (ret->st_mode & 06) == 06 ||
           ret->st_uid >= SHIFT || ret->st_gid >= SHIFT || ret->st_gid == 0;
}

static bool has_devices(const struct gp_exam *exam)
{
    return gp_version_compare(exam->machine.kernel, "6.8") >= 0; /* Proxmox 8.2 */
}

/* Proxmox creates the file anew, with a group of the container. */
static void give_device(struct gp_exam *exam, const struct gp_lxc_render *render, const char *path,
                        const char *id)
{
    unsigned place = 0;
    while (place < DEVICES - 1 && (render->devices >> place & 1))
        place++;
    gp_exam_advice(exam, "delete the line %s in %s", render->line, path);
    gp_exam_command(exam,
                    "while it runs, with the number of its group render; if it has none, with that "
                    "of another group of the program's user",
                    "pct set %s --dev%u %s,gid=$(pct exec %s -- getent group render | cut "
                    "-d: -f3)",
                    gp_exam_quoted(exam, id), place, gp_exam_quoted(exam, render->file),
                    gp_exam_quoted(exam, id));
    gp_exam_command(exam, "", "pct reboot %s", gp_exam_quoted(exam, id));
}

static void report_owner(struct gp_exam *exam, const struct gp_lxc_render *render, const char *path,
                         const char *id, const struct stat *st)
{
    const unsigned group = (unsigned)st->st_gid, after = group + 1;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "LXC container %s may not open %s: the file's group has no number in it", id,
                   render->file);
    gp_exam_evidence(exam, path, "unprivileged: 1; %s", render->line);
    gp_exam_evidence(exam, render->file, "mode %04o, group %u", (unsigned)st->st_mode & 07777,
                     group);
    gp_exam_why(exam,
                "The container's users have other numbers on the host, from %d on, and its "
                "root, too: there the file has the group nogroup.",
                SHIFT);
    if (has_devices(exam)) {
        give_device(exam, render, path, id);
        return;
    }
    gp_exam_command(exam, "let root map this group", "echo root:%u:1 >> /etc/subgid", group);
    gp_exam_advice(exam,
                   "add to %s: lxc.idmap: u 0 %d %d; lxc.idmap: g 0 %d %u; lxc.idmap: g %u %u 1; "
                   "lxc.idmap: g %u %u %u, each on a line of its own",
                   path, SHIFT, USERS, SHIFT, group, group, group, after, SHIFT + after,
                   USERS - after);
    gp_exam_command(exam, "then", "pct reboot %s", gp_exam_quoted(exam, id));
    gp_exam_advice(exam,
                   "the file then has group %u in the container: the program's user there "
                   "must be in it",
                   group);
}

static void report_rule(struct gp_exam *exam, const struct gp_lxc_render *render, const char *path,
                        const char *id)
{
    bool is_first = gp_cgroups_of(exam).version == GP_CGROUP_FIRST;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "LXC container %s may not open %s: no rule allows number %d:%lu", id,
                   render->file, DRM, minor_of(render));
    gp_exam_evidence(exam, path, "%s", render->line);
    gp_exam_evidence(exam, path, "%s", render->rule ? render->rule : "no lxc.cgroup…devices.allow");
    gp_exam_why(exam, "LXC denies all devices that no rule allows, also those that are mounted: "
                      "\"Operation not permitted\".");
    if (has_devices(exam)) {
        give_device(exam, render, path, id);
        return;
    }
    gp_exam_advice(exam, "add to %s the line lxc.cgroup%s.devices.allow: c %d:* rwm", path,
                   is_first ? "" : "2", DRM);
    gp_exam_command(exam, "then", "pct reboot %s", gp_exam_quoted(exam, id));
}

void gp_lxc_render_check(struct gp_exam *exam, const struct gp_lxc_render *render, const char *path,
                         const char *id)
{
    struct stat st;
    if (!id || !render->file || render->is_given || render->is_mapped)
        return;
    if (!render->is_unprivileged && !may_open(render))
        report_rule(exam, render, path, id);
    else if (render->is_unprivileged && !may_shifted(exam, render->file, &st))
        report_owner(exam, render, path, id, &st);
}
