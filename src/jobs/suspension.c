#include "jobs/suspension.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/checkpoint.h"
#include "jobs/pick.h"
#include "jobs/suspend_check.h"
#include "model/snapshot.h"
#include "out/procs.h"
#include "proc/lease.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LOCK_S = 10,
    MOVE_S = 600,
    SEEN_S = 10, /* how long the driver may take to list them, or to stop listing them */
    TICK_MS = 200,
};

struct gp_want gp_suspension_want(void)
{
    static const enum gp_metric metrics[] = {
        GP_UUID,
        GP_MEMORY_USED,
        GP_MEMORY_FREE,
        GP_MEMORY_UNATTRIBUTED,
        GP_PID,
        GP_PROCESS_USER,
        GP_MEMORY_TOTAL,
        GP_PROCESS_TYPE,
        GP_PROCESS_MEMORY,
        GP_PROCESS_START,
        GP_PROCESS_ORIGIN,
        GP_PROCESS_CONTAINER,
        GP_PROCESS_CONTAINER_NAME,
        GP_PROCESS_COMMAND,
        GP_PROCESS_PPID,
        GP_PROCESS_SUSPENDED,
    };
    struct gp_want want = {
        .mig = true, .processes = true, .process_names = true, .ancestors = true};
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        gp_metric_set_add(&want.metrics, metrics[i]);
    return want;
}

static void tell(const struct gp_suspension *move, const char *text)
{
    if (move->tell)
        move->tell(text);
}

/* A move must be completed: signals that would terminate this process are delayed until it is. */
static void hold_signals(sigset_t *before)
{
    sigset_t held;
    (void)sigemptyset(&held);
    (void)sigaddset(&held, SIGHUP);
    (void)sigaddset(&held, SIGINT);
    (void)sigaddset(&held, SIGQUIT);
    (void)sigaddset(&held, SIGTERM);
    (void)sigaddset(&held, SIGTSTP);
    (void)pthread_sigmask(SIG_BLOCK, &held, before);
}

static void release_signals(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Samples until the driver's process list agrees. */
static int await_seen(const struct gp_suspension *move, const struct gp_suspended_list *list,
                      bool suspended, struct gp_suspension_result *ret, struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)TICK_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + SEEN_S * GP_NS_PER_S;
    int r = 0;
    do {
        gp_snapshot_free(ret->after);
        ret->after = NULL;
        r = gp_sampler_tick(move->sampler, &ret->after, err);
        ret->is_seen = r == 0 && gp_suspend_is_seen(ret->after, list, suspended);
        if (r == 0 && !ret->is_seen)
            (void)nanosleep(&pause, NULL);
    } while (r == 0 && !ret->is_seen && gp_clock_mono_ns() < until_ns);
    return r;
}

static int finish(const struct gp_suspension *move, const struct gp_suspended_list *list,
                  bool suspended, struct gp_suspension_result *ret, struct gp_err *err)
{
    int r = await_seen(move, list, suspended, ret, err);
    if (r == 0 && !ret->is_seen)
        r = gp_err_set(err, GP_EFAIL,
                       "done, but the driver's process list is not up to date yet: see gpulse ps");
    return r;
}

void gp_suspension_result_fini(struct gp_suspension_result *result)
{
    gp_snapshot_free(result->after);
}

/* ---- suspending ---- */

/* Samples the GPUs while the processes are stopped. */
static int measure(void *ctx, struct gp_suspended *list, size_t count, struct gp_err *err)
{
    const struct gp_suspension *move = ctx;
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(move->sampler, &snapshot, err);
    if (r < 0)
        return r;
    r = gp_suspend_measure(snapshot, list, count, err);
    gp_snapshot_free(snapshot);
    return r < 0 ? r : gp_suspend_check_room(move->root, list, count, err);
}

static bool has_room(void *ctx, const struct gp_suspended *s)
{
    const struct gp_suspension *move = ctx;
    struct gp_suspended_list one = {NULL, 1};
    struct gp_suspended copy = *s;
    struct gp_snapshot *snapshot;
    if (gp_sampler_tick(move->sampler, &snapshot, NULL) < 0)
        return false;
    one.items = &copy;
    bool room = gp_resume_check_gpus(&one, snapshot, NULL) == 0;
    gp_snapshot_free(snapshot);
    return room;
}

