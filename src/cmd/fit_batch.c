/* gpulse fit-batch: finds the largest batch size of a program by running trials. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/job_request.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "jobs/expression.h"
#include "jobs/fit_report.h"
#include "jobs/fit_search.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SAMPLE_MS = 100,
    STEADY_S = 20,
    TRIAL_S = 600,
    MARGIN_PERCENT = 5,
    PLANNED_SIZES = 3, /* the first sizes, which do not depend on earlier trials */
};

struct fit_options {
    struct gp_fit_plan plan;
    struct gp_job_options gpus;
    const char *format, *dir;
    bool dry_run;
};

#define OPT(field) offsetof(struct fit_options, field)

static const struct gp_opt options[] = {
    GP_JOB_ROWS(struct fit_options, gpus),
    {0, "min", NULL, GP_OPT_U64, "N", .offset = OPT(plan.min), .least = 1, .group = "Search",
     .help = "smallest batch size (default 1)"},
    {0, "max", NULL, GP_OPT_U64, "N", .offset = OPT(plan.max), .least = 1,
     .help = "largest batch size"},
    {0, "start", NULL, GP_OPT_U64, "N", .offset = OPT(plan.start), .least = 1,
     .help = "batch size to begin with (default: --min)"},
    {0, "multiple", NULL, GP_OPT_U64, "N", .offset = OPT(plan.multiple), .least = 1,
     .help = "try only multiples of N (default 1)"},
    {0, "margin", NULL, GP_OPT_U64, "PERCENT", .offset = OPT(plan.margin),
     .help = "GPU memory to leave free (default 5, at least 512 MiB)"},
    {0, "steady", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(plan.steady_ns), .group = "Trials",
     .help = "stop a trial when its memory has not risen for TIME (default 20s)"},
    {0, "until", NULL, GP_OPT_STRING, "REGEX", .offset = OPT(plan.until), .once = true,
     .help = "instead of --steady: stop a trial when it prints a line that matches REGEX, such as "
             "'step 20/'"},
    {0, "hang-timeout", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(plan.hang_ns), .least = 1,
     .help = "stop a trial that makes no progress for TIME (default: 5 times the longest trial, at "
             "least 1m; 5m for the first trial)"},
    {0, "trial-timeout", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(plan.run.timeout_ns),
     .least = 1, .help = "stop a trial after TIME (default 10m, less after quick trials)"},
    {0, "confirm", NULL, GP_OPT_STRING, "TIME", .offset = OPT(plan.confirm),
     .help = "run the result again for TIME, to check whether its memory grows; full: until it "
             "ends, no: skip this (default: 3 times --steady or the longest trial)"},
    {0, "env", NULL, GP_OPT_STRING, "NAME={}", .offset = OPT(plan.env),
     .help = "pass the batch size in this environment variable"},
    {'w', "wait", NULL, GP_OPT_DURATION, "TIME", "36500d", .before_words = true,
     .offset = OPT(plan.run.gpus.wait_ns),
     .help = "wait for free GPUs, up to TIME if given (default: do not wait)"},
    {0, "dir", NULL, GP_OPT_STRING, "DIR", .complete = GP_COMPLETE_FILE, .offset = OPT(dir),
     .help = "directory for the trials' output (default: below ~/.local/state/gpulse/runs)"},
    {0, "fresh", NULL, GP_OPT_FLAG, .offset = OPT(plan.fresh),
     .help = "ignore earlier trials of the same command"},
    {0, "dry-run", NULL, GP_OPT_FLAG, .offset = OPT(dry_run),
     .help = "print the GPUs, the first sizes and the command, and run nothing"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format),
     .group = "Output", .help = "output format (default text)"},
    {'q', "quiet", NULL, GP_OPT_FLAG, .offset = OPT(plan.run.quiet),
     .help = "print only the batch size"},
    GP_OPT_END,
};

/* ---- the options ---- */

