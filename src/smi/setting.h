/* The settings of nvidia-smi's command line: which control an option changes, how its value is
 * written, and what is said of how it went. Pure: src/cmd/smi_set.c carries them out. */
#ifndef GP_SMI_SETTING_H
#define GP_SMI_SETTING_H

#include "smi/args.h"
#include "smi/form.h"
#include "source/control.h"

/* X(id, kind of value, names, the value, help) */
#define GP_SMI_SETTINGS(X)                                                                         \
    X(SET_PERSISTENCE, GP_SMI_VALUE, "-pm --persistence-mode", "0|1", "persistence mode")          \
    X(SET_ECC, GP_SMI_VALUE, "-e --ecc-config", "0|1", "ECC, from the next reboot on")             \
    X(SET_ECC_ERRORS, GP_SMI_VALUE, "-p --reset-ecc-errors", "0|1",                                \
      "set the volatile (0) or aggregate (1) counters of ECC errors to zero")                      \
    X(SET_COMPUTE_MODE, GP_SMI_VALUE, "-c --compute-mode", "0|2|3",                                \
      "DEFAULT, PROHIBITED, EXCLUSIVE_PROCESS")                                                    \
    X(SET_OPERATION_MODE, GP_SMI_VALUE, "--gom", "0|1|2", "ALL_ON, COMPUTE, LOW_DP")               \
    X(SET_RESET, GP_SMI_OPTIONAL, "-r --gpu-reset", "bus",                                         \
      "reset the GPU: gpulse cannot, and says who is in the way")                                  \
    X(SET_GPU_CLOCKS, GP_SMI_VALUE, "-lgc --lock-gpu-clocks", "MIN,MAX",                           \
      "keep the graphics clock in this range of MHz, or at one clock")                             \
    X(SET_NO_GPU_CLOCKS, GP_SMI_FLAG, "-rgc --reset-gpu-clocks", NULL, "let it go again")          \
    X(SET_MEMORY_CLOCKS, GP_SMI_VALUE, "-lmc --lock-memory-clocks", "MIN,MAX",                     \
      "keep the memory clock in this range of MHz, or at one clock")                               \
    X(SET_NO_MEMORY_CLOCKS, GP_SMI_FLAG, "-rmc --reset-memory-clocks", NULL, "let it go again")    \
    X(SET_DEFERRED_CLOCKS, GP_SMI_VALUE, "-lmcd --lock-memory-clocks-deferred", "MHZ",             \
      "from the next start of the driver on: gpulse cannot")                                       \
    X(SET_NO_DEFERRED_CLOCKS, GP_SMI_FLAG, "-rmcd --reset-memory-clocks-deferred", NULL,           \
      "likewise")                                                                                  \
    X(SET_APP_CLOCKS, GP_SMI_VALUE, "-ac --applications-clocks", "MEMORY,GRAPHICS",                \
      "the clocks in MHz that programs run at, for drivers before 590")                            \
    X(SET_NO_APP_CLOCKS, GP_SMI_FLAG, "-rac --reset-applications-clocks", NULL,                    \
      "back to the default ones")                                                                  \
    X(SET_POWER_LIMIT, GP_SMI_VALUE, "-pl --power-limit", "WATTS", "the most power it may draw")   \
    X(SET_CUDA_CLOCKS, GP_SMI_VALUE, "-cc --cuda-clocks", "0|1", "gpulse cannot")                  \
    X(SET_ACCOUNTING, GP_SMI_VALUE, "-am --accounting-mode", "0|1",                                \
      "keep a record of what each process used")                                                   \
    X(SET_NO_ACCOUNTS, GP_SMI_FLAG, "-caa --clear-accounted-apps", NULL, "forget that record")     \
    X(SET_MIG, GP_SMI_VALUE, "-mig --multi-instance-gpu", "0|1", "MIG mode")                       \
    X(SET_TARGET_TEMPERATURE, GP_SMI_VALUE, "-gtt --gpu-target-temp", "CELSIUS",                   \
      "how hot it may get before the driver slows it down")                                        \
    X(SET_AUTO_BOOST, GP_SMI_VALUE, "--auto-boost-default", "0|1",                                 \
      "clocks above those for applications, of GPUs before Pascal")                                \
    X(SET_AUTO_BOOST_ACCESS, GP_SMI_VALUE, "--auto-boost-permission", "0|1",                       \
      "UNRESTRICTED, or RESTRICTED to root")                                                       \
    X(SET_APP_CLOCKS_ACCESS, GP_SMI_VALUE, "-acp --applications-clocks-permission", "0|1",         \
      "likewise, of -ac and -rac")                                                                 \
    X(SET_VIRTUALIZATION, GP_SMI_VALUE, "-vm --virt-mode", "3|4",                                  \
      "VGPU, VSGA: how a hypervisor lends the GPU")                                                \
    X(SET_DRAM_ENCRYPTION, GP_SMI_VALUE, "-den --dram-encryption", "0|1",                          \
      "encryption of its memory, from the next reboot on")                                         \
    X(SET_HOSTNAME, GP_SMI_VALUE, "--set-hostname", "NAME",                                        \
      "the name of the machine, which the GPU keeps")                                              \
    X(GET_HOSTNAME, GP_SMI_FLAG, "--get-hostname", NULL, "print that name")

