#include "doctor/readers/processes.h"

#include "doctor/exam.h"

#include <stdio.h>
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
