/* The texts of option tables, piece by piece: what help, manual pages and completion share. */
#ifndef GP_BASE_CLI_DOC_H
#define GP_BASE_CLI_DOC_H

#include "base/cli.h"

enum { GP_CLI_TEXT_BYTES = 8192 };

/* One line of "left\tright" or "word" text, without its newline. */
struct gp_cli_line {
    const char *text;
    size_t len;
};

/* Moves the cursor over the next line; false at the end, or if the cursor is NULL. */
bool gp_cli_next_line(const char **cursor, struct gp_cli_line *ret);

/* Cuts a line at its tab; the right half is empty without one. */
void gp_cli_split_pair(struct gp_cli_line line, struct gp_cli_line *ret_left,
                       struct gp_cli_line *ret_right);

/* One paragraph of a description, up to an empty line. Lines that begin with a blank are shown
 * verbatim, so they form paragraphs of their own. */
bool gp_cli_next_paragraph(const char **cursor, struct gp_cli_line *ret);

/* The help text of an option; unless it or the label names the choices itself, they are added as
 * {auto|always|never} before its "(default …)". */
void gp_cli_add_option_text(struct gp_strbuf *sb, const struct gp_opt *opt);

/* Whether an option is shown with this command; NULL: with the program. */
bool gp_cli_is_listed(const struct gp_opt *opt, const struct gp_cmd *cmd);

bool gp_cli_is_hidden(const struct gp_cmd *cmd);
bool gp_cli_has_options(const struct gp_opt *options);

/* What follows the program's name: "[common options] COMMAND [arguments]". */
const char *gp_cli_program_usage(const struct gp_program *program);

#endif
