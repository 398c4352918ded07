/* Controls: what can be changed on a GPU, one description each.
 *
 * The value of a control is written as text ("350", "on", "3g.40gb,4g.40gb"); the same text is
 * typed, shown, saved (a single number as a number) and restored, and is what undoes a change. A
 * source reads and applies values; how they are written and what describes them is the same for
 * every source. */
#ifndef GP_SOURCE_CONTROL_H
#define GP_SOURCE_CONTROL_H

#include "model/value.h"

struct gp_err;
struct gp_source_device;
struct gp_strbuf;

/* In the order in which they are applied: what others depend on comes first. */
enum gp_control_id {
    GP_CONTROL_PERSISTENCE,
    GP_CONTROL_MIG_MODE,
    GP_CONTROL_MIG_INSTANCES,
    GP_CONTROL_COMPUTE_MODE,
    GP_CONTROL_POWER_LIMIT,
    GP_CONTROL_MODULE_POWER_LIMIT,
    GP_CONTROL_LOCK_GPU_CLOCKS,
    GP_CONTROL_LOCK_MEMORY_CLOCKS,
    GP_CONTROL_APPLICATION_CLOCKS,
    GP_CONTROL_AUTO_BOOST,
    GP_CONTROL_GPU_CLOCK_OFFSET,
    GP_CONTROL_MEMORY_CLOCK_OFFSET,
    GP_CONTROL_FAN_SPEED,
    GP_CONTROL_TARGET_TEMPERATURE,
    GP_CONTROL_ECC_MODE,
    GP_CONTROL_DRAM_ENCRYPTION,
    GP_CONTROL_OPERATION_MODE,
    GP_CONTROL_VIRTUALIZATION_MODE,
    GP_CONTROL_APP_CLOCKS_ACCESS,
    GP_CONTROL_AUTO_BOOST_ACCESS,
    GP_CONTROL_HOSTNAME,
    GP_CONTROL_ACCOUNTING_MODE,
    GP_CONTROL_ACCOUNTING_RECORDS,
    GP_CONTROL_ECC_COUNTERS,
    GP_CONTROL_NVLINK_COUNTERS,
    GP_CONTROL__COUNT
};

/* How a value is written. */
enum gp_control_kind {
    GP_CONTROL_SWITCH,   /* on, off */
    GP_CONTROL_CHOICE,   /* one of the choices */
    GP_CONTROL_WATTS,    /* 350, 350.5; kept in milliwatts */
    GP_CONTROL_RANGE,    /* MIN,MAX or one for both, in MHz */
    GP_CONTROL_PAIR,     /* MEMORY,GRAPHICS in MHz */
    GP_CONTROL_OFFSET,   /* MHz with a sign */
    GP_CONTROL_NUMBER,   /* without one */
    GP_CONTROL_FANS,     /* percent for all fans, or FAN:PERCENT,… */
    GP_CONTROL_PROFILES, /* comma list of MIG profiles, or none */
    GP_CONTROL_NAME,     /* letters, digits, dots, dashes; or none */
    GP_CONTROL_CLEAR,    /* one of the choices; what is read is a text about the counters */
};

struct gp_choice {
    const char *name;
    int64_t code;
};

struct gp_control {
    const char *name;
    const char *summary; /* what it changes; lower case, no full stop */
    const char *syntax;  /* of the value */
    const char *needs;   /* which GPUs and rights */
    const char *takes_effect;
    const char *lasts; /* how long it stays */
    enum gp_control_kind kind;
    const char *unit;                /* of the numbers, "" for none */
    const char *automatic;           /* the word for "as the driver likes it", or NULL */
    const struct gp_choice *choices; /* of CHOICE and CLEAR, ends with name NULL */
    bool has_tdp;                    /* GP_CLOCK_TDP */
    bool on_mig;                     /* a MIG instance has it too */
    bool is_volatile;    /* lost when the last program closes the GPU, without persistence mode */
    const char *loses;   /* what a change takes away that no other brings back, or NULL */
    const char *instead; /* what to use where drivers have given it up, or NULL */
    const char *warning; /* for who sets it to anything but `automatic`, or NULL */
};

extern const struct gp_control gp_control_table[GP_CONTROL__COUNT];

