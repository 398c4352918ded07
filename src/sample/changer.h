/* Changes settings of many GPUs: takes hold of them, reads what is, applies what is wanted, reads
 * back. All GPUs at the same time, each within the deadline: one that hangs is named with the call
 * it hangs in, and holds up nobody else. */
#ifndef GP_SAMPLE_CHANGER_H
#define GP_SAMPLE_CHANGER_H

#include "source/control.h"
#include "source/source.h"

struct gp_selection;

struct gp_changer_config {
    struct gp_source *source; /* becomes the changer's */
    uint64_t timeout_ns;      /* for each of the steps */
    struct gp_selection *selection;
    const struct gp_want *want; /* what more is read of each GPU; NULL: nothing */
    /* Told when a step takes longer than patience_ns: "GPU 4 (call)". NULL: nobody is. */
    void (*on_wait)(const char *whom);
    uint64_t patience_ns;
};

enum gp_outcome {
    GP_OUTCOME_NONE,       /* not tried: an earlier change of this GPU failed */
    GP_OUTCOME_SAME,       /* was so already, or waits for a reset to become so */
    GP_OUTCOME_DONE,       /* applied, and read back */
    GP_OUTCOME_PENDING,    /* accepted; takes effect after a reset */
    GP_OUTCOME_UNVERIFIED, /* accepted; the driver cannot be asked */
    GP_OUTCOME_FAILED,     /* words say why */
    GP_OUTCOME_HUNG,       /* no answer in time: it may or may not have happened */
};

struct gp_change {
    bool wanted;
    bool anew; /* set it also where it is so already */
    struct gp_control_value value;
    /* The rest is a thread's until its GPU is done: gp_target_outcome() says whether it is. */
    enum gp_outcome outcome;
    int code;        /* of a failure: GP_E* */
    int driver_code; /* of a failure or a remark: the driver's own number, 0: none */
    char words[400]; /* of a failure, or a remark of the driver's */
    /* What is, afterwards; status NONE if it was not asked. */
    struct gp_setting after;
};

/* A GPU or MIG instance that was chosen. */
struct gp_target {
    unsigned index; /* of the GPU */
    bool is_mig;
    unsigned mig_index;
    char uuid[96];
    char bus[32];    /* of the GPU */
    char name[128];  /* safe */
    int code;        /* 0, or why the GPU is out: GP_E*, then words say it */
    int driver_code; /* of that: the driver's own number, 0: none */
    char words[400];
    bool is_asleep;  /* which is why it is out */
    bool left_alone; /* nothing is wanted of it: it is not read */
    bool tried;      /* changes were begun */
    struct gp_source_device *device;
    const struct gp_reading *reading; /* of a GPU: what was wanted of it; NULL if it is out */
    struct gp_setting settings[GP_CONTROL__COUNT];
    struct gp_change changes[GP_CONTROL__COUNT];
};

struct gp_changer;

/* Opens the source and takes hold of the chosen GPUs; the others are not waited for. GP_ENODEV:
 * none, or one that was asked for is not there. After GP_ETIMEOUT a thread is stuck, or none could
 * be had to close the source on: the process must end with _exit(). */
int gp_changer_new(const struct gp_changer_config *config, struct gp_changer **ret,
                   struct gp_err *err) GP_MUST_CHECK;

/* The chosen GPUs, in the driver's order, and MIG instances; owned by the changer. */
struct gp_target *gp_changer_targets(struct gp_changer *changer, size_t *ret_count);

/* What only the driver knows about the host. */
const struct gp_value *gp_changer_host(const struct gp_changer *changer);

/* Reads these controls (bit 1 << id) of every target that is not left alone into its settings. */
void gp_changer_read(struct gp_changer *changer, uint32_t controls);

/* Whether a change would do anything: what is as it should be, or will be after a reset, is left
 * alone. */
bool gp_target_needs(const struct gp_target *target, enum gp_control_id id);

/* Asks each device whether it takes its wanted changes: their code and words say what is wrong, err
 * the first of them. */
int gp_changer_check(struct gp_changer *changer, struct gp_err *err) GP_MUST_CHECK;

/* Applies the wanted changes of every target, in the order of the controls; the first that fails is
 * the last one tried on its GPU. */
void gp_changer_apply(struct gp_changer *changer);

/* Carries out a step of parting this GPU. GP_ETIMEOUT, or the driver's refusal. */
int gp_changer_part(struct gp_changer *changer, struct gp_target *target, struct gp_part *part,
                    struct gp_err *err) GP_MUST_CHECK;

/* How a wanted change went. After GP_OUTCOME_HUNG, and where the GPU is out, target->words say why
 * and the change is not looked at. */
enum gp_outcome gp_target_outcome(const struct gp_target *target, enum gp_control_id id);

/* Whether there may be something to undo behind it. */
bool gp_outcome_may_have_changed(enum gp_outcome outcome);

/* Closes the source. False if a thread is stuck (then nothing was freed), or none can be had to
 * close it on: then the driver's session is open still, and the process must end with _exit(). */
bool gp_changer_free(struct gp_changer *changer);

#endif
