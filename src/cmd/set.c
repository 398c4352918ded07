/* gpulse set: changes settings of GPUs. Everything is checked before the first setter is called;
 * what was is shown and can be brought back by the command that is printed. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/set_file.h"
#include "cmd/set_view.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_S = 30, ALL_CONTROLS = (1 << GP_CONTROL__COUNT) - 1 };

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
    {0, "dry-run", NULL, GP_OPT_FLAG, .offset = OPT(dry_run),
     .help = "say what would change, and change nothing"},
    {'y', "yes", NULL, GP_OPT_FLAG, .offset = OPT(yes),
     .help = "do not ask before something that does not come back"},
    {0, "show", NULL, GP_OPT_FLAG, .offset = OPT(show),
     .help = "show the value and the range of every control"},
    {0, "list", NULL, GP_OPT_FLAG, .offset = OPT(list), .help = "describe the controls"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "table json", .offset = OPT(format),
     .help = "of --show and --list (default table)"},
    {0, "save", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE, .offset = OPT(save),
     .help = "write the settings of the GPUs into FILE"},
    {0, "restore", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,
     .offset = OPT(restore), .help = "set what FILE says and differs; GPUs are known by UUID"},
    GP_OPT_END,
};

struct set_run {
    const struct set_options *options;
    uint32_t controls; /* bit 1 << id: what is set */
    struct gp_control_value values[GP_CONTROL__COUNT];
    struct gp_saved saved;
    struct gp_changer *changer;
    struct gp_target *targets;
    size_t count;
    bool skipped; /* a part of a restored file */
};

static uint32_t bit(enum gp_control_id id)
{
    return 1u << id;
}

/* ---- what is wanted ---- */

static int parse_assignment(const char *word, struct set_run *run, struct gp_err *err)
{
    size_t n = strcspn(word, "=");
    enum gp_control_id id;
    if (!word[n])
        return gp_err_set(err, GP_EUSAGE,
                          "'%.60s': expected NAME=VALUE, as in power-limit=300; gpulse set --list "
                          "shows the names",
                          word);
    int r = gp_control_find(word, n, &id, err);
    if (r < 0)
        return r;
    if (run->controls & bit(id))
        return gp_err_set(err, GP_EUSAGE, "%s is given twice", gp_control_table[id].name);
    run->controls |= bit(id);
    return gp_control_parse(id, word + n + 1, &run->values[id], err);
}

static void want_assignments(struct set_run *run)
{
    for (size_t t = 0; t < run->count; t++)
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
            run->targets[t].changes[id].wanted = run->controls & bit((enum gp_control_id)id);
            run->targets[t].changes[id].value = run->values[id];
        }
}

static void want_saved(struct set_run *run)
{
    for (size_t g = 0; g < run->saved.count; g++) {
        struct gp_saved_gpu *gpu = &run->saved.gpus[g];
        for (size_t t = 0; t < run->count; t++) {
            struct gp_target *target = &run->targets[t];
            if (target->is_mig || strcmp(target->uuid, gpu->uuid) != 0)
                continue;
            gpu->present = true;
            for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
                target->changes[id].wanted = gpu->has[id];
                target->changes[id].value = gpu->values[id];
            }
        }
    }
}

/* What must be known to judge the changes. */
static uint32_t controls_to_read(uint32_t changed)
{
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
        if (changed & bit((enum gp_control_id)id) && gp_control_table[id].is_volatile)
            changed |= bit(GP_CONTROL_PERSISTENCE);
    if (changed & (bit(GP_CONTROL_MIG_MODE) | bit(GP_CONTROL_MIG_INSTANCES)))
        changed |= bit(GP_CONTROL_MIG_MODE) | bit(GP_CONTROL_MIG_INSTANCES);
    return changed;
}

/* ---- messages ---- */

static void warn(const char *text)
{
    struct gp_err words;
    (void)gp_err_set(&words, GP_EFAIL, "%s", text);
    gp_io_print_error("gpulse", &words);
}

/* "GPU 0, GPU 1: …" for all targets that `concerns` names. */
static void warn_about(const struct set_run *run, bool (*concerns)(const struct gp_target *target),
                       const char *text)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    for (size_t t = 0; t < run->count; t++) {
        if (run->targets[t].code || !concerns(&run->targets[t]))
            continue;
        gp_strbuf_adds(&sb, sb.len ? ", " : "");
        gp_set_add_target(&sb, &run->targets[t]);
    }
    if (sb.len > 0) {
        gp_strbuf_addf(&sb, ": %s", text);
        warn(sb.buf);
    }
    gp_strbuf_fini(&sb);
}

