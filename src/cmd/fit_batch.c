/* gpulse fit-batch: finds the largest batch size that a program can use, by trying. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/fit_cache.h"
#include "cmd/fit_report.h"
#include "cmd/run_job.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "jobs/fit.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SAMPLE_MS = 100,
    STEADY_S = 20,
    TRIAL_S = 600,
    WORKS_MIB = 300, /* with more a program does more than to be there */
    TAIL_LINES = 20, /* of what a failed trial printed */
    TAIL_BYTES = 8192,
    MARGIN_PERCENT = 5,
    MASKED_PERCENT = 97, /* with so much in use a library that cannot be set up lacks memory */
};

struct fit_options {
    struct gp_run_plan plan;
    uint64_t min, start, max, multiple, margin, steady_ns, confirm_ns;
    const char *until, *confirm, *env, *format, *dir;
    bool fresh;
};

#define OPT(field) offsetof(struct fit_options, field)

static const struct gp_opt options[] = {
    GP_JOB_ROWS(struct fit_options, plan.gpus),
    {0, "min", NULL, GP_OPT_U64, "N", .offset = OPT(min), .least = 1,
     .help = "smallest batch size (default 1)"},
    {0, "max", NULL, GP_OPT_U64, "N", .offset = OPT(max), .least = 1, .help = "largest batch size"},
    {0, "start", NULL, GP_OPT_U64, "N", .offset = OPT(start), .least = 1,
     .help = "batch size to begin with (default: --min)"},
    {0, "multiple", NULL, GP_OPT_U64, "N", .offset = OPT(multiple), .least = 1,
     .help = "only multiples of it (default 1)"},
    {0, "margin", NULL, GP_OPT_U64, "PERCENT", .offset = OPT(margin),
     .help = "part of the GPU's memory that is to stay free, for evaluation and the longest sample "
             "(default 5; 512 MiB at least)"},
    {0, "steady", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(steady_ns),
     .help = "a trial is over when its memory has not risen for so long (default 20s)"},
    {0, "until", NULL, GP_OPT_STRING, "REGEX", .offset = OPT(until),
     .help = "or when it prints such a line, as in 'step 20/'"},
    {0, "trial-timeout", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(plan.timeout_ns),
     .help = "a trial takes no longer than that (default 10m)"},
    {0, "confirm", NULL, GP_OPT_STRING, "TIME", .offset = OPT(confirm),
     .help =
         "run the answer so long to confirm it, or 'full': to its end; then --margin 2 is enough "
         "(default: not)"},
    {0, "env", NULL, GP_OPT_STRING, "NAME={}", .offset = OPT(env),
     .help = "hand the batch size over in this variable"},
    {'w', "wait", NULL, GP_OPT_DURATION, "TIME", "36500d", .offset = OPT(plan.wait_ns),
     .help = "wait for the GPUs"},
    {0, "dir", NULL, GP_OPT_STRING, "FOLDER", .complete = GP_COMPLETE_FILE, .offset = OPT(dir),
     .help = "keep there what the trials print (default: a new one in ~/.local/state/gpulse/runs)"},
    {0, "fresh", NULL, GP_OPT_FLAG, .offset = OPT(fresh),
     .help = "try all anew (default: take what earlier trials of the same command have shown)"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format),
     .help = "output format (default text)"},
    {'q', "quiet", NULL, GP_OPT_FLAG, .offset = OPT(plan.quiet),
     .help = "print the batch size and nothing else"},
    GP_OPT_END,
};

/* All of a search. */
struct search {
    const struct fit_options *options;
    struct gp_run_plan plan; /* of the trials */
    struct gp_run *run;
    struct gp_fit fit;
    struct gp_fit_cache cache;
    char *const *template; /* the command, with {} in it */
    size_t words;
    /* of the trial that runs */
    char log[GP_PATH_SIZE];
    char *variables[2]; /* the one of --env, and NULL */
    double peak;
    uint64_t risen_ns; /* when it last rose; 0: the program has not begun to work */
    bool is_confirming;
};

