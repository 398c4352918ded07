/* gpulse set: changes settings of GPUs. Everything is checked before the first setter is called.
 * The old values are printed, with the command that restores them. */
#include "cmd/app.h"
#include "cmd/commands.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "out/settings.h"
#include "sample/settings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads have the usual time limit. A change may take the driver longer, but a message says which
 * GPU it waits for. */
enum { LOOK_TIMEOUT_S = 3, CHANGE_TIMEOUT_S = 30, PATIENCE_S = 2 };

struct set_options {
    const char *format;
    bool show;
    bool list;
    bool dry_run;
    bool yes;
    const char *save;
    const char *restore;
};

#define OPT(field) offsetof(struct set_options, field)

static const struct gp_opt options[] = {
    {0, "show", NULL, GP_OPT_FLAG, .offset = OPT(show), .group = "Show",
     .help = "show the value and range of every setting"},
    {0, "list", NULL, GP_OPT_FLAG, .offset = OPT(list), .help = "describe the settings"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "table json", .offset = OPT(format),
     .help = "format of --show and --list (default table)"},
    {0, "dry-run", NULL, GP_OPT_FLAG, .offset = OPT(dry_run), .group = "Change",
     .help = "print what would change, and change nothing"},
    {'y', "yes", NULL, GP_OPT_FLAG, .offset = OPT(yes),
     .help = "do not ask before a change that cannot be undone"},
    {0, "save", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE, .offset = OPT(save),
     .help = "save the current settings to FILE"},
    {0, "restore", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = OPT(restore), .help = "restore settings from FILE; GPUs are matched by UUID"},
    GP_OPT_END,
};

struct set_run {
    const struct set_options *options;
    struct gp_settings_request request;
    struct gp_saved saved;
    struct gp_settings settings;
};

/* ---- messages ---- */

static void warn(const char *text)
{
    gp_io_print_note("gpulse", text);
}

/* ---- applying ---- */

static int print(const struct set_run *run, bool results, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    gp_settings_add_summary(&sb, &run->settings, results, gp_app_observed()->sim);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* Says for each change what it destroys; false: nothing. */
static bool warn_of_losses(const struct gp_settings *settings)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    bool any = false;
    for (size_t t = 0; t < settings->count; t++)
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
            if (!gp_settings_loses(&settings->targets[t], (enum gp_control_id)id))
                continue;
            gp_strbuf_reset(&sb);
            gp_settings_add_loss(&sb, &settings->targets[t], (enum gp_control_id)id);
            warn(sb.buf);
            any = true;
        }
    gp_strbuf_fini(&sb);
    return any;
}

static int confirm(const struct set_run *run, struct gp_err *err)
{
    if (run->options->yes || !warn_of_losses(&run->settings))
        return 0;
    return gp_app_confirm("Continue", "nothing was changed", err);
}

static void add_root_command(struct gp_strbuf *sb, const struct set_run *run)
{
    gp_strbuf_adds(sb, "sudo ");
    gp_settings_add_command(sb, &run->request, gp_common()->id, gp_app_observed()->sim);
}

/* Adds the command for root to an error, if root is required. */
static void explain(const struct set_run *run, int code, const char *what, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(err->text) - 1);
    gp_strbuf_adds(&sb, what);
    if (code == GP_EPERM) {
        gp_strbuf_adds(&sb, "; only root can do this: ");
        add_root_command(&sb, run);
    }
    (void)gp_err_set(err, code, "%s", sb.buf);
    gp_strbuf_fini(&sb);
}

static int sum_up(const struct set_run *run, struct gp_err *err)
{
    struct gp_err first = {0};
    int r = gp_settings_result(&run->settings, &first);
    if (first.code)
        explain(run, first.code, first.text, err);
    return r;
}

/* A signal must not interrupt between a change and the message about undoing it; the deadline
 * limits the wait. */
static int apply(struct set_run *run, struct gp_err *err)
{
    sigset_t ours, before;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGINT);
    (void)sigaddset(&ours, SIGTERM);
    (void)sigaddset(&ours, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &ours, &before);
    gp_changer_apply(run->settings.changer);
    int r = print(run, true, err);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r < 0 ? r : sum_up(run, err);
}

/* The driver decides who may change settings; the simulated one can be configured. */
static bool is_root(void)
{
    const char *told = gp_app_observed()->sim ? getenv("GPULSE_SIM_ROOT") : NULL;
    return told && *told ? strcmp(told, "0") != 0 : geteuid() == 0;
}

/* What would change, and what it needs. */
static int dry_run(const struct set_run *run, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    int r = print(run, false, err);
    if (r < 0)
        return r;
    gp_settings_warn(&run->settings);
    if (!run->options->yes && warn_of_losses(&run->settings))
        warn("this will need confirmation; --yes skips the question");
    if (gp_settings_any_change(&run->settings) && !is_root()) {
        gp_strbuf_adds(&sb, "most changes need root: ");
        add_root_command(&sb, run);
        warn(sb.buf);
    }
    gp_strbuf_fini(&sb);
    return sum_up(run, err);
}

/* ---- the change ---- */

static int change(struct set_run *run, struct gp_changer *changer, struct gp_err *err)
{
    struct gp_settings *settings = &run->settings;
    struct gp_err why;
    int r = gp_settings_begin(settings, &run->request, changer, err);
    if (r < 0)
        return r;
    if (!gp_settings_can_be_reached(settings))
        return sum_up(run, err);
    r = gp_settings_check(settings, &why);
    if (r < 0)
        explain(run, r, why.text, err);
    if (r < 0)
        return r;
    if (run->options->dry_run)
        return dry_run(run, err);
    r = confirm(run, err);
    if (r < 0)
        return r;
    gp_settings_warn(settings);
    return apply(run, err);
}