static bool is_changing(const struct gp_target *target, enum gp_control_id id)
{
    const struct gp_setting *now = &target->settings[id];
    return target->changes[id].wanted &&
           !(now->known && gp_control_satisfies(id, &now->value, &target->changes[id].value));
}

static bool loses_settings(const struct gp_target *target)
{
    const struct gp_setting *now = &target->settings[GP_CONTROL_PERSISTENCE];
    const struct gp_change *change = &target->changes[GP_CONTROL_PERSISTENCE];
    bool persistent = change->wanted ? change->value.n[0] : now->known && now->value.n[0];
    if (persistent || now->status != GP_STATUS_OK)
        return false;
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
        if (gp_control_table[id].is_volatile && !target->changes[id].value.automatic &&
            is_changing(target, (enum gp_control_id)id))
            return true;
    return false;
}

static bool fixes_fans(const struct gp_target *target)
{
    return is_changing(target, GP_CONTROL_FAN_SPEED) &&
           !target->changes[GP_CONTROL_FAN_SPEED].value.automatic;
}

static void warn_before(const struct set_run *run)
{
    warn_about(run, loses_settings,
               "persistence mode is off: the setting is lost when the last program lets go of the "
               "GPU; to keep it add persistence-mode=on");
    warn_about(run, fixes_fans, gp_control_table[GP_CONTROL_FAN_SPEED].warning);
}

/* ---- checking ---- */

static int check_change(struct gp_target *target, enum gp_control_id id, struct gp_err *err)
{
    const struct gp_setting *now = &target->settings[id];
    const struct gp_change *mode = &target->changes[GP_CONTROL_MIG_MODE];
    const struct gp_setting *mode_now = &target->settings[GP_CONTROL_MIG_MODE];
    if (target->is_mig && id != GP_CONTROL_MIG_INSTANCES &&
        target->changes[GP_CONTROL_MIG_INSTANCES].wanted)
        return gp_err_set(err, GP_EUSAGE,
                          "%s: an instance that is destroyed has none; leave out "
                          "mig-instances=none",
                          gp_control_table[id].name);
    if (now->status == GP_STATUS_NO_PERMISSION)
        return gp_err_set(err, GP_EPERM, "%s: no permission: %s", gp_control_table[id].name,
                          now->words);
    if (now->status != GP_STATUS_OK)
        return gp_err_set(err, GP_EFAIL, "%s: not supported%s%s", gp_control_table[id].name,
                          now->words[0] ? ": " : "", now->words);
    if (id == GP_CONTROL_MIG_INSTANCES && !target->is_mig && target->changes[id].value.text[0] &&
        !(mode->wanted ? mode->value.n[0] : mode_now->value.n[0]))
        return gp_err_set(err, GP_EUSAGE, "mig-instances: MIG mode is off; add mig-mode=on");
    return gp_control_check(id, now, &target->changes[id].value, err);
}

/* A restored file loses what does not fit any more; a command that does not fit is not begun. */
static int check_target(struct set_run *run, struct gp_target *target, struct gp_err *err)
{
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        struct gp_err why = {0};
        if (!target->changes[id].wanted)
            continue;
        int r = check_change(target, (enum gp_control_id)id, &why);
        if (r == 0)
            continue;
        char words[sizeof(why.text) + 64];
        (void)snprintf(words, sizeof(words), "GPU %u: %s", target->index, why.text);
        if (!run->options->restore)
            return gp_err_set(err, r, "%s", words);
        warn(words);
        target->changes[id].wanted = false;
        run->skipped = true;
    }
    return 0;
}

static int check(struct set_run *run, struct gp_err *err)
{
    int r = 0;
    for (size_t t = 0; r == 0 && t < run->count; t++)
        if (run->targets[t].code == 0)
            r = check_target(run, &run->targets[t], err);
    return r == 0 ? gp_changer_check(run->changer, err) : r;
}

/* ---- asking ---- */

static bool takes_away(const struct gp_target *target)
{
    const struct gp_setting *instances = &target->settings[GP_CONTROL_MIG_INSTANCES];
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        if (!gp_control_table[id].destroys || !is_changing(target, (enum gp_control_id)id))
            continue;
        /* partitions that are only added take nothing away */
        if (id != GP_CONTROL_MIG_INSTANCES || !instances->known || instances->value.text[0])
            return true;
    }
    return false;
}