/* ---- a trial ---- */

/* Every {} becomes the number. NULL without memory. */
static char *fill(const char *word, uint64_t batch)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    const char *hole;
    for (; (hole = strstr(word, "{}")); word = hole + 2) {
        gp_strbuf_add(&sb, word, (size_t)(hole - word));
        gp_strbuf_addf(&sb, "%llu", (unsigned long long)batch);
    }
    gp_strbuf_adds(&sb, word);
    char *ret = sb.error ? NULL : strdup(sb.buf);
    gp_strbuf_fini(&sb);
    return ret;
}

static void free_command(char **argv)
{
    for (size_t i = 0; argv && argv[i]; i++)
        free(argv[i]);
    free(argv);
}

static char **fill_command(const struct search *s, uint64_t batch)
{
    char **argv = calloc(s->words + 1, sizeof(*argv));
    for (size_t i = 0; argv && i < s->words; i++) {
        argv[i] = fill(s->template[i], batch);
        if (!argv[i]) {
            free_command(argv);
            return NULL;
        }
    }
    return argv;
}

/* The most that it has on a GPU. */
static double peak_of(const struct gp_watch *watch)
{
    double peak = 0;
    for (size_t i = 0; i < watch->gpu_count; i++)
        peak = watch->gpus[i].use.peak > peak ? watch->gpus[i].use.peak : peak;
    return peak;
}

static bool works(const struct gp_watch *watch)
{
    for (size_t i = 0; i < watch->gpu_count; i++)
        if (watch->gpus[i].use.busy_sum > 0 && watch->gpus[i].use.peak > (double)WORKS_MIB * 0x1p20)
            return true;
    return false;
}

/* A short trial is over when its memory does not rise any more. */
static enum gp_watch_order judge(void *context, struct gp_watch *watch)
{
    struct search *s = context;
    uint64_t now_ns = gp_clock_mono_ns();
    double peak = peak_of(watch);
    if (s->is_confirming || s->options->until || !works(watch))
        return GP_WATCH_GO_ON;
    if (peak > s->peak || s->risen_ns == 0)
        s->risen_ns = now_ns;
    s->peak = peak > s->peak ? peak : s->peak;
    if (now_ns - s->risen_ns < s->options->steady_ns || watch->ended_by)
        return GP_WATCH_GO_ON;
    watch->ended_by = "steady";
    return GP_WATCH_STOP;
}

static bool is_full(const struct search *s)
{
    return peak_of(&s->run->watch) > (double)s->fit.request.capacity_bytes * MASKED_PERCENT / 100;
}

static enum gp_fit_verdict verdict_of(const struct search *s, int status)
{
    const struct gp_watch *watch = &s->run->watch;
    bool failed = status != 0 && !watch->ended_by;
    if (gp_watch_had(watch, GP_FAILURE_GPU) ||
        (failed && gp_watch_had(watch, GP_FAILURE_MASKED) && is_full(s)))
        return GP_FIT_OOM;
    if (failed)
        return gp_watch_had(watch, GP_FAILURE_HOST) ? GP_FIT_HOST : GP_FIT_CRASH;
    return GP_FIT_OK;
}

/* The file for what this trial prints; −1: nowhere. */
static int open_log(struct search *s, const struct gp_fit_trial *trial)
{
    const char *folder = s->run->watch.record.path;
    int n = snprintf(s->log, sizeof(s->log), "%s/trial-%zu-batch-%llu.log", folder,
                     s->fit.trial_count + 1, (unsigned long long)trial->batch);
    if (!*folder || n < 0 || (size_t)n >= sizeof(s->log)) {
        s->log[0] = '\0';
        return open("/dev/null", O_WRONLY | O_CLOEXEC);
    }
    int fd = gp_outfile_create(s->log, 0, 0600, NULL);
    if (fd >= 0)
        (void)!ftruncate(fd, 0);
    return fd;
}

