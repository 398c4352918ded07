/* The logs of NVIDIA's containers on a node of Kubernetes. */
#ifndef GP_DOCTOR_READERS_PODLOGS_H
#define GP_DOCTOR_READERS_PODLOGS_H

#include <stddef.h>

struct gp_exam;

enum { GP_POD_LOGS = 64 };

/* Their number; the paths are in the exam's arena. */
size_t gp_pod_logs(struct gp_exam *exam, const char *ret_paths[GP_POD_LOGS]);

#endif
