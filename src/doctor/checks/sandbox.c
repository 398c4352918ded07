/* Services that systemd keeps from the GPUs: PrivateDevices=, DevicePolicy= and DeviceAllow=. */
#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/readers/jellyfin.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* A device file that programs need, and how drivers call it in /proc/devices. */
struct node {
    const char *path, *group;
};

static const struct node of_nvidia[] = {
    {"/dev/nvidiactl", "nvidia*"}, {"/dev/nvidia0", "nvidia*"}, {"/dev/nvidia-uvm", "nvidia-uvm"}};
static const struct node of_kfd = {"/dev/kfd", "kfd"};
static const struct node of_drm = {"/dev/dri/renderD128", "drm"};

/* Before systemd 253 ProtectClock= allowed the clock's device, and so forbade all others. */
static bool clock_forbids(struct gp_exam *exam, const char *unit)
{
    static const char *const words[] = {"systemd", NULL};
    static const char first[] = "253";
    struct gp_package *packages;
    long n = gp_service_is_yes(exam, unit, "ProtectClock")
                 ? gp_packages_read(&exam->files, &exam->arena, words, &packages)
                 : 0;
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].name, "systemd") == 0)
            return gp_version_compare(packages[i].version, first) < 0;
    return false;
}

/* ---- what is allowed ---- */

/* Whether two names in /proc/devices are of one major number: systemd allows numbers. `pattern` is
 * the unit's, "nvidia-*", and `group` the driver's. */
static bool is_same_major(const char *devices, const char *pattern, const char *group)
{
    enum { MAJORS = 512, NAME = 64 };
    bool is_allowed[MAJORS] = {false}, is_needed[MAJORS] = {false};
    for (const char *line = devices; line && *line; line = strchr(line, '\n')) {
        char name[NAME], *end;
        line += *line == '\n';
        unsigned long major = strtoul(line, &end, 10);
        size_t n = *end == ' ' ? strcspn(end + 1, "\n") : 0;
        if (strncmp(line, "Block", 5) == 0)
            break;
        if (n == 0 || n >= sizeof(name) || major >= MAJORS)
            continue;
        memcpy(name, end + 1, n);
        name[n] = '\0';
        is_allowed[major] = is_allowed[major] || fnmatch(pattern, name, 0) == 0 ||
                            (isdigit((unsigned char)pattern[0]) && /* "char-195" */
                             strtoul(pattern, NULL, 10) == major);
        /* "nvidia*" is the driver's first number, not that of its other parts */
        is_needed[major] =
            is_needed[major] ||
            (fnmatch(group, name, 0) == 0 &&
             (strcmp(group, "nvidia*") != 0 || !strstr(name, "-uvm")) && !strstr(name, "-caps") &&
             !strstr(name, "-nvlink") && !strstr(name, "-nvswitch"));
    }
    for (size_t i = 0; i < MAJORS; i++)
        if (is_needed[i] && is_allowed[i])
            return true;
    return false;
}

/* Whether a path leads to this device file; of GPUs, any will do: the unit may mean another one. */
static bool is_node(struct gp_exam *exam, const char *path, const struct node *node)
{
    static const char gpu[] = "/dev/nvidia", render[] = "/dev/dri/renderD";
    char real[GP_PATH_SIZE];
    const char *file = gp_files_real(&exam->files, path, real) ? real : path;
    if (strcmp(node->path, "/dev/nvidia0") == 0 && strncmp(file, gpu, sizeof(gpu) - 1) == 0)
        return isdigit((unsigned char)file[sizeof(gpu) - 1]);
    return strcmp(file, node->path) == 0 ||
           (node == &of_drm && strncmp(file, render, sizeof(render) - 1) == 0);
}

/* Whether a line of DeviceAllow=, "char-drm rw", opens a device file for reading and writing. */
static bool allows(struct gp_exam *exam, const char *devices, const char *line, size_t length,
                   const struct node *node)
{
    enum { TEXT = 128 };
    char entry[TEXT];
    size_t n = strcspn(line, " \t\n");
    n = n < length ? n : length;
    const char *rights = line + n + strspn(line + n, " \t");
    size_t m = rights < line + length ? (size_t)(line + length - rights) : 0;
    if (n >= sizeof(entry) || (m > 0 && (!memchr(rights, 'r', m) || !memchr(rights, 'w', m))))
        return false;
    memcpy(entry, line, n);
    entry[n] = '\0';
    return strncmp(entry, "char-", 5) == 0 ? is_same_major(devices, entry + 5, node->group)
                                           : is_node(exam, entry, node);
}

