/* Leases: who was promised which GPUs, without a daemon and without root.
 *
 * A lease is a file in the folder that all users share (base/statedir). Whoever made it keeps it
 * locked for as long as its job lives, so that a lease ends with its supervisor, however that ends:
 * a file that nobody locks is no lease any more. Nothing in a file is believed but what its owner
 * can only say of itself: the owner is the file's.
 *
 * All decisions are made under one lock, which is waited for a few seconds only: one that is held
 * for longer is passed over, and said so. */
#ifndef GP_JOBS_LEASE_H
#define GP_JOBS_LEASE_H

#include "base/util.h"

#include <sys/types.h>

struct gp_err;

enum { GP_LEASE_GPUS = 64, GP_LEASE_UUID_SIZE = 96 };

enum gp_lease_state { GP_LEASE_WAITING, GP_LEASE_HELD };

struct gp_lease {
    uint64_t ticket; /* whoever asked first has the lowest */
    enum gp_lease_state state;
    uint64_t since_wall_ns; /* of that state */
    uid_t uid;              /* owner of the file */
    uint32_t pid;           /* of the supervisor, in its own pid namespace; 0: not known */
    uint64_t ns;            /* that namespace, as /proc/PID/ns/pid names it */
    bool is_shared;         /* other jobs may be on the same GPUs */
    uint64_t bytes;         /* promised on each GPU; 0: all of it */
    unsigned wanted;        /* how many GPUs */
    char gpus[GP_LEASE_GPUS][GP_LEASE_UUID_SIZE]; /* those that it has, or waits for */
    size_t gpu_count;
    char name[64];
    char command[200];
};

struct gp_leases {
    struct gp_lease *items; /* by ticket */
    size_t count;
    uint64_t next_ticket;
};

/* The folder with its lock. −1 where not open. */
struct gp_lease_room {
    int dir;
    int lock;
};

/* Opens the folder, or makes it. GP_EIO, GP_EPERM say what is wrong with it. */
int gp_lease_room_open(struct gp_lease_room *room, struct gp_err *err) GP_MUST_CHECK;
void gp_lease_room_close(struct gp_lease_room *room);

/* Nobody else decides until the unlocking. GP_ETIMEOUT, with the pid of who holds it if that can be
 * seen. */
int gp_lease_room_lock(struct gp_lease_room *room, uint64_t timeout_ns,
                       struct gp_err *err) GP_MUST_CHECK;
void gp_lease_room_unlock(struct gp_lease_room *room);

/* All that are alive, to look at only: nothing is made, and without a folder there are none. */
int gp_leases_look(struct gp_leases *ret, struct gp_err *err) GP_MUST_CHECK;

/* All that are alive. GP_ENOMEM, GP_EIO. Takes away what is left of those of this user that have
 * ended. */
int gp_leases_read(const struct gp_lease_room *room, struct gp_leases *ret,
                   struct gp_err *err) GP_MUST_CHECK;
void gp_leases_fini(struct gp_leases *leases);

/* Whether this is one of its GPUs; of none whose UUID is not known. */
bool gp_lease_has_gpu(const struct gp_lease *lease, const char *uuid);

/* Whether a job that waits need not look at the GPUs: others who have waited longer could use so
 * many of those that it could, that too few are left. */
bool gp_lease_is_behind(const struct gp_leases *leases, const struct gp_lease *lease);

/* Writes a lease of this process, in the place of the one that *fd is (−1: there is none yet). *fd
 * is its lock from now on: as long as it is open the lease lives. Closed on exec. GP_EIO. */
int gp_lease_write(const struct gp_lease_room *room, const struct gp_lease *lease, int *fd,
                   struct gp_err *err) GP_MUST_CHECK;
/* Whether somebody has removed its file, as some systems do at the end of a login: it has to be
 * written again. */
bool gp_lease_was_removed(int fd);
/* Gives it back; *fd becomes −1. */
void gp_lease_drop(const struct gp_lease_room *room, const struct gp_lease *lease, int *fd);

/* A descriptor that becomes readable when a lease was made or has ended; read it empty. −1: poll
 * instead. */
int gp_lease_room_watch(const struct gp_lease_room *room);

#endif
