#include "doctor/readers/cgroups.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <stdio.h>
#include <string.h>

static struct gp_cgroups read_cgroups(struct gp_exam *exam)
{
    static const char path[] = "/proc/self/mounts", base[] = "/sys/fs/cgroup",
                      controllers[] = "/sys/fs/cgroup/cgroup.controllers";
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, NULL);
    const char *first = NULL, *second = NULL;
    for (const char *line = text; line && *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        char folder[64], type[16], options[256];
        if (sscanf(line, "%*s %63s %15s %255s", folder, type, options) != 3)
            continue;
        if (strcmp(type, "cgroup") == 0 && gp_lines_list_has(options, "devices"))
            first = gp_exam_text(exam, "%s is of control groups v1", folder);
        else if (strcmp(type, "cgroup2") == 0 && strcmp(folder, base) == 0)
            second = gp_exam_text(exam, "%s is of control groups v2", folder);
    }
    if (first && !second)
        return (struct gp_cgroups){GP_CGROUP_FIRST, path, first};
    if (first)
        return (struct gp_cgroups){GP_CGROUP_UNKNOWN, path, first};
    if (gp_files_exist(&exam->files, controllers))
        return (struct gp_cgroups){GP_CGROUP_SECOND, controllers, "present: control groups v2"};
    return second ? (struct gp_cgroups){GP_CGROUP_SECOND, path, second}
                  : (struct gp_cgroups){GP_CGROUP_UNKNOWN, base, "unknown"};
}

struct gp_cgroups gp_cgroups_of(struct gp_exam *exam)
{
    if (exam->cgroups)
        return *exam->cgroups;
    const struct gp_cgroups found = read_cgroups(exam);
    struct gp_cgroups *kept = gp_arena_alloc(&exam->arena, 1, sizeof(*kept));
    if (kept)
        *kept = found;
    exam->cgroups = kept;
    return found;
}

bool gp_cgroups_may_use(enum gp_cgroup_version version, bool is_second)
{
    return version == GP_CGROUP_UNKNOWN || (version == GP_CGROUP_SECOND) == is_second;
}
