/* gpulse run: reserves GPUs and runs a command on them. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/run_explain.h"
#include "cmd/run_job.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/record.h"
#include "jobs/tail.h"
#include "jobs/torch.h"
#include "model/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE_S = 1 /* how often a job is sampled */ };

struct run_options {
    struct gp_run_plan plan;
    const char *over, *on, *dir, *pipeline, *from, *label;
    uint64_t retries;
    bool no_record, keep_output, restart, dry_run, expandable;
};

#define OPT(field) offsetof(struct run_options, field)

static const struct gp_opt options[] = {
    GP_JOB_ROWS(struct run_options, plan.gpus),
    {'w', "wait", NULL, GP_OPT_DURATION, "TIME", "36500d", .offset = OPT(plan.wait_ns),
     .group = "Run", .help = "wait for free GPUs, up to TIME if given (default: do not wait)"},
    {0, "name", NULL, GP_OPT_STRING, "TEXT", .offset = OPT(plan.name),
     .help = "name shown to other users (default: the command)"},
    {0, "timeout", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(plan.timeout_ns),
     .help = "stop the command after TIME, with status 124"},
    {0, "retries", NULL, GP_OPT_U64, "N", .offset = OPT(retries),
     .help = "run a failed command again up to N times"},
    {0, "on", NULL, GP_OPT_CHOICE, "WHY", .choices = "oom failure", .offset = OPT(on),
     .help = "which failures to retry (default oom)"},
    {0, "torch-expandable", NULL, GP_OPT_FLAG, .offset = OPT(expandable),
     .help = "turn on PyTorch's expandable_segments, if its version has it"},
    {0, "no-clean-after", NULL, GP_OPT_FLAG, .offset = OPT(plan.no_clean),
     .help = "do not terminate leftover processes"},
    {0, "dry-run", NULL, GP_OPT_FLAG, .offset = OPT(dry_run),
     .help = "print what would run, and on which GPUs, and run nothing"},
    {0, "max-gpu-mem", NULL, GP_OPT_SIZE, "SIZE", .least = 1 << 20,
     .offset = OPT(plan.limits.max_bytes), .group = "Limits", .help = "memory limit on each GPU"},
    {0, "over", NULL, GP_OPT_CHOICE, "WHAT", .choices = "warn stop kill", .offset = OPT(over),
     .help = "action when the limit is exceeded (default warn)"},
    {0, "idle-warn", NULL, GP_OPT_DURATION, "TIME", "10m", .offset = OPT(plan.limits.idle_ns),
     .help = "warn when a reserved GPU is idle for TIME (10m if TIME is omitted)"},
    {0, "strict", NULL, GP_OPT_FLAG, .offset = OPT(plan.limits.is_strict),
     .help = "stop the command if it uses other GPUs"},
    {0, "dir", NULL, GP_OPT_STRING, "DIR", .complete = GP_COMPLETE_FILE, .offset = OPT(dir),
     .group = "Record",
     .help = "directory for the record (default: below ~/.local/state/gpulse/runs)"},
    {0, "no-record", NULL, GP_OPT_FLAG, .offset = OPT(no_record), .excludes = "dir keep-output",
     .help = "keep no record"},
    {0, "keep-output", NULL, GP_OPT_FLAG, .offset = OPT(keep_output),
     .help = "record the output too (output.log)"},
    {0, "label", NULL, GP_OPT_STRING, "TEXT", .offset = OPT(label),
     .help = "print TEXT before each line of output"},
    {0, "no-watch", NULL, GP_OPT_FLAG, .offset = OPT(plan.no_watch),
     .help = "do not watch the output: the command gets the terminal itself (automatic for shells, "
             "pagers and editors)"},
    {'q', "quiet", NULL, GP_OPT_FLAG, .offset = OPT(plan.quiet), .help = "print only problems"},
    {0, "pipeline", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = OPT(pipeline), .group = "Pipelines",
     .help = "run the steps in FILE; restart from the failed step of an earlier run"},
    {0, "from", NULL, GP_OPT_STRING, "STEP", .offset = OPT(from), .help = "begin with this step"},
    {0, "restart", NULL, GP_OPT_FLAG, .offset = OPT(restart), .help = "run all steps again"},
    GP_OPT_END,
};

/* ---- the record ---- */

static json_t *safe_string(const char *text)
{
    char safe[4096];
    gp_utf8_copy_safe(safe, sizeof(safe), text);
    return json_string(safe);
}

