/* How Vulkan's loader finds the drivers: by files that name their libraries. */
#ifndef GP_DOCTOR_READERS_VULKAN_H
#define GP_DOCTOR_READERS_VULKAN_H

#include "base/util.h"

struct gp_exam;

/* The folders of these files, up to NULL; most packages use the first. */
extern const char *const gp_vulkan_folders[];

/* Whether a variable names the files. */
bool gp_vulkan_is_directed(const struct gp_exam *exam);

/* Whether the loader reads a file of this name in these folders: one that ends so. */
#define GP_VULKAN_END ".json"
bool gp_vulkan_is_read(const char *name);

/* A program that draws with Vulkan; NULL: none is seen. */
const char *gp_vulkan_user(struct gp_exam *exam);

/* Whether a file is an ELF file of 32 bits. */
bool gp_vulkan_is_narrow(struct gp_exam *exam, const char *path);

/* For which programs a file of the loader names a driver that is there: a library without a path is
 * searched for, for both. False: it cannot be read. */
struct gp_vulkan_driver {
    bool is_wide, is_narrow; /* of 64 and of 32 bits */
};
bool gp_vulkan_driver_read(struct gp_exam *exam, const char *path, struct gp_vulkan_driver *ret);

/* Steam, or a Wine with a part of 32 bits: their programs need drivers of 32 bits; NULL: neither is
 * here. A Wine of Lutris counts if Lutris has said that it lacks these. */
const char *gp_vulkan_narrow_user(struct gp_exam *exam);

/* Whether such a program is Lutris's, and what it is called. */
bool gp_vulkan_is_of_lutris(const char *program);
const char *gp_vulkan_narrow_words(const char *program);

/* Where the 32-bit form of a library is missing whose 64-bit form is at `ret_wide`; NULL: it is
 * there, or neither is. */
const char *gp_vulkan_narrow_missing(struct gp_exam *exam, const char *library,
                                     const char **ret_wide);

#endif
