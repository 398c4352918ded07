/* The running docker containers with a GPU, and what systemd knows of their devices. */
#include "doctor/checks/container.h"

#include "doctor/readers/docker.h"
#include "doctor/readers/syslog.h"

#include <string.h>

enum { MOST_TEXT = 1 << 20 };

/* Whether docker was asked for GPUs in a way in which the toolkit's hook adds them, not by CDI. */
static bool has_gpu(const struct gp_docker_container *c)
{
    const json_t *requests = gp_docker_requests(c);
    for (size_t i = 0; i < json_array_size(requests); i++) {
        const char *driver = gp_docker_text(json_array_get(requests, i), "Driver");
        if (!driver || strcmp(driver, "cdi") != 0)
            return true;
    }
    return gp_docker_asks_runtime(c);
}

static void find_running(struct gp_exam *exam, const struct gp_docker_container *container,
                         void *argument)
{
    bool *is_found = argument;
    (void)exam;
    *is_found = *is_found || (container->is_running && has_gpu(container));
}

bool gp_container_runs_gpus(struct gp_exam *exam)
{
    bool is_found = false;
    (void)gp_docker_each(exam, find_running, &is_found);
    return is_found;
}

/* The rules that systemd sets again when it reloads, if no GPU is in them. */
static const char *closed_rules(struct gp_exam *exam, const char *id)
{
    const char *path =
        gp_exam_text(exam, "/run/systemd/transient/docker-%s.scope.d/50-DeviceAllow.conf", id);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, NULL);
    return text && !strstr(text, "nvidia") && !strstr(text, "195") ? path : NULL;
}

/* The last mention of a container, when it was started; NULL: none. */
static const char *last_of(const char *text, const char *id)
{
    const char *found = NULL;
    for (const char *p = text; p && (p = strstr(p, id)); p++)
        found = p;
    return found;
}

/* The line by which systemd has reloaded since the container was started; NULL: none is logged. For
 * a service that reloads its own settings the word is followed by its name. */
static const char *reload_after(struct gp_exam *exam, const char *id)
{
    struct gp_syslog logs[GP_SYSLOGS];
    size_t count = gp_syslogs(exam, "init.scope,docker.service,containerd.service", logs);
    for (size_t i = 0; i < count; i++) {
        const char *start = last_of(logs[i].text, id);
        const char *reload = start ? strstr(start, "systemd[1]: Reloading.") : NULL;
        if (!reload)
            continue;
        while (reload > logs[i].text && reload[-1] != '\n')
            reload--;
        return gp_exam_text(exam, "%.*s", (int)strcspn(reload, "\n"), reload);
    }
    return NULL;
}

static bool is_any(const struct gp_error_entry *unused, const char *text)
{
    (void)unused;
    (void)text;
    return true;
}

/* What its program has printed when NVML was denied; NULL: it has not, or these settings are not
 * those with which that happens. */
static const char *denied_line(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *settings =
        gp_files_text(&exam->files, &exam->arena, "/etc/docker/daemon.json", MOST_TEXT, NULL);
    bool is_well = settings && strstr(settings, "native.cgroupdriver=cgroupfs");
    return c->is_running && !is_well && exam->machine.is_driver_loaded
               ? gp_docker_printed_error(exam, c, "smi.nvml-unknown", is_any)
               : NULL;
}

static void report(struct gp_exam *exam, const struct gp_docker_container *c, const char *rules,
                   const char *denied)
{
    const char *reload = reload_after(exam, c->id);
    if (reload || !denied)
        gp_exam_report(exam, reload ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       reload ? "container %.12s has lost its GPUs: systemd has reloaded its units"
                              : "container %.12s will lose its GPUs when systemd reloads its units",
                       c->id);
    else
        gp_exam_report(exam, GP_VERDICT_WARN, "container %.12s has lost its GPUs", c->id);
    if (rules)
        gp_exam_evidence(exam, rules, "no GPU is allowed");
    if (reload)
        gp_exam_evidence(exam, "the log", "%s", reload);
    if (denied)
        gp_exam_evidence(exam, gp_docker_log_of(exam, c, denied), "%s", denied);
    gp_exam_why(exam, "The toolkit's hook allows the devices without systemd, which sets its own "
                      "rules again at systemctl daemon-reload, as updates of packages do: "
                      "\"Failed to initialize NVML: Unknown Error\".");
    gp_exam_advice(exam, "add \"exec-opts\": [\"native.cgroupdriver=cgroupfs\"] to "
                         "/etc/docker/daemon.json, and restart docker and the container (not on a "
                         "node of Kubernetes)");
    gp_exam_advice(exam, "or create the container again by CDI, whose devices systemd knows: "
                         "--device=nvidia.com/gpu=all in place of --gpus; it needs docker 25 or "
                         "newer with \"features\": {\"cdi\": true} in daemon.json, and nvidia-ctk "
                         "cdi generate --output=/etc/cdi/nvidia.yaml");
    gp_exam_link(exam, "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"
                       "troubleshooting.html");
}

struct told {
    bool is_off;  /* the toolkit sets no rules at all: no-cgroups */
    bool is_told; /* the first one was reported: what is true of it is true of the others */
};

static void check_one(struct gp_exam *exam, const struct gp_docker_container *c, void *argument)
{
    struct told *told = argument;
    if (told->is_told || !has_gpu(c))
        return;
    const char *rules = closed_rules(exam, c->id);
    const char *denied = told->is_off ? NULL : denied_line(exam, c);
    if (!rules && !denied)
        return;
    report(exam, c, rules, denied);
    if (denied)
        gp_exam_command(exam, "until it is created again: gives it the GPUs back",
                        "docker restart %s", gp_exam_quoted(exam, c->name));
    told->is_told = true;
}

void gp_container_check_scopes(struct gp_exam *exam, bool is_off)
{
    struct told told = {.is_off = is_off};
    (void)gp_docker_each(exam, check_one, &told);
}
