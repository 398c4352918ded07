/* gpulse kill: terminates processes on the GPUs and checks that their memory is freed. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/proc_end.h"
#include "cmd/proc_select.h"

#include "base/err.h"
#include "model/snapshot.h"
#include "out/procs.h"

struct kill_options {
    struct gp_proc_select select;
    struct gp_end_options end;
};

static const struct gp_opt options[] = {
    GP_PROC_SELECT_ROWS(struct kill_options, select),
    GP_END_ROWS(struct kill_options, end),
    GP_OPT_END,
};

static int kill_chosen(struct gp_sampler *sampler, const struct kill_options *o, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    struct gp_procs procs;
    int r = gp_proc_select_find(&o->select, sampler, &snapshot, &procs, err);
    if (r == 0)
        r = gp_end_processes(sampler, snapshot, &procs, o->select.named, o->select.named_count,
                             &o->end, err);
    gp_procs_fini(&procs);
    gp_snapshot_free(snapshot);
    return r;
}

static int kill_main(int argc, char **argv, struct gp_err *err)
{
    static struct kill_options o; /* large */
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = gp_end_want();
    struct gp_sampler *sampler;
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_kill, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = gp_proc_select_parse(&o.select, argv + 1, positional, err);
    if (r < 0)
        return r;
    gp_proc_select_want(&o.select, &want);
    r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = kill_chosen(sampler, &o, err);
    gp_app_close(sampler);
    return r;
}

const struct gp_cmd gp_cmd_kill = {
    .name = "kill",
    .summary = "terminate processes on the GPUs and wait for their memory",
    .usage = "[PID|WORD...] [options]",
    .description =
        "Lists the matching processes and asks for confirmation. Then it sends SIGINT, after 10 s "
        "SIGTERM to those that still run, and after another 10 s SIGKILL. It waits until the "
        "driver has freed their memory, and reports on each process.\n\n"
        "Processes are selected by pid, by words as in the filter of gpulse ps (user:alice, "
        "job:4711, gpu:0, cmd:train), and by the options; all conditions must hold. Only root can "
        "terminate other users' processes. Process 1, gpulse itself, its parents, and kernel "
        "threads are never touched; display servers only if given by pid.\n\n"
        "A recycled pid is never signalled.",
    .examples = "gpulse kill 4711\tone process\n"
                "gpulse kill --job 4711\ta Slurm job's processes on this machine\n"
                "gpulse kill -i 0 --mine --yes\tmy processes on GPU 0, without asking\n"
                "gpulse kill --name train.py --tree\ta training job and its data loaders\n"
                "gpulse kill --mine --idle 10m\tmy idle processes\n",
    .options = options,
    .no_loop = true,
    .run = kill_main,
};
