/* gpulse smi: what its commands share. All output goes to standard output, including errors, and a
 * command returns an exit status of nvidia-smi's: 0, an NVML return code, 2 or 255. */
#ifndef GP_CMD_SMI_H
#define GP_CMD_SMI_H

#include "cmd/app.h"
#include "smi/args.h"
#include "smi/form.h"
#include "smi/message.h"
#include "smi/setting.h"

struct gp_err;
struct gp_snapshot;
struct gp_strbuf;
struct gp_target;
struct gp_want;

/* The last options in every command's table: -i and gpulse's own. X(id, kind of value, names,
 * value, help) */
#define GP_SMI_COMMON_OPTIONS(X)                                                                   \
    X(ID, GP_SMI_VALUE, "-i --id -g", "GPUS",                                                      \
      "select these GPUs: a comma-separated list of indices, UUIDs, serial numbers or PCI "        \
      "addresses")                                                                                 \
    X(NATIVE, GP_SMI_FLAG, "--native", NULL,                                                       \
      "label the versions as driver 610 does; some programs expect the older labels")              \
    X(SIM, GP_SMI_VALUE, "--sim", "MACHINE", "use a simulated machine: see gpulse sim list")       \
    X(SIM_STILL, GP_SMI_FLAG, "--sim-still", NULL, "freeze the simulated values")                  \
    X(ROOT, GP_SMI_VALUE, "--root", "DIR", "read /proc, /sys and /etc below DIR")                  \
    X(TIMEOUT, GP_SMI_VALUE, "--timeout", "TIME",                                                  \
      "wait up to TIME for a GPU that does not respond (default 3s, for settings 30s)")

/* Applies them; `given` points to the first of them. Returns 0, or an exit status with the message
 * appended. */
int gp_smi_take_common(const char *const *given, bool *ret_native,
                       struct gp_strbuf *message) GP_MUST_CHECK;

/* How snapshots are shown, once or repeatedly. */
struct gp_smi_show {
    void (*want)(const void *ctx, struct gp_want *want);
    void (*print)(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                  const struct gp_snapshot *snapshot);
    /* NULL, or checks whether to stop with a message instead: an exit status, 0 to continue */
    int (*refuse)(const void *ctx, struct gp_strbuf *message, const struct gp_snapshot *snapshot);
    struct gp_loop loop;
    const char *file; /* truncated; NULL: standard output */
    bool native;
};

/* ctx is passed to the functions of `show`. Returns an exit status; messages have been printed. */
int gp_smi_show(const struct gp_smi_show *show, void *ctx);

/* Prints the buffer and frees it; returns the status, or 255 if it cannot be written. */
int gp_smi_end(struct gp_strbuf *sb, int status);

/* Prints the buffer so far; returns 0, or an exit status. */
int gp_smi_flush(struct gp_strbuf *sb) GP_MUST_CHECK;

/* Prints nvidia-smi's message for an error; returns its exit status. */
int gp_smi_explain(const struct gp_err *err);

/* Settings; `given` is indexed by enum gp_smi_setting_id. Applying one returns an exit status, with
 * everything printed; `others`: an option is given that cannot be combined with it. */
bool gp_smi_has_setting(const char *const *given);
int gp_smi_set(const char *const *given, bool others);

/* Appends why a selected GPU cannot be reached; returns the exit status. */
int gp_smi_say_unreachable(struct gp_strbuf *sb, const struct gp_smi_form *form,
                           const struct gp_target *target);

/* The command line of "nvidia-smi CMD". */
struct gp_smi_syntax {
    const char *tool;    /* "nvidia-smi topo" */
    const char *summary; /* for the help */
    const struct gp_smi_option *options;
    int help;   /* index of -h */
    int common; /* index of the first common option */
};

/* Parses the command line of a command, and handles the common options and the help. True to
 * continue; false if everything was printed, with the exit status. */
bool gp_smi_begin(const struct gp_smi_syntax *syntax, int argc, char **argv, const char **given,
                  struct gp_smi_show *show, int *ret_status) GP_MUST_CHECK;

/* Prints "ERROR: …" for an invalid value of an option; returns the exit status. */
int gp_smi_refuse_value(const struct gp_smi_syntax *syntax, const char *option, const char *value);

/* The same for options that cannot be combined. */
#define GP_SMI_COMBINATION                                                                         \
    "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"
int gp_smi_refuse_combination(void);

/* "nvidia-smi CMD …": argv[0] is CMD. */
struct gp_smi_command {
    const char *name;
    int (*run)(int argc, char **argv);
};

int gp_smi_run_c2c(int argc, char **argv);
int gp_smi_run_clocks(int argc, char **argv);
int gp_smi_run_conf_compute(int argc, char **argv);
int gp_smi_run_dmon(int argc, char **argv);
int gp_smi_run_encodersessions(int argc, char **argv);
int gp_smi_run_fbcsessions(int argc, char **argv);
int gp_smi_run_mig(int argc, char **argv);
int gp_smi_run_nvlink(int argc, char **argv);
int gp_smi_run_pmon(int argc, char **argv);
int gp_smi_run_topo(int argc, char **argv);
int gp_smi_run_vgpu(int argc, char **argv);

#endif
