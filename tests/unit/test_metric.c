#include "unit.h"

#include "base/err.h"
#include "model/metric.h"

#include <ctype.h>

/* The next word of a space separated list, or false at its end. */
static bool next_word(const char **list, char word[64])
{
    size_t n = strcspn(*list, " ");
    if (n == 0 || n >= 64)
        return false;
    memcpy(word, *list, n);
    word[n] = '\0';
    *list += n + ((*list)[n] == ' ');
    return true;
}

/* How many rows have this name or alias. */
static int count_uses(const char *name)
{
    int uses = 0;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        char alias[64];
        const char *aliases = GP_METRIC_ALIASES(m);
        uses += strcmp(GP_METRIC_NAME(m), name) == 0;
        while (next_word(&aliases, alias))
            uses += strcmp(alias, name) == 0;
    }
    return uses;
}

static void names_and_aliases_are_unique(void **state)
{
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        char alias[64];
        const char *aliases = GP_METRIC_ALIASES(m);
        if (count_uses(GP_METRIC_NAME(m)) != 1)
            fail_msg("the name %s is used twice", GP_METRIC_NAME(m));
        while (next_word(&aliases, alias))
            if (count_uses(alias) != 1)
                fail_msg("the alias %s of %s is used twice", alias, GP_METRIC_NAME(m));
        if (*aliases)
            fail_msg("the aliases of %s are not separated by single blanks", GP_METRIC_NAME(m));
    }
}

static void names_are_plain(void **state)
{
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        const char *name = GP_METRIC_NAME(m);
        size_t n = strlen(name);
        bool smi = gp_metric_table[m].origin == GP_ORIGIN_SMI;
        if (n == 0 || n > 70 || !islower((unsigned char)name[0]) || name[n - 1] == '.')
            fail_msg("bad name '%s'", name);
        for (size_t i = 0; i < n; i++) /* some of nvidia-smi's have capitals */
            if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789._", name[i]) &&
                !(isupper((unsigned char)name[i]) && smi))
                fail_msg("bad name '%s'", name);
    }
}

/* "GPU memory", "PCI domain", "CUDA version" may begin in capitals, "Name of" may not. */
static bool begins_like_a_phrase(const char *help)
{
    return islower((unsigned char)help[0]) ||
           (isupper((unsigned char)help[0]) && !islower((unsigned char)help[1]));
}

static void help_is_one_phrase(void **state)
{
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        const char *help = GP_METRIC_HELP(m);
        size_t n = strlen(help);
        if (n < 4 || !begins_like_a_phrase(help) || help[n - 1] == '.' || help[n - 1] == ' ' ||
            strpbrk(help, "\n\t\""))
            fail_msg("bad help of %s: '%s'", GP_METRIC_NAME(m), help);
    }
}

static void scopes_are_contiguous(void **state)
{
    (void)state;
    size_t sum = 0;
    assert_int_equal(GP_HOST__FIRST, 0);
    for (int scope = 0; scope < GP_SCOPE__COUNT; scope++) {
        size_t width = gp_scope_width((enum gp_scope)scope);
        enum gp_metric first = gp_scope_table[scope].first;
        assert_int_equal(first, sum);
        for (size_t i = 0; i < width; i++)
            if (gp_metric_table[first + i].scope != (enum gp_scope)scope)
                fail_msg("%s stands among rows of another scope", GP_METRIC_NAME(first + i));
        sum += width;
    }
    assert_int_equal(sum, GP_METRIC__COUNT);
    assert_int_equal(gp_scope_width(GP_SCOPE_HOST), GP_HOST__COUNT);
    assert_int_equal(gp_scope_width(GP_SCOPE_DEVICE), GP_DEVICE__COUNT);
    assert_int_equal(gp_scope_width(GP_SCOPE_PROCESS), GP_PROCESS__COUNT);
}

/* --rows takes the first word of the fields. */
static void lists_are_called_as_their_fields(void **state)
{
    (void)state;
    assert_true(GP_LIST__COUNT <= 32); /* gp_want.lists */
    for (int m = gp_scope_table[GP_SCOPE_LIST__FIRST].first; m < GP_METRIC__COUNT; m++) {
        const char *plural = gp_scope_table[gp_metric_table[m].scope].plural;
        const char *name = GP_METRIC_NAME(m);
        size_t n = strlen(plural);
        if (strncmp(name, plural, n) != 0 || name[n] != '.' ||
            !gp_scope_is_list(gp_metric_table[m].scope))
            fail_msg("%s does not begin with %s.", name, plural);
    }
}

