/* The rows of a snapshot: the selected GPUs and MIG instances, and their values. */
#include "base/err.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "sample/assemble_internal.h"

#include <string.h>

/* Whether the last value still says something: of a GPU that is lost, only how much memory it has,
 * so that sums do not change. */
static bool is_kept(enum gp_status status, enum gp_metric m)
{
    return status == GP_STATUS_TIMEOUT || (status == GP_STATUS_LOST && m == GP_MEMORY_TOTAL);
}

/* One requested value of a GPU. If the GPU responded, it is fresh. Otherwise it is a permanent
 * value (identity), the last number marked as stale, or the reason why it is missing. */
static void fill_value(struct gp_assembler *a, struct gp_device *device, const struct gp_taken *t,
                       enum gp_metric m)
{
    struct gp_value *v = gp_device_value(device->values, m);
    const struct gp_value *latest = t->latest ? &t->latest->values[m - GP_DEVICE__FIRST] : NULL;
    const struct gp_value *good = t->good ? &t->good->values[m - GP_DEVICE__FIRST] : NULL;
    if (t->status == GP_STATUS_OK && latest) {
        *v = *latest;
    } else if (latest && latest->status == GP_STATUS_OK && gp_is_permanent(m)) {
        *v = *latest; /* the name of a sleeping GPU */
    } else if (good && good->status == GP_STATUS_OK &&
               (gp_is_permanent(m) || is_kept(t->status, m))) {
        *v = *good;
        if (!gp_is_permanent(m))
            v->status = GP_STATUS_STALE;
    } else {
        gp_value_set_absent(v, device->status,
                            device->status == GP_STATUS_ERROR ? device->status_text : NULL, 0);
    }
    gp_assemble_own(a, m, v);
}

static void fill_common(const struct gp_assembler *a, struct gp_device *device, uint64_t time_ns)
{
    struct gp_value *index = gp_device_value(device->values, GP_INDEX);
    struct gp_value *status = gp_device_value(device->values, GP_STATUS);
    struct gp_value *text = gp_device_value(device->values, GP_STATUS_TEXT);
    const char *word = gp_device_state(device->status);
    gp_value_set_int(index, device->index, time_ns);
    if (gp_metric_set_has(&a->want.metrics, GP_STATUS))
        gp_value_set_text(status, word, time_ns);
    if (gp_metric_set_has(&a->want.metrics, GP_STATUS_TEXT))
        gp_value_set_text(text, device->status == GP_STATUS_OK ? word : device->status_text,
                          time_ns);
}

static void fill_gpu(struct gp_assembler *a, const struct gp_taken *t, struct gp_device *device)
{
    struct gp_snapshot *snapshot = a->snapshot;
    *device = (struct gp_device){
        .index = t->index,
        .status = t->status,
        .status_text = t->text,
        .driver_code = t->driver_code,
        .refused = t->refused,
        .silent_s = t->silent_s,
        .processes_status = t->status,
    };
    if (t->status == GP_STATUS_OK && t->latest)
        device->processes_status = t->latest->processes_status;
    for (size_t i = 0; i < GP_LIST__COUNT; i++)
        device->list_status[i] =
            t->status == GP_STATUS_OK && t->latest ? t->latest->lists[i].status : t->status;
    const struct gp_metric_set *wanted = &a->internal.metrics;
    for (int m = gp_metric_set_next(wanted, GP_DEVICE__FIRST); m < GP_PROCESS__FIRST;
         m = gp_metric_set_next(wanted, m + 1))
        fill_value(a, device, t, (enum gp_metric)m);
    /* Shows the location of a GPU that does not respond, even if it was not requested. */
    if (device->status != GP_STATUS_OK)
        fill_value(a, device, t, GP_PCI_BUS_ID);
    fill_common(a, device, snapshot->mono_ns);
}

static void fill_mig(struct gp_assembler *a, const struct gp_device *gpu,
                     const struct gp_mig_reading *mig, struct gp_device *device)
{
    *device = *gpu;
    device->is_mig = true;
    device->mig_index = mig->index;
    memcpy(device->values, mig->values, sizeof(device->values));
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++) {
        struct gp_value *v = gp_device_value(device->values, (enum gp_metric)m);
        const bool is_old = gpu->status != GP_STATUS_OK && v->status == GP_STATUS_OK &&
                            !gp_is_permanent((enum gp_metric)m);
        if (is_old && is_kept(gpu->status, (enum gp_metric)m))
            v->status = GP_STATUS_STALE;
        else if (is_old)
            gp_value_set_absent(v, gpu->status, NULL, 0);
        gp_assemble_own(a, (enum gp_metric)m, v);
    }
    /* The driver reports neither the bus id nor the GPU of an instance. */
    *gp_device_value(device->values, GP_PCI_BUS_ID) = gpu->values[GP_PCI_BUS_ID - GP_DEVICE__FIRST];
    if (gp_metric_set_has(&a->want.metrics, GP_MIG_GPU_UUID))
        *gp_device_value(device->values, GP_MIG_GPU_UUID) = gpu->values[GP_UUID - GP_DEVICE__FIRST];
    fill_common(a, device, a->snapshot->mono_ns);
}

