/* Where a thread runs: next to a PCI device, so that memory that it allocates is near to it. */
#ifndef GP_BENCH_NEAR_H
#define GP_BENCH_NEAR_H

#include <sched.h>
#include <stdbool.h>

/* Restricts the thread to those of its CPUs that are next to the device at this address
 * ("0000:3b:00.0"). False: nothing was changed, because they are unknown or not the thread's. */
bool gp_bench_near_begin(const char *address, cpu_set_t *ret_before);
void gp_bench_near_end(const cpu_set_t *before);

#endif
