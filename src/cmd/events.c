/* gpulse events: prints GPU events, one line each, as they happen. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/output.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/event.h"
#include "sample/changes.h"
#include "sample/waiter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    INTERVAL_S = 5,
    SETTLE_S = 3,         /* how long to wait for the driver to report which events it supports */
    HELD_NS = 1000000000, /* a change was seen before its event: take the next sample sooner */
    AFTER_NS = 250000000, /* events that arrive together share a sample */
    TAKE_MAX = 1024,
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
     .help = "only these kinds, or groups of them: health, state, process, all (default "
             "health,state)"},
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
    struct gp_waiter *waiter;
    struct gp_changes changes;
    struct gp_strbuf sb;
    struct gp_outfile file;
    char host[256];
    uint64_t told;  /* events so far */
    bool has_ended; /* the driver's session, as last seen by the waiter */
    bool is_stuck;  /* whether the hung driver call was reported */
};

static gp_event_kinds delivered(void *ctx, unsigned index)
{
    return gp_waiter_kinds(ctx, index);
}

/* ---- the stream ---- */

static bool is_counted(const struct gp_event *event)
{
    return gp_event_table[event->kind].group != GP_EVENT_GROUP_STREAM;
}

static bool is_complete(const struct events_run *run)
{
    return run->o->count && run->told >= run->o->count;
}

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

/* Writes events immediately, one at a time, so that rotation can happen between them. */
static int flush(struct events_run *run, struct gp_err *err)
{
    struct gp_event_list *out = &run->changes.out;
    bool json = strcmp(run->o->format, "ndjson") == 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < out->count && !is_complete(run); i++) {
        if (json)
            gp_event_add_json(&run->sb, &out->items[i], run->host);
        else
            gp_event_add_text(&run->sb, &out->items[i]);
        r = write_out(run, err);
        run->told += is_counted(&out->items[i]);
    }
    out->count = 0;
    if (r == 0 && run->changes.no_memory)
        r = gp_err_set(err, GP_ENOMEM, "out of memory for events");
    return r;
}

static int compare(struct events_run *run, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(run->sampler, &snapshot, err);
    if (r < 0)
        return r;
    gp_changes_compare(&run->changes, snapshot, delivered, run->waiter);
    if (!run->host[0] && snapshot->host[GP_HOST_NAME].status == GP_STATUS_OK)
        (void)snprintf(run->host, sizeof(run->host), "%s", snapshot->host[GP_HOST_NAME].s);
    gp_snapshot_free(snapshot);
    return 0;
}

static void tell_gaps(struct events_run *run)
{
    struct gp_waiter_gap gap;
    while (gp_waiter_take_gap(run->waiter, &gap))
        gp_changes_gap(&run->changes, &gap);
}

/* Takes all events that the driver has reported. *ret_sample: a sample is needed now. */
static int take_reports(struct events_run *run, bool *ret_sample, struct gp_err *err)
{
    static struct gp_source_event reports[TAKE_MAX];
    char text[64];
    uint64_t missed;
    size_t n;
    int r;
    do {
        n = gp_waiter_take(run->waiter, reports, TAKE_MAX, &missed);
        for (size_t i = 0; i < n; i++)
            *ret_sample = gp_changes_report(&run->changes, &reports[i]) || *ret_sample;
        if (missed) {
            (void)snprintf(text, sizeof(text), "%llu events lost: they arrived too fast",
                           (unsigned long long)missed);
            gp_changes_note(&run->changes, GP_EVENT_MISSED, missed, text);
        }
        if (n < TAKE_MAX)
            tell_gaps(run);
        r = flush(run, err);
    } while (r == 0 && n == TAKE_MAX && !is_complete(run));
    bool ended = gp_waiter_has_ended(run->waiter);
    *ret_sample = *ret_sample || n > 0 || (ended && !run->has_ended);
    run->has_ended = ended;
    return r;
}

static void tell_if_stuck(struct events_run *run)
{
    char text[160];
    double late_s;
    const char *call = gp_waiter_stuck_in(run->waiter, &late_s);
    if (call && !run->is_stuck) {
        (void)snprintf(text, sizeof(text),
                       "the driver's events: no answer for %.0f s (%s); only changes between "
                       "samples are reported",
                       late_s, call);
        gp_changes_note(&run->changes, GP_EVENT_STUCK, 0, text);
    } else if (!call && run->is_stuck) {
        gp_changes_note(&run->changes, GP_EVENT_START, 0,
                        "the driver's events are available again");
    }
    run->is_stuck = call != NULL;
}

