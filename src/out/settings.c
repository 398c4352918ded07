#include "out/settings.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/json.h"

#include <string.h>
#include <unistd.h>

/* ---- the list of controls ---- */

void gp_settings_add_list(struct gp_strbuf *sb)
{
    for (size_t i = 0; i < GP_CONTROL__COUNT; i++) {
        const struct gp_control *c = &gp_control_table[i];
        gp_strbuf_addf(sb, "%s%s=%s%s%s%s\n  %s\n  %-14s%s\n  %-14s%s\n  %-14s%s\n", i ? "\n" : "",
                       c->name, c->syntax, c->unit ? "  (" : "", c->unit ? c->unit : "",
                       c->unit ? ")" : "", c->summary, "needs", c->needs, "takes effect",
                       c->takes_effect, "lasts", c->lasts);
    }
}

void gp_settings_add_list_json(struct gp_strbuf *sb)
{
    json_t *list = json_array();
    for (size_t i = 0; i < GP_CONTROL__COUNT; i++) {
        const struct gp_control *c = &gp_control_table[i];
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:b}",
                                                    "name", c->name, "summary", c->summary, "value",
                                                    c->syntax, "needs", c->needs, "takes_effect",
                                                    c->takes_effect, "lasts", c->lasts, "unit",
                                                    c->unit, "destroys", c->loses != NULL));
    }
    gp_json_add(sb, json_pack("{s:s, s:o}", "schema", "gpulse.control-list/1", "controls", list),
                2);
    gp_strbuf_addc(sb, '\n');
}

/* ---- values ---- */

/* What is shown for a control without a value; NULL if it has one. */
static const char *absence(const struct gp_setting *s)
{
    if (s->status != GP_STATUS_OK)
        return gp_status_reason(s->status);
    return s->known ? NULL : "unknown";
}

static void add_value(struct gp_strbuf *sb, enum gp_control_id id, const struct gp_setting *s)
{
    const char *absent = absence(s);
    if (absent)
        gp_strbuf_adds(sb, absent);
    else
        gp_control_format(sb, id, &s->value, true);
    if (!absent && s->has_pending) {
        gp_strbuf_adds(sb, " (after a reset: ");
        gp_control_format(sb, id, &s->pending, true);
        gp_strbuf_addc(sb, ')');
    }
}

static void add_range(struct gp_strbuf *sb, enum gp_control_id id, const struct gp_setting *s)
{
    const struct gp_control *control = &gp_control_table[id];
    double scale = control->kind == GP_CONTROL_WATTS ? 1e-3 : 1;
    if (s->status != GP_STATUS_OK)
        gp_strbuf_adds(sb, s->words);
    else if (s->has_range)
        gp_strbuf_addf(sb, "%.12g to %.12g", (double)s->min * scale, (double)s->max * scale);
    else
        gp_strbuf_adds(sb, control->syntax);
    if (s->status == GP_STATUS_OK && s->has_fallback) {
        gp_strbuf_adds(sb, ", default ");
        gp_control_format(sb, id, &s->fallback, false);
    }
}

/* If a value is too long for its column, the range goes on a line of its own. */
static void add_row(struct gp_strbuf *sb, enum gp_control_id id, const struct gp_setting *s)
{
    enum { NAME_COLUMNS = 20, VALUE_COLUMNS = 26 };
    struct gp_strbuf value = GP_STRBUF_INIT(1024);
    struct gp_strbuf range = GP_STRBUF_INIT(1024);
    add_value(&value, id, s);
    add_range(&range, id, s);
    gp_strbuf_addf(sb, "  %-*s %s", NAME_COLUMNS, gp_control_table[id].name, value.buf);
    if (range.len > 0 && value.len > VALUE_COLUMNS)
        gp_strbuf_addf(sb, "\n%*s%s", NAME_COLUMNS + VALUE_COLUMNS + 4, "", range.buf);
    else if (range.len > 0)
        gp_strbuf_addf(sb, "%*s%s", VALUE_COLUMNS - (int)value.len + 1, "", range.buf);
    gp_strbuf_addc(sb, '\n');
    gp_strbuf_fini(&value);
    gp_strbuf_fini(&range);
}

