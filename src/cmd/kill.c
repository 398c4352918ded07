/* gpulse kill: ends processes on the GPUs and sees to it that their memory comes back. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/proc_choice.h"
#include "cmd/proc_end.h"
#include "cmd/proc_idle.h"

#include "base/err.h"
#include "base/parse.h"
#include "model/snapshot.h"
#include "out/procs.h"

#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 1024 };

struct kill_options {
    struct gp_proc_choice choice;
    const char *filter, *name;
    bool all;
    uint64_t idle_ns;
    struct gp_end_options end;
};

#define OPT(field) offsetof(struct kill_options, field)

static const struct gp_opt options[] = {
    GP_PROC_CHOICE_ROWS(struct kill_options, choice),
    {0, "name", NULL, GP_OPT_STRING, "TEXT", .offset = OPT(name),
     .help = "only processes with this in their command line"},
    {0, "filter", NULL, GP_OPT_STRING, "WORDS", .offset = OPT(filter),
     .help = "only processes with all of these words, as in gpulse ps"},
    {'a', "all", NULL, GP_OPT_FLAG, .offset = OPT(all), .help = "all processes on the chosen GPUs"},
    GP_IDLE_ROW(struct kill_options, idle_ns),
    GP_END_ROWS(struct kill_options, end),
    GP_OPT_END,
};

struct kill_run {
    char filter[4096];
    int64_t named[NAMED_MAX];
    size_t named_count;
};

/* ---- who is meant ---- */

static int add_named(struct kill_run *run, const char *text, size_t n, struct gp_err *err)
{
    char digits[24];
    uint64_t pid;
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)(n < sizeof(digits) ? n : 0), text);
    if (!gp_parse_u64(digits, &pid) || pid > INT32_MAX)
        return gp_err_set(err, GP_EUSAGE, "'%.*s' is no process id", (int)(n < 60 ? n : 60), text);
    if (run->named_count == NAMED_MAX)
        return gp_err_set(err, GP_EUSAGE, "at most %d processes can be named", (int)NAMED_MAX);
    run->named[run->named_count++] = (int64_t)pid;
    return 0;
}

/* "1,2,3" */
static int add_list(struct kill_run *run, const char *list, struct gp_err *err)
{
    int r = 0;
    for (const char *p = list; r == 0 && *p;) {
        size_t n = strcspn(p, ",");
        if (n > 0)
            r = add_named(run, p, n, err);
        p += n + (p[n] == ',');
    }
    return r;
}

/* Words of a filter, with blanks between. */
static int add_words(struct kill_run *run, const char *words, struct gp_err *err)
{
    for (const char *p = words ? words : ""; *p;) {
        size_t length = strlen(run->filter);
        size_t n = strcspn(p, " ");
        int more = n == 0 ? 0
                          : snprintf(run->filter + length, sizeof(run->filter) - length, "%s%.*s",
                                     length ? " " : "", (int)n, p);
        if (more < 0 || (size_t)more >= sizeof(run->filter) - length)
            return gp_err_set(err, GP_EUSAGE, "too many words to choose processes by");
        p += n + (p[n] == ' ');
    }
    return 0;
}

/* A choice that was given and says nothing, as an empty variable of a script does, would choose
 * all. */
static int check_given(const struct kill_options *o, char *const *arguments, int count,
                       struct gp_err *err)
{
    const struct {
        const char *option, *value;
    } given[] = {{"--pid", o->choice.pid}, {"--name", o->name}, {"--filter", o->filter}};
    for (size_t i = 0; i < GP_ARRAY_LEN(given); i++)
        if (given[i].value && !given[i].value[strspn(given[i].value, " ,")])
            return gp_err_set(err, GP_EUSAGE, "%s is empty", given[i].option);
    for (int i = 0; i < count; i++)
        if (!arguments[i][strspn(arguments[i], " ,")])
            return gp_err_set(err, GP_EUSAGE, "an argument is empty");
    return 0;
}

static int choose(struct kill_run *run, const struct kill_options *o, char *const *arguments,
                  int count, struct gp_err *err)
{
    struct gp_proc_choice choice = o->choice;
    int r = check_given(o, arguments, count, err);
    choice.pid = NULL; /* they are compared as numbers */
    for (int i = 0; r == 0 && i < count; i++)
        r = strspn(arguments[i], "0123456789,") == strlen(arguments[i])
                ? add_list(run, arguments[i], err)
                : add_words(run, arguments[i], err);
    if (r == 0 && o->choice.pid)
        r = add_list(run, o->choice.pid, err);
    if (r == 0)
        r = add_words(run, o->filter, err);
    if (r == 0)
        r = gp_proc_choice_add(&choice, run->filter, sizeof(run->filter), err);
    if (r == 0 && !o->all && !o->idle_ns && !o->name && !run->filter[0] && run->named_count == 0)
        r = gp_err_set(err, GP_EUSAGE,
                       "say who is meant: process ids, --user, --job, --container, --name, "
                       "--idle, or --all for all on the chosen GPUs");
    if (r == 0 && o->all && (o->name || run->filter[0] || run->named_count > 0))
        r = gp_err_set(err, GP_EUSAGE, "--all goes with no other choice than --id");
    return r;
}

