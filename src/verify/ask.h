/* Runs a program and reads what it prints, with a deadline: nvidia-smi can hang in the driver. */
#ifndef GP_VERIFY_ASK_H
#define GP_VERIFY_ASK_H

#include "base/util.h"

struct gp_err;
struct gp_strbuf;

/* Runs `program` (a path) with argv and without standard input, and appends its standard output to
 * `sb`; its standard error is discarded. It runs in its own process group, which is killed after
 * `timeout_ns`, or once *stopped is set. *ret_status is its exit status, or 128 and the number of
 * the signal that ended it. GP_EFAIL: it cannot be run; GP_ETIMEOUT; GP_EINTR; GP_ETOOBIG: it
 * prints more than `sb` may hold. */
int gp_ask(const char *program, char *const argv[], uint64_t timeout_ns,
           const volatile int *stopped, struct gp_strbuf *sb, int *ret_status,
           struct gp_err *err) GP_MUST_CHECK;

#endif
