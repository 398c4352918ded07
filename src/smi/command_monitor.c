/* nvidia-smi dmon, pmon, encodersessions, fbcsessions: one line per sample, once a second. */
#include "smi/command.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/strbuf.h"

#include <string.h>

/* X(id, kind of value, names, value, help). Options of dmon alone come first, then those that pmon
 * has too: a command's table is a tail of this list. */
#define OPTIONS(X)                                                                                 \
    X(GPM, GP_SMI_VALUE, "--gpm-metrics", "LIST",                                                  \
      "GPM metrics to show (Hopper and later), by number:")                                        \
    X(GPM_LEVEL, GP_SMI_VALUE, "--gpm-options", "d", "of the whole GPU")                           \
    X(FORMAT, GP_SMI_VALUE, "--format", "LIST",                                                    \
      "csv; add nounit or noheader to omit lines of the header")                                   \
    X(SELECT, GP_SMI_VALUE, "-s --select", "LETTERS", "groups of columns, in this order:")         \
    X(STAMP, GP_SMI_VALUE, "-o --options", "LETTERS",                                              \
      "prefix each line with D the date, T the time")                                              \
    X(DELAY, GP_SMI_VALUE, "-d --delay", "SECONDS", "seconds between samples (default 1)")         \
    X(COUNT, GP_SMI_VALUE, "-c --count", "N", "stop after N samples")                              \
    X(FILENAME, GP_SMI_VALUE, "-f --filename", "FILE", "write to FILE instead of standard output") \
    X(HELP, GP_SMI_FLAG, "-h --help", NULL, "show this help")                                      \
    GP_SMI_COMMON_OPTIONS(X)

enum {
#define X(id, kind, names, value, help) OPT_##id,
    OPTIONS(X)
#undef X
        OPT__COUNT,
};

