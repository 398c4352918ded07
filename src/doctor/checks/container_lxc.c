/* A host of LXC containers, such as Proxmox: whether those that are given a GPU may open its device
 * files. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_lxc_render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "101.conf" in the first, "NAME/config" in the second. */
#define PROXMOX "/etc/pve/lxc"
#define PLAIN "/var/lib/lxc"

struct guest {
    const char *path, *name;
    const char *rule;               /* the last that allows a device; NULL: none does */
    const char *gone, *line;        /* a device file that this host lacks, and where; NULL: none */
    bool has_gpu, has_uvm;          /* their device files are mounted */
    bool may_all, may_gpu, may_uvm; /* rules of the control groups that are in use */
    bool has_other_rules;           /* rules of the other version of them */
    struct gp_lxc_render render;    /* what it is given of /dev/dri */
};

static bool has_second_cgroups(struct gp_exam *exam)
{
    return gp_files_exist(&exam->files, "/sys/fs/cgroup/cgroup.controllers");
}

/* "c 195:* rwm" */
static void take_rule(struct guest *guest, const char *value, unsigned long uvm)
{
    guest->may_all = guest->may_all || *value == 'a' || strncmp(value, "c *:*", 5) == 0;
    if (*value != 'c')
        return;
    unsigned long major = strtoul(value + 1, NULL, 10);
    guest->may_gpu = guest->may_gpu || major == 195;
    guest->may_uvm = guest->may_uvm || (uvm > 0 && major == uvm);
}

/* A device file, given by a mount or by Proxmox, which allows it, too. */
static void take_file(struct guest *guest, const char *path, bool is_allowed)
{
    static const char gpu[] = "/dev/nvidia", uvm[] = "/dev/nvidia-uvm";
    if (strncmp(path, uvm, sizeof(uvm) - 1) == 0 && path[sizeof(uvm) - 1] != '-') {
        guest->has_uvm = true;
        guest->may_uvm = guest->may_uvm || is_allowed;
    } else if (strncmp(path, gpu, sizeof(gpu) - 1) == 0 && path[sizeof(gpu) - 1] >= '0' &&
               path[sizeof(gpu) - 1] <= '9') {
        guest->has_gpu = true;
        guest->may_gpu = guest->may_gpu || is_allowed;
    } else if (strncmp(path, "/dev ", 5) == 0) {
        guest->has_gpu = guest->has_uvm = true; /* all of them */
    }
}

/* "/dev/dri/renderD128,gid=104", "/dev/dri/card0 dev/dri/card0 none bind,optional": a file that is
 * missing while there are others. */
static void find_gone(struct gp_exam *exam, struct guest *guest, const char *line,
                      const char *value)
{
    const char *path = gp_exam_text(exam, "%.*s", (int)strcspn(value, ", \t"), value);
    if (strncmp(path, "/dev/dri/", 9) == 0 && gp_files_exist(&exam->files, "/dev/dri") &&
        !gp_files_exist(&exam->files, path)) {
        guest->gone = path;
        guest->line = line;
    }
}

/* "lxc.mount.entry: /dev/nvidia0 …" of Proxmox, "lxc.mount.entry = …" of others. */
static void take_line(struct gp_exam *exam, struct guest *guest, const char *line,
                      unsigned long uvm)
{
    const bool is_second = has_second_cgroups(exam);
    const char *mine = is_second ? "lxc.cgroup2.devices.allow" : "lxc.cgroup.devices.allow";
    const char *other = is_second ? "lxc.cgroup.devices.allow" : "lxc.cgroup2.devices.allow";
    size_t n = strcspn(line, " \t:=");
    const char *value = line + n + strspn(line + n, " \t:=");
    bool is_mount = strncmp(line, "lxc.mount.entry", n) == 0 && n == 15;
    bool is_device =
        strncmp(line, "dev", 3) == 0 && n > 3 && strspn(line + 3, "0123456789") == n - 3;
    value += is_device && strncmp(value, "path=", 5) == 0 ? 5 : 0;
    gp_lxc_render_line(exam, &guest->render, line, n, value, is_second);
    if (is_mount || is_device) {
        find_gone(exam, guest, line, value);
        take_file(guest, value, is_device);
    } else if (strncmp(line, mine, n) == 0 && n == strlen(mine))
        take_rule(guest, value, uvm);
    else if (strncmp(line, other, n) == 0 && n == strlen(other))
        guest->has_other_rules = true;
    else
        return;
    if (strncmp(line, "lxc.cgroup", 10) == 0)
        guest->rule = line;
}

