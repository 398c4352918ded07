/* Whose process it is: the jobs behind leases, as far as a snapshot shows parents. */
#include "jobs/pick_internal.h"

enum { ANCESTORS_MAX = 64 };

static int64_t parent_of(const struct gp_snapshot *snapshot, int64_t pid)
{
    const struct {
        const struct gp_process *list;
        size_t count;
    } lists[] = {{snapshot->processes, snapshot->process_count},
                 {snapshot->ancestors, snapshot->ancestor_count}};
    for (size_t l = 0; l < GP_ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l].count; i++)
            if (gp_process_value(&lists[l].list[i], GP_PID)->i == pid) {
                const struct gp_value *parent =
                    gp_process_value(&lists[l].list[i], GP_PROCESS_PPID);
                return gp_value_is_present(parent) ? parent->i : 0;
            }
    return 0;
}

bool gp_pick_comes_from(const struct gp_snapshot *snapshot, int64_t pid, int64_t from)
{
    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
        if (pid == from)
            return true;
        pid = parent_of(snapshot, pid);
    }
    return false;
}

bool gp_pick_is_suspended(const struct gp_snapshot *snapshot, const struct gp_lease *lease)
{
    for (size_t i = 0; gp_lease_is_local(lease) && i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        if (gp_value_is_present(gp_process_value(p, GP_PROCESS_SUSPENDED)) &&
            gp_pick_comes_from(snapshot, gp_process_value(p, GP_PID)->i, lease->pid))
            return true;
    }
    return false;
}

bool gp_pick_observed(const struct gp_snapshot *snapshot, const struct gp_device *device,
                      const struct gp_lease *lease, double *ret_bytes)
{
    *ret_bytes = 0;
    if (!gp_lease_is_local(lease))
        return false;
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        const struct gp_value *memory = gp_process_value(p, GP_PROCESS_MEMORY);
        if (!gp_pick_comes_from(snapshot, gp_process_value(p, GP_PID)->i, lease->pid))
            continue;
        if (!gp_value_is_present(memory))
            return false;
        *ret_bytes += (double)memory->i;
    }
    return true;
}

bool gp_pick_has_gpu(const struct gp_lease *lease, const struct gp_device *device)
{
    return gp_lease_has_gpu(lease, gp_device_text(device, GP_UUID, ""));
}

bool gp_pick_is_leased(const struct gp_picking *p, const struct gp_device *device, int64_t pid)
{
    for (size_t i = 0; i < p->leases->count; i++) {
        const struct gp_lease *lease = &p->leases->items[i];
        if (lease->state == GP_LEASE_HELD && gp_lease_is_local(lease) &&
            gp_pick_has_gpu(lease, device) && gp_pick_comes_from(p->snapshot, pid, lease->pid))
            return true;
    }
    return false;
}
