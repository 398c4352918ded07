/* gpulse advise: what to change in a job that runs. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/why_observe.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/environment.h"
#include "out/json.h"
#include "proc/inspect.h"
#include "why/advice_report.h"

#include <string.h>

enum { INSPECT_S = 2 };

#define OPT(field) offsetof(struct gp_observe_options, field)

static const struct gp_opt options[] = {
    {0, "for", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(for_ns),
     .help = "observe for TIME (default 20s)"},
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(interval_ns),
     .help = "time between samples (default 0.5s)"},
    {0, "job", NULL, GP_OPT_STRING, "IDS", .offset = OPT(job),
     .help = "only these Slurm or PBS jobs"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format),
     .group = "Output", .help = "output format (default text)"},
    GP_OPT_END,
};

/* Everything about the process, if its environment can be read; NULL: it cannot. */
static struct gp_inspect *environment_of(const struct gp_why_case *c)
{
    static bool is_stuck; /* the next one could not be told from the one that hangs */
    const struct gp_observed *observed = gp_app_observed();
    struct gp_inspect *in = NULL;
    struct gp_err err;
    int r = gp_observed_is_reachable(observed) && c->pid > 0 && !is_stuck
                ? gp_environment_find(observed->prefix, c->pid,
                                      gp_app_timeout_ns(INSPECT_S * GP_NS_PER_S), &in, &err)
                : 0;
    if (r == GP_ETIMEOUT) {
        is_stuck = true;
        gp_app_note_stuck();
    }
    if (in && !in->error && !in->environment.error)
        return in;
    gp_inspect_free(in);
    return NULL;
}

/* Adds one GPU: to the list, or without one as text. */
static void add(struct gp_strbuf *sb, json_t *list, const struct gp_why_case *c)
{
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    struct gp_inspect *in = environment_of(c);
    const struct gp_advice_case a = {
        .c = c,
        .verdicts = verdicts,
        .verdict_count = gp_why_judge(c, verdicts),
        .knows_environment = in,
        .environment = in ? in->environment.items : NULL,
        .environment_count = in ? in->environment.count : 0,
    };
    if (list)
        (void)json_array_append_new(list, gp_advice_report_object(&a));
    else
        gp_advice_report_add(sb, &a, gp_io_columns());
    gp_inspect_free(in);
}

static int report(const struct gp_observe_options *o, struct gp_strbuf *sb,
                  const struct gp_snapshot *last, const struct gp_why_case *cases, size_t count,
                  struct gp_err *err)
{
    (void)err;
    json_t *list = strcmp(o->format, "json") == 0 ? json_array() : NULL;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !list)
            gp_strbuf_addc(sb, '\n');
        add(sb, list, &cases[i]);
    }
    if (list) {
        json_t *document = gp_json_document(last, "gpulse.advise/1");
        (void)json_object_set_new(document, "gpus", list);
        gp_json_set_incomplete(document, last);
        gp_json_add(sb, document, 2);
        gp_strbuf_addc(sb, '\n');
    }
    return 0;
}

static int advise_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_observe_options o = GP_OBSERVE_DEFAULTS;
    return gp_observe_main(&gp_cmd_advise, argc, argv, &o, report, err);
}

const struct gp_cmd gp_cmd_advise = {
    .name = "advise",
    .summary = "find out what to change in a job to make it faster",
    .usage = "[PID|JOB] [options]",
    .description =
        "Observes the GPUs that are used, as gpulse why does, and says what to change in the "
        "programs: the number of data loader workers and of CPU threads, pinned memory, the "
        "precision, compilation, the batch size, PyTorch's allocator, checkpointing, and variables "
        "in the environment that slow a program down. Each advice has what was seen, the line of "
        "code or the command, and what it would gain at most. \"Nothing to advise\" is an answer, "
        "too: then nothing was seen that these changes would improve.\n"
        "\n"
        "PID limits it to the GPUs that this process, or one that it started, uses. JOB is a part "
        "of the name of a job that gpulse queue lists.\n"
        "\n"
        "Lines of code are for PyTorch, and are only shown for Python programs. The environment of "
        "other users' processes can be read only by root. Hopper and later GPUs report what their "
        "units do; without that, less can be advised. A program that has just started may load and "
        "compile for a minute: observe it later.",
    .examples = "gpulse advise 4711\tone job, for 20 seconds\n"
                "gpulse advise --for 1m\tall jobs, for longer\n"
                "gpulse advise 4711 -f json\tas JSON\n",
    .options = options,
    .no_loop = true,
    .run = advise_main,
};
