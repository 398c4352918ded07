/* How Vulkan's loader finds the drivers: by files that name their libraries. */
#ifndef GP_DOCTOR_READERS_VULKAN_H
#define GP_DOCTOR_READERS_VULKAN_H

#include "base/util.h"

struct gp_exam;

/* The folders of these files, up to NULL; most packages use the first. */
extern const char *const gp_vulkan_folders[];

/* Whether a variable names the files. */
bool gp_vulkan_is_directed(const struct gp_exam *exam);

/* Whether the loader reads a file of this name in these folders. */
bool gp_vulkan_is_read(const char *name);

/* Reports a file of a driver in these folders whose name begins like one of these, up to NULL, and
 * that the loader skips, because a package or somebody has renamed it; false: there is none. */
bool gp_vulkan_report_renamed(struct gp_exam *exam, const char *const *starts, const char *words);

/* A program that draws with Vulkan; NULL: none is seen. */
const char *gp_vulkan_user(struct gp_exam *exam);

/* Whether a file is an ELF file of 32 bits. */
bool gp_vulkan_is_narrow(struct gp_exam *exam, const char *path);

/* Steam, or a Wine with a part of 32 bits: their programs need drivers of 32 bits; NULL: neither is
 * here. */
const char *gp_vulkan_narrow_user(struct gp_exam *exam);

/* Where the 32-bit form of a library is missing whose 64-bit form is at `ret_wide`; NULL: it is
 * there, or neither is. */
const char *gp_vulkan_narrow_missing(struct gp_exam *exam, const char *library,
                                     const char **ret_wide);

/* Reports if 32-bit Wine has no loader of Vulkan. */
void gp_vulkan_check_loader(struct gp_exam *exam);

#endif
