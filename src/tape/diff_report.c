#include "tape/diff_report.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    WORDS_COLUMNS = 34,  /* of what is compared */
    VALUES_COLUMNS = 28, /* of its values */
    FACT_COLUMNS = 34,
    NAMES_MOST = 5, /* programs that are named */
    CELL = 80,
};

static const struct {
    const char *word;
    double scale;
} units[] = {
#define X(id, name, word, scale) [GP_DIFF_UNIT_##id] = {word, scale},
    GP_DIFF_UNITS(X)
#undef X
};

/* ---- the sides ---- */

static void add_time(struct gp_strbuf *sb, int64_t us)
{
    const time_t s = (time_t)(us / 1000000);
    struct tm tm;
    char text[40];
    if (localtime_r(&s, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) > 0)
        gp_strbuf_adds(sb, text);
    else
        gp_strbuf_adds(sb, "?");
}

static void add_length(struct gp_strbuf *sb, int64_t us)
{
    const double s = (double)us / 1e6;
    if (s < 120)
        gp_strbuf_addf(sb, "%.0f s", s);
    else if (s < 7200)
        gp_strbuf_addf(sb, "%.0f min", s / 60);
    else
        gp_strbuf_addf(sb, "%.1f h", s / 3600);
}

static void add_side(struct gp_strbuf *sb, const char *label, const struct gp_diff_side *side)
{
    gp_strbuf_addf(sb, "%-7s %s", label, side->source);
    if (side->from_us > 0) {
        gp_strbuf_adds(sb, ": ");
        add_time(sb, side->from_us);
        gp_strbuf_adds(sb, " to ");
        add_time(sb, side->to_us);
    }
    gp_strbuf_adds(sb, " (");
    add_length(sb, side->seen_us);
    gp_strbuf_addf(sb, "%s%s)\n", side->host[0] ? ", " : "", side->host);
}

/* ---- what changed for certain ---- */

static void add_fact(struct gp_strbuf *sb, enum gp_diff_fact_id id, const struct gp_diff_fact *fact)
{
    const struct gp_metric_info *info = &gp_metric_table[gp_diff_facts[id].metric];
    if (info->type == GP_TYPE_TEXT)
        gp_strbuf_adds(sb, fact->text);
    else if (info->unit == GP_UNIT_BYTES)
        gp_strbuf_addf(sb, "%.2f GiB", fact->number / 1073741824.0);
    else
        gp_strbuf_addf(sb, "%.7g%s", fact->number,
                       info->unit == GP_UNIT_WATT  ? " W"
                       : info->unit == GP_UNIT_MHZ ? " MHz"
                                                   : "");
}

static void add_changes(struct gp_strbuf *sb, const struct gp_diff *diff)
{
    if (diff->change_count == 0)
        return;
    gp_strbuf_adds(sb, "\nSettings and versions\n");
    for (size_t i = 0; i < diff->change_count; i++) {
        const struct gp_diff_change *c = &diff->changes[i];
        char what[CELL];
        const char *name = GP_METRIC_NAME(gp_diff_facts[c->fact].metric);
        (void)snprintf(what, sizeof(what), "%s%s%s%s", c->gpu ? "GPU " : "",
                       c->gpu ? c->gpu->label : "", c->gpu ? "  " : "", name);
        gp_strbuf_adds(sb, "  ");
        gp_utf8_add_padded(sb, what, FACT_COLUMNS, false);
        gp_strbuf_addc(sb, ' ');
        add_fact(sb, c->fact, c->before);
        gp_strbuf_adds(sb, " → ");
        add_fact(sb, c->fact, c->after);
        gp_strbuf_addc(sb, '\n');
    }
}

/* ---- numbers ---- */

/* As many digits as the difference needs. */
static int decimals_of(const struct gp_diff_entry *e)
{
    const double scale = units[e->unit].scale;
    const double most = fmax(fabs(e->before), fabs(e->after)) / scale;
    if (most >= 1000)
        return 0;
    return most >= 100 ? 1 : most >= 1 ? 2 : 3;
}

