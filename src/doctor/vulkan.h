/* How Vulkan's loader finds the drivers: by files that name their libraries. */
#ifndef GP_DOCTOR_VULKAN_H
#define GP_DOCTOR_VULKAN_H

#include "base/util.h"

struct gp_exam;

/* The folders of these files, up to NULL; most packages use the first. */
extern const char *const gp_vulkan_folders[];

/* Whether a variable names the files. */
bool gp_vulkan_is_directed(const struct gp_exam *exam);

#endif
