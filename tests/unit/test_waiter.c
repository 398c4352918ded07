/* The thread that waits for events: that it never spins, never calls beside the end of a session,
 * and counts what it cannot keep. */
#include "unit.h"

#include "base/err.h"
#include "own_clock.h"
#include "sample/waiter.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

enum { LONG_S = 30, FOREVER = -1 };

#define XID gp_event_bit(GP_EVENT_XID)

/* Time in which something would happen that shall not. */
static void let_it_act(void)
{
    (void)usleep(20000);
}

static const gp_event_kinds wanted_kinds = 0x5a;

/* A source of which only the two functions for events exist. */
static struct {
    struct gp_source source;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int answer;    /* of a wait */
    long waits_ms; /* how long it takes; FOREVER: until let go */
    unsigned left; /* so many waits have an event first */
    int watch_answer;
    unsigned anew; /* the registration of this device loses events of those before it; 0: none */
    gp_event_kinds kinds;
    gp_event_kinds wanted; /* at the last registration */
    bool forbidden;        /* a call now is a breach */
    unsigned waits, watches, breaches;
    unsigned shortest_ms; /* wait that was asked for */
    uint64_t number;
} fake;

static int fake_watch(struct gp_source_device *device, unsigned name, gp_event_kinds wanted,
                      gp_call_name *call, gp_event_kinds *ret_kinds)
{
    (void)device;
    (void)pthread_mutex_lock(&fake.lock);
    fake.breaches += fake.forbidden;
    fake.watches++;
    atomic_store(call, "fakeWatch");
    *ret_kinds = fake.kinds;
    fake.wanted = wanted;
    int answer = fake.anew && name == fake.anew ? 1 : fake.watch_answer;
    (void)pthread_mutex_unlock(&fake.lock);
    return answer;
}

static int fake_wait(struct gp_source *source, unsigned timeout_ms, gp_call_name *call,
                     struct gp_source_event *ret)
{
    (void)source;
    (void)pthread_mutex_lock(&fake.lock);
    fake.breaches += fake.forbidden;
    fake.waits++;
    fake.shortest_ms = timeout_ms < fake.shortest_ms ? timeout_ms : fake.shortest_ms;
    atomic_store(call, "fakeWait");
    while (fake.waits_ms == FOREVER)
        (void)pthread_cond_wait(&fake.changed, &fake.lock);
    long ms = fake.waits_ms < (long)timeout_ms ? fake.waits_ms : (long)timeout_ms;
    int answer = fake.left > 0 ? 1 : fake.answer;
    fake.left -= fake.left > 0;
    *ret = (struct gp_source_event){.kind = GP_EVENT_XID, .number = fake.number, .words = ""};
    fake.number += answer == 1;
    (void)pthread_mutex_unlock(&fake.lock);
    if (ms > 0)
        (void)usleep((useconds_t)ms * 1000);
    return answer;
}

static void change(int answer, long waits_ms)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake.answer = answer;
    fake.waits_ms = waits_ms;
    (void)pthread_cond_broadcast(&fake.changed);
    (void)pthread_mutex_unlock(&fake.lock);
}

static unsigned waits(void)
{
    (void)pthread_mutex_lock(&fake.lock);
    unsigned n = fake.waits;
    (void)pthread_mutex_unlock(&fake.lock);
    return n;
}

static void set_forbidden(bool forbidden)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake.forbidden = forbidden;
    (void)pthread_mutex_unlock(&fake.lock);
}

static uint64_t after_s(double s)
{
    return gp_clock_mono_ns() + (uint64_t)(s * 1e9);
}

static struct gp_waiter *w;

