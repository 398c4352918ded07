/* What goes into a bundle: the report of an exam, the machine file, packages, the kernel log, and
 * the parts of the environment and of files that may be published. */
#ifndef GP_DOCTOR_BUNDLE_COLLECT_H
#define GP_DOCTOR_BUNDLE_COLLECT_H

struct gp_bundle;
struct gp_err;
struct gp_exam;

/* Collects the contents from the machine and a completed exam. What cannot be had is listed in the
 * bundle, with the reason. `record` describes the driver's machine as a machine file without serial
 * numbers and UUIDs, which is then freed; it is not called if the driver should not be queried. */
void gp_collect(struct gp_bundle *bundle, struct gp_exam *exam,
                int (*record)(char **ret, struct gp_err *err));

#endif
