/* Processes that use a GPU although the session that started them has ended. */
#include "doctor/checks/health.h"

#include "doctor/readers/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8, TEXT = 4096 };

struct orphan {
    const char *folder, *command, *device; /* "/proc/900", "python train.py", "/dev/nvidia0" */
    unsigned long pid;
    bool is_amd;
};

/* Whether init has adopted it and it has no terminal, by /proc/PID/stat: behind the name, which may
 * contain anything, follow its state, parent, group, session and terminal. */
static bool is_detached(char *stat)
{
    enum { INIT = 1, PARENT = 0, TERMINAL = 3, FIELDS };
    char *end = strrchr(stat, ')');
    long fields[FIELDS] = {0};
    if (!end || end[1] != ' ' || !end[2] || end[2] == 'Z')
        return false;
    char *p = end + 3;
    for (size_t i = 0; i < FIELDS; i++)
        fields[i] = strtol(p, &p, 10);
    return fields[PARENT] == INIT && fields[TERMINAL] == 0;
}

/* Whether logind says that a session has ended, of which only such processes are left. A desktop's
 * programs look the same as these while it is there. */
static bool has_ended(struct gp_exam *exam, const char *id)
{
    static const char sessions[] = "/run/systemd/sessions", mark[] = "STATE=";
    char text[TEXT];
    const char *path = gp_exam_text(exam, "%s/%s", sessions, id), *state;
    if (gp_files_read(&exam->files, path, text, sizeof(text)) <= 0)
        return gp_files_exist(&exam->files, sessions) && !gp_files_exist(&exam->files, path);
    state = strstr(text, mark);
    return state && strncmp(state + sizeof(mark) - 1, "closing", 7) == 0;
}

/* By the control group, which is called after the session: "/user.slice/…/session-4.scope". Those
 * of services are not. */
static bool has_outlasted(struct gp_exam *exam, const char *folder)
{
    static const char mark[] = "/session-";
    char text[TEXT], id[32];
    const char *path = gp_exam_text(exam, "%s/cgroup", folder);
    const char *at =
        gp_files_read(&exam->files, path, text, sizeof(text)) > 0 ? strstr(text, mark) : NULL;
    if (!at)
        return false;
    at += sizeof(mark) - 1;
    size_t n = strspn(at, "0123456789abcdefghijklmnopqrstuvwxyz");
    if (n == 0 || n >= sizeof(id) || strncmp(at + n, ".scope", 6) != 0)
        return false;
    (void)snprintf(id, sizeof(id), "%.*s", (int)n, at);
    return has_ended(exam, id);
}

/* A GPU's device file that it has open to compute; NULL: none. */
static const char *device_of(struct gp_exam *exam, const char *folder)
{
    char **names, target[GP_PATH_SIZE];
    const char *fds = gp_exam_text(exam, "%s/fd", folder), *found = NULL;
    bool is_computing = false;
    long n = gp_files_list(&exam->files, &exam->arena, fds, &names);
    for (long i = 0; i < n && !(found && is_computing); i++) {
        if (!gp_files_link(&exam->files, gp_exam_text(exam, "%s/%s", fds, names[i]), target))
            continue;
        is_computing = is_computing || strcmp(target, "/dev/nvidia-uvm") == 0;
        if (strcmp(target, "/dev/kfd") == 0)
            return "/dev/kfd";
        if (!found && gp_process_file_is_gpu(target))
            found = gp_exam_text(exam, "%s", target);
    }
    return is_computing ? found : NULL;
}

/* Its name and, of Python, that of the script. Other arguments can contain secrets. */
static const char *command_of(struct gp_exam *exam, const char *folder)
{
    static const char end[] = ".py";
    char name[32];
    size_t length = 0;
    const char *path = gp_exam_text(exam, "%s/cmdline", folder);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, TEXT, &length);
    if (!gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", folder), name, sizeof(name)))
        return "unknown program";
    size_t n = text ? strlen(text) + 1 : 0;
    const char *script = n < length ? text + n : "";
    script = strrchr(script, '/') ? strrchr(script, '/') + 1 : script;
    bool is_script = strncmp(name, "python", 6) == 0 && strlen(script) > strlen(end) &&
                     strcmp(script + strlen(script) - strlen(end), end) == 0 &&
                     !strpbrk(script, " \t\n=@");
    return gp_exam_text(exam, "%s%s%s", name, is_script ? " " : "", is_script ? script : "");
}

