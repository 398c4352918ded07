/* The CDI devices that Kubernetes' containers were refused: whether a specification has them. */
#include "doctor/checks/container.h"

#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/podlogs.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define MANAGEMENT "management.nvidia.com/gpu"
#define READY "/run/nvidia/validations/toolkit-ready"

/* The errors of an engine that knows no such device. */
static const char errors[] = "cdi.spec,cdi.management";

static const char *const folders[] = {"/etc/cdi", "/run/cdi", "/var/run/cdi"};

/* ---- what there is ---- */

/* Whether a specification, in YAML or JSON, is of this kind: "kind: nvidia.com/gpu". */
static bool is_of_kind(const char *text, const char *kind)
{
    static const char key[] = "kind";
    size_t n = strlen(kind);
    for (const char *p = strstr(text, key); p; p = strstr(p, key)) {
        p += sizeof(key) - 1;
        p += strspn(p, "\"': \t");
        if (strncmp(p, kind, n) == 0 && (p[n] == '\0' || strchr("\"' \t\r\n,", p[n])))
            return true;
    }
    return false;
}

/* Whether the engines may be configured to search other folders than these. */
static bool has_other_folders(struct gp_exam *exam)
{
    static const char *const paths[] = {"/etc/containerd/config.toml", "/etc/crio/crio.conf"};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, paths[i], 1 << 18, NULL);
        const char *at = text ? strstr(text, "cdi_spec_dirs") : NULL;
        const char *list = at ? gp_exam_text(exam, "%.*s", (int)strcspn(at, "]"), at) : "";
        for (const char *p = strchr(list, '"'); p; p = strchr(p, '"')) {
            size_t n = strcspn(++p, "\"");
            bool is_known = false;
            for (size_t k = 0; k < GP_ARRAY_LEN(folders); k++)
                is_known = is_known || gp_lines_is(p, n, folders[k]);
            if (!is_known)
                return true;
            p += n + (p[n] == '"');
        }
    }
    return false;
}

/* The first specification of this kind; NULL: there is none, or that cannot be told. */
static const char *spec_of(struct gp_exam *exam, const char *kind, bool *ret_is_unknown)
{
    char **names;
    *ret_is_unknown = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[i], &names);
        *ret_is_unknown = *ret_is_unknown || (n < 0 && n != -ENOENT);
        for (long k = 0; k < n; k++) {
            const char *path = gp_exam_text(exam, "%s/%s", folders[i], names[k]);
            const char *text = gp_files_text(&exam->files, &exam->arena, path, 4 << 20, NULL);
            *ret_is_unknown = *ret_is_unknown || !text;
            if (text && is_of_kind(text, kind))
                return path;
        }
    }
    *ret_is_unknown = *ret_is_unknown || has_other_folders(exam);
    return NULL;
}

static bool is_missing(struct gp_exam *exam, const char *kind)
{
    bool is_unknown;
    return !spec_of(exam, kind, &is_unknown) && !is_unknown;
}

/* ---- what is asked for ---- */

/* The kind of the first device that a line names, "unresolvable CDI devices nvidia.com/gpu=all";
 * NULL: it names none. */
static const char *kind_in(struct gp_exam *exam, const char *line)
{
    static const char mark[] = "CDI device";
    const char *at = strstr(line, "unresolvable CDI device");
    at = at ? strstr(at, mark) + sizeof(mark) - 1 : NULL;
    if (!at)
        return NULL;
    at += strspn(at, "s \"\\");
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || (at[n] && strchr("./-_", at[n])))
        n++;
    return at[n] == '=' && memchr(at, '/', n) ? gp_exam_text(exam, "%.*s", (int)n, at) : NULL;
}

/* What Kubernetes' engines and the kubelet have logged; the first line of them is kept. */
static const struct gp_log_known *refusal(struct gp_exam *exam)
{
    static const char units[] = "crio.service,containerd.service,kubelet.service,k3s.service,"
                                "k3s-agent.service,rke2-server.service,rke2-agent.service";
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->known_count; i++)
        if (gp_lines_list_has(errors, log->known[i].id) && log->known[i].unit &&
            gp_lines_list_has(units, log->known[i].unit))
            return &log->known[i];
    return NULL;
}

/* The last line of a pod of the GPU Operator that waits for the toolkit; NULL: none does. */
static const char *waiting(struct gp_exam *exam, const char **ret_path)
{
    static const char mark[] = "waiting for nvidia container stack to be setup";
    const char *paths[GP_POD_LOGS], *line;
    size_t n, count = gp_pod_logs(exam, paths);
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        const char *text = gp_files_tail(&exam->files, &exam->arena, paths[i], 1 << 12, &length),
                   *last = NULL;
        struct gp_lines lines = gp_lines_of(text, text ? length : 0);
        while (gp_lines_next(&lines, &line, &n))
            last = gp_exam_text(exam, "%.*s", (int)n, line);
        if (last && strstr(last, mark)) {
            *ret_path = paths[i];
            return last;
        }
    }
    return NULL;
}

/* Whether the Operator's container that writes the specification has run here. */
static bool has_toolkit_pod(struct gp_exam *exam)
{
    struct gp_pod_log log;
    return gp_pod_read_toolkit(exam, &log);
}

