/* gpulse mem: how GPU memory is used, or what a model would need. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/ps_holders.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/account.h"
#include "jobs/mem_model.h"
#include "model/snapshot.h"
#include "out/json.h"
#include "out/procs.h"
#include "out/reservation.h"
#include "proc/holders.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CONTEXT_MOST = 600 << 20, /* bytes: a process with more holds more than a context */
    JOB_COLUMNS = 40,         /* of the name of a reservation */
};

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
    bool json, is_asked; /* is_asked: about a model */
    const char *why;     /* no GPUs to compare it with; NULL: there are some */
    bool is_printed;
    /* of one sample */
    const struct gp_snapshot *snapshot;
    struct gp_account *accounts;
    size_t count;
    struct gp_procs procs;
    bool knows_holders; /* otherwise unattributed memory cannot be explained */
    struct gp_strbuf sb;
};

/* ---- current use ---- */

/* Whether it uses about as much as a bare CUDA context; MPS clients have no context of their
 * own. */
static bool is_context(const struct gp_proc_row *row)
{
    return row->memory.known && row->memory.n > 0 && row->memory.n < CONTEXT_MOST && row->type &&
           strchr(row->type, 'C') && !strchr(row->type, 'M');
}

static bool is_of(const struct gp_proc_row *row, const struct gp_account *account)
{
    return row->pid != 0 && row->gpu == account->device->index;
}

/* Some verdicts do not depend on the processes. */
static bool has_verdict(const struct mem_run *run, const struct gp_account *account)
{
    return run->knows_holders || account->verdict <= GP_ACCOUNT_UNKNOWN;
}

/* Rounded up, as by nvidia-smi and gpulse status. */
static void add_mib(struct gp_strbuf *sb, size_t width, struct gp_amount a)
{
    const double up = 0x1p20 - 1;
    if (a.known)
        gp_strbuf_addf(sb, "  %*lld", (int)width, (long long)((a.n + up) / 0x1p20));
    else
        gp_strbuf_addf(sb, "  %*s", (int)width, "-");
}

/* A line, cut at the width of the terminal. */
static void add_process(struct gp_strbuf *sb, const struct gp_proc_row *row, bool any_context)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 20);
    gp_strbuf_addf(&line, "%5s  %7lld  %-10.10s", strchr(row->gpus, ':') ? row->gpus : "",
                   (long long)row->pid, row->user ? row->user : "-");
    add_mib(&line, 8, row->memory);
    if (any_context)
        gp_strbuf_addf(&line, "  %-7s", is_context(row) ? "context" : "");
    gp_strbuf_adds(&line, "  ");
    if (row->suspended.known)
        gp_strbuf_addf(&line, "(suspended: %.0f MiB in host memory) ", row->suspended.n / 0x1p20);
    gp_strbuf_adds(&line, row->command ? row->command : "?");
    gp_utf8_add_line(sb, line.buf, line.len, gp_io_columns());
    gp_strbuf_fini(&line);
}

/* A line for each reservation of the GPU and of its instances, whose rows follow. */
static void add_reservations(struct mem_run *run, const struct gp_device *gpu)
{
    const struct gp_device *end = &run->snapshot->devices[run->snapshot->device_count];
    for (const struct gp_device *d = gpu; d < end && d->index == gpu->index; d++) {
        char instance[GP_DEVICE_LABEL_SIZE] = "";
        if (!gp_is_reserved(d))
            continue;
        if (d->is_mig)
            gp_device_label(d, instance);
        gp_strbuf_addf(&run->sb, "%5s  ", instance);
        gp_reservation_add(&run->sb, d, JOB_COLUMNS);
        gp_strbuf_addc(&run->sb, '\n');
    }
}

static const struct {
    const char *title;
    size_t width, offset;
} columns[] = {
    {"TOTAL", 6, offsetof(struct gp_account, total)},
    {"RESERVED", 8, offsetof(struct gp_account, reserved)},
    {"USED", 6, offsetof(struct gp_account, used)},
    {"FREE", 6, offsetof(struct gp_account, free)},
    {"PROCESSES", 9, offsetof(struct gp_account, listed)},
    {"UNATTRIBUTED", 12, offsetof(struct gp_account, rest)},
};

