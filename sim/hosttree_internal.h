/* What the files of a host tree share. */
#ifndef GPULSE_SIM_HOSTTREE_INTERNAL_H
#define GPULSE_SIM_HOSTTREE_INTERNAL_H

#include "base/io.h"
#include "sim/hosttree.h"
#include "sim/live.h"

#include <pthread.h>
#include <stdatomic.h>

struct gp_strbuf;

enum { SIM_TREE_TEXT_MAX = 1 << 20 };

struct sim_hosttree {
    const struct sim_live *live;
    pthread_mutex_t lock; /* with the lock of the directory */
    int dir;
    char path[GP_PATH_SIZE];
    uint64_t boot_s; /* of the simulated computer, since 1970 */
    atomic_ullong due_ns;
    int error;       /* the first −errno of a pass */
    bool is_digest;  /* nothing is written, only added to `digest` */
    uint64_t digest; /* of all that does not move */
};

/* A process that exists now. */
struct sim_present {
    unsigned int pid;
    const struct sim_host_process *like; /* NULL: a real one */
    double born_s;                       /* since 1970; 0 for a real one */
};

struct sim_presents {
    struct sim_present *items; /* by pid */
    size_t count;
};

/* ---- hosttree_files.c: paths are absolute; an error is noted in the tree ---- */

/* Each replaces the file as a whole: nobody reads half of it. */
void sim_tree_text(struct sim_hosttree *tree, const char *path, const char *text);
/* Writes "DIR/NAME" with what the text buffer holds, and empties that. */
void sim_tree_built(struct sim_hosttree *tree, const char *folder, const char *name,
                    struct gp_strbuf *sb);
void sim_tree_link(struct sim_hosttree *tree, const char *path, const char *target);
/* Removes what is in a directory. Only links of ours lead out of it, and they are not followed. */
void sim_tree_clear(int parent, const char *name, bool itself);

/* ---- hosttree_process.c ---- */

double sim_tree_now_s(void);
double sim_tree_ticks_per_s(void);
/* CPU time grows with its share of a CPU, a little faster and slower in turns. */
uint64_t sim_tree_ticks_after(const struct sim_hosttree *tree, double seconds, double pct,
                              unsigned int channel);

/* The caller frees the items. */
struct sim_presents sim_tree_presents(struct sim_hosttree *tree);
/* The memory of an idle process does not change. */
uint64_t sim_tree_resident_bytes(const struct sim_hosttree *tree, const struct sim_present *one);
void sim_tree_put_processes(struct sim_hosttree *tree, const struct sim_presents *all);
/* What stays while the process runs. */
void sim_tree_put_identity(struct sim_hosttree *tree, const char *folder, unsigned int pid,
                           const struct sim_host_process *p);

/* The number in the name of its device file. */
unsigned int sim_tree_minor(const struct sim_device *device);

/* ---- hosttree_fixed.c ---- */

/* What does not move, into an empty directory. What gpulse keeps of real jobs is that of this
 * computer. */
void sim_tree_put_fixed(struct sim_hosttree *tree);

#endif