/* The start of run.json. */
static json_t *description_of(const struct gp_run *run, char *const *argv)
{
    char cwd[GP_PATH_SIZE];
    char started[GP_RFC3339_SIZE];
    json_t *command = json_array();
    for (size_t i = 0; argv[i]; i++)
        (void)json_array_append_new(command, safe_string(argv[i]));
    gp_clock_rfc3339(gp_clock_wall_ns(), started);
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:i, s:s}", "schema", "gpulse.run/1", "command",
                     command, "name", safe_string(run->lease.name), "directory",
                     safe_string(getcwd(cwd, sizeof(cwd)) ? cwd : ""), "started", started, "pid",
                     (int)getpid(), "mask", run->mask);
}

static int open_record(struct gp_run *run, const struct run_options *o, char *const *argv,
                       struct gp_err *err)
{
    struct gp_err why = {0};
    int r = o->no_record ? 0 : gp_record_open(&run->watch.record, o->dir, gp_clock_wall_ns(), &why);
    if (r < 0 && o->dir)
        return gp_err_copy(err, &why);
    if (r < 0)
        gp_io_print_error("gpulse", &why); /* the job runs without it */
    run->watch.description = description_of(run, argv);
    gp_watch_write(&run->watch, "running", 0);
    return 0;
}

/* ---- interactive programs ---- */

/* Interactive shells, pagers and editors: they need the terminal itself, and their output is not
 * worth watching. */
static bool is_typed_into(char *const *argv)
{
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh"};
    static const char *const others[] = {"less", "more", "man",   "vi",   "vim",    "nvim", "nano",
                                         "top",  "htop", "emacs", "tmux", "screen", "ssh"};
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    bool has_script = false;
    for (size_t i = 1; argv[i]; i++)
        has_script = has_script || argv[i][0] != '-' || strcmp(argv[i], "-c") == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(shells) && !has_script; i++)
        if (strcmp(name, shells[i]) == 0)
            return true;
    return false;
}

/* ---- PyTorch ---- */

/* Adds an option to one of the variables of its allocator. NULL if out of memory. */
static char *with_option(const char *variable, const char *option)
{
    const char *now = getenv(variable);
    char *text = NULL;
    int n = now && *now ? asprintf(&text, "%s=%s,%s", variable, now, option)
                        : asprintf(&text, "%s=%s", variable, option);
    return n < 0 ? NULL : text;
}

/* Versions before 2.1 fail on the unknown option; 2.10 and newer use another variable. */
static void set_expandable(char *variables[3], const char *program)
{
    static const char option[] = "expandable_segments:True";
    char why[200];
    const struct gp_torch torch = gp_torch_of(program);
    if (gp_torch_is(&torch, 2, 1)) {
        variables[0] = with_option("PYTORCH_CUDA_ALLOC_CONF", option);
        variables[1] =
            gp_torch_is(&torch, 2, 10) ? with_option("PYTORCH_ALLOC_CONF", option) : NULL;
        return;
    }
    if (torch.is_found)
        (void)snprintf(why, sizeof(why),
                       "PyTorch %u.%u of '%.80s' would fail with it; it needs 2.1 or newer",
                       torch.major, torch.minor, program);
    else
        (void)snprintf(why, sizeof(why), "no PyTorch found next to '%.80s'", program);
    char text[300];
    (void)snprintf(text, sizeof(text), "%s is not set: %s", option, why);
    gp_io_print_note("gpulse", text);
}

/* ---- the command ---- */

static bool is_tried_again(const struct gp_run *run, const struct run_options *o, int status,
                           uint64_t tries)
{
    if (status <= 0 || tries > o->retries || run->watch.ended_by ||
        gp_child_was_interrupted(&run->child))
        return false;
    return strcmp(o->on, "failure") == 0 || gp_watch_is_out_of_memory(&run->watch, status);
}

static void record_end(struct gp_watch *watch, const struct gp_tail *tail)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(2 * GP_TAIL_BYTES);
    gp_strbuf_add(&sb, tail->bytes, tail->size);
    if (sb.len > 0)
        gp_watch_record(watch, GP_RECORD_OUTPUT_END, &sb);
    gp_strbuf_fini(&sb);
}

