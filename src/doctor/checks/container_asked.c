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

/* Where the files of containerd's, CRI-O's, k3s' and RKE2's configuration are, which may name more
 * folders. */
#define K3S "/var/lib/rancher/k3s/agent/etc/containerd"
#define RKE2 "/var/lib/rancher/rke2/agent/etc/containerd"
static const char *const configs[] = {
    "/etc/containerd",     "/etc/containerd/conf.d", "/etc/crio",
    "/etc/crio/conf.d",    "/etc/crio/crio.conf.d",  K3S,
    K3S "/config.toml.d",  K3S "/config-v3.toml.d",  RKE2,
    RKE2 "/config.toml.d", RKE2 "/config-v3.toml.d",
};

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

/* Whether a specification has a kind; where not all can be read, or an engine searches elsewhere,
 * that is unknown. Of two answers the higher one holds. */
enum found { MISSING, UNKNOWN, PRESENT };

static enum found higher(enum found a, enum found b)
{
    return a > b ? a : b;
}

/* Whether a specification in this folder is of this kind. */
static enum found look_in(struct gp_exam *exam, const char *folder, const char *kind)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    enum found found = n < 0 && n != -ENOENT ? UNKNOWN : MISSING;
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 4 << 20, NULL);
        if (text && is_of_kind(text, kind))
            return PRESENT;
        found = text ? found : UNKNOWN;
    }
    return found;
}

/* The next text in quotes, before `end`; NULL: there is none. */
static const char *next_quoted(struct gp_exam *exam, const char **at, const char *end)
{
    const char *start = *at + strcspn(*at, "\"'");
    if (start >= end)
        return NULL;
    size_t n = strcspn(start + 1, start[0] == '"' ? "\"" : "'");
    *at = start + 1 + n + (start[1 + n] != '\0');
    return gp_exam_text(exam, "%.*s", (int)n, start + 1);
}

/* Likewise in the folders of a list, cdi_spec_dirs = ["/etc/cdi", '/opt/cdi']. The remedy writes
 * into /etc/cdi: where a list leaves that out, nothing is known. */
static enum found look_in_list(struct gp_exam *exam, const char *list, const char *kind)
{
    const char *end = list + strcspn(list, "]"), *folder;
    enum found found = MISSING;
    bool is_usual = false;
    while ((folder = next_quoted(exam, &list, end))) {
        found = higher(found, folder[0] == '/' ? look_in(exam, folder, kind) : UNKNOWN);
        is_usual = is_usual || strcmp(folder, folders[0]) == 0;
    }
    return is_usual ? found : higher(found, UNKNOWN);
}

/* Whether a file or a pattern of files is directly in one of the folders that are read. */
static bool is_read(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(configs); i++)
        if (strlen(configs[i]) == n && strncmp(path, configs[i], n) == 0)
            return true;
    return false;
}

/* What a list of more files of the configuration says: nothing if these are read anyway. */
static enum found judge_imports(struct gp_exam *exam, const char *list)
{
    const char *end = list + strcspn(list, "]"), *path;
    enum found found = MISSING;
    while ((path = next_quoted(exam, &list, end)))
        found = is_read(path) ? found : UNKNOWN;
    return found;
}

/* The line "imports = […]"; NULL: there is none. */
static const char *imports_in(const char *text)
{
    static const char key[] = "imports";
    while (*text) {
        text += strspn(text, " \t\r\n");
        if (strncmp(text, key, sizeof(key) - 1) == 0)
            return text;
        text += strcspn(text, "\n");
    }
    return NULL;
}

/* Likewise in the folders that a file of an engine's configuration names. */
static enum found look_by(struct gp_exam *exam, const char *config, const char *kind)
{
    static const char key[] = "cdi_spec_dirs";
    const char *text = gp_files_text(&exam->files, &exam->arena, config, 1 << 18, NULL);
    struct stat st;
    bool is_folder = !text && gp_files_stat(&exam->files, config, &st) == 0 && S_ISDIR(st.st_mode);
    enum found found = text || is_folder ? MISSING : UNKNOWN;
    for (const char *at = text; at && (at = strstr(at, key)); at += sizeof(key) - 1)
        found = higher(found, look_in_list(exam, at, kind));
    const char *imports = text ? imports_in(text) : NULL;
    return imports ? higher(found, judge_imports(exam, imports)) : found;
}

