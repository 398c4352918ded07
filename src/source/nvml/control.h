/* The controls of the NVML source: which call reads and which call sets each. */
#ifndef GP_SOURCE_NVML_CONTROL_H
#define GP_SOURCE_NVML_CONTROL_H

#include "source/control.h"
#include "source/nvml/internal.h"

/* control_mig.c. Failures leave the name of the call in *device->call. */
nvmlReturn_t nvml_read_mig_instances(struct nvml_device *device, struct gp_setting *ret);
nvmlReturn_t nvml_apply_mig_instances(struct nvml_device *device,
                                      const struct gp_control_value *value);
int nvml_check_mig_instances(struct nvml_device *device, const struct gp_control_value *value,
                             struct gp_err *err);

/* control_part.c. The same of failures. */
nvmlReturn_t nvml_part(struct nvml_device *device, struct gp_part *part);

#endif
