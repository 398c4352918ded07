#include "jobs/fit_search.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/outfile.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "proc/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WORKS_MIB = 300, /* a program with more memory does more than hold a context */
    TAIL_LINES = 20, /* bytes shown of a failed trial's output */
    TAIL_BYTES = 8192,
    CONFIRM_TIMES = 3, /* how much longer the confirming run is, by default */
    CONFIRM_LEAST_S = 3,
    MASKED_PERCENT = 97, /* percent in use above which a library that fails to initialize lacks
                            memory */
};

/* Settings that make frameworks allocate memory on demand: only then does memory depend on the
 * batch size. */
static const struct {
    const char *name, *variable;
    const char *values[2]; /* the values that do */
    const char *who;
} as_needed[] = {
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_PREALLOCATE=false", {"false", "0"}, "JAX"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", "TF_FORCE_GPU_ALLOW_GROWTH=true", {"true", "1"}, "TensorFlow"},
};

/* ---- the command ---- */

/* Replaces every {} by the number. NULL if out of memory. */
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

static char **fill_command(const struct gp_fit_search *s, uint64_t batch)
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

/* False if out of memory. */
static bool fill_variables(struct gp_fit_search *s, uint64_t batch)
{
    size_t n = 0;
    const char *env = s->plan->env;
    bool ok = true;
    if (env)
        ok = (s->variables[n++] = fill(env, batch));
    for (size_t i = 0; ok && i < GP_ARRAY_LEN(as_needed); i++)
        if (!getenv(as_needed[i].name))
            ok = (s->variables[n++] = strdup(as_needed[i].variable));
    return ok;
}

static void free_variables(struct gp_fit_search *s)
{
    for (size_t i = 0; i < GP_FIT_VARIABLES; i++) {
        free(s->variables[i]);
        s->variables[i] = NULL;
    }
}

void gp_fit_warn_of_environment(const struct gp_watch *watch)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(as_needed); i++) {
        const char *value = getenv(as_needed[i].name);
        if (value && strcasecmp(value, as_needed[i].values[0]) != 0 &&
            strcmp(value, as_needed[i].values[1]) != 0)
            gp_watch_warn(watch,
                          "%s=%.40s is already set and stays so: %s preallocates GPU memory, which "
                          "makes all batch sizes look alike; unset it to measure",
                          as_needed[i].name, value, as_needed[i].who);
    }
}

void gp_fit_add_command(struct gp_strbuf *sb, const struct gp_fit_search *s, uint64_t batch)
{
    struct gp_fit_search copy = {.plan = s->plan, .template = s->template, .words = s->words};
    char **argv = fill_command(&copy, batch);
    if (argv && fill_variables(&copy, batch)) {
        for (size_t i = 0; copy.variables[i]; i++)
            gp_strbuf_addf(sb, "%s ", copy.variables[i]);
        for (size_t i = 0; argv[i]; i++) {
            gp_strbuf_adds(sb, i > 0 ? " " : "");
            gp_utf8_add_safe(sb, argv[i], strlen(argv[i]), SIZE_MAX);
        }
    }
    free_variables(&copy);
    free_command(argv);
}

/* ---- a trial ---- */

/* The maximum over its GPUs. */
static double peak_of(const struct gp_watch *watch)
{
    double peak = 0;
    for (size_t i = 0; i < watch->gpu_count; i++)
        peak = watch->gpus[i].use.peak > peak ? watch->gpus[i].use.peak : peak;
    return peak;
}

/* A GPU that does not report its utilization counts as busy. */
static bool has_computed(const struct gp_watch_use *use)
{
    return use->busy_sum > 0 || use->busy_count == 0;
}

/* Whether a GPU was busy since the last sample. */
static bool is_busy(struct gp_fit_search *s, const struct gp_watch *watch)
{
    const double before = s->busy_sum;
    bool is_reported = false;
    s->busy_sum = 0;
    for (size_t i = 0; i < watch->gpu_count; i++) {
        s->busy_sum += watch->gpus[i].use.busy_sum;
        is_reported = is_reported || watch->gpus[i].use.busy_count > 0;
    }
    return s->busy_sum > before || !is_reported;
}

