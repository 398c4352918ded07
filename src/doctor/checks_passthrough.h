/* A host that gives GPUs to virtual machines; checks_platform.c has the check. */
#ifndef GP_DOCTOR_CHECKS_PASSTHROUGH_H
#define GP_DOCTOR_CHECKS_PASSTHROUGH_H

#include "base/util.h"

struct gp_exam;

bool gp_passthrough_applies(struct gp_exam *exam);
void gp_passthrough_check(struct gp_exam *exam);

#endif
