/* The monitor as plain lines: for screen readers, terminals without cursor addressing, and
 * files. */
#ifndef GP_TUI_PLAIN_H
#define GP_TUI_PLAIN_H

#include "out/procs.h"

struct gp_strbuf;

/* Appends the sample: a line for the machine, each GPU and each process. Fails with GP_ENOMEM. */
int gp_plain_add(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                 const struct gp_procs_options *options) GP_MUST_CHECK;

/* Appends the lines of `now` that are not in `before`, then an empty line if there were any. Fails
 * with GP_ENOMEM. */
int gp_plain_add_changes(struct gp_strbuf *sb, const struct gp_strbuf *now,
                         const struct gp_strbuf *before) GP_MUST_CHECK;

#endif