static struct gp_fit_look look_at(struct gp_fit_search *s, const struct gp_watch *watch)
{
    struct stat log;
    struct gp_fit_look look = {
        .now_ns = gp_clock_mono_ns(),
        .cpu_ns = s->watch.last.cpu_ns,
        .is_busy = is_busy(s, watch),
        .gpu_count = watch->gpu_count < GP_FIT_GPUS ? watch->gpu_count : GP_FIT_GPUS,
    };
    if (fstat(s->run_plan.output.to, &log) == 0)
        look.printed_bytes = (uint64_t)log.st_size;
    if (gp_fit_watch_needs_cpu(&s->watch, look.now_ns))
        look.cpu_ns = gp_proc_descendants_cpu_ns((uint32_t)getpid());
    for (size_t i = 0; i < look.gpu_count; i++) {
        const struct gp_watch_use *use = &watch->gpus[i].use;
        look.bytes[i] = use->last;
        look.works = look.works || (has_computed(use) && use->peak > (double)WORKS_MIB * 0x1p20);
    }
    return look;
}

static enum gp_watch_order judge(void *context, struct gp_watch *watch)
{
    struct gp_fit_search *s = context;
    const struct gp_fit_look look = look_at(s, watch);
    enum gp_fit_stop stop = gp_fit_watch_take(&s->watch, &look);
    if (stop == GP_FIT_GO_ON || watch->ended_by)
        return GP_WATCH_GO_ON;
    watch->ended_by = gp_fit_stop_word(stop);
    return GP_WATCH_STOP;
}

static bool was_ended_by(const struct gp_fit_search *s, const char *what)
{
    const char *ended_by = s->run->watch.ended_by;
    return ended_by && strcmp(ended_by, what) == 0;
}

/* A trial stopped by its time limit has hung if the --until line was not printed, or if it never
 * used a GPU. */
static bool has_hung(const struct gp_fit_search *s)
{
    const struct gp_fit_rules *rules = &s->watch.rules;
    bool lacks_line = rules->has_line && !rules->is_confirming;
    return was_ended_by(s, gp_fit_stop_word(GP_FIT_STALLED)) ||
           (was_ended_by(s, "timeout") && (lacks_line || s->watch.since_ns == 0));
}

static bool is_full(const struct gp_fit_search *s)
{
    return peak_of(&s->run->watch) > (double)s->fit.request.capacity_bytes * MASKED_PERCENT / 100;
}

static bool is_out_of_memory(const struct gp_fit_search *s, bool failed)
{
    const struct gp_watch *watch = &s->run->watch;
    return gp_watch_had(watch, GP_FAILURE_GPU) ||
           (failed && gp_watch_had(watch, GP_FAILURE_MASKED) && is_full(s));
}

/* In a long run, memory that ran out also counts as growth. */
static enum gp_fit_verdict verdict_of(const struct gp_fit_search *s, int status)
{
    const struct gp_watch *watch = &s->run->watch;
    bool failed = status != 0 && !watch->ended_by;
    bool is_oom = is_out_of_memory(s, failed);
    bool is_long = s->watch.rules.is_confirming;
    if (was_ended_by(s, gp_fit_stop_word(GP_FIT_GROWING)) ||
        (is_long && (is_oom || !failed) && gp_fit_watch_growth(&s->watch) > 0))
        return GP_FIT_GROWS;
    if (is_oom)
        return GP_FIT_OOM;
    if (failed)
        return gp_watch_had(watch, GP_FAILURE_HOST) ? GP_FIT_HOST : GP_FIT_CRASH;
    return has_hung(s) ? GP_FIT_HUNG : GP_FIT_OK;
}

/* Opens the log of this trial; −1 on error, with err filled. */
static int open_log(struct gp_fit_search *s, const struct gp_fit_trial *trial, struct gp_err *err)
{
    struct gp_err why;
    const char *folder = s->run->watch.record.path;
    int n = snprintf(s->log, sizeof(s->log), "%s/trial-%zu-batch-%llu.log", folder,
                     s->fit.trial_count + 1, (unsigned long long)trial->batch);
    bool is_kept = *folder && n > 0 && (size_t)n < sizeof(s->log);
    if (!is_kept)
        s->log[0] = '\0';
    int fd = gp_outfile_create(is_kept ? s->log : "/dev/null", 0, 0600, &why);
    if (fd < 0)
        (void)gp_err_set(
            err, why.code,
            "cannot write the output of the trials to %s: %s; choose another directory with --dir",
            s->log, why.text);
    else
        (void)!ftruncate(fd, 0);
    return fd;
}

