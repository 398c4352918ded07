/* gpulse doctor --bundle: a report for a bug tracker as an archive. */
#ifndef GP_DOCTOR_BUNDLE_BUNDLE_H
#define GP_DOCTOR_BUNDLE_BUNDLE_H

#include "base/strbuf.h"
#include "doctor/bundle/redact.h"

struct gp_err;

enum { GP_BUNDLE_NAME_SIZE = 192 };

/* Removed before the redactor runs. */
enum gp_bundle_kind {
    GP_BUNDLE_VARIABLES,
    GP_BUNDLE_PARAMETERS,
    GP_BUNDLE_SETTINGS,
    GP_BUNDLE_LOG_LINES,
    GP_BUNDLE_PACKAGES,
    GP_BUNDLE__KINDS,
};

struct gp_bundle {
    struct gp_bundle_file {
        char name[GP_BUNDLE_NAME_SIZE];
        struct gp_strbuf text;
    } * files;
    size_t count;
    int error;                /* GP_ENOMEM: a file is missing */
    struct gp_strbuf missing; /* a line for each missing item, with the reason */
    size_t left_out[GP_BUNDLE__KINDS];
    struct gp_redactor redactor;
};

/* Adds a file; names, numbers and addresses in it are redacted. An empty one is listed as missing.
 */
void gp_bundle_add(struct gp_bundle *bundle, const char *name, const char *text, size_t length);

/* Likewise, without redaction. */
void gp_bundle_add_as_is(struct gp_bundle *bundle, const char *name, const char *text);

/* Records that an item is missing, and why. */
void gp_bundle_miss(struct gp_bundle *bundle, const char *name, const char *why);

/* GP_EUSAGE if the file name is not that of a supported archive. */
int gp_bundle_check(const char *path, struct gp_err *err) GP_MUST_CHECK;

/* An empty one; free it with gp_bundle_free(). GP_ENOMEM. */
int gp_bundle_new(struct gp_bundle **ret, struct gp_err *err) GP_MUST_CHECK;

/* Adds the table of contents, after everything else. GP_ENOMEM, GP_ETOOBIG: a file is missing. */
int gp_bundle_finish(struct gp_bundle *bundle, struct gp_err *err) GP_MUST_CHECK;

void gp_bundle_free(struct gp_bundle *bundle);

/* Appends the contents, what is missing and why, and what was removed. */
void gp_bundle_add_list(const struct gp_bundle *bundle, struct gp_strbuf *sb);

/* Writes it as an archive that only its owner may read: completely, or not at all. GP_EIO,
 * GP_ENOMEM. */
int gp_bundle_write(const struct gp_bundle *bundle, const char *path,
                    struct gp_err *err) GP_MUST_CHECK;

#endif
