/* Reading and changing the settings of GPUs. */
#include "lib/lib.h"

#include "base/arena.h"
#include "base/strbuf.h"
#include "out/field.h"
#include "out/settings.h"
#include "sample/settings.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)GPULSE_NOT_TRIED == (int)GP_OUTCOME_NONE &&
                   (int)GPULSE_SAME == (int)GP_OUTCOME_SAME &&
                   (int)GPULSE_DONE == (int)GP_OUTCOME_DONE &&
                   (int)GPULSE_PENDING == (int)GP_OUTCOME_PENDING &&
                   (int)GPULSE_UNVERIFIED == (int)GP_OUTCOME_UNVERIFIED &&
                   (int)GPULSE_FAILED == (int)GP_OUTCOME_FAILED &&
                   (int)GPULSE_HUNG == (int)GP_OUTCOME_HUNG,
               "outcomes are passed through");

struct row {
    struct gpulse_setting setting;
    const char *undo;
};

struct gpulse_settings {
    struct gp_arena arena; /* of the strings */
    struct row *rows;
    size_t count;
    bool no_memory; /* a string is missing */
};

enum { LOOK_TIMEOUT_S = 3, CHANGE_TIMEOUT_S = 30 };

/* What the rows are about. */
enum form { READ, CHECK, CHANGE };

/* What a thread that hangs in the driver may still use. */
struct work {
    struct gp_selection selection;
    struct gp_settings_request request;
    struct gp_settings settings;
    struct gp_changer *changer;
};

/* ---- the rows ---- */

static const char *copy(gpulse_settings *to, const char *text)
{
    const char *copied = *text ? gp_arena_strdup(&to->arena, text) : "";
    to->no_memory = to->no_memory || !copied;
    return copied ? copied : "";
}

static const char *format(gpulse_settings *to, unsigned id, const struct gp_control_value *value)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_control_format(&sb, (enum gp_control_id)id, value, false);
    to->no_memory = to->no_memory || sb.error;
    const char *text = copy(to, sb.buf);
    gp_strbuf_fini(&sb);
    return text;
}

static enum gpulse_status status_of(const struct gp_target *target, unsigned id)
{
    if (target->is_asleep)
        return GPULSE_ASLEEP;
    if (target->code)
        return target->code == GP_ETIMEOUT ? GPULSE_TIMEOUT : GPULSE_ERROR;
    return (enum gpulse_status)target->settings[id].status;
}

static const char *reason_of(const struct gp_target *target, unsigned id, bool is_change)
{
    const struct gp_setting *s = &target->settings[id];
    if (target->code)
        return target->words;
    if (is_change && target->changes[id].words[0])
        return target->changes[id].words;
    return s->words[0] || s->status == GP_STATUS_OK ? s->words : gp_status_reason(s->status);
}

static double number(unsigned id, int64_t n)
{
    return gp_control_table[id].kind == GP_CONTROL_WATTS ? (double)n / 1000 : (double)n;
}

static void add_setting(gpulse_settings *to, const struct gp_target *target, unsigned id,
                        struct gpulse_setting *ret)
{
    const struct gp_setting *s = &target->settings[id];
    if (s->status != GP_STATUS_OK)
        return;
    ret->value = s->known ? format(to, id, &s->value) : "";
    ret->pending = s->has_pending ? format(to, id, &s->pending) : "";
    ret->fallback = s->has_fallback ? format(to, id, &s->fallback) : "";
    ret->has_range = s->has_range;
    ret->least = number(id, s->min);
    ret->most = number(id, s->max);
}

/* What a change that hangs has written so far is left alone. */
static void add_change(gpulse_settings *to, const struct gp_target *target, unsigned id,
                       bool is_check, struct gpulse_setting *ret)
{
    const struct gp_change *change = &target->changes[id];
    ret->outcome = (enum gpulse_outcome)gp_target_outcome(target, (enum gp_control_id)id);
    ret->wanted = format(to, id, &change->value);
    if (target->code || ret->outcome == GPULSE_HUNG)
        return;
    if (is_check && !gp_target_needs(target, (enum gp_control_id)id))
        ret->outcome = GPULSE_SAME;
    if (change->after.status == GP_STATUS_OK && change->after.known)
        ret->after = format(to, id, &change->after.value);
}