static bool list_allows(struct gp_exam *exam, const char *devices, const char *list,
                        const struct node *node)
{
    for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (allows(exam, devices, line, strcspn(line, "\n"), node))
            return true;
    return false;
}

/* ---- what the service needs ---- */

/* Whether someone wants the service to use the GPU: others may do without it. */
static bool is_meant(const char *wish, const char *list, bool computes)
{
    return computes || wish || strstr(list, "drm") || strstr(list, "dri") ||
           strstr(list, "nvidia") || strstr(list, "kfd");
}

static bool uses_nvidia(const struct gp_exam *exam, const char *wish, const char *list,
                        bool computes)
{
    const struct gp_machine *m = &exam->machine;
    bool is_for_amd = m->amd_count > 0 && strstr(list, "kfd");
    return m->nvidia_count > 0 &&
           (wish ? strcmp(wish, "nvenc") == 0
                 : (computes && !is_for_amd) || m->intel_count + m->amd_count == 0);
}

/* The first device file that the service needs and does not get; NULL: it gets all, or it is not
 * known which ones it needs. */
static const struct node *missing(struct gp_exam *exam, const char *wish, const char *list,
                                  bool computes)
{
    const char *devices = gp_files_text(&exam->files, &exam->arena, "/proc/devices", 1 << 16, NULL);
    const struct gp_machine *m = &exam->machine;
    if (!devices)
        return NULL;
    if (uses_nvidia(exam, wish, list, computes)) {
        for (size_t i = 0; i < GP_ARRAY_LEN(of_nvidia); i++)
            if (gp_files_exist(&exam->files, of_nvidia[i].path) &&
                !list_allows(exam, devices, list, &of_nvidia[i]))
                return &of_nvidia[i];
        return NULL;
    }
    if (m->nvidia_count > 0 && !wish)
        return NULL;
    if (computes && gp_files_exist(&exam->files, of_kfd.path) &&
        !list_allows(exam, devices, list, &of_kfd))
        return &of_kfd;
    /* A file by its number may be the one of another GPU. */
    return gp_files_exist(&exam->files, of_drm.path) && !strstr(list, "/dev/dri/renderD") &&
                   !list_allows(exam, devices, list, &of_drm)
               ? &of_drm
               : NULL;
}

/* The names of NVIDIA's devices in /proc/devices: "nvidia", before driver 550 "nvidia-frontend". */
static const char *lines_for(struct gp_exam *exam, const struct node *node)
{
    const char *devices = gp_files_text(&exam->files, &exam->arena, "/proc/devices", 1 << 16, NULL);
    if (node == &of_kfd)
        return "char-kfd rw\nchar-drm rw";
    if (node == &of_drm)
        return "char-drm rw";
    return strstr(devices, " nvidia-frontend\n") ? "char-nvidia-frontend rw\nchar-nvidia-uvm rw"
                                                 : "char-nvidia rw\nchar-nvidia-uvm rw";
}

const char *gp_sandbox_joined(struct gp_exam *exam, const char *lines, const char *before,
                              const char *after, const char *between)
{
    const char *all = "";
    for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n')
        all = gp_exam_text(exam, "%s%s%s%.*s%s", all, all[0] ? between : "", before,
                           (int)strcspn(line, "\n"), line, after);
    return all;
}

/* The lines that the list does not have. */
static const char *without(struct gp_exam *exam, const char *lines, const char *list)
{
    const char *rest = "";
    for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *one = gp_exam_text(exam, "%.*s\n", (int)strcspn(line, "\n"), line);
        if (!strstr(list, one))
            rest = gp_exam_text(exam, "%s%s", rest, one);
    }
    return rest;
}

