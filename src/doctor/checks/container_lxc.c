/* A host of LXC containers, such as Proxmox: whether those that are given a GPU may open its device
 * files. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_lxc_render.h"
#include "doctor/readers/cgroups.h"

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
    const char *node, *node_line;   /* a device file that nothing has created; NULL: none */
    bool is_template;
    bool makes_nodes_itself;     /* a script may create device files */
    struct gp_lxc_render render; /* what it is given of /dev/dri */
};

/* What follows "lxc.cgroup" in the key of a rule that is to have an effect. */
static const char *version_sign(struct gp_exam *exam)
{
    return gp_cgroups_of(exam).version == GP_CGROUP_FIRST ? "" : "2";
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

/* Likewise of NVIDIA's: the GPU's own before that of nvidia_uvm, which follows from it. */
static void find_absent(struct gp_exam *exam, struct guest *guest, const char *line,
                        const char *value)
{
    const char *node = gp_container_absent_node(exam, value);
    if (!node || (guest->node && !strstr(guest->node, "uvm")))
        return;
    guest->node = node;
    guest->node_line = line;
}

/* Scripts that run until a container has started may create device files, also in it; so may those
 * of settings that are included, but for LXC's own. */
static bool may_make_nodes(const char *line, size_t n, const char *value)
{
    static const char hook[] = "lxc.hook.", own[] = "/usr/share/lxc/config/";
    static const char *const later[] = {"lxc.hook.stop", "lxc.hook.post-stop", "lxc.hook.destroy",
                                        "lxc.hook.clone", "lxc.hook.version"};
    for (size_t i = 0; i < GP_ARRAY_LEN(later); i++)
        if (gp_lxc_is_key(line, n, later[i]))
            return false;
    return strncmp(line, hook, sizeof(hook) - 1) == 0 || gp_lxc_is_key(line, n, "hookscript") ||
           (gp_lxc_is_key(line, n, "lxc.include") && strncmp(value, own, sizeof(own) - 1) != 0);
}

/* "lxc.mount.entry: /dev/nvidia0 …" of Proxmox, "lxc.mount.entry = …" of others. */
static void take_line(struct gp_exam *exam, struct guest *guest, const char *line,
                      unsigned long uvm)
{
    const enum gp_cgroup_version version = gp_cgroups_of(exam).version;
    size_t n = strcspn(line, " \t:=");
    const char *value = line + n + strspn(line + n, " \t:=");
    bool is_mount = gp_lxc_is_key(line, n, "lxc.mount.entry");
    bool is_second_rule = gp_lxc_is_key(line, n, "lxc.cgroup2.devices.allow");
    bool is_device =
        strncmp(line, "dev", 3) == 0 && n > 3 && strspn(line + 3, "0123456789") == n - 3;
    value += is_device && strncmp(value, "path=", 5) == 0 ? 5 : 0;
    gp_lxc_render_line(exam, &guest->render, line, n, value, version);
    if (gp_lxc_is_key(line, n, "template"))
        guest->is_template = *value == '1';
    guest->makes_nodes_itself = guest->makes_nodes_itself || may_make_nodes(line, n, value);
    if (is_mount || is_device) {
        find_gone(exam, guest, line, value);
        find_absent(exam, guest, line, value);
        take_file(guest, value, is_device);
    } else if (is_second_rule || gp_lxc_is_key(line, n, "lxc.cgroup.devices.allow")) {
        guest->rule = line;
        if (gp_cgroups_may_use(version, is_second_rule))
            take_rule(guest, value, uvm);
        else
            guest->has_other_rules = true;
    }
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

/* It may be stopped, whatever its settings say: then only the second command has an effect.
 * `is_down`: it cannot be running. */
static const char *restart_of(struct gp_exam *exam, const struct guest *guest, bool is_down)
{
    const char *name = gp_exam_quoted(exam, guest->name);
    bool is_proxmox = *sign_of(guest) == ':';
    const char *start =
        gp_exam_text(exam, is_proxmox ? "sudo pct start %s" : "sudo lxc-start -n %s", name);
    if (is_down)
        return start;
    return gp_exam_text(exam, is_proxmox ? "sudo pct shutdown %s; %s" : "sudo lxc-stop -n %s; %s",
                        name, start);
}

static void restart(struct gp_exam *exam, const struct guest *guest)
{
    if (*sign_of(guest) == ':')
        gp_exam_advice(exam, "or, since Proxmox 8.2, replace these lines and the mounts by one "
                             "line for each device file, which needs no numbers: dev0: "
                             "/dev/nvidia0, dev1: /dev/nvidiactl, dev2: /dev/nvidia-uvm");
    gp_exam_command(exam, "then", "%s", restart_of(exam, guest, false));
}

static void report_other(struct gp_exam *exam, const struct guest *guest)
{
    const struct gp_cgroups cgroups = gp_cgroups_of(exam);
    const bool is_second = cgroups.version == GP_CGROUP_SECOND;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "LXC container %s may not open its GPU: its rules are for control groups v%d",
                   guest->name, is_second ? 1 : 2);
    gp_exam_evidence(exam, guest->path, "%s", guest->rule);
    gp_exam_evidence(exam, cgroups.where, "%s", cgroups.seen);
    gp_exam_why(exam, "LXC ignores rules of the other version, and denies all other devices: in "
                      "the container nvidia-smi and CUDA may not open the device files.");
    if (is_second)
        gp_exam_advice(exam,
                       "in %s write lxc.cgroup2.devices.allow in place of lxc.cgroup.devices.allow",
                       guest->path);
    else
        gp_exam_advice(exam,
                       "in %s add a copy of each rule lxc.cgroup2.devices.allow as "
                       "lxc.cgroup.devices.allow; both may be there",
                       guest->path);
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
                   guest->path, version_sign(exam), uvm);
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
                       version_sign(exam), sign_of(guest), uvm);
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
    gp_exam_command(exam, "then", "%s", restart_of(exam, guest, !is_optional));
}

static void report_absent(struct gp_exam *exam, const struct guest *guest)
{
    bool is_needed = !strstr(guest->node_line, "optional");
    gp_container_report_nodes(
        exam, &(struct gp_container_nodes){
                  .container = gp_exam_text(exam, "LXC container %s", guest->name),
                  .where = guest->path,
                  .line = guest->node_line,
                  .file = guest->node,
                  .restart = restart_of(exam, guest, is_needed),
                  .is_needed = is_needed,
                  .wants_number = guest->has_uvm && !guest->may_all && !guest->may_uvm,
                  .version_sign = version_sign(exam),
              });
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
    if (guest.node && !guest.is_template && !guest.makes_nodes_itself)
        report_absent(exam, &guest);
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
