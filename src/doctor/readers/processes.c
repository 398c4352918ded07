#include "doctor/readers/processes.h"

#include "doctor/exam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gp_processes gp_processes_of(struct gp_exam *exam)
{
    struct gp_processes all = {.next = 0};
    all.count = gp_files_list(&exam->files, &exam->arena, "/proc", &all.names);
    return all;
}

const char *gp_processes_next(struct gp_exam *exam, struct gp_processes *processes,
                              const char *start)
{
    char path[64], name[32];
    while (processes->next < processes->count) {
        const char *number = processes->names[processes->next++];
        if (number[strspn(number, "0123456789")])
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%.20s/comm", number);
        if (!*start || (gp_files_line(&exam->files, path, name, sizeof(name)) &&
                        strncmp(name, start, strlen(start)) == 0))
            return gp_exam_text(exam, "/proc/%s", number);
    }
    return NULL;
}

bool gp_processes_run_as(struct gp_exam *exam, const char *start, bool is_root)
{
    static const char key[] = "\nUid:";
    struct gp_processes processes = gp_processes_of(exam);
    const char *folder;
    while ((folder = gp_processes_next(exam, &processes, start))) {
        const char *text = gp_files_text(&exam->files, &exam->arena,
                                         gp_exam_text(exam, "%s/status", folder), 1 << 14, NULL);
        const char *user = text ? strstr(text, key) : NULL;
        if (user && (strtoul(user + sizeof(key) - 1, NULL, 10) == 0) == is_root)
            return true;
    }
    return false;
}

const char *gp_process_variable(struct gp_exam *exam, const char *process, const char *name)
{
    enum { MOST_BYTES = 1 << 20 };
    size_t size = 0, n = strlen(name);
    const char *path = gp_exam_text(exam, "%s/environ", process);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST_BYTES, &size);
    for (const char *at = text; at && at < text + size; at += strlen(at) + 1)
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    return NULL;
}

bool gp_process_file_is_gpu(const char *path)
{
    static const char device[] = "/dev/nvidia";
    const size_t n = sizeof(device) - 1;
    return strncmp(path, device, n) == 0 && path[n] >= '0' && path[n] <= '9';
}
