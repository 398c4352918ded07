#include "jobs/cause.h"

#include "base/strbuf.h"
#include "jobs/failure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the numbers ---- */

/* Input of the rules and sentences: the numbers of the failure, and numbers derived from them.
 * Bytes; NAN is unknown, and every comparison with it is false. */
struct sums {
    double tried, total, free, allocated, cached, allowed, graphs, self;
    double others; /* 0: none named */
    double own;    /* the framework's memory: allocated and cached */
    unsigned siblings;
    bool has_others;
};

static double number_of(const struct gp_failure *f, enum gp_failure_field field)
{
    return gp_failure_knows(f, field) ? (double)f->values[field] : (double)NAN;
}

static double or_0(double value)
{
    return isnan(value) ? 0 : value;
}

static struct sums sums_of(const struct gp_failure *f)
{
    struct sums s = {
        .tried = number_of(f, GP_FAILURE_TRIED),
        .total = number_of(f, GP_FAILURE_TOTAL),
        .free = number_of(f, GP_FAILURE_FREE),
        .allocated = number_of(f, GP_FAILURE_ALLOCATED),
        .cached = number_of(f, GP_FAILURE_CACHED),
        .allowed = number_of(f, GP_FAILURE_ALLOWED),
        .graphs = number_of(f, GP_FAILURE_GRAPHS),
        .self = number_of(f, GP_FAILURE_SELF),
        .has_others = f->other_count > 0,
    };
    s.own = s.allocated + or_0(s.cached);
    for (size_t i = 0; i < f->other_count; i++) {
        s.others += (double)f->others[i].bytes;
        s.siblings += f->others[i].is_of_job;
    }
    return s;
}

/* In a PID namespace PyTorch does not recognize itself among the GPU's processes, and lists itself
 * as another one: the one whose memory is what it allocated and a little more. */
static void find_self(struct gp_failure *f)
{
    const double slack = 3 * 0x1p30;
    const struct sums s = sums_of(f);
    if (!isnan(s.self) || !(s.own > 0))
        return;
    for (size_t i = 0; i < f->other_count; i++) {
        double bytes = (double)f->others[i].bytes;
        if (bytes < 0.98 * s.own || bytes > s.own + slack)
            continue;
        f->self_pid = f->others[i].pid;
        gp_failure_set(f, GP_FAILURE_SELF, f->others[i].bytes);
        memmove(&f->others[i], &f->others[i + 1], (f->other_count - i - 1) * sizeof(f->others[0]));
        f->other_count--;
        return;
    }
}

/* ---- the rules ---- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double invisible(const struct sums *s)
{
    return s->total - s->free - s->self - s->others;
}

static double unaccounted(const struct sums *s)
{
    return s->total - s->free - s->own;
}

static bool is_impossible(const struct sums *s)
{
    return s->tried > s->total;
}

static bool is_oversubscribed(const struct sums *s)
{
    return s->allocated > 1.02 * s->total;
}

static bool is_limited(const struct sums *s)
{
    return s->own + or_0(s->tried) > s->allowed;
}

/* An allocator requests more than the program: it rounds up, and the driver keeps some, too. */
static bool is_not_full(const struct sums *s)
{
    return s->free - s->tried > larger(0.05 * s->tried, 0.01 * or_0(s->total));
}

static bool is_with_others(const struct sums *s)
{
    return s->others >= or_0(s->tried) - or_0(s->free) && s->others > 0.05 * s->total;
}

static bool is_with_siblings(const struct sums *s)
{
    return s->siblings > 0 && is_with_others(s);
}

static bool is_held_by_nobody(const struct sums *s)
{
    return invisible(s) > larger(0.05 * s->total, 1.5 * 0x1p30);
}

static bool is_unaccounted(const struct sums *s)
{
    return isnan(s->self) && !s->has_others && unaccounted(s) > larger(0.05 * s->total, 2 * 0x1p30);
}

static bool is_fragmented(const struct sums *s)
{
    return s->free < s->tried && s->tried <= s->free + s->cached &&
           s->cached >= larger(s->tried / 2, 0.02 * s->total);
}

static bool is_foreign(const struct sums *s)
{
    return s->self - s->own > 0.1 * s->total;
}

static bool is_unsized(const struct sums *s)
{
    return isnan(s->tried) && s->free > 0.1 * s->total;
}

static bool has_graphs(const struct sums *s)
{
    return s->graphs > 0.1 * s->allocated;
}

