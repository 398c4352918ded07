/* gpulse status: one line per GPU with its processes; compatible with gpustat's options. */
#include "cmd/app.h"
#include "cmd/commands.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "out/line.h"
#include "out/status.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct status_options {
    struct gp_status_view view;
    bool all;
    const char *codec;
    const char *power;
    bool json;
    uint64_t interval_ns;
    uint64_t count;
    const char *line;
    bool force_color;
    bool no_color;
};

#define OPT(field) offsetof(struct status_options, field)

static const struct gp_opt options[] = {
    {'a', "show-all", NULL, GP_OPT_FLAG, .offset = OPT(all), .group = "Show",
     .help = "same as -c -u -p -F -e -P"},
    {'c', "show-cmd", NULL, GP_OPT_FLAG, .offset = OPT(view.command),
     .help = "the program of each process, instead of its user unless -u is given"},
    {'f', "show-full-cmd", NULL, GP_OPT_FLAG, .offset = OPT(view.full_command),
     .help = "a second line per process: pid, CPU, host memory, command line"},
    {'u', "show-user", NULL, GP_OPT_FLAG, .offset = OPT(view.user),
     .help = "the user of each process"},
    {'p', "show-pid", NULL, GP_OPT_FLAG, .offset = OPT(view.pid),
     .help = "the pid of each process"},
    {'F', "show-fan-speed", "show-fan", GP_OPT_FLAG, .offset = OPT(view.fan),
     .help = "the fan speed"},
    {'e', "show-codec", NULL, GP_OPT_CHOICE, "enc,dec", .fallback = "enc,dec", .choices = "enc dec",
     .offset = OPT(codec), .help = "video encoder and decoder utilization"},
    {'P', "show-power", NULL, GP_OPT_CHOICE, "draw,limit", .fallback = "draw,limit",
     .choices = "draw limit", .offset = OPT(power), .help = "power draw and power limit"},
    {0, "no-processes", NULL, GP_OPT_FLAG, .offset = OPT(view.no_processes),
     .help = "omit the processes"},
    {0, "no-header", NULL, GP_OPT_FLAG, .offset = OPT(view.no_header),
     .help = "omit the line with host, time and driver"},
    {0, "gpuname-width", NULL, GP_OPT_U64, "N", .offset = OPT(view.name_width),
     .help = "width of the GPU name; 0 hides it"},
    {0, "json", NULL, GP_OPT_FLAG, .offset = OPT(json), .excludes = "line", .group = "Output",
     .help = "print JSON with gpustat's keys"},
    {0, "line", NULL, GP_OPT_STRING, "PATTERN", .offset = OPT(line),
     .help = "print a line per GPU for status bars: {field}, {field:unit}"},
    {0, "force-color", NULL, GP_OPT_FLAG, .offset = OPT(force_color),
     .help = "same as --color=always"},
    {0, "no-color", NULL, GP_OPT_FLAG, .offset = OPT(no_color), .help = "same as --color=never"},
    {'n', "interval", "watch", GP_OPT_DURATION, "TIME", .fallback = "1", .offset = OPT(interval_ns),
     .least = GP_NS_PER_S / 10, .group = "Repeat",
     .help = "repeat every TIME (default 1s) until Ctrl-C"},
    {'l', "loop", NULL, GP_OPT_DURATION, "TIME", .fallback = "5", .offset = OPT(interval_ns),
     .least = GP_NS_PER_S / 10}, /* of nvidia-smi */
    {0, "count", NULL, GP_OPT_U64, "N", .offset = OPT(count), .least = 1, .needs = "interval",
     .help = "stop after N samples"},
    GP_OPT_END,
};

static bool list_has(const char *list, const char *word)
{
    return list && strstr(list, word);
}

