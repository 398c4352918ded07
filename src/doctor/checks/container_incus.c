/* A host of LXC containers, also those of Incus and LXD: whether the tool is there that passes the
 * NVIDIA driver into them. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/lines.h"

#include <errno.h>
#include <string.h>

/* What manages containers, and its files for each; LXD's snap brings the tool. */
static const struct {
    const char *word, *command, *folder, *settings, *made[2];
} managers[] = {
    {"Incus",
     "incus",
     "/var/lib/incus/containers",
     "backup.yaml",
     {"/run/incus", "/var/log/incus"}},
    {"LXD", "lxc", "/var/lib/lxd/containers", "backup.yaml", {"/run/lxd", "/var/log/lxd"}},
    {"LXC", NULL, "/var/lib/lxc", "config", {NULL}},
    {"LXC", NULL, "/etc/pve/lxc", NULL, {NULL}}, /* NAME.conf */
};

enum { PLAIN = 2 }; /* the first of those without a manager */

struct guest {
    size_t manager;
    const char *name, *path, *line; /* the line shows that it gets the GPU */
    bool is_refused;                /* it does not start without the tool */
};

/* What was before LXD's snap is no longer in use. */
static bool is_former(const struct gp_exam *exam, size_t manager)
{
    return strcmp(managers[manager].word, "LXD") == 0 &&
           gp_files_exist(&exam->files, "/snap/bin/lxd");
}

static bool has_tool(const struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/bin/nvidia-container-cli",
                                        "/usr/local/bin/nvidia-container-cli",
                                        "/usr/local/nvidia/toolkit/nvidia-container-cli",
                                        "/run/current-system/sw/bin/nvidia-container-cli", NULL};
    return gp_files_first(&exam->files, paths) != NULL;
}

/* Whether a line calls for the tool: nvidia.runtime: "true" of Incus, LXC's hook. */
static bool is_call(const char *line, size_t manager)
{
    static const char runtime[] = "nvidia.runtime:", hook[] = "lxc.hook.mount";
    if (manager >= PLAIN)
        return strncmp(line, hook, sizeof(hook) - 1) == 0 && strstr(line, "hooks/nvidia");
    if (strncmp(line, runtime, sizeof(runtime) - 1) != 0)
        return false;
    const char *value = line + sizeof(runtime) - 1;
    value += strspn(value, " \"'");
    return strncmp(value, "true", 4) == 0 || *value == '1' || strncmp(value, "yes", 3) == 0 ||
           strncmp(value, "on", 2) == 0;
}

/* Whether a line is still one of the instance itself: its snapshots and its profiles have settings
 * of their own, which it need not use. */
static void look_at_section(const char *line, size_t n, bool *is_own)
{
    static const char *const own[] = {"container:", "instance:"};
    if (n == 0 || *line == ' ' || *line == '-')
        return;
    *is_own = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(own); i++)
        *is_own = *is_own || strncmp(line, own[i], strlen(own[i])) == 0;
}

static const char *call_in(struct gp_exam *exam, const struct guest *guest)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, guest->path, 1 << 18, NULL), *at;
    struct gp_lines lines = gp_lines_of(text, text ? strlen(text) : 0);
    bool is_own = guest->manager >= PLAIN;
    size_t n;
    while (gp_lines_next(&lines, &at, &n) && *at != '[') {
        if (guest->manager < PLAIN)
            look_at_section(at, n, &is_own);
        if (!is_own)
            continue;
        const char *line = gp_exam_text(exam, "%.*s", (int)n, at);
        line += strspn(line, " ");
        if (is_call(line, guest->manager))
            return line;
    }
    return NULL;
}

/* The line by which a running container gets NVIDIA's file in /dev/dri, where it gets none of
 * /dev/nvidia*; NULL: it gets these, or no GPU. */
static const char *only_dri(struct gp_exam *exam, struct guest *guest)
{
    static const char entry[] = "lxc.mount.entry", dri[] = " dev/dri/";
    for (size_t i = 0; i < GP_ARRAY_LEN(managers[0].made); i++) {
        const char *folder = managers[guest->manager].made[i];
        const char *path = folder ? gp_exam_text(exam, "%s/%s/lxc.conf", folder, guest->name) : "";
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL), *at;
        struct gp_lines lines = gp_lines_of(text, text ? strlen(text) : 0);
        size_t n;
        while (text && !strstr(text, " dev/nvidia") && gp_lines_next(&lines, &at, &n))
            if (strncmp(at, entry, sizeof(entry) - 1) == 0 && memmem(at, n, dri, sizeof(dri) - 1)) {
                guest->path = path;
                return gp_exam_text(exam, "%.*s", (int)n, at);
            }
    }
    return NULL;
}

