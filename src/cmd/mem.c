/* gpulse mem: how GPU memory is used, or what a model would need. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/holders.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/mem_model.h"
#include "jobs/memory_use.h"
#include "model/snapshot.h"
#include "out/partial.h"
#include "proc/holders.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct mem_options {
    struct gp_mem_model model;
    const char *format;
};

#define OPT(field) offsetof(struct mem_options, field)

static const struct gp_opt options[] = {
    {0, "params", NULL, GP_OPT_STRING, "N", .offset = OPT(model.params), .group = "Estimate",
     .help = "estimate a model with N parameters: 7B, 350M, 1.3e9"},
    {0, "dtype", NULL, GP_OPT_CHOICE, "TYPE", .choices = GP_DTYPE_WORDS, .offset = OPT(model.dtype),
     .help = "type of the weights (default bf16)"},
    {0, "optimizer", NULL, GP_OPT_CHOICE, "NAME", .choices = GP_OPTIMIZER_WORDS,
     .excludes = "inference", .offset = OPT(model.optimizer), .help = "optimizer (default adamw)"},
    {0, "inference", NULL, GP_OPT_FLAG, .offset = OPT(model.inference),
     .help = "inference instead of training"},
    {0, "batch", NULL, GP_OPT_U64, "N", .offset = OPT(model.batch), .least = 1,
     .help = "sequences per GPU and step"},
    {0, "seq", NULL, GP_OPT_U64, "N", .offset = OPT(model.seq), .least = 1,
     .help = "tokens per sequence"},
    {0, "layers", NULL, GP_OPT_U64, "N", .offset = OPT(model.layers), .least = 1,
     .help = "transformer layers"},
    {0, "hidden", NULL, GP_OPT_U64, "N", .offset = OPT(model.hidden), .least = 1,
     .help = "hidden size"},
    {0, "vocab", NULL, GP_OPT_U64, "N", .offset = OPT(model.vocab), .least = 1,
     .help = "vocabulary size, for the logits"},
    {0, "heads", NULL, GP_OPT_U64, "N", .offset = OPT(model.heads), .least = 1,
     .help = "attention heads (without flash attention only)"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "table json", .offset = OPT(format),
     .group = "Output", .help = "output format (default table)"},
    GP_OPT_END,
};

struct mem_run {
    struct gp_model model;
    bool json;
    const char *why; /* no GPUs to compare it with; NULL: there are some */
    bool is_printed;
    struct gp_strbuf sb;
};

/* ---- current use ---- */

/* The numbers are printed even if the search for processes got stuck; that is still an error. */
static int on_accounts(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct mem_run *run = ctx;
    struct gp_holders holders = {.list = NULL};
    const bool is_live = !gp_common()->tape; /* otherwise the holders are not known */
    int stuck = is_live ? gp_app_find_holders(&holders, err) : 0;
    struct gp_memory_use use;
    int r = gp_memory_use_make(&use, snapshot, is_live && stuck == 0 ? &holders : NULL);
    if (r < 0)
        (void)gp_err_set(err, r, "out of memory");
    else if (run->json)
        gp_memory_use_add_json(&run->sb, &use);
    else if (use.count == 0 && snapshot->device_count > 0)
        r = gp_err_set(err, GP_ENODEV,
                       "mem shows whole GPUs, and their MIG instances below them; select the GPU: "
                       "-i %u",
                       snapshot->devices[0].index);
    else
        gp_memory_use_add(&run->sb, &use, gp_io_columns());
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, &run->sb, err);
    gp_memory_use_fini(&use);
    if (is_live && stuck == 0)
        gp_holders_fini(&holders);
    if (r == 0 && stuck == 0)
        gp_partial_explain(snapshot, err);
    return r < 0 ? r : stuck;
}

static int on_model(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct mem_run *run = ctx;
    if (run->json)
        gp_mem_model_json(&run->sb, snapshot, &run->model, run->why);
    else
        gp_mem_model_add(&run->sb, snapshot, &run->model, run->why);
    run->is_printed = true;
    int r = gp_app_write(STDOUT_FILENO, &run->sb, err);
    if (r == 0)
        gp_partial_explain(snapshot, err);
    return r;
}

