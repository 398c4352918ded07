/* What gpulse doctor does besides examining a machine. */
#ifndef GP_CMD_DOCTOR_VERBS_H
#define GP_CMD_DOCTOR_VERBS_H

#include "cmd/doctor.h"

struct gp_err;

/* words[0] is the verb; GP_EUSAGE suggests the nearest. */
int gp_doctor_verb(const struct gp_doctor_options *o, int count, char **words,
                   struct gp_err *err) GP_MUST_CHECK;

/* Follows the kernel log until a signal arrives: GP_EINTR. */
int gp_doctor_watch(const struct gp_doctor_options *o, struct gp_err *err) GP_MUST_CHECK;

#endif
