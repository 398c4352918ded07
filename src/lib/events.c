/* Events as a queue that a thread fills. */
#include "lib/lib.h"

#include "base/clock.h"
#include "model/event.h"
#include "sample/event_stream.h"
#include "sample/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { QUEUE = 256, INTERVAL_S = 5, LEAST_MS = 10, SETTLE_S = 3 };

struct gpulse_events {
    pid_t pid; /* of the process that opened it */
    struct gp_selection selection;
    struct gp_event_stream stream;
    pthread_t thread;
    int news;             /* counts above 0 while there is something to return */
    int stop;             /* counts above 0 when the thread must end */
    pthread_mutex_t lock; /* of the following members */
    struct gp_event queue[QUEUE];
    size_t first, count;
    uint64_t missed;
    bool has_ended;
    int result; /* of the stream, and: */
    struct gp_err err;
};

static void raise_fd(int fd)
{
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof(one));
}

static void lower_fd(int fd)
{
    uint64_t count;
    (void)!read(fd, &count, sizeof(count));
}

/* ---- the thread ---- */

static int on_event(void *context, const struct gp_event *event, const char *host,
                    struct gp_err *err)
{
    gpulse_events *events = context;
    (void)host;
    (void)err;
    (void)pthread_mutex_lock(&events->lock);
    if (events->count == QUEUE || events->missed > 0) /* the gap stays in its place */
        events->missed++;
    else
        events->queue[(events->first + events->count++) % QUEUE] = *event;
    raise_fd(events->news);
    (void)pthread_mutex_unlock(&events->lock);
    return 0;
}

static int on_sleep(void *context, uint64_t mono_ns, int fd)
{
    const gpulse_events *events = context;
    struct pollfd fds[] = {{events->stop, POLLIN, 0}, {fd, POLLIN, 0}};
    const uint64_t now_ns = gp_clock_mono_ns();
    const struct timespec rest = gp_clock_timespec(mono_ns > now_ns ? mono_ns - now_ns : 0);
    (void)ppoll(fds, GP_ARRAY_LEN(fds), &rest, NULL);
    return fds[0].revents ? GP_EINTR : 0;
}

static void *run(void *context)
{
    gpulse_events *events = context;
    struct gp_err err = {0};
    int r = gp_event_stream_run(&events->stream, &err);
    (void)pthread_mutex_lock(&events->lock);
    events->has_ended = true;
    events->result = r;
    events->err = err;
    raise_fd(events->news);
    (void)pthread_mutex_unlock(&events->lock);
    return NULL;
}

/* ---- opening and closing ---- */

static uint64_t interval_of(uint64_t ns)
{
    const uint64_t least_ns = LEAST_MS * GP_NS_PER_MS;
    if (ns == 0)
        return INTERVAL_S * GP_NS_PER_S;
    return ns < least_ns ? least_ns : gp_lib_time_ns(ns);
}

static int parse_kinds(const char *kinds, gp_event_kinds *ret, struct gp_err *err)
{
    *ret = gp_event_default_kinds();
    return kinds ? gp_event_kinds_parse(kinds, ret, err) : 0;
}

static int start(gpulse_events *events, const struct gpulse_options *options, struct gp_err *err)
{
    const struct gp_want want = gp_event_stream_want(events->stream.kinds);
    int r = gp_lib_open(options, &events->selection, &want, &events->stream.sampler, err);
    if (r < 0)
        return r;
    events->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    events->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->news < 0 || events->stop < 0)
        r = gp_err_system(err, errno, GP_EIO, "cannot make a descriptor");
    if (r == 0 && gp_thread_start(&events->thread, run, events) < 0)
        r = gp_err_set(err, GP_ENOMEM, "cannot start a thread");
    return r;
}

static void close_fds(gpulse_events *events)
{
    if (events->news >= 0)
        (void)close(events->news);
    if (events->stop >= 0)
        (void)close(events->stop);
}