int gp_suspension_suspend(const struct gp_suspension *move, struct gp_suspended_list *list,
                          uint64_t grace_ns, uint64_t seen_wall_ns,
                          struct gp_suspension_result *ret, struct gp_err *err)
{
    struct gp_suspension eyes = *move;
    const struct gp_suspend_plan plan = {
        .root = move->root,
        .lock_timeout_ns = grace_ns ? grace_ns : LOCK_S * GP_NS_PER_S,
        .eyes = {&eyes, measure, has_room},
    };
    sigset_t before;
    int r = gp_suspend_check_again(list, seen_wall_ns, err);
    if (r < 0)
        return r;
    hold_signals(&before);
    r = gp_suspend_all(&plan, list->items, list->count, err);
    release_signals(&before);
    return r < 0 ? r : finish(move, list, true, ret, err);
}

/* ---- resuming ---- */

int gp_suspension_find(const struct gp_suspension *move, struct gp_procs *procs,
                       struct gp_suspended_list *ret, struct gp_err *err)
{
    struct gp_suspended_list all = {NULL, 0};
    size_t kept = 0;
    int r = gp_suspended_read(move->root, &all, err);
    if (r == 0 && !(ret->items = calloc(procs->count + 1, sizeof(*ret->items))))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < procs->count; i++) {
        const struct gp_suspended *note = gp_suspended_find(&all, procs->rows[i].pid);
        if (!note)
            continue;
        ret->items[ret->count++] = *note;
        procs->rows[kept++] = procs->rows[i];
    }
    procs->count = kept;
    gp_suspended_fini(&all);
    return r;
}

/* Says that the error remained until the end of the wait. */
static int give_up(struct gp_err *err)
{
    char why[sizeof(err->text)];
    (void)snprintf(why, sizeof(why), "%s", err->text);
    return gp_err_set(err, GP_EEXPIRED, "gave up waiting: %s", why);
}

/* Samples until there is room, and checks that the processes still exist and respond. */
static int await_room(const struct gp_suspension *move, struct gp_suspended_list *list,
                      const struct gp_snapshot *first, uint64_t wait_ns, struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)TICK_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + wait_ns;
    int r = gp_suspend_check_again(list, first->wall_ns, err);
    if (r < 0)
        return r;
    r = gp_resume_check_gpus(list, first, err);
    if (r < 0 && wait_ns)
        tell(move, "waiting for free GPU memory");
    while (r == GP_EFAIL && gp_clock_mono_ns() < until_ns) {
        struct gp_snapshot *snapshot;
        (void)nanosleep(&pause, NULL);
        int looked = gp_suspend_check_again(list, first->wall_ns, err);
        if (looked == 0)
            looked = gp_sampler_tick(move->sampler, &snapshot, err);
        if (looked < 0)
            return looked;
        r = gp_resume_check_gpus(list, snapshot, err);
        gp_snapshot_free(snapshot);
    }
    return r == GP_EFAIL && wait_ns ? give_up(err) : r;
}

/* If one note of several is implausible, the other processes are still resumed. Returns how many
 * remain. */
static size_t leave_out_misfits(const struct gp_suspension *move, struct gp_suspended_list *list,
                                const struct gp_snapshot *snapshot)
{
    size_t kept = 0;
    size_t count = list->count;
    for (size_t i = 0; count > 1 && i < count; i++) {
        struct gp_err why = {0};
        char note[sizeof(why.text) + 64];
        if (gp_resume_check_note(&list->items[i], snapshot, &why) == 0) {
            list->items[kept++] = list->items[i];
            continue;
        }
        (void)snprintf(note, sizeof(note), "process %u skipped: %s", list->items[i].pid, why.text);
        tell(move, note);
    }
    list->count = count > 1 ? kept : count;
    return count - list->count;
}

int gp_suspension_resume(const struct gp_suspension *move, struct gp_suspended_list *list,
                         const struct gp_snapshot *snapshot, uint64_t wait_ns,
                         struct gp_suspension_result *ret, struct gp_err *err)
{
    struct gp_suspension eyes = *move;
    const struct gp_suspend_plan plan = {
        .root = move->root,
        .eyes = {.ctx = &eyes, .has_room = has_room},
    };
    sigset_t before;
    size_t left_out = leave_out_misfits(move, list, snapshot);
    int r = list->count > 0 ? await_room(move, list, snapshot, wait_ns, err) : 0;
    if (r < 0)
        return r;
    if (list->count == 0)
        return gp_err_set(err, GP_EFAIL, "no process left to resume");
    hold_signals(&before);
    r = gp_resume_all(&plan, list->items, list->count, err);
    release_signals(&before);
    if (r == 0)
        r = finish(move, list, false, ret, err);
    if (r == 0 && left_out > 0)
        r = gp_err_set(err, GP_EFAIL, "%zu of %zu were skipped", left_out, left_out + list->count);
    return r;
}

