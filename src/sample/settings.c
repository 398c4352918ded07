#include "sample/settings.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALL_CONTROLS = (1 << GP_CONTROL__COUNT) - 1 };

static uint32_t bit(enum gp_control_id id)
{
    return 1u << id;
}

void gp_settings_add_target(struct gp_strbuf *sb, const struct gp_target *target)
{
    gp_strbuf_addf(sb, "GPU %u", target->index);
    if (target->is_mig)
        gp_strbuf_addf(sb, " instance %u", target->mig_index);
}

/* ---- messages ---- */

static void warn(const struct gp_settings *settings, const char *fmt, ...) GP_PRINTF(2, 3);

static void warn(const struct gp_settings *settings, const char *fmt, ...)
{
    struct gp_err words;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(words.text, sizeof(words.text), fmt, args);
    va_end(args);
    if (settings->request->warn)
        settings->request->warn(words.text);
}

/* ---- requested changes ---- */

int gp_settings_assign(struct gp_settings_request *request, const char *word, struct gp_err *err)
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
    if (request->controls & bit(id))
        return gp_err_set(err, GP_EUSAGE, "%s is given twice", gp_control_table[id].name);
    request->controls |= bit(id);
    return gp_control_parse(id, word + n + 1, &request->values[id], err);
}

static void want_assignments(struct gp_settings *settings)
{
    const struct gp_settings_request *request = settings->request;
    for (size_t t = 0; t < settings->count; t++)
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
            settings->targets[t].changes[id].wanted =
                request->controls & bit((enum gp_control_id)id);
            settings->targets[t].changes[id].value = request->values[id];
        }
}

static struct gp_saved_gpu *saved_gpu(struct gp_saved *saved, const struct gp_target *target)
{
    for (size_t g = 0; !target->is_mig && g < saved->count; g++)
        if (strcmp(target->uuid, saved->gpus[g].uuid) == 0)
            return &saved->gpus[g];
    return NULL;
}

