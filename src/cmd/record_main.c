/* gpulse-record: records what the GPUs do. */
#include "cmd/app.h"
#include "cmd/record.h"
#include "cmd/record_background.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/when.h"
#include "jobs/child.h"
#include "jobs/guard.h"
#include "sample/event_stream.h"
#include "sample/shared_state.h"
#include "tape/before.h"
#include "tape/export.h"
#include "tape/import.h"
#include "tape/recorder.h"
#include "tape/tape.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct gp_cmd command = {
    .name = "record",
    .usage = "[start|stop|status|import|export] [options] [-- COMMAND]",
    .options = gp_record_table};

enum { SETTLE_S = 3 }; /* see struct gp_event_stream */

struct run {
    const struct gp_record_options *o;
    uint64_t before_ns; /* see struct gp_recorder_config */
    struct gp_sampler *sampler;
    struct gp_recorder *recorder;
    struct gp_shared_state line; /* who waits for GPUs */
    struct gp_child *child;      /* NULL: no command */
    bool is_failing;             /* as was said */
};

/* Says when the disk begins to fail, and when it does no longer. */
static void tell_state(struct run *run)
{
    struct gp_recorder_state state;
    char note[sizeof(state.problem) + 64];
    gp_recorder_state(run->recorder, &state);
    if (state.is_failing == run->is_failing)
        return;
    run->is_failing = state.is_failing;
    if (state.is_failing)
        (void)snprintf(note, sizeof(note), "%s; recording to memory", state.problem);
    else
        (void)snprintf(note, sizeof(note), "recording to '%.200s' again; %llu samples were lost",
                       run->o->file, (unsigned long long)state.dropped);
    gp_io_print_note("gpulse record", note);
}

static int on_event(void *ctx, const struct gp_event *event, const char *host, struct gp_err *err)
{
    struct run *run = ctx;
    (void)host;
    int r = gp_recorder_event(run->recorder, event, err);
    return r == GP_ENOMEM ? 0 : r;
}

/* A sample that there is no memory for is missing, like one that could not be stored. */
static int on_sample(void *ctx, const struct gp_snapshot *snapshot, struct gp_err *err)
{
    struct run *run = ctx;
    int r = gp_recorder_sample(run->recorder, snapshot, err);
    const bool is_known = gp_shared_state_update(&run->line) == 0 && !run->line.is_unknown;
    if (r == 0)
        r = gp_recorder_line(run->recorder, is_known ? &run->line.leases : NULL, err);
    tell_state(run);
    return r == GP_ENOMEM ? 0 : r;
}

static int on_glance(void *ctx, const struct gp_snapshot *snapshot, struct gp_err *err)
{
    const struct run *run = ctx;
    int r = gp_recorder_glance(run->recorder, snapshot, err);
    return r == GP_ENOMEM ? 0 : r;
}

static int on_sleep(void *ctx, uint64_t mono_ns, int fd)
{
    const struct run *run = ctx;
    if (!run->child)
        return gp_app_sleep(run->sampler, mono_ns, fd, -1);
    while (!run->child->has_ended && gp_clock_mono_ns() < mono_ns)
        gp_child_wait(run->child, mono_ns);
    return run->child->has_ended ? GP_EINTR : 0;
}

static int follow(struct run *run, struct gp_err *err)
{
    const struct gp_event_stream stream = {
        .sampler = run->sampler,
        .kinds = gp_event_default_kinds(),
        .interval_ns = run->o->interval_ns,
        .settle_ns = gp_app_timeout_ns(SETTLE_S * GP_NS_PER_S),
        .duration_ns = run->o->duration_ns,
        .sleep = on_sleep,
        .on_event = on_event,
        .on_sample = on_sample,
        .glance_ns = run->before_ns ? GP_BEFORE_EVERY_US * GP_NS_PER_US : 0,
        .on_glance = on_glance,
        .ctx = run,
    };
    return gp_event_stream_run(&stream, err);
}

static int open_sampler(struct run *run, struct gp_err *err)
{
    struct gp_want want = gp_recorder_want();
    const struct gp_want events = gp_event_stream_want(gp_event_default_kinds());
    const struct gp_loop loop = {.interval_ns = run->o->interval_ns, .brief = gp_before_metrics()};
    gp_metric_set_join(&want.metrics, &events.metrics);
    want.events = events.events;
    want.processes = want.processes || events.processes;
    return gp_app_open(&want, &loop, &run->sampler, err);
}

static int open_recorder(struct run *run, struct gp_err *err)
{
    const struct gp_recorder_config config = {
        .path = run->o->file,
        .is_shared = run->o->shared,
        .interval_ns = run->o->interval_ns,
        .keep_ns = run->o->keep_ns,
        .size_max = run->o->size,
        .age_max_ns = run->o->age_ns,
        .before_ns = run->before_ns,
    };
    return gp_recorder_open(&config, &run->recorder, err);
}

static void say_what_there_is(const struct run *run, const struct gp_recorder_state *state)
{
    char note[400];
    (void)snprintf(note, sizeof(note), "%llu samples stored; gpulse top --tape '%.200s' shows them",
                   (unsigned long long)(state->stored + state->waiting), run->o->file);
    if (!run->o->quiet && !run->child)
        gp_io_print_note("gpulse record", note);
}