void gp_settings_add_values(struct gp_strbuf *sb, const struct gp_target *targets, size_t count)
{
    for (size_t t = 0; t < count; t++) {
        const struct gp_target *target = &targets[t];
        gp_strbuf_adds(sb, t ? "\n" : "");
        gp_settings_add_target(sb, target);
        gp_strbuf_addf(sb, "%s%s%s%s\n", target->name[0] ? "  " : "", target->name,
                       target->uuid[0] ? "  " : "", target->uuid);
        if (target->code) {
            gp_strbuf_addf(sb, "  %s\n", target->words);
            continue;
        }
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
            if (!target->is_mig || gp_control_table[id].on_mig)
                add_row(sb, (enum gp_control_id)id, &target->settings[id]);
    }
}

/* ---- documents ---- */

/* A document with the common header of all our documents. */
static json_t *new_document(const char *schema, const struct gp_value *host)
{
    char time[GP_RFC3339_SIZE];
    char name[256] = "unknown";
    struct gp_strbuf safe = GP_STRBUF_INIT(1024);
    struct gp_snapshot snapshot = {.mono_ns = gp_clock_mono_ns()};
    (void)gethostname(name, sizeof(name) - 1);
    gp_utf8_add_safe(&safe, name, strlen(name), sizeof(name));
    gp_clock_rfc3339(gp_clock_wall_ns(), time);
    memcpy(snapshot.host, host, sizeof(snapshot.host));
    gp_value_set_text(&snapshot.host[GP_TIMESTAMP], time, snapshot.mono_ns);
    gp_value_set_text(&snapshot.host[GP_HOST_NAME], safe.buf, snapshot.mono_ns);
    json_t *document = gp_json_document(&snapshot, schema);
    gp_strbuf_fini(&safe);
    return document;
}

/* Controls whose value is a single number are numbers in JSON; the others are text, as typed. */
static bool is_number(enum gp_control_id id)
{
    enum gp_control_kind kind = gp_control_table[id].kind;
    return kind == GP_CONTROL_WATTS || kind == GP_CONTROL_OFFSET || kind == GP_CONTROL_NUMBER;
}

/* In the unit of the control; whole numbers have no decimals. */
static json_t *json_number(enum gp_control_id id, int64_t n)
{
    if (gp_control_table[id].kind != GP_CONTROL_WATTS)
        return json_integer(n);
    return n % 1000 ? json_real((double)n / 1e3) : json_integer(n / 1000);
}

static json_t *json_value(enum gp_control_id id, const struct gp_control_value *value)
{
    if (is_number(id))
        return json_number(id, value->n[0]);
    struct gp_strbuf text = GP_STRBUF_INIT(1024);
    gp_control_format(&text, id, value, false);
    json_t *json = json_string(text.buf);
    gp_strbuf_fini(&text);
    return json;
}

static json_t *json_setting(enum gp_control_id id, const struct gp_setting *s)
{
    const char *absent = absence(s);
    json_t *json = json_object();
    (void)json_object_set_new(json, "value", absent ? json_null() : json_value(id, &s->value));
    if (absent)
        (void)json_object_set_new(json, "reason", json_string(absent));
    if (s->words[0])
        (void)json_object_set_new(json, "remark", json_string(s->words));
    if (s->status != GP_STATUS_OK)
        return json;
    if (s->has_pending)
        (void)json_object_set_new(json, "pending", json_value(id, &s->pending));
    if (s->has_range) {
        (void)json_object_set_new(json, "min", json_number(id, s->min));
        (void)json_object_set_new(json, "max", json_number(id, s->max));
    }
    if (s->has_fallback)
        (void)json_object_set_new(json, "default", json_value(id, &s->fallback));
    if (gp_control_table[id].unit)
        (void)json_object_set_new(json, "unit", json_string(gp_control_table[id].unit));
    return json;
}