static void want_saved(struct gp_settings *settings)
{
    for (size_t t = 0; t < settings->count; t++) {
        struct gp_target *target = &settings->targets[t];
        struct gp_saved_gpu *gpu = saved_gpu(settings->request->saved, target);
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
static int refuse_file(const struct gp_settings *settings, struct gp_err *err)
{
    const struct gp_saved *saved = settings->request->saved;
    struct gp_strbuf theirs = GP_STRBUF_INIT(1024), ours = GP_STRBUF_INIT(1024);
    for (size_t g = 0; g < saved->count; g++)
        add_uuid(&theirs, g, saved->gpus[g].uuid);
    for (size_t t = 0; t < settings->count; t++)
        add_uuid(&ours, t, settings->targets[t].uuid);
    int r =
        gp_err_set(err, GP_ENODEV, "no GPU in '%s' (%s) is in this machine; %s %s",
                   settings->request->path, saved->count ? theirs.buf : "none",
                   settings->request->is_selection ? "--id selects" : "this machine has", ours.buf);
    gp_strbuf_fini(&theirs);
    gp_strbuf_fini(&ours);
    return r;
}

/* A GPU that cannot report its UUID; NULL if there is none. */
static const struct gp_target *unknown_gpu(const struct gp_settings *settings)
{
    for (size_t t = 0; t < settings->count; t++)
        if (settings->targets[t].code && !settings->targets[t].uuid[0])
            return &settings->targets[t];
    return NULL;
}

/* Reports GPUs in the file that are not in this machine. */
static int find_saved(struct gp_settings *settings, struct gp_err *err)
{
    const struct gp_saved *saved = settings->request->saved;
    const struct gp_target *unknown = unknown_gpu(settings);
    size_t missing = 0;
    for (size_t g = 0; g < saved->count; g++)
        missing += !saved->gpus[g].present;
    if (missing > 0 && unknown)
        settings->is_incomplete = true;
    if (missing == saved->count && unknown)
        return gp_err_set(err, unknown->code,
                          "GPU %u: %s; it is unknown whether '%s' has settings for it",
                          unknown->index, unknown->words, settings->request->path);
    if (missing == saved->count)
        return refuse_file(settings, err);
    for (size_t g = 0; g < saved->count; g++) {
        const struct gp_saved_gpu *gpu = &saved->gpus[g];
        if (!gpu->present)
            warn(settings, "%s%s%s is not in this machine: skipped", gpu->uuid,
                 gpu->name[0] ? " " : "", gpu->name);
    }
    if (missing > 0 && unknown)
        warn(settings, "GPU %u: %s; it may be one of the skipped GPUs", unknown->index,
             unknown->words);
    return 0;
}

/* ---- effects ---- */

/* "GPU 0, GPU 1: …" for all targets that `concerns` selects. */
static void warn_about(const struct gp_settings *settings,
                       bool (*concerns)(const struct gp_target *target), const char *text)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    for (size_t t = 0; t < settings->count; t++) {
        if (settings->targets[t].code || !concerns(&settings->targets[t]))
            continue;
        gp_strbuf_adds(&sb, sb.len ? ", " : "");
        gp_settings_add_target(&sb, &settings->targets[t]);
    }
    if (sb.len > 0) {
        gp_strbuf_addf(&sb, ": %s", text);
        warn(settings, "%s", sb.buf);
    }
    gp_strbuf_fini(&sb);
}

static bool is_changing(const struct gp_target *target, enum gp_control_id id)
{
    return target->changes[id].wanted && gp_target_needs(target, id);
}

bool gp_settings_any_change(const struct gp_settings *settings)
{
    for (size_t t = 0; t < settings->count; t++)
        for (unsigned id = 0; settings->targets[t].code == 0 && id < GP_CONTROL__COUNT; id++)
            if (is_changing(&settings->targets[t], (enum gp_control_id)id))
                return true;
    return false;
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

void gp_settings_warn(const struct gp_settings *settings)
{
    warn_about(settings, loses_settings,
               "persistence mode is off: the setting is lost when the last program closes the GPU; "
               "to keep it add persistence-mode=on");
    warn_about(settings, fixes_fans, gp_control_table[GP_CONTROL_FAN_SPEED].warning);
}

bool gp_settings_loses(const struct gp_target *target, enum gp_control_id id)
{
    const struct gp_setting *now = &target->settings[id];
    if (target->code || !gp_control_table[id].loses || !target->changes[id].wanted ||
        !gp_target_needs(target, id))
        return false;
    /* added partitions remove nothing */
    return id != GP_CONTROL_MIG_INSTANCES || !now->known || now->value.text[0];
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

static void leave_out(struct gp_settings *settings, struct gp_target *target, unsigned id,
                      const char *why)
{
    warn(settings, "GPU %u: %s", target->index, why);
    target->changes[id].wanted = false;
    settings->is_incomplete = true;
}

/* When restoring a file, settings that no longer apply are skipped; a command with such a setting
 * is refused as a whole. */
static int check_target(struct gp_settings *settings, struct gp_target *target, struct gp_err *err)
{
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        struct gp_err why = {0};
        if (!target->changes[id].wanted)
            continue;
        int r = check_change(target, (enum gp_control_id)id, &why);
        if (r == 0)
            continue;
        if (!settings->request->saved)
            return gp_err_set(err, r, "GPU %u: %s", target->index, why.text);
        leave_out(settings, target, id, why.text);
    }
    return 0;
}

/* Only values that differ are set. */
static void drop_satisfied(struct gp_settings *settings)
{
    for (size_t t = 0; t < settings->count; t++)
        for (unsigned id = 0; settings->targets[t].code == 0 && id < GP_CONTROL__COUNT; id++)
            if (!is_changing(&settings->targets[t], (enum gp_control_id)id))
                settings->targets[t].changes[id].wanted = false;
}

int gp_settings_check(struct gp_settings *settings, struct gp_err *err)
{
    int r = 0;
    for (size_t t = 0; r == 0 && t < settings->count; t++)
        if (settings->targets[t].code == 0)
            r = check_target(settings, &settings->targets[t], err);
    if (r < 0)
        return r;
    r = gp_changer_check(settings->changer, settings->request->saved ? NULL : err);
    if (!settings->request->saved)
        return r;
    for (size_t t = 0; t < settings->count; t++)
        for (unsigned id = 0; settings->targets[t].code == 0 && id < GP_CONTROL__COUNT; id++)
            if (settings->targets[t].changes[id].code)
                leave_out(settings, &settings->targets[t], id,
                          settings->targets[t].changes[id].words);
    drop_satisfied(settings);
    return 0;
}

/* ---- beginning and result ---- */

int gp_settings_begin(struct gp_settings *settings, const struct gp_settings_request *request,
                      struct gp_changer *changer, struct gp_err *err)
{
    uint32_t controls = request->controls;
    int r = 0;
    *settings = (struct gp_settings){.request = request, .changer = changer};
    settings->targets = gp_changer_targets(changer, &settings->count);
    if (request->saved) {
        want_saved(settings);
        r = find_saved(settings, err);
    } else {
        want_assignments(settings);
    }
    if (r < 0)
        return r;
    for (size_t t = 0; t < settings->count; t++)
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
            if (settings->targets[t].changes[id].wanted)
                controls |= bit((enum gp_control_id)id);
    gp_changer_read(changer, controls_to_read(controls));
    return 0;
}

void gp_settings_look(struct gp_settings *settings, const struct gp_settings_request *request,
                      struct gp_changer *changer)
{
    *settings = (struct gp_settings){.request = request, .changer = changer};
    settings->targets = gp_changer_targets(changer, &settings->count);
    gp_changer_read(changer, ALL_CONTROLS);
}

bool gp_settings_can_be_reached(const struct gp_settings *settings)
{
    for (size_t t = 0; t < settings->count; t++)
        if (!settings->targets[t].left_alone && settings->targets[t].code == 0)
            return true;
    return false;
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
        (void)gp_err_set(err, change->code, "GPU %u: %s: %s", target->index,
                         gp_control_table[id].name, change->words);
        err->driver_code = change->driver_code;
        return err->code;
    }
    if (!concerned || !target->code)
        return 0;
    (void)gp_err_set(err, target->code, "GPU %u: %s", target->index, target->words);
    err->driver_code = target->driver_code;
    return err->code;
}

int gp_settings_result(const struct gp_settings *settings, struct gp_err *err)
{
    struct gp_err first = {0};
    bool mixed = settings->is_incomplete;
    bool any = false;
    for (size_t t = 0; t < settings->count; t++) {
        struct gp_err here = {0};
        if (settings->targets[t].left_alone)
            continue;
        int code = failure_of(&settings->targets[t], &here);
        mixed = mixed || (any && code != first.code);
        any = true;
        if (!first.code)
            first = here;
    }
    if (first.code)
        (void)gp_err_copy(err, &first);
    return mixed ? GP_EPARTIAL : first.code;
}

/* ---- saving ---- */

int gp_settings_check_read(const struct gp_settings *settings, bool or_asleep, struct gp_err *err)
{
    for (size_t t = 0; t < settings->count; t++)
        if (settings->targets[t].code && !(or_asleep && settings->targets[t].is_asleep))
            return gp_err_set(err, GP_EPARTIAL, "GPU %u: %s", settings->targets[t].index,
                              settings->targets[t].words);
    return 0;
}

/* A file with settings is not replaced by one without. */
int gp_settings_check_save(const struct gp_settings *settings, struct gp_err *err)
{
    for (size_t t = 0; t < settings->count; t++)
        if (settings->targets[t].code == 0 && !settings->targets[t].is_mig)
            return 0;
    for (size_t t = 0; t < settings->count; t++)
        if (settings->targets[t].code)
            return gp_err_set(err, settings->targets[t].code, "GPU %u: %s; nothing is saved",
                              settings->targets[t].index, settings->targets[t].words);
    return gp_err_set(
        err, GP_EUSAGE,
        "the settings of a MIG instance are lost with it; select its GPU to save them");
}

void gp_settings_warn_unsaved(const struct gp_settings *settings)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        bool unsaved = false;
        for (size_t t = 0; t < settings->count; t++) {
            const struct gp_setting *s = &settings->targets[t].settings[id];
            unsaved = unsaved || (settings->targets[t].code == 0 && s->status == GP_STATUS_OK &&
                                  !s->known && gp_control_table[id].kind != GP_CONTROL_CLEAR);
        }
        if (unsaved)
            gp_strbuf_addf(&sb, "%s%s", sb.len ? ", " : "", gp_control_table[id].name);
    }
    if (sb.len > 0)
        warn(settings, "not saved, because the driver does not report them: %s", sb.buf);
    gp_strbuf_fini(&sb);
}
