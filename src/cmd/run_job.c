#include "cmd/run_job.h"

#include "cmd/app.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/output.h"
#include "model/snapshot.h"
#include "proc/files.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SETTLE_MS = 1500,  /* keep retrying: requests made at the same moment get their GPUs within this
                          time */
    PASSING_MS = 1000, /* an earlier request younger than this may be about to get its GPUs */
    NAP_MS = 2,
    LOOK_S = 2,      /* how often a waiting request looks for processes without a lease */
    LEASE_S = 1,     /* how often the lease file is checked */
    MOMENT_MS = 200, /* a sample this young is recent enough */
    GRACE_S = 10,    /* time for leftover processes to exit */
    BACK_S = 30,     /* and for the driver to free their memory */
    BACK_TICK_MS = 200,
    BACK_SLACK_MIB = 64,
    STATUS_TIMEOUT = 124, /* as in timeout(1) */
};

/* Metrics that are sampled besides those for choosing GPUs. */
static const enum gp_metric watched[] = {GP_POWER_DRAW, GP_ENERGY, GP_PROCESS_CPU, GP_PROCESS_RSS};

/* ---- the lease ---- */

static void describe(struct gp_run *run, char *const *argv, int argc)
{
    size_t n = 0;
    for (int i = 0; i < argc && n < sizeof(run->lease.command); i++)
        n += (size_t)snprintf(run->lease.command + n, sizeof(run->lease.command) - n, "%s%s",
                              i > 0 ? " " : "", argv[i]);
    (void)snprintf(run->lease.name, sizeof(run->lease.name), "%s",
                   run->plan->name ? run->plan->name : "");
    run->lease.id = gp_io_random();
    run->lease.pid = (uint32_t)getpid();
    run->lease.ns = gp_proc_own_ns();
    run->lease.is_shared = run->request.is_shared;
    run->lease.bytes = run->request.bytes;
    run->lease.limit_ns = run->request.limit_ns = run->plan->limit_ns;
}

/* The GPUs that it has, or that it could get one day. */
static void list_gpus(struct gp_lease *lease, const struct gp_pick *pick)
{
    lease->gpu_count = 0;
    for (size_t i = 0; i < pick->count && lease->gpu_count < GP_LEASE_GPUS; i++)
        if (pick->state == GP_PICK_FITS ? pick->units[i].is_chosen
                                        : pick->units[i].state != GP_PICK_NEVER)
            (void)snprintf(lease->gpus[lease->gpu_count++], GP_LEASE_UUID_SIZE, "%s",
                           gp_device_text(pick->units[i].device, GP_UUID, ""));
}

static void note_granted(struct gp_run *run, const struct gp_snapshot *snapshot,
                         const struct gp_pick *pick)
{
    struct gp_strbuf mask = GP_STRBUF_INIT(sizeof(run->mask) - 1);
    gp_job_add_mask(&mask, snapshot, pick, run->plan->gpus.uuid);
    (void)snprintf(run->mask, sizeof(run->mask), "%s", mask.buf);
    struct gp_strbuf ids = GP_STRBUF_INIT(sizeof(run->ids) - 1);
    struct gp_strbuf place = GP_STRBUF_INIT(sizeof(run->place) - 1);
    gp_job_add_ids(&ids, pick);
    gp_job_add_place(&place, pick, run->mask);
    (void)snprintf(run->ids, sizeof(run->ids), "%s", ids.buf);
    (void)snprintf(run->place, sizeof(run->place), "%s", place.buf);
    gp_strbuf_fini(&ids);
    gp_strbuf_fini(&place);
    gp_strbuf_fini(&mask);
    for (size_t i = 0; i < pick->chosen_count; i++)
        gp_watch_grant(&run->watch, pick->units[pick->chosen[i]].device);
}

static int pick(struct gp_run *run, const struct gp_snapshot *snapshot, struct gp_leases *leases,
                uint64_t ticket, struct gp_pick *ret, struct gp_err *err)
{
    run->request.ticket = ticket;
    return gp_job_decide(snapshot, leases, &run->request, run->plan->gpus.ignore_mask, ret, err);
}

