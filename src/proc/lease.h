/* Leases: GPU reservations without a daemon, without root, and without trust between users.
 *
 * A lease is a file in its owner's folder (base/statedir). The owner's supervisor process keeps it
 * locked for writing as long as the job lives. So a lease ends with its supervisor, however that
 * terminates, and nobody else can keep it alive or make it look dead. The content of a file is
 * believed only where it concerns its owner.
 *
 * There is no global lock that somebody could hold forever. A request first enters the waiting line
 * (GP_LEASE_WAITING), ordered by the time at which the kernel saw the files arrive. When GPUs are
 * free for it, it claims them (GP_LEASE_CLAIMED) and reads all leases again. If another request has
 * claimed them as well, it steps back into the line; otherwise it holds them (GP_LEASE_HELD). Of
 * two requests, the one that claims later sees the other. So no GPU is reserved twice, whatever the
 * clocks do. */
#ifndef GP_PROC_LEASE_H
#define GP_PROC_LEASE_H

#include "base/statedir.h"

struct gp_err;

enum {
    GP_LEASE_GPUS = 64,
    GP_LEASE_UUID_SIZE = 96,
    GP_LEASES_PER_USER = 256, /* in all places; more are ignored */
    GP_LEASES_KEPT = 64,
    GP_LEASE_OVERTAKE_S = 3600,
};

enum gp_lease_state {
    GP_LEASE_WAITING, /* in the waiting line */
    GP_LEASE_CLAIMED, /* has claimed GPUs, and must check whether another lease claims them, too */
    GP_LEASE_HELD,
};

struct gp_lease {
    uint64_t id;     /* of the request, the same in all states: gp_io_random() */
    uint64_t ticket; /* the earliest request has the lowest; set on reading */
    enum gp_lease_state state;
    uint64_t since_wall_ns; /* of that state */
    uid_t uid;              /* owner of the file; set on reading */
    uint32_t pid;           /* of the supervisor, in its own pid namespace; 0: unknown */
    uint64_t ns;            /* that namespace, as in /proc/PID/ns/pid */
    bool is_stopped;        /* the supervisor of a waiting request, by SIGSTOP; set on reading */
    bool is_shared;         /* other jobs may be on the same GPUs */
    uint64_t bytes;         /* reserved on each GPU; 0: all of it */
    uint64_t limit_ns;      /* the command is terminated after this time; 0: no limit */
    unsigned wanted;        /* number of GPUs requested */
    char gpus[GP_LEASE_GPUS][GP_LEASE_UUID_SIZE]; /* those it holds, or waits for */
    size_t gpu_count;
    char name[64];
    char user[64]; /* its name or number, not sanitized; set by gp_leases_read_settled() */
    char command[200];
    char path[320]; /* of the file; set on reading */
};

struct gp_leases {
    struct gp_lease *items; /* by ticket */
    size_t count;
};

/* This process's own lease file, locked while it is open. */
struct gp_lease_note {
    int fd, dir;
    char name[32];
};

#define GP_LEASE_NO_NOTE ((struct gp_lease_note){.fd = -1, .dir = -1})

/* ---- lease_read.c: the list of leases ---- */

/* All live leases of all users. Removes files left over from this user's dead leases. GP_ENOMEM;
 * GP_EIO: some may be missing, because of something that no other user can cause. */
int gp_leases_read(struct gp_leases *ret, struct gp_err *err) GP_MUST_CHECK;
void gp_leases_fini(struct gp_leases *leases);

/* The leases that a waiting request has read, a few of each user, with their files open. If
 * such a file is removed, as some systems do at logout, its owner's lock shows that the lease is
 * still valid. It then stays in the list until it is released or written again. Zero-initialize. */
struct gp_leases_kept {
    struct gp_leases leases;
    int fds[2 * GP_LEASES_KEPT]; /* of files that were found, then of those that were removed */
};
int gp_leases_read_kept(struct gp_leases *ret, struct gp_leases_kept *kept,
                        struct gp_err *err) GP_MUST_CHECK;
void gp_leases_kept_fini(struct gp_leases_kept *kept);

/* The same as gp_leases_read(), read again while it shows conflicts, and without claims: those
 * count as waiting until they are confirmed, and with the names of users. For views. dirs: those of
 * gp_statedirs_open(NULL), if they are open; otherwise NULL. */
int gp_leases_read_settled(struct gp_statedirs *dirs, struct gp_leases *ret,
                           struct gp_err *err) GP_MUST_CHECK;

/* The root of a simulated machine (must stay valid), whose leases are read too. To be called before
 * the first thread. */
void gp_leases_set_simulated(const char *root);

/* This user's lease; NULL: not in the list. */
const struct gp_lease *gp_leases_find(const struct gp_leases *leases, uint64_t id,
                                      enum gp_lease_state state);
/* Removes it from the list, whatever its state. */
void gp_leases_leave_out(struct gp_leases *leases, uint64_t id);

/* The name of its user, not sanitized; false: there is no name, and it is the user's number. */
bool gp_lease_user(const struct gp_lease *lease, char *ret, size_t size);

/* ---- lease_order.c: leases compared ---- */

/* Whether its pid is known, and means the same process here: another pid namespace has others. */
bool gp_lease_is_local(const struct gp_lease *lease);

/* The same, or it is a simulated one, which has no namespace. */
bool gp_lease_is_visible(const struct gp_lease *lease);

/* Whether it has this GPU; false for a GPU whose UUID is unknown. */
bool gp_lease_has_gpu(const struct gp_lease *lease, const char *uuid);

/* Whether a request whose command runs for at most limit_ns (0: no limit) may overtake an earlier
 * waiting one that cannot start now. The command must end within GP_LEASE_OVERTAKE_S of the time at
 * which the earlier request began to wait. So nobody is delayed beyond that, however many
 * overtake. */
bool gp_lease_may_overtake(const struct gp_lease *earlier, uint64_t limit_ns, uint64_t now_wall_ns);

/* Whether a waiting job need not check the GPUs: requests that have waited longer, and that it may
 * not overtake, could use its candidates, and those that remain are too few. */
bool gp_lease_is_behind(const struct gp_leases *leases, const struct gp_lease *lease,
                        uint64_t now_wall_ns);

/* The position of a waiting request among those that wait for any of its GPUs, from 1; 0 if it does
 * not wait. */
size_t gp_lease_position(const struct gp_leases *leases, const struct gp_lease *lease);

/* Whether two leases hold the same GPU exclusively. A list can show this if one was read before it
 * ended and the other after it began. Also true if memory is exhausted. */
bool gp_leases_conflict(const struct gp_leases *leases);
/* Another lease that holds one of its GPUs, if either of them does so exclusively; NULL: none. */
const struct gp_lease *gp_leases_rival(const struct gp_leases *leases,
                                       const struct gp_lease *lease);

/* ---- lease_write.c: this process's lease ---- */

/* Writes a lease of this process, replacing the one of this note. The lease lives as long as the
 * note is open. Closed on exec. GP_EIO names the problem of each place. */
int gp_lease_write(struct gp_lease_note *note, const struct gp_lease *lease,
                   struct gp_err *err) GP_MUST_CHECK;
/* Turns a claimed lease into a held one. GP_EIO. */
int gp_lease_confirm(struct gp_lease_note *note, struct gp_err *err) GP_MUST_CHECK;
/* Whether somebody has removed its file, as some systems do at logout: it must be written again. */
bool gp_lease_was_removed(const struct gp_lease_note *note);
/* Releases the lease. */
void gp_lease_drop(struct gp_lease_note *note);

#endif
