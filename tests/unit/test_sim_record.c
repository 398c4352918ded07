/* The tables behind the recorder and the driver branches. */
#include "unit.h"

#include "base/err.h"
#include "sim/branch.h"
#include "sim/record.h"
#include "sim/record_internal.h"

/* A row of answers.def that no question fills would be lost in every recording. */
static void every_slot_is_asked_for(void **state)
{
    (void)state;
    unsigned int asked[SIM_SLOT_COUNT] = {0};
    for (size_t i = 0; i < rec_probe_count; i++) {
        const struct rec_probe *p = &rec_probes[i];
        assert_true(p->slot + p->values * p->keys <= SIM_SLOT_COUNT);
        assert_true(p->values <= REC_NUMBERS);
        for (unsigned int n = 0; n < p->values * p->keys; n++) {
            asked[p->slot + n]++;
            /* one function, one key */
            assert_string_equal(sim_answers[p->slot + n].key, sim_answers[p->slot].key);
        }
    }
    for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++)
        if (!asked[slot])
            fail_msg("%s%s%s is not recorded: add a row to record_probe.c", sim_answers[slot].key,
                     sim_answers[slot].member ? "." : "",
                     sim_answers[slot].member ? sim_answers[slot].member : "");
}

static const unsigned int newest[3] = {0};

static void fields_keep_their_numbers_but_for_the_moved_ones(void **state)
{
    (void)state;
    static const struct {
        unsigned int driver[3];
        unsigned int id, newest;
    } cases[] = {
        {{450, 80, 2}, 82, 82},    {{450, 80, 2}, 146, 0},    {{455, 45, 1}, 146, 146},
        {{525, 60, 13}, 186, 0},   {{535, 54, 3}, 186, 186},  {{550, 54, 15}, 199, 199},
        {{550, 54, 15}, 200, 0},   {{555, 42, 6}, 199, 200},  {{555, 42, 6}, 200, 199},
        {{560, 35, 3}, 200, 199},  {{570, 86, 15}, 199, 199}, {{570, 86, 15}, 251, 251},
        {{570, 86, 15}, 269, 0},   {{575, 51, 3}, 251, 269},  {{575, 51, 3}, 253, 271},
        {{575, 51, 3}, 255, 273},  {{575, 51, 3}, 256, 251},  {{575, 51, 3}, 273, 268},
        {{575, 51, 3}, 274, 0},    {{580, 65, 6}, 252, 270},  {{580, 82, 7}, 252, 252},
        {{580, 105, 8}, 269, 269}, {{580, 105, 8}, 274, 0},   {{590, 48, 1}, 288, 288},
        {{590, 48, 1}, 301, 0},    {{595, 80, 0}, 301, 301},  {{595, 80, 0}, 296, 0},
        {{610, 57, 4}, 300, 300},  {{418, 43, 0}, 94, 94},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        unsigned int now = sim_field_newest(cases[i].driver, cases[i].id);
        assert_int_equal(sim_field_known(cases[i].driver, now) ? now : 0, cases[i].newest);
    }
    assert_false(sim_field_known(newest, 0));
    assert_false(sim_field_known(newest, SIM_FIELD_LAST + 1));
    for (unsigned int id = 1; id <= SIM_FIELD_LAST; id++) {
        assert_int_equal(sim_field_newest(newest, id), id);
        assert_true(sim_field_known(newest, id));
    }
}

static size_t missing_count(unsigned int major, unsigned int minor)
{
    const unsigned int driver[3] = {major, minor, 0};
    bool missing[SIM_SYMBOL_COUNT];
    size_t n = 0;
    sim_symbols_missing(driver, missing);
    for (size_t i = 0; i < SIM_SYMBOL_COUNT; i++)
        n += missing[i];
    return n;
}

static void older_drivers_lack_more(void **state)
{
    (void)state;
    static const unsigned int branches[] = {450, 470, 510, 535, 550, 575, 580, 590, 595, 610};
    for (size_t i = 1; i < GP_ARRAY_LEN(branches); i++)
        assert_true(missing_count(branches[i - 1], 0) > missing_count(branches[i], 0));
    assert_int_equal(missing_count(610, 0), 0);
    assert_int_equal(missing_count(0, 0), 0);
    assert_int_equal(missing_count(440, 0), missing_count(418, 0));
    assert_int_equal(missing_count(535, 98), missing_count(535, 86) + 3);
    assert_int_equal(missing_count(535, 104), missing_count(535, 86));
}

static void a_release_is_found_by_branch_and_beginning(void **state)
{
    (void)state;
    static const struct {
        const char *wanted, *driver;
        int cuda;
    } cases[] = {
        {"450", "450.80.02", 11000},         {"470", "470.57.02", 11040},
        {"535", "535.183.01", 12020},        {"535.43", "535.43.02", 12020},
        {"535.98", "535.98", 12020},         {"580.65", "580.65.06", 13000},
        {"570.148.08", "570.148.08", 12080}, {"610", "610.57.04", 13030},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const char *driver;
        int cuda;
        assert_int_equal(sim_release_find(cases[i].wanted, &driver, &cuda, NULL), GP_OK);
        assert_string_equal(driver, cases[i].driver);
        assert_int_equal(cuda, cases[i].cuda);
    }
    static const char *const wrong[] = {"",     "5",   "53",    "535.4",   "535.43.02.1", "x470",
                                        "470x", "471", "470.1", "999.1.1", "-470"};
    for (size_t i = 0; i < GP_ARRAY_LEN(wrong); i++) {
        struct gp_err err = {0};
        const char *driver;
        int cuda;
        assert_int_equal(sim_release_find(wrong[i], &driver, &cuda, &err), GP_EUSAGE);
        assert_true(err.text[0]);
    }
}