/* A name that is too long is shortened, first by its maker. */
static void add_name(struct gp_strbuf *sb, const char *name, size_t width)
{
    static const char maker[] = "NVIDIA ";
    bool fits = gp_utf8_width(name) <= width;
    if (!fits && strncmp(name, maker, strlen(maker)) == 0)
        name += strlen(maker);
    size_t before = sb->len;
    gp_utf8_add_safe(sb, name, strlen(name), width);
    size_t used = sb->error ? width : gp_utf8_width(sb->buf + before);
    gp_strbuf_fill(sb, ' ', used < width ? width - used : 0);
}

static void add_processes(struct mem_run *run, const struct gp_account *account,
                          const char *instance, bool any_context)
{
    for (size_t i = 0; i < run->procs.count; i++) {
        const struct gp_proc_row *row = &run->procs.rows[i];
        bool is_here = instance ? strcmp(row->gpus, instance) == 0 : !strchr(row->gpus, ':');
        if (is_of(row, account) && is_here)
            add_process(&run->sb, row, any_context);
    }
}

static struct gp_amount amount_of(const struct gp_device *device, enum gp_metric m)
{
    const struct gp_value *v = &device->values[m - GP_DEVICE__FIRST];
    bool known = gp_value_is_present(v);
    return (struct gp_amount){known ? (double)v->i : 0, known, false};
}

/* The instances of a GPU in MIG mode, each with its processes. */
static void add_instances(struct mem_run *run, const struct gp_account *account, size_t width,
                          bool any_context)
{
    const struct gp_device *end = &run->snapshot->devices[run->snapshot->device_count];
    for (const struct gp_device *d = account->device + 1; d < end && d->is_mig; d++) {
        char label[GP_DEVICE_LABEL_SIZE], name[64];
        gp_device_label(d, label);
        (void)snprintf(name, sizeof(name), "MIG %.40s", gp_device_text(d, GP_MIG_PROFILE, "?"));
        gp_strbuf_addf(&run->sb, "%5s  ", label);
        add_name(&run->sb, name, width);
        const struct gp_account whole = {.device = d,
                                         .total = amount_of(d, GP_MEMORY_TOTAL),
                                         .reserved = amount_of(d, GP_MEMORY_RESERVED),
                                         .used = amount_of(d, GP_MEMORY_USED),
                                         .free = amount_of(d, GP_MEMORY_FREE)};
        const struct gp_account shown = gp_account_in_mib(&whole);
        const struct gp_amount parts[] = {shown.total, shown.reserved, shown.used, shown.free};
        for (size_t c = 0; c < GP_ARRAY_LEN(parts); c++)
            add_mib(&run->sb, columns[c].width, parts[c]);
        gp_strbuf_addc(&run->sb, '\n');
        add_processes(run, account, label, any_context);
    }
}

static void add_account(struct mem_run *run, const struct gp_account *account, size_t width,
                        bool any_context)
{
    struct gp_strbuf *sb = &run->sb;
    const struct gp_account shown = gp_account_in_mib(account);
    gp_strbuf_addf(sb, "%5u  ", account->device->index);
    add_name(sb, gp_device_text(account->device, GP_NAME, "?"), width);
    for (size_t c = 0; c < GP_ARRAY_LEN(columns); c++) {
        struct gp_amount a;
        memcpy(&a, (const char *)&shown + columns[c].offset, sizeof(a));
        add_mib(sb, columns[c].width, a);
    }
    gp_strbuf_addc(sb, '\n');
    add_processes(run, account, NULL, any_context);
    add_instances(run, account, width, any_context);
    add_reservations(run, account->device);
    if (account->verdict == GP_ACCOUNT_NO_ANSWER) {
        gp_strbuf_addf(sb, "       %s\n", gp_device_trouble(account->device));
    } else if (has_verdict(run, account) && account->verdict != GP_ACCOUNT_ACCOUNTED) {
        gp_strbuf_adds(sb, "       ");
        gp_account_add_verdict(sb, account);
        gp_strbuf_addc(sb, '\n');
    }
}

static const char name_title[] = "NAME (MiB)";

