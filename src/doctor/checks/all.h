/* All checks, by group, in the order of their dependencies. */
#ifndef GP_DOCTOR_CHECKS_ALL_H
#define GP_DOCTOR_CHECKS_ALL_H

#include "doctor/check.h"

extern const struct gp_check_list gp_checks_all;

/* The groups, each an array that ends with a row without an id. */
extern const struct gp_check gp_checks_hardware[];
extern const struct gp_check gp_checks_driver[];
extern const struct gp_check gp_checks_log[];
extern const struct gp_check gp_checks_earlier[];
extern const struct gp_check gp_checks_health[];
extern const struct gp_check gp_checks_cuda[];
extern const struct gp_check gp_checks_python[];
extern const struct gp_check gp_checks_container[];
extern const struct gp_check gp_checks_system[];
extern const struct gp_check gp_checks_amd[];
extern const struct gp_check gp_checks_intel[];
extern const struct gp_check gp_checks_graphics[];
extern const struct gp_check gp_checks_platform[];
extern const struct gp_check gp_checks_known[];

#endif
