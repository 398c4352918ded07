/* Controls: the settings of a GPU that can be changed, and their descriptions.
 *
 * The value of a control is a text ("350", "on", "3g.40gb,4g.40gb"). The same text is typed, shown,
 * saved (a single number as a number), restored, and used to undo a change. A source reads and
 * applies values; their syntax and description are the same for all sources. */
#ifndef GP_SOURCE_CONTROL_H
#define GP_SOURCE_CONTROL_H

#include "model/value.h"

struct gp_err;
struct gp_source_device;
struct gp_strbuf;

/* In the order in which they are applied; a control follows those that it depends on. */
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

/* The syntax of a value. */
enum gp_control_kind {
    GP_CONTROL_SWITCH,   /* on, off */
    GP_CONTROL_CHOICE,   /* one of the choices */
    GP_CONTROL_WATTS,    /* 350, 350.5; stored in milliwatts */
    GP_CONTROL_RANGE,    /* MIN,MAX or one number for both, in MHz */
    GP_CONTROL_PAIR,     /* MEMORY,GRAPHICS in MHz */
    GP_CONTROL_OFFSET,   /* MHz with a sign */
    GP_CONTROL_NUMBER,   /* without a unit */
    GP_CONTROL_FANS,     /* percent for all fans, or FAN:PERCENT,… */
    GP_CONTROL_PROFILES, /* comma-separated list of MIG profiles, or none */
    GP_CONTROL_NAME,     /* letters, digits, dots, dashes; or none */
    GP_CONTROL_CLEAR,    /* one of the choices; reading it gives a text about the counters */
};

struct gp_choice {
    const char *name;
    int64_t code;
};

struct gp_control {
    const char *name;
    const char *summary; /* what it changes; lower case, no full stop */
    const char *syntax;  /* of the value */
    const char *needs;   /* required GPUs and permissions */
    const char *takes_effect;
    const char *lasts; /* how long the setting lasts */
    enum gp_control_kind kind;
    const char *unit;                /* of the numbers, "" for none */
    const char *automatic;           /* the word for "let the driver decide", or NULL */
    const struct gp_choice *choices; /* of CHOICE and CLEAR, terminated by a NULL name */
    bool has_tdp;                    /* accepts GP_CLOCK_TDP */
    bool on_mig;                     /* also available for a MIG instance */
    bool is_volatile;    /* lost when the last program closes the GPU, without persistence mode */
    const char *loses;   /* what a change destroys irrecoverably, or NULL */
    const char *instead; /* the replacement in drivers that have removed it, or NULL */
    const char *warning; /* warning for any value except `automatic`, or NULL */
};

extern const struct gp_control gp_control_table[GP_CONTROL__COUNT];

enum {
    GP_CONTROL_NUMBERS = 16,
    GP_CONTROL_TEXT_SIZE = 256,
    GP_CONTROL_NAME_MAX = 63, /* bytes */
    GP_FAN_AUTO = -1,         /* in FANS */
    GP_FAN_KEEP = -2,
    GP_CLOCK_TDP =
        -1, /* in RANGE: the clock that is sustained at the power limit, as both numbers */
};

struct gp_control_value {
    bool automatic;
    unsigned count; /* of the numbers */
    int64_t n[GP_CONTROL_NUMBERS];
    char text[GP_CONTROL_TEXT_SIZE]; /* for PROFILES and NAME, and the text read for CLEAR */
};

/* The current state of a control of one device. */
struct gp_setting {
    enum gp_status status; /* OK, or why it cannot be read */
    int driver_code;       /* the driver's error code for that; 0: none */
    char words[160];       /* details of that, or why the value is unknown; "" */
    bool known;            /* false: it can be set, but the driver does not report the value */
    bool has_pending;      /* another value is pending until a reset */
    bool has_range;
    bool has_fallback;
    struct gp_control_value value;
    struct gp_control_value pending;
    struct gp_control_value fallback; /* the GPU's default */
    int64_t min, max;                 /* of each number */
};

/* A step of partitioning a GPU with MIG. */
enum gp_part_step {
    GP_PART_CREATE_GPU, /* an instance; same for the next */
    GP_PART_CREATE_COMPUTE,
    GP_PART_DESTROY_COMPUTE,
    GP_PART_DESTROY_GPU,
};

struct gp_part {
    enum gp_part_step step;
    char profile[64]; /* of a new instance: id or name; "": the whole GPU instance. A GPU instance
                         may have a placement: "19:4" */
    unsigned gpu_instance;     /* the GPU instance that contains it; output if one is created */
    unsigned compute_instance; /* likewise */
    unsigned profile_id;       /* output for a new instance, like its name */
    char profile_name[96];
};

/* The controls of a source. Calls for one device are serialized. */
struct gp_control_ops {
    /* The device of the n-th MIG instance in the last reading; NULL if it is gone. */
    struct gp_source_device *(*instance)(struct gp_source_device *device, size_t n);
    void (*read)(struct gp_source_device *device, enum gp_control_id id, struct gp_setting *ret);
    /* Whether the device accepts the value, beyond gp_control_check(). Changes nothing. */
    int (*check)(struct gp_source_device *device, enum gp_control_id id,
                 const struct gp_control_value *value, struct gp_err *err);
    /* Calls the setter once. GP_EPERM, GP_EFAIL and GP_EDRIVER name the driver call and its error.
     * After a success, err->text and err->driver_code are a warning of the driver, or "" and 0. */
    int (*apply)(struct gp_source_device *device, enum gp_control_id id,
                 const struct gp_control_value *value, struct gp_err *err);
    /* Performs a partitioning step. Fails like apply. */
    int (*part)(struct gp_source_device *device, struct gp_part *part, struct gp_err *err);
};

/* Finds a control by a name of n bytes; GP_EUSAGE suggests the nearest. */
int gp_control_find(const char *name, size_t n, enum gp_control_id *ret,
                    struct gp_err *err) GP_MUST_CHECK;

/* Parses a value. GP_EUSAGE describes the expected syntax. */
int gp_control_parse(enum gp_control_id id, const char *text, struct gp_control_value *ret,
                     struct gp_err *err) GP_MUST_CHECK;

/* Appends the value in the syntax of gp_control_parse(); with `unit`, for people ("350 W"). */
void gp_control_format(struct gp_strbuf *sb, enum gp_control_id id,
                       const struct gp_control_value *value, bool unit);

/* Appends the value that undoes a change from `old` to `wanted`. Returns false if it cannot be
 * undone. If the driver does not report the old value, a reset undoes the change; a reset itself
 * then cannot be undone. */
bool gp_control_undo(struct gp_strbuf *sb, enum gp_control_id id, const struct gp_setting *old,
                     const struct gp_control_value *wanted);

/* Checks the value against the device's range, and replaces "default" by the device's default if
 * that is known. GP_EUSAGE states the range. */
int gp_control_check(enum gp_control_id id, const struct gp_setting *setting,
                     struct gp_control_value *value, struct gp_err *err) GP_MUST_CHECK;

/* Whether a device with the value `is` already satisfies `wanted`. Always false for CLEAR. */
bool gp_control_satisfies(enum gp_control_id id, const struct gp_control_value *is,
                          const struct gp_control_value *wanted);

#endif
