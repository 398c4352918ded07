#include "tape/control.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "source/source.h"
#include "tape/store.h"
#include "tape/strip.h"
#include "tape/tape.h"
#include "tape/walk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUEUE = 64,
    READ_MS = 60,      /* of the strip with a sample */
    READ_SOON_MS = 10, /* with one that somebody waits for */
    NOTE_S = 5,        /* an answer stays, also if it plays on */
};

struct request {
    enum gp_player_request kind;
    int64_t amount;
};

struct gp_tape_control {
    struct gp_player player;
    /* Of the thread that samples. */
    struct gp_tape *tape;
    struct gp_tape_bounds bounds;
    struct gp_tape_found found; /* what is at the place */
    int64_t at;                 /* the place of the last sample; of the first one, before it */
    bool has_begun;
    bool follows;       /* it has reached the end, and stays there */
    int64_t event_at;   /* the place of the event that was gone to last */
    int64_t event_from; /* and where that led: from elsewhere, `at` counts */
    struct gp_tape_strip strip;
    uint64_t note_until_ns;
    int64_t last; /* the end of the recording, and when it was seen to grow; 0: never */
    uint64_t grew_ns;
    /* Shared with the other threads. */
    pthread_mutex_t lock;
    unsigned refs;
    struct request requests[QUEUE];
    size_t request_count;
    bool is_paused;
    double speed;
    uint64_t tick_ns; /* 0: as the sampler says */
    struct gp_player_state state;
    size_t wanted; /* parts */
    size_t part_count;
    struct gp_player_part parts[GP_PLAYER_PARTS];
};

/* ---- the player ---- */

static struct gp_tape_control *of(struct gp_player *player)
{
    return (struct gp_tape_control *)player;
}

static void ask(struct gp_player *player, enum gp_player_request kind, int64_t amount)
{
    struct gp_tape_control *c = of(player);
    (void)pthread_mutex_lock(&c->lock);
    struct request *last = c->request_count ? &c->requests[c->request_count - 1] : NULL;
    const bool adds_up = kind == GP_PLAYER_STEP || kind == GP_PLAYER_SHIFT;
    if (last && adds_up && last->kind == kind && (last->amount < 0) == (amount < 0) &&
        !__builtin_add_overflow(last->amount, amount, &last->amount))
        c->state.answered++; /* both at once */
    else if (c->request_count < QUEUE)
        c->requests[c->request_count++] = (struct request){kind, amount};
    else
        c->state.answered++;
    (void)pthread_mutex_unlock(&c->lock);
}

static void pause_player(struct gp_player *player, bool is_paused)
{
    struct gp_tape_control *c = of(player);
    (void)pthread_mutex_lock(&c->lock);
    c->is_paused = c->state.is_paused = is_paused;
    (void)pthread_mutex_unlock(&c->lock);
}

static void set_speed(struct gp_player *player, double speed, uint64_t tick_ns)
{
    struct gp_tape_control *c = of(player);
    (void)pthread_mutex_lock(&c->lock);
    c->speed = c->state.speed = speed;
    c->tick_ns = tick_ns;
    (void)pthread_mutex_unlock(&c->lock);
}

static void look(struct gp_player *player, struct gp_player_state *ret)
{
    struct gp_tape_control *c = of(player);
    (void)pthread_mutex_lock(&c->lock);
    *ret = c->state;
    (void)pthread_mutex_unlock(&c->lock);
}

static void parts(struct gp_player *player, struct gp_player_part *ret, size_t count)
{
    struct gp_tape_control *c = of(player);
    (void)pthread_mutex_lock(&c->lock);
    c->wanted = count < GP_PLAYER_PARTS ? count : GP_PLAYER_PARTS;
    for (size_t i = 0; i < count; i++)
        ret[i] = c->part_count == count ? c->parts[i] : (struct gp_player_part){.load = -1};
    (void)pthread_mutex_unlock(&c->lock);
}

