/* When the driver's session is opened, closed and reopened: at first, on request, while the GPUs
 * are idle, and to recover a lost GPU. */
#include "base/clock.h"
#include "sample/sampler_internal.h"
#include "sample/waiter.h"

enum {
    REINIT_FIRST_S = 1,
    REINIT_LAST_S = 60,
};

void gp_session_reset_delay(struct gp_sampler *s)
{
    s->reinit_delay_ns = REINIT_FIRST_S * GP_NS_PER_S;
    s->reinit_at_ns = gp_clock_mono_ns() + s->reinit_delay_ns;
}

int gp_session_request(struct gp_sampler *s)
{
    const char *why = gp_session_is_released(s)
                          ? "gpulse had closed the driver"
                          : "the driver session was reopened to recover a GPU or the driver";
    if (s->waiter) {
        /* A wait for events takes its time even if the deadline is short. */
        uint64_t rest_ns = gp_clock_mono_ns() + gp_waiter_rest_ns(s->waiter);
        uint64_t end_ns = gp_pool_deadline_ns(s);
        if (!gp_waiter_rest(s->waiter, rest_ns > end_ns ? rest_ns : end_ns, why))
            return GP_ETIMEOUT;
    }
    s->session_state = TASK_QUEUED;
    s->is_soon = false; /* in a new session, the first call for each GPU may take seconds */
    if (gp_pool_employ(s, 1) < 0) {
        s->session_state = TASK_IDLE;
        return GP_ENOMEM;
    }
    return gp_pool_await_session(s) ? 0 : GP_ETIMEOUT;
}

/* Whether no thread is inside the driver. If a wait for events takes long, none begins after it,
 * and meanwhile the GPUs are read as before; the end of a short one is awaited in
 * gp_session_request().
 */
static bool may_reopen(struct gp_sampler *s)
{
    if (gp_pool_is_busy(s)) {
        if (s->waiter) /* a call that hangs must not end the listening to the other GPUs */
            (void)gp_waiter_pause(s->waiter, false);
        return false;
    }
    return !s->waiter || gp_waiter_rest_ns(s->waiter) <= GP_NS_PER_S ||
           gp_waiter_pause(s->waiter, true);
}

/* A lost GPU or a reloaded driver only recovers through a new session. This is retried with growing
 * delays, and never while a call hangs. */
static void reopen_if_needed(struct gp_sampler *s)
{
    bool needed = s->open_result < 0 || (s->waiter && gp_waiter_has_ended(s->waiter));
    for (unsigned i = 0; i < s->task_count; i++) {
        const struct gp_slot *slot = &s->tasks[i]->slot;
        /* A result of an earlier session is obsolete if the session was reopened since. */
        needed = needed || (slot->chosen && slot->latest && slot->latest->needs_reinit &&
                            slot->latest->time_ns > s->session_ns);
    }
    uint64_t now = gp_clock_mono_ns();
    if (!needed) {
        gp_session_reset_delay(s);
        if (s->waiter)
            (void)gp_waiter_pause(s->waiter, false);
        return;
    }
    if (now < s->reinit_at_ns || !may_reopen(s))
        return;
    (void)gp_session_request(s); /* open_result and open_err have the result */
    s->reinit_at_ns = gp_clock_mono_ns() + s->reinit_delay_ns;
    if (s->reinit_delay_ns < REINIT_LAST_S * GP_NS_PER_S)
        s->reinit_delay_ns *= 2;
}

void gp_session_update(struct gp_sampler *s)
{
    if (!gp_pool_await_session(s)) /* requested by an earlier tick */
        return;
    if (s->config.release_when_idle)
        (void)gp_release_update(&s->release, s->config.source->ops->power(s->config.source),
                                s->busy, gp_clock_mono_ns());
    if (gp_session_is_released(s) == s->held && !gp_pool_is_busy(s) &&
        gp_assembler_needs_source(&s->assembler))
        (void)gp_session_request(s);
    else if (!gp_session_is_released(s))
        reopen_if_needed(s);
}