int gpulse_events_open(const struct gpulse_options *given, const char *kinds, uint64_t interval_ns,
                       gpulse_events **ret, struct gpulse_error *error)
{
    struct gp_err err = {0};
    const struct gpulse_options options = gp_lib_options(given);
    gpulse_events *events = calloc(1, sizeof(*events));
    *ret = NULL;
    if (!events)
        return gp_lib_fail(error, &err, GP_ENOMEM);
    events->pid = getpid();
    events->news = events->stop = -1;
    (void)pthread_mutex_init(&events->lock, NULL);
    events->stream = (struct gp_event_stream){
        .interval_ns = interval_of(interval_ns),
        .settle_ns = gp_lib_timeout_ns(&options, SETTLE_S),
        .sleep = on_sleep,
        .on_event = on_event,
        .ctx = events,
    };
    int r = parse_kinds(kinds, &events->stream.kinds, &err);
    if (r == 0)
        r = start(events, &options, &err);
    if (r < 0) {
        close_fds(events);
        if (gp_sampler_free(events->stream.sampler))
            free(events);
        else
            gp_lib_keep(events, events->stream.sampler);
        return gp_lib_fail(error, &err, r);
    }
    *ret = events;
    return 0;
}

bool gpulse_events_close(gpulse_events *events)
{
    if (!events)
        return true;
    if (events->pid == getpid()) {
        raise_fd(events->stop);
        (void)pthread_join(events->thread, NULL);
    }
    close_fds(events);
    if (events->pid == getpid() && !gp_sampler_free(events->stream.sampler)) {
        gp_lib_keep(events, events->stream.sampler);
        return false;
    }
    free(events);
    return true;
}

/* ---- taking them ---- */

int gpulse_events_fd(const gpulse_events *events)
{
    return events->news;
}

static void give(const struct gp_event *from, struct gpulse_event *ret)
{
    struct gpulse_event event = {
        .kind = gp_event_table[from->kind].name,
        .time_ns = from->wall_ns,
        .from_driver = from->from_driver,
        .gpu = from->has_gpu ? (int)from->index : -1,
        .gpu_instance = from->gpu_instance,
        .compute_instance = from->compute_instance,
        .number = from->number,
    };
    (void)snprintf(event.uuid, sizeof(event.uuid), "%s", from->uuid);
    (void)snprintf(event.pci_bus_id, sizeof(event.pci_bus_id), "%s", from->pci);
    (void)snprintf(event.was, sizeof(event.was), "%s", from->was);
    (void)snprintf(event.now, sizeof(event.now), "%s", from->now);
    (void)snprintf(event.text, sizeof(event.text), "%s", from->text);
    gp_lib_give(ret, &event, sizeof(event));
}

/* The next one, in the queue or about it; false: there is none. The lock is held. */
static bool take(gpulse_events *events, struct gp_event *ret)
{
    if (events->count > 0) {
        *ret = events->queue[events->first];
        events->first = (events->first + 1) % QUEUE;
        events->count--;
        return true;
    }
    if (events->missed == 0)
        return false;
    *ret = (struct gp_event){
        .kind = GP_EVENT_MISSED,
        .wall_ns = gp_clock_wall_ns(),
        .number = events->missed,
        .gpu_instance = GP_EVENT_NO_INSTANCE,
        .compute_instance = GP_EVENT_NO_INSTANCE,
    };
    (void)snprintf(ret->text, sizeof(ret->text), "%llu events lost: they were not taken in time",
                   (unsigned long long)events->missed);
    events->missed = 0;
    return true;
}

int gpulse_events_next(gpulse_events *events, struct gpulse_event *ret, struct gpulse_error *error)
{
    struct gp_event event;
    struct gp_err err = {0};
    int r = gp_lib_check_size(ret->size, "gpulse_event", &err);
    if (events->pid != getpid())
        return gp_lib_fail_fork(error);
    if (r < 0)
        return gp_lib_fail(error, &err, r);
    (void)pthread_mutex_lock(&events->lock);
    const bool is_taken = take(events, &event);
    if (!is_taken && events->has_ended)
        r = gp_lib_fail(error, &events->err, events->result);
    else if (events->count == 0 && events->missed == 0 && !events->has_ended)
        lower_fd(events->news);
    (void)pthread_mutex_unlock(&events->lock);
    if (is_taken)
        give(&event, ret);
    return is_taken ? 1 : r;
}