/* How long the run that confirms the result is watched; 0: until it exits. */
static uint64_t confirm_ns(const struct gp_fit_search *s)
{
    const struct gp_fit_plan *o = s->plan;
    const uint64_t least_ns = CONFIRM_LEAST_S * GP_NS_PER_S;
    uint64_t short_ns = s->until && s->longest_ns ? s->longest_ns : o->steady_ns;
    if (o->confirm)
        return o->confirm_ns;
    return CONFIRM_TIMES * short_ns > least_ns ? CONFIRM_TIMES * short_ns : least_ns;
}

/* How a trial is judged. */
static void learn(struct gp_fit_search *s)
{
    for (size_t i = 0; i < s->fit.trial_count; i++) {
        const struct gp_fit_trial *t = &s->fit.trials[i];
        if (t->verdict != GP_FIT_OK || t->is_confirming)
            continue;
        s->longest_ns = t->took_ns > s->longest_ns ? t->took_ns : s->longest_ns;
        s->settle_ns = t->settled_ns > s->settle_ns ? t->settled_ns : s->settle_ns;
    }
}

/* The rules and the limits of a trial depend on those before it. */
static void begin_watch(struct gp_fit_search *s, bool is_confirming)
{
    const struct gp_fit_plan *o = s->plan;
    const struct gp_fit_rules rules = {
        .is_confirming = is_confirming,
        .has_line = s->until,
        .steady_ns = o->steady_ns,
        .confirm_ns = confirm_ns(s),
        .hang_ns = o->hang_ns ? o->hang_ns : gp_fit_hang_ns(s->longest_ns),
        .settle_ns = s->settle_ns,
    };
    s->busy_sum = 0;
    s->run_plan.output.until = is_confirming ? NULL : s->until;
    s->run_plan.timeout_ns = gp_fit_limit_ns(s->longest_ns, o->run.timeout_ns);
    if (is_confirming)
        s->run_plan.timeout_ns = rules.confirm_ns ? s->run_plan.timeout_ns + rules.confirm_ns : 0;
    gp_fit_watch_begin(&s->watch, &rules, gp_clock_mono_ns());
}

static int run_command(struct gp_fit_search *s, char *const *argv, int *ret_status,
                       struct gp_err *err)
{
    struct gp_run *run = s->run;
    const bool quiet = run->watch.quiet;
    run->watch.quiet = true; /* not reported: a trial that was stopped may leave processes */
    *ret_status = gp_run_once(run, argv, err);
    run->watch.quiet = quiet;
    if (*ret_status < 0)
        return *ret_status;
    return run->is_lost ? gp_err_set(err, GP_EIO,
                                     "cannot write the output of the trials to %s; free some space "
                                     "there, or choose another directory with --dir",
                                     s->log)
                        : 0;
}

static int run_trial(struct gp_fit_search *s, const struct gp_fit_trial *trial, int *ret_status,
                     struct gp_err *err)
{
    char **argv = fill_command(s, trial->batch);
    int r =
        argv && fill_variables(s, trial->batch) ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
    s->run_plan.variables = s->variables;
    begin_watch(s, trial->is_confirming);
    s->run_plan.output.to = r == 0 ? open_log(s, trial, err) : -1;
    if (r == 0)
        r = s->run_plan.output.to < 0 ? GP_EIO : run_command(s, argv, ret_status, err);
    if (s->run_plan.output.to >= 0)
        (void)close(s->run_plan.output.to);
    free_command(argv);
    free_variables(s);
    return r;
}

/* ---- ending the search ---- */

/* The last lines of the log, to find out why the trial failed. */
static void tell_tail(const struct gp_fit_search *s)
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
    gp_watch_tell_more(&s->run->watch, from);
}

/* "the largest size that fitted so far is 64", for a search that stops early. */
static const char *best_so_far(const struct gp_fit_search *s)
{
    static char text[80];
    const unsigned long long best = gp_fit_best(&s->fit);
    if (best == 0)
        return "no size has fitted yet";
    (void)snprintf(text, sizeof(text), "the largest size that fitted so far is %llu", best);
    return text;
}

