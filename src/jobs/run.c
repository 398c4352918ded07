#include "jobs/run.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/marks.h"
#include "jobs/marks_read.h"
#include "jobs/timeline.h"
#include "model/snapshot.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LEASE_S = 1,     /* how often the lease file is checked */
    MOMENT_MS = 200, /* a sample this young is recent enough */
    GRACE_S = 10,    /* time for leftover processes to exit */
    BACK_S = 30,     /* and for the driver to free their memory */
    BACK_TICK_MS = 200,
    BACK_SLACK_MIB = 64,
    STATUS_TIMEOUT = 124, /* as in timeout(1) */
};

/* ---- while it runs ---- */

static enum gp_watch_order larger(enum gp_watch_order a, enum gp_watch_order b)
{
    return a > b ? a : b;
}

/* The steps that the job has reported so far, for the sample. */
static void note_steps(struct gp_run *run)
{
    struct gp_pace pace = {0};
    if (run->plan->output.pace.step && run->child.output)
        pace = gp_output_pace(run->child.output);
    else if (run->plan->marks)
        pace = gp_marks_reader_pace(run->plan->marks);
    run->watch.steps = pace.steps;
    run->watch.stepped_ns = pace.last_ns;
}

/* `is_moment`: a failure is being printed. */
static enum gp_watch_order look(struct gp_run *run, bool is_moment)
{
    struct gp_snapshot *snapshot;
    enum gp_watch_order order = GP_WATCH_GO_ON;
    run->looked_ns = gp_clock_mono_ns();
    const bool is_closer = !is_moment && gp_slow_is_due(&run->slow, run->looked_ns);
    gp_sampler_set_more(run->gpus.sampler, is_closer);
    const int ticked = gp_sampler_tick(run->gpus.sampler, &snapshot, NULL);
    gp_sampler_set_more(run->gpus.sampler, false);
    if (ticked < 0)
        return order;
    if (is_closer)
        gp_slow_look(&run->slow, snapshot);
    if (run->plan->timeline && gp_timeline_is_due(run->plan->timeline))
        gp_timeline_sample(run->plan->timeline, snapshot, &run->watch);
    if (run->plan->timeline)
        gp_timeline_note_tick(run->plan->timeline, snapshot);
    else if (run->plan->marks)
        (void)gp_marks_reader_read(run->plan->marks, NULL);
    note_steps(run);
    order = gp_watch_look(&run->watch, snapshot, !is_moment);
    gp_watch_keep_scene(&run->watch, snapshot, is_moment);
    if (run->plan->judge)
        order = larger(order, run->plan->judge(run->plan->context, &run->watch));
    return order;
}

/* Handles the findings in its output. The GPUs are sampled while the job still holds its memory,
 * but at a limited rate, whatever it prints. */
static enum gp_watch_order take_news(struct gp_run *run)
{
    static struct gp_output_news news; /* large */
    enum gp_watch_order order = GP_WATCH_GO_ON;
    if (!run->child.output || !gp_output_take(run->child.output, &news))
        return order;
    if (news.resized)
        gp_child_signal(&run->child, SIGWINCH);
    if (news.until ||
        (news.began && gp_clock_mono_ns() - run->looked_ns > MOMENT_MS * GP_NS_PER_MS))
        order = look(run, news.began);
    if (news.until && !run->watch.ended_by) {
        run->watch.ended_by = "until";
        order = larger(order, GP_WATCH_STOP);
    }
    for (size_t i = 0; i < news.count; i++) {
        gp_watch_add_incident(&run->watch, &news.found[i]);
        if (run->plan->timeline)
            gp_timeline_add_note(run->plan->timeline, news.found[i].line);
    }
    return order;
}

static void keep_reservation(struct gp_run *run)
{
    char why[GP_RESERVE_WHY_SIZE];
    const bool is_kept = gp_reserve_keep(&run->gpus, why);
    if (!is_kept && !run->is_unreserved)
        gp_watch_warn(&run->watch, "%s", why);
    run->is_unreserved = !is_kept;
}

