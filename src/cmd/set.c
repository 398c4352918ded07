/* gpulse set: changes settings of GPUs. Everything is checked before the first setter is called.
 * The old values are printed, with the command that restores them. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/set_file.h"
#include "cmd/set_view.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads have the usual time limit. A change may take the driver longer, but a message says which
 * GPU it waits for. */
enum { LOOK_TIMEOUT_S = 3, CHANGE_TIMEOUT_S = 30, PATIENCE_S = 2 };

enum { ALL_CONTROLS = (1 << GP_CONTROL__COUNT) - 1 };

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
    uint32_t controls; /* bit 1 << id: in `values` */
    struct gp_control_value values[GP_CONTROL__COUNT];
    struct gp_saved saved;
    struct gp_changer *changer;
    struct gp_target *targets;
    size_t count;
    bool skipped; /* a section of a restored file */
};

static uint32_t bit(enum gp_control_id id)
{
    return 1u << id;
}

/* ---- requested changes ---- */

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

static struct gp_saved_gpu *saved_gpu(struct set_run *run, const struct gp_target *target)
{
    for (size_t g = 0; !target->is_mig && g < run->saved.count; g++)
        if (strcmp(target->uuid, run->saved.gpus[g].uuid) == 0)
            return &run->saved.gpus[g];
    return NULL;
}

static void want_saved(struct set_run *run)
{
    for (size_t t = 0; t < run->count; t++) {
        struct gp_target *target = &run->targets[t];
        struct gp_saved_gpu *gpu = saved_gpu(run, target);
        target->left_alone = !gpu;
        if (!gpu)
            continue;
        gpu->present = true;
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
            target->changes[id].wanted = gpu->has[id];
            target->changes[id].value = gpu->values[id];
        }
    }
}

/* The metrics needed to check the changes. */
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

static void warn(const char *fmt, ...) GP_PRINTF(1, 2);

static void warn(const char *fmt, ...)
{
    struct gp_err words = {.code = GP_EFAIL};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(words.text, sizeof(words.text), fmt, args);
    va_end(args);
    gp_io_print_error("gpulse", &words);
}

/* "GPU 0, GPU 1: …" for all targets that `concerns` selects. */
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
        warn("%s", sb.buf);
    }
    gp_strbuf_fini(&sb);
}

static bool is_changing(const struct gp_target *target, enum gp_control_id id)
{
    return target->changes[id].wanted && gp_target_needs(target, id);
}

/* The defaults of the GPU need no persistence: nothing is lost. */
static bool is_default(const struct gp_target *target, enum gp_control_id id)
{
    const struct gp_setting *now = &target->settings[id];
    const struct gp_control_value *value = &target->changes[id].value;
    return value->automatic ||
           (now->has_fallback && gp_control_satisfies(id, value, &now->fallback));
}

static bool loses_settings(const struct gp_target *target)
{
    const struct gp_setting *now = &target->settings[GP_CONTROL_PERSISTENCE];
    const struct gp_change *change = &target->changes[GP_CONTROL_PERSISTENCE];
    bool persistent = change->wanted ? change->value.n[0] : now->known && now->value.n[0];
    if (persistent || now->status != GP_STATUS_OK)
        return false;
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
        if (gp_control_table[id].is_volatile && is_changing(target, (enum gp_control_id)id) &&
            !is_default(target, (enum gp_control_id)id))
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
               "persistence mode is off: the setting is lost when the last program closes the GPU; "
               "to keep it add persistence-mode=on");
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
        return gp_err_set(
            err, GP_EUSAGE,
            "%s: an instance that is destroyed has no settings; omit mig-instances=none",
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

static void leave_out(struct set_run *run, struct gp_target *target, unsigned id, const char *why)
{
    warn("GPU %u: %s", target->index, why);
    target->changes[id].wanted = false;
    run->skipped = true;
}

/* When restoring a file, settings that no longer apply are skipped; a command with such a setting
 * is refused as a whole. */
static int check_target(struct set_run *run, struct gp_target *target, struct gp_err *err)
{
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        struct gp_err why = {0};
        if (!target->changes[id].wanted)
            continue;
        int r = check_change(target, (enum gp_control_id)id, &why);
        if (r == 0)
            continue;
        if (!run->options->restore)
            return gp_err_set(err, r, "GPU %u: %s", target->index, why.text);
        leave_out(run, target, id, why.text);
    }
    return 0;
}

