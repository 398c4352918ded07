#include "unit.h"

#include "base/parse.h"

struct number_case {
    const char *text;
    bool good;
    uint64_t value;
};

#define KIB UINT64_C(1024)

static void check(const struct number_case *cases, size_t count,
                  bool (*parse)(const char *, uint64_t *))
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 4711;
        bool good = parse(cases[i].text, &value);
        if (good != cases[i].good)
            fail_msg("'%s' is %s", cases[i].text, good ? "taken" : "refused");
        /* A refused text leaves the result as it was. */
        if (value != (good ? cases[i].value : 4711))
            fail_msg("'%s' gives %llu", cases[i].text, (unsigned long long)value);
    }
}

static void durations(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"0", true, 0},
        {"1", true, GP_NS_PER_S},
        {"1.5", true, 1500 * GP_NS_PER_MS},
        {".5", true, 500 * GP_NS_PER_MS},
        {"0.1", true, 100 * GP_NS_PER_MS},
        {"2.", true, 2 * GP_NS_PER_S},
        {"250ms", true, 250 * GP_NS_PER_MS},
        {"7us", true, 7000},
        {"3ns", true, 3},
        {"30s", true, 30 * GP_NS_PER_S},
        {"5m", true, 300 * GP_NS_PER_S},
        {"5min", true, 300 * GP_NS_PER_S},
        {"1h", true, 3600 * GP_NS_PER_S},
        {"2d", true, 172800 * GP_NS_PER_S},
        {"1h30m", true, 5400 * GP_NS_PER_S},
        {"1d12h", true, 129600 * GP_NS_PER_S},
        {"1m1.5s", true, 61500 * GP_NS_PER_MS},
        {"1:30:00", true, 5400 * GP_NS_PER_S},
        {"100:00:00.5", true, 360000 * GP_NS_PER_S + 500 * GP_NS_PER_MS},
        {"1:30", false, 0},
        {"1.5:30:00", false, 0},
        {"1:1.5:00", false, 0},
        {"1:60:00", false, 0},
        {"1:00:00:00", false, 0},
        {"1:00:", false, 0},
        {"9999999:00:00", false, 0},
        {"1h30", false, 0},
        {"1h30m ", false, 0},
        {"1hm", false, 0},
        {"200000000d200000000d", false, 0},
        {"", false, 0},
        {".", false, 0},
        {"s", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1 s", false, 0},
        {"1S", false, 0},
        {"1.2.3", false, 0},
        {"1,5", false, 0},
        {"1e3", false, 0},
        {"0x10", false, 0},
        {"nan", false, 0},
        {"inf", false, 0},
        {"1sec", false, 0},
        {"99999999999999999999999d", false, 0},
        {"300y", false, 0},
    };
    check(cases, GP_ARRAY_LEN(cases), gp_parse_duration);
}

static void sizes(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"0", true, 0},
        {"1000000", true, 1000000},
        {"12B", true, 12},
        {"1K", true, KIB},
        {"1KiB", true, KIB},
        {"1kB", true, 1000},
        {"500k", true, 500 * KIB},
        {"512M", true, 512 * KIB * KIB},
        {"512MiB", true, 512 * KIB * KIB},
        {"1MB", true, 1000000},
        {"1.5G", true, 1536 * KIB * KIB},
        {"20GiB", true, 20 * KIB * KIB * KIB},
        {"2GB", true, UINT64_C(2000000000)},
        {"1T", true, KIB * KIB * KIB * KIB},
        {"3TB", true, UINT64_C(3000000000000)},
        {"", false, 0},
        {"G", false, 0},
        {"1g", false, 0},
        {"1 GiB", false, 0},
        {"-1G", false, 0},
        {"1GiBs", false, 0},
        {"1P", false, 0},
        {"99999999T", false, 0},
    };
    check(cases, GP_ARRAY_LEN(cases), gp_parse_size);
}

/* As nvidia-smi prints it. */
static void memory(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"0", true, 0},
        {"20", true, 20 * KIB * KIB},
        {"1.5", true, 1536 * KIB},
        {"81559", true, 81559 * KIB * KIB},
        {"20B", true, 20},
        {"20GiB", true, 20 * KIB * KIB * KIB},
        {"99999999999999999", false, 0},
        {"", false, 0},
    };
    check(cases, GP_ARRAY_LEN(cases), gp_parse_memory);
}

static void counts(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"7B", true, UINT64_C(7000000000)},
        {"7b", true, UINT64_C(7000000000)},
        {"350M", true, 350000000},
        {"350m", true, 350000000},
        {"0.5B", true, 500000000},
        {"1.3e9", true, 1300000000},
        {"1.3E9", true, 1300000000},
        {"7e09", true, UINT64_C(7000000000)},
        {"6738415616", true, UINT64_C(6738415616)},
        {"22k", true, 22000},
        {"1.8T", true, UINT64_C(1800000000000)},
        {"0", true, 0},
        {"0e5", true, 0},
        {"8x7B", false, 0},
        {"7GB", false, 0},
        {"7G", false, 0},
        {"7 B", false, 0},
        {"7BB", false, 0},
        {"7e9B", false, 0},
        {"7e", false, 0},
        {"e9", false, 0},
        {"7e-3", false, 0},
        {"7e+9", false, 0},
        {"7e999", false, 0},
        {"7e99", false, 0},
        {"7e19", false, 0},
        {"-7B", false, 0},
        {"B", false, 0},
        {"", false, 0},
        {"nan", false, 0},
        {"inf", false, 0},
    };
    check(cases, GP_ARRAY_LEN(cases), gp_parse_count);
}

static void numbers(void **state)
{
    (void)state;
    char digits[400];
    double number = 4711;
    memset(digits, '9', sizeof(digits) - 1);
    digits[sizeof(digits) - 1] = '\0';
    assert_false(gp_parse_number(digits, &number)); /* not infinite */
    assert_false(gp_parse_number("-1", &number));
    assert_true(number > 4710.5 && number < 4711.5);
    assert_true(gp_parse_number("4e19", &number) && number > 3.9e19 && number < 4.1e19);
    assert_true(gp_parse_number("0.5T", &number) && number > 4.9e11 && number < 5.1e11);
}

static void integers(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"0", true, 0},
        {"007", true, 7},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x1f", false, 0},
        {"1k", false, 0},
    };
    check(cases, GP_ARRAY_LEN(cases), gp_parse_u64);
}

static void words(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        const char *words[4];
    } rows[] = {
        {"", {NULL}},      {"one", {"one"}}, {"1,22,3", {"1", "22", "3"}},          {"1,", {"1"}},
        {",2", {"", "2"}}, {",", {""}},      {"much too long,b", {"much to", "b"}},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const char *p = rows[i].list;
        char word[8];
        size_t k = 0;
        while (gp_parse_word(&p, ',', word, sizeof(word)))
            assert_string_equal(word, rows[i].words[k++]);
        assert_null(rows[i].words[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations), cmocka_unit_test(sizes),   cmocka_unit_test(memory),
        cmocka_unit_test(counts),    cmocka_unit_test(numbers), cmocka_unit_test(integers),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
