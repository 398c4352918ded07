/* Lines of the logs as evidence of the last finding. */
#ifndef GP_DOCTOR_CHECKS_LOG_SHOW_H
#define GP_DOCTOR_CHECKS_LOG_SHOW_H

#include "doctor/readers/log.h"

/* Quotes the line, unless it is NULL. If users can write to that log and the finding is at least a
 * warning, the first advice is to make sure that it is genuine. */
void gp_log_show_known(struct gp_exam *exam, const struct gp_log_known *known);

/* Quotes the line of the kernel log of the first of these kinds that occurs; false: none occurs, or
 * the log cannot be read. */
bool gp_log_show_kind(struct gp_exam *exam, const enum gp_kmsg_kind *kinds, size_t count);

/* How severe an Xid is. */
enum gp_verdict gp_log_show_verdict(const struct gp_kmsg *k);

/* Adds a line of the kernel as evidence, with its time and how often it was repeated. */
void gp_log_show_line(struct gp_exam *exam, const struct gp_log_line *line);

/* log_early.c: reports a service that found no GPU because it was started before NVIDIA's driver
 * was loaded; false: this line tells no such thing. */
bool gp_log_report_early(struct gp_exam *exam, const struct gp_log_known *known);

#endif
