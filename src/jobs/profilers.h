/* How to look deeper than a timeline: the profilers' commands for a job, and the permission that
 * they need. */
#ifndef GP_JOBS_PROFILERS_H
#define GP_JOBS_PROFILERS_H

struct gp_strbuf;

/* Appends lines for a command. Reads the driver's settings in /proc. */
void gp_profilers_add(struct gp_strbuf *sb, char *const *argv);

#endif
