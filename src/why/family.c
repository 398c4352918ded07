#include "why/family.h"

#include <string.h>

enum { CLIMB_MAX = 64 };

/* A row of the process, or it among the ancestors; NULL: neither. */
static const struct gp_process *find_process(const struct gp_snapshot *s, uint32_t pid)
{
    for (size_t i = 0; pid > 0 && i < s->process_count; i++)
        if (gp_why_pid_of(&s->processes[i], GP_PID) == pid)
            return &s->processes[i];
    for (size_t i = 0; pid > 0 && i < s->ancestor_count; i++)
        if (gp_why_pid_of(&s->ancestors[i], GP_PID) == pid)
            return &s->ancestors[i];
    return NULL;
}

uint64_t gp_why_job_of(const struct gp_process *process)
{
    const char *container = gp_why_text_of(process, GP_PROCESS_CONTAINER);
    if (strncmp(container, "slurm:", strlen("slurm:")) == 0)
        return gp_hash(GP_HASH_INIT, container) | UINT64_C(1) << 63;
    return process->job ? process->job : gp_why_pid_of(process, GP_PID);
}

bool gp_why_comes_from(const struct gp_snapshot *s, const struct gp_process *process, uint32_t pid)
{
    for (int i = 0; process && i < CLIMB_MAX; i++) {
        if (gp_why_pid_of(process, GP_PID) == pid || process->job == pid)
            return true;
        process = find_process(s, gp_why_pid_of(process, GP_PROCESS_PPID));
    }
    return false;
}
