/* gpulse pick: chooses free GPUs and prints their ids. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/job_request.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"

#include <string.h>
#include <unistd.h>

struct pick_options {
    struct gp_job_options job;
    uint64_t at_most;
    uint64_t wait_ns;
    const char *format;
    bool explain;
};

#define OPT(field) offsetof(struct pick_options, field)

static const struct gp_opt options[] = {
    GP_JOB_ROWS(struct pick_options, job),
    {0, "at-most", NULL, GP_OPT_U64, "N", .offset = OPT(at_most),
     .help = "pick up to N free GPUs, but at least --gpus"},
    {'w', "wait", NULL, GP_OPT_DURATION, "TIME", "36500d", .offset = OPT(wait_ns),
     .help = "wait for free GPUs, up to TIME if given (default: do not wait)"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "list export json",
     .offset = OPT(format),
     .help = "output format: list (2,5), export (a line for the shell) or json (with all reasons) "
             "(default list)"},
    {0, "explain", NULL, GP_OPT_FLAG, .offset = OPT(explain),
     .help = "print for each GPU whether it is free, or why not"},
    GP_OPT_END,
};

static int print(void *context, const struct gp_snapshot *snapshot, const struct gp_pick *pick,
                 struct gp_err *err)
{
    const struct pick_options *o = context;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_strbuf mask = GP_STRBUF_INIT(1 << 16);
    struct gp_strbuf note = GP_STRBUF_INIT(1 << 16);
    bool is_json = strcmp(o->format, "json") == 0;
    bool fits = pick->state == GP_PICK_FITS;
    gp_job_add_mask(&mask, snapshot, pick, o->job.uuid);
    if (is_json)
        gp_job_add_json(&sb, snapshot, pick, mask.buf);
    else if (o->explain)
        gp_job_add_units(&sb, snapshot, pick, gp_io_columns());
    else if (fits && strcmp(o->format, "export") == 0)
        gp_strbuf_addf(&sb, "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=%s\n",
                       mask.buf);
    else if (fits)
        gp_strbuf_addf(&sb, "%s\n", mask.buf);
    if (fits && !o->job.uuid && !o->explain && !is_json)
        gp_job_add_mask_note(&note, snapshot, pick, mask.buf);
    if (note.len > 0)
        gp_io_print_note("gpulse", note.buf);
    sb.error = sb.error ? sb.error : mask.error;
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&note);
    gp_strbuf_fini(&mask);
    gp_strbuf_fini(&sb);
    return r;
}

static int pick_main(int argc, char **argv, struct gp_err *err)
{
    struct pick_options o = {.job = GP_JOB_DEFAULTS, .format = "list"};
    struct gp_pick_request request;
    struct gp_sampler *sampler;
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_pick, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (positional > 0)
        return gp_err_set(
            err, GP_EUSAGE,
            "pick takes no arguments; for two GPUs: -g 2; to run a command: gpulse run");
    if (o.at_most > GP_LEASE_GPUS)
        return gp_err_set(err, GP_EUSAGE, "--at-most takes at most %d", (int)GP_LEASE_GPUS);
    r = gp_job_request(&o.job, &request, err);
    if (r == 0 && request.is_all && o.at_most)
        r = gp_err_set(err, GP_EUSAGE, "--at-most needs --gpus with a number of GPUs");
    if (r == 0)
        r = gp_job_check_place(false, err);
    if (r == 0)
        r = gp_job_open(&request, NULL, &sampler, err);
    if (r < 0)
        return r;
    const struct gp_job_choice choice = {
        .request = &request,
        .ignore_mask = o.job.ignore_mask,
        .at_most = (unsigned)o.at_most,
        .wait_ns = o.wait_ns,
        .explains = true,
        .is_brief = o.explain, /* the reasons are printed already */
        .show = print,
        .context = &o,
    };
    r = gp_job_choose(sampler, &choice, err);
    gp_app_close(sampler);
    return gp_job_suggest_wait(r, err);
}

const struct gp_cmd gp_cmd_pick = {
    .name = "pick",
    .summary = "pick free GPUs and print their ids",
    .usage = "[options]",
    .description =
        "Prints the ids of free GPUs in the format of CUDA_VISIBLE_DEVICES (with "
        "CUDA_DEVICE_ORDER=PCI_BUS_ID): by default one GPU without compute processes. CUDA does "
        "not count lost GPUs, so its numbers may differ from those of gpulse; then a message says "
        "so. While a GPU hangs, CUDA's numbers are unknown, and pick prints UUIDs. It leaves out "
        "GPUs that do not respond, need a reset, have failed memory rows, are in compute mode "
        "Prohibited, or are reserved by gpulse run. -i limits the choice to these GPUs; --gpu-ids "
        "asks for exactly these. On a GPU in MIG mode, it picks an instance.\n"
        "\n"
        "Several GPUs are picked as close to each other as possible: connected by NVLink, "
        "otherwise on one NUMA node. If a GPU does not respond, its connections count as unknown. "
        "Of equally good GPUs, the last on the bus is picked, because many programs use the first "
        "GPU by default.\n"
        "\n"
        "Another job may start on these GPUs before yours does; gpulse run reserves them.\n"
        "\n"
        "Exit status: 69 if too few GPUs are free, 75 if --wait ran out, 78 if the request can "
        "never be met.",
    .examples = "CUDA_VISIBLE_DEVICES=$(gpulse pick) python train.py\ta free GPU\n"
                "eval \"$(gpulse pick -g 2 --mem 40GiB -f export)\"\ttwo with 40 GiB free each\n"
                "gpulse pick --share --mem 8GiB\ta GPU with 8 GiB free, even if others use it\n"
                "gpulse pick -g 4 --explain\twhy each GPU is free or busy\n"
                "gpulse pick --avoid 0 --wait 1h\twait up to an hour for a GPU other than 0\n",
    .options = options,
    .no_loop = true,
    .run = pick_main,
};
