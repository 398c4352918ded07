/* How the running kernel was built. */
#ifndef GP_DOCTOR_READERS_KERNEL_CONFIG_H
#define GP_DOCTOR_READERS_KERNEL_CONFIG_H

#include "base/util.h"

struct gp_exam;

/* Whether the running kernel was built without an option, "CONFIG_HSA_AMD", which configurations
 * with its parent, "CONFIG_DRM_AMDGPU", name if they have it; and the file that shows it. False
 * also if no file has its configuration. */
bool gp_kernel_lacks(struct gp_exam *exam, const char *option, const char *parent,
                     const char **ret_where);

#endif
