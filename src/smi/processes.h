/* The processes of a GPU in nvidia-smi's order: by pid, including those of its MIG instances. */
#ifndef GP_SMI_PROCESSES_H
#define GP_SMI_PROCESSES_H

#include "model/snapshot.h"

#define GP_SMI_PROCESS_NAME GP_PROCESS_PATH

/* The process after `last` (NULL: the first) of this GPU; NULL at the end. */
const struct gp_process *gp_smi_next_process(const struct gp_snapshot *snapshot,
                                             const struct gp_device *gpu,
                                             const struct gp_process *last);

/* Same for compute processes, in the driver's order. */
const struct gp_process *gp_smi_next_computing(const struct gp_snapshot *snapshot,
                                               const struct gp_device *gpu,
                                               const struct gp_process *last);

#endif