static void list_entries_were_wide_for_a_while(void **state)
{
    (void)state;
    static const struct {
        unsigned int driver[3];
        size_t v1, v2, v3;
    } cases[] = {
        {{525, 60, 13}, 16, 24, 24}, {{535, 43, 2}, 16, 24, 32}, {{535, 86, 10}, 16, 24, 32},
        {{535, 98, 0}, 16, 24, 24},  {{0, 0, 0}, 16, 24, 24},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        assert_int_equal(sim_process_entry_size(cases[i].driver, 1), cases[i].v1);
        assert_int_equal(sim_process_entry_size(cases[i].driver, 2), cases[i].v2);
        assert_int_equal(sim_process_entry_size(cases[i].driver, 3), cases[i].v3);
    }
}

static size_t scope_count(unsigned int field, unsigned int links)
{
    unsigned int at = 0, scope;
    while (rec_field_scope(field, links, at, &scope))
        at++;
    return at;
}

static void fields_are_asked_with_their_scopes(void **state)
{
    (void)state;
    unsigned int scope;
    assert_int_equal(scope_count(NVML_FI_DEV_MEMORY_TEMP, 18), 1);
    assert_int_equal(scope_count(NVML_FI_DEV_ENERGY, 18), 1);
    assert_int_equal(scope_count(NVML_FI_DEV_POWER_INSTANT, 18), 4);
    assert_int_equal(scope_count(NVML_FI_DEV_NVLINK_GET_STATE, 18), 18);
    assert_int_equal(scope_count(NVML_FI_DEV_NVLINK_GET_STATE, 0), 1);
    assert_int_equal(scope_count(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 18), 19);
    assert_true(rec_field_scope(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 18, 18, &scope));
    assert_int_equal(scope, UINT32_MAX);
}

static void every_list_is_asked_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIM_LIST_COUNT; i++)
        if (!rec_has_list(i))
            fail_msg("list %zu of lists.def is not recorded: add it to record_lists.c", i);
}

/* A note, an answer without a name and a number too large leave the document one that loads. */
static void what_does_not_fit_becomes_a_note(void **state)
{
    (void)state;
    static struct rec_answers answers;
    struct rec_doc doc;
    assert_true(rec_doc_init(&doc, false));
    answers.asked[SIM_ENERGY] = answers.asked[SIM_POWER] = answers.asked[SIM_NAME] = true;
    answers.values[SIM_ENERGY].number = UINT64_MAX;
    answers.values[SIM_POWER].code = (nvmlReturn_t)777;
    answers.values[SIM_NAME].text = rec_doc_text(&doc, "a\xff\x1b"
                                                       "b");
    json_t *json = rec_doc_answers(&doc, "GPU 0", &answers, false);
    assert_string_equal(json_string_value(json_object_get(json, "TotalEnergyConsumption")),
                        "UNKNOWN");
    assert_string_equal(json_string_value(json_object_get(json, "PowerUsage")), "UNKNOWN");
    assert_string_equal(json_string_value(json_object_get(json, "Name")), "a\xef\xbf\xbd\\x1b"
                                                                          "b");
    assert_int_equal(json_object_size(json), 3);
    assert_int_equal(json_array_size(doc.notes), 2);
    json_decref(json);

    json_t *fields = json_object();
    nvmlFieldValue_t field = {.fieldId = 82, .valueType = NVML_VALUE_TYPE_DOUBLE};
    field.value.dVal = 41.6;
    rec_doc_field(&doc, fields, &field, NVML_SUCCESS);
    assert_int_equal(json_integer_value(json_object_get(fields, "82")), 42);
    field = (nvmlFieldValue_t){.fieldId = 197, .valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG};
    field.value.ullVal = UINT64_MAX;
    rec_doc_field(&doc, fields, &field, NVML_SUCCESS);
    assert_string_equal(json_string_value(json_object_get(fields, "197")), "UNKNOWN");
    field =
        (nvmlFieldValue_t){.fieldId = 193, .scopeId = 2, .valueType = NVML_VALUE_TYPE_SIGNED_INT};
    field.value.siVal = -5;
    rec_doc_field(&doc, fields, &field, NVML_SUCCESS);
    assert_int_equal(json_integer_value(json_object_get(fields, "193/2")), -5);
    assert_int_equal(json_array_size(doc.notes), 4);
    json_decref(fields);
    rec_doc_fini(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slot_is_asked_for),
        cmocka_unit_test(every_list_is_asked_for),
        cmocka_unit_test(fields_keep_their_numbers_but_for_the_moved_ones),
        cmocka_unit_test(older_drivers_lack_more),
        cmocka_unit_test(a_release_is_found_by_branch_and_beginning),
        cmocka_unit_test(list_entries_were_wide_for_a_while),
        cmocka_unit_test(fields_are_asked_with_their_scopes),
        cmocka_unit_test(what_does_not_fit_becomes_a_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