static int settle_options(struct status_options *o, struct gp_err *err)
{
    struct gp_status_view *view = &o->view;
    if (o->json && o->interval_ns)
        return gp_err_set(err, GP_EUSAGE,
                          "--json is one document; for a stream: gpulse query … -f ndjson -n SEC");
    view->encoder = o->all || list_has(o->codec, "enc");
    view->decoder = o->all || list_has(o->codec, "dec");
    view->draw = o->all || list_has(o->power, "draw");
    view->limit = o->all || list_has(o->power, "limit");
    if (o->all)
        view->command = view->user = view->pid = view->fan = true;
    view->user = view->user || !view->command;
    if (o->force_color)
        gp_common()->color = "always";
    if (o->no_color)
        gp_common()->color = "never";
    view->color = gp_app_wants_color();
    view->machine = gp_common()->tape ? NULL : gp_app_observed()->sim;
    view->room = gp_io_columns();
    return 0;
}

struct status_run {
    const struct status_options *options;
    struct gp_strbuf sb;
    bool full_screen;
    bool drawn;
};

static void add_lines(struct status_run *run, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        gp_line_format(&run->sb, run->options->line, snapshot, &snapshot->devices[i]);
        gp_strbuf_addc(&run->sb, '\n');
    }
}

/* If the terminal's size is unknown, the usual one. */
static void add_screen(struct status_run *run, const struct gp_snapshot *snapshot)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    size_t rows = known && size.ws_row > 1 ? size.ws_row : 24;
    size_t cols = known && size.ws_col > 1 ? size.ws_col : 80;
    gp_status_add_frame(&run->sb, &run->options->view, snapshot, rows, cols, !run->drawn);
    run->drawn = true;
}

static int on_sample(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct status_run *run = ctx;
    gp_strbuf_reset(&run->sb);
    if (run->options->line)
        add_lines(run, snapshot);
    else if (run->options->json)
        gp_status_json(&run->sb, snapshot);
    else if (run->full_screen)
        add_screen(run, snapshot);
    else
        gp_status_text(&run->sb, &run->options->view, snapshot);
    return gp_app_write(STDOUT_FILENO, &run->sb, err);
}

static int show(const struct status_options *o, struct gp_err *err)
{
    bool processes = !o->view.no_processes && !o->line;
    struct gp_want want = {.mig = !o->line, .processes = processes, .process_names = processes};
    if (o->line) {
        int r = gp_line_check(o->line, &want.metrics, err);
        if (r < 0)
            return r;
    } else {
        gp_status_want(&want.metrics, &o->view, o->json);
    }
    struct gp_sampler *sampler;
    const struct gp_loop loop = {o->interval_ns, o->count, 0};
    int r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    struct status_run run = {.options = o, .sb = GP_STRBUF_INIT(64 << 20)};
    run.full_screen = o->interval_ns && !o->line && isatty(STDOUT_FILENO);
    r = gp_app_loop(sampler, &loop, on_sample, &run, err);
    gp_strbuf_fini(&run.sb);
    gp_app_close(sampler);
    return r;
}

static int status_main(int argc, char **argv, struct gp_err *err)
{
    struct status_options o = {.view.name_width = GP_STATUS_NAME_AUTO};
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_status, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = gp_app_refuse_words(&gp_cmd_status, positional, argv, err);
    if (r == 0)
        r = settle_options(&o, err);
    return r < 0 ? r : show(&o, err);
}

const struct gp_cmd gp_cmd_status = {
    .name = "status",
    .summary = "show one line per GPU, with its processes",
    .usage = "[options]",
    .description =
        "Prints a line per GPU: temperature, utilization, memory in MiB, and who uses it. Memory "
        "in use excludes what the driver reserves, as in nvidia-smi; where a GPU does not report "
        "it (GB10), it is the sum of its processes. MIG instances are indented below their GPU. ?? "
        "marks a value the GPU does not report. The line of a GPU that is lost, asleep or does not "
        "respond says so. A GPU that is reserved by gpulse run but has no processes is marked as "
        "reserved.\n"
        "\n"
        "The options are gpustat's, except that -i selects GPUs, as everywhere in gpulse; "
        "gpustat's -i is -n.",
    .examples = "gpulse status -cp\tprogram and pid of each process\n"
                "gpulse status -a -n 2\teverything, every two seconds\n"
                "gpulse status --line '{index} {utilization.gpu}% "
                "{memory.used:GiB}/{memory.total:GiB}'\tfor tmux, waybar, i3status\n"
                "gpulse --sim h100x8 status\ta simulated machine\n",
    .options = options,
    .takes_tape = true,
    .run = status_main,
};
