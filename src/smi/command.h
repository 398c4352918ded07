/* The commands of nvidia-smi ("nvidia-smi CMD …"): reads their command lines into a request, which
 * says what to show or to change. The caller opens the source. All output is appended to a buffer,
 * for standard output, including errors; an exit status is one of nvidia-smi's: 0, an NVML return
 * code, 2 or 255. */
#ifndef GP_SMI_COMMAND_H
#define GP_SMI_COMMAND_H

#include "sample/changer.h"
#include "smi/args.h"
#include "smi/form.h"
#include "smi/message.h"
#include "smi/mig.h"
#include "smi/monitor.h"
#include "smi/nvlink.h"
#include "smi/platform.h"
#include "smi/topo.h"

struct gp_snapshot;
struct gp_strbuf;
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

/* NVML return codes. */
enum { GP_SMI_NVML_IN_USE = 19, GP_SMI_NVML_UNKNOWN = 999 };

/* Their values; NULL, false and 0: not given. */
struct gp_smi_common {
    const char *id, *sim, *root;
    bool sim_still, native;
    uint64_t timeout_ns;
};

/* `given` points to the first of them. Returns 0, or an exit status with the message appended. */
int gp_smi_take_common(const char *const *given, struct gp_smi_common *ret,
                       struct gp_strbuf *message) GP_MUST_CHECK;

/* How snapshots are shown, once or repeatedly. */
struct gp_smi_show {
    void (*want)(const void *ctx, struct gp_want *want);
    void (*print)(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                  const struct gp_snapshot *snapshot);
    /* NULL, or checks whether to stop with a message instead: an exit status, 0 to continue */
    int (*refuse)(const void *ctx, struct gp_strbuf *message, const struct gp_snapshot *snapshot);
    uint64_t interval_ns; /* 0: once */
    uint64_t count;       /* 0: no limit */
    const char *file;     /* truncated; NULL: standard output */
    bool native;
};

struct gp_smi_mig_change;

/* What a command line requests. Points into argv. */
struct gp_smi_request {
    struct gp_smi_common common;
    bool is_done; /* nothing remains but to print the buffer: an error, or the help */
    struct gp_smi_show show;
    void *ctx; /* for the functions of `show` */
    union {
        struct gp_smi_conf_compute conf_compute;
        struct gp_smi_monitor monitor;
        struct gp_smi_nvlink nvlink;
        struct gp_smi_topo topo;
    };
    const char *root; /* set by the caller: the prefix of the machine's files; NULL: none */
    struct gp_smi_mig mig;
    const struct gp_smi_mig_change *change; /* instead of showing anything; NULL: none */
    const char *gpu_profiles, *compute_profiles;
    bool with_compute;
};

/* "nvidia-smi CMD …": argv[0] is CMD. */
struct gp_smi_command {
    const char *name;
    /* Returns an exit status, which is final if is_done is set. */
    int (*read)(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);
    bool shows_samples; /* nothing else, so that it can show a recording */
};

/* The last one has no name. */
extern const struct gp_smi_command gp_smi_commands[];

/* A command of nvidia-smi that gpulse does not have. The last one has no name. */
struct gp_smi_missing {
    const char *name;
    const char *why;
    const char *instead; /* a command of gpulse that has some of it, or NULL */
};
extern const struct gp_smi_missing gp_smi_missing[];

/* ---- for the commands ---- */

/* The command line of "nvidia-smi CMD". */
struct gp_smi_syntax {
    const char *tool;    /* "nvidia-smi topo" */
    const char *summary; /* for the help */
    const struct gp_smi_option *options;
    int help;         /* index of -h */
    int common;       /* index of the first common option */
    bool has_default; /* something is shown without options; otherwise the help */
};

/* Parses the command line of a command, and handles the common options and the help, which is also
 * printed if nothing is asked for. True to
 * continue; otherwise the request is done. */
bool gp_smi_begin(const struct gp_smi_syntax *syntax, int argc, char **argv, const char **given,
                  struct gp_smi_request *ret, struct gp_strbuf *sb, int *ret_status) GP_MUST_CHECK;

/* These end the request; they return the exit status, with the message appended: for an invalid
 * value of an option, with words of one's own, and for options that cannot be combined. */
int gp_smi_end(struct gp_smi_request *request, int status);
int gp_smi_refuse_value(struct gp_smi_request *request, struct gp_strbuf *sb, const char *option,
                        const char *value);
int gp_smi_refuse(struct gp_smi_request *request, struct gp_strbuf *sb, int status,
                  const char *words);
#define GP_SMI_COMBINATION                                                                         \
    "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"
int gp_smi_refuse_combination(struct gp_smi_request *request, struct gp_strbuf *sb);

/* Appends why a selected GPU cannot be reached; returns the exit status. */
int gp_smi_say_unreachable(struct gp_strbuf *sb, const struct gp_smi_form *form,
                           const struct gp_target *target);

int gp_smi_read_c2c(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);
int gp_smi_read_clocks(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);
int gp_smi_read_conf_compute(int argc, char **argv, struct gp_smi_request *ret,
                             struct gp_strbuf *sb);
int gp_smi_read_dmon(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);
int gp_smi_read_encodersessions(int argc, char **argv, struct gp_smi_request *ret,
                                struct gp_strbuf *sb);
int gp_smi_read_fbcsessions(int argc, char **argv, struct gp_smi_request *ret,
                            struct gp_strbuf *sb);
int gp_smi_read_mig(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);
int gp_smi_read_nvlink(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);
int gp_smi_read_pmon(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);
int gp_smi_read_topo(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);
int gp_smi_read_vgpu(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb);

/* ---- changes of MIG instances ---- */

/* What the changer must read of each GPU. */
void gp_smi_mig_change_want(const struct gp_smi_request *request, struct gp_want *want);

/* Makes the changes in sequence; the first failure ends them. `flush` prints and empties the buffer
 * after each; it returns 0 or an exit status. Returns the exit status. */
int gp_smi_mig_change(const struct gp_smi_request *request, struct gp_changer *changer,
                      int (*flush)(struct gp_strbuf *sb), struct gp_strbuf *sb);

#endif
