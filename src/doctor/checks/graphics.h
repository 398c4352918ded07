/* What OpenGL, Vulkan, OpenCL and VA-API need, for the GPUs of all vendors. */
#ifndef GP_DOCTOR_CHECKS_GRAPHICS_H
#define GP_DOCTOR_CHECKS_GRAPHICS_H

#include <stdbool.h>

struct gp_exam;

/* Variables that name drivers which do not exist, or have the CPU draw. */
void gp_graphics_check_variables(struct gp_exam *exam);

/* A program that decodes or encodes video with the system's VA-API; NULL: none is seen. */
const char *gp_graphics_video_user(struct gp_exam *exam);

/* graphics_kobold.c: notes that KoboldCpp has nothing to ask for the GPUs. */
void gp_graphics_check_kobold(struct gp_exam *exam);

/* graphics_nvdec.c: the file of a driver of VA-API, "radeonsi"; NULL: it is not installed. */
const char *gp_graphics_video_driver(struct gp_exam *exam, const char *name);

/* Likewise: the file of the first installed one for AMD's or Intel's GPUs, by their PCI vendor; 0:
 * for any of them. */
const char *gp_graphics_video_driver_of(struct gp_exam *exam, unsigned vendor);

/* Likewise: reports if VA-API is led to an NVIDIA GPU that cannot decode, or to a driver for it
 * that is not installed. */
void gp_graphics_check_video_of_nvidia(struct gp_exam *exam);

/* graphics_lists.c: reports lists of drivers' files that do not exist, or that leave out the
 * programs of 32 or 64 bits. */
void gp_graphics_check_lists(struct gp_exam *exam);

/* graphics_loader.c: reports a file of a driver in the folders of Vulkan's loader whose name begins
 * like one of these, up to NULL, and that the loader skips, because a package or a user has
 * renamed it; false: there is none. */
bool gp_graphics_report_renamed(struct gp_exam *exam, const char *const *starts, const char *words);

/* Likewise: reports if 32-bit Wine has no loader of Vulkan, or Steam on NixOS no 32-bit drivers. */
void gp_graphics_check_loader(struct gp_exam *exam);

/* Likewise: shows the program that needs drivers of 32 bits, by gp_vulkan_narrow_user(). */
void gp_graphics_show_narrow_user(struct gp_exam *exam, const char *program);

/* graphics_age.c: reports a Mesa that is older than a GPU. */
void gp_graphics_check_age(struct gp_exam *exam);

/* graphics_nix.c: reports a compositor on NixOS whose Mesa is not that of the system's drivers. */
void gp_graphics_check_nix(struct gp_exam *exam);

/* graphics_opencl.c: whether Mesa's OpenCL is installed next to that of a GPU's maker; reports a
 * program that crashed in it. */
bool gp_graphics_has_two_opencl(struct gp_exam *exam);
void gp_graphics_check_opencl(struct gp_exam *exam);

/* graphics_screens.c: whether the card of a connector, "card0-HDMI-A-1", is a GPU. */
bool gp_graphics_is_gpu(struct gp_exam *exam, const char *card);

/* Likewise: the variable that lists the cards for a compositor of Wayland, "kwin_wayland", or ""
 * for GNOME's, which has none; NULL: the process is no known one. */
const char *gp_graphics_compositor(struct gp_exam *exam, const char *process);

/* Likewise: reports a monitor of a GPU that the compositor of Wayland does not use. */
void gp_graphics_check_screens_left(struct gp_exam *exam);

/* graphics_loader.c: gp_opencl_knows(), which also reports if that cannot be read. */
bool gp_graphics_knows_opencl(struct gp_exam *exam, const char *word);

#endif
