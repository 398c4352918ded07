/* What limits a GPU or a process now, on its page: the verdict of gpulse why over the last minute
 * or less, from the samples taken while the page is open. */
#ifndef GP_TUI_VERDICT_H
#define GP_TUI_VERDICT_H

#include "tui/page.h"

struct gp_snapshot;
struct gp_why_gather;

/* All zero while no page is open. */
struct gp_verdict {
    const char *root;                    /* prefix of /proc; NULL: none */
    bool sees_processes;                 /* those of the samples are in that /proc */
    uint32_t pid;                        /* only about this process; 0: all */
    struct gp_why_gather *now, *next;    /* next replaces now once it has seen enough */
    uint64_t first_ns, next_ns, last_ns; /* their first samples, and the last one */
};

/* Adds a sample, if it is a new one. Without memory, an observation begins again. */
void gp_verdict_add(struct gp_verdict *verdict, const struct gp_snapshot *snapshot);

/* Adds the lines about it to a page: none if no process computes there. */
void gp_verdict_write(const struct gp_verdict *verdict, struct gp_page *page);

void gp_verdict_fini(struct gp_verdict *verdict);

#endif
