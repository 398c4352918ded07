/* gpulse reclaim: frees GPU memory held by orphaned processes. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/holders.h"
#include "cmd/proc_end.h"
#include "cmd/proc_idle.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/reclaim.h"
#include "model/snapshot.h"
#include "proc/holders.h"

#include <unistd.h>

enum { FREE_S = 30 }; /* for --wait-free, without --wait */

struct reclaim_options {
    struct gp_end_options end;
    uint64_t free_bytes;
    uint64_t idle_ns;
};

#define OPT(field) offsetof(struct reclaim_options, field)

static const struct gp_opt options[] = {
    {0, "wait-free", NULL, GP_OPT_SIZE, "SIZE", .in_mib = true, .offset = OPT(free_bytes),
     .help = "then wait, up to --wait, until each selected GPU has SIZE free"},
    {0, "idle", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(idle_ns),
     .help = "also list my processes that stay idle for TIME (gpulse watches that long)"},
    GP_END_ROWS(struct reclaim_options, end),
    GP_OPT_END,
};

/* Terminates what can be freed; the snapshot is the one that it was found in. `ended`: false if it
 * only showed what would be terminated. */
static int free_found(struct gp_sampler *sampler, const struct reclaim_options *o,
                      const struct gp_snapshot *snapshot, const struct gp_reclaim *found,
                      bool *ended, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    gp_reclaim_add(&sb, found);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    if (r == 0 && found->rows.count > 0)
        r = gp_end_processes(sampler, snapshot, &found->rows, NULL, 0, &o->end, ended, err);
    else if (r == 0 && found->missing > 0 && !o->free_bytes)
        r = gp_err_set(err, GP_EFAIL, "gpulse cannot free any of it");
    return r;
}

static int reclaim(struct gp_sampler *sampler, const struct reclaim_options *o, struct gp_err *err)
{
    struct gp_reclaim found = {.accounts = NULL};
    struct gp_idle idle = {NULL, 0};
    struct gp_holders holders = {.list = NULL};
    struct gp_snapshot *snapshot = NULL;
    bool ended = !o->end.dry_run;
    int r = o->idle_ns ? gp_idle_watch(sampler, "", o->idle_ns, &idle, &snapshot, err)
                       : gp_sampler_tick(sampler, &snapshot, err);
    if (r == 0)
        r = gp_app_find_holders(&holders, err);
    if (r == 0 && gp_reclaim_find(&found, snapshot, &holders, &idle) < 0)
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r == 0)
        r = free_found(sampler, o, snapshot, &found, &ended, err);
    gp_reclaim_fini(&found);
    gp_holders_fini(&holders);
    gp_snapshot_free(snapshot);
    gp_idle_fini(&idle);
    if (r == 0 && o->free_bytes && ended)
        r = gp_reclaim_await_free(sampler, o->free_bytes,
                                  o->end.wait_ns ? o->end.wait_ns : FREE_S * GP_NS_PER_S, err);
    return r;
}

static int reclaim_main(int argc, char **argv, struct gp_err *err)
{
    struct reclaim_options o = {.free_bytes = 0};
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = gp_reclaim_want();
    struct gp_sampler *sampler;
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_reclaim, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = gp_app_refuse_words(&gp_cmd_reclaim, positional, argv, err);
    if (r < 0)
        return r;
    if (o.idle_ns)
        gp_idle_want(&want.metrics);
    r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = reclaim(sampler, &o, err);
    gp_app_close(sampler);
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
