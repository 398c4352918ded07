/* GPUs of a snapshot with something in common: how findings name them and show their values. */
#ifndef GP_DOCTOR_READERS_GPUSET_H
#define GP_DOCTOR_READERS_GPUSET_H

#include "doctor/exam.h"
#include "model/snapshot.h"

enum { GP_GPUSET_MAX = 256, GP_GPUSET_SHOWN = 16 };

struct gp_gpuset {
    const struct gp_device *gpus[GP_GPUSET_MAX]; /* the rest is omitted */
    size_t count;
};

void gp_gpuset_add(struct gp_gpuset *set, const struct gp_device *gpu);

/* The GPUs that responded, without MIG instances; empty if there is no snapshot. */
void gp_gpuset_answered(struct gp_gpuset *set, const struct gp_exam *exam);

/* The GPU with this PCI address, as the kernel writes it; NULL: the driver does not list it. */
const struct gp_device *gp_gpuset_device_at(const struct gp_exam *exam, const char *bus_id);

/* "GPU 3", "GPUs 0-3 and 6". */
const char *gp_gpuset_names(struct gp_exam *exam, const struct gp_gpuset *set);

/* "0,3,5": the format that nvidia-smi and gpulse accept after -i. */
const char *gp_gpuset_list(struct gp_exam *exam, const struct gp_gpuset *set);

/* "GPU 3 (00000000:19:00.0, NVIDIA H100 80GB HBM3)" */
const char *gp_gpuset_label(struct gp_exam *exam, const struct gp_device *gpu);

/* A line of evidence for each GPU, at most GP_GPUSET_SHOWN: its values of these metrics. */
void gp_gpuset_evidence(struct gp_exam *exam, const struct gp_gpuset *set,
                        const enum gp_metric *metrics, size_t count);

#endif
