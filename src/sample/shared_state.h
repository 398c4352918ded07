/* What the users of the machine tell each other in files (base/statedir): reservations and
 * suspended processes, read again only after a change. */
#ifndef GP_SAMPLE_SHARED_STATE_H
#define GP_SAMPLE_SHARED_STATE_H

#include "proc/lease.h"
#include "proc/suspended.h"

struct gp_shared_state {
    const char *root;
    bool wants_leases, wants_suspended;
    struct gp_leases leases; /* without claims; empty unless wanted, like the list below */
    struct gp_suspended_list suspended;
    bool is_unknown;        /* they could not be read, for example for lack of descriptors */
    int watch;              /* inotify; −1: nothing is watched */
    uint64_t read_ns;       /* 0: never, or in vain */
    uint64_t looked_ns;     /* when notifications were looked for */
    uint64_t look_every_ns; /* how often they are; may be set to 0: by every update */
};

/* root: prefix for /proc and the files of suspended processes, NULL for none; must stay valid. */
void gp_shared_state_init(struct gp_shared_state *state, const char *root);
/* Brings both lists up to date. A single call costs no more than the reading; from the second one
 * on, the directories are watched. GP_ENOMEM. */
int gp_shared_state_update(struct gp_shared_state *state) GP_MUST_CHECK;
void gp_shared_state_fini(struct gp_shared_state *state);

#endif
