/* gpulse smi: opens the source for what the command line of nvidia-smi requests, and prints. All
 * output goes to standard output, including errors; an exit status is one of nvidia-smi's. */
#ifndef GP_CMD_SMI_H
#define GP_CMD_SMI_H

#include "smi/command.h"
#include "smi/set.h"

struct gp_strbuf;

/* Uses the values of the common options from here on. */
void gp_smi_use(const struct gp_smi_common *given);

/* ctx is passed to the functions of `show`. Returns an exit status; messages have been printed. */
int gp_smi_show(const struct gp_smi_show *show, void *ctx);

/* Shows or changes what a command requests; the same. */
int gp_smi_run(const struct gp_smi_command *command, int argc, char **argv);

/* Applies the options of a setting; the same. */
int gp_smi_run_set(struct gp_smi_set *set);

/* Prints the buffer and frees it; returns the status, or 255 if it cannot be written. */
int gp_smi_print(struct gp_strbuf *sb, int status);

#endif
