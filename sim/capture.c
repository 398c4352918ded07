#include "sim/capture.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct sim_capture_row sim_capture_rows[] = {
#define CAPTURE(path, label, field) {path, label, field},
#include "sim/capture.def"
};
const size_t sim_capture_row_count = GP_ARRAY_LEN(sim_capture_rows);

int sim_capture_refuse(const struct sim_capture *capture, struct gp_err *err, const char *fmt, ...)
{
    char why[300];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return gp_err_set(err, GP_EFORMAT, "%s:%ld: %s", capture->path, capture->line, why);
}

char *sim_capture_line(struct sim_capture *capture)
{
    char *line = capture->next;
    char *limit = capture->file.buf + capture->file.len;
    if (line == limit)
        return NULL;
    char *end = memchr(line, '\n', (size_t)(limit - line));
    capture->next = end ? end + 1 : limit;
    capture->line++;
    if (!end)
        end = limit;
    while (end > line && strchr(" \t\r", end[-1]))
        end--;
    *end = '\0';
    return line;
}
