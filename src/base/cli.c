#include "base/cli.h"

#include "base/err.h"
#include "base/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gp_cli_list_has(const char *list, const char *word, size_t n)
{
    for (const char *p = list; p && *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

static bool choice_is_valid(const struct gp_opt *opt, const char *value)
{
    for (const char *p = value;; p++) {
        size_t n = strcspn(p, ",");
        if (!gp_cli_list_has(opt->choices, p, n) &&
            (p == value || !gp_cli_list_has(opt->tails, p, n)))
            return false;
        p += n;
        if (!*p)
            return true;
    }
}

static bool store(const struct gp_opt *opt, void *values, const char *text)
{
    void *field = (char *)values + opt->offset;
    switch (opt->type) {
    case GP_OPT_FLAG:
        *(bool *)field = true;
        return true;
    case GP_OPT_STRING:
        *(const char **)field = text;
        return true;
    case GP_OPT_CHOICE:
        if (!choice_is_valid(opt, text))
            return false;
        *(const char **)field = text;
        return true;
    case GP_OPT_DURATION:
        return gp_parse_duration(text, field);
    case GP_OPT_U64:
        return gp_parse_u64(text, field);
    case GP_OPT_SIZE:
        return (opt->in_mib ? gp_parse_memory : gp_parse_size)(text, field);
    }
    return false;
}

/* ctx: words separated by NUL bytes, with an empty one at the end. */
static const char *next_choice(const void *ctx, size_t i)
{
    const char *word = ctx;
    for (; *word && i > 0; i--)
        word += strlen(word) + 1;
    return *word ? word : NULL;
}

static int bad_value(const struct gp_opt *opt, const char *text, struct gp_err *err)
{
    static const char *const wanted[] = {
        [GP_OPT_FLAG] = "no value",
        [GP_OPT_STRING] = "text",
        [GP_OPT_CHOICE] = "one of",
        [GP_OPT_DURATION] = "a duration such as 0.5, 250ms, 1h30m, 1:30:00",
        [GP_OPT_U64] = "a whole number",
        [GP_OPT_SIZE] = "a size such as 512MiB or 20GiB",
    };
    const char *choices = opt->type == GP_OPT_CHOICE ? opt->choices : "";
    char words[512] = "";
    (void)snprintf(words, sizeof(words) - 1, "%s", choices);
    for (char *blank = words; (blank = strchr(blank, ' '));)
        *blank++ = '\0';
    return gp_err_set(err, GP_EUSAGE, "bad value '%.80s' for --%s%s: expected %s%s%s", text,
                      opt->name, gp_cli_hint(text, next_choice, words).text, wanted[opt->type],
                      *choices ? " " : "", choices);
}

static bool is_number(enum gp_opt_type type)
{
    return type == GP_OPT_DURATION || type == GP_OPT_U64 || type == GP_OPT_SIZE;
}

/* A duration must be above 0 even if `least` is 0. */
static int check_least(const struct gp_opt *opt, const void *values, struct gp_err *err)
{
    bool duration = opt->type == GP_OPT_DURATION;
    if (!is_number(opt->type))
        return 0;
    uint64_t number;
    memcpy(&number, (const char *)values + opt->offset, sizeof(number));
    if (duration && number == 0 && opt->least == 0)
        return gp_err_set(err, GP_EUSAGE, "--%s must be more than 0", opt->name);
    if (number >= opt->least)
        return 0;
    if (opt->type == GP_OPT_SIZE)
        return gp_err_set(err, GP_EUSAGE,
                          "--%s must be at least %.15g MiB; sizes are written as in 20GiB, without "
                          "a unit they are %s",
                          opt->name, (double)opt->least / 0x1p20, opt->in_mib ? "MiB" : "bytes");
    return gp_err_set(err, GP_EUSAGE, "--%s must be at least %.15g%s", opt->name,
                      (double)opt->least / (duration ? (double)GP_NS_PER_S : 1),
                      duration ? " seconds" : "");
}

static int take(const struct gp_opt *opt, void *values, const char *text, struct gp_err *err)
{
    const char *before = NULL;
    if (opt->once)
        memcpy(&before, (const char *)values + opt->offset, sizeof(before));
    if (before)
        return gp_err_set(err, GP_EUSAGE, "--%s is given twice; %s", opt->name,
                          strcmp(opt->arg, "REGEX") == 0 ? "join them: 'a|b'"
                                                         : "use a comma-separated list");
    return store(opt, values, text) ? check_least(opt, values, err) : bad_value(opt, text, err);
}

static bool name_matches(const struct gp_opt *opt, const char *name, size_t n)
{
    return (strlen(opt->name) == n && memcmp(opt->name, name, n) == 0) ||
           gp_cli_list_has(opt->aliases, name, n);
}

const struct gp_opt *gp_cli_option(const struct gp_opt *options, const char *name, size_t n,
                                   char letter)
{
    for (const struct gp_opt *opt = options; opt && opt->name; opt++)
        if (letter ? opt->letter == letter : name_matches(opt, name, n))
            return opt;
    return NULL;
}

/* All long names of all targets by index, to find the nearest one. */
struct name_list {
    const struct gp_opt_target *targets;
    size_t count;
};

static const char *next_option_name(const void *ctx, size_t i)
{
    const struct name_list *list = ctx;
    for (size_t t = 0; t < list->count; t++)
        for (const struct gp_opt *opt = list->targets[t].options; opt && opt->name; opt++)
            if (i-- == 0)
                return opt->name;
    return NULL;
}

static const struct gp_opt *find_option(const struct gp_opt_target *targets, size_t count,
                                        const char *name, size_t n, char letter, void **ret_values)
{
    for (size_t t = 0; t < count; t++) {
        const struct gp_opt *opt = gp_cli_option(targets[t].options, name, n, letter);
        if (opt) {
            *ret_values = targets[t].values;
            return opt;
        }
    }
    return NULL;
}

/* "--json" where a command has no such option, but a format of that name. */
static const struct gp_opt *find_format(const struct gp_opt_target *targets, size_t count,
                                        const char *name, void **ret_values)
{
    const struct gp_opt *opt =
        find_option(targets, count, "format", strlen("format"), 0, ret_values);
    return opt && *name && gp_cli_list_has(opt->choices, name, strlen(name)) ? opt : NULL;
}

static int unknown_option(const char *word, size_t n, const struct gp_opt_target *targets,
                          size_t count, struct gp_err *err)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%.*s", (int)(n > 60 ? 60 : n), word + 2);
    struct name_list list = {targets, count};
    const char *near = word[1] == '-' ? gp_cli_nearest(name, next_option_name, &list) : NULL;
    return gp_err_set(err, GP_EUSAGE, "unknown option '%.80s'%s%s%s; try --help", word,
                      near ? " (did you mean --" : "", near ? near : "", near ? "?)" : "");
}

/* Whether the word after an option with an optional value is meant to be that value. */
static bool is_bad_number(const struct gp_opt *opt, const char *next)
{
    if (!next || !is_number(opt->type))
        return false;
    return opt->before_words ? isdigit((unsigned char)*next) : isalnum((unsigned char)*next);
}

/* Takes the value of opt: glued (may be NULL), the next word, or the fallback. Advances *i. */
static int take_value(const struct gp_opt *opt, void *values, const char *glued, int argc,
                      char **argv, int *i, struct gp_err *err)
{
    if (opt->type == GP_OPT_FLAG)
        return glued ? gp_err_set(err, GP_EUSAGE, "--%s does not take a value", opt->name)
                     : (store(opt, values, ""), 0);
    if (glued)
        return take(opt, values, glued, err);
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    if (opt->fallback) {
        /* An optional value is taken from the next word only if it parses as one. */
        if (!next || next[0] == '-' || opt->type == GP_OPT_STRING || !store(opt, values, next)) {
            if (is_bad_number(opt, next))
                return bad_value(opt, next, err);
            return take(opt, values, opt->fallback, err);
        }
        ++*i;
        return check_least(opt, values, err);
    }
    if (!next)
        return gp_err_set(err, GP_EUSAGE, "--%s needs a value: %s", opt->name, opt->arg);
    if (next[0] == '-' && next[1] && !isdigit((unsigned char)next[1]) && !opt->takes_dash)
        return gp_err_set(err, GP_EUSAGE, "--%s needs a value: %s, not '%.60s'", opt->name,
                          opt->arg, next);
    ++*i;
    return take(opt, values, next, err);
}

static int parse_long(int argc, char **argv, int *i, const struct gp_opt_target *targets,
                      size_t count, struct gp_cli_unknown *ret_unknown, struct gp_err *err)
{
    const char *word = argv[*i];
    size_t n = strcspn(word + 2, "=");
    void *values;
    const struct gp_opt *opt = find_option(targets, count, word + 2, n, 0, &values);
    const struct gp_opt *format = opt ? NULL : find_format(targets, count, word + 2, &values);
    if (format)
        return take(format, values, word + 2, err);
    if (!opt) {
        ret_unknown->at = *i;
        return unknown_option(word, n, targets, count, err);
    }
    const char *glued = word[2 + n] ? word + 2 + n + 1 : NULL;
    return take_value(opt, values, glued, argc, argv, i, err);
}

/* "-wait" is rather --wait than a letter with a value; *ret is its name. */
static bool lacks_dash(const char *word, const struct gp_opt_target *targets, size_t count,
                       const char **ret)
{
    enum { LEAST = 3 };
    void *values;
    const size_t n = strcspn(word + 1, "=");
    const struct gp_opt *opt =
        n < LEAST ? NULL : find_option(targets, count, word + 1, n, 0, &values);
    *ret = opt ? opt->name : NULL;
    return opt;
}

/* "-cup" is three flags; "-n1" and "-n 1" are one option with a value. */
static int parse_letters(int argc, char **argv, int *i, const struct gp_opt_target *targets,
                         size_t count, struct gp_cli_unknown *ret_unknown, struct gp_err *err)
{
    const char *word = argv[*i];
    const char *name;
    if (lacks_dash(word, targets, count, &name))
        return gp_err_set(err, GP_EUSAGE, "unknown option '%.60s' (did you mean --%s?)", word,
                          name);
    for (const char *p = word + 1; *p; p++) {
        void *values;
        const struct gp_opt *opt = find_option(targets, count, "", 0, *p, &values);
        if (!opt) {
            *ret_unknown = (struct gp_cli_unknown){*i, p};
            return word[2] ? gp_err_set(err, GP_EUSAGE,
                                        "unknown option '-%c' in '%.60s'; try --help", *p, word)
                           : gp_err_set(err, GP_EUSAGE, "unknown option '%s'; try --help", word);
        }
        bool takes_value = opt->type != GP_OPT_FLAG;
        int r = take_value(opt, values, takes_value && p[1] ? p + 1 : NULL, argc, argv, i, err);
        if (r < 0 || takes_value)
            return r;
    }
    return 0;
}

/* For an option without a default. */
static bool is_given(const struct gp_opt *opt, const void *values)
{
    const char *field = (const char *)values + opt->offset;
    const char *text = NULL;
    uint64_t number = 0;
    if (opt->type == GP_OPT_FLAG)
        return *(const bool *)field;
    if (is_number(opt->type))
        memcpy(&number, field, sizeof(number));
    else
        memcpy(&text, field, sizeof(text));
    return number != 0 || text;
}

/* The first given option of a list of long names, NULL: none. *ret_named: the last of the list. */
static const struct gp_opt *first_given(const char *names, const struct gp_opt_target *target,
                                        const struct gp_opt **ret_named)
{
    size_t n;
    for (const char *p = names; p && *p; p += n + (p[n] == ' ')) {
        n = strcspn(p, " ");
        const struct gp_opt *opt = gp_cli_option(target->options, p, n, 0);
        *ret_named = opt;
        if (opt && is_given(opt, target->values))
            return opt;
    }
    return NULL;
}

static int check_together(const struct gp_opt_target *target, struct gp_err *err)
{
    for (const struct gp_opt *opt = target->options; opt && opt->name; opt++) {
        const struct gp_opt *named = NULL;
        if ((!opt->excludes && !opt->needs) || !is_given(opt, target->values))
            continue;
        const struct gp_opt *other = first_given(opt->excludes, target, &named);
        if (other)
            return gp_err_set(err, GP_EUSAGE, "--%s and --%s cannot be combined", opt->name,
                              other->name);
        if (opt->needs && !first_given(opt->needs, target, &named))
            return gp_err_set(err, GP_EUSAGE, "--%s needs --%s%s%s", opt->name, named->name,
                              named->arg && !named->fallback ? " " : "",
                              named->arg && !named->fallback ? named->arg : "");
    }
    return 0;
}

/* Whether a word that begins with - is a text, such as a quoted line: its first part is no option.
 */
static bool is_text(const char *word, const struct gp_opt_target *targets, size_t count)
{
    void *values;
    if (!strpbrk(word, " \t"))
        return false;
    if (word[1] == '-')
        return strcspn(word, " \t") < strcspn(word, "=");
    for (const char *p = word + 1; *p; p++) {
        const struct gp_opt *opt = find_option(targets, count, "", 0, *p, &values);
        if (!opt || opt->type != GP_OPT_FLAG)
            return !opt;
    }
    return false;
}

int gp_cli_parse(int argc, char **argv, const struct gp_opt_target *targets, size_t count,
                 bool stop_at_positional, int *ret_positional, struct gp_cli_unknown *ret_unknown,
                 struct gp_err *err)
{
    struct gp_cli_unknown own = {0, NULL};
    struct gp_cli_unknown *unknown = ret_unknown ? ret_unknown : &own;
    *unknown = own;
    int positional = 0;
    bool options = true;
    for (int i = 1; i < argc; i++) {
        int r = 0;
        const bool may_be_option = options && !is_text(argv[i], targets, count);
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (may_be_option && strncmp(argv[i], "--", 2) == 0)
            r = parse_long(argc, argv, &i, targets, count, unknown, err);
        else if (may_be_option && argv[i][0] == '-' && argv[i][1])
            r = parse_letters(argc, argv, &i, targets, count, unknown, err);
        else {
            argv[++positional] = argv[i];
            if (stop_at_positional)
                options = false;
        }
        if (r < 0)
            return r;
    }
    void *values;
    const struct gp_opt *help = find_option(targets, count, "help", strlen("help"), 0, &values);
    const bool wants_help = help && is_given(help, values);
    for (size_t i = 0; !wants_help && i < count; i++) {
        int r = check_together(&targets[i], err);
        if (r < 0)
            return r;
    }
    *ret_positional = positional;
    return 0;
}

/* Optimal string alignment distance of two short words (a transposition costs 1). */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 48 };
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n > MAX || m > MAX)
        return SIZE_MAX;
    size_t row[3][MAX + 1];
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3];
        const size_t *before = row[(i + 2) % 3];
        const size_t *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = before[j - 1] + (a[i - 1] != b[j - 1]);
            if (before[j] + 1 < best)
                best = before[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                earlier[j - 2] + 1 < best)
                best = earlier[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *gp_cli_nearest(const char *word, const char *(*next)(const void *ctx, size_t i),
                           const void *ctx)
{
    enum { PREFIX_LEAST = 3 };
    const char *best = NULL;
    size_t n = strlen(word);
    size_t best_distance = n / 6 + 2; /* one wrong letter; in long words more */
    const char *candidate;
    for (size_t i = 0; (candidate = next(ctx, i)); i++) {
        size_t d = distance(word, candidate);
        if (d < best_distance) {
            best_distance = d;
            best = candidate;
        }
    }
    for (size_t i = 0; !best && n >= PREFIX_LEAST && (candidate = next(ctx, i)); i++)
        if (strncmp(candidate, word, n) == 0)
            best = candidate;
    for (size_t i = 0; !best && n > PREFIX_LEAST && (candidate = next(ctx, i)); i++)
        if (strstr(candidate, word) && strncmp(candidate, "no-", 3) != 0) /* the opposite */
            best = candidate;
    return best;
}

struct gp_cli_hint gp_cli_hint(const char *word, const char *(*next)(const void *ctx, size_t i),
                               const void *ctx)
{
    struct gp_cli_hint hint = {""};
    const char *near = gp_cli_nearest(word, next, ctx);
    if (near)
        (void)snprintf(hint.text, sizeof(hint.text), " (did you mean '%.120s'?)", near);
    return hint;
}

static const char *next_command_name(const void *ctx, size_t i)
{
    const struct gp_cmd *const *commands = ctx;
    return commands[i] ? commands[i]->name : NULL;
}

int gp_cli_find(const struct gp_cmd *const *commands, const char *name, const struct gp_cmd **ret,
                struct gp_err *err)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0) {
            *ret = commands[i];
            return 0;
        }
    return gp_err_set(err, GP_EUSAGE, "unknown command '%.60s'%s; try --help", name,
                      gp_cli_hint(name, next_command_name, commands).text);
}
