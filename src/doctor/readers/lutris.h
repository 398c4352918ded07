/* The games that Lutris starts, and what their last runs have logged. */
#ifndef GP_DOCTOR_READERS_LUTRIS_H
#define GP_DOCTOR_READERS_LUTRIS_H

#include "base/util.h"

struct gp_exam;

/* A game whose DXVK found no GPU with Vulkan in its last run, whatever its version: the file and
 * line of its log. Games whose settings contain one of these words, up to NULL, are left out. */
bool gp_lutris_without_gpu(struct gp_exam *exam, const char *const *words, const char **ret_where,
                           const char **ret_text);

/* A Wine of Lutris with a part of 32 bits; NULL: there is none, or Lutris is a Flatpak, which has
 * libraries of its own. */
const char *gp_lutris_narrow_wine(struct gp_exam *exam);

/* Whether Lutris has found no OpenGL or Vulkan of 32 bits when it was started for the last time:
 * its log and the line. */
bool gp_lutris_lacks_narrow(struct gp_exam *exam, const char **ret_where, const char **ret_text);

#endif
