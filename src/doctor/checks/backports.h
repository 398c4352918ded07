/* Debian's backports: newer kernels and firmware for a release. */
#ifndef GP_DOCTOR_CHECKS_BACKPORTS_H
#define GP_DOCTOR_CHECKS_BACKPORTS_H

struct gp_exam;

/* "bookworm-backports", also of what is derived from that release; "": it has none, as Debian's
 * testing, or is unknown. */
const char *gp_backports_suite(struct gp_exam *exam);

/* Adds how to have apt know them, unless it does. */
void gp_backports_enable(struct gp_exam *exam);

#endif