/* The first container that does not start, else the first that gets no device of NVIDIA. */
static void take(struct gp_exam *exam, size_t manager, const char *name, const char *path,
                 struct guest *ret)
{
    const struct gp_machine *m = &exam->machine;
    struct guest guest = {.manager = manager, .name = name, .path = path};
    if (ret->is_refused)
        return;
    guest.line = call_in(exam, &guest);
    guest.is_refused = guest.line != NULL;
    if (!guest.line && m->nvidia_count == m->gpu_count)
        guest.line = only_dri(exam, &guest);
    if (guest.line && (guest.is_refused || !ret->line))
        *ret = guest;
}

static void look(struct gp_exam *exam, size_t manager, struct guest *ret)
{
    const char *folder = managers[manager].folder, *settings = managers[manager].settings;
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    if (n == -EACCES)
        gp_exam_unreadable(exam, folder, (int)n);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s%s%s", folder, names[i], settings ? "/" : "",
                                        settings ? settings : "");
        const char *end = settings ? names[i] + strlen(names[i]) : strstr(names[i], ".conf");
        if (end)
            take(exam, manager, gp_exam_text(exam, "%.*s", (int)(end - names[i]), names[i]), path,
                 ret);
    }
}

/* "project_name" of another project than the default one. */
static void restart(struct gp_exam *exam, const struct guest *guest)
{
    const char *command = managers[guest->manager].command, *name = strchr(guest->name, '_');
    if (!command) {
        gp_exam_command(exam, "then", "sudo %s %s",
                        managers[guest->manager].settings ? "lxc-start -n" : "pct start",
                        gp_exam_quoted(exam, guest->name));
        return;
    }
    const char *project =
        name ? gp_exam_text(
                   exam, "--project %s ",
                   gp_exam_quoted(
                       exam, gp_exam_text(exam, "%.*s", (int)(name - guest->name), guest->name)))
             : "";
    gp_exam_command(exam, "it looks for the tool when it starts; containers keep running",
                    "sudo systemctl restart %s", strcmp(command, "lxc") == 0 ? "lxd" : command);
    gp_exam_command(exam, "", "%s %s %s%s", command, guest->is_refused ? "start" : "restart",
                    project, gp_exam_quoted(exam, name ? name + 1 : guest->name));
}

const char *gp_container_tool_call(struct gp_exam *exam, const char *manager, const char *name,
                                   const char **ret_path)
{
    size_t m = 0;
    while (strcmp(managers[m].word, manager) != 0)
        m++;
    struct guest guest = {.manager = m, .name = name};
    if (is_former(exam, m))
        return NULL;
    guest.path = gp_exam_text(exam, "%s/%s/%s", managers[m].folder, name, managers[m].settings);
    for (size_t i = 0; !gp_files_exist(&exam->files, guest.path); i++) {
        if (i == GP_ARRAY_LEN(managers[m].made) || !managers[m].made[i])
            return NULL;
        guest.path = gp_exam_text(exam, "%s/%s/lxc.conf", managers[m].made[i], name);
        guest.manager = PLAIN; /* it is written as the settings of LXC are */
    }
    *ret_path = guest.path;
    return call_in(exam, &guest);
}

bool gp_container_has_incus(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    bool is_any = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(managers); i++)
        is_any = is_any || gp_files_exist(&exam->files, managers[i].folder);
    return is_any && m->nvidia_count > 0 && m->is_driver_loaded && !m->container;
}

bool gp_container_report_incus(struct gp_exam *exam)
{
    struct guest guest = {0};
    for (size_t i = 0; i < GP_ARRAY_LEN(managers) && !has_tool(exam); i++)
        if (!is_former(exam, i))
            look(exam, i, &guest);
    if (!guest.line)
        return false;
    const char *word = managers[guest.manager].word;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   guest.is_refused
                       ? "%s container %s does not start: NVIDIA Container Toolkit is not installed"
                       : "%s container %s gets no device of NVIDIA: NVIDIA Container Toolkit is "
                         "not installed",
                   word, guest.name);
    gp_exam_evidence(exam, guest.path, "%s", guest.line);
    gp_exam_evidence(exam, "/usr/bin/nvidia-container-cli", "missing");
    if (guest.is_refused)
        gp_exam_why(exam, "This program of the host passes the driver into the container: "
                          "\"Missing tool nvidia-container-cli\".");
    else
        gp_exam_why(exam,
                    "%s asks this program for NVIDIA's device files. Without it, the container "
                    "gets only those in /dev/dri, which CUDA and nvidia-smi do not use.",
                    word);
    gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    restart(exam, &guest);
    return true;
}