enum {
    GP_CONTROL_NUMBERS = 16,
    GP_CONTROL_TEXT_SIZE = 256,
    GP_CONTROL_NAME_MAX = 63, /* bytes */
    GP_FAN_AUTO = -1,         /* in FANS */
    GP_FAN_KEEP = -2,
    GP_CLOCK_TDP = -1, /* in RANGE: the clock that is held at the power limit, as both numbers */
};

struct gp_control_value {
    bool automatic;
    unsigned count; /* of the numbers */
    int64_t n[GP_CONTROL_NUMBERS];
    char text[GP_CONTROL_TEXT_SIZE]; /* of PROFILES, NAME, and what is read of CLEAR */
};

/* A control of one device as it stands. */
struct gp_setting {
    enum gp_status status; /* OK, or why there is nothing */
    int driver_code;       /* the driver's own number of that; 0: none */
    char words[160];       /* more on that, or on why it is not known; "" */
    bool known;            /* false: it can be set, but the driver does not tell what it is */
    bool has_pending;      /* another value waits for a reset */
    bool has_range;
    bool has_fallback;
    struct gp_control_value value;
    struct gp_control_value pending;
    struct gp_control_value fallback; /* the GPU's own default */
    int64_t min, max;                 /* of each number */
};

/* A step in parting a GPU by MIG. */
enum gp_part_step {
    GP_PART_CREATE_GPU, /* instance, as the next */
    GP_PART_CREATE_COMPUTE,
    GP_PART_DESTROY_COMPUTE,
    GP_PART_DESTROY_GPU,
};

struct gp_part {
    enum gp_part_step step;
    char profile[64];          /* of what is created: number or name; "": the whole GPU instance;
                                  of a GPU instance perhaps with its place: "19:4" */
    unsigned gpu_instance;     /* in which it is; told of one that is created */
    unsigned compute_instance; /* likewise */
    unsigned profile_id;       /* told of what is created, as is its name */
    char profile_name[96];
};

/* What a source does for controls; calls on one device come one at a time. */
struct gp_control_ops {
    /* The device of the n-th MIG instance that the last reading showed; NULL if it is gone. */
    struct gp_source_device *(*instance)(struct gp_source_device *device, size_t n);
    void (*read)(struct gp_source_device *device, enum gp_control_id id, struct gp_setting *ret);
    /* Whether the device takes the value, beyond gp_control_check(), without changing anything. */
    int (*check)(struct gp_source_device *device, enum gp_control_id id,
                 const struct gp_control_value *value, struct gp_err *err);
    /* Calls the setter, once. GP_EPERM, GP_EFAIL, GP_EDRIVER name the driver's call and answer;
     * after a success err->text and err->driver_code are a remark of the driver's, or "" and 0. */
    int (*apply)(struct gp_source_device *device, enum gp_control_id id,
                 const struct gp_control_value *value, struct gp_err *err);
    /* Carries out a step. Errors as those of apply. */
    int (*part)(struct gp_source_device *device, struct gp_part *part, struct gp_err *err);
};

/* By name of n bytes; GP_EUSAGE suggests the nearest. */
int gp_control_find(const char *name, size_t n, enum gp_control_id *ret,
                    struct gp_err *err) GP_MUST_CHECK;

/* Reads a value. GP_EUSAGE says what is expected. */
int gp_control_parse(enum gp_control_id id, const char *text, struct gp_control_value *ret,
                     struct gp_err *err) GP_MUST_CHECK;

/* Appends what gp_control_parse reads; with `unit` for people ("350 W"). */
void gp_control_format(struct gp_strbuf *sb, enum gp_control_id id,
                       const struct gp_control_value *value, bool unit);

/* Appends the value that takes a change from `old` to `wanted` back; false where there is no way
 * back: where the driver does not tell what was, the way is a reset, but that of a reset nobody
 * knows. */
bool gp_control_undo(struct gp_strbuf *sb, enum gp_control_id id, const struct gp_setting *old,
                     const struct gp_control_value *wanted);

/* Checks against the range of the device, and puts its own default in the place of "default" where
 * that is known. GP_EUSAGE states the range. */
int gp_control_check(enum gp_control_id id, const struct gp_setting *setting,
                     struct gp_control_value *value, struct gp_err *err) GP_MUST_CHECK;

/* Whether a device that has `is` needs no change to have `wanted`. Always false for CLEAR. */
bool gp_control_satisfies(enum gp_control_id id, const struct gp_control_value *is,
                          const struct gp_control_value *wanted);

#endif
