#include "jobs/failure.h"

#include "jobs/needles.h"

#include <ctype.h>
#include <pthread.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { CAPTURES = 5, GROUPS = 12 };

/* ---- the table ---- */

/* Units of a number in bytes; UNIT(n): the unit is the text of group n. */
enum unit {
    NUMBER = 0,
    BYTES = 1,
    KIB = 1 << 10,
    MIB = 1 << 20,
    GIB = 1 << 30,
};

struct capture {
    int unit; /* below 0: the group with the unit */
    enum gp_failure_field field;
    unsigned group; /* 0: none */
};

struct pattern {
    const char *needle, *expression; /* expression NULL: the needle alone matches */
    struct capture captures[CAPTURES];
};

struct message {
    const char *id;
    enum gp_failure_class class;
    enum gp_cause cause;
    const char *framework;
    struct pattern pattern;
};

#define UNIT(n) (-(n))
#define IN(field, group, unit)                                                                     \
    {                                                                                              \
        unit, GP_FAILURE_##field, group                                                            \
    }
#define NO_NUMBERS                                                                                 \
    {                                                                                              \
        NUMBER, GP_FAILURE_TRIED, 0                                                                \
    }
#define DETAIL(...)

static const struct message messages[] = {
#define MESSAGE(id, class, cause, framework, needle, expression, ...)                              \
    {#id, GP_FAILURE_##class, GP_CAUSE_##cause, framework, {needle, expression, {__VA_ARGS__}}},
#include "jobs/failure.def"
#undef MESSAGE
};

#undef DETAIL
#define MESSAGE(...)

static const struct pattern details[] = {
#define DETAIL(needle, expression, ...) {needle, expression, {__VA_ARGS__}},
#include "jobs/failure.def"
#undef DETAIL
};
#undef MESSAGE

static const struct pattern other_process = {
    "memory in use",
    "Process ([0-9]+) has ([0-9.]+) (bytes|[KMGTPE]i?B) memory in use",
    {{UNIT(3), GP_FAILURE_SELF, 2}},
};

enum { MESSAGES = GP_ARRAY_LEN(messages), DETAILS = GP_ARRAY_LEN(details) };

#define DETAIL(...)
#define MESSAGE(id, class, cause, framework, needle, ...)                                          \
    _Static_assert(sizeof(needle) > GP_NEEDLE_LEAST, "the needle of " #id " is too short");
#include "jobs/failure.def"
#undef MESSAGE
#undef DETAIL
_Static_assert((int)MESSAGES <= (int)GP_NEEDLES_MAX,
               "GP_NEEDLES_MAX is too small for the messages");

const char *gp_failure_class_word(enum gp_failure_class class)
{
    static const char *const words[] = {
#define X(id, word) [GP_FAILURE_##id] = word,
        GP_FAILURE_CLASSES(X)
#undef X
    };
    return words[class];
}

/* ---- one pattern ---- */

/* Compiled on first use: most programs never need them. */
struct compiled {
    regex_t regex;
    bool is_compiled;
};

static struct compiled compiled_messages[MESSAGES], compiled_details[DETAILS], compiled_other;
static pthread_mutex_t using = PTHREAD_MUTEX_INITIALIZER;

/* In a child: another thread of the parent may have been in the middle of using one, which has also
 * a lock of its own. What they have allocated is left alone. */
static void forget_patterns(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    using = fresh;
    memset(compiled_messages, 0, sizeof(compiled_messages));
    memset(compiled_details, 0, sizeof(compiled_details));
    memset(&compiled_other, 0, sizeof(compiled_other));
}

/* In a text that contains the needle. */
static bool matches(const struct pattern *pattern, struct compiled *compiled, const char *text,
                    regmatch_t groups[GROUPS])
{
    if (!pattern->expression)
        return true;
    (void)pthread_mutex_lock(&using);
    if (!compiled->is_compiled)
        compiled->is_compiled = regcomp(&compiled->regex, pattern->expression, REG_EXTENDED) == 0;
    bool found = compiled->is_compiled && regexec(&compiled->regex, text, GROUPS, groups, 0) == 0;
    (void)pthread_mutex_unlock(&using);
    return found;
}

/* Bytes in a "KiB", "KB", "K". */
static double scale_of(const char *unit)
{
    static const char letters[] = "KMGTPE";
    const char *at = strchr(letters, *unit);
    double scale = 1;
    for (const char *p = letters; at && *unit && p <= at; p++)
        scale *= unit[1] == 'B' ? 1000 : 1024;
    return scale;
}

/* A comma separates thousands in a number of bytes; in larger units it is the decimal point of some
 * languages. */
static double number_at(const char *text, const char *end, bool is_whole)
{
    double value = 0;
    double place = 0;
    for (; text < end; text++) {
        if (isdigit((unsigned char)*text)) {
            value = place > 0 ? value + place * (*text - '0') : value * 10 + (*text - '0');
            place /= 10;
        } else if (*text == '.' || (*text == ',' && !is_whole)) {
            place = 0.1;
        } else if (*text == '-') {
            return 0;
        }
    }
    return value;
}

static void capture(struct gp_failure *f, const struct capture *captures, const char *text,
                    const regmatch_t *groups)
{
    for (size_t i = 0; i < CAPTURES && captures[i].group; i++) {
        const struct capture *c = &captures[i];
        const regmatch_t *at = &groups[c->group];
        if (at->rm_so < 0)
            continue;
        double scale = c->unit < 0 ? scale_of(text + groups[-c->unit].rm_so) : c->unit;
        double value =
            number_at(text + at->rm_so, text + at->rm_eo, c->unit == BYTES || c->unit == NUMBER) *
            (c->unit == NUMBER ? 1 : scale);
        gp_failure_set(f, c->field, value < 0x1p63 ? (uint64_t)value : INT64_MAX);
    }
}

/* ---- all messages at once ---- */

static struct gp_needles needles; /* those of the messages, by number */

void gp_failure_prepare(void)
{
    if (needles.count > 0)
        return;
    for (size_t i = 0; i < MESSAGES; i++)
        gp_needles_add(&needles, messages[i].pattern.needle);
    (void)pthread_atfork(NULL, NULL, forget_patterns);
}

const char *gp_failure_suspect(const char *text, size_t size)
{
    return gp_needles_find(&needles, text, size);
}

/* ---- a line and the lines after it ---- */

bool gp_failure_find(const char *line, struct gp_failure *ret)
{
    regmatch_t groups[GROUPS];
    gp_failure_prepare();
    const struct gp_needle_set found = gp_needles_in(&needles, line, strlen(line));
    for (size_t i = 0; i < MESSAGES; i++) {
        const struct message *m = &messages[i];
        if (!gp_needle_set_has(&found, i) ||
            !matches(&m->pattern, &compiled_messages[i], line, groups))
            continue;
        *ret = (struct gp_failure){.id = m->id,
                                   .framework = m->framework,
                                   .needle = m->pattern.expression ? NULL : m->pattern.needle,
                                   .class = m->class,
                                   .cause = m->cause};
        capture(ret, m->pattern.captures, line, groups);
        return true;
    }
    return false;
}

static void read_others(struct gp_failure *f, const char *text)
{
    regmatch_t groups[GROUPS];
    while (f->other_count < GP_FAILURE_OTHERS && strstr(text, other_process.needle) &&
           matches(&other_process, &compiled_other, text, groups)) {
        struct gp_failure one = {.known = 0};
        capture(&one, other_process.captures, text, groups);
        f->others[f->other_count++] =
            (struct gp_failure_other){.pid = (int64_t)strtoull(text + groups[1].rm_so, NULL, 10),
                                      .bytes = one.values[GP_FAILURE_SELF]};
        text += groups[0].rm_eo;
    }
}

void gp_failure_read_details(struct gp_failure *f, const char *text)
{
    regmatch_t groups[GROUPS];
    for (size_t i = 0; i < DETAILS; i++)
        if (strstr(text, details[i].needle) &&
            matches(&details[i], &compiled_details[i], text, groups))
            capture(f, details[i].captures, text, groups);
    if (gp_failure_knows(f, GP_FAILURE_RESERVED) && gp_failure_knows(f, GP_FAILURE_ALLOCATED) &&
        f->values[GP_FAILURE_RESERVED] >= f->values[GP_FAILURE_ALLOCATED])
        gp_failure_set(f, GP_FAILURE_CACHED,
                       f->values[GP_FAILURE_RESERVED] - f->values[GP_FAILURE_ALLOCATED]);
    read_others(f, text);
}

void gp_failure_clean_line(char *line)
{
    char *to = line;
    for (const char *p = line; *p; p++) {
        if (*p == '\033' && p[1] == '[') {
            p += 2;
            while (*p && (*p < '@' || *p > '~'))
                p++;
            if (!*p)
                break;
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
}
