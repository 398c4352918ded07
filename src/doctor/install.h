/* What of NVIDIA's driver is on the disk: modules by kernel, builds that failed, libraries,
 * packages, and what keeps the module from being loaded. Read once, when it is first asked for. */
#ifndef GP_DOCTOR_INSTALL_H
#define GP_DOCTOR_INSTALL_H

#include "doctor/modules.h"
#include "doctor/packages.h"

struct gp_exam;

/* One of libcuda.so.1 and libnvidia-ml.so.1, of the machine's own word length. */
struct gp_driver_library {
    const char *name;    /* "libcuda.so.1" */
    const char *path;    /* where the loader finds it */
    const char *real;    /* behind its links */
    const char *version; /* "570.124.06", from the name of the file; "": it has none */
};

/* A line that keeps a module from being loaded. */
struct gp_block {
    enum gp_block_kind kind;
    const char *where; /* "/etc/modprobe.d/x.conf:3" */
    const char *text;
};

/* A build of the module that ended with an error. */
struct gp_failed_build {
    const char *log; /* the file; NULL: none failed */
    size_t line;     /* of the first error; 0: none was found */
    const char *error;
    const char *kernel; /* that it was for; "": not said */
};

enum { GP_LIBRARIES = 16 };

struct gp_install {
    int modules_error;        /* −errno: the folder of modules cannot be read */
    bool has_modules;         /* there is one, of any kernel */
    bool is_kernel_here;      /* the running kernel's is among them */
    bool is_list_readable;    /* of its modules */
    const char *modules;      /* the folder: "/lib/modules" */
    const char *module;       /* NVIDIA's, for the running kernel, below its folder; "" */
    const char *other_kernel; /* the last other one that has it; "" */
    const char *source;       /* where dkms or akmods build it from; "" */
    struct gp_failed_build failed;
    const char *closed_build; /* where builds or settings of modules may not be read; "" */
    const char *closed_config;
    struct gp_driver_library libraries[GP_LIBRARIES];
    size_t library_count; /* the one that the loader takes stands first, by name */
    const char *stub;     /* a libcuda that is only for linking, where the loader finds it; "" */
    const struct gp_package *packages; /* of the driver; only where dpkg or pacman keep them */
    size_t package_count;
    int packages_error;           /* −errno; −ENOENT: another kind of distribution */
    const char *run_trace;        /* a file that NVIDIA's own .run installer leaves; "" */
    const char *module_version;   /* of `module`: "570.124.06", or only its branch; "": not known */
    const char *version;          /* of what is installed: of the module, else of the library */
    bool is_open, is_proprietary; /* the module on the disk; neither: not known */
    struct gp_block nvidia, nouveau;
};

/* Never NULL. */
const struct gp_install *gp_install_of(struct gp_exam *exam);

/* The library that stands for the driver's programs: libnvidia-ml, else libcuda; NULL: neither is
 * here. */
const struct gp_driver_library *gp_install_library(const struct gp_install *install);

/* Whether two versions are of one driver; one of them may be only a branch. */
bool gp_install_same(const char *a, const char *b);

#endif
