/* What is broken about a GPU, in the words of gpulse doctor. */
#ifndef GP_WHY_HEALTH_H
#define GP_WHY_HEALTH_H

#include "why/case.h"

/* Sets `is_failed`, `fault` and `cure` from the latest sample. */
void gp_why_health_look(struct gp_why_case *c, const struct gp_snapshot *s,
                        const struct gp_device *device);

#endif
