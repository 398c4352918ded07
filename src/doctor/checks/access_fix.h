/* How to get access to a device file. */
#ifndef GP_DOCTOR_CHECKS_ACCESS_FIX_H
#define GP_DOCTOR_CHECKS_ACCESS_FIX_H

struct gp_access;
struct gp_exam;

/* Adds to the finding who may use the file. */
void gp_access_show(struct gp_exam *exam, const struct gp_access *access, const char *path);

/* The commands that put a user (quoted, or "$USER") into the file's group. Tools refuse that where
 * /etc/group has the name twice: then that is mended first. */
void gp_access_join(struct gp_exam *exam, const struct gp_access *access, const char *note,
                    const char *user);

/* Suggests how to get access to a device: through its group, unless that is root's. */
void gp_access_propose(struct gp_exam *exam, const struct gp_access *access, const char *path);

#endif
