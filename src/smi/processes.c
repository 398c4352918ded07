#include "smi/processes.h"

#include <string.h>

static int64_t pid_of(const struct gp_process *p)
{
    return gp_process_value(p, GP_PID)->i;
}

/* By pid; a pid in two instances is ordered by instance. */
static bool has_lower_pid(const struct gp_process *a, const struct gp_process *b)
{
    return pid_of(a) < pid_of(b) || (pid_of(a) == pid_of(b) && a < b);
}

static bool is_listed_before(const struct gp_process *a, const struct gp_process *b)
{
    return a->place < b->place;
}

static bool computes(const struct gp_process *p)
{
    const struct gp_value *type = gp_process_value(p, GP_PROCESS_TYPE);
    return gp_value_is_present(type) && strchr(type->s, 'C');
}

static const struct gp_process *
next(const struct gp_snapshot *snapshot, const struct gp_device *gpu, const struct gp_process *last,
     bool (*is_before)(const struct gp_process *a, const struct gp_process *b), bool computing)
{
    const struct gp_device *end = &snapshot->devices[snapshot->device_count];
    const struct gp_process *best = NULL;
    for (const struct gp_device *d = gpu; d < end && d->index == gpu->index; d++) {
        for (size_t i = 0; i < d->process_count; i++) {
            const struct gp_process *p = &snapshot->processes[d->first_process + i];
            if ((!computing || computes(p)) && (!last || is_before(last, p)) &&
                (!best || is_before(p, best)))
                best = p;
        }
    }
    return best;
}

const struct gp_process *gp_smi_next_process(const struct gp_snapshot *snapshot,
                                             const struct gp_device *gpu,
                                             const struct gp_process *last)
{
    return next(snapshot, gpu, last, has_lower_pid, false);
}

const struct gp_process *gp_smi_next_computing(const struct gp_snapshot *snapshot,
                                               const struct gp_device *gpu,
                                               const struct gp_process *last)
{
    return next(snapshot, gpu, last, is_listed_before, true);
}
