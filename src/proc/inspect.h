/* Everything in /proc about one process, for its details page.
 *
 * Some of these reads may block (the memory map is locked for as long as the process hangs in a
 * driver). To avoid blocking, call this on a separate thread. It keeps no state between calls, and
 * calls may run in parallel.
 *
 * All files are read under a root prefix, so that a test is a directory. All text is safe to
 * show. */
#ifndef GP_PROC_INSPECT_H
#define GP_PROC_INSPECT_H

#include "base/arena.h"

/* Each part has its own error, an errno:
 *
 *   0        available
 *   EACCES   not permitted
 *   ESRCH    the process has exited, or is not visible
 *   ENODATA  does not exist: kernel threads and zombies have no memory and no program
 *   ENOMEM   out of memory; or any other system error
 *
 * A part with an error has no content: NULL or 0. */
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
    bool is_cut; /* there are more than were read: GP_INSPECT_LIST_BYTES */
    size_t count;
    const char *const *items; /* in the file's order */
};

/* An open device file of a GPU. */
struct gp_inspect_device {
    const char *path; /* "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/dri/renderD128", "/dev/kfd", … */
    unsigned first_fd; /* the lowest descriptor of the file */
    unsigned opens;    /* number of descriptors */
};

struct gp_inspect_devices {
    int error;
    bool is_cut;       /* more descriptors than GP_INSPECT_FILES, or devices than …_DEVICES */
    size_t open_files; /* open descriptors of any kind */
    size_t count;
    struct gp_inspect_device *items; /* by path, numbers in numeric order */
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
    int error;        /* 0, or why nothing could be read: ESRCH, or the error of opening /proc */

    int stat_error; /* of the members up to system_ns */
    char state;     /* the kernel's letter: R S D Z T … */
    uint32_t ppid;  /* 0: not visible from here */
    int nice;       /* −20 to 19 */
    uint64_t threads;
    uint64_t start_ticks; /* with the pid, identifies the process */
    uint64_t start_ns;    /* wall clock, since the epoch */
    uint64_t user_ns;     /* CPU time in user mode */
    uint64_t system_ns;   /* CPU time in kernel mode */

    struct gp_inspect_number virtual_bytes;      /* VmSize */
    struct gp_inspect_number resident_bytes;     /* VmRSS */
    struct gp_inspect_number shared_bytes;       /* RssShmem: for example in /dev/shm */
    struct gp_inspect_number locked_bytes;       /* VmLck: cannot be swapped */
    struct gp_inspect_number swapped_bytes;      /* VmSwap */
    struct gp_inspect_number voluntary_switches; /* of the main thread, like the next */
    struct gp_inspect_number involuntary_switches;
    struct gp_inspect_number ns_pid; /* its pid in its own namespace */
    struct gp_inspect_number cpus;   /* number of CPUs that it may run on */
    struct gp_inspect_number oom_score;  /* 0 to 2000: the OOM killer picks the highest */
    struct gp_inspect_number read_bytes; /* from disks; of the whole process, like the next */
    struct gp_inspect_number written_bytes;

    struct gp_inspect_text name; /* the kernel's short name, which a program may change */
    struct gp_inspect_text
        program; /* the executable; ends in " (deleted)" if it was replaced */
    struct gp_inspect_text directory; /* working directory */
    struct gp_inspect_text container; /* see gp_proc_container(); ENODATA: none */
    struct gp_inspect_text cgroup;    /* the most specific path */

    struct gp_inspect_list arguments;
    struct gp_inspect_list environment; /* KEY=VALUE, at the start of the program */
    struct gp_inspect_devices devices;
    struct gp_inspect_ancestor *ancestors; /* its parent first */
    size_t ancestor_count;
};

/* Reads everything; root: prefix, NULL for none. NULL only without memory. */
struct gp_inspect *gp_proc_inspect(const char *root, uint32_t pid) GP_MUST_CHECK;
void gp_inspect_free(struct gp_inspect *in);

#endif
