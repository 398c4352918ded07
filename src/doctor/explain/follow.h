/* Follows the kernel log, across rotations, and explains each new line about a GPU. */
#ifndef GP_DOCTOR_EXPLAIN_FOLLOW_H
#define GP_DOCTOR_EXPLAIN_FOLLOW_H

#include "doctor/explain/explain.h"
#include "doctor/files.h"

struct gp_err;

enum { GP_FOLLOW_LINE_SIZE = 8192 };

/* Large: make it static, or allocate it. */
struct gp_follow {
    /* Called with each line about a GPU, and its explanation, which is valid only during the call.
     * An error ends the reading. */
    int (*tell)(void *context, const char *line, const struct gp_explanation *e,
                struct gp_err *err);
    void *context;
    struct gp_files files;
    const char *path; /* of the log */
    int fd;
    bool is_file; /* otherwise the device, where each read returns one record, and which can be
                     polled */
    char buf[GP_FOLLOW_LINE_SIZE];
    size_t length;
    bool is_within; /* inside a line that is too long, whose rest is discarded */
};

/* Opens the log at its end; `tell` must be set. root: prefix, "" or NULL for none. GP_EPERM,
 * GP_EFAIL, GP_EIO: it cannot be read. Close it in any case. */
int gp_follow_open(struct gp_follow *f, const char *root, struct gp_err *err) GP_MUST_CHECK;

/* Reads what is there. GP_EIO, and the errors of `tell`. */
int gp_follow_read(struct gp_follow *f, struct gp_err *err) GP_MUST_CHECK;

void gp_follow_close(struct gp_follow *f);

#endif
