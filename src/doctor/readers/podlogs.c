#include "doctor/readers/podlogs.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <stdlib.h>
#include <string.h>

/* Of a pod or a container: NVIDIA's plugin, its operator, DCGM. */
static bool is_for_gpus(const char *name)
{
    return strstr(name, "nvidia") || strstr(name, "gpu") || strstr(name, "dcgm");
}

/* "0.log" is of the container's first start, "12.log" of its 13th; older ones may be packed. */
static const char *last_log(struct gp_exam *exam, const char *folder)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names), last = -1;
    for (long i = 0; i < n; i++) {
        char *end;
        long number = strtol(names[i], &end, 10);
        if (end != names[i] && strcmp(end, ".log") == 0 && number > last)
            last = number;
    }
    return last >= 0 ? gp_exam_text(exam, "%s/%ld.log", folder, last) : NULL;
}

/* "/var/log/pods/NAMESPACE_POD_UID/CONTAINER/0.log" */
static size_t logs_of_pod(struct gp_exam *exam, const char *pod, const char **ret_paths,
                          size_t most)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, pod, &names);
    size_t count = 0;
    for (long i = 0; i < n && count < most; i++) {
        const char *path = last_log(exam, gp_exam_text(exam, "%s/%s", pod, names[i]));
        if (path)
            ret_paths[count++] = path;
    }
    return count;
}

/* The kubelet keeps a link to each of them in one folder; a collection of logs may lack that. */
size_t gp_pod_logs(struct gp_exam *exam, const char *ret_paths[GP_POD_LOGS])
{
    static const char links[] = "/var/log/containers", pods[] = "/var/log/pods";
    char **names;
    size_t count = 0;
    long n = gp_files_list(&exam->files, &exam->arena, links, &names);
    for (long i = 0; i < n && count < GP_POD_LOGS; i++)
        if (is_for_gpus(names[i]))
            ret_paths[count++] = gp_exam_text(exam, "%s/%s", links, names[i]);
    if (count > 0)
        return count;
    n = gp_files_list(&exam->files, &exam->arena, pods, &names);
    for (long i = 0; i < n && count < GP_POD_LOGS; i++)
        if (is_for_gpus(names[i]))
            count += logs_of_pod(exam, gp_exam_text(exam, "%s/%s", pods, names[i]),
                                 ret_paths + count, GP_POD_LOGS - count);
    return count;
}

/* ---- containers of the GPU Operator ---- */

const char gp_pod_of_resource[] = "nvidia-gpu-driver-";

/* "…/POD_UID/nvidia-driver-ctr/4.log", or as a link "…/POD_NAMESPACE_nvidia-driver-ctr-ID.log". The
 * pods have more containers, which only wait. */
struct pod_kind {
    const char *pods[2], *containers[2];
};

/* On OpenShift another container of the pod compiles. */
static const struct pod_kind driver_kind = {
    {"nvidia-driver-daemonset-", gp_pod_of_resource},
    {"nvidia-driver-ctr", "openshift-driver-toolkit-ctr"},
};
static const struct pod_kind toolkit_kind = {
    {"nvidia-container-toolkit-daemonset-"},
    {"nvidia-container-toolkit-ctr"},
};

static bool is_of(const struct pod_kind *kind, const char *path)
{
    bool is_pod = false, is_container = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(kind->pods) && kind->pods[i]; i++) {
        const char *at = strstr(path, kind->pods[i]);
        is_pod = is_pod || (at && at > path && strchr("/_", at[-1]));
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(kind->containers) && kind->containers[i]; i++)
        is_container = is_container || strstr(path, kind->containers[i]);
    return is_pod && is_container;
}

