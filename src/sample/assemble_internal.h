/* Shared by the files of the assembler only. */
#ifndef GP_SAMPLE_ASSEMBLE_INTERNAL_H
#define GP_SAMPLE_ASSEMBLE_INTERNAL_H

#include "sample/assemble.h"

/* The type of a process that is suspended, as the types of those that the driver lists. */
#define GP_TYPE_SUSPENDED "S"

/* What was taken of a slot. */
struct gp_taken {
    unsigned index;
    const char *uuid; /* in the snapshot's arena; NULL if no process is suspended */
    struct gp_reading *latest;
    struct gp_reading *good;
    enum gp_status status; /* OK: latest is of this tick */
    int driver_code;
    bool refused;
    double silent_s;
    const char *text; /* in the snapshot's arena */
};

/* The reading whose MIG instances and processes are shown: the last good one of a silent GPU. NULL:
 * none. */
const struct gp_reading *gp_taken_shown(const struct gp_taken *t);
/* That of the GPU of a row. */
const struct gp_taken *gp_taken_of(const struct gp_assembler *a, const struct gp_device *device);

/* assemble_processes.c. GP_ENOMEM. */
int gp_assemble_processes(struct gp_assembler *a) GP_MUST_CHECK;

#endif
