/* gpulse why: why a GPU is not as fast as it could be. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/proc_idle.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/partial.h"
#include "why/gather.h"
#include "why/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PID_MAX = 1 << 22 };

struct why_options {
    uint64_t for_ns;
    uint64_t interval_ns;
    bool watch;
    const char *format;
};

#define OPT(field) offsetof(struct why_options, field)

static const struct gp_opt options[] = {
    {0, "for", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(for_ns),
     .help = "observe for TIME (default 20s)"},
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(interval_ns),
     .help = "time between samples (default 0.5s)"},
    {0, "watch", NULL, GP_OPT_FLAG, .offset = OPT(watch),
     .help = "print a new verdict after each TIME, until interrupted"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json ndjson",
     .offset = OPT(format), .group = "Output", .help = "output format (default text)"},
    GP_OPT_END,
};

struct why_run {
    const struct why_options *o;
    uint32_t pid;
    uint64_t samples; /* of an observation */
    uint64_t taken;
    uint64_t rounds; /* observations that have ended */
    struct gp_why_gather *gather;
};

static int begin(struct why_run *run, struct gp_err *err)
{
    const struct gp_observed *observed = gp_app_observed();
    run->taken = 0;
    gp_why_gather_free(run->gather);
    run->gather = gp_why_gather_new(observed->prefix, gp_observed_is_reachable(observed), run->pid);
    return run->gather ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}

static int report(struct why_run *run, const struct gp_snapshot *snapshot, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    size_t count;
    if (run->rounds++ > 0 && strcmp(run->o->format, "text") == 0)
        gp_strbuf_addc(&sb, '\n');
    const struct gp_why_case *cases = gp_why_gather_cases(run->gather, &count);
    if (!cases)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    if (count == 0 && run->pid)
        return gp_err_set(err, GP_ENODEV,
                          "neither process %u nor one that it started uses a GPU; gpulse ps lists "
                          "those that do",
                          run->pid);
    if (strcmp(run->o->format, "text") != 0)
        gp_why_report_add_json(&sb, snapshot, cases, count,
                               strcmp(run->o->format, "json") == 0 ? 2 : 0);
    else if (count == 0)
        gp_strbuf_adds(&sb, "No process uses a GPU.\n");
    else
        gp_why_report_add(&sb, cases, count, gp_io_columns());
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    if (r == 0)
        gp_partial_explain(snapshot, err);
    return r;
}

static int on_sample(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct why_run *run = ctx;
    if (gp_why_gather_add(run->gather, snapshot) < 0)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    if (++run->taken < run->samples) {
        if (!run->o->watch)
            gp_idle_count_down(run->o->for_ns, (run->samples - run->taken) * run->o->interval_ns);
        return 0;
    }
    if (!run->o->watch)
        gp_idle_count_down(run->o->for_ns, 0);
    int r = report(run, snapshot, err);
    return r < 0 ? r : begin(run, err);
}

static int read_options(struct why_options *o, int count, char **argv, uint32_t *ret_pid,
                        struct gp_err *err)
{
    uint64_t pid = 0;
    if (count > 1)
        return gp_err_set(err, GP_EUSAGE, "why takes one process id, got %d arguments", count);
    if (count == 1 && (!gp_parse_u64(argv[1], &pid) || pid == 0 || pid > PID_MAX))
        return gp_err_set(err, GP_EUSAGE,
                          "'%.80s' is not a process id; GPUs are selected with -i, as in -i 3",
                          argv[1]);
    if (strchr(o->format, ','))
        return gp_err_set(err, GP_EUSAGE, "--format takes one of: text json ndjson");
    if (o->watch && strcmp(o->format, "json") == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "-f json is one document; with --watch use -f ndjson, one per line");
    if (o->interval_ns < 100 * GP_NS_PER_MS)
        return gp_err_set(err, GP_EUSAGE, "--interval must be at least 0.1s");
    if (o->for_ns < 2 * o->interval_ns)
        return gp_err_set(err, GP_EUSAGE, "--for must be at least twice --interval");
    *ret_pid = (uint32_t)pid;
    return 0;
}

static int why_main(int argc, char **argv, struct gp_err *err)
{
    struct why_options o = {
        .for_ns = 20 * GP_NS_PER_S, .interval_ns = GP_NS_PER_S / 2, .format = "text"};
    struct why_run run = {.o = &o};
    struct gp_sampler *sampler;
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_why, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = read_options(&o, positional, argv, &run.pid, err);
    if (r < 0)
        return r;
    run.samples = o.for_ns / o.interval_ns + 1;
    const struct gp_want want = gp_why_want();
    const struct gp_loop loop = {.interval_ns = o.interval_ns, .count = o.watch ? 0 : run.samples};
    r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = begin(&run, err);
    if (r == 0)
        r = gp_app_loop(sampler, &loop, on_sample, &run, err);
    gp_app_close(sampler);
    gp_why_gather_free(run.gather);
    return r;
}

const struct gp_cmd gp_cmd_why = {
    .name = "why",
    .summary = "find out why a GPU is not as fast as it could be",
    .usage = "[PID] [options]",
    .description =
        "Observes the GPUs that are used, and the processes and threads of the jobs on them, and "
        "says what limits each job: the data loader, the storage, too few CPU cores, the main "
        "thread, transfers over PCIe, a hot or throttled GPU, other processes, small kernels, "
        "memory bandwidth, idle tensor cores, and more. Each verdict says what was seen, how sure "
        "it is, what to try first, and how much it would gain at most. \"Nothing stands out\" is "
        "an answer, too.\n"
        "\n"
        "PID limits it to the GPUs that this process, or one that it started, uses. Hopper and "
        "later GPUs report what their units do (gpulse query gpm.*); without that, some "
        "verdicts are only possible ones, or cannot be found. Times of other users' processes are "
        "visible, but not what they read from disks. A program that has just started may load and "
        "compile for a minute: observe it later.",
    .examples = "gpulse why\tall jobs, for 20 seconds\n"
                "gpulse why 4711 --for 1m\tone job, for longer\n"
                "gpulse why -i 0 --watch\ta verdict on GPU 0 every 20 seconds\n"
                "gpulse why --watch -f ndjson\ta JSON document per line\n"
                "gpulse why -f json\tthe verdicts and the numbers behind them\n",
    .options = options,
    .no_loop = true,
    .run = why_main,
};
