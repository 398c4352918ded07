/* Explains the errors at the end of a failed job's output, other than those about memory. Runs
 * gpulse-doctor, which has the tables, so that this folder does not need them. */
#ifndef GP_JOBS_ASK_DOCTOR_H
#define GP_JOBS_ASK_DOCTOR_H

struct gp_tail;
struct gp_watch;

/* Explains the first known error through the watch. Does nothing if there is none, or if
 * gpulse-doctor cannot be run. */
void gp_ask_doctor(const struct gp_watch *watch, const struct gp_tail *tail);

#endif
