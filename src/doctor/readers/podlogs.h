/* The logs of NVIDIA's containers on a node of Kubernetes. */
#ifndef GP_DOCTOR_READERS_PODLOGS_H
#define GP_DOCTOR_READERS_PODLOGS_H

#include <stdbool.h>
#include <stddef.h>

struct gp_exam;

enum { GP_POD_LOGS = 64 };

/* Their number; the paths are in the exam's arena. */
size_t gp_pod_logs(struct gp_exam *exam, const char *ret_paths[GP_POD_LOGS]);

/* How the name of a pod begins that the Operator makes from an NVIDIADriver resource. */
extern const char gp_pod_of_resource[];

struct gp_pod_log {
    const char *path, *text; /* without what the container engine writes around each line */
    size_t size;
    bool is_of_resource; /* of an NVIDIADriver, not of the ClusterPolicy */
};

/* What the driver container of NVIDIA's GPU Operator has printed since it was last started; false:
 * there is no log of it. */
bool gp_pod_read_driver(struct gp_exam *exam, struct gp_pod_log *ret);
/* Likewise of the container that installs the toolkit. */
bool gp_pod_read_toolkit(struct gp_exam *exam, struct gp_pod_log *ret);

#endif
