#include "jobs/suspend.h"

#include "base/err.h"
#include "jobs/checkpoint.h"
#include "proc/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Far longer than a call takes, plus time to move the memory at this rate or faster. */
enum { CALL_S = 60, SLOWEST_MIB_S = 256 };
enum { SPARE_MIB = 256 /* of host memory, left free */ };

static uint64_t deadline_ns(uint64_t bytes)
{
    return (CALL_S + (bytes >> 20) / SLOWEST_MIB_S) * GP_NS_PER_S;
}

uint64_t gp_suspended_bytes(const struct gp_suspended *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->gpu_count; i++)
        bytes += s->gpus[i].bytes;
    return bytes;
}

/* The kernel would kill them halfway if host memory ran out. Processes of one job share its limit,
 * so all together must fit into what each has left. */
int gp_suspend_check_room(const char *root, const struct gp_suspended *list, size_t count,
                          struct gp_err *err)
{
    uint64_t bytes = (uint64_t)SPARE_MIB << 20;
    for (size_t i = 0; i < count; i++)
        bytes += gp_suspended_bytes(&list[i]);
    for (size_t i = 0; i < count; i++) {
        uint64_t room = gp_cgroup_memory_room(root, list[i].pid);
        room = room == UINT64_MAX ? 0 : room; /* unknown: do not risk it */
        if (room < bytes)
            return gp_err_set(
                err, GP_EFAIL,
                "%.0f MiB of host memory needed, but process %u can use only %.0f MiB",
                (double)bytes / 0x1p20, list[i].pid, (double)room / 0x1p20);
    }
    return 0;
}

static int step(enum gp_cuda_call step, const struct gp_suspended *s, struct gp_err *err)
{
    bool moves = step == GP_CUDA_SAVE || step == GP_CUDA_RESTORE;
    return gp_checkpoint_do(step, s->pid, deadline_ns(moves ? gp_suspended_bytes(s) : 0), err);
}

/* The progress of one process. */
struct item {
    int note;
    enum { UNTOUCHED, NOTED, LOCKED, SAVED, UNKNOWN } stage;
};

static struct item *items_new(size_t count)
{
    struct item *items = calloc(count + 1, sizeof(*items));
    for (size_t i = 0; items && i < count; i++)
        items[i].note = -1;
    return items;
}

static void items_free(struct item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (items[i].note >= 0)
            (void)close(items[i].note);
    free(items);
}

/* ---- suspending ---- */

static int get_state(const struct gp_suspended *s, enum gp_cuda_state *ret, struct gp_err *err)
{
    return gp_checkpoint_get_state(s->pid, deadline_ns(0), ret, err);
}

static int lock(const struct gp_suspend_plan *plan, const struct gp_suspended *s, struct item *item,
                struct gp_err *err)
{
    enum gp_cuda_state state;
    int r = gp_suspended_take(plan->root, s, &item->note, err);
    if (r == 0)
        r = get_state(s, &state, err);
    if (r == 0 && state != GP_CUDA_RUNNING)
        r = gp_err_set(err, GP_EFAIL, "it is already suspended, or its CUDA calls are stopped");
    if (r < 0)
        return r;
    item->stage = NOTED;
    r = gp_suspended_write(item->note, s, err);
    if (r == 0) {
        r = gp_checkpoint_do(GP_CUDA_LOCK, s->pid, plan->lock_timeout_ns, err);
        item->stage = r == 0 ? LOCKED : r == GP_ETIMEOUT ? UNKNOWN : NOTED;
    }
    if (r == 0 && !gp_suspended_lives(plan->root, s)) /* the driver identifies it by pid alone */
        r = gp_err_set(err, GP_EFAIL, "it has exited, and its pid was recycled");
    return r;
}