static int check(struct set_run *run, struct gp_err *err)
{
    int r = 0;
    for (size_t t = 0; r == 0 && t < run->count; t++)
        if (run->targets[t].code == 0)
            r = check_target(run, &run->targets[t], err);
    if (r < 0)
        return r;
    r = gp_changer_check(run->changer, run->options->restore ? NULL : err);
    if (!run->options->restore)
        return r;
    for (size_t t = 0; t < run->count; t++)
        for (unsigned id = 0; run->targets[t].code == 0 && id < GP_CONTROL__COUNT; id++)
            if (run->targets[t].changes[id].code)
                leave_out(run, &run->targets[t], id, run->targets[t].changes[id].words);
    return 0;
}

/* ---- confirmation ---- */

/* Says what would be lost; false if nothing is. */
static bool warn_losses(const struct set_run *run)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    bool any = false;
    for (size_t t = 0; t < run->count; t++)
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
            if (!gp_set_takes_away(&run->targets[t], (enum gp_control_id)id))
                continue;
            gp_strbuf_reset(&sb);
            gp_set_add_loss(&sb, &run->targets[t], (enum gp_control_id)id);
            warn("%s", sb.buf);
            any = true;
        }
    gp_strbuf_fini(&sb);
    return any;
}

static int confirm(const struct set_run *run, struct gp_err *err)
{
    if (run->options->yes || !warn_losses(run))
        return 0;
    return gp_app_confirm("Continue", "nothing was changed", err);
}

/* ---- applying ---- */

static int print(const struct set_run *run, bool results, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    gp_set_add_changes(&sb, run->targets, run->count, results);
    if (results)
        gp_set_add_undo(&sb, run->targets, run->count, gp_app_machine());
    else if (sb.len > 0)
        gp_strbuf_adds(&sb, "nothing was changed (--dry-run)\n");
    if (sb.len == 0 && run->options->restore && !run->skipped)
        gp_strbuf_addf(&sb, "nothing to change: the settings are as in '%s'\n",
                       run->options->restore);
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
        gp_utf8_add_shell_word(sb, run->options->restore);
    }
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        if (!(run->controls & bit((enum gp_control_id)id)))
            continue;
        gp_strbuf_addf(sb, " %s=", gp_control_table[id].name);
        gp_control_format(sb, (enum gp_control_id)id, &run->values[id], false);
    }
    if (gp_common()->id) {
        gp_strbuf_adds(sb, " -i ");
        gp_utf8_add_shell_word(sb, gp_common()->id);
    }
}

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

/* The code of a target that failed, with err filled; 0 if all succeeded. */
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

/* Determines the exit status and the first failure. */
static int sum_up(const struct set_run *run, struct gp_err *err)
{
    struct gp_err first = {0};
    bool mixed = run->skipped;
    bool any = false;
    for (size_t t = 0; t < run->count; t++) {
        struct gp_err here = {0};
        if (run->targets[t].left_alone)
            continue;
        int code = failure_of(&run->targets[t], &here);
        mixed = mixed || (any && code != first.code);
        any = true;
        if (!first.code)
            first = here;
    }
    if (first.code)
        explain(run, first.code, first.text, err);
    return mixed ? GP_EPARTIAL : first.code;
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
    gp_changer_apply(run->changer);
    int r = print(run, true, err);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r < 0 ? r : sum_up(run, err);
}

/* The driver decides who may change settings; the simulated one can be configured. */
static bool is_root(void)
{
    const char *told = gp_app_machine() ? getenv("GPULSE_SIM_ROOT") : NULL;
    return told && *told ? strcmp(told, "0") != 0 : geteuid() == 0;
}

/* What would change, and what it needs. */
static int dry_run(const struct set_run *run, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    bool any = false;
    int r = print(run, false, err);
    if (r < 0)
        return r;
    warn_before(run);
    if (!run->options->yes && warn_losses(run))
        warn("this will need confirmation; --yes skips the question");
    for (size_t t = 0; t < run->count; t++)
        for (unsigned id = 0; run->targets[t].code == 0 && id < GP_CONTROL__COUNT; id++)
            any = any || is_changing(&run->targets[t], (enum gp_control_id)id);
    if (any && !is_root()) {
        add_root_command(&sb, run);
        warn("most changes need root: %s", sb.buf);
    }
    gp_strbuf_fini(&sb);
    return sum_up(run, err);
}

