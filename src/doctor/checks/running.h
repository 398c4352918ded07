/* What a fix would end: programs on the GPUs, and jobs in the queue of gpulse. */
#ifndef GP_DOCTOR_CHECKS_RUNNING_H
#define GP_DOCTOR_CHECKS_RUNNING_H

struct gp_exam;
struct gp_finding;

/* Of the findings from this one on, tells those whose fix is to reboot or to unload a module. */
void gp_running_warn(struct gp_exam *exam, struct gp_finding *first);

#endif
