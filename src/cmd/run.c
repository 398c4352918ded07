/* gpulse run: reserves GPUs and runs a command on them. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/job_request.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/command.h"
#include "jobs/expression.h"
#include "jobs/marks_read.h"
#include "jobs/timeline.h"
#include "jobs/torch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE_S = 1 /* how often a job is sampled */ };

struct run_options {
    struct gp_command_plan plan;
    struct gp_job_options gpus;
    struct gp_timeline_plan timeline;
    const char *over, *on, *pipeline, *from;
    const char *step_match, *flops, *precision;
    bool restart, dry_run, expandable;
    bool is_typed_into; /* the command has the terminal itself */
};

#define OPT(field) offsetof(struct run_options, field)

static const struct gp_opt options[] = {
    GP_JOB_ROWS(struct run_options, gpus),
    {'w', "wait", NULL, GP_OPT_DURATION, "TIME", "36500d", .before_words = true,
     .offset = OPT(plan.run.gpus.wait_ns), .group = "Run",
     .help = "wait for free GPUs, up to TIME if given (default: do not wait)"},
    {0, "name", NULL, GP_OPT_STRING, "TEXT", .offset = OPT(plan.run.gpus.name),
     .help = "name shown to other users (default: the command)"},
    {0, "timeout", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(plan.run.timeout_ns),
     .help = "stop the command after TIME, with status 124"},
    {0, "retries", NULL, GP_OPT_U64, "N", .offset = OPT(plan.retries),
     .help = "run a failed command again up to N times"},
    {0, "on", NULL, GP_OPT_CHOICE, "WHY", .choices = "oom failure", .offset = OPT(on),
     .help = "which failures to retry (default oom)"},
    {0, "torch-expandable", NULL, GP_OPT_FLAG, .offset = OPT(expandable),
     .help = "turn on PyTorch's expandable_segments, if its version has it"},
    {0, "no-clean-after", NULL, GP_OPT_FLAG, .offset = OPT(plan.run.no_clean),
     .help = "do not terminate leftover processes"},
    {'q', "quiet", NULL, GP_OPT_FLAG, .offset = OPT(plan.run.quiet), .help = "print only problems"},
    {0, "dry-run", NULL, GP_OPT_FLAG, .offset = OPT(dry_run),
     .help = "print what would run, and on which GPUs, and run nothing"},
    {0, "max-gpu-mem", NULL, GP_OPT_SIZE, "SIZE", .least = 1 << 20, .in_mib = true,
     .offset = OPT(plan.run.limits.max_bytes), .group = "Limits",
     .help = "memory limit on each GPU"},
    {0, "over", NULL, GP_OPT_CHOICE, "WHAT", .choices = "warn stop kill", .offset = OPT(over),
     .help = "action when the limit is exceeded (default warn)"},
    {0, "idle-warn", NULL, GP_OPT_DURATION, "TIME", "10m", .before_words = true,
     .offset = OPT(plan.run.limits.idle_ns),
     .help = "warn when a reserved GPU is idle for TIME (10m if TIME is omitted)"},
    {0, "strict", NULL, GP_OPT_FLAG, .offset = OPT(plan.run.limits.is_strict),
     .help = "stop the command if it uses other GPUs"},
    {0, "dir", NULL, GP_OPT_STRING, "DIR", .complete = GP_COMPLETE_FILE,
     .offset = OPT(plan.directory), .group = "Record",
     .help = "directory for the record (default: below ~/.local/state/gpulse/runs)"},
    {0, "no-record", NULL, GP_OPT_FLAG, .offset = OPT(plan.no_record),
     .excludes = "dir keep-output", .help = "keep no record"},
    {0, "keep-output", NULL, GP_OPT_FLAG, .offset = OPT(plan.keep_output),
     .help = "record the output too (output.log)"},
    {0, "label", NULL, GP_OPT_STRING, "TEXT", .offset = OPT(plan.run.output.label),
     .help = "print TEXT before each line of output"},
    {0, "no-watch", NULL, GP_OPT_FLAG, .offset = OPT(plan.run.no_watch),
     .help = "do not watch the output: the command gets the terminal itself (automatic for shells, "
             "pagers and editors)"},
    {0, "timeline", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = OPT(timeline.path), .group = "Timeline",
     .help = "write a timeline of the job: GPUs, processes, marks (for ui.perfetto.dev)"},
    {0, "mark", NULL, GP_OPT_STRING, "REGEX", .offset = OPT(timeline.mark), .needs = "timeline",
     .once = true, .help = "mark output lines that match, named by the first group or the match"},
    {0, "nvtx", NULL, GP_OPT_FLAG, .offset = OPT(timeline.has_nvtx), .needs = "timeline",
     .help = "add the NVTX ranges of the job"},
    {0, "timeline-interval", NULL, GP_OPT_DURATION, "TIME", .least = 50 * GP_NS_PER_MS,
     .offset = OPT(timeline.interval_ns), .needs = "timeline",
     .help = "time between two samples (default: 0.5s; 10s after the first hour)"},
    {0, "step-match", NULL, GP_OPT_STRING, "REGEX", .offset = OPT(step_match), .group = "Pace",
     .once = true,
     .help = "lines of output that report a step, if the program does not call gpulse.step(); (…) "
             "in it: the number of the step"},
    {0, "flops-per-step", NULL, GP_OPT_STRING, "N", .offset = OPT(flops),
     .help = "FLOPs of a step on all GPUs, such as 6.1e15, to report the MFU"},
    {0, "precision", NULL, GP_OPT_CHOICE, "TYPE", .choices = "fp32 tf32 fp16 bf16 fp8",
     .offset = OPT(precision), .needs = "flops-per-step",
     .help = "precision whose peak the MFU is relative to (default bf16)"},
    {0, "pipeline", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = OPT(pipeline), .group = "Pipelines",
     .help = "run the steps in FILE; restart from the failed step of an earlier run"},
    {0, "from", NULL, GP_OPT_STRING, "STEP", .offset = OPT(from), .help = "begin with this step"},
    {0, "restart", NULL, GP_OPT_FLAG, .offset = OPT(restart), .help = "run all steps again"},
    GP_OPT_END,
};

