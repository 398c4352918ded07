/* gpulse doctor --watch-log: follows the kernel log, and explains each line about a GPU. */
#include "cmd/app.h"
#include "cmd/doctor_verbs.h"
#include "doctor/explanation.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "doctor/files.h"
#include "doctor/kmsg.h"
#include "doctor/log.h"
#include "jobs/failure.h"
#include "out/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 8192 };

#define LOOK_NS (250 * GP_NS_PER_MS)

struct watch {
    const struct gp_doctor_options *options;
    struct gp_files files;
    const char *path;
    int fd;
    bool is_file; /* otherwise the device, where each read returns one record */
    char buf[LINE_SIZE];
    size_t length;
    bool is_within; /* inside a line that is too long, whose rest is discarded */
};

/* ---- a line ---- */

static int tell(const struct watch *w, const char *line, struct gp_err *err)
{
    struct gp_arena arena = {NULL};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_explanation e;
    struct gp_kmsg k;
    int r = 0;
    if (gp_kmsg_parse(line, &k) && gp_kmsg_is_notable(k.kind) &&
        gp_explain_line(&arena, line, &e)) {
        if (w->options->json) {
            gp_json_add(&sb, gp_doctor_explanation_json(&e, line), 0);
            gp_strbuf_addc(&sb, '\n');
        } else {
            gp_doctor_add_line(&sb, line);
            gp_doctor_add_explanation(&sb, &e, w->options->sources);
        }
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    }
    gp_strbuf_fini(&sb);
    gp_arena_fini(&arena);
    return r;
}

static int tell_lines(struct watch *w, struct gp_err *err)
{
    char *start = w->buf, *end;
    int r = 0;
    while (r == 0 && (end = memchr(start, '\n', w->length - (size_t)(start - w->buf)))) {
        *end = '\0';
        if (!w->is_within)
            r = tell(w, start, err);
        w->is_within = false;
        /* A record of the device continues with device names. */
        start = w->is_file ? end + 1 : w->buf + w->length;
    }
    w->length -= (size_t)(start - w->buf);
    if (w->length + 1 == sizeof(w->buf)) {
        w->is_within = true;
        w->length = 0;
    }
    memmove(w->buf, start, w->length);
    return r;
}

/* ---- the log ---- */

static int open_log(struct watch *w, struct gp_err *err)
{
    struct stat st;
    w->fd = gp_log_open(&w->files, &w->path);
    if (w->fd < 0)
        return gp_err_set(err, w->fd == -ENOENT ? GP_EFAIL : GP_EPERM,
                          "cannot read the kernel log: %s; run as root, or with systemd as a "
                          "member of group adm: journalctl -kf | gpulse doctor explain -",
                          strerror(-w->fd));
    if (fstat(w->fd, &st) < 0)
        return gp_err_set(err, GP_EIO, "cannot read %s: %s", w->path, strerror(errno));
    w->is_file = S_ISREG(st.st_mode);
    return 0;
}

/* Whether the file was replaced or truncated: logs are rotated. */
static bool is_replaced(const struct watch *w)
{
    struct stat named, open;
    if (!w->is_file || gp_files_stat(&w->files, w->path, &named) < 0 || fstat(w->fd, &open) < 0)
        return false;
    return named.st_ino != open.st_ino || named.st_dev != open.st_dev ||
           open.st_size < lseek(w->fd, 0, SEEK_CUR);
}

static int reopen(struct watch *w, struct gp_err *err)
{
    (void)close(w->fd);
    w->length = 0;
    w->is_within = false;
    return open_log(w, err);
}

/* Reads what is available; GP_EINTR after a signal. */
static int follow(struct watch *w, struct gp_err *err)
{
    for (;;) {
        ssize_t n = read(w->fd, w->buf + w->length, sizeof(w->buf) - 1 - w->length);
        int r = 0;
        if (n > 0) {
            w->length += (size_t)n;
            r = tell_lines(w, err);
        } else if (n < 0 && errno != EINTR && errno != EAGAIN && errno != EPIPE) {
            r = gp_err_set(err, GP_EIO, "cannot read %s: %s", w->path, strerror(errno));
        } else if (n == 0 && is_replaced(w)) {
            r = reopen(w, err);
        } else if (n == 0 || errno == EAGAIN) {
            r = gp_app_sleep(NULL, gp_clock_mono_ns() + LOOK_NS, w->is_file ? -1 : w->fd,
                             STDOUT_FILENO);
        }
        if (r < 0)
            return r;
    }
}

int gp_doctor_watch(const struct gp_doctor_options *o, struct gp_err *err)
{
    static struct watch w; /* large */
    char note[GP_PATH_SIZE + 64];
    w.options = o;
    int r = gp_files_open(&w.files, gp_app_prefix(), err);
    if (r < 0)
        return r;
    r = open_log(&w, err);
    if (r == 0) {
        gp_failure_prepare();
        gp_app_catch_signals();
        (void)lseek(w.fd, 0, SEEK_END); /* an exam covers the earlier lines */
        (void)snprintf(note, sizeof(note), "follows %s", w.path);
        gp_io_print_note("gpulse", note);
        r = follow(&w, err);
    }
    if (w.fd >= 0)
        (void)close(w.fd);
    gp_files_close(&w.files);
    return r;
}
