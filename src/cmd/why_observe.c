#include "cmd/why_observe.h"

#include "cmd/app.h"
#include "cmd/proc_choice.h"
#include "cmd/proc_idle.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "jobs/proc_selection.h"
#include "jobs/queue.h"
#include "model/snapshot.h"
#include "out/partial.h"
#include "proc/lease.h"
#include "source/player.h"
#include "why/gather.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { PID_MAX = 1 << 22, FILTER_SIZE = 1024 };

struct observe_run {
    const struct gp_observe_options *o;
    gp_observe_report *report;
    struct gp_why_asked asked;
    char filter[FILTER_SIZE];
    uint64_t samples; /* of an observation */
    uint64_t taken;
    uint64_t rounds; /* observations that have ended */
    struct gp_why_gather *gather;
    struct gp_sampler *sampler;
};

static int begin(struct observe_run *run, struct gp_err *err)
{
    const struct gp_observed *observed = gp_app_observed();
    run->taken = 0;
    gp_why_gather_free(run->gather);
    run->gather = gp_why_gather_new(
        observed->prefix, !gp_common()->tape && gp_observed_is_reachable(observed), run->asked);
    return run->gather ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}

static int print_report(struct observe_run *run, const struct gp_snapshot *snapshot,
                        struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    size_t count;
    bool is_text = strcmp(run->o->format, "text") == 0;
    if (run->rounds++ > 0 && is_text)
        gp_strbuf_addc(&sb, '\n');
    const struct gp_why_case *cases = gp_why_gather_cases(run->gather, &count);
    int r = 0;
    if (!cases)
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    else if (count == 0 && run->asked.filter)
        r = gp_proc_selection_refuse(run->asked.filter, snapshot, err);
    else if (count == 0 && run->asked.pid)
        r = gp_err_set(err, GP_ENODEV,
                       "neither process %u nor one that it started uses %s; gpulse ps lists those "
                       "that do",
                       run->asked.pid, gp_common()->id ? "the selected GPUs" : "a GPU");
    else if (count == 0 && is_text)
        gp_strbuf_adds(&sb, gp_common()->id ? "No process uses the selected GPUs.\n"
                                            : "No process uses a GPU.\n");
    else
        r = run->report(run->o, &sb, snapshot, cases, count, err);
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    if (r == 0)
        gp_partial_explain(snapshot, err);
    return r;
}

static int on_sample(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct observe_run *run = ctx;
    if (gp_why_gather_add(run->gather, snapshot) < 0)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    const bool is_live = !gp_common()->tape;
    if (++run->taken < run->samples && !gp_sampler_is_over(run->sampler)) {
        if (is_live && !run->o->watch)
            gp_idle_count_down(run->o->for_ns, (run->samples - run->taken) * run->o->interval_ns);
        return 0;
    }
    if (is_live && !run->o->watch)
        gp_idle_count_down(run->o->for_ns, 0);
    int r = print_report(run, snapshot, err);
    return r < 0 ? r : begin(run, err);
}

/* Whether the processes are those of this system, under their own pids. */
static bool is_here(void)
{
    const struct gp_observed *observed = gp_app_observed();
    return !gp_common()->tape && !observed->sim && !observed->prefix;
}

/* Which jobs: a process id, or a part of a name in gpulse queue. */
static int find_job(const char *word, uint32_t *ret_pid, struct gp_err *err)
{
    struct gp_leases leases;
    uint64_t pid;
    if (gp_parse_u64(word, &pid)) {
        *ret_pid = (uint32_t)pid;
        if (pid == 0 || pid > PID_MAX)
            return gp_err_set(err, GP_EUSAGE, "'%.80s' is not a process id", word);
        return is_here() && kill((pid_t)pid, 0) != 0 && errno == ESRCH
                   ? gp_err_set(err, GP_ENODEV, "there is no process %s", word)
                   : 0;
    }
    if (gp_common()->tape)
        return gp_err_set(err, GP_EUSAGE,
                          "'%.80s' is not a process id; the names of jobs are not in a recording",
                          word);
    int r = gp_leases_read_settled(NULL, &leases, err);
    if (r < 0)
        return r;
    r = gp_queue_find(&leases, word, ret_pid, err);
    gp_leases_fini(&leases);
    return r;
}

static int read_options(const struct gp_cmd *cmd, const struct gp_observe_options *o, int count,
                        struct gp_err *err)
{
    if (count > 1)
        return gp_err_set(err, GP_EUSAGE, "%s takes one process or job, got %d arguments",
                          cmd->name, count);
    if (count == 1 && o->job)
        return gp_err_set(err, GP_EUSAGE, "--job cannot be combined with a process or a job");
    if (strchr(o->format, ','))
        return gp_err_set(err, GP_EUSAGE, "--format takes one of: %s",
                          gp_cli_option(cmd->options, "format", strlen("format"), 0)->choices);
    if (o->watch && strcmp(o->format, "json") == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "-f json is one document; with --watch use -f ndjson, one per line");
    if (o->interval_ns < 100 * GP_NS_PER_MS)
        return gp_err_set(err, GP_EUSAGE, "--interval must be at least 0.1s");
    if (o->for_ns < 2 * o->interval_ns)
        return gp_err_set(err, GP_EUSAGE, "--for must be at least twice --interval");
    return 0;
}

static int read_asked(struct observe_run *run, const char *word, struct gp_err *err)
{
    const struct gp_proc_choice choice = {.job = run->o->job};
    if (word)
        return find_job(word, &run->asked.pid, err);
    run->asked.filter = run->o->job ? run->filter : NULL;
    return gp_proc_choice_add(&choice, run->filter, sizeof(run->filter), err);
}

/* Of a recording, the time before its end is observed, unless --at says another. */
static int open_sampler(struct observe_run *run, const struct gp_want *want,
                        const struct gp_loop *loop, struct gp_err *err)
{
    struct gp_source *source;
    struct gp_selection *selection;
    int r = gp_app_source(&source, &selection, err);
    if (r < 0)
        return r;
    if (source->player && !gp_common()->at)
        source->player->ops->ask(source->player, GP_PLAYER_SHIFT,
                                 -(int64_t)(run->o->for_ns / GP_NS_PER_US));
    return gp_app_open_source(source, selection, want, loop, &run->sampler, err);
}

int gp_observe_main(const struct gp_cmd *cmd, int argc, char **argv, struct gp_observe_options *o,
                    gp_observe_report *report, struct gp_err *err)
{
    struct observe_run run = {.o = o, .report = report};
    int positional;
    bool done;
    int r = gp_app_parse(cmd, argc, argv, o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = read_options(cmd, o, positional, err);
    if (r < 0)
        return r;
    run.samples = o->for_ns / o->interval_ns + 1;
    const struct gp_want want = gp_why_want();
    const struct gp_loop loop = {.interval_ns = o->interval_ns,
                                 .count = o->watch ? 0 : run.samples};
    r = open_sampler(&run, &want, &loop, err);
    if (r < 0)
        return r;
    r = read_asked(&run, positional == 1 ? argv[1] : NULL, err); /* now leases can be read */
    r = r < 0 ? r : begin(&run, err);
    if (r == 0)
        r = gp_app_loop(run.sampler, &loop, on_sample, &run, err);
    gp_app_close(run.sampler);
    gp_why_gather_free(run.gather);
    return r;
}
