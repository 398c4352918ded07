#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "cli_fixture.h"

#include <unistd.h>

static const struct gp_cmd show = {
    .name = "show",
    .summary = "show the things",
    .usage = "[FIELDS] [options]",
    .description = "Shows *all* things of some_name, in a paragraph that is long enough to be "
                   "wrapped, because it goes on behind the eightieth column.\n\n"
                   "  literal   text\n\n"
                   "# not a heading",
    .examples = "prog show\tthe usual\nprog show --format json | jq .\tfor programs",
    .options = show_options,
    .complete = GP_COMPLETE_METRICS,
};
static const struct gp_cmd run = {
    .name = "run",
    .summary = "run a program",
    .usage = "[options] -- PROGRAM [arguments]",
    .complete = GP_COMPLETE_COMMAND,
    .raw_rest = true,
};
static const struct gp_cmd reset = {.name = "reset",
                                    .summary = "start anew",
                                    .usage = "[FILE]",
                                    .complete = GP_COMPLETE_FILE,
                                    .no_loop = true};
static const struct gp_cmd help = {.name = "help", .summary = "explain", .usage = "[COMMAND]"};
static const struct gp_cmd hidden = {.name = "__man", .summary = "for the build", .usage = ""};
static const struct gp_cmd *const commands[] = {&show, &run, &reset, &help, &hidden, NULL};
static const struct gp_program program = {
    .name = "prog",
    .summary = "does things",
    .description = "A program.",
    .version = "1.2.3",
    .commands = commands,
    .common = common_options,
    .exit_codes = "0\tfine\n2\twrong usage\n6\tpartial: something is missing\n"
                  "7\trun, reset: busy\n8\tresets: no\n9\trun: late",
    .environment = "PROG_SIM\tlike --sim",
};

static char *help_of(const struct gp_cmd *cmd)
{
    static char text[16384];
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(text) - 1);
    if (cmd)
        gp_cli_help_command(&sb, &program, cmd);
    else
        gp_cli_help(&sb, &program);
    assert_int_equal(sb.error, 0);
    memcpy(text, sb.buf, sb.len + 1);
    gp_strbuf_fini(&sb);
    return text;
}

static void check_contains(const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        fail_msg("lacks '%s':\n%.600s\n", part, text ? text : "");
}

static void check_page(const char *text)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        if (n > 80 || (n > 0 && p[n - 1] == ' '))
            fail_msg("this line is too long or ends with a blank: '%.*s'", (int)n, p);
        assert_int_equal(p[n], '\n');
        p += n + 1;
    }
    size_t len = strlen(text);
    assert_true(len > 2 && text[len - 2] != '\n');
}

static void help_of_a_command(void **state)
{
    (void)state;
    const char *text = help_of(&show);
    check_page(text);
    check_contains(text, "prog show: show the things\n\nUsage: prog show [FIELDS] [options]\n\n");
    assert_null(strstr(text, "enough to be")); /* paragraphs are for the manual page */
    check_contains(text, "\nOptions:\n  -a, --all            show everything\n"
                         "      --dry-run        only say what would be done\n"
                         "  -o, --output FILE    write to FILE\n"
                         "  -f, --format FORMAT  how to print: {table|csv|json}\n");
    check_contains(text, "  -w, --watch[=TIME]   repeat every TIME, which is long enough a "
                         "sentence to be\n"
                         "                       wrapped to the next line of the page\n");
    check_contains(text, "\nCommon options (-i, --timeout, --sim, …): prog --help\n");
    check_contains(text, "\nExamples:\n  prog show                       the usual\n"
                         "  prog show --format json | jq .  for programs\n");
    assert_null(strstr(text, "old-name"));
}

static void help_without_options_or_examples(void **state)
{
    (void)state;
    const char *text = help_of(&run);
    check_page(text);
    check_contains(text, "Usage: prog run [options] -- PROGRAM [arguments]\n");
    assert_null(strstr(text, "Examples:"));
    assert_null(strstr(text, "\nOptions:"));
}

