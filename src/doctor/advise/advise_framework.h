/* Advice about a framework: the version and the build that fit a machine, and how to install it. */
#ifndef GP_DOCTOR_ADVISE_ADVISE_FRAMEWORK_H
#define GP_DOCTOR_ADVISE_ADVISE_FRAMEWORK_H

#include "doctor/advise/question.h"
#include "doctor/builds.h"

void gp_advise_framework(struct gp_exam *exam, enum gp_framework framework,
                         const struct gp_client *client);

#endif