static int run_trial(struct search *s, const struct gp_fit_trial *trial, int *ret_status,
                     struct gp_err *err)
{
    char **argv = fill_command(s, trial->batch);
    s->variables[0] = s->options->env ? fill(s->options->env, trial->batch) : NULL;
    int r = argv && (s->variables[0] || !s->options->env) ? 0 : GP_ENOMEM;
    s->plan.output.to = r == 0 ? open_log(s, trial) : -1;
    s->plan.variables = s->variables;
    s->plan.timeout_ns = s->options->plan.timeout_ns;
    if (trial->is_confirming)
        s->plan.timeout_ns = s->options->confirm_ns;
    s->peak = 0;
    s->risen_ns = 0;
    s->is_confirming = trial->is_confirming;
    if (r == 0 && s->plan.output.to < 0)
        r = gp_err_set(err, GP_EIO, "cannot write %s: %s", s->log, strerror(errno));
    else if (r < 0)
        r = gp_err_set(err, r, "out of memory");
    if (r == 0)
        r = gp_run_once(s->run, argv, err);
    *ret_status = r;
    if (s->plan.output.to >= 0)
        (void)close(s->plan.output.to);
    free_command(argv);
    free(s->variables[0]);
    return r < 0 ? r : 0;
}

/* ---- what ends it ---- */

/* The last lines of what it printed, for who has to find out why it failed. */
static void print_tail(const struct search *s)
{
    char text[TAIL_BYTES + 1];
    int fd = s->log[0] ? open(s->log, O_RDONLY | O_CLOEXEC) : -1;
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    ssize_t n =
        size > 0 ? pread(fd, text, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0) : 0;
    text[n > 0 ? n : 0] = '\0';
    const char *from = text + strlen(text);
    for (unsigned lines = 0; from > text && lines <= TAIL_LINES; from--)
        lines += from[-1] == '\n';
    if (fd >= 0)
        (void)close(fd);
    (void)!gp_io_write_all(STDERR_FILENO, from, strlen(from));
}

/* Whether the search can go on behind this trial. */
static int check_trial(struct search *s, const struct gp_fit_trial *trial,
                       enum gp_fit_verdict verdict, int status, struct gp_err *err)
{
    if (s->run->child.pid < 0)
        return gp_err_set(err, GP_EFAIL, "the command cannot be run");
    bool is_back = gp_run_await_memory(s->run);
    if (gp_child_was_interrupted(&s->run->child))
        return gp_err_set(err, GP_EINTR, "interrupted; batch %llu had fitted",
                          (unsigned long long)s->fit.fits);
    if (verdict == GP_FIT_CRASH || verdict == GP_FIT_HOST) {
        print_tail(s);
        return gp_err_set(
            err, GP_EFAIL,
            "the trial with batch %llu failed with status %d: %s; batch %llu had fitted%s%s",
            (unsigned long long)trial->batch, status,
            gp_fit_end_text(verdict == GP_FIT_CRASH ? GP_FIT_END_CRASHED : GP_FIT_END_AT_HOST),
            (unsigned long long)s->fit.fits, s->log[0] ? "; see " : "", s->log);
    }
    if (verdict == GP_FIT_OK && peak_of(&s->run->watch) <= 0) {
        print_tail(s);
        return gp_err_set(
            err, GP_EFAIL,
            "the trial with batch %llu used no GPU: does the command train on one, and "
            "long enough to be seen?",
            (unsigned long long)trial->batch);
    }
    if (!is_back)
        return gp_err_set(err, GP_EFAIL,
                          "the memory of a trial did not come back: the next one would be misled");
    return 0;
}