static void past(struct gp_player *player, size_t count, uint64_t step_ns,
                 void (*on_sample)(void *ctx, const struct gp_snapshot *snapshot), void *ctx)
{
    struct gp_tape_control *c = of(player);
    const struct gp_want want = {.processes = false};
    const int64_t step_us = (int64_t)(step_ns / GP_NS_PER_US);
    const int64_t now = c->found.is_hole ? c->at : c->found.t;
    int64_t last = -1;
    for (size_t i = c->tape && step_us > 0 ? count : 0; i > 0; i--) {
        struct gp_snapshot *snapshot;
        struct gp_tape_found found;
        struct gp_err err;
        if ((int64_t)i > (now - c->bounds.first) / step_us)
            continue;
        const int64_t t = now - (int64_t)i * step_us;
        if (gp_tape_seek(c->tape, t, &found, &err) < 0 || found.is_hole || found.t <= last ||
            found.t >= now || gp_tape_show(c->tape, &found, t, &want, &snapshot, &err) < 0)
            continue;
        last = found.t;
        on_sample(ctx, snapshot);
        gp_snapshot_free(snapshot);
    }
}

static void ref(struct gp_player *player)
{
    struct gp_tape_control *c = of(player);
    (void)pthread_mutex_lock(&c->lock);
    c->refs++;
    (void)pthread_mutex_unlock(&c->lock);
}

