/* The checks of AMD GPUs, in several files; amd.c has their table. */
#ifndef GP_DOCTOR_CHECKS_AMD_H
#define GP_DOCTOR_CHECKS_AMD_H

#include "doctor/exam.h"
#include "doctor/readers/gfxlist.h"

/* amd_kfd.c: whether the GPUs are meant for computing, and whether amdgpu drives one; the
 * device for computing, and its permissions. */
bool gp_amd_wants_rocm(struct gp_exam *exam);
bool gp_amd_drives(struct gp_exam *exam);
bool gp_amd_wants_kfd(struct gp_exam *exam);
/* Whether ROCm is installed and the kernel offers no GPU for it, without a reason in its log that
 * lies in the hardware. */
bool gp_amd_lacks_compute(struct gp_exam *exam);
bool gp_amd_wants_permission(struct gp_exam *exam);
void gp_amd_check_kfd(struct gp_exam *exam);
void gp_amd_check_permission(struct gp_exam *exam);

/* amd_code.c: how many GPUs the kernel offers for computing; −1: unknown. */
#define GP_AMD_NODES "/sys/class/kfd/kfd/topology/nodes"
long gp_amd_count_nodes(struct gp_exam *exam);

/* The GPUs' names for the compiler, in the kernel's order; without its list, by
 * their PCI devices. Returns the folder that says so. */
const char *gp_amd_targets(struct gp_exam *exam, struct gp_gfxlist *ret);

/* What a value of HSA_OVERRIDE_GFX_VERSION has every GPU taken for: "gfx1030" for "10.3.0". False:
 * it is no version. */
bool gp_amd_read_override(const char *value, char ret[GP_GFX_NAME]);
void gp_amd_check_code(struct gp_exam *exam);

/* The value by which PyTorch's own build of a release runs on the GPUs, because it has code only
 * for a near relative, and their name; NULL: it needs none, or there is none, or it is set. */
const char *gp_amd_wheel_override(struct gp_exam *exam, const char *torch, const char *rocm,
                                  const char **ret_name);

/* Environment variables that hide the GPUs. */
void gp_amd_check_masks(struct gp_exam *exam);

/* amd_ldpath.c: another ROCm before PyTorch's own. */
bool gp_amd_has_ldpath(struct gp_exam *exam);
void gp_amd_check_ldpath(struct gp_exam *exam);

/* amd_override.c: the variable that has GPUs taken for others. */
bool gp_amd_has_override(struct gp_exam *exam);
void gp_amd_check_override(struct gp_exam *exam);

/* amd_comgr.c: a part of amd.opencl */
void gp_amd_check_comgr(struct gp_exam *exam);

/* amd_firmware.c: releases of the firmware with a known fault. */
void gp_amd_check_firmware(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* amd_query.c: a kernel before those that answer ROCm's query for free memory. */
bool gp_amd_has_old_queries(struct gp_exam *exam);
void gp_amd_check_queries(struct gp_exam *exam);

/* amd_ring.c: adds to the finding that work on the GPU timed out, if its power saving is known for
 * that. */
void gp_amd_suspect_gfxoff(struct gp_exam *exam, const char *bus_id);

/* amd_flatpak.c: programs in a sandbox without ROCm. */
bool gp_amd_has_flatpak(struct gp_exam *exam);
void gp_amd_check_flatpak(struct gp_exam *exam);

/* amd_speed.c: settings that keep the clocks low. */
void gp_amd_check_speed(struct gp_exam *exam);

/* amd_packages.c: packages of two makers, OpenCL, and builds for something else. */
bool gp_amd_has_opencl(struct gp_exam *exam);
void gp_amd_check_opencl(struct gp_exam *exam);
bool gp_amd_has_two_makers(struct gp_exam *exam);
void gp_amd_check_makers(struct gp_exam *exam);
bool gp_amd_has_other_framework(struct gp_exam *exam);
void gp_amd_check_framework(struct gp_exam *exam);

#endif