static bool has_hole(char *const *argv, size_t count, const char *env)
{
    bool has = env && strstr(env, "{}");
    for (size_t i = 0; i < count; i++)
        has = has || strstr(argv[i], "{}");
    return has;
}

static int check_confirm(struct gp_fit_plan *o, struct gp_err *err)
{
    if (!o->confirm || strcmp(o->confirm, "full") == 0 || strcmp(o->confirm, "no") == 0 ||
        (gp_parse_duration(o->confirm, &o->confirm_ns) && o->confirm_ns > 0))
        return 0;
    return gp_err_set(err, GP_EUSAGE, "--confirm takes a time, 'full' or 'no', not '%s'",
                      o->confirm);
}

/* Checks everything that does not require the GPUs. */
static int check_options(struct fit_options *given, char *const *argv, int count,
                         struct gp_err *err)
{
    struct gp_fit_plan *o = &given->plan;
    const struct gp_fit_request request = gp_fit_request_of(o);
    if (count == 0)
        return gp_err_set(
            err, GP_EUSAGE,
            "missing command; usage: gpulse fit-batch -- python train.py --batch-size {}");
    if (o->env && (strchr(o->env, '=') == NULL || *o->env == '='))
        return gp_err_set(err, GP_EUSAGE, "--env takes NAME={}, not '%s'", o->env);
    if (!has_hole(argv, (size_t)count, o->env))
        return gp_err_set(err, GP_EUSAGE,
                          "no place for the batch size: write {} where it belongs, as in "
                          "--batch-size {}, or use --env NAME={}");
    if (given->gpus.share)
        return gp_err_set(
            err, GP_EUSAGE,
            "--share cannot be combined with fit-batch: other processes would distort its result");
    if (o->margin > 90)
        return gp_err_set(err, GP_EUSAGE, "--margin takes 0 to 90 percent");
    if (!o->until && o->steady_ns >= o->run.timeout_ns)
        return gp_err_set(err, GP_EUSAGE,
                          "--trial-timeout (%.3g s) must be longer than --steady (%.3g s), or no "
                          "trial could finish",
                          (double)o->run.timeout_ns / 1e9, (double)o->steady_ns / 1e9);
    int r = check_confirm(o, err);
    return r < 0 ? r : gp_fit_check(&request, err);
}

/* ---- --dry-run ---- */

static void add_sizes(struct gp_strbuf *sb, const struct gp_fit_search *s)
{
    const struct gp_fit_request *r = &s->fit.request;
    struct gp_fit fit = s->fit;
    struct gp_fit_trial trial;
    gp_strbuf_adds(sb, "batch sizes: ");
    for (uint64_t i = 0; i < PLANNED_SIZES && gp_fit_next(&fit, &trial) && !trial.is_confirming;
         i++) {
        gp_strbuf_addf(sb, "%s%llu", i > 0 ? ", " : "", (unsigned long long)trial.batch);
        gp_fit_take(&fit, GP_FIT_OK, i + 1, 0);
    }
    gp_strbuf_addf(
        sb, " as long as they fit, then sizes computed from their memory use; at most %u trials",
        r->trials);
    if (r->max)
        gp_strbuf_addf(sb, ", up to %llu", (unsigned long long)r->max);
    if (r->multiple > 1)
        gp_strbuf_addf(sb, ", multiples of %llu", (unsigned long long)r->multiple);
    gp_strbuf_addc(sb, '\n');
}

struct preview {
    const struct fit_options *options;
    struct gp_fit_search *search;
};

