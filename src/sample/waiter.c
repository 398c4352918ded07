#include "sample/waiter.h"

#include "base/clock.h"
#include "base/err.h"
#include "sample/thread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    GATHER_MS = 20, /* same, while devices that existed before have not been registered again … */
    GATHER_S = 2,   /* … which takes at most this long if they respond */
    STUCK_S = 5,    /* a call that takes this much longer is stuck */
    RETRY_FIRST_MS = 100, /* delay after an error, doubled up to */
    RETRY_LAST_MS = 60000,
    QUEUE_MAX = 16384,
};

/* A device whose events are requested. It outlives the session, for its gap. */
struct offer {
    unsigned name;
    bool offered; /* in this session */
    bool asked;   /* its event kinds are known */
    struct gp_source_device *device;
    gp_event_kinds kinds;
    /* Since when its events may be missing, 0: they are not; and when it was registered again, 0:
     * not yet. */
    uint64_t gap_from_ns;
    uint64_t gap_to_ns;
    gp_event_kinds gap_kinds;
    const char *gap_why;
};

struct gp_waiter {
    struct gp_source *source;
    gp_event_kinds wanted;
    unsigned wait_ms;
    int fd;    /* readable while there are events */
    bool told; /* it has been made readable */
    gp_call_name call;
    pthread_mutex_t lock;
    pthread_cond_t wake;   /* there is work */
    pthread_cond_t rested; /* no call is in progress */
    pthread_t thread;
    bool has_thread;
    bool quit;
    bool allowed;  /* driver calls are allowed */
    bool pausing;  /* no new call begins, as the waiter is about to rest */
    bool draining; /* collect the remaining events before calls are forbidden */
    bool ended;    /* the driver reported the end of the session */
    bool calling;
    uint64_t since_ns; /* when that call started */
    uint64_t pause_ns; /* no call before this time */
    uint64_t begin_ns; /* of the session */
    uint64_t heard_ns; /* events up to then were received; 0: not listening yet */
    unsigned failures; /* in a row */
    struct offer *offers;
    size_t offer_count;
    /* The event queue: a ring buffer. */
    struct gp_source_event *queue;
    size_t capacity;
    size_t first;
    size_t count;
    uint64_t missed;
};

/* ---- waiter thread ---- */

static void notify(struct gp_waiter *w)
{
    w->told = true;
    const uint64_t one = 1;
    /* This only fails if the counter is at its maximum, and then the descriptor is readable
     * anyway. */
    if (write(w->fd, &one, sizeof(one)) < 0)
        return;
}

/* The position of the i-th event in the ring, i <= capacity. */
static size_t place_of(const struct gp_waiter *w, size_t i)
{
    size_t place = w->first + i;
    return place < w->capacity ? place : place - w->capacity;
}

/* Makes room for one more event. The ring is linearized when it grows. */
static bool reserve(struct gp_waiter *w)
{
    if (w->count < w->capacity)
        return true;
    size_t capacity = w->capacity ? 2 * w->capacity : 64;
    struct gp_source_event *grown =
        capacity <= QUEUE_MAX ? malloc(capacity * sizeof(*grown)) : NULL;
    if (!grown)
        return false;
    for (size_t i = 0; i < w->count; i++)
        grown[i] = w->queue[place_of(w, i)];
    free(w->queue);
    w->queue = grown;
    w->capacity = capacity;
    w->first = 0;
    return true;
}

static void push(struct gp_waiter *w, const struct gp_source_event *event)
{
    if (reserve(w)) {
        w->queue[place_of(w, w->count)] = *event;
        w->count++;
    } else {
        w->missed++;
    }
    notify(w);
}

static void begin_call(struct gp_waiter *w)
{
    w->calling = true;
    w->since_ns = gp_clock_mono_ns();
    (void)pthread_mutex_unlock(&w->lock);
}

static void end_call(struct gp_waiter *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->calling = false;
    (void)pthread_cond_broadcast(&w->rested);
}

static void end_session(struct gp_waiter *w)
{
    if (!w->ended)
        notify(w);
    w->ended = true;
}

