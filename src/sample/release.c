#include "sample/release.h"

static void take_hold(struct gp_release *r, uint64_t again_ns)
{
    *r = (struct gp_release){.again_ns = again_ns};
}

bool gp_release_update(struct gp_release *r, enum gp_power power, bool busy, uint64_t now_ns)
{
    if (power != GP_POWER_AWAKE) {
        take_hold(r, 0);
    } else if (r->released) {
        if (now_ns - r->release_ns >= GP_RELEASE_WAIT_S * GP_NS_PER_S)
            take_hold(r, now_ns + GP_RELEASE_AGAIN_S * GP_NS_PER_S);
    } else if (busy) {
        r->idle_ns = 0;
    } else if (r->idle_ns == 0) {
        r->idle_ns = now_ns;
    } else if (now_ns >= r->again_ns && now_ns - r->idle_ns >= GP_RELEASE_IDLE_S * GP_NS_PER_S) {
        *r = (struct gp_release){.released = true, .release_ns = now_ns};
    }
    return r->released;
}
