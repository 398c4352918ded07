/* The parts of a machine's settings that may be published: those on these lists whose form cannot
 * hide anything. Everything else may be a password. */
#ifndef GP_DOCTOR_BUNDLE_HARMLESS_H
#define GP_DOCTOR_BUNDLE_HARMLESS_H

#include "base/util.h"

struct gp_strbuf;

/* Each function appends what may be published, and adds the number of pieces that may not to
 * *left_out. */

/* From a list of NUL-terminated "NAME=VALUE", the environment variables whose names are on the
 * list. A value without the expected form becomes "NAME=(left out)"; in path lists each well-known
 * directory is kept, and the others become DIR. */
void gp_harmless_variables(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* The kernel command line, as far as it concerns GPUs, memory or buses. */
void gp_harmless_cmdline(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* The release and the kind of the kernel from /proc/version, without the builder. */
void gp_harmless_kernel(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* The lines of a settings file, without comments. */
void gp_harmless_settings(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* The log lines about errors or versions, without quoted texts and host names. */
void gp_harmless_log(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

/* Reports each directory in a path variable whose name is not well known, so that it is hidden
 * everywhere else, too. */
void gp_harmless_unknown(const char *variable, void (*report)(void *ctx, const char *name),
                         void *ctx);

/* harmless_package.c: whether a distribution package belongs to the driver, CUDA, or the kernel. */
bool gp_harmless_package(const char *name);

#endif