/* How it ended, and then how the file was closed, which matters as much. */
static int close_all(struct run *run, int r, struct gp_err *err)
{
    struct gp_err close_err = {0};
    struct gp_recorder_state state = {.size = 0};
    int closed = 0;
    if (run->recorder) {
        gp_recorder_state(run->recorder, &state);
        closed = gp_recorder_close(run->recorder, &close_err);
    }
    gp_app_close(run->sampler); /* NULL: it was not opened */
    gp_shared_state_fini(&run->line);
    if (closed == 0 && (r == 0 || r == GP_EINTR))
        say_what_there_is(run, &state);
    return closed < 0 && (r == 0 || r == GP_EINTR) ? gp_err_copy(err, &close_err) : r;
}

static void say_what_begins(struct run *run)
{
    struct gp_recorder_state state;
    char note[300];
    gp_recorder_state(run->recorder, &state);
    (void)snprintf(note, sizeof(note), "recording to '%.200s'; Ctrl-C ends it", run->o->file);
    if (!run->o->quiet && !run->child)
        gp_io_print_note("gpulse record", note);
    if (state.lacks_private)
        gp_io_print_note("gpulse record",
                         "command lines are not recorded: the file system has no ACLs that would "
                         "hide them from other users");
}

/* --before. What samples are taken often enough for anyway needs no others. */
static int parse_before(const struct gp_record_options *o, uint64_t *ret_ns, struct gp_err *err)
{
    uint64_t ns = GP_BEFORE_DEFAULT_S * GP_NS_PER_S;
    if (o->before && (!gp_parse_duration(o->before, &ns) || ns > GP_BEFORE_MAX_S * GP_NS_PER_S))
        return gp_err_set(err, GP_EUSAGE,
                          "bad value '%.40s' for --before: expected a duration up to %ds, such as "
                          "10s; 0 switches it off",
                          o->before, (int)GP_BEFORE_MAX_S);
    *ret_ns = o->interval_ns > GP_BEFORE_EVERY_US * GP_NS_PER_US ? ns : 0;
    return 0;
}

/* words: a command, or NULL. *ret_status: its exit status, if it ended. */
static int record(const struct gp_record_options *o, char **words, int *ret_status,
                  struct gp_err *err)
{
    struct gp_guard guard;
    struct gp_child child = {.guard = &guard};
    struct run run = {.o = o};
    int r = parse_before(o, &run.before_ns, err);
    if (r < 0)
        return r;
    r = words ? gp_guard_start(&guard, err) : 0; /* before there are threads */
    if (r < 0)
        return r;
    (void)signal(SIGPIPE, SIG_IGN); /* of the guard */
    gp_shared_state_init(&run.line, NULL);
    run.line.wants_leases = true;
    run.line.look_every_ns = 0; /* how long each request waits is recorded */
    r = open_sampler(&run, err);
    if (r == 0)
        r = open_recorder(&run, err); /* last: then it records, see gp_record_start() */
    if (r == 0 && words) {
        static char *const no_variables[] = {NULL};
        r = gp_child_start(&child, words, no_variables, ret_status, err);
        run.child = r == 0 ? &child : NULL;
    } else if (r == 0) {
        gp_app_catch_signals();
    }
    if (r == 0)
        say_what_begins(&run);
    if (r == 0)
        r = follow(&run, err);
    if (run.child) {
        while (!child.has_ended) /* after --duration or an error: the command goes on */
            gp_child_wait(&child, UINT64_MAX);
        gp_child_end(&child);
        *ret_status = gp_child_exit_status(&child);
        r = r == GP_EINTR ? 0 : r;
    }
    if (words)
        gp_guard_dismiss(&guard, true);
    r = close_all(&run, r, err);
    if (run.child)
        gp_child_end_as(&child);
    return r;
}

/* ---- the command line ---- */

/* Takes what follows "--" off the arguments; NULL: nothing. */
static char **take_command(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") != 0)
            continue;
        *argc = i;
        argv[i] = NULL;
        return argv + i + 1;
    }
    return NULL;
}

