/* The output of gpulse status: pure functions from a snapshot to text. */
#ifndef GP_OUT_STATUS_H
#define GP_OUT_STATUS_H

#include "model/snapshot.h"

struct gp_strbuf;

enum { GP_STATUS_NAME_AUTO = 1 << 16 };

struct gp_status_view {
    bool command, full_command, user, pid, fan;
    bool encoder, decoder, draw, limit;
    bool no_processes, no_header;
    bool color;
    uint64_t name_width; /* GP_STATUS_NAME_AUTO: as wide as the longest */
    size_t room;         /* columns; 0: no limit */
    const char *machine; /* name of the simulated machine, NULL for a real one */
};

/* Adds the metrics that the text, or the JSON document, needs. */
void gp_status_want(struct gp_metric_set *metrics, const struct gp_status_view *view, bool json);

void gp_status_text(struct gp_strbuf *sb, const struct gp_status_view *view,
                    const struct gp_snapshot *snapshot);

/* The text for a terminal of this size, redrawn in place: each line erases what followed the old
 * one, so nothing flickers. At the end of each frame all terminal settings are back to normal, so
 * there is nothing to restore on any exit. Less than two rows count as two. `is_first` also clears
 * the screen. */
void gp_status_add_frame(struct gp_strbuf *sb, const struct gp_status_view *view,
                         const struct gp_snapshot *snapshot, size_t rows, size_t cols,
                         bool is_first);

/* gpustat's document, preceded by our schema, time, host and driver. */
void gp_status_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot);

#endif