static int search(struct search *s, struct gp_err *err)
{
    struct gp_fit_trial trial;
    int r = 0;
    while (r == 0 && gp_fit_next(&s->fit, &trial)) {
        int status;
        uint64_t began_ns = gp_clock_mono_ns();
        r = run_trial(s, &trial, &status, err);
        if (r < 0)
            return r;
        enum gp_fit_verdict verdict = verdict_of(s, status);
        double peak = peak_of(&s->run->watch);
        r = check_trial(s, &trial, verdict, status, err);
        gp_fit_take(&s->fit, verdict, (uint64_t)peak);
        if (r == 0)
            gp_fit_cache_write(&s->cache, &s->fit);
        if (r == GP_EINTR)
            return r;
        gp_watch_say(&s->run->watch, "%s with batch %llu: %s, %.2f GiB (%.0f s)",
                     trial.is_confirming ? "the long run" : "trial",
                     (unsigned long long)trial.batch,
                     gp_fit_verdict_word(s->fit.trials[s->fit.trial_count - 1].verdict),
                     peak / 0x1p30, (double)(gp_clock_mono_ns() - began_ns) / 1e9);
    }
    return r;
}

/* ---- all of it ---- */

/* The memory that a trial can have: on the GPU that has the least. */
static int init_fit(struct search *s, struct gp_err *err)
{
    const struct fit_options *o = s->options;
    const struct gp_watch *watch = &s->run->watch;
    double free_bytes = watch->gpus[0].free;
    double total_bytes = watch->gpus[0].total;
    for (size_t i = 1; i < watch->gpu_count; i++) {
        free_bytes = watch->gpus[i].free < free_bytes ? watch->gpus[i].free : free_bytes;
        total_bytes = watch->gpus[i].total < total_bytes ? watch->gpus[i].total : total_bytes;
    }
    const struct gp_fit_request request = {
        .min = o->min,
        .start = o->start,
        .max = o->max,
        .multiple = o->multiple,
        .capacity_bytes = (uint64_t)free_bytes,
        .total_bytes = (uint64_t)total_bytes,
        .margin = (double)o->margin / 100,
        .confirm = o->confirm,
    };
    return gp_fit_init(&s->fit, &request, err);
}

/* What the trials depend on beside the command. */
static void describe_trials(const struct search *s, char *text, size_t size)
{
    const struct fit_options *o = s->options;
    const char *conf = getenv("PYTORCH_CUDA_ALLOC_CONF");
    (void)snprintf(
        text, size, "%zu GPUs, env %s, until %s, steady %llu, timeout %llu, allocator %s",
        s->run->watch.gpu_count, o->env ? o->env : "", o->until ? o->until : "",
        (unsigned long long)o->steady_ns, (unsigned long long)o->plan.timeout_ns, conf ? conf : "");
}

static int find(struct search *s, struct gp_err *err)
{
    const struct fit_options *o = s->options;
    struct gp_run *run = s->run;
    int r = gp_record_open(&run->watch.record, o->dir, gp_clock_wall_ns(), err);
    if (r == 0)
        r = init_fit(s, err);
    if (r == 0)
        gp_watch_say(&run->watch, "on GPU %s, %.2f GiB free; what the trials print: %s", run->mask,
                     (double)s->fit.request.capacity_bytes / 0x1p30,
                     run->watch.record.path[0] ? run->watch.record.path : "nowhere");
    if (r == 0) {
        char more[1024];
        describe_trials(s, more, sizeof(more));
        gp_fit_cache_open(&s->cache, &s->fit, s->template, s->words, more);
        size_t known = o->fresh ? 0 : gp_fit_cache_replay(&s->cache, &s->fit);
        if (known)
            gp_watch_say(&run->watch, "%zu trial%s known from before (--fresh tries all anew)",
                         known, known == 1 ? " is" : "s are");
        r = search(s, err);
    }
    if (r == 0)
        r = gp_fit_report(&s->fit, o->format, o->plan.quiet, err);
    return r;
}

static bool has_hole(char *const *argv, size_t count, const char *env)
{
    bool has = env && strstr(env, "{}");
    for (size_t i = 0; i < count; i++)
        has = has || strstr(argv[i], "{}");
    return has;
}

