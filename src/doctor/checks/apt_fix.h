/* How to get around what keeps apt from installing what a fix needs: pins in its preferences. */
#ifndef GP_DOCTOR_CHECKS_APT_FIX_H
#define GP_DOCTOR_CHECKS_APT_FIX_H

#include <stdbool.h>

struct gp_exam;
struct gp_finding;

/* Puts before each command of these findings what lifts the pins that keep its packages back. */
void gp_apt_release_pins(struct gp_exam *exam, struct gp_finding *first);

/* Adds how to get the container toolkit from NVIDIA's repository, if apt has been told to prefer
 * the one of the distribution that is installed. `packages`: names of the installed ones.
 * True: that includes how to add the repository. */
bool gp_apt_prefer_toolkit(struct gp_exam *exam, const char *packages);

#endif
