/* gpulse doctor --bundle: a report for a bug tracker as an archive. */
#ifndef GP_CMD_DOCTOR_BUNDLE_H
#define GP_CMD_DOCTOR_BUNDLE_H

#include "base/strbuf.h"
#include "doctor/redact.h"

struct gp_err;
struct gp_exam;

enum { GP_BUNDLE_FILES = 128, GP_BUNDLE_NAME_SIZE = 192 };

struct gp_bundle {
    struct {
        char name[GP_BUNDLE_NAME_SIZE];
        struct gp_strbuf text;
    } files[GP_BUNDLE_FILES];
    size_t count;
    struct gp_strbuf missing; /* a line for each thing that could not be read */
    struct gp_redactor redactor;
};

/* Adds a file; names, numbers and addresses in it are hidden. */
void gp_bundle_add(struct gp_bundle *bundle, const char *name, const char *text, size_t length);

/* The same, with the text as it is. */
void gp_bundle_add_as_is(struct gp_bundle *bundle, const char *name, const char *text);

/* Notes that something is not in it, and why. */
void gp_bundle_miss(struct gp_bundle *bundle, const char *name, const char *why);

/* Fills it with what is known of the machine: doctor_collect.c. */
void gp_bundle_collect(struct gp_bundle *bundle, struct gp_exam *exam);

/* GP_EUSAGE if the file has not a name of an archive that can be written. */
int gp_bundle_check(const char *path, struct gp_err *err) GP_MUST_CHECK;

/* Writes the archive of an exam that has been run, for its owner only: the whole of it, or nothing.
 * *ret_count: the files in it. GP_EIO, GP_ENOMEM. */
int gp_bundle_write(const char *path, struct gp_exam *exam, size_t *ret_count,
                    struct gp_err *err) GP_MUST_CHECK;

#endif
