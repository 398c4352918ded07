/* Finds the processes that have a GPU's device files open or mapped, whether or not the driver
 * lists them. These may hold memory that is not attributed to any listed process.
 *
 * It reads every process, which takes a millisecond or two per hundred, and may block if one hangs
 * in the driver. To avoid blocking, call it on a separate thread. */
#ifndef GP_PROC_HOLDERS_H
#define GP_PROC_HOLDERS_H

#include "proc/cgroup.h"

struct gp_proc_info;

enum { GP_HOLDER_GPUS = 256 }; /* device files /dev/nvidia0 to /dev/nvidia255 */

struct gp_holder {
    uint32_t pid;
    const struct gp_proc_info *info;    /* with user, command and container */
    uint64_t gpus[GP_HOLDER_GPUS / 64]; /* bit N: /dev/nvidiaN */
    bool has_others; /* nvidiactl, nvidia-uvm, /dev/dri …: not specific to a GPU */
    bool is_mapped;  /* only mapped: the files were closed */
    bool is_orphan;  /* its parent has exited, and it is not a service */
};

struct gp_holders {
    struct gp_holder *list; /* by pid */
    size_t count;
    size_t hidden;  /* number of processes that may not be read: other users' */
    bool is_inside; /* not the initial pid namespace: there are processes that cannot be seen */
    struct gp_cgroup_regions regions; /* device memory of their groups */
    struct gp_proc_reader *reader;
};

/* Whether programs access GPUs through this device file. */
bool gp_proc_is_gpu_device(const char *path);

bool gp_holder_has(const struct gp_holder *holder, unsigned minor);

/* Whether this program runs in a separate pid namespace, for example in a container: there are
 * processes that it cannot see. */
bool gp_proc_is_inside(const char *root);

/* root: prefix, NULL for none; must outlive the result. Fails with GP_ENOMEM, or with GP_EIO if
 * there is no /proc. */
int gp_holders_read(const char *root, struct gp_holders *ret) GP_MUST_CHECK;
void gp_holders_fini(struct gp_holders *holders);

#endif
