/* A comparison as JSON. */
#include "tape/diff_report.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "out/json.h"

#include <math.h>

static const char *const unit_names[] = {
#define X(id, name, word, scale) [GP_DIFF_UNIT_##id] = name,
    GP_DIFF_UNITS(X)
#undef X
};

static const char *const verdicts[] = {
    [GP_DIFF_SAME] = "same",
    [GP_DIFF_SMALL] = "small",
    [GP_DIFF_CHANGED] = "changed",
    [GP_DIFF_UNKNOWN] = "unknown",
};

static json_t *real(double number, bool is_known)
{
    return is_known && isfinite(number) ? json_real(number) : json_null();
}

static json_t *time_of(int64_t us)
{
    char text[GP_RFC3339_SIZE];
    if (us <= 0)
        return json_null();
    gp_clock_rfc3339((uint64_t)us * GP_NS_PER_US, text);
    return json_string(text);
}

static json_t *side_object(const struct gp_diff_side *side)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:f}", "source", side->source, "host", side->host,
                     "from", time_of(side->from_us), "to", time_of(side->to_us), "recorded_s",
                     (double)side->seen_us / 1e6);
}

static json_t *fact_value(enum gp_diff_fact_id id, const struct gp_diff_fact *fact)
{
    return gp_metric_table[gp_diff_facts[id].metric].type == GP_TYPE_TEXT
               ? json_string(fact->text)
               : real(fact->number, true);
}

static json_t *changes_array(const struct gp_diff *diff)
{
    json_t *array = json_array();
    for (size_t i = 0; i < diff->change_count; i++) {
        const struct gp_diff_change *c = &diff->changes[i];
        (void)json_array_append_new(
            array,
            json_pack("{s:o, s:s, s:o, s:o}", "gpu",
                      c->gpu ? json_string(c->gpu->label) : json_null(), "field",
                      GP_METRIC_NAME(gp_diff_facts[c->fact].metric), "before",
                      fact_value(c->fact, c->before), "after", fact_value(c->fact, c->after)));
    }
    return array;
}

static json_t *entry_object(const struct gp_diff_entry *e)
{
    const bool is_tested = e->verdict != GP_DIFF_UNKNOWN;
    const double off = e->after - e->before;
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:o, s:s}", "name", e->name, "when", e->when, "unit",
                  unit_names[e->unit], "before", e->before, "after", e->after, "change_percent",
                  real(100 * off / e->before, e->before > 0), "verdict", verdicts[e->verdict]);
    json_t *interval = json_pack("[o, o]", real(e->low, is_tested), real(e->high, is_tested));
    (void)json_object_set_new(object, e->is_count ? "ratio_interval" : "difference_interval",
                              interval);
    (void)json_object_set_new(object, "p", real(e->p, is_tested));
    (void)json_object_set_new(object, "p_corrected", real(e->p_all, is_tested));
    (void)json_object_set_new(
        object, "test", is_tested ? json_string(e->is_count ? "poisson" : "welch") : json_null());
    if (e->is_count)
        (void)json_object_set_new(
            object, "events",
            json_pack("[I, I]", (json_int_t)e->counts[0], (json_int_t)e->counts[1]));
    else
        (void)json_object_set_new(
            object, "blocks",
            json_pack("[I, I]", (json_int_t)e->blocks[0], (json_int_t)e->blocks[1]));
    return object;
}

static json_t *entries_of(const struct gp_diff *diff, enum gp_diff_subject subject, size_t place,
                          bool all)
{
    json_t *array = json_array();
    for (size_t i = 0; i < diff->entry_count; i++) {
        const struct gp_diff_entry *e = &diff->entries[i];
        if (e->subject == subject && e->place == place && (all || e->verdict == GP_DIFF_CHANGED))
            (void)json_array_append_new(array, entry_object(e));
    }
    return array;
}

static json_t *gpus_array(const struct gp_diff *diff, bool all)
{
    json_t *array = json_array();
    for (size_t i = 0; i < diff->gpu_count; i++) {
        const struct gp_diff_gpu *before = &diff->before->gpus[diff->gpus[i].before];
        const struct gp_diff_gpu *after = &diff->after->gpus[diff->gpus[i].after];
        (void)json_array_append_new(
            array, json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "gpu", after->label, "name",
                             after->name, "uuid", after->uuid, "uuid_before", before->uuid,
                             "matched_by", diff->gpus[i].is_by_place ? "index" : "uuid",
                             "comparisons", entries_of(diff, GP_DIFF_OF_GPU, i, all)));
    }
    return array;
}

static json_t *programs_array(const struct gp_diff *diff, bool all)
{
    json_t *array = json_array();
    for (size_t i = 0; i < diff->program_count; i++) {
        const struct gp_diff_program *p = &diff->after->programs[diff->programs[i].after];
        (void)json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "name", p->name, "user",
                                                     p->user, "comparisons",
                                                     entries_of(diff, GP_DIFF_OF_PROGRAM, i, all)));
    }
    return array;
}

void gp_diff_report_add_json(struct gp_strbuf *sb, const struct gp_diff *diff, bool all)
{
    const int has_changed = gp_diff_has_changes(diff, all);
    json_t *document =
        json_pack("{s:s, s:o, s:o, s:o, s:b, s:f, s:I, s:o, s:o, s:o, s:o}", "schema",
                  "gpulse.diff/1", "time", time_of((int64_t)(gp_clock_wall_ns() / GP_NS_PER_US)),
                  "before", side_object(diff->before), "after", side_object(diff->after), "changed",
                  has_changed, "error_rate", 0.05, "tests", (json_int_t)diff->tests, "changes",
                  changes_array(diff), "job", entries_of(diff, GP_DIFF_OF_JOB, 0, all), "gpus",
                  gpus_array(diff, all), "programs", programs_array(diff, all));
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}
