#include "tape/diff.h"

#include "base/err.h"
#include "model/event.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_RATE 0.05
#define S 1e6
#define HOUR (3600 * S)
/* what a GPU does now, it does for some seconds: a few say nothing */
#define MEMORY_LEAST (GP_DIFF_MEMORY_S * S)

/* What is compared, from diff.def. */
static const struct plan {
    const char *name, *words, *when;
    enum gp_diff_unit unit;
    double quantum, share, least;
} plans[GP_DIFF__COUNT] = {
#define ALWAYS "always"
#define LOAD "load"
#define IDLE "idle"
#define DIFF(id, column, bits, name, words, unit, when, quantum, share, least)                     \
    [GP_DIFF_##id] = {name, words, when, GP_DIFF_UNIT_##unit, quantum, share, least},
#include "tape/diff.def"
#undef DIFF
#undef IDLE
#undef LOAD
#undef ALWAYS
};

static const struct plan program_plans[] = {
    {"process.used_memory", "memory", "always", GP_DIFF_UNIT_BYTES, 2097152, 0.01, 67108864},
    {"process.sm", "SM use", "always", GP_DIFF_UNIT_PERCENT, 1, 0, 2},
};

static const struct plan pace_plan = {
    "pace", "steps", "always", GP_DIFF_UNIT_PER_SECOND, 0, 0.01, 0,
};

static const struct {
    enum gp_event_kind kind;
    const char *words;
} errors[GP_DIFF_ERROR__COUNT] = {
#define X(id, words) [GP_DIFF_ERROR_##id] = {GP_EVENT_##id, words},
    GP_DIFF_ERRORS(X)
#undef X
};

/* ---- pairs ---- */

typedef bool is_pair(const struct gp_diff *diff, size_t before, size_t after);

static bool is_same_uuid(const struct gp_diff *diff, size_t before, size_t after)
{
    const struct gp_diff_gpu *a = &diff->before->gpus[before];
    const struct gp_diff_gpu *b = &diff->after->gpus[after];
    return a->uuid[0] && strcmp(a->uuid, b->uuid) == 0;
}

/* The next one that has no pair: on another machine, GPUs are paired in their order. */
static bool is_another(const struct gp_diff *diff, size_t before, size_t after)
{
    (void)diff;
    (void)before;
    (void)after;
    return true;
}

static bool is_same_program(const struct gp_diff *diff, size_t before, size_t after)
{
    const struct gp_diff_program *a = &diff->before->programs[before];
    const struct gp_diff_program *b = &diff->after->programs[after];
    return strcmp(a->name, b->name) == 0 && strcmp(a->user, b->user) == 0;
}

static bool is_taken(const struct gp_diff_pair *pairs, size_t count, size_t before, size_t after)
{
    for (size_t i = 0; i < count; i++)
        if (pairs[i].before == before || pairs[i].after == after)
            return true;
    return false;
}

static void find_pairs(const struct gp_diff *diff, is_pair *is, struct gp_diff_pair *pairs,
                       size_t *count, size_t before, size_t after)
{
    for (size_t a = 0; a < before; a++)
        for (size_t b = 0; b < after; b++)
            if (is(diff, a, b) && !is_taken(pairs, *count, a, b)) {
                pairs[(*count)++] = (struct gp_diff_pair){a, b, is == is_another};
                break;
            }
}

static int compare_pairs(const void *a, const void *b)
{
    const struct gp_diff_pair *x = a;
    const struct gp_diff_pair *y = b;
    return (x->after > y->after) - (x->after < y->after);
}

static void pair_up(struct gp_diff *diff)
{
    const size_t before = diff->before->gpu_count;
    const size_t after = diff->after->gpu_count;
    find_pairs(diff, is_same_uuid, diff->gpus, &diff->gpu_count, before, after);
    find_pairs(diff, is_another, diff->gpus, &diff->gpu_count, before, after);
    qsort(diff->gpus, diff->gpu_count, sizeof(*diff->gpus), compare_pairs);
    find_pairs(diff, is_same_program, diff->programs, &diff->program_count,
               diff->before->program_count, diff->after->program_count);
}

/* ---- facts ---- */

static bool is_same_fact(const struct gp_diff_fact *a, const struct gp_diff_fact *b)
{
    return !(a->number < b->number) && !(a->number > b->number) && strcmp(a->text, b->text) == 0;
}

static void compare_facts(struct gp_diff *diff, const struct gp_diff_gpu *gpu,
                          const struct gp_diff_fact *before, const struct gp_diff_fact *after)
{
    const size_t first = gpu ? GP_DIFF_FACT__GPU : 0;
    const size_t end = gpu ? GP_DIFF_FACT__COUNT : GP_DIFF_FACT__GPU;
    for (size_t i = first; i < end; i++)
        if (before[i].is_known && after[i].is_known && !is_same_fact(&before[i], &after[i]))
            diff->changes[diff->change_count++] =
                (struct gp_diff_change){gpu, (enum gp_diff_fact_id)i, &before[i], &after[i]};
}

/* ---- numbers ---- */

static struct gp_diff_entry *add_entry(struct gp_diff *diff, const struct plan *plan,
                                       enum gp_diff_subject subject, size_t place)
{
    struct gp_diff_entry *entry = &diff->entries[diff->entry_count++];
    *entry = (struct gp_diff_entry){
        .subject = subject,
        .place = place,
        .name = plan->name,
        .words = plan->words,
        .when = plan->when,
        .unit = plan->unit,
        .share = plan->share,
        .least = plan->least,
        .p = 1,
        .p_all = 1,
        .verdict = GP_DIFF_UNKNOWN,
    };
    return entry;
}

static double mean_of(const struct gp_line *line)
{
    double sum = 0;
    for (size_t i = 0; i < line->count; i++)
        sum += line->values[i] / (double)line->count;
    return sum;
}

/* Of a number that neither side has, nothing is said. */
static void compare_lines(struct gp_diff *diff, const struct plan *plan,
                          enum gp_diff_subject subject, size_t place, const struct gp_line *before,
                          const struct gp_line *after)
{
    if (before->count == 0 || after->count == 0)
        return;
    struct gp_diff_entry *entry = add_entry(diff, plan, subject, place);
    const struct gp_compare_series a = {before->values, before->count};
    const struct gp_compare_series b = {after->values, after->count};
    const double memory_us =
        fmax(MEMORY_LEAST, fmax(gp_compare_memory(&a) * (double)before->step_us,
                                gp_compare_memory(&b) * (double)after->step_us));
    const struct gp_compare_mean x =
        gp_compare_mean_of(&a, fmax(memory_us / (double)before->step_us, 1), plan->quantum);
    const struct gp_compare_mean y =
        gp_compare_mean_of(&b, fmax(memory_us / (double)after->step_us, 1), plan->quantum);
    if (x.blocks == 0 || y.blocks == 0) {
        entry->before = mean_of(before);
        entry->after = mean_of(after);
        return;
    }
    const struct gp_compare_result result = gp_compare_means(&x, &y);
    entry->before = x.mean;
    entry->after = y.mean;
    entry->low = result.low;
    entry->high = result.high;
    entry->p = result.p;
    entry->blocks[0] = x.blocks;
    entry->blocks[1] = y.blocks;
    entry->block_s =
        fmax((double)x.block * (double)before->step_us, (double)y.block * (double)after->step_us) /
        S;
    entry->verdict = GP_DIFF_SAME;
}

static void compare_errors(struct gp_diff *diff, size_t place, const struct gp_diff_gpu *before,
                           const struct gp_diff_gpu *after)
{
    for (size_t i = 0; i < GP_DIFF_ERROR__COUNT; i++) {
        const double time_before = (double)before->seen_us;
        const double time_after = (double)after->seen_us;
        if (before->errors[i] + after->errors[i] == 0 || time_before <= 0 || time_after <= 0)
            continue;
        const struct plan plan = {.name = gp_event_table[errors[i].kind].name,
                                  .words = errors[i].words,
                                  .when = "always",
                                  .unit = GP_DIFF_UNIT_PER_HOUR};
        struct gp_diff_entry *entry = add_entry(diff, &plan, GP_DIFF_OF_GPU, place);
        const struct gp_compare_result result =
            gp_compare_counts(before->errors[i], time_before, after->errors[i], time_after);
        entry->is_count = true;
        entry->counts[0] = before->errors[i];
        entry->counts[1] = after->errors[i];
        entry->before = (double)before->errors[i] * HOUR / time_before;
        entry->after = (double)after->errors[i] * HOUR / time_after;
        entry->low = result.low;
        entry->high = result.high;
        entry->p = result.p;
        entry->verdict = GP_DIFF_SAME;
    }
}

static void compare_gpus(struct gp_diff *diff, size_t place)
{
    const struct gp_diff_gpu *before = &diff->before->gpus[diff->gpus[place].before];
    const struct gp_diff_gpu *after = &diff->after->gpus[diff->gpus[place].after];
    for (size_t i = 0; i < GP_DIFF__COUNT; i++)
        compare_lines(diff, &plans[i], GP_DIFF_OF_GPU, place, &before->lines[i], &after->lines[i]);
    compare_errors(diff, place, before, after);
    compare_facts(diff, after, before->facts, after->facts);
}

static void compare_programs(struct gp_diff *diff, size_t place)
{
    const struct gp_diff_program *a = &diff->before->programs[diff->programs[place].before];
    const struct gp_diff_program *b = &diff->after->programs[diff->programs[place].after];
    compare_lines(diff, &program_plans[0], GP_DIFF_OF_PROGRAM, place, &a->memory, &b->memory);
    compare_lines(diff, &program_plans[1], GP_DIFF_OF_PROGRAM, place, &a->sm, &b->sm);
}

/* ---- verdicts ---- */

static bool is_small(const struct gp_diff_entry *e)
{
    const double off = fabs(e->after - e->before);
    return off < e->least || off < e->share * fabs(e->before);
}

static int judge(struct gp_diff *diff, struct gp_err *err)
{
    double *p = calloc(diff->entry_count + 1, sizeof(*p));
    if (!p)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; i < diff->entry_count; i++)
        if (diff->entries[i].verdict != GP_DIFF_UNKNOWN)
            p[diff->tests++] = diff->entries[i].p;
    const bool ok = gp_compare_holm(p, diff->tests);
    size_t next = 0;
    for (size_t i = 0; ok && i < diff->entry_count; i++) {
        struct gp_diff_entry *entry = &diff->entries[i];
        if (entry->verdict == GP_DIFF_UNKNOWN)
            continue;
        entry->p_all = p[next++];
        if (entry->p_all < ERROR_RATE)
            entry->verdict = is_small(entry) ? GP_DIFF_SMALL : GP_DIFF_CHANGED;
    }
    free(p);
    return ok ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}

