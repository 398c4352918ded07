/* Of several frameworks in one environment: which ones the user's programs compute with. */
#ifndef GP_DOCTOR_USED_H
#define GP_DOCTOR_USED_H

#include "doctor/builds.h"

struct gp_exam;
struct gp_pyenv;

/* What shows that programs of an environment compute with another framework than this one, so that
 * it matters little whether this one finds a GPU: "requirements.txt names torch". NULL: nothing
 * does. */
const char *gp_framework_aside(struct gp_exam *exam, const struct gp_pyenv *env,
                               enum gp_framework framework);

/* A program of the project in the working directory, or around the environment, that contains one
 * of these texts (up to NULL); NULL: none does. */
const char *gp_project_program(struct gp_exam *exam, const struct gp_pyenv *env,
                               const char *const *words);

/* Adds to a finding about a framework that it matters little. */
void gp_exam_aside(struct gp_exam *exam, const struct gp_pyenv *env, enum gp_framework framework);

#endif
