/* Regular expressions that a user gives: POSIX extended ones, as in grep -E. */
#ifndef GP_JOBS_EXPRESSION_H
#define GP_JOBS_EXPRESSION_H

#include "base/util.h"

#include <regex.h>

struct gp_err;

/* Compiles one, with the flags of regcomp(3). GP_EUSAGE names the option that it is the value of:
 * it is malformed, or means something else in other languages, so that it would match nothing. */
int gp_expression_compile(regex_t *ret, const char *option, const char *text, int flags,
                          struct gp_err *err) GP_MUST_CHECK;

#endif
