/* The controls of the NVML source: the getter and setter of each, declared from control.def. After
 * a failure, *device->call is the name of the failed call. */
#ifndef GP_SOURCE_NVML_CONTROL_H
#define GP_SOURCE_NVML_CONTROL_H

#include "source/control.h"
#include "source/nvml/internal.h"

#define CONTROL(id, setter, older, part)                                                           \
    nvmlReturn_t nvml_get_##part(struct nvml_device *device, struct gp_setting *s);                \
    nvmlReturn_t nvml_apply_##part(struct nvml_device *device,                                     \
                                   const struct gp_control_value *value);
#define CHECKED(id, setter, part)                                                                  \
    CONTROL(id, setter, _NONE, part)                                                               \
    int nvml_check_##part(struct nvml_device *device, const struct gp_control_value *value,        \
                          struct gp_err *err);
#include "source/nvml/control.def"
#undef CONTROL
#undef CHECKED

/* In control_part.c. Same for failures. */
nvmlReturn_t nvml_part(struct nvml_device *device, struct gp_part *part);

/* What a getter finds out: the value, now and after a reset, the range of its numbers, details. */
void nvml_set_number(struct gp_setting *s, int64_t n);
void nvml_set_pending(struct gp_setting *s, int64_t now, int64_t pending);
void nvml_set_range(struct gp_setting *s, int64_t min, int64_t max);
void nvml_set_words(struct gp_setting *s, const char *words);

#endif
