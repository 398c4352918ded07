/* The checks of hardware, in several files; hardware.c has their table and their order. */
#ifndef GP_DOCTOR_CHECKS_HARDWARE_H
#define GP_DOCTOR_CHECKS_HARDWARE_H

#include "doctor/exam.h"

/* hardware_state.c: GPUs that the driver cannot use, as Linux's files and log show */
void gp_hardware_check_wakes(struct gp_exam *exam);
void gp_hardware_check_regions(struct gp_exam *exam);

/* Whether a GPU is in a low-power state. It then reads like one that is lost; reading its
 * configuration would wake it. */
bool gp_hardware_is_asleep(struct gp_exam *exam, const char *bus_id);

/* "/sys/bus/pci/devices/0000:65:00.0/config" */
const char *gp_hardware_path(struct gp_exam *exam, const char *bus_id, const char *name);

/* hardware_cpu.c: a CPU without AVX, which something needs, or which is a hypervisor's
 * generic one. */
bool gp_hardware_lacks_avx(struct gp_exam *exam);
void gp_hardware_check_cpu(struct gp_exam *exam);

/* hardware_speed.c */
void gp_hardware_check_speed(struct gp_exam *exam);

/* hardware_gone.c: reports why the bus has no NVIDIA GPU, or not that of an enclosure; false:
 * nothing says that it should have one. */
bool gp_hardware_report_gone(struct gp_exam *exam);

/* hardware_enclosure.c */
/* A Thunderbolt device, such as the enclosure of an external GPU, that nobody has authorized: what
 * is in it is not on the bus. With no driver for such a GPU its name must say what it is, and it is
 * a finding by itself. True if there is one. */
bool gp_hardware_fix_enclosure(struct gp_exam *exam, bool is_installed);

/* Reports an enclosure of which only the USB device is connected; false: there is none. */
bool gp_hardware_report_cable(struct gp_exam *exam);

/* hardware_off.c */
/* A card's sound or USB port, "0000:01:00.1", whose GPU, "0000:01:00.0", is not on the bus: the
 * kernel found both at boot. NULL: there is none. */
const char *gp_hardware_left_function(struct gp_exam *exam);

/* Whether something is installed, or has failed, that needs the GPU which a tool keeps off. */
bool gp_hardware_is_missed(struct gp_exam *exam);

/* Whether a service is started at boot, with the desktop or before it. */
bool gp_hardware_is_started(struct gp_exam *exam, const char *unit);

/* hardware_lanes.c: the lanes of a GPU's card, if its chip is known to have fewer than `others`. */
struct gp_pci_gpu;
long gp_hardware_lanes_of(const struct gp_pci_gpu *gpu, long others);

/* hardware_cable.c: whether the GPU is soldered, or of a laptop: its maker decides how many lanes
 * it is wired to. The code of a mobile chip ends with M: "GA106M", "AD104GLM". An external one is
 * plugged in. */
bool gp_hardware_is_wired(struct gp_exam *exam, const struct gp_pci_gpu *gpu);
/* For the finding that it is lost: what to try if it is at a cable or an adapter. */
void gp_hardware_advise_cable(struct gp_exam *exam, const char *bus_id);

/* hardware_rcu.c: a part of hardware.bus_lost */
void gp_hardware_check_rcu(struct gp_exam *exam);
/* Adds that RCU's delay is known to lose the GPU with this kernel, and what to do; false: it is not
 * so here. */
bool gp_hardware_fix_rcu(struct gp_exam *exam);

/* hardware_switched.c: adds why a laptop's tool that turns NVIDIA's GPU off and on has lost
 * it, and what to do; false: there is no such tool. */
bool gp_hardware_fix_switched(struct gp_exam *exam);

/* Reports that optimus-manager has taken the GPU off the bus; false: it is not set to do so. */
bool gp_hardware_report_optimus(struct gp_exam *exam);

#endif