/* words: "import" and the file. */
static int import(const struct gp_record_options *o, int count, char **words, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    struct gp_import_config config = {
        .to = o->file, .interval_ns = o->interval_ns, .size_max = o->size};
    struct gp_import_result result;
    if (count != 1)
        return gp_err_set(err, GP_EUSAGE, "import takes one file");
    if (!o->file)
        return gp_err_set(err, GP_EUSAGE, "import needs -o FILE for the recording");
    if (access(o->file, F_OK) == 0) /* another machine's values, or the same ones twice */
        return gp_err_set(err, GP_EUSAGE, "'%.200s' exists; import makes a new recording", o->file);
    config.from = words[1];
    if (o->start && !gp_parse_time(o->start, gp_clock_wall_ns(), &config.start_ns))
        return gp_err_set(err, GP_EUSAGE, "--start: '%.60s' is not a time", o->start);
    int r = gp_import(&config, &result, err);
    if (r < 0)
        return r;
    gp_strbuf_addf(&sb, "%s: %llu samples of %zu GPU%s, %llu values\n", result.format,
                   (unsigned long long)result.samples, result.gpus, result.gpus == 1 ? "" : "s",
                   (unsigned long long)result.values);
    if (result.unknown[0])
        gp_strbuf_addf(&sb, "not imported: %s\n", result.unknown);
    r = o->quiet ? 0 : gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* words: "export" and the recording. */
static int export(const struct gp_record_options *o, int count, char **words, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    struct gp_tape *tape;
    struct gp_tape_bounds bounds;
    uint64_t start_ns = 0;
    uint64_t pieces = 0;
    if (count != 1)
        return gp_err_set(err, GP_EUSAGE, "export takes one recording");
    if (!o->file)
        return gp_err_set(err, GP_EUSAGE, "export needs -o FILE for the trace");
    if (o->start && !gp_parse_time(o->start, gp_clock_wall_ns(), &start_ns))
        return gp_err_set(err, GP_EUSAGE, "--start: '%.60s' is not a time", o->start);
    int r = gp_tape_open(words[1], &tape, err);
    if (r < 0)
        return r;
    r = gp_tape_bounds(tape, &bounds, err);
    if (r == 0) {
        const int64_t from =
            start_ns ? gp_tape_place(tape, (int64_t)(start_ns / GP_NS_PER_US)) : bounds.first;
        const int64_t length_us = (int64_t)(o->duration_ns / GP_NS_PER_US);
        const int64_t to =
            length_us && length_us < bounds.last - from ? from + length_us : bounds.last + 1;
        if (from < 0 || from > bounds.last)
            r = gp_err_set(err, GP_EUSAGE, "--start: nothing was recorded after that time");
        else
            r = gp_export_trace(tape, from, to, o->file, &pieces, err);
    }
    gp_tape_close(tape);
    if (r < 0)
        return r;
    gp_strbuf_addf(&sb, "%llu samples and summaries; to look at them: https://ui.perfetto.dev\n",
                   (unsigned long long)pieces);
    r = o->quiet ? 0 : gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* Without -o. */
static int choose_file(const struct gp_record_options *o, const char *verb, char ret[GP_PATH_SIZE],
                       struct gp_err *err)
{
    const bool is_status = verb && strcmp(verb, "status") == 0;
    const bool records = !verb || strcmp(verb, "start") == 0;
    if (!o->shared && is_status && gp_record_find_file(ret))
        return 0;
    if (!o->shared)
        return records ? gp_record_make_own_folder(ret, err) : gp_record_own_file(ret, err);
    (void)snprintf(ret, GP_PATH_SIZE, "%s", GP_RECORD_SHARED_FILE);
    return 0;
}

static int run_words(struct gp_record_options *o, int count, char **argv, char **words,
                     int *ret_status, struct gp_err *err)
{
    static char own[GP_PATH_SIZE];
    const char *verb = count > 0 ? argv[1] : NULL;
    if (verb && !words && strcmp(verb, "import") == 0)
        return import(o, count - 1, argv + 1, err);
    if (verb && !words && strcmp(verb, "export") == 0)
        return export(o, count - 1, argv + 1, err);
    if (count > 1 || (verb && words))
        return gp_err_set(err, GP_EUSAGE, "unexpected argument '%.80s'%s", argv[count],
                          words ? " before --" : "; a command to record follows --");
    if (words && !*words)
        return gp_err_set(err, GP_EUSAGE, "there is no command after --");
    if (!o->interval_ns)
        o->interval_ns = GP_NS_PER_S;
    if (!o->file) {
        int r = choose_file(o, verb, own, err);
        if (r < 0)
            return r;
        o->file = own;
    }
    if (!verb)
        return record(o, words, ret_status, err);
    if (strcmp(verb, "start") == 0) {
        uint64_t before_ns; /* the recorder parses it again */
        const int r = parse_before(o, &before_ns, err);
        return r < 0 ? r : gp_record_start(o, err);
    }
    if (strcmp(verb, "stop") == 0)
        return gp_record_stop(o->file, err);
    if (strcmp(verb, "status") == 0)
        return gp_record_status(o->file, err);
    return gp_err_set(
        err, GP_EUSAGE,
        "unknown action '%.80s'; use start, stop, status, import or export; a command to "
        "record follows --",
        verb);
}

int main(int argc, char **argv)
{
    struct gp_record_options o = {.file = NULL};
    struct gp_err err = {0};
    int positional;
    int status = 0;
    bool done;
    gp_app_init_helper(&command);
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    char **words = take_command(&argc, argv);
    int r = gp_app_parse(&command, argc, argv, &o, &positional, &done, &err);
    if (r == 0 && !done)
        r = run_words(&o, positional, argv, words, &status, &err);
    if (r < 0 && err.code)
        gp_app_print_error(&err);
    if (r < 0 && status == 0)
        status = gp_err_exit_status(r);
    if (gp_app_is_stuck())
        _exit(status);
    return status;
}
