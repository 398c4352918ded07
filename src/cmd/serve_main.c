/* gpulse-serve, the program behind gpulse serve: answers requests of other programs, in any
 * language: JSON-RPC on standard input and output.
 *
 * A single thread reads requests, takes the samples that are due, and writes. Each call waits at
 * most for its timeout; a client that does not read stops it from reading, too, so nothing piles
 * up. */
#include "cmd/app.h"
#include "cmd/serve.h"
#include "cmd/serve_act.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "out/event.h"
#include "out/field_help.h"
#include "out/rpc.h"
#include "out/rpc_sessions.h"
#include "sample/event_stream.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WATCHES_MAX = 16,
    TIMEOUT_S = 3,
    WATCH_S = 1,
    EVENTS_S = 5,
    SETTLE_S = 3, /* see struct gp_event_stream */
};

struct watch {
    uint64_t id; /* 0: free */
    struct gp_rpc_feed *feed;
    uint64_t interval_ns, next_ns;
};

struct events {
    uint64_t id; /* 0: none */
    struct gp_rpc_feed *feed;
    gp_event_kinds kinds;
    uint64_t interval_ns;
    bool is_cancelled;
};

struct serve {
    struct gp_rpc_sessions sessions;
    struct watch watches[WATCHES_MAX];
    struct gp_grants grants;
    struct events events[2]; /* the second begins when the first, which is cancelled, has ended */
    uint64_t last_id;
    struct gp_rpc_lines lines;
    struct gp_strbuf sb;
    bool has_ended; /* the input */
    int result;     /* of writing */
    struct gp_err err;
};

/* ---- output ---- */

static void write_out(struct serve *s)
{
    if (s->result == 0)
        s->result = gp_app_write(STDOUT_FILENO, &s->sb, &s->err);
    gp_strbuf_reset(&s->sb);
}

/* Sends a notification about a "watch" or a "reservation", and releases `value`. */
static void notify(struct serve *s, const char *subject, uint64_t id, const char *method,
                   json_t *value)
{
    gp_rpc_notify(&s->sb, method, json_pack("{s:I, s:o}", subject, (json_int_t)id, method, value));
    write_out(s);
}

static void notify_end(struct serve *s, uint64_t watch, int code, const struct gp_err *err)
{
    notify(s, "watch", watch, "error", gp_rpc_error(code, err));
}

static void notify_loss(void *ctx, uint64_t reservation, int code, const struct gp_err *err)
{
    notify(ctx, "reservation", reservation, "error", gp_rpc_error(code, err));
}

/* ---- methods ---- */

#define PARAM(field) offsetof(struct gp_serve_params, field)