static int try_command(struct gp_run *run, const struct run_options *o, char *const *argv,
                       struct gp_err *err)
{
    bool again = true;
    int r = 0;
    gp_watch_say(&run->watch, "on %s", run->place);
    for (uint64_t tries = 1; again; tries++) {
        o->plan.output.tail->size = 0;
        r = gp_run_once(run, argv, err);
        if (run->child.pid < 0 && r > 0) /* it could not be started */
            gp_watch_write(&run->watch, "ended", r);
        if (r < 0 || run->child.pid < 0)
            return r;
        again = is_tried_again(run, o, r, tries);
        bool is_explained = gp_watch_summarize(&run->watch, r);
        if (r > 0 && !is_explained && !gp_child_was_interrupted(&run->child))
            gp_run_explain(&run->watch, o->plan.output.tail);
        if (r > 0 && !o->keep_output)
            record_end(&run->watch, o->plan.output.tail);
        gp_watch_write(&run->watch, again ? "failed" : "ended", r);
        if (!o->plan.no_clean)
            (void)gp_run_await_memory(run);
        if (r > 0 && !again && run->watch.record.path[0])
            gp_watch_say(&run->watch, "details: gpulse explain %s", run->watch.record.path);
        if (again)
            gp_watch_say(&run->watch, "retry %llu of %llu", (unsigned long long)tries,
                         (unsigned long long)o->retries);
    }
    return r;
}

/* Returns its exit status, or an error. */
static int run_command(struct gp_run *run, struct run_options *o, char *const *argv,
                       struct gp_err *err)
{
    static struct gp_output_log log; /* large */
    static struct gp_tail tail;
    o->plan.output.tail = &tail;
    o->plan.output.label = o->label;
    if (o->keep_output && run->watch.record.path[0]) {
        gp_output_log_open(&log, run->watch.record.path);
        o->plan.output.log = &log;
    }
    int r = try_command(run, o, argv, err);
    gp_output_log_close(&log);
    if (log.err.code)
        gp_watch_warn(&run->watch, "its output is not recorded: %s", log.err.text);
    return r;
}

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
    const struct gp_run_plan *p = &o->plan;
    const struct gp_job_options *g = &p->gpus;
    return p->name || p->wait_ns || p->timeout_ns || p->limits.max_bytes || p->limits.idle_ns ||
           p->limits.is_strict || p->no_watch || p->no_clean || o->retries || o->no_record ||
           o->keep_output || o->label || o->expandable || gp_common()->id || g->count || g->gpus ||
           g->bytes || g->total_bytes || g->share || g->prefer || g->avoid || g->order ||
           g->nvlink || g->same_node || g->no_display;
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
    if ((o->label || o->keep_output) && (o->plan.no_watch || o->plan.no_clean))
        return gp_err_set(err, GP_EUSAGE,
                          "%s needs to watch the output; omit --no-watch and --no-clean-after",
                          o->label ? "--label" : "--keep-output");
    if (o->retries && strcmp(o->on, "oom") == 0 && (o->plan.no_watch || o->plan.no_clean))
        return gp_err_set(err, GP_EUSAGE,
                          "--retries needs to watch the output; omit --no-watch and "
                          "--no-clean-after, or use --on failure");
    return 0;
}

/* A separate program, because it needs inih. */
static int run_pipeline(const struct run_options *o, struct gp_err *err)
{
    char program[GP_PATH_SIZE];
    char self[GP_PATH_SIZE];
    char flags[4];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return gp_err_set(err, GP_EIO, "cannot read /proc/self/exe: %s", strerror(errno));
    self[n] = '\0';
    int r = gp_io_find_companion("", "gpulse-pipeline", program, err);
    if (r < 0)
        return r;
    (void)snprintf(flags, sizeof(flags), "%s%s%s", o->restart ? "r" : "", o->dry_run ? "n" : "",
                   o->plan.quiet ? "q" : "");
    gp_app_export();
    (void)execl(program, "gpulse-pipeline", self, o->pipeline, o->from ? o->from : "",
                o->dir ? o->dir : "", flags, o->plan.gpus.gpu_ids ? o->plan.gpus.gpu_ids : "",
                (char *)NULL);
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
        gp_job_add_mask(&sb, snapshot, pick, p->options->plan.gpus.uuid);
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
    if (o->plan.quiet)
        return gp_job_request(&o->plan.gpus, &request, err);
    return gp_job_preview(&o->plan.gpus, o->plan.wait_ns, print_plan, &preview, err);
}

