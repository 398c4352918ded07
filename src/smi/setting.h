/* The settings of nvidia-smi's command line: the control that an option changes, the syntax of its
 * value, and the messages about the result. Pure; smi/set.c applies them. */
#ifndef GP_SMI_SETTING_H
#define GP_SMI_SETTING_H

#include "smi/args.h"
#include "smi/form.h"
#include "source/control.h"

/* X(id, kind of value, names, metavariable, help) */
#define GP_SMI_SETTINGS(X)                                                                         \
    X(SET_PERSISTENCE, GP_SMI_VALUE, "-pm --persistence-mode", "0|1", "set persistence mode")      \
    X(SET_ECC, GP_SMI_VALUE, "-e --ecc-config", "0|1", "enable or disable ECC, after a reboot")    \
    X(SET_ECC_ERRORS, GP_SMI_VALUE, "-p --reset-ecc-errors", "0|1",                                \
      "reset the volatile (0) or aggregate (1) ECC error counters")                                \
    X(SET_COMPUTE_MODE, GP_SMI_VALUE, "-c --compute-mode", "0|2|3",                                \
      "set the compute mode: DEFAULT, PROHIBITED, EXCLUSIVE_PROCESS")                              \
    X(SET_OPERATION_MODE, GP_SMI_VALUE, "--gom", "0|1|2",                                          \
      "set the operation mode: ALL_ON, COMPUTE, LOW_DP")                                           \
    X(SET_RESET, GP_SMI_OPTIONAL, "-r --gpu-reset", "bus",                                         \
      "reset the GPU (not supported by gpulse; lists the processes that use it)")                  \
    X(SET_GPU_CLOCKS, GP_SMI_VALUE, "-lgc --lock-gpu-clocks", "MIN,MAX",                           \
      "lock the graphics clock to this range of MHz, or to one clock")                             \
    X(SET_NO_GPU_CLOCKS, GP_SMI_FLAG, "-rgc --reset-gpu-clocks", NULL,                             \
      "unlock the graphics clock")                                                                 \
    X(SET_MEMORY_CLOCKS, GP_SMI_VALUE, "-lmc --lock-memory-clocks", "MIN,MAX",                     \
      "lock the memory clock to this range of MHz, or to one clock")                               \
    X(SET_NO_MEMORY_CLOCKS, GP_SMI_FLAG, "-rmc --reset-memory-clocks", NULL,                       \
      "unlock the memory clock")                                                                   \
    X(SET_DEFERRED_CLOCKS, GP_SMI_VALUE, "-lmcd --lock-memory-clocks-deferred", "MHZ",             \
      "lock the memory clock after the next driver load (not supported by gpulse)")                \
    X(SET_NO_DEFERRED_CLOCKS, GP_SMI_FLAG, "-rmcd --reset-memory-clocks-deferred", NULL,           \
      "likewise")                                                                                  \
    X(SET_APP_CLOCKS, GP_SMI_VALUE, "-ac --applications-clocks", "MEMORY,GRAPHICS",                \
      "set the application clocks in MHz, for drivers before 590")                                 \
    X(SET_NO_APP_CLOCKS, GP_SMI_FLAG, "-rac --reset-applications-clocks", NULL,                    \
      "reset the application clocks")                                                              \
    X(SET_POWER_LIMIT, GP_SMI_VALUE, "-pl --power-limit", "WATTS", "set the power limit")          \
    X(SET_CUDA_CLOCKS, GP_SMI_VALUE, "-cc --cuda-clocks", "0|1",                                   \
      "set the CUDA clocks (not supported by gpulse)")                                             \
    X(SET_ACCOUNTING, GP_SMI_VALUE, "-am --accounting-mode", "0|1",                                \
      "enable or disable process accounting")                                                      \
    X(SET_NO_ACCOUNTS, GP_SMI_FLAG, "-caa --clear-accounted-apps", NULL,                           \
      "clear the accounting records")                                                              \
    X(SET_MIG, GP_SMI_VALUE, "-mig --multi-instance-gpu", "0|1", "enable or disable MIG mode")     \
    X(SET_TARGET_TEMPERATURE, GP_SMI_VALUE, "-gtt --gpu-target-temp", "CELSIUS",                   \
      "set the target temperature")                                                                \
    X(SET_AUTO_BOOST, GP_SMI_VALUE, "--auto-boost-default", "0|1",                                 \
      "enable or disable auto boost, for GPUs before Pascal")                                      \
    X(SET_AUTO_BOOST_ACCESS, GP_SMI_VALUE, "--auto-boost-permission", "0|1",                       \
      "UNRESTRICTED, or RESTRICTED to root")                                                       \
    X(SET_APP_CLOCKS_ACCESS, GP_SMI_VALUE, "-acp --applications-clocks-permission", "0|1",         \
      "who may use -ac and -rac: UNRESTRICTED, or RESTRICTED to root")                             \
    X(SET_VIRTUALIZATION, GP_SMI_VALUE, "-vm --virt-mode", "3|4",                                  \
      "set the virtualization mode: VGPU, VSGA")                                                   \
    X(SET_DRAM_ENCRYPTION, GP_SMI_VALUE, "-den --dram-encryption", "0|1",                          \
      "enable or disable memory encryption, after a reboot")                                       \
    X(SET_HOSTNAME, GP_SMI_VALUE, "--set-hostname", "NAME", "set the hostname stored in the GPU")  \
    X(GET_HOSTNAME, GP_SMI_FLAG, "--get-hostname", NULL, "print the hostname stored in the GPU")