static int set_up(void **state)
{
    static const struct gp_source_ops ops = {.watch = fake_watch, .wait_event = fake_wait};
    (void)state;
    memset(&fake, 0, sizeof(fake));
    fake.source.ops = &ops;
    fake.kinds = XID;
    fake.waits_ms = 5; /* not the whole time: the end of a test need not wait for it */
    set_clock_speed(1);
    (void)pthread_mutex_init(&fake.lock, NULL);
    (void)pthread_cond_init(&fake.changed, NULL);
    w = gp_waiter_new(&fake.source, wanted_kinds, 500);
    return w ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    change(0, 1);
    set_clock_speed(1);
    bool rests = gp_waiter_rest(w, after_s(LONG_S), "rest");
    gp_waiter_free(w);
    return rests && fake.breaches == 0 ? 0 : -1;
}

static void begin(void)
{
    gp_waiter_begin(w);
    gp_waiter_offer(w, 0, NULL);
}

/* Waits until the consumer is told that there is something. */
static void await_news(void)
{
    struct pollfd fd = {.fd = gp_waiter_fd(w), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, LONG_S * 1000), 1);
}

static void await_settled(void)
{
    for (int i = 0; i < 30000 && !gp_waiter_is_settled(w); i++)
        (void)usleep(1000);
    assert_true(gp_waiter_is_settled(w));
}

static void await_waits(unsigned least)
{
    for (int i = 0; i < 30000 && waits() < least; i++)
        (void)usleep(1000);
    assert_true(waits() >= least);
}

/* Until the waiter has looked at the clock again, or has waited for the driver. */
static void await_look(void)
{
    unsigned before = atomic_load(&own_clock.looks);
    unsigned waited = waits();
    for (int i = 0; i < 30000 && atomic_load(&own_clock.looks) == before && waits() == waited; i++)
        (void)usleep(1000);
}

/* The shortest wait that is asked for from now on; the clock stands still. */
static unsigned shortest_wait(void)
{
    unsigned before = waits();
    (void)pthread_mutex_lock(&fake.lock);
    fake.shortest_ms = UINT_MAX;
    (void)pthread_mutex_unlock(&fake.lock);
    for (int i = 0; i < 100 && waits() == before; i++) {
        skip_ms(10);
        await_look();
    }
    (void)pthread_mutex_lock(&fake.lock);
    unsigned ms = fake.shortest_ms;
    (void)pthread_mutex_unlock(&fake.lock);
    return ms;
}

/* The next wait comes so long after the last one, and not earlier; the clock stands still. */
static void check_next_wait_after(uint64_t ms)
{
    unsigned before = waits();
    await_look(); /* the last one is over */
    skip_ms(ms - 1);
    await_look(); /* this one may have begun before the skip */
    await_look();
    assert_int_equal(waits(), before);
    skip_ms(1);
    await_waits(before + 1);
    await_look();
    assert_int_equal(waits(), before + 1);
}

static void nothing_is_called_before_the_session(void **state)
{
    (void)state;
    set_forbidden(true);
    gp_waiter_offer(w, 0, NULL);
    (void)usleep(50000);
    assert_true(gp_waiter_kinds(w, 0) == 0);
    assert_false(gp_waiter_is_settled(w));
    set_forbidden(false);
}

static void events_come_in_their_order(void **state)
{
    (void)state;
    fake.answer = 1;
    fake.waits_ms = 1;
    begin();
    uint64_t expected = 0;
    while (expected < 100) {
        struct gp_source_event events[16];
        uint64_t missed;
        await_news();
        size_t n = gp_waiter_take(w, events, GP_ARRAY_LEN(events), &missed);
        assert_int_equal(missed, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(events[i].number, expected++);
    }
    assert_true(gp_waiter_kinds(w, 0) == XID);
    assert_true(gp_waiter_kinds(w, 1) == 0);
}

static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    static struct gp_source_event events[1000];
    uint64_t taken = 0;
    uint64_t lost = 0;
    uint64_t missed;
    fake.answer = 1;
    fake.waits_ms = 0;
    begin();
    await_waits(20000);
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "rest"));
    for (size_t n = 1; n > 0;) {
        n = gp_waiter_take(w, events, GP_ARRAY_LEN(events), &missed);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(events[i].number, taken + i);
        taken += n;
        lost += missed;
    }
    assert_int_equal(taken, 16384);
    (void)pthread_mutex_lock(&fake.lock);
    assert_int_equal(taken + lost, fake.number);
    (void)pthread_mutex_unlock(&fake.lock);
}

