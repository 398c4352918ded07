/* WSL with a GPU of another maker than NVIDIA, and names of Windows' libraries; platform.c has the
 * checks. */
#ifndef GP_DOCTOR_CHECKS_WSL_H
#define GP_DOCTOR_CHECKS_WSL_H

#include "base/util.h"

struct gp_exam;

/* Whether Windows passes in drivers of AMD or Intel only, and what is missing for them. */
bool gp_wsl_report_others(struct gp_exam *exam);

/* Whether the distribution's ROCm is installed besides AMD's. */
bool gp_wsl_report_twin(struct gp_exam *exam);

/* Whether this is no WSL, but a guest of Hyper-V that has Windows' libraries for a shared GPU, and
 * not the kernel's part for it. */
bool gp_wsl_report_hyperv(struct gp_exam *exam);

/* wsl_name.c */
/* Windows' libcuda has a name by which the loader does not find it, and what loads it so. */
void gp_wsl_report_plain_name(struct gp_exam *exam);
/* A fix for that name, once a Linux driver that had it is removed. */
void gp_wsl_advise_plain_name(struct gp_exam *exam);

#endif
