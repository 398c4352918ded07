#include "unit.h"

#include "base/err.h"
#include "model/select.h"

#define UUID "GPU-1b2c3d4e-0000-1111-2222-333344445555"
#define BUS "00000000:53:00.0"
#define SERIAL "1650522003820"
#define NAME "NVIDIA GeForce RTX 4090"

static const struct gp_identity gpu = {UUID, BUS, SERIAL, NAME};

static struct gp_selection parse(const char *list)
{
    struct gp_selection selection = {0};
    struct gp_err err = {0};
    assert_int_equal(gp_selection_parse(list, &selection, &err), 0);
    assert_int_equal(err.code, 0);
    return selection;
}

/* Whether the list chooses GPU 3 of a machine. */
static bool chooses(const char *list)
{
    struct gp_selection selection = parse(list);
    return gp_selection_matches(&selection, 3, &gpu);
}

static void nothing_chooses_all(void **state)
{
    (void)state;
    struct gp_selection selection = {0};
    assert_true(gp_selection_is_by_index(&selection));
    assert_true(gp_selection_matches(&selection, 7, NULL));
    assert_int_equal(gp_selection_check(&selection, 0, NULL), 0);
}

static void by_index_and_range(void **state)
{
    (void)state;
    assert_true(chooses("3"));
    assert_true(chooses("03"));
    assert_true(chooses("0,3"));
    assert_true(chooses("0-3"));
    assert_true(chooses("3-3"));
    assert_true(chooses("2-999"));
    assert_false(chooses("2"));
    assert_false(chooses("4-7"));
    assert_false(chooses("0-2,4"));
}

static void an_instance_by_its_id(void **state)
{
    (void)state;
    const struct gp_identity instance = {.is_mig = true, .gpu = 3, .mig_index = 1};
    struct gp_selection selection = parse("3:1");
    assert_true(gp_selection_names_mig(&selection));
    assert_true(gp_selection_matches(&selection, 3, &instance));
    assert_false(chooses("3:1"));
    selection = parse("3:2,1:1");
    assert_false(gp_selection_matches(&selection, 3, &instance));
}

static void by_uuid_or_its_beginning(void **state)
{
    (void)state;
    assert_true(chooses(UUID));
    assert_true(chooses("GPU-1b2c"));
    assert_true(chooses("gpu-1B2C"));
    assert_false(chooses("GPU-1b2d"));
    assert_false(chooses(UUID "0"));
    assert_false(chooses("MIG-1b2c"));
}

static void by_bus_id_with_any_domain(void **state)
{
    (void)state;
    assert_true(chooses("53:00.0"));
    assert_true(chooses("0000:53:00.0"));
    assert_true(chooses("00000000:53:00.0"));
    assert_false(chooses("0001:53:00.0"));
    assert_false(chooses("54:00.0"));
    assert_false(chooses("53:00.1"));
    assert_false(chooses("53:0"));
    assert_false(chooses("::::"));
}

static void by_serial_number(void **state)
{
    (void)state;
    assert_true(chooses(SERIAL));
    assert_true(chooses("0," SERIAL));
    assert_false(chooses("165052200382"));
    assert_false(chooses("16505220038200"));
    struct gp_selection selection = parse("0," SERIAL);
    assert_true(gp_selection_names_serials(&selection));
    selection = parse("4090,0-3");
    assert_false(gp_selection_names_serials(&selection));
}

static void by_part_of_the_name(void **state)
{
    (void)state;
    assert_true(chooses("4090"));
    assert_true(chooses("rtx 4090"));
    assert_true(chooses("GeForce"));
    assert_false(chooses("4080"));
    assert_false(chooses("Tesla"));
    /* too large for an index */
    assert_false(chooses("1000"));
}

static void unknown_properties_match_nothing(void **state)
{
    (void)state;
    const char *const lists[] = {"GPU-1", "53:00.0", "4090"};
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        struct gp_selection selection = parse(lists[i]);
        assert_false(gp_selection_matches(&selection, 3, NULL));
        assert_false(gp_selection_is_by_index(&selection));
    }
}

