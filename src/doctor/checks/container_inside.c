/* In a container of LXC, also those of LXD, Incus and Proxmox: how its host passes a GPU into it.
 */
#include "doctor/checks/container.h"

#include "doctor/readers/cgroups.h"
#include "doctor/readers/install.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

static const char mounts_path[] = "/proc/self/mounts";

static bool is_mounted(struct gp_exam *exam, const char *text)
{
    const char *mounts = gp_files_text(&exam->files, &exam->arena, mounts_path, 1 << 20, NULL);
    return mounts && strstr(mounts, text);
}

/* The command of what runs the container, by what it mounts in it: "incus", of LXD "lxc"; NULL:
 * neither. */
static const char *manager_of(struct gp_exam *exam)
{
    static const struct {
        const char *folder, *command;
    } rows[] = {{"/dev/.incus-mounts", "incus"},
                {"/dev/incus", "incus"},
                {"/dev/.lxd-mounts", "lxc"},
                {"/dev/lxd", "lxc"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        if (gp_files_exist(&exam->files, rows[i].folder) ||
            is_mounted(exam, gp_exam_text(exam, " %s ", rows[i].folder)))
            return rows[i].command;
    return NULL;
}

/* The system's own name, which LXD and Incus take from that of the container. */
static const char *name_of(struct gp_exam *exam)
{
    char line[128];
    return gp_files_line(&exam->files, "/etc/hostname", line, sizeof(line)) && line[0]
               ? gp_exam_quoted(exam, gp_exam_text(exam, "%s", line))
               : "NAME";
}

/* The number of Proxmox' container, by the volume of its root: "/dev/mapper/pve-vm--104--disk--0",
 * "rpool/data/subvol-104-disk-0"; "ID": unknown. */
static const char *id_of(struct gp_exam *exam)
{
    static const char *const marks[] = {"vm-", "subvol-"};
    const char *mounts = gp_files_text(&exam->files, &exam->arena, mounts_path, 1 << 20, NULL);
    const char *end = mounts ? strstr(mounts, " / ") : NULL, *line = end;
    while (line && line > mounts && line[-1] != '\n')
        line--;
    const char *volume = line ? gp_exam_text(exam, "%.*s", (int)(end - line), line) : "";
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++) {
        const char *at = strstr(volume, marks[i]);
        at = at ? at + strlen(marks[i]) : "";
        at += *at == '-'; /* the device mapper doubles it */
        size_t n = strspn(at, "0123456789");
        if (n > 0 && at[n] == '-')
            return gp_exam_text(exam, "%.*s", (int)n, at);
    }
    return "ID";
}

static bool is_proxmox(const struct gp_exam *exam)
{
    const char *end = strstr(exam->machine.kernel, "-pve");
    return end && !end[4];
}

/* Of this vendor's first GPU, "/dev/dri/renderD128". */
static const char *render_node(struct gp_exam *exam, unsigned vendor)
{
    static const char folder[] = "/sys/class/drm";
    const struct gp_machine *m = &exam->machine;
    const char *bus = "";
    char **names, real[GP_PATH_SIZE];
    for (size_t i = m->gpu_count; i-- > 0;)
        bus = m->gpus[i].vendor == vendor ? m->gpus[i].bus_id : bus;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "renderD", 7) == 0 && bus[0] &&
            gp_files_real(&exam->files, gp_exam_text(exam, "%s/%s/device", folder, names[i]),
                          real) &&
            strstr(real, bus))
            return gp_exam_text(exam, "/dev/dri/%s", names[i]);
    return "/dev/dri/renderD128";
}

/* The number that group render has here; "": it has none. */
static const char *render_group(struct gp_exam *exam)
{
    static const char start[] = "render:";
    const char *text = gp_files_text(&exam->files, &exam->arena, "/etc/group", 1 << 20, NULL);
    for (const char *line = text; line && *line; line += *line == '\n') {
        const char *number =
            strncmp(line, start, sizeof(start) - 1) == 0 ? strchr(line, ':') : NULL;
        number = number ? strchr(number + 1, ':') : NULL;
        if (number)
            return gp_exam_text(exam, "%lu", strtoul(number + 1, NULL, 10));
        line += strcspn(line, "\n");
    }
    return "";
}

/* The major number of a kind of device files; 0: unknown. */
static unsigned long major_of(struct gp_exam *exam, const char *kind)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/proc/devices", 1 << 16, NULL);
    const char *end = text ? strstr(text, gp_exam_text(exam, " %s\n", kind)) : NULL, *line = end;
    while (line && line > text && line[-1] != '\n')
        line--;
    return line ? strtoul(line, NULL, 10) : 0;
}

enum { GPUS = 16, FILES = GPUS + 3 };

struct device {
    const char *path;
    const char *kind; /* its name in /proc/devices; the major number is not always the same */
    unsigned long major;
};

/* NVIDIA's, of the first of its GPUs at least. */
static bool has_nvidia(const struct gp_exam *exam)
{
    return gp_files_exist(&exam->files, "/dev/nvidiactl");
}

/* The device files of the GPUs that are missing here. Returns their number. */
static size_t devices_of(struct gp_exam *exam, unsigned vendor, struct device ret[FILES])
{
    struct device all[FILES];
    size_t n = 0, count = 0;
    if (vendor == GP_PCI_NVIDIA) {
        for (size_t i = 0;
             !has_nvidia(exam) && i < GPUS && (i == 0 || i < exam->machine.nvidia_count); i++)
            all[n++] = (struct device){gp_exam_text(exam, "/dev/nvidia%zu", i), "", 195};
        all[n++] = (struct device){"/dev/nvidiactl", "", 195};
        all[n++] = (struct device){"/dev/nvidia-uvm", "nvidia-uvm", 0};
        if (!gp_files_exist(&exam->files, "/dev/nvidia-uvm")) /* few need it */
            all[n++] = (struct device){"/dev/nvidia-uvm-tools", "nvidia-uvm", 0};
    } else {
        all[n++] = (struct device){render_node(exam, vendor), "", 226};
    }
    if (vendor == GP_PCI_AMD)
        all[n++] = (struct device){"/dev/kfd", "kfd", 0};
    for (size_t i = 0; i < n; i++)
        if (!gp_files_exist(&exam->files, all[i].path))
            ret[count++] = all[i];
    return count;
}

