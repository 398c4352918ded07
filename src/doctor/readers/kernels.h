/* Kernel releases: their flavour, and Arch's packages of them. */
#ifndef GP_DOCTOR_READERS_KERNELS_H
#define GP_DOCTOR_READERS_KERNELS_H

#include "base/util.h"

struct gp_exam;

/* Whether two releases are of one flavour: "6.17.8-arch1-1" and "6.17.9-arch1-2", but not
 * "6.17.9-1-cachyos". Only such an update replaces the other. */
bool gp_kernels_are_alike(const char *a, const char *b);

/* Arch's package of a kernel, which the folder of its modules names: "linux-zen". */
const char *gp_kernels_package(struct gp_exam *exam, const char *kernel);

/* The line of pacman's configuration that keeps a package from being updated, "IgnorePkg = linux";
 * NULL: none does. */
const char *gp_kernels_holder(struct gp_exam *exam, const char *package);

/* Proxmox is Debian with a kernel of its own. */
bool gp_kernels_is_proxmox(const char *kernel);

/* Ubuntu's builds of plain kernels, such as "5.16.16-051616-generic": from outside of its archive.
 */
bool gp_kernels_is_mainline(const char *kernel);

/* Whether it is a kernel for Debian or Ubuntu that others build: often newer than the drivers of
 * the release. */
bool gp_kernels_is_of_others(const char *kernel);

/* Whether it is of none of Arch's own packages, as those of the AUR and of linux-tkg: an update of
 * the system leaves it as it is. */
bool gp_kernels_is_own(struct gp_exam *exam, const char *kernel);

/* Debian and Ubuntu: whether the running kernel was built neither by the distribution nor by others
 * that publish theirs, so that a package of the driver may be older than it. */
bool gp_kernels_is_home_made(struct gp_exam *exam);

/* The newest installed kernel of Debian or Ubuntu that is older than the running one and can be
 * booted; "": none. */
const char *gp_kernels_of_distribution(struct gp_exam *exam);

/* Whether a module, "nouveau", is a part of the running kernel: no setting of modprobe.d(5) keeps
 * it out, and its firmware is needed before the root file system is there. */
bool gp_kernels_has_built_in(struct gp_exam *exam, const char *module);

#endif