/* Asks it to terminate, and kills it if it does not. */
static void end(struct gp_run *run, enum gp_watch_order order, uint64_t *kill_ns)
{
    if (order == GP_WATCH_GO_ON)
        return;
    gp_child_signal(&run->child, SIGCONT); /* before the signal, so that a stopped job can react to
                                              it */
    gp_child_signal(&run->child, order == GP_WATCH_STOP ? SIGTERM : SIGKILL);
    *kill_ns = gp_clock_mono_ns() + GRACE_S * GP_NS_PER_S;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Does what is due for the timeline; returns when it has to be called again. */
static uint64_t follow_timeline(struct gp_run *run)
{
    struct gp_timeline *timeline = run->plan->timeline;
    struct gp_snapshot *snapshot;
    if (!timeline)
        return UINT64_MAX;
    if (gp_clock_mono_ns() >= gp_timeline_due_ns(timeline)) {
        if (gp_sampler_tick(run->gpus.sampler, &snapshot, NULL) == 0) {
            gp_timeline_sample(timeline, snapshot, &run->watch);
            gp_timeline_note_tick(timeline, snapshot);
            gp_snapshot_free(snapshot);
        } else {
            gp_timeline_skip(timeline);
        }
    }
    return earliest(gp_timeline_collect(timeline), gp_timeline_due_ns(timeline));
}

static void supervise(struct gp_run *run)
{
    const uint64_t tick_ns = run->plan->sample_ns;
    uint64_t next_ns = gp_clock_mono_ns() + tick_ns;
    uint64_t lease_ns = next_ns;
    uint64_t timeout_ns =
        run->plan->timeout_ns ? run->watch.started_ns + run->plan->timeout_ns : UINT64_MAX;
    uint64_t kill_ns = UINT64_MAX;
    while (!run->child.has_ended) {
        const uint64_t timeline_ns = follow_timeline(run);
        gp_child_wait(&run->child,
                      earliest(earliest(next_ns, timeline_ns), earliest(timeout_ns, kill_ns)));
        end(run, take_news(run), &kill_ns);
        uint64_t now_ns = gp_clock_mono_ns();
        if (run->child.has_ended)
            break;
        if (now_ns >= kill_ns)
            end(run, GP_WATCH_KILL, &kill_ns);
        if (now_ns >= timeout_ns) {
            if (!run->plan->judge)
                gp_watch_warn(&run->watch,
                              "the time limit is reached: the command is asked to stop, and "
                              "killed if it has not in %d s",
                              (int)GRACE_S);
            run->watch.ended_by = "timeout";
            timeout_ns = UINT64_MAX;
            end(run, GP_WATCH_STOP, &kill_ns);
        }
        if (now_ns < next_ns)
            continue;
        end(run, look(run, false), &kill_ns);
        if (now_ns >= lease_ns) {
            keep_reservation(run);
            lease_ns = now_ns + LEASE_S * GP_NS_PER_S;
        }
        next_ns = now_ns > next_ns + tick_ns ? now_ns + tick_ns : next_ns + tick_ns;
    }
    gp_child_end(&run->child);
    run->watch.usage = run->child.usage;
    run->watch.told = run->child.told;
    if (run->child.is_unguarded) {
        gp_watch_warn(&run->watch, "the job's guard (process %d) was killed, and the job with it",
                      (int)run->guard.pid);
        run->watch.ended_by = "guard";
    }
}

/* ---- after the job ---- */

/* Terminates the job's orphans, and returns how many there were. They are the guard's children. If
 * the guard was killed, they are this process's, next to those that it had before, and the kernel
 * has killed the job: the others need no grace either. */
static size_t end_orphans(struct gp_run *run, bool *ret_ended)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    struct gp_ending ending = {NULL, 0};
    if (!gp_guard_is_lost(&run->guard)) /* else its pid may be another process's */
        gp_ending_add_children(&ending, run->guard.pid, NULL);
    const bool is_lost = gp_guard_is_lost(&run->guard);
    const struct gp_ending_plan plan = {
        .signals = signals + is_lost,
        .signal_count = GP_ARRAY_LEN(signals) - is_lost,
        .grace_ns = GRACE_S * GP_NS_PER_S,
        .tree = true,
    };
    if (is_lost)
        gp_ending_add_children(&ending, getpid(), &run->others);
    const size_t count = ending.count;
    *ret_ended = count == 0 || gp_ending_run(&ending, &plan);
    gp_ending_fini(&ending);
    while (is_lost && waitpid(-1, NULL, WNOHANG) > 0) /* as the guard would */
        continue;
    return count;
}

/* Until none is left: a process may fork while its parent is terminated. */
static void clean(struct gp_run *run)
{
    bool ended;
    size_t total = 0;
    size_t count;
    do {
        count = end_orphans(run, &ended);
        total += count;
    } while (count > 0 && ended);
    if (total > 0)
        gp_watch_say(&run->watch, "%s %zu leftover process%s",
                     ended ? "terminated" : "could not terminate", total, total == 1 ? "" : "es");
}

