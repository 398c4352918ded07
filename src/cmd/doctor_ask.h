/* An exam of the machine that the command line is about. */
#ifndef GP_CMD_DOCTOR_ASK_H
#define GP_CMD_DOCTOR_ASK_H

#include "cmd/doctor.h"

struct gp_err;
struct gp_exam;

/* Opens an exam with what the command line says of it: the machine, the interpreters and, with
 * `asks_driver`, what the driver answers, if there is one to query. */
int gp_doctor_open(struct gp_exam *exam, const struct gp_doctor_options *o, bool asks_driver,
                   struct gp_err *err) GP_MUST_CHECK;
void gp_doctor_close(struct gp_exam *exam);

/* gp_exam_run(), after which a thread of this program may hang. */
void gp_doctor_run(struct gp_exam *exam, const char *only, const char *without);

#endif