static void knows_whether_an_index_is_enough(void **state)
{
    (void)state;
    struct gp_selection selection = parse("0,2-3");
    assert_true(gp_selection_is_by_index(&selection));
    selection = parse("0,4090");
    assert_false(gp_selection_is_by_index(&selection));
}

static void check_bad(const char *list, const char *words)
{
    struct gp_selection selection = {0};
    struct gp_err err = {0};
    assert_int_equal(gp_selection_parse(list, &selection, &err), GP_EUSAGE);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
}

/* Whether only GPU 3, or one whose index is in the list, is meant. */
static bool settles(const char *list)
{
    struct gp_selection selection = parse(list);
    (void)gp_selection_matches(&selection, 3, &gpu);
    return gp_selection_is_settled(&selection);
}

static void knows_when_nobody_else_can_be_meant(void **state)
{
    (void)state;
    assert_true(settles(UUID));
    assert_true(settles("53:00.0," UUID));
    assert_true(settles("3,7," UUID ",0-1"));
    assert_false(settles("GPU-1b2c"));
    assert_false(settles("4090"));
    assert_false(settles("3,4090"));
    assert_false(settles(UUID ",54:00.0"));
    struct gp_selection nobody_asked = parse(UUID);
    assert_false(gp_selection_is_settled(&nobody_asked));
    assert_false(gp_selection_is_settled(&(struct gp_selection){0}));
}

static void knows_whether_instances_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        bool names_mig, names_models;
    } cases[] = {{"0", false, false},         {"GPU-1", false, false}, {"MIG-1", true, false},
                 {"0,mig-1b2c", true, false}, {"4090", false, true},   {"0,rtx", false, true}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_selection selection = parse(cases[i].list);
        assert_int_equal(gp_selection_names_mig(&selection), cases[i].names_mig);
        assert_int_equal(gp_selection_names_models(&selection), cases[i].names_models);
    }
    struct gp_selection none = {0};
    assert_false(gp_selection_names_mig(&none));
}

/* Six digits are a serial number, five are a model or nothing. */
static void kinds_of_terms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum gp_select_kind kind;
    } cases[] = {
        {"123456", GP_SELECT_SERIAL},
        {"12345", GP_SELECT_NAME},
        {"999", GP_SELECT_INDEX},
        {"1000", GP_SELECT_NAME},
        {"0-999", GP_SELECT_INDEX},
        {"0-1000", GP_SELECT_NAME},
        {"12345x", GP_SELECT_NAME},
        {"1-x", GP_SELECT_NAME},
        {"MIG-1", GP_SELECT_UUID},
        {"0000:53:00.0", GP_SELECT_BUS},
        {"x:1", GP_SELECT_NAME},
        {"5.0", GP_SELECT_NAME},
        /* 31 digits fit into a number of a range, 32 do not */
        {"0000000000000000000000000000001-2", GP_SELECT_INDEX},
        {"00000000000000000000000000000001-2", GP_SELECT_NAME},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_selection selection = parse(cases[i].text);
        if (selection.terms[0].kind != cases[i].kind)
            fail_msg("'%s' is of kind %d", cases[i].text, (int)selection.terms[0].kind);
    }
}

static void blanks_around_terms(void **state)
{
    (void)state;
    assert_true(chooses(" 3"));
    assert_true(chooses("0 , 3  "));
    assert_true(chooses("  rtx 4090  ,0"));
    struct gp_selection selection = parse(" rtx 4090  ");
    assert_string_equal(selection.terms[0].text, "rtx 4090");
}

static void terms_as_long_as_there_is_room_for(void **state)
{
    (void)state;
    char text[97];
    memset(text, 'x', sizeof(text));
    text[95] = '\0';
    assert_int_equal(strlen(parse(text).terms[0].text), 95);
    text[95] = 'x';
    text[96] = '\0';
    check_bad(text, "bad GPU 'xxx");
    check_bad("5-3", "bad range '5-3': the start is greater than the end");
    struct gp_selection same = parse("3-3");
    assert_int_equal(same.terms[0].last, 3);
}