/* With what may stand beside one of them. */
#define GP_SMI_SETTING_OPTIONS(X)                                                                  \
    GP_SMI_SETTINGS(X)                                                                             \
    X(SET_SCOPE, GP_SMI_VALUE, "-sc --scope", "0|1", "of -pl: of the GPU, or of its module")       \
    X(SET_MODE, GP_SMI_VALUE, "-m --mode", "0", "of -lgc: how the clock is kept")                  \
    X(SET_ERROR_ON_WARNING, GP_SMI_FLAG, "-eow --error-on-warning", NULL, "warnings are errors")   \
    X(SET_DRY_RUN, GP_SMI_FLAG, "--dry-run", NULL, "say what would change, and change nothing")

enum gp_smi_setting_id {
#define X(id, kind, names, value, help) GP_SMI_##id,
    GP_SMI_SETTING_OPTIONS(X)
#undef X
        GP_SMI_SETTING_OPTIONS__COUNT,
    GP_SMI_SETTING__COUNT = GP_SMI_SET_SCOPE,
};

/* A value as nvidia-smi writes it. */
struct gp_smi_word {
    const char *names;  /* "0 DISABLED", in any case; NULL ends a list */
    const char *text;   /* what the control reads; NULL: no control has it */
    const char *label;  /* "Disabled" */
    const char *verb;   /* "disable", or NULL */
    const char *notice; /* said before anything is done, or NULL */
};

/* The word that is given, or the first one where none is (NULL); NULL: there is no such word. */
const struct gp_smi_word *gp_smi_word_find(const struct gp_smi_word *words, const char *given);

/* --scope of a power limit. */
enum { GP_SMI_SCOPE_MODULE = 1 };
extern const struct gp_smi_word gp_smi_power_scopes[];

/* --mode of locked clocks: without `text`, no public call has it. */
extern const struct gp_smi_word gp_smi_clock_modes[];

struct gp_smi_setting {
    enum gp_control_id control;      /* GP_CONTROL__COUNT: no public call of the driver's does it */
    const struct gp_smi_word *words; /* of the value; NULL: what the control reads */
    const char *value;               /* of an option without one */
    const char *after;               /* said behind "All done." where something has changed */
    bool is_lost_unless_persistent;  /* and that is told */
    bool only_reads;                 /* and says what is */
};

extern const struct gp_smi_setting gp_smi_settings[GP_SMI_SETTING__COUNT];

/* How it went on one GPU. */
enum gp_smi_result {
    GP_SMI_DONE,
    GP_SMI_DONE_ALONE, /* without the daemon that should do it */
    GP_SMI_SAME,       /* was so already */
    GP_SMI_PENDING,
    GP_SMI_PENDING_IN_USE, /* until nobody uses the GPU */
    GP_SMI_INVALID,        /* the GPU does not take this value */
    GP_SMI_UNSUPPORTED,
    GP_SMI_DEPRECATED,
    GP_SMI_DENIED,
    GP_SMI_FAILED,
};

/* What NVML's answer is for a setting. */
enum gp_smi_result gp_smi_result_of(int driver_code);

/* What a line may speak of. */
struct gp_smi_saying {
    const char *gpu; /* PCI bus id */
    const struct gp_smi_word *word;
    enum gp_control_id control;
    const struct gp_control_value *value;
    const struct gp_setting *setting; /* as it was */
    const char *error;                /* NVML's words */
};

/* Finds what a value means: the control's value, and the word for it (NULL: it has none). 0, or an
 * exit status with the message appended. */
int gp_smi_setting_parse(enum gp_smi_setting_id id, enum gp_control_id control, const char *given,
                         struct gp_control_value *ret, const struct gp_smi_word **ret_word,
                         struct gp_strbuf *message) GP_MUST_CHECK;

/* Whether this nvidia-smi has a line of its own for such a result. */
bool gp_smi_setting_has(enum gp_smi_setting_id id, enum gp_smi_result result,
                        const struct gp_smi_form *form);

/* Appends what is said of a result. True if it is a warning, behind which the next GPU has its
 * turn; false: it is good, or an error that ends the command. */
bool gp_smi_setting_say(struct gp_strbuf *sb, enum gp_smi_setting_id id, enum gp_smi_result result,
                        const struct gp_smi_form *form, const struct gp_smi_saying *saying);

#endif
