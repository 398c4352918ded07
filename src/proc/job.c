#include "proc/job.h"

#include <string.h>

enum { CLIMB_MAX = 64 };

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
static bool starts_jobs(const struct gp_proc_info *process)
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
    const char *name = process->texts->name ? process->texts->name : "";
    name += *name == '-'; /* a login shell */
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0 &&
            strchr(" :", name[strlen(names[i])]) != NULL)
            return true;
    return process->pid <= 1 || is_jupyter(process->texts->command ? process->texts->command : "");
}

uint32_t gp_proc_job(const struct gp_proc_infos *infos, uint32_t pid)
{
    const struct gp_proc_info *process = gp_proc_find(infos, pid);
    for (int i = 0; process && i < CLIMB_MAX; i++) {
        const struct gp_proc_info *parent =
            process->ppid > 0 ? gp_proc_find(infos, process->ppid) : NULL;
        if (!parent || !parent->exists || starts_jobs(parent))
            break;
        process = parent;
    }
    return process ? process->pid : pid;
}
