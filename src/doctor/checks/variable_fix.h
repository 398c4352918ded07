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

#endif