/* Up to the first snapshot, which has its own settings. */
static void read_guest(struct gp_exam *exam, struct guest *guest, unsigned long uvm)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, guest->path, 1 << 16, NULL);
    for (const char *line = text; line && *line && *line != '['; line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        take_line(exam, guest, gp_exam_text(exam, "%.*s", (int)n, line), uvm);
        line += n;
    }
}

/* Between a key and its value. */
static const char *sign_of(const struct guest *guest)
{
    return strncmp(guest->path, PROXMOX, sizeof(PROXMOX) - 1) == 0 ? ":" : " =";
}

static void restart(struct gp_exam *exam, const struct guest *guest)
{
    if (*sign_of(guest) == ':') {
        gp_exam_advice(exam, "or, since Proxmox 8.2, replace these lines and the mounts by one "
                             "line for each device file, which needs no numbers: dev0: "
                             "/dev/nvidia0, dev1: /dev/nvidiactl, dev2: /dev/nvidia-uvm");
        gp_exam_command(exam, "then", "sudo pct reboot %s", gp_exam_quoted(exam, guest->name));
        return;
    }
    gp_exam_command(exam, "then", "sudo lxc-stop -n %s", gp_exam_quoted(exam, guest->name));
    gp_exam_command(exam, "", "sudo lxc-start -n %s", gp_exam_quoted(exam, guest->name));
}

static void report_other(struct gp_exam *exam, const struct guest *guest)
{
    const bool is_second = has_second_cgroups(exam);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "LXC container %s may not open its GPU: its rules are for control groups v%d",
                   guest->name, is_second ? 1 : 2);
    gp_exam_evidence(exam, guest->path, "%s", guest->rule);
    gp_exam_evidence(exam, "/sys/fs/cgroup/cgroup.controllers", "%s",
                     is_second ? "present: control groups v2" : "missing: control groups v1");
    gp_exam_why(exam, "LXC ignores rules of the other version, and denies all other devices: in "
                      "the container nvidia-smi and CUDA may not open the device files.");
    gp_exam_advice(exam,
                   "in %s write lxc.cgroup%s.devices.allow in place of lxc.cgroup%s."
                   "devices.allow",
                   guest->path, is_second ? "2" : "", is_second ? "" : "2");
    restart(exam, guest);
}

static void report_number(struct gp_exam *exam, const struct guest *guest, unsigned long uvm)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "LXC container %s may not open /dev/nvidia-uvm: CUDA does not work in it",
                   guest->name);
    gp_exam_evidence(exam, guest->path, "no rule allows number %lu%s%s", uvm,
                     guest->rule ? "; the last rule: " : "", guest->rule ? guest->rule : "");
    gp_exam_evidence(exam, "/proc/devices", "%lu nvidia-uvm", uvm);
    gp_exam_why(exam, "The kernel chooses the number when the module is loaded, so it may change "
                      "with a boot or an update. nvidia-smi works in the container all the same.");
    gp_exam_advice(exam,
                   "in %s write the line lxc.cgroup%s.devices.allow: c %lu:* rwm, in place "
                   "of the one with the former number",
                   guest->path, has_second_cgroups(exam) ? "2" : "", uvm);
    restart(exam, guest);
}