/* null for a GPU that cannot report its UUID. */
static json_t *json_known(const char *text)
{
    return *text ? json_string(text) : json_null();
}

static json_t *json_target(const struct gp_target *target)
{
    json_t *json = json_object();
    (void)json_object_set_new(json, "index", json_integer(target->index));
    if (target->is_mig)
        (void)json_object_set_new(json, "instance", json_integer(target->mig_index));
    (void)json_object_set_new(json, "uuid", json_known(target->uuid));
    (void)json_object_set_new(json, "name", json_known(target->name));
    if (target->code)
        (void)json_object_set_new(json, "error", json_string(target->words));
    return json;
}

void gp_settings_add_values_json(struct gp_strbuf *sb, const struct gp_target *targets,
                                 size_t count, const struct gp_value *host)
{
    json_t *list = json_array();
    for (size_t t = 0; t < count; t++) {
        json_t *json = json_target(&targets[t]);
        json_t *controls = json_object();
        for (unsigned id = 0; targets[t].code == 0 && id < GP_CONTROL__COUNT; id++)
            if (!targets[t].is_mig || gp_control_table[id].on_mig)
                (void)json_object_set_new(
                    controls, gp_control_table[id].name,
                    json_setting((enum gp_control_id)id, &targets[t].settings[id]));
        (void)json_object_set_new(json, "controls", controls);
        (void)json_array_append_new(list, json);
    }
    json_t *document = new_document("gpulse.controls/1", host);
    (void)json_object_set_new(document, "gpus", list);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}

void gp_settings_add_settings(struct gp_strbuf *sb, const struct gp_target *targets, size_t count,
                              const struct gp_value *host)
{
    json_t *list = json_array();
    for (size_t t = 0; t < count; t++) {
        if (targets[t].code || targets[t].is_mig)
            continue;
        json_t *json = json_target(&targets[t]);
        json_t *settings = json_object();
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
            const struct gp_setting *s = &targets[t].settings[id];
            if (absence(s) || gp_control_table[id].kind == GP_CONTROL_CLEAR)
                continue;
            /* What waits for a reset was requested by somebody. */
            const struct gp_control_value *value = s->has_pending ? &s->pending : &s->value;
            (void)json_object_set_new(settings, gp_control_table[id].name,
                                      json_value((enum gp_control_id)id, value));
        }
        (void)json_object_set_new(json, "settings", settings);
        (void)json_array_append_new(list, json);
    }
    json_t *document = new_document("gpulse.settings/1", host);
    json_t *units = json_object();
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
        if (is_number((enum gp_control_id)id))
            (void)json_object_set_new(units, gp_control_table[id].name,
                                      json_string(gp_control_table[id].unit));
    (void)json_object_set_new(document, "units", units);
    (void)json_object_set_new(document, "gpus", list);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}

/* ---- changes ---- */

/* Whether a failed change has left a value other than the old one. */
static bool is_half_done(const struct gp_target *target, enum gp_control_id id)
{
    const struct gp_setting *before = &target->settings[id];
    const struct gp_setting *after = &target->changes[id].after;
    return target->code == 0 && target->changes[id].outcome == GP_OUTCOME_FAILED && before->known &&
           after->status == GP_STATUS_OK && after->known &&
           gp_control_table[id].kind != GP_CONTROL_CLEAR &&
           !gp_control_satisfies(id, &after->value, &before->value);
}