static enum gp_watch_order order_of(const char *word)
{
    static const char *const words[] = {
        [GP_WATCH_GO_ON] = "warn", [GP_WATCH_STOP] = "stop", [GP_WATCH_KILL] = "kill"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strcmp(words[i], word) == 0)
            return (enum gp_watch_order)i;
    return GP_WATCH_GO_ON;
}

/* Options that belong to a step of a pipeline. */
static bool has_job_options(const struct run_options *o)
{
    const struct gp_run_plan *p = &o->plan.run;
    const struct gp_job_options *g = &o->gpus;
    return p->gpus.name || p->gpus.wait_ns || p->timeout_ns || p->limits.max_bytes ||
           p->limits.idle_ns || p->limits.is_strict || p->no_watch || p->no_clean ||
           o->plan.retries || o->plan.no_record || o->plan.keep_output || p->output.label ||
           o->expandable || o->timeline.path || o->step_match || o->flops || o->precision ||
           gp_common()->id || g->count || g->gpus || g->bytes || g->total_bytes || g->share ||
           g->prefer || g->avoid || g->order || g->nvlink || g->same_node || g->no_display;
}

static int check_options(const struct run_options *o, struct gp_err *err)
{
    if (o->pipeline || o->from || o->restart)
        return gp_err_set(
            err, GP_EUSAGE,
            o->pipeline
                ? "with --pipeline, commands and their options belong in the pipeline file; only "
                  "--gpu-ids, --from, --restart, --dry-run, --dir and -q are allowed here"
                : "--from and --restart need --pipeline");
    const struct gp_run_plan *run = &o->plan.run;
    const bool is_unwatched = run->no_watch || run->no_clean;
    const struct {
        bool is_given;
        const char *name, *instead;
    } watching[] = {
        {run->output.label != NULL, "--label", ""},
        {o->plan.keep_output, "--keep-output", ""},
        {o->timeline.mark != NULL, "--mark", ""},
        {o->step_match != NULL, "--step-match", ""},
        {o->plan.retries && !o->plan.retries_any, "--retries", ", or use --on failure"},
    };
    for (size_t i = 0; (is_unwatched || o->is_typed_into) && i < GP_ARRAY_LEN(watching); i++)
        if (watching[i].is_given)
            return gp_err_set(
                err, GP_EUSAGE, "%s needs to watch the output; omit %s%s", watching[i].name,
                is_unwatched ? "--no-watch and --no-clean-after"
                             : "it for a shell, pager or editor, which gets the terminal itself",
                watching[i].instead);
    if (o->precision && strchr(o->precision, ','))
        return gp_err_set(err, GP_EUSAGE, "--precision takes one of: fp32 tf32 fp16 bf16 fp8");
    return 0;
}

