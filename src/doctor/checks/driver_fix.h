/* Fixes that several findings about the driver share, and what they ask first. Those with _fix_ add
 * to the current finding. */
#ifndef GP_DOCTOR_CHECKS_DRIVER_FIX_H
#define GP_DOCTOR_CHECKS_DRIVER_FIX_H

#include "doctor/exam.h"
#include "doctor/offer.h"

/* How to install a driver that fits this machine's GPUs, in the distribution's own way, including
 * the reboot. */
void gp_driver_fix_install(struct gp_exam *exam);

/* Likewise, for what is too new for the GPUs; and how to use nouveau instead, where their last
 * driver is no good choice. */
void gp_driver_fix_install_or_nouveau(struct gp_exam *exam);

/* The loaded module and the libraries on disk have different versions. */
bool gp_driver_is_mismatched(struct gp_exam *exam);

/* The branch and flavour of Ubuntu's packages of the driver: "535-server". */
const char *gp_driver_flavour(struct gp_exam *exam);

/* Whether Ubuntu's driver for computing alone is installed: nobody gets that by accident. */
bool gp_driver_is_headless(struct gp_exam *exam);

/* The package by which all of Ubuntu's parts of the driver come, if some are there without it, so
 * that updates and removals leave some; "": it is installed, not wanted, or there are no such
 * packages. */
const char *gp_driver_whole(struct gp_exam *exam);

/* The installed package of the driver's libraries, by its last word: of Debian
 * "nvidia-tesla-470-driver-libs", of Arch "nvidia-470xx-utils", of nvidia-all "nvidia-utils-tkg".
 * `usual`: there is none. */
const char *gp_driver_libraries_package(struct gp_exam *exam, const char *end, const char *usual);

/* How to get the libraries and programs that match the loaded module. */
void gp_driver_fix_libraries(struct gp_exam *exam);

/* How to restore the files of these packages, after the .run installer's were removed. */
void gp_driver_fix_packages(struct gp_exam *exam, const char *names);

/* How to exchange the open kernel modules for the proprietary ones of the same driver; nothing, if
 * the GPUs need the open ones. */
void gp_driver_fix_proprietary(struct gp_exam *exam);

/* How to get this version of the driver or a newer one: on the host, in Windows, or by a package.
 */
void gp_driver_fix_at_least(struct gp_exam *exam, const char *driver);

/* How to have the installed driver's open modules built, where rpm-ostree
 * built the proprietary ones, but the GPUs need those; false: that is not the problem. */
bool gp_driver_fix_layered(struct gp_exam *exam);

/* How to install the chosen driver, or why there is none. */
void gp_driver_fix_choice(struct gp_exam *exam, const struct gp_offer_choice *choice);

/* Likewise on Debian, from its archive or NVIDIA's; and the last driver of a GPU from before 2012.
 */
void gp_driver_fix_debian(struct gp_exam *exam, const struct gp_offer_choice *choice);
void gp_driver_fix_debian_legacy(struct gp_exam *exam, unsigned branch);

/* What to do where apt finds nothing, because an old release's packages moved to this host. */
void gp_driver_fix_archived(struct gp_exam *exam, const char *host);

/* Whether Debian's package with the open modules is installed, or was begun to be. Its branches do
 * not build on every kernel that the proprietary ones build on. */
bool gp_driver_has_open_package(struct gp_exam *exam);

/* Whether the driver that gp_driver_fix_install() suggests is not from a newer branch than this
 * version. */
bool gp_driver_is_newest(struct gp_exam *exam, const char *version);

/* How to get the module built for the running kernel. */
void gp_driver_fix_build(struct gp_exam *exam);

/* Installs this release of gcc, 12, that of the kernel, and makes it the default if that is an
 * older one; 0: unknown. */
void gp_driver_fix_compiler(struct gp_exam *exam, unsigned version, bool is_default_older);

/* How to get module and libraries of one version, if two repositories have them, and the module on
 * disk has this version; false: that is not known. */
bool gp_driver_fix_repositories(struct gp_exam *exam, const char *version);

/* Whether a repository of negativo17 with the driver is enabled. */
bool gp_driver_has_negativo17(struct gp_exam *exam);

/* Whether dnf's log has the libraries under the names of negativo17's and NVIDIA's packages, and
 * not under that of RPM Fusion's. */
bool gp_driver_has_libraries_of_others(struct gp_exam *exam);

/* RPM Fusion's package of the installed driver, by its last word, "-libs": of an old series
 * "xorg-x11-drv-nvidia-470xx-libs"; "": the driver is of another repository. */
const char *gp_driver_fusion_package(struct gp_exam *exam, const char *end);

/* Why a module that uses a symbol is refused, if this line of a build of the driver's version says
 * so; false: it does not. */
bool gp_driver_explain_symbol(struct gp_exam *exam, const char *error, const char *version);

/* "535.161.07 or later of branch 535, 550.54.14 or later of branch 550": for these GPUs, those in
 * which this error of a build of the driver's version is fixed; "": not known. */
