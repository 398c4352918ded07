/* What gpulse sim record writes, for the bundle. */
#ifndef GP_CMD_DOCTOR_RECORD_H
#define GP_CMD_DOCTOR_RECORD_H

#include "base/util.h"

struct gp_err;

/* The machine file of this driver without serial numbers and UUIDs, to be freed. A call that takes
 * longer than the timeout is noted in it, and the process has to end with _exit() then. */
int gp_doctor_record(uint64_t timeout_ns, char **ret, struct gp_err *err) GP_MUST_CHECK;

#endif
