/* Processes that use a GPU although the session that started them has ended. */
#include "doctor/checks/health.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8, TEXT = 4096 };

struct orphan {
    const char *folder, *command, *device; /* "/proc/900", "python train.py", "/dev/nvidia0" */
    unsigned long pid;
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

/* Services look the same, except for their control group; that of a login is called so. */
static bool may_be_of_session(struct gp_exam *exam, const char *folder)
{
    char text[TEXT];
    const char *path = gp_exam_text(exam, "%s/cgroup", folder);
    return gp_files_read(&exam->files, path, text, sizeof(text)) <= 0 ||
           (strstr(text, "/session-") && strstr(text, ".scope"));
}

/* A GPU's device file that it has open to compute; NULL: none. */
static const char *device_of(struct gp_exam *exam, const char *folder)
{
    static const char nvidia[] = "/dev/nvidia";
    char **names, target[GP_PATH_SIZE];
    const char *fds = gp_exam_text(exam, "%s/fd", folder), *found = NULL;
    bool is_computing = false;
    long n = gp_files_list(&exam->files, &exam->arena, fds, &names);
    for (long i = 0; i < n; i++) {
        if (!gp_files_link(&exam->files, gp_exam_text(exam, "%s/%s", fds, names[i]), target))
            continue;
        is_computing = is_computing || strcmp(target, "/dev/nvidia-uvm") == 0;
        if (strcmp(target, "/dev/kfd") == 0)
            return "/dev/kfd";
        if (!found && strncmp(target, nvidia, sizeof(nvidia) - 1) == 0 &&
            isdigit((unsigned char)target[sizeof(nvidia) - 1]))
            found = gp_exam_text(exam, "%s", target);
    }
    return is_computing ? found : NULL;
}

/* Its program and the first argument, which is the script of an interpreter. */
static const char *command_of(struct gp_exam *exam, const char *folder)
{
    size_t length = 0;
    const char *path = gp_exam_text(exam, "%s/cmdline", folder);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, TEXT, &length);
    if (!text || !text[0])
        return "unknown program";
    const char *name = strrchr(text, '/') ? strrchr(text, '/') + 1 : text;
    size_t n = strlen(text) + 1;
    const char *argument = n < length && text[n] && text[n] != '-' ? text + n : NULL;
    return argument ? gp_exam_text(exam, "%s %s", name, argument) : name;
}

static bool read_one(struct gp_exam *exam, const char *number, struct orphan *ret)
{
    static const char own[] = "nvidia-"; /* daemons of the driver, also started by hand */
    char stat[TEXT], name[32];
    const char *folder = gp_exam_text(exam, "/proc/%s", number);
    if (gp_files_read(&exam->files, gp_exam_text(exam, "%s/stat", folder), stat, sizeof(stat)) <=
            0 ||
        !is_detached(stat) ||
        (gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", folder), name, sizeof(name)) &&
         strncmp(name, own, sizeof(own) - 1) == 0) ||
        !may_be_of_session(exam, folder))
        return false;
    *ret = (struct orphan){
        .folder = folder, .device = device_of(exam, folder), .pid = strtoul(number, NULL, 10)};
    if (ret->device)
        ret->command = command_of(exam, folder);
    return ret->device;
}

/* At most `most` of them; returns their number. */
static size_t find_orphans(struct gp_exam *exam, struct orphan *ret, size_t most)
{
    char **names;
    size_t count = 0;
    long n = gp_files_list(&exam->files, &exam->arena, "/proc", &names);
    for (long i = 0; i < n && count < most; i++)
        if (!names[i][strspn(names[i], "0123456789")])
            count += read_one(exam, names[i], &ret[count]);
    return count;
}

/* In a container, its first process may be the program itself. */
bool gp_health_has_orphans(struct gp_exam *exam)
{
    struct orphan found[1];
    return exam->machine.gpu_count > 0 && !exam->machine.container &&
           !(exam->is_simulated && exam->files.is_here) && find_orphans(exam, found, 1) > 0;
}

/* It may compute on purpose, with nohup or setsid, so it is no problem by itself. */
void gp_health_run_orphans(struct gp_exam *exam)
{
    struct orphan found[SHOWN];
    size_t count = find_orphans(exam, found, SHOWN);
    if (count == 0)
        return; /* it has ended meanwhile */
    gp_exam_report(exam, GP_VERDICT_INFO,
                   count == 1 ? "a process without a session uses a GPU: pid %lu, %s"
                              : "processes without a session use GPUs: pid %lu, %s, and others",
                   found[0].pid, found[0].command);
    for (size_t i = 0; i < count; i++)
        gp_exam_evidence(exam, found[i].folder,
                         "%s: its parent is init, it has no terminal, and has %s open",
                         found[i].command, found[i].device);
    gp_exam_why(exam, "Either it was started to outlast its session, such as with nohup, or it is "
                      "left over from one that has ended. It keeps its GPU memory until it ends, "
                      "and other programs may run out of memory.");
    bool is_amd = strcmp(found[0].device, "/dev/kfd") == 0; /* gpulse ps needs NVIDIA's driver */
    if (!is_amd)
        gp_exam_command(exam,
                        "list your processes that do nothing, and ask before terminating them",
                        "gpulse reclaim --idle 1m");
    gp_exam_command(exam, "if it is no longer needed", "%skill %lu", is_amd ? "" : "gpulse ",
                    found[0].pid);
}
