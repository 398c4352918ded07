#include "bench/log.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "bench/figure.h"
#include "out/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add_number(struct gp_strbuf *sb, int decimals, double value)
{
    gp_strbuf_addc(sb, ',');
    if (!isnan(value))
        gp_strbuf_addf(sb, "%.*f", decimals, value);
}

void gp_bench_log_add(struct gp_strbuf *sb, const char *gpu, const char *test, const char *what,
                      const struct gp_bench_observation *o)
{
    char time[GP_RFC3339_SIZE];
    gp_clock_rfc3339(o->wall_ns, time);
    gp_strbuf_addf(sb, "%s,%s,%s,", time, gpu, test);
    gp_text_add_cell(sb, what, ',');
    add_number(sb, 0, o->clock_mhz);
    add_number(sb, 0, o->clock_max_mhz);
    add_number(sb, 1, o->watts);
    add_number(sb, 0, o->celsius);
    gp_strbuf_addc(sb, ',');
    gp_bench_add_limits(sb, o->limits);
    add_number(sb, 0, o->ecc_corrected);
    add_number(sb, 0, o->ecc_uncorrected);
    add_number(sb, 0, o->other_pid ? (double)o->other_pid : (double)NAN);
    gp_strbuf_addc(sb, '\n');
}

/* What may have a reader, who must not delay the measurement. */
static int never_wait(const struct gp_bench_log *log, struct gp_err *err)
{
    int fd = log->file.fd;
    int flags = log->file.regular ? 0 : fcntl(fd, F_GETFL);
    if (log->file.regular || (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0))
        return 0;
    return gp_err_system(err, errno, GP_EIO, "cannot write '%s'", log->file.config.path);
}

/* Writes to what is no regular file. */
static int write_now(struct gp_bench_log *log, const char *data, size_t length, struct gp_err *err)
{
    ssize_t n = write(log->file.fd, data, length);
    while (n < 0 && errno == EINTR)
        n = write(log->file.fd, data, length);
    if (n == (ssize_t)length)
        return 0;
    /* a pipe takes a line whole or not at all */
    if (n >= 0 || errno != EAGAIN)
        return gp_err_set(err, gp_err_code(errno, GP_EIO), "cannot write '%s': %s",
                          log->file.config.path,
                          n < 0 ? strerror(errno) : "its reader is too slow");
    if (!log->has_gaps) {
        char text[GP_PATH_SIZE];
        (void)snprintf(text, sizeof(text), "'%s' lacks samples: its reader is too slow",
                       log->file.config.path);
        log->tell(text);
    }
    log->has_gaps = true;
    return 0;
}

static int write_lines(struct gp_bench_log *log, const char *data, size_t length,
                       struct gp_err *err)
{
    int r = 0;
    if (log->file.regular)
        return gp_outfile_write(&log->file, data, length, err);
    while (r == 0 && length > 0) {
        const char *end = memchr(data, '\n', length);
        const size_t n = end ? (size_t)(end - data) + 1 : length;
        r = write_now(log, data, n, err);
        data += n;
        length -= n;
    }
    return r;
}

int gp_bench_log_open(struct gp_bench_log *log, const char *path, void (*tell)(const char *text),
                      struct gp_err *err)
{
    static const char heading[] = "time,gpu,test,what,clock_mhz,clock_max_mhz,watts,celsius,limits,"
                                  "ecc_corrected,ecc_uncorrected,other_pid\n";
    const struct gp_outfile_config config = {.path = path};
    *log = (struct gp_bench_log){.tell = tell};
    int r = gp_outfile_open(&log->file, &config, err);
    if (r < 0)
        return r;
    r = never_wait(log, err);
    r = r < 0 ? r : write_lines(log, heading, strlen(heading), err);
    int closed = r < 0 ? gp_outfile_close(&log->file, NULL) : 0;
    return r < 0 ? r : closed;
}

static void fail(struct gp_bench_log *log, const struct gp_err *err)
{
    if (!log->is_broken)
        log->tell(err->text);
    log->is_broken = true;
}

void gp_bench_log_write(struct gp_bench_log *log, const struct gp_strbuf *lines)
{
    struct gp_err err = {0};
    if (lines->len > 0 && !log->is_broken && write_lines(log, lines->buf, lines->len, &err) < 0)
        fail(log, &err);
}

void gp_bench_log_close(struct gp_bench_log *log)
{
    struct gp_err err = {0};
    if (gp_outfile_close(&log->file, &err) < 0)
        fail(log, &err);
}