static bool is_back(struct gp_run *run, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        const struct gp_watch_gpu *granted = gp_watch_find(&run->watch, device);
        double used;
        if (!granted)
            continue;
        for (size_t k = 0; k < device->process_count; k++) {
            const struct gp_process *p = &snapshot->processes[device->first_process + k];
            if (gp_pick_comes_from(snapshot, gp_process_value(p, GP_PID)->i, getpid()))
                return false;
        }
        if (!run->gpus.lease.is_shared && gp_device_number_now(device, GP_MEMORY_USED, &used) &&
            used > granted->before + (double)BACK_SLACK_MIB * 0x1p20)
            return false;
    }
    return true;
}

bool gp_run_await_memory(struct gp_run *run)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)BACK_TICK_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + BACK_S * GP_NS_PER_S;
    bool back = false;
    while (!back && gp_clock_mono_ns() < until_ns && !gp_child_is_interrupted()) {
        struct gp_snapshot *snapshot;
        if (gp_sampler_tick(run->gpus.sampler, &snapshot, NULL) < 0)
            return false;
        back = is_back(run, snapshot);
        gp_snapshot_free(snapshot);
        if (!back)
            (void)nanosleep(&pause, NULL);
    }
    if (!back && !gp_child_is_interrupted())
        gp_watch_warn(&run->watch,
                      "its GPU memory was not freed within %d s: gpulse ps --explain -i %s",
                      (int)BACK_S, run->gpus.ids);
    return back;
}

/* Costs one sample if accounts are kept, and nothing otherwise. */
static void take_accounts(struct gp_run *run)
{
    struct gp_snapshot *snapshot;
    if (!run->watch.is_accounted)
        return;
    gp_sampler_set_lists(run->gpus.sampler, 1U << gp_list_index(GP_SCOPE_APP));
    if (gp_sampler_tick(run->gpus.sampler, &snapshot, NULL) == 0) {
        gp_watch_take_accounts(&run->watch, snapshot);
        gp_snapshot_free(snapshot);
    }
    gp_sampler_set_lists(run->gpus.sampler, 0);
}

/* ---- the whole run ---- */

/* A command that was stopped has not succeeded, whatever its exit status. */
static int status_of(const struct gp_run *run)
{
    int status = gp_child_exit_status(&run->child);
    if (run->watch.ended_by && strcmp(run->watch.ended_by, "timeout") == 0)
        return STATUS_TIMEOUT;
    return (run->watch.ended_by || run->is_lost) && status == 0 ? 1 : status;
}

static int start(struct gp_run *run, char *const *argv, int *ret_status, struct gp_err *err)
{
    char mask[sizeof(run->gpus.mask) + 32];
    char order[] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
    (void)snprintf(mask, sizeof(mask), "CUDA_VISIBLE_DEVICES=%s", run->gpus.mask);
    char folder[GP_PATH_SIZE];
    char *variables[2 + GP_RUN_VARIABLES + 2 + 1] = {order, mask, NULL};
    size_t count = 2;
    for (size_t i = 0; run->plan->variables && i < GP_RUN_VARIABLES && run->plan->variables[i]; i++)
        variables[count++] = run->plan->variables[i];
    if (run->plan->marks) {
        (void)snprintf(folder, sizeof(folder), "%s=%s", GP_MARKS_VARIABLE,
                       gp_marks_reader_folder(run->plan->marks));
        variables[count++] = folder;
    }
    if (run->plan->timeline)
        variables[count] = gp_timeline_variable(run->plan->timeline);
    int r = gp_child_start(&run->child, argv, variables, ret_status, err);
    if (r < 0 && *ret_status)
        gp_watch_tell_error(&run->watch, err);
    return r;
}

static void finish_output(struct gp_run *run, struct gp_output *output)
{
    int lost = gp_output_finish(output, gp_child_is_interrupted);
    run->is_lost = lost;
    if (lost)
        gp_watch_warn(&run->watch, "output of the command is lost: %s", strerror(lost));
    (void)take_news(run);
    run->pace = gp_output_pace(output);
    run->child.output = NULL;
    gp_output_free(output);
}

