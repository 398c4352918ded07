#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int code;
    int exit_status;
    const char *text;
} errors[] = {
#define X(name, exit, text) {name, exit, text},
    GP_ERR_LIST(X)
#undef X
};

static void fill(struct gp_err *err, int code, const char *fmt, va_list ap)
{
    (void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
    err->code = code;
    err->driver_code = 0;
    err->driver_library[0] = '\0';
}

int gp_err_set(struct gp_err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    fill(err, code, fmt, ap);
    va_end(ap);
    return code;
}

int gp_err_code(int error, int otherwise)
{
    return error == EACCES || error == EPERM ? GP_EPERM : otherwise;
}

int gp_err_system(struct gp_err *err, int error, int otherwise, const char *fmt, ...)
{
    const int code = gp_err_code(error, otherwise);
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    fill(err, code, fmt, ap);
    va_end(ap);
    const size_t used = strlen(err->text);
    (void)snprintf(err->text + used, sizeof(err->text) - used, ": %s", strerror(error));
    return code;
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