static int show_plan(void *context, const struct gp_snapshot *snapshot, const struct gp_pick *pick,
                     struct gp_err *err)
{
    static struct gp_watch watch; /* large */
    const struct preview *p = context;
    struct gp_fit_search *s = p->search;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    int r = 0;
    if (pick->state != GP_PICK_FITS)
        gp_strbuf_addf(&sb, "must wait: %s\n", pick->why);
    for (size_t i = 0; i < pick->chosen_count; i++)
        gp_watch_grant(&watch, pick->units[pick->chosen[i]].device);
    if (pick->state == GP_PICK_FITS)
        r = gp_fit_search_init(s, &watch, err);
    if (r == 0 && pick->state == GP_PICK_FITS) {
        gp_strbuf_adds(&sb, "GPU: ");
        gp_job_add_mask(&sb, snapshot, pick, p->options->gpus.uuid);
        gp_strbuf_addf(&sb, " (%.2f GiB free, trials may use %.2f GiB)\n",
                       (double)s->fit.request.capacity_bytes / 0x1p30,
                       (double)s->fit.goal_bytes / 0x1p30);
        add_sizes(&sb, s);
        gp_strbuf_adds(&sb, "first trial: ");
        gp_fit_add_command(&sb, s, s->fit.next.batch);
        gp_strbuf_addc(&sb, '\n');
    }
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* ---- the command ---- */

static int report(const struct gp_fit *fit, const struct fit_options *o, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    const uint64_t batch = gp_fit_answer(fit).batch;
    if (strcmp(o->format, "json") == 0)
        gp_fit_add_json(&sb, fit);
    else if (!o->plan.run.quiet)
        gp_fit_add_text(&sb, fit);
    else if (batch)
        gp_strbuf_addf(&sb, "%llu\n", (unsigned long long)batch);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r < 0 ? r : gp_fit_explain_end(fit, err);
}

static int find(struct gp_fit_search *s, const struct fit_options *o, struct gp_err *err)
{
    const struct gp_watch *watch = &s->run->watch;
    int r = gp_fit_search_init(s, watch, err);
    if (r < 0)
        return r;
    gp_watch_say(watch, "on %s, %.2f GiB free; output of the trials: %s", s->run->gpus.place,
                 (double)s->fit.request.capacity_bytes / 0x1p30,
                 watch->record.path[0] ? watch->record.path : "nowhere");
    r = gp_fit_search_run(s, err);
    if (r == 0)
        return report(&s->fit, o, err);
    if (s->fit.end != GP_FIT_END_SEARCHING && strcmp(o->format, "json") == 0)
        (void)!report(&s->fit, o, NULL); /* err has the details */
    return r;
}

/* A directory given by the user is created before waiting for GPUs; our own is created when it is
 * needed. */
static int reserve_and_find(struct gp_fit_search *s, const struct fit_options *o, int words,
                            struct gp_err *err)
{
    struct gp_run *run = s->run;
    struct gp_sampler *sampler = NULL;
    struct gp_err why;
    int r = o->dir ? gp_record_open(&run->watch.record, o->dir, gp_clock_wall_ns(), err) : 0;
    if (r == 0)
        r = gp_job_reserve(run, &s->run_plan, &o->gpus, s->template, words, &sampler, err);
    if (r == 0 && !o->dir && gp_record_open(&run->watch.record, NULL, gp_clock_wall_ns(), &why) < 0)
        gp_watch_tell_error(&run->watch, &why); /* the trials run without it */
    if (r == 0)
        r = find(s, o, err);
    gp_job_release(run, sampler);
    return r;
}

static int run_search(const struct fit_options *o, char *const *words, int count,
                      struct gp_err *err)
{
    static struct gp_run run; /* large */
    static struct gp_fit_search s;
    const char *pattern = o->plan.until;
    struct preview preview = {o, &s};
    regex_t until;
    int r = pattern ? gp_expression_compile(&until, "--until", pattern, REG_NOSUB, err) : 0;
    if (r < 0)
        return r;
    gp_run_init(&run);
    run.watch.tell = gp_job_print;
    gp_fit_search_prepare(&s, &o->plan, &run, words, (size_t)count);
    s.until = pattern ? &until : NULL;
    gp_fit_warn_of_environment(&run.watch);
    if (!o->dry_run)
        r = reserve_and_find(&s, o, count, err);
    else if (!o->plan.run.quiet)
        r = gp_job_preview(&o->gpus, o->plan.run.gpus.wait_ns, show_plan, &preview, err);
    s.until = NULL;
    if (pattern)
        regfree(&until);
    if (r == GP_EINTR && gp_child_exit_status(&run.child) == 128 + SIGINT)
        gp_io_print_error("gpulse", err); /* the next signal terminates this process */
    gp_child_end_as(&run.child);
    return r;
}

static int fit_batch_main(int argc, char **argv, struct gp_err *err)
{
    struct fit_options o = {
        .gpus = GP_JOB_DEFAULTS,
        .plan = {.run = {.timeout_ns = TRIAL_S * GP_NS_PER_S,
                         .sample_ns = SAMPLE_MS * GP_NS_PER_MS},
                 .min = 1,
                 .multiple = 1,
                 .margin = MARGIN_PERCENT,
                 .steady_ns = STEADY_S * GP_NS_PER_S},
        .format = "text",
    };
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_fit_batch, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = check_options(&o, argv + 1, positional, err);
    return r < 0 ? r : run_search(&o, argv + 1, positional, err);
}

const struct gp_cmd gp_cmd_fit_batch = {
    .name = "fit-batch",
    .summary = "find the largest batch size that fits the GPU",
    .usage = "[options] -- COMMAND...",
    .description =
        "Runs the command repeatedly, with a batch size in place of {}, on GPUs that it reserves "
        "as gpulse run does, and watches its GPU memory. Each trial is a new process, which is "
        "stopped when its memory has not risen for a while. Memory is modeled as a + b * batch: "
        "after three trials the next size is computed, so about eight trials are enough.\n"
        "\n"
        "The result leaves a margin, because a short trial sees no evaluation, no checkpoint and "
        "not the longest sample. It is then run again for longer: if its memory keeps growing, the "
        "rate and the time until the GPU is full are reported. To detect slow growth, use a longer "
        "--confirm. With several GPUs the fullest counts. Whether the batch size is per GPU or for "
        "all GPUs together depends on the program.\n"
        "\n"
        "A trial that makes no progress is stopped and counts as too large; two of them end the "
        "search. A trial that spins in a busy loop is stopped only by --until or "
        "--trial-timeout.\n"
        "\n"
        "Trials run with XLA_PYTHON_CLIENT_PREALLOCATE=false and TF_FORCE_GPU_ALLOW_GROWTH=true, "
        "unless these are set: a program that allocates GPU memory in advance uses the same amount "
        "at every size. Train with the same variables. A program that still takes most of the "
        "memory at every size is refused.\n"
        "\n"
        "A trial that fails for any reason other than GPU memory ends the search, and its last "
        "lines are printed. A different batch size may need a different learning rate.\n"
        "\n"
        "A result is uncertain if its memory grows, or if a larger size hung.",
    .examples =
        "gpulse fit-batch -- python train.py --batch-size {}\tfind the largest batch size\n"
        "gpulse fit-batch --multiple 8 --max 512 --until 'step 20' -- python train.py "
        "bs={}\tmultiples of 8, 20 steps each\n"
        "gpulse fit-batch --margin 2 --confirm 10m -- python train.py --bs {}\tconfirm for ten "
        "minutes\n",
    .options = options,
    .no_loop = true,
    .raw_rest = true,
    .exit_codes = "0\ta confirmed batch size\n"
                  "1\tno batch size found, or failed\n"
                  "2\twrong usage\n"
                  "3\tno GPU, or none that matches\n"
                  "4\tdriver problem\n"
                  "5\tpermission denied\n"
                  "6\tan uncertain batch size: its memory grows, or a larger one hung\n"
                  "69\tnot enough free GPUs\n"
                  "75\tstill not enough when --wait ran out\n"
                  "78\tthe request can never be met\n"
                  "130\tinterrupted\n",
    .run = fit_batch_main,
};