static void help_of_the_program(void **state)
{
    (void)state;
    const char *text = help_of(NULL);
    check_page(text);
    check_contains(text, "prog: does things\n\nUsage: prog [common options] COMMAND [arguments]\n");
    check_contains(text, "\nCommands:\n  show   show the things\n  run    run a program\n");
    check_contains(text, "\nExit codes:\n  0     fine\n  2     wrong usage\n");
    check_contains(text, "  PROG_SIM  like --sim\n");
    check_contains(text, "prog COMMAND --help lists");
    assert_null(strstr(text, "__man"));
}

static void an_option_that_is_not_for_a_command_is_not_offered(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(100000);
    assert_null(strstr(help_of(&reset), "--quiet"));
    gp_cli_man_command(&sb, &program, &reset);
    assert_null(strstr(sb.buf, "quiet"));
    assert_non_null(strstr(sb.buf, "# COMMON OPTIONS"));
    gp_strbuf_fini(&sb);
    check_contains(help_of(NULL), "--quiet");
}

static void help_survives_a_ceiling_and_lost_memory(void **state)
{
    (void)state;
    for (size_t max = 0; max < 3000; max += 7) {
        struct gp_strbuf sb = {0};
        gp_strbuf_init(&sb, max);
        gp_cli_help_command(&sb, &program, &show);
        gp_cli_man_command(&sb, &program, &show);
        assert_int_equal(strlen(sb.buf), sb.len);
        gp_strbuf_fini(&sb);
    }
    for (long n = 0; n < 12; n++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(100000);
        alloc_fail_from(n);
        gp_cli_help(&sb, &program);
        gp_cli_man(&sb, &program);
        alloc_fail_from(-1);
        assert_int_equal(strlen(sb.buf), sb.len);
        gp_strbuf_fini(&sb);
    }
}

static void manual_of_a_command(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(100000);
    gp_cli_man_command(&sb, &program, &show);
    check_contains(sb.buf, "prog-show(1) \"1.2.3\" \"gpulse manual\"\n\n# NAME\n\n"
                           "prog-show - show the things\n");
    check_contains(sb.buf, "*prog show* [FIELDS] [options]\n");
    check_contains(sb.buf, "Shows \\*all\\* things of some\\_name,");
    check_contains(sb.buf, "```\n  literal   text\n```\n");
    check_contains(sb.buf, "\n\\# not a heading\n");
    check_contains(sb.buf, "*-o*, *--output* _FILE_\n\twrite to FILE (also *--out*)\n");
    check_contains(sb.buf, "*-w*, *--watch*\\[=_TIME_\\]\n\trepeat");
    check_contains(sb.buf, "how to print: {table|csv|json} (also *--fmt*, *--style*)\n");
    check_contains(sb.buf, "# COMMON OPTIONS\n");
    check_contains(sb.buf, "*prog show --format json | jq .*\n\tfor programs\n");
    check_contains(sb.buf, "# EXIT STATUS\n\n*0*\n\tfine\n");
    gp_strbuf_fini(&sb);
}

/* Without those of other commands, and without its own name. */
static void exit_codes_of_a_command(void **state)
{
    (void)state;
    struct gp_cmd own = reset;
    struct gp_strbuf sb = GP_STRBUF_INIT(100000);
    gp_cli_man_command(&sb, &program, &reset);
    check_contains(sb.buf,
                   "# EXIT STATUS\n\n*0*\n\tfine\n\n*2*\n\twrong usage\n\n*7*\n\tbusy\n\n# ");
    own.exit_codes = "0\tdone";
    gp_strbuf_reset(&sb);
    gp_cli_man_command(&sb, &program, &own);
    check_contains(sb.buf, "# COMMON OPTIONS\n");
    check_contains(sb.buf, "# EXIT STATUS\n\n*0*\n\tdone\n\n# ");
    check_contains(help_of(&own), "\nExit codes:\n  0     done\n");
    check_contains(help_of(&own), "\nCommon options (-i, ");
    own.no_common = true;
    gp_strbuf_reset(&sb);
    gp_cli_man_command(&sb, &program, &own);
    assert_null(strstr(sb.buf, "COMMON OPTIONS"));
    assert_null(strstr(help_of(&own), "Common options"));
    gp_strbuf_fini(&sb);
}

