/* What the processes that come from one use together. */
#ifndef GP_PROC_BUSY_H
#define GP_PROC_BUSY_H

#include "base/util.h"

/* CPU time of all living descendants of a process, without its own; 0 if /proc cannot be read. */
uint64_t gp_proc_descendants_cpu_ns(uint32_t pid);

#endif
