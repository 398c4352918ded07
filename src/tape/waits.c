#include "tape/waits.h"

#include "base/clock.h"
#include "base/err.h"
#include "proc/lease.h"

#include <stdlib.h>
#include <string.h>

#define STORE_US INT64_C(60000000)

static int compare(const void *a, const void *b)
{
    const struct gp_wait *x = a;
    const struct gp_wait *y = b;
    if (x->uid != y->uid)
        return x->uid < y->uid ? -1 : 1;
    return (x->request > y->request) - (x->request < y->request);
}

static void free_list(struct gp_wait *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(items[i].user);
        free(items[i].job);
    }
    free(items);
}

/* The place of a lease's state on the axis: when the kernel saw its file. */
static int64_t place_of(const struct gp_lease *lease, int64_t t, int64_t wall_us)
{
    const int64_t since_us = (int64_t)(lease->ticket / GP_NS_PER_US);
    return since_us < wall_us ? t - (wall_us - since_us) : t;
}

/* A command line is only its user's business: see private.h. */
static char *job_of(const struct gp_lease *lease)
{
    const char *command = lease->command;
    const char *end = command + strcspn(command, " ");
    for (const char *p = command; p < end; p++)
        command = *p == '/' ? p + 1 : command;
    return *lease->name ? strdup(lease->name) : strndup(command, (size_t)(end - command));
}

/* The requests that wait now, sorted; NULL without memory. */
static struct gp_wait *list_waiting(const struct gp_leases *leases, int64_t t, int64_t wall_us,
                                    size_t *ret_count)
{
    struct gp_wait *list = calloc(leases->count + 1, sizeof(*list));
    size_t count = 0;
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < leases->count; i++) {
        const struct gp_lease *lease = &leases->items[i];
        if (lease->state != GP_LEASE_WAITING)
            continue;
        list[count++] = (struct gp_wait){.request = lease->id,
                                         .uid = lease->uid,
                                         .gpus = lease->wanted,
                                         .first = place_of(lease, t, wall_us),
                                         .last = t,
                                         .user = strdup(lease->user),
                                         .job = job_of(lease)};
        ok = list[count - 1].user && list[count - 1].job;
    }
    if (!ok) {
        free_list(list, count);
        return NULL;
    }
    qsort(list, count, sizeof(*list), compare);
    *ret_count = count;
    return list;
}

static int store(const struct gp_waits *waits, const struct gp_wait *wait)
{
    return wait->last > wait->first ? waits->store(waits->ctx, wait) : 0;
}

/* A request that has left the line: it waited until it got its GPUs, if that can be seen. */
static int end_wait(const struct gp_waits *waits, struct gp_wait *wait,
                    const struct gp_leases *leases, int64_t t, int64_t wall_us)
{
    for (size_t i = 0; i < leases->count; i++) {
        const struct gp_lease *lease = &leases->items[i];
        const int64_t end = place_of(lease, t, wall_us);
        if (lease->state == GP_LEASE_HELD && lease->id == wait->request &&
            lease->uid == wait->uid && end > wait->last)
            wait->last = end;
    }
    return store(waits, wait);
}

static int end_missing(const struct gp_waits *waits, const struct gp_wait *now, size_t count,
                       const struct gp_leases *leases, int64_t t, int64_t wall_us)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < waits->count; i++)
        if (!count || !bsearch(&waits->items[i], now, count, sizeof(*now), compare))
            r = end_wait(waits, &waits->items[i], leases, t, wall_us);
    return r;
}

/* Those that waited before go on; others cannot have begun before the last look. */
static void number(struct gp_waits *waits, struct gp_wait *now, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct gp_wait *before =
            waits->count ? bsearch(&now[i], waits->items, waits->count, sizeof(*now), compare)
                         : NULL;
        now[i].id = before ? before->id : waits->next_id++;
        if (before)
            now[i].first = before->first;
        else if (now[i].first < waits->watch.last)
            now[i].first = waits->watch.last;
    }
}

static int store_all(struct gp_waits *waits)
{
    int r = waits->watch.id ? store(waits, &waits->watch) : 0;
    for (size_t i = 0; r == 0 && i < waits->count; i++)
        r = store(waits, &waits->items[i]);
    return r;
}

int gp_waits_look(struct gp_waits *waits, const struct gp_leases *leases, int64_t t,
                  int64_t wall_us, int64_t pause_us)
{
    int r = 0;
    size_t count;
    struct gp_wait *now = list_waiting(leases, t, wall_us, &count);
    if (!now)
        return GP_ENOMEM;
    if (!waits->watch.id || t - waits->watch.last > pause_us) {
        r = gp_waits_end(waits);
        waits->watch = (struct gp_wait){.id = waits->next_id++, .first = t, .last = t};
        waits->stored = t;
    }
    if (r == 0)
        r = end_missing(waits, now, count, leases, t, wall_us);
    number(waits, now, count);
    free_list(waits->items, waits->count);
    waits->items = now;
    waits->count = count;
    waits->watch.last = t;
    if (r < 0 || t - waits->stored < STORE_US)
        return r;
    waits->stored = t;
    return store_all(waits);
}

int gp_waits_end(struct gp_waits *waits)
{
    const int r = store_all(waits);
    free_list(waits->items, waits->count);
    waits->items = NULL;
    waits->count = 0;
    waits->watch = (struct gp_wait){.id = 0};
    return r;
}