static void add_values(struct gp_strbuf *sb, const struct gp_diff_entry *e)
{
    char values[CELL];
    const int decimals = decimals_of(e);
    const double scale = units[e->unit].scale;
    (void)snprintf(values, sizeof(values), "%.*f → %.*f %s", decimals, e->before / scale, decimals,
                   e->after / scale, units[e->unit].word);
    gp_utf8_add_padded(sb, values, VALUES_COLUMNS, false);
}

/* In points, what is a percentage already; of what was 0, there is no percentage. */
static void add_difference(struct gp_strbuf *sb, const struct gp_diff_entry *e)
{
    const double off = e->after - e->before;
    if (e->is_count) {
        gp_strbuf_addf(sb, " %llu → %llu events", (unsigned long long)e->counts[0],
                       (unsigned long long)e->counts[1]);
        if (isfinite(e->high))
            gp_strbuf_addf(sb, ", %.3g times as many (%.2g to %.2g)", e->after / e->before, e->low,
                           e->high);
    } else if (e->unit == GP_DIFF_UNIT_PERCENT) {
        gp_strbuf_addf(sb, " %+.1f points (%+.1f to %+.1f)", off, e->low, e->high);
    } else if (e->before > 0) {
        gp_strbuf_addf(sb, " %+.1f %% (%+.1f to %+.1f %%)", 100 * off / e->before,
                       100 * e->low / e->before, 100 * e->high / e->before);
    } else {
        gp_strbuf_addf(sb, " %+.3g %s", off / units[e->unit].scale, units[e->unit].word);
    }
}

static void add_chance(struct gp_strbuf *sb, double p)
{
    if (p < 0.0001)
        gp_strbuf_adds(sb, ", p < 0.0001");
    else
        gp_strbuf_addf(sb, ", p = %.2g", p);
}

/* What is compared, and its values before and after. */
static void add_subject(struct gp_strbuf *sb, const struct gp_diff_entry *e)
{
    char what[CELL];
    const char *when = strcmp(e->when, "load") == 0   ? " under load"
                       : strcmp(e->when, "idle") == 0 ? " when idle"
                                                      : "";
    (void)snprintf(what, sizeof(what), "%s%s", e->words, when);
    gp_strbuf_adds(sb, "  ");
    gp_utf8_add_padded(sb, what, WORDS_COLUMNS, false);
    gp_strbuf_addc(sb, ' ');
    add_values(sb, e);
}

static void add_entry(struct gp_strbuf *sb, const struct gp_diff_entry *e)
{
    add_subject(sb, e);
    if (e->verdict != GP_DIFF_UNKNOWN) {
        add_difference(sb, e);
        add_chance(sb, e->p_all);
    }
    gp_strbuf_adds(sb, e->verdict == GP_DIFF_SAME      ? ": no difference beyond noise"
                       : e->verdict == GP_DIFF_SMALL   ? ": too small to matter"
                       : e->verdict == GP_DIFF_UNKNOWN ? " not enough samples to compare"
                                                       : "");
    gp_strbuf_addc(sb, '\n');
}

/* ---- by subject ---- */

static void add_heading(struct gp_strbuf *sb, const struct gp_diff *diff,
                        enum gp_diff_subject subject, size_t place)
{
    if (subject == GP_DIFF_OF_GPU) {
        const struct gp_diff_gpu *gpu = &diff->after->gpus[diff->gpus[place].after];
        const struct gp_diff_gpu *before = &diff->before->gpus[diff->gpus[place].before];
        gp_strbuf_addf(sb, "\nGPU %s", gpu->label);
        if (diff->gpus[place].is_by_place)
            gp_strbuf_addf(sb, ", compared with another GPU: GPU %s before", before->label);
        gp_strbuf_addf(sb, "%s%s\n", gpu->name[0] ? "  " : "", gpu->name);
    } else if (subject == GP_DIFF_OF_PROGRAM) {
        const struct gp_diff_program *program = &diff->after->programs[diff->programs[place].after];
        gp_strbuf_addf(sb, "\nProgram %s%s%s, mean of its processes\n", program->name,
                       program->user[0] ? " of " : "", program->user);
    } else {
        gp_strbuf_adds(sb, "\nJob\n");
    }
}