static int run_main(int argc, char **argv, struct gp_err *err)
{
    static struct gp_run run = GP_RUN_INIT; /* large */
    struct run_options o = {
        .plan = {.gpus = GP_JOB_DEFAULTS,
                 .sample_ns = SAMPLE_S * GP_NS_PER_S,
                 .output = {.to = -1}},
        .over = "warn",
        .on = "oom",
    };
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_run, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (o.pipeline && positional == 0 && !has_job_options(&o))
        return run_pipeline(&o, err);
    r = check_options(&o, err);
    if (r < 0)
        return r;
    if (positional == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "missing command; usage: gpulse run [options] -- COMMAND");
    r = gp_job_check_place(o.plan.quiet, err);
    if (r < 0)
        return r;
    if (o.dry_run)
        return dry_run(&o, argv + 1, positional, err);
    char *variables[3] = {NULL};
    if (o.expandable)
        set_expandable(variables, argv[1]);
    o.plan.variables = variables;
    char **command = calloc((size_t)positional + 1, sizeof(*command));
    if (!command)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    memcpy(command, argv + 1, (size_t)positional * sizeof(*command));
    o.plan.limit_ns = o.retries ? 0 : o.plan.timeout_ns; /* each try has the whole time */
    o.plan.limits.over = order_of(o.over);
    o.plan.no_watch = o.plan.no_watch ||
                      (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && is_typed_into(command));
    run.watch.label = o.label;
    r = gp_run_open(&run, &o.plan, command, positional, err);
    if (r == 0)
        r = open_record(&run, &o, command, err);
    if (r == 0)
        r = run_command(&run, &o, command, err);
    gp_run_close(&run);
    free(command);
    free(variables[0]);
    free(variables[1]);
    gp_child_end_as(&run.child);
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
        "one GPU as long as their memory fits.\n\n"
        "With --wait, jobs start in the order in which they began to wait, with two exceptions. A "
        "later job may start on GPUs that no earlier waiting job can use. It may also start on "
        "GPUs that are too few for an earlier job, if its --timeout ends at most an hour after "
        "that job began to wait. So later jobs delay no job by more than an hour.\n\n"
        "The command runs in its own process group, with the terminal, and receives the signals "
        "sent to gpulse. gpulse exits with its status, or with 128 plus the signal number if a "
        "signal killed it. If it uses GPUs that are not reserved, gpulse says so, and why. "
        "Leftover processes are terminated, and gpulse waits until their GPU memory is freed. When "
        "gpulse ends, even by SIGKILL, the command and its reservation end too.\n\n"
        "gpulse watches the output and passes it on unchanged. When the command runs out of "
        "memory, gpulse immediately records which processes hold the GPU memory; at the end it "
        "reports them, the cause, and the fix. If it fails after another error that gpulse explain "
        "knows, gpulse says what that means. The records of the last 100 runs are kept in "
        "~/.local/state/gpulse/runs (or below $XDG_STATE_HOME): run.json, samples.csv, and a text "
        "per incident. The command is sampled once a second. A memory peak between two samples is "
        "reported only if the driver keeps accounts (gpulse set accounting-mode=on, before the "
        "command starts).\n\n"
        "With --pipeline, each section [NAME] of a file is a step. A step has a command (for sh), "
        "and may set folder (its working directory), env (NAME=VALUE, repeatable), gpus, ids, "
        "mem, wait, retries and other long options of this command. It starts when all steps above "
        "it have succeeded; with after = a, b, when a and b have; with an empty after, "
        "immediately. Steps that can start run at the same time, each on its own GPUs. Each line "
        "of their output begins with the name of the step. --gpu-ids limits all steps to these "
        "GPUs.\n\n"
        "A section with fit-batch = COMMAND instead of a command finds a batch size, as gpulse "
        "fit-batch does, and takes its options. In the commands of later steps, {batch} stands for "
        "the result, or {batch:NAME} if there are several such steps.\n\n"
        "After a failure, steps that do not depend on the failed one still run. The next run of "
        "the same file restarts from the failed step, even after a crash or a reboot. A changed "
        "step runs again, and so do all steps after it. A second run of the same file at the same "
        "time is refused. The record has a directory for each step, with its output (output.log). "
        "The exit status is that "
        "of the step that failed first.\n\n"
        "gpulse's own exit statuses are 69 if too few GPUs are free or the pipeline is already "
        "running, 75 if --wait ran out, 78 if the request can never be met, 124 if --timeout ran "
        "out, 126 if the command cannot be run, 127 if it does not exist, and 1 if it was stopped "
        "because of a limit but exited with status 0.",
    .examples =
        "gpulse run -- python train.py\ton a free GPU\n"
        "gpulse run -g 2 --wait -- torchrun --nproc-per-node 2 train.py\twait for two GPUs\n"
        "gpulse run --gpu-ids 0,1 -- python train.py\ton exactly these two\n"
        "gpulse run --share --mem 8GiB -- python serve.py\tshare a GPU that has 8 GiB free\n"
        "gpulse run --pipeline steps.ini --gpu-ids 2,3\tthe steps in a file\n",
    .options = options,
    .no_loop = true,
    .raw_rest = true,
    .run = run_main,
};
