/* The clock of the code under test, for tests linked with --wrap=gp_clock_mono_ns and
 * --wrap=gp_clock_timespec: it goes as the real one does until a test puts it forward, stops it or
 * has it run. Waits until a moment of it look at it again every millisecond: what is tested has to
 * bear waits that come back early, as waits for condition variables may anyway. */
#ifndef GP_TESTS_OWN_CLOCK_H
#define GP_TESTS_OWN_CLOCK_H

#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>

uint64_t __real_gp_clock_mono_ns(void);
uint64_t __wrap_gp_clock_mono_ns(void);
struct timespec __real_gp_clock_timespec(uint64_t ns);
struct timespec __wrap_gp_clock_timespec(uint64_t ns);

static struct {
    pthread_mutex_t lock;
    uint64_t shown_ns; /* what it shows at the real moment … */
    uint64_t real_ns;
    uint64_t speed;
    atomic_uint looks; /* waits that began or went on */
} own_clock = {.lock = PTHREAD_MUTEX_INITIALIZER, .speed = 1};

/* The lock is held. No two moments are the same. */
static inline uint64_t own_clock_now_ns(void)
{
    uint64_t real_ns = __real_gp_clock_mono_ns();
    own_clock.shown_ns += (real_ns - own_clock.real_ns) * own_clock.speed + 1;
    own_clock.real_ns = real_ns;
    return own_clock.shown_ns;
}

uint64_t __wrap_gp_clock_mono_ns(void)
{
    (void)pthread_mutex_lock(&own_clock.lock);
    uint64_t ns = own_clock_now_ns();
    (void)pthread_mutex_unlock(&own_clock.lock);
    return ns;
}

struct timespec __wrap_gp_clock_timespec(uint64_t ns)
{
    uint64_t now_ns = gp_clock_mono_ns();
    uint64_t rest_ns = ns > now_ns ? ns - now_ns : 0;
    atomic_fetch_add(&own_clock.looks, 1);
    return __real_gp_clock_timespec(__real_gp_clock_mono_ns() +
                                    (rest_ns < GP_NS_PER_MS ? rest_ns : GP_NS_PER_MS));
}

static inline void skip_ms(uint64_t ms)
{
    (void)pthread_mutex_lock(&own_clock.lock);
    own_clock.shown_ns = own_clock_now_ns() + ms * GP_NS_PER_MS;
    (void)pthread_mutex_unlock(&own_clock.lock);
}

/* So many times as fast as the real one; 0: it stands still, but for a nanosecond at each look. */
static inline void set_clock_speed(uint64_t speed)
{
    (void)pthread_mutex_lock(&own_clock.lock);
    (void)own_clock_now_ns();
    own_clock.speed = speed;
    (void)pthread_mutex_unlock(&own_clock.lock);
}

#endif
