/* gpulse query: selected fields of GPUs, processes or the host, once or repeatedly, for scripts. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/output.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "out/field_help.h"
#include "out/partial.h"
#include "out/sink.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct query_options {
    const char *rows;
    bool processes;
    bool host;
    bool mig;
    const char *format;
    bool units;
    bool no_header;
    uint64_t interval_ns;
    uint64_t count;
    uint64_t duration_ns;
    struct gp_output_options output;
    bool tee;
    bool replace;
    bool list;
    const char *describe;
};

#define OPT(field) offsetof(struct query_options, field)

/* Each word preceded by a blank. */
static const char rows_choices[] =
#define X(id, first, noun, plural) " " plural
    GP_SCOPES(X)
#undef X
    ;

static const struct gp_opt options[] = {
    {0, "rows", NULL, GP_OPT_CHOICE, "KIND", .choices = rows_choices + 1, .offset = OPT(rows),
     .excludes = "processes host",
     .group = "Select", .help = "kind of rows to print (default gpus)"},
    {0, "processes", NULL, GP_OPT_FLAG, .offset = OPT(processes), .excludes = "host",
     .help = "same as --rows processes"},
    {0, "host", NULL, GP_OPT_FLAG, .offset = OPT(host), .help = "same as --rows hosts"},
    {0, "mig", NULL, GP_OPT_FLAG, .offset = OPT(mig), .help = "include MIG instances"},
    {0, "list", NULL, GP_OPT_FLAG, .offset = OPT(list),
     .help = "list all fields, only those of --rows, or only the given ones"},
    {0, "describe", NULL, GP_OPT_STRING, "FIELDS", .complete = GP_COMPLETE_METRICS,
     .offset = OPT(describe), .help = "explain these fields"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = GP_WRITER_NAMES,
     .tails = "noheader nounits", .offset = OPT(format), .group = "Output",
     .help = "output format (default table)"},
    {0, "units", NULL, GP_OPT_FLAG, .offset = OPT(units),
     .help =
         "include units: in headers of csv and tsv, as \"units\" in JSON, as attributes in XML"},
    {0, "no-header", NULL, GP_OPT_FLAG, .offset = OPT(no_header), .help = "omit the header line"},
    GP_OUTPUT_ROWS(struct query_options, output, " (not json or xml)"),
    {0, "tee", NULL, GP_OPT_FLAG, .offset = OPT(tee), .needs = "output",
     .help = "with --output: also print to standard output"},
    {0, "replace", NULL, GP_OPT_FLAG, .offset = OPT(replace), .needs = "output",
     .excludes = "append rotate-size rotate-age",
     .help = "with --output: FILE always holds the last sample, replaced atomically"},
    /* what fingers type that were trained on nvidia-smi */
    {'l', "loop", NULL, GP_OPT_DURATION, "TIME", .fallback = "5", .before_words = true,
     .offset = OPT(interval_ns),
     .least = GP_NS_PER_S / 10},
    {'n', "interval", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(interval_ns),
     .least = GP_NS_PER_S / 10, .group = "Repeat",
     .help = "repeat every TIME (default 1s with -c or --duration) until Ctrl-C"},
    {'c', "count", NULL, GP_OPT_U64, "N", .offset = OPT(count), .least = 1,
     .help = "stop after N samples"},
    {0, "duration", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(duration_ns),
     .help = "stop after TIME, such as 90s or 1h"},
    GP_OPT_END,
};

/* ---- running ---- */

struct query_run {
    struct gp_view view;
    const struct gp_writer *writer;
    struct gp_strbuf sb;
    struct gp_sink sinks[2]; /* a file and standard output */
    size_t sink_count;
};

static int on_sample(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct query_run *run = ctx;
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->sink_count; i++)
        r = gp_sink_sample(&run->sinks[i], &run->view, snapshot, &run->sb, err);
    if (r == 0 && !run->view.looped)
        gp_partial_explain(snapshot, err);
    return r;
}

static int check_options(const struct query_options *o, struct gp_err *err)
{
    if (o->rows && strchr(o->rows, ','))
        return gp_err_set(err, GP_EUSAGE, "--rows takes one kind of row, not '%.80s'", o->rows);
    return gp_output_check(&o->output, err);
}

static int open_output(const struct query_options *o, struct query_run *run, struct gp_err *err)
{
    const struct gp_outfile_config config = gp_output_config(&o->output);
    if (o->replace) {
        gp_sink_replace(&run->sinks[run->sink_count++], run->writer, config.path);
    } else if (config.path) {
        int r = gp_sink_open(&run->sinks[0], run->writer, &run->view, &config, err);
        if (r < 0)
            return r;
        run->sink_count++;
    }
    if (!config.path || o->tee)
        gp_sink_init(&run->sinks[run->sink_count++], run->writer, STDOUT_FILENO);
    return 0;
}

