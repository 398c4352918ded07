/* The best of the GPUs that fit. Several that work together should be close to each other. */
#include "jobs/pick_internal.h"

#include <stdlib.h>
#include <string.h>

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_units(const void *a, const void *b, void *ctx)
{
    const struct gp_picking *p = ctx;
    const struct gp_pick_unit *x = &p->pick->units[*(const size_t *)a];
    const struct gp_pick_unit *y = &p->pick->units[*(const size_t *)b];
    int by_processes = compare_numbers((double)x->processes, (double)y->processes);
    int by_free = compare_numbers(y->free, x->free);
    const int orders[GP_PICK__COUNT] = {
        [GP_PICK_DEFAULT] = by_processes ? by_processes : by_free,
        [GP_PICK_FREE] = by_free,
        [GP_PICK_LOAD] = compare_numbers(x->load, y->load),
        [GP_PICK_COOL] = compare_numbers(x->celsius, y->celsius),
        [GP_PICK_INDEX] = compare_numbers((double)*(const size_t *)a, (double)*(const size_t *)b),
    };
    if (x->preferred != y->preferred)
        return y->preferred - x->preferred;
    int order = orders[p->request->order];
    return order ? order : compare_numbers((double)*(const size_t *)b, (double)*(const size_t *)a);
}

void gp_pick_sort(const struct gp_picking *p, size_t *fitting, size_t count)
{
    qsort_r(fitting, count, sizeof(*fitting), compare_units, (void *)(uintptr_t)p);
}

static enum gp_nearness level_of(const struct gp_value *level)
{
    static const struct {
        const char *word;
        enum gp_nearness nearness;
    } levels[] = {{"PIX", GP_SAME_SWITCH},
                  {"PXB", GP_SAME_SWITCH},
                  {"PHB", GP_SAME_NODE},
                  {"NODE", GP_SAME_NODE}};
    for (size_t i = 0; gp_value_is_present(level) && i < GP_ARRAY_LEN(levels); i++)
        if (strcmp(levels[i].word, level->s) == 0)
            return levels[i].nearness;
    return GP_FAR;
}

static enum gp_nearness nearness_of(const struct gp_snapshot *snapshot, const struct gp_device *a,
                                    const struct gp_device *b)
{
    const struct gp_entries *peers = &snapshot->lists[gp_list_index(GP_SCOPE_PEER)];
    for (size_t i = 0; i < peers->count; i++) {
        const struct gp_value *values = peers->entries[i].values;
        const struct gp_value *number = &values[GP_PEER_NUMBER - GP_PEER__FIRST];
        const struct gp_value *links = &values[GP_PEER_LINKS - GP_PEER__FIRST];
        if (&snapshot->devices[peers->entries[i].device] != a || !gp_value_is_present(number) ||
            number->i != (int64_t)b->index)
            continue;
        return gp_value_is_present(links) && links->i > 0
                   ? GP_LINKED
                   : level_of(&values[GP_PEER_LEVEL - GP_PEER__FIRST]);
    }
    return GP_FAR;
}

/* The set of closest GPUs that contains this one: each step adds the GPU that is closest to all
 * that are in it. *ret_nearness is that of the two that are farthest apart. */
static void grow_set(const struct gp_picking *p, const size_t *fitting, size_t count, size_t seed,
                     size_t *set, enum gp_nearness *ret_nearness)
{
    size_t size = 1;
    set[0] = fitting[seed];
    *ret_nearness = GP_LINKED;
    while (size < p->request->count) {
        size_t best = SIZE_MAX;
        enum gp_nearness best_nearness = GP_FAR;
        for (size_t i = 0; i < count; i++) {
            enum gp_nearness nearness = GP_LINKED;
            bool is_in = false;
            for (size_t k = 0; k < size; k++) {
                enum gp_nearness n = nearness_of(p->snapshot, p->pick->units[set[k]].device,
                                                 p->pick->units[fitting[i]].device);
                nearness = n < nearness ? n : nearness;
                is_in = is_in || set[k] == fitting[i];
            }
            if (!is_in && (best == SIZE_MAX || nearness > best_nearness)) {
                best = fitting[i];
                best_nearness = nearness;
            }
        }
        set[size++] = best;
        *ret_nearness = best_nearness < *ret_nearness ? best_nearness : *ret_nearness;
    }
}

enum gp_nearness gp_pick_choose_set(const struct gp_picking *p, const size_t *fitting, size_t count,
                                    size_t *set)
{
    size_t *chosen = p->pick->chosen;
    enum gp_nearness best = GP_FAR;
    for (size_t seed = 0; seed < count && (seed == 0 || best < GP_LINKED); seed++) {
        enum gp_nearness nearness;
        grow_set(p, fitting, count, seed, set, &nearness);
        if (seed == 0 || nearness > best) {
            memcpy(chosen, set, p->request->count * sizeof(*set));
            best = nearness;
        }
    }
    return best;
}
