/* The numbers that are given to `nvidia-smi mig`. */
#include "unit.h"

#include "base/util.h"
#include "smi/mig.h"

static void lists_of_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count; /* 0: they cannot be read */
        unsigned last;
    } cases[] = {
        {"0", 1, 0},
        {"7", 1, 7},
        {"0,1,2", 3, 2},
        {"9,0", 2, 0},
        {"1000000", 1, 1000000},
        {"1000001", 0, 0},
        {"", 0, 0},
        {",", 0, 0},
        {"1,", 0, 0},
        {",1", 0, 0},
        {"1,,2", 0, 0},
        {"-1", 0, 0},
        {"+1", 0, 0},
        {" 1", 0, 0},
        {"1 ", 0, 0},
        {"1x", 0, 0},
        {"x", 0, 0},
        {"1,x", 0, 0},
        {":", 0, 0},
        {"/", 0, 0},
        {"1;2", 0, 0},
        {"010", 1, 10},
        {"99999999999999999999", 0, 0},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_smi_mig_ids ids = {.count = 99};
        bool r = gp_smi_mig_parse_ids(cases[i].text, &ids);
        if (r != (cases[i].count > 0) ||
            (r && (ids.count != cases[i].count || ids.ids[ids.count - 1] != cases[i].last)))
            fail_msg("'%s' gives %d, %zu numbers", cases[i].text, r, ids.count);
    }
}

static void as_many_as_there_is_room_for(void **state)
{
    (void)state;
    char text[2 * GP_SMI_MIG_IDS_MAX + 4] = "";
    struct gp_smi_mig_ids ids;
    for (int i = 0; i < GP_SMI_MIG_IDS_MAX; i++)
        memcpy(text + 2 * i, ",1", 3);
    assert_true(gp_smi_mig_parse_ids(text + 1, &ids));
    assert_int_equal(ids.count, GP_SMI_MIG_IDS_MAX);
    memcpy(text + 2 * GP_SMI_MIG_IDS_MAX, ",1", 3);
    assert_false(gp_smi_mig_parse_ids(text + 1, &ids));
}

/* No list means all. */
static void who_is_in_a_list(void **state)
{
    (void)state;
    struct gp_smi_mig_ids ids;
    assert_true(gp_smi_mig_parse_ids("3,5", &ids));
    assert_false(gp_smi_mig_has_id(&ids, 2));
    assert_true(gp_smi_mig_has_id(&ids, 3));
    assert_false(gp_smi_mig_has_id(&ids, 4));
    assert_true(gp_smi_mig_has_id(&ids, 5));
    ids.count = 0;
    assert_true(gp_smi_mig_has_id(&ids, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_numbers),
        cmocka_unit_test(as_many_as_there_is_room_for),
        cmocka_unit_test(who_is_in_a_list),
    };
    return cmocka_run_group_tests_name("smi_mig", tests, NULL, NULL);
}