/* A process without a note. */
static int resume_unnoted(int64_t pid, bool force, struct gp_err *err)
{
    const uint64_t timeout_ns = (uint64_t)MOVE_S * GP_NS_PER_S;
    struct gp_err why = {0};
    enum gp_cuda_state state;
    sigset_t before;
    int r = gp_resume_check_unnoted(pid, force, timeout_ns, &state, &why);
    if (r == 0) {
        hold_signals(&before);
        if (state == GP_CUDA_CHECKPOINTED)
            r = gp_checkpoint_do(GP_CUDA_RESTORE, pid, timeout_ns, &why);
        if (r == 0)
            r = gp_checkpoint_do(GP_CUDA_UNLOCK, pid, timeout_ns, &why);
        release_signals(&before);
    }
    return r < 0 ? gp_err_set(err, r, "process %lld: %s", (long long)pid, why.text) : 0;
}

int gp_suspension_resume_unnoted(const struct gp_suspension *move, int64_t *pids, size_t *count,
                                 bool force, struct gp_err *err)
{
    struct gp_suspended_list all;
    size_t kept = 0;
    int r = gp_suspended_read(move->root, &all, err);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < *count; i++) {
        if (gp_suspended_find(&all, pids[i])) {
            pids[kept++] = pids[i];
            continue;
        }
        char text[64];
        (void)snprintf(text, sizeof(text), "process %lld runs again", (long long)pids[i]);
        r = resume_unnoted(pids[i], force, err);
        if (r == 0)
            tell(move, text);
    }
    *count = kept;
    gp_suspended_fini(&all);
    return r;
}

/* ---- results ---- */

/* Whether this reservation stays, although processes of the list belong to its job. */
static bool keeps(const struct gp_lease *lease, const struct gp_snapshot *snapshot,
                  const struct gp_suspended_list *list)
{
    bool any = false;
    for (size_t i = 0; i < list->count; i++)
        any = any || gp_pick_comes_from(snapshot, list->items[i].pid, lease->pid);
    return any && lease->state == GP_LEASE_HELD && gp_pick_is_suspended(snapshot, lease);
}

static bool is_concerned(const struct gp_device *device, const struct gp_suspended_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t g = 0; g < list->items[i].gpu_count; g++)
            if (strcmp(list->items[i].gpus[g].uuid, gp_device_text(device, GP_UUID, "")) == 0)
                return !device->is_mig;
    return false;
}

static void add_gpus(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                     const struct gp_suspended_list *list)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        double used;
        double free_bytes;
        const struct gp_device *device = &snapshot->devices[i];
        if (is_concerned(device, list) && gp_device_number_now(device, GP_MEMORY_USED, &used) &&
            gp_device_number_now(device, GP_MEMORY_FREE, &free_bytes))
            gp_strbuf_addf(sb, "GPU %u: %.0f MiB used, %.0f MiB free now\n", device->index,
                           used / 0x1p20, free_bytes / 0x1p20);
    }
}

/* Free memory of a suspended job may be mistaken for a free GPU: the reservation stays. */
static void add_reservations(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                             const struct gp_suspended_list *list)
{
    struct gp_leases leases;
    if (gp_leases_read(&leases, NULL) < 0)
        return;
    for (size_t i = 0; i < leases.count; i++) {
        const struct gp_lease *lease = &leases.items[i];
        if (keeps(lease, snapshot, list))
            gp_strbuf_addf(sb, "its reservation stays (gpulse run, pid %u): see gpulse queue\n",
                           lease->pid);
    }
    gp_leases_fini(&leases);
}

void gp_suspension_add_result(struct gp_strbuf *sb, const struct gp_suspension_result *result,
                              const struct gp_suspended_list *list, bool suspended)
{
    for (size_t i = 0; result->is_seen && i < list->count; i++) {
        const struct gp_suspended *s = &list->items[i];
        const uint64_t bytes = gp_suspended_bytes(s);
        double mib = (double)bytes / 0x1p20;
        if (suspended)
            gp_strbuf_addf(
                sb, "process %u is suspended with %.0f MiB; to resume it: gpulse resume %u\n",
                s->pid, mib, s->pid);
        else
            gp_strbuf_addf(sb, "process %u runs again with %.0f MiB\n", s->pid, mib);
    }
    add_gpus(sb, result->after, list);
    if (suspended)
        add_reservations(sb, result->after, list);
}
