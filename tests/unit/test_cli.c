#include "unit.h"

#include "base/err.h"
#include "cli_fixture.h"

enum { MAX_WORDS = 16 };

struct parsed {
    int result;
    int positional;
    int argc;
    char *argv[MAX_WORDS];
    char words[512];
    struct values values;
    struct common_values common;
    struct gp_cli_unknown unknown;
    struct gp_err err;
};

/* Parses a command line written as one text; words are separated by one blank each. */
static struct parsed *parse(const char *line, bool stop_at_positional)
{
    static struct parsed p;
    p = (struct parsed){.positional = -1};
    (void)snprintf(p.words, sizeof(p.words), "show %s", line);
    for (char *word = p.words; word;) {
        assert_true(p.argc < MAX_WORDS);
        p.argv[p.argc++] = word;
        word = strchr(word, ' ');
        if (word)
            *word++ = '\0';
    }
    const struct gp_opt_target targets[] = {{show_options, &p.values}, {common_options, &p.common}};
    p.result = gp_cli_parse(p.argc, p.argv, targets, GP_ARRAY_LEN(targets), stop_at_positional,
                            &p.positional, &p.unknown, &p.err);
    return &p;
}

static struct parsed *parse_good(const char *line)
{
    struct parsed *p = parse(line, false);
    if (p->result)
        fail_msg("'%s' is refused: %s", line, p->err.text);
    return p;
}

static void check_bad(const char *line, const char *words)
{
    struct parsed *p = parse(line, false);
    assert_int_equal(p->result, GP_EUSAGE);
    assert_int_equal(p->err.code, GP_EUSAGE);
    assert_int_equal(p->positional, -1); /* untouched */
    if (!strstr(p->err.text, words))
        fail_msg("'%s' gives '%s', which lacks '%s'", line, p->err.text, words);
}

/* A quoted line that begins with a dash is no option, unless it can be one. */
static void a_text_with_a_dash(void **state)
{
    static const struct {
        const char *word;
        bool is_text;
    } cases[] = {
        {"-- Could NOT find CUDA (missing: CUDA=x)", true},
        {"- x", true},
        {"-: x y", true},
        {"--no-such option", true},
        {"--no-such=a b", false},
        {"-:", false},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char word[80], name[] = "show";
        char *argv[] = {name, word};
        struct values values = {0};
        struct common_values common = {0};
        struct gp_err err = {0};
        int positional = 0;
        (void)snprintf(word, sizeof(word), "%s", cases[i].word);
        const struct gp_opt_target targets[] = {{show_options, &values}, {common_options, &common}};
        int r =
            gp_cli_parse(2, argv, targets, GP_ARRAY_LEN(targets), false, &positional, NULL, &err);
        if (cases[i].is_text != (r == 0 && positional == 1))
            fail_msg("'%s': %d, %s", word, r, err.text);
    }
}

static void an_unknown_option_is_pointed_at(void **state)
{
    static const struct {
        const char *line;
        int at;
        char letter; /* '\0': a long name */
    } rows[] = {
        {"word -ax", 2, 'x'},         {"-Z", 1, 'Z'},     {"-a --nosuch=1", 2, '\0'},
        {"--format nosuch", 0, '\0'}, {"-- -Z", 0, '\0'}, {"-a", 0, '\0'},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct parsed *p = parse(rows[i].line, false);
        assert_int_equal(p->unknown.at, rows[i].at);
        if (rows[i].letter)
            assert_int_equal(*p->unknown.letter, rows[i].letter);
        else
            assert_null(p->unknown.letter);
    }
}

static void every_type_takes_its_value(void **state)
{
    (void)state;
    struct parsed *p = parse_good("--all --output x.csv --format csv --interval 250ms --count 7 "
                                  "--memory 20GiB --watch=5 --sim h100x8");
    assert_true(p->values.all);
    assert_false(p->values.dry);
    assert_string_equal(p->values.name, "x.csv");
    assert_string_equal(p->values.format, "csv");
    assert_int_equal(p->values.interval_ns, 250 * GP_NS_PER_MS);
    assert_int_equal(p->values.count, 7);
    assert_int_equal(p->values.size_bytes, UINT64_C(20) << 30);
    assert_int_equal(p->values.watch_ns, 5 * GP_NS_PER_S);
    assert_string_equal(p->common.sim, "h100x8");
    assert_int_equal(p->positional, 0);
}