static void add_result(struct gp_strbuf *sb, const struct gp_target *target, enum gp_control_id id,
                       enum gp_outcome outcome)
{
    static const char *const words[] = {
        [GP_OUTCOME_NONE] = "not tried",
        [GP_OUTCOME_SAME] = "already set",
        [GP_OUTCOME_DONE] = "done",
        [GP_OUTCOME_PENDING] = "accepted, takes effect after a reset",
        [GP_OUTCOME_UNVERIFIED] = "accepted; the driver does not report it",
        [GP_OUTCOME_FAILED] = "failed: ",
        [GP_OUTCOME_HUNG] = "",
    };
    const struct gp_change *change = &target->changes[id];
    bool waits = outcome == GP_OUTCOME_SAME && target->settings[id].has_pending;
    gp_strbuf_addf(sb, "  %s%s", words[outcome], waits ? " after a reset" : "");
    if (target->code)
        gp_strbuf_adds(sb, target->words);
    else if (outcome == GP_OUTCOME_FAILED)
        gp_strbuf_adds(sb, change->words);
    if (is_half_done(target, id)) {
        gp_strbuf_adds(sb, "; now ");
        add_value(sb, id, &change->after);
    }
    if (target->code || outcome == GP_OUTCOME_FAILED)
        return;
    if (change->words[0])
        gp_strbuf_addf(sb, " (%s)", change->words);
}

static void add_change(struct gp_strbuf *sb, const struct gp_target *target, enum gp_control_id id,
                       bool results)
{
    enum { RESULT_COLUMN = 48 };
    size_t start = sb->len;
    gp_settings_add_target(sb, target);
    gp_strbuf_addf(sb, "  %s: ", gp_control_table[id].name);
    if (target->settings[id].status != GP_STATUS_NONE) {
        add_value(sb, id, &target->settings[id]);
        gp_strbuf_adds(sb, " -> ");
    }
    gp_control_format(sb, id, &target->changes[id].value, true);
    /* Without results: what would be left unchanged, and which GPUs cannot be read. */
    bool told = results || target->code || !gp_target_needs(target, id);
    enum gp_outcome outcome =
        results || target->code ? gp_target_outcome(target, id) : GP_OUTCOME_SAME;
    if (told && !sb->error) {
        size_t width = sb->len - start;
        gp_strbuf_fill(sb, ' ', width < RESULT_COLUMN ? RESULT_COLUMN - width : 0);
        add_result(sb, target, id, outcome);
    }
    gp_strbuf_addc(sb, '\n');
}

/* Turning MIG mode off destroys the instances as well. */
static bool ends_instances(const struct gp_target *target, enum gp_control_id id)
{
    const struct gp_setting *instances = &target->settings[GP_CONTROL_MIG_INSTANCES];
    return id == GP_CONTROL_MIG_MODE && target->changes[id].value.n[0] == 0 && instances->known &&
           instances->value.text[0];
}

void gp_settings_add_loss(struct gp_strbuf *sb, const struct gp_target *target,
                          enum gp_control_id id)
{
    gp_settings_add_target(sb, target);
    gp_strbuf_addf(sb, ": %s=", gp_control_table[id].name);
    gp_control_format(sb, id, &target->changes[id].value, false);
    gp_strbuf_addf(sb, ": %s", gp_control_table[id].loses);
    if (ends_instances(target, id))
        gp_strbuf_addf(sb, "; its MIG instances %s are destroyed",
                       target->settings[GP_CONTROL_MIG_INSTANCES].value.text);
    gp_strbuf_adds(sb, " (now ");
    add_value(sb, id, &target->settings[id]);
    gp_strbuf_addc(sb, ')');
}

void gp_settings_add_changes(struct gp_strbuf *sb, const struct gp_target *targets, size_t count,
                             bool results)
{
    for (size_t t = 0; t < count; t++)
        for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
            if (targets[t].changes[id].wanted)
                add_change(sb, &targets[t], (enum gp_control_id)id, results);
}

/* ---- undo ---- */

static bool may_have_changed(const struct gp_target *target, enum gp_control_id id)
{
    return is_half_done(target, id) || gp_outcome_may_have_changed(gp_target_outcome(target, id));
}