/* The time of its last line, "2024-05-27T07:14:55"; "": unknown. */
static const char *last_time(struct gp_exam *exam, const char *text, size_t size)
{
    enum { STAMP = 19 };
    static const char mark[] = "\"time\":\"";
    const char *end = text + size, *line, *time = "";
    size_t n;
    for (struct gp_lines lines = gp_lines_of(text, size); gp_lines_next(&lines, &line, &n);) {
        const char *at = memmem(line, n, mark, sizeof(mark) - 1);
        const char *stamp = at ? at + sizeof(mark) - 1 : line;
        if (end - stamp >= STAMP && stamp[0] == '2' && stamp[4] == '-')
            time = stamp;
    }
    return time[0] ? gp_exam_text(exam, "%.*s", (int)STAMP, time) : "";
}

/* Docker's lines: {"log":"text\n","stream":"stdout","time":"…"} */
static size_t copy_json(char *to, const char *from, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n && from[i] != '"'; i++) {
        bool is_escaped = from[i] == '\\' && i + 1 < n;
        i += is_escaped;
        if (!is_escaped || !strchr("nrtu", from[i]))
            to[count++] = from[i];
        else if (from[i] == 't')
            to[count++] = ' ';
    }
    return count;
}

/* Those of other engines: "2024-05-27T07:14:40.204118204Z stderr F text" */
static size_t copy_text(char *to, const char *from, size_t n)
{
    static const char *const marks[] = {" stdout F ", " stderr F ", " stdout P ", " stderr P "};
    enum { LONGEST = 40, MARK = 10 };
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++) {
        const char *at = memmem(from, n < LONGEST + MARK ? n : LONGEST + MARK, marks[i], MARK);
        size_t skipped = at ? (size_t)(at - from) + MARK : 0;
        from += skipped;
        n -= skipped;
        if (skipped > 0)
            break;
    }
    memcpy(to, from, n);
    return n;
}

static void strip(struct gp_exam *exam, struct gp_pod_log *log)
{
    static const char json[] = "{\"log\":\"";
    char *to = gp_arena_alloc(&exam->arena, log->size + 2, 1);
    const char *line;
    size_t n, size = 0;
    if (!to)
        return;
    for (struct gp_lines lines = gp_lines_of(log->text, log->size);
         gp_lines_next(&lines, &line, &n);) {
        bool is_json = n > sizeof(json) && memcmp(line, json, sizeof(json) - 1) == 0;
        size += is_json ? copy_json(to + size, line + sizeof(json) - 1, n - (sizeof(json) - 1))
                        : copy_text(to + size, line, n);
        to[size++] = '\n';
    }
    to[size] = '\0';
    log->text = to;
    log->size = size;
}

/* That which has printed last. */
static bool read_kind(struct gp_exam *exam, const struct pod_kind *kind, struct gp_pod_log *ret)
{
    enum { MOST = 1 << 18 };
    const char *paths[GP_POD_LOGS], *newest = NULL;
    const size_t n = gp_pod_logs(exam, paths);
    for (size_t i = 0; i < n; i++) {
        size_t size = 0;
        const char *text = is_of(kind, paths[i])
                               ? gp_files_tail(&exam->files, &exam->arena, paths[i], MOST, &size)
                               : NULL;
        const char *time = text && size > 0 ? last_time(exam, text, size) : "";
        if (!text || size == 0 || (newest && strcmp(time, newest) <= 0))
            continue;
        newest = time;
        *ret = (struct gp_pod_log){paths[i], text, size, strstr(paths[i], gp_pod_of_resource)};
    }
    if (newest)
        strip(exam, ret);
    return newest;
}

bool gp_pod_read_driver(struct gp_exam *exam, struct gp_pod_log *ret)
{
    static const struct gp_pod_log none;
    if (!exam->pod_log) {
        struct gp_pod_log *log = gp_arena_alloc(&exam->arena, 1, sizeof(*log));
        exam->pod_log = log && read_kind(exam, &driver_kind, log) ? log : &none;
    }
    *ret = *exam->pod_log;
    return ret->path;
}

bool gp_pod_read_toolkit(struct gp_exam *exam, struct gp_pod_log *ret)
{
    return read_kind(exam, &toolkit_kind, ret);
}
