/* The thread that samples for the live monitor. */
#include "fake_source.h"

#include "base/clock.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "sample/sampler.h"
#include "tui/alerts.h"
#include "tui/feed.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct fake fake;
static struct gp_selection selection;
static int gate[2] = {-1, -1}; /* open() waits for a byte, if there is one */
static int open_result;
static uint64_t later_ns; /* the patience of a sample that may be relieved; 0: it may not */

/* How often somebody has begun to wait for more than ten minutes: only the feed between two samples
 * does. */
static atomic_uint long_waits;

int __real_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until);
int __wrap_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until);

int __wrap_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
    if ((uint64_t)until->tv_sec > gp_clock_mono_ns() / GP_NS_PER_S + 600)
        atomic_fetch_add(&long_waits, 1);
    return __real_sem_clockwait(sem, clock, until);
}

static void pause_ms(long ms)
{
    const struct timespec a_while = {.tv_nsec = ms * 1000 * 1000};
    (void)nanosleep(&a_while, NULL);
}

static void until_it_rests(void)
{
    while (!atomic_load(&long_waits))
        pause_ms(1);
}

static int open_fake(void *ctx, struct gp_sampler **ret, struct gp_err *err)
{
    const struct gp_sampler_config config = {.source = &fake.source,
                                             .timeout_ns = 60 * GP_NS_PER_S,
                                             .later_timeout_ns = later_ns,
                                             .is_relieved = later_ns > 0,
                                             .selection = &selection,
                                             .want = *(const struct gp_want *)ctx};
    char byte;
    if (gate[0] >= 0)
        assert_int_equal(read(gate[0], &byte, 1), 1);
    if (open_result)
        return gp_err_set(err, open_result, "no driver is here");
    return gp_sampler_new(&config, ret, err);
}

static struct gp_feed *start(struct gp_want *want, uint64_t interval_ns)
{
    struct gp_feed *feed;
    struct gp_err err = {0};
    gp_metric_set_add(&want->metrics, GP_TEMPERATURE_GPU);
    const struct gp_feed_config config = {
        .open = open_fake, .ctx = want, .interval_ns = interval_ns};
    assert_int_equal(gp_feed_start(&config, &feed, &err), 0);
    return feed;
}

static int set_up(void **state)
{
    (void)state;
    fake_init(&fake, 2);
    atomic_store(&long_waits, 0);
    gate[0] = gate[1] = -1;
    open_result = 0;
    later_ns = 0;
    return 0;
}

/* The next snapshot, as long as it takes. */
static struct gp_snapshot *next(struct gp_feed *feed)
{
    struct gp_snapshot *snapshot = NULL;
    struct gp_err err = {0};
    while (!snapshot) {
        struct pollfd fd = {.fd = gp_feed_fd(feed), .events = POLLIN};
        uint64_t took_ns = 0;
        assert_int_equal(poll(&fd, 1, -1), 1);
        assert_int_equal(gp_feed_take(feed, &snapshot, &took_ns, &err), 0);
        assert_true(!snapshot || took_ns > 0);
    }
    return snapshot;
}

static void samples_come_one_behind_the_other(void **state)
{
    (void)state;
    struct gp_want want = {0};
    struct gp_feed *feed = start(&want, GP_NS_PER_MS);
    uint64_t last_ns = 0;
    for (int i = 0; i < 4; i++) {
        struct gp_snapshot *s = next(feed);
        assert_int_equal(s->device_count, 2);
        assert_true(s->mono_ns > last_ns);
        last_ns = s->mono_ns;
        gp_snapshot_free(s);
    }
    assert_true(gp_feed_stop(feed, 60 * GP_NS_PER_S));
    assert_int_equal(fake.frees, 1);
    assert_int_equal(fake.breaches, 0);
}