/* A switch has its choices in its label; a help text may name them itself. */
static void choices_stand_once(void **state)
{
    static const struct gp_opt choices[] = {
        {0, "tree", NULL, GP_OPT_CHOICE, "yes|no", "yes", "no yes", .help = "below the parents"},
        {0, "keys", NULL, GP_OPT_CHOICE, "LIKE", NULL, "htop vi",
         .help = "key letters: htop (default), or vi"},
        {0, "when", NULL, GP_OPT_CHOICE, "WHEN", NULL, "auto no", .help = "time (default auto)"},
        GP_OPT_END,
    };
    (void)state;
    struct gp_cmd cmd = reset;
    cmd.options = choices;
    check_contains(help_of(&cmd), "      --tree[=yes|no]  below the parents\n"
                                  "      --keys LIKE      key letters: htop (default), or vi\n"
                                  "      --when WHEN      time: {auto|no} (default auto)\n");
}

static void manual_of_the_program_and_of_a_helper(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(100000);
    gp_cli_man(&sb, &program);
    check_contains(sb.buf, "prog(1) ");
    check_contains(sb.buf, "*show*\n\tshow the things\n");
    assert_null(strstr(sb.buf, "dry-run"));
    assert_null(strstr(sb.buf, "__man"));
    gp_strbuf_reset(&sb);
    struct gp_program helper = program;
    helper.name = "prog sim";
    gp_cli_man(&sb, &helper);
    check_contains(sb.buf, "prog-sim(1) ");
    check_contains(sb.buf, "## show\n\n*prog sim show* [FIELDS] [options]\n");
    check_contains(sb.buf, "*--dry-run*\n\tonly say");
    gp_strbuf_fini(&sb);
}

/* scdoc itself takes the page, with warnings of it as failures. */
static void scdoc_takes_the_pages(void **state)
{
    (void)state;
    if (access("/usr/bin/scdoc", X_OK) != 0)
        skip_because("no scdoc");
    struct gp_strbuf sb = GP_STRBUF_INIT(100000);
    struct gp_program helper = program;
    helper.name = "prog sim";
    for (int page = 0; page < 3; page++) {
        gp_strbuf_reset(&sb);
        if (page == 0)
            gp_cli_man(&sb, &program);
        else if (page == 1)
            gp_cli_man(&sb, &helper);
        else
            gp_cli_man_command(&sb, &program, &show);
        FILE *scdoc = popen("/usr/bin/scdoc >/dev/null", "w");
        assert_non_null(scdoc);
        assert_int_equal(fwrite(sb.buf, 1, sb.len, scdoc), sb.len);
        assert_int_equal(pclose(scdoc), 0);
    }
    gp_strbuf_fini(&sb);
}

static void expand(struct gp_strbuf *sb, enum gp_complete kind)
{
    if (kind == GP_COMPLETE_METRICS)
        gp_strbuf_adds(sb, "memory.used\tbytes in use\nmemory.total\ntemperature.gpu\n");
    if (kind == GP_COMPLETE_MACHINE)
        gp_strbuf_adds(sb, "h100x8\na100\n");
}

/* The candidates for the last word of a line whose words are separated by one blank each. */
static void check_completion(const char *line, const char *want)
{
    char words[200];
    char *argv[16];
    int argc = 0;
    (void)snprintf(words, sizeof(words), "%s", line);
    for (char *word = words; word;) {
        argv[argc++] = word;
        word = strchr(word, ' ');
        if (word)
            *word++ = '\0';
    }
    struct gp_strbuf sb = GP_STRBUF_INIT(10000);
    gp_cli_complete(&sb, &program, argc, argv, expand);
    if (strcmp(sb.buf, want) != 0)
        fail_msg("'%s' completes to\n%sinstead of\n%s", line, sb.buf, want);
    gp_strbuf_fini(&sb);
}