/* The kinds that the driver reports for any device. */
static gp_event_kinds reported(const struct gp_waiter *w)
{
    gp_event_kinds kinds = 0;
    for (size_t i = 0; i < w->offer_count; i++)
        kinds |= w->offers[i].kinds;
    return kinds;
}

/* Starts a gap at heard_ns for all devices that report events. A gap that was not taken yet
 * continues. */
static void begin_gaps(struct gp_waiter *w, const char *why)
{
    for (size_t i = 0; i < w->offer_count; i++) {
        struct offer *offer = &w->offers[i];
        if (!offer->kinds)
            continue;
        if (!offer->gap_from_ns)
            offer->gap_from_ns = w->heard_ns;
        offer->gap_to_ns = 0;
        offer->gap_kinds |= offer->kinds;
        offer->gap_why = why;
    }
}

static void end_gap(struct offer *offer, uint64_t now_ns)
{
    if (offer->gap_from_ns && !offer->gap_to_ns)
        offer->gap_to_ns = now_ns;
}

/* Requires the lock, which is released during the driver call. */
static void watch(struct gp_waiter *w, size_t i)
{
    const struct offer offer = w->offers[i];
    gp_event_kinds kinds = 0;
    begin_call(w);
    int r = w->source->ops->watch(offer.device, offer.name, w->wanted, &w->call, &kinds);
    end_call(w);
    uint64_t now_ns = gp_clock_mono_ns();
    if (r == 1) {
        begin_gaps(w, "the driver required all GPUs to be registered again");
        for (size_t k = 0; k < w->offer_count; k++)
            if (w->offers[k].kinds)
                end_gap(&w->offers[k], now_ns);
    }
    /* Others may have been added meanwhile, but none can have been removed. */
    w->offers[i].asked = true;
    w->offers[i].kinds = kinds;
    end_gap(&w->offers[i], now_ns);
    if (!w->heard_ns || r == 1)
        w->heard_ns = now_ns;
    notify(w);
    if (r == GP_EDRIVER)
        end_session(w);
}

static uint64_t retry_delay_ns(unsigned failures)
{
    uint64_t ms = RETRY_FIRST_MS;
    while (--failures > 0 && ms < RETRY_LAST_MS)
        ms *= 2;
    return (ms < RETRY_LAST_MS ? ms : RETRY_LAST_MS) * GP_NS_PER_MS;
}

/* Returns true if there was an event. */
static bool wait_once(struct gp_waiter *w, unsigned timeout_ms)
{
    struct gp_source_event event;
    begin_call(w);
    int r = w->source->ops->wait_event(w->source, timeout_ms, &w->call, &event);
    end_call(w);
    uint64_t now_ns = gp_clock_mono_ns();
    w->failures = r < 0 ? w->failures + 1 : 0;
    if (r >= 0)
        w->heard_ns = w->since_ns;
    else if (w->failures == 1) /* an event before the failure would have ended the call */
        w->heard_ns = now_ns;
    if (r == GP_EDRIVER)
        end_session(w);
    if (r == 1)
        push(w, &event);
    else if (r < 0) /* the end of a session may concern one GPU: keep listening to the others */
        w->pause_ns = now_ns + retry_delay_ns(w->ended ? 1 : w->failures);
    else /* it may have returned at once: never loop without a delay */
        w->pause_ns = w->since_ns + timeout_ms * GP_NS_PER_MS;
    return r == 1;
}

/* Collects events while there is room: an endless stream must not prevent the rest. */
static void drain(struct gp_waiter *w)
{
    for (size_t n = 0; n < QUEUE_MAX && wait_once(w, 0); n++)
        ;
    w->draining = false;
    (void)pthread_cond_broadcast(&w->rested);
}

/* The next device to query for its event kinds; offer_count if there is none. */
static size_t next_offer(const struct gp_waiter *w)
{
    size_t i = 0;
    while (i < w->offer_count && (!w->offers[i].offered || w->offers[i].asked))
        i++;
    return i;
}

/* The timeout of a wait. Devices are offered one at a time, which does not interrupt a wait. */
static unsigned wait_ms(const struct gp_waiter *w)
{
    bool fresh = gp_clock_mono_ns() - w->begin_ns < GATHER_S * GP_NS_PER_S;
    for (size_t i = 0; fresh && i < w->offer_count; i++)
        if (w->offers[i].gap_from_ns && !w->offers[i].offered)
            return GATHER_MS;
    return w->wait_ms;
}

