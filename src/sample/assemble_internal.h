/* Private to the assembler. */
#ifndef GP_SAMPLE_ASSEMBLE_INTERNAL_H
#define GP_SAMPLE_ASSEMBLE_INTERNAL_H

#include "sample/assemble.h"

/* The process type of a suspended process; the driver reports the other types. */
#define GP_TYPE_SUSPENDED "S"

/* The data taken from a slot. */
struct gp_taken {
    unsigned index;
    const char *uuid; /* in the snapshot's arena; NULL if no process is suspended */
    struct gp_reading *latest;
    struct gp_reading *good;
    enum gp_status status; /* OK: latest is from this tick */
    int driver_code;
    bool refused;
    double silent_s;
    const char *text; /* in the snapshot's arena */
};

/* The reading whose MIG instances and processes are shown: for a silent GPU its last good one.
 * NULL: none. */
const struct gp_reading *gp_taken_shown(const struct gp_taken *t);
/* The data for the GPU of a row. */
const struct gp_taken *gp_taken_of(const struct gp_assembler *a, const struct gp_device *device);

/* In assemble_reservations.c: fills the reservation fields of all devices, if one is wanted. */
bool gp_wants_reservations(const struct gp_metric_set *metrics);
void gp_assemble_reservations(struct gp_assembler *a);

/* In assemble_processes.c. Fails with GP_ENOMEM. */
bool gp_wants_activity(const struct gp_metric_set *metrics);
int gp_assemble_processes(struct gp_assembler *a) GP_MUST_CHECK;

#endif
