#include "sample/shared_state.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/statedir.h"

#include <unistd.h>

/* Not every change causes a notification: a directory may be impossible to watch, and a place can
 * be made after the others. Reading the places takes as long as reading several GPUs. */
enum { KEPT_S = 8, KEPT_EMPTY_S = 64 };

/* For views: in every second sample of a second each. */
enum { LOOK_MS = 1900 };

void gp_shared_state_init(struct gp_shared_state *state, const char *root)
{
    *state = (struct gp_shared_state){
        .root = root, .watch = -1, .look_every_ns = LOOK_MS * GP_NS_PER_MS};
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
    if (now_ns - state->looked_ns < state->look_every_ns)
        return false;
    state->looked_ns = now_ns;
    return gp_statedirs_changed(state->watch);
}

/* Both lists, from one look for the directories of all users. */
static int read_both(struct gp_shared_state *state)
{
    struct gp_statedirs dirs;
    const int e = gp_statedirs_open(NULL, &dirs);
    int r =
        e == 0 ? gp_leases_read_settled(&dirs, &state->leases, NULL) : gp_statedirs_fail(e, NULL);
    if (r == 0)
        r = gp_suspended_read_in(&dirs, &state->suspended, NULL);
    gp_statedirs_close(&dirs);
    return r;
}

static int read_each(struct gp_shared_state *state)
{
    int r = 0;
    if (state->wants_leases)
        r = gp_leases_read_settled(NULL, &state->leases, NULL);
    if (r == 0 && state->wants_suspended)
        r = gp_suspended_read(state->root, &state->suspended, NULL);
    return r;
}

int gp_shared_state_update(struct gp_shared_state *state)
{
    if (!state->wants_leases && !state->wants_suspended)
        return 0;
    uint64_t now_ns = gp_clock_mono_ns();
    if (!is_due(state, now_ns))
        return 0;
    /* before reading, so that no change is missed */
    if (state->read_ns > 0 && !state->root)
        gp_statedirs_watch(NULL, &state->watch);
    forget(state);
    const bool is_one_look = !state->root && state->wants_leases && state->wants_suspended;
    int r = is_one_look ? read_both(state) : read_each(state);
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
