/* Leases: who was promised which GPUs, without a daemon and without root, among users who do not
 * trust each other.
 *
 * A lease is a file in the folder of its owner (base/statedir), who keeps it locked for writing for
 * as long as the job lives: so a lease ends with its supervisor, however that ends, and nobody else
 * can keep it alive or make it look dead. Of what stands in a file nothing is believed but what its
 * owner can only say of himself.
 *
 * There is no lock that all must take, and that somebody could keep. Who wants GPUs first stands in
 * the line (GP_LEASE_WAITING), in the order in which the kernel has seen the files come. Whoever
 * may have GPUs then says that he takes them (GP_LEASE_CLAIMED), and looks again: if another one
 * has said so, too, he steps back into the line; else they are his (GP_LEASE_HELD). Of two, the one
 * who says it later sees the other; so no GPU is given twice, whatever the clocks do. */
#ifndef GP_JOBS_LEASE_H
#define GP_JOBS_LEASE_H

#include "base/statedir.h"

struct gp_err;

enum {
    GP_LEASE_GPUS = 64,
    GP_LEASE_UUID_SIZE = 96,
    GP_LEASES_PER_USER = 256, /* in a place; what is beyond does not count */
};

enum gp_lease_state {
    GP_LEASE_WAITING, /* in the line */
    GP_LEASE_CLAIMED, /* it says that it takes these, and has to look whether somebody else does */
    GP_LEASE_HELD,
};

struct gp_lease {
    uint64_t id;     /* of the request, in all its states: gp_io_random() */
    uint64_t ticket; /* whoever asked first has the lowest; as read */
    enum gp_lease_state state;
    uint64_t since_wall_ns; /* of that state */
    uid_t uid;              /* owner of the file; as read */
    uint32_t pid;           /* of the supervisor, in its own pid namespace; 0: not known */
    uint64_t ns;            /* that namespace, as /proc/PID/ns/pid names it */
    bool is_stopped;        /* the supervisor of one that waits, by SIGSTOP; as read */
    bool is_shared;         /* other jobs may be on the same GPUs */
    uint64_t bytes;         /* promised on each GPU; 0: all of it */
    unsigned wanted;        /* how many GPUs */
    char gpus[GP_LEASE_GPUS][GP_LEASE_UUID_SIZE]; /* those that it has, or waits for */
    size_t gpu_count;
    char name[64];
    char command[200];
    char path[320]; /* of the file; as read */
};

struct gp_leases {
    struct gp_lease *items; /* by ticket */
    size_t count;
};

/* One's own file, locked as long as it is open. */
struct gp_lease_note {
    int fd, dir;
    char name[32];
};

#define GP_LEASE_NO_NOTE ((struct gp_lease_note){.fd = -1, .dir = -1})

/* All that are alive, of all users. Takes away what is left of those of this user that have ended.
 * GP_ENOMEM. */
int gp_leases_read(struct gp_leases *ret, struct gp_err *err) GP_MUST_CHECK;
void gp_leases_fini(struct gp_leases *leases);

/* This user's lease; NULL: it is not among them. */
const struct gp_lease *gp_leases_find(const struct gp_leases *leases, uint64_t id,
                                      enum gp_lease_state state);
/* Takes it out of the list, in whatever state. */
void gp_leases_leave_out(struct gp_leases *leases, uint64_t id);

/* Whether this is one of its GPUs; of none whose UUID is not known. */
bool gp_lease_has_gpu(const struct gp_lease *lease, const char *uuid);

/* Whether a job that waits need not look at the GPUs: others who have waited longer could use so
 * many of those that it could, that too few are left. */
bool gp_lease_is_behind(const struct gp_leases *leases, const struct gp_lease *lease);

/* Whether two hold one GPU, each for itself alone: as a list may show it in which one was read
 * before its end and the other behind it. */
bool gp_leases_conflict(const struct gp_leases *leases);

/* Writes a lease of this process, in the place of what the note stands for. As long as the note is
 * open the lease lives. Closed on exec. GP_EIO says what is wrong with each place. */
int gp_lease_write(struct gp_lease_note *note, const struct gp_lease *lease,
                   struct gp_err *err) GP_MUST_CHECK;
/* What was claimed is held from now on. GP_EIO. */
int gp_lease_confirm(struct gp_lease_note *note, struct gp_err *err) GP_MUST_CHECK;
/* Whether somebody has removed its file, as some systems do at the end of a login: it has to be
 * written again. */
bool gp_lease_was_removed(const struct gp_lease_note *note);
/* Gives it back. */
void gp_lease_drop(struct gp_lease_note *note);

#endif
