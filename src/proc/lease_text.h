/* The names and the content of lease files. Versions of gpulse that run at the same time must
 * understand each other's. */
#ifndef GP_PROC_LEASE_TEXT_H
#define GP_PROC_LEASE_TEXT_H

#include "proc/lease.h"

struct gp_strbuf;

enum {
    GP_LEASE_FILE_BYTES = 16384, /* of the content, with a final NUL */
    GP_LEASE_NAME_SIZE = sizeof(((struct gp_lease_note *)NULL)->name),
};

/* The name of a lease's file in this state: "wait.ID", "claim.ID" or "held.ID". */
void gp_lease_make_name(char ret[GP_LEASE_NAME_SIZE], enum gp_lease_state state, uint64_t id);
/* Sets state and id; false: it is not the name of a lease. */
bool gp_lease_parse_name(const char *name, struct gp_lease *ret);

/* The name of a file while it is being written: "new.ID". */
void gp_lease_make_fresh_name(char ret[GP_LEASE_NAME_SIZE], uint64_t id);
bool gp_lease_is_fresh_name(const char *name);

/* Appends the content of a file. */
void gp_lease_add_text(struct gp_strbuf *sb, const struct gp_lease *lease);
/* Reads the content, which it changes; false: it is no lease. If the content of a locked file is
 * malformed, its GPUs count as reserved exclusively. */
bool gp_lease_parse_text(char *text, struct gp_lease *lease);

#endif
