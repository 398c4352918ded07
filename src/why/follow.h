/* Follows a job for as long as it runs: judges each minute of it, and says what held for how
 * long. */
#ifndef GP_WHY_FOLLOW_H
#define GP_WHY_FOLLOW_H

#include "why/rules.h"

struct gp_snapshot;
struct gp_why_follow;

struct gp_why_finding {
    struct gp_why_verdict verdict; /* with the evidence of one of the minutes */
    char gpu[GP_DEVICE_LABEL_SIZE];
    double share; /* of the time on its GPUs in which it held: 0 to 1 */
};

/* Arguments as for gp_why_gather_new(); the job is that of a process. NULL without memory. */
struct gp_why_follow *gp_why_follow_new(const char *root, bool sees_processes,
                                        uint32_t pid) GP_MUST_CHECK;
void gp_why_follow_free(struct gp_why_follow *follow);

/* Adds a sample with what gp_why_want() lists. Without memory, its minute is left out. */
void gp_why_follow_add(struct gp_why_follow *follow, const struct gp_snapshot *snapshot);

/* The job has ended. Returns how many reasons held for a good part of the time, the surest first;
 * -1: it was observed for less than half a minute. A program loads and compiles in its first
 * minute, which counts only if there is no other one. */
int gp_why_follow_end(struct gp_why_follow *follow, struct gp_why_finding ret[GP_WHY_RULE__COUNT]);

#endif
