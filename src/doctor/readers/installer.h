/* NVIDIA's .run installer: a build of the module that failed, by its log. */
#ifndef GP_DOCTOR_READERS_INSTALLER_H
#define GP_DOCTOR_READERS_INSTALLER_H

#include "base/util.h"

struct gp_exam;
struct gp_failed_build;

extern const char gp_installer_log[];

/* The release of gcc behind a mark in the warning of the kernel's build, "  You are using:
 * gcc (Ubuntu 10.3.0-15ubuntu1) 10.3.0"; 0: none. */
unsigned gp_installer_warned_gcc(struct gp_exam *exam, const char *text, const char *mark);

/* The build for the running kernel that failed when the installer last ran; false: none did. */
bool gp_installer_read(struct gp_exam *exam, struct gp_failed_build *ret);

/* The line of its log, from 1, in which it was told this option, "--no-opengl-files", when it
 * installed this version of the driver; 0: it was not. */
size_t gp_installer_option(struct gp_exam *exam, const char *version, const char *option);

#endif
