#include "doctor/readers/podlogs.h"

#include "doctor/exam.h"

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
