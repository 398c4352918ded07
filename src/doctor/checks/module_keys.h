/* The keys that modules are signed with for Secure Boot: their files on this machine, and whether
 * the firmware knows them. */
#ifndef GP_DOCTOR_CHECKS_MODULE_KEYS_H
#define GP_DOCTOR_CHECKS_MODULE_KEYS_H

#include "base/util.h"

struct gp_exam;

/* The key that this module is signed with, or that locally built modules are; NULL if the firmware
 * trusts it, or if either cannot be read. */
const char *gp_module_keys_unknown(struct gp_exam *exam, const char *module);

/* Whether the key is enrolled, in a list that the kernel does not use for modules. */
bool gp_module_keys_are_unused(struct gp_exam *exam);

/* Adds how to have the kernel trust such a key; false: it is none. */
bool gp_module_keys_fix_unused(struct gp_exam *exam);

/* Whether the firmware started another boot loader than shim, which alone can enroll keys; in
 * *ret_top the folder of the system partition that has no shim. */
bool gp_module_keys_are_without_shim(struct gp_exam *exam, const char **ret_top);
void gp_module_keys_fix_without_shim(struct gp_exam *exam, const char *top);

/* Adds how to enroll the key of NVIDIA's module. */
void gp_module_keys_enroll(struct gp_exam *exam);

#endif