/* Waits until every GPU was asked for its events, or until this time. */
static int await_settled(struct events_run *run, uint64_t until_ns)
{
    int r = 0;
    while (r == 0 && !gp_waiter_is_settled(run->waiter) && gp_clock_mono_ns() < until_ns) {
        /* nothing is read and the descriptor stays readable, so poll again after a moment */
        uint64_t soon_ns = gp_clock_mono_ns() + 2 * GP_NS_PER_MS;
        r = gp_app_sleep(run->sampler, soon_ns < until_ns ? soon_ns : until_ns, -1, -1);
    }
    return r;
}

/* The stream begins with its start event, even if the first sample already contains events. */
static void put_last_first(struct gp_event_list *list)
{
    if (list->count == 0)
        return;
    const struct gp_event last = list->items[list->count - 1];
    memmove(list->items + 1, list->items, (list->count - 1) * sizeof(*list->items));
    list->items[0] = last;
}

static int begin(struct events_run *run, struct gp_err *err)
{
    char text[96];
    int r = compare(run, err);
    if (r == 0)
        r = await_settled(run, gp_clock_mono_ns() + gp_app_timeout_ns(SETTLE_S * GP_NS_PER_S));
    if (r < 0)
        return r;
    struct gp_waiter_gap before_start;
    while (gp_waiter_take_gap(run->waiter, &before_start))
        ;
    size_t reporting = 0;
    for (size_t i = 0; i < run->changes.seen_count; i++)
        reporting += delivered(run->waiter, gp_changes_gpu(&run->changes, i)) != 0;
    (void)snprintf(text, sizeof(text), "watching %zu GPU%s; the driver reports events for %zu",
                   run->changes.seen_count, run->changes.seen_count == 1 ? "" : "s", reporting);
    gp_changes_note(&run->changes, GP_EVENT_START, 0, text);
    put_last_first(&run->changes.out);
    return flush(run, err);
}

/* The time of the next sample: aligned with the clock unless it is needed sooner. */
static uint64_t next_sample_ns(const struct events_run *run, uint64_t last_ns, bool wanted)
{
    uint64_t next_ns = last_ns + run->o->interval_ns;
    uint64_t sooner_ns = wanted                                 ? last_ns + AFTER_NS
                         : gp_changes_is_holding(&run->changes) ? last_ns + HELD_NS
                                                                : next_ns;
    return sooner_ns < next_ns ? sooner_ns : next_ns;
}

static int follow(struct events_run *run, struct gp_err *err)
{
    uint64_t start_ns = gp_clock_mono_ns();
    uint64_t end_ns = run->o->duration_ns ? start_ns + run->o->duration_ns : UINT64_MAX;
    uint64_t last_ns = start_ns;
    bool wanted = false;
    int r = begin(run, err);
    while (r == 0 && !is_complete(run)) {
        uint64_t next_ns = next_sample_ns(run, last_ns, wanted);
        if (gp_clock_mono_ns() >= end_ns)
            break;
        r = gp_app_sleep(run->sampler, next_ns < end_ns ? next_ns : end_ns,
                         gp_waiter_fd(run->waiter), run->file.fd);
        if (r == 0)
            r = take_reports(run, &wanted, err);
        uint64_t now_ns = gp_clock_mono_ns();
        if (r == 0 && now_ns >= next_sample_ns(run, last_ns, wanted)) {
            r = compare(run, err);
            last_ns = now_ns;
            wanted = false;
            tell_if_stuck(run);
            if (r == 0)
                r = flush(run, err);
        }
    }
    return r;
}

/* ---- --list ---- */

static const char *reporter(gp_event_kinds driver, enum gp_event_kind kind)
{
    bool reported = driver & gp_event_bit(kind);
    bool compared = gp_changes_kinds() & gp_event_bit(kind);
    if (gp_event_table[kind].group == GP_EVENT_GROUP_STREAM)
        return "gpulse";
    return reported ? "driver" : compared ? "poll" : "-";
}

static gp_event_kinds kinds_of(const struct events_run *run, size_t i)
{
    return delivered(run->waiter, gp_changes_gpu(&run->changes, i));
}

static bool all_equal(const struct events_run *run)
{
    size_t i = 1;
    while (i < run->changes.seen_count && kinds_of(run, i) == kinds_of(run, 0))
        i++;
    return i >= run->changes.seen_count;
}

/* The first GPU with the same sources: GPUs share a column if space is limited, or if all are
 * equal. */
static size_t column_of(const struct events_run *run, size_t i, size_t room)
{
    size_t first = room > 0 || all_equal(run) ? 0 : i;
    while (kinds_of(run, first) != kinds_of(run, i))
        first++;
    return first;
}

static size_t size_of(const struct events_run *run, size_t column, size_t room)
{
    size_t count = 0;
    for (size_t i = column; i < run->changes.seen_count; i++)
        count += column_of(run, i, room) == column;
    return count;
}

