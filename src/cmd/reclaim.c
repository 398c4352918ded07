/* gpulse reclaim: frees GPU memory held by orphaned processes. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/proc_end.h"
#include "cmd/proc_idle.h"
#include "cmd/ps_holders.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/account.h"
#include "jobs/terminate.h"
#include "model/snapshot.h"
#include "out/procs.h"
#include "proc/holders.h"
#include "proc/proc.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FREE_S = 30, FREE_TICK_MS = 500 };

struct reclaim_options {
    struct gp_end_options end;
    uint64_t free_bytes;
    uint64_t idle_ns;
};

#define OPT(field) offsetof(struct reclaim_options, field)

static const struct gp_opt options[] = {
    {0, "wait-free", NULL, GP_OPT_SIZE, "SIZE", .offset = OPT(free_bytes),
     .help = "then wait, up to --wait, until each selected GPU has SIZE free"},
    {0, "idle", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(idle_ns),
     .help = "also list my processes that stay idle for TIME (gpulse watches that long)"},
    GP_END_ROWS(struct reclaim_options, end),
    GP_OPT_END,
};

struct reclaim_run {
    struct gp_sampler *sampler;
    const struct reclaim_options *options;
    struct gp_snapshot *snapshot;
    struct gp_idle idle;
    struct gp_holders holders;
    struct gp_account *accounts;
    size_t account_count;
};

/* ---- what can be freed ---- */

static int look(struct reclaim_run *run, struct gp_err *err)
{
    uint64_t idle_ns = run->options->idle_ns;
    int r = idle_ns ? gp_idle_watch(run->sampler, "", idle_ns, &run->idle, &run->snapshot, err)
                    : gp_sampler_tick(run->sampler, &run->snapshot, err);
    if (r == 0)
        r = gp_ps_find_holders(&run->holders, err);
    if (r < 0)
        return r;
    r = gp_accounts_make(run->snapshot, &run->holders, &run->accounts, &run->account_count);
    return r < 0 ? gp_err_set(err, r, "out of memory") : 0;
}

static bool is_missing(const struct gp_account *account)
{
    return account->verdict != GP_ACCOUNT_ACCOUNTED;
}

/* Explains the GPUs that have memory in use without a process, and counts them. If there are none,
 * and `all` is set, says so. */
static int explain(const struct reclaim_run *run, bool all, size_t *ret_missing, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    *ret_missing = 0;
    for (size_t i = 0; i < run->account_count; i++)
        if (is_missing(&run->accounts[i])) {
            gp_account_add(&sb, &run->accounts[i], true);
            ++*ret_missing;
        }
    if (*ret_missing == 0 && all)
        gp_strbuf_adds(&sb,
                       "Nothing to reclaim: all memory in use belongs to listed processes.\nThe "
                       "memory of a running process cannot be freed from outside, and neither can "
                       "a framework's cache.\nCall torch.cuda.empty_cache() inside the process, or "
                       "terminate it: gpulse kill\n");
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static bool is_mine(int64_t pid)
{
    char path[64];
    struct stat folder;
    (void)snprintf(path, sizeof(path), "/proc/%lld", (long long)pid);
    return stat(path, &folder) == 0 && folder.st_uid == geteuid();
}

/* My idle processes. */
static int find_idle(const struct reclaim_run *run, struct gp_procs *ret, struct gp_err *err)
{
    static const struct gp_procs_options rows = {.gpu = -1};
    size_t kept = 0;
    int r = gp_procs_build(ret, run->snapshot, &rows);
    if (r < 0)
        return gp_err_set(err, r, "out of memory");
    gp_idle_keep(&run->idle, ret);
    for (size_t i = 0; i < ret->count; i++)
        if (is_mine(ret->rows[i].pid))
            ret->rows[kept++] = ret->rows[i];
    ret->count = kept;
    return 0;
}

/* Adds the leftover holders on GPUs with unexplained memory. */
static int find_leftovers(const struct reclaim_run *run, struct gp_procs *ret, struct gp_err *err)
{
    size_t kept = ret->count;
    int r = gp_ps_add_holders(ret, run->snapshot, &run->holders, err);
    for (size_t i = kept; r == 0 && i < ret->count; i++) {
        bool wanted = false;
        for (size_t a = 0; a < run->account_count; a++)
            for (size_t s = 0; s < run->accounts[a].suspect_count; s++) {
                const struct gp_suspect *suspect = &run->accounts[a].suspects[s];
                wanted = wanted ||
                         (is_missing(&run->accounts[a]) && suspect->kind == GP_SUSPECT_LEFTOVER &&
                          suspect->holder->pid == ret->rows[i].pid);
            }
        if (wanted)
            ret->rows[kept++] = ret->rows[i];
    }
    ret->count = kept;
    return r;
}

/* ---- waiting ---- */

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

static int await_free(struct reclaim_run *run, struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)FREE_TICK_MS * GP_NS_PER_MS);
    uint64_t patience_ns =
        run->options->end.wait_ns ? run->options->end.wait_ns : (uint64_t)FREE_S * GP_NS_PER_S;
    uint64_t until_ns = gp_clock_mono_ns() + patience_ns;
    for (;;) {
        struct gp_snapshot *snapshot;
        int r = gp_sampler_tick(run->sampler, &snapshot, err);
        if (r < 0)
            return r;
        bool free_now = has_free(snapshot, (double)run->options->free_bytes);
        gp_snapshot_free(snapshot);
        if (free_now)
            return 0;
        if (gp_clock_mono_ns() >= until_ns)
            return gp_err_set(err, GP_EFAIL,
                              "not every selected GPU has %.0f MiB free after %.0f s",
                              (double)run->options->free_bytes / 0x1p20, (double)patience_ns / 1e9);
        (void)nanosleep(&pause, NULL);
    }
}