/* Who waits also counts reservations whose files were removed since it has seen them. */
static int read_leases(struct gp_run *run, struct gp_leases *ret, struct gp_err *err)
{
    return gp_leases_read_kept(ret, run->plan->wait_ns > 0 ? &run->kept : NULL, err);
}

static int write_lease(struct gp_run *run, enum gp_lease_state state, const struct gp_pick *pick,
                       struct gp_err *err)
{
    list_gpus(&run->lease, pick);
    run->lease.state = state;
    run->lease.wanted = run->request.count;
    run->lease.since_wall_ns = gp_clock_wall_ns();
    return gp_lease_write(state == GP_LEASE_WAITING ? &run->line : &run->held, &run->lease, err);
}

/* Claims the chosen GPUs, then reads all leases again. If another request has claimed one of them
 * as well, it steps back; of two, at least the later one does. */
static int claim(struct gp_run *run, const struct gp_snapshot *snapshot,
                 const struct gp_pick *chosen, bool *ret_won, struct gp_err *err)
{
    struct gp_leases leases;
    struct gp_pick again;
    *ret_won = false;
    int r = write_lease(run, GP_LEASE_CLAIMED, chosen, err);
    if (r == 0)
        r = read_leases(run, &leases, err);
    if (r < 0)
        return r;
    gp_leases_leave_out(&leases, run->lease.id);
    r = pick(run, snapshot, &leases, 0, &again, err);
    gp_leases_fini(&leases);
    if (r < 0)
        return r;
    *ret_won = true;
    for (size_t i = 0; i < chosen->count; i++)
        if (chosen->units[i].is_chosen && again.units[i].state != GP_PICK_FITS)
            *ret_won = false;
    gp_pick_fini(&again);
    if (!*ret_won) {
        gp_lease_drop(&run->held);
        return 0;
    }
    r = gp_lease_confirm(&run->held, err);
    run->lease.state = GP_LEASE_HELD;
    gp_lease_drop(&run->line);
    note_granted(run, snapshot, chosen);
    return r;
}

/* Whether an earlier request has just arrived, and may get its GPUs in a moment. */
static bool is_one_passing(const struct gp_leases *leases, uint64_t ticket)
{
    uint64_t now_ns = gp_clock_wall_ns();
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].state == GP_LEASE_WAITING && leases->items[i].ticket < ticket &&
            leases->items[i].ticket + PASSING_MS * GP_NS_PER_MS > now_ns)
            return true;
    return false;
}

/* Reads the leases once and acts on them: the request may enter the waiting line, or get its GPUs.
 * *ret_again: retrying soon may have another result. */
static int step(struct gp_run *run, const struct gp_snapshot *snapshot, bool waits,
                struct gp_pick *ret, bool *ret_again, struct gp_err *err)
{
    struct gp_leases leases;
    bool won = true;
    int r = read_leases(run, &leases, err);
    if (r < 0)
        return r;
    const struct gp_lease *own = gp_leases_find(&leases, run->lease.id, GP_LEASE_WAITING);
    const bool stands = own;
    const uint64_t ticket = own ? own->ticket : UINT64_MAX;
    *ret_again = is_one_passing(&leases, ticket);
    r = pick(run, snapshot, &leases, ticket, ret, err);
    gp_leases_fini(&leases);
    if (r < 0)
        return r;
    if (!stands && (ret->state == GP_PICK_FITS || (ret->state == GP_PICK_LATER && waits))) {
        r = write_lease(run, GP_LEASE_WAITING, ret, err);
        *ret_again = true;
        won = false;
    } else if (ret->state == GP_PICK_FITS) {
        r = claim(run, snapshot, ret, &won, err);
        *ret_again = !won;
    }
    if (ret->state == GP_PICK_FITS && !won) {
        ret->state = GP_PICK_LATER;
        (void)snprintf(ret->why, sizeof(ret->why), "other jobs keep claiming the same GPUs");
    }
    if (r < 0)
        gp_pick_fini(ret);
    return r;
}

