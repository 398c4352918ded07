/* Runs the checks, in their order. */
#include "doctor/exam.h"

#include "base/clock.h"
#include "sample/thread.h"

#include <stdio.h>
#include <string.h>

const struct gp_check *gp_check_at(const struct gp_check_list *list, size_t place)
{
    for (const struct gp_check *const *group = list->groups; *group; group++)
        for (const struct gp_check *check = *group; check->id; check++)
            if (place-- == 0)
                return check;
    return NULL;
}

const char *gp_exam_unknown(const struct gp_check_list *checks, const char *list,
                            size_t *ret_length)
{
    const struct gp_check *check;
    for (const char *p = list; p && *p; p += *ret_length + (p[*ret_length] == ',')) {
        char word[64];
        size_t i = 0;
        *ret_length = strcspn(p, ",");
        (void)snprintf(word, sizeof(word), "%.*s", (int)*ret_length, p);
        while ((check = gp_check_at(checks, i)) && !gp_exam_is_listed(word, check->id))
            i++;
        if (!check && *ret_length > 0)
            return p;
    }
    return NULL;
}

/* The failed check that this one needs directly or indirectly; NULL: none failed. */
static const struct gp_check *failed_need(const struct gp_exam *exam, const struct gp_check *check)
{
    const struct gp_check *other;
    for (size_t n = 0; n < GP_CHECK_NEEDS && check->needs[n]; n++)
        for (size_t i = 0; (other = gp_check_at(exam->checks, i)); i++)
            if (strcmp(other->id, check->needs[n]) == 0 && exam->outcomes[i].root_cause)
                return exam->outcomes[i].root_cause;
    return NULL;
}

/* The failed check for which this one is skipped; NULL: it runs. */
static const struct gp_check *skipped_for(const struct gp_exam *exam, const struct gp_check *check)
{
    return gp_exam_is_listed(exam->wanted, check->id) ? NULL : failed_need(exam, check);
}

/* Leaves of the current check's findings those that stand alone. */
static void drop_dependent(struct gp_exam *exam)
{
    struct gp_check_outcome *outcome = &exam->outcomes[exam->place];
    struct gp_finding **end = &exam->findings;
    outcome->verdict = GP_VERDICT_OK;
    exam->last = NULL;
    while (*end) {
        struct gp_finding *f = *end;
        if (f->check == exam->check && !f->stands_alone) {
            *end = f->next;
            continue;
        }
        if (f->check == exam->check && f->verdict > outcome->verdict)
            outcome->verdict = f->verdict;
        exam->last = f;
        end = &f->next;
    }
}

/* Reports what would show only once the first problem is mended, such as after a reboot. False:
 * there is no such finding. */
static bool run_anyway(struct gp_exam *exam, const struct gp_check *check)
{
    const struct gp_finding *before = exam->last;
    if (!check->is_run_anyway)
        return false;
    check->run(exam);
    drop_dependent(exam);
    if (exam->last == before)
        return false;
    if (exam->checks->finish)
        exam->checks->finish(exam, before ? before->next : exam->findings);
    return true;
}

static void run_check(struct gp_exam *exam, const struct gp_check *check)
{
    struct gp_check_outcome *outcome = &exam->outcomes[exam->place];
    const struct gp_check *because = failed_need(exam, check);
    outcome->is_run = true;
    if (skipped_for(exam, check)) {
        outcome->root_cause = because;
        if (run_anyway(exam, check))
            return;
        gp_exam_report(exam, GP_VERDICT_SKIP, "skipped because %s failed", because->id);
        if (exam->last)
            exam->last->because = because;
        return;
    }
    const struct gp_finding *before = exam->last;
    uint64_t start = gp_clock_mono_ns();
    check->run(exam);
    outcome->ms = (double)(gp_clock_mono_ns() - start) / 1e6;
    if (exam->last == before)
        gp_exam_report(exam, GP_VERDICT_OK, "%s", check->title);
    struct gp_finding *first = before ? before->next : exam->findings;
    if (exam->checks->finish)
        exam->checks->finish(exam, first);
    if (because) {
        for (struct gp_finding *f = first; f; f = f->next)
            f->because = f->because ? f->because : because;
        outcome->root_cause = because;
    } else if (outcome->verdict == GP_VERDICT_FAIL) {
        outcome->root_cause = check;
    }
}

