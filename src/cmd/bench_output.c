#include "cmd/bench_output.h"

#include "base/err.h"
#include "base/io.h"
#include "base/outfile.h"
#include "base/strbuf.h"
#include "bench/curve.h"
#include "cmd/app.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void gp_bench_tell(const char *text)
{
    (void)fprintf(stderr, "\r\033[Kgpulse: measuring: %.60s", text);
}

void gp_bench_tell_no_more(void)
{
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r\033[K");
}

void gp_bench_tell_aside(const char *text)
{
    gp_bench_tell_no_more();
    gp_io_print_note("gpulse", text);
}

int gp_bench_check_path(const char *path, struct gp_err *err)
{
    const struct gp_outfile_config config = {.path = path};
    return path ? gp_outfile_check(&config, err) : 0;
}

static int write_file(const char *path, const struct gp_strbuf *sb, struct gp_err *err)
{
    const struct gp_outfile_config config = {.path = path};
    struct gp_outfile file;
    if (sb->error)
        return gp_err_set(err, sb->error, "cannot write '%.200s': %s", path,
                          gp_err_text(sb->error));
    int r = gp_outfile_open(&file, &config, err);
    if (r < 0)
        return r;
    r = gp_outfile_write(&file, sb->buf, sb->len, err);
    int closed = gp_outfile_close(&file, r == 0 ? err : NULL);
    return r < 0 ? r : closed;
}

int gp_bench_print(const struct gp_bench *bench, const struct gp_bench_origin *origin,
                   const struct gp_bench_options *o, bool is_complete, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    int r = 0;
    if (o->save && !is_complete)
        gp_io_print_note("gpulse", "--save: nothing was written, as not everything was measured");
    if (o->save && is_complete) {
        gp_bench_add_json(&sb, bench, origin);
        r = write_file(o->save, &sb, err);
        gp_strbuf_reset(&sb);
    }
    if (r == 0 && o->svg && gp_bench_add_curve_svg(&sb, bench))
        r = write_file(o->svg, &sb, err);
    gp_strbuf_reset(&sb);
    if (strcmp(o->format, "json") == 0)
        gp_bench_add_json(&sb, bench, origin);
    else if (strcmp(o->format, "csv") == 0)
        gp_bench_add_csv(&sb, bench);
    else
        gp_bench_add_text(&sb, bench, origin, gp_io_columns(), o->ascii);
    int written = gp_app_write(STDOUT_FILENO, &sb, r == 0 ? err : NULL);
    gp_strbuf_fini(&sb);
    return r < 0 ? r : written;
}

int gp_bench_print_judgement(const struct gp_bench_session *s, const struct gp_bench_options *o,
                             const struct gp_bench_earlier *earlier, struct gp_err *err)
{
    static struct gp_bench_judgement j; /* large */
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_bench_judge(&s->bench, s->origin.host, earlier, (double)o->least_percent / 100, &j);
    gp_bench_add_judgement(&sb, &s->bench, earlier, &j);
    /* beside a document, it is a message */
    int r = gp_app_write(strcmp(o->format, "text") == 0 ? STDOUT_FILENO : STDERR_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    if (r < 0 || j.count > 0)
        return r < 0 ? r : 1;
    return gp_bench_is_incomplete(&s->bench, &j) ? GP_EPARTIAL : 0;
}