static void open_up(struct gp_exam *exam, const char *unit, const struct node *node,
                    bool is_private, const char *list)
{
    const char *lines = without(exam, lines_for(exam, node), list);
    if (strcmp(exam->machine.distro_id, "nixos") == 0) {
        const char *name = gp_exam_text(exam, "%.*s", (int)strcspn(unit, "."), unit);
        if (is_private)
            gp_exam_advice(exam,
                           "in configuration.nix: systemd.services.%s.serviceConfig.PrivateDevices "
                           "= lib.mkForce false;",
                           name);
        if (list[0] || !is_private)
            gp_exam_advice(
                exam,
                "in configuration.nix, with what it allows now: "
                "systemd.services.%s.serviceConfig.DeviceAllow = lib.mkForce [ %s%s%s ];",
                name, gp_sandbox_joined(exam, list, "\"", "\"", " "), list[0] ? " " : "",
                gp_sandbox_joined(exam, lines, "\"", "\"", " "));
        gp_exam_command(exam, "", "sudo nixos-rebuild switch");
        return;
    }
    gp_exam_command(exam, "in [Service] add the lines below", "sudo systemctl edit %s",
                    gp_exam_quoted(exam, unit));
    if (is_private)
        gp_exam_advice(exam, "PrivateDevices=no");
    for (const char *line = lines; (list[0] || !is_private) && *line; line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        gp_exam_advice(exam, "DeviceAllow=%.*s", (int)n, line);
        line += n;
    }
    gp_exam_command(exam, "", "sudo systemctl restart %s", gp_exam_quoted(exam, unit));
}

static bool is_closed(const char *policy)
{
    return policy && (strncmp(policy, "closed", 6) == 0 || strncmp(policy, "strict", 6) == 0);
}

const char *gp_sandbox_lacks(struct gp_exam *exam, const char *unit, const char **ret_lines)
{
    const char *list = gp_service_list(exam, unit, "DeviceAllow");
    const char *policy = gp_service_value(exam, unit, "DevicePolicy");
    const struct node *node = is_closed(policy) || list[0] ? missing(exam, NULL, list, true) : NULL;
    *ret_lines = node ? without(exam, lines_for(exam, node), list) : "";
    return node ? node->path : NULL;
}

bool gp_sandbox_check(struct gp_exam *exam, const char *unit, bool computes)
{
    const char *list = gp_service_list(exam, unit, "DeviceAllow");
    const char *policy = gp_service_value(exam, unit, "DevicePolicy");
    bool is_private = gp_service_is_yes(exam, unit, "PrivateDevices");
    bool is_closing = is_closed(policy);
    bool is_clock = !list[0] && !is_closing && clock_forbids(exam, unit);
    const char *wish = strncmp(unit, "jellyfin", 8) == 0
                           ? gp_jellyfin_setting(exam, "HardwareAccelerationType")
                           : NULL;
    const char *bound = gp_service_list(exam, unit, "BindPaths");
    if ((!is_private && !is_closing && !is_clock && !list[0]) || exam->machine.is_wsl ||
        strstr(bound, "/dev/") || strstr(list, "char-*") ||
        (wish && (!wish[0] || strcmp(wish, "none") == 0)))
        return false;
    const struct node *node = missing(exam, wish, is_private ? "" : list, computes);
    if (!node)
        return false;
    bool is_for_gpu = computes && exam->machine.nvidia_count + exam->machine.amd_count > 0;
    gp_exam_report(exam, is_meant(wish, list, is_for_gpu) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "systemd keeps %s from the GPU: its unit does not allow %s", unit, node->path);
    if (is_private)
        gp_exam_evidence(exam, unit, "PrivateDevices=yes");
    if (is_closing)
        gp_exam_evidence(exam, unit, "DevicePolicy=%s", policy);
    if (is_clock)
        gp_exam_evidence(exam, unit, "ProtectClock=yes, which allows only the clock's device");
    if (list[0])
        gp_exam_evidence(exam, unit, "DeviceAllow=%s", gp_sandbox_joined(exam, list, "", "", ", "));
    if (wish && wish[0])
        gp_exam_evidence(exam, "encoding.xml", "HardwareAccelerationType: %s", wish);
    gp_exam_why(exam, "%s The same program works when it is started by hand.",
                is_private
                    ? "The service has a /dev of its own, without GPUs."
                    : "Once a unit allows some devices, it gets no others: opening them fails "
                      "with Operation not permitted, and CUDA reports no device.");
    open_up(exam, unit, node, is_private, list);
    return true;
}
