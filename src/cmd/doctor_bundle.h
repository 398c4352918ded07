/* gpulse doctor --bundle: a report for a bug tracker as an archive. */
#ifndef GP_CMD_DOCTOR_BUNDLE_H
#define GP_CMD_DOCTOR_BUNDLE_H

#include "base/strbuf.h"
#include "doctor/redact.h"

struct gp_err;
struct gp_exam;

enum { GP_BUNDLE_NAME_SIZE = 192 };

/* What is left out before the redactor sees it. */
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
    struct gp_strbuf missing; /* a line for each thing that is not in it, with the reason */
    size_t left_out[GP_BUNDLE__KINDS];
    struct gp_redactor redactor;
};

/* Adds a file; names, numbers and addresses in it are hidden. An empty one is missing. */
void gp_bundle_add(struct gp_bundle *bundle, const char *name, const char *text, size_t length);

/* The same, with the text as it is. */
void gp_bundle_add_as_is(struct gp_bundle *bundle, const char *name, const char *text);

/* Notes that something is not in it, and why. */
void gp_bundle_miss(struct gp_bundle *bundle, const char *name, const char *why);

/* Fills it with what is known of the machine: doctor_collect.c. */
void gp_bundle_collect(struct gp_bundle *bundle, struct gp_exam *exam);

/* GP_EUSAGE if the file has not a name of an archive that can be written. */
int gp_bundle_check(const char *path, struct gp_err *err) GP_MUST_CHECK;

/* Makes a bundle of an exam that has been run; free it with gp_bundle_free(). GP_ENOMEM,
 * GP_ETOOBIG. */
int gp_bundle_new(struct gp_exam *exam, struct gp_bundle **ret, struct gp_err *err) GP_MUST_CHECK;
void gp_bundle_free(struct gp_bundle *bundle);

/* Appends what is in it, what is not and why, and what was taken out. */
void gp_bundle_add_list(const struct gp_bundle *bundle, struct gp_strbuf *sb);

/* Writes it as an archive, for its owner only: the whole of it, or nothing. GP_EIO, GP_ENOMEM. */
int gp_bundle_write(const struct gp_bundle *bundle, const char *path,
                    struct gp_err *err) GP_MUST_CHECK;

#endif
