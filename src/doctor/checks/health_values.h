/* The checks whose rules are rows of why/health_rules.c. */
#ifndef GP_DOCTOR_CHECKS_HEALTH_VALUES_H
#define GP_DOCTOR_CHECKS_HEALTH_VALUES_H

#include "doctor/check.h"

/* Their `applies` and `run`. */
bool gp_health_has_rules(struct gp_exam *exam);
void gp_health_run_rules(struct gp_exam *exam);

#endif
