/* What goes into the archive of gpulse doctor --bundle. */
#ifndef GP_CMD_DOCTOR_COLLECT_H
#define GP_CMD_DOCTOR_COLLECT_H

struct gp_bundle;
struct gp_exam;

/* Collects the contents from the machine and a completed exam. */
void gp_bundle_collect(struct gp_bundle *bundle, struct gp_exam *exam);

#endif
