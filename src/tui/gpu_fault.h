/* The faults of a GPU. Each has the same words wherever it is named: next to the GPU, in the line
 * of alerts, and in their list. */
#ifndef GP_TUI_GPU_FAULT_H
#define GP_TUI_GPU_FAULT_H

#include "tui/cells.h"

struct gp_device;
struct gp_strbuf;

/* The worst first: they are critical up to GP_FAULT_HOT. */
enum gp_fault {
    GP_FAULT_LOST,
    GP_FAULT_SILENT,
    GP_FAULT_RECOVERY,
    GP_FAULT_ERRORS,
    GP_FAULT_BROKEN,
    GP_FAULT_XID, /* it has an ink of its own: gp_xid_ink() */
    GP_FAULT_HOT,
    GP_FAULT_HEAT,
    GP_FAULT_SUPPLY,
    GP_FAULT_SLOWED,
    GP_FAULT_FULL_SOON,
    GP_FAULT_FULL,
    GP_FAULT_REPAIR,
    GP_FAULT_LANES,
    GP_FAULT_ORPHANS,
    GP_FAULT_IDLE,
    GP_FAULT__COUNT,
};

/* In two or three words. */
extern const char *const gp_fault_words[GP_FAULT__COUNT];

enum gp_ink gp_fault_ink(enum gp_fault fault);

/* Appends what a sample says of a fault: "memory errors (3 uncorrected)". Returns false, and
 * appends nothing, if the GPU does not have it, or if one sample does not show it. */
bool gp_fault_add(struct gp_strbuf *sb, enum gp_fault fault, const struct gp_device *device);
/* Whether it would append something. */
bool gp_fault_has(enum gp_fault fault, const struct gp_device *device);
/* Whether a fault lowers the clocks. */
bool gp_fault_slows(enum gp_fault fault);

#endif