/* Updates the notes with the current memory: a running process may have allocated more. */
static int measure(const struct gp_suspend_plan *plan, struct gp_suspended *list,
                   const struct item *items, size_t count, struct gp_err *err)
{
    int r = plan->eyes.measure(plan->eyes.ctx, list, count, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = gp_suspended_write(items[i].note, &list[i], err);
    return r;
}

/* True if it runs again as before. */
static bool undo(const struct gp_suspend_plan *plan, const struct gp_suspended *s,
                 const struct item *item)
{
    if (item->stage == UNTOUCHED)
        return true;
    if (item->stage == UNKNOWN)
        return false;
    if (item->stage == SAVED &&
        (!plan->eyes.has_room(plan->eyes.ctx, s) || step(GP_CUDA_RESTORE, s, NULL) < 0))
        return false;
    if (item->stage >= LOCKED && step(GP_CUDA_UNLOCK, s, NULL) < 0)
        return false;
    return gp_suspended_forget(plan->root, s, item->note, NULL) == 0;
}

static int give_up(const struct gp_suspend_plan *plan, const struct gp_suspended *list,
                   const struct item *items, size_t count, const struct gp_err *why,
                   struct gp_err *err)
{
    static const char more[] = " …";
    char left[160] = "";
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        char pid[16];
        if (undo(plan, &list[i], &items[i]))
            continue;
        size_t length = (size_t)snprintf(pid, sizeof(pid), " %u", list[i].pid);
        if (n + length + sizeof(more) > sizeof(left)) {
            memcpy(left + n, more, sizeof(more)); /* gpulse resume lists them all */
            continue;
        }
        memcpy(left + n, pid, length + 1);
        n += length;
    }
    return left[0]
               ? gp_err_set(err, why->code, "%.200s; not running: gpulse resume%s", why->text, left)
               : gp_err_set(err, why->code, "%s; nothing was suspended", why->text);
}

int gp_suspend_all(const struct gp_suspend_plan *plan, struct gp_suspended *list, size_t count,
                   struct gp_err *err)
{
    struct gp_err why = {0};
    struct item *items = items_new(count);
    uint32_t at = 0; /* the process being moved; 0: all of them */
    int r = items ? 0 : gp_err_set(&why, GP_ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < count; i++) {
        at = list[i].pid;
        r = lock(plan, &list[i], &items[i], &why);
    }
    if (r == 0) {
        at = 0;
        r = measure(plan, list, items, count, &why);
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        at = list[i].pid;
        r = step(GP_CUDA_SAVE, &list[i], &why);
        items[i].stage = r == 0 ? SAVED : r == GP_ETIMEOUT ? UNKNOWN : LOCKED;
    }
    if (r < 0) {
        struct gp_err which = why;
        if (at)
            (void)gp_err_set(&which, why.code, "process %u: %.300s", at, why.text);
        r = give_up(plan, list, items, items ? count : 0, &which, err);
    }
    items_free(items, items ? count : 0);
    return r;
}

/* ---- resuming ---- */

static int restore(const struct gp_suspend_plan *plan, const struct gp_suspended *s,
                   struct item *item, struct gp_err *err)
{
    enum gp_cuda_state state;
    int r = gp_suspended_take(plan->root, s, &item->note, err);
    if (r == 0)
        r = get_state(s, &state, err);
    if (r < 0)
        return r;
    if (state == GP_CUDA_FAILED)
        return gp_err_set(err, GP_EFAIL,
                          "its memory is lost; it can only be terminated: gpulse kill %u", s->pid);
    if (state > GP_CUDA_FAILED)
        return gp_err_set(err, GP_EFAIL, "its memory is being moved; try again");
    /* earlier processes may have taken more than their notes say */
    if (state == GP_CUDA_CHECKPOINTED && !plan->eyes.has_room(plan->eyes.ctx, s))
        return gp_err_set(err, GP_EFAIL,
                          "its GPU no longer has enough free memory for it; it stays suspended");
    if (!gp_suspended_lives(plan->root, s))
        return gp_err_set(err, GP_EFAIL, "it has exited");
    r = state == GP_CUDA_CHECKPOINTED ? step(GP_CUDA_RESTORE, s, err) : 0;
    if (r == 0)
        item->stage = state == GP_CUDA_RUNNING ? NOTED : LOCKED;
    return r;
}

static int go_on(const char *root, const struct gp_suspended *s, const struct item *item,
                 struct gp_err *err)
{
    int r = item->stage == LOCKED ? step(GP_CUDA_UNLOCK, s, err) : 0;
    return r < 0 ? r : gp_suspended_forget(root, s, item->note, err);
}

int gp_resume_all(const struct gp_suspend_plan *plan, const struct gp_suspended *list, size_t count,
                  struct gp_err *err)
{
    struct item *items = items_new(count);
    int first = items ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
    for (int round = 0; items && round < 2; round++)
        for (size_t i = 0; i < count; i++) {
            struct gp_err why = {0};
            int r = round == 0                    ? restore(plan, &list[i], &items[i], &why)
                    : items[i].stage == UNTOUCHED ? 0
                                                  : go_on(plan->root, &list[i], &items[i], &why);
            if (r < 0 && first == 0)
                first = gp_err_set(err, r, "process %u: %s", list[i].pid, why.text);
        }
    items_free(items, items ? count : 0);
    return first;
}
