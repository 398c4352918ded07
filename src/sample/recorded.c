/* A sampler of a recording: it passes on whole samples, with the GPUs that are selected. */
#include "base/err.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "sample/assemble_internal.h"
#include "sample/sampler_internal.h"

/* Whether the row is selected. A MIG instance is selected with its GPU. */
static bool is_chosen(struct gp_sampler *s, const struct gp_device *device, bool gpu_is_chosen)
{
    bool chosen =
        gp_assemble_is_chosen(s->config.selection, device->index, device->values, device->is_mig);
    return device->is_mig ? s->config.want.mig && (chosen || gpu_is_chosen) : chosen;
}

static bool lacks_values(const struct gp_device *device)
{
    return device->status != GP_STATUS_OK && device->status != GP_STATUS_ASLEEP &&
           device->status != GP_STATUS_RELEASED;
}

/* Drops the rows that are not selected. Without instances, their processes are their GPU's: they
 * follow those of the GPU. */
static unsigned select_rows(struct gp_sampler *s, struct gp_snapshot *snapshot)
{
    size_t devices = 0;
    size_t processes = 0;
    unsigned gpus = 0;
    bool gpu_is_chosen = false;
    snapshot->partial = false;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device device = snapshot->devices[i];
        const bool is_hidden = device.is_mig && !s->config.want.mig;
        const bool chosen = is_chosen(s, &device, gpu_is_chosen);
        if (!device.is_mig) {
            gpu_is_chosen = chosen;
            if (device.index >= gpus)
                gpus = device.index + 1;
        }
        const bool stays = chosen || (is_hidden && gpu_is_chosen); /* its processes */
        if (chosen) {
            snapshot->partial = snapshot->partial || lacks_values(&device);
            snapshot->devices[devices] = device;
            snapshot->devices[devices].first_process = processes;
            snapshot->devices[devices++].process_count = 0;
        }
        for (size_t k = 0; stays && k < device.process_count; k++) {
            snapshot->processes[processes] = snapshot->processes[device.first_process + k];
            snapshot->processes[processes++].device = (uint32_t)(devices - 1);
            snapshot->devices[devices - 1].process_count++;
        }
    }
    snapshot->device_count = devices;
    snapshot->process_count = processes;
    return gpus;
}

int gp_recorded_tick(struct gp_sampler *s, struct gp_snapshot **ret, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = s->config.source->ops->sample(s->config.source, &s->want, s->config.step_ns, &snapshot,
                                          err);
    if (r < 0)
        return r;
    s->is_over = r == 1;
    const unsigned gpus = select_rows(s, snapshot);
    if (!s->want.host_only)
        r = gp_selection_check(s->config.selection, gpus, err);
    if (r < 0) {
        gp_snapshot_free(snapshot);
        return r;
    }
    *ret = snapshot;
    return 0;
}
