/* The check of services; checks_system.c has its row. */
#ifndef GP_DOCTOR_CHECKS_SERVICES_H
#define GP_DOCTOR_CHECKS_SERVICES_H

#include "base/util.h"

struct gp_exam;

bool gp_services_has_hidden(struct gp_exam *exam);
void gp_services_check_hidden(struct gp_exam *exam);

#endif