static const struct gp_rpc_param params_table[] = {
    {"all", GP_RPC_FLAG, PARAM(all), 0, 0},
    {"at_most", GP_RPC_NUMBER, PARAM(at_most), 0, UINT32_MAX},
    {"avoid", GP_RPC_LIST, PARAM(avoid), 0, 0},
    {"batch", GP_RPC_NUMBER, PARAM(batch), 0, 0},
    {"changes", GP_RPC_PAIRS, PARAM(changes), 0, 0},
    {"check_only", GP_RPC_FLAG, PARAM(check_only), 0, 0},
    {"count", GP_RPC_NUMBER, PARAM(count), 0, UINT32_MAX},
    {"dtype", GP_RPC_TEXT, PARAM(dtype), 0, 0},
    {"fields", GP_RPC_LIST, PARAM(fields), 0, 0},
    {"gpus", GP_RPC_LIST, PARAM(gpus), 0, 0},
    {"heads", GP_RPC_NUMBER, PARAM(heads), 0, 0},
    {"hidden", GP_RPC_NUMBER, PARAM(hidden), 0, 0},
    {"ignore_mask", GP_RPC_FLAG, PARAM(ignore_mask), 0, 0},
    {"inference", GP_RPC_FLAG, PARAM(inference), 0, 0},
    {"interval", GP_RPC_TIME, PARAM(interval_ns), 0.01, 86400},
    {"kinds", GP_RPC_LIST, PARAM(kinds), 0, 0},
    {"layers", GP_RPC_NUMBER, PARAM(layers), 0, 0},
    {"log", GP_RPC_TEXT, PARAM(log), 0, 0},
    {"may_lose", GP_RPC_FLAG, PARAM(may_lose), 0, 0},
    {"memory", GP_RPC_SIZE, PARAM(memory), 0, 0},
    {"mig", GP_RPC_FLAG, PARAM(mig), 0, 0},
    {"most_celsius", GP_RPC_NUMBER, PARAM(most_celsius), 0, UINT32_MAX},
    {"most_load", GP_RPC_NUMBER, PARAM(most_load), 0, UINT32_MAX},
    {"name", GP_RPC_TEXT, PARAM(name), 0, 0},
    {"no_display", GP_RPC_FLAG, PARAM(no_display), 0, 0},
    {"nvlink", GP_RPC_FLAG, PARAM(nvlink), 0, 0},
    {"optimizer", GP_RPC_TEXT, PARAM(optimizer), 0, 0},
    {"order", GP_RPC_TEXT, PARAM(order), 0, 0},
    {"params", GP_RPC_TEXT, PARAM(params), 0, 0},
    {"pid", GP_RPC_NUMBER, PARAM(pid), 0, 0},
    {"prefer", GP_RPC_LIST, PARAM(prefer), 0, 0},
    {"reservation", GP_RPC_NUMBER, PARAM(reservation), 0, 0},
    {"same_node", GP_RPC_FLAG, PARAM(same_node), 0, 0},
    {"seq", GP_RPC_NUMBER, PARAM(seq), 0, 0},
    {"share", GP_RPC_FLAG, PARAM(share), 0, 0},
    {"signal", GP_RPC_TEXT, PARAM(signal), 0, 0},
    {"start", GP_RPC_TEXT, PARAM(start), 0, 0},
    {"text", GP_RPC_TEXT, PARAM(text), 0, 0},
    {"timeout", GP_RPC_TIME, PARAM(timeout_ns), 0.001, 3600},
    {"total_memory", GP_RPC_SIZE, PARAM(total_memory), 0, 0},
    {"uuids", GP_RPC_FLAG, PARAM(uuids), 0, 0},
    {"vocab", GP_RPC_NUMBER, PARAM(vocab), 0, 0},
    {"watch", GP_RPC_NUMBER, PARAM(watch), 0, 0},
};

/* The GPUs and the timeout are those of the command line, unless the request has others. */
static struct gp_rpc_feed_config config_of(const struct gp_serve_params *p)
{
    return (struct gp_rpc_feed_config){
        .gpus = p->gpus ? p->gpus : gp_common()->id,
        .timeout_ns = p->timeout_ns ? p->timeout_ns : gp_app_timeout_ns(TIMEOUT_S * GP_NS_PER_S),
        .machine = gp_app_observed(),
        .mig = p->mig,
    };
}

static struct gp_rpc_feed_config rows_config(const struct gp_serve_params *p)
{
    struct gp_rpc_feed_config config = config_of(p);
    config.fields = p->fields ? p->fields : gp_field_usual;
    return config;
}

static int take_sample(struct serve *s, const struct gp_rpc_feed_config *config, json_t **ret,
                       struct gp_err *err)
{
    return gp_rpc_sessions_take(&s->sessions, config, ret, err);
}

static int call_sample(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    const struct gp_rpc_feed_config config = rows_config(params);
    return take_sample(ctx, &config, ret, err);
}

static int call_processes(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    const struct gp_serve_params *p = params;
    const struct gp_rpc_feed_config config = config_of(p);
    return take_sample(ctx, &config, ret, err);
}

static int call_metrics(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    struct gp_field_list all;
    (void)ctx;
    (void)params;
    int r = gp_field_list_parse("*", GP_SCOPE_ANY, &all, err);
    if (r < 0)
        return r;
    *ret = gp_field_help_document(&all);
    gp_field_list_fini(&all);
    return 0;
}