static void a_machine_with_one_gpu(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_selection selection = parse("1");
    assert_int_equal(gp_selection_check_indices(&selection, 1, &err), GP_ENODEV);
    assert_string_equal(err.text, "no GPU matches '1'; this machine has 1");
    assert_int_equal(gp_selection_check_indices(&selection, 2, &err), 0);
}

static void bad_lists(void **state)
{
    (void)state;
    check_bad("", "bad GPU ''");
    check_bad("0,,1", "bad GPU ''");
    check_bad("0,", "bad GPU ''");
    char text[2000];
    memset(text, 'x', sizeof(text));
    text[300] = '\0';
    check_bad(text, "bad GPU 'xxx");
    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "1,", 2);
    text[2 * (GP_SELECT_TERMS_MAX + 1) - 1] = '\0';
    check_bad(text, "too many GPUs: at most 128");
    text[2 * GP_SELECT_TERMS_MAX - 1] = '\0';
    assert_int_equal(parse(text).count, GP_SELECT_TERMS_MAX);
}

static void names_the_first_term_that_matched_nothing(void **state)
{
    (void)state;
    struct gp_selection selection = parse("0,9,H100");
    struct gp_err err = {0};
    for (unsigned i = 0; i < 4; i++)
        (void)gp_selection_matches(&selection, i, &gpu);
    assert_int_equal(gp_selection_check(&selection, 4, &err), GP_ENODEV);
    assert_string_equal(err.text, "no GPU matches '9'; this machine has 4 (0 to 3)");
    selection = parse("1-4");
    for (unsigned i = 0; i < 4; i++)
        (void)gp_selection_matches(&selection, i, &gpu);
    assert_int_equal(gp_selection_check(&selection, 4, &err), GP_ENODEV);
    assert_string_equal(err.text, "no GPU matches all of '1-4'; this machine has 4 (0 to 3)");
    selection = parse("0-1,rtx");
    for (unsigned i = 0; i < 4; i++)
        assert_true(gp_selection_matches(&selection, i, &gpu));
    assert_int_equal(gp_selection_check(&selection, 4, &err), 0);
}

static void check_indices(const char *list, const char *words)
{
    const struct gp_selection selection = parse(list);
    struct gp_err err = {0};
    assert_int_equal(gp_selection_check_indices(&selection, 8, &err), *words ? GP_ENODEV : 0);
    assert_string_equal(err.text, words);
}

static void an_index_that_is_not_there_is_known_before_anybody_is_asked(void **state)
{
    (void)state;
    check_indices("0,3-7,GPU-9", "");
    check_indices("3,8", "no GPU matches '8'; this machine has 8 (0 to 7)");
    check_indices("H100,3-8", "no GPU matches all of '3-8'; this machine has 8 (0 to 7)");
    check_indices("8-9", "no GPU matches '8-9'; this machine has 8 (0 to 7)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_chooses_all),
        cmocka_unit_test(by_index_and_range),
        cmocka_unit_test(an_instance_by_its_id),
        cmocka_unit_test(by_uuid_or_its_beginning),
        cmocka_unit_test(by_bus_id_with_any_domain),
        cmocka_unit_test(by_serial_number),
        cmocka_unit_test(by_part_of_the_name),
        cmocka_unit_test(unknown_properties_match_nothing),
        cmocka_unit_test(knows_whether_an_index_is_enough),
        cmocka_unit_test(knows_when_nobody_else_can_be_meant),
        cmocka_unit_test(bad_lists),
        cmocka_unit_test(knows_whether_instances_are_named),
        cmocka_unit_test(kinds_of_terms),
        cmocka_unit_test(blanks_around_terms),
        cmocka_unit_test(terms_as_long_as_there_is_room_for),
        cmocka_unit_test(a_machine_with_one_gpu),
        cmocka_unit_test(names_the_first_term_that_matched_nothing),
        cmocka_unit_test(an_index_that_is_not_there_is_known_before_anybody_is_asked),
    };
    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
