/* gpulse smi: nvidia-smi's command line and output, from any source. */
#include "cmd/smi.h"

#include "cmd/app.h"
#include "cmd/commands.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/csv.h"
#include "smi/dtd.h"
#include "smi/list.h"
#include "smi/report.h"
#include "smi/setting.h"
#include "smi/table.h"
#include "source/source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the command line ---- */

enum {
#define OPTION(id, kind, names, section, value, help) OPT_##id,
#include "cmd/smi.def"
#undef OPTION
    OPT__COUNT,
};

static const struct gp_smi_option options[] = {
#define OPTION(id, kind, names, section, value, help) {names, kind, section, value, help},
#include "cmd/smi.def"
#undef OPTION
    {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

/* -l N, -lms N; five seconds without a number. */
static int take_loop(const char *const *given, struct gp_smi_show *ret, struct gp_strbuf *message)
{
    static const struct {
        int option;
        uint64_t unit_ns;
    } kinds[] = {{OPT_LOOP, GP_NS_PER_S}, {OPT_LOOP_MS, GP_NS_PER_MS}};
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        const char *value = given[kinds[i].option];
        uint64_t n = 5;
        if (!value)
            continue;
        if (*value && (!gp_parse_u64(value, &n) || n == 0 || n > UINT32_MAX)) {
            gp_strbuf_adds(message, "Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop "
                                    "frequency must be greater than 0.\n\n");
            return GP_SMI_EXIT_USAGE;
        }
        ret->interval_ns = n * kinds[i].unit_ns;
    }
    return 0;
}

/* ---- views ---- */

/* The output for a given option. */
struct view {
    int option;
    int (*run)(const struct view *view, const char *const *given, struct gp_smi_show *show);
    void (*want)(struct gp_want *want);
    void (*print)(struct gp_strbuf *sb, const struct gp_smi_form *form,
                  const struct gp_snapshot *snapshot);
};

static void want_view(const void *ctx, struct gp_want *want)
{
    ((const struct view *)ctx)->want(want);
}

static void print_view(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                       const struct gp_snapshot *snapshot)
{
    ((const struct view *)ctx)->print(sb, form, snapshot);
}

/* An output that no other option affects. */
static int run_view(const struct view *view, const char *const *given, struct gp_smi_show *show)
{
    struct view shown = *view;
    (void)given;
    show->want = want_view;
    show->print = print_view;
    return gp_smi_show(show, &shown);
}

/* ---- -q ---- */

static void want_report(const void *ctx, struct gp_want *want)
{
    gp_smi_report_want(ctx, want);
}

static void print_report(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                         const struct gp_snapshot *snapshot)
{
    gp_smi_report_print(sb, ctx, form, snapshot);
}

static int take_sections(const char *list, uint32_t *ret, struct gp_strbuf *message)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        enum gp_smi_section section;
        if (!gp_smi_section_find(p, n, &section)) {
            gp_strbuf_adds(message, "Failed to parse --display/-d flags\n");
            return GP_SMI_EXIT_USAGE;
        }
        *ret |= UINT32_C(1) << section;
        p += n + (p[n] == ',');
    }
    return 0;
}

static int run_report(const struct view *view, const char *const *given, struct gp_smi_show *show)
{
    struct gp_smi_report report = {
        .xml = given[OPT_XML] != NULL,
        .units = given[OPT_UNIT] != NULL,
        .add_dtd = given[OPT_DTD] ? gp_smi_add_dtd : NULL,
    };
    struct gp_strbuf message = GP_STRBUF_INIT(1 << 16);
    (void)view;
    int status =
        given[OPT_DISPLAY] ? take_sections(given[OPT_DISPLAY], &report.sections, &message) : 0;
    if (status)
        return gp_smi_print(&message, status);
    show->want = want_report;
    show->print = print_report;
    return gp_smi_show(show, &report);
}

/* ---- --query-… ---- */