/* The settings and the options that modify them. */
#define GP_SMI_SETTING_OPTIONS(X)                                                                  \
    GP_SMI_SETTINGS(X)                                                                             \
    X(SET_SCOPE, GP_SMI_VALUE, "-sc --scope", "0|1", "with -pl: 0 for the GPU, 1 for its module")  \
    X(SET_MODE, GP_SMI_VALUE, "-m --mode", "0", "with -lgc: how the clock is locked")              \
    X(SET_ERROR_ON_WARNING, GP_SMI_FLAG, "-eow --error-on-warning", NULL,                          \
      "treat warnings as errors")                                                                  \
    X(SET_DRY_RUN, GP_SMI_FLAG, "--dry-run", NULL, "print what would change, and do nothing")

enum gp_smi_setting_id {
#define X(id, kind, names, value, help) GP_SMI_##id,
    GP_SMI_SETTING_OPTIONS(X)
#undef X
        GP_SMI_SETTING_OPTIONS__COUNT,
    GP_SMI_SETTING__COUNT = GP_SMI_SET_SCOPE,
};

/* A value in nvidia-smi's words. */
struct gp_smi_word {
    const char *names;  /* "0 DISABLED", case-insensitive; NULL ends a list */
    const char *text;   /* value for the control; NULL: no control supports it */
    const char *label;  /* "Disabled" */
    const char *verb;   /* "disable", or NULL */
    const char *notice; /* printed before the change, or NULL */
};

/* The word that was given, or the first one if none was given (NULL). NULL for an unknown word. */
const struct gp_smi_word *gp_smi_word_find(const struct gp_smi_word *words, const char *given);

/* --scope of a power limit. */
enum { GP_SMI_SCOPE_MODULE = 1 };
extern const struct gp_smi_word gp_smi_power_scopes[];

/* --mode of locked clocks; without `text`, no public call supports it. */
extern const struct gp_smi_word gp_smi_clock_modes[];

struct gp_smi_setting {
    enum gp_control_id control;      /* GP_CONTROL__COUNT: no public driver call supports it */
    const struct gp_smi_word *words; /* for the value; NULL: the control's syntax */
    const char *value;               /* for an option without a value */
    const char *after;               /* printed after "All done." if something has changed */
    bool is_lost_unless_persistent;  /* warn about that */
    bool only_reads;                 /* print the value, change nothing */
};

extern const struct gp_smi_setting gp_smi_settings[GP_SMI_SETTING__COUNT];

/* The result on one GPU. */
enum gp_smi_result {
    GP_SMI_DONE,
    GP_SMI_DONE_ALONE, /* without the daemon that should do it */
    GP_SMI_SAME,       /* already set */
    GP_SMI_PENDING,
    GP_SMI_PENDING_IN_USE, /* until no process uses the GPU */
    GP_SMI_INVALID,        /* the GPU does not accept this value */
    GP_SMI_UNSUPPORTED,
    GP_SMI_DEPRECATED,
    GP_SMI_DENIED,
    GP_SMI_FAILED,
};

/* The result for an NVML return code. */
enum gp_smi_result gp_smi_result_of(int driver_code);

/* The placeholders of a message. */
struct gp_smi_saying {
    const char *gpu; /* PCI bus id */
    const struct gp_smi_word *word;
    enum gp_control_id control;
    const struct gp_control_value *value;
    const struct gp_setting *setting; /* before the change */
    const char *error;                /* NVML's error text */
};

/* Parses a value into the control's value and its word (NULL: none). Returns 0, or an exit status
 * after appending the error to the message. */
int gp_smi_setting_parse(enum gp_smi_setting_id id, enum gp_control_id control, const char *given,
                         struct gp_control_value *ret, const struct gp_smi_word **ret_word,
                         struct gp_strbuf *message) GP_MUST_CHECK;

/* Whether this nvidia-smi has a specific message for such a result. */
bool gp_smi_setting_has(enum gp_smi_setting_id id, enum gp_smi_result result,
                        const struct gp_smi_form *form);

/* Appends the message for a result. Returns true if it is a warning, after which the next GPU
 * follows; false for a success, or for an error that ends the command. */
bool gp_smi_setting_say(struct gp_strbuf *sb, enum gp_smi_setting_id id, enum gp_smi_result result,
                        const struct gp_smi_form *form, const struct gp_smi_saying *saying);

#endif
