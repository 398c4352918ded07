/* What of a machine's settings may be published: what is on these lists, and has a form that hides
 * nothing. Everything else may be a password. */
#ifndef GP_DOCTOR_HARMLESS_H
#define GP_DOCTOR_HARMLESS_H

#include "base/util.h"

struct gp_strbuf;

/* Each of these appends what may be published, and adds to *left_out how many pieces may not. */

/* Of a list of NUL-terminated "NAME=VALUE" the environment variables whose names are on the list;
 * of a value that does not have the form which this one has, "NAME=(left out)"; of paths each
 * folder whose name is well known, DIR for the others. */
void gp_harmless_variables(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* What of the kernel's command line concerns GPUs, memory or buses. */
void gp_harmless_cmdline(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* The release and the kind of the kernel of /proc/version, without who has built it. */
void gp_harmless_kernel(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* The lines of a file of settings, without comments. */
void gp_harmless_settings(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* The lines of a log about errors or versions, without what they quote and without what they call a
 * host. */
void gp_harmless_log(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* Reports each folder in a variable of paths whose name is not well known: it is hidden wherever
 * else it stands, too. */
void gp_harmless_unknown(const char *variable, void (*report)(void *ctx, const char *name),
                         void *ctx);

/* Whether a package of a distribution is one of the driver, of CUDA, or of the kernel. */
bool gp_harmless_package(const char *name);

#endif
