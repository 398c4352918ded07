/* What the checks of Ollama share; system.h has the check itself. */
#ifndef GP_DOCTOR_CHECKS_OLLAMA_H
#define GP_DOCTOR_CHECKS_OLLAMA_H

#include "base/util.h"

struct gp_exam;

/* Where its parts for GPUs are, up to NULL. */
extern const char *const gp_ollama_folders[];

/* Whether this program, "/usr/bin/ollama", has its part for CUDA. */
bool gp_ollama_has_cuda(struct gp_exam *exam, const char *program);

/* What shows a release that needs AVX to use a GPU: its program has all parts within it, or they
 * are in "runners"; NULL: there is none. */
const char *gp_ollama_before_split(struct gp_exam *exam);

/* The variable's value, HSA_OVERRIDE_GFX_VERSION, with which its ROCm uses the GPU of AMD; "": it
 * needs none. NULL: it cannot, or the GPU is not worth it. */
const char *gp_ollama_override(struct gp_exam *exam);

/* ollama_install.c: reports an archive of which only some was unpacked, and returns whether it did.
 */
bool gp_ollama_report_incomplete(struct gp_exam *exam);

/* Likewise, whether a Jetson has the archive for its JetPack. */
void gp_ollama_check_jetson(struct gp_exam *exam);

/* ollama_nix.c: the package of Nix that it runs from, or would, "/nix/store/6x9c…-ollama-0.5.7";
 * NULL: none. */
const char *gp_ollama_of_nix(struct gp_exam *exam);

/* Whether this package has its part for the GPUs. */
void gp_ollama_check_nix(struct gp_exam *exam, const char *package, bool is_nvidia);

/* ollama_driver.c: whether docker runs one of its images, with GPUs of NVIDIA. */
bool gp_ollama_is_in_docker(struct gp_exam *exam);

/* Reports if its release needs a newer driver, and returns whether it does. */
bool gp_ollama_report_needs(struct gp_exam *exam);

#endif
