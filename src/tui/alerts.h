/* What needs somebody's eye, out of a snapshot and what was before it. */
#ifndef GP_TUI_ALERTS_H
#define GP_TUI_ALERTS_H

#include "tui/cells.h"
#include "tui/history.h"

struct gp_snapshot;

/* The driver's own errors, the last ones. */
enum { GP_XIDS_MAX = 32 };

struct gp_xid {
    unsigned gpu;
    uint64_t number, wall_ns;
};

struct gp_xids {
    struct gp_xid list[GP_XIDS_MAX]; /* a ring */
    size_t count;                    /* ever seen */
};

void gp_xids_add(struct gp_xids *xids, struct gp_xid xid);

struct gp_alert {
    enum gp_ink ink; /* GP_INK_CRITICAL before GP_INK_HIGH */
    char text[160];
};

/* The gravest first; returns how many there are, of which `max` are stored. */
size_t gp_alerts_find(const struct gp_snapshot *snapshot, const struct gp_history *history,
                      const struct gp_xids *xids, struct gp_alert *ret, size_t max);

/* Seconds until a GPU's memory is full if it goes on as in the last minute; below 0: it does not
 * grow, or too little is known. */
double gp_time_to_full_s(const struct gp_track *track, double total, uint64_t now_ns);

#endif