static int confirm(const struct set_run *run, struct gp_err *err)
{
    char answer[16] = "";
    bool needed = false;
    for (size_t t = 0; t < run->count; t++)
        needed = needed || (run->targets[t].code == 0 && takes_away(&run->targets[t]));
    if (!needed || run->options->yes)
        return 0;
    if (!isatty(STDIN_FILENO))
        return gp_err_set(err, GP_EUSAGE,
                          "this does not come back, so it is asked for: add --yes to do it");
    (void)fprintf(stderr, "This does not come back. Go on? [y/N] ");
    if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
        return gp_err_set(err, GP_EFAIL, "nothing was changed");
    return 0;
}

/* ---- doing it ---- */

static int print(const struct set_run *run, bool results, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    gp_set_add_changes(&sb, run->targets, run->count, results);
    if (results)
        gp_set_add_undo(&sb, run->targets, run->count, gp_app_machine());
    else if (sb.len > 0)
        gp_strbuf_adds(&sb, "nothing was changed (--dry-run)\n");
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* The same command, for root. */
static void add_root_command(struct gp_strbuf *sb, const struct set_run *run)
{
    gp_strbuf_adds(sb, "sudo ");
    gp_set_add_program(sb, gp_app_machine());
    gp_strbuf_adds(sb, " set");
    if (run->options->restore) {
        gp_strbuf_adds(sb, " --restore ");
        gp_set_add_quoted(sb, run->options->restore);
    }
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        if (!(run->controls & bit((enum gp_control_id)id)))
            continue;
        gp_strbuf_addf(sb, " %s=", gp_control_table[id].name);
        gp_control_format(sb, (enum gp_control_id)id, &run->values[id], false);
    }
    if (gp_common()->id) {
        gp_strbuf_adds(sb, " -i ");
        gp_set_add_quoted(sb, gp_common()->id);
    }
}

static void explain(const struct set_run *run, int code, const char *what, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(err->text) - 1);
    gp_strbuf_adds(&sb, what);
    if (code == GP_EPERM) {
        gp_strbuf_adds(&sb, "; only root may do this: ");
        add_root_command(&sb, run);
    }
    (void)gp_err_set(err, code, "%s", sb.buf);
    gp_strbuf_fini(&sb);
}

/* The code of a target that failed, with err filled; 0 if all went well. */
static int failure_of(const struct gp_target *target, struct gp_err *err)
{
    bool concerned = false;
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        const struct gp_change *change = &target->changes[id];
        concerned = concerned || change->wanted;
        if (target->code || !change->wanted || change->outcome != GP_OUTCOME_FAILED)
            continue;
        return gp_err_set(err, change->code, "GPU %u: %s: %s", target->index,
                          gp_control_table[id].name, change->words);
    }
    return concerned && target->code
               ? gp_err_set(err, target->code, "GPU %u: %s", target->index, target->words)
               : 0;
}

/* What the exit status is, and the first thing that went wrong. */
static int sum_up(const struct set_run *run, struct gp_err *err)
{
    struct gp_err first = {0};
    bool mixed = run->skipped;
    for (size_t t = 0; t < run->count; t++) {
        struct gp_err here = {0};
        int code = failure_of(&run->targets[t], &here);
        mixed = mixed || (t > 0 && code != first.code);
        if (!first.code)
            first = here;
    }
    if (first.code)
        explain(run, first.code, first.text, err);
    return mixed ? GP_EPARTIAL : first.code;
}

/* A signal must not come between a change and the word of how to undo it; the deadline ends the
 * wait. */
static int apply(struct set_run *run, struct gp_err *err)
{
    sigset_t ours, before;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGINT);
    (void)sigaddset(&ours, SIGTERM);
    (void)sigaddset(&ours, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &ours, &before);
    gp_changer_apply(run->changer);
    int r = print(run, true, err);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r < 0 ? r : sum_up(run, err);
}

static int change(struct set_run *run, struct gp_err *err)
{
    uint32_t controls = run->controls;
    if (run->options->restore)
        want_saved(run);
    else
        want_assignments(run);
    for (size_t t = 0; t < run->count; t++)
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
            if (run->targets[t].changes[id].wanted)
                controls |= bit((enum gp_control_id)id);
    for (size_t g = 0; g < run->saved.count; g++) {
        char words[400];
        if (run->saved.gpus[g].present)
            continue;
        (void)snprintf(words, sizeof(words), "%s %s is not here: left out", run->saved.gpus[g].uuid,
                       run->saved.gpus[g].name);
        warn(words);
    }
    gp_changer_read(run->changer, controls_to_read(controls));
    int r = check(run, err);
    if (r == GP_EPERM) {
        char words[sizeof(err->text)];
        (void)snprintf(words, sizeof(words), "%s", err->text);
        explain(run, r, words, err);
    }
    if (r < 0)
        return r;
    if (run->options->dry_run) {
        r = print(run, false, err);
        return r < 0 ? r : sum_up(run, err);
    }
    r = confirm(run, err);
    if (r < 0)
        return r;
    warn_before(run);
    return apply(run, err);
}

