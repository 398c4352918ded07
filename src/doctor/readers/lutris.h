/* The games that Lutris starts, and what their last runs have logged. */
#ifndef GP_DOCTOR_READERS_LUTRIS_H
#define GP_DOCTOR_READERS_LUTRIS_H

#include "base/util.h"

struct gp_exam;

/* A game whose DXVK found no GPU with Vulkan in its last run, whatever its version: the file and
 * line of its log. Games whose settings contain one of these words, up to NULL, are left out. */
bool gp_lutris_without_gpu(struct gp_exam *exam, const char *const *words, const char **ret_where,
                           const char **ret_text);

#endif
