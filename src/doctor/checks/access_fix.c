#include "doctor/checks/access_fix.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/access.h"
#include "doctor/readers/accounts.h"
#include "doctor/readers/services.h"

#include <string.h>

/* Of an LXC container, a whole system, whose numbers of groups are not those of its host. */
static void propose_number(struct gp_exam *exam, const struct gp_access *access, const char *path)
{
    const char *why =
        access->group == 0 ? "give the device to the group of the render nodes for good"
        : access->group == GP_ACCESS_NOBODY ? "the device has no group of this container"
                                            : "the device has the number of the host's group";
    const char *number = gp_access_render(exam);
    if (!gp_access_has_render(exam))
        gp_exam_command(exam, "there is no such group here yet", "sudo groupadd --system render");
    gp_exam_advice(exam,
                   "%s: on Proxmox, pass it with its number here, in /etc/pve/lxc/ID.conf: dev0: "
                   "%s,gid=%s (the line with lxc.mount.entry for it goes); then start the "
                   "container again",
                   why, path, number ? number : "NUMBER, that of group render here");
    if (access->group != 0 && access->group != GP_ACCESS_NOBODY)
        gp_exam_advice(exam,
                       "or, before Proxmox 8.2, give render the number %u in /etc/group here, and "
                       "a group that has it the former number of render",
                       access->group);
}

void gp_access_show(struct gp_exam *exam, const struct gp_access *access, const char *path)
{
    gp_exam_evidence(exam, path, "mode %04o, group %s (%u)", access->mode, access->group_name,
                     access->group);
}

/* Whether its name, which may be cut, means itself in a regular expression and to a shell. */
static bool is_plain(const struct gp_access *access)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *name = access->group_name;
    return name[0] != '-' && !name[strspn(name, letters)] &&
           strlen(name) < sizeof(access->group_name) - 1;
}

/* usermod, gpasswd and groupmod refuse a name that is there twice: the other line gets another one.
 * It is not removed: files, members and users whose first group it is have its number. */
static void make_unique(struct gp_exam *exam, const struct gp_access *access)
{
    static const char path[] = "/etc/group";
    const char *name = access->group_name;
    unsigned other;
    size_t count = gp_access_twin(exam, name, access->group, &other);
    if (count < 2)
        return;
    if (other == access->group) {
        gp_exam_evidence(exam, path, "%s lines of group %s", count == 2 ? "two" : "several", name);
        gp_exam_command(
            exam, "make the lines of the group one: no tool changes a name that is there twice",
            "sudo vigr");
        return;
    }
    if (count > 2)
        gp_exam_evidence(exam, path, "several groups %s, of number %u and others", name,
                         access->group);
    else
        gp_exam_evidence(exam, path, "two groups %s: %u and %u", name, access->group, other);
    if (count > 2 || !is_plain(access))
        gp_exam_command(
            exam,
            gp_exam_text(
                exam,
                "leave the name only to the group of number %u: no tool changes one of several",
                access->group),
            "sudo vigr");
    else
        gp_exam_command(exam, "rename the other group of this name: no tool changes one of two",
                        "sudo sed -i.before 's/^%s:\\([^:]*:%u:\\)/%s-%u:\\1/' %s", name, other,
                        name, other, path);
}

void gp_access_join(struct gp_exam *exam, const struct gp_access *access, const char *note,
                    const char *user)
{
    make_unique(exam, access);
    gp_exam_command(exam, note, "sudo usermod -aG %s %s", gp_exam_quoted(exam, access->group_name),
                    user);
}

static bool is_service(const char *unit)
{
    return gp_lines_ends(unit, ".service");
}

/* The examining user if it is one of services, who cannot log in nor use sudo; NULL: a person. */
static const char *service_user(struct gp_exam *exam)
{
    const char *name = gp_machine_variable(&exam->machine, "USER");
    char *text = gp_accounts_text(exam);
    struct gp_account_line line;
    while (name && text && gp_accounts_next(&text, &line))
        if (strcmp(line.name, name) == 0)
            return gp_lines_ends(line.shell, "/nologin") || gp_lines_ends(line.shell, "/false")
                       ? line.name
                       : NULL;
    return NULL;
}

/* The doctor was run as the user of a service, as by sudo -u: an administrator adds that user. */
static bool join_service(struct gp_exam *exam, const struct gp_access *access)
{
    enum { MOST = 512 };
    const char *units[MOST], *user = service_user(exam);
    if (!user)
        return false;
    gp_access_join(exam, access, "as an administrator", gp_exam_quoted(exam, user));
    size_t count = gp_service_units(exam, is_service, units, MOST);
    for (size_t i = 0; i < count; i++) {
        const char *of = gp_service_value(exam, units[i], "User");
        if (of && strcmp(of, user) == 0)
            gp_exam_command(exam, "", "sudo systemctl restart %s", gp_exam_quoted(exam, units[i]));
    }
    gp_exam_advice(exam, "then start every other program of this user again: a running one keeps "
                         "its old groups");
    return true;
}

void gp_access_propose(struct gp_exam *exam, const struct gp_access *access, const char *path)
{
    const char *kind = exam->machine.container;
    if (gp_access_is_new(exam, access)) {
        gp_exam_evidence(exam, "/etc/group", "%s: %s", access->group_name,
                         gp_access_members(exam, access->group));
        gp_exam_advice(exam, "log out and in again; if programs of yours keep running then (tmux, "
                             "services of systemd --user), reboot");
        return;
    }
    if (gp_access_is_foreign(exam, access))
        propose_number(exam, access, path);
    else if (kind && access->group == GP_ACCESS_NOBODY)
        gp_exam_advice(exam, "the container has no root and does not keep your groups: start it "
                             "with --group-add keep-groups (podman), as a user who is in the "
                             "device's group on the host");
    else if (kind && access->group == 0)
        gp_exam_advice(exam,
                       "give %s to group render on the host, with a udev rule; then start the "
                       "container with --group-add and the number of that group",
                       path);
    else if (kind && strcmp(kind, "lxc") != 0)
        gp_exam_advice(exam,
                       "start the container with --group-add %u (the number matters, not the name)",
                       access->group);
    else if (access->group == 0 && strcmp(path, "/dev/kfd") == 0)
        gp_exam_command(exam, "give it to group render, of which you must be a member; then reboot",
                        "echo 'KERNEL==\"kfd\", GROUP=\"render\", MODE=\"0660\"' | sudo tee "
                        "/etc/udev/rules.d/70-kfd.rules");
    else if (access->group == 0)
        gp_exam_advice(exam, "only root may use %s: assign it to group render with a udev rule",
                       path);
    else if (gp_access_is_powerful(access))
        gp_exam_advice(exam,
                       "assign %s to group render with a udev rule, and join that: members of %s "
                       "have other rights, too",
                       path, access->group_name);
    else if (!join_service(exam, access))
        gp_access_join(exam, access, "then log in again", "$USER");
}
