/* Which processes are suspended: their GPU memory is in main memory, and the driver does not list
 * them any more. Whoever suspends one notes it in a file in the folder that all users share. */
#ifndef GP_PROC_SUSPENDED_H
#define GP_PROC_SUSPENDED_H

#include "base/util.h"

struct gp_err;

enum { GP_SUSPENDED_GPUS = 32, GP_SUSPENDED_MOST = 1024 };

struct gp_suspended {
    uint32_t pid;
    uint64_t start_ticks; /* with the pid, the identity of a process */
    struct gp_suspended_gpu {
        char uuid[96];
        uint64_t bytes; /* that it had there, and needs to go on */
    } gpus[GP_SUSPENDED_GPUS];
    size_t gpu_count;
};

struct gp_suspended_list {
    struct gp_suspended *items;
    size_t count;
};

/* Those that have not ended. A note counts that stands in root's folder or in that of the process's
 * owner, GP_SUSPENDED_MOST of each user, and if it was written in this pid namespace; of two the
 * later one. root: prefix, NULL for none. GP_ENOMEM. */
int gp_suspended_read(const char *root, struct gp_suspended_list *ret) GP_MUST_CHECK;
void gp_suspended_fini(struct gp_suspended_list *list);
const struct gp_suspended *gp_suspended_find(const struct gp_suspended_list *list, int64_t pid);

/* Whether that process is there still, and no later one with its pid. */
bool gp_suspended_lives(const char *root, const struct gp_suspended *s);

/* Takes this user's note of a process, or makes it: as long as *ret_fd is open nobody else takes
 * it, neither root nor the process's owner. What stands in one that was there stays. Forgets notes
 * of this user whose processes have ended. GP_EFAIL: another one has it; GP_EIO, GP_ENOMEM. */
int gp_suspended_take(const char *root, const struct gp_suspended *s, int *ret_fd,
                      struct gp_err *err) GP_MUST_CHECK;
/* Says in a note that was taken what the process has on its GPUs. GP_EIO. */
int gp_suspended_write(int fd, const struct gp_suspended *s, struct gp_err *err) GP_MUST_CHECK;
/* It runs again: the notes go, for root all of them. A note of root's outlives its owner's resuming
 * it, and is answered by one that says so in `fd`. GP_EIO. */
int gp_suspended_forget(const char *root, const struct gp_suspended *s, int fd, struct gp_err *err);

#endif
