/* Leases in a list, compared: which request goes first, and which of them exclude each other. */
#include "base/clock.h"
#include "proc/lease.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gp_lease_has_gpu(const struct gp_lease *lease, const char *uuid)
{
    for (size_t i = 0; *uuid && i < lease->gpu_count; i++)
        if (strcmp(lease->gpus[i], uuid) == 0)
            return true;
    return false;
}

bool gp_lease_may_overtake(const struct gp_lease *earlier, uint64_t limit_ns, uint64_t now_wall_ns)
{
    const uint64_t window_ns = GP_LEASE_OVERTAKE_S * GP_NS_PER_S;
    uint64_t waited_ns = now_wall_ns > earlier->ticket ? now_wall_ns - earlier->ticket : 0;
    return limit_ns > 0 && waited_ns < window_ns && limit_ns <= window_ns - waited_ns;
}

static bool want_the_same(const struct gp_lease *a, const struct gp_lease *b)
{
    for (size_t i = 0; i < a->gpu_count; i++)
        if (gp_lease_has_gpu(b, a->gpus[i]))
            return true;
    return false;
}

size_t gp_lease_position(const struct gp_leases *leases, const struct gp_lease *lease)
{
    size_t position = lease->state == GP_LEASE_WAITING;
    for (size_t i = 0; position > 0 && i < leases->count; i++)
        position += leases->items[i].state == GP_LEASE_WAITING &&
                    leases->items[i].ticket < lease->ticket &&
                    want_the_same(&leases->items[i], lease);
    return position;
}

bool gp_lease_is_behind(const struct gp_leases *leases, const struct gp_lease *lease,
                        uint64_t now_wall_ns)
{
    size_t left = 0;
    for (size_t g = 0; g < lease->gpu_count; g++) {
        bool taken = false;
        for (size_t i = 0; !taken && i < leases->count; i++)
            taken = leases->items[i].state == GP_LEASE_WAITING && !leases->items[i].is_stopped &&
                    leases->items[i].ticket < lease->ticket &&
                    gp_lease_has_gpu(&leases->items[i], lease->gpus[g]) &&
                    !gp_lease_may_overtake(&leases->items[i], lease->limit_ns, now_wall_ns);
        left += !taken;
    }
    return left < lease->wanted;
}

const struct gp_lease *gp_leases_rival(const struct gp_leases *leases, const struct gp_lease *lease)
{
    for (size_t i = 0; i < leases->count; i++) {
        const struct gp_lease *other = &leases->items[i];
        const bool is_it = other->id == lease->id && other->uid == geteuid();
        if (!is_it && other->state == GP_LEASE_HELD && !(other->is_shared && lease->is_shared) &&
            want_the_same(other, lease))
            return other;
    }
    return NULL;
}

static bool is_alone(const struct gp_lease *lease)
{
    return lease->state == GP_LEASE_HELD && !lease->is_shared;
}

struct holding {
    const char *uuid;
    const struct gp_lease *lease;
};

static int compare_holdings(const void *a, const void *b)
{
    const struct holding *x = a;
    const struct holding *y = b;
    int order = strcmp(x->uuid, y->uuid);
    return order ? order : (x->lease > y->lease) - (x->lease < y->lease);
}

/* Sorted, as a user can have reserved thousands of invented GPUs. */
bool gp_leases_conflict(const struct gp_leases *leases)
{
    size_t room = 1;
    size_t count = 0;
    bool found = false;
    for (size_t i = 0; i < leases->count; i++)
        room += leases->items[i].gpu_count;
    struct holding *all = calloc(room, sizeof(*all));
    if (!all)
        return true;
    for (size_t i = 0; i < leases->count; i++)
        for (size_t g = 0; is_alone(&leases->items[i]) && g < leases->items[i].gpu_count; g++)
            if (*leases->items[i].gpus[g])
                all[count++] = (struct holding){leases->items[i].gpus[g], &leases->items[i]};
    qsort(all, count, sizeof(*all), compare_holdings);
    for (size_t i = 1; !found && i < count; i++)
        found = all[i].lease != all[i - 1].lease && strcmp(all[i].uuid, all[i - 1].uuid) == 0;
    free(all);
    return found;
}
