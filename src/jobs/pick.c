#include "jobs/pick.h"

#include "base/err.h"
#include "jobs/pick_internal.h"
#include "model/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gp_pick_want(struct gp_want *want, bool several)
{
    static const enum gp_metric metrics[] = {
        GP_UUID,
        GP_NAME,
        GP_PCI_BUS_ID,
        GP_SERIAL,
        GP_MEMORY_TOTAL,
        GP_MEMORY_USED,
        GP_MEMORY_FREE,
        GP_MEMORY_UNATTRIBUTED,
        GP_UTILIZATION_GPU,
        GP_TEMPERATURE_GPU,
        GP_COMPUTE_MODE,
        GP_MIG_MODE,
        GP_DISPLAY_ACTIVE,
        GP_RECOVERY_ACTION,
        GP_REMAPPED_FAILURE,
        GP_REMAPPED_PENDING,
        GP_PID,
        GP_PROCESS_TYPE,
        GP_PROCESS_MEMORY,
        GP_PROCESS_USER,
        GP_PROCESS_COMMAND,
        GP_PROCESS_PPID,
        GP_PROCESS_START,
        GP_PROCESS_SUSPENDED,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        gp_metric_set_add(&want->metrics, metrics[i]);
    want->mig = true;
    want->processes = true;
    want->process_names = true;
    want->ancestors = true;
    if (!several)
        return;
    want->lists |= 1U << gp_list_index(GP_SCOPE_PEER);
    gp_metric_set_add(&want->metrics, GP_PEER_NUMBER);
    gp_metric_set_add(&want->metrics, GP_PEER_LEVEL);
    gp_metric_set_add(&want->metrics, GP_PEER_LINKS);
}

bool gp_pick_find_order(const char *word, enum gp_pick_order *ret)
{
    static const char *const words[GP_PICK__COUNT] = {
#define X(id, word, help) [GP_PICK_##id] = word,
        GP_PICK_ORDERS(X)
#undef X
    };
    for (int i = 0; i < GP_PICK__COUNT; i++) {
        if (strcmp(words[i], word) != 0)
            continue;
        *ret = (enum gp_pick_order)i;
        return true;
    }
    return false;
}

static int compare_indices(const void *a, const void *b)
{
    const size_t *x = a;
    const size_t *y = b;
    return (*x > *y) - (*x < *y);
}

static void choose(const struct gp_picking *p, size_t *fitting, size_t *set)
{
    struct gp_pick *pick = p->pick;
    size_t wanted = p->request->count;
    size_t count = 0;
    size_t possible = 0;
    for (size_t i = 0; i < pick->count; i++) {
        possible += pick->units[i].state != GP_PICK_NEVER;
        if (pick->units[i].state == GP_PICK_FITS)
            fitting[count++] = i;
    }
    pick->state = possible < wanted ? GP_PICK_NEVER : count < wanted ? GP_PICK_LATER : GP_PICK_FITS;
    if (pick->state != GP_PICK_FITS) {
        gp_pick_explain(p, possible, count);
        return;
    }
    gp_pick_sort(p, fitting, count);
    if (wanted < 2) {
        memcpy(pick->chosen, fitting, wanted * sizeof(*fitting));
    } else {
        enum gp_nearness nearness = gp_pick_choose_set(p, fitting, count, set);
        if ((p->request->nvlink && nearness < GP_LINKED) ||
            (p->request->same_node && nearness < GP_SAME_NODE)) {
            pick->state = count == possible ? GP_PICK_NEVER : GP_PICK_LATER;
            (void)snprintf(pick->why, sizeof(pick->why), "no %u free GPUs are %s",
                           p->request->count,
                           p->request->nvlink ? "connected by NVLink" : "on one NUMA node");
            return;
        }
    }
    if (p->request->is_all) /* the order in which they were added does not matter */
        memcpy(pick->chosen, fitting, wanted * sizeof(*fitting));
    pick->chosen_count = wanted;
    if (p->request->is_ascending)
        qsort(pick->chosen, wanted, sizeof(*pick->chosen), compare_indices);
    for (size_t i = 0; i < wanted; i++)
        pick->units[pick->chosen[i]].is_chosen = true;
}

/* A partitioned GPU is represented by its instances. */
static bool is_unit(const struct gp_device *device)
{
    return device->is_mig || strcmp(gp_device_text(device, GP_MIG_MODE, ""), "Enabled") != 0;
}

unsigned gp_pick_count_all(const struct gp_snapshot *snapshot,
                           const struct gp_pick_request *request)
{
    unsigned count = 0;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        bool is_meant = is_unit(device) && !(request->no_mig && device->is_mig) &&
                        (request->only ? gp_pick_matches(request->only, device)
                                       : gp_pick_is_visible(request, device));
        count += is_meant && !(request->avoid && gp_pick_matches(request->avoid, device));
    }
    return count;
}

int gp_pick_make(const struct gp_snapshot *snapshot, const struct gp_leases *leases,
                 const struct gp_pick_request *request, struct gp_pick *ret)
{
    size_t most = snapshot->device_count + request->count + 1;
    const struct gp_picking p = {snapshot, leases, request, ret};
    size_t *fitting = calloc(most, sizeof(*fitting));
    size_t *set = calloc(most, sizeof(*set));
    *ret = (struct gp_pick){.units = calloc(most, sizeof(*ret->units)),
                            .chosen = calloc(most, sizeof(*ret->chosen))};
    bool ok = fitting && set && ret->units && ret->chosen;
    for (size_t i = 0; ok && i < snapshot->device_count; i++)
        if (is_unit(&snapshot->devices[i])) {
            ret->units[ret->count].device = &snapshot->devices[i];
            gp_pick_judge(&p, &ret->units[ret->count++]);
        }
    if (ok)
        choose(&p, fitting, set);
    free(fitting);
    free(set);
    if (!ok)
        gp_pick_fini(ret);
    return ok ? 0 : GP_ENOMEM;
}

int gp_pick_make_waiting(const struct gp_snapshot *snapshot, const struct gp_leases *leases,
                         const struct gp_lease *waiting, struct gp_pick *ret)
{
    const struct gp_device **candidates = calloc(snapshot->device_count + 1, sizeof(*candidates));
    struct gp_pick_request request = {
        .count = waiting->wanted,
        .is_shared = waiting->is_shared,
        .bytes = waiting->bytes,
        .most_load = -1,
        .most_celsius = -1,
        .visible = candidates,
        .ticket = waiting->ticket,
        .limit_ns = waiting->limit_ns,
    };
    if (!candidates)
        return GP_ENOMEM;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (gp_pick_has_gpu(waiting, &snapshot->devices[i]))
            candidates[request.visible_count++] = &snapshot->devices[i];
    int r = gp_pick_make(snapshot, leases, &request, ret);
    free(candidates);
    return r;
}

void gp_pick_fini(struct gp_pick *pick)
{
    free(pick->units);
    free(pick->chosen);
    *pick = (struct gp_pick){.units = NULL};
}