/* Those of the host, of the same version as its module. */
static void advise_runtime(struct gp_exam *exam, const char *command, const char *name)
{
    if (gp_install_library(gp_install_of(exam)))
        return;
    gp_exam_command(exam,
                    "on the host, which needs NVIDIA Container Toolkit for it: pass in the "
                    "driver's libraries",
                    "%s config set %s nvidia.runtime true", command, name);
    gp_exam_command(exam, "", "%s restart %s", command, name);
}

/* By a device of its own kind, which has all files of the GPUs. */
static void advise_managed(struct gp_exam *exam, const char *command, unsigned vendor,
                           size_t missing)
{
    const struct gp_machine *m = &exam->machine;
    const char *name = name_of(exam);
    const char *group = vendor == GP_PCI_NVIDIA ? "" : render_group(exam);
    bool has_gpu = vendor == GP_PCI_NVIDIA && has_nvidia(exam);
    if (has_gpu && missing > 0) {
        gp_exam_command(exam, "on the host: it then passes the file, too", "%s restart %s", command,
                        name);
        return;
    }
    if (!has_gpu) {
        gp_exam_command(exam, "on the host, by the container's name there: give it all GPUs",
                        "%s config device add %s gpu gpu%s%s", command, name,
                        group[0] ? " gid=" : "", group);
        if (m->gpu_count > 1)
            gp_exam_advice(exam,
                           "to give it one GPU alone, add its address on the PCI bus to that line: "
                           "pci=%s",
                           m->gpus[0].bus_id);
    }
    if (vendor == GP_PCI_AMD && !gp_files_exist(&exam->files, "/dev/kfd"))
        gp_exam_advice(exam,
                       "if /dev/kfd is still missing here, which ROCm needs: %s config device add "
                       "%s kfd unix-char source=/dev/kfd path=/dev/kfd%s%s",
                       command, name, group[0] ? " gid=" : "", group);
    if (vendor == GP_PCI_NVIDIA)
        advise_runtime(exam, command, name);
}

/* By lines in its configuration. Proxmox before 8.2, whose kernels are older, has no others. */
static void advise_lines(struct gp_exam *exam, const struct device *devices, size_t count)
{
    const char *place = is_proxmox(exam) ? gp_exam_text(exam, "/etc/pve/lxc/%s.conf", id_of(exam))
                                         : "the container's configuration";
    const char *sign = is_proxmox(exam) ? ":" : " =";
    bool is_first = gp_cgroups_of(exam).version == GP_CGROUP_FIRST;
    gp_exam_advice(exam, "on the host, add to %s:", place);
    unsigned long last = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned long major = devices[i].major ? devices[i].major : major_of(exam, devices[i].kind);
        if (major != last && major > 0)
            gp_exam_advice(exam, "lxc.cgroup%s.devices.allow%s c %lu:* rwm", is_first ? "" : "2",
                           sign, major);
        last = major;
    }
    for (size_t i = 0; i < count; i++)
        gp_exam_advice(exam, "lxc.mount.entry%s %s %s none bind,optional,create=file", sign,
                       devices[i].path, devices[i].path + 1);
}

/* By Proxmox' own lines, which need no numbers and give the files to a group here. */
static void advise_proxmox(struct gp_exam *exam, const struct device *devices, size_t count,
                           bool is_nvidia)
{
    const char *group = is_nvidia ? "" : render_group(exam), *words = "";
    for (size_t i = 0; i < count; i++)
        words = gp_exam_text(exam, "%s --dev%zu %s%s%s", words, i, devices[i].path,
                             group[0] ? ",gid=" : "", group);
    gp_exam_command(exam,
                    "on the Proxmox host; if the container has devices already, with the next "
                    "free numbers",
                    "pct set %s%s", id_of(exam), words);
}

/* Of NVIDIA's, the container has its own: the host's module wants the same version. */
static void advise_libraries(struct gp_exam *exam)
{
    if (!gp_install_library(gp_install_of(exam)))
        gp_exam_advice(exam, "install the libraries of the host's driver version in the "
                             "container, without a module: NVIDIA's .run installer with "
                             "--no-kernel-module");
}

void gp_container_advise_lxc(struct gp_exam *exam, unsigned vendor)
{
    static const char with_devices[] = "6.8"; /* Proxmox 8.2 */
    struct device devices[FILES];
    size_t count = devices_of(exam, vendor, devices);
    const char *command = manager_of(exam);
    bool is_nvidia = vendor == GP_PCI_NVIDIA;
    if (command) {
        advise_managed(exam, command, vendor, count);
        return;
    }
    if (count > 0) {
        if (is_proxmox(exam) && gp_version_compare(exam->machine.kernel, with_devices) >= 0)
            advise_proxmox(exam, devices, count, is_nvidia);
        else
            advise_lines(exam, devices, count);
        if (is_proxmox(exam))
            gp_exam_command(exam, "on the host", "pct reboot %s", id_of(exam));
        else
            gp_exam_advice(exam, "then start the container again");
    }
    if (is_nvidia)
        advise_libraries(exam);
}