/* ---- all of it ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool reserve(struct gp_diff *diff)
{
    const size_t gpus = least(diff->before->gpu_count, diff->after->gpu_count);
    const size_t programs = least(diff->before->program_count, diff->after->program_count);
    diff->gpus = calloc(gpus + 1, sizeof(*diff->gpus));
    diff->programs = calloc(programs + 1, sizeof(*diff->programs));
    diff->changes = calloc((gpus + 1) * GP_DIFF_FACT__COUNT, sizeof(*diff->changes));
    diff->entries = calloc(gpus * ((size_t)GP_DIFF__COUNT + GP_DIFF_ERROR__COUNT) +
                               programs * GP_ARRAY_LEN(program_plans) + 1,
                           sizeof(*diff->entries));
    return diff->gpus && diff->programs && diff->changes && diff->entries;
}

int gp_diff_compare(const struct gp_diff_side *before, const struct gp_diff_side *after,
                    struct gp_diff *ret, struct gp_err *err)
{
    struct gp_diff diff = {.before = before, .after = after};
    int r = reserve(&diff) ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r == 0) {
        pair_up(&diff);
        compare_facts(&diff, NULL, before->facts, after->facts);
        compare_lines(&diff, &pace_plan, GP_DIFF_OF_JOB, 0, &before->pace, &after->pace);
        for (size_t i = 0; i < diff.gpu_count; i++)
            compare_gpus(&diff, i);
        for (size_t i = 0; i < diff.program_count; i++)
            compare_programs(&diff, i);
        r = judge(&diff, err);
    }
    if (r < 0)
        gp_diff_fini(&diff);
    else
        *ret = diff;
    return r;
}

void gp_diff_fini(struct gp_diff *diff)
{
    free(diff->gpus);
    free(diff->programs);
    free(diff->changes);
    free(diff->entries);
    *diff = (struct gp_diff){.before = NULL};
}

bool gp_diff_has_changes(const struct gp_diff *diff, bool all)
{
    bool has = diff->change_count > 0;
    for (size_t i = 0; i < diff->entry_count && !has; i++)
        has = diff->entries[i].verdict == GP_DIFF_CHANGED ||
              (all && diff->entries[i].verdict == GP_DIFF_SMALL);
    return has;
}
