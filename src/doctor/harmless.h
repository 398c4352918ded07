/* What of a machine's settings may be published: what is on these lists, and has a form that hides
 * nothing. Everything else may be a password. */
#ifndef GP_DOCTOR_HARMLESS_H
#define GP_DOCTOR_HARMLESS_H

#include "base/util.h"

struct gp_strbuf;

/* Appends "NAME=VALUE" of an environment variable whose name is on the list; of a value that is not
 * of the form that this one has, "NAME=(left out)"; of paths each folder whose name is well known,
 * DIR for the others. Returns false, with nothing appended, for any other variable. */
bool gp_harmless_variable(struct gp_strbuf *sb, const char *variable);

/* Tells of each folder in a variable of paths whose name is not well known: what is called so is
 * not to be named elsewhere either. */
void gp_harmless_unknown(const char *variable, void (*tell)(void *ctx, const char *name),
                         void *ctx);

/* Appends what of the kernel's command line concerns GPUs, memory or buses, and how many others
 * there are. */
void gp_harmless_cmdline(struct gp_strbuf *sb, const char *text, size_t length);

/* Appends the release and the kind of the kernel of /proc/version, without who has built it. */
void gp_harmless_kernel(struct gp_strbuf *sb, const char *text, size_t length);

/* Appends the lines of a file of settings without what stands behind '#'. */
void gp_harmless_settings(struct gp_strbuf *sb, const char *text, size_t length);

/* Appends the lines of a log that tell of errors or versions, without what they quote and without
 * what they call a host. */
void gp_harmless_log(struct gp_strbuf *sb, const char *text, size_t length);

#endif
