/* Where a variable is set, and how to unset it. Each adds to the current finding. */
#ifndef GP_DOCTOR_CHECKS_VARIABLE_FIX_H
#define GP_DOCTOR_CHECKS_VARIABLE_FIX_H

struct gp_exam;

/* The lines of the user's and the system's files that set a variable. */
void gp_exam_assignments(struct gp_exam *exam, const char *name);

/* These, and the command that unsets it, with a note on that. */
void gp_exam_unset(struct gp_exam *exam, const char *name, const char *note);

/* These lines, and how no later session has the variable. */
void gp_exam_unset_for_all(struct gp_exam *exam, const char *name);

/* What the programs of a session get as a variable: this shell's value, or if it has none, as with
 * sudo, that of the files for all sessions. One that a shell would have to compute is unknown, as
 * is one that is not set: NULL. The other adds to the finding how to unset it, with a note. */
const char *gp_exam_session_value(struct gp_exam *exam, const char *name);
void gp_exam_fix_variable(struct gp_exam *exam, const char *name, const char *value,
                          const char *note);

#endif
