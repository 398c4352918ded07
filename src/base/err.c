#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    int code;
    int exit_status;
    const char *text;
} errors[] = {
#define X(name, exit, text) {name, exit, text},
    GP_ERR_LIST(X)
#undef X
};

int gp_err_set(struct gp_err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    err->code = code;
    err->driver_code = 0;
    err->driver_library[0] = '\0';
    return code;
}

int gp_err_of(int error, int otherwise)
{
    return error == EACCES || error == EPERM ? GP_EPERM : otherwise;
}

int gp_err_copy(struct gp_err *err, const struct gp_err *from)
{
    if (err)
        *err = *from;
    return from->code;
}

int gp_err_exit_status(int code)
{
    if (code == GP_OK)
        return 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(errors); i++)
        if (errors[i].code == code)
            return errors[i].exit_status;
    return 1;
}

const char *gp_err_text(int code)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(errors); i++)
        if (errors[i].code == code)
            return errors[i].text;
    return "unknown error";
}
