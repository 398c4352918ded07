/* A GPU in MIG instances. */
#ifndef GP_TUI_MIG_H
#define GP_TUI_MIG_H

#include "tui/cells.h"

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;

/* Whether the GPU of this row has instances. */
bool gp_mig_is_split(const struct gp_snapshot *snapshot, const struct gp_device *device);

/* Draws the memory of its instances side by side, each as wide as its share of the GPU and with the
 * GiB in use: "▕██9.5▏··0▏". Returns false, and draws nothing, if it has none or there is no
 * room. */
bool gp_draw_mig_strip(const struct gp_box *box, int x, int y, int w,
                       const struct gp_snapshot *snapshot, const struct gp_device *device);

/* Appends "GI  3 CI 0", the ids of an instance, one below the other with those of others. */
void gp_mig_add_ids(struct gp_strbuf *sb, const struct gp_device *device);

/* Appends "25% of memory": how much of that of its GPU the instance has. Nothing if that is
 * unknown. */
void gp_mig_add_share(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_device *device);

#endif