/* Whether the search can continue after this trial. */
static int check_trial(struct gp_fit_search *s, const struct gp_fit_trial *trial,
                       enum gp_fit_verdict verdict, int status, struct gp_err *err)
{
    const unsigned long long batch = trial->batch;
    if (s->run->child.pid < 0)
        return gp_err_set(err, GP_EFAIL, "the command cannot be run");
    bool is_back = gp_run_await_memory(s->run);
    if (gp_child_was_interrupted(&s->run->child))
        return gp_err_set(err, GP_EINTR, "interrupted; %s", best_so_far(s));
    if (verdict == GP_FIT_CRASH || verdict == GP_FIT_HOST) {
        tell_tail(s);
        return gp_err_set(err, GP_EFAIL,
                          "the trial with batch %llu failed with status %d%s%s; %s%s%s", batch,
                          status, verdict == GP_FIT_CRASH ? "" : ": ",
                          verdict == GP_FIT_CRASH ? ", but not for lack of GPU memory"
                                                  : gp_fit_end_text(GP_FIT_END_AT_HOST),
                          best_so_far(s), s->log[0] ? "; see " : "", s->log);
    }
    if (verdict == GP_FIT_OK && peak_of(&s->run->watch) <= 0) {
        tell_tail(s);
        return gp_err_set(err, GP_EFAIL,
                          "the trial with batch %llu used no GPU; check that the command trains on "
                          "a GPU, and runs long enough to be sampled",
                          batch);
    }
    if (!is_back)
        return gp_err_set(
            err, GP_EFAIL,
            "the GPU memory of a trial was not freed, which would distort the next one; %s",
            best_so_far(s));
    return 0;
}

/* ---- the search ---- */

static void add_seconds(struct gp_strbuf *sb, uint64_t ns)
{
    gp_strbuf_addf(sb, "%.*f s", ns < 10 * GP_NS_PER_S ? 1 : 0, (double)ns / 1e9);
}

static void add_hang(struct gp_strbuf *sb, const struct gp_fit_search *s)
{
    if (was_ended_by(s, gp_fit_stop_word(GP_FIT_STALLED))) {
        gp_strbuf_adds(sb, ": stopped after ");
        add_seconds(sb, s->watch.rules.hang_ns);
        gp_strbuf_adds(sb, " without output, CPU use or a change in GPU memory");
    } else {
        gp_strbuf_adds(sb, ": stopped at its time limit of ");
        add_seconds(sb, s->run_plan.timeout_ns);
        gp_strbuf_adds(sb, s->until ? ", before the --until line" : ", without using a GPU");
    }
}

static void say_result(const struct gp_fit_search *s)
{
    const struct gp_fit_trial *t = &s->fit.trials[s->fit.trial_count - 1];
    struct gp_strbuf sb = GP_STRBUF_INIT(1000);
    gp_strbuf_addf(&sb, "%s with batch %llu: %s, %.2f GiB", t->is_confirming ? "long run" : "trial",
                   (unsigned long long)t->batch, gp_fit_verdict_word(t->verdict),
                   (double)t->peak_bytes / 0x1p30);
    if (t->verdict == GP_FIT_GROWS)
        gp_strbuf_addf(&sb, ", rising by %.1f MiB/min", t->growth_bytes_s * 60 / 0x1p20);
    if (t->verdict == GP_FIT_HUNG)
        add_hang(&sb, s);
    gp_strbuf_addf(&sb, " (%.0f s)", (double)t->took_ns / 1e9);
    gp_watch_say(&s->run->watch, "%s", sb.buf);
    gp_strbuf_fini(&sb);
}

static void say_confirming(const struct gp_fit_search *s, uint64_t batch)
{
    uint64_t ns = confirm_ns(s);
    if (ns == 0)
        gp_watch_say(&s->run->watch,
                     "batch %llu runs to its end, to check whether its memory grows",
                     (unsigned long long)batch);
    else
        gp_watch_say(&s->run->watch,
                     "batch %llu runs for up to %.0f s more, to check whether its memory grows",
                     (unsigned long long)batch, (double)ns / 1e9);
}

