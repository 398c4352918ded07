/* How the memory of each GPU is used, and by which processes. */
#ifndef GP_JOBS_MEMORY_USE_H
#define GP_JOBS_MEMORY_USE_H

#include "out/procs.h"
#include "source/source.h"

struct gp_account;
struct gp_holders;
struct gp_snapshot;
struct gp_strbuf;

/* Refers to the snapshot and to the holders. */
struct gp_memory_use {
    const struct gp_snapshot *snapshot;
    struct gp_account *accounts; /* of whole GPUs */
    size_t count;
    struct gp_procs procs;
    bool knows_holders; /* otherwise unattributed memory cannot be explained */
};

/* What the snapshot needs. */
struct gp_want gp_memory_use_want(void);

/* holders: the processes that have GPUs open; NULL: the search for them did not finish. GP_ENOMEM,
 * then gp_memory_use_fini() may still be called. */
int gp_memory_use_make(struct gp_memory_use *ret, const struct gp_snapshot *snapshot,
                       const struct gp_holders *holders) GP_MUST_CHECK;
void gp_memory_use_fini(struct gp_memory_use *use);

/* The table of gpulse mem, its lines cut at `room` columns (0: no limit). */
void gp_memory_use_add(struct gp_strbuf *sb, const struct gp_memory_use *use, size_t room);
/* Its document, gpulse.mem/1. */
void gp_memory_use_add_json(struct gp_strbuf *sb, const struct gp_memory_use *use);

#endif