static double change_of(const struct gp_diff_entry *e)
{
    return e->unit == GP_DIFF_UNIT_PERCENT ? e->after - e->before
                                           : 100 * (e->after - e->before) / e->before;
}

/* What changed on all GPUs, each up or each down. */
struct common {
    struct gp_diff_entry mean;
    double least, most; /* changes */
};

static bool find_common(const struct gp_diff *diff, const struct gp_diff_entry *e,
                        struct common *ret)
{
    size_t count = 0;
    if (e->subject != GP_DIFF_OF_GPU || e->is_count || diff->gpu_count < 2)
        return false;
    ret->mean = *e;
    ret->mean.before = ret->mean.after = 0;
    ret->least = (double)INFINITY;
    ret->most = -(double)INFINITY;
    for (size_t i = 0; i < diff->entry_count; i++) {
        const struct gp_diff_entry *other = &diff->entries[i];
        if (other->subject != GP_DIFF_OF_GPU || other->verdict != GP_DIFF_CHANGED ||
            strcmp(other->name, e->name) != 0 || strcmp(other->when, e->when) != 0 ||
            !(other->before > 0))
            continue;
        count++;
        ret->mean.before += other->before / (double)diff->gpu_count;
        ret->mean.after += other->after / (double)diff->gpu_count;
        ret->mean.p_all = fmax(ret->mean.p_all, other->p_all);
        ret->least = fmin(ret->least, change_of(other));
        ret->most = fmax(ret->most, change_of(other));
    }
    return count == diff->gpu_count && (ret->least > 0 || ret->most < 0);
}

static void add_common(struct gp_strbuf *sb, const struct gp_diff *diff)
{
    struct common common;
    bool is_first = true;
    for (size_t i = 0; i < diff->entry_count; i++) {
        const struct gp_diff_entry *e = &diff->entries[i];
        if (e->place != 0 || !find_common(diff, e, &common))
            continue;
        if (is_first)
            gp_strbuf_addf(sb, "\nAll %zu GPUs\n", diff->gpu_count);
        is_first = false;
        add_subject(sb, &common.mean);
        gp_strbuf_addf(sb, " %+.1f to %+.1f %s", common.least, common.most,
                       e->unit == GP_DIFF_UNIT_PERCENT ? "points" : "%");
        add_chance(sb, common.mean.p_all);
        gp_strbuf_addc(sb, '\n');
    }
}

static void add_entries(struct gp_strbuf *sb, const struct gp_diff *diff, bool all)
{
    struct common common;
    const struct gp_diff_entry *last = NULL;
    for (size_t i = 0; i < diff->entry_count; i++) {
        const struct gp_diff_entry *e = &diff->entries[i];
        if (!all && e->verdict != GP_DIFF_CHANGED && e->subject != GP_DIFF_OF_JOB)
            continue;
        if (!all && find_common(diff, e, &common))
            continue;
        if (!last || last->subject != e->subject || last->place != e->place)
            add_heading(sb, diff, e->subject, e->place);
        add_entry(sb, e);
        last = e;
    }
}

/* ---- notes ---- */

static bool has_pair(const struct gp_diff_pair *pairs, size_t count, size_t place, bool is_after)
{
    for (size_t i = 0; i < count; i++)
        if ((is_after ? pairs[i].after : pairs[i].before) == place)
            return true;
    return false;
}

