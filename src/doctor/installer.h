/* NVIDIA's .run installer: a build of the module that failed, by its log, and how to go on. */
#ifndef GP_DOCTOR_INSTALLER_H
#define GP_DOCTOR_INSTALLER_H

#include "base/util.h"

struct gp_exam;
struct gp_failed_build;

extern const char gp_installer_log[];

/* The build for the running kernel that failed when the installer last ran; false: none did. */
bool gp_installer_read(struct gp_exam *exam, struct gp_failed_build *ret);

/* Why a module that uses this symbol is refused, if the line of a build says so; false: it does
 * not. */
bool gp_installer_explain_symbol(struct gp_exam *exam, const char *error, const char *version);

/* Adds which release of the driver compiles where this build of the installer did not. */
void gp_installer_fix_build(struct gp_exam *exam, const struct gp_failed_build *build);

#endif