static void every_type_refuses_what_it_is_not(void **state)
{
    (void)state;
    check_bad("--all=yes", "--all does not take a value");
    check_bad("--all=", "--all does not take a value");
    check_bad("--format xml", "bad value 'xml' for --format: expected one of table csv json");
    check_bad("--format=", "bad value");
    check_bad("--format=tab", "bad value");
    check_bad("--format=csv,", "bad value");
    check_bad("--interval soon", "a duration such as");
    check_bad("--count -3", "a whole number");
    check_bad("--count 1.5", "a whole number");
    check_bad("--memory lots", "a size such as");
}

static void numbers_have_a_least(void **state)
{
    (void)state;
    assert_int_equal(parse_good("--count 2")->values.count, 2);
    check_bad("--count 1", "--count must be at least 2");
    check_bad("-c0", "--count must be at least 2");
    check_bad("--interval 0", "--interval must be more than 0");
    assert_int_equal(parse_good("--watch 0.25")->values.watch_ns, GP_NS_PER_S / 4);
    check_bad("--watch 0.2", "--watch must be at least 0.25 seconds");
    check_bad("--watch=0", "--watch must be at least 0.25 seconds");
}

static void values_are_glued_or_follow(void **state)
{
    (void)state;
    assert_int_equal(parse_good("-n1")->values.interval_ns, GP_NS_PER_S);
    assert_int_equal(parse_good("-n 1")->values.interval_ns, GP_NS_PER_S);
    assert_int_equal(parse_good("--interval=1")->values.interval_ns, GP_NS_PER_S);
    assert_string_equal(parse_good("-o-")->values.name, "-");
    assert_string_equal(parse_good("-o -")->values.name, "-");
    assert_string_equal(parse_good("--output=a=b")->values.name, "a=b");
    assert_string_equal(parse_good("--output=")->values.name, "");
    assert_string_equal(parse_good("--output=--all")->values.name, "--all");
    check_bad("--output --all", "--output needs a value: FILE, not '--all'"); /* it was forgotten */
    check_bad("--count -a", "--count needs a value: N, not '-a'");
}

static void flags_are_glued_before_a_value(void **state)
{
    (void)state;
    struct parsed *p = parse_good("-aqc5");
    assert_true(p->values.all);
    assert_true(p->common.quiet);
    assert_int_equal(p->values.count, 5);
    p = parse_good("-ac 6 rest");
    assert_true(p->values.all);
    assert_int_equal(p->values.count, 6);
    assert_int_equal(p->positional, 1);
    check_bad("-ax", "unknown option '-x' in '-ax'");
    check_bad("-ac", "--count needs a value: N");
}

static void optional_values(void **state)
{
    (void)state;
    assert_int_equal(parse_good("--watch")->values.watch_ns, 2 * GP_NS_PER_S);
    assert_int_equal(parse_good("--watch --all")->values.watch_ns, 2 * GP_NS_PER_S);
    assert_int_equal(parse_good("-w")->values.watch_ns, 2 * GP_NS_PER_S);
    assert_int_equal(parse_good("-w5")->values.watch_ns, 5 * GP_NS_PER_S);
    assert_int_equal(parse_good("--watch=0.5")->values.watch_ns, 500 * GP_NS_PER_MS);
    /* The next word is the value only where it can be one. */
    struct parsed *p = parse_good("--watch 3 name");
    assert_int_equal(p->values.watch_ns, 3 * GP_NS_PER_S);
    assert_int_equal(p->positional, 1);
    p = parse_good("--watch -- name");
    assert_int_equal(p->values.watch_ns, 2 * GP_NS_PER_S);
    assert_int_equal(p->positional, 1);
    assert_string_equal(p->argv[1], "name");
    p = parse_good("--color name");
    assert_string_equal(p->common.color, "always");
    assert_int_equal(p->positional, 1);
    assert_string_equal(parse_good("--color never")->common.color, "never");
    check_bad("--watch=soon", "bad value 'soon' for --watch");
    check_bad("--watch name", "bad value 'name' for --watch");
}

static void choices_may_be_a_list(void **state)
{
    (void)state;
    assert_string_equal(parse_good("--format csv,json")->values.format, "csv,json");
    check_bad("--format csv,xml", "bad value 'csv,xml'");
    check_bad("--format cvs", "bad value 'cvs' for --format (did you mean 'csv'?): expected one");
}

