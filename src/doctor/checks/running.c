#include "doctor/checks/running.h"

#include "base/err.h"
#include "doctor/exam.h"
#include "doctor/readers/processes.h"
#include "model/snapshot.h"
#include "proc/lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether it computes, rather than shows a screen; daemons of the driver do neither. */
static bool computes(struct gp_exam *exam, const char *folder)
{
    static const char own[] = "nvidia-";
    char **names, target[GP_PATH_SIZE], name[32];
    const char *fds = gp_exam_text(exam, "%s/fd", folder);
    bool is_found = false;
    long n = gp_files_list(&exam->files, &exam->arena, fds, &names);
    for (long i = 0; i < n && !is_found; i++)
        is_found =
            gp_files_link(&exam->files, gp_exam_text(exam, "%s/%s", fds, names[i]), target) &&
            (strcmp(target, "/dev/nvidia-uvm") == 0 || strcmp(target, "/dev/kfd") == 0);
    return is_found && !(gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", folder), name,
                                       sizeof(name)) &&
                         strncmp(name, own, sizeof(own) - 1) == 0);
}

/* Whether an earlier row of the driver's list is the same process, on another GPU. */
static bool is_repeated(const struct gp_snapshot *s, size_t place, int64_t pid)
{
    for (size_t i = 0; i < place; i++)
        if (gp_process_value(&s->processes[i], GP_PID)->i == pid)
            return true;
    return false;
}

static size_t count_processes(struct gp_exam *exam)
{
    const struct gp_snapshot *s = exam->snapshot;
    size_t count = 0;
    for (size_t i = 0; s && i < s->process_count; i++) {
        const struct gp_value *pid = gp_process_value(&s->processes[i], GP_PID);
        count += gp_value_is_present(pid) && gp_process_computes(&s->processes[i]) &&
                 !is_repeated(s, i, pid->i);
    }
    if (exam->is_simulated)
        return count; /* this machine's processes are not on its GPUs */
    struct gp_processes all = gp_processes_of(exam);
    const char *folder;
    while ((folder = gp_processes_next(exam, &all, ""))) {
        int64_t pid = strtol(strrchr(folder, '/') + 1, NULL, 10);
        count += !(s && gp_snapshot_lists(s, pid)) && computes(exam, folder);
    }
    return count;
}

/* Jobs that wait in the queue; the others have processes. */
static size_t count_waiting(struct gp_exam *exam)
{
    struct gp_leases leases;
    struct gp_err err;
    size_t count = 0;
    if (!exam->files.is_here || gp_leases_read_settled(NULL, &leases, &err) < 0)
        return 0;
    for (size_t i = 0; i < leases.count; i++)
        count += leases.items[i].state == GP_LEASE_WAITING;
    gp_leases_fini(&leases);
    return count;
}

/* "": nothing is running. */
static const char *running_words(struct gp_exam *exam)
{
    if (exam->running)
        return exam->running;
    size_t processes = count_processes(exam), waiting = count_waiting(exam);
    const char *jobs =
        waiting > 0 ? gp_exam_text(exam, "%zu job%s in the queue", waiting, waiting == 1 ? "" : "s")
                    : "";
    exam->running = processes == 0
                        ? jobs
                        : gp_exam_text(exam, "%zu process%s on the GPUs%s%s", processes,
                                       processes == 1 ? "" : "es", *jobs ? " and " : "", jobs);
    return exam->running;
}

/* What ends programs on GPUs: commands, and words of advice. A reset of one GPU says itself that
 * nothing may use it. */
static const struct {
    const char *text, *what;
} interruptions[] = {
    {"rmmod ", "unloading the module"}, {"modprobe -r ", "unloading the module"},
    {"sudo reboot", "the reboot"},      {"and reboot", "the reboot"},
    {"then reboot", "the reboot"},
};

static const char *interruption_of(const struct gp_fix *fix)
{
    const char *text = fix->command ? fix->command : fix->note;
    for (size_t i = 0; i < GP_ARRAY_LEN(interruptions); i++)
        if (strstr(text, interruptions[i].text))
            return interruptions[i].what;
    return NULL;
}

static void warn(struct gp_exam *exam, struct gp_finding *finding)
{
    const char *what = NULL;
    for (const struct gp_fix *fix = finding->fixes; fix && !what; fix = fix->next)
        what = interruption_of(fix);
    if (!what || !running_words(exam)[0])
        return;
    struct gp_fix *first = gp_arena_alloc(&exam->arena, 1, sizeof(*first));
    if (!first)
        return;
    *first =
        (struct gp_fix){.note = gp_exam_text(
                            exam, "%s ends %s, which should finish first (gpulse ps, gpulse queue)",
                            what, running_words(exam)),
                        .next = finding->fixes};
    finding->fixes = first;
}

void gp_running_warn(struct gp_exam *exam, struct gp_finding *first)
{
    for (struct gp_finding *f = first; f; f = f->next)
        if (f->verdict > GP_VERDICT_SKIP)
            warn(exam, f);
}
