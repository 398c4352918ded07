/* Docker on this host: whether its configuration has NVIDIA's runtime. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/lines.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

/* Whether docker passes GPUs by a specification: from 28.2 on by itself, since 25 on request. The
 * toolkit generates one from 1.18 on, also for a docker that does not use it. */
static bool uses_cdi(struct gp_exam *exam, const json_t *config)
{
    static const char *const packages[] = {"docker-ce", "docker.io", "docker"};
    const char *version = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(packages) && !version[0]; i++)
        version = gp_container_engine_version(exam, packages[i]);
    return gp_container_find_cdi(exam) &&
           (!version[0] || gp_version_compare(version, "28.2") >= 0 ||
            json_is_true(json_object_get(json_object_get(config, "features"), "cdi")));
}

/* The runtime's program, if daemon.json has its whole path: that of a toolkit which was removed. */
static void check_program(struct gp_exam *exam, const char *config, const json_t *runtime)
{
    const char *path = json_string_value(json_object_get(runtime, "path"));
    if (!path || path[0] != '/' || gp_files_exist(&exam->files, path))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "docker's runtime nvidia is a program that does not exist: %s", path);
    gp_exam_evidence(exam, config, "\"path\": \"%s\"", path);
    gp_exam_why(exam, "docker run --runtime=nvidia fails with \"no such file or directory\", and "
                      "so do all containers if it is the default runtime.");
    gp_container_configure_docker(exam);
}

/* Whether docker has been reloaded since it last refused the runtime. */
static bool is_reloaded(struct gp_exam *exam)
{
    static const char *const refusals[] = {"nknown or invalid runtime name: nvidia", NULL};
    static const char *const reloads[] = {"Got signal to reload configuration", "Reloaded Docker",
                                          "Reloaded docker.service", NULL};
    size_t length = 0, n;
    const char *line, *text = gp_journal_text(exam, "docker.service", &length);
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    bool is_reload = false;
    while (gp_lines_next(&lines, &line, &n))
        is_reload = gp_lines_has_any(line, n, reloads) ||
                    (is_reload && !gp_lines_has_any(line, n, refusals));
    return is_reload;
}

/* docker reads the file at its start: if it has refused the runtime since, the runtime was added
 * later. What it said before its last start is not in the logs. */
static bool report_unread(struct gp_exam *exam, const char *config)
{
    static const char id[] = "docker.runtime-name", unit[] = "journalctl -u docker.service";
    const struct gp_log_known *said = gp_log_find_known(exam, id);
    if (!said || strcmp(said->where, unit) != 0 || !strstr(said->text, "nknown or invalid"))
        return false;
    (void)gp_log_known_of(exam, id); /* reports it here */
    if (is_reloaded(exam))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "docker has not read its configuration since NVIDIA's runtime was added");
    gp_exam_evidence(exam, said->where, "%s", said->text);
    gp_exam_evidence(exam, config, "has a runtime called nvidia");
    gp_exam_why(exam, "docker reads that file only when it starts or is reloaded.");
    gp_exam_command(exam, "has docker read it, and leaves containers running",
                    "sudo systemctl reload docker");
    gp_exam_advice(exam, "if docker info still does not list the runtime: sudo systemctl restart "
                         "docker, which stops containers; Docker Desktop, the snap and rootless "
                         "Docker read other files");
    return true;
}

/* What docker's configuration says about NVIDIA's runtime. */
void gp_container_check_docker(struct gp_exam *exam)
{
    static const char path[] = "/etc/docker/daemon.json";
    json_error_t error;
    size_t length = 0;
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, &length);
    int why = errno;
    bool is_blank = text && strspn(text, " \t\r\n") == length; /* docker treats it as empty */
    json_t *config = text && !is_blank ? json_loadb(text, length, 0, &error) : json_object();
    if (!text && why != ENOENT && why != ENOTDIR) {
        gp_exam_unreadable(exam, path, -why);
    } else if (text && !config) {
        gp_exam_report(exam, GP_VERDICT_FAIL, "docker's configuration is not valid JSON");
        gp_exam_evidence(exam, gp_exam_text(exam, "%s:%d", path, error.line), "%s", error.text);
        gp_exam_why(exam, "docker does not start with it.");
        gp_exam_advice(exam, "fix that line, then restart docker");
    } else if (!json_object_get(json_object_get(config, "runtimes"), "nvidia") &&
               !uses_cdi(exam, config) && !gp_container_rootless_config(exam)) {
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "NVIDIA Container Toolkit is installed, but docker does not know its "
                       "runtime");
        gp_exam_evidence(exam, path, "%s", text ? "no runtime is called nvidia" : "missing");
        gp_exam_why(exam, "docker run --runtime=nvidia fails with \"unknown or invalid runtime "
                          "name: nvidia\", and other ways to pass a GPU may fail, too.");
        gp_container_configure_docker(exam);
    } else {
        const json_t *runtime = json_object_get(json_object_get(config, "runtimes"), "nvidia");
        if (!runtime || !report_unread(exam, path))
            check_program(exam, path, runtime);
    }
    json_decref(config);
}

bool gp_container_has_docker(struct gp_exam *exam)
{
    return gp_container_is_host(exam) && gp_files_exist(&exam->files, "/usr/bin/docker") &&
           gp_files_exist(&exam->files, "/usr/bin/nvidia-ctk") && !gp_container_is_podman(exam);
}