/* A separate program, because it needs inih. */
static int run_pipeline(const struct run_options *o, struct gp_err *err)
{
    char program[GP_PATH_SIZE];
    char self[GP_PATH_SIZE];
    char flags[4];
    int r = gp_io_own_program(self, err);
    r = r < 0 ? r : gp_io_find_companion("", "gpulse-pipeline", program, err);
    if (r < 0)
        return r;
    (void)snprintf(flags, sizeof(flags), "%s%s%s", o->restart ? "r" : "", o->dry_run ? "n" : "",
                   o->plan.run.quiet ? "q" : "");
    gp_app_export();
    (void)execl(program, "gpulse-pipeline", self, o->pipeline, o->from ? o->from : "",
                o->plan.directory ? o->plan.directory : "", flags,
                o->gpus.gpu_ids ? o->gpus.gpu_ids : "", (char *)NULL);
    return gp_err_set(err, GP_EFAIL, "cannot run '%s': %s", program, strerror(errno));
}

struct preview {
    const struct run_options *options;
    char *const *words;
    int count;
};

static int print_plan(void *context, const struct gp_snapshot *snapshot, const struct gp_pick *pick,
                      struct gp_err *err)
{
    const struct preview *p = context;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (pick->state == GP_PICK_FITS) {
        gp_strbuf_adds(&sb, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=");
        gp_job_add_mask(&sb, snapshot, pick, p->options->gpus.uuid);
        for (int i = 0; i < p->count; i++) {
            gp_strbuf_addc(&sb, ' ');
            gp_utf8_add_shell_word(&sb, p->words[i]);
        }
    } else {
        gp_strbuf_addf(&sb, "must wait: %s", pick->why);
    }
    gp_strbuf_addc(&sb, '\n');
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* What would run now. With --quiet, only checks the options. */
static int dry_run(const struct run_options *o, char *const *words, int count, struct gp_err *err)
{
    struct gp_pick_request request;
    struct preview preview = {o, words, count};
    if (o->plan.run.quiet)
        return gp_job_request(&o->gpus, &request, err);
    return gp_job_preview(&o->gpus, o->plan.run.gpus.wait_ns, print_plan, &preview, err);
}

static int open_timeline(struct run_options *o, struct gp_err *err)
{
    struct gp_run_plan *plan = &o->plan.run;
    int r = o->timeline.path ? gp_timeline_open(&plan->timeline, &o->timeline, err) : 0;
    if (r == 0 && o->timeline.mark) {
        plan->output.on_line = gp_timeline_add_line;
        plan->output.on_line_context = plan->timeline;
    }
    return r;
}

/* What the job reports itself is for its timeline, or for its pace. */
static int start_timeline(const struct run_options *o, struct gp_run_plan *plan, struct gp_err *err)
{
    const bool needs_marks = plan->timeline || (o->flops && !o->step_match);
    int r = needs_marks ? gp_marks_reader_new(&plan->marks, err) : 0;
    return r == 0 && plan->timeline ? gp_timeline_start(plan->timeline, plan->marks, err) : r;
}

static int run_command(struct run_options *o, char *const *argv, int argc, struct gp_err *err)
{
    static struct gp_command command; /* large */
    struct gp_run *run = &command.run;
    struct gp_sampler *sampler = NULL;
    gp_run_init(run);
    run->watch.label = o->plan.run.output.label;
    o->timeline.argv = argv;
    int r = open_timeline(o, err);
    if (r < 0)
        return r;
    r = gp_job_reserve(run, &o->plan.run, &o->gpus, argv, argc, &sampler, err);
    if (r == 0)
        r = start_timeline(o, &o->plan.run, err);
    if (r == 0)
        r = gp_command_run(&command, &o->plan, argv, err);
    gp_timeline_close(o->plan.run.timeline, &run->watch);
    gp_marks_reader_free(o->plan.run.marks);
    gp_job_release(run, sampler);
    gp_child_end_as(&run->child);
    return r;
}

/* What its pace is measured by. */
static int read_pace(const struct run_options *o, struct gp_pace_plan *ret, struct gp_err *err)
{
    static regex_t step;
    double flops = 0;
    if (o->flops && (!gp_parse_number(o->flops, &flops) || flops <= 0))
        return gp_err_set(err, GP_EUSAGE,
                          "--flops-per-step takes a number such as 6.1e15, not '%s'", o->flops);
    int r = o->step_match ? gp_expression_compile(&step, "--step-match", o->step_match, 0, err) : 0;
    *ret = (struct gp_pace_plan){.step = o->step_match && r == 0 ? &step : NULL,
                                 .flops = flops,
                                 .precision = o->precision ? o->precision : "bf16"};
    return r;
}

static void complete_plan(struct run_options *o, char *const *argv)
{
    struct gp_run_plan *run = &o->plan.run;
    o->plan.retries_any = strcmp(o->on, "failure") == 0;
    run->gpus.limit_ns = o->plan.retries ? 0 : run->timeout_ns; /* each try has the whole time */
    run->limits.over = order_of(o->over);
    run->observed = gp_app_observed();
    o->is_typed_into =
        argv[0] && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && gp_child_is_typed_into(argv);
}

static int run_main(int argc, char **argv, struct gp_err *err)
{
    struct run_options o = {
        .gpus = GP_JOB_DEFAULTS,
        .plan.run = {.sample_ns = SAMPLE_S * GP_NS_PER_S, .output = {.to = -1}},
        .over = "warn",
        .on = "oom",
    };
    char *variables[GP_TORCH_VARIABLES] = {NULL};
    char why[GP_TORCH_WHY_SIZE];
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_run, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (o.pipeline && positional == 0 && !has_job_options(&o))
        return run_pipeline(&o, err);
    argv[1 + positional] = NULL; /* words of options may follow */
    complete_plan(&o, argv + 1);
    r = check_options(&o, err);
    if (r < 0)
        return r;
    o.plan.run.no_watch = o.plan.run.no_watch || o.is_typed_into;
    if (positional == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "missing command; usage: gpulse run [options] -- COMMAND");
    if (positional > 1 && strcmp(argv[2], "--") == 0 && !argv[1][strspn(argv[1], "0123456789,")])
        return gp_err_set(err, GP_EUSAGE,
                          "'%.60s' is not a command; to run on these GPUs: --gpu-ids %.60s",
                          argv[1], argv[1]);
    r = read_pace(&o, &o.plan.run.output.pace, err);
    if (r == 0)
        r = gp_job_check_place(o.plan.run.quiet, err);
    if (r < 0)
        return r;
    if (o.dry_run)
        return dry_run(&o, argv + 1, positional, err);
    if (o.expandable && !gp_torch_expandable(argv[1], variables, why))
        gp_io_print_note("gpulse", why);
    o.plan.run.variables = variables;
    r = run_command(&o, argv + 1, positional, err);
    free(variables[0]);
    free(variables[1]);
    return r;
}

const struct gp_cmd gp_cmd_run = {
    .name = "run",
    .group = "Share and run",
    .summary = "reserve GPUs and run a command on them",
    .usage = "[options] [--] COMMAND...",
    .description =
        "Picks GPUs as gpulse pick does, reserves them until the command ends, and starts it with "
        "CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER set. No other gpulse run gets these GPUs "
        "meanwhile, even before the command has allocated memory. GPUs used by programs that were "
        "started without gpulse run count as busy. With --share and --mem, several commands run on "
        "one GPU as long as their memory fits.\n"
        "\n"
        "With --wait, jobs start in the order in which they began to wait, with two exceptions. A "
        "later job may start on GPUs that no earlier waiting job can use. It may also start on "
        "GPUs that are too few for an earlier job, if its --timeout ends at most an hour after "
        "that job began to wait. So later jobs delay no job by more than an hour.\n"
        "\n"
        "The command runs in its own process group, with the terminal, and receives the signals "
        "sent to gpulse. gpulse exits with its status, or with 128 plus the signal number if a "
        "signal killed it. If it uses GPUs that are not reserved, gpulse says so, and why. "
        "Leftover processes are terminated, and gpulse waits until their GPU memory is freed. When "
        "gpulse ends, even by SIGKILL, the command and its reservation end too.\n"
        "\n"
        "gpulse watches the output and passes it on unchanged. When the command runs out of "
        "memory, gpulse immediately records which processes hold the GPU memory; at the end it "
        "reports them, the cause, and the fix. If it fails after another error that gpulse explain "
        "knows, gpulse says what that means. The records of the last 100 runs are kept in "
        "~/.local/state/gpulse/runs (or below $XDG_STATE_HOME): run.json, samples.csv, and a text "
        "per incident. The command is sampled once a second. A memory peak between two samples is "
        "reported only if the driver keeps accounts (gpulse set accounting-mode=on, before the "
        "command starts).\n"
        "\n"
        "--timeline writes a trace for ui.perfetto.dev: the GPUs, the CPU, memory and disk of the "
        "job's processes, and its own marks and ranges on the same time axis. These are lines of "
        "output (--mark), calls of gpulse-python(3) and gpulse-c(3), and NVTX ranges (--nvtx). The "
        "file is complete however the job or gpulse ends. An earlier trace becomes FILE.1; any "
        "other file that is not empty is refused. At the end, gpulse prints the commands of "
        "profilers for a deeper look.\n"
        "\n"
        "The REGEX of --mark and --step-match is a POSIX extended regular expression, as in grep "
        "-E: [0-9], not \\d. To match one of several, join them with |.\n"
        "\n"
        "With --pipeline, each section [NAME] of a file is a step. A step has a command (for sh), "
        "and may set folder (its working directory), env (NAME=VALUE, repeatable), gpus, ids, mem, "
        "wait, retries and other long options of this command. It starts when all steps above it "
        "have succeeded; with after = a, b, when a and b have; with an empty after, immediately. "
        "Steps that can start run at the same time, each on its own GPUs. Each line of their "
        "output begins with the name of the step. --gpu-ids limits all steps to these GPUs.\n"
        "\n"
        "A section with fit-batch = COMMAND instead of a command finds a batch size, as gpulse "
        "fit-batch does, and takes its options. In the commands of later steps, {batch} stands for "
        "the result, or {batch:NAME} if there are several such steps.\n"
        "\n"
        "After a failure, steps that do not depend on the failed one still run. The next run of "
        "the same file restarts from the failed step, even after a crash or a reboot. A changed "
        "step runs again, and so do all steps after it. A second run of the same file at the same "
        "time is refused. The record has a directory for each step, with its output (output.log). "
        "The exit status is that of the step that failed first.\n"
        "\n"
        "gpulse's own exit statuses are 69 if too few GPUs are free or the pipeline is already "
        "running, 75 if --wait ran out, 78 if the request can never be met, 124 if --timeout ran "
        "out, 126 if the command cannot be run, 127 if it does not exist, and 1 if it was stopped "
        "because of a limit but exited with status 0.",
    .examples =
        "gpulse run -- python train.py\ton a free GPU\n"
        "gpulse run -g 2 --wait -- torchrun --nproc-per-node 2 train.py\twait for two GPUs\n"
        "gpulse run --gpu-ids 0,1 -- python train.py\ton exactly these two\n"
        "gpulse run --share --mem 8GiB -- python serve.py\tshare a GPU that has 8 GiB free\n"
        "gpulse run --timeline trace.json --nvtx -- python train.py\twith a timeline\n"
        "gpulse run --pipeline steps.ini --gpu-ids 2,3\tthe steps in a file\n",
    .options = options,
    .no_loop = true,
    .raw_rest = true,
    .run = run_main,
};
