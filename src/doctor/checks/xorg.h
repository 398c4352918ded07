/* The parts of the check of Xorg, in several files; xorg.c calls them. */
#ifndef GP_DOCTOR_CHECKS_XORG_H
#define GP_DOCTOR_CHECKS_XORG_H

#include "base/util.h"

struct gp_exam;

/* xorg.c: whether the configuration misnames the GPU, so that Xorg did not start in this boot. */
bool gp_xorg_is_misled(struct gp_exam *exam);

/* xorg_device.c: whether a section "Device" is there. */
bool gp_xorg_has_devices(struct gp_exam *exam);
/* Whether the configuration has the desktop drawn on NVIDIA's GPU, though there are others. */
bool gp_xorg_draws_on_nvidia(struct gp_exam *exam);

/* Reports a driver that cannot draw on this machine, or draws on another GPU than the one that is
 * selected; false: there is none. */
bool gp_xorg_check_devices(struct gp_exam *exam);

/* xorg_overdrive.c: reports a display server that does not start, without a reason of its own, on
 * an AMD GPU whose overclocking is enabled. */
void gp_xorg_check_overdrive(struct gp_exam *exam);

/* xorg_glx.c: reports a display server that draws on another GPU with NVIDIA's old GLX module. */
void gp_xorg_check_glx(struct gp_exam *exam);

#endif
