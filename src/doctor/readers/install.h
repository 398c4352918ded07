/* What is on disk of NVIDIA's driver: modules by kernel, failed builds, libraries, packages, and
 * settings that prevent loading the module. Read once, on first use. */
#ifndef GP_DOCTOR_READERS_INSTALL_H
#define GP_DOCTOR_READERS_INSTALL_H

#include "doctor/readers/modules.h"
#include "doctor/readers/packages.h"

struct gp_exam;

/* One of libcuda.so.1 and libnvidia-ml.so.1, with the machine's own word size. */
struct gp_driver_library {
    const char *name;    /* "libcuda.so.1" */
    const char *path;    /* where the loader finds it */
    const char *real;    /* after following its links */
    const char *version; /* "570.124.06", from the file name; "": it has none */
};

/* A line that prevents a module from being loaded. */
struct gp_block {
    enum gp_block_kind kind;
    const char *where; /* "/etc/modprobe.d/x.conf:3" */
    const char *text;
};

/* A failed build of the module. */
struct gp_failed_build {
    const char *log; /* the file; NULL: no build failed */
    size_t line;     /* of the first error; 0: none found */
    const char *error;
    const char *kernel;            /* the kernel it was for; "": not stated */
    const char *missing;           /* a package that rpmbuild needed for it; "" */
    const char *refused;           /* why dnf did not install what was built; "" */
    const char *version;           /* of NVIDIA's installer, if that built it; NULL: it did not */
    unsigned kernel_gcc, used_gcc; /* if the log says that they differ; 0: it does not */
};

/* Which variant of the module the packages of NVIDIA and negativo17 for Fedora and RHEL build. */
extern const char gp_install_variant[];

enum { GP_LIBRARIES = 16 };

struct gp_install {
    int modules_error;        /* −errno: the directory of modules cannot be read */
    bool has_modules;         /* there is a module for any kernel */
    bool is_kernel_here;      /* the running kernel's modules are among them */
    bool is_list_readable;    /* of its modules */
    const char *modules;      /* the directory: "/lib/modules" */
    const char *module;       /* NVIDIA's, for the running kernel, below its directory; "" */
    const char *other_kernel; /* the newest other kernel that has it; "" */
    const char *source;       /* the source for dkms or akmods; "" */
    const char *stale_source; /* dkms' directory of a version whose source is gone, next to one
                                 whose source is there; "" */
    struct gp_failed_build failed;
    const char
        *closed_build; /* a directory of builds or module settings that may not be read; "" */
    const char *closed_config;
    struct gp_driver_library libraries[GP_LIBRARIES];
    size_t library_count; /* sorted by name; the loader's choice comes first */
    const char *stub; /* a stub libcuda that is only for linking and that the loader finds; "" */
    const struct gp_package *packages; /* of the driver; only with dpkg or pacman */
    size_t package_count;
    bool has_module_package;      /* one of them has the module or its source */
    int packages_error;           /* −errno; −ENOENT: another kind of distribution */
    const char *run_trace;        /* a file left by NVIDIA's own .run installer; "" */
    const char *module_version;   /* of `module`: "570.124.06", or only its branch; "": unknown */
    const char *module_package;   /* whose version this is, if the module does not show it; "" */
    const char *version;          /* of the installed driver: of the module, else of the library */
    bool is_open, is_proprietary; /* the module on disk; neither: unknown */
    struct gp_block nvidia, uvm, nouveau;
};

/* Never NULL. */
const struct gp_install *gp_install_of(struct gp_exam *exam);

/* The setting that prevents a module from being loaded: of modprobe.d, or of the kernel's command
 * line. */
struct gp_block gp_install_block(struct gp_exam *exam, const char *module);

/* Whether a setting says what to load by this name of a module, as where it has another one. */
bool gp_install_is_renamed(struct gp_exam *exam, const char *module);

/* The library that represents the driver's user space: libnvidia-ml, else libcuda; NULL: neither is
 * installed. */
const struct gp_driver_library *gp_install_library(const struct gp_install *install);

/* Whether two versions are the same driver; one of them may be only a branch. */
bool gp_install_same(const char *a, const char *b);

#endif
