/* Who has a GPU's device files open or mapped, whether or not the driver lists it: the way to those
 * that hold memory which no listed process accounts for.
 *
 * Looks at every process, which takes a millisecond or two for each hundred of them, and may have
 * to wait for one that hangs in the driver: whoever must not wait calls it on a thread of its own.
 */
#ifndef GP_PROC_HOLDERS_H
#define GP_PROC_HOLDERS_H

#include "proc/cgroup.h"

struct gp_proc_info;

enum { GP_HOLDER_GPUS = 256 }; /* device files /dev/nvidia0 to /dev/nvidia255 */

struct gp_holder {
    uint32_t pid;
    const struct gp_proc_info *info;    /* with its user, command and container */
    uint64_t gpus[GP_HOLDER_GPUS / 64]; /* a bit for each N of /dev/nvidiaN */
    bool has_others; /* nvidiactl, nvidia-uvm, /dev/dri …: no GPU is told apart by them */
    bool is_mapped;  /* in its memory only: it has closed the files */
    bool is_orphan;  /* what started it has ended, and it is no service: a leftover */
};

struct gp_holders {
    struct gp_holder *list; /* by pid */
    size_t count;
    size_t hidden;  /* processes that may not be looked at: other users' */
    bool is_inside; /* this is a pid namespace of its own: there are others that cannot be seen */
    struct gp_cgroup_regions regions; /* what their groups may have of the GPUs */
    struct gp_proc_reader *reader;
};

/* Whether this is a device file by which programs reach GPUs. */
bool gp_proc_is_gpu_device(const char *path);

bool gp_holder_has(const struct gp_holder *holder, unsigned minor);

/* Whether this program runs in a pid namespace of its own, as in a container: there are others that
 * it cannot see. */
bool gp_proc_is_inside(const char *root);

/* root: prefix, NULL for none; must outlive the result. GP_ENOMEM; GP_EIO: there is no /proc. */
int gp_holders_read(const char *root, struct gp_holders *ret) GP_MUST_CHECK;
void gp_holders_fini(struct gp_holders *holders);

#endif