static const struct rule {
    enum gp_cause cause;
    bool (*holds)(const struct sums *);
} rules[] = {
    {GP_CAUSE_IMPOSSIBLE, is_impossible},
    {GP_CAUSE_OVERSUBSCRIBED, is_oversubscribed},
    {GP_CAUSE_LIMIT, is_limited},
    {GP_CAUSE_NOT_FULL, is_not_full},
    {GP_CAUSE_OTHERS, is_with_others},
    {GP_CAUSE_RANKS, is_with_siblings},
    {GP_CAUSE_INVISIBLE, is_held_by_nobody},
    {GP_CAUSE_UNACCOUNTED, is_unaccounted},
    {GP_CAUSE_FRAGMENTATION, is_fragmented},
    {GP_CAUSE_NON_FRAMEWORK, is_foreign},
};

/* Without any numbers of a GPU. */
static enum gp_cause unknown_of(const struct gp_failure *f)
{
    return f->cause == GP_CAUSE_EITHER ? GP_CAUSE_EITHER : GP_CAUSE_UNKNOWN;
}

struct gp_causes gp_causes_of(struct gp_failure *f)
{
    struct gp_causes ret = {.count = 0};
    if (f->cause != GP_CAUSE_BY_NUMBERS && f->cause != GP_CAUSE_EITHER) {
        ret.items[0] = f->cause;
        ret.count = f->cause != GP_CAUSE_NONE;
        return ret;
    }
    find_self(f);
    const struct sums s = sums_of(f);
    if (f->is_misplaced)
        ret.items[ret.count++] = GP_CAUSE_WRONG_GPU;
    for (size_t i = 0; i < GP_ARRAY_LEN(rules); i++)
        if (rules[i].holds(&s))
            ret.items[ret.count++] = rules[i].cause;
    if (ret.count == 0 || (ret.count == 1 && f->is_misplaced))
        ret.items[ret.count++] = isnan(s.total)   ? unknown_of(f)
                                 : is_unsized(&s) ? GP_CAUSE_UNSIZED
                                                  : GP_CAUSE_TOO_BIG;
    if (has_graphs(&s))
        ret.items[ret.count++] = GP_CAUSE_GRAPHS;
    if (f->self_pid)
        ret.items[ret.count++] = GP_CAUSE_SELF;
    return ret;
}

/* ---- the sentences ---- */

static const struct sentence {
    const char *word, *why, *next;
} sentences[GP_CAUSE__COUNT] = {
    [GP_CAUSE_NONE] = {"", "", ""},
#define CAUSE(id, word, why, next) [GP_CAUSE_##id] = {word, why, next},
#include "jobs/cause.def"
#undef CAUSE
};

const char *gp_cause_word(enum gp_cause cause)
{
    return sentences[cause].word;
}

