/* How the used memory of a GPU is split between processes and the rest. */
#include "model/snapshot.h"
#include "sample/assemble_internal.h"

bool gp_wants_memory_account(const struct gp_metric_set *metrics)
{
    return gp_metric_set_has(metrics, GP_MEMORY_PROCESSES) ||
           gp_metric_set_has(metrics, GP_MEMORY_UNATTRIBUTED);
}

/* The memory of the processes of a row; for a GPU including those of its instances, whose rows
 * follow. False if the memory of a process is unknown. */
static bool sum_processes(const struct gp_snapshot *snapshot, const struct gp_device *device,
                          int64_t *ret_bytes)
{
    const struct gp_device *end = &snapshot->devices[snapshot->device_count];
    *ret_bytes = 0;
    for (const struct gp_device *d = device; d < end && d->index == device->index; d++) {
        for (size_t i = 0; i < d->process_count; i++) {
            const struct gp_process *p = &snapshot->processes[d->first_process + i];
            const struct gp_value *v = gp_process_value(p, GP_PROCESS_MEMORY);
            if (!gp_value_is_present(v))
                return false;
            *ret_bytes += v->i;
        }
        if (device->is_mig)
            break;
    }
    return true;
}

/* Splits the used memory into memory of processes and unattributed memory. The latter is at least
 * 0: a process may have appeared between the two reads. */
static void account_memory(const struct gp_snapshot *snapshot, struct gp_device *device)
{
    struct gp_value *sum = gp_device_value(device->values, GP_MEMORY_PROCESSES);
    struct gp_value *rest = gp_device_value(device->values, GP_MEMORY_UNATTRIBUTED);
    const struct gp_value *used = gp_device_value(device->values, GP_MEMORY_USED);
    int64_t bytes;
    bool placed = !device->is_mig ||
                  (gp_value_is_present(gp_device_value(device->values, GP_MIG_GPU_INSTANCE)) &&
                   gp_value_is_present(gp_device_value(device->values, GP_MIG_COMPUTE_INSTANCE)));
    if (device->processes_status != GP_STATUS_OK) {
        gp_value_set_absent(sum, device->processes_status, NULL, snapshot->mono_ns);
    } else if (!placed) {
        gp_value_set_absent(sum, GP_STATUS_UNSUPPORTED, "the processes in it are unknown",
                            snapshot->mono_ns);
    } else if (!sum_processes(snapshot, device, &bytes)) {
        gp_value_set_absent(sum, GP_STATUS_UNSUPPORTED, "the memory of a process is unknown",
                            snapshot->mono_ns);
    } else {
        gp_value_set_int(sum, bytes, snapshot->mono_ns);
    }
    *rest = gp_value_is_present(sum) ? *used : *sum;
    if (gp_value_is_present(sum) && gp_value_is_present(used))
        rest->i = used->i > sum->i ? used->i - sum->i : 0;
}

void gp_assemble_memory_account(struct gp_assembler *a)
{
    if (!gp_wants_memory_account(&a->want.metrics))
        return;
    for (size_t i = 0; i < a->snapshot->device_count; i++)
        account_memory(a->snapshot, &a->snapshot->devices[i]);
}
