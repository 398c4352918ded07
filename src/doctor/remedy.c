#include "doctor/remedy.h"

#include "doctor/files.h"

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

#define OPEN_ON_SLES                                                                               \
    "sudo zypper addrepo " GP_NVIDIA_REPOSITORY("sles15") " && sudo zypper install nvidia-open"
#define SLES_WORDS "install the driver with the open kernel modules, from NVIDIA's repository"
#define ALPINE                                                                                     \
    "NVIDIA's driver needs glibc, which Alpine does not have: use another distribution on this "   \
    "machine, or nouveau, without CUDA"

/* The newest release that is not masked, with the proprietary modules. */
#define GENTOO_WITHOUT(versions)                                                                   \
    "echo '" versions "' | sudo tee -a /etc/portage/package.mask/nvidia && "                       \
    "echo 'x11-drivers/nvidia-drivers -kernel-open' | "                                            \
    "sudo tee -a /etc/portage/package.use/nvidia && sudo emerge x11-drivers/nvidia-drivers"

#define FROM_GRUB "first remove it from /etc/default/grub, if it is there"
#define GRUB "sudo grub-mkconfig -o /boot/grub/grub.cfg"
#define GPU_FIRMWARE "the firmware of this GPU"
#define BUILD_TOOLS "install the kernel headers and a compiler, which the module is built with"
#define AMAZON_TOOLS "sudo yum install kernel-devel-$(uname -r) gcc make"
/* Amazon Linux 2023 has the parts of its newer kernels, but not their headers, as kernel6.12-…. */
#define KERNEL_2023 "kernel$(uname -r | sed -nE 's/^(6\\.1[2-9])\\..*/\\1/p')"
#define MESA "install Mesa, which works in addition to NVIDIA's driver"
#define HOLD "keep updates from replacing the driver while it is in use; update when it suits you"
#define OF_NVIDIA "'nvidia-driver*' 'kmod-nvidia*'"
#define FOR_UBLUE                                                                                  \
    "change to this system's image with the driver: the name of the image in image-ref of "        \
    "/usr/share/ublue-os/image-info.json, with "
#define EKS                                                                                        \
    "give this node group an AMI with the driver (AL2023_x86_64_NVIDIA; Amazon Linux 2: "          \
    "AL2_x86_64_GPU); the standard one has none"
#define TRUENAS                                                                                    \
    "in the web interface: Apps, Configuration, Settings: Install NVIDIA Drivers; apt is turned "  \
    "off on TrueNAS, and what it installs is lost with an update"
#define TRUENAS_OLD                                                                                \
    TRUENAS "; from 25.10 on its driver has only the open modules, for GPUs from Turing on: for "  \
            "an older GPU return to 25.04 (System, Boot: activate its boot environment)"
#define UNRAID                                                                                     \
    "in the web interface: Apps: install the plugin Nvidia Driver; if it is installed, let it "    \
    "download the driver for this release of Unraid on its page, then restart docker"
#define UNRAID_OLD                                                                                 \
    "in the web interface: Apps: install the plugin Nvidia Driver; on its page choose a driver "   \
    "of "                                                                                          \
    "branch 580 or older, as newer ones do not support this GPU, and restart docker"
#define BOTTLEROCKET                                                                               \
    "start the node from the variant with the driver, whose name ends in -nvidia "                 \
    "(aws-k8s-1.31-nvidia); nothing can be installed on the others"
#define BALENA                                                                                     \
    "balenaOS has no driver of NVIDIA: build its module against this release's headers in a "      \
    "container that loads it, or use another system"
#define STEAMOS                                                                                    \
    "SteamOS supports only AMD's GPUs, and its root is read-only: use another distribution for "   \
    "this GPU, such as Bazzite's image for NVIDIA"
#define ENDLESS                                                                                    \
    "the driver is a part of Endless OS' image, and packages cannot be installed: update it, or "  \
    "use another distribution"

