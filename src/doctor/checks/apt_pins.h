/* Pins in apt's preferences that would keep a fix from having an effect. */
#ifndef GP_DOCTOR_CHECKS_APT_PINS_H
#define GP_DOCTOR_CHECKS_APT_PINS_H

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
