/* A host that gives GPUs to virtual machines; platform.c has the check. */
#ifndef GP_DOCTOR_CHECKS_PASSTHROUGH_H
#define GP_DOCTOR_CHECKS_PASSTHROUGH_H

#include "base/util.h"

struct gp_exam;
struct gp_pci_gpu;

bool gp_passthrough_applies(struct gp_exam *exam);
void gp_passthrough_check(struct gp_exam *exam);

/* Whether a setting reserves a GPU for virtual machines, and its own driver has taken it before
 * vfio-pci. */
bool gp_passthrough_is_late(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

#endif
