/* Errors: functions return 0 or a negative GP_E* code; the message is in struct gp_err.
 *
 * One list defines the code, its exit status and its default text, so that each exit status is
 * defined once. A struct gp_err is filled only on failure; it may be NULL if the caller does not
 * need the message. */
#ifndef GP_BASE_ERR_H
#define GP_BASE_ERR_H

#include "base/util.h"

/*     name          exit  text */
#define GP_ERR_LIST(X)                                                                             \
    X(GP_EFAIL, 1, "failed")                                                                       \
    X(GP_EUSAGE, 2, "wrong usage")                                                                 \
    X(GP_ENODEV, 3, "no GPU found")                                                                \
    X(GP_EDRIVER, 4, "driver problem")                                                             \
    X(GP_EPERM, 5, "permission denied")                                                            \
    X(GP_EPARTIAL, 6, "some GPUs did not respond")                                                 \
    X(GP_ENOMEM, 1, "out of memory")                                                               \
    X(GP_ETOOBIG, 1, "larger than its limit")                                                      \
    X(GP_EIO, 1, "input or output failed")                                                         \
    X(GP_EFORMAT, 2, "malformed input")                                                            \
    X(GP_ETIMEOUT, 4, "no answer in time")                                                         \
    X(GP_EBUSY, 69, "not available now")                                                           \
    X(GP_EEXPIRED, 75, "not available in time")                                                    \
    X(GP_ENEVER, 78, "can never be satisfied")                                                     \
    X(GP_EINTR, 130, "interrupted")

enum gp_error {
    GP_OK = 0,
    GP_ERR__FLOOR = -1000, /* codes count up from here, all negative */
#define X(name, exit, text) name,
    GP_ERR_LIST(X)
#undef X
};

struct gp_err {
    int code;                /* GP_E*, 0 while empty */
    char text[400];          /* what failed, on what, why, and the remedy; no full stop */
    int driver_code;         /* the driver's own return code; 0: none */
    char driver_library[80]; /* the version of the driver's library, "" if it was not queried */
};

/* Fills err (may be NULL) and returns code, so that `return gp_err_set(err, GP_EIO, …)` works. */
int gp_err_set(struct gp_err *err, int code, const char *fmt, ...) GP_PRINTF(3, 4);

/* The code for a failed system call, so that each denied permission has the same exit status:
 * GP_EPERM if the error (errno) says so, `otherwise` if not. */
int gp_err_code(int error, int otherwise);

/* The message of a failed system call: fills err (may be NULL), and appends ": " and the text of
 * the error (errno). Returns its gp_err_code(). */
int gp_err_system(struct gp_err *err, int error, int otherwise, const char *fmt, ...)
    GP_PRINTF(4, 5);

/* Copies an error unchanged; returns its code. */
int gp_err_copy(struct gp_err *err, const struct gp_err *from);

/* The process exit status for a GP_E* code (0 for GP_OK). */
int gp_err_exit_status(int code);

/* The default text for a GP_E* code; never NULL. */
const char *gp_err_text(int code);

#endif
