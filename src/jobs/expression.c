#include "jobs/expression.h"

#include "base/err.h"

#include <string.h>

/* What Perl and Python understand. The C library takes \d for a plain d. */
static const struct {
    const char *text, *instead;
} foreign[] = {
    {"\\d", "[0-9]"},
    {"\\D", "[^0-9]"},
    {"(?", "(…), a plain group"},
};

static int check(const char *option, const char *text, struct gp_err *err)
{
    bool is_in_brackets = false;
    for (const char *at = text; *at; at++) {
        for (size_t i = 0; i < GP_ARRAY_LEN(foreign); i++)
            if (!(is_in_brackets && foreign[i].text[0] == '(') &&
                strncmp(at, foreign[i].text, strlen(foreign[i].text)) == 0)
                return gp_err_set(err, GP_EUSAGE,
                                  "%s '%.200s': a POSIX extended regular expression has no %s; use "
                                  "%s",
                                  option, text, foreign[i].text, foreign[i].instead);
        is_in_brackets = at[0] == '[' || (is_in_brackets && at[0] != ']');
        at += at[0] == '\\' && at[1]; /* \\d is a backslash and a d, \(? an optional parenthesis */
    }
    return 0;
}

int gp_expression_compile(regex_t *ret, const char *option, const char *text, int flags,
                          struct gp_err *err)
{
    char why[120];
    int r = check(option, text, err);
    int e = r == 0 ? regcomp(ret, text, REG_EXTENDED | flags) : 0;
    if (e == 0)
        return r;
    (void)regerror(e, ret, why, sizeof(why));
    return gp_err_set(err, GP_EUSAGE, "%s '%s': %s", option, text, why);
}
