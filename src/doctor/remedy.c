#include "doctor/remedy.h"

#include <string.h>

const struct gp_remedy_row gp_remedies[GP_REMEDY__COUNT] = {
#define REMEDY(name, words, ...) [GP_REMEDY_##name] = {#name, words, {__VA_ARGS__}},
#include "doctor/remedy.def"
#undef REMEDY
};

#define REBUILD "sudo nixos-rebuild boot"
#define SWITCH "sudo nixos-rebuild switch"
#define NIX_LIBRARIES                                                                              \
    "after setting, in configuration.nix: hardware.graphics.enable = true; (before 24.11: "        \
    "hardware.opengl.enable)"
#define BLACKLIST                                                                                  \
    "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee "                        \
    "/etc/modprobe.d/blacklist-nouveau.conf"
#define LAYER                                                                                      \
    "layer the driver onto the system's image, after adding RPM Fusion; Bazzite, Bluefin and "     \
    "Aurora have images with it instead (rpm-ostree rebase)"

#define NVIDIA_REPOSITORY(distro)                                                                  \
    "https://developer.download.nvidia.com/compute/cuda/repos/" distro                             \
    "/$(uname -m | sed s/aarch64/sbsa/)/cuda-" distro ".repo"

#define OPEN_ON_SLES                                                                               \
    "sudo zypper addrepo " NVIDIA_REPOSITORY("sles15") " && sudo zypper install nvidia-open"
#define SLES_WORDS "install the driver with the open kernel modules, from NVIDIA's repository"
#define ALPINE                                                                                     \
    "NVIDIA's driver needs glibc, which Alpine does not have: use another distribution on this "   \
    "machine, or nouveau, without CUDA"

