/* When each process was last seen to use its GPU. No driver reports this, so it is known only as
 * far back as gpulse has watched. Pure: times come from the caller. */
#ifndef GP_SAMPLE_ACTIVITY_H
#define GP_SAMPLE_ACTIVITY_H

#include "base/util.h"

struct gp_activity_entry {
    unsigned gpu;
    uint32_t pid;
    uint64_t since_ns;  /* when it was first seen on the GPU */
    uint64_t active_ns; /* when it was last active; 0: never since then */
};

struct gp_activity {
    struct gp_activity_entry *items; /* of the last tick, sorted */
    size_t count;
    struct gp_activity_entry *next; /* of this tick; between ticks only room for it */
    size_t next_count, most;
    size_t room, next_room; /* how many entries fit into `items` and `next` */
};

/* Begins a tick with at most `most` processes. GP_ENOMEM. */
int gp_activity_begin(struct gp_activity *activity, size_t most) GP_MUST_CHECK;
/* Notes a process. The utilization reported at now_ns covers the time from from_ns on. */
struct gp_activity_entry gp_activity_see(struct gp_activity *activity, unsigned gpu, uint32_t pid,
                                         bool is_active, uint64_t from_ns, uint64_t now_ns);
/* Forgets the processes that were not seen since gp_activity_begin(). */
void gp_activity_end(struct gp_activity *activity);
void gp_activity_fini(struct gp_activity *activity);

#endif
