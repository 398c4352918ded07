/* How to have an argument on the kernel's command line. */
#ifndef GP_DOCTOR_CHECKS_CMDLINE_FIX_H
#define GP_DOCTOR_CHECKS_CMDLINE_FIX_H

struct gp_exam;

/* Adds to the finding how this machine's boot loader passes the text, "name=value", from the next
 * boot on. Another value may stay before it, so the kernel must take the last one. The text is of
 * letters, digits, ".", "_" and "-" besides the "=". `note`: on the last step; "": none. Without a
 * reboot, and not for containers. */
void gp_cmdline_fix(struct gp_exam *exam, const char *text, const char *note);

#endif