static void want_csv(const void *ctx, struct gp_want *want)
{
    gp_smi_csv_want(ctx, want);
}

static void print_csv(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                      const struct gp_snapshot *snapshot)
{
    gp_smi_csv_print(sb, ctx, form, snapshot);
}

static int run_csv(const struct view *view, const char *const *given, struct gp_smi_show *show)
{
    struct gp_smi_csv csv;
    struct gp_strbuf message = GP_STRBUF_INIT(1 << 16);
    enum gp_smi_query query = (enum gp_smi_query)(view->option - OPT_QUERY_GPU);
    if (!gp_smi_csv_parse(&csv, query, given[view->option], given[OPT_FORMAT], &message))
        return gp_smi_print(&message, GP_SMI_EXIT_USAGE);
    show->want = want_csv;
    show->print = print_csv;
    return gp_smi_show(show, &csv);
}

/* ---- settings ---- */

enum { SETTINGS = OPT_SET_PERSISTENCE };

/* Whether something is given that cannot be combined with a setting. */
static bool has_others(const char *const *given)
{
    for (int i = 0; i < OPT_ID; i++) {
        bool is_setting = i >= SETTINGS && i < SETTINGS + GP_SMI_SETTING_OPTIONS__COUNT;
        if (!is_setting && given[i])
            return true;
    }
    return false;
}

/* ---- help ---- */

enum { VERSION_SIZE = 80 };

static int take_driver_version(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    const struct gp_value *v = gp_snapshot_value(snapshot, NULL, NULL, GP_DRIVER_VERSION);
    if (!gp_value_is_present(v))
        return gp_err_set(err, GP_EDRIVER, "its version is unknown");
    (void)snprintf(ctx, VERSION_SIZE, "%s", v->s);
    return 0;
}

/* False without a driver. */
static bool read_driver_version(char version[VERSION_SIZE])
{
    struct gp_want want = {.host_only = true};
    const struct gp_loop once = {0};
    struct gp_sampler *sampler;
    struct gp_err err = {0};
    gp_metric_set_add(&want.metrics, GP_DRIVER_VERSION);
    int r = gp_app_open(&want, &once, &sampler, &err);
    if (r == 0) {
        r = gp_app_loop(sampler, &once, take_driver_version, version, &err);
        gp_app_close(sampler);
    }
    return r == 0;
}

/* Without a driver, the version is that of gpulse. */
static void add_version(struct gp_strbuf *sb)
{
    char version[VERSION_SIZE];
    if (read_driver_version(version))
        gp_strbuf_addf(sb, "v%s\n", version);
    else
        gp_app_add_version(sb);
}

static int run_fields(const struct view *view, const char *const *given, struct gp_smi_show *show)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    enum gp_smi_query query = (enum gp_smi_query)(view->option - OPT_HELP_GPU);
    char version[VERSION_SIZE];
    bool is_known = query == GP_SMI_QUERY_GPU && read_driver_version(version);
    const struct gp_value value = {.s = version, .status = GP_STATUS_OK};
    struct gp_smi_form form = {0};
    (void)given;
    (void)show;
    if (is_known)
        form = gp_smi_form_of_driver(&value, false);
    gp_smi_csv_help(&sb, query, is_known ? &form : NULL);
    return gp_smi_print(&sb, 0);
}

static int run_help(const struct view *view, const char *const *given, struct gp_smi_show *show)
{
    (void)view;
    (void)given;
    (void)show;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_adds(&sb, "NVIDIA System Management Interface -- ");
    add_version(&sb);
    gp_strbuf_adds(&sb, "\ngpulse in place of nvidia-smi: the same options, output and exit codes, "
                        "in the format of the loaded\ndriver. Without options: a table of the "
                        "GPUs.\n\nnvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n");
    gp_smi_add_options(&sb, options);
    gp_strbuf_adds(&sb, "\n  Commands, each with its own help (nvidia-smi COMMAND -h):\n\n");
    for (const struct gp_smi_command *c = gp_smi_commands; c->name; c++)
        gp_strbuf_addf(&sb, "    %s\n", c->name);
    return gp_smi_print(&sb, 0);
}