static void add_row(gpulse_settings *to, const struct gp_target *target, unsigned id,
                    enum form form, const char *undo)
{
    const struct gp_control *control = &gp_control_table[id];
    struct gpulse_setting setting = {
        .name = control->name,
        .unit = control->unit ? control->unit : "",
        .gpu = (int)target->index,
        .mig = target->is_mig ? (int)target->mig_index : -1,
        .uuid = copy(to, target->uuid),
        .status = status_of(target, id),
        .reason = copy(to, reason_of(target, id, form != READ)),
        .value = "",
        .pending = "",
        .fallback = "",
        .wanted = "",
        .after = "",
    };
    add_setting(to, target, id, &setting);
    if (form != READ)
        add_change(to, target, id, form == CHECK, &setting);
    to->rows[to->count++] = (struct row){setting, undo};
}

static const char *undo_of(gpulse_settings *to, const struct gp_target *target)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(8192);
    gp_settings_add_undo(&sb, target);
    to->no_memory = to->no_memory || sb.error;
    const char *text = copy(to, sb.buf + (sb.len > 0)); /* without the first space */
    gp_strbuf_fini(&sb);
    return text;
}

static void add_target(gpulse_settings *to, const struct gp_target *target, bool is_change)
{
    const char *undo = is_change ? undo_of(to, target) : "";
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
        if (is_change ? target->changes[id].wanted : !target->is_mig || gp_control_table[id].on_mig)
            add_row(to, target, id, is_change, undo);
}

static int make_rows(const struct gp_settings *from, enum form form, gpulse_settings **ret,
                     struct gp_err *err)
{
    gpulse_settings *to = calloc(1, sizeof(*to));
    if (to)
        to->rows = calloc(from->count * GP_CONTROL__COUNT + 1, sizeof(*to->rows));
    for (size_t t = 0; to && to->rows && t < from->count; t++)
        add_target(to, &from->targets[t], form);
    if (to && to->rows && !to->no_memory) {
        *ret = to;
        return 0;
    }
    gpulse_settings_free(to);
    return gp_err_set(err, GP_ENOMEM, "out of memory");
}

/* ---- reading and changing ---- */

static int open_changer(struct work *work, const struct gpulse_options *options, unsigned default_s,
                        struct gp_err *err)
{
    const struct gp_observed *machine;
    struct gp_changer_config config = {
        .selection = &work->selection,
        .timeout_ns = gp_lib_timeout_ns(options, default_s),
    };
    int r = options->gpus ? gp_selection_parse(options->gpus, &work->selection, err) : 0;
    if (r == 0)
        r = gp_lib_observe(options, &machine, err);
    if (r == 0)
        r = gp_observed_source(machine, &config.source, err);
    return r < 0 ? r : gp_changer_new(&config, &work->changer, err);
}

static int read_all(struct work *work, unsigned flags, gpulse_settings **ret, struct gp_err *err)
{
    (void)flags;
    gp_settings_look(&work->settings, &work->request, work->changer);
    return make_rows(&work->settings, READ, ret, err);
}

/* The first change that destroys something. */
static int check_losses(const struct gp_settings *settings, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(err->text) - 1);
    int r = 0;
    for (size_t t = 0; r == 0 && t < settings->count; t++)
        for (unsigned id = 0; r == 0 && id < GP_CONTROL__COUNT; id++) {
            if (!gp_settings_loses(&settings->targets[t], (enum gp_control_id)id))
                continue;
            gp_settings_add_loss(&sb, &settings->targets[t], (enum gp_control_id)id);
            r = gp_err_set(err, GP_EUSAGE, "%s", sb.buf);
        }
    gp_strbuf_fini(&sb);
    return r;
}