struct round {
    struct gp_exam *exam;
    const char *only, *without;
};

/* Runs the checks from the exam's current one on. */
static void *run_rest(void *ctx)
{
    const struct round *round = ctx;
    struct gp_exam *exam = round->exam;
    const struct gp_check *check;
    for (; (check = gp_check_at(exam->checks, exam->place)) && exam->place < GP_EXAM_CHECKS;
         exam->place++) {
        if ((round->only && !gp_exam_is_listed(round->only, check->id)) ||
            (round->without && gp_exam_is_listed(round->without, check->id)))
            continue;
        exam->check = check;
        if (!check->applies || check->applies(exam))
            run_check(exam, check);
        else
            exam->outcomes[exam->place].root_cause = failed_need(exam, check);
    }
    return NULL;
}

/* Reports the path that does not respond, and makes later checks avoid it: the whole mount if its
 * files come from elsewhere, otherwise only the path (it may be a link to another file system). The
 * file system that gpulse was started from is never blocked as a whole. */
static void report_stall(struct gp_exam *exam, const char *path)
{
    static struct gp_mount mount; /* large */
    const char *root = exam->files.is_here ? "" : exam->files.root;
    size_t prefix = strlen(root);
    const char *silent = path;
    bool is_known = gp_mount_of(gp_exam_text(exam, "%s%s", root, path), &mount) &&
                    mount.is_remote && strcmp(mount.folder, "/") != 0;
    if (is_known)
        silent = strncmp(mount.folder, root, prefix) == 0 ? mount.folder + prefix : "";
    gp_stall_refuse(&exam->stall, silent);
    if (skipped_for(exam, exam->check))
        drop_dependent(exam);
    exam->outcomes[exam->place].is_run = true;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s does not respond", *silent ? silent : "/");
    gp_exam_evidence(exam, path, "no response for %.0f s", (double)exam->patience_ns / 1e9);
    if (is_known)
        gp_exam_evidence(exam, "/proc/self/mounts", "%s on %s (%s)", mount.source, mount.folder,
                         mount.type);
    gp_exam_why(
        exam, "Every program that accesses it hangs just as long, and no signal ends that; this "
              "happens to a network mount when its server is gone. Files on it were not checked.");
    gp_exam_advice(exam, "check that the server of that mount is up and reachable");
}

/* Waits until the thread has finished (true), or has waited too long for a file. */
static bool wait_for(struct gp_exam *exam, pthread_t thread, char path[GP_PATH_SIZE])
{
    enum { LOOK_MS = 50 };
    for (;;) {
        struct timespec until = gp_clock_timespec(gp_clock_wall_ns() + LOOK_MS * GP_NS_PER_MS);
        if (pthread_timedjoin_np(thread, NULL, &until) == 0)
            return true;
        if (gp_stall_give_up(&exam->stall, exam->patience_ns, path))
            return false;
    }
}

void gp_exam_run(struct gp_exam *exam, const char *only, const char *without)
{
    struct round round = {.exam = exam, .only = only, .without = without};
    char path[GP_PATH_SIZE];
    pthread_t thread;
    exam->place = 0;
    while (gp_check_at(exam->checks, exam->place)) {
        if (gp_thread_start(&thread, run_rest, &round) < 0) {
            (void)run_rest(&round);
            return;
        }
        if (wait_for(exam, thread, path))
            return;
        exam->is_stuck = true;
        report_stall(exam, path);
        exam->place++;
    }
}
