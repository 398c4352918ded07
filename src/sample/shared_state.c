#include "sample/shared_state.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/statedir.h"

#include <unistd.h>

/* Not every change causes a notification: a directory may be impossible to watch, and a place can
 * be made after the others. Reading the places takes as long as reading several GPUs. */
enum { KEPT_S = 8, KEPT_EMPTY_S = 64 };

/* How often notifications are looked for: in every second sample of a second each. */
enum { LOOK_MS = 1900 };

void gp_shared_state_init(struct gp_shared_state *state, const char *root)
{
    *state = (struct gp_shared_state){.root = root, .watch = -1};
}

static void forget(struct gp_shared_state *state)
{
    gp_leases_fini(&state->leases);
    gp_suspended_fini(&state->suspended);
}

/* Whether what was read may be out of date. The directories below a root are written by a
 * simulation or a test, and are not watched. No directory changes when a suspended process ends. */
static bool is_due(struct gp_shared_state *state, uint64_t now_ns)
{
    uint64_t kept_s = state->leases.count > 0 ? KEPT_S : KEPT_EMPTY_S;
    if (state->root || state->suspended.count > 0 || state->watch < 0 ||
        now_ns - state->read_ns >= kept_s * GP_NS_PER_S)
        return true;
    if (now_ns - state->looked_ns < LOOK_MS * GP_NS_PER_MS)
        return false;
    state->looked_ns = now_ns;
    return gp_statedirs_changed(state->watch);
}

int gp_shared_state_update(struct gp_shared_state *state)
{
    if (!state->wants_leases && !state->wants_suspended)
        return 0;
    uint64_t now_ns = gp_clock_mono_ns();
    int r = 0;
    if (!is_due(state, now_ns))
        return 0;
    /* before reading, so that no change is missed */
    if (state->read_ns > 0 && !state->root)
        gp_statedirs_watch(NULL, &state->watch);
    forget(state);
    if (state->wants_leases)
        r = gp_leases_read_settled(&state->leases, NULL);
    if (r == 0 && state->wants_suspended)
        r = gp_suspended_read(state->root, &state->suspended, NULL);
    state->read_ns = r == 0 ? now_ns : 0;
    state->is_unknown = r < 0;
    return r == GP_ENOMEM ? r : 0;
}

void gp_shared_state_fini(struct gp_shared_state *state)
{
    forget(state);
    if (state->watch >= 0)
        (void)close(state->watch);
    state->watch = -1;
}