/* "GPU 2", "GPUs 0-1,3-7", or "GPUs" for all of several. */
static void add_title(struct gp_strbuf *sb, const struct events_run *run, size_t column,
                      size_t room)
{
    const size_t all = run->changes.seen_count, count = size_of(run, column, room);
    gp_strbuf_adds(sb, count > 1 ? "GPUs" : "GPU");
    for (size_t i = column, last, said = 0; i < all && (count < all || all == 1); i = last + 1) {
        last = i;
        if (column_of(run, i, room) != column)
            continue;
        while (last + 1 < all && column_of(run, last + 1, room) == column)
            last++;
        gp_strbuf_addf(sb, "%c%u", said++ ? ',' : ' ', gp_changes_gpu(&run->changes, i));
        if (last > i)
            gp_strbuf_addf(sb, "-%u", gp_changes_gpu(&run->changes, last));
    }
}

/* The line of a kind, or the heading (GP_EVENT__COUNT). */
static void add_kind(struct events_run *run, int kind, size_t room)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 20);
    bool is_head = kind == GP_EVENT__COUNT;
    const struct gp_event_info *info = is_head ? NULL : &gp_event_table[kind];
    gp_strbuf_addf(&line, "%-16s %-8s", info ? info->name : "KIND",
                   info ? gp_event_group_names[info->group] : "GROUP");
    for (size_t i = 0; i < run->changes.seen_count; i++) {
        struct gp_strbuf title = GP_STRBUF_INIT(1 << 16);
        if (column_of(run, i, room) != i)
            continue;
        add_title(&title, run, i, room);
        gp_strbuf_addf(&line, " %-*s", title.len > 7 ? (int)title.len : 7,
                       is_head ? title.buf : reporter(kinds_of(run, i), (enum gp_event_kind)kind));
        gp_strbuf_fini(&title);
    }
    gp_strbuf_addf(&line, " %s", info ? info->help : "WHAT");
    gp_utf8_add_line(&run->sb, line.buf, line.len, room);
    gp_strbuf_fini(&line);
}

static const char sources_note[] =
    "driver: reported at once; poll: found by comparing readings; gpulse: about the recording "
    "itself; -: not reported for this GPU";

static int list_kinds(struct events_run *run, struct gp_err *err)
{
    const size_t room = run->o->output.file ? 0 : gp_io_columns();
    int r = compare(run, err);
    if (r == 0)
        r = await_settled(run, gp_clock_mono_ns() + gp_app_timeout_ns(SETTLE_S * GP_NS_PER_S));
    if (r < 0)
        return r;
    add_kind(run, GP_EVENT__COUNT, room);
    for (int kind = 0; kind < GP_EVENT__COUNT; kind++)
        add_kind(run, kind, room);
    gp_utf8_add_wrapped(&run->sb, sources_note, strlen(sources_note), 0, room);
    return write_out(run, err);
}

/* ---- the command ---- */

static int open_output(struct events_run *run, struct gp_err *err)
{
    const struct gp_outfile_config config = gp_output_config(&run->o->output);
    gp_outfile_init(&run->file, STDOUT_FILENO);
    return config.path ? gp_outfile_open(&run->file, &config, err) : 0;
}

static int run_events(const struct events_options *o, gp_event_kinds kinds, struct gp_err *err)
{
    struct events_run run = {.o = o, .sb = GP_STRBUF_INIT(64 << 20)};
    struct gp_want want = {.events = true};
    const struct gp_loop loop = {.interval_ns = o->interval_ns};
    gp_changes_init(&run.changes, kinds);
    gp_changes_want(o->list ? 0 : kinds, &want);
    gp_metric_set_add(&want.metrics, GP_HOST_NAME);
    bool opened = false;
    int r = gp_app_open(&want, &loop, &run.sampler, err);
    if (r == 0) {
        run.waiter = gp_sampler_waiter(run.sampler);
        gp_app_catch_signals();
        r = open_output(&run, err);
        opened = r == 0;
        if (r == 0)
            r = o->list ? list_kinds(&run, err) : follow(&run, err);
        gp_app_close(run.sampler);
    }
    struct gp_err close_err = {0};
    int closed = opened ? gp_outfile_close(&run.file, &close_err) : 0;
    if (closed < 0 && (r == 0 || r == GP_EINTR)) {
        *err = close_err;
        r = closed;
    }
    gp_changes_fini(&run.changes);
    gp_strbuf_fini(&run.sb);
    return r;
}

static int events_main(int argc, char **argv, struct gp_err *err)
{
    struct events_options o = {
        .format = "text", .interval_ns = INTERVAL_S * GP_NS_PER_S, .output = GP_OUTPUT_DEFAULTS};
    gp_event_kinds kinds =
        gp_event_group_kinds(GP_EVENT_GROUP_HEALTH) | gp_event_group_kinds(GP_EVENT_GROUP_STATE);
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
        "--kind process, it also reports processes that start or stop using a GPU.\n"
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