static void types_fit_units(void **state)
{
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        const struct gp_metric_info *info = &gp_metric_table[m];
        if (info->type == GP_TYPE_TEXT && info->unit != GP_UNIT_NONE)
            fail_msg("%s is text and has a unit", gp_metric_name(info));
        if ((info->unit == GP_UNIT_BYTES || info->unit == GP_UNIT_MASK) &&
            info->type != GP_TYPE_INT)
            fail_msg("%s is not a whole number", gp_metric_name(info));
        assert_non_null(gp_unit_name(info->unit));
    }
    assert_string_equal(gp_unit_name(GP_UNIT_NONE), "");
    assert_string_equal(gp_unit_name(GP_UNIT_BYTES), "bytes");
    assert_string_equal(gp_unit_name(GP_UNIT_CELSIUS), "°C");
}

static void finds_every_row_by_name_and_alias(void **state)
{
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        enum gp_metric found = GP_METRIC__COUNT;
        char alias[64];
        const char *aliases = GP_METRIC_ALIASES(m);
        assert_int_equal(gp_metric_find(GP_METRIC_NAME(m), &found, NULL), 0);
        assert_int_equal(found, m);
        while (next_word(&aliases, alias)) {
            found = GP_METRIC__COUNT;
            assert_int_equal(gp_metric_find(alias, &found, NULL), 0);
            assert_int_equal(found, m);
        }
    }
}

static void check_unknown(const char *name, const char *words)
{
    struct gp_err err = {0};
    enum gp_metric found = GP_METRIC__COUNT;
    assert_int_equal(gp_metric_find(name, &found, &err), GP_EUSAGE);
    assert_int_equal(found, GP_METRIC__COUNT);
    assert_int_equal(err.code, GP_EUSAGE);
    assert_non_null(strstr(err.text, words));
}

static void suggests_the_nearest(void **state)
{
    (void)state;
    check_unknown("temperature.gp", "'temperature.gp' (did you mean 'temperature.gpu'?)");
    check_unknown("memory.usde", "did you mean 'memory.used'?");
    check_unknown("utilisation.gpu", "did you mean 'utilization.gpu'?");
    check_unknown("TEMPERATURE.GPU", "unknown field 'TEMPERATURE.GPU'");
    check_unknown("", "unknown field ''");
    check_unknown(" ", "unknown field ' '");
    struct gp_err err = {0};
    enum gp_metric found;
    assert_int_equal(gp_metric_find("sneeze", &found, &err), GP_EUSAGE);
    assert_null(strstr(err.text, "did you mean"));
}

static void parts_of_aliases_are_no_aliases(void **state)
{
    (void)state;
    check_unknown("gpu_", "unknown field");
    check_unknown("clocks.gr clocks", "unknown field");
}

static void sets_hold_what_was_added(void **state)
{
    (void)state;
    struct gp_metric_set set = {0};
    for (int m = 0; m < GP_METRIC__COUNT; m += 3)
        gp_metric_set_add(&set, (enum gp_metric)m);
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        assert_int_equal(gp_metric_set_has(&set, (enum gp_metric)m), m % 3 == 0);
    struct gp_metric_set one = {0};
    assert_false(gp_metric_set_has_scope(&one, GP_SCOPE_HOST));
    gp_metric_set_add(&one, (enum gp_metric)(GP_CLOCK__FIRST - 1));
    assert_true(gp_metric_set_has_scope(&one, GP_SCOPE_PROCESS));
    assert_false(gp_metric_set_has_scope(&one, GP_SCOPE_CLOCK));
    assert_false(gp_metric_set_has_scope(&one, GP_SCOPE_DEVICE));
    assert_false(gp_metric_set_has_scope(&one, GP_SCOPE_HOST));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_aliases_are_unique),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(help_is_one_phrase),
        cmocka_unit_test(scopes_are_contiguous),
        cmocka_unit_test(lists_are_called_as_their_fields),
        cmocka_unit_test(types_fit_units),
        cmocka_unit_test(finds_every_row_by_name_and_alias),
        cmocka_unit_test(suggests_the_nearest),
        cmocka_unit_test(parts_of_aliases_are_no_aliases),
        cmocka_unit_test(sets_hold_what_was_added),
    };
    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