/* Columns for the names: what the longest one needs, but no line is wider than the terminal. */
static size_t name_width(const struct mem_run *run)
{
    const size_t least = strlen(name_title);
    size_t width = least;
    size_t others = strlen("  GPU  ");
    size_t room = gp_io_columns();
    for (size_t i = 0; i < run->count; i++) {
        size_t n = gp_utf8_width(gp_device_text(run->accounts[i].device, GP_NAME, "?"));
        width = n > width ? n : width;
    }
    for (size_t c = 0; c < GP_ARRAY_LEN(columns); c++)
        others += columns[c].width + 2;
    if (room == 0 || others + width <= room)
        return width;
    return room > others + least ? room - others : least;
}

static const char context_note[] = "context: holds about as much as a CUDA context alone, 0.3 to 1 "
                                   "GiB per process and GPU";

static void add_table(struct mem_run *run)
{
    const size_t width = name_width(run);
    bool any_context = false;
    for (size_t i = 0; i < run->procs.count; i++)
        any_context = any_context || is_context(&run->procs.rows[i]);
    gp_strbuf_adds(&run->sb, "  GPU  ");
    gp_utf8_add_padded(&run->sb, name_title, width, false);
    for (size_t c = 0; c < GP_ARRAY_LEN(columns); c++)
        gp_strbuf_addf(&run->sb, "  %*s", (int)columns[c].width, columns[c].title);
    gp_strbuf_addc(&run->sb, '\n');
    for (size_t i = 0; i < run->count; i++)
        add_account(run, &run->accounts[i], width, any_context);
    if (any_context)
        gp_utf8_add_wrapped(&run->sb, context_note, strlen(context_note), 0, gp_io_columns());
}

/* ---- JSON ---- */

static json_t *number(struct gp_amount a)
{
    return a.known ? json_integer((json_int_t)a.n) : json_null();
}

static json_t *process_object(const struct gp_proc_row *row)
{
    const char *colon = strchr(row->gpus, ':');
    bool context = is_context(row);
    uint64_t instance = 0;
    bool is_mig = colon && gp_parse_u64(colon + 1, &instance);
    return json_pack("{s:I, s:s?, s:s?, s:s?, s:o, s:o, s:o, s:b}", "pid", (json_int_t)row->pid,
                     "user", row->user, "command", row->command, "type", row->type, "instance",
                     is_mig ? json_integer((json_int_t)instance) : json_null(), "memory",
                     number(row->memory), "suspended", number(row->suspended), "context",
                     context ? 1 : 0);
}

static json_t *account_object(const struct mem_run *run, const struct gp_account *a)
{
    struct gp_strbuf words = GP_STRBUF_INIT(4096);
    json_t *processes = json_array();
    for (size_t i = 0; i < run->procs.count; i++)
        if (is_of(&run->procs.rows[i], a))
            (void)json_array_append_new(processes, process_object(&run->procs.rows[i]));
    bool has_words = has_verdict(run, a);
    if (has_words)
        gp_account_add_verdict(&words, a);
    json_t *object =
        json_pack("{s:i, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:s?, s:o}", "gpu",
                  (int)a->device->index, "uuid", gp_device_text(a->device, GP_UUID, NULL), "name",
                  gp_device_text(a->device, GP_NAME, NULL), "total", number(a->total), "reserved",
                  number(a->reserved), "used", number(a->used), "free", number(a->free), "held",
                  number(a->listed), "unattributed", number(a->rest), "verdict",
                  has_words ? gp_account_verdict_word(a->verdict) : NULL, "text",
                  has_words ? words.buf : NULL, "processes", processes);
    (void)json_object_set_new(object, "reservation", gp_reservation_object(a->device));
    gp_strbuf_fini(&words);
    return object;
}

static void add_json(struct mem_run *run, const struct gp_snapshot *snapshot)
{
    json_t *document = gp_json_document(snapshot, "gpulse.mem/1");
    json_t *gpus = json_array();
    for (size_t i = 0; i < run->count; i++)
        (void)json_array_append_new(gpus, account_object(run, &run->accounts[i]));
    (void)json_object_set_new(document, "gpus", gpus);
    (void)json_object_set_new(document, "reservations", gp_reservation_list(snapshot));
    gp_json_set_incomplete(document, snapshot);
    gp_json_add(&run->sb, document, 2);
    gp_strbuf_addc(&run->sb, '\n');
}

/* ---- running ---- */

