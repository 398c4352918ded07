/* The licences of virtual GPUs: whether their client runs, has a server, and got one. */
#include "doctor/checks/system.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/services.h"
#include "doctor/readers/syslog.h"

#include <errno.h>
#include <string.h>

static const char client[] = "/usr/bin/nvidia-gridd";

/* Clouds license their GPUs themselves. */
static bool is_cloud(const struct gp_exam *exam)
{
    static const char *const vendors[] = {"Microsoft", "Amazon", "Google",      "Alibaba",
                                          "Tencent",   "Oracle", "OracleCloud", NULL};
    char vendor[64];
    if (!gp_files_line(&exam->files, "/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor)))
        return false;
    return gp_lines_starts_any(vendor, vendors);
}

/* Whether the licence client has a token, which newer releases need, or the address of a server. */
static bool has_server(struct gp_exam *exam, const char *path)
{
    static const char token_folder[] = "/etc/nvidia/ClientConfigToken", key[] = "ServerAddress";
    char **names;
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    long n = gp_files_list(&exam->files, &exam->arena, token_folder, &names);
    for (long i = 0; i < n; i++)
        if (strstr(names[i], ".tok"))
            return true;
    for (const char *line = text; line && *line; line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        const char *value = line + sizeof(key) - 1;
        if (length > sizeof(key) && strncmp(line, key, sizeof(key) - 1) == 0 && *value == '=' &&
            !strchr(" \t\r\n", value[1]))
            return true;
        line += length;
    }
    return !text || n == -EACCES;
}

/* A guest with the licence client, which has nobody to ask. A whole GPU that was passed to the
 * machine needs no licence for computing, but then this driver has no client running. */
static void check_server(struct gp_exam *exam)
{
    static const char path[] = "/etc/nvidia/gridd.conf";
    if (!gp_machine_is_virtual(&exam->files) || is_cloud(exam) ||
        !gp_files_exist(&exam->files, client) || has_server(exam, path))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "the virtual GPU cannot get a licence: no server is set");
    gp_exam_evidence(exam, path, "no ServerAddress");
    gp_exam_evidence(exam, "/etc/nvidia/ClientConfigToken", "no token");
    gp_exam_why(exam, "Without a licence it works for a while and is then slowed down.");
    gp_exam_advice(exam,
                   "put the token of your licence server into /etc/nvidia/ClientConfigToken "
                   "(before release 13: ServerAddress in %s), and set FeatureType to the kind "
                   "of licence (1: vGPU)",
                   path);
    gp_exam_command(exam, "then", "sudo systemctl restart nvidia-gridd");
    gp_exam_command(exam, "it says whether there is a licence", "nvidia-smi -q | grep -i licen");
}

/* Whether the service says that there is no licence. */
static bool is_refusal(const char *line, size_t n)
{
    static const char *const words[] = {"Failed to", "not found",      "expired",
                                        "nlicensed", "request failed", NULL};
    static const char *const topics[] = {"icen", "token", NULL};
    return gp_lines_has_any(line, n, words) && gp_lines_has_any(line, n, topics);
}

/* "NVIDIA A10-12Q": a part of a GPU, with the letter of its kind. */
static bool is_part(const char *model)
{
    const char *dash = strrchr(model, '-');
    size_t n = dash ? strspn(dash + 1, "0123456789") : 0;
    return n > 0 && dash[n + 1] && strchr("ABCQ", dash[n + 1]) && !dash[n + 2];
}

/* The driver's own name of the first GPU; "": unknown. */
static const char *first_model(struct gp_exam *exam)
{
    static const char top[] = "/proc/driver/nvidia/gpus", mark[] = "Model:";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    const char *path = n > 0 ? gp_exam_text(exam, "%s/%s/information", top, names[0]) : "";
    const char *text = n > 0 ? gp_files_text(&exam->files, &exam->arena, path, 4096, NULL) : NULL;
    const char *model = text ? strstr(text, mark) : NULL;
    if (!model)
        return "";
    model += strlen(mark);
    model += strspn(model, " \t");
    return gp_exam_text(exam, "%.*s", (int)strcspn(model, "\r\n"), model);
}

bool gp_licence_applies(struct gp_exam *exam)
{
    return (exam->machine.gpu_count > 0 || exam->machine.is_driver_loaded) &&
           (gp_files_exist(&exam->files, client) ||
            gp_files_exist(&exam->files, "/etc/nvidia/gridd.conf") || is_part(first_model(exam)));
}

/* Where the client can be besides its usual place: NixOS, and the GPU Operator's container. */
static bool has_client(struct gp_exam *exam)
{
    static const char *const paths[] = {client, "/run/current-system/sw/bin/nvidia-gridd",
                                        "/run/nvidia/driver/usr/bin/nvidia-gridd", NULL};
    return gp_files_first(&exam->files, paths) || gp_machine_runs(&exam->files, "nvidia-gridd");
}

/* Only the module and the libraries were installed, as from packages that are not for GRID. */
static bool report_no_client(struct gp_exam *exam)
{
    const char *model = first_model(exam);
    if (exam->machine.container || exam->machine.is_wsl || !is_part(model) || has_client(exam) ||
        !gp_install_library(gp_install_of(exam)))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "nothing gets a licence for the virtual GPU: nvidia-gridd is not installed");
    gp_exam_evidence(exam, "/proc/driver/nvidia/gpus", "%s", model);
    gp_exam_evidence(exam, client, "missing");
    gp_exam_why(exam, "A part of a GPU needs a licence. Without one it works for a while, and is "
                      "then slowed down, or CUDA reports \"device doesn't have valid Grid "
                      "license\".");
    gp_exam_advice(exam,
                   "install the whole guest driver of the cloud or of your licence portal "
                   "(NVIDIA-Linux-x86_64-%s-grid.run, or its package): it brings nvidia-gridd; "
                   "NVIDIA's public drivers do not",
                   exam->machine.driver[0] ? exam->machine.driver : "…");
    gp_exam_command(exam, "then", "sudo systemctl enable --now nvidia-gridd");
    gp_exam_command(exam, "it says whether there is a licence", "nvidia-smi -q | grep -i licen");
    return true;
}

