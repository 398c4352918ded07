#include "unit.h"

#include "base/err.h"

#include <errno.h>

static void codes_are_negative_and_distinct(void **state)
{
    (void)state;
    static const int codes[] = {
#define X(name, exit, text) name,
        GP_ERR_LIST(X)
#undef X
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(codes); i++) {
        assert_true(codes[i] < 0);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(codes[i], codes[k]);
    }
}

/* The numbers that the manual promises to scripts. */
static void exit_statuses_are_the_documented_ones(void **state)
{
    (void)state;
    assert_int_equal(gp_err_exit_status(GP_OK), 0);
    assert_int_equal(gp_err_exit_status(GP_EFAIL), 1);
    assert_int_equal(gp_err_exit_status(GP_EUSAGE), 2);
    assert_int_equal(gp_err_exit_status(GP_ENODEV), 3);
    assert_int_equal(gp_err_exit_status(GP_EDRIVER), 4);
    assert_int_equal(gp_err_exit_status(GP_EPERM), 5);
    assert_int_equal(gp_err_exit_status(GP_EPARTIAL), 6);
    assert_int_equal(gp_err_exit_status(GP_EINTR), 130);
    assert_int_equal(gp_err_exit_status(-12345), 1);
}

/* A denied permission is the same everywhere: of a file, of a call, of a process. */
static void denied_calls_have_one_code(void **state)
{
    (void)state;
    assert_int_equal(gp_err_code(EACCES, GP_EIO), GP_EPERM);
    assert_int_equal(gp_err_code(EPERM, GP_EUSAGE), GP_EPERM);
    assert_int_equal(gp_err_code(ENOENT, GP_EIO), GP_EIO);
    assert_int_equal(gp_err_code(ENOSPC, GP_EUSAGE), GP_EUSAGE);
}

static void a_failed_call_says_why(void **state)
{
    (void)state;
    struct gp_err err = {0};
    char longest[500];
    assert_int_equal(gp_err_system(&err, ENOENT, GP_EIO, "cannot read '%s'", "a"), GP_EIO);
    assert_int_equal(err.code, GP_EIO);
    assert_string_equal(err.text, "cannot read 'a': No such file or directory");
    assert_int_equal(gp_err_system(&err, EACCES, GP_EIO, "cannot write"), GP_EPERM);
    assert_int_equal(err.code, GP_EPERM);
    assert_string_equal(err.text, "cannot write: Permission denied");
    assert_int_equal(gp_err_system(NULL, EPERM, GP_EUSAGE, "cannot write"), GP_EPERM);
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(gp_err_system(&err, EACCES, GP_EIO, "%s", longest), GP_EPERM);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void fills_and_returns(void **state)
{
    (void)state;
    struct gp_err err = {0};
    assert_int_equal(gp_err_set(&err, GP_ENODEV, "no GPU '%s'", "9"), GP_ENODEV);
    assert_int_equal(err.code, GP_ENODEV);
    assert_string_equal(err.text, "no GPU '9'");
    assert_int_equal(gp_err_set(NULL, GP_EIO, "%s", "nobody listens"), GP_EIO);
}

/* An error that is handed on keeps what the driver said; the next one begins without it. */
static void hands_on_the_drivers_code(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_err from = {0};
    (void)gp_err_set(&from, GP_EDRIVER, "cannot start");
    from.driver_code = 18;
    from.driver_library[0] = '9';
    assert_int_equal(gp_err_copy(&err, &from), GP_EDRIVER);
    assert_string_equal(err.text, "cannot start");
    assert_int_equal(err.driver_code, 18);
    assert_string_equal(err.driver_library, "9");
    (void)gp_err_set(&err, GP_EIO, "cannot write");
    assert_int_equal(err.driver_code, 0);
    assert_string_equal(err.driver_library, "");
    assert_int_equal(gp_err_copy(NULL, &from), GP_EDRIVER);
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    struct gp_err err = {0};
    (void)gp_err_set(&err, GP_EFAIL, "%01000d", 1);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void every_code_has_words(void **state)
{
    (void)state;
#define X(name, exit, words) assert_string_equal(gp_err_text(name), words);
    GP_ERR_LIST(X)
#undef X
    assert_non_null(gp_err_text(-12345));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_negative_and_distinct),
        cmocka_unit_test(exit_statuses_are_the_documented_ones),
        cmocka_unit_test(denied_calls_have_one_code),
        cmocka_unit_test(a_failed_call_says_why),
        cmocka_unit_test(fills_and_returns),
        cmocka_unit_test(hands_on_the_drivers_code),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(every_code_has_words),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