/* ---- the findings ---- */

static void show_missing(struct gp_exam *exam, const char *kind)
{
    gp_exam_evidence(exam, "/etc/cdi, /var/run/cdi", "no specification of the kind %s", kind);
    if (strcmp(kind, MANAGEMENT) == 0 && gp_files_exist(&exam->files, "/run/nvidia/validations") &&
        !gp_files_exist(&exam->files, READY))
        gp_exam_evidence(exam, READY, "missing");
}

/* The Operator's toolkit writes it on each start; where that is not to run, one must do it. */
static void fix_management(struct gp_exam *exam)
{
    static const char *const programs[] = {"/usr/bin/nvidia-ctk",
                                           "/usr/local/nvidia/toolkit/nvidia-ctk", NULL};
    const char *program = gp_files_first(&exam->files, programs);
    if (has_toolkit_pod(exam)) {
        gp_exam_command(exam, "its log says why it has not written the specification",
                        "kubectl logs -A -l app=nvidia-container-toolkit-daemonset "
                        "--all-containers --tail=50");
        return;
    }
    if (program) {
        gp_exam_command(exam, "make the specification; again after each update of the driver",
                        "sudo %s cdi generate --mode=management --vendor=management.nvidia.com "
                        "--class=gpu --output=/etc/cdi/management.nvidia.com-gpu.yaml",
                        strcmp(program, programs[0]) == 0 ? "nvidia-ctk" : program);
        gp_exam_advice(exam,
                       "the kubelet then starts the pods by itself; if some still wait for the "
                       "toolkit: sudo touch %s, which is lost at each boot, so have a unit of "
                       "systemd or a DaemonSet do it; then delete the stuck pods",
                       READY);
    }
    gp_exam_advice(exam,
                   "%slet the GPU Operator's toolkit run on this node, which does both: "
                   "toolkit.enabled=true in its values, and no label "
                   "nvidia.com/gpu.deploy.container-toolkit=false on the node",
                   program ? "or " : "");
    gp_exam_advice(exam, "or, if the node's default runtime is NVIDIA's: cdi.enabled=false in the "
                         "Operator's values");
}

static void fix(struct gp_exam *exam, const char *kind)
{
    if (strcmp(kind, MANAGEMENT) == 0)
        fix_management(exam);
    else if (strcmp(kind, "nvidia.com/gpu") == 0)
        gp_exam_command(exam, "make the specification; again after each update of the driver",
                        "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
    else
        gp_exam_advice(exam, "NVIDIA's device plugin writes it when it starts: delete its pod on "
                             "this node, which is started again, and see its log");
}

static void report(struct gp_exam *exam, const char *kind)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "pods ask for CDI devices of %s, which no specification on this node has", kind);
    gp_log_show_known(exam, gp_log_known_of(exam, errors));
    show_missing(exam, kind);
    gp_exam_why(exam, "These containers do not start.%s",
                strcmp(kind, MANAGEMENT) == 0
                    ? " The GPU Operator's own pods use it since 25.10, and its container toolkit "
                      "makes it: nothing does if that is switched off on the node."
                    : "");
    fix(exam, kind);
}

/* Whether only the pods' waiting tells of it: they may not use CDI. */
static void report_waiting(struct gp_exam *exam)
{
    const char *path, *line = waiting(exam, &path);
    if (!line || gp_files_exist(&exam->files, READY) || has_toolkit_pod(exam) ||
        !is_missing(exam, MANAGEMENT))
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "the GPU Operator's pods wait for its toolkit, which has not run on this node");
    gp_exam_evidence(exam, path, "%s", line);
    show_missing(exam, MANAGEMENT);
    gp_exam_why(exam, "Until then this node offers no GPU. The Operator's toolkit makes the "
                      "specification that they ask for where CDI is on, as it is since 25.10.");
    fix_management(exam);
}

bool gp_container_has_asked(struct gp_exam *exam)
{
    const char *path;
    return exam->machine.nvidia_count > 0 && !exam->machine.container &&
           (refusal(exam) || waiting(exam, &path));
}

/* Other vendors' kinds may be misspelt, or for nothing on this machine. */
void gp_container_check_asked(struct gp_exam *exam)
{
    static const char *const kinds[] = {MANAGEMENT, "nvidia.com/gpu",
                                        "k8s.device-plugin.nvidia.com/gpu"};
    const struct gp_log_known *known = refusal(exam);
    const char *kind = known ? kind_in(exam, known->text) : NULL;
    bool is_ours = false;
    for (size_t i = 0; kind && i < GP_ARRAY_LEN(kinds); i++)
        is_ours = is_ours || strcmp(kind, kinds[i]) == 0;
    bool is_unknown;
    if (is_ours && is_missing(exam, kind))
        report(exam, kind);
    else if (!kind)
        report_waiting(exam);
    else if (strcmp(kind, MANAGEMENT) == 0 && spec_of(exam, kind, &is_unknown))
        (void)gp_log_known_of(exam, "cdi.management"); /* its toolkit has made it since, as at each
                                                          boot */
}
