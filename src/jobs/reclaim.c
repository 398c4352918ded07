#include "jobs/reclaim.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/terminate.h"
#include "model/snapshot.h"
#include "proc/holders.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 500 };

struct gp_want gp_reclaim_want(void)
{
    struct gp_want want = gp_terminate_want();
    gp_accounts_want(&want.metrics);
    return want;
}

static bool is_missing(const struct gp_account *account)
{
    return account->verdict != GP_ACCOUNT_ACCOUNTED;
}

static bool is_mine(int64_t pid)
{
    char path[64];
    struct stat folder;
    (void)snprintf(path, sizeof(path), "/proc/%lld", (long long)pid);
    return stat(path, &folder) == 0 && folder.st_uid == geteuid();
}

static int add_idle(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                    const struct gp_idle *idle)
{
    static const struct gp_procs_options rows = {.gpu = -1};
    size_t kept = 0;
    int r = gp_procs_build(procs, snapshot, &rows);
    if (r < 0)
        return r;
    gp_idle_keep(idle, procs);
    for (size_t i = 0; i < procs->count; i++)
        if (is_mine(procs->rows[i].pid))
            procs->rows[kept++] = procs->rows[i];
    procs->count = kept;
    return 0;
}

static bool is_leftover(const struct gp_reclaim *reclaim, int64_t pid)
{
    for (size_t a = 0; a < reclaim->account_count; a++)
        for (size_t s = 0; s < reclaim->accounts[a].suspect_count; s++) {
            const struct gp_suspect *suspect = &reclaim->accounts[a].suspects[s];
            if (is_missing(&reclaim->accounts[a]) && suspect->kind == GP_SUSPECT_LEFTOVER &&
                suspect->holder->pid == pid)
                return true;
        }
    return false;
}

int gp_reclaim_find(struct gp_reclaim *ret, const struct gp_snapshot *snapshot,
                    const struct gp_holders *holders, const struct gp_idle *idle)
{
    *ret = (struct gp_reclaim){.accounts = NULL};
    int r = gp_accounts_make(snapshot, holders, &ret->accounts, &ret->account_count);
    if (r == 0 && idle->count > 0)
        r = add_idle(&ret->rows, snapshot, idle);
    size_t kept = ret->rows.count;
    if (r == 0)
        r = gp_account_add_holders(&ret->rows, snapshot, holders);
    if (r < 0)
        return r;
    for (size_t i = kept; i < ret->rows.count; i++)
        if (is_leftover(ret, ret->rows.rows[i].pid))
            ret->rows.rows[kept++] = ret->rows.rows[i];
    ret->rows.count = kept;
    for (size_t i = 0; i < ret->account_count; i++)
        ret->missing += is_missing(&ret->accounts[i]);
    return 0;
}

void gp_reclaim_fini(struct gp_reclaim *reclaim)
{
    gp_procs_fini(&reclaim->rows);
    gp_accounts_free(reclaim->accounts, reclaim->account_count);
}

void gp_reclaim_add(struct gp_strbuf *sb, const struct gp_reclaim *reclaim)
{
    for (size_t i = 0; i < reclaim->account_count; i++)
        if (is_missing(&reclaim->accounts[i]))
            gp_account_add(sb, &reclaim->accounts[i], true);
    if (reclaim->missing == 0 && reclaim->rows.count == 0)
        gp_strbuf_adds(sb,
                       "Nothing to reclaim: all memory in use belongs to listed processes.\nThe "
                       "memory of a running process cannot be freed from outside, and neither can "
                       "a framework's cache.\nCall torch.cuda.empty_cache() inside the process, or "
                       "terminate it: gpulse kill\n");
}

static bool has_free(const struct gp_snapshot *snapshot, double bytes)
{
    bool all = true;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        double free_bytes;
        const struct gp_device *device = &snapshot->devices[i];
        all = all &&
              (device->is_mig ||
               (gp_device_number_now(device, GP_MEMORY_FREE, &free_bytes) && free_bytes >= bytes));
    }
    return all;
}

int gp_reclaim_await_free(struct gp_sampler *sampler, uint64_t bytes, uint64_t wait_ns,
                          struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)TICK_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + wait_ns;
    for (;;) {
        struct gp_snapshot *snapshot;
        int r = gp_sampler_tick(sampler, &snapshot, err);
        if (r < 0)
            return r;
        bool free_now = has_free(snapshot, (double)bytes);
        gp_snapshot_free(snapshot);
        if (free_now)
            return 0;
        if (gp_clock_mono_ns() >= until_ns)
            return gp_err_set(err, GP_EFAIL,
                              "not every selected GPU has %.0f MiB free after %.0f s",
                              (double)bytes / 0x1p20, (double)wait_ns / 1e9);
        (void)nanosleep(&pause, NULL);
    }
}
