/* gpulse queue: GPU reservations and the waiting line. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/job_request.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/pick.h"
#include "jobs/queue.h"
#include "model/select.h"
#include "model/snapshot.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct queue_options {
    const char *format;
};

static const struct gp_opt options[] = {
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "table json",
     .offset = offsetof(struct queue_options, format), .help = "output format (default table)"},
    GP_OPT_END,
};

static int print(const struct gp_leases *leases, const struct gp_snapshot *snapshot,
                 struct gp_selection *selection, const char *format, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    if (strcmp(format, "json") == 0)
        gp_queue_add_json(&sb, leases, snapshot, selection);
    else if (gp_queue_add(&sb, leases, snapshot, selection, gp_io_columns()) == 0)
        (void)fprintf(stderr, "gpulse: no reservations%s; start a job with gpulse run -- COMMAND\n",
                      selection ? " of these GPUs" : "");
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static int queue_main(int argc, char **argv, struct gp_err *err)
{
    struct queue_options o = {.format = "table"};
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = {.mig = false};
    struct gp_sampler *sampler;
    struct gp_snapshot *snapshot = NULL;
    struct gp_leases leases = {.items = NULL};
    static struct gp_selection ids; /* large */
    struct gp_selection *selection = NULL;
    int positional;
    bool done;
    if (argc > 1 && strstr(argv[1], "cancel"))
        return gp_err_set(err, GP_EUSAGE,
                          "queue only shows jobs; to cancel one: kill PID, with the PID of its "
                          "row");
    int r = gp_app_parse(&gp_cmd_queue, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = gp_app_refuse_words(&gp_cmd_queue, positional, argv, err);
    if (r < 0)
        return r;
    if (gp_common()->id) {
        selection = &ids; /* only of rows: a row shows all GPUs of a job */
        r = gp_selection_parse(gp_common()->id, selection, err);
        gp_common()->id = NULL;
    }
    if (r == 0)
        r = gp_job_check_place(false, err);
    if (r < 0)
        return r;
    gp_pick_want(&want, false);
    r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = gp_sampler_tick(sampler, &snapshot, err);
    if (r == 0)
        r = gp_leases_read_settled(NULL, &leases, err);
    if (r == 0)
        r = gp_job_check_selection(selection, snapshot, err);
    if (r == 0)
        r = print(&leases, snapshot, selection, o.format, err);
    gp_leases_fini(&leases);
    gp_snapshot_free(snapshot);
    gp_app_close(sampler);
    return r;
}

const struct gp_cmd gp_cmd_queue = {
    .name = "queue",
    .summary = "show GPU reservations and the waiting line",
    .usage = "[options]",
    .description =
        "Lists the jobs of gpulse run that have reserved GPUs or wait for them, in the order of "
        "their requests. LINE is the place of a waiting job among those that wait; the lines below "
        "it say what keeps it from each GPU that it could use. GPUS are the reserved GPUs; for a "
        "waiting job, how many it needs, and of which. -i shows the jobs that hold or could use "
        "these GPUs. To cancel a job: kill PID. MEM is shown if some job shares GPUs: the memory "
        "reserved on each, or all if the job does not share. FOR is how long it has run or waited, "
        "LEFT how long it may still run (run --timeout), JOB its name or command. A suspended job "
        "keeps its reservation: its memory must fit again when it is resumed. To see why a GPU is "
        "not free: gpulse pick --explain.",
    .examples = "gpulse queue\tall reservations\n"
                "gpulse queue -f json\tfor scripts\n",
    .options = options,
    .no_loop = true,
    .run = queue_main,
};
