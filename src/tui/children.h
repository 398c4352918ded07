/* What the child processes of the processes on GPUs do, for the tree: how many they are, such as
 * the workers of a data loader, and their CPU time. A thread looks at /proc every few seconds,
 * because reading it takes long on a large machine, and may hang. */
#ifndef GP_TUI_CHILDREN_H
#define GP_TUI_CHILDREN_H

#include "base/util.h"

struct gp_snapshot;

struct gp_children_sum {
    uint32_t pid;
    unsigned count;
    double cpu; /* percent of one CPU, of all of them since the last look */
};

struct gp_children;

/* root: prefix of /proc, NULL for none; must outlive it. NULL without memory. */
struct gp_children *gp_children_new(const char *root) GP_MUST_CHECK;

/* Takes over what the thread has found, and starts it again when it is due. */
void gp_children_look(struct gp_children *children, const struct gp_snapshot *snapshot);

/* Those of this process, if it has any; else NULL. Valid until the next look. */
const struct gp_children_sum *gp_children_find(const struct gp_children *children, int64_t pid);

/* Returns false if the thread hangs: then nothing was freed, and the process must exit with
 * _exit(). NULL: nothing. */
bool gp_children_free(struct gp_children *children);

#endif