static void report_no_uvm(struct gp_exam *exam, const struct guest *guest, unsigned long uvm)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "LXC container %s has a GPU, but not /dev/nvidia-uvm: CUDA does not work in it",
                   guest->name);
    gp_exam_evidence(exam, guest->path, "no line mounts /dev/nvidia-uvm");
    gp_exam_why(exam, "nvidia-smi works without it, but CUDA does not: \"CUDA unknown error\", or "
                      "no device at all.");
    gp_exam_advice(exam,
                   "add to %s the line lxc.mount.entry%s /dev/nvidia-uvm dev/nvidia-uvm none "
                   "bind,optional,create=file",
                   guest->path, sign_of(guest));
    if (uvm > 0 && !guest->may_uvm && !guest->may_all)
        gp_exam_advice(exam, "and the line lxc.cgroup%s.devices.allow%s c %lu:* rwm",
                       has_second_cgroups(exam) ? "2" : "", sign_of(guest), uvm);
    restart(exam, guest);
}

static void report_gone(struct gp_exam *exam, const struct guest *guest)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, "/dev/dri", &names);
    bool is_optional = strstr(guest->line, "optional"), is_minor = strstr(guest->gone, "/card");
    gp_exam_report(exam, is_optional && is_minor ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "LXC container %s %s: its settings name %s, which does not exist", guest->name,
                   is_optional ? "lacks a device" : "does not start", guest->gone);
    gp_exam_evidence(exam, guest->path, "%s", guest->line);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "card", 4) == 0 || strncmp(names[i], "renderD", 7) == 0)
            gp_exam_evidence(exam, gp_exam_text(exam, "/dev/dri/%s", names[i]), "present");
    gp_exam_why(exam, "The kernel numbers these files as it finds the GPUs: an update, another GPU "
                      "or a change in the firmware setup may change them.");
    gp_exam_advice(exam, "name the present file in %s", guest->path);
    if (*sign_of(guest) == ':')
        gp_exam_command(exam, "then", "sudo pct %s %s", is_optional ? "reboot" : "start",
                        gp_exam_quoted(exam, guest->name));
}

static void check_guest(struct gp_exam *exam, const char *path, const char *name)
{
    unsigned long uvm = gp_container_uvm_major(exam);
    struct guest guest = {.path = path, .name = name};
    read_guest(exam, &guest, uvm);
    if (guest.gone)
        report_gone(exam, &guest);
    else
        gp_lxc_render_check(exam, &guest.render, path, *sign_of(&guest) == ':' ? name : NULL);
    if (!guest.has_gpu)
        return;
    if (!guest.may_all && !guest.may_gpu && guest.has_other_rules)
        report_other(exam, &guest);
    else if (!guest.has_uvm)
        report_no_uvm(exam, &guest, uvm);
    else if (!guest.may_all && !guest.may_uvm && guest.may_gpu && uvm > 0)
        report_number(exam, &guest, uvm);
}

bool gp_container_has_guests(struct gp_exam *exam)
{
    return exam->machine.gpu_count > 0 && !exam->machine.container &&
           (gp_files_exist(&exam->files, PROXMOX) || gp_files_exist(&exam->files, PLAIN));
}

void gp_container_check_guests(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, PROXMOX, &names);
    if (n == -EACCES)
        gp_exam_unreadable(exam, PROXMOX, (int)n);
    for (long i = 0; i < n; i++) {
        const char *end = strstr(names[i], ".conf");
        if (end && !end[5])
            check_guest(exam, gp_exam_text(exam, PROXMOX "/%s", names[i]),
                        gp_exam_text(exam, "%.*s", (int)(end - names[i]), names[i]));
    }
    n = gp_files_list(&exam->files, &exam->arena, PLAIN, &names);
    for (long i = 0; i < n; i++)
        check_guest(exam, gp_exam_text(exam, PLAIN "/%s/config", names[i]), names[i]);
}
