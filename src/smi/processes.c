#include "smi/processes.h"

static int64_t pid_of(const struct gp_process *p)
{
    return p->values[GP_PID - GP_PROCESS__FIRST].i;
}

/* By pid; a pid in two instances in the order of the instances. */
static bool is_before(const struct gp_process *a, const struct gp_process *b)
{
    return pid_of(a) < pid_of(b) || (pid_of(a) == pid_of(b) && a < b);
}

const struct gp_process *gp_smi_next_process(const struct gp_snapshot *snapshot,
                                             const struct gp_device *gpu,
                                             const struct gp_process *last)
{
    const struct gp_device *end = &snapshot->devices[snapshot->device_count];
    const struct gp_process *best = NULL;
    for (const struct gp_device *d = gpu; d < end && d->index == gpu->index; d++) {
        for (size_t i = 0; i < d->process_count; i++) {
            const struct gp_process *p = &snapshot->processes[d->first_process + i];
            if ((!last || is_before(last, p)) && (!best || is_before(p, best)))
                best = p;
        }
    }
    return best;
}
