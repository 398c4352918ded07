/* The true peak of a job's GPU memory. A driver in accounting mode notes at every allocation what a
 * process has, and keeps the most for when it has ended: a look now and then may miss it. */
#ifndef GP_JOBS_ACCOUNTED_H
#define GP_JOBS_ACCOUNTED_H

#include "base/util.h"

struct gp_device;
struct gp_snapshot;

enum { GP_ACCOUNTED_PIDS = 4000 /* as many as drivers keep account of */ };

/* Processes of a job, of all that it had; the newest if there were more than this. */
struct gp_accounted_pids {
    uint32_t pids[GP_ACCOUNTED_PIDS];
    size_t count; /* so far */
};

/* Does nothing if it is there. */
void gp_accounted_add(struct gp_accounted_pids *pids, uint32_t pid);

/* The most that one of the processes had on a GPU, by a snapshot with the list of accounts: with
 * several of them at once the job had more. Accounts that began before `since_wall_ns` are of other
 * processes that had the same pid. False if there is none. */
bool gp_accounted_peak(const struct gp_snapshot *snapshot, const struct gp_device *device,
                       const struct gp_accounted_pids *pids, uint64_t since_wall_ns,
                       double *ret_bytes);

#endif