static void aliases_and_the_last_one_win(void **state)
{
    (void)state;
    assert_string_equal(parse_good("--out x")->values.name, "x");
    assert_string_equal(parse_good("--fmt=csv")->values.format, "csv");
    assert_string_equal(parse_good("--style=csv")->values.format, "csv");
    assert_string_equal(parse_good("--fmt csv --format json")->values.format, "json");
    check_bad("--sty=csv", "unknown option '--sty=csv'"); /* no abbreviations */
}

static void positional_arguments_move_to_the_front(void **state)
{
    (void)state;
    struct parsed *p = parse_good("one -a two --count 3 - three");
    assert_int_equal(p->positional, 4);
    assert_string_equal(p->argv[1], "one");
    assert_string_equal(p->argv[2], "two");
    assert_string_equal(p->argv[3], "-");
    assert_string_equal(p->argv[4], "three");
    assert_true(p->values.all);
    assert_int_equal(p->values.count, 3);
}

static void two_dashes_end_the_options(void **state)
{
    (void)state;
    struct parsed *p = parse_good("-a -- --count -- -x");
    assert_int_equal(p->positional, 3);
    assert_string_equal(p->argv[1], "--count");
    assert_string_equal(p->argv[2], "--");
    assert_string_equal(p->argv[3], "-x");
    assert_int_equal(p->values.count, 0);
}

static void the_first_argument_can_end_the_options(void **state)
{
    (void)state;
    struct parsed *p = parse("-a program --count 3 -- -q", true);
    assert_int_equal(p->result, 0);
    assert_int_equal(p->positional, 5);
    assert_string_equal(p->argv[1], "program");
    assert_string_equal(p->argv[2], "--count");
    assert_string_equal(p->argv[4], "--");
    assert_int_equal(p->values.count, 0);
    assert_false(p->common.quiet);
    p = parse("-a -- -program", true);
    assert_int_equal(p->result, 0);
    assert_int_equal(p->positional, 1);
    assert_string_equal(p->argv[1], "-program");
}

static void missing_values_name_what_is_missing(void **state)
{
    (void)state;
    check_bad("--output", "--output needs a value: FILE");
    check_bad("-n", "--interval needs a value: TIME");
}

static void unknown_options_suggest(void **state)
{
    (void)state;
    check_bad("--fromat csv", "unknown option '--fromat' (did you mean --format?)");
    check_bad("--colour", "did you mean --color?");
    check_bad("--quite", "did you mean --quiet?");
    check_bad("--xyzzy", "unknown option '--xyzzy'; try --help");
    check_bad("-Z", "unknown option '-Z'");
    check_bad("---", "unknown option");
    check_bad("--=x", "unknown option");
}

static void endless_words_are_cut_in_messages(void **state)
{
    (void)state;
    char line[400] = "--";
    memset(line + 2, 'x', 300);
    check_bad(line, "unknown option '--xxx");
    (void)snprintf(line, sizeof(line), "--count %0300d", 0);
    line[5 + 3 + 200] = 'y';
    check_bad(line, "bad value '000");
}

static void nothing_at_all(void **state)
{
    (void)state;
    char name[] = "show";
    char *argv[] = {name, NULL};
    int positional = -1;
    assert_int_equal(gp_cli_parse(1, argv, NULL, 0, false, &positional, NULL, NULL), 0);
    assert_int_equal(positional, 0);
    assert_int_equal(gp_cli_parse(0, argv, NULL, 0, false, &positional, NULL, NULL), 0);
    assert_int_equal(positional, 0);
}

static const char *next_word(const void *ctx, size_t i)
{
    return ((const char *const *)ctx)[i];
}