/* ---- --dtd ---- */

static void want_dtd(const void *ctx, struct gp_want *want)
{
    (void)ctx;
    want->host_only = true; /* the driver's version */
}

static void print_dtd(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                      const struct gp_snapshot *snapshot)
{
    const bool *units = ctx;
    (void)snapshot;
    gp_smi_add_dtd(sb, form, *units);
}

static int run_dtd(const struct view *view, const char *const *given, struct gp_smi_show *show)
{
    bool units = given[OPT_UNIT] != NULL;
    (void)view;
    show->want = want_dtd;
    show->print = print_dtd;
    return gp_smi_show(show, &units);
}

/* ---- the tool ---- */

/* The first view whose option is given; the last one needs none. */
static const struct view views[] = {
    {OPT_HELP, run_help, NULL, NULL},
#define X(id, word, help) {OPT_HELP_##id, run_fields, NULL, NULL},
    GP_SMI_QUERIES(X)
#undef X
#define X(id, word, help) {OPT_QUERY_##id, run_csv, NULL, NULL},
        GP_SMI_QUERIES(X)
#undef X
            {OPT_QUERY, run_report, NULL, NULL},
    {OPT_DTD, run_dtd, NULL, NULL},
    {OPT_VERSION, run_view, gp_smi_versions_want, gp_smi_versions_print},
    {OPT_LIST, run_view, gp_smi_list_want, gp_smi_list_print},
    {OPT_EXCLUDED, run_view, gp_smi_excluded_want, gp_smi_excluded_print},
    {OPT__COUNT, run_view, gp_smi_table_want, gp_smi_table_print},
};

#define NEEDS_QUERY(option, what)                                                                  \
    "Invalid combination of input arguments. Specify -q/--query and " option " to run " what       \
    " query.  Please run 'nvidia-smi -h' for help.\n\n"

/* -q and the queries are mutually exclusive, and some options belong to one of them. NULL, or what
 * is wrong. */
static const char *find_conflict(const char *const *given)
{
    static const struct {
        int option;
        const char *words;
    } of_report[] = {
        {OPT_XML, NEEDS_QUERY("-x/--xml-format", "an XML")},
        {OPT_DISPLAY, NEEDS_QUERY("-d/--display", "a filtered")},
    };
    int queries = 0;
    for (int q = 0; q < GP_SMI_QUERY__COUNT; q++)
        queries += given[OPT_QUERY_GPU + q] != NULL;
    if (queries > 1)
        return "Only one --query-* switch can be used at a time.\n";
    if (queries ? given[OPT_QUERY] || given[OPT_XML] || given[OPT_DISPLAY] : !!given[OPT_FORMAT])
        return GP_SMI_COMBINATION;
    for (size_t i = 0; !given[OPT_QUERY] && i < GP_ARRAY_LEN(of_report); i++)
        if (given[of_report[i].option])
            return of_report[i].words;
    return NULL;
}

static int run_smi(int argc, char **argv)
{
    const char *given[OPT__COUNT] = {NULL};
    struct gp_strbuf message = GP_STRBUF_INIT(1 << 16);
    struct gp_smi_show show = {.native = false};
    struct gp_smi_common common;
    struct gp_smi_set set;
    int status = gp_smi_parse(options, false, argc, argv, given, &message);
    if (!status)
        status = gp_smi_take_common(&given[OPT_ID], &common, &message);
    if (!status)
        status = take_loop(given, &show, &message);
    if (status)
        return gp_smi_print(&message, status);
    const char *conflict = given[OPT_HELP] ? NULL : find_conflict(given);
    if (conflict) {
        gp_strbuf_adds(&message, conflict);
        return gp_smi_print(&message, GP_SMI_EXIT_USAGE);
    }
    gp_smi_use(&common);
    show.native = common.native;
    if (!given[OPT_HELP] && gp_smi_set_is_given(&given[SETTINGS])) {
        status = gp_smi_set_read(&given[SETTINGS], has_others(given), &set, &message);
        int printed = gp_smi_print(&message, status);
        return status ? printed : gp_smi_run_set(&set);
    }
    show.file = given[OPT_FILENAME];
    const struct view *view = views;
    while (view->option != OPT__COUNT && !given[view->option])
        view++;
    return view->run(view, given, &show);
}

