/* gpulse-pipeline: started by gpulse run --pipeline, a separate program because it needs inih.
 *
 *   gpulse-pipeline GPULSE FILE FROM DIR FLAGS IDS
 *
 * FROM: the first step to run, "" to use the note; DIR: of the records, "" for a new one; FLAGS:
 * letters, r run all steps again, n only print what would run, q print less; IDS: the GPUs from
 * which all steps choose, "" for all. */
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/pipeline_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS = 7 };

static void tell(const char *text)
{
    gp_io_print_note("gpulse", text);
}

static void show(const char *text, size_t size)
{
    (void)!gp_io_write_all(STDERR_FILENO, text, size);
}

static int show_plan(struct gp_pipeline_run *run)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    gp_pipeline_tell_done(run);
    gp_pipeline_add_plan(&sb, run);
    int r = gp_io_write_all(STDOUT_FILENO, sb.buf, sb.len);
    gp_strbuf_fini(&sb);
    return r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct gp_pipeline_run run; /* large */
    struct gp_err err = {0};
    if (argc != ARGUMENTS) {
        (void)fprintf(stderr,
                      "gpulse-pipeline: internal program; use gpulse run --pipeline FILE\n");
        return 2;
    }
    run.gpulse = argv[1];
    run.restart = strchr(argv[5], 'r');
    run.dry_run = strchr(argv[5], 'n');
    run.quiet = strchr(argv[5], 'q');
    run.gpu_ids = argv[6];
    run.tell = tell;
    run.show = show;
    int r = gp_pipeline_open(&run, argv[2], argv[3], &err);
    if (r == 0)
        r = run.dry_run ? show_plan(&run) : gp_pipeline_run_all(&run, argv[4], &err);
    if (r < 0)
        gp_io_print_error("gpulse", &err);
    gp_pipeline_close(&run);
    return r < 0 ? gp_err_exit_status(r) : r;
}
