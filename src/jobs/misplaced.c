#include "jobs/misplaced.h"

#include "proc/inspect.h"

#include <stdio.h>
#include <string.h>

void gp_misplaced_reason(uint32_t pid, const char *reserved, char why[GP_MISPLACED_SIZE])
{
    struct gp_inspect *in = gp_proc_inspect(NULL, pid);
    const struct gp_inspect_list none = {.count = 0};
    const struct gp_inspect_list *environment = in ? &in->environment : &none;
    const char *mask =
        gp_list_value(environment->items, environment->count, "CUDA_VISIBLE_DEVICES");
    const char *order = gp_list_value(environment->items, environment->count, "CUDA_DEVICE_ORDER");
    if (environment->count == 0)
        (void)snprintf(
            why, GP_MISPLACED_SIZE,
            "its environment cannot be read; it may have been started by sudo, or in a container");
    else if (!mask)
        (void)snprintf(why, GP_MISPLACED_SIZE,
                       "CUDA_VISIBLE_DEVICES was removed from its environment; make sudo, ssh, "
                       "docker or env -i pass it on");
    else if (strcmp(mask, reserved) != 0)
        (void)snprintf(why, GP_MISPLACED_SIZE,
                       "it was started with CUDA_VISIBLE_DEVICES=%.100s instead of %.100s; do not "
                       "set it in scripts",
                       mask, reserved);
    else if (!order || strcmp(order, "PCI_BUS_ID") != 0)
        (void)snprintf(why, GP_MISPLACED_SIZE,
                       "it was started with CUDA_DEVICE_ORDER=%.40s instead of PCI_BUS_ID, which "
                       "numbers GPUs differently",
                       order ? order : "(none)");
    else
        (void)snprintf(why, GP_MISPLACED_SIZE,
                       "it sets CUDA_VISIBLE_DEVICES itself (os.environ); remove that: inside the "
                       "job, its GPUs are numbered from 0");
    gp_inspect_free(in);
}
