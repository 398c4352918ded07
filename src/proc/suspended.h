/* Records which processes are suspended: their GPU memory is in host memory, and the driver no
 * longer lists them. gpulse writes a record for each into the directory shared by all users. */
#ifndef GP_PROC_SUSPENDED_H
#define GP_PROC_SUSPENDED_H

#include "base/util.h"

struct gp_err;
struct gp_statedirs;

enum { GP_SUSPENDED_GPUS = 32, GP_SUSPENDED_MOST = 1024 };

struct gp_suspended {
    uint32_t pid;
    uint64_t start_ticks; /* identifies the process together with the pid */
    struct gp_suspended_gpu {
        char uuid[96];
        uint64_t bytes; /* GPU memory to restore when it is resumed */
    } gpus[GP_SUSPENDED_GPUS];
    size_t gpu_count;
};

struct gp_suspended_list {
    struct gp_suspended *items;
    size_t count;
};

/* Reads the records of existing processes. Valid records are in root's directory or in that of the
 * process's owner (up to GP_SUSPENDED_MOST per user), and were written in this pid namespace. Of
 * two records, the later one is valid. root: prefix, NULL for none. Fails with GP_ENOMEM or
 * GP_EIO. */
int gp_suspended_read(const char *root, struct gp_suspended_list *ret,
                      struct gp_err *err) GP_MUST_CHECK;
/* The same from directories that are open. */
int gp_suspended_read_in(struct gp_statedirs *dirs, struct gp_suspended_list *ret,
                         struct gp_err *err) GP_MUST_CHECK;
void gp_suspended_fini(struct gp_suspended_list *list);
const struct gp_suspended *gp_suspended_find(const struct gp_suspended_list *list, int64_t pid);

/* Whether that process still exists, and its pid was not recycled. */
bool gp_suspended_lives(const char *root, const struct gp_suspended *s);

/* Opens or creates this user's record of a process. While *ret_fd is open, neither root nor the
 * owner can open it. Existing content stays. Removes this user's records of exited processes. Fails
 * with GP_EFAIL if another gpulse has it open, GP_EIO or GP_ENOMEM. */
int gp_suspended_take(const char *root, const struct gp_suspended *s, int *ret_fd,
                      struct gp_err *err) GP_MUST_CHECK;
/* Writes the GPU memory of the process into an open record. Fails with GP_EIO. */
int gp_suspended_write(int fd, const struct gp_suspended *s, struct gp_err *err) GP_MUST_CHECK;
/* Removes the records after the process was resumed; root removes all of them. If its owner resumes
 * it, root's record stays, and is overruled by one in `fd`. Fails with GP_EIO. */
int gp_suspended_forget(const char *root, const struct gp_suspended *s, int fd, struct gp_err *err);

#endif