/* ---- --show, --list, --save ---- */

/* Writes the file completely or not at all; "-" is standard output. */
static int save(const char *path, const struct gp_strbuf *text, struct gp_err *err)
{
    return strcmp(path, "-") == 0 || text->error ? gp_app_write(STDOUT_FILENO, text, err)
                                                 : gp_saved_write(path, text, err);
}

static int show(struct set_run *run, struct gp_changer *changer, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    const struct gp_settings *settings = &run->settings;
    const struct gp_value *host = gp_changer_host(changer);
    const char *path = run->options->save;
    gp_settings_look(&run->settings, &run->request, changer);
    int r = path ? gp_settings_check_save(settings, err) : 0;
    if (r < 0)
        return r;
    if (path)
        gp_settings_add_settings(&sb, settings->targets, settings->count, host);
    else if (strcmp(run->options->format, "json") == 0)
        gp_settings_add_values_json(&sb, settings->targets, settings->count, host);
    else
        gp_settings_add_values(&sb, settings->targets, settings->count);
    r = path ? save(path, &sb, err) : gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    if (r == 0 && path)
        gp_settings_warn_unsaved(settings);
    return r < 0 ? r : gp_settings_check_read(settings, run->options->show, err);
}

static int list(const struct set_options *o, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (strcmp(o->format, "json") == 0)
        gp_settings_add_list_json(&sb);
    else
        gp_settings_add_list(&sb);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* ---- the command ---- */

static void tell_wait(const char *whom)
{
    char text[400];
    uint64_t most_ns = gp_app_timeout_ns(CHANGE_TIMEOUT_S * GP_NS_PER_S);
    (void)snprintf(text, sizeof(text), "waiting for %s, at most %.0f s", whom,
                   (double)most_ns / 1e9);
    warn(text);
}

static int open_changer(const struct set_options *o, struct gp_changer **ret, struct gp_err *err)
{
    bool looks = o->show || o->save || o->dry_run;
    uint64_t timeout_s = looks ? LOOK_TIMEOUT_S : CHANGE_TIMEOUT_S;
    struct gp_changer_config config = {.timeout_ns = gp_app_timeout_ns(timeout_s * GP_NS_PER_S),
                                       .on_wait = looks ? NULL : tell_wait,
                                       .patience_ns = PATIENCE_S * GP_NS_PER_S};
    int r = gp_app_source(&config.source, &config.selection, err);
    if (r == 0)
        r = gp_changer_new(&config, ret, err);
    if (r == GP_ETIMEOUT)
        gp_app_note_stuck();
    return r;
}

static int run_set(struct set_run *run, struct gp_err *err)
{
    const struct set_options *o = run->options;
    struct gp_changer *changer;
    int r = o->restore ? gp_saved_read(o->restore, &run->saved, err) : 0;
    run->request.saved = o->restore ? &run->saved : NULL;
    run->request.path = o->restore;
    run->request.is_selection = gp_common()->id;
    run->request.warn = warn;
    if (r == 0)
        r = open_changer(o, &changer, err);
    if (r == 0) {
        r = o->show || o->save ? show(run, changer, err) : change(run, changer, err);
        if (!gp_changer_free(changer))
            gp_app_note_stuck();
    }
    gp_saved_fini(&run->saved);
    return r;
}

static int check_options(const struct set_options *o, int words, struct gp_err *err)
{
    int modes = o->show + o->list + (o->save != NULL) + (o->restore != NULL) + (words > 0);
    if (modes == 0)
        return gp_err_set(
            err, GP_EUSAGE,
            "nothing to set; gpulse set --list shows the settings, gpulse set --show their values");
    if (modes > 1)
        return gp_err_set(err, GP_EUSAGE,
                          "NAME=VALUE, --show, --list, --save and --restore cannot be combined");
    return 0;
}

static int set_main(int argc, char **argv, struct gp_err *err)
{
    struct set_options o = {.format = "table"};
    struct set_run run = {.options = &o};
    int words;
    bool done;
    int r = gp_app_parse(&gp_cmd_set, argc, argv, &o, &words, &done, err);
    if (r < 0 || done)
        return r;
    r = check_options(&o, words, err);
    for (int i = 1; r == 0 && i <= words; i++)
        r = gp_settings_assign(&run.request, argv[i], err);
    if (r < 0)
        return r;
    return o.list ? list(&o, err) : run_set(&run, err);
}

const struct gp_cmd gp_cmd_set = {
    .name = "set",
    .summary = "change GPU settings: power limit, clocks, fans, modes, MIG",
    .usage = "NAME=VALUE… [options]",
    .description =
        "All values are checked against the limits of each GPU before the first one is applied; "
        "--restore skips values outside them. Each change is shown as old -> new, applied, read "
        "back, and followed by the command that undoes it. Most changes need root. Where a setting "
        "can be reset, the values default, reset and auto all do so.\n"
        "\n"
        "Many settings last only while the driver keeps the GPU initialized; persistence-mode=on "
        "keeps it initialized. --save and --restore carry settings over a reboot; the systemd unit "
        "gpulse-restore.service does this with /etc/gpulse/settings.json.",
    .examples = "gpulse set --show\tall settings and their ranges\n"
                "gpulse set power-limit=300 -i 0 --dry-run\twhat would change\n"
                "gpulse set persistence-mode=on power-limit=300\tall GPUs\n"
                "gpulse set lock-gpu-clocks=1200,1500 -i 1\tlimit the clock to a range\n"
                "gpulse set mig-mode=on mig-instances=3g.40gb,4g.40gb -i 0\tpartition a GPU\n",
    .options = options,
    .no_loop = true,
    .complete = GP_COMPLETE_CONTROLS,
    .run = set_main,
};