static void a_failure_that_comes_at_once_is_repeated_ever_more_rarely(void **state)
{
    (void)state;
    static const unsigned later_ms[] = {100,  200,   400,   800,   1600,  3200,
                                        6400, 12800, 25600, 51200, 60000, 60000};
    fake.answer = GP_EFAIL;
    fake.waits_ms = 0;
    set_clock_speed(0);
    begin();
    await_waits(1);
    for (size_t i = 0; i < GP_ARRAY_LEN(later_ms); i++)
        check_next_wait_after(later_ms[i]);
    /* nobody can rely on such a driver */
    assert_true(gp_waiter_kinds(w, 0) == 0);
    change(0, 0);
    check_next_wait_after(60000);
    check_next_wait_after(500);
    assert_true(gp_waiter_kinds(w, 0) == XID);
}

static void a_wait_that_comes_back_early_does_not_spin(void **state)
{
    (void)state;
    fake.answer = 0;
    fake.waits_ms = 0;
    set_clock_speed(0);
    begin();
    await_waits(1);
    check_next_wait_after(500);
    check_next_wait_after(500);
}

static void nobody_waits_where_nothing_is_reported(void **state)
{
    (void)state;
    fake.kinds = 0;
    double late_s = -1;
    begin();
    await_settled();
    skip_ms(60000);
    let_it_act();
    assert_int_equal(waits(), 0);
    assert_int_equal(fake.watches, 1);
    assert_true(fake.wanted == wanted_kinds);
    /* and no call is late where there is none */
    assert_null(gp_waiter_stuck_in(w, &late_s));
    assert_true(late_s > -0.1 && late_s < 0.1);
}

static void the_descriptor_is_its_own(void **state)
{
    (void)state;
    int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    (void)close(STDIN_FILENO);
    struct gp_waiter *lowest =
        gp_waiter_new(&fake.source, wanted_kinds, 500); /* 0 is as good as any */
    int fd = lowest ? gp_waiter_fd(lowest) : -1;
    gp_waiter_free(lowest);
    bool closed = fcntl(STDIN_FILENO, F_GETFD) < 0;
    if (kept >= 0) {
        assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
        (void)close(kept);
    }
    assert_non_null(lowest);
    assert_int_equal(fd, STDIN_FILENO);
    assert_true(closed);
    gp_waiter_free(NULL);
}

/* The descriptor stays readable until all is taken. */
static void no_more_is_taken_than_there_is_room_for(void **state)
{
    struct gp_source_event events[3];
    struct pollfd fd = {.fd = gp_waiter_fd(w), .events = POLLIN};
    uint64_t missed;
    (void)state;
    begin();
    await_waits(1);
    (void)pthread_mutex_lock(&fake.lock);
    fake.number = 1;
    fake.left = 5;
    (void)pthread_mutex_unlock(&fake.lock);
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "rest"));
    for (uint64_t taken = 0; taken < 5; taken++) {
        if (taken == 2) /* two at once, of three */
            continue;
        size_t room = taken == 1 ? 2 : 1;
        memset(events, 0, sizeof(events));
        assert_int_equal(poll(&fd, 1, 0), 1);
        assert_int_equal(gp_waiter_take(w, events, room, &missed), room);
        assert_int_equal(events[0].number, 1 + taken);
        assert_int_equal(events[1].number, room == 2 ? 2 + taken : 0);
        assert_int_equal(events[2].number, 0);
        assert_int_equal(missed, 0);
    }
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(gp_waiter_take(w, events, 3, &missed), 0);
}

