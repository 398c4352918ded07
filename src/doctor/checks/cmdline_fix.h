/* How to have an argument on the kernel's command line. */
#ifndef GP_DOCTOR_CHECKS_CMDLINE_FIX_H
#define GP_DOCTOR_CHECKS_CMDLINE_FIX_H

struct gp_exam;

/* Adds to the finding how this machine's boot loader gets "name=value" from the next boot on, in
 * place of another value; "": nothing to note on the last step. Both must be of plain characters:
 * letters, digits, "_", "-", and in the name ".". Without a reboot, and not for containers. */
void gp_cmdline_fix(struct gp_exam *exam, const char *name, const char *value, const char *note);

#endif