static void completes_commands(void **state)
{
    (void)state;
    check_completion("", "show\tshow the things\nrun\trun a program\nreset\tstart anew\n"
                         "help\texplain\n");
    check_completion("r", "run\trun a program\nreset\tstart anew\n");
    check_completion("show", "show\tshow the things\n");
    check_completion("x", "");
    check_completion("_", "");
    check_completion("help re", "reset\tstart anew\n");
    check_completion("help reset ", "");
    /* Common options may stand before the command, with or without a value. */
    check_completion("--sim h100x8 re", "reset\tstart anew\n");
    check_completion("--sim=h100x8 -q --color re", "reset\tstart anew\n");
    check_completion("nonsense re", "");
}

static void completes_option_names(void **state)
{
    (void)state;
    check_completion("--s", "--sim\tuse a simulated machine\n");
    check_completion("show --o", "--output\twrite to FILE\n");
    check_completion("show --c", "--count\tend after N readings\n--color\tcolours\n");
    check_completion("run --c", "--color\tcolours\n");
    check_completion("show --old", "");
    check_completion("show -a", "-a\tshow everything\n");
    check_completion("show -- --o", "");
    check_completion("run program --c", "FILES\n"); /* that is the program's business */
}

static void completes_values(void **state)
{
    (void)state;
    check_completion("show -f ", "table\ncsv\njson\n");
    check_completion("show --format js", "json\n");
    check_completion("show --format=js", "--format=json\n");
    check_completion("show --style csv,j", "csv,json\n");
    check_completion("show -af ", "table\ncsv\njson\n");
    check_completion("show -fc mem", "memory.used\tbytes in use\nmemory.total\n");
    check_completion("show --output ", "FILES\n");
    check_completion("show --interval ", "");
    check_completion("--sim h", "h100x8\nFILES\n");
    check_completion("show --sim=a", "--sim=a100\nFILES\n");
    check_completion("show --unknown=a", "");
    check_completion("show --all mem", "memory.used\tbytes in use\nmemory.total\n");
}

static void completes_arguments(void **state)
{
    (void)state;
    check_completion("show t", "temperature.gpu\n");
    check_completion("show memory.used,t", "memory.used,temperature.gpu\n");
    check_completion("show memory.used,", "memory.used,memory.used\tbytes in use\n"
                                          "memory.used,memory.total\n"
                                          "memory.used,temperature.gpu\n");
    check_completion("reset ", "FILES\n");
    check_completion("run py", "COMMANDS\n");
    check_completion("run -- py", "COMMANDS\n");
    check_completion("run python tr", "FILES\n");
}

static void completes_nothing_from_nothing(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1000);
    char empty[] = "";
    char mem[] = "mem";
    char show_word[] = "show";
    char *words[] = {show_word, mem, empty};
    gp_cli_complete(&sb, &program, 0, words, expand);
    assert_string_equal(sb.buf, "");
    gp_cli_complete(&sb, &program, 2, words, NULL);
    assert_string_equal(sb.buf, "");
    gp_strbuf_fini(&sb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_of_a_command),
        cmocka_unit_test(help_without_options_or_examples),
        cmocka_unit_test(help_of_the_program),
        cmocka_unit_test(an_option_that_is_not_for_a_command_is_not_offered),
        cmocka_unit_test(help_survives_a_ceiling_and_lost_memory),
        cmocka_unit_test(manual_of_a_command),
        cmocka_unit_test(exit_codes_of_a_command),
        cmocka_unit_test(choices_stand_once),
        cmocka_unit_test(manual_of_the_program_and_of_a_helper),
        cmocka_unit_test(scdoc_takes_the_pages),
        cmocka_unit_test(completes_commands),
        cmocka_unit_test(completes_option_names),
        cmocka_unit_test(completes_values),
        cmocka_unit_test(completes_arguments),
        cmocka_unit_test(completes_nothing_from_nothing),
    };
    return cmocka_run_group_tests_name("cli_doc", tests, NULL, NULL);
}