static int step(struct gp_fit_search *s, const struct gp_fit_trial *trial, struct gp_err *err)
{
    int status = 0;
    const uint64_t began_ns = gp_clock_mono_ns();
    learn(s);
    if (trial->is_confirming)
        say_confirming(s, trial->batch);
    int r = run_trial(s, trial, &status, err);
    if (r < 0)
        return r;
    const uint64_t took_ns = gp_clock_mono_ns() - began_ns;
    const enum gp_fit_verdict verdict = verdict_of(s, status);
    const double peak = peak_of(&s->run->watch);
    r = check_trial(s, trial, verdict, status, err);
    if (r == GP_EINTR)
        return r;
    gp_fit_take(&s->fit, verdict, (uint64_t)peak,
                verdict == GP_FIT_GROWS ? gp_fit_watch_growth(&s->watch) : 0);
    struct gp_fit_trial *taken = &s->fit.trials[s->fit.trial_count - 1];
    taken->took_ns = took_ns;
    if (s->watch.risen_ns > began_ns)
        taken->settled_ns = s->watch.risen_ns - began_ns;
    if (r == 0)
        gp_fit_cache_write(&s->cache, &s->fit);
    say_result(s);
    return r;
}

struct gp_fit_request gp_fit_request_of(const struct gp_fit_plan *o)
{
    return (struct gp_fit_request){
        .min = o->min,
        .start = o->start,
        .max = o->max,
        .multiple = o->multiple,
        .margin = (double)o->margin / 100,
        .confirm = !o->confirm || strcmp(o->confirm, "no") != 0,
    };
}

void gp_fit_search_prepare(struct gp_fit_search *s, const struct gp_fit_plan *o, struct gp_run *run,
                           char *const *words, size_t count)
{
    *s = (struct gp_fit_search){
        .plan = o, .run_plan = o->run, .run = run, .template = words, .words = count};
    s->run_plan.is_detached = true; /* Ctrl-C stops the search, too */
    s->run_plan.judge = judge;
    s->run_plan.context = s;
}

int gp_fit_search_init(struct gp_fit_search *s, const struct gp_watch *watch, struct gp_err *err)
{
    double free_bytes = watch->gpus[0].free;
    double total_bytes = watch->gpus[0].total;
    for (size_t i = 1; i < watch->gpu_count; i++) {
        free_bytes = watch->gpus[i].free < free_bytes ? watch->gpus[i].free : free_bytes;
        total_bytes = watch->gpus[i].total < total_bytes ? watch->gpus[i].total : total_bytes;
    }
    struct gp_fit_request request = gp_fit_request_of(s->plan);
    request.capacity_bytes = (uint64_t)free_bytes;
    request.total_bytes = (uint64_t)total_bytes;
    return gp_fit_init(&s->fit, &request, err);
}

/* What the trials depend on besides the command. */
static void describe_trials(const struct gp_fit_search *s, char *text, size_t size)
{
    const struct gp_fit_plan *o = s->plan;
    const char *conf = getenv("PYTORCH_CUDA_ALLOC_CONF");
    size_t n = (size_t)snprintf(
        text, size, "%zu GPUs, env %s, until %s, steady %llu, timeout %llu, allocator %s",
        s->run->watch.gpu_count, o->env ? o->env : "", o->until ? o->until : "",
        (unsigned long long)o->steady_ns, (unsigned long long)o->run.timeout_ns, conf ? conf : "");
    for (size_t i = 0; i < GP_ARRAY_LEN(as_needed) && n < size; i++) {
        const char *value = getenv(as_needed[i].name);
        n += (size_t)snprintf(text + n, size - n, ", %s %s", as_needed[i].name, value ? value : "");
    }
}

int gp_fit_search_run(struct gp_fit_search *s, struct gp_err *err)
{
    struct gp_fit_trial trial;
    char more[1024];
    int r = 0;
    describe_trials(s, more, sizeof(more));
    gp_fit_cache_open(&s->cache, &s->fit, s->template, s->words, more,
                      s->plan->confirm ? s->plan->confirm : "");
    size_t known = s->plan->fresh ? 0 : gp_fit_cache_replay(&s->cache, &s->fit);
    if (known)
        gp_watch_say(&s->run->watch, "reusing %zu earlier trial%s (--fresh repeats them)", known,
                     known == 1 ? "" : "s");
    while (r == 0 && gp_fit_next(&s->fit, &trial))
        r = step(s, &trial, err);
    return r;
}
