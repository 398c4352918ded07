/* Which name the compiler has for an AMD GPU, by its PCI device number. */
#ifndef GP_DOCTOR_READERS_GFXCHIP_H
#define GP_DOCTOR_READERS_GFXCHIP_H

#include "base/util.h"

/* "gfx1030" for 0x73bf; "": unknown. The device numbers are those of Linux' amdgpu_drv.c and of
 * pci.ids, the names those of LLVM's AMDGPUUsage. */
const char *gp_gfx_of_chip(unsigned device);

/* "6.0" for 0x744c: older kernels do not have a driver for it; "": unknown. */
const char *gp_gfx_kernel_of_chip(unsigned device);

/* Whether the machine has an AMD card, for graphics or computing: integrated GPUs mostly only show
 * pictures. */
struct gp_machine;
bool gp_gfx_has_card(const struct gp_machine *machine);

/* Whether a GPU with this name is a part of a processor, "gfx1036". */
bool gp_gfx_is_integrated(const char *name);

#endif
