/* What the driver of this machine must be, and how findings name GPUs and module. None of these
 * reports. */
#ifndef GP_DOCTOR_CHECKS_DRIVER_WISH_H
#define GP_DOCTOR_CHECKS_DRIVER_WISH_H

#include "doctor/exam.h"
#include "doctor/offer.h"

/* What a driver for this machine's NVIDIA GPUs must be. */
struct gp_wish gp_driver_wish(struct gp_exam *exam);

/* The module's own name, for options in modprobe.d: "nvidia", on Debian "nvidia-current". */
const char *gp_driver_module_name(struct gp_exam *exam);

/* An NVIDIA GPU that is not assigned to a virtual machine. */
bool gp_driver_is_ours(const struct gp_pci_gpu *gpu);

/* "GeForce RTX 4090 (0000:01:00.0)" */
const char *gp_driver_gpu_words(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* Why a driver of this version and kind cannot drive a GPU; NULL if it can, or if it is unknown. If
 * `is_open` and `is_proprietary` are both false, the kind is unknown. */
const char *gp_driver_misfit(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                             const char *version, bool is_open, bool is_proprietary);

#endif
