/* The output of gpulse sim record, for the bundle. */
#ifndef GP_CMD_DOCTOR_RECORD_H
#define GP_CMD_DOCTOR_RECORD_H

#include "base/util.h"

struct gp_err;

/* What gpulse-sim record writes: the machine file of this driver without serial numbers and UUIDs;
 * the caller frees it. A call that exceeds the timeout is recorded in it. Errors of gp_ask(). */
int gp_doctor_record(uint64_t timeout_ns, char **ret, struct gp_err *err) GP_MUST_CHECK;

#endif