/* Those that were named and are not there are told: a wrong number is not passed over. */
static int check_named(const struct kill_run *run, const struct gp_procs *procs, struct gp_err *err)
{
    for (size_t i = 0; i < run->named_count; i++) {
        bool found = false;
        for (size_t j = 0; j < procs->count; j++)
            found = found || procs->rows[j].pid == run->named[i];
        if (!found)
            return gp_err_set(
                err, GP_EFAIL,
                "process %lld is not among those on the chosen GPUs that all choices fit; "
                "gpulse ps lists them, gpulse ps --holders those that the driver does "
                "not list",
                (long long)run->named[i]);
    }
    return 0;
}

static void keep_named(const struct kill_run *run, const char *name, struct gp_procs *procs)
{
    size_t kept = 0;
    for (size_t i = 0; i < procs->count; i++) {
        const struct gp_proc_row *row = &procs->rows[i];
        if ((run->named_count == 0 || gp_procs_has_pid(run->named, run->named_count, row->pid)) &&
            (!name || (row->command && strstr(row->command, name))))
            procs->rows[kept++] = *row;
    }
    procs->count = kept;
}

/* ---- running ---- */

static int kill_chosen(struct gp_sampler *sampler, const struct kill_run *run,
                       const struct kill_options *o, struct gp_err *err)
{
    const struct gp_procs_options rows = {
        .order = {.by = {{GP_PROC_MEMORY_COLUMN, false}}, .count = 1},
        .filter = run->filter,
        .gpu = -1,
    };
    struct gp_snapshot *snapshot = NULL;
    struct gp_procs procs = {.rows = NULL};
    struct gp_idle idle = {NULL, 0};
    int r = o->idle_ns ? gp_idle_watch(sampler, o->idle_ns, &idle, &snapshot, err)
                       : gp_sampler_tick(sampler, &snapshot, err);
    if (r < 0)
        return r;
    r = gp_procs_build(&procs, snapshot, &rows);
    if (r < 0)
        (void)gp_err_set(err, r, "out of memory");
    if (r == 0)
        r = check_named(run, &procs, err);
    keep_named(run, o->name, &procs);
    if (o->idle_ns)
        gp_idle_keep(&idle, &procs);
    if (r == 0 && snapshot->partial && procs.count == 0) {
        gp_app_explain_partial(snapshot, err);
        r = GP_EPARTIAL;
    }
    if (r == 0)
        r = gp_end_processes(sampler, snapshot, &procs, run->named, run->named_count, &o->end, err);
    gp_idle_fini(&idle);
    gp_procs_fini(&procs);
    gp_snapshot_free(snapshot);
    return r;
}

static int kill_main(int argc, char **argv, struct gp_err *err)
{
    struct kill_options o = {.filter = NULL};
    struct kill_run run = {.filter = ""};
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_kill, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = choose(&run, &o, argv + 1, positional, err);
    if (r < 0)
        return r;
    struct gp_want want = gp_end_want();
    if (o.idle_ns)
        gp_idle_want(&want.metrics);
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_sampler *sampler;
    r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = kill_chosen(sampler, &run, &o, err);
    gp_app_close(sampler);
    return r;
}

const struct gp_cmd gp_cmd_kill = {
    .name = "kill",
    .summary = "end processes on the GPUs and wait for their memory",
    .usage = "[PID|WORD...] [options]",
    .description =
        "Shows who is meant and asks. Then sends SIGINT, after 10 s SIGTERM, after 10 more "
        "SIGKILL, as long as some have not ended, waits until the driver has given their memory "
        "back, and "
        "tells what became of each.\n\n"
        "Processes are chosen by pid, by words as in the filter of gpulse ps (user:alice, "
        "job:4711, gpu:0, cmd:train), and by the options below; all that are given must hold. "
        "Without being root only one's own can be ended. The first process, gpulse itself and what "
        "it was started from, and threads of the kernel are always left alone, display servers "
        "unless they are named by pid.\n\n"
        "A pid that another process has been given since it was listed is not signalled.",
    .examples = "gpulse kill 4711\tone process\n"
                "gpulse kill --job 4711\tall of a job on this machine's GPUs\n"
                "gpulse kill -i 0 --user $USER --yes\tmy processes on GPU 0, without a question\n"
                "gpulse kill --name train.py --tree\ta training with its data loaders\n"
                "gpulse kill --user $USER --idle 10m\twhat I have forgotten\n"
                "gpulse kill -i 3 --all --dry-run\twho would be ended on GPU 3\n",
    .options = options,
    .no_loop = true,
    .run = kill_main,
};
