/* nvidia-smi's command line: options with one dash and several letters; values follow after '=' or
 * as the next word. */
#ifndef GP_SMI_ARGS_H
#define GP_SMI_ARGS_H

#include "base/util.h"

struct gp_strbuf;

enum gp_smi_arg { GP_SMI_FLAG, GP_SMI_VALUE, GP_SMI_OPTIONAL };

struct gp_smi_option {
    const char *names; /* "-l --loop", space-separated; an empty one ends a table */
    enum gp_smi_arg arg;
    const char *section; /* heading in the help page */
    const char *value;   /* metavariable of the value; NULL: none */
    const char *help;
};

/* Parses argv[1..argc): given[i] is the value of options[i], "" for a flag or an omitted value,
 * NULL if it was not given. If an option is repeated, the last one wins. Values point into argv.
 * Those of a command ("nvidia-smi topo …") have other errors than those of nvidia-smi itself.
 * Returns 0, or an exit status after appending the error to `message`. */
int gp_smi_parse(const struct gp_smi_option *options, bool of_command, int argc, char **argv,
                 const char **given, struct gp_strbuf *message) GP_MUST_CHECK;

/* Appends the error that an option (`names` is as in its table) does not accept this value; returns
 * the exit status. */
int gp_smi_add_invalid(struct gp_strbuf *sb, const char *names, const char *value);

/* Appends an option and its help. */
void gp_smi_add_option(struct gp_strbuf *sb, const struct gp_smi_option *o);

/* Appends all options as a help page, section by section. */
void gp_smi_add_options(struct gp_strbuf *sb, const struct gp_smi_option *options);

#endif