static int run_missing(const struct gp_smi_missing *missing)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_addf(&sb, "gpulse: nvidia-smi %s is not supported: %s%s%s\n", missing->name,
                   missing->why, missing->instead ? "; instead: " : "",
                   missing->instead ? missing->instead : "");
    return gp_smi_print(&sb, GP_SMI_EXIT_NOT_SUPPORTED);
}

/* The number of arguments that one of gpulse's own options uses; 0: not one of them. */
static int own_words(const char *word)
{
    for (int i = OPT_NATIVE; i <= OPT_TIMEOUT; i++) {
        size_t n = strlen(options[i].names);
        bool has_value = options[i].arg == GP_SMI_VALUE;
        if (strncmp(word, options[i].names, n) == 0 && (!word[n] || (has_value && word[n] == '=')))
            return has_value && !word[n] ? 2 : 1;
    }
    return 0;
}

/* The command is the first argument, or follows gpulse's own options, which are then passed to
 * it. */
static int smi_main(int argc, char **argv, struct gp_err *err)
{
    int own = 0;
    int words;
    (void)err;
    while (own + 1 < argc && (words = own_words(argv[own + 1])) > 0)
        own += words;
    for (const struct gp_smi_command *c = gp_smi_commands; own + 1 < argc && c->name; c++) {
        if (strcmp(c->name, argv[own + 1]) != 0)
            continue;
        char *name = argv[own + 1];
        memmove(&argv[2], &argv[1], (size_t)own * sizeof(*argv));
        argv[1] = name;
        return gp_smi_run(c, argc - 1, argv + 1);
    }
    for (const struct gp_smi_missing *m = gp_smi_missing; own + 1 < argc && m->name; m++)
        if (strcmp(m->name, argv[own + 1]) == 0)
            return run_missing(m);
    return run_smi(argc, argv);
}

const struct gp_cmd gp_cmd_smi = {
    .name = "smi",
    .summary = "drop-in replacement for nvidia-smi",
    .usage = "[nvidia-smi's options]",
    .description =
        "Takes nvidia-smi's options, and prints byte for byte what nvidia-smi of the loaded driver "
        "prints. gpulse smi -h lists the options.\n"
        "\n"
        "It has these additional options: --dry-run prints what a setting would change, and "
        "changes nothing; --native labels the versions as driver 610 does; --timeout TIME waits up "
        "to TIME for a GPU that does not respond; --sim, --sim-still and --root work as everywhere "
        "in gpulse.",
    .examples = "gpulse smi\tthe table\n"
                "gpulse smi --query-gpu=index,memory.used --format=csv -l 1\ttwo fields, every "
                "second\n"
                "gpulse smi --dry-run -pl 300\twhat would change\n"
                "ln -s \"$(command -v gpulse)\" ~/bin/nvidia-smi\tfor programs that call it\n",
    .exit_codes = "0\tsuccess\n"
                  "2\twrong arguments\n"
                  "3\tnot supported\n"
                  "4\tno permission\n"
                  "6\tno GPU, or none that matches\n"
                  "9\tthe driver is not loaded\n"
                  "10\tno GPU answers\n"
                  "12\tthe driver's library was not found\n"
                  "14\tthe InfoROM of a GPU is damaged\n"
                  "15\ta GPU is lost\n"
                  "18\tdriver and library versions differ\n"
                  "255\tunknown option, missing value, or any other error\n",
    .raw_rest = true,
    .no_common = true,
    .run = smi_main,
};