/* What reduces the memory use of a program of this framework. */
static const char *knobs_of(const char *framework)
{
    static const struct {
        const char *framework, *knobs;
    } table[] = {
        {"PyTorch", "a smaller batch (gpulse fit-batch finds the largest), input or context; half "
                    "precision or a quantized model; in training gradient checkpointing or an "
                    "8-bit optimizer, outside of it no_grad()"},
        {"llama.cpp",
         "fewer layers on the GPU (-ngl), a shorter context (-c), a smaller batch (-ub)"},
        {"JAX", "a smaller batch; XLA_PYTHON_CLIENT_PREALLOCATE=false shows the actual use"},
        {"TensorFlow", "a smaller batch; TF_FORCE_GPU_ALLOW_GROWTH=true shows the actual use"},
        {"RAPIDS", "smaller parts of the data (dask_cudf), spilling, or managed memory (rmm)"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(table); i++)
        if (strcmp(table[i].framework, framework) == 0)
            return table[i].knobs;
    return "a smaller batch or model, or a larger GPU";
}

static bool add_size(struct gp_strbuf *sb, double bytes)
{
    if (isnan(bytes) || bytes < 0)
        return false;
    if (bytes < 0x1p30)
        gp_strbuf_addf(sb, "%.1f MiB", bytes / 0x1p20);
    else
        gp_strbuf_addf(sb, "%.2f GiB", bytes / 0x1p30);
    return true;
}

static bool add_who(struct gp_strbuf *sb, const struct gp_failure *f)
{
    const size_t most = 5;
    for (size_t i = 0; i < f->other_count && i < most; i++) {
        const struct gp_failure_other *o = &f->others[i];
        gp_strbuf_addf(sb, "%spid %lld%s%s%s (", i > 0 ? ", " : "", (long long)o->pid,
                       o->who[0] ? " of " : "", o->who, o->is_of_job ? ", in this job" : "");
        (void)add_size(sb, (double)o->bytes);
        gp_strbuf_addc(sb, ')');
    }
    if (f->other_count > most)
        gp_strbuf_addf(sb, " and %zu more", f->other_count - most);
    if (f->other_count > 0 && !f->others[0].who[0] && f->values[GP_FAILURE_ALLOCATED] > 0 &&
        !gp_failure_knows(f, GP_FAILURE_SELF))
        gp_strbuf_adds(sb, f->other_count > 1 ? "; one of them may be the program itself"
                                              : "; this may be the program itself");
    return f->other_count > 0;
}

/* The fraction that would leave room for a context. */
static bool add_fraction(struct gp_strbuf *sb, const struct sums *s)
{
    double percent = (s->free - 0.3 * 0x1p30) / s->total * 100;
    if (!(percent >= 1))
        return false;
    gp_strbuf_addf(sb, "0.%02u", percent > 99 ? 99 : (unsigned)percent);
    return true;
}

static bool add_number(struct gp_strbuf *sb, const struct gp_failure *f,
                       enum gp_failure_field field)
{
    if (gp_failure_knows(f, field))
        gp_strbuf_addf(sb, "%llu", (unsigned long long)f->values[field]);
    return gp_failure_knows(f, field);
}

static bool add_text(struct gp_strbuf *sb, const char *text)
{
    gp_strbuf_adds(sb, text);
    return *text != '\0';
}

static bool is_name(const char *name, size_t len, const char *other)
{
    return strlen(other) == len && memcmp(name, other, len) == 0;
}

/* Appends the value of a name in braces; false if it is unknown. */
static bool add_named(struct gp_strbuf *sb, const char *name, size_t len,
                      const struct gp_failure *f)
{
    const struct sums s = sums_of(f);
    const struct {
        const char *name;
        double bytes;
    } sizes[] = {
        {"tried", s.tried},           {"total", s.total},          {"free", s.free},
        {"allocated", s.allocated},   {"cached", s.cached},        {"allowed", s.allowed},
        {"graphs", s.graphs},         {"others", s.others},        {"reserved", s.own},
        {"invisible", invisible(&s)}, {"foreign", s.self - s.own}, {"unaccounted", unaccounted(&s)},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(sizes); i++)
        if (is_name(name, len, sizes[i].name))
            return add_size(sb, sizes[i].bytes);
    if (is_name(name, len, "who"))
        return add_who(sb, f);
    if (is_name(name, len, "siblings"))
        gp_strbuf_addf(sb, "%u", s.siblings);
    else if (is_name(name, len, "place"))
        gp_strbuf_addf(sb, "%u", f->place);
    else if (is_name(name, len, "self_pid"))
        gp_strbuf_addf(sb, "%lld", (long long)f->self_pid);
    else if (is_name(name, len, "fraction"))
        return add_fraction(sb, &s);
    else if (is_name(name, len, "required"))
        return add_number(sb, f, GP_FAILURE_REQUIRED);
    else if (is_name(name, len, "most"))
        return add_number(sb, f, GP_FAILURE_MOST);
    else if (is_name(name, len, "framework"))
        return add_text(sb, f->framework);
    else if (is_name(name, len, "knobs"))
        return add_text(sb, knobs_of(f->framework));
    return true;
}

static void add_sentence(struct gp_strbuf *sb, const char *text, const struct gp_failure *f)
{
    size_t part = 0; /* the start of the section in brackets */
    bool is_known = true;
    for (const char *p = text; *p; p++) {
        size_t len = strcspn(p + 1, "}");
        if (*p == '[') {
            part = sb->len;
            is_known = true;
        } else if (*p == ']') {
            gp_strbuf_truncate(sb, is_known ? sb->len : part);
        } else if (*p == '{') {
            if (!add_named(sb, p + 1, len, f)) {
                gp_strbuf_addc(sb, '?');
                is_known = false;
            }
            p += len + 1;
        } else {
            gp_strbuf_addc(sb, *p);
        }
    }
}

void gp_cause_add_why(struct gp_strbuf *sb, enum gp_cause cause, const struct gp_failure *f)
{
    add_sentence(sb, sentences[cause].why, f);
}

void gp_cause_add_next(struct gp_strbuf *sb, enum gp_cause cause, const struct gp_failure *f)
{
    add_sentence(sb, sentences[cause].next, f);
}
