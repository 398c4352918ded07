/* Everything that /proc tells of one process, for a page about it.
 *
 * The kernel lets some of these reads wait for the process (for its memory map, which may be locked
 * for as long as it hangs in a driver), so whoever must not wait calls this on a thread of its own.
 * Nothing is kept between calls, and any number of them may run at the same time.
 *
 * All files are read under a root prefix, so that a test is a directory. All text is safe to show.
 */
#ifndef GP_PROC_INSPECT_H
#define GP_PROC_INSPECT_H

#include "base/arena.h"

/* Each part says by itself whether it could be read, in the words of errno:
 *
 *   0        it is there
 *   EACCES   not permitted
 *   ESRCH    the process has ended, or cannot be seen
 *   ENODATA  there is none: a thread of the kernel has no memory and no program, a zombie neither
 *   ENOMEM   no memory for it; or what else the system answered
 *
 * A part with an error has no content: NULL, or 0. */
struct gp_inspect_number {
    int error;
    uint64_t value;
};

struct gp_inspect_text {
    int error;
    const char *text;
};

struct gp_inspect_list {
    int error;
    bool is_cut; /* there are more than what is read: GP_INSPECT_LIST_BYTES */
    size_t count;
    const char *const *items; /* in the file's order */
};

/* A device file of a GPU that the process has open. */
struct gp_inspect_device {
    const char *path; /* "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/dri/renderD128", "/dev/kfd", … */
    unsigned first_fd; /* the lowest descriptor that stands for it */
    unsigned opens;    /* how many do */
};

struct gp_inspect_devices {
    int error;
    bool is_cut;       /* more descriptors than GP_INSPECT_FILES, or devices than …_DEVICES */
    size_t open_files; /* descriptors of any kind */
    size_t count;
    struct gp_inspect_device *items; /* by path, numbers in their order */
};

struct gp_inspect_ancestor {
    uint32_t pid;
    const char *command;
};

enum {
    GP_INSPECT_LIST_BYTES = 1 << 20,
    GP_INSPECT_FILES = 65536,
    GP_INSPECT_DEVICES = 256,
    GP_INSPECT_ANCESTORS = 64,
};

struct gp_inspect {
    struct gp_arena arena;
    uint32_t pid;
    int error;        /* 0, or why there is nothing at all: ESRCH, or what opening /proc gave */

    int stat_error; /* of what comes up to system_ns */
    char state;     /* the kernel's letter: R S D Z T … */
    uint32_t ppid;  /* 0: none that can be seen from here */
    int nice;       /* −20 to 19 */
    uint64_t threads;
    uint64_t start_ticks; /* with the pid, the identity of a process: see struct gp_proc_info */
    uint64_t start_ns;    /* wall clock, since the epoch */
    uint64_t user_ns;     /* CPU time outside of the kernel */
    uint64_t system_ns;   /* and inside */

    struct gp_inspect_number virtual_bytes;      /* VmSize */
    struct gp_inspect_number resident_bytes;     /* VmRSS */
    struct gp_inspect_number shared_bytes;       /* RssShmem: of that in /dev/shm and the like */
    struct gp_inspect_number locked_bytes;       /* VmLck: cannot be swapped out */
    struct gp_inspect_number swapped_bytes;      /* VmSwap */
    struct gp_inspect_number voluntary_switches; /* of the main thread, as the next */
    struct gp_inspect_number involuntary_switches;
    struct gp_inspect_number ns_pid; /* its pid as it sees it itself: another one in a container */
    struct gp_inspect_number cpus;   /* how many it may run on */
    struct gp_inspect_number oom_score;  /* 0 to 2000: the highest is killed first without memory */
    struct gp_inspect_number read_bytes; /* from disks; of the whole process, as the next */
    struct gp_inspect_number written_bytes;

    struct gp_inspect_text name; /* the kernel's short name, which a program may change */
    struct gp_inspect_text
        program; /* the file that runs; ends in " (deleted)" if it was replaced */
    struct gp_inspect_text directory; /* where it works */
    struct gp_inspect_text container; /* see gp_proc_container(); ENODATA: nothing special */
    struct gp_inspect_text cgroup;    /* the path that says most */

    struct gp_inspect_list arguments;
    struct gp_inspect_list environment; /* KEY=VALUE as it was when the program was started */
    struct gp_inspect_devices devices;
    struct gp_inspect_ancestor *ancestors; /* its parent first */
    size_t ancestor_count;
};

/* Reads all of it; root: prefix, NULL for none. NULL only if there is no memory. */
struct gp_inspect *gp_proc_inspect(const char *root, uint32_t pid) GP_MUST_CHECK;
void gp_inspect_free(struct gp_inspect *in);

#endif