/* However the loop ended (r), complete the document. */
static int end_output(struct query_run *run, int r, struct gp_err *err)
{
    for (size_t i = 0; i < run->sink_count; i++) {
        struct gp_err end_err = {0};
        int w = gp_sink_end(&run->sinks[i], &run->view, &run->sb, &end_err);
        if (w < 0 && (r == 0 || r == GP_EPARTIAL)) {
            *err = end_err;
            r = w;
        }
    }
    return r;
}

static int sample(const struct query_options *o, struct query_run *run, struct gp_err *err)
{
    struct gp_loop loop = {o->interval_ns, o->count, o->duration_ns};
    if (!loop.interval_ns && (loop.count > 1 || loop.duration_ns))
        loop.interval_ns = GP_NS_PER_S;
    if (loop.duration_ns && loop.interval_ns > loop.duration_ns)
        gp_io_print_note("gpulse",
                         "--interval is longer than --duration: only one sample is taken");
    run->view.looped = loop.interval_ns != 0;
    const struct gp_want want = gp_view_want(&run->view, run->writer, o->mig);
    struct gp_sampler *sampler;
    int r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    /* Opened late: a driver that fails to start must not destroy the file of an earlier run. */
    r = open_output(o, run, err);
    if (r == 0)
        r = gp_app_loop(sampler, &loop, on_sample, run, err);
    r = end_output(run, r, err);
    gp_app_close(sampler);
    return r;
}

static enum gp_scope scope_of(const struct query_options *o)
{
    int scope = o->processes ? GP_SCOPE_PROCESS : o->host ? GP_SCOPE_HOST : GP_SCOPE_DEVICE;
    for (int i = 0; o->rows && i < GP_SCOPE__COUNT; i++)
        if (strcmp(o->rows, gp_scope_table[i].plural) == 0)
            scope = i;
    return (enum gp_scope)scope;
}

static int run_query(const struct query_options *o, const char *fields, struct gp_err *err)
{
    struct query_run run = {
        .view = {.scope = scope_of(o),
                 .header = !o->no_header,
                 .units = o->units,
                 .room = o->output.file ? 0 : gp_io_columns()},
        .writer = gp_writer_find(o->format),
        .sb = GP_STRBUF_INIT(256 << 20),
    };
    int r = gp_field_list_parse(fields, run.view.scope, &run.view.fields, err);
    if (r == 0 && run.view.fields.count > GP_WRITER_COLUMNS_MAX)
        r = gp_err_set(err, GP_EUSAGE, "too many fields: at most %d", GP_WRITER_COLUMNS_MAX);
    if (r == 0 && !run.writer)
        r = gp_err_set(err, GP_EUSAGE, "--format takes one of: " GP_WRITER_NAMES);
    if (r == 0 && o->output.append && run.writer->end)
        r = gp_err_set(err, GP_EUSAGE,
                       "--append cannot be combined with %s, which is one document; use ndjson",
                       o->format);
    if (r == 0)
        r = sample(o, &run, err);
    gp_field_list_fini(&run.view.fields);
    gp_strbuf_fini(&run.sb);
    return r;
}

/* --list and --describe; by default, fields of every kind. */
static int explain_fields(const struct query_options *o, const char *fields, struct gp_err *err)
{
    struct gp_field_list list = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    bool any = !o->rows && !o->processes && !o->host;
    int r = gp_field_list_parse(o->describe ? o->describe : fields,
                                any ? GP_SCOPE_ANY : scope_of(o), &list, err);
    if (r == 0 && o->describe)
        gp_field_help_describe(&sb, &list);
    else if (r == 0)
        r = gp_field_help_list(&sb, &list, o->format, !o->no_header, err);
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_field_list_fini(&list);
    gp_strbuf_fini(&sb);
    return r;
}

/* "csv,noheader". Not nounits: nvidia-smi's numbers without units are MiB, ours are bytes. */
static int split_format(struct query_options *o, const char *fields, char name[32],
                        struct gp_err *err)
{
    const char *tail = strchr(o->format, ',');
    if (!tail)
        return 0;
    (void)snprintf(name, 32, "%.*s", (int)(tail - o->format), o->format);
    o->no_header = o->no_header || strstr(tail, ",noheader");
    for (const char *p = tail; p; p = strchr(p + 1, ','))
        if (gp_cli_list_has(GP_WRITER_NAMES, p + 1, strcspn(p + 1, ",")))
            return gp_err_set(err, GP_EUSAGE, "--format takes one of: " GP_WRITER_NAMES);
    if (strstr(tail, ",nounits"))
        return gp_err_set(err, GP_EUSAGE,
                          "nounits is nvidia-smi's, and its numbers have other units; use gpulse "
                          "smi --query-%s=%.400s --format=%s, or -f csv,noheader with units as in "
                          "memory.used:MiB",
                          o->processes ? "compute-apps" : "gpu", fields ? fields : "FIELDS",
                          o->format);
    o->format = name;
    return 0;
}