static int check_options(struct fit_options *o, char *const *argv, int count, struct gp_err *err)
{
    if (count == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "say what to try: gpulse fit-batch -- python train.py --batch-size {}");
    if (o->env && (strchr(o->env, '=') == NULL || *o->env == '='))
        return gp_err_set(err, GP_EUSAGE, "--env takes NAME={}, not '%s'", o->env);
    if (!has_hole(argv, (size_t)count, o->env))
        return gp_err_set(err, GP_EUSAGE,
                          "nothing says where the batch size belongs: write {} in its place, as in "
                          "--batch-size {}, or use --env NAME={}");
    if (o->plan.gpus.share)
        return gp_err_set(err, GP_EUSAGE, "--share is not for fit-batch: others would mislead it");
    if (o->margin > 90)
        return gp_err_set(err, GP_EUSAGE, "--margin takes 0 to 90 percent");
    if (o->confirm && strcmp(o->confirm, "full") != 0 &&
        !gp_parse_duration(o->confirm, &o->confirm_ns))
        return gp_err_set(err, GP_EUSAGE, "--confirm takes a time or 'full', not '%s'", o->confirm);
    return 0;
}

static int compile(const char *until, regex_t *regex, struct gp_err *err)
{
    char why[120];
    int e = regcomp(regex, until, REG_EXTENDED | REG_NOSUB);
    if (e == 0)
        return 0;
    (void)regerror(e, regex, why, sizeof(why));
    return gp_err_set(err, GP_EUSAGE, "--until '%s': %s", until, why);
}

static int fit_batch_main(int argc, char **argv, struct gp_err *err)
{
    static struct gp_run run = GP_RUN_INIT; /* large */
    static struct search s;
    regex_t until;
    struct fit_options o = {
        .plan = {.gpus = GP_JOB_DEFAULTS,
                 .timeout_ns = TRIAL_S * GP_NS_PER_S,
                 .sample_ns = SAMPLE_MS * GP_NS_PER_MS},
        .min = 1,
        .multiple = 1,
        .margin = MARGIN_PERCENT,
        .steady_ns = STEADY_S * GP_NS_PER_S,
        .format = "text",
    };
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_fit_batch, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = check_options(&o, argv + 1, positional, err);
    if (r == 0 && o.until)
        r = compile(o.until, &until, err);
    if (r < 0)
        return r;
    s = (struct search){.options = &o,
                        .plan = o.plan,
                        .run = &run,
                        .template = argv + 1,
                        .words = (size_t)positional};
    s.plan.is_detached = true; /* Ctrl-C means the search */
    s.plan.judge = judge;
    s.plan.context = &s;
    s.plan.output.until = o.until ? &until : NULL;
    r = gp_run_open(&run, &s.plan, argv + 1, positional, err);
    if (r == 0)
        r = find(&s, err);
    gp_run_close(&run);
    if (o.until)
        regfree(&until);
    gp_child_end_as(&run.child);
    return r;
}

const struct gp_cmd gp_cmd_fit_batch = {
    .name = "fit-batch",
    .summary = "find the largest batch size that fits the GPU",
    .usage = "[options] -- COMMAND...",
    .description =
        "Runs the command again and again with another batch size in the place of {}, on GPUs that "
        "are kept for it as by gpulse run, and watches its memory. Each trial is a fresh process "
        "that "
        "is ended when its memory has not risen for a while. Memory is taken to be a + b * batch: "
        "from three trials on the next size is computed, so that about eight do.\n\n"
        "The answer leaves a margin, because a short trial does not see an evaluation, a "
        "checkpoint "
        "or the longest sample; --confirm runs it for longer. With several GPUs the fullest "
        "counts, "
        "and the batch size is whatever the program takes it for, for each GPU or for all.\n\n"
        "A trial that fails for another reason than GPU memory ends the search, with the last "
        "lines "
        "that it printed. Another batch size wants another learning rate.",
    .examples =
        "gpulse fit-batch -- python train.py --batch-size {}\tthe largest batch\n"
        "gpulse fit-batch --multiple 8 --max 512 --until 'step 20' -- python train.py bs={}\tin "
        "steps "
        "of 8, 20 steps each\n"
        "gpulse fit-batch --margin 2 --confirm 10m -- python train.py --bs {}\tand try it for ten "
        "minutes\n",
    .options = options,
    .no_loop = true,
    .raw_rest = true,
    .run = fit_batch_main,
};
