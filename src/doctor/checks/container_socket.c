/* The GPU Operator's toolkit and the container engine's socket: a finding of container.operator. */
#include "doctor/checks/container.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/podlogs.h"
#include "doctor/readers/processes.h"

#include <string.h>

/* Where packages of containerd put it, and where the toolkit looks by default. */
#define USUAL_SOCKET "/run/containerd/containerd.sock"

/* The engines that come with a distribution of Kubernetes, in the words of NVIDIA's documentation;
 * `config`: what the toolkit is to change. NULL: nothing, as k3s and RKE2 write containerd's file
 * anew at each start, and find NVIDIA's runtime by themselves. */
static const struct engine {
    const char *socket, *config, *kubectl;
} engines[] = {
    {"/run/k3s/containerd/containerd.sock", NULL, "kubectl"}, /* RKE2's, too */
    {"/var/snap/microk8s/common/run/containerd.sock",
     "/var/snap/microk8s/current/args/containerd-template.toml", "microk8s kubectl"},
    {"/run/k0s/containerd.sock", "/etc/k0s/containerd.d/nvidia.toml", "k0s kubectl"},
};

/* The socket in the options of the kubelet, "--name=value" or "--name value"; NULL: none. */
static const char *socket_option(struct gp_exam *exam)
{
    static const char *const names[] = {"--container-runtime-endpoint", "--containerd", NULL};
    enum { MOST = 1 << 14 };
    struct gp_processes all = gp_processes_of(exam);
    for (const char *process; (process = gp_processes_next(exam, &all, "kubelet"));) {
        char text[MOST];
        const char *path = gp_exam_text(exam, "%s/cmdline", process);
        long size = gp_files_read(&exam->files, path, text, sizeof(text) - 1);
        if (size <= 0)
            continue;
        text[size] = '\0';
        for (const char *word = text; word < text + size; word += strlen(word) + 1)
            for (size_t i = 0; names[i]; i++) {
                size_t n = strlen(names[i]);
                if (strncmp(word, names[i], n) == 0 && word[n] == '=')
                    return gp_exam_text(exam, "%s", word + n + 1);
                if (strcmp(word, names[i]) == 0 && word + n + 1 < text + size)
                    return gp_exam_text(exam, "%s", word + n + 1);
            }
    }
    return NULL;
}

/* The socket of the engine that the kubelet uses; k3s and k0s have the kubelet in another process,
 * but only one of their sockets is there. NULL: unknown. */
static const char *socket_of(struct gp_exam *exam)
{
    static const char scheme[] = "unix://";
    const char *socket = socket_option(exam);
    if (socket && strncmp(socket, scheme, sizeof(scheme) - 1) == 0)
        socket += sizeof(scheme) - 1;
    for (size_t i = 0; i < GP_ARRAY_LEN(engines) && !socket; i++)
        if (gp_files_exist(&exam->files, engines[i].socket))
            socket = engines[i].socket;
    return socket && socket[0] == '/' && gp_files_exist(&exam->files, socket) ? socket : NULL;
}

/* The last line of the toolkit's container that says that it finds no socket, unless it has
 * reached the engine afterwards; NULL: there is none. */
static const char *missing_line(struct gp_exam *exam, const struct gp_pod_log *log)
{
    static const char socket[] = "dial unix /runtime/sock-dir/", error[] = "no such file",
                      done[] = "Waiting for signal";
    const char *line, *found = NULL;
    size_t n;
    for (struct gp_lines lines = gp_lines_of(log->text, log->size);
         gp_lines_next(&lines, &line, &n);) {
        if (memmem(line, n, done, sizeof(done) - 1))
            found = NULL;
        else if (memmem(line, n, socket, sizeof(socket) - 1) &&
                 memmem(line, n, error, sizeof(error) - 1))
            found = gp_exam_text(exam, "%.*s", (int)n, line);
    }
    return found;
}

/* Whether both paths are of the same socket: /var/run is a link to /run. */
static bool is_same(struct gp_exam *exam, const char *one, const char *other)
{
    char first[GP_PATH_SIZE], second[GP_PATH_SIZE];
    return gp_files_real(&exam->files, one, first) && gp_files_real(&exam->files, other, second) &&
           strcmp(first, second) == 0;
}

static void fix_socket(struct gp_exam *exam, const char *socket)
{
    const struct engine *engine = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(engines) && !engine; i++)
        if (is_same(exam, engines[i].socket, socket))
            engine = &engines[i];
    gp_exam_command(
        exam,
        gp_exam_text(exam, "add to spec.toolkit.env: name: CONTAINERD_SOCKET, value: %s", socket),
        "%s edit clusterpolicies.nvidia.com/cluster-policy", engine ? engine->kubectl : "kubectl");
    if (engine && engine->config)
        gp_exam_advice(exam, "and, unless the list has it: name: CONTAINERD_CONFIG, value: %s",
                       engine->config);
    else if (!engine)
        gp_exam_advice(exam,
                       "and, if this containerd is started with another file than "
                       "/etc/containerd/config.toml: name: CONTAINERD_CONFIG, with that file");
    gp_exam_advice(exam, "the Operator then restarts its toolkit; add the same to toolkit.env in "
                         "the values of its Helm chart, or the next helm upgrade undoes it");
}

/* What its toolkit's container has printed of a socket that it lacks; NULL: nothing, or the engine
 * has the usual socket. */
static const char *find_missing(struct gp_exam *exam, struct gp_pod_log *log,
                                const char **ret_socket)
{
    const char *line = gp_pod_read_toolkit(exam, log) ? missing_line(exam, log) : NULL;
    *ret_socket = line ? socket_of(exam) : NULL;
    return *ret_socket && !is_same(exam, *ret_socket, USUAL_SOCKET) ? line : NULL;
}

bool gp_container_lacks_socket(struct gp_exam *exam)
{
    struct gp_pod_log log;
    const char *socket;
    return find_missing(exam, &log, &socket);
}

bool gp_container_report_socket(struct gp_exam *exam)
{
    struct gp_pod_log log;
    const char *socket, *line = find_missing(exam, &log, &socket);
    if (!line)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the GPU Operator's toolkit does not find containerd's socket, which is %s here",
                   socket);
    gp_exam_evidence(exam, log.path, "%s", line);
    gp_exam_evidence(exam, socket, "present");
    gp_exam_why(exam, "Unless CONTAINERD_SOCKET is set, it looks in /run/containerd. It cannot "
                      "restart containerd and starts over, and the Operator's other pods wait for "
                      "it: \"no runtime for nvidia is configured\".");
    fix_socket(exam, socket);
    return true;
}