static void at_rest_nothing_is_called_and_devices_are_forgotten(void **state)
{
    (void)state;
    begin();
    await_waits(1);
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "rest"));
    set_forbidden(true);
    assert_true(gp_waiter_kinds(w, 0) == 0);
    skip_ms(60000);
    let_it_act();
    set_forbidden(false);
    unsigned before = waits();
    gp_waiter_begin(w);
    skip_ms(60000);
    let_it_act();
    assert_int_equal(waits(), before); /* nothing is offered in the new session yet */
    gp_waiter_offer(w, 0, NULL);
    await_waits(before + 1);
    assert_int_equal(fake.watches, 2);
}

/* A lost GPU ends the session, but until then the others report. */
static void the_end_of_the_session_is_told_and_others_are_heard(void **state)
{
    (void)state;
    struct gp_source_event event;
    uint64_t missed;
    fake.answer = GP_EDRIVER;
    fake.waits_ms = 0;
    set_clock_speed(0);
    begin();
    for (int i = 0; i < 30000 && !gp_waiter_has_ended(w); i++)
        (void)usleep(1000);
    assert_true(gp_waiter_has_ended(w));
    await_news();
    assert_int_equal(gp_waiter_take(w, &event, 1, &missed), 0);
    for (int i = 0; i < 5; i++)
        check_next_wait_after(100); /* and not ever more rarely */
    assert_true(gp_waiter_kinds(w, 0) == 0);
    gp_waiter_offer(w, 1, NULL); /* is for the next session */
    change(1, 20);
    skip_ms(100);
    await_news();
    assert_int_equal(gp_waiter_take(w, &event, 1, &missed), 1);
    change(0, 5);
    assert_int_equal(fake.watches, 1);
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "rest"));
    assert_false(gp_waiter_has_ended(w));
    unsigned before = waits();
    begin();
    await_waits(before + 1);
}

/* Who wants it to rest need not wait for the end of a call that takes long. */
static void a_pause_begins_when_the_call_has_ended(void **state)
{
    (void)state;
    change(0, FOREVER);
    begin();
    await_waits(1);
    assert_false(gp_waiter_pause(w, true));
    assert_false(gp_waiter_pause(w, true));
    change(0, 1);
    while (!gp_waiter_pause(w, true))
        (void)usleep(1000);
    set_forbidden(true);
    skip_ms(60000);
    let_it_act();
    assert_true(gp_waiter_pause(w, true));
    set_forbidden(false);
    assert_int_equal(waits(), 1);
    assert_true(gp_waiter_pause(w, false)); /* it need not rest after all */
    await_waits(2);
    (void)gp_waiter_pause(w, true);
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "rest")); /* which ends the pause */
    unsigned before = waits();
    begin();
    await_waits(before + 1);
}

/* The driver has events until it is asked no more. */
static void what_is_left_is_taken_before_the_rest(void **state)
{
    (void)state;
    struct gp_source_event events[8];
    uint64_t missed;
    fake.answer = GP_EDRIVER;
    fake.waits_ms = 0;
    begin();
    await_waits(1);
    (void)pthread_mutex_lock(&fake.lock);
    fake.left = 5;
    (void)pthread_mutex_unlock(&fake.lock);
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "rest"));
    assert_int_equal(gp_waiter_take(w, events, GP_ARRAY_LEN(events), &missed), 5);
}

static void events_without_an_end_do_not_keep_it_from_resting(void **state)
{
    (void)state;
    fake.answer = 1;
    fake.waits_ms = 0;
    begin();
    await_waits(1);
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "rest"));
}