static bool has_processes(struct gp_exam *exam)
{
    return gp_files_exist(&exam->files, "/proc/1/comm");
}

/* Whether the client has written to the log, and so was started, by whatever means. */
static bool is_logged(struct gp_exam *exam)
{
    struct gp_syslog logs[GP_SYSLOGS];
    size_t count = gp_syslogs(exam, "nvidia-gridd.service", logs);
    for (size_t i = 0; i < count; i++)
        if (memmem(logs[i].text, logs[i].length, "nvidia-gridd", 12))
            return true;
    return false;
}

/* Whether systemd starts this machine's services, also by a copy of its files without processes. */
static bool has_systemd(struct gp_exam *exam)
{
    return gp_machine_runs(&exam->files, "systemd") ||
           (!has_processes(exam) &&
            gp_files_exist(&exam->files, "/etc/systemd/system/multi-user.target.wants") &&
            !gp_files_exist(&exam->files, "/etc/init.d/nvidia-gridd"));
}

/* The driver's installer leaves the unit out where it does not find systemd, as in an image. */
static bool report_client(struct gp_exam *exam)
{
    static const char unit[] = "nvidia-gridd.service";
    const char *model = first_model(exam);
    if (exam->machine.container || !is_part(model) || !gp_files_exist(&exam->files, client) ||
        !has_systemd(exam) || is_logged(exam) || gp_service_is_installed(exam, unit) ||
        gp_machine_runs(&exam->files, "nvidia-gridd"))
        return false;
    gp_exam_report(
        exam, GP_VERDICT_WARN,
        "nothing gets a licence for the virtual GPU: systemd does not know nvidia-gridd");
    gp_exam_evidence(exam, "/proc/driver/nvidia/gpus", "%s", model);
    gp_exam_evidence(exam, client,
                     has_processes(exam) ? "present, but it does not run" : "present");
    gp_exam_evidence(exam, unit, "missing");
    gp_exam_why(exam,
                "Without a licence it works for a while and is then slowed down, or CUDA reports "
                "that the device is busy or unavailable.");
    gp_exam_command(exam, "write its unit",
                    "printf '[Service]\\nType=forking\\nExecStart=%s\\n[Install]\\n"
                    "WantedBy=multi-user.target\\n' | sudo tee /etc/systemd/system/%s",
                    client, unit);
    gp_exam_command(exam, "", "sudo systemctl enable --now nvidia-gridd");
    gp_exam_command(exam, "it says whether there is a licence", "nvidia-smi -q | grep -i licen");
    gp_exam_advice(exam, "or install the driver again, by an installer that brings the unit");
    return true;
}

/* What the service that acquires it said last, since boot: "" that it has one, the line of a
 * refusal, or NULL: nothing. */
static const char *last_said(const struct gp_syslog *log)
{
    static const char program[] = "nvidia-gridd", acquired[] = "acquired successfully";
    const char *said = NULL, *line;
    size_t n;
    struct gp_lines lines = gp_lines_of(log->text, log->length);
    while (gp_lines_next(&lines, &line, &n)) {
        if (gp_journal_begins_boot(line, n))
            said = NULL;
        else if (!memmem(line, n, program, sizeof(program) - 1))
            continue;
        else if (memmem(line, n, acquired, sizeof(acquired) - 1))
            said = "";
        else if (is_refusal(line, n))
            said = line;
    }
    return said;
}

/* Virtual GPUs are slowed down without a licence. */
void gp_licence_check(struct gp_exam *exam)
{
    struct gp_syslog logs[GP_SYSLOGS];
    const char *said = NULL;
    if (report_no_client(exam) || report_client(exam))
        return;
    size_t count = gp_syslogs(exam, "nvidia-gridd.service", logs), i = 0;
    while (i < count && !(said = last_said(&logs[i])))
        i++;
    if (!said || !*said) {
        check_server(exam);
        return;
    }
    size_t n = strcspn(said, "\n");
    gp_exam_report(exam, GP_VERDICT_WARN, "the virtual GPU has no licence");
    gp_exam_evidence(exam, logs[i].where, "%.*s", n < 400 ? (int)n : 400, said);
    gp_exam_why(exam, "Without a licence it works for a while and is then slowed down; the "
                      "licence server did not answer, or refused.");
    gp_exam_advice(exam, "check that the server can be reached, that the clock is right, and "
                         "that a valid token lies in /etc/nvidia/ClientConfigToken (or that "
                         "ServerAddress in /etc/nvidia/gridd.conf is right)");
    gp_exam_command(exam, "then try again", "sudo systemctl restart nvidia-gridd");
}
