/* The controls of the NVML source: the getter and setter of each. */
#ifndef GP_SOURCE_NVML_CONTROL_H
#define GP_SOURCE_NVML_CONTROL_H

#include "source/control.h"
#include "source/nvml/internal.h"

/* In control_mig.c. After a failure, *device->call is the name of the failed call. */
nvmlReturn_t nvml_read_mig_instances(struct nvml_device *device, struct gp_setting *ret);
nvmlReturn_t nvml_apply_mig_instances(struct nvml_device *device,
                                      const struct gp_control_value *value);
int nvml_check_mig_instances(struct nvml_device *device, const struct gp_control_value *value,
                             struct gp_err *err);

/* In control_part.c. Same for failures. */
nvmlReturn_t nvml_part(struct nvml_device *device, struct gp_part *part);

#endif
