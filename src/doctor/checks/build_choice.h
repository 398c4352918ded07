/* Which build of a framework fits the GPUs, the driver and a Python. */
#ifndef GP_DOCTOR_CHECKS_BUILD_CHOICE_H
#define GP_DOCTOR_CHECKS_BUILD_CHOICE_H

#include "doctor/builds.h"

struct gp_nvidia;
struct gp_pyenv;

/* The best build for the GPUs, the driver and the environment's Python; of this version if there is
 * one, so that programs need not change. "": any version. False: there is none. */
bool gp_framework_build_for(const struct gp_pyenv *env, const struct gp_nvidia *nv,
                            enum gp_framework framework, const char *version, struct gp_build *ret);

#endif