static void add_lone_gpus(struct gp_strbuf *sb, const struct gp_diff *diff, bool is_after)
{
    const struct gp_diff_side *side = is_after ? diff->after : diff->before;
    for (size_t i = 0; i < side->gpu_count; i++)
        if (!has_pair(diff->gpus, diff->gpu_count, i, is_after))
            gp_strbuf_addf(sb, "note: GPU %s is only in %s\n", side->gpus[i].label, side->source);
}

static void add_lone_programs(struct gp_strbuf *sb, const struct gp_diff *diff, bool is_after)
{
    const struct gp_diff_side *side = is_after ? diff->after : diff->before;
    size_t count = 0;
    for (size_t i = 0; i < side->program_count; i++) {
        const struct gp_diff_program *p = &side->programs[i];
        if (has_pair(diff->programs, diff->program_count, i, is_after))
            continue;
        if (count++ == 0)
            gp_strbuf_addf(sb, "note: programs only %s: ", is_after ? "after" : "before");
        if (count <= NAMES_MOST)
            gp_strbuf_addf(sb, "%s%s%s%s%s", count > 1 ? ", " : "", p->name, p->user[0] ? " (" : "",
                           p->user, p->user[0] ? ")" : "");
    }
    if (count > NAMES_MOST)
        gp_strbuf_addf(sb, ", and %zu more", count - NAMES_MOST);
    gp_strbuf_adds(sb, count ? "\n" : "");
}

static size_t count_of(const struct gp_diff *diff, enum gp_diff_verdict verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < diff->entry_count; i++)
        count += diff->entries[i].verdict == verdict;
    return count;
}

static void add_sentence(struct gp_strbuf *sb, const char *text, size_t columns)
{
    gp_utf8_add_wrapped(sb, text, strlen(text), 0, columns);
}

static void add_summary(struct gp_strbuf *sb, const struct gp_diff *diff, bool all, size_t columns)
{
    struct gp_strbuf text = GP_STRBUF_INIT(4096);
    const size_t changed = count_of(diff, GP_DIFF_CHANGED);
    const size_t small = count_of(diff, GP_DIFF_SMALL);
    const size_t unknown = count_of(diff, GP_DIFF_UNKNOWN);
    if (diff->tests == 0)
        gp_strbuf_addf(&text,
                       "Too little was recorded to compare anything: at least %d s are needed on "
                       "both sides, of most numbers while the GPU is at work.",
                       GP_DIFF_LEAST_S);
    else if (changed)
        gp_strbuf_addf(&text, "%zu of %zu numbers changed.", changed, diff->tests);
    else
        gp_strbuf_addf(&text, "No difference beyond noise in %zu number%s.", diff->tests,
                       diff->tests == 1 ? "" : "s");
    if (small)
        gp_strbuf_addf(&text, " %zu changed by too little to matter%s.", small,
                       all ? "" : " (--all shows them)");
    if (unknown && diff->tests > 0)
        gp_strbuf_addf(&text,
                       " %zu could not be compared: too few samples for how slowly they "
                       "vary%s.",
                       unknown, all ? "" : " (--all shows them)");
    if (diff->tests > 0)
        gp_strbuf_adds(&text,
                       " Without any real change, the chance of reporting one is at most 5 % "
                       "(Welch's t-test on means of blocks, Poisson test on events; p is "
                       "corrected by Holm's method). Intervals have 95 % confidence.");
    gp_strbuf_addc(sb, '\n');
    add_sentence(sb, text.buf, columns);
    gp_strbuf_fini(&text);
}

void gp_diff_report_add(struct gp_strbuf *sb, const struct gp_diff *diff, bool all, size_t columns)
{
    add_side(sb, "before", diff->before);
    add_side(sb, "after", diff->after);
    for (int after = 0; after < 2; after++)
        add_lone_gpus(sb, diff, after);
    for (int after = 0; after < 2; after++)
        add_lone_programs(sb, diff, after);
    add_changes(sb, diff);
    if (!all)
        add_common(sb, diff);
    add_entries(sb, diff, all);
    add_summary(sb, diff, all, columns);
}
