#include "why/family.h"

#include "proc/proc.h"

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

/* Whether one of the first words of a command is a program of Jupyter. */
static bool is_jupyter(const char *command)
{
    enum { WORDS = 3 };
    for (int i = 0; i < WORDS && *command; i++) {
        const char *name;
        (void)gp_proc_program_name(command, &name);
        if (strncmp(name, "jupyter", strlen("jupyter")) == 0)
            return true;
        command += strcspn(command, " ");
        command += strspn(command, " ");
    }
    return false;
}

/* Programs that start jobs of any kind: what they started belongs to different jobs. */
static bool starts_jobs(const struct gp_process *process)
{
    static const char *const names[] = {
        "sh",
        "bash",
        "dash",
        "zsh",
        "fish",
        "ksh",
        "tcsh",
        "tmux",
        "screen",
        "SCREEN",
        "sshd",
        "login",
        "su",
        "sudo",
        "cron",
        "crond",
        "systemd",
        "init",
        "dockerd",
        "containerd-shim",
        "containerd-shim-runc-v2",
        "conmon",
        "slurmd",
        "slurmstepd",
        "raylet",
        "supervisord",
        "code",
        "node",
        "gpulse",
    };
    const char *name = gp_why_text_of(process, GP_PROCESS_NAME);
    name += *name == '-'; /* a login shell */
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0 &&
            strchr(" :", name[strlen(names[i])]) != NULL)
            return true;
    return is_jupyter(gp_why_text_of(process, GP_PROCESS_COMMAND)) ||
           gp_why_pid_of(process, GP_PID) <= 1;
}

uint64_t gp_why_job_of(const struct gp_snapshot *s, const struct gp_process *process)
{
    const char *container = gp_why_text_of(process, GP_PROCESS_CONTAINER);
    if (strncmp(container, "slurm:", strlen("slurm:")) == 0)
        return gp_hash(GP_HASH_INIT, container) | UINT64_C(1) << 63;
    for (int i = 0; i < CLIMB_MAX; i++) {
        const struct gp_process *parent = find_process(s, gp_why_pid_of(process, GP_PROCESS_PPID));
        if (!parent || starts_jobs(parent))
            break;
        process = parent;
    }
    return gp_why_pid_of(process, GP_PID);
}

bool gp_why_comes_from(const struct gp_snapshot *s, const struct gp_process *process, uint32_t pid)
{
    for (int i = 0; process && i < CLIMB_MAX; i++) {
        if (gp_why_pid_of(process, GP_PID) == pid)
            return true;
        process = find_process(s, gp_why_pid_of(process, GP_PROCESS_PPID));
    }
    return false;
}