/* ---- --show, --list, --save ---- */

/* The GPUs that could not be asked make the result a part of one. */
static int missing(const struct set_run *run, struct gp_err *err)
{
    for (size_t t = 0; t < run->count; t++)
        if (run->targets[t].code)
            return gp_err_set(err, GP_EPARTIAL, "GPU %u: %s", run->targets[t].index,
                              run->targets[t].words);
    return 0;
}

static int show(struct set_run *run, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    const struct gp_value *host = gp_changer_host(run->changer);
    gp_changer_read(run->changer, ALL_CONTROLS);
    if (run->options->save)
        gp_set_add_settings(&sb, run->targets, run->count, host);
    else if (strcmp(run->options->format, "json") == 0)
        gp_set_add_values_json(&sb, run->targets, run->count, host);
    else
        gp_set_add_values(&sb, run->targets, run->count);
    int r = run->options->save ? gp_saved_write(run->options->save, &sb, err)
                               : gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r < 0 ? r : missing(run, err);
}

static int list(const struct set_options *o, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (strcmp(o->format, "json") == 0)
        gp_set_add_list_json(&sb);
    else
        gp_set_add_list(&sb);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* ---- running ---- */

static int open_changer(struct set_run *run, struct gp_err *err)
{
    struct gp_changer_config config = {.timeout_ns = gp_app_timeout_ns(TIMEOUT_S * GP_NS_PER_S)};
    int r = gp_app_source(&config.source, &config.selection, err);
    if (r == 0)
        r = gp_changer_new(&config, &run->changer, err);
    if (r == GP_ETIMEOUT)
        gp_app_note_stuck();
    if (r == 0)
        run->targets = gp_changer_targets(run->changer, &run->count);
    return r;
}

static int run_set(struct set_run *run, struct gp_err *err)
{
    int r = run->options->restore ? gp_saved_read(run->options->restore, &run->saved, err) : 0;
    if (r == 0)
        r = open_changer(run, err);
    if (r == 0) {
        r = run->options->show || run->options->save ? show(run, err) : change(run, err);
        if (!gp_changer_free(run->changer))
            gp_app_note_stuck();
    }
    gp_saved_fini(&run->saved);
    return r;
}

static int check_options(const struct set_options *o, int words, struct gp_err *err)
{
    int modes = o->show + o->list + (o->save != NULL) + (o->restore != NULL) + (words > 0);
    if (modes == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "nothing to set; gpulse set --list shows the controls, gpulse set --show "
                          "their values");
    if (modes > 1)
        return gp_err_set(err, GP_EUSAGE,
                          "NAME=VALUE, --show, --list, --save and --restore exclude each other");
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
        r = parse_assignment(argv[i], &run, err);
    if (r < 0)
        return r;
    return o.list ? list(&o, err) : run_set(&run, err);
}

const struct gp_cmd gp_cmd_set = {
    .name = "set",
    .summary = "change settings of GPUs: power limit, clocks, fans, modes, MIG",
    .usage = "NAME=VALUE… [options]",
    .description =
        "Each change is shown as old -> new, applied, read back, and followed by the command that "
        "undoes it. All values are checked against what each GPU allows before the first one is "
        "set. Most changes need root.\n\n"
        "Many settings last only as long as the driver keeps the GPU initialised; "
        "persistence-mode=on keeps it so. --save and --restore carry them over a reboot; the "
        "systemd unit gpulse-restore.service does so with /etc/gpulse/settings.json.",
    .examples = "gpulse set --show\twhat can be set, and what is\n"
                "gpulse set power-limit=300 -i 0 --dry-run\twhat would change\n"
                "gpulse set persistence-mode=on power-limit=300\tall GPUs\n"
                "gpulse set lock-gpu-clocks=1200,1500 -i 1\tkeep the clock in a range\n"
                "gpulse set mig-mode=on mig-instances=3g.40gb,4g.40gb -i 0\tpartition a GPU\n"
                "gpulse set --save settings.json\tbefore a reboot\n"
                "gpulse set --restore settings.json\tbehind it\n",
    .options = options,
    .complete = GP_COMPLETE_CONTROLS,
    .run = set_main,
};