static int look(struct mem_run *run, const struct gp_snapshot *snapshot,
                const struct gp_holders *holders)
{
    const struct gp_procs_options rows = {
        .order = {{{GP_PROC_MEMORY_COLUMN, false}, {GP_PROC_PID_COLUMN, false}}, 2},
        .gpu = -1,
        .per_gpu = true,
    };
    int r = gp_accounts_make(snapshot, holders, &run->accounts, &run->count);
    if (r == 0)
        r = gp_procs_build(&run->procs, snapshot, &rows);
    return r;
}

/* The numbers are printed even if the search for processes got stuck; that is still an error. */
static int on_accounts(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct mem_run *run = ctx;
    struct gp_holders holders = {.list = NULL};
    int stuck = gp_ps_find_holders(&holders, err);
    run->knows_holders = stuck == 0;
    run->snapshot = snapshot;
    int r = look(run, snapshot, &holders);
    if (r < 0)
        (void)gp_err_set(err, r, "out of memory");
    else if (run->json)
        add_json(run, snapshot);
    else if (run->count == 0 && snapshot->device_count > 0)
        r = gp_err_set(err, GP_ENODEV,
                       "mem shows whole GPUs, and their MIG instances below them; select the GPU: "
                       "-i %u",
                       snapshot->devices[0].index);
    else
        add_table(run);
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, &run->sb, err);
    gp_procs_fini(&run->procs);
    gp_accounts_free(run->accounts, run->count);
    if (run->knows_holders)
        gp_holders_fini(&holders);
    if (r == 0 && stuck == 0)
        gp_app_explain_partial(snapshot, err);
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
        gp_app_explain_partial(snapshot, err);
    return r;
}

static struct gp_want want_of(const struct mem_run *run)
{
    static const enum gp_metric of_processes[] = {
        GP_PID,          GP_UUID,         GP_MIG_PROFILE,     GP_PROCESS_MEMORY,
        GP_PROCESS_USER, GP_PROCESS_TYPE, GP_PROCESS_COMMAND, GP_PROCESS_SUSPENDED};
    struct gp_want want = {
        .mig = true, .processes = !run->is_asked, .process_names = !run->is_asked};
    if (run->is_asked)
        gp_mem_model_want(&want.metrics);
    else
        gp_ps_want_explained(&want.metrics);
    if (!run->is_asked)
        gp_reservation_want(&want.metrics);
    for (size_t i = 0; !run->is_asked && i < GP_ARRAY_LEN(of_processes); i++)
        gp_metric_set_add(&want.metrics, of_processes[i]);
    return want;
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
    const struct gp_want want = want_of(run);
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
    bool done;
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
    r = gp_mem_model_read(&o.model, &run.model, &run.is_asked, err);
    if (r < 0)
        return r;
    const struct gp_want want = want_of(&run);
    r = run.is_asked ? run_model(&run, err) : show(&run, &want, on_accounts, err);
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
        "process and GPU before any data.\n\n"
        "With --params it estimates what a model needs and prints the formula of each term: "
        "weights, a master copy in fp32 (mixed precision), gradients and optimizer state, which "
        "together are 18 bytes per parameter in bf16 with AdamW; the context; activations with "
        "--batch, --seq, --layers and --hidden; logits with --vocab. Activations are estimated "
        "after Korthikanti et al. (2022): per layer, 34 bytes for each element of its 16-bit input "
        "and, with --heads, 5 bytes for each element of the stored attention matrices. With "
        "--inference, the KV cache and the activations of one layer count instead.\n\n"
        "For each GPU it says whether the model fits now, would fit if the GPU were empty, or is "
        "too big, and how many such GPUs would hold it if weights, gradients and optimizer state "
        "were split evenly (ZeRO-3, FSDP). It is an estimate: a real job needs more.",
    .examples = "gpulse mem\thow memory is used\n"
                "gpulse mem --params 7B\ttraining in mixed precision with AdamW\n"
                "gpulse mem --params 7B --batch 4 --seq 2048 --layers 32 --hidden 4096 --vocab "
                "32000\twith activations and logits\n"
                "gpulse mem --params 70B --dtype int4 --inference\tserving a quantized model\n",
    .options = options,
    .no_loop = true,
    .run = mem_main,
};