static int call_watch(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    struct serve *s = ctx;
    const struct gp_serve_params *p = params;
    const struct gp_rpc_feed_config config = rows_config(p);
    struct watch *watch = NULL;
    for (size_t i = 0; i < WATCHES_MAX && !watch; i++)
        if (!s->watches[i].id)
            watch = &s->watches[i];
    if (!watch)
        return gp_err_set(err, GP_EBUSY, "at most %d watches run at the same time", WATCHES_MAX);
    int r = gp_rpc_feed_open(&config, &watch->feed, err);
    if (r < 0)
        return r;
    watch->id = ++s->last_id;
    watch->interval_ns = p->interval_ns ? p->interval_ns : WATCH_S * GP_NS_PER_S;
    watch->next_ns = gp_clock_mono_ns();
    *ret = json_pack("{s:I}", "watch", (json_int_t)watch->id);
    return 0;
}

/* The stream begins when its request has been answered. */
static int call_events(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    struct serve *s = ctx;
    const struct gp_serve_params *p = params;
    struct gp_rpc_feed_config config = config_of(p);
    config.kinds = gp_event_default_kinds();
    struct events *events = !s->events[0].id            ? &s->events[0]
                            : s->events[0].is_cancelled ? &s->events[1]
                                                        : NULL;
    if (!events || events->id)
        return gp_err_set(err, GP_EBUSY, "events are watched already; end that with unwatch");
    int r = p->kinds ? gp_event_kinds_parse(p->kinds, &config.kinds, err) : 0;
    if (r == 0)
        r = gp_rpc_feed_open(&config, &events->feed, err);
    if (r < 0)
        return r;
    events->id = ++s->last_id;
    events->kinds = config.kinds;
    events->interval_ns = p->interval_ns ? p->interval_ns : EVENTS_S * GP_NS_PER_S;
    *ret = json_pack("{s:I}", "watch", (json_int_t)events->id);
    return 0;
}

static void end_watch(struct watch *watch)
{
    gp_rpc_feed_close(watch->feed);
    *watch = (struct watch){.id = 0};
}

static int call_unwatch(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    struct serve *s = ctx;
    const struct gp_serve_params *p = params;
    bool is_known = false;
    struct events *running = &s->events[0];
    struct events *next = &s->events[1];
    if (p->watch && running->id == p->watch && !running->is_cancelled)
        running->is_cancelled = is_known = true;
    if (p->watch && next->id == p->watch) { /* it has not begun */
        gp_rpc_feed_close(next->feed);
        *next = (struct events){.id = 0};
        is_known = true;
    }
    for (size_t i = 0; i < WATCHES_MAX; i++)
        if (p->watch && s->watches[i].id == p->watch) {
            end_watch(&s->watches[i]);
            is_known = true;
        }
    if (!is_known)
        return gp_err_set(err, GP_EUSAGE, "there is no watch %llu", (unsigned long long)p->watch);
    *ret = json_pack("{s:I}", "watch", (json_int_t)p->watch);
    return 0;
}

static int call_reserve(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    struct serve *s = ctx;
    return gp_serve_reserve(&s->grants, params, ret, err);
}

static int call_release(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    struct serve *s = ctx;
    return gp_serve_release(&s->grants, params, ret, err);
}

#define CALL(name)                                                                                 \
    static int call_##name(void *ctx, const void *params, json_t **ret, struct gp_err *err)        \
    {                                                                                              \
        (void)ctx;                                                                                 \
        return gp_serve_##name(params, ret, err);                                                  \
    }
CALL(pick)
CALL(signal)
CALL(settings)
CALL(change)
CALL(explain)
CALL(estimate)
#undef CALL

static int call_version(void *ctx, const void *params, json_t **ret, struct gp_err *err);

#define GPUS_THAT_FIT                                                                              \
    "all avoid count gpus ignore_mask memory most_celsius most_load no_display nvlink order "      \
    "prefer same_node share timeout total_memory uuids"

