/* What programs are judged against: the machine's NVIDIA GPUs and their driver. */
#ifndef GP_DOCTOR_READERS_NVIDIA_H
#define GP_DOCTOR_READERS_NVIDIA_H

#include "doctor/builds.h"
#include "doctor/machine.h"

struct gp_exam;

struct gp_nvidia_gpu {
    char name[64];       /* "Tesla P100 PCIe 16GB" */
    unsigned capability; /* 60; 0: unknown */
};

struct gp_nvidia {
    char driver[32];                            /* "550.54.14"; "": unknown */
    struct gp_nvidia_gpu gpus[GP_MACHINE_GPUS]; /* each model once */
    size_t count;
    size_t gpu_count;                       /* of all GPUs */
    unsigned capabilities[GP_MACHINE_GPUS]; /* of the models */
};

/* From the driver if it was queried, otherwise from the files. GPUs reserved for virtual machines
 * do not count. */
void gp_nvidia_read(struct gp_nvidia *nv, const struct gp_exam *exam);

/* Likewise for gp_build_judge(); its pointers refer to `nv`. */
struct gp_build_target gp_nvidia_target(const struct gp_nvidia *nv);

/* For gp_check.applies: there is an NVIDIA GPU. */
bool gp_nvidia_is_there(struct gp_exam *exam);

/* The library of Windows' driver; containers get it among the system's libraries. NULL: none. */
const char *gp_nvidia_wsl_library(const struct gp_exam *exam);

/* "Tesla P100 PCIe 16GB (compute capability 6.0)" */
const char *gp_nvidia_gpu_words(struct gp_exam *exam, const struct gp_nvidia_gpu *gpu);

/* The UUIDs of all GPUs by the driver's files, in the order of their addresses. Their number; 0:
 * one is unknown, as of a GPU that nothing uses. */
enum { GP_NVIDIA_UUIDS = 64 };
size_t gp_nvidia_uuids(struct gp_exam *exam, const char *ret[GP_NVIDIA_UUIDS]);

#endif