const char *gp_driver_releases_for(struct gp_exam *exam, const char *error, const char *version);

/* Which release of the driver compiles where this build of NVIDIA's installer did not. */
struct gp_failed_build;
void gp_driver_fix_release(struct gp_exam *exam, const struct gp_failed_build *build);

/* What to do where it failed for a kernel that is not the distribution's: its packages may be older
 * than that kernel, too. False: the kernel is. */
bool gp_driver_fix_home_made(struct gp_exam *exam, const struct gp_failed_build *build);

/* Whether dkms is installed. */
bool gp_driver_has_dkms(struct gp_exam *exam);

/* Whether this line of a build says that a program which it calls is missing, and how to install
 * that.
 */
bool gp_driver_lacks_tool(const char *error);
void gp_driver_fix_tool(struct gp_exam *exam, const char *error);

/* The program that builds the module from the installed source, "akmods" or "dkms", if it is not
 * installed; NULL: it is, or it is not known. */
const char *gp_driver_missing_builder(struct gp_exam *exam);

/* How to keep the GPUs initialized while nothing uses them. */
void gp_driver_fix_idle(struct gp_exam *exam);

/* How to boot the newest other kernel that has the module, until this one has it. */
void gp_driver_fix_other_kernel(struct gp_exam *exam);

/* Debian: adds how to enable the components of its archive that are not free, unless they are. */
void gp_driver_fix_non_free(struct gp_exam *exam);

/* CentOS 7 and 8 ask a host for their mirrors that is gone: adds how to use the archive. */
void gp_driver_fix_mirrors(struct gp_exam *exam);

/* Adds how to install the headers of a kernel. */
void gp_driver_fix_headers(struct gp_exam *exam, const char *kernel);

/* Likewise, where the package's name depends on the kernel: of another flavour, or of another
 * repository than the distribution's; false: it does not. */
bool gp_driver_fix_named_headers(struct gp_exam *exam, const char *kernel);

/* Debian and Kali: what to do where the archive has the headers of newer kernels only. */
void gp_driver_fix_without_headers(struct gp_exam *exam, const char *kernel);

/* The series of Ubuntu's kernels that is kept up to date: "generic-hwe-24.04" for the kernel of
 * "linux-image-generic-hwe-24.04"; "": that is not installed, or several are. */
const char *gp_driver_kernel_series(struct gp_exam *exam);

/* Proxmox' packages with the headers of a kernel, and of later ones. */
const char *gp_driver_headers_of_proxmox(struct gp_exam *exam, const char *kernel);

/* How to get the module built for a kernel, from the installed source; with its headers, if they
 * are missing or `wants_headers`. */
void gp_driver_fix_module(struct gp_exam *exam, const char *kernel, bool wants_headers);

/* Whether dpkg did not finish installing the headers of the kernel. */
bool gp_driver_has_unfinished_headers(struct gp_exam *exam, const char *kernel);

/* If so: adds how to finish that, or which kernel to use instead. */
bool gp_driver_fix_unfinished_headers(struct gp_exam *exam, const char *kernel);

/* Updates the driver's packages, also held ones, and nothing else where the distribution supports
 * that. */
void gp_driver_fix_update(struct gp_exam *exam);

/* Lets apt change packages of the driver that are held, which it refuses otherwise. */
void gp_driver_fix_held(struct gp_exam *exam);

/* Ubuntu with Secure Boot: packages, whose modules are signed, in place of what the .run installer
 * installed; false: the driver is not of it alone. */
bool gp_driver_fix_unsigned_run(struct gp_exam *exam);

/* In a container: how to get the libraries of the host's driver in place of others. */
void gp_driver_fix_image(struct gp_exam *exam);

/* Takes NVIDIA's modules out of the settings of the initramfs, which is to be rebuilt then. */
struct gp_initramfs_line;
void gp_driver_fix_initramfs(struct gp_exam *exam, const struct gp_initramfs_line *lines,
                             size_t count);

/* Adds a reboot, with a note on it; on a live system, what to do instead. */
void gp_driver_fix_reboot(struct gp_exam *exam, const char *note);

/* driver_cloud.c: the driver of a cloud that this GPU needs; false: it needs none. */
struct gp_pci_gpu;
bool gp_driver_fix_cloud(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* driver_parts.c: the option for Debian's apt if the driver came from the backports; "". */
const char *gp_driver_backports(struct gp_exam *exam);

/* driver_symbol.c: the symbol for which modpost stopped this build, if the kernel lacks it, though
 * it could have it; "": it does not, or that is not known. The other one adds why, and what to do.
 */
struct gp_lost_symbol {
    const char *name;
    bool has_other; /* the other kernel, of the same series, has it */
};
struct gp_lost_symbol gp_driver_lost_symbol(struct gp_exam *exam,
                                            const struct gp_failed_build *build,
                                            const char *kernel);
bool gp_driver_fix_lost_symbol(struct gp_exam *exam, const struct gp_lost_symbol *lost,
                               const char *kernel);

#endif
