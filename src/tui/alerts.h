/* Finds problems that need attention in a snapshot and the history before it. */
#ifndef GP_TUI_ALERTS_H
#define GP_TUI_ALERTS_H

#include "tui/cells.h"
#include "tui/history.h"

struct gp_snapshot;

/* The most recent Xid errors of the driver. */
enum { GP_XIDS_MAX = 32 };

struct gp_xid {
    unsigned gpu;
    uint64_t number, wall_ns;
};

struct gp_xids {
    struct gp_xid list[GP_XIDS_MAX]; /* ring buffer */
    size_t count;                    /* total seen so far */
};

void gp_xids_add(struct gp_xids *xids, struct gp_xid xid);

struct gp_alert {
    enum gp_ink ink; /* GP_INK_CRITICAL before GP_INK_HIGH */
    char text[160];
};

/* The most severe first. Returns the number found, of which `max` are stored. */
size_t gp_alerts_find(const struct gp_snapshot *snapshot, const struct gp_history *history,
                      const struct gp_xids *xids, struct gp_alert *ret, size_t max);

#endif
