/* Changes settings of many GPUs: opens them, reads the current values, applies changes, and reads
 * back. All GPUs are handled in parallel, each with a deadline. A GPU that hangs is reported with
 * the call in progress, and does not delay the others. */
#ifndef GP_SAMPLE_CHANGER_H
#define GP_SAMPLE_CHANGER_H

#include "source/control.h"
#include "source/source.h"

struct gp_selection;

struct gp_changer_config {
    struct gp_source *source; /* owned by the changer */
    uint64_t timeout_ns;      /* for each step */
    struct gp_selection *selection;
    const struct gp_want *want; /* additional values to read of each GPU; NULL: none */
    /* Called if a step takes longer than patience_ns: "GPU 4 (call)". May be NULL. */
    void (*on_wait)(const char *whom);
    uint64_t patience_ns;
};

enum gp_outcome {
    GP_OUTCOME_NONE,       /* not attempted: an earlier change of this GPU failed */
    GP_OUTCOME_SAME,       /* already set, or pending until a reset */
    GP_OUTCOME_DONE,       /* applied and read back */
    GP_OUTCOME_PENDING,    /* accepted; takes effect after a reset */
    GP_OUTCOME_UNVERIFIED, /* accepted; the driver cannot report the value */
    GP_OUTCOME_FAILED,     /* `words` has the reason */
    GP_OUTCOME_HUNG,       /* no response in time: it is unknown whether the change was made */
};

struct gp_change {
    bool wanted;
    bool anew; /* apply even if it is already set */
    struct gp_control_value value;
    /* The following members belong to a thread until its GPU is done, see gp_target_outcome(). */
    enum gp_outcome outcome;
    int code;        /* of a failure: GP_E* */
    int driver_code; /* of a failure or warning: the driver's error code, 0: none */
    char words[400]; /* of a failure, or a warning from the driver */
    /* The value after the change; status NONE if it was not read. */
    struct gp_setting after;
};

/* A selected GPU or MIG instance. */
struct gp_target {
    unsigned index; /* of the GPU */
    bool is_mig;
    unsigned mig_index;
    char uuid[96];
    char bus[32];    /* of the GPU */
    char name[128];  /* sanitized */
    int code;        /* 0, or why the GPU is out: GP_E*, with the reason in `words` */
    int driver_code; /* the driver's error code for that; 0: none */
    char words[400];
    bool is_asleep;  /* the reason why it is out */
    bool left_alone; /* nothing is requested: its settings are not read */
    bool tried;      /* an attempt to change it was made */
    struct gp_source_device *device;
    const struct gp_reading *reading; /* of a GPU: the requested values; NULL if it is out */
    struct gp_setting settings[GP_CONTROL__COUNT];
    struct gp_change changes[GP_CONTROL__COUNT];
};

struct gp_changer;

/* Opens the source and the selected GPUs, without waiting for other GPUs. Fails with GP_ENODEV if
 * there are no GPUs or a requested one does not exist. After GP_ETIMEOUT *ret is a changer that
 * could not be freed yet, see gp_changer_free(); after other errors NULL. */
int gp_changer_new(const struct gp_changer_config *config, struct gp_changer **ret,
                   struct gp_err *err) GP_MUST_CHECK;

/* The selected GPUs in the driver's order, and MIG instances; owned by the changer. */
struct gp_target *gp_changer_targets(struct gp_changer *changer, size_t *ret_count);

/* The host values from the driver. */
const struct gp_value *gp_changer_host(const struct gp_changer *changer);

/* Reads these controls (bit 1 << id) into the settings of every target that is not left alone. */
void gp_changer_read(struct gp_changer *changer, uint32_t controls);

/* Whether a change is needed: the value is not yet set, and not pending either. */
bool gp_target_needs(const struct gp_target *target, enum gp_control_id id);

/* Asks each device whether it would accept the requested changes. The result is in their code and
 * words; err has the first error. */
int gp_changer_check(struct gp_changer *changer, struct gp_err *err) GP_MUST_CHECK;

/* Applies the requested changes of all targets, in the order of the controls. After a failure, the
 * remaining changes of that GPU are not attempted. */
void gp_changer_apply(struct gp_changer *changer);

/* Performs a MIG partitioning step on this GPU. Fails with GP_ETIMEOUT, or with the driver's
 * error. */
int gp_changer_part(struct gp_changer *changer, struct gp_target *target, struct gp_part *part,
                    struct gp_err *err) GP_MUST_CHECK;

/* The result of a requested change. After GP_OUTCOME_HUNG, and if the GPU is out, target->words has
 * the reason and the change must not be accessed. */
enum gp_outcome gp_target_outcome(const struct gp_target *target, enum gp_control_id id);

/* Whether the change may have to be undone. */
bool gp_outcome_may_have_changed(enum gp_outcome outcome);

/* Closes the source. Returns false, and frees nothing, while a thread has not returned from the
 * driver, or if none could be started to close the source: call it again later, or exit with
 * _exit(). */
bool gp_changer_free(struct gp_changer *changer);

#endif