static int change(struct work *work, unsigned flags, gpulse_settings **ret, struct gp_err *err)
{
    struct gp_err first = {0};
    int r = gp_settings_begin(&work->settings, &work->request, work->changer, err);
    if (r == 0 && gp_settings_can_be_reached(&work->settings))
        r = gp_settings_check(&work->settings, err);
    if (r == 0 && !(flags & GPULSE_MAY_LOSE))
        r = check_losses(&work->settings, err);
    if (r < 0)
        return r;
    const enum form form = flags & GPULSE_CHECK_ONLY ? CHECK : CHANGE;
    if (form == CHANGE)
        gp_changer_apply(work->changer);
    r = make_rows(&work->settings, form, ret, err);
    if (r == 0 && gp_settings_result(&work->settings, &first) < 0)
        r = gp_err_copy(err, &first);
    return r;
}

static int assign(struct gp_settings_request *request, const char *changes, struct gp_err *err)
{
    int r = 0;
    size_t n;
    for (const char *at = changes; r == 0 && *(at += strspn(at, " ")); at += n) {
        n = strcspn(at, " ");
        char *word = strndup(at, n);
        r = word ? gp_settings_assign(request, word, err)
                 : gp_err_set(err, GP_ENOMEM, "out of memory");
        free(word);
    }
    if (r == 0 && !request->controls)
        r = gp_err_set(err, GP_EUSAGE, "no change is requested");
    return r;
}

static int with_changer(const struct gpulse_options *given, const char *changes, unsigned flags,
                        int (*act)(struct work *work, unsigned flags, gpulse_settings **ret,
                                   struct gp_err *err),
                        gpulse_settings **ret, struct gpulse_error *error)
{
    struct gp_err err = {0};
    const struct gpulse_options options = gp_lib_options(given);
    struct work *work = calloc(1, sizeof(*work));
    *ret = NULL;
    if (!work)
        return gp_lib_fail(error, &err, GP_ENOMEM);
    work->request.is_selection = options.gpus;
    int r = changes ? assign(&work->request, changes, &err) : 0;
    if (r == 0 && (flags & ~(unsigned)(GPULSE_CHECK_ONLY | GPULSE_MAY_LOSE)))
        r = gp_err_set(&err, GP_EUSAGE, "unknown flags");
    if (r == 0)
        r = open_changer(work, &options, changes ? CHANGE_TIMEOUT_S : LOOK_TIMEOUT_S, &err);
    if (r == 0)
        r = act(work, flags, ret, &err);
    if (gp_changer_free(work->changer))
        free(work);
    else
        gp_lib_keep_changer(work, work->changer);
    return r < 0 ? gp_lib_fail(error, &err, r) : 0;
}

int gpulse_settings_read(const struct gpulse_options *options, gpulse_settings **ret,
                         struct gpulse_error *error)
{
    return with_changer(options, NULL, 0, read_all, ret, error);
}

int gpulse_settings_change(const struct gpulse_options *options, const char *changes,
                           unsigned flags, gpulse_settings **ret, struct gpulse_error *error)
{
    return with_changer(options, changes, flags, change, ret, error);
}

/* ---- the result ---- */

size_t gpulse_settings_count(const gpulse_settings *settings)
{
    return settings->count;
}

int gpulse_settings_get(const gpulse_settings *settings, size_t row, struct gpulse_setting *ret)
{
    if (row >= settings->count || gp_lib_check_size(ret->size, "gpulse_setting", NULL) < 0)
        return GPULSE_EUSAGE;
    gp_lib_give(ret, &settings->rows[row].setting, sizeof(*ret));
    return 0;
}

const char *gpulse_settings_undo(const gpulse_settings *settings, size_t row)
{
    return row < settings->count ? settings->rows[row].undo : "";
}

void gpulse_settings_free(gpulse_settings *settings)
{
    if (!settings)
        return;
    gp_arena_fini(&settings->arena);
    free(settings->rows);
    free(settings);
}