/* What is taken is gone, and there is nothing to read until there is a new one. */
static void a_snapshot_is_taken_once(void **state)
{
    (void)state;
    struct gp_want want = {0};
    struct gp_feed *feed = start(&want, 3600 * GP_NS_PER_S);
    struct gp_snapshot *s = next(feed);
    struct gp_err err = {0};
    struct pollfd fd = {.fd = gp_feed_fd(feed), .events = POLLIN};
    gp_snapshot_free(s);
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(gp_feed_take(feed, &s, NULL, &err), 0);
    assert_null(s);
    assert_int_equal(poll(&fd, 1, 0), 0);
    struct gp_xid xids[4];
    assert_int_equal(gp_feed_take_xids(feed, xids, 4), 0);
    until_it_rests();
    struct itimerspec late;
    assert_int_equal(timerfd_gettime(gp_feed_late_fd(feed), &late), 0);
    assert_in_range(late.it_value.tv_sec, 3500, 3600);
    assert_true(gp_feed_stop(feed, 60 * GP_NS_PER_S));
}

/* A shorter interval is in force at once, not when the long one is over. */
static void another_interval_wakes_it(void **state)
{
    (void)state;
    struct gp_want want = {0};
    struct gp_feed *feed = start(&want, 3600 * GP_NS_PER_S);
    gp_snapshot_free(next(feed));
    until_it_rests();
    pause_ms(20);
    assert_true(atomic_load(&long_waits) < 5); /* it sleeps, and does not ask for the time */
    gp_feed_set_interval(feed, GP_NS_PER_MS);
    gp_snapshot_free(next(feed));
    gp_snapshot_free(next(feed));
    gp_feed_set_interval(feed, 3600 * GP_NS_PER_S);
    assert_true(gp_feed_stop(feed, 60 * GP_NS_PER_S)); /* and so does the end */
}

/* The next sample comes now, and none after it before the interval is over. */
static void a_hurry_is_one_sample(void **state)
{
    (void)state;
    struct gp_want want = {0};
    struct gp_feed *feed = start(&want, 3600 * GP_NS_PER_S);
    gp_snapshot_free(next(feed));
    until_it_rests();
    for (int i = 0; i < 3; i++) {
        const unsigned before = atomic_load(&long_waits);
        gp_feed_hurry(feed);
        gp_snapshot_free(next(feed));
        while (atomic_load(&long_waits) == before)
            pause_ms(1);
    }
    struct gp_snapshot *none;
    struct gp_err err = {0};
    pause_ms(20);
    assert_int_equal(gp_feed_take(feed, &none, NULL, &err), 0);
    assert_null(none);
    assert_true(gp_feed_stop(feed, 60 * GP_NS_PER_S));
}

/* What only those need who look is read while somebody does. */
static void what_is_on_the_screen_is_read(void **state)
{
    (void)state;
    struct gp_want want = {0};
    gp_metric_set_add(&want.more, GP_PCIE_TX);
    struct gp_feed *feed = start(&want, GP_NS_PER_MS);
    const uint32_t pids[] = {1, 2, 3};
    for (int round = 0; round < 4; round++) {
        bool more = round % 2 == 0;
        const struct gp_feed_view view = {
            .pids = round < 2 ? pids : NULL, .pid_count = round < 2 ? 3 : 0, .more = more};
        gp_feed_watch(feed, &view);
        for (bool as_wanted = false; !as_wanted;) {
            gp_snapshot_free(next(feed));
            (void)pthread_mutex_lock(&fake.lock);
            as_wanted = gp_metric_set_has(&fake.want.metrics, GP_PCIE_TX) == more;
            (void)pthread_mutex_unlock(&fake.lock);
        }
    }
    assert_true(gp_feed_stop(feed, 60 * GP_NS_PER_S));
}

static void why_it_cannot_begin_is_told(void **state)
{
    (void)state;
    struct gp_want want = {0};
    open_result = GP_ENODEV;
    struct gp_feed *feed = start(&want, GP_NS_PER_MS);
    struct pollfd fd = {.fd = gp_feed_fd(feed), .events = POLLIN};
    struct gp_snapshot *s;
    struct gp_err err = {0};
    assert_int_equal(poll(&fd, 1, -1), 1);
    assert_int_equal(gp_feed_take(feed, &s, NULL, &err), GP_ENODEV);
    assert_null(s);
    assert_string_equal(err.text, "no driver is here");
    assert_true(gp_feed_stop(feed, 60 * GP_NS_PER_S));
}

