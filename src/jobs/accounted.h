/* The true peak of a job's GPU memory. A driver in accounting mode tracks every allocation of a
 * process and reports the peak after it has exited, which sampling can miss. */
#ifndef GP_JOBS_ACCOUNTED_H
#define GP_JOBS_ACCOUNTED_H

#include "base/util.h"

struct gp_device;
struct gp_snapshot;

enum { GP_ACCOUNTED_PIDS = 4000 /* as many as drivers keep accounts of */ };

/* All processes that the job ever had; only the newest ones if there were more. */
struct gp_accounted_pids {
    uint32_t pids[GP_ACCOUNTED_PIDS];
    size_t count; /* so far */
};

/* Does nothing if it is already there. */
void gp_accounted_add(struct gp_accounted_pids *pids, uint32_t pid);

/* The highest peak of a single process on a GPU, from a snapshot with accounts: if several ran at
 * once, the job used more. Accounts that began before `since_wall_ns` belong to other processes
 * with a recycled pid. False if there is none. */
bool gp_accounted_peak(const struct gp_snapshot *snapshot, const struct gp_device *device,
                       const struct gp_accounted_pids *pids, uint64_t since_wall_ns,
                       double *ret_bytes);

#endif
