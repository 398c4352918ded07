/* Rules that detect a problem from a GPU's values. */
#ifndef GP_DOCTOR_CHECKS_HEALTH_RULES_H
#define GP_DOCTOR_CHECKS_HEALTH_RULES_H

#include "doctor/check.h"

/* `applies` and `run` for the rows of gp_checks_health whose rules are in the table. If several
 * rules of a check match a GPU, the first one in the table counts. */
bool gp_health_has_rules(struct gp_exam *exam);
void gp_health_run_rules(struct gp_exam *exam);

#endif