/* ---- running ---- */

static int reclaim(struct reclaim_run *run, struct gp_err *err)
{
    struct gp_procs leftovers = {.rows = NULL};
    size_t missing;
    int r = look(run, err);
    if (r == 0 && run->options->idle_ns)
        r = find_idle(run, &leftovers, err);
    if (r == 0)
        r = explain(run, leftovers.count == 0, &missing, err);
    if (r == 0)
        r = find_leftovers(run, &leftovers, err);
    if (r == 0 && leftovers.count > 0)
        r = gp_end_processes(run->sampler, run->snapshot, &leftovers, NULL, 0, &run->options->end,
                             err);
    else if (r == 0 && missing > 0 && !run->options->free_bytes)
        r = gp_err_set(err, GP_EFAIL, "gpulse cannot free any of it");
    gp_procs_fini(&leftovers);
    gp_idle_fini(&run->idle);
    if (r == 0 && run->options->free_bytes && !run->options->end.dry_run)
        r = await_free(run, err);
    return r;
}

static int reclaim_main(int argc, char **argv, struct gp_err *err)
{
    struct reclaim_options o = {.free_bytes = 0};
    struct reclaim_run run = {.options = &o};
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = gp_terminate_want();
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_reclaim, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = gp_app_refuse_words(&gp_cmd_reclaim, positional, argv, err);
    if (r < 0)
        return r;
    gp_ps_want_explained(&want.metrics);
    if (o.idle_ns)
        gp_idle_want(&want.metrics);
    r = gp_app_open(&want, &loop, &run.sampler, err);
    if (r < 0)
        return r;
    r = reclaim(&run, err);
    gp_accounts_free(run.accounts, run.account_count);
    gp_holders_fini(&run.holders);
    gp_snapshot_free(run.snapshot);
    gp_app_close(run.sampler);
    return r;
}

const struct gp_cmd gp_cmd_reclaim = {
    .name = "reclaim",
    .summary = "free GPU memory held by orphaned processes",
    .usage = "[options]",
    .description =
        "Finds GPU memory that no listed process accounts for, explains it as gpulse ps --explain "
        "does, and offers to terminate processes left over from jobs that have ended: processes "
        "that still have a GPU open although their parent is gone, such as the data loaders of a "
        "killed training job. Then it waits until the driver has freed their memory, and prints "
        "the memory in use before and after.\n"
        "\n"
        "Check the list before you confirm: another user may still need these processes. The "
        "memory of a running process cannot be freed from outside. For example, only "
        "torch.cuda.empty_cache() inside the process empties PyTorch's cache.",
    .examples = "gpulse reclaim\tall GPUs\n"
                "gpulse reclaim -i 2 --yes --wait-free 20GiB --wait 10m\tbefore a job starts\n"
                "gpulse reclaim --idle 1m\tmy idle processes too\n"
                "gpulse reclaim --dry-run\tonly look\n",
    .options = options,
    .no_loop = true,
    .run = reclaim_main,
};
