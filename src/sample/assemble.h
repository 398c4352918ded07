/* Builds a snapshot out of the readings of a tick. Runs on the consumer's thread: no driver calls.
 */
#ifndef GP_SAMPLE_ASSEMBLE_H
#define GP_SAMPLE_ASSEMBLE_H

#include "model/metric.h"
#include "model/reading.h"
#include "source/source.h"

struct gp_err;
struct gp_proc_reader;
struct gp_selection;
struct gp_snapshot;

/* A GPU over the life of a sampler. */
struct gp_slot {
    unsigned index; /* for display: the driver's number when it was first seen */
    bool chosen;    /* by the selection, as far as an index can tell */
    char uuid[96];  /* "" until it is known */
    struct gp_reading *latest;
    struct gp_reading *good; /* the last one with status OK */
};

enum { GP_DRIVER_TEXT_SIZE = 96 };

struct gp_assembler {
    struct gp_selection *selection;
    struct gp_want want;     /* what the consumer asked for */
    struct gp_want internal; /* and what assembling it needs */
    unsigned proc_want;      /* enum gp_proc_want */
    struct gp_proc_reader *proc;
    char driver_text[GP_HOST__COUNT][GP_DRIVER_TEXT_SIZE];
    struct gp_value driver_host[GP_HOST__COUNT];
    struct gp_snapshot *snapshot; /* the one in the making */
    struct gp_taken *taken;
    size_t taken_count;
};

int gp_assembler_init(struct gp_assembler *a, struct gp_selection *selection,
                      const struct gp_want *want, const char *root,
                      struct gp_err *err) GP_MUST_CHECK;
void gp_assembler_fini(struct gp_assembler *a);

/* What the source has to deliver. */
const struct gp_want *gp_assembler_want(const struct gp_assembler *a);

/* Copies the host metrics that only the driver knows. As the next two, under the sampler's lock. */
void gp_assembler_set_driver(struct gp_assembler *a, const struct gp_value host[GP_HOST__COUNT]);
int gp_assembler_start(struct gp_assembler *a, size_t slots, struct gp_err *err) GP_MUST_CHECK;
/* Takes the state of one slot; hung: it has been silent for silent_ns inside `call`. */
void gp_assembler_take(struct gp_assembler *a, const struct gp_slot *slot, bool hung,
                       uint64_t silent_ns, const char *call);

/* Finishes the snapshot, which becomes the caller's. */
int gp_assembler_finish(struct gp_assembler *a, unsigned gpu_count, struct gp_snapshot **ret,
                        struct gp_err *err) GP_MUST_CHECK;

#endif