/* ---- restoring a file ---- */

/* The first few of a list. */
static void add_uuid(struct gp_strbuf *sb, size_t i, const char *uuid)
{
    enum { NAMED_MAX = 3 };
    if (i < NAMED_MAX)
        gp_strbuf_addf(sb, "%s%s", i ? ", " : "", uuid);
    else if (i == NAMED_MAX)
        gp_strbuf_adds(sb, ", …");
}

/* No GPU of the file is in this machine: an error, not a success. */
static int refuse_file(const struct set_run *run, struct gp_err *err)
{
    struct gp_strbuf theirs = GP_STRBUF_INIT(1024), ours = GP_STRBUF_INIT(1024);
    for (size_t g = 0; g < run->saved.count; g++)
        add_uuid(&theirs, g, run->saved.gpus[g].uuid);
    for (size_t t = 0; t < run->count; t++)
        add_uuid(&ours, t, run->targets[t].uuid);
    int r = gp_err_set(err, GP_ENODEV, "no GPU in '%s' (%s) is in this machine; %s %s",
                       run->options->restore, run->saved.count ? theirs.buf : "none",
                       gp_common()->id ? "--id selects" : "this machine has", ours.buf);
    gp_strbuf_fini(&theirs);
    gp_strbuf_fini(&ours);
    return r;
}

/* A GPU that cannot report its UUID; NULL if there is none. */
static const struct gp_target *unknown_gpu(const struct set_run *run)
{
    for (size_t t = 0; t < run->count; t++)
        if (run->targets[t].code && !run->targets[t].uuid[0])
            return &run->targets[t];
    return NULL;
}

/* Reports GPUs in the file that are not in this machine. */
static int find_saved(struct set_run *run, struct gp_err *err)
{
    const struct gp_target *unknown = unknown_gpu(run);
    size_t missing = 0;
    for (size_t g = 0; g < run->saved.count; g++)
        missing += !run->saved.gpus[g].present;
    if (missing > 0 && unknown)
        run->skipped = true;
    if (missing == run->saved.count && unknown)
        return gp_err_set(err, unknown->code,
                          "GPU %u: %s; it is unknown whether '%s' has settings for it",
                          unknown->index, unknown->words, run->options->restore);
    if (missing == run->saved.count)
        return refuse_file(run, err);
    for (size_t g = 0; g < run->saved.count; g++) {
        const struct gp_saved_gpu *gpu = &run->saved.gpus[g];
        if (!gpu->present)
            warn("%s%s%s is not in this machine: skipped", gpu->uuid, gpu->name[0] ? " " : "",
                 gpu->name);
    }
    if (missing > 0 && unknown)
        warn("GPU %u: %s; it may be one of the skipped GPUs", unknown->index, unknown->words);
    return 0;
}

/* Only values that differ are set. */
static void drop_satisfied(struct set_run *run)
{
    for (size_t t = 0; t < run->count; t++)
        for (unsigned id = 0; run->targets[t].code == 0 && id < GP_CONTROL__COUNT; id++)
            if (!is_changing(&run->targets[t], (enum gp_control_id)id))
                run->targets[t].changes[id].wanted = false;
}

/* ---- the change ---- */

static bool can_be_reached(const struct set_run *run)
{
    for (size_t t = 0; t < run->count; t++)
        if (!run->targets[t].left_alone && run->targets[t].code == 0)
            return true;
    return false;
}

/* Adds the command for root to err, if root is required. */
static int check_all(struct set_run *run, struct gp_err *err)
{
    int r = check(run, err);
    if (r == GP_EPERM) {
        char words[sizeof(err->text)];
        (void)snprintf(words, sizeof(words), "%s", err->text);
        explain(run, r, words, err);
    }
    return r;
}