/* A new method is a row, and its function. */
static const struct gp_rpc_method methods[] = {
    {"version", "", NULL, call_version},
    {"metrics", "", NULL, call_metrics},
    {"sample", "fields gpus mig timeout", NULL, call_sample},
    {"processes", "gpus timeout", NULL, call_processes},
    {"watch", "fields gpus interval mig timeout", NULL, call_watch},
    {"events", "gpus interval kinds timeout", NULL, call_events},
    {"unwatch", "watch", "watch", call_unwatch},
    {"pick", GPUS_THAT_FIT " at_most", NULL, call_pick},
    {"reserve", GPUS_THAT_FIT " name", NULL, call_reserve},
    {"release", "reservation", "reservation", call_release},
    {"signal", "pid signal start timeout", "pid start", call_signal},
    {"settings", "gpus timeout", NULL, call_settings},
    {"change", "changes check_only gpus may_lose timeout", "changes", call_change},
    {"explain", "log text", NULL, call_explain},
    {"estimate", "batch dtype heads hidden inference layers optimizer params seq vocab", "params",
     call_estimate},
};

static int call_version(void *ctx, const void *params, json_t **ret, struct gp_err *err)
{
    (void)ctx;
    (void)params;
    (void)err;
    json_t *names = json_array();
    for (size_t i = 0; i < GP_ARRAY_LEN(methods); i++)
        (void)json_array_append_new(names, json_string(methods[i].name));
    *ret = json_pack("{s:s, s:s, s:o}", "schema", "gpulse.serve/1", "version", GPULSE_VERSION,
                     "methods", names);
    return 0;
}

/* ---- the loop ---- */

static int on_line(void *ctx, const char *line, size_t size)
{
    struct serve *s = ctx;
    const struct gp_rpc_service service = {
        .methods = methods,
        .method_count = GP_ARRAY_LEN(methods),
        .params = params_table,
        .param_count = GP_ARRAY_LEN(params_table),
        .params_size = sizeof(struct gp_serve_params),
        .ctx = s,
    };
    gp_rpc_answer(&service, line, size, &s->sb);
    write_out(s);
    return s->result;
}

static void read_input(struct serve *s)
{
    char data[16384];
    const ssize_t n = read(STDIN_FILENO, data, sizeof(data));
    int r = 0;
    if (n > 0)
        r = gp_rpc_lines_take(&s->lines, data, (size_t)n, on_line, s);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        r = gp_rpc_lines_end(&s->lines, on_line, s);
    s->has_ended = r < 0 || n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

static void tick(struct serve *s, struct watch *watch)
{
    struct gp_err err = {0};
    json_t *sample;
    int r = gp_rpc_feed_take(watch->feed, &sample, &err);
    if (r < 0) {
        notify_end(s, watch->id, r, &err);
        end_watch(watch);
        return;
    }
    notify(s, "watch", watch->id, "sample", sample);
    watch->next_ns += watch->interval_ns;
    const uint64_t now_ns = gp_clock_mono_ns();
    if (watch->next_ns <= now_ns) /* missed ones are skipped */
        watch->next_ns = now_ns + watch->interval_ns;
}

/* Returns when something is to be done next; until_ns at the latest. */
static uint64_t do_what_is_due(struct serve *s, uint64_t until_ns)
{
    for (size_t i = 0; i < WATCHES_MAX && s->result == 0; i++)
        if (s->watches[i].id && s->watches[i].next_ns <= gp_clock_mono_ns())
            tick(s, &s->watches[i]);
    gp_grants_keep(&s->grants, notify_loss, s);
    const uint64_t times_ns[] = {gp_grants_next_ns(&s->grants),
                                 gp_rpc_sessions_close_idle(&s->sessions)};
    for (size_t i = 0; i < GP_ARRAY_LEN(times_ns); i++)
        if (times_ns[i] < until_ns)
            until_ns = times_ns[i];
    for (size_t i = 0; i < WATCHES_MAX; i++)
        if (s->watches[i].id && s->watches[i].next_ns < until_ns)
            until_ns = s->watches[i].next_ns;
    return until_ns;
}

/* Does what is due, and waits for input, for this time or for the descriptor (-1: none). Returns
 * whether the descriptor is readable. */
static bool turn(struct serve *s, uint64_t until_ns, int fd)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = fd, .events = POLLIN},
                           {.fd = STDOUT_FILENO}};
    const uint64_t at_ns = do_what_is_due(s, until_ns);
    if (s->result < 0)
        return false;
    const uint64_t now_ns = gp_clock_mono_ns();
    const struct timespec rest = gp_clock_timespec(at_ns > now_ns ? at_ns - now_ns : 0);
    if (ppoll(fds, GP_ARRAY_LEN(fds), at_ns == UINT64_MAX ? NULL : &rest, NULL) < 0)
        return false;
    if (fds[2].revents & (POLLERR | POLLHUP | POLLNVAL)) /* nobody reads any more */
        s->has_ended = true;
    else if (fds[0].revents)
        read_input(s);
    return fds[1].revents != 0;
}

