/* Rules by which a value of a GPU tells that something is wrong with it. */
#ifndef GP_DOCTOR_HEALTH_RULES_H
#define GP_DOCTOR_HEALTH_RULES_H

#include "doctor/check.h"

/* For the rows of gp_checks_health whose rules are in the table: applies and run. Of a GPU for
 * which several rules of a check hold, the first one in the table counts. */
bool gp_health_has_rules(struct gp_exam *exam);
void gp_health_run_rules(struct gp_exam *exam);

#endif
