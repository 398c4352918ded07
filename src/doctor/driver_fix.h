/* What several findings about the driver propose. Each adds to the finding that was begun last. */
#ifndef GP_DOCTOR_DRIVER_FIX_H
#define GP_DOCTOR_DRIVER_FIX_H

#include "doctor/exam.h"
#include "doctor/kmsg.h"

enum { GP_DRIVER_LONG_TERM = 580 }; /* serves Turing and newer, and is kept longest */

/* The newest branch that still has all of NVIDIA's GPUs here: 580, 470, …; 0: no branch has left
 * one of them out yet. */
unsigned gp_driver_last_branch(const struct gp_machine *machine);

/* How to install a driver that fits the GPUs here, in the distribution's own way, up to the reboot;
 * and one of a certain branch, with the open or the proprietary kernel modules. Where the
 * distribution has but one, `first` is the oldest branch that will do. */
void gp_driver_fix_install(struct gp_exam *exam);
void gp_driver_fix_branch(struct gp_exam *exam, unsigned branch, unsigned first, bool is_open);

/* The branch that a release of Debian has, with the proprietary modules; 0: it is no Debian. */
unsigned gp_driver_of_debian(const struct gp_machine *machine);

/* Whether gp_driver_fix_install() proposes no newer branch than that of this version. */
bool gp_driver_is_newest(const struct gp_exam *exam, const char *version);

/* How to get the module built for the running kernel. */
void gp_driver_fix_build(struct gp_exam *exam);

/* The package with the headers of a kernel on Arch; elsewhere the kernel's own release. */
const char *gp_driver_headers(struct gp_exam *exam, const char *kernel);

void gp_driver_fix_reboot(struct gp_exam *exam, const char *note);

/* Adds to the finding what the kernel's log says of one of these kinds, the first that it has;
 * false: none, or the log cannot be read. */
bool gp_driver_show_log(struct gp_exam *exam, const enum gp_kmsg_kind *kinds, size_t count);

/* "GeForce RTX 4090 (0000:01:00.0)" */
const char *gp_driver_gpu_words(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

#endif
