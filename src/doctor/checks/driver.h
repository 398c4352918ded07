/* The checks of the driver, in several files; driver.c has their table and their order. */
#ifndef GP_DOCTOR_CHECKS_DRIVER_H
#define GP_DOCTOR_CHECKS_DRIVER_H

#include "doctor/exam.h"

/* driver_disk.c: what is installed */
void gp_driver_check_installed(struct gp_exam *exam);
void gp_driver_check_flavour(struct gp_exam *exam);
void gp_driver_check_kernel(struct gp_exam *exam);

/* driver_operator.c: drivers from a container */
/* Whether the driver container of NVIDIA's GPU Operator was started here. */
bool gp_driver_has_operator(struct gp_exam *exam);

/* Reports that it, or NVIDIA's installer, could not load its module; false: no sign of that. */
bool gp_driver_report_operator(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* Adds that the kernel has rejected a module, which may not have been NVIDIA's, if it has. */
void gp_driver_warn_of_rejection(struct gp_exam *exam);

/* Adds how to keep nouveau from being loaded at boot. */
void gp_driver_block_nouveau(struct gp_exam *exam);

/* driver_container.c */
/* Reports why the driver container of NVIDIA's GPU Operator has no driver loaded, by its log;
 * false: there is none, or it has loaded one. */
bool gp_driver_report_container(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* Adds how to have the modules of the Operator's driver container signed, or do without. */
void gp_driver_fix_container(struct gp_exam *exam);

/* driver_build.c */
void gp_driver_check_build(struct gp_exam *exam);

/* driver_packages.c */
void gp_driver_check_packages(struct gp_exam *exam);

/* driver_module.c */
void gp_driver_check_module(struct gp_exam *exam);

/* driver_forgotten.c */
/* Reports the module's source that DKMS does not know; false: it knows it, or there is none.
 * `ret_updates_kernel`: its remedy may bring a newer kernel. */
bool gp_driver_report_forgotten(struct gp_exam *exam, bool *ret_updates_kernel);

/* driver_block.c: what prevents loading the module */
void gp_driver_check_blacklist(struct gp_exam *exam);
void gp_driver_check_secureboot(struct gp_exam *exam);
void gp_driver_check_nouveau(struct gp_exam *exam);
bool gp_driver_is_secure_boot_on(struct gp_exam *exam);

/* Whether a tool that switches between a laptop's GPUs has written a file below modprobe.d; the
 * second adds how to turn NVIDIA's GPU on with it. */
bool gp_driver_is_of_tool(struct gp_exam *exam, const char *file);
bool gp_driver_fix_by_tool(struct gp_exam *exam, const char *file);

/* The mode in which Ubuntu's prime-select has NVIDIA's GPU on: "on-demand", or where the driver or
 * the tool is too old for that, "nvidia". */
const char *gp_driver_prime_mode(struct gp_exam *exam);

/* A line of the kernel, or of a program that tried to load a module, that says that the kernel
 * rejected it for its signature; false: there is none. */
bool gp_driver_find_refusal(struct gp_exam *exam, const char **ret_where, const char **ret_text);

/* Whether bbswitch has turned the GPU off. */
bool gp_driver_is_switched_off(struct gp_exam *exam);

/* Adds how to keep another driver, as named on the PCI bus, from being bound to the GPU. */
void gp_driver_fix_other(struct gp_exam *exam, const char *driver);

/* A setting that gives a GPU to vfio-pci at each boot: "ids=10de:2684" in modprobe.d,
 * "vfio-pci.ids=" on the command line, or driverctl's. Its place; NULL: none. */
const char *gp_driver_handed_over_by(struct gp_exam *exam, const struct gp_pci_gpu *gpu);

/* driver_graphics.c: what driver.libraries says of OpenGL, EGL, Vulkan and the screen */
void gp_driver_check_graphics(struct gp_exam *exam);
/* The part of it for containers, too: files that name NVIDIA's driver to Vulkan and EGL. */
void gp_driver_check_registers(struct gp_exam *exam);

/* driver_applications.c: the driver without its part for graphics, which a program needs; and a
 * program with which the driver's branch is known to fail. Parts of driver.libraries. */
void gp_driver_check_left_out(struct gp_exam *exam);
void gp_driver_check_applications(struct gp_exam *exam);

/* driver_narrow.c: its libraries for programs of 32 bits, a part of driver.libraries */
void gp_driver_check_narrow(struct gp_exam *exam);
/* Where its OpenGL for 32 bits should be; NULL: it is somewhere, or there is none for 64 bits. */
const char *gp_driver_missing_narrow(struct gp_exam *exam);
/* Adds how to install it. */
void gp_driver_fix_narrow(struct gp_exam *exam);

/* driver_nvenc.c */
void gp_driver_check_nvenc(struct gp_exam *exam);

/* An FFmpeg in file systems of a container that needs a newer NVENC than the driver has. False:
 * there is none, another one there fits, or the refusal in a log is reported by the check above. */
struct gp_driver_nvenc {
    const char *path;
    const char *api, *driver; /* what it was built for, and the oldest driver with that */
    const char *found;        /* what the driver has; "": unknown */
};
bool gp_driver_find_nvenc(struct gp_exam *exam, const char *const *roots, size_t count,
                          struct gp_driver_nvenc *ret);

struct gp_log_known;

/* driver_obs.c: OBS tests NVENC when it starts, and says only that the driver is too old. NULL: it
 * did not. */
const struct gp_log_known *gp_driver_obs_refusal(struct gp_exam *exam);
/* Whether it was that of the Flatpak. */
bool gp_driver_is_of_flatpak(const struct gp_log_known *refusal);
/* The refusal, if it was. */
const struct gp_log_known *gp_driver_obs_of_flatpak(struct gp_exam *exam);

/* driver_parts.c */
void gp_driver_check_parts(struct gp_exam *exam);

/* steam.c */
/* Where Steam keeps what it has installed, below a home directory; up to NULL. */
extern const char *const gp_steam_folders[];
void gp_driver_check_proton(struct gp_exam *exam);

/* driver_libraries.c */
void gp_driver_check_libraries(struct gp_exam *exam);
void gp_driver_check_duplicates(struct gp_exam *exam);
void gp_driver_check_mismatch(struct gp_exam *exam);

/* Firmware of the GPU's system processor for this version of the driver. */
void gp_driver_check_firmware(struct gp_exam *exam);

/* driver_copies.c: other versions of its libraries that programs find first */
void gp_driver_check_copies(struct gp_exam *exam);

/* Whether Flatpak has copies of the driver, but none of this one: that check reports it. */
bool gp_driver_has_old_flatpak(struct gp_exam *exam);

/* driver_device.c: what the loaded module reports, and its device files */
void gp_driver_check_gpus(struct gp_exam *exam);
void gp_driver_check_nodes(struct gp_exam *exam);
void gp_driver_check_params(struct gp_exam *exam);
void gp_driver_check_persistence(struct gp_exam *exam);

/* driver_minor.c */
/* Reports a GPU whose device file has a number that the driver has not given it; false: none has.
 */
bool gp_driver_report_minor(struct gp_exam *exam);

/* driver_regression.c */
struct gp_log_line;
/* Reports that this release of the driver is known to fail with the GPU in this way, as the line of
 * the log says; false: it is not. */
bool gp_driver_report_regression(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                                 const struct gp_log_line *line);
/* A release in which programs are known to hang on Wayland. */
void gp_driver_check_hangs(struct gp_exam *exam);

/* driver_bumblebee.c */
bool gp_driver_has_bumblebee(struct gp_exam *exam);
/* Reports Bumblebee's configuration, if it does not lead to the installed driver; false: it does.
 */
bool gp_driver_report_bumblebee(struct gp_exam *exam);

/* driver_gdm.c */
void gp_driver_check_gdm(struct gp_exam *exam);
/* Whether GDM is the login screen, and starts its sessions in Wayland where no other is chosen. */
bool gp_driver_gdm_starts_wayland(struct gp_exam *exam);

/* driver_egl.c: a part of driver.libraries */
void gp_driver_check_egl(struct gp_exam *exam);

/* driver_xwayland.c: a part of driver.params, for a session of Wayland on NVIDIA's GPU */
void gp_driver_check_xwayland(struct gp_exam *exam);

/* A line of /proc/driver/nvidia/params: a suspend loses what is in the GPU's memory. */
#define GP_DRIVER_KEEPS_NONE "PreserveVideoMemoryAllocations: 0"

/* driver_resume.c: whether the loaded driver is set up so that the services and the hook which
 * suspend it by nvidia-sleep.sh are of no use to it, whether or not they are enabled; and how to
 * turn them off. */
bool gp_driver_needs_no_hooks(struct gp_exam *exam);
void gp_driver_fix_hooks(struct gp_exam *exam);
/* What a desktop shows whose pictures a suspend has lost. */
extern const char gp_driver_lost_pictures[];
/* Reports a machine that hangs or is reset when it wakes. True: the remedy, to keep GPU memory
 * across suspend, is still to be added. */
bool gp_driver_check_resume(struct gp_exam *exam);

/* driver_freeze.c: reports sessions that could not be frozen before a suspend; true if it did. */
bool gp_driver_check_freeze(struct gp_exam *exam);

/* driver_hybrid.c: a part of driver.params, for a screen on another GPU than NVIDIA's. */
void gp_driver_check_hybrid(struct gp_exam *exam);

/* driver_modes.c */
void gp_driver_check_modes(struct gp_exam *exam);
/* The line by which SDDM starts a session of Wayland, next to X11, or its own login screen in it;
 * NULL: neither, or another GPU can show it. */
const char *gp_driver_sddm_session(struct gp_exam *exam, const char **ret_place,
                                   bool *ret_is_login);
void gp_driver_check_framebuffer(struct gp_exam *exam);
/* The first line of a file that begins like this; NULL: none. */
const char *gp_driver_line_of(struct gp_exam *exam, const char *path, const char *start);
/* Adds how to have nvidia_drm set modes. */
void gp_driver_fix_modes(struct gp_exam *exam);
/* NVIDIA's driver for VA-API; NULL: it is not installed. */
const char *gp_driver_video(struct gp_exam *exam);
/* Whether a folder of sessions has any; false if it is not there. */
bool gp_driver_has_sessions(struct gp_exam *exam, const char *folder);
/* Whether the firmware used an NVIDIA GPU for the screen. */
bool gp_driver_is_boot_screen(const struct gp_machine *m);
/* Whether the screen is NVIDIA's: there is no other GPU, or the firmware used it. */
bool gp_driver_shows_screen(const struct gp_machine *m);
/* A compositor for Wayland, on a machine with no session of X11 to choose instead; NULL: there is
 * none, or another GPU can show it. */
const char *gp_driver_compositor(struct gp_exam *exam);

/* driver_appliance.c: reports that an appliance does not offer a GPU, by this file of the driver,
 * as nothing has used it since boot; false: this is none */
bool gp_driver_report_unoffered(struct gp_exam *exam, const char *information);

/* driver_vgpu.c: whether the driver is that of a host of virtual GPUs; whether it has no CUDA for
 * that; and reports that; false: it is another driver */
bool gp_driver_is_vgpu_host(struct gp_exam *exam);
bool gp_driver_is_without_cuda(struct gp_exam *exam);
bool gp_driver_report_vgpu_host(struct gp_exam *exam);

/* own_libcuda.c: a part of driver.copies: programs with a copy of their own */
void gp_driver_check_own_copies(struct gp_exam *exam);

/* opencl_name.c: a part of driver.libraries */
void gp_driver_check_opencl_name(struct gp_exam *exam);

/* driver_uvm.c */
/* Reports that this kernel refuses nvidia_uvm, as its log shows; false: it does not. */
bool gp_driver_report_uvm_refused(struct gp_exam *exam);
void gp_driver_check_uvm(struct gp_exam *exam);
/* A service that initializes the GPUs and creates their device files before these (a list). */
void gp_driver_create_at_boot(struct gp_exam *exam, const char *services);

/* driver_restore.c: reports that the driver, loaded by the initramfs, refused the resume from
 * hibernation; false: it did not */
bool gp_driver_report_restore(struct gp_exam *exam);

/* Likewise: what a program said to which CUDA gave no reason, after a machine was suspended; NULL:
 * none, or it failed before. Programs look for GPUs when they start, so the other has it start
 * again. */
const struct gp_log_known *gp_driver_cuda_lost(struct gp_exam *exam);
void gp_driver_restart_program(struct gp_exam *exam, const struct gp_log_known *failed);

/* driver_boost.c: a part of driver.power */
void gp_driver_check_boost(struct gp_exam *exam);

/* driver_power.c */
void gp_driver_check_power(struct gp_exam *exam);

/* Reports TLP, if it manages the power of a GPU that bbswitch has turned off; false: it does not.
 */
bool gp_driver_report_tlp(struct gp_exam *exam);

/* driver_rtd3.c: rules that keep a laptop's GPU from being powered off */
/* Whether a GPU without a monitor is on, and was never off since the machine was started a while
 * ago, although kernel and driver are set to turn it off in this mode, "Enabled (". Asking the
 * driver wakes it, so that IS_ON alone tells nothing where it was asked. */
enum gp_driver_rest { GP_DRIVER_SLEEPS, GP_DRIVER_IS_ON, GP_DRIVER_NEVER_SLEEPS };
enum gp_driver_rest gp_driver_rest_of(struct gp_exam *exam, const char *bus_id, const char *mode);
void gp_driver_check_rtd3(struct gp_exam *exam);

/* driver_awake.c: a desktop on the other GPU that keeps a laptop's GPU on */
void gp_driver_check_awake(struct gp_exam *exam);

#endif
