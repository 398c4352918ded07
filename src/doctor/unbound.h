/* Why no driver, or the wrong one, is bound to an AMD or Intel GPU. */
#ifndef GP_DOCTOR_UNBOUND_H
#define GP_DOCTOR_UNBOUND_H

#include "base/util.h"

struct gp_exam;
struct gp_pci_gpu;

/* Adds to the finding the reason and the remedy: a setting, or a line of the kernel log. `family`:
 * of its errors in data/explain. False: no reason is known. */
bool gp_unbound_explain(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *module,
                        const char *family);

#endif