static int show(struct mem_run *run, const struct gp_want *want,
                int (*on_sample)(const struct gp_snapshot *, void *, struct gp_err *),
                struct gp_err *err)
{
    const struct gp_loop loop = {0};
    struct gp_sampler *sampler;
    int r = gp_app_open(want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = gp_app_loop(sampler, &loop, on_sample, run, err);
    gp_app_close(sampler);
    return r;
}

/* Without a GPU the estimate is still printed, unless certain GPUs were selected. */
static int run_model(struct mem_run *run, struct gp_err *err)
{
    static const int absent[] = {GP_ENODEV, GP_EDRIVER, GP_ETIMEOUT, GP_EPERM};
    const struct gp_want want = gp_mem_model_want();
    struct gp_want host = {.host_only = true};
    struct gp_err why = {0};
    bool is_alone = false;
    int r = show(run, &want, on_model, &why);
    for (size_t i = 0; i < GP_ARRAY_LEN(absent); i++)
        is_alone = is_alone || (r == absent[i] && !run->is_printed && !gp_common()->id);
    if (!is_alone) {
        if (why.code)
            (void)gp_err_copy(err, &why);
        return r;
    }
    run->why = why.text;
    gp_metric_set_add(&host.metrics, GP_HOST_NAME);
    return show(run, &host, on_model, err);
}

static int mem_main(int argc, char **argv, struct gp_err *err)
{
    struct mem_options o = {.format = "table"};
    struct mem_run run = {.sb = GP_STRBUF_INIT(64 << 20)};
    int positional;
    bool done, is_asked;
    int r = gp_app_parse(&gp_cmd_mem, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (positional > 0)
        return gp_err_set(
            err, GP_EUSAGE,
            "mem takes no arguments, got '%.60s'; GPUs are selected with -i, as in -i 3; "
            "--params describes a model",
            argv[1]);
    if (strchr(o.format, ','))
        return gp_err_set(err, GP_EUSAGE, "--format takes one of: table json");
    run.json = strcmp(o.format, "json") == 0;
    r = gp_mem_model_read(&o.model, &run.model, &is_asked, err);
    if (r < 0)
        return r;
    const struct gp_want want = gp_memory_use_want();
    r = is_asked ? run_model(&run, err) : show(&run, &want, on_accounts, err);
    gp_strbuf_fini(&run.sb);
    return r;
}

const struct gp_cmd gp_cmd_mem = {
    .name = "mem",
    .summary = "show how GPU memory is used, or estimate what a model needs",
    .usage = "[options]",
    .description =
        "Prints a row per GPU, in MiB: total memory, reserved by the driver, in use, free, used by "
        "listed processes, and used by no listed process (unattributed), as in gpulse ps "
        "--explain. Below the row are the processes of the GPU, largest first, the users who have "
        "reserved it with gpulse run, and what probably holds the unattributed memory. \"context\" "
        "marks a process that holds no more than a CUDA context, which takes 0.3 to 1 GiB per "
        "process and GPU before any data.\n"
        "\n"
        "With --params it estimates what a model needs and prints the formula of each term: "
        "weights, a master copy in fp32 (mixed precision), gradients and optimizer state, which "
        "together are 18 bytes per parameter in bf16 with AdamW; the context; activations with "
        "--batch, --seq, --layers and --hidden; logits with --vocab. Activations are estimated "
        "after Korthikanti et al. (2022): per layer, 34 bytes for each element of its 16-bit input "
        "and, with --heads, 5 bytes for each element of the stored attention matrices. With "
        "--inference, the KV cache and the activations of one layer count instead.\n"
        "\n"
        "For each GPU it says whether the model fits now, would fit if the GPU were empty, or is "
        "too big, and how many such GPUs would hold it if weights, gradients and optimizer state "
        "were split evenly (ZeRO-3, FSDP). It is an estimate: a real job needs more.",
    .examples = "gpulse mem\thow memory is used\n"
                "gpulse mem --params 7B\ttraining in mixed precision with AdamW\n"
                "gpulse mem --params 7B --batch 4 --seq 2048 --layers 32 --hidden 4096 --vocab "
                "32000\twith activations and logits\n"
                "gpulse mem --params 70B --dtype int4 --inference\tserving a quantized model\n",
    .options = options,
    .takes_tape = true,
    .no_loop = true,
    .run = mem_main,
};