static void nearest_word(void **state)
{
    (void)state;
    static const char *const words[] = {"temperature.gpu", "memory.used", "memory.total", "uuid",
                                        NULL};
    assert_string_equal(gp_cli_nearest("memory.usd", next_word, words), "memory.used");
    assert_string_equal(gp_cli_nearest("memroy.total", next_word, words), "memory.total");
    assert_string_equal(gp_cli_nearest("uiud", next_word, words), "uuid"); /* swapped letters */
    assert_string_equal(gp_cli_nearest("uuid", next_word, words), "uuid");
    assert_null(gp_cli_nearest("pcie", next_word, words));
    assert_null(gp_cli_nearest("", next_word, words + 4));
    char endless[200];
    memset(endless, 'm', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    assert_null(gp_cli_nearest(endless, next_word, words));
}

static void finds_commands(void **state)
{
    (void)state;
    static const struct gp_cmd status = {.name = "status"};
    static const struct gp_cmd query = {.name = "query"};
    static const struct gp_cmd *const commands[] = {&status, &query, NULL};
    const struct gp_cmd *found = NULL;
    struct gp_err err = {0};
    assert_int_equal(gp_cli_find(commands, "query", &found, &err), 0);
    assert_ptr_equal(found, &query);
    found = NULL;
    assert_int_equal(gp_cli_find(commands, "stauts", &found, &err), GP_EUSAGE);
    assert_null(found);
    assert_string_equal(err.text, "unknown command 'stauts' (did you mean 'status'?); try --help");
    assert_int_equal(gp_cli_find(commands, "que", &found, &err), GP_EUSAGE);
    assert_int_equal(gp_cli_find(commands, "bogus", &found, &err), GP_EUSAGE);
    assert_string_equal(err.text, "unknown command 'bogus'; try --help");
    assert_int_equal(gp_cli_find(commands, "", &found, &err), GP_EUSAGE);
}

static void options_that_exclude_or_need_others(void **state)
{
    (void)state;
    struct together {
        bool all, help;
        const char *file;
        uint64_t count, interval_ns;
    };
    static const struct gp_opt options[] = {
        {'a', "all", NULL, GP_OPT_FLAG, .offset = offsetof(struct together, all),
         .excludes = "file count"},
        {0, "file", NULL, GP_OPT_STRING, "FILE", .offset = offsetof(struct together, file)},
        {0, "count", NULL, GP_OPT_U64, "N", .offset = offsetof(struct together, count),
         .needs = "file interval"},
        {0, "interval", NULL, GP_OPT_DURATION, "TIME", "1",
         .offset = offsetof(struct together, interval_ns), .needs = "file"},
        {0, "help", NULL, GP_OPT_FLAG, .offset = offsetof(struct together, help)},
        GP_OPT_END,
    };
    static const struct {
        const char *words[4];
        const char *refusal; /* NULL: good */
    } rows[] = {
        {{"--all"}, NULL},
        {{"--file=x", "-a"}, "--all and --file cannot be combined"},
        {{"--count=1", "--file=x", "--all"}, "--all and --file cannot be combined"},
        {{"--count=1"}, "--count needs --interval"},
        {{"--count=1", "--file=x"}, NULL},
        {{"--interval=2"}, "--interval needs --file FILE"},
        {{"--interval=2", "--count=1"}, "--interval needs --file FILE"},
        {{"--interval=2", "--count=1", "--file=x"}, NULL},
        {{"--count=1", "--help"}, NULL},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        char words[4][16] = {"show"};
        char *argv[5] = {words[0]};
        int argc = 1;
        for (; argc < 4 && rows[i].words[argc - 1]; argc++) {
            (void)snprintf(words[argc], sizeof(words[argc]), "%s", rows[i].words[argc - 1]);
            argv[argc] = words[argc];
        }
        struct together values = {.all = false};
        const struct gp_opt_target target = {options, &values};
        struct gp_err err = {0};
        int positional;
        int r = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, &err);
        assert_int_equal(r, rows[i].refusal ? GP_EUSAGE : 0);
        assert_string_equal(err.text, rows[i].refusal ? rows[i].refusal : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_with_a_dash),
        cmocka_unit_test(options_that_exclude_or_need_others),
        cmocka_unit_test(an_unknown_option_is_pointed_at),
        cmocka_unit_test(every_type_takes_its_value),
        cmocka_unit_test(every_type_refuses_what_it_is_not),
        cmocka_unit_test(numbers_have_a_least),
        cmocka_unit_test(values_are_glued_or_follow),
        cmocka_unit_test(flags_are_glued_before_a_value),
        cmocka_unit_test(optional_values),
        cmocka_unit_test(choices_may_be_a_list),
        cmocka_unit_test(aliases_and_the_last_one_win),
        cmocka_unit_test(positional_arguments_move_to_the_front),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(the_first_argument_can_end_the_options),
        cmocka_unit_test(missing_values_name_what_is_missing),
        cmocka_unit_test(unknown_options_suggest),
        cmocka_unit_test(endless_words_are_cut_in_messages),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(nearest_word),
        cmocka_unit_test(finds_commands),
    };
    return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
