/* What goes into a bundle: the report of an exam, the machine file, packages, the kernel log, and
 * the parts of the environment and of files that may be published. */
#ifndef GP_DOCTOR_COLLECT_H
#define GP_DOCTOR_COLLECT_H

struct gp_bundle;
struct gp_err;
struct gp_exam;
struct gp_strbuf;

struct gp_collect_plan {
    const struct gp_strbuf *text, *json; /* the report in both forms */
    /* Describes the driver's machine as a machine file without serial numbers and UUIDs, which is
     * then freed. Not called if the driver should not be queried. */
    int (*record)(char **ret, struct gp_err *err);
};

/* Collects the contents from the machine and a completed exam. What cannot be had is listed in the
 * bundle, with the reason. */
void gp_collect(struct gp_bundle *bundle, struct gp_exam *exam, const struct gp_collect_plan *plan);

#endif