static int decide(struct gp_run *run, const struct gp_snapshot *snapshot, bool waits,
                  enum gp_pick_state *ret_state, char why[GP_PICK_WHY_SIZE], struct gp_err *err)
{
    const struct timespec nap = gp_clock_timespec(NAP_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + SETTLE_MS * GP_NS_PER_MS;
    for (bool again = true; again;) {
        struct gp_pick pick;
        bool was_standing = run->line.fd >= 0;
        int r = step(run, snapshot, waits, &pick, &again, err);
        if (r < 0)
            return r;
        *ret_state = pick.state;
        (void)snprintf(why, GP_PICK_WHY_SIZE, "%s", pick.why);
        bool has_entered = !was_standing && run->line.fd >= 0; /* and has not tried to claim yet */
        again =
            again && pick.state == GP_PICK_LATER && (has_entered || gp_clock_mono_ns() < until_ns);
        gp_pick_fini(&pick);
        if (again && was_standing)
            (void)nanosleep(&nap, NULL);
    }
    return 0;
}

/* The leases show what others reserved while the GPUs were sampled. */
static int look_and_decide(struct gp_run *run, bool waits, enum gp_pick_state *ret_state,
                           char why[GP_PICK_WHY_SIZE], struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(run->sampler, &snapshot, err);
    if (r < 0)
        return r;
    r = decide(run, snapshot, waits, ret_state, why, err);
    gp_snapshot_free(snapshot);
    return r;
}

/* Most waiting requests wait for other waiting requests: they need not query the driver. */
static bool is_behind(const struct gp_run *run)
{
    struct gp_leases leases;
    if (gp_leases_read(&leases, NULL) < 0)
        return false;
    const struct gp_lease *own = gp_leases_find(&leases, run->lease.id, GP_LEASE_WAITING);
    bool behind = own && gp_lease_is_behind(&leases, own, gp_clock_wall_ns());
    gp_leases_fini(&leases);
    return behind;
}

/* Waits until a lease changes, or some seconds: processes without a lease are visible only through
 * the driver. A minimum delay keeps frequent file changes from using the CPU. */
static void await_news(int watch)
{
    const struct timespec nap = gp_clock_timespec(10 * NAP_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + LOOK_S * GP_NS_PER_S;
    uint64_t now_ns;
    bool changed = false;
    (void)nanosleep(&nap, NULL);
    while (!changed && !gp_child_is_interrupted() && (now_ns = gp_clock_mono_ns()) < until_ns) {
        struct pollfd fd = {watch, POLLIN, 0};
        if (poll(&fd, 1, (int)((until_ns - now_ns) / GP_NS_PER_MS) + 1) > 0)
            changed = gp_statedirs_changed(watch);
    }
}

/* "; third in line (gpulse queue shows it)" */
static void put_place(const struct gp_run *run, char ret[80])
{
    static const char *const words[] = {"", "first", "second", "third"};
    struct gp_leases leases;
    char word[32];
    ret[0] = '\0';
    if (gp_leases_read(&leases, NULL) < 0)
        return;
    const struct gp_lease *own = gp_leases_find(&leases, run->lease.id, GP_LEASE_WAITING);
    const size_t position = own ? gp_lease_position(&leases, own) : 0;
    if (position < GP_ARRAY_LEN(words))
        (void)snprintf(word, sizeof(word), "%s", words[position]);
    else
        (void)snprintf(word, sizeof(word), "number %zu", position);
    if (position > 0)
        (void)snprintf(ret, 80, "; %s in line (gpulse queue shows it)", word);
    gp_leases_fini(&leases);
}

static int acquire(struct gp_run *run, struct gp_err *err)
{
    const struct gp_run_plan *o = run->plan;
    uint64_t until_ns = gp_clock_mono_ns() + o->wait_ns;
    enum gp_pick_state state = GP_PICK_LATER;
    char why[GP_PICK_WHY_SIZE] = "";
    char said[GP_PICK_WHY_SIZE] = "";
    int watch = -1; /* closed only at the end: close() takes the kernel 10 ms */
    int r = look_and_decide(run, o->wait_ns > 0, &state, why, err);
    while (r == 0 && state == GP_PICK_LATER && o->wait_ns && gp_clock_mono_ns() < until_ns) {
        if (strcmp(why, said) != 0) {
            char place[80];
            put_place(run, place);
            gp_watch_say(&run->watch, "waiting: %s%s", why, place);
        }
        (void)snprintf(said, sizeof(said), "%s", why);
        bool is_watched = watch >= 0;
        gp_statedirs_watch(NULL, &watch);
        if (is_watched || watch < 0) /* otherwise it may have changed before it was watched */
            await_news(watch);
        if (!is_behind(run))
            r = look_and_decide(run, true, &state, why, err);
    }
    if (watch >= 0)
        (void)close(watch);
    gp_leases_kept_fini(&run->kept);
    if (r < 0 || state == GP_PICK_FITS)
        return r;
    gp_lease_drop(&run->line);
    return gp_job_refuse(state, why, o->wait_ns > 0, err);
}

/* ---- while it runs ---- */

static enum gp_watch_order larger(enum gp_watch_order a, enum gp_watch_order b)
{
    return a > b ? a : b;
}

/* `is_moment`: a failure is being printed. */
static enum gp_watch_order look(struct gp_run *run, bool is_moment)
{
    struct gp_snapshot *snapshot;
    enum gp_watch_order order = GP_WATCH_GO_ON;
    run->looked_ns = gp_clock_mono_ns();
    if (gp_sampler_tick(run->sampler, &snapshot, NULL) < 0)
        return order;
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
    for (size_t i = 0; i < news.count; i++)
        gp_watch_add_incident(&run->watch, &news.found[i]);
    return order;
}

/* Some systems remove files below /dev/shm at logout. Who comes before the reservation is written
 * again can be granted the same GPUs. */
static void keep_lease(struct gp_run *run)
{
    struct gp_err err;
    struct gp_leases leases;
    char user[sizeof(run->lease.user)];
    if (!gp_lease_was_removed(&run->held))
        return;
    const bool was_lost = run->is_lease_lost;
    run->is_lease_lost = gp_lease_write(&run->held, &run->lease, &err) < 0;
    if (run->is_lease_lost && !was_lost)
        gp_watch_warn(&run->watch, "the reservation of %s was removed, and cannot be restored: %s",
                      run->place, err.text);
    if (run->is_lease_lost || gp_leases_read(&leases, NULL) < 0)
        return;
    const struct gp_lease *rival = gp_leases_rival(&leases, &run->lease);
    if (rival) {
        (void)gp_lease_user(rival, user, sizeof(user));
        gp_watch_warn(
            &run->watch,
            "the reservation of %s was removed, and user %s has reserved the same GPU since",
            run->place, user);
    }
    gp_leases_fini(&leases);
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

static void supervise(struct gp_run *run)
{
    const uint64_t tick_ns = run->plan->sample_ns;
    uint64_t next_ns = gp_clock_mono_ns() + tick_ns;
    uint64_t lease_ns = next_ns;
    uint64_t timeout_ns =
        run->plan->timeout_ns ? run->watch.started_ns + run->plan->timeout_ns : UINT64_MAX;
    uint64_t kill_ns = UINT64_MAX;
    while (!run->child.has_ended) {
        gp_child_wait(&run->child, earliest(next_ns, earliest(timeout_ns, kill_ns)));
        end(run, take_news(run), &kill_ns);
        uint64_t now_ns = gp_clock_mono_ns();
        if (run->child.has_ended)
            break;
        if (now_ns >= kill_ns)
            end(run, GP_WATCH_KILL, &kill_ns);
        if (now_ns >= timeout_ns) {
            if (!run->plan->judge)
                gp_watch_warn(&run->watch,
                              "time limit reached; stopping the command, which is killed after "
                              "%d s",
                              (int)GRACE_S);
            run->watch.ended_by = "timeout";
            timeout_ns = UINT64_MAX;
            end(run, GP_WATCH_STOP, &kill_ns);
        }
        if (now_ns < next_ns)
            continue;
        end(run, look(run, false), &kill_ns);
        if (now_ns >= lease_ns) {
            keep_lease(run);
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
        if (!run->lease.is_shared && gp_device_number_now(device, GP_MEMORY_USED, &used) &&
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
        if (gp_sampler_tick(run->sampler, &snapshot, NULL) < 0)
            return false;
        back = is_back(run, snapshot);
        gp_snapshot_free(snapshot);
        if (!back)
            (void)nanosleep(&pause, NULL);
    }
    if (!back && !gp_child_is_interrupted())
        gp_watch_warn(&run->watch,
                      "its GPU memory was not freed within %d s: gpulse ps --explain -i %s",
                      (int)BACK_S, run->ids);
    return back;
}

/* Costs one sample if accounts are kept, and nothing otherwise. */
static void take_accounts(struct gp_run *run)
{
    struct gp_snapshot *snapshot;
    if (!run->watch.is_accounted)
        return;
    gp_sampler_set_lists(run->sampler, 1U << gp_list_index(GP_SCOPE_APP));
    if (gp_sampler_tick(run->sampler, &snapshot, NULL) == 0) {
        gp_watch_take_accounts(&run->watch, snapshot);
        gp_snapshot_free(snapshot);
    }
    gp_sampler_set_lists(run->sampler, 0);
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
    char mask[sizeof(run->mask) + 32];
    char order[] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
    (void)snprintf(mask, sizeof(mask), "CUDA_VISIBLE_DEVICES=%s", run->mask);
    char *variables[2 + GP_RUN_VARIABLES + 1] = {order, mask, NULL};
    for (size_t i = 0; run->plan->variables && i < GP_RUN_VARIABLES && run->plan->variables[i]; i++)
        variables[2 + i] = run->plan->variables[i];
    int r = gp_child_start(&run->child, argv, variables, ret_status, err);
    if (r < 0 && *ret_status)
        gp_io_print_error("gpulse", err);
    return r;
}

static void finish_output(struct gp_run *run, struct gp_output *output)
{
    int lost = gp_output_finish(output, gp_child_is_interrupted);
    run->is_lost = lost;
    if (lost)
        gp_watch_warn(&run->watch, "output of the command is lost: %s", strerror(lost));
    (void)take_news(run);
    run->child.output = NULL;
    gp_output_free(output);
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
    return r < 0 && !status ? r : status;
}

static int open_sampler(struct gp_run *run, struct gp_err *err)
{
    struct gp_want want = {.host_only = false};
    for (size_t i = 0; i < GP_ARRAY_LEN(watched); i++)
        gp_metric_set_add(&want.metrics, watched[i]);
    /* Turned on before GPUs are chosen: a process has an account only if the mode is on when it
     * starts. */
    gp_metric_set_add(&want.more, GP_ACCOUNTING_MODE);
    return gp_job_open(&run->request, &want, &run->sampler, err);
}

int gp_run_open(struct gp_run *run, const struct gp_run_plan *plan, char *const *argv, int argc,
                struct gp_err *err)
{
    run->plan = plan;
    run->watch.quiet = plan->quiet;
    run->watch.mask = run->mask;
    run->watch.place = run->place;
    run->watch.limits = plan->limits;
    (void)signal(SIGPIPE, SIG_IGN); /* a job must not terminate because nobody reads its messages */
    (void)signal(SIGCHLD, SIG_DFL);
    bool has_children = waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0;
    int r = gp_job_request(&plan->gpus, &run->request, err);
    if (has_children)
        gp_ending_add_children(&run->others, getpid(), NULL);
    if (r == 0)
        r = gp_guard_start(&run->guard, err);
    if (r == 0)
        r = open_sampler(run, err);
    if (r < 0)
        return r;
    run->watch.is_shared = run->request.is_shared;
    describe(run, argv, argc);
    gp_sampler_set_more(run->sampler, true);
    r = acquire(run, err);
    gp_sampler_set_more(run->sampler, false);
    return r;
}

void gp_run_close(struct gp_run *run)
{
    gp_lease_drop(&run->line);
    gp_lease_drop(&run->held);
    gp_watch_fini(&run->watch);
    if (run->sampler)
        gp_app_close(run->sampler);
    gp_guard_dismiss(&run->guard, run->plan && run->plan->no_clean);
    gp_ending_fini(&run->others);
}
