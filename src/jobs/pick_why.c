/* Obstacles in words: GPUs with the same one are named together. */
#include "base/strbuf.h"
#include "jobs/pick_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_MOST = 8 }; /* of GPUs that are named */

/* The obstacle to report: the first in the enum and, of several GPUs with it, the one with most
 * free memory. NULL: no GPU in this state. */
static const struct gp_pick_unit *main_obstacle(const struct gp_pick *pick,
                                                enum gp_pick_state state)
{
    const struct gp_pick_unit *best = NULL;
    for (size_t i = 0; i < pick->count; i++) {
        const struct gp_pick_unit *unit = &pick->units[i];
        if (unit->state == state && (!best || unit->obstacle < best->obstacle ||
                                     (unit->obstacle == best->obstacle && unit->free > best->free)))
            best = unit;
    }
    return best;
}

/* The number of devices at the start of the list that are shown as one range, or 1. */
static size_t range_of(const struct gp_device *const *devices, size_t count)
{
    size_t n = 1;
    while (n < count && !devices[0]->is_mig && !devices[n]->is_mig &&
           devices[n]->index == devices[0]->index + n)
        n++;
    return n > 2 ? n : 1;
}

void gp_pick_add_gpus(struct gp_strbuf *sb, const struct gp_device *const *devices, size_t count)
{
    size_t parts = 0;
    size_t said = 0;
    for (size_t i = 0; i < count; i += range_of(devices + i, count - i))
        parts++;
    gp_strbuf_adds(sb, count == 1 ? "GPU " : "GPUs ");
    for (size_t i = 0; i < count && said < GROUP_MOST; said++) {
        const size_t n = range_of(devices + i, count - i);
        gp_strbuf_addf(sb, "%s%u",
                       said == 0           ? ""
                       : said + 1 == parts ? " and "
                                           : ", ",
                       devices[i]->index);
        if (devices[i]->is_mig)
            gp_strbuf_addf(sb, ":%u", devices[i]->mig_index);
        if (n > 1)
            gp_strbuf_addf(sb, "-%u", devices[i + n - 1]->index);
        i += n;
    }
    gp_strbuf_adds(sb, said < parts ? ", …" : "");
}

static bool has_reason(const struct gp_pick *pick, const struct gp_pick_unit *unit, size_t i)
{
    return pick->units[i].state == unit->state && strcmp(pick->units[i].why, unit->why) == 0;
}

/* The GPUs that have the same reason as this one. */
static size_t list_group(const struct gp_pick *pick, const struct gp_pick_unit *unit,
                         const struct gp_device **devices)
{
    size_t count = 0;
    for (size_t i = 0; i < pick->count; i++)
        if (has_reason(pick, unit, i))
            devices[count++] = pick->units[i].device;
    return count;
}

const struct gp_pick_unit *gp_pick_next_obstacle(const struct gp_pick *pick, size_t *at,
                                                 const struct gp_device **devices,
                                                 size_t *ret_count)
{
    while (*at < pick->count) {
        const struct gp_pick_unit *unit = &pick->units[(*at)++];
        size_t first = 0;
        while (!has_reason(pick, unit, first))
            first++;
        if (unit->state == GP_PICK_LATER && unit == &pick->units[first]) {
            *ret_count = list_group(pick, unit, devices);
            return unit;
        }
    }
    return NULL;
}

/* The GPUs that are in this state for other reasons; ret_reason: NULL if there are several. */
static size_t list_others(const struct gp_pick *pick, const struct gp_pick_unit *unit,
                          const struct gp_device **devices, const char **ret_reason)
{
    const struct gp_pick_unit *first = NULL;
    size_t count = 0;
    bool is_one = true;
    for (size_t i = 0; i < pick->count; i++)
        if (pick->units[i].state == unit->state && !has_reason(pick, unit, i) &&
            pick->units[i].obstacle != GP_PICK_NOT_REQUESTED) {
            first = first ? first : &pick->units[i];
            is_one = is_one && has_reason(pick, first, i);
            devices[count++] = pick->units[i].device;
        }
    *ret_reason = first && is_one ? first->why : NULL;
    return count;
}

/* "; GPUs 6 and 7: reserved by …; GPU 4: …", or "; for GPUs 2-4, see gpulse pick --explain" */
static void add_obstacle(struct gp_strbuf *sb, const struct gp_pick *pick, enum gp_pick_state state)
{
    const struct gp_pick_unit *shown = main_obstacle(pick, state);
    const struct gp_device **devices = shown ? calloc(pick->count, sizeof(*devices)) : NULL;
    if (devices) {
        gp_strbuf_adds(sb, "; ");
        gp_pick_add_gpus(sb, devices, list_group(pick, shown, devices));
        gp_strbuf_addf(sb, ": %s", shown->why);
        const char *reason;
        const size_t others = list_others(pick, shown, devices, &reason);
        if (others > 0) {
            gp_strbuf_adds(sb, reason ? "; " : "; for ");
            gp_pick_add_gpus(sb, devices, others);
            gp_strbuf_adds(sb, reason ? ": " : ", see gpulse pick --explain");
            gp_strbuf_adds(sb, reason ? reason : "");
        }
    }
    free(devices);
}

void gp_pick_explain(const struct gp_picking *p, size_t possible, size_t fitting)
{
    struct gp_pick *pick = p->pick;
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(pick->why) - 1);
    const unsigned wanted = p->request->count;
    if (pick->state == GP_PICK_LATER && wanted == 1)
        gp_strbuf_adds(&sb, p->request->only ? "no requested GPU is free" : "no GPU is free");
    else if (pick->state == GP_PICK_LATER)
        gp_strbuf_addf(&sb, "%zu of the %u requested GPUs %s free", fitting, wanted,
                       fitting == 1 ? "is" : "are");
    else if (wanted > pick->count)
        gp_strbuf_addf(&sb, "%u GPU%s requested, but this machine has %zu", wanted,
                       wanted == 1 ? "" : "s", pick->count);
    else if (possible == 0)
        gp_strbuf_addf(&sb, "%u GPU%s requested, but no GPU of this machine meets the request",
                       wanted, wanted == 1 ? "" : "s");
    else
        gp_strbuf_addf(&sb, "%u GPUs requested, but only %zu of %zu can ever be used", wanted,
                       possible, pick->count);
    add_obstacle(&sb, pick, pick->state);
    (void)snprintf(pick->why, sizeof(pick->why), "%s", sb.buf);
    gp_strbuf_fini(&sb);
}