static const char *text_or_null(const struct gp_value *values, enum gp_metric m)
{
    const struct gp_value *v = &values[m - GP_DEVICE__FIRST];
    return gp_value_is_present(v) ? v->s : NULL;
}

/* A MIG instance is selected with its GPU, or by its own UUID or
 * number; all other terms select GPUs. */
bool gp_assemble_is_chosen(struct gp_selection *selection, unsigned index,
                           const struct gp_value *values, bool is_mig)
{
    const struct gp_value *instance = &values[GP_MIG_INDEX - GP_DEVICE__FIRST];
    struct gp_identity identity = {
        .uuid = text_or_null(values, GP_UUID), .is_mig = is_mig, .gpu = index};
    if (is_mig && gp_value_is_present(instance))
        identity.mig_index = (unsigned)instance->i;
    if (!is_mig) {
        identity.bus_id = text_or_null(values, GP_PCI_BUS_ID);
        identity.serial = text_or_null(values, GP_SERIAL);
        identity.name = text_or_null(values, GP_NAME);
    }
    return gp_selection_matches(selection, index, &identity);
}

bool gp_assembler_chooses(struct gp_assembler *a, const struct gp_slot *slot)
{
    bool chosen = gp_assemble_is_chosen(a->selection, slot->index, slot->good->values, false);
    for (size_t i = 0; i < slot->good->mig_count; i++)
        chosen =
            gp_assemble_is_chosen(a->selection, slot->index, slot->good->mig[i].values, true) ||
            chosen;
    return chosen;
}

static bool is_failure(enum gp_status status)
{
    return status == GP_STATUS_ERROR || status == GP_STATUS_NO_PERMISSION;
}

static bool is_incomplete(const struct gp_assembler *a, const struct gp_device *device)
{
    if (device->status != GP_STATUS_OK)
        return device->status != GP_STATUS_ASLEEP && device->status != GP_STATUS_RELEASED;
    bool incomplete = a->want.processes && is_failure(device->processes_status);
    for (size_t i = 0; i < GP_LIST__COUNT; i++)
        incomplete = incomplete || (gp_wants_list(a, i) && is_failure(device->list_status[i]));
    return incomplete;
}

/* Adds a GPU and its MIG instances if they are selected. */
static void add_rows(struct gp_assembler *a, const struct gp_taken *t)
{
    struct gp_snapshot *snapshot = a->snapshot;
    const struct gp_reading *shown = gp_taken_shown(t);
    struct gp_device *gpu = &snapshot->devices[snapshot->device_count];
    const struct gp_device *parent = gpu;
    struct gp_device other;
    fill_gpu(a, t, gpu);
    /* A GPU whose name or instances are unknown may be a selected one, and is kept. */
    bool silent = t->status != GP_STATUS_OK;
    bool nameless = silent && !text_or_null(gpu->values, GP_NAME);
    bool bare = silent && (!shown || shown->mig_count == 0);
    bool gpu_chosen = gp_assemble_is_chosen(a->selection, t->index, gpu->values, false) ||
                      (nameless && gp_selection_names_models(a->selection)) ||
                      (bare && gp_selection_names_mig(a->selection));
    bool any = gpu_chosen;
    snapshot->device_count += gpu_chosen;
    if (!gpu_chosen) { /* its instances take its place */
        other = *gpu;
        parent = &other;
    }
    for (size_t k = 0; a->want.mig && shown && k < shown->mig_count; k++) {
        struct gp_device *mig = &snapshot->devices[snapshot->device_count];
        fill_mig(a, parent, &shown->mig[k], mig);
        bool chosen =
            gp_assemble_is_chosen(a->selection, t->index, mig->values, true) || gpu_chosen;
        snapshot->device_count += chosen;
        any = any || chosen;
    }
    snapshot->partial = snapshot->partial || (any && is_incomplete(a, parent));
}

int gp_assemble_devices(struct gp_assembler *a)
{
    struct gp_snapshot *snapshot = a->snapshot;
    size_t most = 1;
    for (size_t i = 0; i < a->taken_count; i++) {
        const struct gp_reading *shown = gp_taken_shown(&a->taken[i]);
        most += 1 + (shown ? shown->mig_count : 0);
    }
    /* not zeroed: each row is written completely when it is added */
    snapshot->devices = gp_arena_take(&snapshot->arena, most, sizeof(*snapshot->devices));
    if (!snapshot->devices)
        return GP_ENOMEM;
    for (size_t i = 0; i < a->taken_count; i++)
        add_rows(a, &a->taken[i]);
    return 0;
}
