#include "bench/near.h"

#include "base/io.h"
#include "proc/tasks.h"

#include <stdio.h>
#include <string.h>

bool gp_bench_near_begin(const char *address, cpu_set_t *ret_before)
{
    char path[80];
    char list[4096];
    struct gp_cpus near;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.32s/local_cpulist", address);
    if (sched_getaffinity(0, sizeof(*ret_before), ret_before) != 0 ||
        gp_io_read(path, list, sizeof(list)) <= 0)
        return false;
    list[strcspn(list, "\n")] = '\0';
    if (!gp_cpus_parse(&near, list))
        return false;
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (near.bits[i / 64] >> i % 64 & 1 && CPU_ISSET(i, ret_before))
            CPU_SET(i, &chosen);
    return CPU_COUNT(&chosen) > 0 && sched_setaffinity(0, sizeof(chosen), &chosen) == 0;
}

void gp_bench_near_end(const cpu_set_t *before)
{
    (void)sched_setaffinity(0, sizeof(*before), before);
}