static const struct gp_remedy_other others[] = {
    {"nixos", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "after setting, in configuration.nix: services.xserver.videoDrivers = [ \"nvidia\" ]; "
     "hardware.nvidia.open = true;",
     REBUILD},
    {"nixos", GP_REMEDY_INSTALL_DRIVER_580,
     "after setting, in configuration.nix: services.xserver.videoDrivers = [ \"nvidia\" ]; "
     "hardware.nvidia.open = false; and, where the driver is newer than branch 580, "
     "hardware.nvidia.package = config.boot.kernelPackages.nvidiaPackages.legacy_580;",
     REBUILD},
    {"nixos", GP_REMEDY_INSTALL_DRIVER_470,
     "after setting, in configuration.nix: services.xserver.videoDrivers = [ \"nvidia\" ]; "
     "hardware.nvidia.package = config.boot.kernelPackages.nvidiaPackages.legacy_470; "
     "hardware.nvidia.open = false;",
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
    {"nixos", GP_REMEDY_INSTALL_MESA_VULKAN_32,
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
    {"manjaro", GP_REMEDY_REBUILD_INITRAMFS,
     "rebuild the initramfs, which has its own copy of these settings", "sudo mkinitcpio -P"},
    {"manjaro", GP_REMEDY_REMOVE_KERNEL_ARGUMENT,
     "first remove it from /etc/default/grub, if it is there", "sudo update-grub"},
    {"manjaro", GP_REMEDY_UPDATE_PACKAGES, "update kernel, module and libraries together",
     "sudo pacman -Syu"},
    {"manjaro", GP_REMEDY_INSTALL_LIBRARIES_32,
     "install the driver's 32-bit libraries, of the same version", "sudo pacman -Syu lib32-{}"},
    {"manjaro", GP_REMEDY_INSTALL_VULKAN_LOADER_32, "install the 32-bit loader",
     "sudo pacman -Syu lib32-vulkan-icd-loader"},
    {"manjaro", GP_REMEDY_INSTALL_MESA_VULKAN, "install Mesa's Vulkan driver for this GPU",
     "sudo pacman -Syu {}"},
    {"manjaro", GP_REMEDY_INSTALL_MESA_VULKAN_32, "install the 32-bit drivers",
     "sudo pacman -Syu lib32-{} lib32-mesa"},
    {"manjaro", GP_REMEDY_INSTALL_MESA, MESA, "sudo pacman -Syu mesa"},
    {"manjaro", GP_REMEDY_INSTALL_INTEL_VIDEO, "install the driver of VA-API for newer Intel GPUs",
     "sudo pacman -Syu intel-media-driver"},
    {"manjaro", GP_REMEDY_INSTALL_INTEL_VIDEO_OLD,
     "install the driver of VA-API for older Intel GPUs", "sudo pacman -Syu libva-intel-driver"},
    {"manjaro", GP_REMEDY_INSTALL_NVIDIA_VAAPI, "install the driver for VA-API on NVIDIA's GPUs",
     "sudo pacman -Syu libva-nvidia-driver"},
    {"manjaro", GP_REMEDY_BLACKLIST_NOUVEAU, "keep nouveau from being loaded", BLACKLIST},
    {"void", GP_REMEDY_INSTALL_DRIVER_OPEN, "install the driver, from the repository nonfree",
     "sudo xbps-install -S void-repo-nonfree && sudo xbps-install -S linux-headers nvidia"},
    {"void", GP_REMEDY_INSTALL_DRIVER_580,
     "install the last driver for this GPU, from the repository nonfree",
     "sudo xbps-install -S void-repo-nonfree && sudo xbps-install -S linux-headers nvidia580"},
    {"void", GP_REMEDY_INSTALL_DRIVER_LEGACY, "install it from the repository nonfree",
     "sudo xbps-install -S void-repo-nonfree && sudo xbps-install -S linux-headers nvidia{}"},
    {"void", GP_REMEDY_INSTALL_DRIVER_470,
     "install the last driver for this GPU, from the repository nonfree",
     "sudo xbps-install -S void-repo-nonfree && sudo xbps-install -S linux-headers nvidia470"},
    {"void", GP_REMEDY_INSTALL_HEADERS,
     "install the kernel headers, which the module is built against",
     "sudo xbps-install -S linux-headers"},
    {"void", GP_REMEDY_BUILD_MODULE,
     "build the modules of this kernel, by the hook of its package, linux6.12 for 6.12",
     "sudo xbps-reconfigure -f linux$(uname -r | cut -d. -f1,2)"},
    {"void", GP_REMEDY_UPDATE_PACKAGES, "update kernel, module and libraries together",
     "sudo xbps-install -Su"},
    {"void", GP_REMEDY_INSTALL_GRAPHICS, "update the packages of the driver, with the system",
     "sudo xbps-install -Su"},
    {"void", GP_REMEDY_INSTALL_MESA, MESA, "sudo xbps-install -S mesa"},
    {"void", GP_REMEDY_INSTALL_MESA_VULKAN_32, "install the 32-bit drivers, from multilib",
     "sudo xbps-install -S void-repo-multilib && sudo xbps-install -S mesa-{}-32bit "
     "mesa-dri-32bit"},
    {"void", GP_REMEDY_INSTALL_VULKAN_LOADER_32, "install the 32-bit loader, from multilib",
     "sudo xbps-install -S void-repo-multilib && sudo xbps-install -S vulkan-loader-32bit"},
    {"void", GP_REMEDY_REBUILD_INITRAMFS,
     "rebuild the initramfs, which has its own copy of these settings", "sudo dracut --force"},
    {"void", GP_REMEDY_BLACKLIST_NOUVEAU, "keep nouveau from being loaded", BLACKLIST},
    {"gentoo", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "install the driver with the open kernel modules (USE=kernel-open)",
     "echo 'x11-drivers/nvidia-drivers kernel-open' | sudo tee -a /etc/portage/package.use/nvidia "
     "&& sudo emerge x11-drivers/nvidia-drivers"},
    {"gentoo", GP_REMEDY_INSTALL_DRIVER_580,
     "install the last driver for this GPU, with the proprietary kernel modules",
     GENTOO_WITHOUT(">=x11-drivers/nvidia-drivers-581")},
    {"gentoo", GP_REMEDY_INSTALL_DRIVER_470,
     "install the last driver for this GPU, with the proprietary kernel modules",
     GENTOO_WITHOUT(">=x11-drivers/nvidia-drivers-471")},
    {"gentoo", GP_REMEDY_INSTALL_DRIVER_LEGACY,
     "install it, if Portage still has this branch; otherwise NVIDIA's .run installer has it",
     GENTOO_WITHOUT(">x11-drivers/nvidia-drivers-{}.999")},
    {"gentoo", GP_REMEDY_PROPRIETARY_MODULE,
     "use the proprietary kernel modules instead of the open ones (USE=-kernel-open)",
     "echo 'x11-drivers/nvidia-drivers -kernel-open' | sudo tee -a /etc/portage/package.use/nvidia "
     "&& sudo emerge x11-drivers/nvidia-drivers"},
    {"gentoo", GP_REMEDY_INSTALL_HEADERS,
     "/usr/src/linux must be the sources of this kernel: choose them with eselect kernel", NULL},
    {"gentoo", GP_REMEDY_BUILD_MODULE, "build all modules again for the kernel in /usr/src/linux",
     "sudo emerge @module-rebuild"},
    {"gentoo", GP_REMEDY_REBUILD_INITRAMFS,
     "rebuild the initramfs, if there is one (genkernel's: sudo genkernel initramfs)",
     "sudo dracut --force"},
    {"gentoo", GP_REMEDY_REMOVE_KERNEL_ARGUMENT, FROM_GRUB, GRUB},
    {"void", GP_REMEDY_REMOVE_KERNEL_ARGUMENT, FROM_GRUB, GRUB},
    {"gentoo", GP_REMEDY_UPDATE_PACKAGES, "update the driver",
     "sudo emerge --update x11-drivers/nvidia-drivers"},
    {"gentoo", GP_REMEDY_INSTALL_MESA, MESA, "sudo emerge --noreplace media-libs/mesa"},
    {"gentoo", GP_REMEDY_INSTALL_VULKAN_LOADER_32, "build the loader for 32 bits, too",
     "echo 'media-libs/vulkan-loader abi_x86_32' | sudo tee -a /etc/portage/package.use/vulkan && "
     "sudo emerge --newuse --autounmask-continue media-libs/vulkan-loader"},
    {"gentoo", GP_REMEDY_INSTALL_MESA_VULKAN_32, "build Mesa for 32 bits, too",
     "echo 'media-libs/mesa vulkan abi_x86_32' | sudo tee -a /etc/portage/package.use/mesa && sudo "
     "emerge --newuse --autounmask-continue media-libs/mesa"},
    {"gentoo", GP_REMEDY_INSTALL_GRAPHICS,
     "build the driver with its parts for graphics (USE=\"X wayland\")",
     "echo 'x11-drivers/nvidia-drivers X wayland' | sudo tee -a /etc/portage/package.use/nvidia && "
     "sudo emerge x11-drivers/nvidia-drivers"},
    {"gentoo", GP_REMEDY_BLACKLIST_NOUVEAU, "keep nouveau from being loaded", BLACKLIST},
    {"ublue", GP_REMEDY_INSTALL_DRIVER_OPEN,
     FOR_UBLUE "-nvidia-open added to it (Bluefin and Aurora, too), by rpm-ostree rebase; then "
               "reboot",
     NULL},
    {"ublue", GP_REMEDY_INSTALL_DRIVER_580,
     FOR_UBLUE "-nvidia instead of -nvidia-open, by rpm-ostree rebase; then reboot: GPUs before "
               "Turing need the proprietary modules",
     NULL},
    {"ublue", GP_REMEDY_INSTALL_LIBRARIES,
     "the libraries are a part of the images with the driver: update this one",
     "sudo rpm-ostree upgrade"},
    {"ublue", GP_REMEDY_ENROLL_KEY,
     "enroll Universal Blue's key; the password that the next boot asks for is universalblue",
     "ujust enroll-secure-boot-key"},
    {"ostree", GP_REMEDY_ENROLL_KEY,
     "akmods signs layered modules only with a key that is layered, too, as the packages of "
     "silverblue-akmods-keys do it; then enroll that key",
     "sudo mokutil --import /etc/pki/akmods/certs/public_key.der"},
    {"transactional", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "install the driver into the next snapshot (Leap Micro, SL Micro: NVIDIA's repository "
     "instead of the first package)",
     "sudo transactional-update --continue pkg install openSUSE-repos-MicroOS-NVIDIA && sudo "
     "transactional-update --continue pkg install nvidia-open-driver-G06-signed-kmp-default "
     "nvidia-compute-utils-G06"},
    {"transactional", GP_REMEDY_INSTALL_DRIVER_580, "install the driver into the next snapshot",
     "sudo transactional-update --continue pkg install openSUSE-repos-MicroOS-NVIDIA && sudo "
     "transactional-update --continue pkg install nvidia-driver-G06-kmp-default "
     "nvidia-compute-utils-G06"},
    {"transactional", GP_REMEDY_INSTALL_HEADERS,
     "install the kernel headers into the next snapshot",
     "sudo transactional-update pkg install kernel-default-devel"},
    {"transactional", GP_REMEDY_BUILD_MODULE,
     "install the module that fits the newest kernel into the next snapshot",
     "sudo transactional-update --continue dup && sudo reboot"},
    {"transactional", GP_REMEDY_UPDATE_PACKAGES, "update kernel, module and libraries together",
     "sudo transactional-update --continue dup && sudo reboot"},
    {"transactional", GP_REMEDY_INSTALL_LIBRARIES,
     "install the libraries and programs that match the module into the next snapshot",
     "sudo transactional-update pkg install nvidia-compute-utils-G06 && sudo reboot"},
    {"transactional", GP_REMEDY_INSTALL_CONTAINER_TOOLKIT,
     "install it into the next snapshot, after adding NVIDIA's repository for libnvidia-container",
     "sudo transactional-update pkg install nvidia-container-toolkit && sudo reboot"},
    {"transactional", GP_REMEDY_BLACKLIST_NOUVEAU, "keep nouveau from being loaded", BLACKLIST},
    {"transactional", GP_REMEDY_REBUILD_INITRAMFS,
     "rebuild the initramfs, which has its own copy of these settings, in the next snapshot",
     "sudo transactional-update initrd"},
    {"transactional", GP_REMEDY_ENROLL_KEY,
     "enroll the key of the modules; the next boot asks for the password",
     "sudo mokutil --import /usr/share/nvidia-pubkeys/MOK-nvidia-*.der --root-pw"},
    {"talos", GP_REMEDY_LOAD_MODULE,
     "Talos loads the modules that its machine configuration names: patch it with machine.kernel."
     "modules nvidia, nvidia_uvm, nvidia_drm and nvidia_modeset (talosctl patch mc)",
     NULL},
    {"talos", GP_REMEDY_INSTALL_LIBRARIES,
     "the libraries are in the system extension nvidia-container-toolkit: build an image with it, "
     "in the version of the extension with the module, and upgrade to it",
     NULL},
    {"talos", GP_REMEDY_INSTALL_CONTAINER_TOOLKIT,
     "build an image with the system extension nvidia-container-toolkit, and upgrade to it", NULL},
    {"flatcar", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "have the next boot load Flatcar's extension with the driver (releases before it had "
     "extensions: systemctl status nvidia.service shows why its build failed)",
     "echo nvidia-drivers-570-open | sudo tee -a /etc/flatcar/enabled-sysext.conf"},
    {"flatcar", GP_REMEDY_INSTALL_DRIVER_580,
     "have the next boot load Flatcar's extension with the driver (releases before it had "
     "extensions: systemctl status nvidia.service shows why its build failed)",
     "echo nvidia-drivers-570 | sudo tee -a /etc/flatcar/enabled-sysext.conf"},
    {"flatcar", GP_REMEDY_INSTALL_CONTAINER_TOOLKIT,
     "Flatcar has no packages: put the extension nvidia-runtime of extensions.flatcar.org into "
     "/etc/extensions, and reboot",
     NULL},
    {"bottlerocket", GP_REMEDY_INSTALL_DRIVER_OPEN, BOTTLEROCKET, NULL},
    {"bottlerocket", GP_REMEDY_INSTALL_DRIVER_580, BOTTLEROCKET, NULL},
    {"eks", GP_REMEDY_INSTALL_DRIVER_OPEN, EKS, NULL},
    {"eks", GP_REMEDY_INSTALL_DRIVER_580, EKS, NULL},
    {"amzn2", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "before NVIDIA's .run installer with --dkms: there are no packages for Amazon Linux 2",
     "sudo yum install kernel-devel-$(uname -r) gcc make dkms"},
    {"amzn2", GP_REMEDY_INSTALL_DRIVER_580,
     "before NVIDIA's .run installer of branch 580 or older with --dkms: there are no packages for "
     "Amazon Linux 2",
     "sudo yum install kernel-devel-$(uname -r) gcc make dkms"},
    {"amzn2", GP_REMEDY_INSTALL_DRIVER_470,
     "before NVIDIA's .run installer of branch 470 with --dkms: there are no packages for Amazon "
     "Linux 2",
     "sudo yum install kernel-devel-$(uname -r) gcc make dkms"},
    {"amzn2", GP_REMEDY_INSTALL_HEADERS, BUILD_TOOLS, AMAZON_TOOLS},
    {"amzn2", GP_REMEDY_HOLD_PACKAGES, HOLD,
     "sudo yum install yum-plugin-versionlock && sudo yum versionlock add " OF_NVIDIA},
    {"amzn", GP_REMEDY_HOLD_PACKAGES, HOLD, "sudo dnf versionlock add " OF_NVIDIA},
    {"eks", GP_REMEDY_INSTALL_HEADERS, BUILD_TOOLS, AMAZON_TOOLS},
    {"truenas", GP_REMEDY_INSTALL_DRIVER_OPEN, TRUENAS, NULL},
    {"truenas", GP_REMEDY_INSTALL_DRIVER_580, TRUENAS_OLD, NULL},
    {"truenas", GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, TRUENAS, NULL},
    {"truenas", GP_REMEDY_START_PERSISTENCED,
     "at each boot: in the web interface: System, Advanced Settings, Init/Shutdown Scripts: add "
     "the command nvidia-smi, to run Post Init",
     NULL},
    {"truenas", GP_REMEDY_NEWER_KERNEL,
     "update TrueNAS in its web interface (System, Update), then reboot: the kernel comes with it",
     NULL},
    {"unraid", GP_REMEDY_INSTALL_DRIVER_OPEN, UNRAID, NULL},
    {"unraid", GP_REMEDY_INSTALL_DRIVER_580, UNRAID_OLD, NULL},
    {"unraid", GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, UNRAID, NULL},
    {"balena-os", GP_REMEDY_INSTALL_DRIVER_OPEN, BALENA, NULL},
    {"balena-os", GP_REMEDY_INSTALL_DRIVER_580, BALENA, NULL},
    {"steamos", GP_REMEDY_INSTALL_DRIVER_OPEN, STEAMOS, NULL},
    {"steamos", GP_REMEDY_INSTALL_DRIVER_580, STEAMOS, NULL},
    {"endless", GP_REMEDY_INSTALL_DRIVER_OPEN, ENDLESS, NULL},
    {"endless", GP_REMEDY_INSTALL_DRIVER_580, ENDLESS, NULL},
    {"solus", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "install the driver for the kernel current (for the kernel lts: nvidia-open)",
     "sudo eopkg upgrade && sudo eopkg install nvidia-open-current"},
    {"solus", GP_REMEDY_INSTALL_DRIVER_580,
     "install the packages nvidia-580, which Solus has for GPUs that newer drivers do not support",
     NULL},
    {"solus", GP_REMEDY_BUILD_MODULE,
     "the module comes with a package for each kind of kernel: nvidia-open-current for current, "
     "nvidia-open for lts",
     "sudo eopkg upgrade"},
    {"solus", GP_REMEDY_INSTALL_HEADERS,
     "install the headers of the kernel current (of lts: linux-lts-headers)",
     "sudo eopkg install linux-current-headers"},
    {"solus", GP_REMEDY_REBUILD_INITRAMFS, "write the boot files again",
     "sudo clr-boot-manager update"},
    {"mageia", GP_REMEDY_INSTALL_DRIVER_OPEN, "install the driver, from the media Nonfree",
     "sudo urpmi dkms-nvidia-current x11-driver-video-nvidia-current"},
    {"mageia", GP_REMEDY_INSTALL_DRIVER_470,
     "install the last driver for this GPU, from the media Nonfree",
     "sudo urpmi dkms-nvidia470 x11-driver-video-nvidia470"},
    {"slackware", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "install nvidia-driver and nvidia-kernel of SlackBuilds.org, or use NVIDIA's .run installer; "
     "before: install xf86-video-nouveau-blacklist from extra, and reboot",
     NULL},
    {"slackware", GP_REMEDY_INSTALL_DRIVER_580,
     "install nvidia-driver and nvidia-kernel of SlackBuilds.org, of branch 580 or older, or use "
     "NVIDIA's .run installer; before: install xf86-video-nouveau-blacklist from extra, and reboot",
     NULL},
    {"slackware", GP_REMEDY_BUILD_MODULE,
     "build nvidia-kernel of SlackBuilds.org again for this kernel", NULL},
    {"guix", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "with the channel nonguix: nvidia-service-type in the services of the system's configuration, "
     "and modprobe.blacklist=nouveau in its kernel-arguments",
     "sudo guix system reconfigure /etc/config.scm"},
    {"clear-linux-os", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "use NVIDIA's .run installer with --dkms, after installing the tools for it; Clear Linux has "
     "no package, and ended in 2025",
     "sudo swupd bundle-add kernel-native-dkms"},
    {"azurelinux", GP_REMEDY_INSTALL_DRIVER_OPEN,
     "on AKS: a node pool that was created without driver (--gpu-driver none) gets it from the GPU "
     "Operator, or must be created again; elsewhere: from Microsoft's repository nvidia for Azure "
     "Linux",
     NULL},
    {"ostree", GP_REMEDY_INSTALL_DRIVER_OPEN, LAYER,
     "sudo rpm-ostree install akmod-nvidia xorg-x11-drv-nvidia-cuda"},
    {"ostree", GP_REMEDY_INSTALL_LIBRARIES, "layer the libraries and programs, too",
     "sudo rpm-ostree install xorg-x11-drv-nvidia-cuda"},
    {"ostree", GP_REMEDY_REBUILD_INITRAMFS,
     "nothing else: the image's initramfs has no copy of what is in /etc (after rpm-ostree "
     "initramfs --enable it has: sudo rpm-ostree upgrade composes it again)",
     NULL},
    {"ostree", GP_REMEDY_INSTALL_EGL_WAYLAND,
     "layer the driver's EGL platform for Wayland, then reboot",
     "sudo rpm-ostree install egl-wayland"},
    {"ostree", GP_REMEDY_INSTALL_AMD_OPENCL, LAYER, "sudo rpm-ostree install rocm-opencl"},
    {"nixos", GP_REMEDY_INSTALL_AMD_OPENCL,
     "after setting, in configuration.nix: hardware.amdgpu.opencl.enable = true;", REBUILD},
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
     "sudo dnf install kernel-devel-$(uname -r) " KERNEL_2023
     "-modules-extra-$(uname -r) && sudo dnf "
     "config-manager --add-repo " GP_NVIDIA_REPOSITORY(
         "amzn2023") " && sudo dnf module enable "
                     "nvidia-driver:open-dkms && sudo dnf install nvidia-open"},
    {"amzn", GP_REMEDY_INSTALL_DRIVER_580,
     "install the last driver for this GPU, from NVIDIA's repository for Amazon Linux 2023",
     "sudo dnf install kernel-devel-$(uname -r) " KERNEL_2023
     "-modules-extra-$(uname -r) && sudo dnf "
     "config-manager --add-repo " GP_NVIDIA_REPOSITORY(
         "amzn2023") " && sudo dnf module enable "
                     "nvidia-driver:580-dkms && sudo dnf install cuda-drivers"},
    {"amzn", GP_REMEDY_INSTALL_HEADERS, BUILD_TOOLS, AMAZON_TOOLS},
    {"sles", GP_REMEDY_INSTALL_DRIVER_OPEN, SLES_WORDS, OPEN_ON_SLES},
    {"sled", GP_REMEDY_INSTALL_DRIVER_OPEN, SLES_WORDS, OPEN_ON_SLES},
    {"alpine", GP_REMEDY_INSTALL_GPU_FIRMWARE, GPU_FIRMWARE, "sudo apk add {}"},
    {"void", GP_REMEDY_INSTALL_GPU_FIRMWARE, GPU_FIRMWARE, "sudo xbps-install -Su {}"},
    {"gentoo", GP_REMEDY_INSTALL_GPU_FIRMWARE, GPU_FIRMWARE,
     "sudo emerge --ask sys-kernel/linux-firmware"},
    {"alpine", GP_REMEDY_INSTALL_DRIVER_OPEN, ALPINE, NULL},
    {"alpine", GP_REMEDY_INSTALL_DRIVER_580, ALPINE, NULL},
    {"alpine", GP_REMEDY_INSTALL_DRIVER_470, ALPINE, NULL},
    {"talos", GP_REMEDY_FABRIC_MANAGER,
     "build an image whose system extensions with the driver (nonfree-kmod-nvidia or "
     "nvidia-open-gpu-kernel-modules, nvidia-container-toolkit) and nvidia-fabricmanager have one "
     "and the same version of the driver, and upgrade to it: talosctl upgrade --image …",
     NULL},
    {"nixos", GP_REMEDY_FABRIC_MANAGER,
     "set hardware.nvidia.datacenter.enable = true; in the configuration: it has the driver and "
     "the fabric manager in one version",
     "sudo nixos-rebuild switch"},
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
    /* Universal Blue's images are Fedora's, with more in them. */
    return strcmp(distro_id, "ublue") == 0 ? gp_remedy_other("ostree", remedy) : NULL;
}

/* What of openSUSE's commands holds for SUSE Linux Enterprise, too: its modules have only some of
 * openSUSE's packages, and NVIDIA's have another name by branch. */
static bool is_of_enterprise(enum gp_remedy remedy)
{
    static const enum gp_remedy list[] = {
        GP_REMEDY_INSTALL_HEADERS,
        GP_REMEDY_INSTALL_COMPILER,
        GP_REMEDY_INSTALL_KERNEL_MODULES,
        GP_REMEDY_INSTALL_CONTAINER_TOOLKIT,
        GP_REMEDY_INSTALL_MESA,
        GP_REMEDY_UPDATE_PACKAGES,
        GP_REMEDY_UPDATE_CONTAINER_TOOLKIT,
        GP_REMEDY_UPDATE_MESA,
        GP_REMEDY_HOLD_PACKAGES,
        GP_REMEDY_NEWER_KERNEL,
        GP_REMEDY_REBUILD_INITRAMFS,
        GP_REMEDY_REMOVE_KERNEL_ARGUMENT,
        GP_REMEDY_BLACKLIST_NOUVEAU,
        GP_REMEDY_ENROLL_KEY,
        GP_REMEDY_START_PERSISTENCED,
        GP_REMEDY_REMOVE_DRIVER,
        GP_REMEDY_REMOVE_CUDA_COMPAT,
        GP_REMEDY_REMOVE_CUDNN,
        GP_REMEDY_REMOVE_BUMBLEBEE,
        GP_REMEDY_REMOVE_AMDVLK,
        GP_REMEDY_REINSTALL_X_SERVER,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(list); i++)
        if (list[i] == remedy)
            return true;
    return false;
}

/* Whose commands hold for these, too, where no row above has others. Those with {} take a package
 * or a repository that depends on the distribution. */
static const struct {
    const char *distro_id;
    enum gp_distro family;
} kin[] = {{"sles", GP_DISTRO_SUSE}, {"sled", GP_DISTRO_SUSE}, {"manjaro", GP_DISTRO_ARCH}};

const char *gp_remedy_of_kin(const char *distro_id, enum gp_remedy remedy)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(kin); i++) {
        const char *commands = gp_remedies[remedy].commands[kin[i].family];
        if (strcmp(kin[i].distro_id, distro_id) == 0 && commands && !strstr(commands, "{}"))
            return kin[i].family == GP_DISTRO_SUSE && !is_of_enterprise(remedy) ? NULL : commands;
    }
    return NULL;
}