static int change(struct set_run *run, struct gp_err *err)
{
    uint32_t controls = run->controls;
    int r = 0;
    if (run->options->restore) {
        want_saved(run);
        r = find_saved(run, err);
    } else {
        want_assignments(run);
    }
    if (r < 0)
        return r;
    for (size_t t = 0; t < run->count; t++)
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
            if (run->targets[t].changes[id].wanted)
                controls |= bit((enum gp_control_id)id);
    gp_changer_read(run->changer, controls_to_read(controls));
    if (!can_be_reached(run))
        return sum_up(run, err);
    r = check_all(run, err);
    if (r < 0)
        return r;
    if (run->options->restore)
        drop_satisfied(run);
    if (run->options->dry_run)
        return dry_run(run, err);
    r = confirm(run, err);
    if (r < 0)
        return r;
    warn_before(run);
    return apply(run, err);
}

/* ---- --show, --list, --save ---- */

/* GPUs that could not be read make the result partial. A sleeping GPU is shown as such, and left
 * out of a file. */
static int missing(const struct set_run *run, struct gp_err *err)
{
    for (size_t t = 0; t < run->count; t++)
        if (run->targets[t].code && !(run->options->show && run->targets[t].is_asleep))
            return gp_err_set(err, GP_EPARTIAL, "GPU %u: %s", run->targets[t].index,
                              run->targets[t].words);
    return 0;
}

/* A file with settings is not replaced by one without. */
static int check_save(const struct set_run *run, struct gp_err *err)
{
    for (size_t t = 0; t < run->count; t++)
        if (run->targets[t].code == 0 && !run->targets[t].is_mig)
            return 0;
    for (size_t t = 0; t < run->count; t++)
        if (run->targets[t].code)
            return gp_err_set(err, run->targets[t].code, "GPU %u: %s; nothing is saved",
                              run->targets[t].index, run->targets[t].words);
    return gp_err_set(
        err, GP_EUSAGE,
        "the settings of a MIG instance are lost with it; select its GPU to save them");
}

/* Settings that the driver accepts but does not report, such as locked clocks, are not in a
 * file. */
static void warn_unsaved(const struct set_run *run)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        bool unsaved = false;
        for (size_t t = 0; t < run->count; t++) {
            const struct gp_setting *s = &run->targets[t].settings[id];
            unsaved = unsaved || (run->targets[t].code == 0 && s->status == GP_STATUS_OK &&
                                  !s->known && gp_control_table[id].kind != GP_CONTROL_CLEAR);
        }
        if (unsaved)
            gp_strbuf_addf(&sb, "%s%s", sb.len ? ", " : "", gp_control_table[id].name);
    }
    if (sb.len > 0)
        warn("not saved, because the driver does not report them: %s", sb.buf);
    gp_strbuf_fini(&sb);
}

static int show(struct set_run *run, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    const struct gp_value *host = gp_changer_host(run->changer);
    gp_changer_read(run->changer, ALL_CONTROLS);
    int r = run->options->save ? check_save(run, err) : 0;
    if (r < 0)
        return r;
    if (run->options->save)
        gp_set_add_settings(&sb, run->targets, run->count, host);
    else if (strcmp(run->options->format, "json") == 0)
        gp_set_add_values_json(&sb, run->targets, run->count, host);
    else
        gp_set_add_values(&sb, run->targets, run->count);
    r = run->options->save ? gp_saved_write(run->options->save, &sb, err)
                           : gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    if (r == 0 && run->options->save)
        warn_unsaved(run);
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

/* ---- the command ---- */

static void tell_wait(const char *whom)
{
    uint64_t most_ns = gp_app_timeout_ns(CHANGE_TIMEOUT_S * GP_NS_PER_S);
    warn("waiting for %s, at most %.0f s", whom, (double)most_ns / 1e9);
}

static int open_changer(struct set_run *run, struct gp_err *err)
{
    const struct set_options *o = run->options;
    bool looks = o->show || o->save || o->dry_run;
    uint64_t timeout_s = looks ? LOOK_TIMEOUT_S : CHANGE_TIMEOUT_S;
    struct gp_changer_config config = {.timeout_ns = gp_app_timeout_ns(timeout_s * GP_NS_PER_S),
                                       .on_wait = looks ? NULL : tell_wait,
                                       .patience_ns = PATIENCE_S * GP_NS_PER_S};
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
        r = parse_assignment(argv[i], &run, err);
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
        "can be reset, the values default, reset and auto all do so.\n\n"
        "Many settings last only while the driver keeps the GPU initialized; "
        "persistence-mode=on keeps it initialized. --save and --restore carry settings over a "
        "reboot; the "
        "systemd unit gpulse-restore.service does this with /etc/gpulse/settings.json.",
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
