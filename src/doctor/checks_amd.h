/* The checks of AMD GPUs, in two files; checks_amd.c has their table. */
#ifndef GP_DOCTOR_CHECKS_AMD_H
#define GP_DOCTOR_CHECKS_AMD_H

#include "doctor/exam.h"

struct gp_gfxlist;

/* checks_amd_code.c: the GPUs' names for the compiler, in the kernel's order. */
void gp_amd_targets(struct gp_exam *exam, struct gp_gfxlist *ret);
void gp_amd_check_code(struct gp_exam *exam);

/* Environment variables that hide the GPUs. */
void gp_amd_check_masks(struct gp_exam *exam);

#endif
