/* gpulse events: prints GPU events, one line each, as they happen. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/output.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "out/event.h"
#include "sample/event_stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INTERVAL_S = 5,
    SETTLE_S = 3, /* how long to wait for the driver to report which events it supports */
};

struct events_options {
    const char *format;
    const char *kinds;
    uint64_t interval_ns;
    uint64_t count;
    uint64_t duration_ns;
    struct gp_output_options output;
    bool list;
};

#define OPT(field) offsetof(struct events_options, field)

static const struct gp_opt options[] = {
    {0, "kind", NULL, GP_OPT_STRING, "KINDS", .complete = GP_COMPLETE_EVENTS, .offset = OPT(kinds),
     .group = "Select",
     .help = "only these kinds, or groups of them: health, state, process, "
             "frequent, all (default health,state)"},
    {0, "list", NULL, GP_OPT_FLAG, .offset = OPT(list),
     .help = "list the kinds and, for each GPU, their source: driver or poll"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text ndjson", .offset = OPT(format),
     .group = "Output", .help = "output format (default text)"},
    GP_OUTPUT_ROWS(struct events_options, output, ""),
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(interval_ns),
     .least = GP_NS_PER_S / 10, .group = "Repeat",
     .help = "poll every TIME for changes that the driver does not report (default 5s)"},
    {'c', "count", NULL, GP_OPT_U64, "N", .offset = OPT(count), .least = 1,
     .help = "stop after N events"},
    {0, "duration", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(duration_ns),
     .help = "stop after TIME, such as 90s or 1h"},
    GP_OPT_END,
};

struct events_run {
    const struct events_options *o;
    struct gp_sampler *sampler;
    struct gp_strbuf sb;
    struct gp_outfile file;
};

static int write_out(struct events_run *run, struct gp_err *err)
{
    if (run->sb.error)
        return gp_err_set(err, run->sb.error, "cannot build the output: %s",
                          gp_err_text(run->sb.error));
    int r = gp_outfile_is_due(&run->file, run->sb.len) ? gp_outfile_rotate(&run->file, err) : 0;
    if (r == 0)
        r = gp_outfile_write(&run->file, run->sb.buf, run->sb.len, err);
    gp_strbuf_reset(&run->sb);
    return r;
}

/* Each event is written immediately, so that rotation can happen between two. */
static int on_event(void *ctx, const struct gp_event *event, const char *host, struct gp_err *err)
{
    struct events_run *run = ctx;
    if (strcmp(run->o->format, "ndjson") == 0)
        gp_event_add_json(&run->sb, event, host);
    else
        gp_event_add_text(&run->sb, event);
    return write_out(run, err);
}

static int on_sleep(void *ctx, uint64_t mono_ns, int fd)
{
    struct events_run *run = ctx;
    return gp_app_sleep(run->sampler, mono_ns, fd, run->file.fd);
}

static int list_kinds(struct events_run *run, const struct gp_event_stream *stream,
                      struct gp_err *err)
{
    struct gp_event_source *sources;
    size_t count;
    int r = gp_event_stream_sources(stream, &sources, &count, err);
    if (r < 0)
        return r;
    gp_event_add_kinds(&run->sb, sources, count, run->o->output.file ? 0 : gp_io_columns());
    free(sources);
    return write_out(run, err);
}

static int open_output(struct events_run *run, struct gp_err *err)
{
    const struct gp_outfile_config config = gp_output_config(&run->o->output);
    gp_outfile_init(&run->file, STDOUT_FILENO);
    return config.path ? gp_outfile_open(&run->file, &config, err) : 0;
}

static int follow(struct events_run *run, gp_event_kinds kinds, struct gp_err *err)
{
    const struct events_options *o = run->o;
    const struct gp_event_stream stream = {
        .sampler = run->sampler,
        .kinds = kinds,
        .interval_ns = o->interval_ns,
        .settle_ns = gp_app_timeout_ns(SETTLE_S * GP_NS_PER_S),
        .count = o->count,
        .duration_ns = o->duration_ns,
        .sleep = on_sleep,
        .on_event = on_event,
        .ctx = run,
    };
    struct gp_err close_err = {0};
    int r = open_output(run, err);
    if (r < 0)
        return r;
    r = o->list ? list_kinds(run, &stream, err) : gp_event_stream_run(&stream, err);
    int closed = gp_outfile_close(&run->file, &close_err);
    return closed < 0 && (r == 0 || r == GP_EINTR) ? gp_err_copy(err, &close_err) : r;
}

static int run_events(const struct events_options *o, gp_event_kinds kinds, struct gp_err *err)
{
    struct events_run run = {.o = o, .sb = GP_STRBUF_INIT(64 << 20)};
    struct gp_want want = gp_event_stream_want(o->list ? 0 : kinds);
    const struct gp_loop loop = {.interval_ns = o->interval_ns};
    if (o->list)
        want.events = gp_event_all_kinds();
    int r = gp_app_open(&want, &loop, &run.sampler, err);
    if (r < 0)
        return r;
    gp_app_catch_signals();
    r = follow(&run, kinds, err);
    gp_app_close(run.sampler);
    gp_strbuf_fini(&run.sb);
    return r;
}

static int events_main(int argc, char **argv, struct gp_err *err)
{
    struct events_options o = {
        .format = "text", .interval_ns = INTERVAL_S * GP_NS_PER_S, .output = GP_OUTPUT_DEFAULTS};
    gp_event_kinds kinds = gp_event_default_kinds();
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_events, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (positional > 0)
        return gp_err_set(err, GP_EUSAGE, "unexpected argument '%s'; select kinds with --kind",
                          argv[1]);
    if ((r = gp_output_check(&o.output, err)) < 0)
        return r;
    if (strchr(o.format, ','))
        return gp_err_set(err, GP_EUSAGE, "--format takes one of: text ndjson");
    if (o.kinds && (r = gp_event_kinds_parse(o.kinds, &kinds, err)) < 0)
        return r;
    return run_events(&o, kinds, err);
}

const struct gp_cmd gp_cmd_events = {
    .name = "events",
    .summary = "print GPU events as they happen",
    .usage = "[options]",
    .description =
        "Prints a line for each event, as soon as it happens: driver errors (Xid) with their "
        "meaning and what to do; memory errors; GPUs that are lost, do not respond, fall asleep or "
        "recover; and changes of performance state, throttling, PCIe link, MIG and modes. With "
        "--kind process, it also reports processes that start or stop using a GPU; with --kind "
        "clock, "
        "each change of the clocks, of which some GPUs report ten a second.\n"
        "\n"
        "Events that the driver reports are printed immediately. To find the others, gpulse "
        "compares two readings every --interval; --list shows the source of each kind. An event "
        "found both ways is printed once. The first line, of kind start, says when recording "
        "began: no driver reports earlier events. A lost GPU recovers only when the driver is "
        "opened again; gpulse tries that at growing intervals of up to a minute. Events that the "
        "driver reports meanwhile are lost: a line of kind missed names the period and the GPUs.\n"
        "\n"
        "Runs until Ctrl-C, -c or --duration.",
    .examples =
        "gpulse events\thealth and state events\n"
        "gpulse events --kind xid,lost,recovery -f ndjson -o gpu.log --append\tfor a log shipper\n"
        "gpulse events --kind xid -c 1 && ./notify-me\trun a command at the next Xid error\n"
        "gpulse events --list\tkinds of events and their sources\n",
    .options = options,
    .run = events_main,
};
