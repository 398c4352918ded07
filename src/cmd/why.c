/* gpulse why: why a GPU is not as fast as it could be. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/why_observe.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "why/report.h"

#include <string.h>

#define OPT(field) offsetof(struct gp_observe_options, field)

static const struct gp_opt options[] = {
    {0, "for", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(for_ns),
     .help = "observe for TIME (default 20s)"},
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(interval_ns),
     .help = "time between samples (default 0.5s)"},
    {0, "job", NULL, GP_OPT_STRING, "IDS", .offset = OPT(job),
     .help = "only these Slurm or PBS jobs"},
    {0, "watch", NULL, GP_OPT_FLAG, .offset = OPT(watch),
     .help = "print a new verdict after each TIME, until interrupted"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json ndjson",
     .offset = OPT(format), .group = "Output", .help = "output format (default text)"},
    GP_OPT_END,
};

static int report(const struct gp_observe_options *o, struct gp_strbuf *sb,
                  const struct gp_snapshot *last, const struct gp_why_case *cases, size_t count,
                  struct gp_err *err)
{
    (void)err;
    if (strcmp(o->format, "text") != 0)
        gp_why_report_add_json(sb, last, cases, count, strcmp(o->format, "json") == 0 ? 2 : 0);
    else
        gp_why_report_add(sb, cases, count, gp_io_columns());
    return 0;
}

static int why_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_observe_options o = GP_OBSERVE_DEFAULTS;
    return gp_observe_main(&gp_cmd_why, argc, argv, &o, report, err);
}

const struct gp_cmd gp_cmd_why = {
    .name = "why",
    .summary = "find out why a GPU is not as fast as it could be",
    .usage = "[PID|JOB] [options]",
    .description =
        "Observes the GPUs that are used, and the processes and threads of the jobs on them, and "
        "says what limits each job: the data loader, the storage, too few CPU cores, the main "
        "thread, transfers over PCIe, a hot or throttled GPU, other processes, small kernels, "
        "memory bandwidth, idle tensor cores, and more. Each verdict says what was seen, how sure "
        "it is, what to try first, and how much it would gain at most. \"Nothing stands out\" is "
        "an answer, too. A GPU that has failed comes first, with what gpulse doctor says of it.\n"
        "\n"
        "PID limits it to the GPUs that this process, or one that it started, uses. JOB is a part "
        "of the name of a job that gpulse queue lists.\n"
        "\n"
        "Hopper and later GPUs report what their units do (gpulse query gpm.*); without that, some "
        "verdicts are only possible ones, or cannot be found. Times of other users' processes are "
        "visible, but not what they read from disks. A program that has just started may load and "
        "compile for a minute: observe it later.\n"
        "\n"
        "With --tape, it says so of a recording: of the time after --at, or of the end. What "
        "threads did and waited for is not recorded, so fewer reasons can be found. PID is then "
        "one that used a GPU, or the first process of a job.",
    .examples = "gpulse why\tall jobs, for 20 seconds\n"
                "gpulse why --tape night.tape --at 03:10 --for 5m\twhat it was that night\n"
                "gpulse why 4711 --for 1m\tone job, for longer\n"
                "gpulse why train.py\ta job of gpulse run\n"
                "gpulse why -i 0 --watch\ta verdict on GPU 0 every 20 seconds\n"
                "gpulse why --watch -f ndjson\ta JSON document per line\n"
                "gpulse why -f json\tthe verdicts and the numbers behind them\n",
    .options = options,
    .takes_tape = true,
    .no_loop = true,
    .run = why_main,
};
