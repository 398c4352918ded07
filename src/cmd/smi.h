/* gpulse smi: what its commands share. Everything goes to standard output, messages too, and a
 * command gives an exit status of nvidia-smi's: 0, an NVML return code, 2 or 255. */
#ifndef GP_CMD_SMI_H
#define GP_CMD_SMI_H

#include "cmd/app.h"
#include "smi/args.h"
#include "smi/form.h"

struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

enum {
    GP_SMI_EXIT_USAGE = 2,
    GP_SMI_EXIT_NOT_FOUND = 6,
    GP_SMI_EXIT_OTHER = 255,
};

/* What is shown of snapshots, once or again and again. */
struct gp_smi_show {
    void (*want)(const void *ctx, struct gp_want *want);
    void (*print)(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                  const struct gp_snapshot *snapshot);
    void *ctx;
    struct gp_loop loop;
    const char *file; /* truncated; NULL: standard output */
    bool native;
};

/* Returns an exit status; messages have been printed. */
int gp_smi_show(const struct gp_smi_show *show);

/* Prints the buffer and frees it; returns the status, or 255 if it cannot be written. */
int gp_smi_end(struct gp_strbuf *sb, int status);

/* The options that gpulse has for every command stand first in its table, then its own ones. */
#define GP_SMI_COMMON_OPTIONS                                                                      \
    {"-h --help", GP_SMI_FLAG, NULL, "show this help"},                                            \
        {"--native", GP_SMI_FLAG, NULL, "the words of this driver where programs look for older"}, \
        {"--sim", GP_SMI_VALUE, "MACHINE", "show a simulated machine; see gpulse sim list"},       \
        {"--sim-still", GP_SMI_FLAG, NULL, "its values stand still"},                              \
        {"--root", GP_SMI_VALUE, "DIR", "read /proc, /sys and /etc below this directory"},         \
    {                                                                                              \
        "--timeout", GP_SMI_VALUE, "TIME", "how long to wait for a GPU that does not answer"       \
    }

enum {
    GP_SMI_OPT_HELP,
    GP_SMI_OPT_NATIVE,
    GP_SMI_OPT_SIM,
    GP_SMI_OPT_SIM_STILL,
    GP_SMI_OPT_ROOT,
    GP_SMI_OPT_TIMEOUT,
    GP_SMI_OPT_OWN, /* the first of the command's own */
};

/* Obeys the common ones. 0, or an exit status with the message appended. */
int gp_smi_take_common(const char *const *given, struct gp_smi_show *show,
                       struct gp_strbuf *message) GP_MUST_CHECK;

/* What "nvidia-smi CMD" understands. */
struct gp_smi_syntax {
    const char *tool;    /* "nvidia-smi topo" */
    const char *summary; /* for its help */
    const struct gp_smi_option *options;
};

/* Parses the command line of a command, obeys the common options and gives the help. True to go on;
 * false if all has been said, with the exit status. */
bool gp_smi_begin(const struct gp_smi_syntax *syntax, int argc, char **argv, const char **given,
                  struct gp_smi_show *show, int *ret_status) GP_MUST_CHECK;

/* Prints "ERROR: …" for a value that an option does not take; returns the exit status. */
int gp_smi_refuse_value(const struct gp_smi_syntax *syntax, const char *option, const char *value);

/* The same for options that are not for one another. */
int gp_smi_refuse_combination(void);

/* "nvidia-smi CMD …": argv[0] is CMD. */
struct gp_smi_command {
    const char *name;
    int (*run)(int argc, char **argv);
};

int gp_smi_nvlink(int argc, char **argv);
int gp_smi_topo(int argc, char **argv);

#endif
