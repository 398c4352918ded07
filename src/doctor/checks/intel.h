/* What the checks of Intel GPUs share; intel.c has their table. */
#ifndef GP_DOCTOR_CHECKS_INTEL_H
#define GP_DOCTOR_CHECKS_INTEL_H

#include "base/util.h"

struct gp_exam;
struct gp_pci_gpu;

/* intel.c: what programs need that compute on Intel GPUs. */
void gp_intel_check_compute(struct gp_exam *exam);

/* intel_versions.c: reports a kernel with which this GPU is known to hang; false: it is
 * none. */
bool gp_intel_report_regression(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* Reports a compute runtime that finds no GPU on the running kernel, as that is newer. */
void gp_intel_report_lost_runtime(struct gp_exam *exam);

/* The compute runtime, if it is too new for GPUs before 2020, and the package or file that says so;
 * NULL: it is not, or that is unknown. */
const char *gp_intel_new_runtime(struct gp_exam *exam, const char **ret_where);

/* The name of a GPU that this version of the compute runtime, or of Beignet before it, does not
 * know, among the GPUs of 2019 and 2020; NULL: it knows it, or that is unknown. */
const char *gp_intel_before_runtimes(const struct gp_pci_gpu *gpu, const char *runtime);

/* Reports a kernel without the part that loads HuC into one of the first cards. */
void gp_intel_report_no_mei(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* intel_packages.c: the compute runtime that this release brings, "22.14"; "": none, or unknown. */
const char *gp_intel_shipped_runtime(struct gp_exam *exam);

struct gp_intel_need {
    bool has_zero, has_cl; /* Level Zero and OpenCL are installed */
    bool wants_zero;       /* something needs more than OpenCL */
    bool is_older;         /* the release's packages are older than a GPU here */
};

/* Adds how to install what is missing. */
void gp_intel_propose_packages(struct gp_exam *exam, const struct gp_intel_need *need);

/* Adds how to install newer packages than the release has; false: none are known. */
bool gp_intel_propose_elsewhere(struct gp_exam *exam);

/* Whether OpenCL's loader knows a driver for Intel's GPUs. */
bool gp_intel_has_opencl(struct gp_exam *exam);

/* A program that does not start, or does nothing, without OpenCL for a GPU; NULL: none, or Mesa's
 * rusticl has the GPU, too. darktable and hashcat also compute on the CPU. */
const char *gp_intel_opencl_program(struct gp_exam *exam);

/* What programs use Level Zero and OpenCL for, or the one that is known (NULL: none). */
const char *gp_intel_use(const char *user);

/* Reports a GPU that no runtime is for. `user`: what needs it, or NULL. */
void gp_intel_report_before_runtimes(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                                     const char *user);

/* intel_probe.c: adds to the finding that arguments of the kernel keep both drivers from a
 * GPU; false: they do not. */
bool gp_intel_explain_probe(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* intel_video.c: reports that HuC is not loaded, which Jellyfin's encoders need. */
void gp_intel_report_no_huc(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* Reports that the running kernel cannot start GuC of this GPU, though it is to; false: that is not
 * so. */
bool gp_intel_report_lost_guc(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* What Jellyfin needs OpenCL for; NULL: nothing. */
const char *gp_intel_tone_mapper(struct gp_exam *exam);

#endif
