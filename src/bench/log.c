#include "bench/log.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "bench/figure.h"
#include "out/text.h"

#include <math.h>
#include <string.h>

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
    r = gp_outfile_write(&log->file, heading, strlen(heading), err);
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
    if (lines->len > 0 && !log->is_broken &&
        gp_outfile_write(&log->file, lines->buf, lines->len, &err) < 0)
        fail(log, &err);
}

void gp_bench_log_close(struct gp_bench_log *log)
{
    struct gp_err err = {0};
    if (gp_outfile_close(&log->file, &err) < 0)
        fail(log, &err);
}
