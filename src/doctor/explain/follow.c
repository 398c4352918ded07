#include "doctor/explain/follow.h"

#include "base/arena.h"
#include "base/err.h"
#include "doctor/explain/explain_line.h"
#include "doctor/readers/kmsg.h"
#include "doctor/readers/log.h"
#include "jobs/failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- a line ---- */

static int tell(const struct gp_follow *f, const char *line, struct gp_err *err)
{
    struct gp_arena arena = {NULL};
    struct gp_explanation e;
    struct gp_kmsg k;
    int r = 0;
    if (gp_kmsg_parse(line, &k) && gp_kmsg_is_notable(k.kind) && gp_explain_line(&arena, line, &e))
        r = f->tell(f->context, line, &e, err);
    gp_arena_fini(&arena);
    return r;
}

static int tell_lines(struct gp_follow *f, struct gp_err *err)
{
    char *start = f->buf, *end;
    int r = 0;
    while (r == 0 && (end = memchr(start, '\n', f->length - (size_t)(start - f->buf)))) {
        *end = '\0';
        if (!f->is_within)
            r = tell(f, start, err);
        f->is_within = false;
        /* A record of the device continues with device names. */
        start = f->is_file ? end + 1 : f->buf + f->length;
    }
    f->length -= (size_t)(start - f->buf);
    if (f->length + 1 == sizeof(f->buf)) {
        f->is_within = true;
        f->length = 0;
    }
    memmove(f->buf, start, f->length);
    return r;
}

/* ---- the log ---- */

static int open_log(struct gp_follow *f, struct gp_err *err)
{
    struct stat st;
    f->fd = gp_log_open(&f->files, &f->path);
    if (f->fd < 0)
        return gp_err_set(err, f->fd == -ENOENT ? GP_EFAIL : GP_EPERM,
                          "cannot read the kernel log: %s; run as root, or with systemd as a "
                          "member of group adm: journalctl -kf | gpulse doctor explain -",
                          strerror(-f->fd));
    if (fstat(f->fd, &st) < 0)
        return gp_err_system(err, errno, GP_EIO, "cannot read %s", f->path);
    f->is_file = S_ISREG(st.st_mode);
    return 0;
}

/* Whether the file was replaced or truncated: logs are rotated. */
static bool is_replaced(const struct gp_follow *f)
{
    struct stat named, open;
    if (!f->is_file || gp_files_stat(&f->files, f->path, &named) < 0 || fstat(f->fd, &open) < 0)
        return false;
    return named.st_ino != open.st_ino || named.st_dev != open.st_dev ||
           open.st_size < lseek(f->fd, 0, SEEK_CUR);
}

static int reopen(struct gp_follow *f, struct gp_err *err)
{
    (void)close(f->fd);
    f->length = 0;
    f->is_within = false;
    return open_log(f, err);
}

int gp_follow_open(struct gp_follow *f, const char *root, struct gp_err *err)
{
    f->fd = -1;
    int r = gp_files_open(&f->files, root, err);
    if (r == 0)
        r = open_log(f, err);
    if (r < 0)
        return r;
    gp_failure_prepare();
    (void)lseek(f->fd, 0, SEEK_END); /* an exam covers the earlier lines */
    return 0;
}

int gp_follow_read(struct gp_follow *f, struct gp_err *err)
{
    int r = 0;
    while (r == 0) {
        ssize_t n = read(f->fd, f->buf + f->length, sizeof(f->buf) - 1 - f->length);
        if (n > 0) {
            f->length += (size_t)n;
            r = tell_lines(f, err);
        } else if (n < 0 && errno != EINTR && errno != EAGAIN && errno != EPIPE) {
            r = gp_err_system(err, errno, GP_EIO, "cannot read %s", f->path);
        } else if (n == 0 && is_replaced(f)) {
            r = reopen(f, err);
        } else if (n == 0 || errno == EAGAIN) {
            return 0;
        }
    }
    return r;
}

void gp_follow_close(struct gp_follow *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    gp_files_close(&f->files);
}