/* The fields; NULL: none. */
static int find_fields(int count, char **words, const char **ret, struct gp_err *err)
{
    *ret = count > 0 ? words[0] : NULL;
    if (count > 1)
        return gp_err_set(err, GP_EUSAGE,
                          "expected one comma-separated list of fields, but '%.80s' follows it; "
                          "try %.80s,%.80s",
                          words[1], words[0], words[1]);
    return 0;
}

/* nvidia-smi's options: --query-gpu=… is answered as gpulse smi does. */
static bool is_of_smi(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--query-", strlen("--query-")) == 0)
            return true;
    return false;
}

static int refuse_milliseconds(int argc, char **argv, struct gp_err *err)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-lms", 4) != 0 && strncmp(argv[i], "--loop-ms", 9) != 0)
            continue;
        const char *equals = strchr(argv[i], '=');
        const char *value = equals ? equals + 1 : i + 1 < argc ? argv[i + 1] : "";
        uint64_t ms = 0;
        return gp_parse_u64(value, &ms) && ms > 0
                   ? gp_err_set(err, GP_EUSAGE, "%.20s is nvidia-smi's; use -n %g", argv[i],
                                (double)ms / 1000)
                   : gp_err_set(err, GP_EUSAGE,
                                "%.20s is nvidia-smi's; use -n SECONDS, as in -n 0.1", argv[i]);
    }
    return 0;
}

static int query_main(int argc, char **argv, struct gp_err *err)
{
    struct query_options o = {.format = "table", .output = GP_OUTPUT_DEFAULTS};
    char format[32];
    const char *fields;
    int positional;
    bool done = false;
    if (is_of_smi(argc, argv))
        return gp_cmd_smi.run(argc, argv, err);
    int r = refuse_milliseconds(argc, argv, err);
    if (r == 0)
        r = gp_app_parse(&gp_cmd_query, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = find_fields(positional, argv + 1, &fields, err);
    if (r == 0)
        r = split_format(&o, fields, format, err);
    if (r == 0)
        r = check_options(&o, err);
    if (r < 0)
        return r;
    if (o.describe && (o.list || fields))
        return gp_err_set(err, GP_EUSAGE,
                          "--describe takes one comma-separated list of fields, and nothing else");
    if (o.list || o.describe)
        return explain_fields(&o, fields ? fields : "*", err);
    if (!fields)
        return gp_err_set(err, GP_EUSAGE, "no fields given; gpulse query --list shows all");
    return run_query(&o, fields, err);
}

const struct gp_cmd gp_cmd_query = {
    .name = "query",
    .group = "Script and control",
    .summary = "print selected fields of GPUs, processes or the host",
    .usage = "FIELDS [options]",
    .description =
        "FIELDS is a comma-separated list of field names; nvidia-smi's names and aliases work too. "
        "A name ending in .* selects a group, * selects everything, and :UNIT converts: "
        "memory.used:GiB. nvidia-smi's options --query-gpu and --query-compute-apps print what "
        "gpulse smi prints. Only what is selected is read from the driver. In rows of processes "
        "and lists, * also includes the index and uuid of the GPU.\n"
        "\n"
        "--rows prints a row for each item of a GPU, for example for each link. The names of their "
        "fields begin with the word given to --rows, which may be omitted; fields of the GPU can "
        "be selected too. A GPU that does not report the list has one row without values.\n"
        "\n"
        "A table with a single row that is wider than the terminal is printed with one field per "
        "line; --no-header keeps it in one row.\n"
        "\n"
        "A value that the GPU does not report is N/A in tables, [N/A] in csv and tsv, null in JSON "
        "(\"reasons\" says why), an empty element with its reason in XML, and omitted in "
        "openmetrics. docs/schema.md says what programs can rely on.\n"
        "\n"
        "When repeating, each sample is written immediately and completely; in json and xml all "
        "samples form one document. Each rotated file is a complete document. The file of an "
        "earlier run is renamed to FILE.1, not overwritten.",
    .examples =
        "gpulse query index,name,memory.used,utilization.gpu\tsome fields of every GPU\n"
        "gpulse query 'index,memory.*' -f csv --units\ta group, for a spreadsheet\n"
        "gpulse query timestamp,index,power.draw -f csv -n 0.5 --duration 1h -o power.csv\trecord "
        "for an hour\n"
        "gpulse query pid,user,used_gpu_memory,command --processes -f json\twho uses the GPUs\n"
        "gpulse query temperature.gpu -i 0 --no-header\tone number, for a script\n",
    .options = options,
    .takes_tape = true,
    .complete = GP_COMPLETE_METRICS,
    .run = query_main,
};
