/* Why no driver, or the wrong one, is bound to an AMD or Intel GPU. */
#ifndef GP_DOCTOR_CHECKS_UNBOUND_H
#define GP_DOCTOR_CHECKS_UNBOUND_H

#include "base/util.h"
#include "doctor/check.h"

struct gp_exam;
struct gp_pci_gpu;

/* Whether the kernel's command line has this word. */
bool gp_unbound_has_argument(const struct gp_exam *exam, const char *argument);

/* Adds to the finding the reason and the remedy: a setting, or a line of the kernel log. `family`:
 * of its errors in data/explain. False: no reason is known. */
bool gp_unbound_explain(struct gp_exam *exam, const struct gp_pci_gpu *gpu, const char *module,
                        const char *family);

/* Whether this distribution's kernels have newer drivers than their number says, or a module from
 * elsewhere replaces one of these of the kernel. */
bool gp_unbound_has_backport(struct gp_exam *exam, const char *const *modules);

/* Adds how to get this kernel ("": one newer than this) or a newer one, with the firmware for the
 * GPU. */
void gp_unbound_newer_kernel(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                             const char *kernel);

/* Reports that the kernel is older than the first with a driver for this AMD GPU; false: it is not,
 * or unknown. */
bool gp_unbound_report_age(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                           enum gp_verdict verdict);

/* Reports that the running kernel has these modules, but none of them is for this GPU; false: one
 * is, or that is unknown. `is_recent`: some kernel is known to drive the GPU. */
bool gp_unbound_report_unknown(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                               enum gp_verdict verdict, const char *const *modules, bool is_recent);

/* Adds to the finding that the running kernel has none of these modules, and how to get them;
 * false: it has one, or that is unknown. */
bool gp_unbound_no_module(struct gp_exam *exam, const char *const *modules);

/* unbound_rom.c: adds how the host gives this AMD GPU its VBIOS; false: this is no guest. */
bool gp_unbound_fix_rom(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

#endif
