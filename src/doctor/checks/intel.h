/* What the checks of Intel GPUs share; intel.c has their table. */
#ifndef GP_DOCTOR_CHECKS_INTEL_H
#define GP_DOCTOR_CHECKS_INTEL_H

#include "base/util.h"

struct gp_exam;
struct gp_pci_gpu;

/* intel_versions.c: reports a kernel with which this GPU is known to hang; false: it is
 * none.
 */
bool gp_intel_report_regression(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* The compute runtime, if it is too new for GPUs before 2020, and the package or file that says so;
 * NULL: it is not, or that is unknown. */
const char *gp_intel_new_runtime(struct gp_exam *exam, const char **ret_where);

/* The name of a GPU that this version of the compute runtime does not know, among the GPUs of 2019
 * and 2020; NULL: it knows it, or that is unknown. */
const char *gp_intel_before_runtimes(const struct gp_pci_gpu *gpu, const char *runtime);

/* What programs need that compute on Intel GPUs. */
void gp_intel_check_compute(struct gp_exam *exam);

/* intel_probe.c: adds to the finding that arguments of the kernel keep both drivers from a
 * GPU; false: they do not. */
bool gp_intel_explain_probe(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* intel_video.c: reports that HuC is not loaded, which Jellyfin's encoders need. */
void gp_intel_report_no_huc(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* What Jellyfin needs OpenCL for; NULL: nothing. */
const char *gp_intel_tone_mapper(struct gp_exam *exam);

/* Reports a kernel without the part that loads HuC into one of the first cards. */
void gp_intel_report_no_mei(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

#endif