static bool is_over(const struct serve *s)
{
    return s->has_ended || s->result < 0;
}

static bool is_stream_over(const struct serve *s)
{
    return is_over(s) || s->events[0].is_cancelled;
}

/* The stream of events sleeps: requests are answered meanwhile. */
static int on_sleep(void *ctx, uint64_t mono_ns, int fd)
{
    struct serve *s = ctx;
    bool is_awake = false;
    while (!is_awake && !is_stream_over(s))
        is_awake = turn(s, mono_ns, fd) || gp_clock_mono_ns() >= mono_ns;
    return is_stream_over(s) ? GP_EINTR : 0;
}

static int on_event(void *ctx, const struct gp_event *event, const char *host, struct gp_err *err)
{
    struct serve *s = ctx;
    (void)err;
    if (!is_stream_over(s))
        notify(s, "watch", s->events[0].id, "event", gp_event_object(event, host));
    return is_stream_over(s) ? GP_EINTR : 0;
}

static void follow_events(struct serve *s)
{
    struct gp_err err = {0};
    struct events *events = &s->events[0];
    const struct gp_event_stream stream = {
        .sampler = gp_rpc_feed_sampler(events->feed),
        .kinds = events->kinds,
        .interval_ns = events->interval_ns,
        .settle_ns = gp_app_timeout_ns(SETTLE_S * GP_NS_PER_S),
        .sleep = on_sleep,
        .on_event = on_event,
        .ctx = s,
    };
    int r = gp_event_stream_run(&stream, &err);
    if (!is_stream_over(s))
        notify_end(s, events->id, r, &err);
    gp_rpc_feed_close(events->feed);
    s->events[0] = s->events[1];
    s->events[1] = (struct events){.id = 0};
}

static int serve(struct gp_err *err)
{
    struct serve *s = calloc(1, sizeof(*s));
    if (!s)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    gp_strbuf_init(&s->sb, GP_RPC_ANSWER_MAX);
    gp_io_raise_file_limit(); /* files of processes stay open between samples */
    while (!is_over(s)) {
        if (s->events[0].id)
            follow_events(s);
        else
            (void)turn(s, UINT64_MAX, -1);
    }
    for (size_t i = 0; i < WATCHES_MAX; i++)
        end_watch(&s->watches[i]);
    gp_rpc_sessions_end(&s->sessions);
    for (size_t i = 0; i < GP_ARRAY_LEN(s->events); i++)
        gp_rpc_feed_close(s->events[i].feed);
    gp_grants_end(&s->grants);
    int r = s->result < 0 ? gp_err_copy(err, &s->err) : 0;
    gp_strbuf_fini(&s->sb);
    free(s);
    return r;
}

/* ---- the program ---- */

static const struct gp_cmd command = {
    .name = "serve", .usage = "--stdio [options]", .options = gp_serve_table};

int main(int argc, char **argv)
{
    struct gp_serve_options o = {.stdio = false};
    struct gp_err err = {0};
    int positional;
    bool done;
    gp_app_init_helper(&command);
    (void)setlocale(LC_CTYPE, "");
    int r = gp_app_parse(&command, argc, argv, &o, &positional, &done, &err);
    if (r == 0 && !done && !o.stdio)
        r = gp_err_set(&err, GP_EUSAGE,
                       "serve needs --stdio: it answers requests on standard input");
    else if (r == 0 && !done)
        r = serve(&err);
    if (r < 0 && err.code)
        gp_app_print_error(&err);
    const int status = gp_err_exit_status(r);
    if (gp_rpc_feed_is_stuck() || gpulse_is_stuck())
        _exit(status);
    return status;
}