static void *open_gate(void *arg)
{
    pause_ms(100);
    assert_int_equal(write(*(int *)arg, "x", 1), 1);
    return NULL;
}

/* The end waits for a driver that is slow, and not for one that hangs. */
static void the_end_is_patient_to_a_degree(void **state)
{
    (void)state;
    struct gp_want want = {0};
    pthread_t opener;
    assert_int_equal(pipe(gate), 0);
    struct gp_feed *feed = start(&want, GP_NS_PER_MS);
    assert_false(gp_feed_stop(feed, GP_NS_PER_MS));
    assert_int_equal(pthread_create(&opener, NULL, open_gate, &gate[1]), 0);
    assert_true(gp_feed_stop(feed, 60 * GP_NS_PER_S));
    assert_int_equal(pthread_join(opener, NULL), 0);
    (void)close(gate[0]);
    (void)close(gate[1]);
}

/* Looks after the feed until its samples show this GPU so. */
static void look_after_until(struct gp_feed *feed, size_t gpu, enum gp_status status)
{
    enum gp_status shown = GP_STATUS_NONE;
    while (shown != status) {
        struct gp_snapshot *snapshot;
        struct gp_err err = {0};
        struct pollfd fds[] = {{.fd = gp_feed_fd(feed), .events = POLLIN},
                               {.fd = gp_feed_late_fd(feed), .events = POLLIN}};
        assert_true(poll(fds, 2, -1) > 0);
        if (fds[1].revents)
            gp_feed_look_after(feed);
        assert_int_equal(gp_feed_take(feed, &snapshot, NULL, &err), 0);
        if (snapshot)
            shown = snapshot->devices[gpu].status;
        gp_snapshot_free(snapshot);
    }
}

/* GPUs that hang one after the other, each in the thread that samples. */
static void samples_go_on_beside_gpus_that_hang(void **state)
{
    (void)state;
    struct gp_want want = {0};
    later_ns = 200 * GP_NS_PER_MS;
    struct gp_feed *feed = start(&want, GP_NS_PER_MS);
    for (int i = 0; i < 5; i++)
        gp_snapshot_free(next(feed));
    for (unsigned gpu = 0; gpu < 2; gpu++) {
        fake_set_mode(&fake, gpu, FAKE_HANGS);
        look_after_until(feed, gpu, GP_STATUS_TIMEOUT);
    }
    fake_set_mode(&fake, 0, FAKE_WELL);
    look_after_until(feed, 0, GP_STATUS_OK);
    look_after_until(feed, 1, GP_STATUS_TIMEOUT);
    fake_set_mode(&fake, 1, FAKE_WELL);
    look_after_until(feed, 1, GP_STATUS_OK);
    assert_true(gp_feed_stop(feed, 60 * GP_NS_PER_S));
    assert_int_equal(fake.frees, 1);
    assert_int_equal(fake.breaches, 0);
}

/* Whoever opens it says that a thread is stuck: nothing is freed. */
static void a_driver_that_hangs_is_left_behind(void **state)
{
    (void)state;
    struct gp_want want = {0};
    open_result = GP_ETIMEOUT;
    static struct gp_feed *volatile feed; /* what LeakSanitizer finds it by */
    feed = start(&want, GP_NS_PER_MS);
    assert_false(gp_feed_stop(feed, 60 * GP_NS_PER_S));
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(samples_come_one_behind_the_other),
        TEST(a_snapshot_is_taken_once),
        TEST(a_hurry_is_one_sample),
        TEST(another_interval_wakes_it),
        TEST(what_is_on_the_screen_is_read),
        TEST(why_it_cannot_begin_is_told),
        TEST(the_end_is_patient_to_a_degree),
        TEST(a_driver_that_hangs_is_left_behind),
        TEST(samples_go_on_beside_gpus_that_hang),
    };
    return cmocka_run_group_tests_name("tui_feed", tests, NULL, NULL);
}
