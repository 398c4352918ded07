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

/* The worst one of a GPU in the last hour, of several the newest; NULL: none. */
const struct gp_xid *gp_xid_worst(const struct gp_xids *xids, unsigned gpu, uint64_t wall_ns);
/* Errors caused by a program are less severe. */
enum gp_ink gp_xid_ink(const struct gp_xid *xid);
/* "2 min ago", "just now": written into ret, which is returned. */
enum { GP_XID_AGE_SIZE = 32 };
const char *gp_xid_age(const struct gp_xid *xid, uint64_t wall_ns, char ret[GP_XID_AGE_SIZE]);

struct gp_alert {
    enum gp_ink ink; /* GP_INK_CRITICAL before GP_INK_HIGH */
    unsigned rule;   /* what was found; with the next three, the same alert in another snapshot */
    unsigned gpu;
    uint64_t number;   /* of an Xid */
    int64_t pid;       /* the process that it is about; 0: none, or it is unknown which one */
    const char *about; /* what it means and what helps, in whole sentences */
    char text[128];    /* parts with " · " between them, the first one says what it is */
    char next[40];     /* what to do now, as short as a command */
    char brief[24];    /* what it is in two or three words, after the GPU */
};

/* The most severe first. Returns the number found, of which `max` are stored. */
size_t gp_alerts_find(const struct gp_snapshot *snapshot, const struct gp_history *history,
                      const struct gp_xids *xids, struct gp_alert *ret, size_t max);

/* Whether both are about the same. */
bool gp_alert_is(const struct gp_alert *a, const struct gp_alert *b);

#endif