/* Takes what the job reported itself: its steps, unless lines of its output count. */
static void take_reports(struct gp_run *run)
{
    gp_marks_reader_finish(run->plan->marks, NULL);
    const struct gp_pace pace = gp_marks_reader_take_pace(run->plan->marks);
    const size_t failed = gp_marks_reader_take_failed(run->plan->marks);
    if (failed > 0)
        gp_watch_warn(&run->watch, "%zu process%s could not report marks or steps: no room in %s",
                      failed, failed == 1 ? "" : "es", gp_marks_reader_folder(run->plan->marks));
    if (!run->plan->output.pace.step)
        run->pace = pace;
}

int gp_run_once(struct gp_run *run, char *const *argv, struct gp_err *err)
{
    const struct gp_run_plan *plan = run->plan;
    int status = 0;
    struct gp_output *output = NULL;
    int r = plan->no_watch || plan->no_clean ? 0 : gp_output_open(&output, &plan->output, err);
    if (r < 0)
        return r;
    run->child = (struct gp_child){
        .guard = &run->guard, .pid = -1, .output = output, .is_detached = plan->is_detached};
    gp_watch_begin(&run->watch);
    if (plan->timeline)
        gp_timeline_begin(plan->timeline, run->guard.pid, run->watch.started_ns);
    gp_slow_begin(&run->slow, run->watch.started_ns);
    r = start(run, argv, &status, err);
    if (r == 0) {
        if (output)
            gp_output_release(output);
        gp_accounted_add(&run->watch.pids, (uint32_t)run->child.pid);
        supervise(run);
    } else {
        run->child.pid = -1;
    }
    if (run->child.is_unguarded || (r == 0 && !plan->no_clean))
        clean(run);
    if (r == 0)
        take_accounts(run);
    if (output)
        finish_output(run, output);
    if (r == 0)
        status = status_of(run);
    if (r == 0 && plan->timeline)
        gp_timeline_end(plan->timeline, status);
    if (plan->marks)
        take_reports(run);
    return r < 0 && !status ? r : status;
}

static bool is_cancelled(void *context)
{
    (void)context;
    return gp_child_is_interrupted();
}

static void on_wait(void *context, const char *why)
{
    const struct gp_run *run = context;
    gp_watch_say(&run->watch, "waiting: %s", why);
}

static void on_grant(void *context, const struct gp_device *device)
{
    struct gp_run *run = context;
    gp_watch_grant(&run->watch, device);
}

struct gp_want gp_run_want(const struct gp_run_plan *plan)
{
    /* A process has an account only if the mode is on when it starts. */
    static const enum gp_metric watched[] = {GP_POWER_DRAW, GP_ENERGY, GP_PROCESS_CPU,
                                             GP_PROCESS_RSS, GP_ACCOUNTING_MODE};
    struct gp_want want = {.host_only = false};
    for (size_t i = 0; i < GP_ARRAY_LEN(watched); i++)
        gp_metric_set_add(&want.metrics, watched[i]);
    if (plan->timeline)
        gp_timeline_add_want(&want);
    if (plan->observed)
        gp_slow_add_want(&want);
    return want;
}

void gp_run_init(struct gp_run *run)
{
    gp_reserve_init(&run->gpus);
    run->guard = (struct gp_guard){-1, -1};
    run->child.pid = -1;
}

int gp_run_begin(struct gp_run *run, const struct gp_run_plan *plan, struct gp_err *err)
{
    run->plan = plan;
    run->watch.quiet = plan->quiet;
    run->watch.mask = run->gpus.mask;
    run->watch.place = run->gpus.place;
    run->watch.limits = plan->limits;
    run->slow.observed = plan->observed;
    run->watch.is_shared = plan->gpus.request.is_shared;
    /* a job must not terminate because nobody reads its messages, or because a file is too large */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    if (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0)
        gp_ending_add_children(&run->others, getpid(), NULL);
    return gp_guard_start(&run->guard, err);
}

int gp_run_reserve(struct gp_run *run, struct gp_sampler *sampler, char *const *argv, int argc,
                   struct gp_err *err)
{
    run->reserve_plan = run->plan->gpus;
    run->reserve_plan.on_wait = on_wait;
    run->reserve_plan.on_grant = on_grant;
    run->reserve_plan.is_cancelled = is_cancelled;
    run->reserve_plan.context = run;
    return gp_reserve_open(&run->gpus, &run->reserve_plan, sampler, argv, argc, err);
}

void gp_run_close(struct gp_run *run)
{
    gp_reserve_close(&run->gpus);
    gp_slow_fini(&run->slow);
    gp_watch_fini(&run->watch);
    gp_guard_dismiss(&run->guard, run->plan && run->plan->no_clean);
    gp_ending_fini(&run->others);
}