#define BY_ITSELF "install the driver for the GPUs of this machine"
#define FROM(file) "first remove it from " file
#define INITRAMFS "rebuild the initramfs, which has its own copy of these settings"

static const struct gp_remedy_tool tools[] = {
    {GP_REMEDY_INSTALL_DRIVER_OPEN, GP_DISTRO__COUNT, "/opt/deeplearning/install-driver.sh",
     BY_ITSELF, "sudo /opt/deeplearning/install-driver.sh"},
    {GP_REMEDY_INSTALL_DRIVER_OPEN, GP_DISTRO__COUNT, "/usr/bin/cos-extensions", BY_ITSELF,
     "sudo cos-extensions install gpu"},
    {GP_REMEDY_INSTALL_DRIVER_OPEN, GP_DISTRO__COUNT, "/usr/bin/chwd", BY_ITSELF, "sudo chwd -a"},
    {GP_REMEDY_INSTALL_DRIVER_OPEN, GP_DISTRO__COUNT, "/usr/bin/mhwd", BY_ITSELF,
     "sudo mhwd -a pci nonfree 0300"},
    {GP_REMEDY_REMOVE_KERNEL_ARGUMENT, GP_DISTRO_UBUNTU, "/usr/bin/kernelstub",
     "remove it from the arguments that Pop!_OS keeps", "sudo kernelstub -d '{}'"},
    {GP_REMEDY_REMOVE_KERNEL_ARGUMENT, GP_DISTRO_ARCH, "/etc/sdboot-manage.conf",
     FROM("LINUX_OPTIONS in /etc/sdboot-manage.conf"), "sudo sdboot-manage gen"},
    {GP_REMEDY_REMOVE_KERNEL_ARGUMENT, GP_DISTRO_ARCH, "/usr/bin/limine-update",
     FROM("/etc/default/limine"), "sudo limine-update"},
    {GP_REMEDY_REMOVE_KERNEL_ARGUMENT, GP_DISTRO_ARCH, "/usr/bin/reinstall-kernels",
     FROM("/etc/kernel/cmdline"), "sudo reinstall-kernels"},
    {GP_REMEDY_REBUILD_INITRAMFS, GP_DISTRO_ARCH, "/usr/bin/limine-update", INITRAMFS,
     "sudo limine-update"},
    {GP_REMEDY_REBUILD_INITRAMFS, GP_DISTRO_ARCH, "/usr/bin/reinstall-kernels", INITRAMFS,
     "sudo reinstall-kernels"},
    {GP_REMEDY_REBUILD_INITRAMFS, GP_DISTRO_ARCH, "/usr/bin/dracut-rebuild", INITRAMFS,
     "sudo dracut-rebuild"},
    {GP_REMEDY_REBUILD_INITRAMFS, GP_DISTRO_OTHER, "/usr/bin/mkinitcpio", INITRAMFS,
     "sudo mkinitcpio -P"},
};

const struct gp_remedy_tool *gp_remedy_tool(const struct gp_files *files, enum gp_distro distro,
                                            enum gp_remedy remedy)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(tools); i++)
        if (tools[i].remedy == remedy &&
            (tools[i].family == distro || tools[i].family == GP_DISTRO__COUNT) &&
            gp_files_exist(files, tools[i].file))
            return &tools[i];
    return NULL;
}