static const struct gp_remedy_other others[] = {
    {"nixos", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "after setting, in configuration.nix: services.xserver.videoDrivers = [ \"nvidia\" ]; "
     "hardware.nvidia.open = true;",
     REBUILD},
    {"nixos", GP_REMEDY_INSTALL_DRIVER_580,
     "after setting, in configuration.nix: hardware.nvidia.open = false; and, where the driver is "
     "newer than branch 580, hardware.nvidia.package = "
     "config.boot.kernelPackages.nvidiaPackages.legacy_580;",
     REBUILD},
    {"nixos", GP_REMEDY_INSTALL_DRIVER_470,
     "after setting, in configuration.nix: hardware.nvidia.package = "
     "config.boot.kernelPackages.nvidiaPackages.legacy_470; hardware.nvidia.open = false;",
     REBUILD},
    {"nixos", GP_REMEDY_INSTALL_DRIVER_LEGACY,
     "after setting, in configuration.nix: services.xserver.videoDrivers = [ \"nvidiaLegacy{}\" ]; "
     "(since NixOS 21.05 instead: hardware.nvidia.package = "
     "config.boot.kernelPackages.nvidiaPackages.legacy_{};)",
     REBUILD},
    {"nixos", GP_REMEDY_PROPRIETARY_MODULE,
     "after setting, in configuration.nix: hardware.nvidia.open = false;", REBUILD},
    {"nixos", GP_REMEDY_REMOVE_KERNEL_ARGUMENT,
     "after removing it from boot.kernelParams in configuration.nix", REBUILD},
    {"nixos", GP_REMEDY_NEWER_KERNEL,
     "after setting, in configuration.nix: boot.kernelPackages = pkgs.linuxPackages_latest; "
     "hardware.enableRedistributableFirmware = true;",
     REBUILD},
    {"nixos", GP_REMEDY_INSTALL_LIBRARIES_32,
     "after setting, in configuration.nix: hardware.graphics.enable32Bit = true; (before 24.11: "
     "hardware.opengl.driSupport32Bit)",
     SWITCH},
    {"nixos", GP_REMEDY_INSTALL_LIBRARIES, NIX_LIBRARIES, SWITCH},
    {"nixos", GP_REMEDY_INSTALL_GRAPHICS, NIX_LIBRARIES, SWITCH},
    {"nixos", GP_REMEDY_INSTALL_INTEL_COMPUTE,
     "after setting, in configuration.nix: hardware.graphics.extraPackages = with pkgs; [ "
     "intel-compute-runtime ];",
     SWITCH},
    {"nixos", GP_REMEDY_INSTALL_INTEL_VIDEO,
     "after setting, in configuration.nix: hardware.graphics.extraPackages = with pkgs; [ "
     "intel-media-driver ];",
     SWITCH},
    {"nixos", GP_REMEDY_UPDATE_CONTAINER_TOOLKIT, "update it with the system",
     "sudo nixos-rebuild switch --upgrade"},
    {"nixos", GP_REMEDY_INSTALL_DOCKER,
     "after setting, in configuration.nix: virtualisation.docker.enable = true;", SWITCH},
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
     SWITCH},
    {"nixos", GP_REMEDY_INSTALL_MODPROBE,
     "have the module loaded at each boot, after setting, in configuration.nix: "
     "boot.kernelModules = [ \"nvidia_uvm\" ];",
     SWITCH},
    {"nixos", GP_REMEDY_START_PERSISTENCED,
     "after setting, in configuration.nix: hardware.nvidia.nvidiaPersistenced = true;", SWITCH},
    {"void", GP_REMEDY_INSTALL_DRIVER_OPEN, "install the driver, from the repository nonfree",
     "sudo xbps-install -S void-repo-nonfree && sudo xbps-install -S linux-headers nvidia"},
    {"void", GP_REMEDY_INSTALL_DRIVER_470,
     "install the last driver for this GPU, from the repository nonfree",
     "sudo xbps-install -S void-repo-nonfree && sudo xbps-install -S linux-headers nvidia470"},
    {"void", GP_REMEDY_INSTALL_HEADERS,
     "install the kernel headers, which the module is built against",
     "sudo xbps-install -S linux-headers"},
    {"void", GP_REMEDY_BUILD_MODULE, "build the driver's module for the installed kernels",
     "sudo xbps-reconfigure -f nvidia"},
    {"void", GP_REMEDY_UPDATE_PACKAGES, "update kernel, module and libraries together",
     "sudo xbps-install -Su"},
    {"void", GP_REMEDY_REBUILD_INITRAMFS,
     "rebuild the initramfs, which has its own copy of these settings", "sudo dracut --force"},
    {"void", GP_REMEDY_BLACKLIST_NOUVEAU, "keep nouveau from being loaded", BLACKLIST},
    {"gentoo", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "install the driver with the open kernel modules (USE=kernel-open)",
     "echo 'x11-drivers/nvidia-drivers kernel-open' | sudo tee -a /etc/portage/package.use/nvidia "
     "&& sudo emerge x11-drivers/nvidia-drivers"},
    {"gentoo", GP_REMEDY_INSTALL_DRIVER_580,
     "install the last driver for this GPU, with the proprietary kernel modules",
     "echo '>=x11-drivers/nvidia-drivers-581' | sudo tee -a /etc/portage/package.mask/nvidia && "
     "sudo emerge x11-drivers/nvidia-drivers"},
    {"gentoo", GP_REMEDY_INSTALL_DRIVER_470,
     "install the last driver for this GPU, with the proprietary kernel modules",
     "echo '>=x11-drivers/nvidia-drivers-471' | sudo tee -a /etc/portage/package.mask/nvidia && "
     "sudo emerge x11-drivers/nvidia-drivers"},
    {"gentoo", GP_REMEDY_INSTALL_HEADERS,
     "/usr/src/linux must be the sources of this kernel: choose them with eselect kernel", NULL},
    {"gentoo", GP_REMEDY_BUILD_MODULE, "build all modules again for the kernel in /usr/src/linux",
     "sudo emerge @module-rebuild"},
    {"gentoo", GP_REMEDY_UPDATE_PACKAGES, "update the driver",
     "sudo emerge --update x11-drivers/nvidia-drivers"},
    {"gentoo", GP_REMEDY_BLACKLIST_NOUVEAU, "keep nouveau from being loaded", BLACKLIST},
    {"ostree", GP_REMEDY_INSTALL_DRIVER_OPEN, LAYER,
     "sudo rpm-ostree install akmod-nvidia xorg-x11-drv-nvidia-cuda"},
    {"ostree", GP_REMEDY_REMOVE_KERNEL_ARGUMENT,
     "remove the kernel arguments that the line shows, in the editor",
     "sudo rpm-ostree kargs --editor"},
    {"ostree", GP_REMEDY_INSTALL_DRIVER_580, LAYER,
     "sudo rpm-ostree install akmod-nvidia-580xx xorg-x11-drv-nvidia-580xx-cuda"},
    {"ostree", GP_REMEDY_INSTALL_DRIVER_470, LAYER,
     "sudo rpm-ostree install akmod-nvidia-470xx xorg-x11-drv-nvidia-470xx-cuda"},
    {"ostree", GP_REMEDY_BUILD_MODULE,
     "the module is built with the system's image: compose the next one",
     "sudo rpm-ostree upgrade"},
    {"ostree", GP_REMEDY_UPDATE_PACKAGES, "update kernel, module and libraries together",
     "sudo rpm-ostree upgrade"},
    {"ostree", GP_REMEDY_BLACKLIST_NOUVEAU, "keep nouveau from being loaded",
     "sudo rpm-ostree kargs --append=rd.driver.blacklist=nouveau "
     "--append=modprobe.blacklist=nouveau"},
    {"ostree", GP_REMEDY_INSTALL_CONTAINER_TOOLKIT,
     "install it, after adding NVIDIA's repository for libnvidia-container",
     "sudo rpm-ostree install nvidia-container-toolkit"},
    {"amzn", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "install the driver with the open kernel modules, from NVIDIA's repository for Amazon Linux "
     "2023; Amazon Linux 2 has none: NVIDIA's .run installer with --dkms",
     "sudo dnf install kernel-devel-$(uname -r) kernel-modules-extra-$(uname -r) && sudo dnf "
     "config-manager --add-repo " NVIDIA_REPOSITORY(
         "amzn2023") " && sudo dnf module enable "
                     "nvidia-driver:open-dkms && sudo dnf install nvidia-open"},
    {"amzn", GP_REMEDY_INSTALL_HEADERS,
     "install the kernel headers and a compiler, which the module is built with",
     "sudo yum install kernel-devel-$(uname -r) gcc make"},
    {"sles", GP_REMEDY_INSTALL_DRIVER_OPEN, SLES_WORDS, OPEN_ON_SLES},
    {"sled", GP_REMEDY_INSTALL_DRIVER_OPEN, SLES_WORDS, OPEN_ON_SLES},
    {"alpine", GP_REMEDY_INSTALL_DRIVER_OPEN, ALPINE, NULL},
    {"alpine", GP_REMEDY_INSTALL_DRIVER_580, ALPINE, NULL},
    {"alpine", GP_REMEDY_INSTALL_DRIVER_470, ALPINE, NULL},
    {"talos", GP_REMEDY_NEWER_KERNEL,
     "upgrade to a newer release of Talos, which brings its kernel: talosctl upgrade --image …",
     NULL},
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
