/* Private to the assembler. Each part fills one part of the snapshot; assemble.c calls them in
 * order. What several of them need is in taken.c. */
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

/* The reading whose MIG instances and processes are shown: for a GPU that is silent or lost its
 * last good one. NULL: none. */
const struct gp_reading *gp_taken_shown(const struct gp_taken *t);
/* The data for the GPU of a row. */
const struct gp_taken *gp_taken_of(const struct gp_assembler *a, const struct gp_device *device);

/* Turns a value of a reading into one of the snapshot. It gets its own copy of the text, because
 * the reading may be freed. */
void gp_assemble_own(struct gp_assembler *a, enum gp_metric m, struct gp_value *v);

/* Whether a value is permanent, such as a name, so that an earlier one still holds. */
static inline bool gp_is_permanent(enum gp_metric m)
{
    return gp_metric_table[m].tier == GP_TIER_STATIC;
}

/* Whether this list (see gp_list_index()) is requested. */
static inline bool gp_wants_list(const struct gp_assembler *a, size_t list)
{
    return (a->want.lists | a->more_lists) >> list & 1;
}

/* In assemble_devices.c: whether a row with these values is selected. */
bool gp_assemble_is_chosen(struct gp_selection *selection, unsigned index,
                           const struct gp_value *values, bool is_mig);
/* In assemble_devices.c: the rows. GP_ENOMEM. */
int gp_assemble_devices(struct gp_assembler *a) GP_MUST_CHECK;

/* In assemble_reservations.c: fills the reservation fields of all devices, if one is wanted. */
bool gp_wants_reservations(const struct gp_metric_set *metrics);
void gp_assemble_reservations(struct gp_assembler *a);

/* In assemble_processes.c. Fails with GP_ENOMEM. */
bool gp_wants_activity(const struct gp_metric_set *metrics);
int gp_assemble_processes(struct gp_assembler *a) GP_MUST_CHECK;

/* In assemble_memory.c, after the processes: fills the memory account of all devices, if it is
 * wanted. */
bool gp_wants_memory_account(const struct gp_metric_set *metrics);
void gp_assemble_memory_account(struct gp_assembler *a);

/* In assemble_lists.c: the requested lists. GP_ENOMEM. */
int gp_assemble_lists(struct gp_assembler *a) GP_MUST_CHECK;

/* In assemble_host.c. Copies the driver's host values including their texts, because a later
 * session may change them. False without memory. */
bool gp_assemble_driver_host(struct gp_assembler *a, struct gp_snapshot *snapshot);
/* The host values that do not come from the driver. GP_ENOMEM. */
int gp_assemble_host(struct gp_assembler *a) GP_MUST_CHECK;

#endif