static bool read_one(struct gp_exam *exam, const char *folder, struct orphan *ret)
{
    static const char own[] = "nvidia-"; /* daemons of the driver, also started by hand */
    char stat[TEXT], name[32];
    if (gp_files_read(&exam->files, gp_exam_text(exam, "%s/stat", folder), stat, sizeof(stat)) <=
            0 ||
        !is_detached(stat) ||
        (gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", folder), name, sizeof(name)) &&
         strncmp(name, own, sizeof(own) - 1) == 0) ||
        !has_outlasted(exam, folder))
        return false;
    *ret = (struct orphan){.folder = folder,
                           .device = device_of(exam, folder),
                           .pid = strtoul(strrchr(folder, '/') + 1, NULL, 10)};
    if (!ret->device)
        return false;
    ret->command = command_of(exam, folder);
    ret->is_amd = strcmp(ret->device, "/dev/kfd") == 0;
    return true;
}

/* Found where the check asks whether it applies, and kept for its report. */
struct gp_orphans {
    struct orphan list[SHOWN]; /* the rest is omitted */
    size_t count;
};

static const struct gp_orphans *find_orphans(struct gp_exam *exam)
{
    static const struct gp_orphans none;
    struct gp_orphans *found = gp_arena_alloc(&exam->arena, 1, sizeof(*found));
    struct gp_processes all = gp_processes_of(exam);
    const char *folder;
    while (found && found->count < SHOWN && (folder = gp_processes_next(exam, &all, "")))
        found->count += read_one(exam, folder, &found->list[found->count]);
    return found ? found : &none;
}

/* In a container, its first process may be the program itself. */
bool gp_health_has_orphans(struct gp_exam *exam)
{
    if (exam->machine.gpu_count == 0 || exam->machine.container ||
        (exam->is_simulated && exam->files.is_here))
        return false;
    exam->orphans = find_orphans(exam);
    return exam->orphans->count > 0;
}

/* "900 901": of those on GPUs of one vendor. */
static const char *pids_of(struct gp_exam *exam, const struct orphan *found, size_t count,
                           bool is_amd)
{
    const char *list = "";
    for (size_t i = 0; i < count; i++)
        if (found[i].is_amd == is_amd)
            list = gp_exam_text(exam, "%s%s%lu", list, list[0] ? " " : "", found[i].pid);
    return list;
}

/* They may compute on purpose, with nohup or setsid, so they are no problem by themselves. */
void gp_health_run_orphans(struct gp_exam *exam)
{
    const struct orphan *found = exam->orphans->list;
    size_t count = exam->orphans->count;
    if (count == 1)
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "a process whose session has ended uses a GPU: pid %lu, %s", found[0].pid,
                       found[0].command);
    else
        gp_exam_report(exam, GP_VERDICT_INFO, "%s%zu processes whose sessions have ended use GPUs",
                       count == SHOWN ? "at least " : "", count);
    for (size_t i = 0; i < count; i++)
        gp_exam_evidence(exam, found[i].folder,
                         "%s: its parent is init, it has no terminal, and has %s open",
                         found[i].command, found[i].device);
    gp_exam_why(exam, "Either it was started to outlast its session, such as with nohup, or it is "
                      "left over from one that has ended. It keeps its GPU memory until it ends, "
                      "and other programs may run out of memory.");
    /* gpulse finds the processes of NVIDIA's driver only */
    const char *nvidia = pids_of(exam, found, count, false),
               *amd = pids_of(exam, found, count, true);
    if (nvidia[0]) {
        gp_exam_command(exam,
                        "list your processes that do nothing, and ask before terminating them",
                        "gpulse reclaim --idle 1m");
        gp_exam_command(exam, "if no longer needed", "gpulse kill %s", nvidia);
    }
    if (amd[0])
        gp_exam_command(exam, "if no longer needed", "kill %s", amd);
}
