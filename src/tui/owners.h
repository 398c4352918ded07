/* Who uses a GPU, or has reserved it. */
#ifndef GP_TUI_OWNERS_H
#define GP_TUI_OWNERS_H

#include "base/util.h"

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;

/* The user of all processes, "?" if none is known; NULL if there are several, or no processes. */
const char *gp_owners_one(const struct gp_snapshot *snapshot);

/* Appends "carol 30.1G · root 6.0G", by memory; users who do not fit into w columns are counted:
 * "carol 30.1G +1". Users of a reservation who run nothing are in brackets, "(alice)", or
 * "reserved by alice" if nobody runs anything and there is room. Nothing if nobody uses it. By
 * program: "train.py 30.1G · vllm 6.0G", which says more where all users are the same. */
void gp_add_owners(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                   const struct gp_device *device, bool by_program, int w);

/* The same without the memory of each. */
void gp_add_owner_names(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                        const struct gp_device *device, bool by_program, int w);

#endif