static void the_time_without_a_session_is_a_gap(void **state)
{
    (void)state;
    struct gp_waiter_gap gap;
    begin();
    await_waits(1);
    assert_false(gp_waiter_take_gap(w, &gap));
    uint64_t from_ns = gp_clock_mono_ns();
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "why"));
    uint64_t rested_ns = gp_clock_mono_ns();
    assert_false(gp_waiter_take_gap(w, &gap));
    gp_waiter_begin(w);
    assert_false(gp_waiter_take_gap(w, &gap)); /* nobody is registered yet */
    /* a session that brought no GPU back is no end of it */
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "why else"));
    uint64_t to_ns = gp_clock_mono_ns();
    begin();
    await_settled();
    assert_true(gp_waiter_take_gap(w, &gap));
    assert_in_range(gap.from_ns, from_ns, rested_ns);
    assert_in_range(gap.to_ns, to_ns, gp_clock_mono_ns());
    assert_true(gap.kinds == XID);
    assert_string_equal(gap.why, "why");
    assert_false(gp_waiter_take_gap(w, &gap));
}

/* Until its first failure the driver would have come back with an event; what comes behind it, and
 * who is registered meanwhile, changes nothing of that. */
static void a_gap_begins_with_the_first_failure(void **state)
{
    (void)state;
    struct gp_waiter_gap gap;
    fake.answer = GP_EFAIL;
    fake.waits_ms = 0;
    set_clock_speed(0);
    uint64_t from_ns = gp_clock_mono_ns();
    begin();
    await_waits(1);
    await_look();
    uint64_t to_ns = gp_clock_mono_ns();
    for (unsigned n = 2; n < 5; n++) {
        skip_ms(10000);
        await_waits(n);
        await_look();
    }
    gp_waiter_offer(w, 1, NULL);
    await_settled();
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "why"));
    begin();
    gp_waiter_offer(w, 1, NULL);
    await_settled();
    assert_true(gp_waiter_take_gap(w, &gap));
    assert_int_equal(gap.devices, 2);
    assert_in_range(gap.from_ns, from_ns, to_ns);
    assert_true(gap.to_ns > to_ns + 30000 * GP_NS_PER_MS);
}

static void where_nothing_was_reported_there_is_no_gap(void **state)
{
    (void)state;
    struct gp_waiter_gap gap;
    fake.kinds = 0;
    begin();
    await_settled();
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "rest"));
    begin();
    await_settled();
    assert_false(gp_waiter_take_gap(w, &gap));
}

static void who_comes_back_later_has_a_gap_of_its_own(void **state)
{
    (void)state;
    struct gp_waiter_gap first;
    struct gp_waiter_gap second;
    fake.answer = 0;
    set_clock_speed(0);
    begin();
    gp_waiter_offer(w, 1, NULL);
    await_settled();
    assert_int_equal(shortest_wait(), 500);
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "why"));
    begin();
    await_settled();
    assert_true(gp_waiter_take_gap(w, &first));
    assert_int_equal(first.devices, 1);
    assert_int_equal(first.name, 0);
    assert_false(gp_waiter_take_gap(w, &second));
    /* no long wait keeps the other one from being registered */
    assert_in_range(shortest_wait(), 1, 50);
    gp_waiter_offer(w, 1, NULL);
    await_settled();
    assert_true(gp_waiter_take_gap(w, &second));
    assert_int_equal(second.devices, 1);
    assert_int_equal(second.name, 1);
    assert_true(second.from_ns == first.from_ns && second.to_ns > first.to_ns);
    /* both at once are one */
    assert_true(gp_waiter_rest(w, after_s(LONG_S), "why"));
    begin();
    gp_waiter_offer(w, 1, NULL);
    await_settled();
    assert_true(gp_waiter_take_gap(w, &first));
    assert_int_equal(first.devices, 2);
    assert_false(gp_waiter_take_gap(w, &second));
}

static void a_set_that_was_made_anew_is_a_gap(void **state)
{
    (void)state;
    struct gp_waiter_gap gap;
    begin();
    await_settled();
    fake.watch_answer = 1;
    gp_waiter_offer(w, 1, NULL);
    await_settled();
    assert_true(gp_waiter_take_gap(w, &gap));
    assert_true(gap.from_ns < gap.to_ns && gap.kinds == XID);
}