static const struct gp_smi_option options[] = {
#define X(id, kind, names, value, help) {names, kind, NULL, value, help},
    OPTIONS(X)
#undef X
        {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

static const struct command {
    const char *name; /* as messages call it */
    int first_option;
    unsigned longest_s; /* delay between samples */
    bool explains;      /* an unknown option: with the help */
    const char *words;
} commands[] = {
    [GP_SMI_DMON] = {"nvidia-smi dmon", OPT_GPM, 600, true, "one line per GPU and sample."},
    [GP_SMI_PMON] = {"nvidia-smi pmon", OPT_SELECT, 10, true,
                     "one line per process, GPU and sample."},
    [GP_SMI_ENCODER_SESSIONS] = {"nvidia-smi encodersessions", OPT_DELAY, 600, false,
                                 "one line per video encoder session and sample."},
    [GP_SMI_FBC_SESSIONS] = {"nvidia-smi fbcsessions", OPT_DELAY, 600, false,
                             "one line per frame buffer capture session and sample."},
};

/* ---- help ---- */

static void add_help(struct gp_strbuf *sb, enum gp_smi_monitor_kind kind)
{
    const struct command *command = &commands[kind];
    gp_strbuf_addf(sb, "%s [options]\n\n    %s\n\n", command->name, command->words);
    for (int i = command->first_option; i < OPT__COUNT; i++) {
        gp_smi_add_option(sb, &options[i]);
        if (i == OPT_SELECT) {
            gp_smi_monitor_add_groups(sb, kind);
            gp_strbuf_addf(sb, "        default %s\n", gp_smi_monitor_default(kind));
        } else if (i == OPT_GPM) {
            gp_smi_monitor_add_gpm(sb);
        }
    }
}

/* ---- options ---- */

static bool take_view(struct gp_smi_monitor *m, const char *const *given, struct gp_strbuf *words)
{
    static const struct {
        int option;
        bool (*take)(struct gp_smi_monitor *m, const char *value, struct gp_strbuf *words);
    } views[] = {
        {OPT_GPM, gp_smi_monitor_gpm},
        {OPT_FORMAT, gp_smi_monitor_format},
        {OPT_SELECT, gp_smi_monitor_select},
        {OPT_STAMP, gp_smi_monitor_stamp},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(views); i++)
        if (given[views[i].option] && !views[i].take(m, given[views[i].option], words))
            return false;
    return true;
}

static bool take_number(const char *text, uint64_t highest, uint64_t *ret)
{
    return !text || (gp_parse_u64(text, ret) && *ret > 0 && *ret <= highest);
}

/* An error that is followed by the help. nvidia-smi ends with 0 then. */
static int explain(struct gp_strbuf *sb, enum gp_smi_monitor_kind kind)
{
    gp_strbuf_addc(sb, '\n');
    add_help(sb, kind);
    return 0;
}

/* *ret_done: nothing is to be shown, even if the status is 0. */
static int take(struct gp_smi_monitor *m, struct gp_smi_show *show, const char *const *given,
                struct gp_strbuf *sb, bool *ret_done)
{
    const struct command *command = &commands[m->kind];
    uint64_t seconds = 1;
    *ret_done = true;
    if (given[OPT_GPM_LEVEL] && strcmp(given[OPT_GPM_LEVEL], "d") != 0)
        return explain(sb, m->kind);
    if (!take_view(m, given, sb)) {
        gp_strbuf_adds(sb, "Failed to process command line \n\n");
        return GP_SMI_EXIT_OTHER;
    }
    if (!take_number(given[OPT_DELAY], command->longest_s, &seconds)) {
        gp_strbuf_addf(sb, "Collection delay/interval should be between 1 second and %u seconds\n",
                       command->longest_s);
        return explain(sb, m->kind);
    }
    if (!take_number(given[OPT_COUNT], UINT32_MAX, &show->count)) {
        gp_strbuf_adds(sb, "Invalid value for number of samples to be displayed\n");
        return explain(sb, m->kind);
    }
    show->interval_ns = seconds * GP_NS_PER_S;
    *ret_done = false;
    return 0;
}

/* ---- output ---- */

static void want(const void *ctx, struct gp_want *want)
{
    gp_smi_monitor_want(ctx, want);
}

static void print(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                  const struct gp_snapshot *snapshot)
{
    gp_smi_monitor_print(ctx, sb, form, snapshot);
}

static int refuse(const void *ctx, struct gp_strbuf *message, const struct gp_snapshot *snapshot)
{
    if (!gp_smi_monitor_is_refused(ctx, snapshot))
        return 0;
    gp_strbuf_adds(message, "Not supported on the device(s)\nFailed to process command line\n");
    return GP_SMI_EXIT_OTHER;
}

static int read_command(enum gp_smi_monitor_kind kind, int argc, char **argv,
                        struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    const struct command *command = &commands[kind];
    const char *given[OPT__COUNT] = {NULL};
    ret->show = (struct gp_smi_show){.want = want, .print = print, .refuse = refuse};
    ret->ctx = &ret->monitor;
    gp_smi_monitor_init(&ret->monitor, kind);
    int status = gp_smi_parse(&options[command->first_option], true, argc, argv,
                              &given[command->first_option], sb);
    if (status && command->explains)
        return gp_smi_end(ret, explain(sb, kind));
    if (!status && given[OPT_HELP]) {
        add_help(sb, kind);
        return gp_smi_end(ret, 0);
    }
    bool done = true;
    if (!status)
        status = gp_smi_take_common(&given[OPT_ID], &ret->common, sb);
    if (!status)
        status = take(&ret->monitor, &ret->show, given, sb, &done);
    ret->show.native = ret->common.native;
    ret->show.file = given[OPT_FILENAME];
    return done ? gp_smi_end(ret, status) : 0;
}

int gp_smi_read_dmon(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    return read_command(GP_SMI_DMON, argc, argv, ret, sb);
}

int gp_smi_read_pmon(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    return read_command(GP_SMI_PMON, argc, argv, ret, sb);
}

int gp_smi_read_encodersessions(int argc, char **argv, struct gp_smi_request *ret,
                                struct gp_strbuf *sb)
{
    return read_command(GP_SMI_ENCODER_SESSIONS, argc, argv, ret, sb);
}

int gp_smi_read_fbcsessions(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    return read_command(GP_SMI_FBC_SESSIONS, argc, argv, ret, sb);
}
