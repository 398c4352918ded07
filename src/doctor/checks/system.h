/* The checks of the system around GPU jobs: services, packages, settings. In several files;
 * system.c has their table. */
#ifndef GP_DOCTOR_CHECKS_SYSTEM_H
#define GP_DOCTOR_CHECKS_SYSTEM_H

#include "base/util.h"

struct gp_exam;

/* services.c: services that are kept from the GPUs by a variable in their unit. */
bool gp_services_has_hidden(struct gp_exam *exam);
void gp_services_check_hidden(struct gp_exam *exam);

/* arguments.c: programs that are started for the CPU. */
bool gp_arguments_have_cpu(struct gp_exam *exam);
void gp_arguments_check_cpu(struct gp_exam *exam);

/* ollama.c: whether Ollama has its part for the GPUs. */
bool gp_ollama_is_there(struct gp_exam *exam);
void gp_ollama_check(struct gp_exam *exam);

/* jellyfin.c: whether its settings fit the GPUs. */
bool gp_jellyfin_is_there(struct gp_exam *exam);
void gp_jellyfin_check(struct gp_exam *exam);

/* llama.c: whether llama.cpp was built for a GPU. */
bool gp_llama_is_there(struct gp_exam *exam);
void gp_llama_check(struct gp_exam *exam);

/* slurm.c: what Slurm knows of the GPUs. */
bool gp_slurm_is_there(struct gp_exam *exam);
void gp_slurm_check(struct gp_exam *exam);
/* Adds how jobs may use this node again, if it is one of Slurm's. */
void gp_slurm_resume(struct gp_exam *exam);

/* dcgm.c: whether DCGM's diagnostics know the driver's CUDA. */
bool gp_dcgm_is_there(struct gp_exam *exam);
void gp_dcgm_check(struct gp_exam *exam);

/* licence.c: of virtual GPUs. */
bool gp_licence_applies(struct gp_exam *exam);
void gp_licence_check(struct gp_exam *exam);

/* dkms.c: AMD's and Intel's drivers that DKMS builds. */
bool gp_dkms_is_there(struct gp_exam *exam);
void gp_dkms_check(struct gp_exam *exam);
/* In the summary of system.dkms, if ROCm finds no GPU for want of AMD's module. */
#define GP_DKMS_NO_COMPUTE "offers no GPU for computing"

/* sleep_mode.c: laptops that fail to suspend by S3. */
bool gp_sleep_applies(struct gp_exam *exam);
void gp_sleep_check(struct gp_exam *exam);
/* sleep_gfxoff.c: whether amdgpu's gfxoff is turned off; and reports that the machine then does not
 * sleep deeply. */
bool gp_sleep_has_gfxoff_off(struct gp_exam *exam);
void gp_sleep_check_gfxoff(struct gp_exam *exam);

/* groups.c: services whose users may not open the GPUs. */
bool gp_groups_apply(struct gp_exam *exam);
void gp_groups_check(struct gp_exam *exam);

/* sandbox.c: whether systemd keeps a service from the GPUs' device files. True: it does, and
 * that is reported. */
bool gp_sandbox_check(struct gp_exam *exam, const char *unit, bool computes);
/* The first device file for computing that a unit's DevicePolicy= and DeviceAllow= keep from the
 * programs in it, and the values of DeviceAllow= that they need, each with a newline; NULL: they
 * get all. */
const char *gp_sandbox_lacks(struct gp_exam *exam, const char *unit, const char **ret_lines);
/* Such values in a row, each between two texts. */
const char *gp_sandbox_joined(struct gp_exam *exam, const char *lines, const char *before,
                              const char *after, const char *between);

/* slices.c: likewise of the programs below a slice, or of all programs of a user. */
bool gp_slices_apply(struct gp_exam *exam);
void gp_slices_check(struct gp_exam *exam);

/* apt.c: the repositories in apt's sources, NVIDIA's and others. */
bool gp_apt_has_nvidia(struct gp_exam *exam);
/* Whether an entry that is on has this suite, "bookworm-backports", of any archive. */
bool gp_apt_has_suite(struct gp_exam *exam, const char *suite);
bool gp_apt_has_toolkit(struct gp_exam *exam); /* that of the container toolkit */
/* Where a release upgrade has turned the toolkit's repository off, "FILE:LINE", and in which words;
 * NULL: it has not, or there is another entry. */
const char *gp_apt_closed_toolkit(struct gp_exam *exam, const char **ret_why);
void gp_apt_check(struct gp_exam *exam);

/* xorg.c: what Xorg's configuration and log say of the GPUs. */
bool gp_xorg_is_there(struct gp_exam *exam);
void gp_xorg_check(struct gp_exam *exam);

#endif
