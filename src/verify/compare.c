#include "verify/compare.h"

#include "base/err.h"
#include "model/metric.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- known differences ---- */

/* What nvidia-smi has by private calls, and gpulse prints as N/A (docs/smi.md). */
static const struct {
    const char *name; /* the end of its name */
    const char *why;
} private_values[] = {
    {"GPU Part Number", "no public call"},
    {"FRU Part Number", "no public call"},
    {"Sparse Operation Mode", "no public call"},
    {"Voltage / Graphics", "no public call (drivers before 580)"},
    {"PCIe Generation / Host Max", "a private call; gpulse reads it from the kernel, if it can"},
    {"pcie.link.gen.hostmax", "a private call; gpulse reads it from the kernel, if it can"},
};

static const char *find_reason(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < GP_ARRAY_LEN(private_values); i++) {
        size_t end = strlen(private_values[i].name);
        if (n > end && name[n - end - 1] == ' ' &&
            strcmp(name + n - end, private_values[i].name) == 0)
            return private_values[i].why;
    }
    return NULL;
}

static bool is_absent(const char *text)
{
    static const char *const words[] = {"",
                                        "N/A",
                                        "[N/A]",
                                        "[Not Supported]",
                                        "[Insufficient Permissions]",
                                        "[GPU is lost]",
                                        "[Timeout]",
                                        "[Unknown Error]"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

/* ---- one value against another ---- */

/* A number that fills the text, and half of its last decimal. */
static bool read_number(const char *text, double *ret, double *ret_half)
{
    char *end;
    const char *point = strchr(text, '.');
    if (strncmp(text, "0x", 2) == 0) {
        unsigned long long mask = strtoull(text, &end, 16);
        *ret = (double)mask;
    } else {
        *ret = strtod(text, &end);
    }
    *ret_half = point ? 0.5 : 0.0;
    for (; point && point[1]; point++)
        *ret_half /= 10.0;
    return end != text && !*end && isfinite(*ret);
}

/* What a number of `gpulse query` is in nvidia-smi's unit. */
static double scale_of(const char *name)
{
    const char *field = strrchr(name, ' ');
    enum gp_metric m;
    bool is_bytes = field && gp_metric_find(field + 1, &m, NULL) == 0 &&
                    gp_metric_table[m].unit == GP_UNIT_BYTES;
    return is_bytes ? 1.0 / (1 << 20) : 1.0;
}

/* How far apart the two may be: a size is rounded up, or down, by driver. */
static double slack_of(double scale, double half)
{
    return scale < 1.0 ? 0.999999 : half * 1.001;
}

/* The typed value of `gpulse query` against nvidia-smi's text without unit. What nvidia-smi no
 * longer prints may still be known. */
static bool is_same_typed(const char *name, const char *theirs, const char *ours)
{
    double a, b, half, other;
    double scale = scale_of(name);
    if ((is_absent(theirs) && is_absent(ours)) || strstr(theirs, "been deprecated"))
        return true;
    return read_number(theirs, &a, &half) && read_number(ours, &b, &other) &&
           fabs(a - b * scale) <= slack_of(scale, half);
}

/* "2026-11-20T15:04:05.123+01:00" is "2026/11/20 15:04:05.123". */
static bool is_same_time(const char *theirs, const char *ours)
{
    size_t n = strlen(theirs);
    if (n < 19 || strlen(ours) < n || theirs[4] != '/' || ours[4] != '-' || ours[10] != 'T')
        return false;
    for (size_t i = 0; i < n; i++)
        if (isdigit((unsigned char)theirs[i]) ? theirs[i] != ours[i]
                                              : isdigit((unsigned char)ours[i]) != 0)
            return false;
    return true;
}

static bool is_same(enum gp_printed_form form, const char *name, const char *theirs,
                    const char *ours)
{
    return strcmp(theirs, ours) == 0 ||
           (form == GP_PRINTED_QUERY &&
            (is_same_typed(name, theirs, ours) || is_same_time(theirs, ours)));
}

/* ---- moving values ---- */

/* All samples of one value on both sides; NULL where a sample lacks it. */
struct track {
    const char *texts[2][GP_VERIFY_SAMPLES];
    size_t samples;
};

enum { THEIRS, OURS };

static bool has_gaps(const struct track *t, int side)
{
    for (size_t i = 0; i < t->samples; i++)
        if (!t->texts[side][i])
            return true;
    return false;
}

static const char *last_text(const struct track *t, int side)
{
    for (size_t i = t->samples; i > 0; i--)
        if (t->texts[side][i - 1])
            return t->texts[side][i - 1];
    return NULL;
}

static bool has_moved(const struct track *t, int side)
{
    for (size_t i = 1; i < t->samples; i++)
        if (!t->texts[side][i] != !t->texts[side][i - 1] ||
            (t->texts[side][i] && strcmp(t->texts[side][i], t->texts[side][i - 1]) != 0))
            return true;
    return false;
}

/* The next letter at *at; a number is one, and so is a run of blanks and dashes. 0: the end. */
static size_t shape_at(const char **at)
{
    const char *p = *at;
    if (!*p)
        return 0;
    if (isdigit((unsigned char)*p)) {
        *at += strspn(p, "0123456789");
        return '0';
    }
    if (*p == ' ' || *p == '-') {
        *at += strspn(p, " -");
        return ' ';
    }
    *at += 1;
    return (unsigned char)*p;
}

/* The same words around numbers that may differ. */
static bool is_same_shape(const char *a, const char *b)
{
    size_t x, y;
    do {
        x = shape_at(&a);
        y = shape_at(&b);
    } while (x == y && x);
    return x == y;
}

/* The n-th number of a text; false: it has fewer. */
static bool number_at(const char *text, size_t n, double *ret)
{
    for (;;) {
        text += strcspn(text, "0123456789");
        if (!*text)
            return false;
        if (n-- == 0)
            break;
        text += strspn(text, "0123456789");
    }
    *ret = strtod(text, NULL);
    return true;
}

struct span {
    double least, most;
};

static struct span span_of(const struct track *t, int side, size_t n)
{
    struct span s = {(double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < t->samples; i++) {
        double v;
        if (t->texts[side][i] && number_at(t->texts[side][i], n, &v)) {
            s.least = fmin(s.least, v);
            s.most = fmax(s.most, v);
        }
    }
    return s;
}

/* Whether each number of the texts was in the other side's span, or moved on both sides. */
static bool is_within_span(const struct track *t)
{
    const char *text = last_text(t, THEIRS);
    double unused;
    for (int side = THEIRS; side <= OURS; side++)
        for (size_t i = 0; i < t->samples; i++)
            if (!t->texts[side][i] || !is_same_shape(text, t->texts[side][i]))
                return false;
    for (size_t n = 0; number_at(text, n, &unused); n++) {
        struct span a = span_of(t, THEIRS, n);
        struct span b = span_of(t, OURS, n);
        bool overlap = a.least <= b.most && b.least <= a.most;
        bool moved = a.least < a.most && b.least < b.most;
        if (!overlap && !moved)
            return false;
    }
    return true;
}

/* The same for typed values, each of which is one number. */
static bool is_within_typed_span(const struct track *t, const char *name)
{
    struct span spans[] = {{(double)INFINITY, -(double)INFINITY},
                           {(double)INFINITY, -(double)INFINITY}};
    double v, half, slack = 0.0, scale = scale_of(name);
    for (int side = THEIRS; side <= OURS; side++)
        for (size_t i = 0; i < t->samples; i++) {
            if (!t->texts[side][i] || !read_number(t->texts[side][i], &v, &half))
                return false;
            slack = side == THEIRS ? slack_of(scale, half) : slack;
            v *= side == OURS ? scale : 1.0;
            spans[side].least = fmin(spans[side].least, v);
            spans[side].most = fmax(spans[side].most, v);
        }
    return spans[THEIRS].least <= spans[OURS].most + slack &&
           spans[OURS].least <= spans[THEIRS].most + slack;
}

static bool is_equal_once(const struct gp_compared *c, const char *name, const struct track *t)
{
    for (size_t i = 0; i < t->samples; i++)
        for (size_t j = 0; j < t->samples; j++)
            if (t->texts[THEIRS][i] && t->texts[OURS][j] &&
                is_same(c->form, name, t->texts[THEIRS][i], t->texts[OURS][j]))
                return true;
    return false;
}

static enum gp_agreement judge(const struct gp_compared *c, const char *name, const struct track *t,
                               const char **ret_why)
{
    const char *theirs = last_text(t, THEIRS);
    const char *ours = last_text(t, OURS);
    bool moved[] = {has_moved(t, THEIRS), has_moved(t, OURS)};
    bool once = is_equal_once(c, name, t);
    if (once && !moved[THEIRS] && !moved[OURS])
        return GP_AGREE_EQUAL;
    /* a process that begins or ends meanwhile */
    bool comes = theirs && ours && (has_gaps(t, THEIRS) || has_gaps(t, OURS));
    bool both = moved[THEIRS] && moved[OURS];
    if (once || comes || both ||
        ((moved[THEIRS] || moved[OURS]) && theirs && ours &&
         (c->form == GP_PRINTED_QUERY ? is_within_typed_span(t, name) : is_within_span(t))))
        return GP_AGREE_MOVING;
    *ret_why = theirs && ours && is_absent(ours) ? find_reason(name) : NULL;
    return *ret_why ? GP_AGREE_KNOWN : GP_AGREE_NOT;
}

/* ---- all values ---- */

/* A name, and its place in an output. */
struct item {
    const char *name;
    size_t order;
};

static int by_name(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int by_order(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    return x->order == y->order ? strcmp(x->name, y->name) : x->order < y->order ? -1 : 1;
}

static size_t add_names(struct item *items, size_t count, const struct gp_printed *p)
{
    for (size_t i = 0; i < p->count; i++)
        items[count++] = (struct item){p->values[i].name, p->values[i].order};
    return count;
}

/* Every name once, in the order of the outputs. */
static struct item *collect(const struct gp_compared *c, size_t *ret_count)
{
    size_t most = 1, count = 0, kept = 0;
    for (size_t i = 0; i < c->samples; i++)
        most += c->theirs[i].count + c->ours[i].count;
    struct item *items = calloc(most, sizeof(*items));
    if (!items)
        return NULL;
    for (size_t i = 0; i < c->samples; i++)
        count = add_names(items, add_names(items, count, &c->theirs[i]), &c->ours[i]);
    qsort(items, count, sizeof(*items), by_name);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(items[i].name, items[kept - 1].name) != 0)
            items[kept++] = items[i];
    qsort(items, kept, sizeof(*items), by_order);
    *ret_count = kept;
    return items;
}

static const char *text_in(const struct gp_printed *p, const char *name)
{
    const struct gp_printed_value *v = gp_printed_find(p, name);
    return v ? v->text : NULL;
}

/* Whether the values that both have come in the same order. */
static bool has_same_order(const struct gp_printed *a, const struct gp_printed *b,
                           struct item *items, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct gp_printed_value *x = gp_printed_find(a, items[i].name);
        const struct gp_printed_value *y = gp_printed_find(b, items[i].name);
        if (x && y)
            items[found++] = (struct item){y->name, x->order};
    }
    qsort(items, found, sizeof(*items), by_order);
    for (size_t i = 1; i < found; i++)
        if (gp_printed_find(b, items[i].name)->order < gp_printed_find(b, items[i - 1].name)->order)
            return false;
    return true;
}

static bool has_same_status(const struct gp_compared *c)
{
    for (size_t i = 0; i < c->samples; i++)
        for (size_t j = 0; j < c->samples; j++)
            if (c->their_status[i] == c->our_status[j])
                return true;
    return c->samples == 0;
}

int gp_compare(const struct gp_compared *c,
               void (*found)(void *ctx, const struct gp_compared *compared,
                             const struct gp_compared_value *finding),
               void *ctx)
{
    size_t count;
    char theirs[32], ours[32];
    struct item *items = collect(c, &count);
    if (!items)
        return GP_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct track t = {.samples = c->samples};
        struct gp_compared_value f = {.name = items[i].name};
        for (size_t s = 0; s < c->samples; s++) {
            t.texts[THEIRS][s] = text_in(&c->theirs[s], f.name);
            t.texts[OURS][s] = text_in(&c->ours[s], f.name);
        }
        f.theirs = last_text(&t, THEIRS);
        f.ours = last_text(&t, OURS);
        f.agreement = judge(c, f.name, &t, &f.why);
        found(ctx, c, &f);
    }
    if (!has_same_status(c)) {
        (void)snprintf(theirs, sizeof(theirs), "%d", c->their_status[c->samples - 1]);
        (void)snprintf(ours, sizeof(ours), "%d", c->our_status[c->samples - 1]);
        found(
            ctx, c,
            &(struct gp_compared_value){
                .name = "exit status", .theirs = theirs, .ours = ours, .agreement = GP_AGREE_NOT});
    }
    if (c->form != GP_PRINTED_QUERY && c->form != GP_PRINTED_FIELDS && c->samples > 0 &&
        !has_same_order(&c->theirs[0], &c->ours[0], items, count))
        found(ctx, c,
              &(struct gp_compared_value){.name = "order of the lines",
                                          .theirs = "nvidia-smi's",
                                          .ours = "another one",
                                          .agreement = GP_AGREE_NOT});
    free(items);
    return 0;
}

void gp_compared_fini(struct gp_compared *compared)
{
    for (size_t i = 0; i < compared->samples; i++) {
        gp_printed_fini(&compared->theirs[i]);
        gp_printed_fini(&compared->ours[i]);
    }
    compared->samples = 0;
}