/* Likewise in all folders that the engines search. */
static enum found look_for(struct gp_exam *exam, const char *kind)
{
    enum found found = MISSING;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        found = higher(found, look_in(exam, folders[i], kind));
    for (size_t i = 0; i < GP_ARRAY_LEN(configs) && found != PRESENT; i++) {
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, configs[i], &names);
        found = higher(found, n < 0 && n != -ENOENT ? UNKNOWN : MISSING);
        for (long k = 0; k < n; k++) {
            const char *path = gp_exam_text(exam, "%s/%s", configs[i], names[k]);
            found = higher(found, look_by(exam, path, kind));
        }
    }
    return found;
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

/* The command that makes a specification. The Operator's own copy is not in the PATH, nor is the
 * hook next to it that the specification is to call. NULL: there is none. */
static const char *ctk(struct gp_exam *exam)
{
    static const char hook[] = "/usr/local/nvidia/toolkit/nvidia-cdi-hook";
    static const char *const programs[] = {"/usr/bin/nvidia-ctk", "/usr/local/bin/nvidia-ctk",
                                           "/usr/local/nvidia/toolkit/nvidia-ctk", NULL};
    const char *program = gp_files_first(&exam->files, programs);
    if (program == programs[0])
        return "sudo nvidia-ctk cdi generate";
    bool has_hook = program == programs[2] && gp_files_exist(&exam->files, hook);
    return program ? gp_exam_text(exam, "sudo %s cdi generate%s%s", program,
                                  has_hook ? " --nvidia-cdi-hook-path=" : "", has_hook ? hook : "")
                   : NULL;
}

/* ---- the findings ---- */

static void show_missing(struct gp_exam *exam, const char *kind)
{
    gp_exam_evidence(exam, "/etc/cdi, /var/run/cdi", "no specification of the kind %s", kind);
    if (strcmp(kind, MANAGEMENT) == 0 && gp_files_exist(&exam->files, "/run/nvidia/validations") &&
        !gp_files_exist(&exam->files, READY))
        gp_exam_evidence(exam, READY, "missing");
}

static const char again[] = "make the specification; again after each update of the driver";

/* The Operator's toolkit writes it on each start; where that is not to run, one must do it. */
static void fix_management(struct gp_exam *exam)
{
    const char *program = ctk(exam);
    struct gp_pod_log log;
    if (gp_pod_read_toolkit(exam, &log)) {
        gp_exam_command(exam, "the toolkit's log says why it has not written the specification",
                        "sudo tail -n 50 %s", gp_exam_quoted(exam, log.path));
        return;
    }
    if (program) {
        gp_exam_command(exam, again,
                        "%s --mode=management --vendor=management.nvidia.com "
                        "--class=gpu --output=/etc/cdi/management.nvidia.com-gpu.yaml",
                        program);
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

static void fix_gpu(struct gp_exam *exam)
{
    const char *program = ctk(exam);
    if (!program)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    gp_exam_command(exam, again, "%s --output=/etc/cdi/nvidia.yaml",
                    program ? program : "sudo nvidia-ctk cdi generate");
}

static void fix(struct gp_exam *exam, const char *kind)
{
    if (strcmp(kind, MANAGEMENT) == 0)
        fix_management(exam);
    else if (strcmp(kind, "nvidia.com/gpu") == 0)
        fix_gpu(exam);
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
    struct gp_pod_log log;
    if (!line || gp_files_exist(&exam->files, READY) || gp_pod_read_toolkit(exam, &log) ||
        look_for(exam, MANAGEMENT) != MISSING)
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
    static const char kinds[] = MANAGEMENT ",nvidia.com/gpu,k8s.device-plugin.nvidia.com/gpu";
    const struct gp_log_known *known = refusal(exam);
    const char *kind = known ? kind_in(exam, known->text) : NULL;
    if (!kind) {
        report_waiting(exam);
        return;
    }
    enum found found = gp_lines_list_has(kinds, kind) ? look_for(exam, kind) : UNKNOWN;
    if (found == MISSING)
        report(exam, kind);
    else if (found == PRESENT && strcmp(kind, MANAGEMENT) == 0)
        (void)gp_log_known_of(exam, "cdi.management"); /* its toolkit has made it since, as at each
                                                          boot */
}
