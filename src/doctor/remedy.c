#include "doctor/remedy.h"

#include <string.h>

const struct gp_remedy_row gp_remedies[GP_REMEDY__COUNT] = {
#define REMEDY(name, words, ...) [GP_REMEDY_##name] = {#name, words, {__VA_ARGS__}},
#include "doctor/remedy.def"
#undef REMEDY
};

#define REBUILD "sudo nixos-rebuild boot"

static const struct gp_remedy_other others[] = {
    {"nixos", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "after setting, in configuration.nix: services.xserver.videoDrivers = [ \"nvidia\" ]; "
     "hardware.nvidia.open = true;",
     REBUILD},
    {"nixos", GP_REMEDY_INSTALL_DRIVER_580,
     "after setting, in configuration.nix: hardware.nvidia.package = "
     "config.boot.kernelPackages.nvidiaPackages.legacy_580; hardware.nvidia.open = false;",
     REBUILD},
    {"nixos", GP_REMEDY_INSTALL_DRIVER_470,
     "after setting, in configuration.nix: hardware.nvidia.package = "
     "config.boot.kernelPackages.nvidiaPackages.legacy_470; hardware.nvidia.open = false;",
     REBUILD},
    {"nixos", GP_REMEDY_BLACKLIST_NOUVEAU,
     "in configuration.nix: boot.blacklistedKernelModules = [ \"nouveau\" ]; and "
     "services.xserver.videoDrivers = [ \"nvidia\" ];",
     NULL},
    {"nixos", GP_REMEDY_REBUILD_INITRAMFS, "build the next boot's system", REBUILD},
    {"nixos", GP_REMEDY_BUILD_MODULE, "build the driver's module for the configured kernel",
     REBUILD},
    {"nixos", GP_REMEDY_UPDATE_PACKAGES, "update kernel, module and libraries together",
     "sudo nixos-rebuild boot --upgrade"},
    {"nixos", GP_REMEDY_INSTALL_CONTAINER_TOOLKIT,
     "after setting, in configuration.nix: hardware.nvidia-container-toolkit.enable = true;",
     "sudo nixos-rebuild switch"},
    {"nixos", GP_REMEDY_START_PERSISTENCED,
     "after setting, in configuration.nix: hardware.nvidia.nvidiaPersistenced = true;",
     "sudo nixos-rebuild switch"},
    {"talos", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "build an image with the system extension nvidia-open-gpu-kernel-modules, and upgrade to it",
     NULL},
    {"talos", GP_REMEDY_INSTALL_DRIVER_580,
     "build an image with the system extension nonfree-kmod-nvidia of branch 580 or older, and "
     "upgrade to it",
     NULL},
    {"talos", GP_REMEDY_INSTALL_DRIVER_470,
     "the GPU needs branch 470, which Talos does not have as a system extension: build one of its "
     "own, or use another distribution or GPU",
     NULL},
};

const struct gp_remedy_other *gp_remedy_other(const char *distro_id, enum gp_remedy remedy)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (others[i].remedy == remedy && strcmp(others[i].distro_id, distro_id) == 0)
            return &others[i];
    return NULL;
}
