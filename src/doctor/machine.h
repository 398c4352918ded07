/* The examined machine: its distribution and kernel, its container, its GPUs as PCI reports them,
 * and the loaded driver. The data many checks need, read once. */
#ifndef GP_DOCTOR_MACHINE_H
#define GP_DOCTOR_MACHINE_H

#include "base/util.h"

struct gp_arena;
struct gp_files;

/* X(id, word): families of distributions that share commands. */
#define GP_DISTROS(X)                                                                              \
    X(DEBIAN, "Debian")                                                                            \
    X(UBUNTU, "Ubuntu")                                                                            \
    X(FEDORA, "Fedora")                                                                            \
    X(RHEL, "RHEL")                                                                                \
    X(ARCH, "Arch")                                                                                \
    X(SUSE, "openSUSE")                                                                            \
    X(OTHER, "another distribution")

enum gp_distro {
#define X(id, word) GP_DISTRO_##id,
    GP_DISTROS(X)
#undef X
        GP_DISTRO__COUNT
};

enum { GP_PCI_NVIDIA = 0x10de, GP_PCI_AMD = 0x1002, GP_PCI_INTEL = 0x8086 };

enum { GP_MACHINE_GPUS = 256 };

/* A display controller or accelerator on the PCI bus. */
struct gp_pci_gpu {
    char bus_id[20]; /* "0000:65:00.0" */
    unsigned vendor, device, class;
    char driver[32];            /* the bound kernel driver; "": none */
    bool shows_screen;          /* the firmware used it as the boot display */
    const struct gp_chip *chip; /* NULL: not in the table */
};

struct gp_machine {
    enum gp_distro distro;
    char distro_name[96];             /* "Ubuntu 22.04.4 LTS"; "" */
    char distro_id[32];               /* "ubuntu" */
    char distro_version[32];          /* "22.04"; "" */
    char base_codename[32];           /* of Ubuntu, for what is derived from it: "bionic"; "" */
    char codename[32];                /* "jammy"; "" */
    char kernel[96];                  /* "6.8.0-45-generic"; "" */
    char arch[16];                    /* "x86_64", "aarch64": of its programs */
    bool is_wsl, is_jetson, is_apple; /* Linux on Apple's own chips */
    const char *container;            /* "docker", "podman", "kubernetes", "lxc", …; NULL: none */
    struct gp_pci_gpu gpus[GP_MACHINE_GPUS];
    size_t gpu_count;
    size_t gpus_left_out;                        /* beyond GP_MACHINE_GPUS */
    size_t nvidia_count, amd_count, intel_count; /* among those in the list */
    size_t nvswitch_count;
    bool is_pci_readable;  /* there is a list of PCI devices */
    bool is_driver_loaded; /* NVIDIA's module is loaded */
    bool is_driver_open;   /* its open variant; only if it is loaded */
    bool is_flavour_known; /* whether it is open */
    char driver[32];       /* "570.124.06"; "": not loaded, or unknown */
    char *environment;     /* NUL-terminated "NAME=value" strings, followed by an empty one */
};

/* Whether a process of this name is seen running. */
bool gp_machine_runs(const struct gp_files *files, const char *program);

/* Whether the kernel runs in a virtual machine. */
bool gp_machine_is_virtual(const struct gp_files *files);

/* Whether it was started from an installation medium, and keeps its changes only in memory. */
bool gp_machine_is_live(const struct gp_files *files);

/* Whether the firmware calls it a laptop, whose GPUs have no slots. */
bool gp_machine_is_laptop(const struct gp_files *files);

/* Whether the firmware calls it a server, of its own case or in a rack. */
bool gp_machine_is_server(const struct gp_files *files);

/* Whether it is one of Fedora's systems that are composed as images: packages are layered, not
 * installed. */
bool gp_machine_is_ostree(const struct gp_machine *machine);

/* Whether packages come by apt: Debian, Ubuntu, and what is derived from them. */
bool gp_machine_has_apt(const struct gp_machine *machine);

/* Its architecture as dpkg calls it, "arm64" of aarch64; others keep their word. */
const char *gp_machine_dpkg_arch(const struct gp_machine *machine);

/* Whether this is a container of LXC, LXD or Incus, which is like a machine to its users. */
bool gp_machine_is_lxc(const struct gp_machine *machine);

/* The release of Ubuntu that a derivative is made from ("22.04" of Linux Mint 21), whose packages
 * it uses; otherwise its own. */
const char *gp_machine_release(const struct gp_machine *machine);

/* "0000:65:00.0": whether it is a PCI device address, and nothing else. */
bool gp_is_bus_id(const char *name);

/* The command that updates a system whose programs are one image, mounted without being writable;
 * NULL: it is none, or packages can be added to it. */
const char *gp_machine_image_update(const struct gp_files *files);

void gp_machine_read(struct gp_machine *machine, const struct gp_files *files,
                     struct gp_arena *arena);

/* The value of a variable in the user's environment; NULL: not set. */
const char *gp_machine_variable(const struct gp_machine *machine, const char *name);

const char *gp_distro_word(enum gp_distro distro);

#endif