static void unref(struct gp_player *player)
{
    struct gp_tape_control *c = of(player);
    (void)pthread_mutex_lock(&c->lock);
    const unsigned refs = --c->refs;
    (void)pthread_mutex_unlock(&c->lock);
    if (refs > 0)
        return;
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

static const struct gp_player_ops ops = {
    .ask = ask,
    .pause = pause_player,
    .set_speed = set_speed,
    .look = look,
    .parts = parts,
    .past = past,
    .ref = ref,
    .unref = unref,
};

/* ---- opening ---- */

/* The clock's time, for a message. */
static const char *wall_text(int64_t wall_us, char room[GP_RFC3339_SIZE])
{
    gp_clock_plain((uint64_t)wall_us * GP_NS_PER_US, room);
    room[19] = '\0'; /* without milliseconds */
    return room;
}

static const char *time_text(const struct gp_tape *tape, int64_t t, char room[GP_RFC3339_SIZE])
{
    return wall_text(gp_tape_wall(tape, t), room);
}

/* The place of the first sample. */
static int begin(struct gp_tape_control *c, int64_t at_us, struct gp_err *err)
{
    struct gp_tape_found found;
    char at[GP_RFC3339_SIZE];
    char from[GP_RFC3339_SIZE];
    char to[GP_RFC3339_SIZE];
    int r = gp_tape_bounds(c->tape, &c->bounds, err);
    if (r < 0)
        return r;
    if (at_us == GP_TAPE_AT_START || at_us == GP_TAPE_AT_END) {
        c->at = at_us == GP_TAPE_AT_START ? c->bounds.first : c->bounds.last;
        c->follows = at_us == GP_TAPE_AT_END;
        return gp_tape_seek(c->tape, c->at, &found, err);
    }
    c->at = gp_tape_place(c->tape, at_us);
    /* where nothing was recorded, the place is the next one */
    const int64_t off_us = gp_tape_wall(c->tape, c->at) - at_us;
    if (c->at < c->bounds.first || c->at > c->bounds.last + c->bounds.interval_us ||
        off_us > c->bounds.interval_us)
        return gp_err_set(err, GP_EUSAGE,
                          "nothing was recorded at %s; the recording is from %s to %s",
                          wall_text(at_us, at), time_text(c->tape, c->bounds.first, from),
                          time_text(c->tape, c->bounds.last, to));
    r = gp_tape_seek(c->tape, c->at, &found, err);
    if (r == 0 && found.is_hole)
        r = gp_err_set(err, GP_EUSAGE,
                       "nothing was recorded at %s; the last sample before it is of %s",
                       wall_text(at_us, at), time_text(c->tape, found.t, from));
    return r;
}

int gp_tape_control_open(const char *path, int64_t at_us, struct gp_tape_control **ret,
                         struct gp_err *err)
{
    struct gp_tape_control *c = calloc(1, sizeof(*c));
    if (!c)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    *c = (struct gp_tape_control){
        .player.ops = &ops, .refs = 1, .speed = 1, .event_from = -1, .state.speed = 1};
    (void)pthread_mutex_init(&c->lock, NULL);
    int r = gp_tape_open(path, &c->tape, err);
    if (r == 0)
        r = begin(c, at_us, err);
    if (r < 0)
        gp_tape_control_close(c);
    else
        *ret = c;
    return r;
}

struct gp_player *gp_tape_control_player(struct gp_tape_control *c)
{
    return &c->player;
}

void gp_tape_control_close(struct gp_tape_control *c)
{
    if (!c)
        return;
    gp_tape_close(c->tape);
    c->tape = NULL;
    unref(&c->player);
}

/* ---- requests ---- */

/* What is asked for and how to go on, at the time of a sample. */
struct order {
    struct request requests[QUEUE];
    size_t count;
    bool is_paused;
    int64_t step_us;
    size_t wanted;
    char note[GP_PLAYER_NOTE_SIZE];
};

static void take_order(struct gp_tape_control *c, uint64_t step_ns, struct order *order)
{
    (void)pthread_mutex_lock(&c->lock);
    order->count = c->request_count;
    memcpy(order->requests, c->requests, order->count * sizeof(*order->requests));
    c->request_count = 0;
    order->is_paused = c->is_paused;
    order->wanted = c->wanted;
    const uint64_t tick_ns = c->tick_ns ? c->tick_ns : step_ns;
    order->step_us = (int64_t)((double)tick_ns * c->speed / (double)GP_NS_PER_US);
    (void)pthread_mutex_unlock(&c->lock);
}

/* A place moved by some time, within the recording. */
static int64_t moved(const struct gp_tape_bounds *bounds, int64_t at, int64_t us)
{
    if (us > bounds->last - at)
        return bounds->last;
    return us < bounds->first - at ? bounds->first : at + us;
}

static int go_to(struct gp_tape_control *c, int64_t wall_us, struct order *order)
{
    const int64_t place = gp_tape_place(c->tape, wall_us);
    if (place < 0 || place > c->bounds.last)
        (void)snprintf(order->note, sizeof(order->note), "the recording ends here");
    else if (place <= c->bounds.first && gp_tape_wall(c->tape, c->bounds.first) > wall_us)
        (void)snprintf(order->note, sizeof(order->note), "the recording begins here");
    c->at = place < 0 ? c->bounds.last : moved(&c->bounds, place, 0);
    return 0;
}

static int go_to_event(struct gp_tape_control *c, int64_t direction, struct order *order,
                       struct gp_err *err)
{
    struct gp_tape_event event = {.t = 0};
    const int64_t from = c->at == c->event_from ? c->event_at : c->at;
    int r = gp_tape_find_event(c->tape, from, direction > 0, &event, err);
    if (r == 0)
        (void)snprintf(order->note, sizeof(order->note), "no %s event",
                       direction > 0 ? "later" : "earlier");
    if (r <= 0)
        return r;
    (void)snprintf(order->note, sizeof(order->note), "%s", event.text);
    c->event_at = event.t;
    c->at = c->event_from = event.t < c->bounds.first  ? c->bounds.first
                            : event.t > c->bounds.last ? c->bounds.last
                                                       : event.t;
    return 0;
}

static int obey(struct gp_tape_control *c, const struct request *request, struct order *order,
                struct gp_err *err)
{
    const int64_t from = c->found.is_hole ? c->at : c->found.t;
    switch (request->kind) {
    case GP_PLAYER_STEP:
        return gp_tape_step(c->tape, &c->bounds, from, c->found.step_us, request->amount, &c->at,
                            err);
    case GP_PLAYER_SHIFT:
        c->at = moved(&c->bounds, c->at, request->amount);
        return 0;
    case GP_PLAYER_GO:
        return go_to(c, request->amount, order);
    case GP_PLAYER_EVENT:
        return go_to_event(c, request->amount, order, err);
    }
    return 0;
}

/* Plays on. A time of which nothing was recorded is shown once, and then skipped. */
static int advance(struct gp_tape_control *c, const struct order *order, struct gp_err *err)
{
    int64_t next = -1;
    const bool is_over = order->step_us > c->bounds.last - c->at;
    int r = c->found.is_hole && !is_over ? gp_tape_after(c->tape, c->at, &next, err) : 0;
    if (r < 0)
        return r;
    c->at = next > c->at && next <= c->bounds.last ? next
            : c->follows                           ? c->bounds.last
                                                   : moved(&c->bounds, c->at, order->step_us);
    c->follows = c->follows || is_over;
    return 0;
}

/* The place of the next sample. */
static int move(struct gp_tape_control *c, struct order *order, struct gp_err *err)
{
    int r = 0;
    if (order->count == 0)
        return order->is_paused || !c->has_begun ? 0 : advance(c, order, err);
    if (!c->has_begun)
        r = gp_tape_seek(c->tape, c->at, &c->found, err);
    for (size_t i = 0; r == 0 && i < order->count; i++) {
        r = obey(c, &order->requests[i], order, err);
        if (r == 0 && i + 1 < order->count)
            r = gp_tape_seek(c->tape, c->at, &c->found, err);
    }
    c->follows = c->at >= c->bounds.last;
    return r;
}

/* ---- samples ---- */

static uint64_t clock_at(const struct gp_tape_control *c, int64_t t)
{
    const int64_t wall_us = gp_tape_wall(c->tape, t);
    return wall_us > 0 ? (uint64_t)wall_us * GP_NS_PER_US : 0;
}

/* Whether it is being written: it grew a moment ago. The lock of the writer is not asked: whoever
 * begins to record just then would find it taken. */
static bool is_growing(struct gp_tape_control *c)
{
    const uint64_t now_ns = gp_clock_mono_ns();
    const uint64_t pause_ns = (uint64_t)gp_store_pause_us(c->bounds.interval_us) * GP_NS_PER_US;
    const uint64_t last_ns = clock_at(c, c->bounds.last);
    const uint64_t wall_ns = gp_clock_wall_ns();
    if (!c->has_begun && last_ns <= wall_ns && wall_ns - last_ns < pause_ns)
        c->grew_ns = now_ns - (wall_ns - last_ns);
    else if (c->has_begun && c->bounds.last > c->last)
        c->grew_ns = now_ns;
    c->last = c->bounds.last;
    return c->grew_ns > 0 && now_ns - c->grew_ns < pause_ns;
}

static void tell(struct gp_tape_control *c, const struct order *order)
{
    const struct gp_player_state now = {
        .is_known = true,
        .is_at_end = c->at >= c->bounds.last,
        .is_growing = is_growing(c),
        .is_hole = c->found.is_hole,
        .is_moment = c->found.is_moment,
        .step_us = c->found.step_us,
        .first = c->bounds.first,
        .last = c->bounds.last,
        .at = c->at,
        .first_ns = clock_at(c, c->bounds.first),
        .last_ns = clock_at(c, c->bounds.last),
        .wall_ns = clock_at(c, c->found.is_hole ? c->at : c->found.t),
        .now_ns = gp_clock_wall_ns(),
    };
    (void)pthread_mutex_lock(&c->lock);
    const struct gp_player_state before = c->state;
    c->state = now;
    c->state.is_paused = c->is_paused;
    c->state.speed = c->speed;
    c->state.answered = before.answered + order->count;
    if (order->count > 0)
        c->note_until_ns = gp_clock_mono_ns() + NOTE_S * GP_NS_PER_S;
    if (order->count > 0 || now.at == before.at || gp_clock_mono_ns() < c->note_until_ns)
        (void)snprintf(c->state.note, sizeof(c->state.note), "%s",
                       order->count > 0 ? order->note : before.note);
    if (c->strip.count > 0 &&
        (gp_tape_strip_is_read(&c->strip) || c->part_count != c->strip.count)) {
        c->part_count = c->strip.count;
        memcpy(c->parts, c->strip.parts, sizeof(c->parts));
    }
    (void)pthread_mutex_unlock(&c->lock);
}

int gp_tape_control_sample(struct gp_tape_control *c, const struct gp_want *want, uint64_t step_ns,
                           struct gp_snapshot **ret, struct gp_err *err)
{
    struct order order = {.count = 0};
    take_order(c, step_ns, &order);
    int r = gp_tape_bounds(c->tape, &c->bounds, err);
    if (r < 0)
        return r;
    r = move(c, &order, err);
    if (r < 0)
        return r;
    r = gp_tape_seek(c->tape, c->at, &c->found, err);
    if (r == 0)
        r = gp_tape_show(c->tape, &c->found, c->at, want, ret, err);
    if (r < 0)
        return r;
    if (c->has_begun || order.wanted) {
        gp_tape_strip_plan(&c->strip, c->bounds.first, c->bounds.last, order.wanted);
        gp_tape_strip_read(&c->strip, c->tape,
                           (order.count ? READ_SOON_MS : READ_MS) * GP_NS_PER_MS);
    }
    tell(c, &order);
    c->has_begun = true;
    return order.step_us > c->bounds.last - c->at; /* the next one would be after the end */
}