static void *thread_main(void *ctx)
{
    struct gp_waiter *w = ctx;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->quit) {
        size_t offer = next_offer(w);
        if (w->draining) {
            drain(w);
        } else if (w->pausing) {
            (void)pthread_cond_wait(&w->wake, &w->lock);
        } else if (w->allowed && !w->ended && offer < w->offer_count) {
            watch(w, offer);
        } else if (!w->allowed || !reported(w)) {
            (void)pthread_cond_wait(&w->wake, &w->lock);
        } else if (gp_clock_mono_ns() < w->pause_ns) {
            struct timespec until = gp_clock_timespec(w->pause_ns);
            (void)pthread_cond_timedwait(&w->wake, &w->lock, &until);
        } else {
            (void)wait_once(w, wait_ms(w));
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- sampler ---- */

uint64_t gp_waiter_rest_ns(const struct gp_waiter *w)
{
    return 2 * w->wait_ms * GP_NS_PER_MS;
}

struct gp_waiter *gp_waiter_new(struct gp_source *source, gp_event_kinds kinds, unsigned wait_ms)
{
    struct gp_waiter *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->wanted = kinds;
    w->wait_ms = wait_ms;
    w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (w->fd < 0) {
        free(w);
        return NULL;
    }
    w->source = source;
    (void)pthread_mutex_init(&w->lock, NULL);
    gp_thread_cond_init(&w->wake);
    gp_thread_cond_init(&w->rested);
    return w;
}

void gp_waiter_begin(struct gp_waiter *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->allowed = true;
    w->begin_ns = gp_clock_mono_ns();
    (void)pthread_mutex_unlock(&w->lock);
}

/* The entry of a device; NULL without memory for a new one. */
static struct offer *offer_of(struct gp_waiter *w, unsigned name)
{
    for (size_t i = 0; i < w->offer_count; i++)
        if (w->offers[i].name == name)
            return &w->offers[i];
    struct offer *grown = realloc(w->offers, (w->offer_count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    w->offers = grown;
    grown[w->offer_count] = (struct offer){.name = name};
    return &grown[w->offer_count++];
}

/* Without a thread or memory, driver events are missing; readings are still compared. */
void gp_waiter_offer(struct gp_waiter *w, unsigned name, struct gp_source_device *device)
{
    (void)pthread_mutex_lock(&w->lock);
    if (!w->has_thread)
        w->has_thread = gp_thread_start(&w->thread, thread_main, w) == 0;
    struct offer *offer = w->has_thread ? offer_of(w, name) : NULL;
    if (offer) {
        offer->device = device;
        offer->offered = true;
        offer->asked = false;
        (void)pthread_cond_signal(&w->wake);
    }
    (void)pthread_mutex_unlock(&w->lock);
}

bool gp_waiter_pause(struct gp_waiter *w, bool on)
{
    (void)pthread_mutex_lock(&w->lock);
    w->pausing = on;
    if (!on)
        (void)pthread_cond_signal(&w->wake);
    bool rests = !w->calling;
    (void)pthread_mutex_unlock(&w->lock);
    return rests;
}

bool gp_waiter_rest(struct gp_waiter *w, uint64_t until_ns, const char *why)
{
    struct timespec until = gp_clock_timespec(until_ns);
    (void)pthread_mutex_lock(&w->lock);
    bool before = w->allowed;
    w->allowed = false;
    w->draining = before && reported(w);
    (void)pthread_cond_signal(&w->wake);
    while ((w->calling || w->draining) && gp_clock_mono_ns() < until_ns)
        (void)pthread_cond_timedwait(&w->rested, &w->lock, &until);
    bool rests = !w->calling;
    w->draining = w->pausing = false;
    if (rests) {
        begin_gaps(w, why);
        for (size_t i = 0; i < w->offer_count; i++) {
            w->offers[i].offered = w->offers[i].asked = false;
            w->offers[i].kinds = 0;
        }
        w->heard_ns = 0;
        w->ended = false;
        w->failures = 0;
        w->pause_ns = 0;
    } else {
        w->allowed = before;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return rests;
}

bool gp_waiter_has_ended(struct gp_waiter *w)
{
    (void)pthread_mutex_lock(&w->lock);
    bool ended = w->ended;
    (void)pthread_mutex_unlock(&w->lock);
    return ended;
}

void gp_waiter_free(struct gp_waiter *w)
{
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->quit = true;
    (void)pthread_cond_signal(&w->wake);
    (void)pthread_mutex_unlock(&w->lock);
    if (w->has_thread)
        (void)pthread_join(w->thread, NULL);
    (void)close(w->fd);
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_cond_destroy(&w->rested);
    (void)pthread_mutex_destroy(&w->lock);
    free(w->offers);
    free(w->queue);
    free(w);
}

/* ---- consumer ---- */

int gp_waiter_fd(const struct gp_waiter *w)
{
    return w->fd;
}

size_t gp_waiter_take(struct gp_waiter *w, struct gp_source_event *out, size_t capacity,
                      uint64_t *ret_missed)
{
    uint64_t ignored;
    size_t n = 0;
    (void)pthread_mutex_lock(&w->lock);
    /* Remaining events keep the descriptor readable. */
    bool emptied = w->told && w->count <= capacity;
    w->told = w->told && !emptied;
    if (emptied && read(w->fd, &ignored, sizeof(ignored)) < 0)
        ignored = 0;
    for (; n < capacity && w->count > 0; n++) {
        out[n] = w->queue[w->first];
        w->first = place_of(w, 1);
        w->count--;
    }
    *ret_missed = w->missed;
    w->missed = 0;
    (void)pthread_mutex_unlock(&w->lock);
    return n;
}

bool gp_waiter_take_gap(struct gp_waiter *w, struct gp_waiter_gap *ret)
{
    *ret = (struct gp_waiter_gap){0};
    (void)pthread_mutex_lock(&w->lock);
    bool all_asked = next_offer(w) == w->offer_count || w->ended;
    for (size_t i = 0; w->allowed && all_asked && i < w->offer_count; i++) {
        struct offer *offer = &w->offers[i];
        if (!offer->gap_to_ns || (ret->devices > 0 && offer->gap_from_ns != ret->from_ns))
            continue;
        ret->devices++;
        ret->name = offer->name;
        ret->from_ns = offer->gap_from_ns;
        if (ret->to_ns < offer->gap_to_ns)
            ret->to_ns = offer->gap_to_ns;
        ret->kinds |= offer->gap_kinds;
        ret->why = offer->gap_why;
        offer->gap_from_ns = offer->gap_to_ns = offer->gap_kinds = 0;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return ret->devices > 0;
}

/* By how much the current call exceeds its timeout; requires the lock. */
static double overdue_s(const struct gp_waiter *w)
{
    if (!w->calling)
        return 0;
    return (double)(gp_clock_mono_ns() - w->since_ns) / 1e9 - w->wait_ms / 1e3;
}

gp_event_kinds gp_waiter_kinds(struct gp_waiter *w, unsigned name)
{
    gp_event_kinds kinds = 0;
    (void)pthread_mutex_lock(&w->lock);
    bool listens = w->allowed && !w->ended && w->failures == 0 && overdue_s(w) < STUCK_S;
    for (size_t i = 0; listens && i < w->offer_count; i++)
        if (w->offers[i].name == name)
            kinds = w->offers[i].kinds;
    (void)pthread_mutex_unlock(&w->lock);
    return kinds;
}

bool gp_waiter_is_settled(struct gp_waiter *w)
{
    (void)pthread_mutex_lock(&w->lock);
    bool settled = next_offer(w) == w->offer_count || w->ended;
    (void)pthread_mutex_unlock(&w->lock);
    return settled;
}

const char *gp_waiter_stuck_in(struct gp_waiter *w, double *ret_s)
{
    (void)pthread_mutex_lock(&w->lock);
    double late_s = overdue_s(w);
    const char *call = atomic_load_explicit(&w->call, memory_order_relaxed);
    (void)pthread_mutex_unlock(&w->lock);
    *ret_s = late_s;
    return late_s < STUCK_S ? NULL : call ? call : "starting";
}