/* Before the driver was asked for an event for the first time. */
static void a_gap_begins_with_the_registration(void **state)
{
    (void)state;
    struct gp_waiter_gap gap;
    fake.anew = 1;
    for (unsigned name = 0; name < 2; name++)
        gp_waiter_offer(w, name, NULL);
    uint64_t from_ns = gp_clock_mono_ns();
    gp_waiter_begin(w);
    gp_waiter_offer(w, 2, NULL);
    await_settled();
    assert_true(gp_waiter_take_gap(w, &gap));
    assert_int_equal(gap.devices, 1);
    assert_int_equal(gap.name, 0);
    assert_in_range(gap.from_ns, from_ns, gap.to_ns);
    assert_false(gp_waiter_take_gap(w, &gap));
}

static void a_registration_is_news(void **state)
{
    (void)state;
    fake.waits_ms = FOREVER;
    begin();
    await_news();
}

static void a_session_that_ends_in_a_registration(void **state)
{
    (void)state;
    fake.watch_answer = GP_EDRIVER;
    fake.kinds = 0;
    begin();
    await_news();
    await_settled();
    assert_true(gp_waiter_has_ended(w));
    assert_int_equal(waits(), 0);
}

static void a_call_that_hangs_cannot_be_put_to_rest(void **state)
{
    (void)state;
    double late_s;
    fake.waits_ms = FOREVER;
    begin();
    await_waits(1);
    assert_false(gp_waiter_rest(w, after_s(0.05), "rest"));
    assert_null(gp_waiter_stuck_in(w, &late_s)); /* so soon it is not called stuck */
    assert_true(gp_waiter_kinds(w, 0) == XID);
    skip_ms(6000); /* but now */
    assert_string_equal(gp_waiter_stuck_in(w, &late_s), "fakeWait");
    assert_true(late_s >= 5);
    assert_true(gp_waiter_kinds(w, 0) == 0);
    /* everything stays as it was: the same session goes on when it comes back */
    change(0, 1);
    await_waits(2);
    skip_ms(500);
    await_waits(3);
    assert_int_equal(fake.watches, 1);
}

static void without_memory_nothing_breaks(void **state)
{
    (void)state;
    alloc_fail_from(0);
    assert_null(gp_waiter_new(&fake.source, wanted_kinds, 500));
    gp_waiter_begin(w);
    gp_waiter_offer(w, 0, NULL); /* has no room for the device */
    alloc_fail_from(-1);
    assert_true(gp_waiter_kinds(w, 0) == 0);
    gp_waiter_offer(w, 0, NULL);
    await_waits(1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_called_before_the_session),
        TEST(events_come_in_their_order),
        TEST(what_does_not_fit_is_counted),
        TEST(a_failure_that_comes_at_once_is_repeated_ever_more_rarely),
        TEST(a_wait_that_comes_back_early_does_not_spin),
        TEST(nobody_waits_where_nothing_is_reported),
        TEST(the_descriptor_is_its_own),
        TEST(no_more_is_taken_than_there_is_room_for),
        TEST(at_rest_nothing_is_called_and_devices_are_forgotten),
        TEST(a_pause_begins_when_the_call_has_ended),
        TEST(the_end_of_the_session_is_told_and_others_are_heard),
        TEST(what_is_left_is_taken_before_the_rest),
        TEST(events_without_an_end_do_not_keep_it_from_resting),
        TEST(the_time_without_a_session_is_a_gap),
        TEST(a_gap_begins_with_the_first_failure),
        TEST(where_nothing_was_reported_there_is_no_gap),
        TEST(who_comes_back_later_has_a_gap_of_its_own),
        TEST(a_set_that_was_made_anew_is_a_gap),
        TEST(a_gap_begins_with_the_registration),
        TEST(a_registration_is_news),
        TEST(a_session_that_ends_in_a_registration),
        TEST(a_call_that_hangs_cannot_be_put_to_rest),
        TEST(without_memory_nothing_breaks),
    };
    return cmocka_run_group_tests_name("waiter", tests, NULL, NULL);
}