/* Appends " NAME=OLD"; nothing if it cannot be undone. */
static void add_old(struct gp_strbuf *sb, const struct gp_target *target, enum gp_control_id id)
{
    struct gp_strbuf value = GP_STRBUF_INIT(1024);
    if (gp_control_undo(&value, id, &target->settings[id], &target->changes[id].value))
        gp_strbuf_addf(sb, " %s=%s", gp_control_table[id].name, value.buf);
    gp_strbuf_fini(&value);
}

static bool took_instances(const struct gp_target *target)
{
    return target->changes[GP_CONTROL_MIG_MODE].wanted &&
           ends_instances(target, GP_CONTROL_MIG_MODE) &&
           may_have_changed(target, GP_CONTROL_MIG_MODE) &&
           !target->changes[GP_CONTROL_MIG_INSTANCES].wanted;
}

static bool brings_instances(const char *assignments)
{
    return strstr(assignments, " mig-instances=") && !strstr(assignments, " mig-instances=none");
}

static void add_program(struct gp_strbuf *sb, const char *machine)
{
    gp_strbuf_adds(sb, "gpulse");
    if (!machine)
        return;
    gp_strbuf_adds(sb, " --sim ");
    gp_utf8_add_shell_word(sb, machine);
}

void gp_settings_add_undo(struct gp_strbuf *sb, const struct gp_target *target)
{
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++)
        if (target->changes[id].wanted && may_have_changed(target, (enum gp_control_id)id) &&
            !(target->is_mig && id == GP_CONTROL_MIG_INSTANCES))
            add_old(sb, target, (enum gp_control_id)id);
    if (took_instances(target))
        add_old(sb, target, GP_CONTROL_MIG_INSTANCES);
}

static void add_undo_commands(struct gp_strbuf *sb, const struct gp_target *targets, size_t count,
                              const char *machine)
{
    for (size_t t = 0; t < count; t++) {
        struct gp_strbuf old = GP_STRBUF_INIT(8192);
        gp_settings_add_undo(&old, &targets[t]);
        if (old.len > 0) {
            gp_strbuf_adds(sb, "undo: ");
            add_program(sb, machine);
            gp_strbuf_addf(sb, " set%s -i %s%s%s\n", old.buf, targets[t].uuid,
                           strstr(old.buf, " mig-") ? " --yes" : "",
                           brings_instances(old.buf) ? "  # with new UUIDs" : "");
        }
        gp_strbuf_fini(&old);
    }
}

/* ---- summary ---- */

void gp_settings_add_summary(struct gp_strbuf *sb, const struct gp_settings *settings, bool results,
                             const char *machine)
{
    const struct gp_settings_request *request = settings->request;
    gp_settings_add_changes(sb, settings->targets, settings->count, results);
    if (results)
        add_undo_commands(sb, settings->targets, settings->count, machine);
    else if (sb->len > 0)
        gp_strbuf_adds(sb, "nothing was changed (--dry-run)\n");
    if (sb->len == 0 && request->path && !settings->is_incomplete)
        gp_strbuf_addf(sb, "nothing to change: the settings are as in '%s'\n", request->path);
}

void gp_settings_add_command(struct gp_strbuf *sb, const struct gp_settings_request *request,
                             const char *ids, const char *machine)
{
    add_program(sb, machine);
    gp_strbuf_adds(sb, " set");
    if (request->path) {
        gp_strbuf_adds(sb, " --restore ");
        gp_utf8_add_shell_word(sb, request->path);
    }
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        if (!(request->controls & 1u << id))
            continue;
        gp_strbuf_addf(sb, " %s=", gp_control_table[id].name);
        gp_control_format(sb, (enum gp_control_id)id, &request->values[id], false);
    }
    if (ids) {
        gp_strbuf_adds(sb, " -i ");
        gp_utf8_add_shell_word(sb, ids);
    }
}
